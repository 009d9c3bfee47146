//! What a trace is like, in numbers.

use super::footprint::Extents;
use super::reuse::Reuse;
use super::{Footprint, Record, Trace};
use crate::request::Op;
use serde::Serialize;
use std::collections::BTreeMap;

/// Page size of all page counts here, bytes.
pub(super) const PAGE_BYTES: u32 = 4096;

/// A description of a trace. Pages are of 4 KiB. Percentages run from 0 to 100.
#[derive(Clone, Debug, Serialize)]
pub struct Info {
    /// File.
    pub name: String,
    /// Format it was read as.
    pub format: &'static str,
    /// Devices or volumes.
    pub devices: u64,
    /// Requests of every kind.
    pub requests: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Trims.
    pub trims: u64,
    /// Flushes.
    pub flushes: u64,
    /// Malformed lines skipped by a lenient reading.
    pub skipped: u64,
    /// Share of writes among all requests, percent.
    pub write_percent: f64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Sizes of reads, bytes.
    pub read_size: Percentiles,
    /// Sizes of writes, bytes.
    pub write_size: Percentiles,
    /// Distinct pages.
    pub footprint: Footprint,
    /// Page writes for each distinct page written.
    pub overwrite_ratio: f64,
    /// How unevenly page writes spread over the pages written.
    pub write_skew: Skew,
    /// How unevenly page reads spread over the pages read.
    pub read_skew: Skew,
    /// Writes that start where the last write on their device ended, percent.
    pub sequential_writes_percent: f64,
    /// Reads that start where the last read on their device ended, percent.
    pub sequential_reads_percent: f64,
    /// Reads, writes and trims that do not begin and end at pages, percent: an FTL reads the rest
    /// of a page before it writes a part.
    pub unaligned_percent: f64,
    /// The most frequent offset of a first byte within its page, bytes; 0 if all begin at pages.
    pub usual_shift_bytes: u64,
    /// Distinct pages written between two writes of a page; upper bins are up to 1/16 too low.
    pub write_reuse_pages: Percentiles,
    /// Whether there are arrival times; if not, the next three are 0.
    pub timed: bool,
    /// Time from first to last arrival, seconds.
    pub duration_s: f64,
    /// Mean arrival rate, requests a second.
    pub requests_per_second: f64,
    /// Coefficient of variation of the gaps between arrivals: 1 for Poisson, more if bursty.
    pub interarrival_cv: f64,
    /// What was guessed, left out or rearranged when the trace was read.
    pub notes: Vec<String>,
}

/// A distribution in a few numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// Values seen; if 0, so are all others.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Smallest.
    pub min: u64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Largest.
    pub max: u64,
}

/// How uneven accesses are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Skew {
    /// Share of accesses that go to the hottest 1% of the pages accessed, percent.
    pub hottest_1: f64,
    /// The same for 10%.
    pub hottest_10: f64,
    /// The same for 20%.
    pub hottest_20: f64,
    /// Exponent of Zipf's law of greatest likelihood for the ranked counts; 0 where all counts are
    /// equal. In a short trace even uniform accesses look skewed.
    pub zipf_theta: f64,
}

/// Describes a trace; O(n log n) in its page accesses.
pub fn info(trace: &Trace) -> Info {
    let count = |op| trace.records.iter().filter(|r| r.op == op).count() as u64;
    let (reads, writes) = (count(Op::Read), count(Op::Write));
    let touched = Extents::of(trace, PAGE_BYTES, |_| true);
    let written = Extents::of(trace, PAGE_BYTES, |r| r.op == Op::Write);
    let write_counts = page_counts(trace, Op::Write, &written);
    let page_writes: u64 = write_counts.iter().map(|c| u64::from(*c)).sum();
    let read = Extents::of(trace, PAGE_BYTES, |r| r.op == Op::Read);
    let sizes = |op| Percentiles::of(trace.records.iter().filter(|r| r.op == op).map(Record::bytes));
    let total = |op| trace.records.iter().filter(|r| r.op == op).map(Record::bytes).sum();
    let arrivals = Gaps::of(trace);
    Info {
        name: trace.name.clone(),
        format: trace.format,
        devices: trace.devices.len() as u64,
        requests: trace.records.len() as u64,
        reads,
        writes,
        trims: count(Op::Trim),
        flushes: count(Op::Flush),
        skipped: trace.skipped,
        write_percent: percent(writes, trace.records.len() as u64),
        read_bytes: total(Op::Read),
        written_bytes: total(Op::Write),
        read_size: sizes(Op::Read),
        write_size: sizes(Op::Write),
        footprint: Footprint { page_bytes: PAGE_BYTES, touched_pages: touched.pages, written_pages: written.pages },
        overwrite_ratio: page_writes as f64 / (written.pages.max(1)) as f64,
        write_skew: Skew::of(write_counts),
        read_skew: Skew::of(page_counts(trace, Op::Read, &read)),
        sequential_writes_percent: sequential_percent(trace, Op::Write),
        sequential_reads_percent: sequential_percent(trace, Op::Read),
        unaligned_percent: unaligned_percent(trace),
        usual_shift_bytes: usual_shift_bytes(trace),
        write_reuse_pages: reuse(trace, &written),
        timed: trace.timed,
        duration_s: arrivals.duration_s,
        requests_per_second: arrivals.per_second,
        interarrival_cv: arrivals.cv,
        notes: trace.notes.clone(),
    }
}

pub(super) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// Accesses of `op` to each page of `extents`, in dense order.
fn page_counts(trace: &Trace, op: Op, extents: &Extents) -> Vec<u32> {
    let mut counts = vec![0u32; extents.pages as usize];
    for record in trace.records.iter().filter(|r| r.op == op) {
        let range = extents.dense_range(record);
        for count in &mut counts[range.start as usize..range.end as usize] {
            *count = count.saturating_add(1);
        }
    }
    counts
}

fn unaligned_percent(trace: &Trace) -> f64 {
    let page = u64::from(PAGE_BYTES);
    let with_data = || trace.records.iter().filter(|r| r.op != Op::Flush);
    let unaligned = with_data().filter(|r| !r.offset.is_multiple_of(page) || !r.end().is_multiple_of(page));
    percent(unaligned.count() as u64, with_data().count() as u64)
}

/// Bytes that addresses are most often beyond the beginning of a page.
fn usual_shift_bytes(trace: &Trace) -> u64 {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for record in trace.records.iter().filter(|r| r.op != Op::Flush) {
        *counts.entry(record.offset % u64::from(PAGE_BYTES)).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(shift, count)| (*count, u64::MAX - shift)).map_or(0, |(shift, _)| shift)
}

fn reuse(trace: &Trace, written: &Extents) -> Percentiles {
    let mut reuse = Reuse::new(written.pages as usize);
    for record in trace.records.iter().filter(|r| r.op == Op::Write) {
        for page in written.dense_range(record) {
            reuse.touch(page as usize);
        }
    }
    Percentiles::of_bins(&reuse.bins)
}

/// Requests of `op` that start where the last of `op` on the same device ended, percent.
pub(super) fn sequential_percent(trace: &Trace, op: Op) -> f64 {
    let mut ends = vec![u64::MAX; trace.devices.len()];
    let (mut runs, mut all) = (0, 0);
    for record in trace.records.iter().filter(|r| r.op == op) {
        let end = std::mem::replace(&mut ends[record.device()], record.end());
        runs += u64::from(end == record.offset);
        all += 1;
    }
    percent(runs, all)
}

/// Arrival statistics.
pub(super) struct Gaps {
    pub(super) duration_s: f64,
    pub(super) per_second: f64,
    pub(super) cv: f64,
}

impl Gaps {
    pub(super) fn of(trace: &Trace) -> Gaps {
        let last_ns = trace.records.last().map_or(0, |r| r.at_ns);
        let gaps = trace.records.len().saturating_sub(1) as f64;
        if last_ns == 0 || gaps == 0.0 {
            return Gaps { duration_s: 0.0, per_second: 0.0, cv: 0.0 };
        }
        let mean = last_ns as f64 / gaps;
        let square = |w: &[Record]| ((w[1].at_ns - w[0].at_ns) as f64 - mean).powi(2);
        let variance = trace.records.windows(2).map(square).sum::<f64>() / gaps;
        Gaps { duration_s: last_ns as f64 / 1e9, per_second: 1e9 / mean, cv: variance.sqrt() / mean }
    }
}

impl Percentiles {
    fn of(values: impl Iterator<Item = u64>) -> Percentiles {
        let mut bins = BTreeMap::new();
        for value in values {
            *bins.entry(value).or_insert(0u64) += 1;
        }
        Percentiles::of_bins(&bins)
    }

    fn of_bins(bins: &BTreeMap<u64, u64>) -> Percentiles {
        let count: u64 = bins.values().sum();
        let (Some((&min, _)), Some((&max, _))) = (bins.first_key_value(), bins.last_key_value()) else {
            return Percentiles::default();
        };
        let at = |quantile: f64| {
            let rank = ((count as f64 * quantile).ceil() as u64).max(1);
            let mut seen = 0;
            let found = bins.iter().find(|(_, n)| {
                seen += **n;
                seen >= rank
            });
            found.map_or(max, |(value, _)| *value)
        };
        let sum: f64 = bins.iter().map(|(value, n)| *value as f64 * *n as f64).sum();
        Percentiles { count, mean: sum / count as f64, min, p50: at(0.5), p90: at(0.9), p99: at(0.99), max }
    }
}

impl Skew {
    pub(super) fn of(mut counts: Vec<u32>) -> Skew {
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let total: u64 = counts.iter().map(|c| u64::from(*c)).sum();
        let hottest = |share: f64| {
            let pages = (counts.len() as f64 * share).ceil() as usize;
            percent(counts[..pages.min(counts.len())].iter().map(|c| u64::from(*c)).sum(), total)
        };
        Skew {
            hottest_1: hottest(0.01),
            hottest_10: hottest(0.1),
            hottest_20: hottest(0.2),
            zipf_theta: zipf_theta(&counts),
        }
    }
}

/// Greatest likelihood over theta in 0..=5: the mean of ln(rank) under the law equals that of the
/// sample, and falls as theta rises, so bisection finds it. Beyond the first thousand ranks sums go
/// by segments of 1/64.
fn zipf_theta(sorted: &[u32]) -> f64 {
    let total: f64 = sorted.iter().map(|c| f64::from(*c)).sum();
    if sorted.len() < 2 || sorted.first() == sorted.last() {
        return 0.0;
    }
    let weighted = |(i, c): (usize, &u32)| f64::from(*c) * ((i + 1) as f64).ln();
    let sample = sorted.iter().enumerate().map(weighted).sum::<f64>() / total;
    let segments = rank_segments(sorted.len() as u64);
    let under = |theta: f64| {
        let (mut mass, mut logs) = (0.0, 0.0);
        for (log, length) in &segments {
            let weight = length * (-theta * log).exp();
            mass += weight;
            logs += weight * log;
        }
        logs / mass
    };
    let (mut low, mut high) = (0.0, 5.0);
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if under(middle) > sample { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// Logarithm of the middle rank and length of each segment.
fn rank_segments(n: u64) -> Vec<(f64, f64)> {
    let mut segments = Vec::new();
    let mut first = 1u64;
    while first <= n {
        let length = if first < 1000 { 1 } else { first / 64 }.min(n - first + 1);
        segments.push(((first as f64 + (length - 1) as f64 / 2.0).ln(), length as f64));
        first += length;
    }
    segments
}
