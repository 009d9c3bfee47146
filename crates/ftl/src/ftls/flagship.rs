//! The parts of this code base that do best, put together: GeckoFTL's mapping, validity and
//! recovery, with packed entries, `SepBIT`'s placement and a warm mount.
//!
//! It is `gecko` with another preset, so that each part can be set back or replaced alone. What is
//! on flash is GeckoFTL's, and so is its promise. Placement keeps its table in RAM: after a mount
//! every page counts as never written, which costs write amplification and nothing else.
//!
//! The table of `SepBIT` takes four bytes a logical page, as much as a page map. Under a placement
//! that keeps none, such as `dac`, its RAM is about GeckoFTL's.

use super::gecko::{self, format};
use super::{Entry, Info};
use crate::bound::Formula;
use crate::config::{Config, GeckoOptions, Preset};
use crate::engine::page::{PageFtl, PageOptions};
use crate::validity::Build;
use nand::Nand;

pub(super) const INFO: Info = Info {
    name: "flagship",
    summary: "GeckoFTL with packed entries and a filter, SepBIT's placement and a warm mount",
    source: "here; its parts: GeckoFTL (SIGMOD 2016), SepBIT (FAST 2022), FTRM (Electronics 2020)",
    differs: None,
    preset: Preset {
        placement: "sepbit",
        gecko: GeckoOptions { packed: true, filter_bytes: FILTER_BYTES, ..GeckoOptions::PAPER },
        warm: true,
    },
    bound: Formula { most: |geometry, config| gecko::most(geometry, config, OPTIONS), ..gecko::INFO.bound },
    ..gecko::INFO
};

/// Beside the cache and a byte and more a block it is little RAM on any device.
const FILTER_BYTES: u32 = 4096;

const OPTIONS: PageOptions = PageOptions { name: INFO.name, ..gecko::OPTIONS };

fn preset(config: &Config) -> Config {
    config.or(&INFO.preset)
}

pub(super) fn entry<N: Nand + 'static, B: Build>() -> Entry<N> {
    Entry {
        info: INFO,
        format: |flash, config| format::<N, B>(flash, &preset(config), OPTIONS),
        mount: Some(|flash, config| PageFtl::mount_by_steps(flash, &preset(config), OPTIONS)),
    }
}
