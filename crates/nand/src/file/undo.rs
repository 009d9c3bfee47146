//! Undoing what the death of a host left in part.

use super::error::FileError;
use super::layout::{BlockRecord, Decoded, FlagSlot, OPS_END, RECORD_BYTES, Record};
use super::medium::Medium;
use super::open::unread;
use super::{FileNand, UNANCHORED_MAX};
use crate::addr::{BlockId, Ppn};
use crate::laws::BlockState;
use std::io;
use std::sync::Arc;
use std::vec;
use std::vec::Vec;

impl<M: Medium> FileNand<M> {
    /// Finds the first operation after the anchor that is missing or in part, and undoes all from
    /// there on.
    pub(super) fn undo_the_unsound(devices: &mut [Self]) -> Result<(), FileError> {
        let Some(journal) = devices.first().map(|device| Arc::clone(&device.journal)) else { return Ok(()) };
        debug_assert!(journal.anchored() + UNANCHORED_MAX < OPS_END);
        let mut found = Found { first: journal.anchored() + 1, there: vec![false; UNANCHORED_MAX as usize] };
        let touched = devices.iter_mut().map(|device| device.look(&mut found)).collect::<Result<Vec<_>, _>>()?;
        let sound = found.there.iter().take_while(|there| **there).count() as u64;
        let end = found.first + sound;
        debug_assert!(end > journal.anchored() && end < OPS_END);
        // Told once of all devices.
        devices[0].opening.undone = found.there[sound as usize..].iter().filter(|there| **there).count() as u64;
        for (device, pages) in devices.iter_mut().zip(touched) {
            device.undo(&pages, end).map_err(|source| FileError::io("written", source))?;
        }
        journal.ends_at(end - 1);
        Ok(())
    }

    /// Notes which operations after the anchor are there and whole, and answers on which pages one
    /// of them was done, whole or not.
    fn look(&mut self, found: &mut Found) -> Result<Vec<Ppn>, FileError> {
        for block in &self.blocks {
            found.note(block.record.erased);
            found.note(block.record.bad);
        }
        let mut pages = Vec::new();
        self.for_each_record(|device, ppn, record| {
            let Some(record) = record else { return Ok(()) };
            let latest = record.op.max(record.newest().op);
            if latest < found.first {
                return Ok(());
            }
            if latest >= found.first + UNANCHORED_MAX {
                return Err(FileError::Malformed { what: "the number of an operation on a page", found: latest });
            }
            pages.push(ppn);
            if record.op < found.first || device.is_whole(ppn, &record)? {
                found.note(record.op);
                record.slots.iter().for_each(|slot| found.note(slot.op));
            }
            Ok(())
        })?;
        Ok(pages)
    }

    /// Takes back what operations from `end` on did to these pages and to blocks.
    fn undo(&mut self, pages: &[Ppn], end: u64) -> io::Result<()> {
        for ppn in pages {
            self.undo_page(*ppn, end)?;
        }
        (0..self.layout.geometry.blocks()).try_for_each(|block| self.undo_block(BlockId(block), end))
    }

    /// Whether the data of a page match its record.
    fn is_whole(&mut self, ppn: Ppn, record: &Record) -> Result<bool, FileError> {
        let geometry = &self.layout.geometry;
        if record.length > geometry.page_bytes() {
            return Ok(false);
        }
        let data = &mut self.page[..record.length as usize];
        let at = self.layout.data(geometry.block_of(ppn), geometry.offset_of(ppn));
        self.medium.read_at(at, data).map_err(unread)?;
        Ok(crc32fast::hash(data) == record.check)
    }

    /// Takes back what operations from `end` on did to a page.
    fn undo_page(&mut self, ppn: Ppn, end: u64) -> io::Result<()> {
        let geometry = &self.layout.geometry;
        let at = self.layout.record(geometry.block_of(ppn), geometry.offset_of(ppn));
        let mut bytes = [0; RECORD_BYTES];
        self.medium.read_at(at, &mut bytes)?;
        let Decoded::Programmed(mut record) = Record::decode(&bytes, ppn) else { return Ok(()) };
        if record.op >= end {
            return self.medium.write_at(at, &[0; RECORD_BYTES]);
        }
        for slot in record.slots.iter_mut().filter(|slot| slot.op >= end) {
            *slot = FlagSlot::default();
        }
        debug_assert!(record.op < end && record.newest().op < end, "{ppn} keeps what was undone");
        self.medium.write_at(at, &record.encode(ppn))
    }

    /// Takes back what operations from `end` on did to a block.
    fn undo_block(&mut self, block: BlockId, end: u64) -> io::Result<()> {
        let known = &mut self.blocks[block.index()];
        let mut record = known.record;
        if record.bad >= end {
            record.bad = 0;
            known.state = BlockState::default();
        }
        if record.erased >= end {
            let erase_count = record.erase_count.saturating_sub(1);
            record = BlockRecord { erase_count, erased: record.before, before: 0, ..record };
        }
        if record == known.record {
            return Ok(());
        }
        debug_assert!(record.bad < end && record.erased < end, "{block} keeps what was undone");
        known.record = record;
        self.medium.write_at(self.layout.block(block), &record.encode(block))
    }
}

/// The operations found after the anchor.
struct Found {
    /// The first of them.
    first: u64,
    /// Whether each is there, from the first on.
    there: Vec<bool>,
}

impl Found {
    fn note(&mut self, op: u64) {
        if let Some(there) = op.checked_sub(self.first).and_then(|at| self.there.get_mut(at as usize)) {
            *there = true;
        }
    }
}
