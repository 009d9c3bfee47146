//! Where and when a trace comes back to the same data ([`crate::profile`]).
//!
//! 1. Requests of a kind that go on where the last on their device ended make a run.
//! 2. The page where a run begins tells extents apart. A class holds those that are accessed 1, 2
//!    to 3, 4 to 7 times and so on, and that are short, middling or long.
//! 3. The trace is taken for a circle of runs. The longest time without access to an extent is
//!    before its begin; the other times are counted.
//! 4. Steps lead through all extents in the order in which they begin.
//! 5. By address, an extent overlaps those before it, begins where they end, or lies apart.

use super::fit::sizes;
use super::footprint::Extents;
use super::info::percent;
use super::{Record, Trace};
use crate::profile::SizeShare;
use crate::request::Op;
use crate::revisits::{
    Coverage, LENGTHS, PAGE_BYTES, REVISITS_VERSION, RevisitClass, Revisits, SECTOR_BYTES, gap_bin, left_of,
};
use std::collections::{BTreeMap, BTreeSet};

/// Parts of the footprint for which extents are counted.
const PARTS: u64 = 128;

/// Phases of the trace, all of as many runs.
const PHASES: usize = 32;

/// Sizes of a class kept as they are.
const SIZES_KEPT: usize = 8;

const SECTORS: usize = (PAGE_BYTES / SECTOR_BYTES) as usize;

/// A run is cut after so many bytes, so that a sequence without end has more than one.
const MOST_BYTES: u64 = 1 << 20;

struct Run {
    /// The page where it begins.
    page: u64,
    first: u64,
    bytes: u64,
    requests: Vec<u64>,
}

#[derive(Clone, Default)]
struct Extent {
    shift: u64,
    longest: u64,
    /// Whether its longest run is one request.
    one: bool,
    /// The number of each run.
    runs: Vec<usize>,
    class: usize,
    /// Its place among all, by address.
    place: u32,
    /// The run that is its first after the longest time.
    begin: usize,
    /// The times between its runs from then on.
    gaps: Vec<usize>,
}

impl Extent {
    /// Pages on which it lies.
    fn pages(&self) -> u64 {
        (self.shift + self.longest).div_ceil(PAGE_BYTES)
    }

    /// What tells classes apart.
    fn key(&self) -> (u32, usize) {
        (self.runs.len().ilog2(), left_of(self.pages()))
    }
}

/// Revisits of the requests of one kind; `None` if there is none.
pub(super) fn revisits(trace: &Trace, op: Op, touched: &Extents) -> Option<Revisits> {
    let runs = runs(trace, op, touched);
    let mut extents: BTreeMap<u64, Extent> = BTreeMap::new();
    for (time, run) in runs.iter().enumerate() {
        let extent = extents.entry(run.page).or_insert(Extent { shift: run.first % PAGE_BYTES, ..Extent::default() });
        extent.runs.push(time);
        if run.bytes > extent.longest {
            (extent.longest, extent.one) = (run.bytes, run.requests.len() == 1);
        }
    }
    let keys: BTreeSet<(u32, usize)> = extents.values().map(Extent::key).collect();
    let keys: Vec<(u32, usize)> = keys.into_iter().collect();
    for (place, extent) in (0..).zip(extents.values_mut()) {
        extent.place = place;
        extent.class = keys.partition_point(|&key| key < extent.key());
    }
    let mut counts: Vec<Counts> = keys.iter().map(|_| Counts::new()).collect();
    for extent in extents.values_mut() {
        (extent.begin, extent.gaps) = gaps(&extent.runs, runs.len());
        extent.gaps.iter().for_each(|gap| bump(&mut counts[extent.class].gaps, gap_bin(*gap as u64)));
    }
    count(&runs, &extents, &mut counts);
    neighbours(&extents, &mut counts);
    let mut begins = vec![vec![0; PARTS as usize]; PHASES];
    for (page, extent) in &extents {
        let part = (page * PARTS / touched.pages.max(1)) as usize;
        counts[extent.class].places[part] += 1;
        counts[extent.class].sectors[(extent.shift / SECTOR_BYTES) as usize] += 1;
        begins[extent.begin * PHASES / runs.len()][part] += 1;
    }
    counts.retain(|counts| counts.runs > 0);
    let classes: Vec<RevisitClass> = counts.into_iter().map(Counts::class).collect();
    (!classes.is_empty()).then_some(Revisits { version: REVISITS_VERSION, classes, begins })
}

/// Counts how extents lie to those before them.
fn neighbours(extents: &BTreeMap<u64, Extent>, counts: &mut [Counts]) {
    let mut end = 0;
    let mut last: Option<(u64, usize)> = None;
    for (&page, extent) in extents {
        if let Some((begin, class)) = last {
            let same = &mut counts[class].same;
            *same = (same.0 + u64::from(class == extent.class), same.1 + 1);
            let counts = &mut counts[extent.class];
            let left = left_of(end - begin - 1);
            let [beside, over, all] = &mut counts.lies[left];
            *beside += u64::from(page == end);
            *over += u64::from(page < end);
            *all += 1;
            if page < end {
                bump(&mut counts.over[left], (page - begin).ilog2() as usize);
            }
        }
        end = end.max(page + extent.pages());
        last = Some((page, extent.class));
    }
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
    places: Vec<u32>,
    sectors: [u64; SECTORS],
    /// Extents after one of its own by address that are of its class, of all.
    same: (u64, u64),
    /// Its own by what is left of those before: beside that, over it, all.
    lies: [[u64; 3]; LENGTHS],
    /// Pages from the begin of one to that of one over it.
    over: [Vec<u64>; LENGTHS],
    /// Lengths of extents whose longest run is one request, and of the others.
    ones: Vec<u64>,
    lengths: Vec<u64>,
    sizes: Vec<u64>,
    runs: u64,
    gaps: Vec<u64>,
    /// Extents with the gaps of the one of the class that begins before, of all.
    repeated: (u64, u64),
    up: Vec<u64>,
    down: Vec<u64>,
    /// Of extents that are one request, and of the others.
    coverage: [Covered; 2],
}

impl Counts {
    fn new() -> Self {
        Counts {
            places: vec![0; PARTS as usize],
            sectors: [0; SECTORS],
            same: (0, 0),
            lies: [[0; 3]; LENGTHS],
            over: [const { Vec::new() }; LENGTHS],
            ones: Vec::new(),
            lengths: Vec::new(),
            sizes: Vec::new(),
            runs: 0,
            gaps: Vec::new(),
            repeated: (0, 0),
            up: Vec::new(),
            down: Vec::new(),
            coverage: [Covered::default(); 2],
        }
    }

    /// A run to one of its extents.
    fn run(&mut self, extent: &Extent, run: &Run) {
        self.runs += 1;
        if !extent.one {
            self.sizes.extend(&run.requests);
        }
        self.coverage[usize::from(!extent.one)].run(run.bytes, extent.longest);
        if extent.one { &mut self.ones } else { &mut self.lengths }.push(extent.longest);
    }

    /// From one of its own to the extent that begins next.
    fn step(&mut self, from: u32, to: u32) {
        debug_assert!(from != to, "extent {from} begins twice");
        match (to.abs_diff(from), to > from) {
            (step, true) => bump(&mut self.up, step.ilog2() as usize + 1),
            (step, false) => bump(&mut self.down, step.ilog2() as usize),
        }
    }

    fn class(self) -> RevisitClass {
        let share = |(part, all): (u64, u64)| rounded(percent(part, all));
        let weights = |list: Vec<u64>| list.into_iter().map(|n| n as f64).collect();
        let one = (self.ones.len() as u64, (self.ones.len() + self.lengths.len()) as u64);
        // A list of which nothing is drawn is that of a page.
        let shares = |list: Vec<u64>| match list.is_empty() {
            true => vec![SizeShare { bytes: PAGE_BYTES, percent: 100.0 }],
            false => rounded_shares(sizes(list.into_iter(), SIZES_KEPT)),
        };
        let runs = self.lengths.len().max(1) as f64;
        let requests_per_run = rounded(self.sizes.len() as f64 / runs).max(1.0);
        RevisitClass {
            places: self.places,
            same_percent: share(self.same),
            beside_percent: self.lies.map(|[beside, _, all]| share((beside, all))).to_vec(),
            over_percent: self.lies.map(|[_, over, all]| share((over, all))).to_vec(),
            over: self.over.map(weights).to_vec(),
            sectors: weights(self.sectors.to_vec()),
            runs: self.runs as f64,
            gaps: weights(self.gaps),
            repeat_percent: share(self.repeated),
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

/// The run after the longest time without one in a circle of `all`, and the times between the runs
/// from then on.
fn gaps(runs: &[usize], all: usize) -> (usize, Vec<usize>) {
    let after = runs.iter().skip(1).copied().chain([runs[0] + all]);
    let mut gaps: Vec<usize> = runs.iter().zip(after).map(|(run, after)| after - run).collect();
    let longest = (0..gaps.len()).max_by_key(|&at| gaps[at]).unwrap_or(0);
    gaps.rotate_left((longest + 1) % runs.len());
    gaps.pop();
    (runs[(longest + 1) % runs.len()], gaps)
}

/// Whether accesses with these gaps stay together.
fn alike(a: &[usize], b: &[usize]) -> bool {
    let near = |(a, b): (&usize, &usize)| a.abs_diff(*b) <= a.max(b) / 8 + 4;
    a.len() == b.len() && a.iter().zip(b).all(near)
}

fn count(runs: &[Run], extents: &BTreeMap<u64, Extent>, counts: &mut [Counts]) {
    for run in runs {
        if let Some(extent) = extents.get(&run.page) {
            counts[extent.class].run(extent, run);
        }
    }
    let mut order: Vec<&Extent> = extents.values().collect();
    order.sort_unstable_by_key(|extent| extent.begin);
    for pair in order.windows(2) {
        counts[pair[0].class].step(pair[0].place, pair[1].place);
    }
    let mut last: Vec<Option<&Extent>> = vec![None; counts.len()];
    for extent in order {
        if let Some(last) = last[extent.class].replace(extent) {
            let repeated = &mut counts[extent.class].repeated;
            *repeated = (repeated.0 + u64::from(alike(&last.gaps, &extent.gaps)), repeated.1 + 1);
        }
    }
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
