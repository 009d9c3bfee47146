//! What a cached table keeps of each page's past beside its entry: the cached hotness table (CHT)
//! and the extended translation pages (ASA-FTL).
//!
//! 1. A past is when the host wrote the page, as a sequence number, and the stream that the page
//!    went to. The paper keeps the age with the time at which the entry left the cache, and adds
//!    the time since then when it comes back; the difference of two times is the same age.
//! 2. A past takes four bytes: three bits of the stream, then the sequence number in units of
//!    [`UNIT`] programs, modulo 2^29 of them. An age beyond 2^33 programs (32 TiB of pages of
//!    4 KiB) reads as a smaller one.
//! 3. A translation page holds its entries first, then as many pasts. With eight bytes an entry it
//!    holds half as many, and there are twice as many translation pages.
//! 4. An entry that a collector brings into the cache says nothing of the past. The past that flash
//!    holds stays as it is then.
//! 5. A battery does not save pasts. After power loss those that were only in RAM are older ones.

use super::cmt::Slot;
use super::{CachedMap, ENTRY_BYTES, Past, Stream};
use alloc::vec::Vec;
use nand::Lpn;

/// Programs that one step of a kept time stands for.
const UNIT: u64 = 16;

const STREAM_BITS: u32 = 3;

/// Steps of time after which they begin again.
const STEPS: u32 = 1 << (32 - STREAM_BITS);

/// No past is known; what an erased page reads as.
const UNKNOWN: u32 = u32::MAX;

/// Entries that a translation page holds.
pub const fn entries_of(page_bytes: u32, pasts: bool) -> u32 {
    let bytes = ENTRY_BYTES as u32;
    page_bytes / if pasts { 2 * bytes } else { bytes }
}

/// The pasts of cached entries.
#[derive(Debug)]
pub(super) struct Pasts {
    /// By the place of the entry in the cache; empty if no pasts are kept.
    cached: Vec<u32>,
    entries_per_page: usize,
}

impl Pasts {
    /// For a cache of so many places; none are kept if there are 0.
    pub(super) fn new(places: u32, entries_per_page: u32) -> Self {
        Self { cached: alloc::vec![UNKNOWN; places as usize], entries_per_page: entries_per_page as usize }
    }

    /// Whether there are any.
    #[inline]
    pub(super) const fn are_kept(&self) -> bool {
        !self.cached.is_empty()
    }

    /// Bytes of a translation page to read for an entry, and its past if that is kept.
    #[inline]
    pub(super) const fn bytes_to_read(&self, index: usize) -> core::ops::Range<usize> {
        let last = if self.are_kept() { self.entries_per_page + index } else { index };
        index * ENTRY_BYTES..(last + 1) * ENTRY_BYTES
    }

    fn place(&self, index: usize) -> core::ops::Range<usize> {
        let at = (self.entries_per_page + index) * ENTRY_BYTES;
        at..at + ENTRY_BYTES
    }

    /// An entry came into the cache.
    #[inline]
    pub(super) fn came(&mut self, slot: Slot) {
        if let Some(past) = self.cached.get_mut(slot.0 as usize) {
            *past = UNKNOWN;
        }
    }

    /// The entry of the last place has moved to another, if to any.
    #[inline]
    pub(super) fn moved(&mut self, to: Option<Slot>) {
        if let (Some(to), [others @ .., last]) = (to, &mut self.cached[..]) {
            others[to.0 as usize] = core::mem::replace(last, UNKNOWN);
        }
    }

    /// Takes over the past of an entry from a translation page.
    #[inline]
    pub(super) fn load(&mut self, slot: Slot, page: &[u8], index: usize) {
        if self.are_kept() {
            let mut word = [0; ENTRY_BYTES];
            word.copy_from_slice(&page[self.place(index)]);
            self.cached[slot.0 as usize] = u32::from_le_bytes(word);
        }
    }

    /// Writes the past of an entry into a translation page, if it is known.
    #[inline]
    pub(super) fn store(&self, slot: Slot, page: &mut [u8], index: usize) {
        if self.is_known(slot) {
            page[self.place(index)].copy_from_slice(&self.cached[slot.0 as usize].to_le_bytes());
        }
    }

    /// Removes a past from a translation page.
    pub(super) fn clear(&self, page: &mut [u8], index: usize) {
        if self.are_kept() {
            page[self.place(index)].fill(0xFF);
        }
    }

    /// Whether the past of an entry is known.
    #[inline]
    pub(super) fn is_known(&self, slot: Slot) -> bool {
        self.cached.get(slot.0 as usize).is_some_and(|past| *past != UNKNOWN)
    }

    /// The past of an entry when the next program carries the sequence number `seq`.
    pub(super) fn get(&self, slot: Slot, seq: u64) -> Option<Past> {
        let word = self.cached.get(slot.0 as usize).copied().filter(|word| *word != UNKNOWN)?;
        let steps = time(seq).wrapping_sub(word >> STREAM_BITS) % STEPS;
        Some(Past { age: u64::from(steps) * UNIT, stream: Stream((word & ((1 << STREAM_BITS) - 1)) as u8) })
    }

    /// The host wrote the page of an entry when the next program carries the sequence number `seq`.
    pub(super) fn set(&mut self, slot: Slot, seq: u64, stream: Stream) {
        debug_assert!(!self.are_kept() || stream.0 < 1 << STREAM_BITS, "{stream:?} does not fit");
        if let Some(past) = self.cached.get_mut(slot.0 as usize) {
            let word = time(seq) << STREAM_BITS | u32::from(stream.0);
            // One step older, if it would read as unknown.
            *past = if word == UNKNOWN { word - (1 << STREAM_BITS) } else { word };
        }
    }

    /// Nothing is known any more of what is cached.
    pub(super) fn forget(&mut self) {
        self.cached.fill(UNKNOWN);
    }

    /// Bytes of RAM held.
    pub(super) fn ram_bytes(&self) -> u64 {
        (self.cached.capacity() * size_of::<u32>()) as u64
    }
}

impl CachedMap {
    /// The host wrote the page of an entry when the next program carries the sequence number `seq`.
    #[inline(never)]
    pub(super) fn note_past(&mut self, seq: u64, lpn: Lpn, stream: Stream) {
        if let Some(slot) = self.cmt.find(lpn) {
            debug_assert!(self.cmt.is_dirty(slot), "{lpn} was not recorded");
            self.pasts.set(slot, seq, stream);
        }
    }
}

/// A sequence number in steps.
const fn time(seq: u64) -> u32 {
    (seq / UNIT % STEPS as u64) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_past_comes_back_from_a_translation_page() {
        let mut pasts = Pasts::new(2, entries_of(64, true));
        let mut page = [0xFF; 64];
        assert_eq!((entries_of(64, true), entries_of(64, false)), (8, 16));
        assert_eq!(pasts.get(Slot(0), 5000), None);
        pasts.set(Slot(0), 3200, Stream(5));
        pasts.store(Slot(0), &mut page, 7);
        assert!(page[..60].iter().all(|byte| *byte == 0xFF), "the entries stay");
        pasts.came(Slot(0));
        assert!(!pasts.is_known(Slot(0)));
        pasts.store(Slot(0), &mut page, 7);
        pasts.load(Slot(1), &page, 7);
        assert_eq!(pasts.get(Slot(1), 4800), Some(Past { age: 1600, stream: Stream(5) }));
        pasts.clear(&mut page, 7);
        assert_eq!(page, [0xFF; 64]);
        assert_eq!([pasts.bytes_to_read(0), Pasts::new(0, 16).bytes_to_read(3)], [0..36, 12..16]);
    }

    #[test]
    fn times_begin_again_and_ages_do_not_notice() {
        let mut pasts = Pasts::new(1, 8);
        let end = UNIT * u64::from(STEPS);
        pasts.set(Slot(0), end - UNIT, Stream(7));
        assert_eq!(pasts.get(Slot(0), end + UNIT).map(|past| past.age), Some(3 * UNIT), "one step older: not unknown");
        pasts.set(Slot(0), end - UNIT, Stream(2));
        assert_eq!(pasts.get(Slot(0), end + UNIT).map(|past| past.age), Some(2 * UNIT));
    }
}
