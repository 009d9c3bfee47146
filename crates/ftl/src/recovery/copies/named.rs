//! Copies that a checkpoint names: in blocks that were not read, and those that have faded since.

use super::{Copies, Copy};
use crate::recovery::mark::{Mark, Writer};
use nand::{Lpn, Ppn, Spare};

impl Copies {
    /// A checkpoint says that this is a copy of a logical page: older than any that was read.
    pub(in crate::recovery) fn note_older(&mut self, lpn: Lpn, ppn: Ppn, paged: bool) {
        let writer = if paged { Writer::Paged } else { Writer::Log };
        let aux = Mark { writer, last: false, root: 0 }.encode();
        let Some(copies) = self.pages.get(lpn.index()) else { return };
        debug_assert!(self.named.0.get(lpn.index()) == Some(&ppn), "no checkpoint names {ppn}");
        if copies.iter().any(|copy| copy.ppn == ppn) {
            // Read as well: in program order that is free, pages behind one that is still erased.
            return;
        }
        self.note_copy(lpn, Copy { ppn, aux, seq: 0 });
    }

    /// Whether a page that a checkpoint names, made at so many `erases` of the device, is there and
    /// does not say any more what it holds: its block was half erased before the checkpoint, or
    /// after it. It was not erased as a whole, as far as can be told.
    pub(in crate::recovery) fn has_faded(&self, lpn: Lpn, ppn: Ppn, erases: u32) -> bool {
        let is_it = |(at, spare): &(Ppn, Spare)| *at == ppn && spare.tag == lpn.0 && spare.seq < self.named.1;
        let was_erased = self.block(self.geometry.block_of(ppn)).erased_at.is_some_and(|at| at > erases);
        !was_erased && (self.silent.contains(&ppn) || self.torn.iter().any(is_it))
    }

    /// A page has faded that a checkpoint names: it counts, so that reading it is an error unless a
    /// newer copy is found.
    pub(in crate::recovery) fn note_faded(&mut self, lpn: Lpn, ppn: Ppn, paged: bool) {
        self.note_older(lpn, ppn, paged);
        let found = &mut self.blocks[self.geometry.block_of(ppn).index()];
        (found.kept, found.unfinished) = (true, false);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use alloc::vec::Vec;
    use nand::{BlockId, Dimensions, Flags, Geometry, PageKind};

    /// A wear that cannot be would be taken for that of the device, and then torn pages for pages
    /// that nobody wrote.
    #[test]
    fn a_page_that_a_checkpoint_names_says_no_wear_that_cannot_be() {
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
        copies.begin_after(Vec::new(), 10, 12, 7);
        for (block, erase_count, erased_at) in [(0, 3, 7), (1, 1 << 31 | 3, 7), (2, 8, 7), (3, 3, 8)] {
            let (kind, flags) = (PageKind::User, Flags::NONE);
            let spare = Spare { kind, tag: 0, seq: 9, erase_count, erased_at, aux: 0, flags };
            copies.keep_block(BlockId(block), &spare);
        }
        let counts: Vec<_> = (0..4).map(|block| copies.block(BlockId(block)).erase_count).collect();
        assert_eq!((counts, copies.mean_erases()), ([Some(3), None, None, None].to_vec(), 3));
    }
}
