//! The table of faults against FTLs, as a document: what explorations of one fault each saw it
//! cost.

use crate::units::count;
use anyhow::{Context, Result};
use crash::{Fault, FtlReport, Options, Report, Tally};
use std::fmt::Write as _;
use std::fs::OpenOptions;
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

/// The cell of an FTL that broke a promise.
const BROKEN: &str = "**broken**";

/// The cell of an FTL for which nothing was run.
const NOTHING: &str = "–";

/// An exploration of one fault alone, and the row that it gives.
pub struct Row {
    /// What is done to the device.
    pub name: String,
    /// What is explored.
    pub options: Options,
}

/// One exploration for each fault, with as many cut points each, and one with all faults at once.
pub fn rows(options: &Options) -> Vec<Row> {
    let row = |name: String, depth: u32, faults: &[Fault]| {
        let faults = options.faults.iter().copied().filter(|fault| faults.contains(fault)).collect();
        Row { name, options: Options { faults, depth, ..options.clone() } }
    };
    let times = |depth: u32| if depth == 1 { "one cut".to_owned() } else { format!("{depth} cuts in a row") };
    let mut depths = vec![1, options.depth];
    depths.dedup();
    let mut rows: Vec<Row> = depths.iter().map(|depth| row(times(*depth), *depth, &[])).collect();
    if options.battery {
        let row = row(format!("no battery, {}", times(options.depth)), options.depth, &[]);
        rows.push(Row { options: Options { battery: false, ..row.options }, ..row });
    }
    for fault in &options.faults {
        match fault {
            Fault::Fading => {
                rows.extend(depths.iter().map(|depth| row(format!("fading, {}", times(*depth)), *depth, &[*fault])));
            }
            Fault::Worn | Fault::Images | Fault::Endurance => {
                let row = row(fault.name().to_owned(), options.depth, &[*fault]);
                rows.push(Row { options: Options { cuts: 0, ..row.options }, ..row });
            }
            _ => rows.push(row(format!("{}, {}", fault.name(), times(options.depth)), options.depth, &[*fault])),
        }
    }
    if options.faults.len() > 1 {
        rows.push(row(format!("all at once, {}", times(options.depth)), options.depth, &options.faults));
    }
    rows
}

/// Everything that a fault cost an FTL.
fn sum(ftl: &FtlReport) -> Tally {
    let mut sum = Tally::default();
    ftl.by_fault.values().for_each(|tally| sum += *tally);
    sum
}

fn cell(ftl: &FtlReport) -> &'static str {
    if !ftl.failures.is_empty() {
        return BROKEN;
    }
    let tally = sum(ftl);
    COSTS.iter().find(|(_, _, of)| of(&tally) > 0).map_or(NOTHING, |(name, ..)| name)
}

/// Sees to it, before anything is explored, that the document can be written; what stands there
/// stays.
///
/// # Errors
/// Those of opening the file.
pub fn try_open(path: &Path) -> Result<()> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.map(drop).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes the document.
///
/// # Errors
/// Those of writing the file.
pub fn write(path: &Path, explored: &[(String, Report)], options: &Options) -> Result<()> {
    std::fs::write(path, document(explored, options)).with_context(|| format!("cannot write {}", path.display()))
}

fn document(explored: &[(String, Report)], options: &Options) -> String {
    let Options { cuts, depth, seed, endurance, one_in, .. } = options;
    let battery = if options.battery { "" } else { " --no-battery" };
    let mut out = format!(
        "# What each fault may cost\n\n\
         `openftl crash` wrote this page from what it ran:\n\n    \
         openftl crash --cuts {cuts} --depth {depth} --one-in {one_in} --seed {seed}{battery} --promises docs/PROMISES.md\n\n\
         Each row is an exploration of its own: one fault, over {} cut points of each FTL. `worn`, `images` and\n\
         `endurance` ({} cuts of one device) are not about single cuts. README says what each fault is. A cell is the\n\
         worst that was seen. DFTL, ASA-FTL and uFTL assume a battery; every row but `no battery` has one. The last column is\n\
         the number of runs, of the FTL with the fewest.\n\n",
        count(*cuts),
        count(u64::from(*endurance)),
    );
    for (name, meaning, _) in COSTS.iter().rev() {
        let _ = writeln!(out, "- **{name}**: {meaning}");
    }
    let _ =
        writeln!(out, "- {BROKEN}: more than that was lost; the case stands below\n- **{NOTHING}**: nothing was run\n");
    let mountable = |report: &Report| report.ftls.iter().filter(|ftl| ftl.not_mountable.is_none()).count();
    let names = explored.iter().map(|(_, report)| report).max_by_key(|report| mountable(report));
    let names: Vec<&str> = names.map_or_else(Vec::new, |report| {
        report.ftls.iter().filter(|ftl| ftl.not_mountable.is_none()).map(|ftl| ftl.name).collect()
    });
    let _ = writeln!(out, "| fault | {} | runs |", names.join(" | "));
    let _ = writeln!(out, "|---|{}--:|", "---|".repeat(names.len()));
    for (fault, report) in explored {
        let ftls = || names.iter().map(|name| report.ftls.iter().find(|ftl| ftl.name == *name));
        let cells: Vec<&str> = ftls().map(|ftl| ftl.map_or(NOTHING, cell)).collect();
        let fewest = ftls().flatten().map(|ftl| sum(ftl).runs).filter(|runs| *runs > 0).min().unwrap_or(0);
        let _ = writeln!(out, "| {fault} | {} | {} |", cells.join(" | "), count(fewest));
    }
    broken(&mut out, explored);
    out
}

/// The broken promises, with what it takes to see each again.
fn broken(out: &mut String, explored: &[(String, Report)]) {
    let failures = explored.iter().flat_map(|(fault, report)| {
        report.ftls.iter().flat_map(move |ftl| ftl.failures.iter().map(move |failure| (fault, ftl, failure)))
    });
    let mut failures = failures.peekable();
    if failures.peek().is_some() {
        out.push_str("\n## Broken\n\nAn exploration ends with the third failure of an FTL. ");
        out.push_str("`openftl crash --trace --replay ID` tells a case.\n\n");
    }
    for (fault, ftl, failure) in failures {
        let _ = writeln!(out, "- {}, {fault}: {}\n  `{}`", ftl.name, failure.what, failure.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crash::Failure;
    use std::collections::BTreeMap;

    fn report(name: &'static str, tally: Tally) -> FtlReport {
        FtlReport { name, by_fault: BTreeMap::from([("cuts", tally)]), ..FtlReport::default() }
    }

    #[test]
    fn the_worst_cost_stands_in_the_table() {
        let none = Tally::default();
        let cell = |tally| cell(&report("page", tally));
        assert_eq!(cell(none), "–");
        assert_eq!(cell(Tally { runs: 7, ..none }), "kept");
        assert_eq!(cell(Tally { runs: 7, trims_undone: 2, errors: 1, ..none }), "error");
        assert_eq!(cell(Tally { runs: 7, errors: 1, older: 1, refused: 3, ..none }), "older");
    }

    #[test]
    fn each_fault_has_a_row_and_each_ftl_a_column() {
        let page = report("page", Tally { runs: 1200, ..Tally::default() });
        let failure = Failure {
            id: "other-1".into(),
            what: "gone".into(),
            shape: "tiny".into(),
            faults: String::new(),
            cuts: Vec::new(),
            workload: Vec::new(),
            tail: 0,
        };
        let other = FtlReport { name: "other", failures: vec![failure], ..FtlReport::default() };
        let report = Report { seed: 1, mode: "exhaustive", depth: 1, ftls: vec![page, other] };
        let text = document(&[("one cut".into(), report)], &Options::default());
        assert!(text.contains("| fault | page | other | runs |\n"), "{text}");
        assert!(text.contains("| one cut | kept | **broken** | 1 200 |\n"), "{text}");
        assert!(text.contains("- other, one cut: gone\n  `other-1`\n"), "{text}");
    }

    #[test]
    fn every_fault_is_explored_alone_and_all_at_once() {
        let rows = rows(&Options { depth: 2, ..Options::default() });
        for fault in Fault::ALL {
            assert!(rows.iter().any(|row| row.options.faults == [fault]), "{}", fault.name());
        }
        let names: Vec<&str> = rows.iter().map(|row| &*row.name).collect();
        let first = ["one cut", "2 cuts in a row", "no battery, 2 cuts in a row", "programs, 2 cuts in a row"];
        assert_eq!(names[..4], first);
        assert_eq!(rows.iter().filter(|row| !row.options.battery).count(), 1);
        assert_eq!(names.last(), Some(&"all at once, 2 cuts in a row"));
        assert!(names.contains(&"fading, one cut") && names.contains(&"fading, 2 cuts in a row"), "{names:?}");
        assert!(
            rows.iter().all(|row| (row.options.cuts == 0) == ["worn", "images", "endurance"].contains(&&*row.name))
        );
    }
}
