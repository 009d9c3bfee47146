//! Blocks of the page-mapped area with pages never programmed, in the order in which they joined.
//!
//! A queue from which a block in the middle can be taken without a search: the block knows its
//! place ([`Blocks::set_place`]), and leaves a gap. Gaps at either end are closed at once, and the
//! others when there is no room for another block.

use crate::engine::log_block::blocks::Blocks;
use alloc::collections::VecDeque;
use nand::BlockId;

/// The queue. It holds four bytes a block of the device.
pub(super) struct OpenBlocks {
    /// [`BlockId::NONE`] for a gap; never at either end.
    queue: VecDeque<BlockId>,
    /// The place of the first, modulo 2^32.
    first: u32,
    blocks: usize,
}

impl OpenBlocks {
    /// An empty queue on a device of so many blocks.
    pub(super) fn new(blocks: u32) -> Self {
        Self { queue: VecDeque::with_capacity(blocks as usize), first: 0, blocks: blocks as usize }
    }

    /// A block joins.
    pub(super) fn push(&mut self, blocks: &mut Blocks, block: BlockId) {
        if self.queue.len() == self.blocks {
            self.queue.retain(|block| block.is_some());
            for (place, &block) in self.queue.iter().enumerate() {
                blocks.set_place(block, self.first.wrapping_add(place as u32));
            }
        }
        debug_assert!(self.iter().all(|other| other != block), "{block} is in the queue already");
        blocks.set_place(block, self.first.wrapping_add(self.queue.len() as u32));
        self.queue.push_back(block);
    }

    /// Takes the block that joined first.
    pub(super) fn pop(&mut self) -> Option<BlockId> {
        let block = self.queue.pop_front()?;
        self.first = self.first.wrapping_add(1);
        self.close_gaps();
        debug_assert!(block.is_some(), "the queue begins with a gap");
        Some(block)
    }

    /// Takes a block out, if it is in the queue.
    pub(super) fn remove(&mut self, blocks: &Blocks, block: BlockId) {
        let at = blocks.slot(block).wrapping_sub(self.first) as usize;
        if let Some(place) = self.queue.get_mut(at).filter(|place| **place == block) {
            *place = BlockId::NONE;
            self.close_gaps();
        }
        debug_assert!(self.iter().all(|other| other != block), "{block} did not know its place");
    }

    fn close_gaps(&mut self) {
        while self.queue.back().is_some_and(|block| !block.is_some()) {
            self.queue.pop_back();
        }
        while self.queue.front().is_some_and(|block| !block.is_some()) {
            self.queue.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }

    /// The blocks, the one that joined first in front.
    pub(super) fn iter(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.queue.iter().copied().filter(|block| block.is_some())
    }

    /// Bytes of RAM held.
    pub(super) fn ram_bytes(&self) -> u64 {
        (self.queue.capacity() * size_of::<BlockId>()) as u64
    }
}
