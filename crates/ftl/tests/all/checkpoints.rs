//! Mounts of FTLs with log blocks: from a checkpoint, and without one.

#![allow(clippy::unwrap_used)]

use super::{capabilities, every_ftl, ftl_named, log_block_ftls, one_die};
use ftl::config::Maps;
use ftl::ftls::Entry;
use ftl::{Config, Flash, MountReport};
use nand::faults::{Blemish, FaultPlan, Faulty};
use nand::{BlockId, Lpn, Nand, PageKind, SimNand, Stamp};
use openftl_ftl as ftl;

type Device = Faulty<SimNand>;

const BLOCKS: u32 = 1024;
const PAGES: u32 = 64;
const LOGICAL: u32 = 900 * PAGES;

fn device(entry: &Entry<Device>, blocks: u32, pages_per_block: u32) -> Device {
    let geometry = one_die(blocks, pages_per_block, 2048);
    Faulty::new(SimNand::new(geometry, capabilities(&entry.info)), FaultPlan::default())
}

fn lose_checkpoints(nand: &mut Device) {
    let geometry = *nand.geometry();
    for ppn in (0..geometry.blocks()).map(|block| geometry.page_at(BlockId(block), 0)) {
        if matches!(nand.read_spare(ppn), Ok(Some(spare)) if spare.kind == PageKind::Checkpoint) {
            nand.damage(ppn, Blemish::Unreadable);
        }
    }
}

/// Fills the disk, writes at random, mounts; then the same with every checkpoint unreadable.
fn mounts(name: &str) -> [MountReport; 2] {
    let entry = ftl_named(name).unwrap();
    let config = Config::new(LOGICAL);
    let mut ftl = (entry.format)(Flash::new(device(&entry, BLOCKS, PAGES)), &config).unwrap();
    let mut versions = vec![0_u16; LOGICAL as usize];
    let mut state = 5_u32;
    let random = (0..60_000).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % LOGICAL
    });
    for (lpn, version) in (0..LOGICAL).chain(random).zip((1..60_000).cycle()) {
        ftl.write(Lpn(lpn), &Stamp { lpn: Lpn(lpn), version }).unwrap();
        versions[lpn as usize] = version;
    }
    let mut nand = ftl.into_flash().into_nand();
    [false, true].map(|lost| {
        if lost {
            lose_checkpoints(&mut nand);
        }
        let (mut ftl, report) = (entry.mount.unwrap())(Flash::new(nand.clone()), &config).unwrap();
        ftl.check().unwrap();
        for lpn in (0..LOGICAL).map(Lpn) {
            let mut got = Stamp::UNWRITTEN;
            ftl.read(lpn, &mut got).unwrap();
            assert_eq!(got, Stamp { lpn, version: versions[lpn.index()] });
        }
        report
    })
}

#[test]
fn a_checkpoint_spares_a_mount_most_of_the_device_and_without_one_nothing_is_lost() {
    for name in log_block_ftls().map(|entry| entry.info.name) {
        let [with, without] = mounts(name);
        let spares = |report: &MountReport| report.steps.iter().map(|step| step.ops.spare_reads).sum::<u64>();
        let reads = |report: &MountReport| report.steps.iter().map(|step| step.ops.reads).sum::<u64>();
        let programs = |report: &MountReport| report.steps.iter().map(|step| step.ops.programs).sum::<u64>();
        println!(
            "{name}: {} spare areas, {} pages, {} programs; without: {}, {}, {}",
            spares(&with),
            reads(&with),
            programs(&with),
            spares(&without),
            reads(&without),
            programs(&without)
        );
        assert!(without.steps.iter().any(|step| step.name == "scan every spare area"), "{name}: {without:?}");
        assert!(with.steps.iter().any(|step| step.name == "roll forward"), "{name}: {with:?}");
        assert!(spares(&with) * 100 < spares(&without) * 60, "{name}: {with:?}, {without:?}");
    }
}

#[test]
fn maps_in_non_volatile_memory_leave_nothing_to_mount_and_cost_no_checkpoints() {
    for entry in log_block_ftls() {
        let name = entry.info.name;
        let config = Config { maps: Maps::NonVolatile, ..Config::new(LOGICAL) };
        let mut ftl = (entry.format)(Flash::new(device(&entry, BLOCKS, PAGES)), &config).unwrap();
        for lpn in (0..40_000).map(Lpn) {
            ftl.write(lpn, &Stamp { lpn, version: 1 }).unwrap();
        }
        assert_eq!(ftl.flash().counts().of(ftl::Purpose::Checkpoint).programs, 0, "{name}");
        let Err(error) = (entry.mount.unwrap())(ftl.into_flash(), &config) else { panic!("{name} was mounted") };
        assert!(error.to_string().contains("non-volatile"), "{error}");
    }
}

/// Without a checkpoint trimmed pages can come back: logical blocks that were mapped by page then
/// count as such again, more of them than there is to be room for.
#[test]
fn trimmed_pages_that_come_back_do_not_make_the_page_mapped_area_too_large() {
    const LOGICAL: u32 = 64 * 8;
    let (mut returned, config) = (0, Config::new(LOGICAL));
    for (row, seed) in (0..every_ftl().len()).flat_map(|row| (0..20_u32).map(move |seed| (row, seed))) {
        let [.., ref entry] = every_ftl()[..=row] else { continue };
        let (Some(mount), None) = (entry.mount, entry.info.validity) else { continue };
        let mut ftl = (entry.format)(Flash::new(device(entry, 80, 8)), &config).unwrap();
        let (mut written, mut state) = (vec![0_u16; LOGICAL as usize], seed);
        for version in 1..3000_u16 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let lpn = (state >> 8) % LOGICAL;
            if state >> 31 == 0 {
                let count = 6.min(LOGICAL - lpn);
                ftl.trim(Lpn(lpn), count).unwrap();
                written[lpn as usize..(lpn + count) as usize].fill(0);
            } else {
                ftl.write(Lpn(lpn), &Stamp { lpn: Lpn(lpn), version }).unwrap();
                written[lpn as usize] = version;
            }
        }
        let mut nand = ftl.into_flash().into_nand();
        lose_checkpoints(&mut nand);
        let what = format!("{} with seed {seed}", entry.info.name);
        let (mut ftl, _) = mount(Flash::new(nand), &config).unwrap_or_else(|error| panic!("{what}: {error}"));
        ftl.check().unwrap_or_else(|error| panic!("{what}: {error}"));
        for (lpn, version) in (0..).map(Lpn).zip(written) {
            let mut got = Stamp::UNWRITTEN;
            ftl.read(lpn, &mut got).unwrap();
            returned += u32::from(version == 0 && got != Stamp::UNWRITTEN);
            assert!(
                version == 0 || got == Stamp { lpn, version },
                "{what}: {lpn} reads {got:?}, not version {version}"
            );
        }
    }
    assert!(returned > 0, "no trimmed page came back");
}
