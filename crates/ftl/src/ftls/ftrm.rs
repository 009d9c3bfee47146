//! FTRM: DFTL whose pages say in flags of their spare area what a mount needs to know.
//!
//! - The validation flag (VF) of a page of host data is cleared once the page is superseded. As
//!   published, a write that misses the cache reads its translation page, so that the old copy is
//!   known.
//! - An access counter (AC) for each translation page is kept in RAM and on flash
//!   (`mapping/cached/heat.rs`). A mount caches the entries of hot translation pages.
//!
//! The paper corrects mapping pages from all data pages whose VF is set, and does not say how these
//! are found. Here an entry may be only in RAM while its page is one of the n written last. A mount
//! reads two spare areas of every block, those of translation blocks, and those of the blocks with
//! the n pages written last; n is the number of entries that the cache holds.
//!
//! A page whose VF is cleared never counts again. Should the page that superseded it be unreadable,
//! the mount says that the logical page is lost; without the flag it could give an older version.
//! After power loss every completed write and trim is there.
//!
//! The write counter (WC) of the paper counts the programs of a page. A spare area says how often
//! its block was erased, which is the same; [`crate::Config::wear`] moves data at rest by it.
//!
//! This is the paper's choice, `FTRM_Write`: a flag is set when a translation page turns hot, and
//! one when its last entry leaves the cache.

use super::over_ring::{OverRing, VALIDITY, all_dirty, bound, row};
use super::{Durability, Entry, Info};
use crate::config::{Config, Preset, Setting};
use crate::engine::page::PageOptions;
use crate::mapping::cached::{CachedOptions, Upkeep};
use crate::validity::Build;
use nand::{Nand, ProgramOrder};

pub(super) const INFO: Info = Info {
    name: "ftrm",
    summary: "DFTL whose spare areas flag dead pages and hot translation pages; a mount fills the cache",
    ..like::<Ftrm>("ftrm")
};

/// What all of them have in common.
pub(super) const fn like<F: OverRing>(name: &'static str) -> Info {
    Info {
        name,
        summary: "",
        source: "Mativenga, Hamandawana, Chung and Kim, Electronics 2020",
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
        flags: FLAGS,
        preset: Preset::PAPER,
        bound: bound::<F>(),
    }
}

/// A translation page turns hot and cools down; the variants use as many steps as there are.
const FLAGS: u8 = 2;

/// How the engine works for all of them.
pub(super) const fn options(name: &'static str) -> PageOptions {
    PageOptions { flags: FLAGS, ..PageOptions::over(name, VALIDITY) }
}

struct Ftrm;

impl OverRing for Ftrm {
    const INFO: Info = INFO;
    const OPTIONS: PageOptions = options(INFO.name);

    fn cached(config: &Config) -> CachedOptions {
        all_dirty(config).warmed(Some(Upkeep::Turning))
    }
}

pub(super) fn entry<N: Nand + 'static, B: Build>() -> Entry<N> {
    row::<N, B, Ftrm>()
}
