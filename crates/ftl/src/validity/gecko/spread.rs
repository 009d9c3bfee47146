//! Merges that are spread over reports, so that no report waits for a whole one (beyond the paper;
//! compare bLSM's gears).
//!
//! 1. *Flush*: the buffer becomes a run by itself. What was reported is durable as soon as in a
//!    merge that is done at once, for the pages of one buffer.
//! 2. A flush that someone asks for leaves the buffer as it is while a block still finds room in
//!    it. The run is *partial*: the next flush says all of it again, and takes its place. So runs
//!    do not become many, however often a flush is asked for.
//! 3. *Begin*: after a flush that empties the buffer, the youngest runs that would meet are merged
//!    many ways. The youngest of all is among them, so that numbers of runs rise with their age.
//! 4. *Pay*: each report that takes a new entry of the buffer has some pages read and programmed.
//!    What one report did too much, the next ones do less. A flush meanwhile adds a younger run.
//! 5. *Announce*: the next flush names the complete run instead of its inputs. Only then do these
//!    die. Before, a mount finds the inputs alive and drops the run, complete or not. If no flush
//!    came since it was begun, a complete run has the highest number: a mount takes it, and its
//!    inputs are dead.
//! 6. So many runs may wait that a merge of everything ends before there are more. Where more wait
//!    all the same, after mounts that were cut short, a merge is done at once.

use super::Gecko;
use super::directory::Under;
use super::flush::Filtered;
use super::merge::Sources;
use super::shape::Shape;
use super::writer::{Coverage, Merged, Writer};
use crate::contract::FtlError;
use crate::flash::Purpose;
use crate::validity::MetaStore;

/// What spreading needs beside what every merge needs.
#[derive(Clone, Debug)]
pub(super) struct Spread {
    /// Writes the output of the merge; flushes have a writer of their own.
    writer: Writer,
    merge: Option<Merge>,
    /// The youngest run holds nothing that the buffer does not.
    partial: bool,
    /// Pages that reports have paid for; below 0 if they did more.
    credit: i64,
}

/// A merge under way, or complete and not announced.
#[derive(Clone, Copy, Debug)]
struct Merge {
    /// Its oldest input, by its place among the live runs.
    first: usize,
    inputs: usize,
    coverage: Coverage,
    /// Its bit in the filter.
    bit: u16,
    stage: Stage,
}

/// How far a merge is.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Open,
    Entries,
    Postamble,
    Complete(Merged),
}

impl Spread {
    pub fn new(shape: &Shape) -> Self {
        Self { writer: Writer::new(shape, Under::Spread), merge: None, partial: false, credit: 0 }
    }

    /// Whether reports have to pay.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.merge.is_some_and(|merge| !matches!(merge.stage, Stage::Complete(_)))
    }

    /// Whether the buffer says all that the youngest run says.
    pub const fn is_partial(&self) -> bool {
        self.partial
    }

    fn complete(&self) -> Option<Merged> {
        match self.merge?.stage {
            Stage::Complete(merged) => Some(merged),
            _ => None,
        }
    }

    /// Bytes of RAM it holds.
    pub fn ram_bytes(&self) -> u64 {
        self.writer.ram_bytes()
    }
}

impl Gecko {
    /// A report about a sub-entry does its share of the merge under way, if it takes a new entry.
    /// The flush that makes room for it comes first: it must not claim to know more than before the
    /// report.
    ///
    /// # Errors
    /// Those of the device; a merge that failed is given up, and begun anew after the next flush.
    pub(super) fn pay<S: MetaStore>(&mut self, store: &mut S, id: u32) -> Result<(), FtlError> {
        if self.buffer.has(id) {
            return Ok(());
        }
        if self.buffer.room() == 0 {
            self.flush_alone(store, true)?;
        }
        let Some(spread) = &mut self.spread else { return Ok(()) };
        spread.credit += i64::from(self.shape.spread_ops);
        let credit = spread.credit;
        if credit > 0 {
            let spent = self.go_on(store, credit as u64)?;
            if let Some(spread) = &mut self.spread {
                spread.credit = if spread.is_due() { credit - spent as i64 } else { 0 };
            }
        }
        Ok(())
    }

    /// Reads and programs so many pages for the merge under way, or a few more: an entry can be the
    /// last of a page of every input. How many it were.
    fn go_on<S: MetaStore>(&mut self, store: &mut S, budget: u64) -> Result<u64, FtlError> {
        let mut spent = 0;
        while spent < budget && self.spread.as_ref().is_some_and(Spread::is_due) {
            match self.step(store, budget - spent) {
                Ok(pages) => spent += pages,
                Err(error) => {
                    self.give_up_merge(store);
                    return Err(error);
                }
            }
        }
        Ok(spent)
    }

    /// A step of the merge under way; how many pages it read and programmed.
    fn step<S: MetaStore>(&mut self, store: &mut S, budget: u64) -> Result<u64, FtlError> {
        let Self { shape, spread: Some(Spread { writer, merge: Some(merge), .. }), directory, merger, filter, .. } =
            self
        else {
            return Ok(0);
        };
        let sources = Sources { shape, buffer: None, runs: merge.inputs, purpose: Purpose::Validity };
        match merge.stage {
            Stage::Open => {
                let opened = merger.open_next(store, directory, &sources)?;
                if !opened {
                    merge.stage = Stage::Entries;
                }
                Ok(u64::from(opened))
            }
            Stage::Entries => {
                let mut sink = Filtered { writer, filter, bit: merge.bit, part_bits: shape.part_bits };
                let before = merger.loads() + sink.writer.programs();
                if merger.go_on(store, directory, &sources, &mut sink, budget)? {
                    sink.writer.begin_tail();
                    merge.stage = Stage::Postamble;
                }
                Ok(merger.loads() + writer.programs() - before)
            }
            Stage::Postamble => {
                if let Some(run) = writer.finish_page(store, directory, shape, &merge.coverage)? {
                    merge.stage = Stage::Complete(Merged { run, first: merge.first, inputs: merge.inputs });
                }
                Ok(1)
            }
            Stage::Complete(_) => Ok(0),
        }
    }

    /// Forgets the merge under way; its inputs live on.
    fn give_up_merge<S: MetaStore>(&mut self, store: &mut S) {
        self.directory.abandon_aside(|ppn| store.discard(ppn));
        if let Some(spread) = &mut self.spread {
            (spread.merge, spread.credit) = (None, 0);
        }
        self.forget_filters();
    }

    /// Begins to merge the youngest runs, if some would meet.
    fn begin_merge(&mut self) -> Result<(), FtlError> {
        let inputs = self.meeting();
        debug_assert!(self.spread.as_ref().is_some_and(|spread| !spread.partial), "the youngest run is to be replaced");
        if inputs < 2 || self.spread.as_ref().is_none_or(|spread| spread.merge.is_some()) {
            return Ok(());
        }
        let number = self.take_number()?;
        let all = self.directory.runs();
        let first = all.len() - inputs;
        debug_assert!(all.last().is_some_and(|youngest| youngest.number < number), "run {number} is no new one");
        let entries = all[first..].iter().map(|run| u64::from(run.entries)).sum();
        let coverage = Coverage {
            flushes: all[first..].iter().fold(0, |sum, run| sum.wrapping_add(run.flushes)),
            last_flush: self.flushes,
            flush_seq: self.flush_seq,
            older: first,
            merged: None,
        };
        let bit = self.filter.begin(number, entries);
        let sources = Sources { shape: &self.shape, buffer: None, runs: inputs, purpose: Purpose::Validity };
        self.merger.start(&self.directory, &sources);
        self.directory.begin_aside(number);
        if let Some(spread) = &mut self.spread {
            spread.writer.begin(number);
            spread.merge = Some(Merge { first, inputs, coverage, bit, stage: Stage::Open });
            spread.credit = 0;
        }
        Ok(())
    }

    /// How many of the youngest runs a merge must take in so that every level has at most one run
    /// after it.
    fn meeting(&self) -> usize {
        let runs = self.directory.runs();
        if self.directory.young_pages() > self.shape.full_run_pages {
            return runs.len();
        }
        let unsettled = self.directory.unsettled(&self.shape);
        let (mut entries, mut count) = (0, 0);
        for run in runs.iter().rev() {
            let level = self.shape.level_of(u64::from(run.entries));
            if count > 0 && count >= unsettled && self.shape.level_of(entries) < level {
                break;
            }
            entries += u64::from(run.entries);
            count += 1;
        }
        count
    }

    /// Sees to it that one more run may wait.
    fn make_room<S: MetaStore>(&mut self, store: &mut S) -> Result<(), FtlError> {
        let Some(spread) = &self.spread else { return Ok(()) };
        let gained = spread.complete().map_or(0, |merged| merged.inputs - 1);
        if spread.partial || self.directory.runs().len() < self.shape.runs_max() + gained {
            return Ok(());
        }
        self.begin_merge()?;
        self.go_on(store, u64::MAX).map(drop)
    }

    /// Writes the buffer out as a run, and announces a merge that is complete. `empties` if the
    /// buffer is to be empty then.
    ///
    /// # Errors
    /// Those of the device. Nothing that was reported has changed then.
    #[cold]
    pub(super) fn flush_alone<S: MetaStore>(&mut self, store: &mut S, empties: bool) -> Result<(), FtlError> {
        let flush_seq = self.held_seq.unwrap_or(store.reported_seq());
        self.make_room(store)?;
        let Some(spread) = &self.spread else { return Ok(()) };
        let (partial, merged) = (usize::from(spread.partial), spread.complete());
        debug_assert!(flush_seq >= self.flush_seq, "a flush claims to know less than the one before");
        let all = self.directory.runs();
        let coverage = Coverage {
            flushes: all[all.len() - partial..].iter().fold(1, |sum, run| sum.wrapping_add(run.flushes)),
            last_flush: self.flushes + 1,
            flush_seq,
            older: all.len() - partial - merged.map_or(0, |merged| merged.inputs - 1),
            merged,
        };
        self.buffer.sort();
        let number = self.take_number()?;
        self.writer.begin(number);
        let bit = self.filter.begin(number, self.buffer.sorted_len() as u64);
        match self.write_buffer(store, bit, &coverage) {
            Ok(run) => self.directory.complete(run, partial, |ppn| store.discard(ppn)),
            Err(error) => {
                self.directory.abandon(|ppn| store.discard(ppn));
                self.forget_filters();
                return Err(error);
            }
        }
        if let Some(Merged { run, first, inputs }) = merged {
            self.directory.announce(run, first, inputs, |ppn| store.discard(ppn));
        }
        if let Some(spread) = &mut self.spread {
            spread.partial = !empties;
            spread.merge = spread.merge.filter(|_| merged.is_none());
        }
        self.forget_filters();
        self.flushes += 1;
        self.flush_seq = flush_seq;
        self.unsaved = false;
        if empties {
            self.buffer.clear();
            self.begin_merge()?;
        }
        Ok(())
    }

    /// Writes the run that the buffer makes.
    fn write_buffer<S: MetaStore>(
        &mut self,
        store: &mut S,
        bit: u16,
        coverage: &Coverage,
    ) -> Result<super::directory::Run, FtlError> {
        let Self { shape, buffer, directory, writer, filter, bitmap, .. } = self;
        let mut sink = Filtered { writer, filter, bit, part_bits: shape.part_bits };
        for rank in 0..buffer.sorted_len() {
            let Some((key, at)) = buffer.sorted(rank) else { break };
            for (word, value) in bitmap.iter_mut().enumerate() {
                *value = shape.bitmap_word(buffer.bitmaps(), at, word);
            }
            super::merge::Sink::entry(&mut sink, store, directory, key, bitmap)?;
        }
        writer.finish(store, directory, shape, coverage)
    }

    /// Makes durable what was reported. The buffer is emptied only if a block might not find room
    /// in it.
    pub(super) fn flush_spread<S: MetaStore>(&mut self, store: &mut S) -> Result<(), FtlError> {
        if self.unsaved { self.flush_alone(store, self.buffer.room() < self.shape.partitions) } else { Ok(()) }
    }
}
