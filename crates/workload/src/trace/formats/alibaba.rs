//! Alibaba's block traces (Li et al., IISWC 2020); a header line is passed over.

use super::FormatEntry;
use super::fields::{self, Line, Parsed, commas, int, operation};
use crate::error::WorkloadError;
use crate::trace::builder::{Builder, Row};
use crate::trace::input::Input;

pub(super) const ENTRY: FormatEntry = FormatEntry {
    name: "alibaba",
    summary: "Alibaba cloud block traces (IISWC 2020)",
    layout: "device_id, R|W, offset (B), length (B), timestamp (us)",
    unsaid: &[],
    detect: |head| fields::score_lines(head, parse),
    read,
};

fn read(input: &mut Input<'_>, builder: &mut Builder<'_>) -> Result<(), WorkloadError> {
    fields::read_lines(input, builder, parse)
}

fn parse(line: &str) -> Line<'_> {
    if line.starts_with("device_id") {
        return Ok(Parsed::Other);
    }
    let [device, kind, offset, bytes, time] = commas(line)?;
    int(device, "device")?;
    Ok(Parsed::Request(Row {
        time_ns: i128::from(int(time, "time")?) * 1_000,
        device: device.into(),
        op: operation(kind)?,
        offset: int(offset, "offset")?,
        bytes: int(bytes, "length")?,
        fua: false,
    }))
}
