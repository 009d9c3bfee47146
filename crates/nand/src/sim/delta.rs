//! Pages as what differs from another page.

use alloc::vec::Vec;

/// Bytes of a word.
const WORD: usize = 4;

/// A page is kept by its differences if they are no more than one for so many bytes of it: they
/// take a sixteenth of it at most. Of versions that change a word or two each, twenty to forty then
/// share a page, where those and its share of it take least together.
const BYTES_A_CHANGE: usize = 96;

/// Bytes that are compared at once.
const STRIDE: usize = 64;

const ERASED: [u8; STRIDE] = [0xFF; STRIDE];

/// A word that is another. Packed like the cells of pages: there are millions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, packed(2))]
pub(super) struct Change {
    word: u16,
    now: [u8; WORD],
}

impl Change {
    /// Whether a page says the same; behind its end it reads as erased.
    fn is_in(&self, page: &[u8]) -> bool {
        let at = usize::from(self.word) * WORD;
        page.get(at..at + WORD).unwrap_or(&[0xFF; WORD]) == self.now
    }

    /// Makes the change, as far as it lies in the page.
    #[inline]
    pub(super) fn apply(&self, page: &mut [u8]) {
        let at = usize::from(self.word) * WORD;
        if let Some(word) = page.get_mut(at..at + WORD) {
            word.copy_from_slice(&self.now);
        } else if let Some(rest) = page.get_mut(at..) {
            rest.copy_from_slice(&self.now[..rest.len()]);
        }
    }
}

/// A page without the end that reads as erased.
pub(super) fn trimmed(page: &[u8]) -> &[u8] {
    let (strides, rest) = page.as_chunks::<STRIDE>();
    if !rest.is_empty() {
        return page;
    }
    let erased = strides.iter().rev().take_while(|stride| **stride == ERASED).count();
    &page[..page.len() - erased * STRIDE]
}

/// Gathers the words in which a trimmed page differs from another; whether they are few enough to
/// be kept instead of the page.
pub(super) fn differences(base: &[u8], page: &[u8], changes: &mut Vec<Change>) -> bool {
    changes.clear();
    let (was, rest) = base.as_chunks::<STRIDE>();
    let (now, more) = page.as_chunks::<STRIDE>();
    if !rest.is_empty() || !more.is_empty() || page.len().max(base.len()) / WORD > 1 << 16 {
        return false;
    }
    let most = page.len() / BYTES_A_CHANGE;
    for stride in 0..was.len().max(now.len()) {
        let (was, now) = (was.get(stride).unwrap_or(&ERASED), now.get(stride).unwrap_or(&ERASED));
        if !differ(was, now) {
            continue;
        }
        let mut differing = words_that_differ(was, now);
        if changes.len() + differing.count_ones() as usize > most {
            return false;
        }
        let (before, now) = (changes.len(), now.as_chunks::<WORD>().0);
        while differing != 0 {
            let word = differing.trailing_zeros() as usize;
            changes.push(Change { word: (stride * (STRIDE / WORD) + word) as u16, now: now[word] });
            differing &= differing - 1;
        }
        debug_assert!(changes[before..].iter().all(|change| change.is_in(page)), "a change is not what was programmed");
        debug_assert!(changes[before..].is_sorted_by(|one, next| { one.word } < { next.word }));
    }
    debug_assert!(changes.len() <= most, "{} changes are kept, and {most} at most", changes.len());
    true
}

/// The words in which two strides differ, a bit each, the first the lowest. Without a branch, so
/// that a compiler compares several words at once.
#[inline]
fn words_that_differ(was: &[u8; STRIDE], now: &[u8; STRIDE]) -> u32 {
    let words = was.as_chunks::<WORD>().0.iter().zip(now.as_chunks::<WORD>().0);
    let bits = words.enumerate().map(|(word, (was, now))| u32::from(was != now) << word);
    bits.fold(0, |differing, bit| differing | bit)
}

/// Whether any byte differs, without a branch for each, nor a call of `memcmp` for so few.
#[inline]
fn differ(was: &[u8; STRIDE], now: &[u8; STRIDE]) -> bool {
    let words = was.as_chunks::<8>().0.iter().zip(now.as_chunks::<8>().0);
    words.fold(0, |any, (was, now)| any | (u64::from_ne_bytes(*was) ^ u64::from_ne_bytes(*now))) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(seed: u8) -> Vec<u8> {
        (0..512_u32).map(|i| (i as u8).wrapping_mul(7).wrapping_add(seed)).collect()
    }

    #[test]
    fn a_change_takes_six_bytes() {
        assert_eq!(size_of::<Change>(), 6);
    }

    #[test]
    fn changes_make_one_page_of_the_other() {
        let (base, mut now, mut changes) = (page(1), page(1), Vec::new());
        assert!(differences(&base, &now, &mut changes));
        assert!(changes.is_empty());
        for at in [3, 60, 63] {
            now[at] ^= 0xA5;
        }
        assert!(differences(&base, &now, &mut changes));
        assert_eq!(changes.len(), 2, "two of the bytes are of a word");
        let mut made = base;
        changes.iter().for_each(|change| change.apply(&mut made));
        assert_eq!(made, now);
    }

    #[test]
    fn pages_that_differ_in_much_or_in_length_are_not_kept_by_their_differences() {
        let mut changes = Vec::new();
        assert!(!differences(&page(1), &page(2), &mut changes));
        assert!(!differences(&page(1)[..64], &page(1), &mut changes));
        assert!(!differences(&page(1)[..100], &page(1)[..100], &mut changes));
        let (base, mut now) = (page(1), page(1));
        for word in 0..5 {
            now[word * 40] ^= 1;
        }
        assert!(differences(&base, &now, &mut changes), "one for 96 bytes");
        now[508] ^= 1;
        assert!(!differences(&base, &now, &mut changes), "one more");
    }

    #[test]
    fn an_end_that_reads_as_erased_is_not_kept() {
        let mut long = page(1);
        long[448..].fill(0xFF);
        assert_eq!(trimmed(&long).len(), 448);
        long[447] = 0xFF;
        assert_eq!(trimmed(&long).len(), 448, "whole strides alone");
        assert!(trimmed(&[0xFF; 128]).is_empty() && trimmed(&[0xFF; 100]).len() == 100);
        let (base, mut changes) = (trimmed(&long), Vec::new());
        let mut longer = long.clone();
        longer[450] = 0;
        for (was, now) in [(base, trimmed(&longer)), (trimmed(&longer), base)] {
            assert!(was.len() != now.len() && differences(was, now, &mut changes));
            let mut made = [was, &[0xFF; 512][was.len()..]].concat();
            changes.iter().for_each(|change| change.apply(&mut made));
            assert_eq!(trimmed(&made), now);
        }
    }
}
