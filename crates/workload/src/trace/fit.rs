//! From a trace to a [`Profile`].
//!
//! 1. The mix is counted, without flushes.
//! 2. A kind's requests that start where the last of the kind on their device ended are its
//!    sequential share.
//! 3. The alignment is the largest power of two, up to 64 KiB, that divides 95% of the starts of
//!    the other requests. The slots (of a page, or the alignment if larger) where they start are
//!    counted and ranked; the curve of their cumulative share is kept at a dozen points, with space
//!    measured in percent of what the trace touches.
//! 4. The 24 most frequent sizes are kept; the others are merged by power of two into their mean,
//!    which keeps the mean of the whole.
//! 5. Rate and coefficient of variation of the gaps are kept.
//! 6. Where and when the trace comes back to the same data is kept ([`crate::revisits`]), with its
//!    trims and flushes.

use super::footprint::Extents;
use super::info::{Gaps, percent, sequential_percent};
use super::revisits::revisits;
use super::{Record, Trace};
use crate::profile::{Arrivals, POPULARITY_PAGE_BYTES, Popularity, Profile, Side, SizeShare};
use crate::request::Op;
use std::collections::{BTreeMap, HashMap};

/// Points of the curve, percent of the pages where requests start.
const CURVE_POINTS: [f64; 12] = [0.1, 0.3, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 50.0, 70.0, 90.0, 100.0];

/// Sizes kept as they are.
const SIZES_KEPT: usize = 24;

/// Reduces a trace to a profile that [`Profile::to_toml`] writes and the workload `profile:FILE`
/// runs.
///
/// A trace of flushes alone gives a profile that only reads pages at random, since flushes are kept
/// with writes.
pub fn fit(trace: &Trace) -> Profile {
    let count = |op| trace.records.iter().filter(|r| r.op == op).count() as u64;
    let (reads, writes, trims) = (count(Op::Read), count(Op::Write), count(Op::Trim));
    let all = reads + writes + trims;
    let touched = Extents::of(trace, POPULARITY_PAGE_BYTES as u32, |_| true);
    let touched_bytes = touched.pages * POPULARITY_PAGE_BYTES;
    let align_bytes = alignment(trace);
    let slot_bytes = align_bytes.max(POPULARITY_PAGE_BYTES);
    let write_side = side(trace, Op::Write, &touched, slot_bytes);
    let read_side = side(trace, Op::Read, &touched, slot_bytes);
    let arrivals = Gaps::of(trace);
    let other = |own: &Option<Side>, other: &Option<Side>| own.clone().or_else(|| other.clone()).unwrap_or_else(plain);
    let mut assumptions: Vec<String> = Vec::new();
    match (reads, writes) {
        (0, _) => assumptions.push("reads, of which the trace has none, look like writes".to_owned()),
        (_, 0) => assumptions.push("writes, of which the trace has none, look like reads".to_owned()),
        _ => {}
    }
    let mut kept = |reads: bool, what: &str| {
        let (revisits, kept, all) = revisits(trace, reads, &touched)?;
        if kept < all {
            assumptions.push(format!("{kept} of {all} runs of {what} stand for all"));
        }
        Some(revisits)
    };
    let (updated, read) = (kept(false, "writes"), kept(true, "reads"));
    Profile {
        name: trace.name.clone(),
        source: format!("fitted to {} requests of {} ({})", trace.records.len(), trace.name, trace.format),
        assumptions: assumptions.join("; "),
        write_percent: percent(writes, all),
        trim_percent: percent(trims, all),
        footprint_bytes: touched_bytes,
        align_bytes,
        arrivals: (trace.timed && arrivals.per_second > 0.0)
            .then_some(Arrivals { per_second: arrivals.per_second.min(1e9), cv: arrivals.cv.min(1e6) }),
        writes: Side { revisits: updated, ..other(&write_side, &read_side) },
        reads: Side { revisits: read, ..other(&read_side, &write_side) },
    }
}

/// A side for a kind that does not occur at all.
fn plain() -> Side {
    let sizes = vec![SizeShare { bytes: POPULARITY_PAGE_BYTES, percent: 100.0 }];
    let popularity = Popularity::Curve { space: vec![100.0], share: vec![100.0] };
    Side { sequential_percent: 0.0, sizes, popularity, revisits: None }
}

fn side(trace: &Trace, op: Op, touched: &Extents, slot_bytes: u64) -> Option<Side> {
    let of_kind = || trace.records.iter().filter(|r| r.op == op);
    of_kind().next()?;
    Some(Side {
        sequential_percent: sequential_percent(trace, op),
        sizes: sizes(of_kind().map(Record::bytes), SIZES_KEPT),
        popularity: popularity(trace, op, touched.pages * POPULARITY_PAGE_BYTES, slot_bytes),
        revisits: None,
    })
}

/// As many of the most frequent sizes as `kept`, and the means of the others by power of two.
pub(super) fn sizes(values: impl Iterator<Item = u64>, kept: usize) -> Vec<SizeShare> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    let total: u64 = counts.values().sum();
    let mut frequent: Vec<(u64, u64)> = counts.into_iter().collect();
    frequent.sort_unstable_by_key(|(bytes, n)| (std::cmp::Reverse(*n), *bytes));
    let rare = frequent.split_off(frequent.len().min(kept));
    let mut octaves: BTreeMap<u32, (u128, u64)> = BTreeMap::new();
    for (bytes, n) in rare {
        let (sum, all) = octaves.entry(bytes.ilog2()).or_default();
        *sum += u128::from(bytes) * u128::from(n);
        *all += n;
    }
    // Whole sectors, as devices want them; below a sector whatever it was.
    let sector = |mean: u64| {
        if mean < 512 { mean.max(1) } else { (mean + 256) / 512 * 512 }
    };
    let merged = octaves.into_values().map(|(sum, n)| (sector((sum / u128::from(n)) as u64), n));
    let mut by_size: BTreeMap<u64, u64> = BTreeMap::new();
    for (bytes, n) in frequent.into_iter().chain(merged) {
        *by_size.entry(bytes).or_default() += n;
    }
    by_size.into_iter().map(|(bytes, n)| SizeShare { bytes, percent: percent(n, total) }).collect()
}

/// Calls `found` for each request of `op` that continues no run.
fn jumps(trace: &Trace, op: Op, mut found: impl FnMut(&Record)) {
    let mut ends = vec![u64::MAX; trace.devices.len()];
    for record in trace.records.iter().filter(|r| r.op == op) {
        let end = std::mem::replace(&mut ends[record.device()], record.end());
        if end != record.offset {
            found(record);
        }
    }
}

fn alignment(trace: &Trace) -> u64 {
    let mut divided = [0u64; 17];
    for op in [Op::Read, Op::Write] {
        jumps(trace, op, |record| {
            let power = record.offset.trailing_zeros().min(16) as usize;
            divided[..=power].iter_mut().for_each(|n| *n += 1);
        });
    }
    let enough = divided[0] as f64 * 0.95;
    let power = divided.iter().rposition(|n| *n as f64 >= enough);
    if divided[0] == 0 { POPULARITY_PAGE_BYTES } else { 1 << power.unwrap_or(0) }
}

fn popularity(trace: &Trace, op: Op, touched_bytes: u64, slot_bytes: u64) -> Popularity {
    let mut counts: HashMap<(usize, u64), u64> = HashMap::new();
    jumps(trace, op, |record| {
        *counts.entry((record.device(), record.offset / slot_bytes)).or_default() += 1;
    });
    let mut counts: Vec<u64> = counts.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let total: u64 = counts.iter().sum();
    let (mut space, mut share) = (Vec::new(), Vec::new());
    let (mut slots, mut sum) = (0usize, 0u64);
    for point in CURVE_POINTS {
        let upto = (counts.len() as f64 * point / 100.0).round() as usize;
        if upto <= slots {
            continue;
        }
        sum += counts[slots..upto].iter().sum::<u64>();
        slots = upto;
        // Half-touched slots can add up to more than was touched.
        space.push(percent(slots as u64 * slot_bytes, touched_bytes).min(100.0));
        share.push(percent(sum, total));
    }
    Popularity::Curve { space, share }
}
