//! Which of the shorter runs can have an entry of a block, in RAM: a query reads no page of the
//! others.
//!
//! One table of cells for all runs, each run with its own bit in every cell: adding a run's blocks
//! sets its bit in the cells that they hash to, and when the run is merged away its bit is cleared
//! in all of them. A run with as many entries as there are cells has its bit in two thirds of them,
//! so longer runs get none. Nor do runs that a mount finds, until they are merged.

use alloc::vec;
use alloc::vec::Vec;
use nand::BlockId;

/// Runs that can have a bit.
const BITS: usize = 16;

/// The cells, and whose the bits are.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    cells: Vec<u16>,
    /// By how much a 32-bit hash is shifted to index `cells`.
    shift: u32,
    /// The run of each bit.
    runs: [Option<u64>; BITS],
}

impl Filter {
    /// A filter in at most so many bytes of RAM; one in less than 4 never says no.
    pub fn new(bytes: u32) -> Self {
        let cells = if bytes < 4 { 0 } else { 1_usize << (bytes / 2).ilog2() };
        Self { shift: 32 - cells.max(2).trailing_zeros(), cells: vec![0; cells], runs: [None; BITS] }
    }

    #[inline]
    fn cell(&self, block: BlockId) -> usize {
        (block.0.wrapping_mul(0x9E37_79B1) >> self.shift) as usize
    }

    /// A run is begun that will have at most so many entries; its bit, 0 if it gets none.
    pub fn begin(&mut self, run: u64, entries: u64) -> u16 {
        debug_assert!(!self.runs.contains(&Some(run)), "run {run} has a bit");
        let free = self.runs.iter().position(Option::is_none);
        let Some(bit) = free.filter(|_| entries <= self.cells.len() as u64) else { return 0 };
        self.runs[bit] = Some(run);
        1 << bit
    }

    /// The run with this bit has an entry of a block.
    #[inline]
    pub fn add(&mut self, bit: u16, block: BlockId) {
        if bit != 0 {
            let cell = self.cell(block);
            self.cells[cell] |= bit;
        }
    }

    /// Forgets every run but those of which `lives` is true.
    pub fn retain(&mut self, lives: impl Fn(u64) -> bool) {
        let mut gone = 0;
        for (bit, run) in self.runs.iter_mut().enumerate() {
            if run.is_some_and(|run| !lives(run)) {
                *run = None;
                gone |= 1 << bit;
            }
        }
        if gone != 0 {
            self.cells.iter_mut().for_each(|cell| *cell &= !gone);
        }
    }

    /// Whether a run can have an entry of a block.
    #[inline]
    pub fn may_have(&self, run: u64, block: BlockId) -> bool {
        match self.runs.iter().position(|&other| other == Some(run)) {
            Some(bit) => self.cells[self.cell(block)] >> bit & 1 != 0,
            None => true,
        }
    }

    /// Bytes of RAM it holds.
    pub fn ram_bytes(&self) -> u64 {
        (self.cells.capacity() * size_of::<u16>() + size_of_val(&self.runs)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_no_only_of_what_is_not_there() {
        for bytes in [0, 3, 4, 100, 4096] {
            let mut filter = Filter::new(bytes);
            assert!(filter.ram_bytes() <= u64::from(bytes) + 16 * 16);
            for run in 0..20 {
                let bit = filter.begin(run, 2);
                filter.add(bit, BlockId(run as u32));
                filter.add(bit, BlockId(run as u32 * 1000));
            }
            assert!((0..20).all(|run| filter.may_have(run, BlockId(run as u32 * 1000))));
            let no = (0..1000).filter(|&block| !filter.may_have(7, BlockId(block))).count();
            assert_eq!(no > 900, bytes >= 100, "{no} with {bytes} bytes");
            filter.retain(|run| run == 7);
            assert!(filter.may_have(7, BlockId(7)) && filter.may_have(8, BlockId(9)));
            assert_eq!(filter.begin(30, u64::MAX), 0);
            assert!(filter.may_have(30, BlockId(5)), "a run too long for it");
        }
    }
}
