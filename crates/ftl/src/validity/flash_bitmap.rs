//! Page validity bitmap in flash: one bit a page of the device, nothing buffered.
//!
//! The store of µ-FTL (Lee et al., EMSOFT 2008) and the baseline that Logarithmic Gecko is measured
//! against (GeckoFTL, sections 2 and 5.1, Table 1). Not for write-heavy work: every dead page costs
//! a page program.
//!
//! 1. The bits lie flat over physical page numbers, page_bytes·8 of them on a page of the bitmap;
//!    set means dead. A directory in RAM says where each of those pages is; one that was never
//!    written holds no set bit.
//! 2. A report reads the page with its bit and programs it anew elsewhere: one read, one program.
//! 3. A query reads the page or pages with the block's bits: one, unless the block straddles two.
//! 4. An erase clears the block's bits at once, by another read and program (one each a collection,
//!    so a hundredth of what the reports cost). If no bit was set nothing is programmed.
//!
//! An operation that fails half-way leaves the page being changed in RAM; it is programmed before
//! another is read, or by a flush.
//!
//! Power loss: a page of the bitmap counts from its program on; before it the old one does. Nothing
//! is only in RAM but the directory, which the spare areas (tag: index of the page) give back. What
//! can be missing afterwards is the report under way, and an erase that was done and not reported:
//! then bits stand for pages that are erased.

use super::{Entry, MetaStore, PageSet, Site, Store, Validity};
use crate::bound::Most;
use crate::contract::{FtlError, RamItem, RamReport};
use crate::flash::Purpose;
use crate::inspect::Inspector;
use crate::saved::{Sink, Source};
use alloc::vec::Vec;
use core::ops::Range;
use nand::{BlockId, PageKind, Ppn, Spare};

/// A page validity bitmap in flash.
#[derive(Clone, Debug)]
pub struct FlashBitmap {
    directory: Vec<Ppn>,
    /// The page being changed or asked.
    page: Vec<u8>,
    pages_per_block: usize,
    blocks: u32,
    reports: u32,
    /// The index of what is in `page`, if that is not on flash yet.
    unsaved: Option<usize>,
}

impl FlashBitmap {
    /// The bitmap of a device on which no page is dead. `reports` is the most pages that die
    /// between two chances to collect garbage.
    #[must_use]
    pub fn new(blocks: u32, pages_per_block: u32, page_bytes: u32, reports: u32) -> Self {
        let bits = blocks as usize * pages_per_block as usize;
        Self {
            directory: alloc::vec![Ppn::NONE; bits.div_ceil(page_bytes as usize * 8)],
            page: alloc::vec![0; page_bytes as usize],
            pages_per_block: pages_per_block as usize,
            blocks,
            reports,
            unsaved: None,
        }
    }

    /// The bitmap that is on flash. `found` are the pages of kind [`PageKind::Validity`] that can
    /// be read, in any order, dead ones included; of each page of the bitmap the one programmed
    /// last counts.
    ///
    /// Blocks that hold no page, or whose erase may not have been reported, can have bits that mean
    /// nothing any more: the caller says [`Validity::erased`] of each before a page of it is
    /// programmed. It costs a read if no bit was set.
    ///
    /// # Errors
    /// [`FtlError::Damaged`] if a page lies outside the bitmap of this device.
    pub fn recover(site: &Site, found: impl IntoIterator<Item = (Ppn, Spare)>) -> Result<Self, FtlError> {
        let mut bitmap = Self::make(site)?;
        let mut newest = alloc::vec![0; bitmap.directory.len()];
        for (ppn, spare) in found.into_iter().filter(|(_, spare)| spare.kind == PageKind::Validity) {
            let Some(seq) = newest.get_mut(spare.tag as usize) else {
                let reason = "it lies outside the bitmap of this device";
                return Err(FtlError::Damaged { structure: "page validity bitmap", ppn, reason });
            };
            if spare.seq > *seq {
                *seq = spare.seq;
                bitmap.directory[spare.tag as usize] = ppn;
            }
        }
        Ok(bitmap)
    }

    /// Where its live pages lie.
    pub fn live_pages(&self) -> impl Iterator<Item = Ppn> {
        self.directory.iter().copied().filter(|ppn| ppn.is_some())
    }

    const fn page_bits(&self) -> usize {
        self.page.len() * 8
    }

    /// Brings a page of the bitmap into `page`.
    fn bring<S: MetaStore>(&mut self, store: &mut S, purpose: Purpose, index: usize) -> Result<(), FtlError> {
        debug_assert!(self.directory.len() == (self.blocks as usize * self.pages_per_block).div_ceil(self.page_bits()));
        match self.unsaved {
            Some(unsaved) if unsaved == index => return Ok(()),
            Some(unsaved) => self.put_back(store, unsaved)?,
            None => {}
        }
        let at = self.directory[index];
        debug_assert!(self.unsaved.is_none(), "a page that is not on flash would be forgotten");
        if at.is_some() {
            store.fetch(purpose, at, &mut self.page)?;
        } else {
            self.page.fill(0);
        }
        Ok(())
    }

    /// Programs `page` as the page of the bitmap with this index.
    fn put_back<S: MetaStore>(&mut self, store: &mut S, index: usize) -> Result<(), FtlError> {
        let new = store.append(Purpose::Validity, index as u32, 0, &self.page)?;
        self.unsaved = None;
        let old = core::mem::replace(&mut self.directory[index], new);
        debug_assert!(old != new, "page {index} of the bitmap was at {new}");
        if old.is_some() {
            store.discard(old);
        }
        Ok(())
    }

    /// The pages of the bitmap that hold bits of a block, with the bits and the offset of the first
    /// of them in the block.
    fn pieces(&self, block: BlockId) -> impl Iterator<Item = (usize, Range<usize>, u32)> + use<> {
        let (page_bits, first) = (self.page_bits(), block.index() * self.pages_per_block);
        let end = first + self.pages_per_block;
        (first / page_bits..=(end - 1) / page_bits).map(move |index| {
            let start = first.max(index * page_bits);
            let bits = start - index * page_bits..end.min((index + 1) * page_bits) - index * page_bits;
            (index, bits, (start - first) as u32)
        })
    }

    fn is_set(&self, bit: usize) -> bool {
        self.page[bit / 8] >> (bit % 8) & 1 != 0
    }
}

impl Store for FlashBitmap {
    const ENTRY: Entry = Entry {
        name: "flash-bitmap",
        summary: "a bit a page in flash, nothing buffered: a read and a program for each dead page",
        source: "µ-FTL: Lee et al., EMSOFT 2008; the baseline of GeckoFTL's paper, section 5.1",
        settings: &[],
    };

    fn make(site: &Site) -> Result<Self, FtlError> {
        Ok(Self::new(site.blocks, site.pages_per_block, site.page_bytes, site.reports))
    }
}

impl Validity for FlashBitmap {
    /// If it did, every update of a translation page would cost one of the bitmap.
    #[inline]
    fn tracks_metadata(&self) -> bool {
        false
    }

    #[inline]
    fn is_buffered(&self) -> bool {
        false
    }

    /// One program for all blocks of a page of the bitmap, if blocks come in order.
    fn fill<S: MetaStore>(&mut self, store: &mut S, block: BlockId, dead: &PageSet) -> Result<(), FtlError> {
        if dead.count() == 0 {
            return Ok(());
        }
        for (index, bits, first) in self.pieces(block) {
            self.bring(store, Purpose::Validity, index)?;
            debug_assert!(bits.end <= self.page_bits() && !bits.is_empty());
            for (_, bit) in (first..).zip(bits).filter(|(offset, _)| dead.contains(*offset)) {
                self.page[bit / 8] |= 1 << (bit % 8);
            }
            self.unsaved = Some(index);
        }
        Ok(())
    }

    fn invalidate<S: MetaStore>(&mut self, store: &mut S, ppn: Ppn) -> Result<(), FtlError> {
        let (index, bit) = (ppn.index() / self.page_bits(), ppn.index() % self.page_bits());
        self.bring(store, Purpose::Validity, index)?;
        debug_assert!(index < self.directory.len() && bit < self.page_bits());
        if self.is_set(bit) {
            // Two entries led there: only an image that contradicts itself says so.
            return Ok(());
        }
        self.page[bit / 8] |= 1 << (bit % 8);
        self.unsaved = Some(index);
        self.put_back(store, index)
    }

    fn erased<S: MetaStore>(&mut self, store: &mut S, block: BlockId, _: u64) -> Result<(), FtlError> {
        for (index, bits, _) in self.pieces(block) {
            if !self.directory[index].is_some() {
                continue;
            }
            self.bring(store, Purpose::Validity, index)?;
            let mut changed = false;
            for bit in bits {
                changed |= self.is_set(bit);
                self.page[bit / 8] &= !(1 << (bit % 8));
            }
            if changed {
                self.unsaved = Some(index);
                self.put_back(store, index)?;
            }
        }
        Ok(())
    }

    fn query<S: MetaStore>(&mut self, store: &mut S, block: BlockId, dead: &mut PageSet) -> Result<(), FtlError> {
        for (index, bits, first) in self.pieces(block) {
            self.bring(store, Purpose::ValidityQuery, index)?;
            debug_assert!(bits.end <= self.page_bits() && !bits.is_empty());
            for (offset, bit) in (first..).zip(bits) {
                if self.is_set(bit) {
                    dead.insert(offset);
                }
            }
        }
        Ok(())
    }

    fn owns(&self, ppn: Ppn, spare: &Spare) -> bool {
        spare.kind == PageKind::Validity && self.directory.get(spare.tag as usize) == Some(&ppn)
    }

    fn find_own(&self, wanted: impl Fn(Ppn) -> bool) -> Option<Ppn> {
        self.live_pages().find(|ppn| wanted(*ppn))
    }

    fn moved(&mut self, from: Ppn, to: Ppn, spare: &Spare) {
        debug_assert!(self.owns(from, spare), "{from} is no page of the bitmap");
        debug_assert!(from != to);
        self.directory[spare.tag as usize] = to;
    }

    /// A page of the bitmap that was being programmed when power was cut may be complete and is not
    /// part of it.
    fn saved_bytes(&self) -> u64 {
        4 * self.directory.len() as u64
    }

    fn save(&self, sink: &mut dyn Sink) -> Result<(), FtlError> {
        self.directory.iter().try_for_each(|ppn| sink.put_u32(ppn.0))
    }

    fn load(&mut self, source: &mut Source<'_>) -> bool {
        let pages = self.blocks * self.pages_per_block as u32;
        self.directory.iter_mut().all(|ppn| {
            let saved = source.take_u32().map(Ppn).filter(|ppn| !ppn.is_some() || ppn.0 < pages);
            *ppn = saved.unwrap_or(Ppn::NONE);
            saved.is_some()
        })
    }

    /// Every report is durable when it returns; this is for what it was filled with, and for a
    /// report that failed half-way.
    fn flush<S: MetaStore>(&mut self, store: &mut S) -> Result<(), FtlError> {
        self.unsaved.map_or(Ok(()), |index| self.put_back(store, index))
    }

    /// Always 0: nothing waits.
    fn flushes(&self) -> u64 {
        0
    }

    /// Each report, and each page of the bitmap with bits of a block that is erased, costs a read
    /// and a program.
    fn most_work(&self, reports: u64, erases: u64, _: u64) -> Most {
        let pages = reports + erases * u64::from(self.most_query_reads());
        Most::pages(pages, pages)
    }

    fn most_query_reads(&self) -> u32 {
        let straddles = !self.page_bits().is_multiple_of(self.pages_per_block);
        self.pages_per_block.div_ceil(self.page_bits()) as u32 + u32::from(straddles)
    }

    fn reserve_pages(&self) -> u32 {
        self.reports + self.pages_per_block.div_ceil(self.page_bits()) as u32 + 1
    }

    /// One more than the bitmap has pages: the new copy lives before the old one dies.
    fn footprint_pages(&self) -> u32 {
        self.directory.len() as u32 + 1
    }

    fn inspect(&self, inspector: &mut dyn Inspector) {
        self.directory.iter().filter(|ppn| ppn.is_some()).for_each(|ppn| inspector.metadata(*ppn));
    }

    fn ram(&self, report: &mut RamReport) {
        let directory = (self.directory.capacity() * size_of::<Ppn>()) as u64;
        report.push(RamItem { name: "pvb_directory", bytes: directory });
        report.push(RamItem { name: "pvb_buffer", bytes: self.page.capacity() as u64 });
    }
}
