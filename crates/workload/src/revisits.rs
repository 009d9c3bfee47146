//! Where and when the same data is accessed again: what a profile keeps of a trace's order.
//!
//! A *run* is what requests of one kind access in sequence. An *extent* is where a run begins and
//! ends; several runs can go to the same. A *region* is 64 pages of 4 KiB.
//!
//! 1. A profile has the trace's extents, with their places, lengths and runs. It has the region of
//!    each run, in the order of the trace, and when flushes came. It does not have the extent of
//!    each run.
//! 2. Within a region the next extent is drawn ([`steps`]): the next by address, the same again, a
//!    new one, or one accessed before, at a depth of the order of last accesses. How often each
//!    kind of step follows is counted by what came before and what is possible.
//! 3. One pass is made of that, and played for ever ([`mod@pass`]). It accesses each extent as
//!    often as the trace does.

use crate::pick::{Alias, Chance, Rng};
use crate::profile::SizeShare;
use serde::{Deserialize, Serialize};

mod layout;
mod packed;
mod pass;
mod steps;

use pass::{Pass, pass, scale};

pub(crate) use layout::{Extent, Layout};
pub(crate) use steps::{CASES, Kind, ORDERS, State, depth_bin, order};

/// Bytes of the pages that steps by address are counted in.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// Bytes of a region. FTLs with log blocks react to the order in which erase blocks are written, of
/// which few are smaller.
pub(crate) const REGION_BYTES: u64 = 64 * PAGE_BYTES;

/// The version of the model. It changes with the fields of [`Revisits`] and with what they mean.
pub const REVISITS_VERSION: u32 = 3;

/// More extents than so many are refused, for the memory that they take.
const MOST_EXTENTS: f64 = (1_u64 << 24) as f64;

/// The same for runs of a pass.
const MOST_RUNS: f64 = (1_u64 << 26) as f64;

/// How requests of one kind come back to the same data. Lists of a number for each extent, run or
/// region are a line of text each: numbers with spaces between them, `5x3` for 5 three times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revisits {
    /// [`REVISITS_VERSION`] of the program that fitted them.
    pub version: u32,
    /// Bytes of a unit, of which `starts` and `lengths` are multiples.
    pub unit_bytes: u64,
    /// For each extent, pages of 4 KiB from the one before to its first page. Extents are in the
    /// order of addresses.
    #[serde(with = "packed")]
    pub pages: Vec<u64>,
    /// Units from the begin of that page to its first byte.
    #[serde(with = "packed")]
    pub starts: Vec<u64>,
    /// Its units.
    #[serde(with = "packed")]
    pub lengths: Vec<u64>,
    /// Runs to it.
    #[serde(with = "packed")]
    pub runs: Vec<u32>,
    /// The last so many extents are trimmed. Their pages count from 0 again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub trimmed: u64,
    /// For each run, regions from that of the run before. Only regions in which extents begin
    /// count. What is trimmed has regions of its own, after the others.
    #[serde(with = "packed")]
    pub path: Vec<i64>,
    /// For each flush, runs since the one before.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "packed")]
    pub flushes: Vec<u64>,
    /// For each region, how much of it is accessed by address: 0 is less than 25% of its runs, 1
    /// less than 60%, 2 less than 90%, 3 not all, 4 all.
    #[serde(with = "packed")]
    pub orders: Vec<u8>,
    /// The number of a case, and how many runs of the trace went in it to the next extent by
    /// address, to the same again, to a new one, and to an old one.
    pub kinds: Vec<[u32; 5]>,
    /// Bits of how many old extents a region has, a bin of the depth of one of them, and runs that
    /// went to such a one.
    pub depths: Vec<[i32; 3]>,
    /// How much a region is accessed by address, the step to a new extent from the one that follows
    /// the last, and how many there are.
    pub news: Vec<[i32; 3]>,
    /// Requests of runs by their length.
    pub requests: Vec<RunRequests>,
}

/// The requests of runs that are about as long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRequests {
    /// The longest of the runs, bytes.
    pub upto_bytes: u64,
    /// Share of them that are one request, percent.
    pub one_percent: f64,
    /// Requests that the others have on average.
    pub requests_per_run: f64,
    /// Sizes of their requests. Empty if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<SizeShare>,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl Revisits {
    pub(crate) fn check(&self) -> Result<(), String> {
        self.check_extents()?;
        self.check_path()?;
        self.check_counts()?;
        let sane =
            |share: &SizeShare| share.bytes > 0 && share.bytes <= 1 << 40 && (0.0..=1e9).contains(&share.percent);
        for RunRequests { upto_bytes, one_percent, requests_per_run, sizes } in &self.requests {
            if !(0.0..=100.0 + 1e-6).contains(one_percent) || !(1.0..=1e9).contains(requests_per_run) {
                return Err(format!(
                    "{one_percent} is not a percentage of runs, or {requests_per_run} are no requests"
                ));
            }
            let weight: f64 = sizes.iter().map(|share| share.percent).sum();
            if !sizes.iter().all(sane) || (!sizes.is_empty() && weight <= 0.0) || *upto_bytes == 0 {
                return Err("requests of runs need bytes, and percentages above 0".to_owned());
            }
        }
        match self.requests.is_sorted_by_key(|requests| requests.upto_bytes) {
            true => Ok(()),
            false => Err("requests of runs are not in the order of upto_bytes".to_owned()),
        }
    }

    fn check_extents(&self) -> Result<(), String> {
        let all = self.pages.len();
        for (what, length) in
            [("starts", self.starts.len()), ("lengths", self.lengths.len()), ("runs", self.runs.len())]
        {
            if length != all {
                return Err(format!("revisits have {all} pages and {length} {what}"));
            }
        }
        if all == 0 || all as f64 > MOST_EXTENTS || self.trimmed > all as u64 {
            return Err(format!("revisits have {all} extents, {} of them trimmed", self.trimmed));
        }
        if !(1..=PAGE_BYTES).contains(&self.unit_bytes) || !PAGE_BYTES.is_multiple_of(self.unit_bytes) {
            return Err(format!("unit_bytes of revisits is {}, which does not divide 4096", self.unit_bytes));
        }
        let page: u128 = self.pages.iter().copied().map(u128::from).sum();
        if page > 1 << 40 || self.lengths.iter().any(|&units| units == 0 || units > 1 << 40) {
            return Err("an extent of revisits is empty, or beyond 2^52 bytes".to_owned());
        }
        if self.starts.iter().any(|&units| units >= PAGE_BYTES / self.unit_bytes) {
            return Err("an extent of revisits starts behind its page".to_owned());
        }
        match self.extents().is_sorted() {
            true => Ok(()),
            false => Err("extents of revisits are not in the order of addresses".to_owned()),
        }
    }

    /// The extents must have the runs of the path.
    fn check_path(&self) -> Result<(), String> {
        let layout = Layout::new(self.extents());
        if self.orders.len() != layout.regions || self.orders.iter().any(|&order| usize::from(order) >= ORDERS) {
            return Err(format!(
                "revisits have {} orders for {} regions, or one that is not 0 to 4",
                self.orders.len(),
                layout.regions
            ));
        }
        let mut due = vec![0_u64; layout.regions];
        for (&region, &runs) in layout.region.iter().zip(&self.runs) {
            due[region as usize] += u64::from(runs);
        }
        if self.runs.contains(&0) {
            return Err("an extent of revisits has no run".to_owned());
        }
        let mut region = 0_i64;
        for (run, step) in self.path.iter().enumerate() {
            region = region.saturating_add(*step);
            let due = usize::try_from(region).ok().and_then(|region| due.get_mut(region));
            let Some(due) = due.filter(|due| **due > 0) else {
                return Err(format!(
                    "run {} of revisits goes to region {region}, which has no extent with runs left",
                    run + 1
                ));
            };
            *due -= 1;
        }
        match due.iter().position(|&due| due > 0) {
            None => Ok(()),
            Some(region) => Err(format!("the path of revisits leaves out {} runs of region {region}", due[region])),
        }
    }

    fn check_counts(&self) -> Result<(), String> {
        if self.kinds.iter().any(|&[case, ..]| case as usize >= CASES) {
            return Err(format!("a case of revisits is not below {CASES}"));
        }
        let depth = |&[bits, bin, n]: &[i32; 3]| (0..33).contains(&bits) && (-160..160).contains(&bin) && n >= 0;
        let new = |&[order, _, n]: &[i32; 3]| (0..ORDERS as i32).contains(&order) && n >= 0;
        match self.depths.iter().all(depth) && self.news.iter().all(new) {
            true => Ok(()),
            false => Err("depths or news of revisits are out of range".to_owned()),
        }
    }

    /// Extents by address.
    fn extents(&self) -> Vec<Extent> {
        let written = self.pages.len() - self.trimmed as usize;
        let mut page = 0;
        let extent = |(at, &step): (usize, &u64)| {
            page = if at == written { step } else { page + step };
            let offset = page * PAGE_BYTES + self.starts[at] * self.unit_bytes;
            Extent { trim: at >= written, offset, bytes: self.lengths[at] * self.unit_bytes }
        };
        self.pages.iter().enumerate().map(extent).collect()
    }

    /// The region of each run.
    fn regions(&self) -> Vec<u32> {
        let mut region = 0;
        let go = |step: &i64| {
            region += step;
            region as u32
        };
        self.path.iter().map(go).collect()
    }

    /// Runs before each flush.
    fn flushes(&self) -> Vec<usize> {
        let mut runs = 0_usize;
        let go = |step: &u64| {
            runs = runs.saturating_add(*step as usize);
            runs
        };
        self.flushes.iter().map(go).collect()
    }
}

/// What a walk does next.
pub(crate) enum Step {
    Flush,
    Access { trim: bool, offset: u64, bytes: u64 },
}

/// Requests of runs of a length.
struct Requests {
    upto_bytes: u64,
    one: Chance,
    /// The others have at least so many, and with a chance one more.
    least: u64,
    more: Chance,
    sizes: Vec<u64>,
    pick: Alias,
}

impl Requests {
    fn new(requests: &RunRequests) -> Requests {
        let one = [SizeShare { bytes: requests.upto_bytes, percent: 100.0 }];
        let sizes = if requests.sizes.is_empty() { &one[..] } else { &requests.sizes };
        let weights: Vec<f64> = sizes.iter().map(|share| share.percent).collect();
        Requests {
            upto_bytes: requests.upto_bytes,
            one: Chance::new(requests.one_percent / 100.0),
            least: requests.requests_per_run as u64,
            more: Chance::new(requests.requests_per_run.fract()),
            sizes: sizes.iter().map(|share| share.bytes).collect(),
            pick: Alias::new(&weights),
        }
    }

    /// How many a run has.
    fn count(&self, rng: &mut Rng) -> u64 {
        match self.one.hit(rng.next()) {
            true => 1,
            false => self.least + u64::from(self.more.hit(rng.next())),
        }
    }

    /// The size of one of so many in a run that has so many bytes left. Each of the others keeps a
    /// sector, or a byte where sectors do not divide the run.
    fn draw(&self, left: u64, bytes: u64, rng: &mut Rng) -> u64 {
        let least = if bytes.is_multiple_of(512) { 512 } else { 1 };
        let room = bytes.saturating_sub((left - 1).saturating_mul(least)).max(least.min(bytes));
        match left {
            1 => bytes,
            _ => self.sizes[self.pick.pick(rng.next())].min(room),
        }
    }
}

/// Runs that come back to the same data as those of a trace did.
pub(crate) struct Walk {
    pass: Pass,
    requests: Vec<Requests>,
    /// Runs of this pass begun, and flushes done.
    begun: usize,
    flushed: usize,
    /// What is left of the run, in how many requests, and the number of what those are drawn from.
    run: Extent,
    left: u64,
    of: usize,
}

impl Walk {
    /// Runs over the first `limit` bytes of a device, where the trace touched `touched_bytes`; with
    /// its flushes, or without.
    ///
    /// # Errors
    /// If that would take more extents or runs than there may be, or there is no room for any.
    pub(crate) fn new(
        revisits: &Revisits,
        limit: u64,
        touched_bytes: u64,
        flushes: bool,
        rng: &mut Rng,
    ) -> Result<Walk, String> {
        let scale = scale(limit, touched_bytes);
        let (extents, runs) = (revisits.pages.len() as f64 * scale, revisits.path.len() as f64 * scale);
        if extents > MOST_EXTENTS || runs > MOST_RUNS {
            return Err(format!(
                "it would take {extents:.0} extents and {runs:.0} runs; {MOST_EXTENTS:.0} and {MOST_RUNS:.0} are the most"
            ));
        }
        let layout = Layout::new(revisits.extents());
        let mut pass = pass(revisits, &layout, limit, touched_bytes, rng);
        if pass.runs.is_empty() {
            return Err("it is too small for any extent of the profile; raise footprint or the capacity".to_owned());
        }
        if !flushes {
            pass.flushes.clear();
        }
        let requests = revisits.requests.iter().map(Requests::new).collect();
        let run = Extent { trim: false, offset: 0, bytes: 0 };
        Ok(Walk { pass, requests, begun: 0, flushed: 0, run, left: 0, of: 0 })
    }

    /// Whether all of a pass was done.
    pub(crate) fn passed(&self) -> bool {
        self.run.bytes == 0 && self.begun == self.pass.runs.len() && self.flushed == self.pass.flushes.len()
    }

    /// The next request, or a flush.
    pub(crate) fn draw(&mut self, rng: &mut Rng) -> Step {
        if self.run.bytes == 0 {
            if self.passed() {
                (self.begun, self.flushed) = (0, 0);
            }
            if self.pass.flushes.get(self.flushed).is_some_and(|&before| before <= self.begun) {
                self.flushed += 1;
                return Step::Flush;
            }
            self.run = self.pass.extents[self.pass.runs[self.begun] as usize];
            self.begun += 1;
            self.of = self.requests.partition_point(|requests| requests.upto_bytes < self.run.bytes);
            self.left = self.requests.get(self.of).map_or(1, |requests| requests.count(rng));
        }
        let Extent { trim, offset, bytes } = self.run;
        let requests = self.requests.get(self.of);
        let bytes = requests.map_or(bytes, |requests| requests.draw(self.left.max(1), bytes, rng));
        self.left = self.left.saturating_sub(1);
        self.run = Extent { trim, offset: offset + bytes, bytes: self.run.bytes - bytes };
        Step::Access { trim, offset, bytes }
    }
}
