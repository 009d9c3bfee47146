//! Raw NAND flash as a flash translation layer sees it.
//!
//! Reading order: [`addr`] and [`geometry`] (what an address is), [`spare`] (what is written beside
//! every page), [`contract`] (the [`Nand`] trait: the laws, and what power loss may do), then the
//! devices that keep the contract.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

pub mod addr;
pub mod contract;
pub mod error;
pub mod faults;
pub mod geometry;
#[cfg(feature = "std")]
pub mod image;
mod laws;
pub mod mem;
pub mod sim;
pub mod spare;

pub use addr::{BlockId, Lpn, Ppn};
pub use contract::{Nand, Payload, Snapshot, Stamp};
pub use error::{Law, NandError};
pub use faults::{Blemish, Cut, CutOutcome, FaultPlan, Faulty, Pairing};
pub use geometry::{Capabilities, Dimensions, Geometry, GeometryError, ProgramOrder, Timing};
pub use mem::MemNand;
pub use sim::SimNand;
pub use spare::{PageKind, Spare};
