//! Full records of the pages that a cell cannot hold.
//!
//! Most metadata is read, changed in a few places and programmed elsewhere, and older versions stay on the device until their
//! blocks are erased. So once there are many, a page that differs from the one read last in few words is kept as those words, and
//! others without their end if that reads as erased.

use super::delta::{Change, differences, trimmed};
use crate::contract::Stamp;
use crate::spare::Spare;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// So many records are kept whole. They fit a processor's cache, where copying takes less time than comparing.
const WHOLE: usize = 1 << 15;

/// What a full record says of its page.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) spare: Spare,
    pub(super) body: Body,
    /// How often the spare area was programmed again.
    pub(super) reprograms: u8,
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
    /// In a vector so that a freed buffer can be filled again.
    base: Arc<Vec<u8>>,
    /// What differs from it.
    changes: Option<Arc<[Change]>>,
}

impl Bytes {
    /// Fills `out`, as far as there is something.
    pub(super) fn read(&self, out: &mut [u8]) {
        let kept = self.base.len().min(out.len());
        out[..kept].copy_from_slice(&self.base[..kept]);
        out[kept..].fill(0xFF);
        for change in self.changes.iter().flat_map(|changes| changes.iter()) {
            change.apply(out);
        }
    }
}

/// Records by index, with the freed slots and freed buffers kept for reuse: a device in its steady
/// state allocates nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Slab {
    records: Vec<Record>,
    free: Vec<u32>,
    buffers: Buffers,
    /// The record of the metadata read last, which may be another's by now: it is only a guess at what comes next.
    read_last: u32,
    /// Where differences are gathered.
    changes: Vec<Change>,
}

/// Buffers that nobody else holds.
#[derive(Debug, Default)]
struct Buffers(Vec<Arc<Vec<u8>>>);

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
            self.records[index as usize] = record;
            index
        } else {
            self.records.push(record);
            (self.records.len() - 1) as u32
        }
    }

    /// The record at an index that [`Self::insert`] answered.
    ///
    /// # Panics
    /// If there never was such a record: a cell then points nowhere, a defect of the device.
    pub(super) fn get(&self, index: u32) -> &Record {
        &self.records[index as usize]
    }

    /// As [`Self::get`], to change.
    pub(super) fn get_mut(&mut self, index: u32) -> &mut Record {
        &mut self.records[index as usize]
    }

    /// As [`Self::get`], of metadata whose contents are read: what is programmed next may be much the same.
    pub(super) fn read(&mut self, index: u32) -> &Record {
        self.read_last = index;
        self.get(index)
    }

    /// Frees a record, keeping its buffer if no other page and no snapshot shares it.
    pub(super) fn remove(&mut self, index: u32) {
        let body = core::mem::replace(&mut self.records[index as usize].body, Body::Stamp(Stamp::UNWRITTEN));
        if let Body::Bytes(Bytes { mut base, .. }) = body
            && self.records.len() <= WHOLE
            && Arc::get_mut(&mut base).is_some()
        {
            self.buffers.0.push(base);
        }
        self.free.push(index);
    }

    /// Contents to keep.
    pub(super) fn keep(&mut self, bytes: &[u8]) -> Bytes {
        if self.records.len() <= WHOLE {
            return Bytes { base: self.buffer(bytes), changes: None };
        }
        self.buffers.0 = Vec::new();
        let bytes = trimmed(bytes);
        if let Body::Bytes(Bytes { base, .. }) = &self.records[self.read_last as usize].body
            && differences(base, bytes, &mut self.changes)
        {
            let changes = (!self.changes.is_empty()).then(|| Arc::from(&self.changes[..]));
            return Bytes { base: Arc::clone(base), changes };
        }
        Bytes { base: Arc::new(bytes.to_vec()), changes: None }
    }

    /// The bytes in a buffer, a freed one if there is one.
    fn buffer(&mut self, bytes: &[u8]) -> Arc<Vec<u8>> {
        if let Some(mut buffer) = self.buffers.0.pop()
            && let Some(vec) = Arc::get_mut(&mut buffer)
        {
            vec.clear();
            vec.extend_from_slice(bytes);
            return buffer;
        }
        Arc::new(bytes.to_vec())
    }

    /// Records in use.
    pub(super) fn live(&self) -> usize {
        self.records.len() - self.free.len()
    }

    /// Bytes allocated, each buffer counted once.
    pub(super) fn memory_bytes(&self) -> u64 {
        const COUNTS: usize = 2 * size_of::<usize>();
        let bytes = |buffer: &Arc<Vec<u8>>| buffer.capacity() + size_of::<Vec<u8>>() + COUNTS;
        let (mut bases, mut changed) = (Vec::new(), 0);
        for record in &self.records {
            if let Body::Bytes(Bytes { base, changes }) = &record.body {
                bases.push((Arc::as_ptr(base), bytes(base)));
                changed += changes.as_ref().map_or(0, |changes| size_of_val::<[Change]>(changes) + COUNTS);
            }
        }
        bases.sort_unstable();
        bases.dedup();
        let live: usize = bases.iter().map(|(_, bytes)| bytes).sum();
        let spare: usize = self.buffers.0.iter().map(bytes).sum();
        let tables = self.records.capacity() * size_of::<Record>() + self.free.capacity() * size_of::<u32>();
        (live + changed + spare + tables + self.buffers.0.capacity() * size_of::<usize>()) as u64
    }
}
