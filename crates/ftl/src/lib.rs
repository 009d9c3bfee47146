//! Flash translation layers, each a short composition of shared parts.
//!
//! Reading order: [`contract`] (what a host may rely on), [`flash`] (the accounting layer that
//! every flash operation goes through), then the parts and the engines, and last the table of FTLs.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

pub mod bound;
pub mod config;
pub mod contract;
pub mod crc;
pub mod engine;
pub mod flash;
pub mod ftls;
pub mod inspect;
pub mod mapping;
pub mod placement;
pub mod recovery;
pub mod saved;
pub mod space;
pub mod validity;
pub mod victim;

pub use bound::{Bound, Formula, Most};
pub use config::{Config, GeckoAsked, GeckoOptions, GroupOptions, JanusOptions, Maps, Preset, Setting, WearOptions};
pub use contract::{Ftl, FtlError, Gauge, MountReport, MountStep, RamItem, RamReport, Shortage};
pub use flash::{Branch, Counts, Flash, Op, OpCounts, OpKind, Purpose};
pub use inspect::Inspector;
