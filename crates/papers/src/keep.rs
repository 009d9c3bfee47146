//! Results that outlive the call they were made in.

use crate::error::PaperError;
use sim::RunResult;

/// Where results of runs are kept. Settings are [`RunSpec::text`](sim::RunSpec::text); a run
/// without it is always done.
///
/// Called from several threads at once.
pub trait Keep: Sync {
    /// The result of a run with these settings, exactly as this very program would give it, the
    /// computer's part apart; `None` to have it done.
    fn find(&self, settings: &str) -> Option<RunResult>;

    /// Keeps the result of a run that was done just now, in the place of any that was kept before.
    ///
    /// # Errors
    /// [`PaperError::Keep`], which ends all runs.
    fn keep(&self, settings: &str, result: &RunResult) -> Result<(), PaperError>;
}

/// Every run is done, and none kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeepNothing;

impl Keep for KeepNothing {
    fn find(&self, _: &str) -> Option<RunResult> {
        None
    }

    fn keep(&self, _: &str, _: &RunResult) -> Result<(), PaperError> {
        Ok(())
    }
}
