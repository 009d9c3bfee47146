//! Every FTL on a device of which block after block goes bad, until nothing can be written: what
//! was acknowledged stays readable, while power is on, after a cut, and after every mount.

#![allow(clippy::unwrap_used)]

use super::{capabilities, every_ftl, one_die};
use ftl::{Config, Flash, Ftl, FtlError, Shortage, ftls, validity};
use nand::{BlockId, Cut, CutOutcome, FaultPlan, Faulty, Lpn, NandError, Pairing, SimNand, Stamp};
use openftl_ftl as ftl;

type Device = Faulty<SimNand>;
type Entry = ftls::Entry<Device>;

const BLOCKS: u32 = 72;
const PAGES: u32 = 150;

/// What every NAND made today can do, and the order of programs that an FTL needs.
fn device(entry: &Entry) -> Device {
    let geometry = one_die(BLOCKS, 8, 512);
    Faulty::new(SimNand::new(geometry, capabilities(&entry.info)), FaultPlan::default())
}

/// Every FTL, with every page-validity store that it can be formatted with.
fn compositions() -> Vec<(Entry, Config)> {
    let config = Config { cache_entries: 12, ..Config::new(PAGES) };
    let all = || every_ftl().into_iter();
    let own = all().map(|entry| (entry, config));
    let others = validity::table().iter().flat_map(|store| {
        let other = |entry: &Entry| entry.info.validity.is_some_and(|own| own != store.name);
        all().filter(other).map(|entry| (entry, Config { validity: Some(store.name), ..config }))
    });
    own.chain(others).collect()
}

/// SplitMix64.
struct Rng(u64);

impl Rng {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ z >> 31) >> 16) as u32 % end
    }
}

/// What each page may read as: while power is on one of these; after a cut, if it was trimmed, any
/// version that it had, or an error.
struct Page {
    versions: Vec<u16>,
    trimmed: bool,
    /// Writes that failed since the last that did not.
    failed: Vec<u16>,
}

struct Disk {
    ftl: Box<dyn Ftl<Device>>,
    pages: Vec<Page>,
    next: u16,
    /// A block goes bad about every so many requests.
    gap: u32,
    battery: bool,
    what: String,
}

impl Disk {
    fn write(&mut self, lpn: u32) -> Result<(), FtlError> {
        self.next = self.next.checked_add(1).unwrap_or_else(|| panic!("{}: it does not wear out", self.what));
        let outcome = self.ftl.write(Lpn(lpn), &Stamp { lpn: Lpn(lpn), version: self.next });
        let page = &mut self.pages[lpn as usize];
        match outcome {
            Ok(()) => *page = Page { versions: vec![self.next], trimmed: false, failed: Vec::new() },
            Err(_) => {
                page.versions.push(self.next);
                page.failed.push(self.next);
            }
        }
        outcome
    }

    fn trim(&mut self, lpn: u32, count: u32) -> Result<(), FtlError> {
        let outcome = self.ftl.trim(Lpn(lpn), count);
        for page in &mut self.pages[lpn as usize..(lpn + count) as usize] {
            page.trimmed = true;
            if outcome.is_ok() {
                page.versions.clear();
            }
            page.versions.push(0);
        }
        outcome
    }

    /// Reads a page and holds the FTL to it. `mounted`: for the first time since a mount.
    fn read(&mut self, lpn: u32, mounted: bool) -> Result<(), FtlError> {
        let (page, what) = (&mut self.pages[lpn as usize], &self.what);
        let mut got = Stamp::UNWRITTEN;
        match self.ftl.read(Lpn(lpn), &mut got) {
            Ok(()) => {
                let version = if got == Stamp::UNWRITTEN { 0 } else { got.version };
                let mine = version == 0 || got.lpn.0 == lpn;
                let late = self.battery && page.failed.contains(&version);
                let allowed = page.versions.contains(&version) || (mounted && (page.trimmed || late));
                assert!(mine && allowed, "{what}: {lpn} reads {got:?}, may be {:?}", page.versions);
                // A write that failed is there or not, and may be after the next cut.
                if mounted {
                    page.versions = vec![version];
                }
            }
            Err(FtlError::Nand(NandError::Uncorrectable { .. }) | FtlError::Lost { .. }) if page.trimmed => {}
            Err(FtlError::Nand(NandError::PowerLost)) => return Err(NandError::PowerLost.into()),
            Err(error) => panic!("{what}: reading {lpn}: {error}"),
        }
        Ok(())
    }

    fn read_all(&mut self, mounted: bool) {
        (0..PAGES).for_each(|lpn| self.read(lpn, mounted).unwrap());
        self.ftl.check().unwrap_or_else(|error| panic!("{}: {error}", self.what));
    }

    fn plan(&mut self) -> &mut FaultPlan {
        self.ftl.flash_mut().nand_mut().plan_mut()
    }

    /// Uses the disk while its blocks go bad, until an error.
    fn wear_out(&mut self, rng: &mut Rng) -> FtlError {
        loop {
            if rng.below(self.gap) == 0 {
                let block = BlockId(rng.below(BLOCKS));
                self.plan().failing_blocks.push(block);
            }
            if rng.below(8 * self.gap) == 0 {
                let op = self.ftl.flash().nand().ops() + u64::from(rng.below(8));
                self.plan().failing_programs.push(op);
            }
            let lpn = rng.below(PAGES);
            let outcome = match rng.below(16) {
                0 => self.trim(lpn, rng.below(4).min(PAGES - lpn)),
                1 => self.ftl.idle().map(drop),
                2 => self.read(lpn, false),
                3..8 => self.write(lpn / 8),
                _ => self.write(lpn),
            };
            if let Err(error) = outcome {
                return error;
            }
        }
    }

    /// Nothing can be written, everything can be read, and no flash is touched.
    fn is_read_only(&mut self, mounted: bool) {
        let Shortage { bad_blocks, blocks, .. } = self.ftl.read_only().unwrap_or_else(|| panic!("{}", self.what));
        assert!(bad_blocks > 0 && blocks == BLOCKS, "{}", self.what);
        self.read_all(mounted);
        let before = self.ftl.flash().counts().total();
        for lpn in (0..PAGES).map(Lpn) {
            let refused = |outcome: Result<(), FtlError>| matches!(outcome, Err(FtlError::NoSpace(_)));
            assert!(refused(self.ftl.write(lpn, &Stamp { lpn, version: 1 })), "{}", self.what);
            assert!(refused(self.ftl.trim(lpn, 1)), "{}", self.what);
        }
        assert!(matches!(self.ftl.write(Lpn(PAGES), &Stamp::UNWRITTEN), Err(FtlError::OutOfRange { .. })));
        assert_eq!(self.ftl.idle(), Ok(false));
        // Trims that are only in RAM cannot be kept any more, and a flush says so.
        let flushed = self.ftl.flush();
        assert!(matches!(flushed, Ok(()) | Err(FtlError::NoSpace(_))), "{}: {flushed:?}", self.what);
        self.read_all(false);
        let after = self.ftl.flash().counts().total();
        assert_eq!((after.programs, after.erases), (before.programs, before.erases), "{}", self.what);
    }

    /// Cuts power, if it is not gone, and mounts; whether the disk can only be read.
    fn mount(self, entry: &Entry, config: &Config) -> (Self, bool) {
        let Self { mut ftl, pages, next, gap, battery, what } = self;
        ftl.flash_mut().nand_mut().power_up();
        ftl.flash_mut().nand_mut().plan_mut().cuts.clear();
        match ftl.power_failing() {
            Ok(()) | Err(FtlError::NoSpace(_)) => {}
            Err(error) => panic!("{what}: saving: {error}"),
        }
        let (ftl, report) = (entry.mount.unwrap())(ftl.into_flash(), config)
            .unwrap_or_else(|error| panic!("{what}: mounting: {error}"));
        assert_eq!(ftl.read_only(), report.read_only, "{what}");
        (Self { ftl, pages, next, gap, battery, what }, report.read_only.is_some())
    }
}

fn fresh(entry: &Entry, config: &Config, gap: u32, what: String) -> Option<Disk> {
    match (entry.format)(Flash::new(device(entry)), config) {
        Ok(ftl) => {
            let pages = (0..PAGES).map(|_| Page { versions: vec![0], trimmed: false, failed: Vec::new() }).collect();
            let battery = entry.info.durable == ftls::Durability::Battery;
            Some(Disk { ftl, pages, next: 0, gap, battery, what })
        }
        Err(FtlError::Unsupported { .. }) => None,
        Err(error) => panic!("{what}: {error}"),
    }
}

fn mountable(entry: &Entry, config: &Config) -> bool {
    entry.mount.is_some() && (config.validity.is_none() || entry.info.name == "page")
}

#[test]
fn a_disk_that_cannot_be_written_any_more_can_be_read() {
    for (entry, config) in compositions() {
        for (seed, gap) in [(1, 40), (2, 40), (3, 12), (4, 12), (5, 3), (6, 3), (7, 1)] {
            let what = format!("{} {:?}, seed {seed}", entry.info.name, config.validity);
            let Some(mut disk) = fresh(&entry, &config, gap, what) else { continue };
            let (mut rng, mut mounts) = (Rng(seed), 0);
            while mounts < 2 {
                if disk.ftl.read_only().is_none() {
                    let error = disk.wear_out(&mut rng);
                    let FtlError::NoSpace(Shortage { bad_blocks, needed, .. }) = error else {
                        panic!("{}: {error}", disk.what)
                    };
                    // A block is found to be bad when it is erased, several at once if need be.
                    let enough = bad_blocks + needed + 12 <= BLOCKS;
                    assert!(gap < 12 || !enough, "{}: {error}", disk.what);
                    disk.is_read_only(false);
                }
                if !mountable(&entry, &config) {
                    break;
                }
                let read_only;
                (disk, read_only) = disk.mount(&entry, &config);
                disk.read_all(true);
                if read_only {
                    disk.is_read_only(true);
                    mounts += 1;
                }
            }
        }
    }
}

#[test]
fn a_device_that_wears_out_may_lose_power_at_any_time() {
    let mut read_only_mounts = 0;
    for (entry, config) in compositions().into_iter().filter(|(entry, config)| mountable(entry, config)) {
        for seed in (0..40).chain([223, 524, 583]) {
            let what = format!("{} {:?}, seed {seed}", entry.info.name, config.validity);
            let mut rng = Rng(seed);
            let gap = [40, 12, 3][rng.below(3) as usize];
            let Some(mut disk) = fresh(&entry, &config, gap, what) else { continue };
            disk.plan().seed = seed;
            disk.plan().pairing = Pairing::NONE;
            loop {
                let at = disk.ftl.flash().nand().ops() + u64::from(rng.below(1500));
                let outcomes: Vec<CutOutcome> =
                    CutOutcome::PLAIN.into_iter().filter(|outcome| *outcome != CutOutcome::PartnerLost).collect();
                let outcome = outcomes[rng.below(outcomes.len() as u32) as usize];
                disk.plan().cuts = vec![Cut { at, outcome }];
                let error = disk.wear_out(&mut rng);
                let starved = matches!(error, FtlError::NoSpace(_));
                assert!(starved || error == NandError::PowerLost.into(), "{}: {error}", disk.what);
                disk.plan().cuts.clear();
                let read_only;
                (disk, read_only) = disk.mount(&entry, &config);
                read_only_mounts += u32::from(read_only);
                if read_only {
                    disk.is_read_only(true);
                    break;
                }
                disk.read_all(true);
            }
        }
    }
    assert!(read_only_mounts >= 11 * 40, "every mountable FTL ends so");
}
