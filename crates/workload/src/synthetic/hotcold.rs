//! Two temperatures: most requests go to a small hot part. Rosenblum and Ousterhout's hot-and-cold
//! pattern (ACM TOCS 10(1), 1992) is `writes=90,space=10`.

use super::{Room, WorkloadEntry};
use crate::error::WorkloadError;
use crate::param::{Kind, Parameter};
use crate::permutation::Permutation;
use crate::pick::{Chance, Rng};
use crate::request::Source;
use crate::spec::Spec;
use crate::stream::{Picker, Shape, Stream};

pub(super) const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "hotcold",
    summary: "most requests go to a small hot part, the others to the rest",
    parameters: &[
        Parameter {
            name: "writes",
            unit: "%",
            default: Some("90"),
            meaning: "share of the requests (of every kind) that go to the hot part",
            kind: Kind::Percent,
        },
        Parameter {
            name: "space",
            unit: "%",
            default: Some("10"),
            meaning: "share of the footprint that is hot",
            kind: Kind::Share,
        },
        Parameter {
            name: "scatter",
            unit: "0|1",
            default: Some("1"),
            meaning: "1: hot addresses lie scattered; 0: the hot part comes first",
            kind: Kind::Count(0, 1),
        },
    ],
    common: None,
    example: "hotcold:writes=90,space=10",
    check,
    build,
};

fn check(spec: &Spec) -> Result<(), WorkloadError> {
    match (spec.number("space"), spec.number("writes")) {
        (Some(space), Some(writes)) if space >= 100.0 && writes < 100.0 => {
            Err(spec.contradiction("space=100 leaves no cold part for the other requests"))
        }
        _ => Ok(()),
    }
}

fn build(spec: &Spec, room: Room) -> Result<Box<dyn Source>, WorkloadError> {
    let shape = Shape::new(spec, room)?;
    let writes = spec.number("writes").unwrap_or(90.0) / 100.0;
    let hot = (shape.slots as f64 * spec.number("space").unwrap_or(10.0) / 100.0).round() as u64;
    let hot = hot.clamp(1, shape.slots);
    if hot == shape.slots && writes < 1.0 {
        return Err(spec.unfit(format!("with {} slots no cold one is left", shape.slots)));
    }
    let scatter =
        (spec.count("scatter") != Some(0)).then(|| Permutation::new(shape.slots, &mut Rng::new(room.seed, 3)));
    let picker = HotCold { chance: Chance::new(writes), hot, slots: shape.slots, scatter };
    Ok(Stream::boxed(spec, room, shape, picker))
}

struct HotCold {
    chance: Chance,
    hot: u64,
    slots: u64,
    scatter: Option<Permutation>,
}

impl Picker for HotCold {
    #[inline]
    fn pick(&mut self, rng: &mut Rng, _span: u64) -> u64 {
        let rank = match self.chance.hit(rng.next()) {
            true => rng.below(self.hot),
            false => self.hot + rng.below(self.slots - self.hot),
        };
        self.scatter.as_ref().map_or(rank, |scatter| scatter.apply(rank))
    }
}
