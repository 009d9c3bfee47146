//! The five-column ASCII form of DiskSim, FlashSim, SSDSim and MQSim:
//! `time device address size flag`.
//!
//! The file does not state its units. What the options do not say is guessed once all rows are
//! read, and every guess goes into the notes with its reason:
//!
//! 1. Address: bytes if every address and size is a multiple of 512, else sectors.
//! 2. Size: as the address, if that is bytes. Else sectors or 4-KiB pages, whichever lets more
//!    requests begin where the one before ended. If few do, pages if half of the requests are of
//!    one or two.
//! 3. Time: what makes a date of our time, if one unit does. Milliseconds if there are decimals
//!    (seconds if that made more than a million requests a second). Otherwise nanoseconds if all
//!    times are multiples of 1000 (a microsecond clock written in ns); else the unit that makes 5
//!    to 5,000 requests a second, and the nearest to that if none does.
//! 4. Flag: 1 reads, 0 writes, as in DiskSim. Letters speak for themselves.

use super::fields::{self, decimal, decimal_ns, int, words};
use super::{FormatEntry, Unsaid};
use crate::error::WorkloadError;
use crate::request::Op;
use crate::trace::builder::{Builder, Row};
use crate::trace::input::Input;
use crate::trace::names::Names;
use crate::trace::options::{FlagMeaning, SizeUnit, TimeUnit};

pub(super) const ENTRY: FormatEntry = FormatEntry {
    name: "fivecolumn",
    summary: "five-column ASCII of DiskSim, FlashSim, SSDSim, MQSim",
    layout: "time (ns, 100 ns, us, ms or s), device, address (512 B or B), size (512 B, B or 4 KiB), flag (1 read, 0 write)",
    unsaid: &[Unsaid::TimeUnit, Unsaid::AddressUnit, Unsaid::SizeUnit, Unsaid::Flag],
    detect: |head| {
        let (mut good, mut bad) = (0, 0);
        for line in fields::head_lines(head) {
            if parse(&line).is_ok() { good += 1 } else { bad += 1 }
        }
        fields::score(good, good + bad)
    },
    read,
};

/// Requests a second of most traces: a factor of 1000, so that one unit of four fits.
const RATES: (f64, f64) = (5.0, 5_000.0);

/// The share of requests that begin where the one before ended from which on this says something.
const CONTIGUOUS_MIN: f64 = 0.01;

/// By how much one unit has to let more of them do so than another one.
const CONTIGUOUS_FACTOR: f64 = 2.0;

/// Seconds of the years 1990 to 2040 since 1970.
const DATES_S: (f64, f64) = (631_152_000.0, 2_208_988_800.0);

/// Requests a second without which dates are there by chance.
const DATED_RATES: (f64, f64) = (0.01, 1e6);

/// Seconds from 1601, where Windows begins to count, to 1970.
const WINDOWS_EPOCH_S: f64 = 11_644_473_600.0;

#[derive(Clone, Copy, PartialEq)]
enum Flag {
    Zero,
    One,
    Said(Op),
}

struct Raw {
    whole: u64,
    fraction: u32,
    device: u32,
    address: u64,
    size: u64,
    line: u32,
    flag: Flag,
}

fn parse(line: &str) -> Result<(Raw, &str), String> {
    let [time, device, address, size, flag] = words(line)?;
    let (whole, fraction) = decimal(time, "time")?;
    let flag = match flag {
        "0" => Flag::Zero,
        "1" => Flag::One,
        other => {
            Flag::Said(fields::operation(other).map_err(|_| format!("flag `{other}` is neither 0 nor 1, R nor W"))?)
        }
    };
    let raw =
        Raw { whole, fraction, device: 0, address: int(address, "address")?, size: int(size, "size")?, line: 0, flag };
    Ok((raw, device))
}

/// Rows that units are guessed by: enough for any guess, and little beside a long trace.
const GUESSED_BY: usize = 1 << 20;

/// The least of them where the user wants fewer requests.
const GUESSED_BY_LEAST: u64 = 100_000;

/// What the columns count in.
#[derive(Clone, Copy)]
struct Units {
    time: TimeUnit,
    address: SizeUnit,
    size: SizeUnit,
}

fn read(input: &mut Input<'_>, builder: &mut Builder<'_>) -> Result<(), WorkloadError> {
    let limit = builder.options.limit.map_or(u64::MAX, |limit| limit.max(GUESSED_BY_LEAST));
    let (mut rows, mut devices): (Vec<Raw>, Names) = Default::default();
    while rows.len() < GUESSED_BY && (rows.len() as u64) < limit {
        let Some(raw) = next(input, builder, &mut devices)? else { break };
        rows.push(raw);
    }
    if rows.is_empty() {
        return Ok(());
    }
    let units = guess(&rows, builder);
    for raw in rows {
        push(raw, &devices, units, input, builder)?;
    }
    while !builder.full() {
        let Some(raw) = next(input, builder, &mut devices)? else { break };
        push(raw, &devices, units, input, builder)?;
    }
    Ok(())
}

/// The units that the user states or the rows suggest, with a note on each.
fn guess(rows: &[Raw], builder: &mut Builder<'_>) -> Units {
    let options = builder.options;
    let mut notes = Vec::new();
    let (address, why) = options.address_unit.map_or_else(|| guess_address(rows), stated);
    notes.push(format!("address in {}: {why}", address.name()));
    let (size, why) = options.size_unit.map_or_else(|| guess_size(rows, address), stated);
    notes.push(format!("size in {}: {why}", size.name()));
    let (time, why) = options.time_unit.map_or_else(|| guess_time(rows), stated);
    notes.push(format!("time in {}: {why}", time.name()));
    builder.time_guess = options.time_unit.is_none().then(|| format!("times were taken for {}", time.name()));
    if rows.iter().any(|r| !matches!(r.flag, Flag::Said(_))) {
        notes.push(match options.flag {
            None => "flag: 1 reads, 0 writes (DiskSim's convention, assumed)".to_owned(),
            Some(FlagMeaning::OneReads) => "flag: 1 reads, 0 writes (stated)".to_owned(),
            Some(FlagMeaning::OneWrites) => "flag: 1 writes, 0 reads (stated)".to_owned(),
        });
    }
    if options.flag.is_some() && rows.iter().all(|r| matches!(r.flag, Flag::Said(_))) {
        notes.push("flag: letters say what each request is; the stated meaning of 0 and 1 was not needed".to_owned());
    }
    builder.notes.extend(notes);
    Units { time, address, size }
}

/// Hands a row over, if the builder has not all that it wants.
fn push(
    raw: Raw,
    devices: &Names,
    units: Units,
    input: &Input<'_>,
    builder: &mut Builder<'_>,
) -> Result<(), WorkloadError> {
    if builder.full() {
        return Ok(());
    }
    let op = match (raw.flag, builder.options.flag) {
        (Flag::Said(op), _) => op,
        (Flag::One, Some(FlagMeaning::OneWrites)) | (Flag::Zero, None | Some(FlagMeaning::OneReads)) => Op::Write,
        _ => Op::Read,
    };
    let offset = raw.address.checked_mul(units.address.bytes());
    let bytes = raw.size.checked_mul(units.size.bytes());
    let device = devices.name(raw.device);
    let pushed = match (offset, bytes) {
        (Some(offset), Some(bytes)) => {
            let time_ns = decimal_ns((raw.whole, raw.fraction), units.time);
            builder.push(Row { time_ns, device: device.into(), op, offset, bytes, fua: false })
        }
        _ => Err("address or size is too large".to_owned()),
    };
    let Err(why) = pushed else { return Ok(()) };
    let text = format!("{}.{:09} {device} {} {}", raw.whole, raw.fraction, raw.address, raw.size);
    let error = fields::line_error(input, builder.format, u64::from(raw.line), why, &text);
    builder.fault(error)
}

fn stated<T>(unit: T) -> (T, String) {
    (unit, "stated".to_owned())
}

/// The next row; `None` at the end of the file.
fn next(input: &mut Input<'_>, builder: &mut Builder<'_>, devices: &mut Names) -> Result<Option<Raw>, WorkloadError> {
    while let Some((line, text)) = input.line()? {
        if text.trim().is_empty() || text.trim_start().starts_with('#') {
            continue;
        }
        match parse(&text) {
            Ok((mut raw, device)) => {
                raw.device = devices.number(device);
                raw.line = u32::try_from(line).unwrap_or(u32::MAX);
                return Ok(Some(raw));
            }
            Err(why) => {
                let error = fields::line_error(input, builder.format, line, why, &text);
                builder.fault(error)?;
            }
        }
    }
    Ok(None)
}

fn guess_address(rows: &[Raw]) -> (SizeUnit, String) {
    match rows.iter().all(|r| r.address % 512 == 0 && r.size % 512 == 0) {
        true => (SizeUnit::Bytes, "guessed, every address and size is a multiple of 512".to_owned()),
        false => (SizeUnit::Sectors, "guessed, not all are multiples of 512".to_owned()),
    }
}

fn guess_size(rows: &[Raw], address: SizeUnit) -> (SizeUnit, String) {
    if address != SizeUnit::Sectors {
        return (address, "guessed, as the address".to_owned());
    }
    let [sectors, pages] = [SizeUnit::Sectors, SizeUnit::Pages].map(|unit| (unit, contiguous(rows, address, unit)));
    let (most, other) = if sectors.1 >= pages.1 { (sectors, pages) } else { (pages, sectors) };
    if most.1 >= CONTIGUOUS_MIN && most.1 >= CONTIGUOUS_FACTOR * other.1 {
        let (unit, share) = most;
        let why = format!(
            "guessed, {:.1}% of requests begin where the one before ended; in {} {:.1}% would",
            share * 100.0,
            other.0.name(),
            other.1 * 100.0
        );
        return (unit, why);
    }
    let tiny = rows.iter().filter(|r| r.size <= 2).count();
    match tiny * 2 >= rows.len() {
        true => (
            SizeUnit::Pages,
            format!(
                "guessed, {tiny} of {} sizes are 1 or 2; in sectors half of the requests would be below a page",
                rows.len()
            ),
        ),
        false => (SizeUnit::Sectors, "guessed, as the address".to_owned()),
    }
}

/// The share of requests that begin where the one before on the same device ended, if sizes are in
/// this unit.
fn contiguous(rows: &[Raw], address: SizeUnit, size: SizeUnit) -> f64 {
    let mut ends: Vec<Option<u128>> = Vec::new();
    let mut count = 0_u64;
    for row in rows {
        let device = row.device as usize;
        if ends.len() <= device {
            ends.resize(device + 1, None);
        }
        let start = u128::from(row.address) * u128::from(address.bytes());
        count += u64::from(ends[device] == Some(start));
        ends[device] = Some(start + u128::from(row.size) * u128::from(size.bytes()));
    }
    count as f64 / rows.len() as f64
}

/// The unit in which all times are dates of our time.
fn dated(first: u64, last: u64) -> Option<TimeUnit> {
    use TimeUnit::{Microseconds, Milliseconds, Nanoseconds, Seconds, Ticks};
    [Seconds, Milliseconds, Microseconds, Ticks, Nanoseconds].into_iter().find(|unit| {
        let seconds = |time: u64| {
            let since = time as f64 * unit.ns() as f64 / 1e9;
            if *unit == Ticks { since - WINDOWS_EPOCH_S } else { since }
        };
        seconds(first) >= DATES_S.0 && seconds(last) <= DATES_S.1
    })
}

fn guess_time(rows: &[Raw]) -> (TimeUnit, String) {
    let first = rows.iter().map(|r| (r.whole, r.fraction)).min().unwrap_or_default();
    let last = rows.iter().map(|r| (r.whole, r.fraction)).max().unwrap_or_default();
    let units = (last.0 - first.0) as f64 + (f64::from(last.1) - f64::from(first.1)) / 1e9;
    let rate = |unit: TimeUnit| rows.len() as f64 * 1e9 / (units * unit.ns() as f64).max(1.0);
    let said = |unit: TimeUnit, why: &str| (unit, format!("guessed, {why}; this makes {:.1} requests/s", rate(unit)));
    if let Some(unit) = dated(first.0, last.0).filter(|unit| (DATED_RATES.0..DATED_RATES.1).contains(&rate(*unit))) {
        return said(unit, "that makes dates of our time");
    }
    if rows.iter().any(|r| r.fraction != 0) {
        return match rate(TimeUnit::Milliseconds) <= 1e6 {
            true => said(TimeUnit::Milliseconds, "it has decimals, as DiskSim writes"),
            false => said(TimeUnit::Seconds, "it has decimals, and as ms there were over a million requests/s"),
        };
    }
    if units > 0.0 && rows.iter().all(|r| r.whole % 1000 == 0) && rate(TimeUnit::Nanoseconds) <= 1e6 {
        return said(TimeUnit::Nanoseconds, "all times are multiples of 1000, a microsecond clock in ns");
    }
    use TimeUnit::{Microseconds, Milliseconds, Nanoseconds, Seconds};
    let (low, high) = RATES;
    let far = |unit: &TimeUnit| (rate(*unit).ln() - (low * high).sqrt().ln()).abs();
    let units = [Nanoseconds, Microseconds, Milliseconds, Seconds];
    let unit = units.into_iter().min_by(|a, b| far(a).total_cmp(&far(b))).unwrap_or(Milliseconds);
    said(unit, "no unit comes nearer to 5 to 5,000 requests/s")
}

#[cfg(test)]
mod tests {
    use crate::trace::{OpenOptions, SizeUnit, TimeUnit, read};

    #[test]
    fn guesses_are_said_and_options_win() {
        let text = "0 0 303567 7 0\n0 1 55590 6 1\n26214000 0 303574 7 0\n";
        let trace = read(text.as_bytes(), "t", &OpenOptions::default()).unwrap();
        assert!(trace.notes().iter().any(|n| n.starts_with("time in ns: guessed")), "{:?}", trace.notes());
        assert_eq!(trace.records()[2].at_ns(), 26_214_000);
        assert_eq!(trace.records()[0].bytes(), 7 * 512);
        let options = OpenOptions {
            time_unit: Some(TimeUnit::Microseconds),
            address_unit: Some(SizeUnit::Bytes),
            size_unit: Some(SizeUnit::Pages),
            ..OpenOptions::default()
        };
        let trace = read(text.as_bytes(), "t", &options).unwrap();
        assert_eq!(trace.records()[2].at_ns(), 26_214_000_000);
        assert_eq!((trace.records()[2].offset(), trace.records()[2].bytes()), (303_574, 7 * 4096));
    }

    #[test]
    fn no_more_is_read_than_units_are_guessed_by_and_the_limit_wants() {
        let lines = |device: u32, n: u64| -> String {
            (0..n).map(|i| format!("{} {device} {} 8 0\n", i * 1_000_003, i * 7919 % 100_003)).collect()
        };
        let text = lines(0, super::GUESSED_BY_LEAST) + &lines(1, 50) + "no request\n";
        let read_by = |limit: u64, device: Option<&str>| {
            let device = device.map(str::to_owned);
            read(text.as_bytes(), "t", &OpenOptions { limit: Some(limit), device, ..OpenOptions::default() })
        };
        assert_eq!(read_by(10, None).unwrap().records().len(), 10);
        // Rows after those that units are guessed by count like the others.
        let late = read_by(10, Some("1")).unwrap();
        assert_eq!((late.records().len(), late.records()[9].offset()), (10, 9 * 7919 * 512));
        let error = read_by(60, Some("1")).unwrap_err().to_string();
        assert!(error.contains("100051"), "{error}");
    }

    fn note(text: &str, begin: &str) -> String {
        let trace = read(text.as_bytes(), "t", &OpenOptions::default()).unwrap();
        trace.notes().iter().find(|note| note.starts_with(begin)).unwrap().clone()
    }

    /// Requests that follow each other, of one sector or two: half of the sizes look like pages.
    #[test]
    fn what_follows_on_tells_the_unit_of_sizes() {
        let lines = |unit: u64| -> String {
            let mut at = 1000;
            let line = |i: u64| {
                let (from, size) = (at, 1 + i % 2);
                at = from + size * unit;
                format!("{} 0 {from} {size} 0\n", i * 1_000_003)
            };
            (0..400).map(line).collect()
        };
        assert!(note(&lines(1), "size").starts_with("size in sectors: guessed, 99.8%"));
        assert!(note(&lines(8), "size").starts_with("size in pages: guessed, 99.8%"));
        // Without an order: as small as pages are.
        let scattered: String =
            (0..400_u64).map(|i| format!("{} 0 {} {} 0\n", i * 1_000_003, i * 7919 % 100_003, 1 + i % 2)).collect();
        assert!(note(&scattered, "size").starts_with("size in pages: guessed, 400 of 400"));
    }

    #[test]
    fn dates_and_usual_rates_tell_the_unit_of_times() {
        let every = |first: u64, step: u64| -> String {
            (0..100).map(|i| format!("{} 0 {} 8 0\n", first + i * step, 3 + i * 1000)).collect()
        };
        // 20 requests a second, in each unit; ns looked as good before.
        assert!(note(&every(0, 50_000_001), "time").starts_with("time in ns: guessed, no unit"));
        assert!(note(&every(0, 50_001), "time").starts_with("time in us: guessed, no unit"));
        assert!(note(&every(0, 51), "time").starts_with("time in ms: guessed, no unit"));
        // The same in the year 2008.
        for (first, step, unit) in [
            (1_200_000_000, 1, "s"),
            (1_200_000_000_000, 51, "ms"),
            (1_200_000_000_000_000, 50_001, "us"),
            (1_200_000_000_000_000_000, 50_000_001, "ns"),
            (128_444_736_000_000_000, 500_001, "100ns"),
        ] {
            assert!(
                note(&every(first, step), "time").starts_with(&format!("time in {unit}: guessed, that makes dates"))
            );
        }
    }

    #[test]
    fn a_stated_unit_is_no_guess() {
        let open = |time_unit| {
            read(&b"0 0 303567 7 0\n51 0 1 7 0\n"[..], "t", &OpenOptions { time_unit, ..OpenOptions::default() })
                .unwrap()
        };
        assert!(open(None).time_guess().is_some());
        let ticks = open(Some(TimeUnit::Ticks));
        assert_eq!((ticks.time_guess(), ticks.records()[1].at_ns()), (None, 5_100));
    }
}
