//! What every block is, how far it is programmed and how many of its pages live.
//!
//! 1. A block is free, a data block (mapped by block), a log block, a block of a page-mapped area,
//!    or bad.
//! 2. Programs go in ascending order: `next` is one more than the highest page programmed, and
//!    pages below it that were skipped are gone until the next erase. A device with sequential
//!    programming is enough. Only for an FTL that asks for any order, one bit a page says which
//!    were skipped and can still be programmed.
//! 3. Every logical block may hold a data block at any time; [`RESERVE`] blocks stay free for
//!    merges; what is left of the usable blocks may be log blocks. A block that goes bad takes away
//!    a log block.
//! 4. Free blocks are taken in the order of waiting, but for those that are far more worn than one
//!    of the next few: in the order of waiting alone whatever is short-lived can meet the same
//!    blocks again and again.

mod record;

use crate::contract::{RamItem, RamReport};
use crate::inspect::{BlockUse, BlockView, Inspector};
use crate::mapping::bits::Bits;
use crate::victim::{self, Banks, Choice, Links, Victim};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use nand::{BlockId, Geometry, Nand, ProgramOrder};
use record::{Block, Contents, History, contents};

/// Blocks kept free: one to merge into, and two that may turn out bad while one request is served.
pub const RESERVE: u32 = 3;

/// Free blocks among which one with far fewer erases is looked for: about as many as there are when
/// a disk is full.
const CHOICE: usize = 8;

/// Erases by which a block has to be more worn than another to be passed over. The order of waiting
/// spreads what is written over the dies: blocks that are about as worn keep it.
const WORN: u32 = 32;

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    /// Erased and ready.
    Free,
    /// The data block of a logical block: pages at their offsets.
    Data,
    /// A log block: pages in the order of their arrival.
    Log,
    /// A block of an area in which pages of many logical blocks are mapped by page.
    Paged,
    /// Retired.
    Bad,
    /// Kept for checkpoints of the maps.
    Checkpoint,
}

/// What a mount makes of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Restored {
    pub(super) role: Role,
    pub(super) owner: u32,
    /// Every page that can be read holds the page of the same offset of the owner.
    pub(super) aligned: bool,
    pub(super) valid: u32,
    pub(super) erase_count: u32,
}

/// Every block of a device.
pub struct Blocks {
    geometry: Geometry,
    records: Vec<Block>,
    /// Pages programmed since their block was erased, if they are programmed in any order.
    programmed: Option<Bits>,
    free: VecDeque<BlockId>,
    /// Blocks that may be collected, if a victim policy picks among them.
    candidates: Option<(Links, Box<dyn Victim>)>,
    logical_blocks: u32,
    usable: u32,
    logs: u32,
    paged: u32,
    checkpoints: u32,
    /// Blocks that neither data blocks nor log blocks may have.
    reserved: u32,
    erases: u32,
}

/// No owner: a block shared by all logical blocks.
pub const SHARED: u32 = u32::MAX;

impl Blocks {
    /// A device of which every block is erased or marked bad.
    pub fn new<N: Nand>(
        nand: &N,
        order: ProgramOrder,
        logical_blocks: u32,
        for_checkpoints: u32,
        victim: Option<&victim::Entry>,
    ) -> Self {
        let geometry = *nand.geometry();
        let record = |b| Block {
            erase_count: 0,
            erased_at: 0,
            owner: SHARED,
            slot: 0,
            next: 0,
            valid: 0,
            role: if nand.is_bad(BlockId(b)) { Role::Bad } else { Role::Free },
            contents: Contents::Aligned,
            history: History::Seen,
            candidate: false,
        };
        let records: Vec<Block> = (0..geometry.blocks()).map(record).collect();
        let mut free = VecDeque::with_capacity(records.len());
        free.extend((0..geometry.blocks()).map(BlockId).filter(|b| records[b.index()].role == Role::Free));
        Self {
            geometry,
            usable: free.len() as u32,
            candidates: victim.map(|victim| {
                let mut links = Links::new(geometry.blocks());
                let policy = (victim.make)(&mut links, geometry.pages_per_block(), Banks::ONE);
                (links, policy)
            }),
            records,
            programmed: (order == ProgramOrder::Free).then(|| Bits::new(geometry.pages())),
            free,
            logical_blocks,
            logs: 0,
            paged: 0,
            checkpoints: 0,
            reserved: RESERVE + for_checkpoints,
            erases: 0,
        }
    }

    /// Takes over what a mount found. Blocks with pages count as full, because the next page of one
    /// may be torn; free ones are erased before they are used.
    pub(super) fn restore(&mut self, erases: u32, found: impl Fn(BlockId) -> Restored) {
        self.erases = erases;
        self.free.clear();
        for block in (0..self.geometry.blocks()).map(BlockId) {
            if self.role(block) == Role::Bad {
                continue;
            }
            let Restored { role, owner, aligned, valid, erase_count } = found(block);
            debug_assert!(
                valid <= self.geometry.pages_per_block() && (role != Role::Free || valid == 0),
                "{block}: {role:?}, {valid}"
            );
            let free = role == Role::Free;
            let next = if free { 0 } else { self.geometry.pages_per_block() as u16 };
            let record = &mut self.records[block.index()];
            let (valid, contents) = (valid as u16, contents(aligned));
            let history = if free { History::Untrusted } else { History::Restored };
            *record = Block { role, owner, contents, history, erase_count, next, valid, ..*record };
            self.count(role, 1);
            if free {
                self.free.push_back(block);
            }
        }
    }

    /// Whether a block has to be erased before it is used although it is free.
    #[inline]
    pub(super) fn is_untrusted(&self, block: BlockId) -> bool {
        self.records[block.index()].history == History::Untrusted
    }

    /// Whether a block was in use before the last mount.
    pub fn is_restored(&self, block: BlockId) -> bool {
        self.records[block.index()].history == History::Restored
    }

    /// A block that was taken untrusted was erased.
    pub(super) fn cleaned(&mut self, block: BlockId) {
        self.erases = self.erases.wrapping_add(1);
        let record = &mut self.records[block.index()];
        debug_assert!(record.valid == 0, "{block} was erased while pages in it live");
        record.erase_count = record.erase_count.saturating_add(1);
        record.erased_at = self.erases;
        record.history = History::Seen;
    }

    /// The device's shape.
    #[inline]
    #[must_use]
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Retired blocks.
    #[must_use]
    pub const fn bad_blocks(&self) -> u32 {
        self.geometry.blocks() - self.usable
    }

    /// Blocks that failed, and are retired once they are empty.
    #[must_use]
    pub(super) fn failed_blocks(&self) -> u32 {
        self.records.iter().filter(|record| record.contents == Contents::Failed).count() as u32
    }

    /// Erased blocks.
    #[inline]
    #[must_use]
    pub fn free_blocks(&self) -> u32 {
        self.free.len() as u32
    }

    /// Log blocks in use.
    #[inline]
    #[must_use]
    pub const fn logs(&self) -> u32 {
        self.logs
    }

    /// Blocks in a page-mapped area.
    #[inline]
    #[must_use]
    pub const fn paged(&self) -> u32 {
        self.paged
    }

    /// Blocks kept for checkpoints.
    #[must_use]
    pub const fn checkpoints(&self) -> u32 {
        self.checkpoints
    }

    /// Erases of the device.
    #[must_use]
    pub(super) const fn erases(&self) -> u32 {
        self.erases
    }

    /// Over-provisioned blocks: those that every logical block's data block and the reserve leave
    /// over.
    #[inline]
    #[must_use]
    pub const fn log_limit(&self) -> u32 {
        self.usable.saturating_sub(self.logical_blocks + self.reserved)
    }

    /// Whether another log block may be opened.
    #[inline]
    #[must_use]
    pub const fn may_open_log(&self) -> bool {
        self.logs < self.log_limit()
    }

    /// What a block is.
    #[inline]
    #[must_use]
    pub fn role(&self, block: BlockId) -> Role {
        self.records[block.index()].role
    }

    /// The logical block that a block belongs to, or [`SHARED`].
    #[inline]
    #[must_use]
    pub fn owner(&self, block: BlockId) -> u32 {
        self.records[block.index()].owner
    }

    /// The slot of a log block in the page map, or the place that a block of a page-mapped area was
    /// given.
    #[inline]
    #[must_use]
    pub fn slot(&self, block: BlockId) -> u32 {
        self.records[block.index()].slot
    }

    /// One more than the highest page programmed; all pages of a block that failed count as
    /// programmed.
    #[inline]
    #[must_use]
    pub fn next(&self, block: BlockId) -> u32 {
        u32::from(self.records[block.index()].next)
    }

    /// Whether a block can take another page.
    #[inline]
    #[must_use]
    pub fn has_room(&self, block: BlockId) -> bool {
        self.next(block) < self.geometry.pages_per_block()
    }

    /// Whether a page can be programmed: nothing was programmed there or behind since the block was
    /// erased, or, for an FTL that programs in any order, just not there. A block that failed, or
    /// was in use before the last mount, takes nothing more.
    #[inline]
    #[must_use]
    pub fn takes(&self, block: BlockId, offset: u32) -> bool {
        offset >= self.next(block) || self.was_skipped(block, offset)
    }

    fn was_skipped(&self, block: BlockId, offset: u32) -> bool {
        let Some(programmed) = &self.programmed else { return false };
        let record = &self.records[block.index()];
        record.contents != Contents::Failed
            && record.history != History::Restored
            && !programmed.has(self.geometry.page_at(block, offset).0)
    }

    /// The lowest page that can be programmed: all that are programmed later lie there or behind.
    pub(super) fn first_open(&self, block: BlockId) -> u32 {
        let next = self.next(block);
        if self.programmed.is_none() {
            return next;
        }
        (0..next).find(|&offset| self.was_skipped(block, offset)).unwrap_or(next)
    }

    /// Live pages in a block.
    #[inline]
    #[must_use]
    pub fn valid(&self, block: BlockId) -> u32 {
        u32::from(self.records[block.index()].valid)
    }

    /// Whether every page programmed holds the page of the same offset of the block's owner.
    #[inline]
    #[must_use]
    pub fn is_aligned(&self, block: BlockId) -> bool {
        self.records[block.index()].contents == Contents::Aligned
    }

    /// Whether a program of the block failed since it was erased.
    #[inline]
    #[must_use]
    pub fn has_failed(&self, block: BlockId) -> bool {
        self.records[block.index()].contents == Contents::Failed
    }

    /// Erases of a block, and of the device when it was last erased: what spare areas have to say.
    #[inline]
    pub(super) fn wear(&self, block: BlockId) -> (u32, u32) {
        let record = &self.records[block.index()];
        (record.erase_count, record.erased_at)
    }

    /// An erased block for a new role: the one that waited longest, or one that waited almost as
    /// long and has far fewer erases. None is taken before one that was not seen being erased.
    pub(super) fn take(&mut self, role: Role, owner: u32) -> Option<BlockId> {
        let block = self.free.remove(self.next_free())?;
        let record = &mut self.records[block.index()];
        debug_assert!(record.contents != Contents::Failed && !record.candidate, "{block} is no free block");
        debug_assert!(record.role == Role::Free && record.next == 0 && record.valid == 0);
        *record = Block { role, owner, slot: 0, contents: contents(owner != SHARED), ..*record };
        self.count(role, 1);
        Some(block)
    }

    /// Which of the free blocks comes next.
    fn next_free(&self) -> usize {
        let records = self.free.iter().take(CHOICE).map(|block| &self.records[block.index()]);
        let mut counts = records.take_while(|record| record.history == History::Seen).map(|record| record.erase_count);
        let Some(first) = counts.next() else { return 0 };
        let least = (1..).zip(counts).min_by_key(|(_, count)| *count);
        least.filter(|(_, count)| first.saturating_sub(*count) >= WORN).map_or(0, |(at, _)| at)
    }

    /// A free block may turn out to be bad: it is not to be taken.
    pub(in crate::engine) fn withdraw(&mut self, block: BlockId) {
        debug_assert!(self.role(block) == Role::Free, "{block} is not free");
        self.free.retain(|free| *free != block);
    }

    /// A free block that was withdrawn is to be taken after all others.
    pub(super) fn readmit(&mut self, block: BlockId) {
        debug_assert!(self.role(block) == Role::Free && !self.free.contains(&block), "{block} is free twice");
        self.free.push_back(block);
    }

    /// Orders free blocks: those that rank first are taken first.
    pub(super) fn rank_free(&mut self, rank: impl Fn(BlockId) -> u64) {
        self.free.make_contiguous().sort_by_key(|block| rank(*block));
    }

    /// Gives a log block its slot in the page map.
    pub(super) fn set_slot(&mut self, block: BlockId, slot: u32) {
        debug_assert!(self.role(block) == Role::Log, "{block} is no log block");
        self.records[block.index()].slot = slot;
    }

    /// Gives a block of a page-mapped area a place.
    pub fn set_place(&mut self, block: BlockId, place: u32) {
        debug_assert!(self.role(block) == Role::Paged, "{block} is of no page-mapped area");
        self.records[block.index()].slot = place;
    }

    fn count(&mut self, role: Role, by: i32) {
        let counter = match role {
            Role::Log => &mut self.logs,
            Role::Paged => &mut self.paged,
            Role::Checkpoint => &mut self.checkpoints,
            Role::Free | Role::Data | Role::Bad => return,
        };
        *counter = counter.wrapping_add_signed(by);
        debug_assert!(*counter <= self.geometry.blocks(), "fewer than none are {role:?}");
    }

    /// A block that was taken and never programmed is free again.
    pub(super) fn put_back(&mut self, block: BlockId) {
        debug_assert!(self.next(block) == 0, "{block} was programmed");
        debug_assert!(!matches!(self.role(block), Role::Free | Role::Bad) || !self.free.contains(&block));
        self.leave(block, Role::Free);
        self.free.push_front(block);
    }

    /// A block changes its role with its pages in it.
    pub(super) fn become_role(&mut self, block: BlockId, role: Role, owner: u32) {
        debug_assert!(!matches!(self.role(block), Role::Free | Role::Bad), "{block} is not in use");
        debug_assert!(!matches!(role, Role::Free | Role::Bad) && !self.records[block.index()].candidate);
        self.count(self.role(block), -1);
        self.count(role, 1);
        let record = &mut self.records[block.index()];
        (record.role, record.owner) = (role, owner);
    }

    /// Page `offset` of a block was programmed; `aligned` says that it holds that page of the
    /// block's owner.
    #[inline]
    pub(super) fn programmed(&mut self, block: BlockId, offset: u32, aligned: bool) {
        let record = &mut self.records[block.index()];
        debug_assert!(!matches!(record.role, Role::Free | Role::Bad) && offset < self.geometry.pages_per_block());
        debug_assert!(
            self.programmed.is_some() || offset >= u32::from(record.next),
            "page {offset} of {block} was passed"
        );
        record.next = record.next.max(offset as u16 + 1);
        if !aligned && record.contents == Contents::Aligned {
            record.contents = Contents::Mixed;
        }
        if let Some(programmed) = &mut self.programmed {
            debug_assert!(
                !programmed.has(self.geometry.page_at(block, offset).0),
                "page {offset} of {block} was programmed"
            );
            programmed.set(self.geometry.page_at(block, offset).0);
        }
    }

    /// A program of a block failed.
    #[cold]
    pub(super) fn failed(&mut self, block: BlockId) {
        let record = &mut self.records[block.index()];
        record.contents = Contents::Failed;
        record.next = self.geometry.pages_per_block() as u16;
    }

    /// A page in a block lives.
    #[inline]
    pub(super) fn born(&mut self, block: BlockId) {
        self.records[block.index()].valid += 1;
        debug_assert!(self.valid(block) <= self.geometry.pages_per_block(), "more pages live in {block} than it has");
    }

    /// So many pages of a block live.
    pub(super) fn set_valid(&mut self, block: BlockId, valid: u32) {
        debug_assert!(valid <= self.geometry.pages_per_block(), "{valid} pages live in {block}");
        debug_assert!(!self.records[block.index()].candidate);
        self.records[block.index()].valid = valid as u16;
    }

    /// A live page in a block died.
    #[inline]
    pub(super) fn died(&mut self, block: BlockId) {
        let record = &mut self.records[block.index()];
        debug_assert!(record.valid > 0, "a page died in {block}, in which none lives");
        record.valid -= 1;
        if let Some((links, candidates)) = &mut self.candidates
            && record.candidate
        {
            candidates.page_died(links, block, u32::from(record.valid));
        }
    }

    /// A block of a page-mapped area may be collected from now on, if a victim policy picks.
    pub fn offer(&mut self, block: BlockId) {
        let record = &mut self.records[block.index()];
        debug_assert!(record.role == Role::Paged && !record.candidate, "{block} is no new candidate");
        if let Some((links, candidates)) = &mut self.candidates {
            record.candidate = true;
            candidates.closed(links, block, u32::from(record.valid));
        }
    }

    /// A block is not to be collected, because it is being filled or emptied.
    pub fn withhold(&mut self, block: BlockId) {
        if let Some((links, candidates)) = &mut self.candidates
            && core::mem::replace(&mut self.records[block.index()].candidate, false)
        {
            candidates.removed(links, block);
        }
    }

    /// Whether a block may be collected.
    #[must_use]
    pub fn is_candidate(&self, block: BlockId) -> bool {
        self.records[block.index()].candidate
    }

    /// The block that the victim policy would collect next.
    pub fn pick(&mut self) -> Option<Choice> {
        let (links, candidates) = self.candidates.as_mut()?;
        let records = &self.records;
        candidates.pick(links, 0, &|block| {
            records.get(block.index()).filter(|record| record.candidate).map(|record| u32::from(record.valid))
        })
    }

    fn leave(&mut self, block: BlockId, role: Role) {
        self.count(self.role(block), -1);
        let record = &mut self.records[block.index()];
        debug_assert!(record.valid == 0 && !record.candidate, "{block} is given up while pages in it live");
        *record = Block {
            role,
            owner: SHARED,
            slot: 0,
            next: 0,
            contents: Contents::Aligned,
            history: History::Seen,
            ..*record
        };
        if let Some(programmed) = &mut self.programmed {
            programmed.clear(self.geometry.page_at(block, 0).0, self.geometry.pages_per_block());
        }
    }

    /// An emptied block was erased.
    pub(super) fn erased(&mut self, block: BlockId) {
        debug_assert!(!self.has_failed(block), "{block} failed to program and is used again");
        self.leave(block, Role::Free);
        self.cleaned(block);
        self.free.push_back(block);
        debug_assert!(self.free.len() as u32 <= self.usable);
    }

    /// A block of a checkpoint is free, and has to be erased before it is used.
    pub(super) fn given_up(&mut self, block: BlockId) {
        debug_assert!(self.role(block) == Role::Checkpoint, "{block} is of no checkpoint");
        self.leave(block, Role::Free);
        self.records[block.index()].history = History::Untrusted;
        self.free.push_back(block);
    }

    /// An emptied block is free but not to be taken, and has to be erased before it is used.
    pub(super) fn emptied(&mut self, block: BlockId) {
        debug_assert!(!self.has_failed(block), "{block} failed to program and is used again");
        self.leave(block, Role::Free);
        self.records[block.index()].history = History::Untrusted;
    }

    /// An emptied block is retired.
    pub(super) fn retired(&mut self, block: BlockId) {
        self.leave(block, Role::Bad);
        self.usable -= 1;
        debug_assert!(self.free.len() as u32 <= self.usable);
    }

    /// Shows every block.
    pub fn inspect(&self, inspector: &mut dyn Inspector) {
        for (block, record) in (0..).map(BlockId).zip(&self.records) {
            let used_for = match record.role {
                Role::Free => BlockUse::Free,
                Role::Data => BlockUse::Data,
                Role::Log => BlockUse::Log,
                Role::Paged => BlockUse::Host,
                Role::Bad => BlockUse::Bad,
                Role::Checkpoint => BlockUse::Checkpoint,
            };
            inspector.block(BlockView { block, used_for, live: u32::from(record.valid) });
        }
    }

    /// The RAM that its structures hold.
    pub fn ram(&self, report: &mut RamReport) {
        let item = |name, bytes: usize| RamItem { name, bytes: bytes as u64 };
        report.push(item("block_states", self.records.capacity() * size_of::<Block>()));
        report.push(item("free_blocks", self.free.capacity() * size_of::<BlockId>()));
        if let Some(programmed) = &self.programmed {
            report.push(RamItem { name: "programmed_pages", bytes: programmed.bytes() });
        }
        if let Some((links, candidates)) = &self.candidates {
            report.push(RamItem { name: "victim_index", bytes: links.ram_bytes() + candidates.ram_bytes() });
        }
    }
}

#[cfg(test)]
mod tests;
