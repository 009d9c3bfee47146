//! Where extents lie.
//!
//! 1. Each part of the footprint has as many extents of each class as in the trace.
//! 2. By address, the next extent is of the same class as often as in the trace.
//! 3. It overlaps what is before it, begins where that ends, or lies apart, as often as in the
//!    trace. Gaps fill the part; where there is no room for gaps, the extents overlap more.

use super::{Extent, Lengths, PAGE_BYTES, RevisitClass, Revisits, within};
use crate::pick::{Alias, Chance, Rng};

/// Bytes of a sector: offsets within a page are counted in them.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// Pages of the longest extents of a class; there are longer ones.
pub(crate) const LONGEST_PAGES: [u64; 2] = [4, 32];

/// Lengths of extents that are told apart, and of what is left of those before.
pub(crate) const LENGTHS: usize = LONGEST_PAGES.len() + 1;

/// The number of such a length.
pub(crate) fn left_of(pages: u64) -> usize {
    LONGEST_PAGES.partition_point(|&longest| longest < pages)
}

/// How the extents of a class lie.
struct Lie {
    same: Chance,
    /// By how much of the extents before is left.
    beside: Vec<Chance>,
    beside_or_over: Vec<Chance>,
    /// Pages to the begin of one that overlaps.
    over: Vec<Option<Alias>>,
    sectors: Option<Alias>,
}

impl Lie {
    fn new(class: &RevisitClass, share: f64) -> Lie {
        // A class that is drawn by its share is often the same by chance.
        let same = class.same_percent / 100.0;
        let both = class.beside_percent.iter().zip(&class.over_percent).map(|(beside, over)| beside + over);
        Lie {
            same: Chance::new((same - share) / (1.0 - share).max(1e-6)),
            beside: class.beside_percent.iter().map(|beside| Chance::new(beside / 100.0)).collect(),
            beside_or_over: both.map(|both| Chance::new(both / 100.0)).collect(),
            over: class.over.iter().map(|over| weighted(over)).collect(),
            sectors: weighted(&class.sectors),
        }
    }

    /// An offset within a page.
    fn offset(&self, align_bytes: u64, rng: &mut Rng) -> u64 {
        let sector = self.sectors.as_ref().map_or(0, |sectors| sectors.pick(rng.next()) as u64);
        sector * SECTOR_BYTES + rng.below((SECTOR_BYTES / align_bytes.max(1)).max(1)) * align_bytes
    }
}

/// A choice by weights; `None` if there are none.
fn weighted(weights: &[f64]) -> Option<Alias> {
    (weights.iter().sum::<f64>() > 0.0).then(|| Alias::new(weights))
}

/// An extent of a part, until it is known where that has gaps.
struct Loose {
    class: usize,
    /// Its page without any gap in this part.
    page: u64,
    apart: bool,
    shift: u64,
    length: u64,
    one: bool,
}

/// Extents of each class by address.
pub(super) fn lay_out(
    revisits: &Revisits,
    limit: u64,
    align_bytes: u64,
    scale: f64,
    rng: &mut Rng,
) -> Vec<Vec<Extent>> {
    let classes = revisits.classes.len();
    let parts = revisits.parts() as u64;
    let all = revisits.extents();
    let lie = |class: &RevisitClass| Lie::new(class, class.extents() / all);
    let lies: Vec<Lie> = revisits.classes.iter().map(lie).collect();
    let mut lengths: Vec<Lengths> = revisits.classes.iter().map(|class| Lengths::new(class, rng)).collect();
    let (mut extents, mut due) = (vec![Vec::new(); classes], vec![0.5; classes]);
    let pages = limit / PAGE_BYTES;
    let mut over = 0;
    for part in 0..parts {
        let (first, end) = (pages * part / parts, pages * (part + 1) / parts);
        let mut left = vec![0; classes];
        for (class, places) in revisits.classes.iter().map(|class| &class.places).enumerate() {
            due[class] += places.get(part as usize).copied().map_or(0.0, f64::from) * scale;
            left[class] = due[class] as u64;
            due[class] -= left[class] as f64;
        }
        let part = loose(&order(left, &lies, rng), (first, over), &lies, &mut lengths, align_bytes, rng);
        let Some(last) = part.last() else { continue };
        let last_end = (last.page + (last.shift + last.length).div_ceil(PAGE_BYTES)).min(end.max(last.page + 1));
        let (gap, crowded) = (end.saturating_sub(last_end), last.page + 1 - first);
        let room = (2 * end - first).min(pages) - first;
        let mut gaps: Vec<u64> = part.iter().filter(|extent| extent.apart).map(|_| rng.below(gap + 1)).collect();
        gaps.sort_unstable();
        let (mut gaps, mut before) = (gaps.into_iter(), 0);
        for extent in part {
            if extent.apart {
                before = gaps.next().unwrap_or(before);
            }
            let squeezed = first + (u128::from(extent.page - first) * u128::from(room) / u128::from(crowded)) as u64;
            let page = if crowded > room { squeezed } else { extent.page + before };
            over = over.max(page + (extent.shift + extent.length).div_ceil(PAGE_BYTES));
            let length = extent.length.min(limit);
            let offset = (page * PAGE_BYTES + extent.shift).min(limit - length);
            extents[extent.class].push((offset, length, extent.one));
        }
    }
    for extents in &mut extents {
        if extents.is_empty() {
            extents.push((rng.below(pages.max(1)) * PAGE_BYTES, PAGE_BYTES.min(limit), true));
        }
        extents.sort_unstable();
    }
    extents
}

/// The classes of a part's extents by address, of each as many as are left.
fn order(mut left: Vec<u64>, lies: &[Lie], rng: &mut Rng) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::new();
    for all in (1..=left.iter().sum::<u64>()).rev() {
        let again = order.last().copied().filter(|&last| left[last] > 0 && lies[last].same.hit(rng.next()));
        let class = again.unwrap_or_else(|| {
            let mut at = rng.below(all);
            let holds = |&left: &u64| {
                let found = at < left;
                at = at.saturating_sub(left);
                found
            };
            left.iter().position(holds).unwrap_or(0)
        });
        left[class] -= 1;
        order.push(class);
    }
    order
}

/// The extents of a part from its first page on, over which those before reach to a page.
fn loose(
    classes: &[usize],
    (first, over): (u64, u64),
    lies: &[Lie],
    lengths: &mut [Lengths],
    align_bytes: u64,
    rng: &mut Rng,
) -> Vec<Loose> {
    let mut loose: Vec<Loose> = Vec::new();
    let mut end = over.max(first);
    for &class in classes {
        let (length, one) = lengths[class].deal();
        let shift = lies[class].offset(align_bytes, rng);
        let lowest = loose.last().map_or(first, |last| last.page + 1);
        let (lie, draw) = (&lies[class], rng.next());
        let left = left_of(end - lowest.min(end));
        let hit = |chances: &[Chance]| chances.get(left).is_some_and(|chance| chance.hit(draw));
        let (mut page, apart) = (end, !hit(&lie.beside_or_over));
        if !apart && !hit(&lie.beside) && lowest < end {
            let pages =
                lie.over.get(left).and_then(Option::as_ref).map_or(0, |over| within(over.pick(rng.next()), rng));
            page = (lowest + pages).min(end - 1);
        }
        end = end.max(page + (shift + length).div_ceil(PAGE_BYTES));
        loose.push(Loose { class, page, apart, shift, length, one });
    }
    loose
}
