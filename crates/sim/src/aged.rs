//! Writes that leave a device as long uniform random writing does, with the fewest of them.
//!
//! Under such writing a live page is overwritten at the same rate wherever it lies and however often it was moved. Blocks are
//! closed at a steady rate, so of a block that is a share `1 − x` of all blocks away from the youngest `u^(1 − x)` lives, where `u` is
//! what lives of the next to be collected: the cleaning equation ([`lfs_live_share`]; Menon, 1995). That state is written
//! at once, without a collection:
//!
//! 1. Every logical page once, in random order: what a block holds must have nothing to do with each other, or moving it would cost
//!    the mapping less than it does later.
//! 2. Each logical page is chosen with the chance that what was written then should be dead by now, `1 − u^(1 − x)`. The chosen ones are
//!    written in another random order, and between them, with the same chance for the place that they come to, some that are
//!    still to come.
//!
//! What follows takes the place of several times the logical pages in overwrites: ageing goes on from here until
//! write-amplification is steady, and says if that does not come about.

use crate::reference::lfs_live_share;
use workload::Permutation;

/// Pages of the device that this leaves to metadata and free blocks, one in so many.
const SPARE: u64 = 64;

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
    first: Permutation,
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
            first: Permutation::seeded(logical, seed),
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
        let writes: Vec<u64> = AgedWrites::new(100_000, 200_000, 1).collect();
        let near = writes.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 1000).count();
        assert!(near < writes.len() / 25, "{near}");
        let mut first = writes[..100_000].to_vec();
        first.sort_unstable();
        assert!(first.into_iter().eq(0..100_000));
    }

    #[test]
    fn a_device_of_any_size_is_written_to_an_end() {
        for (logical, physical) in [(1, 2), (1, 64), (3, 4), (100, 100), (63, 64)] {
            let written = AgedWrites::new(logical, physical, 3).count() as u64;
            assert!(written >= logical && written <= 2 * physical + 8, "{written} for {logical} of {physical}");
        }
    }
}
