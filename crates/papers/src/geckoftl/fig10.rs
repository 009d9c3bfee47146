//! Figure 10 of GeckoFTL: entry-partitioning against the number of pages in a block.

use super::common::{PROFILE, gecko_run, model_of, query_reads, setup, validity, validity_ops};
use super::model::Device;
use crate::figure::{Conclude, Experiment, Figure, Run};
use crate::lab::{Lab, Shape};
use crate::outcome::{Cell, Chart, DataTable, Lines, Outcome, Series};
use crate::series::line;
use crate::units::short;
use crate::verdict::Verdict;
use sim::SimError;

pub(super) const FIGURE: Figure = Figure {
    name: "gecko/fig10",
    title: "entry-partitioning factor S against block size B",
    source: "Dayan, Bonnet and Idreos, SIGMOD 2016, sections 3.3 and 5.2",
    uses_traces: false,
    plan,
    conclude: Conclude::Runs(conclude),
};

const BLOCK_PAGES: [u32; 4] = [128, 256, 512, 1024];
const PARTITIONS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Write-amplification is taken to be the same at all block sizes if the largest is no more than
/// this above the least.
const FLAT_PERCENT: f64 = 25.0;

fn plan(lab: &Lab) -> Result<Vec<Experiment>, SimError> {
    let mut plan = Vec::new();
    for pages in BLOCK_PAGES {
        let shape = Shape { pages_per_block: Some(pages), ..Shape::share(lab.scale) };
        let device = lab.device(PROFILE, shape)?;
        for partitions in PARTITIONS {
            plan.push(gecko_run(lab, &device, &label(pages), f64::from(partitions), |spec| {
                spec.config.gecko.partitions = Some(partitions);
            })?);
        }
    }
    Ok(plan)
}

fn label(pages: u32) -> String {
    format!("B = {pages}")
}

/// S = B / key bits.
fn best(pages: u32) -> f64 {
    Device::best_partitions(u64::from(pages)) as f64
}

fn conclude(lab: &Lab, runs: &[Run]) -> Outcome {
    let mut table = DataTable::new(
        "",
        "page validity by block size and partitioning",
        &["B, pages", "S", "reads per write", "programs per write", "write-amplification", "formula (upper estimate)"],
    );
    for run in runs {
        let (reads, programs) = validity_ops(&run.result);
        table.row(vec![
            Cell::from(f64::from(run.result.geometry.pages_per_block)),
            run.experiment.x.into(),
            reads.into(),
            programs.into(),
            validity(&run.result).into(),
            model_of(&run.experiment.spec).gecko_write_amplification(run.result.write_amplification.delta).into(),
        ]);
    }
    let series = BLOCK_PAGES
        .iter()
        .map(|&pages| Series { label: label(pages), points: line(runs, &label(pages), |run| validity(&run.result)) });
    Outcome {
        setup: setup(lab, runs),
        verdicts: verdicts(runs),
        charts: vec![Chart::Lines(Lines {
            title: "write-amplification by page validity".to_owned(),
            x: "partitioning factor S".to_owned(),
            y: "write-amplification".to_owned(),
            log_x: true,
            series: series.collect(),
            ..Lines::default()
        })],
        tables: vec![table],
        remarks: Vec::new(),
    }
}

/// Write-amplification at each partitioning of one block size.
struct AtBlockSize {
    pages: u32,
    points: Vec<(f64, f64)>,
    /// The same without queries.
    merges: Vec<(f64, f64)>,
    /// What the formula gives.
    formula: Vec<(f64, f64)>,
}

impl AtBlockSize {
    fn of(runs: &[Run], pages: u32) -> Self {
        let series = label(pages);
        let delta = |run: &Run| run.result.write_amplification.delta;
        Self {
            pages,
            points: line(runs, &series, |run| validity(&run.result)),
            merges: line(runs, &series, |run| validity(&run.result) - query_reads(&run.result) / delta(run)),
            formula: line(runs, &series, |run| model_of(&run.experiment.spec).gecko_write_amplification(delta(run))),
        }
    }

    fn at_best(&self, points: &[(f64, f64)]) -> f64 {
        points.iter().find(|point| point.0 == best(self.pages)).map_or(f64::NAN, |point| point.1)
    }
}

/// The S of the least value.
fn least(points: &[(f64, f64)]) -> (f64, f64) {
    points.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((f64::NAN, f64::NAN))
}

/// How far the largest is above the least, in percent.
fn spread(values: impl Iterator<Item = f64>) -> f64 {
    let (low, high) = values.fold((f64::MAX, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
    if low < f64::MAX { (high / low - 1.0) * 100.0 } else { f64::NAN }
}

/// By how much growth in proportion may be off.
const GROWTH_PERCENT: f64 = 20.0;

fn verdicts(runs: &[Run]) -> Vec<Verdict> {
    let sizes: Vec<AtBlockSize> = BLOCK_PAGES.iter().map(|&pages| AtBlockSize::of(runs, pages)).collect();
    let said = |pick: &dyn Fn(&AtBlockSize) -> (f64, f64)| {
        let each = sizes.iter().map(|size| format!("S = {} at B = {}", short(pick(size).0), size.pages));
        format!("least at {}", each.collect::<Vec<_>>().join(", "))
    };
    let excess = sizes.iter().map(|size| (size.at_best(&size.points) / least(&size.points).1 - 1.0) * 100.0);
    let excess = excess.fold(0.0, f64::max);
    let mut best = Verdict::at_most(
        "S = B / 32 has the least write-amplification at every block size",
        "S = 4, 8, 16, 32 for B = 128, 256, 512, 1024",
        excess,
        0.0,
        "% above the least",
    )
    .with_formula(said(&|size| least(&size.formula)))
    .unless_holds(
        "the rule balances keys and bitmaps in flash. Smaller parts let more updates into the buffer and cost at most \
         a level; Table 1's terms have their minimum at larger S too",
    );
    best.ours = format!("{}; {}", best.ours, said(&|size| least(&size.points)));
    let merges = spread(sizes.iter().map(|size| size.at_best(&size.merges)));
    let flat = Verdict::at_most(
        "with S = B / 32 write-amplification does not depend on the block size",
        "flat from 128 to 1024 pages",
        spread(sizes.iter().map(|size| size.at_best(&size.points))),
        FLAT_PERCENT,
        "% between the least and the largest",
    )
    .unless_holds(&format!(
        "larger blocks are collected less often, so that fewer queries are asked; without queries the least and the \
         largest are {merges:.1}% apart"
    ));
    let whole: Vec<f64> =
        sizes.iter().filter_map(|size| size.points.iter().find(|p| p.0 == 1.0)).map(|p| p.1).collect();
    let growth = whole.last().copied().unwrap_or(f64::NAN) / whole.first().copied().unwrap_or(f64::NAN);
    let grows = Verdict::near(
        "without partitioning it grows in proportion to the block size",
        "8 times from 128 to 1024 pages",
        growth,
        8.0,
        GROWTH_PERCENT,
    )
    .unless_holds(
        "an entry's bitmap grows in proportion, its key does not, and larger blocks are collected less often, so that fewer \
         queries are asked",
    );
    vec![best, flat, grows]
}
