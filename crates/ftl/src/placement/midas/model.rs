//! What groups of some sizes would program, by how long versions live, and the search for the best.
//!
//! A page enters group 1, the hot group if it is hot, and leaves a group at the age at which the
//! group, a queue, has taken in as much as it holds. What lives then is programmed again, and
//! enters the next. What is left of the space is the last group: it holds the pages that no other
//! group holds, and its victims are as full as the cleaning equation says (Menon, 1995).

use super::intervals::{Intervals, Survival};

/// The hot group, the groups that follow each other, and the last, at most.
pub(super) const GROUPS: usize = 6;

/// Groups that are queues: all but the last.
pub(super) const QUEUES: usize = GROUPS - 1;

/// A group more has to spare so large a share of all programs.
const GAIN: f64 = 0.995;

/// Sizes that are tried, in parts of the space: 0, then rising.
const SIZES: [u32; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 160];
const PARTS: u32 = 256;

/// Rounds of the search over all groups.
const ROUNDS: usize = 3;

/// Sizes of the groups, in blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Groups {
    /// Of the hot group, then of those that follow each other; 0 from the last group on, and for
    /// no hot group.
    pub(super) blocks: [u32; QUEUES],
    /// Of what leaves each group, the share that lives.
    pub(super) live: [f32; QUEUES],
    /// Programs for each write.
    pub(super) amplification: f64,
}

impl Groups {
    /// One group of everything.
    pub(super) const ONE: Self = Self { blocks: [0; QUEUES], live: [0.0; QUEUES], amplification: f64::INFINITY };

    /// The number of the last group.
    pub(super) fn last(&self) -> u8 {
        1 + self.blocks[1..].iter().take_while(|blocks| **blocks > 0).count() as u8
    }
}

/// The two classes of writes: those of pages that are hot, and the others.
pub(super) struct Model {
    hot: Survival,
    others: Survival,
    hot_share: f64,
    /// Pages of a block, pages that the host sees, and blocks that hold them.
    pages: f64,
    logical: f64,
    blocks: u32,
}

impl Model {
    pub(super) fn new(pages_per_block: u32, logical_pages: u32, blocks: u32) -> Self {
        Self {
            hot: Survival::new(),
            others: Survival::new(),
            hot_share: 0.0,
            pages: f64::from(pages_per_block),
            logical: f64::from(logical_pages),
            blocks,
        }
    }

    pub(super) fn learn(&mut self, hot: &Intervals, others: &Intervals) {
        self.hot.learn(hot);
        self.others.learn(others);
        self.hot_share = f64::from(hot.writes()) / f64::from((hot.writes() + others.writes()).max(1));
    }

    pub(super) fn ram_bytes(&self) -> usize {
        self.hot.ram_bytes() + self.others.ram_bytes()
    }

    /// What groups of these sizes would program; none if they do not fit.
    fn judge(&self, blocks: [u32; QUEUES]) -> Option<Groups> {
        let last = Groups { blocks, ..Groups::ONE }.last();
        let used: u32 = blocks.iter().sum();
        let space = f64::from(self.blocks.checked_sub(used)?) * self.pages;
        let (mut programs, mut held, mut live) = (1.0, 0.0, [0.0; QUEUES]);
        let mut age_hot = 0.0;
        if blocks[0] > 0 && self.hot_share > 0.0 {
            age_hot = f64::from(blocks[0]) * self.pages / self.hot_share;
            let (share, area) = self.hot.at(age_hot);
            live[0] = share as f32;
            programs += self.hot_share * share;
            held += self.hot_share * area;
        }
        let of = |hot: f64, others: f64| self.hot_share * hot + (1.0 - self.hot_share) * others;
        let mut age = 0.0;
        let ((mut hot, mut hot_area), (mut other, mut other_area)) = (self.hot.at(age_hot), self.others.at(age));
        for group in 1..usize::from(last) {
            let enters = of(hot, other);
            if enters <= 0.0 {
                return None;
            }
            let stays = f64::from(blocks[group]) * self.pages / enters;
            (age, age_hot) = (age + stays, age_hot + stays);
            let (next_hot, next_other) = (self.hot.at(age_hot), self.others.at(age));
            held += of(next_hot.1 - hot_area, next_other.1 - other_area);
            ((hot, hot_area), (other, other_area)) = (next_hot, next_other);
            live[group] = (of(hot, other) / enters) as f32;
            programs += of(hot, other);
        }
        let full = victims_live((self.logical - held).max(0.0) / space)?;
        programs += of(hot, other) * full / (1.0 - full);
        Some(Groups { blocks, live, amplification: programs })
    }
}

/// What lives in victims where so large a share of the space lives; none if all of it does.
fn victims_live(share: f64) -> Option<f64> {
    if share >= 0.995 || share.is_nan() {
        return None;
    }
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    for _ in 0..24 {
        let middle = f64::midpoint(low, high);
        let lives = (middle - 1.0) / ln(middle);
        if lives < share { low = middle } else { high = middle }
    }
    Some(low)
}

/// The natural logarithm of a number from 0 to 1, which is not in `core`.
fn ln(x: f64) -> f64 {
    let bits = x.max(f64::MIN_POSITIVE).to_bits();
    let exponent = (bits >> 52) as i32 - 1023;
    let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    let y = (mantissa - 1.0) / (mantissa + 1.0);
    let square = y * y;
    let series = [11.0, 9.0, 7.0, 5.0, 3.0, 1.0].iter().fold(0.0, |sum, odd| sum * square + 1.0 / odd);
    f64::from(exponent) * core::f64::consts::LN_2 + 2.0 * y * series
}

/// A search under way, a size a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    best: Groups,
    next: usize,
}

impl Search {
    pub(super) const fn new() -> Self {
        Self { best: Groups::ONE, next: 0 }
    }

    /// Judges one size of one group; the best groups once all were judged.
    pub(super) fn step(&mut self, model: &Model) -> Option<Groups> {
        if self.next == 0 {
            self.best = model.judge(Groups::ONE.blocks).unwrap_or(Groups::ONE);
        }
        let (round, size) = (self.next / SIZES.len(), SIZES[self.next % SIZES.len()]);
        // The groups that follow each other from the first on, then the hot group.
        let group = (round + 1) % QUEUES;
        self.next += 1;
        let mut blocks = self.best.blocks;
        blocks[group] = (u64::from(size) * u64::from(model.blocks) / u64::from(PARTS)) as u32;
        // A group needs the one before it, and goes only if none follows.
        let is_chain = group < 2 || blocks[group - 1] > 0;
        let cuts = group > 0 && blocks[group] == 0 && blocks.get(group + 1).is_some_and(|next| *next > 0);
        if is_chain
            && !cuts
            && let Some(groups) = model.judge(blocks)
        {
            let more = blocks.iter().filter(|size| **size > 0).count();
            let has = self.best.blocks.iter().filter(|size| **size > 0).count();
            let limit = if more > has { GAIN } else { 1.0 };
            if groups.amplification < limit * self.best.amplification {
                self.best = groups;
            }
        }
        (self.next == ROUNDS * QUEUES * SIZES.len()).then_some(self.best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(model: &Model) -> Groups {
        let mut search = Search::new();
        loop {
            if let Some(best) = search.step(model) {
                return best;
            }
        }
    }

    /// A disk of a thousand blocks of 64 pages, 15% more than the host sees.
    fn model(hot: &Intervals, others: &Intervals) -> Model {
        let mut model = Model::new(64, 55_652, 1000);
        model.learn(hot, others);
        model
    }

    #[test]
    fn the_logarithm_is_one() {
        for x in [1e-9, 0.01, 0.3, 0.5, 0.75, 0.999, 1.0_f64] {
            assert!((ln(x) - x.ln()).abs() < 1e-5, "{x}");
        }
        let u = victims_live(0.8).unwrap();
        assert!(((u - 1.0) / u.ln() - 0.8).abs() < 1e-4 && victims_live(1.0).is_none());
    }

    #[test]
    fn nothing_is_gained_by_groups_if_all_pages_are_alike() {
        let mut others = Intervals::new();
        // Geometric: at each write, a page is written with the same chance.
        let mut left = 1_000_000.0_f64;
        for at in 0..2000 {
            let dies = left * (1.0 - (-279.0_f64 / 55_652.0).exp());
            (0..dies as u32 / 100).for_each(|_| others.note(Some(at * 279 + 139)));
            left -= dies;
        }
        let best = best(&model(&Intervals::new(), &others));
        let one = model(&Intervals::new(), &others).judge([0; QUEUES]).unwrap();
        assert!(one.amplification / best.amplification < 1.1, "{best:?} beside {one:?}");
    }

    #[test]
    fn pages_of_two_rates_are_parted() {
        let mut others = Intervals::new();
        (0..9000).for_each(|at| others.note(Some(500 + at % 3000)));
        (0..1000).for_each(|at| others.note(Some(400_000 + at * 100)));
        let model = model(&Intervals::new(), &others);
        let (best, one) = (best(&model), model.judge([0; QUEUES]).unwrap());
        assert!(best.last() >= 2 && best.amplification < 0.6 * one.amplification, "{best:?} beside {one:?}");
        let age = f64::from(best.blocks[1]) * 64.0;
        assert!((2000.0..20_000.0).contains(&age), "the first group ends where the hot pages have died: {best:?}");
    }
}
