//! `openftl compare`: the same device and workload under several FTLs.

use crate::args::{CompareArgs, Gc, Precondition, Timing};
use crate::buffer;
use crate::device::{self, Chosen};
use crate::error::{unknown, usage};
use crate::load::{self, Load};
use crate::output;
use crate::report::{Report, html, json, resolved, text};
use crate::units::count;
use crate::workers::{self, Bars};
use crate::{capacity, content, settings};
use anyhow::{Result, bail};
use ftl::Config;
use ftl::ftls::Info;
use sim::{First, HostMode, PreconditionMode, QueueOptions, RunResult, RunSpec, SteadyOptions, TimingMode};
use std::path::Path;
use std::sync::Arc;
use workload::trace::Trace;

/// Runs the comparison and reports it.
pub fn run(args: &CompareArgs) -> Result<()> {
    let ftls = check(args)?;
    let (store, placement) = (args.tuning.validity.as_deref(), args.tuning.placement.as_deref());
    let not_taken = settings::not_taken(&settings::given(&args.tuning), &ftls, store, placement)?;
    let trace = args.trace.as_deref().map(|path| load::open(path, &args.read)).transpose()?.map(Arc::new);
    let source = trace.as_deref().map(content::trace);
    let Prepared { chosen, load, specs, mut notes } = prepare(args, &ftls, trace)?;
    for note in &notes {
        output::note(note);
    }
    let results = run_all(args, &ftls, &specs, &chosen, &load)?;
    let settings = specs.iter().map(|spec| resolved::settings(spec, &load.description, source.as_deref())).collect();
    for note in afterwards(&results) {
        output::note(&note);
        notes.push(note);
    }
    let report = Report {
        command: command_line(crate::config::said()),
        device: chosen.description,
        workload: load.description,
        method: method(&results),
        seed: args.seed,
        notes,
        not_taken,
        settings,
        results,
    };
    if let Some(path) = &args.html {
        output::write(path, &html::render(&report))?;
        output::note(&format!("wrote {}", path.display()));
    }
    output::print(&if args.json { json::render(&report, !args.no_timeline)? } else { text::render(&report) })
}

/// What a comparison gives, without a report.
///
/// # Errors
/// Those of usage, and of the runs.
pub fn results(args: &CompareArgs, trace: Option<Arc<Trace>>) -> Result<Vec<RunResult>> {
    let ftls = check(args)?;
    let Prepared { chosen, load, specs, .. } = prepare(args, &ftls, trace)?;
    run_all(args, &ftls, &specs, &chosen, &load)
}

/// Runs all FTLs, as many at once as there are processors and memory for.
fn run_all(
    args: &CompareArgs,
    ftls: &[Info],
    specs: &[RunSpec],
    chosen: &Chosen,
    load: &Load,
) -> Result<Vec<RunResult>> {
    for (info, spec) in ftls.iter().zip(specs) {
        capacity::check(args, info, spec, chosen, load)?;
    }
    let jobs = workers::jobs(args.jobs, device::memory_of_run(&chosen.plan));
    let bars = Bars::new(specs.len());
    let results = workers::in_parallel(specs.len(), jobs, |at| {
        let bar = bars.begin(&specs[at].ftl);
        let result = sim::run(&specs[at], &mut |progress| bar.show(progress))?;
        Ok(weighed(args, result))
    });
    drop(bars);
    results.into_iter().collect()
}

/// What a command line asks for, ready to be run.
pub struct Prepared {
    /// The device.
    pub chosen: Chosen,
    /// The requests.
    pub load: Load,
    /// A run for each FTL.
    pub specs: Vec<RunSpec>,
    /// What was guessed or chosen on the user's behalf.
    pub notes: Vec<String>,
}

/// Makes runs of what a command line says that was checked.
///
/// # Errors
/// If the device, the workload or an FTL cannot be as asked for.
pub fn prepare(args: &CompareArgs, ftls: &[Info], trace: Option<Arc<Trace>>) -> Result<Prepared> {
    let mut notes: Vec<String> = trace.as_ref().map(|trace| trace.notes().to_vec()).unwrap_or_default();
    let chosen = device::choose(args, trace.as_deref())?;
    device::check_order(ftls, &chosen.plan.name, chosen.plan.capabilities)?;
    notes.extend(chosen.notes.iter().cloned());
    notes.extend(settings::cache_note(&args.tuning, chosen.plan.logical_pages));
    let load = load::choose(args, trace, &chosen.plan)?;
    let specs = ftls.iter().map(|info| spec(args, info, &chosen, &load)).collect::<Result<Vec<RunSpec>>>()?;
    let entries = specs.iter().map(|spec| u64::from(spec.config.cache_entries)).max().unwrap_or(0);
    device::check_memory(device::memory_of_run(&chosen.plan) + entries * device::MEMORY_AN_ENTRY)?;
    Ok(Prepared { chosen, load, specs, notes })
}

/// The result with reads weighed as the command line says.
pub fn weighed(args: &CompareArgs, mut result: RunResult) -> RunResult {
    if let Some(delta) = args.delta {
        reweigh(&mut result, delta);
    }
    result
}

/// Refuses what can be seen to be wrong before anything is read or run; the FTLs.
///
/// # Errors
/// Those of usage, but for a folder that is not there.
pub fn check(args: &CompareArgs) -> Result<Vec<Info>> {
    let ftls = ftls(&args.ftl)?;
    settings::check(&args.tuning)?;
    if args.delta.is_some_and(|delta| !(delta > 0.0 && delta.is_finite())) {
        return Err(usage("--delta is how many reads take as long as one program: more than 0, 10 is usual"));
    }
    if args.trace.is_none() && load::reads_a_trace(&args.read) {
        return Err(usage("options about reading a trace need a trace; name its file, or leave them out"));
    }
    check_time(args)?;
    buffer::check(args)?;
    let policy = args.tuning.placement.as_deref().and_then(ftl::placement::find);
    if let Some(row) = policy.filter(|row| row.knows_future && args.time.timing == Timing::Queued) {
        return Err(usage(format!(
            "--placement {} has to know the order of all writes, which with --timing queued depends on what each takes; \
             leave --timing out",
            row.name
        )));
    }
    match args.html.as_deref().and_then(Path::parent) {
        Some(folder) if folder != Path::new("") && !folder.is_dir() => {
            bail!("cannot write the report: there is no folder {}", folder.display())
        }
        _ => Ok(ftls),
    }
}

/// The FTLs of these names, each of which has to be known and named once.
pub fn ftls(names: &[String]) -> Result<Vec<Info>> {
    let table = ftl::ftls::infos();
    let find = |(at, name): (usize, &String)| {
        let known = table.iter().map(|info| info.name);
        let info = table.iter().find(|info| info.name == name).ok_or_else(|| unknown("FTL", name, known, "ftls"))?;
        if names[..at].contains(name) {
            return Err(usage(format!("--ftl names {name} twice")));
        }
        Ok(*info)
    };
    names.iter().enumerate().map(find).collect()
}

fn check_time(args: &CompareArgs) -> Result<()> {
    let time = &args.time;
    let needs_time = [
        (time.queue_depth.is_some(), "--queue-depth"),
        (time.open_loop, "--open-loop"),
        (time.gc.is_some(), "--gc"),
        (time.collectors.is_some(), "--collectors"),
        (time.time_scale.is_some(), "--time-scale"),
        (time.think.is_some(), "--think"),
        (time.controller.is_some(), "--controller"),
        (time.ftl_time.is_some(), "--ftl-time"),
        (time.suspend.is_some(), "--suspend"),
        (time.no_read_priority, "--no-read-priority"),
    ];
    if time.timing == Timing::None
        && let Some((_, option)) = needs_time.iter().find(|(given, _)| *given)
    {
        return Err(usage(format!("{option} means nothing while operations are only counted; add --timing queued")));
    }
    match time.time_scale {
        Some(_) if !time.open_loop => Err(usage("--time-scale changes arrival times, which only --open-loop uses")),
        Some(scale) if !(0.0..=1e6).contains(&scale) => {
            Err(usage(format!("--time-scale {scale} is not a factor from 0 to 1000000; 0.5 plays twice as fast")))
        }
        _ if time.collectors.is_some() && !time.gc.is_some_and(Gc::has_collectors) => {
            Err(usage("--collectors is for collection beside the writes; add --gc pllgc or --gc adaptive"))
        }
        _ if time.think.is_some() && time.open_loop => Err(usage(
            "--think is how long a client of a closed loop waits; with --open-loop requests come at their own times",
        )),
        _ if time.suspend.is_some() && time.no_read_priority => {
            Err(usage("--suspend lets reads interrupt what runs, and --no-read-priority lets them wait; choose one"))
        }
        _ if time.gc == Some(Gc::Idle) && !time.open_loop && time.think.is_none_or(|think| think.0 == 0) => Err(usage(
            "--gc idle collects while no request is in the device, and a closed loop without --think always has one; add --open-loop or --think",
        )),
        _ => Ok(()),
    }
}

/// A run of an FTL.
///
/// # Errors
/// If it cannot be as asked for.
pub fn spec(args: &CompareArgs, info: &Info, chosen: &Chosen, load: &Load) -> Result<RunSpec> {
    let mut spec = RunSpec::new(info.name, chosen.plan.clone(), load.spec.clone());
    spec.writes = load.writes;
    spec.seed = args.seed;
    spec.write_buffer = buffer::asked(args, &chosen.plan)?;
    spec.precondition = match args.precondition {
        Precondition::None => PreconditionMode::Off,
        Precondition::Fill => PreconditionMode::Fill(1.0),
        Precondition::Steady => PreconditionMode::Steady(SteadyOptions::default()),
        Precondition::Aged => {
            PreconditionMode::Steady(SteadyOptions { first: First::Aged, window: 0.1, ..SteadyOptions::default() })
        }
    };
    let geometry = &chosen.plan.geometry;
    let timed = args.time.timing == Timing::Queued;
    let default = Config { lanes: if timed { geometry.dies() } else { 1 }, ..spec.config };
    let asked = settings::asked(&args.tuning, default, geometry)?;
    spec.config = info.config(&asked);
    if timed {
        spec.timing = TimingMode::Queued(queues(args));
    }
    Ok(spec)
}

fn queues(args: &CompareArgs) -> QueueOptions {
    let depth = args.time.queue_depth;
    let host = if args.time.open_loop {
        HostMode::Open { time_scale: args.time.time_scale.unwrap_or(1.0), outstanding: depth.unwrap_or(32) }
    } else {
        HostMode::Closed { queue_depth: depth.unwrap_or(32), think_ns: args.time.think.map_or(0, |time| time.0) }
    };
    let gc = args.time.gc.map(|gc| gc.mode(args.time.collectors)).unwrap_or_default();
    QueueOptions {
        host,
        gc,
        read_priority: !args.time.no_read_priority,
        suspend_ns: args.time.suspend.map(|time| time.0),
        controller_ns: args.time.controller.map_or(0, |time| time.0),
        ftl_page_ns: args.time.ftl_time.map_or([0; 2], |times| times.0),
        ..QueueOptions::default()
    }
}

/// The same result with reads weighed differently: what reads cost is proportional to 1/δ.
fn reweigh(result: &mut RunResult, delta: f64) {
    let wa = &mut result.write_amplification;
    let factor = wa.delta / delta;
    let old = wa.by_purpose;
    wa.by_purpose = sim::ByPurpose::from_fn(|purpose| {
        let mut part = *old.get(purpose);
        part.paper = part.programs + (part.paper - part.programs) * factor;
        part
    });
    wa.paper = wa.by_purpose.iter().map(|(_, part)| part.paper).sum();
    wa.delta = delta;
}

/// What only the results show and a reader has to know.
fn afterwards(results: &[RunResult]) -> Vec<String> {
    let mut notes = Vec::new();
    for note in results.iter().flat_map(|result| &result.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    for result in results.iter().filter(|r| r.precondition.kind == "steady" && !r.precondition.steady) {
        notes.push(format!("{} was not steady when measuring began: {}", result.ftl, result.precondition.reason));
    }
    match results.first() {
        Some(first) if first.host.requests == 0 => notes.push("no request was made in the measured part".to_owned()),
        Some(first) if first.host.writes == 0 => {
            notes.push("the workload wrote nothing in the measured part: there is no write-amplification".to_owned());
        }
        Some(first) if first.host.writes * 1000 < u64::from(first.geometry.logical_pages) => notes.push(format!(
            "only {} pages were written in the measured part: write-amplification says little",
            count(first.host.writes)
        )),
        _ => {}
    }
    notes
}

fn method(results: &[RunResult]) -> String {
    let Some(first) = results.first() else { return String::new() };
    let host = &first.host;
    let mut done: Vec<String> = [("written", host.writes), ("read", host.reads), ("trimmed", host.trims)]
        .into_iter()
        .filter(|(_, pages)| *pages > 0)
        .map(|(what, pages)| format!("{} pages {what}", count(pages)))
        .collect();
    if done.is_empty() {
        done.push("nothing".to_owned());
    }
    let aged = &first.precondition;
    let before = match aged.host_writes {
        0 => aged.reason.clone(),
        pages => format!("{} pages written under {} ({})", count(pages), first.ftl, aged.reason),
    };
    format!("before: {before}; measured: {}, every read checked", done.join(", "))
}

/// The command as it can be typed again.
pub fn command_line(arguments: impl Iterator<Item = String>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=:,./+%@".contains(c);
    let quoted = arguments.skip(1).map(|argument| {
        if !argument.is_empty() && argument.chars().all(plain) {
            argument
        } else {
            format!("'{}'", argument.replace('\'', "'\\''"))
        }
    });
    std::iter::once("openftl".to_owned()).chain(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn weighing_reads_anew_leaves_programs_alone_and_parts_adding_up() {
        let mut result = samples::run("page", 0.8, 0.2, 1, false);
        let before = result.write_amplification;
        reweigh(&mut result, 5.0);
        let after = result.write_amplification;
        assert_eq!((after.delta, after.programs_per_write), (5.0, before.programs_per_write));
        assert!((after.paper - before.paper - (before.paper - before.programs_per_write)).abs() < 1e-9);
        let sum: f64 = after.by_purpose.iter().map(|(_, part)| part.paper).sum();
        assert!((sum - after.paper).abs() < 1e-12);
    }

    #[test]
    fn a_command_can_be_typed_again() {
        let words = ["/usr/bin/openftl", "compare", "my trace.csv", "--workload", "zipf:theta=0.99", "it's"];
        let line = command_line(words.into_iter().map(str::to_owned));
        assert_eq!(line, "openftl compare 'my trace.csv' --workload zipf:theta=0.99 'it'\\''s'");
    }
}
