//! Dirty entries that a battery saves, and takes back.

use super::Cmt;
use crate::contract::FtlError;
use crate::mapping::is_page;
use crate::saved::{Sink, Source};
use alloc::vec::Vec;
use nand::{Lpn, Ppn};

impl Cmt {
    /// Puts how many entries are dirty and each of them, the least recently used first.
    pub(in crate::mapping) fn save_dirty(&self, sink: &mut dyn Sink) -> Result<(), FtlError> {
        let dirty = || self.slots().filter(|slot| self.is_dirty(*slot));
        sink.put_u32(dirty().count() as u32)?;
        for slot in dirty() {
            sink.put_u32(self.lpn(slot).0)?;
            sink.put_u32(self.ppn(slot).0)?;
        }
        Ok(())
    }

    /// The most bytes that [`Cmt::save_dirty`] puts.
    pub(in crate::mapping) const fn saved_bytes(&self) -> u64 {
        4 + 8 * (self.capacity() as u64 + 1)
    }

    /// The dirty entries that were saved; `None` if they are not of a disk of so many logical pages
    /// on a device of so many pages, or more than the cache holds.
    pub(in crate::mapping) fn saved(
        &self,
        source: &mut Source<'_>,
        logical_pages: u32,
        pages: u32,
    ) -> Option<Vec<(Lpn, Ppn)>> {
        let count = source.take_u32().filter(|count| *count <= self.capacity() + 1)?;
        let mut entries = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let (lpn, ppn) = (Lpn(source.take_u32()?), Ppn(source.take_u32()?));
            if lpn.0 >= logical_pages || (is_page(ppn) && ppn.0 >= pages) {
                return None;
            }
            entries.push((lpn, ppn));
        }
        let mut pages: Vec<Lpn> = entries.iter().map(|(lpn, _)| *lpn).collect();
        pages.sort_unstable();
        // The last may have come before another left.
        let before = &entries[..entries.len().saturating_sub(1)];
        let fits = self.takes(before.iter().map(|(lpn, _)| *lpn));
        (fits && pages.windows(2).all(|pair| pair[0] != pair[1])).then_some(entries)
    }

    /// Caches entries that were saved. Programs nothing: one too many leaves with the next
    /// operation.
    pub(in crate::mapping) fn restore_saved(&mut self, entries: &[(Lpn, Ppn)]) {
        debug_assert!(self.slots().next().is_none() && entries.len() <= self.capacity() as usize + 1);
        for (lpn, ppn) in entries {
            let slot = self.insert(*lpn, *ppn);
            self.mark_dirty(slot, false);
        }
    }
}
