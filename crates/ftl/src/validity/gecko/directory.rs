//! Run directories: for each page of each run, where it lies and the first sub-entry in it.
//!
//! All directories share one array, oldest run first. A flush always merges the youngest runs, so
//! the array is a stack: the output's pages are pushed on top and then slide down over its inputs.
//! Its capacity is the store's footprint; it never grows.
//!
//! A merge that is spread over reports takes longer than a flush. The pages of its output lie aside
//! until the next flush announces them.

use super::format::{self, PageName};
use super::shape::{SLACK_BYTES, Shape};
use crate::contract::FtlError;
use crate::flash::Purpose;
use crate::validity::MetaStore;
use alloc::vec::Vec;
use nand::Ppn;

/// One page of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DirEntry {
    /// Its first sub-entry, or [`format::NO_ENTRY`].
    pub first_id: u32,
    /// Where it lies.
    pub ppn: Ppn,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Its number.
    pub number: u64,
    /// Index of its first page in the directory.
    pub start: u32,
    /// Pages, those that only hold postamble included.
    pub all_pages: u32,
    /// Pages with entries; 1 if it has none.
    pub pages: u32,
    /// Entries.
    pub entries: u32,
    /// Its last sub-entry, 0 if it has none.
    pub last_id: u32,
    /// How many flushes it covers.
    pub flushes: u32,
    /// The newest flush it covers.
    pub last_flush: u64,
}

/// Every live run and its pages.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    entries: Vec<DirEntry>,
    /// Oldest first.
    runs: Vec<Run>,
    /// Where the pages of the run under way begin.
    pending: usize,
    /// The most entries there can be.
    limit: usize,
    /// The pages of the run that a spread merge writes, and its number.
    aside: Vec<DirEntry>,
    aside_run: Option<u64>,
    aside_limit: usize,
}

/// Which of two runs under way a page belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Under {
    /// A flush, or a merge that is done at once.
    Flush,
    /// A merge that is spread over reports.
    Spread,
}

/// Where the page of a run is noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Of a live run.
    Live(usize),
    /// Of the run that a spread merge writes.
    Aside(usize),
}

impl Directory {
    pub fn new(shape: &Shape) -> Self {
        let aside = shape.aside_pages() as usize;
        let limit = shape.footprint_pages() as usize - aside;
        Self {
            entries: Vec::with_capacity(limit),
            runs: Vec::with_capacity(shape.runs_max() + 1),
            pending: 0,
            limit,
            aside: Vec::with_capacity(aside),
            aside_run: None,
            aside_limit: aside,
        }
    }

    /// The live runs, oldest first.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Whether a run lives, or is being written by a spread merge.
    pub fn has(&self, number: u64) -> bool {
        self.aside_run == Some(number) || self.runs.iter().any(|run| run.number == number)
    }

    /// The pages of a run that have entries.
    pub fn pages_of(&self, run: &Run) -> &[DirEntry] {
        &self.entries[run.start as usize..][..run.pages as usize]
    }

    /// Reads a page of a live run by its index here, into a buffer with [`SLACK_BYTES`] more.
    ///
    /// # Errors
    /// Those of the device; [`FtlError::Damaged`] if another page is found.
    pub fn fetch<S: MetaStore>(
        &self,
        store: &mut S,
        purpose: Purpose,
        run: &Run,
        index: usize,
        page: &mut [u8],
    ) -> Result<(), FtlError> {
        let ppn = self.entries[index].ppn;
        debug_assert!(index as u32 - run.start < run.all_pages && index < self.pending);
        let end = page.len() - SLACK_BYTES;
        store.fetch(purpose, ppn, &mut page[..end])?;
        let index = index as u32 - run.start;
        let name = PageName { run: run.number, index, last: index + 1 == run.all_pages };
        if format::is_named(page, name) {
            return Ok(());
        }
        Err(FtlError::Damaged { structure: "Gecko run", ppn, reason: "it holds another page than was written there" })
    }

    /// Where every page lies of every live run, and of the run that a spread merge writes.
    pub fn live(&self) -> impl Iterator<Item = Ppn> {
        self.entries[..self.pending].iter().chain(&self.aside).map(|entry| entry.ppn)
    }

    /// Pages of live runs.
    #[cfg(test)]
    pub fn live_of_runs(&self) -> usize {
        self.pending
    }

    /// Makes room for so many pages of live runs: another setting may have left more than this one
    /// would.
    pub fn allow(&mut self, pages: usize) {
        self.limit = self.limit.max(pages);
    }

    /// Notes a page of a run under way.
    pub fn push(&mut self, under: Under, entry: DirEntry) {
        match under {
            Under::Flush => {
                debug_assert!(self.entries.len() < self.limit, "the footprint is no bound");
                self.entries.push(entry);
            }
            Under::Spread => {
                debug_assert!(self.aside.len() < self.aside_limit, "the output is longer than a full run");
                self.aside.push(entry);
            }
        }
    }

    /// Pages of a run under way.
    pub fn pending(&self, under: Under) -> &[DirEntry] {
        match under {
            Under::Flush => &self.entries[self.pending..],
            Under::Spread => &self.aside,
        }
    }

    /// A spread merge begins to write this run.
    pub fn begin_aside(&mut self, run: u64) {
        debug_assert!(self.aside.is_empty() && self.aside_run.is_none(), "two merges are spread at a time");
        self.aside_run = Some(run);
    }

    /// The run of a spread merge takes the place of so many runs from the `first` oldest on, whose
    /// pages go to `discard`.
    pub fn announce(&mut self, mut run: Run, first: usize, inputs: usize, mut discard: impl FnMut(Ppn)) {
        debug_assert!(self.aside_run == Some(run.number) && self.pending == self.entries.len());
        debug_assert!(first + inputs <= self.runs.len() && self.aside.len() == run.all_pages as usize);
        let start = self.runs[first].start as usize;
        let end = self.runs.get(first + inputs).map_or(self.pending, |run| run.start as usize);
        self.entries[start..end].iter().for_each(|entry| discard(entry.ppn));
        let (len, pages) = (self.entries.len(), self.aside.len());
        let after = len - end + start + pages;
        self.entries.resize(len.max(after), DirEntry { first_id: format::NO_ENTRY, ppn: Ppn::NONE });
        self.entries.copy_within(end..len, start + pages);
        self.entries.truncate(after);
        self.entries[start..start + pages].copy_from_slice(&self.aside);
        self.aside.clear();
        self.aside_run = None;
        self.pending = after;
        run.start = start as u32;
        self.runs[first] = run;
        self.runs.drain(first + 1..first + inputs);
        for younger in &mut self.runs[first + 1..] {
            younger.start = younger.start - end as u32 + (start + pages) as u32;
        }
        debug_assert!(self.pending <= self.limit, "more pages live than the footprint says");
        debug_assert!(self.runs.is_sorted_by(|a, b| a.number < b.number && a.start < b.start));
    }

    /// The run of a spread merge is given up; its pages go to `discard`.
    pub fn abandon_aside(&mut self, mut discard: impl FnMut(Ppn)) {
        self.aside.drain(..).for_each(|entry| discard(entry.ppn));
        self.aside_run = None;
    }

    /// The run under way is complete: it takes the place of the youngest `inputs` runs, whose pages
    /// go to `discard`.
    pub fn complete(&mut self, mut run: Run, inputs: usize, mut discard: impl FnMut(Ppn)) {
        let kept = self.runs.len() - inputs;
        debug_assert!(
            self.runs.last().is_none_or(|youngest| youngest.number < run.number),
            "a run is younger than its number"
        );
        let start = self.runs.get(kept).map_or(self.pending, |run| run.start as usize);
        self.entries[start..self.pending].iter().for_each(|entry| discard(entry.ppn));
        let pages = self.entries.len() - self.pending;
        debug_assert!(run.pages > 0 && run.pages <= run.all_pages && start <= self.pending);
        debug_assert_eq!(pages, run.all_pages as usize);
        self.entries.copy_within(self.pending.., start);
        self.entries.truncate(start + pages);
        self.pending = self.entries.len();
        run.start = start as u32;
        self.runs.truncate(kept);
        self.runs.push(run);
        debug_assert!(self.pending <= self.limit, "more pages live than the footprint says");
    }

    /// The run under way is given up; its pages go to `discard`.
    pub fn abandon(&mut self, mut discard: impl FnMut(Ppn)) {
        self.entries.drain(self.pending..).for_each(|entry| discard(entry.ppn));
        debug_assert!(self.entries.len() == self.pending);
    }

    /// The place in the directory of a page of a live run, or of the run that a spread merge
    /// writes.
    pub fn find(&self, name: PageName) -> Option<Place> {
        if self.aside_run == Some(name.run) {
            return ((name.index as usize) < self.aside.len()).then_some(Place::Aside(name.index as usize));
        }
        let at = self.runs.binary_search_by_key(&name.run, |run| run.number).ok()?;
        let run = &self.runs[at];
        (name.index < run.all_pages).then_some(Place::Live((run.start + name.index) as usize))
    }

    /// Where a page lies.
    pub fn at(&self, place: Place) -> Ppn {
        match place {
            Place::Live(index) => self.entries[index].ppn,
            Place::Aside(index) => self.aside[index].ppn,
        }
    }

    /// A page was moved.
    pub fn relocate(&mut self, place: Place, to: Ppn) {
        match place {
            Place::Live(index) => {
                debug_assert!(index < self.pending, "page {index} is of no live run");
                self.entries[index].ppn = to;
            }
            Place::Aside(index) => self.aside[index].ppn = to,
        }
    }

    /// The directory indices of the pages of a run that may hold sub-entries from `first` to
    /// `last`: none, one, or two where they straddle pages (more if a block has more parts than a
    /// page has entries).
    pub fn pages_for(&self, run: &Run, first: u32, last: u32) -> core::ops::Range<usize> {
        let pages = self.pages_of(run);
        let begin = pages.partition_point(|page| page.first_id <= first).saturating_sub(1);
        let end = pages.partition_point(|page| page.first_id <= last);
        debug_assert!(first <= last);
        if first > run.last_id || begin >= end {
            return 0..0;
        }
        run.start as usize + begin..run.start as usize + end
    }

    /// Pages with entries in all runs but the oldest.
    pub fn young_pages(&self) -> u32 {
        self.runs.iter().skip(1).map(|run| run.pages).sum()
    }

    /// Whether some run is not of a lower level than the next older: a two-way cascade was cut
    /// short. Returns how many of the youngest runs must be merged to mend it, 0 if none.
    pub fn unsettled(&self, shape: &Shape) -> usize {
        let level = |run: &Run| shape.level_of(u64::from(run.entries));
        let disorder = |pair: &[Run]| level(&pair[1]) >= level(&pair[0]);
        self.runs.windows(2).position(disorder).map_or(0, |at| self.runs.len() - at)
    }

    /// Bytes of RAM it holds.
    pub fn ram_bytes(&self) -> u64 {
        let pages = self.entries.capacity() + self.aside.capacity();
        (pages * size_of::<DirEntry>() + self.runs.capacity() * size_of::<Run>()) as u64
    }
}
