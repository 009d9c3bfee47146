//! Every figure at a tiny scale: whole, repeatable, and with verdicts that follow the data.
#![allow(clippy::unwrap_used)]

use openftl_papers::perform::run_all;
use openftl_papers::{
    Advance, Chart, Experiment, Figure, Keep, KeepNothing, Lab, Outcome, PaperError, Run, find, table,
};
use sim::RunResult;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A tiny scale; figures that shrink the device further begin with a larger one.
fn lab(figure: &Figure) -> Lab {
    let scale = if ["gecko/fig1", "gecko/fig11"].contains(&figure.name) { 1.0 / 2048.0 } else { 1.0 / 4096.0 };
    Lab { scale, jobs: 2, ..Lab::default() }
}

fn runs(figure: &Figure, lab: &Lab) -> Vec<Run> {
    let mut plan = (figure.plan)(lab).unwrap();
    for Experiment { spec, .. } in &mut plan {
        spec.writes = spec.writes.min(1 << 15);
    }
    let progress = |advance: Advance| assert!(advance.share <= 1.0 && advance.done <= advance.runs);
    run_all(plan, lab.jobs, &KeepNothing, &progress).unwrap()
}

fn conclude(figure: &Figure, lab: &Lab, runs: &[Run]) -> Outcome {
    figure.conclude(lab, runs, &|share| assert!((0.0..=1.0).contains(&share))).unwrap()
}

fn check(figure: &Figure, outcome: &Outcome) {
    let name = figure.name;
    assert!(!outcome.verdicts.is_empty(), "{name} has no verdict");
    assert!(!outcome.tables.is_empty() && !outcome.charts.is_empty(), "{name} shows nothing");
    for verdict in &outcome.verdicts {
        let texts = [&verdict.claim, &verdict.paper, &verdict.ours, &verdict.margin];
        assert!(texts.iter().all(|text| !text.is_empty()), "{name}: {verdict:?}");
        assert!(!verdict.margin.contains("nothing"), "{name}: {verdict:?}");
    }
    for table in &outcome.tables {
        assert!(!table.rows.is_empty(), "{name}: {} is empty", table.title);
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{name}: {}", table.title);
    }
    let files: Vec<String> = outcome.tables.iter().map(|table| table.name.clone()).collect();
    assert_eq!(files.iter().collect::<BTreeSet<_>>().len(), files.len(), "{name}: two tables in a file");
    for chart in &outcome.charts {
        match chart {
            Chart::Lines(lines) => {
                assert!(!lines.series.is_empty(), "{name}: {}", lines.title);
                for (x, y) in lines.series.iter().flat_map(|series| &series.points) {
                    assert!(x.is_finite() && y.is_finite() && *y >= 0.0, "{name}: {}", lines.title);
                }
            }
            Chart::Bars { bars, title, .. } => {
                let parts = || bars.iter().flat_map(|bar| &bar.parts);
                assert!(parts().any(|part| part.value > 0.0), "{name}: {title} is empty");
                assert!(parts().all(|part| part.value.is_finite() && part.value >= 0.0), "{name}: {title}");
            }
        }
    }
}

#[test]
fn no_plan_has_a_run_twice_and_text_tells_runs_apart() {
    for figure in table() {
        let plan = (figure.plan)(&lab(figure)).unwrap();
        // Runs of recorded traces have no text, and are done each time.
        let texts: Vec<String> = plan.iter().filter_map(|experiment| experiment.spec.text()).collect();
        assert_eq!(texts.iter().collect::<BTreeSet<_>>().len(), texts.len(), "{}", figure.name);
    }
}

/// Keeps in memory.
#[derive(Default)]
struct Memory(Mutex<BTreeMap<String, RunResult>>);

impl Keep for Memory {
    fn find(&self, settings: &str) -> Option<RunResult> {
        self.0.lock().unwrap().get(settings).cloned()
    }

    fn keep(&self, settings: &str, result: &RunResult) -> Result<(), PaperError> {
        if result.ftl == "uftl" {
            return Err(PaperError::Keep { reason: "no more".to_owned() });
        }
        self.0.lock().unwrap().insert(settings.to_owned(), result.clone());
        Ok(())
    }
}

#[test]
fn runs_that_are_kept_are_not_done() {
    let figure = find("gecko/fig13").unwrap();
    let lab = lab(figure);
    let plan = || {
        let mut plan = (figure.plan)(&lab).unwrap();
        plan.retain(|experiment| ["dftl", "gecko"].contains(&experiment.series.as_str()));
        plan
    };
    let memory = Memory::default();
    let first = run_all(plan(), 2, &memory, &|_| ()).unwrap();
    assert_eq!((first.iter().filter(|run| run.kept).count(), memory.0.lock().unwrap().len()), (0, 2));
    let told = Mutex::new(Vec::new());
    let second = run_all(plan(), 2, &memory, &|at| told.lock().unwrap().push(at)).unwrap();
    assert!(second.iter().all(|run| run.kept));
    // With the wall-clock times of the first.
    assert!(first.iter().zip(&second).all(|(first, second)| first.result == second.result));
    assert_eq!(*told.lock().unwrap(), [Advance { done: 2, runs: 2, share: 1.0 }]);
    memory.0.lock().unwrap().retain(|settings, _| !settings.contains("dftl"));
    let third = run_all(plan(), 2, &memory, &|_| ()).unwrap();
    let kept: Vec<(&str, bool)> = third.iter().map(|run| (run.experiment.series.as_str(), run.kept)).collect();
    assert_eq!(kept, [("dftl", false), ("gecko", true)]);
    assert!(first.iter().zip(&third).all(|(first, third)| first.result.digest() == third.result.digest()));
}

#[test]
fn a_result_that_cannot_be_kept_is_an_error_and_those_before_stay() {
    let figure = find("gecko/fig13").unwrap();
    let lab = lab(figure);
    let memory = Memory::default();
    let failed = run_all((figure.plan)(&lab).unwrap(), 1, &memory, &|_| ()).unwrap_err();
    assert_eq!(failed.to_string(), "the result of a run cannot be kept: no more");
    let kept: Vec<String> = memory.0.lock().unwrap().values().map(|result| result.ftl.clone()).collect();
    assert_eq!(kept, ["dftl", "lazy"]);
}

#[test]
fn names_say_paper_and_figure() {
    let names: Vec<&str> = table().map(|figure| figure.name).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    for name in names {
        let (paper, figure) = name.split_once('/').unwrap();
        assert!(["gecko", "janus", "asa", "lftl", "ftrm", "rows"].contains(&paper), "{name}");
        assert!(figure.starts_with("fig") || figure.starts_with("table") || name == "asa/placements", "{name}");
        assert_eq!(find(name).unwrap().name, name);
    }
    assert!(find("gecko/fig99").is_none());
}

#[test]
fn threads_change_nothing() {
    let figure = find("janus/fig9").unwrap();
    let alone = Lab { jobs: 1, ..lab(figure) };
    let together = conclude(figure, &lab(figure), &runs(figure, &lab(figure)));
    assert_eq!(conclude(figure, &alone, &runs(figure, &alone)), together);
}

/// What the verdicts say of the data.
fn said(outcome: &Outcome) -> Vec<&str> {
    outcome.verdicts.iter().map(|verdict| verdict.ours.as_str()).collect()
}

/// Which claims hold.
fn holds(outcome: &Outcome) -> Vec<bool> {
    outcome.verdicts.iter().map(|verdict| verdict.holds).collect()
}

/// Makes page validity of the runs that `which` picks cost `factor` times as much.
fn distort(runs: &[Run], factor: f64, which: impl Fn(&Run) -> bool) -> Vec<Run> {
    let mut runs = runs.to_vec();
    for run in runs.iter_mut().filter(|run| which(run)) {
        let parts = &mut run.result.write_amplification.by_purpose;
        for part in [&mut parts.validity, &mut parts.validity_query, &mut parts.validity_gc] {
            part.paper *= factor;
        }
        let query = &mut run.result.flash.validity_query;
        query.reads = (query.reads as f64 * factor) as u64;
        run.result.write_amplification.paper =
            run.result.write_amplification.by_purpose.iter().map(|(_, part)| part.paper).sum();
    }
    runs
}

/// For each figure, data that must change a verdict: how much more page validity costs in which
/// runs.
type Wrong = (&'static str, f64, fn(&Run) -> bool);

const WRONG: [Wrong; 6] = [
    ("gecko/fig9", 100.0, |run| run.experiment.series == "T = 2"),
    ("gecko/fig10", 100.0, |run| run.experiment.series == "B = 128"),
    ("gecko/fig11", 100.0, |run| run.experiment.series == "gecko"),
    ("gecko/fig12", 0.001, |run| run.experiment.x > 0.8),
    ("gecko/fig13", 1000.0, |run| run.experiment.series == "gecko"),
    ("gecko/fig14", 1000.0, |run| run.experiment.series.starts_with("Logarithmic")),
];

fn is_whole_and_its_verdicts_follow_the_data(figure: &Figure) {
    let lab = lab(figure);
    let runs = runs(figure, &lab);
    let right = conclude(figure, &lab, &runs);
    check(figure, &right);
    if let Some((name, factor, which)) = WRONG.iter().find(|(name, ..)| *name == figure.name) {
        let wrong = conclude(figure, &lab, &distort(&runs, *factor, which));
        assert_ne!(said(&right), said(&wrong), "{name}");
        // At this scale no claim of some figures holds, whatever else is wrong with the data.
        assert!(holds(&right) != holds(&wrong) || !holds(&right).contains(&true), "{name}");
    }
}

#[test]
fn every_figure_is_whole_and_its_verdicts_follow_the_data() {
    let (figures, next) = (table().collect::<Vec<_>>(), AtomicUsize::new(0));
    let in_turn = || {
        while let Some(figure) = figures.get(next.fetch_add(1, Ordering::Relaxed)) {
            is_whole_and_its_verdicts_follow_the_data(figure);
        }
    };
    // Much of a figure is done by one thread.
    thread::scope(|scope| {
        scope.spawn(in_turn);
        scope.spawn(in_turn);
    });
    assert!(next.into_inner() >= figures.len());
}
