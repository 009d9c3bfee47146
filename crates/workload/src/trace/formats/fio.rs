//! fio's I/O logs, versions 2 and 3.
//!
//! Version 2 has no times but `wait` lines (microseconds, relative to the last wait); version 3
//! puts the time of each action, in microseconds, first. `sync` and `datasync` are flushes; `add`,
//! `open` and `close` are passed over.

use super::FormatEntry;
use super::fields::{self, Line, Parsed, int};
use crate::error::WorkloadError;
use crate::request::Op;
use crate::trace::builder::{Builder, Row};
use crate::trace::input::Input;

pub(super) const ENTRY: FormatEntry = FormatEntry {
    name: "fio",
    summary: "fio I/O logs, versions 2 and 3",
    layout: "file, action, offset (B), length (B); version 3 with the time (us) before them",
    unsaid: &[],
    detect,
    read,
};

/// First line of version 2.
pub(in crate::trace) const HEADER_2: &str = "fio version 2 iolog";
/// First line of version 3.
pub(in crate::trace) const HEADER_3: &str = "fio version 3 iolog";

fn detect(head: &[u8]) -> u32 {
    let known = [HEADER_2, HEADER_3].iter().any(|header| head.starts_with(header.as_bytes()));
    if known { 100 } else { 0 }
}

fn read(input: &mut Input<'_>, builder: &mut Builder<'_>) -> Result<(), WorkloadError> {
    let Some((number, header)) = input.line()? else {
        return Ok(());
    };
    let timed = match header.trim() {
        HEADER_2 => false,
        HEADER_3 => true,
        _ => {
            let why = format!("the first line must be `{HEADER_2}` or `{HEADER_3}`");
            return Err(fields::line_error(input, builder.format, number, why, &header));
        }
    };
    let (mut now_us, mut waits) = (0u64, 0u64);
    fields::read_lines(input, builder, |line| match timed {
        true => version_3(line),
        false => version_2(line, &mut now_us, &mut waits),
    })?;
    if !timed && waits == 0 {
        builder.timed = false;
        builder.notes.push("version 2 without wait lines: there are no arrival times".to_owned());
    }
    Ok(())
}

fn version_2<'l>(line: &'l str, now_us: &mut u64, waits: &mut u64) -> Line<'l> {
    let columns: Vec<&str> = line.split_whitespace().collect();
    match columns[..] {
        [_, "wait", time] | [_, "wait", time, _] => {
            *now_us = now_us.saturating_add(int(time, "wait")?);
            *waits += 1;
            Ok(Parsed::Other)
        }
        [file, ref action @ ..] => request(*now_us, file, action),
        [] => Ok(Parsed::Other),
    }
}

fn version_3(line: &str) -> Line<'_> {
    let columns: Vec<&str> = line.split_whitespace().collect();
    match columns[..] {
        [_, _, "wait", ..] => Err("version 3 has no wait".to_owned()),
        [time, file, ref action @ ..] => request(int(time, "time")?, file, action),
        _ => Err("it has fewer than 3 columns".to_owned()),
    }
}

fn request<'l>(time_us: u64, file: &'l str, action: &[&str]) -> Line<'l> {
    let (op, offset, bytes) = match *action {
        ["add" | "open" | "close" | "unlink"] => return Ok(Parsed::Other),
        ["sync" | "datasync"] | ["sync" | "datasync", _, _] => (Op::Flush, 0, 0),
        ["read", offset, bytes] => (Op::Read, int(offset, "offset")?, int(bytes, "length")?),
        ["write", offset, bytes] => (Op::Write, int(offset, "offset")?, int(bytes, "length")?),
        ["trim", offset, bytes] => (Op::Trim, int(offset, "offset")?, int(bytes, "length")?),
        [action, ..] => {
            return Err(format!("`{action}` with {} columns is no action", action.len()));
        }
        [] => return Err("it has no action".to_owned()),
    };
    Ok(Parsed::Request(Row { time_ns: i128::from(time_us) * 1_000, device: file.into(), op, offset, bytes }))
}
