//! Hosts in virtual time: they send requests to the FTL at the right moment and let the [`Machine`]
//! say when each is done.

mod buffered;
mod link;
mod stage;

use crate::by_bank::ByBank;
use crate::device::Device;
use crate::error::SimError;
use crate::feed::Feed;
use crate::host::Host;
use crate::latency::Latencies;
use crate::progress::{Phase, Reporter};
use crate::result::{LatencyByKind, ThroughputResult};
use crate::room::Room;
use crate::source::{Op, Request};
use crate::spec::{GcMode, HostMode, QueueOptions, RunSpec};
use crate::timeline::Timeline;
use crate::timing::{Machine, Token};
use ftl::Purpose;
use link::Link;
use nand::Lpn;
use stage::Stage;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;
use workload::Poisson;

/// What the timed part of a run gives.
pub(crate) struct TimedResult {
    pub(crate) latency_us: LatencyByKind,
    pub(crate) throughput: ThroughputResult,
    pub(crate) end_ns: u64,
}

/// The token of background work.
const BACKGROUND: Token = Token::MAX;

/// A request in the device. A flush ends once every write and trim has that came before it.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    op: Op,
    bytes: u64,
    arrived_ns: u64,
    /// How many requests came before it.
    order: u64,
    strands: u32,
    /// Of a flush, writes and trims that came before it and have not ended.
    waits_for: u32,
}

impl Outstanding {
    const NONE: Self = Self { op: Op::Flush, bytes: 0, arrived_ns: 0, order: 0, strands: 0, waits_for: 0 };

    const fn has_ended(&self) -> bool {
        self.strands == 0 && self.waits_for == 0
    }

    /// Whether a flush that comes later waits for it.
    const fn is_change(&self) -> bool {
        matches!(self.op, Op::Write | Op::Trim)
    }
}

/// Virtual time ends here, after 146 years: nothing that is added to it overflows.
const CLOCK_END_NS: u64 = 1 << 62;

/// Whether operations for this purpose are part of collections.
const fn is_collection(purpose: Purpose) -> bool {
    matches!(purpose, Purpose::Gc | Purpose::TranslationGc | Purpose::ValidityGc | Purpose::ValidityQuery)
}

fn clock_ended(what: &'static str, ns: f64) -> SimError {
    let years = ns / 1e9 / (365.25 * 24.0 * 3600.0);
    let reason = format!("virtual time would reach {years:.0} years, and it ends after 146; give shorter times");
    SimError::BadSpec { what, reason }
}

/// Plays the feed to its end.
///
/// # Errors
/// [`SimError`] of the host; [`SimError::BadSpec`] if an option makes no sense, or virtual time
/// would end.
pub(crate) fn play<N: Device>(
    host: &mut Host<N>,
    feed: &mut Feed,
    spec: &RunSpec,
    options: &QueueOptions,
    timeline: &mut Timeline,
    report: &mut Reporter<'_>,
) -> Result<TimedResult, SimError> {
    let device = &spec.device;
    let by_bank = match options.gc {
        GcMode::ByBank { policy, collectors } => {
            let (collecting, workers) = ((policy, collectors), options.host.most_in_device());
            Some(ByBank::new(collecting, workers, &device.geometry, host.ftl_mut().banked())?)
        }
        _ => None,
    };
    host.ftl_mut().flash_mut().set_logging(true);
    host.ftl_mut().flash_mut().drain_log();
    let mut player = Player {
        machine: Machine::new(device, options),
        host,
        feed,
        timeline,
        report,
        controller_ns: options.controller_ns,
        gc: options.gc,
        by_bank,
        collection_takes_time: options.collection_takes_time,
        warm_up_requests: options.warm_up_requests,
        outstanding: Vec::new(),
        free: Vec::new(),
        in_device: 0,
        background: 0,
        rested: false,
        ended: Vec::new(),
        flushing: Vec::new(),
        changing: 0,
        link: Link::new(&device.limits),
        stage: Stage::new(options.ftl_page_ns),
        queue_depth: device.limits.queue_depth,
        room: spec.write_buffer.map(|options| Room::new(options.pages)),
        placed: Vec::new(),
        freed: 0,
        requests: 0,
        read: Latencies::new()?,
        write: Latencies::new()?,
        flush: Latencies::new()?,
        served: 0,
        bytes_read: 0,
        bytes_written: 0,
        first_ns: None,
        last_ns: 0,
        background_collections: 0,
    };
    match options.host {
        HostMode::Open { time_scale, outstanding } => player.open(time_scale, outstanding)?,
        HostMode::Poisson { per_s, outstanding } => player.poisson(per_s, outstanding, spec.seed)?,
        HostMode::Closed { queue_depth, think_ns } => player.closed(queue_depth, think_ns)?,
    }
    Ok(player.result())
}

/// Clients whose requests have ended send the next ones after a pause.
fn pause(clients: u32, now_ns: u64, pause_ns: u64, ready: &mut VecDeque<u64>, pausing: &mut BinaryHeap<Reverse<u64>>) {
    if pause_ns == 0 {
        ready.extend((0..clients).map(|_| now_ns));
    } else {
        pausing.extend((0..clients).map(|_| Reverse(now_ns + pause_ns)));
    }
}

struct Player<'a, 'b, N: Device> {
    machine: Machine,
    host: &'a mut Host<N>,
    feed: &'a mut Feed,
    timeline: &'a mut Timeline,
    report: &'a mut Reporter<'b>,
    controller_ns: u64,
    gc: GcMode,
    by_bank: Option<ByBank>,
    collection_takes_time: bool,
    warm_up_requests: u64,
    outstanding: Vec<Outstanding>,
    free: Vec<Token>,
    in_device: u32,
    /// Units of background work in the device.
    background: u32,
    /// The FTL said that there is no background work, and no request has come since.
    rested: bool,
    /// Requests that ended with the last event.
    ended: Vec<Token>,
    /// Flushes in the device that wait for what came before them.
    flushing: Vec<Token>,
    /// Writes and trims in the device.
    changing: u32,
    link: Link,
    stage: Stage,
    /// Operations of requests that a die has to do, from which on no request leaves the host; 0 for
    /// any number.
    queue_depth: u32,
    /// Places of the write buffer, if there is one.
    room: Option<Room>,
    /// Requests that wait for one page less than when the request came that is being executed.
    placed: Vec<Token>,
    /// Requests that ended because another one came.
    freed: u32,
    /// Requests that came.
    requests: u64,
    read: Latencies,
    write: Latencies,
    flush: Latencies,
    /// Reads and writes that ended, those of the warm-up too.
    served: u64,
    bytes_read: u64,
    bytes_written: u64,
    first_ns: Option<u64>,
    last_ns: u64,
    background_collections: u64,
}

impl<N: Device> Player<'_, '_, N> {
    /// Requests arrive when the trace says; beyond `limit` in the device they wait outside.
    fn open(&mut self, time_scale: f64, limit: u32) -> Result<(), SimError> {
        if !(time_scale.is_finite() && time_scale > 0.0) || limit == 0 {
            return Err(SimError::BadSpec {
                what: "open loop",
                reason: format!("time scale {time_scale} and limit {limit} must both be more than 0"),
            });
        }
        if !self.feed.timed() {
            return Err(SimError::BadSpec {
                what: "open loop",
                reason: "this workload has no arrival times; give it a rate, or use a closed loop".to_owned(),
            });
        }
        self.arriving(limit, &mut |request| request.at_ns as f64 * time_scale)
    }

    /// Requests arrive at random, so many a second.
    fn poisson(&mut self, per_s: f64, limit: u32, seed: u64) -> Result<(), SimError> {
        if !(per_s.is_finite() && per_s > 0.0) || limit == 0 {
            return Err(SimError::BadSpec {
                what: "open loop",
                reason: format!("{per_s} requests/s and limit {limit} must both be more than 0"),
            });
        }
        let mut arrivals = Poisson::new(per_s, seed);
        self.arriving(limit, &mut |_| arrivals.next_ns())
    }

    /// Requests arrive when `arrival_ns` says.
    fn arriving(&mut self, limit: u32, arrival_ns: &mut dyn FnMut(&Request) -> f64) -> Result<(), SimError> {
        while let Some(request) = self.feed.next(&self.fed())? {
            let arrival_ns = arrival_ns(&request);
            if arrival_ns >= CLOCK_END_NS as f64 {
                return Err(clock_ended("arrival times", arrival_ns));
            }
            let arrival_ns = arrival_ns as u64;
            loop {
                let full = self.in_device >= limit || self.is_full();
                if full || self.next_ns().is_some_and(|ns| ns <= arrival_ns) {
                    self.run_event()?;
                } else if self.machine.now_ns() >= arrival_ns || !self.collect_if_idle()? {
                    break;
                }
            }
            self.machine.wait_until(arrival_ns);
            self.dispatch(&request, arrival_ns)?;
        }
        while self.in_device > 0 {
            self.run_event()?;
        }
        Ok(())
    }

    /// Each of `queue_depth` clients sends its next request `think_ns` after its last has ended.
    fn closed(&mut self, queue_depth: u32, think_ns: u64) -> Result<(), SimError> {
        if queue_depth == 0 {
            return Err(SimError::BadSpec { what: "queue depth", reason: "0 clients send nothing".to_owned() });
        }
        let pause_ns = self.controller_ns.saturating_add(think_ns);
        if pause_ns >= CLOCK_END_NS {
            return Err(clock_ended("think time", pause_ns as f64));
        }
        // Since when each client has had a request to send, the first to send it first.
        let mut ready: VecDeque<u64> = (0..queue_depth).map(|_| self.machine.now_ns()).collect();
        let mut pausing: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
        loop {
            let mut more = true;
            while more && !ready.is_empty() && !self.is_full() {
                let Some(request) = self.feed.next(&self.fed())? else {
                    more = false;
                    break;
                };
                let (since_ns, now_ns) = (ready.pop_front().unwrap_or_default(), self.machine.now_ns());
                let ended = u32::from(!self.dispatch(&request, since_ns)?) + std::mem::take(&mut self.freed);
                pause(ended, now_ns, pause_ns, &mut ready, &mut pausing);
            }
            if !more {
                if self.in_device == 0 {
                    return Ok(());
                }
                self.run_event()?;
                continue;
            }
            let event_ns = self.next_ns().unwrap_or(u64::MAX);
            match pausing.peek() {
                Some(&Reverse(at_ns)) if at_ns < event_ns => {
                    if self.machine.now_ns() >= at_ns || !self.collect_if_idle()? {
                        self.machine.wait_until(at_ns);
                        pausing.pop();
                        ready.push_back(self.machine.now_ns());
                    }
                }
                _ => {
                    let ended = self.run_event()?;
                    pause(ended, self.machine.now_ns(), pause_ns, &mut ready, &mut pausing);
                }
            }
        }
    }

    /// Whether no request may enter, because a die has as many operations of requests to do as its
    /// queue holds.
    fn is_full(&self) -> bool {
        let depth = self.queue_depth;
        depth > 0 && (0..self.machine.dies()).any(|die| self.machine.waiting(die) >= depth)
    }

    /// Has a request enter the device, now or once its data are there and the FTL comes to it.
    /// `false` if it has ended.
    fn dispatch(&mut self, request: &Request, arrived_ns: u64) -> Result<bool, SimError> {
        self.first_ns.get_or_insert(arrived_ns);
        let ahead = self.feed.ahead();
        if !ahead.is_empty() {
            self.host.announce(ahead);
        }
        let pages = self.host.span(request)?.map_or(0, |span| span.end - span.first);
        if self.link.brings(request, pages, self.machine.now_ns(), arrived_ns) {
            self.in_device += 1;
            return Ok(true);
        }
        self.begin(request, pages, arrived_ns)
    }

    /// Executes a request now and puts its flash operations into the machine. `false` if it needed
    /// none and has ended.
    fn enter(&mut self, request: &Request, arrived_ns: u64) -> Result<bool, SimError> {
        self.rested = false;
        self.host.count_request();
        let token = self.free.pop().unwrap_or_else(|| {
            self.outstanding.push(Outstanding::NONE);
            self.outstanding.len() as Token - 1
        });
        let mut strands = 0;
        let span = self.host.span(request)?;
        match (request.op, span) {
            (Op::Read, Some(span)) => {
                self.bytes_read += request.bytes;
                for page in span.first..span.end {
                    let part = self.host.part(request, page);
                    self.host.read_through(page, &part)?;
                    strands += self.submit_read(token, page, &part);
                }
            }
            (Op::Write, Some(span)) => {
                self.bytes_written += request.bytes;
                for page in span.first..span.end {
                    if self.room.is_some() {
                        strands += self.write_buffered(token, request, page)?;
                        continue;
                    }
                    self.aim()?;
                    self.host.write_page(page, span.is_partial(page))?;
                    strands += self.submit(token, false);
                }
            }
            (Op::Trim, Some(span)) => {
                let (first, count) = span.whole();
                self.trim_buffered(first..first + count);
                self.host.trim(span)?;
                strands += self.submit(token, false);
            }
            (Op::Flush, _) => {
                strands += self.flush_buffer(token)?;
                self.host.flush()?;
                strands += self.submit(token, false);
            }
            (_, None) => {}
        }
        let waits_for = if request.op == Op::Flush { self.changing } else { 0 };
        let order = self.requests;
        let Request { op, bytes, .. } = *request;
        let entered = Outstanding { op, bytes, arrived_ns, order, strands, waits_for };
        self.outstanding[token as usize] = entered;
        self.requests += 1;
        self.in_device += 1;
        self.changing += u32::from(entered.is_change());
        if waits_for > 0 {
            self.flushing.push(token);
        }
        self.freed += self.end_placed();
        let writes = self.host.tally().writes;
        if writes >= self.timeline.next() {
            self.timeline.mark(writes, self.machine.now_ns(), self.host.counts(), self.host.ftl().gauges());
        }
        self.report.at(Phase::Measure, writes, self.feed.writes_wanted());
        self.collect_ahead()?;
        Ok(!(entered.has_ended() && self.done(token)))
    }

    /// Has the next page that is written go to the bank for it, if banks are collected.
    fn aim(&mut self) -> Result<(), SimError> {
        let Some(by_bank) = &mut self.by_bank else { return Ok(()) };
        self.host.by_bank(|ftl| by_bank.before_write(&self.machine, ftl))
    }

    /// Moves what the FTL did last into the machine; 1 if that was anything.
    fn submit(&mut self, token: Token, background: bool) -> u32 {
        self.submit_by(|machine, ops| machine.submit(token, background, ops))
    }

    /// As [`Player::submit`], of a request that reads these bytes of a logical page.
    fn submit_read(&mut self, token: Token, page: u32, part: &Range<u64>) -> u32 {
        self.submit_by(|machine, ops| machine.submit_read(token, Lpn(page), part, ops))
    }

    fn submit_by(&mut self, submit: impl FnOnce(&mut Machine, &mut dyn Iterator<Item = ftl::Op>) -> bool) -> u32 {
        let takes_time = |purpose| self.collection_takes_time || !is_collection(purpose);
        let mut ops = self.host.ftl_mut().flash_mut().drain_log().filter(|op| takes_time(op.purpose));
        u32::from(submit(&mut self.machine, &mut ops))
    }

    /// Lets the next thing happen; returns how many requests ended with it.
    fn run_event(&mut self) -> Result<u32, SimError> {
        if let Some(ended) = self.cross()? {
            return self.in_time(ended);
        }
        let Self { machine, ended, outstanding, background, by_bank, room, placed, .. } = self;
        ended.clear();
        let before = *background;
        for &token in machine.run_event() {
            if let Some(room) = room.as_mut().filter(|room| room.is_leaving(token)) {
                room.left(token, placed);
                continue;
            }
            let of_bank = by_bank.as_mut().filter(|by_bank| by_bank.is_collection(token));
            if of_bank.is_some() || token == BACKGROUND {
                *background -= 1;
                of_bank.into_iter().for_each(|by_bank| by_bank.ended(token));
                continue;
            }
            let request = &mut outstanding[token as usize];
            request.strands -= 1;
            if request.has_ended() {
                ended.push(token);
            }
        }
        if self.background < before {
            self.collect_banks()?;
        }
        let ended = self.end_all() + self.end_placed();
        self.in_time(ended)
    }

    /// The same number, unless time has ended.
    fn in_time(&self, ended: u32) -> Result<u32, SimError> {
        let now_ns = self.machine.now_ns();
        if now_ns >= CLOCK_END_NS { Err(clock_ended("device times", now_ns as f64)) } else { Ok(ended) }
    }

    /// Ends the requests that have; how many they are.
    fn end_all(&mut self) -> u32 {
        let (mut at, mut count) = (0, 0);
        // Flushes that end with a request are put behind it.
        while let Some(&token) = self.ended.get(at) {
            count += u32::from(self.done(token));
            at += 1;
        }
        count
    }

    /// What a request asked of flash is done; `false` if its data have yet to cross the link.
    fn done(&mut self, token: Token) -> bool {
        let Outstanding { op, bytes, .. } = self.outstanding[token as usize];
        let crosses = self.link.takes(token, op, bytes, self.machine.now_ns());
        if !crosses {
            self.end(token);
        }
        !crosses
    }

    fn end(&mut self, token: Token) {
        let request = self.outstanding[token as usize];
        let end_ns = self.machine.now_ns() + self.controller_ns;
        self.last_ns = end_ns;
        self.in_device -= 1;
        self.free.push(token);
        if request.is_change() {
            self.changing -= 1;
            self.let_flushes_end(request.order);
        }
        self.served += u64::from(matches!(request.op, Op::Read | Op::Write));
        if request.order < self.warm_up_requests {
            return;
        }
        match request.op {
            Op::Read => self.read.record(end_ns - request.arrived_ns),
            Op::Write => self.write.record(end_ns - request.arrived_ns),
            Op::Flush => self.flush.record(end_ns - request.arrived_ns),
            Op::Trim => {}
        }
    }

    /// A write or a trim has ended that was the `order`-th request: later flushes wait for one
    /// less.
    fn let_flushes_end(&mut self, order: u64) {
        let Self { flushing, outstanding, ended, .. } = self;
        flushing.retain(|&token| {
            let flush = &mut outstanding[token as usize];
            flush.waits_for -= u32::from(flush.order > order);
            if flush.has_ended() {
                ended.push(token);
            }
            flush.waits_for > 0
        });
    }

    /// Starts a unit of background work if the device has nothing to do and is to use such time;
    /// whether it did.
    fn collect_if_idle(&mut self) -> Result<bool, SimError> {
        if self.gc == GcMode::Foreground || self.by_bank.is_some() || self.background > 0 || self.in_device > 0 {
            return Ok(false);
        }
        self.collect_behind()
    }

    /// Starts units of background work until there is nothing to do or each die can have one.
    fn collect_ahead(&mut self) -> Result<(), SimError> {
        if self.gc != GcMode::Ahead {
            return self.collect_banks();
        }
        let dies = self.machine.dies();
        // A unit may need no flash operation.
        for _ in 0..dies {
            if self.background >= dies || !self.collect_behind()? {
                break;
            }
        }
        Ok(())
    }

    /// Has collectors begin that may work, if banks are collected.
    fn collect_banks(&mut self) -> Result<(), SimError> {
        // Collections that take no time never end otherwise, on a disk that is nearly full.
        for _ in 0..self.machine.dies() {
            let Some(by_bank) = &mut self.by_bank else { break };
            let collected = self.host.by_bank(|ftl| by_bank.collect(self.in_device, &self.machine, ftl))?;
            let Some(token) = collected else { break };
            self.background_collections += 1;
            if self.submit(token, true) == 1 {
                self.background += 1;
            } else if let Some(by_bank) = &mut self.by_bank {
                by_bank.ended(token);
            }
        }
        Ok(())
    }

    /// Starts a unit of background work; `false` if there is none.
    fn collect_behind(&mut self) -> Result<bool, SimError> {
        if self.rested {
            return Ok(false);
        }
        if !self.host.idle()? {
            self.rested = true;
            return Ok(false);
        }
        self.background_collections += 1;
        self.background += self.submit(BACKGROUND, true);
        Ok(true)
    }

    fn result(self) -> TimedResult {
        let simulated_ns = self.last_ns.saturating_sub(self.first_ns.unwrap_or(0));
        let simulated_s = simulated_ns as f64 / 1e9;
        let rate = |amount: f64| if simulated_ns > 0 { amount / simulated_s } else { 0.0 };
        let clock_ns = self.machine.now_ns().saturating_sub(self.first_ns.unwrap_or(0)).max(1) as f64;
        let share = |busy: &mut dyn Iterator<Item = u64>| {
            let (mut sum, mut max, mut count) = (0.0, 0.0_f64, 0_u32);
            for ns in busy {
                let share = ns as f64 / clock_ns;
                sum += share;
                max = max.max(share);
                count += 1;
            }
            (sum / f64::from(count.max(1)), max)
        };
        let (die_utilisation, die_utilisation_max) = share(&mut self.machine.die_busy_ns());
        let (channel_utilisation, _) = share(&mut self.machine.channel_busy_ns());
        let latency_us =
            LatencyByKind { read: self.read.summary(), write: self.write.summary(), flush: self.flush.summary() };
        let throughput = ThroughputResult {
            simulated_s,
            iops: rate(self.served as f64),
            write_mb_s: rate(self.bytes_written as f64 / 1e6),
            read_mb_s: rate(self.bytes_read as f64 / 1e6),
            die_utilisation,
            die_utilisation_max,
            channel_utilisation,
            background_collections: self.background_collections,
        };
        TimedResult { latency_us, throughput, end_ns: self.machine.now_ns() }
    }
}
