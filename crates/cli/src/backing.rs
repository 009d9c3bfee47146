//! The flash below a disk that keeps every byte: in a file, or in memory.
//!
//! One type for all of them, so that every FTL is compiled once for devices of bytes.

use nand::{BlockId, Capabilities, FileNand, Flags, Geometry, MemNand, Nand, NandError, Ppn, Spare, Timing};
use std::time::{Duration, Instant};

/// Flash that keeps every byte.
pub struct Backing {
    device: Device,
    pace: Option<Pace>,
}

enum Device {
    File(FileNand),
    Memory(MemNand),
}

impl From<FileNand> for Backing {
    fn from(nand: FileNand) -> Self {
        Self { device: Device::File(nand), pace: None }
    }
}

impl From<MemNand> for Backing {
    fn from(nand: MemNand) -> Self {
        Self { device: Device::Memory(nand), pace: None }
    }
}

impl Backing {
    /// The same device, on which each operation takes as long as on flash of these times.
    pub fn paced(self, timing: Timing) -> Self {
        Self { pace: Some(Pace::new(timing)), ..self }
    }

    /// Closes the device so that nothing has to be looked for when it is opened again.
    pub fn close(self) -> anyhow::Result<()> {
        match self.device {
            Device::File(nand) => Ok(nand.close()?),
            Device::Memory(_) => Ok(()),
        }
    }
}

/// Lets operations take time.
struct Pace {
    timing: Timing,
    /// When the operations so far would have ended.
    free_at: Instant,
}

/// A thread is not sent to sleep for less: the next operation waits for it too.
const SLEEP_MIN: Duration = Duration::from_micros(100);

impl Pace {
    fn new(timing: Timing) -> Self {
        Self { timing, free_at: Instant::now() }
    }

    /// Waits until an operation has ended that takes so long and begins now.
    fn wait(&mut self, ns: u64) {
        let now = Instant::now();
        self.free_at = self.free_at.max(now) + Duration::from_nanos(ns);
        let left = self.free_at - now;
        if left >= SLEEP_MIN {
            std::thread::sleep(left);
        }
    }

    fn transfer_ns(&self, bytes: usize) -> u64 {
        (bytes as u64 * 1000).checked_div(self.timing.channel_bytes_per_us).unwrap_or(0)
    }
}

/// Calls a method of whichever device it is.
macro_rules! on {
    ($backing:expr, $device:ident => $call:expr) => {
        match &mut $backing.device {
            Device::File($device) => $call,
            Device::Memory($device) => $call,
        }
    };
}

impl Backing {
    fn read_takes(&mut self, bytes: usize) {
        if let Some(pace) = &mut self.pace {
            pace.wait(pace.timing.read_ns + pace.transfer_ns(bytes));
        }
    }

    fn program_takes(&mut self, bytes: usize) {
        if let Some(pace) = &mut self.pace {
            pace.wait(pace.timing.program_ns + pace.transfer_ns(bytes));
        }
    }
}

impl Nand for Backing {
    type Payload = [u8];

    #[inline]
    fn geometry(&self) -> &Geometry {
        match &self.device {
            Device::File(nand) => nand.geometry(),
            Device::Memory(nand) => nand.geometry(),
        }
    }

    fn capabilities(&self) -> Capabilities {
        match &self.device {
            Device::File(nand) => nand.capabilities(),
            Device::Memory(nand) => nand.capabilities(),
        }
    }

    fn read(&mut self, ppn: Ppn, out: &mut [u8]) -> Result<Spare, NandError> {
        self.read_takes(out.len());
        on!(self, nand => nand.read(ppn, out))
    }

    fn read_meta(&mut self, ppn: Ppn, out: &mut [u8]) -> Result<Spare, NandError> {
        self.read_takes(out.len());
        on!(self, nand => nand.read_meta(ppn, out))
    }

    fn read_spare(&mut self, ppn: Ppn) -> Result<Option<Spare>, NandError> {
        if let Some(pace) = &mut self.pace {
            pace.wait(pace.timing.spare_read_ns);
        }
        on!(self, nand => nand.read_spare(ppn))
    }

    fn probe(&mut self, ppn: Ppn) -> Result<Spare, NandError> {
        self.read_takes(0);
        on!(self, nand => nand.probe(ppn))
    }

    fn program(&mut self, ppn: Ppn, data: &[u8], spare: &Spare) -> Result<(), NandError> {
        self.program_takes(data.len());
        on!(self, nand => nand.program(ppn, data, spare))
    }

    fn program_meta(&mut self, ppn: Ppn, data: &[u8], spare: &Spare) -> Result<(), NandError> {
        self.program_takes(data.len());
        on!(self, nand => nand.program_meta(ppn, data, spare))
    }

    fn copy(&mut self, from: Ppn, to: Ppn, spare: &Spare) -> Result<(), NandError> {
        let bytes = self.geometry().page_bytes() as usize;
        self.read_takes(bytes);
        self.program_takes(bytes);
        on!(self, nand => nand.copy(from, to, spare))
    }

    fn erase(&mut self, block: BlockId) -> Result<(), NandError> {
        if let Some(pace) = &mut self.pace {
            pace.wait(pace.timing.erase_ns);
        }
        on!(self, nand => nand.erase(block))
    }

    fn is_bad(&self, block: BlockId) -> bool {
        match &self.device {
            Device::File(nand) => nand.is_bad(block),
            Device::Memory(nand) => nand.is_bad(block),
        }
    }

    fn mark_bad(&mut self, block: BlockId) -> Result<(), NandError> {
        on!(self, nand => nand.mark_bad(block))
    }

    fn clear_flags(&mut self, ppn: Ppn, flags: Flags) -> Result<(), NandError> {
        self.program_takes(0);
        on!(self, nand => nand.clear_flags(ppn, flags))
    }

    fn corrected_bits(&self) -> u32 {
        match &self.device {
            Device::File(nand) => nand.corrected_bits(),
            Device::Memory(nand) => nand.corrected_bits(),
        }
    }

    fn correctable_bits(&self) -> u32 {
        match &self.device {
            Device::File(nand) => nand.correctable_bits(),
            Device::Memory(nand) => nand.correctable_bits(),
        }
    }
}
