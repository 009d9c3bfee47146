//! Mounting without a full scan (GeckoRec: GeckoFTL, section 4.3 and Appendix C).
//!
//! F is the sequence number at the last flush of the validity store, R the one from which on pages of host data may have had
//! entries only in RAM; both are read from flash.
//! 1. Two spare areas of every block: what it holds and how old it is ([`Survey`]).
//! 2. Spare areas of translation blocks: the newest version of each translation page is in the GMD, and R is the largest
//!    that any says.
//! 3. Spare areas of the store's blocks, and its run directories.
//! 4. Spare areas of blocks with pages younger than R or F. The newest copy of a logical page has an entry that was only in
//!    RAM if it is younger than its translation page. Every older copy is dead.
//! 5. Translation pages younger than F are compared with the versions before them: pages that left are dead, if they still
//!    hold what they held (C.2.2).
//! 6. The store is read once: the live pages of every block (BVC).
//! 7. What the store had only in RAM is reported again: blocks opened since F were erased, and the
//!    pages found in 4 and 5 died. Flushes claim no more than F until all of it is said.
//! 8. Entries that were only in RAM are cached, with flags that say that nothing is known of their before-images (C.3).
//! 9. The page programmed last is written again, as its program may have been cut short; the store is
//!    flushed; blocks are collected until enough are free.
//!
//! Nothing that a later attempt needs is erased before 9, so it can be cut short and begun again any number of times.

use super::steps::Steps;
use super::{Flash, Lpn, Nand, PageFtl, PageOptions, Plan, Space};
use crate::config::Config;
use crate::contract::{FtlError, MountReport};
use crate::flash::Purpose;
use crate::mapping::cached::{CachedMap, CachedOptions};
use crate::mapping::{LOST, Mapping, is_page};
use crate::placement::Stream;
use crate::recovery::survey::{FoundPage, Survey};
use crate::space::blocks::{BlockState, Found};
use crate::space::core::{Core, Origin, Pins};
use crate::validity::Validity;
use crate::validity::gecko::Gecko;
use alloc::vec;
use alloc::vec::Vec;
use nand::{NandError, PageKind, Ppn};

/// A report can follow the flush that the report itself caused: pages this much older than F can have died unsaid.
const FLUSH_SLACK: u64 = 16;

/// A copy of a logical page. Ordered by page, youngest first.
#[derive(Clone, Copy, Debug)]
struct Copy {
    lpn: Lpn,
    seq: u64,
    ppn: Ppn,
}

/// What steps 2 to 5 gather.
struct Findings {
    gmd: Vec<Ppn>,
    /// Sequence number of the newest version of each translation page.
    written: Vec<u64>,
    bound: u64,
    versions: Vec<FoundPage>,
    /// Copies that had entries only in RAM, oldest first.
    unsaved: Vec<Copy>,
    /// Pages that died since the last flush, and may not have been reported.
    dead: Vec<Ppn>,
}

type Mapped = CachedMap<true>;

impl<N: Nand> PageFtl<N, Mapped, Gecko> {
    /// Opens a disk after any end, clean or not.
    ///
    /// # Errors
    /// [`FtlError::Unsupported`] and [`FtlError::Damaged`] if the device was formatted for something else, or a structure
    /// that is needed cannot be read.
    pub fn mount_by_steps(
        mut flash: Flash<N>,
        config: &Config,
        options: PageOptions,
    ) -> Result<(Self, MountReport), FtlError> {
        options.only_own_store(config)?;
        let geometry = *flash.nand().geometry();
        let (page_bytes, pages) = (geometry.page_bytes(), geometry.pages_per_block());
        let cached = CachedOptions { checkpoints: true, ..CachedOptions::new(config.cache_entries) };
        let mut mapping = Mapped::new(config.logical_pages, page_bytes, pages, cached);
        let empty = Gecko::new(page_bytes as usize, geometry.blocks(), pages, &config.gecko)?;
        let plan = Plan::new(flash.nand(), config, options, &mapping, &empty)?;
        let mut steps = Steps::begin(&flash);

        let mut survey = Survey::run(&mut flash, plan.space.lanes)?;
        steps.end("1 first and last spare area of every block", &flash);
        let mut findings = Findings::translation(&mut flash, &mut survey, &mapping, config.logical_pages)?;
        steps.end("2 spare areas of translation blocks: GMD", &flash);
        let found = survey.read_kind(&mut flash, PageKind::Validity, |_| true)?;
        let space = Space::new(flash.nand(), plan.space);
        let mut core = Core::new(flash, space, Pins::default());
        let mut gecko = Gecko::recover(&mut core, &config.gecko, found)?;
        steps.end("3 spare areas of validity blocks: run directories", &core.flash);
        findings.unsaved(&mut core.flash, &mut survey, &mapping, gecko.last_flush_seq())?;
        steps.end("4 spare areas of young blocks: entries only in RAM", &core.flash);
        findings.compare(&mut core.flash, &mapping, gecko.last_flush_seq(), page_bytes)?;
        steps.end("5 translation pages against the versions before", &core.flash);
        let valid = findings.count_live(&mut core, &mut gecko, &survey)?;
        steps.end("6 one pass over the validity store: BVC", &core.flash);

        mapping.restore(core::mem::take(&mut findings.gmd), findings.bound);
        let mut space = Space::new(core.flash.nand(), plan.space);
        space.restore(survey.erased_at(), survey.mean_erases(), |block| match survey.block(block) {
            Some(info) => Found::Pages { kind: info.kind, valid: valid[block.index()] },
            None => Found::Empty,
        });
        let mut ftl = Self::assemble(core.flash, config, plan, space, mapping, gecko);
        ftl.core.seq = survey.next_seq();
        ftl.pin_versions(&findings.versions);
        ftl.validity.hold_flush_seq();
        ftl.free_dead_blocks()?;
        ftl.report_again(&survey, &findings)?;
        steps.end("7 reports that were only in RAM, made again", &ftl.core.flash);
        for copy in &findings.unsaved {
            let (mut ctx, mapping) = ftl.parts();
            mapping.restore_entry(&mut ctx, copy.lpn, copy.ppn)?;
        }
        steps.end("8 entries that were only in RAM, cached again", &ftl.core.flash);
        if let Some(newest) = survey.newest() {
            ftl.rewrite(newest)?;
        }
        ftl.report_erased()?;
        ftl.validity.release_flush_seq();
        ftl.validity.flush(&mut ftl.core)?;
        ftl.make_space()?;
        ftl.begin_levelling(config.wear);
        steps.end("9 rewrite the page programmed last, flush, free blocks", &ftl.core.flash);
        let report = MountReport {
            steps: steps.done(),
            unreadable_pages: survey.unreadable,
            rebuilt_entries: findings.unsaved.len() as u64,
        };
        Ok((ftl, report))
    }

    /// Versions of translation pages that another attempt would have to compare must stay until the store is flushed.
    fn pin_versions(&mut self, versions: &[FoundPage]) {
        let geometry = *self.core.space.geometry();
        for (ppn, _) in versions {
            self.core.pins.pin(geometry.block_of(*ppn), self.validity.flushes());
        }
    }

    /// Step 7. Counts of live pages know all of it already.
    fn report_again(&mut self, survey: &Survey, findings: &Findings) -> Result<(), FtlError> {
        let flushed = self.validity.last_flush_seq();
        for (block, info) in survey.blocks().filter(|(_, info)| info.first_seq >= flushed) {
            self.validity.erased(&mut self.core, block, info.first_seq)?;
        }
        for ppn in &findings.dead {
            // A block erased meanwhile has no dead pages.
            if self.core.space.state(self.core.space.geometry().block_of(*ppn)) == BlockState::Closed {
                self.validity.invalidate(&mut self.core, *ppn)?;
            }
        }
        Ok(())
    }
}

impl<N: Nand, M: Mapping, V: Validity> PageFtl<N, M, V> {
    /// Writes the page programmed last again, whatever it is.
    pub(super) fn rewrite(&mut self, (ppn, spare): FoundPage) -> Result<(), FtlError> {
        let origin = Origin { ppn, spare };
        match spare.kind {
            PageKind::User if spare.tag < self.logical_pages => {
                let lpn = Lpn(spare.tag);
                let (mut ctx, mapping) = self.parts();
                if mapping.lookup(&mut ctx, lpn)? != ppn {
                    return Ok(());
                }
                let to = match self.core.move_host_page(Purpose::Recovery, Stream(0), origin) {
                    Ok(to) => to,
                    Err(FtlError::Nand(NandError::Uncorrectable { ppn: at })) if at == ppn => LOST,
                    Err(error) => return Err(error),
                };
                self.report_erased()?;
                let (mut ctx, mapping) = self.parts();
                mapping.record(&mut ctx, lpn, to)
            }
            PageKind::Translation if self.mapping.owns(ppn, &spare) => {
                let (mut ctx, mapping) = self.parts();
                mapping.move_page(&mut ctx, origin, Purpose::Recovery)
            }
            PageKind::Validity if self.validity.owns(ppn, &spare) => {
                let (to, spare) = self.core.move_metadata_page(Purpose::Recovery, origin)?;
                self.validity.moved(ppn, to, &spare);
                self.core.space.page_died(ppn);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl Findings {
    /// Step 2.
    fn translation<N: Nand>(
        flash: &mut Flash<N>,
        survey: &mut Survey,
        mapping: &Mapped,
        logical_pages: u32,
    ) -> Result<Self, FtlError> {
        let mut versions = survey.read_kind(flash, PageKind::Translation, |_| true)?;
        let count = logical_pages.div_ceil(mapping.entries_per_page()) as usize;
        versions.sort_unstable_by_key(|(_, spare)| (spare.tag, u64::MAX - spare.seq));
        let (mut gmd, mut written, mut bound) = (vec![Ppn::NONE; count], vec![0; count], 0);
        for (ppn, spare) in versions.iter().rev() {
            let page = spare.tag as usize;
            if page >= count {
                let reason = "it lies outside the disk: the device was formatted with another size";
                return Err(FtlError::Damaged { structure: "translation page", ppn: *ppn, reason });
            }
            (gmd[page], written[page]) = (*ppn, spare.seq);
            bound = bound.max(Mapped::bound_of(spare));
        }
        Ok(Self { gmd, written, bound, versions, unsaved: Vec::new(), dead: Vec::new() })
    }

    /// Step 4.
    fn unsaved<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        survey: &mut Survey,
        mapping: &Mapped,
        flushed: u64,
    ) -> Result<(), FtlError> {
        let from = self.bound.min(flushed.saturating_sub(FLUSH_SLACK));
        let found = survey.read_kind(flash, PageKind::User, |info| info.last_seq >= from || !info.whole)?;
        let mut copies: Vec<Copy> =
            found.iter().map(|(ppn, spare)| Copy { lpn: Lpn(spare.tag), seq: spare.seq, ppn: *ppn }).collect();
        copies.sort_unstable_by_key(|copy| (copy.lpn, u64::MAX - copy.seq));
        let mut buffer = vec![0; flash.nand().geometry().page_bytes() as usize];
        let mut loaded = None;
        for of_page in copies.chunk_by(|a, b| a.lpn == b.lpn) {
            let page = (of_page[0].lpn.0 / mapping.entries_per_page()) as usize;
            let Some(&written) = self.written.get(page) else {
                let reason = "its logical page lies outside the disk: the device was formatted with another size";
                return Err(FtlError::Damaged { structure: "page of host data", ppn: of_page[0].ppn, reason });
            };
            let (newest, older) = (of_page[0], &of_page[1..]);
            self.dead.extend(older.iter().map(|copy| copy.ppn));
            if newest.seq > written {
                self.unsaved.push(newest);
            } else if written >= flushed {
                // Trimmed, if flash does not name it.
                if loaded.replace(page) != Some(page) {
                    flash.read_meta(Purpose::Recovery, self.gmd[page], &mut buffer)?;
                }
                let index = (newest.lpn.0 % mapping.entries_per_page()) as usize;
                if Mapped::entries(&buffer).nth(index) != Some(newest.ppn) {
                    self.dead.push(newest.ppn);
                }
            }
        }
        // A page that cannot be read died before it was complete, unless flash names it: then it is worn, and lost.
        for (ppn, spare) in survey.torn().iter().filter(|(_, spare)| spare.kind == PageKind::User) {
            let page = (spare.tag / mapping.entries_per_page()) as usize;
            let at = self.gmd.get(page).copied().unwrap_or(Ppn::NONE);
            if is_page(at) {
                flash.read_meta(Purpose::Recovery, at, &mut buffer)?;
            }
            let index = (spare.tag % mapping.entries_per_page()) as usize;
            if !is_page(at) || Mapped::entries(&buffer).nth(index) != Some(*ppn) {
                self.dead.push(*ppn);
            }
        }
        Ok(())
    }

    /// Step 5.
    fn compare<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        mapping: &Mapped,
        flushed: u64,
        page_bytes: u32,
    ) -> Result<(), FtlError> {
        let page = || vec![0; page_bytes as usize];
        let (mut newest, mut young, mut old) = (page(), page(), page());
        let versions = core::mem::take(&mut self.versions);
        for of_page in versions.chunk_by(|a, b| a.1.tag == b.1.tag) {
            let first = of_page[0].1.tag * mapping.entries_per_page();
            if of_page[0].1.seq >= flushed {
                flash.read_meta(Purpose::Recovery, of_page[0].0, &mut newest)?;
            }
            for pair in of_page.windows(2).take_while(|pair| pair[0].1.seq >= flushed) {
                flash.read_meta(Purpose::Recovery, pair[0].0, &mut young)?;
                flash.read_meta(Purpose::Recovery, pair[1].0, &mut old)?;
                let entries = Mapped::entries(&young).zip(Mapped::entries(&old)).zip(Mapped::entries(&newest));
                for (index, ((_, before), now)) in
                    entries.enumerate().filter(|(_, ((after, before), _))| after != before && is_page(*before))
                {
                    let lpn = Lpn(first + index as u32);
                    if self.has_died(flash, lpn, before, now)? {
                        self.dead.push(before);
                    }
                }
            }
        }
        self.versions = versions;
        self.versions.retain({
            let written = &self.written;
            move |(_, spare)| written[spare.tag as usize] >= flushed
        });
        Ok(())
    }

    /// Whether a page that a translation page no longer names still holds the logical page and is not its present copy.
    fn has_died<N: Nand>(&self, flash: &mut Flash<N>, lpn: Lpn, before: Ppn, in_flash: Ppn) -> Result<bool, FtlError> {
        let unsaved = self.unsaved.binary_search_by_key(&lpn, |copy| copy.lpn);
        let present = unsaved.map_or(in_flash, |at| self.unsaved[at].ppn);
        match flash.read_spare(Purpose::Recovery, before) {
            Ok(Some(spare)) => Ok(spare.kind == PageKind::User && spare.tag == lpn.0 && before != present),
            Ok(None) | Err(NandError::Uncorrectable { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Step 6: the live pages of each block. Leaves in `dead` what the store does not know.
    fn count_live<N: Nand>(
        &mut self,
        core: &mut Core<N>,
        gecko: &mut Gecko,
        survey: &Survey,
    ) -> Result<Vec<u16>, FtlError> {
        let geometry = *core.flash.nand().geometry();
        let flushed = gecko.last_flush_seq();
        let mut valid: Vec<u16> = vec![0; geometry.blocks() as usize];
        for (block, info) in survey.blocks().filter(|(_, info)| info.kind == PageKind::User) {
            valid[block.index()] = info.programmed;
        }
        self.dead.sort_unstable();
        self.dead.dedup();
        let (dead, mut known) = (&self.dead, Vec::new());
        gecko.for_each_block(core, Purpose::Recovery, |block, set| {
            let Some(info) = survey.block(block) else { return };
            if info.kind == PageKind::User && info.first_seq < flushed {
                valid[block.index()] = valid[block.index()].saturating_sub(set.count() as u16);
                let begin = dead.partition_point(|ppn| geometry.block_of(*ppn) < block);
                let end = dead.partition_point(|ppn| geometry.block_of(*ppn) <= block);
                known.extend(dead[begin..end].iter().filter(|ppn| set.contains(geometry.offset_of(**ppn))));
            }
        })?;
        self.dead.retain(|ppn| known.binary_search(ppn).is_err());
        for ppn in &self.dead {
            let count = &mut valid[geometry.block_of(*ppn).index()];
            *count = count.saturating_sub(1);
        }
        for ppn in self.gmd.iter().copied().filter(|ppn| is_page(*ppn)).chain(gecko.live_pages()) {
            valid[geometry.block_of(ppn).index()] += 1;
        }
        // The cache takes them in the order in which they were used.
        self.unsaved.sort_unstable_by_key(|copy| copy.seq);
        Ok(valid)
    }
}
