//! What the engine does while power is on, from one thread and from many.

use crate::common::{Card, PAGE, Rng, SECTORS, card, format, mount, sector};
use nand::{Blemish, FaultPlan, Lpn};
use openftl_lftl::{Engine, LftlError, Options, Policy, Replacement, SECTOR_BYTES};
use std::time::Duration;

fn options(pages: u32) -> Options {
    Options { buffers: 8, ..Options::new(pages) }
}

fn read(disk: &Engine, lpn: u32, index: usize) -> Vec<u8> {
    let mut out = vec![0xEE; SECTOR_BYTES];
    disk.read(Lpn(lpn), index * SECTOR_BYTES, &mut out).unwrap();
    out
}

fn write(disk: &Engine, lpn: u32, index: usize, version: u32) {
    disk.write(Lpn(lpn), index * SECTOR_BYTES, &sector(lpn, index, version)).unwrap();
}

/// Random requests, each read compared with what was written last.
fn churn(disk: &Engine, pages: u32, requests: u32, seed: u64) -> Vec<u32> {
    let mut rng = Rng(seed);
    let mut versions = vec![0; pages as usize * SECTORS];
    for version in 1..=requests {
        let (lpn, index) = (rng.below(u64::from(pages)) as u32, rng.below(SECTORS as u64) as usize);
        let at = lpn as usize * SECTORS + index;
        match rng.below(32) {
            0 => disk.flush().unwrap(),
            1 => {
                disk.trim(Lpn(lpn), 1).unwrap();
                versions[at / SECTORS * SECTORS..][..SECTORS].fill(0);
            }
            2 => drop(disk.collect_round().unwrap()),
            3..=12 => assert_eq!(read(disk, lpn, index), sector(lpn, index, versions[at]), "{lpn}.{index}"),
            _ => {
                write(disk, lpn, index, version);
                versions[at] = version;
            }
        }
    }
    for (at, version) in versions.iter().enumerate() {
        let (lpn, index) = ((at / SECTORS) as u32, at % SECTORS);
        assert_eq!(read(disk, lpn, index), sector(lpn, index, *version), "{lpn}.{index} in the end");
    }
    versions
}

fn same(disk: &Engine, versions: &[u32]) {
    for (at, version) in versions.iter().enumerate() {
        let (lpn, index) = ((at / SECTORS) as u32, at % SECTORS);
        assert_eq!(read(disk, lpn, index), sector(lpn, index, *version), "{lpn}.{index} after a mount");
    }
}

#[test]
fn every_policy_keeps_what_was_written_and_mounts() {
    let mut moved = 0;
    for (_, policy) in Policy::TABLE {
        for (_, replacement) in Replacement::TABLE {
            let options = Options { policy, replacement, ..options(300) };
            let card = card(4, 24, 8, FaultPlan::default());
            let disk = format(&card, &options).unwrap();
            let versions = churn(&disk, 300, 6_000, 7);
            moved += disk.report().moved_pages;
            disk.shut_down().unwrap();
            let (disk, report) = mount(&card, &options).unwrap();
            assert!(report.clean, "{policy:?} {replacement:?}: {report:?}");
            same(&disk, &versions);
            drop(disk);
            let (disk, report) = mount(&card, &options).unwrap();
            assert!(report.clean, "a mount alone does not void the checkpoint");
            write(&disk, 0, 0, 77);
            disk.flush().unwrap();
            drop(disk);
            let (disk, report) = mount(&card, &options).unwrap();
            assert!(!report.clean && report.checkpoint, "the first write voids it: {report:?}");
            assert_eq!(read(&disk, 0, 0), sector(0, 0, 77));
            same(&disk, &versions[..0]);
        }
    }
    assert!(moved > 1000, "nothing was collected: {moved} pages moved");
}

#[test]
fn parts_of_sectors_keep_the_rest() {
    let card = card(2, 24, 8, FaultPlan::default());
    let disk = format(&card, &options(64)).unwrap();
    let mut truth = vec![0_u8; PAGE];
    let mut rng = Rng(3);
    for round in 0..400_u32 {
        let at = rng.below(PAGE as u64) as usize;
        let length = rng.below((PAGE - at) as u64 + 1) as usize;
        let data = vec![round as u8; length];
        disk.write(Lpn(9), at, &data).unwrap();
        truth[at..at + length].copy_from_slice(&data);
        if round % 7 == 0 {
            disk.flush().unwrap();
            // Other pages take the buffers.
            (0..9).for_each(|lpn| write(&disk, 20 + lpn, 0, round + 1));
        }
        let from = rng.below(PAGE as u64) as usize;
        let mut out = vec![0xEE; PAGE - from];
        disk.read(Lpn(9), from, &mut out).unwrap();
        assert_eq!(out, truth[from..], "round {round}");
    }
}

#[test]
fn a_full_disk_is_overwritten_and_trimmed() {
    let card = card(4, 24, 8, FaultPlan::default());
    let most = (1..700).rev().find(|pages| format(&card, &options(*pages)).is_ok()).unwrap();
    assert!(most > 400, "{most} of 768 pages");
    let disk = format(&card, &options(most)).unwrap();
    for round in 1..=6 {
        (0..most).for_each(|lpn| (0..SECTORS).for_each(|index| write(&disk, lpn, index, round)));
    }
    let mut rng = Rng(5);
    for _ in 0..3_000 {
        write(&disk, rng.below(u64::from(most)) as u32, 0, 6);
    }
    disk.flush().unwrap();
    disk.trim(Lpn(3), most - 3).unwrap();
    assert_eq!(read(&disk, 2, 1), sector(2, 1, 6));
    assert_eq!(read(&disk, 3, 1), sector(3, 1, 0));
    (0..most).for_each(|lpn| write(&disk, lpn, 0, 9));
    disk.flush().unwrap();
    assert_eq!(read(&disk, most - 1, 0), sector(most - 1, 0, 9));
}

#[test]
fn more_than_fits_is_refused_with_the_numbers() {
    let card = card(4, 24, 8, FaultPlan::default());
    let error = format(&card, &options(768)).err().unwrap();
    assert!(matches!(&error, LftlError::Unsupported { reason } if reason.contains("96 are there")), "{error}");
    // A bank may be smaller than what it would keep for anchors.
    let error = format(&crate::common::card(4, 2, 4, FaultPlan::default()), &options(4)).err().unwrap();
    assert!(matches!(&error, LftlError::Unsupported { reason } if reason.contains("make the disk smaller")), "{error}");
    let outside = format(&card, &options(64)).unwrap().write(Lpn(64), 0, &[1]);
    assert!(matches!(outside, Err(LftlError::OutOfRange { logical_pages: 64, .. })));
    let foreign = crate::common::card(4, 24, 8, FaultPlan::default());
    let error = mount(&foreign, &options(64)).err().unwrap();
    assert!(matches!(error, LftlError::NotMountable { .. }), "{error}");
    drop(format(&card, &options(64)).unwrap());
    let error = mount(&card, &options(65)).err().unwrap().to_string();
    assert!(error.contains("64 of them logical") && error.contains("65 of them logical"), "{error}");
}

#[test]
fn failed_programs_and_erases_lose_nothing_and_retire_blocks() {
    for seed in 0..8 {
        let mut rng = Rng(seed);
        let plan = FaultPlan {
            seed,
            odd_failures: true,
            failing_programs: (0..12).map(|_| 60 + rng.below(6_000)).collect(),
            failing_erases: (0..4_000).filter(|op| op % 997 == seed).collect(),
            ..FaultPlan::default()
        };
        let card = card(4, 32, 8, plan);
        let disk = format(&card, &options(300)).unwrap();
        let versions = churn(&disk, 300, 6_000, seed);
        let retired = {
            let card = card.lock().unwrap();
            (0..128).filter(|block| nand::Nand::is_bad(&*card, nand::BlockId(*block))).count()
        };
        assert!(retired > 3, "{retired} blocks were retired");
        disk.flush().unwrap();
        drop(disk);
        let (disk, _) = mount(&card, &options(300)).unwrap();
        same(&disk, &versions);
    }
}

#[test]
fn a_worn_page_is_an_error_of_its_sectors_until_it_is_written() {
    let card = card(2, 24, 8, FaultPlan::default());
    let disk = format(&card, &options(64)).unwrap();
    write(&disk, 5, 0, 1);
    write(&disk, 5, 1, 1);
    disk.flush().unwrap();
    (10..20).for_each(|lpn| write(&disk, lpn, 0, 1));
    disk.flush().unwrap();
    (20..30).for_each(|lpn| write(&disk, lpn, 0, 1));
    wear_out(&card, 5);
    let mut out = vec![0; SECTOR_BYTES];
    assert!(matches!(disk.read(Lpn(5), 0, &mut out), Err(LftlError::Lost { sectors: 1, .. })));
    // One sector is written again; the other stays lost through an eviction and a mount.
    write(&disk, 5, 1, 2);
    disk.flush().unwrap();
    assert_eq!(read(&disk, 5, 1), sector(5, 1, 2));
    drop(disk);
    let (disk, _) = mount(&card, &options(64)).unwrap();
    assert_eq!(read(&disk, 5, 1), sector(5, 1, 2));
    assert!(matches!(disk.read(Lpn(5), 0, &mut out), Err(LftlError::Lost { sectors: 1, .. })));
    assert!(matches!(disk.write(Lpn(5), 10, &[1]), Err(LftlError::Lost { .. })), "the rest of the sector is lost");
    write(&disk, 5, 0, 3);
    disk.flush().unwrap();
    assert_eq!(read(&disk, 5, 0), sector(5, 0, 3));
}

/// Harms every copy of a logical page.
fn wear_out(card: &Card, lpn: u32) {
    let mut card = card.lock().unwrap();
    let pages = nand::Nand::geometry(&*card).pages();
    let holds = |card: &mut nand::Faulty<nand::MemNand>, ppn| {
        let spare = nand::Nand::read_spare(card, nand::Ppn(ppn)).ok().flatten();
        spare.is_some_and(|spare| spare.kind == nand::PageKind::User && spare.tag == lpn)
    };
    let found: Vec<u32> = (0..pages).filter(|ppn| holds(&mut card, *ppn)).collect();
    assert!(!found.is_empty());
    found.into_iter().for_each(|ppn| card.damage(nand::Ppn(ppn), Blemish::Unreadable));
}

#[test]
fn a_worn_out_card_is_read_only() {
    let card = card(2, 24, 8, FaultPlan::default());
    let disk = format(&card, &options(100)).unwrap();
    (0..100).for_each(|lpn| write(&disk, lpn, 0, 1));
    disk.flush().unwrap();
    {
        let mut card = card.lock().unwrap();
        card.plan_mut().failing_blocks = (0..48).map(nand::BlockId).collect();
    }
    let mut rng = Rng(1);
    let mut versions = vec![1; 100];
    let error = (2..100_000).find_map(|version| {
        let lpn = rng.below(100) as u32;
        let written = disk.write(Lpn(lpn), 0, &sector(lpn, 0, version));
        if written.is_ok() {
            versions[lpn as usize] = version;
        }
        written.err()
    });
    assert!(matches!(error, Some(LftlError::NoSpace(shortage)) if shortage.bad_blocks > 10), "{error:?}");
    assert!(disk.read_only().is_some());
    for lpn in 0..100 {
        assert_eq!(read(&disk, lpn, 0), sector(lpn, 0, versions[lpn as usize]));
    }
    assert!(matches!(disk.trim(Lpn(0), 1), Err(LftlError::NoSpace(_))));
    drop(disk);
    let (disk, report) = mount(&card, &options(100)).unwrap();
    assert!(report.read_only.is_some(), "{report:?}");
    (0..100).for_each(|lpn| drop(read(&disk, lpn, 0)));
}

#[test]
fn idle_buffers_are_written_out() {
    let card = card(2, 24, 8, FaultPlan::default());
    let options = Options { idle: Duration::from_secs(60), ..options(64) };
    let disk = format(&card, &options).unwrap();
    disk.flush_idle(1_000).unwrap();
    write(&disk, 1, 0, 1);
    disk.flush_idle(30_000).unwrap();
    write(&disk, 2, 0, 1);
    disk.flush_idle(60_999).unwrap();
    assert_eq!(disk.report().host_programs, 0, "nothing is 60 s old");
    disk.flush_idle(61_000).unwrap();
    assert_eq!(disk.report().host_programs, 1, "page 1 is, page 2 is not");
    disk.flush_idle(90_000).unwrap();
    assert_eq!(disk.report().host_programs, 2);
    assert_eq!(read(&disk, 1, 0), sector(1, 0, 1));
}

#[test]
fn many_threads_see_their_own_writes() {
    for (_, policy) in Policy::TABLE {
        let card = card(4, 24, 8, FaultPlan::default());
        let options = Options { policy, checkpoint_every: Some(500), ..options(320) };
        let disk = format(&card, &options).unwrap();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let disk = &disk;
            let writers: Vec<_> = (0..4_u32)
                .map(|thread| {
                    scope.spawn(move || {
                        let mut rng = Rng(thread.into());
                        // Each has its sectors; pages are shared by neighbours.
                        let mut versions = vec![0; 320];
                        for version in 1..6_000 {
                            let lpn = rng.below(320) as u32;
                            if lpn as usize % 4 / SECTORS != thread as usize / SECTORS {
                                continue;
                            }
                            let index = thread as usize % SECTORS;
                            match rng.below(8) {
                                0 if rng.below(16) == 0 => disk.flush().unwrap(),
                                0..=2 => {
                                    assert_eq!(read(disk, lpn, index), sector(lpn, index, versions[lpn as usize]));
                                }
                                _ => {
                                    write(disk, lpn, index, version);
                                    versions[lpn as usize] = version;
                                }
                            }
                        }
                        for lpn in (0..320).filter(|lpn| *lpn as usize % 4 / SECTORS == thread as usize / SECTORS) {
                            let index = thread as usize % SECTORS;
                            assert_eq!(read(disk, lpn, index), sector(lpn, index, versions[lpn as usize]));
                        }
                    })
                })
                .collect();
            let done = &done;
            for _ in 0..2 {
                scope.spawn(move || {
                    while !done.load(std::sync::atomic::Ordering::Relaxed) {
                        if !disk.collect_round().unwrap() {
                            std::thread::sleep(Duration::from_micros(100));
                        }
                    }
                });
            }
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        assert!(disk.report().saved_pages > 5, "no checkpoint was written");
    }
}

#[test]
fn every_buffer_that_was_emptied_takes_a_page_again() {
    let block_lru = Options { replacement: Replacement::BlockLru, ..options(40) };
    let programs = |disk: &Engine| disk.report().host_programs;
    let fill = |disk: &Engine, pages: std::ops::Range<u32>| {
        pages.for_each(|lpn| (0..SECTORS).for_each(|index| write(disk, lpn, index, 1)));
    };
    let disk = format(&card(2, 24, 4, FaultPlan::default()), &options(40)).unwrap();
    fill(&disk, 0..3);
    disk.flush_idle(61_000).unwrap();
    assert_eq!(programs(&disk), 3, "what nobody used was written out");
    fill(&disk, 10..18);
    assert_eq!(programs(&disk), 3, "after an idle flush eight pages fit eight buffers");
    disk.trim(Lpn(10), 8).unwrap();
    fill(&disk, 20..28);
    assert_eq!(programs(&disk), 3, "after a trim eight pages fit eight buffers");
    let disk = format(&card(2, 24, 4, FaultPlan::default()), &block_lru).unwrap();
    fill(&disk, 0..9);
    assert_eq!(programs(&disk), 4, "a block of four pages gave way to the ninth");
    fill(&disk, 9..12);
    assert_eq!(programs(&disk), 4, "three of its buffers were left");
}

#[test]
fn a_policy_that_asks_for_it_knows_when_a_buffer_was_used() {
    for (replacement, left) in [(Replacement::Fifo, 0), (Replacement::Lru, 1)] {
        let options = Options { replacement, ..options(40) };
        let disk = format(&card(2, 24, 4, FaultPlan::default()), &options).unwrap();
        (0..8).for_each(|lpn| (0..SECTORS).for_each(|index| write(&disk, lpn, index, 1)));
        read(&disk, 0, 0);
        write(&disk, 20, 0, 1);
        let reads = disk.report().ops.reads;
        (0..8).filter(|lpn| *lpn != left).for_each(|lpn| _ = read(&disk, lpn, 0));
        assert_eq!(disk.report().ops.reads, reads, "{replacement:?} let another page go");
        read(&disk, left, 0);
        assert_eq!(disk.report().ops.reads, reads + 1, "{replacement:?} let no page go");
    }
}
