//! FTRM's variant Base: a flag of a translation page is set each time the host uses one of its
//! entries, also when it reads. The six flags are a count in unary. Once all are set no use costs a
//! flag before the translation page is programmed again.
//!
//! The paper's counter counts to 63 in place, which bits that can only be cleared cannot.

use super::ftrm::{like, options};
use super::over_ring::{OverRing, all_dirty, row};
use super::{Entry, Info};
use crate::config::Config;
use crate::engine::page::PageOptions;
use crate::mapping::cached::{CachedOptions, Upkeep};
use crate::validity::Build;
use nand::Nand;

pub(super) const INFO: Info = Info {
    summary: "FTRM that counts every use of a translation page in its flags",
    differs: Some(
        "the paper's counter counts to 63 in place; bits that can only be cleared count six uses, and no more after these",
    ),
    ..like::<Base>("ftrm-base")
};

struct Base;

impl OverRing for Base {
    const INFO: Info = INFO;
    const OPTIONS: PageOptions = options(INFO.name);

    fn cached(config: &Config) -> CachedOptions {
        all_dirty(config).warmed(Some(Upkeep::Uses))
    }
}

pub(super) fn entry<N: Nand + 'static, B: Build>() -> Entry<N> {
    row::<N, B, Base>()
}
