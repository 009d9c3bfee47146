//! Mounting a translation table in flash, one entry a logical page, over a validity bitmap that is
//! only in RAM.
//!
//! 1. Two spare areas of every block: what it holds and how old it is ([`Survey`]).
//! 2. Spare areas of translation blocks: the versions of each translation page.
//! 3. *With a battery*, what it saved: dirty entries, bitmap and counts of live pages, if nothing
//!    was programmed since. Then the newest version of each translation page that the bitmap says
//!    lives is in the GMD, and all is as it was. Nothing is programmed or erased, so that the saved
//!    state stays valid until the first operation.
//! 4. *With a bound on dirty entries* (LazyFTL), spare areas of the blocks that hold the n pages of
//!    host data programmed last. *With a battery that saved nothing*, because it was too weak or
//!    its pages cannot be read, those of all blocks. The newest copy of a logical page had an entry
//!    only in RAM if it is younger than its translation page. *An FTL that scans all* reads every
//!    spare area and leaves out the same blocks: a page there that a mount before could not read
//!    may be read again, and counts no more.
//! 5. Every translation page: what an entry names lives, all else is dead. If there is nothing to
//!    say which entries were only in RAM, every one is checked against the spare area it leads to;
//!    one that is wrong is lost.
//! 6. What is in doubt is settled, before anything may depend on it (`doubt.rs`).
//! 7. The entries found in 4 are written, a translation page at a time.
//! 8. What could be taken for a loss or come back later goes; blocks are collected until enough are
//!    free.
//! 9. The cache is filled, where the FTL asks for that.
//!
//! Where pages that died are flagged ([`STALE`]), a logical page whose newest copy in 4 is flagged
//! is lost. A page is flagged only once what supersedes it is complete.
//!
//! Cut short, it can be begun again any number of times: until 6 nothing is programmed, and pages
//! of host data are not collected before 8.

mod doubt;
mod missing;

use super::{Flash, Lpn, Nand, PageFtl, PageOptions, Plan, Space};
use crate::config::Config;
use crate::contract::{FtlError, MountReport};
use crate::engine::read_only::{Evidence, Mounted, Unmounted, or_read_only, without_doubt};
use crate::flash::Purpose;
use crate::mapping::cached::{CachedMap, CachedOptions, Reporting};
use crate::mapping::{LOST, is_page};
use crate::recovery::order;
use crate::recovery::plausible;
use crate::recovery::saved::{self, Saved};
use crate::recovery::steps::Steps;
use crate::recovery::survey::{FoundPage, Survey};
use crate::saved::Source;
use crate::space::blocks::Found;
use crate::space::deaths::STALE;
use crate::validity::Validity;
use crate::validity::ram_bitmap::{HoldsBitmap, RamBitmap};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;
use nand::{BlockId, Flags, Geometry, NandError, PageKind, Ppn, Spare};

/// A copy of a logical page.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoundCopy {
    pub(super) lpn: Lpn,
    pub(super) seq: u64,
    pub(super) ppn: Ppn,
    /// How much younger it is than what it is a copy of.
    pub(super) age: u32,
    /// Its spare area can be read, its data cannot.
    pub(super) torn: bool,
    /// It was flagged: what superseded it was programmed to its end, and can be read no more if it
    /// is not found.
    pub(super) stale: bool,
    /// Its program was over before power went: if it cannot be read, it is worn.
    complete: bool,
}

impl FoundCopy {
    /// The page, and what is known of its spare area.
    const fn found(&self) -> FoundPage {
        let Self { lpn, seq, ppn, age: aux, .. } = *self;
        (ppn, Spare { kind: PageKind::User, tag: lpn.0, seq, erase_count: 0, erased_at: 0, aux, flags: Flags::NONE })
    }

    /// Whether a translation page that says when it was written does not speak for it. A save that
    /// disowns what power loss cut short says that its translation page is as old as that.
    const fn is_younger(&self, written: u64) -> bool {
        self.seq > written || self.seq == written && !self.complete
    }
}

/// What is known of the table before there is an FTL.
pub(super) struct Table {
    pub(super) geometry: Geometry,
    pub(super) logical_pages: u32,
    pub(super) entries_per_page: u32,
    /// Pages of host data that died are flagged.
    flags_dead: bool,
    /// The spare area of every page is read.
    scans_all: bool,
    /// Pages of translation blocks, by translation page, the newest version first.
    pub(super) versions: Vec<FoundPage>,
    pub(super) gmd: Vec<Ppn>,
    /// Of each translation page, the sequence number below which it speaks for every page of host
    /// data.
    pub(super) written: Vec<u64>,
    pub(super) bound: u64,
    /// Copies that were looked at, by logical page, the youngest first.
    pub(super) copies: Vec<FoundCopy>,
    /// Entries of copies that are older than this were on flash.
    pub(super) from: u64,
    /// Every copy was looked at.
    pub(super) whole: bool,
    /// The last page that can be read of each block that was read.
    pub(super) last: Vec<Ppn>,
    /// Entries that are not in flash.
    pub(super) changes: BTreeMap<Lpn, Ppn>,
    /// Live pages of each block.
    pub(super) valid: Vec<u16>,
    /// The page programmed last, but for what a battery saved, unless it is settled.
    pub(super) newest: Option<FoundPage>,
    /// Copies still to be copied before anything depends on them, the youngest first.
    pub(super) doubtful: Vec<FoundCopy>,
    /// Translation pages that count and may have been the last before power went once, if a mount
    /// was cut short since; the youngest first.
    pub(super) stranded: Vec<FoundPage>,
    /// What lives of the logical pages of `doubtful` if those cannot be read, if it is a page.
    pub(super) kept: Vec<(Lpn, Ppn)>,
    /// Pages excluded by the mount, or that cannot be read although nothing younger can.
    pub(super) excluded: Vec<FoundPage>,
    /// Translation pages to be written again.
    pub(super) renew: BTreeSet<u32>,
    /// What a battery saved about pages that lived, if what it saved of the table is not all there:
    /// a page that lived was complete, and no other counts.
    pub(super) lived: Option<RamBitmap>,
}

/// What a mount is to go by.
#[derive(Clone, Copy)]
struct How {
    options: PageOptions,
    /// There is a battery.
    battery: bool,
    logical_pages: u32,
}

/// What steps 2 to 5 find out.
struct Known {
    table: Table,
    validity: RamBitmap,
    /// How many entries a battery saved, if all is as it was.
    resumed: Option<u64>,
}

/// The page that an error says cannot be read.
pub(super) fn unreadable(error: &FtlError) -> Option<Ppn> {
    match error {
        FtlError::Nand(NandError::Uncorrectable { ppn } | NandError::Erased { ppn }) => Some(*ppn),
        _ => None,
    }
}

impl<N: Nand + 'static, T: HoldsBitmap + 'static> PageFtl<N, CachedMap, T> {
    /// Opens a disk after any end, clean or not.
    ///
    /// # Errors
    /// [`FtlError::Unsupported`] and [`FtlError::Damaged`] if the device was formatted for
    /// something else.
    pub fn mount_flat(flash: Flash<N>, config: &Config, options: PageOptions, cached: CachedOptions) -> Mounted<N> {
        let evidence = match (cached.reporting, cached.pasts) {
            (Reporting::WhenSynchronised, _) => Evidence::Entries,
            (Reporting::AtOnce, false) => Evidence::AgedEntries,
            (Reporting::AtOnce, true) => Evidence::AgedEntriesWithPasts,
        };
        let outcome = without_doubt(flash, |flash, excluded| Self::open_flat(flash, config, options, cached, excluded));
        or_read_only(outcome, config, evidence)
    }

    fn open_flat(
        flash: Flash<N>,
        config: &Config,
        options: PageOptions,
        cached: CachedOptions,
        excluded: &[Ppn],
    ) -> Result<(Self, MountReport), Unmounted<N>> {
        options.only_own_store(config)?;
        let geometry = *flash.nand().geometry();
        let pages = geometry.pages_per_block();
        let mut mapping = CachedMap::new(config.logical_pages, geometry.page_bytes(), cached);
        let validity = RamBitmap::new(geometry.blocks(), pages);
        let plan = Plan::new(flash.nand(), config, options, &mapping, &validity)?;
        let (plan, mut flash) = plan.for_mount(flash)?;
        let mut steps = Steps::begin(&flash);
        let contents = plausible::Contents::of_table(&geometry, config.logical_pages, mapping.directory().len(), false);
        let mut survey = match Survey::run(&mut flash, plan.space.lanes, excluded, contents, cached.reporting.root()) {
            Ok(survey) => survey,
            Err(error) => {
                let newest = unreadable(&error);
                return Err(Unmounted::in_doubt(flash, error, newest));
            }
        };
        steps.end("1 first and last spare area of every block", &flash);
        let how = How { options, battery: plan.battery, logical_pages: config.logical_pages };
        let mut newest = None;
        let known = match Known::find(&mut flash, &mut survey, how, &mut mapping, excluded, &mut newest, &mut steps) {
            Ok(known) => known,
            Err(error) => return Err(Unmounted::in_doubt(flash, error, newest)),
        };
        let Known { mut table, validity, resumed } = known;
        let rebuilt_entries = resumed.unwrap_or(table.changes.len() as u64);
        let mut ftl = Self::of_table(flash, config, plan, &survey, mapping, validity, &mut table);
        ftl.core.settling = Some(survey.in_use_seq()).filter(|_| resumed.is_none());
        if resumed.is_none()
            && let Err(error) = ftl.settle(&mut table, &survey, &mut steps)
        {
            let about = unreadable(&error);
            let newest = about.filter(|ppn| table.is_doubtful(*ppn));
            return Err(Unmounted::in_doubt(ftl.core.flash, error, newest));
        }
        ftl.begin_levelling(config.wear);
        if ftl.mapping.is_refilled() {
            if let Err(error) = ftl.call(|mapping, core| mapping.refill(core)) {
                return Err(Unmounted::with(ftl.core.flash, error));
            }
            steps.end("9 entries of hot translation pages: CMT", &ftl.core.flash);
        }
        Ok((ftl, steps.report(survey.unreadable, rebuilt_entries)))
    }

    /// An FTL that knows what the table says.
    fn of_table(
        flash: Flash<N>,
        config: &Config,
        plan: Plan,
        survey: &Survey,
        mut mapping: CachedMap,
        mut validity: RamBitmap,
        table: &mut Table,
    ) -> Self {
        mapping.restore(core::mem::take(&mut table.gmd), table.bound);
        mapping.found_heat(&table.versions);
        let mut space = Space::new(flash.nand(), plan.space);
        space.restore(survey.erased_at(), survey.mean_erases(), |block| match survey.block(block) {
            Some(info) if info.kind == PageKind::Checkpoint => Found::Pages { kind: info.kind, valid: 0 },
            Some(info) => Found::Pages { kind: info.kind, valid: table.valid[block.index()] },
            // What lives there was saved to live, and can no longer be read.
            None if table.valid[block.index()] > 0 => {
                Found::Pages { kind: PageKind::User, valid: table.valid[block.index()] }
            }
            // It may have held a page of the table, and is erased in the end.
            None if survey.illegible().contains(&block) => Found::Pages { kind: PageKind::User, valid: 0 },
            None => Found::Empty,
        });
        let geometry = table.geometry;
        for block in (0..geometry.blocks()).map(BlockId).filter(|block| table.valid[block.index()] == 0) {
            // A torn page can read now and then: also what seems to be empty, or was when it was
            // saved, holds nothing that lives. An erase says otherwise.
            (0..geometry.pages_per_block()).for_each(|offset| validity.mark(geometry.page_at(block, offset)));
        }
        let mut ftl = Self::assemble(flash, config, plan, space, mapping, T::of_bitmap(validity));
        ftl.core.seq = survey.next_seq();
        debug_assert!(ftl.core.seq > survey.largest_seq());
        ftl
    }
}

impl Known {
    /// Steps 2 to 5. Flash is only read. `newest` is the page programmed last, as far as that is
    /// known when there is an error.
    fn find<N: Nand>(
        flash: &mut Flash<N>,
        survey: &mut Survey,
        how: How,
        mapping: &mut CachedMap,
        excluded: &[Ppn],
        newest: &mut Option<Ppn>,
        steps: &mut Steps,
    ) -> Result<Self, FtlError> {
        let (updates, reporting) = (mapping.recent_updates(), mapping.reporting());
        *newest = survey.newest().map(|(ppn, _)| ppn);
        let mut table = Table::new(flash, survey, how, mapping.entries_per_page())?;
        table.bound = plausible::largest(flash, &table.versions, |spare| reporting.bound_of(spare))?;
        steps.end("2 spare areas of translation blocks: GMD", flash);
        let mut spoilt = false;
        if how.options.battery {
            let saved = saved::find(flash, survey)?;
            steps.end("3 pages that a battery saved: dirty entries, BVC, PVB", flash);
            if let Some(Saved { bytes, since }) = saved {
                let mut validity = RamBitmap::new(table.geometry.blocks(), table.geometry.pages_per_block());
                let (translation_pages, entries) = table.load(&bytes, mapping, &mut validity)?;
                table.revive_opened(survey, since, &mut validity);
                table.choose(reporting, |ppn| !validity.is_dead(ppn));
                let are_there = table.gmd.iter().filter(|at| is_page(**at)).count() == translation_pages as usize;
                if are_there && excluded.is_empty() {
                    mapping.restore_saved(&entries);
                    return Ok(Self { table, validity, resumed: Some(entries.len() as u64) });
                }
                // The device took a translation page: what it said has to be found out again.
                spoilt = true;
                table.lived = Some(validity);
            }
        }
        table.choose(reporting, |_| true);
        let whole = match updates {
            Some(updates) => table.is_incomplete(flash, survey, updates)?,
            None => how.battery || spoilt,
        };
        let mut passed_over: Vec<Ppn> = Vec::new();
        let validity = loop {
            table.choose(reporting, |ppn| !passed_over.contains(&ppn));
            let whole = whole || updates.is_some() && !passed_over.is_empty();
            if table.copies.is_empty() && (updates.is_some() || whole) || whole && !table.whole {
                table.find_copies(flash, survey, updates.filter(|_| !whole), excluded)?;
            }
            table.find_newest(survey, excluded);
            *newest = table.newest.map(|(ppn, _)| ppn);
            let check = updates.is_none() || whole;
            let live = match table.find_live(flash, survey, check) {
                // A translation page is older than it should be: entries have to be checked after
                // all.
                Ok(None) => table.find_live(flash, survey, true),
                live => live,
            };
            match live {
                Ok(Some(validity)) => break validity,
                Ok(None) => {}
                Err(error) => match unreadable(&error).filter(|ppn| table.gmd.contains(ppn) && Some(*ppn) != *newest) {
                    Some(ppn) => passed_over.push(ppn),
                    None => return Err(error),
                },
            }
        };
        let passed_over = table.versions.iter().filter(|(ppn, _)| passed_over.contains(ppn));
        table.renew.extend(passed_over.map(|(_, spare)| spare.tag));
        table.find_doubtful(survey);
        steps.end("4, 5 spare areas of young blocks, every translation page: PVB, BVC", flash);
        Ok(Self { table, validity, resumed: None })
    }
}

impl Table {
    /// Counts every page of the blocks as live that a save opened: its bitmap was not told of them.
    fn revive_opened(&self, survey: &Survey, since: u64, validity: &mut RamBitmap) {
        for (block, _) in survey.blocks().filter(|(_, info)| info.first_seq >= since) {
            let pages = 0..self.geometry.pages_per_block();
            pages.for_each(|offset| validity.revive(self.geometry.page_at(block, offset)));
        }
    }

    /// Step 2.
    fn new<N: Nand>(
        flash: &mut Flash<N>,
        survey: &mut Survey,
        how: How,
        entries_per_page: u32,
    ) -> Result<Self, FtlError> {
        let logical_pages = how.logical_pages;
        let geometry = *flash.nand().geometry();
        let mut versions = survey.read_kind(flash, PageKind::Translation, |_| true)?;
        versions.retain(|(_, spare)| spare.kind == PageKind::Translation);
        let mut last = vec![Ppn::NONE; geometry.blocks() as usize];
        versions.iter().for_each(|(ppn, _)| last[geometry.block_of(*ppn).index()] = *ppn);
        order::by_tag(&mut versions);
        let count = logical_pages.div_ceil(entries_per_page);
        if let Some((ppn, _)) = versions.iter().find(|(_, spare)| spare.tag >= count) {
            let reason = "it lies outside the disk: the device was formatted with another size";
            return Err(FtlError::Damaged { structure: "translation page", ppn: *ppn, reason });
        }
        Ok(Self {
            geometry,
            logical_pages,
            entries_per_page,
            flags_dead: how.options.flags > 0,
            scans_all: how.options.scans_all,
            versions,
            gmd: vec![Ppn::NONE; count as usize],
            written: vec![0; count as usize],
            bound: 0,
            copies: Vec::new(),
            from: 0,
            whole: false,
            last,
            changes: BTreeMap::new(),
            valid: vec![0; geometry.blocks() as usize],
            newest: None,
            doubtful: Vec::new(),
            stranded: Vec::new(),
            kept: Vec::new(),
            excluded: Vec::new(),
            renew: BTreeSet::new(),
            lived: None,
        })
    }

    /// Fills the directory with the newest version of each translation page that may count.
    fn choose(&mut self, reporting: Reporting, counts: impl Fn(Ppn) -> bool) {
        self.gmd.fill(Ppn::NONE);
        self.written.fill(0);
        for (ppn, spare) in self.versions.iter().rev().filter(|(ppn, _)| counts(*ppn)) {
            let page = spare.tag as usize;
            (self.gmd[page], self.written[page]) = (*ppn, reporting.written_at(spare));
        }
    }

    /// Step 3: takes over what was saved; the number of translation pages and the dirty entries.
    fn load(
        &mut self,
        bytes: &[u8],
        mapping: &CachedMap,
        validity: &mut RamBitmap,
    ) -> Result<(u32, Vec<(Lpn, Ppn)>), FtlError> {
        let mut source = Source(bytes);
        for valid in &mut self.valid {
            let bytes = source.take(2).map_or([0xFF; 2], |bytes| [bytes[0], bytes[1]]);
            *valid = u16::from_le_bytes(bytes);
        }
        let fits = self.valid.iter().all(|valid| u32::from(*valid) <= self.geometry.pages_per_block())
            && validity.load(&mut source);
        let entries = if fits { mapping.saved_entries(&mut source, self.geometry.pages()) } else { None };
        entries.ok_or(FtlError::Damaged {
            structure: "saved state",
            ppn: Ppn::NONE,
            reason: "it is of a disk of another size or with a larger cache",
        })
    }

    /// Step 4: copies among the pages written last, so many of them, or among all.
    fn find_copies<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        survey: &mut Survey,
        updates: Option<u32>,
        excluded: &[Ppn],
    ) -> Result<(), FtlError> {
        self.whole = updates.is_none();
        let bound = if self.whole { 0 } else { self.bound };
        let (found, bound) = survey.programmed_last(flash, updates, bound, self.scans_all)?;
        self.from = bound;
        self.bound = self.bound.max(bound);
        for (ppn, _) in &found {
            let last = &mut self.last[self.geometry.block_of(*ppn).index()];
            if !last.is_some() || *last < *ppn {
                *last = *ppn;
            }
        }
        let flags_dead = self.flags_dead;
        let copy = |torn| {
            move |(ppn, spare): &FoundPage| {
                let (lpn, seq) = (Lpn(spare.tag), spare.seq);
                let stale = flags_dead && spare.flags.contains(STALE);
                FoundCopy { lpn, seq, ppn: *ppn, age: spare.aux, torn, stale, complete: true }
            }
        };
        let torn = survey.torn().iter().filter(|(ppn, spare)| spare.kind == PageKind::User && !excluded.contains(ppn));
        self.copies = found.iter().map(copy(false)).chain(torn.map(copy(true))).collect();
        self.copies.sort_unstable_by_key(|copy| (copy.lpn, u64::MAX - copy.seq));
        debug_assert!(found.iter().all(|(_, spare)| spare.kind == PageKind::User));
        match self.copies.iter().find(|copy| copy.lpn.0 >= self.logical_pages) {
            Some(copy) => {
                let reason = "its logical page lies outside the disk: the device was formatted with another size";
                Err(FtlError::Damaged { structure: "page of host data", ppn: copy.ppn, reason })
            }
            None => Ok(()),
        }
    }

    /// The page programmed last, and what was programmed after it and does not count.
    fn find_newest(&mut self, survey: &Survey, excluded: &[Ppn]) {
        let pages = self.copies.iter().filter(|copy| !copy.torn).map(|copy| (copy.seq, copy.ppn));
        let pages = pages.chain(self.versions.iter().map(|(ppn, spare)| (spare.seq, *ppn)));
        let newest = pages.max();
        let is_newest = |ppn: Ppn| newest.is_some_and(|(_, newest)| newest == ppn);
        let of_table = self.versions.iter().find(|(ppn, _)| is_newest(*ppn)).copied();
        let of_host = self.copies.iter().find(|copy| is_newest(copy.ppn)).map(FoundCopy::found);
        self.newest = of_table.or(of_host);
        let lived = |ppn: Ppn| self.lived.as_ref().is_some_and(|lived| !lived.is_dead(ppn));
        let complete = |seq: u64, ppn: Ppn| seq < survey.in_use_seq() || lived(ppn);
        let is_excluded = |(ppn, spare): &&FoundPage| excluded.contains(ppn) || !complete(spare.seq, *ppn);
        self.excluded = survey.torn().iter().filter(is_excluded).copied().collect();
        self.copies.iter_mut().for_each(|copy| copy.complete = complete(copy.seq, copy.ppn));
        let died = |ppn: Ppn| self.lived.as_ref().is_some_and(|lived| lived.is_dead(ppn));
        self.copies.retain(|copy| (!copy.torn || copy.complete) && !died(copy.ppn));
        debug_assert!(self.copies.iter().all(|copy| !copy.torn || copy.complete), "a page counts that a cut tore");
    }

    /// Forgets what an attempt of step 5 found out.
    fn forget_live(&mut self) {
        self.valid.fill(0);
        self.changes.clear();
        self.doubtful.clear();
        self.kept.clear();
    }

    /// Step 5: the bitmap, and the live pages of each block. `None` if an entry cannot be right and
    /// they are not checked.
    fn find_live<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        survey: &Survey,
        check: bool,
    ) -> Result<Option<RamBitmap>, FtlError> {
        let geometry = self.geometry;
        let mut validity = RamBitmap::new(geometry.blocks(), geometry.pages_per_block());
        self.forget_live();
        let of_block = |block| (0..geometry.pages_per_block()).map(move |offset| geometry.page_at(block, offset));
        survey.blocks().flat_map(|(block, _)| of_block(block)).for_each(|ppn| validity.mark(ppn));
        for at in self.gmd.iter().copied().filter(|at| is_page(*at)) {
            validity.revive(at);
            self.valid[geometry.block_of(at).index()] += 1;
        }
        let mut buffer = vec![0; geometry.page_bytes() as usize];
        let mut rest = &self.copies[..];
        for (page, (at, written)) in (0..).zip(self.gmd.iter().zip(&self.written)) {
            if at.is_some() {
                flash.read_meta(Purpose::Recovery, *at, &mut buffer)?;
            } else {
                buffer.fill(0xFF);
            }
            let entries = entries(&buffer).take(self.entries_per_page as usize);
            for (lpn, entry) in (page * self.entries_per_page..self.logical_pages).map(Lpn).zip(entries) {
                let (of_page, others) = rest.split_at(rest.iter().take_while(|copy| copy.lpn == lpn).count());
                rest = others;
                let unsaved = of_page.first().filter(|copy| copy.is_younger(*written) && copy.seq >= self.from);
                if unsaved.is_some_and(|copy| copy.torn || copy.stale) {
                    self.changes.insert(lpn, LOST);
                    continue;
                }
                let ppn = unsaved.map_or(entry, |copy| copy.ppn);
                if !is_page(ppn) {
                    continue;
                }
                if ppn.0 >= geometry.pages() {
                    return Err(FtlError::Damaged { structure: "translation page", ppn: *at, reason: BEYOND });
                }
                let block = geometry.block_of(ppn);
                let of_host = survey.block(block).is_some_and(|info| info.kind == PageKind::User);
                let holds = match unsaved {
                    Some(_) => true,
                    None if self.whole => of_page.iter().any(|copy| copy.ppn == entry),
                    None if check => holds(flash, ppn, lpn)?,
                    None => is_older(survey, block, *written),
                };
                if of_host && holds && validity.is_dead(ppn) {
                    validity.revive(ppn);
                    self.valid[block.index()] += 1;
                    if let Some(copy) = unsaved {
                        self.changes.insert(lpn, ppn);
                        if !copy.complete && self.last[block.index()] == ppn {
                            self.doubtful.push(*copy);
                            let older = of_page.iter().skip(1).take(doubt::KEPT).map(|copy| copy.ppn);
                            self.kept.extend(older.chain(Some(entry)).map(|ppn| (lpn, ppn)));
                        }
                    }
                } else if check {
                    self.changes.insert(lpn, LOST);
                } else {
                    return Ok(None);
                }
            }
        }
        debug_assert!(rest.is_empty(), "{:?} belongs to no entry", rest.first());
        debug_assert!(self.doubtful.iter().all(|copy| self.changes.get(&copy.lpn) == Some(&copy.ppn)));
        Ok(Some(validity))
    }
}

/// The entries in the bytes of a translation page.
pub(super) fn entries(page: &[u8]) -> impl Iterator<Item = Ppn> {
    CachedMap::entries(page)
}

const BEYOND: &str = "an entry leads to a page beyond the device's last";

/// Whether a block was not erased since a translation page was written that names a page of it. A
/// page that is lost is named until then: what was programmed there since is another's.
fn is_older(survey: &Survey, block: BlockId, written: u64) -> bool {
    survey.block(block).is_some_and(|info| info.first_seq < written)
}

/// Whether a page holds a logical page, as far as it can be read.
pub(super) fn holds<N: Nand>(flash: &mut Flash<N>, ppn: Ppn, lpn: Lpn) -> Result<bool, FtlError> {
    match flash.read_spare(Purpose::Recovery, ppn) {
        Ok(spare) => Ok(spare.is_some_and(|spare| spare.kind == PageKind::User && spare.tag == lpn.0)),
        Err(NandError::Uncorrectable { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
pub(super) mod tests;
