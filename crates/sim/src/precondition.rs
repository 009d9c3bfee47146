//! Bringing a device into a state worth measuring.
//!
//! A new device has no garbage, and a full one does not collect as it will later:
//! write-amplification rises, overshoots and settles. So the device is filled in order, then
//! overwritten in windows until their write-amplification agrees. Agreement counts only once every
//! page has been programmed twice on average: before there is garbage to collect all windows agree
//! on 1. Where overwriting begins from the state that long random writing leads to
//! ([`crate::aged`]), there is garbage at once, and only the first window does not count.

use crate::aged::{AgedWrites, mix};
use crate::error::SimError;
use crate::future;
use crate::host::Host;
use crate::progress::{Phase, Reporter};
use crate::result::PreconditionResult;
use crate::source::{Op, Request, Source};
use crate::spec::{First, OwnWrites, PreconditionMode, SteadyOptions, WorkloadContext, WorkloadSpec};
use nand::{Nand, Stamp};

/// Requests fetched at once.
const FETCH: usize = future::FETCH;
/// A window has at least so many writes, so that chance does not make windows differ.
const WINDOW_WRITES_MIN: u64 = 16_384;
/// A workload that writes nothing in so many requests is taken to write nothing.
const REQUESTS_WITHOUT_WRITE_MAX: u64 = 1 << 20;

/// Ages the device behind `host` and says how.
///
/// # Errors
/// [`SimError`] of the host, the FTL or the workload; [`SimError::BadSpec`] if an option makes no
/// sense.
pub fn precondition<N: Nand<Payload = Stamp>>(
    host: &mut Host<N>,
    mode: &PreconditionMode,
    workload: &WorkloadSpec,
    context: &WorkloadContext,
    report: &mut Reporter<'_>,
) -> Result<PreconditionResult, SimError> {
    match mode {
        PreconditionMode::Off => Ok(PreconditionResult {
            kind: "off".to_owned(),
            reason: "asked for a new device".to_owned(),
            ..PreconditionResult::default()
        }),
        PreconditionMode::Fill(share) => {
            let host_writes = fill(host, *share, context, report)?;
            Ok(PreconditionResult {
                kind: "fill".to_owned(),
                host_writes,
                reason: format!("every page of the first {:.1}% was written once", share * 100.0),
                ..PreconditionResult::default()
            })
        }
        PreconditionMode::Steady(options) => {
            check(options)?;
            let filled = match options.first {
                First::Fill(share) => fill(host, share, context, report)?,
                First::Aged => age_at_once(host, context, report)?,
            };
            let mut result = steady(host, options, workload, context, report)?;
            result.host_writes += filled;
            Ok(result)
        }
    }
}

fn check(options: &SteadyOptions) -> Result<(), SimError> {
    let bad = |what: &'static str, reason: &str| Err(SimError::BadSpec { what, reason: reason.to_owned() });
    if options.window.is_nan() || options.window <= 0.0 {
        return bad("precondition window", "must be more than 0 of the logical pages; 0.5 is usual");
    }
    if options.agree < 2 {
        return bad("precondition windows that agree", "at least 2 are needed to compare; 3 is usual");
    }
    if options.tolerance.is_nan() || options.tolerance <= 0.0 {
        return bad("precondition tolerance", "must be more than 0; 0.01 is usual");
    }
    Ok(())
}

fn fill<N: Nand<Payload = Stamp>>(
    host: &mut Host<N>,
    share: f64,
    context: &WorkloadContext,
    report: &mut Reporter<'_>,
) -> Result<u64, SimError> {
    if !(0.0..=1.0).contains(&share) {
        return Err(SimError::BadSpec {
            what: "fill",
            reason: format!("{share} is not a share between 0 and 1 of the logical pages"),
        });
    }
    host.begin("the fill");
    let page_bytes = u64::from(context.page_bytes);
    let pages = ((context.capacity_bytes / page_bytes) as f64 * share).round() as u64;
    let mut requests = Vec::with_capacity(FETCH);
    let mut next = 0;
    while next < pages {
        let end = (next + FETCH as u64).min(pages);
        requests.clear();
        requests.extend((next..end).map(|page| whole_page(page, page_bytes)));
        host.apply(&requests, u64::MAX)?;
        next = end;
        report.at(Phase::Fill, next, pages);
    }
    Ok(pages)
}

/// Writes what [`AgedWrites`] says.
fn age_at_once<N: Nand<Payload = Stamp>>(
    host: &mut Host<N>,
    context: &WorkloadContext,
    report: &mut Reporter<'_>,
) -> Result<u64, SimError> {
    host.begin("ageing at once");
    let page_bytes = u64::from(context.page_bytes);
    let physical = u64::from(host.ftl().flash().nand().geometry().pages());
    let mut writes = AgedWrites::new(context.capacity_bytes / page_bytes, physical, context.seed);
    let expected = writes.expected();
    let mut requests = Vec::with_capacity(FETCH);
    loop {
        requests.clear();
        let pages = writes.by_ref().take(FETCH);
        requests.extend(pages.map(|page| whole_page(page, page_bytes)));
        if requests.is_empty() {
            return Ok(host.tally().writes);
        }
        host.apply(&requests, u64::MAX)?;
        report.at(Phase::Fill, host.tally().writes, expected);
    }
}

fn whole_page(page: u64, page_bytes: u64) -> Request {
    Request { at_ns: 0, op: Op::Write, offset: page * page_bytes, bytes: page_bytes, fua: false }
}

/// Why overwriting stopped.
enum End {
    Steady,
    NotSteady,
    NoWrites,
}

fn steady<N: Nand<Payload = Stamp>>(
    host: &mut Host<N>,
    options: &SteadyOptions,
    workload: &WorkloadSpec,
    context: &WorkloadContext,
    report: &mut Reporter<'_>,
) -> Result<PreconditionResult, SimError> {
    host.begin("preconditioning");
    let logical = u64::from(host.ftl().logical_pages());
    let physical = u64::from(host.ftl().flash().nand().geometry().pages());
    let window = ((logical as f64 * options.window) as u64).max(WINDOW_WRITES_MIN);
    let mut ager = Ager::new(options.writes, workload, context)?;
    let mut windows: Vec<f64> = Vec::new();
    let mut start = host.counts();
    let most = window * u64::from(options.max_windows);
    if host.is_foretold() {
        let mut ahead = Ager::new(options.writes, workload, context)?;
        let mut last_pass = None;
        future::tell(host, &mut |requests, told| {
            let fetched = ahead.fetch()?;
            let is_beyond = told >= most && {
                let last = *last_pass.get_or_insert(ahead.passes);
                !ahead.has_passes() || ahead.passes > last
            };
            if !fetched || is_beyond {
                return Ok(0);
            }
            requests[..ahead.len].copy_from_slice(&ahead.requests[..ahead.len]);
            Ok(ahead.len)
        })?;
    }
    let end = loop {
        if windows.len() as u64 >= u64::from(options.max_windows) {
            break End::NotSteady;
        }
        let (begun, goal) = (host.tally().writes, window * (windows.len() as u64 + 1));
        if !ager.write_until(host, goal, &mut |writes| report.at(Phase::Precondition, writes, most))? {
            break End::NoWrites;
        }
        let now = host.counts();
        let written = host.tally().writes - begun;
        if written > 0 {
            windows.push(now.since(&start).total().programs as f64 / written as f64);
        }
        start = now;
        let counts = match options.first {
            First::Fill(_) => now.total().programs >= 2 * physical,
            First::Aged => windows.len() > options.agree as usize,
        };
        if counts && agree(&windows, options) {
            break End::Steady;
        }
    };
    if ager.has_passes() {
        ager.finish_pass(host, &mut |writes| report.at(Phase::Precondition, writes, most))?;
    }
    let whole_passes = ager.has_passes().then_some(ager.passes);
    Ok(PreconditionResult {
        kind: "steady".to_owned(),
        host_writes: host.tally().writes,
        wa_last: windows.last().copied().unwrap_or(0.0),
        steady: matches!(end, End::Steady),
        reason: reason(&end, options, window, whole_passes),
        windows,
    })
}

fn agree(windows: &[f64], options: &SteadyOptions) -> bool {
    let Some(last) = windows.len().checked_sub(options.agree as usize).map(|from| &windows[from..]) else {
        return false;
    };
    let (low, high) = last.iter().fold((f64::MAX, 0.0_f64), |(low, high), &wa| (low.min(wa), high.max(wa)));
    high - low <= options.tolerance * high
}

fn reason(end: &End, options: &SteadyOptions, window: u64, whole_passes: Option<u64>) -> String {
    let SteadyOptions { agree, tolerance, max_windows, .. } = options;
    let first = if options.first == First::Aged { "begun as long random writing leaves a device; " } else { "" };
    let rest = match whole_passes {
        Some(1) => "; then on to the end of the trace".to_owned(),
        Some(passes) => format!("; then on to the end of pass {passes} of the trace"),
        None => String::new(),
    };
    match end {
        End::Steady => format!(
            "{first}write-amplification of the last {agree} windows of {window} writes differs by at most {}%{rest}",
            tolerance * 100.0
        ),
        End::NotSteady => format!(
            "{first}stopped after {max_windows} windows of {window} writes although the last {agree} still differ by more than {}%{rest}",
            tolerance * 100.0
        ),
        End::NoWrites => "the workload writes nothing, so there is nothing to wait for".to_owned(),
    }
}

/// Produces the writes that age a device.
struct Ager<'a> {
    /// Restarted when it ends; none for uniform random writes.
    workload: Option<(&'a WorkloadSpec, Box<dyn Source>)>,
    context: &'a WorkloadContext,
    random: SplitMix,
    requests: Vec<Request>,
    /// The part of `requests` not yet done.
    from: usize,
    len: usize,
    /// Whole passes over the workload that were fetched.
    passes: u64,
}

impl<'a> Ager<'a> {
    fn new(writes: OwnWrites, workload: &'a WorkloadSpec, context: &'a WorkloadContext) -> Result<Self, SimError> {
        let workload = match writes {
            OwnWrites::Workload => Some((workload, (workload.make)(context)?)),
            OwnWrites::Uniform => None,
        };
        Ok(Self {
            workload,
            context,
            random: SplitMix(context.seed),
            requests: vec![Request::default(); FETCH],
            from: 0,
            len: 0,
            passes: 0,
        })
    }

    /// Whether the workload ends and is begun again.
    fn has_passes(&self) -> bool {
        self.workload.as_ref().is_some_and(|(spec, _)| spec.has_passes)
    }

    /// Writes what is left of a pass over the workload.
    fn finish_pass<N: Nand<Payload = Stamp>>(
        &mut self,
        host: &mut Host<N>,
        report: &mut dyn FnMut(u64),
    ) -> Result<(), SimError> {
        let pass = self.passes;
        loop {
            self.from += host.apply(&self.requests[self.from..self.len], u64::MAX)?;
            report(host.tally().writes);
            if !self.fetch()? || self.passes > pass {
                return Ok(());
            }
        }
    }

    /// Writes until the host has written `goal` pages; `false` if the workload has no writes to
    /// offer.
    fn write_until<N: Nand<Payload = Stamp>>(
        &mut self,
        host: &mut Host<N>,
        goal: u64,
        report: &mut dyn FnMut(u64),
    ) -> Result<bool, SimError> {
        let mut last_write = (host.tally().writes, host.tally().requests);
        while host.tally().writes < goal {
            if host.tally().writes != last_write.0 {
                last_write = (host.tally().writes, host.tally().requests);
            } else if host.tally().requests - last_write.1 > REQUESTS_WITHOUT_WRITE_MAX {
                return Ok(false);
            }
            if self.from == self.len && !self.fetch()? {
                return Ok(false);
            }
            self.from += host.apply(&self.requests[self.from..self.len], goal)?;
            report(host.tally().writes);
        }
        Ok(true)
    }

    /// Fetches requests that write or trim; `false` if none come.
    fn fetch(&mut self) -> Result<bool, SimError> {
        self.from = 0;
        self.len = 0;
        let Some((spec, source)) = &mut self.workload else {
            let page_bytes = u64::from(self.context.page_bytes);
            let pages = self.context.capacity_bytes / page_bytes;
            for request in &mut self.requests {
                let page = self.random.below(pages);
                *request = whole_page(page, page_bytes);
            }
            self.len = self.requests.len();
            return Ok(true);
        };
        let (mut seen, mut restarted) = (0, false);
        while self.len == 0 && seen < REQUESTS_WITHOUT_WRITE_MAX {
            let got = source
                .fill(&mut self.requests)
                .map_err(|e| SimError::Workload { workload: spec.name.clone(), reason: e.to_string() })?;
            if got == 0 {
                // The second end means that a whole pass had nothing.
                if restarted {
                    break;
                }
                *source = (spec.make)(self.context)?;
                self.passes += 1;
                restarted = true;
                continue;
            }
            seen += got as u64;
            for at in 0..got {
                if matches!(self.requests[at].op, Op::Write | Op::Trim) {
                    self.requests[self.len] = self.requests[at];
                    self.len += 1;
                }
            }
        }
        Ok(self.len > 0)
    }
}

/// A small generator (Steele, Lea and Flood, 2014); good enough to choose pages, and the same
/// everywhere.
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, end: u64) -> u64 {
        let z = mix(self.0);
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        ((u128::from(z) * u128::from(end)) >> 64) as u64
    }
}
