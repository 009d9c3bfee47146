//! When which runs are merged (section 3, Appendix A).
//!
//! 1. The buffer counts as the youngest run, of level 0. A run takes part if what has been gathered
//!    so far would land in its level or above; its entries are added, and the next older run is
//!    tried.
//! 2. If the runs younger than the oldest would hold more than a full run, all take part.
//! 3. Merging many ways does this in one merge. Merging two ways first merges the buffer with the
//!    youngest run, then always the two youngest runs, until the same runs have become one.
//! 4. A cascade of two-way merges that power loss cut short can leave a run of a level that an
//!    older one has. The next flush takes both in.
//!
//! What would land where is foreseen from entries, not counted after the merge: otherwise a run
//! that collisions keep just short of the next level is rewritten for ever and never promoted.
//!
//! Every merge has the youngest run or the buffer in it, so the run written last is always the
//! youngest.
//!
//! Merges that are spread over reports are another matter: `spread`.

use super::Gecko;
use super::directory::Directory;
use super::filter::Filter;
use super::format::RUN_END;
use super::merge::{Sink, Sources};
use super::shape::unsupported;
use super::writer::{Coverage, Writer};
use crate::contract::FtlError;
use crate::flash::Purpose;
use crate::validity::MetaStore;
use alloc::string::ToString;
use nand::BlockId;

impl Gecko {
    /// Writes the buffer out, and merges.
    ///
    /// # Errors
    /// Those of the device. If the buffer could not be written, nothing has changed; if a later
    /// merge failed, the buffer is on flash and the next flush merges again.
    #[cold]
    pub(super) fn flush_buffer<S: MetaStore>(&mut self, store: &mut S) -> Result<(), FtlError> {
        let flush_seq = self.held_seq.unwrap_or(store.reported_seq());
        debug_assert!(flush_seq >= self.flush_seq, "a flush claims to know less than the one before");
        self.buffer.sort();
        let participants = self.participants();
        debug_assert!(participants <= self.directory.runs().len());
        let at_once = if self.shape.multi_way { participants } else { participants.min(1) };
        self.merge_youngest(store, at_once, Some(flush_seq))?;
        self.buffer.clear();
        self.flushes += 1;
        self.flush_seq = flush_seq;
        for _ in at_once..participants {
            self.merge_youngest(store, 2, None)?;
        }
        Ok(())
    }

    /// How many of the youngest runs a merge of the buffer must take in so that every level has at
    /// most one run after it.
    fn participants(&self) -> usize {
        let runs = self.directory.runs();
        if self.directory.young_pages() + self.shape.buffer_pages > self.shape.full_run_pages {
            return runs.len();
        }
        let unsettled = self.directory.unsettled(&self.shape);
        let mut entries = self.buffer.sorted_len() as u64;
        let mut count = 0;
        for run in runs.iter().rev() {
            let level = self.shape.level_of(entries);
            if count >= unsettled && level < self.shape.level_of(u64::from(run.entries)) {
                break;
            }
            entries += u64::from(run.entries);
            count += 1;
        }
        count
    }

    /// Merges so many of the youngest runs, and the buffer if a flush is under way that began at
    /// `flush_seq`.
    fn merge_youngest<S: MetaStore>(
        &mut self,
        store: &mut S,
        runs: usize,
        flush_seq: Option<u64>,
    ) -> Result<(), FtlError> {
        let number = self.take_number()?;
        self.writer.begin(number);
        let all = self.directory.runs();
        debug_assert!(all.iter().all(|run| run.number < number), "run {number} is no new one");
        let entries: u64 = all[all.len() - runs..].iter().map(|run| u64::from(run.entries)).sum();
        debug_assert!(runs > 0 || flush_seq.is_some(), "nothing is merged");
        let buffered = if flush_seq.is_some() { self.buffer.sorted_len() as u64 } else { 0 };
        let bit = self.filter.begin(number, entries + buffered);
        let merged = all[all.len() - runs..].iter().fold(0_u32, |sum, run| sum.wrapping_add(run.flushes));
        let coverage = Coverage {
            flushes: merged.wrapping_add(u32::from(flush_seq.is_some())),
            last_flush: self.flushes + u64::from(flush_seq.is_some()),
            flush_seq: flush_seq.unwrap_or(self.flush_seq),
            older: all.len() - runs,
            merged: None,
        };
        let sources = Sources {
            shape: &self.shape,
            buffer: flush_seq.is_some().then_some(&self.buffer),
            runs,
            purpose: Purpose::Validity,
        };
        let mut sink =
            Filtered { writer: &mut self.writer, filter: &mut self.filter, bit, part_bits: self.shape.part_bits };
        let written = self
            .merger
            .merge(store, &mut self.directory, &sources, &mut sink)
            .and_then(|()| self.writer.finish(store, &mut self.directory, &self.shape, &coverage));
        match written {
            Ok(run) => self.directory.complete(run, runs, |ppn| store.discard(ppn)),
            Err(error) => {
                self.directory.abandon(|ppn| store.discard(ppn));
                self.forget_filters();
                return Err(error);
            }
        }
        self.forget_filters();
        Ok(())
    }

    /// The number of a run that is begun.
    pub(super) fn take_number(&mut self) -> Result<u64, FtlError> {
        if self.next_run >= RUN_END {
            return Err(unsupported("all run numbers are used up; format it anew".to_string()));
        }
        self.next_run += 1;
        Ok(self.next_run - 1)
    }

    /// Frees the filter bits of runs that are no more.
    pub(super) fn forget_filters(&mut self) {
        let directory = &self.directory;
        self.filter.retain(|number| directory.has(number));
    }
}

/// Writes entries, and notes whose they are.
pub(super) struct Filtered<'a> {
    pub writer: &'a mut Writer,
    pub filter: &'a mut Filter,
    /// The run's bit in the filter.
    pub bit: u16,
    pub part_bits: u32,
}

impl<S: MetaStore> Sink<S> for Filtered<'_> {
    #[inline(always)]
    fn entry(&mut self, store: &mut S, directory: &mut Directory, key: u32, bitmap: &[u64]) -> Result<(), FtlError> {
        self.filter.add(self.bit, BlockId(key >> 1 >> self.part_bits));
        self.writer.entry(store, directory, key, bitmap)
    }

    #[inline(always)]
    fn programs(&self) -> u64 {
        self.writer.programs()
    }
}
