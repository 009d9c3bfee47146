//! Page validity bitmap in RAM (PVB): one bit a page of the device.
//!
//! The store of page-map FTLs, DFTL and LazyFTL, and the yardstick of GeckoFTL (section 2): every
//! report and query is free of flash operations, at K·B/8 bytes of RAM. It is lost with power;
//! those who use it rebuild it. Not for devices whose bitmap outgrows the controller: 64 MiB at 2
//! TiB.
//!
//! The bits are one flat array over physical page numbers, so that a report is a shift, a mask and
//! an OR, whatever the number of pages in a block; only queries and erases meet blocks that are not
//! whole words.

use super::{Entry, MetaStore, PageSet, Site, Store, Validity};
use crate::bound::Most;
use crate::contract::{FtlError, RamItem, RamReport};
use crate::saved::{Sink, Source};
use alloc::boxed::Box;
use nand::{BlockId, Ppn, Spare};

/// Bits in a word of the bitmap.
const WORD_BITS: usize = u64::BITS as usize;

/// A page validity bitmap in RAM; set means dead.
#[derive(Clone, Debug)]
pub struct RamBitmap {
    words: Box<[u64]>,
    pages_per_block: u32,
}

impl RamBitmap {
    /// The bitmap of a device on which no page is dead.
    #[must_use]
    pub fn new(blocks: u32, pages_per_block: u32) -> Self {
        let pages = blocks as usize * pages_per_block as usize;
        Self { words: alloc::vec![0; pages.div_ceil(WORD_BITS)].into_boxed_slice(), pages_per_block }
    }

    /// Whether a page is dead.
    #[inline]
    #[must_use]
    pub fn is_dead(&self, ppn: Ppn) -> bool {
        self.words[ppn.index() / WORD_BITS] >> (ppn.index() % WORD_BITS) & 1 != 0
    }

    /// Says that a page is dead; [`Validity::invalidate`] without a store. Twice only if the image
    /// that was mounted contradicts itself.
    #[inline]
    pub fn mark(&mut self, ppn: Ppn) {
        self.words[ppn.index() / WORD_BITS] |= 1 << (ppn.index() % WORD_BITS);
    }

    /// Says that a page that was thought dead lives.
    #[inline]
    pub fn revive(&mut self, ppn: Ppn) {
        self.words[ppn.index() / WORD_BITS] &= !(1 << (ppn.index() % WORD_BITS));
    }

    /// The first bit of a block.
    #[inline]
    fn first_bit(&self, block: BlockId) -> usize {
        block.index() * self.pages_per_block as usize
    }

    /// Forgets what was said of a block; [`Validity::erased`] without a store.
    #[inline]
    pub fn reset(&mut self, block: BlockId) {
        let (mut bit, end) = (self.first_bit(block), self.first_bit(block) + self.pages_per_block as usize);
        while bit < end {
            let shift = bit % WORD_BITS;
            let count = (WORD_BITS - shift).min(end - bit);
            debug_assert!(count > 0 && count <= WORD_BITS);
            self.words[bit / WORD_BITS] &= !(u64::MAX >> (WORD_BITS - count) << shift);
            bit += count;
        }
    }

    /// Adds the dead pages of a block to `dead`; [`Validity::query`] without a store.
    #[inline]
    pub fn collect(&self, block: BlockId, dead: &mut PageSet) {
        let first = self.first_bit(block);
        let mut left = self.pages_per_block as usize;
        for (index, out) in dead.words_mut().iter_mut().enumerate() {
            let (at, shift) = (first / WORD_BITS + index, first % WORD_BITS);
            let count = left.min(WORD_BITS);
            let mut word = self.words[at] >> shift;
            if shift + count > WORD_BITS {
                word |= self.words[at + 1] << (WORD_BITS - shift);
            }
            *out |= word & u64::MAX >> (WORD_BITS - count);
            left -= count;
        }
        debug_assert!(left == 0, "{left} pages of {block} were not looked at");
    }
}

/// A store that is a bitmap in RAM, as a mount fills it.
pub trait HoldsBitmap: Validity {
    /// The store that is this bitmap.
    fn of_bitmap(bitmap: RamBitmap) -> Self;

    /// The bitmap of a store that [`HoldsBitmap::of_bitmap`] made.
    fn bitmap(&self) -> &RamBitmap;

    /// The same, to change it.
    fn bitmap_mut(&mut self) -> &mut RamBitmap;
}

impl HoldsBitmap for RamBitmap {
    #[inline]
    fn of_bitmap(bitmap: RamBitmap) -> Self {
        bitmap
    }

    #[inline]
    fn bitmap(&self) -> &RamBitmap {
        self
    }

    #[inline]
    fn bitmap_mut(&mut self) -> &mut RamBitmap {
        self
    }
}

impl Store for RamBitmap {
    const ENTRY: Entry = Entry {
        name: "ram-bitmap",
        summary: "a bit a page in RAM (PVB): no flash operation, lost with power",
        source: "DFTL, LazyFTL; GeckoFTL's paper, section 2",
        settings: &[],
    };

    fn make(site: &Site) -> Result<Self, FtlError> {
        Ok(Self::new(site.blocks, site.pages_per_block))
    }
}

impl Validity for RamBitmap {
    #[inline]
    fn tracks_metadata(&self) -> bool {
        true
    }

    #[inline]
    fn is_buffered(&self) -> bool {
        false
    }

    #[inline]
    fn invalidate<S: MetaStore>(&mut self, _: &mut S, ppn: Ppn) -> Result<(), FtlError> {
        self.mark(ppn);
        Ok(())
    }

    #[inline]
    fn erased<S: MetaStore>(&mut self, _: &mut S, block: BlockId, _: u64) -> Result<(), FtlError> {
        self.reset(block);
        Ok(())
    }

    #[inline]
    fn query<S: MetaStore>(&mut self, _: &mut S, block: BlockId, dead: &mut PageSet) -> Result<(), FtlError> {
        self.collect(block, dead);
        Ok(())
    }

    /// It writes no pages.
    fn owns(&self, _: Ppn, _: &Spare) -> bool {
        false
    }

    /// It has no pages that could move.
    fn moved(&mut self, from: Ppn, _: Ppn, _: &Spare) {
        debug_assert!(false, "a bitmap in RAM has no page at {from}");
    }

    /// Nothing to do: it never becomes durable.
    fn flush<S: MetaStore>(&mut self, _: &mut S) -> Result<(), FtlError> {
        Ok(())
    }

    /// Always 0: no report is ever durable.
    fn flushes(&self) -> u64 {
        0
    }

    fn most_work(&self, _: u64, _: u64, _: u64) -> Most {
        Most::NONE
    }

    fn most_query_reads(&self) -> u32 {
        0
    }

    fn reserve_pages(&self) -> u32 {
        0
    }

    fn footprint_pages(&self) -> u32 {
        0
    }

    fn saved_bytes(&self) -> u64 {
        core::mem::size_of_val(&*self.words) as u64
    }

    fn save(&self, sink: &mut dyn Sink) -> Result<(), FtlError> {
        self.words.iter().try_for_each(|word| sink.put(&word.to_le_bytes()))
    }

    fn load(&mut self, source: &mut Source<'_>) -> bool {
        let Some(bytes) = source.take(core::mem::size_of_val(&*self.words)) else { return false };
        for (word, bytes) in self.words.iter_mut().zip(bytes.chunks_exact(WORD_BITS / 8)) {
            *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        }
        true
    }

    #[inline]
    fn hint(&self, ppn: Ppn) {
        core::hint::black_box(self.words[ppn.index() / WORD_BITS]);
    }

    fn ram(&self, report: &mut RamReport) {
        report.push(RamItem { name: "pvb", bytes: core::mem::size_of_val(&*self.words) as u64 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nand::{Flags, PageKind};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_page_on_flash_is_one_of_a_bitmap_in_ram() {
        let bitmap = RamBitmap::new(4, 4);
        let spare = Spare {
            kind: PageKind::Validity,
            tag: 0,
            seq: 1,
            erase_count: 0,
            erased_at: 0,
            aux: 0,
            flags: Flags::NONE,
        };
        assert!((0..16).all(|ppn| !bitmap.owns(Ppn(ppn), &spare)));
        assert_eq!((bitmap.footprint_pages(), bitmap.reserve_pages()), (0, 0));
    }

    proptest! {
        #[test]
        fn agrees_with_a_set_of_pages(
            pages_per_block in 1_u32..200,
            steps in prop::collection::vec((any::<bool>(), any::<u32>()), 1..300),
        ) {
            const BLOCKS: u32 = 5;
            let mut bitmap = RamBitmap::new(BLOCKS, pages_per_block);
            let mut model = BTreeSet::new();
            for (erase, number) in steps {
                let ppn = Ppn(number % (BLOCKS * pages_per_block));
                let block = BlockId(ppn.0 / pages_per_block);
                if erase {
                    bitmap.reset(block);
                    model.retain(|p| p / pages_per_block != block.0);
                } else if model.insert(ppn.0) {
                    bitmap.mark(ppn);
                }
            }
            for block in 0..BLOCKS {
                let mut dead = PageSet::new(pages_per_block);
                bitmap.collect(BlockId(block), &mut dead);
                for offset in 0..pages_per_block {
                    prop_assert_eq!(dead.contains(offset), model.contains(&(block * pages_per_block + offset)));
                }
                prop_assert_eq!(dead.count() as usize, model.iter().filter(|&p| p / pages_per_block == block).count());
            }
        }
    }

    #[test]
    fn ram_is_a_bit_a_page() {
        let mut report = RamReport::new();
        RamBitmap::new(1024, 128).ram(&mut report);
        assert_eq!(report, [RamItem { name: "pvb", bytes: 1024 * 128 / 8 }]);
    }
}
