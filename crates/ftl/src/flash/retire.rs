//! Erasing blocks, and marking those bad that cannot be erased.

use super::{Flash, Purpose};
use nand::{BlockId, Nand, NandError};

impl<N: Nand> Flash<N> {
    /// Erases a block, or marks it bad if it cannot be erased. Answers whether it was erased.
    ///
    /// # Errors
    /// Those of the device, a failed erase excepted.
    pub fn erase_or_retire(&mut self, purpose: Purpose, block: BlockId) -> Result<bool, NandError> {
        match self.erase(purpose, block) {
            Ok(()) => Ok(true),
            Err(NandError::EraseFailed { .. }) => self.nand_mut().mark_bad(block).map(|()| false),
            Err(error) => Err(error),
        }
    }

    /// Erases a block, unless a program of it failed: then it is marked bad, as if it could not be
    /// erased.
    ///
    /// # Errors
    /// As [`Flash::erase_or_retire`].
    pub fn recycle(&mut self, purpose: Purpose, block: BlockId, has_failed: bool) -> Result<bool, NandError> {
        if has_failed {
            return self.nand_mut().mark_bad(block).map(|()| false);
        }
        self.erase_or_retire(purpose, block)
    }

    /// Erases every block that is not bad, for a new disk.
    ///
    /// # Errors
    /// As [`Flash::erase_or_retire`].
    pub fn erase_all(&mut self) -> Result<(), NandError> {
        for block in (0..self.nand().geometry().blocks()).map(BlockId) {
            if !self.nand().is_bad(block) {
                self.erase_or_retire(Purpose::Recovery, block)?;
            }
        }
        Ok(())
    }
}
