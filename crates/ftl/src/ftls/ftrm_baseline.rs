//! The baseline of FTRM's paper: DFTL that does nothing for recovery.
//!
//! What only RAM holds is gone with power. A yardstick for simulations: no disk is made of it, and
//! none is mounted. `openftl reproduce ftrm/fig6` counts the page faults that it would have, by
//! mounting DFTL without its battery.

use super::{Durability, Entry, Info};
use crate::bound::Formula;
use crate::config::{Preset, Setting};
use crate::engine::page::{PageOptions, bound_over_store, format_over_store};
use crate::mapping::cached::{CachedMap, CachedOptions};
use crate::validity::ram_bitmap::RamBitmap;
use crate::validity::{Build, Store};
use nand::{Nand, ProgramOrder};

const VALIDITY: &str = RamBitmap::ENTRY.name;

pub(super) const INFO: Info = Info {
    name: "ftrm-baseline",
    summary: "DFTL that does nothing for recovery; loses data at power loss, for comparison only",
    source: "baseline of FTRM's paper, section 5",
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
    durable: Durability::Nothing,
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

const OPTIONS: PageOptions = PageOptions::over(INFO.name, VALIDITY);

pub(super) fn entry<N: Nand + 'static, B: Build>() -> Entry<N> {
    Entry {
        info: INFO,
        format: |flash, config| {
            let page_bytes = flash.nand().geometry().page_bytes();
            let mapping = CachedMap::new(config.logical_pages, page_bytes, CachedOptions::new(config));
            format_over_store::<B, RamBitmap, _, _>(flash, config, OPTIONS, mapping)
        },
        mount: None,
    }
}
