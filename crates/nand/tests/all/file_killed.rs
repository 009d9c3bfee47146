//! A process that is killed in the middle of programs and erases: its device is as the last
//! completed operation left it, or the one under way.
#![cfg(all(feature = "std", unix))]
#![allow(clippy::unwrap_used)]

use crate::common::*;
use openftl_nand::*;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Names the file to the child; it is not set in a run of the tests.
const CHILD: &str = "OPENFTL_KILLED_CHILD";
/// How often a child is killed; more shows more.
const KILLS: &str = "OPENFTL_KILLS";
const BLOCKS: u32 = 8;
const PAGES: u32 = 32;
const BYTES: usize = 16_384;

fn large() -> Geometry {
    let shape = Dimensions { blocks: BLOCKS, pages_per_block: PAGES, page_bytes: BYTES as u32, ..SHAPE };
    Geometry::new(shape).unwrap()
}

fn content(seq: u64) -> Vec<u8> {
    (0..BYTES).map(|at| (seq as usize * 31 + at / 7) as u8).collect()
}

/// Programs all pages of a block, sets a flag of each, goes on to the next, and erases it first.
/// Says each number when its program has completed. The number of a page is that of its program.
fn go_on(path: &Path) -> ! {
    let mut n = FileNand::open(path, Access::ReadWrite).unwrap();
    let mut newest: Option<(Ppn, Spare)> = None;
    for ppn in (0..BLOCKS * PAGES).map(Ppn) {
        let found = n.read_spare(ppn).unwrap().map(|spare| (ppn, spare));
        newest = found.filter(|(_, spare)| newest.is_none_or(|(_, other)| spare.seq > other.seq)).or(newest);
    }
    let mut seq = newest.map_or(0, |(_, spare)| spare.seq);
    // The process before may have died before it set the flag.
    if let Some((ppn, _)) = newest.filter(|(_, spare)| spare.flags.is_none()) {
        n.clear_flags(ppn, Flags::from_bits(1)).unwrap();
    }
    let mut out = std::io::stdout().lock();
    loop {
        let at = (seq % u64::from(BLOCKS * PAGES)) as u32;
        if at.is_multiple_of(PAGES) {
            n.erase(BlockId(at / PAGES)).unwrap();
        }
        seq += 1;
        n.program(Ppn(at), &content(seq), &spare(at, seq)).unwrap();
        writeln!(out, "{seq}").unwrap();
        out.flush().unwrap();
        n.clear_flags(Ppn(at), Flags::from_bits(1)).unwrap();
    }
}

/// Not a test of its own: what the child of the next one does.
#[test]
fn child_of_the_killing_test() {
    if let Some(path) = std::env::var_os(CHILD) {
        go_on(Path::new(&path));
    }
}

/// Kills a child after `pause`; the last number that it said.
fn kill_one(path: &Path, pause: Duration) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["file_killed::child_of_the_killing_test", "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let numbers = |line: String| line.trim().parse::<u64>().ok();
    let first = lines.by_ref().map_while(Result::ok).find_map(numbers).expect("the child does nothing");
    std::thread::sleep(pause);
    child.kill().unwrap();
    let said = lines.map_while(Result::ok).filter_map(numbers).last().unwrap_or(first);
    child.wait().unwrap();
    said
}

/// Every page is there that was said to be, but for those that were erased to make room; the one
/// after them may be.
fn check(path: &Path, said: u64) {
    let mut n = FileNand::open(path, Access::ReadWrite).unwrap();
    assert!(!n.opening().closed && n.opening().undone == 0, "after {said}: {:?}", n.opening());
    let pages = u64::from(BLOCKS * PAGES);
    let newest = (0..BLOCKS * PAGES).filter_map(|ppn| n.read_spare(Ppn(ppn)).unwrap()).map(|s| s.seq).max().unwrap();
    assert!(newest == said || newest == said + 1, "{said} was said and {newest} is there");
    let block_of = |seq: u64| (seq - 1) % pages / u64::from(PAGES);
    for ppn in 0..BLOCKS * PAGES {
        let older = (1..=newest).rev().find(|seq| (seq - 1) % pages == u64::from(ppn));
        let Some(wanted) = older else { continue };
        // The block that comes next may have been erased for it.
        let going = block_of(newest + 1) != block_of(newest) && block_of(newest + 1) == block_of(wanted);
        // Of the round before, nothing is left in the block that is being filled.
        let round = newest - (newest - 1) % u64::from(PAGES);
        let erased = block_of(wanted) == block_of(newest) && wanted < round;
        let mut data = vec![0; BYTES];
        match n.read(Ppn(ppn), &mut data) {
            Ok(spare) => {
                assert_eq!((spare.seq, data == content(wanted)), (wanted, true), "page {ppn} after {said}");
                let set = spare.flags == Flags::from_bits(1);
                assert!(set || wanted >= said, "page {ppn} lost its flag after {said}");
                assert!(!erased, "page {ppn} came back after {said}");
            }
            Err(NandError::Erased { .. }) => assert!(going || erased, "page {ppn} is gone after {said}"),
            Err(error) => panic!("page {ppn} after {said}: {error}"),
        }
    }
}

#[test]
fn a_killed_process_loses_nothing_that_was_done() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("device.nand");
    FileNand::create(&path, large(), OLD, b"").unwrap().close().unwrap();
    let kills = std::env::var(KILLS).map_or(40, |kills| kills.parse().expect("a number of kills"));
    for kill in 0..kills {
        let said = kill_one(&path, Duration::from_micros(kill * 997 % 20_011));
        check(&path, said);
        // The check opened and closed it; a child finds it so.
    }
}
