//! Flash, blocks and maps together: where a page is, and writing one, whatever fails.
//!
//! 1. A logical page is at home in its data block, in a log block, in a page-mapped block if its
//!    logical block is fused, lost, or nowhere ([`Area::locate`]).
//! 2. A page is on flash before a map knows of it. A program that fails spends its block: what
//!    lives in it stays readable, nothing more is written to it, and it is retired when it is
//!    empty.
//! 3. A block is erased when its last page was moved, so that every free block is ready.

use super::blocks::{Blocks, Role, SHARED};
use super::checkpoint::Checkpoints;
use crate::contract::{FtlError, RamReport, Shortage};
use crate::flash::{Flash, Purpose};
use crate::mapping::block::BlockTable;
use crate::mapping::fused::FusedPages;
use crate::mapping::log_pages::LogPages;
use crate::recovery::copies::Doubt;
use crate::recovery::mark::{self, Mark, Writer};
use alloc::vec::Vec;
use nand::{BlockId, Flags, Law, Lpn, Nand, NandError, PageKind, Payload, Ppn, ProgramOrder, Spare};

/// What an FTL needs of an area.
#[derive(Clone, Copy, Debug)]
pub struct AreaOptions {
    /// The FTL's name, for errors.
    pub name: &'static str,
    /// The fewest over-provisioned blocks it can work with.
    pub least_logs: u32,
    /// The order in which it programs the pages of a block.
    pub order: ProgramOrder,
    /// Whether the victim policy picks blocks for it.
    pub picks_victims: bool,
}

/// The most that an area's maps have room for.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Log blocks in use at once.
    pub logs: u32,
    /// Logical blocks fused at once.
    pub fused: u32,
}

/// A device under block mapping with log blocks.
pub struct Area<N> {
    /// The device behind its accounting layer.
    pub flash: Flash<N>,
    /// What every block is.
    pub blocks: Blocks,
    /// The map of data blocks.
    pub table: BlockTable,
    /// The map of log blocks.
    pub log: LogPages,
    /// The map of fused logical blocks.
    pub fused: FusedPages,
    /// Pages that the host sees.
    pub logical_pages: u32,
    /// Whether the disk has to be found again from flash alone.
    pub in_flash: bool,
    pub(super) checkpoints: Checkpoints,
    pub(super) seq: u64,
    /// What pages are moved for: collection, unless something else says so for a while.
    pub moving_for: Purpose,
    /// Good blocks that a disk of this size needs.
    pub(super) needed: u32,
    /// A page could not be programmed for want of a block: nothing is written any more.
    pub(super) starved: bool,
    /// Pages that a mount has yet to copy, because their programs may have been cut short: if one
    /// cannot be read, it never counted, and the mount has to be done again without it.
    pub(super) in_doubt: Vec<Doubt>,
    /// Free blocks that hold what counts if a page in doubt does not, or what proves that one does:
    /// taken after all others.
    pub(super) superseded: Vec<BlockId>,
}

/// What became of a page that was to be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copied {
    Yes,
    /// It could not be read: it is lost, which only RAM knows.
    Lost,
    /// The block could not be programmed.
    Failed,
}

/// A page of the host, as its logical block and its place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The logical block.
    pub lbn: u32,
    /// The page within it.
    pub offset: u32,
}

impl<N: Nand> Area<N> {
    /// A block that can barely be read any more, unless nothing can be written.
    #[inline]
    pub fn tired(&self) -> Option<BlockId> {
        self.flash.tired().filter(|_| !self.starved)
    }

    /// Refuses what lies outside the logical device.
    ///
    /// # Errors
    /// [`FtlError::OutOfRange`].
    #[inline]
    pub fn check_range(&self, lpn: Lpn, count: u32) -> Result<(), FtlError> {
        let logical_pages = self.logical_pages;
        if u64::from(lpn.0) + u64::from(count) <= u64::from(logical_pages) {
            Ok(())
        } else {
            Err(FtlError::OutOfRange { lpn, count, logical_pages })
        }
    }

    /// Refuses what cannot be written: outside the logical device, or on a device that is worn out.
    ///
    /// # Errors
    /// [`FtlError::OutOfRange`], [`FtlError::NoSpace`].
    #[inline]
    pub fn check_write(&self, lpn: Lpn, count: u32) -> Result<(), FtlError> {
        self.check_range(lpn, count)?;
        self.flash.check_host()?;
        self.read_only().map_or(Ok(()), |shortage| Err(shortage.into()))
    }

    /// No block can be freed: the disk can only be read from now on.
    #[cold]
    pub fn no_space(&mut self) -> FtlError {
        self.starved = true;
        self.shortage().into()
    }

    /// Why the disk can only be read, if it cannot be written any more.
    #[inline]
    pub fn read_only(&self) -> Option<Shortage> {
        self.starved.then(|| self.shortage())
    }

    pub(super) fn shortage(&self) -> Shortage {
        let blocks = self.blocks.geometry().blocks();
        let bad_blocks = self.blocks.bad_blocks() + self.blocks.failed_blocks();
        Shortage { bad_blocks, blocks, needed: self.needed }
    }

    /// The logical block of a page and its place in it.
    #[inline]
    pub fn target(&self, lpn: Lpn) -> Target {
        // A logical page divides like a physical one.
        let geometry = self.blocks.geometry();
        Target { lbn: geometry.block_of(Ppn(lpn.0)).0, offset: geometry.offset_of(Ppn(lpn.0)) }
    }

    /// The logical page at a place in a logical block.
    #[inline]
    pub fn lpn(&self, lbn: u32, offset: u32) -> Lpn {
        debug_assert!(offset < self.blocks.geometry().pages_per_block() && lbn < self.table.logical_blocks());
        Lpn(lbn * self.blocks.geometry().pages_per_block() + offset)
    }

    /// Where a logical page's newest copy is; [`Ppn::NONE`] if it has none.
    #[inline]
    pub fn locate(&self, lpn: Lpn) -> Ppn {
        let Target { lbn, offset } = self.target(lpn);
        debug_assert!(!self.table.is_home(lpn) || self.table.data(lbn).is_some(), "{lpn} is at home in no block");
        debug_assert!(!self.table.is_home(lpn) || !self.fused.is_fused(lbn), "{lpn} is at home and mapped by page");
        if self.table.is_home(lpn) {
            self.blocks.geometry().page_at(self.table.data(lbn), offset)
        } else if self.fused.is_fused(lbn) {
            self.fused.get(lbn, offset)
        } else {
            self.log.find(lpn).unwrap_or(Ppn::NONE)
        }
    }

    /// Reads a logical page from where it was located.
    ///
    /// # Errors
    /// [`FtlError::Lost`], and those of the device.
    #[inline]
    pub fn read(&mut self, purpose: Purpose, lpn: Lpn, ppn: Ppn, out: &mut N::Payload) -> Result<(), FtlError> {
        if ppn.is_some() {
            return match self.flash.read(purpose, ppn, out) {
                Ok(spare) if spare.tag == lpn.0 => Ok(()),
                // The page had faded, and its block was erased since after all.
                Ok(_) => Err(FtlError::Lost { lpn }),
                // Trimmed, and found again in a block that was being erased; or a copy that says
                // that the page is lost.
                Err(NandError::Erased { .. } | NandError::Illegal { law: Law::PageContent, .. }) => {
                    Err(FtlError::Lost { lpn })
                }
                Err(error) => Err(error.into()),
            };
        }
        debug_assert!(!self.in_flash || !self.table.is_lost(lpn), "flash says what is lost, not RAM");
        out.clear();
        if self.table.is_lost(lpn) { Err(FtlError::Lost { lpn }) } else { Ok(()) }
    }

    /// The newest copy of a page dies, if there is one.
    #[inline]
    pub fn forget(&mut self, lpn: Lpn) {
        let Target { lbn, offset } = self.target(lpn);
        self.table.found(lpn);
        if self.table.left_home(lpn) {
            self.blocks.died(self.table.data(lbn));
            return;
        }
        let old =
            if self.fused.is_fused(lbn) { self.fused.set(lbn, offset, Ppn::NONE) } else { self.removed_from_log(lpn) };
        if old.is_some() {
            self.blocks.died(self.blocks.geometry().block_of(old));
        }
        debug_assert!(!self.locate(lpn).is_some() && !self.table.is_lost(lpn));
    }

    #[inline]
    fn removed_from_log(&mut self, lpn: Lpn) -> Ppn {
        self.log.remove(lpn).unwrap_or(Ppn::NONE)
    }

    /// The spare area of the next page programmed in a block; `root` is `None` for what the host
    /// writes.
    #[inline]
    pub(super) fn spare(&mut self, block: BlockId, lpn: Lpn, writer: Writer, last: bool, root: Option<u32>) -> Spare {
        let (erase_count, erased_at) = self.blocks.wear(block);
        let seq = self.seq;
        self.seq += 1;
        let root = root.unwrap_or(mark::root_of_write(seq));
        let aux = Mark { writer, last, root }.encode();
        Spare { kind: PageKind::User, tag: lpn.0, seq, erase_count, erased_at, aux, flags: Flags::NONE }
    }

    /// On whose behalf pages are written to a block outside of merges.
    #[inline]
    pub(super) fn writer(&self, block: BlockId) -> Writer {
        match self.blocks.role(block) {
            Role::Log => Writer::Log,
            Role::Paged => Writer::Paged,
            Role::Free | Role::Data | Role::Bad | Role::Checkpoint => Writer::Home,
        }
    }

    /// Copies a page to page `offset` of a block.
    #[inline]
    pub(super) fn copy(
        &mut self,
        from: Ppn,
        block: BlockId,
        offset: u32,
        lpn: Lpn,
        (writer, last): (Writer, bool),
    ) -> Result<Copied, FtlError> {
        let root = self.root_of(from, lpn)?;
        let spare = self.spare(block, lpn, writer, last, Some(root.unwrap_or(0)));
        let to = self.blocks.geometry().page_at(block, offset);
        debug_assert!(from != to && self.blocks.takes(block, offset), "{to} cannot take a copy of {from}");
        if root.is_none() {
            return self.program_lost(lpn, to, &spare);
        }
        match self.flash.copy(self.moving_for, from, to, &spare) {
            Ok(()) => Ok(Copied::Yes),
            Err(error @ (NandError::Uncorrectable { ppn } | NandError::Erased { ppn })) if ppn == from => {
                if self.is_in_doubt(from) {
                    return Err(error.into());
                }
                self.program_lost(lpn, to, &spare)
            }
            Err(NandError::ProgramFailed { .. }) => {
                self.program_failed(block);
                Ok(Copied::Failed)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Of which write a page is that is about to be copied; `None` if it does not say that it holds
    /// this logical page: what reads by chance then may be of another.
    #[inline]
    fn root_of(&mut self, from: Ppn, lpn: Lpn) -> Result<Option<u32>, FtlError> {
        if !self.in_flash {
            return Ok(Some(0));
        }
        // Comes with the page that is read now.
        match self.flash.spare_of_read(from) {
            Ok(Some(spare)) if spare.tag == lpn.0 => Ok(Some(Mark::decode(spare.aux).root)),
            Ok(Some(_)) if self.is_in_doubt(from) => Err(NandError::Uncorrectable { ppn: from }.into()),
            Ok(Some(_)) => Ok(None),
            Ok(None) => Ok(Some(0)),
            Err(NandError::Uncorrectable { .. }) if !self.is_in_doubt(from) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Programs a page of the host; `false` if the block failed.
    #[inline]
    pub(super) fn program(
        &mut self,
        block: BlockId,
        offset: u32,
        lpn: Lpn,
        data: &N::Payload,
        (writer, last): (Writer, bool),
    ) -> Result<bool, FtlError> {
        let spare = self.spare(block, lpn, writer, last, None);
        let ppn = self.blocks.geometry().page_at(block, offset);
        debug_assert!(self.blocks.takes(block, offset), "{ppn} was programmed or passed");
        match self.flash.program(Purpose::Host, ppn, data, &spare) {
            Ok(()) => Ok(true),
            Err(NandError::ProgramFailed { .. }) => {
                self.program_failed(block);
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A program failed. No page gets the next number: it would tell a mount that this page was
    /// complete.
    #[cold]
    pub(super) fn program_failed(&mut self, block: BlockId) {
        self.blocks.failed(block);
        self.seq += 1;
        debug_assert!(self.blocks.has_failed(block) && !self.blocks.has_room(block));
    }

    /// Writes a page to its place in its data block; `false` if that place was passed or is taken,
    /// or the block failed.
    ///
    /// # Errors
    /// [`FtlError::NoSpace`], and those of the device.
    #[inline]
    pub fn write_home(&mut self, lpn: Lpn, data: &N::Payload) -> Result<bool, FtlError> {
        let Target { lbn, offset } = self.target(lpn);
        let mut block = self.table.data(lbn);
        if block.is_some() {
            if !self.blocks.takes(block, offset) {
                return Ok(false);
            }
        } else {
            block = self.take(Role::Data, lbn)?;
            self.table.replace(lbn, block);
        }
        if self.program(block, offset, lpn, data, (Writer::Home, false))? {
            self.forget(lpn);
            self.blocks.programmed(block, offset, true);
            self.blocks.born(block);
            self.table.came_home(lpn);
            debug_assert!(self.locate(lpn) == self.blocks.geometry().page_at(block, offset));
            return Ok(true);
        }
        self.drop_empty_data(lbn)?;
        Ok(false)
    }

    /// Frees the data block of a logical block if no page in it lives.
    ///
    /// # Errors
    /// Those of the device.
    pub fn drop_empty_data(&mut self, lbn: u32) -> Result<(), FtlError> {
        let block = self.table.data(lbn);
        if block.is_some() && self.blocks.valid(block) == 0 {
            self.table.replace(lbn, BlockId::NONE);
            self.release(block)?;
        }
        Ok(())
    }

    /// Writes a page to page `offset` of a log block; `false` if the block failed.
    ///
    /// # Errors
    /// Those of the device.
    #[inline]
    pub fn write_log(&mut self, block: BlockId, offset: u32, lpn: Lpn, data: &N::Payload) -> Result<bool, FtlError> {
        debug_assert!(self.blocks.role(block) == Role::Log, "{block} is no log block");
        if !self.program(block, offset, lpn, data, (Writer::Log, false))? {
            return Ok(false);
        }
        self.forget(lpn);
        self.settle_in_log(block, offset, lpn);
        Ok(true)
    }

    /// A page is in a log block now, and nowhere else.
    #[inline]
    fn settle_in_log(&mut self, block: BlockId, offset: u32, lpn: Lpn) {
        let target = self.target(lpn);
        self.log.insert(self.blocks.slot(block), offset, lpn);
        self.blocks.born(block);
        let aligned = target == Target { lbn: self.blocks.owner(block), offset };
        self.blocks.programmed(block, offset, aligned);
        debug_assert!(self.locate(lpn) == self.blocks.geometry().page_at(block, offset));
    }

    /// Writes a page of a fused logical block to the next page of a page-mapped block; `false` if
    /// the block failed.
    ///
    /// # Errors
    /// Those of the device.
    #[inline]
    pub fn write_paged(&mut self, block: BlockId, lpn: Lpn, data: &N::Payload) -> Result<bool, FtlError> {
        let offset = self.blocks.next(block);
        debug_assert!(self.blocks.role(block) == Role::Paged && self.blocks.has_room(block), "{block} takes no page");
        if !self.program(block, offset, lpn, data, (Writer::Paged, false))? {
            return Ok(false);
        }
        self.forget(lpn);
        self.settle_paged(block, offset, lpn);
        Ok(true)
    }

    #[inline]
    fn settle_paged(&mut self, block: BlockId, offset: u32, lpn: Lpn) {
        let at = self.target(lpn);
        debug_assert!(self.fused.is_fused(at.lbn), "logical block {} is not mapped by page", at.lbn);
        self.fused.set(at.lbn, at.offset, self.blocks.geometry().page_at(block, offset));
        self.blocks.born(block);
        self.blocks.programmed(block, offset, false);
    }

    /// Moves the newest copy of a page to the next page of a log block or page-mapped block;
    /// `false` if that block failed. A page that cannot be read is lost; that counts as moved.
    ///
    /// # Errors
    /// Those of the device.
    #[inline]
    pub fn move_page(&mut self, from: Ppn, block: BlockId, lpn: Lpn) -> Result<bool, FtlError> {
        let offset = self.blocks.next(block);
        debug_assert!(self.locate(lpn) == from && self.blocks.geometry().block_of(from) != block);
        debug_assert!(self.blocks.has_room(block), "{block} takes no page");
        let last = self.is_last_in_its_block(from);
        let copied = self.copy(from, block, offset, lpn, (self.writer(block), last))?;
        Ok(self.settle_moved(copied, block, offset, lpn))
    }

    /// Whether nothing else lives in the block of a live page.
    #[inline]
    pub(super) fn is_last_in_its_block(&self, page: Ppn) -> bool {
        debug_assert!(self.blocks.valid(self.blocks.geometry().block_of(page)) > 0, "{page} does not live");
        self.blocks.valid(self.blocks.geometry().block_of(page)) == 1
    }

    /// A page was moved to a log block or page-mapped block; `false` if that block failed.
    #[inline]
    pub(super) fn settle_moved(&mut self, copied: Copied, block: BlockId, offset: u32, lpn: Lpn) -> bool {
        match copied {
            Copied::Yes => {
                self.forget(lpn);
                if self.blocks.role(block) == Role::Log {
                    self.settle_in_log(block, offset, lpn);
                } else {
                    self.settle_paged(block, offset, lpn);
                }
                true
            }
            Copied::Lost => true,
            Copied::Failed => false,
        }
    }

    /// The logical page whose newest copy is this page of a page-mapped block; `None` if its spare
    /// area cannot be read, or says otherwise: a mount did not read it if a checkpoint named the
    /// page.
    ///
    /// # Errors
    /// Those of the device.
    pub fn owner_of_paged(&mut self, page: Ppn) -> Result<Option<Lpn>, FtlError> {
        match self.flash.spare_of_read(page) {
            Ok(spare) => {
                let tag = spare.map(|spare| Lpn(spare.tag));
                let owner = tag.filter(|&lpn| lpn.0 < self.logical_pages && self.locate(lpn) == page);
                // It was complete when it was found, or torn: what it was copied from is still
                // there.
                if owner.is_none() && self.is_in_doubt(page) {
                    return Err(NandError::Uncorrectable { ppn: page }.into());
                }
                Ok(owner)
            }
            Err(NandError::Uncorrectable { .. }) if !self.is_in_doubt(page) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Forgets pages, and frees data blocks in which nothing is left.
    ///
    /// # Errors
    /// [`FtlError::OutOfRange`] and [`FtlError::NoSpace`] before anything was forgotten; those of
    /// the device.
    pub fn trim(&mut self, lpn: Lpn, count: u32) -> Result<(), FtlError> {
        self.check_write(lpn, count)?;
        for lpn in (lpn.0..lpn.0 + count).map(Lpn) {
            let was_home = self.table.is_home(lpn);
            self.checkpoints.unsaved_trims |= self.in_flash && (was_home || !self.is_blank(lpn));
            self.forget(lpn);
            if was_home {
                self.drop_empty_data(self.target(lpn).lbn)?;
            }
        }
        Ok(())
    }

    /// Whether a page reads as never written.
    fn is_blank(&self, lpn: Lpn) -> bool {
        !self.locate(lpn).is_some() && !self.table.is_lost(lpn)
    }

    /// Maps a logical block by page from now on: its data block, which is answered, and its log
    /// block are blocks of the page-mapped area. There must be room for it in the map.
    pub fn fuse(&mut self, lbn: u32, log: BlockId) -> BlockId {
        let data = self.table.replace(lbn, BlockId::NONE);
        debug_assert!(!log.is_some() || self.blocks.owner(log) == lbn, "{log} is another's log block");
        let fused = self.fused.fuse(lbn);
        debug_assert!(fused, "no room to fuse logical block {lbn}");
        for offset in 0..self.blocks.geometry().pages_per_block() {
            let lpn = self.lpn(lbn, offset);
            let at_home = self.table.left_home(lpn);
            let ppn = if at_home { self.blocks.geometry().page_at(data, offset) } else { self.removed_from_log(lpn) };
            if ppn.is_some() {
                self.fused.set(lbn, offset, ppn);
            }
        }
        self.close_slot(log);
        for block in [data, log] {
            if block.is_some() {
                self.blocks.become_role(block, Role::Paged, SHARED);
            }
        }
        data
    }

    /// Takes a free block as a log block of a logical block, or as a [`SHARED`] one.
    ///
    /// # Errors
    /// [`FtlError::NoSpace`] if no block is free, or as many log blocks are in use as there were
    /// ever to be.
    pub fn open_log(&mut self, owner: u32) -> Result<BlockId, FtlError> {
        let block = self.take(Role::Log, owner)?;
        match self.log.open(block) {
            Some(slot) => {
                self.blocks.set_slot(block, slot);
                debug_assert!(self.blocks.valid(block) == 0 && self.log.block(slot) == block);
                Ok(block)
            }
            None => {
                self.blocks.put_back(block);
                Err(self.no_space())
            }
        }
    }

    /// Takes a free block for a page-mapped area.
    ///
    /// # Errors
    /// As [`Area::open_log`].
    pub fn open_paged(&mut self) -> Result<BlockId, FtlError> {
        self.take(Role::Paged, SHARED)
    }

    /// The RAM that its structures hold.
    pub fn ram(&self, report: &mut RamReport) {
        self.table.ram(report);
        self.log.ram(report);
        self.fused.ram(report);
        self.blocks.ram(report);
        self.checkpoints.ram(report);
    }
}
