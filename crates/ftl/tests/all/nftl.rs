//! Chains of replacement blocks at fixed page offsets: how they grow, where pages go and what a
//! fold costs.

#![allow(clippy::unwrap_used)]

use super::one_die;
use ftl::{Config, Flash, Ftl, Maps, OpCounts, Purpose};
use nand::{Capabilities, Lpn, ProgramOrder, SimNand, Stamp};
use openftl_ftl as ftl;

const PAGES: u32 = 8;
const LOGICAL_BLOCKS: u32 = 8;
/// What data blocks and three blocks in reserve leave over.
const REPLACEMENTS: u32 = 40 - LOGICAL_BLOCKS - 3;

struct Disk {
    ftl: Box<dyn Ftl<SimNand>>,
    versions: [u16; (PAGES * LOGICAL_BLOCKS) as usize],
}

impl Disk {
    fn new() -> Self {
        let geometry = one_die(40, PAGES, 512);
        let capabilities = Capabilities { program_order: ProgramOrder::Free, ..Capabilities::MODERN };
        let config = Config { maps: Maps::NonVolatile, ..Config::new(PAGES * LOGICAL_BLOCKS) };
        let device = SimNand::new(geometry, capabilities);
        let ftl = (table::find("nftl").unwrap().format)(Flash::new(device), &config).unwrap();
        Self { ftl, versions: [0; (PAGES * LOGICAL_BLOCKS) as usize] }
    }

    fn write(&mut self, lpn: u32) {
        let version = &mut self.versions[lpn as usize];
        *version += 1;
        self.ftl.write(Lpn(lpn), &Stamp { lpn: Lpn(lpn), version: *version }).unwrap();
    }

    /// Pages copied by folds and blocks erased for them, every page read back.
    fn folds(&mut self) -> (u64, u64) {
        self.ftl.check().unwrap();
        for (lpn, version) in (0..).map(Lpn).zip(self.versions) {
            let mut got = Stamp::UNWRITTEN;
            self.ftl.read(lpn, &mut got).unwrap();
            assert_eq!(got, if version == 0 { Stamp::UNWRITTEN } else { Stamp { lpn, version } });
        }
        let OpCounts { programs, erases, .. } = *self.ftl.flash().counts().of(Purpose::Gc);
        (programs, erases)
    }
}

#[test]
fn pages_written_backwards_fill_their_blocks() {
    let mut disk = Disk::new();
    // As often as blocks can be replaced without a fold.
    for _ in 0..1 + REPLACEMENTS / LOGICAL_BLOCKS {
        (0..PAGES * LOGICAL_BLOCKS).rev().for_each(|lpn| disk.write(lpn));
    }
    assert_eq!(disk.folds(), (0, 0));
}

#[test]
fn a_page_goes_to_the_first_block_of_its_chain_that_takes_it() {
    let mut disk = Disk::new();
    // Page 6 makes the chain as long as it can be, and every other page finds its offset erased in
    // each of its blocks.
    (0..=REPLACEMENTS).for_each(|_| disk.write(6));
    for lpn in (0..PAGES).filter(|&lpn| lpn != 6) {
        (0..=REPLACEMENTS).for_each(|_| disk.write(lpn));
    }
    assert_eq!(disk.folds(), (0, 0));
}

#[test]
fn a_page_written_again_and_again_takes_a_block_each_time_and_one_fold_gives_all_back() {
    let mut disk = Disk::new();
    (0..=REPLACEMENTS).for_each(|_| disk.write(5));
    assert_eq!(disk.folds(), (0, 0));
    disk.write(5);
    // Its newest copy stays where it is: the last block of the chain is the data block now.
    assert_eq!(disk.folds(), (0, REPLACEMENTS.into()));
    (1..REPLACEMENTS).for_each(|_| disk.write(5));
    assert_eq!(disk.folds(), (0, REPLACEMENTS.into()));
}

#[test]
fn a_fold_fills_the_last_block_of_the_longest_chain_on_both_sides_of_what_is_there() {
    let mut disk = Disk::new();
    (0..PAGES * LOGICAL_BLOCKS).for_each(|lpn| disk.write(lpn));
    // Two blocks for logical block 2, the others for what is in logical block 7, a page of it at a
    // time.
    [19, 19].iter().for_each(|&lpn| disk.write(lpn));
    let others: Vec<u32> = [0, 1, 3, 4, 5, 6].iter().map(|lbn| lbn * PAGES + 4).collect();
    others.iter().for_each(|&lpn| disk.write(lpn));
    (8..REPLACEMENTS).for_each(|_| disk.write(60));
    assert_eq!(disk.folds(), (0, 0));
    // The chain of page 60 is the longest: seven pages come to the page in its last block.
    disk.write(19);
    let freed = REPLACEMENTS - 8;
    assert_eq!(disk.folds(), (7, freed.into()));
    // What was gathered is a data block with nothing behind it, and page 60 begins a chain again.
    disk.write(60);
    assert_eq!(disk.folds(), (7, freed.into()));
}
