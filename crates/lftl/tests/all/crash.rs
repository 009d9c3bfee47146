//! Power cuts at every flash operation, also of mounts, on one thread: the same requests are served
//! in the same order each time, and collectors and checkpoints take their turns among them.

use crate::common::{Card, Rng, SECTORS, card, format, mount, sector};
use nand::{Cut, CutOutcome, FaultPlan, Lpn, NandError, Snapshot};
use openftl_lftl::{Engine, LftlError, Options, Policy, Replacement, SECTOR_BYTES};
use std::sync::{Arc, Mutex};

const PAGES: u32 = 24;

/// What each sector may read as after power loss.
#[derive(Clone)]
struct Model {
    sectors: Vec<Sector>,
    version: u32,
}

#[derive(Clone)]
struct Sector {
    /// The version that is promised, and every later one.
    may: Vec<u32>,
    /// A trim of it that was not flushed: any version that it had, and an error, may be read.
    trimmed: bool,
    /// Such a trim was undone by a cut: what was read since may have been half erased.
    undone: bool,
    /// It was written or trimmed since it was looked at, or flushed.
    fresh: bool,
    had: Vec<u32>,
}

impl Sector {
    /// It was flushed.
    fn keep(&mut self) {
        self.may.drain(..self.may.len() - 1);
        self.undone &= !self.fresh;
        self.trimmed = false;
        self.fresh = false;
    }
}

impl Model {
    fn new() -> Self {
        let sector = Sector { may: vec![0], trimmed: false, undone: false, fresh: false, had: vec![0] };
        Self { sectors: vec![sector; PAGES as usize * SECTORS], version: 0 }
    }

    fn of(&mut self, lpn: u32) -> &mut [Sector] {
        &mut self.sectors[lpn as usize * SECTORS..][..SECTORS]
    }

    fn written(&mut self, lpn: u32, index: usize, version: u32) {
        let sector = &mut self.of(lpn)[index];
        sector.may.push(version);
        sector.had.push(version);
        sector.fresh = true;
    }

    fn trimmed(&mut self, lpn: u32) {
        for sector in self.of(lpn) {
            sector.may.push(0);
            sector.trimmed = true;
            sector.fresh = true;
        }
    }

    fn flushed(&mut self) {
        (0..PAGES).for_each(|lpn| self.kept(lpn));
    }

    /// A page was flushed.
    fn kept(&mut self, lpn: u32) {
        self.of(lpn).iter_mut().for_each(Sector::keep);
    }

    /// Compares a disk that was just mounted with what is promised. What is read is promised from
    /// now on, unless a trim of it may still be undone.
    fn look(&mut self, disk: &Engine, what: &str) {
        for lpn in 0..PAGES {
            for index in 0..SECTORS {
                let mut found = vec![0xEE; SECTOR_BYTES];
                let read = disk.read(Lpn(lpn), index * SECTOR_BYTES, &mut found);
                let known = &mut self.of(lpn)[index];
                let versions = if known.trimmed { &known.had } else { &known.may };
                let matching = versions.iter().copied().find(|version| sector(lpn, index, *version) == found);
                match (read, matching) {
                    (Ok(()), Some(version)) => {
                        known.undone |= known.trimmed && version != 0;
                        known.may = vec![version];
                    }
                    (Err(LftlError::Lost { .. }), _) if known.trimmed || known.undone => known.undone = true,
                    (read, _) => panic!(
                        "{what}: sector {index} of page {lpn} reads {read:?} {:x?}, and may be one of {versions:?}",
                        &found[..8]
                    ),
                }
                known.trimmed = false;
                known.fresh = false;
            }
        }
    }
}

/// Serves requests until all are done or power is lost.
fn requests(disk: &Engine, model: &mut Model, rng: &mut Rng, count: u32) -> Result<(), LftlError> {
    for _ in 0..count {
        let lpn = rng.below(PAGES.into()) as u32;
        let index = rng.below(SECTORS as u64) as usize;
        match rng.below(24) {
            0 | 1 => {
                disk.flush()?;
                model.flushed();
            }
            2 => {
                model.trimmed(lpn);
                disk.trim(Lpn(lpn), 1)?;
            }
            3 => {
                let count = (rng.below(8) as u32).min(PAGES - lpn);
                (lpn..lpn + count).for_each(|lpn| model.trimmed(lpn));
                disk.trim(Lpn(lpn), count)?;
                disk.flush()?;
                model.flushed();
            }
            4 | 5 => drop(disk.collect_round()?),
            6 => {
                disk.checkpoint_if_due()?;
            }
            7 => {
                write(disk, model, lpn, index)?;
                disk.flush_page(Lpn(lpn))?;
                // A trim of the other sector was before, and is not flushed.
                model.of(lpn)[index].keep();
            }
            _ => write(disk, model, lpn, index)?,
        }
    }
    Ok(())
}

fn write(disk: &Engine, model: &mut Model, lpn: u32, index: usize) -> Result<(), LftlError> {
    model.version += 1;
    let version = model.version;
    model.written(lpn, index, version);
    disk.write(Lpn(lpn), index * SECTOR_BYTES, &sector(lpn, index, version))
}

fn is_power(error: &LftlError) -> bool {
    matches!(error, LftlError::Nand(NandError::PowerLost) | LftlError::Failed { .. })
}

/// One life of a disk, from its mount until all requests are served, and sometimes a clean
/// shutdown, or until power is lost; whether it was not lost.
fn life(card: &Card, options: &Options, model: &mut Model, rng: &mut Rng, (count, what): (u32, &str)) -> bool {
    let lived = mount(card, options).map(|(disk, _)| disk).and_then(|disk| {
        model.look(&disk, what);
        requests(&disk, model, rng, count)?;
        if rng.below(3) == 0 {
            disk.shut_down()?;
            model.flushed();
        }
        Ok(())
    });
    match lived {
        Ok(()) => true,
        Err(error) if is_power(&error) && !card.lock().unwrap().is_powered() => {
            card.lock().unwrap().power_up();
            false
        }
        Err(error) => panic!("{what}: {error}"),
    }
}

fn options(policy: Policy, replacement: Replacement) -> Options {
    Options { policy, replacement, buffers: 4, checkpoint_every: Some(24), ..Options::new(PAGES) }
}

/// A card that was filled and overwritten some times.
fn used(options: &Options, seed: u64, plan: FaultPlan) -> (Card, Model) {
    let card = card(2, 24, 4, plan);
    let mut model = Model::new();
    let disk = format(&card, options).unwrap();
    requests(&disk, &mut model, &mut Rng(seed), 150).unwrap();
    disk.flush().unwrap();
    model.flushed();
    (card, model)
}

fn copy(card: &Card) -> Card {
    Arc::new(Mutex::new(card.lock().unwrap().snapshot()))
}

fn ops(card: &Card) -> u64 {
    card.lock().unwrap().ops()
}

fn cut(card: &Card, at: u64, outcome: CutOutcome, seed: u64) {
    let mut card = card.lock().unwrap();
    card.plan_mut().cuts = vec![Cut { at, outcome }];
    card.plan_mut().seed = seed;
}

/// Any outcome.
fn drawn(rng: &mut Rng) -> CutOutcome {
    CutOutcome::ALL[rng.below(CutOutcome::ALL.len() as u64) as usize]
}

/// Cuts power at every operation of a mount and the requests after it, with each outcome; then at
/// an operation of the next life; then looks twice.
fn every_cut(policy: Policy, replacement: Replacement, seed: u64) -> u64 {
    const COUNT: u32 = 60;
    let options = options(policy, replacement);
    let (used, model) = used(&options, seed, FaultPlan::default());
    let begin = ops(&used);
    let whole = copy(&used);
    assert!(life(&whole, &options, &mut model.clone(), &mut Rng(seed), (COUNT, "no cut")));
    let end = ops(&whole);
    let mut cuts = 0;
    for at in begin..end {
        for (number, outcome) in (0..).zip(CutOutcome::ALL) {
            let what = format!("{policy:?} {replacement:?} seed {seed} cut {at} {outcome:?}");
            let (card, mut model) = (copy(&used), model.clone());
            cut(&card, at, outcome, seed ^ at ^ number);
            assert!(!life(&card, &options, &mut model, &mut Rng(seed), (COUNT, &what)), "{what}: no cut");
            let mut rng = Rng(at ^ number << 32);
            let second = ops(&card) + rng.below(12);
            let other = drawn(&mut rng);
            cut(&card, second, other, seed ^ second);
            let what = format!("{what}, then {second} {other:?}");
            life(&card, &options, &mut model, &mut rng, (12, &what));
            card.lock().unwrap().plan_mut().cuts.clear();
            life(&card, &options, &mut model, &mut rng, (20, &what));
            life(&card, &options, &mut model, &mut rng, (0, &what));
            cuts += 2;
        }
    }
    cuts
}

/// Seeds from 0 on: so many, times `OPENFTL_SEEDS`.
fn seeds(count: u64) -> std::ops::Range<u64> {
    let times = std::env::var("OPENFTL_SEEDS").map_or(1, |times| times.parse().unwrap());
    0..count * times
}

#[test]
fn no_cut_loses_what_was_flushed_when_writers_collect() {
    let cuts: u64 = seeds(2).map(|seed| every_cut(Policy::WritePath, Replacement::Fifo, seed)).sum();
    assert!(cuts > 3_000, "{cuts} cuts");
}

#[test]
fn no_cut_loses_what_was_flushed_when_collectors_collect() {
    let replacement = |seed: u64| Replacement::TABLE[seed as usize % 3].1;
    let cuts: u64 = seeds(3).map(|seed| every_cut(Policy::Parallel, replacement(seed), 100 + seed)).sum();
    assert!(cuts > 3_000, "{cuts} cuts");
}

#[test]
fn a_chain_of_cuts_on_one_card_loses_nothing() {
    for seed in seeds(4) {
        let options = options(Policy::TABLE[seed as usize % 3].1, Replacement::TABLE[seed as usize % 3].1);
        let (card, mut model) = used(&options, seed, FaultPlan::default());
        let mut rng = Rng(seed);
        for number in 0..400 {
            let at = ops(&card) + rng.below(60);
            let outcome = drawn(&mut rng);
            cut(&card, at, outcome, rng.next());
            let what = format!("seed {seed} life {number} cut {at} {outcome:?}");
            life(&card, &options, &mut model, &mut rng, (40, &what));
        }
    }
}

#[test]
fn failing_programs_and_cuts_together_lose_nothing() {
    for seed in seeds(6) {
        let mut rng = Rng(seed);
        let failing_programs = (0..4_000).filter(|_| rng.below(600) == 0).collect();
        let plan = FaultPlan { seed, odd_failures: true, failing_programs, ..FaultPlan::default() };
        let options = options(Policy::TABLE[seed as usize % 3].1, Replacement::Fifo);
        let (card, mut model) = used(&options, seed, plan);
        for number in 0..60 {
            let at = ops(&card) + rng.below(60);
            let outcome = drawn(&mut rng);
            cut(&card, at, outcome, rng.next());
            let what = format!("seed {seed} life {number} cut {at} {outcome:?}");
            life(&card, &options, &mut model, &mut rng, (40, &what));
        }
    }
}
