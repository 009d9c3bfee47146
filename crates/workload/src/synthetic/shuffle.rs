//! Every slot once in random order, then every slot again in another order: random preconditioning
//! without gaps.

use super::{Room, WorkloadEntry, no_check};
use crate::error::WorkloadError;
use crate::permutation::Permutation;
use crate::pick::Rng;
use crate::request::Source;
use crate::spec::Spec;
use crate::stream::{Picker, Shape, Stream};

pub(super) const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "shuffle",
    summary: "every address once in random order, then again in another order",
    parameters: &[],
    common: None,
    example: "shuffle",
    check: no_check,
    build,
};

fn build(spec: &Spec, room: Room) -> Result<Box<dyn Source>, WorkloadError> {
    let shape = Shape::new(spec, room)?;
    let order = Permutation::new(shape.slots, &mut Rng::new(room.seed, 3));
    let picker = Shuffle { next: 0, slots: shape.slots, order };
    Ok(Stream::boxed(spec, room, shape, picker))
}

struct Shuffle {
    next: u64,
    slots: u64,
    order: Permutation,
}

impl Picker for Shuffle {
    #[inline]
    fn pick(&mut self, rng: &mut Rng, _span: u64) -> u64 {
        if self.next == self.slots {
            self.next = 0;
            self.order = Permutation::new(self.slots, rng);
        }
        self.next += 1;
        self.order.apply(self.next - 1)
    }
}
