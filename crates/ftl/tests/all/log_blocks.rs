//! What one way to use log blocks gains over another, in pages programmed, and power cuts while log
//! blocks are collected.

#![allow(clippy::unwrap_used)]

use super::{ftl_named, one_die};
use ftl::recovery::mark::{Mark, Writer};
use ftl::{Config, Flash, Ftl, FtlError, Purpose};
use nand::faults::{Cut, CutOutcome, FaultPlan, Faulty};
use nand::{Capabilities, Lpn, Nand, Ppn, SimNand, Stamp};
use openftl_ftl as ftl;

const LOGICAL_BLOCKS: u32 = 200;
const PAGES: u32 = 32;
const LOGICAL: u32 = LOGICAL_BLOCKS * PAGES;

/// A disk with so many log blocks.
fn disk(name: &str, logs: u32) -> Box<dyn Ftl<SimNand>> {
    let config = Config { maps: ftl::Maps::NonVolatile, ..Config::new(LOGICAL) };
    let geometry = one_die(LOGICAL_BLOCKS + 3 + logs, PAGES, 512);
    let device = SimNand::new(geometry, Capabilities::MODERN);
    (table::find::<SimNand>(name).unwrap().format)(Flash::new(device), &config).unwrap()
}

/// Pages programmed for each page that `next` makes the host write, once the disk is full and log
/// blocks are in use.
fn programs(name: &str, logs: u32, mut next: impl FnMut(u32) -> u32) -> f64 {
    const WRITES: u32 = 30_000;
    let mut ftl = disk(name, logs);
    let mut versions = vec![0; LOGICAL as usize];
    let mut state = 3_u32;
    let mut before = 0;
    for at in 0..LOGICAL + 2 * WRITES {
        let lpn = if at < LOGICAL {
            at
        } else {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            next(state >> 8) % LOGICAL
        };
        if at == LOGICAL + WRITES {
            before = ftl.flash().counts().total().programs;
        }
        versions[lpn as usize] += 1;
        ftl.write(Lpn(lpn), &Stamp { lpn: Lpn(lpn), version: versions[lpn as usize] }).unwrap();
    }
    ftl.check().unwrap();
    for (lpn, &version) in (0..).map(Lpn).zip(&versions) {
        let mut got = Stamp::UNWRITTEN;
        ftl.read(lpn, &mut got).unwrap();
        assert_eq!(got, Stamp { lpn, version });
    }
    assert_eq!(ftl.flash().counts().of(Purpose::Checkpoint).programs, 0);
    let mean = (ftl.flash().counts().total().programs - before) as f64 / f64::from(WRITES);
    println!("{name} with {logs} log blocks: {mean:.3}");
    mean
}

/// One page of many logical blocks each: all fit into the log, and a merge copies a logical block
/// for one of them.
fn scattered(random: u32) -> u32 {
    random % LOGICAL_BLOCKS * PAGES + 5
}

/// Nine of ten writes to an eighth of each logical block.
fn skewed(random: u32) -> u32 {
    if random.is_multiple_of(10) {
        random / 16
    } else {
        random / 16 % LOGICAL_BLOCKS * PAGES + 1 + random / 16_384 % (PAGES / 8)
    }
}

fn uniform(random: u32) -> u32 {
    random
}

/// Whole logical blocks in sequence.
fn sequential() -> impl FnMut(u32) -> u32 {
    let mut at = 0;
    move |_| {
        at += 1;
        at - 1
    }
}

/// Four of five writes to every tenth logical block, all of it; to others after a while if
/// `moving`.
fn few_hot_blocks(moving: bool) -> impl FnMut(u32) -> u32 {
    let mut at = 0;
    move |random| {
        at += 1;
        let hot = random / 16 % (LOGICAL_BLOCKS / 10) * 10 + if moving { at / 30_000 * 3 } else { 0 };
        if random.is_multiple_of(5) { random / 16 } else { hot * PAGES + random / 16_384 % PAGES }
    }
}

/// Nine of ten writes to a tenth of the disk, whole sets of it.
fn hot_region(random: u32) -> u32 {
    if random.is_multiple_of(10) { random / 16 } else { random / 16 % (LOGICAL / 10) }
}

/// Five sequential streams that take turns at random.
fn streams() -> impl FnMut(u32) -> u32 {
    let mut at = [0; 5];
    move |random| {
        let stream = (random / 8 % 5) as usize;
        at[stream] += 1;
        (at[stream] - 1) % (LOGICAL / 5) + LOGICAL / 5 * stream as u32
    }
}

/// Requests of so many pages in sequence, anywhere.
fn requests(pages: u32) -> impl FnMut(u32) -> u32 {
    let (mut at, mut first) = (0, 0);
    move |random| {
        if at % pages == 0 {
            first = random % (LOGICAL / pages) * pages;
        }
        at += 1;
        first + (at - 1) % pages
    }
}

/// Two requests in a row to one logical block, of which the second lies behind the first, share the
/// work: one in 400.
#[test]
fn under_block_mapping_a_request_writes_its_logical_block_again_once() {
    for pages in [1, 8, 32] {
        let programs = programs("block", 1, requests(pages));
        let once = f64::from(PAGES) / f64::from(pages);
        assert!((0.99..=1.0).contains(&(programs / once)), "requests of {pages} pages: {programs}, {once}");
    }
    assert!(programs("block", 1, sequential()) < 1.001);
    let without = programs("block", 0, requests(8));
    assert!(without > 0.99 * f64::from(PAGES), "no block to hold open, and yet {without}");
}

#[test]
fn collecting_within_the_log_spares_merges_where_the_log_holds_what_is_written() {
    let [fast, vftl] = ["fast", "vftl"].map(|name| programs(name, 20, scattered));
    assert!(vftl < 2.0 && fast > 2.0 * vftl, "{vftl}, {fast}");
}

#[test]
fn a_log_that_is_merged_or_collected_programs_no_more_than_one_that_is_merged() {
    for logs in [2, 3, 4, 6, 10, 20, 40, 80] {
        for (next, most) in [(uniform as fn(u32) -> u32, if logs < 10 { 1.005 } else { 0.97 }), (skewed, 1.002)] {
            let [fast, vftl] = ["fast", "vftl"].map(|name| programs(name, logs, next));
            assert!(vftl < most * fast, "{logs} log blocks: {vftl}, {fast}");
        }
        let [fast, vftl] = ["fast", "vftl"].map(|name| programs(name, logs, sequential()));
        assert!(fast.to_bits() == vftl.to_bits() && fast < 1.01, "{logs} log blocks: {vftl}, {fast}");
    }
    let [fast, vftl] = ["fast", "vftl"].map(|name| programs(name, 40, skewed));
    assert!(vftl < 0.75 * fast, "{vftl}, {fast}");
}

#[test]
fn sharing_log_blocks_pays_where_more_is_written_than_there_are_log_blocks() {
    for logs in [2, 3, 4, 6, 10, 20, 40, 80] {
        for next in [uniform as fn(u32) -> u32, skewed, scattered, hot_region] {
            let [bast, blockset] = ["bast", "blockset"].map(|name| programs(name, logs, next));
            assert!(blockset < if logs < 20 { 0.95 } else { 0.82 } * bast, "{logs} log blocks: {blockset}, {bast}");
        }
    }
}

#[test]
fn a_hot_logical_block_has_a_log_block_of_its_own() {
    for logs in [40, 80] {
        let [bast, fast, blockset] =
            ["bast", "fast", "blockset"].map(|name| programs(name, logs, few_hot_blocks(false)));
        assert!(blockset < fast && blockset < 0.7 * bast, "{logs} log blocks: {blockset}, {fast}, {bast}");
        // Others become hot while it is measured.
        let moving = programs("blockset", logs, few_hot_blocks(true));
        assert!(moving < 1.1 * blockset, "{logs} log blocks: {moving}, {blockset}");
    }
}

#[test]
fn sequential_streams_have_log_blocks_of_their_own() {
    let [bast, fast, blockset] = ["bast", "fast", "blockset"].map(|name| programs(name, 20, streams()));
    assert!(blockset < 1.05 && bast < 1.05 && fast > 1.5, "{blockset}, {bast}, {fast}");
}

const SMALL: u32 = 12 * 4;

/// Writes one page of each of 12 logical blocks more often than the others, until done or an error.
fn write_some(ftl: &mut dyn Ftl<Faulty<SimNand>>, written: &mut [u16]) -> Result<(), FtlError> {
    for at in 0..SMALL + 120 {
        let lpn = if at < SMALL { at } else { at * 7 % 12 * 4 + if at % 9 == 0 { 3 } else { 2 } };
        let version = written[lpn as usize] + 1;
        ftl.write(Lpn(lpn), &Stamp { lpn: Lpn(lpn), version })?;
        written[lpn as usize] = version;
    }
    Ok(())
}

/// Whether a page was moved within the log, and it was not a merge that completed a log block: none
/// is written in sequence.
fn was_collected(nand: &mut Faulty<SimNand>) -> bool {
    (0..nand.geometry().pages()).any(|ppn| {
        let Ok(Some(spare)) = nand.inner_mut().read_spare(Ppn(ppn)) else { return false };
        Mark::decode(spare.aux).writer == Writer::Log && Mark::is_copy(&spare)
    })
}

#[test]
fn a_collection_within_the_log_can_be_cut_at_every_operation() {
    let geometry = one_die(12 + 3 + 2 + 6, 4, 512);
    let (entry, config) = (ftl_named("vftl").unwrap(), Config::new(SMALL));
    let mut collected = 0;
    for at in 0.. {
        for outcome in CutOutcome::PLAIN {
            let nand = Faulty::new(SimNand::new(geometry, Capabilities::MODERN), FaultPlan::default());
            let mut ftl = (entry.format)(Flash::new(nand), &config).unwrap();
            let mut written = [0; SMALL as usize];
            let first = ftl.flash().nand().ops();
            ftl.flash_mut().nand_mut().plan_mut().cuts = vec![Cut { at: first + at, outcome }];
            let done = write_some(&mut *ftl, &mut written).is_ok();
            let mut nand = ftl.into_flash().into_nand();
            assert_eq!(done, nand.is_powered());
            collected += u32::from(was_collected(&mut nand));
            nand.power_up();
            nand.plan_mut().cuts.clear();
            let (mut ftl, _) = (entry.mount.unwrap())(Flash::new(nand), &config).unwrap();
            ftl.check().unwrap();
            for (lpn, &version) in (0..).map(Lpn).zip(&written) {
                let mut got = Stamp::UNWRITTEN;
                ftl.read(lpn, &mut got).unwrap();
                let read = if got == Stamp::UNWRITTEN { 0 } else { got.version };
                // The write that was under way may be there.
                assert!(read == version || read == version + 1, "{at}, {outcome:?}: {lpn} is {got:?}, not {version}");
            }
            if done {
                assert!(collected > 1000, "{collected} of {at} cuts after a collection");
                return;
            }
        }
    }
}
