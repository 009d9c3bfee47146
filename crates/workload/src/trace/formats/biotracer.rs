//! BIOtracer logs of mobile phones (Zhou et al., IISWC 2015). The time of a request is its first,
//! when it was queued.

use super::FormatEntry;
use super::fields::{self, Line, Parsed, decimal, int, scaled, time_ns, words};
use crate::error::WorkloadError;
use crate::request::Op;
use crate::trace::builder::{Builder, Row};
use crate::trace::input::Input;
use crate::trace::options::TimeUnit;

pub(super) const ENTRY: FormatEntry = FormatEntry {
    name: "biotracer",
    summary: "BIOtracer, mobile eMMC traces",
    layout: "LBA (512 B), sectors, bytes, type (bit 0: write), four times (s): queued, issued, sent, done",
    unsaid: &[],
    detect: |head| fields::score_lines(head, parse),
    read,
};

fn read(input: &mut Input<'_>, builder: &mut Builder<'_>) -> Result<(), WorkloadError> {
    fields::read_lines(input, builder, parse)
}

fn parse(line: &str) -> Line<'_> {
    let [address, sectors, bytes, kind, queued, issued, sent, done] = words(line)?;
    for time in [issued, sent, done] {
        decimal(time, "time")?;
    }
    let size = int(bytes, "bytes")?;
    if scaled(sectors, 512, "sectors")? != size {
        return Err(format!("{sectors} sectors are not {bytes} bytes"));
    }
    Ok(Parsed::Request(Row {
        time_ns: time_ns(queued, TimeUnit::Seconds)?,
        device: "0".into(),
        op: if int(kind, "type")? & 1 == 1 { Op::Write } else { Op::Read },
        offset: scaled(address, 512, "LBA")?,
        bytes: size,
        fua: false,
    }))
}
