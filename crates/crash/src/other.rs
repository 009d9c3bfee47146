//! The scenarios other than single cuts: worn pages, images that this FTL did not leave, a thousand cuts.

mod endurance;
mod images;
mod worn;

use crate::Device;
use crate::case::{Case, Scenario};
use crate::explorer::Bench;
use crate::quiet;
use ftl::ftls::Entry;

pub(crate) use worn::pages;

/// Runs a case that is not about single cuts; what went wrong, if anything did.
pub(crate) fn run(entry: &Entry<Device>, case: &Case) -> Result<(), String> {
    let Some(bench) = Bench::new(entry, case) else { return Ok(()) };
    let outcome = quiet::catch(|| match case.scenario {
        Scenario::Cuts => Ok(()),
        Scenario::Worn { ppn, harm, mounted: false } => worn::powered(&bench, ppn, harm),
        Scenario::Worn { ppn, harm, mounted: true } => worn::mounted(&bench, ppn, harm),
        Scenario::Image { n } => images::run(&bench, n),
        Scenario::Endurance { rounds } => endurance::run(&bench, rounds),
    });
    outcome.unwrap_or_else(Err)
}
