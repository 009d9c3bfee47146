//! The exploration of one case: run, cut, mount, check, go on writing, check, unmount, mount,
//! check.
//!
//! 1. The main line runs the workload on a fresh disk. Its device yields an image at every
//!    operation that the tap of depth 0 wants ([`crate::tap`]).
//! 2. After each call to the FTL the images made during it are recovered, one by one, each with a
//!    copy of the model as it was: the call was under way, all before it was acknowledged.
//! 3. An FTL with a battery saves what it holds in RAM after a cut. What it held at that very
//!    operation, perhaps half-way through something, is had by doing the line again, this time with
//!    a real cut; then the device works until the save is done. The battery may die in the middle
//!    of the save, which gives an image too. A mount that is cut short saves nothing.
//! 4. A recovery is a line of its own: mount, read and check everything, do more of the workload,
//!    check, flush, mount again, check. Its device yields images as well while the cuts are less
//!    deep than wanted.
//! 5. The first broken promise, unexpected error, panic or endless loop ends it, with the path of
//!    cuts that led there.

use crate::bench::Bench;
use crate::case::Loss;
use crate::model::Model;
use crate::quiet;
use crate::report::Tally;
use crate::rng::mix;
use crate::shape::LIMIT;
use crate::stamps::Stamps;
use crate::story::{Effort, Event, efforts, ops_of, outcome_of};
use crate::tap::{Casualties, Image, Tap};
use crate::workload::Step;
use crate::{Device, Fault, faults};
use ftl::{Ftl, FtlError};
use nand::{Cut, CutOutcome, Faulty, Lpn, NandError, SimNand, Snapshot, Stamp};
use table::AnyBytes;

/// Where the lines of one depth are cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    /// While mounting.
    pub(crate) mounting: Tap,
    /// From then on.
    pub(crate) after: Tap,
    /// While a battery saves what the cut before left in RAM.
    pub(crate) saving: Tap,
}

impl Level {
    pub(crate) const fn both(tap: Tap) -> Self {
        Self { mounting: tap, after: tap, saving: Tap::OFF }
    }

    /// Only there where a known loss of power comes.
    pub(crate) const fn of(loss: Loss, tap: Tap) -> Self {
        if loss.saving { Self { mounting: Tap::OFF, after: Tap::OFF, saving: tap } } else { Self::both(tap) }
    }
}

/// A broken promise, and the cuts that led there.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) path: Vec<Loss>,
    pub(crate) what: String,
}

/// Why an exploration ended early.
#[derive(Debug)]
pub(crate) enum Ending {
    Found(Finding),
    /// As many cut points as wanted.
    Enough,
    /// The device took metadata, and the FTL says so instead of going on: this line ends.
    Refused,
}

/// What was explored.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stats {
    pub(crate) cut_points: u64,
    /// By the position in [`CutOutcome::ALL`].
    pub(crate) outcomes: [u64; CutOutcome::ALL.len()],
    /// By the number of cuts, less one.
    pub(crate) depths: [u64; MAX_DEPTH],
    /// What the cuts cost, but for those after which a battery died.
    pub(crate) tally: Tally,
    /// What the others cost.
    pub(crate) saving: Tally,
    /// The mount that took longest.
    pub(crate) slowest_mount: Effort,
}

/// Cuts that one path may have.
pub(crate) const MAX_DEPTH: usize = 3;

/// An FTL under test on its device, with what its host expects.
pub(crate) struct Line {
    pub(crate) device: Device,
    pub(crate) ftl: Box<dyn Ftl<AnyBytes>>,
    pub(crate) model: Model,
    /// How to come here again, if there is a battery.
    again: Again,
}

/// Checks what ties an FTL together. It reads the same pages hundreds of times, in one call in
/// which the FTL can move nothing, so that these reads do not disturb.
fn check(device: &Device, ftl: &mut dyn Ftl<AnyBytes>) -> Result<(), String> {
    device.get().flash().let_reads_disturb(false);
    let outcome = ftl.check();
    device.get().flash().let_reads_disturb(true);
    outcome
}

/// What has been done with a disk since it was formatted or mounted.
#[derive(Default)]
struct Again {
    /// The device before it was mounted; `None` if it was formatted.
    from: Option<Faulty<SimNand>>,
    calls: Vec<Call>,
}

/// A call to an FTL.
#[derive(Clone, Copy)]
enum Call {
    Read(Lpn),
    Write(Lpn, Stamp),
    Trim(Lpn, u32),
    Flush,
    Idle,
    /// The next page goes to a bank.
    Aim(u32),
    /// Collect a block of a bank with up to so many live pages.
    Collect(u32, u32),
    Check,
}

impl Call {
    /// Itself, as the host would say it.
    fn told(self) -> String {
        match self {
            Self::Read(lpn) => format!("read {}", lpn.0),
            Self::Write(lpn, stamp) => format!("write version {} of page {}", stamp.version, lpn.0),
            Self::Trim(lpn, count) => format!("trim {count} page(s) from {}", lpn.0),
            Self::Flush => "flush".into(),
            Self::Idle => "idle".into(),
            Self::Aim(bank) => format!("aim at bank {bank}"),
            Self::Collect(bank, live) => format!("collect a block of bank {bank} with up to {live} live page(s)"),
            Self::Check => "check".into(),
        }
    }

    fn doing(self) -> &'static str {
        match self {
            Self::Read(_) => "reading",
            Self::Write(..) => "writing",
            Self::Trim(..) => "trimming",
            Self::Flush => "flushing",
            Self::Idle => "idling",
            Self::Aim(_) => "aiming at a bank",
            Self::Collect(..) => "collecting a bank",
            Self::Check => "checking",
        }
    }

    /// Does it; what was read, if anything.
    fn to(self, device: &Device, ftl: &mut dyn Ftl<AnyBytes>) -> Result<Stamp, FtlError> {
        match self {
            Self::Read(lpn) => return ftl.read_stamp(lpn),
            Self::Write(lpn, stamp) => ftl.write_stamp(lpn, stamp)?,
            Self::Trim(lpn, count) => ftl.trim(lpn, count)?,
            Self::Flush => ftl.flush()?,
            Self::Idle => drop(ftl.idle()?),
            Self::Aim(bank) => ftl.banked().into_iter().for_each(|banked| banked.aim(bank)),
            Self::Collect(bank, live_pages) => {
                ftl.banked().map(|banked| banked.collect(bank, live_pages)).transpose()?;
            }
            // It reads, and a read can be a page's last.
            Self::Check => drop(check(device, ftl)),
        }
        Ok(Stamp::UNWRITTEN)
    }
}

impl Line {
    /// As the other [`check()`].
    pub(crate) fn check(&mut self) -> Result<(), String> {
        check(&self.device, &mut *self.ftl)
    }

    pub(crate) fn new(device: Device, ftl: Box<dyn Ftl<AnyBytes>>, model: Model) -> Self {
        Self { device, ftl, model, again: Again::default() }
    }
}

/// The exploration of one case.
pub(crate) struct Explorer<'a> {
    bench: &'a Bench<'a>,
    /// By depth; lines deeper than this are not cut.
    levels: Vec<Level>,
    pub(crate) stats: Stats,
    /// Cut points after which it is enough.
    quota: u64,
    path: Vec<Loss>,
    /// RAM of the freshly formatted disk, bytes.
    ram_bytes: u64,
    on_cut: &'a mut dyn FnMut(),
    /// What happened so far, if that is wanted.
    pub(crate) story: Option<Vec<Event>>,
    /// How the pages of an inspection under way read: as expected, otherwise, as an error.
    inspected: Option<[u32; 3]>,
}

pub(crate) fn ram_bytes(ftl: &dyn Ftl<AnyBytes>) -> u64 {
    ftl.ram().iter().map(|item| item.bytes).sum()
}

impl<'a> Explorer<'a> {
    pub(crate) fn new(bench: &'a Bench<'a>, levels: Vec<Level>, quota: u64, on_cut: &'a mut dyn FnMut()) -> Self {
        Self {
            bench,
            levels,
            stats: Stats::default(),
            quota,
            path: Vec::new(),
            ram_bytes: 0,
            on_cut,
            story: None,
            inspected: None,
        }
    }

    /// Operations of the workload that change the device, cut by nobody.
    pub(crate) fn acts(&mut self) -> u64 {
        let levels = core::mem::take(&mut self.levels);
        let acts = quiet::catch(|| {
            let mut line = self.bench.format()?;
            line.device.get().begin(Tap::OFF, self.bench.case.seed, LIMIT);
            // What goes wrong is found when the workload is watched.
            let _ = self.work(&mut line, 0, self.bench.steps.len());
            let acts = line.device.get().acts();
            Ok::<_, String>(acts)
        });
        self.levels = levels;
        acts.and_then(|acts| acts).unwrap_or(0)
    }

    /// Explores the case.
    pub(crate) fn run(&mut self) -> Result<(), Ending> {
        match quiet::catch(|| self.main_line()) {
            Ok(Err(Ending::Refused)) => Ok(()),
            Ok(ending) => ending,
            Err(panic) => self.found(panic),
        }
    }

    /// Takes note of an answer.
    fn note(&self, outcome: &Result<Stamp, FtlError>) {
        match outcome {
            Ok(stamp) => self.bench.trail.operation('+', stamp.lpn.0 ^ u32::from(stamp.version) << 16),
            Err(error) => self.bench.trail.bytes(error.to_string().as_bytes()),
        }
    }

    /// Where lines after the cuts so far are cut.
    fn level(&self) -> Level {
        self.levels.get(self.path.len()).copied().unwrap_or(Level::both(Tap::OFF))
    }

    /// Takes in what the cuts so far cost.
    fn count(&mut self, tally: Tally) {
        let died = self.path.iter().any(|loss| loss.saving);
        *if died { &mut self.stats.saving } else { &mut self.stats.tally } += tally;
    }

    fn tell(&mut self, event: impl FnOnce(usize) -> Event) {
        if let Some(story) = &mut self.story {
            story.push(event(self.path.len()));
        }
    }

    fn found<T>(&self, what: String) -> Result<T, Ending> {
        Err(Ending::Found(Finding { path: self.path.clone(), what }))
    }

    fn main_line(&mut self) -> Result<(), Ending> {
        let bench = self.bench;
        let mut line = match bench.format() {
            Ok(line) => line,
            Err(what) => return self.found(what),
        };
        self.ram_bytes = ram_bytes(&*line.ftl);
        self.tell(|_| Event::Format { logical_pages: bench.case.logical_pages });
        let tap = self.levels.first().map_or(Tap::OFF, |level| level.after);
        line.device.get().begin(tap, bench.case.seed, LIMIT);
        self.work(&mut line, 0, bench.steps.len())?;
        self.inspect(&mut line, bench.steps.len())?;
        self.reopen(line, bench.steps.len())
    }

    /// Mounts an image and goes on from there.
    fn recover(&mut self, mut flash: Faulty<SimNand>, model: Model, next: usize) -> Result<(), Ending> {
        if self.bench.case.faults & Fault::Mounts.bit() != 0 {
            let now = flash.ops();
            faults::fail_soon(flash.plan_mut(), now, self.bench.case.seed);
        }
        let from = self.bench.has_battery().then(|| flash.snapshot());
        let device = self.bench.device(flash);
        let level = self.level();
        device.get().begin(level.mounting, self.bench.case.seed, LIMIT);
        let mut line = self.mount(device, model, next)?;
        line.again.from = from;
        line.device.get().tap(level.after);
        self.inspect(&mut line, next)?;
        self.count(line.model.take_tally());
        self.work(&mut line, next, self.bench.case.tail as usize)?;
        self.inspect(&mut line, next)?;
        self.reopen(line, next)
    }

    fn mount(&mut self, device: Device, model: Model, next: usize) -> Result<Line, Ending> {
        let mounted = (self.bench.mount)(device.flash_of_bytes(), &self.bench.config);
        self.tell(|cuts| Event::mount(cuts, &mounted));
        self.branch(&device, &model, next, None)?;
        match mounted {
            Ok((ftl, report)) => {
                let found = [report.rebuilt_entries, report.unreadable_pages, report.read_only.is_some().into()];
                found.into_iter().for_each(|item| self.bench.trail.note(item));
                let effort = Effort::of(&ops_of(&report));
                if effort.microseconds > self.stats.slowest_mount.microseconds {
                    self.stats.slowest_mount = effort;
                }
                let now = ram_bytes(&*ftl);
                if now > 2 * self.ram_bytes + 4096 {
                    return self.found(format!("{now} B of RAM after a mount, {} B when formatted", self.ram_bytes));
                }
                Ok(Line::new(device, ftl, model))
            }
            Err(error) if model.may_fail(&error) => Err(Ending::Refused),
            Err(error) => self.failed(&device, "mounting", &error),
        }
    }

    /// A clean end, and a mount that finds everything.
    fn reopen(&mut self, mut line: Line, next: usize) -> Result<(), Ending> {
        self.step(&mut line, Step::Flush, next)?;
        line.device.get().tap(Tap::OFF);
        self.bench.save(&mut *line.ftl).or_else(|what| self.found(what))?;
        let Line { device, ftl, mut model, .. } = line;
        drop(ftl);
        model.cut();
        let mut line = self.mount(device, model, next)?;
        self.inspect(&mut line, next)?;
        self.count(line.model.take_tally());
        Ok(())
    }

    /// Reads every page and checks every invariant.
    fn inspect(&mut self, line: &mut Line, next: usize) -> Result<(), Ending> {
        self.inspected = Some([0; 3]);
        for lpn in 0..line.model.logical_pages() {
            self.step(line, Step::Read { lpn }, next)?;
        }
        if let Some([expected, other, errors]) = self.inspected.take() {
            self.tell(|cuts| Event::Inspection { cuts, expected, other, errors });
        }
        if self.bench.has_battery() {
            line.again.calls.push(Call::Check);
        }
        match line.check() {
            Ok(()) => Ok(()),
            Err(_) if line.model.is_metadata_lost() => Err(Ending::Refused),
            Err(what) => self.found(what),
        }
    }

    /// Does so many steps from `first` on, over and over.
    fn work(&mut self, line: &mut Line, first: usize, count: usize) -> Result<(), Ending> {
        if self.bench.steps.is_empty() {
            return Ok(());
        }
        for index in first..first + count {
            let step = self.bench.steps[index % self.bench.steps.len()];
            self.step(line, step, index + 1)?;
        }
        Ok(())
    }

    /// Whether the host places pages and collects bank by bank.
    const fn by_bank(&self) -> bool {
        self.bench.case.faults & Fault::Banks.bit() != 0
    }

    /// Does a step; a recovery from a cut within it goes on with step `next`.
    fn step(&mut self, line: &mut Line, step: Step, next: usize) -> Result<(), Ending> {
        let pages = line.model.logical_pages();
        match step {
            Step::Write { lpn, count } => {
                for lpn in (0..count.min(pages)).map(|i| (lpn % pages + i) % pages) {
                    let stamp = line.model.begin_write(lpn);
                    if self.by_bank() {
                        self.call(line, next, Call::Aim(mix(u64::from(lpn), stamp.version.into()) as u32))?;
                    }
                    self.call(line, next, Call::Write(Lpn(lpn), stamp))?;
                    line.model.complete_write(lpn);
                }
            }
            Step::Trim { lpn, count } => {
                let (lpn, count) = (lpn % pages, count.min(pages - lpn % pages));
                line.model.begin_trim(lpn, count);
                self.call(line, next, Call::Trim(Lpn(lpn), count))?;
                line.model.complete_trim(lpn, count);
            }
            Step::Read { lpn } => {
                let got = self.act(line, next, Call::Read(Lpn(lpn % pages)))?;
                match line.model.read(lpn % pages, got) {
                    Ok(seen) => {
                        if let Some(inspected) = &mut self.inspected {
                            inspected[seen as usize] += 1;
                        }
                    }
                    Err(what) => return self.found(what),
                }
            }
            Step::Flush => {
                self.call(line, next, Call::Flush)?;
                line.model.complete_flush();
            }
            Step::Idle if self.by_bank() => {
                let (chance, pages) = (mix(self.bench.case.seed, next as u64), self.bench.case.shape().pages_per_block);
                let live_pages = [0, pages / 2, pages - 1][(chance >> 32) as usize % 3];
                self.call(line, next, Call::Collect(chance as u32, live_pages))?;
            }
            Step::Idle => self.call(line, next, Call::Idle)?,
        }
        Ok(())
    }

    /// Calls the FTL, and recovers every image that this gave.
    fn act(&mut self, line: &mut Line, next: usize, call: Call) -> Result<Result<Stamp, FtlError>, Ending> {
        if self.bench.has_battery() {
            line.again.calls.push(call);
        }
        let before = self.story.is_some().then(|| *line.ftl.flash().counts());
        let outcome = call.to(&line.device, &mut *line.ftl);
        self.note(&outcome);
        let efforts = before.map(|before| efforts(&line.ftl.flash().counts().since(&before))).unwrap_or_default();
        let Line { device, model, again, .. } = line;
        if self.inspected.is_none() || outcome.is_err() {
            let reads = matches!(call, Call::Read(_));
            let next_operation = device.get().ops();
            self.tell(|cuts| Event::Call {
                cuts,
                call: call.told(),
                outcome: outcome_of(&outcome, reads),
                efforts,
                next_operation,
            });
        }
        self.branch(device, model, next, Some(again))?;
        Ok(outcome)
    }

    fn call(&mut self, line: &mut Line, next: usize, call: Call) -> Result<(), Ending> {
        match self.act(line, next, call)? {
            Ok(_) => Ok(()),
            Err(error) if line.model.may_fail(&error) => Err(Ending::Refused),
            Err(error) => self.failed(&line.device, call.doing(), &error),
        }
    }

    /// What is on flash after a cut once the battery has provided for what was only in RAM, and
    /// images of a battery that died on the way.
    fn saved(&self, again: &mut Again, cut: Cut) -> Result<(Faulty<SimNand>, Vec<Image>), String> {
        let (device, mut ftl) = match &mut again.from {
            None => {
                let Line { device, ftl, .. } = self.bench.format()?;
                (device, ftl)
            }
            Some(flash) => {
                let device = self.bench.device(flash.snapshot());
                let mounted = (self.bench.mount)(device.flash_of_bytes(), &self.bench.config);
                let (ftl, _) = mounted.map_err(|error| format!("mounting the same again: {error}"))?;
                (device, ftl)
            }
        };
        device.get().flash().plan_mut().cuts = vec![cut];
        device.get().begin(Tap::OFF, 0, LIMIT);
        let lost = |call: &Call| call.to(&device, &mut *ftl) == Err(FtlError::Nand(NandError::PowerLost));
        if !again.calls.iter().any(lost) && device.get().flash().is_powered() {
            return Err("the same calls do not come to the same operation".into());
        }
        if self.bench.case.is_harsh() {
            // A host that has not heard of it yet.
            for call in [Call::Idle, Call::Read(Lpn(0))] {
                let _ = call.to(&device, &mut *ftl);
            }
        }
        device.get().flash().plan_mut().cuts.clear();
        device.get().flash().power_up();
        device.get().begin(self.level().saving, self.bench.case.seed, LIMIT);
        self.bench.save(&mut *ftl)?;
        let images = device.get().take_images();
        device.get().tap(Tap::OFF);
        let flash = device.get().flash().snapshot();
        Ok((flash, images))
    }

    fn failed<T>(&self, device: &Device, doing: &str, error: &FtlError) -> Result<T, Ending> {
        if device.get().is_exhausted() {
            return self.found(format!("{doing} does not end: more than {LIMIT} operations"));
        }
        self.found(format!("{doing}: {error}"))
    }

    /// Recovers every image that the last call gave; without `again` that was a mount.
    fn branch(
        &mut self,
        device: &Device,
        model: &Model,
        next: usize,
        mut again: Option<&mut Again>,
    ) -> Result<(), Ending> {
        let images = device.get().take_images();
        for Image { mut flash, cut, op, casualties } in images {
            let depth = self.path.len();
            let mut model = model.clone();
            model.cut();
            self.mourn(&mut model, &casualties);
            let inspected = self.inspected.take();
            self.lose(Loss::from(cut))?;
            let mut dying = Vec::new();
            if let Some(again) = again.as_deref_mut().filter(|_| self.bench.has_battery()) {
                (flash, dying) = self.saved(again, Cut { at: op, ..cut }).or_else(|what| self.found(what))?;
            }
            self.unless_refused(|explorer| explorer.recover(flash, model.clone(), next))?;
            for image in dying {
                let mut model = model.clone();
                model.battery_died();
                self.mourn(&mut model, &image.casualties);
                self.lose(Loss { cut: image.cut, saving: true })?;
                self.unless_refused(|explorer| explorer.recover(image.flash, model, next))?;
                self.path.truncate(depth + 1);
            }
            self.path.truncate(depth);
            self.inspected = inspected;
        }
        Ok(())
    }

    /// Takes note of the pages that a torn one took with it, of which not even the spare areas are
    /// left, and of those that half an erase left fading.
    fn mourn(&self, model: &mut Model, casualties: &Casualties) {
        casualties.pages.iter().for_each(|lpn| model.harm_unseen(*lpn));
        casualties.fading.iter().for_each(|lpn| model.fade(*lpn));
        if casualties.metadata {
            if self.bench.entry.info.outlives_worn_pages { model.harm_trims() } else { model.lose_metadata() }
        }
    }

    /// Explores a line that may end early.
    fn unless_refused(&mut self, explore: impl FnOnce(&mut Self) -> Result<(), Ending>) -> Result<(), Ending> {
        match explore(self) {
            Err(Ending::Refused) => {
                self.count(Tally { refused: 1, ..Tally::default() });
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Power is lost once more on the way.
    fn lose(&mut self, loss: Loss) -> Result<(), Ending> {
        if self.stats.cut_points >= self.quota {
            return Err(Ending::Enough);
        }
        self.stats.cut_points += 1;
        self.stats.depths[self.path.len().min(MAX_DEPTH - 1)] += 1;
        if let Some(at) = CutOutcome::ALL.iter().position(|outcome| *outcome == loss.cut.outcome) {
            self.stats.outcomes[at] += 1;
        }
        self.path.push(loss);
        self.count(Tally { runs: 1, ..Tally::default() });
        (self.on_cut)();
        self.tell(|cuts| Event::cut(cuts, loss));
        Ok(())
    }
}
