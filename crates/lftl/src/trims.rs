//! Trims that power loss could undo: a bit for each logical page.
//!
//! A flush writes them to flash. The order makes it safe without a lock between writers and a
//! flush: who writes a page clears its bit and takes a sequence number after that; a flush takes a
//! sequence number and looks at the bits after that. So a trim that outranks a page by its number
//! was not followed by a write of that page.

use crate::meta::Stream;
use crate::sync::{AtomicU32, AtomicU64, Mutex, Ordering};
use nand::Lpn;

/// Pages that were trimmed, and whose trims flash does not hold.
pub(crate) struct Trims {
    bits: Vec<AtomicU64>,
    waiting: AtomicU32,
    /// Where trims are written. It is held while pages are trimmed, while trims are written, and
    /// while a checkpoint begins.
    pub(crate) log: Mutex<Stream>,
}

/// A range of trimmed pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) first: u32,
    pub(crate) count: u32,
}

impl Trims {
    pub(crate) fn new(pages: u32) -> Self {
        let words = pages.div_ceil(u64::BITS) as usize;
        let bits = (0..words).map(|_| AtomicU64::new(0)).collect();
        Self { bits, waiting: AtomicU32::new(0), log: Mutex::new(Stream::default()) }
    }

    fn word(&self, lpn: Lpn) -> (&AtomicU64, u64) {
        (&self.bits[lpn.index() / u64::BITS as usize], 1 << (lpn.0 % u64::BITS))
    }

    /// A page was trimmed. Its log is held.
    pub(crate) fn trimmed(&self, lpn: Lpn) {
        let (word, bit) = self.word(lpn);
        if word.fetch_or(bit, Ordering::AcqRel) & bit == 0 {
            self.waiting.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// A page is about to be programmed; its sequence number is not yet taken.
    pub(crate) fn written(&self, lpn: Lpn) {
        let (word, bit) = self.word(lpn);
        if word.load(Ordering::Acquire) & bit != 0 && word.fetch_and(!bit, Ordering::AcqRel) & bit != 0 {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
        }
    }

    pub(crate) fn any(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    /// Takes all bits, as ranges. The log is held, and a sequence number was taken.
    pub(crate) fn take(&self) -> Vec<Range> {
        let mut ranges: Vec<Range> = Vec::new();
        for (index, word) in self.bits.iter().enumerate() {
            if word.load(Ordering::Acquire) == 0 {
                continue;
            }
            let mut bits = word.swap(0, Ordering::AcqRel);
            self.waiting.fetch_sub(bits.count_ones(), Ordering::AcqRel);
            while bits != 0 {
                let at = bits.trailing_zeros();
                bits &= bits - 1;
                let lpn = index as u32 * u64::BITS + at;
                match ranges.last_mut() {
                    Some(last) if last.first + last.count == lpn => last.count += 1,
                    _ => ranges.push(Range { first: lpn, count: 1 }),
                }
            }
        }
        ranges
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn trims_are_taken_once_as_ranges() {
        let trims = Trims::new(200);
        for lpn in [3, 4, 5, 63, 64, 199] {
            trims.trimmed(Lpn(lpn));
            trims.trimmed(Lpn(lpn));
        }
        trims.written(Lpn(4));
        trims.written(Lpn(4));
        assert!(trims.any());
        let found: Vec<(u32, u32)> = trims.take().iter().map(|range| (range.first, range.count)).collect();
        assert_eq!(found, [(3, 1), (5, 1), (63, 2), (199, 1)]);
        assert!(!trims.any() && trims.take().is_empty());
    }
}
