//! First in, first out: the block that was filled first, whatever lives in it.
//!
//! The policy that the analytic models assume (u_d = (u - 1) / ln u) and that wears all blocks evenly; never the
//! cheapest.

use super::lists::Lists;
use super::{Choice, Entry, Victim};
use alloc::boxed::Box;
use alloc::vec::Vec;
use nand::BlockId;

pub(super) const ENTRY: Entry = Entry {
    name: "fifo",
    summary: "the block that was filled first",
    source: "Rosenblum and Ousterhout, LFS, SOSP 1991 (its cost model)",
    make: |blocks, _| Box::new(Fifo { lists: Lists::new(blocks, 1), valid: alloc::vec![0; blocks as usize] }),
};

struct Fifo {
    lists: Lists,
    valid: Vec<u32>,
}

impl Victim for Fifo {
    fn closed(&mut self, block: BlockId, valid: u32) {
        self.lists.push_back(0, block);
        self.valid[block.index()] = valid;
    }

    #[inline]
    fn page_died(&mut self, block: BlockId, valid: u32) {
        self.valid[block.index()] = valid;
    }

    fn pick(&mut self) -> Option<Choice> {
        self.lists.front(0).map(|block| Choice { block, valid: self.valid[block.index()] })
    }

    fn removed(&mut self, block: BlockId) {
        self.lists.remove(block);
    }

    fn ram_bytes(&self) -> u64 {
        self.lists.ram_bytes() + (self.valid.capacity() * size_of::<u32>()) as u64
    }
}
