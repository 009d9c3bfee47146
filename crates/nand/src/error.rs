//! What can go wrong on flash, naming the law and the page.

use crate::addr::{BlockId, Ppn};
use core::fmt;

/// A law of NAND flash that a caller broke. Each is a defect of the caller, never of the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Law {
    /// The address lies outside the device.
    AddressInRange,
    /// A page is erased before it is programmed again.
    EraseBeforeProgram,
    /// Pages of a block are programmed in ascending order.
    ProgramOrder,
    /// A retired block is not programmed or erased.
    BadBlock,
    /// Data is exactly one page (host data) or at most one page (metadata).
    PageSize,
    /// Flags of a page are set only if the device can, and only so often before an erase.
    SpareReprogram,
    /// Host data is read as host data and metadata as metadata.
    PageContent,
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AddressInRange => "an address lies inside the device",
            Self::EraseBeforeProgram => "a page is erased before it is programmed again",
            Self::ProgramOrder => "pages of a block are programmed in ascending order",
            Self::BadBlock => "a bad block is neither programmed nor erased",
            Self::PageSize => "data fits the page",
            Self::SpareReprogram => "flags of a page are set only as often as the device can",
            Self::PageContent => "a page is read as what it was written as",
        })
    }
}

/// Why a flash operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NandError {
    /// The caller broke a law; nothing was done.
    #[error("{operation} of {ppn} breaks the law that {law}")]
    Illegal {
        /// What was tried: "program", "read", …
        operation: &'static str,
        /// The page, or the first page of the block.
        ppn: Ppn,
        /// The law.
        law: Law,
    },
    /// The page is erased; there is nothing to read.
    #[error("{ppn} is erased: nothing to read")]
    Erased {
        /// The page.
        ppn: Ppn,
    },
    /// More bits are wrong than the device's ECC corrects: torn, worn or disturbed.
    #[error("{ppn} is uncorrectable")]
    Uncorrectable {
        /// The page.
        ppn: Ppn,
    },
    /// The device reports that programming failed; the page is spent, the block should be retired.
    #[error("programming {ppn} failed; move the data elsewhere and retire the block")]
    ProgramFailed {
        /// The page.
        ppn: Ppn,
    },
    /// The device reports that erasing failed; the block should be retired.
    #[error("erasing {block} failed; retire it")]
    EraseFailed {
        /// The block.
        block: BlockId,
    },
    /// Power is gone: this and every later operation fail until the device is powered up again.
    #[error("power is gone")]
    PowerLost,
    /// The host that keeps the device's bytes failed: its disk is full, its file cannot be read.
    /// The flash is as good as before, so nothing is to be retired.
    ///
    /// A program, an erase or a mark that fails so was not done. From then on the device refuses
    /// each of them with the same cause until it is opened again; reads go on.
    #[error("{operation} of {ppn}: {cause}")]
    Host {
        /// What was tried: "program", "read", …
        operation: &'static str,
        /// The page, or the first page of the block.
        ppn: Ppn,
        /// What the host said.
        cause: HostError,
    },
}

impl NandError {
    /// Whether the device takes no more programs and erases until it is opened again: what was
    /// under way is as a power cut leaves it.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::PowerLost | Self::Host { .. })
    }
}

/// Why the host of a device failed, as the number that its operating system gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HostError(pub i32);

impl fmt::Display for HostError {
    #[cfg(feature = "std")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cause = std::io::Error::from_raw_os_error(self.0);
        write!(f, "the host failed: {cause}; nothing more is written until the device is opened again")
    }

    #[cfg(not(feature = "std"))]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the host failed with error {}; nothing more is written until the device is opened again", self.0)
    }
}
