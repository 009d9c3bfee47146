//! Figure 1 of GeckoFTL: RAM and recovery time of LazyFTL against capacity.

use super::common::{PROFILE, collections_left_out, recovery_seconds, setup};
use super::model::{Device, Model, Times};
use crate::figure::{Conclude, Experiment, Figure, Run};
use crate::lab::{Lab, Shape};
use crate::outcome::{Cell, Chart, DataTable, Lines, Outcome, Series};
use crate::units::{mib, short};
use crate::verdict::Verdict;
use sim::SimError;

pub(super) const FIGURE: Figure = Figure {
    name: "gecko/fig1",
    title: "RAM and recovery time of LazyFTL against capacity, by formula and measured",
    source: "Dayan, Bonnet and Idreos, SIGMOD 2016, sections 1, 2 and 5.3",
    uses_traces: false,
    plan,
    conclude: Conclude::Runs(conclude),
};

const FTL: &str = "lazy";

/// Blocks of the devices that the formulas are worked out for: 64 GiB to 8 TiB.
const BLOCKS_LOG2: std::ops::RangeInclusive<u32> = 17..=24;

/// Capacities of the devices that are run, over the largest.
const SHARES: [f64; 4] = [0.125, 0.25, 0.5, 1.0];

/// The cache is as large on every device, as in the paper.
fn plan(lab: &Lab) -> Result<Vec<Experiment>, SimError> {
    let mut plan = Vec::new();
    let cache_entries = lab.device(PROFILE, Shape::share(lab.scale))?.config().cache_entries;
    for share in SHARES {
        let device = lab.device(PROFILE, Shape::share(lab.scale * share))?;
        let mut spec = lab.uniform(FTL, &device)?;
        spec.config.cache_entries = cache_entries;
        spec.power_cut = true;
        plan.push(Experiment { series: FTL.to_owned(), x: device.geometry.raw_bytes() as f64, spec });
    }
    Ok(plan)
}

const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

/// Bytes of RAM and seconds of recovery, each against bytes of capacity.
#[derive(Debug, Default)]
struct Growth {
    ram: Vec<(f64, f64)>,
    recovery: Vec<(f64, f64)>,
}

fn by_formula() -> Growth {
    let mut growth = Growth::default();
    let Some(model) = Model::find(FTL) else { return growth };
    for log2 in BLOCKS_LOG2 {
        let device = Device { blocks: 1 << log2, ..Device::PAPER };
        growth.ram.push((device.raw_bytes(), model.ram_bytes(&device)));
        growth.recovery.push((device.raw_bytes(), model.recovery_seconds(&device, &Times::PAPER)));
    }
    growth
}

fn measured(runs: &[Run]) -> Growth {
    let mut growth = Growth::default();
    for run in runs {
        let ram = run.result.ram_bytes.get("total").copied().unwrap_or_default();
        growth.ram.push((run.experiment.x, ram as f64));
        growth.recovery.extend(recovery_seconds(run).map(|seconds| (run.experiment.x, seconds)));
    }
    growth
}

fn conclude(lab: &Lab, runs: &[Run]) -> Outcome {
    let (formula, measured) = (by_formula(), measured(runs));
    let mut setup = setup(lab, runs);
    setup.push(
        "formulas: blocks of 128 pages of 4 KiB, R = 0.7, C = 2^19 at every capacity, 10% of it dirty at most"
            .to_owned(),
    );
    let tables = vec![table("", "by formula", &formula), table("measured", "measured in the running FTL", &measured)];
    let chart = |name: &str, y: &str, of: fn(&Growth) -> &Vec<(f64, f64)>, scale: f64| {
        let scaled = |growth: &Growth| of(growth).iter().map(|(x, value)| (x / GIB, value / scale)).collect::<Vec<_>>();
        let series = [("by formula", &formula), ("measured", &measured)]
            .map(|(label, growth)| Series { label: label.to_owned(), points: scaled(growth) });
        Chart::Lines(Lines {
            name: name.to_owned(),
            title: format!("{y} of LazyFTL against capacity"),
            x: "capacity, GiB".to_owned(),
            y: y.to_owned(),
            log_x: true,
            log_y: true,
            series: series.into_iter().filter(|series| !series.points.is_empty()).collect(),
        })
    };
    Outcome {
        setup,
        verdicts: verdicts(&formula, &measured, runs),
        charts: vec![
            chart("ram", "RAM, MiB", |growth| &growth.ram, 1024.0 * 1024.0),
            chart("recovery", "recovery, seconds", |growth| &growth.recovery, 1.0),
        ],
        tables: tables.into_iter().filter(|table| !table.rows.is_empty()).collect(),
        remarks: [
            Some(
                "recovery is the time of its flash operations one after the other: 100 µs a read, 3 µs a spare area, 1 ms a \
                 program"
                    .to_owned(),
            ),
            collections_left_out(runs),
        ]
        .into_iter()
        .flatten()
        .collect(),
    }
}

fn table(name: &str, title: &str, growth: &Growth) -> DataTable {
    let mut table = DataTable::new(name, title, &["capacity, GiB", "RAM, MiB", "recovery, s"]);
    for (capacity, ram) in &growth.ram {
        let recovery = growth.recovery.iter().find(|(x, _)| x == capacity).map(|(_, seconds)| *seconds);
        table.row(vec![Cell::from(capacity / GIB), mib(*ram).into(), recovery.into()]);
    }
    table
}

fn verdicts(formula: &Growth, measured: &Growth, runs: &[Run]) -> Vec<Verdict> {
    let paper = "in proportion to capacity";
    let mut out = Vec::new();
    for (what, pick) in [
        ("RAM", (|growth| &growth.ram) as fn(&Growth) -> &Vec<(f64, f64)>),
        ("recovery time", |growth| &growth.recovery),
    ] {
        let by_formula = increments(pick(formula));
        let ask = |claim: &str, factor| Verdict::near(claim, paper, factor, 2.0, PROPORTION_PERCENT);
        if let Some(factor) = increments(pick(measured)) {
            let claim = format!("{what} grows in proportion to capacity: a doubling adds twice what the last one did");
            let mut verdict = ask(&claim, factor).unless_holds(
                "a part of it neither grows with capacity nor stays as it is, such as work on dirty entries and what a \
                 larger device lets a table round up to",
            );
            if let Some(formula) = by_formula {
                verdict = verdict.with_formula(format!("{} times from 2 over 4 to 8 TiB", short(formula)));
            }
            out.push(verdict);
        } else if let Some(factor) = by_formula {
            out.push(ask(&format!("{what} grows in proportion to capacity (by formula)"), factor));
        }
    }
    out.extend(bitmap_share(runs));
    out
}

/// By how much proportional growth may be off.
const PROPORTION_PERCENT: f64 = 10.0;

/// What the last doubling of x added over what the one before added: 2 for what is proportional,
/// beside whatever stays as it is.
fn increments(points: &[(f64, f64)]) -> Option<f64> {
    let last = points.last()?;
    let at = |share: f64| points.iter().find(|point| (point.0 / last.0 / share - 1.0).abs() < 0.02);
    let (half, quarter) = (at(0.5)?, at(0.25)?);
    Some((last.1 - half.1) / (half.1 - quarter.1))
}

/// Structures of the cache of mapping entries.
const CACHE: [&str; 3] = ["cmt", "cmt_index", "recent_updates"];

/// How much of the metadata in RAM is the bitmap, on the largest device that was run.
fn bitmap_share(runs: &[Run]) -> Vec<Verdict> {
    let Some(largest) = runs.iter().max_by(|a, b| a.experiment.x.total_cmp(&b.experiment.x)) else { return Vec::new() };
    let of = |name: &str| largest.result.ram_bytes.get(name).copied().unwrap_or_default() as f64;
    let rest = of("total") - CACHE.iter().map(|name| of(name)).sum::<f64>();
    share_verdicts(of("pvb"), of("gmd"), rest)
}

/// Bytes of the bitmap, of the global directory, and of all metadata but the cache.
fn share_verdicts(bitmap: f64, directory: f64, rest: f64) -> Vec<Verdict> {
    let full = Device::PAPER;
    let by_formula = full.pvb_bytes() / (full.pvb_bytes() + full.gmd_bytes()) * 100.0;
    let ask = |claim: &str, share: f64| Verdict::at_least(claim, "95%", share * 100.0, 95.0, "%");
    vec![
        ask("the page validity bitmap is 95% of bitmap and directory, all that the paper counts", bitmap / (bitmap + directory))
            .with_formula(format!("{}% at 2 TiB", short(by_formula))),
        ask("it is 95% of all metadata that is in RAM, the cache apart", bitmap / rest).unless_holds(
            "the paper counts the bitmap and the global directory. A running FTL also holds the index of victims, the state \
             of each block, the count of its valid pages, and buffers",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_follow_the_data() {
        let growth = |power: f64| {
            let points: Vec<(f64, f64)> =
                (0..4).map(|i| f64::from(1 << i)).map(|x| (x, 100.0 + x.powf(power))).collect();
            Growth { ram: points.clone(), recovery: points }
        };
        let holding = verdicts(&by_formula(), &growth(1.0), &[]);
        assert!(holding.iter().all(|verdict| verdict.holds), "{holding:?}");
        let failing = verdicts(&by_formula(), &growth(0.8), &[]);
        assert_eq!(failing.iter().filter(|verdict| !verdict.holds).count(), 2);
        assert!(failing.iter().filter(|verdict| !verdict.holds).all(|verdict| verdict.why.is_some()));
    }

    #[test]
    fn shares_turn_just_past_95_percent() {
        let holds = |verdicts: Vec<Verdict>| verdicts.iter().map(|verdict| verdict.holds).collect::<Vec<_>>();
        assert_eq!(holds(share_verdicts(95.1, 4.9, 100.0)), [true, true]);
        assert_eq!(holds(share_verdicts(95.1, 4.9, 100.2)), [true, false]);
        assert_eq!(holds(share_verdicts(94.9, 5.1, 100.0)), [false, false]);
    }
}
