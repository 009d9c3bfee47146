//! The contract between flash and those who use it.

use crate::addr::{BlockId, Lpn, Ppn};
use crate::error::NandError;
use crate::flags::Flags;
use crate::geometry::{Capabilities, Geometry};
use crate::page::MetaPage;
use crate::spare::Spare;
use core::ops::Range;

/// What a device keeps of a page of host data: all its bytes (`[u8]`), or a [`Stamp`].
///
/// A flash translation layer never looks inside; it is generic over this so that the same code
/// serves a simulation of terabytes and a disk with real contents.
pub trait Payload: Send {
    /// Makes this what a host reads from a page that was never written, or was trimmed.
    fn clear(&mut self);
}

impl Payload for [u8] {
    fn clear(&mut self) {
        self.fill(0);
    }
}

/// A page of host data reduced to what proves that a read returned the right one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// The logical page that was written.
    pub lpn: Lpn,
    /// Which write of it, modulo 2^16.
    pub version: u16,
}

impl Stamp {
    /// What a read of a page never written, or trimmed, returns.
    pub const UNWRITTEN: Self = Self { lpn: Lpn::NONE, version: 0 };

    /// Bytes of a stamp.
    pub const BYTES: usize = 6;

    /// The stamp as bytes: those of [`Stamp::UNWRITTEN`] are zeros, as a host reads them.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; Self::BYTES] {
        let [a, b, c, d] = (!self.lpn.0).to_le_bytes();
        let [e, f] = self.version.to_le_bytes();
        [a, b, c, d, e, f]
    }

    /// The stamp that these bytes are of.
    #[must_use]
    pub const fn from_bytes([a, b, c, d, e, f]: [u8; Self::BYTES]) -> Self {
        Self { lpn: Lpn(!u32::from_le_bytes([a, b, c, d])), version: u16::from_le_bytes([e, f]) }
    }
}

impl Payload for Stamp {
    fn clear(&mut self) {
        *self = Self::UNWRITTEN;
    }
}

/// A raw NAND device.
///
/// # Laws
/// A page is programmed once after its block was erased, whole, with its spare area, in ascending
/// order within its block if the device says [`crate::ProgramOrder::Sequential`] (pages may be
/// skipped). Bad blocks are left alone. Of a programmed page only the flags change, from unset to
/// set, as often as the device says. A device refuses what breaks a law with
/// [`NandError::Illegal`] and does nothing.
///
/// # Power loss
/// Each method says what a cut in its middle may leave. Completed operations stay. After a cut
/// every operation answers [`NandError::PowerLost`] until the device is opened again.
pub trait Nand: Send {
    /// What is kept of a page of host data.
    type Payload: Payload + ?Sized;

    /// The shape of the device.
    fn geometry(&self) -> &Geometry;

    /// What the device can do.
    fn capabilities(&self) -> Capabilities;

    /// Reads a page of host data and its spare area. Bit errors within the reach of the ECC are
    /// corrected unseen.
    ///
    /// # Errors
    /// [`NandError::Erased`], [`NandError::Uncorrectable`], or [`crate::Law::PageContent`] if the
    /// page was written by [`Nand::program_meta`]. `out` is unspecified after an error.
    fn read(&mut self, ppn: Ppn, out: &mut Self::Payload) -> Result<Spare, NandError>;

    /// Reads a page of metadata; bytes beyond what was programmed read as 0xFF.
    ///
    /// # Errors
    /// As [`Nand::read`], with the roles of host data and metadata exchanged.
    fn read_meta(&mut self, ppn: Ppn, out: &mut [u8]) -> Result<Spare, NandError>;

    /// Reads a page of metadata of which only the bytes in `needed` are wanted. What is left in
    /// `out` beside them is unspecified. One read of a whole page all the same: what a device saves
    /// is the transfer.
    ///
    /// # Errors
    /// As [`Nand::read_meta`].
    fn read_meta_part(&mut self, ppn: Ppn, out: &mut [u8], needed: Range<usize>) -> Result<Spare, NandError> {
        let end = needed.end.min(out.len());
        self.read_meta(ppn, &mut out[..end])
    }

    /// Reads only the spare area; `None` if the page is erased.
    ///
    /// A page whose program was cut short may answer anything: an error, a spare area that the data
    /// does not match, or `None` although the page must not be programmed.
    ///
    /// # Errors
    /// [`NandError::Uncorrectable`] if the spare area cannot be read.
    fn read_spare(&mut self, ppn: Ppn) -> Result<Option<Spare>, NandError>;

    /// Reads a page of either kind into the device's own buffer only: can it still be read?
    ///
    /// # Errors
    /// As [`Nand::read`], but content of either kind will do.
    fn probe(&mut self, ppn: Ppn) -> Result<Spare, NandError>;

    /// Programs a page of host data with its spare area. The page begins without flags, whatever
    /// `spare` says.
    ///
    /// **Power loss**: the page is as before, complete, or torn. A torn page cannot be programmed
    /// before its block is erased. A read of it may fail. It may succeed a few times and then fail,
    /// or succeed by chance, with or without the spare area. The page may read as erased, at once
    /// or after reads that succeeded; once it does, it does so until its block is erased. Its spare
    /// area may be a well-formed one that nobody wrote, beside data that cannot be read. Such a one
    /// fits its check value by chance, and gives itself away: its tag lies outside the disk, its
    /// wear is not that of its block, or no program took its number. Data that does read is what
    /// was to be written. On devices that store more than one bit a cell, a page programmed earlier
    /// in the same word line may be lost with it.
    ///
    /// # Errors
    /// [`NandError::ProgramFailed`]: the page is spent. It holds what a power cut can leave of it:
    /// nothing, a torn page, or all of the data. The block should be retired. Its other pages stay
    /// readable.
    fn program(&mut self, ppn: Ppn, data: &Self::Payload, spare: &Spare) -> Result<(), NandError>;

    /// Programs a page of metadata, at most one page of bytes. Power loss and errors as
    /// [`Nand::program`].
    fn program_meta(&mut self, ppn: Ppn, data: &[u8], spare: &Spare) -> Result<(), NandError>;

    /// As [`Nand::program_meta`], of a buffer that the device may exchange for another of the same
    /// length: that saves a copy. What is in `page` after a program that worked is unspecified;
    /// after an error it is what was to be programmed.
    ///
    /// # Errors
    /// As [`Nand::program_meta`].
    fn program_meta_page(&mut self, ppn: Ppn, page: &mut MetaPage, spare: &Spare) -> Result<(), NandError> {
        self.program_meta(ppn, page, spare)
    }

    /// Moves the contents of one page (host data or metadata) to another, with a new spare area,
    /// through the controller's buffer: one read and one program.
    ///
    /// **Power loss**: as [`Nand::program`] for `to`; `from` is untouched.
    ///
    /// # Errors
    /// Those of reading `from` and of programming `to`; which page an error is about is in the
    /// error.
    fn copy(&mut self, from: Ppn, to: Ppn, spare: &Spare) -> Result<(), NandError>;

    /// Erases a block.
    ///
    /// **Power loss**: the block is as before, erased, or half erased. Any page of a half-erased
    /// block may read as it did, as erased, or as a torn page may. One that can be read at first
    /// does not read as erased later. None may be programmed before another erase.
    ///
    /// # Errors
    /// [`NandError::EraseFailed`]: the block is as it was or half erased, and should be retired.
    fn erase(&mut self, block: BlockId) -> Result<(), NandError>;

    /// Whether a block is marked bad, by the factory or by [`Nand::mark_bad`].
    fn is_bad(&self, block: BlockId) -> bool;

    /// Retires a block for ever. It is called when nothing in the block is needed: some devices
    /// erase a block before they mark it.
    ///
    /// **Power loss**: the mark is there or not. Without it the block is as an erase leaves it.
    ///
    /// # Errors
    /// [`NandError::PowerLost`] or an address outside the device.
    fn mark_bad(&mut self, block: BlockId) -> Result<(), NandError>;

    /// Sets flags of a programmed page by clearing their bits; flags that are set stay set. Each
    /// call is one more program of the spare area, even one that names no flag.
    ///
    /// **Power loss**: each of `flags` is set or as before. Neither the page's data nor the rest of
    /// the spare area is harmed.
    ///
    /// # Errors
    /// [`crate::Law::SpareReprogram`] if the device cannot, or not again before the block is
    /// erased; [`NandError::Erased`]; those of reading the spare area.
    fn clear_flags(&mut self, ppn: Ppn, flags: Flags) -> Result<(), NandError>;

    /// Bits that the ECC corrected in the last page read; many mean that the page should be moved
    /// before it becomes uncorrectable. Devices that cannot tell answer 0.
    fn corrected_bits(&self) -> u32 {
        0
    }

    /// Wrong bits of a page that the ECC can correct. 0 for devices that cannot tell.
    fn correctable_bits(&self) -> u32 {
        0
    }
}

/// A device that can be copied as it is now, sharing contents until either copy changes them.
pub trait Snapshot {
    /// The copy. Takes `&mut self` because what was this device's alone becomes shared.
    #[must_use]
    fn snapshot(&mut self) -> Self;
}
