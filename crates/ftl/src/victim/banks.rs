//! Dies in groups, one for each block that a write stream fills at once; or planes, if each of them
//! has such a block.

use core::ops::Range;
use nand::{BlockId, Geometry};

/// Banks of a device: as many groups of dies with about as many dies in each, or its planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Banks {
    /// Dies, or planes of all dies.
    units: u32,
    count: u32,
}

impl Banks {
    /// The whole device.
    pub const ONE: Self = Self { units: 1, count: 1 };

    /// So many banks, from 1 to the number of dies.
    #[must_use]
    pub const fn new(dies: u32, count: u32) -> Self {
        debug_assert!(count > 0 && count <= dies, "a bank without a die");
        Self { units: dies, count }
    }

    /// So many banks of a device, as [`Banks::fit`] says.
    #[must_use]
    pub const fn of_device(geometry: &Geometry, count: u32) -> Self {
        debug_assert!(Self::fit(geometry, count) == count, "a bank is part of a die");
        Self::new(if count > geometry.dies() { count } else { geometry.dies() }, count)
    }

    /// As many banks as a device can have of those asked for: at most one a die, or one for each of
    /// its planes.
    #[must_use]
    pub const fn fit(geometry: &Geometry, asked: u32) -> u32 {
        let dies = geometry.dies();
        match asked {
            0 => 1,
            _ if asked <= dies || asked == dies * geometry.planes_per_die() => asked,
            _ => dies,
        }
    }

    /// Where a block of a bank is begun first, as a share of its pages, so that not all banks need
    /// another at once: numerator and denominator. The planes of a die have the same, to be
    /// programmed together.
    #[must_use]
    pub const fn stagger(self, bank: u32, geometry: &Geometry) -> (u32, u32) {
        let dies = geometry.dies();
        if self.count > dies { (bank % dies, dies) } else { (bank, self.count) }
    }

    /// The bank that a lane fills blocks of, if there are so many lanes, at most one a bank.
    #[must_use]
    pub const fn of_lane(self, lane: u32, lanes: u32, geometry: &Geometry) -> u32 {
        let dies = geometry.dies();
        if self.count <= dies {
            lane * self.count / lanes
        } else if lanes <= dies {
            lane * dies / lanes
        } else {
            lane
        }
    }

    /// How many there are.
    #[inline]
    #[must_use]
    pub const fn count(self) -> u32 {
        self.count
    }

    /// Dies, or planes of all dies, whichever banks consist of.
    #[inline]
    #[must_use]
    pub const fn units(self) -> u32 {
        self.units
    }

    const fn of_unit(self, unit: u32) -> u32 {
        (unit as u64 * self.count as u64 / self.units as u64) as u32
    }

    /// The bank of a block: blocks take turns on dies, then on planes.
    #[inline]
    #[must_use]
    pub const fn of(self, block: BlockId) -> u32 {
        if self.count == 1 { 0 } else { self.of_unit(block.0 % self.units) }
    }

    /// The dies of a bank, or its plane, in order: the first block of each.
    pub fn units_of(self, bank: u32) -> Range<u32> {
        let first = |bank: u32| (u64::from(bank) * u64::from(self.units)).div_ceil(self.count.into()) as u32;
        first(bank)..first(bank + 1)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn every_die_is_of_one_bank_and_none_is_without() {
        for dies in 1..20 {
            for count in 1..=dies {
                let banks = Banks::new(dies, count);
                for bank in 0..count {
                    let of_bank: Vec<u32> = (0..dies).filter(|die| banks.of(BlockId(*die)) == bank).collect();
                    assert_eq!(
                        banks.units_of(bank).collect::<Vec<_>>(),
                        of_bank,
                        "bank {bank} of {count}, {dies} dies"
                    );
                }
                let sizes: Vec<usize> = (0..count).map(|bank| banks.units_of(bank).count()).collect();
                let least = (dies / count) as usize;
                assert_eq!(sizes.iter().sum::<usize>(), dies as usize);
                assert!(sizes.iter().all(|size| *size == least || *size == least + 1), "{dies} dies: {sizes:?}");
            }
        }
        assert_eq!([0, 1, 2, 3, 4].map(|block| Banks::new(4, 2).of(BlockId(block))), [0, 0, 1, 1, 0]);
    }

    #[test]
    fn planes_of_a_die_are_banks_that_begin_alike() {
        let dimensions = nand::Dimensions {
            channels: 2,
            dies_per_channel: 2,
            planes_per_die: 2,
            blocks: 32,
            pages_per_block: 8,
            page_bytes: 512,
            spare_bytes: 32,
        };
        let geometry = Geometry::new(dimensions).unwrap();
        assert_eq!([0, 1, 3, 4, 5, 7, 8, 9].map(|asked| Banks::fit(&geometry, asked)), [1, 1, 3, 4, 4, 4, 8, 4]);
        let banks = Banks::of_device(&geometry, 8);
        for block in (0..32).map(BlockId) {
            let bank = banks.of(block);
            assert_eq!((bank % 4, bank / 4), (geometry.die_of(block), geometry.plane_of(block)));
            assert_eq!(banks.stagger(bank, &geometry), (geometry.die_of(block), 4));
            assert_eq!(banks.units_of(bank).collect::<Vec<_>>(), [bank]);
        }
        let lanes_of = |banks: Banks, lanes| (0..lanes).map(|lane| banks.of_lane(lane, lanes, &geometry)).collect();
        let found: [Vec<u32>; 3] =
            [lanes_of(banks, 2), lanes_of(banks, 6), lanes_of(Banks::of_device(&geometry, 4), 2)];
        assert_eq!(found, [[0, 2].to_vec(), [0, 1, 2, 3, 4, 5].to_vec(), [0, 2].to_vec()]);
    }
}
