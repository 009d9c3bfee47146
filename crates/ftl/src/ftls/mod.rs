//! The table of flash translation layers. One file and one row each; help, documentation, law tests
//! and benchmarks follow from the rows.

mod bast;
mod block;
mod dftl;
mod fast;
mod janus;
mod janus_fixed;
mod page;

use crate::config::Config;
use crate::contract::{Ftl, FtlError};
use crate::flash::Flash;
use alloc::boxed::Box;
use nand::Nand;

/// What is known of an FTL without building one.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Whether it holds a cache of mapping entries, sized by [`Config::cache_entries`].
    pub cached: bool,
}

/// Makes an empty disk of a device; see [`Entry::format`].
pub type Format<N> = fn(Flash<N>, &Config) -> Result<Box<dyn Ftl<N>>, FtlError>;

/// A row of the table: an FTL over one kind of device.
pub struct Entry<N: Nand> {
    /// What is known of it.
    pub info: Info,
    /// Erases the device as far as needed and makes an empty disk of it.
    pub format: Format<N>,
}

/// Every FTL, in the order of reports.
#[must_use]
pub fn table<N: Nand + 'static>() -> [Entry<N>; 7] {
    [page::entry(), dftl::entry(), block::entry(), bast::entry(), fast::entry(), janus_fixed::entry(), janus::entry()]
}

/// The row with this name.
#[must_use]
pub fn find<N: Nand + 'static>(name: &str) -> Option<Entry<N>> {
    table().into_iter().find(|entry: &Entry<N>| entry.info.name == name)
}
