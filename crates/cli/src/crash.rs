//! `openftl crash`: is anything lost when power is cut?

use crate::args::CrashArgs;
use crate::compare;
use crate::error::usage;
use crate::output;
use crate::promises;
use crate::report::NotTaken;
use crate::report::table::{Align, Table, WIDTH, wrap};
use crate::settings;
use crate::units::{count, scaled};
use anyhow::{Context, Result, bail};
use crash::{Effort, Event, Failure, Fault, FtlReport, Mode, Options, Progress, Report};
use ftl::Setting;
use ftl::ftls::Info;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Explores, or replays.
pub fn run(args: &CrashArgs) -> Result<()> {
    if let Some(id) = &args.replay {
        return if args.trace { trace(id, args.json) } else { replay(id, args.json) };
    }
    let ftls = ftls(&args.ftl)?;
    let not_taken = settings::not_taken(&[("--no-battery", Setting::Battery, args.no_battery)], &ftls, None, None)?;
    let options = options(args, &ftls)?;
    if let Some(path) = &args.promises {
        return promises(path, &options, args.json, &not_taken);
    }
    let report = explore(&options)?;
    if args.json {
        let whole = json!({"openftl": env!("CARGO_PKG_VERSION"), "not_taken": not_taken, "report": report});
        output::print(&document(&whole)?)?;
    } else {
        output::print(&as_text(&report, &not_taken))?;
    }
    verdict([&report].into_iter())
}

fn explore(options: &Options) -> Result<Report> {
    let ftls = options.ftls.len();
    crash::run(options, &mut progress(ftls)).map_err(|error| usage(error.to_string()))
}

/// # Errors
/// If a promise was broken.
fn verdict<'a>(reports: impl Iterator<Item = &'a Report>) -> Result<()> {
    let failures: usize = reports.flat_map(|report| &report.ftls).map(|ftl| ftl.failures.len()).sum();
    if failures > 0 {
        bail!("{failures} broken promise(s); openftl crash --replay ID does each of them again");
    }
    Ok(())
}

/// Explores each fault alone and all of them at once, and writes what each cost.
fn promises(path: &Path, options: &Options, as_json: bool, not_taken: &[NotTaken]) -> Result<()> {
    promises::try_open(path)?;
    let mut explored = Vec::new();
    for row in promises::rows(options) {
        let report = explore(&row.options)?;
        if !as_json {
            output::print(&format!("{}\n\n{}\n", row.name, as_text(&report, not_taken)))?;
        }
        explored.push((row.name, report));
    }
    if as_json {
        let rows: Vec<_> = explored.iter().map(|(fault, report)| json!({"fault": fault, "report": report})).collect();
        let whole = json!({"openftl": env!("CARGO_PKG_VERSION"), "not_taken": not_taken, "promises": rows});
        output::print(&document(&whole)?)?;
    }
    promises::write(path, &explored, options)?;
    verdict(explored.iter().map(|(_, report)| report))
}

fn replay(id: &str, as_json: bool) -> Result<()> {
    let failure = crash::replay(id).map_err(|error| usage(error.to_string()))?;
    if as_json {
        output::print(&document(&json!({"openftl": env!("CARGO_PKG_VERSION"), "id": id, "failure": failure}))?)?;
    } else if let Some(failure) = &failure {
        output::print(&told(failure))?;
    } else {
        output::print("Everything goes well: what this id stands for breaks no promise (any more).\n")?;
    }
    match failure {
        Some(failure) => bail!("{}", failure.what),
        None => Ok(()),
    }
}

fn trace(id: &str, as_json: bool) -> Result<()> {
    let trace = crash::trace(id).map_err(|error| usage(error.to_string()))?;
    if as_json {
        output::print(&document(&json!({"openftl": env!("CARGO_PKG_VERSION"), "id": id, "trace": trace}))?)?;
    } else {
        let mut text: String = trace.events.iter().map(event).collect();
        match &trace.failure {
            Some(failure) => text += &told(failure),
            None => text += "Everything goes well: what this id stands for breaks no promise (any more).\n",
        }
        output::print(&text)?;
    }
    match trace.failure {
        Some(failure) => bail!("{}", failure.what),
        None => Ok(()),
    }
}

/// An event in a line, further in the more cuts there were; a mount has a line for each of its
/// steps.
pub fn event(event: &Event) -> String {
    let line = |cuts: &usize, text: String| format!("{}{text}\n", "    ".repeat(*cuts));
    match event {
        Event::Format { logical_pages } => format!("format: {logical_pages} logical pages\n"),
        Event::Call { cuts, call, outcome, efforts, next_operation } => {
            let parts: String =
                efforts.iter().map(|part| format!("; {}: {}", part.purpose, brief(&part.effort))).collect();
            line(cuts, format!("{call}: {outcome} (operations up to {next_operation}{parts})"))
        }
        Event::Cut { cuts, operation, outcome, saving } => {
            let save = if *saving { " of the save, whose battery dies" } else { "" };
            line(cuts, format!("power is cut at operation {operation}{save}, which leaves: {outcome}"))
        }
        Event::Mount { cuts, report: Some(report), .. } => {
            let mut out = line(cuts, format!("mount: {}", effort(&report.effort)));
            for step in &report.steps {
                out += &line(cuts, format!("  {}: {}", step.name, effort(&step.effort)));
            }
            let (unreadable, rebuilt) = (report.unreadable_pages, report.rebuilt_entries);
            out += &line(cuts, format!("  {unreadable} unreadable page(s), {rebuilt} entries rebuilt"));
            if let Some(why) = &report.read_only {
                out += &line(cuts, format!("  {why}"));
            }
            out
        }
        Event::Mount { cuts, error, .. } => {
            line(cuts, format!("mount: failed: {}", error.as_deref().unwrap_or_default()))
        }
        Event::Inspection { cuts, expected, other, errors } => line(
            cuts,
            format!(
                "every page read: {expected} as last written, {other} as another version allowed, {errors} allowed error(s)"
            ),
        ),
        Event::Scenario { scenario } => format!("{scenario} (told as a whole: only cuts are told step by step)\n"),
    }
}

fn effort(effort: &Effort) -> String {
    let Effort { reads, spare_reads, programs, erases, flag_programs, microseconds } = effort;
    let ms = microseconds / 1e3;
    let flags = if *flag_programs > 0 { format!(", {flag_programs} programs of flags") } else { String::new() };
    format!("{reads} reads, {spare_reads} spare reads, {programs} programs, {erases} erases{flags}, {ms:.2} ms")
}

/// The operations of which there were any, without their time.
fn brief(effort: &Effort) -> String {
    let Effort { reads, spare_reads, programs, erases, flag_programs, .. } = *effort;
    let parts = [
        (reads, "read", ""),
        (spare_reads, "spare read", ""),
        (programs, "program", ""),
        (erases, "erase", ""),
        (flag_programs, "program", " of flags"),
    ];
    let some = parts.iter().filter(|(count, ..)| *count > 0);
    some.map(|(count, what, of)| format!("{count} {what}{}{of}", if *count == 1 { "" } else { "s" }))
        .collect::<Vec<_>>()
        .join(", ")
}

fn document(value: &serde_json::Value) -> Result<String> {
    let mut text = serde_json::to_string_pretty(value).context("the report cannot be written as JSON")?;
    text.push('\n');
    Ok(text)
}

fn options(args: &CrashArgs, ftls: &[Info]) -> Result<Options> {
    let sample = Options::sample();
    let whole = Options {
        mode: Mode::find(&args.mode).unwrap_or(Mode::Exhaustive),
        cuts: args.cuts.0,
        depth: args.depth,
        steps: args.steps,
        ..Options::default()
    };
    Ok(Options {
        ftls: ftls.iter().map(|info| info.name.to_owned()).collect(),
        battery: !args.no_battery,
        seed: args.seed,
        faults: faults(&args.faults)?,
        geometry: args.shape.clone(),
        one_in: args.one_in,
        jobs: args.jobs.unwrap_or(whole.jobs),
        ..if args.sample { sample } else { whole }
    })
}

/// The FTLs of these names, or all of them.
fn ftls(names: &[String]) -> Result<Vec<Info>> {
    match names {
        [all] if all == "all" => Ok(ftl::ftls::infos().to_vec()),
        names => compare::ftls(names),
    }
}

fn faults(names: &[String]) -> Result<Vec<Fault>> {
    match names {
        [all] if all == "all" => Ok(Fault::ALL.to_vec()),
        [none] if none == "none" => Ok(Vec::new()),
        names => {
            let find = |name: &String| {
                Fault::find(name)
                    .ok_or_else(|| usage(format!("--faults names `{name}` beside others; it stands alone")))
            };
            names.iter().map(find).collect()
        }
    }
}

/// A bar on standard error if that is a terminal, for so many FTLs; nothing otherwise.
fn progress(ftls: usize) -> impl FnMut(Progress) {
    let bar =
        ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr()).with_finish(ProgressFinish::AndClear);
    // The template is a constant; were it malformed, the bar would keep its default.
    if let Ok(style) = ProgressStyle::with_template(
        "{prefix:>14}  cut points [{bar:36}] {human_pos} of {human_len}  {elapsed}, {eta} left",
    ) {
        bar.set_style(style.progress_chars("=> "));
    }
    let mut each = BTreeMap::new();
    move |Progress { ftl, cut_points, wanted, ended }| {
        // An FTL with failures ends early, and one that cannot be mounted at once.
        each.insert(ftl, if ended { wanted } else { cut_points });
        bar.set_prefix(ftl);
        bar.set_length((wanted * ftls as u64).max(1));
        bar.set_position(each.values().sum());
    }
}

fn as_text(report: &Report, not_taken: &[NotTaken]) -> String {
    let mut out = String::new();
    let explored: Vec<&FtlReport> = report.ftls.iter().filter(|ftl| ftl.not_mountable.is_none()).collect();
    if !explored.is_empty() {
        out.push_str(&summary(&explored));
        out.push_str("\nMount: the slowest, in flash operations and in ms by the times of device profile `small`.\n");
        if explored.iter().any(|ftl| ftl.lost_writes > 0) {
            out.push_str(
                "\nLost writes: acknowledged, and gone after a cut without the battery that the design assumes.\n",
            );
        }
    }
    for options in not_taken {
        out.push('\n');
        paragraph(&mut out, &format!("{}.", options.sentence()));
    }
    for ftl in report.ftls.iter().filter(|ftl| ftl.not_mountable.is_some()) {
        let reason = ftl.not_mountable.as_deref().unwrap_or_default();
        out.push('\n');
        paragraph(&mut out, &format!("{} was not explored: {reason}.", ftl.name));
    }
    for failure in report.ftls.iter().flat_map(|ftl| &ftl.failures) {
        out.push('\n');
        out.push_str(&told(failure));
    }
    out
}

fn summary(explored: &[&FtlReport]) -> String {
    let mut table = Table::new(&[
        ("ftl", Align::Left),
        ("cut points", Align::Right),
        ("a second", Align::Right),
        ("other runs", Align::Right),
        ("lost writes", Align::Right),
        ("mount ops", Align::Right),
        ("ms", Align::Right),
        ("failures", Align::Right),
        ("promised", Align::Left),
    ]);
    for ftl in explored {
        table.row(vec![
            ftl.name.to_owned(),
            count(ftl.cut_points),
            scaled(ftl.cuts_per_s),
            count(ftl.other_runs.values().sum()),
            count(ftl.lost_writes),
            count(ftl.slowest_mount.operations()),
            format!("{:.1}", ftl.slowest_mount.microseconds / 1e3),
            count(ftl.failures.len() as u64),
            ftl.promise.to_owned(),
        ]);
    }
    table.render()
}

/// A failure in words, with what it takes to do it again.
pub fn told(failure: &Failure) -> String {
    let mut out = String::new();
    let mut line = |text: &str| paragraph(&mut out, text);
    line(&format!("BROKEN: {}", failure.what));
    let faults = if failure.faults.is_empty() { "no faults beside cuts" } else { &failure.faults };
    line(&format!("  on device `{}`, {faults}", failure.shape));
    line(&format!("  the disk does: {}", failure.workload.join(", ")));
    for (nth, cut) in failure.cuts.iter().enumerate() {
        let since = if nth == 0 { "formatting began" } else { "power came on" };
        line(&format!("  cut {}: operation {cut} (counted since {since})", nth + 1));
    }
    if failure.tail > 0 {
        line(&format!("  after each mount {} more steps are done", failure.tail));
    }
    // Not wrapped: it is copied.
    let _ = writeln!(out, "  id {}", failure.id);
    out
}

fn paragraph(out: &mut String, text: &str) {
    let indent: String = text.chars().take_while(|c| c.is_whitespace()).collect();
    for (nth, line) in wrap(text, WIDTH - 4).into_iter().enumerate() {
        let more = if nth > 0 { "  " } else { "" };
        let _ = writeln!(out, "{indent}{more}{line}");
    }
}
