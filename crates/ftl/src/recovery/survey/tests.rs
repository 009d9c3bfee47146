#![allow(clippy::unwrap_used)]

use super::*;
use crate::recovery::device::{device, geometry};
use nand::Flags;

fn spare(tag: u32, seq: u64) -> Spare {
    Spare { kind: PageKind::User, tag, seq, erase_count: 1, erased_at: 5, aux: 0, flags: Flags::NONE }
}

/// A device that holds these pages, of which some have data that cannot be read.
fn survey_of(pages: &[FoundPage], unreadable: &[Ppn]) -> Survey {
    let pages: Vec<_> = pages.iter().map(|(ppn, spare)| (*ppn, *spare, &[0xFF; 512])).collect();
    let mut flash = device(&pages, unreadable);
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
    assert!(fits(Spare { erased_at: 5 + geometry().blocks(), ..good }));
    assert!(!fits(Spare { erased_at: 6 + geometry().blocks(), ..good }), "more erases than the device has had");
    assert!(!fits(Spare { erase_count: 6, ..good }), "more erases of the block than of the device");
    assert!(!fits(Spare { tag: 16, ..good }), "a logical page outside the disk");
}
