//! First in, first out: the block that was filled first, whatever lives in it.
//!
//! The policy that the analytic models assume (u_d = (u - 1) / ln u) and that wears all blocks evenly; never the
//! cheapest. A block in which every page still lives goes to the end of the queue instead: collecting it gains nothing.

use super::lists::Lists;
use super::{Choice, Entry, Victim};
use alloc::boxed::Box;
use alloc::vec::Vec;
use nand::BlockId;

pub(super) const ENTRY: Entry = Entry {
    name: "fifo",
    summary: "the block that was filled first",
    source: "Rosenblum and Ousterhout, LFS, SOSP 1991 (its cost model)",
    make: |blocks, pages_per_block| {
        let valid = alloc::vec![0; blocks as usize];
        Box::new(Fifo { lists: Lists::new(blocks, 1), valid, candidates: 0, pages_per_block })
    },
};

struct Fifo {
    lists: Lists,
    valid: Vec<u32>,
    candidates: u32,
    pages_per_block: u32,
}

impl Victim for Fifo {
    fn closed(&mut self, block: BlockId, valid: u32) {
        self.lists.push_back(0, block);
        self.candidates += 1;
        self.valid[block.index()] = valid;
    }

    #[inline]
    fn page_died(&mut self, block: BlockId, valid: u32) {
        self.valid[block.index()] = valid;
    }

    fn pick(&mut self) -> Option<Choice> {
        for _ in 1..self.candidates {
            let block = self.lists.front(0)?;
            if self.valid[block.index()] < self.pages_per_block {
                break;
            }
            self.lists.remove(block);
            self.lists.push_back(0, block);
        }
        self.lists.front(0).map(|block| Choice { block, valid: self.valid[block.index()] })
    }

    fn removed(&mut self, block: BlockId) {
        self.lists.remove(block);
        self.candidates -= 1;
    }

    fn ram_bytes(&self) -> u64 {
        self.lists.ram_bytes() + (self.valid.capacity() * size_of::<u32>()) as u64
    }
}
