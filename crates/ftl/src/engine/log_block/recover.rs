//! Finding an area again on flash after power loss.
//!
//! 1. The newest copy of every logical page is found ([`Copies`]); the block that a merge or a
//!    collector was filling when power was cut is taken back and erased before anything is
//!    programmed.
//! 2. A block in which pages live, all of one logical block and at their offsets, is its data
//!    block; of several the oldest.
//! 3. Every other block in which pages live is a log block, or, if there is a page-mapped area,
//!    belongs to that: if a page in it was written there, if it holds pages of more than one
//!    logical block, or if it holds pages of a logical block of which one of these is true. Nothing
//!    needs to be known of a switch merge or a fusion, which change maps only: what lives where
//!    says all.
//! 4. No block is written further. Free ones are erased when they are taken.
//!
//! Cut short at any point, any number of times, it can be done again: what was programmed is an
//! unfinished merge, which is taken back, or a finished one, which freed its sources.

use super::area::{Area, AreaOptions, Room};
use super::blocks::{Restored, Role, SHARED};
use crate::config::{Config, Maps};
use crate::contract::{FtlError, MountReport, Shortage};
use crate::engine::read_only::{Unmounted, is_unreadable};
use crate::flash::{Flash, Purpose};
use crate::recovery::check_seq;
use crate::recovery::checkpoint::Checkpoint;
use crate::recovery::copies::{Copies, Copy, Doubt};
use crate::recovery::mark::{Mark, Writer};
use crate::recovery::steps::Steps;
use alloc::vec;
use alloc::vec::Vec;
use nand::{BlockId, Geometry, Lpn, Nand, Ppn};

/// What may become of blocks that are no data blocks.
#[derive(Clone, Copy, Debug)]
pub enum Others {
    /// Log blocks.
    Logs,
    /// Log blocks of one logical block each, of so many over-provisioned blocks so many; else part
    /// of the page-mapped area.
    LogsAndPaged(fn(u32) -> u32),
}

/// What a mount found besides the maps.
pub struct Recovered {
    /// Log blocks in which pages live, the oldest first.
    pub logs: Vec<BlockId>,
    /// Fused logical blocks, the one written least recently first; perhaps more than there was to
    /// be room for.
    pub fused: Vec<u32>,
    /// Newest copies that are in doubt until they are copied, the newest first
    /// ([`Copies::in_doubt`]).
    pub last: Vec<Doubt>,
    /// Blocks with a torn page, or a checkpoint, that might count at a later mount: to be emptied
    /// and erased.
    pub revenants: Vec<BlockId>,
    /// The steps so far.
    pub steps: Steps,
    /// Pages that could not be read.
    pub unreadable_pages: u64,
    /// Logical pages that have a copy.
    pub rebuilt_entries: u64,
}

impl Recovered {
    /// The report of a mount that ends with a disk that can be written.
    pub fn report(self) -> MountReport {
        let Self { steps, unreadable_pages, rebuilt_entries, .. } = self;
        steps.report(unreadable_pages, rebuilt_entries)
    }
}

/// What is on flash.
struct Found {
    copies: Copies,
    /// Blocks that changed since the checkpoint.
    changed: u32,
    /// The blocks of the youngest checkpoint.
    kept: Vec<BlockId>,
    /// Those of the one before it.
    older: Vec<BlockId>,
    /// Whether the youngest was complete when power went.
    complete: bool,
    /// Blocks of others.
    others: Vec<BlockId>,
}

/// Of what use each block is.
struct Plan {
    geometry: Geometry,
    valid: Vec<u32>,
    /// The logical block whose pages live in each block, or [`SHARED`].
    owner: Vec<u32>,
    role: Vec<Role>,
    /// The data block of each logical block.
    data: Vec<BlockId>,
    fused: Vec<bool>,
}

impl<N: Nand> Area<N> {
    /// Finds an area again.
    ///
    /// # Errors
    /// [`FtlError::Unsupported`] and [`FtlError::Damaged`] if the device was formatted for
    /// something else; those of the device.
    pub fn mount(
        mut flash: Flash<N>,
        config: &Config,
        options: AreaOptions,
        others: Others,
        room: &dyn Fn(u32, u32) -> Room,
        excluded: &[Ppn],
    ) -> Result<(Self, Recovered), Unmounted<N>> {
        if config.maps == Maps::NonVolatile {
            let reason = "its maps are assumed to be in non-volatile memory, which is not simulated; mount it with maps \
                          in flash, as it was formatted";
            return Err(FtlError::Unsupported { ftl: options.name, reason: reason.into() }.into());
        }
        let size = Self::check_size(&flash, config, options, room)?;
        let (blocks, needed, bad_blocks) = (flash.nand().geometry().blocks(), size.needed, size.bad_blocks);
        if bad_blocks + needed > blocks {
            return Err(Unmounted::with(flash, Shortage { bad_blocks, blocks, needed }.into()));
        }
        let mut steps = Steps::begin(&flash);
        let found = Self::read_copies(&mut flash, config.logical_pages, excluded, &mut steps)?;
        let Found { mut copies, changed, kept, complete, older, others: checkpoints } = found;
        let mut was_filling = false;
        // An earlier mount that was cut short may have been filling another.
        while let Some(block) = copies.take_back(&mut flash)? {
            flash.erase_or_retire(Purpose::Recovery, block)?;
            was_filling = true;
        }
        if was_filling {
            steps.end("erase what was being filled by a merge or collection", &flash);
        }
        check_seq(copies.last_programmed().map_or(Ppn::NONE, |(ppn, _)| ppn), copies.next_seq())?;
        let mut area = Self::empty(flash, config, options, &size, room);
        area.seq = copies.next_seq();
        debug_assert!(copies.last_programmed().is_none_or(|(_, spare)| spare.seq < area.seq));
        let mut plan = Plan::new(*area.blocks.geometry(), area.table.logical_blocks(), &copies);
        if let Others::LogsAndPaged(logs) = others {
            plan.page_mapped(&copies, logs(area.blocks.log_limit()));
        }
        kept.iter().chain(&older).for_each(|block| plan.role[block.index()] = Role::Checkpoint);
        area.adopt(&copies, &plan);
        area.checkpoints.resume(kept, older, complete, changed);
        let logs = area.restore_maps(&copies, &plan)?;
        let last = match area.doubts(&copies) {
            Ok(last) => last,
            Err(error) => return Err(area.unmounted(error)),
        };
        // What is in doubt may turn out not to count: what it superseded is erased last. The
        // youngest blocks are left of mounts that were cut short.
        area.blocks.rank_free(|block| {
            let found = copies.block(block);
            if found.used { 1 + (u64::MAX - 1 - found.first_seq.min(u64::MAX - 1)) } else { 0 }
        });
        let recovered = Recovered {
            logs,
            fused: plan.fused_by_last_write(&copies),
            last,
            revenants: copies.revenants().chain(checkpoints).collect(),
            steps,
            unreadable_pages: copies.unreadable,
            rebuilt_entries: copies.newest().count() as u64,
        };
        Ok((area, recovered))
    }

    /// The copies on flash, from a checkpoint on or without one.
    fn read_copies(
        flash: &mut Flash<N>,
        logical_pages: u32,
        excluded: &[Ppn],
        steps: &mut Steps,
    ) -> Result<Found, FtlError> {
        let (checkpoint, mut others) = Checkpoint::find(flash, logical_pages)?;
        steps.end("find the checkpoint", flash);
        if let Some(checkpoint) = checkpoint {
            let rolled = checkpoint.roll_forward(flash, excluded)?;
            steps.end("roll forward", flash);
            if let Some((copies, changed)) = rolled {
                let complete = checkpoint.sealed || copies.was_checkpoint_complete();
                let (kept, older) = (checkpoint.blocks, checkpoint.older);
                return Ok(Found { copies, changed, kept, complete, older, others });
            }
            others.extend(checkpoint.blocks.into_iter().chain(checkpoint.older));
        }
        let copies = Copies::scan(flash, logical_pages, excluded)?;
        steps.end("scan every spare area", flash);
        Ok(Found { copies, changed: u32::MAX, kept: Vec::new(), complete: false, older: Vec::new(), others })
    }

    /// What is in doubt and lives. What it superseded is spared.
    fn doubts(&mut self, copies: &Copies) -> Result<Vec<Doubt>, FtlError> {
        let mut last = copies.in_doubt(&mut self.flash)?;
        last.retain(|doubt| self.locate(doubt.lpn) == doubt.ppn);
        self.in_doubt.clone_from(&last);
        // A mount that was cut short may have half erased a block whose last page it could not
        // read.
        let geometry = *self.blocks.geometry();
        let fading = last.iter().filter(|doubt| doubt.may_fade).map(|doubt| geometry.block_of(doubt.ppn));
        let fading: Vec<BlockId> = fading.collect();
        let may_fade = |doubt: &Doubt| fading.contains(&geometry.block_of(doubt.ppn));
        for doubt in last.iter().filter(|doubt| !may_fade(doubt) && !doubt.was_complete) {
            self.flash.probe(Purpose::Recovery, doubt.ppn)?;
        }
        last.retain(may_fade);
        copies.before(&last).for_each(|before| self.spare_superseded(before));
        Ok(last)
    }

    /// Why a mount failed, with the device; it may be for a page in doubt.
    pub fn unmounted(self, error: FtlError) -> Unmounted<N> {
        let doubts = self.in_doubt.iter().filter(|doubt| !doubt.was_complete);
        let doubtful = doubts.map(|doubt| doubt.ppn).find(|ppn| is_unreadable(&error, *ppn));
        Unmounted::in_doubt(self.flash, error, doubtful)
    }

    fn adopt(&mut self, copies: &Copies, plan: &Plan) {
        let mean = copies.mean_erases();
        self.blocks.restore(copies.erased_at, |block| {
            let (found, at) = (copies.block(block), block.index());
            Restored {
                role: plan.role[at],
                owner: plan.owner[at],
                aligned: plan.owner[at] != SHARED && found.home_of == plan.owner[at],
                valid: plan.valid[at],
                erase_count: found.erase_count.unwrap_or(mean),
            }
        });
        for (lbn, &block) in (0..).zip(&plan.data) {
            self.table.replace(lbn, block);
        }
        let fused = || (0..plan.fused.len() as u32).filter(|&lbn| plan.fused[lbn as usize]);
        // Trimmed pages that come back can make a logical block count as fused that no longer was.
        self.fused.grow((fused().count() as u32).saturating_sub(self.fused.free_groups()));
        for lbn in fused() {
            self.fused.fuse(lbn);
        }
    }

    fn restore_maps(&mut self, copies: &Copies, plan: &Plan) -> Result<Vec<BlockId>, FtlError> {
        let geometry = *self.blocks.geometry();
        let all = || (0..geometry.blocks()).map(BlockId);
        let mut logs: Vec<BlockId> = all().filter(|block| plan.role[block.index()] == Role::Log).collect();
        logs.sort_unstable_by_key(|&block| copies.block(block).first_seq);
        for &block in &logs {
            let Some(slot) = self.log.open(block) else {
                let reason = "there are more of them than this disk can have: the device was written by another FTL \
                              or with other options";
                return Err(FtlError::Damaged { structure: "log block", ppn: geometry.page_at(block, 0), reason });
            };
            self.blocks.set_slot(block, slot);
        }
        for (lpn, Copy { ppn, .. }) in copies.newest() {
            let (block, offset) = (geometry.block_of(ppn), geometry.offset_of(ppn));
            match self.blocks.role(block) {
                Role::Data => self.table.came_home(lpn),
                Role::Paged => {
                    let at = self.target(lpn);
                    self.fused.set(at.lbn, at.offset, ppn);
                }
                Role::Log => self.log.insert(self.blocks.slot(block), offset, lpn),
                Role::Free | Role::Bad | Role::Checkpoint => {
                    let reason = "it shows host data in a block of checkpoints: the device is damaged, or another program \
                                  wrote to it";
                    return Err(FtlError::Damaged { structure: "spare area", ppn, reason });
                }
            }
        }
        for block in all().filter(|block| plan.role[block.index()] == Role::Paged) {
            self.blocks.offer(block);
        }
        debug_assert!(copies.newest().all(|(lpn, copy)| self.locate(lpn) == copy.ppn), "a map misses a copy");
        Ok(logs)
    }
}

/// No page lives in the block.
const NOBODY: u32 = SHARED - 1;

impl Plan {
    /// Data blocks, and log blocks.
    fn new(geometry: Geometry, logical_blocks: u32, copies: &Copies) -> Self {
        let blocks = geometry.blocks() as usize;
        let mut plan = Self {
            geometry,
            valid: vec![0; blocks],
            owner: vec![NOBODY; blocks],
            role: vec![Role::Free; blocks],
            data: vec![BlockId::NONE; logical_blocks as usize],
            fused: vec![false; logical_blocks as usize],
        };
        for (lpn, copy) in copies.newest() {
            let at = geometry.block_of(copy.ppn).index();
            let lbn = plan.lbn(lpn);
            plan.valid[at] += 1;
            plan.owner[at] = if plan.owner[at] == NOBODY || plan.owner[at] == lbn { lbn } else { SHARED };
        }
        for block in (0..geometry.blocks()).map(BlockId).filter(|block| plan.owner[block.index()] != NOBODY) {
            let owner = plan.owner[block.index()];
            plan.role[block.index()] = Role::Log;
            if owner != SHARED && copies.block(block).home_of == owner {
                let data = &mut plan.data[owner as usize];
                if !data.is_some() || copies.block(block).first_seq < copies.block(*data).first_seq {
                    *data = block;
                }
            }
        }
        for block in plan.data.iter().filter(|block| block.is_some()) {
            plan.role[block.index()] = Role::Data;
        }
        debug_assert!(plan.valid.iter().all(|valid| *valid <= geometry.pages_per_block()));
        for owner in &mut plan.owner {
            *owner = if *owner == NOBODY { SHARED } else { *owner };
        }
        plan
    }

    fn lbn(&self, lpn: Lpn) -> u32 {
        self.geometry.block_of(Ppn(lpn.0)).0
    }

    /// Gives the page-mapped area what belongs to it, and of other log blocks all but the youngest
    /// so many.
    fn page_mapped(&mut self, copies: &Copies, logs: u32) {
        for (lpn, copy) in copies.newest() {
            if Mark::decode(copy.aux).writer == Writer::Paged {
                let lbn = self.lbn(lpn) as usize;
                self.fused[lbn] = true;
            }
        }
        self.spread(copies);
        let mut others: Vec<(u64, BlockId)> = (0..self.geometry.blocks())
            .map(BlockId)
            .filter(|block| self.role[block.index()] == Role::Log)
            .map(|block| (copies.block(block).first_seq, block))
            .collect();
        others.sort_unstable();
        let mut kept = vec![false; self.data.len()];
        let mut left = logs;
        for (_, block) in others.into_iter().rev() {
            let owner = self.owner[block.index()] as usize;
            debug_assert!(owner < self.data.len(), "{block} is shared and not page-mapped");
            if left == 0 || core::mem::replace(&mut kept[owner], true) {
                self.fused[owner] = true;
            } else {
                left -= 1;
            }
        }
        self.spread(copies);
    }

    /// Blocks with pages of a fused logical block are page-mapped, and logical blocks with pages in
    /// those are fused.
    fn spread(&mut self, copies: &Copies) {
        loop {
            let mut changed = false;
            for (lpn, copy) in copies.newest() {
                let (at, lbn) = (self.geometry.block_of(copy.ppn).index(), self.lbn(lpn) as usize);
                let fused = self.fused[lbn] || self.role[at] == Role::Paged || self.owner[at] == SHARED;
                if fused && (!self.fused[lbn] || self.role[at] != Role::Paged) {
                    (self.fused[lbn], self.role[at]) = (true, Role::Paged);
                    self.owner[at] = SHARED;
                    self.data[lbn] = BlockId::NONE;
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    fn fused_by_last_write(&self, copies: &Copies) -> Vec<u32> {
        let mut last = vec![0; self.fused.len()];
        for (lpn, copy) in copies.newest() {
            let seq = &mut last[self.lbn(lpn) as usize];
            *seq = copy.seq().max(*seq);
        }
        let mut fused: Vec<u32> = (0..last.len() as u32).filter(|&lbn| self.fused[lbn as usize]).collect();
        fused.sort_by_key(|&lbn| last[lbn as usize]);
        fused
    }
}
