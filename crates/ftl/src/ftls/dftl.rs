//! DFTL: the translation table in flash behind a cache, the validity bitmap in RAM, greedy collection of every block.
//!
//! As published, a write that misses the cache reads its translation page. As in the comparison of
//! GeckoFTL's paper (section 5.3), one eviction brings a whole translation page up to date, and a page
//! that is moved gets a dirty entry. Needs a battery: what is dirty in the cache is flushed before power is gone.

use super::{Durability, Entry, Info};
use crate::engine::page::{PageOptions, format_over_store};
use crate::mapping::cached::{CachedMap, CachedOptions};
use nand::Nand;

const VALIDITY: &str = "ram-bitmap";

pub(super) const INFO: Info = Info {
    name: "dftl",
    summary: "translation pages in flash behind a cache, validity bitmap in RAM",
    source: "Gupta, Kim and Urgaonkar, ASPLOS 2009",
    cached: true,
    validity: Some(VALIDITY),
    durable: Durability::Battery,
    outlives_worn_pages: false,
};

const OPTIONS: PageOptions = PageOptions { name: INFO.name, validity: VALIDITY, metadata_apart: false };

pub(super) fn entry<N: Nand + 'static>() -> Entry<N> {
    Entry {
        info: INFO,
        format: |flash, config| {
            let cached = CachedOptions { cache_entries: config.cache_entries, checkpoints: false };
            let (page_bytes, pages) = (flash.nand().geometry().page_bytes(), flash.nand().geometry().pages_per_block());
            let mapping = CachedMap::<false>::new(config.logical_pages, page_bytes, pages, cached);
            format_over_store(flash, config, OPTIONS, mapping)
        },
        mount: None,
    }
}
