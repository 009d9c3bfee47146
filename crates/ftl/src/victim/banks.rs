//! Dies in groups, one for each block that a write stream fills at once.

use nand::BlockId;

/// Banks of a device: as many groups of dies with about as many dies in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Banks {
    dies: u32,
    count: u32,
}

impl Banks {
    /// The whole device.
    pub const ONE: Self = Self { dies: 1, count: 1 };

    /// So many banks, from 1 to the number of dies.
    #[must_use]
    pub const fn new(dies: u32, count: u32) -> Self {
        debug_assert!(count > 0 && count <= dies, "a bank without a die");
        Self { dies, count }
    }

    /// How many there are.
    #[inline]
    #[must_use]
    pub const fn count(self) -> u32 {
        self.count
    }

    /// Dies of all banks.
    #[inline]
    #[must_use]
    pub const fn all_dies(self) -> u32 {
        self.dies
    }

    /// The bank of a die.
    #[inline]
    #[must_use]
    pub const fn of_die(self, die: u32) -> u32 {
        (die as u64 * self.count as u64 / self.dies as u64) as u32
    }

    /// The bank of a block: blocks take turns on dies.
    #[inline]
    #[must_use]
    pub const fn of(self, block: BlockId) -> u32 {
        if self.count == 1 { 0 } else { self.of_die(block.0 % self.dies) }
    }

    /// The dies of a bank, in order.
    pub fn dies(self, bank: u32) -> impl Iterator<Item = u32> {
        (0..self.dies).filter(move |die| self.of_die(*die) == bank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn every_die_is_of_one_bank_and_none_is_without() {
        for dies in 1..20 {
            for count in 1..=dies {
                let banks = Banks::new(dies, count);
                let sizes: Vec<usize> = (0..count).map(|bank| banks.dies(bank).count()).collect();
                let least = (dies / count) as usize;
                assert_eq!(sizes.iter().sum::<usize>(), dies as usize);
                assert!(sizes.iter().all(|size| *size == least || *size == least + 1), "{dies} dies: {sizes:?}");
            }
        }
        assert_eq!([0, 1, 2, 3, 4].map(|block| Banks::new(4, 2).of(BlockId(block))), [0, 0, 1, 1, 0]);
    }
}
