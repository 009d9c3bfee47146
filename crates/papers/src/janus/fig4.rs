//! Figure 4 of Janus-FTL: the cost of a write against the size of the page-mapped area, from
//! equations 1 to 5.

use crate::figure::{Conclude, Figure, Run, no_runs};
use crate::lab::Lab;
use crate::outcome::{Chart, DataTable, Lines, Outcome, Series};
use crate::units::short;
use crate::verdict::Verdict;
use ftl::engine::hybrid::cost::{CostModel, Costs};

pub(super) const FIGURE: Figure = Figure {
    name: "janus/fig4",
    title: "average cost of a write against the number of fused blocks, from the cost model",
    source: "Kwon, Kim, Choi, Lee and Noh, EMSOFT 2010, section 4",
    uses_traces: false,
    plan: no_runs,
    conclude: Conclude::Runs(|_: &Lab, _: &[Run]| conclude()),
};

/// Blocks of the device, and those of them that are over-provisioned.
const BLOCKS: f64 = 1024.0;
const OVER_PROVISIONED: f64 = 20.0;

/// A hit rate against the number of fused blocks.
struct Locality {
    name: &'static str,
    hit_rate: fn(f64) -> f64,
}

/// The paper draws its example without its equation. This one soars and then rises slowly, as the
/// text says.
const STRONG: Locality =
    Locality { name: "strong locality", hit_rate: |fused| 0.998 * fused.powi(4) / (fused.powi(4) + 30.0_f64.powi(4)) };

const RANDOM: Locality = Locality { name: "random writes", hit_rate: |fused| fused / (BLOCKS - OVER_PROVISIONED) };

/// Fused blocks, the costs at that size, and the average cost of a write, microseconds.
type Size = (f64, Costs, f64);

/// Every size of the area.
fn curve(locality: &Locality) -> Vec<Size> {
    let model = CostModel::paper();
    (1..=(BLOCKS - OVER_PROVISIONED) as u32)
        .map(|fused| {
            let fused = f64::from(fused);
            let costs = model.costs(fused, OVER_PROVISIONED);
            (fused, costs, costs.average_write_us((locality.hit_rate)(fused)))
        })
        .collect()
}

fn conclude() -> Outcome {
    let curves = [STRONG, RANDOM].map(|locality| (curve(&locality), locality));
    let lines = |name: &str, title: &str, x: &str, y: &str, points: &dyn Fn(&Size) -> (f64, f64)| {
        let series = curves.iter().map(|(curve, locality)| Series {
            label: locality.name.to_owned(),
            points: curve.iter().map(points).collect(),
        });
        Chart::Lines(Lines {
            name: name.to_owned(),
            title: title.to_owned(),
            x: x.to_owned(),
            y: y.to_owned(),
            series: series.collect(),
            log_y: name != "hit-rate",
            ..Lines::default()
        })
    };
    let mut table = DataTable::new(
        "",
        "the model at every size of the page-mapped area",
        &["workload", "fused blocks", "u_d", "u", "C_GC, us", "C_PW, us", "C_Defusion, us", "average write, us"],
    );
    for (curve, locality) in &curves {
        for (fused, costs, average) in curve {
            let numbers = [
                *fused,
                costs.area_utilisation,
                costs.victim_utilisation,
                costs.collection_us,
                costs.page_write_us,
                costs.defusion_us,
                *average,
            ];
            table.row(std::iter::once(locality.name.into()).chain(numbers.map(Into::into)).collect());
        }
    }
    let hits = curves.iter().map(|(curve, locality)| Series {
        label: locality.name.to_owned(),
        points: curve.iter().map(|(fused, ..)| (*fused, (locality.hit_rate)(*fused))).collect(),
    });
    let hits = Chart::Lines(Lines {
        name: "hit-rate".to_owned(),
        title: "hit rate of the page-mapped area".to_owned(),
        x: "fused blocks".to_owned(),
        y: "hit rate".to_owned(),
        series: hits.collect(),
        ..Lines::default()
    });
    Outcome {
        setup: vec![
            "1024 blocks of 64 pages, 20 of them over-provisioned; erase 2 ms, copy 225 us, program 200 us".to_owned(),
            "hit rates are assumed, as in the paper, which draws its example without an equation: 0.998 N^4 / (N^4 + 30^4) \
             for N fused blocks, and N over all blocks for random writes"
                .to_owned(),
        ],
        verdicts: verdicts(&curves[0].0, &curves[1].0),
        charts: vec![
            lines("", "average cost of a write", "u_d, utilisation of the area", "microseconds", &|point| {
                (point.1.area_utilisation, point.2)
            }),
            lines("blocks", "average cost of a write", "fused blocks", "microseconds", &|point| (point.0, point.2)),
            hits,
        ],
        tables: vec![table],
        remarks: Vec::new(),
    }
}

/// Where a curve is least.
fn least(curve: &[Size]) -> (f64, f64) {
    let found = curve.iter().min_by(|a, b| a.2.total_cmp(&b.2));
    found.map_or((f64::NAN, f64::NAN), |(fused, _, average)| (*fused, *average))
}

fn verdicts(strong: &[Size], random: &[Size]) -> Vec<Verdict> {
    let (best, cost) = least(strong);
    let ends = strong.first().zip(strong.last()).map_or(f64::NAN, |(first, last)| first.2.min(last.2));
    let peak = strong.iter().filter(|point| point.0 < best).map(|point| point.2).fold(0.0, f64::max);
    let all = random.last().map_or(f64::NAN, |point| point.0);
    let mut interior = Verdict::below_by(
        "with strong locality the least cost lies between the block-mapping and the page-mapping extreme (by the cost model)",
        ("at the best size", cost),
        ("at the better extreme", ends),
        1.0,
    );
    "an optimum between the extremes".clone_into(&mut interior.paper);
    interior.ours = format!("{} us at {} fused blocks; {}", short(cost), short(best), interior.ours);
    vec![
        interior,
        Verdict::at_least(
            "there the cost first increases with the size, then plunges (by the cost model)",
            "rises before its minimum",
            peak / strong.first().map_or(f64::NAN, |point| point.2),
            1.0,
            " times the cost of the smallest area",
        ),
        Verdict::near(
            "with random writes the least cost lies at the page-mapping extreme (by the cost model)",
            "every block fused",
            least(random).0,
            all,
            0.1,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_follow_the_data() {
        let (strong, random) = (curve(&STRONG), curve(&RANDOM));
        assert!(verdicts(&strong, &random).iter().all(|verdict| verdict.holds));
        let falling: Vec<_> = strong.iter().map(|(fused, costs, _)| (*fused, *costs, 1000.0 / fused)).collect();
        let wrong = verdicts(&falling, &strong);
        assert!(!wrong[0].holds && !wrong[2].holds, "{wrong:?}");
    }
}
