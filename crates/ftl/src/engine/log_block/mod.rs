//! The log-block engine: data blocks mapped by block, log blocks mapped by page.
//!
//! A write's journey:
//! 1. The page goes to its offset in its logical block's data block, if nothing was programmed there or
//!    behind since the block was erased ([`area`]).
//! 2. Else the scheme is asked what to do, and asked again until the page is in a log block ([`scheme`]): open a log
//!    block, append to one, merge a logical block, reclaim a log block.
//! 3. Merges are written once, for all schemes (`merge`): switch, partial, full.
//!
//! Programs go in ascending order within a block, with gaps, so that a device with sequential programming is enough.
//!
//! Maps are assumed to be in non-volatile memory, as in the simulators of the papers that these FTLs come
//! from. Spare areas carry kind, logical page and sequence number of every page all the same.

pub mod area;
pub mod blocks;
mod check;
pub mod lru;
mod merge;
pub mod scheme;

use crate::config::Config;
use crate::contract::{Ftl, FtlError, RamItem, RamReport};
use crate::flash::{Flash, Purpose};
use alloc::boxed::Box;
use alloc::string::String;
use area::{Area, AreaOptions, Room};
use nand::{BlockId, Lpn, Nand, Payload};
use scheme::{Scheme, Size, Step};

/// A log-block FTL.
pub struct LogFtl<N, S> {
    area: Area<N>,
    scheme: S,
}

impl<N: Nand, S: Scheme> LogFtl<N, S> {
    /// Makes an empty disk of a device.
    ///
    /// # Errors
    /// [`FtlError::Unsupported`] if the device is too small for the logical pages asked for.
    pub fn format(
        flash: Flash<N>,
        config: &Config,
        name: &'static str,
        make: impl FnOnce(Size) -> S,
    ) -> Result<Self, FtlError> {
        let options = AreaOptions { name, least_logs: S::LEAST_LOGS };
        let area = Area::format(flash, config, options, |_, logs| Room { logs, fused: 0 })?;
        let size = Size {
            geometry: *area.blocks.geometry(),
            logical_blocks: area.table.logical_blocks(),
            logs: area.blocks.log_limit(),
        };
        Ok(Self { area, scheme: make(size) })
    }

    /// Executes a decision; whether the page was written by it.
    #[inline]
    fn execute(&mut self, step: Step, lpn: Lpn, data: &N::Payload) -> Result<bool, FtlError> {
        match step {
            Step::Append(block) => self.area.write_log(block, self.area.blocks.next(block), lpn, data),
            Step::Place(block) => self.area.write_log(block, self.area.target(lpn).offset, lpn, data),
            Step::Rewrite => self.area.rewrite(lpn, data).map(|()| true),
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
            Step::Append(_) | Step::Place(_) | Step::Rewrite | Step::Stuck => Err(self.area.no_space()),
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
        Ok(())
    }

    fn free_log(&mut self, block: BlockId) -> Result<(), FtlError> {
        self.area.release(block)?;
        self.scheme.closed(block);
        Ok(())
    }

    fn reclaim(&mut self, block: BlockId) -> Result<(), FtlError> {
        let slot = self.area.blocks.slot(block);
        for index in 0..self.area.blocks.geometry().pages_per_block() {
            if self.area.blocks.valid(block) == 0 {
                break;
            }
            let Some(lpn) = self.area.log.at(slot, index) else { continue };
            let lbn = self.area.target(lpn).lbn;
            self.area.merge(lbn, None)?;
            if let Some(owned) = self.scheme.owned_by(lbn)
                && owned != block
                && self.area.blocks.valid(owned) == 0
            {
                self.free_log(owned)?;
            }
        }
        self.free_log(block)
    }

    /// A program that fails leaves the rest where it is: the scheme is asked again.
    fn move_pages(&mut self, from: BlockId, to: BlockId) -> Result<(), FtlError> {
        let slot = self.area.blocks.slot(from);
        let geometry = *self.area.blocks.geometry();
        for index in 0..geometry.pages_per_block() {
            let Some(lpn) = self.area.log.at(slot, index) else { continue };
            if !self.area.blocks.has_room(to) || !self.area.move_page(geometry.page_at(from, index), to, lpn)? {
                return Ok(());
            }
        }
        self.free_log(from)
    }

    /// Gives up log blocks that blocks gone bad have left no room for.
    #[cold]
    fn shrink(&mut self) -> Result<(), FtlError> {
        let step = self.scheme.shrink(&self.area.blocks);
        self.rearrange(step)
    }
}

impl<N: Nand, S: Scheme> Ftl<N> for LogFtl<N, S> {
    fn logical_pages(&self) -> u32 {
        self.area.logical_pages
    }

    fn read(&mut self, lpn: Lpn, out: &mut N::Payload) -> Result<(), FtlError> {
        self.area.check_range(lpn, 1)?;
        let ppn = self.area.locate(lpn);
        if ppn.is_some() {
            self.area.flash.read(Purpose::Host, ppn, out)?;
            return Ok(());
        }
        out.clear();
        if self.area.table.is_lost(lpn) { Err(FtlError::Lost { lpn }) } else { Ok(()) }
    }

    #[inline]
    fn write(&mut self, lpn: Lpn, data: &N::Payload) -> Result<(), FtlError> {
        self.area.check_range(lpn, 1)?;
        while self.area.blocks.logs() > self.area.blocks.log_limit() {
            self.shrink()?;
        }
        let target = self.area.target(lpn);
        while !self.area.write_home(lpn, data)? {
            let step = self.scheme.step(&self.area.blocks, target);
            if self.execute(step, lpn, data)? {
                break;
            }
        }
        Ok(())
    }

    fn trim(&mut self, lpn: Lpn, count: u32) -> Result<(), FtlError> {
        self.area.trim(lpn, count)
    }

    /// Nothing to do: a completed write is on flash with a spare area that says what it is.
    fn flush(&mut self) -> Result<(), FtlError> {
        Ok(())
    }

    fn idle(&mut self) -> Result<bool, FtlError> {
        match self.scheme.idle(&self.area.blocks) {
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
