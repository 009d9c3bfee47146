//! Where and when the same data is accessed again: what a profile keeps of a trace's order.
//!
//! A *run* is what requests of one kind access in sequence. An *extent* is where runs begin, with
//! the longest that began there. Extents are parted into classes by how often they are accessed;
//! those of a class lie where the trace has them, to a part of the footprint ([`places`]).
//!
//! 1. One pass over the extents is made, and played for ever ([`pass`]). Each extent has as many
//!    runs in it as those of its class have in the trace.
//! 2. A run covers its extent whole, or a part of it, in one request or in several of the class's
//!    sizes.

use crate::pick::{Alias, Chance, Rng};
use crate::profile::SizeShare;
use serde::{Deserialize, Serialize};

mod order;
mod pass;
mod places;

use order::Place;
use pass::pass;
use places::lay_out;

pub(crate) use pass::gap_bin;
pub(crate) use places::{LENGTHS, SECTOR_BYTES, left_of};

/// Bytes of the unit in which extents are told apart.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// The version of the model. It changes with the fields of [`Revisits`] and with what they mean.
pub const REVISITS_VERSION: u32 = 2;

/// More extents than so many are refused, for the memory that they take.
const MOST_EXTENTS: f64 = (1_u64 << 24) as f64;

/// The same for runs of a pass.
const MOST_RUNS: f64 = (1_u64 << 26) as f64;

/// In a class of fewer extents their lengths are dealt anew for each run, since a few draws do not
/// make the profile's mix.
const FEW: usize = 32;

/// How requests of one kind come back to the same data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revisits {
    /// [`REVISITS_VERSION`] of the program that fitted them.
    pub version: u32,
    /// Extents by how often they are accessed.
    pub classes: Vec<RevisitClass>,
    /// For each phase of the trace, all of as many runs, the extents in each part of the footprint
    /// that are accessed in it first after the longest time. Empty if the trace has no phases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub begins: Vec<Vec<u32>>,
}

/// Extents that are accessed about as often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevisitClass {
    /// Extents in each part of the footprint, from its start; all parts are equally large.
    pub places: Vec<u32>,
    /// Chance that the next extent by address is of this class too, percent.
    pub same_percent: f64,
    /// Chance that one of this class begins where those before end, percent: if their last page is
    /// that of the last's begin or up to 4 pages after it, up to 32, and farther.
    pub beside_percent: Vec<f64>,
    /// Chance that it begins before that, percent, in the same cases.
    pub over_percent: Vec<f64>,
    /// Weights of the pages from the last's begin to its own where it does, in the same cases: 1, 2
    /// or 3, 4 to 7 and so on.
    pub over: Vec<Vec<f64>>,
    /// Weights of the sectors of a page in which extents begin.
    pub sectors: Vec<f64>,
    /// Runs to all of them in a pass.
    pub runs: f64,
    /// Weights of the runs from one to the next access of the same extent, the longest time of each
    /// extent left out: four weights for each power of two.
    pub gaps: Vec<f64>,
    /// Chance that an extent has the gaps of the one of this class that begins before, percent.
    pub repeat_percent: f64,
    /// Weights of steps from one of these extents to the one that begins next, over all extents in
    /// the order of addresses: 0, then up by 1, by 2 or 3, by 4 to 7 and so on.
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
        let parts = self.begins.iter().map(Vec::len).max().unwrap_or(0);
        match parts <= 4096 && self.begins.len() <= 4096 {
            true => Ok(()),
            false => Err("revisits begin in more than 4096 phases or parts".to_owned()),
        }
    }
}

impl Revisits {
    /// Parts of the footprint.
    fn parts(&self) -> usize {
        self.classes.iter().map(|class| class.places.len()).max().unwrap_or(0).max(1)
    }

    /// Extents on the footprint of the trace.
    fn extents(&self) -> f64 {
        self.classes.iter().map(RevisitClass::extents).sum()
    }

    /// Runs of a pass.
    fn runs(&self) -> f64 {
        self.classes.iter().map(|class| class.runs).sum()
    }
}

impl RevisitClass {
    fn extents(&self) -> f64 {
        self.places.iter().copied().map(f64::from).sum()
    }

    fn check(&self) -> Result<(), String> {
        let weights = [&self.sectors, &self.beside_percent, &self.over_percent, &self.gaps, &self.up, &self.down];
        let sane = |list: &&Vec<f64>| list.len() <= 4096 && list.iter().all(|w| (0.0..=1e12).contains(w));
        if !weights.into_iter().chain(&self.over).all(|list| sane(&list)) || !(0.0..=1e12).contains(&self.runs) {
            return Err("a weight of revisits is negative or above 1e12, or there are more than 4096".to_owned());
        }
        if self.gaps.len() > 160 || self.sectors.len() > 8 {
            return Err("revisits have at most 160 weights of gaps and 8 of sectors".to_owned());
        }
        let short = |list: &Vec<f64>| list.len() <= 40;
        if self.over.len() > 40 || ![&self.up, &self.down].into_iter().chain(&self.over).all(short) {
            return Err("distances and steps of revisits have at most 40 weights".to_owned());
        }
        if self.places.len() > 4096 || self.extents() <= 0.0 {
            return Err("a class of revisits has no extents, or more than 4096 parts".to_owned());
        }
        let coverage = [self.request_coverage, self.length_coverage];
        let coverage = coverage.into_iter().flat_map(|part| [part.whole_percent, part.part_percent]);
        let chances = [self.same_percent, self.repeat_percent, self.one_percent];
        let chances = chances.into_iter().chain(self.beside_percent.iter().chain(&self.over_percent).copied());
        for percent in chances.chain(coverage) {
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
    /// Of extents that are one request, and of the others.
    coverage: [Coverage; 2],
    lengths: Lengths,
    sizes: Sizes,
    /// Requests after the first for each byte that a run covers.
    more: f64,
}

/// Runs that come back to the same data as those of a trace did.
pub(crate) struct Walk {
    classes: Vec<Class>,
    /// Every extent by address.
    extents: Vec<Place>,
    /// The extent of each run of a pass.
    pass: Vec<u32>,
    /// Runs of this pass begun.
    begun: usize,
    passed: bool,
    run: Run,
    limit: u64,
}

/// What is left of a run.
#[derive(Clone, Copy)]
struct Run {
    class: usize,
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
        let (extents, runs) = (revisits.extents() * scale, revisits.runs() * scale);
        if extents > MOST_EXTENTS || runs > MOST_RUNS {
            return Err(format!(
                "it would take {extents:.0} extents and {runs:.0} runs; {MOST_EXTENTS:.0} and {MOST_RUNS:.0} are the most"
            ));
        }
        let by_class = lay_out(revisits, limit, align_bytes, scale, rng);
        let extents = places(&by_class, limit / PAGE_BYTES, revisits.parts());
        let pass = pass(revisits, &extents, scale, rng);
        let classes = revisits.classes.iter().zip(by_class);
        Ok(Walk {
            classes: classes.map(|(class, extents)| Class::new(class, extents, rng)).collect(),
            extents,
            pass,
            begun: 0,
            passed: false,
            run: Run { class: 0, offset: 0, requests: 0, bytes: None },
            limit,
        })
    }

    /// Whether all requests of a pass were drawn.
    pub(crate) fn passed(&self) -> bool {
        self.passed && self.run.requests == 0
    }

    /// First byte and size of the next request.
    pub(crate) fn draw(&mut self, rng: &mut Rng) -> (u64, u64) {
        if self.run.requests == 0 {
            let Place { class, rank, .. } = self.extents[self.pass[self.begun] as usize];
            self.begun += 1;
            if self.begun == self.pass.len() {
                (self.begun, self.passed) = (0, true);
            }
            self.run = self.classes[class].run(class, rank, rng);
        }
        let sizes = &self.classes[self.run.class].sizes;
        let bytes = self.run.bytes.unwrap_or_else(|| sizes.draw(rng)).min(self.limit);
        let offset = self.run.offset.min(self.limit - bytes);
        self.run.offset = offset + bytes;
        self.run.requests -= 1;
        (offset, bytes)
    }
}

/// Every extent by address.
fn places(by_class: &[Vec<Extent>], pages: u64, parts: usize) -> Vec<Place> {
    let mut by_address: Vec<(u64, usize, u32)> = Vec::new();
    for (class, extents) in by_class.iter().enumerate() {
        by_address.extend((0..).zip(extents).map(|(rank, &(offset, ..))| (offset, class, rank)));
    }
    by_address.sort_unstable();
    let mut part = 0;
    let place = |(offset, class, rank): (u64, usize, u32)| {
        while part + 1 < parts && offset / PAGE_BYTES >= pages * (part as u64 + 1) / parts as u64 {
            part += 1;
        }
        Place { class, rank, part }
    };
    by_address.into_iter().map(place).collect()
}

impl Class {
    fn new(class: &RevisitClass, extents: Vec<Extent>, rng: &mut Rng) -> Self {
        Class {
            extents,
            coverage: [class.request_coverage, class.length_coverage],
            lengths: Lengths::new(class, rng),
            sizes: Sizes::new(&class.sizes),
            more: (class.requests_per_run - 1.0) / (class.length_coverage.mean() * mean(&class.lengths)).max(1.0),
        }
    }

    /// A run to an extent.
    fn run(&mut self, class: usize, extent: u32, rng: &mut Rng) -> Run {
        let (offset, mut length, mut one) = self.extents[extent as usize];
        if self.extents.len() < FEW {
            (length, one) = self.lengths.deal();
        }
        let covered = self.coverage[usize::from(!one)].draw(length, rng);
        if one {
            return Run { class, offset, requests: 1, bytes: Some(covered) };
        }
        // Counted, not measured out, so that the mix of sizes is that of the class.
        let more = covered as f64 * self.more;
        let one_more = Chance::new(more.fract()).hit(rng.next());
        Run { class, offset, requests: 1 + more as u64 + u64::from(one_more), bytes: None }
    }
}

/// A number of the bin 2^bin - 1 up to 2^(bin + 1) - 2.
fn within(bin: usize, rng: &mut Rng) -> u64 {
    let first = 1_u64 << bin.min(40);
    first - 1 + rng.below(first)
}
