//! Figure 1 of GeckoFTL: RAM and recovery time of LazyFTL against capacity.

use super::common::{PROFILE, collections_left_out, recovery_seconds, setup};
use super::model::{Device, Model, Times};
use crate::figure::{Experiment, Figure, Run};
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
    conclude,
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
        verdicts: verdicts(&formula, &measured),
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

fn verdicts(formula: &Growth, measured: &Growth) -> Vec<Verdict> {
    let paper = "in proportion to capacity";
    let mut out = Vec::new();
    for (what, pick) in [
        ("RAM", (|growth| &growth.ram) as fn(&Growth) -> &Vec<(f64, f64)>),
        ("recovery time", |growth| &growth.recovery),
    ] {
        let by_formula = last_doubling(pick(formula));
        if let Some(factor) = last_doubling(pick(measured)) {
            let claim = format!("{what} grows in proportion to capacity, the fixed cache apart");
            let mut verdict = Verdict::at_least(&claim, paper, factor, 1.5, " times for twice the capacity")
                .unless_holds(
                    "at this scale what does not grow with capacity (the cache, buffers, work on dirty entries) still \
                     weighs more than what does",
                );
            if let Some(formula) = by_formula {
                verdict = verdict.with_formula(format!("{} times from 4 to 8 TiB", short(formula)));
            }
            out.push(verdict);
        } else if let Some(factor) = by_formula {
            let claim = format!("{what} grows in proportion to capacity (by formula)");
            out.push(Verdict::at_least(&claim, paper, factor, 1.5, " times for twice the capacity"));
        }
    }
    let share = Device::PAPER.pvb_bytes() / (Device::PAPER.pvb_bytes() + Device::PAPER.gmd_bytes()) * 100.0;
    out.push(Verdict::at_least(
        "the page validity bitmap is 95% of the metadata in RAM, the cache apart (by formula, 2 TiB)",
        "95%",
        share,
        95.0,
        "%",
    ));
    out
}

/// By how much the last value is above the one at half its x.
fn last_doubling(points: &[(f64, f64)]) -> Option<f64> {
    let last = points.last()?;
    let half = points.iter().find(|point| (point.0 * 2.0 / last.0 - 1.0).abs() < 0.02)?;
    Some(last.1 / half.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_follow_the_data() {
        let growth = |factor: f64| {
            let points: Vec<(f64, f64)> = (0..4).map(|i| (f64::from(1 << i), factor.powi(i))).collect();
            Growth { ram: points.clone(), recovery: points }
        };
        let holding = verdicts(&by_formula(), &growth(1.9));
        assert!(holding.iter().all(|verdict| verdict.holds), "{holding:?}");
        let failing = verdicts(&by_formula(), &growth(1.1));
        assert_eq!(failing.iter().filter(|verdict| !verdict.holds).count(), 2);
        assert!(failing.iter().filter(|verdict| !verdict.holds).all(|verdict| verdict.why.is_some()));
    }
}
