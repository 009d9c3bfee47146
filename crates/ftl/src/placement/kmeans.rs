//! K-means over numbers, in steps of bounded work.
//!
//! 1. The first value is a centre. Then, round by round over all values, the value farthest from
//!    every centre becomes one, until there are as many as were asked for or every value is one.
//!    So fewer distinct values than centres give fewer groups.
//! 2. In each further round every value goes to its nearest centre, and after the last value each
//!    centre moves to the mean of its values. It ends when no centre moves, or after [`ROUNDS`].
//! 3. A boundary lies half-way between two neighbouring centres.
//!
//! A step looks at some values of a round.

/// Centres at most.
pub(super) const CENTRES: usize = 8;

/// Rounds in which centres may move.
const ROUNDS: u32 = 32;

/// Values that one step looks at.
const STEP: usize = 16;

/// Parts of a unit in which centres lie: means that are cut to units can go in circles.
const PARTS: u32 = 256;

/// Boundaries between groups: a value belongs to the group whose number is how many boundaries are
/// not above it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Boundaries {
    at: [u16; CENTRES - 1],
    count: u8,
}

impl Boundaries {
    /// The group of a value, from 0 for the least.
    #[inline]
    pub(super) fn group(&self, value: u16) -> u8 {
        self.list().iter().filter(|at| **at <= value).count() as u8
    }

    /// How many groups there are.
    #[cfg(test)]
    pub(super) const fn groups(&self) -> u8 {
        self.count + 1
    }

    fn list(&self) -> &[u16] {
        &self.at[..self.count as usize]
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Centre {
    /// In parts of a unit.
    at: u32,
    values: u32,
    sum: u32,
}

/// A pass under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct KMeans {
    centres: [Centre; CENTRES],
    /// Centres there are, and those asked for.
    used: u8,
    count: u8,
    /// The value looked at next.
    next: usize,
    /// The value farthest from its centre in this round, and how far.
    farthest: (u32, u32),
    rounds: u32,
}

impl KMeans {
    /// Begins a pass over these values, of which there is at least one, with so many centres.
    pub(super) fn begin(values: &[u16], count: u8) -> Self {
        debug_assert!(!values.is_empty() && (1..=CENTRES as u8).contains(&count));
        let mut centres = [Centre::default(); CENTRES];
        centres[0].at = PARTS * u32::from(values.first().copied().unwrap_or_default());
        Self { centres, used: 1, count, next: 0, farthest: (0, 0), rounds: 0 }
    }

    /// Looks at some values more; the boundaries if that was the end of the pass. Values may change
    /// meanwhile.
    pub(super) fn step(&mut self, values: &[u16]) -> Option<Boundaries> {
        let end = values.len().min(self.next + STEP);
        for &value in &values[self.next.min(end)..end] {
            let value = u32::from(value);
            let centre = self.nearest(PARTS * value);
            centre.values += 1;
            centre.sum += value;
            let far = centre.at.abs_diff(PARTS * value);
            if far > self.farthest.1 {
                self.farthest = (PARTS * value, far);
            }
        }
        self.next = end;
        if end < values.len() {
            return None;
        }
        self.next = 0;
        let (value, far) = core::mem::take(&mut self.farthest);
        if self.used < self.count && far > 0 {
            self.centres[self.used as usize].at = value;
            self.used += 1;
            self.all().iter_mut().for_each(|centre| *centre = Centre { values: 0, sum: 0, ..*centre });
            return None;
        }
        // No value is left to be one.
        self.count = self.used;
        self.rounds += 1;
        let mut moved = false;
        for centre in self.all() {
            let sum = u64::from(PARTS) * u64::from(centre.sum);
            let mean = sum.checked_div(u64::from(centre.values)).map_or(centre.at, |mean| mean as u32);
            moved |= mean != centre.at;
            *centre = Centre { at: mean, values: 0, sum: 0 };
        }
        (!moved || self.rounds == ROUNDS).then(|| self.boundaries())
    }

    fn all(&mut self) -> &mut [Centre] {
        &mut self.centres[..self.used as usize]
    }

    fn nearest(&mut self, value: u32) -> &mut Centre {
        let all = self.all();
        let place = (1..all.len())
            .fold(0, |best, at| if all[at].at.abs_diff(value) < all[best].at.abs_diff(value) { at } else { best });
        &mut all[place]
    }

    fn boundaries(&mut self) -> Boundaries {
        let mut found = Boundaries::default();
        self.all().sort_unstable_by_key(|centre| centre.at);
        for pair in self.all().windows(2).filter(|pair| pair[0].at < pair[1].at) {
            found.at[found.count as usize] = (pair[0].at + pair[1].at).div_ceil(2 * PARTS) as u16;
            found.count += 1;
        }
        debug_assert!(found.list().is_sorted());
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    /// The boundaries, and the rounds in which centres moved.
    fn rounds(values: &[u16], count: u8) -> (Boundaries, u32) {
        let mut pass = KMeans::begin(values, count);
        loop {
            if let Some(found) = pass.step(values) {
                return (found, pass.rounds);
            }
        }
    }

    fn whole(values: &[u16], count: u8) -> Boundaries {
        rounds(values, count).0
    }

    #[test]
    fn values_are_parted_where_they_lie_apart() {
        let values: Vec<u16> = [10, 11, 12, 100, 101, 300, 301, 302].repeat(20);
        let found = whole(&values, 3);
        assert_eq!(found.groups(), 3);
        assert_eq!([0, 12, 100, 101, 300, 9999].map(|value| found.group(value)), [0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn fewer_distinct_values_than_centres_are_fewer_groups() {
        assert_eq!(whole(&[7; 100], 3), Boundaries::default());
        assert_eq!(whole(&[7], 8).groups(), 1);
        let two = whole(&[5, 5, 900, 900, 900], 4);
        assert_eq!((two.groups(), two.group(5), two.group(900)), (2, 0, 1));
    }

    /// Centres that the farthest values make first move slowly through many values.
    #[test]
    fn a_pass_ends_although_centres_still_move() {
        let values: Vec<u16> = (0..4000_u32).map(|at| (at * at / 8000) as u16).collect();
        let (found, rounds) = rounds(&values, 8);
        assert_eq!((rounds, found.groups()), (ROUNDS, 8));
        assert!(found.list().is_sorted());
    }

    proptest! {
        /// There are no more groups than centres. If the pass ended because no centre moved, each
        /// group holds something, and each value lies no farther from the mean of its own group
        /// than from that of a neighbour.
        #[test]
        fn groups_are_stable(values in prop::collection::vec(0_u16..2048, 1..200), count in 1_u8..=8) {
            let (found, rounds) = rounds(&values, count);
            prop_assert!(found.groups() <= count);
            prop_assert!(rounds <= ROUNDS);
            if rounds == ROUNDS {
                return Ok(());
            }
            let groups: Vec<Vec<u16>> = (0..found.groups())
                .map(|group| values.iter().copied().filter(|v| found.group(*v) == group).collect())
                .collect();
            prop_assert!(groups.iter().all(|group| !group.is_empty()), "{:?} {:?}", found, values);
            let mean = |group: &[u16]| group.iter().map(|v| f64::from(*v)).sum::<f64>() / group.len() as f64;
            for pair in groups.windows(2) {
                let middle = f64::midpoint(mean(&pair[0]), mean(&pair[1]));
                prop_assert!(pair[0].iter().all(|v| f64::from(*v) <= middle + 2.0), "{:?} {:?}", found, groups);
                prop_assert!(pair[1].iter().all(|v| f64::from(*v) >= middle - 2.0), "{:?} {:?}", found, groups);
            }
        }
    }
}
