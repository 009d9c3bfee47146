//! Writing a run, a page at a time.

use super::directory::{DirEntry, Directory, Run, Under};
use super::format::{self, HEADER_BYTES, NO_ENTRY, PageName, RUN_NUMBER_BYTES, SUMMARY_BYTES, Summary, WORD_BYTES};
use super::merge::Sink;
use super::packed::{Packing, START};
use super::shape::{SLACK_BYTES, Shape};
use crate::contract::FtlError;
use crate::flash::Purpose;
use crate::validity::MetaStore;
use alloc::boxed::Box;
use alloc::vec;

/// The run under way: its last page, which is in RAM.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    page: Box<[u8]>,
    page_bytes: usize,
    entry_bytes: usize,
    packing: Option<Packing>,
    page_entries: u32,
    /// Where the entries of the page in RAM end.
    end: usize,
    number: u64,
    /// Of the page in RAM, in the run.
    index: u32,
    /// Entries in the page in RAM.
    count: u32,
    /// The first sub-entry of the page in RAM.
    first_id: u32,
    /// Entries in the run so far.
    entries: u32,
    /// The last sub-entry so far.
    last_id: u32,
    /// What it writes runs for.
    under: Under,
    /// How far the postamble is.
    tail: Tail,
    /// Pages programmed, of all runs.
    programs: u64,
}

/// A postamble under way.
#[derive(Clone, Copy, Debug, Default)]
struct Tail {
    /// Pages with entries.
    pages: u32,
    /// The first sub-entry of the last of them.
    last_page_first_id: u32,
    /// The page in which it begins.
    start: u32,
    /// Where the next item goes in the page in RAM.
    at: usize,
    /// Items before the next.
    items: usize,
}

/// What a run says of itself besides its entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coverage {
    /// How many flushes it covers.
    pub flushes: u32,
    /// The newest of them.
    pub last_flush: u64,
    /// The device's next sequence number when that flush began.
    pub flush_seq: u64,
    /// How many older runs live.
    pub older: usize,
    /// A merged run that this one announces.
    pub merged: Option<Merged>,
}

/// A complete run that is to take the place of others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Merged {
    pub run: Run,
    /// The oldest of those, by its place among the live runs.
    pub first: usize,
    /// How many they are.
    pub inputs: usize,
}

impl Coverage {
    /// The number of the older run with this rank, from the oldest on.
    fn older_run(&self, directory: &Directory, rank: usize) -> u64 {
        debug_assert!(rank < self.older);
        match self.merged {
            Some(merged) if rank == merged.first => merged.run.number,
            Some(merged) if rank > merged.first => directory.runs()[rank + merged.inputs - 1].number,
            _ => directory.runs()[rank].number,
        }
    }
}

impl Writer {
    pub fn new(shape: &Shape, under: Under) -> Self {
        let room = shape.packing.map_or(0, Packing::most);
        Self {
            page: vec![0; shape.page_bytes + room + SLACK_BYTES].into_boxed_slice(),
            page_bytes: shape.page_bytes,
            entry_bytes: shape.entry_bytes,
            packing: shape.packing,
            page_entries: shape.page_entries,
            end: HEADER_BYTES,
            number: 0,
            index: 0,
            count: 0,
            first_id: NO_ENTRY,
            entries: 0,
            last_id: 0,
            under,
            tail: Tail::default(),
            programs: 0,
        }
    }

    /// Bytes of RAM it holds.
    pub fn ram_bytes(&self) -> u64 {
        self.page.len() as u64
    }

    /// Pages programmed, of all runs.
    pub fn programs(&self) -> u64 {
        self.programs
    }

    /// Begins a run.
    pub fn begin(&mut self, number: u64) {
        debug_assert!(number < format::RUN_END);
        (self.number, self.index) = (number, 0);
        (self.entries, self.last_id) = (0, 0);
        self.start_page();
    }

    fn start_page(&mut self) {
        (self.count, self.end, self.first_id) = (0, HEADER_BYTES, NO_ENTRY);
    }

    /// Adds an entry to the page in RAM; `false` if it does not fit.
    #[inline(always)]
    fn put(&mut self, key: u32, bitmap: &[u64]) -> bool {
        let at = self.end;
        if let Some(packing) = self.packing {
            let before = if self.count == 0 { START } else { self.last_id };
            let end = at + packing.put(&mut self.page[at..], before, key, bitmap);
            if end > self.page_bytes {
                return false;
            }
            self.end = end;
        } else {
            if self.count == self.page_entries {
                return false;
            }
            format::put_u32(&mut self.page, at, key);
            // The last word runs into the slack, or into the next entry, which is written later.
            for (index, word) in bitmap.iter().enumerate() {
                let at = at + WORD_BYTES + 8 * index;
                self.page[at..at + 8].copy_from_slice(&word.to_le_bytes());
            }
            self.end = at + self.entry_bytes;
        }
        if self.count == 0 {
            self.first_id = key >> 1;
        }
        self.count += 1;
        true
    }

    /// Programs the page in RAM, of which `used` bytes mean something, and opens the next.
    fn program<S: MetaStore>(
        &mut self,
        store: &mut S,
        directory: &mut Directory,
        used: usize,
        last: bool,
    ) -> Result<(), FtlError> {
        let name = PageName { run: self.number, index: self.index, last };
        debug_assert!(used <= self.page_bytes && self.index < format::INDEX_END);
        format::seal(&mut self.page, used, self.count, name);
        let ppn = store.append(Purpose::Validity, name.tag(), name.aux(), &self.page[..used])?;
        directory.push(self.under, DirEntry { first_id: self.first_id, ppn });
        self.index += 1;
        self.programs += 1;
        self.start_page();
        Ok(())
    }

    /// Writes the postamble and programs the last page. The caller then calls
    /// [`Directory::complete`].
    ///
    /// # Errors
    /// Those of the device.
    pub fn finish<S: MetaStore>(
        &mut self,
        store: &mut S,
        directory: &mut Directory,
        shape: &Shape,
        coverage: &Coverage,
    ) -> Result<Run, FtlError> {
        self.begin_tail();
        loop {
            if let Some(run) = self.finish_page(store, directory, shape, coverage)? {
                return Ok(run);
            }
        }
    }

    /// Every entry was given.
    pub fn begin_tail(&mut self) {
        debug_assert!((self.entries == 0) == (self.first_id == NO_ENTRY), "the last page with entries has none");
        self.tail = Tail { pages: self.index + 1, last_page_first_id: self.first_id, start: 0, at: self.end, items: 0 };
    }

    /// Fills the page in RAM with as much of the postamble as fits and programs it; the run, once
    /// it is complete. An item that does not fit begins the next page.
    ///
    /// # Errors
    /// Those of the device.
    pub fn finish_page<S: MetaStore>(
        &mut self,
        store: &mut S,
        directory: &mut Directory,
        shape: &Shape,
        coverage: &Coverage,
    ) -> Result<Option<Run>, FtlError> {
        let items = 2 + coverage.older + self.tail.pages as usize;
        debug_assert!(self.tail.pages > 0 && self.tail.items < items);
        while self.tail.items < items {
            let (bytes, len) = self.item(directory, shape, coverage);
            let end = self.tail.at + len;
            debug_assert!(HEADER_BYTES + len <= self.page_bytes, "an item is longer than a page");
            if end > self.page_bytes {
                self.program(store, directory, self.tail.at, false)?;
                self.tail.at = HEADER_BYTES;
                return Ok(None);
            }
            self.page[self.tail.at..end].copy_from_slice(&bytes[..len]);
            if self.tail.items == 0 {
                self.tail.start = self.index;
            }
            self.tail.at = end;
            self.tail.items += 1;
        }
        self.program(store, directory, self.tail.at, true)?;
        Ok(Some(Run {
            number: self.number,
            start: 0,
            all_pages: self.index,
            pages: self.tail.pages,
            entries: self.entries,
            last_id: self.last_id,
            flushes: coverage.flushes,
            last_flush: coverage.last_flush,
        }))
    }

    /// The next item of the postamble, and its length.
    fn item(&self, directory: &Directory, shape: &Shape, coverage: &Coverage) -> ([u8; SUMMARY_BYTES], usize) {
        let mut item = [0; SUMMARY_BYTES];
        let Tail { pages, last_page_first_id, start, items, .. } = self.tail;
        let Some(rank) = items.checked_sub(1) else {
            let summary = Summary {
                older: coverage.older as u16,
                size_ratio: shape.size_ratio as u16,
                packed: shape.packing.is_some(),
                chunk: shape.chunk,
                entries: self.entries,
                last_id: self.last_id,
                pages,
                flushes: coverage.flushes,
                last_flush: coverage.last_flush,
                flush_seq: coverage.flush_seq,
            };
            return (summary.encode(), SUMMARY_BYTES);
        };
        let Some(page) = rank.checked_sub(coverage.older) else {
            let number = coverage.older_run(directory, coverage.older - 1 - rank).to_le_bytes();
            item[..RUN_NUMBER_BYTES].copy_from_slice(&number[..RUN_NUMBER_BYTES]);
            return (item, RUN_NUMBER_BYTES);
        };
        let word = match page + 1 {
            page if page < pages as usize => directory.pending(self.under)[page - 1].first_id,
            page if page == pages as usize => last_page_first_id,
            _ => start,
        };
        item[..WORD_BYTES].copy_from_slice(&word.to_le_bytes());
        (item, WORD_BYTES)
    }
}

impl<S: MetaStore> Sink<S> for Writer {
    #[inline(always)]
    fn entry(&mut self, store: &mut S, directory: &mut Directory, key: u32, bitmap: &[u64]) -> Result<(), FtlError> {
        debug_assert!(
            self.entries == 0 || key >> 1 > self.last_id,
            "sub-entry {} comes after {}",
            key >> 1,
            self.last_id
        );
        if !self.put(key, bitmap) {
            self.program(store, directory, self.end, false)?;
            let fits = self.put(key, bitmap);
            debug_assert!(fits, "an entry is longer than a page");
        }
        self.entries += 1;
        self.last_id = key >> 1;
        Ok(())
    }

    #[inline(always)]
    fn programs(&self) -> u64 {
        self.programs
    }
}
