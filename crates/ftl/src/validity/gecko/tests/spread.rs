//! Merges that are spread over reports: what each report costs at most, and cuts in the middle of a
//! merge.
//!
//! | taken out | red, besides the property test |
//! |---|---|
//! | reports pay for the merge | `no_report_waits_for_a_merge` |
//! | a merge is announced before its inputs die | `inputs_live_until_their_merge_is_announced` |
//! | pages of an unfinished run belong to the store | `an_unfinished_run_can_be_moved` |
//! | a merge that fails is given up | `a_merge_that_fails_leaves_its_inputs` |
//! | a flush that is asked for replaces the one before | `flushes_that_are_asked_for_leave_one_run` |
//! | a flush that is asked for leaves room for a block | `a_block_finds_room_after_a_flush` |
//! | what was flushed while flushes claim less is flushed again | `a_flush_after_recovery_claims_what_is_known` |
//! | a merge is done at once where too many runs wait | `mounts_that_are_cut_short_leave_few_runs` |

use super::props::Rig;
use crate::config::GeckoOptions;
use crate::contract::FtlError;
use crate::validity::Validity;
use crate::validity::gecko::Gecko;
use crate::validity::gecko::spread::Spread;
use nand::{NandError, Ppn};
use std::vec::Vec;

fn spread(spread_ops: u32) -> GeckoOptions {
    GeckoOptions { partitions: 4, spread_ops, ..GeckoOptions::PAPER }
}

/// Random reports, an erase now and then.
fn reports(count: u32, blocks: u32, pages: u32) -> impl Iterator<Item = (u32, Option<u32>)> {
    let mut random = 7_u32;
    (0..count).map(move |step| {
        random = random.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        ((random >> 8) % (blocks * pages), (step % 7 == 0).then_some((random >> 9) % blocks))
    })
}

/// The largest number of pages that a report reads and programs.
fn most_operations(options: GeckoOptions) -> (u64, Rig) {
    let (blocks, pages) = (400, 128);
    let mut rig = Rig::new(512, blocks, pages, options);
    rig.cut_everywhere = false;
    let mut most = 0;
    for (ppn, erased) in reports(20_000, blocks, pages) {
        let before = rig.store.programs + rig.store.reads;
        rig.invalidate(ppn);
        if let Some(block) = erased {
            rig.erase(block);
        }
        most = most.max(rig.store.programs + rig.store.reads - before);
    }
    rig.check();
    (most, rig)
}

#[test]
fn no_report_waits_for_a_merge() {
    let (at_once, _) = most_operations(spread(0));
    assert!(at_once > 40, "{at_once}");
    let mut programs = Vec::new();
    for ops in [1, 3] {
        let (most, rig) = most_operations(spread(ops));
        // Two reports, a flush, and an entry that is the last of a page of each of some runs.
        assert!(most <= u64::from(2 * rig.gecko.shape.spread_ops) + 10, "{most} at {ops} pages a report");
        programs.push(rig.store.programs);
    }
    assert!(programs[0] < 20_000, "{programs:?}");
}

#[test]
fn runs_wait_no_longer_than_they_may() {
    for (page_bytes, blocks, pages, ops) in [(512, 400, 128, 1), (128, 64, 128, 1), (4096, 4000, 32, 2)] {
        let mut rig = Rig::new(page_bytes, blocks, pages, spread(ops));
        rig.cut_everywhere = false;
        for (step, (ppn, erased)) in reports(9000, blocks, pages).enumerate() {
            rig.invalidate(ppn);
            if let Some(block) = erased {
                rig.erase(block);
            }
            if step % 13 == 0 {
                rig.flush();
            }
            assert!(rig.gecko.runs() <= rig.gecko.shape.runs_max(), "{} runs", rig.gecko.runs());
        }
        rig.check();
    }
}

#[test]
fn flushes_that_are_asked_for_leave_one_run() {
    let mut rig = Rig::new(512, 64, 128, spread(2));
    rig.cut_everywhere = false;
    for block in 0..20 {
        rig.invalidate(block * 128 + 1);
        rig.flush();
        assert_eq!(rig.gecko.runs(), 1);
        let programs = rig.store.programs;
        rig.flush();
        assert_eq!(rig.store.programs, programs, "nothing was reported since");
    }
    rig.check();
}

/// A rig in which a merge is under way that has programmed so many pages.
fn merging(pages: usize) -> Rig {
    let mut rig = Rig::new(512, 100, 128, spread(1));
    rig.cut_everywhere = false;
    for (ppn, erased) in reports(4000, 100, 128) {
        rig.invalidate(ppn);
        if let Some(block) = erased {
            rig.erase(block);
        }
        let unfinished = rig.gecko.live_pages().count() - rig.gecko.directory.live_of_runs();
        if unfinished >= pages && rig.gecko.spread.as_ref().is_some_and(Spread::is_due) {
            return rig;
        }
    }
    panic!("no merge programs {pages} pages")
}

#[test]
fn an_unfinished_run_can_be_moved() {
    let mut rig = merging(3);
    let unfinished: Vec<Ppn> = rig.gecko.live_pages().skip(rig.gecko.directory.live_of_runs()).collect();
    for from in unfinished {
        let spare = rig.store.spare(from);
        assert!(rig.gecko.owns(from, &spare), "{from} is of the run under way");
        let to = rig.store.relocate(from, false);
        rig.gecko.moved(from, to, &spare);
    }
    rig.store.sweep();
    for (ppn, _) in reports(600, 100, 128) {
        rig.invalidate(ppn);
    }
    rig.check();
}

#[test]
fn inputs_live_until_their_merge_is_announced() {
    let mut rig = merging(2);
    rig.store.sweep_at_once = true;
    rig.cut_everywhere = true;
    for (ppn, erased) in reports(300, 100, 128) {
        rig.invalidate(ppn);
        if let Some(block) = erased {
            rig.erase(block);
        }
    }
    rig.check();
}

#[test]
fn a_merge_that_fails_leaves_its_inputs() {
    let mut rig = merging(2);
    let (runs, live) = (rig.gecko.runs(), rig.gecko.directory.live_of_runs());
    rig.store.cut_after = Some(0);
    let report = |gecko: &mut Gecko, store: &mut super::store::MemStore| -> Result<(), FtlError> {
        (0..100 * 128).step_by(32).try_for_each(|ppn| gecko.invalidate(store, Ppn(ppn)))
    };
    assert_eq!(report(&mut rig.gecko, &mut rig.store), Err(NandError::PowerLost.into()));
    rig.store.cut_after = None;
    assert_eq!((rig.gecko.runs(), rig.store.live as usize), (runs, live), "the unfinished run is given up");
    for ppn in (0..100 * 128).step_by(32) {
        rig.invalidate(ppn);
    }
    rig.check();
}

#[test]
fn a_block_finds_room_after_a_flush() {
    let mut rig = Rig::new(512, 100, 128, spread(1));
    rig.cut_everywhere = false;
    let full = rig.gecko.buffer_entries();
    for entry in 0..full {
        rig.invalidate(entry * 32);
        rig.flush();
        assert!(rig.gecko.buffer.room() >= 4, "{} entries left of {full}, and a block has 4", rig.gecko.buffer.room());
    }
    rig.check();
}

#[test]
fn a_flush_after_recovery_claims_what_is_known() {
    let mut rig = Rig::new(512, 100, 128, spread(1));
    rig.cut_everywhere = false;
    rig.invalidate(5);
    rig.flush();
    let before = rig.gecko.last_flush_seq();
    rig.gecko.hold_flush_seq();
    rig.invalidate(700);
    rig.flush();
    assert_eq!(rig.gecko.last_flush_seq(), before);
    rig.gecko.release_flush_seq();
    rig.flush();
    assert!(rig.gecko.last_flush_seq() > before);
}

#[test]
fn mounts_that_are_cut_short_leave_few_runs() {
    let mut rig = Rig::new(512, 400, 128, spread(1));
    rig.cut_everywhere = false;
    let mut most = 0;
    for (step, (ppn, _)) in reports(9000, 400, 128).enumerate() {
        let flushes = rig.gecko.flushes();
        rig.invalidate(ppn);
        if rig.gecko.flushes() > flushes && step < 8000 {
            // The merge that the flush began comes to nothing.
            rig.lose_power();
        }
        most = most.max(rig.gecko.runs());
        assert!(rig.gecko.runs() <= rig.gecko.shape.runs_max(), "{} runs", rig.gecko.runs());
    }
    assert_eq!(most, rig.gecko.shape.runs_max(), "no merge was done at once");
    rig.check();
}
