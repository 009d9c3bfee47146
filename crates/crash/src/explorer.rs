//! The exploration of one case: run, cut, mount, check, go on writing, check, unmount, mount, check.
//!
//! 1. The main line runs the workload on a fresh disk. Its device yields an image at every operation that
//!    the tap of depth 0 wants ([`crate::tap`]).
//! 2. After each call to the FTL the images made during it are recovered, one by one, each with a copy
//!    of the model as it was: the call was under way, all before it was acknowledged.
//! 3. A recovery is a line of its own: mount, read and check everything, do more of the workload, check,
//!    flush, mount again, check. Its device yields images as well while the cuts are less deep than wanted.
//! 4. The first broken promise, unexpected error, panic or endless loop ends it, with the path of cuts that led there.

use crate::case::Case;
use crate::model::{Model, Seen};
use crate::quiet;
use crate::shape::LIMIT;
use crate::tap::{Image, Tap, Tapped};
use crate::workload::Step;
use crate::{Device, Shared, faults};
use ftl::ftls::{Durability, Entry, Mount};
use ftl::{Config, Flash, Ftl, FtlError};
use nand::{Cut, CutOutcome, Faulty, Lpn, SimNand, Stamp};

/// Where the lines of one depth are cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    /// While mounting.
    pub(crate) mounting: Tap,
    /// From then on.
    pub(crate) after: Tap,
}

impl Level {
    pub(crate) const fn both(tap: Tap) -> Self {
        Self { mounting: tap, after: tap }
    }
}

/// A broken promise, and the cuts that led there.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) path: Vec<Cut>,
    pub(crate) what: String,
}

/// Why an exploration ended early.
#[derive(Debug)]
pub(crate) enum Ending {
    Found(Finding),
    /// As many cut points as wanted.
    Enough,
}

/// What was explored.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stats {
    pub(crate) cut_points: u64,
    /// By the position in [`CutOutcome::ALL`].
    pub(crate) outcomes: [u64; CutOutcome::ALL.len()],
    /// By the number of cuts, less one.
    pub(crate) depths: [u64; MAX_DEPTH],
}

/// Cuts that one path may have.
pub(crate) const MAX_DEPTH: usize = 3;

/// An FTL under test on its device, with what its host expects.
pub(crate) struct Line {
    pub(crate) device: Device,
    pub(crate) ftl: Box<dyn Ftl<Device>>,
    pub(crate) model: Model,
}

/// What stays the same over all lines of a case.
pub(crate) struct Bench<'a> {
    pub(crate) entry: &'a Entry<Device>,
    pub(crate) mount: Mount<Device>,
    pub(crate) case: &'a Case,
    pub(crate) config: Config,
    pub(crate) steps: Vec<Step>,
}

impl<'a> Bench<'a> {
    /// `None` if the FTL cannot be mounted.
    pub(crate) fn new(entry: &'a Entry<Device>, case: &'a Case) -> Option<Self> {
        let config = case.shape().config(case.logical_pages);
        Some(Self { entry, mount: entry.mount?, case, config, steps: case.steps() })
    }

    pub(crate) fn durable(&self) -> Durability {
        self.entry.info.durable
    }

    /// A fresh disk.
    pub(crate) fn format(&self) -> Result<Line, String> {
        let geometry = self.case.shape().geometry().map_err(|e| e.to_string())?;
        let plan = faults::plan(self.case.faults, self.case.seed, &geometry, self.case.shape().pairing);
        let device = self.case.shape().device(plan).map_err(|e| e.to_string())?;
        let formatted = (self.entry.format)(Flash::new(device.clone()), &self.config);
        let ftl = formatted.map_err(|error| format!("formatting: {error}"))?;
        device.get_mut().flash().plan_mut().failing_blocks =
            faults::worn_blocks(self.case.faults, self.case.seed, &geometry);
        Ok(Line { device, ftl, model: self.case.model(self.durable()) })
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
    path: Vec<Cut>,
    /// RAM of the freshly formatted disk, bytes.
    ram_bytes: u64,
    on_cut: &'a mut dyn FnMut(),
}

pub(crate) fn ram_bytes(ftl: &dyn Ftl<Device>) -> u64 {
    ftl.ram().iter().map(|item| item.bytes).sum()
}

impl<'a> Explorer<'a> {
    pub(crate) fn new(bench: &'a Bench<'a>, levels: Vec<Level>, quota: u64, on_cut: &'a mut dyn FnMut()) -> Self {
        Self { bench, levels, stats: Stats::default(), quota, path: Vec::new(), ram_bytes: 0, on_cut }
    }

    /// Explores the case.
    pub(crate) fn run(&mut self) -> Result<(), Ending> {
        match quiet::catch(|| self.main_line()) {
            Ok(ending) => ending,
            Err(panic) => self.found(panic),
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
        let tap = self.levels.first().map_or(Tap::OFF, |level| level.after);
        line.device.get_mut().begin(tap, bench.case.seed, LIMIT);
        self.work(&mut line, 0, bench.steps.len())?;
        self.inspect(&mut line, bench.steps.len())?;
        self.reopen(line, bench.steps.len())
    }

    /// Mounts an image and goes on from there.
    fn recover(&mut self, flash: Faulty<SimNand>, model: Model, next: usize) -> Result<(), Ending> {
        let device = Shared::new(Tapped::new(flash, LIMIT));
        let level = self.levels.get(self.path.len()).copied().unwrap_or(Level::both(Tap::OFF));
        device.get_mut().begin(level.mounting, self.bench.case.seed, LIMIT);
        let mut line = self.mount(device, model, next)?;
        line.device.get_mut().tap(level.after);
        self.inspect(&mut line, next)?;
        self.work(&mut line, next, self.bench.case.tail as usize)?;
        self.inspect(&mut line, next)?;
        self.reopen(line, next)
    }

    fn mount(&mut self, device: Device, model: Model, next: usize) -> Result<Line, Ending> {
        let mounted = (self.bench.mount)(Flash::new(device.clone()), &self.bench.config);
        self.branch(&device, &model, next)?;
        match mounted {
            Ok((ftl, _)) => {
                let now = ram_bytes(&*ftl);
                if now > 2 * self.ram_bytes + 4096 {
                    return self.found(format!("{now} B of RAM after a mount, {} B when formatted", self.ram_bytes));
                }
                Ok(Line { device, ftl, model })
            }
            Err(error) => self.failed(&device, "mounting", &error),
        }
    }

    /// A clean end, and a mount that finds everything.
    fn reopen(&mut self, mut line: Line, next: usize) -> Result<(), Ending> {
        self.step(&mut line, Step::Flush, next)?;
        let Line { device, ftl, mut model } = line;
        drop(ftl);
        model.cut();
        let mut line = self.mount(device, model, next)?;
        self.inspect(&mut line, next)
    }

    /// Reads every page and checks every invariant.
    fn inspect(&mut self, line: &mut Line, next: usize) -> Result<(), Ending> {
        for lpn in 0..line.model.logical_pages() {
            self.step(line, Step::Read { lpn }, next)?;
        }
        match line.ftl.check() {
            Ok(()) => Ok(()),
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

    /// Does a step; a recovery from a cut within it goes on with step `next`.
    fn step(&mut self, line: &mut Line, step: Step, next: usize) -> Result<(), Ending> {
        let pages = line.model.logical_pages();
        match step {
            Step::Write { lpn, count } => {
                for lpn in (0..count.min(pages)).map(|i| (lpn % pages + i) % pages) {
                    let stamp = line.model.begin_write(lpn);
                    self.call(line, next, "writing", |ftl| ftl.write(Lpn(lpn), &stamp))?;
                    line.model.complete_write(lpn);
                }
            }
            Step::Trim { lpn, count } => {
                let (lpn, count) = (lpn % pages, count.min(pages - lpn % pages));
                line.model.begin_trim(lpn, count);
                self.call(line, next, "trimming", |ftl| ftl.trim(Lpn(lpn), count))?;
                line.model.complete_trim(lpn, count);
            }
            Step::Read { lpn } => {
                let mut stamp = Stamp::UNWRITTEN;
                let got = line.ftl.read(Lpn(lpn % pages), &mut stamp).map(|()| stamp);
                self.branch(&line.device, &line.model, next)?;
                match line.model.read(lpn % pages, got) {
                    Ok(Seen::Expected | Seen::Other | Seen::Error) => {}
                    Err(what) => return self.found(what),
                }
            }
            Step::Flush => {
                self.call(line, next, "flushing", |ftl| ftl.flush())?;
                line.model.complete_flush();
            }
            Step::Idle => self.call(line, next, "idling", |ftl| ftl.idle().map(drop))?,
        }
        Ok(())
    }

    fn call(
        &mut self,
        line: &mut Line,
        next: usize,
        doing: &str,
        act: impl FnOnce(&mut dyn Ftl<Device>) -> Result<(), FtlError>,
    ) -> Result<(), Ending> {
        let outcome = act(&mut *line.ftl);
        self.branch(&line.device, &line.model, next)?;
        outcome.or_else(|error| self.failed(&line.device, doing, &error))
    }

    fn failed<T>(&self, device: &Device, doing: &str, error: &FtlError) -> Result<T, Ending> {
        if device.get().is_exhausted() {
            return self.found(format!("{doing} does not end: more than {LIMIT} operations"));
        }
        self.found(format!("{doing}: {error}"))
    }

    /// Recovers every image that the last call gave.
    fn branch(&mut self, device: &Device, model: &Model, next: usize) -> Result<(), Ending> {
        let images = device.get_mut().take_images();
        for Image { flash, cut, casualties } in images {
            let depth = self.path.len();
            let mut model = model.clone();
            model.cut();
            casualties.pages.iter().for_each(|lpn| model.harm(*lpn));
            if casualties.metadata {
                model.harm_all();
            }
            self.path.push(cut);
            self.stats.cut_points += 1;
            self.stats.depths[depth.min(MAX_DEPTH - 1)] += 1;
            if let Some(at) = CutOutcome::ALL.iter().position(|outcome| *outcome == cut.outcome) {
                self.stats.outcomes[at] += 1;
            }
            (self.on_cut)();
            self.recover(flash, model, next)?;
            self.path.truncate(depth);
            if self.stats.cut_points >= self.quota {
                return Err(Ending::Enough);
            }
        }
        Ok(())
    }
}
