//! One pass of a profile over a disk.
//!
//! 1. A disk as large as what the trace touched has its extents once, as one tile. A larger disk
//!    has several tiles side by side. A tile with less room has that share of the regions, evenly
//!    spread.
//! 2. Tiles take turns of [`TURN`] runs.
//! 3. In each tile the runs go from region to region as those of the trace did. The extent in the
//!    region is drawn: a kind of step by what was counted in such a case, then an extent.

use super::layout::{Extent, Layout};
use super::steps::{Kind, ORDERS, State, depth_of};
use super::{REGION_BYTES, Revisits};
use crate::pick::Rng;

/// Runs of a tile before the next has its turn.
const TURN: usize = 256;

/// Extents on the disk, and the order of runs.
pub(super) struct Pass {
    pub(super) extents: Vec<Extent>,
    /// The extent of each run.
    pub(super) runs: Vec<u32>,
    /// Before which runs a flush comes, rising.
    pub(super) flushes: Vec<usize>,
}

/// The trace's extents on a part of the disk.
#[derive(Clone, Copy)]
struct Tile {
    /// The region of the disk where it begins, its regions, and those of the trace.
    first: u64,
    room: u64,
    all: u64,
}

impl Tile {
    /// Tiles of a disk.
    fn on(limit: u64, touched_bytes: u64) -> Vec<Tile> {
        let all = touched_bytes.div_ceil(REGION_BYTES).max(1);
        let tile = |at: u64| Tile { first: at, room: (limit.div_ceil(REGION_BYTES) - at).min(all), all };
        let whole_regions = (limit / REGION_BYTES).max(1);
        (0..whole_regions.div_ceil(all)).map(|number| tile(number * all)).collect()
    }

    /// Where a region comes to lie.
    fn place(self, region: u64) -> Option<u64> {
        let upto = |regions: u64| (u128::from(regions) * u128::from(self.room) / u128::from(self.all)) as u64;
        let fits = region < self.all && upto(region + 1) > upto(region);
        fits.then(|| self.first + upto(region))
    }
}

/// The share of the trace's runs that a disk takes.
pub(super) fn scale(limit: u64, touched_bytes: u64) -> f64 {
    Tile::on(limit, touched_bytes).iter().map(|tile| tile.room as f64 / tile.all as f64).sum()
}

pub(super) fn pass(revisits: &Revisits, layout: &Layout, limit: u64, touched_bytes: u64, rng: &mut Rng) -> Pass {
    let draws = Draws::new(revisits);
    let path = revisits.regions();
    let flushes = revisits.flushes();
    let (mut extents, mut turns): (Vec<Extent>, Vec<Vec<Option<u32>>>) = (Vec::new(), Vec::new());
    for tile in Tile::on(limit, touched_bytes) {
        let runs = play(revisits, layout, &path, &draws, rng);
        let mut numbers = vec![None; layout.extents.len()];
        for (number, extent) in numbers.iter_mut().zip(&layout.extents) {
            let Some(region) = tile.place(extent.offset / REGION_BYTES) else { continue };
            *number = Some(extents.len() as u32);
            let bytes = extent.bytes.min(limit);
            let offset = (region * REGION_BYTES + extent.offset % REGION_BYTES).min(limit - bytes);
            extents.push(Extent { offset, bytes, ..*extent });
        }
        turns.push(runs.into_iter().map(|extent| numbers[extent as usize]).collect());
    }
    let mut pass = Pass { extents, runs: Vec::new(), flushes: Vec::new() };
    let mut flushed = vec![0; turns.len()];
    for turn in (0..path.len()).step_by(TURN) {
        for (runs, flushed) in turns.iter().zip(&mut flushed) {
            for (at, run) in runs.iter().enumerate().skip(turn).take(TURN) {
                while flushes.get(*flushed).is_some_and(|&before| before <= at) {
                    *flushed += 1;
                    pass.flushes.push(pass.runs.len());
                }
                pass.runs.extend(*run);
            }
        }
    }
    // Flushes after the last run.
    let rest = flushes.iter().filter(|&&before| before >= path.len()).count();
    pass.flushes.extend(std::iter::repeat_n(pass.runs.len(), rest));
    pass
}

/// Counts of what can be drawn.
type Counts = Vec<(i32, u32)>;

fn draw(counts: &[(i32, u32)], rng: &mut Rng) -> Option<i32> {
    let all: u64 = counts.iter().map(|&(_, n)| u64::from(n)).sum();
    if all == 0 {
        return None;
    }
    let mut at = rng.below(all);
    let holds = |&&(_, n): &&(i32, u32)| {
        let found = at < u64::from(n);
        at = at.saturating_sub(u64::from(n));
        found
    };
    counts.iter().find(holds).map(|&(what, _)| what)
}

/// What steps are drawn from.
struct Draws {
    /// Of each kind, by case; by the region's order and what is possible; and in all.
    kinds: [Vec<[u32; 4]>; 3],
    /// Bins of depths by the bits of how many there are, and all of them.
    depths: Vec<Counts>,
    all_depths: Counts,
    /// Steps among new extents by the region's order, and all of them.
    news: Vec<Counts>,
    all_news: Counts,
}

impl Draws {
    fn new(revisits: &Revisits) -> Draws {
        let mut kinds = [vec![[0_u32; 4]; super::CASES], vec![[0; 4]; ORDERS * 16], vec![[0; 4]; 1]];
        for &[case, counts @ ..] in &revisits.kinds {
            for (level, kinds) in kinds.iter_mut().enumerate() {
                let counted = &mut kinds[level_of(case as usize, level)];
                counted.iter_mut().zip(counts).for_each(|(sum, n)| *sum = sum.saturating_add(n));
            }
        }
        let table = |rows: &[[i32; 3]], tables: usize| {
            let mut counts = vec![Counts::new(); tables];
            for &[of, what, n] in rows {
                counts[of as usize].push((what, n as u32));
            }
            (counts, rows.iter().map(|&[_, what, n]| (what, n as u32)).collect::<Counts>())
        };
        let (depths, all_depths) = table(&revisits.depths, 33);
        let (news, all_news) = table(&revisits.news, ORDERS);
        Draws { kinds, depths, all_depths, news, all_news }
    }

    /// A kind that is possible.
    fn kind(&self, case: usize, possible: [bool; 4], rng: &mut Rng) -> Kind {
        for (level, kinds) in self.kinds.iter().enumerate() {
            let counted = kinds[level_of(case, level)];
            let counts: Vec<(i32, u32)> = (0..4).map(|kind| (kind, counted[kind as usize])).collect();
            let can: Counts = counts.into_iter().filter(|&(kind, _)| possible[kind as usize]).collect();
            if let Some(kind) = draw(&can, rng) {
                return Kind::ALL[kind as usize];
            }
        }
        let first = possible.iter().position(|&can| can);
        Kind::ALL[first.unwrap_or(0)]
    }
}

/// Where a case is counted at a level.
fn level_of(case: usize, level: usize) -> usize {
    match level {
        0 => case,
        1 => case % (ORDERS * 16),
        _ => 0,
    }
}

/// The extent of each run of the path.
fn play(revisits: &Revisits, layout: &Layout, path: &[u32], draws: &Draws, rng: &mut Rng) -> Vec<u32> {
    let mut state = State::new(layout, revisits.runs.clone(), &revisits.orders);
    let step = |&region: &u32| {
        let choice = state.choice(region);
        let kind = draws.kind(choice.case, choice.possible, rng);
        let extent = match kind {
            Kind::Next => state.next_alike(region),
            Kind::Again => state.again(region),
            Kind::New => {
                let order = usize::from(revisits.orders[region as usize]);
                let step = draw(&draws.news[order], rng).or_else(|| draw(&draws.all_news, rng)).unwrap_or(0);
                let (news, from) = (state.news(region), state.after_new(region));
                news.get(from.saturating_add_signed(step as isize).min(news.len() - 1)).copied()
            }
            Kind::Old => {
                let all = state.olds(region);
                let counts = &draws.depths[all.checked_ilog2().map_or(0, |bits| bits as usize + 1)];
                let bin = draw(counts, rng).or_else(|| draw(&draws.all_depths, rng)).unwrap_or(0);
                Some(state.old(region, depth_of(bin, all, |end| rng.below(end))))
            }
        };
        let extent = extent.unwrap_or_else(|| unreachable!("region {region} has no run left"));
        state.step(extent, kind);
        extent
    };
    path.iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_fill_the_disk() {
        let places = |limit: u64, touched: u64| {
            let tiles = Tile::on(limit * REGION_BYTES, touched * REGION_BYTES);
            tiles.iter().map(|tile| (0..touched).map(|at| tile.place(at)).collect()).collect::<Vec<Vec<_>>>()
        };
        assert_eq!(places(2, 2), [[Some(0), Some(1)]]);
        assert_eq!(places(5, 2), [[Some(0), Some(1)], [Some(2), Some(3)], [None, Some(4)]]);
        assert_eq!(places(2, 4), [[None, Some(0), None, Some(1)]]);
        // A page less, or more, is no reason to leave a region out or to begin a tile.
        assert_eq!(Tile::on(4 * REGION_BYTES - 4096, 4 * REGION_BYTES).len(), 1);
        assert_eq!(Tile::on(4 * REGION_BYTES - 4096, 4 * REGION_BYTES)[0].room, 4);
        assert_eq!(Tile::on(4 * REGION_BYTES + 4096, 4 * REGION_BYTES).len(), 1);
        assert_eq!(Tile::on(4096, 4 * REGION_BYTES)[0].room, 1);
    }
}
