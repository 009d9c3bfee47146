//! Pages that go where they are aimed, and blocks that are collected bank by bank.

#![allow(clippy::unwrap_used)]

use ftl::{Config, Flash, Ftl, OpKind};
use nand::geometry::Dimensions;
use nand::{BlockId, Capabilities, Geometry, Lpn, Nand, PageKind, SimNand, Stamp};
use openftl_ftl as ftl;

const BANKS: u32 = 4;
const LOGICAL: u32 = 6000;
const PAGES: u32 = 16;

/// A disk of four banks that was overwritten at random.
fn played(name: &str) -> Box<dyn Ftl<SimNand>> {
    let dimensions = Dimensions {
        channels: 2,
        dies_per_channel: 2,
        planes_per_die: 1,
        blocks: 800,
        pages_per_block: PAGES,
        page_bytes: 512,
        spare_bytes: 32,
    };
    let nand = SimNand::new(Geometry::new(dimensions).unwrap(), Capabilities::MODERN);
    let config = Config { lanes: BANKS, cache_entries: 200, ..Config::new(LOGICAL) };
    let entry = table::table::<SimNand>().into_iter().find(|entry| entry.info.name == name).unwrap();
    let mut ftl = (entry.format)(Flash::new(nand), &config).unwrap();
    let mut state = 5_u32;
    for write in 0..4 * LOGICAL {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let lpn = Lpn(if write < LOGICAL { write } else { (state >> 8) % LOGICAL });
        ftl.write(lpn, &Stamp { lpn, version: 1 }).unwrap();
    }
    ftl.flash_mut().set_logging(true);
    ftl.flash_mut().drain_log();
    ftl
}

/// The banks of blocks to which host data was programmed, and of those erased that held any.
fn touched(ftl: &mut dyn Ftl<SimNand>, held_host: impl Fn(BlockId) -> bool) -> (Vec<u32>, Vec<u32>) {
    let geometry = *ftl.flash().nand().geometry();
    let ops: Vec<_> = ftl.flash_mut().drain_log().collect();
    let (mut programmed, mut erased) = (Vec::new(), Vec::new());
    for op in ops {
        let block = geometry.block_of(op.page);
        let bank = geometry.die_of(block);
        match op.kind {
            OpKind::Program | OpKind::Copy => {
                let spare = ftl.flash_mut().nand_mut().read_spare(op.page).unwrap();
                programmed.extend(spare.filter(|spare| spare.kind == PageKind::User).map(|_| bank));
            }
            OpKind::Erase if held_host(block) => erased.push(bank),
            _ => {}
        }
    }
    (programmed, erased)
}

#[test]
fn a_page_goes_to_the_bank_that_it_is_aimed_at() {
    for name in ["page", "dftl", "gecko"] {
        let mut ftl = played(name);
        for write in 0..60 {
            let (bank, lpn) = (write * 7 % BANKS, Lpn(write));
            ftl.banked().unwrap().aim(bank);
            ftl.write(lpn, &Stamp { lpn, version: 2 }).unwrap();
            let (programmed, _) = touched(&mut *ftl, |_| false);
            assert_eq!(programmed.last(), Some(&bank), "{name}: write {write}");
        }
        ftl.check().unwrap();
    }
}

#[test]
fn a_bank_is_collected_within_itself() {
    for name in ["page", "dftl", "gecko"] {
        let mut ftl = played(name);
        ftl.banked().unwrap().keep_free(40);
        let mut emptied = 0;
        for bank in 0..BANKS {
            let geometry = *ftl.flash().nand().geometry();
            let mut host = vec![false; geometry.blocks() as usize];
            for block in (0..geometry.blocks()).map(BlockId) {
                let first = ftl.flash_mut().nand_mut().read_spare(geometry.page_at(block, 0)).unwrap();
                host[block.index()] = first.is_some_and(|spare| spare.kind == PageKind::User);
            }
            let before = ftl.banked().unwrap().free_blocks(bank);
            let mut collected = 0;
            while collected < 6 && ftl.banked().unwrap().collect(bank, PAGES - 1).unwrap() {
                collected += 1;
            }
            let (programmed, erased) = touched(&mut *ftl, |block| host[block.index()]);
            let moved = programmed.iter().chain(&erased);
            assert!(moved.clone().all(|of| *of == bank), "{name}: bank {bank}: {programmed:?}, {erased:?}");
            emptied += erased.len();
            // A table in flash takes blocks for itself, of whichever bank.
            let free = ftl.banked().unwrap().free_blocks(bank);
            assert!(name != "page" || collected == 6 && free > before, "bank {bank} gained nothing");
        }
        assert!(emptied > 6, "{name}: {emptied} blocks of host data were emptied");
        ftl.check().unwrap();
    }
}

#[test]
fn a_victim_has_no_more_live_pages_than_allowed() {
    let mut ftl = played("page");
    ftl.banked().unwrap().keep_free(40);
    let mut moved = 0;
    for bank in 0..BANKS {
        while ftl.banked().unwrap().collect(bank, 2).unwrap() {}
        moved += touched(&mut *ftl, |_| true).0.len();
        assert!(!ftl.banked().unwrap().collect(bank, 0).unwrap(), "bank {bank} has dead blocks");
    }
    assert!(moved > 0, "no block with one or two live pages was collected");
}

#[test]
fn only_what_is_mapped_by_page_has_banks() {
    let entry = table::table::<SimNand>().into_iter().find(|entry| entry.info.name == "bast").unwrap();
    let geometry = crate::one_die(64, 16, 512);
    let nand = SimNand::new(geometry, Capabilities { program_order: nand::ProgramOrder::Free, ..Capabilities::MODERN });
    let mut ftl = (entry.format)(Flash::new(nand), &Config::new(400)).unwrap();
    assert!(ftl.banked().is_none());
}
