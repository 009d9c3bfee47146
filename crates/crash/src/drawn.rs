//! Shapes that chance draws: what nobody thought of when the rows of [`crate::SHAPES`] were
//! written.
//!
//! The seed of a case decides everything, so that an id needs no more than that a shape was drawn.

use crate::rng::Rng;
use crate::shape::{DRAWN, SHAPES, SPARE_BLOCKS, Shape};
use ftl::{GeckoOptions, GroupOptions, JanusOptions};
use nand::{Pairing, ProgramOrder};

/// One of these, by chance.
fn one<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u32) as usize]
}

/// The shape that belongs to a seed.
pub(crate) fn drawn(seed: u64) -> Shape {
    let mut rng = Rng::new(seed, 0x5348_4150);
    let rng = &mut rng;
    // A mount tells garbage by the other pages of its block, so that a block has two at least.
    let pages_per_block = one(rng, &[2, 2, 3, 4, 4, 5, 6, 7, 8, 9, 11, 12, 16, 23]);
    let channels = one(rng, &[1, 1, 1, 2, 3, 4]);
    let dies_per_channel = one(rng, &[1, 1, 1, 2]);
    let dies = channels * dies_per_channel;
    // Few pages, so that a run is short, and enough blocks for every FTL's reserves.
    let blocks = 18 + rng.below((500 / pages_per_block).clamp(10, 110)) + 12 * (dies - 1);
    let blocks = blocks.next_multiple_of(dies);
    let mut capabilities = SHAPES[0].capabilities;
    capabilities.spare_reprograms = one(rng, &[1, 2, 3, 8]);
    if rng.one_in(4) {
        capabilities.program_order = ProgramOrder::Free;
    }
    let mut shape = Shape {
        name: DRAWN,
        blocks,
        pages_per_block,
        page_bytes: one(rng, &[512, 512, 512, 1024, 1536, 2048, 4096]),
        channels,
        dies_per_channel,
        spare_blocks: if rng.one_in(12) { 0 } else { SPARE_BLOCKS },
        cache_entries: if rng.one_in(8) { 50 + rng.below(100) } else { 1 + rng.below(40) },
        logical_pages: if rng.one_in(2) { 3 + rng.below(blocks * pages_per_block / 2) } else { u32::MAX },
        age: if rng.one_in(4) { 200 + rng.below(1200) } else { 0 },
        level_wear: rng.one_in(6),
        pairing: Pairing { bits_per_cell: 2 + rng.below(2), distance: 1 + rng.below(3) },
        capabilities,
        ..SHAPES[0]
    };
    tune(&mut shape, rng);
    shape
}

/// Options that some FTLs take: one of them, so that an FTL which does not take it costs one draw.
fn tune(shape: &mut Shape, rng: &mut Rng) {
    match rng.below(14) {
        0 | 1 => {
            shape.gecko = GeckoOptions {
                size_ratio: 2 + rng.below(3),
                partitions: one(rng, &[1, 2, 4, 8]).min(shape.pages_per_block),
                buffer_pages: 1 + rng.below(2),
                packed: rng.one_in(2),
                filter_bytes: one(rng, &[0, 0, 64]),
                spread_ops: one(rng, &[0, 1, 2]),
                ..GeckoOptions::PAPER
            };
        }
        2 => {
            shape.janus = JanusOptions {
                defuse_among: rng.below(6),
                learn_utilisation: rng.one_in(2),
                page_map_percent: one(rng, &[25, 50, 100]),
                ..JanusOptions::PAPER
            };
        }
        3 => shape.protected_percent = 1 + rng.below(99),
        4 => shape.warm = true,
        9 => shape.cache_ways = one(rng, &[2, 3, 4, 8, 16]),
        5 => shape.validity = Some(one(rng, &["flash-bitmap", "log", "gecko", "ram-bitmap"])),
        6 => shape.groups = Some(GroupOptions { blocks: 1 + rng.below(5), extra: 1 + rng.below(3) }),
        7 | 8 => {
            let placement = one(rng, &["split", "single", "dac", "sepbit", "midas", "asa"]);
            let victim = one(rng, &["greedy", "fifo", "cost-benefit", "tournament", "cat"]);
            shape.policies = Some((placement, victim));
        }
        _ => {}
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_draw_is_a_device_and_the_seed_decides_it() {
        let shapes: Vec<Shape> = (0..2000).map(drawn).collect();
        for (seed, shape) in (0..).zip(&shapes) {
            let geometry = shape.geometry().unwrap();
            assert!(geometry.pages() <= 3000, "{shape:?}");
            assert_eq!(format!("{shape:?}"), format!("{:?}", drawn(seed)));
        }
        let of = |is: &dyn Fn(&Shape) -> bool| shapes.iter().filter(|shape| is(shape)).count();
        assert!(of(&|shape| shape.validity.is_some()) > 50 && of(&|shape| shape.age > 0) > 300);
        assert!(of(&|shape| shape.gecko != GeckoOptions::PAPER) > 100 && of(&|shape| shape.spare_blocks == 0) > 80);
    }
}
