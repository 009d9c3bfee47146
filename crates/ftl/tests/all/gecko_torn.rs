//! GeckoFTL's mount when a page of host data cannot be read at all, so that nobody knows whose it
//! is: one that a cut tore costs nothing, and one that was complete and programmed last is never
//! the only thing left of a logical page.

#![allow(clippy::unwrap_used)]

use super::{ftl_named, one_die};
use ftl::{Config, Flash, Ftl, FtlError, MountReport, Purpose};
use nand::faults::{Blemish, CutOutcome, FaultPlan, Faulty};
use nand::{Capabilities, Lpn, Nand, PageKind, Ppn, SimNand, Snapshot, Spare, Stamp};
use openftl_ftl as ftl;

type Device = Faulty<SimNand>;

/// Entries of a translation page.
const ENTRIES: u32 = 128;
const PAGES_PER_BLOCK: u32 = 16;

/// A disk that is written to.
struct Disk {
    ftl: Box<dyn Ftl<Device>>,
    config: Config,
    /// The latest version of each page, 0 if it was not written; of a write that was cut short, the
    /// one before.
    versions: Vec<u16>,
    next: u16,
    state: u32,
}

/// What is left when power is gone.
#[derive(Clone)]
struct Image {
    flash: Device,
    config: Config,
    versions: Vec<u16>,
    /// A write that was cut short.
    pending: Option<(u32, u16)>,
}

impl Disk {
    /// A disk of so many translation pages, filled and written to for a while.
    fn new(translation_pages: u32, cache_entries: u32) -> Self {
        let logical_pages = translation_pages * ENTRIES;
        let geometry = one_die(logical_pages * 3 / 2 / PAGES_PER_BLOCK + 40, PAGES_PER_BLOCK, 4 * ENTRIES);
        let flash = Faulty::new(SimNand::new(geometry, Capabilities::MODERN), FaultPlan::default());
        let config = Config { cache_entries, ..Config::new(logical_pages) };
        let ftl = (ftl_named("gecko").unwrap().format)(Flash::new(flash), &config).unwrap();
        let mut disk = Self { ftl, config, versions: vec![0; logical_pages as usize], next: 0, state: 2016 };
        (0..logical_pages).for_each(|lpn| assert!(disk.write(lpn).is_none()));
        disk.write_some(logical_pages);
        disk
    }

    fn write_some(&mut self, count: u32) {
        for _ in 0..count {
            let lpn = self.random();
            assert!(self.write(lpn).is_none());
        }
    }

    fn random(&mut self) -> u32 {
        self.state = self.state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.state >> 8) % self.versions.len() as u32
    }

    /// Writes a page; answers what was written if power was lost.
    fn write(&mut self, lpn: u32) -> Option<(u32, u16)> {
        self.next += 1;
        match self.ftl.write(Lpn(lpn), &Stamp { lpn: Lpn(lpn), version: self.next }) {
            Ok(()) => self.versions[lpn as usize] = self.next,
            Err(FtlError::Nand(nand::NandError::PowerLost)) => return Some((lpn, self.next)),
            Err(error) => panic!("writing logical page {lpn}: {error}"),
        }
        None
    }

    /// Writes until power is lost at a later operation.
    fn write_until_cut(mut self, operations: u64, outcome: CutOutcome) -> Image {
        let flash = self.ftl.flash_mut().nand_mut();
        *flash.plan_mut() = FaultPlan::cut(flash.ops() + operations, outcome);
        let pending = loop {
            let lpn = self.random();
            if let Some(pending) = self.write(lpn) {
                break Some(pending);
            }
        };
        let mut image = self.image();
        image.pending = pending;
        *image.flash.plan_mut() = FaultPlan::default();
        image.flash.power_up();
        image
    }

    fn image(&mut self) -> Image {
        let flash = self.ftl.flash_mut().nand_mut().snapshot();
        Image { flash, config: self.config, versions: self.versions.clone(), pending: None }
    }

    /// Every page reads as it was written; an `excused` one may read as something else of its own,
    /// or not at all.
    fn read_all(&mut self, excused: Option<u32>) {
        for lpn in 0..self.versions.len() as u32 {
            let mut got = Stamp::UNWRITTEN;
            let outcome = self.ftl.read(Lpn(lpn), &mut got);
            let version = self.versions[lpn as usize];
            if excused == Some(lpn) {
                assert!(outcome.is_err() || got.lpn == Lpn(lpn), "logical page {lpn} reads {got:?}");
            } else {
                outcome.unwrap_or_else(|error| panic!("logical page {lpn}: {error}"));
                assert_eq!(got, Stamp { lpn: Lpn(lpn), version }, "logical page {lpn}");
            }
        }
    }
}

impl Image {
    fn damage(&mut self, ppn: Ppn, blemish: Blemish) {
        self.flash.damage(ppn, blemish);
    }

    /// Every programmed page with its spare area, the youngest first, as the device knows it under
    /// all faults.
    fn spares(&mut self) -> Vec<(Ppn, Spare)> {
        let pages = self.flash.geometry().pages();
        let nand = self.flash.inner_mut();
        let mut spares: Vec<(Ppn, Spare)> =
            (0..pages).filter_map(|ppn| Some((Ppn(ppn), nand.read_spare(Ppn(ppn)).unwrap()?))).collect();
        spares.sort_unstable_by_key(|(_, spare)| u64::MAX - spare.seq);
        spares
    }

    fn youngest(&mut self, kind: PageKind) -> (Ppn, Spare) {
        self.spares().into_iter().find(|(_, spare)| spare.kind == kind).unwrap()
    }

    fn mount(self) -> (Disk, MountReport) {
        let mount = ftl_named("gecko").unwrap().mount.unwrap();
        let (ftl, report) =
            mount(Flash::new(self.flash), &self.config).unwrap_or_else(|error| panic!("mounting: {error}"));
        let next = self.versions.iter().max().unwrap() + 1;
        (Disk { ftl, config: self.config, versions: self.versions, next, state: 7 }, report)
    }

    /// What a mount does more because a page cannot be read than if the page read as erased: pages
    /// read to find out what is there, pages read in all, blocks erased.
    fn work_for(&self, mute: Ppn) -> [u64; 3] {
        let [mut with, mut without] = [self.clone(), self.clone()];
        with.damage(mute, Blemish::Unreadable);
        without.damage(mute, Blemish::Blank);
        let work = |image: Self| {
            let steps = image.mount().1.steps;
            let finds = |name: &str| name.split(' ').next().is_some_and(|step| step.parse::<u32>().unwrap() <= 6);
            let found = steps.iter().filter(|step| finds(step.name)).map(|step| step.ops.reads).sum::<u64>();
            let reads = steps.iter().map(|step| step.ops.reads).sum::<u64>();
            [found, reads, steps.iter().map(|step| step.ops.erases).sum::<u64>()]
        };
        let (with, without) = (work(with), work(without));
        [0, 1, 2].map(|at| with[at].saturating_sub(without[at]))
    }

    /// Mounts, and lives on: nothing of the excused page may come to light as another's, also after
    /// mounts, when what was erased is in use again.
    fn live_on(self, excused: Option<u32>) {
        let pending = self.pending;
        let mut disk = self.mount().0;
        disk.ftl.check().unwrap();
        if let Some((lpn, version)) = pending {
            let mut got = Stamp::UNWRITTEN;
            disk.ftl.read(Lpn(lpn), &mut got).unwrap();
            if got.version == version {
                disk.versions[lpn as usize] = version;
            }
        }
        disk.read_all(excused);
        for _ in 0..3 {
            for _ in 0..disk.versions.len() {
                let lpn = disk.random();
                if excused != Some(lpn) {
                    assert!(disk.write(lpn).is_none());
                }
            }
            disk.ftl.check().unwrap();
            disk = disk.image().mount().0;
            disk.ftl.check().unwrap();
            disk.read_all(excused);
        }
        (0..disk.versions.len() as u32).for_each(|lpn| assert!(disk.write(lpn).is_none()));
        disk.write_some(ENTRIES);
        disk.ftl.check().unwrap();
        disk.read_all(None);
    }
}

/// What a cut tore is known to be nothing: a mount reads no more of the table for it, however large
/// the table is. Only if it is the first page of its block, every translation page is read.
#[test]
fn a_torn_page_costs_no_reads_of_the_table() {
    for translation_pages in [8, 24, 72] {
        let mut torn = [0; 2];
        let mut disk = Disk::new(translation_pages, 40);
        for operations in 0..40 {
            let mut image = disk.write_until_cut(operations, CutOutcome::Torn);
            let (ppn, spare) = image.spares()[0];
            // A cut can come in an erase as well.
            if spare.kind == PageKind::User && image.flash.blemish(ppn) == Some(Blemish::Unreadable) {
                let first = ppn.0 % PAGES_PER_BLOCK == 0;
                let [reads, in_all, erases] = image.work_for(ppn);
                assert_eq!(reads >= u64::from(translation_pages), first, "{ppn}: {reads} reads");
                assert!(first || reads <= 2, "{ppn}: {reads} reads");
                // The block of the torn page is emptied and erased, so that no later mount finds
                // the page complete. Other blocks may have to be collected to make room for that.
                let of_blocks = u64::from(2 * PAGES_PER_BLOCK) * erases.max(1);
                assert!(first || in_all <= 2 + of_blocks, "{ppn}: {in_all} reads, {erases} erases in all");
                torn[usize::from(first)] += 1;
                let mut again = image.clone().mount().0.image();
                if !first && translation_pages == 72 && again.spares().contains(&(ppn, spare)) {
                    let [reads, ..] = again.work_for(ppn);
                    assert!(reads < 72, "{ppn}: {reads} reads although the store knows that it is dead");
                }
            }
            if operations % 10 == 0 && translation_pages == 8 {
                image.clone().live_on(None);
            }
            let pending = image.pending.take();
            disk = image.mount().0;
            if let Some((lpn, _)) = pending {
                disk.write(lpn);
            }
            disk.write_some(20);
        }
        assert!(torn[0] >= 10 && torn[1] >= 1, "{torn:?}");
    }
}

/// A page that was programmed before another is not what the cut tore: what is lost with it is
/// looked for.
#[test]
fn a_worn_page_is_not_taken_for_a_torn_one() {
    let mut disk = Disk::new(24, 40);
    for _ in 0..6 {
        disk.write_some(7);
        let mut image = disk.image();
        let spares = image.spares();
        // The youngest is the translation page of an entry that left the cache.
        let users =
            spares.iter().skip(1).filter(|(ppn, spare)| spare.kind == PageKind::User && ppn.0 % PAGES_PER_BLOCK > 0);
        for (ppn, spare) in users.take(3) {
            assert!(image.work_for(*ppn)[0] >= 24, "{ppn}");
            let mut worn = image.clone();
            worn.damage(*ppn, Blemish::Unreadable);
            worn.live_on(Some(spare.tag));
        }
    }
}

/// Its entries are made again from the spare areas of host data.
#[test]
fn a_translation_page_of_which_no_version_can_be_read_costs_nothing() {
    let mut disk = Disk::new(4, 20);
    disk.write_some(ENTRIES);
    let mut image = disk.image();
    let spares = image.spares();
    for page in 0..4 {
        let mut worn = image.clone();
        let versions = spares.iter().filter(|(_, spare)| spare.kind == PageKind::Translation && spare.tag == page);
        versions.for_each(|(ppn, _)| worn.damage(*ppn, Blemish::DataUnreadable));
        worn.live_on(None);
    }
}

/// What the youngest page of host data superseded is not erased as long as nothing was programmed
/// after it: that page can be worn when it is to be found, and then nobody knows whose it is.
#[test]
fn the_page_programmed_last_is_not_all_that_is_left() {
    let mut disk = Disk::new(4, 20);
    let mut erased = 0;
    for _ in 0..25 {
        disk.write_some(PAGES_PER_BLOCK / 2);
        let erases = disk.ftl.flash().counts().total().erases;
        // A collection ends with an erase, and the page that it moved last has no other copy then.
        if !disk.ftl.idle().unwrap() || disk.ftl.flash().counts().total().erases == erases {
            continue;
        }
        erased += 1;
        let mut image = disk.image();
        let (moved, spare) = image.youngest(PageKind::User);
        image.damage(moved, Blemish::Unreadable);
        image.clone().live_on(Some(spare.tag));
        // Nor may it be taken for the last because what came after it cannot be read either.
        let (after, _) = image.spares()[0];
        image.damage(after, Blemish::Unreadable);
        image.live_on(Some(spare.tag));
    }
    assert!(erased >= 5, "{erased} collections");
}

/// Beside a page that a cut tore there can be one that is worn.
#[test]
fn a_torn_page_does_not_hide_a_worn_one() {
    let mut disk = Disk::new(24, 40);
    let mut torn = 0;
    for _ in 0..60 {
        disk.write_some(PAGES_PER_BLOCK / 2);
        if !disk.ftl.idle().unwrap() {
            continue;
        }
        let mut image = disk.write_until_cut(0, CutOutcome::Torn);
        let users = image.spares().into_iter().filter(|(_, spare)| spare.kind == PageKind::User);
        let youngest: Vec<(Ppn, Spare)> = users.take(3).collect();
        let (worn, spare) = youngest[2];
        if image.flash.blemish(youngest[0].0) == Some(Blemish::Unreadable) && worn.0 + 2 == youngest[0].0.0 {
            let mut image = image.clone();
            image.damage(worn, Blemish::Unreadable);
            image.live_on(Some(spare.tag));
            torn += 1;
        }
        let pending = image.pending.take();
        disk = image.mount().0;
        if let Some((lpn, _)) = pending {
            disk.write(lpn);
        }
    }
    assert!(torn >= 5, "{torn} pages");
}

/// A page of the validity store that is alone in its block is all that says that the store has it.
/// What it made needless is erased behind it, so that its loss has to be seen.
#[test]
fn a_page_of_the_store_alone_in_its_block_is_missed() {
    let mut disk = Disk::new(4, 20);
    let (mut flushes, mut tried) = (0, 0);
    for _ in 0..60_000 {
        disk.write_some(1);
        let programs = disk.ftl.flash().counts().of(Purpose::Validity).programs;
        let (ppn, _) = match core::mem::replace(&mut flushes, programs) == programs {
            true => continue,
            false => disk.image().youngest(PageKind::Validity),
        };
        let erases = |disk: &Disk| {
            let counts = *disk.ftl.flash().counts();
            [Purpose::TranslationGc, Purpose::ValidityGc].iter().map(|purpose| counts.of(*purpose).erases).sum::<u64>()
        };
        let before = erases(&disk);
        let mut writes = if ppn.0 % PAGES_PER_BLOCK > 0 { 0..0 } else { 0..60 };
        if writes.any(|_| {
            disk.write_some(1);
            erases(&disk) > before
        }) {
            tried += 1;
            let mut image = disk.image();
            let (present, _) = image.youngest(PageKind::Validity);
            image.damage(present, Blemish::Unreadable);
            image.live_on(None);
        }
    }
    assert!(tried >= 5, "{tried}");
}

/// Of a block that is half erased nothing may be readable when a page in it dies, and everything
/// later. What was superseded does not come back.
#[test]
fn a_block_that_is_mute_for_a_while_brings_nothing_back() {
    let mut emptied = 0;
    for seed in 0..40 {
        let mut disk = Disk::new(1, 8);
        disk.write_some(seed);
        let lpn = disk.random();
        let holds = |(_, spare): &(Ppn, Spare)| spare.kind == PageKind::User && spare.tag == lpn;
        let (before, _) = disk.image().spares().into_iter().find(holds).unwrap();
        assert!(disk.write(lpn).is_none());
        // A mount settles the page programmed last, and with it its entry.
        (1..4).for_each(|next| assert!(disk.write((lpn + next) % ENTRIES).is_none()));
        // The entry is cached again by the mount, which cannot know whether the death was reported.
        disk = disk.image().mount().0;
        let block = before.0 / PAGES_PER_BLOCK * PAGES_PER_BLOCK;
        let damage = |disk: &mut Disk, blemish| {
            (block..block + PAGES_PER_BLOCK).for_each(|ppn| disk.ftl.flash_mut().nand_mut().damage(Ppn(ppn), blemish));
        };
        let is_erased = |disk: &Disk| disk.ftl.flash().nand().blemish(before).is_none();
        let written = |disk: &Disk| disk.ftl.flash().counts().of(Purpose::Translation).programs;
        let programs = written(&disk);
        damage(&mut disk, Blemish::Unreadable);
        for _ in 0..20 {
            if written(&disk) == programs && !is_erased(&disk) {
                let other = disk.random();
                if other != lpn {
                    assert!(disk.write(other).is_none());
                }
            }
        }
        if is_erased(&disk) || written(&disk) == programs {
            continue;
        }
        damage(&mut disk, Blemish::Vanishing(u8::MAX));
        assert!(disk.write((lpn + 4) % ENTRIES).is_none());
        // If the death was reported before power went, there is nothing to do.
        emptied += u32::from(is_erased(&disk));
        disk.ftl.check().unwrap();
        disk.image().mount().0.read_all(None);
    }
    assert!(emptied >= 10, "{emptied} blocks were emptied before a collector could believe what is in them");
}
