//! Raw NAND flash behind a Linux MTD character device (`/dev/mtdN`), as a device of [`nand::Nand`].
//!
//! Reading order: [`chip`] (what a chip does), [`MtdNand`] (the laws over it), [`record`] (what is
//! written beside every page), [`header`] (what is in the first blocks), [`char_device`] (a chip
//! behind the kernel). Which bytes are where is in `docs/FORMAT.md`.
//!
//! # What is needed
//! - Linux 6.1 or later, for MEMREAD: data, OOB and what the ECC did, in one call.
//! - NAND of one bit a cell or more. Other flash is refused.
//! - [`RECORD_BYTES`] bytes of OOB that the ECC leaves free.
//! - The right to open the device: root, or the group that owns the node.
//!
//! # What is promised
//! - A page whose data or OOB are not those that were programmed is uncorrectable, whatever the ECC
//!   says. That holds for a page that power loss tore.
//! - Failures keep their kinds: a program that the chip refuses is `ProgramFailed`, an erase
//!   `EraseFailed`. What the kernel refuses is [`nand::NandError::Host`].
//! - What a call returned from is on flash: there is nothing to sync.
//! - A block that is marked bad is marked for the kernel, too. The kernel erases it first: an FTL
//!   marks a block when nothing in it lives, and ours do.
//!
//! ```no_run
//! use openftl_mtd::{Access, MtdNand};
//! use std::path::Path;
//!
//! let path = Path::new("/dev/mtd0");
//! let made = MtdNand::create(path, b"gecko")?;
//! drop(made);
//! let opened = MtdNand::open(path, Access::ReadWrite)?;
//! assert_eq!(opened.owner(), b"gecko");
//! # Ok::<(), openftl_mtd::MtdError>(())
//! ```
#![cfg(target_os = "linux")]
#![deny(unsafe_code)]

pub mod char_device;
pub mod chip;
mod device;
mod error;
pub mod header;
mod open;
pub mod record;
mod sys;

pub use char_device::{Access, CharDevice};
pub use chip::{Chip, ChipError, Place, Shape};
pub use device::MtdNand;
pub use error::MtdError;
pub use header::OWNER_BYTES_MAX;
pub use open::geometry;
pub use record::RECORD_BYTES;
