//! Mounting without a full scan (GeckoRec: GeckoFTL, section 4.3 and Appendix C).
//!
//! F is the sequence number at the last flush of the validity store, R the one from which on pages
//! of host data may have had entries only in RAM; both are read from flash.
//! 1. Two spare areas of every block: what it holds and how old it is ([`Survey`]).
//! 2. Spare areas of translation blocks: the newest version of each translation page is in the GMD,
//!    and R is the largest that any says.
//! 3. Spare areas of the store's blocks, and its run directories.
//! 4. Spare areas of blocks with pages younger than F, or than R as it was at F. The newest copy of
//!    a logical page has an entry that was only in RAM if it is younger than its translation page.
//!    Every older copy is dead.
//! 5. Translation pages younger than F are compared with the versions before them: pages that left
//!    are dead, if they still hold what they held (C.2.2). If a page of host data cannot be read
//!    and was not programmed last, all of them are searched for what is lost with it (`lost`).
//! 6. The store is read once: the live pages of every block (BVC).
//! 7. The page programmed last is written again, as its program may have been cut short, and so are
//!    others that are in doubt (`in_doubt`).
//! 8. What the store had only in RAM is reported again: blocks opened since F were erased, and the
//!    pages found in 4 and 5 died. Flushes claim no more than F until all of it is said.
//! 9. Entries that were only in RAM are cached, with flags that say that nothing is known of their
//!    before-images (C.3).
//! 10. What does not count is outranked by a younger page.
//! 11. Blocks of which a page may read otherwise another time are erased.
//! 12. The store is flushed, and claims to know of every page that has died. A version of a
//!     translation page that came back later, older than that, would not be compared any more.
//! 13. Blocks are collected until enough are free.
//!
//! Nothing that a later attempt needs is erased before 11, nor what pages in doubt superseded, so
//! it can be cut short and begun again any number of times.

mod findings;
mod in_doubt;
mod known;
mod lost;
mod rebuild;

use super::{Flash, Lpn, Nand, PageFtl, PageOptions, Plan, Space};
use crate::config::Config;
use crate::contract::{FtlError, MountReport};
use crate::engine::page::choose::most_free;
use crate::engine::page::heal::Heal;
use crate::engine::read_only::{Evidence, Mounted, Unmounted, or_read_only, without_doubt};
use crate::flash::Purpose;
use crate::mapping::cached::{CachedMap, CachedOptions};
use crate::mapping::{LOST, Mapping};
use crate::recovery::plausible::Contents;
use crate::recovery::steps::Steps;
use crate::recovery::survey::{FoundPage, Survey};
use crate::space::blocks::{BlockState, Found};
use crate::space::core::Origin;
use crate::validity::Validity;
use crate::validity::gecko::Gecko;
use alloc::vec::Vec;
use findings::Findings;
use in_doubt::Doubt;
use known::{Known, Reported};
use nand::{BlockId, Geometry, NandError, PageKind, Ppn, Spare};

/// How much of what is on flash an attempt trusts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// All of it.
    Whole,
    /// Not the translation pages: each entry is checked against the pages of host data. The
    /// validity store is taken over only if an earlier attempt began it anew.
    Pages,
    /// Pages of host data alone.
    Nothing,
}

impl<N: Nand + 'static> PageFtl<N, CachedMap, Gecko> {
    /// Makes an empty disk of a device; it rebuilds its metadata whenever a page of it cannot be
    /// read.
    ///
    /// # Errors
    /// As [`PageFtl::format`].
    pub fn format_to_heal(flash: Flash<N>, config: &Config, options: PageOptions) -> Result<Self, FtlError> {
        let (mapping, gecko) = Self::empty_parts(flash.nand(), config)?;
        let mut ftl = Self::format(flash, config, options, mapping, gecko)?;
        ftl.heal = Some(Self::to_heal(config, options));
        Ok(ftl)
    }

    /// Opens a disk after any end, clean or not.
    ///
    /// # Errors
    /// [`FtlError::Unsupported`] and [`FtlError::Damaged`] if the device was formatted for
    /// something else.
    pub fn mount_by_steps(flash: Flash<N>, config: &Config, options: PageOptions) -> Mounted<N> {
        let outcome = without_doubt(flash, |flash, excluded| Self::open_by_steps(flash, config, options, excluded));
        or_read_only(outcome, config, Evidence::Entries)
    }

    fn open_by_steps(
        flash: Flash<N>,
        config: &Config,
        options: PageOptions,
        excluded: &[Ppn],
    ) -> Result<(Self, MountReport), Unmounted<N>> {
        options.only_own_store(config)?;
        let (mapping, gecko) = Self::empty_parts(flash.nand(), config)?;
        let (plan, flash) = Plan::new(flash.nand(), config, options, &mapping, &gecko)?.for_mount(flash)?;
        let space = Space::new(flash.nand(), plan.space);
        let mut ftl = Self::assemble(flash, config, plan, space, mapping, gecko);
        ftl.heal = Some(Self::to_heal(config, options));
        let mut doubt = Doubt { excluded, pages: Vec::new(), known: None };
        match ftl.recover(config, options, Trust::Whole, &mut doubt) {
            Ok(report) => Ok((ftl, report)),
            Err(error) => {
                let page = doubt.is_about(&error);
                Err(Unmounted::in_doubt(ftl.core.flash, error, page))
            }
        }
    }

    fn to_heal(config: &Config, options: PageOptions) -> Heal<Self> {
        let rebuild = |ftl: &mut Self| match &ftl.heal {
            Some(Heal { config, options, .. }) => {
                let (config, options) = (*config, *options);
                let known = Known::of(ftl);
                let mut doubt = Doubt { excluded: &[], pages: Vec::new(), known: Some(&known) };
                ftl.recover(&config, options, Trust::Pages, &mut doubt).map(drop)
            }
            None => Ok(()),
        };
        Heal { config: *config, options, rebuild }
    }

    fn empty_parts(nand: &N, config: &Config) -> Result<(CachedMap, Gecko), FtlError> {
        let geometry = nand.geometry();
        let (page_bytes, pages) = (geometry.page_bytes(), geometry.pages_per_block());
        let cached = CachedOptions::new(config).warmed_for(config).checkpointed();
        let mapping = CachedMap::new(config.logical_pages, page_bytes, cached);
        Ok((mapping, Gecko::new(page_bytes as usize, geometry.blocks(), pages, &config.gecko())?))
    }

    fn contents(nand: &N, config: &Config, mapping: &CachedMap) -> Contents {
        Contents::of_table(nand.geometry(), config.logical_pages, mapping.directory().len(), true)
    }

    /// Brings everything back from flash, trusting it less each time that a page of metadata cannot
    /// be read.
    fn recover(
        &mut self,
        config: &Config,
        options: PageOptions,
        mut trust: Trust,
        doubt: &mut Doubt<'_>,
    ) -> Result<MountReport, FtlError> {
        loop {
            let outcome = self.attempt(config, options, trust, doubt);
            trust = match (&outcome, trust) {
                (Err(error), _) if doubt.is_about(error).is_some() => return outcome,
                (Err(error), Trust::Whole) if is_loss(error) => Trust::Pages,
                (Err(error), Trust::Pages) if is_loss(error) => Trust::Nothing,
                _ => return outcome,
            };
        }
    }

    /// Steps 1 to 6: what was there. Flash is only read.
    fn attempt(
        &mut self,
        config: &Config,
        options: PageOptions,
        trust: Trust,
        doubt: &mut Doubt<'_>,
    ) -> Result<MountReport, FtlError> {
        let (mut mapping, empty) = Self::empty_parts(self.core.flash.nand(), config)?;
        let plan = Plan::new(self.core.flash.nand(), config, options, &mapping, &empty)?;
        let flash = &mut self.core.flash;
        let mut steps = Steps::begin(flash);
        let contents = Self::contents(flash.nand(), config, &mapping);
        let mut survey = doubt.survey(flash, plan.space.lanes, contents)?;
        steps.end("1 first and last spare area of every block", flash);
        let whole = trust == Trust::Whole;
        let mut findings = Findings::translation(flash, &mut survey, &mapping, config.logical_pages, whole)?;
        steps.end("2 spare areas of translation blocks: GMD", flash);
        let found = survey.read_kind(flash, PageKind::Validity, |_| true)?;
        findings.seen.extend_from_slice(&found);
        if let Some(block) = survey.missed().filter(|_| whole) {
            let ppn = flash.nand().geometry().page_at(block, 0);
            let reason = "a page of its block cannot be read";
            return Err(FtlError::Damaged { structure: "metadata", ppn, reason });
        }
        let (mut gecko, anew) = self.store_from(config, trust, &found, &mut findings)?;
        steps.end("3 spare areas of validity blocks: run directories", &self.core.flash);
        let flash = &mut self.core.flash;
        if whole {
            findings.unsaved(flash, &mut survey, &mapping, gecko.last_flush_seq(), doubt)?;
            steps.end("4 spare areas of young blocks: entries only in RAM", flash);
            findings.compare(flash, &survey, &mapping, gecko.last_flush_seq(), doubt)?;
            steps.end("5 translation pages against the versions before", flash);
        } else {
            findings.check_all(flash, &mut survey, &mapping, doubt)?;
            steps.end("4, 5 every spare area of host data against the translation pages", flash);
        }
        findings.find_lost(&mut self.core, &mut gecko, &survey, &mapping)?;
        let valid = findings.count_live(&mut self.core, &mut gecko, &survey)?;
        steps.end("6 one pass over the validity store: BVC", &self.core.flash);

        mapping.restore(core::mem::take(&mut findings.gmd), findings.bound);
        mapping.found_heat(&findings.versions);
        let mut space = Space::new(self.core.flash.nand(), plan.space);
        space.restore(survey.erased_at(), survey.mean_erases(), |block| match survey.block(block) {
            Some(info) => Found::Pages { kind: info.kind, valid: valid[block.index()] },
            // Not to be used again before flash says that its pages are lost, nor left to be read
            // another time.
            None if survey.illegible().contains(&block) => {
                Found::Pages { kind: PageKind::User, valid: u16::from(!findings.lost.is_empty()) }
            }
            None => Found::Empty,
        });
        space.reserve_free(most_free(self.idle_blocks, self.reserve_blocks, self.rest_blocks));
        (self.mapping, self.validity, self.core.space) = (mapping, gecko, space);
        self.placing.level(None);
        self.pins.clear();
        self.core.newly_erased.clear();
        self.core.interrupted = None;
        self.core.deaths.clear();
        (self.moved, self.unreported) = (0, false);
        self.live.clear();
        // Numbers are left out behind a page that does not count (`Survey::stranded`).
        self.core.seq = survey.next_seq() + 2 * u64::from(!doubt.excluded.is_empty());
        debug_assert!(self.core.seq > survey.largest_seq());
        let unsaved = findings.unsaved.len() as u64;
        self.restore(&survey, findings, anew, &mut steps)?;
        self.begin_levelling(config.wear);
        Ok(steps.report(survey.unreadable, unsaved))
    }

    /// Step 3: the validity store, and whether it begins anew.
    fn store_from(
        &mut self,
        config: &Config,
        trust: Trust,
        found: &[FoundPage],
        findings: &mut Findings,
    ) -> Result<(Gecko, bool), FtlError> {
        let whole = trust == Trust::Whole;
        let recovered = match trust {
            Trust::Nothing => Ok(None),
            _ => Gecko::recover(&mut self.core, &config.gecko(), found.iter().copied()).map(Some),
        };
        let recovered = match recovered {
            Err(error) if whole || !is_loss(&error) => return Err(error),
            Err(_) => None,
            Ok(Some(mut gecko)) if !whole => {
                findings.reported = Reported::of(&mut self.core, &mut gecko);
                Some(gecko).filter(|gecko| gecko.last_flush_seq() == 0 && gecko.flushes() > 0)
            }
            Ok(gecko) => gecko,
        };
        let anew = recovered.is_none();
        let gecko = match recovered {
            Some(gecko) => gecko,
            None => Gecko::restart(&self.core, &config.gecko(), found)?,
        };
        Ok((gecko, anew))
    }

    /// Steps 7 to 11: what was only in RAM, or lost.
    fn restore(
        &mut self,
        survey: &Survey,
        mut findings: Findings,
        anew: bool,
        steps: &mut Steps,
    ) -> Result<(), FtlError> {
        self.fickle = fickle(self.core.space.geometry(), survey, &findings.cut_short);
        self.pin_versions(&findings.versions);
        self.validity.hold_flush_seq();
        if anew {
            debug_assert!(self.validity.last_flush_seq() == 0, "a new store claims to know what died");
            // A flush needs a report. This one voids nothing, as long as it is the first.
            self.validity.erased(&mut self.core, BlockId(0), 0)?;
        }
        let newest = survey.newest().map(|(ppn, _)| ppn);
        if let Some(newest) = survey.newest() {
            self.room_to_settle(newest, findings.in_doubt.len())?;
        }
        let in_doubt = core::mem::take(&mut findings.in_doubt);
        if !anew {
            self.refuse_missing(&in_doubt)?;
        }
        for page in &in_doubt {
            // A translation page speaks for all host data before it, so that older ones wait.
            if newest == Some(page.0) || page.1.kind != PageKind::Translation {
                self.settle(*page, &mut findings)?;
            }
        }
        if !in_doubt.iter().any(|(ppn, spare)| self.mapping.owns(*ppn, spare)) {
            self.drop_stand_ins(&mut findings);
        }
        steps.end("7 copy what may not be complete", &self.core.flash);
        if anew {
            // Durable before anything of the old store is erased: of what is left of that a mount
            // could make an older state.
            self.validity.flush(&mut self.core)?;
        }
        self.free_dead_blocks()?;
        self.report_again(survey, &findings)?;
        // A full buffer was flushed with a part of the reports.
        self.pin_versions(&findings.versions);
        steps.end("8 reports that were only in RAM, made again", &self.core.flash);
        self.restore_entries(&findings)?;
        steps.end("9 entries that were only in RAM, cached again", &self.core.flash);
        for (ppn, spare) in &in_doubt {
            if self.mapping.owns(*ppn, spare) {
                self.change(|mapping, core| {
                    mapping.move_page(core, Origin { ppn: *ppn, spare: *spare }, Purpose::Recovery)
                })?;
            }
        }
        self.outrank(&findings.outranked(survey, self.mapping.entries_per_page()))?;
        self.drop_stand_ins(&mut findings);
        self.tell()?;
        if !findings.lost.is_empty() {
            self.synchronise_all()?;
        }
        self.bury(&findings.buried)?;
        steps.end("10 outrank what does not count", &self.core.flash);
        self.collect_fickle()?;
        steps.end("11 erase what may read otherwise another time", &self.core.flash);
        self.validity.release_flush_seq();
        self.validity.flush(&mut self.core)?;
        steps.end("12 flush the validity store", &self.core.flash);
        self.make_space()?;
        steps.end("13 free blocks", &self.core.flash);
        self.refill_cache(steps)
    }

    /// Caches entries of hot translation pages, if that is asked for.
    fn refill_cache(&mut self, steps: &mut Steps) -> Result<(), FtlError> {
        if self.mapping.is_refilled() {
            self.call(|mapping, core| mapping.refill(core))?;
            steps.end("14 entries of hot translation pages: CMT", &self.core.flash);
        }
        Ok(())
    }

    /// Refuses a page of the store that could be read before, and not when its run was read.
    fn refuse_missing(&self, in_doubt: &[(Ppn, Spare)]) -> Result<(), FtlError> {
        match in_doubt.first() {
            Some((ppn, spare))
                if spare.kind == PageKind::Validity
                    && !self.validity.owns(*ppn, spare)
                    && self.validity.misses(spare) =>
            {
                Err(NandError::Uncorrectable { ppn: *ppn }.into())
            }
            _ => Ok(()),
        }
    }

    /// Brings every translation page up to date of which entries were cached again.
    fn synchronise_all(&mut self) -> Result<(), FtlError> {
        loop {
            if !self.change(|mapping, core| mapping.reveal(core))? {
                return Ok(());
            }
            self.free_dead_blocks()?;
        }
    }

    /// Step 9. Entries that were only in RAM fit the cache, unless translation pages were lost or
    /// one came before another left. Were one to leave for another, its translation page would
    /// speak for entries that are not cached yet. So each page is written once then with all of its
    /// entries: it speaks for every page of host data programmed before it, also after the next
    /// cut.
    fn restore_entries(&mut self, findings: &Findings) -> Result<(), FtlError> {
        let lost = findings.lost.iter().map(|lpn| (*lpn, LOST));
        // Not trimmed, if its present copy was found to be worn.
        let dangling = findings.dangling.iter().filter(|lpn| findings.lost.binary_search(lpn).is_err());
        let dangling = dangling.map(|lpn| (*lpn, Ppn::NONE));
        let unsaved = findings.unsaved.iter().map(|copy| (copy.lpn, copy.ppn));
        let mut entries: Vec<(Lpn, Ppn)> = unsaved.chain(lost).chain(dangling).collect();
        if !findings.checked && self.mapping.takes(&entries) {
            for (lpn, ppn) in entries {
                self.mapping.restore_entry(lpn, ppn);
                self.catch_up()?;
            }
            return Ok(());
        }
        debug_assert!(findings.lost.is_sorted_by(|a, b| a < b), "losses are looked up by logical page");
        entries.sort_unstable_by_key(|(lpn, _)| *lpn);
        let per_page = self.mapping.entries_per_page();
        for of_page in entries.chunk_by(|a, b| a.0.0 / per_page == b.0.0 / per_page) {
            debug_assert!(of_page.is_sorted_by(|a, b| a.0 < b.0), "a logical page has two entries");
            self.change(|mapping, core| mapping.restore_page(core, of_page))?;
            self.free_dead_blocks()?;
        }
        Ok(())
    }

    /// Versions of translation pages that another attempt would have to compare must stay until the
    /// store is flushed.
    fn pin_versions(&mut self, versions: &[FoundPage]) {
        let geometry = *self.core.space.geometry();
        for (ppn, _) in versions {
            self.pins.pin(geometry.block_of(*ppn), self.validity.flushes());
        }
    }

    /// Step 8. Counts of live pages know all of it already.
    fn report_again(&mut self, survey: &Survey, findings: &Findings) -> Result<(), FtlError> {
        let flushed = self.validity.last_flush_seq();
        for (block, info) in survey.blocks().filter(|(_, info)| info.first_seq >= flushed) {
            self.validity.erased(&mut self.core, block, info.first_seq)?;
        }
        for block in &findings.revived {
            // What it knew of the block is not said again unless all of it is: it has to find room
            // in one buffer.
            self.validity.flush(&mut self.core)?;
            let seq = survey.block(*block).map_or(0, |info| info.first_seq);
            self.validity.erased(&mut self.core, *block, seq)?;
            let geometry = *self.core.space.geometry();
            for ppn in findings.dead.iter().filter(|ppn| geometry.block_of(**ppn) == *block) {
                self.validity.invalidate(&mut self.core, *ppn)?;
            }
        }
        debug_assert!(findings.dead.is_sorted_by(|a, b| a < b));
        for ppn in &findings.dead {
            // A block erased meanwhile has no dead pages.
            if self.core.space.state(self.core.space.geometry().block_of(*ppn)) == BlockState::Closed {
                self.validity.invalidate(&mut self.core, *ppn)?;
            }
        }
        Ok(())
    }
}

/// Blocks of which a page may read otherwise another time. What outranks a page that was cut short
/// can be lost, as the partner of another page that is.
fn fickle(geometry: &Geometry, survey: &Survey, cut_short: &[Ppn]) -> Vec<BlockId> {
    let torn = cut_short.iter().map(|ppn| geometry.block_of(*ppn));
    let fickle = survey.broken().chain(survey.illegible().iter().chain(survey.pitted()).copied());
    fickle.chain(survey.ending_mute()).chain(torn).collect()
}

/// Whether an error in steps 1 to 6 is about what is on flash: host data is not read there.
fn is_loss(error: &FtlError) -> bool {
    matches!(
        error,
        FtlError::Nand(NandError::Uncorrectable { .. } | NandError::Erased { .. }) | FtlError::Damaged { .. }
    )
}
