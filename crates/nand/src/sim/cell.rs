//! Eight bytes a page.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;

/// What a simulated device keeps of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Cell {
    /// The logical page of host data, or the index of a full record.
    pub(super) tag: u32,
    /// The low [`SEQ_BITS`] of the sequence number less that of the block's first page, or
    /// [`RECORD`] or [`NOTHING`].
    pub(super) seq_low: u16,
    /// The version of the stamp.
    pub(super) version: u16,
}

/// Bits of a sequence number in a cell. Few blocks take longer to fill than these count: an
/// [`Extra`] has the rest.
pub(super) const SEQ_BITS: u32 = 15;
/// In place of a sequence number: the tag is the index of a full record.
pub(super) const RECORD: u16 = u16::MAX;
/// In place of a sequence number: the page is erased.
pub(super) const NOTHING: u16 = u16::MAX - 1;

impl Cell {
    /// An erased page.
    pub(super) const ERASED: Self = Self { tag: 0, seq_low: NOTHING, version: 0 };

    /// A page kept as a full record.
    pub(super) const fn record(index: u32) -> Self {
        Self { tag: index, seq_low: RECORD, version: 0 }
    }
}

/// What a cell has no room for, and most pages have nothing of. Packed, so that an array of them
/// has no holes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, packed(2))]
pub(super) struct Extra {
    /// Auxiliary bits.
    pub(super) aux: u32,
    /// The sequence number less that of the block's first page, shifted right by [`SEQ_BITS`].
    pub(super) seq_high: u16,
}

impl Extra {
    /// Whether there is anything in it.
    #[inline]
    pub(super) const fn is_none(self) -> bool {
        self.aux == 0 && self.seq_high == 0
    }
}

/// Something of every page of a block, copied on the first write after a snapshot.
///
/// Not an `Arc` throughout: finding out whether one is shared is an atomic operation, which would
/// be most of the cost of a program. The box inside the `Arc` lets a snapshot share a block without
/// copying it.
#[derive(Clone, Debug)]
pub(super) enum PerPage<T> {
    /// This device's alone. Empty until first written.
    Owned(Box<[T]>),
    /// Perhaps also a snapshot's.
    Shared(Arc<Box<[T]>>),
}

impl<T: Copy> PerPage<T> {
    /// Of a block never programmed; takes no memory.
    pub(super) fn none() -> Self {
        Self::Owned(Box::default())
    }

    /// What is kept at `offset`, which must have been programmed or skipped.
    #[inline]
    pub(super) fn get(&self, offset: u32) -> T {
        match self {
            Self::Owned(kept) => kept[offset as usize],
            Self::Shared(kept) => kept[offset as usize],
        }
    }

    /// The first `end`.
    pub(super) fn head(&self, end: u32) -> &[T] {
        match self {
            Self::Owned(kept) => &kept[..end as usize],
            Self::Shared(kept) => &kept[..end as usize],
        }
    }

    /// To write: `pages` of them, of which the first `end` keep their contents. New ones are
    /// `fresh`.
    pub(super) fn own(&mut self, pages: u32, end: u32, fresh: T) -> &mut [T] {
        debug_assert!(end <= pages, "{end} cells of {pages}");
        let replacement = match self {
            Self::Owned(kept) if kept.len() == pages as usize => None,
            Self::Owned(_) => Some(vec![fresh; pages as usize].into_boxed_slice()),
            Self::Shared(kept) => {
                let mut copy = vec![fresh; pages as usize].into_boxed_slice();
                copy[..end as usize].copy_from_slice(&kept[..end as usize]);
                Some(copy)
            }
        };
        if let Some(kept) = replacement {
            debug_assert!(kept.len() == pages as usize);
            *self = Self::Owned(kept);
        }
        match self {
            Self::Owned(kept) => kept,
            // Never taken: replaced above.
            Self::Shared(_) => &mut [],
        }
    }

    /// Makes it shared, so that cloning it copies nothing.
    pub(super) fn share(&mut self) {
        if let Self::Owned(kept) = self
            && !kept.is_empty()
        {
            *self = Self::Shared(Arc::new(core::mem::take(kept)));
        }
    }

    /// Bytes allocated, shared ones included.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Owned(kept) => size_of_val::<[T]>(kept),
            Self::Shared(kept) => size_of_val::<[T]>(kept) + 4 * size_of::<usize>(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_takes_eight_bytes_an_extra_six_and_a_block_of_them_two_words() {
        assert_eq!((size_of::<Cell>(), size_of::<Extra>()), (8, 6));
        assert_eq!(size_of::<PerPage<Cell>>(), 2 * size_of::<usize>());
    }
}
