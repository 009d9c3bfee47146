//! From a path to a [`Trace`]: unpack, detect, read.

use super::Trace;
use super::builder::Builder;
use super::compression;
use super::formats::{self, FormatEntry, formats};
use super::input::{Input, io};
use super::options::OpenOptions;
use crate::error::{WorkloadError, nearest};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Bytes looked at to find the format.
const HEAD_BYTES: u64 = 64 * 1024;

/// Below this score (percent of the first lines or records that parse) a format is not taken.
const SCORE_MIN: u32 = 50;

/// What a file turned out to be.
#[derive(Clone, Debug)]
pub struct Detection {
    /// The format's row in the table.
    pub format: &'static FormatEntry,
    /// "gzip", "zstd", "xz", "bzip2" or "none".
    pub compression: &'static str,
    /// Why this format.
    pub reason: String,
}

/// Opens a trace of any known format, compressed or not.
///
/// # Errors
/// If the file cannot be read or unpacked, is of no known format, holds a malformed line (unless
/// lenient) or no request.
pub fn open(path: &Path, options: &OpenOptions) -> Result<Trace, WorkloadError> {
    read(BufReader::new(file(path)?), &path.display().to_string(), options)
}

/// Finds out compression and format without reading the whole file.
///
/// # Errors
/// If the file cannot be read or unpacked or is of no known format.
pub fn detect(path: &Path) -> Result<Detection, WorkloadError> {
    let name = path.display().to_string();
    let (compression, reader) = compression::unpack(BufReader::new(file(path)?)).map_err(|e| io(&name, e))?;
    let input = Input::new(reader, &name, HEAD_BYTES)?;
    let (format, reason) = find(&input)?;
    Ok(Detection { format, compression, reason })
}

/// Reads a trace from memory or a pipe; `name` stands for the file in messages.
///
/// # Errors
/// As for [`open`].
pub fn read(reader: impl BufRead, name: &str, options: &OpenOptions) -> Result<Trace, WorkloadError> {
    let (_, reader) = compression::unpack(reader).map_err(|e| io(name, e))?;
    let mut input = Input::new(reader, name, HEAD_BYTES)?;
    let (format, reason) = match &options.format {
        Some(wanted) => (by_name(wanted)?, None),
        None if input.head().is_empty() => {
            let why = "the file is empty".to_owned();
            return Err(WorkloadError::Empty { file: name.to_owned(), why });
        }
        None => find(&input).map(|(format, reason)| (format, Some(reason)))?,
    };
    if let Some(what) = options.stated().find(|what| !format.unsaid.contains(what)) {
        let asking = formats().iter().filter(|row| row.unsaid.contains(&what)).map(|row| row.name);
        return Err(WorkloadError::SaidByFormat {
            file: name.to_owned(),
            format: format.name,
            what: what.name(),
            asking: asking.collect::<Vec<_>>().join(", "),
        });
    }
    let mut builder = Builder::new(options, name, format.name);
    builder.notes.extend(reason);
    (format.read)(&mut input, &mut builder)?;
    builder.finish()
}

fn file(path: &Path) -> Result<File, WorkloadError> {
    File::open(path).map_err(|source| WorkloadError::Io { action: "open", path: path.to_owned(), source })
}

fn names() -> String {
    formats().iter().map(|f| f.name).collect::<Vec<_>>().join(", ")
}

fn by_name(name: &str) -> Result<&'static FormatEntry, WorkloadError> {
    formats().iter().find(|f| f.name == name).ok_or_else(|| WorkloadError::Unknown {
        what: "trace format",
        name: name.to_owned(),
        nearest: nearest(name, formats().iter().map(|f| f.name)),
        valid: names(),
    })
}

fn find(input: &Input<'_>) -> Result<(&'static FormatEntry, String), WorkloadError> {
    let mut best: Option<(&'static FormatEntry, u32)> = None;
    for format in formats() {
        let score = (format.detect)(input.head());
        // The first of equals wins: the table's order is from the most to the least particular
        // format.
        if score >= SCORE_MIN && best.is_none_or(|(_, other)| score > other) {
            best = Some((format, score));
        }
    }
    match best {
        Some((format, score)) => {
            let reason = format!("format `{}`: {score}% of the first lines or records are of it", format.name);
            Ok((format, reason))
        }
        None => {
            Err(WorkloadError::Undetected { file: input.file.clone(), why: beginning(input.head()), valid: names() })
        }
    }
}

/// What the beginning of a file of no known format looks like.
fn beginning(head: &[u8]) -> String {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let is_text = |byte: &u8| *byte >= b' ' || byte.is_ascii_whitespace();
    let Some(line) = std::str::from_utf8(line).ok().filter(|_| head.iter().all(is_text)) else {
        let bytes: Vec<String> = head.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        return format!("it is binary and starts with the bytes {}", bytes.join(" "));
    };
    let line = line.trim_end();
    match nearest(line, formats::HEADERS.into_iter()) {
        Some(header) => format!("line 1 is `{}`; was `{header}` meant?", line.escape_debug()),
        None => format!("line 1 is `{}`", line.chars().take(60).collect::<String>().escape_debug()),
    }
}
