//! Trims, and how a flush makes them survive power loss if the table is only in RAM
//! ([`crate::mapping::trims`]).
//!
//! 1. A flush programs each page of the trim map of whose part of the disk something was trimmed
//!    since.
//! 2. The old version of a page dies when the new one is programmed. A mount that finds the new one
//!    programmed last programs it again before any older version is erased, as it may be one that
//!    reads now and not later.
//! 3. The collector programs the pages of step 1 before it erases a block with the last version of
//!    a page that was trimmed since the last flush.
//! 4. From the first trim on, one block more is held free: the map fills a block of its own. What
//!    has to be programmed before a block is erased fits into that block.

use super::{Mapping, Nand, PageFtl, Validity};
use crate::contract::FtlError;
use crate::engine::read_only::unless_short;
use nand::{BlockId, Geometry, Lpn};

/// Blocks held free for the trim map: one to program it to.
const RESERVE: u32 = 1;

/// Pages of the map that the steps of one trim reach at most before they are looked after.
const PAGES_A_STEP: u32 = 2;

/// What a trim map needs of the device.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TrimBlocks {
    /// Blocks to hold free once there is a map.
    pub(super) reserve: u32,
    /// All blocks.
    pub(super) all: u32,
}

impl TrimBlocks {
    /// For so many pages of the map.
    pub(super) const fn of(pages: u32, geometry: &Geometry) -> Self {
        if pages == 0 {
            return Self { reserve: 0, all: 0 };
        }
        // Beside full blocks one that is being filled.
        Self { reserve: RESERVE, all: RESERVE + 1 + pages / geometry.pages_per_block() }
    }
}

/// Logical pages that a trim forgets before space is looked after again: each can cost a page of
/// the validity store.
pub(super) fn trim_step(geometry: &Geometry) -> u32 {
    2 * geometry.pages_per_block()
}

impl<N: Nand, M: Mapping, V: Validity> PageFtl<N, M, V> {
    /// Forgets pages in RAM and, if it is there, in the table in flash.
    pub(super) fn trim_pages(&mut self, lpn: Lpn, count: u32) -> Result<(), FtlError> {
        let (mut next, end) = (lpn.0, lpn.0 + count);
        self.hold_trim_blocks();
        while next < end {
            // A table that is asked page by page reads the same page of metadata that often.
            self.refresh()?;
            self.prepare()?;
            let count = (end - next).min(trim_step(self.core.space.geometry()));
            next += self.change(|mapping, core| mapping.forget(core, Lpn(next), count))?;
            debug_assert!(next <= end, "more is forgotten than was asked for");
            let risky = self.mapping.risky_trim_pages();
            if risky + PAGES_A_STEP > self.core.space.geometry().pages_per_block() {
                self.keep_trims()?;
            }
        }
        self.tell()
    }

    /// Programs what keeps trims before a block is erased with versions that they forgot.
    pub(super) fn keep_trims_of(&mut self, block: BlockId) -> Result<(), FtlError> {
        while self.mapping.risks_trims(block) {
            self.change(|mapping, core| mapping.keep_trims(core))?;
        }
        Ok(())
    }

    /// Holds blocks free for the trim map, from now on.
    pub(super) fn hold_trim_blocks(&mut self) {
        self.reserve_blocks += core::mem::take(&mut self.trim_reserve);
    }

    /// Programs what says of trims that they were done, as far as there is something to say.
    pub(super) fn flush_trims(&mut self) -> Result<(), FtlError> {
        match self.mapping.has_unkept_trims() {
            true if self.mapping.must_keep_trims() => self.keep_trims(),
            true => unless_short(self.keep_trims()),
            false => Ok(()),
        }
    }

    /// Programs what says of trims that they were done.
    #[cold]
    pub(super) fn keep_trims(&mut self) -> Result<(), FtlError> {
        if self.core.is_starved() {
            return Err(self.core.shortage().into());
        }
        self.hold_trim_blocks();
        debug_assert!(self.trim_reserve == 0);
        while self.mapping.has_unkept_trims() {
            self.prepare()?;
            self.change(|mapping, core| mapping.keep_trims(core))?;
        }
        self.tell()
    }
}
