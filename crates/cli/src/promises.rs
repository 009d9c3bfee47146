//! The table of faults against FTLs, as a document: what an exploration saw each fault cost.

use crate::units::count;
use anyhow::{Result, bail};
use crash::{FtlReport, Options, Report, Tally};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// A cost by its name, what it means, and how often it was seen.
type Cost = (&'static str, &'static str, fn(&Tally) -> u64);

/// What a fault may cost, the worst first.
const COSTS: [Cost; 6] = [
    ("loses", "acknowledged writes were gone: the FTL ran without the battery that it assumes", |t| t.lost),
    ("older", "a page read as an older version: not even its OOB could be read, or it was programmed last", |t| {
        t.older
    }),
    ("refused", "a mount, a write or a trim failed with an error that names the page", |t| t.refused),
    ("error", "a read failed with an error; no page read as anything but its last version", |t| t.errors),
    (
        "trims",
        "everything written was there; a trim was undone that no flush had followed, or with its metadata",
        |t| t.trims_undone,
    ),
    ("kept", "everything was there", |t| t.runs),
];

fn cost(tally: &Tally) -> &'static str {
    COSTS.iter().find(|(_, _, of)| of(tally) > 0).map_or("–", |(name, ..)| name)
}

/// Writes the document.
///
/// # Errors
/// If a promise was broken: a table of promises would be false. Those of writing the file.
pub fn write(path: &Path, report: &Report, options: &Options) -> Result<()> {
    let explored: Vec<&FtlReport> = report.ftls.iter().filter(|ftl| ftl.not_mountable.is_none()).collect();
    if explored.iter().any(|ftl| !ftl.failures.is_empty()) {
        bail!("{} is not written: an FTL broke a promise", path.display());
    }
    std::fs::write(path, document(&explored, options))
        .map_err(|error| anyhow::anyhow!("{} cannot be written: {error}", path.display()))
}

fn document(explored: &[&FtlReport], options: &Options) -> String {
    let Options { cuts, depth, seed, .. } = options;
    let battery = if options.battery { "" } else { " --no-battery" };
    let mut out = format!(
        "# What each fault may cost\n\n\
         The explorer wrote this page from what it ran, without a broken promise:\n\n    \
         openftl crash --cuts {cuts} --depth {depth} --seed {seed}{battery} --promises docs/PROMISES.md\n\n\
         A cell is the worst that was seen and is allowed. The last column is the number of runs, of the FTL with the fewest.\n\n"
    );
    for (name, meaning, _) in COSTS.iter().rev() {
        let _ = writeln!(out, "- **{name}**: {meaning}");
    }
    out.push_str("- **–**: the fault does not concern the FTL\n\n");
    let mut faults: BTreeMap<&str, Vec<&Tally>> = BTreeMap::new();
    for ftl in explored {
        for (fault, tally) in &ftl.by_fault {
            faults.entry(fault).or_default().push(tally);
        }
    }
    let names: Vec<&str> = explored.iter().map(|ftl| ftl.name).collect();
    let _ = writeln!(out, "| fault | {} | runs |", names.join(" | "));
    let _ = writeln!(out, "|---|{}--:|", "---|".repeat(names.len()));
    for (fault, tallies) in faults {
        let cells: Vec<&str> = explored.iter().map(|ftl| ftl.by_fault.get(fault).map_or("–", cost)).collect();
        let fewest = tallies.iter().map(|tally| tally.runs).min().unwrap_or(0);
        let _ = writeln!(out, "| {fault} | {} | {} |", cells.join(" | "), count(fewest));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_cost_stands_in_the_table() {
        let none = Tally::default();
        assert_eq!(cost(&none), "–");
        assert_eq!(cost(&Tally { runs: 7, ..none }), "kept");
        assert_eq!(cost(&Tally { runs: 7, trims_undone: 2, errors: 1, ..none }), "error");
        assert_eq!(cost(&Tally { runs: 7, errors: 1, older: 1, refused: 3, ..none }), "older");
    }

    #[test]
    fn each_fault_has_a_row_and_each_ftl_a_column() {
        let by_fault = BTreeMap::from([("cuts", Tally { runs: 1200, ..Tally::default() })]);
        let page = FtlReport { name: "page", by_fault, ..FtlReport::default() };
        let other = FtlReport { name: "other", ..FtlReport::default() };
        let text = document(&[&page, &other], &Options::default());
        assert!(text.contains("| fault | page | other | runs |\n"), "{text}");
        assert!(text.contains("| cuts | kept | – | 1 200 |\n"), "{text}");
    }
}
