//! Merging the buffer and runs in one linear pass (section 3.1, Algorithm 3, Appendix A), any number of ways.
//!
//! 1. Each input stands at its smallest key; the inputs are in order of age, youngest first.
//! 2. The smallest sub-entry number among them is next. If it opens a new block, nothing of that block is void yet.
//! 3. From the youngest to the oldest input that stands there: take the bitmap by OR; if the
//!    entry has the erase flag, all older inputs are void for the whole block, not only for this part.
//! 4. The result has the erase flag if any entry taken had it, for it may still shield older runs
//!    that take no part; it loses the flag when the oldest run takes part.
//! 5. A result without bits and flag is dropped.
//!
//! Part 0 is a block's first sub-entry and the only one with a flag, so step 3 knows a block's erase
//! before it meets the entries that the erase made void.

use super::buffer::Buffer;
use super::directory::{Directory, Run};
use super::format::{self, HEADER_BYTES};
use super::shape::Shape;
use crate::contract::FtlError;
use crate::flash::Purpose;
use crate::validity::MetaStore;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

/// The key at which an exhausted input stands.
const EXHAUSTED: u32 = u32::MAX;

/// Takes the entries of a merge in ascending order.
pub(super) trait Sink<S> {
    /// Takes one.
    ///
    /// # Errors
    /// Those of the device; the merge ends.
    fn entry(&mut self, store: &mut S, directory: &mut Directory, key: u32, bitmap: &[u8]) -> Result<(), FtlError>;
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
    /// Where the entries of the page end.
    end: usize,
}

/// The buffers of merges, made once.
#[derive(Clone, Debug)]
pub(super) struct Merger {
    inputs: Vec<Input>,
    /// The key at which each input stands: the buffer, then `inputs`.
    heads: Vec<u32>,
    /// The rank at which the buffer stands.
    rank: usize,
    /// The bitmap of the result under way.
    result: Box<[u8]>,
}

const NO_RUN: Run =
    Run { number: 0, start: 0, all_pages: 0, pages: 0, entries: 0, last_id: 0, flushes: 0, last_flush: 0 };

impl Merger {
    /// Room to merge so many runs and the buffer.
    pub fn new(shape: &Shape, runs: usize) -> Self {
        let page = vec![0; shape.device_page_bytes].into_boxed_slice();
        Self {
            inputs: vec![Input { page, run: NO_RUN, index: 0, at: 0, end: 0 }; runs],
            heads: Vec::with_capacity(runs + 1),
            rank: 0,
            result: vec![0; shape.bitmap_bytes].into_boxed_slice(),
        }
    }

    /// How many runs it can merge.
    pub fn ways(&self) -> usize {
        self.inputs.len()
    }

    /// A page's worth of RAM that is free between merges.
    pub fn scratch(&mut self) -> &mut [u8] {
        &mut self.inputs[0].page
    }

    /// Bytes of RAM it holds.
    pub fn ram_bytes(&self) -> u64 {
        let pages: usize = self.inputs.iter().map(|input| input.page.len()).sum();
        (pages + self.inputs.capacity() * size_of::<Input>() + self.heads.capacity() * 4 + self.result.len()) as u64
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
        self.open(store, directory, sources)?;
        let oldest = sources.runs == directory.runs().len();
        let (mut block, mut void_from) = (u32::MAX, usize::MAX);
        loop {
            let next = self.heads.iter().copied().min().unwrap_or(EXHAUSTED);
            if next == EXHAUSTED {
                return Ok(());
            }
            let id = next >> 1;
            if id >> sources.shape.part_bits != block {
                block = id >> sources.shape.part_bits;
                void_from = usize::MAX;
            }
            self.result.fill(0);
            let mut flag = false;
            for way in 0..self.heads.len() {
                let key = self.heads[way];
                if key >> 1 != id {
                    continue;
                }
                if way < void_from {
                    self.take(way, sources);
                    if key & 1 != 0 {
                        flag = true;
                        void_from = way + 1;
                    }
                }
                self.advance(store, directory, way, sources)?;
            }
            flag &= !oldest;
            if flag || self.result.iter().any(|&byte| byte != 0) {
                sink.entry(store, directory, id << 1 | u32::from(flag), &self.result)?;
            }
        }
    }

    /// Puts every input at its first entry.
    fn open<S: MetaStore>(
        &mut self,
        store: &mut S,
        directory: &Directory,
        sources: &Sources<'_>,
    ) -> Result<(), FtlError> {
        self.rank = 0;
        self.heads.clear();
        self.heads.push(sources.buffer.and_then(|buffer| buffer.sorted(0)).map_or(EXHAUSTED, |(key, _)| key));
        for (input, run) in self.inputs.iter_mut().zip(directory.runs().iter().rev().take(sources.runs)) {
            (input.run, input.index) = (*run, run.start as usize);
            self.heads.push(input.load(store, directory, sources)?);
        }
        debug_assert_eq!(self.heads.len(), sources.runs + 1, "more runs than merge buffers");
        Ok(())
    }

    /// ORs the entry at which an input stands into the result.
    #[inline]
    fn take(&mut self, way: usize, sources: &Sources<'_>) {
        let bitmap = match (way, sources.buffer) {
            (0, Some(buffer)) => buffer.sorted(self.rank).map_or(&[][..], |(_, bitmap)| bitmap),
            (0, None) => &[],
            _ => {
                let input = &self.inputs[way - 1];
                &input.page[input.at + 4..input.at + sources.shape.entry_bytes]
            }
        };
        for (byte, more) in self.result.iter_mut().zip(bitmap) {
            *byte |= more;
        }
    }

    /// Moves an input to its next entry.
    #[inline]
    fn advance<S: MetaStore>(
        &mut self,
        store: &mut S,
        directory: &Directory,
        way: usize,
        sources: &Sources<'_>,
    ) -> Result<(), FtlError> {
        self.heads[way] = if way == 0 {
            self.rank += 1;
            sources.buffer.and_then(|buffer| buffer.sorted(self.rank)).map_or(EXHAUSTED, |(key, _)| key)
        } else {
            let input = &mut self.inputs[way - 1];
            input.at += sources.shape.entry_bytes;
            if input.at < input.end {
                format::get_u32(&input.page, input.at)
            } else {
                input.index += 1;
                input.load(store, directory, sources)?
            }
        };
        Ok(())
    }
}

impl Input {
    /// Reads the page at `index`, if the run has it, and stands at its first entry.
    fn load<S: MetaStore>(
        &mut self,
        store: &mut S,
        directory: &Directory,
        sources: &Sources<'_>,
    ) -> Result<u32, FtlError> {
        if self.run.entries == 0 || self.index >= (self.run.start + self.run.pages) as usize {
            return Ok(EXHAUSTED);
        }
        directory.fetch(store, sources.purpose, &self.run, self.index, &mut self.page)?;
        self.at = HEADER_BYTES;
        self.end = HEADER_BYTES + format::count(&self.page) as usize * sources.shape.entry_bytes;
        Ok(format::get_u32(&self.page, self.at))
    }
}
