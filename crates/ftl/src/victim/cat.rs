//! Cost, age, times: the block with the least (u / (1 - u)) × (1 / age) × times.
//!
//! u is the share of its pages that live, age the number of blocks closed since this one was, times
//! how often it was collected and 1. A block that was collected often is spared: wear evens out by
//! the way.
//!
//! 1. Blocks stand in one list for each count of live pages, the one unchanged longest first.
//! 2. A pick compares the first [`LOOK`] of each list. The best block of a list need not be among
//!    them, as age counts from the closing and times differ: to find it, every block would have to
//!    be looked at.
//!
//! Times count from the mount: after one, blocks count as never collected.

use super::lists::Lists;
use super::{Banks, Choice, Entry, Links, Live, Victim};
use alloc::boxed::Box;
use alloc::vec::Vec;
use nand::BlockId;

/// Blocks of each list that a pick compares.
const LOOK: usize = 4;

pub(super) const ENTRY: Entry = Entry {
    name: "cat",
    summary: "the block with the least cost over age, times how often it was collected",
    source: "Chiang and Chang, Cleaning policies in mobile computers using flash memory, JSS 1999",
    picks_fewest: false,
    make: |links, pages_per_block, banks| {
        let blocks = links.blocks() as usize;
        Box::new(Cat {
            lists: Lists::new(links, banks.count() * (pages_per_block + 1)),
            closed: alloc::vec![0; blocks],
            times: alloc::vec![0; blocks],
            closings: 0,
            pages_per_block,
            banks,
        })
    },
};

struct Cat {
    lists: Lists,
    /// `closings` when the block was closed.
    closed: Vec<u32>,
    /// How often it was collected, at most 65535.
    times: Vec<u16>,
    closings: u32,
    pages_per_block: u32,
    banks: Banks,
}

impl Cat {
    const fn list(&self, bank: u32, valid: u32) -> u32 {
        bank * (self.pages_per_block + 1) + valid
    }

    /// What collecting a block with so many live pages costs, as a fraction.
    fn score(&self, block: BlockId, valid: u32) -> (u128, u128) {
        let age = u64::from(self.closings.wrapping_sub(self.closed[block.index()])) + 1;
        let times = u64::from(self.times[block.index()]) + 1;
        (u128::from(valid) * u128::from(times), u128::from(self.pages_per_block - valid) * u128::from(age))
    }
}

impl Victim for Cat {
    fn closed(&mut self, links: &mut Links, block: BlockId, valid: u32) {
        debug_assert!(valid <= self.pages_per_block, "{block} with {valid} live pages");
        self.closings = self.closings.wrapping_add(1);
        self.closed[block.index()] = self.closings;
        self.lists.push_back(links, self.list(self.banks.of(block), valid), block);
    }

    fn page_died(&mut self, links: &mut Links, block: BlockId, valid: u32) {
        debug_assert!(valid < self.pages_per_block, "a page died in {block} and all live");
        links.remove(block);
        self.lists.push_back(links, self.list(self.banks.of(block), valid), block);
    }

    fn pick(&mut self, links: &mut Links, bank: u32, _: Live<'_>) -> Option<Choice> {
        let mut best: Option<((u128, u128), Choice)> = None;
        for valid in 0..self.pages_per_block {
            for block in self.lists.iter(links, self.list(bank, valid)).take(LOOK) {
                let choice = Choice { block, valid };
                if valid == 0 {
                    return Some(choice);
                }
                let (cost, gain) = self.score(block, valid);
                if best.is_none_or(|((c, g), _)| cost * g < c * gain) {
                    best = Some(((cost, gain), choice));
                }
            }
        }
        let full = || {
            let valid = self.pages_per_block;
            self.lists.front(links, self.list(bank, valid)).map(|block| Choice { block, valid })
        };
        best.map(|(_, choice)| choice).or_else(full)
    }

    fn removed(&mut self, links: &mut Links, block: BlockId) {
        links.remove(block);
        let times = &mut self.times[block.index()];
        *times = times.saturating_add(1);
    }

    fn ram_bytes(&self) -> u64 {
        (self.closed.capacity() * size_of::<u32>() + self.times.capacity() * size_of::<u16>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(links: &mut Links) -> Box<dyn Victim> {
        (ENTRY.make)(links, 16, Banks::ONE)
    }

    #[test]
    fn an_old_block_is_preferred_to_a_slightly_emptier_young_one() {
        let mut links = Links::new(64);
        let mut cat = policy(&mut links);
        cat.closed(&mut links, BlockId(0), 9);
        (2..40).for_each(|block| cat.closed(&mut links, BlockId(block), 16));
        cat.closed(&mut links, BlockId(1), 8);
        assert_eq!(cat.pick(&mut links, 0, &|_| None), Some(Choice { block: BlockId(0), valid: 9 }));
        cat.page_died(&mut links, BlockId(1), 0);
        assert_eq!(
            cat.pick(&mut links, 0, &|_| None),
            Some(Choice { block: BlockId(1), valid: 0 }),
            "it costs nothing"
        );
    }

    #[test]
    fn a_block_collected_often_is_spared() {
        let mut links = Links::new(8);
        let mut cat = policy(&mut links);
        for _ in 0..9 {
            cat.closed(&mut links, BlockId(0), 4);
            cat.removed(&mut links, BlockId(0));
        }
        cat.closed(&mut links, BlockId(0), 4);
        cat.closed(&mut links, BlockId(1), 9);
        // Collected nine times: 10 × 4/12 over an age of 2. Never collected: 9/7 over an age of 1.
        assert_eq!(cat.pick(&mut links, 0, &|_| None), Some(Choice { block: BlockId(1), valid: 9 }));
    }
}
