//! Each law in a pair, what is just legal and one step beyond.
#![allow(clippy::unwrap_used)]

use crate::bed::*;
use nand::{BlockId, Capabilities, Flags, Law, Nand, NandError, PageKind, Ppn, Spare};

on_every_bed! {
    an_address_lies_inside_the_device(bed) {
        let mut n = bed.create();
        let (pages, blocks) = (n.geometry().pages(), n.geometry().blocks());
        fill(&mut n, pages - 1).unwrap();
        assert_eq!(law(fill(&mut n, pages)), Law::AddressInRange);
        assert_eq!(law(fill(&mut n, u32::MAX)), Law::AddressInRange);
        check(&mut n, pages - 1).unwrap();
        assert_eq!(law(check(&mut n, pages)), Law::AddressInRange);
        assert_eq!(law(n.read_meta(Ppn(pages), &mut [])), Law::AddressInRange);
        assert_eq!(law(n.read_spare(Ppn(pages))), Law::AddressInRange);
        assert_eq!(law(n.probe(Ppn(pages))), Law::AddressInRange);
        assert_eq!(law(n.copy(Ppn(pages), Ppn(1), &spare(0, 0))), Law::AddressInRange);
        assert_eq!(law(n.copy(Ppn(pages - 1), Ppn(pages), &spare(0, 0))), Law::AddressInRange);
        n.erase(BlockId(blocks - 1)).unwrap();
        assert_eq!(law(n.erase(BlockId(blocks))), Law::AddressInRange);
        assert_eq!(law(n.mark_bad(BlockId(blocks))), Law::AddressInRange);
        assert_eq!(law(n.clear_flags(Ppn(pages), Flags::ALL)), Law::AddressInRange);
        assert!(!n.is_bad(BlockId(blocks)));
    }

    a_page_is_erased_before_it_is_programmed_again(bed) {
        let mut n = bed.create();
        let (block, first) = good_block(&n, 0);
        fill(&mut n, first).unwrap();
        assert_eq!(law(fill(&mut n, first)), Law::EraseBeforeProgram);
        assert_eq!(law(n.program_meta(Ppn(first), &[1], &spare(0, 0))), Law::EraseBeforeProgram);
        assert_eq!(law(n.copy(Ppn(first), Ppn(first), &spare(0, 0))), Law::EraseBeforeProgram);
        check(&mut n, first).unwrap();
        n.erase(block).unwrap();
        assert_eq!(check(&mut n, first), Err(NandError::Erased { ppn: Ppn(first) }));
        assert_eq!(n.read_spare(Ppn(first)), Ok(None));
        fill(&mut n, first).unwrap();
        check(&mut n, first).unwrap();
    }

    pages_are_programmed_in_ascending_order(bed) {
        let mut n = bed.create();
        let (block, first) = good_block(&n, 1);
        assert_eq!(n.capabilities(), Capabilities::MODERN);
        fill(&mut n, first + 1).unwrap();
        fill(&mut n, first + 4).unwrap();
        for skipped in [0, 2, 3] {
            assert_eq!(law(fill(&mut n, first + skipped)), Law::ProgramOrder);
            assert_eq!(n.read_spare(Ppn(first + skipped)), Ok(None));
            let erased = Err(NandError::Erased { ppn: Ppn(first + skipped) });
            assert_eq!(check(&mut n, first + skipped), erased);
        }
        fill(&mut n, first + 5).unwrap();
        n.erase(block).unwrap();
        fill(&mut n, first).unwrap();
        assert_eq!(n.read_spare(Ppn(first + 1)), Ok(None), "an erase left a page behind");
    }

    /// What a block holds is found out from its pages after the device was opened again.
    the_laws_hold_after_opening(bed) {
        let mut n = bed.create();
        let (first, last) = (good_block(&n, 0).1, good_block(&n, 1).1);
        fill(&mut n, first + 1).unwrap();
        fill(&mut n, first + 4).unwrap();
        drop(n);
        let mut n = bed.open();
        assert_eq!(law(fill(&mut n, first + 4)), Law::EraseBeforeProgram);
        assert_eq!(law(fill(&mut n, first + 3)), Law::ProgramOrder);
        assert_eq!(law(n.program_meta(Ppn(first), b"x", &spare(0, 0))), Law::ProgramOrder);
        fill(&mut n, first + 5).unwrap();
        fill(&mut n, last).unwrap();
        for page in [first + 1, first + 4, first + 5, last] {
            check(&mut n, page).unwrap();
        }
    }

    a_bad_block_is_neither_programmed_nor_erased(bed) {
        let mut n = bed.create();
        let ((block, first), other) = (good_block(&n, 2), good_block(&n, 3).0);
        fill(&mut n, first).unwrap();
        n.mark_bad(block).unwrap();
        n.mark_bad(block).unwrap();
        for _ in 0..2 {
            assert!(n.is_bad(block) && !n.is_bad(other));
            assert_eq!(law(fill(&mut n, first + 1)), Law::BadBlock);
            assert_eq!(law(n.program_meta(Ppn(first + 1), &[], &spare(0, 0))), Law::BadBlock);
            assert_eq!(law(n.erase(block)), Law::BadBlock);
            assert_eq!(law(n.clear_flags(Ppn(first), Flags::ALL)), Law::BadBlock);
            assert!(check(&mut n, first).is_err(), "the kernel erases what it marks");
            drop(n);
            n = bed.open();
        }
        drop(n);
        assert!(bed.create().is_bad(block), "a mark was lost");
    }

    data_fits_the_page(bed) {
        let mut n = bed.create();
        let (first, page) = (good_block(&n, 0).1, n.geometry().page_bytes() as usize);
        n.program_meta(Ppn(first), &vec![7; page], &spare(0, 0)).unwrap();
        assert_eq!(law(n.program_meta(Ppn(first + 1), &vec![7; page + 1], &spare(0, 0))), Law::PageSize);
        n.program_meta(Ppn(first + 1), &[], &spare(0, 0)).unwrap();
        n.read_meta(Ppn(first), &mut vec![0; page]).unwrap();
        assert_eq!(law(n.read_meta(Ppn(first), &mut vec![0; page + 1])), Law::PageSize);
        for size in [0, page - 1, page + 1] {
            assert_eq!(law(n.program(Ppn(first + 2), &vec![0; size], &spare(0, 0))), Law::PageSize);
        }
        n.program(Ppn(first + 2), &vec![0; page], &spare(0, 0)).unwrap();
        assert_eq!(law(n.read(Ppn(first + 2), &mut vec![0; page - 1])), Law::PageSize);
    }

    metadata_reads_back_padded_with_ones(bed) {
        let mut n = bed.create();
        let (block, first) = good_block(&n, 0);
        let wanted = Spare { kind: PageKind::Validity, aux: 5, ..spare(1, 2) };
        n.program_meta(Ppn(first), b"abc", &wanted).unwrap();
        n.copy(Ppn(first), Ppn(first + 1), &Spare { seq: 3, ..wanted }).unwrap();
        let (mut short, mut long) = ([0; 2], [0; 6]);
        assert_eq!(n.read_meta(Ppn(first), &mut short), Ok(wanted));
        assert_eq!(n.read_meta(Ppn(first + 1), &mut long), Ok(Spare { seq: 3, ..wanted }));
        assert_eq!((&short, &long), (b"ab", b"abc\xFF\xFF\xFF"));
        n.erase(block).unwrap();
        assert_eq!(n.read_meta(Ppn(first + 1), &mut long), Err(NandError::Erased { ppn: Ppn(first + 1) }));
    }

    a_page_is_read_as_what_it_was_written_as(bed) {
        let mut n = bed.create();
        let first = good_block(&n, 0).1;
        fill(&mut n, first).unwrap();
        n.program_meta(Ppn(first + 1), &[1], &spare(1, 1001)).unwrap();
        assert_eq!(law(n.read_meta(Ppn(first), &mut [0; 4])), Law::PageContent);
        assert_eq!(law(check(&mut n, first + 1)), Law::PageContent);
        n.copy(Ppn(first), Ppn(first + 2), &spare(first + 2, 9)).unwrap();
        n.copy(Ppn(first + 1), Ppn(first + 3), &spare(1, 1003)).unwrap();
        let mut read = bytes(&n, 0);
        assert_eq!(n.read(Ppn(first + 2), &mut read), Ok(spare(first + 2, 9)));
        assert!(read == bytes(&n, first), "a copy holds other bytes");
        n.read_meta(Ppn(first + 3), &mut [0; 4]).unwrap();
        let usage = n.usage().unwrap();
        assert_eq!((usage.host_data, usage.metadata, usage.damaged), (2, 2, 0));
        assert_eq!(usage.erased, u64::from(n.geometry().pages()) - 4);
        let erased = Err(NandError::Erased { ppn: Ppn(first + 7) });
        assert_eq!(n.copy(Ppn(first + 7), Ppn(first + 4), &spare(0, 0)), erased);
    }

    every_field_of_the_spare_area_comes_back(bed) {
        let mut n = bed.create();
        let first = good_block(&n, 0).1;
        for (kind, offset) in PageKind::ALL.into_iter().zip(0..) {
            let (erase_count, erased_at) = (0x0102_0304, u32::MAX);
            let seq = Spare::SEQ_END - 1 - u64::from(offset);
            let set = Spare { kind, tag: u32::MAX - offset, seq, erase_count, erased_at, aux: 0x80, flags: Flags::ALL };
            let unset = Spare { flags: Flags::NONE, ..set };
            n.program_meta(Ppn(first + offset), b"data", &set).unwrap();
            assert_eq!(n.read_spare(Ppn(first + offset)), Ok(Some(unset)), "a page begins without flags");
            assert_eq!(n.probe(Ppn(first + offset)), Ok(unset));
        }
        let erased = Ppn(first + 4);
        assert_eq!((n.read_spare(erased), n.probe(erased)), (Ok(None), Err(NandError::Erased { ppn: erased })));
    }

    flags_cannot_be_set(bed) {
        let mut n = bed.create();
        let first = good_block(&n, 0).1;
        fill(&mut n, first).unwrap();
        assert_eq!(law(n.clear_flags(Ppn(first), Flags::from_bits(1))), Law::SpareReprogram);
        check(&mut n, first).unwrap();
    }

    a_whole_device_is_filled_and_read(bed) {
        let mut n = bed.create();
        let (blocks, per_block) = (n.geometry().blocks(), n.geometry().pages_per_block());
        let good: Vec<u32> = (0..blocks).filter(|block| !n.is_bad(BlockId(*block))).collect();
        let pages: Vec<u32> = good.iter().flat_map(|block| block * per_block..(block + 1) * per_block).collect();
        pages.iter().for_each(|page| fill(&mut n, *page).unwrap());
        drop(n);
        let mut n = bed.open();
        pages.iter().for_each(|page| check(&mut n, *page).unwrap());
    }
}
