//! How long a card of many banks takes: queues, banks, channels and the link to the host.
//!
//! Threads wait on the clock of [`crate::clock`], so in a simulation in virtual time. Exactly this
//! is modelled:
//!
//! 1. Neighbouring banks share a **read queue**, which serves one read at a time. It holds the bank
//!    for the read of the array, then the channel for the transfer.
//! 2. A **program** holds its bank from the transfer to the end, and the channel for the transfer.
//!    An **erase** holds its bank only.
//! 3. A **channel** makes one transfer at a time. Reads and writes have rates of their own.
//! 4. The **link** to the host has a rate for all reads and one for all writes. A transfer ends on
//!    the channel and on the link; they overlap.
//! 5. Whoever waits longest is served first.

use crate::clock;
use crate::sync::{Mutex, lock};
use nand::{BlockId, Capabilities, Flags, Geometry, Limits, Nand, NandError, Ppn, Profile, Spare, Timing};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The times of a card's banks. All methods may be called from any thread.
pub struct Card {
    timing: Timing,
    limits: Limits,
    banks_a_channel: u32,
    read_queues: Vec<Mutex<()>>,
    banks: Vec<Mutex<()>>,
    channels: Vec<Mutex<()>>,
    /// When the link has sent what it was given, nanoseconds.
    host_read_ns: AtomicU64,
    host_write_ns: AtomicU64,
}

impl Card {
    /// The first `banks` of a card of this profile, which fill one channel after the other.
    #[must_use]
    pub fn new(profile: &Profile, banks: u32) -> Arc<Self> {
        let each = profile.geometry.dies_per_channel.max(1);
        let idle = |count: u32| (0..count).map(|_| Mutex::new(())).collect();
        Arc::new(Self {
            timing: profile.timing,
            limits: profile.limits,
            banks_a_channel: each,
            read_queues: idle(banks.div_ceil(profile.limits.read_queue_dies.max(1))),
            banks: idle(banks),
            channels: idle(banks.div_ceil(each)),
            host_read_ns: AtomicU64::new(0),
            host_write_ns: AtomicU64::new(0),
        })
    }

    /// Waits for a read of so many bytes of a page.
    pub fn read(&self, bank: u32, bytes: usize) {
        let unit = self.limits.read_unit_bytes as usize;
        self.take_from(bank, self.timing.read_ns, bytes.max(unit));
    }

    /// Waits for a read of a spare area: of the least that a read fetches.
    pub fn read_spare(&self, bank: u32) {
        self.take_from(bank, self.timing.spare_read_ns, self.limits.read_unit_bytes as usize);
    }

    fn take_from(&self, bank: u32, array_ns: u64, bytes: usize) {
        let _queue = lock(&self.read_queues[(bank / self.limits.read_queue_dies.max(1)) as usize]);
        let _bank = lock(&self.banks[bank as usize]);
        clock::sleep(Duration::from_nanos(array_ns));
        let rate = match self.limits.channel_read_bytes_per_us {
            0 => self.timing.channel_bytes_per_us,
            rate => rate,
        };
        self.transfer(bank, bytes, rate, (&self.host_read_ns, self.limits.host_read_bytes_per_us));
    }

    /// Waits for a program of so many bytes.
    pub fn program(&self, bank: u32, bytes: usize) {
        let _bank = lock(&self.banks[bank as usize]);
        let link = (&self.host_write_ns, self.limits.host_write_bytes_per_us);
        self.transfer(bank, bytes, self.timing.channel_bytes_per_us, link);
        clock::sleep(Duration::from_nanos(self.timing.program_ns));
    }

    /// Waits for an erase.
    pub fn erase(&self, bank: u32) {
        let _bank = lock(&self.banks[bank as usize]);
        clock::sleep(Duration::from_nanos(self.timing.erase_ns));
    }

    /// Waits for a transfer over the channel of a bank and over the link to the host.
    fn transfer(&self, bank: u32, bytes: usize, rate: u64, (link, link_rate): (&AtomicU64, u64)) {
        let _channel = lock(&self.channels[(bank / self.banks_a_channel) as usize]);
        let now_ns = u64::try_from(clock::now().as_nanos()).unwrap_or(u64::MAX);
        let takes_ns = nanoseconds(bytes, link_rate);
        let sent = |until_ns: u64| Some(until_ns.max(now_ns) + takes_ns);
        let before_ns = link.fetch_update(Ordering::AcqRel, Ordering::Acquire, sent).unwrap_or_default();
        let link_ns = before_ns.max(now_ns) + takes_ns - now_ns;
        clock::sleep(Duration::from_nanos(link_ns.max(nanoseconds(bytes, rate))));
    }
}

/// Nanoseconds that bytes take at a rate in bytes per microsecond; 0 if that has no limit.
fn nanoseconds(bytes: usize, rate: u64) -> u64 {
    (bytes as u64 * 1000).checked_div(rate).unwrap_or(0)
}

/// A bank that takes as long as that of a card.
pub struct Timed<N> {
    inner: N,
    card: Arc<Card>,
    bank: u32,
    driver: Duration,
}

impl<N: Nand<Payload = [u8]>> Timed<N> {
    /// Bank `bank` of a card. Each operation begins with the time that its driver takes.
    ///
    /// The caller names a bank that the card has.
    pub fn new(inner: N, card: &Arc<Card>, bank: u32, driver: Duration) -> Self {
        debug_assert!((bank as usize) < card.banks.len());
        Self { inner, card: Arc::clone(card), bank, driver }
    }

    /// The bank without its times.
    pub fn into_inner(self) -> N {
        self.inner
    }

    fn driver(&self) {
        if !self.driver.is_zero() {
            clock::sleep(self.driver);
        }
    }

    fn reads(&self, bytes: usize) {
        self.driver();
        self.card.read(self.bank, bytes);
    }

    fn programs(&self, bytes: usize) {
        self.driver();
        self.card.program(self.bank, bytes);
    }
}

impl<N: Nand<Payload = [u8]>> Nand for Timed<N> {
    type Payload = [u8];

    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn read(&mut self, ppn: Ppn, out: &mut [u8]) -> Result<Spare, NandError> {
        self.reads(out.len());
        self.inner.read(ppn, out)
    }

    fn read_meta(&mut self, ppn: Ppn, out: &mut [u8]) -> Result<Spare, NandError> {
        self.reads(out.len());
        self.inner.read_meta(ppn, out)
    }

    fn read_spare(&mut self, ppn: Ppn) -> Result<Option<Spare>, NandError> {
        self.driver();
        self.card.read_spare(self.bank);
        self.inner.read_spare(ppn)
    }

    fn probe(&mut self, ppn: Ppn) -> Result<Spare, NandError> {
        self.reads(self.geometry().page_bytes() as usize);
        self.inner.probe(ppn)
    }

    fn program(&mut self, ppn: Ppn, data: &[u8], spare: &Spare) -> Result<(), NandError> {
        self.programs(data.len());
        self.inner.program(ppn, data, spare)
    }

    fn program_meta(&mut self, ppn: Ppn, data: &[u8], spare: &Spare) -> Result<(), NandError> {
        // A page is transferred whole.
        self.programs(self.geometry().page_bytes() as usize);
        self.inner.program_meta(ppn, data, spare)
    }

    fn copy(&mut self, from: Ppn, to: Ppn, spare: &Spare) -> Result<(), NandError> {
        let bytes = self.geometry().page_bytes() as usize;
        self.reads(bytes);
        self.programs(bytes);
        self.inner.copy(from, to, spare)
    }

    fn erase(&mut self, block: BlockId) -> Result<(), NandError> {
        self.driver();
        self.card.erase(self.bank);
        self.inner.erase(block)
    }

    fn is_bad(&self, block: BlockId) -> bool {
        self.inner.is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockId) -> Result<(), NandError> {
        self.inner.mark_bad(block)
    }

    fn clear_flags(&mut self, ppn: Ppn, flags: Flags) -> Result<(), NandError> {
        self.programs(0);
        self.inner.clear_flags(ppn, flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{now, simulate, together};

    const PAGE: usize = 32 << 10;

    /// Nanoseconds that operations take which begin together.
    fn takes<F: FnOnce() + Send>(tasks: Vec<F>) -> u64 {
        let elapsed = simulate(|| {
            together(tasks);
            now()
        });
        elapsed.map(|time| time.as_nanos() as u64).unwrap_or_default()
    }

    #[test]
    fn what_shares_a_part_waits_for_it_and_nothing_else_does() {
        let profile = nand::find("lftl-card").cloned().unwrap_or_else(|| nand::profiles()[0].clone());
        let (read, sent) = (profile.timing.read_ns, PAGE as u64 * 1000 / 290);
        let reads = |banks: &[u32]| {
            let card = Card::new(&profile, 64);
            takes(
                banks
                    .iter()
                    .map(|bank| (card.clone(), *bank))
                    .map(|(card, bank)| move || card.read(bank, PAGE))
                    .collect(),
            )
        };
        assert_eq!(reads(&[0]), read + sent);
        assert_eq!(reads(&[0, 1]), 2 * (read + sent), "they share a queue");
        assert_eq!(reads(&[0, 2]), read + 2 * sent, "they share a channel");
        let link = PAGE as u64 * 1000 / 312;
        assert_eq!(reads(&[0, 16]), read + 2 * link, "they share the link");
        let (program, sent) = (profile.timing.program_ns, PAGE as u64 * 1000 / 246);
        let programs = |banks: &[u32]| {
            let card = Card::new(&profile, 64);
            takes(
                banks
                    .iter()
                    .map(|bank| (card.clone(), *bank))
                    .map(|(card, bank)| move || card.program(bank, PAGE))
                    .collect(),
            )
        };
        assert_eq!(programs(&[5]), sent + program);
        assert_eq!(programs(&[5, 5]), 2 * (sent + program), "a bank does one at a time");
        assert_eq!(programs(&[4, 5]), 2 * sent + program);
        assert_eq!(programs(&[5, 16]), sent + program, "another channel");
        let card = Card::new(&profile, 64);
        let (a, b) = (Arc::clone(&card), Arc::clone(&card));
        let erases: Vec<Box<dyn FnOnce() + Send>> = vec![Box::new(move || a.erase(3)), Box::new(move || b.erase(2))];
        assert_eq!(takes(erases), profile.timing.erase_ns);
    }
}
