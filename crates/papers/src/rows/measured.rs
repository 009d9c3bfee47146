//! What is measured of an FTL under a load.

use super::loads::Load;
use crate::lab::Lab;
use ftl::FtlError;
use sim::parts::Parts;
use sim::sustained::{self, CLIENTS, at_random, closed, largest, try_rates};
use sim::{GcMode, HostMode, QueueOptions, RunResult, RunSpec, SimError, TimingMode};

/// Percent of the sustained rate at which latencies are taken.
pub(super) const LOAD_PERCENT: f64 = 70.0;

/// Power cuts of which the mean is taken: what a mount does depends on when power is cut.
pub(super) const CUTS: u32 = 8;

/// What one FTL does under one load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    /// Pages and flags programmed for each page that the host wrote.
    pub(super) amplification: f64,
    pub(super) ram_bytes: u64,
    /// What of it the placement policy holds.
    pub(super) placement_bytes: u64,
    /// Flash time of a mount after a power cut, the mean of some; none if it cannot be mounted.
    pub(super) mount_s: Option<f64>,
    /// None if no rate was found that it sustains.
    pub(super) tail: Option<Tail>,
}

/// Writes at a share of the rate that is sustained.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    /// Requests a second that are sustained.
    pub(super) sustained: f64,
    pub(super) p999_ms: f64,
    /// Programs for each write meanwhile: collection ahead collects earlier.
    pub(super) amplification: f64,
}

/// A measurement, or why the FTL cannot run on the device.
pub(super) type Outcome = Result<Measured, String>;

/// An FTL of the table, under its own placement or another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) ftl: &'static str,
    pub(super) placement: Option<&'static str>,
}

/// Measures an FTL on a device that is aged once.
///
/// # Errors
/// As [`sim::run()`]; that a device is too small for an FTL is none.
pub(super) fn measure(lab: &Lab, of: Candidate, load: &Load) -> Result<Outcome, SimError> {
    let mut spec = RunSpec::new(of.ftl, load.device.clone(), load.workload.clone());
    (spec.seed, spec.config.placement) = (lab.seed, of.placement);
    match sim::run::format(&spec).and_then(|_| measure_formatted(&spec, load)) {
        Err(SimError::Ftl { source: source @ (FtlError::Unsupported { .. } | FtlError::NoSpace(_)), .. }) => {
            Ok(Err(source.to_string()))
        }
        Err(error) => Err(error),
        Ok(measured) => Ok(Ok(measured)),
    }
}

fn measure_formatted(spec: &RunSpec, load: &Load) -> Result<Measured, SimError> {
    let mut parts = Parts::age(spec, &mut |_| ())?;
    let counted = parts.measure(TimingMode::None, load.writes, &mut |_| ())?;
    let tail = tail(&mut parts, load)?;
    let is_mountable = ftl::ftls::infos().iter().any(|info| info.name == spec.ftl && info.is_mountable());
    let mounts = if is_mountable { parts.power_cuts(CUTS, load.trial_writes / 8)? } else { Vec::new() };
    let seconds: f64 = mounts.iter().map(|mount| mount.seconds).sum();
    Ok(Measured {
        amplification: programs(&counted),
        ram_bytes: counted.ram_bytes.get("total").copied().unwrap_or(0),
        placement_bytes: counted.ram_bytes.get("placement").copied().unwrap_or(0),
        mount_s: (!mounts.is_empty()).then(|| seconds / mounts.len() as f64),
        tail,
    })
}

fn programs(result: &RunResult) -> f64 {
    let flags: u64 = result.flash.iter().map(|(_, ops)| ops.flag_programs).sum();
    result.write_amplification.programs_per_write + flags as f64 / result.host.writes.max(1) as f64
}

fn timing(host: HostMode, warm_up_requests: u64) -> TimingMode {
    TimingMode::Queued(QueueOptions { host, gc: GcMode::Ahead, warm_up_requests, ..QueueOptions::default() })
}

/// Finds the rate that is sustained, and what latencies are below it.
fn tail(parts: &mut Parts, load: &Load) -> Result<Option<Tail>, SimError> {
    let mut done_per_s = |host: HostMode| {
        let result = parts.measure(timing(host, 0), load.trial_writes, &mut |_| ())?;
        Ok::<f64, SimError>(result.requests_per_s())
    };
    let mut bound = 0.0_f64;
    for clients in CLIENTS {
        bound = bound.max(done_per_s(closed(clients))?);
    }
    let sustained = largest(&try_rates(bound, |per_s| done_per_s(at_random(per_s)))?);
    if sustained <= 0.0 {
        return Ok(None);
    }
    let warm_up = u64::from(load.device.logical_pages) / 20;
    let host = sustained::at_random(sustained * LOAD_PERCENT / 100.0);
    let result = parts.measure(timing(host, warm_up), load.writes, &mut |_| ())?;
    let p999_us = result.latency_us.as_ref().map_or(f64::NAN, |latency| latency.write.p999);
    Ok(Some(Tail { sustained, p999_ms: p999_us / 1000.0, amplification: programs(&result) }))
}
