//! Write-amplification, RAM, recovery time and tail of every FTL under every load.
//!
//! Each FTL meets each load on a device of its own, of one capacity, filled and overwritten by the
//! load until steady. What is measured follows on that device: programs, then the rate that is
//! sustained, then latencies below it, then a power cut.

use super::loads::{BLOCK_PAGES, Load, PROFILE, REQUESTS_MAX, SPARE_PERCENT, loads, share};
use super::measured::{CUTS, Candidate, LOAD_PERCENT, Measured, Outcome as Of, measure as measure_one};
use crate::error::PaperError;
use crate::figure::{Conclude, Figure, no_runs};
use crate::lab::Lab;
use crate::outcome::{Bar, Cell, Chart, DataTable, Outcome, Part};
use crate::verdict::Verdict;
use sim::SimError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

pub(super) const FIGURE: Figure = Figure {
    name: "rows/table",
    title: "write-amplification, RAM, recovery time and p99.9 of writes of every FTL under every load",
    source: "no paper's: every row of the table of FTLs at equal capacity, from equal starts",
    uses_traces: true,
    plan: no_runs,
    conclude: Conclude::Own(measure),
};

const FLAGSHIP: &str = "flagship";
const GECKO: &str = "gecko";

/// A load, an FTL, and what was measured.
struct Row<'a> {
    load: &'a Load,
    candidate: Candidate,
    of: Of,
}

/// Every FTL of the table, then [`FLAGSHIP`] under every placement that needs no future.
fn candidates() -> Vec<Candidate> {
    let own = ftl::ftls::infos().iter().map(|info| Candidate { ftl: info.name, placement: None });
    let told = ftl::placement::table().iter().filter(|row| !row.knows_future);
    own.chain(told.map(|row| Candidate { ftl: FLAGSHIP, placement: Some(row.name) })).collect()
}

fn measure(lab: &Lab, progress: &dyn Fn(f64)) -> Result<Outcome, PaperError> {
    let (loads, others) = loads(lab)?;
    let candidates = candidates();
    let pairs: Vec<(&Load, Candidate)> =
        loads.iter().flat_map(|load| candidates.iter().map(move |candidate| (load, *candidate))).collect();
    let outcomes = in_parallel(lab, &pairs, progress)?;
    let together = pairs.into_iter().zip(outcomes);
    let rows: Vec<Row<'_>> = together.map(|((load, candidate), of)| Row { load, candidate, of }).collect();
    Ok(Outcome {
        setup: setup(lab, &loads),
        verdicts: verdicts(&loads, &rows),
        charts: COLUMNS.iter().filter_map(|column| chart(column, &rows)).collect(),
        tables: COLUMNS.iter().flat_map(|column| tables(column, &loads, &rows)).collect(),
        remarks: remarks(&rows, others),
    })
}

/// Measures all pairs, several at once, and says how far it is; stops at the first error.
fn in_parallel(lab: &Lab, pairs: &[(&Load, Candidate)], progress: &dyn Fn(f64)) -> Result<Vec<Of>, SimError> {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..lab.jobs.clamp(1, pairs.len().max(1)) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                let begin = || next.fetch_add(1, Ordering::Relaxed);
                let of = |at: usize| pairs.get(at).map(|(load, candidate)| (at, measure_one(lab, *candidate, load)));
                // Nobody listens any more once a measurement has failed.
                while of(begin()).is_some_and(|measured| sender.send(measured).is_ok()) {}
            });
        }
        drop(sender);
        let mut done: Vec<(usize, Of)> = Vec::with_capacity(pairs.len());
        for (at, measured) in receiver {
            done.push((at, measured?));
            progress(done.len() as f64 / pairs.len() as f64);
        }
        done.sort_by_key(|(at, _)| *at);
        Ok(done.into_iter().map(|(_, of)| of).collect())
    })
}

/// What is shown of each measurement.
struct Column {
    /// Part of file names; empty for the main table.
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    value: fn(&Measured) -> Option<f64>,
    /// Said where an FTL has no such value.
    missing: &'static str,
}

/// No rate that was tried is one that the FTL sustains.
const NOT_SUSTAINED: &str = "no rate sustained";

const AMPLIFICATION: Column = Column {
    name: "",
    title: "write-amplification",
    unit: "programs for each page written",
    value: |of| Some(of.amplification),
    missing: "",
};

const RAM: Column =
    Column { name: "ram", title: "RAM", unit: "KiB", value: |of| Some(of.ram_bytes as f64 / 1024.0), missing: "" };

const RECOVERY: Column = Column {
    name: "recovery",
    title: "recovery after a power cut",
    unit: "ms of flash time, the mean of some cuts",
    value: |of| of.mount_s.map(|seconds| 1000.0 * seconds),
    missing: "cannot be mounted",
};

const TAIL: Column = Column {
    name: "p999",
    title: "p99.9 of writes at 70% of the sustained rate, collecting ahead",
    unit: "ms",
    value: |of| of.tail.map(|tail| tail.p999_ms),
    missing: NOT_SUSTAINED,
};

const SUSTAINED: Column = Column {
    name: "sustained",
    title: "the rate that is sustained, collecting ahead",
    unit: "requests a second",
    value: |of| of.tail.map(|tail| tail.sustained),
    missing: NOT_SUSTAINED,
};

const AHEAD: Column = Column {
    name: "ahead",
    title: "write-amplification at 70% of the sustained rate, collecting ahead",
    unit: "programs for each page written",
    value: |of| of.tail.map(|tail| tail.amplification),
    missing: NOT_SUSTAINED,
};

const COLUMNS: [Column; 6] = [AMPLIFICATION, RAM, RECOVERY, TAIL, SUSTAINED, AHEAD];

/// A column of measurements as two tables, an FTL or a placement a row, a load a column.
fn tables(column: &Column, loads: &[Load], rows: &[Row<'_>]) -> [DataTable; 2] {
    let names = || loads.iter().map(|load| load.name.as_str());
    let columns = |first| std::iter::once(first).chain(names()).collect::<Vec<&str>>();
    let under = format!("{}{}placement", column.name, if column.name.is_empty() { "" } else { "-" });
    let title = format!("{}, {}", column.title, column.unit);
    let mut own = DataTable::new(column.name, &title, &columns("FTL"));
    let mut others = DataTable::new(&under, &format!("{FLAGSHIP} by placement: {title}"), &columns("placement"));
    for candidate in candidates() {
        let of_candidate = rows.iter().filter(|row| row.candidate == candidate);
        let cells = of_candidate.map(|row| cell(column, row));
        let (table, name) = match candidate.placement {
            Some(placement) => (&mut others, placement),
            None => (&mut own, candidate.ftl),
        };
        table.row(std::iter::once(name.into()).chain(cells).collect());
    }
    [own, others]
}

/// A value, or why there is none.
fn cell(column: &Column, row: &Row<'_>) -> Cell {
    match &row.of {
        Err(_) => "does not fit".into(),
        Ok(of) => (column.value)(of).map_or_else(|| column.missing.into(), Cell::from),
    }
}

/// The load that charts show.
const CHARTED: &str = "zipf";

/// A column under one load, drawn; none if nothing was measured.
fn chart(column: &Column, rows: &[Row<'_>]) -> Option<Chart> {
    let bar = |row: &Row<'_>| {
        let value = row.of.as_ref().ok().and_then(column.value)?;
        Some(Bar { label: row.candidate.ftl.to_owned(), parts: vec![Part::new(column.title, value)] })
    };
    let own = rows.iter().filter(|row| row.load.name == CHARTED && row.candidate.placement.is_none());
    let bars: Vec<Bar> = own.filter_map(bar).collect();
    let title = format!("{}, {CHARTED}", column.title);
    (!bars.is_empty()).then(|| Chart::Bars { name: column.name.to_owned(), title, axis: column.unit.to_owned(), bars })
}

fn value(rows: &[Row<'_>], load: &Load, candidate: Candidate, of: impl Fn(&Measured) -> Option<f64>) -> f64 {
    let row = rows.iter().find(|row| row.load.name == load.name && row.candidate == candidate);
    row.and_then(|row| row.of.as_ref().ok()).and_then(of).unwrap_or(f64::NAN)
}

fn verdicts(loads: &[Load], rows: &[Row<'_>]) -> Vec<Verdict> {
    let own = |ftl| Candidate { ftl, placement: None };
    let beyond = |of: &Measured| Some(of.amplification - 1.0);
    let mut verdicts = Vec::new();
    for load in loads.iter().filter(|load| load.is_skewed) {
        let claim = format!("{}: fewer programs than GeckoFTL, the host's own left out", load.name);
        let [part, whole] = [FLAGSHIP, GECKO].map(|ftl| (ftl, value(rows, load, own(ftl), beyond)));
        verdicts.push(Verdict::below_by(&claim, part, whole, FEWER_PERCENT));
    }
    let most = |claim: &str, of: fn(&Measured) -> Option<f64>, limit: f64| {
        let ratio = |load| value(rows, load, own(FLAGSHIP), of) / value(rows, load, own(GECKO), of);
        let largest = loads.iter().map(ratio).fold(f64::NAN, f64::max);
        Verdict::at_most(claim, "", largest, limit, " times GeckoFTL's, the most of all loads")
    };
    let bare = |of: &Measured| Some((of.ram_bytes - of.placement_bytes) as f64);
    verdicts.push(most("RAM without that of placement is at most a tenth more than GeckoFTL's", bare, RAM_TIMES));
    let claim = "recovery takes at most a quarter longer than GeckoFTL's";
    verdicts.push(most(claim, RECOVERY.value, RECOVERY_TIMES));
    verdicts.push(most("p99.9 of writes is no longer than GeckoFTL's", TAIL.value, TAIL_TIMES).unless_holds(
        "each is measured at 70% of the rate that it sustains itself, and the flagship sustains more under skew",
    ));
    for load in loads.iter().filter(|load| load.name == CHARTED) {
        verdicts.push(fewest_of_mountable(rows, load));
    }
    for (name, best) in [(CHARTED, "midas"), ("sqlite", "sepbit")] {
        for load in loads.iter().filter(|load| load.name == name) {
            let of =
                |candidate: Candidate| Some((candidate.placement?, value(rows, load, candidate, AMPLIFICATION.value)));
            let values: Vec<(&str, f64)> = candidates().into_iter().filter_map(of).collect();
            let claim = format!("{name}: of all placements under {FLAGSHIP}, {best} has the fewest programs");
            verdicts.push(Verdict::least(&claim, "", &values, best));
        }
    }
    for verdict in &mut verdicts {
        "no paper's".clone_into(&mut verdict.paper);
    }
    verdicts
}

fn fewest_of_mountable(rows: &[Row<'_>], load: &Load) -> Verdict {
    let mountable = ftl::ftls::infos().iter().filter(|info| info.is_mountable());
    let values = mountable.map(|info| {
        let own = Candidate { ftl: info.name, placement: None };
        (info.name, value(rows, load, own, AMPLIFICATION.value))
    });
    let values: Vec<(&str, f64)> = values.filter(|(_, value)| value.is_finite()).collect();
    let claim = format!("{}: the fewest programs of all that can be mounted", load.name);
    Verdict::least(&claim, "", &values, FLAGSHIP)
        .unless_holds("some hold the whole map in RAM and program no translation pages, or rely on a battery")
}

/// Of the programs that are not the host's, better placement saves at least, percent.
const FEWER_PERCENT: f64 = 10.0;

/// RAM and recovery time over GeckoFTL's, and p99.9.
const RAM_TIMES: f64 = 1.1;
const RECOVERY_TIMES: f64 = 1.25;
const TAIL_TIMES: f64 = 1.0;

fn setup(lab: &Lab, loads: &[Load]) -> Vec<String> {
    let device = |load: &Load| {
        format!(
            "{} on {} blocks of {} pages",
            load.name,
            load.device.geometry.blocks(),
            load.device.geometry.pages_per_block()
        )
    };
    vec![
        format!(
            "one die with the times of device profile {PROFILE}, on which pages of a block may be programmed in any order and flags \
             set again, so that every FTL can run; space beyond the logical pages: {SPARE_PERCENT}% of them; seed {}",
            lab.seed
        ),
        format!("loads: {}", loads.iter().map(device).collect::<Vec<_>>().join(", ")),
        format!(
            "recorded: the samples that come with the program, and every trace in the folder that --traces names, at most {} requests \
             of each; {:.0}% of that at this scale; each on a device whose logical pages are the pages that it writes, in blocks of {} \
             pages; trims are left out, as if mounted without discard, so that all of these pages stay live; aged and measured by \
             whole passes",
            REQUESTS_MAX,
            100.0 * share(lab),
            BLOCK_PAGES[1]
        ),
        "every FTL is told what it is told by default; each device is filled and overwritten by the load until steady, and all that \
             is measured of the FTL follows on it"
            .to_owned(),
        format!(
            "p99.9: requests arrive at random at {LOAD_PERCENT}% of the rate that this FTL sustains, found as by `openftl tail`, with \
             --gc ahead; each FTL has a rate of its own, so that times of FTLs with other rates tell of other work"
        ),
    ]
}

fn remarks(rows: &[Row<'_>], others: Vec<String>) -> Vec<String> {
    let mut remarks = others;
    for row in rows.iter().filter(|row| row.candidate.placement.is_none()) {
        if let Err(reason) = &row.of {
            remarks.push(format!("{} cannot run under {}: {reason}", row.candidate.ftl, row.load.name));
        }
    }
    for info in ftl::ftls::infos().iter().filter(|info| !info.is_mountable()) {
        remarks.push(format!("{} has no recovery: {}", info.name, info.promise()));
    }
    remarks.push(format!(
        "recovery: flash time of the mount, all operations one after the other, the mean of {CUTS} cuts; what a battery or a flush \
         saves before a cut is not in it"
    ));
    remarks
}
