//! A page that cannot be read is lost for good: also after its block was erased, and, of page
//! mapping and a log-block FTL, after mounts.

#![allow(clippy::unwrap_used)]

use super::{capabilities, ftl_named, log_block_ftls, one_die};
use ftl::ftls::Entry;
use ftl::{Config, Flash, Ftl, FtlError};
use nand::faults::{Blemish, Cut, CutOutcome, FaultPlan, Faulty};
use nand::{Lpn, Nand, Ppn, SimNand, Stamp};
use openftl_ftl as ftl;

type Device = Faulty<SimNand>;

const LOGICAL: u32 = 12 * 4;
const LOST: Lpn = Lpn(18);
/// What was written there last.
const NEWEST: Stamp = Stamp { lpn: LOST, version: 175 };

fn device(entry: &Entry<Device>, blocks: u32) -> Device {
    let geometry = one_die(blocks, 4, 512);
    Faulty::new(SimNand::new(geometry, capabilities(&entry.info)), FaultPlan::default())
}

/// The page programmed last of those with the lost page, if there is one.
fn newest(nand: &mut Device) -> Option<(u64, Ppn)> {
    let pages = nand.geometry().pages();
    let copies = (0..pages).map(Ppn).filter_map(|ppn| {
        let spare = nand.inner_mut().read_spare(ppn).unwrap()?;
        (spare.kind == nand::PageKind::User && spare.tag == LOST.0).then_some((spare.seq, ppn))
    });
    copies.max()
}

fn read(ftl: &mut dyn Ftl<Device>) -> Result<Stamp, FtlError> {
    let mut got = Stamp::UNWRITTEN;
    ftl.read(LOST, &mut got).map(|()| got)
}

fn is_lost(ftl: &mut dyn Ftl<Device>) -> bool {
    matches!(read(ftl), Err(FtlError::Lost { .. } | FtlError::Nand(nand::NandError::Uncorrectable { .. })))
}

/// A disk of which every page was written more than once, and one cannot be read.
fn harmed(entry: &Entry<Device>, config: &Config, blemish: Blemish) -> (Box<dyn Ftl<Device>>, Ppn) {
    harmed_of(36, entry, config, blemish)
}

/// The same, on a device of so many blocks.
fn harmed_of(blocks: u32, entry: &Entry<Device>, config: &Config, blemish: Blemish) -> (Box<dyn Ftl<Device>>, Ppn) {
    let mut ftl = (entry.format)(Flash::new(device(entry, blocks)), config).unwrap();
    for at in 0..4 * LOGICAL {
        let lpn = Lpn(if at < LOGICAL { at } else { at * 7 % LOGICAL });
        ftl.write(lpn, &Stamp { lpn, version: at as u16 + 1 }).unwrap();
    }
    assert_eq!(read(&mut *ftl), Ok(NEWEST));
    let (_, ppn) = newest(ftl.flash_mut().nand_mut()).unwrap();
    ftl.flash_mut().nand_mut().damage(ppn, blemish);
    (ftl, ppn)
}

/// Writes other pages until the block with the harmed page was erased.
fn write_others(ftl: &mut dyn Ftl<Device>, harmed: Ppn) -> Result<(), FtlError> {
    for at in 0..100 * LOGICAL {
        if ftl.flash().nand().blemish(harmed).is_none() {
            return Ok(());
        }
        // Those of its own logical block most of the time, or that would not be merged.
        let lpn = Lpn(if at % 4 == 0 { at / 4 * 5 % LOGICAL } else { LOST.0 / 4 * 4 + at % 4 });
        if lpn != LOST {
            ftl.write(lpn, &Stamp { lpn, version: at as u16 + 1 })?;
        }
    }
    panic!("{} never erased the block of {harmed}", ftl.flash().nand().ops());
}

#[test]
fn a_lost_page_stays_lost_after_its_block_was_erased_and_a_mount() {
    for name in log_block_ftls().map(|entry| entry.info.name).chain(["page"]) {
        let (entry, config) = (ftl_named(name).unwrap(), Config::new(LOGICAL));
        let mount = entry.mount.unwrap();
        for (blemish, flushed) in [(Blemish::DataUnreadable, false), (Blemish::Unreadable, true)] {
            let (mut ftl, ppn) = harmed(&entry, &config, blemish);
            assert!(is_lost(&mut *ftl), "{name}: {blemish:?}, not moved");
            write_others(&mut *ftl, ppn).unwrap();
            if flushed {
                ftl.flush().unwrap();
            }
            for round in 0..3 {
                assert!(is_lost(&mut *ftl), "{name}: {blemish:?}, mounted {round} times: {:?}", read(&mut *ftl));
                ftl.check().unwrap();
                (ftl, _) = mount(Flash::new(ftl.into_flash().into_nand()), &config).unwrap();
            }
            let stamp = Stamp { lpn: LOST, version: 9999 };
            ftl.write(LOST, &stamp).unwrap();
            (ftl, _) = mount(Flash::new(ftl.into_flash().into_nand()), &config).unwrap();
            assert_eq!(read(&mut *ftl), Ok(stamp), "{name}");
            ftl.trim(LOST, 1).unwrap();
            assert_eq!(read(&mut *ftl), Ok(Stamp::UNWRITTEN), "{name}");
        }
    }
}

#[test]
fn maps_in_non_volatile_memory_say_what_is_lost_and_flash_does_not() {
    for entry in log_block_ftls() {
        let (name, config) = (entry.info.name, Config { maps: ftl::Maps::NonVolatile, ..Config::new(LOGICAL) });
        let (mut ftl, ppn) = harmed(&entry, &config, Blemish::DataUnreadable);
        write_others(&mut *ftl, ppn).unwrap();
        assert!(is_lost(&mut *ftl), "{name}");
        ftl.check().unwrap();
        let younger = newest(ftl.flash_mut().nand_mut()).filter(|(seq, _)| *seq > u64::from(4 * LOGICAL));
        assert_eq!(younger, None, "{name} programmed a page of what was lost");
    }
}

#[test]
fn a_mapped_page_that_reads_as_erased_is_lost_and_its_block_leaves_no_entry_behind() {
    for name in ["page", "dftl", "lazy"] {
        let entry = ftl_named(name).unwrap();
        let (mut ftl, ppn) = harmed(&entry, &Config::new(LOGICAL), Blemish::Blank);
        assert_eq!(read(&mut *ftl), Err(FtlError::Lost { lpn: LOST }), "{name}");
        write_others(&mut *ftl, ppn).unwrap();
        for at in 0..20 * LOGICAL {
            let lpn = Lpn(at * 5 % LOGICAL);
            if lpn != LOST {
                ftl.write(lpn, &Stamp { lpn, version: at as u16 + 1 }).unwrap();
            }
        }
        assert_eq!(read(&mut *ftl), Err(FtlError::Lost { lpn: LOST }), "{name}");
        ftl.check().unwrap();
    }
}

/// Every page of a table that is in flash.
fn pages_of_table(nand: &mut Device) -> Vec<Ppn> {
    let pages = nand.geometry().pages();
    let is_of_table = |ppn: &Ppn| {
        let spare = nand.inner_mut().read_spare(*ppn).unwrap();
        spare.is_some_and(|spare| spare.kind == nand::PageKind::Translation)
    };
    (0..pages).map(Ppn).filter(is_of_table).collect()
}

/// The entry says that it is lost, and a page without contents too.
#[test]
fn a_lost_page_stays_lost_although_every_page_of_the_table_wears_out() {
    for name in ["lazy", "ib-ftl", "gecko", "flagship", "ftrm", "ftrm-base", "ftrm-victim", "transblock", "mapblock"] {
        let entry = ftl_named(name).unwrap();
        let config = Config { cache_entries: 8, victim: "fifo", ..Config::new(LOGICAL) };
        for blemish in [Blemish::DataUnreadable, Blemish::Unreadable] {
            let (mut ftl, ppn) = harmed_of(56, &entry, &config, blemish);
            write_others(&mut *ftl, ppn).unwrap();
            ftl.flush().unwrap();
            let mut nand = ftl.into_flash().into_nand();
            let of_table = pages_of_table(&mut nand);
            assert!(!of_table.is_empty(), "{name} has no table in flash");
            of_table.into_iter().for_each(|ppn| nand.damage(ppn, Blemish::Unreadable));
            match (entry.mount.unwrap())(Flash::new(nand), &config) {
                Ok((mut ftl, _)) => assert!(is_lost(&mut *ftl), "{name}: {blemish:?}: {:?}", read(&mut *ftl)),
                Err(error) => assert!(!entry.info.outlives_worn_pages, "{name}: {blemish:?}: {error}"),
            }
        }
    }
}

#[test]
fn a_lost_page_stays_lost_wherever_power_is_cut_while_its_block_is_merged() {
    for name in log_block_ftls().map(|entry| entry.info.name) {
        let (entry, config) = (ftl_named(name).unwrap(), Config::new(LOGICAL));
        for outcome in [CutOutcome::Done, CutOutcome::TornData, CutOutcome::Fading(2), CutOutcome::HalfErased] {
            for at in 0.. {
                let (mut ftl, ppn) = harmed(&entry, &config, Blemish::DataUnreadable);
                let first = ftl.flash().nand().ops();
                ftl.flash_mut().nand_mut().plan_mut().cuts = vec![Cut { at: first + at, outcome }];
                let done = write_others(&mut *ftl, ppn).is_ok();
                let mut nand = ftl.into_flash().into_nand();
                nand.power_up();
                nand.plan_mut().cuts.clear();
                for round in 0..2 {
                    (ftl, _) = (entry.mount.unwrap())(Flash::new(nand), &config).unwrap();
                    let got = read(&mut *ftl);
                    // What a page in doubt was copied from may still be there.
                    let is_right = is_lost(&mut *ftl) || got == Ok(NEWEST);
                    assert!(is_right, "{name}: {outcome:?} at {at}, mounted {} times: {got:?}", round + 1);
                    nand = ftl.into_flash().into_nand();
                }
                if done {
                    break;
                }
            }
        }
    }
}
