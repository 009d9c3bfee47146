#![allow(clippy::unwrap_used)]

use super::*;
use nand::{Blemish, Capabilities, Dimensions, FaultPlan, Faulty, Flags, SimNand};

const BLOCKS: u32 = 8;

fn geometry() -> Geometry {
    let geometry = Geometry::new(Dimensions {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks: BLOCKS,
        pages_per_block: 4,
        page_bytes: 512,
        spare_bytes: 32,
    });
    geometry.unwrap()
}

fn spare(tag: u32, seq: u64) -> Spare {
    Spare { kind: PageKind::User, tag, seq, erase_count: 1, erased_at: 5, aux: 0, flags: Flags::NONE }
}

/// A device that holds these pages, of which some have data that cannot be read.
fn survey_of(pages: &[FoundPage], unreadable: &[Ppn]) -> Survey {
    let mut flash = Flash::new(Faulty::new(SimNand::new(geometry(), Capabilities::MODERN), FaultPlan::default()));
    for (ppn, spare) in pages {
        flash.nand_mut().program_meta(*ppn, &[0xFF; 512], spare).unwrap();
    }
    unreadable.iter().for_each(|ppn| flash.nand_mut().damage(*ppn, Blemish::DataUnreadable));
    Survey::run(&mut flash, 1, &[], Contents::of_table(&geometry(), 16, 1, false), |_| 0).unwrap()
}

/// Of two blocks with a page of host data each, one with number 10 and one with number 20 that is a
/// copy of a page with the number `copied`, those that may have been the last.
fn stranded(copied: u64) -> Vec<Ppn> {
    let copy = Spare { aux: (20 - copied) as u32, ..spare(1, 20) };
    let pages = [(Ppn(0), spare(0, 10)), (Ppn(4), copy)];
    let stranded = survey_of(&pages, &[]).stranded(&geometry(), &pages);
    stranded.into_iter().map(|(ppn, _)| ppn).collect()
}

#[test]
fn a_copy_of_the_page_with_the_next_number_proves_that_one_was_complete() {
    assert_eq!(stranded(11), []);
    // A mount gives the number after the next to a program that it tries again.
    assert_eq!(stranded(12), [Ppn(0)]);
    assert_eq!(stranded(10), [Ppn(0)], "the copy is of the page");
    assert_eq!(stranded(20), [Ppn(0)], "the page is no copy");
}

/// Nobody else vouches for the spare area of a page alone in its block of which the data cannot be
/// read: it may be one that nobody wrote.
#[test]
fn a_page_alone_in_its_block_counts_if_its_spare_area_fits_the_device() {
    let fits = |odd: Spare| {
        let full = (0..4).map(|page| (Ppn(page), spare(page, u64::from(page) + 1)));
        let pages: Vec<FoundPage> = full.chain([(Ppn(4), odd)]).collect();
        let survey = survey_of(&pages, &[Ppn(4)]);
        assert_eq!(survey.alone().is_empty(), survey.torn() == [(Ppn(4), odd)], "{odd:?}");
        survey.alone().is_empty()
    };
    let good = spare(7, 5);
    assert!(fits(good));
    assert!(fits(Spare { seq: 3 + plausible::NEAR, ..good }));
    assert!(!fits(Spare { seq: 4 + plausible::NEAR, ..good }), "a number that nothing led to");
    assert!(fits(Spare { erased_at: 5 + BLOCKS, ..good }));
    assert!(!fits(Spare { erased_at: 6 + BLOCKS, ..good }), "more erases than the device has had");
    assert!(!fits(Spare { erase_count: 6, ..good }), "more erases of the block than of the device");
    assert!(!fits(Spare { tag: 16, ..good }), "a logical page outside the disk");
}
