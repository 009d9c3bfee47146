//! Superblock FTL: N neighbouring logical blocks share their data blocks and at most K more, mapped
//! by page within.
//!
//! 1. A page may lie anywhere in the blocks of its superblock. The host's pages and those that
//!    outlived a collection go to different blocks while there are enough, so that hot and cold
//!    pages part.
//! 2. A superblock with K extra blocks, or with any if no other block is free, collects among its
//!    own blocks, the emptiest first. One that has none gets one from the superblock written least
//!    recently.
//!
//! Here [`Config::groups`] sets N and K, and [`DEFAULT`] is ours. What differs from the paper:
//! - It keeps the map in spare areas, in three levels, and reads it from there. Here the map is in
//!   RAM, as large as that of page mapping, and what a mount finds in spare areas or in checkpoints
//!   makes it anew.
//! - Which superblock gives up a block, and that the host may fill up a block of collected pages,
//!   was measured: always taking from the superblock written least recently, and never mixing,
//!   programs 28.6 pages a write where this programs 5.4 (uniform writes, a tenth over-provisioned,
//!   256 MiB).
//! - It tells data blocks from update blocks, and a full merge may sort what it copies. Here all
//!   blocks of a superblock are alike, and what is collected keeps its order.
//!
//! Next to log blocks it spares merges: only what lives in the emptiest block is copied. Next to
//! page mapping it cannot give one superblock the room that another does not use but by collecting
//! that one to the last page: it thrashes if there are fewer extra blocks than superblocks that are
//! written.

use super::{Durability, Entry, Info};
use crate::bound::Formula;
use crate::config::{GroupOptions, Preset, Setting};
use crate::engine::grouped::GroupedFtl;
use crate::engine::log_block::area::Room;
use crate::engine::log_block::bound::{Steps, bound};
use alloc::boxed::Box;
use nand::{Nand, ProgramOrder};

const DEFAULT: GroupOptions = GroupOptions { blocks: 16, extra: 4 };

pub(super) const INFO: Info = Info {
    name: "superblock",
    summary: "groups of neighbouring logical blocks, mapped by page within their own blocks",
    source: "Kang, Jo, Kim and Lee, EMSOFT 2006",
    differs: Some(
        "the paper keeps the map in spare areas, in three levels; here all of it is in RAM, as \
         large as that of page mapping",
    ),
    settings: &[Setting::Groups, Setting::Maps],
    validity: None,
    durable: Durability::OnCompletion,
    program_order: ProgramOrder::Sequential,
    // A mount from a checkpoint does not look at every page.
    outlives_worn_pages: false,
    flags: 0,
    preset: Preset::PAPER,
    bound: Formula {
        programs: "min(N, B)·B + 1 + c",
        longest: "the pages of a superblock of N logical blocks move until one of its blocks is free; a checkpoint",
        most: |geometry, config| {
            let maps_by_page = |data, _| Room { logs: 0, fused: data };
            bound(geometry, config, maps_by_page, |sizes| {
                let GroupOptions { blocks, extra } = config.groups.unwrap_or(DEFAULT);
                let most = u64::from(blocks).min(sizes.pages);
                Steps {
                    merges: 0,
                    moved: most * sizes.pages,
                    freed: u64::from(blocks) + u64::from(extra) + 1,
                    opened: most + 1,
                }
            })
        },
    },
};

pub(super) fn entry<N: Nand + 'static>() -> Entry<N> {
    Entry {
        info: INFO,
        format: |flash, config| {
            let groups = config.groups.unwrap_or(DEFAULT).checked(INFO.name)?;
            Ok(Box::new(GroupedFtl::format(flash, config, INFO.name, groups)?))
        },
        mount: Some(|flash, config| {
            let groups = config.groups.unwrap_or(DEFAULT).checked(INFO.name)?;
            GroupedFtl::mount(flash, config, INFO.name, groups)
        }),
    }
}
