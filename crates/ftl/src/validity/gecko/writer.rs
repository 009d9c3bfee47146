//! Writing a run, a page at a time.

use super::directory::{DirEntry, Directory, Run};
use super::format::{self, HEADER_BYTES, NO_ENTRY, PageName, RUN_NUMBER_BYTES, SUMMARY_BYTES, Summary, WORD_BYTES};
use super::merge::Sink;
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
    entry_bytes: usize,
    page_entries: u32,
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
        Self {
            page: vec![0; shape.page_bytes + SLACK_BYTES].into_boxed_slice(),
            entry_bytes: shape.entry_bytes,
            page_entries: shape.page_entries,
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
        (self.number, self.index, self.count, self.first_id) = (number, 0, 0, NO_ENTRY);
        (self.entries, self.last_id) = (0, 0);
    }

    /// Where the entries of the page in RAM end.
    fn entries_end(&self) -> usize {
        HEADER_BYTES + self.count as usize * self.entry_bytes
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
        format::seal(&mut self.page, used, self.count, name);
        let ppn = store.append(Purpose::Validity, name.tag(), name.aux(), &self.page[..used])?;
        directory.push(DirEntry { first_id: self.first_id, ppn });
        self.index += 1;
        self.count = 0;
        self.first_id = NO_ENTRY;
        Ok(())
    }

    /// Writes the postamble and programs the last page. The caller then calls [`Directory::complete`].
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
        let summary = Summary {
            older: coverage.older as u16,
            size_ratio: shape.size_ratio as u16,
            chunk: shape.chunk,
            entries: self.entries,
            last_id: self.last_id,
            pages,
            flushes: coverage.flushes,
            last_flush: coverage.last_flush,
            flush_seq: coverage.flush_seq,
        };
        let mut at = self.entries_end();
        self.item(store, directory, &mut at, &summary.encode() as &[u8; SUMMARY_BYTES])?;
        let start = self.index;
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

    /// Writes one item of the postamble at `at`, or at the start of the next page if it does not fit.
    fn item<S: MetaStore>(
        &mut self,
        store: &mut S,
        directory: &mut Directory,
        at: &mut usize,
        bytes: &[u8],
    ) -> Result<(), FtlError> {
        if *at + bytes.len() > self.page.len() - SLACK_BYTES {
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
        if self.count == self.page_entries {
            self.program(store, directory, self.entries_end(), false)?;
        }
        if self.count == 0 {
            self.first_id = key >> 1;
        }
        let at = self.entries_end();
        format::put_u32(&mut self.page, at, key);
        // The last word runs into the slack, or into the next entry, which is written later.
        for (index, word) in bitmap.iter().enumerate() {
            let at = at + WORD_BYTES + 8 * index;
            self.page[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        self.count += 1;
        self.entries += 1;
        self.last_id = key >> 1;
        Ok(())
    }
}
