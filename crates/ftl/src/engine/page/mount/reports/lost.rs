//! What becomes of entries when pages of host data cannot be read after power loss.
//!
//! A page whose entry was only in RAM takes its place in the table with it: flash still names the
//! copy before, which was superseded and may have been erased with its block. Left so, that entry
//! would lead to whatever is written there next, and the first write would report a page of
//! something else as dead.
//!
//! What a cut tore looks the same, and is nothing: no page of host data is erased before another
//! page than the one that superseded it was programmed (`collect`), so of the page programmed last
//! all is left that it superseded. If sequence numbers prove that the only such page is that one
//! (`recovery::last`), it is dead. Flash cannot name it, nor know what it superseded as dead:
//! either was programmed later. Otherwise, if there is a page of host data of which nobody knows
//! whose it is, every translation page is read:
//! 1. An entry to a block that was erased since its translation page was written is lost: what
//!    superseded it cannot be read.
//! 2. One to a block of which nothing can be read is lost too.
//! 3. One to a page that the store knows as dead makes it live again: an older copy is what is
//!    left.
//! 4. A page that cannot be read and that no entry names is dead. It is reported once 1 and 2 are
//!    on flash, so that a mount that is cut short looks again, and no other has to.
//!
//! Of a page whose spare area can be read and whose data cannot, that is done for its own entry
//! alone.

use super::findings::{Findings, HostCopy};
use super::in_doubt::Doubt;
use super::{Flash, Lpn, Mapping, Nand, PageFtl, Validity};
use crate::contract::FtlError;
use crate::flash::Purpose;
use crate::mapping::cached::CachedMap;
use crate::mapping::is_page;
use crate::recovery::survey::Survey;
use crate::space::blocks::BlockState;
use crate::space::core::Core;
use crate::validity::PageSet;
use crate::validity::gecko::Gecko;
use alloc::vec;
use alloc::vec::Vec;
use nand::{BlockId, Geometry, PageKind, Ppn, Spare};

impl Findings {
    /// Finds the entries that lead to pages which are no more or cannot be read. Takes a bit for
    /// each page of the device, if it has to.
    pub(super) fn find_lost<N: Nand>(
        &mut self,
        core: &mut Core<N>,
        gecko: &mut Gecko,
        survey: &Survey,
        mapping: &CachedMap,
    ) -> Result<(), FtlError> {
        debug_assert!(self.unsaved.is_sorted_by(|a, b| a.lpn < b.lpn), "entries are looked up by logical page");
        let mut suspects = self.suspects(core, gecko, survey)?;
        if let [torn] = suspects[..]
            && survey.is_last(torn)
        {
            self.dead.push(torn);
            suspects.clear();
        }
        self.lost.sort_unstable();
        self.lost.dedup();
        if survey.illegible().is_empty() && suspects.is_empty() {
            return Ok(());
        }
        let geometry = *core.space.geometry();
        let mut buffer = vec![0; geometry.page_bytes() as usize];
        for page in 0..self.gmd.len() {
            if !is_page(self.gmd[page]) {
                continue;
            }
            core.flash.read_meta(Purpose::Recovery, self.gmd[page], &mut buffer)?;
            let first = page as u32 * mapping.entries_per_page();
            for (lpn, entry) in (first..).map(Lpn).zip(CachedMap::entries(&buffer)) {
                // Of a page that flash names the death is reported when the entry there is written
                // anew.
                suspects.retain(|ppn| *ppn != entry);
                if entry.0 >= geometry.pages() || self.is_unsaved(lpn) {
                    continue;
                }
                let illegible = survey.illegible().contains(&geometry.block_of(entry));
                if illegible {
                    self.lost.push(lpn);
                } else if !self.checked {
                    self.doubt(survey, lpn, entry, page, &geometry);
                }
            }
        }
        self.lost.sort_unstable();
        self.lost.dedup();
        debug_assert!(suspects.iter().all(|ppn| survey.mute().contains(ppn)));
        self.buried.append(&mut suspects);
        Ok(())
    }

    /// Pages of which nobody knows whose they are, and that the store does not know as dead.
    fn suspects<N: Nand>(&self, core: &mut Core<N>, gecko: &mut Gecko, survey: &Survey) -> Result<Vec<Ppn>, FtlError> {
        let geometry = *core.space.geometry();
        let mut dead = PageSet::new(geometry.pages_per_block());
        let mut suspects = Vec::new();
        for &ppn in survey.mute() {
            let block = geometry.block_of(ppn);
            dead.clear();
            if survey.block(block).is_some_and(|info| info.first_seq < gecko.last_flush_seq()) {
                gecko.query(core, block, &mut dead)?;
            }
            // It may have been read before, and not again.
            let known = self.dead.contains(&ppn) || self.unsaved.iter().any(|copy| copy.ppn == ppn);
            if !known && !dead.contains(geometry.offset_of(ppn)) {
                suspects.push(ppn);
            }
        }
        Ok(suspects)
    }

    /// Whether a younger copy of a logical page than flash names was found.
    fn is_unsaved(&self, lpn: Lpn) -> bool {
        self.unsaved.binary_search_by_key(&lpn, |copy: &HostCopy| copy.lpn).is_ok()
    }

    /// Whether a block was erased since a translation page was written. What that says was true
    /// then.
    pub(super) fn is_erased(&self, survey: &Survey, block: BlockId, page: usize) -> bool {
        survey.block(block).is_none_or(|info| info.kind != PageKind::User || info.first_seq > self.written[page])
    }

    /// Takes note of an entry of a translation page, whose page may have died with a younger copy
    /// that cannot be read; whether it is lost.
    fn doubt(&mut self, survey: &Survey, lpn: Lpn, entry: Ppn, page: usize, geometry: &Geometry) -> bool {
        let lost = self.is_erased(survey, geometry.block_of(entry), page);
        if lost {
            self.lost.push(lpn);
        } else {
            self.named.get_or_insert_with(|| PageSet::new(geometry.pages())).insert(entry.0);
        }
        lost
    }

    /// Whether a page of which the data cannot be read was complete once, and is the present copy
    /// of its logical page. What a cut tore was reported as dead: a page that `lived` when the
    /// store was flushed was complete.
    fn is_worn(&self, ppn: Ppn, spare: &Spare, page: usize, lived: bool) -> bool {
        let younger = self.unsaved.binary_search_by_key(&Lpn(spare.tag), |copy| copy.lpn);
        (lived || !self.cut_short.contains(&ppn))
            && self.written.get(page).is_some_and(|written| spare.seq > *written)
            && younger.ok().is_none_or(|at| self.unsaved[at].seq < spare.seq)
    }

    /// A page that cannot be read died before it was complete, unless flash names it: then it is
    /// worn, and lost.
    pub(super) fn bury_torn<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        survey: &Survey,
        mapping: &CachedMap,
        doubt: &Doubt<'_>,
        buffer: &mut [u8],
    ) -> Result<(), FtlError> {
        debug_assert!(self.unsaved.is_sorted_by(|a, b| a.lpn < b.lpn), "entries are looked up by logical page");
        let geometry = *flash.nand().geometry();
        for (ppn, spare) in survey.torn().iter().filter(|(_, spare)| spare.kind == PageKind::User) {
            let page = (spare.tag / mapping.entries_per_page()) as usize;
            let Some(&at) = self.gmd.get(page) else {
                self.dead.push(*ppn);
                continue;
            };
            let mut entry = Ppn::NONE;
            if is_page(at) {
                flash.read_meta(Purpose::Recovery, at, buffer)?;
                let index = (spare.tag % mapping.entries_per_page()) as usize;
                entry = CachedMap::entries(buffer).nth(index).unwrap_or(Ppn::NONE);
            }
            if entry == *ppn {
                // Superseded, if a younger copy was found: read another time, it would count.
                if self.is_unsaved(Lpn(spare.tag)) {
                    self.dead.push(*ppn);
                }
                continue;
            }
            let reported = self.reported.as_ref().and_then(|reported| reported.is_dead(survey, *ppn, spare));
            if doubt.known.is_some_and(|known| known.is_dead(*ppn)) || reported == Some(true) {
                self.dead.push(*ppn);
                continue;
            }
            let lpn = Lpn(spare.tag);
            if self.is_worn(*ppn, spare, page, reported == Some(false)) {
                if let Ok(at) = self.unsaved.binary_search_by_key(&lpn, |copy| copy.lpn) {
                    self.dead.push(self.unsaved.remove(at).ppn);
                }
                self.lost.push(lpn);
                self.buried.push(*ppn);
                continue;
            }
            let present = !self.checked && spare.seq > self.written[page] && !self.is_unsaved(lpn);
            if present && entry.0 < geometry.pages() && self.doubt(survey, lpn, entry, page, &geometry) {
                self.buried.push(*ppn);
            } else {
                self.dead.push(*ppn);
            }
        }
        Ok(())
    }
}

impl<N: Nand, M: Mapping, V: Validity> PageFtl<N, M, V> {
    /// Reports pages that nothing names.
    pub(super) fn bury(&mut self, buried: &[Ppn]) -> Result<(), FtlError> {
        for &ppn in buried {
            if self.core.space.state(self.core.space.geometry().block_of(ppn)) == BlockState::Closed {
                self.page_died(ppn)?;
            }
        }
        Ok(())
    }
}
