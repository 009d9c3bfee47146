//! The one source of chance. Its numbers are part of what a replay id means, so it is written out
//! here.

/// `SplitMix64` (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    /// A stream of numbers for one purpose.
    pub(crate) const fn new(seed: u64, purpose: u64) -> Self {
        Self(mix(seed, purpose))
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        scramble(self.0)
    }

    /// A number less than `end`, which must not be 0.
    pub(crate) const fn below(&mut self, end: u32) -> u32 {
        (self.next() % end as u64) as u32
    }

    /// Whether something that happens once in `times` happens now.
    pub(crate) const fn one_in(&mut self, times: u32) -> bool {
        self.below(times) == 0
    }
}

const fn scramble(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// A number that depends on both and on nothing else.
pub(crate) const fn mix(seed: u64, item: u64) -> u64 {
    scramble(seed.wrapping_add(item.wrapping_mul(0xD1B5_4A32_D192_ED03)).wrapping_add(0x9E37_79B9_7F4A_7C15))
}
