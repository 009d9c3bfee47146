//! Runs by the series that they belong to.

use crate::figure::Run;

/// Runs of a series by rising x, with a value of each.
pub fn line(runs: &[Run], series: &str, value: impl Fn(&Run) -> f64) -> Vec<(f64, f64)> {
    let of = runs.iter().filter(|run| run.experiment.series == series);
    let mut points: Vec<(f64, f64)> = of.map(|run| (run.experiment.x, value(run))).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// The names of all series, in the order of the plan.
pub fn series_of(runs: &[Run]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for run in runs {
        if !names.contains(&run.experiment.series) {
            names.push(run.experiment.series.clone());
        }
    }
    names
}
