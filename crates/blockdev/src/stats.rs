//! What clients asked, how long it took, and the same as text for Prometheus.

use crate::contract::DiskReport;
use hdrhistogram::Histogram;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What a request asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// Bytes.
    Read,
    /// To keep bytes.
    Write,
    /// To make what was written survive.
    Flush,
    /// To forget.
    Trim,
    /// Zeros.
    Zero,
    /// Anything else: what is known of a range, or to bring it near.
    Other,
}

impl Op {
    /// Every kind, in the order of reports.
    pub const ALL: [Self; 6] = [Self::Read, Self::Write, Self::Flush, Self::Trim, Self::Zero, Self::Other];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Trim => "trim",
            Self::Zero => "write_zeroes",
            Self::Other => "other",
        }
    }
}

/// A count of requests of one kind.
type Count = fn(&Requests) -> u64;

/// Longer requests count as this long.
const LONGEST: Duration = Duration::from_secs(3600);

/// Requests of one kind.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// How many were answered, errors among them.
    pub count: u64,
    /// How many were answered with an error.
    pub errors: u64,
    /// Bytes that they named.
    pub bytes: u64,
    /// From the request being read to its answer being ready, in nanoseconds; `None` before the
    /// first.
    latency_ns: Option<Histogram<u64>>,
}

impl Requests {
    fn record(&mut self, bytes: u64, took: Duration, failed: bool) {
        self.count += 1;
        self.errors += u64::from(failed);
        self.bytes += bytes;
        if self.latency_ns.is_none() {
            self.latency_ns = Histogram::new_with_bounds(1, LONGEST.as_nanos() as u64, 2).ok();
        }
        if let Some(latency) = &mut self.latency_ns {
            latency.saturating_record(took.as_nanos() as u64);
        }
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.errors += other.errors;
        self.bytes += other.bytes;
        match (&mut self.latency_ns, &other.latency_ns) {
            (Some(mine), Some(theirs)) => {
                // Both have the same bounds.
                let _ = mine.add(theirs);
            }
            (mine @ None, Some(theirs)) => *mine = Some(theirs.clone()),
            (_, None) => {}
        }
    }

    /// What was recorded since `earlier`, an earlier state of the same counts.
    fn since(&self, earlier: &Self) -> Self {
        let mut latency_ns = self.latency_ns.clone();
        if let (Some(mine), Some(theirs)) = (&mut latency_ns, &earlier.latency_ns) {
            let _ = mine.subtract(theirs);
        }
        Self {
            count: self.count - earlier.count,
            errors: self.errors - earlier.errors,
            bytes: self.bytes - earlier.bytes,
            latency_ns,
        }
    }

    /// The time within which this share of the requests was done, in seconds; `None` if there were
    /// none.
    #[must_use]
    pub fn quantile_s(&self, share: f64) -> Option<f64> {
        let latency = self.latency_ns.as_ref().filter(|latency| !latency.is_empty())?;
        Some(latency.value_at_quantile(share) as f64 / 1e9)
    }

    fn sum_s(&self) -> f64 {
        self.latency_ns.as_ref().map_or(0.0, |latency| latency.mean() * latency.len() as f64 / 1e9)
    }
}

/// Requests of every kind.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    ops: [Requests; Op::ALL.len()],
}

impl Snapshot {
    /// Requests of one kind.
    #[must_use]
    pub const fn of(&self, op: Op) -> &Requests {
        &self.ops[op as usize]
    }

    fn add(&mut self, other: &Self) {
        self.ops.iter_mut().zip(&other.ops).for_each(|(mine, theirs)| mine.add(theirs));
    }

    /// What was recorded since `earlier`, an earlier snapshot of the same server.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut ops = self.ops.clone();
        for (now, then) in ops.iter_mut().zip(&earlier.ops) {
            *now = now.since(then);
        }
        Self { ops }
    }
}

/// What one connection recorded; only that connection writes it.
#[derive(Debug, Default)]
pub struct Meter(Mutex<Snapshot>);

impl Meter {
    /// Records a request that is answered now.
    pub fn record(&self, op: Op, bytes: u64, begin: Instant, failed: bool) {
        let took = begin.elapsed();
        locked(&self.0).ops[op as usize].record(bytes, took, failed);
    }
}

#[derive(Debug, Default)]
struct Meters {
    open: Vec<Arc<Meter>>,
    closed: Snapshot,
    connections: u64,
}

/// What all connections recorded.
#[derive(Debug, Default)]
pub struct Stats(Mutex<Meters>);

impl Stats {
    /// A meter for a new connection.
    #[must_use]
    pub fn open(&self) -> Arc<Meter> {
        let meter = Arc::<Meter>::default();
        let mut meters = locked(&self.0);
        meters.open.push(Arc::clone(&meter));
        meters.connections += 1;
        meter
    }

    /// Keeps what a connection recorded that has ended.
    pub fn close(&self, meter: &Arc<Meter>) {
        let mut meters = locked(&self.0);
        if let Some(at) = meters.open.iter().position(|open| Arc::ptr_eq(open, meter)) {
            meters.open.swap_remove(at);
            let last = locked(&meter.0).clone();
            meters.closed.add(&last);
        }
    }

    /// Everything so far.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let meters = locked(&self.0);
        let mut sum = meters.closed.clone();
        meters.open.iter().for_each(|meter| sum.add(&locked(&meter.0)));
        sum
    }

    /// Connections that are open, and all there ever were.
    #[must_use]
    pub fn connections(&self) -> (u64, u64) {
        let meters = locked(&self.0);
        (meters.open.len() as u64, meters.connections)
    }

    /// Everything in the text format of Prometheus, version 0.0.4.
    #[must_use]
    pub fn prometheus(&self, report: &DiskReport, size_bytes: u64) -> String {
        let snapshot = self.snapshot();
        let (open, connections) = self.connections();
        let mut out = String::new();
        let labelled: [(&str, &str, Count); 3] = [
            ("openftl_requests_total", "Requests answered.", |requests| requests.count),
            ("openftl_request_errors_total", "Requests answered with an error.", |requests| requests.errors),
            ("openftl_request_bytes_total", "Bytes that requests named.", |requests| requests.bytes),
        ];
        for (name, help, value) in labelled {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter");
            for op in Op::ALL {
                let _ = writeln!(out, "{name}{{op=\"{}\"}} {}", op.name(), value(snapshot.of(op)));
            }
        }
        let name = "openftl_request_seconds";
        let _ = writeln!(out, "# HELP {name} Time from a request to its answer.\n# TYPE {name} summary");
        for op in Op::ALL {
            let requests = snapshot.of(op);
            for share in [0.5, 0.99, 0.999] {
                if let Some(seconds) = requests.quantile_s(share) {
                    let _ = writeln!(out, "{name}{{op=\"{}\",quantile=\"{share}\"}} {seconds}", op.name());
                }
            }
            let _ = writeln!(out, "{name}_sum{{op=\"{}\"}} {}", op.name(), requests.sum_s());
            let _ = writeln!(out, "{name}_count{{op=\"{}\"}} {}", op.name(), requests.count);
        }
        for (name, kind, help, value) in [
            ("openftl_connections", "gauge", "Connections open.", open),
            ("openftl_connections_total", "counter", "Connections accepted.", connections),
            ("openftl_size_bytes", "gauge", "Size of the served device.", size_bytes),
            ("openftl_host_pages_total", "counter", "Flash pages programmed for writes.", report.host_programs),
            ("openftl_flash_pages_total", "counter", "Flash pages programmed in all.", report.programs),
            ("openftl_flash_reads_total", "counter", "Flash pages read in all.", report.reads),
            ("openftl_erases_total", "counter", "Blocks erased.", report.erases),
            ("openftl_free_blocks", "gauge", "Blocks that can be programmed at once.", report.free_blocks),
            ("openftl_waiting_trim_bytes", "gauge", "Trimmed, and not yet told.", report.waiting_trim_bytes),
            ("openftl_ftl_ram_bytes", "gauge", "RAM that the FTLs hold.", report.ram_bytes),
            ("openftl_worn_out", "gauge", "1 if the device takes no more writes.", u64::from(report.worn_out)),
        ] {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        }
        out
    }
}

/// What a panic elsewhere left is still worth reporting.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_closed_connections_recorded_stays() {
        let stats = Stats::default();
        let (first, second) = (stats.open(), stats.open());
        let begin = Instant::now();
        first.record(Op::Write, 4096, begin, false);
        stats.close(&first);
        let earlier = stats.snapshot();
        second.record(Op::Write, 512, begin, true);
        let writes = stats.snapshot().of(Op::Write).clone();
        assert_eq!((writes.count, writes.errors, writes.bytes), (2, 1, 4608));
        let since = stats.snapshot().since(&earlier);
        assert_eq!((since.of(Op::Write).count, since.of(Op::Write).bytes), (1, 512));
        assert!(since.of(Op::Write).quantile_s(0.5).is_some() && since.of(Op::Read).quantile_s(0.5).is_none());
        assert_eq!(stats.connections(), (1, 2));
        let report = DiskReport { programs: 7, ..DiskReport::default() };
        let text = stats.prometheus(&report, 1 << 20);
        for line in [
            "openftl_requests_total{op=\"write\"} 2",
            "openftl_flash_pages_total 7",
            "# TYPE openftl_connections gauge",
            "openftl_connections 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
