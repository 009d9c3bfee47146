//! A trace played back on a device of another size.

use super::Trace;
use super::footprint::Extents;
use crate::error::WorkloadError;
use crate::request::{Op, Request, Source};

/// How addresses of the trace become addresses of the device. In all three, devices of the trace
/// are stacked one after another in order of first appearance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Map {
    /// Touched pages are packed in address order; what was adjacent stays adjacent, gaps vanish.
    /// Every page keeps its own identity, so overwrites and locality are those of the trace.
    #[default]
    Dense,
    /// Addresses modulo the logical space: distinct pages may fall together.
    Fold,
    /// Addresses multiplied by logical space / span of the trace, to the start of a page:
    /// neighbours may fall together (or apart, on a larger space).
    Scale,
}

/// How a trace is played back.
#[derive(Clone, Copy, Debug)]
pub struct ReplayOptions {
    /// Mapping of addresses.
    pub map: Map,
    /// How often the trace is played; `None` for ever.
    pub repeat: Option<u64>,
    /// Arrival times are multiplied by this; 0.5 plays twice as fast.
    pub time_scale: f64,
}

impl Default for ReplayOptions {
    /// Dense, once, at the trace's own speed.
    fn default() -> Self {
        ReplayOptions { map: Map::Dense, repeat: Some(1), time_scale: 1.0 }
    }
}

/// The source that plays a trace.
pub struct Replay {
    requests: Vec<Request>,
    next: usize,
    laps_left: Option<u64>,
    lap_start_ns: u64,
    /// Time from the start of a lap to the start of the next.
    lap_ns: u64,
    timed: bool,
    description: String,
}

impl Replay {
    /// Maps `trace` onto `logical_bytes`; requests keep their order.
    ///
    /// # Errors
    /// If the trace does not fit (dense), if a request is larger than the space (fold, scale), or
    /// if an option makes no sense.
    pub fn new(
        trace: &Trace,
        options: ReplayOptions,
        logical_bytes: u64,
        page_bytes: u32,
    ) -> Result<Replay, WorkloadError> {
        check(options, page_bytes)?;
        let logical_bytes = logical_bytes / u64::from(page_bytes) * u64::from(page_bytes);
        let mapping = Mapping::new(trace, options.map, logical_bytes, page_bytes)?;
        let mut requests = Vec::with_capacity(trace.records.len());
        for record in &trace.records {
            let at_ns = match options.time_scale {
                1.0 => record.at_ns,
                scale => (record.at_ns as f64 * scale) as u64,
            };
            let (op, bytes) = (record.op, record.bytes());
            let offset = if op == Op::Flush { 0 } else { mapping.place(record)? };
            requests.push(Request { at_ns, op, offset, bytes, fua: record.fua });
        }
        let span_ns = requests.last().map_or(0, |r| r.at_ns);
        // The next lap starts one mean gap after the last request.
        let lap_ns = span_ns + span_ns / (requests.len() as u64).max(1);
        let laps = options.repeat.map_or("for ever".to_owned(), |n| format!("{n} times"));
        let description = format!(
            "trace {} ({}, {} requests, {} devices) {}, {laps}, times x {}",
            trace.name,
            trace.format,
            trace.records.len(),
            trace.devices.len(),
            mapping.rule,
            options.time_scale,
        );
        Ok(Replay {
            requests,
            next: 0,
            laps_left: options.repeat,
            lap_start_ns: 0,
            lap_ns,
            timed: trace.timed,
            description,
        })
    }

    /// The mapped requests of one lap.
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }
}

fn check(options: ReplayOptions, page_bytes: u32) -> Result<(), WorkloadError> {
    let bad = |option: &str, value: String, why: &str| {
        Err(WorkloadError::BadValue { option: option.to_owned(), value, why: why.to_owned() })
    };
    if !(options.time_scale >= 0.0 && options.time_scale <= 1e6) {
        return bad("time_scale", options.time_scale.to_string(), "it takes a number from 0 to 1e6");
    }
    if options.repeat == Some(0) {
        return bad("repeat", "0".to_owned(), "a trace is played at least once");
    }
    if page_bytes == 0 {
        return bad("page_bytes", "0".to_owned(), "a page has at least one byte");
    }
    Ok(())
}

/// A mapping with what it needs.
struct Mapping<'t> {
    trace: &'t Trace,
    map: Map,
    extents: Extents,
    starts: Vec<u64>,
    span: u64,
    logical_bytes: u64,
    page_bytes: u64,
    rule: String,
}

impl<'t> Mapping<'t> {
    fn new(trace: &'t Trace, map: Map, logical_bytes: u64, page_bytes: u32) -> Result<Self, WorkloadError> {
        let extents = Extents::of(trace, page_bytes, |_| true);
        let (starts, span) = extents.stacked(trace.devices.len());
        let page_bytes = u64::from(page_bytes);
        let space = logical_bytes / page_bytes;
        if map == Map::Dense && extents.pages > space {
            return Err(WorkloadError::DoesNotFit {
                what: format!("trace {}", trace.name),
                why: format!(
                    "it touches {} distinct pages of {page_bytes} B, the logical space has {space}; take a larger device, or map by fold or scale",
                    extents.pages
                ),
            });
        }
        let rule = match map {
            Map::Dense => {
                format!("mapped densely: its {} touched pages packed in address order into {space}", extents.pages)
            }
            Map::Fold => {
                format!("folded: addresses modulo {logical_bytes} B, devices stacked to {span} B")
            }
            Map::Scale => {
                format!("scaled: addresses times {logical_bytes}/{span}, to the start of a page")
            }
        };
        Ok(Mapping { trace, map, extents, starts, span, logical_bytes, page_bytes, rule })
    }

    fn place(&self, record: &super::Record) -> Result<u64, WorkloadError> {
        if self.map == Map::Dense {
            return Ok(self.extents.dense_offset(record));
        }
        let bytes = record.bytes();
        if bytes > self.logical_bytes {
            return Err(WorkloadError::DoesNotFit {
                what: format!("trace {}", self.trace.name),
                why: format!("a request of {bytes} B is larger than the logical space of {} B", self.logical_bytes),
            });
        }
        let address = self.starts[record.device()].saturating_add(record.offset);
        let offset = match self.map {
            Map::Scale => {
                let scaled = u128::from(address) * u128::from(self.logical_bytes) / u128::from(self.span.max(1));
                let page = scaled as u64 / self.page_bytes * self.page_bytes;
                page + record.offset % self.page_bytes
            }
            _ => address % self.logical_bytes,
        };
        // A request that would wrap around ends at the end of the space instead.
        Ok(offset.min((self.logical_bytes - bytes) / self.page_bytes * self.page_bytes))
    }
}

impl Source for Replay {
    fn fill(&mut self, out: &mut [Request]) -> Result<usize, WorkloadError> {
        let mut filled = 0;
        while filled < out.len() {
            if self.laps_left == Some(0) || self.requests.is_empty() {
                break;
            }
            let n = (out.len() - filled).min(self.requests.len() - self.next);
            let batch = &self.requests[self.next..self.next + n];
            for (to, from) in out[filled..].iter_mut().zip(batch) {
                *to = Request { at_ns: from.at_ns.saturating_add(self.lap_start_ns), ..*from };
            }
            (filled, self.next) = (filled + n, self.next + n);
            if self.next == self.requests.len() {
                self.next = 0;
                self.laps_left = self.laps_left.map(|n| n - 1);
                self.lap_start_ns = self.lap_start_ns.saturating_add(self.lap_ns);
            }
        }
        Ok(filled)
    }

    fn timed(&self) -> bool {
        self.timed
    }

    fn describe(&self) -> String {
        self.description.clone()
    }
}
