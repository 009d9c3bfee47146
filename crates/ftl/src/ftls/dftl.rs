//! DFTL: the translation table in flash behind a cache, the validity bitmap in RAM, greedy collection of every block.
//!
//! As published, a write that misses the cache reads its translation page. As in the comparison of
//! GeckoFTL's paper (section 5.3), one eviction brings a whole translation page up to date, and a page
//! that is moved gets a dirty entry. Needs a battery: what is dirty in the cache is flushed before power is gone.

use super::{Durability, Entry, Info};
use crate::engine::page::{PageFtl, PageOptions};
use crate::mapping::cached::{CachedMap, CachedOptions};
use crate::validity::ram_bitmap::RamBitmap;
use alloc::boxed::Box;
use nand::Nand;

pub(super) const INFO: Info = Info {
    name: "dftl",
    summary: "translation pages in flash behind a cache, validity bitmap in RAM",
    source: "Gupta, Kim and Urgaonkar, ASPLOS 2009",
    cached: true,
    durable: Durability::Battery,
};

pub(super) fn entry<N: Nand + 'static>() -> Entry<N> {
    Entry {
        info: INFO,
        format: |flash, config| {
            let geometry = *flash.nand().geometry();
            let options = PageOptions { name: INFO.name, metadata_apart: false };
            let cached = CachedOptions { cache_entries: config.cache_entries, checkpoints: false };
            let mapping = CachedMap::<false>::new(
                config.logical_pages,
                geometry.page_bytes(),
                geometry.pages_per_block(),
                cached,
            );
            let validity = RamBitmap::new(geometry.blocks(), geometry.pages_per_block());
            Ok(Box::new(PageFtl::format(flash, config, options, mapping, validity)?))
        },
        mount: None,
    }
}
