//! A profile run as a generator: published, or fitted to a trace.
//!
//! 1. The kind is drawn from the profile's mix, the size from the sizes of that kind.
//! 2. A kind with revisits goes by them ([`crate::revisits`]): those of writes have trims and
//!    flushes too. Otherwise with the kind's
//!    sequential share the request starts where the last of its kind ended; else a rank is drawn
//!    from its popularity, and a place aligned as in the profile within the slot of that rank.
//!    Reads and writes share one scattering of ranks, so pages hot for both are the same pages.
//! 3. Gaps between arrivals have the profile's mean and coefficient of variation: two-phase
//!    hyperexponential with balanced means above 1, shifted exponential below.

use super::{Room, WorkloadEntry, Zipf, no_check};
use crate::error::WorkloadError;
use crate::param::{Kind, Parameter};
use crate::permutation::Permutation;
use crate::pick::{Alias, Chance, Rng};
use crate::profile::{Arrivals, Popularity, Profile, Side};
use crate::request::{Op, Request, Source};
use crate::revisits::{Step, Walk};
use crate::spec::Spec;

pub(super) const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "profile",
    summary: "a published or fitted profile, run as a generator",
    parameters: &[Parameter {
        name: "name",
        unit: "",
        default: Some("financial1"),
        meaning: "financial1, msnfs, radius, ts0, or a TOML file",
        kind: Kind::Text,
    }],
    common: Some(&["flush", "rate", "footprint"]),
    example: "profile:msnfs",
    check: no_check,
    build,
};

fn build(spec: &Spec, room: Room) -> Result<Box<dyn Source>, WorkloadError> {
    let profile = Profile::load(spec.name("name").unwrap_or("financial1"))?;
    let percent = spec.number("footprint").unwrap_or(100.0);
    let slot_bytes = profile.slot_bytes();
    let slots = (room.logical_bytes as f64 * (percent / 100.0)) as u64 / slot_bytes;
    let limit = slots * slot_bytes;
    let sides = [&profile.reads, &profile.writes];
    let largest = sides.iter().flat_map(|s| &s.sizes).map(|s| s.bytes).max().unwrap_or(0);
    if largest > limit {
        return Err(spec.unfit(format!("its largest request has {largest} B, the footprint {limit} B")));
    }
    let flush = spec.count("flush").unwrap_or(0);
    if flush != 0 && profile.write_percent == 0.0 {
        return Err(spec.contradiction("flush counts writes, but the profile has none"));
    }
    let arrivals = match spec.number("rate") {
        Some(per_second) => Some(Arrivals { per_second, cv: profile.arrivals.map_or(1.0, |a| a.cv) }),
        None => profile.arrivals,
    };
    // A rate of flushes that was asked for takes the place of the profile's.
    let flushes = spec.count("flush").is_none();
    let mut drawers = Vec::new();
    for (side, stream) in sides.into_iter().zip([4, 5]) {
        let mut drawer = Drawer::new(side, slots);
        if let Some(revisits) = &side.revisits {
            // The same places and the same pass at every seed: a device is aged and measured with
            // two.
            let mut rng = Rng::new(0, stream);
            let walk = Walk::new(revisits, limit, profile.footprint_bytes, flushes, &mut rng);
            drawer.walk = Some(walk.map_err(|why| spec.unfit(why))?);
        }
        drawers.push(drawer);
    }
    let description = format!(
        "{} ({}; {:.1}% writes of {:.2} KiB, {:.1}% trims, reads of {:.2} KiB; arrivals {}; {slots} slots of {slot_bytes} B, seed {}{})",
        spec.full(),
        profile.source,
        profile.write_percent,
        profile.writes.mean_bytes() / 1024.0,
        profile.trim_percent,
        profile.reads.mean_bytes() / 1024.0,
        arrivals.map_or("none".to_owned(), |a| format!("{:.1}/s with cv {:.2}", a.per_second, a.cv)),
        room.seed,
        if profile.assumptions.is_empty() { String::new() } else { format!("; assumed: {}", profile.assumptions) },
    );
    Ok(Box::new(Generator {
        reads: Chance::new((100.0 - profile.write_percent - profile.trim_percent) / 100.0),
        reads_or_trims: Chance::new((100.0 - profile.write_percent) / 100.0),
        sides: drawers,
        scatter: Permutation::new(slots, &mut Rng::new(room.seed, 3)),
        gaps: arrivals.map(Gaps::new),
        space: Space { limit, slot_bytes, align_bytes: profile.align_bytes },
        flush,
        one_pass: room.one_pass && profile.has_passes(),
        writes_since_flush: 0,
        now_ns: 0.0,
        rng: Rng::new(room.seed, 1),
        description,
    }))
}

enum Ranks {
    Zipf(Zipf),
    /// First rank and length of each class.
    Classes(Vec<(u64, u64)>, Alias),
}

impl Ranks {
    fn new(popularity: &Popularity, slots: u64) -> Ranks {
        let (space, share) = match popularity {
            Popularity::Zipf { theta } => return Ranks::Zipf(Zipf::new(slots, *theta)),
            Popularity::Curve { space, share } => (space, share),
        };
        let (mut classes, mut weights) = (Vec::new(), Vec::new());
        let (mut first, mut below) = (0u64, 0.0);
        for (space, share) in space.iter().zip(share) {
            let end = ((slots as f64 * space / 100.0).round() as u64).clamp(first, slots);
            // A class too narrow for one slot here gives its share to the next one.
            if end > first && *share > below {
                classes.push((first, end - first));
                weights.push(share - below);
                (first, below) = (end, *share);
            }
        }
        if classes.is_empty() {
            (classes, weights) = (vec![(0, slots)], vec![1.0]);
        }
        Ranks::Classes(classes, Alias::new(&weights))
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            Ranks::Zipf(zipf) => zipf.rank(rng),
            Ranks::Classes(classes, alias) => {
                let (first, length) = classes[alias.pick(rng.next())];
                first + rng.below(length)
            }
        }
    }
}

/// The part of the device in use.
#[derive(Clone, Copy)]
struct Space {
    limit: u64,
    slot_bytes: u64,
    align_bytes: u64,
}

/// One kind of request.
struct Drawer {
    bytes: Vec<u64>,
    sizes: Alias,
    sequential: Chance,
    ranks: Ranks,
    end: u64,
    walk: Option<Walk>,
}

impl Drawer {
    fn new(side: &Side, slots: u64) -> Drawer {
        Drawer {
            bytes: side.sizes.iter().map(|s| s.bytes).collect(),
            sizes: Alias::new(&side.sizes.iter().map(|s| s.percent).collect::<Vec<_>>()),
            sequential: Chance::new(side.sequential_percent / 100.0),
            ranks: Ranks::new(&side.popularity, slots),
            end: 0,
            walk: None,
        }
    }

    /// The next request, or a flush. A walk knows its trims itself; otherwise `trim` says so.
    fn draw(&mut self, trim: bool, rng: &mut Rng, scatter: &Permutation, space: Space) -> Step {
        if let Some(walk) = &mut self.walk {
            return walk.draw(rng);
        }
        let bytes = self.bytes[self.sizes.pick(rng.next())];
        let mut offset = self.end;
        if !self.sequential.hit(rng.next()) || bytes > space.limit - offset {
            let slot = scatter.apply(self.ranks.draw(rng));
            let within = rng.below(space.slot_bytes / space.align_bytes) * space.align_bytes;
            let last = (space.limit - bytes) / space.align_bytes * space.align_bytes;
            offset = (slot * space.slot_bytes + within).min(last);
        }
        self.end = offset + bytes;
        Step::Access { trim, offset, bytes }
    }
}

/// Gaps with a given mean and coefficient of variation.
struct Gaps {
    short: Chance,
    short_ns: f64,
    long_ns: f64,
    least_ns: f64,
}

impl Gaps {
    fn new(arrivals: Arrivals) -> Gaps {
        let mean_ns = 1e9 / arrivals.per_second;
        let cv = arrivals.cv;
        if cv <= 1.0 {
            let random = mean_ns * cv;
            return Gaps { short: Chance::new(1.0), short_ns: random, long_ns: random, least_ns: mean_ns - random };
        }
        let square = cv * cv;
        let often = 0.5 * (1.0 + ((square - 1.0) / (square + 1.0)).sqrt());
        Gaps {
            short: Chance::new(often),
            short_ns: mean_ns / (2.0 * often),
            long_ns: mean_ns / (2.0 * (1.0 - often)),
            least_ns: 0.0,
        }
    }

    fn draw(&self, rng: &mut Rng) -> f64 {
        let mean = if self.short.hit(rng.next()) { self.short_ns } else { self.long_ns };
        self.least_ns + mean * rng.exponential()
    }
}

struct Generator {
    reads: Chance,
    reads_or_trims: Chance,
    /// Reads, then writes.
    sides: Vec<Drawer>,
    scatter: Permutation,
    gaps: Option<Gaps>,
    space: Space,
    flush: u64,
    /// Whether it ends when the writes have gone through a pass.
    one_pass: bool,
    writes_since_flush: u64,
    now_ns: f64,
    rng: Rng,
    description: String,
}

impl Generator {
    fn draw(&mut self) -> Request {
        let at_ns = self.now_ns as u64;
        if let Some(gaps) = &self.gaps {
            self.now_ns += gaps.draw(&mut self.rng);
        }
        if self.flush != 0 && self.writes_since_flush == self.flush {
            self.writes_since_flush = 0;
            return Request { at_ns, op: Op::Flush, offset: 0, bytes: 0, fua: false };
        }
        let draw = self.rng.next();
        let (read, trim) = (self.reads.hit(draw), self.reads_or_trims.hit(draw));
        let side = &mut self.sides[usize::from(!read)];
        match side.draw(!read && trim, &mut self.rng, &self.scatter, self.space) {
            Step::Flush => Request { at_ns, op: Op::Flush, offset: 0, bytes: 0, fua: false },
            Step::Access { trim, offset, bytes } => {
                let op = match (read, trim) {
                    (true, _) => Op::Read,
                    (false, true) => Op::Trim,
                    (false, false) => Op::Write,
                };
                self.writes_since_flush += u64::from(op == Op::Write);
                Request { at_ns, op, offset, bytes, fua: false }
            }
        }
    }
}

impl Source for Generator {
    fn fill(&mut self, out: &mut [Request]) -> Result<usize, WorkloadError> {
        for (drawn, request) in out.iter_mut().enumerate() {
            if self.one_pass && self.sides[1].walk.as_ref().is_some_and(Walk::passed) {
                return Ok(drawn);
            }
            *request = self.draw();
        }
        Ok(out.len())
    }

    fn timed(&self) -> bool {
        self.gaps.is_some()
    }

    fn describe(&self) -> String {
        self.description.clone()
    }
}
