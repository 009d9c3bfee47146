//! Circular doubly linked lists threaded through arrays: blocks grouped by their count of live pages.

use alloc::vec::Vec;
use nand::BlockId;

#[derive(Clone, Copy)]
struct Links {
    next: u32,
    prev: u32,
}

/// `lists` lists over the blocks of a device. Every operation is O(1).
pub(super) struct Lists {
    /// One node a block, then one sentinel a list.
    links: Vec<Links>,
    blocks: u32,
}

impl Lists {
    pub(super) fn new(blocks: u32, lists: u32) -> Self {
        let links = (0..blocks + lists).map(|i| Links { next: i, prev: i }).collect();
        Self { links, blocks }
    }

    /// Appends a block that is in no list.
    #[inline]
    pub(super) fn push_back(&mut self, list: u32, block: BlockId) {
        let sentinel = self.blocks + list;
        let last = self.links[sentinel as usize].prev;
        self.links[block.index()] = Links { next: sentinel, prev: last };
        self.links[last as usize].next = block.0;
        self.links[sentinel as usize].prev = block.0;
    }

    /// Takes a block out of the list that holds it.
    #[inline]
    pub(super) fn remove(&mut self, block: BlockId) {
        let Links { next, prev } = self.links[block.index()];
        self.links[prev as usize].next = next;
        self.links[next as usize].prev = prev;
    }

    /// The block that has been in a list longest.
    #[inline]
    pub(super) fn front(&self, list: u32) -> Option<BlockId> {
        let next = self.links[(self.blocks + list) as usize].next;
        (next < self.blocks).then_some(BlockId(next))
    }

    pub(super) fn ram_bytes(&self) -> u64 {
        (self.links.capacity() * size_of::<Links>()) as u64
    }
}
