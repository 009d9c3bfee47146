//! The flash below a disk that keeps every byte: in a file, in memory, or behind Linux MTD.
//!
//! One type for all of them: what is asked of a device before an FTL has it does not depend on
//! where it is.

#[cfg(target_os = "linux")]
use mtd::MtdNand;
use nand::file::{Syncer, Usage};
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
    #[cfg(target_os = "linux")]
    Mtd(MtdNand),
}

/// Calls a method of whichever device it is.
macro_rules! on {
    ($device:expr, $nand:ident => $call:expr) => {
        match $device {
            Device::File($nand) => $call,
            Device::Memory($nand) => $call,
            #[cfg(target_os = "linux")]
            Device::Mtd($nand) => $call,
        }
    };
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

#[cfg(target_os = "linux")]
impl From<MtdNand> for Backing {
    fn from(nand: MtdNand) -> Self {
        Self { device: Device::Mtd(nand), pace: None }
    }
}

impl Backing {
    /// The device in a file, if that is what it is.
    pub fn file(&self) -> Option<&FileNand> {
        match &self.device {
            Device::File(nand) => Some(nand),
            _ => None,
        }
    }

    /// What its pages hold, by their spare areas; `None` in memory, where nobody asks.
    pub fn usage(&mut self) -> anyhow::Result<Option<Usage>> {
        Ok(match &mut self.device {
            Device::File(nand) => Some(nand.usage()?),
            Device::Memory(_) => None,
            #[cfg(target_os = "linux")]
            Device::Mtd(nand) => Some(nand.usage()?),
        })
    }

    /// What makes completed operations survive its host; `None` if nothing has to be done for that.
    pub fn syncer(&self) -> Option<Syncer> {
        self.file().map(FileNand::syncer)
    }

    /// The same device, on which each operation takes as long as on flash of these times.
    pub fn paced(self, timing: Timing) -> Self {
        Self { pace: Some(Pace::new(timing)), ..self }
    }
}

/// Lets operations take time.
struct Pace {
    timing: Timing,
    /// When the operations so far would have ended.
    free_at: Instant,
    /// How much later than that the thread was woken. It is taken off the next operation: the flash
    /// does not wait for the host's scheduler.
    late: Duration,
}

/// A thread is not sent to sleep for less: the next operation waits for it too.
const SLEEP_MIN: Duration = Duration::from_micros(100);
/// No more than this is taken off: who was woken later may have had nothing to do meanwhile.
const LATE_MAX: Duration = Duration::from_millis(1);

impl Pace {
    fn new(timing: Timing) -> Self {
        Self { timing, free_at: Instant::now(), late: Duration::ZERO }
    }

    /// Waits until an operation has ended that takes so long and begins now.
    fn wait(&mut self, ns: u64) {
        let left = self.begin(Instant::now(), ns);
        if left >= SLEEP_MIN {
            std::thread::sleep(left);
            self.woken(Instant::now());
        }
    }

    /// Begins an operation; how long it still takes.
    fn begin(&mut self, now: Instant, ns: u64) -> Duration {
        let begin = now.checked_sub(std::mem::take(&mut self.late)).unwrap_or(now);
        self.free_at = self.free_at.max(begin) + Duration::from_nanos(ns);
        self.late = now.saturating_duration_since(self.free_at);
        self.free_at.saturating_duration_since(now)
    }

    fn woken(&mut self, now: Instant) {
        self.late = now.saturating_duration_since(self.free_at).min(LATE_MAX);
    }

    fn transfer_ns(&self, bytes: usize) -> u64 {
        (bytes as u64 * 1000).checked_div(self.timing.channel_bytes_per_us).unwrap_or(0)
    }
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
        on!(&self.device, nand => nand.geometry())
    }

    fn capabilities(&self) -> Capabilities {
        on!(&self.device, nand => nand.capabilities())
    }

    fn read(&mut self, ppn: Ppn, out: &mut [u8]) -> Result<Spare, NandError> {
        self.read_takes(out.len());
        on!(&mut self.device, nand => nand.read(ppn, out))
    }

    fn read_meta(&mut self, ppn: Ppn, out: &mut [u8]) -> Result<Spare, NandError> {
        self.read_takes(out.len());
        on!(&mut self.device, nand => nand.read_meta(ppn, out))
    }

    fn read_spare(&mut self, ppn: Ppn) -> Result<Option<Spare>, NandError> {
        if let Some(pace) = &mut self.pace {
            pace.wait(pace.timing.spare_read_ns);
        }
        on!(&mut self.device, nand => nand.read_spare(ppn))
    }

    fn probe(&mut self, ppn: Ppn) -> Result<Spare, NandError> {
        self.read_takes(0);
        on!(&mut self.device, nand => nand.probe(ppn))
    }

    fn program(&mut self, ppn: Ppn, data: &[u8], spare: &Spare) -> Result<(), NandError> {
        self.program_takes(data.len());
        on!(&mut self.device, nand => nand.program(ppn, data, spare))
    }

    fn program_meta(&mut self, ppn: Ppn, data: &[u8], spare: &Spare) -> Result<(), NandError> {
        self.program_takes(data.len());
        on!(&mut self.device, nand => nand.program_meta(ppn, data, spare))
    }

    fn copy(&mut self, from: Ppn, to: Ppn, spare: &Spare) -> Result<(), NandError> {
        let bytes = self.geometry().page_bytes() as usize;
        self.read_takes(bytes);
        self.program_takes(bytes);
        on!(&mut self.device, nand => nand.copy(from, to, spare))
    }

    fn erase(&mut self, block: BlockId) -> Result<(), NandError> {
        if let Some(pace) = &mut self.pace {
            pace.wait(pace.timing.erase_ns);
        }
        on!(&mut self.device, nand => nand.erase(block))
    }

    fn is_bad(&self, block: BlockId) -> bool {
        on!(&self.device, nand => nand.is_bad(block))
    }

    fn mark_bad(&mut self, block: BlockId) -> Result<(), NandError> {
        on!(&mut self.device, nand => nand.mark_bad(block))
    }

    fn clear_flags(&mut self, ppn: Ppn, flags: Flags) -> Result<(), NandError> {
        self.program_takes(0);
        on!(&mut self.device, nand => nand.clear_flags(ppn, flags))
    }

    fn corrected_bits(&self) -> u32 {
        on!(&self.device, nand => nand.corrected_bits())
    }

    fn correctable_bits(&self) -> u32 {
        on!(&self.device, nand => nand.correctable_bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_makes_up_for_a_late_wake_but_not_for_idle_time() {
        let timing = Timing::NONE;
        let mut pace = Pace::new(timing);
        let micros = Duration::from_micros;
        let begin = pace.free_at;
        assert_eq!(pace.begin(begin, 300_000), micros(300));
        pace.woken(begin + micros(380));
        // The next operation comes 20 us after the wake, and began 80 us before it did.
        assert_eq!(pace.begin(begin + micros(400), 300_000), micros(220));
        pace.woken(begin + micros(620));
        // Shorter than the delay: the rest is left for the one after it.
        pace.woken(begin + micros(920));
        assert_eq!(pace.begin(begin + micros(920), 100_000), Duration::ZERO);
        assert_eq!(pace.begin(begin + micros(920), 300_000), micros(100));
        pace.woken(begin + micros(1020));
        assert_eq!(pace.begin(begin + micros(50_000), 300_000), micros(300), "idle time is no delay");
        pace.woken(begin + micros(90_000));
        assert_eq!(pace.begin(begin + micros(90_000), 3_000_000), micros(2000), "a long delay counts in part");
    }
}
