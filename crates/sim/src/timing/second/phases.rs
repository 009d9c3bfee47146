//! What each operation consists of, in the second model.

use super::{Phase, Second};
use ftl::{Op, OpKind};
use nand::{ByType, Ppn};
use std::ops::Range;

/// What the operations consist of.
pub(super) struct Phases {
    pub(super) read: [Phase; 2],
    pub(super) of_host: [Phase; 2],
    pub(super) spare_read: [Phase; 2],
    pub(super) program: [Phase; 2],
    pub(super) flags: [Phase; 2],
}

impl Second {
    /// What the channel does for a part of a page, unit by unit.
    fn part(&self, part: &Range<u64>) -> Phase {
        let (page, spare) = (u64::from(self.geometry.page_bytes()), u64::from(self.geometry.spare_bytes()));
        let unit = u64::from(self.limits.read_unit_bytes);
        let touched = (0..page / unit).filter(|n| n * unit < part.end && part.start < (n + 1) * unit).count() as u64;
        let bytes = touched * unit + (touched * unit * spare).div_ceil(page);
        Phase::Bus((bytes * 1000).div_ceil(self.limits.channel_read_bytes_per_us))
    }

    /// The array time of a page, if there are times by page type.
    fn by_type(&self, ns: u64, by_type: &ByType, page: Ppn) -> Phase {
        let ns = match by_type.as_slice() {
            [] => ns,
            types => types[(self.geometry.offset_of(page) / self.pairing.distance) as usize % types.len()],
        };
        Phase::Array(ns)
    }

    pub(super) fn phases(&self, part: Option<&Range<u64>>, op: &Op) -> Phases {
        let (t, timing) = (&self.times, &self.timing);
        let from = if op.kind == OpKind::Copy { op.from } else { op.page };
        let array_read = self.by_type(timing.read_ns, &timing.read_by_type_ns, from);
        let array_program = self.by_type(timing.program_ns, &timing.program_by_type_ns, op.page);
        let [to_die, from_die] =
            [0, 1].map(|way| (Phase::Bus(t.page_transfer[way]), Phase::Bus(t.spare_transfer[way])));
        Phases {
            read: [array_read, from_die.0],
            of_host: [array_read, part.map_or(from_die.0, |part| self.part(part))],
            spare_read: [Phase::Array(timing.spare_read_ns), from_die.1],
            program: [to_die.0, array_program],
            flags: [to_die.1, array_program],
        }
    }
}
