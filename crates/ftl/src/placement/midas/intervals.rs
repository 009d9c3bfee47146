//! How long versions of pages live: a distribution of update intervals.
//!
//! Intervals are counted in buckets of an eighth of an octave: the distribution of any disk takes
//! as little RAM.

use alloc::vec;
use alloc::vec::Vec;

/// Buckets of an octave, as a power of two.
const FINE: u32 = 3;

/// Intervals at most: 31 bits of them.
const BUCKETS: usize = ((31 - FINE as usize) << FINE) + (1 << FINE);

/// The bucket of an interval.
const fn bucket(interval: u32) -> usize {
    if interval >> FINE == 0 {
        return interval as usize;
    }
    let exponent = 31 - interval.leading_zeros();
    let fraction = (interval >> (exponent - FINE)) & ((1 << FINE) - 1);
    (((exponent - FINE + 1) << FINE) + fraction) as usize
}

/// The least interval of a bucket.
const fn least(bucket: usize) -> u32 {
    if bucket >> FINE <= 1 {
        return bucket as u32;
    }
    let (octave, fraction) = ((bucket >> FINE) as u32, (bucket & ((1 << FINE) - 1)) as u32);
    ((1 << FINE) + fraction) << (octave - 1)
}

/// Intervals by bucket, of one class of writes.
pub(super) struct Intervals {
    counts: Vec<u32>,
    /// Writes of which no interval is known: the page was never written before.
    unknown: u32,
}

impl Intervals {
    pub(super) fn new() -> Self {
        Self { counts: vec![0; BUCKETS], unknown: 0 }
    }

    /// Counts a write of a page that was written so many writes ago.
    #[inline]
    pub(super) fn note(&mut self, interval: Option<u32>) {
        match interval {
            Some(interval) => self.counts[bucket(interval & (u32::MAX >> 1))] += 1,
            None => self.unknown += 1,
        }
    }

    /// Writes counted.
    pub(super) fn writes(&self) -> u32 {
        self.counts.iter().sum::<u32>() + self.unknown
    }

    /// Halves every count, so that what was seen last weighs most.
    pub(super) fn fade(&mut self) {
        self.counts.iter_mut().for_each(|count| *count /= 2);
        self.unknown /= 2;
    }

    pub(super) fn ram_bytes(&self) -> usize {
        self.counts.capacity() * size_of::<u32>()
    }
}

/// What of a class of writes lives at an age, and how much has lived up to it.
pub(super) struct Survival {
    /// At the least interval of each bucket: the share that lives longer.
    share: Vec<f32>,
    /// The integral of that share up to there, in writes.
    area: Vec<f32>,
}

impl Survival {
    pub(super) fn new() -> Self {
        Self { share: vec![1.0; BUCKETS], area: vec![0.0; BUCKETS] }
    }

    /// Takes over what was counted.
    pub(super) fn learn(&mut self, intervals: &Intervals) {
        let writes = intervals.writes().max(1) as f32;
        let (mut left, mut area) = (intervals.writes(), 0.0_f32);
        for at in 0..BUCKETS {
            (self.share[at], self.area[at]) = (left as f32 / writes, area);
            let begun = self.share[at];
            left -= intervals.counts[at];
            let width = if at + 1 < BUCKETS { least(at + 1) - least(at) } else { 1 };
            area += width as f32 * f32::midpoint(begun, left as f32 / writes);
        }
    }

    /// The share that lives at an age, and the integral up to it.
    pub(super) fn at(&self, age: f64) -> (f64, f64) {
        let bounded = age.clamp(0.0, f64::from(u32::MAX >> 1));
        let at = bucket(bounded as u32);
        let (share, area) = (f64::from(self.share[at]), f64::from(self.area[at]));
        if at + 1 == BUCKETS {
            return (share, area + (age - f64::from(least(at))).max(0.0) * share);
        }
        let (low, high) = (f64::from(least(at)), f64::from(least(at + 1)));
        let end = f64::from(self.share[at + 1]);
        let part = ((bounded - low) / (high - low)).clamp(0.0, 1.0);
        let now = share + (end - share) * part;
        (now, area + (bounded - low) * f64::midpoint(share, now))
    }

    pub(super) fn ram_bytes(&self) -> usize {
        (self.share.capacity() + self.area.capacity()) * size_of::<f32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        assert_eq!(bucket(u32::MAX >> 1), BUCKETS - 1);
        for at in 1..BUCKETS {
            assert_eq!((bucket(least(at)), bucket(least(at) - 1)), (at, at - 1), "bucket {at}");
            assert!(at < 16 || least(at) - least(at - 1) <= least(at) / 8, "bucket {at}");
        }
    }

    #[test]
    fn survival_is_what_was_counted() {
        let (mut intervals, mut survival) = (Intervals::new(), Survival::new());
        (0..1000).for_each(|interval| intervals.note(Some(interval)));
        (0..1000).for_each(|_| intervals.note(None));
        survival.learn(&intervals);
        for (age, share, area) in [(0.0, 1.0, 0.0), (500.0, 0.75, 437.5), (2000.0, 0.5, 1250.0), (1e6, 0.5, 500_250.0)]
        {
            let (found, sum) = survival.at(age);
            assert!((found - share).abs() < 0.02, "{found} live at {age}, {share} should");
            assert!((sum - area).abs() <= 0.02 * area.max(1.0), "{sum} up to {age}, {area} should");
        }
        intervals.fade();
        assert!((900..=1000).contains(&intervals.writes()));
    }
}
