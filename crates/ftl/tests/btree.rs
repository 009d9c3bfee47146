//! The mapping tree in flash: what sequential and random data cost, with more inner nodes than frames.

#![allow(clippy::unwrap_used)]

use ftl::{Config, Flash, Ftl, Purpose, ftls};
use nand::geometry::Dimensions;
use nand::{Capabilities, Geometry, Lpn, SimNand, Stamp};
use openftl_ftl as ftl;

const PAGES: u32 = 120_000;

fn disk() -> Box<dyn Ftl<SimNand>> {
    let dimensions = Dimensions {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks: 2600,
        pages_per_block: 64,
        page_bytes: 512,
        spare_bytes: 32,
    };
    let device = SimNand::new(Geometry::new(dimensions).unwrap(), Capabilities::MODERN);
    let config = Config { cache_entries: 512, validity: Some("ram-bitmap"), ..Config::new(PAGES) };
    (ftls::find::<SimNand>("uftl").unwrap().format)(Flash::new(device), &config).unwrap()
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
