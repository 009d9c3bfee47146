#![allow(clippy::unwrap_used)]

use super::*;
use crate::recovery::device::device;
use crate::recovery::mark::Writer;
use nand::{Faulty, Flags, SimNand};

/// A page in a log block: the host wrote its contents with the number `root`.
fn page(tag: u32, seq: u64, root: u64) -> Spare {
    let aux = Mark { writer: Writer::Log, last: true, root: root_of_write(root) }.encode();
    Spare { kind: PageKind::User, tag, seq, erase_count: 1, erased_at: 4, aux, flags: Flags::NONE }
}

/// A device that holds these. The data of one cannot be read.
fn found(pages: &[(u32, Spare)], unreadable: u32) -> Flash<Faulty<SimNand>> {
    let pages: Vec<_> = pages.iter().map(|(ppn, spare)| (Ppn(*ppn), *spare, &[0xFF; 512])).collect();
    device(&pages, &[Ppn(unreadable)])
}

fn newest(copies: &Copies, lpn: u32) -> Option<u32> {
    copies.newest().find(|(at, _)| at.0 == lpn).map(|(_, copy)| copy.ppn.0)
}

/// The page with the next number proves that one which cannot be read was complete. The mount may
/// erase that page, so it says what was lost by itself.
#[test]
fn a_worn_page_is_settled_before_what_proves_it_can_go() {
    let older = [(0, page(1, 5, 5)), (4, page(2, 6, 6))];
    let next = |seq| (5, page(2, seq, 6));
    let in_doubt = |seq| {
        let mut flash = found(&[older[0], (1, page(1, 10, 10)), older[1], next(seq)], 1);
        let copies = Copies::scan(&mut flash, 16, &[]).unwrap();
        let doubts = copies.in_doubt(&mut flash).unwrap();
        let doubt = doubts.into_iter().find(|doubt| doubt.ppn == Ppn(1));
        (newest(&copies, 1), doubt.map(|doubt| (doubt.lpn.0, doubt.was_complete)))
    };
    assert_eq!(in_doubt(11), (Some(1), Some((1, true))), "worn");
    assert_eq!(in_doubt(12), (Some(0), None), "torn");
}

/// A torn page can show a spare area that nobody wrote.
#[test]
fn a_number_that_no_page_led_to_is_no_number() {
    for (seq, near) in [(12, true), (1 << 40, false)] {
        let mut flash = found(&[(0, page(1, 5, 5)), (4, page(1, seq, seq))], 4);
        let copies = Copies::scan(&mut flash, 16, &[]).unwrap();
        assert_eq!((newest(&copies, 1), copies.next_seq() > seq), (Some(0), near), "after number {seq}");
        assert_eq!(copies.revenants().count(), usize::from(near), "a later mount could read number {seq}");
    }
}
