//! Janus-FTL, adaptive: the page-mapped area grows and shrinks with the workload.
//!
//! Ghost buffers estimate the hit rate of twenty sizes; after every N_D writes the size moves
//! toward the minimum of the paper's equation 4. The page map has entries for every logical block,
//! as the paper's, so its RAM is that of page mapping and a little; with `page_map_percent` it has
//! fewer, and as `janus-fixed` it saves RAM.

use super::{Durability, Entry, Info};
use crate::config::{Preset, Setting};
use crate::engine::janus::{Goal, JanusFtl};
use alloc::boxed::Box;
use nand::{Nand, ProgramOrder};

pub(super) const INFO: Info = Info {
    name: "janus",
    summary: "part mapped by page and part by block, moved by the workload",
    source: "Kwon, Kim, Choi, Lee and Noh, EMSOFT 2010",
    settings: &[Setting::Victim, Setting::JanusDefuse, Setting::JanusLearn, Setting::JanusBlockMap, Setting::Maps],
    validity: None,
    durable: Durability::OnCompletion,
    program_order: ProgramOrder::Sequential,
    // A mount from a checkpoint does not look at every page.
    outlives_worn_pages: false,
    flags: 0,
    preset: Preset::PAPER,
};

pub(super) fn entry<N: Nand + 'static>() -> Entry<N> {
    Entry {
        info: INFO,
        format: |flash, config| Ok(Box::new(JanusFtl::format(flash, config, INFO.name, Goal::Adaptive)?)),
        mount: Some(|flash, config| JanusFtl::mount(flash, config, INFO.name, Goal::Adaptive)),
    }
}
