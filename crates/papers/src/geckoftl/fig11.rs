//! Figure 11 of GeckoFTL: Logarithmic Gecko and a bitmap in flash against the number of blocks.

use super::common::{FLASH_BITMAP, GECKO, PROFILE, gecko_run, model_of, setup, validity, validity_ops};
use super::model::Device;
use crate::figure::{Conclude, Experiment, Figure, Run};
use crate::lab::{Lab, Shape};
use crate::outcome::{Cell, Chart, DataTable, Lines, Outcome, Series};
use crate::series::line;
use crate::units::short;
use crate::verdict::Verdict;
use sim::SimError;

pub(super) const FIGURE: Figure = Figure {
    name: "gecko/fig11",
    title: "page validity against the number of blocks K",
    source: "Dayan, Bonnet and Idreos, SIGMOD 2016, section 5.2",
    uses_traces: false,
    plan,
    conclude: Conclude::Runs(conclude),
};

const PVB: &str = "PVB in flash";

/// Capacities over the largest.
const SHARES: [f64; 5] = [1.0 / 16.0, 1.0 / 8.0, 1.0 / 4.0, 1.0 / 2.0, 1.0];

fn plan(lab: &Lab) -> Result<Vec<Experiment>, SimError> {
    let mut plan = Vec::new();
    for share in SHARES {
        let device = lab.device(PROFILE, Shape::share(lab.scale * share))?;
        let blocks = f64::from(device.geometry.blocks());
        plan.push(gecko_run(lab, &device, GECKO, blocks, |_| {})?);
        plan.push(gecko_run(lab, &device, PVB, blocks, |spec| spec.config.validity = Some(FLASH_BITMAP))?);
    }
    Ok(plan)
}

fn conclude(lab: &Lab, runs: &[Run]) -> Outcome {
    let mut table = DataTable::new(
        "",
        "page validity by number of blocks",
        &["store", "K, blocks", "levels", "reads per write", "programs per write", "write-amplification"],
    );
    for run in runs {
        let (reads, programs) = validity_ops(&run.result);
        let levels = (run.experiment.series == GECKO).then(|| f64::from(model_of(&run.experiment.spec).gecko_levels()));
        table.row(vec![
            Cell::from(run.experiment.series.as_str()),
            run.experiment.x.into(),
            levels.into(),
            reads.into(),
            programs.into(),
            validity(&run.result).into(),
        ]);
    }
    let gecko = line(runs, GECKO, |run| validity(&run.result));
    let pvb = line(runs, PVB, |run| validity(&run.result));
    let delta = runs.first().map_or(10.0, |run| run.result.write_amplification.delta);
    let formula = gecko.iter().map(|(blocks, _)| {
        let device = Device { blocks: *blocks as u64, ..Device::PAPER };
        (*blocks, device.gecko_write_amplification(delta))
    });
    let series = vec![
        Series { label: "Logarithmic Gecko".to_owned(), points: gecko.clone() },
        Series { label: "its formula (upper estimate)".to_owned(), points: formula.collect() },
        Series { label: PVB.to_owned(), points: pvb.clone() },
    ];
    Outcome {
        setup: setup(lab, runs),
        verdicts: verdicts(&gecko, &pvb, delta),
        charts: vec![Chart::Lines(Lines {
            title: "write-amplification by page validity".to_owned(),
            x: "blocks K".to_owned(),
            y: "write-amplification".to_owned(),
            log_x: true,
            log_y: true,
            series: series.into_iter().filter(|series| !series.points.is_empty()).collect(),
            ..Lines::default()
        })],
        tables: vec![table],
        remarks: Vec::new(),
    }
}

fn verdicts(gecko: &[(f64, f64)], pvb: &[(f64, f64)], delta: f64) -> Vec<Verdict> {
    let paper = "a level for each doubling of K";
    let full = Device::PAPER.gecko_write_amplification(delta);
    let mut out = vec![
        Verdict::logarithmic("write-amplification grows with the logarithm of the number of blocks", paper, gecko)
            .with_formula(format!("{} at the paper's 2^22 blocks, an upper estimate", short(full))),
    ];
    let (Some(first), Some(last)) = (pvb.first(), pvb.last()) else { return out };
    out.push(Verdict::near("that of a bitmap in flash does not depend on it", "flat", last.1, first.1, 2.0));
    let Some(gecko_last) = gecko.last() else { return out };
    out.push(Verdict::below_by(
        "at the largest device Logarithmic Gecko is 98% below",
        ("Logarithmic Gecko", gecko_last.1),
        (PVB, last.1),
        98.0,
    ));
    if let Some(log2) = crossing(gecko, last.1) {
        out.push(Verdict::at_least(
            "the lines cross only where K is larger by a factor of 2^100",
            "about 2^100",
            log2,
            100.0,
            " doublings",
        ));
    }
    out
}

/// Doublings of K after the last point until the line through first and last reaches `level`.
fn crossing(points: &[(f64, f64)], level: f64) -> Option<f64> {
    let (first, last) = (points.first()?, points.last()?);
    let slope = (last.1 - first.1) / (last.0 / first.0).log2();
    (slope > 0.0).then(|| (level - last.1) / slope)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crossings_are_counted_in_doublings() {
        let doublings = crossing(&[(1024.0, 0.01), (4096.0, 0.03)], 1.03).unwrap();
        assert!((doublings - 100.0).abs() < 1e-9, "{doublings}");
        assert_eq!(crossing(&[(1024.0, 0.03), (4096.0, 0.01)], 1.03), None);
        assert_eq!(crossing(&[], 1.0), None);
    }

    #[test]
    fn verdicts_follow_the_data() {
        let flat = [(1024.0, 1.1), (4096.0, 1.1), (16384.0, 1.1)];
        let log = [(1024.0, 0.010), (4096.0, 0.012), (16384.0, 0.014)];
        let linear = [(1024.0, 0.01), (4096.0, 0.04), (16384.0, 0.16)];
        assert!(verdicts(&log, &flat, 10.0).iter().all(|verdict| verdict.holds));
        let wrong = verdicts(&linear, &log, 10.0);
        assert!(wrong.iter().all(|verdict| !verdict.holds), "{wrong:?}");
    }
}
