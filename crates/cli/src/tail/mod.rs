//! `openftl tail`: latency at shares of the rate that an FTL sustains, beside the same run without
//! collection.
//!
//! The rate is found by [`sim::sustained`].
//!
//! Collections that take no time are what is compared with, for what else an FTL does, such as
//! reading its table, is no fault of its collector (TTFlash, FAST 2017, compares in the same way).
//! Every run starts from the same aged device.

mod report;

use crate::args::{CompareArgs, TailArgs, TimeArgs, Timing};
use crate::compare::{self, Prepared};
use crate::error::usage;
use crate::units::Size;
use crate::workers::{self, Bars};
use crate::{capacity, content, device, load, output, settings};
use anyhow::{Context, Result, anyhow};
use ftl::ftls::Info;
use report::{Closed, OfFtl, Point, Report};
use sim::result::LatencyByKind;
use sim::sustained::{self, CLIENTS, KEEPS_UP, Tried, at_random, closed};
use sim::{GcMode, HostMode, QueueOptions, RunResult, RunSpec, TimingMode};
use std::sync::Arc;

/// The capacity unless another is asked for: each FTL takes up to 17 runs.
const CAPACITY: Size = Size(1 << 30);

/// Does what was asked.
pub fn run(args: &TailArgs) -> Result<()> {
    let compared = compared(args);
    let ftls = compare::check(&compared)?;
    let loads = loads(&args.load)?;
    let (store, placement) = (args.tuning.validity.as_deref(), args.tuning.placement.as_deref());
    for entry in settings::not_taken(&settings::given(&args.tuning), &ftls, store, placement)? {
        output::note(&entry.sentence());
    }
    let trace = args.trace.as_deref().map(|path| load::open(path, &args.read)).transpose()?.map(Arc::new);
    let source = trace.as_deref().map(content::trace);
    let prepared = compare::prepare(&compared, &ftls, trace)?;
    prepared.notes.iter().for_each(|note| output::note(note));
    for (info, spec) in ftls.iter().zip(&prepared.specs) {
        capacity::check(&compared, info, spec, &prepared.chosen, &prepared.load)?;
    }
    let measured = measure(args, &ftls, &prepared, &loads)?;
    let report = Report::new(args, &prepared, source, measured);
    if let Some(path) = &args.html {
        output::write(path, &report.html())?;
        output::note(&format!("wrote {}", path.display()));
    }
    output::print(&if args.json { report.json()? } else { report.text() })
}

/// The comparison whose runs these are, but for how requests arrive.
fn compared(args: &TailArgs) -> CompareArgs {
    let has_own_size = args.capacity.is_some() || args.trace.is_some() || args.device != "demo";
    CompareArgs {
        trace: args.trace.clone(),
        workload: args.workload.clone(),
        ftl: args.ftl.clone(),
        device: args.device.clone(),
        capacity: if has_own_size { args.capacity } else { Some(CAPACITY) },
        logical_ratio: args.logical_ratio,
        writes: args.writes,
        precondition: args.precondition,
        delta: None,
        seed: args.seed,
        jobs: args.jobs,
        json: args.json,
        no_timeline: false,
        html: args.html.clone(),
        buffer: args.buffer.clone(),
        time: TimeArgs {
            timing: Timing::Queued,
            gc: args.gc.filter(|gc| gc.has_collectors()),
            collectors: args.collectors,
            controller: args.controller,
            ftl_time: args.ftl_time,
            suspend: args.suspend,
            no_read_priority: args.no_read_priority,
            ..TimeArgs::default()
        },
        tuning: args.tuning.clone(),
        read: args.read.clone(),
        replay: args.play.clone(),
    }
}

/// The loads in rising order, each of them once.
fn loads(asked: &[u32]) -> Result<Vec<u32>> {
    let mut loads = asked.to_vec();
    loads.sort_unstable();
    match loads.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(usage(format!("--load names {} twice", pair[0]))),
        None => Ok(loads),
    }
}

/// A run of an FTL whose requests arrive in another way.
fn arriving(args: &TailArgs, spec: &RunSpec, host: HostMode, collection_takes_time: bool) -> RunSpec {
    let mut spec = spec.clone();
    let asked = match spec.timing {
        TimingMode::Queued(options) => options,
        TimingMode::None => QueueOptions::default(),
    };
    let warm_up = args.warm_up.map_or(u64::from(spec.device.logical_pages) / 20, |count| count.0);
    let gc = match args.gc.map(|gc| gc.mode(args.collectors)).unwrap_or_default() {
        // A closed loop is never idle.
        GcMode::Idle if matches!(host, HostMode::Closed { .. }) => GcMode::Foreground,
        gc => gc,
    };
    spec.timing =
        TimingMode::Queued(QueueOptions { host, gc, collection_takes_time, warm_up_requests: warm_up, ..asked });
    spec
}

/// Does runs on several threads.
struct Workers<'a> {
    args: &'a TailArgs,
    jobs: usize,
}

impl Workers<'_> {
    fn one(&self, spec: &RunSpec, bars: &Bars) -> Result<RunResult> {
        let bar = bars.begin(&spec.ftl);
        Ok(sim::run(spec, &mut |progress| bar.show(progress))?)
    }

    fn all(&self, specs: &[RunSpec]) -> Result<Vec<RunResult>> {
        let bars = Bars::new(specs.len());
        workers::in_parallel(specs.len(), self.jobs, |at| self.one(&specs[at], &bars)).into_iter().collect()
    }

    /// What closed loops get under each FTL.
    fn closed(&self, specs: &[RunSpec]) -> Result<Vec<Vec<Closed>>> {
        let runs: Vec<RunSpec> = specs
            .iter()
            .flat_map(|spec| CLIENTS.map(|clients| arriving(self.args, spec, closed(clients), true)))
            .collect();
        let results = self.all(&runs)?;
        let of_ftl = |results: &[RunResult]| {
            CLIENTS.iter().zip(results).map(|(clients, result)| Closed::of(*clients, result)).collect()
        };
        Ok(results.chunks(CLIENTS.len()).map(of_ftl).collect())
    }

    /// The rates that were tried under an FTL.
    fn tried(&self, spec: &RunSpec, bound: f64, bars: &Bars) -> Result<Vec<Tried>> {
        sustained::try_rates(bound, |per_s| {
            let result = self.one(&arriving(self.args, spec, at_random(per_s), true), bars)?;
            Ok(result.requests_per_s())
        })
    }
}

fn measure(args: &TailArgs, ftls: &[Info], prepared: &Prepared, loads: &[u32]) -> Result<Vec<OfFtl>> {
    let workers = Workers { args, jobs: workers::jobs(args.jobs, device::memory_of_run(&prepared.chosen.plan)) };
    let specs = &prepared.specs;
    let mut measured: Vec<OfFtl> = Vec::new();
    for (info, closed) in ftls.iter().zip(workers.closed(specs)?) {
        measured.push(OfFtl { ftl: info.name.to_owned(), closed, tried: Vec::new(), points: Vec::new() });
    }
    let bars = Bars::new(ftls.len() * sustained::TRIED_MAX);
    let tried =
        workers::in_parallel(ftls.len(), workers.jobs, |at| workers.tried(&specs[at], measured[at].bound(), &bars));
    drop(bars);
    let mut runs = Vec::new();
    for ((of_ftl, tried), spec) in measured.iter_mut().zip(tried).zip(specs) {
        of_ftl.tried = tried?;
        let per_s = rate(of_ftl)?;
        let at = |load: &u32| at_random(per_s * f64::from(*load) / 100.0);
        runs.extend(
            loads.iter().flat_map(|load| [true, false].map(|takes_time| arriving(args, spec, at(load), takes_time))),
        );
    }
    let results = workers.all(&runs)?;
    let mut pairs = results.chunks(2);
    for of_ftl in &mut measured {
        for load in loads {
            let pair = pairs.next().context("a load has two runs")?;
            let [with, without] = [&pair[0], &pair[1]].map(|result| result.latency_us.clone().unwrap_or_default());
            require_requests(&of_ftl.ftl, &with)?;
            let per_s = of_ftl.sustained() * f64::from(*load) / 100.0;
            of_ftl.points.push(Point { load: *load, per_s, with, without });
        }
    }
    Ok(measured)
}

/// The rate that an FTL sustains.
fn rate(of_ftl: &OfFtl) -> Result<f64> {
    match of_ftl.sustained() {
        per_s if per_s > 0.0 => Ok(per_s),
        _ => Err(anyhow!(
            "no rate was found that {} sustains: of {:.1} requests/s not {:.0}% were done; give more --writes",
            of_ftl.ftl,
            of_ftl.tried.last().map_or(0.0, |tried| tried.per_s),
            100.0 * KEEPS_UP
        )),
    }
}

fn require_requests(ftl: &str, latency: &LatencyByKind) -> Result<()> {
    if latency.read.count + latency.write.count == 0 {
        return Err(usage(format!(
            "no request of {ftl} was left to measure after the warm-up; give --warm-up less, or --writes more"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_put_in_order_and_named_once() {
        assert_eq!(loads(&[70, 30]).unwrap(), [30, 70]);
        assert!(loads(&[70, 30, 70]).unwrap_err().to_string().contains("--load names 70 twice"));
    }
}
