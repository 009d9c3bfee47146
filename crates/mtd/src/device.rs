//! The device: the laws of NAND over a chip.

use crate::char_device::CharDevice;
use crate::chip::{Chip, ChipError, Place};
use crate::header::RESERVED_BLOCKS;
use crate::record::{Content, Decoded, RECORD_BYTES, Record};
use nand::file::Usage;
use nand::laws::{self, BlockState, illegal, illegal_block};
use nand::{BlockId, Capabilities, Flags, Geometry, HostError, Law, Nand, NandError, Ppn, Spare};

/// What the host says that failed without a number.
const EIO: HostError = HostError(5);
/// What is answered to a write on a device that is open for reading.
pub(crate) const EROFS: HostError = HostError(30);

/// What is known of a block in RAM.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Block {
    pub(crate) state: BlockState,
    /// Whether `state` says how far the block is programmed: found out when it is first needed.
    pub(crate) surveyed: bool,
}

/// A NAND device over a chip behind the kernel, or over one that a test brings.
///
/// Nothing is allocated after it was opened.
#[derive(Debug)]
pub struct MtdNand<C: Chip = CharDevice> {
    pub(crate) chip: C,
    pub(crate) geometry: Geometry,
    pub(crate) owner: Box<[u8]>,
    pub(crate) blocks: Vec<Block>,
    /// One page of data.
    pub(crate) page: Box<[u8]>,
    /// Why nothing is written, if so.
    pub(crate) refused: Option<HostError>,
    /// Bits that the ECC corrected in the last page read.
    pub(crate) corrected: u32,
    pub(crate) correctable: u32,
}

impl<C: Chip> MtdNand<C> {
    /// The bytes given when the device was made.
    #[must_use]
    pub fn owner(&self) -> &[u8] {
        &self.owner
    }

    /// The chip.
    #[must_use]
    pub const fn chip(&self) -> &C {
        &self.chip
    }

    /// The chip, for a harness that makes it fail.
    pub const fn chip_mut(&mut self) -> &mut C {
        &mut self.chip
    }

    /// What the pages of the device hold, by their OOB; their data are not read.
    ///
    /// # Errors
    /// [`NandError::Host`].
    pub fn usage(&mut self) -> Result<Usage, NandError> {
        let mut usage = Usage::default();
        for ppn in (0..self.geometry.pages()).map(Ppn) {
            let count = match self.record("read", ppn)? {
                Decoded::Erased => &mut usage.erased,
                Decoded::Programmed(record, _) if record.content == Content::HostData => &mut usage.host_data,
                Decoded::Programmed(..) => &mut usage.metadata,
                Decoded::Damaged => &mut usage.damaged,
            };
            *count += 1;
        }
        Ok(usage)
    }

    /// Passes on why a page could not be read.
    fn unread(operation: &'static str, ppn: Ppn, error: ChipError) -> NandError {
        match error {
            ChipError::Uncorrectable => NandError::Uncorrectable { ppn },
            ChipError::Failed => NandError::Host { operation, ppn, cause: EIO },
            ChipError::Host(cause) => NandError::Host { operation, ppn, cause },
        }
    }

    /// Notes why the host did not do something, after which nothing more is written.
    fn host_failed(&mut self, operation: &'static str, ppn: Ppn, cause: HostError) -> NandError {
        // The first cause is the one to be told.
        let cause = *self.refused.get_or_insert(cause);
        NandError::Host { operation, ppn, cause }
    }

    /// Before something is changed: refuses it if nothing may be.
    const fn begin(&self, operation: &'static str, ppn: Ppn) -> Result<(), NandError> {
        match self.refused {
            Some(cause) => Err(NandError::Host { operation, ppn, cause }),
            None => Ok(()),
        }
    }

    fn place(&self, operation: &'static str, ppn: Ppn) -> Result<Place, NandError> {
        let (block, offset) = laws::locate(&self.geometry, operation, ppn)?;
        Ok(Place { block: block.0 + RESERVED_BLOCKS, offset })
    }

    /// What the OOB of a page says; its data are not read.
    fn record(&mut self, operation: &'static str, ppn: Ppn) -> Result<Decoded, NandError> {
        let at = self.place(operation, ppn)?;
        let mut oob = [0; RECORD_BYTES];
        match self.chip.read(at, None, &mut oob) {
            Ok(_) => Ok(Record::decode(&oob)),
            Err(ChipError::Uncorrectable) => Ok(Decoded::Damaged),
            Err(error) => Err(Self::unread(operation, ppn, error)),
        }
    }

    /// Reads a page of either kind, and holds its data against their check value.
    fn fetch(&mut self, operation: &'static str, ppn: Ppn, data: &mut [u8]) -> Result<Record, NandError> {
        let at = self.place(operation, ppn)?;
        let mut oob = [0; RECORD_BYTES];
        self.corrected = 0;
        let corrected =
            self.chip.read(at, Some(data), &mut oob).map_err(|error| Self::unread(operation, ppn, error))?;
        match Record::decode(&oob) {
            // Data without a record were torn.
            Decoded::Erased if data.iter().all(|&byte| byte == 0xFF) => Err(NandError::Erased { ppn }),
            Decoded::Programmed(record, mended) if crc32fast::hash(data) == record.data_check => {
                self.corrected = corrected.max(mended);
                Ok(record)
            }
            _ => Err(NandError::Uncorrectable { ppn }),
        }
    }

    /// As [`Self::fetch`], of a page that was programmed as `content`.
    fn fetch_as(&mut self, ppn: Ppn, content: Content, data: &mut [u8]) -> Result<Spare, NandError> {
        let record = self.fetch("read", ppn, data)?;
        if record.content == content { Ok(record.spare) } else { Err(illegal("read", ppn, Law::PageContent)) }
    }

    /// Calls `use_it` with the device's own page, which is out of its place for the call.
    fn with_page<T>(&mut self, use_it: impl FnOnce(&mut Self, &mut [u8]) -> T) -> T {
        let mut page = core::mem::take(&mut self.page);
        let outcome = use_it(self, &mut page);
        self.page = page;
        outcome
    }

    /// Finds out how far a block is programmed, if that is not known yet.
    fn survey(&mut self, operation: &'static str, block: BlockId) -> Result<(), NandError> {
        if self.blocks[block.index()].surveyed {
            return Ok(());
        }
        let mut state = BlockState::default();
        for offset in (0..self.geometry.pages_per_block()).rev() {
            if self.record(operation, self.geometry.page_at(block, offset))? != Decoded::Erased {
                state.programmed(offset);
                break;
            }
        }
        let known = &mut self.blocks[block.index()];
        if known.state.is_bad() {
            state.mark_bad();
        }
        *known = Block { state, surveyed: true };
        Ok(())
    }

    /// Refuses a program that would break a law.
    fn check_program(&mut self, operation: &'static str, ppn: Ppn) -> Result<Place, NandError> {
        let at = self.place(operation, ppn)?;
        let block = self.geometry.block_of(ppn);
        if !self.blocks[block.index()].state.is_next(at.offset) {
            self.survey(operation, block)?;
            let state = self.blocks[block.index()].state;
            // The page itself says which of two laws is broken.
            let holds = at.offset < state.end() && self.record(operation, ppn)? != Decoded::Erased;
            let order = Capabilities::MODERN.program_order;
            state.check_program(order, at.offset, holds).map_err(|law| illegal(operation, ppn, law))?;
        }
        self.begin(operation, ppn)?;
        Ok(at)
    }

    /// Programs a whole page.
    fn put(
        &mut self,
        operation: &'static str,
        ppn: Ppn,
        data: &[u8],
        spare: &Spare,
        content: Content,
    ) -> Result<(), NandError> {
        let at = self.check_program(operation, ppn)?;
        debug_assert!(data.len() == self.page.len() || self.page.is_empty(), "{ppn} takes a whole page");
        let outcome = self.chip.program(at, data, &Record::new(spare, content, data).encode());
        if let Err(ChipError::Host(cause)) = outcome {
            return Err(self.host_failed(operation, ppn, cause));
        }
        // A page is spent whether the chip could program it or not.
        self.blocks[self.geometry.block_of(ppn).index()].state.programmed(at.offset);
        outcome.map_err(|_| NandError::ProgramFailed { ppn })
    }

    /// The block, if it is inside the device.
    fn block(&self, operation: &'static str, block: BlockId) -> Result<(Block, Ppn), NandError> {
        let known = self.blocks.get(block.index()).copied();
        let known = known.ok_or_else(|| illegal_block(&self.geometry, operation, block, Law::AddressInRange))?;
        Ok((known, self.geometry.page_at(block, 0)))
    }
}

impl<C: Chip> Nand for MtdNand<C> {
    type Payload = [u8];

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::MODERN
    }

    fn read(&mut self, ppn: Ppn, out: &mut [u8]) -> Result<Spare, NandError> {
        laws::check_size(&self.geometry, out.len(), true).map_err(|law| illegal("read", ppn, law))?;
        self.fetch_as(ppn, Content::HostData, out)
    }

    fn read_meta(&mut self, ppn: Ppn, out: &mut [u8]) -> Result<Spare, NandError> {
        laws::check_size(&self.geometry, out.len(), false).map_err(|law| illegal("read", ppn, law))?;
        self.with_page(|device, page| {
            let spare = device.fetch_as(ppn, Content::Metadata, page)?;
            out.copy_from_slice(&page[..out.len()]);
            Ok(spare)
        })
    }

    fn read_spare(&mut self, ppn: Ppn) -> Result<Option<Spare>, NandError> {
        match self.record("read", ppn)? {
            Decoded::Erased => Ok(None),
            Decoded::Programmed(record, _) => Ok(Some(record.spare)),
            Decoded::Damaged => Err(NandError::Uncorrectable { ppn }),
        }
    }

    fn probe(&mut self, ppn: Ppn) -> Result<Spare, NandError> {
        self.with_page(|device, page| device.fetch("read", ppn, page)).map(|record| record.spare)
    }

    fn program(&mut self, ppn: Ppn, data: &[u8], spare: &Spare) -> Result<(), NandError> {
        laws::check_size(&self.geometry, data.len(), true).map_err(|law| illegal("program", ppn, law))?;
        self.put("program", ppn, data, spare, Content::HostData)
    }

    fn program_meta(&mut self, ppn: Ppn, data: &[u8], spare: &Spare) -> Result<(), NandError> {
        laws::check_size(&self.geometry, data.len(), false).map_err(|law| illegal("program", ppn, law))?;
        self.with_page(|device, page| {
            page[..data.len()].copy_from_slice(data);
            page[data.len()..].fill(0xFF);
            device.put("program", ppn, page, spare, Content::Metadata)
        })
    }

    fn copy(&mut self, from: Ppn, to: Ppn, spare: &Spare) -> Result<(), NandError> {
        self.with_page(|device, page| {
            let record = device.fetch("copy", from, page)?;
            device.put("copy", to, page, spare, record.content)
        })
    }

    fn erase(&mut self, block: BlockId) -> Result<(), NandError> {
        let (known, first) = self.block("erase", block)?;
        known.state.check_erase().map_err(|law| illegal_block(&self.geometry, "erase", block, law))?;
        self.begin("erase", first)?;
        match self.chip.erase(block.0 + RESERVED_BLOCKS) {
            Ok(()) => {
                let known = &mut self.blocks[block.index()];
                known.state.erased();
                known.surveyed = true;
                Ok(())
            }
            Err(ChipError::Host(cause)) => Err(self.host_failed("erase", first, cause)),
            Err(_) => {
                // Nobody knows what is left of it.
                self.blocks[block.index()] = Block::default();
                Err(NandError::EraseFailed { block })
            }
        }
    }

    fn is_bad(&self, block: BlockId) -> bool {
        self.blocks.get(block.index()).is_some_and(|known| known.state.is_bad())
    }

    /// The kernel erases a block before it marks it: nothing in the block can be read afterwards. A
    /// mark that the chip cannot keep counts until the device is closed.
    fn mark_bad(&mut self, block: BlockId) -> Result<(), NandError> {
        let (known, first) = self.block("mark_bad", block)?;
        if known.state.is_bad() {
            return Ok(());
        }
        self.begin("mark_bad", first)?;
        if let Err(ChipError::Host(cause)) = self.chip.mark_bad(block.0 + RESERVED_BLOCKS) {
            return Err(self.host_failed("mark_bad", first, cause));
        }
        let mut state = BlockState::default();
        state.mark_bad();
        self.blocks[block.index()] = Block { state, surveyed: false };
        Ok(())
    }

    fn clear_flags(&mut self, ppn: Ppn, _: Flags) -> Result<(), NandError> {
        let block = laws::locate(&self.geometry, "clear_flags", ppn)?.0;
        let law = if self.is_bad(block) { Law::BadBlock } else { Law::SpareReprogram };
        Err(illegal("clear_flags", ppn, law))
    }

    fn corrected_bits(&self) -> u32 {
        self.corrected
    }

    fn correctable_bits(&self) -> u32 {
        self.correctable
    }
}
