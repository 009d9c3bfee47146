//! Pages that power loss leaves in doubt, when GeckoFTL mounts.
//!
//! The page programmed last can be torn, however well it reads. It is copied before anything else
//! is programmed. If it cannot be read then, the mount is done as if it had never been programmed
//! ([`without_doubt`]).
//! 1. A mount that could not read such a page, and was cut short, leaves sequence numbers out
//!    behind it. So a page with a gap behind it is in doubt too ([`Survey::stranded`]), unless
//!    flash names it. It is copied next.
//! 2. A translation page speaks for every page of host data programmed before it. Its copy speaks
//!    for younger ones too, so that it is written only when their entries are cached, with all of
//!    those.
//! 3. What a page in doubt superseded counts as live until that page is settled: of a translation
//!    page, the version before it.
//! 4. A page of host data that cannot be read, although younger ones can and no gap is behind it,
//!    is worn: its logical page is lost (`lost`). If its program failed, the next page found holds
//!    the same, and was cut short itself.
//! 5. Any other does not count. It may be read well by a later mount. So its translation page is
//!    written again, and its block is collected, as are blocks with a page of which nothing can be
//!    read. Only then does a flush of the validity store claim to know what has died.
//!
//! [`without_doubt`]: crate::engine::read_only::without_doubt

use super::findings::{Findings, HostCopy};
use super::known::Known;
use super::{Flash, Lpn, Mapping, Nand, PageFtl, Validity};
use crate::contract::FtlError;
use crate::engine::page::collect::room_for;
use crate::engine::read_only::is_unreadable;
use crate::flash::Purpose;
use crate::mapping::cached::CachedMap;
use crate::placement::Stream;
use crate::recovery::can_be_read;
use crate::recovery::order;
use crate::recovery::plausible::Contents;
use crate::recovery::survey::{FoundPage, Survey};
use crate::space::core::Origin;
use crate::validity::gecko::Gecko;
use alloc::vec::Vec;
use nand::{NandError, PageKind, Ppn};

/// What an attempt knows of pages whose programs power loss may have cut short.
pub(super) struct Doubt<'a> {
    /// Pages that do not count, whatever they answer.
    pub(super) excluded: &'a [Ppn],
    /// Pages that count and may not be complete, as far as they are known.
    pub(super) pages: Vec<Ppn>,
    /// What RAM knew, if power was not lost.
    pub(super) known: Option<&'a Known>,
}

impl Doubt<'_> {
    /// The page in doubt that cannot be read, if that is what an error says.
    pub(super) fn is_about(&self, error: &FtlError) -> Option<Ppn> {
        self.pages.iter().copied().find(|ppn| is_unreadable(error, *ppn))
    }

    /// Step 1; the page programmed last is in doubt, unless power stayed on.
    pub(super) fn survey<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        lanes: u32,
        contents: Contents,
    ) -> Result<Survey, FtlError> {
        let outcome = Survey::run(flash, lanes, self.excluded, contents, |_| 0);
        let newest = match &outcome {
            Ok(survey) => survey.newest().map(|(ppn, _)| ppn),
            Err(FtlError::Nand(NandError::Uncorrectable { ppn })) => Some(*ppn),
            Err(_) => None,
        };
        self.pages = newest.into_iter().filter(|_| self.known.is_none()).collect();
        outcome
    }

    /// Whether a page may not be complete.
    pub(super) fn holds(&self, ppn: Ppn) -> bool {
        self.pages.contains(&ppn)
    }
}

impl<N: Nand + 'static> PageFtl<N, CachedMap, Gecko> {
    /// Step 7, when blocks are short: erases blocks in which nothing lives, whether the page
    /// programmed last counts or not. Each of so many copies may begin a block of its own.
    pub(super) fn room_to_settle(&mut self, (_, newest): FoundPage, copies: usize) -> Result<(), FtlError> {
        if self.core.space.free_blocks() >= room_for(copies) {
            return Ok(());
        }
        // Without the last page of a run of the store older runs count, and an older flush.
        self.free_dead(|_, kind| newest.kind != PageKind::Validity || kind == PageKind::User)
    }

    /// Step 7: nothing is programmed before the copy of the page programmed last, and nothing
    /// erased that it superseded.
    pub(super) fn settle(&mut self, (ppn, spare): FoundPage, findings: &mut Findings) -> Result<(), FtlError> {
        let origin = Origin { ppn, spare };
        match spare.kind {
            PageKind::User => {
                let Some(at) = findings.unsaved.iter().position(|copy| copy.ppn == ppn) else { return Ok(()) };
                debug_assert!(findings.unsaved[at].lpn == Lpn(spare.tag), "{ppn} is taken for another page");
                // The copy says how old it is: this page may be all that tells that the one before
                // it was complete.
                self.core.settling = Some(0);
                let moved = self.core.move_host_page(Purpose::Recovery, Stream(0), &origin);
                self.core.settling = None;
                let to = moved?;
                findings.unsaved[at] = HostCopy { lpn: Lpn(spare.tag), seq: self.core.seq - 1, ppn: to };
                findings.unsaved.sort_unstable_by_key(|copy| copy.seq);
                self.core.space.page_died(ppn);
                if let Err(at) = findings.dead.binary_search(&ppn) {
                    findings.dead.insert(at, ppn);
                }
                self.tell()
            }
            PageKind::Translation if self.mapping.owns(ppn, &spare) => {
                // No page of host data is younger: what it says of them stays true for its copy.
                self.change(|mapping, core| mapping.move_page(core, origin, Purpose::Recovery))
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

    /// Pages in doubt are settled: what they superseded is dead.
    pub(super) fn drop_stand_ins(&mut self, findings: &mut Findings) {
        for superseded in findings.stand_ins.drain(..) {
            self.core.space.page_died(superseded);
        }
    }

    /// Step 10: a page of host data that does not count may be read well by another mount. A
    /// younger translation page says then that it does not count.
    pub(super) fn outrank(&mut self, pages: &[Lpn]) -> Result<(), FtlError> {
        for lpn in pages {
            self.change(|mapping, core| mapping.restore_page_of(core, *lpn))?;
            self.free_dead_blocks()?;
        }
        Ok(())
    }
}

impl Findings {
    /// Tells pages that may not have been complete when power went.
    ///
    /// The page programmed last is one. So is one that was the last before power went once, if a
    /// mount that was cut short has programmed since: that mount may have found it unreadable. If
    /// power did not go, every page that cannot be read is worn.
    pub(super) fn find_doubt<N: Nand>(
        &mut self,
        flash: &Flash<N>,
        mapping: &CachedMap,
        survey: &Survey,
        copies: &[HostCopy],
        doubt: &mut Doubt<'_>,
    ) {
        let seen = core::mem::take(&mut self.seen);
        if doubt.known.is_some() {
            return;
        }
        let (geometry, entries_per_page) = (flash.nand().geometry(), mapping.entries_per_page());
        let stranded = survey.stranded(geometry, &[&seen[..], survey.torn()].concat());
        let newest = survey.newest();
        let is_torn = |ppn: &Ppn| survey.torn().iter().any(|(at, _)| at == ppn);
        let is_newest = |ppn: &Ppn| newest.is_some_and(|(at, _)| at == *ppn);
        let others = stranded.iter().filter(|(ppn, _)| !is_torn(ppn) && !is_newest(ppn));
        // One of host data that flash names was complete then.
        let named = |(_, spare): &FoundPage| match spare.kind {
            PageKind::User => spare.seq <= self.written[(spare.tag / entries_per_page) as usize],
            _ => false,
        };
        // The page with the next number was begun after it. A mount leaves a number out before it
        // begins one.
        let followed = |(_, spare): &FoundPage| {
            let after =
                |(_, torn): &FoundPage| torn.seq == spare.seq + 1 && (torn.kind, torn.tag) != (spare.kind, spare.tag);
            survey.torn().iter().any(after)
        };
        let unsure = newest.into_iter().filter(|page| !followed(page));
        self.in_doubt = unsure.chain(others.copied().filter(|page| !named(page))).collect();
        doubt.pages = self.in_doubt.iter().map(|(ppn, _)| *ppn).collect();
        // A cut tears one page, the last. Any that another was begun after was complete, unless
        // its program failed: then the next was to hold the same, and was cut short itself.
        let mut found = [&seen[..], survey.torn()].concat();
        order::newest_first(&mut found);
        let mut cut_after = None;
        for page in &found {
            let (ppn, spare) = page;
            let last = spare.seq == survey.largest_seq() || stranded.iter().any(|(at, _)| at == ppn);
            let excluded = doubt.excluded.contains(ppn) && !followed(page);
            let cut_short = is_torn(ppn) && (last || excluded || cut_after == Some((spare.kind, spare.tag)));
            if cut_short {
                self.cut_short.push(*ppn);
            }
            cut_after = Some((spare.kind, spare.tag)).filter(|_| cut_short);
        }
        for of_page in copies.chunk_by(|a, b| a.lpn == b.lpn) {
            if of_page.iter().any(|copy| doubt.holds(copy.ppn)) {
                self.stand_ins.extend(of_page[1..].iter().map(|copy| copy.ppn));
            }
        }
    }

    /// Keeps the versions of which one counts if a translation page in doubt turns out to be torn:
    /// down to the youngest that is not in doubt and can be read.
    pub(super) fn keep_versions<N: Nand>(&mut self, flash: &mut Flash<N>, doubt: &Doubt<'_>) -> Result<(), FtlError> {
        for of_page in self.versions.chunk_by(|a, b| a.1.tag == b.1.tag) {
            let present = self.gmd[of_page[0].1.tag as usize];
            if !doubt.holds(present) {
                continue;
            }
            let older = of_page.iter().map(|(ppn, _)| *ppn).skip_while(|ppn| *ppn != present).skip(1);
            for ppn in older {
                self.older_versions.push(ppn);
                if !doubt.holds(ppn) && can_be_read(flash, ppn)? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Pages that cannot be read, and that a mount which could read them would take for the present
    /// copy.
    pub(super) fn outranked(&self, survey: &Survey, entries_per_page: u32) -> Vec<Lpn> {
        let young = |(_, spare): &&FoundPage| {
            let written = self.written.get((spare.tag / entries_per_page) as usize);
            spare.kind == PageKind::User && written.is_some_and(|written| spare.seq > *written)
        };
        let mut pages: Vec<Lpn> = survey.torn().iter().filter(young).map(|(_, spare)| Lpn(spare.tag)).collect();
        pages.sort_unstable();
        pages.dedup_by_key(|lpn| lpn.0 / entries_per_page);
        pages
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::config::Config;
    use crate::contract::Ftl;
    use crate::engine::page::PageOptions;
    use crate::engine::page::mount::flat::tests::{device, spare};
    use crate::mapping::cached::CachedOptions;
    use crate::placement::tests::geometry;
    use nand::{Blemish, BlockId, Capabilities, SimNand, Spare, Stamp};

    /// Of two pages of host data that end their blocks, with numbers 10 and `last`, those that were
    /// cut short if a mount could read neither.
    fn cut_short(last: u64) -> Vec<Ppn> {
        let mut flash = Flash::new(device());
        let geometry = *flash.nand().geometry();
        let pages = [(Ppn(0), 1), (Ppn(1), 2), (Ppn(4), 3), (Ppn(5), 10), (Ppn(8), 4), (Ppn(9), last)];
        for (ppn, seq) in pages {
            let spare = Spare { tag: ppn.0, ..spare(PageKind::User, seq) };
            flash.nand_mut().program_meta(ppn, &[0xFF; 512], &spare).unwrap();
        }
        let excluded = [Ppn(5), Ppn(9)];
        let mapping = CachedMap::new(16, geometry.page_bytes(), CachedOptions::new(&Config::new(16)).lazy());
        let contents = Contents::of_table(&geometry, 16, mapping.directory().len(), true);
        let mut doubt = Doubt { excluded: &excluded, pages: Vec::new(), known: None };
        let mut survey = doubt.survey(&mut flash, 1, contents).unwrap();
        let mut findings = Findings::translation(&mut flash, &mut survey, &mapping, 16, true).unwrap();
        findings.find_doubt(&flash, &mapping, &survey, &[], &mut doubt);
        findings.cut_short.sort_unstable();
        findings.cut_short
    }

    #[test]
    fn a_page_that_a_mount_left_out_was_cut_short_unless_another_was_begun_after_it() {
        // A mount leaves a number out before it begins a page.
        assert_eq!(cut_short(12), [Ppn(5), Ppn(9)]);
        assert_eq!(cut_short(11), [Ppn(9)]);
    }

    /// Dead blocks of a kind, of a disk with such of host data and of the table; and those of them
    /// that are left when a mount finds a page of kind `newest` programmed last, and blocks short.
    fn left_when_short(newest: PageKind, kind: PageKind) -> (Vec<BlockId>, Vec<BlockId>) {
        let flash = Flash::new(SimNand::new(geometry(), Capabilities::MODERN));
        let config = Config { cache_entries: 8, ..Config::new(128) };
        let options = PageOptions { metadata_apart: true, ..PageOptions::over("gecko", "gecko") };
        let mut ftl = PageFtl::format_to_heal(flash, &config, options).unwrap();
        let dead = |ftl: &PageFtl<SimNand, CachedMap, Gecko>, kind| -> Vec<BlockId> {
            let space = &ftl.core.space;
            (0..64).map(BlockId).filter(|block| space.is_dead(*block) && space.kind(*block) == kind).collect()
        };
        let mut writes = (0..10_000_u32).map(|n| Stamp { lpn: Lpn(n / 3 % 128), version: n as u16 });
        while dead(&ftl, PageKind::User).is_empty() || dead(&ftl, PageKind::Translation).is_empty() {
            let stamp = writes.next().expect("blocks of host data and of the table are dead at times");
            ftl.write(stamp.lpn, &stamp).unwrap();
        }
        ftl.pins.clear();
        ftl.reserve_blocks = 64;
        let before = dead(&ftl, kind);
        ftl.room_to_settle((Ppn(0), spare(newest, 1)), 64).unwrap();
        let left = before.iter().copied().filter(|block| dead(&ftl, kind).contains(block)).collect();
        (before, left)
    }

    #[test]
    fn metadata_stays_until_the_last_page_of_the_store_is_settled() {
        for newest in [PageKind::User, PageKind::Translation] {
            assert!(left_when_short(newest, PageKind::Translation).1.is_empty(), "{newest:?}");
        }
        let (before, left) = left_when_short(PageKind::Validity, PageKind::Translation);
        assert_eq!(before, left);
        assert!(left_when_short(PageKind::Validity, PageKind::User).1.is_empty());
    }

    /// Of three versions of a translation page, the youngest in doubt: those that are kept below
    /// it, whether translation pages are trusted or not.
    fn kept_below(trusted: bool, worn: Option<Ppn>) -> Vec<Ppn> {
        let mut flash = Flash::new(device());
        for (ppn, seq) in [(Ppn(0), 1), (Ppn(1), 2), (Ppn(2), 3)] {
            flash.nand_mut().program_meta(ppn, &[0xFF; 512], &spare(PageKind::Translation, seq)).unwrap();
        }
        if let Some(ppn) = worn {
            flash.nand_mut().damage(ppn, Blemish::DataUnreadable);
        }
        let mapping = CachedMap::new(16, 512, CachedOptions::new(&Config::new(16)).lazy());
        let contents = Contents::of_table(flash.nand().geometry(), 16, mapping.directory().len(), true);
        let mut doubt = Doubt { excluded: &[], pages: Vec::new(), known: None };
        let mut survey = doubt.survey(&mut flash, 1, contents).unwrap();
        let mut findings = Findings::translation(&mut flash, &mut survey, &mapping, 16, trusted).unwrap();
        assert!(doubt.holds(Ppn(2)), "it was programmed last");
        if trusted {
            findings.compare(&mut flash, &survey, &mapping, 1, &doubt).unwrap();
        } else {
            findings.check_all(&mut flash, &mut survey, &mapping, &mut doubt).unwrap();
        }
        findings.older_versions
    }

    #[test]
    fn below_a_translation_page_in_doubt_a_version_is_kept_that_is_complete() {
        for trusted in [true, false] {
            assert_eq!(kept_below(trusted, None), [Ppn(1)], "trusted: {trusted}");
        }
        assert_eq!(kept_below(false, Some(Ppn(1))), [Ppn(1), Ppn(0)], "one that is worn is none");
    }
}
