//! What the text formats share: fields, numbers, and the loop over lines.

use crate::error::WorkloadError;
use crate::request::Op;
use crate::trace::builder::{Builder, Row};
use crate::trace::input::Input;
use crate::trace::options::TimeUnit;

/// Lines looked at to find the format.
const DETECT_LINES: usize = 64;

/// What a line is.
pub(super) enum Parsed<'l> {
    Request(Row<'l>),
    /// A line of the format that is no request: a header, a comment, a summary.
    Other,
}

/// What a format makes of a line, or what is wrong with it.
pub(super) type Line<'l> = Result<Parsed<'l>, String>;

/// Reads all lines with `parse`.
pub(super) fn read_lines(
    input: &mut Input<'_>,
    builder: &mut Builder<'_>,
    mut parse: impl for<'l> FnMut(&'l str) -> Line<'l>,
) -> Result<(), WorkloadError> {
    while !builder.full() {
        let Some((number, text)) = input.line()? else {
            break;
        };
        if is_blank(&text) {
            continue;
        }
        let outcome = match parse(&text) {
            Ok(Parsed::Request(row)) => builder.push(row),
            Ok(Parsed::Other) => Ok(()),
            Err(why) => Err(why),
        };
        if let Err(why) = outcome {
            let error = line_error(input, builder.format, number, why, &text);
            builder.fault(error)?;
        }
    }
    Ok(())
}

/// The error for a malformed line.
pub(super) fn line_error(input: &Input<'_>, format: &'static str, line: u64, why: String, text: &str) -> WorkloadError {
    let mut short: String = text.chars().take(160).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    WorkloadError::Line { file: input.file.clone(), line, format, why, text: short }
}

/// Percent of the first lines that `parse` takes for requests.
pub(super) fn score_lines(head: &[u8], parse: impl for<'l> Fn(&'l str) -> Line<'l>) -> u32 {
    let (mut good, mut bad) = (0, 0);
    for text in head_lines(head) {
        match parse(&text) {
            Ok(Parsed::Request(_)) => good += 1,
            Ok(Parsed::Other) => {}
            Err(_) => bad += 1,
        }
    }
    score(good, good + bad)
}

/// Percent of `all` that is `good`; 0 of nothing.
pub(super) fn score(good: u32, all: u32) -> u32 {
    (good * 100).checked_div(all).unwrap_or(0)
}

/// The first whole lines of a file that are not blank or comments.
pub(super) fn head_lines(head: &[u8]) -> Vec<String> {
    let mut lines: Vec<&[u8]> = head.split(|b| *b == b'\n').take(DETECT_LINES + 1).collect();
    if lines.len() > 1 {
        // The last may be cut.
        lines.pop();
    }
    let text = lines.into_iter().map(|line| String::from_utf8_lossy(line).trim_end_matches('\r').to_owned());
    text.filter(|line| !is_blank(line)).collect()
}

fn is_blank(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('#')
}

/// Exactly `N` comma-separated fields, trimmed.
pub(super) fn commas<const N: usize>(line: &str) -> Result<[&str; N], String> {
    take(line.split(',').map(str::trim), line.split(',').count())
}

/// Exactly `N` fields separated by white space.
pub(super) fn words<const N: usize>(line: &str) -> Result<[&str; N], String> {
    take(line.split_whitespace(), line.split_whitespace().count())
}

fn take<'l, const N: usize>(mut fields: impl Iterator<Item = &'l str>, count: usize) -> Result<[&'l str; N], String> {
    if count != N {
        return Err(format!("it has {count} columns instead of {N}"));
    }
    Ok(std::array::from_fn(|_| fields.next().unwrap_or_default()))
}

/// A whole number.
pub(super) fn int(text: &str, what: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{what} `{text}` is not a whole number"))
}

/// A whole number of units, as bytes.
pub(super) fn scaled(text: &str, unit: u64, what: &str) -> Result<u64, String> {
    int(text, what)?.checked_mul(unit).ok_or_else(|| format!("{what} `{text}` is too large"))
}

/// A decimal number as its whole part and its fraction in 10^-9; more digits are cut.
pub(super) fn decimal(text: &str, what: &str) -> Result<(u64, u32), String> {
    let wrong = || format!("{what} `{text}` is not a number");
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong());
    }
    let whole: u64 = if whole.is_empty() && !fraction.is_empty() { 0 } else { whole.parse().map_err(|_| wrong())? };
    let digits = fraction.bytes().chain(std::iter::repeat(b'0')).take(9);
    Ok((whole, digits.fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'))))
}

/// A time in `unit`, as nanoseconds.
pub(super) fn time_ns(text: &str, unit: TimeUnit) -> Result<i128, String> {
    decimal(text, "time").map(|parts| decimal_ns(parts, unit))
}

/// The parts of [`decimal`] in `unit`, as nanoseconds.
pub(super) fn decimal_ns((whole, fraction): (u64, u32), unit: TimeUnit) -> i128 {
    let unit = i128::from(unit.ns());
    i128::from(whole) * unit + i128::from(fraction) * unit / 1_000_000_000
}

/// A read or write in words or a letter.
pub(super) fn operation(text: &str) -> Result<Op, String> {
    match text {
        "r" | "R" | "Read" | "read" | "READ" => Ok(Op::Read),
        "w" | "W" | "Write" | "write" | "WRITE" => Ok(Op::Write),
        _ => Err(format!("operation `{text}` is neither read nor write")),
    }
}
