//! GeckoFTL: the translation table in flash behind a cache, page validity in flash by Logarithmic Gecko, and metadata that
//! is never collected.
//!
//! Superseded pages are found when their entry is synchronised (section 4.1), blocks of metadata are
//! erased once no page in them lives, within a limit (section 4.2), and runtime checkpoints bound how
//! far back an entry that is only in RAM can lie (section 4.3). After power loss every completed write and trim is there.

use super::{Durability, Entry, Info};
use crate::engine::page::{PageFtl, PageOptions};
use crate::mapping::cached::{CachedMap, CachedOptions};
use crate::validity::gecko::Gecko;
use alloc::boxed::Box;
use nand::Nand;

pub(super) const INFO: Info = Info {
    name: "gecko",
    summary: "translation pages behind a cache, page validity in flash by Logarithmic Gecko",
    source: "Dayan, Bonnet and Idreos, SIGMOD 2016",
    cached: true,
    durable: Durability::OnCompletion,
};

pub(super) fn entry<N: Nand + 'static>() -> Entry<N> {
    Entry {
        info: INFO,
        format: |flash, config| {
            let geometry = *flash.nand().geometry();
            let options = PageOptions { name: INFO.name, metadata_apart: true };
            let cached = CachedOptions { cache_entries: config.cache_entries, checkpoints: true };
            let mapping =
                CachedMap::<true>::new(config.logical_pages, geometry.page_bytes(), geometry.pages_per_block(), cached);
            let page_bytes = geometry.page_bytes() as usize;
            let validity = Gecko::new(page_bytes, geometry.blocks(), geometry.pages_per_block(), &config.gecko)?;
            Ok(Box::new(PageFtl::format(flash, config, options, mapping, validity)?))
        },
        mount: Some(|flash, config| {
            let options = PageOptions { name: INFO.name, metadata_apart: true };
            let (ftl, report) = PageFtl::mount_by_steps(flash, config, options)?;
            Ok((Box::new(ftl), report))
        }),
    }
}
