//! A device in memory that keeps every byte, in the byte form it has on flash.

use crate::addr::{BlockId, Ppn};
use crate::contract::{Nand, Snapshot};
use crate::error::{Law, NandError};
use crate::flags::Flags;
use crate::geometry::{Capabilities, Geometry};
use crate::laws::{self, BlockState, illegal, illegal_block};
use crate::spare::Spare;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// A programmed page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// Whether it was programmed as metadata.
    pub(crate) meta: bool,
    /// How often flags were set.
    pub(crate) reprograms: u8,
    pub(crate) spare: [u8; Spare::BYTES],
    /// What was programmed, shared with the pages it was copied to.
    pub(crate) data: Arc<[u8]>,
}

/// One block. Snapshots share the table of pages until one of them is programmed.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) state: BlockState,
    pub(crate) erase_count: u32,
    /// By offset; shorter than the block if the rest is erased.
    pub(crate) pages: Arc<Vec<Option<Page>>>,
}

/// A device in memory that keeps every byte and the encoded spare areas.
///
/// It enforces the laws of [`Nand`] and never fails by itself; wrap it in [`crate::Faulty`] for
/// power cuts and worn pages. Cloning it shares the contents, block by block and then page by page.
/// With the feature `std` it is saved to a file and opened from one.
#[derive(Clone, Debug)]
pub struct MemNand {
    pub(crate) geometry: Geometry,
    pub(crate) capabilities: Capabilities,
    pub(crate) blocks: Vec<Block>,
    pub(crate) pool: Pool,
}

/// Memory of pages that were erased, for the next ones to be programmed. A copy of a device begins
/// without any.
#[derive(Debug, Default)]
pub(crate) struct Pool(Vec<Arc<[u8]>>);

impl Clone for Pool {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Pool {
    /// Holds these bytes.
    fn hold(&mut self, data: &[u8]) -> Arc<[u8]> {
        if let Some(mut memory) = self.0.pop_if(|memory| memory.len() == data.len())
            && let Some(bytes) = Arc::get_mut(&mut memory)
        {
            bytes.copy_from_slice(data);
            return memory;
        }
        data.into()
    }

    /// Keeps memory of whole pages that nobody else uses.
    fn keep(&mut self, mut memory: Arc<[u8]>, page_bytes: u32) {
        if memory.len() == page_bytes as usize && Arc::get_mut(&mut memory).is_some() {
            self.0.push(memory);
        }
    }
}

impl MemNand {
    /// An erased device without bad blocks.
    #[must_use]
    pub fn new(geometry: Geometry, capabilities: Capabilities) -> Self {
        let block = Block { state: BlockState::default(), erase_count: 0, pages: Arc::default() };
        Self { geometry, capabilities, blocks: vec![block; geometry.blocks() as usize], pool: Pool::default() }
    }

    /// How often a block was erased; 0 for one outside the device.
    #[must_use]
    pub fn erase_count(&self, block: BlockId) -> u32 {
        self.blocks.get(block.index()).map_or(0, |b| b.erase_count)
    }

    /// How often each block was erased, by block.
    pub fn erase_counts(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.blocks.iter().map(|block| block.erase_count)
    }

    /// One more than the highest page programmed in a block since it was erased, or 0.
    #[must_use]
    pub fn programmed_end(&self, block: BlockId) -> u32 {
        self.blocks.get(block.index()).map_or(0, |b| b.state.end())
    }

    /// A programmed page, `None` if it is erased.
    fn page(&self, operation: &'static str, ppn: Ppn) -> Result<Option<&Page>, NandError> {
        let (block, offset) = laws::locate(&self.geometry, operation, ppn)?;
        Ok(self.blocks[block.index()].pages.get(offset as usize).and_then(Option::as_ref))
    }

    /// A programmed page of host data or of metadata, and its spare area.
    fn contents(&self, ppn: Ppn, meta: bool) -> Result<(&[u8], Spare), NandError> {
        let page = self.page("read", ppn)?.ok_or(NandError::Erased { ppn })?;
        if page.meta != meta {
            return Err(illegal("read", ppn, Law::PageContent));
        }
        Ok((&page.data, decode(ppn, page)?))
    }

    fn put(&mut self, operation: &'static str, ppn: Ppn, page: Page) -> Result<(), NandError> {
        let (id, offset) = laws::locate(&self.geometry, operation, ppn)?;
        let block = &mut self.blocks[id.index()];
        let at = offset as usize;
        let holds = block.pages.get(at).is_some_and(Option::is_some);
        block
            .state
            .check_program(self.capabilities.program_order, offset, holds)
            .map_err(|law| illegal(operation, ppn, law))?;
        let pages = Arc::make_mut(&mut block.pages);
        if pages.len() <= at {
            pages.resize(at + 1, None);
        }
        debug_assert!(pages.len() > at && pages[at].is_none(), "{ppn} was programmed");
        pages[at] = Some(page);
        block.state.programmed(offset);
        debug_assert!(block.state.end() as usize == block.pages.len() && block.state.end() > offset);
        Ok(())
    }

    fn program_as(&mut self, ppn: Ppn, data: &[u8], spare: &Spare, meta: bool) -> Result<(), NandError> {
        laws::check_size(&self.geometry, data.len(), !meta).map_err(|law| illegal("program", ppn, law))?;
        let data = self.pool.hold(data);
        self.put("program", ppn, Page { meta, reprograms: 0, spare: encode(spare), data })
    }
}

/// The spare area of a page just programmed.
fn encode(spare: &Spare) -> [u8; Spare::BYTES] {
    Spare { flags: Flags::NONE, ..*spare }.encode()
}

fn decode(ppn: Ppn, page: &Page) -> Result<Spare, NandError> {
    Spare::decode(&page.spare).ok().flatten().ok_or(NandError::Uncorrectable { ppn })
}

impl Snapshot for MemNand {
    fn snapshot(&mut self) -> Self {
        self.clone()
    }
}

impl Nand for MemNand {
    type Payload = [u8];

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn read(&mut self, ppn: Ppn, out: &mut [u8]) -> Result<Spare, NandError> {
        laws::check_size(&self.geometry, out.len(), true).map_err(|law| illegal("read", ppn, law))?;
        let (data, spare) = self.contents(ppn, false)?;
        out.copy_from_slice(data);
        Ok(spare)
    }

    fn read_meta(&mut self, ppn: Ppn, out: &mut [u8]) -> Result<Spare, NandError> {
        laws::check_size(&self.geometry, out.len(), false).map_err(|law| illegal("read", ppn, law))?;
        let (data, spare) = self.contents(ppn, true)?;
        let kept = data.len().min(out.len());
        out[..kept].copy_from_slice(&data[..kept]);
        out[kept..].fill(0xFF);
        Ok(spare)
    }

    fn read_spare(&mut self, ppn: Ppn) -> Result<Option<Spare>, NandError> {
        self.page("read", ppn)?.map(|page| decode(ppn, page)).transpose()
    }

    fn probe(&mut self, ppn: Ppn) -> Result<Spare, NandError> {
        self.read_spare(ppn)?.ok_or(NandError::Erased { ppn })
    }

    fn program(&mut self, ppn: Ppn, data: &[u8], spare: &Spare) -> Result<(), NandError> {
        self.program_as(ppn, data, spare, false)
    }

    fn program_meta(&mut self, ppn: Ppn, data: &[u8], spare: &Spare) -> Result<(), NandError> {
        self.program_as(ppn, data, spare, true)
    }

    fn copy(&mut self, from: Ppn, to: Ppn, spare: &Spare) -> Result<(), NandError> {
        let page = self.page("copy", from)?.ok_or(NandError::Erased { ppn: from })?;
        let copy = Page { meta: page.meta, reprograms: 0, spare: encode(spare), data: Arc::clone(&page.data) };
        debug_assert!(copy.meta || copy.data.len() == self.geometry.page_bytes() as usize);
        self.put("copy", to, copy)
    }

    fn erase(&mut self, block: BlockId) -> Result<(), NandError> {
        let Some(record) = self.blocks.get_mut(block.index()) else {
            return Err(illegal_block(&self.geometry, "erase", block, Law::AddressInRange));
        };
        if let Err(law) = record.state.check_erase() {
            return Err(illegal_block(&self.geometry, "erase", block, law));
        }
        record.state.erased();
        // An image may say anything.
        record.erase_count = record.erase_count.saturating_add(1);
        match Arc::get_mut(&mut record.pages) {
            Some(pages) => {
                let page_bytes = self.geometry.page_bytes();
                pages.drain(..).flatten().for_each(|page| self.pool.keep(page.data, page_bytes));
            }
            None => record.pages = Arc::default(),
        }
        Ok(())
    }

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
        let Some(page) = block.pages.get(offset as usize).and_then(Option::as_ref) else {
            return Err(NandError::Erased { ppn });
        };
        decode(ppn, page)?;
        laws::check_flags(self.capabilities, page.reprograms).map_err(refuse)?;
        if let Some(Some(page)) = Arc::make_mut(&mut block.pages).get_mut(offset as usize) {
            Spare::clear_flags(&mut page.spare, flags);
            page.reprograms += 1;
            debug_assert!(
                decode(ppn, page).is_ok_and(|spare| spare.flags.contains(flags)),
                "{ppn} does not keep its flags"
            );
            debug_assert!(page.reprograms <= self.capabilities.spare_reprograms);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::geometry::{Dimensions, ProgramOrder};
    use crate::spare::PageKind;

    #[test]
    fn setting_flags_raises_no_bit_that_is_kept() {
        let geometry = Geometry::new(Dimensions {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks: 1,
            pages_per_block: 1,
            page_bytes: 512,
            spare_bytes: 32,
        });
        let capabilities =
            Capabilities { program_order: ProgramOrder::Free, spare_reprograms: u8::MAX, ..Capabilities::MODERN };
        let mut n = MemNand::new(geometry.unwrap(), capabilities);
        let kept = |n: &MemNand| n.page("read", Ppn(0)).unwrap().unwrap().spare;
        for seq in 0..200_u64 {
            let kind = PageKind::ALL[seq as usize % 4];
            let aux = (seq as u32).wrapping_mul(0x9E37_79B9);
            let spare =
                Spare { kind, tag: !aux, seq, erase_count: seq as u32, erased_at: aux >> 3, aux, flags: Flags::ALL };
            n.program_meta(Ppn(0), &[], &spare).unwrap();
            let mut wanted = Spare { flags: Flags::NONE, ..spare };
            for step in 0..4 {
                let flags = Flags::from_bits((aux >> (8 * step)) as u8);
                let before = kept(&n);
                n.clear_flags(Ppn(0), flags).unwrap();
                wanted.flags = wanted.flags.union(flags);
                assert!(before.iter().zip(kept(&n)).all(|(before, after)| after & !before == 0), "a bit rose");
                assert_eq!(n.probe(Ppn(0)), Ok(wanted));
            }
            n.erase(BlockId(0)).unwrap();
        }
    }
}
