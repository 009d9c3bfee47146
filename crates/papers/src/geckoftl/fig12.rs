//! Figure 12 of GeckoFTL: page validity against over-provisioning.

use super::common::{GECKO, PROFILE, gecko_run, model_of, query_reads, setup, validity, validity_ops};
use crate::figure::{Conclude, Experiment, Figure, Run};
use crate::lab::{Lab, Shape};
use crate::outcome::{Cell, Chart, DataTable, Lines, Outcome, Series};
use crate::series::line;
use crate::verdict::{Named, Verdict};
use sim::SimError;

pub(super) const FIGURE: Figure = Figure {
    name: "gecko/fig12",
    title: "page validity against over-provisioning: the share R of the flash that the host sees",
    source: "Dayan, Bonnet and Idreos, SIGMOD 2016, section 5.2",
    uses_traces: false,
    plan,
    conclude: Conclude::Runs(conclude),
};

const RATIOS: [f64; 6] = [0.5, 0.6, 0.7, 0.8, 0.85, 0.9];

fn plan(lab: &Lab) -> Result<Vec<Experiment>, SimError> {
    let mut plan = Vec::new();
    for ratio in RATIOS {
        let shape = Shape { logical_ratio: Some(ratio), ..Shape::share(lab.scale) };
        plan.push(gecko_run(lab, &lab.device(PROFILE, shape)?, GECKO, ratio, |_| {})?);
    }
    Ok(plan)
}

fn conclude(lab: &Lab, runs: &[Run]) -> Outcome {
    let mut table = DataTable::new(
        "",
        "page validity by share of the flash that the host sees",
        &[
            "R",
            "reads of queries per write",
            "other reads per write",
            "programs per write",
            "write-amplification by page validity",
            "formula (upper estimate)",
            "write-amplification in all",
        ],
    );
    for run in runs {
        let (reads, programs) = validity_ops(&run.result);
        let wa = &run.result.write_amplification;
        table.row(vec![
            Cell::from(run.experiment.x),
            query_reads(&run.result).into(),
            (reads - query_reads(&run.result)).into(),
            programs.into(),
            validity(&run.result).into(),
            model_of(&run.experiment.spec).gecko_write_amplification(wa.delta).into(),
            wa.paper.into(),
        ]);
    }
    let chart = |name: &str, title: &str, y: &str, series: Vec<Series>| {
        Chart::Lines(Lines {
            name: name.to_owned(),
            title: title.to_owned(),
            x: "R, logical over physical pages".to_owned(),
            y: y.to_owned(),
            series,
            ..Lines::default()
        })
    };
    let series =
        |label: &str, value: &dyn Fn(&Run) -> f64| Series { label: label.to_owned(), points: line(runs, GECKO, value) };
    let amplification = series("page validity", &|run| validity(&run.result));
    let ops = vec![
        series("reads of queries", &|run| query_reads(&run.result)),
        series("reads of merges", &|run| validity_ops(&run.result).0 - query_reads(&run.result)),
        series("programs", &|run| validity_ops(&run.result).1),
    ];
    Outcome {
        setup: setup(lab, runs),
        verdicts: verdicts(runs),
        charts: vec![
            chart("", "write-amplification by page validity", "write-amplification", vec![amplification]),
            chart("ops", "flash operations for page validity", "operations per host write", ops),
        ],
        tables: vec![table],
        remarks: vec!["the other figures are at R = 0.7".to_owned()],
    }
}

fn verdicts(runs: &[Run]) -> Vec<Verdict> {
    let points = line(runs, GECKO, |run| query_reads(&run.result));
    let names: Vec<String> = points.iter().map(|(ratio, _)| format!("R = {ratio}")).collect();
    let named: Vec<Named<'_>> = names.iter().map(String::as_str).zip(points.iter().map(|point| point.1)).collect();
    let amplification = line(runs, GECKO, |run| validity(&run.result));
    let formula = line(runs, GECKO, |run| {
        model_of(&run.experiment.spec).gecko_write_amplification(run.result.write_amplification.delta)
    });
    let rise = |points: &[(f64, f64)]| match (points.first(), points.last()) {
        (Some(first), Some(last)) => last.1 - first.1,
        _ => f64::NAN,
    };
    vec![
        Verdict::rising("queries read more as over-provisioning shrinks", "rising", &named),
        Verdict::at_most(
            "yet write-amplification rises little, for reads are an order of magnitude cheaper",
            "low; here: no more than by formula, an upper estimate",
            rise(&amplification),
            rise(&formula),
            "",
        ),
    ]
}
