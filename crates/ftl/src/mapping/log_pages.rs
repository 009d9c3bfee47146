//! The page map of log blocks: where the newest copy of a logical page is, if it is in a log block.
//!
//! 1. Every log block has a slot of one entry a page. An entry names the logical page whose newest
//!    copy the page holds; a slot is therefore also the way back from a page to its logical page.
//! 2. Live entries hang in chains by a hash of the logical page, a chain for every two entries: a
//!    look costs two probes on average whatever the number of log blocks.
//!
//! Ten bytes a page of log block, nothing for the rest of the device.

use crate::contract::{RamItem, RamReport};
use alloc::vec::Vec;
use nand::{BlockId, Geometry, Lpn, Ppn};

const END: u32 = u32::MAX;
const ENTRIES_A_CHAIN: usize = 2;

#[derive(Clone, Copy, Debug)]
struct Entry {
    lpn: Lpn,
    /// The next entry of the chain.
    next: u32,
}

/// The page map of log blocks.
#[derive(Debug)]
pub struct LogPages {
    geometry: Geometry,
    entries: Vec<Entry>,
    heads: Vec<u32>,
    /// The log block of each slot.
    blocks: Vec<BlockId>,
    free_slots: Vec<u32>,
}

impl LogPages {
    /// An empty map for at most `slots` log blocks.
    #[must_use]
    pub fn new(geometry: Geometry, slots: u32) -> Self {
        let entries = (slots * geometry.pages_per_block()) as usize;
        Self {
            geometry,
            entries: alloc::vec![Entry { lpn: Lpn::NONE, next: END }; entries],
            heads: alloc::vec![END; entries / ENTRIES_A_CHAIN + 1],
            blocks: alloc::vec![BlockId::NONE; slots as usize],
            free_slots: (0..slots).rev().collect(),
        }
    }

    /// Every slot, taken or not.
    pub fn slots(&self) -> impl Iterator<Item = u32> + use<> {
        0..self.blocks.len() as u32
    }

    /// The log block of a slot, or [`BlockId::NONE`].
    #[must_use]
    pub fn block(&self, slot: u32) -> BlockId {
        self.blocks[slot as usize]
    }

    #[inline]
    fn head(&self, lpn: Lpn) -> usize {
        // Knuth's multiplicative hash: neighbours, which are written together, fall into different
        // chains.
        let hash = lpn.0.wrapping_mul(0x9E37_79B1);
        ((u64::from(hash) * self.heads.len() as u64) >> u32::BITS) as usize
    }

    /// Gives a log block a slot; `None` if all are taken.
    pub fn open(&mut self, block: BlockId) -> Option<u32> {
        debug_assert!(!self.blocks.contains(&block), "{block} has a slot");
        let slot = self.free_slots.pop()?;
        debug_assert!(!self.blocks[slot as usize].is_some(), "slot {slot} is in use");
        self.blocks[slot as usize] = block;
        Some(slot)
    }

    /// Takes back the slot of a log block in which no page lives.
    pub fn close(&mut self, slot: u32) {
        debug_assert!(self.blocks[slot as usize].is_some(), "slot {slot} is free");
        debug_assert!(
            (0..self.geometry.pages_per_block()).all(|i| self.at(slot, i).is_none()),
            "slot {slot} is in use"
        );
        self.blocks[slot as usize] = BlockId::NONE;
        self.free_slots.push(slot);
    }

    /// The page of an entry.
    #[inline]
    fn page(&self, entry: u32) -> Ppn {
        // An entry's number divides like a page's: slot for block, offset for offset.
        let slot = self.geometry.block_of(Ppn(entry));
        debug_assert!(self.blocks[slot.index()].is_some(), "entry {entry} is of no log block");
        self.geometry.page_at(self.blocks[slot.index()], self.geometry.offset_of(Ppn(entry)))
    }

    /// Where a logical page's newest copy is, if it is in a log block.
    #[inline]
    #[must_use]
    pub fn find(&self, lpn: Lpn) -> Option<Ppn> {
        let mut at = self.heads[self.head(lpn)];
        while at != END {
            let entry = self.entries[at as usize];
            if entry.lpn == lpn {
                return Some(self.page(at));
            }
            at = entry.next;
        }
        None
    }

    /// A logical page that was in no log block was written to page `offset` of the log block with
    /// this slot.
    #[inline]
    pub fn insert(&mut self, slot: u32, offset: u32, lpn: Lpn) {
        debug_assert!(offset < self.geometry.pages_per_block() && self.blocks[slot as usize].is_some());
        debug_assert!(self.find(lpn).is_none(), "{lpn} is in a log block twice");
        let at = slot * self.geometry.pages_per_block() + offset;
        let head = self.head(lpn);
        debug_assert!(!self.entries[at as usize].lpn.is_some(), "entry {at} is in use");
        self.entries[at as usize] = Entry { lpn, next: self.heads[head] };
        self.heads[head] = at;
        debug_assert!(self.find(lpn) == Some(self.page(at)));
    }

    /// The copy of a logical page in a log block died; where it was, or `None` if there was none.
    #[inline]
    pub fn remove(&mut self, lpn: Lpn) -> Option<Ppn> {
        let head = self.head(lpn);
        let mut before = END;
        let mut at = self.heads[head];
        while at != END {
            let entry = self.entries[at as usize];
            if entry.lpn == lpn {
                if before == END {
                    self.heads[head] = entry.next;
                } else {
                    self.entries[before as usize].next = entry.next;
                }
                self.entries[at as usize].lpn = Lpn::NONE;
                return Some(self.page(at));
            }
            before = at;
            at = entry.next;
        }
        None
    }

    /// The logical page whose newest copy is page `offset` of the log block with this slot.
    #[inline]
    #[must_use]
    pub fn at(&self, slot: u32, offset: u32) -> Option<Lpn> {
        debug_assert!(offset < self.geometry.pages_per_block());
        let lpn = self.entries[(slot * self.geometry.pages_per_block() + offset) as usize].lpn;
        lpn.is_some().then_some(lpn)
    }

    /// The RAM that it holds.
    pub fn ram(&self, report: &mut RamReport) {
        let words = self.heads.capacity() + self.blocks.capacity() + self.free_slots.capacity();
        let bytes = self.entries.capacity() * size_of::<Entry>() + words * size_of::<u32>();
        report.push(RamItem { name: "log_page_map", bytes: bytes as u64 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nand::Dimensions;
    use std::collections::BTreeMap;

    #[test]
    fn agrees_with_a_plain_map() {
        let geometry = Geometry::new(Dimensions {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks: 50,
            pages_per_block: 6,
            page_bytes: 512,
            spare_bytes: 32,
        })
        .unwrap();
        let mut map = LogPages::new(geometry, 10);
        let slots: Vec<u32> = (0..10).map(|i| map.open(BlockId(40 - i)).unwrap()).collect();
        assert_eq!(map.open(BlockId(1)), None);
        let mut model = BTreeMap::new();
        let mut state = 7_u32;
        for _ in 0..5000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (lpn, entry) = (Lpn((state >> 8) % 90), (state >> 16) % 60);
            let (slot, offset) = (slots[entry as usize / 6], entry % 6);
            let ppn = geometry.page_at(BlockId(40 - entry / 6), offset);
            assert_eq!(map.remove(lpn), model.remove(&lpn));
            if map.at(slot, offset).is_none() {
                map.insert(slot, offset, lpn);
                model.insert(lpn, ppn);
            }
            assert_eq!(map.find(lpn), model.get(&lpn).copied());
        }
        for i in 0..90 {
            assert_eq!(map.find(Lpn(i)), model.get(&Lpn(i)).copied());
        }
    }
}
