//! One pass over the extents, as a circle of runs.
//!
//! 1. Extents begin in the order of [`begins`], evenly within each phase of the trace.
//! 2. After it has begun, an extent is accessed again after gaps of its class; the longest gap is
//!    what is left of the circle.
//! 3. An extent has the gaps of the one of its class that began before, with the class's chance.
//!    So what was accessed in an order is accessed again in that order.
//! 4. How many gaps an extent has is drawn so that its class has its runs in a pass.

use super::order::{Place, begins};
use super::{RevisitClass, Revisits};
use crate::pick::{Alias, Chance, Rng};

/// The weight to which a gap belongs: four of each power of two.
pub(crate) fn gap_bin(gap: u64) -> usize {
    let power = gap.ilog2();
    4 * power as usize + ((gap << 2 >> power) & 3) as usize
}

/// A gap of that weight.
fn gap(bin: usize, rng: &mut Rng) -> u64 {
    let (power, quarter) = (bin / 4, bin as u64 % 4);
    let (least, end) = ((4 + quarter) << power >> 2, (5 + quarter) << power >> 2);
    least + rng.below((end - least).max(1))
}

/// How the extents of a class are accessed again.
struct Rhythm {
    repeat: Chance,
    gaps: Option<Alias>,
    /// Runs to an extent.
    mean: f64,
    /// Extents and runs until now.
    extents: u64,
    runs: u64,
    /// The gaps of the last extent.
    last: Vec<f64>,
}

impl Rhythm {
    fn new(class: &RevisitClass, extents: usize, scale: f64) -> Rhythm {
        Rhythm {
            repeat: Chance::new(class.repeat_percent / 100.0),
            gaps: (class.gaps.iter().sum::<f64>() > 0.0).then(|| Alias::new(&class.gaps)),
            mean: class.runs * scale / extents.max(1) as f64,
            extents: 0,
            runs: 0,
            last: Vec::new(),
        }
    }

    /// The gaps of the next extent, in a circle of `all` runs.
    fn next(&mut self, all: f64, scale: f64, rng: &mut Rng) -> &[f64] {
        self.extents += 1;
        let due = self.mean * self.extents as f64 - self.runs as f64;
        let shared = self.runs > 0 && self.repeat.hit(rng.next());
        // Shared gaps must not lead away from the mean.
        if !shared || (due - (self.last.len() + 1) as f64).abs() > self.mean.max(1.0) {
            let runs = due.round().clamp(1.0, (2.0 * self.mean).ceil().max(1.0));
            self.last.clear();
            for _ in 1..runs as u64 {
                let even = all / runs;
                let drawn = self.gaps.as_ref().map_or(even, |gaps| gap(gaps.pick(rng.next()), rng) as f64 * scale);
                self.last.push(drawn);
            }
            let (sum, most) = (self.last.iter().sum::<f64>(), all * (1.0 - 1.0 / runs));
            if sum > most {
                self.last.iter_mut().for_each(|gap| *gap *= most / sum);
            }
        }
        self.runs += self.last.len() as u64 + 1;
        &self.last
    }
}

/// The extent of each run of a pass.
pub(super) fn pass(revisits: &Revisits, extents: &[Place], scale: f64, rng: &mut Rng) -> Vec<u32> {
    let order = begins(revisits, extents, rng);
    let phases = revisits.begins.len().max(1);
    let mut of_class = vec![0; revisits.classes.len()];
    extents.iter().for_each(|extent| of_class[extent.class] += 1);
    let rhythm = |(class, extents): (&RevisitClass, usize)| Rhythm::new(class, extents, scale);
    let mut rhythms: Vec<Rhythm> = revisits.classes.iter().zip(of_class).map(rhythm).collect();
    let all = revisits.runs() * scale;
    let mut runs: Vec<(f64, u32)> = Vec::new();
    for part in order.chunk_by(|a, b| a.1 == b.1) {
        for (at, &(extent, phase)) in part.iter().enumerate() {
            let begin = (phase as f64 + (at as f64 + 0.5) / part.len() as f64) * all / phases as f64;
            runs.push((begin, extent));
            let mut time = begin;
            for gap in rhythms[extents[extent as usize].class].next(all, scale, rng) {
                time += gap;
                runs.push((time % all.max(1.0), extent));
            }
        }
    }
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    runs.into_iter().map(|(_, extent)| extent).collect()
}
