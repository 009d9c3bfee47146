//! Two levels of mapping: what is written often costs no merges, what is written in sequence stays
//! mapped by block, and a page changes its level with the workload.

#![allow(clippy::unwrap_used)]

use super::one_die;
use ftl::{Config, Flash, Ftl, Maps, Purpose};
use nand::{Capabilities, Lpn, SimNand, Stamp};
use openftl_ftl as ftl;

const PAGES: u32 = 16;
const LOGICAL_BLOCKS: u32 = 64;
const LOGICAL: u32 = PAGES * LOGICAL_BLOCKS;
const BLOCKS: u32 = 80;

struct Disk {
    ftl: Box<dyn Ftl<SimNand>>,
    versions: Vec<u16>,
}

impl Disk {
    /// Every page written once.
    fn full(name: &str) -> Self {
        let geometry = one_die(BLOCKS, PAGES, 512);
        let device = SimNand::new(geometry, Capabilities::MODERN);
        let config = Config { maps: Maps::NonVolatile, ..Config::new(LOGICAL) };
        let ftl = (table::find(name).unwrap().format)(Flash::new(device), &config).unwrap();
        let mut disk = Self { ftl, versions: vec![0; LOGICAL as usize] };
        disk.copied(0..LOGICAL);
        disk
    }

    /// Pages copied while these were written; every page is read back.
    fn copied(&mut self, lpns: impl Iterator<Item = u32>) -> u64 {
        let before = self.ftl.flash().counts().of(Purpose::Gc).programs;
        for lpn in lpns {
            let version = &mut self.versions[lpn as usize];
            *version += 1;
            self.ftl.write(Lpn(lpn), &Stamp { lpn: Lpn(lpn), version: *version }).unwrap();
        }
        self.ftl.check().unwrap();
        for (lpn, &version) in (0..).map(Lpn).zip(&self.versions) {
            let mut got = Stamp::UNWRITTEN;
            self.ftl.read(lpn, &mut got).unwrap();
            assert_eq!(got, Stamp { lpn, version });
        }
        self.ftl.flash().counts().of(Purpose::Gc).programs - before
    }
}

/// One page of every logical block, `offset` of it, so many times.
fn one_of_each(offset: u32, times: u32) -> impl Iterator<Item = u32> {
    (0..times * LOGICAL_BLOCKS).map(move |i| i % LOGICAL_BLOCKS * PAGES + offset)
}

#[test]
fn pages_written_often_cost_no_merges_wherever_they_are() {
    let [mut two_level, mut by_block] = ["aftl", "bast"].map(Disk::full);
    // The first time round each is overwritten for the first time, in more logical blocks than
    // there are log blocks.
    let [first, other] = [&mut two_level, &mut by_block].map(|disk| disk.copied(one_of_each(3, 1)));
    assert!(first > 0 && other > 0, "{first} {other}");
    two_level.copied(one_of_each(3, 2));
    let writes = 100 * u64::from(LOGICAL_BLOCKS);
    let [often, other] = [&mut two_level, &mut by_block].map(|disk| disk.copied(one_of_each(3, 100)));
    assert!(often < writes && other > 10 * writes, "{often} and {other} pages copied for {writes} writes");
}

#[test]
fn what_is_written_in_sequence_stays_mapped_by_block() {
    let mut disk = Disk::full("aftl");
    assert_eq!(disk.copied((0..5 * LOGICAL).map(|i| i % LOGICAL)), 0);
}

#[test]
fn pages_that_are_no_longer_written_often_make_room_for_others() {
    let mut disk = Disk::full("aftl");
    let mut fresh = Disk::full("aftl");
    fresh.copied(one_of_each(9, 10));
    let alone = fresh.copied(one_of_each(9, 50));
    (0..9).for_each(|offset| {
        disk.copied(one_of_each(offset, 20));
    });
    disk.copied(one_of_each(9, 10));
    let after_others = disk.copied(one_of_each(9, 50));
    assert!(after_others <= alone + alone / 10, "{after_others} pages copied after others were hot, {alone} without");
    // And sequences are mapped by block again.
    disk.copied(0..LOGICAL);
    disk.copied(0..LOGICAL);
    assert_eq!(disk.copied(0..LOGICAL), 0);
}
