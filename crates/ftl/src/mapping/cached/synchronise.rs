//! Bringing a translation page up to date with what is dirty in the cache.

use super::cmt::{Before, Slot};
use super::{BOUND_SHIFT, CachedMap, checked, entry_at, set_entry};
use crate::contract::FtlError;
use crate::flash::Purpose;
use crate::mapping::is_page;
use crate::space::age::{HOT, UNSETTLED, age};
use crate::space::core::Core;
use crate::space::deaths::Was;
use nand::{Lpn, Nand, NandError, PageKind, Ppn};

impl CachedMap {
    /// Brings a translation page up to date with every dirty entry of it (GeckoFTL, section 4).
    pub(super) fn synchronise<N: Nand>(
        &mut self,
        core: &mut Core<N>,
        page: u32,
        purpose: Purpose,
    ) -> Result<(), FtlError> {
        self.load_page(core, page, purpose)?;
        self.absorb(core, page)?;
        self.take_in_found(page);
        self.replace_page(core, page, purpose)
    }

    /// Brings the translation page in the buffer up to date with what a mount found.
    #[inline]
    fn take_in_found(&mut self, page: u32) {
        if self.found.is_empty() {
            return;
        }
        for (lpn, ppn) in self.found_of(page) {
            set_entry(self.buffer.bytes_mut(), (lpn.0 % self.entries_per_page) as usize, ppn);
        }
    }

    /// Brings the translation page in the buffer up to date with every dirty entry of it, and notes
    /// that their before-images died.
    pub(super) fn absorb<N: Nand>(&mut self, core: &mut Core<N>, page: u32) -> Result<(), FtlError> {
        let (read_from, buffer) = (self.gmd[page as usize], self.buffer.bytes_mut());
        let mut at = self.cmt.first_dirty(page..page + 1);
        while let Some(slot) = at {
            let dirty = self.cmt.dirty_entry(slot, page);
            let (lpn, now) = (dirty.lpn, dirty.ppn);
            let index = (lpn.0 % self.entries_per_page) as usize;
            debug_assert!(self.cmt.translation_page(lpn) == page);
            let before = checked(core, read_from, entry_at(buffer, index))?;
            if dirty.before != Before::Settled {
                self.cmt.settle_before_image(slot);
            }
            set_entry(buffer, index, now);
            self.pasts.store(slot, buffer, index);
            at = dirty.next();
            match dirty.before {
                Before::Unidentified if is_page(before) => core.page_died(before),
                Before::Uncertain if is_page(before) => before_image_died(core, lpn, before, now, read_from)?,
                Before::Settled | Before::Unidentified | Before::Uncertain => {}
            }
        }
        Ok(())
    }

    /// Programs the buffer, which has taken in every dirty entry, as the newest version of a
    /// translation page.
    pub(super) fn replace_page<N: Nand>(
        &mut self,
        core: &mut Core<N>,
        page: u32,
        purpose: Purpose,
    ) -> Result<(), FtlError> {
        let (bound, settling) = (self.checkpoints.bound >> BOUND_SHIFT, core.settling);
        let bound = u32::try_from(bound).unwrap_or(u32::MAX).min(HOT - 1);
        let hot = if self.heat.is_hot(page) { HOT } else { 0 };
        debug_assert!(self.has_absorbed(page), "translation page {page} misses a dirty entry");
        let waits = self.reporting.is_lazy();
        let aux = |seq| match settling {
            Some(_) if waits => bound | hot | UNSETTLED,
            None if waits => bound | hot,
            _ => age(seq, settling.unwrap_or(seq)),
        };
        let new = core.program_metadata_page(purpose, PageKind::Translation, page, aux, &mut self.buffer)?;
        let old = core::mem::replace(&mut self.gmd[page as usize], new);
        debug_assert!(old != new, "translation page {page} was at {new}");
        self.heat.programmed(page);
        self.cmt.mark_all_clean(page);
        if old.is_some() {
            core.translation_page_died(old);
        }
        Ok(())
    }

    /// Whether the buffer says what every dirty entry of a translation page does, or that it is
    /// trimmed.
    fn has_absorbed(&self, page: u32) -> bool {
        let next = |slot: &Slot| self.cmt.next_dirty(*slot, page..page + 1);
        let dirty = core::iter::successors(self.cmt.first_dirty(page..page + 1), next);
        dirty.map(|slot| (self.cmt.lpn(slot), self.cmt.ppn(slot))).all(|(lpn, now)| {
            let taken = entry_at(&self.buffer, (lpn.0 % self.entries_per_page) as usize);
            taken == now || taken == Ppn::NONE
        })
    }

    /// Reads a translation page into the buffer; a page never written says that nothing is mapped.
    /// Where RAM has every entry, flash is not read.
    pub(super) fn load_page<N: Nand>(
        &mut self,
        core: &mut Core<N>,
        page: u32,
        purpose: Purpose,
    ) -> Result<(), FtlError> {
        let at = self.gmd[page as usize];
        if self.is_whole {
            self.compose_page(page);
        } else if at.is_some() {
            core.flash.read_meta(purpose, at, self.buffer.bytes_mut())?;
        } else {
            self.buffer.bytes_mut().fill(0xFF);
        }
        Ok(())
    }

    /// Puts every entry of a translation page into the buffer.
    fn compose_page(&mut self, page: u32) {
        let buffer = self.buffer.bytes_mut();
        buffer.fill(0xFF);
        let first = page * self.entries_per_page;
        for index in 0..self.entries_per_page.min(self.logical_pages - first) {
            if let Some(slot) = self.cmt.find(Lpn(first + index)) {
                set_entry(buffer, index as usize, self.cmt.ppn(slot));
                self.pasts.store(slot, buffer, index as usize);
            }
        }
    }
}

/// A before-image of which recovery knows nothing died, if it still holds the logical page (C.3.2)
/// and is not its present copy. `read_from` is the translation page that names it.
///
/// The paper reports it again without asking the store whether it knows. That would count the page
/// as dead twice, and a block without live pages is erased without a look.
#[cold]
pub(super) fn before_image_died<N: Nand>(
    core: &mut Core<N>,
    lpn: Lpn,
    before: Ppn,
    now: Ppn,
    read_from: Ppn,
) -> Result<(), FtlError> {
    debug_assert!(is_page(before) && before.0 < core.space.geometry().pages());
    let holds = match core.flash.read_spare(Purpose::Recovery, before) {
        Ok(Some(spare)) => Some(spare.kind == PageKind::User && spare.tag == lpn.0),
        Ok(None) => Some(false),
        Err(NandError::Uncorrectable { .. }) => is_unerased(core, before, read_from)?,
        Err(error) => return Err(error.into()),
    };
    if holds != Some(false) && before != now {
        let was = if holds.is_some() { Was::HostPerhapsTold } else { Was::HostPerhapsErased };
        core.deaths.note(before, was, core.seq);
    }
    Ok(())
}

/// Whether the block of a page that a translation page names was not erased since. The page cannot
/// be read, and may be read well another time. Any older page of its block proves it. `None` if
/// nothing of the block can be read now.
fn is_unerased<N: Nand>(core: &mut Core<N>, named: Ppn, read_from: Ppn) -> Result<Option<bool>, FtlError> {
    let (geometry, flash) = (*core.space.geometry(), &mut core.flash);
    let mut seq_of = |ppn: Ppn| match flash.read_spare(Purpose::Recovery, ppn) {
        Ok(spare) => Ok(spare.map(|spare| spare.seq)),
        Err(NandError::Uncorrectable { .. }) => Ok(None),
        Err(error) => Err(FtlError::from(error)),
    };
    let Some(written) = seq_of(read_from)? else { return Ok(None) };
    let block = geometry.block_of(named);
    for ppn in (0..geometry.pages_per_block()).map(|offset| geometry.page_at(block, offset)) {
        if let Some(seq) = seq_of(ppn)? {
            return Ok(Some(seq < written));
        }
    }
    Ok(None)
}
