//! Circular doubly linked lists threaded through an array: blocks grouped by their count of live
//! pages.

use alloc::vec::Vec;
use nand::BlockId;

#[derive(Clone, Copy)]
struct Node {
    next: u32,
    prev: u32,
}

/// A place in a list for each block of a device: eight bytes, however many policies stand over
/// them, because a block is a candidate of one at a time. Nothing is kept before there is a list.
pub struct Links {
    /// One node a block, then one sentinel a list; none if there is no list.
    nodes: Vec<Node>,
    blocks: u32,
}

impl Links {
    /// For a device of so many blocks, none of which is in a list.
    #[must_use]
    pub fn new(blocks: u32) -> Self {
        Self { nodes: Vec::new(), blocks }
    }

    /// Blocks of the device.
    #[must_use]
    pub const fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Bytes of RAM held.
    #[must_use]
    pub fn ram_bytes(&self) -> u64 {
        (self.nodes.capacity() * size_of::<Node>()) as u64
    }

    /// Whether a block is in a list.
    pub(super) fn holds(&self, block: BlockId) -> bool {
        let Node { next, prev } = self.nodes[block.index()];
        next != block.0 && self.nodes[prev as usize].next == block.0 && self.nodes[next as usize].prev == block.0
    }

    /// Takes a block out of the list that holds it.
    #[inline]
    pub(super) fn remove(&mut self, block: BlockId) {
        let Node { next, prev } = self.nodes[block.index()];
        debug_assert!(self.holds(block), "{block} is in no list");
        self.nodes[prev as usize].next = next;
        self.nodes[next as usize].prev = prev;
        debug_assert!(!self.holds(block), "{block} is in its list twice");
    }
}

/// Some lists over the blocks of [`Links`]. Every operation is O(1).
pub(super) struct Lists {
    /// The sentinel of the first.
    first: u32,
}

impl Lists {
    /// So many more lists, empty.
    pub(super) fn new(links: &mut Links, lists: u32) -> Self {
        let first = (links.nodes.len() as u32).max(links.blocks);
        let places = links.nodes.len() as u32..first + lists;
        links.nodes.reserve_exact(places.len());
        links.nodes.extend(places.map(|i| Node { next: i, prev: i }));
        Self { first }
    }

    /// Appends a block that is in no list.
    #[inline]
    pub(super) fn push_back(&self, links: &mut Links, list: u32, block: BlockId) {
        let sentinel = self.first + list;
        debug_assert!((sentinel as usize) < links.nodes.len() && sentinel >= links.blocks);
        debug_assert!(!links.holds(block), "{block} is in a list already");
        let last = links.nodes[sentinel as usize].prev;
        links.nodes[block.index()] = Node { next: sentinel, prev: last };
        links.nodes[last as usize].next = block.0;
        links.nodes[sentinel as usize].prev = block.0;
        debug_assert!(links.holds(block));
    }

    /// The block that has been in a list longest.
    #[inline]
    pub(super) fn front(&self, links: &Links, list: u32) -> Option<BlockId> {
        let next = links.nodes[(self.first + list) as usize].next;
        debug_assert!(next >= links.blocks || links.holds(BlockId(next)), "a list begins with a block of another");
        (next < links.blocks).then_some(BlockId(next))
    }

    /// The blocks of a list, the one that has been in it longest first.
    pub(super) fn iter<'a>(&self, links: &'a Links, list: u32) -> impl Iterator<Item = BlockId> + use<'a> {
        let next = |place: u32| Some(links.nodes[place as usize].next).filter(|next| *next < links.blocks);
        core::iter::successors(next(self.first + list), move |place| next(*place)).map(BlockId)
    }
}
