//! Figure 5 of FTRM: how long requests wait for translation pages that they program.

use super::responses::{Access, BASE, Row, VARIANTS, measure, of};
use crate::figure::{Conclude, Figure, no_runs};
use crate::verdict::Verdict;

pub(super) const FIGURE: Figure = Figure {
    name: "ftrm/fig5",
    title: "response times of mapping writes under FTRM's three variants",
    source: "Mativenga, Hamandawana, Chung and Kim, Electronics 2020, section 5.2",
    uses_traces: false,
    plan: no_runs,
    conclude: Conclude::Own(|lab, progress| measure(lab, Access::Writes, verdicts, progress)),
};

/// The workload that mostly writes.
const LOAD: &str = "radius";

/// Why a mapping write takes longer.
const SERIAL: &str = "a request can push out entries of two translation pages, whose programs take 450 us without any \
                      flag; here each flag takes another program, while the paper sets flags beside programs of data";

fn verdicts(rows: &[Row]) -> Vec<Verdict> {
    let within = |name: &str| of(rows, LOAD, name).within_us(90.0);
    let short = VARIANTS.map(|(name, _)| {
        let claim = format!("{LOAD}: 90% of the mapping writes of {name} take at most 300 us");
        Verdict::at_most(&claim, "250 to 300 us", within(name), 300.0, " us").unless_holds(SERIAL)
    });
    let close = VARIANTS.iter().filter(|(name, _)| *name != BASE).map(|(name, _)| {
        let claim = format!("{LOAD}: Base comes close to {name}, at 90% of the mapping writes");
        Verdict::near(&claim, "very close", within(BASE) / within(name), 1.0, 20.0).unless_holds(SERIAL)
    });
    short.into_iter().chain(close).collect()
}
