//! What a figure of a paper is: a plan of runs, and what follows from their results.

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
    /// The runs it takes, in order.
    pub plan: fn(&Lab) -> Result<Vec<Experiment>, SimError>,
    /// What follows from their results, given in the same order.
    pub conclude: fn(&Lab, &[Run]) -> Outcome,
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
