//! One bit a page.

use alloc::vec::Vec;

/// A set of small numbers.
#[derive(Debug)]
pub(crate) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    pub(crate) fn new(bits: u32) -> Self {
        Self { words: alloc::vec![0; bits.div_ceil(64) as usize] }
    }

    #[inline]
    pub(crate) fn has(&self, at: u32) -> bool {
        self.words[at as usize / 64] >> (at % 64) & 1 == 1
    }

    #[inline]
    pub(crate) fn set(&mut self, at: u32) {
        self.words[at as usize / 64] |= 1 << (at % 64);
    }

    /// Clears a bit; whether it was set.
    #[inline]
    pub(crate) fn take(&mut self, at: u32) -> bool {
        let word = &mut self.words[at as usize / 64];
        let was = *word >> (at % 64) & 1 == 1;
        *word &= !(1 << (at % 64));
        was
    }

    /// Clears so many bits from `from` on.
    pub(crate) fn clear(&mut self, from: u32, count: u32) {
        for at in from..from + count {
            self.take(at);
        }
    }

    pub(crate) fn clear_all(&mut self) {
        self.words.fill(0);
    }

    /// Bits 32 * at and on, the first in the lowest place.
    pub(crate) fn word(&self, at: u32) -> u32 {
        (self.words[at as usize / 2] >> (32 * (at % 2))) as u32
    }

    pub(crate) fn bytes(&self) -> u64 {
        (self.words.capacity() * size_of::<u64>()) as u64
    }
}
