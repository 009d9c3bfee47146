//! Which pages of each block are live: a bit a page, and a count a block.

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Bits and counts, changed without a lock.
pub(crate) struct Live {
    pages_per_block: u32,
    words: usize,
    bits: Vec<AtomicU64>,
    counts: Vec<AtomicU32>,
    /// Pages of each block that were handed out and that no entry was told of yet.
    unsettled: Vec<AtomicU32>,
}

impl Live {
    pub(crate) fn new(blocks: u32, pages_per_block: u32) -> Self {
        let words = pages_per_block.div_ceil(u64::BITS) as usize;
        let zeros = |n: usize| (0..n).map(|_| AtomicU32::new(0)).collect();
        Self {
            pages_per_block,
            words,
            bits: (0..blocks as usize * words).map(|_| AtomicU64::new(0)).collect(),
            counts: zeros(blocks as usize),
            unsettled: zeros(blocks as usize),
        }
    }

    fn word(&self, ppn: u32) -> (usize, &AtomicU64, u64) {
        let (block, offset) = ((ppn / self.pages_per_block) as usize, ppn % self.pages_per_block);
        let word = block * self.words + (offset / u64::BITS) as usize;
        (block, &self.bits[word], 1 << (offset % u64::BITS))
    }

    /// Says that an entry leads to a page now.
    pub(crate) fn set(&self, ppn: u32) {
        let (block, word, bit) = self.word(ppn);
        let before = word.fetch_or(bit, Ordering::AcqRel);
        debug_assert!(before & bit == 0, "two entries lead to page {ppn}");
        self.counts[block].fetch_add(1, Ordering::AcqRel);
    }

    /// Says that no entry leads to a page any more.
    pub(crate) fn clear(&self, ppn: u32) {
        let (block, word, bit) = self.word(ppn);
        let before = word.fetch_and(!bit, Ordering::AcqRel);
        debug_assert!(before & bit != 0, "page {ppn} dies twice");
        self.counts[block].fetch_sub(1, Ordering::AcqRel);
    }

    /// Live pages of a block.
    pub(crate) fn count(&self, block: u32) -> u32 {
        self.counts[block as usize].load(Ordering::Acquire)
    }

    /// The first live page of a block from an offset on.
    pub(crate) fn next(&self, block: u32, from: u32) -> Option<u32> {
        (from..self.pages_per_block).find(|offset| {
            let word = block as usize * self.words + (offset / u64::BITS) as usize;
            self.bits[word].load(Ordering::Acquire) & 1 << (offset % u64::BITS) != 0
        })
    }

    /// A page of the block was handed out.
    pub(crate) fn begin(&self, block: u32) {
        self.unsettled[block as usize].fetch_add(1, Ordering::AcqRel);
    }

    /// Entries know what became of it.
    pub(crate) fn end(&self, block: u32) {
        let before = self.unsettled[block as usize].fetch_sub(1, Ordering::AcqRel);
        debug_assert!(before > 0);
    }

    /// Whether entries know of every page of the block.
    pub(crate) fn settled(&self, block: u32) -> bool {
        self.unsettled[block as usize].load(Ordering::Acquire) == 0
    }
}
