//! Bringing the table back after power loss.

use super::{BOUND_SHIFT, CachedMap, entry_at};
use crate::contract::FtlError;
use crate::space::core::Context;
use crate::validity::Validity;
use alloc::vec::Vec;
use nand::{Lpn, Nand, Ppn, Spare};

impl<const LAZY: bool> CachedMap<LAZY> {
    /// Takes over the directory that recovery found, and how far back entries may be that are only in RAM.
    pub fn restore(&mut self, gmd: Vec<Ppn>, bound: u64) {
        debug_assert_eq!(gmd.len(), self.gmd.len(), "translation pages");
        self.gmd = gmd;
        self.checkpoints.bound = bound;
    }

    /// From which sequence number on pages of host data may have had entries only in RAM when a translation page with this
    /// spare area was written.
    #[must_use]
    pub const fn bound_of(spare: &Spare) -> u64 {
        (spare.aux as u64) << BOUND_SHIFT
    }

    /// Logical pages that one translation page covers.
    #[must_use]
    pub const fn entries_per_page(&self) -> u32 {
        self.entries_per_page
    }

    /// The entries in the bytes of a translation page.
    pub fn entries(page: &[u8]) -> impl Iterator<Item = Ppn> {
        (0..page.len() / super::ENTRY_BYTES).map(|index| entry_at(page, index))
    }

    /// Caches an entry that was only in RAM when power went.
    ///
    /// # Errors
    /// Those of the device, if another entry has to leave.
    pub fn restore_entry<N: Nand, V: Validity>(
        &mut self,
        ctx: &mut Context<'_, N, V>,
        lpn: Lpn,
        ppn: Ppn,
    ) -> Result<(), FtlError> {
        let slot = self.admit(ctx, lpn, ppn)?;
        self.cmt.mark_recovered(slot);
        self.shrink(ctx)
    }
}
