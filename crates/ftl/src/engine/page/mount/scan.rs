//! Mounting by a full scan: for FTLs whose table and validity bitmap are in RAM.

mod settle;

use super::{Flash, Nand, PageFtl, PageOptions, Plan, Space, site};
use crate::config::Config;
use crate::contract::{FtlError, MountReport};
use crate::engine::page::choose::Need;
use crate::engine::read_only::{Evidence, Mounted, Unmounted, or_read_only};
use crate::mapping::ram::RamMap;
use crate::mapping::{Mapping, is_page};
use crate::placement::Single;
use crate::recovery::scan::{FoundTrims, Look, Mounts, Scan};
use crate::recovery::steps::Steps;
use crate::space::blocks::{BlockState, Found};
use crate::validity::ram_bitmap::{HoldsBitmap, RamBitmap};
use crate::validity::{Build, Make, Receiver, Store, Validity};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::marker::PhantomData;
use nand::{BlockId, PageKind, Ppn};
use settle::Doubt;

/// What mounts an FTL whose table is in RAM over the store whose type it is handed.
struct MountByScan<'a, N: Nand, B> {
    flash: Flash<N>,
    config: &'a Config,
    options: PageOptions,
    build: PhantomData<B>,
}

impl<N: Nand + 'static, B: Build> Receiver for MountByScan<'_, N, B> {
    type Output = Mounted<N>;

    fn receive<V: Validity + 'static>(self, make: Make<V>) -> Self::Output {
        PageFtl::<N, RamMap, V>::mount_by_scan::<B>(self.flash, self.config, self.options, make)
    }
}

/// Opens a disk whose table is in RAM, over the page-validity store that the configuration names,
/// else the FTL's own.
///
/// # Errors
/// [`FtlError::Unsupported`] and [`FtlError::Damaged`] if the device was formatted for something
/// else; the former too if there is no such store or it does not fit the device.
pub fn mount_by_scan_over_store<B: Build, Own: Store, N: Nand + 'static>(
    flash: Flash<N>,
    config: &Config,
    options: PageOptions,
) -> Mounted<N> {
    let name = options.store(config);
    B::with::<Own, _>(name, MountByScan::<N, B> { flash, config, options, build: PhantomData })
        .unwrap_or_else(|| Err(options.no_store(name)))
}

impl<N: Nand + 'static, V: Validity + 'static> PageFtl<N, RamMap, V> {
    /// Opens a disk by reading every spare area, whatever page-validity store it had: which pages
    /// are dead is then known better than any store on flash can know it. So pages of a store count
    /// as dead, and when all else is done as if the bitmap were in RAM, the store is written anew.
    ///
    /// # Errors
    /// [`FtlError::Unsupported`] and [`FtlError::Damaged`] if the device was formatted for
    /// something else.
    fn mount_by_scan<B: Build>(flash: Flash<N>, config: &Config, options: PageOptions, make: Make<V>) -> Mounted<N> {
        or_read_only(Self::open_by_scan::<B>(flash, config, options, make), config, Evidence::TrimMap)
    }

    fn open_by_scan<B: Build>(
        flash: Flash<N>,
        config: &Config,
        options: PageOptions,
        make: Make<V>,
    ) -> Result<(Self, MountReport), Unmounted<N>> {
        let mapping = RamMap::new(config.logical_pages, flash.nand().geometry());
        let validity = make(&site(flash.nand().geometry(), config, &mapping))?;
        let plan = Plan::new(flash.nand(), config, options, &mapping, &validity)?;
        let (plan, flash) = plan.for_mount(flash)?;
        let mut steps = Steps::begin(&flash);
        let (known, unreadable_pages, rebuilt_entries) =
            PageFtl::<N, RamMap, B::Bitmap>::scan_and_settle(flash, config, plan, &mut steps)?;
        let ftl = known.hand_over(validity)?;
        steps.end("write the page-validity store, free blocks", &ftl.core.flash);
        Ok((ftl, steps.report(unreadable_pages, rebuilt_entries)))
    }
}

impl<N: Nand, M: Mapping, T: HoldsBitmap> PageFtl<N, M, T> {
    /// The same FTL over another store, which is told all that the bitmap knows. Pages that the
    /// store had before count as dead.
    pub(super) fn hand_over<V: Validity>(mut self, mut validity: V) -> Result<PageFtl<N, M, V>, Unmounted<N>> {
        if let Err(error) = self.write_store(&mut validity) {
            return Err(Unmounted::with(self.core.flash, error));
        }
        let mut ftl = self.over(validity);
        if let Err(error) = ftl.make_space() {
            return Err(Unmounted::with(ftl.core.flash, error));
        }
        Ok(ftl)
    }

    /// Tells a store everything that is known.
    fn write_store<V: Validity>(&mut self, validity: &mut V) -> Result<(), FtlError> {
        for block in (0..self.core.space.geometry().blocks()).map(BlockId) {
            let state = self.core.space.state(block);
            let used = matches!(state, BlockState::Closed | BlockState::Active);
            if used && self.core.space.kind(block) == PageKind::User {
                self.dead.clear();
                self.validity.bitmap().collect(block, &mut self.dead);
                validity.fill(&mut self.core, block, &self.dead)?;
                // Only those that the store, which is told of no erase yet, is told nothing of.
                self.free_dead(|_, kind| kind != PageKind::User)?;
            }
        }
        validity.flush(&mut self.core)
    }

    /// The same FTL over another store that knows the same.
    fn over<V: Validity>(self, validity: V) -> PageFtl<N, M, V> {
        let Self { core, pins, mapping, validity: _, placing, .. } = self;
        debug_assert!(!self.power_lost && !self.unreported && core.deaths.is_empty(), "a mount left work behind");
        PageFtl {
            core,
            pins,
            mapping,
            validity,
            placing,
            logical_pages: self.logical_pages,
            reserve_blocks: self.reserve_blocks,
            trim_reserve: self.trim_reserve,
            rest_blocks: self.rest_blocks,
            saving_blocks: self.saving_blocks,
            idle_blocks: self.idle_blocks,
            metadata_limit: self.metadata_limit,
            dead: self.dead,
            live: self.live,
            moved: self.moved,
            home: self.home,
            unreported: self.unreported,
            power_lost: self.power_lost,
            given_up: self.given_up,
            fickle: self.fickle,
            asked: self.asked,
            saving: self.saving,
            heal: None,
            half_rebuilt: false,
            flags_dead: self.flags_dead,
        }
    }
}

impl<N: Nand, T: HoldsBitmap> PageFtl<N, RamMap, T> {
    /// Opens a disk by reading every spare area. Answers it with the pages that could not be read,
    /// and the entries that were found.
    ///
    /// 1. Scan; the newest copy of each logical page counts, unless a younger page of the trim map
    ///    says that there is none.
    /// 2. Every block with a page in it counts as full, every other is erased before it is used.
    /// 3. What is in doubt is settled (`settle`).
    /// 4. Blocks are collected until as many are free as a write needs.
    /// 5. Blocks with a page that does not count are collected: it could be read again later, after
    ///    the host has read what was before it.
    ///
    /// Cut short at any point, any number of times, it can be done again. Each attempt opens a
    /// block, so steps 3 to 5 fill the same block, and step 4 collects the block in which least
    /// lives: that is one that an earlier attempt opened, so attempts do not add up.
    ///
    /// # Errors
    /// [`FtlError::Damaged`] if the device was formatted for something else.
    fn scan_and_settle(
        mut flash: Flash<N>,
        config: &Config,
        plan: Plan,
        steps: &mut Steps,
    ) -> Result<(Self, u64, u64), Unmounted<N>> {
        let geometry = *flash.nand().geometry();
        let validity = T::of_bitmap(RamBitmap::new(geometry.blocks(), geometry.pages_per_block()));
        let mut scan = Scan::run(&mut flash, config.logical_pages, Mounts::Mark, Look::Once)?;
        let trims = scan.forget_trimmed(&mut flash)?;
        steps.end("scan every spare area", &flash);
        let doubt = Doubt::of(&scan, &trims, &geometry);
        let next_seq = scan.next_seq();
        let (unreadable_pages, erased_at, mean) = (scan.excluded().len() as u64, scan.erased_at, scan.mean_erases());
        let kinds: Vec<Option<PageKind>> = (0..geometry.blocks()).map(|b| scan.kind(BlockId(b))).collect();
        let table = scan.into_table();
        let mut valid = vec![0_u16; geometry.blocks() as usize];
        let mut live = vec![false; geometry.pages() as usize];
        for ppn in table.iter().chain(&trims.pages).filter(|ppn| is_page(**ppn)) {
            debug_assert!(!live[ppn.index()], "{ppn} is mapped twice");
            valid[geometry.block_of(*ppn).index()] += 1;
            live[ppn.index()] = true;
        }
        let mut space = Space::new(flash.nand(), plan.space);
        space.restore(erased_at, mean, |block| {
            let valid = valid[block.index()];
            kinds[block.index()].map_or(Found::Empty, |kind| Found::Pages { kind, valid })
        });
        let rebuilt_entries = table.iter().filter(|ppn| is_page(**ppn)).count() as u64;
        let mapping = RamMap::restored(table, &trims.pages, &trims.tells_losses, &geometry);
        let mut ftl = Self::assemble(flash, config, plan, space, mapping, validity);
        // Whatever is moved fills one block, until the mount has come to its end.
        let policy = ftl.placing.exchange(Box::new(Single));
        ftl.core.seq = next_seq;
        for ppn in (0..geometry.pages()).map(Ppn) {
            if kinds[geometry.block_of(ppn).index()].is_some() && !live[ppn.index()] {
                ftl.validity.bitmap_mut().mark(ppn);
            }
        }
        if trims.pages.iter().any(|ppn| ppn.is_some()) {
            ftl.hold_trim_blocks();
        }
        if let Err(error) = ftl.settle_scan(doubt, &trims) {
            return Err(Unmounted::with(ftl.core.flash, error));
        }
        ftl.placing.exchange(policy);
        ftl.begin_levelling(config.wear);
        steps.end("rewrite the page programmed last, free blocks", &ftl.core.flash);
        Ok((ftl, unreadable_pages, rebuilt_entries))
    }

    /// Steps 3 to 5.
    fn settle_scan(&mut self, mut doubt: Doubt, trims: &FoundTrims) -> Result<(), FtlError> {
        self.core.settling = Some(doubt.in_use_seq());
        self.settle(&mut doubt, trims)?;
        self.free_copied(&doubt)?;
        self.free_dead_blocks()?;
        self.collect_until_enough(Need::Mount)?;
        for block in doubt.into_suspects() {
            let space = &self.core.space;
            if space.state(block) == BlockState::Closed && space.valid(block) < space.geometry().pages_per_block() {
                self.collect(block)?;
                self.collect_until_enough(Need::Mount)?;
            }
        }
        self.core.settling = None;
        Ok(())
    }
}
