//! Run directories: for each page of each run, where it lies and the first sub-entry in it.
//!
//! All directories share one array, oldest run first. A flush always merges the youngest runs, so
//! the array is a stack: the output's pages are pushed on top and then slide down over its inputs.
//! Its capacity is the store's footprint; it never grows.

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
}

impl Directory {
    pub fn new(shape: &Shape) -> Self {
        Self {
            entries: Vec::with_capacity(shape.footprint_pages() as usize),
            runs: Vec::with_capacity(shape.runs_max() + 1),
            pending: 0,
            limit: shape.footprint_pages() as usize,
        }
    }

    /// The live runs, oldest first.
    pub fn runs(&self) -> &[Run] {
        &self.runs
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

    /// Where every page of every live run lies.
    pub fn live(&self) -> impl Iterator<Item = Ppn> {
        self.entries[..self.pending].iter().map(|entry| entry.ppn)
    }

    /// Notes a page of the run under way.
    pub fn push(&mut self, entry: DirEntry) {
        debug_assert!(self.entries.len() < self.limit, "the footprint is no bound");
        self.entries.push(entry);
    }

    /// Pages of the run under way.
    pub fn pending(&self) -> &[DirEntry] {
        &self.entries[self.pending..]
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

    /// The place in the directory of a page of a live run.
    pub fn find(&self, name: PageName) -> Option<usize> {
        let at = self.runs.binary_search_by_key(&name.run, |run| run.number).ok()?;
        let run = &self.runs[at];
        (name.index < run.all_pages).then_some((run.start + name.index) as usize)
    }

    /// Where a page of a live run lies.
    pub fn at(&self, index: usize) -> Ppn {
        self.entries[index].ppn
    }

    /// A page was moved.
    pub fn relocate(&mut self, index: usize, to: Ppn) {
        debug_assert!(index < self.pending, "page {index} is of no live run");
        self.entries[index].ppn = to;
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
        let bytes = self.entries.capacity() * size_of::<DirEntry>() + self.runs.capacity() * size_of::<Run>();
        bytes as u64
    }
}
