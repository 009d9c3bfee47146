//! Each law in a pair, what is just legal and one step beyond, on every device.
#![allow(clippy::unwrap_used)]

use crate::common::*;
use openftl_nand::*;

fn on_every_device(capabilities: Capabilities, check: impl Check) {
    check.run(|| SimNand::new(geometry(), capabilities));
    check.run(|| MemNand::new(geometry(), capabilities));
    check.run(|| Faulty::new(SimNand::new(geometry(), capabilities), FaultPlan::default()));
    check.run(|| Faulty::new(MemNand::new(geometry(), capabilities), FaultPlan::default()));
    #[cfg(all(feature = "std", unix))]
    check.run(|| file_in_memory(capabilities));
}

/// A check that is generic over the device.
trait Check {
    fn run<N: Nand<Payload: Form> + Snapshot>(&self, make: impl Fn() -> N);
}

macro_rules! law_tests {
    ($($(#[$doc:meta])* $name:ident($capabilities:expr, $device:ident) $body:block)*) => {$(
        $(#[$doc])*
        #[test]
        fn $name() {
            struct It;
            impl Check for It {
                #[allow(unused_mut)]
                fn run<N: Nand<Payload: Form> + Snapshot>(&self, make: impl Fn() -> N) {
                    let mut $device = make();
                    $body
                }
            }
            on_every_device($capabilities, It);
        }
    )*};
}

const LAST: u32 = 6 * 8 - 1;

law_tests! {
    an_address_lies_inside_the_device(Capabilities::MODERN, n) {
        fill(&mut n, LAST).unwrap();
        assert_eq!(law(fill(&mut n, LAST + 1)), Law::AddressInRange);
        assert_eq!(law(fill(&mut n, u32::MAX)), Law::AddressInRange);
        get(&mut n, LAST).unwrap();
        assert_eq!(law(get(&mut n, LAST + 1)), Law::AddressInRange);
        assert_eq!(law(n.read_meta(Ppn(LAST + 1), &mut [])), Law::AddressInRange);
        n.read_spare(Ppn(LAST)).unwrap();
        assert_eq!(law(n.read_spare(Ppn(LAST + 1))), Law::AddressInRange);
        n.copy(Ppn(LAST), Ppn(0), &spare(0, 0)).unwrap();
        assert_eq!(law(n.copy(Ppn(LAST + 1), Ppn(1), &spare(0, 0))), Law::AddressInRange);
        assert_eq!(law(n.copy(Ppn(LAST), Ppn(LAST + 1), &spare(0, 0))), Law::AddressInRange);
        n.erase(BlockId(5)).unwrap();
        assert_eq!(law(n.erase(BlockId(6))), Law::AddressInRange);
        assert_eq!(law(n.clear_flags(Ppn(LAST + 1), Flags::ALL)), Law::AddressInRange);
        n.mark_bad(BlockId(5)).unwrap();
        assert_eq!(law(n.mark_bad(BlockId(6))), Law::AddressInRange);
        assert!(!n.is_bad(BlockId(6)));
    }

    a_page_is_erased_before_it_is_programmed_again(Capabilities::MODERN, n) {
        fill(&mut n, 0).unwrap();
        assert_eq!(law(fill(&mut n, 0)), Law::EraseBeforeProgram);
        assert_eq!(law(n.program_meta(Ppn(0), &[1], &spare(0, 0))), Law::EraseBeforeProgram);
        assert_eq!(law(n.copy(Ppn(0), Ppn(0), &spare(0, 0))), Law::EraseBeforeProgram);
        assert_eq!(get(&mut n, 0).unwrap(), (stamp(0, 0), spare(0, 1000)), "a refused program did something");
        n.erase(BlockId(0)).unwrap();
        fill(&mut n, 0).unwrap();
    }

    pages_are_programmed_in_ascending_order(Capabilities::MODERN, n) {
        fill(&mut n, 1).unwrap();
        fill(&mut n, 4).unwrap();
        for skipped in [0, 2, 3] {
            assert_eq!(law(fill(&mut n, skipped)), Law::ProgramOrder);
            assert_eq!(n.read_spare(Ppn(skipped)).unwrap(), None);
            assert_eq!(get(&mut n, skipped), Err(NandError::Erased { ppn: Ppn(skipped) }));
        }
        fill(&mut n, 5).unwrap();
        fill(&mut n, 8).unwrap();
        n.erase(BlockId(0)).unwrap();
        fill(&mut n, 0).unwrap();
        assert_eq!(n.read_spare(Ppn(1)).unwrap(), None, "an erase left a page behind");
    }

    old_devices_program_pages_in_any_order_once(OLD, n) {
        for page in [4, 0, 7, 5] {
            fill(&mut n, page).unwrap();
            assert_eq!(law(fill(&mut n, page)), Law::EraseBeforeProgram);
        }
        for page in 0..8 {
            assert_eq!(n.read_spare(Ppn(page)).unwrap().is_some(), [0, 4, 5, 7].contains(&page));
        }
        fill(&mut n, 1).unwrap();
        assert_eq!(get(&mut n, 1).unwrap().0, stamp(1, 1));
    }

    a_bad_block_is_neither_programmed_nor_erased(OLD, n) {
        fill(&mut n, 8).unwrap();
        n.mark_bad(BlockId(1)).unwrap();
        assert!(n.is_bad(BlockId(1)) && !n.is_bad(BlockId(0)));
        assert_eq!(law(fill(&mut n, 9)), Law::BadBlock);
        assert_eq!(law(n.program_meta(Ppn(9), &[], &spare(0, 0))), Law::BadBlock);
        assert_eq!(law(n.erase(BlockId(1))), Law::BadBlock);
        assert_eq!(law(n.clear_flags(Ppn(8), Flags::ALL)), Law::BadBlock);
        assert_eq!(get(&mut n, 8).unwrap().0, stamp(8, 8), "pages of a bad block stay readable");
        n.copy(Ppn(8), Ppn(0), &spare(8, 9)).unwrap();
        assert_eq!(law(n.copy(Ppn(0), Ppn(9), &spare(8, 9))), Law::BadBlock);
    }

    data_fits_the_page(Capabilities::MODERN, n) {
        n.program_meta(Ppn(0), &[7; PAGE], &spare(0, 0)).unwrap();
        assert_eq!(law(n.program_meta(Ppn(1), &[7; PAGE + 1], &spare(0, 0))), Law::PageSize);
        n.program_meta(Ppn(1), &[], &spare(0, 0)).unwrap();
        n.read_meta(Ppn(0), &mut [0; PAGE]).unwrap();
        assert_eq!(law(n.read_meta(Ppn(0), &mut [0; PAGE + 1])), Law::PageSize);
    }

    metadata_reads_back_padded_with_ones(Capabilities::MODERN, n) {
        let wanted = Spare { kind: PageKind::Validity, aux: 5, ..spare(1, 2) };
        n.program_meta(Ppn(0), b"abc", &wanted).unwrap();
        n.copy(Ppn(0), Ppn(1), &Spare { seq: 3, ..wanted }).unwrap();
        let (mut short, mut long) = ([0; 2], [0; 6]);
        assert_eq!(n.read_meta(Ppn(0), &mut short).unwrap(), wanted);
        assert_eq!(n.read_meta(Ppn(1), &mut long).unwrap(), Spare { seq: 3, ..wanted });
        assert_eq!((&short, &long), (b"ab", b"abc\xFF\xFF\xFF"));
        n.erase(BlockId(0)).unwrap();
        assert_eq!(n.read_meta(Ppn(1), &mut long), Err(NandError::Erased { ppn: Ppn(1) }));
    }

    a_buffer_that_the_device_may_exchange_is_programmed_as_it_is(Capabilities::MODERN, n) {
        let mut page = MetaPage::new(PAGE);
        assert_eq!(page[..], [0xFF; PAGE]);
        let reads = |n: &mut N, ppn, wanted: u8| {
            let mut read = [!wanted; PAGE];
            n.read_meta(Ppn(ppn), &mut read).unwrap();
            assert_eq!(read, [wanted; PAGE], "page {ppn}");
        };
        let mut program = |n: &mut N, ppn, with: u8| {
            page.bytes_mut().fill(with);
            n.program_meta_page(Ppn(ppn), &mut page, &spare(0, with.into())).unwrap();
            reads(n, ppn, with);
            page.bytes_mut().fill(!with);
            reads(n, ppn, with);
            // Refused, it is still in the buffer.
            page.bytes_mut().fill(with);
            assert_eq!(law(n.program_meta_page(Ppn(ppn), &mut page, &spare(0, 9))), Law::EraseBeforeProgram);
            assert_eq!(page[..], [with; PAGE]);
        };
        (0..4).for_each(|ppn| program(&mut n, ppn, 10 + ppn as u8));
        n.copy(Ppn(0), Ppn(8), &spare(0, 20)).unwrap();
        n.erase(BlockId(0)).unwrap();
        // Buffers of erased pages are in use again, but for that of the page that was copied.
        (0..4).for_each(|ppn| program(&mut n, ppn, 30 + ppn as u8));
        reads(&mut n, 8, 10);
        let mut before = n.snapshot();
        n.erase(BlockId(0)).unwrap();
        (0..4).for_each(|ppn| program(&mut n, ppn, 40 + ppn as u8));
        (0..4).for_each(|ppn| reads(&mut before, ppn, 30 + ppn as u8));
    }

    a_page_is_read_as_what_it_was_written_as(Capabilities::MODERN, n) {
        fill(&mut n, 0).unwrap();
        n.program_meta(Ppn(1), &[1], &spare(1, 1001)).unwrap();
        assert_eq!(law(n.read_meta(Ppn(0), &mut [0; 4])), Law::PageContent);
        assert_eq!(law(get(&mut n, 1)), Law::PageContent);
        n.copy(Ppn(0), Ppn(2), &spare(0, 1002)).unwrap();
        n.copy(Ppn(1), Ppn(3), &spare(1, 1003)).unwrap();
        get(&mut n, 2).unwrap();
        n.read_meta(Ppn(3), &mut [0; 4]).unwrap();
        assert_eq!(n.copy(Ppn(7), Ppn(4), &spare(0, 0)), Err(NandError::Erased { ppn: Ppn(7) }));
    }

    flags_are_set_as_often_as_the_device_can(OLD, n) {
        let (one, other) = (Flags::from_bits(0b100), Flags::from_bits(0b1010));
        for page in [0, 1, 2] {
            let aux = if page == 0 { 0b111 } else { 0 };
            let first = Spare { aux, flags: Flags::ALL, ..spare(0b1111, 0xFF) };
            let unset = Spare { flags: Flags::NONE, ..first };
            if page == 2 {
                n.copy(Ppn(0), Ppn(2), &first).unwrap();
            } else {
                put(&mut n, page, stamp(0b1111, 3), &first).unwrap();
            }
            assert_eq!(n.read_spare(Ppn(page)).unwrap(), Some(unset), "a page begins without flags");
            n.clear_flags(Ppn(page), one).unwrap();
            let found = get(&mut n, page).unwrap();
            assert_eq!(found, (stamp(0b1111, 3), Spare { flags: one, ..unset }), "the data is not harmed");
            n.clear_flags(Ppn(page), other).unwrap();
            let both = Spare { flags: Flags::from_bits(0b1110), ..unset };
            assert_eq!(n.read_spare(Ppn(page)).unwrap(), Some(both), "a flag that is set stays set");
            let (operation, ppn, law) = ("clear_flags", Ppn(page), Law::SpareReprogram);
            assert_eq!(n.clear_flags(ppn, Flags::NONE), Err(NandError::Illegal { operation, ppn, law }));
            assert_eq!(n.probe(Ppn(page)).unwrap(), both);
        }
        assert_eq!(n.clear_flags(Ppn(3), one), Err(NandError::Erased { ppn: Ppn(3) }));
        n.erase(BlockId(0)).unwrap();
        assert_eq!(n.clear_flags(Ppn(0), one), Err(NandError::Erased { ppn: Ppn(0) }));
        fill(&mut n, 0).unwrap();
        assert_eq!(n.read_spare(Ppn(0)).unwrap(), Some(spare(0, 1000)), "an erase left a flag behind");
        n.clear_flags(Ppn(0), one).unwrap();
        n.clear_flags(Ppn(0), one).unwrap();
    }

    metadata_has_flags_too(OLD, n) {
        n.program_meta(Ppn(0), b"map", &spare(7, 7)).unwrap();
        let before = n.snapshot().read_spare(Ppn(0));
        let mut snapshot = n.snapshot();
        n.clear_flags(Ppn(0), Flags::ALL).unwrap();
        let mut bytes = [0; 4];
        assert_eq!(n.read_meta(Ppn(0), &mut bytes).unwrap(), Spare { flags: Flags::ALL, ..spare(7, 7) });
        assert_eq!(&bytes, b"map\xFF");
        assert_eq!(snapshot.read_spare(Ppn(0)), before, "a flag was set in a snapshot");
    }

    a_new_device_refuses_to_set_flags(Capabilities::MODERN, n) {
        fill(&mut n, 0).unwrap();
        assert_eq!(law(n.clear_flags(Ppn(0), Flags::from_bits(1))), Law::SpareReprogram);
        assert_eq!(n.read_spare(Ppn(0)).unwrap(), Some(spare(0, 1000)), "a refused operation did something");
    }

    snapshots_isolate(Capabilities::MODERN, n) {
        fill(&mut n, 0).unwrap();
        n.program_meta(Ppn(1), b"old", &spare(0, 1)).unwrap();
        let mut before = n.snapshot();
        let mut again = before.snapshot();
        fill(&mut n, 2).unwrap();
        n.erase(BlockId(0)).unwrap();
        n.program_meta(Ppn(0), b"new", &spare(0, 9)).unwrap();
        fill(&mut before, 3).unwrap();
        let mut bytes = [0; 3];
        for snapshot in [&mut before, &mut again] {
            assert_eq!(get(snapshot, 0).unwrap().0, stamp(0, 0));
            snapshot.read_meta(Ppn(1), &mut bytes).unwrap();
            assert_eq!(&bytes, b"old");
            assert_eq!(snapshot.read_spare(Ppn(2)).unwrap(), None);
        }
        assert!(before.read_spare(Ppn(3)).unwrap().is_some() && again.read_spare(Ppn(3)).unwrap().is_none());
        n.read_meta(Ppn(0), &mut bytes).unwrap();
        assert_eq!(&bytes, b"new");
        assert_eq!(law(fill(&mut again, 0)), Law::EraseBeforeProgram);
    }
}

#[test]
fn host_data_is_exactly_one_page() {
    let mut n = MemNand::new(geometry(), Capabilities::MODERN);
    for size in [0, PAGE - 1, PAGE + 1] {
        assert_eq!(law(n.program(Ppn(0), &vec![0; size], &spare(0, 0))), Law::PageSize);
    }
    n.program(Ppn(0), &[0; PAGE], &spare(0, 0)).unwrap();
    assert_eq!(law(n.read(Ppn(0), &mut [0; PAGE - 1])), Law::PageSize);
}
