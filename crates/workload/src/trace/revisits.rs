//! Where and when a trace comes back to the same data ([`crate::revisits`]).
//!
//! 1. Requests of a kind that go on where the last on their device ended make a run. Writes and
//!    trims are counted together, and a flush ends their runs.
//! 2. A run's first byte and its length tell extents apart.
//! 3. The runs are gone through twice: first for the regions that are accessed by address, then for
//!    the kinds of step.
//! 4. Of a long trace, stretches are kept that are evenly spread over it.

use super::fit::sizes;
use super::footprint::Extents;
use super::info::percent;
use super::{Record, Trace};
use crate::profile::SizeShare;
use crate::request::Op;
use crate::revisits::{
    Extent, Kind, Layout, PAGE_BYTES, REVISITS_VERSION, Revisits, RunRequests, State, depth_bin, order,
};
use std::collections::BTreeMap;

/// Sizes of requests kept as they are, of runs that are about as long.
const SIZES_KEPT: usize = 8;

/// A run is cut after so many bytes, so that a sequence without end has more than one.
const MOST_BYTES: u64 = 1 << 20;

/// Runs kept at most, and in how many stretches if there are more.
const MOST_RUNS: usize = 1 << 20;
const STRETCHES: usize = 256;

/// Steps to new extents that are told apart, up and down.
const MOST_STEP: i64 = 16;

struct Run {
    extent: Extent,
    /// Sizes of its requests if they are several.
    requests: Vec<u64>,
}

/// Runs in the order in which they begin.
#[derive(Default)]
struct Runs {
    runs: Vec<Run>,
    /// Runs begun before each flush.
    flushes: Vec<usize>,
}

/// Revisits of the reads, or of writes and trims, and how many of all runs they keep; `None` if the
/// trace has none.
pub(super) fn revisits(trace: &Trace, reads: bool, touched: &Extents) -> Option<(Revisits, usize, usize)> {
    let all = Runs::of(trace, reads, touched);
    let (found, kept) = (all.runs.len(), all.kept(MOST_RUNS, STRETCHES));
    let extents: BTreeMap<Extent, u32> = counted(kept.runs.iter().map(|run| run.extent));
    let layout = Layout::new(extents.keys().copied().collect());
    let counts: Vec<u32> = extents.into_values().collect();
    let place = |run: &Run| layout.extents.partition_point(|extent| *extent < run.extent) as u32;
    let path: Vec<u32> = kept.runs.iter().map(place).collect();
    let orders = Steps::of(&layout, &counts, &path, &vec![0; layout.regions]).orders;
    let steps = Steps::of(&layout, &counts, &path, &orders);
    if path.is_empty() {
        return None;
    }
    let unit_bytes = unit(&layout.extents);
    let page = |extent: &Extent| (extent.offset / PAGE_BYTES) as i64;
    let written = layout.extents.partition_point(|extent| !extent.trim);
    let (writes, trims) = layout.extents.split_at(written);
    let pages = deltas(writes.iter().map(page)).into_iter().chain(deltas(trims.iter().map(page)));
    let revisits = Revisits {
        version: REVISITS_VERSION,
        unit_bytes,
        pages: pages.map(|step| step as u64).collect(),
        starts: layout.extents.iter().map(|extent| extent.offset % PAGE_BYTES / unit_bytes).collect(),
        lengths: layout.extents.iter().map(|extent| extent.bytes / unit_bytes).collect(),
        runs: counts,
        trimmed: trims.len() as u64,
        path: deltas(path.iter().map(|&extent| i64::from(layout.region[extent as usize]))),
        flushes: deltas(kept.flushes.iter().map(|&runs| runs as i64)).into_iter().map(|step| step as u64).collect(),
        orders,
        kinds: steps.kinds,
        depths: steps.depths,
        news: steps.news,
        requests: requests(&kept.runs),
    };
    Some((revisits, path.len(), found))
}

fn counted<T: Ord>(items: impl Iterator<Item = T>) -> BTreeMap<T, u32> {
    let mut counts = BTreeMap::new();
    items.for_each(|item| *counts.entry(item).or_default() += 1);
    counts
}

/// Each less the one before.
fn deltas(values: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut last = 0;
    values.map(|value| value - std::mem::replace(&mut last, value)).collect()
}

/// The largest power of two up to a page that divides all offsets and lengths.
fn unit(extents: &[Extent]) -> u64 {
    let bits = extents.iter().fold(PAGE_BYTES, |bits, extent| bits | extent.offset | extent.bytes);
    1 << bits.trailing_zeros()
}

impl Runs {
    fn of(trace: &Trace, reads: bool, touched: &Extents) -> Runs {
        let mut found = Runs::default();
        let nothing = (usize::MAX, u64::MAX);
        // The run of each device, and where it would go on.
        let mut open: Vec<(usize, u64)> = vec![nothing; trace.devices.len()];
        for record in trace.records.iter().filter(|record| (record.op == Op::Read) == reads) {
            if record.op == Op::Flush {
                found.flushes.push(found.runs.len());
                open.fill(nothing);
            }
            if record.bytes > 0 {
                let (run, end) = &mut open[record.device()];
                found.access(record, touched, run, *end);
                *end = record.end();
            }
        }
        found
    }

    /// A request, where the last run of its device would go on at `end`.
    fn access(&mut self, record: &Record, touched: &Extents, run: &mut usize, end: u64) {
        let trim = record.op == Op::Trim;
        let goes_on = |run: &&mut Run| run.extent.trim == trim && run.extent.bytes < MOST_BYTES;
        match self.runs.get_mut(*run).filter(|_| end == record.offset).filter(goes_on) {
            Some(run) => {
                if run.requests.is_empty() {
                    run.requests.push(run.extent.bytes);
                }
                run.extent.bytes += record.bytes();
                run.requests.push(record.bytes());
            }
            None => {
                *run = self.runs.len();
                let extent = Extent { trim, offset: touched.dense_offset(record), bytes: record.bytes() };
                self.runs.push(Run { extent, requests: Vec::new() });
            }
        }
    }

    /// At most so many runs, in so many stretches.
    fn kept(self, most: usize, stretches: usize) -> Runs {
        let all = self.runs.len();
        if all <= most {
            return self;
        }
        let kept = |run: usize| {
            let stretch = run * stretches / all;
            run - (stretch * all).div_ceil(stretches) < most / stretches
        };
        let mut before = vec![0; all + 1];
        (0..all).for_each(|run| before[run + 1] = before[run] + usize::from(kept(run)));
        let flushes = self.flushes.into_iter().filter(|&runs| runs < all && kept(runs));
        Runs {
            flushes: flushes.map(|runs| before[runs]).collect(),
            runs: self.runs.into_iter().enumerate().filter(|(run, _)| kept(*run)).map(|(_, run)| run).collect(),
        }
    }
}

/// What is counted of steps.
struct Steps {
    orders: Vec<u8>,
    kinds: Vec<[u32; 5]>,
    depths: Vec<[i32; 3]>,
    news: Vec<[i32; 3]>,
}

impl Steps {
    fn of(layout: &Layout, runs: &[u32], path: &[u32], orders: &[u8]) -> Steps {
        let mut state = State::new(layout, runs.to_vec(), orders);
        let mut kinds: BTreeMap<u32, [u32; 4]> = BTreeMap::new();
        let (mut depths, mut news) = (Vec::new(), Vec::new());
        // Runs of each region that go on by address, and all.
        let mut by_address = vec![(0, 0); layout.regions];
        for &extent in path {
            let region = layout.region[extent as usize];
            let (kind, case) = (state.kind(extent), state.choice(region).case);
            kinds.entry(case as u32).or_default()[kind as usize] += 1;
            let mut goes_on = state.goes_on(extent);
            match kind {
                Kind::New => {
                    let new = state.news(region).partition_point(|&new| new < extent);
                    let step = new as i64 - state.after_new(region) as i64;
                    goes_on |= step == 0;
                    news.push((orders[region as usize], step.clamp(-MOST_STEP, MOST_STEP)));
                }
                Kind::Old => {
                    let all = state.olds(region);
                    let depth = state.depth(region, extent).unwrap_or(0);
                    depths.push((all.ilog2() + 1, depth_bin(depth, all)));
                }
                Kind::Next | Kind::Again => {}
            }
            let (part, all) = &mut by_address[region as usize];
            (*part, *all) = (*part + u64::from(goes_on), *all + 1);
            state.step(extent, kind);
        }
        Steps {
            orders: by_address.into_iter().map(|(part, all)| order(part, all)).collect(),
            kinds: kinds.into_iter().map(|(case, [next, again, new, old])| [case, next, again, new, old]).collect(),
            depths: counted(depths.into_iter())
                .into_iter()
                .map(|((bits, bin), n)| [bits as i32, bin, n as i32])
                .collect(),
            news: counted(news.into_iter())
                .into_iter()
                .map(|((order, step), n)| [i32::from(order), step as i32, n as i32])
                .collect(),
        }
    }
}

/// Requests of runs, by the power of two that their length is up to.
fn requests(runs: &[Run]) -> Vec<RunRequests> {
    // Runs of one request and all, and the sizes of the others' requests.
    let mut lengths: BTreeMap<u64, (u64, u64, Vec<u64>)> = BTreeMap::new();
    for run in runs {
        let (one, all, sizes) = lengths.entry(run.extent.bytes.next_power_of_two()).or_default();
        *all += 1;
        *one += u64::from(run.requests.is_empty());
        sizes.extend(&run.requests);
    }
    let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
    let share = |share: SizeShare| SizeShare { percent: rounded(share.percent).max(0.001), ..share };
    let of_length = |(upto_bytes, (one, all, requests)): (u64, (u64, u64, Vec<u64>))| RunRequests {
        upto_bytes,
        one_percent: rounded(percent(one, all)),
        requests_per_run: if all > one { rounded(requests.len() as f64 / (all - one) as f64) } else { 1.0 },
        sizes: sizes(requests.into_iter(), SIZES_KEPT).into_iter().map(share).collect(),
    };
    lengths.into_iter().map(of_length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_trace_is_kept_in_stretches() {
        let run = |at: u64| Run { extent: Extent { trim: false, offset: at, bytes: 1 }, requests: Vec::new() };
        let runs = || Runs { runs: (0..100).map(run).collect(), flushes: vec![0, 51, 54, 60, 100] };
        let kept = runs().kept(20, 4);
        let at: Vec<u64> = kept.runs.iter().map(|run| run.extent.offset).collect();
        assert_eq!(at, [0, 25, 50, 75].map(|first| first..first + 5).into_iter().flatten().collect::<Vec<_>>());
        assert_eq!(kept.flushes, [0, 11, 14]);
        assert_eq!(runs().kept(100, 4).flushes, [0, 51, 54, 60, 100]);
    }

    #[test]
    fn units_divide_everything() {
        let extent = |offset: u64, bytes: u64| Extent { trim: false, offset, bytes };
        assert_eq!(unit(&[extent(8192, 1 << 20)]), 4096);
        assert_eq!(unit(&[extent(8192, 4096), extent(12800, 1024)]), 512);
        assert_eq!(unit(&[extent(8192, 4096), extent(12800, 1023)]), 1);
    }
}
