//! Why a device in a file was not made, opened or closed.

use super::layout::{FILE_VERSION, JOINT_VERSION, MAGIC, OWNER_BYTES_MAX};
use crate::geometry::GeometryError;
use std::io;

/// Why a device in a file was not made, opened or closed; it says what was found. Whoever knows the
/// path adds it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The operating system refused.
    #[error("the file cannot be {attempt}: {source}")]
    Io {
        /// What was tried: "opened", "read", …
        attempt: &'static str,
        /// What it said.
        source: io::Error,
    },
    /// There is a file of that name already.
    #[error("there is such a file already; choose another name or remove it")]
    Exists,
    /// The disk of the host is full.
    #[error("the disk of the host is full while the file is {attempt}; free some space and try again")]
    Full {
        /// What was tried: "created", "written", …
        attempt: &'static str,
    },
    /// The host does not let the file be written.
    #[error("the host allows no writes to the file ({source}); open it read-only, or change that")]
    ReadOnly {
        /// What it said.
        source: io::Error,
    },
    /// Somebody has the device open.
    #[error("another process has the device open; a device is written by one process at a time")]
    Locked,
    /// The file is something else.
    #[error("no device in a file: it starts with {found:02x?}, one with {MAGIC:02x?} (OFTLNAND)")]
    Foreign {
        /// The first bytes of the file.
        found: [u8; 8],
    },
    /// The file is of another format version.
    #[error("the file has format version {found}; this program reads versions {FILE_VERSION} to {JOINT_VERSION}")]
    Version {
        /// The version found.
        found: u32,
    },
    /// The file ends before the device does.
    #[error("the file is truncated: it has {bytes} B of {needed} B; restore it from a copy")]
    Truncated {
        /// Length of the file, in bytes.
        bytes: u64,
        /// What it should have, in bytes.
        needed: u64,
    },
    /// The bytes are not those that were written.
    #[error("the file is damaged: its {part} at byte {at} does not match its check value; restore it from a copy")]
    Damaged {
        /// What does not match.
        part: &'static str,
        /// Where it is in the file, in bytes.
        at: u64,
    },
    /// The header names a geometry that cannot be.
    #[error("the file has an impossible geometry: {0}")]
    Geometry(#[from] GeometryError),
    /// A field has a value that this version never writes.
    #[error("the file is malformed: {what} is {found}")]
    Malformed {
        /// The field.
        what: &'static str,
        /// Its value.
        found: u64,
    },
    /// The file holds several devices where one is wanted.
    #[error("the file holds {devices} devices, which are opened together")]
    Several {
        /// Devices in the file.
        devices: u16,
    },
    /// One of the devices in a file of several cannot be opened or made.
    #[error("device {index} of the file: {source}")]
    Device {
        /// Devices before it.
        index: u16,
        /// Why.
        source: std::boxed::Box<FileError>,
    },
    /// The owner's record is too long to keep.
    #[error("the owner's record has {bytes} B; at most {OWNER_BYTES_MAX} B are kept")]
    OwnerTooLong {
        /// Its length, in bytes.
        bytes: usize,
    },
    /// The tables of the device do not fit into memory.
    #[error("the tables of a device of {blocks} blocks do not fit into memory")]
    Memory {
        /// Blocks of the device.
        blocks: u32,
    },
}

impl FileError {
    /// The error for what the operating system said while the file was to be `attempt`.
    pub(super) fn io(attempt: &'static str, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AlreadyExists => Self::Exists,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { attempt },
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { source },
            _ => Self::Io { attempt, source },
        }
    }
}
