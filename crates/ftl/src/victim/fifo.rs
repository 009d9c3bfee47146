//! First in, first out: the block that was filled first, whatever lives in it.
//!
//! The policy that the analytic models assume (u_d = (u - 1) / ln u) and that wears all blocks
//! evenly; never the cheapest. A block in which every page still lives goes to the end of the queue
//! instead: collecting it gains nothing.

use super::lists::Lists;
use super::{Banks, Choice, Entry, Links, Live, Victim};
use alloc::boxed::Box;
use alloc::vec::Vec;
use nand::BlockId;

pub(super) const ENTRY: Entry = Entry {
    name: "fifo",
    summary: "the block that was filled first",
    source: "Rosenblum and Ousterhout, LFS, SOSP 1991 (its cost model)",
    picks_fewest: false,
    make: |links, pages_per_block, banks| {
        let valid = alloc::vec![0; links.blocks() as usize];
        let candidates = alloc::vec![0; banks.count() as usize];
        Box::new(Fifo { lists: Lists::new(links, banks.count()), valid, candidates, pages_per_block, banks })
    },
};

struct Fifo {
    lists: Lists,
    valid: Vec<u32>,
    /// Of each bank.
    candidates: Vec<u32>,
    pages_per_block: u32,
    banks: Banks,
}

impl Victim for Fifo {
    fn closed(&mut self, links: &mut Links, block: BlockId, valid: u32) {
        debug_assert!(valid <= self.pages_per_block, "{block} with {valid} live pages");
        let bank = self.banks.of(block);
        self.lists.push_back(links, bank, block);
        self.candidates[bank as usize] += 1;
        self.valid[block.index()] = valid;
    }

    #[inline]
    fn page_died(&mut self, _: &mut Links, block: BlockId, valid: u32) {
        debug_assert!(
            self.valid[block.index()] == valid + 1,
            "one page of {block} died, not {valid} of {}",
            self.valid[block.index()]
        );
        self.valid[block.index()] = valid;
    }

    fn pick(&mut self, links: &mut Links, bank: u32, _: Live<'_>) -> Option<Choice> {
        let candidates = self.candidates[bank as usize];
        debug_assert!((candidates == 0) == self.lists.front(links, bank).is_none());
        for _ in 1..candidates {
            let block = self.lists.front(links, bank)?;
            if self.valid[block.index()] < self.pages_per_block {
                break;
            }
            links.remove(block);
            self.lists.push_back(links, bank, block);
        }
        self.lists.front(links, bank).map(|block| Choice { block, valid: self.valid[block.index()] })
    }

    fn removed(&mut self, links: &mut Links, block: BlockId) {
        links.remove(block);
        self.candidates[self.banks.of(block) as usize] -= 1;
    }

    fn ram_bytes(&self) -> u64 {
        ((self.valid.capacity() + self.candidates.capacity()) * size_of::<u32>()) as u64
    }
}
