//! Janus-FTL, fixed: the page-mapped area is kept at 75% utilisation, as Janus(Fix) in the paper's section 6.
//!
//! Three fused logical blocks for every over-provisioned block; the rest is mapped by block and costs four bytes a
//! logical block.

use super::{Durability, Entry, Info};
use crate::engine::janus::{Goal, JanusFtl};
use alloc::boxed::Box;
use nand::Nand;

pub(super) const INFO: Info = Info {
    name: "janus-fixed",
    summary: "Janus-FTL with its page-mapped area at 75% utilisation",
    source: "Kwon, Kim, Choi, Lee and Noh, EMSOFT 2010, section 6",
    cached: false,
    validity: None,
    durable: Durability::OnCompletion,
    // A mount from a checkpoint does not look at every page.
    outlives_worn_pages: false,
};

pub(super) fn entry<N: Nand + 'static>() -> Entry<N> {
    Entry {
        info: INFO,
        format: |flash, config| Ok(Box::new(JanusFtl::format(flash, config, INFO.name, Goal::UtilisationPercent(75))?)),
        mount: Some(|flash, config| {
            let (ftl, report) = JanusFtl::mount(flash, config, INFO.name, Goal::UtilisationPercent(75))?;
            Ok((Box::new(ftl), report))
        }),
    }
}
