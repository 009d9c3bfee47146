//! Blocks in queues, for whoever decides by itself when the front of one is collected.

use super::lists::Lists;
use super::{Banks, Links};
use nand::BlockId;

/// Some queues over the blocks of [`Links`], each with a list for every bank.
pub(crate) struct Queues {
    lists: Lists,
    banks: Banks,
}

impl Queues {
    /// So many queues, empty.
    pub(crate) fn new(links: &mut Links, count: u32, banks: Banks) -> Self {
        Self { lists: Lists::new(links, count * banks.count()), banks }
    }

    /// Appends a block that stands in no list.
    #[inline]
    pub(crate) fn push(&self, links: &mut Links, queue: u32, block: BlockId) {
        let bank = self.banks.of(block);
        self.lists.push_back(links, queue * self.banks.count() + bank, block);
    }

    /// The block of a bank that has been in a queue longest.
    pub(crate) fn front(&self, links: &Links, queue: u32, bank: u32) -> Option<BlockId> {
        self.lists.front(links, queue * self.banks.count() + bank)
    }

    /// Takes a block out of the queue that holds it.
    #[inline]
    pub(crate) fn remove(&self, links: &mut Links, block: BlockId) {
        links.remove(block);
    }

    /// Whether a block stands in a list at all.
    pub(crate) fn holds(&self, links: &Links, block: BlockId) -> bool {
        links.holds(block)
    }
}
