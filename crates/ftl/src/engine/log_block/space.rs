//! Free blocks: taking and releasing them, and what a mount holds back.

use super::area::Area;
use super::blocks::Role;
use crate::contract::FtlError;
use crate::flash::Purpose;
use crate::recovery::copies::{Doubt, read_often};
use alloc::vec::Vec;
use nand::{BlockId, Nand, Ppn};

impl<N: Nand> Area<N> {
    /// Takes a free block for a role, and erases it first if nobody saw it being erased. If none is
    /// free, one of the checkpoint that would be overwritten next is as good.
    ///
    /// # Errors
    /// [`FtlError::NoSpace`] if no block is free; those of the device.
    #[inline]
    pub(super) fn take(&mut self, role: Role, owner: u32) -> Result<BlockId, FtlError> {
        loop {
            let Some(block) = self.blocks.take(role, owner) else {
                if role != Role::Checkpoint && self.give_up_checkpoint_block() {
                    continue;
                }
                if self.superseded.is_empty() {
                    return Err(self.no_space());
                }
                self.read_doubts()?;
                self.free_superseded();
                continue;
            };
            if role == Role::Checkpoint {
                // Erased when it is written.
                return Ok(block);
            }
            self.checkpoints.opened += 1;
            if !self.blocks.is_untrusted(block) || self.erase_first(block)? {
                return Ok(block);
            }
        }
    }

    /// `false` if the block is unusable.
    #[cold]
    fn erase_first(&mut self, block: BlockId) -> Result<bool, FtlError> {
        debug_assert!(self.blocks.valid(block) == 0 && self.blocks.is_untrusted(block), "{block} needs no erase");
        let erased = self.flash.erase_or_retire(Purpose::Recovery, block)?;
        if erased {
            self.blocks.cleaned(block)
        } else {
            self.blocks.retired(block)
        }
        Ok(erased)
    }

    /// Erases a block in which no page lives, or retires it.
    ///
    /// # Errors
    /// Those of the device, a failed erase excepted.
    pub fn release(&mut self, block: BlockId) -> Result<(), FtlError> {
        debug_assert!(self.blocks.valid(block) == 0, "{block} is erased while pages in it live");
        debug_assert!(!matches!(self.blocks.role(block), Role::Free | Role::Bad), "{block} is not in use");
        if self.blocks.next(block) == 0 {
            self.close_slot(block);
            self.blocks.put_back(block);
            return Ok(());
        }
        if self.may_prove(block) {
            self.close_slot(block);
            self.blocks.emptied(block);
            self.superseded.push(block);
            return Ok(());
        }
        let erased = self.flash.recycle(self.moving_for, block, self.blocks.has_failed(block))?;
        self.close_slot(block);
        if erased {
            self.blocks.erased(block)
        } else {
            self.blocks.retired(block)
        }
        Ok(())
    }

    /// Takes back the slot of what is no log block any more.
    pub(super) fn close_slot(&mut self, block: BlockId) {
        if self.blocks.role(block) == Role::Log {
            debug_assert!(self.log.block(self.blocks.slot(block)) == block, "{block} has the slot of another");
            self.log.close(self.blocks.slot(block));
        }
    }

    /// Whether a page may not count, and was not copied yet.
    pub(super) fn is_in_doubt(&self, page: Ppn) -> bool {
        self.in_doubt.iter().any(|doubt| doubt.ppn == page && !doubt.was_complete)
    }

    /// Whether a page in this block may be what says that the program of a page was over that is
    /// yet to be copied. If the block is erased and power is lost, a mount that cannot read that
    /// page takes it for torn, and an older version counts.
    fn may_prove(&self, block: BlockId) -> bool {
        !self.blocks.has_failed(block) && self.in_doubt.iter().any(|doubt| doubt.was_complete)
    }

    /// Every page in doubt was copied.
    pub fn settled(&mut self) {
        self.in_doubt = Vec::new();
        self.free_superseded();
    }

    /// A mount may need this page, which is not live, until nothing is in doubt.
    pub(super) fn spare_superseded(&mut self, page: Ppn) {
        let block = self.blocks.geometry().block_of(page);
        if self.blocks.role(block) == Role::Free && !self.superseded.contains(&block) {
            self.blocks.withdraw(block);
            debug_assert!(self.blocks.valid(block) == 0);
            self.superseded.push(block);
        }
    }

    /// Reads pages in doubt as often as it takes, while what they superseded is still there: no
    /// block is left to copy them to first.
    #[cold]
    fn read_doubts(&mut self) -> Result<(), FtlError> {
        for at in 0..self.in_doubt.len() {
            let Doubt { ppn, lpn, was_complete, .. } = self.in_doubt[at];
            // Those that were copied may be erased by now, or hold a page of a checkpoint.
            if self.locate(lpn) == ppn && !was_complete {
                read_often(&mut self.flash, ppn)?;
            }
        }
        Ok(())
    }

    #[cold]
    fn free_superseded(&mut self) {
        for block in core::mem::take(&mut self.superseded) {
            self.blocks.readmit(block);
        }
    }

    /// Erases a free block now that a later mount could find something in.
    ///
    /// # Errors
    /// Those of the device.
    pub fn clean(&mut self, block: BlockId) -> Result<(), FtlError> {
        if self.blocks.role(block) == Role::Free && self.blocks.is_untrusted(block) {
            self.blocks.withdraw(block);
            if self.erase_first(block)? {
                self.blocks.put_back(block);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::area::{Area, AreaOptions, Room};
    use super::super::blocks::SHARED;
    use super::super::check::tests::{LOGICAL_PAGES, device, stamp};
    use super::*;
    use crate::config::Config;
    use crate::contract::FtlError;
    use crate::flash::{Flash, Purpose};
    use nand::{Blemish, FaultPlan, Faulty, Lpn, NandError, ProgramOrder, SimNand};

    /// The newest copy of page 1 is in doubt, and in the last free block lies what it superseded.
    fn area(was_complete: bool) -> (Area<Faulty<SimNand>>, Ppn, BlockId) {
        let order = ProgramOrder::Sequential;
        let options = AreaOptions { name: "log blocks", least_logs: 2, order, picks_victims: false };
        let flash = Flash::new(Faulty::new(device().into_nand(), FaultPlan::default()));
        let room = |_, logs| Room { logs, fused: 0 };
        let mut area = Area::format(flash, &Config::new(LOGICAL_PAGES), options, &room).unwrap();
        for lpn in (0..LOGICAL_PAGES).map(Lpn) {
            assert!(area.write_home(lpn, &stamp(lpn)).unwrap());
        }
        let log = area.open_log(0).unwrap();
        assert!(area.write_log(log, 0, Lpn(1), &stamp(Lpn(1))).unwrap());
        let ppn = area.locate(Lpn(1));
        let mut blocks = (0..area.blocks.geometry().blocks()).map(BlockId);
        let superseded = blocks.find(|block| area.blocks.role(*block) == Role::Free).unwrap();
        area.spare_superseded(area.blocks.geometry().page_at(superseded, 0));
        area.in_doubt = alloc::vec![Doubt { ppn, lpn: Lpn(1), may_fade: true, was_complete }];
        (area, ppn, superseded)
    }

    /// Takes blocks until one is `wanted`, or none is left.
    fn take_up_to(area: &mut Area<Faulty<SimNand>>, wanted: BlockId) -> Result<(), FtlError> {
        while area.take(Role::Data, SHARED)? != wanted {}
        Ok(())
    }

    #[test]
    fn a_page_in_doubt_is_read_before_what_it_superseded_goes() {
        let (mut area, _, superseded) = area(false);
        assert_eq!(take_up_to(&mut area, superseded), Ok(()));
        let (mut area, ppn, superseded) = self::area(false);
        area.flash.nand_mut().damage(ppn, Blemish::Fading(9));
        let error = NandError::Uncorrectable { ppn };
        assert_eq!(take_up_to(&mut area, superseded), Err(error.into()), "it faded while it was read");
        // Nothing counts in place of one that was complete.
        let (mut area, ppn, superseded) = self::area(true);
        area.flash.nand_mut().damage(ppn, Blemish::Unreadable);
        assert_eq!(take_up_to(&mut area, superseded), Ok(()));
    }

    #[test]
    fn a_page_in_doubt_that_shows_what_nobody_wrote_is_not_lost() {
        let (mut area, ppn, _) = area(false);
        area.flash.nand_mut().damage(ppn, Blemish::Garbage);
        assert_eq!(area.merge(0, None), Err(NandError::Uncorrectable { ppn }.into()), "an older version counts then");
        let (mut area, ppn, _) = self::area(true);
        area.flash.nand_mut().damage(ppn, Blemish::Garbage);
        area.merge(0, None).unwrap();
        let (at, mut out) = (area.locate(Lpn(1)), nand::Stamp::UNWRITTEN);
        assert!(area.read(Purpose::Host, Lpn(1), at, &mut out).is_err(), "one that was complete is worn");
    }

    #[test]
    fn a_block_is_not_erased_that_may_prove_that_a_page_was_complete() {
        for was_complete in [false, true] {
            let (mut area, ..) = area(was_complete);
            let block = area.table.data(5);
            (4 * 5..LOGICAL_PAGES).map(Lpn).for_each(|lpn| area.forget(lpn));
            let before = area.flash.counts().total().erases;
            area.release(block).unwrap();
            assert_eq!(area.flash.counts().total().erases - before, u32::from(!was_complete).into());
            assert_eq!((area.blocks.role(block), area.blocks.is_untrusted(block)), (Role::Free, was_complete));
            area.settled();
            assert_eq!(take_up_to(&mut area, block), Ok(()), "it is free when nothing is in doubt");
            assert!(!area.blocks.is_untrusted(block), "it was erased before it was used");
        }
    }
}
