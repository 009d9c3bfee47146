//! Merges: gathering the newest copies of a logical block into what becomes its data block.
//!
//! 1. If a log block holds pages of the logical block at their own offsets from 0 on, and none of
//!    them is newer elsewhere, it becomes the data block: a *switch merge* if nothing else lives, a
//!    *partial merge* if the pages behind have to be copied to it first. On a device that programs
//!    in any order, and for an FTL that does, pages before and between are copied to it too.
//! 2. Else every page is copied to a free block: a *full merge*. The same gathers the pages of a
//!    fused logical block (Janus-FTL's *Defusion*).
//! 3. Pages are copied in ascending order, with gaps for what does not live.
//! 4. Maps change when all copies are made: a block that fails on the way is retired with nothing
//!    lost, and the merge begins again with another. Then the old data block is erased; log blocks
//!    are left to whoever opened them.
//!
//! The last page that a full merge copies says so in its spare area. If power is lost before that,
//! every page is still where it was, and the half-filled block is taken back; after it, nothing in
//! the old blocks is newest.

use super::area::{Area, Copied, Target};
use super::blocks::Role;
use crate::contract::FtlError;
use crate::recovery::mark::Writer;
use core::ops::Range;
use nand::{BlockId, Lpn, Nand, Ppn};

impl<N: Nand> Area<N> {
    /// Gathers a logical block into `candidate`, a log block, if that can become its data block,
    /// else into a free block. Answers whether the candidate became the data block. Nothing is done
    /// to other log blocks but that pages in them die.
    ///
    /// # Errors
    /// [`FtlError::NoSpace`] if no block is free; those of the device.
    pub fn merge(&mut self, lbn: u32, candidate: Option<BlockId>) -> Result<bool, FtlError> {
        if let Some(block) = candidate.filter(|&block| self.can_become_data(block, lbn))
            && self.gather(lbn, block, 0..self.pages())?
        {
            self.become_data(lbn, block)?;
            return Ok(true);
        }
        loop {
            let dest = self.take(Role::Data, lbn)?;
            debug_assert!(self.blocks.owner(dest) == lbn && self.blocks.next(dest) == 0, "{dest} is not empty");
            if self.gather(lbn, dest, 0..self.pages())? {
                self.become_data(lbn, dest)?;
                return Ok(false);
            }
            self.release(dest)?;
        }
    }

    /// Writes a page by writing its whole logical block again to a free block.
    ///
    /// # Errors
    /// As [`Area::merge`].
    pub fn rewrite(&mut self, lpn: Lpn, data: &N::Payload) -> Result<(), FtlError> {
        let Target { lbn, offset } = self.target(lpn);
        loop {
            let dest = self.take(Role::Data, lbn)?;
            let last = self.last_live(lbn).is_none_or(|last| last <= offset);
            debug_assert!(self.blocks.owner(dest) == lbn && self.blocks.next(dest) == 0, "{dest} is not empty");
            if self.gather(lbn, dest, 0..offset)?
                && self.write_between(dest, offset, lpn, data, last)?
                && self.gather(lbn, dest, offset + 1..self.pages())?
            {
                self.forget(lpn);
                self.table.came_home(lpn);
                return self.become_data(lbn, dest);
            }
            self.release(dest)?;
        }
    }

    fn write_between(
        &mut self,
        dest: BlockId,
        offset: u32,
        lpn: Lpn,
        data: &N::Payload,
        last: bool,
    ) -> Result<bool, FtlError> {
        let written = self.program(dest, offset, lpn, data, (Writer::Merge, last))?;
        if written {
            self.blocks.programmed(dest, offset, true);
        }
        Ok(written)
    }

    #[inline]
    fn pages(&self) -> u32 {
        self.blocks.geometry().pages_per_block()
    }

    /// Whether a log block holds newest copies of a logical block where a data block would, and can
    /// still take the others there.
    fn can_become_data(&self, block: BlockId, lbn: u32) -> bool {
        self.blocks.owner(block) == lbn
            && self.blocks.is_aligned(block)
            && self.blocks.valid(block) > 0
            && (0..self.pages()).all(|offset| {
                let ppn = self.locate(self.lpn(lbn, offset));
                !ppn.is_some()
                    || ppn == self.blocks.geometry().page_at(block, offset)
                    || self.blocks.takes(block, offset)
            })
    }

    /// The last page of a logical block that has a copy.
    fn last_live(&self, lbn: u32) -> Option<u32> {
        (0..self.pages()).rev().find(|&offset| self.locate(self.lpn(lbn, offset)).is_some())
    }

    /// Moves the live pages of a logical block before one of its pages to their offsets in a log
    /// block of it. If that block fails, the rest stays where it is.
    ///
    /// # Errors
    /// Those of the device.
    pub fn fill(&mut self, log: BlockId, before: Target) -> Result<(), FtlError> {
        debug_assert!(self.blocks.role(log) == Role::Log && self.blocks.owner(log) == before.lbn);
        for offset in 0..before.offset {
            let lpn = self.lpn(before.lbn, offset);
            let from = self.locate(lpn);
            if !from.is_some() || self.blocks.geometry().block_of(from) == log {
                continue;
            }
            debug_assert!(self.blocks.takes(log, offset), "page {offset} of {log} was passed");
            let copied = self.copy(from, log, offset, lpn, (Writer::Log, false))?;
            if !self.settle_moved(copied, log, offset, lpn) {
                break;
            }
        }
        Ok(())
    }

    /// Copies the live pages of a range of a logical block to their offsets in `dest`; `false` if
    /// `dest` failed, or the page is lost that would have said that the merge ended.
    fn gather(&mut self, lbn: u32, dest: BlockId, range: Range<u32>) -> Result<bool, FtlError> {
        let data = self.table.data(lbn);
        debug_assert!(dest != data, "logical block {lbn} is gathered to where it is");
        let fresh = self.blocks.role(dest) == Role::Data;
        let writer = if fresh { Writer::Merge } else { Writer::Log };
        let last = self.last_live(lbn).unwrap_or(0);
        let mut whole = true;
        for offset in range {
            let lpn = self.lpn(lbn, offset);
            let geometry = self.blocks.geometry();
            let to = geometry.page_at(dest, offset);
            let from = if self.table.is_home(lpn) { geometry.page_at(data, offset) } else { self.locate(lpn) };
            if !from.is_some() || from == to {
                continue;
            }
            let ends = fresh && offset == last;
            match self.copy(from, dest, offset, lpn, (writer, ends))? {
                Copied::Yes => self.blocks.programmed(dest, offset, true),
                Copied::Lost => whole = !ends,
                Copied::Failed => return Ok(false),
            }
        }
        Ok(whole)
    }

    /// Makes `dest`, to which every live page was copied, the data block of a logical block.
    fn become_data(&mut self, lbn: u32, dest: BlockId) -> Result<(), FtlError> {
        let fused = self.fused.is_fused(lbn);
        let mut valid = 0;
        for offset in 0..self.pages() {
            let lpn = self.lpn(lbn, offset);
            if !self.table.is_home(lpn) {
                let from = if fused {
                    self.fused.set(lbn, offset, Ppn::NONE)
                } else {
                    self.log.remove(lpn).unwrap_or(Ppn::NONE)
                };
                if !from.is_some() {
                    continue;
                }
                self.blocks.died(self.blocks.geometry().block_of(from));
                self.table.came_home(lpn);
            }
            valid += 1;
        }
        if fused {
            self.fused.defuse(lbn);
        }
        if self.blocks.role(dest) == Role::Log {
            self.close_slot(dest);
            self.blocks.become_role(dest, Role::Data, lbn);
        }
        self.blocks.set_valid(dest, valid);
        let old = self.table.replace(lbn, dest);
        debug_assert!(old != dest && valid <= self.pages() && !self.fused.is_fused(lbn));
        if old.is_some() {
            self.blocks.set_valid(old, 0);
            self.release(old)?;
        }
        self.drop_empty_data(lbn)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::check::tests::{LOGICAL_PAGES, empty, stamp};
    use super::*;

    /// Whether a log block becomes the data block of the first logical block. It holds two pages,
    /// the first of them in its place; the one whose place the second takes was trimmed.
    fn becomes_data(second: Lpn) -> bool {
        let mut area = empty(false);
        for lpn in (0..LOGICAL_PAGES).map(Lpn) {
            assert!(area.write_home(lpn, &stamp(lpn)).unwrap());
        }
        let log = area.open_log(0).unwrap();
        area.forget(Lpn(1));
        for (offset, lpn) in [(0, Lpn(0)), (1, second)] {
            assert!(area.write_log(log, offset, lpn, &stamp(lpn)).unwrap());
        }
        let becomes = area.merge(0, Some(log)).unwrap();
        assert_eq!(becomes, area.table.data(0) == log);
        if !becomes {
            area.release(log).unwrap();
        }
        area.check().unwrap();
        becomes
    }

    #[test]
    fn a_log_block_with_a_page_out_of_its_place_becomes_no_data_block() {
        assert!(becomes_data(Lpn(1)));
        assert!(!becomes_data(Lpn(3)));
    }
}
