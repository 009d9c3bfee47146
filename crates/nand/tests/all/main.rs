//! The devices, their laws and their faults.

mod common;
mod faults;
mod image;
mod laws;
mod memory;
mod model;
mod profiles;
