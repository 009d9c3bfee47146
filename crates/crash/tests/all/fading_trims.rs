//! What was programmed last reads well at a mount, but not for long. A page of the trim map is
//! programmed again, and until that is done its older versions stay.

#![allow(clippy::unwrap_used)]

use ftl::{Config, Ftl};
use nand::faults::{Blemish, Cut, CutOutcome, FaultPlan, Faulty};
use nand::geometry::Dimensions;
use nand::{Capabilities, Geometry, Lpn, Nand, PageKind, Ppn, SimNand, Stamp};
use openftl_crash::{Shared, Stamps};
use table::AnyBytes;

type Device = Shared<Faulty<SimNand>>;

const BLOCKS: u32 = 60;
const PAGES: u32 = 8;
/// Trimmed and flushed before anything is cut.
const GONE: u32 = 20;

fn device() -> Device {
    let geometry = Geometry::new(Dimensions {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks: BLOCKS,
        pages_per_block: PAGES,
        page_bytes: 512,
        spare_bytes: 32,
    });
    Shared::new(Faulty::new(SimNand::new(geometry.unwrap(), Capabilities::MODERN), FaultPlan::default()))
}

/// The most logical pages that the device has room for: blocks are short.
fn most() -> u32 {
    let entry = table::find::<AnyBytes>("page").unwrap();
    let fits = |pages| (entry.format)(device().flash_of_bytes(), &Config::new(pages)).is_ok();
    (1..BLOCKS).rev().map(|blocks| blocks * PAGES).find(|pages| fits(*pages)).unwrap()
}

/// Where the newest version of the one page of the trim map is.
fn newest_of_map(device: &Device) -> Ppn {
    let mut device = device.get();
    let pages = (0..device.geometry().pages()).map(Ppn);
    let found = pages.filter_map(|ppn| device.read_spare(ppn).ok().flatten().map(|spare| (spare, ppn)));
    found.filter(|(spare, _)| spare.kind == PageKind::Translation).max_by_key(|(spare, _)| spare.seq).unwrap().1
}

fn cut_at(device: &Device, at: u64, outcome: CutOutcome) {
    let mut device = device.get();
    let at = device.ops() + at;
    device.plan_mut().cuts = vec![Cut { at, outcome }];
}

fn power_up(device: &Device) {
    let mut device = device.get();
    device.plan_mut().cuts.clear();
    device.power_up();
}

/// Fills the disk, writes at random, trims and flushes so often, then once more with a cut when the
/// page of the map is complete. `None` if the flush has to collect something before it.
fn cut_flush(logical: u32, flushes: u32) -> Option<Device> {
    let device = device();
    let mut ftl =
        (table::find::<AnyBytes>("page").unwrap().format)(device.flash_of_bytes(), &Config::new(logical)).unwrap();
    let mut state = 3_u32;
    let random = (0..500).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % logical
    });
    for lpn in (0..logical).chain(random).map(Lpn) {
        ftl.write_stamp(lpn, Stamp { lpn, version: 1 }).unwrap();
    }
    ftl.trim(Lpn(0), GONE).unwrap();
    ftl.flush().unwrap();
    for lpn in (GONE..GONE + flushes).map(Lpn) {
        ftl.trim(lpn, 1).unwrap();
        ftl.flush().unwrap();
    }
    let before = newest_of_map(&device);
    ftl.trim(Lpn(logical - 1), 1).unwrap();
    cut_at(&device, 0, CutOutcome::Done);
    ftl.flush().unwrap_err();
    power_up(&device);
    (newest_of_map(&device) != before).then_some(device)
}

fn mount(device: &Device, logical: u32) -> Option<Box<dyn Ftl<AnyBytes>>> {
    let mounted =
        (table::find::<AnyBytes>("page").unwrap().mount.unwrap())(device.flash_of_bytes(), &Config::new(logical));
    mounted.ok().map(|(ftl, _)| ftl)
}

/// What was trimmed and flushed reads as zeros.
fn verify(ftl: &mut dyn Ftl<AnyBytes>, what: &str) {
    for lpn in (0..GONE).map(Lpn) {
        assert_eq!(ftl.read_stamp(lpn).unwrap(), Stamp::UNWRITTEN, "{what}: {lpn}");
    }
}

#[test]
fn a_flushed_trim_stays_trimmed_when_the_last_page_of_the_map_fades_after_a_mount() {
    let logical = most();
    let mut tried = 0;
    for flushes in 0..3 * PAGES {
        let Some(device) = cut_flush(logical, flushes) else { continue };
        tried += 1;
        let last = newest_of_map(&device);
        verify(&mut *mount(&device, logical).unwrap(), "mounted");
        device.get().damage(last, Blemish::Unreadable);
        verify(&mut *mount(&device, logical).unwrap(), &format!("after {flushes} flushes"));
    }
    assert!(tried > PAGES, "{tried} cuts");
}

#[test]
fn a_flushed_trim_stays_trimmed_when_the_last_page_of_the_map_fades_during_a_mount() {
    let logical = most();
    let mut cuts = 0;
    for (flushes, at) in (0..3 * PAGES).flat_map(|flushes| (0..4).map(move |at| (flushes, at))) {
        let Some(device) = cut_flush(logical, flushes) else { continue };
        let last = newest_of_map(&device);
        cut_at(&device, at, CutOutcome::Torn);
        cuts += u32::from(mount(&device, logical).is_none());
        power_up(&device);
        device.get().damage(last, Blemish::Unreadable);
        verify(&mut *mount(&device, logical).unwrap(), &format!("after {flushes} flushes, mount cut at {at}"));
    }
    assert!(cuts > PAGES, "{cuts} cuts");
}

fn read(ftl: &mut dyn Ftl<AnyBytes>, lpn: u32) -> Option<Stamp> {
    ftl.read_stamp(Lpn(lpn)).ok()
}

#[test]
fn a_trim_that_was_read_and_flushed_after_a_mount_stays_when_the_page_that_said_so_first_fades() {
    let logical = most();
    let mut tried = 0;
    for flushes in 0..3 * PAGES {
        let Some(device) = cut_flush(logical, flushes) else { continue };
        tried += 1;
        let last = newest_of_map(&device);
        let mut ftl = mount(&device, logical).unwrap();
        assert_eq!(read(&mut *ftl, logical - 1), Some(Stamp::UNWRITTEN), "mounted");
        ftl.flush().unwrap();
        device.get().damage(last, Blemish::DataUnreadable);
        let mut ftl = mount(&device, logical).unwrap();
        assert_eq!(read(&mut *ftl, logical - 1), Some(Stamp::UNWRITTEN), "after {flushes} flushes");
    }
    assert!(tried > PAGES, "{tried} cuts");
}

#[test]
fn what_a_page_in_doubt_superseded_is_an_error_if_it_is_worn() {
    let device = device();
    let mut ftl =
        (table::find::<AnyBytes>("page").unwrap().format)(device.flash_of_bytes(), &Config::new(100)).unwrap();
    for lpn in (0..3 * PAGES).map(Lpn) {
        ftl.write_stamp(lpn, Stamp { lpn, version: 1 }).unwrap();
    }
    let lpn = Lpn(PAGES - 1);
    let worn = (0..BLOCKS * PAGES).map(Ppn).find(|ppn| {
        let spare = device.get().read_spare(*ppn).ok().flatten();
        spare.is_some_and(|spare| spare.kind == PageKind::User && spare.tag == lpn.0)
    });
    // Read once by the scan, and then no more.
    cut_at(&device, 0, CutOutcome::Fading(1));
    ftl.write_stamp(lpn, Stamp { lpn, version: 2 }).unwrap_err();
    power_up(&device);
    device.get().damage(worn.unwrap(), Blemish::DataUnreadable);
    for _ in 0..2 {
        let mut ftl = mount(&device, 100).unwrap();
        assert_eq!(read(&mut *ftl, lpn.0), None, "it is the last page of its block, and nobody may take it for torn");
        assert_eq!(read(&mut *ftl, 0), Some(Stamp { lpn: Lpn(0), version: 1 }));
    }
}

#[test]
fn mounts_cut_short_in_a_row_use_up_no_blocks_and_leave_what_the_page_in_doubt_superseded() {
    let logical = most();
    for outcome in [CutOutcome::Torn, CutOutcome::TornData, CutOutcome::Done] {
        let device = device();
        let mut ftl =
            (table::find::<AnyBytes>("page").unwrap().format)(device.flash_of_bytes(), &Config::new(logical)).unwrap();
        for lpn in (0..logical).chain(0..logical).map(Lpn) {
            ftl.write_stamp(lpn, Stamp { lpn, version: 1 }).unwrap();
        }
        cut_at(&device, 0, CutOutcome::Fading(100));
        ftl.write_stamp(Lpn(3), Stamp { lpn: Lpn(3), version: 2 }).unwrap_err();
        power_up(&device);
        for attempt in 0..2 * u64::from(BLOCKS) {
            // An erase of the block, and the copy.
            cut_at(&device, 1 + attempt % 2, outcome);
            assert!(mount(&device, logical).is_none(), "{outcome:?}, attempt {attempt}");
            power_up(&device);
        }
        let mut ftl = mount(&device, logical).unwrap();
        assert!(ftl.read_only().is_none(), "{outcome:?}");
        assert!(read(&mut *ftl, 3).is_some_and(|stamp| stamp.lpn == Lpn(3)), "{outcome:?}");
    }
}
