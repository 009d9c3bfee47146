//! How long operations and transfers take.

use super::unit::Action;
use nand::profiles::Limits;
use nand::{Geometry, Timing};
use std::ops::Range;

/// Durations, nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) read: u64,
    pub(super) spare_read: u64,
    pub(super) program: u64,
    pub(super) erase: u64,
    /// Transfers run beside the array time of a program, and of a read.
    pub(super) cache_programs: bool,
    pub(super) cache_reads: bool,
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
    pub(super) fn new(geometry: &Geometry, timing: &Timing, limits: &Limits) -> Self {
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
            read: timing.read_ns,
            spare_read: timing.spare_read_ns,
            program: timing.program_ns,
            erase: timing.erase_ns,
            cache_programs: timing.cache_programs,
            cache_reads: timing.cache_reads,
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

    pub(super) const fn array(&self, action: Action) -> u64 {
        match action {
            Action::Read => self.read,
            Action::SpareRead => self.spare_read,
            Action::Program | Action::Flags => self.program,
            Action::Erase => self.erase,
            Action::CopyBack => self.read + self.program,
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
