//! One bit a page.

use alloc::vec::Vec;

/// A set of small numbers.
#[derive(Debug)]
pub(super) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    pub(super) fn new(bits: u32) -> Self {
        Self { words: alloc::vec![0; bits.div_ceil(64) as usize] }
    }

    #[inline]
    pub(super) fn has(&self, at: u32) -> bool {
        self.words[at as usize / 64] >> (at % 64) & 1 == 1
    }

    #[inline]
    pub(super) fn set(&mut self, at: u32) {
        self.words[at as usize / 64] |= 1 << (at % 64);
    }

    /// Clears a bit; whether it was set.
    #[inline]
    pub(super) fn take(&mut self, at: u32) -> bool {
        let word = &mut self.words[at as usize / 64];
        let was = *word >> (at % 64) & 1 == 1;
        *word &= !(1 << (at % 64));
        was
    }

    /// Bits 32 * at and on, the first in the lowest place.
    pub(super) fn word(&self, at: u32) -> u32 {
        (self.words[at as usize / 2] >> (32 * (at % 2))) as u32
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.words.capacity() * size_of::<u64>()) as u64
    }
}
