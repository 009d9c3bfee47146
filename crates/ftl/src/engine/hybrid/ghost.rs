//! Ghost buffers: the hit rate that many sizes of the page-mapped area would have, estimated at
//! once (section 5).
//!
//! 1. One list holds every logical block in the order of its last write; an LRU buffer of any size
//!    would hold a prefix of it.
//! 2. The list is cut at each size of interest. A block knows its segment, and each cut the block
//!    before it.
//! 3. An access in segment j is a hit for every size from j on. The block moves to the front, and
//!    over each cut before j one block slips back: O(j), whatever the sizes.
//! 4. After every N_D writes the sizes are rated by equation 4 and the counts are halved, so that
//!    what was long ago fades.

use super::cost::{CostModel, Costs};
use super::steer::Rated;
use crate::engine::log_block::lru::Lru;
use alloc::vec::Vec;

struct Size {
    blocks: u32,
    costs: Costs,
    /// The least recently used block within this size, once so many are listed.
    last: u32,
    /// Accesses that hit this size and none smaller.
    hits: u64,
}

/// The ghost buffers of all sizes.
pub struct Ghosts {
    list: Lru,
    segment: Vec<u8>,
    sizes: Vec<Size>,
    /// Writes that hit at every size.
    sure_hits: u64,
    total: u64,
    model: CostModel,
    over_provisioned: f64,
}

/// Where the list is cut, in 1024ths of all logical blocks.
const CUTS: [u32; 20] = [8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 448, 512, 640, 768, 896, 960, 1024];

/// Sizes at most.
pub(super) const SIZES: usize = 40;

/// The same where sizes are steered by what was measured: steps of at most a quarter from 8 on.
const FINE_CUTS: [u32; 32] = [
    1, 2, 3, 4, 6, 8, 10, 12, 15, 18, 22, 27, 32, 40, 48, 58, 70, 84, 100, 120, 144, 172, 206, 248, 298, 358, 430, 515,
    618, 742, 890, 1024,
];

impl Ghosts {
    /// Empty buffers over so many logical blocks, of the paper's sizes.
    #[must_use]
    pub fn new(logical_blocks: u32, over_provisioned: u32, model: CostModel) -> Self {
        Self::cut(&CUTS, logical_blocks, over_provisioned, model)
    }

    /// The same with more sizes.
    #[must_use]
    pub fn fine(logical_blocks: u32, over_provisioned: u32, model: CostModel) -> Self {
        Self::cut(&FINE_CUTS, logical_blocks, over_provisioned, model)
    }

    fn cut(cuts: &[u32], logical_blocks: u32, over_provisioned: u32, model: CostModel) -> Self {
        let over_provisioned = f64::from(over_provisioned.max(1));
        let mut sizes: Vec<Size> = Vec::with_capacity(cuts.len());
        for &cut in cuts {
            let blocks = (u64::from(logical_blocks) * u64::from(cut)).div_ceil(1024) as u32;
            if sizes.last().is_none_or(|size| size.blocks < blocks) {
                let costs = model.costs(f64::from(blocks), over_provisioned);
                sizes.push(Size { blocks, costs, last: 0, hits: 0 });
            }
        }
        let segment = alloc::vec![0; logical_blocks as usize];
        Self { list: Lru::new(logical_blocks), segment, sizes, sure_hits: 0, total: 0, model, over_provisioned }
    }

    /// Rates sizes from now on by victims that are as full as equation 5 says to the power of
    /// `bend`.
    pub fn bend(&mut self, bend: f64) {
        for size in &mut self.sizes {
            size.costs = self.model.costs_bent(f64::from(size.blocks), self.over_provisioned, bend);
        }
    }

    /// A logical block was written `writes` times in a row. Only the first can miss.
    pub fn access(&mut self, lbn: u32, writes: u32) {
        debug_assert!(writes > 0);
        self.total += u64::from(writes);
        self.sure_hits += u64::from(writes) - 1;
        if !self.list.contains(lbn) {
            self.insert(lbn);
            return;
        }
        let segment = self.segment[lbn as usize] as usize;
        self.sizes[segment].hits += 1;
        let Some(newer) = self.list.newer(lbn) else { return };
        if self.list.len() >= self.sizes[segment].blocks && self.sizes[segment].last == lbn {
            self.sizes[segment].last = newer;
        }
        self.list.touch(lbn);
        for at in 0..segment {
            self.slip(at);
        }
        self.segment[lbn as usize] = 0;
    }

    fn insert(&mut self, lbn: u32) {
        debug_assert!(!self.list.contains(lbn));
        let before = self.list.len();
        self.list.touch(lbn);
        self.segment[lbn as usize] = 0;
        for at in 0..self.sizes.len() {
            if before >= self.sizes[at].blocks {
                self.slip(at);
            } else {
                if before + 1 == self.sizes[at].blocks {
                    self.sizes[at].last = self.list.oldest().unwrap_or(lbn);
                }
                break;
            }
        }
    }

    /// The last block before a cut falls behind it.
    #[inline]
    fn slip(&mut self, at: usize) {
        let last = self.sizes[at].last;
        debug_assert!(
            self.list.contains(last) && self.segment[last as usize] as usize == at,
            "{last} is not before cut {at}"
        );
        self.segment[last as usize] = at as u8 + 1;
        self.sizes[at].last = self.list.newer(last).unwrap_or(last);
    }

    /// The size of at most `most` at which equation 4 has its minimum, in logical blocks; `None`
    /// before anything was counted. Halves the counts.
    pub fn best(&mut self, most: u32) -> Option<u32> {
        if self.total == 0 {
            return None;
        }
        let mut hits = self.sure_hits;
        let mut best: Option<(f64, u32)> = None;
        for size in &mut self.sizes {
            hits += size.hits;
            size.hits /= 2;
            let cost = size.costs.average_write_us(hits as f64 / self.total as f64);
            debug_assert!(hits <= self.total, "more hits than writes");
            if best.is_none_or(|(least, _)| cost < least && size.blocks <= most) {
                best = Some((cost, size.blocks.min(most)));
            }
        }
        self.sure_hits /= 2;
        self.total /= 2;
        best.map(|(_, blocks)| blocks)
    }

    /// What equation 4 says of the sizes up to `most`, the last no larger. Halves the counts.
    pub(super) fn rate(&mut self, most: u32, rated: &mut [Rated; SIZES]) -> usize {
        let (mut hits, mut count) = (self.sure_hits, 0);
        for (size, rated) in self.sizes.iter_mut().zip(rated) {
            hits += size.hits;
            size.hits /= 2;
            let full = size.blocks >= most;
            let hit_rate = if self.total == 0 { 1.0 } else { hits as f64 / self.total as f64 };
            *rated = Rated {
                blocks: size.blocks.min(most),
                write_us: size.costs.average_write_us(hit_rate),
                defusion_us: size.costs.defusion_us,
            };
            count += 1;
            if full {
                break;
            }
        }
        for size in &mut self.sizes[count..] {
            size.hits /= 2;
        }
        self.sure_hits /= 2;
        self.total /= 2;
        count
    }

    /// The hit rate that each size would have had, with its logical blocks.
    pub fn hit_rates(&self) -> impl Iterator<Item = (u32, f64)> + '_ {
        let total = self.total.max(1) as f64;
        self.sizes.iter().scan(self.sure_hits, move |hits, size| {
            *hits += size.hits;
            Some((size.blocks, *hits as f64 / total))
        })
    }

    /// Bytes of RAM held.
    #[must_use]
    pub fn ram_bytes(&self) -> u64 {
        let sizes = self.sizes.capacity() * size_of::<Size>();
        self.list.ram_bytes() + (self.segment.capacity() + sizes) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each size would have hit, by simulating every one of them.
    fn simulate(accesses: &[u32], size: u32) -> u64 {
        let mut buffer: Vec<u32> = Vec::new();
        let mut hits = 0;
        for &lbn in accesses {
            let at = buffer.iter().position(|&b| b == lbn);
            hits += u64::from(at.is_some_and(|at| at < size as usize));
            if let Some(at) = at {
                buffer.remove(at);
            }
            buffer.insert(0, lbn);
        }
        hits
    }

    #[test]
    fn every_size_hits_as_often_as_a_buffer_of_its_own() {
        for blocks in [1_u32, 2, 5, 40, 300] {
            let mut state = 99_u32;
            let accesses: Vec<u32> = (0..3000)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    let skewed = if state & 3 == 0 { blocks } else { blocks.div_ceil(6) };
                    (state >> 9) % skewed
                })
                .collect();
            let mut ghosts = Ghosts::new(blocks, 20, CostModel::paper());
            accesses.iter().for_each(|&lbn| ghosts.access(lbn, 1));
            for (size, rate) in ghosts.hit_rates() {
                let hits = simulate(&accesses, size) as f64 / accesses.len() as f64;
                assert!((rate - hits).abs() < 1e-9, "{size} of {blocks}: {rate} for {hits}");
            }
        }
    }

    #[test]
    fn the_best_size_holds_the_working_set() {
        let mut ghosts = Ghosts::new(1280, 128, CostModel::paper());
        for i in 0..20_000_u32 {
            ghosts.access(i.wrapping_mul(0x9E37_79B1) % 155, 1);
        }
        assert_eq!(ghosts.best(1280), Some(160));
        assert_eq!(ghosts.best(100), Some(10));
    }
}
