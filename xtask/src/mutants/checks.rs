//! What decides over a mutant: the explorer over each FTL and the tests of the mutated crate, then
//! those of the explorer. The quickest come first, and those that killed other mutants of the same
//! file. The unmutated run says how long each takes and which mutants it reaches.

use super::build::Binary;
use super::process::{self, End, Run};
use super::tree::Copy;
use anyhow::{Context, Result, bail};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A run may take this many times as long as unmutated.
const PATIENCE: u32 = 4;
/// And this much more: a run that is over in no time cannot be measured.
const GRACE: Duration = Duration::from_secs(3);
/// The end of the name of a program of tests that are no unit tests.
const INTEGRATION: &str = " all";
/// A test that takes longer runs alone.
const SLOW: Duration = Duration::from_millis(500);
/// An exploration that takes longer unmutated hangs.
const UNMUTATED: Duration = Duration::from_secs(1200);
/// A test that takes longer unmutated is left out: a mutant that survives costs the time of all.
const SLOWEST: Duration = Duration::from_secs(60);
/// The time that is noted of it.
const LEFT_OUT: Duration = Duration::from_secs(u32::MAX as u64);
/// The tests of `inject/explorer.rs`, each run over each FTL.
const EXPLORER: [&str; 4] = ["behaviour", "replays", "worn", "fading"];
/// Tests of the explorer's own that explore or replay: the others do that over each FTL.
const COVERED: [&str; 4] = ["behaviour::", "regressions::", "table::", "canary::"];
/// Tests that count allocations: the switch reads the environment where a mutant is first reached,
/// which allocates.
const COUNTING: &str = "no_alloc::";

/// The variable that names the file of reached mutants.
const NOTES: &str = "OPENFTL_MUTANT_REACHED";

/// A test.
#[derive(Clone, Debug)]
pub struct Test {
    /// Its name in its program.
    name: String,
    /// How long it takes unmutated.
    time: Duration,
    /// The mutants that it reaches.
    reached: HashSet<u32>,
}

/// Tests that are run together.
#[derive(Clone, Debug)]
pub struct Check {
    binary: Binary,
    folder: PathBuf,
    /// The FTL that is explored.
    ftl: Option<String>,
    tests: Vec<Test>,
}

/// What the explorer is told.
#[derive(Clone, Copy, Debug)]
pub struct Exploration {
    /// Leave out the tests that are no unit tests: most of them are slow.
    pub quick: bool,
    /// Cut points for each FTL.
    pub cuts: u64,
    /// Its seed.
    pub seed: u64,
}

/// What came of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Something went red, or took for ever.
    Killed {
        /// Which check.
        by: String,
        /// Whether it ran out of time.
        late: bool,
    },
    /// Everything that reaches it stayed green.
    Survived,
    /// Nothing reaches it.
    Unreached,
}

/// A check that killed no mutant of a file yet is taken to have killed this many.
const HOPE: f64 = 0.2;

/// Every check.
pub struct Checks {
    checks: Vec<Check>,
    /// How many mutants of a file each check killed.
    kills: Mutex<HashMap<String, Vec<u32>>>,
    left_out: Vec<String>,
    exploration: Exploration,
}

impl Checks {
    /// Runs everything unmutated.
    ///
    /// # Errors
    /// If a test is red without a mutant.
    pub fn unmutated(copy: &Copy, binaries: &[Binary], exploration: Exploration, jobs: usize) -> Result<Self> {
        let mut checks = Self { checks: Vec::new(), kills: Mutex::default(), left_out: Vec::new(), exploration };
        let slow = |binary: &&Binary| exploration.quick && binary.name.ends_with(INTEGRATION);
        for binary in binaries.iter().filter(|binary| !slow(binary)) {
            let (package, name) = binary.name.split_once(' ').unwrap_or_default();
            let folder = copy.tree.join("crates").join(package);
            let test = |name: String| Test { name, time: UNMUTATED, reached: HashSet::new() };
            let mut push = |ftl, tests| {
                checks.checks.push(Check { binary: binary.clone(), folder: folder.clone(), ftl, tests });
            };
            if name == "mutant_explorer" {
                for ftl in process::ftls(&binary.executable)? {
                    EXPLORER.iter().for_each(|name| push(Some(ftl.clone()), vec![test((*name).to_owned())]));
                }
            } else {
                let names = process::list(&binary.executable)?.into_iter();
                let names = names.filter(|name| !COVERED.iter().any(|module| name.starts_with(module)));
                let names = names.filter(|name| !name.starts_with(COUNTING));
                push(None, names.map(test).collect());
            }
        }
        checks.measure(&copy.target, jobs)?;
        for check in &mut checks.checks {
            let left_out = check.tests.extract_if(.., |test| test.time >= LEFT_OUT);
            checks.left_out.extend(left_out.map(|test| format!("{} {}", check.binary.name, test.name)));
        }
        checks.checks = checks.checks.into_iter().flat_map(Check::split).collect();
        checks.checks.sort_by_key(Check::turn);
        Ok(checks)
    }

    /// Runs each test alone.
    fn measure(&mut self, notes: &Path, jobs: usize) -> Result<()> {
        let tests: Vec<(usize, usize)> = (0..self.checks.len())
            .flat_map(|check| (0..self.checks[check].tests.len()).map(move |test| (check, test)))
            .collect();
        let measured = in_parallel(jobs, &tests, |&(check, test)| {
            let check = &self.checks[check];
            let path = notes.join(format!("reached-{}-{}", check.name().replace(['/', ' '], "-"), test));
            if let Some(known) = self.known(&path, &check.binary.executable) {
                return Ok(known);
            }
            // It is not there if it was never made.
            let _ = fs::remove_file(&path);
            let note = (NOTES, path.to_string_lossy().into_owned());
            let limit = if check.ftl.is_some() { UNMUTATED } else { SLOWEST };
            let (end, mut time) = self.run(check, &[&check.tests[test]], note, limit)?;
            if (end, check.ftl.is_none()) == (End::TimedOut, true) {
                time = LEFT_OUT;
            } else if end != End::Passed {
                bail!("{}: put it right first", self.red(check, &check.tests[test].name));
            }
            let text = fs::read_to_string(&path).unwrap_or_default();
            // What is not kept is measured again.
            let _ = fs::write(&path, format!("{text}{}{}\n", self.passed(), time.as_micros()));
            Ok((time, reached(&text)))
        })?;
        for ((check, test), (time, reached)) in tests.into_iter().zip(measured) {
            let test = &mut self.checks[check].tests[test];
            (test.time, test.reached) = (time, reached);
        }
        Ok(())
    }

    /// What is noted of a test that passed, before its time.
    fn passed(&self) -> String {
        let Exploration { cuts, seed, .. } = self.exploration;
        format!("passed {cuts} {seed} ")
    }

    /// What an earlier run of the same program noted of a test.
    fn known(&self, note: &Path, executable: &Path) -> Option<(Duration, HashSet<u32>)> {
        let modified = |path| fs::metadata(path).and_then(|data| data.modified()).ok();
        if modified(note)? <= modified(executable)? {
            return None;
        }
        let text = fs::read_to_string(note).ok()?;
        let micros = text.lines().last()?.strip_prefix(&self.passed())?.parse().ok()?;
        Some((Duration::from_micros(micros), reached(&text)))
    }

    /// That a test is red without a mutant, and how to see it.
    fn red(&self, check: &Check, test: &str) -> String {
        let Exploration { cuts, seed, .. } = self.exploration;
        let program = check.binary.executable.display();
        let explorer = match &check.ftl {
            Some(ftl) => {
                format!("OPENFTL_EXPLORER_FTL={ftl} OPENFTL_EXPLORER_CUTS={cuts} OPENFTL_EXPLORER_SEED={seed} ")
            }
            None => String::new(),
        };
        format!("{}: red in the copy without a mutant; see `{explorer}{program} --exact {test}`", check.name())
    }

    fn run(
        &self,
        check: &Check,
        tests: &[&Test],
        (variable, value): (&str, String),
        limit: Duration,
    ) -> Result<(End, Duration)> {
        let names: Vec<&str> = tests.iter().map(|test| &*test.name).collect();
        let mut environment = vec![(variable, value)];
        if let Some(ftl) = &check.ftl {
            environment.push(("OPENFTL_EXPLORER_FTL", ftl.clone()));
            environment.push(("OPENFTL_EXPLORER_CUTS", self.exploration.cuts.to_string()));
            environment.push(("OPENFTL_EXPLORER_SEED", self.exploration.seed.to_string()));
        }
        let run = Run {
            executable: &check.binary.executable,
            folder: &check.folder,
            tests: &names,
            environment: &environment,
            limit,
            measured: variable == NOTES,
        };
        run.run()
    }

    /// Runs everything that reaches a mutant of a file until something is red.
    ///
    /// # Errors
    /// If a program cannot be started.
    pub fn judge(&self, mutant: u32, file: &str) -> Result<Verdict> {
        let mut verdict = Verdict::Unreached;
        for at in self.order(file) {
            let check = &self.checks[at];
            let tests: Vec<&Test> = check.tests.iter().filter(|test| test.reached.contains(&mutant)).collect();
            if tests.is_empty() {
                continue;
            }
            let limit = tests.iter().map(|test| test.time).sum::<Duration>() * PATIENCE + GRACE;
            let (end, _) = self.run(check, &tests, ("OPENFTL_MUTANT", mutant.to_string()), limit)?;
            if end != End::Passed {
                self.killed(file, at);
                return Ok(Verdict::Killed { by: check.name(), late: end == End::TimedOut });
            }
            verdict = Verdict::Survived;
        }
        Ok(verdict)
    }

    /// The checks in the order in which they are likely to kill a mutant of a file soonest.
    fn order(&self, file: &str) -> Vec<usize> {
        let kills = self.kills.lock().ok().and_then(|kills| kills.get(file).cloned()).unwrap_or_default();
        let cost = |at: usize| {
            let (is_own, time) = self.checks[at].turn();
            (is_own, time.as_secs_f64() / (f64::from(kills.get(at).copied().unwrap_or(0)) + HOPE))
        };
        let mut order: Vec<usize> = (0..self.checks.len()).collect();
        order.sort_by(|a, b| cost(*a).partial_cmp(&cost(*b)).unwrap_or(std::cmp::Ordering::Equal));
        order
    }

    fn killed(&self, file: &str, at: usize) {
        if let Ok(mut kills) = self.kills.lock() {
            kills.entry(file.to_owned()).or_insert_with(|| vec![0; self.checks.len()])[at] += 1;
        }
    }

    /// The tests that take too long.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// How long everything takes unmutated, in turn.
    pub fn time(&self) -> Duration {
        self.checks.iter().map(Check::time).sum()
    }

    /// Each check with its time and how many mutants it reaches.
    pub fn table(&self) -> impl Iterator<Item = (String, Duration, usize)> {
        self.checks.iter().map(|check| {
            let reached: HashSet<u32> = check.tests.iter().flat_map(|test| &test.reached).copied().collect();
            (check.name(), check.time(), reached.len())
        })
    }
}

impl Check {
    fn name(&self) -> String {
        match (&self.ftl, &self.tests[..]) {
            (Some(ftl), [test]) => format!("explorer {ftl} {}", test.name),
            (None, [test]) => format!("{} {}", self.binary.name, test.name),
            _ => self.binary.name.clone(),
        }
    }

    /// The slow tests apart, each alone, so that the quick ones come first.
    fn split(mut self) -> Vec<Self> {
        let slow = self.tests.extract_if(.., |test| test.time > SLOW).collect::<Vec<_>>();
        let alone = |test| Self {
            binary: self.binary.clone(),
            folder: self.folder.clone(),
            ftl: self.ftl.clone(),
            tests: vec![test],
        };
        let slow: Vec<Self> = slow.into_iter().map(alone).collect();
        slow.into_iter().chain(Some(self).filter(|quick| !quick.tests.is_empty())).collect()
    }

    fn time(&self) -> Duration {
        self.tests.iter().map(|test| test.time).sum()
    }

    /// The order of checks: the quickest first, but the explorer's own at last.
    fn turn(&self) -> (bool, Duration) {
        let is_own = self.ftl.is_none() && !self.binary.name.starts_with("ftl ");
        (is_own, self.time())
    }
}

/// The mutants that a note names.
fn reached(text: &str) -> HashSet<u32> {
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Does each of `items` in `jobs` threads; what came of them, in their order, or the first error.
///
/// # Errors
/// The first that `act` returns.
pub fn in_parallel<T: Sync, R: Send>(jobs: usize, items: &[T], act: impl Fn(&T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::new());
    let lock = "a thread panicked";
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some((at, item)) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    items.get(at).map(|item| (at, item))
                } {
                    match act(item) {
                        Ok(result) => done.lock().map(|mut done| done.push((at, result))).unwrap_or(()),
                        Err(error) => {
                            next.store(items.len(), Ordering::Relaxed);
                            failed.lock().map(|mut failed| *failed = Some(error)).unwrap_or(());
                        }
                    }
                }
            });
        }
    });
    if let Some(error) = failed.into_inner().ok().context(lock)? {
        return Err(error);
    }
    let mut done = done.into_inner().ok().context(lock)?;
    done.sort_by_key(|(at, _)| *at);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn slow_tests_run_alone_and_the_quick_ones_together() {
        let test =
            |millis| Test { name: format!("t{millis}"), time: Duration::from_millis(millis), reached: HashSet::new() };
        let binary = Binary { name: "ftl all".into(), executable: PathBuf::new() };
        let tests = [1, 900, 2, 901].map(test).into();
        let checks = Check { binary, folder: PathBuf::new(), ftl: None, tests }.split();
        let names: Vec<String> = checks.iter().map(Check::name).collect();
        assert_eq!(names, ["ftl all t900", "ftl all t901", "ftl all"]);
    }

    #[test]
    fn a_check_that_killed_mutants_of_a_file_comes_sooner() {
        let check = |name: &str, seconds| Check {
            binary: Binary { name: name.into(), executable: PathBuf::new() },
            folder: PathBuf::new(),
            ftl: None,
            tests: vec![Test { name: name.into(), time: Duration::from_secs(seconds), reached: HashSet::new() }],
        };
        let checks = [("ftl a", 1), ("ftl b", 20), ("ftl c", 30), ("crash own", 0)];
        let checks = Checks {
            checks: checks.map(|(name, seconds)| check(name, seconds)).into(),
            kills: Mutex::default(),
            left_out: Vec::new(),
            exploration: Exploration { quick: true, cuts: 1, seed: 1 },
        };
        assert_eq!(checks.order("a.rs"), [0, 1, 2, 3]);
        checks.killed("a.rs", 2);
        assert_eq!(checks.order("a.rs"), [0, 2, 1, 3], "a second is always worth it");
        (0..9).for_each(|_| checks.killed("a.rs", 2));
        assert_eq!(checks.order("a.rs"), [2, 0, 1, 3]);
        assert_eq!(checks.order("b.rs"), [0, 1, 2, 3]);
    }

    #[test]
    fn results_of_threads_come_in_order_and_an_error_ends_it() {
        let items: Vec<u32> = (0..100).collect();
        assert_eq!(in_parallel(2, &items, |item| Ok(item + 1)).unwrap(), (1..101).collect::<Vec<_>>());
        assert!(in_parallel(2, &items, |item| if *item == 7 { bail!("seven") } else { Ok(()) }).is_err());
    }
}
