//! Figure 9 of GeckoFTL: Logarithmic Gecko at size ratios of 2 to 32 against a bitmap in flash.

use super::common::{FLASH_BITMAP, PROFILE, gecko_run, model_of, setup, validity, validity_ops};
use crate::figure::{Conclude, Experiment, Figure, Run};
use crate::lab::{Lab, Shape};
use crate::outcome::{Cell, Chart, DataTable, Lines, Outcome, Series};
use crate::series::series_of;
use crate::units::short;
use crate::verdict::{Named, Verdict};
use sim::SimError;

pub(super) const FIGURE: Figure = Figure {
    name: "gecko/fig9",
    title: "size ratio T of Logarithmic Gecko against a page validity bitmap in flash, by interval of 10,000 writes",
    source: "Dayan, Bonnet and Idreos, SIGMOD 2016, section 5.1",
    uses_traces: false,
    plan,
    conclude: Conclude::Runs(conclude),
};

/// T of the figure.
const RATIOS: [u32; 5] = [2, 4, 8, 16, 32];

/// Host writes in an interval of the figure.
const INTERVAL: u64 = 10_000;

const PVB: &str = "PVB in flash";

fn plan(lab: &Lab) -> Result<Vec<Experiment>, SimError> {
    let device = lab.device(PROFILE, Shape::share(lab.scale))?;
    let mut plan = Vec::new();
    for ratio in RATIOS {
        plan.push(gecko_run(lab, &device, &label(ratio), f64::from(ratio), |spec| {
            spec.config.gecko.size_ratio = Some(ratio);
            spec.interval_writes = INTERVAL;
        })?);
    }
    plan.push(gecko_run(lab, &device, PVB, 0.0, |spec| {
        spec.config.validity = Some(FLASH_BITMAP);
        spec.interval_writes = INTERVAL;
    })?);
    Ok(plan)
}

fn label(ratio: u32) -> String {
    format!("T = {ratio}")
}

fn conclude(lab: &Lab, runs: &[Run]) -> Outcome {
    let delta = runs.first().map_or(10.0, |run| run.result.write_amplification.delta);
    let mut summary = DataTable::new(
        "",
        "over all writes measured",
        &[
            "store",
            "reads per write",
            "programs per write",
            "write-amplification",
            "formula (upper estimate)",
            "steady",
        ],
    );
    for run in runs {
        let (reads, programs) = validity_ops(&run.result);
        let steady = if run.result.precondition.steady { "yes" } else { "no" };
        summary.row(vec![
            Cell::from(run.experiment.series.as_str()),
            reads.into(),
            programs.into(),
            validity(&run.result).into(),
            formula(run, delta).into(),
            steady.into(),
        ]);
    }
    let values: Vec<(String, f64)> =
        runs.iter().map(|run| (run.experiment.series.clone(), validity(&run.result))).collect();
    Outcome {
        setup: setup(lab, runs),
        verdicts: verdicts(runs, &values, delta),
        charts: charts(runs, delta),
        tables: vec![summary, intervals(runs)],
        remarks: vec![
            "the formula is Table 1's leading terms with 1 for their constants; merging several levels at once \
             (Appendix A) saves a part of it"
                .to_owned(),
        ],
    }
}

fn formula(run: &Run, delta: f64) -> f64 {
    let device = model_of(&run.experiment.spec);
    if run.experiment.series == PVB {
        device.flash_pvb_write_amplification(delta)
    } else {
        device.gecko_write_amplification(delta)
    }
}

fn verdicts(runs: &[Run], values: &[(String, f64)], delta: f64) -> Vec<Verdict> {
    let named: Vec<Named<'_>> = values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let gecko: Vec<Named<'_>> = named.iter().copied().filter(|(name, _)| *name != PVB).collect();
    let mut out = vec![
        Verdict::least("a size ratio of 2 has the least write-amplification", "T = 2 best", &gecko, "T = 2")
            .unless_holds(
                "a level of T runs is merged at once here, so a larger T need not rewrite more; what differs is how \
                 many runs a query reads",
            ),
    ];
    let of = |name: &str| named.iter().find(|(n, _)| *n == name).copied();
    if let (Some(two), Some(pvb)) = (of("T = 2"), of(PVB)) {
        let formulas: Vec<f64> = ["T = 2", PVB]
            .iter()
            .filter_map(|name| runs.iter().find(|run| run.experiment.series == *name))
            .map(|run| formula(run, delta))
            .collect();
        let said = formulas.iter().map(|value| short(*value)).collect::<Vec<_>>().join(" against ");
        out.push(
            Verdict::below_by("its write-amplification is 98% below that of a bitmap in flash", two, pvb, 98.0)
                .with_formula(said),
        );
        out.push(Verdict::near(
            "a bitmap in flash costs a program and a read for each page that dies",
            "1 + 1/δ = 1.1",
            pvb.1,
            1.0 + 1.0 / delta,
            5.0,
        ));
        let worst = gecko.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(two);
        let by_formula =
            |name: &str| runs.iter().find(|run| run.experiment.series == name).map(|run| formula(run, delta));
        if let Some((gecko, bitmap)) = by_formula(worst.0).zip(by_formula(PVB)) {
            let claim = "every size ratio does better than a bitmap in flash, by what the formulas say of the worst";
            out.push(Verdict::below_by(claim, worst, pvb, 100.0 * (1.0 - gecko / bitmap)).with_formula(format!(
                "{} against {}",
                short(gecko),
                short(bitmap)
            )));
        }
    }
    out
}

fn charts(runs: &[Run], delta: f64) -> Vec<Chart> {
    let chart = |name: &str, title: &str, y: &str, value: &dyn Fn(f64, f64) -> f64| {
        let series = runs.iter().map(|run| Series {
            label: run.experiment.series.clone(),
            points: points(run).map(|(at, reads, programs)| (at as f64, value(reads, programs))).collect(),
        });
        Chart::Lines(Lines {
            name: name.to_owned(),
            title: title.to_owned(),
            x: "host pages written".to_owned(),
            y: y.to_owned(),
            log_x: false,
            log_y: true,
            series: series.collect(),
        })
    };
    let each = INTERVAL as f64;
    vec![
        chart("", "write-amplification by page validity", "write-amplification", &|r, p| p + r / delta),
        chart("reads", "flash reads for page validity", "reads in 10,000 writes", &|r, _| r * each),
        chart("programs", "flash programs for page validity", "programs in 10,000 writes", &|_, p| p * each),
    ]
}

/// End of each interval in host writes, with reads and programs per write in it.
fn points(run: &Run) -> impl Iterator<Item = (u64, f64, f64)> + '_ {
    run.result.timeline.iter().map(|point| {
        let (reads, programs) = (&point.reads_by_purpose, &point.by_purpose);
        let sum = |of: &sim::ByPurpose<f64>| of.validity + of.validity_query + of.validity_gc;
        (point.host_writes, sum(reads), sum(programs))
    })
}

fn intervals(runs: &[Run]) -> DataTable {
    let mut table = DataTable::new(
        "intervals",
        "by interval",
        &["store", "host writes at its end", "reads per write", "programs per write"],
    );
    for name in series_of(runs) {
        for run in runs.iter().filter(|run| run.experiment.series == name) {
            for (at, reads, programs) in points(run) {
                table.row(vec![name.clone().into(), at.into(), reads.into(), programs.into()]);
            }
        }
    }
    table
}
