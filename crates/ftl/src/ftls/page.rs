//! Page mapping, the simplest that can be: the whole table and the validity bitmap in RAM, greedy
//! collection.
//!
//! The yardstick in write-amplification and the worst in RAM. After power loss every spare area is
//! read: every completed write is there, and every trim that was flushed: the trim map says so, a
//! bit a logical page.

use super::{Durability, Entry, Info};
use crate::bound::Formula;
use crate::config::{Preset, Setting};
use crate::engine::page::{PageOptions, bound_over_store, format_over_store, mount_by_scan_over_store};
use crate::mapping::ram::RamMap;
use crate::validity::ram_bitmap::RamBitmap;
use crate::validity::{Build, Store};
use nand::{Nand, ProgramOrder};

const VALIDITY: &str = RamBitmap::ENTRY.name;

pub(super) const INFO: Info = Info {
    name: "page",
    summary: "page table and validity bitmap in RAM",
    source: "Ban, US patent 5,404,485 (1995); PPM in GeckoFTL's and Janus-FTL's papers",
    differs: None,
    settings: &[Setting::Victim, Setting::Placement, Setting::Lanes, Setting::Wear],
    validity: Some(VALIDITY),
    durable: Durability::OnCompletion,
    program_order: ProgramOrder::Sequential,
    outlives_worn_pages: true,
    flags: 0,
    preset: Preset::PAPER,
    bound: Formula {
        programs: "1 + n·v + t",
        longest: "n collections of v pages",
        most: |geometry, config| {
            bound_over_store(geometry, config, OPTIONS, RamMap::new(config.logical_pages, geometry))
        },
    },
};

const OPTIONS: PageOptions = PageOptions::over(INFO.name, VALIDITY);

pub(super) fn entry<N: Nand + 'static, B: Build>() -> Entry<N> {
    Entry {
        info: INFO,
        format: |flash, config| {
            let map = RamMap::new(config.logical_pages, flash.nand().geometry());
            format_over_store::<B, RamBitmap, _, _>(flash, config, OPTIONS, map)
        },
        mount: Some(|flash, config| mount_by_scan_over_store::<B, RamBitmap, _>(flash, config, OPTIONS)),
    }
}
