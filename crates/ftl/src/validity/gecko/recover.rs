//! Finding the live runs after power loss (Appendix C.1).
//!
//! 1. Sort the pages that were found by run, youngest first, and index; of several copies of a
//!    page, latest program first.
//! 2. The youngest run whose last page is sound and whose other pages were found is the youngest
//!    live one; all younger are remnants of merges that power loss cut short.
//! 3. It names the older runs that live. Read the postamble of each.
//! 4. Check that the runs cover every flush exactly once.
//! 5. New runs take numbers above all that were found, and above one that a page may have burned
//!    unreadably.
//!
//! Only postambles are read, and pages that were found more than once: a copy that was cut short
//! can have a spare area that reads well and contents that do not.

use super::Gecko;
use super::directory::{DirEntry, Run, Under};
use super::format::{self, HEADER_BYTES, NO_ENTRY, PageName, RUN_NUMBER_BYTES, SUMMARY_BYTES, Summary, WORD_BYTES};
use super::merge::Merger;
use super::shape::{Shape, unsupported};
use crate::config::GeckoOptions;
use crate::contract::FtlError;
use crate::flash::Purpose;
use crate::validity::MetaStore;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;
use nand::{NandError, PageKind, Ppn, Spare};

/// A page that was found.
#[derive(Clone, Copy, Debug)]
struct Found {
    name: PageName,
    seq: u64,
    ppn: Ppn,
}

/// A complete run that was found.
struct Complete {
    run: Run,
    pages: Vec<DirEntry>,
    older: Vec<u64>,
    flush_seq: u64,
}

impl Gecko {
    /// Rebuilds the run directories from flash; the buffer is empty.
    ///
    /// `pages` are the pages of kind [`PageKind::Validity`] whose spare areas can be read, dead
    /// ones included, in any order. Others are passed over.
    ///
    /// # Errors
    /// [`FtlError::Unsupported`] as [`Gecko::new`], and if the store was written with another T or
    /// another partitioning; [`FtlError::Damaged`] if a live run cannot be read; those of the
    /// device.
    pub fn recover<S: MetaStore>(
        store: &mut S,
        options: &GeckoOptions,
        pages: impl IntoIterator<Item = (Ppn, Spare)>,
    ) -> Result<Self, FtlError> {
        let mut gecko = Self::new(store.page_bytes(), store.blocks(), store.pages_per_block(), options)?;
        let mut found: Vec<Found> = pages
            .into_iter()
            .filter(|(_, spare)| spare.kind == PageKind::Validity)
            .map(|(ppn, spare)| Found { name: PageName::of(&spare), seq: spare.seq, ppn })
            .collect();
        found.sort_unstable_by_key(|page| (Reverse(page.name.run), page.name.index, Reverse(page.seq)));
        gecko.next_run = found.first().map_or(0, |page| page.name.run + 2);
        let mut reader = Reader::new(&gecko.shape);
        let mut live = Vec::new();
        for copies in found.chunk_by(|a, b| a.name.run == b.name.run) {
            if let Some(youngest) = reader.run(store, copies)? {
                live.push(youngest);
                break;
            }
        }
        let Some(youngest) = live.first() else { return Ok(gecko) };
        gecko.flushes = youngest.run.last_flush;
        gecko.flush_seq = youngest.flush_seq;
        let namer = youngest.pages[youngest.pages.len() - 1].ppn;
        for number in youngest.older.clone() {
            let begin = found.partition_point(|page| page.name.run > number);
            let end = found.partition_point(|page| page.name.run >= number);
            let run = reader.run(store, &found[begin..end])?;
            live.push(run.ok_or_else(|| damaged(namer, "an older run that it names cannot be read"))?);
        }
        check_coverage(&live)?;
        gecko.directory.allow(live.iter().map(|complete| complete.pages.len()).sum());
        for complete in live.iter().rev() {
            debug_assert!(
                complete.pages.len() == complete.run.all_pages as usize && complete.run.number < gecko.next_run
            );
            complete.pages.iter().for_each(|entry| gecko.directory.push(Under::Flush, *entry));
            gecko.directory.complete(complete.run, 0, |_| ());
        }
        if gecko.shape.multi_way && live.len() > gecko.merger.ways() {
            gecko.merger = Merger::new(&gecko.shape, live.len());
        }
        Ok(gecko)
    }
}

impl Gecko {
    /// An empty store that supersedes whatever of it is on flash, once it has been flushed.
    ///
    /// # Errors
    /// As [`Gecko::new`].
    pub fn restart<S: MetaStore>(store: &S, options: &GeckoOptions, pages: &[(Ppn, Spare)]) -> Result<Self, FtlError> {
        let mut gecko = Self::new(store.page_bytes(), store.blocks(), store.pages_per_block(), options)?;
        let numbers = pages.iter().filter(|(_, spare)| spare.kind == PageKind::Validity);
        gecko.next_run = numbers.map(|(_, spare)| PageName::of(spare).run + 2).max().unwrap_or(0);
        Ok(gecko)
    }
}

/// Whether the runs, youngest first, cover every flush from the first exactly once.
fn check_coverage(live: &[Complete]) -> Result<(), FtlError> {
    for (at, younger) in live.iter().enumerate() {
        let before = younger.run.last_flush.wrapping_sub(u64::from(younger.run.flushes)) as u32;
        let older = live.get(at + 1).map_or(0, |older| older.run.last_flush as u32);
        if before != older {
            return Err(damaged(younger.pages[0].ppn, "the runs do not cover every flush exactly once"));
        }
    }
    Ok(())
}

fn damaged(ppn: Ppn, reason: &'static str) -> FtlError {
    FtlError::Damaged { structure: "Gecko run", ppn, reason }
}

/// Reads postambles.
struct Reader<'a> {
    shape: &'a Shape,
    page: Vec<u8>,
    /// Index in its run of the page in `page`.
    index: u32,
    /// Where the next item begins.
    at: usize,
}

impl<'a> Reader<'a> {
    fn new(shape: &'a Shape) -> Self {
        Self { shape, page: vec![0; shape.device_page_bytes], index: 0, at: 0 }
    }

    /// Reads the first of these copies that is sound into `page`.
    fn load<'f, S: MetaStore>(
        &mut self,
        store: &mut S,
        copies: impl Iterator<Item = &'f Found>,
    ) -> Result<Option<&'f Found>, FtlError> {
        let least = if self.shape.packing.is_some() { 1 } else { self.shape.entry_bytes };
        for copy in copies {
            match store.fetch(Purpose::Recovery, copy.ppn, &mut self.page) {
                Ok(_) if format::is_sound(&self.page, copy.name, least) => {
                    self.index = copy.name.index;
                    return Ok(Some(copy));
                }
                Ok(_) | Err(FtlError::Nand(NandError::Uncorrectable { .. } | NandError::Erased { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Reads a run's postamble, given all copies of all its pages; `None` if the run is not
    /// complete.
    fn run<S: MetaStore>(&mut self, store: &mut S, copies: &[Found]) -> Result<Option<Complete>, FtlError> {
        let Some(last) = self.load(store, copies.iter().filter(|copy| copy.name.last))? else { return Ok(None) };
        let mut pages = Vec::new();
        for of_page in copies.chunk_by(|a, b| a.name.index == b.name.index) {
            let copy = match of_page {
                _ if of_page[0].name.index == last.name.index => Some(last),
                [only] => Some(only),
                several => self.load(store, several.iter())?,
            };
            match copy {
                Some(copy) if copy.name.index == pages.len() as u32 => {
                    pages.push(DirEntry { first_id: NO_ENTRY, ppn: copy.ppn });
                }
                _ => return Ok(None),
            }
        }
        if pages.len() != last.name.index as usize + 1 || !self.seek_postamble(store, copies, last)? {
            return Ok(None);
        }
        self.postamble(store, copies, pages).map(Some)
    }

    /// Goes to where the postamble begins.
    fn seek_postamble<S: MetaStore>(
        &mut self,
        store: &mut S,
        copies: &[Found],
        last: &Found,
    ) -> Result<bool, FtlError> {
        if self.index != last.name.index && self.load(store, core::iter::once(last))?.is_none() {
            return Ok(false);
        }
        let end = format::used(&self.page);
        if end < HEADER_BYTES + WORD_BYTES {
            return Ok(false);
        }
        let start = format::get_u32(&self.page, end - WORD_BYTES);
        if start != last.name.index && self.load(store, copies.iter().filter(|c| c.name.index == start))?.is_none() {
            return Ok(false);
        }
        self.at = self.shape.entries_end(&self.page);
        Ok(true)
    }

    /// Reads the next item of the postamble, on the next page if this one has no more.
    fn item<S: MetaStore>(&mut self, store: &mut S, copies: &[Found], bytes: usize) -> Result<&[u8], FtlError> {
        let ppn = copies[0].ppn;
        if self.at == format::used(&self.page) {
            let next = self.index + 1;
            if self.load(store, copies.iter().filter(|copy| copy.name.index == next))?.is_none() {
                return Err(damaged(ppn, "its postamble cannot be read"));
            }
            self.at = HEADER_BYTES;
        }
        if self.at + bytes > format::used(&self.page) {
            return Err(damaged(ppn, "its postamble is too short"));
        }
        self.at += bytes;
        debug_assert!(self.at <= format::used(&self.page));
        Ok(&self.page[self.at - bytes..self.at])
    }

    /// Reads the postamble from its beginning.
    fn postamble<S: MetaStore>(
        &mut self,
        store: &mut S,
        copies: &[Found],
        mut pages: Vec<DirEntry>,
    ) -> Result<Complete, FtlError> {
        let summary = Summary::decode(self.item(store, copies, SUMMARY_BYTES)?);
        let packed = self.shape.packing.is_some();
        if summary.packed != packed {
            let [was, now] = [summary.packed, packed].map(|packed| if packed { "packed" } else { "unpacked" });
            return Err(unsupported(format!(
                "its entries were written {was}, now {now} ones are asked for; open it with the options it was made with"
            )));
        }
        if summary.chunk != self.shape.chunk || u32::from(summary.size_ratio) != self.shape.size_ratio {
            return Err(unsupported(format!(
                "it was written with T = {} and {} pages a sub-entry, now T = {} and {} are asked for; open it with \
                 the options it was made with",
                summary.size_ratio, summary.chunk, self.shape.size_ratio, self.shape.chunk
            )));
        }
        if summary.pages as usize > pages.len() {
            return Err(damaged(copies[0].ppn, "it says that it has more pages than it has"));
        }
        let mut older = Vec::with_capacity(usize::from(summary.older));
        for _ in 0..summary.older {
            older.push(format::get_uint(self.item(store, copies, RUN_NUMBER_BYTES)?));
        }
        for page in &mut pages[..summary.pages as usize] {
            page.first_id = format::get_u32(self.item(store, copies, WORD_BYTES)?, 0);
        }
        let run = Run {
            number: copies[0].name.run,
            start: 0,
            all_pages: pages.len() as u32,
            pages: summary.pages,
            entries: summary.entries,
            last_id: summary.last_id,
            flushes: summary.flushes,
            last_flush: summary.last_flush,
        };
        Ok(Complete { run, pages, older, flush_seq: summary.flush_seq })
    }
}
