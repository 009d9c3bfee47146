//! Writes that leave a device as long uniform random writing does, with the fewest of them.
//!
//! Under such writing a live page is overwritten at the same rate wherever it lies and however
//! often it was moved. Blocks are closed at a steady rate, so of a block that is a share `1 − x` of
//! all blocks away from the youngest `u^(1 − x)` lives, where `u` is what lives of the next to be
//! collected: the cleaning equation ([`lfs_live_share`]; Menon, 1995). That state is written at
//! once, without a collection:
//!
//! 1. Every logical page once, in an order that looks random to a collector (see `Scattered`): what
//!    a block holds must have nothing to do with each other, or moving it would cost the mapping
//!    less than it does later.
//! 2. Each logical page is chosen with the chance that what was written then should be dead by now,
//!    `1 − u^(1 − x)`. The chosen ones are written in another random order, and between them, with
//!    the same chance for the place that they come to, some that are still to come.
//!
//! What follows takes the place of several times the logical pages in overwrites: ageing goes on
//! from here until write-amplification is steady, and says if that does not come about.

use crate::reference::lfs_live_share;
use workload::Permutation;

/// Pages of the device that this leaves to metadata and free blocks, one in so many.
const SPARE: u64 = 64;

/// An order of all logical pages in which neither a block nor those collected with it hold
/// neighbours, but which a cache of mapping entries can follow.
///
/// The disk is written in passes, a part of each region a pass. A pass over a region writes some
/// pages of each of its translation pages in random order, few enough for a cache to gather them;
/// so a block holds pages of a thousand translation pages. Blocks that are collected together are
/// of about the same age, which is several passes over all regions.
#[derive(Debug)]
struct Scattered {
    regions: u64,
    /// Pages in a region.
    pages: u64,
    /// Pages of a region in each pass but the last.
    part: u64,
    /// The order within a region.
    order: Permutation,
}

impl Scattered {
    /// Pages of a region, at least, if there are as many.
    const REGION: u64 = 1 << 22;
    const PASSES: u64 = 64;

    fn new(logical: u64, seed: u64) -> Self {
        let regions = (logical / Self::REGION).max(1);
        let pages = logical / regions;
        Self { regions, pages, part: pages / Self::PASSES, order: Permutation::seeded(pages, seed) }
    }

    /// The page at a place in the order.
    fn apply(&self, place: u64) -> u64 {
        let last = Self::PASSES - 1;
        let before_the_last = last * self.regions * self.part;
        let (pass, place_in_pass, part) = if place < before_the_last {
            (place / (self.regions * self.part), place % (self.regions * self.part), self.part)
        } else {
            (last, place - before_the_last, self.pages - last * self.part)
        };
        let (region, at) = (place_in_pass / part, place_in_pass % part);
        // Regions are equally long; the few pages that are left come at the end.
        if region < self.regions { region * self.pages + self.order.apply(pass * self.part + at) } else { place }
    }
}

/// The logical pages to write, in order.
#[derive(Debug)]
pub struct AgedWrites {
    logical: u64,
    /// Pages that are written in all, about.
    places: f64,
    /// ln u.
    decay: f64,
    written: u64,
    seed: u64,
    /// The order in which all are written.
    first: Scattered,
    /// The order in which the chosen ones are, by their places in the first one.
    again: Permutation,
    /// Where in `again` the next chosen page is looked for.
    next: u64,
}

impl AgedWrites {
    /// For a device of `physical` pages of which the host sees `logical`.
    #[must_use]
    pub fn new(logical: u64, physical: u64, seed: u64) -> Self {
        let places = (physical - physical / SPARE).max(logical) as f64;
        Self {
            logical,
            places,
            decay: lfs_live_share(logical as f64 / places).max(f64::MIN_POSITIVE).ln(),
            written: 0,
            seed,
            first: Scattered::new(logical, seed),
            again: Permutation::seeded(logical, !seed),
            next: 0,
        }
    }

    /// Pages that will be written in all, about.
    #[must_use]
    pub fn expected(&self) -> u64 {
        self.places as u64
    }

    /// Whether what is written `place`th is dead at the end, by chance.
    fn dies(&self, place: u64, chance: u64) -> bool {
        let live = (self.decay * (1.0 - place as f64 / self.places).max(0.0)).exp();
        unit(chance) >= live
    }

    /// The chosen page at or after a place in the second order, and that place.
    fn chosen(&self, from: u64) -> Option<(u64, u64)> {
        let mut places = (from..self.logical).map(|at| (self.again.apply(at), at));
        let (place, at) = places.find(|(place, _)| self.dies(*place, mix(self.seed ^ place)))?;
        Some((self.first.apply(place), at))
    }
}

impl Iterator for AgedWrites {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let place = self.written;
        self.written += 1;
        if place < self.logical {
            return Some(self.first.apply(place));
        }
        let chance = mix(self.seed.rotate_left(32) ^ place);
        if self.dies(place, chance) {
            let ahead = self.logical - self.next;
            let far = self.next + ((u128::from(mix(chance)) * u128::from(ahead)) >> 64) as u64;
            if let Some((page, _)) = self.chosen(far) {
                return Some(page);
            }
        }
        let (page, at) = self.chosen(self.next)?;
        self.next = at + 1;
        Some(page)
    }
}

/// A number that looks like chance, the same for the same input (Steele, Lea and Flood, 2014).
pub const fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A share from 0 to 1, without 1.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::lfs_live_share;

    /// Each page's last write, as a share of all writes, by order of writing.
    fn live_by_place(logical: u64, physical: u64) -> (Vec<f64>, u64, usize) {
        let writes: Vec<u64> = AgedWrites::new(logical, physical, 7).collect();
        let mut last = vec![None; logical as usize];
        writes.iter().enumerate().for_each(|(place, page)| last[*page as usize] = Some(place));
        let mut live = [0_u64; 20];
        for place in last.iter().flatten() {
            live[place * 20 / writes.len()] += 1;
        }
        let each = writes.len() as f64 / 20.0;
        (live.iter().map(|&count| count as f64 / each).collect(), writes.len() as u64, last.iter().flatten().count())
    }

    #[test]
    fn blocks_live_as_the_cleaning_equation_says() {
        for ratio in [50, 70, 90] {
            let (physical, logical) = (200_000, 2000 * ratio);
            let (live, written, distinct) = live_by_place(logical, physical);
            assert_eq!(distinct as u64, logical, "every page is written");
            let places = AgedWrites::new(logical, physical, 7).expected();
            assert!(written.abs_diff(places) < places / 100, "{written} of {places} pages at {ratio}%");
            let u = lfs_live_share(logical as f64 / places as f64);
            for (part, live) in live.iter().enumerate() {
                let says = u.powf(1.0 - (part as f64 + 0.5) / 20.0);
                assert!((live - says).abs() < 0.03, "{live} live in part {part} at {ratio}%, {says} is said");
            }
        }
    }

    #[test]
    fn what_is_written_together_lies_apart() {
        for logical in [1, 63, 64, 100, 100_000] {
            let order = Scattered::new(logical, 1);
            let mut first: Vec<u64> = (0..logical).map(|place| order.apply(place)).collect();
            let near = first.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 1000).count() as u64;
            assert!(logical < 1000 || near < logical / 25, "{near}");
            first.sort_unstable();
            assert!(first.into_iter().eq(0..logical), "{logical}");
        }
    }

    #[test]
    fn several_regions_are_written_in_turns() {
        let logical = 3 * Scattered::REGION + 2;
        let order = Scattered::new(logical, 5);
        assert_eq!((order.regions, order.pages), (3, Scattered::REGION));
        let region_of = |place| order.apply(place) / order.pages;
        let part = order.part;
        assert_eq!([0, part - 1, part, 2 * part, 3 * part, 3 * part * 64 - 1].map(region_of), [0, 0, 1, 2, 0, 2]);
        assert_eq!([logical - 2, logical - 1].map(|place| order.apply(place)), [logical - 2, logical - 1]);
        let mut seen = vec![false; logical as usize];
        (0..logical).for_each(|place| seen[order.apply(place) as usize] = true);
        assert!(seen.into_iter().all(|seen| seen));
    }

    #[test]
    fn a_device_of_any_size_is_written_to_an_end() {
        for (logical, physical) in [(1, 2), (1, 64), (3, 4), (100, 100), (63, 64)] {
            let written = AgedWrites::new(logical, physical, 3).count() as u64;
            assert!(written >= logical && written <= 2 * physical + 8, "{written} for {logical} of {physical}");
        }
    }
}
