//! The figures of the papers, made again.
//!
//! 1. A [`Figure`] is a row of the table in [`figures`]: what the paper shows, the runs that it takes, and a function
//!    from their results to data, charts and verdicts.
//! 2. [`perform`] does the runs, several at once if memory allows ([`lab`]), with the code that every comparison uses.
//!    Finished runs may be kept ([`Keep`]); where, is for the caller to say.
//! 3. An [`Outcome`] is data: whoever shows it writes the files. Verdicts are computed from results ([`verdict`]): none
//!    is written down here.
//!
//! `scale` is the size of the simulated device over that of the paper. Cache and device shrink together, so that
//! entries a translation page and live pages a block stay as they were; what depends on capacity alone (levels of a
//! tree, time of a scan) does not, and is therefore given by formula for the full device too.

mod common;
pub mod figures;
mod keep;
pub mod lab;
mod loads;
mod outcome;
pub mod verdict;

pub use figures::{find, table};
pub use keep::{Keep, KeepNothing};
pub use lab::{Advance, Lab, Performed, perform};
pub use outcome::{Bar, Cell, Chart, DataTable, Lines, Outcome, Part, Series};
pub use verdict::Verdict;

use crate::error::SimError;
use crate::result::RunResult;
use crate::spec::RunSpec;

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
