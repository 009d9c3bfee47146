//! Page mapping, the simplest that can be: the whole table and the validity bitmap in RAM, greedy collection.
//!
//! The yardstick in write-amplification and the worst in RAM. After power loss every spare area is read: every completed
//! write is there; a trim may be undone, as nothing on flash records it.

use super::{Durability, Entry, Info};
use crate::engine::page::{PageFtl, PageOptions};
use crate::mapping::ram::RamMap;
use crate::validity::ram_bitmap::RamBitmap;
use alloc::boxed::Box;
use nand::Nand;

pub(super) const INFO: Info = Info {
    name: "page",
    summary: "page table and validity bitmap in RAM",
    source: "Ban, US patent 5,404,485 (1995); PPM in GeckoFTL's and Janus-FTL's papers",
    cached: false,
    durable: Durability::OnCompletion,
};

pub(super) fn entry<N: Nand + 'static>() -> Entry<N> {
    Entry {
        info: INFO,
        format: |flash, config| {
            let geometry = *flash.nand().geometry();
            let options = PageOptions { name: INFO.name, metadata_apart: false };
            let validity = RamBitmap::new(geometry.blocks(), geometry.pages_per_block());
            let mapping = RamMap::new(config.logical_pages);
            Ok(Box::new(PageFtl::format(flash, config, options, mapping, validity)?))
        },
        mount: Some(|flash, config| {
            let options = PageOptions { name: INFO.name, metadata_apart: false };
            let (ftl, report) = PageFtl::mount_by_scan(flash, config, options)?;
            Ok((Box::new(ftl), report))
        }),
    }
}
