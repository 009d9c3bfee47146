//! What a figure of a paper is: a plan of runs, and what follows from their results.

use crate::error::PaperError;
use crate::lab::Lab;
use crate::outcome::Outcome;
use sim::{RunResult, RunSpec, SimError};

/// A figure of a paper.
pub struct Figure {
    /// Name on the command line: the paper and the figure.
    pub name: &'static str,
    /// What it shows, in a line.
    pub title: &'static str,
    /// Paper and section.
    pub source: &'static str,
    /// Whether it plays recorded traces, if the laboratory has a folder of them.
    pub uses_traces: bool,
    /// The runs of the simulator that it takes, in order.
    pub plan: fn(&Lab) -> Result<Vec<Experiment>, SimError>,
    /// How it comes to its data and verdicts.
    pub conclude: Conclude,
}

/// How a figure comes to its data and verdicts.
pub enum Conclude {
    /// From the results of its runs, given in the order of the plan.
    Runs(fn(&Lab, &[Run]) -> Outcome),
    /// From measurements of its own, which say how far they are, from 0 to 1.
    Own(Measure),
}

/// Measures a figure, and says how far it is, from 0 to 1.
pub type Measure = fn(&Lab, &dyn Fn(f64)) -> Result<Outcome, PaperError>;

impl Figure {
    /// Whether it can be made in real time ([`Lab::real_time`]).
    #[must_use]
    pub const fn has_real_time(&self) -> bool {
        matches!(self.conclude, Conclude::Own(_))
    }

    /// What follows from the results of its runs, given in the order of the plan. A figure that
    /// measures by itself says how far it is, from 0 to 1.
    ///
    /// # Errors
    /// [`PaperError`] of a measurement.
    pub fn conclude(&self, lab: &Lab, runs: &[Run], progress: &dyn Fn(f64)) -> Result<Outcome, PaperError> {
        match self.conclude {
            Conclude::Runs(conclude) => Ok(conclude(lab, runs)),
            Conclude::Own(measure) => measure(lab, progress),
        }
    }
}

/// The plan of a figure that takes no runs of the simulator.
pub(crate) fn no_runs(_: &Lab) -> Result<Vec<Experiment>, SimError> {
    Ok(Vec::new())
}

/// A run to be done.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The line or bar of the figure that it belongs to.
    pub series: String,
    /// Where on the x axis; 0 if there is none.
    pub x: f64,
    /// The run.
    pub spec: RunSpec,
}

/// A run that was done.
#[derive(Clone, Debug)]
pub struct Run {
    /// What was run.
    pub experiment: Experiment,
    /// What came out.
    pub result: RunResult,
    /// Whether it was kept from before, rather than done now.
    pub kept: bool,
}
