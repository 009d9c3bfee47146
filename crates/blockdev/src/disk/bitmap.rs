//! A bit for each page, with operations on ranges a word at a time.

use std::ops::Range;

const WORD: u32 = u64::BITS;

/// A bit for each page of a shard. Memory that was never set takes no space.
#[derive(Debug)]
pub(super) struct Bitmap {
    words: Vec<u64>,
    len: u32,
}

impl Bitmap {
    /// All clear, or all set.
    pub(super) fn new(len: u32, set: bool) -> Self {
        let words = len.div_ceil(WORD) as usize;
        Self { words: if set { vec![u64::MAX; words] } else { vec![0; words] }, len }
    }

    #[inline]
    pub(super) fn get(&self, at: u32) -> bool {
        self.words[(at / WORD) as usize] >> (at % WORD) & 1 != 0
    }

    #[inline]
    pub(super) fn set(&mut self, at: u32) {
        self.words[(at / WORD) as usize] |= 1 << (at % WORD);
    }

    /// Clears a bit; answers whether it was set.
    #[inline]
    pub(super) fn clear(&mut self, at: u32) -> bool {
        let (word, bit) = (&mut self.words[(at / WORD) as usize], 1 << (at % WORD));
        let was = *word & bit != 0;
        *word &= !bit;
        was
    }

    /// Moves the set bits of a range to another bitmap of the same length; answers how many of them
    /// were clear there.
    pub(super) fn move_to(&mut self, to: &mut Self, range: Range<u32>) -> u32 {
        debug_assert!(range.end <= self.len && self.len == to.len);
        let mut new = 0;
        for (word, mask) in masks(range) {
            let moved = self.words[word] & mask;
            new += (moved & !to.words[word]).count_ones();
            to.words[word] |= moved;
            self.words[word] &= !mask;
        }
        new
    }

    /// Clears a range; answers how many bits were set.
    pub(super) fn clear_range(&mut self, range: Range<u32>) -> u32 {
        let mut cleared = 0;
        for (word, mask) in masks(range) {
            cleared += (self.words[word] & mask).count_ones();
            self.words[word] &= !mask;
        }
        cleared
    }

    /// The end of the run of bits equal to the one at `from`, `end` at most.
    pub(super) fn run_end(&self, from: u32, end: u32) -> u32 {
        debug_assert!(from < end && end <= self.len);
        let set = self.get(from);
        self.find(from, end, !set)
    }

    /// The first bit from `from` on that is `set`, or `end`.
    pub(super) fn find(&self, from: u32, end: u32, set: bool) -> u32 {
        let mut at = from;
        while at < end {
            let word = self.words[(at / WORD) as usize];
            let wanted = if set { word } else { !word } >> (at % WORD);
            if wanted != 0 {
                return (at + wanted.trailing_zeros()).min(end);
            }
            at = (at / WORD + 1) * WORD;
        }
        end
    }
}

/// The words of a range, with a mask of the bits inside it.
fn masks(range: Range<u32>) -> impl Iterator<Item = (usize, u64)> {
    let Range { start, end } = range;
    let (first, last) = (start / WORD, end.div_ceil(WORD).max(start / WORD));
    (first..last).filter(move |_| start < end).map(move |word| {
        let from = start.max(word * WORD) - word * WORD;
        let to = (end - word * WORD).min(WORD);
        (word as usize, u64::MAX << from & u64::MAX >> (WORD - to))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_do_what_single_bits_do(
            ops in prop::collection::vec((0..4_u8, 0..300_u32, 0..300_u32), 1..40),
        ) {
            const LEN: u32 = 300;
            let (mut data, mut pending) = (Bitmap::new(LEN, false), Bitmap::new(LEN, false));
            let (mut plain, mut moved) = (vec![false; LEN as usize], vec![false; LEN as usize]);
            for (op, a, b) in ops {
                let (from, to) = (a.min(b), a.max(b));
                match op {
                    0 => for at in from..to { data.set(at); plain[at as usize] = true; },
                    1 => {
                        let mut new = 0;
                        for at in from as usize..to as usize {
                            new += u32::from(plain[at] && !moved[at]);
                            moved[at] |= plain[at];
                            plain[at] = false;
                        }
                        prop_assert_eq!(data.move_to(&mut pending, from..to), new);
                    }
                    2 => {
                        let were = moved[from as usize..to as usize].iter().filter(|bit| **bit).count();
                        moved[from as usize..to as usize].fill(false);
                        prop_assert_eq!(pending.clear_range(from..to), were as u32);
                    }
                    _ if from < to => {
                        let slice = &plain[from as usize..to as usize];
                        let run = slice.iter().take_while(|bit| **bit == slice[0]).count() as u32;
                        prop_assert_eq!(data.run_end(from, to), from + run);
                        let found = slice.iter().position(|bit| *bit).map_or(to, |at| from + at as u32);
                        prop_assert_eq!(data.find(from, to, true), found);
                    }
                    _ => {}
                }
                for at in 0..LEN {
                    prop_assert_eq!((data.get(at), pending.get(at)), (plain[at as usize], moved[at as usize]));
                }
            }
        }
    }
}
