//! Where and when a trace comes back to the same data ([`crate::profile`]).
//!
//! 1. Requests of a kind that go on where the last on their device ended make a run.
//! 2. The page where a run begins tells extents apart; a class holds those that are accessed 1, 2
//!    to 3, 4 to 7 times and so on.
//! 3. The trace is taken for a cycle: depths are counted while it is played a second time, when
//!    nothing is new.
//! 4. Runs can overlap, extents here do not. So there are fewer of them, by as much as all are
//!    longer together than what was written.

use super::fit::sizes;
use super::footprint::Extents;
use super::info::percent;
use super::{Record, Trace};
use crate::profile::SizeShare;
use crate::request::Op;
use crate::revisits::{Coverage, PAGE_BYTES, RevisitClass, Revisits};
use crate::stack::Stack;
use std::collections::BTreeMap;

/// Parts of the footprint for which extents are counted.
const PARTS: u64 = 128;

/// A run is cut after so many bytes, so that a sequence without end has more than one.
const MOST_BYTES: u64 = 1 << 20;

struct Run {
    /// The page where it begins.
    page: u64,
    first: u64,
    bytes: u64,
    requests: Vec<u64>,
}

#[derive(Clone, Copy, Default)]
struct Extent {
    shift: u64,
    longest: u64,
    /// Whether its longest run is one request.
    one: bool,
    runs: u64,
    class: usize,
    /// Its place among those of its class, by address.
    rank: u32,
}

/// Revisits of the requests of one kind; `None` if there is none.
pub(super) fn revisits(trace: &Trace, op: Op, touched: &Extents) -> Option<Revisits> {
    let runs = runs(trace, op, touched);
    let mut extents: BTreeMap<u64, Extent> = BTreeMap::new();
    for run in &runs {
        let extent = extents.entry(run.page).or_insert(Extent { shift: run.first % PAGE_BYTES, ..Extent::default() });
        extent.runs += 1;
        if run.bytes > extent.longest {
            (extent.longest, extent.one) = (run.bytes, run.requests.len() == 1);
        }
    }
    let mut sizes_of_classes: Vec<u32> = Vec::new();
    for extent in extents.values_mut() {
        extent.class = extent.runs.ilog2() as usize;
        if sizes_of_classes.len() <= extent.class {
            sizes_of_classes.resize(extent.class + 1, 0);
        }
        extent.rank = sizes_of_classes[extent.class];
        sizes_of_classes[extent.class] += 1;
    }
    let spans = |extent: &Extent| (extent.shift + extent.longest).div_ceil(PAGE_BYTES);
    let all: u64 = extents.values().map(spans).sum();
    let accessed = Extents::of(trace, PAGE_BYTES as u32, |record| record.op == op).pages;
    let overlap = (all as f64 / accessed.max(1) as f64).max(1.0);
    let mut counts: Vec<Counts> = sizes_of_classes.iter().map(|&size| Counts::new(size, overlap)).collect();
    count_twice(&runs, &extents, &mut counts);
    for (page, extent) in &extents {
        let counts = &mut counts[extent.class];
        counts.places[(page * PARTS / touched.pages.max(1)) as usize] += 1;
    }
    counts.retain(|counts| counts.runs > 0);
    let drawn = drawn(&counts);
    let classes: Vec<RevisitClass> = counts.into_iter().zip(drawn).map(|(counts, draws)| counts.class(draws)).collect();
    (!classes.is_empty()).then_some(Revisits { classes })
}

fn runs(trace: &Trace, op: Op, touched: &Extents) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    // The run of each device, and where it would go on.
    let mut open: Vec<(usize, u64)> = vec![(usize::MAX, u64::MAX); trace.devices.len()];
    for record in trace.records.iter().filter(|record: &&Record| record.op == op && record.bytes > 0) {
        let (run, end) = &mut open[record.device()];
        if *end == record.offset && runs[*run].bytes < MOST_BYTES {
            runs[*run].bytes += record.bytes();
            runs[*run].requests.push(record.bytes());
        } else {
            let first = touched.dense_offset(record);
            *run = runs.len();
            runs.push(Run { page: first / PAGE_BYTES, first, bytes: record.bytes(), requests: vec![record.bytes()] });
        }
        *end = record.end();
    }
    runs
}

/// How much of their extents runs cover, in bytes so that the mean of their sizes is kept.
#[derive(Clone, Copy, Default)]
struct Covered {
    /// Of extents that runs cover whole.
    whole: u64,
    /// Bytes of the other runs, and of their extents.
    part: (u64, u64),
}

impl Covered {
    fn run(&mut self, bytes: u64, extent: u64) {
        if bytes == extent {
            self.whole += extent;
        } else {
            self.part.0 += bytes;
            self.part.1 += extent;
        }
    }

    fn coverage(self) -> Coverage {
        Coverage {
            whole_percent: rounded(percent(self.whole, self.whole + self.part.1)),
            part_percent: rounded(percent(self.part.0, self.part.1)),
        }
    }
}

/// What is counted of a class.
struct Counts {
    stack: Stack,
    overlap: f64,
    places: Vec<u64>,
    /// Lengths of extents whose longest run is one request, and of the others.
    ones: Vec<u64>,
    lengths: Vec<u64>,
    sizes: Vec<u64>,
    runs: u64,
    followed: (u64, u64),
    last_depth: Option<usize>,
    again: (u64, u64),
    latest: Vec<u64>,
    oldest: Vec<u64>,
    last_rank: Option<u32>,
    up: Vec<u64>,
    down: Vec<u64>,
    /// Of extents that are one request, and of the others.
    coverage: [Covered; 2],
}

impl Counts {
    fn new(extents: u32, overlap: f64) -> Self {
        Counts {
            stack: Stack::new(extents as usize),
            overlap,
            places: vec![0; PARTS as usize],
            ones: Vec::new(),
            lengths: Vec::new(),
            sizes: Vec::new(),
            runs: 0,
            followed: (0, 0),
            last_depth: None,
            again: (0, 0),
            latest: Vec::new(),
            oldest: Vec::new(),
            last_rank: None,
            up: Vec::new(),
            down: Vec::new(),
            coverage: [Covered::default(); 2],
        }
    }

    /// A run to one of its extents, in the second playing.
    fn run(&mut self, extent: &Extent, run: &Run) {
        self.runs += 1;
        if !extent.one {
            self.sizes.extend(&run.requests);
        }
        self.coverage[usize::from(!extent.one)].run(run.bytes, extent.longest);
        if extent.one { &mut self.ones } else { &mut self.lengths }.push(extent.longest);
        let depth = self.stack.depth(extent.rank).unwrap_or(0);
        if let Some(last) = self.last_depth {
            self.again.1 += 1;
            if last == depth {
                self.again.0 += 1;
            } else {
                let (from_oldest, scaled) = (self.stack.len() - 1 - depth, |n: usize| (n as f64 / self.overlap) as u64);
                let list = if depth <= from_oldest { &mut self.latest } else { &mut self.oldest };
                bump(list, (scaled(depth.min(from_oldest)) + 1).ilog2() as usize);
            }
        }
        self.last_depth = Some(depth);
        if let Some(last) = self.last_rank {
            let step = u64::from(extent.rank.abs_diff(last));
            match (step, extent.rank > last) {
                (0, _) => bump(&mut self.up, 0),
                (_, true) => bump(&mut self.up, step.ilog2() as usize + 1),
                (_, false) => bump(&mut self.down, step.ilog2() as usize),
            }
        }
        self.last_rank = Some(extent.rank);
    }

    fn class(self, draws: f64) -> RevisitClass {
        let share = |(part, all): (u64, u64)| rounded(percent(part, all));
        let weights = |list: Vec<u64>| list.into_iter().map(|n| n as f64).collect();
        let one = (self.ones.len() as u64, (self.ones.len() + self.lengths.len()) as u64);
        // A list of which nothing is drawn is that of a page.
        let shares = |list: Vec<u64>| match list.is_empty() {
            true => vec![SizeShare { bytes: PAGE_BYTES, percent: 100.0 }],
            false => rounded_shares(sizes(list.into_iter())),
        };
        let runs = self.lengths.len().max(1) as f64;
        let requests_per_run = rounded(self.sizes.len() as f64 / runs).max(1.0);
        RevisitClass {
            places: self.places.iter().map(|&n| rounded(n as f64 / self.overlap)).collect(),
            stay_percent: rounded((1.0 - draws) * 100.0),
            enter: rounded(self.runs as f64 * draws),
            again_percent: share(self.again),
            latest: weights(self.latest),
            oldest: weights(self.oldest),
            up: weights(self.up),
            down: weights(self.down),
            one_percent: share(one),
            requests: shares(self.ones),
            lengths: shares(self.lengths),
            request_coverage: self.coverage[0].coverage(),
            length_coverage: self.coverage[1].coverage(),
            requests_per_run,
            sizes: shares(self.sizes),
        }
    }
}

fn count_twice(runs: &[Run], extents: &BTreeMap<u64, Extent>, counts: &mut [Counts]) {
    let mut last_class: Option<usize> = None;
    for second in [false, true] {
        for run in runs {
            let Some(extent) = extents.get(&run.page) else { continue };
            if second {
                counts[extent.class].run(extent, run);
            }
            counts[extent.class].stack.touch(extent.rank);
            if let Some(last) = last_class.filter(|_| second) {
                let stayed = last == extent.class;
                let followed = &mut counts[last].followed;
                *followed = (followed.0 + u64::from(stayed), followed.1 + 1);
            }
            last_class = Some(extent.class);
        }
    }
}

/// For each class the chance x that a class is drawn after one of its runs.
///
/// Drawn by weights p x, where p is its share of the runs, every class keeps its share. One is
/// followed by itself with the chance 1 - x + x w, w being its weight over all; that is what was
/// counted.
fn drawn(counts: &[Counts]) -> Vec<f64> {
    let left = |counts: &Counts| match counts.followed {
        (_, 0) => 1.0,
        (stayed, all) => 1.0 - stayed as f64 / all as f64,
    };
    let mut drawn: Vec<f64> = counts.iter().map(left).collect();
    for _ in 0..100 {
        let all: f64 = counts.iter().zip(&drawn).map(|(counts, x)| counts.runs as f64 * x).sum();
        for (counts, x) in counts.iter().zip(&mut drawn) {
            let weight = counts.runs as f64 * *x / all.max(1e-9);
            *x = (left(counts) / (1.0 - weight).max(1e-6)).clamp(1e-3, 1.0);
        }
    }
    drawn
}

fn bump(list: &mut Vec<u64>, bin: usize) {
    if list.len() <= bin {
        list.resize(bin + 1, 0);
    }
    list[bin] += 1;
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

fn rounded_shares(mut shares: Vec<SizeShare>) -> Vec<SizeShare> {
    shares.iter_mut().for_each(|share| share.percent = rounded(share.percent).max(0.001));
    shares
}
