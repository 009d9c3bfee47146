//! Figure 5 of Janus-FTL: utilisation of the collected block, measured and by equation 5.

use super::loads::{Kind, Load, Locality};
use crate::figure::{Conclude, Experiment, Figure, Run};
use crate::lab::Lab;
use crate::outcome::{Cell, Chart, DataTable, Lines, Outcome, Series};
use crate::verdict::Verdict;
use ftl::engine::hybrid::cost::victim_utilisation;
use sim::SimError;

pub(super) const FIGURE: Figure = Figure {
    name: "janus/fig5",
    title: "utilisation of the collected block against that of the page-mapped area, measured and estimated",
    source: "Kwon, Kim, Choi, Lee and Noh, EMSOFT 2010, section 4, equation 5",
    uses_traces: true,
    plan,
    conclude: Conclude::Runs(conclude),
};

/// u_d, percent.
const UTILISATIONS: [u32; 9] = [40, 50, 60, 70, 75, 80, 85, 90, 95];

/// Share of the blocks that is over-provisioned.
const OVER_PROVISIONED: f64 = 0.03;

/// Equation and measurement are taken to match if they are this near on average.
const MATCH: f64 = 0.1;

/// A sequential stream never makes the area collect a block.
fn loads(lab: &Lab) -> Result<Vec<Load>, SimError> {
    let mut loads = Load::find(lab, Kind::Oltp)?;
    loads.retain(|load| load.locality() != Locality::Streams);
    Ok(loads)
}

fn plan(lab: &Lab) -> Result<Vec<Experiment>, SimError> {
    let mut plan = Vec::new();
    for load in loads(lab)? {
        for percent in UTILISATIONS {
            let mut spec = load.run(lab, "janus-fixed", OVER_PROVISIONED)?;
            spec.config.janus.utilisation_percent = percent;
            plan.push(Experiment { series: load.name(), x: f64::from(percent), spec });
        }
    }
    Ok(plan)
}

/// What was measured at one setting.
#[derive(Clone, Copy, Debug)]
struct Point {
    /// u_d that was asked for.
    wanted: f64,
    /// Fused blocks over those and the over-provisioned ones, on average.
    area: f64,
    /// Live share of the blocks that were collected.
    victim: f64,
    collections: f64,
}

/// Averages over the second half of the run.
fn measured(run: &Run) -> Option<Point> {
    let g = &run.result.geometry;
    let over = f64::from(g.blocks) - f64::from(g.logical_pages.div_ceil(g.pages_per_block));
    let half = &run.result.timeline[run.result.timeline.len() / 2..];
    let (first, last) = (half.first()?, half.last()?);
    let rise = |name: &str| Some(last.gauges.get(name)?.checked_sub(*first.gauges.get(name)?)? as f64);
    let collections = rise("paged_area_collections").filter(|n| *n > 0.0)?;
    let live = rise("paged_area_collected_live_pages")?;
    let fused: f64 = half.iter().filter_map(|point| point.gauges.get("fused_blocks")).map(|n| *n as f64).sum();
    let fused = fused / half.len() as f64;
    Some(Point {
        wanted: run.experiment.x / 100.0,
        area: fused / (over + fused),
        victim: live / (collections * f64::from(g.pages_per_block)),
        collections,
    })
}

fn conclude(lab: &Lab, runs: &[Run]) -> Outcome {
    let (loads, mut setup) = match loads(lab) {
        Ok(loads) => (loads, Vec::new()),
        Err(error) => (Vec::new(), vec![error.to_string()]),
    };
    setup.extend(loads.iter().map(Load::describe));
    setup.push(
        "Janus-FTL at a fixed size of its page-mapped area, 3% of the blocks over-provisioned, maps in non-volatile \
         memory, device filled in order; averages over the second half of the writes"
            .to_owned(),
    );
    let mut table = DataTable::new(
        "",
        "utilisation of area and victim",
        &["workload", "u_d wanted", "u_d measured", "u measured", "u by equation 5", "blocks collected"],
    );
    let curve = (1..100).map(|percent| f64::from(percent) / 100.0).map(|area| (area, victim_utilisation(area)));
    let mut series = vec![Series { label: "by equation 5".to_owned(), points: curve.collect() }];
    let mut verdicts = Vec::new();
    for load in &loads {
        let name = load.name();
        let of_load = runs.iter().filter(|run| run.experiment.series == name);
        let points: Vec<Point> = of_load.filter_map(measured).collect();
        for point in &points {
            let numbers = [point.wanted, point.area, point.victim, victim_utilisation(point.area), point.collections];
            let mut row = vec![Cell::from(name.as_str())];
            row.extend(numbers.map(Cell::from));
            table.row(row);
        }
        let mut by_area: Vec<(f64, f64)> = points.iter().map(|point| (point.area, point.victim)).collect();
        by_area.sort_by(|a, b| a.0.total_cmp(&b.0));
        series.push(Series { label: format!("measured, {name}"), points: by_area });
        verdicts.push(verdict(load.in_words(), &points));
    }
    Outcome {
        setup,
        verdicts,
        charts: vec![Chart::Lines(Lines {
            title: "utilisation of the collected block".to_owned(),
            x: "u_d, utilisation of the page-mapped area".to_owned(),
            y: "u, utilisation of the collected block".to_owned(),
            series,
            ..Lines::default()
        })],
        tables: vec![table],
        remarks: vec!["settings at which the area never collected a block have no point".to_owned()],
    }
}

fn verdict(workload: &str, points: &[Point]) -> Verdict {
    let off = |point: &Point| (point.victim - victim_utilisation(point.area)).abs();
    let mean = points.iter().map(off).sum::<f64>() / points.len() as f64;
    let excess = points.iter().map(|point| point.victim - victim_utilisation(point.area)).sum::<f64>();
    let why = if excess < 0.0 {
        "victims are emptier than the equation says: it holds for uniform writes collected in the order of filling, while \
         skewed writes leave blocks of dead pages and the emptiest is taken"
    } else {
        "victims are fuller than the equation says: data blocks join the area with what lives in them, cold pages among it"
    };
    let claim = format!("{workload}: the estimate matches the measurement");
    Verdict::at_most(&claim, "matches well", mean, MATCH, " apart on average").unless_holds(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_follow_the_data() {
        let point = |area: f64, shift: f64| Point {
            wanted: area,
            area,
            victim: victim_utilisation(area) + shift,
            collections: 1.0,
        };
        let shifted = |shift| [0.5, 0.75, 0.9].map(|area| point(area, shift));
        let of = |shift| verdict("w", &shifted(shift));
        assert!(of(0.05).holds);
        assert!(!of(0.2).holds && !of(-0.2).holds);
        assert_ne!(of(0.2).why, of(-0.2).why);
        assert!(!verdict("w", &[]).holds);
    }
}
