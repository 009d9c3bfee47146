//! Full records of the pages that a cell cannot hold.
//!
//! Most metadata is read, changed in a few places and programmed elsewhere, and older versions stay
//! on the device until their blocks are erased. So once there are many, a page that differs from
//! the one read last in few words is kept as those words, and others without their end if that
//! reads as erased.

use super::delta::{Change, differences, trimmed};
use crate::contract::Stamp;
use crate::flags::Flags;
use crate::page::MetaPage;
use crate::spare::{PageKind, Spare};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

/// Records of a chunk. Those of the first are kept whole: they fit a processor's cache, where
/// copying takes less time than comparing.
const CHUNK: usize = 1 << 15;

/// What a full record says of its page. The fields of its spare area lie beside the rest, so that
/// all of it is in one line of the processor's cache: on a large device each read of metadata has
/// to fetch it from memory.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Record {
    pub(super) body: Body,
    seq: u64,
    tag: u32,
    erase_count: u32,
    erased_at: u32,
    aux: u32,
    kind: PageKind,
    flags: Flags,
    /// How often flags were set.
    pub(super) reprograms: u8,
}

impl Record {
    /// Of a page just programmed.
    pub(super) fn new(spare: &Spare, body: Body) -> Self {
        let Spare { kind, tag, seq, erase_count, erased_at, aux, .. } = *spare;
        Self { body, seq, tag, erase_count, erased_at, aux, kind, flags: Flags::NONE, reprograms: 0 }
    }

    /// The spare area.
    #[inline]
    pub(super) fn spare(&self) -> Spare {
        let Self { kind, tag, seq, erase_count, erased_at, aux, flags, .. } = *self;
        Spare { kind, tag, seq, erase_count, erased_at, aux, flags }
    }

    /// Flags were set.
    pub(super) fn clear_flags(&mut self, flags: Flags) {
        self.flags = self.flags.union(flags);
        self.reprograms += 1;
    }
}

/// The contents of a page. Shared, so that copies and snapshots cost nothing.
#[derive(Clone, Debug)]
pub(super) enum Body {
    /// Host data.
    Stamp(Stamp),
    /// Metadata.
    Bytes(Bytes),
}

/// Every byte that was programmed.
#[derive(Clone, Debug)]
pub(super) struct Bytes {
    base: Arc<[u8]>,
    /// What differs from it.
    changes: Option<Arc<[Change]>>,
}

impl Bytes {
    /// Fills `out`, as far as there is something, of what is needed.
    pub(super) fn read(&self, out: &mut [u8], needed: Range<usize>) {
        // The common case: a page that is kept whole.
        if self.changes.is_none()
            && let Some(base) = self.base.get(needed.clone())
            && let Some(out) = out.get_mut(needed.clone())
        {
            return out.copy_from_slice(base);
        }
        self.read_changed(out, needed);
    }

    /// As [`Self::read`], of a page that is kept by its differences or without its end.
    #[inline(never)]
    fn read_changed(&self, out: &mut [u8], needed: Range<usize>) {
        let changes = self.changes.as_deref().unwrap_or_default();
        // On a large device both come from memory: asked for now, the changes are there when the
        // page is.
        core::hint::black_box(changes.first().copied());
        let end = needed.end.min(out.len());
        let from = needed.start.min(end);
        let kept = self.base.len().clamp(from, end);
        if let Some(base) = self.base.get(from..kept) {
            out[from..kept].copy_from_slice(base);
        }
        out[kept..end].fill(0xFF);
        changes.iter().for_each(|change| change.apply(&mut out[..end]));
    }
}

/// Records by index, with the freed slots and freed buffers kept for reuse: a device in its steady
/// state allocates nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Slab {
    /// All full but the last. In chunks, so that more records move none.
    chunks: Vec<Vec<Record>>,
    free: Vec<u32>,
    buffers: Buffers,
    /// The record of the metadata read last, which may be another's by now: it is only a guess at
    /// what comes next.
    read_last: u32,
    /// Where differences are gathered.
    changes: Vec<Change>,
}

/// Buffers that nobody else holds.
#[derive(Debug, Default)]
struct Buffers(Vec<Arc<[u8]>>);

impl Clone for Buffers {
    /// Sharing spare buffers would only make them useless to both.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Slab {
    /// Stores a record and answers its index.
    pub(super) fn insert(&mut self, record: Record) -> u32 {
        if let Some(index) = self.free.pop() {
            debug_assert!(matches!(self.get(index).body, Body::Stamp(Stamp::UNWRITTEN)), "record {index} is in use");
            *self.get_mut(index) = record;
            return index;
        }
        match self.chunks.last_mut().filter(|chunk| chunk.len() < CHUNK) {
            Some(chunk) => chunk.push(record),
            None => {
                let mut chunk = Vec::with_capacity(if self.chunks.is_empty() { 1 } else { CHUNK });
                chunk.push(record);
                self.chunks.push(chunk);
            }
        }
        (self.records() - 1) as u32
    }

    /// The record at an index that [`Self::insert`] answered.
    ///
    /// # Panics
    /// If there never was such a record: a cell then points nowhere, a defect of the device.
    pub(super) fn get(&self, index: u32) -> &Record {
        debug_assert!((index as usize) < self.records(), "record {index} of {}", self.records());
        &self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }

    /// As [`Self::get`], to change.
    pub(super) fn get_mut(&mut self, index: u32) -> &mut Record {
        &mut self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }

    /// As [`Self::get`], of metadata whose contents are read: what is programmed next may be much
    /// the same.
    pub(super) fn read(&mut self, index: u32) -> &Record {
        self.read_last = index;
        self.get(index)
    }

    /// Frees a record, keeping its buffer if no other page and no snapshot shares it.
    pub(super) fn remove(&mut self, index: u32) {
        let body = core::mem::replace(&mut self.get_mut(index).body, Body::Stamp(Stamp::UNWRITTEN));
        debug_assert!(!matches!(body, Body::Stamp(Stamp::UNWRITTEN)), "record {index} is free");
        if let Body::Bytes(Bytes { mut base, .. }) = body
            && self.chunks.len() == 1
            && Arc::get_mut(&mut base).is_some()
        {
            self.buffers.0.push(base);
        }
        self.free.push(index);
        debug_assert!(self.free.len() <= self.records(), "more records are free than there are");
    }

    /// Contents to keep, in the buffer that they are in if a freed one can take its place.
    pub(super) fn take(&mut self, page: &mut MetaPage) -> Bytes {
        if self.chunks.len() <= 1
            && let Some(free) = self.buffers.0.pop_if(|free| free.len() == page.len())
        {
            return Bytes { base: page.exchange(free), changes: None };
        }
        self.keep(page)
    }

    /// Contents to keep.
    pub(super) fn keep(&mut self, bytes: &[u8]) -> Bytes {
        if self.chunks.len() <= 1 {
            return Bytes { base: self.buffer(bytes), changes: None };
        }
        self.buffers.0 = Vec::new();
        let bytes = trimmed(bytes);
        let last = self.read_last as usize;
        debug_assert!(last < self.records(), "record {last} was read last");
        if let Body::Bytes(Bytes { base, .. }) = &self.chunks[last / CHUNK][last % CHUNK].body
            && differences(base, bytes, &mut self.changes)
        {
            let changes = (!self.changes.is_empty()).then(|| Arc::from(&self.changes[..]));
            return Bytes { base: Arc::clone(base), changes };
        }
        Bytes { base: Arc::from(bytes), changes: None }
    }

    /// The bytes in a buffer, a freed one if there is one.
    fn buffer(&mut self, bytes: &[u8]) -> Arc<[u8]> {
        if let Some(mut buffer) = self.buffers.0.pop()
            && let Some(free) = Arc::get_mut(&mut buffer)
            && free.len() == bytes.len()
        {
            free.copy_from_slice(bytes);
            return buffer;
        }
        Arc::from(bytes)
    }

    /// Records there have ever been at once.
    fn records(&self) -> usize {
        self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * CHUNK + last.len())
    }

    /// Records in use.
    pub(super) fn live(&self) -> usize {
        debug_assert!(self.free.len() <= self.records());
        self.records() - self.free.len()
    }

    /// Bytes allocated, each buffer counted once.
    pub(super) fn memory_bytes(&self) -> u64 {
        const COUNTS: usize = 2 * size_of::<usize>();
        let bytes = |buffer: &Arc<[u8]>| buffer.len() + COUNTS;
        let (mut bases, mut changed) = (Vec::new(), 0);
        for record in self.chunks.iter().flatten() {
            if let Body::Bytes(Bytes { base, changes }) = &record.body {
                bases.push((Arc::as_ptr(base).cast::<u8>(), bytes(base)));
                changed += changes.as_ref().map_or(0, |changes| size_of_val::<[Change]>(changes) + COUNTS);
            }
        }
        bases.sort_unstable();
        bases.dedup();
        let live: usize = bases.iter().map(|(_, bytes)| bytes).sum();
        let spare: usize = self.buffers.0.iter().map(bytes).sum();
        let records: usize = self.chunks.iter().map(Vec::capacity).sum();
        let tables = records * size_of::<Record>() + self.free.capacity() * size_of::<u32>();
        (live + changed + spare + tables + self.buffers.0.capacity() * size_of::<Arc<[u8]>>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_takes_a_line_of_cache() {
        assert_eq!(size_of::<Record>(), 64);
    }
}
