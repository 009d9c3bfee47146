//! Every placement policy under Zipf's law of three skews, at three over-provisionings, beside what
//! separate logs would program at best. Not in the poster.

use crate::figure::{Conclude, Experiment, Figure, Run};
use crate::lab::{Lab, Shape};
use crate::loads::recorded;
use crate::outcome::{Cell, Chart, DataTable, Lines, Outcome, Series};
use crate::series::{line, series_of};
use crate::verdict::{Named, Verdict};
use ftl::placement;
use sim::reference::Rates;
use sim::{DevicePlan, RunSpec, SimError, WorkloadSpec};
use std::sync::Arc;
use workload::WorkloadError;
use workload::trace::{self, Map, OpenOptions, Trace, footprint, written_only};

pub(super) const FIGURE: Figure = Figure {
    name: "asa/placements",
    title: "write-amplification and RAM of every placement policy, beside the reference of separate logs",
    source: "not in the poster: its placement among rivals",
    uses_traces: true,
    plan,
    conclude: Conclude::Runs(conclude),
};

const PROFILE: &str = "demo";

/// The profile whole from this scale on.
const WHOLE_FROM: f64 = 1.0 / 256.0;

/// The least share of the profile on which as many streams as a policy may have find room.
const LEAST: f64 = 0.1875;

/// Skews of Zipf's law.
const THETAS: [f64; 3] = [0.8, 0.99, 1.2];

/// Space beyond that of the logical pages, over it, percent.
const PERCENTS: [u32; 3] = [7, 15, 30];

/// How file names of recorded traces begin that are played if there are any, and at which
/// over-provisioning.
const TRACES: [&str; 4] = ["fin1", "msr_prxy", "rocksdb", "tencent_cut"];
const TRACES_AT: u32 = 15;

/// How often a recorded trace is played.
const LAPS: u64 = 16;

const ASA: &str = "asa";
const MIDAS: &str = "midas";
const SEPBIT: &str = "sepbit";
const SPLIT: &str = "split";
const REFERENCE: &str = "separate logs (reference)";
const ONE_LOG: &str = "one log (reference)";

fn zipf(theta: f64) -> String {
    format!("zipf:theta={theta}")
}

fn ratio(percent: u32) -> f64 {
    100.0 / (100.0 + f64::from(percent))
}

fn device(lab: &Lab, percent: u32) -> Result<DevicePlan, SimError> {
    let share = (lab.scale / WHOLE_FROM).clamp(LEAST, 1.0);
    lab.device(PROFILE, Shape { logical_ratio: Some(ratio(percent)), ..Shape::share(share) })
}

fn plan(lab: &Lab) -> Result<Vec<Experiment>, SimError> {
    let mut plan = Vec::new();
    for theta in THETAS {
        for row in placement::table() {
            for percent in PERCENTS {
                let workload = WorkloadSpec::synthetic(&zipf(theta))?;
                let mut spec = RunSpec::new("page", device(lab, percent)?, workload);
                (spec.seed, spec.config.placement) = (lab.seed, Some(row.name));
                plan.push(Experiment { series: name(&zipf(theta), row.name), x: f64::from(percent), spec });
            }
        }
    }
    let d = device(lab, TRACES_AT)?;
    let dimensions = d.geometry.dimensions();
    for (start, trace) in traces(lab, dimensions.page_bytes)? {
        let bytes = footprint(&trace, dimensions.page_bytes).touched_bytes();
        let raw = (bytes as f64 / ratio(TRACES_AT)) as u64;
        // Small blocks, or an excerpt would fill a few blocks only.
        let dimensions = nand::Dimensions { channels: 1, dies_per_channel: 1, pages_per_block: 16, ..dimensions };
        let device = DevicePlan::new(PROFILE, dimensions, d.capabilities, d.timing, Some(raw), ratio(TRACES_AT))?;
        for row in placement::table() {
            let workload = WorkloadSpec::replay(trace.clone(), Map::Dense, Some(LAPS));
            let mut spec = RunSpec::new("page", device.clone(), workload);
            (spec.seed, spec.writes, spec.config.placement) = (lab.seed, 0, Some(row.name));
            plan.push(Experiment { series: name(&start, row.name), x: f64::from(TRACES_AT), spec });
        }
    }
    Ok(plan)
}

/// The samples that come with the program, and those of [`TRACES`] that the laboratory has: what
/// they write, so that all pages of the device stay live.
fn traces(lab: &Lab, page_bytes: u32) -> Result<Vec<(String, Arc<Trace>)>, SimError> {
    let mut traces = Vec::new();
    for sample in trace::samples() {
        let failed = |e: WorkloadError| SimError::Workload { workload: sample.name.to_owned(), reason: e.to_string() };
        traces.push((sample.name, trace::sample(sample.name, &OpenOptions::default()).map_err(failed)?));
    }
    for start in TRACES {
        traces.extend(recorded(lab, &[start])?.map(|trace| (start, trace)));
    }
    let written = traces.into_iter();
    Ok(written.map(|(name, trace)| (name.to_owned(), Arc::new(written_only(&trace, page_bytes)))).collect())
}

/// The loads of a plan, in its order, without the policies.
fn loads_of(runs: &[Run]) -> Vec<String> {
    let mut loads: Vec<String> = Vec::new();
    for series in series_of(runs) {
        let load = series.rsplit_once(": ").map_or("", |(load, _)| load).to_owned();
        if !loads.contains(&load) {
            loads.push(load);
        }
    }
    loads
}

fn name(load: &str, policy: &str) -> String {
    format!("{load}: {policy}")
}

fn amplification(run: &Run) -> f64 {
    run.result.write_amplification.programs_per_write
}

fn ram(run: &Run, structure: &str) -> Cell {
    run.result.ram_bytes.get(structure).copied().into()
}

/// What one log and separate logs would program on a device like this.
fn references(run: &Run) -> Option<[f64; 2]> {
    let spec: workload::Spec = run.experiment.spec.workload.name.parse().ok()?;
    let geometry = &run.result.geometry;
    let rates = Rates::new(&spec.write_rates(u64::from(geometry.logical_pages))?)?;
    let spare = f64::from(geometry.physical_pages) / f64::from(geometry.logical_pages) - 1.0;
    Some([rates.one_log(spare), rates.separate_logs(spare)])
}

fn conclude(lab: &Lab, runs: &[Run]) -> Outcome {
    let mut columns = vec!["workload", "over-provisioning, %"];
    columns.extend(["placement", "write-amplification (programs)", "RAM of the FTL, bytes"]);
    columns.extend(["of it placement, bytes", "of it victim index, bytes", "steady"]);
    let mut table = DataTable::new("", "every placement policy", &columns);
    let mut charts = Vec::new();
    let loads = loads_of(runs);
    for load in &loads {
        let of_load = |run: &&Run| run.experiment.series.starts_with(&format!("{load}: "));
        let mut references_of: Vec<(f64, [f64; 2])> = Vec::new();
        for run in runs.iter().filter(of_load) {
            let policy = run.experiment.series.rsplit(": ").next().unwrap_or_default();
            table.row(vec![
                load.as_str().into(),
                run.experiment.x.into(),
                policy.into(),
                amplification(run).into(),
                ram(run, "total"),
                ram(run, "placement"),
                ram(run, "victim_index"),
                if run.result.precondition.steady { "yes" } else { "no" }.into(),
            ]);
            if let Some(both) = references(run).filter(|_| references_of.iter().all(|at| at.0 < run.experiment.x)) {
                references_of.push((run.experiment.x, both));
            }
        }
        for (at, name) in [ONE_LOG, REFERENCE].into_iter().enumerate() {
            for (x, both) in &references_of {
                let empty = Cell::Empty;
                let row = [load.as_str().into(), (*x).into(), name.into(), both[at].into()];
                table.row(row.into_iter().chain(std::iter::repeat_n(empty, 4)).collect());
            }
        }
        if references_of.is_empty() {
            continue;
        }
        let named = series_of(runs).into_iter().filter(|series| series.starts_with(&format!("{load}: ")));
        let mut series: Vec<Series> = named
            .map(|series| Series {
                label: series.rsplit(": ").next().unwrap_or_default().to_owned(),
                points: line(runs, &series, amplification),
            })
            .collect();
        let points = references_of.iter().map(|(x, both)| (*x, both[1])).collect();
        series.push(Series { label: REFERENCE.to_owned(), points });
        charts.push(Chart::Lines(Lines {
            name: load.replace([':', '=', '.'], "-"),
            title: format!("write-amplification under {load}"),
            x: "over-provisioning, percent of the logical pages".to_owned(),
            y: "programs for each host write".to_owned(),
            series,
            ..Lines::default()
        }));
    }
    Outcome {
        setup: setup(lab, runs),
        verdicts: verdicts(runs),
        charts,
        tables: vec![table],
        remarks: vec![
            "the reference knows every page's rate, gives pages of each rate a log of their own and splits the spare space best; \
             it is no bound for policies that are told the future (fk, lives)"
                .to_owned(),
            "blocks being filled and a reserve take spare space from the policies, the more the more streams they have, and none \
             from the reference"
                .to_owned(),
        ],
    }
}

fn setup(lab: &Lab, runs: &[Run]) -> Vec<String> {
    let mut setup = Vec::new();
    if let Some(run) = runs.first() {
        setup.push(format!(
            "page mapping, greedy, on {} blocks of {} pages of 4 KiB, filled and overwritten by the workload until steady, then \
             two writes for each logical page measured; seed {}",
            run.result.geometry.blocks, run.result.geometry.pages_per_block, lab.seed
        ));
    }
    setup.push(
        "Zipf's law over all logical pages: rank r is drawn in proportion to 1/r^theta, and ranks lie scattered by a permutation, \
         so that every page has a rank of its own; fio hashes ranks instead, so that some addresses share pages of several \
         ranks and a quarter of them is never written"
            .to_owned(),
    );
    if runs.iter().any(|run| !run.experiment.series.starts_with("zipf")) {
        setup.push(format!(
            "recorded traces, the samples that come with the program among them: played {LAPS} times, without trims, on a device whose \
             logical pages are the pages they write, in blocks of 16 pages, at {TRACES_AT}%"
        ));
    }
    setup
}

/// Less is no difference, as in figure 2, percent.
const FEWER_PERCENT: f64 = 3.0;

/// What MiDAS's paper says that it saves, percent.
const MIDAS_PERCENT: f64 = 25.0;

fn verdicts(runs: &[Run]) -> Vec<Verdict> {
    let at = |theta: f64, policy: &str, percent: u32| {
        let wanted = name(&zipf(theta), policy);
        let run = runs.iter().find(|run| run.experiment.series == wanted && run.experiment.x == f64::from(percent));
        run.map_or(f64::NAN, amplification)
    };
    let told: Vec<&str> = placement::table().iter().filter(|row| row.knows_future).map(|row| row.name).collect();
    let over_reference = runs.iter().filter_map(|run| {
        let policy = run.experiment.series.rsplit(": ").next()?;
        let [_, reference] = references(run).filter(|_| !told.contains(&policy))?;
        Some(amplification(run) / reference)
    });
    let mut verdicts = vec![Verdict::at_least(
        "no policy that does not know the future is below the reference of separate logs",
        "not in the poster",
        over_reference.fold(f64::NAN, f64::min),
        1.0,
        " times the reference, the least of all",
    )];
    for theta in THETAS {
        let claim = format!("theta {theta} at 15%: parted by age, fewer programs than with moved data apart");
        verdicts.push(with_paper(Verdict::below_by(
            &claim,
            (ASA, at(theta, ASA, 15)),
            (SPLIT, at(theta, SPLIT, 15)),
            FEWER_PERCENT,
        )));
    }
    let online: Vec<Named<'_>> = placement::table()
        .iter()
        .filter(|row| !row.knows_future)
        .map(|row| (row.name, at(0.99, row.name, 15)))
        .collect();
    let mean = |policy: &str| {
        let all = THETAS.iter().flat_map(|theta| PERCENTS.map(|percent| at(*theta, policy, percent)));
        all.sum::<f64>() / (THETAS.len() * PERCENTS.len()) as f64
    };
    let claim = "MiDAS programs 25% less than SepBIT, on average of all skews and over-provisionings";
    let mut less = Verdict::below_by(claim, (MIDAS, mean(MIDAS)), (SEPBIT, mean(SEPBIT)), MIDAS_PERCENT).unless_holds(
        "at 7% over-provisioning MiDAS programs more than SepBIT, at 15 and 30% up to 23% less; the traces of its paper are not \
         to be had",
    );
    "MiDAS (FAST 2024): 25% less than the best of others, on its traces".clone_into(&mut less.paper);
    verdicts.push(less);
    verdicts.push(Verdict::least(
        "theta 0.99 at 15%: parted by age, the fewest of all",
        "not in the poster",
        &online,
        ASA,
    ));
    verdicts
}

fn with_paper(mut verdict: Verdict) -> Verdict {
    "not in the poster".clone_into(&mut verdict.paper);
    verdict
}
