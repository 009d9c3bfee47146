//! What steps 2 to 6 of GeckoFTL's mount gather (`reports`). Flash is only read.

use super::in_doubt::Doubt;
use super::known::Reported;
use super::{Flash, Lpn, Nand};
use crate::contract::FtlError;
use crate::flash::Purpose;
use crate::mapping::cached::{CachedMap, Reporting};
use crate::mapping::is_page;
use crate::recovery::order;
use crate::recovery::plausible;
use crate::recovery::survey::{FoundPage, Survey};
use crate::space::core::Core;
use crate::validity::PageSet;
use crate::validity::gecko::Gecko;
use alloc::vec;
use alloc::vec::Vec;
use nand::{BlockId, NandError, PageKind, Ppn};

/// A report can follow the flush that the report itself caused: pages this much older than F can
/// have died unsaid.
pub(super) const FLUSH_SLACK: u64 = 16;

/// A copy of a logical page. Ordered by page, youngest first.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostCopy {
    pub(super) lpn: Lpn,
    pub(super) seq: u64,
    pub(super) ppn: Ppn,
}

/// What steps 2 to 5 gather.
pub(super) struct Findings {
    pub(super) gmd: Vec<Ppn>,
    /// Sequence number of the newest version of each translation page.
    pub(super) written: Vec<u64>,
    pub(super) bound: u64,
    pub(super) versions: Vec<FoundPage>,
    /// Copies that had entries only in RAM, oldest first.
    pub(super) unsaved: Vec<HostCopy>,
    /// Pages that died since the last flush, and may not have been reported.
    pub(super) dead: Vec<Ppn>,
    /// Logical pages whose present copy cannot be read.
    pub(super) lost: Vec<Lpn>,
    /// Pages of all kinds that were found, dead ones included.
    pub(super) seen: Vec<FoundPage>,
    /// Pages that can be read and may not have been complete when power went, that programmed last
    /// before the others.
    pub(super) in_doubt: Vec<FoundPage>,
    /// Pages that cannot be read, and were not complete when power went. Others are worn.
    pub(super) cut_short: Vec<Ppn>,
    /// What pages in doubt superseded: what is left if those cannot be read any more after another
    /// cut.
    pub(super) stand_ins: Vec<Ppn>,
    /// Likewise, of translation pages.
    pub(super) older_versions: Vec<Ppn>,
    /// Pages that nothing names once it is on flash what is lost.
    pub(super) buried: Vec<Ppn>,
    /// Pages that flash names, of logical pages whose younger copies may be among those that cannot
    /// be read.
    pub(super) named: Option<PageSet>,
    /// Blocks with a page that lives although the store knows it as dead: what it knows of them is
    /// told anew.
    pub(super) revived: Vec<BlockId>,
    /// Logical pages whose entry leads to a page of something else.
    pub(super) dangling: Vec<Lpn>,
    /// What the validity store knew, if translation pages are not trusted.
    pub(super) reported: Option<Reported>,
    /// Every entry was checked.
    pub(super) checked: bool,
}

/// From which sequence number on pages of host data may have had entries only in RAM, as the
/// translation pages older than `until` say that can be read.
fn bound_until<N: Nand>(flash: &mut Flash<N>, versions: &[FoundPage], until: u64) -> Result<u64, FtlError> {
    let before: Vec<FoundPage> = versions.iter().filter(|(_, spare)| spare.seq < until).copied().collect();
    plausible::largest(flash, &before, |spare| Reporting::WhenSynchronised.bound_of(spare))
}

impl Findings {
    /// Step 2.
    pub(super) fn translation<N: Nand>(
        flash: &mut Flash<N>,
        survey: &mut Survey,
        mapping: &CachedMap,
        logical_pages: u32,
        whole: bool,
    ) -> Result<Self, FtlError> {
        let mut versions = survey.read_kind(flash, PageKind::Translation, |_| true)?;
        let count = logical_pages.div_ceil(mapping.entries_per_page()) as usize;
        order::by_tag(&mut versions);
        let seen = versions.clone();
        let bound = bound_until(flash, &versions, u64::MAX)?;
        let (mut gmd, mut written) = (vec![Ppn::NONE; count], vec![0; count]);
        for (ppn, spare) in versions.iter().rev() {
            let page = spare.tag as usize;
            if page >= count {
                let reason = "it lies outside the disk: the device was formatted with another size";
                return Err(FtlError::Damaged { structure: "translation page", ppn: *ppn, reason });
            }
            (gmd[page], written[page]) = (*ppn, spare.seq);
        }
        debug_assert!(versions.first().is_none_or(|(_, spare)| written[spare.tag as usize] == spare.seq));
        Ok(Self {
            gmd,
            written,
            bound,
            versions,
            unsaved: Vec::new(),
            dead: Vec::new(),
            lost: Vec::new(),
            seen,
            in_doubt: Vec::new(),
            cut_short: Vec::new(),
            stand_ins: Vec::new(),
            older_versions: Vec::new(),
            buried: Vec::new(),
            named: None,
            revived: Vec::new(),
            dangling: Vec::new(),
            reported: None,
            checked: !whole,
        })
    }

    /// Step 4.
    pub(super) fn unsaved<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        survey: &mut Survey,
        mapping: &CachedMap,
        flushed: u64,
        doubt: &mut Doubt<'_>,
    ) -> Result<(), FtlError> {
        // A copy that died since the flush and that no translation page ever named was only in RAM
        // then: it can be older than what is only in RAM now. The last translation page before the
        // flush lives, or is pinned.
        let bound_then = bound_until(flash, &self.versions, flushed)?;
        let from = bound_then.min(flushed.saturating_sub(FLUSH_SLACK));
        let found = survey.read_kind(flash, PageKind::User, |info| info.last_seq >= from || !info.whole)?;
        let geometry = *flash.nand().geometry();
        let of_blocks = found.chunk_by(|a, b| geometry.block_of(a.0) == geometry.block_of(b.0));
        let last_of_blocks: Vec<Ppn> = of_blocks.map(|pages| pages[pages.len() - 1].0).collect();
        let copies = self.sorted(&found, mapping)?;
        self.find_doubt(flash, mapping, survey, &copies, doubt);
        let mut buffer = vec![0; flash.nand().geometry().page_bytes() as usize];
        let mut loaded = None;
        for of_page in copies.chunk_by(|a, b| a.lpn == b.lpn) {
            let page = (of_page[0].lpn.0 / mapping.entries_per_page()) as usize;
            let written = self.written[page];
            let newest = of_page[0];
            if newest.seq > written && newest.seq < self.bound {
                // Its entry is in flash, in a version that is not there any more.
                let reason = "the newest version of one cannot be read";
                return Err(FtlError::Damaged { structure: "translation page", ppn: newest.ppn, reason });
            }
            let named = if newest.seq > written {
                self.unsaved.push(newest);
                Some(newest.ppn)
            } else if written >= flushed || last_of_blocks.binary_search(&newest.ppn).is_ok() {
                // Trimmed, if flash does not name it. Or it could not be read when that was
                // written, and an older copy counts.
                if loaded.replace(page) != Some(page) {
                    flash.read_meta(Purpose::Recovery, self.gmd[page], &mut buffer)?;
                }
                CachedMap::entries(&buffer).nth((newest.lpn.0 % mapping.entries_per_page()) as usize)
            } else {
                Some(newest.ppn)
            };
            self.dead.extend(of_page.iter().map(|copy| copy.ppn).filter(|ppn| Some(*ppn) != named));
        }
        debug_assert!(self.unsaved.is_sorted_by(|a, b| a.lpn < b.lpn));
        self.bury_torn(flash, survey, mapping, doubt, &mut buffer)
    }

    /// Copies by logical page, youngest first.
    pub(super) fn sorted(&mut self, found: &[FoundPage], mapping: &CachedMap) -> Result<Vec<HostCopy>, FtlError> {
        let outside = |(_, spare): &&FoundPage| (spare.tag / mapping.entries_per_page()) as usize >= self.gmd.len();
        if let Some((ppn, _)) = found.iter().find(outside) {
            let reason = "its logical page lies outside the disk: the device was formatted with another size";
            return Err(FtlError::Damaged { structure: "page of host data", ppn: *ppn, reason });
        }
        self.seen.extend_from_slice(found);
        let copy = |(ppn, spare): &FoundPage| HostCopy { lpn: Lpn(spare.tag), seq: spare.seq, ppn: *ppn };
        let mut copies: Vec<HostCopy> = found.iter().map(copy).collect();
        copies.sort_unstable_by_key(|copy| (copy.lpn, u64::MAX - copy.seq));
        Ok(copies)
    }

    /// Step 5.
    pub(super) fn compare<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        survey: &Survey,
        mapping: &CachedMap,
        flushed: u64,
        doubt: &Doubt<'_>,
    ) -> Result<(), FtlError> {
        let geometry = *flash.nand().geometry();
        let page = || vec![0; geometry.page_bytes() as usize];
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
                let entries = CachedMap::entries(&young).zip(CachedMap::entries(&old)).zip(CachedMap::entries(&newest));
                for (index, ((_, before), now)) in
                    entries.enumerate().filter(|(_, ((after, before), _))| after != before && is_page(*before))
                {
                    let lpn = Lpn(first + index as u32);
                    // Not erased since it was named: unreadable now, it may be read well another
                    // time.
                    let info = survey.block(geometry.block_of(before));
                    let still = info.is_some_and(|info| info.first_seq < pair[1].1.seq);
                    if self.has_died(flash, (lpn, now), (before, still))? {
                        self.dead.push(before);
                        if doubt.holds(pair[0].0) {
                            self.stand_ins.push(before);
                        }
                    }
                }
            }
        }
        self.versions = versions;
        self.keep_versions(flash, doubt)?;
        self.versions.retain({
            let written = &self.written;
            move |(_, spare)| written[spare.tag as usize] >= flushed
        });
        Ok(())
    }

    /// Whether a page that a translation page no longer names still holds the logical page and is
    /// not its present copy. If it cannot be read it holds the page if it was `still` not erased.
    fn has_died<N: Nand>(
        &self,
        flash: &mut Flash<N>,
        (lpn, in_flash): (Lpn, Ppn),
        (before, still): (Ppn, bool),
    ) -> Result<bool, FtlError> {
        let unsaved = self.unsaved.binary_search_by_key(&lpn, |copy| copy.lpn);
        let present = unsaved.map_or(in_flash, |at| self.unsaved[at].ppn);
        match flash.read_spare(Purpose::Recovery, before) {
            Ok(Some(spare)) => Ok(spare.kind == PageKind::User && spare.tag == lpn.0 && before != present),
            Ok(None) => Ok(false),
            Err(NandError::Uncorrectable { .. }) => Ok(still && before != present),
            Err(error) => Err(error.into()),
        }
    }

    /// Step 6: the live pages of each block. Leaves in `dead` what the store does not know.
    pub(super) fn count_live<N: Nand>(
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
        // A block that was being erased may show pages that nobody counts.
        self.dead.retain(|ppn| survey.block(geometry.block_of(*ppn)).is_some());
        self.dead.sort_unstable();
        self.dead.dedup();
        self.stand_ins.sort_unstable();
        self.stand_ins.dedup();
        self.stand_ins.retain(|ppn| self.dead.binary_search(ppn).is_ok());
        self.stand_ins.append(&mut self.older_versions);
        let (dead, mut known, mut again) = (&self.dead, Vec::new(), Vec::new());
        let mut unsaved: Vec<Ppn> = self.unsaved.iter().map(|copy| copy.ppn).collect();
        unsaved.sort_unstable();
        let (revived, named) = (&mut self.revived, &self.named);
        gecko.for_each_block(core, Purpose::Recovery, |block, set| {
            let Some(info) = survey.block(block) else { return };
            if info.kind == PageKind::User && info.first_seq < flushed {
                let pages = geometry.pages_per_block();
                let lives = |offset: &u32| {
                    let ppn = geometry.page_at(block, *offset);
                    unsaved.binary_search(&ppn).is_ok() || named.as_ref().is_some_and(|named| named.contains(ppn.0))
                };
                if (0..pages).any(|offset| set.contains(offset) && lives(&offset)) {
                    // Its death was durable, and what says so in the table was lost: it lives
                    // again.
                    revived.push(block);
                    let others = (0..pages).filter(|offset| set.contains(*offset) && !lives(offset));
                    again.extend(others.map(|offset| geometry.page_at(block, offset)));
                    return;
                }
                // A page whose program failed is dead, and may read as erased.
                let programmed = u32::from(info.programmed);
                valid[block.index()] = (0..programmed).filter(|offset| !set.contains(*offset)).count() as u16;
                let begin = dead.partition_point(|ppn| geometry.block_of(*ppn) < block);
                let end = dead.partition_point(|ppn| geometry.block_of(*ppn) <= block);
                known.extend(dead[begin..end].iter().filter(|ppn| set.contains(geometry.offset_of(**ppn))));
            }
        })?;
        self.dead.retain(|ppn| known.binary_search(ppn).is_err());
        self.dead.extend(again);
        self.dead.sort_unstable();
        self.dead.dedup();
        for ppn in &self.dead {
            let block = geometry.block_of(*ppn);
            if survey.block(block).is_some_and(|info| geometry.offset_of(*ppn) < u32::from(info.programmed)) {
                valid[block.index()] = valid[block.index()].saturating_sub(1);
            }
        }
        let metadata = self.gmd.iter().copied().filter(|ppn| is_page(*ppn)).chain(gecko.live_pages());
        for ppn in metadata.chain(self.stand_ins.iter().copied()) {
            valid[geometry.block_of(ppn).index()] += 1;
        }
        debug_assert!(valid.iter().all(|valid| u32::from(*valid) <= geometry.pages_per_block()));
        debug_assert!(self.dead.is_sorted_by(|a, b| a < b));
        // The cache takes them in the order in which they were used.
        self.unsaved.sort_unstable_by_key(|copy| copy.seq);
        Ok(valid)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::engine::page::mount::flat::tests::{device, spare};
    use nand::{Blemish, Spare};

    #[test]
    fn a_translation_page_that_cannot_be_read_says_nothing_of_entries_in_ram() {
        let mut flash = Flash::new(device());
        let mut versions = Vec::new();
        for (ppn, aux) in [(4, 1), (5, 900), (6, 2), (8, 3)] {
            let spare = Spare { aux, ..spare(PageKind::Translation, ppn) };
            flash.nand_mut().program_meta(Ppn(ppn as u32), &[0xFF; 512], &spare).unwrap();
            versions.push((Ppn(ppn as u32), spare));
        }
        flash.nand_mut().damage(Ppn(5), Blemish::DataUnreadable);
        let bound = |aux| Reporting::WhenSynchronised.bound_of(&Spare { aux, ..spare(PageKind::Translation, 0) });
        for (until, aux) in [(u64::MAX, 3), (8, 2), (6, 1), (4, 0)] {
            assert_eq!(bound_until(&mut flash, &versions, until).unwrap(), bound(aux), "until {until}");
        }
    }
}
