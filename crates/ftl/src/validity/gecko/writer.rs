//! Writing a run, a page at a time.

use super::directory::{DirEntry, Directory, Run};
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
    /// How many of the oldest runs stay.
    pub older: usize,
}

impl Writer {
    pub fn new(shape: &Shape) -> Self {
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
        }
    }

    /// Bytes of RAM it holds.
    pub fn ram_bytes(&self) -> u64 {
        self.page.len() as u64
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
        directory.push(DirEntry { first_id: self.first_id, ppn });
        self.index += 1;
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
        let (pages, last_page_first_id) = (self.index + 1, self.first_id);
        debug_assert!((self.entries == 0) == (last_page_first_id == NO_ENTRY), "the last page with entries has none");
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
        let mut at = self.end;
        self.item(store, directory, &mut at, &summary.encode() as &[u8; SUMMARY_BYTES])?;
        let start = self.index;
        debug_assert!(start < pages + 1 && at <= self.page_bytes);
        for older in (0..coverage.older).rev() {
            let number = directory.runs()[older].number.to_le_bytes();
            self.item(store, directory, &mut at, &number[..RUN_NUMBER_BYTES])?;
        }
        for page in 1..=pages {
            let id = if page == pages { last_page_first_id } else { directory.pending()[page as usize - 1].first_id };
            self.item(store, directory, &mut at, &id.to_le_bytes())?;
        }
        self.item(store, directory, &mut at, &start.to_le_bytes())?;
        self.program(store, directory, at, true)?;
        Ok(Run {
            number: self.number,
            start: 0,
            all_pages: self.index,
            pages,
            entries: self.entries,
            last_id: self.last_id,
            flushes: coverage.flushes,
            last_flush: coverage.last_flush,
        })
    }

    /// Writes one item of the postamble at `at`, or at the start of the next page if it does not
    /// fit.
    fn item<S: MetaStore>(
        &mut self,
        store: &mut S,
        directory: &mut Directory,
        at: &mut usize,
        bytes: &[u8],
    ) -> Result<(), FtlError> {
        debug_assert!(HEADER_BYTES + bytes.len() <= self.page_bytes, "an item is longer than a page");
        if *at + bytes.len() > self.page_bytes {
            self.program(store, directory, *at, false)?;
            *at = HEADER_BYTES;
        }
        self.page[*at..*at + bytes.len()].copy_from_slice(bytes);
        *at += bytes.len();
        Ok(())
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
}
