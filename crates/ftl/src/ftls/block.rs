//! Block mapping, one extreme of the spectrum: a page that cannot go to its place is written by
//! writing its whole logical block again.
//!
//! Two blocks of RAM a logical block's entry, and a write-amplification of a block a page. Good for
//! a disk that is written from end to end.
//!
//! An FTL takes one page at a time, so that a request that overwrites n pages of a logical block
//! rewrites it n times. One that sees the whole request rewrites it once.

use super::{Durability, Entry, Info};
use crate::bound::Formula;
use crate::config::{Preset, Setting};
use crate::engine::log_block::LogFtl;
use crate::engine::log_block::area::Target;
use crate::engine::log_block::bound::{Steps, bound, logs_only};
use crate::engine::log_block::scheme::{Scheme, Step, View};
use alloc::boxed::Box;
use nand::{BlockId, Nand, ProgramOrder};

pub(super) const INFO: Info = Info {
    name: "block",
    summary: "block mapping: an overwrite rewrites its logical block",
    source: "Ban, US patent 5,404,485 (1995); the block-mapping extreme of Kwon et al., EMSOFT 2010",
    differs: Some(
        "an FTL that sees whole requests rewrites a logical block once for each; here pages come \
         one at a time, and each overwritten page rewrites its logical block",
    ),
    settings: &[Setting::Maps],
    validity: None,
    durable: Durability::OnCompletion,
    program_order: ProgramOrder::Sequential,
    // A mount from a checkpoint does not look at every page.
    outlives_worn_pages: false,
    flags: 0,
    preset: Preset::PAPER,
    bound: Formula {
        programs: "B + 1 + c",
        longest: "one logical block is written again; a checkpoint",
        most: |geometry, config| bound(geometry, config, logs_only, |_| Steps { merges: 1, freed: 1, ..Steps::NONE }),
    },
};

pub(super) fn entry<N: Nand + 'static>() -> Entry<N> {
    Entry {
        info: INFO,
        format: |flash, config| Ok(Box::new(LogFtl::format(flash, config, INFO.name, |_| NoLogs)?)),
        mount: Some(|flash, config| LogFtl::mount(flash, config, INFO.name, |_| NoLogs)),
    }
}

struct NoLogs;

impl Scheme for NoLogs {
    const LEAST_LOGS: u32 = 0;

    fn step(&mut self, _: &View, _: Target) -> Step {
        Step::Rewrite
    }

    fn shrink(&mut self, _: &View) -> Step {
        Step::Stuck
    }

    fn opened(&mut self, _: BlockId, _: u32) {}

    fn closed(&mut self, _: BlockId) {}

    fn ram_bytes(&self) -> u64 {
        0
    }
}
