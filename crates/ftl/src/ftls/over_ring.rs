//! FTLs whose translation pages are in flash behind a cache, with a ring of the pages written last
//! that bounds what a mount has to look at, and whose validity bitmap is in RAM.

use super::{Entry, Info};
use crate::bound::Formula;
use crate::config::Config;
use crate::engine::page::{PageFtl, PageOptions, bound_over_store, format_over_store};
use crate::mapping::cached::{CachedMap, CachedOptions};
use crate::validity::ram_bitmap::RamBitmap;
use crate::validity::{Build, Store};
use nand::Nand;

/// Their page-validity store.
pub(super) const VALIDITY: &str = RamBitmap::ENTRY.name;

/// What makes one differ from another.
pub(super) trait OverRing: 'static {
    /// What is known of it.
    const INFO: Info;
    /// How the engine is to work.
    const OPTIONS: PageOptions;

    /// How the cached table is to behave.
    fn cached(config: &Config) -> CachedOptions;
}

/// How the cached table behaves, for a disk that is made, mounted or bounded alike.
fn options<F: OverRing>(config: &Config) -> CachedOptions {
    F::cached(config).lazy()
}

/// The row of one.
pub(super) fn row<N: Nand + 'static, B: Build, F: OverRing>() -> Entry<N> {
    Entry {
        info: F::INFO,
        format: |flash, config| {
            let page_bytes = flash.nand().geometry().page_bytes();
            let mapping = CachedMap::new(config.logical_pages, page_bytes, options::<F>(config));
            format_over_store::<B, RamBitmap, _, _>(flash, config, F::OPTIONS, mapping)
        },
        mount: Some(|flash, config| {
            PageFtl::<N, CachedMap, B::Bitmap>::mount_flat(flash, config, F::OPTIONS, options::<F>(config))
        }),
    }
}

/// What its requests do at most: a ring of r updates.
pub(super) const fn bound<F: OverRing>() -> Formula {
    Formula {
        programs: "1 + n·v + (U + 2) + min(U, r, T)",
        longest: "n collections of v pages, and a synchronisation for each page that moves",
        most: |geometry, config| {
            let mapping = CachedMap::new(config.logical_pages, geometry.page_bytes(), options::<F>(config));
            bound_over_store(geometry, config, F::OPTIONS, mapping)
        },
    }
}

/// A cache of as many entries as asked for of which every one may be dirty, if its page is one of
/// as many that were written last.
pub(super) fn all_dirty(config: &Config) -> CachedOptions {
    let cache_entries = config.cache_entries.max(4);
    CachedOptions { cache_entries, recent_updates: cache_entries, looks_up: true, ..CachedOptions::new(config) }
}
