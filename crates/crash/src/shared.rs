//! A device with two owners: the FTL above it, and who pulls its plug.
//!
//! A mount consumes its device, also when it fails. What an interrupted mount left on flash is still
//! there for the next one, because the handle kept outside leads to the same device.

use nand::{BlockId, Capabilities, Geometry, Nand, NandError, Ppn, Spare};
use std::cell::{Ref, RefCell, RefMut};
use std::rc::Rc;

/// A handle to a device; clones lead to the same one.
#[derive(Debug)]
pub struct Shared<N> {
    device: Rc<RefCell<N>>,
    geometry: Geometry,
    capabilities: Capabilities,
}

impl<N> Clone for Shared<N> {
    fn clone(&self) -> Self {
        Self { device: Rc::clone(&self.device), geometry: self.geometry, capabilities: self.capabilities }
    }
}

impl<N: Nand> Shared<N> {
    /// The first handle to a device.
    pub fn new(device: N) -> Self {
        let (geometry, capabilities) = (*device.geometry(), device.capabilities());
        Self { device: Rc::new(RefCell::new(device)), geometry, capabilities }
    }

    /// The device, to look at. Not while an operation of it is running.
    pub fn get(&self) -> Ref<'_, N> {
        self.device.borrow()
    }

    /// The device, to change. Not while an operation of it is running.
    pub fn get_mut(&self) -> RefMut<'_, N> {
        self.device.borrow_mut()
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
        self.get_mut().read(ppn, out)
    }

    fn read_meta(&mut self, ppn: Ppn, out: &mut [u8]) -> Result<Spare, NandError> {
        self.get_mut().read_meta(ppn, out)
    }

    fn read_spare(&mut self, ppn: Ppn) -> Result<Option<Spare>, NandError> {
        self.get_mut().read_spare(ppn)
    }

    fn probe(&mut self, ppn: Ppn) -> Result<Spare, NandError> {
        self.get_mut().probe(ppn)
    }

    fn program(&mut self, ppn: Ppn, data: &Self::Payload, spare: &Spare) -> Result<(), NandError> {
        self.get_mut().program(ppn, data, spare)
    }

    fn program_meta(&mut self, ppn: Ppn, data: &[u8], spare: &Spare) -> Result<(), NandError> {
        self.get_mut().program_meta(ppn, data, spare)
    }

    fn copy(&mut self, from: Ppn, to: Ppn, spare: &Spare) -> Result<(), NandError> {
        self.get_mut().copy(from, to, spare)
    }

    fn erase(&mut self, block: BlockId) -> Result<(), NandError> {
        self.get_mut().erase(block)
    }

    fn is_bad(&self, block: BlockId) -> bool {
        self.get().is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockId) -> Result<(), NandError> {
        self.get_mut().mark_bad(block)
    }

    fn reprogram_spare(&mut self, ppn: Ppn, spare: &Spare) -> Result<(), NandError> {
        self.get_mut().reprogram_spare(ppn, spare)
    }

    fn corrected_bits(&self) -> u32 {
        self.get().corrected_bits()
    }

    fn correctable_bits(&self) -> u32 {
        self.get().correctable_bits()
    }
}
