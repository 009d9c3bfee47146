//! Sets of few ways each, as in the cache of a processor: no index, no links, seven bytes an entry.
//!
//! 1. Page t of n entries has the sets from t·k on, modulo the number of sets, k = n / ways. So the
//!    dirty entries of a translation page are found in as many places as it has entries, and
//!    neighbouring translation pages have neighbouring sets.
//! 2. Of a page's k sets, entry o has that of number o + o / k, modulo k: consecutive entries are
//!    in different sets, and so are those whose distance is k.
//! 3. What the number of its set does not say of a logical page is its tag, of two bytes: how often
//!    the sets began anew before those of its page, and o / k. So a cache can be too small for a
//!    disk.
//! 4. The entries of a set are ordered by their last use. An entry has its rank in half a byte, and
//!    what is known of its before-image and the epoch of its update in the other half.
//! 5. An entry that comes to a full set waits in a place of its own until the set's least recently
//!    used entry has left, and takes over its place then. The cache is overfull meanwhile.

use super::{Before, Dirty, NOWHERE, Pages, Slot};
use alloc::vec::Vec;
use core::ops::Range;
use nand::{Lpn, Ppn};

/// A rank has four bits.
pub(super) const MOST_WAYS: u32 = 16;

/// A place that holds no entry.
const VACANT: u16 = u16::MAX;

/// What is known of an entry: its lowest two bits.
const STATE: u8 = 3;
const CLEAN: u8 = 0;
const DIRTY: u8 = 1;
/// Dirty, with a before-image in flash that was not reported.
const UIP: u8 = 2;
/// As [`UIP`], and made by recovery.
const UNCERTAIN: u8 = 3;

/// The epoch of the last update, modulo 4: a checkpoint looks at every entry before the next one
/// begins, so that no dirty one is older than two epochs.
const EPOCH_SHIFT: u32 = 2;
const EPOCHS: u8 = 3;

/// How many entries of the set were used since.
const RANK_SHIFT: u32 = 4;
const FIRST_RANK: u8 = 1 << RANK_SHIFT;
const REST: u8 = FIRST_RANK - 1;

/// Where entries are.
#[derive(Clone, Copy, Debug)]
struct Places {
    pages: Pages,
    /// Sets that there are.
    sets: u32,
    ways: u32,
    /// k: sets that a translation page has.
    sets_of_page: u32,
    /// Entries of a translation page that share a set, rounded up.
    rows: u32,
}

impl Places {
    const fn new(sets: u32, ways: u32, pages: Pages) -> Self {
        let entries = pages.entries_per_page;
        let enough = entries.div_ceil(ways);
        let sets_of_page = if enough < sets { enough } else { sets };
        Self { pages, sets, ways, sets_of_page, rows: entries.div_ceil(sets_of_page) }
    }

    const fn capacity(&self) -> u32 {
        self.sets * self.ways
    }

    /// The tag of the last entry of so many translation pages.
    const fn largest_tag(&self, translation_pages: u32) -> u64 {
        let turns = (translation_pages as u64 * self.sets_of_page as u64).saturating_sub(1) / self.sets as u64;
        (turns + 1) * self.rows as u64 - 1
    }

    /// The set and the tag of a logical page.
    #[inline]
    fn locate(&self, lpn: Lpn) -> (u32, u16) {
        let page = self.pages.of(lpn);
        let entry = lpn.0 - page * self.pages.entries_per_page;
        let row = entry / self.sets_of_page;
        let line = page * self.sets_of_page + (entry + row) % self.sets_of_page;
        let tag = line / self.sets * self.rows + row;
        debug_assert!(tag < u32::from(VACANT), "the tag of {lpn} takes more than two bytes");
        (line % self.sets, tag as u16)
    }

    /// The logical page with this tag in a set.
    fn lpn(&self, set: u32, tag: u16) -> Lpn {
        let (turns, row) = (u32::from(tag) / self.rows, u32::from(tag) % self.rows);
        let line = turns * self.sets + set;
        let (page, shifted) = (line / self.sets_of_page, line % self.sets_of_page);
        let entry = (shifted + self.sets_of_page - row % self.sets_of_page) % self.sets_of_page;
        Lpn(page * self.pages.entries_per_page + row * self.sets_of_page + entry)
    }
}

/// A cache in sets.
#[derive(Debug)]
pub(super) struct Sets {
    of: Places,
    /// No logical page from this one on has an entry.
    end: u32,
    /// The tags of all places, set by set, those of a set in no order.
    tags: Vec<u16>,
    /// Of all places, and of the one beside the sets.
    ppns: Vec<Ppn>,
    metas: Vec<u8>,
    /// The entry that waits for a place in its set; [`Lpn::NONE`] if none does.
    waiting: Lpn,
    used: u32,
    epoch: u8,
    /// The set that was full last when an entry came.
    hand: u32,
}

impl Sets {
    /// Why there is no such cache of so many translation pages, in words.
    pub(super) fn check(entries: u32, ways: u32, translation_pages: u32, pages: Pages) -> Result<(), &'static str> {
        if !(2..=MOST_WAYS).contains(&ways) {
            return Err("a set has from 2 to 16 ways");
        }
        let of = Self::places(entries, ways, pages);
        if of.largest_tag(translation_pages) < u64::from(VACANT) {
            Ok(())
        } else {
            Err("tags of two bytes do not tell so many logical pages apart; use a larger cache, or fewer ways")
        }
    }

    fn places(entries: u32, ways: u32, pages: Pages) -> Places {
        let ways = ways.min(entries).max(1);
        Places::new((entries / ways).max(1), ways, pages)
    }

    /// An empty cache for so many entries, rounded down to whole sets.
    pub(super) fn new(entries: u32, ways: u32, translation_pages: u32, pages: Pages) -> Self {
        let of = Self::places(entries, ways, pages);
        let capacity = of.capacity() as usize;
        debug_assert!(capacity <= entries.max(1) as usize, "{entries} entries make {capacity}");
        Self {
            of,
            end: translation_pages.saturating_mul(pages.entries_per_page),
            tags: alloc::vec![VACANT; capacity],
            ppns: alloc::vec![Ppn::NONE; capacity + 1],
            metas: alloc::vec![!REST; capacity + 1],
            waiting: Lpn::NONE,
            used: 0,
            epoch: 0,
            hand: 0,
        }
    }

    /// How many entries more find room, if they are of the right sets.
    pub(super) const fn room(&self) -> u32 {
        self.capacity().saturating_sub(self.used)
    }

    /// Whether an entry finds room beside those that are there.
    pub(super) fn has_room(&self, lpn: Lpn) -> bool {
        let set = self.of.locate(lpn).0;
        self.vacant(set).is_some()
    }

    /// Whether entries of different logical pages find room if no others are there.
    pub(super) fn have_room(&self, lpns: impl Iterator<Item = Lpn>) -> bool {
        let mut more: Vec<u32> = lpns.map(|lpn| self.of.locate(lpn).0).collect();
        more.sort_unstable();
        more.chunk_by(|a, b| a == b).all(|of_set| of_set.len() <= self.of.ways as usize)
    }

    pub(super) const fn capacity(&self) -> u32 {
        self.of.capacity()
    }

    pub(super) fn ram_bytes(&self) -> u64 {
        let words = self.tags.capacity() * size_of::<u16>() + self.ppns.capacity() * size_of::<Ppn>();
        (words + self.metas.capacity()) as u64
    }

    fn range(&self, set: u32) -> Range<usize> {
        let first = (set * self.of.ways) as usize;
        first..first + self.of.ways as usize
    }

    /// The place beside the sets.
    const fn beside(&self) -> Slot {
        Slot(self.capacity())
    }

    fn meta(&self, slot: Slot) -> u8 {
        self.metas[slot.0 as usize]
    }

    fn state(&self, slot: Slot) -> u8 {
        self.meta(slot) & STATE
    }

    fn set_state(&mut self, slot: Slot, state: u8) {
        let meta = &mut self.metas[slot.0 as usize];
        *meta = *meta & !STATE | state;
    }

    /// The place in a set that holds a tag.
    fn place(&self, set: u32, tag: u16) -> Option<Slot> {
        let range = self.range(set);
        // Most sets are looked at in vain: without an early end the compiler compares many at once.
        let tags = &self.tags[range.clone()];
        if !tags.iter().fold(false, |found, other| found | (*other == tag)) {
            return None;
        }
        tags.iter().position(|other| *other == tag).map(|way| Slot((range.start + way) as u32))
    }

    fn vacant(&self, set: u32) -> Option<Slot> {
        self.place(set, VACANT)
    }

    /// Entries of a set. Places are taken in turn, and entries replaced, so that the first are in
    /// use.
    fn count(&self, set: u32) -> u32 {
        self.vacant(set).map_or(self.of.ways, |slot| slot.0 - set * self.of.ways)
    }

    /// The entry of a set before which so many were used.
    fn ranked(&self, set: u32, rank: u32) -> Option<Slot> {
        let range = self.range(set);
        let is_it = |at: &usize| u32::from(self.metas[*at] >> RANK_SHIFT) == rank && self.tags[*at] != VACANT;
        range.into_iter().find(is_it).map(|at| Slot(at as u32))
    }

    /// The place of an entry; none for what is no logical page of these translation pages.
    #[inline(never)]
    pub(super) fn find(&self, lpn: Lpn) -> Option<Slot> {
        if lpn.0 >= self.end {
            return None;
        }
        let (set, tag) = self.of.locate(lpn);
        let waiting = || (self.waiting == lpn).then(|| self.beside());
        self.place(set, tag).or_else(waiting)
    }

    pub(super) fn lpn(&self, slot: Slot) -> Lpn {
        if slot == self.beside() {
            return self.waiting;
        }
        match self.tags[slot.0 as usize] {
            VACANT => Lpn::NONE,
            tag => self.of.lpn(slot.0 / self.of.ways, tag),
        }
    }

    pub(super) fn ppn(&self, slot: Slot) -> Ppn {
        self.ppns[slot.0 as usize]
    }

    pub(super) fn set_ppn(&mut self, slot: Slot, ppn: Ppn) {
        debug_assert!(self.lpn(slot).is_some(), "{slot:?} holds no entry");
        self.ppns[slot.0 as usize] = ppn;
    }

    pub(super) fn is_dirty(&self, slot: Slot) -> bool {
        self.state(slot) >= DIRTY
    }

    pub(super) fn is_uip(&self, slot: Slot) -> bool {
        self.state(slot) >= UIP
    }

    #[inline(never)]
    pub(super) fn dirty_entry(&self, slot: Slot, page: u32) -> Dirty {
        Dirty {
            lpn: self.lpn(slot),
            ppn: self.ppn(slot),
            before: match self.state(slot) {
                UNCERTAIN => Before::Uncertain,
                UIP => Before::Unidentified,
                _ => Before::Settled,
            },
            next: self.next_dirty(slot, page..page + 1).map_or(NOWHERE, |next| next.0),
        }
    }

    pub(super) fn clear_uip(&mut self, slot: Slot) {
        if self.state(slot) == UIP {
            self.set_state(slot, DIRTY);
        }
    }

    pub(super) fn mark_recovered(&mut self, slot: Slot) {
        self.mark_dirty(slot, true);
        self.set_state(slot, UNCERTAIN);
    }

    pub(super) fn mark_dirty(&mut self, slot: Slot, uip: bool) {
        debug_assert!(self.lpn(slot).is_some(), "{slot:?} holds no entry");
        let state = self.state(slot).max(if uip { UIP } else { DIRTY });
        let meta = &mut self.metas[slot.0 as usize];
        *meta = *meta & !REST | self.epoch << EPOCH_SHIFT | state;
        debug_assert!(self.is_dirty(slot));
    }

    pub(super) fn settle_before_image(&mut self, slot: Slot) {
        debug_assert!(self.is_dirty(slot), "{} is on flash as it is here", self.lpn(slot));
        self.set_state(slot, DIRTY);
    }

    pub(super) fn mark_clean(&mut self, slot: Slot) {
        debug_assert!(self.is_dirty(slot), "{} is clean", self.lpn(slot));
        self.set_state(slot, CLEAN);
    }

    /// Makes an entry the most recently used of its set. The one that waits is.
    #[inline(never)]
    pub(super) fn touch(&mut self, slot: Slot) {
        if slot == self.beside() {
            return;
        }
        let range = self.range(slot.0 / self.of.ways);
        let rank = self.meta(slot) & !REST;
        for meta in &mut self.metas[range] {
            *meta += if *meta & !REST < rank { FIRST_RANK } else { 0 };
        }
        self.metas[slot.0 as usize] &= REST;
        debug_assert!(self.ranked(slot.0 / self.of.ways, 0) == Some(slot), "{slot:?} was used last");
    }

    /// The entry that has to leave for the one that waits.
    #[inline(never)]
    pub(super) fn oldest(&self) -> Option<Slot> {
        let set = self.waiting.is_some().then(|| self.of.locate(self.waiting).0)?;
        debug_assert!(self.vacant(set).is_none(), "{} has room in its set", self.waiting);
        self.ranked(set, self.of.ways - 1)
    }

    /// The first entry from a set on: those of a set from the least recently used on, and at the
    /// end the one that waits.
    fn first_from(&self, set: u32) -> Option<Slot> {
        let of_sets = (set..self.of.sets).find_map(|set| self.ranked(set, self.count(set).wrapping_sub(1)));
        of_sets.or_else(|| self.waiting.is_some().then(|| self.beside()))
    }

    pub(super) fn first(&self) -> Option<Slot> {
        self.first_from(0)
    }

    /// The entry after this one, in the order of [`Sets::first`].
    pub(super) fn next(&self, slot: Slot) -> Option<Slot> {
        if slot == self.beside() {
            return None;
        }
        let set = slot.0 / self.of.ways;
        match self.meta(slot) >> RANK_SHIFT {
            0 => self.first_from(set + 1),
            rank => self.ranked(set, u32::from(rank) - 1),
        }
    }

    /// The dirty entry used least recently of the set that was full last, or of the next set that
    /// has one: the one that waits has been used last of all.
    pub(super) fn oldest_dirty(&self) -> Option<Slot> {
        let sets = (self.hand..self.of.sets).chain(0..self.hand);
        let of_set = |set: u32| {
            let dirty = self.range(set).map(|at| Slot(at as u32)).filter(|slot| self.is_dirty(*slot));
            dirty.max_by_key(|slot| self.meta(*slot) >> RANK_SHIFT)
        };
        let waiting = || Some(self.beside()).filter(|slot| self.is_dirty(*slot));
        sets.into_iter().find_map(of_set).or_else(waiting)
    }

    pub(super) const fn is_overfull(&self) -> bool {
        self.waiting.is_some()
    }

    #[inline(never)]
    pub(super) fn insert(&mut self, lpn: Lpn, ppn: Ppn) -> Slot {
        debug_assert!(!self.is_overfull() && self.find(lpn).is_none(), "{lpn} cannot be cached");
        let (set, tag) = self.of.locate(lpn);
        debug_assert!(self.of.lpn(set, tag) == lpn, "set {set} and tag {tag} are those of another than {lpn}");
        let Some(slot) = self.vacant(set) else {
            (self.waiting, self.hand) = (lpn, set);
            let slot = self.beside();
            self.ppns[slot.0 as usize] = ppn;
            self.metas[slot.0 as usize] = CLEAN;
            return slot;
        };
        self.used += 1;
        self.tags[slot.0 as usize] = tag;
        self.ppns[slot.0 as usize] = ppn;
        self.metas[slot.0 as usize] = !REST;
        self.touch(slot);
        debug_assert!(self.find(lpn) == Some(slot) && !self.is_dirty(slot));
        slot
    }

    /// Takes the entry that leaves out of the cache. The one that waits takes over its place.
    #[inline(never)]
    pub(super) fn remove(&mut self, slot: Slot) {
        debug_assert!(!self.is_dirty(slot), "{} leaves the cache dirty", self.lpn(slot));
        debug_assert!(self.oldest() == Some(slot), "{} leaves, and is not the one that has to", self.lpn(slot));
        let (beside, lpn) = (self.beside().0 as usize, self.waiting);
        self.tags[slot.0 as usize] = self.of.locate(lpn).1;
        self.ppns[slot.0 as usize] = self.ppns[beside];
        self.touch(slot);
        self.metas[slot.0 as usize] = self.metas[beside];
        (self.metas[beside], self.waiting) = (CLEAN, Lpn::NONE);
        debug_assert!(self.find(lpn) == Some(slot) && !self.is_overfull());
    }

    pub(super) const fn advance_epoch(&mut self) {
        self.epoch = (self.epoch + 1) & EPOCHS;
    }

    pub(super) fn next_stale(&self, from: u32) -> Option<Slot> {
        let stale =
            |meta: &u8| meta & STATE >= DIRTY && self.epoch.wrapping_sub(meta >> EPOCH_SHIFT & EPOCHS) & EPOCHS >= 2;
        self.metas.get(from as usize..)?.iter().position(stale).map(|at| Slot(from + at as u32))
    }
}

/// The dirty entries of translation pages.
impl Sets {
    /// The first dirty entry of these translation pages, in the order of their sets.
    #[inline(never)]
    pub(super) fn first_dirty(&self, pages: Range<u32>) -> Option<Slot> {
        self.dirty_from(&pages, 0)
    }

    /// The one after this one.
    #[inline(never)]
    pub(super) fn next_dirty(&self, slot: Slot, pages: Range<u32>) -> Option<Slot> {
        if slot == self.beside() {
            return None;
        }
        let sets = self.of.sets;
        let first = pages.start * self.of.sets_of_page % sets;
        let (set, way) = (slot.0 / self.of.ways, slot.0 % self.of.ways);
        self.dirty_from(&pages, (set + sets - first) % sets * self.of.ways + way + 1)
    }

    /// The first dirty entry of these translation pages from the place of a number on, counted from
    /// the first of their sets.
    fn dirty_from(&self, pages: &Range<u32>, from: u32) -> Option<Slot> {
        let (ways, rows) = (self.of.ways, self.of.rows as u16);
        let first = pages.start * self.of.sets_of_page;
        let sets = (pages.len() as u64 * u64::from(self.of.sets_of_page)).min(self.of.sets.into()) as u32;
        let is_of = |slot: &Slot| self.is_dirty(*slot) && pages.contains(&self.of.pages.of(self.lpn(*slot)));
        for number in from / ways..sets {
            let line = first + number;
            let range = self.range(line % self.of.sets);
            if pages.len() == 1 {
                let lowest = (line / self.of.sets * self.of.rows) as u16;
                let is_near = |tag: &u16| tag.wrapping_sub(lowest) < rows;
                if !self.tags[range.clone()].iter().fold(false, |found, tag| found | is_near(tag)) {
                    continue;
                }
            }
            let skipped = if number == from / ways { from % ways } else { 0 };
            let mut slots = range.skip(skipped as usize).map(|at| Slot(at as u32));
            if let Some(slot) = slots.find(is_of) {
                return Some(slot);
            }
        }
        Some(self.beside()).filter(is_of)
    }

    /// Marks every entry of a translation page clean.
    #[inline(never)]
    pub(super) fn mark_all_clean(&mut self, page: u32) {
        let mut at = self.first_dirty(page..page + 1);
        while let Some(slot) = at {
            self.mark_clean(slot);
            at = self.next_dirty(slot, page..page + 1);
        }
        debug_assert!(self.first_dirty(page..page + 1).is_none(), "page {page} has a dirty entry left");
    }
}

#[cfg(test)]
mod tests;
