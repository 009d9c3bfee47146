//! The unit of work and the trait of everything that produces it.

use crate::WorkloadError;
use serde::{Deserialize, Serialize};

/// What a request asks of the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Op {
    /// Return the bytes last written.
    Read,
    /// Replace the bytes.
    #[default]
    Write,
    /// The bytes are no longer needed (discard).
    Trim,
    /// Everything written before must survive a power cut. Offset and length are zero.
    Flush,
}

impl Op {
    /// Lower-case name, as written in CSV files and fio logs.
    pub const fn name(self) -> &'static str {
        match self {
            Op::Read => "read",
            Op::Write => "write",
            Op::Trim => "trim",
            Op::Flush => "flush",
        }
    }
}

/// One request of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Request {
    /// Arrival in nanoseconds since the start of the workload; 0 where the workload has no arrival
    /// times.
    pub at_ns: u64,
    /// What is asked.
    pub op: Op,
    /// First byte concerned, from the start of the logical space.
    pub offset: u64,
    /// Number of bytes concerned; 0 for [`Op::Flush`] only.
    pub bytes: u64,
    /// Of a write: it has to survive a power cut once it has ended (force unit access). Other
    /// writes are not concerned.
    #[serde(default)]
    pub fua: bool,
}

/// A stream of requests.
///
/// A source is deterministic: the same construction and seed give the same requests whatever the
/// batch sizes. Every request lies inside the logical space the source was built for.
pub trait Source: Send {
    /// Writes up to `out.len()` requests into the front of `out` and returns how many.
    ///
    /// Fewer than `out.len()` does not mean the end; 0 for a non-empty `out` does, and is then
    /// returned for ever. Arrival times never decrease.
    ///
    /// # Errors
    /// Sources which read while they run name file and line; those of this crate validate when they
    /// are built and do not fail here.
    fn fill(&mut self, out: &mut [Request]) -> Result<usize, WorkloadError>;

    /// True if `at_ns` is meaningful, so that an open-loop host can be run.
    fn timed(&self) -> bool;

    /// What is run, in one line, with every default spelled out.
    fn describe(&self) -> String;
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn fill(&mut self, out: &mut [Request]) -> Result<usize, WorkloadError> {
        (**self).fill(out)
    }
    fn timed(&self) -> bool {
        (**self).timed()
    }
    fn describe(&self) -> String {
        (**self).describe()
    }
}
