//! The cached mapping table (CMT): what is asked of it, and the two ways in which it is organised.
//!
//! 1. One list ([`list`]): any entry in any place, found by a hash index, in one LRU order. Dirty
//!    entries are linked by translation page. An entry takes 23 bytes with its share of the index.
//! 2. Sets ([`sets`]), as in the cache of a processor: an entry in one of the few ways of its set,
//!    each set in an LRU order of its own. No index and no links: an entry takes seven bytes.
//!
//! Either holds one entry more than its capacity, so that an entry can come before another leaves.

mod list;
mod saved;
mod sets;

use crate::inspect::{Inspector, LevelView};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use list::{List, MAX_ENTRIES};
use nand::{Lpn, Ppn};
use sets::Sets;

/// An entry of the cache by its place; places stay as long as the entry does, but for
/// [`Cmt::drop_clean`] and [`Cmt::remove`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mapping) struct Slot(pub(in crate::mapping) u32);

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(in crate::mapping) struct Asked {
    /// Entries that it holds, at least 2. Sets hold the next multiple of their ways below.
    pub(in crate::mapping) entries: u32,
    /// Percent of them in the protected segment of a segmented LRU order; 0 for plain LRU order.
    pub(in crate::mapping) protected_percent: u32,
    /// Ways of a set; 0 for one list.
    pub(in crate::mapping) ways: u32,
}

/// What is known of the copy of a page before that of its dirty entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// It was reported, or there is none.
    Settled,
    /// It was not reported ([`Cmt::is_uip`]).
    Unidentified,
    /// As that, and recovery made the entry: it may have been reported, erased or written again.
    Uncertain,
}

/// A dirty entry, as a synchronisation of its translation page needs it: of a size that fits two
/// registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dirty {
    pub(super) lpn: Lpn,
    pub(super) ppn: Ppn,
    pub(super) before: Before,
    next: u32,
}

/// No place.
const NOWHERE: u32 = u32::MAX;

impl Dirty {
    /// The one of the translation page that comes after it.
    #[inline]
    pub(super) fn next(self) -> Option<Slot> {
        (self.next != NOWHERE).then_some(Slot(self.next))
    }
}

/// How logical pages are divided over translation pages.
#[derive(Clone, Copy, Debug)]
struct Pages {
    entries_per_page: u32,
    /// Of a power of two, its logarithm; else [`NO_SHIFT`].
    shift: u32,
}

/// Entries of a page that are no power of two are divided by.
const NO_SHIFT: u32 = u32::MAX;

impl Pages {
    const fn new(entries_per_page: u32) -> Self {
        let is_power = entries_per_page.is_power_of_two();
        Self { entries_per_page, shift: if is_power { entries_per_page.trailing_zeros() } else { NO_SHIFT } }
    }

    #[inline]
    const fn of(self, lpn: Lpn) -> u32 {
        if self.shift == NO_SHIFT { lpn.0 / self.entries_per_page } else { lpn.0 >> self.shift }
    }
}

#[derive(Debug)]
enum Organisation {
    List(List),
    Sets(Sets),
}

/// The cached mapping table.
#[derive(Debug)]
pub(in crate::mapping) struct Cmt {
    organisation: Organisation,
    pages: Pages,
    asked: Asked,
    translation_pages: u32,
    /// Cached entries of each translation page; empty if nobody asks.
    cached_of: Vec<u16>,
    /// The translation page whose last cached entry left last, until it is asked for.
    left: Option<u32>,
}

/// The same question to either organisation.
macro_rules! ask {
    ($cmt:expr, $cache:ident => $answer:expr) => {
        match $cmt.organisation {
            Organisation::List(ref $cache) => $answer,
            Organisation::Sets(ref $cache) => $answer,
        }
    };
}

/// The same change of either organisation.
macro_rules! tell {
    ($cmt:expr, $cache:ident => $answer:expr) => {
        match $cmt.organisation {
            Organisation::List(ref mut $cache) => $answer,
            Organisation::Sets(ref mut $cache) => $answer,
        }
    };
}

impl Cmt {
    /// An empty cache. [`Cmt::refusal`] has to be asked before it is used.
    pub(in crate::mapping) fn new(asked: Asked, translation_pages: u32, entries_per_page: u32) -> Self {
        let pages = Pages::new(entries_per_page);
        let mut cmt = Self {
            organisation: Organisation::List(List::new(0, 0, pages)),
            pages,
            asked,
            translation_pages,
            cached_of: Vec::new(),
            left: None,
        };
        if cmt.refusal().is_none() {
            cmt.organisation = match asked.ways {
                0 => {
                    let list = List::new(asked.entries, translation_pages, pages);
                    Organisation::List(list.segmented(asked.protected_percent))
                }
                ways => Organisation::Sets(Sets::new(asked.entries, ways, translation_pages, pages)),
            };
        }
        cmt
    }

    /// The same, empty, counting the cached entries of each translation page.
    pub(super) fn counting(mut self) -> Self {
        self.cached_of = alloc::vec![0; self.translation_pages as usize];
        self
    }

    /// Why no cache can be as was asked for, if none can.
    pub(in crate::mapping) fn refusal(&self) -> Option<String> {
        let Asked { entries, protected_percent, ways } = self.asked;
        if ways == 0 {
            let reason = || format!("a cache of {entries} entries exceeds {MAX_ENTRIES}; use a smaller cache or disk");
            return (entries > MAX_ENTRIES).then(reason);
        }
        if protected_percent > 0 {
            return Some(format!("a cache in sets of {ways} ways has no protected segment; ask for one of both"));
        }
        let sets = Sets::check(entries, ways, self.translation_pages, self.pages);
        sets.err().map(|why| format!("no cache of {entries} entries is in sets of {ways} ways: {why}"))
    }

    /// The translation page of which the last cached entry left, if the cache counts entries; once.
    #[inline]
    pub(super) const fn take_left(&mut self) -> Option<u32> {
        self.left.take()
    }

    /// How many entries more find room.
    pub(super) const fn room(&self) -> u32 {
        ask!(self, cache => cache.room())
    }

    /// Whether one entry more finds room without another having to leave.
    pub(super) fn has_room(&self, lpn: Lpn) -> bool {
        match &self.organisation {
            Organisation::List(list) => list.room() > 0,
            Organisation::Sets(sets) => sets.has_room(lpn),
        }
    }

    /// Whether entries of different logical pages find room in an empty cache without one having to
    /// leave. Allocates.
    pub(super) fn takes(&self, lpns: impl ExactSizeIterator<Item = Lpn>) -> bool {
        match &self.organisation {
            Organisation::List(list) => lpns.len() <= list.capacity() as usize,
            Organisation::Sets(sets) => sets.have_room(lpns),
        }
    }

    pub(in crate::mapping) const fn capacity(&self) -> u32 {
        ask!(self, cache => cache.capacity())
    }

    /// Bytes of the entries, and of what leads to them.
    pub(in crate::mapping) fn ram_bytes(&self) -> (u64, u64) {
        let counts = (self.cached_of.capacity() * size_of::<u16>()) as u64;
        let (entries, index) = match &self.organisation {
            Organisation::List(list) => list.ram_bytes(),
            Organisation::Sets(sets) => (sets.ram_bytes(), 0),
        };
        (entries, index + counts)
    }

    /// Shows how full it is. Looks at every entry.
    pub(in crate::mapping) fn inspect(&self, inspector: &mut dyn Inspector) {
        let entries = self.slots().count() as u32;
        let dirty = self.slots().filter(|slot| self.is_dirty(*slot)).count() as u32;
        inspector.level(LevelView { name: "cmt", entries, capacity: self.capacity(), dirty });
    }

    /// Every entry: in a list, and in each set, the least recently used first.
    pub(in crate::mapping) fn slots(&self) -> impl Iterator<Item = Slot> {
        let first = match &self.organisation {
            Organisation::List(list) => list.oldest(),
            Organisation::Sets(sets) => sets.first(),
        };
        core::iter::successors(first, |slot| match &self.organisation {
            Organisation::List(list) => list.newer(*slot),
            Organisation::Sets(sets) => sets.next(*slot),
        })
    }

    /// The translation page that holds a logical page's entry.
    #[inline]
    pub(in crate::mapping) const fn translation_page(&self, lpn: Lpn) -> u32 {
        self.pages.of(lpn)
    }

    /// Finds an entry; the order stays.
    #[inline]
    pub(in crate::mapping) fn find(&self, lpn: Lpn) -> Option<Slot> {
        ask!(self, cache => cache.find(lpn))
    }

    #[inline]
    pub(in crate::mapping) fn lpn(&self, slot: Slot) -> Lpn {
        ask!(self, cache => cache.lpn(slot))
    }

    #[inline]
    pub(in crate::mapping) fn ppn(&self, slot: Slot) -> Ppn {
        ask!(self, cache => cache.ppn(slot))
    }

    #[inline]
    pub(in crate::mapping) fn set_ppn(&mut self, slot: Slot, ppn: Ppn) {
        tell!(self, cache => cache.set_ppn(slot, ppn));
    }

    #[inline]
    pub(in crate::mapping) fn is_dirty(&self, slot: Slot) -> bool {
        ask!(self, cache => cache.is_dirty(slot))
    }

    /// Whether a before-image of the entry is in flash that was not yet reported (GeckoFTL, section
    /// 4.1).
    #[inline]
    pub(in crate::mapping) fn is_uip(&self, slot: Slot) -> bool {
        ask!(self, cache => cache.is_uip(slot))
    }

    /// The before-image was found without being synchronised. An entry that recovery made keeps its
    /// flag: its translation page may name yet another copy.
    pub(in crate::mapping) fn clear_uip(&mut self, slot: Slot) {
        tell!(self, cache => cache.clear_uip(slot));
    }

    /// Marks an entry as made by recovery: dirty, with a before-image that nothing is known of
    /// (C.3.2).
    pub(in crate::mapping) fn mark_recovered(&mut self, slot: Slot) {
        tell!(self, cache => cache.mark_recovered(slot));
    }

    /// Marks an entry dirty, and as having an unidentified before-image if `uip`.
    #[inline]
    pub(in crate::mapping) fn mark_dirty(&mut self, slot: Slot, uip: bool) {
        tell!(self, cache => cache.mark_dirty(slot, uip));
    }

    /// A dirty entry of a translation page.
    #[inline]
    pub(super) fn dirty_entry(&self, slot: Slot, page: u32) -> Dirty {
        debug_assert!(self.is_dirty(slot) && self.pages.of(self.lpn(slot)) == page);
        match &self.organisation {
            Organisation::List(list) => list.dirty_entry(slot),
            Organisation::Sets(sets) => sets.dirty_entry(slot, page),
        }
    }

    /// The host wrote, or a collector moved, the page of an entry: it is dirty, and the most
    /// recently used. Where the page was.
    #[inline]
    pub(in crate::mapping) fn update(&mut self, slot: Slot, ppn: Ppn) -> Ppn {
        tell!(self, cache => {
            let old = cache.ppn(slot);
            cache.set_ppn(slot, ppn);
            cache.mark_dirty(slot, false);
            cache.touch(slot);
            old
        })
    }

    /// The before-image of an entry has been, or is being, reported.
    #[inline]
    pub(super) fn settle_before_image(&mut self, slot: Slot) {
        tell!(self, cache => cache.settle_before_image(slot));
    }

    /// Marks an entry clean, with no before-image in flash. In a list it takes a step for each
    /// entry of the translation page that became dirty after it.
    #[inline]
    pub(in crate::mapping) fn mark_clean(&mut self, slot: Slot) {
        tell!(self, cache => cache.mark_clean(slot));
    }

    /// Makes an entry the most recently used.
    #[inline]
    pub(in crate::mapping) fn touch(&mut self, slot: Slot) {
        tell!(self, cache => cache.touch(slot));
    }

    /// The entry that leaves next: in a list the least recently used, of those on probation if
    /// there are segments; in sets that of the set of the entry that came last, if that was full.
    #[inline]
    pub(in crate::mapping) fn leaving(&self) -> Option<Slot> {
        ask!(self, cache => cache.oldest())
    }

    /// Whether an entry has to leave before another can come.
    #[inline]
    pub(in crate::mapping) fn is_overfull(&self) -> bool {
        ask!(self, cache => cache.is_overfull())
    }

    /// Caches a clean entry that is not there. The cache must not be overfull.
    #[inline]
    pub(in crate::mapping) fn insert(&mut self, lpn: Lpn, ppn: Ppn) -> Slot {
        if !self.cached_of.is_empty() {
            let page = self.pages.of(lpn);
            debug_assert!(u32::from(self.cached_of[page as usize]) < self.pages.entries_per_page);
            self.cached_of[page as usize] += 1;
        }
        tell!(self, cache => cache.insert(lpn, ppn))
    }

    #[inline]
    fn entry_left(&mut self, lpn: Lpn) {
        if !self.cached_of.is_empty() {
            let page = self.pages.of(lpn);
            debug_assert!(self.cached_of[page as usize] > 0, "{lpn} was not counted");
            self.cached_of[page as usize] -= 1;
            if self.cached_of[page as usize] == 0 {
                self.left = Some(page);
            }
        }
    }

    /// Lets the entry that leaves next out of an overfull cache, if it is clean. In sets the entry
    /// that came last has another place then, which is the answer.
    #[inline]
    pub(in crate::mapping) fn drop_clean(&mut self) -> Option<Slot> {
        debug_assert!(self.is_overfull(), "nothing has to leave");
        let slot = self.leaving().filter(|slot| !self.is_dirty(*slot))?;
        self.remove(slot)
    }

    /// Takes the entry that leaves next, which is clean, out of an overfull cache; answers as
    /// [`Cmt::drop_clean`].
    #[inline]
    pub(in crate::mapping) fn remove(&mut self, slot: Slot) -> Option<Slot> {
        debug_assert!(self.is_overfull(), "{} leaves a cache that is not full", self.lpn(slot));
        if !self.cached_of.is_empty() {
            self.entry_left(self.lpn(slot));
        }
        match &mut self.organisation {
            Organisation::List(list) => {
                list.remove(slot);
                None
            }
            Organisation::Sets(sets) => {
                sets.remove(slot);
                Some(slot)
            }
        }
    }

    /// The dirty entry that will leave first; in sets, one that has not been used lately.
    pub(in crate::mapping) fn oldest_dirty(&self) -> Option<Slot> {
        match &self.organisation {
            Organisation::List(_) => self.slots().find(|slot| self.is_dirty(*slot)),
            Organisation::Sets(sets) => sets.oldest_dirty(),
        }
    }

    /// Begins a new epoch of updates.
    pub(in crate::mapping) fn advance_epoch(&mut self) {
        tell!(self, cache => cache.advance_epoch());
    }

    /// The first dirty entry, in the order of places from `from` on, that was not updated in this
    /// epoch or the one before.
    pub(in crate::mapping) fn next_stale(&self, from: u32) -> Option<Slot> {
        ask!(self, cache => cache.next_stale(from))
    }

    /// A dirty entry of these translation pages.
    #[inline]
    pub(in crate::mapping) fn first_dirty(&self, mut pages: Range<u32>) -> Option<Slot> {
        match &self.organisation {
            Organisation::List(list) => pages.find_map(|page| list.first_dirty(page)),
            Organisation::Sets(sets) => sets.first_dirty(pages),
        }
    }

    /// The dirty entry of these translation pages that comes after a dirty one.
    #[inline]
    pub(in crate::mapping) fn next_dirty(&self, slot: Slot, pages: Range<u32>) -> Option<Slot> {
        debug_assert!(pages.contains(&self.pages.of(self.lpn(slot))), "{} is of other pages", self.lpn(slot));
        match &self.organisation {
            Organisation::List(list) => list.next_dirty(slot).or_else(|| {
                let mut rest = self.pages.of(list.lpn(slot)) + 1..pages.end;
                rest.find_map(|page| list.first_dirty(page))
            }),
            Organisation::Sets(sets) => sets.next_dirty(slot, pages),
        }
    }

    /// Marks every entry of a translation page clean, as [`Cmt::mark_clean`] one.
    #[inline]
    pub(in crate::mapping) fn mark_all_clean(&mut self, page: u32) {
        tell!(self, cache => cache.mark_all_clean(page));
    }
}

#[cfg(test)]
mod tests;
