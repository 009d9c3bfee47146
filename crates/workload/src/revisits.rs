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
    /// Share of the extents that one request covers, percent.
    pub one_percent: f64,
    /// Lengths of those.
    pub requests: Vec<SizeShare>,
    /// Lengths of the others.
    pub lengths: Vec<SizeShare>,
    /// Chance that a run covers its extent whole, percent; else it ends anywhere in it.
    pub whole_percent: f64,
    /// Sizes of the requests to the others.
    pub sizes: Vec<SizeShare>,
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
    /// Whether an extent is one request, and lengths of those that are not and of those that are.
    fn draws(&self) -> (Chance, [Sizes; 2]) {
        (Chance::new(self.one_percent / 100.0), [&self.lengths, &self.requests].map(|shares| Sizes::new(shares)))
    }

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
        for percent in [self.stay_percent, self.again_percent, self.whole_percent, self.one_percent] {
            if !(0.0..=100.0 + 1e-6).contains(&percent) {
                return Err(format!("{percent} is not a percentage of revisits"));
            }
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

/// First byte, length, and whether one request covers it.
type Extent = (u64, u64, bool);

/// A class, playing.
struct Class {
    /// By address.
    extents: Vec<Extent>,
    stack: Stack,
    stay: Chance,
    again: Chance,
    whole: Chance,
    /// Depths by weight: those from the latest on, then those from the oldest on; `None` if every
    /// run goes as deep as the last.
    depths: Option<Alias>,
    latest: usize,
    /// Extents here for each in the profile.
    scale: f64,
    last: Option<usize>,
    sizes: Sizes,
}

/// Runs that come back to the same data as those of a trace did.
pub(crate) struct Walk {
    classes: Vec<Class>,
    enter: Alias,
    class: usize,
    /// Where the run goes on, and bytes that are left of it.
    offset: u64,
    left: u64,
    /// Where its extent ends.
    end: u64,
    /// Whether the run is one request.
    one: bool,
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
            offset: 0,
            left: 0,
            end: 0,
            one: false,
        })
    }

    /// First byte and size of the next request.
    pub(crate) fn draw(&mut self, rng: &mut Rng) -> (u64, u64) {
        if self.left == 0 {
            if !self.classes[self.class].stay.hit(rng.next()) {
                self.class = self.enter.pick(rng.next());
            }
            (self.offset, self.left, self.end, self.one) = self.classes[self.class].run(rng);
        }
        // The last request of a run may go on to the end of the extent.
        let mut drawn = || self.classes[self.class].sizes.draw(rng).min(self.end - self.offset);
        let bytes = if self.one { self.left } else { drawn() };
        let offset = self.offset;
        (self.offset, self.left) = (offset + bytes, self.left.saturating_sub(bytes));
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
            whole: Chance::new(class.whole_percent / 100.0),
            depths: (weights.iter().sum::<f64>() > 0.0).then(|| Alias::new(&weights)),
            latest: class.latest.len(),
            scale,
            last: None,
            sizes: Sizes::new(&class.sizes),
        }
    }

    /// The next run: first byte, length, where its extent ends, and whether it is one request.
    fn run(&mut self, rng: &mut Rng) -> (u64, u64, u64, bool) {
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
        let (offset, length, one) = self.extents[extent as usize];
        let whole = self.whole.hit(rng.next());
        let covered = if whole { length } else { 1 + rng.below(length) };
        (offset, covered, offset + length, one)
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
    let draws: Vec<(Chance, [Sizes; 2])> = revisits.classes.iter().map(RevisitClass::draws).collect();
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
                let (one, [others, requests]) = &draws[class];
                let one = one.hit(rng.next());
                let length = if one { requests } else { others }.draw(rng);
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
