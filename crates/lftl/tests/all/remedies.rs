//! What a remedy of the engine is for, shown by the shortest life that needs it.

use crate::common::{Card, SECTORS, card, format, mount, sector};
use nand::{Cut, CutOutcome, FaultPlan, Lpn, Snapshot};
use openftl_lftl::{Engine, LftlError, Options, Policy, SECTOR_BYTES};
use std::sync::{Arc, Mutex};

const PAGES: u32 = 24;

fn options() -> Options {
    // No checkpoint but those of mounts and shutdowns.
    Options { policy: Policy::WritePath, buffers: 4, checkpoint_every: Some(100_000), ..Options::new(PAGES) }
}

/// Sectors of every page but the first, at a version.
fn write_others(disk: &Engine, version: u32) {
    for lpn in 1..PAGES {
        (0..SECTORS).for_each(|at| disk.write(Lpn(lpn), at * SECTOR_BYTES, &sector(lpn, at, version)).unwrap());
    }
}

fn check_others(disk: &Engine, version: u32, what: &str) {
    for lpn in 1..PAGES {
        for at in 0..SECTORS {
            let mut found = vec![1; SECTOR_BYTES];
            let read = disk.read(Lpn(lpn), at * SECTOR_BYTES, &mut found);
            let (is, wanted) = (&found[..4], &version.to_le_bytes()[..]);
            assert!(read.is_ok() && is == wanted, "{what}: page {lpn} reads {read:?} {is:?}, not {wanted:?}");
        }
    }
}

fn copy(card: &Card) -> Card {
    Arc::new(Mutex::new(card.lock().unwrap().snapshot()))
}

fn cut(card: &Card, at: u64, outcome: CutOutcome, seed: u64) {
    let mut card = card.lock().unwrap();
    card.plan_mut().cuts = vec![Cut { at, outcome }];
    card.plan_mut().seed = seed;
}

/// Power is lost while the last anchor is programmed, and each mount may find another one.
#[test]
fn an_anchor_that_fades_after_a_mount_loses_nothing() {
    // The order in which free blocks are used follows from what was written before.
    for before in 0..3 {
        let card = card(2, 24, 4, FaultPlan::default());
        let disk = format(&card, &options()).unwrap();
        disk.write(Lpn(0), 0, &sector(0, 0, 7)).unwrap();
        for version in 0..=before {
            write_others(&disk, version + 1);
            disk.flush().unwrap();
        }
        disk.checkpoint().unwrap();
        disk.trim(Lpn(0), 1).unwrap();
        disk.flush().unwrap();
        drop(disk);
        let whole = copy(&card);
        shut_down(&whole).unwrap();
        let end = whole.lock().unwrap().ops();
        for (at, outcome) in (end - 5..end).flat_map(|at| CutOutcome::ALL.map(|outcome| (at, outcome))) {
            let card = copy(&card);
            cut(&card, at, outcome, at);
            assert!(shut_down(&card).is_err(), "cut {at}");
            card.lock().unwrap().power_up();
            card.lock().unwrap().plan_mut().cuts.clear();
            reuse_and_check(&card, &format!("{before} rounds, cut {at} {outcome:?}"));
        }
    }
}

/// The last copy of an anchor reads well in one mount and no more in the next. By then a block is
/// used again that the checkpoint before needs: the trims since. What was trimmed lies beside pages
/// that live, so that nothing erases it.
#[test]
fn a_clean_shutdown_whose_last_page_fades_loses_nothing() {
    const RESTING: std::ops::Range<u32> = 1..8;
    let write = |disk: &Engine, lpns: std::ops::Range<u32>, version: u32| {
        lpns.for_each(|lpn| {
            (0..SECTORS).for_each(|at| disk.write(Lpn(lpn), at * SECTOR_BYTES, &sector(lpn, at, version)).unwrap());
        });
        disk.flush().unwrap();
    };
    let life = |rounds: u32| {
        let card = card(2, 24, 4, FaultPlan::default());
        let disk = format(&card, &options()).unwrap();
        write(&disk, 0..RESTING.end, 7);
        disk.checkpoint().unwrap();
        disk.trim(Lpn(0), 1).unwrap();
        disk.flush().unwrap();
        (0..rounds).for_each(|_| write(&disk, RESTING.end..PAGES, 8));
        (card, disk)
    };
    for rounds in 1..6 {
        let (whole, disk) = life(rounds);
        disk.shut_down().unwrap();
        let last = whole.lock().unwrap().ops() - 1;
        for (outcome, again) in
            CutOutcome::ALL.into_iter().flat_map(|outcome| (1..9_u32).map(move |again| (outcome, again)))
        {
            let (card, disk) = life(rounds);
            cut(&card, last, outcome, u64::from(again));
            assert!(disk.shut_down().is_err(), "power was not lost");
            card.lock().unwrap().power_up();
            card.lock().unwrap().plan_mut().cuts.clear();
            let (disk, _) = mount(&card, &options()).unwrap();
            (0..again).for_each(|_| write(&disk, RESTING.end..PAGES, 9));
            drop(disk);
            let (disk, _) = mount(&card, &options()).unwrap();
            for (lpn, version) in [(0, 0), (1, 7), (RESTING.end, 9), (PAGES - 1, 9)] {
                let mut found = vec![1; SECTOR_BYTES];
                disk.read(Lpn(lpn), 0, &mut found).unwrap();
                let what = format!("page {lpn}, {rounds} rounds, {outcome:?}, {again} rounds");
                assert_eq!(found, sector(lpn, 0, version), "{what}");
            }
        }
    }
}

fn shut_down(card: &Card) -> Result<(), LftlError> {
    mount(card, &options()).and_then(|(disk, _)| disk.shut_down()).map(drop)
}

/// Uses blocks again that are not needed, before any is collected and after.
fn reuse_and_check(card: &Card, what: &str) {
    for rounds in [3, 8] {
        let card = copy(card);
        let (disk, _) = mount(&card, &options()).unwrap();
        for version in 100..100 + rounds {
            write_others(&disk, version);
            disk.flush().unwrap();
        }
        drop(disk);
        let (disk, _) = mount(&card, &options()).unwrap();
        let mut found = vec![1; SECTOR_BYTES];
        disk.read(Lpn(0), 0, &mut found).unwrap();
        assert_eq!(found, sector(0, 0, 0), "{what}: a flushed trim came back");
        check_others(&disk, 99 + rounds, what);
    }
}

/// The blocks that banks open first after a clean shutdown may be collected, and read as erased.
#[test]
fn a_disk_whose_first_blocks_were_collected_is_not_taken_for_untouched() {
    let card = card(2, 24, 4, FaultPlan::default());
    let disk = format(&card, &options()).unwrap();
    write_others(&disk, 1);
    disk.shut_down().unwrap();
    for rounds in 1..16 {
        let card = copy(&card);
        let (disk, report) = mount(&card, &options()).unwrap();
        assert!(report.clean);
        for version in 2..2 + rounds {
            write_others(&disk, version);
            disk.flush().unwrap();
        }
        drop(disk);
        let (disk, report) = mount(&card, &options()).unwrap();
        assert!(!report.clean, "{rounds} rounds");
        check_others(&disk, 1 + rounds, &format!("{rounds} rounds"));
    }
}

/// A program that failed may leave nothing to be seen in the block that is opened first.
#[test]
fn a_disk_whose_first_program_failed_is_not_taken_for_untouched() {
    for seed in 0..60 {
        let card = card(1, 32, 4, FaultPlan { odd_failures: true, seed, ..FaultPlan::default() });
        let disk = format(&card, &options()).unwrap();
        write_others(&disk, 1);
        disk.shut_down().unwrap();
        let (disk, report) = mount(&card, &options()).unwrap();
        assert!(report.clean);
        let ops = card.lock().unwrap().ops();
        card.lock().unwrap().plan_mut().next_failing_program = Some(ops);
        write_others(&disk, 2);
        disk.flush().unwrap();
        drop(disk);
        check_others(&mount(&card, &options()).unwrap().0, 2, &format!("seed {seed}"));
    }
}
