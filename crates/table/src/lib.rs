//! The table of FTLs, compiled.
//!
//! [`ftl::ftls::table`] is generic over the device, so that each crate that calls it compiles every
//! FTL again. Here that is done once for each kind of device: the simulated one, and any device
//! that keeps bytes, behind a pointer. So explorer and served disk run the same compiled FTLs.
//!
//! ```
//! use ftl::{Config, Flash};
//! use nand::{Lpn, MemNand, find};
//! use openftl_table::AnyBytes;
//!
//! let profile = find("small").ok_or("no such profile")?;
//! let device: AnyBytes = Box::new(MemNand::new(profile.geometry()?, profile.capabilities));
//! let gecko = openftl_table::find::<AnyBytes>("gecko").ok_or("no such FTL")?;
//! let mut disk = (gecko.format)(Flash::new(device), &Config::new(100))?;
//! disk.write(Lpn(7), &[7; 512])?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

use ftl::ftls::{self, Entry};
use ftl::validity::{Fast, Small};
use nand::{AnyNand, Nand, SimNand};

/// Any device that keeps bytes; one that keeps stamps is one through [`nand::Stamped`].
pub type AnyBytes = AnyNand<[u8]>;

/// A kind of device for which every FTL is compiled.
pub trait Compiled: Nand + Sized {
    /// Every FTL, in the order of reports.
    fn table() -> Vec<Entry<Self>>;
}

macro_rules! compiled {
    ($($device:ty: $build:ty),* $(,)?) => {
        $(impl Compiled for $device {
            // Inlined, it would bring the FTLs into its caller's crate.
            #[inline(never)]
            fn table() -> Vec<Entry<Self>> {
                ftls::table_of::<Self, $build>()
            }
        })*
    };
}

// A device of bytes is called through a pointer anyway.
compiled!(SimNand: Fast, AnyBytes: Small);

/// Every FTL, in the order of reports.
#[must_use]
pub fn table<N: Compiled>() -> Vec<Entry<N>> {
    N::table()
}

/// The row with this name.
#[must_use]
pub fn find<N: Compiled>(name: &str) -> Option<Entry<N>> {
    N::table().into_iter().find(|entry| entry.info.name == name)
}
