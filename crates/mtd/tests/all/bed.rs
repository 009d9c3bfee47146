//! Flash for tests, which outlives those who open it.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::memory::Memory;
use nand::{BlockId, Flags, Law, Lpn, Nand, NandError, PageKind, Ppn, Spare};
use openftl_mtd::{Access, CharDevice, Chip, ChipError, MtdNand, Place, Shape};
use std::path::PathBuf;

/// Flash that can be opened again and again.
pub trait Bed {
    type Chip: Chip + core::fmt::Debug + 'static;

    fn chip(&self) -> Self::Chip;

    /// The same, of a type that is the same for all: FTLs are compiled once.
    fn any_chip(&self) -> Any {
        Any(Box::new(self.chip()))
    }

    fn create(&self) -> MtdNand<Self::Chip> {
        MtdNand::create_on(self.chip(), b"owner").unwrap()
    }

    fn open(&self) -> MtdNand<Self::Chip> {
        MtdNand::open_on(self.chip()).unwrap()
    }
}

/// A chip of any kind.
#[derive(Debug)]
pub struct Any(Box<dyn AnyChip>);

trait AnyChip: Chip + core::fmt::Debug {}

impl<C: Chip + core::fmt::Debug> AnyChip for C {}

impl Chip for Any {
    fn shape(&self) -> Shape {
        self.0.shape()
    }

    fn read(&mut self, at: Place, data: Option<&mut [u8]>, oob: &mut [u8]) -> Result<u32, ChipError> {
        self.0.read(at, data, oob)
    }

    fn program(&mut self, at: Place, data: &[u8], oob: &[u8]) -> Result<(), ChipError> {
        self.0.program(at, data, oob)
    }

    fn erase(&mut self, block: u32) -> Result<(), ChipError> {
        self.0.erase(block)
    }

    fn is_bad(&mut self, block: u32) -> Result<bool, ChipError> {
        self.0.is_bad(block)
    }

    fn mark_bad(&mut self, block: u32) -> Result<(), ChipError> {
        self.0.mark_bad(block)
    }
}

impl Bed for Memory {
    type Chip = Self;

    fn chip(&self) -> Self {
        self.clone()
    }
}

/// The flash that an environment variable names.
pub struct Kernel(pub PathBuf);

impl Kernel {
    /// The device for tests, or a word that the test is skipped.
    pub fn find() -> Option<Self> {
        Self::named("OPENFTL_MTD")
    }

    /// The device that a variable names.
    pub fn named(variable: &str) -> Option<Self> {
        let path = std::env::var_os(variable);
        if path.is_none() {
            println!("skipped: {variable} names no device");
        }
        path.map(|path| Self(path.into()))
    }
}

impl Bed for Kernel {
    type Chip = CharDevice;

    fn chip(&self) -> CharDevice {
        CharDevice::open(&self.0, Access::ReadWrite).unwrap()
    }
}

/// Makes two tests of each: over a chip in memory, and over one behind the kernel.
macro_rules! on_every_bed {
    ($($(#[$doc:meta])* $name:ident($bed:ident) $body:block)*) => {$(
        $(#[$doc])*
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            fn run_on($bed: &impl crate::bed::Bed) $body

            #[test]
            fn memory() {
                run_on(&crate::memory::Memory::new(crate::memory::SMALL));
            }

            #[test]
            fn kernel() {
                crate::bed::Kernel::find().iter().for_each(run_on);
            }
        }
    )*};
}
pub(crate) use on_every_bed;

pub fn spare(tag: u32, seq: u64) -> Spare {
    let (kind, flags) = (PageKind::User, Flags::NONE);
    Spare { kind, tag, seq, erase_count: 1, erased_at: 2, aux: 0, flags }
}

/// A page of bytes that no other number gives.
pub fn bytes(n: &impl Nand<Payload = [u8]>, number: u32) -> Vec<u8> {
    let size = n.geometry().page_bytes();
    (0..size).map(|at| (at.wrapping_mul(31) ^ number.wrapping_mul(0x9E37_79B9) >> (at % 23)) as u8).collect()
}

/// Programs a page with its own number.
pub fn fill(n: &mut impl Nand<Payload = [u8]>, ppn: u32) -> Result<(), NandError> {
    let data = bytes(n, ppn);
    n.program(Ppn(ppn), &data, &spare(ppn, 1000 + u64::from(ppn)))
}

/// Reads a page that [`fill`] programmed, and holds it against that.
pub fn check(n: &mut impl Nand<Payload = [u8]>, ppn: u32) -> Result<(), NandError> {
    let mut read = vec![0; n.geometry().page_bytes() as usize];
    let found = n.read(Ppn(ppn), &mut read)?;
    assert_eq!(found, spare(ppn, 1000 + u64::from(ppn)), "{ppn} has another spare area");
    assert!(read == bytes(n, ppn), "{ppn} holds other bytes");
    Ok(())
}

/// The law that an operation broke.
#[track_caller]
pub fn law<T: core::fmt::Debug>(result: Result<T, NandError>) -> Law {
    match result {
        Err(NandError::Illegal { law, .. }) => law,
        other => panic!("not refused: {other:?}"),
    }
}

/// A good block, and the number of its first page.
pub fn good_block(n: &impl Nand, which: usize) -> (BlockId, u32) {
    let mut good = (0..n.geometry().blocks()).map(BlockId).filter(|block| !n.is_bad(*block));
    let block = good.nth(which).unwrap();
    (block, n.geometry().page_at(block, 0).0)
}

/// The bytes that a write of a logical page puts there.
pub fn version(page: &mut [u8], lpn: Lpn, version: u32) {
    for (at, word) in (0..).zip(page.chunks_exact_mut(8)) {
        let mixed = lpn.0.wrapping_mul(0x85EB_CA6B) ^ version.wrapping_mul(0xC2B2_AE35) ^ at;
        word[..4].copy_from_slice(&mixed.to_le_bytes());
        word[4..].copy_from_slice(&mixed.rotate_left(13).to_le_bytes());
    }
}
