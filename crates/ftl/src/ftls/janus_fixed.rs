//! Janus-FTL, fixed: the page-mapped area is kept at one utilisation, by default the 75% of
//! Janus(Fix) in the paper's section 6.
//!
//! Three fused logical blocks for every over-provisioned block; the rest is mapped by block and
//! costs four bytes a logical block.

use super::janus::{room, steps};
use super::{Durability, Entry, Info};
use crate::bound::Formula;
use crate::config::{Config, Preset, Setting};
use crate::contract::FtlError;
use crate::engine::hybrid::{Goal, HybridFtl};
use crate::engine::log_block::bound::bound;
use alloc::boxed::Box;
use alloc::format;
use nand::{Nand, ProgramOrder};

pub(super) const INFO: Info = Info {
    name: "janus-fixed",
    summary: "Janus-FTL with its page-mapped area at 75% utilisation",
    source: "Kwon, Kim, Choi, Lee and Noh, EMSOFT 2010, section 6",
    differs: None,
    settings: &[
        Setting::Victim,
        Setting::JanusUtilisation,
        Setting::JanusDefuse,
        Setting::JanusBlockMap,
        Setting::Maps,
    ],
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
        most: |geometry, config| {
            let percent = config.janus.utilisation_percent.clamp(1, 99);
            let fused = |data: u32, over: u32| data.min(over.saturating_mul(percent) / (100 - percent));
            bound(geometry, config, |data, over| room(over, fused(data, over)), steps)
        },
    },
};

pub(super) fn entry<N: Nand + 'static>() -> Entry<N> {
    Entry {
        info: INFO,
        format: |flash, config| Ok(Box::new(HybridFtl::format(flash, config, INFO.name, goal(config)?)?)),
        mount: Some(|flash, config| HybridFtl::mount(flash, config, INFO.name, goal(config)?)),
    }
}

fn goal(config: &Config) -> Result<Goal, FtlError> {
    let percent = config.janus.utilisation_percent;
    if (1..100).contains(&percent) {
        return Ok(Goal::UtilisationPercent(percent));
    }
    let reason = format!("a page-mapped area cannot be {percent}% utilised; ask for 1 to 99, 75 is the paper's");
    Err(FtlError::Unsupported { ftl: INFO.name, reason })
}
