//! FTRM's variant Victim: the count of a translation page is brought up to date when the page is
//! programmed, and when the last of its entries leaves the cache.

use super::ftrm::{like, options};
use super::over_ring::{OverRing, all_dirty, row};
use super::{Entry, Info};
use crate::config::Config;
use crate::engine::page::PageOptions;
use crate::mapping::cached::{CachedOptions, Upkeep};
use crate::validity::Build;
use nand::Nand;

pub(super) const INFO: Info = Info {
    summary: "FTRM that brings counts of translation pages up to date when they leave the cache",
    ..like::<Victim>("ftrm-victim")
};

struct Victim;

impl OverRing for Victim {
    const INFO: Info = INFO;
    const OPTIONS: PageOptions = options(INFO.name);

    fn cached(config: &Config) -> CachedOptions {
        all_dirty(config).warmed(Some(Upkeep::Leaving))
    }
}

pub(super) fn entry<N: Nand + 'static, B: Build>() -> Entry<N> {
    row::<N, B, Victim>()
}
