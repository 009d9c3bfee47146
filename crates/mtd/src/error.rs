//! Why a device was not made or opened.

use crate::chip::ChipError;
use crate::header::{HEADERS_MIN, RESERVED_BLOCKS, VERSION};
use crate::record::RECORD_BYTES;
use nand::GeometryError;
use std::io;
use std::path::PathBuf;

/// Why an MTD device was not made or opened. It says what was found, and what can be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MtdError {
    /// The operating system refused.
    #[error("{path} cannot be {attempt}: {source}")]
    Io {
        /// The device.
        path: PathBuf,
        /// What was tried: "opened", "described", …
        attempt: &'static str,
        /// What it said.
        source: io::Error,
    },
    /// The user may not.
    #[error(
        "{path} may not be opened by this user ({source}): run as root, or as a member of the group that owns it; \
         /dev/mtdNro and read-only partitions are opened for reading only"
    )]
    Permission {
        /// The device.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The path leads to something else.
    #[error("{path} is {found}; name the character device of an MTD partition, such as /dev/mtd0")]
    NotMtd {
        /// The path.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// The flash is of another type.
    #[error("{path} is MTD of type {found}; only NAND flash (nand, mlc-nand) can be used")]
    NotNand {
        /// The device.
        path: PathBuf,
        /// Its type, as the kernel calls it.
        found: String,
    },
    /// Somebody has the device open.
    #[error("{path} is open in another process; a device is written by one process at a time")]
    Locked {
        /// The device.
        path: PathBuf,
    },
    /// The kernel itself uses the device.
    #[error("{path} is used by {user}; unmount it or detach it first")]
    Used {
        /// The device.
        path: PathBuf,
        /// The UBI device, or where it is mounted.
        user: String,
    },
    /// The kernel does not have what is needed.
    #[error("the kernel does not know MEMREAD; Linux 6.1 or later is needed")]
    Kernel,
    /// The OOB is too small.
    #[error("{available} B of each page's OOB are free beside the ECC, {RECORD_BYTES} B are needed; use a weaker ECC")]
    OobBytes {
        /// Free bytes.
        available: u32,
    },
    /// The shape cannot be presented.
    #[error("the chip has an impossible shape: {0}")]
    Geometry(#[from] GeometryError),
    /// The device has more blocks than fit a block number, or not even those that are reserved.
    #[error("the chip has {blocks} blocks; more than {RESERVED_BLOCKS} and fewer than 4294967295 can be used")]
    Blocks {
        /// Blocks of the device.
        blocks: u64,
    },
    /// There is no header.
    #[error(
        "the device is not formatted: none of its first {RESERVED_BLOCKS} blocks holds a readable header; format it"
    )]
    NotFormatted,
    /// The header is of another format version.
    #[error("the device has format version {found}; this program reads version {VERSION}")]
    Version {
        /// The version found.
        found: u32,
    },
    /// The device was formatted with another shape.
    #[error("the device was formatted with {formatted} {what}, and has {found}; restore its partition, or format it")]
    Shape {
        /// What differs.
        what: &'static str,
        /// Its value in the header.
        formatted: u32,
        /// Its value now.
        found: u32,
    },
    /// Too many of the blocks for the header are bad.
    #[error(
        "of the first {RESERVED_BLOCKS} blocks {good} can be written, {HEADERS_MIN} are needed for the header; use a \
         partition that begins elsewhere"
    )]
    Header {
        /// Blocks that could be written.
        good: u32,
    },
    /// The owner's record is too long to keep.
    #[error("the owner's record has {bytes} B; at most {most} B are kept")]
    OwnerTooLong {
        /// Its length, in bytes.
        bytes: usize,
        /// The greatest length, in bytes.
        most: usize,
    },
    /// The chip or the kernel failed.
    #[error("block {block} cannot be {attempt}: {source}")]
    Chip {
        /// What was tried: "erased", "read", …
        attempt: &'static str,
        /// The block, counted from the first of the chip.
        block: u32,
        /// What happened.
        source: ChipError,
    },
}
