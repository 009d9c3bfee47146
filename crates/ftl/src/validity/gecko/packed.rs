//! Packed entries: each as short as what it says, for
//! [`GeckoOptions::packed`](crate::config::GeckoOptions::packed).
//!
//! Most entries of the younger runs are one dead page and most neighbours are near, so two or three
//! bytes do where the paper's entry takes a key and a bitmap. `FORMAT.md` has the bytes.

use super::format::HEADER_BYTES;

/// Bit of the first byte: one dead page, whose offset is in the low bits, and no erase flag.
const SINGLE: u8 = 0x80;
/// Bit of the first byte: the sub-entry number is one more than the last, and is not written.
const NEXT: u8 = 0x40;
/// Bit of the first byte: the erase flag.
const FLAG: u8 = 0x20;
/// Low bits of the first byte: so many offsets follow, or an offset, or [`BITMAP`].
const LOW: u8 = 0x1F;
/// In the low bits: the bitmap follows.
const BITMAP: u8 = LOW;

/// The sub-entry number before a page's first entry.
pub(super) const START: u32 = u32::MAX;

/// How sub-entries are packed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packing {
    pub bitmap_bytes: usize,
    /// Bytes of an offset in a list.
    pub offset_bytes: usize,
}

/// What was read of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unpacked {
    /// Its sub-entry number × 2 + erase flag.
    pub key: u32,
    /// Where the next one begins.
    pub end: usize,
}

impl Packing {
    /// The packing of bitmaps of so many pages.
    pub const fn new(chunk: u32) -> Self {
        Self { bitmap_bytes: chunk.div_ceil(8) as usize, offset_bytes: if chunk <= 256 { 1 } else { 2 } }
    }

    /// The most bytes that an entry takes.
    pub const fn most(self) -> usize {
        1 + 5 + self.bitmap_bytes
    }

    /// Writes the entry that follows sub-entry `before` to the start of `out`, which has room for
    /// [`Packing::most`] and a word; answers how many bytes it takes.
    pub fn put(self, out: &mut [u8], before: u32, key: u32, bitmap: &[u64]) -> usize {
        let dead: u32 = bitmap.iter().map(|word| word.count_ones()).sum();
        let delta = (key >> 1).wrapping_sub(before);
        debug_assert!(delta != 0, "two entries of sub-entry {before}");
        let mut first = if delta == 1 { NEXT } else { 0 };
        let mut at = 1;
        if delta != 1 {
            let mut rest = delta;
            while rest >= 0x80 {
                out[at] = rest as u8 | 0x80;
                rest >>= 7;
                at += 1;
            }
            out[at] = rest as u8;
            at += 1;
        }
        let lowest = bitmap[0].trailing_zeros() as u8;
        if dead == 1 && key & 1 == 0 && lowest <= LOW {
            out[0] = first | SINGLE | lowest;
            return at;
        }
        first |= if key & 1 != 0 { FLAG } else { 0 };
        if dead < u32::from(BITMAP) && (dead as usize * self.offset_bytes) < self.bitmap_bytes {
            out[0] = first | dead as u8;
            for (index, &word) in bitmap.iter().enumerate() {
                let mut left = word;
                while left != 0 {
                    let offset = 64 * index as u32 + left.trailing_zeros();
                    out[at..at + self.offset_bytes].copy_from_slice(&offset.to_le_bytes()[..self.offset_bytes]);
                    at += self.offset_bytes;
                    left &= left - 1;
                }
            }
            return at;
        }
        out[0] = first | BITMAP;
        for (bytes, word) in out[at..at + self.bitmap_bytes].chunks_mut(8).zip(bitmap) {
            bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
        }
        at + self.bitmap_bytes
    }

    /// Reads the entry at `at`, which follows sub-entry `before`, into `bitmap`. A page that is
    /// damaged beyond what the device noticed gives wrong entries, and no more.
    #[inline]
    pub fn get(self, page: &[u8], at: usize, before: u32, bitmap: &mut [u64]) -> Unpacked {
        let byte = |at: usize| page.get(at).copied().unwrap_or(0);
        let first = byte(at);
        let (mut end, mut delta) = (at + 1, 1);
        if first & NEXT == 0 {
            (delta, end) = varint(page, end);
        }
        bitmap.fill(0);
        let id = before.wrapping_add(delta);
        if first & SINGLE != 0 {
            bitmap[0] = 1 << (first & LOW);
            return Unpacked { key: id << 1, end };
        }
        if first & LOW == BITMAP {
            for (index, word) in bitmap.iter_mut().enumerate() {
                let bytes = self.bitmap_bytes.saturating_sub(8 * index).min(8);
                *word = (0..bytes).fold(0, |word, i| word | u64::from(byte(end + 8 * index + i)) << (8 * i));
            }
            end += self.bitmap_bytes;
        } else {
            for _ in 0..first & LOW {
                let high = if self.offset_bytes == 2 { usize::from(byte(end + 1)) << 8 } else { 0 };
                let offset = usize::from(byte(end)) | high;
                if let Some(word) = bitmap.get_mut(offset / 64) {
                    *word |= 1 << (offset % 64);
                }
                end += self.offset_bytes;
            }
        }
        Unpacked { key: id << 1 | u32::from(first & FLAG != 0), end }
    }

    /// Where so many entries of a page end.
    pub fn end(self, page: &[u8], count: u32) -> usize {
        let mut at = HEADER_BYTES;
        for _ in 0..count {
            let first = page.get(at).copied().unwrap_or(0);
            at = if first & NEXT == 0 { varint(page, at + 1).1 } else { at + 1 };
            at += match first & LOW {
                _ if first & SINGLE != 0 => 0,
                BITMAP => self.bitmap_bytes,
                offsets => usize::from(offsets) * self.offset_bytes,
            };
        }
        at
    }
}

/// The number at `at`, seven bits a byte, and where it ends.
#[inline]
fn varint(page: &[u8], at: usize) -> (u32, usize) {
    let (mut value, mut end) = (0, at);
    for shift in (0..35).step_by(7) {
        let byte = page.get(end).copied().unwrap_or(0);
        value |= u32::from(byte & 0x7F).unbounded_shl(shift);
        end += 1;
        if byte & 0x80 == 0 {
            break;
        }
    }
    (value, end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    proptest! {
        #[test]
        fn entries_come_back(
            chunk in 1_u32..600,
            entries in prop::collection::btree_map(0_u32..1 << 30, (prop::collection::vec(any::<u32>(), 0..80), any::<bool>()), 1..60),
        ) {
            let packing = Packing::new(chunk);
            let words = packing.bitmap_bytes.div_ceil(8);
            let mut page = vec![0; HEADER_BYTES + 60 * packing.most() + 8];
            let (mut at, mut before, mut put) = (HEADER_BYTES, START, Vec::new());
            for (id, (offsets, flag)) in &entries {
                let mut bitmap = vec![0_u64; words];
                offsets.iter().map(|offset| offset % chunk).for_each(|bit| bitmap[bit as usize / 64] |= 1 << (bit % 64));
                let key = id << 1 | u32::from(*flag);
                let length = packing.put(&mut page[at..], before, key, &bitmap);
                prop_assert!(length <= packing.most());
                if id.wrapping_sub(before) < 1 << 21 {
                    prop_assert!(length <= 4 + packing.bitmap_bytes, "no longer than the paper's entry");
                }
                (at, before) = (at + length, *id);
                put.push((key, bitmap));
            }
            prop_assert_eq!(packing.end(&page, entries.len() as u32), at);
            let (mut from, mut before) = (HEADER_BYTES, START);
            for (key, bitmap) in put {
                let mut got = vec![u64::MAX; words];
                let unpacked = packing.get(&page, from, before, &mut got);
                prop_assert_eq!((unpacked.key, &got), (key, &bitmap));
                (from, before) = (unpacked.end, key >> 1);
            }
        }

        #[test]
        fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..200), count in 0_u32..100) {
            let packing = Packing::new(128);
            let (mut at, mut bitmap) = (HEADER_BYTES, [0; 2]);
            for _ in 0..count {
                at = packing.get(&bytes, at, START, &mut bitmap).end;
            }
            prop_assert!(packing.end(&bytes, count) >= HEADER_BYTES);
        }
    }

    #[test]
    fn a_dead_page_near_the_last_takes_two_bytes() {
        let packing = Packing::new(32);
        let mut out = [0; 32];
        assert_eq!(packing.put(&mut out, 10, 20 << 1, &[1 << 31]), 2);
        assert_eq!(packing.put(&mut out, 10, 11 << 1, &[1]), 1);
        assert_eq!(packing.put(&mut out, 10, 11 << 1, &[u64::from(u32::MAX)]), 5);
    }
}
