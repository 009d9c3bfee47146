//! Places where the paper is thin: each test goes red if its remedy is taken out. Numbers are those
//! of the table in docs/RECOVERY.md; the other places are in `tests/all/gecko_thin.rs`.
//!
//! | taken out | red, besides the property test |
//! |---|---|
//! | an erase flag voids the whole block in a merge, not only its part | `place_1_one_erase_flag_voids_older_entries_of_every_part` |
//! | flags vanish in a merge into the oldest run | `place_1_a_run_without_entries_replaces_what_it_voids` |
//! | a merged entry keeps the older entry's flag | `place_2_a_younger_entry_without_flag_keeps_the_flag_of_the_older` |
//! | a run names the older runs that live; the youngest run of each level is taken instead | `place_5_a_merged_run_does_not_come_back` |

use super::props::Rig;
use super::store::MemStore;
use crate::config::GeckoOptions;
use crate::contract::FtlError;
use crate::validity::gecko::Gecko;
use crate::validity::{PageSet, Validity};
use nand::{BlockId, Ppn, Spare};
use proptest::prelude::*;
use std::vec::Vec;

/// 64 blocks of 128 pages in four parts; pages of 128 bytes hold 14 entries, so that a few flushes
/// fill levels.
fn small(multi_way: bool) -> Rig {
    Rig::new(128, 64, 128, GeckoOptions { partitions: 4, multi_way, ..GeckoOptions::PAPER })
}

/// Fills every block's every part, which makes an oldest run of several pages, and flushes.
fn fill(rig: &mut Rig) {
    rig.cut_everywhere = false;
    for block in 0..64 {
        for part in 0..4 {
            rig.invalidate(block * 128 + part * 32 + 5);
        }
    }
    rig.flush();
    rig.cut_everywhere = true;
}

#[test]
fn place_1_one_erase_flag_voids_older_entries_of_every_part() {
    for multi_way in [true, false] {
        let mut rig = small(multi_way);
        fill(&mut rig);
        rig.erase(9);
        rig.flush();
        rig.check();
        // Merge until the flag has reached the oldest run.
        for round in 0..40 {
            rig.invalidate(round * 128 + 64);
            rig.flush();
        }
        rig.check();
    }
}

#[test]
fn place_2_a_younger_entry_without_flag_keeps_the_flag_of_the_older() {
    for multi_way in [true, false] {
        let mut rig = small(multi_way);
        fill(&mut rig);
        let runs = rig.gecko.runs();
        rig.erase(9);
        rig.flush();
        // Part 0 of the erased block, which merges with its flag but not with the oldest run.
        rig.invalidate(9 * 128 + 1);
        rig.flush();
        assert_eq!(rig.gecko.runs(), runs + 1, "the two small runs are one, and the oldest run is as it was");
        rig.check();
    }
}

#[test]
fn place_5_a_merged_run_does_not_come_back() {
    // Bits of block 9 go into a small run, which an erase flag then kills in a merge. Its pages are
    // still on flash.
    for multi_way in [true, false] {
        let mut rig = small(multi_way);
        fill(&mut rig);
        for offset in [3, 40, 70, 100] {
            rig.invalidate(9 * 128 + offset);
        }
        rig.flush();
        rig.erase(9);
        for block in 20..40 {
            rig.invalidate(block * 128 + 1);
        }
        rig.flush();
        rig.check();
    }
}

#[test]
fn a_failed_flush_changes_nothing_and_can_be_made_again() {
    for multi_way in [true, false] {
        let mut rig = small(multi_way);
        fill(&mut rig);
        rig.erase(9);
        rig.invalidate(9 * 128 + 77);
        let live = rig.store.live;
        rig.store.cut_after = Some(0);
        assert!(rig.gecko.flush(&mut rig.store).is_err());
        rig.store.cut_after = None;
        assert_eq!(rig.store.live, live);
        rig.check();
        rig.flush();
        rig.check();
    }
}

#[test]
fn a_block_whose_parts_straddle_pages_is_found_whole() {
    // 40 parts of two pages each; a page of 128 bytes holds 22 entries.
    let mut rig = Rig::new(128, 30, 80, GeckoOptions { partitions: 40, ..GeckoOptions::PAPER });
    for page in (0..30 * 80).step_by(3) {
        rig.invalidate(page);
    }
    rig.flush();
    for block in (0..30).step_by(7) {
        rig.erase(block);
    }
    rig.flush();
    rig.check();
}

#[test]
fn place_1_a_run_without_entries_replaces_what_it_voids() {
    let mut rig = Rig::new(512, 16, 8, GeckoOptions::default());
    rig.invalidate(17);
    rig.flush();
    rig.erase(2);
    rig.flush();
    assert_eq!(rig.gecko.live_pages().count(), 1);
    assert_eq!(rig.gecko.directory.runs()[0].entries, 0, "no flag outlives a merge into the oldest run");
    rig.check();
}

/// The worst host for space: each flush brings as many new entries as can be, level after level,
/// and collisions keep runs at the top of their level.
#[test]
fn bounds_hold_under_adversarial_reports() {
    for (page_bytes, blocks, pages_per_block) in [(512, 16, 8), (128, 16, 8), (128, 64, 128), (128, 256, 32)] {
        for (size_ratio, multi_way, stride) in
            (2..5).flat_map(|t| [true, false].map(|m| (t, m))).flat_map(|(t, m)| [1, 37, 101].map(|s| (t, m, s)))
        {
            let packed = stride == 37;
            let buffer_pages = if packed { 3 } else { 1 };
            let spread_ops = if multi_way && stride != 1 { size_ratio - 1 } else { 0 };
            let options =
                GeckoOptions { size_ratio, multi_way, packed, buffer_pages, spread_ops, ..GeckoOptions::PAPER };
            let mut rig = Rig::new(page_bytes, blocks, pages_per_block, options);
            rig.cut_everywhere = false;
            let pages = blocks * pages_per_block;
            for step in 0..pages.min(3000) {
                rig.invalidate(step * stride * 32 % pages);
                if step % 5 == 0 {
                    rig.erase(step * stride % blocks);
                }
            }
            rig.check();
        }
    }
}

#[test]
fn small_runs_take_one_page() {
    let mut gecko = Gecko::new(4096, 1 << 15, 128, &GeckoOptions::default()).unwrap();
    let mut store = MemStore::new(4096, 1 << 15, 128);
    for block in 0..gecko.buffer_entries() {
        gecko.invalidate(&mut store, Ppn(block * 128)).unwrap();
    }
    gecko.flush(&mut store).unwrap();
    assert_eq!(store.programs, 1);
    assert!(gecko.buffer_entries() >= 490, "{}", gecko.buffer_entries());
}

#[test]
fn options_that_cannot_be_are_refused() {
    let make = |page_bytes, blocks, size_ratio, partitions| {
        Gecko::new(page_bytes, blocks, 128, &GeckoOptions { size_ratio, partitions, ..GeckoOptions::PAPER })
    };
    assert!(make(4096, 1 << 15, 2, 4).is_ok());
    for refused in [make(4096, 1 << 15, 1, 4), make(64, 1 << 15, 2, 4), make(4096, 1 << 24, 2, 128)] {
        assert!(matches!(refused, Err(FtlError::Unsupported { .. })));
    }
}

#[test]
fn other_options_than_it_was_made_with_are_refused() {
    let mut rig = small(true);
    fill(&mut rig);
    let pages = rig.store.scan();
    rig.store.recovering = true;
    for (size_ratio, partitions) in [(3, 4), (2, 2)] {
        let options = GeckoOptions { size_ratio, partitions, ..GeckoOptions::PAPER };
        let refused = Gecko::recover(&mut rig.store, &options, pages.clone());
        assert!(matches!(refused, Err(FtlError::Unsupported { .. })));
    }
    let packed = GeckoOptions { partitions: 4, packed: true, ..GeckoOptions::PAPER };
    let refused = Gecko::recover(&mut rig.store, &packed, pages.clone());
    assert!(matches!(refused, Err(FtlError::Unsupported { .. })));
    let two_way = GeckoOptions { partitions: 4, multi_way: false, ..GeckoOptions::PAPER };
    assert!(Gecko::recover(&mut rig.store, &two_way, pages).is_ok());
}

#[test]
fn a_lost_live_run_is_reported_not_passed_over() {
    let mut rig = small(true);
    fill(&mut rig);
    rig.erase(3);
    rig.flush();
    assert!(rig.gecko.runs() > 1);
    let youngest = rig.gecko.directory.runs()[rig.gecko.runs() - 1].number;
    let without_older: Vec<(Ppn, Spare)> =
        rig.store.scan().into_iter().filter(|(_, spare)| u64::from(spare.tag) == youngest).collect();
    rig.store.recovering = true;
    let lost = Gecko::recover(&mut rig.store, &rig.options, without_older);
    assert!(matches!(lost, Err(FtlError::Damaged { .. })));
}

proptest! {
    /// Recovery meets any bytes without panicking.
    #[test]
    fn garbage_recovers_to_nothing_or_an_error(
        tags in prop::collection::vec((0_u32..4, 0_u32..4, any::<bool>()), 1..20),
        bytes in prop::collection::vec(any::<u8>(), 128),
    ) {
        let mut rig = small(true);
        let pages: Vec<_> = tags
            .iter()
            .map(|&(tag, index, last)| rig.store.plant(tag, index | u32::from(last) << 31, bytes.clone()))
            .collect();
        rig.store.recovering = true;
        if let Ok(mut gecko) = Gecko::recover(&mut rig.store, &rig.options, pages) {
            gecko.query(&mut rig.store, BlockId(0), &mut PageSet::new(128)).unwrap();
        }
    }
}
