//! Bringing the table back after power loss.

use super::synchronise::before_image_died;
use super::{BOUND_SHIFT, CachedMap, Reporting, entry_at, set_entry};
use crate::contract::FtlError;
use crate::flash::Purpose;
use crate::saved::{Sink, Source};
use crate::space::core::Core;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use nand::{Lpn, Nand, Ppn};

impl CachedMap {
    /// Takes over the directory that recovery found, and how far back entries may be that are only
    /// in RAM.
    pub fn restore(&mut self, gmd: Vec<Ppn>, bound: u64) {
        debug_assert_eq!(gmd.len(), self.gmd.len(), "translation pages");
        self.gmd = gmd;
        self.is_whole = false;
        self.checkpoints.bound = bound;
    }

    /// When it reports superseded pages.
    #[must_use]
    pub const fn reporting(&self) -> Reporting {
        self.reporting
    }

    /// The first sequence number from this one on that a translation page can name as a bound.
    #[must_use]
    pub const fn next_bound(seq: u64) -> u64 {
        seq.div_ceil(1 << BOUND_SHIFT) << BOUND_SHIFT
    }

    /// Where each translation page is.
    #[must_use]
    pub fn directory(&self) -> &[Ppn] {
        &self.gmd
    }

    /// Every cached entry, by logical page. Allocates.
    #[must_use]
    pub fn cached_entries(&self) -> Vec<(Lpn, Ppn)> {
        let mut entries: Vec<(Lpn, Ppn)> =
            self.cmt.slots().map(|slot| (self.cmt.lpn(slot), self.cmt.ppn(slot))).collect();
        entries.sort_unstable_by_key(|(lpn, _)| *lpn);
        entries
    }

    /// Logical pages that one translation page covers.
    #[must_use]
    pub const fn entries_per_page(&self) -> u32 {
        self.entries_per_page
    }

    /// The entries in the bytes of a translation page; where it holds more than entries, they come
    /// first.
    pub fn entries(page: &[u8]) -> impl Iterator<Item = Ppn> {
        (0..page.len() / super::ENTRY_BYTES).map(|index| entry_at(page, index))
    }

    /// Puts the number of translation pages and every dirty entry, the least recently used first.
    pub(super) fn save_dirty(&self, sink: &mut dyn Sink) -> Result<(), FtlError> {
        sink.put_u32(self.gmd.iter().filter(|at| at.is_some()).count() as u32)?;
        self.cmt.save_dirty(sink)
    }

    /// The number of translation pages and the dirty entries that
    /// [`Mapping::save`](crate::mapping::Mapping::save) put, the least recently used first; `None`
    /// if they are not of this disk on a device of so many pages, or more than the cache holds.
    pub fn saved_entries(&self, source: &mut Source<'_>, pages: u32) -> Option<(u32, Vec<(Lpn, Ppn)>)> {
        let translation_pages = source.take_u32()?;
        Some((translation_pages, self.cmt.saved(source, self.logical_pages, pages)?))
    }

    /// Caches entries that were saved. Programs nothing: one too many leaves with the next
    /// operation.
    pub fn restore_saved(&mut self, entries: &[(Lpn, Ppn)]) {
        debug_assert!(!self.resumed && !self.late);
        self.cmt.restore_saved(entries);
        self.pasts.forget();
        self.resumed = true;
    }

    /// Entries that are not in flash, and of which it is known already what lives and what is dead:
    /// to be written with [`CachedMap::write_found`].
    pub fn found(&mut self) -> &mut BTreeMap<Lpn, Ppn> {
        &mut self.found
    }

    /// Those of a translation page.
    pub(super) fn found_of(&self, page: u32) -> Vec<(Lpn, Ppn)> {
        let first = page * self.entries_per_page;
        let of_page = self.found.range(Lpn(first)..Lpn(first + self.entries_per_page));
        of_page.map(|(lpn, ppn)| (*lpn, *ppn)).collect()
    }

    /// Writes a translation page anew, with what was found of it.
    ///
    /// # Errors
    /// Those of the device.
    pub fn write_found<N: Nand>(&mut self, core: &mut Core<N>, page: u32) -> Result<(), FtlError> {
        debug_assert!(
            self.cmt.first_dirty(page..page + 1).is_none(),
            "translation page {page} has dirty entries in a mount"
        );
        self.synchronise(core, page, Purpose::Recovery)?;
        for (lpn, _) in self.found_of(page) {
            self.found.remove(&lpn);
        }
        Ok(())
    }

    /// Every entry is in flash, and the next page of host data will carry at least this sequence
    /// number.
    pub fn all_synchronised(&mut self, seq: u64) {
        debug_assert!(self.cmt.oldest_dirty().is_none());
        self.recent.clear();
        self.late = false;
        (self.checkpoints.bound, self.checkpoints.began) = (seq, [seq; 2]);
    }

    /// How many of the pages of host data programmed last may have entries only in RAM; `None` if
    /// there is no bound.
    #[must_use]
    pub fn recent_updates(&self) -> Option<u32> {
        (!self.recent.is_empty()).then(|| self.recent.len())
    }

    /// Whether the empty cache has room for entries of different logical pages: none of them has to
    /// leave for another.
    #[must_use]
    pub fn takes(&self, entries: &[(Lpn, Ppn)]) -> bool {
        debug_assert!(self.cmt.slots().next().is_none(), "a mount has cached entries already");
        self.cmt.takes(entries.iter().map(|(lpn, _)| *lpn))
    }

    /// Changes entries of one translation page, in one program.
    ///
    /// # Errors
    /// Those of the device.
    pub fn restore_page<N: Nand>(&mut self, core: &mut Core<N>, entries: &[(Lpn, Ppn)]) -> Result<(), FtlError> {
        let Some(&(first, _)) = entries.first() else { return Ok(()) };
        let page = self.cmt.translation_page(first);
        self.load_page(core, page, Purpose::Recovery)?;
        let pages = core.space.geometry().pages();
        let (read_from, buffer) = (self.gmd[page as usize], self.buffer.bytes_mut());
        for &(lpn, now) in entries {
            let index = (lpn.0 % self.entries_per_page) as usize;
            debug_assert!(
                self.cmt.translation_page(lpn) == page
                    && !self.cmt.find(lpn).is_some_and(|slot| self.cmt.is_dirty(slot))
            );
            let before = entry_at(buffer, index);
            set_entry(buffer, index, now);
            if before.0 < pages {
                before_image_died(core, lpn, before, now, read_from)?;
            }
        }
        self.replace_page(core, page, Purpose::Recovery)
    }

    /// Writes the translation page of a logical page again, with all of its dirty entries.
    ///
    /// # Errors
    /// Those of the device.
    pub fn restore_page_of<N: Nand>(&mut self, core: &mut Core<N>, lpn: Lpn) -> Result<(), FtlError> {
        self.synchronise(core, self.cmt.translation_page(lpn), Purpose::Recovery)
    }

    /// Caches an entry that was only in RAM when power went. Another may have to leave for it
    /// ([`Mapping::urgent`](crate::mapping::Mapping::urgent)).
    pub fn restore_entry(&mut self, lpn: Lpn, ppn: Ppn) {
        let slot = self.insert(lpn, ppn);
        self.cmt.mark_recovered(slot);
    }
}
