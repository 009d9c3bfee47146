//! Recovery by translation blocks: DFTL whose mount brings the translation pages up to date by
//! reading the spare area of every page, and caches entries in no particular order.
//!
//! Here the ring of the pages written last bounds which of them count. Older ones say nothing new,
//! and one of them that a mount could not read must not come back when another mount can.
//!
//! FTRM's paper (Table 1) compares with it: translation is fast, recovery is slow. No flag is set
//! and no battery is needed. After power loss every completed write and trim is there.

use super::over_ring::{OverRing, VALIDITY, all_dirty, bound, row};
use super::{Durability, Entry, Info};
use crate::config::{Config, Preset, Setting};
use crate::engine::page::PageOptions;
use crate::mapping::cached::{CachedOptions, Refill};
use crate::validity::Build;
use nand::{Nand, ProgramOrder};

pub(super) const INFO: Info = Info {
    name: "transblock",
    summary: "DFTL whose mount reads every spare area and caches entries in no order",
    source: "translation-block recovery in FTRM's paper, Table 1",
    differs: None,
    settings: &[
        Setting::CacheEntries,
        Setting::SegmentedLru,
        Setting::CacheWays,
        Setting::Victim,
        Setting::Placement,
        Setting::Lanes,
        Setting::Wear,
    ],
    validity: Some(VALIDITY),
    durable: Durability::OnCompletion,
    program_order: ProgramOrder::Sequential,
    outlives_worn_pages: false,
    flags: 0,
    preset: Preset::PAPER,
    bound: bound::<TransBlock>(),
};

struct TransBlock;

impl OverRing for TransBlock {
    const INFO: Info = INFO;
    const OPTIONS: PageOptions = PageOptions { scans_all: true, ..PageOptions::over(INFO.name, VALIDITY) };

    fn cached(config: &Config) -> CachedOptions {
        CachedOptions { refill: Refill::Any, ..all_dirty(config) }
    }
}

pub(super) fn entry<N: Nand + 'static, B: Build>() -> Entry<N> {
    row::<N, B, TransBlock>()
}
