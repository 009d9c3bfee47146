//! The copies of every logical page on flash, and what each block holds, for log-block FTLs.
//!
//! 1. Of a logical page the copy with the largest sequence number counts; those before it are known
//!    too (`copies/older.rs`), because the block that a merge or a collector was filling when power
//!    was cut is taken back ([`Copies::take_back`]).
//! 2. A page whose program was cut short has the largest sequence number of its block for ever,
//!    because no block is continued after a mount. So that page is read whole in every block, at
//!    every mount, and does not count if it cannot be. If it is younger than every copy of its
//!    logical page that counts, it may read well at a later mount: the caller has to see to it that
//!    it never counts then ([`Copies::revenants`]).
//! 3. A block that is taken back is erased at the next mount. If that is cut short, it may read as
//!    erased then and as written after another erase of it that is cut short. So every page of such
//!    a block is read whole.
//! 4. A mount leaves out one sequence number, and two more for every page that cannot be read; far
//!    more if not even its spare area can be. A program that failed leaves out one. So a page with
//!    the next number tells that a page was complete.
//! 5. A page that cannot be read and is younger than every copy of its logical page was torn, or is
//!    worn. A copy was torn if what it is a copy of is there. The last write of the host was torn
//!    too, and copies of it: while a mount is not over, nothing is written but copies. All others
//!    are worn. So is one if another page carries the next number, read or not, unless it was part
//!    of a merge that never ended. They count, so that reading them is an error.
//! 6. A page of which not even the spare area can be read may be torn, and read well at a later
//!    mount. Its block is emptied.
//!
//! Only checkpoints know of trims ([`super::checkpoint`]). Later trims may be undone.

mod named;
mod older;
mod taking_back;

use super::can_be_read;
use super::mark::{Mark, root_of_write, written_at};
use super::order;
use super::plausible::{self, Misfit};
use crate::contract::FtlError;
use crate::flash::{Flash, Purpose};
use crate::mapping::bits::Bits;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use nand::{BlockId, Geometry, Lpn, Nand, NandError, PageKind, Ppn, Spare};
pub use older::read_often;
use taking_back::{is_end, is_unfinished};

/// A copy of a logical page.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    /// Where it is, or [`Ppn::NONE`].
    pub ppn: Ppn,
    /// `aux` of its spare area, a [`Mark`].
    pub aux: u32,
    /// 0 if a checkpoint names it: older than every copy that was read.
    seq: u64,
}

impl Copy {
    /// Its place in the order of all programs.
    #[must_use]
    pub const fn seq(&self) -> u64 {
        self.seq
    }
}

const OUTSIDE: Misfit = Misfit {
    structure: "page of host data",
    reason: "its logical page lies outside the disk: the device was formatted with another size",
};

const NO_COPY: Copy = Copy { ppn: Ppn::NONE, aux: 0, seq: 0 };

/// Numbers that a mount leaves out at most for pages whose own cannot be read: few beside
/// [`plausible::burned`]'s, so that mounts that are cut short in a row stay near each other.
const MOST_UNKNOWN: u32 = 1 << 16;

/// The pages of a block belong to more than one logical block.
pub const MANY: u32 = u32::MAX;

/// What a block holds.
#[derive(Clone, Copy, Debug)]
pub struct FoundBlock {
    /// A page of it is not erased.
    pub used: bool,
    /// The logical block whose pages it holds, every one at its offset; [`MANY`] if there is none.
    pub home_of: u32,
    /// Erases of the block, if a page says so.
    pub erase_count: Option<u32>,
    /// The smallest sequence number in it.
    pub first_seq: u64,
    /// Erases of the device when the block was erased, if a page of it says so.
    erased_at: Option<u32>,
    /// A merge or a collector wrote every page of it, none as the last one of its source.
    unfinished: bool,
    /// A page that says otherwise, unless what it is a copy of is still there.
    end: Option<(Ppn, Spare)>,
    /// A checkpoint says what was in it, and it was not erased since.
    kept: bool,
    newest: Option<(Ppn, Spare)>,
}

const EMPTY: FoundBlock = FoundBlock {
    used: false,
    home_of: MANY,
    erase_count: None,
    first_seq: u64::MAX,
    erased_at: None,
    unfinished: false,
    end: None,
    kept: false,
    newest: None,
};

/// Of which write a copy is; `None` if there is none that can be read.
fn root_of<N: Nand>(flash: &mut Flash<N>, copy: &Copy) -> Result<Option<u32>, FtlError> {
    if !copy.ppn.is_some() || copy.seq > 0 {
        return Ok(copy.ppn.is_some().then(|| Mark::decode(copy.aux).root));
    }
    match flash.read_spare(Purpose::Recovery, copy.ppn) {
        Ok(spare) => Ok(spare.map(|spare| Mark::decode(spare.aux).root)),
        Err(NandError::Uncorrectable { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A page that may not count.
#[derive(Clone, Copy, Debug)]
pub struct Doubt {
    /// The page.
    pub ppn: Ppn,
    /// The logical page that it holds.
    pub lpn: Lpn,
    /// It is the last of its block, so its program may have been cut short. Others were complete
    /// when the next one began: a torn page of the same word line can have taken one, but then one
    /// look tells.
    pub may_fade: bool,
    /// Another page says that its program was over. If it cannot be read it is worn, and lost.
    pub was_complete: bool,
}

/// What is on a device.
#[derive(Debug)]
pub struct Copies {
    geometry: Geometry,
    /// The newest copy of every logical page, and the one before it.
    pages: Vec<[Copy; 2]>,
    /// All others of a logical page.
    older: BTreeMap<u32, Vec<Copy>>,
    blocks: Vec<FoundBlock>,
    erases: (u64, u32),
    burned_seq: u64,
    /// What a checkpoint names for each logical page, and the sequence number from which on it
    /// knows nothing: of older pages only those count that it names.
    named: (Vec<Ppn>, u64),
    /// The sequence number after the checkpoint's pages, and whether another page carries it.
    after_checkpoint: (u64, bool),
    /// Pages that do not count whatever they read as.
    excluded: Vec<Ppn>,
    /// Pages of host data whose spare area can be read and that do not count, because they cannot
    /// be read or are excluded.
    torn: Vec<(Ppn, Spare)>,
    /// Blocks with a page of which not even the spare area can be read.
    mute: Vec<BlockId>,
    /// Pages whose spare area cannot be read or is not believed, in the order of their blocks.
    silent: Vec<Ppn>,
    /// Pages that count although they cannot be read, because another carries the next number.
    worn: Vec<(Ppn, Spare)>,
    /// The page that the host wrote last, of those that count and are no copies.
    last_written: Option<(Ppn, Spare)>,
    /// Sequence numbers of pages programmed since.
    later: Vec<u64>,
    /// Largest device erase count found.
    pub erased_at: u32,
    /// Pages that could not be read.
    pub unreadable: u64,
}

impl Copies {
    /// Nothing is known yet. Pages that are `excluded` will not count.
    #[must_use]
    pub fn new(geometry: Geometry, logical_pages: u32, excluded: &[Ppn]) -> Self {
        Self {
            geometry,
            pages: alloc::vec![[NO_COPY; 2]; logical_pages as usize],
            older: BTreeMap::new(),
            blocks: alloc::vec![EMPTY; geometry.blocks() as usize],
            erases: (0, 0),
            burned_seq: 0,
            named: (Vec::new(), 0),
            after_checkpoint: (0, false),
            excluded: excluded.to_vec(),
            torn: Vec::new(),
            mute: Vec::new(),
            silent: Vec::new(),
            worn: Vec::new(),
            last_written: None,
            later: Vec::new(),
            erased_at: 0,
            unreadable: 0,
        }
    }

    /// Reads every spare area of the device.
    ///
    /// # Errors
    /// [`FtlError::Damaged`] if a page of host data lies outside the logical device: the image was
    /// made with another size. Those of the device, except unreadable pages, which are counted.
    pub fn scan<N: Nand>(flash: &mut Flash<N>, logical_pages: u32, excluded: &[Ppn]) -> Result<Self, FtlError> {
        let mut copies = Self::new(*flash.nand().geometry(), logical_pages, excluded);
        let mut buffer = Vec::with_capacity(copies.geometry.pages_per_block() as usize);
        for block in (0..copies.geometry.blocks()).map(BlockId) {
            if !flash.nand().is_bad(block) {
                copies.read_from(flash, block, 0, &mut buffer)?;
            }
        }
        copies.judge(flash)?;
        Ok(copies)
    }

    /// Reads every spare area of a block from page `first` on.
    ///
    /// # Errors
    /// [`FtlError::Damaged`] if a page of host data lies outside the logical device: the image was
    /// made with another size. Those of the device, except unreadable pages, which are counted.
    pub(super) fn read_from<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        block: BlockId,
        first: u32,
        pages: &mut Vec<(Ppn, Spare)>,
    ) -> Result<(), FtlError> {
        pages.clear();
        let mut found = self.blocks[block.index()];
        for offset in first..self.geometry.pages_per_block() {
            let ppn = self.geometry.page_at(block, offset);
            match flash.read_spare(Purpose::Recovery, ppn) {
                Ok(None) => continue,
                Ok(Some(spare)) => pages.push((ppn, spare)),
                Err(NandError::Uncorrectable { .. }) => {
                    self.unreadable += 1;
                    if self.mute.last() != Some(&block) {
                        debug_assert!(!self.mute.contains(&block), "{block} was read before");
                        self.mute.push(block);
                    }
                    self.silent.push(ppn);
                }
                Err(error) => return Err(error.into()),
            }
            found.used = true;
        }
        // Also of pages that are not believed. One that nobody wrote hardly tells of a wear that
        // can be.
        let stamps = pages.iter().filter(|(_, spare)| plausible::is_wear(spare, self.erased_at));
        found.erased_at = stamps.map(|(_, spare)| Some(spare.erased_at)).fold(found.erased_at, Option::max);
        self.believe(flash, pages)?;
        self.after_checkpoint.1 |= pages.iter().any(|(_, spare)| spare.seq == self.after_checkpoint.0);
        let youngest = (0..pages.len()).max_by_key(|&at| pages[at].1.seq);
        if let Some(at) = youngest {
            let (ppn, spare) = pages[at];
            let reads = self.can_be_read(flash, ppn)?;
            if reads || pages.len() > 1 {
                // Alone and torn, it may say anything.
                self.erased_at = self.erased_at.max(spare.erased_at);
                if !found.kept {
                    self.erases = (self.erases.0 + u64::from(spare.erase_count), self.erases.1 + 1);
                    found.erase_count = Some(spare.erase_count);
                }
            }
            if reads {
                self.burned_seq = self.burned_seq.max(spare.seq);
            } else {
                self.torn.push(pages.remove(at));
            }
        }
        self.burned_seq = pages.iter().map(|(_, spare)| spare.seq).fold(self.burned_seq, u64::max);
        if is_unfinished(pages) {
            let mut at = 0;
            while at < pages.len() {
                if self.can_be_read(flash, pages[at].0)? {
                    at += 1;
                } else {
                    self.torn.push(pages.remove(at));
                }
            }
        }
        self.note_block(block, found, pages)
    }

    /// Drops pages whose spare area nobody wrote, and those that are excluded.
    fn believe<N: Nand>(&mut self, flash: &mut Flash<N>, pages: &mut Vec<(Ppn, Spare)>) -> Result<(), FtlError> {
        let logical_pages = self.pages.len() as u32;
        let outside = |spare: &Spare| spare.kind == PageKind::User && spare.tag >= logical_pages;
        let mut dropped = Vec::new();
        plausible::keep(flash, pages, &mut dropped, None, |spare| outside(spare).then_some(OUTSIDE))?;
        self.unreadable += dropped.len() as u64;
        self.silent.extend(dropped);
        if !self.excluded.is_empty() {
            let (counts, out) = pages.drain(..).partition(|(ppn, _)| !self.excluded.contains(ppn));
            *pages = counts;
            self.torn.extend(out);
        }
        Ok(())
    }

    /// Tells torn pages from worn ones, once every block was read. Worn ones count.
    ///
    /// # Errors
    /// Those of the device, except unreadable pages.
    pub(super) fn judge<N: Nand>(&mut self, flash: &mut Flash<N>) -> Result<(), FtlError> {
        let mut torn = core::mem::take(&mut self.torn);
        // No block was erased more often than the device since its last page that can be read.
        let latest = self.erased_at.saturating_add(self.geometry.blocks());
        torn.retain(|(_, spare)| spare.erased_at <= latest && spare.erase_count <= latest);
        self.burned_seq = plausible::burned(self.burned_seq, torn.iter().map(|(_, spare)| spare.seq));
        torn.retain(|(_, spare)| spare.seq <= self.burned_seq);
        // Those that are superseded may not be so any more when a block was taken back.
        (torn, self.torn) = torn.into_iter().partition(|page| self.is_young(page));
        order::oldest_first(&mut torn);
        debug_assert!(torn.iter().all(|(_, spare)| spare.seq <= self.burned_seq && spare.kind == PageKind::User));
        self.later.extend(torn.iter().map(|(_, spare)| spare.seq));
        let last_write = self.last_write();
        for &(ppn, spare) in &torn {
            let written = written_at(Mark::decode(spare.aux).root, spare.seq);
            let in_doubt = last_write.is_none_or(|last| last <= written);
            let block = self.geometry.block_of(ppn);
            let ends = torn.iter().filter(|(at, end)| self.geometry.block_of(*at) == block && is_end(end));
            let mut ended = self.block(block).kept;
            for end in ends.chain(&self.block(block).end) {
                ended |= !self.is_source_there(flash, end)?;
            }
            let was_complete = ended && self.later.contains(&(spare.seq + 1));
            if (!in_doubt || was_complete) && !self.is_source_there(flash, &(ppn, spare))? {
                self.count_worn(ppn, &spare);
                if in_doubt {
                    self.worn.push((ppn, spare));
                }
            } else {
                self.torn.push((ppn, spare));
            }
        }
        Ok(())
    }

    /// When the host wrote last, as far as pages that count say. Of the page that it wrote then
    /// only a copy may be left.
    fn last_write(&self) -> Option<u64> {
        let written = |copy: &Copy| written_at(Mark::decode(copy.aux).root, copy.seq);
        let copies = self.pages.iter().map(|[newest, _]| written(newest)).max();
        self.last_written.map(|(_, spare)| spare.seq).max(copies)
    }

    /// Whether the contents of a copy are in another page that counts.
    fn is_source_there<N: Nand>(&self, flash: &mut Flash<N>, (ppn, spare): &(Ppn, Spare)) -> Result<bool, FtlError> {
        let root = Mark::decode(spare.aux).root;
        Ok(Mark::is_copy(spare) && self.is_elsewhere(flash, Lpn(spare.tag), root, *ppn)?)
    }

    /// A page that cannot be read is the newest copy of its logical page all the same.
    fn count_worn(&mut self, ppn: Ppn, spare: &Spare) {
        self.note_copy(Lpn(spare.tag), Copy { ppn, aux: spare.aux, seq: spare.seq });
        debug_assert!(self.pages[spare.tag as usize][0].ppn == ppn, "{ppn} is not the newest copy");
        let found = &mut self.blocks[self.geometry.block_of(ppn).index()];
        let lbn = self.geometry.block_of(Ppn(spare.tag)).0;
        let at_home = self.geometry.offset_of(Ppn(spare.tag)) == self.geometry.offset_of(ppn);
        if found.home_of != lbn || !at_home {
            found.home_of = MANY;
        }
        (found.unfinished, found.end) = (false, Some((ppn, *spare)));
    }

    /// Whether a page would be the newest copy of its logical page, if it counted.
    fn is_young(&self, (_, spare): &(Ppn, Spare)) -> bool {
        spare.kind == PageKind::User
            && spare.seq >= self.named.1
            && self.pages.get(spare.tag as usize).is_some_and(|copies| copies[0].seq < spare.seq)
    }

    /// Blocks with a torn page that would count if a later mount could read it, some twice.
    pub fn revenants(&self) -> impl Iterator<Item = BlockId> + '_ {
        let torn = self.torn.iter().filter(|page| self.is_young(page)).map(|(ppn, _)| self.geometry.block_of(*ppn));
        debug_assert!(self.torn.iter().all(|(_, spare)| spare.seq < self.next_seq()));
        torn.chain(self.mute.iter().copied())
    }

    /// Pages that may not count however well they read, the newest first: the one programmed last,
    /// the one that the host wrote last, a copy of it although it is gone, and every copy of what
    /// is still there: a mount that was cut short may have come after it.
    ///
    /// So are pages that count because another carries the next number. No page may say so any more
    /// once a mount has erased blocks, so they are copied as well, or a copy says that they are
    /// lost.
    ///
    /// # Errors
    /// Those of the device, except unreadable pages.
    pub fn in_doubt<N: Nand>(&self, flash: &mut Flash<N>) -> Result<Vec<Doubt>, FtlError> {
        let last = [self.last_programmed(), self.last_written].into_iter().flatten();
        let host = last.filter(|(_, spare)| spare.kind == PageKind::User);
        let mut pages: Vec<(u64, Ppn, Lpn)> = host.map(|(ppn, spare)| (spare.seq, ppn, Lpn(spare.tag))).collect();
        let written = |copy: &Copy| written_at(Mark::decode(copy.aux).root, copy.seq);
        let last_write = self.pages.iter().map(|[newest, _]| written(newest)).max();
        for (lpn, [newest, _]) in (0..).map(Lpn).zip(&self.pages) {
            let root = Mark::decode(newest.aux).root;
            let is_copy = newest.seq > 0 && root != root_of_write(newest.seq);
            let in_doubt =
                is_copy && (Some(written(newest)) == last_write || self.is_elsewhere(flash, lpn, root, newest.ppn)?);
            if in_doubt {
                pages.push((newest.seq, newest.ppn, lpn));
            }
        }
        // Of those that are excluded some count as worn.
        pages.retain(|(_, ppn, _)| !self.excluded.contains(ppn));
        pages.sort_unstable_by_key(|(seq, ..)| u64::MAX - seq);
        pages.dedup();
        debug_assert!(pages.is_sorted_by(|one, next| one.0 >= next.0), "the newest comes first");
        let newest_of_block =
            |ppn| self.block(self.geometry.block_of(ppn)).newest.is_some_and(|(newest, _)| newest == ppn);
        let written = self.last_written.filter(|(_, spare)| is_end(spare) && self.later.contains(&(spare.seq + 1)));
        let was_complete = |page| written.is_some_and(|(ppn, _)| ppn == page);
        let doubt = |(_, ppn, lpn): (u64, Ppn, Lpn)| Doubt {
            ppn,
            lpn,
            may_fade: newest_of_block(ppn),
            was_complete: was_complete(ppn),
        };
        let worn = self.worn.iter().filter(|(ppn, spare)| self.pages[spare.tag as usize][0].ppn == *ppn);
        let worn = worn.map(|&(ppn, spare)| Doubt { ppn, lpn: Lpn(spare.tag), may_fade: true, was_complete: true });
        Ok(pages.into_iter().map(doubt).chain(worn).collect())
    }

    fn can_be_read<N: Nand>(&mut self, flash: &mut Flash<N>, ppn: Ppn) -> Result<bool, FtlError> {
        let reads = can_be_read(flash, ppn)?;
        self.unreadable += u64::from(!reads);
        Ok(reads)
    }

    fn note_block(&mut self, block: BlockId, mut found: FoundBlock, pages: &[(Ppn, Spare)]) -> Result<(), FtlError> {
        let lbn = |tag| self.geometry.block_of(Ppn(tag)).0;
        let host = || pages.iter().filter(|(_, spare)| spare.kind == PageKind::User);
        if let Some((_, first)) = host().next() {
            let is_home = |(ppn, spare): &(Ppn, Spare)| {
                lbn(spare.tag) == lbn(first.tag)
                    && self.geometry.offset_of(Ppn(spare.tag)) == self.geometry.offset_of(*ppn)
            };
            if !found.kept {
                found.unfinished = is_unfinished(pages);
                found.end =
                    host().filter(|(_, spare)| is_end(spare)).max_by_key(|(_, spare)| !Mark::is_copy(spare)).copied();
                found.home_of = if host().all(is_home) { lbn(first.tag) } else { MANY };
            }
        }
        let written = host().filter(|(_, spare)| !Mark::is_copy(spare)).chain(&self.last_written);
        self.last_written = written.max_by_key(|(_, spare)| spare.seq).copied();
        self.later.extend(pages.iter().map(|(_, spare)| spare.seq));
        let last = self.last_written.map_or(0, |(_, spare)| spare.seq);
        self.later.retain(|seq| *seq > last);
        found.newest = pages.iter().max_by_key(|(_, spare)| spare.seq).copied();
        let oldest = pages.iter().map(|(_, spare)| spare.seq).min();
        found.first_seq = found.first_seq.min(oldest.unwrap_or(u64::MAX));
        self.blocks[block.index()] = found;
        debug_assert!(
            pages.iter().all(|(ppn, spare)| self.geometry.block_of(*ppn) == block && spare.seq >= found.first_seq)
        );
        for (ppn, spare) in pages.iter().filter(|(_, spare)| spare.kind == PageKind::User) {
            if spare.tag as usize >= self.pages.len() {
                let Misfit { structure, reason } = OUTSIDE;
                return Err(FtlError::Damaged { structure, ppn: *ppn, reason });
            }
            if spare.seq < self.named.1 && self.named.0.get(spare.tag as usize) != Some(ppn) {
                continue;
            }
            self.note_copy(Lpn(spare.tag), Copy { ppn: *ppn, aux: spare.aux, seq: spare.seq });
        }
        Ok(())
    }

    /// Begins with a checkpoint that names these pages and was made at `seq`; its own pages come
    /// before `end`.
    pub(super) fn begin_after(&mut self, named: Vec<Ppn>, seq: u64, end: u64, erases: u32) {
        debug_assert!(seq <= end && self.blocks.iter().all(|found| !found.used), "pages were read before");
        (self.named, self.burned_seq, self.erased_at) = ((named, seq), end, erases);
        self.after_checkpoint = (end, false);
    }

    /// Whether the checkpoint was complete once: another page was programmed after it.
    #[must_use]
    pub const fn was_checkpoint_complete(&self) -> bool {
        self.after_checkpoint.1
    }

    /// A block was not erased since a checkpoint; one of its pages has this spare area.
    pub(super) fn keep_block(&mut self, block: BlockId, spare: &Spare) {
        debug_assert!(!self.blocks[block.index()].used, "{block} was read before the checkpoint was believed");
        // The spare area may be one that nobody wrote, beside data that nobody has read.
        let can_be = spare.erase_count <= spare.erased_at && spare.erased_at <= self.erased_at;
        let erase_count = Some(spare.erase_count).filter(|_| can_be);
        if let Some(count) = erase_count {
            self.erases = (self.erases.0 + u64::from(count), self.erases.1 + 1);
        }
        self.blocks[block.index()] = FoundBlock { used: true, kept: true, erase_count, first_seq: spare.seq, ..EMPTY };
    }

    /// Whether no page is a copy of two logical pages, as a checkpoint that lies can make one.
    pub(super) fn is_consistent(&self) -> bool {
        let mut seen = Bits::new(self.geometry.pages());
        self.pages.iter().flatten().filter(|copy| copy.ppn.is_some()).all(|copy| {
            let twice = seen.has(copy.ppn.0);
            seen.set(copy.ppn.0);
            !twice
        })
    }

    /// Finds out of which kept blocks every live page is at its place in one logical block.
    pub(super) fn find_homes(&mut self) {
        const UNKNOWN: u32 = MANY - 1;
        for found in self.blocks.iter_mut().filter(|found| found.kept) {
            found.home_of = UNKNOWN;
        }
        for (lpn, copies) in (0..).map(Ppn).zip(&self.pages) {
            let (ppn, lbn) = (copies[0].ppn, self.geometry.block_of(lpn).0);
            if !ppn.is_some() {
                continue;
            }
            let found = &mut self.blocks[self.geometry.block_of(ppn).index()];
            if found.kept {
                let in_place = self.geometry.offset_of(lpn) == self.geometry.offset_of(ppn);
                let fits = in_place && (found.home_of == lbn || found.home_of == UNKNOWN);
                found.home_of = if fits { lbn } else { MANY };
            }
        }
    }

    /// The page programmed last of those that count, with its spare area.
    #[must_use]
    pub fn last_programmed(&self) -> Option<(Ppn, Spare)> {
        self.blocks.iter().filter_map(|found| found.newest).max_by_key(|(_, spare)| spare.seq)
    }

    /// A sequence number larger than any that a page of the device may carry.
    ///
    /// Of a page whose spare area cannot be read nobody knows the number, and those just before it
    /// may have been erased since, after a trim. As many as the device has pages are left out then.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        let unknown = if self.silent.is_empty() { 0 } else { self.geometry.pages().min(MOST_UNKNOWN) };
        self.burned_seq + 2 + 2 * self.unreadable + u64::from(unknown)
    }

    /// What a block holds.
    #[must_use]
    pub fn block(&self, block: BlockId) -> &FoundBlock {
        &self.blocks[block.index()]
    }

    /// Erases of a block on average.
    #[must_use]
    pub fn mean_erases(&self) -> u32 {
        (self.erases.0 / u64::from(self.erases.1.max(1))) as u32
    }

    /// The newest copy of every logical page that has one.
    pub fn newest(&self) -> impl Iterator<Item = (Lpn, Copy)> + '_ {
        (0..)
            .map(Lpn)
            .zip(&self.pages)
            .filter(|(_, copies)| copies[0].ppn.is_some())
            .map(|(lpn, [copy, _])| (lpn, *copy))
    }
}

#[cfg(test)]
mod tests;
