//! Janus-FTL: part of the device mapped by page, the rest by block, and the border moves (Kwon et al., EMSOFT 2010).
//!
//! A write's journey:
//! 1. A page of a logical block in the page-mapped area (PMA) goes to the next page of its active block.
//! 2. Any other page goes to its place in its data block (BMA) while that was not passed.
//! 3. Else to the sequential log block of its logical block (section 5). A sequential log block that is full, or
//!    has to make room for another, is recycled by what was written to it (`recycle`): switch or partial merge,
//!    migration, or *Fusion*.
//! 4. Fusion changes maps only: data block and log block join the PMA with what lives in them, and pages of theirs
//!    that were never programmed are written next. If the PMA holds as many logical blocks as it should, the one
//!    written least recently leaves it first by *Defusion*: its pages are gathered into an empty block.
//! 5. Before an empty block is taken, the emptiest blocks of the PMA are collected until [`RESERVE`] are empty. A
//!    defusion thus collects first and gathers afterwards, from wherever its pages are by then.
//! 6. After every N_D writes the adaptive FTL asks its ghost buffers for the size at which equation 4 has its minimum,
//!    and moves a quarter of the way there ([`ghost`], [`cost`]). A PMA that is too large then shrinks gradually.
//!
//! Maps are found again on flash after power loss, or assumed to be in non-volatile memory, as in the paper's simulator
//! ([`crate::config::Maps`]). What only speeds things up starts anew: ghost buffers, the target, what was written in sequence.

pub mod cost;
pub mod ghost;
mod paged;
mod recycle;

use super::log_block::area::{Area, AreaOptions, Room};
use super::log_block::blocks::RESERVE;
use super::log_block::lru::Lru;
use super::log_block::recover::{Others, Recovered};
use crate::config::Config;
use crate::contract::{Ftl, FtlError, Gauge, MountReport, RamItem, RamReport};
use crate::flash::{Flash, Purpose};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use cost::CostModel;
use ghost::Ghosts;
use nand::{BlockId, Lpn, Nand};
use paged::PagedArea;
use recycle::SequentialLogs;

/// Writes between two defusions that make the PMA as small as it should be.
const DEFLATE_EVERY: u32 = 32;

/// How many logical blocks the PMA should hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// So many that its utilisation u_d is this, in percent: N_F = N_O u_d / (1 - u_d).
    UtilisationPercent(u32),
    /// So many, as far as there are so many: 0 is pure block mapping with log blocks, all is page mapping.
    Fused(u32),
    /// What the workload asks for.
    Adaptive,
}

impl Goal {
    /// The most logical blocks that will ever be fused.
    fn most(self, logical_blocks: u32, over_provisioned: u32) -> u32 {
        let wanted = match self {
            Self::UtilisationPercent(percent) => over_provisioned.saturating_mul(percent) / (100 - percent.min(99)),
            Self::Fused(blocks) => blocks,
            Self::Adaptive => logical_blocks,
        };
        wanted.min(logical_blocks)
    }
}

/// Janus-FTL.
pub struct JanusFtl<N> {
    area: Area<N>,
    paged: PagedArea,
    sequential: SequentialLogs,
    /// Fused logical blocks, by their last write.
    fused: Lru,
    /// Logical blocks that the PMA should hold.
    target: u32,
    ghosts: Option<Ghosts>,
    /// Writes of the host until the target is considered again.
    countdown: u32,
}

impl<N: Nand> JanusFtl<N> {
    /// Makes an empty disk of a device.
    ///
    /// # Errors
    /// [`FtlError::Unsupported`] if the device is too small for the logical pages asked for.
    pub fn format(flash: Flash<N>, config: &Config, name: &'static str, goal: Goal) -> Result<Self, FtlError> {
        let options = AreaOptions { name, least_logs: 2 };
        let area = Area::format(flash, config, options, |data, over| Self::room(goal, data, over))?;
        Ok(Self::new(area, goal))
    }

    /// Opens a disk again, also after power loss.
    ///
    /// 1. Maps are made from what is on flash ([`super::log_block::recover`]).
    /// 2. The page programmed last is written again, so that it does not depend on a program that may have been cut short: in the PMA
    ///    it is moved, else its logical block is merged, which leaves no fewer blocks free.
    /// 3. The emptiest blocks of the PMA are collected until [`RESERVE`] blocks are free, to the same block. The next attempt finds
    ///    that block the emptiest if this one is cut short, so that attempts do not add up.
    /// 4. Logical blocks beyond the most that may be fused, which trimmed pages that came back can make, are defused.
    ///
    /// # Errors
    /// [`FtlError::Unsupported`] and [`FtlError::Damaged`] if the device was formatted for something else.
    pub fn mount(
        flash: Flash<N>,
        config: &Config,
        name: &'static str,
        goal: Goal,
    ) -> Result<(Self, MountReport), FtlError> {
        let options = AreaOptions { name, least_logs: 2 };
        let (area, recovered) =
            Area::mount(flash, config, options, Others::LogsAndPaged(SequentialLogs::most), |data, over| {
                Self::room(goal, data, over)
            })?;
        let Recovered { logs, fused, last, mut steps, unreadable_pages, rebuilt_entries } = recovered;
        let mut ftl = Self::new(area, goal);
        fused.into_iter().for_each(|lbn| ftl.fused.touch(lbn));
        for block in logs {
            ftl.sequential.opened(block, ftl.area.blocks.owner(block));
        }
        if let Some((ppn, lpn)) = last {
            let lbn = ftl.area.target(lpn).lbn;
            if ftl.area.fused.is_fused(lbn) {
                ftl.paged.move_page(&mut ftl.area, &ftl.fused, ppn)?;
            } else {
                ftl.area.merge(lbn, None)?;
                let log = ftl.sequential.log_of(lbn);
                if log.is_some() {
                    ftl.area.release(log)?;
                    ftl.sequential.closed(lbn);
                }
            }
        }
        ftl.paged.collect_emptiest(&mut ftl.area, &ftl.fused)?;
        while ftl.area.fused.excess() > 0 {
            ftl.defuse_oldest()?;
        }
        ftl.area.fused.shrink();
        steps.end("rewrite what was written last, free blocks", &ftl.area.flash);
        Ok((ftl, MountReport { steps: steps.done, unreadable_pages, rebuilt_entries }))
    }

    fn room(goal: Goal, logical_blocks: u32, over: u32) -> Room {
        Room { logs: SequentialLogs::most(over), fused: goal.most(logical_blocks, over) }
    }

    fn new(area: Area<N>, goal: Goal) -> Self {
        let (logical_blocks, over) = (area.table.logical_blocks(), area.blocks.log_limit());
        let most = goal.most(logical_blocks, over);
        let adaptive = goal == Goal::Adaptive;
        // The adaptive FTL starts where the fixed one stands.
        let target = if adaptive { Goal::UtilisationPercent(75).most(logical_blocks, over) } else { most };
        Self {
            paged: PagedArea::new(area.blocks.geometry().blocks()),
            sequential: SequentialLogs::new(*area.blocks.geometry(), logical_blocks, over),
            fused: Lru::new(logical_blocks),
            target,
            ghosts: adaptive.then(|| Ghosts::new(logical_blocks, over, CostModel::paper())),
            countdown: logical_blocks,
            area,
        }
    }

    /// Logical blocks in the PMA.
    #[must_use]
    pub fn fused_blocks(&self) -> u32 {
        self.fused.len()
    }

    /// Logical blocks that the PMA should hold.
    #[must_use]
    pub const fn target(&self) -> u32 {
        self.target
    }

    /// Collects until [`RESERVE`] blocks are empty.
    #[inline]
    fn make_space(&mut self) -> Result<(), FtlError> {
        if self.area.blocks.free_blocks() < RESERVE {
            self.paged.make_space(&mut self.area, &self.fused)?;
        }
        Ok(())
    }

    /// Writes a page of a fused logical block.
    fn write_fused(&mut self, lbn: u32, lpn: Lpn, data: &N::Payload) -> Result<(), FtlError> {
        self.fused.touch(lbn);
        if let Some(ghosts) = &mut self.ghosts {
            ghosts.access(lbn, 1);
        }
        loop {
            let block = self.paged.active(&mut self.area, &self.fused)?;
            if self.area.write_paged(block, lpn, data)? {
                return Ok(());
            }
        }
    }

    /// Makes it possible to write a page of the BMA to a sequential log block, or fuses its logical block.
    fn write_sequential(&mut self, lbn: u32, lpn: Lpn, data: &N::Payload) -> Result<bool, FtlError> {
        let log = self.sequential.log_of(lbn);
        if log.is_some() && self.area.blocks.has_room(log) {
            let offset = self.area.blocks.next(log);
            let written = self.area.write_log(log, offset, lpn, data)?;
            if written {
                self.sequential.wrote(log, lbn, self.area.target(lpn).offset);
            }
            return Ok(written);
        }
        if log.is_some() {
            self.recycle(lbn)?;
        } else if self.area.blocks.logs() < self.sequential.limit(&self.area.blocks) {
            self.make_space()?;
            let block = self.area.open_log(lbn)?;
            self.sequential.opened(block, lbn);
        } else {
            let oldest = self.sequential.oldest().ok_or_else(|| self.area.no_space())?;
            self.recycle(oldest)?;
        }
        Ok(false)
    }

    /// Moves data block and log block of a logical block to the PMA: a change of maps.
    fn fuse(&mut self, lbn: u32, log: BlockId) -> Result<(), FtlError> {
        // Two leave for one that enters, so that the PMA shrinks when its target did.
        for _ in 0..2 {
            if self.fused.len() >= self.target || self.area.fused.room() == 0 {
                self.defuse_oldest()?;
            }
        }
        let data = self.area.fuse(lbn, log);
        self.fused.touch(lbn);
        for block in [data, log] {
            if block.is_some() {
                self.paged.joined(&mut self.area, block);
            }
        }
        Ok(())
    }

    /// Gathers the logical block of the PMA that was written least recently into a data block.
    fn defuse_oldest(&mut self) -> Result<(), FtlError> {
        if let Some(lbn) = self.fused.oldest() {
            self.make_space()?;
            self.area.merge(lbn, None)?;
            self.fused.remove(lbn);
        }
        Ok(())
    }

    /// Shrinks a PMA that holds more than it should, a logical block every [`DEFLATE_EVERY`] writes: writes that all hit
    /// fuse nothing, and what left the target behind would stay for ever.
    #[inline]
    fn deflate(&mut self) -> Result<(), FtlError> {
        if self.fused.len() > self.target && self.countdown.is_multiple_of(DEFLATE_EVERY) {
            self.defuse_oldest()?;
        }
        Ok(())
    }

    /// Counts a write of the host, and considers the target when its time has come.
    #[inline]
    fn adapt(&mut self) {
        self.countdown -= 1;
        if self.countdown > 0 {
            return;
        }
        self.countdown = self.area.table.logical_blocks();
        if let Some(best) = self.ghosts.as_mut().and_then(Ghosts::best) {
            let way = best.abs_diff(self.target).div_ceil(4);
            self.target = if best > self.target { self.target + way } else { self.target - way };
        }
    }
}

impl<N: Nand> Ftl<N> for JanusFtl<N> {
    fn logical_pages(&self) -> u32 {
        self.area.logical_pages
    }

    fn read(&mut self, lpn: Lpn, out: &mut N::Payload) -> Result<(), FtlError> {
        self.area.check_range(lpn, 1)?;
        let ppn = self.area.locate(lpn);
        self.area.read(Purpose::Host, lpn, ppn, out)
    }

    #[inline]
    fn write(&mut self, lpn: Lpn, data: &N::Payload) -> Result<(), FtlError> {
        self.area.check_range(lpn, 1)?;
        self.deflate()?;
        let lbn = self.area.target(lpn).lbn;
        loop {
            if self.area.fused.is_fused(lbn) {
                self.write_fused(lbn, lpn, data)?;
                break;
            }
            if !self.area.table.data(lbn).is_some() {
                self.make_space()?;
            }
            if self.area.write_home(lpn, data)? || self.write_sequential(lbn, lpn, data)? {
                break;
            }
        }
        self.adapt();
        self.area.checkpoint_if_due()
    }

    fn trim(&mut self, lpn: Lpn, count: u32) -> Result<(), FtlError> {
        self.area.trim(lpn, count)
    }

    /// Nothing to do: a completed write is on flash with a spare area that says what it is.
    fn flush(&mut self) -> Result<(), FtlError> {
        Ok(())
    }

    /// Defuses a logical block if the PMA holds more than it should.
    fn idle(&mut self) -> Result<bool, FtlError> {
        if self.fused.len() <= self.target {
            return Ok(false);
        }
        self.defuse_oldest()?;
        Ok(true)
    }

    fn ram(&self) -> RamReport {
        let mut report = RamReport::new();
        self.area.ram(&mut report);
        report.push(RamItem { name: "sequential_logs", bytes: self.sequential.ram_bytes() });
        report.push(RamItem { name: "fused_blocks", bytes: self.fused.ram_bytes() + self.paged.ram_bytes() });
        if let Some(ghosts) = &self.ghosts {
            report.push(RamItem { name: "ghost_buffers", bytes: ghosts.ram_bytes() });
        }
        report
    }

    fn gauges(&self) -> Vec<Gauge> {
        let (collections, live) = self.paged.collections();
        alloc::vec![
            Gauge { name: "fused_blocks", value: u64::from(self.fused.len()) },
            Gauge { name: "fused_blocks_wanted", value: u64::from(self.target) },
            Gauge { name: "paged_area_collections", value: collections },
            Gauge { name: "paged_area_collected_live_pages", value: live },
        ]
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
        self.area.check()?;
        self.paged.check(&self.area)?;
        let fused = (0..self.area.table.logical_blocks()).filter(|&lbn| self.area.fused.is_fused(lbn)).count();
        if fused != self.fused.len() as usize {
            return Err(alloc::format!("{fused} logical blocks are fused but {} are listed", self.fused.len()));
        }
        Ok(())
    }
}
