//! LFTL: a flash translation layer of many threads, for a card of many banks.
//!
//! After Srimugunthan, Gopinath, Yasa: *LFTL: A multi-threaded FTL for a Parallel IO Flash Card
//! under Linux*. A sector is 4 KiB, a page of flash up to 64 KiB: write buffers gather the sectors
//! of a page. There is no global lock. What the paper leaves open about power loss is written in
//! `docs/LFTL.md`.
//!
//! Reading order: [`engine`] (what a host may ask, and the journey of a write), `frames` (the write
//! buffers), `append` (which bank takes a page), `bank` (what a bank's lock guards), `map`, `live`
//! and `trims` (what is changed without one), [`buffer::replacement`] and
//! [`ftl::victim::by_bank`] (policies as pure functions, shared with the simulator), `collect`
//! (garbage collection), `meta` and `save` (what is written to flash beside host data), [`mount`]
//! (how a disk is found again), `server` (the threads), [`devices`] (banks of any kind),
//! [`mod@slice`] (one device as several banks).
//!
//! For measurements: [`clock`] (virtual time), [`card`] (how long a card takes), [`hollow`] (banks
//! that keep no host data).
#![forbid(unsafe_code)]

mod append;
mod bank;
#[cfg(not(shuttle))]
pub mod card;
#[cfg(not(shuttle))]
pub mod clock;
mod collect;
#[cfg(feature = "contention")]
pub mod contention;
pub mod devices;
pub mod engine;
pub mod error;
mod frames;
pub mod hollow;
mod live;
mod map;
mod meta;
pub mod mount;
mod report;
mod save;
#[cfg(not(shuttle))]
pub mod server;
pub mod shape;
pub mod slice;
mod sync;
mod trims;

pub use bank::Ops;
pub use buffer::Replacement;
#[cfg(not(shuttle))]
pub use card::{Card, Timed};
pub use devices::Devices;
pub use engine::Engine;
pub use error::{LftlError, Shortage};
pub use ftl::victim::by_bank::{Level, Levels, Policy};
pub use hollow::Hollow;
pub use mount::{MountReport, Recovery};
pub use report::Report;
#[cfg(not(shuttle))]
pub use server::{OwnTime, Server, Threads};
pub use shape::{Options, SECTOR_BYTES, SECTORS_MAX};
pub use slice::Slice;
