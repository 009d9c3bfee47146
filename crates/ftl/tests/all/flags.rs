//! Flags that an FTL sets in the spare areas of programmed pages, and what a mount makes of them.

#![allow(clippy::unwrap_used)]

use super::{capabilities, ftl_named, one_die};
use ftl::{Config, Flash, Ftl, FtlError, Purpose, ftls};
use nand::faults::{Blemish, FaultPlan, Faulty};
use nand::{Capabilities, Lpn, Nand, PageKind, Ppn, SimNand, Stamp};
use openftl_ftl as ftl;

type Device = Faulty<SimNand>;

/// Entries of a translation page.
const ENTRIES: u32 = 512 / 4;
const LOGICAL: u32 = 6 * ENTRIES;

fn config() -> Config {
    Config { cache_entries: 64, ..Config::new(LOGICAL) }
}

fn device(capabilities: Capabilities) -> Device {
    Faulty::new(SimNand::new(one_die(160, 8, 512), capabilities), FaultPlan::default())
}

fn entry(name: &str) -> ftls::Entry<Device> {
    ftl_named(name).unwrap()
}

fn format(name: &str) -> Box<dyn Ftl<Device>> {
    let entry = entry(name);
    (entry.format)(Flash::new(device(capabilities(&entry.info))), &config()).unwrap()
}

fn mount(name: &str, ftl: Box<dyn Ftl<Device>>) -> Box<dyn Ftl<Device>> {
    (entry(name).mount.unwrap())(Flash::new(ftl.into_flash().into_nand()), &config()).unwrap().0
}

fn write(ftl: &mut dyn Ftl<Device>, lpn: u32, version: u16) {
    ftl.write(Lpn(lpn), &Stamp { lpn: Lpn(lpn), version }).unwrap();
}

fn read(ftl: &mut dyn Ftl<Device>, lpn: u32) -> Result<u16, FtlError> {
    let mut got = Stamp::UNWRITTEN;
    ftl.read(Lpn(lpn), &mut got).map(|()| got.version)
}

/// The copies of a logical page on flash and whether they have a flag, the oldest first.
fn copies(nand: &mut Device, lpn: u32) -> Vec<(Ppn, bool)> {
    let mut copies = Vec::new();
    for ppn in (0..nand.geometry().pages()).map(Ppn) {
        if let Some(spare) = nand.inner_mut().read_spare(ppn).unwrap()
            && (spare.kind, spare.tag) == (PageKind::User, lpn)
        {
            copies.push((spare.seq, ppn, !spare.flags.is_none()));
        }
    }
    copies.sort_unstable();
    copies.into_iter().map(|(_, ppn, flagged)| (ppn, flagged)).collect()
}

fn flag_programs(ftl: &dyn Ftl<Device>, purpose: Purpose) -> u64 {
    ftl.flash().counts().of(purpose).flag_programs
}

#[test]
fn a_flagged_copy_never_counts_again_also_where_the_copy_after_it_cannot_be_read() {
    for (name, answer) in [("ftrm", None), ("lazy", Some(1))] {
        let mut ftl = format(name);
        write(&mut *ftl, 7, 1);
        write(&mut *ftl, 7, 2);
        let found = copies(ftl.flash_mut().nand_mut(), 7);
        let flags: Vec<bool> = found.iter().map(|copy| copy.1).collect();
        assert_eq!(flags, [answer.is_none(), false], "{name}");
        // To a mount without flags it looks like a page whose program power loss cut short.
        ftl.flash_mut().nand_mut().damage(found[1].0, Blemish::Unreadable);
        let mut ftl = mount(name, ftl);
        match (read(&mut *ftl, 7), answer) {
            (Ok(got), Some(version)) => assert_eq!(got, version, "{name}"),
            (Err(FtlError::Lost { lpn: Lpn(7) }), None) => {}
            (got, _) => panic!("{name}: {got:?}"),
        }
        ftl.check().unwrap();
    }
}

#[test]
fn each_variant_sets_the_flags_of_its_upkeep() {
    let counted: Vec<u64> = ["ftrm-base", "ftrm-victim", "ftrm"]
        .into_iter()
        .map(|name| {
            let mut ftl = format(name);
            (0..LOGICAL).for_each(|lpn| write(&mut *ftl, lpn, 1));
            let before = flag_programs(&*ftl, Purpose::Translation);
            // Twenty reads of each translation page, one page after the other.
            for at in 0..20 * 6 {
                assert_eq!(read(&mut *ftl, at / 20 * ENTRIES + at % 20), Ok(1), "{name}");
            }
            assert_eq!(flag_programs(&*ftl, Purpose::Validity), 0, "{name}: no page died");
            flag_programs(&*ftl, Purpose::Translation) - before
        })
        .collect();
    let [base, victim, write] = counted[..] else { panic!("three variants") };
    assert!(base > victim && base > write, "{counted:?}");
    assert!(victim > 0 && write > 0, "{counted:?}");
}

#[test]
fn a_mount_caches_entries_of_hot_pages_and_of_no_others() {
    for (name, hot_costs) in [("ftrm", 0), ("lazy", 1)] {
        let mut ftl = format(name);
        (0..LOGICAL).for_each(|lpn| write(&mut *ftl, lpn, 1));
        // A translation page that is neither the first nor the last is used all the time. What its
        // entries say leaves the ring meanwhile, so that it is programmed hot.
        (0..20).for_each(|at| write(&mut *ftl, 2 * ENTRIES + at, 1));
        for at in 0..100 {
            write(&mut *ftl, 5 * ENTRIES + at, 1);
            assert_eq!(read(&mut *ftl, 2 * ENTRIES + at % 20), Ok(1), "{name}");
        }
        let mut ftl = mount(name, ftl);
        let mut misses = |lpn: u32| {
            let before = ftl.flash().counts().of(Purpose::Translation).reads;
            assert_eq!(read(&mut *ftl, lpn), Ok(1), "{name}");
            ftl.flash().counts().of(Purpose::Translation).reads - before
        };
        assert_eq!(misses(2 * ENTRIES + 5), hot_costs, "{name}: hot");
        assert_eq!(misses(4 * ENTRIES + 5), 1, "{name}: cold");
    }
}

#[test]
fn a_device_that_sets_no_flags_is_refused_by_name_and_number() {
    for name in ["ftrm", "ftrm-base", "ftrm-victim"] {
        for times in 0..2 {
            let capabilities = Capabilities { spare_reprograms: times, ..capabilities(&entry(name).info) };
            let made = (entry(name).format)(Flash::new(device(capabilities)), &config()).map(drop);
            let Err(FtlError::Unsupported { ftl, reason }) = made else { panic!("{name}: {made:?}") };
            assert_eq!(ftl, name);
            assert!(reason.contains(&format!("the device can {times} times")), "{reason}");
        }
    }
}

#[test]
fn a_table_in_ram_is_whole_after_a_mount_that_moved_more_than_a_translation_page_covers() {
    let entry = entry("mapblock");
    let nand = || SimNand::new(one_die(36, 96, 512), capabilities(&entry.info));
    let config = Config::new(15 * 96);
    let mut ftl = (entry.format)(Flash::new(Faulty::new(nand(), FaultPlan::default())), &config).unwrap();
    let (mut versions, mut state, mut most_moved) = (vec![0_u16; 15 * 96], 7_u32, 0);
    for version in 1..400 {
        for _ in 0..37 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let lpn = (state >> 8) % config.logical_pages;
            write(&mut *ftl, lpn, version);
            versions[lpn as usize] = version;
        }
        ftl = (entry.mount.unwrap())(Flash::new(ftl.into_flash().into_nand()), &config).unwrap().0;
        most_moved = most_moved.max(ftl.flash().counts().total().programs);
        for (lpn, version) in (0..).zip(&versions) {
            assert_eq!(read(&mut *ftl, lpn), Ok(*version), "page {lpn} after {version} writes");
        }
    }
    assert!(most_moved > u64::from(ENTRIES), "mounts moved {most_moved} pages at most");
}
