//! Several sequential writers, each in its own part of the space, interleaved at random:
//! compactions, log files, tenants.

use super::{Room, WorkloadEntry, no_check};
use crate::error::WorkloadError;
use crate::param::{Kind, Parameter};
use crate::pick::Rng;
use crate::request::Source;
use crate::spec::Spec;
use crate::stream::{Picker, Shape, Stream};

pub(super) const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "streams",
    summary: "several sequential streams, each in an equal part of the space, interleaved at random",
    parameters: &[Parameter {
        name: "count",
        unit: "streams",
        default: Some("8"),
        meaning: "number of streams",
        kind: Kind::Count(1, 1 << 20),
    }],
    common: None,
    example: "streams:count=8,size=64KiB",
    check: no_check,
    build,
};

fn build(spec: &Spec, room: Room) -> Result<Box<dyn Source>, WorkloadError> {
    let shape = Shape::new(spec, room)?;
    let count = spec.count("count").unwrap_or(8);
    let part = shape.slots / count;
    if part == 0 {
        return Err(spec.unfit(format!("{} slots cannot be divided among {count} streams", shape.slots)));
    }
    let picker = Streams { next: vec![0; count as usize], part };
    Ok(Stream::boxed(spec, room, shape, picker))
}

struct Streams {
    next: Vec<u64>,
    part: u64,
}

impl Picker for Streams {
    #[inline]
    fn pick(&mut self, rng: &mut Rng, span: u64) -> u64 {
        let stream = rng.below(self.next.len() as u64);
        let next = &mut self.next[stream as usize];
        let at = if *next + span > self.part { 0 } else { *next };
        *next = at + span;
        stream * self.part + at
    }
}
