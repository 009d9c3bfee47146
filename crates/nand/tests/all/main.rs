//! The devices, their laws and their faults.

mod common;
mod faults;
mod file;
mod file_host;
mod file_joint;
mod file_killed;
mod file_several;
mod image;
mod laws;
mod memory;
mod model;
mod profiles;
