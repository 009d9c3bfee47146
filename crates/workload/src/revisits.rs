//! Where and when the same data is accessed again: what a profile keeps of a trace's order.
//!
//! A *run* is what requests of one kind access in sequence. An *extent* is where runs begin, with
//! the longest that began there. Extents are parted into classes by how often they are accessed;
//! those of a class lie where the trace has them, to a part of the footprint.
//!
//! 1. The next run is of the same class as the last with that class's own chance; else a class is
//!    drawn.
//! 2. Within its class it goes to the extent at a depth in the order of last accesses. The depth is
//!    that of the class's last run with the chance of the trace, so that what was accessed in an
//!    order is accessed again in that order; else it is drawn.
//! 3. The first order is a walk over the extents by address, with the steps of the trace.
//! 4. A run covers its extent whole, or a part of it, in one request or in several of the class's
//!    sizes.

use crate::pick::{Alias, Chance, Rng};
use crate::profile::SizeShare;
use crate::stack::Stack;
use serde::{Deserialize, Serialize};

/// Bytes of the unit in which extents are told apart.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// More extents than so many are refused, for the memory that they take.
const MOST_EXTENTS: f64 = (1_u64 << 24) as f64;

/// In a class of fewer extents their lengths are dealt anew for each run, since a few draws do not
/// make the profile's mix.
const FEW: usize = 512;

/// How requests of one kind come back to the same data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revisits {
    /// Extents by how often they are accessed.
    pub classes: Vec<RevisitClass>,
}

/// Extents that are accessed about as often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevisitClass {
    /// Extents in each part of the footprint, from its start; all parts are equally large.
    pub places: Vec<f64>,
    /// Chance that no class is drawn for the next run, which is of this class too, percent.
    pub stay_percent: f64,
    /// Weight of this class where one is drawn.
    pub enter: f64,
    /// Chance that a run goes as deep as the class's last, percent.
    pub again_percent: f64,
    /// Weights of other depths from the latest access on: below 1, below 3, below 7 and so on.
    pub latest: Vec<f64>,
    /// The same from the oldest access on.
    pub oldest: Vec<f64>,
    /// Weights of steps in the order of addresses: 0, then up by 1, by 2 or 3, by 4 to 7 and so on.
    pub up: Vec<f64>,
    /// The same downwards: by 1, by 2 or 3, and so on.
    pub down: Vec<f64>,
    /// Share of the runs to extents that one request covers, percent.
    pub one_percent: f64,
    /// Lengths of those.
    pub requests: Vec<SizeShare>,
    /// Lengths of the others.
    pub lengths: Vec<SizeShare>,
    /// How much of those that one request covers a run covers.
    pub request_coverage: Coverage,
    /// How much of the others.
    pub length_coverage: Coverage,
    /// Sizes of the requests to the others.
    pub sizes: Vec<SizeShare>,
    /// Requests that a run to the others has on average, from 1.
    pub requests_per_run: f64,
}

/// How much of its extent a run covers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coverage {
    /// Chance that it covers the extent whole, percent.
    pub whole_percent: f64,
    /// What it covers on average where it does not, percent.
    pub part_percent: f64,
}

impl Coverage {
    fn mean(self) -> f64 {
        (self.whole_percent + (100.0 - self.whole_percent) * self.part_percent / 100.0) / 100.0
    }

    /// Some of a length, in whole sectors if the length is; where it is not whole, as far from the
    /// mean to both sides as that leaves room.
    fn draw(self, length: u64, rng: &mut Rng) -> u64 {
        if Chance::new(self.whole_percent / 100.0).hit(rng.next()) {
            return length;
        }
        let unit = if length.is_multiple_of(512) { 512 } else { 1 };
        let units = length / unit;
        let mean = ((units as f64 * self.part_percent / 100.0).round() as u64).clamp(1, units);
        let room = (mean - 1).min(units - mean);
        (mean - room + rng.below(2 * room + 1)) * unit
    }
}

impl Revisits {
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.classes.is_empty() || self.classes.len() > 64 {
            return Err(format!("revisits have {} classes, not 1 to 64", self.classes.len()));
        }
        self.classes.iter().try_for_each(RevisitClass::check)?;
        match self.classes.iter().map(|class| class.enter).sum::<f64>() > 0.0 {
            true => Ok(()),
            false => Err("no class of revisits is ever entered; one needs `enter` above 0".to_owned()),
        }
    }
}

impl RevisitClass {
    fn check(&self) -> Result<(), String> {
        let weights = [&self.places, &self.latest, &self.oldest, &self.up, &self.down];
        let sane = |list: &&Vec<f64>| list.len() <= 4096 && list.iter().all(|w| (0.0..=1e12).contains(w));
        if !weights.iter().all(sane) || !(0.0..=1e12).contains(&self.enter) {
            return Err("a weight of revisits is negative or above 1e12, or there are more than 4096".to_owned());
        }
        if [&self.latest, &self.oldest, &self.up, &self.down].iter().any(|list| list.len() > 32) {
            return Err("depths and steps of revisits have at most 32 weights".to_owned());
        }
        if self.places.iter().sum::<f64>() <= 0.0 {
            return Err("a class of revisits has no extents".to_owned());
        }
        let coverage = [self.request_coverage, self.length_coverage];
        let coverage = coverage.into_iter().flat_map(|part| [part.whole_percent, part.part_percent]);
        for percent in [self.stay_percent, self.again_percent, self.one_percent].into_iter().chain(coverage) {
            if !(0.0..=100.0 + 1e-6).contains(&percent) {
                return Err(format!("{percent} is not a percentage of revisits"));
            }
        }
        if !(1.0..=1e9).contains(&self.requests_per_run) {
            return Err(format!("{} requests are no run of revisits; 1 is the least", self.requests_per_run));
        }
        let known = |shares: &[SizeShare]| {
            let sane =
                |share: &SizeShare| share.bytes > 0 && share.bytes <= 1 << 40 && (0.0..=1e9).contains(&share.percent);
            shares.iter().all(sane) && shares.iter().map(|share| share.percent).sum::<f64>() > 0.0
        };
        match [&self.requests, &self.lengths, &self.sizes].iter().all(|shares| known(shares)) {
            true => Ok(()),
            false => Err("lengths and sizes of revisits need bytes and a percentage above 0".to_owned()),
        }
    }
}

/// Sizes that can be drawn.
struct Sizes(Vec<u64>, Alias);

impl Sizes {
    fn new(shares: &[SizeShare]) -> Self {
        let weights: Vec<f64> = shares.iter().map(|share| share.percent).collect();
        Sizes(shares.iter().map(|share| share.bytes).collect(), Alias::new(&weights))
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        self.0[self.1.pick(rng.next())]
    }
}

/// Lengths of a class's extents, dealt so that any number of extents in a row has about the
/// profile's mix: some classes have few, and most accesses.
struct Lengths {
    /// Length, whether one request covers it, and the share of those up to here.
    cells: Vec<(u64, bool, f64)>,
    /// Each is the fractional part of the last plus the golden ratio.
    at: f64,
}

impl Lengths {
    fn new(class: &RevisitClass, rng: &mut Rng) -> Self {
        let mut cells = Vec::new();
        let mut upto = 0.0;
        let kinds = [(&class.lengths, false, 100.0 - class.one_percent), (&class.requests, true, class.one_percent)];
        for (shares, one, percent) in kinds {
            let all: f64 = shares.iter().map(|share| share.percent).sum();
            for share in shares {
                upto += share.percent / all * percent / 100.0;
                cells.push((share.bytes, one, upto));
            }
        }
        Lengths { cells, at: rng.below(1 << 32) as f64 / (1_u64 << 32) as f64 }
    }

    /// The next length, and whether one request covers it.
    fn deal(&mut self) -> (u64, bool) {
        self.at = (self.at + 0.618_033_988_749_895).fract();
        let cell = self.cells.partition_point(|&(.., upto)| upto <= self.at).min(self.cells.len() - 1);
        let (length, one, _) = self.cells[cell];
        (length, one)
    }
}

fn mean(shares: &[SizeShare]) -> f64 {
    let all: f64 = shares.iter().map(|share| share.percent).sum();
    shares.iter().map(|share| share.bytes as f64 * share.percent).sum::<f64>() / all
}

/// First byte, length, and whether one request covers it.
type Extent = (u64, u64, bool);

/// A class, playing.
struct Class {
    /// By address.
    extents: Vec<Extent>,
    stack: Stack,
    stay: Chance,
    again: Chance,
    /// Of extents that are one request, and of the others.
    coverage: [Coverage; 2],
    /// Depths by weight: those from the latest on, then those from the oldest on; `None` if every
    /// run goes as deep as the last.
    depths: Option<Alias>,
    latest: usize,
    /// Extents here for each in the profile.
    scale: f64,
    last: Option<usize>,
    lengths: Lengths,
    sizes: Sizes,
    /// Requests after the first for each byte that a run covers.
    more: f64,
}

/// Runs that come back to the same data as those of a trace did.
pub(crate) struct Walk {
    classes: Vec<Class>,
    enter: Alias,
    class: usize,
    run: Run,
    limit: u64,
}

/// What is left of a run.
#[derive(Clone, Copy)]
struct Run {
    offset: u64,
    requests: u64,
    /// Size of its only request; else each draws its own.
    bytes: Option<u64>,
}

impl Walk {
    /// Runs over the first `limit` bytes of a device, where the trace touched `touched_bytes`.
    ///
    /// # Errors
    /// If that would take more extents than there may be.
    pub(crate) fn new(
        revisits: &Revisits,
        limit: u64,
        touched_bytes: u64,
        align_bytes: u64,
        rng: &mut Rng,
    ) -> Result<Walk, String> {
        let scale = if touched_bytes == 0 { 1.0 } else { limit as f64 / touched_bytes as f64 };
        let extents: f64 = revisits.classes.iter().flat_map(|class| &class.places).sum::<f64>() * scale;
        if extents > MOST_EXTENTS {
            return Err(format!("it would take {extents:.0} extents, {MOST_EXTENTS:.0} are the most"));
        }
        let extents = lay_out(revisits, limit, align_bytes, scale, rng);
        let classes = revisits.classes.iter().zip(extents);
        let weights: Vec<f64> = revisits.classes.iter().map(|class| class.enter).collect();
        Ok(Walk {
            classes: classes.map(|(class, extents)| Class::new(class, extents, scale, rng)).collect(),
            enter: Alias::new(&weights),
            class: 0,
            run: Run { offset: 0, requests: 0, bytes: None },
            limit,
        })
    }

    /// First byte and size of the next request.
    pub(crate) fn draw(&mut self, rng: &mut Rng) -> (u64, u64) {
        if self.run.requests == 0 {
            if !self.classes[self.class].stay.hit(rng.next()) {
                self.class = self.enter.pick(rng.next());
            }
            self.run = self.classes[self.class].run(rng);
        }
        let bytes = self.run.bytes.unwrap_or_else(|| self.classes[self.class].sizes.draw(rng)).min(self.limit);
        let offset = self.run.offset.min(self.limit - bytes);
        self.run.offset = offset + bytes;
        self.run.requests -= 1;
        (offset, bytes)
    }
}

impl Class {
    fn new(class: &RevisitClass, extents: Vec<Extent>, scale: f64, rng: &mut Rng) -> Self {
        let weights: Vec<f64> = class.latest.iter().chain(&class.oldest).copied().collect();
        let mut stack = Stack::new(extents.len());
        first_order(class, extents.len(), rng, |extent| stack.touch(extent));
        Class {
            extents,
            stack,
            stay: Chance::new(class.stay_percent / 100.0),
            again: Chance::new(class.again_percent / 100.0),
            coverage: [class.request_coverage, class.length_coverage],
            depths: (weights.iter().sum::<f64>() > 0.0).then(|| Alias::new(&weights)),
            latest: class.latest.len(),
            scale,
            last: None,
            lengths: Lengths::new(class, rng),
            sizes: Sizes::new(&class.sizes),
            more: (class.requests_per_run - 1.0) / (class.length_coverage.mean() * mean(&class.lengths)).max(1.0),
        }
    }

    fn run(&mut self, rng: &mut Rng) -> Run {
        let oldest = self.stack.len() - 1;
        let depth = match (self.last, &self.depths) {
            (Some(last), _) if self.again.hit(rng.next()) => last,
            (_, None) => oldest,
            (_, Some(depths)) => {
                let bin = depths.pick(rng.next());
                let mut scaled = |bin: usize| ((within(bin, rng) as f64 * self.scale) as usize).min(oldest);
                if bin < self.latest { scaled(bin) } else { oldest - scaled(bin - self.latest) }
            }
        };
        self.last = Some(depth);
        let extent = self.stack.at(depth);
        self.stack.touch(extent);
        let (offset, mut length, mut one) = self.extents[extent as usize];
        if self.extents.len() < FEW {
            (length, one) = self.lengths.deal();
        }
        let covered = self.coverage[usize::from(!one)].draw(length, rng);
        if one {
            return Run { offset, requests: 1, bytes: Some(covered) };
        }
        // Counted, not measured out, so that the mix of sizes is that of the class.
        let more = covered as f64 * self.more;
        let one_more = Chance::new(more.fract()).hit(rng.next());
        Run { offset, requests: 1 + more as u64 + u64::from(one_more), bytes: None }
    }
}

/// A number of the bin 2^bin - 1 up to 2^(bin + 1) - 2.
fn within(bin: usize, rng: &mut Rng) -> u64 {
    let first = 1_u64 << bin.min(40);
    first - 1 + rng.below(first)
}

/// Extents of each class by address: in each part of the footprint as many as the profile says, in
/// any order, with gaps where they do not fill it.
fn lay_out(revisits: &Revisits, limit: u64, align_bytes: u64, scale: f64, rng: &mut Rng) -> Vec<Vec<Extent>> {
    let classes = revisits.classes.len();
    let parts = revisits.classes.iter().map(|class| class.places.len()).max().unwrap_or(0);
    let mut lengths: Vec<Lengths> = revisits.classes.iter().map(|class| Lengths::new(class, rng)).collect();
    let (mut extents, mut due) = (vec![Vec::new(); classes], vec![0.5; classes]);
    let (pages, within_page) = (limit / PAGE_BYTES, (PAGE_BYTES / align_bytes.max(1)).max(1));
    let mut here: Vec<(usize, u64, u64, bool)> = Vec::new();
    for part in 0..parts as u64 {
        let (first, end) = (pages * part / parts as u64, pages * (part + 1) / parts as u64);
        here.clear();
        let mut filled = 0;
        for (class, places) in revisits.classes.iter().map(|class| &class.places).enumerate() {
            due[class] += places.get(part as usize).copied().unwrap_or(0.0) * scale;
            while due[class] >= 1.0 {
                due[class] -= 1.0;
                let (length, one) = lengths[class].deal();
                let shift = rng.below(within_page) * align_bytes;
                filled += (shift + length).div_ceil(PAGE_BYTES);
                here.push((class, shift, length, one));
            }
        }
        shuffle(&mut here, rng);
        let gap = (end - first).saturating_sub(filled);
        let mut gaps: Vec<u64> = here.iter().map(|_| rng.below(gap + 1)).collect();
        gaps.sort_unstable();
        let mut page = first;
        for (&(class, shift, length, one), before) in here.iter().zip(gaps) {
            let length = length.min(limit);
            let offset = ((page + before) * PAGE_BYTES + shift).min(limit - length);
            extents[class].push((offset, length, one));
            page = (page + (shift + length).div_ceil(PAGE_BYTES)).min(pages);
        }
    }
    for extents in &mut extents {
        if extents.is_empty() {
            extents.push((rng.below(pages.max(1)) * PAGE_BYTES, PAGE_BYTES.min(limit), true));
        }
        extents.sort_unstable();
    }
    extents
}

fn shuffle<T>(list: &mut [T], rng: &mut Rng) {
    for last in (1..list.len()).rev() {
        list.swap(last, rng.below(last as u64 + 1) as usize);
    }
}

/// Calls `found` for every extent once, the one accessed longest ago first: a walk with the steps
/// of the class, each to the nearest extent above that was not yet found, or the first of all.
fn first_order(class: &RevisitClass, extents: usize, rng: &mut Rng, mut found: impl FnMut(u32)) {
    let weights: Vec<f64> = class.up.iter().chain(&class.down).copied().collect();
    let steps = (weights.iter().sum::<f64>() > 0.0).then(|| Alias::new(&weights));
    // For each extent one that may be the next not found; the last stands for none.
    let mut next: Vec<u32> = (0..=extents as u32).collect();
    let free_from = |from: usize, next: &mut Vec<u32>| {
        let mut at = from as u32;
        while next[at as usize] != at {
            next[at as usize] = next[next[at as usize] as usize];
            at = next[at as usize];
        }
        at
    };
    let mut at = rng.below(extents as u64) as usize;
    for _ in 0..extents {
        let mut extent = free_from(at, &mut next);
        if extent as usize == extents {
            extent = free_from(0, &mut next);
        }
        found(extent);
        next[extent as usize] = extent + 1;
        let step = steps.as_ref().map_or(1, |steps| {
            let bin = steps.pick(rng.next());
            match bin.checked_sub(class.up.len()) {
                None if bin == 0 => 0,
                None => within(bin - 1, rng) as i64 + 1,
                Some(down) => -(within(down, rng) as i64 + 1),
            }
        });
        at = (i64::from(extent) + step).clamp(0, extents as i64 - 1) as usize;
    }
}
