//! The CSV form of the MSR Cambridge traces (Narayanan et al., FAST 2008). The device is named
//! `host.disk`.

use super::FormatEntry;
use super::fields::{self, Line, Parsed, commas, int, operation};
use crate::error::WorkloadError;
use crate::trace::builder::{Builder, Row};
use crate::trace::input::Input;

pub(super) const ENTRY: FormatEntry = FormatEntry {
    name: "msr",
    summary: "MSR Cambridge block traces (SNIA IOTTA)",
    layout: "timestamp (100 ns since 1601), host, disk, Read|Write, offset (B), size (B), latency",
    unsaid: &[],
    detect: |head| fields::score_lines(head, parse),
    read,
};

fn read(input: &mut Input<'_>, builder: &mut Builder<'_>) -> Result<(), WorkloadError> {
    fields::read_lines(input, builder, parse)
}

fn parse(line: &str) -> Line<'_> {
    let [time, host, disk, kind, offset, bytes, latency] = commas(line)?;
    int(latency, "latency")?;
    Ok(Parsed::Request(Row {
        time_ns: i128::from(int(time, "time")?) * 100,
        device: format!("{host}.{disk}").into(),
        op: operation(kind)?,
        offset: int(offset, "offset")?,
        bytes: int(bytes, "size")?,
        fua: false,
    }))
}
