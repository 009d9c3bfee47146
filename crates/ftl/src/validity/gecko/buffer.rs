//! The buffer of entries that are not on flash yet (Algorithms 1 and 2).
//!
//! Entries lie in the order of their arrival; an open-addressing table with linear probing, at most
//! half full, finds them. They are sorted once, when the buffer is flushed.

use super::shape::{SLACK_BYTES, Shape};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use nand::{BlockId, Ppn};

/// Entries in RAM, by sub-entry number.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    /// Keys as on flash: sub-entry number × 2 + erase flag.
    keys: Box<[u32]>,
    bitmaps: Box<[u8]>,
    bitmap_bytes: usize,
    len: usize,
    /// One more than the index of the entry that hashes here, or 0.
    slots: Box<[u32]>,
    /// By how much a 32-bit hash is shifted to index `slots`.
    hash_shift: u32,
    /// After [`Buffer::sort`]: key × 2^32 + index, ascending; entries that say nothing are left
    /// out.
    order: Vec<u64>,
}

/// There is no room for a new entry; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

impl Buffer {
    pub fn new(shape: &Shape) -> Self {
        let entries = shape.buffer_entries as usize;
        let slots = (2 * entries).next_power_of_two();
        Self {
            keys: vec![0; entries].into_boxed_slice(),
            bitmaps: vec![0; entries * shape.bitmap_bytes + SLACK_BYTES].into_boxed_slice(),
            bitmap_bytes: shape.bitmap_bytes,
            len: 0,
            slots: vec![0; slots].into_boxed_slice(),
            hash_shift: 32 - slots.trailing_zeros(),
            order: Vec::with_capacity(entries),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// New entries for which there is room.
    pub fn room(&self) -> u32 {
        (self.keys.len() - self.len) as u32
    }

    /// The index of an entry, or the slot where it would be entered.
    #[inline]
    fn find(&self, id: u32) -> Result<usize, usize> {
        let mask = self.slots.len() - 1;
        let mut slot = (id.wrapping_mul(0x9E37_79B1) >> self.hash_shift) as usize & mask;
        loop {
            match self.slots[slot] {
                0 => return Err(slot),
                entry if self.keys[entry as usize - 1] >> 1 == id => return Ok(entry as usize - 1),
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    /// The index of an entry, which is made if need be.
    #[inline]
    fn find_or_insert(&mut self, id: u32) -> Result<usize, Full> {
        match self.find(id) {
            Ok(index) => Ok(index),
            Err(_) if self.len == self.keys.len() => Err(Full),
            Err(slot) => {
                self.keys[self.len] = id << 1;
                self.len += 1;
                self.slots[slot] = self.len as u32;
                debug_assert!(self.len <= self.keys.len() && self.find(id) == Ok(self.len - 1));
                Ok(self.len - 1)
            }
        }
    }

    /// Algorithm 1: a page died.
    ///
    /// # Errors
    /// [`Full`]; the caller flushes and tries again.
    #[inline]
    pub fn invalidate(&mut self, shape: &Shape, ppn: Ppn) -> Result<(), Full> {
        let (id, bit) = shape.locate(ppn);
        debug_assert!((bit as usize) < 8 * self.bitmap_bytes);
        let index = self.find_or_insert(id)?;
        self.bitmaps[index * self.bitmap_bytes + bit as usize / 8] |= 1 << (bit % 8);
        Ok(())
    }

    /// Algorithm 2: a block was erased. Its part 0 gets the erase flag; its other parts are blanked
    /// here and need no flag of their own.
    ///
    /// # Errors
    /// [`Full`]; the caller flushes and tries again.
    pub fn erased(&mut self, shape: &Shape, block: BlockId) -> Result<(), Full> {
        let first = shape.first_id(block);
        let marker = self.find_or_insert(first)?;
        self.keys[marker] = first << 1 | 1;
        for id in first..=shape.last_id(block) {
            if let Ok(index) = self.find(id) {
                let start = index * self.bitmap_bytes;
                self.bitmaps[start..start + self.bitmap_bytes].fill(0);
            }
        }
        Ok(())
    }

    /// Whether there is an entry.
    pub fn has(&self, id: u32) -> bool {
        self.find(id).is_ok()
    }

    /// An entry's erase flag, and where its bitmap begins in [`Buffer::bitmaps`].
    pub fn get(&self, id: u32) -> Option<(bool, usize)> {
        let index = self.find(id).ok()?;
        Some((self.keys[index] & 1 != 0, index * self.bitmap_bytes))
    }

    /// The bytes that hold the bitmaps.
    #[inline]
    pub fn bitmaps(&self) -> &[u8] {
        &self.bitmaps
    }

    fn bitmap(&self, index: usize) -> &[u8] {
        &self.bitmaps[index * self.bitmap_bytes..][..self.bitmap_bytes]
    }

    /// Prepares [`Buffer::sorted`].
    pub fn sort(&mut self) {
        self.order.clear();
        for index in 0..self.len {
            let key = self.keys[index];
            if key & 1 != 0 || self.bitmap(index).iter().any(|&byte| byte != 0) {
                self.order.push(u64::from(key) << 32 | index as u64);
            }
        }
        self.order.sort_unstable();
        debug_assert!(self.order.is_sorted_by(|a, b| a >> 33 < b >> 33), "a sub-entry has two entries");
    }

    /// Entries that [`Buffer::sort`] found to say something.
    pub fn sorted_len(&self) -> usize {
        self.order.len()
    }

    /// The key of an entry by its rank, and where its bitmap begins; `None` beyond the last.
    #[inline]
    pub fn sorted(&self, rank: usize) -> Option<(u32, usize)> {
        let entry = *self.order.get(rank)?;
        Some(((entry >> 32) as u32, entry as u32 as usize * self.bitmap_bytes))
    }

    /// Forgets every entry.
    pub fn clear(&mut self) {
        self.bitmaps[..self.len * self.bitmap_bytes].fill(0);
        self.slots.fill(0);
        self.order.clear();
        self.len = 0;
        debug_assert!(self.bitmaps.iter().all(|byte| *byte == 0));
    }

    /// Bytes of RAM it holds.
    pub fn ram_bytes(&self) -> u64 {
        let bytes = size_of_val(&*self.keys)
            + size_of_val(&*self.bitmaps)
            + size_of_val(&*self.slots)
            + self.order.capacity() * size_of::<u64>();
        bytes as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::GeckoOptions;

    #[test]
    fn an_erase_blanks_every_part_and_marks_the_first() {
        let shape = Shape::new(4096, 64, 128, &GeckoOptions::default()).unwrap();
        let mut buffer = Buffer::new(&shape);
        for offset in [0, 33, 127] {
            buffer.invalidate(&shape, Ppn(5 * 128 + offset)).unwrap();
        }
        buffer.erased(&shape, BlockId(5)).unwrap();
        buffer.invalidate(&shape, Ppn(5 * 128 + 34)).unwrap();
        let first = shape.first_id(BlockId(5));
        let entry = |id| buffer.get(id).map(|(flag, at)| (flag, shape.bitmap_word(buffer.bitmaps(), at, 0)));
        assert_eq!(entry(first), Some((true, 0)));
        assert_eq!(entry(first + 1), Some((false, 1 << 2)));
        assert_eq!(buffer.get(first + 2), None);
        buffer.sort();
        assert_eq!(buffer.sorted_len(), 2, "the blank part 3 is left out");
        buffer.clear();
        assert_eq!(buffer.get(first), None);
    }

    #[test]
    fn a_full_buffer_takes_what_it_has_and_refuses_the_rest_unchanged() {
        let shape = Shape::new(512, 1024, 32, &GeckoOptions::default()).unwrap();
        let mut buffer = Buffer::new(&shape);
        for block in 0..shape.buffer_entries {
            buffer.invalidate(&shape, Ppn(block * 32)).unwrap();
        }
        assert_eq!(buffer.invalidate(&shape, Ppn(31)), Ok(()));
        assert_eq!(buffer.invalidate(&shape, Ppn(1023 * 32)), Err(Full));
        assert_eq!(buffer.erased(&shape, BlockId(1023)), Err(Full));
        assert_eq!(buffer.erased(&shape, BlockId(0)), Ok(()));
        assert_eq!(buffer.get(1023), None);
    }
}
