//! LazyFTL: the table of DFTL, but only the entries of pages written lately may be dirty; validity
//! bitmap in RAM.
//!
//! As published, pages are written to update blocks and moved to cold blocks, and a block leaves
//! these areas when every entry of it is in flash. Here the two areas are the pages written last, a
//! tenth of C of them as in GeckoFTL's comparison (section 5.3): when a page leaves, its entry is
//! synchronised together with all dirty ones of the same translation page. The sum of work is that
//! of converting whole blocks, done a page at a time, so that no write has to wait for a
//! conversion. As published, a write does not look its old copy up: that copy is found dead when
//! its entry is synchronised, or by its spare area when its block is collected.
//!
//! Needs no battery: a mount reads the spare areas of the pages written last, reads every
//! translation page for the bitmap, and synchronises what was dirty. After power loss every
//! completed write and trim is there.

use super::over_ring::{OverRing, VALIDITY, bound, row};
use super::{Durability, Entry, Info};
use crate::config::{Config, Preset, Setting};
use crate::engine::page::PageOptions;
use crate::mapping::cached::CachedOptions;
use crate::validity::Build;
use nand::{Nand, ProgramOrder};

pub(super) const INFO: Info = Info {
    name: "lazy",
    summary: "translation pages behind a cache with few dirty entries, validity bitmap in RAM",
    source: "Ma, Feng and Li, SIGMOD 2011",
    differs: Some(
        "LazyFTL converts whole blocks of its update and cold areas; here each page's entry is \
         synchronised when it is no longer among the pages written last",
    ),
    settings: &[
        Setting::CacheEntries,
        Setting::SegmentedLru,
        Setting::CacheWays,
        Setting::Victim,
        Setting::Placement,
        Setting::Lanes,
        Setting::Wear,
        Setting::Warm,
    ],
    validity: Some(VALIDITY),
    durable: Durability::OnCompletion,
    program_order: ProgramOrder::Sequential,
    outlives_worn_pages: false,
    flags: 0,
    preset: Preset::PAPER,
    bound: bound::<Lazy>(),
};

/// Dirty entries that even a small cache may hold, up to half of it: were each page that a
/// collector moves synchronised alone, collecting a nearly full disk could take more pages than it
/// frees.
const LEAST_RECENT: u32 = 8;

struct Lazy;

impl OverRing for Lazy {
    const INFO: Info = INFO;
    const OPTIONS: PageOptions = PageOptions::over(INFO.name, VALIDITY);

    fn cached(config: &Config) -> CachedOptions {
        // What was dirty has to fit the cache again after power loss, and the write that was cut
        // short with it.
        let cache_entries = config.cache_entries.max(4);
        let recent_updates = (cache_entries / 10).max(LEAST_RECENT.min(cache_entries / 2));
        CachedOptions { cache_entries, recent_updates, ..CachedOptions::new(config).warmed_for(config) }
    }
}

pub(super) fn entry<N: Nand + 'static, B: Build>() -> Entry<N> {
    row::<N, B, Lazy>()
}
