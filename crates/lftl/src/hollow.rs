//! Banks that keep no host data: large cards fit into memory, for measurements.

use nand::{BlockId, Capabilities, Flags, Geometry, Lpn, Nand, NandError, Ppn, SimNand, Spare, Stamp};

/// A bank that keeps spare areas, metadata, and which page of host data is where. Of host data it
/// gives back zeros.
pub struct Hollow(SimNand);

impl Hollow {
    /// An erased bank.
    #[must_use]
    pub fn new(geometry: Geometry, capabilities: Capabilities) -> Self {
        Self(SimNand::new(geometry, capabilities))
    }

    /// A bank that holds the same; what is done to one does not show in the other.
    #[must_use]
    pub fn snapshot(&mut self) -> Self {
        Self(self.0.snapshot())
    }
}

impl Nand for Hollow {
    type Payload = [u8];

    fn geometry(&self) -> &Geometry {
        self.0.geometry()
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn read(&mut self, ppn: Ppn, out: &mut [u8]) -> Result<Spare, NandError> {
        out.fill(0);
        let mut stamp = Stamp::UNWRITTEN;
        self.0.read(ppn, &mut stamp)
    }

    fn read_meta(&mut self, ppn: Ppn, out: &mut [u8]) -> Result<Spare, NandError> {
        self.0.read_meta(ppn, out)
    }

    fn read_spare(&mut self, ppn: Ppn) -> Result<Option<Spare>, NandError> {
        self.0.read_spare(ppn)
    }

    fn probe(&mut self, ppn: Ppn) -> Result<Spare, NandError> {
        self.0.probe(ppn)
    }

    fn program(&mut self, ppn: Ppn, _: &[u8], spare: &Spare) -> Result<(), NandError> {
        self.0.program(ppn, &Stamp { lpn: Lpn(spare.tag), version: 0 }, spare)
    }

    fn program_meta(&mut self, ppn: Ppn, data: &[u8], spare: &Spare) -> Result<(), NandError> {
        self.0.program_meta(ppn, data, spare)
    }

    fn copy(&mut self, from: Ppn, to: Ppn, spare: &Spare) -> Result<(), NandError> {
        self.0.copy(from, to, spare)
    }

    fn erase(&mut self, block: BlockId) -> Result<(), NandError> {
        self.0.erase(block)
    }

    fn is_bad(&self, block: BlockId) -> bool {
        self.0.is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockId) -> Result<(), NandError> {
        self.0.mark_bad(block)
    }

    fn clear_flags(&mut self, ppn: Ppn, flags: Flags) -> Result<(), NandError> {
        self.0.clear_flags(ppn, flags)
    }
}
