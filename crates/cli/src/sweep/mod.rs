//! `openftl sweep`: a comparison for each combination of what is varied, and means over seeds.
//!
//! Each run is a comparison of one FTL. Its command line is kept beside its result, so that it can
//! be done again alone.

mod axes;
mod rows;
mod summary;

use crate::args::{Cli, Command, CompareArgs, SweepArgs};
use crate::compare::{self, Prepared};
use crate::error::{text, usage};
use crate::report::resolved;
use crate::workers::{self, Bars};
use crate::{content, device, load, output, settings};
use anyhow::{Context, Result, bail};
use axes::{Axis, Cell};
use clap::Parser as _;
use ftl::ftls::Info;
use rows::{Row, Rows, SCHEMA};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;
use std::sync::Arc;
use workload::trace::Trace;

/// A combination, as the comparison that it is.
struct Run {
    varied: BTreeMap<String, String>,
    command: String,
    args: Box<CompareArgs>,
    info: Info,
}

/// A trace that was read, and its hash.
type Read = (Arc<Trace>, String);

/// Does what was asked.
pub fn run(args: &SweepArgs) -> Result<()> {
    for path in args.csv.iter().chain(&args.html) {
        check_folder(path)?;
    }
    let axes = axes::axes(args)?;
    let loads = axes::loads(args)?;
    let cells = axes::combinations(&loads, &axes);
    let runs = cells.iter().map(|cell| one(cell, &args.every)).collect::<Result<Vec<Run>>>()?;
    check_settings(&runs)?;
    let traces = traces(&runs)?;
    let (file, before) = match &args.out {
        Some(path) => {
            let (rows, before) = Rows::open(path, args.resume)?;
            (Some(rows), before)
        }
        None => (None, Vec::new()),
    };
    let program = content::program()?;
    let work = Work { runs: &runs, traces: &traces, before: &before, program: &program, file: file.as_ref() };
    let rows = work.all(args)?;
    report(args, &shown(&loads, &axes), &rows)
}

fn check_folder(path: &Path) -> Result<()> {
    match path.parent() {
        Some(folder) if folder != Path::new("") && !folder.is_dir() => {
            bail!("cannot write {}: there is no folder {}", path.display(), folder.display())
        }
        _ => Ok(()),
    }
}

/// The axes with the workloads as the first of them.
fn shown(loads: &[(String, String)], axes: &[Axis]) -> Vec<Axis> {
    let values = loads.iter().map(|(_, name)| name.clone()).collect();
    std::iter::once(Axis { name: LOAD.to_owned(), values }).chain(axes.iter().cloned()).collect()
}

/// What workloads and traces are called among what is varied.
const LOAD: &str = "workload";

/// The comparison of a combination.
fn one(cell: &Cell, every: &[String]) -> Result<Run> {
    let mut words = vec!["openftl".to_owned(), "compare".to_owned()];
    for (name, value) in cell {
        match name.as_str() {
            "trace" => words.push(value.clone()),
            name => words.push(format!("--{name}={value}")),
        }
    }
    words.extend(every.iter().cloned());
    let parsed = Cli::try_parse_from(&words).map_err(|error| {
        let said = error.to_string();
        let said = said.trim_start_matches("error: ").split("\n\n").next().unwrap_or_default().to_owned();
        usage(format!("{}: {said}", compare::command_line(words.iter().cloned())))
    })?;
    let Command::Compare(args) = parsed.command else { return Err(usage("a sweep is made of comparisons")) };
    if args.json || args.html.is_some() {
        return Err(usage("--json and --html are sweep's own options: write them before the --"));
    }
    let [info] = compare::check(&args)?[..] else {
        return Err(usage("--ftl is sweep's own option: write it before the --"));
    };
    let named = |(name, value): &(String, String)| {
        let name = if name == "trace" { LOAD } else { name };
        (name.to_owned(), value.clone())
    };
    let command = compare::command_line(words.into_iter());
    Ok(Run { varied: cell.iter().map(named).collect(), command, args, info })
}

/// Refuses an option that means nothing to any of the FTLs; says which mean nothing to some.
fn check_settings(runs: &[Run]) -> Result<()> {
    let mut ftls: Vec<Info> = Vec::new();
    for run in runs {
        if ftls.iter().all(|info| info.name != run.info.name) {
            ftls.push(run.info);
        }
    }
    let mut said: Vec<String> = Vec::new();
    for run in runs {
        let tuning = &run.args.tuning;
        let (store, placement) = (tuning.validity.as_deref(), tuning.placement.as_deref());
        for entry in settings::not_taken(&settings::given(tuning), &ftls, store, placement)? {
            let sentence = entry.sentence();
            if !said.contains(&sentence) {
                output::note(&sentence);
                said.push(sentence);
            }
        }
    }
    Ok(())
}

/// Every trace, read once.
fn traces(runs: &[Run]) -> Result<BTreeMap<String, Read>> {
    let mut traces = BTreeMap::new();
    for run in runs {
        let Some(path) = &run.args.trace else { continue };
        let name = path.to_string_lossy().into_owned();
        if let Entry::Vacant(place) = traces.entry(name) {
            let trace = load::open(path, &run.args.read)?;
            trace.notes().iter().for_each(|note| output::note(&format!("{}: {note}", place.key())));
            let hash = content::trace(&trace);
            place.insert((Arc::new(trace), hash));
        }
    }
    Ok(traces)
}

/// What is to be done.
struct Work<'a> {
    runs: &'a [Run],
    traces: &'a BTreeMap<String, Read>,
    before: &'a [Row],
    program: &'a str,
    file: Option<&'a Rows>,
}

impl Work<'_> {
    /// Does all runs; those that were done before are taken as they were.
    fn all(&self, args: &SweepArgs) -> Result<Vec<Row>> {
        let bytes = self.runs.iter().filter_map(|run| self.prepare(run).ok());
        let bytes = bytes.map(|(prepared, _)| device::memory_of_run(&prepared.chosen.plan)).max().unwrap_or(0);
        let bars = Bars::new(self.runs.len());
        let rows = workers::in_parallel(self.runs.len(), workers::jobs(args.jobs, bytes), |at| {
            self.row(&self.runs[at], &bars)
        });
        drop(bars);
        rows.into_iter().collect()
    }

    fn prepare(&self, run: &Run) -> Result<(Prepared, Value)> {
        let read = run.args.trace.as_ref().and_then(|path| self.traces.get(path.to_string_lossy().as_ref()));
        let prepared = compare::prepare(&run.args, &[run.info], read.map(|(trace, _)| Arc::clone(trace)))?;
        let spec = prepared.specs.first().context("a comparison has a run for each FTL")?;
        let settings = resolved::settings(spec, &prepared.load.description, read.map(|(_, hash)| hash.as_str()));
        Ok((prepared, settings))
    }

    fn row(&self, run: &Run, bars: &Bars) -> Result<Row> {
        let mut row = Row {
            schema: SCHEMA.to_owned(),
            openftl: env!("CARGO_PKG_VERSION").to_owned(),
            program: self.program.to_owned(),
            varied: run.varied.clone(),
            command: run.command.clone(),
            settings: Value::Null,
            failed: None,
            digest: None,
            result: None,
        };
        match self.result(run, bars, &mut row.settings) {
            Ok(Done { result, taken }) => {
                row.digest = Some(result.digest());
                row.result = Some(result);
                if taken {
                    return Ok(row);
                }
            }
            Err(error) => {
                let why = text(&error);
                bars.say(&format!("failed: {}: {why}", run.command));
                row.failed = Some(why);
            }
        }
        if let Some(file) = self.file {
            file.add(&row)?;
        }
        Ok(row)
    }

    fn result(&self, run: &Run, bars: &Bars, settings: &mut Value) -> Result<Done> {
        let bar = bars.begin(run.info.name);
        let (prepared, resolved) = self.prepare(run)?;
        *settings = resolved;
        let spec = prepared.specs.first().context("a comparison has a run for each FTL")?;
        // A profile in a file is known by its name alone.
        let is_known = spec.text().is_some() || run.args.trace.is_some();
        let kept = self.before.iter().find(|row| is_known && row.is_of(self.program, settings));
        if let Some(result) = kept.and_then(|row| row.result.clone()) {
            return Ok(Done { result, taken: true });
        }
        let result = sim::run(spec, &mut |progress| bar.show(progress))?;
        Ok(Done { result: compare::weighed(&run.args, result), taken: false })
    }
}

/// A result, and whether an earlier call made it.
struct Done {
    result: sim::RunResult,
    taken: bool,
}

fn report(args: &SweepArgs, axes: &[Axis], rows: &[Row]) -> Result<()> {
    let groups = summary::groups(rows);
    let failed = rows.iter().filter(|row| row.failed.is_some()).count();
    // Before files: a full disk costs no result.
    if args.json {
        let runs: Vec<Value> = rows.iter().map(|row| Value::Object(row.flat().into_iter().collect())).collect();
        let document = json!({
            "schema": SCHEMA,
            "openftl": env!("CARGO_PKG_VERSION"),
            "command": compare::command_line(crate::config::said()),
            "means": groups,
            "runs": runs,
        });
        let mut text = serde_json::to_string_pretty(&document).context("a run cannot be written as JSON")?;
        text.push('\n');
        output::print(&text)?;
    } else {
        output::print(&summary::table(&groups, axes))?;
    }
    if let Some(path) = &args.csv {
        output::write(path, &rows::csv(rows))?;
        output::note(&format!("wrote {}", path.display()));
    }
    if let Some(path) = &args.html {
        output::write(path, &summary::html(&groups, axes, &compare::command_line(crate::config::said())))?;
        output::note(&format!("wrote {}", path.display()));
    }
    match failed {
        0 => Ok(()),
        failed => bail!("{failed} of {} runs failed, as was said above", rows.len()),
    }
}
