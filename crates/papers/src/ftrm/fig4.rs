//! Figure 4 of FTRM: how long requests wait for translation pages that they read.

use super::responses::{Access, BASE, Row, VARIANTS, measure, of};
use crate::figure::{Conclude, Figure, no_runs};
use crate::verdict::Verdict;

pub(super) const FIGURE: Figure = Figure {
    name: "ftrm/fig4",
    title: "response times of mapping reads under FTRM's three variants",
    source: "Mativenga, Hamandawana, Chung and Kim, Electronics 2020, section 5.2",
    uses_traces: false,
    plan: no_runs,
    conclude: Conclude::Own(|lab, progress| measure(lab, Access::Reads, verdicts, progress)),
};

/// The workload that mostly reads.
const LOAD: &str = "msnfs";

/// The response time of the claims, us.
const SHORT_US: u64 = 100;

/// Why so many mapping reads of Base are short.
const UNARY: &str = "the paper's counter counts each use in place. Bits that can only be cleared count six uses in unary, \
                     and once these are used up a mapping read sets no flag";

fn verdicts(rows: &[Row]) -> Vec<Verdict> {
    let claim = |(name, _): (&str, &str)| {
        let percent = of(rows, LOAD, name).percent_below(SHORT_US);
        if name == BASE {
            let claim = format!("{LOAD}: fewer than 35% of the mapping reads of {name} take less than {SHORT_US} us");
            Verdict::at_most(&claim, "below 35%", percent, 35.0, "%").unless_holds(UNARY)
        } else {
            let claim = format!("{LOAD}: over 90% of the mapping reads of {name} take less than {SHORT_US} us");
            Verdict::at_least(&claim, "over 90%", percent, 90.0, "%")
        }
    };
    VARIANTS.map(claim).to_vec()
}
