//! An MTD device over a chip in memory, and over one behind the kernel.
//!
//! What needs the kernel is skipped unless `OPENFTL_MTD` names a device, such as `/dev/mtd0`.
//! **Everything on that device is lost.** The tests then run one at a time (`--test-threads=1`).
//! `scripts/mtd-test` runs them over a simulated chip.
#![cfg(target_os = "linux")]

mod bed;
mod ftls;
mod kernel;
mod laws;
mod memory;
mod opening;
mod torn;
