//! The hybrid engine: part of the device mapped by page, the rest by block, and the border moves
//! (Janus-FTL, Kwon et al., EMSOFT 2010).
//!
//! A write's journey:
//! 1. A page of a logical block in the page-mapped area (PMA) goes to the next page of its active
//!    block.
//! 2. Any other page goes to its place in its data block (BMA) while that was not passed.
//! 3. Else to the sequential log block of its logical block (section 5). A sequential log block
//!    that is full, or has to make room for another, is recycled by what was written to it
//!    (`recycle`): switch or partial merge, migration, or *Fusion*.
//! 4. Fusion changes maps only: data block and log block join the PMA with what lives in them, and
//!    pages of theirs that were never programmed are written next. If the PMA holds as many logical
//!    blocks as it should, the one written least recently leaves it first by *Defusion*: its pages
//!    are gathered into an empty block.
//! 5. Before an empty block is taken, the emptiest blocks of the PMA are collected until enough
//!    are empty, which `wanted` says. A defusion thus collects first and gathers afterwards, from
//!    wherever its pages are by then.
//! 6. After every N_D writes the adaptive FTL asks its ghost buffers for the size at which equation
//!    4 has its minimum, and moves a quarter of the way there ([`ghost`], [`cost`]). A PMA that is
//!    too large then shrinks gradually.
//!
//! Beyond the paper, each an option that its preset leaves off ([`crate::config::JanusOptions`]): a
//! defusion may choose among the logical blocks written least recently by what gathering them
//! costs; the utilisation of victims may be learned ([`learn`]), and the target steered by measured
//! costs (`steer`); and the page map may have entries for a part of the logical blocks only, the
//! rest then being mapped by block for good.
//!
//! Maps are found again on flash after power loss, or assumed to be in non-volatile memory, as in
//! the paper's simulator ([`crate::config::Maps`]). What only speeds things up starts anew: ghost
//! buffers, the target, what was written in sequence.

mod adapt;
pub mod cost;
pub mod ghost;
pub mod learn;
mod open;
mod paged;
mod recycle;
mod steer;

use super::log_block::area::{Area, AreaOptions, Room};
use super::log_block::blocks::Role;
use super::log_block::lru::Lru;
use super::log_block::recover::{Others, Recovered};
use super::read_only::{Evidence, Mounted, Unmounted, or_read_only, unless_short, without_doubt};
use crate::config::{Config, JanusOptions};
use crate::contract::{Ftl, FtlError, Gauge, MountReport, RamItem, RamReport, Shortage};
use crate::flash::{Flash, Purpose};
use crate::inspect::Inspector;
use crate::recovery::copies::Doubt;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use cost::CostModel;
use ghost::{Ghosts, SIZES};
use learn::Learned;
use nand::{BlockId, Lpn, Nand, Ppn, ProgramOrder};
use paged::{LEAST, PagedArea, wanted};
use recycle::SequentialLogs;
use steer::{Rated, Steering};

/// Writes between two defusions that make the PMA as small as it should be.
const DEFLATE_EVERY: u32 = 32;

/// The same where it is steered by what was measured: shrinking then takes longer, and a write
/// waits for less of it.
const DEFLATE_SLOWLY: u32 = 128;

/// How many logical blocks the PMA should hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// So many that its utilisation u_d is this, in percent: N_F = N_O u_d / (1 - u_d).
    UtilisationPercent(u32),
    /// So many, as far as there are so many: 0 is pure block mapping with log blocks, all is page
    /// mapping.
    Fused(u32),
    /// What the workload asks for.
    Adaptive,
}

impl Goal {
    /// The most logical blocks that will ever be fused: at most so many as the page map has entries
    /// for.
    fn most(self, options: JanusOptions, logical_blocks: u32, over_provisioned: u32) -> u32 {
        let mapped = u64::from(logical_blocks) * u64::from(options.page_map_percent.min(100));
        let wanted = match self {
            Self::UtilisationPercent(percent) => over_provisioned.saturating_mul(percent) / (100 - percent.min(99)),
            Self::Fused(blocks) => blocks,
            Self::Adaptive => logical_blocks,
        };
        wanted.min(mapped.div_ceil(100) as u32)
    }
}

/// An FTL that maps part of the device by page, the rest by block.
pub struct HybridFtl<N> {
    area: Area<N>,
    paged: PagedArea,
    sequential: SequentialLogs,
    /// Fused logical blocks, by their last write.
    fused: Lru,
    /// Logical blocks that the PMA should hold.
    target: u32,
    /// Logical blocks that it ever will hold.
    most: u32,
    /// Logical blocks of which the cheapest is defused.
    defuse_among: u32,
    ghosts: Option<Ghosts>,
    /// Steers the target by what was measured, if that is wanted.
    steering: Option<Steering>,
    /// Flash time until the last look at the target, µs.
    spent_us: f64,
    /// Writes of the host until the target is considered again.
    countdown: u32,
}

impl<N: Nand> HybridFtl<N> {
    /// Makes an empty disk of a device.
    ///
    /// # Errors
    /// [`FtlError::Unsupported`] if the device is too small for the logical pages asked for, or the
    /// page map has no entries.
    pub fn format(flash: Flash<N>, config: &Config, name: &'static str, goal: Goal) -> Result<Self, FtlError> {
        check_options(config, name)?;
        let options = AreaOptions { name, least_logs: LEAST, order: ProgramOrder::Sequential, picks_victims: true };
        let area = Area::format(flash, config, options, &|data, over| Self::room(goal, config.janus, data, over))?;
        Ok(Self::new(area, goal, config.janus))
    }

    /// Opens a disk again, also after power loss.
    ///
    /// 1. Maps are made from what is on flash ([`super::log_block::recover`]).
    /// 2. Pages in doubt are written again. Those of the BMA come first: their logical blocks are
    ///    merged, which leaves no fewer blocks free. Those of the PMA are moved, all to one block.
    ///    If one cannot be read then, all is done again without it.
    /// 3. The emptiest blocks of the PMA are collected until `wanted` blocks are free, to the
    ///    same block. It is taken back if this attempt is cut short before a block was emptied, so
    ///    that attempts do not add up.
    /// 4. The blocks that pages in doubt left are emptied and erased, and so are blocks with a torn
    ///    page that a later mount could read. Nothing is taken back then.
    /// 5. Blocks for checkpoints are taken, and step 3 is done again.
    /// 6. Logical blocks beyond the most that may be fused, which trimmed pages that came back can
    ///    make, are defused.
    ///
    /// # Errors
    /// [`FtlError::Unsupported`] and [`FtlError::Damaged`] if the device was formatted for
    /// something else.
    pub fn mount(flash: Flash<N>, config: &Config, name: &'static str, goal: Goal) -> Mounted<N>
    where
        N: 'static,
    {
        let opened = without_doubt(flash, |flash, excluded| Self::open(flash, config, name, goal, excluded));
        or_read_only(opened, config, Evidence::Marks)
    }

    fn open(
        flash: Flash<N>,
        config: &Config,
        name: &'static str,
        goal: Goal,
        excluded: &[Ppn],
    ) -> Result<(Self, MountReport), Unmounted<N>> {
        check_options(config, name)?;
        let options = AreaOptions { name, least_logs: LEAST, order: ProgramOrder::Sequential, picks_victims: true };
        let (area, mut recovered) = Area::mount(
            flash,
            config,
            options,
            Others::LogsAndPaged(SequentialLogs::most),
            &|data, over| Self::room(goal, config.janus, data, over),
            excluded,
        )?;
        let mut ftl = Self::new(area, goal, config.janus);
        if let Err(error) = ftl.settle(&recovered) {
            return Err(ftl.area.unmounted(error));
        }
        recovered.steps.end("rewrite what was written last, free blocks", &ftl.area.flash);
        Ok((ftl, recovered.report()))
    }

    /// Steps 2 to 6.
    fn settle(&mut self, recovered: &Recovered) -> Result<(), FtlError> {
        recovered.fused.iter().for_each(|&lbn| self.fused.touch(lbn));
        for &block in &recovered.logs {
            self.sequential.opened(block, self.area.blocks.owner(block));
        }
        for &Doubt { ppn, lpn, .. } in &recovered.last {
            let lbn = self.area.target(lpn).lbn;
            if self.area.locate(lpn) == ppn && !self.area.fused.is_fused(lbn) {
                self.gather(lbn)?;
            }
        }
        let mut left = Vec::new();
        for &Doubt { ppn, lpn, .. } in &recovered.last {
            if self.area.locate(lpn) == ppn {
                self.paged.move_page(&mut self.area, &self.fused, ppn)?;
                left.push(self.area.blocks.geometry().block_of(ppn));
            }
        }
        self.area.settled();
        self.paged.collect_emptiest(&mut self.area, &self.fused)?;
        for &block in left.iter().chain(&recovered.revenants) {
            if !self.area.blocks.is_restored(block) {
                self.area.clean(block)?;
                continue;
            }
            match self.area.blocks.role(block) {
                Role::Paged => self.paged.empty(&mut self.area, &self.fused, block)?,
                Role::Data | Role::Log => self.gather(self.area.blocks.owner(block))?,
                Role::Free | Role::Bad | Role::Checkpoint => {}
            }
        }
        self.area.complete_sets()?;
        self.paged.collect_emptiest(&mut self.area, &self.fused)?;
        while self.area.fused.excess() > 0 {
            self.defuse_one()?;
        }
        self.area.fused.shrink();
        Ok(())
    }

    fn room(goal: Goal, options: JanusOptions, logical_blocks: u32, over: u32) -> Room {
        Room { logs: SequentialLogs::most(over), fused: goal.most(options, logical_blocks, over) }
    }

    fn new(area: Area<N>, goal: Goal, options: JanusOptions) -> Self {
        let (logical_blocks, over) = (area.table.logical_blocks(), area.blocks.log_limit());
        let most = goal.most(options, logical_blocks, over);
        let adaptive = goal == Goal::Adaptive;
        // The adaptive FTL starts where the fixed one stands.
        let target = if adaptive { Goal::UtilisationPercent(75).most(options, logical_blocks, over) } else { most };
        debug_assert!(target <= most, "the page map has no entries for {target} logical blocks");
        let learning = adaptive && options.learn_utilisation;
        let model = CostModel::paper();
        let ghosts = adaptive.then(|| match learning {
            true => Ghosts::fine(logical_blocks, over, model),
            false => Ghosts::new(logical_blocks, over, model),
        });
        let mut ftl = Self {
            paged: PagedArea::new(area.blocks.geometry().blocks(), learning.then(|| Learned::new(over))),
            sequential: SequentialLogs::new(*area.blocks.geometry(), logical_blocks, over),
            fused: Lru::new(logical_blocks),
            target,
            most,
            defuse_among: options.defuse_among,
            ghosts,
            steering: None,
            spent_us: 0.0,
            countdown: 0,
            area,
        };
        if let (true, Some(ghosts)) = (learning, &mut ftl.ghosts) {
            let mut rated = [Rated::default(); SIZES];
            let sizes = ghosts.rate(most, &mut rated);
            ftl.steering = Some(Steering::new(&rated[..sizes], target, model.program_us));
        }
        ftl.spent_us = ftl.flash_us();
        ftl.countdown = ftl.period();
        ftl
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

    /// Collects until `wanted` blocks are empty.
    #[inline]
    fn make_space(&mut self) -> Result<(), FtlError> {
        if self.area.blocks.free_blocks() < wanted(&self.area) {
            self.paged.make_space(&mut self.area, &self.fused)?;
        }
        Ok(())
    }

    /// Writes a page of a fused logical block.
    fn write_fused(&mut self, lbn: u32, lpn: Lpn, data: &N::Payload) -> Result<(), FtlError> {
        debug_assert!(self.area.fused.is_fused(lbn) && self.fused.contains(lbn));
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

    /// Makes it possible to write a page of the BMA to a sequential log block, or fuses its logical
    /// block.
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
            let Some(oldest) = self.sequential.oldest() else { return Err(self.area.no_space()) };
            self.recycle(oldest)?;
        }
        Ok(false)
    }

    /// Moves data block and log block of a logical block to the PMA: a change of maps.
    fn fuse(&mut self, lbn: u32, log: BlockId) -> Result<(), FtlError> {
        // Two leave for one that enters, so that the PMA shrinks when its target did.
        for _ in 0..2 {
            if self.fused.len() >= self.target || self.area.fused.free_groups() == 0 {
                self.defuse_one()?;
            }
        }
        let data = self.area.fuse(lbn, log);
        debug_assert!(!self.fused.contains(lbn), "logical block {lbn} is fused already");
        self.fused.touch(lbn);
        for block in [data, log] {
            if block.is_some() {
                self.paged.joined(&mut self.area, block);
            }
        }
        Ok(())
    }

    /// The logical block to defuse: that written least recently, or the cheapest to defuse of some
    /// that were. Of equals it is the one written less recently.
    fn leaves_next(&self) -> Option<u32> {
        let among = self.defuse_among.min(self.fused.len() / 2);
        if among <= 1 {
            return self.fused.oldest();
        }
        self.fused.iter().take(among as usize).min_by_key(|&lbn| self.defusing_costs(lbn))
    }

    /// What gathering a fused logical block costs, less what its leaving saves collections, in page
    /// copies times pages a block.
    ///
    /// Every live page is copied. In return its block, when collected, has a page less to move;
    /// that counts the more the emptier that block is, as the emptiest are collected next: 1 -
    /// valid / pages.
    fn defusing_costs(&self, lbn: u32) -> u32 {
        let geometry = self.area.blocks.geometry();
        let pages = (0..geometry.pages_per_block()).map(|offset| self.area.fused.get(lbn, offset));
        pages.filter(|ppn| ppn.is_some()).map(|ppn| self.area.blocks.valid(geometry.block_of(ppn))).sum()
    }

    /// Gathers a logical block of the PMA into a data block.
    fn defuse_one(&mut self) -> Result<(), FtlError> {
        if let Some(lbn) = self.leaves_next() {
            self.make_space()?;
            self.area.merge(lbn, None)?;
            self.fused.remove(lbn);
            debug_assert!(!self.area.fused.is_fused(lbn), "logical block {lbn} is still mapped by page");
        }
        Ok(())
    }

    /// Gathers a logical block of the BMA into a data block, and frees its log block.
    fn gather(&mut self, lbn: u32) -> Result<(), FtlError> {
        debug_assert!(!self.area.fused.is_fused(lbn), "logical block {lbn} is mapped by page");
        self.area.merge(lbn, None)?;
        let log = self.sequential.log_of(lbn);
        if log.is_some() {
            self.area.release(log)?;
            self.sequential.closed(lbn);
        }
        Ok(())
    }

    /// Moves what lives in a tired block, if there is one.
    #[inline]
    fn refresh(&mut self) -> Result<(), FtlError> {
        match self.area.tired() {
            None => Ok(()),
            Some(block) => self.refresh_block(block),
        }
    }

    #[cold]
    fn refresh_block(&mut self, block: BlockId) -> Result<(), FtlError> {
        self.area.checkpoint_if_due()?;
        self.make_space()?;
        self.area.flash.rested(block);
        debug_assert!(self.area.moving_for == Purpose::Gc, "pages are being moved for something else");
        self.area.moving_for = Purpose::Refresh;
        let outcome = match self.area.blocks.role(block) {
            Role::Data | Role::Log => self.gather(self.area.blocks.owner(block)),
            Role::Paged => self.paged.empty(&mut self.area, &self.fused, block),
            // Checkpoints are written again before long.
            Role::Checkpoint | Role::Free | Role::Bad => Ok(()),
        };
        self.area.moving_for = Purpose::Gc;
        outcome
    }

    /// Shrinks a PMA that holds more than it should, a logical block every [`DEFLATE_EVERY`]
    /// writes: writes that all hit fuse nothing, and what left the target behind would stay for
    /// ever.
    #[inline]
    fn deflate(&mut self) -> Result<(), FtlError> {
        let every = if self.steering.is_some() { DEFLATE_SLOWLY } else { DEFLATE_EVERY };
        if self.fused.len() > self.target && self.countdown.is_multiple_of(every) {
            self.defuse_one()?;
        }
        Ok(())
    }
}

impl<N: Nand> Ftl<N> for HybridFtl<N> {
    fn logical_pages(&self) -> u32 {
        self.area.logical_pages
    }

    fn read(&mut self, lpn: Lpn, out: &mut N::Payload) -> Result<(), FtlError> {
        self.area.check_range(lpn, 1)?;
        unless_short(self.refresh())?;
        let ppn = self.area.locate(lpn);
        self.area.read(Purpose::Host, lpn, ppn, out)
    }

    #[inline]
    fn write(&mut self, lpn: Lpn, data: &N::Payload) -> Result<(), FtlError> {
        self.area.check_write(lpn, 1)?;
        self.refresh()?;
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

    /// A completed write is on flash with a spare area that says what it is; trims are in
    /// checkpoints. Blocks that failed may have left none for a checkpoint, until others are
    /// collected.
    fn flush(&mut self) -> Result<(), FtlError> {
        match self.area.flush() {
            Err(FtlError::NoSpace(_)) if self.area.read_only().is_none() => {
                self.make_space()?;
                self.area.flush()
            }
            outcome => outcome,
        }
    }

    /// Moves what can barely be read any more; else defuses a logical block if the PMA holds more
    /// than it should.
    fn idle(&mut self) -> Result<bool, FtlError> {
        self.area.flash.check_host()?;
        if self.area.tired().is_some() {
            return self.refresh().map(|()| true);
        }
        if self.fused.len() <= self.target || self.area.read_only().is_some() {
            return Ok(false);
        }
        self.defuse_one()?;
        Ok(true)
    }

    fn ram(&self) -> RamReport {
        let mut report = RamReport::new();
        self.area.ram(&mut report);
        report.push(RamItem { name: "sequential_logs", bytes: self.sequential.ram_bytes() });
        report.push(RamItem { name: "fused_blocks", bytes: self.fused.ram_bytes() + self.paged.ram_bytes() });
        if let Some(ghosts) = &self.ghosts {
            let steering = self.steering.as_ref().map_or(0, |_| size_of::<Steering>() as u64);
            report.push(RamItem { name: "ghost_buffers", bytes: ghosts.ram_bytes() + steering });
        }
        report
    }

    fn gauges(&self) -> Vec<Gauge> {
        let (collections, live) = self.paged.collections();
        let mut gauges = alloc::vec![
            Gauge { name: "fused_blocks", value: u64::from(self.fused.len()) },
            Gauge { name: "fused_blocks_wanted", value: u64::from(self.target) },
            Gauge { name: "paged_area_collections", value: collections },
            Gauge { name: "paged_area_collected_live_pages", value: live },
        ];
        if let Some(learned) = self.paged.learned() {
            gauges.push(Gauge { name: "learned_bend_percent", value: (learned.bend() * 100.0) as u64 });
        }
        gauges
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
        self.area.check()?;
        self.paged.check(&self.area)?;
        let fused = (0..self.area.table.logical_blocks()).filter(|&lbn| self.area.fused.is_fused(lbn)).count();
        if fused != self.fused.len() as usize {
            return Err(alloc::format!("{fused} logical blocks are fused but {} are listed", self.fused.len()));
        }
        Ok(())
    }
}

/// Refuses a page map without entries, which could fuse nothing, or with more than there are pages.
fn check_options(config: &Config, ftl: &'static str) -> Result<(), FtlError> {
    let percent = config.janus.page_map_percent;
    if (1..=100).contains(&percent) {
        return Ok(());
    }
    let reason =
        alloc::format!("a page map cannot have entries for {percent}% of the logical blocks; ask for 1 to 100");
    Err(FtlError::Unsupported { ftl, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_blocks_are_fused_as_the_goal_says_up_to_what_the_page_map_holds() {
        let options = |page_map_percent| JanusOptions { page_map_percent, ..JanusOptions::default() };
        for (percent, most) in [(0, 0), (50, 10), (75, 30), (99, 990), (100, 1000)] {
            assert_eq!(Goal::UtilisationPercent(percent).most(options(100), 1000, 10), most, "{percent}%");
        }
        assert_eq!(Goal::Fused(7).most(options(100), 1000, 10), 7);
        assert_eq!([50, 100, 200].map(|percent| Goal::Adaptive.most(options(percent), 999, 10)), [500, 999, 999]);
    }
}
