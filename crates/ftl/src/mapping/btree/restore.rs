//! Bringing the tree back after power loss: from what a battery saved, or from its leaves alone.

use super::node::Item;
use super::tree::Role;
use super::{BtreeMap, Purpose};
use crate::contract::FtlError;
use crate::saved::Source;
use crate::space::core::Core;
use core::ops::Range;
use nand::{Lpn, Nand, Ppn, Spare};

/// A part of a leaf that counts, or a range of logical pages of which no leaf is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The logical pages.
    pub lpns: Range<u32>,
    /// The leaf, or [`Ppn::NONE`].
    pub leaf: Ppn,
    /// The logical pages of the whole leaf.
    pub of: Range<u32>,
}

impl Piece {
    /// Whether it is a whole leaf.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.lpns == self.of && self.leaf.is_some()
    }
}

impl BtreeMap {
    /// The logical pages of a leaf with this spare area; `None` if it is that of an inner node.
    #[must_use]
    pub const fn leaf_range(spare: &Spare) -> Option<Range<u32>> {
        match Role::decode(spare.aux) {
            Role::Leaf { end } => Some(spare.tag..end),
            Role::Inner { .. } => None,
        }
    }

    /// Takes over what [`Mapping::save`](crate::mapping::Mapping::save) put; how many entries were
    /// dirty. `None` if it is not of this disk on a device of so many pages, or of a larger cache.
    pub fn load(&mut self, source: &mut Source<'_>, pages: u32) -> Option<u64> {
        self.tree.load(source, pages)?;
        let entries = self.cmt.saved(source, self.logical_pages, pages)?;
        self.cmt.restore_saved(&entries);
        Some(entries.len() as u64)
    }

    /// Reads a part of a leaf: `each` is told where each of its logical pages is, and the sequence
    /// number such that the leaf speaks for every page of host data programmed before.
    ///
    /// # Errors
    /// [`FtlError::Damaged`] if the page is no such leaf, those of the device, and those of `each`.
    pub fn read_piece<N: Nand>(
        &mut self,
        core: &mut Core<N>,
        piece: &Piece,
        mut each: impl FnMut(&mut Core<N>, Lpn, Ppn, u64) -> Result<(), FtlError>,
    ) -> Result<(), FtlError> {
        self.load_piece(core, piece)?;
        piece.lpns.clone().try_for_each(|lpn| each(core, Lpn(lpn), self.leaf.find(lpn), self.leaf.speaks_for))
    }

    fn load_piece<N: Nand>(&mut self, core: &mut Core<N>, piece: &Piece) -> Result<(), FtlError> {
        if !piece.leaf.is_some() {
            self.leaf.clear(piece.lpns.start);
            return Ok(());
        }
        let page_bytes = self.tree.page_bytes;
        core.flash.read_meta(Purpose::Recovery, piece.leaf, self.leaf.page(page_bytes))?;
        let limit = core.space.geometry().pages();
        let damaged = |reason| FtlError::Damaged { structure: "leaf of the mapping tree", ppn: piece.leaf, reason };
        let taken = self.leaf.take(page_bytes, 0, piece.of.clone());
        taken.and_then(|()| self.leaf.check(limit)).map_err(damaged)?;
        debug_assert!(piece.of.start <= piece.lpns.start && piece.lpns.end <= piece.of.end, "{piece:?}");
        self.leaf.clip(piece.lpns.start, piece.lpns.end);
        Ok(())
    }

    /// Programs a part of a leaf as a leaf of its own; answers where.
    ///
    /// # Errors
    /// As [`BtreeMap::read_piece`].
    pub fn rewrite_piece<N: Nand>(&mut self, core: &mut Core<N>, piece: &Piece) -> Result<Ppn, FtlError> {
        self.load_piece(core, piece)?;
        self.tree.program(core, &mut self.leaf, piece.lpns.end, Purpose::Recovery)
    }

    /// Where a part of a leaf says that a logical page is, and the sequence number such that the
    /// leaf speaks for every page of host data programmed before.
    ///
    /// # Errors
    /// As [`BtreeMap::read_piece`].
    pub fn find_in_piece<N: Nand>(
        &mut self,
        core: &mut Core<N>,
        piece: &Piece,
        lpn: Lpn,
    ) -> Result<(Ppn, u64), FtlError> {
        self.load_piece(core, piece)?;
        Ok((self.leaf.find(lpn.0), self.leaf.speaks_for))
    }

    /// Programs a leaf that takes the place of a part of one and speaks for every page of host data
    /// programmed before it: with entries that are newer than flash, by logical page. If it has no
    /// room for all, it covers less, but always `lpn`. Answers where it is and what it covers.
    ///
    /// # Errors
    /// As [`BtreeMap::read_piece`].
    pub fn renew_piece<N: Nand>(
        &mut self,
        core: &mut Core<N>,
        piece: &Piece,
        lpn: u32,
        entries: &[(Lpn, Ppn)],
    ) -> Result<(Ppn, Range<u32>), FtlError> {
        self.load_piece(core, piece)?;
        let (mut range, room) = (piece.lpns.clone(), self.tree.capacity);
        loop {
            let mut within = entries.iter().filter(|(lpn, _)| range.contains(&lpn.0));
            if within.all(|(lpn, ppn)| self.leaf.set_within(lpn.0, *ppn, range.end, room)) {
                break;
            }
            self.halve(&mut range, lpn);
        }
        debug_assert!(range.contains(&lpn) && self.leaf.first() == range.start);
        self.leaf.speaks_for = core.seq;
        let leaf = self.tree.program(core, &mut self.leaf, range.end, Purpose::Recovery)?;
        Ok((leaf, range))
    }

    /// Leaves of the leaf at hand, and of its range, the half in which a logical page is.
    fn halve(&mut self, range: &mut Range<u32>, lpn: u32) {
        let middle = range.start + (range.end - range.start) / 2;
        debug_assert!(range.contains(&lpn) && middle > range.start, "one logical page does not fit a leaf");
        *range = if lpn < middle { range.start..middle } else { middle..range.end };
        self.leaf.clip(range.start, range.end);
    }

    /// Programs the leaf of a logical page anew, so that it speaks for every page of host data
    /// programmed before. If dirty entries do not fit, it is split first: a later leaf of a larger
    /// range could not speak for as many.
    ///
    /// # Errors
    /// Those of the device.
    pub(super) fn program_witness<N: Nand>(&mut self, core: &mut Core<N>, lpn: u32) -> Result<(), FtlError> {
        let range = self.witness_range(core, lpn)?;
        self.split_at(core, lpn, range.start)?;
        self.split_at(core, lpn, range.end)?;
        let (place, seq) = (self.leaf_place(core, lpn)?, core.seq);
        self.tree.read(core, place, Purpose::Checkpoint, &mut self.leaf)?;
        debug_assert!((self.leaf.first()..place.end) == range, "the leaf of {lpn} is not of {range:?}");
        let seen = self.absorb(range.end, seq, 0..0);
        debug_assert!(self.leaf.speaks_for == seq, "dirty entries of {range:?} do not fit");
        let leaf = self.tree.program(core, &mut self.leaf, range.end, Purpose::Checkpoint)?;
        let old = self.tree.replace(place, leaf);
        self.mark_agreed_clean(range.end, seen);
        if old.is_some() {
            core.translation_page_died(old);
        }
        Ok(())
    }

    /// The logical pages of a leaf that takes every dirty entry of its range: those of the leaf of
    /// `lpn`, or the half with `lpn` of a half of them.
    fn witness_range<N: Nand>(&mut self, core: &mut Core<N>, lpn: u32) -> Result<Range<u32>, FtlError> {
        let place = self.leaf_place(core, lpn)?;
        self.tree.read(core, place, Purpose::Checkpoint, &mut self.leaf)?;
        let (mut range, seq) = (self.leaf.first()..place.end, core.seq);
        self.leaf.speaks_for = 0;
        self.absorb(range.end, seq, 0..0);
        while self.leaf.speaks_for != seq {
            self.halve(&mut range, lpn);
            self.absorb(range.end, seq, 0..0);
        }
        debug_assert!(range.contains(&lpn) && self.leaf.first() == range.start);
        Ok(range)
    }

    /// Programs the leaf of `lpn` as two, of which one ends where the other begins; nothing if a
    /// leaf begins or ends there.
    fn split_at<N: Nand>(&mut self, core: &mut Core<N>, lpn: u32, at: u32) -> Result<(), FtlError> {
        let place = self.leaf_place(core, lpn)?;
        let first = self.tree.item(place).key;
        if at == first || at == place.end {
            return Ok(());
        }
        debug_assert!((first..place.end).contains(&at), "{at} is not in the leaf of {lpn}");
        self.tree.make_room(core, lpn, Purpose::Checkpoint)?;
        let place = self.leaf_place(core, lpn)?;
        self.tree.read(core, place, Purpose::Checkpoint, &mut self.leaf)?;
        self.sibling.copy(&self.leaf);
        self.sibling.clip(at, place.end);
        self.leaf.clip(first, at);
        self.program_halves(core, place, at, Purpose::Checkpoint)
    }

    /// Programs the leaf of a logical page anew as it is on flash, so that it outranks every leaf
    /// of its range.
    ///
    /// # Errors
    /// Those of the device.
    pub(super) fn program_again<N: Nand>(&mut self, core: &mut Core<N>, lpn: u32) -> Result<(), FtlError> {
        let place = self.leaf_place(core, lpn)?;
        self.tree.read(core, place, Purpose::Checkpoint, &mut self.leaf)?;
        let leaf = self.tree.program(core, &mut self.leaf, place.end, Purpose::Checkpoint)?;
        let old = self.tree.replace(place, leaf);
        if old.is_some() {
            core.translation_page_died(old);
        }
        Ok(())
    }

    /// Leads to a leaf, behind those that were told of before.
    ///
    /// # Errors
    /// Those of the device, if an inner node has to be written.
    pub fn append_leaf<N: Nand>(&mut self, core: &mut Core<N>, key: u32, leaf: Ppn) -> Result<(), FtlError> {
        self.tree.append(core, Item { key, value: leaf })
    }

    /// Programs the leaf of the first of these entries, which are newer than flash and in the order
    /// of their logical pages. The leaf takes all that are in its range, so that it speaks for
    /// every page of host data programmed before. Answers how many. If it has no room for them, it
    /// is halved instead, and the answer is 0.
    ///
    /// # Errors
    /// Those of the device.
    pub fn restore_leaf<N: Nand>(&mut self, core: &mut Core<N>, entries: &[(Lpn, Ppn)]) -> Result<usize, FtlError> {
        let Some(&(lpn, _)) = entries.first() else { return Ok(0) };
        let place = self.leaf_place(core, lpn.0)?;
        self.tree.read(core, place, Purpose::Recovery, &mut self.leaf)?;
        let within = &entries[..entries.partition_point(|entry| entry.0.0 < place.end)];
        let room = self.tree.capacity;
        if !within.iter().all(|(lpn, ppn)| self.leaf.set_within(lpn.0, *ppn, place.end, room)) {
            self.tree.read(core, place, Purpose::Recovery, &mut self.leaf)?;
            self.tree.make_room(core, lpn.0, Purpose::Recovery)?;
            let place = self.leaf_place(core, lpn.0)?;
            let key = self.leaf.halve(&mut self.sibling, place.end);
            self.program_halves(core, place, key, Purpose::Recovery)?;
            return Ok(0);
        }
        self.leaf.speaks_for = core.seq;
        let new = self.tree.program(core, &mut self.leaf, place.end, Purpose::Recovery)?;
        let old = self.tree.replace(place, new);
        if old.is_some() {
            core.translation_page_died(old);
        }
        Ok(within.len())
    }

    /// How many of the pages of host data programmed last may have entries only in RAM; `None` if
    /// there is no bound.
    #[must_use]
    pub fn recent_updates(&self) -> Option<u32> {
        (!self.recent.is_empty()).then(|| self.recent.len())
    }
}
