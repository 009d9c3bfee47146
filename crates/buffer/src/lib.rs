//! Write buffers before a flash translation layer.
//!
//! A buffer has room for pages of flash and gathers in each what was written to parts of it. Here
//! stand the parts that need neither threads nor a device: [`replacement`] (which buffers leave
//! first, as pure functions; LFTL's buffers use them too) and [`pages`] (what a buffer holds, as
//! the simulator needs it: without contents).
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

pub mod pages;
pub mod replacement;
mod sectors;

pub use pages::{Found, Taken, WriteBuffer, Written};
pub use replacement::{BufferView, Replacement};
pub use sectors::Sectors;
