//! Figure 8 of Janus-FTL: fused blocks follow a workload whose footprint changes.

use super::loads::PostMark;
use crate::figure::{Conclude, Experiment, Figure, Run};
use crate::lab::Lab;
use crate::outcome::{Cell, Chart, DataTable, Lines, Outcome, Series};
use crate::verdict::Verdict;
use sim::SimError;

pub(super) const FIGURE: Figure = Figure {
    name: "janus/fig8",
    title: "fused blocks while the footprint of the workload goes 90, 10, 70, 30% of capacity",
    source: "Kwon, Kim, Choi, Lee and Noh, EMSOFT 2010, section 6",
    uses_traces: false,
    plan,
    conclude: Conclude::Runs(conclude),
};

/// Fused blocks that the paper sees at the ends of the rounds, of 8192 blocks.
const PUBLISHED: [f64; 4] = [7200.0, 1300.0, 5500.0, 2800.0];

/// Blocks of the paper's device.
const PAPER_BLOCKS: f64 = 8192.0;

/// A figure read off a curve is taken to be met within so much.
const NEAR_PERCENT: f64 = 20.0;

fn plan(lab: &Lab) -> Result<Vec<Experiment>, SimError> {
    let load = PostMark::new(lab)?;
    let spec = load.run(lab, "janus")?;
    Ok(vec![Experiment { series: "janus".to_owned(), x: load.round() as f64, spec }])
}

fn conclude(_: &Lab, runs: &[Run]) -> Outcome {
    let mut table = DataTable::new("", "fused blocks", &["host writes", "fused blocks", "wanted"]);
    let mut series: Vec<Series> =
        ["fused", "wanted"].map(|label| Series { label: label.to_owned(), points: Vec::new() }).into();
    let mut setup = Vec::new();
    for run in runs {
        setup.push(PostMark::describe(run));
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
        remarks: vec!["the files fill a share of the data blocks of a file system on what the host sees, 90% of the blocks; fused blocks are \
             those at the end of the transactions of a round".to_owned()],
    }
}

/// Fused blocks at the end of the transactions of each round.
fn ends(run: &Run) -> Vec<f64> {
    let round = run.experiment.x;
    let at = |end: f64| {
        let before = run.result.timeline.iter().rev().find(|point| point.host_writes as f64 <= end);
        before.and_then(|point| point.gauges.get("fused_blocks")).map_or(f64::NAN, |blocks| *blocks as f64)
    };
    (1..=PUBLISHED.len()).map(|rounds| at(round * rounds as f64)).collect()
}

fn verdicts(ends: &[f64], blocks: f64) -> Vec<Verdict> {
    let scale = blocks / PAPER_BLOCKS;
    let each = PostMark::FILLS.iter().zip(PUBLISHED).zip(ends).map(|((percent, paper), ours)| {
        Verdict::near(
            &format!("fused blocks at the end of the round of {percent}%"),
            &format!("about {paper} of 8192 blocks"),
            *ours,
            paper * scale,
            NEAR_PERCENT,
        )
        .unless_holds(
            "sizes are considered in steps of 128ths of all logical blocks, and the least that holds what is written again \
             and again is taken: the files of the round, journal and tables; how large those of the paper's file system \
             were, and its files, is not known",
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
        let published = PUBLISHED.map(|blocks| blocks / 2.0);
        assert!(verdicts(&published, PAPER_BLOCKS / 2.0).iter().all(|verdict| verdict.holds));
        let flat = [4000.0, 4000.0, 4000.0, 4000.0];
        assert_eq!(verdicts(&flat, PAPER_BLOCKS).iter().filter(|verdict| verdict.holds).count(), 0);
        let flat = [4000.0, 3900.0, 3000.0, 4000.0];
        assert_eq!(verdicts(&flat, PAPER_BLOCKS).iter().filter(|verdict| verdict.holds).count(), 0);
    }
}
