//! The SPC trace file format, revision 1.0.1: five fields, possibly followed by optional ones.

use super::FormatEntry;
use super::fields::{self, Line, Parsed, int, operation, scaled, time_ns};
use crate::error::WorkloadError;
use crate::trace::builder::{Builder, Row};
use crate::trace::input::Input;
use crate::trace::options::TimeUnit;

pub(super) const ENTRY: FormatEntry = FormatEntry {
    name: "spc",
    summary: "SPC trace format of the UMass repository (Financial, WebSearch)",
    layout: "ASU, LBA (512 B), size (B), r|w, timestamp (s)",
    unsaid: &[],
    detect: |head| fields::score_lines(head, parse),
    read,
};

fn read(input: &mut Input<'_>, builder: &mut Builder<'_>) -> Result<(), WorkloadError> {
    fields::read_lines(input, builder, parse)
}

fn parse(line: &str) -> Line<'_> {
    let mut columns = line.split(',').map(str::trim);
    let mut next = || columns.next().ok_or_else(|| "it has fewer than 5 columns".to_owned());
    let (asu, address, bytes, kind, time) = (next()?, next()?, next()?, next()?, next()?);
    int(asu, "ASU")?;
    Ok(Parsed::Request(Row {
        time_ns: time_ns(time, TimeUnit::Seconds)?,
        device: asu.into(),
        op: operation(kind)?,
        offset: scaled(address, 512, "LBA")?,
        bytes: int(bytes, "size")?,
        fua: false,
    }))
}
