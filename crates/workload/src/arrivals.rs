//! When requests arrive that carry no times of their own.

use crate::pick::Rng;

/// The stream of the generator for arrivals, so that they move no address drawn from the same seed.
const STREAM: u64 = 0xA881;

/// Arrivals at random, independent of each other, at an average rate: a Poisson process. It never
/// ends.
#[derive(Clone, Debug)]
pub struct Poisson {
    rng: Rng,
    mean_ns: f64,
    at_ns: f64,
}

impl Poisson {
    /// `per_s` a second on average, from time 0; the same for the same seed. A rate that is not
    /// more than 0 gives arrivals that are infinitely far away.
    #[must_use]
    pub fn new(per_s: f64, seed: u64) -> Self {
        let mean_ns = if per_s > 0.0 { 1e9 / per_s } else { f64::INFINITY };
        Self { rng: Rng::new(seed, STREAM), mean_ns, at_ns: 0.0 }
    }

    /// When the next request arrives, nanoseconds.
    pub fn next_ns(&mut self) -> f64 {
        self.at_ns += self.rng.exponential() * self.mean_ns;
        self.at_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_come_at_the_rate_and_are_as_spread_as_chance_makes_them() {
        let mut arrivals = Poisson::new(1000.0, 7);
        let times: Vec<f64> = (0..100_000).map(|_| arrivals.next_ns()).collect();
        assert!(times.windows(2).all(|pair| pair[0] < pair[1]));
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // Exponential: the standard deviation is the mean, 1 ms.
        assert!((mean - 1.0).abs() < 0.02 && (variance.sqrt() - 1.0).abs() < 0.02, "{mean} {variance}");
    }

    #[test]
    fn a_seed_gives_the_same_arrivals_and_no_rate_gives_none() {
        let first = |seed| Poisson::new(5.0, seed).next_ns();
        assert!((first(1) - first(1)).abs() < f64::EPSILON && (first(1) - first(2)).abs() > 1.0);
        assert!(Poisson::new(0.0, 1).next_ns().is_infinite());
    }
}
