//! Pages that power loss left in doubt, of a mapping table found again from its leaves: what a
//! mount programs before all else.
//!
//! 1. The page programmed last is copied, as far as it counts: its program may have been cut short.
//!    So are those that were the last when power went before, if a mount was cut short since
//!    ([`Survey::stranded`](crate::recovery::survey::Survey::stranded)). If one cannot be read it
//!    does not count, and the mount begins anew without it. One that a leaf names which speaks for
//!    it was complete, and is not copied.
//! 2. A page that does not count may read well at a later mount. One of host data is outranked by a
//!    copy of the page that counts instead; if there is none, by a leaf that speaks for it.
//! 3. A leaf that does not count is outranked by leaves that take its range.
//! 4. Of a page whose spare area cannot be read nobody knows what it was: a block with one is
//!    erased before the mount ends.

use super::{Lpn, Nand, PageFtl, Ppn, Table, Validity};
use crate::contract::FtlError;
use crate::flash::Purpose;
use crate::mapping::btree::{BtreeMap, Piece};
use crate::mapping::{LOST, is_page};
use crate::placement::Stream;
use crate::recovery::leaves;
use crate::recovery::order;
use crate::recovery::survey::FoundPage;
use crate::space::blocks::BlockState;
use crate::space::core::Origin;
use crate::validity::ram_bitmap::HoldsBitmap;
use alloc::vec::Vec;
use core::ops::Range;
use nand::{BlockId, Flags, NandError, PageKind, Spare};

/// What little is known of a page of host data whose spare area cannot be read.
fn host_spare(lpn: Lpn) -> Spare {
    let (kind, tag) = (PageKind::User, lpn.0);
    Spare { kind, tag, seq: 0, erase_count: 0, erased_at: 0, aux: 0, flags: Flags::NONE }
}

impl<N: Nand, T: HoldsBitmap> PageFtl<N, BtreeMap, T> {
    /// Copies what was programmed last, then outranks every page that does not count.
    pub(super) fn settle_doubts(&mut self, table: &mut Table) -> Result<(), FtlError> {
        let keep = table.keep.clone();
        // A copy is no update: a mount that counts the updates made last leaves out blocks of
        // copies.
        self.core.settling = Some(0);
        // Of a page whose block is erased nobody knows any more that it was dead; if the erase
        // fails, it can still be read.
        table.last.retain(|(ppn, _)| !self.validity.bitmap().is_dead(*ppn));
        self.free_dead(|block, _| !keep.contains(&block))?;
        for at in 0..table.last.len() {
            self.copy_last(table, table.last[at])?;
        }
        for (_, spare) in core::mem::take(&mut table.doubts) {
            match (spare.kind, BtreeMap::leaf_range(&spare)) {
                (PageKind::User, _) => self.outrank_page(table, Lpn(spare.tag), spare.seq)?,
                (_, Some(range)) => self.outrank_leaf(table, range, spare.seq)?,
                _ => {}
            }
        }
        self.core.settling = None;
        self.tell()
    }

    /// Outranks a page of host data with this sequence number.
    fn outrank_page(&mut self, table: &mut Table, lpn: Lpn, seq: u64) -> Result<(), FtlError> {
        let at = table.piece_of(lpn);
        debug_assert!(table.pieces[at].lpns.contains(&lpn.0));
        let piece = table.pieces[at].clone();
        let (in_leaf, speaks_for) = self.mapping.find_in_piece(&mut self.core, &piece, lpn)?;
        let known = table.unsaved.binary_search_by_key(&lpn, |entry| entry.0);
        let entry = known.map_or(in_leaf, |known| table.unsaved[known].1);
        if is_page(entry) && !table.broken.contains(&lpn) {
            let spare = self.core.flash.read_spare(Purpose::Recovery, entry).ok().flatten();
            if spare.is_some_and(|spare| spare.seq > seq) {
                return Ok(());
            }
            let spare = spare.filter(|spare| spare.tag == lpn.0).unwrap_or_else(|| host_spare(lpn));
            if self.copy_page(table, (entry, spare))? != LOST {
                return Ok(());
            }
        }
        // A copy of a leaf speaks for no more than the leaf did.
        if speaks_for <= seq { self.renew(table, at, lpn.0).map(drop) } else { Ok(()) }
    }

    /// Copies the page that counts of a logical page; an entry leads to the copy. Answers where it
    /// is, or [`LOST`].
    fn copy_page(&mut self, table: &mut Table, (from, spare): FoundPage) -> Result<Ppn, FtlError> {
        let lpn = Lpn(spare.tag);
        let to = match self.core.move_host_page(Purpose::Recovery, Stream(0), &Origin { ppn: from, spare }) {
            Ok(to) => to,
            // What is in doubt does not count; any other page is worn.
            Err(FtlError::Nand(NandError::Uncorrectable { ppn } | NandError::Erased { ppn }))
                if ppn == from && table.last.iter().all(|(last, _)| *last != from) =>
            {
                LOST
            }
            Err(error) => return Err(error),
        };
        self.tell()?;
        if !self.validity.bitmap().is_dead(from) {
            self.page_died(from)?;
        }
        debug_assert!(table.unsaved.is_sorted_by(|a, b| a.0 < b.0), "entries are looked up by logical page");
        match table.unsaved.binary_search_by_key(&lpn, |entry| entry.0) {
            Ok(at) => table.unsaved[at].1 = to,
            Err(at) => table.unsaved.insert(at, (lpn, to)),
        }
        Ok(to)
    }

    /// Outranks a leaf with this range and sequence number.
    fn outrank_leaf(&mut self, table: &mut Table, range: Range<u32>, seq: u64) -> Result<(), FtlError> {
        let mut next = range.start;
        while next < range.end {
            let at = table.piece_of(Lpn(next));
            let covered = if table.seq_of(&table.pieces[at]) < seq {
                self.renew(table, at, next)?
            } else {
                table.pieces[at].lpns.clone()
            };
            next = covered.end.max(next + 1);
            debug_assert!(covered.end > covered.start, "a piece without a logical page");
        }
        Ok(())
    }

    /// Programs a leaf in place of a piece, or of a part of it in which a logical page is; answers
    /// of which.
    fn renew(&mut self, table: &mut Table, at: usize, lpn: u32) -> Result<Range<u32>, FtlError> {
        let piece = table.pieces[at].clone();
        debug_assert!(piece.lpns.contains(&lpn), "{lpn} is not in {:?}", piece.lpns);
        let seq = self.core.seq;
        let (leaf, lpns) = self.change(|mapping, core| mapping.renew_piece(core, &piece, lpn, &table.unsaved))?;
        debug_assert!(lpns.contains(&lpn) && piece.lpns.start <= lpns.start && lpns.end <= piece.lpns.end);
        self.tell()?;
        if piece.is_whole() {
            self.core.space.page_died(piece.leaf);
            self.validity.bitmap_mut().mark(piece.leaf);
            table.keep.push(self.core.space.geometry().block_of(piece.leaf));
        }
        table.written.push((leaf, seq));
        table.unsaved.retain(|(lpn, _)| !lpns.contains(&lpn.0));
        let rest = |part: Range<u32>| Some(Piece { lpns: part, ..piece.clone() }).filter(|part| !part.lpns.is_empty());
        let parts = [
            rest(piece.lpns.start..lpns.start),
            Some(Piece { lpns: lpns.clone(), leaf, of: lpns.clone() }),
            rest(lpns.end..piece.lpns.end),
        ];
        table.pieces.splice(at..=at, parts.into_iter().flatten());
        debug_assert!(leaves::are_whole(&table.pieces, self.logical_pages), "pieces have a gap");
        Ok(lpns)
    }

    /// Copies a page that may have been the last before power went, if it counts.
    fn copy_last(&mut self, table: &mut Table, (ppn, spare): FoundPage) -> Result<(), FtlError> {
        if self.validity.bitmap().is_dead(ppn) {
            return Ok(());
        }
        if spare.kind == PageKind::User {
            return self.copy_page(table, (ppn, spare)).map(drop);
        }
        let Some(piece) = table.pieces.iter_mut().find(|piece| piece.leaf == ppn) else { return Ok(()) };
        let (to, spare) = self.core.move_metadata_page(Purpose::Recovery, Origin { ppn, spare })?;
        piece.leaf = to;
        table.written.push((to, spare.seq));
        self.core.space.page_died(ppn);
        self.validity.bitmap_mut().mark(ppn);
        Ok(())
    }
}

impl<N: Nand, V: Validity> PageFtl<N, BtreeMap, V> {
    /// Erases blocks of which not every page can be read.
    pub(super) fn erase_spoiled(&mut self, blocks: &[BlockId]) -> Result<(), FtlError> {
        for &block in blocks {
            if self.core.space.state(block) == BlockState::Closed {
                self.make_space()?;
            }
            if self.core.space.state(block) == BlockState::Closed {
                self.collect(block)?;
            }
        }
        Ok(())
    }
}

impl Table {
    /// The piece in which a logical page is.
    fn piece_of(&self, lpn: Lpn) -> usize {
        self.pieces.partition_point(|piece| piece.lpns.end <= lpn.0)
    }

    /// When the leaf of a piece was programmed; 0 if there is none.
    fn seq_of(&self, piece: &Piece) -> u64 {
        self.written.iter().find(|(ppn, _)| *ppn == piece.leaf).map_or(0, |(_, seq)| *seq)
    }

    /// Keeps of these pages those that nothing outranks yet, the youngest first.
    pub(super) fn set_doubts(&mut self, pages: Vec<FoundPage>) {
        self.doubts = pages;
        order::newest_first(&mut self.doubts);
        self.doubts.dedup_by_key(|(ppn, _)| *ppn);
        debug_assert!(self.doubts.is_sorted_by(|a, b| a.1.seq >= b.1.seq));
    }
}
