//! Blocks whose pages are read with many wrong bits.

use super::Flash;
use nand::{BlockId, Nand, Ppn};

impl<N: Nand> Flash<N> {
    /// A block in which a page was read with so many wrong bits that it should be moved, if there
    /// is one: more than three quarters of what the device can correct.
    #[inline]
    #[must_use]
    pub fn tired(&self) -> Option<BlockId> {
        Some(self.tired[0]).filter(|block| block.is_some() && self.host_failed.is_none())
    }

    /// Forgets that a block is tired: it was erased, or nothing can be done about it.
    pub fn rested(&mut self, block: BlockId) {
        if let Some(at) = self.tired.iter().position(|tired| *tired == block) {
            self.tired[at..].rotate_left(1);
            self.tired[3] = BlockId::NONE;
        }
        debug_assert!(!self.tired.contains(&block) || !block.is_some(), "{block} was kept twice");
    }

    /// Remembers the block of a page that was just read if it is tired.
    #[inline]
    pub(super) fn feel(&mut self, ppn: Ppn) {
        if self.nand.corrected_bits() >= self.tiring_bits {
            let block = self.nand.geometry().block_of(ppn);
            if let Some(at) = self.tired.iter().position(|tired| *tired == block || !tired.is_some()) {
                self.tired[at] = block;
                debug_assert!(self.tired[..at].iter().all(|tired| tired.is_some() && *tired != block));
            }
        }
    }
}
