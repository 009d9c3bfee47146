//! What is kept in RAM for every block: its live pages, its state and its kind, in two bytes.
//!
//! | bits | what |
//! |---|---|
//! | 0 to 2 | state |
//! | 3, 4 | kind |
//! | 5 to 15 | live pages |
//!
//! Blocks of more than 2047 pages take a third byte, for the high bits of the live pages.

use super::BlockState;
use alloc::vec::Vec;
use nand::{BlockId, PageKind};

const STATE: u16 = 0b111;
const KIND_SHIFT: u32 = 3;
const VALID_SHIFT: u32 = 5;
const ONE_VALID: u16 = 1 << VALID_SHIFT;
/// Bits of the live pages in the two bytes.
const LOW_BITS: u32 = u16::BITS - VALID_SHIFT;

/// What is known of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) valid: u16,
    pub(super) state: BlockState,
    pub(super) kind: PageKind,
}

#[derive(Debug)]
pub(super) struct BlockTable {
    low: Vec<u16>,
    /// Empty unless a block has more pages than fit two bytes.
    high: Vec<u8>,
}

const fn state_of(low: u16) -> BlockState {
    match low & STATE {
        0 => BlockState::Virgin,
        1 => BlockState::Free,
        2 => BlockState::Active,
        3 => BlockState::Closed,
        4 => BlockState::Collecting,
        _ => BlockState::Bad,
    }
}

const fn kind_of(low: u16) -> PageKind {
    match (low >> KIND_SHIFT) & 0b11 {
        0 => PageKind::User,
        1 => PageKind::Translation,
        2 => PageKind::Validity,
        _ => PageKind::Checkpoint,
    }
}

const fn bits_of(state: BlockState, kind: PageKind) -> u16 {
    let kind: u16 = match kind {
        PageKind::User => 0,
        PageKind::Translation => 1,
        PageKind::Validity => 2,
        PageKind::Checkpoint => 3,
    };
    state as u16 | kind << KIND_SHIFT
}

impl BlockTable {
    /// Blocks of so many pages, all in a state by their number.
    pub(super) fn new(blocks: u32, pages_per_block: u32, state: impl Fn(BlockId) -> BlockState) -> Self {
        let low: Vec<u16> = (0..blocks).map(|block| bits_of(state(BlockId(block)), PageKind::User)).collect();
        let high = if pages_per_block >> LOW_BITS == 0 { Vec::new() } else { alloc::vec![0; low.len()] };
        Self { low, high }
    }

    /// `None` for a block that the device has not.
    #[inline]
    pub(super) fn get(&self, block: BlockId) -> Option<Block> {
        let low = *self.low.get(block.index())?;
        Some(Block { valid: self.valid_of(low, block), state: state_of(low), kind: kind_of(low) })
    }

    #[inline]
    fn valid_of(&self, low: u16, block: BlockId) -> u16 {
        let high = self.high.get(block.index()).map_or(0, |high| u16::from(*high) << LOW_BITS);
        low >> VALID_SHIFT | high
    }

    #[inline]
    pub(super) fn state(&self, block: BlockId) -> BlockState {
        state_of(self.low[block.index()])
    }

    #[inline]
    pub(super) fn kind(&self, block: BlockId) -> PageKind {
        kind_of(self.low[block.index()])
    }

    #[inline]
    pub(super) fn valid(&self, block: BlockId) -> u16 {
        self.valid_of(self.low[block.index()], block)
    }

    #[inline]
    pub(super) fn set(&mut self, block: BlockId, Block { valid, state, kind }: Block) {
        debug_assert!(valid >> LOW_BITS == 0 || !self.high.is_empty(), "{valid} live pages in {block}");
        self.low[block.index()] = bits_of(state, kind) | valid << VALID_SHIFT;
        if let Some(high) = self.high.get_mut(block.index()) {
            *high = (valid >> LOW_BITS) as u8;
        }
        debug_assert!(self.get(block) == Some(Block { valid, state, kind }));
    }

    #[inline]
    pub(super) fn set_state(&mut self, block: BlockId, state: BlockState) {
        let low = &mut self.low[block.index()];
        *low = *low & !STATE | bits_of(state, PageKind::User);
        debug_assert!(self.state(block) == state);
    }

    /// One live page more.
    #[inline]
    pub(super) fn page_born(&mut self, block: BlockId) {
        let low = &mut self.low[block.index()];
        let carried;
        (*low, carried) = low.overflowing_add(ONE_VALID);
        debug_assert!(!carried || !self.high.is_empty(), "more pages live in {block} than it can have");
        if carried && let Some(high) = self.high.get_mut(block.index()) {
            *high += 1;
        }
    }

    /// One live page less, if there is one. Answers what is known of the block then, if it waits to
    /// be collected.
    #[inline]
    pub(super) fn page_died(&mut self, block: BlockId) -> Option<Block> {
        let low = &mut self.low[block.index()];
        if *low >= ONE_VALID {
            *low -= ONE_VALID;
        } else {
            let high = self.high.get_mut(block.index()).filter(|high| **high > 0)?;
            *high -= 1;
            *low = low.wrapping_sub(ONE_VALID);
        }
        if *low & STATE == BlockState::Closed as u16 { self.get(block) } else { None }
    }

    /// Every block, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (BlockId, Block)> {
        (0..self.low.len() as u32).map(BlockId).filter_map(|block| Some((block, self.get(block)?)))
    }

    /// Bytes of RAM.
    pub(super) fn ram_bytes(&self) -> usize {
        self.low.capacity() * size_of::<u16>() + self.high.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [BlockState; 6] = [
        BlockState::Virgin,
        BlockState::Free,
        BlockState::Active,
        BlockState::Closed,
        BlockState::Collecting,
        BlockState::Bad,
    ];
    const KINDS: [PageKind; 4] = [PageKind::User, PageKind::Translation, PageKind::Validity, PageKind::Checkpoint];

    #[test]
    fn a_block_is_what_it_was_set_to_beside_its_neighbours() {
        for pages in [1, 128, 2047, 2048, 65_535] {
            let mut table = BlockTable::new(3, pages, |_| BlockState::Virgin);
            assert_eq!(table.ram_bytes(), if pages > 2047 { 9 } else { 6 }, "{pages} pages a block");
            let blank = table.get(BlockId(0));
            for (state, kind) in STATES.iter().flat_map(|state| KINDS.iter().map(move |kind| (*state, *kind))) {
                let block = Block { valid: pages as u16, state, kind };
                table.set(BlockId(1), block);
                assert_eq!((table.get(BlockId(0)), table.get(BlockId(2))), (blank, blank));
                assert_eq!(table.get(BlockId(1)), Some(block));
                for other in STATES {
                    table.set_state(BlockId(1), other);
                    assert_eq!(table.get(BlockId(1)), Some(Block { state: other, ..block }));
                }
            }
            assert_eq!(table.get(BlockId(3)), None);
        }
    }

    #[test]
    fn pages_are_counted_up_to_all_and_down_to_none() {
        for pages in [5, 2047, 2048, 65_535_u32] {
            let mut table = BlockTable::new(2, pages, |_| BlockState::Closed);
            let counted = |table: &BlockTable| u32::from(table.valid(BlockId(0)));
            for live in 1..=pages {
                table.page_born(BlockId(0));
                assert_eq!(counted(&table), live);
            }
            for live in (0..pages).rev() {
                let block = table.page_died(BlockId(0));
                assert_eq!(block.map(|block| u32::from(block.valid)), Some(live));
                assert_eq!((table.state(BlockId(0)), table.kind(BlockId(0))), (BlockState::Closed, PageKind::User));
            }
            assert_eq!(table.page_died(BlockId(0)), None, "none is left");
            table.page_born(BlockId(0));
            table.set_state(BlockId(0), BlockState::Active);
            assert_eq!(table.page_died(BlockId(0)), None, "it is being filled");
            assert_eq!((counted(&table), table.valid(BlockId(1))), (0, 0));
        }
    }
}
