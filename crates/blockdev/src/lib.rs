//! A flash translation layer (FTL) served as a block device.
//!
//! Reading order: [`contract`] (what a served device does), [`disk`] (a device over one FTL or
//! several), [`banked`] (a device over the engine of many threads), [`mod@nbd`] (the protocol by
//! which clients reach it), [`stats`] (what is counted).
//!
//! ```
//! use openftl_blockdev::{BlockDevice, Disk, DiskOptions, Keeping};
//! use ftl::{Config, Flash};
//! use nand::MemNand;
//! use table::AnyBytes;
//!
//! let profile = nand::find("small").ok_or("no such profile")?;
//! let device: AnyBytes = Box::new(MemNand::new(profile.geometry()?, profile.capabilities));
//! let row = table::find::<AnyBytes>("gecko").ok_or("no such FTL")?;
//! let ftl = (row.format)(Flash::new(device), &Config::new(400))?;
//!
//! let disk = Disk::new(vec![ftl], row.info, DiskOptions::new(Keeping::Nothing))?;
//! disk.write(1000, b"any range", false)?;
//! let mut read = [0; 9];
//! disk.read(1000, &mut read)?;
//! assert_eq!(&read, b"any range");
//! disk.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod banked;
pub mod contract;
pub mod disk;
pub mod log;
pub mod nbd;
pub mod stats;

pub use banked::{BankedDisk, BankedOptions};
pub use contract::{BlockDevice, BlockSizes, DiskError, DiskReport, Extent, Settling, Zeroing};
pub use disk::{Disk, DiskOptions, Keeping, Refusal, Store};
pub use log::{Log, Severity, Silent};
