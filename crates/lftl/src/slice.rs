//! One device as several: each of its dies is a bank.
//!
//! All banks share the lock of the device, so that this is for one file, and for tests that cut
//! power at an operation of the whole card. Banks that work at the same time need a device each.

use nand::{BlockId, Capabilities, Dimensions, Flags, Geometry, GeometryError, Nand, NandError, Ppn, Spare};
#[cfg(shuttle)]
use shuttle::sync::{Mutex, MutexGuard};
use std::sync::{Arc, PoisonError};
#[cfg(not(shuttle))]
use std::sync::{Mutex, MutexGuard};

fn lock<N>(device: &Mutex<N>) -> MutexGuard<'_, N> {
    device.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A die of a device.
pub struct Slice<N> {
    device: Arc<Mutex<N>>,
    /// Of the die alone.
    geometry: Geometry,
    capabilities: Capabilities,
    dies: u32,
    die: u32,
}

impl<N: Nand> Slice<N> {
    /// The dies of a device.
    ///
    /// # Errors
    /// [`GeometryError`] never comes of a device that has dies.
    pub fn all(device: Arc<Mutex<N>>) -> Result<Vec<Self>, GeometryError> {
        let guard = lock(&device);
        let (whole, capabilities) = (*guard.geometry(), guard.capabilities());
        drop(guard);
        let dies = whole.dies();
        let one = Dimensions { channels: 1, dies_per_channel: 1, blocks: whole.blocks() / dies, ..whole.dimensions() };
        let geometry = Geometry::new(one)?;
        Ok((0..dies).map(|die| Self { device: Arc::clone(&device), geometry, capabilities, dies, die }).collect())
    }

    fn block(&self, block: BlockId) -> BlockId {
        BlockId(block.0.saturating_mul(self.dies).saturating_add(self.die))
    }

    fn page(&self, ppn: Ppn) -> Ppn {
        let pages = self.geometry.pages_per_block();
        let block = self.block(BlockId(ppn.0 / pages)).0;
        Ppn(block.saturating_mul(pages).saturating_add(ppn.0 % pages))
    }

    /// The address within the bank that an error of the device is about.
    fn inward(&self, error: NandError) -> NandError {
        let pages = self.geometry.pages_per_block();
        let page = |ppn: Ppn| Ppn(ppn.0 / pages / self.dies * pages + ppn.0 % pages);
        match error {
            NandError::Erased { ppn } => NandError::Erased { ppn: page(ppn) },
            NandError::Uncorrectable { ppn } => NandError::Uncorrectable { ppn: page(ppn) },
            NandError::ProgramFailed { ppn } => NandError::ProgramFailed { ppn: page(ppn) },
            NandError::EraseFailed { block } => NandError::EraseFailed { block: BlockId(block.0 / self.dies) },
            other => other,
        }
    }
}

impl<N: Nand> Nand for Slice<N> {
    type Payload = N::Payload;

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn read(&mut self, ppn: Ppn, out: &mut N::Payload) -> Result<Spare, NandError> {
        let read = lock(&self.device).read(self.page(ppn), out);
        read.map_err(|error| self.inward(error))
    }

    fn read_meta(&mut self, ppn: Ppn, out: &mut [u8]) -> Result<Spare, NandError> {
        let read = lock(&self.device).read_meta(self.page(ppn), out);
        read.map_err(|error| self.inward(error))
    }

    fn read_spare(&mut self, ppn: Ppn) -> Result<Option<Spare>, NandError> {
        let read = lock(&self.device).read_spare(self.page(ppn));
        read.map_err(|error| self.inward(error))
    }

    fn probe(&mut self, ppn: Ppn) -> Result<Spare, NandError> {
        let read = lock(&self.device).probe(self.page(ppn));
        read.map_err(|error| self.inward(error))
    }

    fn program(&mut self, ppn: Ppn, data: &N::Payload, spare: &Spare) -> Result<(), NandError> {
        let programmed = lock(&self.device).program(self.page(ppn), data, spare);
        programmed.map_err(|error| self.inward(error))
    }

    fn program_meta(&mut self, ppn: Ppn, data: &[u8], spare: &Spare) -> Result<(), NandError> {
        let programmed = lock(&self.device).program_meta(self.page(ppn), data, spare);
        programmed.map_err(|error| self.inward(error))
    }

    fn copy(&mut self, from: Ppn, to: Ppn, spare: &Spare) -> Result<(), NandError> {
        let copied = lock(&self.device).copy(self.page(from), self.page(to), spare);
        copied.map_err(|error| self.inward(error))
    }

    fn erase(&mut self, block: BlockId) -> Result<(), NandError> {
        let erased = lock(&self.device).erase(self.block(block));
        erased.map_err(|error| self.inward(error))
    }

    fn is_bad(&self, block: BlockId) -> bool {
        lock(&self.device).is_bad(self.block(block))
    }

    fn mark_bad(&mut self, block: BlockId) -> Result<(), NandError> {
        let marked = lock(&self.device).mark_bad(self.block(block));
        marked.map_err(|error| self.inward(error))
    }

    fn clear_flags(&mut self, ppn: Ppn, flags: Flags) -> Result<(), NandError> {
        let cleared = lock(&self.device).clear_flags(self.page(ppn), flags);
        cleared.map_err(|error| self.inward(error))
    }

    fn corrected_bits(&self) -> u32 {
        lock(&self.device).corrected_bits()
    }

    fn correctable_bits(&self) -> u32 {
        lock(&self.device).correctable_bits()
    }
}
