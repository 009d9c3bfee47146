//! The exact form: every field of a request, times in nanoseconds. Written by `convert`.

use super::FormatEntry;
use super::fields::{self, Line, Parsed, commas, int, time_ns};
use crate::error::WorkloadError;
use crate::request::Op;
use crate::trace::builder::{Builder, Row};
use crate::trace::input::Input;
use crate::trace::options::TimeUnit;

/// The first line, by which the form is known.
pub(in crate::trace) const HEADER: &str = "time_ns,device,op,offset,bytes";

/// A write that has to survive a power cut once it has ended.
pub(in crate::trace) const FUA: &str = "write-fua";

pub(super) const ENTRY: FormatEntry = FormatEntry {
    name: "csv",
    summary: "this project's own CSV",
    layout: "header time_ns,device,op,offset,bytes; op is read, write, write-fua, trim or flush",
    unsaid: &[],
    detect: |head| fields::score_lines(head, parse),
    read,
};

fn read(input: &mut Input<'_>, builder: &mut Builder<'_>) -> Result<(), WorkloadError> {
    fields::read_lines(input, builder, parse)
}

fn parse(line: &str) -> Line<'_> {
    if line == HEADER {
        return Ok(Parsed::Other);
    }
    let [time, device, kind, offset, bytes] = commas(line)?;
    let op = match kind {
        "read" => Op::Read,
        "write" | FUA => Op::Write,
        "trim" => Op::Trim,
        "flush" => Op::Flush,
        _ => {
            return Err(format!("operation `{kind}` is not read, write, {FUA}, trim or flush"));
        }
    };
    Ok(Parsed::Request(Row {
        time_ns: time_ns(time, TimeUnit::Nanoseconds)?,
        device: device.into(),
        op,
        offset: int(offset, "offset")?,
        bytes: int(bytes, "bytes")?,
        fua: kind == FUA,
    }))
}
