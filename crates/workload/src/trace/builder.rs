//! Where parsed requests gather: devices get numbers, times a common start, order is restored.

use super::names::Names;
use super::options::OpenOptions;
use super::{Record, Trace};
use crate::error::WorkloadError;
use crate::request::Op;
use std::borrow::Cow;

/// Larger trims are split; larger reads and writes are taken for a wrong unit.
const BYTES_MAX: u64 = 1 << 31;

/// The largest trim: what Linux can ask of a device at once, 2^32 sectors. It is split into a
/// thousand pieces; a line of a few bytes must not fill the memory.
const TRIM_MAX: u64 = 1 << 41;

/// One request as a format hands it over.
#[derive(Clone, Debug)]
pub(super) struct Row<'a> {
    /// Nanoseconds since any epoch.
    pub(super) time_ns: i128,
    pub(super) device: Cow<'a, str>,
    pub(super) op: Op,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    /// A write has to survive a power cut once it has ended.
    pub(super) fua: bool,
}

/// A trace being read.
pub(super) struct Builder<'a> {
    pub(super) options: &'a OpenOptions,
    pub(super) file: String,
    pub(super) format: &'static str,
    pub(super) notes: Vec<String>,
    pub(super) timed: bool,
    /// What was guessed about times.
    pub(super) time_guess: Option<String>,
    records: Vec<Record>,
    start_ns: Option<i128>,
    ordered: bool,
    last_ns: i64,
    devices: Names,
    skipped: u64,
    first_skip: Option<String>,
    empty: u64,
    filtered: u64,
}

/// A time that may be before the first request's, as a number that is never negative.
fn biased(since: i64) -> u64 {
    since as u64 ^ 1 << 63
}

impl<'a> Builder<'a> {
    pub(super) fn new(options: &'a OpenOptions, file: &str, format: &'static str) -> Self {
        Builder {
            options,
            file: file.to_owned(),
            format,
            notes: Vec::new(),
            timed: true,
            time_guess: None,
            records: Vec::new(),
            start_ns: None,
            ordered: true,
            last_ns: i64::MIN,
            devices: Names::default(),
            skipped: 0,
            first_skip: None,
            empty: 0,
            filtered: 0,
        }
    }

    /// Whether as many requests are held as the options ask for.
    pub(super) fn full(&self) -> bool {
        self.options.limit.is_some_and(|limit| self.records.len() as u64 >= limit)
    }

    /// Reports a malformed line: skipped and counted if lenient, an error otherwise.
    pub(super) fn fault(&mut self, error: WorkloadError) -> Result<(), WorkloadError> {
        if !self.options.lenient {
            return Err(error);
        }
        self.skipped += 1;
        self.first_skip.get_or_insert_with(|| error.to_string());
        Ok(())
    }

    /// Adds a request, unless it is filtered away; the error says what is wrong with it.
    pub(super) fn push(&mut self, row: Row<'_>) -> Result<(), String> {
        let row = Row { offset: row.offset.saturating_add(self.options.shift_bytes), ..row };
        if self.options.device.as_deref().is_some_and(|wanted| wanted != row.device.as_ref()) {
            self.filtered += 1;
            self.device(&row.device)?;
            return Ok(());
        }
        if row.op == Op::Flush {
            return self.add(&row, 0, 0);
        }
        if row.bytes == 0 {
            self.empty += 1;
            return Ok(());
        }
        if row.offset.checked_add(row.bytes).is_none_or(|end| end > 1 << 62) {
            return Err(format!("{} bytes at {} end beyond 2^62", row.bytes, row.offset));
        }
        if row.bytes > BYTES_MAX && row.op != Op::Trim {
            return Err(format!("a {} of {} bytes; is the size in another unit?", row.op.name(), row.bytes));
        }
        if row.bytes > TRIM_MAX {
            return Err(format!("a trim of {} bytes, more than 2 TiB; is the size in another unit?", row.bytes));
        }
        let (mut offset, mut left) = (row.offset, row.bytes);
        while left > 0 {
            let bytes = left.min(BYTES_MAX);
            self.add(&row, offset, bytes)?;
            (offset, left) = (offset + bytes, left - bytes);
        }
        Ok(())
    }

    fn add(&mut self, row: &Row<'_>, offset: u64, bytes: u64) -> Result<(), String> {
        let start = *self.start_ns.get_or_insert(row.time_ns);
        let since = row.time_ns - start;
        if since.unsigned_abs() > u128::from(u64::MAX / 4) {
            return Err("its time is more than 146 years from the first request's".to_owned());
        }
        let since = since as i64;
        let device = self.device(&row.device)?;
        self.ordered &= since >= self.last_ns;
        self.last_ns = since;
        let at_ns = biased(since);
        self.records.push(Record { at_ns, offset, bytes: bytes as u32, device, op: row.op, fua: row.fua });
        Ok(())
    }

    fn device(&mut self, name: &str) -> Result<u16, String> {
        u16::try_from(self.devices.number(name)).map_err(|_| "more than 65536 devices; filter by device".to_owned())
    }

    /// The finished trace.
    ///
    /// # Errors
    /// If no request is left, with the reason.
    pub(super) fn finish(mut self) -> Result<Trace, WorkloadError> {
        if self.records.is_empty() {
            return Err(WorkloadError::Empty { file: self.file.clone(), why: self.why_empty() });
        }
        self.order();
        if self.options.shift_bytes > 0 {
            self.notes.push(format!("{} bytes are added to every address", self.options.shift_bytes));
        }
        let devices = match &self.options.device {
            Some(only) => {
                self.records.iter_mut().for_each(|r| r.device = 0);
                self.notes.push(format!(
                    "only device {only}: {} requests of {} other devices left out",
                    self.filtered,
                    self.devices.list().len() - 1
                ));
                vec![only.clone()]
            }
            None => self.devices.list().to_vec(),
        };
        if self.empty > 0 {
            self.notes.push(format!("{} requests of zero bytes left out", self.empty));
        }
        if let Some(first) = &self.first_skip {
            self.notes.push(format!("{} malformed lines or records skipped; the first: {first}", self.skipped));
        }
        Ok(Trace {
            name: self.file,
            format: self.format,
            records: self.records,
            devices,
            notes: self.notes,
            skipped: self.skipped,
            timed: self.timed,
            time_guess: self.time_guess,
        })
    }

    /// Restores the order of arrival and counts time from the first arrival.
    fn order(&mut self) {
        let start = self.records.iter().map(|record| record.at_ns).min().unwrap_or(0);
        for record in &mut self.records {
            record.at_ns = if self.timed { record.at_ns - start } else { 0 };
        }
        if !self.ordered && self.timed {
            let late = self.records.windows(2).filter(|w| w[1].at_ns < w[0].at_ns).count();
            self.notes.push(format!(
                "times go back at {late} places; requests are put in order of time, equal times in file order"
            ));
            self.records.sort_by_key(|r| r.at_ns);
        }
    }

    fn why_empty(&self) -> String {
        match (&self.options.device, self.filtered) {
            (Some(device), 1..) => {
                let some: Vec<&str> = self.devices.list().iter().take(20).map(String::as_str).collect();
                format!(
                    "no request is of device {device}; the file has {} devices: {}",
                    self.devices.list().len(),
                    some.join(", ")
                )
            }
            _ if self.skipped > 0 => {
                let first = self.first_skip.as_deref().unwrap_or_default();
                format!("all {} lines or records are malformed; the first: {first}", self.skipped)
            }
            _ if self.empty > 0 => format!("all {} requests have zero bytes", self.empty),
            _ => "there are none in it".to_owned(),
        }
    }
}
