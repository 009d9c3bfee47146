//! What only a kernel can show: other flash, other users, and chips that fail.
//!
//! Each test has a variable that names its device; `scripts/mtd-test` loads the simulated chips.
#![allow(clippy::unwrap_used)]

use crate::bed::*;
use nand::{BlockId, Nand, NandError, Ppn};
use openftl_mtd::header::RESERVED_BLOCKS;
use openftl_mtd::{Access, CharDevice, MtdError, MtdNand};
use std::path::Path;

fn refused(path: &Path) -> MtdError {
    CharDevice::open(path, Access::ReadWrite).unwrap_err()
}

#[test]
fn what_is_no_mtd_device_is_named() {
    for (path, wanted) in [
        ("/dev/null", "/dev/null is a character device of another kind; name the character device of an MTD partition"),
        ("/proc/self/stat", "/proc/self/stat is a file; name"),
        ("/", "/ is a folder; name"),
        ("/dev/mtd-none", "/dev/mtd-none cannot be opened: No such file or directory"),
    ] {
        let error = refused(Path::new(path)).to_string();
        assert!(error.starts_with(wanted), "{error}");
    }
}

#[test]
fn one_process_writes_or_many_read() {
    let Some(Kernel(path)) = Kernel::find() else { return };
    let writer = MtdNand::create(&path, b"owner").unwrap();
    assert!(writer.chip().name().starts_with("NAND simulator"), "{}", writer.chip().name());
    for access in [Access::ReadWrite, Access::ReadOnly] {
        let error = MtdNand::open(&path, access).unwrap_err();
        assert!(matches!(error, MtdError::Locked { .. }), "{error}");
    }
    assert!(matches!(MtdNand::create(&path, b"").unwrap_err(), MtdError::Locked { .. }));
    drop(writer);
    let readers = [(); 2].map(|()| MtdNand::open(&path, Access::ReadOnly).unwrap());
    assert!(matches!(refused(&path), MtdError::Locked { .. }));
    drop(readers);
    assert_eq!(MtdNand::open(&path, Access::ReadWrite).unwrap().owner(), b"owner");
}

#[test]
fn other_flash_is_refused() {
    let Some(Kernel(path)) = Kernel::named("OPENFTL_MTD_RAM") else { return };
    let error = refused(&path);
    println!("{error}");
    assert!(matches!(&error, MtdError::NotNand { found, .. } if found == "ram"), "{error}");
}

#[test]
fn an_oob_without_room_is_refused() {
    let Some(Kernel(path)) = Kernel::named("OPENFTL_MTD_SMALL_OOB") else { return };
    let error = MtdNand::create(&path, b"").unwrap_err();
    println!("{error}");
    assert!(matches!(error, MtdError::OobBytes { available: 0..35 }), "{error}");
}

#[test]
fn flash_that_the_kernel_uses_is_refused() {
    let Some(Kernel(path)) = Kernel::named("OPENFTL_MTD_USED") else { return };
    let error = refused(&path);
    println!("{error}");
    assert!(matches!(error, MtdError::Used { .. }), "{error}");
}

#[test]
fn a_user_without_the_right_is_told() {
    let Some(Kernel(path)) = Kernel::named("OPENFTL_MTD_FORBIDDEN") else { return };
    let error = refused(&path);
    println!("{error}");
    assert!(matches!(error, MtdError::Permission { .. }), "{error}");
}

/// Blocks 1 and 6 are bad from the factory.
#[test]
fn blocks_of_the_factory_are_bad() {
    let Some(bed) = Kernel::named("OPENFTL_MTD_BAD") else { return };
    let n = bed.create();
    let bad: Vec<u32> = (0..n.geometry().blocks()).filter(|block| n.is_bad(BlockId(*block))).collect();
    assert_eq!(bad, [6 - RESERVED_BLOCKS]);
    drop(n);
    let n = bed.open();
    assert!(n.is_bad(BlockId(6 - RESERVED_BLOCKS)) && n.owner() == b"owner");
}

/// Block 7 can be erased three times, block 2 not once.
#[test]
fn erases_fail() {
    let Some(bed) = Kernel::named("OPENFTL_MTD_WEAK_BLOCKS") else { return };
    let (mut n, weak) = (bed.create(), BlockId(7 - RESERVED_BLOCKS));
    let erases = (0..10).take_while(|_| n.erase(weak).is_ok()).count();
    assert_eq!(erases, 2, "making the device took one");
    assert_eq!(n.erase(weak), Err(NandError::EraseFailed { block: weak }));
    n.mark_bad(weak).unwrap();
    drop(n);
    let mut n = bed.open();
    assert!(n.is_bad(weak));
    n.erase(BlockId(weak.0 + 1)).unwrap();
}

/// Page 5 of block 10 can be programmed twice.
#[test]
fn programs_fail() {
    let Some(bed) = Kernel::named("OPENFTL_MTD_WEAK_PAGES") else { return };
    let (mut n, block) = (bed.create(), BlockId(10 - RESERVED_BLOCKS));
    let page = n.geometry().page_at(block, 5).0;
    for _ in 0..2 {
        fill(&mut n, page - 1).unwrap();
        fill(&mut n, page).unwrap();
        check(&mut n, page).unwrap();
        n.erase(block).unwrap();
    }
    fill(&mut n, page - 1).unwrap();
    assert_eq!(fill(&mut n, page), Err(NandError::ProgramFailed { ppn: Ppn(page) }));
    check(&mut n, page - 1).unwrap();
    assert!(law(fill(&mut n, page)).to_string().contains("page"), "a page is spent by a program that failed");
    fill(&mut n, page + 1).unwrap();
    check(&mut n, page + 1).unwrap();
    n.mark_bad(block).unwrap();
    drop(n);
    assert!(bed.open().is_bad(block));
}

/// Page 3 of block 12 can be read twice. Later reads say that it is erased.
#[test]
fn reads_fail() {
    let Some(bed) = Kernel::named("OPENFTL_MTD_GRAVE_PAGES") else { return };
    let (mut n, block) = (bed.create(), BlockId(12 - RESERVED_BLOCKS));
    let page = n.geometry().page_at(block, 3).0;
    fill(&mut n, page).unwrap();
    fill(&mut n, page + 1).unwrap();
    let good = (0..5).take_while(|_| check(&mut n, page).is_ok()).count();
    assert!((1..=2).contains(&good), "{good} reads");
    let error = check(&mut n, page).unwrap_err();
    assert!(matches!(error, NandError::Erased { .. } | NandError::Uncorrectable { .. }), "{error}");
    check(&mut n, page + 1).unwrap();
}

/// A bit flips in one of a thousand reads.
#[test]
fn flipped_bits_are_corrected_and_counted() {
    let Some(bed) = Kernel::named("OPENFTL_MTD_BITFLIPS") else { return };
    let mut n = bed.create();
    assert_eq!(n.correctable_bits(), 1);
    let pages = 8 * n.geometry().pages_per_block();
    (0..pages).for_each(|page| fill(&mut n, page).unwrap());
    let (mut corrected, mut reads) = (0, 0);
    while reads < 20_000 && (corrected < 5 || reads < 5000) {
        check(&mut n, reads % pages).unwrap();
        corrected += n.corrected_bits();
        assert_eq!(
            n.read_spare(Ppn(reads % pages)).unwrap(),
            Some(spare(reads % pages, 1000 + u64::from(reads % pages)))
        );
        reads += 1;
    }
    println!("{corrected} bits were corrected in {reads} reads");
    assert!(corrected >= 5);
}
