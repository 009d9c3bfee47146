//! Merging the buffer and runs in one linear pass (section 3.1, Algorithm 3, Appendix A), any
//! number of ways.
//!
//! 1. Each input stands at its smallest key; the inputs are in order of age, youngest first.
//! 2. The smallest sub-entry number among them is next. If it opens a new block, nothing of that
//!    block is void yet.
//! 3. From the youngest to the oldest input that stands there: take the bitmap by OR; if the entry
//!    has the erase flag, all older inputs are void for the whole block, not only for this part.
//! 4. The result has the erase flag if any entry taken had it, for it may still shield older runs
//!    that take no part; it loses the flag when the oldest run takes part.
//! 5. A result without bits and flag is dropped.
//!
//! Part 0 is a block's first sub-entry and the only one with a flag, so step 3 knows a block's
//! erase before it meets the entries that the erase made void.

use super::buffer::Buffer;
use super::directory::{Directory, Run};
use super::format::{self, HEADER_BYTES, WORD_BYTES};
use super::packed::START;
use super::shape::{SLACK_BYTES, Shape};
use crate::contract::FtlError;
use crate::flash::Purpose;
use crate::validity::MetaStore;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

/// Where an input stands: sub-entry number × 2^32 + way × 2 + erase flag. The order of these is the
/// order in which entries are taken: by sub-entry, and of one sub-entry the youngest input's first.
type Head = u64;

/// The head of an input that has no more.
const EXHAUSTED: Head = Head::MAX;

fn head(key: u32, way: usize) -> Head {
    Head::from(key >> 1) << 32 | (way as Head) << 1 | Head::from(key & 1)
}

/// Takes the entries of a merge in ascending order.
pub(super) trait Sink<S> {
    /// Takes one.
    ///
    /// # Errors
    /// Those of the device; the merge ends.
    fn entry(&mut self, store: &mut S, directory: &mut Directory, key: u32, bitmap: &[u64]) -> Result<(), FtlError>;

    /// Pages it has programmed.
    fn programs(&self) -> u64 {
        0
    }
}

/// What a merge reads.
pub(super) struct Sources<'a> {
    pub shape: &'a Shape,
    /// The youngest input, if it takes part.
    pub buffer: Option<&'a Buffer>,
    /// How many of the youngest runs take part.
    pub runs: usize,
    /// What the reads are for.
    pub purpose: Purpose,
}

/// A run being read, a page at a time.
#[derive(Clone, Debug)]
struct Input {
    page: Box<[u8]>,
    run: Run,
    /// The page in `page`, by its index in the directory.
    index: usize,
    /// Where the entry at which it stands begins.
    at: usize,
    /// Where the entries of the page end; where the next one begins, if they are packed.
    end: usize,
    /// If they are packed: entries of the page not read yet, and the sub-entry and bitmap of the
    /// last that was.
    left: u32,
    id: u32,
    bitmap: Box<[u64]>,
}

/// The buffers of merges, made once.
#[derive(Clone, Debug)]
pub(super) struct Merger {
    inputs: Vec<Input>,
    /// Where the inputs stand, ascending. Way 0 is the buffer, way i is `inputs[i - 1]`.
    heads: Vec<Head>,
    /// The rank at which the buffer stands.
    rank: usize,
    /// The bitmap of the result under way.
    result: Box<[u64]>,
    /// Which of `inputs` is no input, but a page buffer for queries, if merges last longer than a
    /// report.
    scratch: Option<usize>,
    /// Inputs that stand at their first entry.
    opened: usize,
    /// Whether the oldest run takes part.
    oldest: bool,
    /// The block whose entries are being merged.
    block: u32,
    /// The youngest input that is void for it.
    void_from: usize,
    /// Pages read by this merge.
    loads: u64,
}

const NO_RUN: Run =
    Run { number: 0, start: 0, all_pages: 0, pages: 0, entries: 0, last_id: 0, flushes: 0, last_flush: 0 };

impl Merger {
    /// Room to merge so many runs and the buffer.
    pub fn new(shape: &Shape, runs: usize) -> Self {
        let page = vec![0; shape.device_page_bytes + SLACK_BYTES].into_boxed_slice();
        let unpacked = if shape.packing.is_some() { shape.bitmap_words } else { 0 };
        let bitmap = vec![0; unpacked].into_boxed_slice();
        let scratch = (shape.spread_ops > 0).then_some(runs);
        let inputs = runs + usize::from(scratch.is_some());
        Self {
            inputs: vec![Input { page, run: NO_RUN, index: 0, at: 0, end: 0, left: 0, id: 0, bitmap }; inputs],
            heads: Vec::with_capacity(runs + 1),
            rank: 0,
            result: vec![0; shape.bitmap_words].into_boxed_slice(),
            scratch,
            opened: 0,
            oldest: false,
            block: u32::MAX,
            void_from: usize::MAX,
            loads: 0,
        }
    }

    /// How many runs it can merge.
    pub fn ways(&self) -> usize {
        self.inputs.len() - usize::from(self.scratch.is_some())
    }

    /// A page buffer that no merge under way needs.
    pub fn scratch_page(&mut self) -> &mut [u8] {
        &mut self.inputs[self.scratch.unwrap_or(0)].page
    }

    /// Pages that the merge under way has read.
    pub fn loads(&self) -> u64 {
        self.loads
    }

    /// Bytes of RAM it holds.
    pub fn ram_bytes(&self) -> u64 {
        let pages: usize = self.inputs.iter().map(|input| input.page.len() + 8 * input.bitmap.len()).sum();
        (pages + self.inputs.capacity() * size_of::<Input>() + (self.heads.capacity() + self.result.len()) * 8) as u64
    }

    /// Merges into `sink`.
    ///
    /// # Errors
    /// Those of the device, and of `sink`.
    pub fn merge<S: MetaStore>(
        &mut self,
        store: &mut S,
        directory: &mut Directory,
        sources: &Sources<'_>,
        sink: &mut impl Sink<S>,
    ) -> Result<(), FtlError> {
        self.start(directory, sources);
        while self.open_next(store, directory, sources)? {}
        self.go_on(store, directory, sources, sink, u64::MAX).map(drop)
    }

    /// Steps 2 to 5 until every input is exhausted, or so many pages were read and programmed;
    /// whether every input is.
    ///
    /// # Errors
    /// Those of the device, and of `sink`; the merge cannot go on then.
    pub fn go_on<S: MetaStore>(
        &mut self,
        store: &mut S,
        directory: &mut Directory,
        sources: &Sources<'_>,
        sink: &mut impl Sink<S>,
        budget: u64,
    ) -> Result<bool, FtlError> {
        debug_assert!(self.opened == sources.runs && self.heads.len() == sources.runs + 1, "an input is not open");
        let end = (self.loads + sink.programs()).saturating_add(budget);
        if self.result.len() == 1 {
            self.run::<S, 1>(store, directory, sources, sink, end)
        } else {
            self.run::<S, 0>(store, directory, sources, sink, end)
        }
    }

    /// As [`Merger::go_on`] until so many pages were read and programmed in all, for bitmaps of so
    /// many words, or any number if 0.
    fn run<S: MetaStore, const WORDS: usize>(
        &mut self,
        store: &mut S,
        directory: &mut Directory,
        sources: &Sources<'_>,
        sink: &mut impl Sink<S>,
        end: u64,
    ) -> Result<bool, FtlError> {
        let words = if WORDS == 0 { self.result.len() } else { WORDS };
        let (oldest, mut block, mut void_from) = (self.oldest, self.block, self.void_from);
        while self.heads[0] != EXHAUSTED && self.loads + sink.programs() < end {
            let id = (self.heads[0] >> 32) as u32;
            if id >> sources.shape.part_bits != block {
                debug_assert!(
                    block == u32::MAX || id >> sources.shape.part_bits > block,
                    "entries of block {block} are apart"
                );
                block = id >> sources.shape.part_bits;
                void_from = usize::MAX;
            }
            self.result[..words].fill(0);
            let mut flag = false;
            while self.heads[0] >> 32 == Head::from(id) {
                let way = (self.heads[0] as u32 >> 1) as usize;
                if way < void_from {
                    self.take(way, words, sources);
                    if self.heads[0] & 1 != 0 {
                        flag = true;
                        void_from = way + 1;
                    }
                }
                self.advance(store, directory, way, sources)?;
            }
            flag &= !oldest;
            if flag || self.result[..words].iter().any(|&word| word != 0) {
                sink.entry(store, directory, id << 1 | u32::from(flag), &self.result[..words])?;
            }
        }
        (self.block, self.void_from) = (block, void_from);
        Ok(self.heads[0] == EXHAUSTED)
    }

    /// Begins a merge of the youngest runs.
    pub fn start(&mut self, directory: &Directory, sources: &Sources<'_>) {
        debug_assert!(sources.runs <= self.ways(), "more runs than merge buffers");
        self.rank = 0;
        self.heads.clear();
        self.heads.push(sources.buffer.and_then(|buffer| buffer.sorted(0)).map_or(EXHAUSTED, |(key, _)| head(key, 0)));
        for (input, run) in self.inputs.iter_mut().zip(directory.runs().iter().rev().take(sources.runs)) {
            (input.run, input.index) = (*run, run.start as usize);
        }
        self.oldest = sources.runs == directory.runs().len();
        (self.opened, self.loads, self.block, self.void_from) = (0, 0, u32::MAX, usize::MAX);
    }

    /// Puts the next input at its first entry; `false` if all are there.
    ///
    /// # Errors
    /// Those of the device.
    pub fn open_next<S: MetaStore>(
        &mut self,
        store: &mut S,
        directory: &Directory,
        sources: &Sources<'_>,
    ) -> Result<bool, FtlError> {
        if self.opened == sources.runs {
            self.heads.sort_unstable();
            return Ok(false);
        }
        let head = self.inputs[self.opened].load(store, directory, self.opened + 1, sources)?;
        self.heads.push(head);
        self.opened += 1;
        self.loads += 1;
        Ok(true)
    }

    /// ORs the entry at which an input stands into the result.
    #[inline(always)]
    fn take(&mut self, way: usize, words: usize, sources: &Sources<'_>) {
        debug_assert!(way <= sources.runs && words == self.result.len());
        if way > 0 && sources.shape.packing.is_some() {
            let bitmap = &self.inputs[way - 1].bitmap;
            self.result[..words].iter_mut().zip(bitmap).for_each(|(word, more)| *word |= more);
            return;
        }
        let (bytes, at) = match (way, sources.buffer) {
            (0, Some(buffer)) => (buffer.bitmaps(), buffer.sorted(self.rank).map_or(0, |(_, at)| at)),
            _ => (&*self.inputs[way - 1].page, self.inputs[way - 1].at + WORD_BYTES),
        };
        for (index, word) in self.result[..words].iter_mut().enumerate() {
            *word |= sources.shape.bitmap_word(bytes, at, index);
        }
    }

    /// Moves the first input to its next entry, and to its place among the others.
    #[inline(always)]
    fn advance<S: MetaStore>(
        &mut self,
        store: &mut S,
        directory: &Directory,
        way: usize,
        sources: &Sources<'_>,
    ) -> Result<(), FtlError> {
        let next = if way == 0 {
            self.rank += 1;
            sources.buffer.and_then(|buffer| buffer.sorted(self.rank)).map_or(EXHAUSTED, |(key, _)| head(key, 0))
        } else {
            let input = &mut self.inputs[way - 1];
            match input.next(sources.shape) {
                Some(key) => head(key, way),
                None => {
                    input.index += 1;
                    self.loads += 1;
                    input.load(store, directory, way, sources)?
                }
            }
        };
        // Most entries are in the largest run, whose next entry is near: few steps.
        let mut place = 0;
        while place + 1 < self.heads.len() && self.heads[place + 1] < next {
            self.heads[place] = self.heads[place + 1];
            place += 1;
        }
        self.heads[place] = next;
        Ok(())
    }
}

impl Input {
    /// Reads the page at `index`, if the run has it, and stands at its first entry.
    fn load<S: MetaStore>(
        &mut self,
        store: &mut S,
        directory: &Directory,
        way: usize,
        sources: &Sources<'_>,
    ) -> Result<Head, FtlError> {
        if self.run.entries == 0 || self.index >= (self.run.start + self.run.pages) as usize {
            return Ok(EXHAUSTED);
        }
        directory.fetch(store, sources.purpose, &self.run, self.index, &mut self.page)?;
        let count = format::count(&self.page);
        if sources.shape.packing.is_some() {
            (self.end, self.left, self.id) = (HEADER_BYTES, count, START);
            return Ok(self.next(sources.shape).map_or(EXHAUSTED, |key| head(key, way)));
        }
        self.at = HEADER_BYTES;
        self.end = HEADER_BYTES + count as usize * sources.shape.entry_bytes;
        Ok(head(format::get_u32(&self.page, self.at), way))
    }

    /// Goes to the next entry of the page; its key, or `None` if there is no more.
    #[inline(always)]
    fn next(&mut self, shape: &Shape) -> Option<u32> {
        let Some(packing) = shape.packing else {
            self.at += shape.entry_bytes;
            return (self.at < self.end).then(|| format::get_u32(&self.page, self.at));
        };
        self.left = self.left.checked_sub(1)?;
        let entry = packing.get(&self.page, self.end, self.id, &mut self.bitmap);
        (self.end, self.id) = (entry.end, entry.key >> 1);
        Some(entry.key)
    }
}
