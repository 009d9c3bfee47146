//! Janus-FTL and the log-block family where their papers say little: extremes of the page-mapped
//! area, a collection that meets the logical block it is made for, trims, blocks written in part,
//! requests over a border, a full device.

#![allow(clippy::unwrap_used)]

use super::one_die;
use ftl::engine::hybrid::{Goal, HybridFtl};
use ftl::recovery::mark::{Mark, Writer};
use ftl::{Config, Flash, Ftl, FtlError, Setting, ftls};
use nand::{BlockId, Capabilities, Lpn, Nand, NandError, Ppn, ProgramOrder, SimNand, Spare, Stamp};
use openftl_ftl as ftl;

const PAGES: u32 = 8;
const LOGICAL_BLOCKS: u32 = 24;
const BLOCKS: u32 = 36;

fn device(program_order: ProgramOrder) -> Flash<SimNand> {
    let geometry = one_die(BLOCKS, PAGES, 512);
    let capabilities = Capabilities { program_order, ..Capabilities::MODERN };
    Flash::new(SimNand::new(geometry, capabilities))
}

fn janus(goal: Goal) -> HybridFtl<SimNand> {
    let config = Config::new(LOGICAL_BLOCKS * PAGES);
    HybridFtl::format(device(ProgramOrder::Sequential), &config, "janus", goal).unwrap()
}

/// What each logical page should read as: version 0 if it was never written, or trimmed.
struct Model {
    versions: Vec<u16>,
    next: u16,
    state: u32,
}

impl Model {
    fn new(pages: u32) -> Self {
        Self { versions: vec![0; pages as usize], next: 0, state: 2010 }
    }

    fn random(&mut self, below: u32) -> u32 {
        self.state = self.state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.state >> 8) % below
    }

    fn write(&mut self, ftl: &mut dyn Ftl<SimNand>, lpn: u32) {
        self.next = self.next % 60_000 + 1;
        ftl.write(Lpn(lpn), &Stamp { lpn: Lpn(lpn), version: self.next }).unwrap_or_else(|e| panic!("{lpn}: {e}"));
        self.versions[lpn as usize] = self.next;
    }

    fn trim(&mut self, ftl: &mut dyn Ftl<SimNand>, lpn: u32, count: u32) {
        ftl.trim(Lpn(lpn), count).unwrap();
        self.versions[lpn as usize..(lpn + count) as usize].fill(0);
    }

    /// Every page reads as it should, and the FTL's structures agree with each other.
    fn check(&self, ftl: &mut dyn Ftl<SimNand>) {
        for (lpn, &version) in (0..).zip(&self.versions) {
            let mut got = Stamp::UNWRITTEN;
            ftl.read(Lpn(lpn), &mut got).unwrap();
            let expected = if version == 0 { Stamp::UNWRITTEN } else { Stamp { lpn: Lpn(lpn), version } };
            assert_eq!(got, expected, "logical page {lpn}");
        }
        ftl.check().unwrap();
    }
}

fn gauge(ftl: &dyn Ftl<SimNand>, name: &str) -> u64 {
    ftl.gauges().iter().find(|gauge| gauge.name == name).unwrap().value
}

fn spares(ftl: &mut HybridFtl<SimNand>) -> Vec<Spare> {
    let nand = ftl.flash_mut().nand_mut();
    let geometry = *nand.geometry();
    let pages = (0..BLOCKS).flat_map(|b| (0..PAGES).map(move |offset| (BlockId(b), offset)));
    pages.filter_map(|(block, offset)| nand.read_spare(geometry.page_at(block, offset)).unwrap()).collect()
}

/// A page that one write copied within the page-mapped area and then into a data block was first
/// collected, to make the empty block for the defusion of its logical block, and then gathered from
/// where it went.
#[test]
fn defusion_gathers_pages_that_its_own_collection_moved() {
    for fused in [8, 12, 16, 20] {
        let mut ftl = janus(Goal::Fused(fused));
        let mut model = Model::new(ftl.logical_pages());
        (0..model.versions.len() as u32).for_each(|lpn| model.write(&mut ftl, lpn));
        let mut met = 0;
        for i in 0..2000 {
            let before = spares(&mut ftl).iter().map(|spare| spare.seq).max().unwrap();
            let lpn = if i % 3 == 0 { model.random(24) } else { model.random(LOGICAL_BLOCKS * PAGES) };
            model.write(&mut ftl, lpn);
            let written = spares(&mut ftl).into_iter().filter(|spare| spare.seq > before);
            let (gathered, collected): (Vec<Spare>, Vec<Spare>) =
                written.partition(|spare| Mark::decode(spare.aux).writer == Writer::Merge);
            let own = |spare: &Spare| collected.iter().any(|first| first.tag == spare.tag && first.seq < spare.seq);
            if gathered.iter().any(own) {
                met += 1;
                model.check(&mut ftl);
            }
        }
        model.check(&mut ftl);
        assert!(met >= 10, "{fused} fused: only {met} defusions met their own pages in a victim");
    }
}

/// Overwrites at random until every block was erased many times over.
fn run_for_ever(ftl: &mut HybridFtl<SimNand>, model: &mut Model) {
    let pages = model.versions.len() as u32;
    for round in 0..40 {
        for _ in 0..500 {
            let lpn = model.random(pages);
            model.write(ftl, lpn);
        }
        if round % 8 == 0 {
            model.check(ftl);
        }
    }
    model.check(ftl);
    let erases = ftl.flash().counts().total().erases;
    assert!(erases > u64::from(20 * BLOCKS), "only {erases} erases of {BLOCKS} blocks");
}

#[test]
fn every_logical_block_fused_runs_for_ever() {
    let mut ftl = janus(Goal::Fused(LOGICAL_BLOCKS));
    let mut model = Model::new(ftl.logical_pages());
    (0..model.versions.len() as u32).for_each(|lpn| model.write(&mut ftl, lpn));
    run_for_ever(&mut ftl, &mut model);
    assert_eq!(ftl.fused_blocks(), LOGICAL_BLOCKS);
    assert!(gauge(&ftl, "paged_area_collections") > 1000);
    // Nothing is left to fuse or defuse: the rest of the run is page mapping.
    let collections = gauge(&ftl, "paged_area_collections");
    run_for_ever(&mut ftl, &mut model);
    assert!(gauge(&ftl, "paged_area_collections") > collections + 1000);
    assert_eq!(ftl.fused_blocks(), LOGICAL_BLOCKS);
}

#[test]
fn no_logical_block_fused_runs_for_ever() {
    let mut ftl = janus(Goal::Fused(0));
    let mut model = Model::new(ftl.logical_pages());
    (0..model.versions.len() as u32).for_each(|lpn| model.write(&mut ftl, lpn));
    run_for_ever(&mut ftl, &mut model);
    assert_eq!((ftl.fused_blocks(), gauge(&ftl, "paged_area_collections")), (0, 0));
}

/// Every FTL with log blocks that a device of sequential programs serves.
fn of_any_order() -> impl Iterator<Item = ftls::Entry<SimNand>> {
    let table = table::table().into_iter().filter(|entry: &ftls::Entry<SimNand>| entry.info.honours(Setting::Maps));
    table.filter(|entry| entry.info.program_order == ProgramOrder::Sequential)
}

/// Every FTL with data blocks on a device of this order, and its model.
fn on_each_ftl(order: ProgramOrder, mut run: impl FnMut(&mut dyn Ftl<SimNand>, &mut Model)) {
    for entry in of_any_order() {
        let mut ftl = (entry.format)(device(order), &Config::new(LOGICAL_BLOCKS * PAGES)).unwrap();
        let mut model = Model::new(ftl.logical_pages());
        run(&mut *ftl, &mut model);
        model.check(&mut *ftl);
    }
}

#[test]
fn trims_at_any_time_leave_what_was_not_trimmed() {
    on_each_ftl(ProgramOrder::Sequential, |ftl, model| {
        let pages = model.versions.len() as u32;
        for i in 0..6000 {
            let at = model.random(pages);
            match model.random(10) {
                // Part of a logical block, all of one, and over the border of two.
                0 => model.trim(ftl, at, 1),
                1 => model.trim(ftl, at / PAGES * PAGES, PAGES),
                2 => {
                    let count = (PAGES + 3).min(pages - at);
                    model.trim(ftl, at, count);
                }
                _ => model.write(ftl, at),
            }
            if i % 1000 == 0 {
                model.check(ftl);
            }
        }
        model.trim(ftl, 0, pages);
        model.check(ftl);
        (0..pages).for_each(|lpn| model.write(ftl, lpn));
    });
}

#[test]
fn logical_blocks_written_in_part_keep_their_gaps() {
    on_each_ftl(ProgramOrder::Sequential, |ftl, model| {
        // Logical block n holds only pages whose offset n allows: with gaps before, between and
        // behind.
        let holds = |lpn: u32| !(lpn / PAGES + lpn % PAGES * 5).is_multiple_of(3);
        let some: Vec<u32> = (0..model.versions.len() as u32).filter(|&lpn| holds(lpn)).collect();
        for _ in 0..6000 {
            let lpn = some[model.random(some.len() as u32) as usize];
            model.write(ftl, lpn);
        }
        assert!(model.versions.contains(&0));
    });
}

#[test]
fn requests_over_the_border_of_two_logical_blocks_arrive_whole() {
    on_each_ftl(ProgramOrder::Sequential, |ftl, model| {
        let pages = model.versions.len() as u32;
        for i in 0..700 {
            let before = 1 + model.random(PAGES);
            let first = (1 + model.random(LOGICAL_BLOCKS - 1)) * PAGES - before;
            let count = (before + 1 + model.random(2 * PAGES)).min(pages - first);
            (first..first + count).for_each(|lpn| model.write(ftl, lpn));
            if i % 100 == 0 {
                model.check(ftl);
            }
        }
    });
}

#[test]
fn a_device_filled_to_the_last_page_goes_on() {
    for entry in of_any_order() {
        let make = |pages| (entry.format)(device(ProgramOrder::Sequential), &Config::new(pages));
        // The largest disk that it makes of this device: no over-provisioning but what it asks for.
        let pages = (1..=BLOCKS * PAGES).rev().find(|&pages| make(pages).is_ok()).unwrap();
        assert!(pages > LOGICAL_BLOCKS * PAGES, "{} makes only {pages} pages of the device", entry.info.name);
        let mut ftl = make(pages).unwrap();
        let mut model = Model::new(pages);
        for _ in 0..4 {
            (0..pages).for_each(|lpn| model.write(&mut *ftl, lpn));
            model.check(&mut *ftl);
            (0..pages).rev().for_each(|lpn| model.write(&mut *ftl, lpn));
            model.check(&mut *ftl);
        }
        for _ in 0..3000 {
            let lpn = model.random(pages);
            model.write(&mut *ftl, lpn);
        }
        model.check(&mut *ftl);
    }
}

#[test]
fn ascending_programs_suffice_and_cost_no_more() {
    // The device means it.
    let mut ftl = janus(Goal::Fused(1));
    ftl.write(Lpn(1), &Stamp { lpn: Lpn(1), version: 1 }).unwrap();
    let spare = spares(&mut ftl)[0];
    let mut blank = device(ProgramOrder::Sequential);
    blank.nand_mut().program(Ppn(4), &Stamp::UNWRITTEN, &spare).unwrap();
    let back = blank.nand_mut().program(Ppn(3), &Stamp::UNWRITTEN, &spare);
    assert!(matches!(back, Err(NandError::Illegal { .. })), "{back:?}");
    let mut counts = [Vec::new(), Vec::new()];
    for (order, counts) in [ProgramOrder::Sequential, ProgramOrder::Free].into_iter().zip(&mut counts) {
        on_each_ftl(order, |ftl, model| {
            for _ in 0..6000 {
                let lpn = model.random(LOGICAL_BLOCKS * PAGES);
                if lpn % 11 == 0 { model.trim(ftl, lpn, 1) } else { model.write(ftl, lpn) }
            }
            counts.push(ftl.flash().counts().total());
        });
    }
    assert_eq!(counts[0], counts[1]);
}

#[test]
fn a_device_without_room_for_defusion_is_refused() {
    let config = Config::new(BLOCKS * PAGES - PAGES);
    let refused = HybridFtl::format(device(ProgramOrder::Sequential), &config, "janus", Goal::Adaptive);
    let Err(FtlError::Unsupported { reason, .. }) = refused else { panic!("made a disk with one spare block") };
    assert!(reason.contains("ask for 1 to"), "{reason}");
}
