//! IB-FTL: the mapping table as a B-tree over extents in flash with few dirty entries, page
//! validity in a log in flash.
//!
//! As in the comparison of GeckoFTL's paper (section 5.3): the index is the tree of uFTL, the log
//! is cleaned (Appendix E), and only the entries of the pages written last, a tenth of C of them,
//! may be dirty. A trim changes its leaf at once. The cache of the index is adaptive, as in the
//! original's title: inner nodes and leaves share it, whichever was used last.
//!
//! Needs no battery: a mount reads the spare areas of the pages written last, reads every leaf for
//! what lives, writes the log anew, and synchronises what was dirty. The paper's mount reads the
//! log instead; what was in its buffer is then not known.

use super::{Durability, Entry, Info};
use crate::bound::Formula;
use crate::config::{Config, Preset, Setting};
use crate::engine::page::{PageOptions, bound_over_store, format_over_store, mount_tree_over_store};
use crate::mapping::btree::{BtreeMap, BtreeOptions};
use crate::validity::log::ValidityLog;
use crate::validity::{Build, Store};
use nand::{Nand, ProgramOrder};

const VALIDITY: &str = ValidityLog::ENTRY.name;

pub(super) const INFO: Info = Info {
    name: "ib-ftl",
    summary: "B-tree over extents in flash behind a cache with few dirty entries, log of dead pages in flash",
    source: "Huang, Chang and Kuo, TODAES 2013; cleaning and bound: GeckoFTL's paper",
    differs: Some(
        "IB-FTL's mount reads the log of dead pages; here a mount reads every leaf and writes the \
         log anew, which takes longer",
    ),
    settings: &[
        Setting::CacheEntries,
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
    bound: Formula {
        programs: "1 + n·v + 2·(h − 1)·min(2·U, U + 4) + i + 6",
        longest: "n collections of v pages, and nodes of the tree for each page that moves; the log is cleaned",
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

const OPTIONS: PageOptions = PageOptions::over(INFO.name, VALIDITY);

/// Nodes that are held in RAM at least, the root among them: 128 KiB with pages of 4 KiB.
const NODE_FRAMES: u32 = 32;

/// Dirty entries that even a small cache may hold, up to half of it: were each page that a
/// collector moves synchronised alone, collecting a nearly full disk could take more pages than it
/// frees.
const LEAST_RECENT: u32 = 8;

fn tree(config: &Config) -> BtreeOptions {
    // What was dirty has to fit the cache again after power loss, and the write that was cut short
    // with it.
    let cache_entries = config.cache_entries.max(4);
    let recent_updates = (cache_entries / 10).max(LEAST_RECENT.min(cache_entries / 2));
    BtreeOptions {
        cache_entries,
        node_frames: NODE_FRAMES,
        cache_leaves: true,
        recent_updates,
        cache_ways: config.cache_ways,
    }
}

pub(super) fn entry<N: Nand + 'static, B: Build>() -> Entry<N> {
    Entry {
        info: INFO,
        format: |flash, config| {
            let (page_bytes, pages) = (flash.nand().geometry().page_bytes(), flash.nand().geometry().pages_per_block());
            let mapping = BtreeMap::new(config.logical_pages, page_bytes, pages, tree(config));
            format_over_store::<B::Slow, ValidityLog, _, _>(flash, config, OPTIONS, mapping)
        },
        mount: Some(|flash, config| {
            mount_tree_over_store::<B::Slow, ValidityLog, _>(flash, config, OPTIONS, tree(config))
        }),
    }
}
