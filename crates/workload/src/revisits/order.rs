//! The order in which extents begin.
//!
//! 1. Each phase of the trace has its share of each part's extents.
//! 2. Within a phase a walk by address leads from extent to extent, with the steps of the trace.
//! 3. A step that leads out of the footprint is drawn anew. One to a part that has no extent left
//!    in the phase leads to the nearest part that has one.

use super::{Revisits, within};
use crate::pick::{Alias, Rng};

/// Draws of a step, at most, before it ends at the footprint's end.
const TRIES: usize = 16;

/// An extent: its class, its place in that, and the part of the footprint where it lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) class: usize,
    pub(super) rank: u32,
    pub(super) part: usize,
}

/// Extents that may be next.
struct Free {
    /// For each extent one at or above it that may be free; the last stands for none.
    above: Vec<u32>,
    /// The first extent of each part, and their end.
    first: Vec<usize>,
    /// Extents of each part left in this phase.
    left: Vec<usize>,
}

impl Free {
    fn new(extents: &[Place], parts: usize) -> Free {
        let first = (0..=parts).map(|part| extents.partition_point(|extent| extent.part < part)).collect();
        Free { above: (0..=extents.len() as u32).collect(), first, left: vec![0; parts] }
    }

    fn at_or_above(&mut self, from: usize) -> usize {
        let mut at = from;
        while self.above[at] as usize != at {
            let above = self.above[self.above[at] as usize];
            self.above[at] = above;
            at = above as usize;
        }
        at
    }

    /// The part nearest to one that has extents left.
    fn nearest(&self, part: usize) -> Option<usize> {
        let has = |part: &usize| self.left.get(*part).is_some_and(|left| *left > 0);
        let beside = |distance: usize| [Some(part + distance), part.checked_sub(distance)];
        (0..self.left.len()).flat_map(beside).flatten().find(has)
    }

    /// Takes an extent of a part that has one left: the nearest at or above `wanted`, or its first.
    fn take(&mut self, part: usize, wanted: usize) -> usize {
        let (first, end) = (self.first[part], self.first[part + 1]);
        let mut extent = self.at_or_above(wanted.clamp(first, end));
        if extent >= end {
            extent = self.at_or_above(first);
        }
        debug_assert!(extent < end, "part {part} has no extent left");
        self.above[extent] = extent as u32 + 1;
        self.left[part] -= 1;
        extent
    }
}

/// Every extent once, and its phase. Extents are by address.
pub(super) fn begins(revisits: &Revisits, extents: &[Place], rng: &mut Rng) -> Vec<(u32, usize)> {
    let steps: Vec<Steps> = revisits.classes.iter().map(|class| Steps::new(&class.up, &class.down)).collect();
    let parts = extents.last().map_or(1, |extent| extent.part + 1);
    let mut free = Free::new(extents, parts);
    let shares = shares(revisits, &free.first);
    let mut order = Vec::with_capacity(extents.len());
    let mut wanted = rng.below(extents.len() as u64) as usize;
    for (phase, left) in shares.into_iter().enumerate() {
        free.left = left;
        while let Some(part) = free.nearest(extents[wanted].part) {
            let extent = free.take(part, wanted);
            order.push((extent as u32, phase));
            wanted = steps[extents[extent].class].draw(extent, extents.len(), rng);
        }
    }
    debug_assert!(order.len() == extents.len());
    order
}

/// Extents of each part in each phase; `first` is the first extent of each part.
fn shares(revisits: &Revisits, first: &[usize]) -> Vec<Vec<usize>> {
    let parts = first.len() - 1;
    let phases = revisits.begins.len().max(1);
    let mut shares = vec![vec![0; parts]; phases];
    for part in 0..parts {
        let weight = |phase: usize| {
            let row = revisits.begins.get(phase);
            row.and_then(|row| row.get(part)).map_or(0.0, |n| f64::from(*n))
        };
        let all: f64 = (0..phases).map(weight).sum();
        let (mut upto, mut before) = (0.0, 0);
        for (phase, shares) in shares.iter_mut().enumerate() {
            upto += if all > 0.0 { weight(phase) / all } else { 1.0 / phases as f64 };
            let after = ((first[part + 1] - first[part]) as f64 * upto).round() as usize;
            shares[part] = after - before;
            before = after;
        }
    }
    shares
}

/// Steps over extents by address.
struct Steps {
    weights: Option<Alias>,
    up: usize,
}

impl Steps {
    fn new(up: &[f64], down: &[f64]) -> Steps {
        let weights: Vec<f64> = up.iter().chain(down).copied().collect();
        Steps { weights: (weights.iter().sum::<f64>() > 0.0).then(|| Alias::new(&weights)), up: up.len() }
    }

    /// Where a step from an extent leads, of so many.
    fn draw(&self, from: usize, extents: usize, rng: &mut Rng) -> usize {
        let Some(weights) = &self.weights else { return (from + 1) % extents };
        let mut to = 0;
        for _ in 0..TRIES {
            let bin = weights.pick(rng.next());
            to = from as i64
                + match bin.checked_sub(self.up) {
                    None if bin == 0 => 0,
                    None => within(bin - 1, rng) as i64 + 1,
                    Some(down) => -(within(down, rng) as i64 + 1),
                };
            if (0..extents as i64).contains(&to) {
                break;
            }
        }
        to.clamp(0, extents as i64 - 1) as usize
    }
}
