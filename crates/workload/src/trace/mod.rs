//! Recorded workloads: opened by content, described, converted, fitted, and played back on a device
//! of another size.
//!
//! 1. [`open`] finds compression and format by looking at the bytes, reads the file once, and keeps
//!    the requests in 24 bytes each. What had to be guessed is said in [`Trace::notes`].
//! 2. [`info`] describes it, [`convert`] writes it in another format, [`fit`] reduces it to a
//!    [`crate::Profile`].
//! 3. [`Replay`] maps it onto a logical space by a stated rule and plays it back as a
//!    [`crate::Source`].

mod builder;
mod compression;
mod convert;
mod fit;
mod footprint;
mod formats;
mod info;
mod input;
mod names;
mod open;
mod options;
mod record;
mod replay;
mod reuse;
mod revisits;
mod samples;
mod written;

pub use convert::{CsvWriter, Format, convert};
pub use fit::fit;
pub use footprint::{Footprint, footprint};
pub use formats::{FormatEntry, formats};
pub use info::{Info, Percentiles, Skew, info};
pub use open::{Detection, detect, open, read};
pub use options::{FlagMeaning, OpenOptions, SizeUnit, TimeUnit, Unsaid};
pub use record::record;
pub use replay::{Map, Replay, ReplayOptions};
pub use samples::{Sample, sample, samples};
pub use written::written_only;

use crate::request::Op;

/// One request of a trace, packed, because long traces are held whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    at_ns: u64,
    offset: u64,
    bytes: u32,
    device: u16,
    op: Op,
    fua: bool,
}

impl Record {
    /// Arrival, nanoseconds since the first request of the trace.
    pub fn at_ns(&self) -> u64 {
        self.at_ns
    }
    /// What is asked.
    pub fn op(&self) -> Op {
        self.op
    }
    /// Whether a write has to survive a power cut once it has ended.
    pub fn fua(&self) -> bool {
        self.fua
    }
    /// First byte on its device.
    pub fn offset(&self) -> u64 {
        self.offset
    }
    /// Length in bytes; 0 for a flush only.
    pub fn bytes(&self) -> u64 {
        u64::from(self.bytes)
    }
    /// Index of the device in [`Trace::devices`].
    pub fn device(&self) -> usize {
        usize::from(self.device)
    }
    /// One past the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.offset + self.bytes()
    }
}

/// A trace in memory, in order of arrival.
#[derive(Clone, Debug)]
pub struct Trace {
    pub(crate) name: String,
    pub(crate) format: &'static str,
    pub(crate) records: Vec<Record>,
    pub(crate) devices: Vec<String>,
    pub(crate) notes: Vec<String>,
    pub(crate) skipped: u64,
    pub(crate) timed: bool,
    pub(crate) time_guess: Option<String>,
}

impl Trace {
    /// File name, or the name given to [`read`].
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Name of the format, as in the table of formats.
    pub fn format(&self) -> &'static str {
        self.format
    }
    /// All requests by arrival; never empty.
    pub fn records(&self) -> &[Record] {
        &self.records
    }
    /// Devices or volumes as named in the file, in order of first appearance.
    pub fn devices(&self) -> &[String] {
        &self.devices
    }
    /// What was guessed, left out or rearranged, in sentences for the user.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
    /// Malformed lines or records skipped by a lenient reading.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }
    /// Whether the trace has arrival times.
    pub fn timed(&self) -> bool {
        self.timed
    }
    /// What was guessed about arrival times, if the file does not say their unit. A wrong guess
    /// makes the trace a thousand times too fast or too slow.
    pub fn time_guess(&self) -> Option<&str> {
        self.time_guess.as_deref()
    }
}
