//! The table of trace formats: one file and one row each.

mod alibaba;
mod biotracer;
mod blkparse;
mod csv;
mod diskmon;
mod fields;
mod fio;
mod five_column;
mod msr;
mod oracle_general;
mod replay_log;
mod spc;
mod tencent;
mod vscsi;

use super::builder::Builder;
use super::input::Input;
pub(super) use super::options::Unsaid;
use crate::error::WorkloadError;

/// A row of the table of trace formats.
#[derive(Clone, Copy, Debug)]
pub struct FormatEntry {
    /// Name, as given to [`super::OpenOptions::format`].
    pub name: &'static str,
    /// Whose format it is, in a line.
    pub summary: &'static str,
    /// Columns or record layout with units.
    pub layout: &'static str,
    /// What a file of this format does not say, so that [`super::OpenOptions`] may.
    pub unsaid: &'static [Unsaid],
    /// Percent of the first lines or records that are of this format.
    pub(super) detect: fn(&[u8]) -> u32,
    pub(super) read: fn(&mut Input<'_>, &mut Builder<'_>) -> Result<(), WorkloadError>,
}

/// The table: each file of this folder (but `fields`, shared by the text formats) has its row. The
/// most particular come first, because the first of equally good matches is taken.
static TABLE: &[FormatEntry] = &[
    vscsi::ENTRY,
    fio::ENTRY,
    csv::ENTRY,
    msr::ENTRY,
    spc::ENTRY,
    alibaba::ENTRY,
    tencent::ENTRY,
    replay_log::ENTRY,
    blkparse::ENTRY,
    diskmon::ENTRY,
    biotracer::ENTRY,
    five_column::ENTRY,
    oracle_general::ENTRY,
];

pub(super) use csv::{FUA as CSV_FUA, HEADER as CSV_HEADER};
pub(super) use fio::{HEADER_2 as FIO_HEADER_2, HEADER_3 as FIO_HEADER_3};

/// All trace formats that can be read.
pub fn formats() -> &'static [FormatEntry] {
    TABLE
}

/// First lines that name a format.
pub(super) const HEADERS: [&str; 3] = [CSV_HEADER, FIO_HEADER_2, FIO_HEADER_3];
