//! A seeded bijection of `0..n`, so that hot ranks lie scattered over the space instead of side by
//! side.

use crate::pick::Rng;

/// Rounds of multiply and xor-shift on the next power of two, walked until the value falls back
/// below `n` (cycle walking: under two steps on average, because the power is below `2n`). Every
/// round is invertible, hence the whole is a permutation; nothing is stored, so a space of 2^40
/// pages costs as little as one of 8.
#[derive(Clone, Debug)]
pub struct Permutation {
    n: u64,
    mask: u64,
    shift: u32,
    keys: [u64; 3],
}

impl Permutation {
    /// A permutation of `0..n`; `n` of 0 or 1 gives the identity.
    pub(crate) fn new(n: u64, rng: &mut Rng) -> Self {
        let bits = 64 - n.saturating_sub(1).leading_zeros();
        let mask = if bits == 64 { u64::MAX } else { (1u64 << bits) - 1 };
        let shift = (bits / 2).max(1);
        Permutation { n, mask, shift, keys: [rng.next(), rng.next(), rng.next()] }
    }

    /// A permutation of `0..n` that follows from a seed.
    #[must_use]
    pub fn seeded(n: u64, seed: u64) -> Self {
        Self::new(n, &mut Rng::new(seed, 0))
    }

    /// The image of `rank`, which is below `n`.
    #[inline]
    #[must_use]
    pub fn apply(&self, rank: u64) -> u64 {
        debug_assert!(rank < self.n.max(1));
        let mut x = rank;
        loop {
            for key in self.keys {
                x = (x ^ (key >> 7)) & self.mask;
                x = x.wrapping_mul(key | 1) & self.mask;
                x ^= x >> self.shift;
            }
            if x < self.n || self.n < 2 {
                return if self.n < 2 { 0 } else { x };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_hit_once() {
        for n in [1u64, 2, 3, 5, 8, 100, 1000, 1024, 4097] {
            let permutation = Permutation::new(n, &mut Rng::new(n, 0));
            let mut seen: Vec<u64> = (0..n).map(|i| permutation.apply(i)).collect();
            seen.sort_unstable();
            assert!(seen.iter().copied().eq(0..n), "{n}");
        }
    }

    #[test]
    fn neighbours_are_torn_apart() {
        let permutation = Permutation::new(1_000_000, &mut Rng::new(1, 0));
        let near = (0..10_000).filter(|&i| permutation.apply(i).abs_diff(permutation.apply(i + 1)) < 1000).count();
        assert!(near < 100, "{near}");
    }
}
