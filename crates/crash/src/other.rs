//! The scenarios other than single cuts: worn pages, images that this FTL did not leave, wrong
//! bits, a thousand cuts.

mod endurance;
mod flipped;
mod images;
mod worn;

use crate::bench::Bench;
use crate::case::{Case, Scenario};
use crate::quiet;
use crate::report::Tally;
use ftl::ftls::Entry;
use table::AnyBytes;

pub(crate) use worn::{Left, pages};

/// What a scenario was and cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Record {
    /// The name of the fault.
    pub(crate) fault: &'static str,
    pub(crate) tally: Tally,
    /// What the FTL did, as a number.
    pub(crate) trail: u64,
}

/// Runs a case that is not about single cuts; what it cost, and what went wrong, if anything did.
/// What the workload left is taken from `left`, where a case needs no more of it, or put there for
/// the next case with the same workload.
pub(crate) fn run(entry: &Entry<AnyBytes>, case: &Case, left: &mut Option<Left>) -> (Record, Result<(), String>) {
    let mut record = Record::default();
    let Some(bench) = Bench::new(entry, case) else { return (record, Ok(())) };
    record.tally.runs = 1;
    let outcome = quiet::catch(|| match case.scenario {
        Scenario::Cuts => Ok(()),
        Scenario::Worn(worn) if worn.mounted => worn::mounted(&bench, worn, left, &mut record),
        Scenario::Worn(worn) => worn::powered(&bench, worn, &mut record),
        Scenario::Image { n } => images::run(&bench, n, &mut record),
        Scenario::Flipped { n } => flipped::run(&bench, n, &mut record),
        Scenario::Endurance { rounds } => endurance::run(&bench, rounds, &mut record),
    });
    record.trail = bench.trail.number();
    (record, outcome.unwrap_or_else(Err))
}
