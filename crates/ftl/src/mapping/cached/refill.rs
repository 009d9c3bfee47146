//! Filling the cache when a disk is mounted, before anybody asks for an entry (FTRM, section
//! 4.2.2).

use super::{CachedMap, Refill, THRESHOLD, entry_at};
use crate::contract::FtlError;
use crate::flash::Purpose;
use crate::mapping::is_page;
use crate::space::core::Core;
use alloc::vec::Vec;
use core::cmp::Reverse;
use nand::{Lpn, Nand, NandError, Ppn, Spare};

impl CachedMap {
    /// A mount found translation pages with these spare areas, where the directory has them.
    pub fn found_heat(&mut self, versions: &[(Ppn, Spare)]) {
        for (_, spare) in versions.iter().filter(|(ppn, spare)| self.gmd.get(spare.tag as usize) == Some(ppn)) {
            self.heat.found(spare.tag, spare);
        }
    }

    /// Whether a mount fills the cache.
    #[must_use]
    pub fn is_refilled(&self) -> bool {
        self.refill != Refill::Nothing
    }

    /// Caches entries of the translation pages that were used most until the cache is full. Pages
    /// that cannot be read are left out: whoever needs them is told.
    ///
    /// # Errors
    /// Those of the device, but for pages that cannot be read.
    pub fn refill<N: Nand>(&mut self, core: &mut Core<N>) -> Result<(), FtlError> {
        let pages = self.pages_to_cache();
        let mut all = self.refill == Refill::All;
        // The coldest first, so that the hottest are the last to leave the cache again.
        for page in pages.into_iter().rev() {
            match self.load_page(core, page, Purpose::Recovery) {
                Err(FtlError::Nand(NandError::Uncorrectable { .. } | NandError::Erased { .. })) => {
                    all = false;
                    continue;
                }
                outcome => outcome?,
            }
            all &= self.cache_page(core, page);
        }
        self.is_whole = all;
        Ok(())
    }

    /// As many translation pages as the cache has room for, or all of them, the hottest first.
    fn pages_to_cache(&self) -> Vec<u32> {
        let mapped = (0..self.gmd.len() as u32).filter(|page| self.gmd[*page as usize].is_some());
        let mut pages: Vec<u32> = match self.refill {
            Refill::Nothing => Vec::new(),
            Refill::Hot => mapped.filter(|page| self.heat.uses(*page) >= THRESHOLD).collect(),
            Refill::Any | Refill::All => mapped.collect(),
        };
        match self.refill {
            Refill::Hot => pages.sort_unstable_by_key(|page| (Reverse(self.heat.uses(*page)), *page)),
            Refill::Any | Refill::All | Refill::Nothing => {
                pages.sort_unstable_by_key(|page| page.wrapping_mul(0x9E37_79B1))
            }
        }
        if self.refill != Refill::All {
            pages.truncate(self.cmt.room().div_ceil(self.entries_per_page) as usize);
        }
        pages
    }

    /// Caches the entries of the translation page in the buffer, as far as there is room and they
    /// can be right; whether all of them are cached.
    fn cache_page<N: Nand>(&mut self, core: &Core<N>, page: u32) -> bool {
        let first = page * self.entries_per_page;
        let most = self.entries_per_page.min(self.logical_pages - first);
        let mut all = true;
        for index in 0..most {
            let (lpn, ppn) = (Lpn(first + index), entry_at(&self.buffer, index as usize));
            if !ppn.is_some() || self.cmt.find(lpn).is_some() {
                continue;
            }
            let is_right = !is_page(ppn) || ppn.0 < core.space.geometry().pages();
            if is_right && self.cmt.has_room(lpn) {
                let slot = self.insert(lpn, ppn);
                self.pasts.load(slot, &self.buffer, index as usize);
            } else {
                all = false;
            }
        }
        all
    }
}
