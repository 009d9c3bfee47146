//! A device with two owners: the FTL above it, and who pulls its plug.
//!
//! A mount consumes its device, also when it fails. What an interrupted mount left on flash is
//! still there for the next one, because the handle kept outside leads to the same device.

use ftl::Flash;
use nand::{BlockId, Capabilities, Flags, Geometry, Nand, NandError, Ppn, Spare, Stamp, Stamped};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use table::AnyBytes;

/// A handle to a device; clones lead to the same one.
#[derive(Debug)]
pub struct Shared<N> {
    device: Arc<Mutex<N>>,
    geometry: Geometry,
    capabilities: Capabilities,
}

impl<N> Clone for Shared<N> {
    fn clone(&self) -> Self {
        Self { device: Arc::clone(&self.device), geometry: self.geometry, capabilities: self.capabilities }
    }
}

impl<N: Nand> Shared<N> {
    /// The first handle to a device.
    pub fn new(device: N) -> Self {
        let (geometry, capabilities) = (*device.geometry(), device.capabilities());
        Self { device: Arc::new(Mutex::new(device)), geometry, capabilities }
    }

    /// The device. Not while an operation of it is running, nor while it is looked at.
    pub fn get(&self) -> MutexGuard<'_, N> {
        // A panic is a finding; what the device held then is still to be looked at.
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<N: Nand<Payload = Stamp> + 'static> Shared<N> {
    /// The device for an FTL, which takes it for one of bytes.
    pub fn flash_of_bytes(&self) -> Flash<AnyBytes> {
        Flash::new(Box::new(Stamped(self.clone())))
    }
}

impl<N: Nand> Nand for Shared<N> {
    type Payload = N::Payload;

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn read(&mut self, ppn: Ppn, out: &mut Self::Payload) -> Result<Spare, NandError> {
        self.get().read(ppn, out)
    }

    fn read_meta(&mut self, ppn: Ppn, out: &mut [u8]) -> Result<Spare, NandError> {
        self.get().read_meta(ppn, out)
    }

    fn read_spare(&mut self, ppn: Ppn) -> Result<Option<Spare>, NandError> {
        self.get().read_spare(ppn)
    }

    fn probe(&mut self, ppn: Ppn) -> Result<Spare, NandError> {
        self.get().probe(ppn)
    }

    fn program(&mut self, ppn: Ppn, data: &Self::Payload, spare: &Spare) -> Result<(), NandError> {
        self.get().program(ppn, data, spare)
    }

    fn program_meta(&mut self, ppn: Ppn, data: &[u8], spare: &Spare) -> Result<(), NandError> {
        self.get().program_meta(ppn, data, spare)
    }

    fn copy(&mut self, from: Ppn, to: Ppn, spare: &Spare) -> Result<(), NandError> {
        self.get().copy(from, to, spare)
    }

    fn erase(&mut self, block: BlockId) -> Result<(), NandError> {
        self.get().erase(block)
    }

    fn is_bad(&self, block: BlockId) -> bool {
        self.get().is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockId) -> Result<(), NandError> {
        self.get().mark_bad(block)
    }

    fn clear_flags(&mut self, ppn: Ppn, flags: Flags) -> Result<(), NandError> {
        self.get().clear_flags(ppn, flags)
    }

    fn corrected_bits(&self) -> u32 {
        self.get().corrected_bits()
    }

    fn correctable_bits(&self) -> u32 {
        self.get().correctable_bits()
    }
}
