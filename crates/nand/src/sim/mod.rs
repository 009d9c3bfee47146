//! A simulated device of any size: host pages keep a [`Stamp`], metadata pages their bytes.
//!
//! # How it is laid out
//! A page of host data is eight bytes: its tag, its sequence number less that of the block's first
//! page, the version of its stamp. Auxiliary bits are kept beside these for blocks in which any
//! page has some, and so is the upper half of that number for blocks that are filled slowly:
//! fourteen bytes. The rest of its spare area is the same for the whole block and kept there. A
//! page that does not fit this form (metadata; a tag that is not the stamp's page; a spare area
//! that disagrees with the block's; flags) is kept as a full record on the side. An erase forgets a
//! block by resetting one counter: cells beyond it are never looked at.

mod cell;
mod delta;
mod slab;

use crate::addr::{BlockId, Lpn, Ppn};
use crate::contract::{Nand, Snapshot, Stamp};
use crate::error::{Law, NandError};
use crate::flags::Flags;
use crate::geometry::{Capabilities, Geometry};
use crate::laws::{self, BlockState, illegal, illegal_block};
use crate::page::MetaPage;
use crate::spare::{PageKind, Spare};
use alloc::vec;
use alloc::vec::Vec;
use cell::{Cell, Extra, NOTHING, PerPage, RECORD, SEQ_BITS};
use core::ops::Range;
use slab::{Body, Bytes, Record, Slab};

/// One block: its cells, and what its compact pages share.
#[derive(Clone, Debug)]
struct Block {
    cells: PerPage<Cell>,
    /// What cells of compact pages have no room for, if the state is marked; else there is none of
    /// it.
    extra: PerPage<Extra>,
    /// Sequence number of the page programmed first since the last erase.
    base_seq: u64,
    /// From the spare area of that page, as `erased_at`.
    erase_count: u32,
    erased_at: u32,
    /// Noted if any of the cells is a full record.
    state: BlockState,
}

impl Block {
    #[inline]
    fn cell(&self, offset: u32) -> Cell {
        if offset < self.state.end() { self.cells.get(offset) } else { Cell::ERASED }
    }

    /// The compact form of a page, if it has one.
    #[inline]
    fn compact(&self, data: Stamp, spare: &Spare) -> Option<(Cell, Extra)> {
        let delta = spare.seq.wrapping_sub(self.base_seq);
        (spare.kind as u8 == PageKind::User as u8
            && spare.tag == data.lpn.0
            && spare.erase_count == self.erase_count
            && spare.erased_at == self.erased_at
            && delta >> (SEQ_BITS + u16::BITS) == 0)
            .then(|| {
                let seq_low = (delta & ((1 << SEQ_BITS) - 1)) as u16;
                let extra = Extra { aux: spare.aux, seq_high: (delta >> SEQ_BITS) as u16 };
                (Cell { tag: spare.tag, seq_low, version: data.version }, extra)
            })
    }

    /// The spare area of a compact page.
    #[inline]
    fn spare_of(&self, offset: u32, cell: Cell) -> Spare {
        debug_assert!(cell.seq_low < 1 << SEQ_BITS && offset < self.state.end());
        let extra = if self.state.is_marked() { self.extra.get(offset) } else { Extra::default() };
        Spare {
            kind: PageKind::User,
            tag: cell.tag,
            seq: self.base_seq + (u64::from(extra.seq_high) << SEQ_BITS | u64::from(cell.seq_low)),
            erase_count: self.erase_count,
            erased_at: self.erased_at,
            aux: extra.aux,
            flags: Flags::NONE,
        }
    }

    /// Keeps what the cell of a compact page has no room for.
    fn keep_extra(&mut self, pages: u32, offset: u32, extra: Extra) {
        if extra.is_none() && !self.state.is_marked() {
            return;
        }
        let end = if self.state.is_marked() { self.state.end() } else { 0 };
        let kept = self.extra.own(pages, end, Extra::default());
        if !self.state.is_marked() {
            kept[..self.state.end() as usize].fill(Extra::default());
            self.state.mark();
        }
        kept[offset as usize] = extra;
        debug_assert!(self.state.is_marked() && self.extra.get(offset) == extra);
    }
}

/// Where the extra of a compact page goes: nowhere if there is none in its block. `None` if there
/// is no place for it yet.
#[inline(always)]
fn extra_slot(kept: &mut PerPage<Extra>, state: BlockState, offset: u32, extra: Extra) -> Option<Option<&mut Extra>> {
    match kept {
        PerPage::Owned(kept) if state.is_marked() => kept.get_mut(offset as usize).map(Some),
        _ => (extra.is_none() && !state.is_marked()).then_some(None),
    }
}

/// What is to be programmed, when it is not known to be compact.
enum Content<'a> {
    Stamp(Stamp),
    Bytes(&'a [u8]),
    /// A buffer that may be exchanged.
    Page(&'a mut MetaPage),
    /// Those of a page being copied.
    Same(Bytes),
}

/// A simulated device that keeps a [`Stamp`] a page of host data.
///
/// It enforces the laws of [`Nand`] and never fails by itself; wrap it in [`crate::Faulty`] for
/// power cuts and worn pages. `Clone` copies; [`SimNand::snapshot`] shares.
#[derive(Clone, Debug)]
pub struct SimNand {
    geometry: Geometry,
    capabilities: Capabilities,
    blocks: Vec<Block>,
    erase_counts: Vec<u32>,
    slab: Slab,
}

impl SimNand {
    /// An erased device without bad blocks.
    #[must_use]
    pub fn new(geometry: Geometry, capabilities: Capabilities) -> Self {
        let block = Block {
            cells: PerPage::none(),
            extra: PerPage::none(),
            base_seq: 0,
            erase_count: 0,
            erased_at: 0,
            state: BlockState::default(),
        };
        let blocks = geometry.blocks() as usize;
        Self {
            geometry,
            capabilities,
            blocks: vec![block; blocks],
            erase_counts: vec![0; blocks],
            slab: Slab::default(),
        }
    }

    /// A copy of the device as it is now. Page contents are shared until either device writes to
    /// the block, so this takes time and memory by the block, not by the page.
    #[must_use]
    pub fn snapshot(&mut self) -> Self {
        for block in &mut self.blocks {
            block.cells.share();
            block.extra.share();
        }
        self.clone()
    }

    /// How often a block was erased; 0 for one outside the device.
    #[inline]
    #[must_use]
    pub fn erase_count(&self, block: BlockId) -> u32 {
        self.erase_counts.get(block.index()).copied().unwrap_or(0)
    }

    /// How often each block was erased, by block.
    #[inline]
    #[must_use]
    pub fn erase_counts(&self) -> &[u32] {
        &self.erase_counts
    }

    /// One more than the highest page programmed in a block since it was erased, or 0.
    #[must_use]
    pub fn programmed_end(&self, block: BlockId) -> u32 {
        self.blocks.get(block.index()).map_or(0, |b| b.state.end())
    }

    /// Pages that are kept as full records because the compact form does not hold them.
    #[must_use]
    pub fn full_records(&self) -> usize {
        self.slab.live()
    }

    /// Heap memory of the device in bytes, what it shares with snapshots included; the
    /// allocator's own overhead is not.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let tables = self.blocks.capacity() * size_of::<Block>() + self.erase_counts.capacity() * size_of::<u32>();
        let cells: usize =
            self.blocks.iter().map(|block| block.cells.memory_bytes() + block.extra.memory_bytes()).sum();
        (tables + cells) as u64 + self.slab.memory_bytes()
    }

    /// The block of a page, its offset and its cell.
    #[inline]
    fn cell(&self, operation: &'static str, ppn: Ppn) -> Result<(&Block, u32, Cell), NandError> {
        let offset = self.geometry.offset_of(ppn);
        match self.blocks.get(self.geometry.block_of(ppn).index()) {
            Some(block) => Ok((block, offset, block.cell(offset))),
            None => Err(illegal(operation, ppn, Law::AddressInRange)),
        }
    }

    /// Programs host data, the common case in line: the next page of an open block, in compact
    /// form.
    #[inline(always)]
    fn put(&mut self, operation: &'static str, ppn: Ppn, data: Stamp, spare: &Spare) -> Result<(), NandError> {
        let offset = self.geometry.offset_of(ppn);
        if let Some(block) = self.blocks.get_mut(self.geometry.block_of(ppn).index())
            && block.state.is_next(offset)
            && let Some((cell, extra)) = block.compact(data, spare)
            && let PerPage::Owned(cells) = &mut block.cells
            && let Some(slot) = cells.get_mut(offset as usize)
            && let Some(beside) = extra_slot(&mut block.extra, block.state, offset, extra)
        {
            *slot = cell;
            if let Some(beside) = beside {
                *beside = extra;
            }
            block.state.advance();
            debug_assert!(block.spare_of(offset, block.cell(offset)) == Spare { flags: Flags::NONE, ..*spare });
            return Ok(());
        }
        self.put_any(operation, ppn, Content::Stamp(data), spare)
    }

    /// Programs anything anywhere, if the laws allow it.
    #[inline(never)]
    fn put_any(&mut self, operation: &'static str, ppn: Ppn, data: Content, spare: &Spare) -> Result<(), NandError> {
        debug_assert!(spare.seq < Spare::SEQ_END, "sequence number {} needs more than 48 bits", spare.seq);
        let (id, offset) = laws::locate(&self.geometry, operation, ppn)?;
        let block = &mut self.blocks[id.index()];
        let holds = block.cell(offset) != Cell::ERASED;
        block
            .state
            .check_program(self.capabilities.program_order, offset, holds)
            .map_err(|law| illegal(operation, ppn, law))?;
        let end = block.state.end();
        debug_assert!(!holds && !block.state.is_bad(), "{ppn} cannot be programmed");
        if end == 0 {
            (block.base_seq, block.erase_count, block.erased_at) = (spare.seq, spare.erase_count, spare.erased_at);
        }
        let compact = match data {
            Content::Stamp(stamp) => block.compact(stamp, spare),
            Content::Bytes(_) | Content::Page(_) | Content::Same(_) => None,
        };
        if let Some((_, extra)) = compact {
            block.keep_extra(self.geometry.pages_per_block(), offset, extra);
        }
        let cell = compact.map(|(cell, _)| cell).unwrap_or_else(|| {
            block.state.note();
            let body = match data {
                Content::Stamp(stamp) => Body::Stamp(stamp),
                Content::Bytes(bytes) => Body::Bytes(self.slab.keep(bytes)),
                Content::Page(page) => Body::Bytes(self.slab.take(page)),
                Content::Same(bytes) => Body::Bytes(bytes),
            };
            Cell::record(self.slab.insert(Record::new(spare, body)))
        });
        let cells = block.cells.own(self.geometry.pages_per_block(), end, Cell::ERASED);
        if offset > end {
            cells[end as usize..offset as usize].fill(Cell::ERASED);
        }
        cells[offset as usize] = cell;
        block.state.programmed(offset);
        debug_assert!(block.cell(offset) == cell && cell != Cell::ERASED);
        Ok(())
    }

    /// Frees the full records of a block about to be erased.
    #[cold]
    #[inline(never)]
    fn free_records(&mut self, id: BlockId) {
        let block = &self.blocks[id.index()];
        for cell in block.cells.head(block.state.end()) {
            if cell.seq_low == RECORD {
                debug_assert!(block.state.is_noted());
                self.slab.remove(cell.tag);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn read_record(&self, ppn: Ppn, index: u32, out: &mut Stamp) -> Result<Spare, NandError> {
        let record = self.slab.get(index);
        debug_assert!(record.spare().seq < Spare::SEQ_END);
        match record.body {
            Body::Stamp(stamp) => {
                *out = stamp;
                Ok(record.spare())
            }
            Body::Bytes(_) => Err(illegal("read", ppn, Law::PageContent)),
        }
    }

    #[inline(never)]
    fn copy_record(&mut self, index: u32, to: Ppn, spare: &Spare) -> Result<(), NandError> {
        debug_assert!(spare.seq < Spare::SEQ_END);
        let content = match &self.slab.get(index).body {
            Body::Stamp(stamp) => Content::Stamp(*stamp),
            Body::Bytes(bytes) => Content::Same(bytes.clone()),
        };
        self.put_any("copy", to, content, spare)
    }
}

impl Snapshot for SimNand {
    fn snapshot(&mut self) -> Self {
        Self::snapshot(self)
    }
}

impl Nand for SimNand {
    type Payload = Stamp;

    #[inline]
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    #[inline]
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    #[inline]
    fn read(&mut self, ppn: Ppn, out: &mut Stamp) -> Result<Spare, NandError> {
        let (block, offset, cell) = self.cell("read", ppn)?;
        match cell.seq_low {
            NOTHING => Err(NandError::Erased { ppn }),
            RECORD => self.read_record(ppn, cell.tag, out),
            _ => {
                *out = Stamp { lpn: Lpn(cell.tag), version: cell.version };
                Ok(block.spare_of(offset, cell))
            }
        }
    }

    #[inline]
    fn read_meta(&mut self, ppn: Ppn, out: &mut [u8]) -> Result<Spare, NandError> {
        let all = 0..out.len();
        self.read_meta_part(ppn, out, all)
    }

    fn read_meta_part(&mut self, ppn: Ppn, out: &mut [u8], needed: Range<usize>) -> Result<Spare, NandError> {
        laws::check_size(&self.geometry, out.len(), false).map_err(|law| illegal("read", ppn, law))?;
        let (_, _, cell) = self.cell("read", ppn)?;
        match cell.seq_low {
            NOTHING => Err(NandError::Erased { ppn }),
            RECORD => {
                let record = self.slab.read(cell.tag);
                let Body::Bytes(bytes) = &record.body else { return Err(illegal("read", ppn, Law::PageContent)) };
                bytes.read(out, needed);
                Ok(record.spare())
            }
            _ => Err(illegal("read", ppn, Law::PageContent)),
        }
    }

    #[inline(always)]
    fn read_spare(&mut self, ppn: Ppn) -> Result<Option<Spare>, NandError> {
        let (block, offset, cell) = self.cell("read", ppn)?;
        Ok(match cell.seq_low {
            NOTHING => None,
            RECORD => Some(self.slab.get(cell.tag).spare()),
            _ => Some(block.spare_of(offset, cell)),
        })
    }

    fn probe(&mut self, ppn: Ppn) -> Result<Spare, NandError> {
        self.read_spare(ppn)?.ok_or(NandError::Erased { ppn })
    }

    #[inline]
    fn program(&mut self, ppn: Ppn, data: &Stamp, spare: &Spare) -> Result<(), NandError> {
        self.put("program", ppn, *data, spare)
    }

    fn program_meta(&mut self, ppn: Ppn, data: &[u8], spare: &Spare) -> Result<(), NandError> {
        laws::check_size(&self.geometry, data.len(), false).map_err(|law| illegal("program", ppn, law))?;
        self.put_any("program", ppn, Content::Bytes(data), spare)
    }

    fn program_meta_page(&mut self, ppn: Ppn, page: &mut MetaPage, spare: &Spare) -> Result<(), NandError> {
        laws::check_size(&self.geometry, page.len(), false).map_err(|law| illegal("program", ppn, law))?;
        self.put_any("program", ppn, Content::Page(page), spare)
    }

    #[inline(always)]
    fn copy(&mut self, from: Ppn, to: Ppn, spare: &Spare) -> Result<(), NandError> {
        let (_, _, cell) = self.cell("copy", from)?;
        match cell.seq_low {
            NOTHING => Err(NandError::Erased { ppn: from }),
            RECORD => self.copy_record(cell.tag, to, spare),
            _ => self.put("copy", to, Stamp { lpn: Lpn(cell.tag), version: cell.version }, spare),
        }
    }

    #[inline]
    fn erase(&mut self, block: BlockId) -> Result<(), NandError> {
        let Some(record) = self.blocks.get_mut(block.index()) else {
            return Err(illegal_block(&self.geometry, "erase", block, Law::AddressInRange));
        };
        if let Err(law) = record.state.check_erase() {
            return Err(illegal_block(&self.geometry, "erase", block, law));
        }
        if record.state.is_noted() {
            self.free_records(block);
        }
        self.blocks[block.index()].state.erased();
        debug_assert!(self.blocks[block.index()].cell(0) == Cell::ERASED);
        self.erase_counts[block.index()] += 1;
        Ok(())
    }

    #[inline]
    fn is_bad(&self, block: BlockId) -> bool {
        self.blocks.get(block.index()).is_some_and(|b| b.state.is_bad())
    }

    fn mark_bad(&mut self, block: BlockId) -> Result<(), NandError> {
        match self.blocks.get_mut(block.index()) {
            Some(record) => {
                record.state.mark_bad();
                Ok(())
            }
            None => Err(illegal_block(&self.geometry, "mark_bad", block, Law::AddressInRange)),
        }
    }

    fn clear_flags(&mut self, ppn: Ppn, flags: Flags) -> Result<(), NandError> {
        let refuse = |law| illegal("clear_flags", ppn, law);
        let (id, offset) = laws::locate(&self.geometry, "clear_flags", ppn)?;
        let block = &mut self.blocks[id.index()];
        if block.state.is_bad() {
            return Err(refuse(Law::BadBlock));
        }
        let cell = block.cell(offset);
        match cell.seq_low {
            NOTHING => return Err(NandError::Erased { ppn }),
            RECORD => {
                let record = self.slab.get_mut(cell.tag);
                laws::check_flags(self.capabilities, record.reprograms).map_err(refuse)?;
                record.clear_flags(flags);
            }
            _ => {
                laws::check_flags(self.capabilities, 0).map_err(refuse)?;
                let body = Body::Stamp(Stamp { lpn: Lpn(cell.tag), version: cell.version });
                let mut record = Record::new(&block.spare_of(offset, cell), body);
                record.clear_flags(flags);
                let index = self.slab.insert(record);
                block.state.note();
                let end = block.state.end();
                debug_assert!(offset < end);
                block.cells.own(self.geometry.pages_per_block(), end, Cell::ERASED)[offset as usize] =
                    Cell::record(index);
            }
        }
        Ok(())
    }
}
