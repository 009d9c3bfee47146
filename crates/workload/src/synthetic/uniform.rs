//! Every slot equally likely: the worst case of most collectors.

use super::{Room, WorkloadEntry, no_check};
use crate::error::WorkloadError;
use crate::pick::Rng;
use crate::request::Source;
use crate::spec::Spec;
use crate::stream::{Picker, Shape, Stream};

pub(super) const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "uniform",
    summary: "every address equally likely",
    parameters: &[],
    common: None,
    example: "uniform:reads=30",
    check: no_check,
    build,
};

fn build(spec: &Spec, room: Room) -> Result<Box<dyn Source>, WorkloadError> {
    let shape = Shape::new(spec, room)?;
    let picker = Uniform(shape.slots);
    Ok(Stream::boxed(spec, room, shape, picker))
}

struct Uniform(u64);

impl Picker for Uniform {
    #[inline]
    fn pick(&mut self, rng: &mut Rng, _span: u64) -> u64 {
        rng.below(self.0)
    }
}
