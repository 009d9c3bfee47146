//! A fixed step from request to request; each lap starts one request further, so that all slots are
//! visited.

use super::{Room, WorkloadEntry, no_check};
use crate::error::WorkloadError;
use crate::param::{Kind, Parameter};
use crate::pick::Rng;
use crate::request::Source;
use crate::spec::Spec;
use crate::stream::{Picker, Shape, Stream};

pub(super) const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "strided",
    summary: "a fixed step from request to request; each lap starts one request further",
    parameters: &[Parameter {
        name: "stride",
        unit: "bytes",
        default: Some("1MiB"),
        meaning: "bytes from the start of a request to the start of the next; a multiple of align",
        kind: Kind::Bytes,
    }],
    common: None,
    example: "strided:stride=1MiB",
    check: no_check,
    build,
};

fn build(spec: &Spec, room: Room) -> Result<Box<dyn Source>, WorkloadError> {
    let shape = Shape::new(spec, room)?;
    let stride = spec.size("stride").map_or(1 << 20, |s| s.bytes(room.page_bytes));
    if !stride.is_multiple_of(shape.align) {
        return Err(spec.bad("stride", format!("it must be a multiple of align, {} B here", shape.align)));
    }
    let stride = stride / shape.align;
    if stride >= shape.slots {
        return Err(spec.unfit(format!("the stride is not smaller than the footprint of {} slots", shape.slots)));
    }
    let picker = Strided { next: 0, lap: 0, stride, slots: shape.slots };
    Ok(Stream::boxed(spec, room, shape, picker))
}

struct Strided {
    next: u64,
    lap: u64,
    stride: u64,
    slots: u64,
}

impl Picker for Strided {
    #[inline]
    fn pick(&mut self, _rng: &mut Rng, span: u64) -> u64 {
        if self.next + span > self.slots {
            self.lap += span;
            if self.lap >= self.stride || self.lap + span > self.slots {
                self.lap = 0;
            }
            self.next = self.lap;
        }
        let at = self.next;
        self.next += self.stride;
        at
    }
}
