//! A working set that moves: uniform in a window which travels once over the space and around its
//! end in `lap` requests.

use super::{Room, WorkloadEntry, no_check};
use crate::error::WorkloadError;
use crate::param::{Kind, Parameter};
use crate::pick::Rng;
use crate::request::Source;
use crate::spec::Spec;
use crate::stream::{Picker, Shape, Stream};

pub(super) const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "drift",
    summary: "uniform in a window that moves over the space",
    parameters: &[
        Parameter {
            name: "window",
            unit: "%",
            default: Some("10"),
            meaning: "size of the window, in percent of the footprint",
            kind: Kind::Share,
        },
        Parameter {
            name: "lap",
            unit: "requests",
            default: Some("1000000"),
            meaning: "requests until the window has been everywhere once",
            kind: Kind::Count(1, 1 << 48),
        },
    ],
    common: None,
    example: "drift:window=10,lap=1000000",
    check: no_check,
    build,
};

fn build(spec: &Spec, room: Room) -> Result<Box<dyn Source>, WorkloadError> {
    let shape = Shape::new(spec, room)?;
    let window = (shape.slots as f64 * spec.number("window").unwrap_or(10.0) / 100.0).round() as u64;
    let lap = spec.count("lap").unwrap_or(1_000_000);
    let picker = Drift {
        at: 0,
        step: (u128::from(shape.slots) << 64) / u128::from(lap),
        window: window.clamp(1, shape.slots),
        slots: shape.slots,
    };
    Ok(Stream::boxed(spec, room, shape, picker))
}

struct Drift {
    /// Start of the window, and its step, in 2^-64 slots.
    at: u128,
    step: u128,
    window: u64,
    slots: u64,
}

impl Picker for Drift {
    #[inline]
    fn pick(&mut self, rng: &mut Rng, _span: u64) -> u64 {
        let slot = (self.at >> 64) as u64 + rng.below(self.window);
        self.at += self.step;
        let end = u128::from(self.slots) << 64;
        if self.at >= end {
            self.at -= end;
        }
        if slot >= self.slots { slot - self.slots } else { slot }
    }
}
