//! A served device as a block device of Linux: `/dev/ublkbN`, over the kernel's driver `ublk_drv`.
//!
//! Reading order: [`Server`] (what a caller does), `control` (commands about the device), `queue`
//! (requests and their answers), `request` (one request), `sys` (memory shared with the kernel).
//!
//! # What is needed
//! - Linux 6.5 or later with the module `ublk_drv`, and io_uring.
//! - The right to open `/dev/ublk-control`: root.
//!
//! # What is promised
//! - A flush covers every write, trim and zeroing that was answered before it, on any queue.
//! - A device that was stopped is gone, with its nodes.
//! - A server that is killed takes its device with it: requests fail, and none waits for ever. The
//!   kernel keeps the number of such a device; [`Server::start`] frees the number when it is asked
//!   for it.
//!
//! # Copies
//! The driver is asked for `UBLK_F_USER_COPY`: data moves by `pread` and `pwrite`. That is a system
//! call more for each request. In return the kernel never holds an address of this process.
#![cfg(target_os = "linux")]
#![deny(unsafe_code)]

mod control;
mod error;
mod queue;
mod request;
mod server;
mod sys;
#[cfg(test)]
mod testing;

pub use error::UblkError;
pub use server::{ID_MAX, Options, QUEUES_MAX, Server};
