//! Latencies, kept in an HDR histogram of three significant digits.

use crate::error::SimError;
use crate::result::{CdfPoint, LatencyResult};
use hdrhistogram::Histogram;

/// Latencies of one kind of request. Mean and maximum are exact, the rest within 0.1%.
#[derive(Clone, Debug)]
pub struct Latencies {
    histogram: Histogram<u64>,
    sum_ns: u128,
    max_ns: u64,
}

/// A day, the longest that is told apart.
const LONGEST_NS: u64 = 86_400_000_000_000;

/// What counts as slow: the line that LFTL's Table 5 draws.
const SLOW_NS: u64 = 2_000_000;

/// Shares at which the distribution is sampled; denser where tails matter.
const SHARES: [f64; 39] = [
    0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.825,
    0.85, 0.875, 0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.985, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9998, 0.9999,
    0.99999, 1.0,
];

impl Latencies {
    /// None yet.
    ///
    /// # Errors
    /// [`SimError::BadSpec`] if the histogram cannot be made; its bounds are constants, so it can.
    pub fn new() -> Result<Self, SimError> {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, 3)
            .map_err(|e| SimError::BadSpec { what: "latency histogram", reason: e.to_string() })?;
        Ok(Self { histogram, sum_ns: 0, max_ns: 0 })
    }

    /// Adds one.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns);
        self.sum_ns += u128::from(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// The figures of reports.
    #[must_use]
    pub fn summary(&self) -> LatencyResult {
        let count = self.histogram.len();
        if count == 0 {
            return LatencyResult::default();
        }
        // The histogram answers with the upper end of a bucket, which may lie beyond the longest.
        let us = |share: f64| self.histogram.value_at_quantile(share).min(self.max_ns) as f64 / 1000.0;
        LatencyResult {
            mean: self.sum_ns as f64 / count as f64 / 1000.0,
            p50: us(0.5),
            p99: us(0.99),
            p999: us(0.999),
            p9999: us(0.9999),
            max: self.max_ns as f64 / 1000.0,
            over_2ms: 1.0 - self.histogram.count_between(0, SLOW_NS) as f64 / count as f64,
            count,
            cdf: SHARES.iter().map(|&share| CdfPoint { us: us(share), share }).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_known_latencies() {
        let mut l = Latencies::new().unwrap();
        for us in 1..=1000 {
            l.record(us * 1000);
        }
        let s = l.summary();
        assert_eq!((s.count, s.mean, s.max), (1000, 500.5, 1000.0));
        for (found, right) in [(s.p50, 500.0), (s.p99, 990.0), (s.p999, 999.0)] {
            assert!((found / right - 1.0_f64).abs() < 0.001, "{found} for {right}");
        }
        assert_eq!(s.over_2ms, 0.0);
        (0..3000).for_each(|_| l.record(3_000_000));
        assert_eq!(l.summary().over_2ms, 0.75);
        assert!(s.cdf.windows(2).all(|w| w[0].us <= w[1].us && w[0].share < w[1].share));
    }

    #[test]
    fn none_is_all_zero() {
        assert_eq!(Latencies::new().unwrap().summary(), LatencyResult::default());
    }
}
