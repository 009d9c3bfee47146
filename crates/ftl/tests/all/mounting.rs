//! Every FTL that can be mounted comes back from a cut at every flash operation of a small
//! workload.

#![allow(clippy::unwrap_used)]

use super::{capabilities, every_ftl, ftl_named, one_die};
use ftl::ftls::Entry;
use ftl::{Config, Flash};
use nand::faults::{Blemish, CutOutcome, FaultPlan, Faulty};
use nand::{Geometry, Lpn, Nand, NandError, PageKind, Ppn, SimNand, Stamp};
use openftl_ftl as ftl;

type Device = Faulty<SimNand>;

const PAGES: u32 = 64;

fn device(entry: &Entry<Device>, blocks: u32) -> Device {
    device_of(entry, one_die(blocks, 8, 512))
}

fn device_of(entry: &Entry<Device>, geometry: Geometry) -> Device {
    Faulty::new(SimNand::new(geometry, capabilities(&entry.info)), FaultPlan::default())
}

fn config() -> Config {
    Config { cache_entries: 8, ..Config::new(PAGES) }
}

/// Writes until power is gone or the workload ends; returns, for each page, the versions that a
/// read may return.
fn work(ftl: &mut dyn ftl::Ftl<Device>, from: &mut [Vec<u16>], seed: u32) -> bool {
    let mut state = seed;
    for i in 0..300_u16 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let lpn = (state >> 9) % PAGES;
        let version = (seed as u16) * 1000 + i + 1;
        match ftl.write(Lpn(lpn), &Stamp { lpn: Lpn(lpn), version }) {
            Ok(()) => from[lpn as usize] = vec![version],
            Err(ftl::FtlError::Nand(NandError::PowerLost)) => {
                from[lpn as usize].push(version);
                return false;
            }
            Err(error) => panic!("round {seed}, write {i}: {error}"),
        }
    }
    true
}

fn check(ftl: &mut dyn ftl::Ftl<Device>, expected: &mut [Vec<u16>], what: &str) {
    for (lpn, versions) in expected.iter_mut().enumerate() {
        let mut got = Stamp::UNWRITTEN;
        ftl.read(Lpn(lpn as u32), &mut got).unwrap_or_else(|e| panic!("{what}: {e}"));
        let version = if got == Stamp::UNWRITTEN { 0 } else { got.version };
        assert!(versions.contains(&version), "{what}: logical page {lpn} reads {got:?}, may be one of {versions:?}");
        *versions = vec![version];
    }
    ftl.check().unwrap_or_else(|e| panic!("{what}: {e}"));
}

#[test]
fn nothing_acknowledged_is_lost_whenever_power_is_cut() {
    for entry in every_ftl() {
        let Some(mount) = entry.mount else { continue };
        // What a battery saves takes blocks that have to be kept free.
        let blocks = if (entry.format)(Flash::new(device(&entry, 40)), &config()).is_ok() { 40 } else { 48 };
        for outcome in CutOutcome::PLAIN {
            if outcome == CutOutcome::PartnerLost {
                continue;
            }
            for k in (0..500).step_by(3) {
                let what = format!("{} cut at {k} ({outcome:?})", entry.info.name);
                let mut ftl = (entry.format)(Flash::new(device(&entry, blocks)), &config()).unwrap();
                let mut expected = vec![vec![0_u16]; PAGES as usize];
                let base = ftl.flash().nand().ops();
                *ftl.flash_mut().nand_mut().plan_mut() = FaultPlan::cut(base + k, outcome);
                let mut round = 1;
                while !work(&mut *ftl, &mut expected, round) && round < 6 {
                    ftl.flash_mut().nand_mut().power_up();
                    ftl.power_failing().unwrap_or_else(|e| panic!("{what}: saving: {e}"));
                    let mut device = ftl.into_flash().into_nand();
                    let again = device.ops() + k / 7 % 5;
                    *device.plan_mut() = FaultPlan::cut(again, outcome);
                    ftl = loop {
                        match mount(Flash::new(device.clone()), &config()) {
                            Ok((ftl, _)) => break ftl,
                            Err(ftl::FtlError::Nand(NandError::PowerLost)) => {
                                *device.plan_mut() = FaultPlan::default();
                            }
                            Err(error) => panic!("{what}: {error}"),
                        }
                    };
                    *ftl.flash_mut().nand_mut().plan_mut() = FaultPlan::default();
                    check(&mut *ftl, &mut expected, &what);
                    let again = ftl.flash().nand().ops() + k % 50;
                    *ftl.flash_mut().nand_mut().plan_mut() = FaultPlan::cut(again, outcome);
                    round += 1;
                }
            }
        }
    }
}

/// Figures of recovery leave this step out, by its name.
/// The first page of a block is its last one then, or next to it.
#[test]
fn disks_of_the_shortest_blocks_come_back() {
    for entry in every_ftl() {
        let Some(mount) = entry.mount else { continue };
        let mut shortest = Vec::new();
        for pages in 1..=3 {
            let nand = device_of(&entry, one_die(480, pages, 512));
            let Ok(mut ftl) = (entry.format)(Flash::new(nand), &config()) else { continue };
            shortest.push(pages);
            let mut expected = vec![vec![0_u16]; PAGES as usize];
            for round in 1..40 {
                let base = ftl.flash().nand().ops();
                *ftl.flash_mut().nand_mut().plan_mut() = FaultPlan::cut(base + 37 + u64::from(round), CutOutcome::Done);
                work(&mut *ftl, &mut expected, round);
                ftl.flash_mut().nand_mut().power_up();
                ftl.power_failing().unwrap();
                ftl = mount(Flash::new(ftl.into_flash().into_nand()), &config()).unwrap().0;
                check(&mut *ftl, &mut expected, &format!("{}, {pages} pages a block, round {round}", entry.info.name));
            }
        }
        assert!(shortest.contains(&3), "{} takes blocks of {shortest:?} pages", entry.info.name);
    }
}

#[test]
fn collections_at_the_end_of_a_mount_are_a_step_of_their_own() {
    let config = Config { cache_entries: 8, ..Config::new(200) };
    for name in ["dftl", "lazy", "gecko"] {
        let entry = ftl_named(name).unwrap();
        let ftl = (entry.format)(Flash::new(device(&entry, 64)), &config).unwrap();
        let (_, report) =
            entry.mount.unwrap()(ftl.into_flash(), &config).unwrap_or_else(|error| panic!("{name}: {error}"));
        let last = report.steps.last().unwrap().name;
        let number =
            last.strip_suffix(ftl::MountStep::FREE_BLOCKS).unwrap_or_else(|| panic!("{name} ends with `{last}`"));
        assert!(number.trim().parse::<u32>().is_ok(), "{name} ends with `{last}`");
    }
}

/// A page that can be read no more is not moved, and the place that it was to have is given to the
/// next: a mount takes a block whose first page reads as erased for an empty one.
#[test]
fn no_block_begins_with_a_page_that_was_left_out() {
    const PAGES: u32 = 200;
    let config = Config { cache_entries: 8, ..Config::new(PAGES) };
    for name in ["page", "dftl", "lazy", "uftl", "ib-ftl", "gecko"] {
        let entry = ftl_named(name).unwrap();
        let mut ftl = (entry.format)(Flash::new(device(&entry, 64)), &config).unwrap();
        let (mut state, mut worn) = (7_u32, 0);
        let mut random = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 9) % below
        };
        for version in 1..6000 {
            let lpn = Lpn(random(PAGES));
            ftl.write(lpn, &Stamp { lpn, version }).unwrap();
            if version % 10 > 0 {
                continue;
            }
            let nand = ftl.flash_mut().nand_mut();
            let ppn = Ppn(random(nand.geometry().pages()));
            if matches!(nand.inner_mut().read_spare(ppn), Ok(Some(spare)) if spare.kind == PageKind::User) {
                nand.damage(ppn, Blemish::DataUnreadable);
                worn += 1;
            }
            for first in (0..nand.geometry().pages()).step_by(8) {
                let mut holds = |ppn| nand.inner_mut().read_spare(Ppn(ppn)).unwrap().is_some();
                assert!(holds(first) || !(first + 1..first + 8).any(holds), "{name}: page {first}");
            }
        }
        assert!(worn > 100, "{worn} pages");
    }
}
