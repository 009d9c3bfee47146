//! The page engine: every page-mapped FTL is this, over its mapping and its validity store.
//!
//! A write's journey:
//! 1. If blocks are short, victims are collected until they are not (`collect`).
//! 2. Placement picks a stream; the core programs the stream's next page with its spare area.
//! 3. The mapping records where the page is and notes the copy that died; the page-validity store
//!    is told (`tell`).
//! 4. Work that the mapping owes (a checkpoint) is done in bounded pieces.
//!
//! The page is on flash before the mapping knows of it, so that a cut between the two leaves the
//! old copy mapped and the new one to be found by its sequence number. If power stays on, or a
//! battery saves what RAM holds, a page to which no entry leads is dead (`record_new`).

mod battery;
mod bound;
mod by_bank;
mod check;
mod choose;
mod collect;
mod heal;
mod mount;
mod overhead;
mod pins;
mod plan;
mod refresh;
mod sight;
mod tell;
mod trims;
mod wear;

pub use bound::bound_over_store;
pub use mount::{mount_by_scan_over_store, mount_tree_over_store};

use super::read_only::unless_short;
use crate::config::{Config, Preset};
use crate::contract::{Ftl, FtlError, RamItem, RamReport, Shortage};
use crate::flash::{Flash, Purpose};
use crate::inspect::Inspector;
use crate::mapping::{LOST, Mapping, is_page};
use crate::placement::{self, Future, Placing};
use crate::space::blocks::Space;
use crate::space::core::{Core, Origin};
use crate::space::deaths::Deaths;
use crate::validity::{self, Build, Make, PageSet, Receiver, Site, Store, Validity};
use crate::victim;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use choose::{Need, most_free};
use nand::{BlockId, Geometry, Law, Lpn, Nand, NandError, PageKind, Payload, Ppn};
use pins::Pins;
use plan::Plan;
use sight::IDLE_STEPS;
use trims::trim_step;

/// Metadata blocks in which nothing lives that may wait to be erased.
const DEAD_METADATA: u32 = 4;

/// Deaths that may be noted before the store is told, beside host data that dies in a call of the
/// mapping: pages of metadata, a few for each level of a tree, and pages whose programs failed.
const UNTOLD: u32 = 32;

/// What makes one page-mapped FTL differ from another, beside its parts.
#[derive(Clone, Copy, Debug)]
pub struct PageOptions {
    /// The FTL's name, for errors.
    pub name: &'static str,
    /// Its page-validity store, unless the configuration names another.
    pub validity: &'static str,
    /// Never collect metadata: erase its blocks once no page in them lives (GeckoFTL, section 4.2).
    pub metadata_apart: bool,
    /// Its design assumes a battery that saves what only RAM holds.
    pub battery: bool,
    /// How often it sets flags of a page between erases. If at all, a page of host data that died
    /// says so (FTRM's validation flag).
    pub flags: u8,
    /// A mount reads every spare area, also where it need not.
    pub scans_all: bool,
}

/// A page-mapped FTL.
pub struct PageFtl<N: Nand, M, V> {
    core: Core<N>,
    /// Blocks that hold translation pages which recovery may still have to read.
    pins: Pins,
    mapping: M,
    validity: V,
    placing: Placing,
    logical_pages: u32,
    /// Collect before a write while fewer blocks than this are free.
    reserve_blocks: u32,
    /// Blocks to hold free beside those once there is a trim map.
    trim_reserve: u32,
    /// Blocks that one collection without gain may take for good.
    rest_blocks: u32,
    /// Blocks that are free when a battery begins to save, if enough metadata blocks are dead.
    saving_blocks: u32,
    /// Collect when idle while fewer blocks than this are free.
    idle_blocks: u32,
    /// Metadata blocks beyond which metadata is collected although it is held apart.
    metadata_limit: u32,
    dead: PageSet,
    live: Vec<Origin>,
    /// How many of `live` have been moved.
    moved: usize,
    /// The bank that is being collected, if what lives there is to stay.
    home: Option<u32>,
    /// A collection was cut short: what it moved is not yet reported.
    unreported: bool,
    /// Power went during a request, and nothing was saved since.
    power_lost: bool,
    /// A logical page of which a page was programmed when power went, before an entry could lead to
    /// it.
    given_up: Option<Lpn>,
    /// Blocks of which a page may read otherwise another time, until they are erased.
    fickle: Vec<BlockId>,
    /// Dead pages of one block, while a death is looked up that the store may know of.
    asked: PageSet,
    /// A page to save state with; empty if there is no battery.
    saving: Vec<u8>,
    /// How to go on when a page of metadata cannot be read; `None` if that is an error.
    heal: Option<heal::Heal<Self>>,
    /// The table was being rebuilt when blocks ran out.
    half_rebuilt: bool,
    /// Pages of host data that died are flagged.
    flags_dead: bool,
}

/// What makes an FTL of a mapping and the store whose type it is handed.
struct Format<'a, N: Nand, M> {
    flash: Flash<N>,
    config: &'a Config,
    options: PageOptions,
    mapping: M,
}

impl<N: Nand + 'static, M: Mapping + 'static> Receiver for Format<'_, N, M> {
    type Output = Result<Box<dyn Ftl<N>>, FtlError>;

    fn receive<V: Validity + 'static>(self, make: Make<V>) -> Self::Output {
        let Self { flash, config, options, mapping } = self;
        let validity = make(&site(flash.nand().geometry(), config, &mapping))?;
        Ok(Box::new(PageFtl::format(flash, config, options, mapping, validity)?))
    }
}

/// What a store is made for under this mapping.
fn site<M: Mapping>(geometry: &Geometry, config: &Config, mapping: &M) -> Site {
    Site {
        blocks: geometry.blocks(),
        pages_per_block: geometry.pages_per_block(),
        page_bytes: geometry.page_bytes(),
        logical_pages: config.logical_pages,
        reports: mapping.reports() + 2 * trim_step(geometry),
        gecko: config.gecko(),
    }
}

/// Makes an empty disk over the page-validity store of the configuration, else the FTL's own.
///
/// # Errors
/// As [`PageFtl::format`]; [`FtlError::Unsupported`] if no such store fits the device.
pub fn format_over_store<B: Build, Own: Store, N: Nand + 'static, M: Mapping + 'static>(
    flash: Flash<N>,
    config: &Config,
    options: PageOptions,
    mapping: M,
) -> Result<Box<dyn Ftl<N>>, FtlError> {
    debug_assert!(Own::ENTRY.name == options.validity, "{} is compiled for the store of another FTL", options.name);
    let name = options.store(config);
    B::with::<Own, _>(name, Format { flash, config, options, mapping }).unwrap_or_else(|| Err(options.no_store(name)))
}

impl PageOptions {
    /// Those of an FTL over this page-validity store that needs no battery and sets no flags.
    #[must_use]
    pub const fn over(name: &'static str, validity: &'static str) -> Self {
        Self { name, validity, metadata_apart: false, battery: false, flags: 0, scans_all: false }
    }

    /// The name of the page-validity store to use.
    pub fn store(&self, config: &Config) -> &'static str {
        config.validity.unwrap_or(self.validity)
    }

    /// The error for a store that does not exist.
    #[cold]
    fn no_store(&self, name: &str) -> FtlError {
        let known: Vec<&str> = validity::table().iter().map(|entry| entry.name).collect();
        let reason = format!("there is no page-validity store '{name}'; there are {}", known.join(", "));
        FtlError::Unsupported { ftl: self.name, reason }
    }

    /// Refuses a store other than the FTL's own: what is on flash could not be mounted.
    fn only_own_store(&self, config: &Config) -> Result<(), FtlError> {
        let name = self.store(config);
        if name == self.validity {
            return Ok(());
        }
        if validity::find(name).is_none() {
            return Err(self.no_store(name));
        }
        let reason = format!("with page-validity store '{name}' it cannot be mounted, only with '{}'", self.validity);
        Err(FtlError::Unsupported { ftl: self.name, reason })
    }
}

impl<N: Nand, M: Mapping, V: Validity> PageFtl<N, M, V> {
    /// Makes an empty disk: every good block is erased, because a torn page can read as erased.
    ///
    /// # Errors
    /// [`FtlError::Unsupported`] if the device is too small for the logical pages asked for, or the
    /// configuration names a policy that does not exist.
    pub fn format(
        mut flash: Flash<N>,
        config: &Config,
        options: PageOptions,
        mapping: M,
        validity: V,
    ) -> Result<Self, FtlError> {
        let plan = Plan::new(flash.nand(), config, options, &mapping, &validity)?;
        let plan = plan.for_format(flash.nand().geometry(), config, options)?;
        flash.erase_all()?;
        let space = Space::new(flash.nand(), plan.space);
        let mut ftl = Self::assemble(flash, config, plan, space, mapping, validity);
        ftl.begin_levelling(config.wear);
        Ok(ftl)
    }

    fn assemble(flash: Flash<N>, config: &Config, plan: Plan, mut space: Space, mapping: M, validity: V) -> Self {
        let geometry = *flash.nand().geometry();
        let reserve = plan.overhead.reserve;
        let usable = geometry.blocks() - space.bad_blocks();
        let idle_blocks = reserve + (geometry.blocks() / 64).max(2);
        let trim_reserve = plan.overhead.trims.reserve;
        space.reserve_free(most_free(idle_blocks, reserve + trim_reserve, plan.overhead.rest));
        let limit = plan.overhead.metadata_limit(&geometry, config.logical_pages, usable);
        let pins = if validity.is_buffered() { limit + reserve } else { 0 };
        let deaths = Deaths::with_capacity(mapping.most_deaths() + UNTOLD);
        Self {
            core: Core::new(flash, space, deaths, plan.needed),
            pins: Pins::with_capacity(pins),
            mapping,
            validity,
            placing: Placing::new(plan.placement),
            logical_pages: config.logical_pages,
            reserve_blocks: reserve,
            trim_reserve,
            rest_blocks: plan.overhead.rest,
            saving_blocks: plan.overhead.saves,
            idle_blocks,
            metadata_limit: limit,
            dead: PageSet::new(geometry.pages_per_block()),
            live: Vec::with_capacity(geometry.pages_per_block() as usize),
            moved: 0,
            home: None,
            unreported: false,
            power_lost: false,
            given_up: None,
            fickle: Vec::new(),
            asked: PageSet::new(geometry.pages_per_block()),
            saving: alloc::vec![0; if plan.battery { geometry.page_bytes() as usize } else { 0 }],
            heal: None,
            half_rebuilt: false,
            flags_dead: plan.flags_dead,
        }
    }

    #[inline]
    fn check_range(&self, lpn: Lpn, count: u32) -> Result<(), FtlError> {
        let logical_pages = self.logical_pages;
        if u64::from(lpn.0) + u64::from(count) <= u64::from(logical_pages) {
            Ok(())
        } else {
            Err(FtlError::OutOfRange { lpn, count, logical_pages })
        }
    }

    /// Refuses what cannot be written: outside the logical device, or on a device that is worn out.
    #[inline]
    fn check_write(&self, lpn: Lpn, count: u32) -> Result<(), FtlError> {
        self.check_range(lpn, count)?;
        self.core.flash.check_host()?;
        if self.core.is_starved() { Err(self.core.shortage().into()) } else { Ok(()) }
    }

    /// Does what is owed before the mapping may change.
    #[inline]
    fn prepare(&mut self) -> Result<(), FtlError> {
        self.catch_up()?;
        if self.core.space.dead_metadata() > DEAD_METADATA && self.core.space.may_free(2) {
            self.gain(Need::Tidy)?;
        }
        if self.core.space.free_blocks() < self.reserve_blocks {
            self.make_space()?;
        }
        if !self.fickle.is_empty() {
            self.collect_fickle()?;
        }
        while self.mapping.due() {
            self.maintain()?;
            if self.core.space.free_blocks() < self.reserve_blocks {
                self.make_space()?;
            }
        }
        debug_assert!(self.core.space.free_blocks() >= self.reserve_blocks);
        Ok(())
    }

    /// Where a logical page is. If a lookup programs pages, space is made for them first.
    #[inline]
    fn find(&mut self, lpn: Lpn) -> Result<Ppn, FtlError> {
        let on = self.core.flash.check_host();
        if !self.core.is_starved() && on.is_ok() {
            let prepared = if self.mapping.reserve_pages() > 0 { self.prepare() } else { Ok(()) };
            let found = prepared.and_then(|()| self.change(|mapping, core| mapping.lookup(core, lpn)));
            if !self.core.is_starved() {
                return found;
            }
        }
        if self.half_rebuilt {
            on?;
            return Err(self.core.shortage().into());
        }
        self.mapping.peek(&mut self.core, lpn)
    }

    fn read_page(&mut self, lpn: Lpn, out: &mut N::Payload) -> Result<(), FtlError> {
        unless_short(self.refresh())?;
        let ppn = self.find(lpn)?;
        if is_page(ppn) {
            let spare = match self.core.flash.read(Purpose::Host, ppn, out) {
                // Half an erase left it so, or it says that the page is lost.
                Err(NandError::Erased { .. } | NandError::Illegal { law: Law::PageContent, .. }) => {
                    return Err(FtlError::Lost { lpn });
                }
                read => read?,
            };
            if spare.tag == lpn.0 && spare.kind == PageKind::User {
                return Ok(());
            }
            let reason = "the mapping leads to a page of something else";
            return Err(FtlError::Damaged { structure: "mapping entry", ppn, reason });
        }
        out.clear();
        if ppn == LOST { Err(FtlError::Lost { lpn }) } else { Ok(()) }
    }

    #[inline]
    fn write_page(&mut self, lpn: Lpn, data: &N::Payload) -> Result<(), FtlError> {
        debug_assert!(lpn.0 < self.logical_pages);
        self.check_sight()?;
        self.refresh()?;
        let past = self.past(lpn)?;
        self.prepare()?;
        if self.placing.wear().is_some() && self.core.space.may_free(1) && self.level_wear()? {
            self.prepare()?;
        }
        let stream = self.placing.place_written(lpn, past);
        let ppn = self.core.program(stream, lpn, data)?;
        self.placing.placed(stream, || self.core.space.geometry().block_of(ppn));
        self.record_new(lpn, ppn, |ftl| {
            ftl.change(|mapping, core| {
                mapping.record(core, lpn, ppn)?;
                mapping.keep_past(core, lpn, stream);
                Ok(())
            })
        })
    }
}

impl<N: Nand, M: Mapping, V: Validity> Ftl<N> for PageFtl<N, M, V> {
    fn logical_pages(&self) -> u32 {
        self.logical_pages
    }

    fn read(&mut self, lpn: Lpn, out: &mut N::Payload) -> Result<(), FtlError> {
        self.check_range(lpn, 1)?;
        self.healing(|ftl| ftl.read_page(lpn, out))
    }

    #[inline]
    fn write(&mut self, lpn: Lpn, data: &N::Payload) -> Result<(), FtlError> {
        self.check_write(lpn, 1)?;
        self.healing(|ftl| ftl.write_page(lpn, data))
    }

    fn trim(&mut self, lpn: Lpn, count: u32) -> Result<(), FtlError> {
        self.check_write(lpn, count)?;
        self.healing(|ftl| ftl.trim_pages(lpn, count))
    }

    /// A completed write is on flash with a spare area that says what it is.
    fn flush(&mut self) -> Result<(), FtlError> {
        self.core.flash.check_host()?;
        self.powered(Self::flush_trims)
    }

    fn idle(&mut self) -> Result<bool, FtlError> {
        self.core.flash.check_host()?;
        if self.core.is_starved() {
            return Ok(false);
        }
        if self.core.flash.tired().is_some() {
            self.healing(Self::refresh)?;
            return Ok(true);
        }
        if self.core.space.free_blocks() >= self.idle_blocks {
            return Ok(self.placing.idle(IDLE_STEPS));
        }
        self.powered(Self::catch_up)?;
        self.healing(|ftl| ftl.gain(Need::Later))
    }

    fn banked(&mut self) -> Option<&mut dyn victim::by_bank::Banked> {
        Some(self)
    }

    fn foresee(&mut self, future: Future) {
        self.tell_future(future);
    }

    #[inline]
    fn hint(&self, lpns: &[Lpn]) {
        let mut near = [Ppn::NONE; 64];
        for chunk in lpns.chunks(near.len()) {
            for (ppn, lpn) in near.iter_mut().zip(chunk) {
                *ppn = self.mapping.hint(*lpn);
            }
            for ppn in near.iter().take(chunk.len()).filter(|ppn| is_page(**ppn)) {
                self.validity.hint(*ppn);
            }
        }
    }

    fn ram(&self) -> RamReport {
        let mut report = RamReport::new();
        self.mapping.ram(&mut report);
        self.validity.ram(&mut report);
        self.core.space.ram(&mut report);
        let buffers = self.live.capacity() * size_of::<Origin>() + self.dead.ram_bytes() + self.asked.ram_bytes();
        report.push(RamItem { name: "collector_buffers", bytes: buffers as u64 });
        report.push(RamItem { name: "placement", bytes: self.placing.policy_bytes() });
        report.push(RamItem { name: "untold_deaths", bytes: self.core.deaths.ram_bytes() });
        if !self.saving.is_empty() {
            report.push(RamItem { name: "save_buffer", bytes: self.saving.capacity() as u64 });
        }
        if let Some(bytes) = self.placing.wear_bytes() {
            report.push(RamItem { name: "wear", bytes });
        }
        if self.validity.is_buffered() {
            report.push(RamItem { name: "pinned_blocks", bytes: self.pins.ram_bytes() });
        }
        report
    }

    fn inspect(&self, inspector: &mut dyn Inspector) {
        self.core.space.inspect(inspector);
        self.mapping.inspect(inspector);
        self.validity.inspect(inspector);
    }

    fn power_failing(&mut self) -> Result<(), FtlError> {
        self.power_lost = false;
        self.core.flash.check_host()?;
        self.save()
    }

    fn battery_pages(&self) -> u32 {
        self.most_saved_pages()
    }

    fn free_blocks(&self) -> u32 {
        self.core.space.free_blocks()
    }

    fn read_only(&self) -> Option<Shortage> {
        self.core.is_starved().then(|| self.core.shortage())
    }

    fn flash(&self) -> &Flash<N> {
        &self.core.flash
    }

    fn flash_mut(&mut self) -> &mut Flash<N> {
        &mut self.core.flash
    }

    fn into_flash(self: Box<Self>) -> Flash<N> {
        self.core.flash
    }

    fn check(&mut self) -> Result<(), String> {
        self.check_invariants()
    }
}
