//! Where requests come from: the contract of the workload crate, under the names used here.

pub use workload::{Op, Request, Source, WorkloadError};
