//! The mapping tree in flash: what sequential and random data cost, with more inner nodes than
//! frames.

#![allow(clippy::unwrap_used)]

use super::{ftl_named, one_die};
use ftl::{Config, Flash, Ftl, FtlError, Purpose};
use nand::faults::{CutOutcome, FaultPlan, Faulty};
use nand::{Capabilities, Lpn, NandError, SimNand, Stamp};
use openftl_ftl as ftl;

const PAGES: u32 = 120_000;

fn device() -> SimNand {
    let geometry = one_die(2600, 64, 512);
    SimNand::new(geometry, Capabilities::MODERN)
}

fn config() -> Config {
    Config { cache_entries: 512, ..Config::new(PAGES) }
}

fn disk() -> Box<dyn Ftl<SimNand>> {
    let config = Config { validity: Some("ram-bitmap"), ..config() };
    (table::find::<SimNand>("uftl").unwrap().format)(Flash::new(device()), &config).unwrap()
}

/// Pages of the mapping table programmed since `before`.
fn programs(ftl: &dyn Ftl<SimNand>, before: u64) -> u64 {
    let counts = ftl.flash().counts();
    counts.of(Purpose::Translation).programs + counts.of(Purpose::TranslationGc).programs - before
}

fn write(ftl: &mut dyn Ftl<SimNand>, lpn: u32, version: u16) {
    ftl.write(Lpn(lpn), &Stamp { lpn: Lpn(lpn), version }).unwrap();
}

#[test]
fn sequential_data_costs_next_to_nothing_and_random_data_is_found_again() {
    let mut ftl = disk();
    (0..PAGES).for_each(|lpn| write(&mut *ftl, lpn, 1));
    let sequential = programs(&*ftl, 0);
    assert!(sequential <= u64::from(PAGES) / 400, "{sequential} programs for {PAGES} pages in sequence");
    ftl.check().unwrap();

    let mut versions = vec![1; PAGES as usize];
    let mut state = 7_u32;
    let before = programs(&*ftl, 0);
    for version in 2..5 {
        for _ in 0..PAGES {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let lpn = (state >> 8) % PAGES;
            write(&mut *ftl, lpn, version);
            versions[lpn as usize] = version;
        }
        ftl.check().unwrap();
    }
    let random = programs(&*ftl, before);
    assert!(random > 50 * sequential, "{random} programs for random data, {sequential} for sequential data");
    for (lpn, version) in (0..).zip(versions) {
        let mut got = Stamp::UNWRITTEN;
        ftl.read(Lpn(lpn), &mut got).unwrap();
        assert_eq!(got, Stamp { lpn: Lpn(lpn), version });
    }
    (0..PAGES).for_each(|lpn| write(&mut *ftl, lpn, 9));
    ftl.trim(Lpn(0), PAGES).unwrap();
    ftl.check().unwrap();
}

/// Pages of the mapping table read while every logical page is read in sequence, all of them
/// written at random before.
fn table_reads_in_sequence(name: &str) -> u64 {
    let config = Config { validity: None, ..config() };
    let mut ftl = (table::find::<SimNand>(name).unwrap().format)(Flash::new(device()), &config).unwrap();
    let mut lpn = 0;
    for _ in 0..PAGES {
        // A step without a common divisor: every page once.
        lpn = (lpn + 77_771) % PAGES;
        write(&mut *ftl, lpn, 1);
    }
    let before = ftl.flash().counts().of(Purpose::Translation).reads;
    for lpn in 0..PAGES {
        let mut got = Stamp::UNWRITTEN;
        ftl.read(Lpn(lpn), &mut got).unwrap();
        assert_eq!(got, Stamp { lpn: Lpn(lpn), version: 1 }, "{name}");
    }
    ftl.check().unwrap();
    ftl.flash().counts().of(Purpose::Translation).reads - before
}

#[test]
fn a_cached_leaf_is_read_once_for_all_its_neighbours() {
    let (uftl, ib) = (table_reads_in_sequence("uftl"), table_reads_in_sequence("ib-ftl"));
    assert!(uftl > u64::from(PAGES) * 9 / 10, "{uftl} reads without leaves in frames");
    assert!(ib < u64::from(PAGES) / 20, "{ib} reads with leaves in frames");
}

type Device = Faulty<SimNand>;

/// Logical pages in an order that looks random, and trims among them, until power is gone; what
/// each page may read as.
fn work(ftl: &mut dyn Ftl<Device>, expected: &mut [Vec<u16>], version: u16) {
    let mut state = u32::from(version);
    loop {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let lpn = (state >> 8) % PAGES;
        let trims = state >> 26 == 0;
        let done = if trims { ftl.trim(Lpn(lpn), 1) } else { ftl.write(Lpn(lpn), &Stamp { lpn: Lpn(lpn), version }) };
        let after = if trims { 0 } else { version };
        match done {
            Ok(()) => expected[lpn as usize] = vec![after],
            Err(FtlError::Nand(NandError::PowerLost)) => return expected[lpn as usize].push(after),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Mounts, after an attempt that is cut short, and checks every page; without a battery pages may
/// be older, or lost.
fn comes_back(
    name: &str,
    config: &Config,
    device: &Device,
    expected: &mut [Vec<u16>],
    cut: u64,
) -> Box<dyn Ftl<Device>> {
    let mount = ftl_named(name).unwrap().mount.unwrap();
    let mut device = device.clone();
    *device.plan_mut() = FaultPlan::cut(device.ops() + cut, CutOutcome::Torn);
    let (mut ftl, report) = loop {
        match mount(Flash::new(device.clone()), config) {
            Ok(mounted) => break mounted,
            Err(FtlError::Nand(NandError::PowerLost)) => *device.plan_mut() = FaultPlan::default(),
            Err(error) => panic!("{name}: {error}"),
        }
    };
    *ftl.flash_mut().nand_mut().plan_mut() = FaultPlan::default();
    assert!(report.steps.iter().any(|step| step.ops.spare_reads > 0), "{name}: {report:?}");
    ftl.check().unwrap();
    for (lpn, versions) in (0..).map(Lpn).zip(expected) {
        let mut got = Stamp::UNWRITTEN;
        match ftl.read(lpn, &mut got) {
            Ok(()) => {}
            Err(FtlError::Lost { .. }) if !config.battery => continue,
            Err(error) => panic!("{name}: {error}"),
        }
        assert!(got == Stamp::UNWRITTEN || got.lpn == lpn, "{name}: {lpn} reads {got:?}");
        let version = if got == Stamp::UNWRITTEN { 0 } else { got.version };
        let older = !config.battery && name == "uftl";
        assert!(versions.contains(&version) || older, "{name}: {lpn} reads {got:?}, may be one of {versions:?}");
        *versions = vec![version];
    }
    ftl
}

#[test]
fn a_tree_with_more_inner_nodes_than_fit_ram_comes_back_after_power_loss() {
    for (name, battery) in [("uftl", true), ("uftl", false), ("ib-ftl", false)] {
        let config = Config { battery, ..config() };
        let device = Faulty::new(device(), FaultPlan::default());
        let mut ftl = (ftl_named(name).unwrap().format)(Flash::new(device), &config).unwrap();
        (0..PAGES).for_each(|lpn| ftl.write(Lpn(lpn), &Stamp { lpn: Lpn(lpn), version: 1 }).unwrap());
        let mut expected = vec![vec![1]; PAGES as usize];
        for round in 2..6_u16 {
            let (ops, length) = (ftl.flash().nand().ops(), if round == 2 { 150_000 } else { 7_001 });
            *ftl.flash_mut().nand_mut().plan_mut() = FaultPlan::cut(ops + length, CutOutcome::TornData);
            work(&mut *ftl, &mut expected, round);
            ftl.flash_mut().nand_mut().power_up();
            ftl.power_failing().unwrap();
            let device = ftl.into_flash().into_nand();
            ftl = comes_back(name, &config, &device, &mut expected, u64::from(round) * 37);
        }
    }
}

/// One leaf covers more dirty entries than a leaf has room for, so that most wait while it is
/// programmed.
#[test]
fn a_young_tree_comes_back_from_a_cut_at_any_operation() {
    for (name, battery, cache_entries, first) in [("uftl", true, 512, 500), ("ib-ftl", false, 4096, 400)] {
        let config = Config { battery, cache_entries, ..config() };
        for cut in 0..60 {
            let device = Faulty::new(device(), FaultPlan::default());
            let mut ftl = (ftl_named(name).unwrap().format)(Flash::new(device), &config).unwrap();
            let ops = ftl.flash().nand().ops();
            *ftl.flash_mut().nand_mut().plan_mut() = FaultPlan::cut(ops + first + cut, CutOutcome::Torn);
            let mut expected = vec![vec![0]; PAGES as usize];
            work(&mut *ftl, &mut expected, 1);
            ftl.flash_mut().nand_mut().power_up();
            ftl.power_failing().unwrap();
            comes_back(name, &config, &ftl.into_flash().into_nand(), &mut expected, 7 + cut);
        }
    }
}

/// The copy of a trimmed page is among the youngest, and only its leaf says that it does not count.
#[test]
fn a_trim_of_a_page_just_written_outlasts_a_cut() {
    let config = Config { battery: false, ..config() };
    let entry = table::find::<SimNand>("ib-ftl").unwrap();
    let mut ftl = (entry.format)(Flash::new(device()), &config).unwrap();
    (0..20).for_each(|lpn| write(&mut *ftl, lpn, 1));
    ftl.trim(Lpn(7), 1).unwrap();
    write(&mut *ftl, 8, 2);
    let (mut ftl, _) = (entry.mount.unwrap())(ftl.into_flash(), &config).unwrap();
    for (lpn, version) in [(6, 1), (7, 0), (8, 2)] {
        let mut got = Stamp::UNWRITTEN;
        ftl.read(Lpn(lpn), &mut got).unwrap();
        let written = Stamp { lpn: Lpn(lpn), version };
        assert_eq!(got, if version == 0 { Stamp::UNWRITTEN } else { written });
    }
}
