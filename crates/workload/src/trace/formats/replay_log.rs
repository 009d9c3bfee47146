//! What the replayer of Heimdall and its relatives writes: the trace's own arrival first, the
//! measured submission sixth.

use super::FormatEntry;
use super::fields::{self, Line, Parsed, commas, decimal, int, time_ns};
use crate::error::WorkloadError;
use crate::request::Op;
use crate::trace::builder::{Builder, Row};
use crate::trace::input::Input;
use crate::trace::options::TimeUnit;

pub(super) const ENTRY: FormatEntry = FormatEntry {
    name: "replaylog",
    summary: "log of a trace replayer with latencies (Heimdall's, seven columns)",
    layout: "arrival (ms), latency (us), 1 read | 0 write, size (B), offset (B), submission (ms), size done (B)",
    unsaid: &[],
    detect: |head| fields::score_lines(head, parse),
    read,
};

fn read(input: &mut Input<'_>, builder: &mut Builder<'_>) -> Result<(), WorkloadError> {
    fields::read_lines(input, builder, parse)
}

fn parse(line: &str) -> Line<'_> {
    let [time, latency, kind, bytes, offset, submitted, done] = commas(line)?;
    decimal(latency, "latency")?;
    decimal(submitted, "submission")?;
    int(done, "size done")?;
    let op = match kind {
        "1" => Op::Read,
        "0" => Op::Write,
        _ => {
            return Err(format!("operation `{kind}` is neither 1 (read) nor 0 (write)"));
        }
    };
    Ok(Parsed::Request(Row {
        time_ns: time_ns(time, TimeUnit::Milliseconds)?,
        device: "0".into(),
        op,
        offset: int(offset, "offset")?,
        bytes: int(bytes, "size")?,
        fua: false,
    }))
}
