//! One list: entries by logical page in a hash index, in LRU order, dirty ones also by translation
//! page.
//!
//! The LRU order can be in two segments, as DFTL has it: an entry that comes is on probation, one
//! that is used again is protected. So a scan of pages that are used once does not drive out what
//! is used often. The entry protected longest without being used goes back on probation when there
//! are too many, and the one longest on probation leaves.
//!
//! The third order is what lets a synchronisation find every dirty entry of one translation page
//! without scanning the cache (GeckoFTL, section 4, footnote 6), in one array access instead of a
//! tree walk.
//!
//! An entry takes 21 bytes, and each three entries take two hash buckets of three bytes.

mod dirty;
mod records;

use super::{Pages, Slot};
use alloc::vec::Vec;
use nand::{Lpn, Ppn};
use records::{Entry, Link, NONE, To};

const DIRTY: u8 = 1;
const UIP: u8 = 2;
const UNCERTAIN: u8 = 4;
const PROTECTED: u8 = 8;
/// The epoch of the last update stands above the flags, modulo 16. A checkpoint looks at every
/// entry before the next one begins, so that none stays dirty for more than three epochs.
const EPOCH_SHIFT: u32 = 4;
const FLAGS: u8 = (1 << EPOCH_SHIFT) - 1;
const EPOCHS: u8 = u8::MAX >> EPOCH_SHIFT;

/// More entries cannot be linked.
pub(super) const MAX_ENTRIES: u32 = NONE - 1;
/// Hash buckets for each three entries.
const BUCKETS_OF_THREE: usize = 2;

/// A cache in one list.
#[derive(Debug)]
pub(super) struct List {
    entries: Vec<Entry>,
    /// Entries that may be cached; there is one place more, so that an entry can come before
    /// another leaves.
    capacity: u32,
    /// Places that have held an entry.
    used: u32,
    /// The place that the next entry takes; [`NONE`] if another has to leave first.
    next: u32,
    /// Stamped on every update; advanced by checkpoints.
    epoch: u8,
    /// First entry of each hash bucket.
    buckets: Vec<Link>,
    newest: u32,
    oldest: u32,
    /// Entries that may be protected, and are; 0 for plain LRU order.
    protectable: u32,
    protected: u32,
    /// The newest entry on probation.
    probation: u32,
    /// First dirty entry of each translation page.
    dirty_heads: Vec<Link>,
    pages: Pages,
}

impl List {
    /// An empty cache for so many entries, at most [`MAX_ENTRIES`], of so many translation pages.
    pub(super) fn new(capacity: u32, translation_pages: u32, pages: Pages) -> Self {
        debug_assert!(capacity <= MAX_ENTRIES, "{capacity} entries cannot be linked");
        let places = capacity as usize + 1;
        Self {
            entries: alloc::vec![Entry::VACANT; places],
            capacity,
            used: 0,
            next: 0,
            epoch: 0,
            buckets: alloc::vec![Link::NONE; places * BUCKETS_OF_THREE / 3 + 1],
            newest: NONE,
            oldest: NONE,
            protectable: 0,
            protected: 0,
            probation: NONE,
            dirty_heads: alloc::vec![Link::NONE; translation_pages as usize],
            pages,
        }
    }

    /// How many entries more find room.
    pub(super) const fn room(&self) -> u32 {
        self.capacity.saturating_sub(self.used)
    }

    /// The same, empty, in two segments of which the protected one holds at most so many percent of
    /// the entries. Two are always on probation when one has to leave: the one that came, and that
    /// one.
    pub(super) fn segmented(mut self, percent: u32) -> Self {
        let share = u64::from(self.capacity) * u64::from(percent.min(100)) / 100;
        self.protectable = (share as u32).min(self.capacity.saturating_sub(1));
        self
    }

    pub(super) const fn capacity(&self) -> u32 {
        self.capacity
    }

    pub(super) fn ram_bytes(&self) -> (u64, u64) {
        let index = (self.buckets.capacity() + self.dirty_heads.capacity()) * size_of::<Link>();
        ((self.entries.capacity() * size_of::<Entry>()) as u64, index as u64)
    }

    #[inline]
    fn bucket(&self, lpn: Lpn) -> usize {
        let hash = lpn.0.wrapping_mul(0x9E37_79B1);
        ((u64::from(hash) * self.buckets.len() as u64) >> u32::BITS) as usize
    }

    /// Finds an entry; the order stays.
    #[inline]
    pub(super) fn find(&self, lpn: Lpn) -> Option<Slot> {
        let mut at = self.buckets[self.bucket(lpn)].get();
        while at != NONE {
            let entry = &self.entries[at as usize];
            if entry.lpn() == lpn {
                return Some(Slot(at));
            }
            at = entry.get(To::Chain);
        }
        None
    }

    #[inline]
    pub(super) fn lpn(&self, slot: Slot) -> Lpn {
        self.entries[slot.0 as usize].lpn()
    }

    #[inline]
    pub(super) fn ppn(&self, slot: Slot) -> Ppn {
        self.entries[slot.0 as usize].ppn()
    }

    #[inline]
    pub(super) fn set_ppn(&mut self, slot: Slot, ppn: Ppn) {
        debug_assert!(self.lpn(slot).is_some(), "{slot:?} holds no entry");
        self.entries[slot.0 as usize].set_ppn(ppn);
    }

    #[inline]
    pub(super) fn is_dirty(&self, slot: Slot) -> bool {
        self.entries[slot.0 as usize].meta() & DIRTY != 0
    }

    /// Whether a before-image of the entry is in flash that was not yet reported (GeckoFTL, section
    /// 4.1).
    #[inline]
    pub(super) fn is_uip(&self, slot: Slot) -> bool {
        self.entries[slot.0 as usize].meta() & UIP != 0
    }

    /// The before-image was found without being synchronised. An entry that recovery made keeps its
    /// flag: its translation page may name yet another copy.
    pub(super) fn clear_uip(&mut self, slot: Slot) {
        if !self.is_uncertain(slot) {
            self.clear(slot.0, UIP);
        }
    }

    /// Whether recovery made the entry, so that its before-image may have been reported, erased or
    /// written again.
    #[inline]
    pub(super) fn is_uncertain(&self, slot: Slot) -> bool {
        self.entries[slot.0 as usize].meta() & UNCERTAIN != 0
    }

    /// Marks an entry as made by recovery: dirty, with a before-image that nothing is known of
    /// (C.3.2).
    pub(super) fn mark_recovered(&mut self, slot: Slot) {
        self.mark_dirty(slot, true);
        self.set(slot.0, UNCERTAIN);
    }

    /// Marks an entry dirty, and as having an unidentified before-image if `uip`.
    #[inline]
    pub(super) fn mark_dirty(&mut self, slot: Slot, uip: bool) {
        let at = slot.0;
        let was = self.entries[at as usize].meta();
        let flags = was & FLAGS | DIRTY | if uip { UIP } else { 0 };
        self.entries[at as usize].set_meta(flags | self.epoch << EPOCH_SHIFT);
        if was & DIRTY != 0 {
            return;
        }
        let page = self.pages.of(self.entries[at as usize].lpn()) as usize;
        let head = self.dirty_heads[page].replace(at);
        debug_assert!(head == NONE || self.is_dirty_of(head, page as u32), "the list of page {page} leads elsewhere");
        self.entries[at as usize].set(To::Dirty, head);
    }

    #[inline]
    fn set(&mut self, at: u32, flag: u8) {
        let entry = &mut self.entries[at as usize];
        entry.set_meta(entry.meta() | flag);
    }

    #[inline]
    fn clear(&mut self, at: u32, flags: u8) {
        let entry = &mut self.entries[at as usize];
        entry.set_meta(entry.meta() & !flags);
    }

    /// The before-image of an entry has been, or is being, reported.
    #[inline]
    pub(super) fn settle_before_image(&mut self, slot: Slot) {
        debug_assert!(self.is_dirty(slot), "{} is on flash as it is here", self.lpn(slot));
        self.clear(slot.0, UIP | UNCERTAIN);
    }

    /// Marks an entry clean, with no before-image in flash. Takes a step for each entry of the
    /// translation page that became dirty after it.
    #[inline]
    pub(super) fn mark_clean(&mut self, slot: Slot) {
        debug_assert!(self.is_dirty(slot), "{} is clean", self.lpn(slot));
        self.clear(slot.0, DIRTY | UIP | UNCERTAIN);
        let next = self.entries[slot.0 as usize].get(To::Dirty);
        let page = self.pages.of(self.lpn(slot)) as usize;
        let mut before = self.dirty_heads[page].get();
        if before == slot.0 {
            self.dirty_heads[page].replace(next);
            return;
        }
        while self.entries[before as usize].get(To::Dirty) != slot.0 {
            before = self.entries[before as usize].get(To::Dirty);
        }
        self.entries[before as usize].set(To::Dirty, next);
    }

    /// Whether both neighbours of a place, or the ends of the order, lead to it.
    fn is_in_order(&self, at: u32) -> bool {
        let entry = &self.entries[at as usize];
        let (newer, older) = (entry.get(To::Newer), entry.get(To::Older));
        let from_newer = if newer == NONE { self.newest } else { self.entries[newer as usize].get(To::Older) };
        let from_older = if older == NONE { self.oldest } else { self.entries[older as usize].get(To::Newer) };
        (from_newer, from_older) == (at, at)
    }

    /// Has two places be neighbours in the order; [`NONE`] is either end.
    #[inline]
    fn join(&mut self, newer: u32, older: u32) {
        if newer == NONE {
            self.newest = older
        } else {
            self.entries[newer as usize].set(To::Older, older)
        }
        if older == NONE { self.oldest = newer } else { self.entries[older as usize].set(To::Newer, newer) }
    }

    #[inline]
    fn unlink(&mut self, at: u32) {
        debug_assert!(self.is_in_order(at), "place {at} is not in the order");
        let entry = &self.entries[at as usize];
        self.join(entry.get(To::Newer), entry.get(To::Older));
    }

    /// As [`List::unlink`], and out of its segment.
    fn unlink_from_segment(&mut self, at: u32) {
        let is_protected = self.is_protected(at);
        debug_assert!(!is_protected || self.probation != at, "place {at} is in both segments");
        if is_protected {
            self.protected -= 1;
            self.clear(at, PROTECTED);
        } else if self.probation == at {
            self.probation = self.entries[at as usize].get(To::Older);
        }
        self.unlink(at);
    }

    #[inline]
    fn is_protected(&self, at: u32) -> bool {
        self.entries[at as usize].meta() & PROTECTED != 0
    }

    /// The entry that was protected longest without being used; [`NONE`] if none is protected.
    fn oldest_protected(&self) -> u32 {
        if self.probation == NONE { self.oldest } else { self.entries[self.probation as usize].get(To::Newer) }
    }

    /// Puts an entry on probation, as the newest.
    fn push_on_probation(&mut self, at: u32) {
        let newer = self.oldest_protected();
        debug_assert!((newer == NONE) == (self.protected == 0));
        if newer == NONE {
            self.push_newest(at);
        } else {
            let older = self.probation;
            let entry = &mut self.entries[at as usize];
            entry.set(To::Newer, newer);
            entry.set(To::Older, older);
            self.join(newer, at);
            self.join(at, older);
        }
        debug_assert!(self.is_in_order(at));
        self.probation = at;
        debug_assert!((self.entries[at as usize].get(To::Newer) == NONE) == (self.protected == 0));
    }

    /// Protects an entry, as the newest; another goes back on probation if there are too many.
    fn protect(&mut self, at: u32) {
        self.unlink_from_segment(at);
        self.push_newest(at);
        self.set(at, PROTECTED);
        self.protected += 1;
        if self.protected > self.protectable {
            let demoted = self.oldest_protected();
            self.clear(demoted, PROTECTED);
            self.protected -= 1;
            self.probation = demoted;
        }
        debug_assert!(self.protected <= self.protectable && self.newest == at);
        debug_assert!(self.is_protected(self.oldest_protected()));
    }

    #[inline]
    fn push_newest(&mut self, at: u32) {
        let head = self.newest;
        let entry = &mut self.entries[at as usize];
        entry.set(To::Newer, NONE);
        entry.set(To::Older, head);
        self.newest = at;
        if head == NONE {
            self.oldest = at
        } else {
            self.entries[head as usize].set(To::Newer, at)
        }
        debug_assert!(self.is_in_order(at));
    }

    /// Makes an entry the most recently used.
    #[inline]
    pub(super) fn touch(&mut self, slot: Slot) {
        if self.protectable > 0 {
            self.protect(slot.0);
        } else if self.newest != slot.0 {
            self.unlink(slot.0);
            self.push_newest(slot.0);
        }
        debug_assert!(self.newest == slot.0);
    }

    /// The least recently used entry, of those on probation if there are segments.
    #[inline]
    pub(super) fn oldest(&self) -> Option<Slot> {
        (self.oldest != NONE).then_some(Slot(self.oldest))
    }

    /// The entry that leaves next after this one.
    pub(super) fn newer(&self, slot: Slot) -> Option<Slot> {
        let at = self.entries[slot.0 as usize].get(To::Newer);
        (at != NONE).then_some(Slot(at))
    }

    /// Whether an entry has to leave before another can come.
    #[inline]
    pub(super) fn is_overfull(&self) -> bool {
        self.next == NONE
    }

    /// Caches a clean entry that is not there. The cache must not be overfull.
    #[inline]
    pub(super) fn insert(&mut self, lpn: Lpn, ppn: Ppn) -> Slot {
        debug_assert!(!self.is_overfull() && self.find(lpn).is_none(), "{lpn} cannot be cached");
        let at = self.next;
        self.used = self.used.max(at + 1);
        self.next = if self.used <= self.capacity { self.used } else { NONE };
        debug_assert!(
            !self.entries[at as usize].lpn().is_some(),
            "place {at} holds {}",
            self.entries[at as usize].lpn()
        );
        let bucket = self.bucket(lpn);
        let chain = self.buckets[bucket].replace(at);
        let entry = &mut self.entries[at as usize];
        entry.set_lpn(lpn);
        entry.set_ppn(ppn);
        entry.set_meta(0);
        entry.set(To::Chain, chain);
        if self.protectable > 0 {
            self.push_on_probation(at)
        } else {
            self.push_newest(at)
        }
        debug_assert!(self.find(lpn) == Some(Slot(at)) && self.used <= self.capacity + 1);
        Slot(at)
    }

    /// Takes a clean entry out of the cache.
    #[inline]
    pub(super) fn remove(&mut self, slot: Slot) {
        debug_assert!(!self.is_dirty(slot), "{} leaves the cache dirty", self.lpn(slot));
        debug_assert!(self.is_overfull(), "{} leaves a cache that is not full", self.lpn(slot));
        self.unhash(slot.0);
        if self.protectable > 0 {
            self.unlink_from_segment(slot.0)
        } else {
            self.unlink(slot.0)
        }
        self.entries[slot.0 as usize].set_lpn(Lpn::NONE);
        debug_assert!(self.find(self.lpn(slot)).is_none() && self.next == NONE);
        self.next = slot.0;
    }

    /// Begins a new epoch of updates.
    pub(super) fn advance_epoch(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// The first dirty entry, in the order of places from `from` on, that was not updated in this
    /// epoch or the one before.
    pub(super) fn next_stale(&self, from: u32) -> Option<Slot> {
        let stale = |entry: &Entry| {
            entry.meta() & DIRTY != 0 && self.epoch.wrapping_sub(entry.meta() >> EPOCH_SHIFT) & EPOCHS >= 2
        };
        let rest = self.entries.get(from as usize..self.used as usize)?;
        rest.iter().position(stale).map(|at| Slot(from + at as u32))
    }

    #[inline]
    fn unhash(&mut self, at: u32) {
        let chain = self.entries[at as usize].get(To::Chain);
        let bucket = self.bucket(self.entries[at as usize].lpn());
        let mut link = self.buckets[bucket].get();
        if link == at {
            self.buckets[bucket].replace(chain);
            return;
        }
        while self.entries[link as usize].get(To::Chain) != at {
            link = self.entries[link as usize].get(To::Chain);
        }
        self.entries[link as usize].set(To::Chain, chain);
    }
}
