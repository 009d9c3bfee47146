//! Moving what can barely be read any more: the device corrected so many bits in a page that soon
//! there may be too many.

use super::choose::Need;
use super::{Mapping, Nand, PageFtl, Validity};
use crate::contract::FtlError;
use crate::flash::Purpose;
use crate::space::blocks::BlockState;
use nand::BlockId;

impl<N: Nand, M: Mapping, V: Validity> PageFtl<N, M, V> {
    /// Moves what lives in a tired block, if there is one: at most one a call, so that an operation
    /// waits for no more than two collections. If so little is dead that room for it cannot be
    /// gained, the block stays; it is seen again when it is read again.
    #[inline]
    pub(super) fn refresh(&mut self) -> Result<(), FtlError> {
        match self.core.flash.tired() {
            Some(block) if !self.core.is_starved() => self.refresh_block(block),
            _ => Ok(()),
        }
    }

    #[cold]
    fn refresh_block(&mut self, block: BlockId) -> Result<(), FtlError> {
        self.prepare()?;
        self.core.flash.rested(block);
        debug_assert!(self.core.flash.tired() != Some(block));
        if self.core.space.state(block) == BlockState::Active {
            self.core.space.stop_filling(block);
        }
        // A block that is full of live pages gains nothing: what moving them takes must be there
        // before.
        let wanted = self.reserve_blocks + self.rest_blocks;
        for _ in 0..self.core.space.geometry().blocks() {
            if self.core.space.free_blocks() >= wanted || self.core.space.state(block) != BlockState::Closed {
                break;
            }
            if !self.gain(Need::Later)? {
                return Ok(());
            }
        }
        if self.core.space.state(block) != BlockState::Closed {
            return Ok(());
        }
        debug_assert!(self.core.space.state(block) == BlockState::Closed);
        if self.pins.holds(block, self.validity.flushes()) {
            self.unpin()?;
        }
        self.collect_for(block, Purpose::Refresh)
    }
}
