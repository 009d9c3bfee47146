//! Copies that are superseded as long as all newer ones count.
//!
//! A chain of them can be in doubt: a mount copied the page that the host wrote last, whose program
//! was cut short, a mount after it copied the copy, and all of them fade. So all are known, not
//! only the newest two, and none is erased before the newest was copied.

use super::{Copies, Copy, Doubt, NO_COPY, root_of};
use crate::contract::FtlError;
use crate::flash::{Flash, Purpose};
use alloc::vec::Vec;
use nand::{BlockId, Lpn, Nand, NandError, Ppn};

/// Reads that a page whose program was cut short hardly survives.
const READS: u32 = 16;

/// Reads a page so often that it fails if its program was cut short, as far as reads can tell: for
/// where nothing can be programmed to settle it.
///
/// # Errors
/// Those of the device.
pub fn read_often<N: Nand>(flash: &mut Flash<N>, page: Ppn) -> Result<(), NandError> {
    (0..READS).try_for_each(|_| flash.probe(Purpose::Recovery, page).map(drop))
}

impl Copies {
    /// A page holds a copy of a logical page.
    pub(super) fn note_copy(&mut self, lpn: Lpn, mut copy: Copy) {
        let Some(copies) = self.pages.get_mut(lpn.index()) else { return };
        for kept in copies {
            if !kept.ppn.is_some() || copy.seq > kept.seq {
                core::mem::swap(kept, &mut copy);
            }
        }
        debug_assert!(self.pages[lpn.index()].is_sorted_by(|a, b| a.seq >= b.seq), "an older copy of {lpn} counts");
        if copy.ppn.is_some() {
            self.older.entry(lpn.0).or_default().push(copy);
        }
    }

    /// The pages of a block count no more: neither the newest copies, nor superseded ones, nor torn
    /// pages. A superseded copy would count when the block with the newer one is taken back too.
    pub(super) fn uncover(&mut self, block: BlockId) {
        let geometry = self.geometry;
        let is_gone = |copy: &Copy| copy.ppn.is_some() && geometry.block_of(copy.ppn) == block;
        self.torn.retain(|(ppn, _)| geometry.block_of(*ppn) != block);
        self.older.values_mut().for_each(|older| older.retain(|copy| !is_gone(copy)));
        let mut uncovered = Vec::new();
        for (lpn, copies) in (0..).map(Lpn).zip(&mut self.pages) {
            if copies.iter().any(is_gone) {
                uncovered.push((lpn, core::mem::replace(copies, [NO_COPY; 2])));
            }
        }
        for (lpn, copies) in uncovered {
            let older = self.older.remove(&lpn.0).unwrap_or_default();
            let left = copies.into_iter().filter(|copy| copy.ppn.is_some() && !is_gone(copy));
            left.chain(older).for_each(|copy| self.note_copy(lpn, copy));
        }
        debug_assert!(!self.pages.iter().flatten().any(is_gone), "a copy in {block} still counts");
    }

    /// Whether a page other than this one that counts, or would if newer ones did not, holds this
    /// write of a logical page.
    pub(super) fn is_elsewhere<N: Nand>(
        &self,
        flash: &mut Flash<N>,
        lpn: Lpn,
        root: u32,
        page: Ppn,
    ) -> Result<bool, FtlError> {
        let older = self.older.get(&lpn.0).into_iter().flatten();
        for copy in self.pages[lpn.index()].iter().chain(older).filter(|copy| copy.ppn != page) {
            if root_of(flash, copy)? == Some(root) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The copies of which one counts if these pages in doubt do not.
    pub fn before(&self, doubts: &[Doubt]) -> impl Iterator<Item = Ppn> {
        doubts.iter().flat_map(|doubt| {
            let older = self.older.get(&doubt.lpn.0).into_iter().flatten();
            let copies = self.pages.get(doubt.lpn.index()).into_iter().flatten();
            copies.chain(older).map(|copy| copy.ppn).filter(|ppn| ppn.is_some() && *ppn != doubt.ppn)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use nand::{Dimensions, Flags, Geometry, PageKind, Spare};

    const LPN: Lpn = Lpn(3);

    /// Copies of one logical page: one of number 1 in block 0, two of number 7 in blocks 1 and 2.
    fn copies() -> Copies {
        let geometry = Geometry::new(Dimensions {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks: 4,
            pages_per_block: 8,
            page_bytes: 512,
            spare_bytes: 32,
        })
        .unwrap();
        let mut copies = Copies::new(geometry, 8, &[]);
        for (block, seq) in [(0, 1), (1, 7), (2, 7)] {
            let ppn = geometry.page_at(BlockId(block), 0);
            copies.note_copy(LPN, Copy { ppn, aux: 1, seq });
        }
        copies
    }

    fn newest(copies: &Copies) -> Option<u32> {
        let mut newest = copies.newest();
        let found = newest.next().map(|(_, copy)| copies.geometry.block_of(copy.ppn).0);
        assert!(newest.next().is_none());
        found
    }

    #[test]
    fn no_page_of_a_block_taken_back_counts_again() {
        for blocks in [[1, 2], [2, 1]] {
            let mut copies = copies();
            assert_eq!(newest(&copies), Some(1));
            copies.uncover(BlockId(blocks[0]));
            assert_eq!(newest(&copies), Some(blocks[1]));
            copies.uncover(BlockId(blocks[1]));
            assert_eq!(newest(&copies), Some(0), "{blocks:?}");
        }
        let mut copies = copies();
        [0, 2, 1].into_iter().for_each(|block| copies.uncover(BlockId(block)));
        assert_eq!(newest(&copies), None);
    }

    #[test]
    fn torn_pages_of_a_block_taken_back_are_gone() {
        let mut copies = copies();
        let (kind, flags) = (PageKind::User, Flags::NONE);
        let spare = Spare { kind, tag: LPN.0, seq: 9, erase_count: 0, erased_at: 0, aux: 1, flags };
        copies.burned_seq = 9;
        copies.torn = [1, 2].map(|block| (copies.geometry.page_at(BlockId(block), 1), spare)).to_vec();
        copies.uncover(BlockId(1));
        assert_eq!(copies.revenants().collect::<Vec<_>>(), [BlockId(2)]);
    }
}
