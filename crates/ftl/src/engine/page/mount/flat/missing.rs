//! Whether the page programmed last, if it cannot be read, was a translation page that was
//! complete.
//!
//! If a cut tore it, its entries were only in RAM before, and are found among the pages of host
//! data programmed last. But if it was complete, a collector may have moved it, and erased what it
//! was moved from. Then its entries are older than those: a logical page has a copy that no
//! translation page speaks for and that was not programmed among the last.

use super::{Flash, FoundPage, Nand, STALE, Survey, Table};
use crate::contract::FtlError;
use alloc::vec::Vec;

impl Table {
    /// Whether a translation page may be missing of which not all entries are among the pages of
    /// host data programmed last, `updates` of which had entries only in RAM.
    ///
    /// # Errors
    /// As [`Survey::read_block`].
    pub(super) fn is_incomplete<N: Nand>(
        &self,
        flash: &mut Flash<N>,
        survey: &mut Survey,
        updates: u32,
    ) -> Result<bool, FtlError> {
        Ok(survey.misses_translation_pages(&self.versions)
            || survey.misses_younger(flash, &self.versions)?
            || self.misses_entries(flash, survey, updates)?)
    }

    /// Whether entries are missing that were on flash, if a translation page cannot be read. Reads
    /// the spare areas of host data as far back as what is left of its versions.
    fn misses_entries<N: Nand>(
        &self,
        flash: &mut Flash<N>,
        survey: &mut Survey,
        updates: u32,
    ) -> Result<bool, FtlError> {
        let torn: Vec<Option<u32>> = survey.broken_translation().collect();
        let is_of_torn = |page: u32| torn.iter().any(|torn| torn.is_none_or(|torn| torn == page));
        let left = (0..).zip(&self.written).filter(|(page, _)| is_of_torn(*page));
        let Some(since) = left.map(|(_, written)| *written).min() else { return Ok(false) };
        let (_, from) = survey.programmed_last(flash, Some(updates), self.bound, self.scans_all)?;
        if since >= from {
            return Ok(false);
        }
        let (mut copies, _) = survey.programmed_last(flash, None, since, self.scans_all)?;
        debug_assert!(copies.is_sorted_by_key(|(_, spare)| (spare.tag, u64::MAX - spare.seq)));
        copies.dedup_by_key(|(_, spare)| spare.tag);
        let is_missed = |(_, spare): &FoundPage| {
            let page = spare.tag / self.entries_per_page;
            let written = self.written.get(page as usize).is_some_and(|written| spare.seq > *written);
            is_of_torn(page) && written && spare.seq < from && !(self.flags_dead && spare.flags.contains(STALE))
        };
        Ok(copies.iter().any(is_missed))
    }
}
