//! The table of synthetic workloads: one file and one row each.

mod drift;
mod hotcold;
mod phases;
mod postmark;
mod profile;
mod sequential;
mod shuffle;
mod streams;
mod strided;
mod uniform;
mod zipf;

pub(crate) use zipf::Zipf;

use crate::error::WorkloadError;
use crate::param::Parameter;
use crate::request::Source;
use crate::spec::Spec;

/// What a workload is built for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) logical_bytes: u64,
    pub(crate) page_bytes: u32,
    pub(crate) seed: u64,
    /// Whether its requests end with a pass, if the workload has passes.
    pub(crate) one_pass: bool,
}

/// Makes the generator of a checked spec.
type Build = fn(&Spec, Room) -> Result<Box<dyn Source>, WorkloadError>;

/// A row of the table of workloads.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadEntry {
    /// Name, as written before the colon.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Its own options; see [`common_parameters`] for the others.
    pub parameters: &'static [Parameter],
    /// Those common options it takes; `None` for all of them.
    pub common: Option<&'static [&'static str]>,
    /// A spec one can run.
    pub example: &'static str,
    /// Contradictions between its own options.
    pub(crate) check: fn(&Spec) -> Result<(), WorkloadError>,
    pub(crate) build: Build,
}

impl WorkloadEntry {
    /// Whether the common option `name` applies to this workload.
    pub fn takes_common(&self, name: &str) -> bool {
        self.common.is_none_or(|list| list.contains(&name))
    }
}

/// The table: each file of this folder has its row.
static TABLE: &[WorkloadEntry] = &[
    uniform::ENTRY,
    zipf::ENTRY,
    hotcold::ENTRY,
    sequential::ENTRY,
    strided::ENTRY,
    streams::ENTRY,
    shuffle::ENTRY,
    phases::ENTRY,
    drift::ENTRY,
    postmark::ENTRY,
    profile::ENTRY,
];

/// All synthetic workloads.
pub fn workloads() -> &'static [WorkloadEntry] {
    TABLE
}

/// The options that every workload takes unless its row restricts them.
pub fn common_parameters() -> &'static [Parameter] {
    crate::stream::COMMON
}

/// For workloads whose own options cannot contradict each other.
fn no_check(_: &Spec) -> Result<(), WorkloadError> {
    Ok(())
}
