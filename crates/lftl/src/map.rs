//! Where each logical page is: one word an entry, one bit of which locks it.

use crate::sync::{AtomicU32, Backoff, Ordering};
use nand::Lpn;

/// An entry that leads nowhere: the page was never written, or it was trimmed.
pub(crate) const UNMAPPED: u32 = 0x7FFF_FFFF;
/// The bit that locks an entry.
const LOCKED: u32 = 1 << 31;

/// The page table.
pub(crate) struct Map {
    entries: Vec<AtomicU32>,
}

/// A locked entry; it is unlocked when this is dropped.
pub(crate) struct Entry<'a> {
    cell: &'a AtomicU32,
    value: u32,
}

impl Map {
    pub(crate) fn new(pages: u32) -> Self {
        Self { entries: (0..pages).map(|_| AtomicU32::new(UNMAPPED)).collect() }
    }

    pub(crate) fn pages(&self) -> u32 {
        self.entries.len() as u32
    }

    /// The page of flash that an entry leads to, or [`UNMAPPED`].
    pub(crate) fn get(&self, lpn: Lpn) -> u32 {
        self.entries[lpn.index()].load(Ordering::Acquire) & !LOCKED
    }

    /// Locks an entry, for a few instructions. Nothing else is locked meanwhile.
    pub(crate) fn lock(&self, lpn: Lpn) -> Entry<'_> {
        let cell = &self.entries[lpn.index()];
        let mut backoff = Backoff::new();
        loop {
            let value = cell.load(Ordering::Relaxed) & !LOCKED;
            if cell.compare_exchange(value, value | LOCKED, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return Entry { cell, value };
            }
            backoff.wait();
        }
    }
}

impl Entry<'_> {
    pub(crate) fn value(&self) -> u32 {
        self.value
    }

    /// Changes the entry and unlocks it, in one step.
    pub(crate) fn set(mut self, value: u32) {
        debug_assert!(value <= UNMAPPED && self.cell.load(Ordering::Relaxed) & LOCKED != 0);
        self.value = value;
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.cell.store(self.value, Ordering::Release);
    }
}
