//! The mapping table as a B-tree over extents in flash, with a cache of entries in RAM (uFTL;
//! GeckoFTL, section 5.3).
//!
//! 1. A leaf holds extents of consecutive logical pages on consecutive pages: data written in
//!    sequence needs few of them, data written at random one a page, eight bytes each (`node`).
//! 2. Only the root and a fixed number of nodes are in RAM (`tree`).
//! 3. A write that misses the cache of entries reads the leaf first and reports the old copy at
//!    once.
//! 4. A dirty entry that has to leave is written to its leaf together with every other dirty entry
//!    of that leaf for which there is room; a leaf without room for the entry that leaves is split.
//! 5. A spare area says a node's first key, and its level or its end. Whether a page of the tree is
//!    current, its parent knows.
//!
//! 6. A leaf's spare area says its range of logical pages, so that the tree can be found again from
//!    its leaves ([`crate::recovery::leaves`]). A battery saves dirty entries and inner nodes
//!    (uFTL), or only the entries of so many pages written last may be dirty
//!    ([`BtreeOptions::recent_updates`], IB-FTL).
//! 7. An entry counts as clean only once its leaf is programmed and its parent leads there: so at
//!    any time what is dirty in RAM and what is in flash make up the whole table.

mod frames;
mod node;
mod restore;
mod saved;
#[cfg(test)]
mod tests;
mod tree;
mod trim;

use super::cached::cmt::{Asked, Cmt, Slot};
use super::cached::recent::Recent;
use super::{Mapping, is_page};
use crate::bound::Most;
use crate::contract::{FtlError, RamItem, RamReport};
use crate::flash::Purpose;
use crate::inspect::Inspector;
use crate::saved::Sink;
use crate::space::core::{Core, Origin};
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::{ControlFlow, Range};
use nand::{Lpn, Nand, PageKind, Ppn, Spare};
use node::{Item, Node};
pub use restore::Piece;
use tree::{Place, Role, Tree};

/// Cached entries for each list of dirty ones, about.
const ENTRIES_PER_LIST: u64 = 8;

/// How a tree behaves.
#[derive(Clone, Copy, Debug)]
pub struct BtreeOptions {
    /// C: entries that the cache holds, at least 2.
    pub cache_entries: u32,
    /// Nodes held in RAM, at least 16: inner ones, and leaves if those are cached. More on a device
    /// with more inner nodes.
    pub node_frames: u32,
    /// Leaves share the frames with inner nodes, whichever was used last: adaptive caching of the
    /// index (IB-FTL).
    pub cache_leaves: bool,
    /// How many of the pages written last may have dirty entries; 0 for any.
    pub recent_updates: u32,
    /// Ways of the sets that the cache is divided into; 0 for one list.
    pub cache_ways: u32,
}

/// A mapping table as a B-tree in flash.
#[derive(Debug)]
pub struct BtreeMap {
    tree: Tree,
    cmt: Cmt,
    recent: Recent,
    /// What left the ring last is not on flash.
    late: bool,
    /// Logical pages that share a list of dirty entries.
    group: u32,
    logical_pages: u32,
    pages_per_block: u32,
    leaf: Node,
    sibling: Node,
}

/// Inner nodes are held in RAM, as GeckoFTL's paper takes for granted (section 5.3), and a few
/// nodes more: as many inner nodes as there are once every page was written at random, when leaves
/// are two thirds full and inner nodes have just split.
fn frames(logical_pages: u32, page_bytes: u32, options: BtreeOptions) -> u32 {
    let capacity = Node::capacity(page_bytes) as u32;
    let leaves = logical_pages.div_ceil(capacity * 2 / 3);
    options.node_frames.max(leaves.div_ceil(capacity / 2) + options.node_frames / 4)
}

impl BtreeMap {
    /// The table of a device on which nothing was written.
    #[must_use]
    pub fn new(logical_pages: u32, page_bytes: u32, pages_per_block: u32, options: BtreeOptions) -> Self {
        let capacity = options.cache_entries.max(2);
        let spread = u64::from(logical_pages) * ENTRIES_PER_LIST / u64::from(capacity);
        let group = (spread as u32).min(logical_pages).max(Node::capacity(page_bytes) as u32);
        let asked = Asked { entries: capacity, protected_percent: 0, ways: options.cache_ways };
        Self {
            tree: Tree::new(
                logical_pages,
                page_bytes,
                frames(logical_pages, page_bytes, options),
                options.cache_leaves,
            ),
            cmt: Cmt::new(asked, logical_pages.div_ceil(group), group),
            recent: Recent::new(options.recent_updates),
            late: false,
            group,
            logical_pages,
            pages_per_block,
            leaf: Node::new(page_bytes),
            sibling: Node::new(page_bytes),
        }
    }

    fn leaf_place<N: Nand>(&mut self, core: &mut Core<N>, lpn: u32) -> Result<Place, FtlError> {
        let none = FtlError::Damaged { structure: "mapping tree", ppn: Ppn::NONE, reason: "the root is a leaf" };
        self.tree.descend(core, lpn, 0, Purpose::Translation)?.ok_or(none)
    }

    /// What flash says of a logical page.
    fn fetch<N: Nand>(&mut self, core: &mut Core<N>, lpn: Lpn) -> Result<Ppn, FtlError> {
        let place = self.leaf_place(core, lpn.0)?;
        if !self.tree.item(place).value.is_some() {
            return Ok(Ppn::NONE);
        }
        let frame = self.tree.find_leaf(core, place, Purpose::Translation, &mut self.leaf)?;
        let leaf = frame.map_or(&self.leaf, |at| self.tree.node(at));
        Self::find_in_leaf(core, leaf, self.tree.item(place).value, lpn.0)
    }

    /// Where a leaf on a page says that a logical page is; an extent that leads out of the device
    /// is damage.
    fn find_in_leaf<N: Nand>(core: &Core<N>, leaf: &Node, on: Ppn, lpn: u32) -> Result<Ppn, FtlError> {
        let found = leaf.find(lpn);
        if is_page(found) && found.0 >= core.space.geometry().pages() {
            let reason = "an extent leads to a page beyond the device's last";
            return Err(FtlError::Damaged { structure: "leaf of the mapping tree", ppn: on, reason });
        }
        Ok(found)
    }

    /// Brings the leaf of a dirty entry up to date, with every dirty entry of it for which there is
    /// room.
    fn synchronise<N: Nand>(&mut self, core: &mut Core<N>, slot: Slot, purpose: Purpose) -> Result<(), FtlError> {
        let (lpn, ppn) = (self.cmt.lpn(slot).0, self.cmt.ppn(slot));
        debug_assert!(self.cmt.is_dirty(slot) && lpn < self.logical_pages);
        let mut place = self.leaf_place(core, lpn)?;
        self.tree.read(core, place, purpose, &mut self.leaf)?;
        let (mut end, mut other) = (place.end, None);
        if self.leaf.len_with(lpn, ppn, end) > self.tree.capacity {
            self.tree.make_room(core, lpn, purpose)?;
            place = self.leaf_place(core, lpn)?;
            let key = self.leaf.split(&mut self.sibling);
            let mut end_of_other = key;
            if lpn < key {
                core::mem::swap(&mut end, &mut end_of_other);
            } else {
                core::mem::swap(&mut self.leaf, &mut self.sibling);
            }
            other = Some(self.tree.program(core, &mut self.sibling, end_of_other, purpose)?);
        }
        debug_assert!(self.leaf.first() <= lpn && lpn < end, "{lpn} is in the other half");
        self.leaf.set(lpn, ppn, end);
        let seen = self.absorb(end, core.seq, 0..0);
        let new = match self.tree.program(core, &mut self.leaf, end, purpose) {
            Ok(new) => new,
            Err(error) => {
                if let Some(other) = other {
                    core.translation_page_died(other);
                }
                return Err(error);
            }
        };
        let old = match other {
            None => self.tree.replace(place, new),
            Some(other) if self.leaf.first() < self.sibling.first() => {
                self.tree.insert_after(place, Item { key: self.sibling.first(), value: other });
                self.tree.replace(place, new)
            }
            Some(other) => {
                self.tree.insert_after(place, Item { key: self.leaf.first(), value: new });
                self.tree.replace(place, other)
            }
        };
        debug_assert!(self.leaf.find(lpn) == ppn, "the leaf of {lpn} lost its entry");
        self.mark_agreed_clean(end, seen);
        if self.cmt.is_dirty(slot) {
            self.cmt.mark_clean(slot);
        }
        if old.is_some() {
            core.translation_page_died(old);
        }
        Ok(())
    }

    /// Dirty entries of the leaf at hand, by `act` on each of them until it breaks off.
    fn for_each_dirty(&mut self, end: u32, mut act: impl FnMut(&mut Node, &mut Cmt, Slot) -> ControlFlow<()>) {
        let first = self.leaf.first();
        let groups = first / self.group..(end - 1) / self.group + 1;
        let mut next = self.cmt.first_dirty(groups.clone());
        while let Some(slot) = next {
            next = self.cmt.next_dirty(slot, groups.clone());
            if (first..end).contains(&self.cmt.lpn(slot).0) && act(&mut self.leaf, &mut self.cmt, slot).is_break() {
                return;
            }
        }
    }

    /// Takes dirty entries over into the leaf at hand, as long as they fit, but not those that are
    /// being trimmed. If all of them do, it speaks for every page of host data programmed before
    /// `seq`. Answers how many were looked at: while the tree is young, one leaf can cover most of
    /// what is dirty, and as many as it has room for in all are not taken before the rest is left
    /// for its next turn.
    fn absorb(&mut self, end: u32, seq: u64, trimmed: Range<u32>) -> usize {
        let room = self.tree.capacity;
        let (mut seen, mut left) = (0, 0);
        self.for_each_dirty(end, |leaf, cmt, slot| {
            let (lpn, ppn) = (cmt.lpn(slot).0, cmt.ppn(slot));
            seen += 1;
            if !trimmed.contains(&lpn) && !leaf.set_within(lpn, ppn, end, room) {
                left += 1;
            }
            if left < room { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        debug_assert!(self.leaf.len() <= room);
        if left == 0 {
            self.leaf.speaks_for = seq;
        }
        seen
    }

    /// The leaf at hand is on flash: of the first dirty entries, so many, those that it agrees with
    /// are clean.
    fn mark_agreed_clean(&mut self, end: u32, seen: usize) {
        let mut rest = seen;
        self.for_each_dirty(end, |leaf, cmt, slot| {
            if rest == 0 {
                return ControlFlow::Break(());
            }
            rest -= 1;
            if leaf.find(cmt.lpn(slot).0) == cmt.ppn(slot) {
                cmt.mark_clean(slot);
            }
            ControlFlow::Continue(())
        });
    }

    /// Lets the entry that leaves next out of an overfull cache, if it is clean.
    fn drop_clean(&mut self) {
        if self.cmt.is_overfull() {
            self.cmt.drop_clean();
        }
    }

    /// A page of a logical page was programmed, and its entry cached. What leaves the ring of
    /// recent updates is synchronised before anything else is programmed.
    fn note_update(&mut self, lpn: Lpn, ppn: Ppn) {
        if self.recent.is_empty() {
            return;
        }
        self.recent.push(lpn, ppn);
        debug_assert!(!self.late, "what left the ring before is not on flash");
        self.late = self.late_entry().is_some();
    }

    /// The dirty entry of the update that left the ring last.
    fn late_entry(&self) -> Option<Slot> {
        let (lpn, ppn) = self.recent.left();
        self.cmt.find(lpn).filter(|slot| self.cmt.is_dirty(*slot) && self.cmt.ppn(*slot) == ppn)
    }

    /// Does a piece of what has to come before anything else is programmed.
    fn catch_up<N: Nand>(&mut self, core: &mut Core<N>) -> Result<(), FtlError> {
        if self.late {
            if let Some(slot) = self.late_entry() {
                self.synchronise(core, slot, Purpose::Translation)?;
            }
            self.late = false;
        } else if let Some(slot) = self.cmt.leaving() {
            if self.cmt.is_dirty(slot) {
                self.synchronise(core, slot, Purpose::Translation)?;
            }
            debug_assert!(self.cmt.leaving() == Some(slot), "another entry was used while {} left", self.cmt.lpn(slot));
            self.cmt.remove(slot);
        }
        Ok(())
    }
}

impl Mapping for BtreeMap {
    fn lookup<N: Nand>(&mut self, core: &mut Core<N>, lpn: Lpn) -> Result<Ppn, FtlError> {
        if let Some(slot) = self.cmt.find(lpn) {
            self.cmt.touch(slot);
            return Ok(self.cmt.ppn(slot));
        }
        let ppn = self.fetch(core, lpn)?;
        if ppn.is_some() {
            self.cmt.insert(lpn, ppn);
            self.drop_clean();
        }
        Ok(ppn)
    }

    fn peek<N: Nand>(&mut self, core: &mut Core<N>, lpn: Lpn) -> Result<Ppn, FtlError> {
        if let Some(slot) = self.cmt.find(lpn) {
            return Ok(self.cmt.ppn(slot));
        }
        let on = self.tree.peek(core, lpn.0, &mut self.leaf)?;
        Self::find_in_leaf(core, &self.leaf, on, lpn.0)
    }

    fn record<N: Nand>(&mut self, core: &mut Core<N>, lpn: Lpn, ppn: Ppn) -> Result<(), FtlError> {
        debug_assert!(lpn.0 < self.logical_pages);
        let old = match self.cmt.find(lpn) {
            Some(slot) => self.cmt.update(slot, ppn),
            None => {
                let old = self.fetch(core, lpn)?;
                let slot = self.cmt.insert(lpn, ppn);
                self.cmt.mark_dirty(slot, false);
                old
            }
        };
        if is_page(old) {
            core.page_died(old);
        }
        self.note_update(lpn, ppn);
        self.drop_clean();
        Ok(())
    }

    /// With a bound on dirty entries a trim changes its leaf at once: its entry could not be found
    /// after power loss, and the page that it forgets may be erased and hold other data by then.
    fn forget<N: Nand>(&mut self, core: &mut Core<N>, lpn: Lpn, count: u32) -> Result<u32, FtlError> {
        if !self.recent.is_empty() {
            return self.trim_leaf(core, lpn, count);
        }
        if self.lookup(core, lpn)?.is_some() {
            self.record(core, lpn, Ppn::NONE)?;
        }
        Ok(1)
    }

    fn moved<N: Nand>(&mut self, core: &mut Core<N>, lpn: Lpn, from: Ppn, to: Ppn) -> Result<(), FtlError> {
        debug_assert!(lpn.0 < self.logical_pages && is_page(from) && from != to);
        match self.cmt.find(lpn) {
            // Two pages of a victim lived for the same logical page: only an image that contradicts
            // itself says so.
            Some(slot) if self.cmt.ppn(slot) != from => {
                if is_page(to) {
                    core.page_died(to);
                }
                return Ok(());
            }
            Some(slot) => _ = self.cmt.update(slot, to),
            None => {
                let slot = self.cmt.insert(lpn, to);
                self.cmt.mark_dirty(slot, false);
            }
        }
        self.note_update(lpn, to);
        self.drop_clean();
        Ok(())
    }

    fn superseded(&mut self, lpn: Lpn, ppn: Ppn) -> bool {
        self.cmt.find(lpn).is_some_and(|slot| self.cmt.ppn(slot) != ppn)
    }

    /// In doubt: only a node's parent knows, and that may have to be read.
    fn owns(&self, _: Ppn, spare: &Spare) -> bool {
        spare.kind == PageKind::Translation && spare.tag < self.logical_pages
    }

    fn find_own<N: Nand>(&self, nand: &mut N, wanted: impl Fn(Ppn) -> bool) -> Result<Option<Ppn>, FtlError> {
        let mut found = None;
        self.tree.walk(nand, |_, item| found = found.or(Some(item.value).filter(|ppn| wanted(*ppn))))?;
        Ok(found)
    }

    fn move_page<N: Nand>(&mut self, core: &mut Core<N>, origin: Origin, purpose: Purpose) -> Result<(), FtlError> {
        let level = match Role::decode(origin.spare.aux) {
            Role::Leaf { .. } => 0,
            Role::Inner { level } => level,
        };
        let Some(place) = self.tree.descend(core, origin.spare.tag, level, purpose)? else { return Ok(()) };
        if self.tree.item(place) != (Item { key: origin.spare.tag, value: origin.ppn }) {
            return Ok(());
        }
        let (to, _) = core.move_metadata_page(purpose, origin)?;
        self.tree.moved(place, to);
        core.space.page_died(origin.ppn);
        Ok(())
    }

    /// An entry has to leave the cache, or one that left the ring to be synchronised.
    #[inline]
    fn urgent(&self) -> bool {
        self.cmt.is_overfull() || self.late
    }

    fn due(&self) -> bool {
        false
    }

    fn maintain<N: Nand>(&mut self, core: &mut Core<N>) -> Result<bool, FtlError> {
        if self.urgent() {
            self.catch_up(core)?;
        }
        Ok(self.urgent())
    }

    fn reveal<N: Nand>(&mut self, _: &mut Core<N>) -> Result<bool, FtlError> {
        Ok(false)
    }

    /// Every page of a block being collected can cost a program on every level but the root's, and
    /// a split one more; twice that if another leaf has to be written because its entry leaves the
    /// ring of recent updates. A mount that finds no saved nodes programs those of all levels
    /// between leaves and root.
    fn refusal(&self) -> Option<String> {
        self.cmt.refusal()
    }

    /// Each change programs a leaf, and the nodes above it that it makes dirty, and may split one
    /// of each; those that were dirty before may leave RAM too. Splits add few to one a change
    /// ([`Mapping::reserve_pages`]). A change walks down to the leaf up to three times. A ring of
    /// updates lets one more entry leave.
    fn most_work(&self, updates: u64, _: u64) -> Most {
        let levels = u64::from(self.tree.bounds().1);
        let twice = if self.recent.is_empty() { 1 } else { 2 };
        let programs = (levels - 1) * (2 * updates).min(updates + 4);
        let programs = twice * programs + u64::from(self.tree.most_inner());
        Most::pages(twice * 3 * levels * (updates + 1) + programs, programs)
    }

    fn reserve_pages(&self) -> u32 {
        let (_, levels) = self.tree.bounds();
        let work = (levels - 1) * self.pages_per_block + 2 * levels;
        let twice = if self.recent.is_empty() { 1 } else { 2 };
        twice * work + self.tree.most_inner()
    }

    fn footprint_pages(&self) -> u32 {
        self.tree.bounds().0
    }

    fn reports(&self) -> u32 {
        1
    }

    fn most_deaths(&self) -> u32 {
        if self.recent.is_empty() { 1 } else { trim::STEP }
    }

    fn saved_bytes(&self) -> u64 {
        self.tree.saved_bytes() + self.cmt.saved_bytes()
    }

    /// For the page whose program was cut short and for one that no entry leads to: the leaf, and
    /// two for each time that it is split before. Where not every inner node fits RAM, one gives
    /// way on each level on the way to the leaf, and two at each split.
    fn disowning_pages(&self) -> u32 {
        let inner = if self.tree.holds_all_inner() { 0 } else { 5 * self.tree.bounds().1 };
        2 * (5 + inner)
    }

    /// A page of host data is outranked by a leaf that speaks for it, a leaf by one of its range.
    fn disown<N: Nand>(&mut self, core: &mut Core<N>, kind: PageKind, tag: u32) -> Result<(), FtlError> {
        match kind {
            PageKind::User => self.program_witness(core, tag),
            PageKind::Translation => self.program_again(core, tag),
            PageKind::Validity | PageKind::Checkpoint => Ok(()),
        }
    }

    fn save(&self, sink: &mut dyn Sink) -> Result<(), FtlError> {
        self.tree.save(sink)?;
        self.cmt.save_dirty(sink)
    }

    fn hint(&self, lpn: Lpn) -> Ppn {
        self.cmt.find(lpn).map_or(Ppn::NONE, |slot| self.cmt.ppn(slot))
    }

    fn dump<N: Nand>(&self, nand: &mut N) -> Result<Vec<Ppn>, FtlError> {
        let leaves = self.tree.leaves(nand)?;
        let mut table = Vec::with_capacity(self.logical_pages as usize);
        let page_bytes = self.tree.page_bytes;
        let mut leaf = Node::new(page_bytes as u32);
        for (i, item) in leaves.iter().enumerate() {
            let end = leaves.get(i + 1).map_or(self.logical_pages, |next| next.key);
            leaf.clear(item.key);
            if item.value.is_some() {
                nand.read_meta(item.value, leaf.page(page_bytes))?;
                let damaged = |reason| FtlError::Damaged { structure: "leaf", ppn: item.value, reason };
                let taken = leaf.take(page_bytes, 0, item.key..end);
                taken.and_then(|()| leaf.check(u32::MAX)).map_err(damaged)?;
            }
            table.extend((item.key..end).map(|lpn| leaf.find(lpn)));
        }
        debug_assert!(table.len() == self.logical_pages as usize);
        for (lpn, entry) in table.iter_mut().enumerate() {
            if let Some(slot) = self.cmt.find(Lpn(lpn as u32)) {
                *entry = self.cmt.ppn(slot);
            }
        }
        Ok(table)
    }

    fn inspect(&self, inspector: &mut dyn Inspector) {
        self.cmt.inspect(inspector);
    }

    fn ram(&self, report: &mut RamReport) {
        let (entries, index) = self.cmt.ram_bytes();
        let item = |name, bytes| RamItem { name, bytes };
        report.push(item("tree_nodes", self.tree.ram_bytes()));
        report.push(item("cmt", entries));
        report.push(item("cmt_index", index));
        report.push(item("leaf_buffers", self.leaf.ram_bytes() + self.sibling.ram_bytes()));
        if !self.recent.is_empty() {
            report.push(item("recent_updates", self.recent.ram_bytes()));
        }
    }
}
