//! ASA-FTL: DFTL whose blocks each hold pages of about the same age. Hot, warm and cold data go to
//! streams of their own, by how long the version before lived.
//!
//! Beside each mapping entry, in flash and in the cache, is when the host wrote the page and where
//! it went: eight bytes an entry instead of four, so that there are twice as many translation
//! pages as DFTL has. The ages that part hot from warm and warm from cold are found by clustering
//! a sample of them ([`crate::placement`]). Victims are chosen by cost, age and times.
//!
//! The poster leaves open where pages go that a collector moves. Here they never become hotter.
//! Needs a battery as DFTL does. It does not save ages that only RAM holds: after power loss such
//! a page counts as older than it is.

use super::{Durability, Entry, Info};
use crate::bound::Formula;
use crate::config::{Config, Preset, Setting};
use crate::engine::page::{PageFtl, PageOptions, bound_over_store, format_over_store};
use crate::mapping::cached::{CachedMap, CachedOptions};
use crate::validity::ram_bitmap::RamBitmap;
use crate::validity::{Build, Store};
use nand::{Nand, ProgramOrder};

const VALIDITY: &str = RamBitmap::ENTRY.name;

pub(super) const INFO: Info = Info {
    name: "asa",
    summary: "DFTL that parts hot, warm and cold pages by the age at which they are overwritten",
    source: "Xie and Chen, CCGrid 2014 (poster)",
    differs: None,
    settings: &[
        Setting::CacheEntries,
        Setting::SegmentedLru,
        Setting::CacheWays,
        Setting::AgeGroups,
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
        programs: "none",
        longest: "collections: victims by cost, age and times may be almost full",
        most: |geometry, config| {
            let mapping = CachedMap::new(config.logical_pages, geometry.page_bytes(), cached(config));
            bound_over_store(geometry, &with_policies(config), OPTIONS, mapping)
        },
    },
};

const OPTIONS: PageOptions = PageOptions { battery: true, ..PageOptions::over(INFO.name, VALIDITY) };

fn cached(config: &Config) -> CachedOptions {
    CachedOptions { pasts: true, ..CachedOptions::new(config) }
}

/// The policies are part of the design.
fn with_policies(config: &Config) -> Config {
    Config { placement: Some("asa"), victim: "cat", ..*config }
}

pub(super) fn entry<N: Nand + 'static, B: Build>() -> Entry<N> {
    Entry {
        info: INFO,
        format: |flash, config| {
            let page_bytes = flash.nand().geometry().page_bytes();
            let mapping = CachedMap::new(config.logical_pages, page_bytes, cached(config));
            format_over_store::<B, RamBitmap, _, _>(flash, &with_policies(config), OPTIONS, mapping)
        },
        mount: Some(|flash, config| {
            PageFtl::<N, CachedMap, B::Bitmap>::mount_flat(flash, &with_policies(config), OPTIONS, cached(config))
        }),
    }
}
