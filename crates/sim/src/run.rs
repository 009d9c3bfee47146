//! One run, from formatting the device to its results.

use crate::error::SimError;
use crate::result::RunResult;
use crate::spec::RunSpec;

/// Which part of a run is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Writing every page once.
    Fill,
    /// Overwriting until write-amplification is steady.
    Precondition,
    /// What is measured.
    Measure,
    /// Reading every page back.
    Verify,
}

/// How far a run has come. Given at most every 2^16 pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The part of the run.
    pub phase: Phase,
    /// Pages done in it.
    pub done: u64,
    /// Pages in it; 0 if not known.
    pub total: u64,
}

/// Runs one simulation.
///
/// # Errors
/// [`SimError`]; above all [`SimError::WrongData`] if the FTL returned anything but what was last written.
pub fn run(spec: &RunSpec, progress: &mut dyn FnMut(Progress)) -> Result<RunResult, SimError> {
    let _ = progress;
    Err(SimError::UnknownFtl { name: spec.ftl.clone(), known: String::new() })
}
