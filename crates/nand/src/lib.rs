//! Raw NAND flash as a flash translation layer sees it.
//!
//! Reading order: [`addr`] and [`geometry`] (what an address is), [`spare`] (what is written beside
//! every page) with its [`mod@flags`], [`contract`] (the [`Nand`] trait: the laws, and what power
//! loss may do), [`page`] (metadata in RAM that a device may take over), then the devices that keep
//! the contract: [`sim`] (terabytes, eight bytes a page), [`mem`] (every byte; with `std` saved as
//! an image), both by the state machine of `laws`; [`faults`] laid over either; and
//! [`mod@profiles`], the flash they are made to resemble.
//!
//! ```
//! use openftl_nand::{Flags, Lpn, Nand, PageKind, Ppn, SimNand, Spare, Stamp, find};
//!
//! let profile = find("tiny").ok_or("no such profile")?;
//! let mut nand = SimNand::new(profile.geometry()?, profile.capabilities);
//! let written = Stamp { lpn: Lpn(7), version: 1 };
//! let (kind, flags) = (PageKind::User, Flags::NONE);
//! let spare = Spare { kind, tag: 7, seq: 1, erase_count: 0, erased_at: 0, aux: 0, flags };
//! nand.program(Ppn(0), &written, &spare)?;
//!
//! let mut read = Stamp::UNWRITTEN;
//! assert_eq!(nand.read(Ppn(0), &mut read)?, spare);
//! assert_eq!(read, written);
//! let again = nand.program(Ppn(0), &written, &spare);
//! assert!(again.is_err(), "a page is erased before it is programmed again");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

pub mod addr;
pub mod any;
pub mod contract;
pub mod error;
pub mod faults;
#[cfg(all(feature = "std", unix))]
pub mod file;
pub mod flags;
pub mod geometry;
#[cfg(feature = "std")]
pub mod image;
pub mod laws;
pub mod mem;
pub mod page;
pub mod profiles;
pub mod sim;
pub mod spare;
pub mod stamped;

pub use addr::{BlockId, Lpn, Ppn};
pub use any::AnyNand;
pub use contract::{Nand, Payload, Snapshot, Stamp};
pub use error::{HostError, Law, NandError};
pub use faults::{Blemish, Cut, CutOutcome, FaultPlan, Faulty, Pairing};
#[cfg(all(feature = "std", unix))]
pub use file::{Access, FileError, FileNand, Syncer};
pub use flags::Flags;
pub use geometry::{ByType, Capabilities, Dimensions, Geometry, GeometryError, ProgramOrder, Timing, TypesError};
pub use mem::MemNand;
pub use page::MetaPage;
pub use profiles::{Limits, Profile, ScaleError, find, profiles};
pub use sim::SimNand;
pub use spare::{PageKind, Spare};
pub use stamped::Stamped;
