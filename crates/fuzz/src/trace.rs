//! Any bytes as a trace, packed or not: read, described, fitted, converted, played back.

use crate::input::Input;
use std::io::Write;
use workload::trace::{Format, Map, OpenOptions, Replay, ReplayOptions, Trace, convert, fit, footprint, info, read};
use workload::{Request, Source, WorkloadError, formats};

/// Bytes of the space on which a trace is played back.
const SPACE: u64 = 1 << 40;

/// Pages of a trace that is described: that takes memory for each page read or written, which a
/// line can name many of.
const DESCRIBED: u64 = 1 << 16;

/// Bytes of a converted trace that are kept and read again.
const KEPT: usize = 1 << 20;

pub(crate) fn run(bytes: &[u8]) -> Result<(), String> {
    let mut input = Input::new(bytes);
    let (which, flags) = (usize::from(input.byte()), input.byte());
    // One more than there are: found by contents.
    let format = formats().get(which % (formats().len() + 1)).map(|format| format.name.to_owned());
    let options = OpenOptions {
        format,
        lenient: flags & 1 != 0,
        device: (flags & 2 != 0).then(|| "0".to_owned()),
        ..OpenOptions::default()
    };
    match read(input.rest(), "sample", &options) {
        Ok(trace) => use_it(&trace),
        Err(error) => judge(&error),
    }
}

/// An error names the file, and the line or record if there is one.
fn judge(error: &WorkloadError) -> Result<(), String> {
    let text = error.to_string();
    let named = match error {
        WorkloadError::Line { line, .. } => *line > 0 && text.starts_with(&format!("sample:{line}: ")),
        WorkloadError::Record { offset, .. } => text.starts_with(&format!("sample: byte {offset}: ")),
        _ => text.contains("sample"),
    };
    if named { Ok(()) } else { Err(format!("an error does not say where: {text}")) }
}

fn use_it(trace: &Trace) -> Result<(), String> {
    if footprint(trace, 4096).touched_pages <= DESCRIBED {
        let _ = info(trace);
    }
    fit(trace).to_toml().map_err(|error| format!("a fitted profile cannot be written: {error}"))?;
    for map in [Map::Dense, Map::Fold, Map::Scale] {
        let Ok(mut replay) = Replay::new(trace, ReplayOptions { map, ..ReplayOptions::default() }, SPACE, 4096) else {
            continue;
        };
        let mut batch = [Request::default(); 64];
        let filled = replay.fill(&mut batch).map_err(|error| error.to_string())?;
        if let Some(beyond) = batch[..filled].iter().find(|r| r.offset.checked_add(r.bytes).is_none_or(|e| e > SPACE)) {
            return Err(format!("{map:?} places a request beyond the space of {SPACE} B: {beyond:?}"));
        }
    }
    for format in [Format::Csv, Format::Fio2, Format::Fio3] {
        let mut out = Kept(Vec::new());
        convert(trace, format, &mut out).map_err(|error| error.to_string())?;
        if out.0.len() < KEPT {
            reread(trace, format, &out.0)?;
        }
    }
    Ok(())
}

/// What was converted reads back as the same requests.
fn reread(trace: &Trace, format: Format, bytes: &[u8]) -> Result<(), String> {
    let again = read(bytes, "sample", &OpenOptions::default());
    let again = again.map_err(|error| format!("what was converted to {format:?} cannot be read: {error}"))?;
    let requests = |trace: &Trace| trace.records().iter().map(|r| (r.op(), r.offset(), r.bytes())).collect::<Vec<_>>();
    if requests(trace) == requests(&again) {
        return Ok(());
    }
    Err(format!("what was converted to {format:?} reads back as other requests"))
}

/// Keeps the beginning of what is written.
struct Kept(Vec<u8>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let room = KEPT - self.0.len();
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
