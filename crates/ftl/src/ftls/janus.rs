//! Janus-FTL, adaptive: the page-mapped area grows and shrinks with the workload.
//!
//! Ghost buffers estimate the hit rate of twenty sizes; after every N_D writes the size moves
//! toward the minimum of the paper's equation 4. The page map has entries for every logical block,
//! as the paper's, so its RAM is that of page mapping and a little; with `page_map_percent` it has
//! fewer, and as `janus-fixed` it saves RAM.

use super::{Durability, Entry, Info};
use crate::bound::Formula;
use crate::config::{Preset, Setting};
use crate::engine::hybrid::{Goal, HybridFtl};
use crate::engine::log_block::area::Room;
use crate::engine::log_block::bound::{Sizes, Steps, bound};
use alloc::boxed::Box;
use nand::{Nand, ProgramOrder};

pub(super) const INFO: Info = Info {
    name: "janus",
    summary: "part mapped by page and part by block, moved by the workload",
    source: "Kwon, Kim, Choi, Lee and Noh, EMSOFT 2010",
    differs: None,
    settings: &[Setting::Victim, Setting::JanusDefuse, Setting::JanusLearn, Setting::JanusBlockMap, Setting::Maps],
    validity: None,
    durable: Durability::OnCompletion,
    program_order: ProgramOrder::Sequential,
    // A mount from a checkpoint does not look at every page.
    outlives_worn_pages: false,
    flags: 0,
    preset: Preset::PAPER,
    bound: Formula {
        programs: "4·B·(B − 1) + 3·B + 1 + c",
        longest: "four times a block is gained from blocks with one page dead; three logical blocks are gathered; a checkpoint",
        most: |geometry, config| bound(geometry, config, |data, over| room(over, data), steps),
    },
};

/// Room for a quarter of the over-provisioned blocks as log blocks, and for the logical blocks that
/// are fused.
pub(super) const fn room(over_provisioned: u32, fused: u32) -> Room {
    Room { logs: over_provisioned / 4 + 1, fused }
}

/// Of a write: one logical block leaves because the page-mapped area is too large, two
/// for one that enters, and the page goes to an empty block. Before each of these a block is
/// gained, by collections of blocks in which one page at least is dead: B of them for one.
pub(super) const fn steps(sizes: &Sizes) -> Steps {
    let collections = 4 * sizes.pages;
    Steps { merges: 3, moved: collections * (sizes.pages - 1), freed: collections + 6, opened: collections + 1 }
}

pub(super) fn entry<N: Nand + 'static>() -> Entry<N> {
    Entry {
        info: INFO,
        format: |flash, config| Ok(Box::new(HybridFtl::format(flash, config, INFO.name, Goal::Adaptive)?)),
        mount: Some(|flash, config| HybridFtl::mount(flash, config, INFO.name, Goal::Adaptive)),
    }
}
