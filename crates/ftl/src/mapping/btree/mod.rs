//! The mapping table as a B-tree over extents in flash, with a cache of entries in RAM (uFTL; GeckoFTL, section 5.3).
//!
//! 1. A leaf holds extents of consecutive logical pages on consecutive pages: data written in sequence needs few of them, data
//!    written at random one a page, eight bytes each (`node`).
//! 2. Only the root and a fixed number of inner nodes are in RAM (`tree`).
//! 3. A write that misses the cache of entries reads the leaf first and reports the old copy at once.
//! 4. A dirty entry that has to leave is written to its leaf together with every other dirty entry of that leaf for which
//!    there is room; a leaf without room for the entry that leaves is split.
//! 5. A spare area says a node's first key and its level. Whether a page of the tree is current, its parent knows.
//!
//! What changed in RAM, dirty entries and dirty inner nodes, is lost with power.

mod node;
mod tree;

use super::cached::cmt::{Cmt, Slot};
use super::{Mapping, is_page};
use crate::contract::{FtlError, RamItem, RamReport};
use crate::flash::Purpose;
use crate::space::core::{Context, Origin};
use crate::validity::Validity;
use alloc::vec::Vec;
use nand::{Lpn, Nand, PageKind, Ppn, Spare};
use node::{Item, Node};
use tree::{Place, Tree};

/// Cached entries for each list of dirty ones, about.
const ENTRIES_PER_LIST: u64 = 8;

/// How a tree behaves.
#[derive(Clone, Copy, Debug)]
pub struct BtreeOptions {
    /// C: entries that the cache holds, at least 2.
    pub cache_entries: u32,
    /// Inner nodes held in RAM, at least 16.
    pub node_frames: u32,
}

/// A mapping table as a B-tree in flash.
#[derive(Debug)]
pub struct BtreeMap {
    tree: Tree,
    cmt: Cmt,
    /// Logical pages that share a list of dirty entries.
    group: u32,
    logical_pages: u32,
    pages_per_block: u32,
    leaf: Node,
    sibling: Node,
}

impl BtreeMap {
    /// The table of a device on which nothing was written.
    #[must_use]
    pub fn new(logical_pages: u32, page_bytes: u32, pages_per_block: u32, options: BtreeOptions) -> Self {
        let capacity = options.cache_entries.max(2);
        let spread = u64::from(logical_pages) * ENTRIES_PER_LIST / u64::from(capacity);
        let group = (spread as u32).min(logical_pages).max(Node::capacity(page_bytes) as u32);
        Self {
            tree: Tree::new(logical_pages, page_bytes, options.node_frames),
            cmt: Cmt::new(capacity, logical_pages.div_ceil(group), group),
            group,
            logical_pages,
            pages_per_block,
            leaf: Node::new(page_bytes),
            sibling: Node::new(page_bytes),
        }
    }

    fn leaf_place<N: Nand, V: Validity>(&mut self, ctx: &mut Context<'_, N, V>, lpn: u32) -> Result<Place, FtlError> {
        let none = FtlError::Damaged { structure: "mapping tree", ppn: Ppn::NONE, reason: "the root is a leaf" };
        self.tree.descend(ctx, lpn, 0, Purpose::Translation)?.ok_or(none)
    }

    /// What flash says of a logical page.
    fn fetch<N: Nand, V: Validity>(&mut self, ctx: &mut Context<'_, N, V>, lpn: Lpn) -> Result<Ppn, FtlError> {
        let place = self.leaf_place(ctx, lpn.0)?;
        if !self.tree.item(place).value.is_some() {
            return Ok(Ppn::NONE);
        }
        self.tree.read(ctx, place, Purpose::Translation, &mut self.leaf)?;
        Ok(self.leaf.find(lpn.0))
    }

    /// Brings the leaf of a dirty entry up to date, with every dirty entry of it for which there is room.
    fn synchronise<N: Nand, V: Validity>(&mut self, ctx: &mut Context<'_, N, V>, slot: Slot) -> Result<(), FtlError> {
        let purpose = Purpose::Translation;
        let (lpn, ppn) = (self.cmt.lpn(slot).0, self.cmt.ppn(slot));
        let mut place = self.leaf_place(ctx, lpn)?;
        self.tree.read(ctx, place, purpose, &mut self.leaf)?;
        let (mut before, mut after) = (None, None);
        let mut end = place.end;
        if self.leaf.len_with(lpn, ppn, end) > self.tree.capacity {
            self.tree.make_room(ctx, lpn, purpose)?;
            place = self.leaf_place(ctx, lpn)?;
            let key = self.leaf.split(&mut self.sibling);
            if lpn < key {
                end = key;
                after = Some(Item { key, value: self.tree.program(ctx, &self.sibling, purpose)? });
            } else {
                before = Some(self.tree.program(ctx, &self.leaf, purpose)?);
                core::mem::swap(&mut self.leaf, &mut self.sibling);
            }
        }
        self.leaf.set(lpn, ppn, end);
        self.cmt.mark_clean(slot);
        self.absorb(end);
        let new = self.tree.program(ctx, &self.leaf, purpose)?;
        let old = match before {
            Some(lower) => {
                self.tree.insert_after(place, Item { key: self.leaf.items[0].key, value: new });
                self.tree.replace(place, lower)
            }
            None => self.tree.replace(place, new),
        };
        if let Some(item) = after {
            self.tree.insert_after(place, item);
        }
        if old.is_some() { ctx.translation_page_died(old) } else { Ok(()) }
    }

    /// Takes dirty entries over into the leaf at hand, as long as they fit.
    fn absorb(&mut self, end: u32) {
        let first = self.leaf.items[0].key;
        for group in first / self.group..=(end - 1) / self.group {
            let mut next = self.cmt.first_dirty(group);
            while let Some(slot) = next {
                next = self.cmt.next_dirty(slot);
                let (lpn, ppn) = (self.cmt.lpn(slot).0, self.cmt.ppn(slot));
                let here = first <= lpn && lpn < end;
                if here && self.leaf.len_with(lpn, ppn, end) <= self.tree.capacity {
                    self.leaf.set(lpn, ppn, end);
                    self.cmt.mark_clean(slot);
                }
            }
        }
    }

    /// Lets entries leave until the cache is not overfull; dirty ones are written to their leaf first.
    fn shrink<N: Nand, V: Validity>(&mut self, ctx: &mut Context<'_, N, V>) -> Result<(), FtlError> {
        while self.cmt.is_overfull()
            && let Some(slot) = self.cmt.oldest()
        {
            if self.cmt.is_dirty(slot) {
                self.synchronise(ctx, slot)?;
            }
            self.cmt.remove(slot);
        }
        Ok(())
    }
}

impl Mapping for BtreeMap {
    const LAZY: bool = false;

    fn lookup<N: Nand, V: Validity>(&mut self, ctx: &mut Context<'_, N, V>, lpn: Lpn) -> Result<Ppn, FtlError> {
        if let Some(slot) = self.cmt.find(lpn) {
            self.cmt.touch(slot);
            return Ok(self.cmt.ppn(slot));
        }
        let ppn = self.fetch(ctx, lpn)?;
        if ppn.is_some() {
            self.cmt.insert(lpn, ppn);
            self.shrink(ctx)?;
        }
        Ok(ppn)
    }

    fn peek<N: Nand, V: Validity>(&mut self, ctx: &mut Context<'_, N, V>, lpn: Lpn) -> Result<Ppn, FtlError> {
        if let Some(slot) = self.cmt.find(lpn) {
            return Ok(self.cmt.ppn(slot));
        }
        self.tree.peek(ctx, lpn.0, &mut self.leaf)?;
        Ok(self.leaf.find(lpn.0))
    }

    fn record<N: Nand, V: Validity>(
        &mut self,
        ctx: &mut Context<'_, N, V>,
        lpn: Lpn,
        ppn: Ppn,
    ) -> Result<(), FtlError> {
        let (slot, old) = match self.cmt.find(lpn) {
            Some(slot) => {
                let old = self.cmt.ppn(slot);
                self.cmt.set_ppn(slot, ppn);
                self.cmt.touch(slot);
                (slot, old)
            }
            None => {
                let old = self.fetch(ctx, lpn)?;
                (self.cmt.insert(lpn, ppn), old)
            }
        };
        self.cmt.mark_dirty(slot, false);
        if is_page(old) {
            ctx.page_died(old)?;
        }
        self.shrink(ctx)
    }

    fn moved<N: Nand, V: Validity>(
        &mut self,
        ctx: &mut Context<'_, N, V>,
        lpn: Lpn,
        from: Ppn,
        to: Ppn,
    ) -> Result<(), FtlError> {
        let slot = match self.cmt.find(lpn) {
            Some(slot) => {
                debug_assert!(self.cmt.ppn(slot) == from, "{lpn} was not at {from} when it moved");
                self.cmt.set_ppn(slot, to);
                self.cmt.touch(slot);
                slot
            }
            None => self.cmt.insert(lpn, to),
        };
        self.cmt.mark_dirty(slot, false);
        self.shrink(ctx)
    }

    fn superseded(&mut self, lpn: Lpn, ppn: Ppn) -> bool {
        self.cmt.find(lpn).is_some_and(|slot| self.cmt.ppn(slot) != ppn)
    }

    /// In doubt: only a node's parent knows, and that may have to be read.
    fn owns(&self, _: Ppn, spare: &Spare) -> bool {
        spare.kind == PageKind::Translation && spare.tag < self.logical_pages
    }

    fn move_page<N: Nand, V: Validity>(
        &mut self,
        ctx: &mut Context<'_, N, V>,
        origin: Origin,
        purpose: Purpose,
    ) -> Result<(), FtlError> {
        let Some(place) = self.tree.descend(ctx, origin.spare.tag, origin.spare.aux, purpose)? else { return Ok(()) };
        if self.tree.item(place) != (Item { key: origin.spare.tag, value: origin.ppn }) {
            return Ok(());
        }
        let (to, _) = ctx.core.move_metadata_page(purpose, origin)?;
        self.tree.replace(place, to);
        ctx.core.space.page_died(origin.ppn);
        Ok(())
    }

    fn due(&self) -> bool {
        false
    }

    fn maintain<N: Nand, V: Validity>(&mut self, _: &mut Context<'_, N, V>) -> Result<(), FtlError> {
        Ok(())
    }

    fn reveal<N: Nand, V: Validity>(&mut self, _: &mut Context<'_, N, V>) -> Result<bool, FtlError> {
        Ok(false)
    }

    /// Every page of a block being collected can cost a program on every level but the root's, and a split one more.
    fn reserve_pages(&self) -> u32 {
        let (_, levels) = self.tree.bounds();
        (levels - 1) * self.pages_per_block + 2 * levels
    }

    fn footprint_pages(&self) -> u32 {
        self.tree.bounds().0
    }

    fn reports(&self) -> u32 {
        1
    }

    fn hint(&self, lpn: Lpn) -> Ppn {
        self.cmt.find(lpn).map_or(Ppn::NONE, |slot| self.cmt.ppn(slot))
    }

    fn dump<N: Nand>(&self, nand: &mut N) -> Result<Vec<Ppn>, FtlError> {
        let leaves = self.tree.leaves(nand)?;
        let mut table = Vec::with_capacity(self.logical_pages as usize);
        let mut page = alloc::vec![0; self.tree.buffer.len()];
        let mut leaf = Node::new(page.len() as u32);
        for (i, item) in leaves.iter().enumerate() {
            let end = leaves.get(i + 1).map_or(self.logical_pages, |next| next.key);
            leaf.clear(item.key);
            if item.value.is_some() {
                nand.read_meta(item.value, &mut page)?;
                let damaged = |reason| FtlError::Damaged { structure: "leaf", ppn: item.value, reason };
                leaf.parse(&page, 0, item.key, u32::MAX).map_err(damaged)?;
            }
            table.extend((item.key..end).map(|lpn| leaf.find(lpn)));
        }
        for (lpn, entry) in table.iter_mut().enumerate() {
            if let Some(slot) = self.cmt.find(Lpn(lpn as u32)) {
                *entry = self.cmt.ppn(slot);
            }
        }
        Ok(table)
    }

    fn ram(&self, report: &mut RamReport) {
        let (entries, index) = self.cmt.ram_bytes();
        let item = |name, bytes| RamItem { name, bytes };
        report.push(item("tree_nodes", self.tree.ram_bytes()));
        report.push(item("cmt", entries));
        report.push(item("cmt_index", index));
        report.push(item("leaf_buffers", self.leaf.ram_bytes() + self.sibling.ram_bytes()));
    }
}
