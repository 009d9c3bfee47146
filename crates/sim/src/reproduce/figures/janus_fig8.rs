//! Figure 8 of Janus-FTL: fused blocks follow a workload whose footprint changes.

use crate::error::SimError;
use crate::reproduce::lab::Shape;
use crate::reproduce::loads::{PROFILE, share_of_device};
use crate::reproduce::{Cell, Chart, DataTable, Experiment, Figure, Lab, Lines, Outcome, Run, Series, Verdict};
use crate::spec::{PreconditionMode, RunSpec, WorkloadSpec};
use ftl::Maps;

pub(super) const FIGURE: Figure = Figure {
    name: "janus/fig8",
    title: "fused blocks while the footprint of the workload goes 90, 10, 70, 30% of capacity",
    source: "Kwon, Kim, Choi, Lee and Noh, EMSOFT 2010, section 6",
    plan,
    conclude,
};

/// Footprints of the phases, percent, and the fused blocks that the paper sees at their ends, of 8192 blocks.
const PHASES: [(u32, f64); 4] = [(90, 7200.0), (10, 1300.0), (70, 5500.0), (30, 2800.0)];

/// Blocks of the paper's device.
const PAPER_BLOCKS: f64 = 8192.0;

/// Host pages written in a phase, over the logical pages.
const WRITES: u64 = 3;

/// A figure read off a curve is taken to be met within so much.
const NEAR_PERCENT: f64 = 20.0;

fn plan(lab: &Lab) -> Result<Vec<Experiment>, SimError> {
    let shape = Shape { logical_ratio: Some(0.9), ..Shape::share(share_of_device(lab)) };
    let device = lab.device(PROFILE, shape)?;
    let phase = WRITES * u64::from(device.logical_pages);
    let footprints: Vec<String> = PHASES.iter().map(|(percent, _)| percent.to_string()).collect();
    let text = format!("phases:footprints={},writes={phase}", footprints.join("-"));
    let mut spec = RunSpec::new("janus", device, WorkloadSpec::synthetic(&text)?);
    spec.writes = phase * PHASES.len() as u64;
    spec.interval_writes = (phase / 50).max(1);
    spec.seed = lab.seed;
    spec.precondition = PreconditionMode::Fill(1.0);
    spec.config.maps = Maps::NonVolatile;
    Ok(vec![Experiment { series: "janus".to_owned(), x: phase as f64, spec }])
}

fn conclude(_: &Lab, runs: &[Run]) -> Outcome {
    let mut table = DataTable::new("", "fused blocks", &["host writes", "fused blocks", "wanted"]);
    let mut series: Vec<Series> =
        ["fused", "wanted"].map(|label| Series { label: label.to_owned(), points: Vec::new() }).into();
    let mut setup = Vec::new();
    for run in runs {
        setup.push(format!(
            "{} blocks of 128 KiB, 10% of them over-provisioned, filled in order before; workload SYNTHETIC, `{}`: uniform \
             writes of a page within the footprint, standing in for the paper's file-system benchmark of four sizes",
            run.result.geometry.blocks, run.result.workload
        ));
        for point in &run.result.timeline {
            let gauge = |name: &str| point.gauges.get(name).map(|value| *value as f64);
            let (fused, wanted) = (gauge("fused_blocks"), gauge("fused_blocks_wanted"));
            table.row(vec![Cell::from(point.host_writes), fused.into(), wanted.into()]);
            for (series, value) in series.iter_mut().zip([fused, wanted]) {
                series.points.extend(value.map(|value| (point.host_writes as f64, value)));
            }
        }
    }
    let ends = runs.first().map_or_else(Vec::new, ends);
    let blocks = runs.first().map_or(PAPER_BLOCKS, |run| f64::from(run.result.geometry.blocks));
    Outcome {
        setup,
        verdicts: verdicts(&ends, blocks),
        charts: vec![Chart::Lines(Lines {
            title: "logical blocks in the page-mapped area".to_owned(),
            x: "host pages written".to_owned(),
            y: "blocks".to_owned(),
            series,
            ..Lines::default()
        })],
        tables: vec![table],
        remarks: vec!["the footprint is a share of what the host sees, 90% of the blocks".to_owned()],
    }
}

/// Fused blocks at the end of each phase.
fn ends(run: &Run) -> Vec<f64> {
    let phase = run.experiment.x;
    let at = |end: f64| {
        let before = run.result.timeline.iter().rev().find(|point| point.host_writes as f64 <= end);
        before.and_then(|point| point.gauges.get("fused_blocks")).map_or(f64::NAN, |blocks| *blocks as f64)
    };
    (1..=PHASES.len()).map(|phases| at(phase * phases as f64)).collect()
}

fn verdicts(ends: &[f64], blocks: f64) -> Vec<Verdict> {
    let scale = blocks / PAPER_BLOCKS;
    let each = PHASES.iter().zip(ends).map(|((percent, paper), ours)| {
        Verdict::near(
            &format!("fused blocks at the end of the phase of {percent}%"),
            &format!("about {paper} of 8192 blocks"),
            *ours,
            paper * scale,
            NEAR_PERCENT,
        )
        .unless_holds(
            "the paper's figure is for a file-system benchmark, whose files, journal and directories make another hit-rate \
             curve than uniform writes; a phase of uniform writes wants just its own footprint in the area",
        )
    });
    let mut out: Vec<Verdict> = each.collect();
    if let [first, second, third, fourth] = *ends {
        let named = [("10%", second), ("30%", fourth), ("70%", third), ("90%", first)];
        out.push(Verdict::rising("the area follows the footprint", "7200, 1300, 5500, 2800", &named));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_follow_the_data() {
        let published = PHASES.map(|(_, blocks)| blocks / 2.0);
        assert!(verdicts(&published, PAPER_BLOCKS / 2.0).iter().all(|verdict| verdict.holds));
        let flat = [4000.0, 3900.0, 3000.0, 4000.0];
        assert_eq!(verdicts(&flat, PAPER_BLOCKS).iter().filter(|verdict| verdict.holds).count(), 0);
    }
}
