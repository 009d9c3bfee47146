//! Step 4 and 5 of a mount when a page of metadata was lost: every entry is checked against every
//! page of host data.
//!
//! A translation page that cannot be read, or of which only an older version can be found, is one
//! in which some entries are wrong. Which ones, the spare areas of host data say: a copy younger
//! than the translation page is the present one; one that is not, and that no entry names, was
//! trimmed. A page that was trimmed can come back so, as it was before. If power stayed on, RAM
//! says more (`known`).
//!
//! Takes sixteen bytes for each page of host data in flash while it lasts.

use super::findings::{Findings, HostCopy};
use super::in_doubt::Doubt;
use super::{Flash, Lpn, Nand};
use crate::contract::FtlError;
use crate::flash::Purpose;
use crate::mapping::cached::CachedMap;
use crate::mapping::is_page;
use crate::recovery::survey::Survey;
use alloc::vec;
use alloc::vec::Vec;
use nand::{NandError, PageKind, Ppn};

impl Findings {
    /// Finds every entry that is not in flash, and every page that is dead.
    pub(super) fn check_all<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        survey: &mut Survey,
        mapping: &CachedMap,
        doubt: &mut Doubt<'_>,
    ) -> Result<(), FtlError> {
        let found = survey.read_kind(flash, PageKind::User, |_| true)?;
        let copies = self.sorted(&found, mapping)?;
        self.find_doubt(flash, mapping, survey, &copies, doubt);
        let mut rest = &copies[..];
        let mut buffer = vec![0; flash.nand().geometry().page_bytes() as usize];
        let unclaimed = match doubt.known {
            Some(known) => self.unclaimed(flash, survey, (known, doubt), &mut buffer)?,
            None => Vec::new(),
        };
        let mute = !survey.mute().is_empty() || !survey.illegible().is_empty();
        for page in 0..self.gmd.len() {
            self.load(flash, page, doubt, &mut buffer)?;
            let first = page as u32 * mapping.entries_per_page();
            for (lpn, entry) in (first..).map(Lpn).zip(CachedMap::entries(&buffer)) {
                let count = rest.iter().take_while(|copy| copy.lpn == lpn).count();
                let (of_page, others) = rest.split_at(count);
                rest = others;
                let unclaimed = unclaimed.contains(&page) && !survey.mute().contains(&entry);
                let missing = |known| self.note_missing(known, (lpn, entry), of_page, unclaimed);
                if !doubt.known.is_some_and(missing) {
                    let missing = doubt.known.is_none() && mute;
                    self.check_entry((flash, survey), (lpn, entry), of_page, (page, missing))?;
                }
            }
        }
        debug_assert!(rest.is_empty(), "{:?} belongs to no entry", rest.first());
        debug_assert!(self.unsaved.is_sorted_by(|a, b| a.lpn < b.lpn));
        self.keep_versions(flash, doubt)?;
        self.versions.clear();
        self.bury_torn(flash, survey, mapping, doubt, &mut buffer)
    }

    /// Reads the newest version of a translation page that can be read. One that cannot is passed
    /// over, unless it is in doubt.
    pub(super) fn load<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        page: usize,
        doubt: &Doubt<'_>,
        out: &mut [u8],
    ) -> Result<(), FtlError> {
        let first = self.versions.partition_point(|(_, spare)| (spare.tag as usize) < page);
        for (at, spare) in self.versions[first..].iter().take_while(|(_, spare)| spare.tag as usize == page) {
            debug_assert!(first == 0 || self.versions[first - 1].1.tag < spare.tag);
            match flash.read_meta(Purpose::Recovery, *at, out) {
                Ok(_) => {
                    (self.gmd[page], self.written[page]) = (*at, spare.seq);
                    return Ok(());
                }
                Err(NandError::Uncorrectable { ppn } | NandError::Erased { ppn }) if !doubt.holds(ppn) => {}
                Err(error) => return Err(error.into()),
            }
        }
        (self.gmd[page], self.written[page]) = (Ppn::NONE, 0);
        out.fill(0xFF);
        Ok(())
    }

    fn check_entry<N: Nand>(
        &mut self,
        (flash, survey): (&mut Flash<N>, &Survey),
        (lpn, entry): (Lpn, Ppn),
        of_page: &[HostCopy],
        (page, missing): (usize, bool),
    ) -> Result<(), FtlError> {
        let written = self.written[page];
        debug_assert!(of_page.iter().all(|copy| copy.lpn == lpn) && of_page.is_sorted_by(|a, b| a.seq >= b.seq));
        // A younger copy than the one that flash names could not be read when that was written.
        let named = of_page.first().is_some_and(|newest| newest.seq <= written);
        self.dead.extend(of_page.iter().skip(1).map(|copy| copy.ppn).filter(|ppn| !named || *ppn != entry));
        match of_page.first() {
            Some(newest) if newest.seq > written => self.unsaved.push(*newest),
            Some(newest) if newest.ppn == entry => {}
            newest if is_page(entry) && self.leads_elsewhere((flash, survey), (lpn, entry), (page, missing))? => {
                self.dead.extend(newest.map(|newest| newest.ppn));
                // Trimmed later, unless a page of which nobody knows whose it was is the present
                // copy.
                if missing { self.lost.push(lpn) } else { self.dangling.push(lpn) }
            }
            Some(newest) => self.dead.push(newest.ppn),
            None => {}
        }
        Ok(())
    }

    /// Whether the page of an entry is not one of this logical page: the entry is out of date. A
    /// page that cannot be read may be one of it, and the entry keeps the error. If the block was
    /// erased since and a present copy is `missing`, the logical page is lost.
    fn leads_elsewhere<N: Nand>(
        &self,
        (flash, survey): (&mut Flash<N>, &Survey),
        (lpn, entry): (Lpn, Ppn),
        (page, missing): (usize, bool),
    ) -> Result<bool, FtlError> {
        let geometry = *flash.nand().geometry();
        if entry.0 >= geometry.pages() {
            return Ok(true);
        }
        match flash.read_spare(Purpose::Recovery, entry) {
            Ok(Some(spare)) => Ok(spare.kind != PageKind::User || spare.tag != lpn.0),
            Ok(None) => Ok(true),
            Err(NandError::Uncorrectable { .. }) => {
                Ok(missing && self.is_erased(survey, geometry.block_of(entry), page))
            }
            Err(error) => Err(error.into()),
        }
    }
}
