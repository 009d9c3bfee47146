//! DFTL: the translation table in flash behind a cache, the validity bitmap in RAM, greedy
//! collection of every block.
//!
//! As published, a write that misses the cache reads its translation page. As in the comparison of
//! GeckoFTL's paper (section 5.3), one eviction brings a whole translation page up to date, and a
//! page that is moved gets a dirty entry. Needs a battery: what is dirty in the cache, the bitmap
//! and the counts of live pages are saved before power is gone. Without one a mount finds the table
//! as it was last synchronised: writes since are lost.

use super::{Durability, Entry, Info};
use crate::bound::Formula;
use crate::config::{Preset, Setting};
use crate::engine::page::{PageFtl, PageOptions, bound_over_store, format_over_store};
use crate::mapping::cached::{CachedMap, CachedOptions};
use crate::validity::ram_bitmap::RamBitmap;
use crate::validity::{Build, Store};
use nand::{Nand, ProgramOrder};

const VALIDITY: &str = RamBitmap::ENTRY.name;

pub(super) const INFO: Info = Info {
    name: "dftl",
    summary: "translation pages in flash behind a cache, validity bitmap in RAM",
    source: "Gupta, Kim and Urgaonkar, ASPLOS 2009",
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
    durable: Durability::Battery,
    program_order: ProgramOrder::Sequential,
    outlives_worn_pages: false,
    flags: 0,
    preset: Preset::PAPER,
    bound: Formula {
        programs: "1 + n·v + (U + 2)",
        longest: "n collections of v pages, and a synchronisation for each page that moves",
        most: |geometry, config| {
            let mapping = CachedMap::new(config.logical_pages, geometry.page_bytes(), CachedOptions::new(config));
            bound_over_store(geometry, config, OPTIONS, mapping)
        },
    },
};

const OPTIONS: PageOptions = PageOptions { battery: true, ..PageOptions::over(INFO.name, VALIDITY) };

pub(super) fn entry<N: Nand + 'static, B: Build>() -> Entry<N> {
    Entry {
        info: INFO,
        format: |flash, config| {
            let page_bytes = flash.nand().geometry().page_bytes();
            let mapping = CachedMap::new(config.logical_pages, page_bytes, CachedOptions::new(config));
            format_over_store::<B, RamBitmap, _, _>(flash, config, OPTIONS, mapping)
        },
        mount: Some(|flash, config| {
            PageFtl::<N, CachedMap, B::Bitmap>::mount_flat(flash, config, OPTIONS, CachedOptions::new(config))
        }),
    }
}
