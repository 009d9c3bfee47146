//! Steering by what was measured, where the paper trusts equation 4 at every size.
//!
//! Equation 4 can be off by several times: it knows nothing of how requests skew within a logical
//! block, nor of what log blocks spare. So the sizes of the page-mapped area are rated by three
//! things:
//!
//! 1. The cost of a write is measured while the area has the size that it should have: the time of
//!    all flash operations but reads of the host, over the writes. It is remembered by size.
//! 2. A size without a measurement is rated by equation 4, with what a write costs beyond its own
//!    program scaled as it has to be at the measured sizes next to it. No write costs less than a
//!    program.
//! 3. Shrinking is charged to the writes for which it should pay, as many as were written since the
//!    last move.
//!
//! The area moves to the least of them, to at most four times and at least half its size, waits
//! until it has that size, and measures. A remembered size that was better takes it back. Where
//! nothing is better, a neighbour is tried now and then, less often after each time and only as far
//! as a small share of all costs pays for it; one that costs much more is left at once. When costs
//! change at a size that stays, what is remembered is forgotten.

use super::ghost::SIZES;

/// Writes between two looks, at least. Fewer hold too few collections to measure by.
pub(super) const LEAST_PERIOD: u32 = 2048;

/// Periods that pass after the area has reached its size, and periods that are measured then.
const PERIODS: (u32, u32) = (1, 2);
/// Periods that an average covers.
const AVERAGED: u32 = 8;
/// Decisions for which a measurement counts.
const MEMORY: u32 = 128;
/// A size has to be this much cheaper, over the cost now.
const GAIN: f64 = 0.97;
/// A neighbour that is tried is left at once if a period there costs so many times as much.
const TOO_MUCH: f64 = 1.25;
/// Periods for which a move should pay, at least.
const HORIZON: u32 = 16;
/// The share of all costs that trying neighbours may take.
const TRYING: f64 = 0.02;
/// Periods without a move before a neighbour is tried, at first and at most.
const PATIENCE: (u32, u32) = (4, 64);
/// A period's cost beyond the program that is so many times the average, or its inverse, says that
/// the workload changed.
const CHANGED: f64 = 2.5;

/// A size by equation 4.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rated {
    pub(super) blocks: u32,
    pub(super) write_us: f64,
    pub(super) defusion_us: f64,
}

/// A period of writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Period {
    pub(super) writes: u32,
    /// Logical blocks in the area at its end.
    pub(super) fused: u32,
    /// Cost of a write, µs.
    pub(super) write_us: f64,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    write_us: f64,
    age: u32,
}

/// What is known of sizes, and where the area is going.
pub(super) struct Steering {
    known: [Option<Known>; SIZES],
    at: usize,
    fused: u32,
    /// Periods for which the area has had its size.
    steady: u32,
    /// Periods since the last move.
    stayed: u32,
    patience: u32,
    /// What trying neighbours may cost, µs.
    budget_us: f64,
    /// Where the area came from to try a neighbour, and what a write costs there, µs.
    home: Option<(usize, f64)>,
    program_us: f64,
}

impl Steering {
    /// Nothing is known yet; the area should hold `target` logical blocks.
    pub(super) fn new(sizes: &[Rated], target: u32, program_us: f64) -> Self {
        let at = sizes.iter().position(|size| size.blocks >= target).unwrap_or(sizes.len().saturating_sub(1));
        Self {
            known: [None; SIZES],
            at,
            fused: 0,
            steady: 0,
            stayed: 0,
            patience: PATIENCE.0,
            budget_us: 0.0,
            home: None,
            program_us,
        }
    }

    /// A period ended; the size that the area should have from now on.
    pub(super) fn decide(&mut self, period: Period, sizes: &[Rated]) -> u32 {
        debug_assert!(self.at < sizes.len() && sizes.len() <= SIZES, "size {} of {}", self.at, sizes.len());
        self.budget_us += period.write_us * f64::from(period.writes) * TRYING;
        self.stayed += 1;
        self.watch(period, sizes[self.at].blocks);
        if self.leaves(period) {
            return sizes[self.at].blocks;
        }
        // Where nothing is known the first period has to do.
        let nothing = self.known.iter().all(Option::is_none);
        let (wait, measure) = if nothing { (0, 1) } else { PERIODS };
        if self.steady > wait {
            self.measured(period.write_us);
        }
        if self.steady >= wait + measure {
            self.consider(period, sizes);
        }
        sizes[self.at].blocks
    }

    /// Charges what a neighbour costs that is being tried, and goes home if it is too much.
    fn leaves(&mut self, period: Period) -> bool {
        let Some((home, home_us)) = self.home else { return false };
        self.budget_us -= (period.write_us - home_us).max(0.0) * f64::from(period.writes);
        if period.write_us <= TOO_MUCH * home_us {
            return false;
        }
        self.known[self.at] = Some(Known { write_us: period.write_us, age: 0 });
        self.go(home);
        true
    }

    /// Whether the area has the size that it should have. One that stays smaller, because
    /// everything hits, has it too.
    fn watch(&mut self, period: Period, target: u32) {
        let moved = period.fused.abs_diff(self.fused);
        let there = period.fused.abs_diff(target) <= target / 16;
        let rests = period.fused < target && moved <= period.fused / 32;
        self.fused = period.fused;
        self.steady = if there || rests { self.steady + 1 } else { 0 };
    }

    fn measured(&mut self, write_us: f64) {
        let beyond = |us: f64| (us - self.program_us).max(0.05 * self.program_us);
        let before = self.known[self.at].filter(|known| known.age == 0);
        if let Some(known) = before {
            let times = beyond(write_us) / beyond(known.write_us);
            if self.steady > PERIODS.0 + PERIODS.1 && !(1.0 / CHANGED..=CHANGED).contains(&times) {
                self.known = [None; SIZES];
                (self.steady, self.patience) = (PERIODS.0, PATIENCE.0);
                return;
            }
        }
        let covered = f64::from(self.steady.saturating_sub(PERIODS.0).clamp(1, AVERAGED));
        let write_us = before.map_or(write_us, |known| known.write_us + (write_us - known.write_us) / covered);
        self.known[self.at] = Some(Known { write_us, age: 0 });
    }

    /// What a write is thought to cost at a size, µs.
    fn thought(&self, size: usize, sizes: &[Rated]) -> f64 {
        if let Some(known) = self.known[size] {
            return known.write_us;
        }
        let ratio = |at: usize| {
            let beyond = (self.known[at]?.write_us - self.program_us).max(0.0);
            Some(beyond / (sizes[at].write_us - self.program_us).max(1.0))
        };
        let below = (0..size).rev().find_map(|at| Some((at, ratio(at)?)));
        let above = (size + 1..sizes.len()).find_map(|at| Some((at, ratio(at)?)));
        let scale = match (below, above) {
            (Some((low, left)), Some((high, right))) => {
                left + (right - left) * (size - low) as f64 / (high - low) as f64
            }
            (Some((_, one)), None) | (None, Some((_, one))) => one,
            (None, None) => 1.0,
        };
        self.program_us + scale * (sizes[size].write_us - self.program_us).max(0.0)
    }

    fn consider(&mut self, period: Period, sizes: &[Rated]) {
        let leaving =
            |size: usize| f64::from(period.fused.saturating_sub(sizes[size].blocks)) * sizes[self.at].defusion_us;
        let pays_for = f64::from(self.stayed.max(HORIZON)) * f64::from(period.writes);
        let costs = |size: usize| self.thought(size, sizes) + leaving(size) / pays_for;
        let now = self.thought(self.at, sizes);
        let best = (0..sizes.len()).min_by(|&a, &b| costs(a).total_cmp(&costs(b))).unwrap_or(self.at);
        if costs(best) < GAIN * now {
            self.go(within_reach(self.at, best, sizes));
            return;
        }
        if self.stayed < self.patience {
            return;
        }
        let unknown = |&size: &usize| size < sizes.len() && size != self.at && self.known[size].is_none();
        let neighbours = [self.at + 1, self.at.saturating_sub(1)];
        let neighbour = neighbours.into_iter().map(|size| size.min(sizes.len() - 1)).filter(unknown);
        let Some(next) = neighbour.min_by(|&a, &b| costs(a).total_cmp(&costs(b))) else {
            self.stayed = 0;
            return;
        };
        let back = f64::from(sizes[next].blocks.abs_diff(sizes[self.at].blocks)) * sizes[self.at].defusion_us;
        if back <= self.budget_us {
            self.budget_us -= back;
            self.patience = (2 * self.patience).min(PATIENCE.1);
            let home = self.at;
            self.go(next);
            self.home = Some((home, now));
        }
    }

    fn go(&mut self, size: usize) {
        for known in &mut self.known {
            if let Some(seen) = known {
                seen.age += 1;
                if seen.age > MEMORY {
                    *known = None;
                }
            }
        }
        (self.at, self.steady, self.stayed, self.home) = (size, 0, 0, None);
    }
}

/// The size nearest to `to` that is at most four times, at least half as large as that at `from`.
fn within_reach(from: usize, to: usize, sizes: &[Rated]) -> usize {
    let now = sizes[from].blocks;
    let near = |&size: &usize| sizes[size].blocks <= now.saturating_mul(4) && 2 * sizes[size].blocks >= now;
    if to > from {
        (from + 1..=to).rev().find(near).unwrap_or(from + 1)
    } else {
        (to..from).find(near).unwrap_or(from.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const SIZES_HERE: [u32; 12] = [1, 2, 4, 8, 16, 32, 64, 100, 150, 250, 500, 1000];
    const PERIOD: u32 = 4096;

    /// An area that gains at most `gain` logical blocks a period and loses at most 32.
    struct Area {
        fused: u32,
        gain: u32,
        /// Logical blocks that left.
        left: u32,
    }

    /// Plays so many periods of a workload that costs `truth` by size while the model says
    /// `model`. The mean cost of the second half, and the target at the end.
    fn play(
        steering: &mut Steering,
        area: &mut Area,
        periods: u32,
        truth: &dyn Fn(u32) -> f64,
        model: &dyn Fn(u32) -> f64,
    ) -> (f64, u32) {
        let sizes: Vec<Rated> =
            SIZES_HERE.iter().map(|&blocks| Rated { blocks, write_us: model(blocks), defusion_us: 20_000.0 }).collect();
        let (mut sum, mut target) = (0.0, sizes[steering.at].blocks);
        for at in 0..periods {
            if area.fused < target {
                area.fused = (area.fused + area.gain).min(target);
            } else {
                let leaving = (area.fused - target).min(32);
                area.fused -= leaving;
                area.left += leaving;
            }
            let write_us = truth(area.fused);
            target = steering.decide(Period { writes: PERIOD, fused: area.fused, write_us }, &sizes);
            sum += if at < periods / 2 { 0.0 } else { write_us };
        }
        (sum / f64::from(periods - periods / 2), target)
    }

    fn start(target: u32) -> (Steering, Area) {
        let sizes = SIZES_HERE.map(|blocks| Rated { blocks, ..Rated::default() });
        (Steering::new(&sizes, target, 200.0), Area { fused: 0, gain: 100, left: 0 })
    }

    fn valley(bottom: f64) -> impl Fn(u32) -> f64 {
        move |blocks| 300.0 + 400.0 * (f64::from(blocks.max(1)) / bottom).ln().abs()
    }

    #[test]
    fn a_model_that_is_wrong_does_not_keep_it_from_the_best_size() {
        for bottom in [1.0, 32.0, 150.0, 1000.0] {
            let models: [&dyn Fn(u32) -> f64; 3] = [&valley(bottom), &|blocks| 220.0 + f64::from(blocks), &|_| 5000.0];
            for (which, model) in models.into_iter().enumerate() {
                let (mut steering, mut area) = start(100);
                let (cost, target) = play(&mut steering, &mut area, 600, &valley(bottom), model);
                assert!(cost < 1.1 * 300.0, "{cost} at {target}, best at {bottom}, model {which}");
            }
        }
    }

    #[test]
    fn where_a_write_costs_little_more_than_its_program_the_area_stays() {
        let (mut steering, mut area) = start(1000);
        let (_, target) = play(&mut steering, &mut area, 200, &|_| 203.0, &|blocks| 300.0 + f64::from(blocks));
        assert_eq!((target, area.left), (1000, 0));
    }

    #[test]
    fn another_workload_is_noticed() {
        let (mut steering, mut area) = start(100);
        let (_, target) = play(&mut steering, &mut area, 200, &valley(1000.0), &valley(1000.0));
        assert_eq!(target, 1000);
        let (cost, target) = play(&mut steering, &mut area, 400, &|b| 20.0 * valley(32.0)(b), &valley(32.0));
        assert!(cost < 1.1 * 20.0 * 300.0 && target <= 64, "{cost} at {target}");
    }

    #[test]
    fn trying_neighbours_takes_its_share_at_most() {
        let flat = |_: u32| 1000.0;
        let (mut steering, mut area) = start(500);
        play(&mut steering, &mut area, 500, &flat, &flat);
        let (tried, all) = (f64::from(area.left) * 20_000.0, 500.0 * f64::from(PERIOD) * 1000.0);
        assert!(tried <= TRYING * all, "{tried} us of {all}");
    }

    #[test]
    fn a_move_is_no_longer_than_its_reach() {
        let sizes = SIZES_HERE.map(|blocks| Rated { blocks, ..Rated::default() });
        let reach = |from: usize, to: usize| sizes[within_reach(from, to, &sizes)].blocks;
        assert_eq!([reach(4, 11), reach(4, 5), reach(4, 0), reach(8, 7)], [64, 32, 8, 100]);
        // A gap in the sizes is no end.
        let gap = [1, 100].map(|blocks| Rated { blocks, ..Rated::default() });
        assert_eq!([within_reach(0, 1, &gap), within_reach(1, 0, &gap)], [1, 0]);
    }
}
