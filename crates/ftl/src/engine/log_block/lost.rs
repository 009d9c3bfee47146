//! Pages that cannot be read when they are moved.
//!
//! Of such a page a copy is programmed as any other, but without contents: as metadata, with the
//! spare area of a page of host data. A device tells the two apart ([`nand::Law::PageContent`]).
//! So flash says that the page is lost before the block that showed it is erased, and no mount
//! finds an older version. The copy is moved, superseded and trimmed like any other.
//!
//! If maps are in non-volatile memory, so is what is lost.

use super::area::{Area, Copied};
use crate::contract::FtlError;
use nand::{BlockId, Lpn, Nand, NandError, Ppn, Spare};

impl<N: Nand> Area<N> {
    /// Says in a page of a block, instead of a copy with this spare area, that a logical page is
    /// lost.
    ///
    /// # Errors
    /// Those of the device.
    #[cold]
    pub(super) fn program_lost(&mut self, lpn: Lpn, to: Ppn, spare: &Spare) -> Result<Copied, FtlError> {
        if !self.in_flash {
            self.forget(lpn);
            self.table.lose(lpn);
            return Ok(Copied::Lost);
        }
        debug_assert!(self.blocks.takes(self.blocks.geometry().block_of(to), self.blocks.geometry().offset_of(to)));
        match self.flash.program_meta(self.moving_for, to, &[], spare) {
            Ok(()) => Ok(Copied::Yes),
            Err(NandError::ProgramFailed { .. }) => {
                self.program_failed(self.blocks.geometry().block_of(to));
                Ok(Copied::Failed)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Gives up a page whose spare area does not say whose it is. The next page of a block says
    /// that it is lost; `false` if that block failed.
    ///
    /// # Errors
    /// Those of the device.
    #[cold]
    pub fn give_up_page(&mut self, page: Ppn, block: BlockId, lpn: Lpn) -> Result<bool, FtlError> {
        let (offset, last) = (self.blocks.next(block), self.is_last_in_its_block(page));
        debug_assert!(self.blocks.has_room(block) && self.locate(lpn) == page, "{lpn} is not at {page}");
        let spare = self.spare(block, lpn, self.writer(block), last, Some(0));
        let given_up = self.program_lost(lpn, self.blocks.geometry().page_at(block, offset), &spare)?;
        Ok(self.settle_moved(given_up, block, offset, lpn))
    }
}
