//! Copies that are superseded as long as all newer ones count.
//!
//! A chain of them can be in doubt: a mount copied the page that the host wrote last, whose program
//! was cut short, a mount after it copied the copy, and all of them fade. So all are known, not
//! only the newest two, and none is erased before the newest was copied.

use super::{Copies, Copy, Doubt, NO_COPY, root_of};
use crate::contract::FtlError;
use crate::flash::{Flash, Purpose};
use alloc::vec::Vec;
use nand::{BlockId, Lpn, Nand, NandError, Ppn};

/// Reads that a page whose program was cut short hardly survives.
const READS: u32 = 16;

/// Reads a page so often that it fails if its program was cut short, as far as reads can tell: for
/// where nothing can be programmed to settle it.
///
/// # Errors
/// Those of the device.
pub fn read_often<N: Nand>(flash: &mut Flash<N>, page: Ppn) -> Result<(), NandError> {
    (0..READS).try_for_each(|_| flash.probe(Purpose::Recovery, page).map(drop))
}

impl Copies {
    /// A page holds a copy of a logical page.
    pub(super) fn note_copy(&mut self, lpn: Lpn, mut copy: Copy) {
        let Some(copies) = self.pages.get_mut(lpn.index()) else { return };
        for kept in copies {
            if !kept.ppn.is_some() || copy.seq > kept.seq {
                core::mem::swap(kept, &mut copy);
            }
        }
        debug_assert!(self.pages[lpn.index()].is_sorted_by(|a, b| a.seq >= b.seq), "an older copy of {lpn} counts");
        if copy.ppn.is_some() {
            self.older.entry(lpn.0).or_default().push(copy);
        }
    }

    /// The copies in a block count no more.
    pub(super) fn uncover(&mut self, block: BlockId) {
        let geometry = self.geometry;
        let mut uncovered = Vec::new();
        for (lpn, copies) in (0..).map(Lpn).zip(&mut self.pages) {
            if copies[0].ppn.is_some() && geometry.block_of(copies[0].ppn) == block {
                *copies = [copies[1], NO_COPY];
                uncovered.push(lpn);
            }
        }
        for lpn in uncovered {
            let older = self.older.remove(&lpn.0).unwrap_or_default();
            older.into_iter().for_each(|copy| self.note_copy(lpn, copy));
        }
    }

    /// Whether a page other than this one that counts, or would if newer ones did not, holds this
    /// write of a logical page.
    pub(super) fn is_elsewhere<N: Nand>(
        &self,
        flash: &mut Flash<N>,
        lpn: Lpn,
        root: u32,
        page: Ppn,
    ) -> Result<bool, FtlError> {
        let older = self.older.get(&lpn.0).into_iter().flatten();
        for copy in self.pages[lpn.index()].iter().chain(older).filter(|copy| copy.ppn != page) {
            if root_of(flash, copy)? == Some(root) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The copies of which one counts if these pages in doubt do not.
    pub fn before(&self, doubts: &[Doubt]) -> impl Iterator<Item = Ppn> {
        doubts.iter().flat_map(|doubt| {
            let older = self.older.get(&doubt.lpn.0).into_iter().flatten();
            let copies = self.pages.get(doubt.lpn.index()).into_iter().flatten();
            copies.chain(older).map(|copy| copy.ppn).filter(|ppn| ppn.is_some() && *ppn != doubt.ppn)
        })
    }
}
