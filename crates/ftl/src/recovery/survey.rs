//! Looking over a device after power loss without reading all of it (GeckoFTL, Appendix C, steps 1, 2 and 6).
//!
//! The paper reads one spare area a block. Two are read here, the first and the last page's: the last says how young the
//! youngest page of a block is, which the first does not if a stream fills its blocks slowly, and whether
//! the block was being filled when power went. A block whose first page reads as erased is looked at where lanes begin
//! their first block, and read whole if anything is there.
//!
//! Of a block that is read whole, the last page that reads as programmed is read with its data: a
//! program that was cut short can leave a good spare area beside data that cannot be read.

use crate::contract::FtlError;
use crate::flash::{Flash, Purpose};
use alloc::vec::Vec;
use nand::{BlockId, Nand, NandError, PageKind, Ppn, Spare};

/// A page found with its spare area.
pub type FoundPage = (Ppn, Spare);

/// What is known of a block in use (an entry of the paper's blocks information directory, BID).
#[derive(Clone, Copy, Debug)]
pub struct BlockInfo {
    /// What its pages hold.
    pub kind: PageKind,
    /// Sequence number of the first page that can be read.
    pub first_seq: u64,
    /// Sequence number of the last page; the largest there is if it is not known.
    pub last_seq: u64,
    /// One more than the offset of the last page that may hold something.
    pub programmed: u16,
    /// Filled from the first page to the last, as far as two pages can say.
    pub whole: bool,
}

/// What was found on a device.
#[derive(Debug)]
pub struct Survey {
    blocks: Vec<Option<BlockInfo>>,
    newest: Option<FoundPage>,
    erases: (u64, u32),
    erased_at: u32,
    burned_seq: u64,
    torn: Vec<FoundPage>,
    /// Pages that could not be read.
    pub unreadable: u64,
}

impl Survey {
    /// Reads two spare areas of every block, and more of blocks that were being filled.
    ///
    /// `lanes` is how many blocks a stream fills at once, which says where their first blocks begin.
    ///
    /// # Errors
    /// Those of the device, except unreadable pages, which are counted.
    pub fn run<N: Nand>(flash: &mut Flash<N>, lanes: u32) -> Result<Self, FtlError> {
        let geometry = *flash.nand().geometry();
        let mut survey = Self {
            blocks: alloc::vec![None; geometry.blocks() as usize],
            newest: None,
            erases: (0, 0),
            erased_at: 0,
            burned_seq: 0,
            torn: Vec::new(),
            unreadable: 0,
        };
        let mut pages = Vec::new();
        for block in (0..geometry.blocks()).map(BlockId) {
            if !flash.nand().is_bad(block) {
                let info = survey.look(flash, block, lanes, &mut pages)?;
                survey.blocks[block.index()] = info;
            }
        }
        Ok(survey)
    }

    fn look<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        block: BlockId,
        lanes: u32,
        pages: &mut Vec<FoundPage>,
    ) -> Result<Option<BlockInfo>, FtlError> {
        let geometry = *flash.nand().geometry();
        let end = geometry.pages_per_block();
        let first = self.spare(flash, geometry.page_at(block, 0))?;
        let last = if end > 1 { self.spare(flash, geometry.page_at(block, end - 1))? } else { first };
        if let (Some(Some(first)), Some(Some(last))) = (first, last) {
            self.erases = (self.erases.0 + u64::from(first.erase_count), self.erases.1 + 1);
            return Ok(Some(BlockInfo {
                kind: first.kind,
                first_seq: first.seq,
                last_seq: last.seq,
                programmed: end as u16,
                whole: first.kind == last.kind && first.seq <= last.seq,
            }));
        }
        if matches!((first, last), (Some(None), Some(None))) {
            let mut blank = true;
            for lane in 1..lanes {
                blank &= matches!(self.spare(flash, geometry.page_at(block, lane * end / lanes))?, Some(None));
            }
            if blank {
                return Ok(None);
            }
        }
        pages.clear();
        let programmed = self.read_block(flash, block, pages)?;
        let Some((_, first)) = pages.first() else { return Ok(None) };
        let last_seq = if matches!(last, Some(None)) { pages[pages.len() - 1].1.seq } else { u64::MAX };
        Ok(Some(BlockInfo { kind: first.kind, first_seq: first.seq, last_seq, programmed, whole: false }))
    }

    /// A page's spare area; `None` if it cannot be read.
    fn spare<N: Nand>(&mut self, flash: &mut Flash<N>, ppn: Ppn) -> Result<Option<Option<Spare>>, FtlError> {
        match flash.read_spare(Purpose::Recovery, ppn) {
            Ok(spare) => {
                if let Some(spare) = &spare {
                    self.burned_seq = self.burned_seq.max(spare.seq);
                    self.erased_at = self.erased_at.max(spare.erased_at);
                }
                Ok(Some(spare))
            }
            Err(NandError::Uncorrectable { .. }) => {
                self.unreadable += 1;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Adds every readable page of a block, in the order of the block; answers one more than the offset of the last page
    /// that is not erased.
    ///
    /// # Errors
    /// Those of the device, except unreadable pages, which are counted and left out.
    pub fn read_block<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        block: BlockId,
        pages: &mut Vec<FoundPage>,
    ) -> Result<u16, FtlError> {
        let geometry = *flash.nand().geometry();
        let (begin, mut end) = (pages.len(), 0);
        for offset in 0..geometry.pages_per_block() {
            let ppn = geometry.page_at(block, offset);
            match self.spare(flash, ppn)? {
                Some(None) => continue,
                Some(Some(spare)) => pages.push((ppn, spare)),
                None => {}
            }
            end = offset as u16 + 1;
        }
        if let Some(&(last, spare)) = pages[begin..].last() {
            match flash.probe(Purpose::Recovery, last) {
                Ok(_) => {}
                Err(NandError::Uncorrectable { .. } | NandError::Erased { .. }) => {
                    self.unreadable += 1;
                    pages.pop();
                    self.torn.push((last, spare));
                }
                Err(error) => return Err(error.into()),
            }
        }
        for page in &pages[begin..] {
            if self.newest.as_ref().is_none_or(|(_, newest)| page.1.seq > newest.seq) {
                self.newest = Some(*page);
            }
        }
        Ok(end)
    }

    /// Adds every readable page of all blocks of a kind of which `wanted` is true.
    ///
    /// # Errors
    /// As [`Survey::read_block`].
    pub fn read_kind<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        kind: PageKind,
        wanted: impl Fn(&BlockInfo) -> bool,
    ) -> Result<Vec<FoundPage>, FtlError> {
        let mut pages = Vec::new();
        for index in 0..self.blocks.len() {
            if self.blocks[index].is_some_and(|info| info.kind == kind && wanted(&info)) {
                self.read_block(flash, BlockId(index as u32), &mut pages)?;
            }
        }
        Ok(pages)
    }

    /// What is known of a block; `None` if no page of it can be read as programmed.
    #[must_use]
    pub fn block(&self, block: BlockId) -> Option<&BlockInfo> {
        self.blocks[block.index()].as_ref()
    }

    /// Blocks in use, with what is known of them.
    pub fn blocks(&self) -> impl Iterator<Item = (BlockId, &BlockInfo)> {
        (0..).map(BlockId).zip(&self.blocks).filter_map(|(block, info)| Some((block, info.as_ref()?)))
    }

    /// The youngest page that was read whole or with its block, and can be read.
    #[must_use]
    pub const fn newest(&self) -> Option<FoundPage> {
        self.newest
    }

    /// Pages whose spare area reads well and whose data does not, in blocks that were read whole: torn or worn.
    #[must_use]
    pub fn torn(&self) -> &[FoundPage] {
        &self.torn
    }

    /// The largest sequence number of a page whose spare area was read.
    #[must_use]
    pub const fn largest_seq(&self) -> u64 {
        self.burned_seq
    }

    /// A sequence number larger than any that a page of the device may carry.
    #[must_use]
    pub const fn next_seq(&self) -> u64 {
        self.burned_seq + 2
    }

    /// Largest device erase count found.
    #[must_use]
    pub const fn erased_at(&self) -> u32 {
        self.erased_at
    }

    /// Erases of a block on average.
    #[must_use]
    pub fn mean_erases(&self) -> u32 {
        (self.erases.0 / u64::from(self.erases.1.max(1))) as u32
    }
}
