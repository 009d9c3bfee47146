//! The translation table in flash, with a cache of entries in RAM (DFTL; GeckoFTL, section 4).
//!
//! 1. Translation page t holds the entries of logical pages t·n … t·n + n - 1, four bytes each; the global mapping
//!    directory (GMD) in RAM says where each translation page is.
//! 2. A lookup that misses the cache reads one translation page and caches the entry, clean.
//! 3. A write caches an entry, dirty. Unless `LAZY` (DFTL) a miss reads the
//!    translation page first and reports the old copy at once. If `LAZY` (GeckoFTL, section 4.1) the entry gets the UIP flag:
//!    its before-image is reported when the entry is synchronised.
//! 4. When the cache is full its least recently used entry leaves. If it is dirty, its translation
//!    page is synchronised: read, brought up to date with *every* dirty entry of it, and programmed.
//! 5. With [`CachedOptions::checkpoints`], after every C insertions and updates a symbol enters the LRU order and
//!    every dirty entry older than the symbol before it is synchronised (GeckoFTL, section 4.3). So no
//!    page written before the last checkpoint but one has an entry that is only in RAM.

mod cmt;

use super::{Mapping, is_page};
use crate::contract::{FtlError, RamItem, RamReport};
use crate::engine::core::Context;
use crate::flash::Purpose;
use crate::validity::Validity;
use alloc::vec::Vec;
use cmt::{Cmt, Slot};
use nand::{Lpn, Nand, PageKind, Ppn, Spare};

/// Bytes of a mapping entry in flash.
const ENTRY_BYTES: usize = 4;

/// Translation pages that one step of a checkpoint synchronises at most before space is looked after again.
const CHECKPOINT_STEP: u32 = 16;

/// How a cached table behaves.
#[derive(Clone, Copy, Debug)]
pub struct CachedOptions {
    /// C: entries that the cache holds, at least 2.
    pub cache_entries: u32,
    /// Take runtime checkpoints.
    pub checkpoints: bool,
}

/// Where the checkpoints stand.
#[derive(Debug)]
struct Checkpoints {
    enabled: bool,
    /// Insertions and updates since the last checkpoint began.
    updates: u32,
    /// The symbol of the last checkpoint, if it is still in the cache.
    last: Option<Slot>,
    /// The symbol of the checkpoint in progress.
    current: Option<Slot>,
}

/// A translation table in flash behind a cache. `LAZY`: superseded pages are reported when their entry is synchronised.
#[derive(Debug)]
pub struct CachedMap<const LAZY: bool> {
    gmd: Vec<Ppn>,
    cmt: Cmt,
    checkpoints: Checkpoints,
    entries_per_page: u32,
    logical_pages: u32,
    buffer: Vec<u8>,
}

fn entry_at(page: &[u8], index: usize) -> Ppn {
    let at = index * ENTRY_BYTES;
    Ppn(u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]]))
}

impl<const LAZY: bool> CachedMap<LAZY> {
    /// The table of a device on which nothing was written.
    #[must_use]
    pub fn new(logical_pages: u32, page_bytes: u32, options: CachedOptions) -> Self {
        let entries_per_page = page_bytes / ENTRY_BYTES as u32;
        let pages = logical_pages.div_ceil(entries_per_page);
        Self {
            gmd: alloc::vec![Ppn::NONE; pages as usize],
            cmt: Cmt::new(options.cache_entries.max(2), pages, entries_per_page),
            checkpoints: Checkpoints { enabled: options.checkpoints, updates: 0, last: None, current: None },
            entries_per_page,
            logical_pages,
            buffer: alloc::vec![0; page_bytes as usize],
        }
    }

    /// Translation pages of a device of so many logical pages.
    #[must_use]
    pub const fn translation_pages(logical_pages: u32, page_bytes: u32) -> u32 {
        logical_pages.div_ceil(page_bytes / ENTRY_BYTES as u32)
    }

    /// What flash says of a logical page; reads its translation page.
    fn fetch<N: Nand, V>(&mut self, ctx: &mut Context<'_, N, V>, lpn: Lpn) -> Result<Ppn, FtlError> {
        let page = self.gmd[self.cmt.translation_page(lpn) as usize];
        if !page.is_some() {
            return Ok(Ppn::NONE);
        }
        let index = (lpn.0 % self.entries_per_page) as usize;
        let head = &mut self.buffer[..(index + 1) * ENTRY_BYTES];
        ctx.core.flash.read_meta(Purpose::Translation, page, head)?;
        Ok(entry_at(head, index))
    }

    /// Brings a translation page up to date with every dirty entry of it (GeckoFTL, section 4).
    fn synchronise<N: Nand, V: Validity>(
        &mut self,
        ctx: &mut Context<'_, N, V>,
        page: u32,
        purpose: Purpose,
    ) -> Result<(), FtlError> {
        let old = self.gmd[page as usize];
        if old.is_some() {
            ctx.core.flash.read_meta(purpose, old, &mut self.buffer)?;
        } else {
            self.buffer.fill(0xFF);
        }
        while let Some(slot) = self.cmt.first_dirty(page) {
            let index = (self.cmt.lpn(slot).0 % self.entries_per_page) as usize;
            let before = entry_at(&self.buffer, index);
            let uip = self.cmt.is_uip(slot);
            self.cmt.mark_clean(slot);
            let entry = self.cmt.ppn(slot).0.to_le_bytes();
            self.buffer[index * ENTRY_BYTES..][..ENTRY_BYTES].copy_from_slice(&entry);
            if uip && is_page(before) {
                ctx.page_died(before)?;
            }
        }
        let new = ctx.core.program_metadata(purpose, PageKind::Translation, page, 0, &self.buffer)?;
        self.gmd[page as usize] = new;
        if old.is_some() { ctx.translation_page_died(old) } else { Ok(()) }
    }

    /// Caches an entry that is not there, clean; whatever leaves is synchronised first.
    fn admit<N: Nand, V: Validity>(
        &mut self,
        ctx: &mut Context<'_, N, V>,
        lpn: Lpn,
        ppn: Ppn,
    ) -> Result<Slot, FtlError> {
        let mut leaving = None;
        if self.cmt.is_full() {
            while let Some(slot) = self.cmt.oldest() {
                if !self.cmt.is_symbol(slot) {
                    leaving = Some(slot);
                    break;
                }
                self.drop_symbol(slot);
            }
        }
        if let Some(slot) = leaving
            && self.cmt.is_dirty(slot)
        {
            let page = self.cmt.translation_page(self.cmt.lpn(slot));
            self.synchronise(ctx, page, Purpose::Translation)?;
        }
        Ok(self.cmt.insert(lpn, ppn, leaving))
    }

    /// A symbol reached the end of the order: every entry is younger than that checkpoint.
    fn drop_symbol(&mut self, slot: Slot) {
        self.cmt.remove_symbol(slot);
        let marks = &mut self.checkpoints;
        for symbol in [&mut marks.last, &mut marks.current] {
            if *symbol == Some(slot) {
                *symbol = None;
            }
        }
    }

    #[inline]
    fn note_update(&mut self) {
        self.checkpoints.updates += 1;
    }

    /// Translation pages that one step of a checkpoint synchronises.
    fn checkpoint_step(&self) -> u32 {
        CHECKPOINT_STEP.min(self.gmd.len() as u32)
    }

    /// Begins a checkpoint: its symbol enters the order.
    fn begin_checkpoint(&mut self) -> Slot {
        self.checkpoints.updates = 0;
        let which = u32::from(self.checkpoints.last == Some(Slot(self.cmt.capacity())));
        let symbol = self.cmt.push_symbol(which);
        self.checkpoints.current = Some(symbol);
        symbol
    }

    /// The oldest dirty entry that is older than the symbol of the last checkpoint.
    fn stale_entry(&self) -> Option<Slot> {
        let last = self.checkpoints.last?;
        let mut at = self.cmt.oldest();
        while let Some(slot) = at {
            if slot == last {
                return None;
            }
            if !self.cmt.is_symbol(slot) && self.cmt.is_dirty(slot) {
                return Some(slot);
            }
            at = self.cmt.newer(slot);
        }
        None
    }
}

impl<const LAZY: bool> Mapping for CachedMap<LAZY> {
    const LAZY: bool = LAZY;

    fn lookup<N: Nand, V: Validity>(&mut self, ctx: &mut Context<'_, N, V>, lpn: Lpn) -> Result<Ppn, FtlError> {
        if let Some(slot) = self.cmt.find(lpn) {
            self.cmt.touch(slot);
            return Ok(self.cmt.ppn(slot));
        }
        let ppn = self.fetch(ctx, lpn)?;
        if ppn.is_some() {
            self.admit(ctx, lpn, ppn)?;
        }
        Ok(ppn)
    }

    fn record<N: Nand, V: Validity>(
        &mut self,
        ctx: &mut Context<'_, N, V>,
        lpn: Lpn,
        ppn: Ppn,
    ) -> Result<(), FtlError> {
        self.note_update();
        if let Some(slot) = self.cmt.find(lpn) {
            let old = self.cmt.ppn(slot);
            self.cmt.set_ppn(slot, ppn);
            self.cmt.mark_dirty(slot, false);
            self.cmt.touch(slot);
            return if is_page(old) { ctx.page_died(old) } else { Ok(()) };
        }
        if LAZY {
            let slot = self.admit(ctx, lpn, ppn)?;
            let in_flash = self.gmd[self.cmt.translation_page(lpn) as usize].is_some();
            self.cmt.mark_dirty(slot, in_flash);
            return Ok(());
        }
        let old = self.fetch(ctx, lpn)?;
        let slot = self.admit(ctx, lpn, ppn)?;
        self.cmt.mark_dirty(slot, false);
        if is_page(old) { ctx.page_died(old) } else { Ok(()) }
    }

    /// A migration is treated like a write, but its before-image goes with its block: an entry that was not cached gets
    /// no UIP flag.
    fn moved<N: Nand, V: Validity>(
        &mut self,
        ctx: &mut Context<'_, N, V>,
        lpn: Lpn,
        from: Ppn,
        to: Ppn,
    ) -> Result<(), FtlError> {
        self.note_update();
        let slot = match self.cmt.find(lpn) {
            Some(slot) => {
                debug_assert!(self.cmt.ppn(slot) == from, "{lpn} was not at {from} when it moved");
                self.cmt.set_ppn(slot, to);
                self.cmt.touch(slot);
                slot
            }
            None => self.admit(ctx, lpn, to)?,
        };
        self.cmt.mark_dirty(slot, false);
        Ok(())
    }

    fn superseded(&mut self, lpn: Lpn, ppn: Ppn) -> bool {
        let Some(slot) = self.cmt.find(lpn) else { return false };
        if self.cmt.ppn(slot) == ppn {
            return false;
        }
        debug_assert!(self.cmt.is_uip(slot) || !LAZY, "{ppn} is neither the page of {lpn} nor its before-image");
        self.cmt.clear_uip(slot);
        true
    }

    fn owns(&self, ppn: Ppn, spare: &Spare) -> bool {
        spare.kind == PageKind::Translation && self.gmd.get(spare.tag as usize) == Some(&ppn)
    }

    fn page_moved(&mut self, to: Ppn, spare: &Spare) {
        self.gmd[spare.tag as usize] = to;
    }

    #[inline]
    fn due(&self) -> bool {
        self.checkpoints.enabled
            && (self.checkpoints.updates >= self.cmt.capacity() || self.checkpoints.current.is_some())
    }

    fn maintain<N: Nand, V: Validity>(&mut self, ctx: &mut Context<'_, N, V>) -> Result<(), FtlError> {
        let current = match self.checkpoints.current {
            Some(symbol) => symbol,
            None => self.begin_checkpoint(),
        };
        for _ in 0..self.checkpoint_step() {
            let Some(slot) = self.stale_entry() else {
                if let Some(last) = self.checkpoints.last.replace(current) {
                    self.cmt.remove_symbol(last);
                }
                self.checkpoints.current = None;
                return Ok(());
            };
            let page = self.cmt.translation_page(self.cmt.lpn(slot));
            self.synchronise(ctx, page, Purpose::Checkpoint)?;
        }
        Ok(())
    }

    fn reveal<N: Nand, V: Validity>(&mut self, ctx: &mut Context<'_, N, V>) -> Result<bool, FtlError> {
        let mut at = self.cmt.oldest();
        while let Some(slot) = at {
            if !self.cmt.is_symbol(slot) && self.cmt.is_uip(slot) {
                let page = self.cmt.translation_page(self.cmt.lpn(slot));
                self.synchronise(ctx, page, Purpose::Translation)?;
                return Ok(true);
            }
            at = self.cmt.newer(slot);
        }
        Ok(false)
    }

    fn reserve_pages(&self) -> u32 {
        self.checkpoint_step()
    }

    fn footprint_pages(&self) -> u32 {
        self.gmd.len() as u32
    }

    #[inline]
    fn hint(&self, lpn: Lpn) -> Ppn {
        self.cmt.find(lpn).map_or(Ppn::NONE, |slot| self.cmt.ppn(slot))
    }

    fn dump<N: Nand>(&self, nand: &mut N) -> Result<Vec<Ppn>, FtlError> {
        let mut table = Vec::with_capacity(self.logical_pages as usize);
        let mut page = alloc::vec![0; self.buffer.len()];
        for &at in &self.gmd {
            if at.is_some() {
                nand.read_meta(at, &mut page)?;
            } else {
                page.fill(0xFF);
            }
            table.extend((0..self.entries_per_page as usize).map(|i| entry_at(&page, i)));
        }
        table.truncate(self.logical_pages as usize);
        for (lpn, entry) in table.iter_mut().enumerate() {
            if let Some(slot) = self.cmt.find(Lpn(lpn as u32)) {
                *entry = self.cmt.ppn(slot);
            }
        }
        Ok(table)
    }

    fn ram(&self, report: &mut RamReport) {
        let (entries, index) = self.cmt.ram_bytes();
        let gmd = (self.gmd.capacity() * size_of::<Ppn>()) as u64;
        let item = |name, bytes| RamItem { name, bytes };
        report.push(item("gmd", gmd));
        report.push(item("cmt", entries));
        report.push(item("cmt_index", index));
        report.push(item("translation_buffer", self.buffer.capacity() as u64));
    }
}
