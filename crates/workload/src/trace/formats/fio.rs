//! fio's I/O logs, versions 2 and 3.
//!
//! Version 2 has no times but `wait` lines. fio's manual says that they are microseconds since the
//! last wait; fio 3.33 itself waits until so many milliseconds after the start. Waits are read as
//! fio plays them, unless the unit is stated: `ms` is fio's reading, `us` the manual's. Version 3
//! puts the time of each action, in microseconds, first. `sync` and `datasync` are flushes; `add`,
//! `open` and `close` are passed over.

use super::fields::{self, Line, Parsed, int};
use super::{FormatEntry, Unsaid};
use crate::error::WorkloadError;
use crate::request::Op;
use crate::trace::builder::{Builder, Row};
use crate::trace::input::Input;
use crate::trace::options::TimeUnit;

pub(super) const ENTRY: FormatEntry = FormatEntry {
    name: "fio",
    summary: "fio I/O logs, versions 2 and 3",
    layout: "file, action, offset (B), length (B); version 3 with the time (us) before them",
    unsaid: &[Unsaid::TimeUnit],
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
    let stated = builder.options.time_unit;
    if timed {
        if stated.is_some() {
            return Err(WorkloadError::SaidByFormat {
                file: input.file.clone(),
                format: "fio version 3",
                what: Unsaid::TimeUnit.name(),
                asking: "fio version 2, fivecolumn".to_owned(),
            });
        }
        return fields::read_lines(input, builder, version_3);
    }
    let is_relative = match stated {
        None | Some(TimeUnit::Milliseconds) => false,
        Some(TimeUnit::Microseconds) => true,
        Some(other) => {
            let why = format!("waits are in ms since the start or in us since the last wait, not in {}", other.name());
            return Err(fields::line_error(input, builder.format, number, why, &header));
        }
    };
    let mut waits = Waits { is_relative, ..Waits::default() };
    fields::read_lines(input, builder, |line| version_2(line, &mut waits))?;
    if waits.count == 0 {
        builder.timed = false;
        builder.notes.push("version 2 without wait lines: there are no arrival times".to_owned());
    } else if stated.is_none() {
        builder.time_guess = Some("waits were taken for ms since the start, as fio plays them".to_owned());
        let back = if waits.back > 0 { format!("; {} of {} go back", waits.back, waits.count) } else { String::new() };
        builder.notes.push(format!(
            "waits are read as fio plays them, in ms since the start{back}; its manual says us since the last wait (time \
             unit us)"
        ));
    }
    Ok(())
}

/// The `wait` lines of version 2.
#[derive(Default)]
struct Waits {
    is_relative: bool,
    count: u64,
    /// How many ended before the one that came before them.
    back: u64,
    /// The time of the next request.
    now_us: u64,
}

impl Waits {
    fn add(&mut self, wait: u64) {
        self.count += 1;
        let until = if self.is_relative { self.now_us.saturating_add(wait) } else { wait.saturating_mul(1_000) };
        self.back += u64::from(until < self.now_us);
        self.now_us = self.now_us.max(until);
    }
}

fn version_2<'l>(line: &'l str, waits: &mut Waits) -> Line<'l> {
    let columns: Vec<&str> = line.split_whitespace().collect();
    match columns[..] {
        [_, "wait", time] | [_, "wait", time, _] => {
            waits.add(int(time, "wait")?);
            Ok(Parsed::Other)
        }
        [file, ref action @ ..] => request(waits.now_us, file, action),
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
    Ok(Parsed::Request(Row {
        time_ns: i128::from(time_us) * 1_000,
        device: file.into(),
        op,
        offset,
        bytes,
        fua: false,
    }))
}
