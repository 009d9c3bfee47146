//! Map blocks: the whole mapping table in RAM, and every change of it written to map blocks on
//! flash, from which a mount loads all of it.
//!
//! A page of a map block is a translation page, and the table in RAM is a cache with room for every
//! entry. A write is followed by a program of the translation page of the write before it, unless
//! both are the same; a mount finds the last write by its spare area. So no write is lost, each
//! write costs about two programs, and no read of the host misses the table. After power loss every
//! completed write and trim is there.
//!
//! The cache costs more RAM an entry than an array would.
//!
//! FTRM's paper compares with it. The original belongs to a device of few blocks, whose map blocks
//! take turns; here they are collected as all blocks are.

use super::over_ring::{OverRing, VALIDITY, bound, row};
use super::{Durability, Entry, Info};
use crate::config::{Config, Preset, Setting};
use crate::engine::page::PageOptions;
use crate::mapping::cached::{CachedOptions, Refill};
use crate::validity::Build;
use nand::{Nand, ProgramOrder};

pub(super) const INFO: Info = Info {
    name: "mapblock",
    summary: "the whole table in RAM, and each change of it written to map blocks that a mount loads",
    source: "Kim, Kim, Noh, Min and Cho, IEEE Trans. Consumer Electronics 2002",
    differs: None,
    settings: &[Setting::Victim, Setting::Placement, Setting::Lanes, Setting::Wear],
    validity: Some(VALIDITY),
    durable: Durability::OnCompletion,
    program_order: ProgramOrder::Sequential,
    outlives_worn_pages: false,
    flags: 0,
    preset: Preset::PAPER,
    bound: bound::<MapBlock>(),
};

struct MapBlock;

impl OverRing for MapBlock {
    const INFO: Info = INFO;
    const OPTIONS: PageOptions = PageOptions::over(INFO.name, VALIDITY);

    fn cached(config: &Config) -> CachedOptions {
        CachedOptions {
            cache_entries: config.logical_pages.max(4),
            protected_percent: 0,
            cache_ways: 0,
            recent_updates: 1,
            refill: Refill::All,
            looks_up: true,
            ..CachedOptions::new(config)
        }
    }
}

pub(super) fn entry<N: Nand + 'static, B: Build>() -> Entry<N> {
    row::<N, B, MapBlock>()
}
