//! Logarithmic Gecko: page validity as a log-structured merge tree on flash (GeckoFTL, section 3,
//! Appendices A and C.1).
//!
//! A report that a page died costs no flash operation: it goes into a buffer of V entries. A full
//! buffer is written as a sorted run, runs of like size are merged, and a query reads one page of
//! each of the few runs. Use it where B·K/8 bytes of RAM for a bitmap are too many; where they are
//! not, [`super::ram_bitmap`] is faster and simpler.
//!
//! # The algorithm
//! 1. *Invalidate* (Algorithm 1): set a bit in the buffer's entry for that part of the block.
//! 2. *Erased* (Algorithm 2): set the erase flag of the block's part 0, blank the block's entries
//!    in the buffer. One flag speaks for all parts.
//! 3. *Flush*, when an entry has no room: sort the buffer and merge it with the runs that the
//!    result would meet in its level, all at once or two at a time (`merge`, `flush`). Runs are
//!    discarded only when the run that replaces them is complete.
//! 4. *Query*: the buffer, then the runs from the youngest to the oldest, until an erase flag ends
//!    it.
//! 5. *Recover* (Appendix C.1): the youngest complete run names the older ones that live
//!    (`recover`).
//!
//! # Where this departs from the paper
//! - The erase flag is one per block, in part 0, instead of one per sub-entry (section 3.3 leaves
//!   it open).
//! - The buffer is an input of the first merge, instead of becoming a run first; that saves a write
//!   and a read a flush.
//! - Which runs a flush merges follows from the entries they hold, so that T > 2 does not merge
//!   runs that would not meet.
//! - When the younger runs together exceed a full run, everything is merged: space is bounded
//!   whatever the host does.
//! - The buffer is flushed when an entry finds no room, so a failed flush leaves it as it was and
//!   the report can be made again.
//!
//! # Beyond the paper, each an option that is off in the paper's preset
//! - Packed entries (`packed`): most entries say that one page died, near the last one; they take
//!   two or three bytes instead of eight, so a page holds three times as many and all that is
//!   merged shrinks likewise.
//! - A buffer of several pages: as many levels less as it has doublings. All of it waits in RAM, so
//!   recovery has more to find.
//! - A filter (`filter`): queries pass over the shorter runs that have no entry of the block.
//!
//! - Merges spread over reports (`spread`): none of them waits for a whole merge.
//!
//! Reading order: `format` and `FORMAT.md`, `shape`, `buffer`, `directory`, `merge`, `writer`,
//! `packed`, `filter`, `flush`, `spread`, `recover`.
//!
#![doc = include_str!("FORMAT.md")]

mod buffer;
mod directory;
mod filter;
mod flush;
mod format;
mod merge;
mod packed;
mod recover;
mod scan;
mod shape;
mod spread;
#[cfg(test)]
pub(super) mod tests;
mod writer;

use super::{Entry, MetaStore, PageSet, Site, Store, Validity};
use crate::bound::Most;
use crate::config::{GeckoOptions, Setting};
use crate::contract::{FtlError, RamItem, RamReport};
use crate::flash::Purpose;
use crate::inspect::{Inspector, LevelView, RunView};
use alloc::boxed::Box;
use alloc::vec;
use buffer::{Buffer, Full};
use directory::{Directory, Under};
use filter::Filter;
use format::{HEADER_BYTES, PageName, WORD_BYTES};
use merge::Merger;
use nand::{BlockId, PageKind, Ppn, Spare};
use packed::{Packing, START};
use shape::{Shape, add_word};
use spread::Spread;
use writer::Writer;

/// A page-validity store on flash.
#[derive(Clone, Debug)]
pub struct Gecko {
    shape: Shape,
    buffer: Buffer,
    directory: Directory,
    merger: Merger,
    writer: Writer,
    filter: Filter,
    /// The bitmap of a packed entry, while a page is searched.
    bitmap: Box<[u64]>,
    /// The number of the next run.
    next_run: u64,
    /// Buffers flushed since the store was first made.
    flushes: u64,
    /// The device's next sequence number when the last flush began.
    flush_seq: u64,
    /// What flushes say instead, while reports from before power loss are being made again.
    held_seq: Option<u64>,
    /// The merge that is spread over reports, if merges are.
    spread: Option<Spread>,
    /// Something was reported since the last flush.
    unsaved: bool,
}

impl Gecko {
    /// An empty store: no page of the device is dead.
    ///
    /// # Errors
    /// [`FtlError::Unsupported`] if T is below 2, a page is too short for one entry, or addresses
    /// do not fit the format.
    pub fn new(page_bytes: usize, blocks: u32, pages_per_block: u32, options: &GeckoOptions) -> Result<Self, FtlError> {
        let shape = Shape::new(page_bytes, blocks, pages_per_block, options)?;
        let ways = match (shape.spread_ops > 0, shape.multi_way) {
            (true, _) => shape.runs_max(),
            (false, true) => shape.levels as usize,
            (false, false) => 2,
        };
        Ok(Self {
            buffer: Buffer::new(&shape),
            directory: Directory::new(&shape),
            merger: Merger::new(&shape, ways),
            writer: Writer::new(&shape, Under::Flush),
            filter: Filter::new(options.filter_bytes),
            bitmap: vec![0; shape.bitmap_words].into_boxed_slice(),
            next_run: 0,
            flushes: 0,
            flush_seq: 0,
            held_seq: None,
            spread: (shape.spread_ops > 0).then(|| Spread::new(&shape)),
            unsaved: false,
            shape,
        })
    }

    /// V: entries that the buffer holds.
    #[must_use]
    pub fn buffer_entries(&self) -> u32 {
        self.shape.buffer_entries
    }

    /// The number of runs that live on flash.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.directory.runs().len()
    }

    /// The sequence number that the device's next program would have carried when the last flush
    /// began, or that of the first page of the oldest block whose erase had not been reported by
    /// then; 0 before the first flush.
    ///
    /// All that was reported before is on flash. What was reported later is only in the buffer:
    /// after recovery, every block erased and every page that died since must be reported again.
    #[must_use]
    pub fn last_flush_seq(&self) -> u64 {
        self.flush_seq
    }

    /// Lets flushes claim no more than the last one before power loss did, until
    /// [`Gecko::release_flush_seq`]. A recovery that is cut short after a flush would otherwise
    /// take reports for flushed that the recovery before had not yet repeated.
    pub fn hold_flush_seq(&mut self) {
        debug_assert!(self.held_seq.is_none(), "the claim of flushes is held already");
        self.held_seq = Some(self.flush_seq);
    }

    /// Every report has been made again.
    pub fn release_flush_seq(&mut self) {
        debug_assert!(self.held_seq.is_some_and(|held| held <= self.flush_seq));
        self.held_seq = None;
        // What was flushed meanwhile claims less than is known now.
        self.unsaved = !self.buffer.is_empty();
    }

    /// Whether a page that is not part of it would be if it could have been read.
    #[must_use]
    pub fn misses(&self, spare: &Spare) -> bool {
        let name = PageName::of(spare);
        let youngest = self.directory.runs().last().map(|run| run.number);
        self.directory.find(name).is_some() || name.last && youngest.is_none_or(|number| number < name.run)
    }

    /// Where its live pages lie, in no particular order.
    pub fn live_pages(&self) -> impl Iterator<Item = Ppn> {
        self.directory.live()
    }

    /// Writes the full buffer out.
    #[cold]
    fn empty_buffer<S: MetaStore>(&mut self, store: &mut S) -> Result<(), FtlError> {
        if self.spread.is_some() { self.flush_alone(store, true) } else { self.flush_buffer(store) }
    }

    /// Adds the entries of a block in the buffer to `words`; whether one has the erase flag.
    fn query_buffer(&self, block: BlockId, words: &mut [u64]) -> bool {
        let mut erased = false;
        for (part, id) in (self.shape.first_id(block)..=self.shape.last_id(block)).enumerate() {
            if let Some((flag, at)) = self.buffer.get(id) {
                erased |= flag;
                self.shape.add_bitmap(words, part as u32, self.buffer.bitmaps(), at);
            }
        }
        erased
    }

    /// Adds the entries of a block in one page, which is in the scratch buffer, to `words`; whether
    /// one has the erase flag.
    fn query_page(&mut self, block: BlockId, words: &mut [u64]) -> bool {
        if let Some(packing) = self.shape.packing {
            return self.query_packed_page(packing, block, words);
        }
        let (first, last) = (self.shape.first_id(block), self.shape.last_id(block));
        let entry_bytes = self.shape.entry_bytes;
        let page = self.merger.scratch_page();
        let count = format::count(page) as usize;
        debug_assert!(HEADER_BYTES + count * entry_bytes <= page.len());
        let at = |entry: usize| HEADER_BYTES + entry * entry_bytes;
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low.midpoint(high);
            if format::get_u32(page, at(middle)) >> 1 < first {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let mut erased = false;
        for entry in low..count {
            let key = format::get_u32(page, at(entry));
            if key >> 1 > last {
                break;
            }
            erased |= key & 1 != 0;
            self.shape.add_bitmap(words, (key >> 1) - first, page, at(entry) + WORD_BYTES);
        }
        erased
    }
}

impl Gecko {
    /// As [`Gecko::query_page`], of packed entries: all before those of the block are read.
    fn query_packed_page(&mut self, packing: Packing, block: BlockId, words: &mut [u64]) -> bool {
        let (first, last) = (self.shape.first_id(block), self.shape.last_id(block));
        let page = self.merger.scratch_page();
        let (mut at, mut before, mut erased) = (HEADER_BYTES, START, false);
        for _ in 0..format::count(page) {
            let entry = packing.get(page, at, before, &mut self.bitmap);
            (at, before) = (entry.end, entry.key >> 1);
            if before > last {
                break;
            }
            if before >= first {
                erased |= entry.key & 1 != 0;
                let start = ((before - first) * self.shape.chunk) as usize;
                for (index, &word) in self.bitmap.iter().enumerate() {
                    add_word(words, start + 64 * index, word);
                }
            }
        }
        erased
    }
}

impl Store for Gecko {
    const ENTRY: Entry = Entry {
        name: "gecko",
        summary: "log-structured merge tree in flash: reports are buffered, a query reads a page of each run",
        source: "Dayan, Bonnet and Idreos, SIGMOD 2016, section 3",
        settings: &[Setting::Gecko],
    };

    fn make(site: &Site) -> Result<Self, FtlError> {
        Self::new(site.page_bytes as usize, site.blocks, site.pages_per_block, &site.gecko)
    }
}

impl Validity for Gecko {
    #[inline]
    fn tracks_metadata(&self) -> bool {
        false
    }

    #[inline]
    fn is_buffered(&self) -> bool {
        true
    }

    /// On an error of the flush that makes room, the report was not taken and can be made again.
    #[inline]
    fn invalidate<S: MetaStore>(&mut self, store: &mut S, ppn: Ppn) -> Result<(), FtlError> {
        if self.spread.as_ref().is_some_and(Spread::is_due) {
            self.pay(store, self.shape.locate(ppn).0)?;
        }
        while self.buffer.invalidate(&self.shape, ppn) == Err(Full) {
            self.empty_buffer(store)?;
        }
        self.unsaved = true;
        Ok(())
    }

    /// On an error of the flush that makes room, the report was not taken and can be made again.
    fn erased<S: MetaStore>(&mut self, store: &mut S, block: BlockId, _: u64) -> Result<(), FtlError> {
        if self.spread.as_ref().is_some_and(Spread::is_due) {
            self.pay(store, self.shape.first_id(block))?;
        }
        while self.buffer.erased(&self.shape, block) == Err(Full) {
            self.empty_buffer(store)?;
        }
        self.unsaved = true;
        Ok(())
    }

    fn query<S: MetaStore>(&mut self, store: &mut S, block: BlockId, dead: &mut PageSet) -> Result<(), FtlError> {
        let words = dead.words_mut();
        if self.query_buffer(block, words) {
            return Ok(());
        }
        let (first, last) = (self.shape.first_id(block), self.shape.last_id(block));
        // The buffer says all that a partial run says.
        let partial = usize::from(self.spread.as_ref().is_some_and(Spread::is_partial));
        for at in (0..self.directory.runs().len() - partial).rev() {
            let run = self.directory.runs()[at];
            if !self.filter.may_have(run.number, block) {
                continue;
            }
            let mut erased = false;
            for index in self.directory.pages_for(&run, first, last) {
                self.directory.fetch(store, Purpose::ValidityQuery, &run, index, self.merger.scratch_page())?;
                erased |= self.query_page(block, words);
            }
            if erased {
                break;
            }
        }
        Ok(())
    }

    fn owns(&self, ppn: Ppn, spare: &Spare) -> bool {
        spare.kind == PageKind::Validity
            && self.directory.find(PageName::of(spare)).is_some_and(|place| self.directory.at(place) == ppn)
    }

    fn find_own(&self, wanted: impl Fn(Ppn) -> bool) -> Option<Ppn> {
        self.live_pages().find(|ppn| wanted(*ppn))
    }

    fn moved(&mut self, from: Ppn, to: Ppn, spare: &Spare) {
        debug_assert!(self.owns(from, spare), "{from} was moved but is not a live page of a run");
        debug_assert!(from != to);
        if let Some(place) = self.directory.find(PageName::of(spare)) {
            self.directory.relocate(place, to);
        }
    }

    fn flush<S: MetaStore>(&mut self, store: &mut S) -> Result<(), FtlError> {
        match self.spread {
            Some(_) => self.flush_spread(store),
            None if self.buffer.is_empty() => Ok(()),
            None => self.flush_buffer(store),
        }
    }

    fn flushes(&self) -> u64 {
        self.flushes
    }

    /// A report and an erase take an entry of the buffer each. A full buffer may merge all levels,
    /// and so may a flush.
    fn most_work(&self, reports: u64, erases: u64, flushes: u64) -> Most {
        let room = u64::from(self.shape.buffer_entries.saturating_sub(self.shape.partitions).max(1));
        let flushes = (reports + erases) / room + 1 + flushes;
        let shares = u64::from(self.shape.spread_ops) * (reports + erases);
        let (read, written) = (self.shape.footprint_pages(), self.shape.reserve_pages());
        Most::pages(flushes * u64::from(read) + shares, flushes * u64::from(written) + shares)
    }

    /// A page of each run, or two if the entries of the block lie in both.
    fn most_query_reads(&self) -> u32 {
        2 * self.shape.runs_max() as u32
    }

    fn reserve_pages(&self) -> u32 {
        self.shape.reserve_pages()
    }

    fn footprint_pages(&self) -> u32 {
        self.shape.footprint_pages()
    }

    fn inspect(&self, inspector: &mut dyn Inspector) {
        let capacity = self.shape.buffer_entries;
        let entries = capacity - self.buffer.room();
        inspector.level(LevelView { name: "gecko_buffer", entries, capacity, dirty: entries });
        for run in self.directory.runs() {
            let level = self.shape.level_of(run.entries.into());
            inspector.run(RunView { number: run.number, level, entries: run.entries, pages: run.all_pages });
        }
        self.directory.live().for_each(|ppn| inspector.metadata(ppn));
    }

    fn ram(&self, report: &mut RamReport) {
        report.push(RamItem { name: "gecko_buffer", bytes: self.buffer.ram_bytes() });
        let spread = self.spread.as_ref().map_or(0, Spread::ram_bytes);
        let buffers = self.merger.ram_bytes() + self.writer.ram_bytes() + spread;
        report.push(RamItem { name: "gecko_buffers", bytes: buffers });
        if self.filter.ram_bytes() > 0 {
            report.push(RamItem { name: "gecko_filter", bytes: self.filter.ram_bytes() });
        }
        report.push(RamItem { name: "run_directories", bytes: self.directory.ram_bytes() });
    }
}
