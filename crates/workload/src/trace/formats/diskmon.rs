//! Saved logs of DiskMon, columns separated by tabs; traces of desktop use are often in this form.

use super::FormatEntry;
use super::fields::{self, Line, Parsed, decimal, int, operation, scaled, time_ns, words};
use crate::error::WorkloadError;
use crate::trace::builder::{Builder, Row};
use crate::trace::input::Input;
use crate::trace::options::TimeUnit;

pub(super) const ENTRY: FormatEntry = FormatEntry {
    name: "diskmon",
    summary: "Sysinternals DiskMon",
    layout: "number, time (s), duration (s), disk, Read|Write, sector (512 B), sectors",
    unsaid: &[],
    detect: |head| fields::score_lines(head, parse),
    read,
};

fn read(input: &mut Input<'_>, builder: &mut Builder<'_>) -> Result<(), WorkloadError> {
    fields::read_lines(input, builder, parse)
}

fn parse(line: &str) -> Line<'_> {
    let [number, time, duration, disk, kind, sector, sectors] = words(line)?;
    int(number, "number")?;
    decimal(duration, "duration")?;
    int(disk, "disk")?;
    Ok(Parsed::Request(Row {
        time_ns: time_ns(time, TimeUnit::Seconds)?,
        device: disk.into(),
        op: operation(kind)?,
        offset: scaled(sector, 512, "sector")?,
        bytes: scaled(sectors, 512, "sectors")?,
        fua: false,
    }))
}
