//! GeckoFTL: the translation table in flash behind a cache, page validity in flash by Logarithmic
//! Gecko, and metadata that is never collected.
//!
//! Superseded pages are found when their entry is synchronised (section 4.1), blocks of metadata
//! are erased once no page in them lives, within a limit (section 4.2), and runtime checkpoints
//! bound how far back an entry that is only in RAM can lie (section 4.3). After power loss every
//! completed write and trim is there.

use super::{Durability, Entry, Info};
use crate::bound::{Bound, Formula};
use crate::config::{Config, Preset, Setting};
use crate::contract::{Ftl, FtlError};
use crate::engine::page::{PageFtl, PageOptions, bound_over_store, format_over_store};
use crate::flash::Flash;
use crate::mapping::cached::{CachedMap, CachedOptions};
use crate::validity::gecko::Gecko;
use crate::validity::{Build, Store};
use alloc::boxed::Box;
use nand::{Geometry, Nand, ProgramOrder};

const VALIDITY: &str = Gecko::ENTRY.name;

pub(super) const INFO: Info = Info {
    name: "gecko",
    summary: "translation pages behind a cache, page validity in flash by Logarithmic Gecko",
    source: "Dayan, Bonnet and Idreos, SIGMOD 2016",
    differs: None,
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
    outlives_worn_pages: true,
    flags: 0,
    preset: Preset::PAPER,
    bound: Formula {
        programs: "1 + n·v + (U + 2 + n) + (U/C + 1)·min(T, C) + f·F + a",
        longest: "as for dftl; a checkpoint of the cache; merges of the validity store, which grow with K",
        most: |geometry, config| most(geometry, config, OPTIONS),
    },
};

pub(super) const OPTIONS: PageOptions = PageOptions { metadata_apart: true, ..PageOptions::over(INFO.name, VALIDITY) };

fn mapping(config: &Config, page_bytes: u32) -> CachedMap {
    let cached = CachedOptions::new(config).warmed_for(config).checkpointed();
    CachedMap::new(config.logical_pages, page_bytes, cached)
}

/// The most that its requests do.
pub(super) fn most(geometry: &Geometry, config: &Config, options: PageOptions) -> Option<Bound> {
    bound_over_store(geometry, config, options, mapping(config, geometry.page_bytes()))
}

/// Makes an empty disk; over its own page-validity store one that rebuilds its metadata.
pub(super) fn format<N: Nand + 'static, B: Build>(
    flash: Flash<N>,
    config: &Config,
    options: PageOptions,
) -> Result<Box<dyn Ftl<N>>, FtlError> {
    if options.store(config) == VALIDITY {
        return Ok(Box::new(PageFtl::format_to_heal(flash, config, options)?));
    }
    let page_bytes = flash.nand().geometry().page_bytes();
    format_over_store::<B, Gecko, _, _>(flash, config, options, mapping(config, page_bytes))
}

pub(super) fn entry<N: Nand + 'static, B: Build>() -> Entry<N> {
    Entry {
        info: INFO,
        format: |flash, config| format::<N, B>(flash, config, OPTIONS),
        mount: Some(|flash, config| PageFtl::mount_by_steps(flash, config, OPTIONS)),
    }
}
