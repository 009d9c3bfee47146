//! Ten bytes a page.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;

/// What a simulated device keeps of a page.
///
/// Packed to two bytes so that an array of them has no holes: ten bytes instead of twelve is a
/// gigabyte on a device of 2 TiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, packed(2))]
pub(super) struct Cell {
    /// The logical page of host data, or the index of a full record.
    pub(super) tag: u32,
    /// Sequence number less that of the block's first page, or [`RECORD`] or [`NOTHING`].
    pub(super) seq_delta: u32,
    /// The version of the stamp.
    pub(super) version: u16,
}

/// In place of a sequence number: the tag is the index of a full record.
pub(super) const RECORD: u32 = u32::MAX;
/// In place of a sequence number: the page is erased.
pub(super) const NOTHING: u32 = u32::MAX - 1;

impl Cell {
    /// An erased page.
    pub(super) const ERASED: Self = Self { tag: 0, seq_delta: NOTHING, version: 0 };

    /// A page kept as a full record.
    pub(super) const fn record(index: u32) -> Self {
        Self { tag: index, seq_delta: RECORD, version: 0 }
    }
}

/// The cells of a block, copied on the first write after a snapshot.
///
/// Not an `Arc` throughout: finding out whether one is shared is an atomic operation, which would
/// be most of the cost of a program. The box inside the `Arc` lets a snapshot share a block without copying it.
#[derive(Clone, Debug)]
pub(super) enum Cells {
    /// This device's alone. Empty until the block is first programmed.
    Owned(Box<[Cell]>),
    /// Perhaps also a snapshot's.
    Shared(Arc<Box<[Cell]>>),
}

impl Cells {
    /// The cells of a block never programmed; takes no memory.
    pub(super) fn none() -> Self {
        Self::Owned(Box::default())
    }

    /// The cell at `offset`, which must have been programmed or skipped.
    #[inline]
    pub(super) fn get(&self, offset: u32) -> Cell {
        match self {
            Self::Owned(cells) => cells[offset as usize],
            Self::Shared(cells) => cells[offset as usize],
        }
    }

    /// The first `end` cells.
    pub(super) fn head(&self, end: u32) -> &[Cell] {
        match self {
            Self::Owned(cells) => &cells[..end as usize],
            Self::Shared(cells) => &cells[..end as usize],
        }
    }

    /// Cells to write: `pages` of them, of which the first `end` keep their contents.
    pub(super) fn own(&mut self, pages: u32, end: u32) -> &mut [Cell] {
        let replacement = match self {
            Self::Owned(cells) if cells.len() == pages as usize => None,
            Self::Owned(_) => Some(vec![Cell::ERASED; pages as usize].into_boxed_slice()),
            Self::Shared(cells) => {
                let mut copy = vec![Cell::ERASED; pages as usize].into_boxed_slice();
                copy[..end as usize].copy_from_slice(&cells[..end as usize]);
                Some(copy)
            }
        };
        if let Some(cells) = replacement {
            *self = Self::Owned(cells);
        }
        match self {
            Self::Owned(cells) => cells,
            // Never taken: replaced above.
            Self::Shared(_) => &mut [],
        }
    }

    /// Makes the cells shared, so that cloning them copies nothing.
    pub(super) fn share(&mut self) {
        if let Self::Owned(cells) = self
            && !cells.is_empty()
        {
            *self = Self::Shared(Arc::new(core::mem::take(cells)));
        }
    }

    /// Bytes allocated, shared ones included.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Owned(cells) => size_of_val::<[Cell]>(cells),
            Self::Shared(cells) => size_of_val::<[Cell]>(cells) + 4 * size_of::<usize>(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_takes_ten_bytes_and_a_block_two_words() {
        assert_eq!(size_of::<Cell>(), 10);
        assert_eq!(size_of::<Cells>(), 2 * size_of::<usize>());
    }
}
