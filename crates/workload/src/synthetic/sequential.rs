//! From the first address to the last, and again.

use super::{Room, WorkloadEntry, no_check};
use crate::error::WorkloadError;
use crate::pick::Rng;
use crate::request::Source;
use crate::spec::Spec;
use crate::stream::{Picker, Shape, Stream};

pub(super) const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "sequential",
    summary: "from the first address to the last, and again",
    parameters: &[],
    common: None,
    example: "sequential:size=128KiB",
    check: no_check,
    build,
};

fn build(spec: &Spec, room: Room) -> Result<Box<dyn Source>, WorkloadError> {
    let shape = Shape::new(spec, room)?;
    let picker = Sequential { next: 0, slots: shape.slots };
    Ok(Stream::boxed(spec, room, shape, picker))
}

struct Sequential {
    next: u64,
    slots: u64,
}

impl Picker for Sequential {
    #[inline]
    fn pick(&mut self, _rng: &mut Rng, span: u64) -> u64 {
        let at = if self.next + span > self.slots { 0 } else { self.next };
        self.next = at + span;
        at
    }
}
