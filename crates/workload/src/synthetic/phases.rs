//! A footprint that changes in steps, as in the evaluation of Janus-FTL (EMSOFT 2010): uniform in
//! the first so many percent of the space, for so many writes, then the next.

use super::{Room, WorkloadEntry};
use crate::error::WorkloadError;
use crate::param::{Kind, Parameter};
use crate::pick::Rng;
use crate::request::Source;
use crate::spec::Spec;
use crate::stream::{Picker, Shape, Stream};

pub(super) const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "phases",
    summary: "uniform in a footprint that changes every so many writes",
    parameters: &[
        Parameter {
            name: "footprints",
            unit: "%-%",
            default: Some("90-10-70-30"),
            meaning: "footprint of each phase, in percent of the footprint, from its start; repeated for ever",
            kind: Kind::Shares,
        },
        Parameter {
            name: "writes",
            unit: "writes",
            default: Some("100000"),
            meaning: "writes of a phase",
            kind: Kind::Count(1, u64::MAX),
        },
    ],
    common: None,
    example: "phases:footprints=90-10-70-30,writes=100000",
    check,
    build,
};

fn check(spec: &Spec) -> Result<(), WorkloadError> {
    let others = spec.number("reads").unwrap_or(0.0) + spec.number("trims").unwrap_or(0.0);
    if others >= 100.0 {
        return Err(spec.contradiction("a phase ends after so many writes, but reads and trims leave none"));
    }
    Ok(())
}

fn build(spec: &Spec, room: Room) -> Result<Box<dyn Source>, WorkloadError> {
    let shape = Shape::new(spec, room)?;
    let slots = |percent: &f64| ((shape.slots as f64 * percent / 100.0).round() as u64).clamp(1, shape.slots);
    let footprints: Vec<u64> = spec.shares("footprints").unwrap_or(&[100.0]).iter().map(slots).collect();
    let writes = spec.count("writes").unwrap_or(100_000);
    let picker = Phases { slots: footprints[0], footprints, writes, phase: 0, left: writes };
    Ok(Stream::boxed(spec, room, shape, picker))
}

struct Phases {
    footprints: Vec<u64>,
    writes: u64,
    phase: usize,
    left: u64,
    slots: u64,
}

impl Picker for Phases {
    #[inline]
    fn pick(&mut self, rng: &mut Rng, _span: u64) -> u64 {
        rng.below(self.slots)
    }

    #[inline]
    fn wrote(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            self.phase = (self.phase + 1) % self.footprints.len();
            self.slots = self.footprints[self.phase];
            self.left = self.writes;
        }
    }
}
