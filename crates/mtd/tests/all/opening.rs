//! What is on flash outlives who opened it, and what is no device is refused with what was found.
#![allow(clippy::unwrap_used)]

use crate::bed::*;
use crate::memory::{Memory, SMALL};
use nand::{BlockId, Nand, NandError, Ppn};
use openftl_mtd::header::{HEADERS_MIN, RESERVED_BLOCKS};
use openftl_mtd::{Chip, MtdError, MtdNand, OWNER_BYTES_MAX, Place, Shape};

on_every_bed! {
    the_owner_and_the_shape_come_back(bed) {
        for bytes in [0, 5, 4000] {
            let owner: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
            let made = MtdNand::create_on(bed.chip(), &owner);
            let Ok(made) = made else {
                assert!(matches!(made, Err(MtdError::OwnerTooLong { .. })));
                continue;
            };
            let (geometry, correctable) = (*made.geometry(), made.correctable_bits());
            assert_eq!((made.owner(), correctable), (&owner[..], made.chip().shape().ecc_strength));
            assert_eq!(geometry.blocks(), made.chip().shape().blocks - RESERVED_BLOCKS);
            drop(made);
            let opened = bed.open();
            assert_eq!((opened.owner(), *opened.geometry()), (&owner[..], geometry));
        }
        let long = vec![1; OWNER_BYTES_MAX + 1];
        assert!(matches!(MtdNand::create_on(bed.chip(), &long), Err(MtdError::OwnerTooLong { .. })));
        bed.open();
    }

    a_device_that_is_made_anew_is_empty(bed) {
        let mut n = bed.create();
        let first = good_block(&n, 0).1;
        fill(&mut n, first).unwrap();
        drop(n);
        let mut n = MtdNand::create_on(bed.chip(), b"other").unwrap();
        assert_eq!((n.read_spare(Ppn(first)), n.owner()), (Ok(None), &b"other"[..]));
        fill(&mut n, first).unwrap();
    }

    a_reader_refuses_to_write(bed) {
        let mut n = bed.create();
        let (block, first) = good_block(&n, 0);
        fill(&mut n, first).unwrap();
        drop(n);
        let mut n = MtdNand::open_read_only_on(bed.chip()).unwrap();
        let refused = [
            fill(&mut n, first + 1),
            n.program_meta(Ppn(first + 1), b"x", &spare(0, 0)),
            n.copy(Ppn(first), Ppn(first + 1), &spare(0, 0)),
            n.erase(block),
            n.mark_bad(block),
        ];
        for refused in refused {
            let error = refused.unwrap_err();
            assert!(matches!(error, NandError::Host { .. }) && error.to_string().contains("Read-only"), "{error}");
        }
        check(&mut n, first).unwrap();
        drop(n);
        check(&mut bed.open(), first).unwrap();
    }

    /// Any header may be lost. Opening the device for writing makes up for it.
    one_header_is_enough(bed) {
        let mut n = bed.create();
        let first = good_block(&n, 0).1;
        fill(&mut n, first).unwrap();
        drop(n);
        let mut chip = bed.chip();
        let reserved: Vec<u32> = (0..RESERVED_BLOCKS).filter(|block| !chip.is_bad(*block).unwrap()).collect();
        assert!(reserved.len() >= HEADERS_MIN as usize);
        let page = vec![0; chip.shape().page_bytes as usize];
        for kept in &reserved {
            for lost in reserved.iter().filter(|block| *block != kept) {
                match lost % 2 {
                    0 => chip.erase(*lost).unwrap(),
                    _ => chip.program(Place { block: *lost, offset: 0 }, &page, &[]).unwrap(),
                }
            }
            drop(chip);
            assert_eq!(MtdNand::open_read_only_on(bed.chip()).unwrap().owner(), b"owner");
            check(&mut bed.open(), first).unwrap();
            chip = bed.chip();
        }
        reserved.iter().for_each(|block| chip.erase(*block).unwrap());
        drop(chip);
        let error = MtdNand::open_on(bed.chip()).unwrap_err();
        assert!(matches!(error, MtdError::NotFormatted), "{error}");
        bed.create();
    }
}

#[test]
fn a_chip_that_does_not_fit_is_refused() {
    let refused = |shape| MtdNand::create_on(Memory::new(shape), b"").unwrap_err();
    let error = refused(Shape { oob_bytes: 34, ..SMALL });
    let said = "34 B of each page's OOB are free beside the ECC, 35 B are needed; use a weaker ECC";
    assert_eq!(error.to_string(), said);
    MtdNand::create_on(Memory::new(Shape { oob_bytes: 35, ..SMALL }), b"").unwrap();
    assert!(matches!(refused(Shape { blocks: 4, ..SMALL }), MtdError::Blocks { blocks: 4 }));
    MtdNand::create_on(Memory::new(Shape { blocks: 5, ..SMALL }), b"").unwrap();
    let many = Shape { blocks: u32::MAX, pages_per_block: 64, ..SMALL };
    assert!(matches!(refused(many), MtdError::Geometry(_)));
    assert!(matches!(refused(Shape { page_bytes: 500, ..SMALL }), MtdError::Geometry(_)));
}

#[test]
fn blocks_that_are_bad_at_the_start_are_left_out() {
    let memory = Memory::new(SMALL);
    memory.cells().bad.extend([0, 2, 9]);
    let n = memory.create();
    assert!((0..20).all(|block| n.is_bad(BlockId(block)) == (block == 5)));
    assert_eq!(memory.open().owner(), b"owner");
    memory.cells().bad.insert(1);
    assert_eq!(memory.open().owner(), b"owner");
    let error = MtdNand::create_on(memory, b"owner").unwrap_err();
    assert!(matches!(error, MtdError::Header { good: 1 }), "{error}");
}

#[test]
fn a_block_that_cannot_be_erased_is_bad_from_then_on() {
    let memory = Memory::new(SMALL);
    memory.cells().weak_blocks.extend([1, 7]);
    memory.cells().weak_pages.insert(2);
    let n = memory.create();
    assert!(n.is_bad(BlockId(3)) && !n.is_bad(BlockId(4)));
    assert_eq!(memory.cells().bad.iter().copied().collect::<Vec<_>>(), [1, 2, 7]);
}

/// Making a device, cut after each of its operations, leaves the old one, the new one, or none.
#[test]
fn a_device_that_is_half_made_is_none() {
    let memory = Memory::new(SMALL);
    let mut n = memory.create();
    fill(&mut n, 3).unwrap();
    let (mut old, mut none, mut new) = (0, 0, 0);
    for operations in 0.. {
        drop(memory.create());
        fill(&mut memory.open(), 3).unwrap();
        memory.cells().power = Some(operations);
        let made = MtdNand::create_on(memory.clone(), b"new");
        memory.cells().power_up();
        match MtdNand::open_on(memory.clone()) {
            Ok(mut opened) if opened.owner() == b"owner" => {
                check(&mut opened, 3).unwrap();
                old += 1;
            }
            Ok(mut opened) => {
                assert_eq!((opened.read_spare(Ppn(3)), opened.owner()), (Ok(None), &b"new"[..]));
                new += 1;
            }
            Err(MtdError::NotFormatted) => none += 1,
            Err(error) => panic!("{error}"),
        }
        if made.is_ok() {
            break;
        }
    }
    assert!(old >= 3 && none >= 20 && new >= 4, "{old} {none} {new}");
}

#[test]
fn what_the_host_refused_is_refused_from_then_on() {
    let memory = Memory::new(SMALL);
    let mut n = memory.create();
    fill(&mut n, 0).unwrap();
    memory.cells().power = Some(0);
    let error = fill(&mut n, 1).unwrap_err();
    assert!(matches!(error, NandError::Host { .. }) && error.is_final(), "{error}");
    memory.cells().power_up();
    for refused in [fill(&mut n, 2), n.erase(BlockId(0)), n.mark_bad(BlockId(0))] {
        assert!(matches!(refused, Err(NandError::Host { cause, .. }) if cause.0 == 19), "{refused:?}");
    }
    check(&mut n, 0).unwrap();
    drop(n);
    fill(&mut memory.open(), 2).unwrap();
}
