//! Mounts of a table with one entry a logical page: which pages of host data are looked at, and
//! what is in doubt.

#![allow(clippy::unwrap_used)]

use super::{ftl_named, one_die};
use ftl::{Config, Flash, Ftl, FtlError, ftls};
use nand::faults::{Blemish, Cut, CutOutcome, FaultPlan, Faulty};
use nand::{Capabilities, Lpn, Nand, NandError, PageKind, Ppn, SimNand, Stamp};
use openftl_ftl as ftl;
use proptest::prelude::*;

type Device = Faulty<SimNand>;

fn device(blocks: u32, pages_per_block: u32, plan: FaultPlan) -> Device {
    let geometry = one_die(blocks, pages_per_block, 512);
    Faulty::new(SimNand::new(geometry, Capabilities::MODERN), plan)
}

fn entry(name: &str) -> ftls::Entry<Device> {
    ftl_named(name).unwrap()
}

fn mount(name: &str, device: Device, config: &Config) -> Box<dyn Ftl<Device>> {
    (entry(name).mount.unwrap())(Flash::new(device), config).unwrap().0
}

/// A disk and what was written to it.
struct Disk {
    ftl: Box<dyn Ftl<Device>>,
    versions: Vec<u16>,
    writes: u16,
}

impl Disk {
    fn format(name: &str, device: Device, config: &Config) -> Self {
        let ftl = (entry(name).format)(Flash::new(device), config).unwrap();
        Self { ftl, versions: vec![0; config.logical_pages as usize], writes: 0 }
    }

    fn write(&mut self, lpn: u32) -> Result<(), FtlError> {
        self.writes += 1;
        self.ftl.write(Lpn(lpn), &Stamp { lpn: Lpn(lpn), version: self.writes })?;
        self.versions[lpn as usize] = self.writes;
        Ok(())
    }

    /// What a page reads as; 0 if it was never written.
    fn read(&mut self, lpn: u32) -> u16 {
        let mut stamp = Stamp::UNWRITTEN;
        self.ftl.read(Lpn(lpn), &mut stamp).unwrap();
        if stamp == Stamp::UNWRITTEN { 0 } else { stamp.version }
    }

    /// Mounts what is on flash; before that `harm` does what it will to the device.
    fn remount(self, name: &str, config: &Config, harm: impl FnOnce(&mut Device)) -> Self {
        let mut device = self.ftl.into_flash().into_nand();
        device.power_up();
        device.plan_mut().cuts.clear();
        harm(&mut device);
        Self { ftl: mount(name, device, config), ..self }
    }

    /// Every page reads as it was written last; the one whose write was cut short, as that too.
    fn check(&mut self, under_way: Option<u32>) -> Result<(), String> {
        for lpn in 0..self.versions.len() as u32 {
            let (got, expected) = (self.read(lpn), self.versions[lpn as usize]);
            if got != expected && !(under_way == Some(lpn) && got == self.writes) {
                return Err(format!("page {lpn} reads as {got}, should be {expected}"));
            }
        }
        self.ftl.check()
    }
}

/// A ring of `n` updates is `n` for caches of these sizes.
const CACHES: [(u32, u32); 4] = [(8, 4), (10, 5), (14, 7), (16, 8)];

#[test]
fn every_page_written_last_is_looked_at_whatever_the_ring_holds() {
    for pages_per_block in [2, 3, 4, 5] {
        for (cache_entries, ring) in CACHES {
            let config = Config { cache_entries, ..Config::new(ring + 3) };
            for count in 1..3 * ring + 2 {
                for outcome in [CutOutcome::NotDone, CutOutcome::Done, CutOutcome::Torn, CutOutcome::TornData] {
                    let mut disk = Disk::format("lazy", device(40, pages_per_block, FaultPlan::default()), &config);
                    // The page written first is not written again, so that its entry is the one
                    // that leaves the ring.
                    for nth in 0..count {
                        disk.write(nth % (ring + 3)).unwrap();
                    }
                    let nand = disk.ftl.flash_mut().nand_mut();
                    let at = nand.ops();
                    nand.plan_mut().cuts = vec![Cut { at, outcome }];
                    let last = count % (ring + 3);
                    assert!(disk.write(last).is_err());
                    let mut disk = disk.remount("lazy", &config, |_| {});
                    let what = format!("{pages_per_block} pages a block, ring of {ring}, {count} writes, {outcome:?}");
                    disk.check(Some(last)).unwrap_or_else(|error| panic!("{what}: {error}"));
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Programs that fail are pages without an update, also at the end of a block.
    #[test]
    fn pages_that_failed_take_no_place_in_the_window(
        writes in prop::collection::vec(0_u32..6, 1..60),
        failing in prop::collection::vec(0_u64..80, 0..4),
        pages_per_block in 2_u32..6,
        (cache_entries, _) in prop::sample::select(&CACHES[..]),
        outcome in prop::sample::select(vec![CutOutcome::Done, CutOutcome::Torn, CutOutcome::TornData, CutOutcome::Fading(2)]),
        seed: u64,
    ) {
        let plan = FaultPlan { odd_failures: true, seed, ..FaultPlan::default() };
        let config = Config { cache_entries, ..Config::new(6) };
        let mut disk = Disk::format("lazy", device(60, pages_per_block, plan), &config);
        let (last, writes) = writes.split_last().unwrap();
        let from = disk.ftl.flash().nand().ops();
        disk.ftl.flash_mut().nand_mut().plan_mut().failing_programs = failing.iter().map(|op| from + op).collect();
        for lpn in writes {
            disk.write(*lpn).unwrap();
        }
        let nand = disk.ftl.flash_mut().nand_mut();
        let at = nand.ops();
        nand.plan_mut().cuts = vec![Cut { at, outcome }];
        let _ = disk.write(*last);
        let mut disk = disk.remount("lazy", &config, |_| {});
        prop_assert_eq!(disk.check(Some(*last)), Ok(()));
    }
}

#[test]
fn a_page_whose_old_copy_could_not_be_looked_up_is_dead_and_stays_so() {
    let config = Config { cache_entries: 2, ..Config::new(400) };
    // Any error between the program and the entry: power that fails in a read, here at each of the
    // first operations of a write.
    for k in 0..6 {
        let plan = FaultPlan { count_reads: true, ..FaultPlan::default() };
        let mut disk = Disk::format("dftl", device(160, 4, plan), &config);
        for lpn in [0, 130, 260, 0, 130, 260, 1] {
            disk.write(lpn).unwrap();
        }
        let nand = disk.ftl.flash_mut().nand_mut();
        let at = nand.ops() + k;
        nand.plan_mut().cuts = vec![Cut { at, outcome: CutOutcome::Reading }];
        let written = disk.write(130);
        disk.ftl.flash_mut().nand_mut().plan_mut().cuts.clear();
        disk.ftl.flash_mut().nand_mut().power_up();
        if written.is_err() {
            disk.ftl.power_failing().unwrap();
        }
        let mut disk = disk.remount("dftl", &config, |_| {});
        disk.check(Some(130)).unwrap_or_else(|error| panic!("power failed at operation {k}: {error}"));
        let seen = disk.read(130);
        // Without what a battery would have saved now, the page that was not acknowledged does not
        // come back.
        let mut disk = disk.remount("dftl", &config, |_| {});
        assert_eq!(disk.read(130), seen, "power failed at operation {k}");
    }
}

#[test]
fn a_host_that_read_the_older_version_never_sees_the_newer_one() {
    for name in ["dftl", "lazy"] {
        for outcome in [CutOutcome::Done, CutOutcome::Fading(1), CutOutcome::Fading(3), CutOutcome::Flaky] {
            let config = Config { cache_entries: 8, ..Config::new(20) };
            let mut disk = Disk::format(name, device(40, 4, FaultPlan::default()), &config);
            (0..10).for_each(|lpn| disk.write(lpn).unwrap());
            let nand = disk.ftl.flash_mut().nand_mut();
            let at = nand.ops();
            nand.plan_mut().cuts = vec![Cut { at, outcome }];
            assert!(disk.write(3).is_err());
            disk.ftl.flash_mut().nand_mut().plan_mut().cuts.clear();
            disk.ftl.flash_mut().nand_mut().power_up();
            disk.ftl.power_failing().unwrap();
            let mut disk = disk.remount(name, &config, |_| {});
            let seen = disk.read(3);
            disk.write(12).unwrap();
            // This time the battery is dead.
            let mut disk = disk.remount(name, &config, |_| {});
            assert_eq!(disk.read(3), seen, "{name}, {outcome:?}");
        }
    }
}

#[test]
fn no_older_version_of_a_translation_page_stands_in_for_one_that_cannot_be_read() {
    for (name, blemish) in
        [("lazy", Blemish::Unreadable), ("lazy", Blemish::DataUnreadable), ("dftl", Blemish::Unreadable)]
    {
        let config = Config { cache_entries: 8, ..Config::new(200) };
        let mut disk = Disk::format(name, device(90, 4, FaultPlan::default()), &config);
        for nth in 0..300_u32 {
            disk.write(nth * 7 % 200).unwrap();
        }
        disk.ftl.power_failing().unwrap();
        let of_table = |nand: &mut Device| {
            let pages = (0..nand.geometry().pages()).map(Ppn);
            let found = pages.filter_map(|ppn| Some((ppn, nand.read_spare(ppn).ok()??)));
            let of_page = found.filter(|(_, spare)| spare.kind == PageKind::Translation && spare.tag == 0);
            of_page.max_by_key(|(_, spare)| spare.seq).unwrap().0
        };
        let mut disk = disk.remount(name, &config, |nand| {
            let newest = of_table(nand);
            nand.damage(newest, blemish);
        });
        disk.check(None).unwrap_or_else(|error| panic!("{name}, {blemish:?}: {error}"));
    }
}

#[test]
fn a_block_with_a_page_of_the_table_that_cannot_be_read_is_not_erased() {
    let config = Config { cache_entries: 8, ..Config::new(200) };
    for name in ["lazy", "dftl"] {
        let mut disk = Disk::format(name, device(90, 4, FaultPlan::default()), &config);
        (0..200).for_each(|lpn| disk.write(lpn).unwrap());
        let pages = disk.ftl.flash().nand().geometry().pages();
        let nand = disk.ftl.flash_mut().nand_mut();
        let found = (0..pages).map(Ppn).filter_map(|ppn| Some((ppn, nand.read_spare(ppn).ok()??)));
        let of_page = found.filter(|(_, spare)| spare.kind == PageKind::Translation && spare.tag == 1);
        let (page, _) = of_page.max_by_key(|(_, spare)| spare.seq).unwrap();
        nand.damage(page, Blemish::Unreadable);
        for nth in 0..2000_u32 {
            match disk.write(nth % 128) {
                Ok(()) | Err(FtlError::Nand(NandError::Uncorrectable { .. })) => {}
                Err(error) => panic!("{name}: {error}"),
            }
        }
        let mut stamp = Stamp::UNWRITTEN;
        let read = disk.ftl.read(Lpn(150), &mut stamp);
        assert_eq!(read, Err(FtlError::Nand(NandError::Uncorrectable { ppn: page })), "{name}");
    }
}

/// Programs the next page of a block that is being filled, behind the back of the FTL, with a spare
/// area that is younger than all others, and takes its data away.
fn forge(nand: &mut Device, kind: PageKind) {
    let geometry = *nand.geometry();
    let spares: Vec<_> =
        (0..geometry.pages()).filter_map(|ppn| Some((ppn, nand.read_spare(Ppn(ppn)).ok()??))).collect();
    let youngest = spares.iter().map(|(_, spare)| spare.seq).max().unwrap();
    let host = |kind| kind == PageKind::User;
    let has_room = |(ppn, spare): &&(u32, nand::Spare)| {
        let next = ppn + 1;
        host(spare.kind) == host(kind)
            && next % geometry.pages_per_block() != 0
            && spares.iter().all(|(other, _)| *other != next)
    };
    let (before, spare) = spares.iter().find(has_room).unwrap();
    let forged = nand::Spare { kind, tag: 0, seq: youngest + 500, aux: 0, ..*spare };
    nand.program_meta(Ppn(before + 1), &vec![0; geometry.page_bytes() as usize], &forged).unwrap();
    nand.damage(Ppn(before + 1), Blemish::DataUnreadable);
}

#[test]
fn a_page_that_cannot_be_read_makes_no_saved_state_stale() {
    for name in ["dftl", "uftl"] {
        let config = Config { cache_entries: 32, battery: true, ..Config::new(60) };
        let mut disk = Disk::format(name, device(60, 8, FaultPlan::default()), &config);
        (0..33).for_each(|lpn| disk.write(lpn).unwrap());
        disk.ftl.trim(Lpn(5), 1).unwrap();
        disk.versions[5] = 0;
        disk.ftl.power_failing().unwrap();
        let mut disk = disk.remount(name, &config, |nand| forge(nand, PageKind::User));
        disk.check(None).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn a_page_of_a_store_that_is_in_ram_proves_nothing() {
    let config = Config { cache_entries: 8, ..Config::new(60) };
    for name in ["dftl", "lazy"] {
        let mut disk = Disk::format(name, device(60, 8, FaultPlan::default()), &config);
        (0..33).for_each(|lpn| disk.write(lpn).unwrap());
        let nand = disk.ftl.flash_mut().nand_mut();
        let at = nand.ops();
        nand.plan_mut().cuts = vec![Cut { at, outcome: CutOutcome::TornData }];
        assert!(disk.write(7).is_err());
        let mut disk = disk.remount(name, &config, |nand| forge(nand, PageKind::Validity));
        disk.check(None).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}
