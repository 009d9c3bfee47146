//! A trim that was flushed stays: the page reads as zeros after any power cut.

#![allow(clippy::unwrap_used)]

use super::{capabilities, every_ftl, ftl_named, log_block_ftls, one_die};
use ftl::ftls::{Durability, Entry, Info};
use ftl::{Config, Flash, Ftl, FtlError, Purpose, validity};
use nand::faults::{Blemish, Cut, CutOutcome, FaultPlan, Faulty};
use nand::{BlockId, Capabilities, Lpn, Nand, PageKind, Ppn, SimNand, Stamp};
use openftl_ftl as ftl;

type Device = Faulty<SimNand>;

const BLOCKS: u32 = 120;
const PAGES: u32 = 8;
const LOGICAL: u32 = 400;

fn device(entry: &Entry<Device>, page_bytes: u32) -> Device {
    let geometry = one_die(BLOCKS, PAGES, page_bytes);
    Faulty::new(SimNand::new(geometry, capabilities(&entry.info)), FaultPlan::default())
}

struct Disk {
    entry: Entry<Device>,
    config: Config,
    ftl: Box<dyn Ftl<Device>>,
    versions: Vec<u16>,
    state: u32,
}

impl Disk {
    fn new(entry: Entry<Device>, config: Config, page_bytes: u32) -> Self {
        let ftl = (entry.format)(Flash::new(device(&entry, page_bytes)), &config).unwrap();
        let versions = vec![0; config.logical_pages as usize];
        Self { entry, config, ftl, versions, state: 7 }
    }

    fn random(&mut self) -> u32 {
        self.state = self.state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.state >> 8) % self.config.logical_pages
    }

    fn write(&mut self, lpn: u32) {
        let version = self.versions.iter().max().unwrap() + 1;
        self.ftl.write(Lpn(lpn), &Stamp { lpn: Lpn(lpn), version }).unwrap();
        self.versions[lpn as usize] = version;
    }

    fn trim(&mut self, lpn: u32, count: u32) {
        let count = count.min(self.config.logical_pages - lpn);
        self.ftl.trim(Lpn(lpn), count).unwrap();
        self.versions[lpn as usize..(lpn + count) as usize].fill(0);
    }

    /// Fills the disk, writes at random, trims now and then, flushes last.
    fn age(&mut self, writes: u32) {
        (0..self.config.logical_pages).for_each(|lpn| self.write(lpn));
        for turn in 0..writes {
            let lpn = self.random();
            self.write(lpn);
            if turn.is_multiple_of(50) {
                let lpn = self.random();
                self.trim(lpn, 9);
            }
        }
        self.ftl.flush().unwrap();
    }

    /// Flushes while power is cut at the flush's operation `at`; `false` if the flush has fewer.
    fn flush_and_cut(&mut self, at: u64, outcome: CutOutcome) -> bool {
        let nand = self.ftl.flash_mut().nand_mut();
        let at = nand.ops() + at;
        nand.plan_mut().cuts = vec![Cut { at, outcome }];
        let cut = self.ftl.flush().is_err();
        self.ftl.flash_mut().nand_mut().plan_mut().cuts.clear();
        cut
    }

    /// Cuts power, does something to the device, and mounts.
    fn cut(&mut self, harm: impl FnOnce(&mut Device)) {
        let entry = ftl_named(self.entry.info.name).unwrap();
        let nothing = (self.entry.format)(Flash::new(device(&entry, 512)), &self.config).unwrap();
        let mut nand = core::mem::replace(&mut self.ftl, nothing).into_flash().into_nand();
        nand.power_up();
        harm(&mut nand);
        self.ftl = (self.entry.mount.unwrap())(Flash::new(nand), &self.config).unwrap().0;
        self.ftl.check().unwrap();
    }

    fn verify(&mut self, what: &str) {
        for (lpn, &version) in (0..).map(Lpn).zip(&self.versions) {
            let mut got = Stamp { lpn: Lpn(0), version: 1 };
            self.ftl.read(lpn, &mut got).unwrap_or_else(|error| panic!("{what}: {error}"));
            let wanted = if version == 0 { Stamp::UNWRITTEN } else { Stamp { lpn, version } };
            assert_eq!(got, wanted, "{what}: {lpn}");
        }
    }

    /// A cut may have undone the trim of a page.
    fn may_have_come_back(&mut self, lpn: u32, version: u16) {
        let mut got = Stamp::UNWRITTEN;
        self.ftl.read(Lpn(lpn), &mut got).unwrap();
        if got != Stamp::UNWRITTEN {
            self.versions[lpn as usize] = version;
        }
    }

    fn programs(&self) -> u64 {
        self.ftl.flash().counts().total().programs
    }
}

/// Every FTL, `page` over every page-validity store. Those with a battery have to be told before
/// power goes.
fn disks(page_bytes: u32) -> Vec<(String, Disk)> {
    let mut disks = Vec::new();
    let without_battery = |entry: &Entry<Device>| entry.mount.is_some() && entry.info.durable != Durability::Battery;
    for entry in every_ftl().into_iter().filter(without_battery) {
        disks.push((entry.info.name.into(), Disk::new(entry, Config::new(LOGICAL), page_bytes)));
    }
    for store in validity::table().iter().filter(|store| store.name != "ram-bitmap") {
        let config = Config { validity: Some(store.name), ..Config::new(LOGICAL) };
        let entry = ftl_named("page").unwrap();
        disks.push((format!("page over {}", store.name), Disk::new(entry, config, page_bytes)));
    }
    disks
}

#[test]
fn a_flushed_trim_stays_trimmed_after_a_cut_whatever_was_collected_before_and_since() {
    // Pages of a size of which eight bits a byte cover a small part of the disk, so that the trim
    // map has several.
    for (what, mut disk) in disks(512) {
        disk.age(1500);
        disk.cut(|_| {});
        disk.verify(&what);
        for round in 0..4 {
            for _ in 0..400 {
                let lpn = disk.random();
                disk.write(lpn);
            }
            let lpn = disk.random();
            disk.trim(lpn, 30);
            disk.ftl.flush().unwrap();
            disk.cut(|_| {});
            disk.verify(&format!("{what} in round {round}"));
        }
    }
}

/// The block with the last version may be gone by the time of the cut: older versions are not back
/// without it.
#[test]
fn a_cut_undoes_a_trim_of_a_page_mapped_disk_entirely_or_not_at_all() {
    for store in validity::table() {
        let config = Config { validity: Some(store.name), ..Config::new(LOGICAL) };
        let mut disk = Disk::new(ftl_named("page").unwrap(), config, 512);
        disk.age(1000);
        let (mut undone, mut kept) = (0, 0);
        for round in 0..60 {
            let lpn = disk.random();
            disk.write(lpn);
            (0..30).for_each(|_| {
                let other = disk.random();
                disk.write(other);
            });
            disk.write(lpn);
            let last = disk.versions[lpn as usize];
            disk.ftl.flush().unwrap();
            disk.trim(lpn, 1);
            for _ in 0..80 * (round % 20) {
                let other = (lpn + 1 + disk.random() % (LOGICAL - 1)) % LOGICAL;
                disk.write(other);
            }
            disk.cut(|_| {});
            disk.may_have_come_back(lpn, last);
            undone += u32::from(disk.versions[lpn as usize] != 0);
            kept += u32::from(disk.versions[lpn as usize] == 0);
            disk.verify(&format!("{} in round {round}", store.name));
        }
        assert!(undone > 0 && kept > 0, "{}: {undone} undone, {kept} kept", store.name);
    }
}

#[test]
fn a_page_written_after_a_flushed_trim_stays_written_while_the_trim_map_is_moved() {
    for store in validity::table() {
        let config = Config { validity: Some(store.name), ..Config::new(LOGICAL) };
        let mut moved = 0;
        // The map is moved only from a block that it filled, after one of these numbers of flushes.
        for flushes in 1..=PAGES {
            let mut disk = Disk::new(ftl_named("page").unwrap(), config, 512);
            disk.age(400);
            for part in 0..flushes {
                disk.trim(100 + 20 * part, 20);
                disk.ftl.flush().unwrap();
            }
            // No trim from here on: what programs the map is the collector alone.
            for _ in 0..1000 {
                let lpn = disk.random();
                disk.write(lpn);
            }
            moved += disk.ftl.flash().counts().of(Purpose::TranslationGc).programs;
            for _ in 0..3 {
                disk.cut(|_| {});
                disk.verify(store.name);
                for _ in 0..500 {
                    let lpn = disk.random();
                    disk.write(lpn);
                }
            }
        }
        assert!(moved > 0, "{}: the trim map was not moved", store.name);
    }
}

/// The first page of the map's block, an older version, is unreadable: what lives behind it is not
/// taken for host data.
#[test]
fn a_page_of_the_trim_map_behind_an_unreadable_one_stays_one() {
    let mut disk = Disk::new(ftl_named("page").unwrap(), Config::new(LOGICAL), 512);
    (0..LOGICAL).for_each(|lpn| disk.write(lpn));
    for lpn in [100, 200, 300] {
        disk.trim(lpn, 50);
        disk.ftl.flush().unwrap();
    }
    (0..20).for_each(|lpn| disk.write(lpn));
    disk.cut(|nand| {
        let geometry = *nand.geometry();
        let mut pages = (0..geometry.blocks()).map(|block| geometry.page_at(BlockId(block), 0));
        let is_map = |nand: &mut Device, ppn| {
            matches!(nand.read_spare(ppn), Ok(Some(spare)) if spare.kind == PageKind::Translation)
        };
        let first = pages.find(|ppn| is_map(nand, *ppn)).unwrap();
        nand.damage(first, Blemish::Unreadable);
    });
    for round in 0..3 {
        disk.verify(&format!("round {round}"));
        for _ in 0..2000 {
            let lpn = disk.random() % 100;
            disk.write(lpn);
        }
        disk.cut(|_| {});
    }
    disk.verify("in the end");
}

#[test]
fn a_flush_programs_nothing_unless_something_was_trimmed_since() {
    for (what, mut disk) in
        disks(512).into_iter().filter(|(what, disk)| what.starts_with("page") || disk.entry.info.validity.is_none())
    {
        (0..LOGICAL).for_each(|lpn| disk.write(lpn));
        let before = disk.programs();
        disk.ftl.flush().unwrap();
        assert_eq!(disk.programs(), before, "{what} flushes writes");
        disk.trim(10, 3);
        disk.ftl.flush().unwrap();
        let after = disk.programs();
        assert!(after > before, "{what} does not flush a trim");
        disk.ftl.flush().unwrap();
        disk.trim(10, 3);
        disk.ftl.flush().unwrap();
        assert_eq!(disk.programs(), after, "{what} flushes a trim of what was trimmed");
    }
}

/// The map has more pages than a block, and what has to be programmed before an erase must fit into
/// one.
#[test]
fn trims_in_more_parts_of_the_disk_than_a_block_has_pages_are_kept_in_time() {
    const PART: u32 = 512 * 8;
    const PARTS: u32 = 12;
    const BLOCK: u32 = 4;
    let entry = ftl_named("page").unwrap();
    let config = Config::new(PARTS * PART);
    let geometry = one_die(PARTS * PART / BLOCK + 60, BLOCK, 512);
    let nand = Faulty::new(SimNand::new(geometry, Capabilities::MODERN), FaultPlan::default());
    let mut ftl = (entry.format)(Flash::new(nand), &config).unwrap();
    for lpn in (0..PARTS * PART).map(Lpn) {
        ftl.write(lpn, &Stamp { lpn, version: 1 }).unwrap();
    }
    let before = ftl.flash().counts().total().programs;
    for part in 0..PARTS {
        ftl.trim(Lpn(part * PART + 7), 1).unwrap();
        let kept = ftl.flash().counts().total().programs - before;
        assert!(u64::from(part + 1) < kept + u64::from(BLOCK), "{kept} pages are kept of {} trims", part + 1);
    }
    for turn in 0..20_000 {
        let lpn = Lpn(turn * 7919 % (PARTS * PART));
        ftl.write(lpn, &Stamp { lpn, version: 2 }).unwrap();
    }
    ftl.check().unwrap();
}

/// One of the two checkpoints is lost: what was flushed is in the other.
#[test]
fn a_flushed_trim_stays_trimmed_if_either_checkpoint_cannot_be_read() {
    for lost in 0..2 {
        for (what, mut disk) in disks(512).into_iter().filter(|(_, disk)| disk.entry.info.validity.is_none()) {
            disk.age(700);
            disk.cut(|_| {});
            disk.trim(40, 60);
            disk.ftl.flush().unwrap();
            disk.cut(|nand| {
                let geometry = *nand.geometry();
                let firsts = (0..geometry.blocks()).map(|block| geometry.page_at(BlockId(block), 0));
                let mut found: Vec<_> = firsts
                    .filter_map(|ppn| nand.read_spare(ppn).ok().flatten().map(|spare| (spare, ppn)))
                    .filter(|(spare, _)| spare.kind == PageKind::Checkpoint && spare.tag == 0)
                    .collect();
                found.sort_by_key(|(spare, _)| u64::MAX - spare.seq);
                nand.damage(found[lost].1, Blemish::Unreadable);
            });
            disk.verify(&format!("{what} without checkpoint {lost}"));
        }
    }
}

/// A checkpoint whose last page reads once is found at mount; what comes after must not depend on
/// it.
#[test]
fn a_flushed_trim_stays_trimmed_when_a_checkpoint_fades_and_the_next_is_torn() {
    for name in disks(512).into_iter().filter(|(_, disk)| disk.entry.info.validity.is_none()).map(|(name, _)| name) {
        for (between, first, second) in [0, 60]
            .into_iter()
            .flat_map(|n| (0..40).flat_map(move |first| (0..6).map(move |second| (n, first, second))))
        {
            let mut disk = Disk::new(ftl_named(&name).unwrap(), Config::new(LOGICAL), 512);
            (0..LOGICAL).for_each(|lpn| disk.write(lpn));
            disk.trim(100, 50);
            disk.ftl.flush().unwrap();
            (0..20).for_each(|lpn| disk.write(lpn));
            disk.trim(200, 5);
            if !disk.flush_and_cut(first, CutOutcome::TornOnce) {
                continue;
            }
            disk.cut(|_| {});
            // What the cut flush was to keep is there or not.
            (200..205).for_each(|lpn| disk.write(lpn));
            (0..between).for_each(|lpn| disk.write(5 * lpn % 100));
            let trimmed = disk.versions[300..305].to_vec();
            disk.trim(300, 5);
            let cut = disk.flush_and_cut(second, CutOutcome::Torn);
            disk.cut(|_| {});
            for (lpn, version) in (300..).zip(trimmed).filter(|_| cut) {
                disk.may_have_come_back(lpn, version);
            }
            disk.verify(&format!("{name} with {between} writes, cut at {first} and {second}"));
        }
    }
}

/// Every free block of a disk as large as the device allows goes bad.
#[test]
fn a_flushed_trim_stays_trimmed_on_a_disk_that_can_only_be_read() {
    for (what, small) in disks(512) {
        let Info { name, validity, .. } = small.entry.info;
        if name != "page" && validity.is_some() {
            continue;
        }
        let fits = |logical_pages: u32| {
            let config = Config { logical_pages, ..small.config };
            let nand = device(&small.entry, 512);
            (small.entry.format)(Flash::new(nand), &config).is_ok().then_some(config)
        };
        let config = (1..BLOCKS).rev().find_map(|blocks| fits(blocks * PAGES)).unwrap();
        let mut disk = Disk::new(ftl_named(name).unwrap(), config, 512);
        disk.age(300);
        disk.cut(|nand| {
            let geometry = *nand.geometry();
            for block in (0..BLOCKS).map(BlockId) {
                if (0..PAGES).all(|at| matches!(nand.read_spare(geometry.page_at(block, at)), Ok(None))) {
                    nand.mark_bad(block).unwrap();
                }
            }
        });
        assert!(disk.ftl.read_only().is_some(), "{what} can be written");
        disk.verify(&what);
    }
}

/// The newest page of host data that holds a logical page.
fn newest(nand: &mut Device, lpn: u32) -> Ppn {
    let pages = (0..BLOCKS * PAGES).map(Ppn);
    let spares = pages.filter_map(|ppn| Some((nand.inner_mut().read_spare(ppn).ok()??, ppn)));
    let copies = spares.filter(|(spare, _)| spare.kind == PageKind::User && spare.tag == lpn);
    copies.max_by_key(|(spare, _)| spare.seq).unwrap().1
}

/// A mount found pages in a block that was half erased when power went in a trim, and nothing told
/// so.
#[test]
fn a_page_that_fades_after_a_flush_is_an_error_and_never_unwritten() {
    // After few writes no checkpoint is on flash before the flush.
    let names = log_block_ftls().map(|entry| entry.info.name);
    for (name, written) in names.flat_map(|name| [(name, 2 * PAGES), (name, LOGICAL)]) {
        let entry = ftl_named(name).unwrap();
        let (mount, config) = (entry.mount.unwrap(), Config::new(LOGICAL));
        let mut disk = Disk::new(entry, config, 512);
        (0..written).for_each(|lpn| disk.write(lpn));
        let versions = disk.versions;
        let (mut ftl, _) = mount(Flash::new(disk.ftl.into_flash().into_nand()), &config).unwrap();
        ftl.flush().unwrap();
        let mut nand = ftl.into_flash().into_nand();
        let ppn = newest(&mut nand, 5);
        let block = nand.geometry().block_of(ppn);
        for offset in 0..PAGES {
            let ppn = nand.geometry().page_at(block, offset);
            nand.damage(ppn, Blemish::Unreadable);
        }
        for mounts in 1..4 {
            let (mut ftl, _) = mount(Flash::new(nand), &config).unwrap();
            let mut lost = 0;
            for (lpn, &version) in (0..).map(Lpn).zip(&versions) {
                let mut got = Stamp::UNWRITTEN;
                match ftl.read(lpn, &mut got) {
                    Ok(()) if version == 0 => assert_eq!(got, Stamp::UNWRITTEN, "{name}, mount {mounts}"),
                    Ok(()) => assert_eq!(got, Stamp { lpn, version }, "{name}, mount {mounts}"),
                    Err(FtlError::Lost { .. }) => lost += 1,
                    Err(error) => panic!("{name}, mount {mounts}: {error}"),
                }
            }
            assert_eq!(lost, PAGES, "{name}, {written} pages written, mount {mounts}");
            ftl.flush().unwrap();
            nand = ftl.into_flash().into_nand();
        }
    }
}
