//! Write-amplification over the measured part of a run, in intervals.

use crate::result::{ByPurpose, TimelinePoint};
use ftl::{Counts, Gauge, Purpose};
use std::collections::BTreeMap;

/// Where one interval ends.
#[derive(Clone, Debug)]
struct Mark {
    host_writes: u64,
    at_ns: u64,
    counts: Counts,
    gauges: Vec<Gauge>,
}

/// Intervals of equal numbers of host writes. When there are too many, two become one.
#[derive(Clone, Debug)]
pub struct Timeline {
    every: u64,
    next: u64,
    start: Mark,
    marks: Vec<Mark>,
}

/// Intervals when the number of writes is known beforehand.
const WANTED: u64 = 128;
/// More are never kept.
const MOST: usize = 2 * WANTED as usize;
/// Interval to begin with when the number of writes is not known.
const FIRST_INTERVAL: u64 = 512;

impl Timeline {
    /// Begins at `counts`. `total` is how many writes there will be, 0 if not known; `interval` how
    /// many make an interval, 0 to choose.
    #[must_use]
    pub fn new(total: u64, interval: u64, counts: Counts) -> Self {
        let every = match (interval, total) {
            (0, 0) => FIRST_INTERVAL,
            (0, total) => total.div_ceil(WANTED),
            (interval, _) => interval,
        };
        let start = Mark { host_writes: 0, at_ns: 0, counts, gauges: Vec::new() };
        Self { every, next: every, start, marks: Vec::with_capacity(MOST + 1) }
    }

    /// How many host writes the next mark is due at.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Ends an interval here.
    pub fn mark(&mut self, host_writes: u64, at_ns: u64, counts: Counts, gauges: Vec<Gauge>) {
        self.marks.push(Mark { host_writes, at_ns, counts, gauges });
        if self.marks.len() >= MOST {
            // Every second mark goes: the intervals double.
            let mut odd = false;
            self.marks.retain(|_| {
                odd = !odd;
                !odd
            });
            self.every *= 2;
        }
        self.next = host_writes + self.every;
    }

    /// The intervals, with a last shorter one up to `host_writes` if it holds any writes.
    #[must_use]
    pub fn finish(mut self, host_writes: u64, at_ns: u64, counts: Counts, gauges: Vec<Gauge>) -> Vec<TimelinePoint> {
        if self.marks.last().map_or(0, |mark| mark.host_writes) < host_writes {
            self.marks.push(Mark { host_writes, at_ns, counts, gauges });
        }
        let mut from = self.start;
        let mut points = Vec::with_capacity(self.marks.len());
        for mark in self.marks {
            let writes = (mark.host_writes - from.host_writes) as f64;
            let done = mark.counts.since(&from.counts);
            let share = |ops: u64| if writes > 0.0 { ops as f64 / writes } else { 0.0 };
            points.push(TimelinePoint {
                host_writes: mark.host_writes,
                at_s: mark.at_ns as f64 / 1e9,
                programs_per_write: share(done.total().programs),
                by_purpose: ByPurpose::from_fn(|purpose: Purpose| share(done.of(purpose).programs)),
                reads_by_purpose: ByPurpose::from_fn(|purpose: Purpose| share(done.of(purpose).reads)),
                gauges: mark
                    .gauges
                    .iter()
                    .map(|gauge| (gauge.name.to_owned(), gauge.value))
                    .collect::<BTreeMap<_, _>>(),
            });
            from = mark;
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_equal_and_the_last_may_be_shorter() {
        let mut timeline = Timeline::new(1280, 0, Counts::default());
        for writes in 1..=1285 {
            if writes >= timeline.next() {
                timeline.mark(writes, writes * 10, Counts::default(), Vec::new());
            }
        }
        let points = timeline.finish(1285, 12_850, Counts::default(), Vec::new());
        assert_eq!(points.len(), 129);
        assert_eq!(points[0].host_writes, 10);
        assert_eq!(points[128].host_writes, 1285);
        assert!((points[128].at_s - 12_850.0 / 1e9).abs() < 1e-15);
    }

    #[test]
    fn an_interval_can_be_asked_for() {
        let mut timeline = Timeline::new(1280, 100, Counts::default());
        assert_eq!(timeline.next(), 100);
        timeline.mark(100, 0, Counts::default(), Vec::new());
        assert_eq!(timeline.next(), 200);
    }

    #[test]
    fn an_unknown_length_doubles_the_interval() {
        let mut timeline = Timeline::new(0, 0, Counts::default());
        let total = FIRST_INTERVAL * 5000;
        while timeline.next() <= total {
            timeline.mark(timeline.next(), 0, Counts::default(), Vec::new());
        }
        let points = timeline.finish(total, 0, Counts::default(), Vec::new());
        assert!((100..=MOST).contains(&points.len()), "{}", points.len());
        let steps: Vec<u64> = points.windows(2).map(|w| w[1].host_writes - w[0].host_writes).collect();
        assert!(steps[..steps.len() - 1].windows(2).all(|w| w[0] == w[1]), "{steps:?}");
    }
}
