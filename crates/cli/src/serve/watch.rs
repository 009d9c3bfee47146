//! How a served disk is doing, every so often and at the end.

use crate::output;
use crate::units::{bytes, count, duration_us, scaled};
use anyhow::{Context, Result};
use blockdev::nbd::Stop;
use blockdev::stats::{Op, Snapshot, Stats};
use blockdev::{BlockDevice, DiskReport};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Prints what a server did.
pub struct Watch<'a> {
    disk: &'a dyn BlockDevice,
    stats: Arc<Stats>,
    json: bool,
    begin: Instant,
    first: DiskReport,
}

/// What was done in a span of time.
struct Span {
    /// Seconds since the server began.
    at_s: f64,
    /// Its length in seconds.
    seconds: f64,
    requests: Snapshot,
    disk: DiskReport,
    connections: u64,
}

impl<'a> Watch<'a> {
    /// Begins now.
    pub fn new(disk: &'a dyn BlockDevice, stats: Arc<Stats>, json: bool) -> Result<Self> {
        let first = disk.report().context("the disk cannot be looked at")?;
        Ok(Self { disk, stats, json, begin: Instant::now(), first })
    }

    /// Prints a line every so many seconds until the server stops.
    pub fn run(&self, seconds: u32, stop: &Stop) {
        let (mut requests, mut disk, mut since) = (Snapshot::default(), self.first, self.begin);
        while !stop.wait(Duration::from_secs(seconds.into())) {
            // A disk that failed says so in the log.
            let Ok(now) = self.disk.report() else { return };
            let all = self.stats.snapshot();
            let span = self.span(since, all.since(&requests), now.since(&disk));
            let line = if self.json { format!("{}\n", span.in_json()) } else { format!("{}\n", span.in_text()) };
            // A reader that has gone does not stop the server.
            let _ = output::print(&line);
            (requests, disk, since) = (all, now, Instant::now());
        }
    }

    /// Prints everything that was done.
    pub fn total(&self) -> Result<()> {
        let Ok(now) = self.disk.report() else { return Ok(()) };
        let span = self.span(self.begin, self.stats.snapshot(), now.since(&self.first));
        let text = match self.json {
            true => format!("{}\n", json!({ "total": span.in_json() })),
            false => format!("In all: {}\n", span.in_text()),
        };
        output::print(&text)
    }

    fn span(&self, since: Instant, requests: Snapshot, disk: DiskReport) -> Span {
        let connections = self.stats.connections().0;
        let (at_s, seconds) = (self.begin.elapsed().as_secs_f64(), since.elapsed().as_secs_f64());
        Span { at_s, seconds, requests, disk, connections }
    }
}

impl Span {
    fn in_json(&self) -> Value {
        let ops: Map<String, Value> = Op::ALL
            .into_iter()
            .map(|op| {
                let requests = self.requests.of(op);
                let quantile = |share| requests.quantile_s(share).map(|s| s * 1e6);
                let value = json!({
                    "requests": requests.count,
                    "errors": requests.errors,
                    "bytes": requests.bytes,
                    "requests_per_s": requests.count as f64 / self.seconds,
                    "p50_us": quantile(0.5),
                    "p99_us": quantile(0.99),
                    "p999_us": quantile(0.999),
                });
                (op.name().to_owned(), value)
            })
            .collect();
        let disk = &self.disk;
        json!({
            "at_s": self.at_s,
            "seconds": self.seconds,
            "requests": ops,
            "write_amplification": disk.write_amplification(),
            "flash": {"host_programs": disk.host_programs, "programs": disk.programs, "reads": disk.reads, "erases": disk.erases},
            "free_blocks": disk.free_blocks,
            "waiting_trim_bytes": disk.waiting_trim_bytes,
            "ftl_ram_bytes": disk.ram_bytes,
            "worn_out": disk.worn_out,
            "connections": self.connections,
        })
    }

    fn in_text(&self) -> String {
        let mut parts = Vec::new();
        for op in Op::ALL {
            let requests = self.requests.of(op);
            if requests.count == 0 {
                continue;
            }
            let a_second = requests.count as f64 / self.seconds;
            let mut part = format!("{} {}/s", op.name(), scaled(a_second));
            if requests.bytes > 0 {
                part += &format!(" {}/s", bytes((requests.bytes as f64 / self.seconds) as u64));
            }
            let time = |share| requests.quantile_s(share).map_or_else(String::new, |s| duration_us(s * 1e6));
            part += &format!(" p50 {} p99 {}", time(0.5), time(0.99));
            if requests.errors > 0 {
                part += &format!(" {} errors", count(requests.errors));
            }
            parts.push(part);
        }
        if parts.is_empty() {
            parts.push("no requests".to_owned());
        }
        let amplification = self.disk.write_amplification().map_or_else(|| "none".to_owned(), |wa| format!("{wa:.2}"));
        parts.push(format!("write amplification {amplification}"));
        parts.push(format!("{} free blocks", count(self.disk.free_blocks)));
        if self.disk.waiting_trim_bytes > 0 {
            parts.push(format!("{} to be trimmed", bytes(self.disk.waiting_trim_bytes)));
        }
        if self.disk.worn_out {
            parts.push("WORN OUT".to_owned());
        }
        parts.push(format!("{} connected", count(self.connections)));
        format!("{:.0} s: {}", self.at_s, parts.join("; "))
    }
}
