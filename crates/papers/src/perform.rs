//! Doing the runs of a figure.

use crate::error::PaperError;
use crate::figure::{Experiment, Figure, Run};
use crate::keep::Keep;
use crate::lab::Lab;
use crate::outcome::Outcome;
use sim::{First, Phase, PreconditionMode, Progress, RunResult, RunSpec};
use std::sync::Mutex;
use std::thread;

/// Bytes of memory that a run takes for each physical page, on the safe side.
const MEMORY_A_PAGE: u64 = 28;

/// Runs at once may take so much memory together; one alone is never refused here.
const MEMORY_AT_ONCE: u64 = 12 << 30;

/// How far the runs of a figure have come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Advance {
    /// Runs done, or found kept.
    pub done: usize,
    /// Runs in all.
    pub runs: usize,
    /// Share of all pages to be written that has been, roughly, from 0 to 1; runs found kept count
    /// as written.
    pub share: f64,
}

/// A figure that was made.
#[derive(Clone, Debug)]
pub struct Performed {
    /// What came out.
    pub outcome: Outcome,
    /// Runs that it took.
    pub runs: usize,
    /// How many of them were found kept.
    pub kept: usize,
}

/// Makes a figure from its plan. Runs that `keep` has are not done; those that are, it is given as
/// soon as each ends. `progress` is told now and then; it may be called from other threads.
///
/// # Errors
/// As [`run_all`] and [`Figure::conclude`].
pub fn perform(
    figure: &Figure,
    lab: &Lab,
    plan: Vec<Experiment>,
    keep: &dyn Keep,
    progress: &(dyn Fn(Advance) + Sync),
) -> Result<Performed, PaperError> {
    let runs = run_all(plan, lab.jobs, keep, progress)?;
    let kept = runs.iter().filter(|run| run.kept).count();
    let measuring = |share: f64| progress(Advance { done: runs.len(), runs: runs.len(), share });
    let outcome = figure.conclude(lab, &runs, &measuring)?;
    Ok(Performed { outcome, runs: runs.len(), kept })
}

/// Memory that the largest of these runs takes, bytes, roughly.
#[must_use]
pub fn memory_needed(plan: &[Experiment]) -> u64 {
    plan.iter().map(memory).max().unwrap_or(0)
}

fn memory(experiment: &Experiment) -> u64 {
    u64::from(experiment.spec.device.geometry.pages()) * MEMORY_A_PAGE
}

/// Pages that a run will write, roughly: ageing stops when it is steady, which takes about this
/// long. Last, the reading of every page in the time of how many writes.
fn expected(spec: &RunSpec) -> [f64; 4] {
    let logical = f64::from(spec.device.logical_pages);
    let (fill, age) = match &spec.precondition {
        PreconditionMode::Off => (0.0, 0.0),
        PreconditionMode::Fill(share) => (share * logical, 0.0),
        PreconditionMode::Steady(options) => {
            let first = match options.first {
                First::Fill(share) => share * logical,
                First::Aged => f64::from(spec.device.geometry.pages()),
            };
            (first, f64::from(options.agree + 1) * options.window * logical)
        }
    };
    let read = if spec.verify { READS_A_WRITE.recip() * logical } else { 0.0 };
    [fill, age, spec.writes.max(1) as f64, read]
}

/// Pages that are read in order in the time of a write.
const READS_A_WRITE: f64 = 10.0;

/// Progress within a run, in pages of [`expected`].
fn reached(at: &Progress, expected: &[f64; 4]) -> f64 {
    let done = at.done as f64;
    match at.phase {
        Phase::Fill => done.min(expected[0]),
        Phase::Precondition => expected[0] + done.min(expected[1]),
        Phase::Measure => expected[0] + expected[1] + done.min(expected[2]),
        Phase::Verify => expected[..3].iter().sum::<f64>() + (done / READS_A_WRITE).min(expected[3]),
    }
}

/// What the workers share.
struct Shared {
    /// How many of the runs to be done were begun.
    begun: usize,
    done: usize,
    /// Pages written in each run of the plan.
    pages: Vec<f64>,
    results: Vec<Option<Result<RunResult, PaperError>>>,
    failed: bool,
}

/// Does the runs of a plan that are not kept, in its order as far as results go.
///
/// # Errors
/// [`PaperError`] of the first run that fails or cannot be kept, in the order of the plan.
pub fn run_all(
    plan: Vec<Experiment>,
    jobs: usize,
    keep: &dyn Keep,
    progress: &(dyn Fn(Advance) + Sync),
) -> Result<Vec<Run>, PaperError> {
    let texts: Vec<Option<String>> = plan.iter().map(|e| e.spec.text()).collect();
    let found: Vec<Option<RunResult>> = texts.iter().map(|text| keep.find(text.as_deref()?)).collect();
    let kept: Vec<bool> = found.iter().map(Option::is_some).collect();
    let todo: Vec<usize> = (0..plan.len()).filter(|&at| !kept[at]).collect();
    let expected: Vec<[f64; 4]> = plan.iter().map(|e| expected(&e.spec)).collect();
    let whole = |at: usize| expected[at].iter().sum::<f64>();
    let total: f64 = (0..plan.len()).map(whole).sum::<f64>().max(1.0);
    let largest = todo.iter().map(|&at| memory(&plan[at])).max().unwrap_or(0);
    let jobs = jobs.min((MEMORY_AT_ONCE / largest.max(1)) as usize).clamp(1, todo.len().max(1));
    let shared = Mutex::new(Shared {
        begun: 0,
        done: plan.len() - todo.len(),
        pages: (0..plan.len()).map(|at| if kept[at] { whole(at) } else { 0.0 }).collect(),
        results: found.into_iter().map(|result| result.map(Ok)).collect(),
        failed: false,
    });
    // A thread that panicked leaves the lock usable: every change under it is whole.
    let lock = || shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let tell = |shared: &Shared| {
        let share = (shared.pages.iter().sum::<f64>() / total).min(1.0);
        progress(Advance { done: shared.done, runs: plan.len(), share });
    };
    let work = || loop {
        let at = {
            let mut shared = lock();
            if shared.failed || shared.begun == todo.len() {
                return;
            }
            shared.begun += 1;
            todo[shared.begun - 1]
        };
        let mut report = |now: Progress| {
            let mut shared = lock();
            shared.pages[at] = reached(&now, &expected[at]);
            tell(&shared);
        };
        let result = do_and_keep(&plan[at].spec, texts[at].as_deref(), keep, &mut report);
        let mut shared = lock();
        shared.failed |= result.is_err();
        shared.results[at] = Some(result);
        shared.done += 1;
        shared.pages[at] = whole(at);
        tell(&shared);
    };
    tell(&lock());
    thread::scope(|scope| {
        for _ in 1..jobs {
            scope.spawn(work);
        }
        work();
    });
    let results = std::mem::take(&mut lock().results);
    in_order(plan, results, &kept)
}

fn do_and_keep(
    spec: &RunSpec,
    text: Option<&str>,
    keep: &dyn Keep,
    report: &mut dyn FnMut(Progress),
) -> Result<RunResult, PaperError> {
    let result = sim::run(spec, report)?;
    if let Some(text) = text {
        keep.keep(text, &result)?;
    }
    Ok(result)
}

fn in_order(
    plan: Vec<Experiment>,
    results: Vec<Option<Result<RunResult, PaperError>>>,
    kept: &[bool],
) -> Result<Vec<Run>, PaperError> {
    // What was not begun once a run had failed is left out; the failure is returned for all.
    plan.into_iter()
        .zip(results)
        .zip(kept)
        .filter_map(|((experiment, result), &kept)| {
            result.map(|result| result.map(|result| Run { experiment, result, kept }))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::Shape;

    #[test]
    fn a_large_device_is_run_for_fewer_of_its_pages() {
        let run = |scale| {
            let lab = Lab { scale, ..Lab::default() };
            let device = lab.device("gecko-2tb", Shape::share(scale)).unwrap();
            let spec = lab.uniform("gecko", &device).unwrap();
            let pages = f64::from(spec.device.logical_pages);
            (expected(&spec).map(|part| (part / pages * 100.0).round()), spec.precondition)
        };
        let (usual, mode) = run(1.0 / 256.0);
        assert_eq!((usual, mode), ([100.0, 200.0, 50.0, 10.0], PreconditionMode::default()));
        let (full, mode) = run(1.0);
        assert_eq!(full, [143.0, 15.0, 10.0, 10.0]);
        assert!(matches!(mode, PreconditionMode::Steady(options) if options.tolerance == 0.01 && options.agree == 2));
    }
}
