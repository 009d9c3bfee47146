//! Full records of the pages that a ten-byte cell cannot hold.

use crate::contract::Stamp;
use crate::spare::Spare;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// What a full record says of its page.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) spare: Spare,
    pub(super) body: Body,
    /// How often the spare area was programmed again.
    pub(super) reprograms: u8,
}

/// The contents of a page.
#[derive(Clone, Debug)]
pub(super) enum Body {
    /// Host data.
    Stamp(Stamp),
    /// Metadata, with every byte that was programmed. In a vector so that a freed buffer can be
    /// filled again; shared so that copies and snapshots cost nothing.
    Bytes(Arc<Vec<u8>>),
}

/// Records by index, with the freed slots and freed buffers kept for reuse: a device in its steady
/// state allocates nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Slab {
    records: Vec<Record>,
    free: Vec<u32>,
    buffers: Buffers,
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

    /// Frees a record, keeping its buffer if no copy or snapshot shares it.
    pub(super) fn remove(&mut self, index: u32) {
        let body = core::mem::replace(&mut self.records[index as usize].body, Body::Stamp(Stamp::UNWRITTEN));
        if let Body::Bytes(mut bytes) = body
            && Arc::get_mut(&mut bytes).is_some()
        {
            self.buffers.0.push(bytes);
        }
        self.free.push(index);
    }

    /// The bytes in a buffer, a freed one if there is one.
    pub(super) fn buffer(&mut self, bytes: &[u8]) -> Arc<Vec<u8>> {
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

    /// Bytes allocated, shared buffers counted once a record.
    pub(super) fn memory_bytes(&self) -> u64 {
        let bytes = |buffer: &Arc<Vec<u8>>| buffer.capacity() + size_of::<Vec<u8>>() + 2 * size_of::<usize>();
        let live: usize = self
            .records
            .iter()
            .map(|record| match &record.body {
                Body::Stamp(_) => 0,
                Body::Bytes(buffer) => bytes(buffer),
            })
            .sum();
        let spare: usize = self.buffers.0.iter().map(bytes).sum();
        let tables = self.records.capacity() * size_of::<Record>() + self.free.capacity() * size_of::<u32>();
        (live + spare + tables + self.buffers.0.capacity() * size_of::<usize>()) as u64
    }
}
