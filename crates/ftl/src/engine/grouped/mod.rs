//! The grouped engine: groups of neighbouring logical blocks, *superblocks*, that are mapped by
//! page within blocks of their own.
//!
//! A write's journey:
//! 1. The page goes to the next page of the block that its superblock has open for the host.
//! 2. If that is full, the superblock opens another, unless it has as many extra blocks as it may
//!    have, or too few are free.
//! 3. Else it collects its emptiest block. What lives there goes to a block apart from the host's:
//!    it outlived what was written with it and is cold, while what the host writes is hot. Only if
//!    no block can be opened then, the host fills up the cold one.
//! 4. A superblock that has no extra block gets one from the superblock written least recently that
//!    has, of which blocks are collected until one is free.
//!
//! A superblock's pages never fill more blocks than it has logical blocks. So of the blocks of one
//! that has more, some have dead pages, and collecting the emptiest gains, until it has no more;
//! and if few blocks are free, some superblock has more.
//!
//! One block more than [`RESERVE`] is free between requests: a mount may have to take one before it
//! can free one.

use super::log_block::area::{Area, AreaOptions, Room};
use super::log_block::blocks::{RESERVE, Role};
use super::log_block::groups::{Groups, Owed};
use super::log_block::recover::{Others, Recovered};
use super::read_only::{Evidence, Mounted, Unmounted, or_read_only, unless_short, without_doubt};
use crate::config::{Config, GroupOptions};
use crate::contract::{Ftl, FtlError, Gauge, MountReport, RamItem, RamReport, Shortage};
use crate::flash::{Flash, Purpose};
use crate::inspect::Inspector;
use crate::recovery::copies::Doubt;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use nand::{BlockId, Lpn, Nand, Ppn, ProgramOrder};

/// The blocks of a superblock that take further pages, or [`BlockId::NONE`].
#[derive(Clone, Copy, Debug)]
struct Open {
    /// From the host.
    hot: BlockId,
    /// From collected blocks.
    cold: BlockId,
}

const CLOSED: Open = Open { hot: BlockId::NONE, cold: BlockId::NONE };

/// An FTL with superblocks.
pub struct GroupedFtl<N> {
    area: Area<N>,
    /// The blocks of each superblock.
    groups: Groups,
    open: Vec<Open>,
    /// K: blocks that a superblock may have beyond one for each of its logical blocks.
    extra: u32,
    /// Blocks collected, and pages that lived in them.
    collected: u64,
    collected_live_pages: u64,
}

fn room(logical_blocks: u32, _: u32) -> Room {
    Room { logs: 0, fused: logical_blocks }
}

/// One block for [`RESERVE`] to be whole when a request begins, and one that a superblock can have.
const fn options(name: &'static str) -> AreaOptions {
    AreaOptions { name, least_logs: 2, order: ProgramOrder::Sequential, picks_victims: false }
}

impl<N: Nand> GroupedFtl<N> {
    /// Makes an empty disk of a device.
    ///
    /// # Errors
    /// [`FtlError::Unsupported`] if the device is too small for the logical pages asked for.
    pub fn format(
        flash: Flash<N>,
        config: &Config,
        name: &'static str,
        groups: GroupOptions,
    ) -> Result<Self, FtlError> {
        let area = Area::format(flash, config, options(name), &room)?;
        Ok(Self::new(area, groups))
    }

    /// Opens a disk again, also after power loss.
    ///
    /// 1. Maps are made from what is on flash ([`super::log_block::recover`]); a block belongs to
    ///    the superblock of the pages that live in it.
    /// 2. The blocks with the page programmed last and the one that the host wrote last are
    ///    collected, so that these pages do not depend on programs that may have been cut short.
    ///    That frees a block for the one it takes, or is taken back, so attempts do not add up. If
    ///    one of these pages cannot be read then, all is done again without it. Blocks with a torn
    ///    page that a later mount could read are emptied and erased.
    /// 3. Blocks are collected until so many are free as between requests: trimmed pages that came
    ///    back may hold some.
    ///
    /// # Errors
    /// [`FtlError::Unsupported`] and [`FtlError::Damaged`] if the device was formatted for
    /// something else, or with other groups.
    pub fn mount(flash: Flash<N>, config: &Config, name: &'static str, groups: GroupOptions) -> Mounted<N>
    where
        N: 'static,
    {
        let opened = without_doubt(flash, |flash, excluded| Self::open(flash, config, name, groups, excluded));
        or_read_only(opened, config, Evidence::Marks)
    }

    fn open(
        flash: Flash<N>,
        config: &Config,
        name: &'static str,
        groups: GroupOptions,
        excluded: &[Ppn],
    ) -> Result<(Self, MountReport), Unmounted<N>> {
        let (area, mut recovered) =
            Area::mount(flash, config, options(name), Others::LogsAndPaged(|_| 0), &room, excluded)?;
        let mut ftl = Self::new(area, groups);
        if let Err(error) = ftl.settle(&recovered) {
            return Err(ftl.area.unmounted(error));
        }
        recovered.steps.end("collect the block that was written last, free blocks", &ftl.area.flash);
        Ok((ftl, recovered.report()))
    }

    /// The rest of step 1, and steps 2 and 3.
    fn settle(&mut self, recovered: &Recovered) -> Result<(), FtlError> {
        self.adopt()?;
        for &lbn in &recovered.fused {
            self.groups.touch(self.groups.group(lbn));
        }
        for &Doubt { ppn, lpn, .. } in &recovered.last {
            if self.area.locate(lpn) == ppn {
                self.empty(self.area.blocks.geometry().block_of(ppn))?;
            }
        }
        self.area.settled();
        for &block in &recovered.revenants {
            self.empty(block)?;
            self.area.clean(block)?;
        }
        self.area.complete_sets()?;
        while self.area.blocks.free_blocks() < RESERVE {
            self.take_extra()?;
        }
        Ok(())
    }

    /// Collects a block, if it belongs to a superblock.
    fn empty(&mut self, block: BlockId) -> Result<(), FtlError> {
        match self.groups.owner(block) {
            Some(group) => self.collect(group, block),
            None => Ok(()),
        }
    }

    /// Maps every logical block by page.
    fn new(mut area: Area<N>, GroupOptions { blocks, extra }: GroupOptions) -> Self {
        let logical_blocks = area.table.logical_blocks();
        for lbn in 0..logical_blocks {
            if !area.fused.is_fused(lbn) {
                area.fused.fuse(lbn);
            }
        }
        let groups = Groups::new(area.blocks.geometry(), logical_blocks, blocks, Owed::OneForEach);
        Self {
            open: alloc::vec![CLOSED; groups.len() as usize],
            groups,
            area,
            extra,
            collected: 0,
            collected_live_pages: 0,
        }
    }

    /// Gives every block that a mount found to the superblock of the pages in it.
    fn adopt(&mut self) -> Result<(), FtlError> {
        let geometry = *self.area.blocks.geometry();
        for block in (0..geometry.blocks()).map(BlockId) {
            match self.area.blocks.role(block) {
                Role::Data | Role::Log => {
                    let reason = "it is not mapped by page: the device was written by another FTL";
                    return Err(FtlError::Damaged { structure: "superblock", ppn: geometry.page_at(block, 0), reason });
                }
                Role::Paged | Role::Free | Role::Bad | Role::Checkpoint => {}
            }
        }
        for lpn in (0..self.area.logical_pages).map(Lpn) {
            let ppn = self.area.locate(lpn);
            if !ppn.is_some() {
                continue;
            }
            let (block, group) = (geometry.block_of(ppn), self.groups.group(self.area.target(lpn).lbn));
            debug_assert!(self.area.blocks.role(block) == Role::Paged && self.area.fused.lives(ppn));
            match self.groups.owner(block) {
                None => self.groups.push(group, block),
                Some(owner) if owner == group => {}
                Some(_) => {
                    let reason = "its block holds pages of two superblocks: the device was written by another FTL or with \
                                  other options";
                    return Err(FtlError::Damaged { structure: "superblock", ppn, reason });
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn has_room(&self, block: BlockId) -> bool {
        block.is_some() && self.area.blocks.has_room(block)
    }

    /// The block that takes the next page of the host to a superblock; blocks are collected first
    /// if one has to be free.
    #[inline]
    fn hot(&mut self, group: u32) -> Result<BlockId, FtlError> {
        let hot = self.open[group as usize].hot;
        if self.has_room(hot) { Ok(hot) } else { self.open_hot(group) }
    }

    /// Finds room for the host: in a block of its own, or if none is free with the pages that were
    /// collected.
    #[cold]
    fn open_hot(&mut self, group: u32) -> Result<BlockId, FtlError> {
        self.open[group as usize].hot = BlockId::NONE;
        while self.groups.excess(group) >= self.extra || self.area.blocks.free_blocks() <= RESERVE {
            let cold = self.open[group as usize].cold;
            if self.has_room(cold) && self.area.blocks.free_blocks() >= RESERVE {
                return Ok(cold);
            }
            if self.groups.excess(group) > 0 { self.collect_emptiest(group)? } else { self.take_extra()? }
        }
        let block = self.area.open_paged()?;
        debug_assert!(self.groups.excess(group) < self.extra, "superblock {group} has as many blocks as it may");
        self.groups.push(group, block);
        self.open[group as usize].hot = block;
        Ok(block)
    }

    /// Moves what lives in a block that can barely be read any more.
    #[cold]
    fn refresh(&mut self, block: BlockId) -> Result<(), FtlError> {
        self.area.checkpoint_if_due()?;
        self.area.flash.rested(block);
        debug_assert!(self.area.moving_for == Purpose::Gc, "pages are being moved for something else");
        while self.area.blocks.free_blocks() <= RESERVE {
            let Some(oldest) = self.groups.by_last_use().next() else { return Ok(()) };
            self.collect_emptiest(oldest)?;
        }
        let Some(group) = self.groups.owner(block) else { return Ok(()) };
        self.area.moving_for = Purpose::Refresh;
        let outcome = self.collect(group, block);
        self.area.moving_for = Purpose::Gc;
        outcome
    }

    /// Collects a block of the superblock written least recently that has an extra one.
    fn take_extra(&mut self) -> Result<(), FtlError> {
        let Some(oldest) = self.groups.by_last_use().next() else { return Err(self.area.no_space()) };
        self.collect_emptiest(oldest)
    }

    /// Collects until the reserve is whole again: programs that failed may have taken from it.
    fn free_reserve(&mut self) -> Result<(), FtlError> {
        while self.area.blocks.free_blocks() < RESERVE {
            let Some(oldest) = self.groups.by_last_use().next() else { break };
            self.collect_emptiest(oldest)?;
        }
        Ok(())
    }

    /// Collects the block of a superblock in which least lives. The one that takes what lives is
    /// spared unless nothing lives in it.
    fn collect_emptiest(&mut self, group: u32) -> Result<(), FtlError> {
        let (blocks, cold) = (&self.area.blocks, self.open[group as usize].cold);
        let others = self.groups.blocks(group).filter(|&block| block != cold || blocks.valid(block) == 0);
        match others.min_by_key(|&block| blocks.valid(block)) {
            Some(block) if blocks.valid(block) < blocks.geometry().pages_per_block() => self.collect(group, block),
            _ => Err(self.area.no_space()),
        }
    }

    /// Moves what lives in a block, then frees it.
    fn collect(&mut self, group: u32, victim: BlockId) -> Result<(), FtlError> {
        debug_assert!(self.groups.owner(victim) == Some(group), "{victim} is not of superblock {group}");
        let open = &mut self.open[group as usize];
        for open in [&mut open.hot, &mut open.cold] {
            if *open == victim {
                *open = BlockId::NONE;
            }
        }
        self.collected += 1;
        self.collected_live_pages += u64::from(self.area.blocks.valid(victim));
        let geometry = *self.area.blocks.geometry();
        for from in (0..self.area.blocks.next(victim)).map(|offset| geometry.page_at(victim, offset)) {
            if self.area.blocks.valid(victim) == 0 {
                break;
            }
            if self.area.fused.lives(from) {
                self.move_page(group, from)?;
            }
        }
        self.area.release(victim)?;
        self.groups.remove(victim);
        Ok(())
    }

    fn move_page(&mut self, group: u32, from: Ppn) -> Result<(), FtlError> {
        let owner = self.area.owner_of_paged(from)?;
        let Some(lpn) = owner.or_else(|| self.mapped_to(group, from)) else { return Ok(()) };
        loop {
            let mut cold = self.open[group as usize].cold;
            if !self.has_room(cold) {
                cold = self.area.open_paged()?;
                self.groups.push(group, cold);
                self.open[group as usize].cold = cold;
            }
            debug_assert!(self.groups.owner(cold) == Some(group) && self.area.blocks.geometry().block_of(from) != cold);
            let moved = match owner {
                Some(_) => self.area.move_page(from, cold, lpn)?,
                None => self.area.give_up_page(from, cold, lpn)?,
            };
            if moved {
                return Ok(());
            }
        }
    }

    /// Whose page it is if its spare area cannot be read: only the map knows.
    #[cold]
    fn mapped_to(&self, group: u32, page: Ppn) -> Option<Lpn> {
        let mut lpns = (0..self.area.logical_pages).map(Lpn);
        let owned = |lpn: &Lpn| self.groups.group(self.area.target(*lpn).lbn) == group;
        lpns.find(|lpn| owned(lpn) && self.area.locate(*lpn) == page)
    }

    /// Every page-mapped block belongs to a superblock, and every page is in a block of its own
    /// superblock.
    fn check_groups(&self) -> Result<(), String> {
        let geometry = *self.area.blocks.geometry();
        for block in (0..geometry.blocks()).map(BlockId) {
            let role = self.area.blocks.role(block);
            if self.groups.owner(block).is_some() != (role == Role::Paged) {
                return Err(alloc::format!("{block} is {role:?}, its superblock {:?}", self.groups.owner(block)));
            }
        }
        for lpn in (0..self.area.logical_pages).map(Lpn) {
            let (ppn, group) = (self.area.locate(lpn), self.groups.group(self.area.target(lpn).lbn));
            if ppn.is_some() && self.groups.owner(geometry.block_of(ppn)) != Some(group) {
                return Err(alloc::format!("{lpn} of superblock {group} is in a block of another, at {ppn}"));
            }
        }
        Ok(())
    }
}

impl<N: Nand> Ftl<N> for GroupedFtl<N> {
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
        let group = self.groups.group(self.area.target(lpn).lbn);
        loop {
            let block = self.hot(group)?;
            if self.area.write_paged(block, lpn, data)? {
                self.groups.touch(group);
                return Ok(());
            }
        }
    }

    fn trim(&mut self, lpn: Lpn, count: u32) -> Result<(), FtlError> {
        self.area.trim(lpn, count)
    }

    /// A completed write is on flash with a spare area that says what it is; trims are in
    /// checkpoints.
    fn flush(&mut self) -> Result<(), FtlError> {
        self.area.flash.check_host()?;
        if self.area.owes_checkpoint() {
            self.free_reserve()?;
        }
        self.area.flush()
    }

    fn idle(&mut self) -> Result<bool, FtlError> {
        self.area.flash.check_host()?;
        match self.area.tired() {
            Some(block) => self.refresh(block).map(|()| true),
            None => Ok(false),
        }
    }

    fn ram(&self) -> RamReport {
        let mut report = RamReport::new();
        self.area.ram(&mut report);
        let bytes = self.groups.ram_bytes() + (self.open.capacity() * size_of::<Open>()) as u64;
        report.push(RamItem { name: "superblocks", bytes });
        report
    }

    fn gauges(&self) -> Vec<Gauge> {
        alloc::vec![
            Gauge { name: "paged_area_collections", value: self.collected },
            Gauge { name: "paged_area_collected_live_pages", value: self.collected_live_pages },
        ]
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
        self.check_groups()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::engine::log_block::check::tests::{LOGICAL_PAGES, PAGES, device, stamp};
    use nand::SimNand;

    /// A disk with three superblocks.
    fn disk() -> GroupedFtl<SimNand> {
        disk_of(GroupOptions { blocks: 2, extra: 1 })
    }

    fn disk_of(groups: GroupOptions) -> GroupedFtl<SimNand> {
        let mut disk = GroupedFtl::format(device(), &Config::new(LOGICAL_PAGES), "superblock", groups).unwrap();
        (0..LOGICAL_PAGES).map(Lpn).for_each(|lpn| disk.write(lpn, &stamp(lpn)).unwrap());
        disk.check().unwrap();
        disk
    }

    fn block_of(disk: &GroupedFtl<SimNand>, lpn: u32) -> BlockId {
        disk.area.blocks.geometry().block_of(disk.area.locate(Lpn(lpn)))
    }

    #[test]
    fn a_block_of_no_superblock_or_of_another_is_named() {
        for lpn in [0, LOGICAL_PAGES - 1] {
            let mut disk = disk();
            let block = block_of(&disk, lpn);
            disk.groups.remove(block);
            let said = disk.check_groups().unwrap_err();
            assert!(said.contains("is Paged, its superblock None"), "{said}");
            let (group, other) = (disk.groups.group(disk.area.target(Lpn(lpn)).lbn), u32::from(lpn == 0));
            disk.groups.push(other, block);
            let said = disk.check_groups().unwrap_err();
            assert!(said.contains(&alloc::format!("of superblock {group} is in a block of another")), "{said}");
        }
    }

    #[test]
    fn a_block_in_a_superblock_that_is_not_mapped_by_page_is_named() {
        let blocks = disk().area.blocks.geometry().blocks();
        for block in [0, blocks - 1].map(BlockId) {
            let mut disk = disk();
            assert!(disk.area.blocks.role(block) != Role::Paged);
            disk.groups.push(0, block);
            let said = disk.check_groups().unwrap_err();
            assert!(said.contains("its superblock Some(0)"), "{said}");
        }
    }

    /// Blocks that go bad take from it, and pages that are collected leave room for the host.
    #[test]
    fn the_reserve_is_whole_again_before_the_host_fills_up_collected_blocks() {
        let mut disk = disk_of(GroupOptions { blocks: 6, extra: 12 });
        let mut state = 1_u32;
        let mut write = |disk: &mut GroupedFtl<SimNand>| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let lpn = Lpn((state >> 16) % LOGICAL_PAGES);
            disk.write(lpn, &stamp(lpn)).unwrap();
        };
        let leave_free = |disk: &mut GroupedFtl<SimNand>, left: u32| {
            for block in (0..disk.area.blocks.geometry().blocks()).map(BlockId) {
                if disk.area.blocks.role(block) == Role::Free && disk.area.blocks.free_blocks() > left {
                    disk.area.blocks.withdraw(block);
                }
            }
        };
        leave_free(&mut disk, RESERVE + 4);
        (0..99).for_each(|_| write(&mut disk));
        leave_free(&mut disk, 1);
        let free: Vec<u32> = (0..99)
            .map(|_| {
                write(&mut disk);
                disk.area.blocks.free_blocks()
            })
            .collect();
        assert!(free[PAGES as usize..].iter().all(|free| *free >= RESERVE), "{free:?}");
        disk.check_groups().unwrap();
    }

    #[test]
    fn the_map_says_whose_page_it_is_if_the_page_does_not() {
        let disk = disk();
        let at = disk.area.locate(Lpn(9));
        let group = disk.groups.group(disk.area.target(Lpn(9)).lbn);
        assert_eq!(disk.mapped_to(group, at), Some(Lpn(9)));
        assert_eq!((disk.mapped_to(group + 1, at), disk.mapped_to(group, Ppn::NONE)), (None, None));
    }
}
