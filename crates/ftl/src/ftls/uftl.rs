//! uFTL: the mapping table as a B-tree over extents in flash, the validity bitmap in flash, greedy
//! collection of every block.
//!
//! As in the comparison of GeckoFTL's paper (section 5.3), every page that dies costs a read and a
//! program of the bitmap. Needs a battery: dirty entries, inner nodes of the tree in RAM, the
//! bitmap's directory and the counts of live pages are saved before power is gone. Without one a
//! mount finds the table as its leaves have it: writes since are lost.

use super::{Durability, Entry, Info};
use crate::bound::Formula;
use crate::config::{Config, Preset, Setting};
use crate::engine::page::{PageOptions, bound_over_store, format_over_store, mount_tree_over_store};
use crate::mapping::btree::{BtreeMap, BtreeOptions};
use crate::validity::flash_bitmap::FlashBitmap;
use crate::validity::{Build, Store};
use nand::{Nand, ProgramOrder};

const VALIDITY: &str = FlashBitmap::ENTRY.name;

pub(super) const INFO: Info = Info {
    name: "uftl",
    summary: "B-tree over extents in flash behind a cache, validity bitmap in flash",
    source: "Lee, Kim and Kwon, EMSOFT 2008",
    differs: None,
    settings: &[
        Setting::CacheEntries,
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
        programs: "1 + n·v + (h − 1)·min(2·U, U + 4) + i + (2 + n)",
        longest: "n collections of v pages, and nodes of the tree for each page that moves; the bitmap for each erase",
        most: |geometry, config| {
            let (page_bytes, pages) = (geometry.page_bytes(), geometry.pages_per_block());
            bound_over_store(
                geometry,
                config,
                OPTIONS,
                BtreeMap::new(config.logical_pages, page_bytes, pages, tree(config)),
            )
        },
    },
};

const OPTIONS: PageOptions = PageOptions { battery: true, ..PageOptions::over(INFO.name, VALIDITY) };

/// Inner nodes that are held in RAM at least, the root among them: 128 KiB with pages of 4 KiB.
const NODE_FRAMES: u32 = 32;

const fn tree(config: &Config) -> BtreeOptions {
    BtreeOptions {
        cache_entries: config.cache_entries,
        node_frames: NODE_FRAMES,
        cache_leaves: false,
        recent_updates: 0,
        cache_ways: config.cache_ways,
    }
}

pub(super) fn entry<N: Nand + 'static, B: Build>() -> Entry<N> {
    Entry {
        info: INFO,
        format: |flash, config| {
            let (page_bytes, pages) = (flash.nand().geometry().page_bytes(), flash.nand().geometry().pages_per_block());
            let mapping = BtreeMap::new(config.logical_pages, page_bytes, pages, tree(config));
            format_over_store::<B::Slow, FlashBitmap, _, _>(flash, config, OPTIONS, mapping)
        },
        mount: Some(|flash, config| {
            mount_tree_over_store::<B::Slow, FlashBitmap, _>(flash, config, OPTIONS, tree(config))
        }),
    }
}
