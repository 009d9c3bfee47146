//! How a synthetic request is drawn.
//!
//! 1. If a flush is due (`flush=N` writes since the last), it is the request.
//! 2. The kind is drawn from `reads` and `trims`; the rest are writes.
//! 3. The size is drawn from `size`.
//! 4. The workload's [`Picker`] names a slot; slots are `align` bytes apart and fill the footprint.
//!    A request that would leave the footprint is moved back to end at its last slot.
//! 5. With `rate`, the arrival is an exponential gap after the last one (a Poisson process).
//!
//! The loop is generic over the picker, so a batch costs one virtual call. When only the slot is
//! random, which is the common case, a loop without the other draws runs.

use crate::error::WorkloadError;
use crate::param::Kind::{Bytes, Count, Number, Percent, Share, Sizes};
use crate::param::{Parameter, Size};
use crate::pick::{Alias, Chance, Rng};
use crate::request::{Op, Request, Source};
use crate::spec::Spec;
use crate::synthetic::Room;

/// The options every workload takes, unless its row says otherwise.
pub(crate) const COMMON: &[Parameter] = &[
    Parameter { name: "reads", unit: "%", default: Some("0"), meaning: "share of requests that read", kind: Percent },
    Parameter { name: "trims", unit: "%", default: Some("0"), meaning: "share of requests that trim", kind: Percent },
    Parameter {
        name: "flush",
        unit: "writes",
        default: None,
        meaning: "one flush after so many writes",
        kind: Count(1, u64::MAX),
    },
    Parameter {
        name: "size",
        unit: "bytes",
        default: Some("page"),
        meaning: "size of a request, or sizes with weights: 4KiB*70+64KiB*30",
        kind: Sizes,
    },
    Parameter {
        name: "align",
        unit: "bytes",
        default: None,
        meaning: "requests start at multiples of this; the smallest size if not given",
        kind: Bytes,
    },
    Parameter {
        name: "rate",
        unit: "requests/s",
        default: None,
        meaning: "Poisson arrivals; without it there are no arrival times",
        kind: Number(0.0, 1e9),
    },
    Parameter {
        name: "footprint",
        unit: "%",
        default: Some("100"),
        meaning: "part of the logical space in use, from its start",
        kind: Share,
    },
];

/// Where requests go: the part that differs from workload to workload.
pub(crate) trait Picker: Send {
    /// A slot below the number the picker was built for; `span` is how many slots the request
    /// covers.
    fn pick(&mut self, rng: &mut Rng, span: u64) -> u64;

    /// A write has been drawn.
    fn wrote(&mut self) {}
}

/// Checks what concerns several options at once and needs no device.
pub(crate) fn check(spec: &Spec) -> Result<(), WorkloadError> {
    let (reads, trims) = (spec.number("reads").unwrap_or(0.0), spec.number("trims").unwrap_or(0.0));
    if reads + trims > 100.0 {
        return Err(spec.contradiction(format!("reads={reads} and trims={trims} are more than 100% together")));
    }
    if spec.count("flush").is_some() && reads + trims >= 100.0 {
        return Err(spec.contradiction("flush counts writes, but reads and trims leave none; lower them or drop flush"));
    }
    let absolute = spec.sizes("size").is_some_and(|s| s.iter().all(|(size, _)| *size != Size::Page));
    if let (true, Some(Size::Bytes(align)), Some(sizes)) = (absolute, spec.size("align"), spec.sizes("size")) {
        let smallest = sizes.iter().map(|(size, _)| size.bytes(0)).min().unwrap_or(align);
        if align % smallest != 0 && smallest % align != 0 {
            return Err(spec.contradiction(format!(
                "align of {align} B and size of {smallest} B: neither divides the other, so requests would straddle slots at random"
            )));
        }
    }
    (spec.entry().check)(spec)
}

/// Bytes of a request.
#[derive(Clone, Debug)]
enum Lengths {
    Fixed(u64),
    Drawn(Vec<u64>, Alias),
}

/// The common options, resolved for a device.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// Slots in the footprint.
    pub(crate) slots: u64,
    /// Bytes from slot to slot.
    pub(crate) align: u64,
    limit: u64,
    lengths: Lengths,
    reads: Chance,
    reads_or_trims: Chance,
    flush: u64,
    gap_ns: Option<f64>,
}

impl Shape {
    pub(crate) fn new(spec: &Spec, room: Room) -> Result<Shape, WorkloadError> {
        let sizes: Vec<(u64, f64)> = match spec.sizes("size") {
            Some(list) => list.iter().map(|(s, w)| (s.bytes(room.page_bytes), *w)).collect(),
            None => vec![(u64::from(room.page_bytes), 1.0)],
        };
        let smallest = sizes.iter().map(|s| s.0).min().unwrap_or(1);
        let largest = sizes.iter().map(|s| s.0).max().unwrap_or(1);
        let align = spec.size("align").map_or(smallest, |s| s.bytes(room.page_bytes));
        let percent = spec.number("footprint").unwrap_or(100.0);
        let slots = if percent >= 100.0 {
            room.logical_bytes / align
        } else {
            (room.logical_bytes as f64 * (percent / 100.0)) as u64 / align
        };
        let limit = slots * align;
        if largest > limit {
            return Err(spec.unfit(format!(
                "a request of {largest} B is larger than the footprint of {limit} B; choose a smaller size or a larger device"
            )));
        }
        let reads = spec.number("reads").unwrap_or(0.0) / 100.0;
        let trims = spec.number("trims").unwrap_or(0.0) / 100.0;
        let lengths = match &sizes[..] {
            [(bytes, _)] => Lengths::Fixed(*bytes),
            _ => Lengths::Drawn(
                sizes.iter().map(|s| s.0).collect(),
                Alias::new(&sizes.iter().map(|s| s.1).collect::<Vec<_>>()),
            ),
        };
        Ok(Shape {
            slots,
            align,
            limit,
            lengths,
            reads: Chance::new(reads),
            reads_or_trims: Chance::new(reads + trims),
            flush: spec.count("flush").unwrap_or(0),
            gap_ns: spec.number("rate").map(|rate| 1e9 / rate),
        })
    }

    /// Byte offset of a request at `slot`, moved back inside the footprint if it would leave it.
    #[inline]
    fn offset(&self, slot: u64, bytes: u64) -> u64 {
        let offset = slot * self.align;
        if bytes <= self.limit - offset { offset } else { (self.limit - bytes) / self.align * self.align }
    }
}

/// A synthetic source: a picker of slots and the shape of its requests.
pub(crate) struct Stream<P> {
    picker: P,
    shape: Shape,
    /// Addresses and all other draws come from two generators, so that an option does not move the
    /// addresses.
    places: Rng,
    kinds: Rng,
    now_ns: f64,
    writes_since_flush: u64,
    description: String,
}

impl<P: Picker + 'static> Stream<P> {
    /// Boxes the finished source.
    pub(crate) fn boxed(spec: &Spec, room: Room, shape: Shape, picker: P) -> Box<dyn Source> {
        let description = format!(
            "{} (align {} B, {} slots, logical space {} B, pages of {} B, seed {})",
            spec.full(),
            shape.align,
            shape.slots,
            room.logical_bytes,
            room.page_bytes,
            room.seed,
        );
        let (places, kinds) = (Rng::new(room.seed, 1), Rng::new(room.seed, 2));
        Box::new(Stream { picker, shape, places, kinds, now_ns: 0.0, writes_since_flush: 0, description })
    }

    fn fill_writes(&mut self, out: &mut [Request], bytes: u64) {
        // Locals, because the generator's state must stay in registers for the target of a few
        // nanoseconds.
        let (align, mut rng) = (self.shape.align, self.places.clone());
        let span = bytes.div_ceil(align);
        for request in out {
            let slot = self.picker.pick(&mut rng, span);
            self.picker.wrote();
            let offset = if span == 1 && bytes == align { slot * align } else { self.shape.offset(slot, bytes) };
            *request = Request { at_ns: 0, op: Op::Write, offset, bytes, fua: false };
        }
        self.places = rng;
    }

    #[inline]
    fn draw(&mut self) -> Request {
        let at_ns = match self.shape.gap_ns {
            Some(mean) => {
                let at = self.now_ns;
                self.now_ns += mean * self.kinds.exponential();
                at as u64
            }
            None => 0,
        };
        if self.shape.flush != 0 && self.writes_since_flush == self.shape.flush {
            self.writes_since_flush = 0;
            return Request { at_ns, op: Op::Flush, offset: 0, bytes: 0, fua: false };
        }
        let op = if self.shape.reads_or_trims.never() {
            Op::Write
        } else {
            let draw = self.kinds.next();
            match (self.shape.reads.hit(draw), self.shape.reads_or_trims.hit(draw)) {
                (true, _) => Op::Read,
                (false, true) => Op::Trim,
                (false, false) => Op::Write,
            }
        };
        let bytes = match &self.shape.lengths {
            Lengths::Fixed(bytes) => *bytes,
            Lengths::Drawn(sizes, alias) => sizes[alias.pick(self.kinds.next())],
        };
        let slot = self.picker.pick(&mut self.places, bytes.div_ceil(self.shape.align));
        if op == Op::Write {
            self.writes_since_flush += 1;
            self.picker.wrote();
        }
        Request { at_ns, op, offset: self.shape.offset(slot, bytes), bytes, fua: false }
    }
}

impl<P: Picker + 'static> Source for Stream<P> {
    fn fill(&mut self, out: &mut [Request]) -> Result<usize, WorkloadError> {
        let only_writes = self.shape.reads_or_trims.never();
        let plain = only_writes && self.shape.flush == 0 && self.shape.gap_ns.is_none();
        match (plain, &self.shape.lengths) {
            (true, &Lengths::Fixed(bytes)) => self.fill_writes(out, bytes),
            _ => {
                for request in out.iter_mut() {
                    *request = self.draw();
                }
            }
        }
        Ok(out.len())
    }

    fn timed(&self) -> bool {
        self.shape.gap_ns.is_some()
    }

    fn describe(&self) -> String {
        self.description.clone()
    }
}
