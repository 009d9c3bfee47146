//! A laboratory for flash translation layers: drive any of them with any workload over a simulated
//! device, and learn what it cost.
//!
//! Reading order: [`spec`] (what to run: [`RunSpec`]), [`result`] (what comes out: [`RunResult`]),
//! [`run()`] (one run from formatting to results), [`host`] (requests to pages, every read
//! checked),
//! [`precondition`] and [`aged`], [`steps`] (a run request by request), [`parts`] (several
//! measurements of one device), [`sustained`] (the rate that an FTL keeps up with),
//! [`timing`] (dies, channels and queues in virtual time),
//! [`amplification`] (what write-amplification means here), [`mod@reference`] (what theory says of
//! it),
//! [`mod@bench`].
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod aged;
pub mod amplification;
mod bare;
pub mod bench;
mod by_bank;
pub mod device;
pub mod error;
mod feed;
mod future;
pub mod growth;
pub mod host;
mod latency;
pub mod memory;
pub mod parts;
pub mod precondition;
pub mod progress;
pub mod reference;
pub mod result;
mod room;
pub mod run;
pub mod source;
pub mod spec;
pub mod steps;
mod stopwatch;
pub mod sustained;
mod timed;
mod timeline;
pub mod timing;

pub use buffer::Replacement;
pub use error::SimError;
pub use progress::{Phase, Progress};
pub use result::{ByPurpose, RunResult};
pub use run::{run, run_ftl};
pub use spec::{
    DevicePlan, First, GcMode, HostMode, OwnWrites, PreconditionMode, QueueOptions, RunSpec, SteadyOptions, TimingMode,
    WorkloadContext, WorkloadSpec, WriteBufferOptions,
};
