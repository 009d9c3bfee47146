//! Mounting a translation table in flash, one entry a logical page, over a validity bitmap that is only in RAM.
//!
//! 1. Two spare areas of every block: what it holds and how old it is ([`Survey`]).
//! 2. Spare areas of translation blocks: the versions of each translation page.
//! 3. *With a battery*, what it saved: dirty entries, bitmap and counts of live pages, if nothing was programmed since. Then the
//!    newest version of each translation page that the bitmap says lives is in the GMD, and all is as it was.
//!    Nothing is programmed or erased, so that the saved state stays valid until the first operation.
//! 4. *With a bound on dirty entries* (LazyFTL), spare areas of the blocks that hold the n pages of host data programmed last: the
//!    newest copy of a logical page has an entry that was only in RAM if it is younger than its translation page. *If a
//!    battery saved nothing*, because no block was left for it or it was too weak, those of all blocks: the newest copy counts.
//! 5. Every translation page: what an entry names lives, all else is dead. Without a bound on dirty entries an entry can
//!    name a page that holds something else by now, so that every one is checked against the spare area it leads to; one that
//!    is wrong is lost.
//! 6. The page programmed last is written again, as its program may have been cut short.
//! 7. The entries found in 4 are synchronised, a translation page at a time.
//! 8. Blocks are collected until enough are free.
//!
//! Cut short, it can be begun again any number of times. Until 6 nothing is programmed; the copy that the page programmed last
//! superseded is not erased before it; and pages of host data are not moved before 8, so the n programmed last stay
//! among the youngest.

use super::steps::Steps;
use super::{Flash, Lpn, Nand, PageFtl, PageOptions, Plan, Space};
use crate::config::Config;
use crate::contract::{FtlError, MountReport};
use crate::engine::read_only::{Evidence, Mounted, Unmounted, or_read_only, without_doubt};
use crate::flash::Purpose;
use crate::mapping::cached::{CachedMap, CachedOptions};
use crate::mapping::{LOST, is_page};
use crate::recovery::saved;
use crate::recovery::survey::{FoundPage, Survey};
use crate::saved::Source;
use crate::space::blocks::Found;
use crate::validity::Validity;
use crate::validity::ram_bitmap::RamBitmap;
use alloc::vec;
use alloc::vec::Vec;
use nand::{BlockId, Geometry, NandError, PageKind, Ppn};

/// A copy of a logical page.
#[derive(Clone, Copy, Debug)]
struct Copy {
    lpn: Lpn,
    seq: u64,
    ppn: Ppn,
}

/// What is known of the table before there is an FTL.
struct Table {
    geometry: Geometry,
    logical_pages: u32,
    entries_per_page: u32,
    /// Pages of translation blocks, by translation page, the newest version first.
    versions: Vec<FoundPage>,
    gmd: Vec<Ppn>,
    /// Sequence number of each translation page.
    written: Vec<u64>,
    bound: u64,
    /// Copies that had entries only in RAM, by logical page.
    unsaved: Vec<Copy>,
    /// Logical pages whose entries lead nowhere.
    broken: Vec<Lpn>,
    /// Live pages of each block.
    valid: Vec<u16>,
    /// The page programmed last, and copies that it superseded.
    newest: Option<FoundPage>,
    superseded: Vec<Ppn>,
}

impl<N: Nand + 'static, const LAZY: bool> PageFtl<N, CachedMap<LAZY>, RamBitmap> {
    /// Opens a disk after any end, clean or not.
    ///
    /// # Errors
    /// [`FtlError::Unsupported`] and [`FtlError::Damaged`] if the device was formatted for something else, or a translation page
    /// cannot be read.
    pub fn mount_flat(flash: Flash<N>, config: &Config, options: PageOptions, cached: CachedOptions) -> Mounted<N> {
        // A translation page that is moved as it is claims more by its sequence number than it knows.
        let evidence = if LAZY { Evidence::Entries } else { Evidence::Sequence };
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
        let mut mapping = CachedMap::<LAZY>::new(config.logical_pages, geometry.page_bytes(), pages, cached);
        let validity = RamBitmap::new(geometry.blocks(), pages);
        let plan = Plan::new(flash.nand(), config, options, &mapping, &validity)?;
        let (plan, mut flash) = plan.for_mount(flash)?;
        let mut steps = Steps::begin(&flash);
        let mut survey = match Survey::run(&mut flash, plan.space.lanes, excluded) {
            Ok(survey) => survey,
            Err(error) => return Err(Unmounted::with(flash, error)),
        };
        let newest = survey.newest().map(|(ppn, _)| ppn);
        steps.end("1 first and last spare area of every block", &flash);
        let saving = (options.battery, plan.battery);
        let known = match Known::find(&mut flash, &mut survey, config, saving, &mut mapping, validity, &mut steps) {
            Ok(known) => known,
            Err(error) => return Err(Unmounted::in_doubt(flash, error, newest)),
        };
        let Known { mut table, validity, resumed } = known;
        let mut ftl = Self::of_table(flash, config, plan, &survey, mapping, validity, &mut table);
        if resumed.is_none()
            && let Err(error) = ftl.settle(&table, &mut steps)
        {
            return Err(Unmounted::in_doubt(ftl.core.flash, error, newest));
        }
        ftl.begin_levelling(config.wear);
        Ok((ftl, steps.report(survey.unreadable, resumed.unwrap_or(table.unsaved.len() as u64))))
    }

    /// An FTL that knows what the table says.
    fn of_table(
        flash: Flash<N>,
        config: &Config,
        plan: Plan,
        survey: &Survey,
        mut mapping: CachedMap<LAZY>,
        mut validity: RamBitmap,
        table: &mut Table,
    ) -> Self {
        mapping.restore(core::mem::take(&mut table.gmd), table.bound);
        let mut space = Space::new(flash.nand(), plan.space);
        space.restore(survey.erased_at(), survey.mean_erases(), |block| match survey.block(block) {
            Some(info) if info.kind == PageKind::Checkpoint => Found::Pages { kind: info.kind, valid: 0 },
            Some(info) => Found::Pages { kind: info.kind, valid: table.valid[block.index()] },
            // What lives there was saved to live, and can no longer be read.
            None if table.valid[block.index()] > 0 => {
                Found::Pages { kind: PageKind::User, valid: table.valid[block.index()] }
            }
            None => Found::Empty,
        });
        let blank = |block: &BlockId| survey.block(*block).is_none() && table.valid[block.index()] == 0;
        (0..table.geometry.blocks()).map(BlockId).filter(blank).for_each(|block| validity.reset(block));
        let mut ftl = Self::assemble(flash, config, plan, space, mapping, validity);
        ftl.core.seq = survey.next_seq();
        ftl
    }

    /// Steps 6 to 8.
    fn settle(&mut self, table: &Table, steps: &mut Steps) -> Result<(), FtlError> {
        let entries = table.unsaved.iter().map(|copy| (copy.lpn, copy.ppn));
        for (lpn, ppn) in entries.chain(table.broken.iter().map(|lpn| (*lpn, LOST))) {
            self.room()?;
            let (mut ctx, mapping) = self.parts();
            mapping.restore_known(&mut ctx, lpn, ppn)?;
        }
        if let Some(newest) = table.newest {
            let geometry = table.geometry;
            let keep: Vec<BlockId> = table.superseded.iter().map(|ppn| geometry.block_of(*ppn)).collect();
            self.free_dead(|block, _| !keep.contains(&block))?;
            self.rewrite(newest)?;
        }
        self.report_erased()?;
        steps.end("6 rewrite the page programmed last", &self.core.flash);
        loop {
            self.room()?;
            let (mut ctx, mapping) = self.parts();
            if !mapping.synchronise_next(&mut ctx)? {
                break;
            }
        }
        self.mapping.all_synchronised(self.core.seq);
        steps.end("7 synchronise what was only in RAM", &self.core.flash);
        self.report_erased()?;
        self.make_space()?;
        steps.end("8 free blocks", &self.core.flash);
        Ok(())
    }
}

/// What steps 2 to 5 find out.
struct Known {
    table: Table,
    validity: RamBitmap,
    /// How many entries a battery saved, if all is as it was.
    resumed: Option<u64>,
}

impl Known {
    /// Steps 2 to 5. Flash is only read. `saving` is whether the design assumes a battery, and whether there is one.
    fn find<N: Nand, const LAZY: bool>(
        flash: &mut Flash<N>,
        survey: &mut Survey,
        config: &Config,
        saving: (bool, bool),
        mapping: &mut CachedMap<LAZY>,
        mut validity: RamBitmap,
        steps: &mut Steps,
    ) -> Result<Self, FtlError> {
        let mut table = Table::new(flash, survey, config.logical_pages, mapping.entries_per_page())?;
        steps.end("2 spare areas of translation blocks: GMD", flash);
        let mut saved = false;
        if saving.0 {
            let bytes = saved::find(flash, survey)?;
            steps.end("3 pages that a battery saved: dirty entries, BVC, PVB", flash);
            if let Some(bytes) = bytes {
                saved = true;
                let (translation_pages, entries) = table.load(&bytes, mapping, &mut validity)?;
                table.choose(mapping, |ppn| !validity.is_dead(ppn));
                if table.gmd.iter().filter(|at| is_page(**at)).count() == translation_pages as usize {
                    mapping.restore_saved(&entries);
                    return Ok(Self { table, validity, resumed: Some(entries.len() as u64) });
                }
                // The device took a translation page: what it said has to be found out again.
                table.unsaved = entries.into_iter().map(|(lpn, ppn)| Copy { lpn, seq: 0, ppn }).collect();
                table.unsaved.sort_unstable_by_key(|copy| copy.lpn);
            }
        }
        table.choose(mapping, |_| true);
        let updates = mapping.recent_updates();
        let bounded = updates.is_some();
        let all = saving.1 && !saved;
        if bounded || all {
            table.find_unsaved(flash, survey, updates.filter(|_| !all))?;
            steps.end("4 spare areas of young blocks: entries only in RAM", flash);
        }
        table.newest = survey.newest();
        validity = match table.find_live(flash, survey, !bounded)? {
            Some(validity) => validity,
            None => {
                // A translation page is older than it should be: entries have to be checked after all.
                table.find_live(flash, survey, true)?.unwrap_or(validity)
            }
        };
        steps.end("5 every translation page: PVB, BVC", flash);
        Ok(Self { table, validity, resumed: None })
    }
}

impl Table {
    /// Step 2.
    fn new<N: Nand>(
        flash: &mut Flash<N>,
        survey: &mut Survey,
        logical_pages: u32,
        entries_per_page: u32,
    ) -> Result<Self, FtlError> {
        let geometry = *flash.nand().geometry();
        let mut versions = survey.read_kind(flash, PageKind::Translation, |_| true)?;
        versions.retain(|(_, spare)| spare.kind == PageKind::Translation);
        versions.sort_unstable_by_key(|(_, spare)| (spare.tag, u64::MAX - spare.seq));
        let count = logical_pages.div_ceil(entries_per_page);
        if let Some((ppn, _)) = versions.iter().find(|(_, spare)| spare.tag >= count) {
            let reason = "it lies outside the disk: the device was formatted with another size";
            return Err(FtlError::Damaged { structure: "translation page", ppn: *ppn, reason });
        }
        Ok(Self {
            geometry,
            logical_pages,
            entries_per_page,
            versions,
            gmd: vec![Ppn::NONE; count as usize],
            written: vec![0; count as usize],
            bound: 0,
            unsaved: Vec::new(),
            broken: Vec::new(),
            valid: vec![0; geometry.blocks() as usize],
            newest: None,
            superseded: Vec::new(),
        })
    }

    /// Fills the directory with the newest version of each translation page that may count.
    fn choose<const LAZY: bool>(&mut self, _: &CachedMap<LAZY>, counts: impl Fn(Ppn) -> bool) {
        for (ppn, spare) in self.versions.iter().rev().filter(|(ppn, _)| counts(*ppn)) {
            let page = spare.tag as usize;
            (self.gmd[page], self.written[page]) = (*ppn, spare.seq);
            self.bound = self.bound.max(CachedMap::<LAZY>::bound_of(spare));
        }
    }

    /// Step 3: takes over what was saved; the number of translation pages and the dirty entries.
    fn load<const LAZY: bool>(
        &mut self,
        bytes: &[u8],
        mapping: &CachedMap<LAZY>,
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

    /// Step 4: among the pages written last, so many of them, or among all.
    fn find_unsaved<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        survey: &mut Survey,
        updates: Option<u32>,
    ) -> Result<(), FtlError> {
        let (found, bound) = survey.programmed_last(flash, updates, self.bound)?;
        self.bound = bound;
        let copies: Vec<Copy> =
            found.iter().map(|(ppn, spare)| Copy { lpn: Lpn(spare.tag), seq: spare.seq, ppn: *ppn }).collect();
        let newest = survey.newest().map(|(ppn, _)| ppn);
        for of_page in copies.chunk_by(|a, b| a.lpn == b.lpn) {
            let copy = of_page[0];
            if copy.lpn.0 >= self.logical_pages {
                let reason = "its logical page lies outside the disk: the device was formatted with another size";
                return Err(FtlError::Damaged { structure: "page of host data", ppn: copy.ppn, reason });
            }
            if updates.is_none() || copy.seq > self.written[(copy.lpn.0 / self.entries_per_page) as usize] {
                self.unsaved.push(copy);
            }
            if Some(copy.ppn) == newest {
                self.superseded.extend(of_page.get(1).map(|older| older.ppn));
            }
        }
        Ok(())
    }

    /// Step 5: the bitmap, and the live pages of each block. `None` if an entry cannot be right and they are not checked.
    fn find_live<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        survey: &Survey,
        check: bool,
    ) -> Result<Option<RamBitmap>, FtlError> {
        let geometry = self.geometry;
        let mut validity = RamBitmap::new(geometry.blocks(), geometry.pages_per_block());
        self.valid.fill(0);
        self.broken.clear();
        for (block, _) in survey.blocks() {
            (0..geometry.pages_per_block()).for_each(|offset| validity.mark(geometry.page_at(block, offset)));
        }
        for at in self.gmd.iter().copied().filter(|at| is_page(*at)) {
            validity.revive(at);
            self.valid[geometry.block_of(at).index()] += 1;
        }
        if let Some((at, spare)) = self.newest.filter(|(_, spare)| spare.kind == PageKind::Translation) {
            let versions = self.versions.iter().filter(|(ppn, older)| older.tag == spare.tag && *ppn != at);
            self.superseded.extend(versions.map(|(ppn, _)| *ppn).next());
        }
        let mut buffer = vec![0; geometry.page_bytes() as usize];
        let mut unsaved = self.unsaved.iter().peekable();
        for (page, at) in (0..).zip(&self.gmd) {
            if at.is_some() {
                flash.read_meta(Purpose::Recovery, *at, &mut buffer)?;
            } else {
                buffer.fill(0xFF);
            }
            for (lpn, entry) in (page * self.entries_per_page..self.logical_pages).zip(entries(&buffer)) {
                let known = unsaved.next_if(|copy| copy.lpn.0 == lpn);
                if known.is_some_and(|copy| self.newest.is_some_and(|(ppn, _)| ppn == copy.ppn)) && is_page(entry) {
                    self.superseded.push(entry);
                }
                let ppn = known.map_or(entry, |copy| copy.ppn);
                if !is_page(ppn) {
                    continue;
                }
                if ppn.0 >= geometry.pages() {
                    let reason = "an entry leads to a page beyond the device's last";
                    return Err(FtlError::Damaged { structure: "translation page", ppn: *at, reason });
                }
                let of_host = survey.block(geometry.block_of(ppn)).is_some_and(|info| info.kind == PageKind::User);
                let right =
                    of_host && validity.is_dead(ppn) && (!check || known.is_some() || holds(flash, ppn, Lpn(lpn))?);
                if right {
                    validity.revive(ppn);
                    self.valid[geometry.block_of(ppn).index()] += 1;
                } else if check {
                    self.broken.push(Lpn(lpn));
                } else {
                    return Ok(None);
                }
            }
        }
        self.superseded.retain(|ppn| ppn.0 < geometry.pages());
        Ok(Some(validity))
    }
}

/// The entries in the bytes of a translation page.
fn entries(page: &[u8]) -> impl Iterator<Item = Ppn> {
    CachedMap::<false>::entries(page)
}

/// Whether a page holds a logical page, as far as it can be read.
pub(super) fn holds<N: Nand>(flash: &mut Flash<N>, ppn: Ppn, lpn: Lpn) -> Result<bool, FtlError> {
    match flash.read_spare(Purpose::Recovery, ppn) {
        Ok(spare) => Ok(spare.is_some_and(|spare| spare.kind == PageKind::User && spare.tag == lpn.0)),
        Err(NandError::Uncorrectable { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
