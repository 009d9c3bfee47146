//! The engine under a scheduler that decides at every lock and atomic which thread goes on:
//! thousands of orders in which a few threads can run, on a card of two banks.
//!
//! A deadlock, a panic and a failed assertion end a test with the schedule that led there.

use nand::{Capabilities, Cut, CutOutcome, Dimensions, FaultPlan, Faulty, Geometry, Lpn, MemNand, NandError};
use openftl_lftl::{Engine, Level, Levels, LftlError, Options, Policy, Recovery, Replacement, SECTOR_BYTES, Slice};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

type Card = Arc<Mutex<Faulty<MemNand>>>;

const PAGES: u32 = 6;

fn card() -> Card {
    let geometry = Geometry::new(Dimensions {
        channels: 2,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks: 2 * 13,
        pages_per_block: 2,
        page_bytes: 2 * SECTOR_BYTES as u32,
        spare_bytes: 64,
    });
    let nand = MemNand::new(geometry.unwrap(), Capabilities::MODERN);
    Arc::new(Mutex::new(Faulty::new(nand, FaultPlan::default())))
}

fn options(policy: Policy) -> Options {
    Options { policy, buffers: 2, checkpoint_every: Some(1_000), ..Options::new(PAGES) }
}

/// As if every bank were always so short that any block with a dead page is collected.
fn eager(policy: Policy) -> Options {
    let level = Level { free_blocks: 1_000, live_pages: 1 };
    Options { levels: Some(Levels([level; 3])), ..options(policy) }
}

fn format(card: &Card, options: &Options) -> Arc<Engine> {
    Arc::new(Engine::format(Slice::all(Arc::clone(card)).unwrap().into(), options.clone()).unwrap())
}

fn mount(card: &Card, options: &Options) -> Engine {
    let devices = Slice::all(Arc::clone(card)).unwrap();
    Engine::mount(devices.into(), options.clone(), Recovery::Bounded, 1).unwrap().0
}

fn write(disk: &Engine, lpn: u32, index: usize, version: u32) -> Result<(), LftlError> {
    let data = (u64::from(lpn) << 32 | u64::from(version)).to_le_bytes().repeat(SECTOR_BYTES / 8);
    disk.write(Lpn(lpn), index * SECTOR_BYTES, &data)
}

/// The version that a sector reads as.
fn version(disk: &Engine, lpn: u32, index: usize) -> u32 {
    let mut data = vec![0xEE; SECTOR_BYTES];
    disk.read(Lpn(lpn), index * SECTOR_BYTES, &mut data).unwrap();
    let word = u64::from_le_bytes(data[..8].try_into().unwrap());
    assert!(data.chunks(8).all(|other| other == &data[..8]), "a sector of two versions");
    assert!(word == 0 || word >> 32 == u64::from(lpn), "page {lpn} reads as page {}", word >> 32);
    word as u32
}

/// Runs a test under random schedules, and under those that change threads seldom and late.
fn explore(test: fn(), rounds: usize) {
    shuttle::check_random(test, rounds);
    shuttle::check_pct(test, rounds, 3);
}

#[test]
fn a_reader_sees_the_newest_while_a_page_is_written_out_again_and_again() {
    explore(
        || {
            let card = card();
            let disk = format(&card, &options(Policy::Parallel));
            let completed = Arc::new(AtomicU32::new(0));
            let writer = {
                let (disk, completed) = (Arc::clone(&disk), Arc::clone(&completed));
                shuttle::thread::spawn(move || {
                    for number in 1..=3 {
                        write(&disk, 0, 0, number).unwrap();
                        completed.store(number, Ordering::SeqCst);
                    }
                })
            };
            let evictor = {
                let disk = Arc::clone(&disk);
                // Each takes a buffer from another page.
                shuttle::thread::spawn(move || (1..4).for_each(|lpn| write(&disk, lpn, 0, 1).unwrap()))
            };
            let mut last = 0;
            for _ in 0..3 {
                let before = completed.load(Ordering::SeqCst);
                let seen = version(&disk, 0, 0);
                assert!(seen >= before && seen >= last, "read {seen} after {before} and {last}");
                last = seen;
            }
            writer.join().unwrap();
            evictor.join().unwrap();
            disk.flush().unwrap();
            drop(disk);
            // The order on flash is the order of the writes.
            let disk = mount(&card, &options(Policy::Parallel));
            assert_eq!(version(&disk, 0, 0), 3);
        },
        1_500,
    );
}

#[test]
fn a_collector_never_brings_back_what_was_overwritten() {
    explore(
        || {
            let card = card();
            let options = eager(Policy::Parallel);
            let disk = format(&card, &options);
            // Many blocks with a dead page and a live one.
            for number in 1..=3 {
                (0..PAGES).for_each(|lpn| write(&disk, lpn, 0, number).unwrap());
                disk.flush().unwrap();
                (0..2).for_each(|lpn| write(&disk, lpn, 0, number).unwrap());
            }
            disk.flush().unwrap();
            let collectors: Vec<_> = (0..2)
                .map(|_| {
                    let disk = Arc::clone(&disk);
                    shuttle::thread::spawn(move || (0..4).for_each(|_| _ = disk.collect_round().unwrap()))
                })
                .collect();
            let reader = {
                let disk = Arc::clone(&disk);
                shuttle::thread::spawn(move || {
                    for lpn in [4, 5, 2, 0, 4, 5] {
                        let seen = version(&disk, lpn, 0);
                        assert!(if lpn == 0 { seen >= 3 } else { seen == 3 }, "page {lpn} reads {seen}");
                    }
                })
            };
            for number in 5..=6 {
                (0..2).for_each(|lpn| write(&disk, lpn, 0, number).unwrap());
                disk.flush().unwrap();
            }
            disk.trim(Lpn(3), 1).unwrap();
            disk.flush().unwrap();
            collectors.into_iter().chain([reader]).for_each(|thread| thread.join().unwrap());
            let expected = |lpn| [6, 6, 3, 0, 3, 3][lpn as usize];
            (0..PAGES).for_each(|lpn| assert_eq!(version(&disk, lpn, 0), expected(lpn), "page {lpn}"));
            drop(disk);
            let disk = mount(&card, &options);
            (0..PAGES).for_each(|lpn| assert_eq!(version(&disk, lpn, 0), expected(lpn), "page {lpn} after a mount"));
        },
        1_500,
    );
}

#[test]
fn nobody_waits_for_ever_when_every_bank_is_short() {
    for policy in [Policy::WritePath, Policy::Parallel] {
        let test = move || {
            let card = card();
            let options = Options { replacement: Replacement::Lru, ..options(policy) };
            let disk = format(&card, &options);
            let writers: Vec<_> = (0..3)
                .map(|thread| {
                    let disk = Arc::clone(&disk);
                    shuttle::thread::spawn(move || {
                        for number in 1..=6 {
                            let lpn = (number * 2 + thread) % PAGES;
                            write(&disk, lpn, thread as usize % 2, number).unwrap();
                            disk.flush_page(Lpn(lpn)).unwrap();
                        }
                        if thread == 0 {
                            disk.trim(Lpn(0), 2).unwrap();
                        }
                    })
                })
                .collect();
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            disk.flush().unwrap();
            (0..PAGES).for_each(|lpn| write(&disk, lpn, 0, 9).unwrap());
            disk.flush().unwrap();
            (0..PAGES).for_each(|lpn| assert_eq!(version(&disk, lpn, 0), 9));
        };
        shuttle::check_random(test, 500);
        shuttle::check_pct(test, 500, 3);
    }
}

#[test]
fn what_was_flushed_survives_a_cut_in_any_order_of_threads() {
    explore(
        || {
            let card = card();
            let options = eager(Policy::Parallel);
            let disk = format(&card, &options);
            {
                let mut card = card.lock().unwrap();
                let at = card.ops() + thread_rng().gen_range(0..40);
                let outcome = CutOutcome::ALL[thread_rng().gen_range(0..CutOutcome::ALL.len())];
                let seed = thread_rng().gen_range(0..u64::MAX);
                *card.plan_mut() = FaultPlan { seed, cuts: vec![Cut { at, outcome }], ..FaultPlan::default() };
            }
            // Each thread has a page: what it flushed last, and what it wrote last.
            let threads: Vec<_> = (0..3)
                .map(|lpn| {
                    let disk = Arc::clone(&disk);
                    shuttle::thread::spawn(move || {
                        let (mut flushed, mut written) = (0, 0);
                        for number in 1..=5 {
                            written = number;
                            if write(&disk, lpn, 0, number).is_err() {
                                break;
                            }
                            let kept = match number % 3 {
                                0 => disk.checkpoint().map(|()| false),
                                1 => disk.flush().map(|()| true),
                                _ => disk.collect_round().map(|_| false),
                            };
                            match kept {
                                Ok(true) => flushed = number,
                                Ok(false) => {}
                                Err(LftlError::Nand(NandError::PowerLost) | LftlError::Failed { .. }) => break,
                                Err(error) => panic!("{error}"),
                            }
                        }
                        (flushed, written)
                    })
                })
                .collect();
            let kept: Vec<(u32, u32)> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            drop(disk);
            card.lock().unwrap().power_up();
            card.lock().unwrap().plan_mut().cuts.clear();
            for _ in 0..2 {
                let disk = mount(&card, &options);
                for (lpn, (flushed, written)) in (0..).zip(&kept) {
                    let seen = version(&disk, lpn, 0);
                    assert!((*flushed..=*written).contains(&seen), "page {lpn}: {seen}, not {flushed} to {written}");
                }
            }
        },
        1_500,
    );
}
