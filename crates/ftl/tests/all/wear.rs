//! Levelling wear on a disk of which one block in a hundred is written: erase counts, and what they
//! cost.

#![allow(clippy::unwrap_used)]

use super::{capabilities, one_die};
use ftl::config::Setting;
use ftl::{Config, Flash, Ftl, FtlError, Purpose, WearOptions, ftls};
use nand::{Lpn, SimNand, Stamp};
use openftl_ftl as ftl;

const BLOCKS: u32 = 400;
const PAGES_PER_BLOCK: u32 = 16;
const LOGICAL: u32 = BLOCKS * PAGES_PER_BLOCK * 7 / 10;

fn device(entry: &ftls::Entry<SimNand>) -> SimNand {
    SimNand::new(one_die(BLOCKS, PAGES_PER_BLOCK, 512), capabilities(&entry.info))
}

/// Least, most and standard deviation of erase counts, and programs for each page written, after
/// the hot part of a full disk was written many times.
struct Outcome {
    least: u32,
    most: u32,
    deviation: f64,
    programs: f64,
    moved: u64,
}

fn run(entry: &ftls::Entry<SimNand>, wear: Option<WearOptions>) -> Result<Outcome, FtlError> {
    let config = Config { wear, cache_entries: 200, ..Config::new(LOGICAL) };
    let mut ftl = (entry.format)(Flash::new(device(entry)), &config)?;
    (0..LOGICAL).for_each(|lpn| ftl.write(Lpn(lpn), &Stamp { lpn: Lpn(lpn), version: 1 }).unwrap());
    let (hot, writes) = (LOGICAL / 100, 40 * LOGICAL);
    let before = ftl.flash().counts().total().programs;
    let mut state = 7_u32;
    for _ in 0..writes {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let lpn = Lpn((state >> 8) % hot * 100);
        ftl.write(lpn, &Stamp { lpn, version: 2 }).unwrap();
    }
    let programs = ftl.flash().counts().total().programs - before;
    for lpn in (0..LOGICAL).map(Lpn) {
        let mut got = Stamp::UNWRITTEN;
        ftl.read(lpn, &mut got).unwrap();
        assert_eq!(got.lpn, lpn, "{}", entry.info.name);
    }
    ftl.check().unwrap_or_else(|e| panic!("{}: {e}", entry.info.name));
    Ok(outcome(&*ftl, programs as f64 / f64::from(writes)))
}

fn outcome(ftl: &dyn Ftl<SimNand>, programs: f64) -> Outcome {
    let counts = ftl.flash().nand().erase_counts();
    let mean = counts.iter().sum::<u32>() as f64 / counts.len() as f64;
    let variance = counts.iter().map(|count| (f64::from(*count) - mean).powi(2)).sum::<f64>() / counts.len() as f64;
    Outcome {
        least: *counts.iter().min().unwrap(),
        most: *counts.iter().max().unwrap(),
        deviation: variance.sqrt(),
        programs,
        moved: ftl.flash().counts().of(Purpose::Wear).programs,
    }
}

#[test]
fn blocks_wear_alike_if_wear_is_levelled() {
    let mut levelled = 0;
    for entry in table::table::<SimNand>() {
        let name = entry.info.name;
        let with = match run(&entry, Some(WearOptions::default())) {
            Err(FtlError::Unsupported { reason, .. }) if reason.contains("wear") => continue,
            outcome => outcome.unwrap(),
        };
        let without = run(&entry, None).unwrap();
        for (how, o) in [("without", &without), ("with", &with)] {
            println!(
                "{name:>8} {how:>7}: erases {} to {}, deviation {:.1}, {:.3} programs a write, {} to level",
                o.least, o.most, o.deviation, o.programs, o.moved
            );
        }
        levelled += 1;
        assert_eq!(without.moved, 0, "{name}");
        assert!(with.moved > 0, "{name}");
        // A table of which a page is programmed every other write wears its blocks almost as fast
        // as data at rest moves there.
        assert!(with.deviation < without.deviation / 2.0, "{name}: {} {}", with.deviation, without.deviation);
        assert!(with.programs < without.programs * 1.25, "{name}: {} {}", with.programs, without.programs);
    }
    assert!(levelled >= 3, "the page-mapped FTLs level wear");
}

/// Checkpoints are written for as long as the disk is: if they always went to the same blocks,
/// these would wear out long before the others.
#[test]
fn checkpoints_wear_no_block_more_than_the_others() {
    for entry in table::table::<SimNand>().into_iter().filter(|entry| entry.info.honours(Setting::Maps)) {
        let (name, config) = (entry.info.name, Config::new(LOGICAL));
        let mut ftl = (entry.format)(Flash::new(device(&entry)), &config).unwrap();
        let mut state = 7_u32;
        let random = (0..30 * LOGICAL).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            Lpn((state >> 8) % LOGICAL)
        });
        for lpn in (0..LOGICAL).map(Lpn).chain(random) {
            ftl.write(lpn, &Stamp { lpn, version: 1 }).unwrap();
        }
        let checkpoints = ftl.flash().counts().of(Purpose::Checkpoint).erases;
        let Outcome { most, deviation, .. } = outcome(&*ftl, 0.0);
        let counts = ftl.flash().nand().erase_counts();
        let mean = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
        println!("{name}: mean {mean:.1}, most {most}, deviation {deviation:.1}, {checkpoints} for checkpoints");
        assert!(checkpoints > 40, "{name} wrote few checkpoints: {checkpoints}");
        assert!(f64::from(most) < 1.3 * mean, "{name}: a block was erased {most} times, {mean:.1} in the mean");
    }
}
