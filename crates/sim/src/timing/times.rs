//! How long operations and transfers take.

use super::unit::{Action, Task};
use crate::spec::DevicePlan;
use nand::{Pairing, Timing};
use std::ops::Range;

/// Durations, nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) timing: Timing,
    /// Tells the type of a page.
    pub(super) pairing: Pairing,
    /// Into the die, and out of it.
    pub(super) page_transfer: [u64; 2],
    pub(super) spare_transfer: [u64; 2],
    /// A page with its spare area, bytes.
    whole_bytes: u64,
    page_bytes: u64,
    /// The least of a page that a read transfers, bytes.
    unit_bytes: u64,
    /// Of what is read, bytes per microsecond.
    read_rate: u64,
}

/// Nanoseconds that so many bytes take; no rate means no time.
fn transfer_ns(bytes: u64, bytes_per_us: u64) -> u64 {
    if bytes_per_us == 0 { 0 } else { (bytes * 1000).div_ceil(bytes_per_us) }
}

impl Times {
    pub(super) fn new(device: &DevicePlan) -> Self {
        let DevicePlan { geometry, timing, limits, pairing, .. } = device;
        let page_bytes = u64::from(geometry.page_bytes());
        let bytes = page_bytes + u64::from(geometry.spare_bytes());
        let rate = timing.channel_bytes_per_us;
        let read_rate = if limits.channel_read_bytes_per_us == 0 { rate } else { limits.channel_read_bytes_per_us };
        let both = |bytes| [rate, read_rate].map(|rate| transfer_ns(bytes, rate));
        let unit_bytes = match limits.read_unit_bytes {
            0 => page_bytes,
            unit => u64::from(unit).min(page_bytes),
        };
        Self {
            timing: *timing,
            pairing: *pairing,
            page_transfer: both(bytes),
            spare_transfer: both(bytes.div_ceil(SPARE_SHARE)),
            whole_bytes: bytes,
            page_bytes,
            unit_bytes,
            read_rate,
        }
    }

    /// The transfer of the read units that these bytes of a page touch.
    pub(super) fn part_transfer(&self, part: &Range<u64>) -> u64 {
        debug_assert!(part.start < part.end && part.end <= self.page_bytes, "{part:?} is no part of a page");
        let first = part.start / self.unit_bytes * self.unit_bytes;
        let end = part.end.next_multiple_of(self.unit_bytes).min(self.page_bytes);
        transfer_ns(((end - first) * self.whole_bytes).div_ceil(self.page_bytes), self.read_rate)
    }

    pub(super) fn array(&self, task: &Task) -> u64 {
        let Timing { read_ns, spare_read_ns, program_ns, erase_ns, .. } = self.timing;
        let read = || self.timing.read_by_type_ns.at(self.pairing, task.read_offset, read_ns);
        let program = || self.timing.program_by_type_ns.at(self.pairing, task.offset, program_ns);
        match task.action {
            Action::Read => read(),
            Action::SpareRead => spare_read_ns,
            Action::Program | Action::Flags => program(),
            Action::Erase => erase_ns,
            Action::CopyBack => read() + program(),
        }
    }

    pub(super) const fn transfer(&self, action: Action) -> u64 {
        match action {
            Action::Program => self.page_transfer[0],
            Action::Read => self.page_transfer[1],
            Action::Flags => self.spare_transfer[0],
            Action::SpareRead => self.spare_transfer[1],
            Action::Erase | Action::CopyBack => 0,
        }
    }
}

/// A spare read or a program of flags transfers one part in so many of a page with its spare area.
const SPARE_SHARE: u64 = 32;
