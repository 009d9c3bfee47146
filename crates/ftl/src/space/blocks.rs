//! The space manager: which block is what, where the next page goes, which blocks are free.
//!
//! 1. A block is virgin, free (erased), active (being filled), closed (full, a candidate for
//!    collection), collecting, or bad.
//! 2. Each write stream fills one block a lane; lanes take turns, and a lane prefers blocks of its
//!    own bank. The first block of each lane begins at another offset, or all lanes would need a
//!    fresh block at the same time for ever, and one write would wait for as many collections as
//!    there are lanes. Lanes of planes of one die begin at the same. A mount looks at these
//!    offsets, those of the lanes of host data.
//! 3. Closed blocks of host data stand with the victim policy. Closed blocks of metadata stand
//!    there too, or, when metadata is not to be collected (GeckoFTL, section 4.2), apart until no
//!    page in them lives.
//! 4. A victim is taken from the bank with the fewest free blocks, if one there has something to
//!    gain. Taken from the whole device, free blocks come to lie on the same dies, and lanes with
//!    them.
//! 5. The count of live pages of every block (BVC) is kept here, with its state, in two bytes a
//!    block.

mod aim;
mod alone;
mod free;
mod pick;
mod queues;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod sample;
mod table;
mod within;

use super::candidates::Candidates;
use crate::contract::RamItem;
use crate::contract::RamReport;
use crate::inspect::{BlockUse, BlockView, Inspector, StreamView};
use crate::placement::Stream;
use crate::victim::{self, Banks};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use nand::{BlockId, Geometry, Nand, PageKind, Ppn};
use table::{Block, BlockTable};

/// Where a block stands in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BlockState {
    /// Not used since the device was formatted or mounted.
    Virgin,
    /// Erased and ready.
    Free,
    /// Being filled by a stream.
    Active,
    /// Full: a candidate for collection.
    Closed,
    /// Its live pages are being moved.
    Collecting,
    /// Retired.
    Bad,
}

/// A block that was erased and waits.
#[derive(Clone, Copy, Debug)]
struct Erased {
    block: BlockId,
    erase_count: u32,
}

/// A block that can be opened, with what its next pages' spare areas have to say of it.
#[derive(Clone, Copy, Debug)]
struct FreeBlock {
    block: BlockId,
    erase_count: u32,
    /// It reads as erased, but a program or an erase of it may have been cut short.
    untrusted: bool,
}

/// What a mount found in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// No page of it can be read as programmed; it has to be erased before it is used.
    Empty,
    /// Pages of a kind, so many of which live.
    Pages {
        /// What they hold.
        kind: PageKind,
        /// How many live.
        valid: u16,
    },
}

/// The block that a lane is filling.
#[derive(Clone, Copy, Debug)]
struct Lane {
    block: BlockId,
    /// Next offset to program; `pages_per_block` if there is no block.
    next: u32,
    erase_count: u32,
    erased_at: u32,
    erase_first: bool,
}

#[derive(Debug)]
struct StreamState {
    kind: PageKind,
    lanes: Vec<Lane>,
    turn: u32,
    /// Lanes that have had a block.
    begun: u32,
}

/// A page to be programmed next, and the wear of its block.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// The page.
    pub ppn: Ppn,
    /// Erases of the block before it was opened.
    pub erase_count: u32,
    /// Erases of the device when it was opened.
    pub erased_at: u32,
    /// The block has to be erased before this page, its first, is programmed.
    pub erase_first: bool,
}

/// How the space manager is set up.
#[derive(Clone, Copy, Debug)]
pub struct SpaceOptions {
    /// Streams of host data; a stream of translation pages and one of validity pages follow them.
    pub host_streams: u8,
    /// Blocks that each stream of host data fills at once.
    pub lanes: u32,
    /// Blocks that each stream of metadata fills at once, at most as many.
    pub metadata_lanes: u32,
    /// The victim policy for host data, and for metadata where that is collected alike.
    pub victim: &'static victim::Entry,
    /// Hold metadata blocks back from the victim policy until no page in them lives.
    pub metadata_apart: bool,
    /// Streams of host data may become queues ([`Space::set_queues`]).
    pub has_queues: bool,
    /// Give the last stream of host data the most worn free block, every other the least worn.
    pub level_wear: bool,
}

/// The space manager.
pub struct Space {
    geometry: Geometry,
    blocks: BlockTable,
    /// For each die or plane of the banks, the first of its blocks before which none is virgin.
    virgin: Vec<u32>,
    /// The die or plane whose virgin block is taken next if none is preferred.
    virgin_turn: u32,
    virgin_erases: u32,
    virgin_untrusted: bool,
    virgin_left: u32,
    free: VecDeque<Erased>,
    banks: Banks,
    /// Of each bank, the blocks that can be opened.
    free_of: Vec<u32>,
    /// Erased blocks that may wait without memory for more.
    free_limit: usize,
    streams: Vec<StreamState>,
    host_streams: u8,
    level_wear: bool,
    candidates: Candidates,
    metadata_blocks: u32,
    /// Full metadata blocks in which no page lives.
    dead_metadata: u32,
    /// Erases of the device since it was formatted.
    erases: u32,
    bad_blocks: u32,
    /// Blocks that failed to program and are to be retired once they are empty.
    failed: Vec<BlockId>,
}

/// What a block with pages of a kind is used for.
const fn use_of(kind: PageKind) -> BlockUse {
    match kind {
        PageKind::User => BlockUse::Host,
        PageKind::Translation => BlockUse::Translation,
        PageKind::Validity => BlockUse::Validity,
        PageKind::Checkpoint => BlockUse::Checkpoint,
    }
}

/// Failed blocks that may wait to be collected before the list of them has to grow.
const FAILED_CAPACITY: usize = 64;

const NO_LANE: Lane = Lane { block: BlockId::NONE, next: u32::MAX, erase_count: 0, erased_at: 0, erase_first: false };

impl Space {
    /// A device of which every block is free or marked bad.
    pub fn new<N: Nand>(nand: &N, options: SpaceOptions) -> Self {
        let geometry = *nand.geometry();
        debug_assert!(options.lanes > 0 && options.host_streams > 0, "{options:?}");
        let (count, pages) = (geometry.blocks(), geometry.pages_per_block());
        let state = |block| if nand.is_bad(block) { BlockState::Bad } else { BlockState::Virgin };
        let blocks = BlockTable::new(count, pages, state);
        let bad_blocks = blocks.iter().filter(|(_, block)| block.state == BlockState::Bad).count() as u32;
        let lanes_of = |kind| if kind == PageKind::User { options.lanes } else { options.metadata_lanes };
        let banks = Banks::of_device(&geometry, options.lanes);
        let mut free_of = alloc::vec![0; options.lanes as usize];
        let usable = blocks.iter().filter(|(_, block)| block.state != BlockState::Bad);
        usable.for_each(|(block, _)| free_of[banks.of(block) as usize] += 1);
        let kinds =
            (0..options.host_streams).map(|_| PageKind::User).chain([PageKind::Translation, PageKind::Validity]);
        let streams = kinds
            .map(|kind| StreamState { kind, lanes: alloc::vec![NO_LANE; lanes_of(kind) as usize], turn: 0, begun: 0 })
            .collect();
        Self {
            geometry,
            virgin: (0..banks.units()).collect(),
            virgin_turn: 0,
            virgin_erases: 0,
            virgin_untrusted: false,
            virgin_left: count - bad_blocks,
            free: VecDeque::new(),
            banks,
            free_of,
            free_limit: 0,
            streams,
            host_streams: options.host_streams,
            level_wear: options.level_wear,
            candidates: Candidates::new(count, pages, banks, options),
            metadata_blocks: 0,
            dead_metadata: 0,
            erases: 0,
            bad_blocks,
            failed: Vec::with_capacity(FAILED_CAPACITY),
            blocks,
        }
    }

    /// Takes over what a mount found. Blocks with pages count as full, because the next page of one
    /// may be torn; empty ones are erased before they are used, and are taken to be as worn as the
    /// others on average.
    pub fn restore(&mut self, erases: u32, mean_erases: u32, found: impl Fn(BlockId) -> Found) {
        self.erases = erases;
        debug_assert!(self.free.is_empty() && self.metadata_blocks == 0, "this space is in use");
        self.virgin_erases = mean_erases;
        self.virgin_untrusted = true;
        for stream in &mut self.streams {
            // No offsets again: mounted over and over, the pages left out would add up.
            stream.begun = stream.lanes.len() as u32;
        }
        for block in (0..self.geometry.blocks()).map(BlockId) {
            if self.state(block) == BlockState::Bad {
                continue;
            }
            if let Found::Pages { kind, valid } = found(block) {
                debug_assert!(u32::from(valid) <= self.geometry.pages_per_block(), "{valid} live pages in {block}");
                self.virgin_left -= 1;
                self.free_of[self.banks.of(block) as usize] -= 1;
                self.metadata_blocks += u32::from(kind != PageKind::User);
                self.dead_metadata += u32::from(kind != PageKind::User && valid == 0);
                self.blocks.set(block, Block { valid, state: BlockState::Closed, kind });
                self.candidates.closed(kind, block, u32::from(valid));
            }
        }
    }

    /// The device's shape.
    #[inline]
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Blocks that can be opened without collecting anything.
    #[inline]
    pub fn free_blocks(&self) -> u32 {
        self.free.len() as u32 + self.virgin_left
    }

    /// Erases of the device since it was formatted, modulo 2^32.
    pub const fn erases(&self) -> u32 {
        self.erases
    }

    /// Retired blocks.
    pub const fn bad_blocks(&self) -> u32 {
        self.bad_blocks
    }

    /// Blocks that failed, and are retired once they are empty.
    pub fn failed_blocks(&self) -> u32 {
        self.failed.len() as u32
    }

    /// Blocks that hold metadata, whether full or not.
    pub const fn metadata_blocks(&self) -> u32 {
        self.metadata_blocks
    }

    /// Full metadata blocks in which no page lives.
    #[inline]
    pub const fn dead_metadata(&self) -> u32 {
        self.dead_metadata
    }

    /// Where a block stands.
    pub fn state(&self, block: BlockId) -> BlockState {
        self.blocks.state(block)
    }

    /// Whether a block is full and nothing in it lives.
    pub fn is_dead(&self, block: BlockId) -> bool {
        self.state(block) == BlockState::Closed && self.valid(block) == 0
    }

    /// What a block holds, or held last.
    #[inline]
    pub fn kind(&self, block: BlockId) -> PageKind {
        self.blocks.kind(block)
    }

    /// Whether the block of this page may hold a kind: saved state shares blocks with a store.
    pub(super) fn may_hold(&self, ppn: Ppn, kind: PageKind) -> bool {
        let of_block = self.kind(self.geometry.block_of(ppn));
        of_block == kind || (of_block, kind) == (PageKind::Validity, PageKind::Checkpoint)
    }

    /// Live pages in a block (BVC).
    #[inline]
    pub fn valid(&self, block: BlockId) -> u32 {
        u32::from(self.blocks.valid(block))
    }

    /// The stream that metadata of a kind goes to.
    #[inline]
    const fn stream_of(&self, kind: PageKind) -> usize {
        self.host_streams as usize + matches!(kind, PageKind::Validity | PageKind::Checkpoint) as usize
    }

    /// The next page of a stream of host data; `None` if no block is free.
    #[inline]
    pub fn next_host_page(&mut self, stream: Stream) -> Option<Slot> {
        debug_assert!(stream.0 < self.host_streams, "{stream:?} takes no host data");
        self.next_page(stream.0 as usize)
    }

    /// The next page for metadata of a kind; `None` if no block is free.
    pub fn next_metadata_page(&mut self, kind: PageKind) -> Option<Slot> {
        debug_assert!(kind != PageKind::User, "host data goes to a stream of its own");
        self.next_page(self.stream_of(kind))
    }

    #[inline]
    fn next_page(&mut self, stream: usize) -> Option<Slot> {
        let pages = self.geometry.pages_per_block();
        let state = &mut self.streams[stream];
        let turn = state.turn as usize;
        state.turn = if turn + 1 == state.lanes.len() { 0 } else { state.turn + 1 };
        let lane = &mut state.lanes[turn];
        if lane.next >= pages {
            self.open(stream, turn)?;
        }
        let lane = &mut self.streams[stream].lanes[turn];
        debug_assert!(lane.next < pages && self.blocks.state(lane.block) == BlockState::Active);
        let ppn = self.geometry.page_at(lane.block, lane.next);
        lane.next += 1;
        debug_assert_eq!(self.geometry.block_of(ppn), lane.block);
        let slot = Slot {
            ppn,
            erase_count: lane.erase_count,
            erased_at: lane.erased_at,
            erase_first: core::mem::replace(&mut lane.erase_first, false),
        };
        if lane.next == pages {
            let block = lane.block;
            *lane = NO_LANE;
            self.close(block);
        }
        Some(slot)
    }

    /// A page that was handed out was not programmed, and is handed out again: a mount takes a
    /// block whose first page reads as erased for an empty one. The last page of a block is left
    /// out.
    #[cold]
    pub fn give_back(&mut self, ppn: Ppn) {
        let (block, offset) = (self.geometry.block_of(ppn), self.geometry.offset_of(ppn));
        debug_assert!(matches!(self.state(block), BlockState::Active | BlockState::Closed), "{ppn} was not handed out");
        let mut lanes = self.streams.iter_mut().flat_map(|stream| &mut stream.lanes);
        if let Some(lane) = lanes.find(|lane| lane.block == block && lane.next == offset + 1) {
            lane.next = offset;
        }
    }

    /// Gives a lane a fresh block.
    #[inline(never)]
    fn open(&mut self, stream: usize, turn: usize) -> Option<()> {
        let lanes = self.streams[stream].lanes.len() as u32;
        let worn = stream + 1 == self.host_streams as usize;
        let bank = (lanes > 1).then(|| self.banks.of_lane(turn as u32, lanes, &self.geometry));
        let fresh = self.take_free(bank, worn)?;
        self.free_of[self.banks.of(fresh.block) as usize] -= 1;
        debug_assert!(self.valid(fresh.block) == 0, "{} is opened while pages in it live", fresh.block);
        debug_assert!(matches!(self.state(fresh.block), BlockState::Virgin | BlockState::Free));
        debug_assert!(!self.has_failed(fresh.block), "{} failed to program and is opened again", fresh.block);
        let kind = self.streams[stream].kind;
        self.candidates.opened(fresh.block, stream);
        self.metadata_blocks += u32::from(kind != PageKind::User);
        self.blocks.set(fresh.block, Block { valid: 0, state: BlockState::Active, kind });
        let (nth, of) = self.banks.stagger(bank.unwrap_or(0), &self.geometry);
        let state = &mut self.streams[stream];
        let first = state.begun <= turn as u32;
        state.begun = state.begun.max(turn as u32 + 1);
        state.lanes[turn] = Lane {
            block: fresh.block,
            next: if first { nth * self.geometry.pages_per_block() / of } else { 0 },
            erase_count: fresh.erase_count,
            erased_at: self.erases,
            erase_first: fresh.untrusted,
        };
        debug_assert!(state.lanes[turn].next < self.geometry.pages_per_block());
        Some(())
    }

    #[inline(never)]
    fn close(&mut self, block: BlockId) {
        debug_assert!(matches!(self.state(block), BlockState::Active | BlockState::Collecting));
        self.blocks.set_state(block, BlockState::Closed);
        let (valid, kind) = (self.valid(block), self.kind(block));
        debug_assert!(valid <= self.geometry.pages_per_block());
        self.dead_metadata += u32::from(kind != PageKind::User && valid == 0);
        debug_assert!(self.dead_metadata <= self.metadata_blocks);
        self.candidates.closed(kind, block, valid);
    }

    /// A page was programmed and lives.
    #[inline]
    pub fn page_born(&mut self, ppn: Ppn) {
        let block = self.geometry.block_of(ppn);
        self.blocks.page_born(block);
        let state = self.state(block);
        debug_assert!(self.valid(block) <= self.geometry.pages_per_block(), "more pages live in {block} than it has");
        debug_assert!(matches!(state, BlockState::Active | BlockState::Closed), "{ppn} was not handed out");
        if state == BlockState::Closed {
            self.recount(block);
        }
    }

    /// The last page of a block, which counts as closed since it was handed out, is programmed.
    #[inline(never)]
    fn recount(&mut self, block: BlockId) {
        let (valid, kind) = (self.valid(block), self.kind(block));
        debug_assert!(valid > 0, "no page of {block} was just born");
        self.dead_metadata -= u32::from(kind != PageKind::User && valid == 1);
        self.candidates.removed(kind, block);
        self.candidates.closed(kind, block, valid);
    }

    /// A live page died.
    #[inline]
    pub fn page_died(&mut self, ppn: Ppn) {
        let block = self.geometry.block_of(ppn);
        debug_assert!(
            self.valid(block) == 0
                || !matches!(self.state(block), BlockState::Virgin | BlockState::Free | BlockState::Bad),
            "{ppn} lived in an erased block"
        );
        // A page dies where none lives only if the image that was mounted contradicts itself.
        if let Some(Block { valid, kind, .. }) = self.blocks.page_died(block) {
            let valid = u32::from(valid);
            self.dead_metadata += u32::from(kind != PageKind::User && valid == 0);
            debug_assert!(self.dead_metadata <= self.metadata_blocks);
            self.candidates.page_died(kind, block, valid);
        }
    }

    /// Nothing more is written to a block that is being filled: it waits to be collected.
    pub fn stop_filling(&mut self, block: BlockId) {
        for stream in &mut self.streams {
            for lane in stream.lanes.iter_mut().filter(|lane| lane.block == block) {
                *lane = NO_LANE;
            }
        }
        if self.state(block) == BlockState::Active {
            self.close(block);
        }
        debug_assert!(self.state(block) != BlockState::Active, "{block} is still being filled");
    }

    /// A block failed to program: nothing more is written to it, and it waits to be collected.
    pub fn abandon(&mut self, block: BlockId) {
        self.stop_filling(block);
        debug_assert!(self.state(block) == BlockState::Closed, "{block} failed to program and was not being filled");
        if !self.failed.contains(&block) {
            self.failed.push(block);
        }
    }

    /// Whether a block failed to program since it was erased: it is not to be used again.
    pub fn has_failed(&self, block: BlockId) -> bool {
        !self.failed.is_empty() && self.failed.contains(&block)
    }

    /// A closed block is to be collected: no policy offers it any more.
    pub fn begin_collecting(&mut self, block: BlockId) {
        debug_assert!(self.state(block) == BlockState::Closed, "{block} is collected but not full");
        debug_assert!(self.streams.iter().flat_map(|stream| &stream.lanes).all(|lane| lane.block != block));
        let (valid, kind) = (self.valid(block), self.kind(block));
        self.dead_metadata -= u32::from(kind != PageKind::User && valid == 0);
        self.candidates.removed(kind, block);
        self.blocks.set_state(block, BlockState::Collecting);
    }

    /// A collection was given up: the block is a candidate again.
    pub fn cancel_collecting(&mut self, block: BlockId) {
        debug_assert!(self.state(block) == BlockState::Collecting, "{block} is not being collected");
        self.close(block);
    }

    /// A collected block was erased and is free.
    pub fn erased(&mut self, block: BlockId, erase_count: u32) {
        debug_assert!(!self.has_failed(block), "{block} failed to program and is used again");
        self.leave(block, BlockState::Free);
        self.erases = self.erases.wrapping_add(1);
        self.free.push_back(Erased { block, erase_count });
        self.free_of[self.banks.of(block) as usize] += 1;
        debug_assert!(self.free_blocks() + self.bad_blocks <= self.geometry.blocks());
    }

    /// A collected block is retired.
    pub fn retired(&mut self, block: BlockId) {
        self.leave(block, BlockState::Bad);
        self.failed.retain(|&failed| failed != block);
        self.bad_blocks += 1;
        debug_assert!(self.free_blocks() + self.bad_blocks <= self.geometry.blocks());
    }

    fn leave(&mut self, block: BlockId, state: BlockState) {
        debug_assert!(self.streams.iter().flat_map(|stream| &stream.lanes).all(|lane| lane.block != block));
        debug_assert!(self.state(block) == BlockState::Collecting, "{block} is not being collected");
        let kind = self.kind(block);
        self.metadata_blocks -= u32::from(kind != PageKind::User);
        self.blocks.set(block, Block { valid: 0, state, kind });
    }

    /// Shows every block and every lane.
    pub fn inspect(&self, inspector: &mut dyn Inspector) {
        for (block, record) in self.blocks.iter() {
            let used_for = match record.state {
                BlockState::Virgin | BlockState::Free => BlockUse::Free,
                BlockState::Active | BlockState::Closed | BlockState::Collecting => use_of(record.kind),
                BlockState::Bad => BlockUse::Bad,
            };
            inspector.block(BlockView { block, used_for, live: u32::from(record.valid) });
        }
        for (stream, state) in (0..).zip(&self.streams) {
            for lane in &state.lanes {
                inspector.stream(StreamView { stream, used_for: use_of(state.kind), block: lane.block });
            }
        }
    }

    /// The RAM that its structures hold.
    pub fn ram(&self, report: &mut RamReport) {
        let item = |name, bytes: usize| RamItem { name, bytes: bytes as u64 };
        report.push(item("bvc", self.blocks.ram_bytes()));
        report.push(RamItem { name: "victim_index", bytes: self.candidates.ram_bytes() });
        let lanes: usize = self.streams.iter().map(|s| s.lanes.capacity() * size_of::<Lane>()).sum();
        let counts = self.free_of.capacity() * size_of::<u32>();
        report.push(item("free_and_active_blocks", self.free.capacity() * size_of::<Erased>() + lanes + counts));
    }
}
