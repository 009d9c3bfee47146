//! The loads of the table, each with the device on which every FTL meets it.

use crate::error::PaperError;
use crate::lab::Lab;
use crate::loads::all_recorded;
use nand::geometry::{Capabilities, Dimensions, ProgramOrder};
use nand::profiles;
use sim::{DevicePlan, SimError, WorkloadSpec};
use std::sync::Arc;
use workload::Op;
use workload::trace::{self, Map, OpenOptions, Trace, footprint, written_only};

/// The profile whose times the device has.
pub(super) const PROFILE: &str = "demo";

/// The device is of this size from this scale on.
const WHOLE_FROM: f64 = 1.0 / 256.0;
const WHOLE_BYTES: f64 = (128_u32 << 20) as f64;

/// The least share of it on which every FTL finds room.
const SHARE_MIN: f64 = 0.25;

/// Space beyond that of the logical pages, over it, percent.
pub(super) const SPARE_PERCENT: u32 = 15;

/// Pages of a block, under synthetic loads and under recorded ones: an excerpt of a trace touches
/// few pages.
pub(super) const BLOCK_PAGES: [u32; 2] = [32, 16];

/// Blocks of a device made for a trace, at least.
const TRACE_BLOCKS_MIN: u64 = 256;

/// Requests of a trace in the user's folder that are played.
pub(super) const REQUESTS_MAX: u64 = 100_000;

/// Pages written in a measurement, and in the trial of a rate, for each logical page; and at least.
const WRITES: (u64, u64) = (2, 65_536);
const TRIAL_WRITES: (f64, f64) = (0.5, 16_384.0);

/// A load with its device.
pub(super) struct Load {
    /// Its name in tables.
    pub(super) name: String,
    pub(super) workload: WorkloadSpec,
    pub(super) device: DevicePlan,
    /// Whether some pages are written much more often than others.
    pub(super) is_skewed: bool,
    /// Pages written in a measurement.
    pub(super) writes: u64,
    /// Pages written where a rate is tried.
    pub(super) trial_writes: u64,
}

/// The share of the device, of traces and of measurements that a scale stands for.
pub(super) fn share(lab: &Lab) -> f64 {
    (lab.scale / WHOLE_FROM).min(1.0)
}

/// Every load, and what is in the folder of traces that is none.
pub(super) fn loads(lab: &Lab) -> Result<(Vec<Load>, Vec<String>), PaperError> {
    let share = share(lab);
    let mut loads = Vec::new();
    for (text, is_skewed) in [("uniform", false), ("zipf:theta=0.99", true)] {
        let device = device(WHOLE_BYTES * share.max(SHARE_MIN), BLOCK_PAGES[0])?;
        let workload = WorkloadSpec::synthetic(text)?;
        let name = text.split(':').next().unwrap_or(text);
        loads.push(Load::new(share, name, workload, device, is_skewed));
    }
    for sample in trace::samples() {
        let of = |limit| trace::sample(sample.name, &OpenOptions { limit, ..OpenOptions::default() });
        let failed =
            |e: workload::WorkloadError| SimError::Workload { workload: sample.name.to_owned(), reason: e.to_string() };
        let mut found = of(None).map_err(failed)?;
        if share < 1.0 {
            found = of(Some((found.records().len() as f64 * share) as u64)).map_err(failed)?;
        }
        loads.push(Load::recorded(share, sample.name, &found)?);
    }
    let limit = (REQUESTS_MAX as f64 * share) as u64;
    let (traces, mut others) = all_recorded(lab, limit)?;
    for (name, found) in traces {
        if found.records().iter().any(|record| record.op() == Op::Write) {
            loads.push(Load::recorded(share, &name, &found)?);
        } else {
            others.push(format!("{name} is not played: it writes nothing"));
        }
    }
    Ok((loads, others))
}

/// A die of the profile's times that allows whatever some FTL of the table needs.
fn device(raw_bytes: f64, pages_per_block: u32) -> Result<DevicePlan, SimError> {
    let found = profiles::find(PROFILE)
        .ok_or_else(|| SimError::BadSpec { what: "device profile", reason: format!("there is no `{PROFILE}`") })?;
    let flags = ftl::ftls::infos().iter().map(|info| info.flags).max().unwrap_or(0);
    let capabilities =
        Capabilities { program_order: ProgramOrder::Free, spare_reprograms: flags, ..found.capabilities };
    let dimensions =
        Dimensions { channels: 1, dies_per_channel: 1, planes_per_die: 1, pages_per_block, ..found.geometry };
    let ratio = 100.0 / f64::from(100 + SPARE_PERCENT);
    DevicePlan::new(PROFILE, dimensions, capabilities, found.timing, Some(raw_bytes as u64), ratio)
}

impl Load {
    fn new(share: f64, name: &str, workload: WorkloadSpec, device: DevicePlan, is_skewed: bool) -> Self {
        let logical = u64::from(device.logical_pages);
        let least = |writes: f64| (writes * share) as u64;
        Self {
            name: name.to_owned(),
            workload,
            is_skewed,
            writes: (WRITES.0 * logical).max(least(WRITES.1 as f64)),
            trial_writes: ((TRIAL_WRITES.0 * logical as f64) as u64).max(least(TRIAL_WRITES.1)),
            device,
        }
    }

    /// What a trace writes, on a device made for the pages written, played again and again. Without
    /// trims all of them stay live: with the trims of making a file system and of discard, most of
    /// such a device would be empty, and collection would not matter.
    fn recorded(share: f64, name: &str, trace: &Trace) -> Result<Self, SimError> {
        let page_bytes = u64::from(profiles::find(PROFILE).map_or(4096, |profile| profile.geometry.page_bytes));
        let trace = written_only(trace, page_bytes as u32);
        let written = footprint(&trace, page_bytes as u32).touched_pages * page_bytes;
        let raw = written * u64::from(100 + SPARE_PERCENT) / 100;
        let block_bytes = u64::from(BLOCK_PAGES[1]) * page_bytes;
        let raw = (raw + block_bytes).max(TRACE_BLOCKS_MIN * block_bytes);
        let device = device(raw as f64, BLOCK_PAGES[1])?;
        let pages = |at: u64, bytes: u64| (at + bytes).div_ceil(page_bytes) - at / page_bytes;
        let written = trace.records().iter().filter(|record| record.op() == Op::Write);
        let lap: u64 = written.map(|record| pages(record.offset(), record.bytes())).sum();
        let load = Self::new(share, name, WorkloadSpec::replay(Arc::new(trace), Map::Dense, None), device, true);
        // Whole laps, so that every FTL is measured over the same mix.
        Ok(Self { writes: load.writes.div_ceil(lap.max(1)) * lap.max(1), ..load })
    }
}
