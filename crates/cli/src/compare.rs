//! `openftl compare`: the same device and workload under several FTLs.

use crate::args::{CompareArgs, Defuse, Gc, MapsArg, Precondition, Timing};
use crate::device::{self, Chosen};
use crate::error::{unknown, usage};
use crate::load::{self, Load};
use crate::output;
use crate::report::{Report, html, json, text};
use crate::units::{Groups, count};
use anyhow::{Result, bail};
use ftl::config::Maps;
use ftl::{GroupOptions, JanusOptions, WearOptions};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use nand::sim::SimNand;
use nand::{ProgramOrder, profiles};
use sim::{
    GcMode, HostMode, Phase, PreconditionMode, Progress, QueueOptions, RunResult, RunSpec, SteadyOptions, TimingMode,
};
use std::path::Path;

/// Bytes of a cached mapping entry, as GeckoFTL counts them: 2^19 entries are 4 MiB.
const CACHE_ENTRY_BYTES: u64 = 8;

/// Runs the comparison and reports it.
pub fn run(args: &CompareArgs) -> Result<()> {
    check(args)?;
    let trace = args.trace.as_deref().map(|path| load::open(path, &args.read)).transpose()?;
    let mut notes: Vec<String> = trace.as_ref().map(|trace| trace.notes().to_vec()).unwrap_or_default();
    let chosen = device::choose(args, trace.as_ref())?;
    check_order(args, &chosen)?;
    notes.extend(chosen.notes.iter().cloned());
    let load = load::choose(args, trace, &chosen.plan)?;
    for note in &notes {
        output::note(note);
    }
    let mut results = Vec::new();
    for ftl in &args.ftl {
        let spec = spec(args, ftl, &chosen, &load)?;
        let mut result = sim::run(&spec, &mut progress(ftl))?;
        if let Some(delta) = args.delta {
            reweigh(&mut result, delta);
        }
        results.push(result);
    }
    for note in afterwards(&results) {
        output::note(&note);
        notes.push(note);
    }
    let report = Report {
        command: command_line(std::env::args()),
        device: chosen.description,
        workload: load.description,
        method: method(&results),
        seed: args.seed,
        notes,
        results,
    };
    if let Some(path) = &args.html {
        output::write(path, &html::render(&report))?;
        output::note(&format!("wrote {}", path.display()));
    }
    output::print(&if args.json { json::render(&report)? } else { text::render(&report) })
}

/// Refuses what can be seen to be wrong before anything is read or run.
fn check(args: &CompareArgs) -> Result<()> {
    let table = ftl::ftls::table::<SimNand>();
    for (i, name) in args.ftl.iter().enumerate() {
        if !table.iter().any(|entry| entry.info.name == name) {
            return Err(unknown("FTL", name, table.iter().map(|entry| entry.info.name), "ftls"));
        }
        if args.ftl[..i].contains(name) {
            return Err(usage(format!("--ftl names {name} twice")));
        }
    }
    if ftl::victim::find(&args.victim).is_none() {
        let known = ftl::victim::table().iter().map(|entry| entry.name);
        return Err(unknown("victim policy", &args.victim, known, "victims"));
    }
    if ftl::placement::find(&args.placement).is_none() {
        let known = ftl::placement::table().iter().map(|entry| entry.name);
        return Err(unknown("placement policy", &args.placement, known, "placements"));
    }
    check_store(args, &table)?;
    if args.delta.is_some_and(|delta| !(delta > 0.0 && delta.is_finite())) {
        return Err(usage("--delta is how many reads take as long as one program: more than 0, 10 is usual"));
    }
    if args.trace.is_none() && load::reads_a_trace(&args.read) {
        return Err(usage("options about reading a trace need a trace; name its file, or leave them out"));
    }
    if args.janus.window.is_some() && args.janus.defuse == Defuse::Recency {
        return Err(usage("--janus-window means nothing while recency decides alone; add --janus-defuse validity"));
    }
    check_time(args)?;
    match args.html.as_deref().and_then(Path::parent) {
        Some(folder) if folder != Path::new("") && !folder.is_dir() => {
            bail!("cannot write the report: there is no folder {}", folder.display())
        }
        _ => Ok(()),
    }
}

/// A page-validity store that does not exist, or that means nothing to an FTL, is refused.
fn check_store(args: &CompareArgs, table: &[ftl::ftls::Entry<SimNand>]) -> Result<()> {
    let Some(name) = &args.validity else { return Ok(()) };
    if ftl::validity::find(name).is_none() {
        let known = ftl::validity::table().iter().map(|entry| entry.name);
        return Err(unknown("page-validity store", name, known, "stores"));
    }
    let without = table.iter().map(|entry| entry.info).filter(|info| info.validity.is_none());
    let asked: Vec<&str> =
        without.map(|info| info.name).filter(|ftl| args.ftl.iter().any(|asked| asked == ftl)).collect();
    if asked.is_empty() {
        return Ok(());
    }
    Err(usage(format!(
        "--validity {name} means nothing to {}, which has no page-validity store; leave out one or the other",
        asked.join(", ")
    )))
}

/// An FTL that cannot work with the device's program order is refused before anything is simulated.
fn check_order(args: &CompareArgs, chosen: &Chosen) -> Result<()> {
    let (plan, table) = (&chosen.plan, ftl::ftls::table::<SimNand>());
    let asked = |info: &ftl::ftls::Info| args.ftl.iter().any(|asked| asked == info.name);
    let cannot = table.iter().map(|entry| entry.info).filter(|info| asked(info) && !info.runs_on(plan.capabilities));
    let names: Vec<&str> = cannot.map(|info| info.name).collect();
    if names.is_empty() {
        return Ok(());
    }
    let free = profiles::profiles().iter().filter(|p| p.capabilities.program_order == ProgramOrder::Free);
    Err(usage(format!(
        "{} programs the pages of a block in any order, but device {} has sequential program order; choose a device with free \
         program order ({}), or leave {} out",
        names.join(", "),
        plan.name,
        free.map(|profile| &*profile.name).collect::<Vec<_>>().join(", "),
        names.join(", ")
    )))
}

fn check_time(args: &CompareArgs) -> Result<()> {
    let time = &args.time;
    let needs_time = [
        (time.queue_depth.is_some(), "--queue-depth"),
        (time.open_loop, "--open-loop"),
        (time.gc.is_some(), "--gc"),
        (time.time_scale.is_some(), "--time-scale"),
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
        _ => Ok(()),
    }
}

fn spec(args: &CompareArgs, ftl: &str, chosen: &Chosen, load: &Load) -> Result<RunSpec> {
    let mut spec = RunSpec::new(ftl, chosen.plan.clone(), load.spec.clone());
    spec.writes = load.writes;
    spec.seed = args.seed;
    spec.precondition = match args.precondition {
        Precondition::None => PreconditionMode::Off,
        Precondition::Fill => PreconditionMode::Fill(1.0),
        Precondition::Steady => PreconditionMode::Steady(SteadyOptions::default()),
    };
    // The tables hold names that live as long as the program; the user's do not.
    spec.config.victim = ftl::victim::find(&args.victim).map_or(spec.config.victim, |entry| entry.name);
    spec.config.placement = ftl::placement::find(&args.placement).map_or(spec.config.placement, |entry| entry.name);
    spec.config.groups = args.groups.map(|Groups { blocks, extra }| GroupOptions { blocks, extra });
    spec.config.maps = match args.maps {
        MapsArg::Flash => Maps::InFlash,
        MapsArg::Nonvolatile => Maps::NonVolatile,
    };
    spec.config.wear = args.level_wear.map(|spread| WearOptions { spread, scans: args.wear_scans });
    spec.config.validity = args.validity.as_deref().and_then(ftl::validity::find).map(|entry| entry.name);
    spec.config.gecko.size_ratio = args.gecko.t;
    spec.config.gecko.partitions = args.gecko.s;
    spec.config.gecko.multi_way = !args.gecko.two_way;
    spec.config.gecko.buffer_pages = args.gecko.buffer;
    spec.config.gecko.packed = args.gecko.packed;
    spec.config.gecko.filter_bytes = args.gecko.filter.map_or(Ok(0), |size| filter_bytes(size.0))?;
    spec.config.janus.defuse_among = match args.janus.defuse {
        Defuse::Recency => JanusOptions::PAPER.defuse_among,
        Defuse::Validity => args.janus.window.unwrap_or(16),
    };
    spec.config.janus.learn_utilisation = args.janus.learn;
    spec.config.janus.page_map_percent = args.janus.block_map.unwrap_or(JanusOptions::PAPER.page_map_percent);
    if let Some(cache) = args.cache {
        let entries = u32::try_from(cache.0 / CACHE_ENTRY_BYTES).unwrap_or(u32::MAX);
        if entries == 0 {
            return Err(usage(format!("--cache {} B holds no entry; an entry is {CACHE_ENTRY_BYTES} B", cache.0)));
        }
        spec.config.cache_entries = entries;
    }
    spec.config.protected_percent = args.segmented_lru.unwrap_or(0);
    let geometry = &chosen.plan.geometry;
    if args.gecko.s > geometry.pages_per_block() {
        let pages = geometry.pages_per_block();
        return Err(usage(format!("--gecko-s {} is more than the {pages} pages of a block", args.gecko.s)));
    }
    let timed = args.time.timing == Timing::Queued;
    spec.config.lanes = args.lanes.unwrap_or(if timed { geometry.dies() } else { 1 });
    if spec.config.lanes > geometry.dies() {
        return Err(usage(format!(
            "--lanes {} is more than the {} dies of device {}: blocks on the same die are not filled faster",
            spec.config.lanes,
            geometry.dies(),
            chosen.plan.name
        )));
    }
    if timed {
        spec.timing = TimingMode::Queued(queues(args));
    }
    Ok(spec)
}

/// The size of a filter, which is no use if it is larger than a bitmap of the largest device.
fn filter_bytes(bytes: u64) -> Result<u32> {
    match u32::try_from(bytes) {
        Ok(bytes) if bytes >= 4 => Ok(bytes),
        _ => Err(usage(format!(
            "--gecko-filter {bytes} B is not between 4 B and 4 GiB; 1MiB is enough for 2 TiB of flash"
        ))),
    }
}

fn queues(args: &CompareArgs) -> QueueOptions {
    let depth = args.time.queue_depth;
    let host = if args.time.open_loop {
        HostMode::Open { time_scale: args.time.time_scale.unwrap_or(1.0), outstanding: depth.unwrap_or(32) }
    } else {
        HostMode::Closed { queue_depth: depth.unwrap_or(32), think_ns: 0 }
    };
    let gc = if args.time.gc == Some(Gc::Idle) { GcMode::Idle } else { GcMode::Foreground };
    QueueOptions { host, gc, ..QueueOptions::default() }
}

/// A bar on standard error if that is a terminal; nothing otherwise.
fn progress(ftl: &str) -> impl FnMut(Progress) + use<> {
    let target = ProgressDrawTarget::stderr();
    let bar = ProgressBar::with_draw_target(Some(1), target).with_finish(ProgressFinish::AndClear);
    // The template is a constant; were it malformed, the bar would keep its default.
    if let Ok(style) = ProgressStyle::with_template("{prefix:>8}  {msg:<13} [{bar:36}] {percent:>3}%  {elapsed}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix(ftl.to_owned());
    move |progress| {
        bar.set_message(match progress.phase {
            Phase::Fill => "filling",
            Phase::Precondition => "ageing",
            Phase::Measure => "measuring",
            Phase::Verify => "reading back",
        });
        bar.set_length(progress.total.max(1));
        bar.set_position(progress.done.min(progress.total.max(1)));
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
fn command_line(arguments: impl Iterator<Item = String>) -> String {
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
