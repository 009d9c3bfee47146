//! Greedy: the block with the fewest live pages; among equals the one that came to that count
//! first.
//!
//! 1. Blocks stand in one list for each count of live pages, a set of lists a bank.
//! 2. When a page dies its block moves one list down; the lowest occupied list is remembered.
//! 3. A pick walks up from there. The walk is paid for by the moves down, so a pick is O(1)
//!    amortised.
//!
//! Optimal for uniform random writes; under skew it cleans hot blocks that were about to empty by
//! themselves.

use super::lists::Lists;
use super::{Banks, Choice, Entry, Links, Live, Victim};
use alloc::boxed::Box;
use alloc::vec::Vec;
use nand::BlockId;

pub(super) const ENTRY: Entry = Entry {
    name: "greedy",
    summary: "the block with the fewest live pages",
    source: "Wu and Zwaenepoel, eNVy, ASPLOS 1994",
    picks_fewest: true,
    make: |links, pages_per_block, banks| Box::new(Greedy::new(links, pages_per_block, banks)),
};

struct Greedy {
    lists: Lists,
    /// Of each bank, no list below this one holds a block.
    lowest: Vec<u32>,
    pages_per_block: u32,
    banks: Banks,
}

impl Greedy {
    fn new(links: &mut Links, pages_per_block: u32, banks: Banks) -> Self {
        let lists = Lists::new(links, banks.count() * (pages_per_block + 1));
        Self { lists, lowest: alloc::vec![pages_per_block; banks.count() as usize], pages_per_block, banks }
    }

    /// Appends a block to the list of its bank for a count.
    #[inline]
    fn push(&mut self, links: &mut Links, block: BlockId, valid: u32) {
        let bank = self.banks.of(block);
        self.lists.push_back(links, self.list(bank, valid), block);
        let lowest = &mut self.lowest[bank as usize];
        *lowest = valid.min(*lowest);
    }

    #[inline]
    const fn list(&self, bank: u32, valid: u32) -> u32 {
        bank * (self.pages_per_block + 1) + valid
    }
}

impl Victim for Greedy {
    #[inline]
    fn closed(&mut self, links: &mut Links, block: BlockId, valid: u32) {
        debug_assert!(valid <= self.pages_per_block, "{block} with {valid} live pages");
        self.push(links, block, valid);
    }

    #[inline]
    fn page_died(&mut self, links: &mut Links, block: BlockId, valid: u32) {
        debug_assert!(valid < self.pages_per_block, "a page died in {block} and all live");
        links.remove(block);
        self.push(links, block, valid);
    }

    fn pick(&mut self, links: &mut Links, bank: u32, _: Live<'_>) -> Option<Choice> {
        for valid in self.lowest[bank as usize]..=self.pages_per_block {
            if let Some(block) = self.lists.front(links, self.list(bank, valid)) {
                debug_assert!((0..valid).all(|less| self.lists.front(links, self.list(bank, less)).is_none()));
                self.lowest[bank as usize] = valid;
                return Some(Choice { block, valid });
            }
        }
        self.lowest[bank as usize] = self.pages_per_block;
        None
    }

    #[inline]
    fn removed(&mut self, links: &mut Links, block: BlockId) {
        links.remove(block);
    }

    fn ram_bytes(&self) -> u64 {
        (self.lowest.capacity() * size_of::<u32>()) as u64
    }
}
