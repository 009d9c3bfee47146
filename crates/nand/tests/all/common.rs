//! Devices for tests, driven by stamps whatever they keep.
#![allow(missing_docs, clippy::unwrap_used)]

use openftl_nand::*;

pub const PAGE: usize = 512;

pub const SHAPE: Dimensions = Dimensions {
    channels: 1,
    dies_per_channel: 1,
    planes_per_die: 1,
    blocks: 6,
    pages_per_block: 8,
    page_bytes: PAGE as u32,
    spare_bytes: 32,
};

pub const OLD: Capabilities =
    Capabilities { program_order: ProgramOrder::Free, spare_reprograms: 2, multi_plane: false, copy_back: false };

pub fn geometry() -> Geometry {
    Geometry::new(SHAPE).unwrap()
}

pub fn spare(tag: u32, seq: u64) -> Spare {
    Spare { kind: PageKind::User, tag, seq, erase_count: 1, erased_at: 2, aux: 0, flags: Flags::NONE }
}

pub fn stamp(lpn: u32, version: u16) -> Stamp {
    Stamp { lpn: Lpn(lpn), version }
}

/// A device in a file that is in memory.
#[cfg(all(feature = "std", unix))]
pub fn file_in_memory(capabilities: Capabilities) -> FileNand<file::Volatile> {
    let bytes = FileNand::<file::Volatile>::bytes_needed(&geometry(), 5);
    FileNand::create_on(file::Volatile::new(vec![0; bytes as usize]), geometry(), capabilities, b"owner").unwrap()
}

/// How a stamp is kept.
pub trait Form {
    fn with<R>(stamp: Stamp, use_it: impl FnOnce(&mut Self) -> R) -> R;
    fn stamp(&self) -> Stamp;
}

impl Form for Stamp {
    fn with<R>(mut stamp: Stamp, use_it: impl FnOnce(&mut Self) -> R) -> R {
        use_it(&mut stamp)
    }
    fn stamp(&self) -> Stamp {
        *self
    }
}

impl Form for [u8] {
    fn with<R>(stamp: Stamp, use_it: impl FnOnce(&mut Self) -> R) -> R {
        let mut page = [0; PAGE];
        page[..4].copy_from_slice(&stamp.lpn.0.to_le_bytes());
        page[4..6].copy_from_slice(&stamp.version.to_le_bytes());
        page[PAGE - 1] = stamp.version as u8;
        use_it(&mut page)
    }
    fn stamp(&self) -> Stamp {
        let version = u16::from_le_bytes([self[4], self[5]]);
        assert_eq!(self[PAGE - 1], version as u8, "the end of the page is lost");
        Stamp { lpn: Lpn(u32::from_le_bytes(self[..4].try_into().unwrap())), version }
    }
}

pub fn put<N: Nand<Payload: Form>>(n: &mut N, ppn: u32, stamp: Stamp, spare: &Spare) -> Result<(), NandError> {
    Form::with(stamp, |page: &mut N::Payload| n.program(Ppn(ppn), page, spare))
}

pub fn get<N: Nand<Payload: Form>>(n: &mut N, ppn: u32) -> Result<(Stamp, Spare), NandError> {
    Form::with(Stamp::UNWRITTEN, |page: &mut N::Payload| {
        let spare = n.read(Ppn(ppn), page)?;
        Ok((page.stamp(), spare))
    })
}

/// Programs a plain page: its own number as tag and version.
pub fn fill<N: Nand<Payload: Form>>(n: &mut N, ppn: u32) -> Result<(), NandError> {
    put(n, ppn, stamp(ppn, ppn as u16), &spare(ppn, 1000 + u64::from(ppn)))
}

/// The law that an operation broke.
#[track_caller]
pub fn law<T: core::fmt::Debug>(result: Result<T, NandError>) -> Law {
    match result {
        Err(NandError::Illegal { law, .. }) => law,
        other => panic!("not refused: {other:?}"),
    }
}
