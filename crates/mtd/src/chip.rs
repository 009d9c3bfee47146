//! What a NAND chip does for [`crate::MtdNand`]: whole pages with some bytes of OOB.
//!
//! [`crate::CharDevice`] is the one behind the kernel. A test brings its own, with the faults that
//! it wants to see.

use nand::HostError;

/// The shape of a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Erase blocks, bad ones included.
    pub blocks: u32,
    /// Pages in each block.
    pub pages_per_block: u32,
    /// Bytes in each page, OOB excluded.
    pub page_bytes: u32,
    /// Bytes of the OOB that neither the ECC nor the bad-block marker takes.
    pub oob_bytes: u32,
    /// Wrong bits of an ECC step that the ECC corrects; 0 if that is not known.
    pub ecc_strength: u32,
}

/// Where a page is: a block, and the page's offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The block.
    pub block: u32,
    /// Which page of it.
    pub offset: u32,
}

/// Why an operation of a chip failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChipError {
    /// The chip says that it could not program, erase or read.
    #[error("the chip reports a failure")]
    Failed,
    /// More bits are wrong than the ECC corrects.
    #[error("more bits are wrong than the ECC corrects")]
    Uncorrectable,
    /// The operating system did not let it come to that.
    #[error("{}", std::io::Error::from_raw_os_error(.0.0))]
    Host(HostError),
}

/// A NAND chip with its ECC. Blocks are numbered from the first of the whole chip.
///
/// Nothing is checked here; [`crate::MtdNand`] keeps the laws.
pub trait Chip: Send {
    /// Its shape, which never changes.
    fn shape(&self) -> Shape;

    /// Reads a page, or only its OOB if `data` is `None`. Returns the bits that were corrected in
    /// the ECC step with most of them.
    ///
    /// # Errors
    /// [`ChipError`]; the buffers are unspecified then.
    fn read(&mut self, at: Place, data: Option<&mut [u8]>, oob: &mut [u8]) -> Result<u32, ChipError>;

    /// Programs a page of data, with some bytes of OOB or none.
    ///
    /// # Errors
    /// [`ChipError::Failed`] or [`ChipError::Host`].
    fn program(&mut self, at: Place, data: &[u8], oob: &[u8]) -> Result<(), ChipError>;

    /// Erases a block.
    ///
    /// # Errors
    /// As [`Self::program`].
    fn erase(&mut self, block: u32) -> Result<(), ChipError>;

    /// Whether a block is marked bad.
    ///
    /// # Errors
    /// As [`Self::program`].
    fn is_bad(&mut self, block: u32) -> Result<bool, ChipError>;

    /// Marks a block bad for ever. The kernel may erase it first.
    ///
    /// # Errors
    /// As [`Self::program`].
    fn mark_bad(&mut self, block: u32) -> Result<(), ChipError>;
}
