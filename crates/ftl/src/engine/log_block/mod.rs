//! The log-block engine: data blocks mapped by block, log blocks mapped by page.
//!
//! A write's journey:
//! 1. The page goes to its offset in its logical block's data block, if nothing was programmed
//!    there or behind since the block was erased ([`area`]).
//! 2. Else the scheme is asked what to do, and asked again until the page is in a log block
//!    ([`scheme`]): open a log block, append to one, merge a logical block, reclaim a log block.
//! 3. Merges are written once, for all schemes (`merge`): switch, partial, full.
//!
//! Programs go in ascending order within a block, with gaps, so that a device with sequential
//! programming is enough, unless the scheme says otherwise ([`Limits::order`]).
//!
//! Maps are found again on flash after power loss ([`recover`]), or assumed to be in non-volatile
//! memory, as in the simulators of the papers that these FTLs come from ([`crate::config::Maps`]).
//! What a page's spare area says is the same.

pub mod area;
pub mod blocks;
pub mod bound;
pub(super) mod check;
mod checkpoint;
pub mod groups;
pub mod longest;
mod lost;
pub mod lru;
mod make;
mod merge;
pub mod often;
pub mod recover;
pub mod scheme;
mod space;

use super::read_only::{Evidence, Mounted, Unmounted, or_read_only, unless_short, without_doubt};
use crate::config::Config;
use crate::contract::{Ftl, FtlError, MountReport, RamItem, RamReport, Shortage};
use crate::flash::{Flash, Purpose};
use crate::inspect::Inspector;
use crate::recovery::copies::Doubt;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use area::{Area, AreaOptions};
use blocks::Role;
use bound::room_for;
use nand::{BlockId, Lpn, Nand, Ppn};
use recover::{Others, Recovered};
use scheme::{Limits, Scheme, Size, Step, View};

/// A log-block FTL. The scheme is asked through a pointer, so that the engine is compiled once.
pub struct LogFtl<N> {
    area: Area<N>,
    scheme: Box<dyn Scheme>,
}

/// Which log-block FTL it is to be.
#[derive(Clone, Copy)]
pub struct Design<'a> {
    /// The FTL's name, for errors.
    pub name: &'static str,
    /// What its scheme needs.
    pub limits: Limits,
    /// Makes the scheme.
    pub make: &'a dyn Fn(Size) -> Box<dyn Scheme>,
}

impl Design<'_> {
    const fn area(&self) -> AreaOptions {
        let Limits { least_logs, order, .. } = self.limits;
        AreaOptions { name: self.name, least_logs, order, picks_victims: false }
    }
}

impl<N: Nand + 'static> LogFtl<N> {
    /// Opens a disk again, also after power loss.
    ///
    /// # Errors
    /// [`FtlError::Unsupported`] and [`FtlError::Damaged`] if the device was formatted for
    /// something else.
    pub fn mount(flash: Flash<N>, config: &Config, design: Design<'_>) -> Mounted<N> {
        let opened = without_doubt(flash, |flash, excluded| Self::open(flash, config, design, excluded));
        or_read_only(opened, config, Evidence::Marks)
    }
}

impl<N: Nand> LogFtl<N> {
    /// Makes an empty disk of a device.
    ///
    /// # Errors
    /// [`FtlError::Unsupported`] if the device is too small for the logical pages asked for.
    pub fn format(flash: Flash<N>, config: &Config, design: Design<'_>) -> Result<Self, FtlError> {
        let area = Area::format(flash, config, design.area(), &room_for(design.limits))?;
        let scheme = (design.make)(Size::of(&area));
        Ok(Self { area, scheme })
    }

    /// 1. Maps are made from what is on flash ([`recover`]).
    /// 2. The logical blocks of the page programmed last and of the one that the host wrote last
    ///    are merged, so that they do not depend on programs that may have been cut short. If one
    ///    of these pages cannot be read then, all is done again without it. Blocks with a torn page
    ///    that a later mount could read are emptied and erased.
    /// 3. The scheme takes over the log blocks, the oldest first; those that it does not want are
    ///    merged.
    fn open(
        flash: Flash<N>,
        config: &Config,
        design: Design<'_>,
        excluded: &[Ppn],
    ) -> Result<(Self, MountReport), Unmounted<N>> {
        let room = room_for(design.limits);
        let (area, mut recovered) = Area::mount(flash, config, design.area(), Others::Logs, &room, excluded)?;
        let scheme = (design.make)(Size::of(&area));
        let mut ftl = Self { area, scheme };
        if let Err(error) = ftl.settle(&recovered) {
            return Err(ftl.area.unmounted(error));
        }
        recovered.steps.end("merge what was written last, and what the scheme has no use for", &ftl.area.flash);
        Ok((ftl, recovered.report()))
    }

    /// Steps 2 and 3.
    fn settle(&mut self, recovered: &Recovered) -> Result<(), FtlError> {
        for &Doubt { ppn, lpn, .. } in &recovered.last {
            if self.area.locate(lpn) == ppn {
                self.area.merge(self.area.target(lpn).lbn, None)?;
            }
        }
        self.area.settled();
        for &block in &recovered.revenants {
            match self.area.blocks.role(block) {
                Role::Data => drop(self.area.merge(self.area.blocks.owner(block), None)?),
                Role::Log => self.merge_living(block)?,
                Role::Free => self.area.clean(block)?,
                Role::Paged | Role::Bad | Role::Checkpoint => {}
            }
        }
        self.adopt(&recovered.logs)?;
        self.area.complete_sets().map(drop)
    }

    fn adopt(&mut self, logs: &[BlockId]) -> Result<(), FtlError> {
        let mut unwanted = Vec::new();
        for &block in logs {
            if self.area.blocks.valid(block) == 0 {
                self.area.release(block)?;
                continue;
            }
            if !self.scheme.adopt(&View::of(&self.area), block) {
                unwanted.push(block);
            }
        }
        for block in unwanted {
            self.merge_living(block)?;
            self.area.release(block)?;
        }
        while self.area.blocks.logs() > self.area.blocks.log_limit() {
            self.shrink()?;
        }
        Ok(())
    }

    /// Merges every logical block that has a live page in an unowned log block.
    fn merge_living(&mut self, block: BlockId) -> Result<(), FtlError> {
        let slot = self.area.blocks.slot(block);
        debug_assert!(self.area.log.block(slot) == block);
        for index in 0..self.area.blocks.geometry().pages_per_block() {
            if let Some(lpn) = self.area.log.at(slot, index) {
                self.area.merge(self.area.target(lpn).lbn, None)?;
            }
        }
        Ok(())
    }

    /// Executes a decision; whether the page was written by it.
    #[inline]
    fn execute(&mut self, step: Step, lpn: Lpn, data: &N::Payload) -> Result<bool, FtlError> {
        match step {
            Step::Append(block) => self.area.write_log(block, self.area.blocks.next(block), lpn, data),
            Step::Place(block) => self.area.write_log(block, self.area.target(lpn).offset, lpn, data),
            Step::Rewrite => self.area.rewrite(lpn, data).map(|()| true),
            Step::Fill(block) => self.area.fill(block, self.area.target(lpn)).map(|()| false),
            other => self.rearrange(other).map(|()| false),
        }
    }

    /// Executes a decision that writes no page of the host.
    fn rearrange(&mut self, step: Step) -> Result<(), FtlError> {
        match step {
            Step::Open(owner) => {
                let block = self.area.open_log(owner)?;
                self.scheme.opened(block, owner);
                Ok(())
            }
            Step::Merge(lbn, log) => self.merge(lbn, log),
            Step::Reclaim(block) => self.reclaim(block),
            Step::Move(from, to) => self.move_pages(from, to),
            Step::Append(_) | Step::Place(_) | Step::Fill(_) | Step::Rewrite | Step::Stuck => Err(self.area.no_space()),
        }
    }

    fn merge(&mut self, lbn: u32, log: Option<BlockId>) -> Result<(), FtlError> {
        let adopted = self.area.merge(lbn, log)?;
        if let Some(block) = log {
            if !adopted {
                self.area.release(block)?;
            }
            self.scheme.closed(block);
        }
        self.free_owned(lbn, BlockId::NONE)
    }

    /// A logical block was merged: frees its log blocks, one excepted.
    fn free_owned(&mut self, lbn: u32, spared: BlockId) -> Result<(), FtlError> {
        while let Some(owned) = self.scheme.owned_by(lbn)
            && owned != spared
            && self.area.blocks.valid(owned) == 0
        {
            self.free_log(owned)?;
        }
        Ok(())
    }

    fn free_log(&mut self, block: BlockId) -> Result<(), FtlError> {
        debug_assert!(self.area.blocks.role(block) == Role::Log, "{block} is no log block");
        self.area.release(block)?;
        self.scheme.closed(block);
        Ok(())
    }

    fn reclaim(&mut self, block: BlockId) -> Result<(), FtlError> {
        let slot = self.area.blocks.slot(block);
        debug_assert!(self.area.blocks.role(block) == Role::Log && self.area.log.block(slot) == block);
        for index in 0..self.area.blocks.geometry().pages_per_block() {
            if self.area.blocks.valid(block) == 0 {
                break;
            }
            let Some(lpn) = self.area.log.at(slot, index) else { continue };
            let lbn = self.area.target(lpn).lbn;
            self.area.merge(lbn, None)?;
            self.free_owned(lbn, block)?;
        }
        self.free_log(block)
    }

    /// A program that fails leaves the rest where it is: the scheme is asked again.
    fn move_pages(&mut self, from: BlockId, to: BlockId) -> Result<(), FtlError> {
        let slot = self.area.blocks.slot(from);
        debug_assert!(from != to && self.area.blocks.role(from) == Role::Log && self.area.blocks.role(to) == Role::Log);
        let geometry = *self.area.blocks.geometry();
        for index in 0..geometry.pages_per_block() {
            let Some(lpn) = self.area.log.at(slot, index) else { continue };
            if !self.area.blocks.has_room(to) || !self.area.move_page(geometry.page_at(from, index), to, lpn)? {
                return Ok(());
            }
        }
        self.free_log(from)
    }

    /// Moves what lives in a block that can barely be read any more.
    #[cold]
    fn refresh(&mut self, block: BlockId) -> Result<(), FtlError> {
        self.area.checkpoint_if_due()?;
        self.area.flash.rested(block);
        debug_assert!(self.area.moving_for == Purpose::Gc, "pages are being moved for something else");
        self.area.moving_for = Purpose::Refresh;
        let outcome = self.empty(block);
        self.area.moving_for = Purpose::Gc;
        outcome
    }

    fn empty(&mut self, block: BlockId) -> Result<(), FtlError> {
        match self.area.blocks.role(block) {
            Role::Data => {
                let lbn = self.area.blocks.owner(block);
                self.area.merge(lbn, None)?;
                while let Some(owned) = self.scheme.owned_by(lbn)
                    && self.area.blocks.valid(owned) == 0
                {
                    self.free_log(owned)?;
                }
                Ok(())
            }
            Role::Log => self.reclaim(block),
            // Checkpoints are written again before long.
            Role::Checkpoint | Role::Free | Role::Paged | Role::Bad => Ok(()),
        }
    }

    /// Gives up log blocks that blocks gone bad have left no room for.
    #[cold]
    fn shrink(&mut self) -> Result<(), FtlError> {
        let step = self.scheme.shrink(&View::of(&self.area));
        self.rearrange(step)
    }
}

impl<N: Nand> Ftl<N> for LogFtl<N> {
    fn logical_pages(&self) -> u32 {
        self.area.logical_pages
    }

    fn read(&mut self, lpn: Lpn, out: &mut N::Payload) -> Result<(), FtlError> {
        self.area.check_range(lpn, 1)?;
        if let Some(block) = self.area.tired() {
            unless_short(self.refresh(block))?;
        }
        let ppn = self.area.locate(lpn);
        self.area.read(Purpose::Host, lpn, ppn, out)
    }

    #[inline]
    fn write(&mut self, lpn: Lpn, data: &N::Payload) -> Result<(), FtlError> {
        self.area.check_write(lpn, 1)?;
        self.area.checkpoint_if_due()?;
        if let Some(block) = self.area.tired() {
            self.refresh(block)?;
        }
        while self.area.blocks.logs() > self.area.blocks.log_limit() {
            self.shrink()?;
        }
        let target = self.area.target(lpn);
        while !self.area.write_home(lpn, data)? {
            let step = self.scheme.step(&View::of(&self.area), target);
            if self.execute(step, lpn, data)? {
                break;
            }
        }
        Ok(())
    }

    fn trim(&mut self, lpn: Lpn, count: u32) -> Result<(), FtlError> {
        self.area.trim(lpn, count)
    }

    /// A completed write is on flash with a spare area that says what it is; trims are in
    /// checkpoints.
    fn flush(&mut self) -> Result<(), FtlError> {
        self.area.flush()
    }

    fn idle(&mut self) -> Result<bool, FtlError> {
        self.area.flash.check_host()?;
        if self.area.read_only().is_some() {
            return Ok(false);
        }
        if let Some(block) = self.area.tired() {
            return self.refresh(block).map(|()| true);
        }
        match self.scheme.idle(&View::of(&self.area)) {
            Step::Stuck => Ok(false),
            step => self.rearrange(step).map(|()| true),
        }
    }

    fn ram(&self) -> RamReport {
        let mut report = RamReport::new();
        self.area.ram(&mut report);
        report.push(RamItem { name: "log_block_scheme", bytes: self.scheme.ram_bytes() });
        report
    }

    fn inspect(&self, inspector: &mut dyn Inspector) {
        self.area.blocks.inspect(inspector);
    }

    fn free_blocks(&self) -> u32 {
        self.area.blocks.free_blocks()
    }

    fn read_only(&self) -> Option<Shortage> {
        self.area.read_only()
    }

    fn flash(&self) -> &Flash<N> {
        &self.area.flash
    }

    fn flash_mut(&mut self) -> &mut Flash<N> {
        &mut self.area.flash
    }

    fn into_flash(self: Box<Self>) -> Flash<N> {
        self.area.flash
    }

    fn check(&mut self) -> Result<(), String> {
        self.area.check()
    }
}
