//! Banks as who places pages bank by bank sees them.

use super::Space;
use crate::victim::Banks;

impl Space {
    /// Its banks.
    pub const fn banks(&self) -> Banks {
        self.banks
    }

    /// Blocks of a bank that can be opened without collecting anything.
    pub fn free_of(&self, bank: u32) -> u32 {
        self.free_of.get(bank as usize).copied().unwrap_or_default()
    }

    /// Whether the next page of the first stream of host data opens no block of a bank.
    pub fn has_open(&self, bank: u32) -> bool {
        let lane = self.streams.first().and_then(|stream| stream.lanes.get(bank as usize));
        lane.is_some_and(|lane| lane.next < self.geometry.pages_per_block())
    }

    /// The next page of host data goes to a bank, of whichever stream; its lanes go on from there.
    pub fn aim(&mut self, bank: u32) {
        debug_assert!(bank < self.banks.count(), "there is no bank {bank}");
        for stream in &mut self.streams[..self.host_streams as usize] {
            stream.turn = bank;
        }
    }

    /// Takes memory for at least so many erased blocks to wait.
    pub fn keep_free(&mut self, blocks: usize) {
        if blocks > self.free_limit {
            self.free.reserve_exact(blocks - self.free.len());
            self.free_limit = blocks;
        }
    }
}
