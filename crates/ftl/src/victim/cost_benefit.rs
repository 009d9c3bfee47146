//! Cost-benefit: the block with the largest age × (1 - u) / 2u.
//!
//! Age is the number of blocks closed since this one last changed (closed, or lost a page), so no
//! clock is needed. Within one count of live pages the block unchanged longest scores best, and the
//! lists are kept in that order: a pick compares one block a list, O(pages per block), whatever the
//! size of the device.

use super::lists::Lists;
use super::{Banks, Choice, Entry, Links, Live, Victim};
use alloc::boxed::Box;
use alloc::vec::Vec;
use nand::BlockId;

pub(super) const ENTRY: Entry = Entry {
    name: "cost-benefit",
    summary: "the block with the best ratio of age × free space to cost",
    source: "Rosenblum and Ousterhout, LFS, SOSP 1991; Kawaguchi et al., USENIX 1995",
    picks_fewest: false,
    make: |links, pages_per_block, banks| {
        Box::new(CostBenefit {
            lists: Lists::new(links, banks.count() * (pages_per_block + 1)),
            changed: alloc::vec![0; links.blocks() as usize],
            closings: 0,
            pages_per_block,
            banks,
        })
    },
};

struct CostBenefit {
    lists: Lists,
    /// `closings` when the block last changed.
    changed: Vec<u32>,
    closings: u32,
    pages_per_block: u32,
    banks: Banks,
}

impl CostBenefit {
    const fn list(&self, bank: u32, valid: u32) -> u32 {
        bank * (self.pages_per_block + 1) + valid
    }
}

impl Victim for CostBenefit {
    fn closed(&mut self, links: &mut Links, block: BlockId, valid: u32) {
        debug_assert!(valid <= self.pages_per_block, "{block} with {valid} live pages");
        self.closings = self.closings.wrapping_add(1);
        self.changed[block.index()] = self.closings;
        self.lists.push_back(links, self.list(self.banks.of(block), valid), block);
    }

    fn page_died(&mut self, links: &mut Links, block: BlockId, valid: u32) {
        debug_assert!(valid < self.pages_per_block, "a page died in {block} and all live");
        self.changed[block.index()] = self.closings;
        links.remove(block);
        self.lists.push_back(links, self.list(self.banks.of(block), valid), block);
    }

    fn pick(&mut self, links: &mut Links, bank: u32, _: Live<'_>) -> Option<Choice> {
        let mut best: Option<(u64, u64, Choice)> = None;
        for valid in 0..=self.pages_per_block {
            let Some(block) = self.lists.front(links, self.list(bank, valid)) else { continue };
            let choice = Choice { block, valid };
            if valid == 0 {
                return Some(choice);
            }
            debug_assert!(self.closings > 0, "{block} is a candidate that was never closed");
            let age = u64::from(self.closings.wrapping_sub(self.changed[block.index()])) + 1;
            // age × (B - v) / 2v, compared as a fraction.
            let gain = age * u64::from(self.pages_per_block - valid);
            let cost = u64::from(2 * valid);
            let better = best.is_none_or(|(g, c, _)| gain * c > g * cost);
            if better {
                best = Some((gain, cost, choice));
            }
        }
        best.map(|(_, _, choice)| choice)
    }

    fn removed(&mut self, links: &mut Links, block: BlockId) {
        links.remove(block);
    }

    fn ram_bytes(&self) -> u64 {
        (self.changed.capacity() * size_of::<u32>()) as u64
    }
}
