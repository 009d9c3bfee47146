//! Finds the smallest workload that still fails.
//!
//! 1. Fewer steps after a recovery.
//! 2. No steps after the one that was cut.
//! 3. Halves, quarters, … and single steps are left out, as long as anything goes.
//! 4. Runs of pages become shorter.
//! 5. Where one device loses power again and again, fewer rounds are done.
//!
//! With other steps the operations have other numbers, so every attempt looks for a failing cut
//! again: with the same outcomes at every depth, at any operation. Any failure counts, not only the
//! one that was found first.

use crate::bench::Bench;
use crate::case::{Case, Scenario, Work};
use crate::explorer::{Ending, Explorer, Finding, Level};
use crate::other;
use crate::story::Event;
use crate::tap::Tap;
use crate::workload::Step;
use ftl::ftls::Entry;
use table::AnyBytes;

/// Cut points that may be tried in total.
const BUDGET: u64 = 400_000;

/// Runs a case as its path says.
pub(crate) fn replay(entry: &Entry<AnyBytes>, case: &Case) -> Result<(), Finding> {
    let levels = case.path.iter().map(|loss| Level::of(*loss, Tap::at(loss.cut))).collect();
    explore(entry, case, levels, u64::MAX).1
}

/// As [`replay`], and tells what happened.
pub(crate) fn trace(entry: &Entry<AnyBytes>, case: &Case) -> (Vec<Event>, Result<(), Finding>) {
    if !matches!(case.scenario, Scenario::Cuts) {
        let scenario = format!("{:?}", case.scenario);
        return (vec![Event::Scenario { scenario }], replay(entry, case));
    }
    let Some(bench) = Bench::new(entry, case) else { return (Vec::new(), Ok(())) };
    let levels = case.path.iter().map(|loss| Level::of(*loss, Tap::at(loss.cut))).collect();
    let mut quiet = || {};
    let mut explorer = Explorer::new(&bench, levels, u64::MAX, &mut quiet);
    explorer.story = Some(Vec::new());
    let outcome = match explorer.run() {
        Err(Ending::Found(finding)) => Err(finding),
        Ok(()) | Err(Ending::Enough | Ending::Refused) => Ok(()),
    };
    (explorer.story.unwrap_or_default(), outcome)
}

/// Explores a case at these levels; how many cut points that took, and what was found.
fn explore(entry: &Entry<AnyBytes>, case: &Case, levels: Vec<Level>, quota: u64) -> (u64, Result<(), Finding>) {
    if !matches!(case.scenario, Scenario::Cuts) {
        return (1, other::run(entry, case, &mut None).1.map_err(|what| Finding { path: Vec::new(), what }));
    }
    let Some(bench) = Bench::new(entry, case) else { return (0, Ok(())) };
    let mut quiet = || {};
    let mut explorer = Explorer::new(&bench, levels, quota, &mut quiet);
    match explorer.run() {
        Err(Ending::Found(finding)) => (explorer.stats.cut_points, Err(finding)),
        Ok(()) | Err(Ending::Enough | Ending::Refused) => (explorer.stats.cut_points, Ok(())),
    }
}

struct Shrinker<'a> {
    entry: &'a Entry<AnyBytes>,
    /// Fails, as `finding` says.
    case: Case,
    finding: Finding,
    left: u64,
}

/// The smallest case found that still fails, and how.
pub(crate) fn shrink(entry: &Entry<AnyBytes>, mut case: Case, finding: Finding) -> (Case, Finding) {
    case.path.clone_from(&finding.path);
    let mut shrinker = Shrinker { entry, case, finding, left: BUDGET };
    shrinker.tail();
    shrinker.prefix();
    shrinker.chunks();
    shrinker.counts();
    shrinker.tail();
    shrinker.rounds();
    (shrinker.case, shrinker.finding)
}

impl Shrinker<'_> {
    /// Takes a smaller case over if it fails too.
    fn attempt(&mut self, case: Case) -> bool {
        if self.left == 0 {
            return false;
        }
        let levels = case.path.iter().map(|loss| Level::of(*loss, Tap::anywhere(loss.cut.outcome)));
        let (tried, outcome) = explore(self.entry, &case, levels.collect(), self.left);
        self.left = self.left.saturating_sub(tried.max(1));
        let Err(finding) = outcome else { return false };
        self.case = Case { path: finding.path.clone(), ..case };
        self.finding = finding;
        true
    }

    fn with_steps(&mut self, steps: Vec<Step>) -> bool {
        self.attempt(Case { work: Work::Given(steps), ..self.case.clone() })
    }

    fn tail(&mut self) {
        let mut tail = 0;
        while tail < self.case.tail && !self.attempt(Case { tail, ..self.case.clone() }) {
            tail = 2 * tail + 1;
        }
    }

    /// The same rounds come first however many there are, so that the first one that fails can be
    /// searched for.
    fn rounds(&mut self) {
        let Scenario::Endurance { rounds } = self.case.scenario else { return };
        let (mut passes, mut fails) = (0, rounds);
        while fails - passes > 1 {
            let rounds = u32::midpoint(passes, fails);
            if self.attempt(Case { scenario: Scenario::Endurance { rounds }, ..self.case.clone() }) {
                fails = rounds;
            } else {
                passes = rounds;
            }
        }
    }

    fn prefix(&mut self) {
        let steps = self.case.steps();
        let mut length = 1;
        while length < steps.len() && !self.with_steps(steps[..length].to_vec()) {
            length *= 2;
        }
    }

    fn chunks(&mut self) {
        let mut size = self.case.steps().len() / 2;
        while size > 0 {
            let mut at = 0;
            while at < self.case.steps().len() {
                let mut steps = self.case.steps();
                steps.drain(at..(at + size).min(steps.len()));
                if !self.with_steps(steps) {
                    at += size;
                }
            }
            size /= 2;
        }
    }

    fn counts(&mut self) {
        for at in 0..self.case.steps().len() {
            loop {
                let mut steps = self.case.steps();
                let Some(Step::Write { count, .. } | Step::Trim { count, .. }) = steps.get_mut(at) else { break };
                *count /= 2;
                if *count == 0 || !self.with_steps(steps) {
                    break;
                }
            }
        }
    }
}
