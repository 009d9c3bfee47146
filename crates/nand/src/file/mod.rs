//! A device in a file: every byte, every law, and what a power cut may leave, in a file of the host
//! that is written in place.
//!
//! # What is promised
//! - **The process dies** (`kill -9`, a panic): opened again, the device is as it was after the
//!   last completed operation, or after the one that was under way.
//! - **The host dies**: opened again, the device is as it was after some operation, none of those
//!   before the last sync missing ([`Syncer::sync`], [`FileNand::close`]). This is a power cut of
//!   [`crate::Nand`]: no operation is there without all those before it. It takes a disk that keeps
//!   what was synced, and that writes a sector of 512 bytes whole or not at all.
//! - **The host fails** (its disk is full, or reports an error): the operation is not done, and no
//!   program, erase or mark is accepted afterwards ([`crate::NandError::Host`]).
//! - **The file is damaged**: a page whose bytes do not match their check value is uncorrectable.
//!
//! # How
//! 1. Programs, erases, marks and settings of flags are numbered without a gap. The number stands
//!    in what each of them writes last: the record of its page, or that of its block.
//! 2. A page counts if its number is above that of its block's last erase. So an erase is one write
//!    of 32 bytes, and nothing of the block's contents is touched by it.
//! 3. An *anchor* says up to which number everything is on disk. Before it is written, the file is
//!    synced, and afterwards again.
//! 4. What an erase above the anchor made dead is neither programmed over nor given back to the
//!    host. So everything that was done since the anchor can be undone.
//! 5. Opening looks for the first number above the anchor that is missing, or whose page does not
//!    match its check value. That operation and all after it are undone.
//!
//! Which bytes are where is in `docs/FORMAT.md`. Writes are plain `pwrite` calls: a memory map
//! would turn a full disk into a signal that ends the process.

mod error;
mod journal;
mod layout;
mod medium;
mod open;
mod syncer;
#[cfg(test)]
mod tests;
mod undo;

pub use error::FileError;
pub use layout::{FILE_VERSION, JOINT_VERSION, Numbering, OWNER_BYTES_MAX, SEVERAL_VERSION};
pub use medium::{HostFile, Medium, Volatile};
pub use open::{Opening, Usage};
pub use syncer::Syncer;

use crate::addr::{BlockId, Ppn};
use crate::contract::{Nand, Snapshot};
use crate::error::{HostError, Law, NandError};
use crate::flags::Flags;
use crate::geometry::{Capabilities, Geometry};
use crate::laws::{self, BlockState, illegal, illegal_block};
use crate::spare::Spare;
use core::sync::atomic::{AtomicI32, Ordering};
use journal::Journal;
use layout::{BlockRecord, Decoded, FlagSlot, Layout, RECORD_BYTES, Record};
use std::boxed::Box;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::vec::Vec;

/// What may be done with a device in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everything; nobody else may have it open.
    ReadWrite,
    /// Reads; others may read too.
    ReadOnly,
    /// Everything, but what is written stays in memory and is forgotten. Others may read too.
    Overlay,
}

/// What is known of a block in RAM.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    state: BlockState,
    /// Whether `state` says how far the block is programmed: found out when it is first needed.
    surveyed: bool,
    record: BlockRecord,
}

/// So many operations after an anchor there is another: opening looks at each of them.
const UNANCHORED_MAX: u64 = 1 << 16;
/// Erased blocks that wait for the next anchor before their bytes are given back to the host.
const DISCARDS_MAX: usize = 1024;
/// What a host is taken to mean that gives no number.
const EIO: i32 = 5;
/// What is answered to a write on a device that is open for reading.
const EROFS: i32 = 30;

/// A NAND device in a file. The module says what is promised when a process or its host dies.
///
/// Nothing is allocated after it was opened, except for writes into an [`Access::Overlay`].
#[derive(Debug)]
pub struct FileNand<M: Medium = HostFile> {
    medium: M,
    layout: Layout,
    capabilities: Capabilities,
    owner: Box<[u8]>,
    access: Access,
    blocks: Vec<Block>,
    /// Numbers its operations, and those of the other devices of the file if they are joint.
    journal: Arc<Journal<M>>,
    /// Nothing is written when it is dropped.
    closed: bool,
    /// Blocks whose erase may be above the anchor, in the order of their erases.
    discards: Vec<BlockId>,
    opening: Opening,
    /// One page of data.
    page: Box<[u8]>,
    /// The records of a block.
    records: Box<[u8]>,
    /// What the host said when it failed first, or 0.
    failed: Arc<AtomicI32>,
}

/// A lock. What is behind it is whole after every panic.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<M: Medium> FileNand<M> {
    /// The bytes given when the device was made.
    #[must_use]
    pub fn owner(&self) -> &[u8] {
        &self.owner
    }

    /// What may be done with it.
    #[must_use]
    pub const fn access(&self) -> Access {
        self.access
    }

    /// Whether its operations are numbered together with those of the other devices of the file.
    #[must_use]
    pub fn numbering(&self) -> Numbering {
        if self.journal.is_joint() { Numbering::Joint } else { Numbering::Own }
    }

    /// What was found when it was opened. What was undone of joint devices is told by the first.
    #[must_use]
    pub const fn opening(&self) -> Opening {
        self.opening
    }

    /// Where its bytes are.
    #[must_use]
    pub const fn medium(&self) -> &M {
        &self.medium
    }

    /// Where its bytes are, for a harness that makes the host fail.
    pub const fn medium_mut(&mut self) -> &mut M {
        &mut self.medium
    }

    /// How often a block was erased; 0 for one outside the device.
    #[must_use]
    pub fn erase_count(&self, block: BlockId) -> u32 {
        self.blocks.get(block.index()).map_or(0, |b| b.record.erase_count)
    }

    /// How often each block was erased, by block.
    pub fn erase_counts(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.blocks.iter().map(|block| block.record.erase_count)
    }

    /// One more than the highest page programmed in a block since it was erased, or 0; 0 for one
    /// outside the device.
    ///
    /// # Errors
    /// [`NandError::Host`].
    pub fn programmed_end(&mut self, block: BlockId) -> Result<u32, NandError> {
        if block.0 >= self.layout.geometry.blocks() {
            return Ok(0);
        }
        self.survey("read", block)?;
        Ok(self.blocks[block.index()].state.end())
    }

    /// Makes everything done before survive the death of the host.
    ///
    /// # Errors
    /// Those of the host; as [`Syncer::sync`].
    pub fn sync(&mut self) -> io::Result<()> {
        match self.failed.load(Ordering::Acquire) {
            0 if self.access == Access::ReadWrite => {
                self.journal.settled();
                let outcome = self.medium.sync();
                outcome.inspect_err(|error| {
                    self.note_failure(error);
                })
            }
            0 => Ok(()),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    /// Syncs everything and notes that nothing is to be looked for when it is opened again.
    /// Dropping the device does the same, but nobody hears of an error then.
    ///
    /// # Errors
    /// [`FileError`] of the host. What was synced before is there; see the module.
    pub fn close(mut self) -> Result<(), FileError> {
        self.finish().map_err(|source| FileError::io("closed", source))
    }

    fn finish(&mut self) -> io::Result<()> {
        match self.failed.load(Ordering::Acquire) {
            0 if self.access == Access::ReadWrite && !core::mem::replace(&mut self.closed, true) => {
                let closed = self.journal.close(&mut self.medium);
                closed.inspect_err(|error| {
                    self.note_failure(error);
                })
            }
            0 => Ok(()),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    fn note_failure(&self, error: &io::Error) -> HostError {
        let code = error.raw_os_error().unwrap_or(match error.kind() {
            io::ErrorKind::StorageFull => 28,
            _ => EIO,
        });
        // The first cause is the one to be told.
        let _ = self.failed.compare_exchange(0, code, Ordering::AcqRel, Ordering::Acquire);
        HostError(code)
    }

    /// Passes on what the host said of a read.
    fn read_outcome<T>(operation: &'static str, ppn: Ppn, outcome: io::Result<T>) -> Result<T, NandError> {
        let cause = |error: io::Error| HostError(error.raw_os_error().unwrap_or(EIO));
        outcome.map_err(|error| NandError::Host { operation, ppn, cause: cause(error) })
    }

    /// Passes on what the host said of a write, after which nothing more is written.
    fn write_outcome(&self, operation: &'static str, ppn: Ppn, outcome: io::Result<()>) -> Result<(), NandError> {
        outcome.map_err(|error| NandError::Host { operation, ppn, cause: self.note_failure(&error) })
    }

    /// Before something is changed: refuses it if it must not be, and makes room for its number.
    fn begin(&mut self, operation: &'static str, ppn: Ppn) -> Result<(), NandError> {
        let code = match self.failed.load(Ordering::Acquire) {
            0 if self.access == Access::ReadOnly => EROFS,
            code => code,
        };
        if code != 0 {
            return Err(NandError::Host { operation, ppn, cause: HostError(code) });
        }
        if self.journal.is_full() {
            self.commit(operation, ppn, self.journal.last())?;
        }
        match self.discards.last() {
            Some(block) if self.discards.len() == DISCARDS_MAX => {
                self.commit(operation, ppn, self.blocks[block.index()].record.erased)
            }
            _ => self.give_back(operation, ppn),
        }
    }

    /// As [`Self::begin`], for an operation on what an erase left: that erase is final then.
    fn begin_after_erase(&mut self, operation: &'static str, ppn: Ppn, block: BlockId) -> Result<(), NandError> {
        self.begin(operation, ppn)?;
        self.finish_erase(operation, ppn, block)
    }

    /// Makes the last erase of a block final, and sees to it that the block is not given back any
    /// more. Other devices write anchors at any moment.
    fn finish_erase(&mut self, operation: &'static str, ppn: Ppn, block: BlockId) -> Result<(), NandError> {
        let erased = self.blocks[block.index()].record.erased;
        if erased > self.journal.anchored() {
            self.commit(operation, ppn, erased)?;
        } else {
            self.give_back(operation, ppn)?;
        }
        debug_assert!(erased <= self.journal.anchored() && !self.discards.contains(&block));
        Ok(())
    }

    /// Makes operations up to `wanted` final.
    fn commit(&mut self, operation: &'static str, ppn: Ppn, wanted: u64) -> Result<(), NandError> {
        let anchored = self.journal.advance(&mut self.medium, wanted);
        self.write_outcome(operation, ppn, anchored)?;
        self.give_back(operation, ppn)
    }

    /// Gives back to the host what final erases made dead.
    fn give_back(&mut self, operation: &'static str, ppn: Ppn) -> Result<(), NandError> {
        let anchored = self.journal.anchored();
        let is_final = |block: &&BlockId| self.blocks[block.index()].record.erased <= anchored;
        let count = self.discards.iter().take_while(is_final).count();
        for at in 0..count {
            let (at, bytes) = self.layout.region(self.discards[at]);
            let given_back = self.medium.discard(at, bytes);
            self.write_outcome(operation, ppn, given_back)?;
        }
        self.discards.drain(..count);
        Ok(())
    }

    /// Finds out how far a block is programmed, if that is not known yet.
    fn survey(&mut self, operation: &'static str, block: BlockId) -> Result<(), NandError> {
        if self.blocks[block.index()].surveyed {
            return Ok(());
        }
        let first = self.layout.geometry.page_at(block, 0);
        let read = self.medium.read_at(self.layout.record(block, 0), &mut self.records);
        Self::read_outcome(operation, first, read)?;
        let known = &mut self.blocks[block.index()];
        let (bad, erased) = (known.state.is_bad(), known.record.erased);
        let mut state = BlockState::default();
        for (offset, bytes) in (0..).zip(self.records.chunks_exact(RECORD_BYTES)) {
            match Record::decode(bytes, Ppn(first.0 + offset)) {
                Decoded::Empty => {}
                Decoded::Programmed(record) if record.op <= erased => {}
                Decoded::Programmed(_) | Decoded::Damaged => state.programmed(offset),
            }
        }
        if bad {
            state.mark_bad();
        }
        known.state = state;
        known.surveyed = true;
        Ok(())
    }

    /// The record of a page, `None` if it is erased.
    fn record(&mut self, operation: &'static str, ppn: Ppn) -> Result<Option<Record>, NandError> {
        let (block, offset) = laws::locate(&self.layout.geometry, operation, ppn)?;
        let known = &self.blocks[block.index()];
        if known.surveyed && offset >= known.state.end() {
            return Ok(None);
        }
        let mut bytes = [0; RECORD_BYTES];
        let read = self.medium.read_at(self.layout.record(block, offset), &mut bytes);
        Self::read_outcome(operation, ppn, read)?;
        match Record::decode(&bytes, ppn) {
            Decoded::Empty => Ok(None),
            Decoded::Programmed(record) if record.op <= known.record.erased => Ok(None),
            Decoded::Programmed(record) if record.length <= self.layout.geometry.page_bytes() => Ok(Some(record)),
            Decoded::Programmed(_) | Decoded::Damaged => Err(NandError::Uncorrectable { ppn }),
        }
    }

    /// The record of a page that was programmed as host data or as metadata.
    fn record_of(&mut self, ppn: Ppn, meta: bool) -> Result<(Record, Spare), NandError> {
        let record = self.record("read", ppn)?.ok_or(NandError::Erased { ppn })?;
        if record.meta != meta {
            return Err(illegal("read", ppn, Law::PageContent));
        }
        let whole = meta || record.length == self.layout.geometry.page_bytes();
        let spare = spare_of(ppn, &record)?;
        if whole { Ok((record, spare)) } else { Err(NandError::Uncorrectable { ppn }) }
    }

    /// Reads the data of a page into the device's own buffer and holds it against its check value.
    fn fetch(&mut self, operation: &'static str, ppn: Ppn, record: &Record) -> Result<(), NandError> {
        let (block, offset) = laws::locate(&self.layout.geometry, operation, ppn)?;
        let data = &mut self.page[..record.length as usize];
        let read = self.medium.read_at(self.layout.data(block, offset), data);
        Self::read_outcome(operation, ppn, read)?;
        if crc32fast::hash(data) == record.check { Ok(()) } else { Err(NandError::Uncorrectable { ppn }) }
    }

    /// Programs a page: its data, and then the record by which it counts.
    fn put(
        &mut self,
        operation: &'static str,
        ppn: Ppn,
        data: &[u8],
        spare: &Spare,
        meta: bool,
    ) -> Result<(), NandError> {
        let (block, offset) = laws::locate(&self.layout.geometry, operation, ppn)?;
        if !self.blocks[block.index()].state.is_next(offset) {
            self.survey(operation, block)?;
            let holds = match self.record(operation, ppn) {
                Ok(record) => record.is_some(),
                Err(NandError::Uncorrectable { .. }) => true,
                Err(error) => return Err(error),
            };
            let order = self.capabilities.program_order;
            let state = self.blocks[block.index()].state;
            state.check_program(order, offset, holds).map_err(|law| illegal(operation, ppn, law))?;
        }
        self.begin_after_erase(operation, ppn, block)?;
        let journal = Arc::clone(&self.journal);
        let numbered = journal.number();
        let op = numbered.op;
        let record = Record::new(meta, data, op, spare);
        let written = match data {
            [] => Ok(()),
            data => self.medium.write_at(self.layout.data(block, offset), data),
        };
        self.write_outcome(operation, ppn, written)?;
        let written = self.medium.write_at(self.layout.record(block, offset), &record.encode(ppn));
        self.write_outcome(operation, ppn, written)?;
        self.blocks[block.index()].state.programmed(offset);
        debug_assert!(self.blocks[block.index()].surveyed && op > self.blocks[block.index()].record.erased);
        Ok(())
    }

    fn program_as(&mut self, ppn: Ppn, data: &[u8], spare: &Spare, meta: bool) -> Result<(), NandError> {
        laws::check_size(&self.layout.geometry, data.len(), !meta).map_err(|law| illegal("program", ppn, law))?;
        self.put("program", ppn, data, spare, meta)
    }

    fn put_block(&mut self, operation: &'static str, block: BlockId, record: BlockRecord) -> Result<(), NandError> {
        let first = self.layout.geometry.page_at(block, 0);
        let written = self.medium.write_at(self.layout.block(block), &record.encode(block));
        self.write_outcome(operation, first, written)?;
        self.blocks[block.index()].record = record;
        Ok(())
    }
}

fn spare_of(ppn: Ppn, record: &Record) -> Result<Spare, NandError> {
    record.spare().ok_or(NandError::Uncorrectable { ppn })
}

impl<M: Medium> Drop for FileNand<M> {
    fn drop(&mut self) {
        // Nobody is there to hear of an error, and none is hidden: opening looks for what is
        // missing.
        let _ = self.finish();
    }
}

impl<M: Medium + Clone> Snapshot for FileNand<M> {
    fn snapshot(&mut self) -> Self {
        let failed = AtomicI32::new(self.failed.load(Ordering::Acquire));
        Self {
            medium: self.medium.clone(),
            owner: self.owner.clone(),
            blocks: self.blocks.clone(),
            discards: {
                let mut discards = Vec::with_capacity(DISCARDS_MAX);
                discards.extend_from_slice(&self.discards);
                discards
            },
            page: self.page.clone(),
            records: self.records.clone(),
            failed: Arc::new(failed),
            journal: self.journal.snapshot(),
            ..*self
        }
    }
}

impl<M: Medium> Nand for FileNand<M> {
    type Payload = [u8];

    fn geometry(&self) -> &Geometry {
        &self.layout.geometry
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn read(&mut self, ppn: Ppn, out: &mut [u8]) -> Result<Spare, NandError> {
        laws::check_size(&self.layout.geometry, out.len(), true).map_err(|law| illegal("read", ppn, law))?;
        let (record, spare) = self.record_of(ppn, false)?;
        let (block, offset) = laws::locate(&self.layout.geometry, "read", ppn)?;
        let read = self.medium.read_at(self.layout.data(block, offset), out);
        Self::read_outcome("read", ppn, read)?;
        if crc32fast::hash(out) == record.check { Ok(spare) } else { Err(NandError::Uncorrectable { ppn }) }
    }

    fn read_meta(&mut self, ppn: Ppn, out: &mut [u8]) -> Result<Spare, NandError> {
        laws::check_size(&self.layout.geometry, out.len(), false).map_err(|law| illegal("read", ppn, law))?;
        let (record, spare) = self.record_of(ppn, true)?;
        self.fetch("read", ppn, &record)?;
        let kept = (record.length as usize).min(out.len());
        out[..kept].copy_from_slice(&self.page[..kept]);
        out[kept..].fill(0xFF);
        Ok(spare)
    }

    fn read_spare(&mut self, ppn: Ppn) -> Result<Option<Spare>, NandError> {
        self.record("read", ppn)?.map(|record| spare_of(ppn, &record)).transpose()
    }

    fn probe(&mut self, ppn: Ppn) -> Result<Spare, NandError> {
        let record = self.record("read", ppn)?.ok_or(NandError::Erased { ppn })?;
        self.fetch("read", ppn, &record)?;
        spare_of(ppn, &record)
    }

    fn program(&mut self, ppn: Ppn, data: &[u8], spare: &Spare) -> Result<(), NandError> {
        self.program_as(ppn, data, spare, false)
    }

    fn program_meta(&mut self, ppn: Ppn, data: &[u8], spare: &Spare) -> Result<(), NandError> {
        self.program_as(ppn, data, spare, true)
    }

    fn copy(&mut self, from: Ppn, to: Ppn, spare: &Spare) -> Result<(), NandError> {
        let record = self.record("copy", from)?.ok_or(NandError::Erased { ppn: from })?;
        self.fetch("copy", from, &record)?;
        // Out of its place for the call, so that it can be read while the rest is changed.
        let page = core::mem::take(&mut self.page);
        let outcome = self.put("copy", to, &page[..record.length as usize], spare, record.meta);
        self.page = page;
        outcome
    }

    fn erase(&mut self, block: BlockId) -> Result<(), NandError> {
        let geometry = self.layout.geometry;
        let Some(known) = self.blocks.get(block.index()) else {
            return Err(illegal_block(&geometry, "erase", block, Law::AddressInRange));
        };
        known.state.check_erase().map_err(|law| illegal_block(&geometry, "erase", block, law))?;
        self.begin_after_erase("erase", geometry.page_at(block, 0), block)?;
        let old = self.blocks[block.index()].record;
        let erase_count = old.erase_count.saturating_add(1);
        let journal = Arc::clone(&self.journal);
        let numbered = journal.number();
        self.put_block("erase", block, BlockRecord { erase_count, erased: numbered.op, before: old.erased, bad: 0 })?;
        let known = &mut self.blocks[block.index()];
        let held = !known.surveyed || known.state.end() > 0;
        known.state.erased();
        known.surveyed = true;
        if held {
            self.discards.push(block);
        }
        Ok(())
    }

    fn is_bad(&self, block: BlockId) -> bool {
        self.blocks.get(block.index()).is_some_and(|b| b.state.is_bad())
    }

    fn mark_bad(&mut self, block: BlockId) -> Result<(), NandError> {
        let geometry = self.layout.geometry;
        let Some(known) = self.blocks.get(block.index()) else {
            return Err(illegal_block(&geometry, "mark_bad", block, Law::AddressInRange));
        };
        if known.state.is_bad() {
            return Ok(());
        }
        self.begin("mark_bad", geometry.page_at(block, 0))?;
        let journal = Arc::clone(&self.journal);
        let numbered = journal.number();
        let record = BlockRecord { bad: numbered.op, ..self.blocks[block.index()].record };
        self.put_block("mark_bad", block, record)?;
        self.blocks[block.index()].state.mark_bad();
        Ok(())
    }

    fn clear_flags(&mut self, ppn: Ppn, flags: Flags) -> Result<(), NandError> {
        let refuse = |law| illegal("clear_flags", ppn, law);
        let (block, offset) = laws::locate(&self.layout.geometry, "clear_flags", ppn)?;
        if self.blocks[block.index()].state.is_bad() {
            return Err(refuse(Law::BadBlock));
        }
        let mut record = self.record("clear_flags", ppn)?.ok_or(NandError::Erased { ppn })?;
        spare_of(ppn, &record)?;
        let set = record.newest();
        laws::check_flags(self.capabilities, set.times).map_err(refuse)?;
        self.begin("clear_flags", ppn)?;
        let older = usize::from(record.slots[0].op > record.slots[1].op);
        // The slot to be overwritten may be what an undone operation leaves.
        if record.slots[older].op > 0 && set.op > self.journal.anchored() {
            self.commit("clear_flags", ppn, set.op)?;
        }
        let journal = Arc::clone(&self.journal);
        let numbered = journal.number();
        record.slots[older] = FlagSlot { op: numbered.op, flags: set.flags.union(flags), times: set.times + 1 };
        let written = self.medium.write_at(self.layout.record(block, offset), &record.encode(ppn));
        self.write_outcome("clear_flags", ppn, written)
    }
}
