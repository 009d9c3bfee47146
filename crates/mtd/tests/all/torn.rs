//! A page that was programmed in part is never taken for a good one.
#![allow(clippy::unwrap_used)]

use crate::bed::*;
use crate::memory::{Memory, SMALL};
use nand::{Law, Nand, NandError, Ppn};
use openftl_mtd::header::RESERVED_BLOCKS;
use openftl_mtd::{Chip, Place, RECORD_BYTES};

on_every_bed! {
    a_page_in_part_is_not_read_as_a_good_one(bed) {
        let mut n = bed.create();
        let ((model, from), (block, first)) = (good_block(&n, 0), good_block(&n, 1));
        fill(&mut n, from).unwrap();
        fill(&mut n, first).unwrap();
        fill(&mut n, first + 5).unwrap();
        let (data, other) = (bytes(&n, from), bytes(&n, first + 1));
        drop(n);
        let mut chip = bed.chip();
        let mut oob = [0; RECORD_BYTES];
        chip.read(Place { block: model.0 + RESERVED_BLOCKS, offset: 0 }, None, &mut oob).unwrap();
        let at = |offset| Place { block: block.0 + RESERVED_BLOCKS, offset };
        let mut half = data.clone();
        half[data.len() / 2..].fill(0xFF);
        let none = vec![0xFF; data.len()];
        chip.program(at(0), &data, &oob).unwrap();
        chip.program(at(1), &half, &oob).unwrap();
        chip.program(at(2), &data, &[]).unwrap();
        chip.program(at(3), &none, &oob).unwrap();
        chip.program(at(4), &other, &oob).unwrap();
        drop(chip);
        let mut n = bed.open();
        for page in first..first + 5 {
            let uncorrectable = NandError::Uncorrectable { ppn: Ppn(page) };
            let mut read = bytes(&n, 0);
            assert_eq!(n.read(Ppn(page), &mut read), Err(uncorrectable), "{page}");
            assert_eq!(n.read_meta(Ppn(page), &mut read), Err(uncorrectable), "{page}");
            assert_eq!(n.probe(Ppn(page)), Err(uncorrectable), "{page}");
            assert_eq!(n.copy(Ppn(page), Ppn(first + 6), &spare(0, 0)), Err(uncorrectable), "{page}");
            let again = law(fill(&mut n, page));
            assert!(matches!(again, Law::EraseBeforeProgram | Law::ProgramOrder), "{page}: {again}");
        }
        check(&mut n, first + 5).unwrap();
        n.erase(block).unwrap();
        for page in first..first + 5 {
            fill(&mut n, page).unwrap();
            check(&mut n, page).unwrap();
        }
    }
}

/// Any of the bits that a program was to clear may still be set.
#[test]
fn bits_that_are_missing_are_noticed() {
    let memory = Memory::new(SMALL);
    let mut n = memory.create();
    let mut random = 1_u32;
    let mut next = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        random >> 8
    };
    fill(&mut n, 0).unwrap();
    let mut whole = (bytes(&n, 0), vec![0; RECORD_BYTES]);
    let at = Place { block: RESERVED_BLOCKS, offset: 0 };
    n.chip_mut().read(at, None, &mut whole.1).unwrap();
    let (mut good, mut torn) = (0, 0);
    for _ in 0..5000 {
        let (missing, mut part) = (next() % 6, whole.clone());
        for _ in 0..missing {
            let bit = next() as usize % ((part.0.len() + part.1.len()) * 8);
            let bytes = part.0.iter_mut().chain(&mut part.1);
            bytes.skip(bit / 8).take(1).for_each(|byte| *byte |= 1 << (bit % 8));
        }
        n.erase(nand::BlockId(0)).unwrap();
        n.chip_mut().program(at, &part.0, &part.1).unwrap();
        // Bits of the record are corrected; those of the data are the chip's to correct.
        match check(&mut n, 0) {
            Ok(()) => good += 1,
            Err(error) => {
                assert_eq!(error, NandError::Uncorrectable { ppn: Ppn(0) });
                torn += 1;
            }
        }
    }
    assert!(good > 1000 && torn > 1000, "{good} {torn}");
}
