//! A disk over the engine of many threads keeps what a plain model keeps.

use lftl::{Engine, Options, Policy, Server, Threads};
use nand::{Capabilities, Dimensions, Geometry, MemNand};
use openftl_blockdev::{BankedDisk, BankedOptions, BlockDevice, DiskError, Extent, Silent, Zeroing};
use proptest::prelude::*;
use std::sync::Arc;
use std::thread;

const PAGE: u64 = 8192;
const SECTOR: u64 = 4096;
const LOGICAL_PAGES: u32 = 96;

fn disk(policy: Policy, workers: u32) -> BankedDisk {
    let dimensions = Dimensions {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks: 24,
        pages_per_block: 4,
        page_bytes: PAGE as u32,
        spare_bytes: 64,
    };
    let geometry = Geometry::new(dimensions).unwrap();
    let banks = (0..4).map(|_| MemNand::new(geometry, Capabilities::MODERN)).collect();
    let options = Options { policy, buffers: 8, ..Options::new(LOGICAL_PAGES) };
    let collectors = u32::from(policy != Policy::WritePath) * 2;
    let server = Server::start(Engine::format(banks, options).unwrap(), Threads { workers, collectors }).unwrap();
    BankedDisk::new(server, BankedOptions::new(Arc::new(Silent)))
}

#[derive(Clone, Debug)]
enum Step {
    Write(u64, u64, u8, bool),
    Trim(u64, u64),
    Zero(u64, u64, bool),
    Flush,
}

fn step() -> impl Strategy<Value = Step> {
    let size = u64::from(LOGICAL_PAGES) * PAGE;
    let range = (0..size, 1..5 * PAGE).prop_map(move |(offset, bytes)| (offset, bytes.min(size - offset)));
    prop_oneof![
        6 => (range.clone(), any::<u8>(), any::<bool>()).prop_map(|((at, bytes), fill, fua)| Step::Write(at, bytes, fill, fua)),
        2 => range.clone().prop_map(|(at, bytes)| Step::Trim(at, bytes)),
        2 => (range, any::<bool>()).prop_map(|((at, bytes), trim)| Step::Zero(at, bytes, trim)),
        1 => Just(Step::Flush),
    ]
}

/// Does a step on the disk and on the model.
fn apply(disk: &BankedDisk, model: &mut [u8], step: &Step) -> Result<(), DiskError> {
    match *step {
        Step::Write(at, bytes, fill, fua) => {
            let range = at as usize..(at + bytes) as usize;
            model[range.clone()].fill(fill);
            disk.write(at, &model[range], fua)
        }
        Step::Trim(at, bytes) => {
            let (from, end) = (at.div_ceil(SECTOR) * SECTOR, (at + bytes) / SECTOR * SECTOR);
            if from < end {
                model[from as usize..end as usize].fill(0);
            }
            disk.trim(at, bytes, false)
        }
        Step::Zero(at, bytes, may_trim) => {
            model[at as usize..(at + bytes) as usize].fill(0);
            disk.write_zeroes(at, bytes, Zeroing { may_trim, ..Zeroing::default() })
        }
        Step::Flush => disk.flush(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_written_is_read(
        steps in prop::collection::vec(step(), 1..150),
        policy in prop::sample::select(vec![Policy::WritePath, Policy::Parallel, Policy::Adaptive]),
    ) {
        let disk = disk(policy, 3);
        let mut model = vec![0; disk.size_bytes() as usize];
        for step in &steps {
            apply(&disk, &mut model, step).unwrap();
        }
        let mut out = vec![1; model.len()];
        disk.read(0, &mut out).unwrap();
        prop_assert!(out == model, "the disk differs from the model");
        let mut at = 0;
        disk.extents(0, disk.size_bytes(), &mut |Extent { bytes, hole }| {
            let end = at + bytes as usize;
            assert!(!hole || model[at..end].iter().all(|byte| *byte == 0), "a hole holds data at {at}");
            at = end;
            true
        }).unwrap();
        prop_assert_eq!(at, model.len());
        disk.close().unwrap();
        prop_assert!(disk.write(0, &[1], false).is_err(), "a closed disk takes a write");
    }
}

#[test]
fn lanes_cover_the_disk_a_page_each_in_turn() {
    let disk = disk(Policy::Adaptive, 3);
    assert_eq!(disk.lanes(), 3);
    assert_eq!(
        [0, PAGE - 1, PAGE, 3 * PAGE + 5].map(|at| disk.lane_of(at)),
        [(0, PAGE), (0, PAGE), (1, 2 * PAGE), (0, 4 * PAGE)]
    );
}

#[test]
fn what_is_outside_is_refused_and_harmless() {
    let disk = disk(Policy::WritePath, 2);
    let end = disk.size_bytes();
    for outcome in [
        disk.write(end - 1, &[7; 2], false),
        disk.read(end, &mut [0; 1]),
        disk.trim(end - SECTOR, 2 * SECTOR, false),
        disk.write_zeroes(end, 1, Zeroing::default()),
        disk.write(u64::MAX, &[7], false),
    ] {
        assert!(matches!(outcome, Err(DiskError::OutOfRange { .. })), "{outcome:?}");
    }
    let mut last = [1];
    disk.read(end - 1, &mut last).unwrap();
    assert_eq!(last, [0]);
}

#[test]
fn threads_that_write_side_by_side_keep_their_pages() {
    let disk = disk(Policy::Adaptive, 4);
    let mine = |thread: u64, round: u64| [(thread * 40 + round) as u8; SECTOR as usize];
    let places = |thread: u64| (0..40).map(move |place| (place * 4 + thread) * SECTOR);
    thread::scope(|scope| {
        for thread in 0..4 {
            let disk = &disk;
            scope.spawn(move || {
                for round in 0..40 {
                    places(thread).for_each(|at| disk.write(at, &mine(thread, round), false).unwrap());
                }
            });
        }
    });
    disk.flush().unwrap();
    let mut out = [0; SECTOR as usize];
    for thread in 0..4 {
        for at in places(thread) {
            disk.read(at, &mut out).unwrap();
            assert_eq!(out, mine(thread, 39), "at {at}");
        }
    }
}
