//! LFTL: a flash translation layer of many threads, for a card of many banks.
//!
//! After Srimugunthan, Gopinath, Yasa: *LFTL: A multi-threaded FTL for a Parallel IO Flash Card
//! under Linux*. A sector is 4 KiB, a page of flash up to 64 KiB: write buffers gather the sectors
//! of a page. There is no global lock. What the paper leaves open about power loss is written in
//! `docs/LFTL.md`.
//!
//! Reading order: [`engine`] (what a host may ask, and the journey of a write), `frames` (the write
//! buffers), `append` (which bank takes a page), `bank` (what a bank's lock guards), `map`, `live`
//! and `trims` (what is changed without one), [`policy`] and [`replacement`] (policies as pure
//! functions), `collect` (garbage collection), `meta` and `save` (what is written to flash
//! beside host data), [`mount`] (how a disk is found again), `server` (the threads), [`mod@slice`]
//! (one device as several banks).
#![forbid(unsafe_code)]

mod append;
mod bank;
mod collect;
pub mod engine;
pub mod error;
mod frames;
mod live;
mod map;
mod meta;
pub mod mount;
pub mod policy;
pub mod replacement;
mod save;
#[cfg(not(shuttle))]
pub mod server;
pub mod shape;
pub mod slice;
mod sync;
mod trims;

pub use bank::Ops;
pub use engine::{Engine, Report};
pub use error::{LftlError, Shortage};
pub use mount::{MountReport, Recovery};
pub use policy::{Level, Levels, Policy};
pub use replacement::Replacement;
#[cfg(not(shuttle))]
pub use server::{Server, Threads};
pub use shape::{Options, SECTOR_BYTES, SECTORS_MAX};
pub use slice::Slice;
