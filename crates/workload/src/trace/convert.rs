//! Traces written in a form others read.

use super::formats::{CSV_FUA, CSV_HEADER, FIO_HEADER_2, FIO_HEADER_3};
use super::{Record, Trace};
use crate::error::{WorkloadError, nearest};
use crate::request::{Op, Request};
use std::io::Write;
use std::str::FromStr;

/// A format that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// fio I/O log, version 2: requests, and waits in milliseconds since the start, as fio plays
    /// them.
    Fio2,
    /// fio I/O log, version 3: times in microseconds.
    Fio3,
    /// This project's CSV: everything, exact.
    Csv,
    /// MSR Cambridge CSV: reads and writes, times in 100 ns.
    Msr,
    /// SPC: reads and writes, addresses in sectors of 512 bytes, times in seconds.
    Spc,
    /// Five columns: reads and writes, times in ns, addresses and sizes in sectors of 512 bytes.
    FiveColumn,
}

/// The formats that can be written, as they are asked for.
const NAMES: [&str; 6] = ["fio2", "fio3", "csv", "msr", "spc", "fivecolumn"];

impl FromStr for Format {
    type Err = WorkloadError;
    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        match text {
            "fio2" => Ok(Format::Fio2),
            "fio3" | "fio" => Ok(Format::Fio3),
            "csv" => Ok(Format::Csv),
            "msr" => Ok(Format::Msr),
            "spc" => Ok(Format::Spc),
            "fivecolumn" => Ok(Format::FiveColumn),
            _ => Err(WorkloadError::Unknown {
                what: "output format",
                name: text.to_owned(),
                nearest: nearest(text, NAMES.into_iter()),
                valid: NAMES.join(", "),
            }),
        }
    }
}

/// Writes the requests of `trace`. Read back they are the same, but that fio3 cuts times to
/// microseconds and fio2 to milliseconds, that fio2 writes no time for a trace without times, and
/// that `,` and white space in device names become `_`. The other forms have no trims and no
/// flushes, msr cuts times to 100 ns, and spc and fivecolumn number devices. Returns what a form
/// could not say, in sentences for the user.
///
/// # Errors
/// If the writer fails; wrap files in a `BufWriter`. [`WorkloadError::NotExpressible`] if the form
/// needs times or whole sectors and the trace has them not.
pub fn convert(trace: &Trace, format: Format, mut writer: impl Write) -> Result<Vec<String>, WorkloadError> {
    let result = match format {
        Format::Csv => csv(trace, &mut writer),
        Format::Fio2 | Format::Fio3 => fio(trace, format, &mut writer),
        Format::Msr | Format::Spc | Format::FiveColumn => {
            check(trace, format)?;
            plain(trace, format, &mut writer)
        }
    };
    result.and_then(|()| writer.flush()).map_err(|source| WorkloadError::Io {
        action: "write",
        path: format!("conversion of {}", trace.name).into(),
        source,
    })?;
    Ok(left_out(trace, format))
}

/// Bytes of a sector in forms that count in sectors.
const SECTOR_BYTES: u64 = 512;

const fn is_plain(format: Format) -> bool {
    matches!(format, Format::Msr | Format::Spc | Format::FiveColumn)
}

const fn is_said(format: Format, op: Op) -> bool {
    !is_plain(format) || matches!(op, Op::Read | Op::Write)
}

/// What a form of reads and writes needs of a trace.
fn check(trace: &Trace, format: Format) -> Result<(), WorkloadError> {
    let refuse = |why: String| Err(WorkloadError::NotExpressible { trace: trace.name.clone(), why });
    if !trace.timed {
        return refuse("it has no times, and every line of this form has one; write csv or fio-v2".to_owned());
    }
    let sectors = |bytes: u64| bytes.is_multiple_of(SECTOR_BYTES);
    let whole = |record: &Record| match format {
        Format::Spc => sectors(record.offset),
        Format::FiveColumn => sectors(record.offset) && sectors(record.bytes()),
        _ => true,
    };
    match trace.records.iter().filter(|record| is_said(format, record.op)).position(|record| !whole(record)) {
        None => Ok(()),
        Some(at) => refuse(format!(
            "read or write {} is not of whole sectors of {SECTOR_BYTES} bytes, in which this form counts; write csv, msr \
             or fio-v3",
            at + 1
        )),
    }
}

fn left_out(trace: &Trace, format: Format) -> Vec<String> {
    let count = |op| trace.records.iter().filter(|record| record.op == op && !is_said(format, op)).count();
    let (trims, flushes) = (count(Op::Trim), count(Op::Flush));
    let mut notes = Vec::new();
    if trims + flushes > 0 {
        notes.push(format!("left out {trims} trims and {flushes} flushes, which the form does not have"));
    }
    let forced = trace.records.iter().filter(|record| record.fua).count();
    if forced > 0 && format != Format::Csv {
        notes.push(format!("{forced} writes are plain ones now: the form has no FUA; csv has"));
    }
    if format == Format::FiveColumn {
        notes.push("the file does not say its units: time ns, addresses and sizes in sectors, flag 1=read".to_owned());
    }
    notes
}

/// Forms of a line a request, with reads and writes only.
fn plain(trace: &Trace, format: Format, writer: &mut impl Write) -> std::io::Result<()> {
    let names = plain_names(trace);
    let numbers: Option<Vec<u32>> = trace.devices.iter().map(|name| name.parse().ok()).collect();
    let numbers = numbers.unwrap_or_else(|| (0..).take(names.len()).collect());
    for r in trace.records.iter().filter(|record| is_said(format, record.op)) {
        let (at_ns, device, bytes) = (r.at_ns, r.device(), r.bytes());
        let (sector, is_read) = (r.offset / SECTOR_BYTES, r.op == Op::Read);
        match format {
            Format::Msr => {
                let (host, disk) = host_and_disk(&names[device]);
                let kind = if is_read { "Read" } else { "Write" };
                writeln!(writer, "{},{host},{disk},{kind},{},{bytes},0", at_ns / 100, r.offset)?;
            }
            Format::Spc => {
                let kind = if is_read { 'r' } else { 'w' };
                let (s, ns) = (at_ns / 1_000_000_000, at_ns % 1_000_000_000);
                writeln!(writer, "{},{sector},{bytes},{kind},{s}.{ns:09}", numbers[device])?;
            }
            _ => {
                let (number, flag) = (numbers[device], u8::from(is_read));
                writeln!(writer, "{at_ns} {number} {sector} {} {flag}", bytes / SECTOR_BYTES)?;
            }
        }
    }
    Ok(())
}

/// What a device is called in the form of MSR Cambridge.
fn host_and_disk(name: &str) -> (&str, &str) {
    match name.rsplit_once('.') {
        Some((host, disk)) if !disk.is_empty() && disk.bytes().all(|byte| byte.is_ascii_digit()) => (host, disk),
        _ => (name, "0"),
    }
}

fn plain_name(name: &str) -> String {
    name.chars().map(|c| if c == ',' || c == '#' || c.is_whitespace() { '_' } else { c }).collect()
}

fn plain_names(trace: &Trace) -> Vec<String> {
    trace.devices.iter().map(|name| plain_name(name)).collect()
}

/// Writes requests as they come, in this project's CSV.
#[derive(Debug)]
pub struct CsvWriter<W: Write> {
    writer: W,
    device: String,
}

impl<W: Write> CsvWriter<W> {
    /// Begins a trace of one device; `,`, `#` and white space in its name become `_`.
    ///
    /// # Errors
    /// Those of the writer; wrap files in a `BufWriter`.
    pub fn new(mut writer: W, device: &str) -> std::io::Result<Self> {
        writeln!(writer, "{CSV_HEADER}")?;
        Ok(Self { writer, device: plain_name(device) })
    }

    /// Adds a request. Its time is in nanoseconds since the trace began.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn request(&mut self, request: &Request) -> std::io::Result<()> {
        csv_row(&mut self.writer, &self.device, *request)
    }

    /// Brings everything to where the writer keeps it.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn flush(&mut self) -> std::io::Result<()> {
        self.writer.flush()
    }
}

fn csv(trace: &Trace, writer: &mut impl Write) -> std::io::Result<()> {
    let names = plain_names(trace);
    writeln!(writer, "{CSV_HEADER}")?;
    for r in &trace.records {
        let request = Request { at_ns: r.at_ns, op: r.op, offset: r.offset, bytes: r.bytes(), fua: r.fua };
        csv_row(writer, &names[r.device()], request)?;
    }
    Ok(())
}

fn csv_row(writer: &mut impl Write, device: &str, request: Request) -> std::io::Result<()> {
    let Request { at_ns, op, offset, bytes, fua } = request;
    let name = if fua { CSV_FUA } else { op.name() };
    writeln!(writer, "{at_ns},{device},{name},{offset},{bytes}")
}

/// The time in version 3. fio plays no delay after a time of 0: times begin at 1.
const fn at_us(at_ns: u64) -> u64 {
    at_ns / 1_000 + 1
}

fn fio(trace: &Trace, format: Format, writer: &mut impl Write) -> std::io::Result<()> {
    let names = plain_names(trace);
    let with_times = format == Format::Fio3;
    writeln!(writer, "{}", if with_times { FIO_HEADER_3 } else { FIO_HEADER_2 })?;
    for action in ["add", "open"] {
        for name in &names {
            writeln!(writer, "{}{name} {action}", if with_times { "0 " } else { "" })?;
        }
    }
    let mut waited_ms = 0;
    for r in &trace.records {
        let at_ms = r.at_ns / 1_000_000;
        let name = &names[r.device()];
        if with_times {
            write!(writer, "{} ", at_us(r.at_ns))?;
        } else if trace.timed && at_ms > waited_ms {
            writeln!(writer, "{name} wait {at_ms} 0")?;
            waited_ms = at_ms;
        }
        match r.op {
            // fio wants five columns of every action on data.
            Op::Flush => writeln!(writer, "{name} sync 0 0")?,
            op => writeln!(writer, "{name} {} {} {}", op.name(), r.offset, r.bytes)?,
        }
    }
    let end_us = trace.records.last().map_or(0, |r| at_us(r.at_ns));
    for name in &names {
        match with_times {
            true => writeln!(writer, "{end_us} {name} close")?,
            false => writeln!(writer, "{name} close")?,
        }
    }
    Ok(())
}
