//! The translation table in flash, with a cache of entries in RAM (DFTL; GeckoFTL, section 4).
//!
//! 1. Translation page t holds the entries of logical pages t·n … t·n + n - 1, four bytes each; the
//!    global mapping directory (GMD) in RAM says where each translation page is.
//! 2. A lookup that misses the cache reads one translation page and caches the entry, clean.
//! 3. A write caches an entry, dirty. With [`Reporting::AtOnce`] (DFTL) a miss reads the
//!    translation page first and reports the old copy. With [`Reporting::WhenSynchronised`]
//!    (GeckoFTL, section 4.1) the entry gets the UIP flag: its before-image is reported when the
//!    entry is synchronised.
//! 4. When the cache is full its least recently used entry leaves. If it is dirty, its translation
//!    page is synchronised: read, brought up to date with *every* dirty entry of it, and
//!    programmed. The entry that comes is in the cache before the other leaves: so a translation
//!    page speaks for every page of host data programmed before it, and recovery can tell by
//!    sequence numbers which entries were only in RAM. One call synchronises one translation page,
//!    so that the pages that die in it are at most as many as it has entries. A cache can be in
//!    sets ([`CachedOptions::cache_ways`]): it is full then when one set is, and another of that
//!    leaves.
//! 5. With [`CachedOptions::checkpoints`], after every C insertions and updates every dirty entry
//!    that was last updated before the checkpoint before is synchronised (GeckoFTL, section 4.3).
//!    The paper finds those by a symbol in the LRU order; a read would move a dirty entry past it,
//!    so entries carry the epoch of their last update instead.
//! 6. With [`Reporting::WhenSynchronised`] every translation page says in its spare area from which
//!    sequence number on pages of host data may have entries that are only in RAM: how far back
//!    recovery has to look. Otherwise one that was moved as it is says how much older than its
//!    sequence number its contents are.
//! 7. With [`CachedOptions::recent_updates`] (LazyFTL) only the entries of so many pages written
//!    last may be dirty: when a page leaves their ring, its translation page is synchronised.
//! 8. A synchronised entry counts as clean only once its translation page is programmed: so at any
//!    time what is dirty in RAM and what is in flash make up the whole table.
//! 9. With [`CachedOptions::pasts`] (ASA-FTL) a translation page holds half as many entries, and
//!    for each of them when the host wrote the page and to which stream it went (`pasts.rs`).
//! 10. With [`CachedOptions::heat`] (FTRM) it is counted how often each translation page is used
//!     (`heat.rs`), for a mount to cache the entries of those used most (`refill.rs`).
//! 11. A trim changes the translation page at once. Its entry could not be found after power loss,
//!     and the page it forgets may be erased and hold other data by then.

mod checkpoints;
pub(super) mod cmt;
mod heat;
mod options;
mod pasts;
pub(super) mod recent;
mod refill;
mod restore;
mod synchronise;
mod work;

use super::{Mapping, is_page};
use crate::bound::Most;
use crate::contract::{FtlError, RamItem, RamReport};
use crate::flash::Purpose;
use crate::placement::{Past, Stream};
use crate::saved::Sink;
use crate::space::age::age;
use crate::space::core::{Core, Origin};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use checkpoints::Checkpoints;
use cmt::{Asked, Cmt};
use heat::Heat;
pub use heat::{THRESHOLD, Upkeep};
use nand::{Lpn, MetaPage, Nand, PageKind, Ppn, Spare};
pub use options::{CachedOptions, Refill, Reporting};
use pasts::Pasts;
pub(crate) use pasts::entries_of;
use recent::Recent;

/// Bytes of a mapping entry in flash.
const ENTRY_BYTES: usize = 4;

/// Logical pages that one step of a trim forgets at most: each can be a report to the store.
const TRIM_STEP: u32 = 256;

/// A translation page's auxiliary field is a sequence number without its lowest bits.
const BOUND_SHIFT: u32 = 9;

/// A translation table in flash behind a cache.
#[derive(Debug)]
pub struct CachedMap {
    reporting: Reporting,
    gmd: Vec<Ppn>,
    cmt: Cmt,
    pasts: Pasts,
    heat: Heat,
    refill: Refill,
    /// An entry that is not cached is that of a page never written.
    is_whole: bool,
    looks_up: bool,
    recent: Recent,
    /// What left the ring last could not be synchronised.
    late: bool,
    /// Nothing was programmed since saved state was loaded.
    resumed: bool,
    checkpoints: Checkpoints,
    /// Entries that a mount has found and not written yet: a translation page that is moved
    /// meanwhile takes them in.
    found: BTreeMap<Lpn, Ppn>,
    entries_per_page: u32,
    logical_pages: u32,
    buffer: MetaPage,
}

#[inline]
fn entry_at(page: &[u8], index: usize) -> Ppn {
    Ppn(u32::from_le_bytes(page.as_chunks::<ENTRY_BYTES>().0[index]))
}

#[inline]
fn set_entry(page: &mut [u8], index: usize, ppn: Ppn) {
    page.as_chunks_mut::<ENTRY_BYTES>().0[index] = ppn.0.to_le_bytes();
}

/// An entry read from flash; one that leads out of the device is damage.
#[inline]
fn checked<N: Nand>(core: &Core<N>, page: Ppn, entry: Ppn) -> Result<Ppn, FtlError> {
    if is_page(entry) && entry.0 >= core.space.geometry().pages() {
        let reason = "an entry leads to a page beyond the device's last";
        return Err(FtlError::Damaged { structure: "translation page", ppn: page, reason });
    }
    debug_assert!(!is_page(entry) || entry.0 < core.space.geometry().pages());
    Ok(entry)
}

impl CachedMap {
    /// The table of a device on which nothing was written.
    #[must_use]
    pub fn new(logical_pages: u32, page_bytes: u32, options: CachedOptions) -> Self {
        let entries_per_page = entries_of(page_bytes, options.pasts);
        let pages = logical_pages.div_ceil(entries_per_page);
        let asked = Asked {
            entries: options.cache_entries.max(2),
            protected_percent: options.protected_percent,
            ways: options.cache_ways,
        };
        let cmt = Cmt::new(asked, pages, entries_per_page);
        Self {
            reporting: options.reporting,
            gmd: alloc::vec![Ppn::NONE; pages as usize],
            heat: Heat::new(options.heat, pages),
            refill: options.refill,
            is_whole: options.refill == Refill::All,
            looks_up: options.looks_up,
            pasts: Pasts::new(if options.pasts { cmt.capacity() + 1 } else { 0 }, entries_per_page),
            recent: Recent::new(options.recent_updates),
            late: false,
            cmt: if options.heat.is_some() { cmt.counting() } else { cmt },
            resumed: false,
            checkpoints: Checkpoints {
                enabled: options.checkpoints,
                updates: 0,
                cursor: None,
                left: 0,
                began: [0; 2],
                bound: 0,
            },
            found: BTreeMap::new(),
            entries_per_page,
            logical_pages,
            buffer: MetaPage::new(page_bytes as usize),
        }
    }

    /// Translation pages of a device of so many logical pages.
    #[must_use]
    pub const fn translation_pages(logical_pages: u32, page_bytes: u32) -> u32 {
        logical_pages.div_ceil(page_bytes / ENTRY_BYTES as u32)
    }

    /// What flash says of a logical page; reads its translation page.
    fn fetch<N: Nand>(&mut self, core: &mut Core<N>, lpn: Lpn) -> Result<Ppn, FtlError> {
        debug_assert!(lpn.0 < self.logical_pages && self.cmt.find(lpn).is_none(), "{lpn} is cached");
        let page = self.gmd[self.cmt.translation_page(lpn) as usize];
        if !page.is_some() || self.is_whole {
            return Ok(Ppn::NONE);
        }
        let index = (lpn.0 % self.entries_per_page) as usize;
        let needed = self.pasts.bytes_to_read(index);
        core.flash.read_meta_part(Purpose::Translation, page, self.buffer.bytes_mut(), needed)?;
        checked(core, page, entry_at(&self.buffer, index))
    }

    /// Caches an entry of whose past nothing but what flash says is known.
    #[inline]
    fn insert(&mut self, lpn: Lpn, ppn: Ppn) -> cmt::Slot {
        let slot = self.cmt.insert(lpn, ppn);
        self.pasts.came(slot);
        slot
    }

    /// Lets the entry that leaves next out of an overfull cache, if it is clean.
    #[inline]
    fn drop_clean(&mut self) {
        if self.cmt.is_overfull() {
            let moved = self.cmt.drop_clean();
            self.pasts.moved(moved);
        }
    }

    /// Whether one of these entries of the translation page in the buffer is, or was when it was
    /// cached, not that of a page never written.
    fn is_any_mapped(&self, page: u32, mut indices: core::ops::Range<u32>) -> bool {
        indices.any(|index| {
            let cached = self.cmt.find(Lpn(page * self.entries_per_page + index));
            entry_at(&self.buffer, index as usize).is_some() || cached.is_some_and(|slot| self.cmt.ppn(slot).is_some())
        })
    }

    /// Has entries of the translation page in the buffer lead nowhere: what they led to died.
    fn clear_entries<N: Nand>(
        &mut self,
        core: &mut Core<N>,
        page: u32,
        indices: core::ops::Range<u32>,
    ) -> Result<(), FtlError> {
        let (read_from, buffer) = (self.gmd[page as usize], self.buffer.bytes_mut());
        for index in indices {
            let now = checked(core, read_from, entry_at(buffer, index as usize))?;
            if is_page(now) {
                core.page_died(now);
            }
            set_entry(buffer, index as usize, Ppn::NONE);
            self.pasts.clear(buffer, index as usize);
        }
        Ok(())
    }

    /// What is cached of a logical page is that it is not mapped, as flash says too.
    fn forget_entry(&mut self, lpn: Lpn) {
        if let Some(slot) = self.cmt.find(lpn) {
            self.cmt.set_ppn(slot, Ppn::NONE);
            self.pasts.came(slot);
            if self.cmt.is_dirty(slot) {
                self.cmt.mark_clean(slot);
            }
        }
    }

    /// A page of a logical page was programmed, and its entry cached. What leaves the ring of
    /// recent updates is synchronised before anything else is programmed: a mount finds one entry
    /// more than the ring holds, not two.
    #[inline]
    fn note_update(&mut self, seq: u64, lpn: Lpn, ppn: Ppn) {
        debug_assert!(self.cmt.find(lpn).is_some_and(|slot| self.cmt.is_dirty(slot) && self.cmt.ppn(slot) == ppn));
        self.checkpoints.updates += 1;
        if !self.recent.is_empty() {
            self.note_recent(seq, lpn, ppn);
        }
    }

    #[inline(never)]
    fn note_recent(&mut self, seq: u64, lpn: Lpn, ppn: Ppn) {
        if self.recent.push(lpn, ppn) {
            // What was programmed before the lap began that ends now has left the ring.
            self.checkpoints.bound = self.checkpoints.bound.max(self.checkpoints.began[0]);
            self.checkpoints.began = [seq, self.checkpoints.began[0]];
        }
        let (lpn, ppn) = self.recent.left();
        debug_assert!(!self.late, "what left the ring before is not on flash");
        self.late = self.cmt.find(lpn).is_some_and(|slot| self.cmt.is_dirty(slot) && self.cmt.ppn(slot) == ppn);
    }

    /// Does a piece of what has to come before anything else is programmed.
    fn catch_up<N: Nand>(&mut self, core: &mut Core<N>) -> Result<(), FtlError> {
        if self.late {
            debug_assert!(self.recent.left().0.is_some());
            self.synchronise(core, self.cmt.translation_page(self.recent.left().0), Purpose::Translation)?;
            self.late = false;
        } else if self.resumed {
            let page = self.cmt.oldest_dirty().map_or(0, |slot| self.cmt.translation_page(self.cmt.lpn(slot)));
            self.synchronise(core, page, Purpose::Checkpoint)?;
            self.resumed = false;
        } else if let Some(slot) = self.cmt.leaving() {
            if self.cmt.is_dirty(slot) {
                let page = self.cmt.translation_page(self.cmt.lpn(slot));
                self.synchronise(core, page, Purpose::Translation)?;
            }
            debug_assert!(self.cmt.leaving() == Some(slot), "another entry was used while {} left", self.cmt.lpn(slot));
            let moved = self.cmt.remove(slot);
            self.pasts.moved(moved);
            self.note_leaving(core)?;
        }
        Ok(())
    }
}

impl Mapping for CachedMap {
    fn is_lazy(&self) -> bool {
        self.reporting.is_lazy()
    }

    fn lookup<N: Nand>(&mut self, core: &mut Core<N>, lpn: Lpn) -> Result<Ppn, FtlError> {
        if let Some(slot) = self.cmt.find(lpn) {
            self.cmt.touch(slot);
            let ppn = self.cmt.ppn(slot);
            self.note_use(core, self.cmt.translation_page(lpn))?;
            return Ok(ppn);
        }
        let ppn = self.fetch(core, lpn)?;
        if ppn.is_some() {
            let slot = self.insert(lpn, ppn);
            self.pasts.load(slot, &self.buffer, (lpn.0 % self.entries_per_page) as usize);
            self.drop_clean();
            self.note_leaving(core)?;
            self.note_use(core, self.cmt.translation_page(lpn))?;
        }
        Ok(ppn)
    }

    fn peek<N: Nand>(&mut self, core: &mut Core<N>, lpn: Lpn) -> Result<Ppn, FtlError> {
        let cached = self.cmt.find(lpn).map(|slot| self.cmt.ppn(slot));
        cached.map_or_else(|| self.fetch(core, lpn), Ok)
    }

    fn record<N: Nand>(&mut self, core: &mut Core<N>, lpn: Lpn, ppn: Ppn) -> Result<(), FtlError> {
        debug_assert!(lpn.0 < self.logical_pages);
        let old = if let Some(slot) = self.cmt.find(lpn) {
            self.cmt.update(slot, ppn)
        } else {
            let in_flash = self.gmd[self.cmt.translation_page(lpn) as usize].is_some();
            let leaves_open = self.reporting.is_lazy() && !self.looks_up;
            let old = if leaves_open { Ppn::NONE } else { self.fetch(core, lpn)? };
            let slot = self.insert(lpn, ppn);
            self.cmt.mark_dirty(slot, leaves_open && in_flash);
            old
        };
        if is_page(old) {
            core.page_died(old);
        }
        self.note_update(core.seq, lpn, ppn);
        self.drop_clean();
        self.note_leaving(core)?;
        self.note_use(core, self.cmt.translation_page(lpn))
    }

    /// A migration is treated like a write, but its before-image goes with its block: an entry that
    /// was not cached gets no UIP flag.
    fn moved<N: Nand>(&mut self, core: &mut Core<N>, lpn: Lpn, from: Ppn, to: Ppn) -> Result<(), FtlError> {
        debug_assert!(lpn.0 < self.logical_pages && is_page(from) && from != to);
        match self.cmt.find(lpn) {
            // Two pages of a victim lived for the same logical page: only an image that contradicts
            // itself says so.
            Some(slot) if self.cmt.ppn(slot) != from => {
                if is_page(to) {
                    core.page_died(to);
                }
                return Ok(());
            }
            Some(slot) => _ = self.cmt.update(slot, to),
            None => {
                let slot = self.insert(lpn, to);
                self.cmt.mark_dirty(slot, false);
            }
        }
        self.note_update(core.seq, lpn, to);
        self.drop_clean();
        self.note_leaving(core)
    }

    fn forget<N: Nand>(&mut self, core: &mut Core<N>, lpn: Lpn, count: u32) -> Result<u32, FtlError> {
        let page = self.cmt.translation_page(lpn);
        let first = lpn.0 % self.entries_per_page;
        let count = count.min(self.entries_per_page - first).min(TRIM_STEP);
        debug_assert!(count > 0 && lpn.0 + count <= self.logical_pages);
        self.load_page(core, page, Purpose::Translation)?;
        if !self.is_any_mapped(page, first..first + count) {
            return Ok(count);
        }
        self.absorb(core, page)?;
        let before = core.deaths.noted();
        let cleared = self.clear_entries(core, page, first..first + count);
        if let Err(error) = cleared.and_then(|()| self.replace_page(core, page, Purpose::Translation)) {
            core.deaths.take_back(before);
            return Err(error);
        }
        (lpn.0..lpn.0 + count).for_each(|lpn| self.forget_entry(Lpn(lpn)));
        Ok(count)
    }

    fn find_own<N: Nand>(&self, _: &mut N, wanted: impl Fn(Ppn) -> bool) -> Result<Option<Ppn>, FtlError> {
        Ok(self.gmd.iter().copied().find(|ppn| wanted(*ppn)))
    }

    fn move_page<N: Nand>(&mut self, core: &mut Core<N>, origin: Origin, purpose: Purpose) -> Result<(), FtlError> {
        debug_assert!(self.owns(origin.ppn, &origin.spare), "{} is no part of the table", origin.ppn);
        if self.reporting.is_lazy() {
            // A plain copy would carry a sequence number that claims more than its contents say.
            return self.synchronise(core, origin.spare.tag, purpose);
        }
        if origin.spare.tag as usize >= self.gmd.len() {
            let reason = "it is of logical pages that the disk does not have";
            return Err(FtlError::Damaged { structure: "translation page", ppn: origin.ppn, reason });
        }
        let written = self.reporting.written_at(&origin.spare);
        let (to, spare) = core.move_metadata_page_as(purpose, origin, |seq| age(seq, written))?;
        self.gmd[spare.tag as usize] = to;
        core.space.page_died(origin.ppn);
        Ok(())
    }

    /// A ring of recent updates bounds how many pages a mount looks at: none may be programmed
    /// before what left the ring is on flash.
    fn moves_apart(&self) -> bool {
        self.recent.is_empty()
    }

    fn superseded(&mut self, lpn: Lpn, ppn: Ppn) -> bool {
        let Some(slot) = self.cmt.find(lpn) else { return false };
        if self.cmt.ppn(slot) == ppn {
            return false;
        }
        self.cmt.clear_uip(slot);
        true
    }

    fn owns(&self, ppn: Ppn, spare: &Spare) -> bool {
        spare.kind == PageKind::Translation && self.gmd.get(spare.tag as usize) == Some(&ppn)
    }

    /// An entry has to leave the cache, or one that left the ring to be synchronised; or nothing
    /// was programmed since saved state was loaded. Then a page of the table is programmed before
    /// any other, so that what was saved is stale whatever a cut leaves of a page of host data: it
    /// would not know of that one.
    #[inline]
    fn urgent(&self) -> bool {
        self.cmt.is_overfull() || self.late || self.resumed
    }

    #[inline]
    fn due(&self) -> bool {
        self.checkpoints.enabled
            && (self.checkpoints.updates >= self.cmt.capacity() || self.checkpoints.cursor.is_some())
    }

    fn maintain<N: Nand>(&mut self, core: &mut Core<N>) -> Result<bool, FtlError> {
        if self.urgent() {
            self.catch_up(core)?;
            return Ok(self.urgent());
        }
        self.continue_checkpoint(core)
    }

    /// The entry that would be synchronised next anyway is: it takes few programs more. Where only
    /// the pages written last may be dirty, a mount looks at all of them and need not tell which
    /// was the last.
    fn follow_up<N: Nand>(&mut self, core: &mut Core<N>) -> Result<(), FtlError> {
        match if self.reporting.is_lazy() && self.recent.is_empty() { self.cmt.oldest_dirty() } else { None } {
            Some(slot) => self.synchronise(core, self.cmt.translation_page(self.cmt.lpn(slot)), Purpose::Translation),
            None => Ok(()),
        }
    }

    fn reveal<N: Nand>(&mut self, core: &mut Core<N>) -> Result<bool, FtlError> {
        let Some(slot) = self.cmt.slots().find(|slot| self.cmt.is_uip(*slot)) else { return Ok(false) };
        debug_assert!(self.cmt.is_dirty(slot), "{} is clean and has a before-image", self.cmt.lpn(slot));
        self.synchronise(core, self.cmt.translation_page(self.cmt.lpn(slot)), Purpose::Translation)?;
        Ok(true)
    }

    fn refusal(&self) -> Option<String> {
        self.cmt.refusal()
    }

    fn most_work(&self, updates: u64, collections: u64) -> Most {
        self.most_synchronised(updates, collections)
    }

    fn reserve_pages(&self) -> u32 {
        self.checkpoint_step().max(self.recent.len().min(self.gmd.len() as u32))
    }

    fn footprint_pages(&self) -> u32 {
        self.gmd.len() as u32
    }

    /// If before-images are not looked up, every entry may have one to report, once.
    fn reports(&self) -> u32 {
        if self.reporting.is_lazy() && !self.looks_up { self.cmt.capacity() + 1 } else { 1 }
    }

    /// Before-images of a translation page that is synchronised, and what a trim forgets.
    fn most_deaths(&self) -> u32 {
        let before_images = if self.reporting.is_lazy() { self.entries_per_page.min(self.reports()) } else { 0 };
        before_images + TRIM_STEP
    }

    fn saved_bytes(&self) -> u64 {
        4 + self.cmt.saved_bytes()
    }

    /// One for the page whose program was cut short, one for a page that no entry leads to.
    fn disowning_pages(&self) -> u32 {
        2
    }

    /// A younger version of its translation page outranks it.
    fn disown<N: Nand>(&mut self, core: &mut Core<N>, kind: PageKind, tag: u32) -> Result<(), FtlError> {
        let page = match kind {
            PageKind::User => self.cmt.translation_page(Lpn(tag)),
            PageKind::Translation => tag,
            PageKind::Validity | PageKind::Checkpoint => return Ok(()),
        };
        self.synchronise(core, page, Purpose::Checkpoint)
    }

    fn save(&self, sink: &mut dyn Sink) -> Result<(), FtlError> {
        self.save_dirty(sink)
    }

    fn keeps_pasts(&self) -> bool {
        self.pasts.are_kept()
    }

    /// An entry that a collector brought has to be read for it.
    fn past<N: Nand>(&mut self, core: &mut Core<N>, lpn: Lpn) -> Result<Option<Past>, FtlError> {
        if self.pasts.are_kept() && self.lookup(core, lpn)?.is_some() {
            let page = self.cmt.translation_page(lpn);
            if let Some(slot) = self.cmt.find(lpn).filter(|slot| !self.pasts.is_known(*slot))
                && self.gmd[page as usize].is_some()
            {
                self.load_page(core, page, Purpose::Translation)?;
                self.pasts.load(slot, &self.buffer, (lpn.0 % self.entries_per_page) as usize);
            }
        }
        Ok(self.known_past(core, lpn))
    }

    fn known_past<N: Nand>(&self, core: &Core<N>, lpn: Lpn) -> Option<Past> {
        self.cmt.find(lpn).and_then(|slot| self.pasts.get(slot, core.seq))
    }

    fn keep_past<N: Nand>(&mut self, core: &Core<N>, lpn: Lpn, stream: Stream) {
        if self.pasts.are_kept() {
            self.note_past(core.seq, lpn, stream);
        }
    }

    #[inline]
    fn hint(&self, lpn: Lpn) -> Ppn {
        self.cmt.find(lpn).map_or(Ppn::NONE, |slot| self.cmt.ppn(slot))
    }

    fn dump<N: Nand>(&self, nand: &mut N) -> Result<Vec<Ppn>, FtlError> {
        let mut table = Vec::with_capacity(self.logical_pages as usize);
        let mut page = alloc::vec![0; self.buffer.len()];
        for &at in &self.gmd {
            if at.is_some() {
                nand.read_meta(at, &mut page)?;
            } else {
                page.fill(0xFF);
            }
            table.extend((0..self.entries_per_page as usize).map(|i| entry_at(&page, i)));
        }
        table.truncate(self.logical_pages as usize);
        debug_assert!(table.len() == self.logical_pages as usize);
        for (lpn, entry) in table.iter_mut().enumerate() {
            if let Some(slot) = self.cmt.find(Lpn(lpn as u32)) {
                *entry = self.cmt.ppn(slot);
            }
        }
        Ok(table)
    }

    fn will_report<N: Nand>(&self, nand: &mut N, lpn: Lpn, before: Ppn) -> Result<bool, FtlError> {
        let at = self.gmd[self.cmt.translation_page(lpn) as usize];
        if !at.is_some() || !self.cmt.find(lpn).is_some_and(|slot| self.cmt.is_uip(slot)) {
            return Ok(false);
        }
        let mut page = alloc::vec![0; self.buffer.len()];
        nand.read_meta(at, &mut page)?;
        Ok(entry_at(&page, (lpn.0 % self.entries_per_page) as usize) == before)
    }

    fn inspect(&self, inspector: &mut dyn crate::Inspector) {
        self.cmt.inspect(inspector);
        self.gmd.iter().filter(|ppn| ppn.is_some()).for_each(|ppn| inspector.metadata(*ppn));
    }

    fn ram(&self, report: &mut RamReport) {
        let (entries, index) = self.cmt.ram_bytes();
        let item = |name, bytes| RamItem { name, bytes };
        report.push(item("gmd", (self.gmd.capacity() * size_of::<Ppn>()) as u64));
        report.push(item("cmt", entries));
        report.push(item("cmt_index", index));
        if self.pasts.are_kept() {
            report.push(item("cht", self.pasts.ram_bytes()));
        }
        if self.heat.is_kept() {
            report.push(item("access_counters", self.heat.ram_bytes()));
        }
        report.push(item("translation_buffer", self.buffer.len() as u64));
        if !self.recent.is_empty() {
            report.push(item("recent_updates", self.recent.ram_bytes()));
        }
    }
}
