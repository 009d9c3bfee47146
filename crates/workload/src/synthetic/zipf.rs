//! Zipf's law: the r-th hottest slot is drawn in proportion to `1 / r^theta`.
//!
//! 1. Ranks are cut into segments: the first 64 alone, then segments that grow by 1/64 of their
//!    first rank.
//! 2. A segment is drawn by the alias method, weighted by its length times the weight of its first
//!    rank, which is an upper bound for all its ranks.
//! 3. A rank of it is drawn uniformly and accepted with the ratio of its weight to that bound; the
//!    ratio is at least that of the last rank, so the power is computed in one draw of some tens
//!    only. A refusal starts again at 2.
//!
//! The law is exact for every theta above 0, 1 included; tables have some thousand rows for 2^40
//! slots, and the cost does not grow with the space.

use super::{Room, WorkloadEntry, no_check};
use crate::error::WorkloadError;
use crate::param::{Kind, Parameter};
use crate::permutation::Permutation;
use crate::pick::{Alias, Rng};
use crate::request::Source;
use crate::spec::Spec;
use crate::stream::{Picker, Shape, Stream};

pub(super) const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "zipf",
    summary: "the r-th hottest address is drawn in proportion to 1/r^theta",
    parameters: &[
        Parameter {
            name: "theta",
            unit: "",
            default: Some("0.99"),
            meaning: "skew; YCSB's value is 0.99",
            kind: Kind::Number(0.0, 5.0),
        },
        Parameter {
            name: "scatter",
            unit: "0|1",
            default: Some("1"),
            meaning: "1: ranks lie scattered over the space; 0: hottest first",
            kind: Kind::Count(0, 1),
        },
    ],
    common: None,
    example: "zipf:theta=0.99,reads=30",
    check: no_check,
    build,
};

fn build(spec: &Spec, room: Room) -> Result<Box<dyn Source>, WorkloadError> {
    let shape = Shape::new(spec, room)?;
    let ranks = Zipf::new(shape.slots, spec.number("theta").unwrap_or(0.99));
    if spec.count("scatter") == Some(0) {
        return Ok(Stream::boxed(spec, room, shape, ranks));
    }
    let scatter = Permutation::new(shape.slots, &mut Rng::new(room.seed, 3));
    Ok(Stream::boxed(spec, room, shape, Scattered { ranks, scatter }))
}

struct Segment {
    first: u64,
    length: u64,
    /// Accepted without computing the power if the draw is at most this.
    surely: u64,
}

/// Draws ranks from 0.
pub(crate) struct Zipf {
    segments: Vec<Segment>,
    alias: Alias,
    theta: f64,
}

impl Zipf {
    /// Ranks below `n`, which is at least 1.
    pub(crate) fn new(n: u64, theta: f64) -> Self {
        let (mut segments, mut weights) = (Vec::new(), Vec::new());
        let mut first = 1u64;
        while first <= n {
            let length = (first / 64).max(1).min(n - first + 1);
            let least = (first as f64 / (first + length - 1) as f64).powf(theta);
            segments.push(Segment { first, length, surely: (least * u64::MAX as f64) as u64 });
            weights.push(length as f64 * (first as f64).powf(-theta));
            first += length;
        }
        Zipf { segments, alias: Alias::new(&weights), theta }
    }

    #[inline]
    pub(crate) fn rank(&self, rng: &mut Rng) -> u64 {
        loop {
            let segment = &self.segments[self.alias.pick(rng.next())];
            if segment.length == 1 {
                return segment.first - 1;
            }
            let rank = segment.first + rng.below(segment.length);
            let draw = rng.next();
            if draw <= segment.surely || self.accept(segment.first, rank, draw) {
                return rank - 1;
            }
        }
    }

    #[cold]
    fn accept(&self, first: u64, rank: u64, draw: u64) -> bool {
        draw as f64 <= (first as f64 / rank as f64).powf(self.theta) * u64::MAX as f64
    }
}

impl Picker for Zipf {
    #[inline]
    fn pick(&mut self, rng: &mut Rng, _span: u64) -> u64 {
        self.rank(rng)
    }
}

struct Scattered {
    ranks: Zipf,
    scatter: Permutation,
}

impl Picker for Scattered {
    #[inline]
    fn pick(&mut self, rng: &mut Rng, _span: u64) -> u64 {
        self.scatter.apply(self.ranks.rank(rng))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_the_law() {
        const DRAWS: u32 = 2_000_000;
        for theta in [0.3, 0.99, 1.0, 1.2, 3.0] {
            let n = 10_000u64;
            let zipf = Zipf::new(n, theta);
            let mut rng = Rng::new(11, 0);
            let mut counts = vec![0u32; n as usize];
            for _ in 0..DRAWS {
                counts[zipf.rank(&mut rng) as usize] += 1;
            }
            let total: f64 = (1..=n).map(|r| (r as f64).powf(-theta)).sum();
            let mut upto = 0;
            for cut in [1usize, 10, 100, 1000, 5000] {
                let seen: f64 = counts[..cut].iter().map(|c| f64::from(*c)).sum::<f64>() / f64::from(DRAWS);
                let law: f64 = (1..=cut).map(|r| (r as f64).powf(-theta)).sum::<f64>() / total;
                assert!((seen - law).abs() < 0.002, "theta {theta}, first {cut}: {seen} for {law}");
                upto += 1;
            }
            assert_eq!(upto, 5);
        }
    }
}
