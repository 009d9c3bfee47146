//! What comes out of a run, as data with one JSON form.

use ftl::Purpose;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One value for each purpose of a flash operation; in JSON an object with the purposes' names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByPurpose<T> {
    /// [`Purpose::Host`]
    pub host: T,
    /// [`Purpose::Gc`]
    pub gc: T,
    /// [`Purpose::Translation`]
    pub translation: T,
    /// [`Purpose::TranslationGc`]
    pub translation_gc: T,
    /// [`Purpose::Validity`]
    pub validity: T,
    /// [`Purpose::ValidityQuery`]
    pub validity_query: T,
    /// [`Purpose::ValidityGc`]
    pub validity_gc: T,
    /// [`Purpose::Checkpoint`]
    pub checkpoint: T,
    /// [`Purpose::Recovery`]
    pub recovery: T,
    /// [`Purpose::Wear`]
    pub wear: T,
    /// [`Purpose::Refresh`]
    pub refresh: T,
}

impl<T> ByPurpose<T> {
    /// Asks for each purpose in turn.
    pub fn from_fn(mut f: impl FnMut(Purpose) -> T) -> Self {
        Self {
            host: f(Purpose::Host),
            gc: f(Purpose::Gc),
            translation: f(Purpose::Translation),
            translation_gc: f(Purpose::TranslationGc),
            validity: f(Purpose::Validity),
            validity_query: f(Purpose::ValidityQuery),
            validity_gc: f(Purpose::ValidityGc),
            checkpoint: f(Purpose::Checkpoint),
            recovery: f(Purpose::Recovery),
            wear: f(Purpose::Wear),
            refresh: f(Purpose::Refresh),
        }
    }

    /// The value of one purpose.
    #[must_use]
    pub fn get(&self, purpose: Purpose) -> &T {
        match purpose {
            Purpose::Host => &self.host,
            Purpose::Gc => &self.gc,
            Purpose::Translation => &self.translation,
            Purpose::TranslationGc => &self.translation_gc,
            Purpose::Validity => &self.validity,
            Purpose::ValidityQuery => &self.validity_query,
            Purpose::ValidityGc => &self.validity_gc,
            Purpose::Checkpoint => &self.checkpoint,
            Purpose::Recovery => &self.recovery,
            Purpose::Wear => &self.wear,
            Purpose::Refresh => &self.refresh,
        }
    }

    /// All values in the order of reports.
    pub fn iter(&self) -> impl Iterator<Item = (Purpose, &T)> {
        Purpose::ALL.into_iter().map(|purpose| (purpose, self.get(purpose)))
    }
}

/// What the host did in the measured part, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostResult {
    /// Pages written, wholly or in part.
    pub writes: u64,
    /// Pages read, wholly or in part.
    pub reads: u64,
    /// Pages trimmed.
    pub trims: u64,
    /// Requests of any kind.
    pub requests: u64,
    /// Partly written pages whose old contents were read first; not in `reads`.
    pub rmw_reads: u64,
    /// Flush requests.
    pub flushes: u64,
}

/// What a write buffer did in the measured part, in pages where nothing else is said. Every page of
/// [`HostResult::writes`] is a hit or enters. Every page that enters is one of `trimmed`,
/// `evicted`, `flushed`, `written_through` and `at_end`; all but the trimmed ones are `programmed`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteBufferResult {
    /// The policy's name.
    pub policy: String,
    /// Pages that it has room for.
    pub pages: u32,
    /// Bytes of a sector, the least that it tells apart.
    pub sector_bytes: u32,
    /// Written pages that it held already.
    pub write_hits: u64,
    /// Bytes of those writes.
    pub coalesced_bytes: u64,
    /// Read pages of which it held all that was wanted.
    pub read_hits: u64,
    /// Read pages of which it held a part, and flash was read for the rest.
    pub read_hits_in_part: u64,
    /// Pages that it held and a trim covered: never programmed.
    pub trimmed: u64,
    /// Pages written out because another one needed room.
    pub evicted: u64,
    /// Pages written out by flushes.
    pub flushed: u64,
    /// Pages of writes that have to be durable at once (FUA): written with what was held of them.
    pub written_through: u64,
    /// Pages written out after the last request.
    pub at_end: u64,
    /// Pages given to the FTL.
    pub programmed: u64,
    /// Of those, pages that were read first because only a part of them was held.
    pub completing_reads: u64,
}

/// Flash operations of one purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlashResult {
    /// Whole pages read.
    pub reads: u64,
    /// Spare areas read alone.
    pub spare_reads: u64,
    /// Pages programmed.
    pub programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Spare areas programmed again to set flags; in JSON only if there are any.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub flag_programs: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Write-amplification of one purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PurposeAmplification {
    /// Programs per host page written.
    pub programs: f64,
    /// Programs, those of flags too, + reads/δ + spare reads/(32 δ), per host page written.
    pub paper: f64,
}

/// Write-amplification; [`crate::amplification`] says exactly what counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AmplificationResult {
    /// Programs per host page written.
    pub programs_per_write: f64,
    /// Programs, those of flags too, + reads/δ + spare reads/(32 δ), per host page written.
    pub paper: f64,
    /// δ: program time over read time.
    pub delta: f64,
    /// The same by purpose; they add up.
    pub by_purpose: ByPurpose<PurposeAmplification>,
}

/// A point of a latency distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CdfPoint {
    /// Microseconds.
    pub us: f64,
    /// Share of requests that took no longer.
    pub share: f64,
}

/// Latencies of one kind of request, microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyResult {
    /// Average.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 99 of 100 took no longer.
    pub p99: f64,
    /// 999 of 1000 took no longer.
    pub p999: f64,
    /// 9999 of 10,000 took no longer.
    #[serde(default)]
    pub p9999: f64,
    /// The longest.
    pub max: f64,
    /// Share of the requests that took longer than 2 ms, what LFTL's paper counts.
    #[serde(default)]
    pub over_2ms: f64,
    /// Requests.
    pub count: u64,
    /// The distribution, for charts.
    pub cdf: Vec<CdfPoint>,
}

/// Latencies by kind of request; a kind that did not occur has a count of 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyByKind {
    /// Read requests.
    pub read: LatencyResult,
    /// Write requests.
    pub write: LatencyResult,
    /// Flushes: each ends once every write and trim has that came before it.
    #[serde(default)]
    pub flush: LatencyResult,
}

/// What the timed device achieved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThroughputResult {
    /// Virtual seconds from the first request to the end of the last.
    pub simulated_s: f64,
    /// Read and write requests per second.
    pub iops: f64,
    /// Megabytes (10^6) written per second.
    pub write_mb_s: f64,
    /// Megabytes (10^6) read per second.
    pub read_mb_s: f64,
    /// Share of the time that dies were busy, on average over dies.
    pub die_utilisation: f64,
    /// The same of the busiest die.
    pub die_utilisation_max: f64,
    /// Share of the time that channels were busy, on average over channels.
    pub channel_utilisation: f64,
    /// Units of background work.
    pub background_collections: u64,
}

/// Erase counts over the device's life, preconditioning included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WearResult {
    /// Erases of all blocks.
    pub erases_total: u64,
    /// Of the most erased block.
    pub max: u32,
    /// Of the least erased block.
    pub min: u32,
    /// Average over blocks.
    pub mean: f64,
    /// Standard deviation over blocks.
    pub stddev: f64,
    /// How many blocks were erased how often.
    pub histogram: Vec<WearBin>,
}

/// Blocks whose erase count lies within a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WearBin {
    /// Lowest erase count of the bin.
    pub from: u32,
    /// Highest erase count of the bin.
    pub to: u32,
    /// Blocks.
    pub blocks: u32,
}

/// How the device was brought into its state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PreconditionResult {
    /// `off`, `fill` or `steady`.
    pub kind: String,
    /// Pages written.
    pub host_writes: u64,
    /// Programs per host write in each window of overwriting.
    pub windows: Vec<f64>,
    /// The last of them; 0 if there was none.
    pub wa_last: f64,
    /// Whether steadiness was reached rather than given up on.
    pub steady: bool,
    /// How it knew when to stop.
    pub reason: String,
}

/// Write-amplification in one interval of the measured part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimelinePoint {
    /// Host pages written from the start to the end of this interval.
    pub host_writes: u64,
    /// Virtual seconds at its end; 0 when time does not pass.
    pub at_s: f64,
    /// Programs per host write within it.
    pub programs_per_write: f64,
    /// The same by purpose.
    pub by_purpose: ByPurpose<f64>,
    /// Pages read per host write within it, by purpose.
    #[serde(default)]
    pub reads_by_purpose: ByPurpose<f64>,
    /// What the FTL's gauges showed at its end.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gauges: BTreeMap<String, u64>,
}

/// A step of a mount.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MountStepResult {
    /// What was done.
    pub name: String,
    /// The flash operations it took.
    pub flash: FlashResult,
    /// Seconds that these take one after the other.
    pub seconds: f64,
}

/// What coming back after a power cut took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MountResult {
    /// What was saved before power was gone, by a battery or by the flush that the FTL's promise
    /// asks for; none if nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_before: Option<FlashResult>,
    /// The steps in order.
    pub steps: Vec<MountStepResult>,
    /// Seconds of all steps.
    pub seconds: f64,
    /// Why the disk can only be read from then on; none if it can be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<String>,
}

/// The device and what the host saw of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeometryResult {
    /// Buses.
    pub channels: u32,
    /// Dies over all channels.
    pub dies: u32,
    /// Blocks.
    pub blocks: u32,
    /// Pages in a block.
    pub pages_per_block: u32,
    /// Bytes in a page.
    pub page_bytes: u32,
    /// Pages in the device.
    pub physical_pages: u32,
    /// Pages the host sees.
    pub logical_pages: u32,
}

/// The computer's part; differs between runs with the same seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SimulationResult {
    /// Wall-clock seconds of the measured part.
    pub wall_s: f64,
    /// Wall-clock seconds of everything before it.
    pub precondition_wall_s: f64,
    /// Host pages written in the measured part per second that its thread had a processor; per
    /// wall-clock second where the system does not tell.
    pub host_writes_per_s: f64,
    /// The most memory the process ever held, earlier runs in it included; 0 where it cannot be
    /// told.
    pub peak_memory_bytes: u64,
    /// What this run's device, FTL and check model hold, computed.
    pub run_memory_bytes: u64,
}

/// Everything known of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Name of the FTL.
    pub ftl: String,
    /// Name of the device.
    pub device: String,
    /// The workload.
    pub workload: String,
    /// The seed.
    pub seed: u64,
    /// What the host did.
    pub host: HostResult,
    /// What the write buffer did, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_buffer: Option<WriteBufferResult>,
    /// What flash did for it.
    pub flash: ByPurpose<FlashResult>,
    /// The ratio.
    pub write_amplification: AmplificationResult,
    /// RAM by structure, and `total`.
    pub ram_bytes: BTreeMap<String, u64>,
    /// Latencies, in timed mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<LatencyByKind>,
    /// Throughput, in timed mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<ThroughputResult>,
    /// Erase counts.
    pub wear: WearResult,
    /// The computer's part.
    pub simulation: SimulationResult,
    /// What came before the measured part.
    pub precondition: PreconditionResult,
    /// Write-amplification over the measured part, in intervals.
    pub timeline: Vec<TimelinePoint>,
    /// The device's shape.
    pub geometry: GeometryResult,
    /// What was done to the workload to fit it here.
    pub notes: Vec<String>,
    /// Pages read back and checked at the end.
    pub verified_pages: u64,
    /// The mount after the power cut, if one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount: Option<MountResult>,
}

impl RunResult {
    /// Requests of any kind that a timed run did a second, those that ended at once too; 0 of a run
    /// that took no time.
    #[must_use]
    pub fn requests_per_s(&self) -> f64 {
        let simulated_s = self.throughput.map_or(0.0, |throughput| throughput.simulated_s);
        if simulated_s > 0.0 { self.host.requests as f64 / simulated_s } else { 0.0 }
    }

    /// A number that two runs share if they gave the same result, the computer's part apart.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let comparable = Self { simulation: SimulationResult::default(), ..self.clone() };
        // Only maps with keys that are not text could fail.
        let text = serde_json::to_string(&comparable).unwrap_or_default();
        // FNV-1a
        text.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn programs_of_flags_are_in_json_only_if_there_are_any() {
        let without = FlashResult { reads: 1, spare_reads: 2, programs: 3, erases: 4, flag_programs: 0 };
        let with = FlashResult { flag_programs: 5, ..without };
        let text = r#"{"reads":1,"spare_reads":2,"programs":3,"erases":4"#;
        for (result, end) in [(without, "}"), (with, r#","flag_programs":5}"#)] {
            let found = serde_json::to_string(&result).unwrap();
            assert_eq!(found, format!("{text}{end}"));
            assert_eq!(serde_json::from_str::<FlashResult>(&found).unwrap(), result);
        }
    }
}
