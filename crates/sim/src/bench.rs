//! How fast the simulator is: host page writes per second of the computer's time, on one core, in
//! steady state, every read checked. Each case also runs tiny, for tests, and gives a digest of its
//! result.
//!
//! Before each case a bare loop runs on a device of the same shape ([`BareResult`]): computers
//! differ and are shared with others, but the ratio of two rates of one process says how much an
//! FTL costs.

use crate::bare;
pub use crate::bare::BareResult;
use crate::error::SimError;
use crate::progress::Progress;
use crate::result::RunResult;
use crate::run::run;
use crate::spec::{DevicePlan, HostMode, QueueOptions, RunSpec, TimingMode, WorkloadSpec};
use ftl::ftls;
use nand::geometry::Dimensions;
use nand::{Capabilities, Timing};

/// What a case runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// Blocks of 128 pages of 4 KiB, 70% of them visible; no time passes.
    Modern,
    /// The same as 8 channels of 4 dies, with time, 32 requests at once.
    Timed,
    /// The device of Janus-FTL's simulations: blocks of 64 pages of 2 KiB, a tenth
    /// over-provisioned; no time passes.
    Janus,
}

/// One thing to measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// The FTL.
    pub ftl: &'static str,
    /// Raw capacity.
    pub gibibytes: u64,
    /// The kind of device.
    pub device: Device,
    /// The workload, as text.
    pub workload: &'static str,
    /// Host page writes per second to reach.
    pub goal_writes_per_s: f64,
    /// Page writes measured.
    pub writes: u64,
}

/// Every case, in the order of reports. Some need an FTL that may not be in the table;
/// [`available`] leaves those out.
pub const CASES: [Case; 9] = [
    case("page-8g", "page", 8, Device::Modern, UNIFORM, 20e6, 20_000_000),
    case("page-64g", "page", 64, Device::Modern, UNIFORM, 8e6, 20_000_000),
    case("dftl-8g", "dftl", 8, Device::Modern, UNIFORM, 1.5e6, 3_000_000),
    case("gecko-8g", "gecko", 8, Device::Modern, UNIFORM, 1.5e6, 3_000_000),
    case("page-timed-8g", "page", 8, Device::Timed, UNIFORM, 1.5e6, 3_000_000),
    case("fast-1g", "fast", 1, Device::Janus, UNIFORM, 2e6, 5_000_000),
    case("fast-1g-zipf", "fast", 1, Device::Janus, ZIPF, 2e6, 5_000_000),
    case("janus-1g", "janus", 1, Device::Janus, UNIFORM, 2e6, 5_000_000),
    case("janus-1g-zipf", "janus", 1, Device::Janus, ZIPF, 2e6, 5_000_000),
];

const UNIFORM: &str = "uniform";
const ZIPF: &str = "zipf";

const fn case(
    name: &'static str,
    ftl: &'static str,
    gibibytes: u64,
    device: Device,
    workload: &'static str,
    goal_writes_per_s: f64,
    writes: u64,
) -> Case {
    Case { name, ftl, gibibytes, device, workload, goal_writes_per_s, writes }
}

/// The cases whose FTL is in the table.
#[must_use]
pub fn available() -> Vec<Case> {
    CASES.into_iter().filter(|case| ftls::infos().iter().any(|info| info.name == case.ftl)).collect()
}

/// How large to run a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// As it says.
    Full,
    /// 64 MiB and a few thousand writes.
    Tiny,
    /// On a device of so many bytes, for so many writes.
    Of {
        /// Raw capacity; rounded down to whole blocks.
        capacity_bytes: u64,
        /// Page writes measured.
        writes: u64,
    },
}

/// What a case gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The case.
    pub case: Case,
    /// Host page writes per second of the computer's time.
    pub host_writes_per_s: f64,
    /// The same over the goal.
    pub of_goal: f64,
    /// What the bare loop did just before, writing uniformly at random on a device of this shape.
    pub bare: BareResult,
    /// The rate of the case over that of the bare loop.
    pub of_bare: f64,
    /// Programs per host write: shows that the work was done.
    pub programs_per_write: f64,
    /// Memory of device, FTL and check model, in bytes for each physical page.
    pub bytes_per_page: f64,
    /// [`RunResult::digest`].
    pub digest: u64,
    /// Everything else.
    pub result: RunResult,
}

/// A modern SLC-cached die: 50 µs reads, 500 µs programs, 800 MB/s buses.
pub(crate) const TIMING: Timing = Timing {
    read_ns: 50_000,
    spare_read_ns: 20_000,
    program_ns: 500_000,
    erase_ns: 3_000_000,
    channel_bytes_per_us: 800,
    ..Timing::NONE
};

/// What a case runs.
///
/// # Errors
/// [`SimError`] if the case cannot be built, which the constants of this module exclude.
pub fn spec(case: &Case, scale: Scale) -> Result<RunSpec, SimError> {
    let timed = case.device == Device::Timed;
    let (channels, dies_per_channel) = if timed { (8, 4) } else { (1, 1) };
    let (pages_per_block, page_bytes, visible) = match case.device {
        Device::Modern | Device::Timed => (128, 4096, 0.7),
        Device::Janus => (64, 2048, 0.9),
    };
    let (capacity, writes) = match scale {
        Scale::Full => (case.gibibytes << 30, case.writes),
        Scale::Tiny => (if timed { 256 << 20 } else { 64 << 20 }, 20_000),
        Scale::Of { capacity_bytes, writes } => (capacity_bytes, writes),
    };
    let dimensions = Dimensions {
        channels,
        dies_per_channel,
        planes_per_die: 1,
        blocks: channels * dies_per_channel,
        pages_per_block,
        page_bytes,
        spare_bytes: 64,
    };
    let device = DevicePlan::new("bench", dimensions, Capabilities::MODERN, TIMING, Some(capacity), visible)?;
    let mut spec = RunSpec::new(case.ftl, device, WorkloadSpec::synthetic(case.workload)?);
    spec.writes = writes;
    if timed {
        spec.config.lanes = channels * dies_per_channel;
        let host = HostMode::Closed { queue_depth: 32, think_ns: 0 };
        spec.timing = TimingMode::Queued(QueueOptions { host, ..QueueOptions::default() });
    }
    Ok(spec)
}

/// Runs a case.
///
/// # Errors
/// As [`run`].
pub fn measure(case: &Case, scale: Scale, progress: &mut dyn FnMut(Progress)) -> Result<Measured, SimError> {
    let spec = spec(case, scale)?;
    let bare = bare(&spec);
    let result = run(&spec, progress)?;
    let host_writes_per_s = result.simulation.host_writes_per_s;
    Ok(Measured {
        case: *case,
        host_writes_per_s,
        of_goal: host_writes_per_s / case.goal_writes_per_s,
        bare,
        of_bare: if bare.writes_per_s > 0.0 { host_writes_per_s / bare.writes_per_s } else { 0.0 },
        programs_per_write: result.write_amplification.programs_per_write,
        bytes_per_page: result.simulation.run_memory_bytes as f64 / f64::from(result.geometry.physical_pages),
        digest: result.digest(),
        result,
    })
}

/// The bare loop on the device of a run, for as many writes; at rest on a device without room.
#[must_use]
pub fn bare(spec: &RunSpec) -> BareResult {
    bare::measure(&spec.device.geometry, spec.device.logical_pages, spec.writes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_runs_tiny_and_always_the_same() {
        for case in available() {
            let first = measure(&case, Scale::Tiny, &mut |_| {}).unwrap();
            let second = measure(&case, Scale::Tiny, &mut |_| {}).unwrap();
            assert_eq!(first.digest, second.digest, "{}", case.name);
            assert!(first.programs_per_write > 1.0, "{} collected nothing", case.name);
            assert!(first.bare.programs_per_write > 1.0, "{}: {:?}", case.name, first.bare);
            println!("{}: {:016x}", case.name, first.digest);
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = CASES.iter().map(|case| case.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CASES.len());
    }
}
