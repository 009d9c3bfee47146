//! Figures and formulas of papers on flash translation layers, made again.
//!
//! Reading order: [`figure`] (what a figure is), [`mod@table`] (every paper's), one folder a paper
//! ([`geckoftl`], `janus`, `asa`, `lftl`, `ftrm`),
//! and `rows`, which is no paper's. What papers share follows: [`lab`] (devices and
//! runs at a scale), [`mod@perform`] (doing the runs), [`keep`] (finished runs), [`outcome`] (what
//! comes out, as data), [`verdict`] (whether a claim holds).
//!
//! 1. A [`Figure`] is a row of its paper's table: what the paper shows, the runs that it takes, and
//!    a function from their results to data, charts and verdicts.
//! 2. [`perform()`] does the runs, several at once if memory allows, with the code that every
//!    comparison uses. Finished runs may be kept ([`Keep`]); where, is for the caller to say.
//! 3. An [`Outcome`] is data: whoever shows it writes the files. Verdicts are computed from
//!    results: none is written down here.
//!
//! `scale` is the size of the simulated device over that of the paper. Cache and device shrink
//! together, so that entries a translation page and live pages a block stay as they were. What
//! depends on capacity alone (levels of a tree, time of a scan) does not shrink: a formula gives
//! its value for the full device too.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod asa;
pub mod error;
pub mod figure;
mod ftrm;
pub mod geckoftl;
mod janus;
pub mod keep;
pub mod lab;
mod lftl;
mod loads;
pub mod outcome;
pub mod perform;
mod rows;
mod series;
pub mod table;
pub mod units;
pub mod verdict;

pub use error::PaperError;
pub use figure::{Conclude, Experiment, Figure, Run};
pub use keep::{Keep, KeepNothing};
pub use lab::Lab;
pub use outcome::{Bar, Cell, Chart, DataTable, Lines, Outcome, Part, Series};
pub use perform::{Advance, Performed, perform};
pub use table::{find, table};
pub use verdict::Verdict;
