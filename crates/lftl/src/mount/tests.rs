//! What a mount does for the mounts after it that can read no checkpoint, each shown by the
//! shortest life that needs it.

#![allow(clippy::unwrap_used)]

use super::{Engine, Recovery};
use crate::Policy;
use crate::sync::Ordering;
use crate::{Devices, Options, SECTOR_BYTES, Slice};
use nand::{Capabilities, Cut, CutOutcome, Dimensions, FaultPlan, Faulty, Geometry, Lpn, MemNand};
use std::sync::{Arc, Mutex};

type Card = Arc<Mutex<Faulty<MemNand>>>;

/// More than the numbers that a mount takes for a checkpoint and its anchors.
const BANKS: u32 = 16;
const PAGES_PER_BLOCK: u32 = 4;

fn card() -> Card {
    let dimensions = Dimensions {
        channels: BANKS,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks: 10 * BANKS,
        pages_per_block: PAGES_PER_BLOCK,
        page_bytes: SECTOR_BYTES as u32,
        spare_bytes: 64,
    };
    let nand = MemNand::new(Geometry::new(dimensions).unwrap(), Capabilities::MODERN);
    Arc::new(Mutex::new(Faulty::new(nand, FaultPlan::default())))
}

fn options() -> Options {
    Options { policy: Policy::WritePath, ..Options::new(16) }
}

fn slices(card: &Card) -> Devices {
    Slice::all(Arc::clone(card)).unwrap().into()
}

/// A disk of which no checkpoint can be read.
fn scanned(card: &Card) -> Engine {
    Engine::mount(slices(card), options(), Recovery::Scan, 1).unwrap().0
}

fn aim(disk: &Engine, bank: u32) {
    for (index, cell) in (0..).zip(&disk.banks) {
        cell.info.exclusive.store(index != bank, Ordering::Release);
    }
}

fn write_to(disk: &Engine, bank: u32, lpn: u32, fill: u8) {
    aim(disk, bank);
    disk.write(Lpn(lpn), 0, &[fill; SECTOR_BYTES]).unwrap();
    disk.flush().unwrap();
    assert_eq!(disk.shape.bank_of(disk.map.get(Lpn(lpn))), bank);
}

fn read(disk: &Engine, lpn: u32) -> u8 {
    let mut found = [0; SECTOR_BYTES];
    disk.read(Lpn(lpn), 0, &mut found).unwrap();
    found[0]
}

/// Power is lost while a page is programmed, `before` operations from now, that reads well or not
/// by chance ever after. Writers of all other banks had their sequence numbers, and programmed
/// nothing.
fn lose_power(card: &Card, disk: Engine, (bank, lpn, fill): (u32, u32, u8), before: u64, seed: u64) {
    disk.seq.fetch_add(u64::from(BANKS) - 1, Ordering::AcqRel);
    aim(&disk, bank);
    disk.write(Lpn(lpn), 0, &[fill; SECTOR_BYTES]).unwrap();
    let mut device = card.lock().unwrap();
    let at = device.ops() + before;
    device.plan_mut().cuts = vec![Cut { at, outcome: CutOutcome::FlakyWhole }];
    device.plan_mut().seed = seed;
    drop(device);
    assert!(disk.flush().is_err(), "power was not lost");
    drop(disk);
    card.lock().unwrap().power_up();
    card.lock().unwrap().plan_mut().cuts.clear();
}

/// Writes a page that was being written when power was lost, if a mount did not find that version;
/// whether it did not. It is there for every later mount.
fn overwrite_and_check(card: &Card, lpn: u32, what: &str) -> bool {
    let disk = scanned(card);
    if read(&disk, lpn) != 1 {
        return false;
    }
    write_to(&disk, 2, lpn, 3);
    drop(disk);
    for life in 0..3 {
        assert_eq!(read(&scanned(card), lpn), 3, "{what}, life {life}: an older version came back");
    }
    true
}

/// The sequence numbers of a new life are larger than those of pages that its mount cannot read.
#[test]
fn a_page_that_no_mount_could_read_is_older_than_what_replaced_it() {
    let mut unread = 0;
    for seed in 0..40 {
        let card = card();
        let disk = Engine::format(slices(&card), options()).unwrap();
        for lpn in [3, 9, 10, 11] {
            write_to(&disk, 1, lpn, 1);
        }
        // What else is in its block lives, so that no mount erases it.
        for lpn in 0..PAGES_PER_BLOCK - 1 {
            write_to(&disk, 0, lpn, 1);
        }
        lose_power(&card, disk, (0, 3, 2), 0, seed);
        unread += u32::from(overwrite_and_check(&card, 3, &format!("seed {seed}")));
    }
    assert!(unread > 4, "{unread} mounts could not read it");
}

/// The page alone in its block shows the next life no number, and that one takes the same again.
#[test]
fn a_block_of_which_no_mount_could_read_a_page_is_erased() {
    let mut unread = 0;
    for (bank, seed) in (3..BANKS).flat_map(|bank| (0..6).map(move |seed| (bank, seed))) {
        let card = card();
        let disk = Engine::format(slices(&card), options()).unwrap();
        for lpn in [3, 9, 10, 11] {
            write_to(&disk, 1, lpn, 1);
        }
        // The last page of its block, which a mount would write again with a number of its own.
        disk.trim(Lpn(11), 1).unwrap();
        disk.flush().unwrap();
        drop(disk);
        // An erase comes before the program.
        lose_power(&card, scanned(&card), (bank, 3, 2), 1, seed);
        unread += u32::from(overwrite_and_check(&card, 3, &format!("bank {bank}, seed {seed}")));
    }
    assert!(unread > 10, "{unread} mounts could not read it");
}
