//! Tencent CBS traces (Zhang et al., USENIX ATC 2020). Times have whole seconds only.

use super::FormatEntry;
use super::fields::{self, Line, Parsed, commas, int, scaled, time_ns};
use crate::error::WorkloadError;
use crate::request::Op;
use crate::trace::builder::{Builder, Row};
use crate::trace::input::Input;
use crate::trace::options::TimeUnit;

pub(super) const ENTRY: FormatEntry = FormatEntry {
    name: "tencent",
    summary: "Tencent cloud block storage traces (SNIA IOTTA)",
    layout: "timestamp (s), offset (512 B), size (512 B), 0 read | 1 write, volume",
    unsaid: &[],
    detect: |head| fields::score_lines(head, parse),
    read,
};

fn read(input: &mut Input<'_>, builder: &mut Builder<'_>) -> Result<(), WorkloadError> {
    fields::read_lines(input, builder, parse)
}

fn parse(line: &str) -> Line<'_> {
    if line.starts_with("Timestamp") {
        return Ok(Parsed::Other);
    }
    let [time, offset, size, kind, volume] = commas(line)?;
    int(volume, "volume")?;
    let op = match kind {
        "0" => Op::Read,
        "1" => Op::Write,
        _ => {
            return Err(format!("operation `{kind}` is neither 0 (read) nor 1 (write)"));
        }
    };
    Ok(Parsed::Request(Row {
        time_ns: time_ns(time, TimeUnit::Seconds)?,
        device: volume.into(),
        op,
        offset: scaled(offset, 512, "offset")?,
        bytes: scaled(size, 512, "size")?,
        fua: false,
    }))
}
