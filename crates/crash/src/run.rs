//! Runs over the table: which cases, in which order.
//!
//! 1. Rounds of cut explorations, each with its own workload, over the shapes and the laid faults
//!    in turn, until as many cut points were explored as wanted.
//! 2. Each page worn in turn, one workload a shape; images; checkpoints with wrong bits; endurance.
//! 3. Every failure is shrunk. After some failures nothing more is tried with this FTL.

use crate::bench::Bench;
use crate::case::Harm;
use crate::case::{Case, Loss, ReplayError, Scenario, Work, Worn};
use crate::drawn::drawn;
use crate::explorer::{Ending, Explorer, Finding, Level};
use crate::faults::Fault;
use crate::options::{Mode, Options, OptionsError};
use crate::other::{self, Left};
use crate::report::{Failure, FtlReport, Report, Trace, outcome_name};
use crate::rng::mix;
use crate::shape::{DRAWN, DRAWN_NUMBER, SHAPES};
use crate::shrink;
use crate::tap::{At, Outcomes, Tap};
use crate::workload::generate_with_long_trims;
use ftl::ftls::{Durability, Entry, Info};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;
use table::AnyBytes;

/// Where a run stands.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The FTL being explored.
    pub ftl: &'static str,
    /// Cut points explored of it.
    pub cut_points: u64,
    /// Cut points wanted.
    pub wanted: u64,
    /// Whether nothing more is done with the FTL.
    pub ended: bool,
}

/// Rows of [`SHAPES`] between two shapes that are drawn by chance.
const BETWEEN_DRAWS: usize = 3;

/// Shapes drawn before an FTL is taken to refuse all.
const DRAWS: u64 = 60;

/// Outcomes that are tried of an operation that is cut.
const OUTCOMES: usize = 4;

/// The name of cuts without other faults.
const CUTS: &str = "cuts";

/// Cut points of one workload.
const LEAST_SHARE: u64 = 48;
const MOST_SHARE: u64 = 2000;

/// Workloads without any cut point, besides two for each shape, after which there is nothing to be
/// found.
const BARREN: usize = 8;

/// Steps after a recovery, if trims are long.
const SHORT_TAIL: u32 = 3;

/// Failures of one FTL after which nothing more is tried with it.
const FAILURES: usize = 3;

/// Explores the table of FTLs, [`Options::jobs`] at a time. `progress` is called at every cut
/// point, and when an FTL ends. The report is the same, but for times, whatever the number of jobs.
///
/// # Errors
/// [`OptionsError`] if the options name something that does not exist.
pub fn run(options: &Options, progress: &mut dyn FnMut(Progress)) -> Result<Report, OptionsError> {
    run_on(&table::table(), options, progress)
}

/// Explores these FTLs instead of the table: for a canary, or one that is not in the table yet.
///
/// # Errors
/// As [`run`].
pub fn run_on(
    entries: &[Entry<AnyBytes>],
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, OptionsError> {
    options.check(entries.iter().map(|entry| entry.info.name))?;
    let wanted = |name: &str| options.ftls.is_empty() || options.ftls.iter().any(|ftl| ftl == name);
    let entries: Vec<&Entry<AnyBytes>> = entries.iter().filter(|entry| wanted(entry.info.name)).collect();
    let next = AtomicUsize::new(0);
    let (told, news) = mpsc::channel();
    let mut ftls: Vec<(usize, FtlReport)> = thread::scope(|scope| {
        let work = |told: mpsc::Sender<Progress>| {
            let mut done = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(entry) = entries.get(at) else { return done };
                // Nobody listens any more only after a panic, which ends the run anyway.
                let mut tell = |progress| {
                    let _ = told.send(progress);
                };
                done.push((at, Runner::new(entry, options, &mut tell).run()));
            }
        };
        let jobs = usize::from(options.jobs).clamp(1, entries.len().max(1));
        let workers: Vec<_> = (0..jobs)
            .map(|_| {
                let told = told.clone();
                scope.spawn(move || work(told))
            })
            .collect();
        drop(told);
        news.iter().for_each(progress);
        let finished = workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
        finished.flatten().collect()
    });
    ftls.sort_unstable_by_key(|(at, _)| *at);
    let ftls = ftls.into_iter().map(|(_, report)| report).collect();
    Ok(Report { seed: options.seed, mode: options.mode.name(), depth: options.depth, ftls })
}

/// Runs again what an id stands for.
///
/// # Errors
/// [`ReplayError`] if the id cannot be read or names an FTL that is not in the table.
pub fn replay(id: &str) -> Result<Option<Failure>, ReplayError> {
    replay_on(&table::table(), id)
}

/// As [`replay`], of these FTLs. `None` if everything goes well.
///
/// # Errors
/// As [`replay`].
pub fn replay_on(entries: &[Entry<AnyBytes>], id: &str) -> Result<Option<Failure>, ReplayError> {
    let (case, entry) = find(entries, id)?;
    Ok(shrink::replay(entry, &case).err().map(|finding| failure(&case, &finding)))
}

/// Runs again what an id stands for, and tells everything that happens.
///
/// # Errors
/// As [`replay`].
pub fn trace(id: &str) -> Result<Trace, ReplayError> {
    let entries = table::table();
    let (case, entry) = find(&entries, id)?;
    let (events, outcome) = shrink::trace(entry, &case);
    Ok(Trace { events, failure: outcome.err().map(|finding| failure(&case, &finding)) })
}

fn find<'a>(entries: &'a [Entry<AnyBytes>], id: &str) -> Result<(Case, &'a Entry<AnyBytes>), ReplayError> {
    let case = Case::parse(id)?;
    match entries.iter().find(|entry| entry.info.name == case.ftl && entry.mount.is_some()) {
        Some(entry) => Ok((case, entry)),
        None => Err(ReplayError::Ftl { ftl: case.ftl }),
    }
}

pub(crate) fn failure(case: &Case, finding: &Finding) -> Failure {
    let battery = if case.battery { None } else { Some("no battery".to_owned()) };
    let laid = Fault::ALL.into_iter().filter(|fault| case.faults & fault.bit() != 0);
    let mut faults: Vec<String> = battery.into_iter().chain(laid.map(|fault| fault.name().into())).collect();
    if case.scenario != Scenario::Cuts {
        faults.push(format!("{:?}", case.scenario));
    }
    Failure {
        id: Case { path: finding.path.clone(), ..case.clone() }.id(),
        what: finding.what.clone(),
        shape: case.shape().told(),
        faults: faults.join(", "),
        cuts: finding.path.iter().map(told).collect(),
        workload: case.steps().iter().map(ToString::to_string).collect(),
        tail: case.tail,
    }
}

/// A loss of power in words.
fn told(loss: &Loss) -> String {
    let save = if loss.saving { " of the save" } else { "" };
    format!("{}{save} {}", loss.cut.at, outcome_name(loss.cut.outcome))
}

/// Why an FTL without a mount has none.
fn why_not(info: &Info) -> String {
    match info.durable {
        Durability::NonVolatileMaps => "its published simulation assumes maps in non-volatile memory".into(),
        Durability::Nothing => "it loses data by design and is there for comparison only".into(),
        Durability::OnCompletion | Durability::OnFlush | Durability::Battery => "the table has no mount for it".into(),
    }
}

struct Runner<'a, 'b> {
    entry: &'a Entry<AnyBytes>,
    options: &'a Options,
    report: FtlReport,
    /// Rows of [`SHAPES`] and the disk made of each, and in between shapes to be drawn by chance.
    fits: Vec<(u8, u32)>,
    progress: &'b mut dyn FnMut(Progress),
}

impl<'a, 'b> Runner<'a, 'b> {
    fn new(entry: &'a Entry<AnyBytes>, options: &'a Options, progress: &'b mut dyn FnMut(Progress)) -> Self {
        let report = FtlReport { name: entry.info.name, promise: entry.info.promise(), ..FtlReport::default() };
        Self { entry, options, report, fits: Vec::new(), progress }
    }

    fn run(mut self) -> FtlReport {
        self.everything();
        let (ftl, cut_points) = (self.report.name, self.report.cut_points);
        (self.progress)(Progress { ftl, cut_points, wanted: self.options.cuts, ended: true });
        self.report
    }

    fn everything(&mut self) {
        if self.entry.mount.is_none() {
            self.report.not_mountable = Some(why_not(&self.entry.info));
            return;
        }
        let mut refused = String::new();
        for (at, shape) in SHAPES.iter().enumerate() {
            if self.options.geometry.as_ref().is_some_and(|name| name != shape.name) {
                continue;
            }
            match shape.logical_pages(self.entry) {
                Ok(pages) => self.fits.push((at as u8, pages)),
                Err(reason) => refused = reason,
            }
        }
        let drawn = self.options.geometry.as_ref().is_none_or(|name| name == DRAWN);
        if drawn && self.draw(0).is_some() {
            let places = self.fits.len() / BETWEEN_DRAWS + 1;
            (0..places).for_each(|nth| self.fits.insert(nth * (BETWEEN_DRAWS + 1), (DRAWN_NUMBER, 0)));
        }
        if self.fits.is_empty() {
            self.report.not_mountable = Some(format!("it refuses every shape of device: {refused}"));
            return;
        }
        let named = self.fits.iter().filter_map(|(at, _)| SHAPES.get(usize::from(*at)));
        self.report.shapes = named.map(|shape| shape.name).chain(drawn.then_some(DRAWN)).collect();
        let start = Instant::now();
        self.cuts();
        self.report.seconds = start.elapsed().as_secs_f64();
        self.report.cuts_per_s = self.report.cut_points as f64 / self.report.seconds.max(1e-9);
        for fault in self.options.faults.iter().filter(|fault| !fault.is_laid()) {
            match fault {
                Fault::Worn => self.worn(),
                Fault::Fading => {}
                Fault::Images => {
                    self.scenarios(*fault, self.options.images, |n| Scenario::Image { n });
                    self.scenarios(*fault, self.options.images, |n| Scenario::Flipped { n });
                }
                _ => {
                    let rounds = self.options.endurance;
                    self.scenarios(*fault, self.fits.len() as u32, |_| Scenario::Endurance { rounds });
                }
            }
        }
    }

    fn is_done(&self) -> bool {
        self.report.failures.len() >= FAILURES
    }

    /// The case of a round: another shape each round, other faults when all shapes had their turn.
    fn case(&self, round: u64, faults: u16, scenario: Scenario) -> Case {
        let steps = self.options.steps;
        let (shape, logical_pages, seed) = match self.fits[(round % self.fits.len() as u64) as usize] {
            (DRAWN_NUMBER, _) => {
                // One was drawn before, so that luck runs out for no FTL.
                let (seed, logical_pages) = self.draw(round).or_else(|| self.draw(0)).unwrap_or((0, 1));
                (DRAWN_NUMBER, logical_pages, seed)
            }
            (row, logical_pages) => (row, logical_pages, mix(self.options.seed, round) >> 32),
        };
        let (work, tail) = if self.harsh() != 0 && seed.is_multiple_of(3) {
            // What a mount found has to be there when power is cut next.
            let tail = self.options.tail.min(SHORT_TAIL);
            (Work::Given(generate_with_long_trims(seed, steps, logical_pages)), tail)
        } else {
            (Work::Generated(steps), self.options.tail)
        };
        Case {
            ftl: self.entry.info.name.into(),
            shape,
            logical_pages,
            seed,
            faults: faults | self.harsh(),
            battery: self.options.battery,
            classic: false,
            scenario,
            work,
            tail,
            path: Vec::new(),
        }
    }

    /// A seed whose shape the FTL can be mounted on, and the disk that it makes of it.
    fn draw(&self, round: u64) -> Option<(u64, u32)> {
        (0..DRAWS).find_map(|attempt| {
            let seed = mix(mix(self.options.seed, round), attempt) >> 32;
            drawn(seed).logical_pages(self.entry).ok().map(|logical_pages| (seed, logical_pages))
        })
    }

    fn harsh(&self) -> u16 {
        if self.options.faults.contains(&Fault::Fading) { Fault::Fading.bit() } else { 0 }
    }

    /// Where power is cut, so that about `quota` cut points spread over a workload of so many
    /// operations that change the device.
    fn levels(&self, quota: u64, acts: u64) -> Vec<Level> {
        // Cut points that follow a cut, the first among them.
        let family = [1, 1, 24, 200][self.options.depth as usize];
        let cuts = (quota / family).max(1);
        let (at, outcomes) = match self.options.mode {
            Mode::Log => (At::Powers, Outcomes::Few(OUTCOMES)),
            Mode::Linear => (At::Every(16), Outcomes::Few(OUTCOMES)),
            Mode::Exhaustive => match acts * OUTCOMES as u64 / cuts {
                0 => (At::Every(1), Outcomes::All),
                1 => (At::Every(1), Outcomes::Few(OUTCOMES)),
                times => (At::Chance(times as u32), Outcomes::Few(OUTCOMES)),
            },
            Mode::Random => (At::Chance(8), Outcomes::Rolled),
        };
        // What an FTL without a battery finds after a cut at a read it also finds after one at the
        // next program.
        let reads = if self.entry.info.durable == Durability::Battery { 4 } else { 64 };
        let scarce = |times: u32| match at {
            At::Chance(chance) => times.saturating_mul(chance),
            _ => times,
        };
        let saving =
            if self.harsh() == 0 { Tap::OFF } else { Tap { at: At::Chance(4), outcomes: Outcomes::Rolled, reads: 0 } };
        let deeper = Level {
            mounting: Tap { at: At::Every(1), outcomes: Outcomes::Rolled, reads: 128 },
            after: Tap { at: At::Powers, outcomes: Outcomes::Rolled, reads: 0 },
            saving,
        };
        let deepest = Level {
            mounting: Tap { at: At::Chance(3), outcomes: Outcomes::Rolled, reads: 512 },
            after: Tap { at: At::Chance(32), outcomes: Outcomes::Rolled, reads: 0 },
            saving,
        };
        let first = Level::both(Tap { at, outcomes, reads: scarce(reads) });
        [first, deeper, deepest][..self.options.depth as usize].to_vec()
    }

    fn cuts(&mut self) {
        let laid: Vec<u16> =
            [0].into_iter().chain(self.options.faults.iter().filter(|f| f.is_laid()).map(|f| f.bit())).collect();
        // Every shape with every fault gets its share, whatever the number of cuts that one
        // workload offers.
        let share = (self.options.cuts / (self.fits.len() * laid.len()) as u64).clamp(LEAST_SHARE, MOST_SHARE);
        let mut barren = 0;
        for round in 0.. {
            let before = self.report.cut_points;
            if before >= self.options.cuts || self.is_done() || barren > 2 * self.fits.len() + BARREN {
                break;
            }
            // Every shape with every fault, another of both each round.
            let shapes = self.fits.len() as u64;
            let faults = laid[((round + round / shapes) % laid.len() as u64) as usize];
            let case = self.case(round, faults, Scenario::Cuts);
            let case = Case { faults: case.shape().bears(case.faults), ..case };
            self.explore(&case, share);
            barren = if self.report.cut_points == before { barren + 1 } else { 0 };
        }
    }

    fn explore(&mut self, case: &Case, share: u64) {
        let Some(bench) = Bench::new(self.entry, case) else { return };
        let (ftl, wanted, mut cut_points) = (self.entry.info.name, self.options.cuts, self.report.cut_points);
        let quota = share.min(wanted - self.report.cut_points);
        let acts = Explorer::new(&bench, Vec::new(), 0, &mut || {}).acts();
        let levels = self.levels(quota, acts);
        let progress = &mut *self.progress;
        let mut on_cut = || {
            cut_points += 1;
            progress(Progress { ftl, cut_points, wanted, ended: false });
        };
        let mut explorer = Explorer::new(&bench, levels, quota, &mut on_cut);
        let ending = explorer.run();
        let name = Fault::ALL
            .iter()
            .find(|fault| fault.is_laid() && case.faults & fault.bit() != 0)
            .map_or(CUTS, |fault| fault.name());
        self.report.add(name, &explorer.stats);
        self.follow(bench.trail.number());
        if let Err(Ending::Found(finding)) = ending {
            self.failed(case.clone(), finding);
        }
    }

    /// Takes in what the FTL did in one case.
    fn follow(&mut self, trail: u64) {
        self.report.trail = mix(self.report.trail, trail);
    }

    fn failed(&mut self, case: Case, finding: Finding) {
        let (case, finding) = shrink::shrink(self.entry, case, finding);
        self.report.failures.push(failure(&case, &finding));
    }

    fn try_other(&mut self, fault: Fault, case: Case, left: &mut Option<Left>) {
        *self.report.other_runs.entry(fault.name()).or_default() += 1;
        let (record, outcome) = other::run(self.entry, &case, left);
        *self.report.by_fault.entry(record.fault).or_default() += record.tally;
        self.follow(record.trail);
        if let Err(what) = outcome {
            self.failed(case, Finding { path: Vec::new(), what });
        }
    }

    /// Whether the `n`-th of the scenarios beside cuts has its turn under this seed.
    fn is_drawn(&self, n: u64) -> bool {
        self.options.seed.wrapping_add(n).is_multiple_of(self.options.one_in.into())
    }

    fn scenarios(&mut self, fault: Fault, count: u32, scenario: impl Fn(u32) -> Scenario) {
        for n in (0..count).filter(|n| self.is_drawn(u64::from(*n))).collect::<Vec<_>>() {
            if self.is_done() {
                return;
            }
            let case = self.case(n.into(), 0, scenario(n));
            self.try_other(fault, case, &mut None);
        }
    }

    fn worn(&mut self) {
        for round in 0..self.fits.len() as u64 {
            let case = self.case(round, 0, Scenario::Cuts);
            if case.shape().validity.is_some() {
                continue;
            }
            let pages = Bench::new(self.entry, &case).map_or(Ok(Vec::new()), |bench| other::pages(&bench));
            let pages = match pages {
                Ok(pages) => pages,
                Err(what) => return self.failed(case, Finding { path: Vec::new(), what }),
            };
            let mut left = None;
            let harms = || Harm::ALL.into_iter().flat_map(|harm| [(harm, false), (harm, true)]);
            for (nth, ppn) in pages.iter().copied().enumerate().step_by(self.options.worn_step as usize) {
                if !self.is_drawn(nth as u64) {
                    continue;
                }
                // Two independent losses, the second one anywhere.
                let other = pages[(mix(case.seed, nth as u64) % pages.len() as u64) as usize];
                let one = harms().map(|(harm, mounted)| Worn { ppn, harm, mounted, other: None });
                let two = [false, true].map(|mounted| {
                    let harm = if nth % 2 == 0 { Harm::Unreadable } else { Harm::DataUnreadable };
                    Worn { ppn, harm, mounted, other: Some(other) }
                });
                for worn in one.chain(two) {
                    if self.is_done() {
                        return;
                    }
                    self.try_other(Fault::Worn, Case { scenario: Scenario::Worn(worn), ..case.clone() }, &mut left);
                }
            }
        }
    }
}
