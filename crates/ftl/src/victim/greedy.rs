//! Greedy: the block with the fewest live pages; among equals the one that came to that count
//! first.
//!
//! 1. Blocks stand in one list for each count of live pages.
//! 2. When a page dies its block moves one list down; the lowest occupied list is remembered.
//! 3. A pick walks up from there. The walk is paid for by the moves down, so a pick is O(1)
//!    amortised.
//!
//! Optimal for uniform random writes; under skew it cleans hot blocks that were about to empty by
//! themselves.

use super::lists::Lists;
use super::{Choice, Entry, Links, Victim};
use alloc::boxed::Box;
use nand::BlockId;

pub(super) const ENTRY: Entry = Entry {
    name: "greedy",
    summary: "the block with the fewest live pages",
    source: "Wu and Zwaenepoel, eNVy, ASPLOS 1994",
    make: |links, pages_per_block| Box::new(Greedy::new(links, pages_per_block)),
};

struct Greedy {
    lists: Lists,
    /// No list below this one holds a block.
    lowest: u32,
    pages_per_block: u32,
}

impl Greedy {
    fn new(links: &mut Links, pages_per_block: u32) -> Self {
        Self { lists: Lists::new(links, pages_per_block + 1), lowest: pages_per_block, pages_per_block }
    }
}

impl Victim for Greedy {
    #[inline]
    fn closed(&mut self, links: &mut Links, block: BlockId, valid: u32) {
        debug_assert!(valid <= self.pages_per_block, "{block} with {valid} live pages");
        self.lists.push_back(links, valid, block);
        self.lowest = self.lowest.min(valid);
    }

    #[inline]
    fn page_died(&mut self, links: &mut Links, block: BlockId, valid: u32) {
        debug_assert!(valid < self.pages_per_block, "a page died in {block} and all live");
        links.remove(block);
        self.lists.push_back(links, valid, block);
        self.lowest = self.lowest.min(valid);
    }

    fn pick(&mut self, links: &mut Links) -> Option<Choice> {
        while self.lowest <= self.pages_per_block {
            if let Some(block) = self.lists.front(links, self.lowest) {
                debug_assert!((0..self.lowest).all(|list| self.lists.front(links, list).is_none()));
                return Some(Choice { block, valid: self.lowest });
            }
            self.lowest += 1;
        }
        self.lowest = self.pages_per_block;
        None
    }

    #[inline]
    fn removed(&mut self, links: &mut Links, block: BlockId) {
        links.remove(block);
    }

    fn ram_bytes(&self) -> u64 {
        0
    }
}
