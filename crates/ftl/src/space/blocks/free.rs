//! Blocks that can be opened: erased ones that wait, and virgin ones.

use super::{BlockState, Erased, FreeBlock, Space};
use nand::BlockId;

impl Space {
    /// Reserves memory for all erased blocks that may ever wait: nothing is allocated later.
    pub fn reserve_free(&mut self, blocks: usize) {
        self.free.reserve_exact(blocks);
        self.free_limit = blocks;
    }

    /// Whether so many more erased blocks may wait; if not, gaining them has to be put off.
    #[inline]
    pub fn may_free(&self, blocks: usize) -> bool {
        self.free.len() + blocks <= self.free_limit
    }

    /// Erases of the most worn block that is free and was used before.
    pub fn most_worn_free(&self) -> u32 {
        self.free.iter().map(|block| block.erase_count).max().unwrap_or(0)
    }

    /// A block ready to be filled, of a wanted bank if one is there.
    pub(super) fn take_free(&mut self, bank: Option<u32>, worn: bool) -> Option<FreeBlock> {
        debug_assert!(bank.is_none_or(|bank| bank < self.banks.count()));
        // Virgin blocks can wait without memory, erased ones cannot.
        let crowded = !self.free.is_empty() && !self.may_free(2);
        if let Some(bank) = bank {
            let mut units = self.banks.units_of(bank).filter(|_| !crowded);
            if let Some(block) = units.find_map(|unit| self.take_virgin(unit)) {
                return Some(block);
            }
            let of_bank = |free: &Erased| self.banks.of(free.block) == bank;
            if let Some(at) = self.choose_free(of_bank, worn) {
                return self.take_erased(at);
            }
        }
        for _ in 0..if crowded { 0 } else { self.banks.units() } {
            let turn = self.virgin_turn;
            self.virgin_turn = (turn + 1) % self.banks.units();
            if let Some(block) = self.take_virgin(turn) {
                return Some(block);
            }
        }
        let at = self.choose_free(|_| true, worn)?;
        self.take_erased(at)
    }

    fn take_erased(&mut self, at: usize) -> Option<FreeBlock> {
        let Erased { block, erase_count } = self.free.remove(at)?;
        Some(FreeBlock { block, erase_count, untrusted: false })
    }

    /// The place of the block to take: the one that waits longest or, to level wear, by wear.
    fn choose_free(&self, fits: impl Fn(&Erased) -> bool, worn: bool) -> Option<usize> {
        let mut candidates = self.free.iter().enumerate().filter(|(_, block)| fits(block));
        let chosen = match (self.level_wear, worn) {
            (false, _) => candidates.next(),
            (true, true) => candidates.max_by_key(|(_, block)| block.erase_count),
            (true, false) => candidates.min_by_key(|(_, block)| block.erase_count),
        };
        chosen.map(|(at, _)| at)
    }

    fn take_virgin(&mut self, unit: u32) -> Option<FreeBlock> {
        while self.virgin[unit as usize] < self.geometry.blocks() {
            let block = BlockId(self.virgin[unit as usize]);
            debug_assert_eq!(block.0 % self.banks.units(), unit);
            self.virgin[unit as usize] += self.banks.units();
            if self.state(block) == BlockState::Virgin {
                self.virgin_left -= 1;
                return Some(FreeBlock { block, erase_count: self.virgin_erases, untrusted: self.virgin_untrusted });
            }
        }
        None
    }
}
