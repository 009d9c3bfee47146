//! The laws of flash as a state machine a block, shared by every device that keeps its own cells.
//!
//! A device asks before it acts (`check_…`), acts, then tells (`programmed`, `erased`). The devices
//! know what their cells hold; this knows what may happen to them next. Devices outside this crate
//! use it too.

use crate::addr::{BlockId, Ppn};
use crate::error::{Law, NandError};
use crate::geometry::{Capabilities, Geometry, ProgramOrder};

/// Where a block stands: how far it is programmed, and whether it is retired.
///
/// Eight bytes, because a simulated device keeps millions of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockState {
    /// One more than the highest offset programmed since the last erase.
    next: u32,
    flags: u8,
}

/// Programs in ascending order need no look at the cells: the block is open and not retired.
const IN_ORDER: u8 = 1;
const BAD: u8 = 2;
/// A note of the device's own about the block's contents; an erase clears it, as the next.
const NOTED: u8 = 4;
/// A second one.
const MARKED: u8 = 8;

impl BlockState {
    /// Whether `offset` is the page right after the last one of an open, healthy block: then
    /// programming it is legal whatever the device, and nothing is skipped.
    #[inline]
    pub const fn is_next(self, offset: u32) -> bool {
        self.next == offset && self.flags & IN_ORDER != 0
    }

    /// Records a program that [`Self::is_next`] allowed.
    #[inline]
    pub const fn advance(&mut self) {
        debug_assert!(self.flags & (IN_ORDER | BAD) == IN_ORDER, "a block takes its next page unasked");
        self.next += 1;
    }

    /// One more than the highest offset programmed; cells from here on are erased.
    #[inline]
    pub const fn end(self) -> u32 {
        self.next
    }

    /// Whether the block is retired.
    #[inline]
    pub const fn is_bad(self) -> bool {
        self.flags & BAD != 0
    }

    /// Whether the device noted something since the last erase.
    #[inline]
    pub const fn is_noted(self) -> bool {
        self.flags & NOTED != 0
    }

    /// Notes something about the block's contents, until the next erase.
    pub const fn note(&mut self) {
        debug_assert!(!self.is_bad());
        self.flags |= NOTED;
    }

    /// Whether [`Self::mark`] was called since the last erase.
    #[inline]
    pub const fn is_marked(self) -> bool {
        self.flags & MARKED != 0
    }

    /// As [`Self::note`], apart from it.
    pub const fn mark(&mut self) {
        debug_assert!(!self.is_bad() && !self.is_marked());
        self.flags |= MARKED;
    }

    /// Whether the page at `offset` may be programmed; `holds` says that its cell is not erased.
    pub const fn check_program(self, order: ProgramOrder, offset: u32, holds: bool) -> Result<(), Law> {
        if self.is_bad() {
            Err(Law::BadBlock)
        } else if offset >= self.next {
            Ok(())
        } else if holds {
            Err(Law::EraseBeforeProgram)
        } else {
            match order {
                ProgramOrder::Sequential => Err(Law::ProgramOrder),
                ProgramOrder::Free => Ok(()),
            }
        }
    }

    /// Records a program that [`Self::check_program`] allowed.
    pub const fn programmed(&mut self, offset: u32) {
        debug_assert!(!self.is_bad(), "a bad block was programmed");
        if offset >= self.next {
            self.next = offset + 1;
        }
        self.flags |= IN_ORDER;
        debug_assert!(self.next > offset);
    }

    /// Whether the block may be erased.
    #[inline]
    pub const fn check_erase(self) -> Result<(), Law> {
        if self.is_bad() { Err(Law::BadBlock) } else { Ok(()) }
    }

    /// Records an erase that [`Self::check_erase`] allowed.
    #[inline]
    pub const fn erased(&mut self) {
        debug_assert!(!self.is_bad(), "a bad block was erased");
        self.next = 0;
        self.flags = 0;
    }

    /// Retires the block; its pages stay readable.
    pub const fn mark_bad(&mut self) {
        self.flags = self.flags & !IN_ORDER | BAD;
        debug_assert!(self.is_bad() && !self.is_next(self.next), "a bad block takes another page");
    }
}

/// Splits a page address, refusing one outside the device.
#[inline]
pub fn locate(geometry: &Geometry, operation: &'static str, ppn: Ppn) -> Result<(BlockId, u32), NandError> {
    if ppn.0 < geometry.pages() {
        Ok((geometry.block_of(ppn), geometry.offset_of(ppn)))
    } else {
        Err(illegal(operation, ppn, Law::AddressInRange))
    }
}

/// Whether host data (exactly one page) or metadata (at most one page) of this length fits.
pub const fn check_size(geometry: &Geometry, bytes: usize, whole: bool) -> Result<(), Law> {
    let page = geometry.page_bytes() as usize;
    if bytes > page || whole && bytes != page { Err(Law::PageSize) } else { Ok(()) }
}

/// Whether flags of a page may be set when that was done `times` times before.
///
/// Which flags does not matter: setting one only clears bits.
pub const fn check_flags(can: Capabilities, times: u8) -> Result<(), Law> {
    if times < can.spare_reprograms { Ok(()) } else { Err(Law::SpareReprogram) }
}

/// The error for a broken law.
#[cold]
pub const fn illegal(operation: &'static str, ppn: Ppn, law: Law) -> NandError {
    NandError::Illegal { operation, ppn, law }
}

/// The error for a broken law about a whole block.
#[cold]
pub fn illegal_block(geometry: &Geometry, operation: &'static str, block: BlockId, law: Law) -> NandError {
    let ppn = if block.0 < geometry.blocks() { geometry.page_at(block, 0) } else { Ppn::NONE };
    NandError::Illegal { operation, ppn, law }
}
