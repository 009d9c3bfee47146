//! Traces written in a form others read.

use super::Trace;
use super::formats::{CSV_HEADER, FIO_HEADER_2, FIO_HEADER_3};
use crate::error::{WorkloadError, nearest};
use crate::request::{Op, Request};
use std::io::Write;
use std::str::FromStr;

/// A format that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// fio I/O log, version 2: requests and waits in microseconds.
    Fio2,
    /// fio I/O log, version 3: times in microseconds.
    Fio3,
    /// This project's CSV: everything, exact.
    Csv,
}

impl FromStr for Format {
    type Err = WorkloadError;
    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        match text {
            "fio2" => Ok(Format::Fio2),
            "fio3" | "fio" => Ok(Format::Fio3),
            "csv" => Ok(Format::Csv),
            _ => Err(WorkloadError::Unknown {
                what: "output format",
                name: text.to_owned(),
                nearest: nearest(text, ["fio2", "fio3", "csv"].into_iter()),
                valid: "fio2, fio3, csv".to_owned(),
            }),
        }
    }
}

/// Writes the requests of `trace`. Read back they are the same, but that fio's forms cut times to
/// microseconds, that fio2 writes no time for a trace without times, and that `,` and white space
/// in device names become `_`.
///
/// # Errors
/// If the writer fails; wrap files in a `BufWriter`.
pub fn convert(trace: &Trace, format: Format, mut writer: impl Write) -> Result<(), WorkloadError> {
    let result = match format {
        Format::Csv => csv(trace, &mut writer),
        Format::Fio2 | Format::Fio3 => fio(trace, format, &mut writer),
    };
    result.and_then(|()| writer.flush()).map_err(|source| WorkloadError::Io {
        action: "write",
        path: format!("conversion of {}", trace.name).into(),
        source,
    })
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
        let request = Request { at_ns: r.at_ns, op: r.op, offset: r.offset, bytes: r.bytes() };
        csv_row(writer, &names[r.device()], request)?;
    }
    Ok(())
}

fn csv_row(writer: &mut impl Write, device: &str, request: Request) -> std::io::Result<()> {
    let Request { at_ns, op, offset, bytes } = request;
    writeln!(writer, "{at_ns},{device},{},{offset},{bytes}", op.name())
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
    let mut waited_us = 0;
    for r in &trace.records {
        let at_us = r.at_ns / 1_000;
        let name = &names[r.device()];
        if with_times {
            write!(writer, "{at_us} ")?;
        } else if trace.timed && at_us > waited_us {
            writeln!(writer, "{name} wait {} 0", at_us - waited_us)?;
            waited_us = at_us;
        }
        match r.op {
            // fio wants five columns of every action on data.
            Op::Flush => writeln!(writer, "{name} sync 0 0")?,
            op => writeln!(writer, "{name} {} {} {}", op.name(), r.offset, r.bytes)?,
        }
    }
    let end_us = trace.records.last().map_or(0, |r| r.at_ns / 1_000);
    for name in &names {
        match with_times {
            true => writeln!(writer, "{end_us} {name} close")?,
            false => writeln!(writer, "{name} close")?,
        }
    }
    Ok(())
}
