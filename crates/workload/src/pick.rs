//! Drawing: the generator, uniform and weighted choices. No division and no floating point where
//! requests are drawn.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng as _, SeedableRng as _};

/// The one random generator of this crate: PCG-64 MCG, fixed so that a seed gives the same workload
/// for ever.
#[derive(Clone, Debug)]
pub(crate) struct Rng(Pcg64Mcg);

impl Rng {
    /// Streams keep the parts of a workload independent: changing `reads=` does not move the
    /// addresses drawn.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        Rng(Pcg64Mcg::seed_from_u64(seed ^ stream.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
    }

    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform below `n` by multiply and shift; the bias is below n / 2^64.
    #[inline]
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// Uniform in (0, 1].
    #[inline]
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Exponential of mean 1.
    #[inline]
    pub(crate) fn exponential(&mut self) -> f64 {
        -self.unit().ln()
    }
}

/// A probability as a threshold for 32 random bits, so that 0 is never and 1 is always.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(probability: f64) -> Self {
        Chance((probability.clamp(0.0, 1.0) * (1u64 << 32) as f64).round() as u64)
    }

    /// Whether the upper 32 bits of a draw fall under the threshold.
    #[inline]
    pub(crate) fn hit(self, draw: u64) -> bool {
        (draw >> 32) < self.0
    }

    pub(crate) fn never(self) -> bool {
        self.0 == 0
    }
}

/// Weighted choice in constant time: the alias method of Walker, built as Vose describes
/// (IEEE Trans. Software Engineering 17(9), 1991).
#[derive(Clone, Debug)]
pub(crate) struct Alias {
    /// Threshold of the low half of the draw, and where to go above it.
    cells: Vec<(u64, u32)>,
}

impl Alias {
    /// From weights that are finite, not negative and not all 0.
    pub(crate) fn new(weights: &[f64]) -> Self {
        let total: f64 = weights.iter().sum();
        let n = weights.len() as f64;
        let mut scaled: Vec<f64> = weights.iter().map(|w| w / total * n).collect();
        let mut cells: Vec<(u64, u32)> = (0..weights.len()).map(|i| (u64::MAX, i as u32)).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..weights.len()).partition(|&i| scaled[i] < 1.0);
        while let (Some(&s), Some(&l)) = (small.last(), large.last()) {
            small.pop();
            cells[s] = ((scaled[s] * u64::MAX as f64) as u64, l as u32);
            scaled[l] -= 1.0 - scaled[s];
            if scaled[l] < 1.0 {
                large.pop();
                small.push(l);
            }
        }
        Alias { cells }
    }

    /// Index chosen by one draw.
    #[inline]
    pub(crate) fn pick(&self, draw: u64) -> usize {
        let wide = u128::from(draw) * self.cells.len() as u128;
        let (threshold, other) = self.cells[(wide >> 64) as usize];
        if wide as u64 <= threshold { (wide >> 64) as usize } else { other as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_at_the_ends() {
        assert!(!Chance::new(0.0).hit(0));
        assert!(Chance::new(1.0).hit(u64::MAX));
        assert!(Chance::new(0.5).hit(0) && !Chance::new(0.5).hit(u64::MAX));
    }

    #[test]
    fn alias_draws_the_weights() {
        let weights = [1.0, 0.0, 5.0, 2.5, 1.5];
        let alias = Alias::new(&weights);
        let mut rng = Rng::new(7, 0);
        let mut counts = [0u32; 5];
        for _ in 0..1_000_000 {
            counts[alias.pick(rng.next())] += 1;
        }
        for (count, weight) in counts.iter().zip(weights) {
            assert!((f64::from(*count) / 1e6 - weight / 10.0).abs() < 0.003, "{counts:?}");
        }
    }
}
