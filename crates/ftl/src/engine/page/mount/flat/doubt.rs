//! What power loss leaves in doubt when a translation table in flash is mounted (step 6 of
//! `flat.rs`, and the end of it).
//!
//! A page whose program was cut short was the last of its block, and the last of a disk in use
//! ([`Survey::in_use_seq`]), or of a mount that was cut short before it had settled what was in
//! doubt. What such a mount programs says so ([`Core::settling`]), so no page older than the newest
//! without that mark is in doubt, however many mounts are cut short:
//! 1. The page programmed last is copied first. If it cannot be read then, the mount is done as if
//!    it had never been programmed ([`crate::engine::read_only::without_doubt`]).
//! 2. Copies in doubt whose entries were only in RAM are copied before an entry on flash leads to
//!    them. One that cannot be read was torn, and is excluded. One that is older than those in
//!    doubt and cannot be read is worn: the logical page is lost.
//! 3. So are translation pages that may have been the last when power went before
//!    ([`Survey::stranded`]). What they superseded stays until then.
//! 4. Translation pages that come last in their blocks are written again. A version that cannot be
//!    read is passed over, and every page of host data is looked at: what it had taken in is found
//!    as in 2. Only trims can be undone by that.
//! 5. In the end a translation page says that everything older is settled (LazyFTL), and blocks
//!    with a page that may read otherwise another time are erased.
//!
//! [`Core::settling`]: crate::space::core::Core::settling

use super::{Flash, FoundCopy, FoundPage, Lpn, Nand, PageFtl, Table, entries};
use crate::contract::FtlError;
use crate::engine::page::collect::room_for;
use crate::flash::Purpose;
use crate::mapping::Mapping;
use crate::mapping::cached::CachedMap;
use crate::placement::Stream;
use crate::recovery::order;
use crate::recovery::steps::Steps;
use crate::recovery::survey::Survey;
use crate::space::blocks::BlockState;
use crate::space::core::Origin;
use crate::validity::ram_bitmap::HoldsBitmap;
use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;
use nand::{BlockId, PageKind, Ppn};

/// Older versions of a page in doubt that are not erased before it is settled: more than mounts in
/// a row may be cut short without luck.
pub(super) const KEPT: usize = 4;

impl<N: Nand + 'static, T: HoldsBitmap + 'static> PageFtl<N, CachedMap, T> {
    /// Steps 6 to 8.
    pub(super) fn settle(&mut self, table: &mut Table, survey: &Survey, steps: &mut Steps) -> Result<(), FtlError> {
        self.room_to_copy(table, survey)?;
        if !self.mapping.is_lazy() {
            // The page does not speak for them.
            for copy in &table.doubtful {
                table.changes.remove(&copy.lpn);
            }
        }
        *self.mapping.found() = core::mem::take(&mut table.changes);
        if let Some(page) = table.newest_of_table() {
            // A translation page that is moved takes in what was found, and nothing may lead to a
            // page in doubt yet.
            if table.doubtful.is_empty() {
                self.make_room()?;
            }
            self.renew(table, page)?;
            table.newest = None;
        }
        while let Some(&copy) = table.doubtful.first() {
            self.copy_doubtful(table, survey, copy)?;
            table.doubtful.remove(0);
        }
        while let Some(&(_, spare)) = table.stranded.first() {
            self.room_to_copy(table, survey)?;
            self.renew(table, spare.tag)?;
            table.stranded.remove(0);
        }
        self.tell()?;
        steps.end("6 settle what is in doubt", &self.core.flash);
        let changed = self.mapping.found().keys().map(|lpn| lpn.0 / table.entries_per_page);
        table.renew.extend(changed);
        while let Some(page) = table.renew.pop_first() {
            self.make_room()?;
            self.renew(table, page)?;
        }
        debug_assert!(self.mapping.found().is_empty(), "an entry is only in RAM");
        self.mapping.all_synchronised(self.core.seq);
        steps.end("7 write what was only in RAM", &self.core.flash);
        self.bury_doubts(table, survey)?;
        self.tell()?;
        self.core.settling = None;
        self.make_space()?;
        steps.end("8 free blocks", &self.core.flash);
        Ok(())
    }

    /// Erases blocks in which nothing lives if too few are free to copy what is still in doubt.
    /// What was kept in place of a page goes once that page is copied. Mounts that are cut short
    /// leave blocks to keep, and would run out of free ones.
    fn room_to_copy(&mut self, table: &Table, survey: &Survey) -> Result<(), FtlError> {
        if self.core.space.free_blocks() < table.blocks_to_copy() {
            let keep = table.keep(&mut self.core.flash, survey.in_use_seq())?;
            self.free_dead(|block, _| !keep.contains(&block) && !survey.illegible().contains(&block))?;
            self.free_dead(|block, _| !keep.contains(&block))?;
        }
        Ok(())
    }

    /// Writes a translation page with all that is known of it.
    fn renew(&mut self, table: &mut Table, page: u32) -> Result<(), FtlError> {
        debug_assert!((page as usize) < self.mapping.directory().len());
        self.change(|mapping, core| mapping.write_found(core, page))?;
        table.renew.remove(&page);
        self.tell()
    }

    /// Copies a page that may have been cut short.
    fn copy_doubtful(&mut self, table: &Table, survey: &Survey, copy: FoundCopy) -> Result<(), FtlError> {
        self.room_to_copy(table, survey)?;
        let (lpn, (ppn, spare)) = (copy.lpn, copy.found());
        debug_assert!(table.doubtful.iter().all(|other| other.seq <= copy.seq), "a younger page in doubt comes first");
        let to = self.core.move_host_page(Purpose::Recovery, Stream(0), &Origin { ppn, spare })?;
        self.tell()?;
        self.mapping.found().insert(lpn, to);
        self.page_died(ppn)
    }

    /// Sees to it that nothing which was in doubt, or could not be read, counts for a later mount.
    fn bury_doubts(&mut self, table: &Table, survey: &Survey) -> Result<(), FtlError> {
        let is_lazy = self.mapping.is_lazy();
        if is_lazy && (survey.unreadable > 0 || !table.excluded.is_empty()) {
            self.core.seq = CachedMap::next_bound(self.core.seq);
            debug_assert!(self.core.seq > survey.largest_seq());
            self.mapping.all_synchronised(self.core.seq);
            self.make_room()?;
            self.change(|mapping, core| mapping.write_found(core, 0))?;
        }
        let spoiled = survey.spoiled().iter().copied().filter(|_| !is_lazy);
        let blocks: BTreeSet<BlockId> =
            survey.broken().chain(spoiled).chain(survey.illegible().iter().copied()).collect();
        for block in blocks {
            if self.core.space.state(block) == BlockState::Closed {
                // Each page that lives there may begin a block of its own, in a lane of its own.
                self.make_space()?;
            }
            // Unless it was collected to make room.
            if self.core.space.state(block) == BlockState::Closed {
                self.collect(block)?;
            }
        }
        if is_lazy { self.bury_mute(survey) } else { Ok(()) }
    }

    /// Erases blocks that end with a page of which nothing can be read and that does not count. The
    /// bound does not keep it from coming back in a mount that misses a translation page, and looks
    /// at all pages. A page that counts was complete: its entry stays.
    fn bury_mute(&mut self, survey: &Survey) -> Result<(), FtlError> {
        let geometry = *self.core.space.geometry();
        let goes = |ftl: &Self, block: BlockId| {
            let mut mute = survey.mute().iter().filter(|ppn| geometry.block_of(**ppn) == block);
            ftl.core.space.state(block) == BlockState::Closed && mute.all(|ppn| ftl.validity.bitmap().is_dead(*ppn))
        };
        for block in survey.ending_mute() {
            if goes(self, block) {
                self.make_space()?;
            }
            if goes(self, block) {
                self.collect(block)?;
            }
        }
        Ok(())
    }
}

impl Table {
    /// What has to be written again although nothing about it changed.
    pub(super) fn find_doubtful(&mut self, survey: &Survey) {
        let of_host = self.copies.iter().map(FoundCopy::found);
        let pages: Vec<FoundPage> = of_host.chain(self.versions.iter().copied()).collect();
        self.stranded = survey.stranded(&self.geometry, &pages);
        let (gmd, newest) = (&self.gmd, self.newest);
        let counts =
            |(ppn, spare): &FoundPage| spare.kind == PageKind::Translation && gmd.get(spare.tag as usize) == Some(ppn);
        self.stranded.retain(|page| counts(page) && newest.is_none_or(|newest| newest.0 != page.0));
        order::newest_first(&mut self.stranded);
        self.doubtful.sort_unstable_by_key(|copy| u64::MAX - copy.seq);
        let excluded = self.excluded.iter().filter(|(_, spare)| spare.tag < self.logical_pages);
        let pages = excluded.filter_map(|(_, spare)| match spare.kind {
            PageKind::User => Some(spare.tag / self.entries_per_page),
            PageKind::Translation => Some(spare.tag),
            PageKind::Validity | PageKind::Checkpoint => None,
        });
        self.renew.extend(pages.filter(|page| (*page as usize) < self.gmd.len()));
        let young = self.versions.iter().filter(|(ppn, spare)| {
            self.gmd[spare.tag as usize] == *ppn
                && spare.seq >= self.bound
                && self.last[self.geometry.block_of(*ppn).index()] == *ppn
        });
        self.renew.extend(young.map(|(_, spare)| spare.tag));
    }

    /// The page programmed last, if it is one of the table.
    fn newest_of_table(&self) -> Option<u32> {
        self.newest.filter(|(_, spare)| spare.kind == PageKind::Translation).map(|(_, spare)| spare.tag)
    }

    /// Translation pages in doubt.
    fn of_table_in_doubt(&self) -> impl Iterator<Item = FoundPage> {
        let newest = self.newest.filter(|(_, spare)| spare.kind == PageKind::Translation);
        newest.into_iter().chain(self.stranded.iter().copied())
    }

    /// Free blocks with which pages in doubt can be copied, if an erase fails too.
    pub(super) fn blocks_to_copy(&self) -> u32 {
        1 + room_for(self.doubtful.len() + self.of_table_in_doubt().count())
    }

    /// Whether a page that turned out to be unreadable was in doubt.
    pub(super) fn is_doubtful(&self, ppn: Ppn) -> bool {
        self.newest.is_some_and(|(newest, _)| newest == ppn)
            || self.doubtful.iter().any(|copy| copy.ppn == ppn)
            || self.versions.iter().any(|(at, _)| *at == ppn) && self.last[self.geometry.block_of(ppn).index()] == ppn
    }

    /// Blocks of what lives if pages that are still in doubt do not count. What was programmed
    /// before `complete` was complete: in its place nothing has to be kept.
    pub(super) fn keep<N: Nand>(&self, flash: &mut Flash<N>, complete: u64) -> Result<BTreeSet<BlockId>, FtlError> {
        let geometry = self.geometry;
        let is_doubtful = |lpn: Lpn| self.doubtful.iter().any(|copy| copy.lpn == lpn);
        let kept = self.kept.iter().filter(|(lpn, ppn)| is_doubtful(*lpn) && ppn.0 < geometry.pages());
        let mut keep: BTreeSet<BlockId> = kept.map(|(_, ppn)| geometry.block_of(*ppn)).collect();
        let page_bytes = geometry.page_bytes() as usize;
        let (mut now, mut before) = (vec![0; page_bytes], vec![0; page_bytes]);
        for (at, spare) in self.of_table_in_doubt() {
            flash.read_meta(Purpose::Recovery, at, &mut now)?;
            let older = self.versions.iter().filter(|(_, other)| other.tag == spare.tag && other.seq < spare.seq);
            for (ppn, older) in older.take(KEPT) {
                keep.insert(geometry.block_of(*ppn));
                if flash.read_meta(Purpose::Recovery, *ppn, &mut before).is_err() {
                    continue;
                }
                let differ = entries(&before).zip(entries(&now)).filter(|(before, now)| before != now);
                let pages = differ.map(|(before, _)| before).filter(|before| before.0 < geometry.pages());
                keep.extend(pages.map(|before| geometry.block_of(before)));
                if older.seq < complete {
                    break;
                }
            }
        }
        Ok(keep)
    }
}
