//! One run, from formatting the device to its results.

use crate::amplification::amplification;
use crate::device::Device;
use crate::error::SimError;
use crate::feed::Feed;
use crate::future;
use crate::host::{Host, Why};
use crate::memory;
use crate::precondition::precondition;
use crate::progress::{Phase, Progress, Reporter};
use crate::result::{
    ByPurpose, FlashResult, GeometryResult, MountResult, MountStepResult, PreconditionResult, RunResult,
    SimulationResult, TimelinePoint, WearBin, WearResult,
};
use crate::source::WorkloadError;
use crate::spec::{RunSpec, TimingMode, WorkloadContext};
use crate::stopwatch::Stopwatch;
use crate::timed::{self, TimedResult};
use crate::timeline::Timeline;
use ftl::ftls::{self, Durability, Entry, Format, Mount};
use ftl::{Config, Counts, Flash, Ftl, OpCounts};
use nand::sim::SimNand;
use std::collections::BTreeMap;
use std::time::Instant;

/// Runs one simulation of an FTL in the table on the simulated device.
///
/// # Errors
/// [`SimError`]; above all [`SimError::WrongData`] if the FTL returned anything but what was last
/// written.
pub fn run(spec: &RunSpec, progress: &mut dyn FnMut(Progress)) -> Result<RunResult, SimError> {
    let entry = find(&spec.ftl)?;
    run_parts(spec, entry.format, power_cut(&entry), progress)
}

/// How an FTL of the table comes back; `None` if it does not.
fn power_cut<N: Device>(entry: &Entry<N>) -> Option<PowerCut<N>> {
    entry.mount.map(|mount| PowerCut { mount, flush_first: entry.info.durable == Durability::OnFlush })
}

/// The same FTL of the table after a power cut.
pub(crate) fn mounted(spec: &RunSpec, host: Host<SimNand>) -> Result<(Host<SimNand>, MountResult), SimError> {
    match power_cut(&find(&spec.ftl)?) {
        Some(power_cut) => come_back(spec, host, &config(spec), &power_cut),
        None => Err(not_mountable(spec)),
    }
}

fn not_mountable(spec: &RunSpec) -> SimError {
    SimError::BadSpec { what: "power cut", reason: format!("{} cannot be mounted; run it without one", spec.ftl) }
}

/// How an FTL comes back.
struct PowerCut<N: Device> {
    mount: Mount<N>,
    /// It keeps completed writes only after a flush.
    flush_first: bool,
}

/// Runs one simulation of any FTL on any device; without a power cut.
///
/// # Errors
/// As [`run`].
pub fn run_ftl<N: Device>(
    spec: &RunSpec,
    format: Format<N>,
    progress: &mut dyn FnMut(Progress),
) -> Result<RunResult, SimError> {
    run_parts(spec, format, None, progress)
}

fn run_parts<N: Device>(
    spec: &RunSpec,
    format: Format<N>,
    power_cut: Option<PowerCut<N>>,
    progress: &mut dyn FnMut(Progress),
) -> Result<RunResult, SimError> {
    if spec.power_cut && power_cut.is_none() {
        return Err(not_mountable(spec));
    }
    let begun = Instant::now();
    let mut report = Reporter::new(progress);
    let config = config(spec);
    let context = context(spec);
    let (mut host, aged) = age(spec, format, &context, &mut report)?;
    let precondition_wall_s = begun.elapsed().as_secs_f64();

    let measured = measure(spec, &mut host, &context, aged, precondition_wall_s, &mut report)?;
    let mut result = assemble(spec, &host, measured);
    if let Some(power_cut) = power_cut.filter(|_| spec.power_cut) {
        let mount;
        (host, mount) = come_back(spec, host, &config, &power_cut)?;
        result.mount = Some(mount);
    }
    if spec.verify {
        result.verified_pages = verify_all(&mut host, &mut report)?;
    }
    result.simulation.peak_memory_bytes = memory::peak_bytes();
    Ok(result)
}

/// What the FTL of a run is told.
fn config(spec: &RunSpec) -> Config {
    Config { logical_pages: spec.device.logical_pages, ..spec.config }
}

/// What the requests of the measured part are made for.
pub(crate) fn context(spec: &RunSpec) -> WorkloadContext {
    WorkloadContext {
        capacity_bytes: spec.device.logical_bytes(),
        page_bytes: spec.device.geometry.page_bytes(),
        seed: spec.seed,
        measured: true,
    }
}

/// An FTL of the table on an aged device.
pub(crate) fn aged(
    spec: &RunSpec,
    context: &WorkloadContext,
    report: &mut Reporter<'_>,
) -> Result<(Host<SimNand>, PreconditionResult), SimError> {
    age(spec, find(&spec.ftl)?.format, context, report)
}

fn find(name: &str) -> Result<Entry<SimNand>, SimError> {
    table::find::<SimNand>(name).ok_or_else(|| SimError::UnknownFtl {
        name: name.to_owned(),
        known: ftls::infos().iter().map(|info| info.name).collect::<Vec<_>>().join(", "),
    })
}

/// Makes an empty disk as a run would, and no more. Returns the bytes of RAM that the FTL holds.
///
/// # Errors
/// As [`run`]; above all [`SimError::Ftl`] if the device is too small for the FTL.
pub fn format(spec: &RunSpec) -> Result<u64, SimError> {
    let ftl = formatted::<SimNand>(spec, find(&spec.ftl)?.format)?;
    Ok(ftl.ram().iter().map(|item| item.bytes).sum())
}

fn formatted<N: Device>(spec: &RunSpec, format: Format<N>) -> Result<Box<dyn Ftl<N>>, SimError> {
    format(Flash::new(N::create(&spec.device)), &config(spec)).map_err(|source| SimError::Ftl {
        ftl: spec.ftl.clone(),
        doing: "formatting the device".to_owned(),
        source,
    })
}

/// Formats a device and ages it.
fn age<N: Device>(
    spec: &RunSpec,
    format: Format<N>,
    context: &WorkloadContext,
    report: &mut Reporter<'_>,
) -> Result<(Host<N>, PreconditionResult), SimError> {
    let mut host = Host::new(&spec.ftl, formatted(spec, format)?);
    if future::is_asked_for(spec)? {
        host.foretell();
    }
    if let Some(options) = spec.write_buffer {
        host = host.with_buffer(options)?;
    }
    let ageing = WorkloadContext { seed: ageing_seed(spec.seed), measured: false, ..*context };
    let aged = precondition(&mut host, &spec.precondition, &spec.workload, &ageing, report)?;
    host.write_all_out(Why::AtEnd)?;
    Ok((host, aged))
}

/// Measures an aged device, and leaves it as it is then.
pub(crate) fn part(
    spec: &RunSpec,
    host: &mut Host<SimNand>,
    aged: PreconditionResult,
    report: &mut Reporter<'_>,
) -> Result<RunResult, SimError> {
    let measured = measure(spec, host, &context(spec), aged, 0.0, report)?;
    // What the timed part logs is taken from the log at once.
    host.ftl_mut().flash_mut().set_logging(false);
    Ok(assemble(spec, host, measured))
}

/// The part of a run that results are about.
fn measure<N: Device>(
    spec: &RunSpec,
    host: &mut Host<N>,
    context: &WorkloadContext,
    aged: PreconditionResult,
    precondition_wall_s: f64,
    report: &mut Reporter<'_>,
) -> Result<Measured, SimError> {
    let mut feed = Feed::new(spec, context)?;
    host.begin("the measured part");
    if host.is_foretold() {
        let tail = u64::from(spec.device.logical_pages) * future::TAIL;
        let goal = if spec.writes == 0 { u64::MAX } else { spec.writes.saturating_add(tail) };
        let mut source = (spec.workload.make)(context)?;
        future::tell(host, &mut |requests, told| {
            let failed =
                |e: WorkloadError| SimError::Workload { workload: spec.workload.name.clone(), reason: e.to_string() };
            if told < goal { source.fill(requests).map_err(failed) } else { Ok(0) }
        })?;
    }
    let start = host.counts();
    let watch = Stopwatch::start();
    let mut timeline = Timeline::new(spec.writes, spec.interval_writes, start);
    let timed = match &spec.timing {
        TimingMode::None => {
            count(host, &mut feed, &mut timeline, report)?;
            None
        }
        TimingMode::Queued(options) => Some(timed::play(host, &mut feed, spec, options, &mut timeline, report)?),
    };
    let (wall_s, host_writes_per_s) = (watch.wall_s(), watch.rate(host.tally().writes));
    let end_ns = timed.as_ref().map_or(0, |t| t.end_ns);
    let timeline = timeline.finish(host.tally().writes, end_ns, host.counts(), host.ftl().gauges());
    host.write_all_out(Why::AtEnd)?;
    Ok(Measured {
        counts: host.counts().since(&start),
        timeline,
        timed,
        aged,
        simulation: SimulationResult { wall_s, precondition_wall_s, host_writes_per_s, ..SimulationResult::default() },
    })
}

/// Ageing must not write what is measured: another sequence of the same kind.
const fn ageing_seed(seed: u64) -> u64 {
    seed ^ 0xA6E1_A6E1_A6E1_A6E1
}

fn count<N: Device>(
    host: &mut Host<N>,
    feed: &mut Feed,
    timeline: &mut Timeline,
    report: &mut Reporter<'_>,
) -> Result<(), SimError> {
    while feed.fetch(host.tally())? {
        let goal = feed.writes_goal().min(timeline.next());
        let done = host.apply(feed.ready(), goal)?;
        feed.consume(done);
        let writes = host.tally().writes;
        if writes >= timeline.next() {
            timeline.mark(writes, 0, host.counts(), host.ftl().gauges());
        }
        report.at(Phase::Measure, writes, feed.writes_wanted());
    }
    Ok(())
}

/// Reads every page back; the counts of the run have been taken before.
fn verify_all<N: Device>(host: &mut Host<N>, report: &mut Reporter<'_>) -> Result<u64, SimError> {
    const CHUNK: u32 = 1 << 14;
    host.begin("the final check");
    host.ftl_mut().flash_mut().set_logging(false);
    let pages = host.ftl().logical_pages();
    let mut first = 0;
    while first < pages {
        host.verify(first, CHUNK)?;
        first = first.saturating_add(CHUNK).min(pages);
        report.at(Phase::Verify, u64::from(first), u64::from(pages));
    }
    Ok(u64::from(pages))
}

struct Measured {
    counts: Counts,
    timeline: Vec<TimelinePoint>,
    timed: Option<TimedResult>,
    aged: PreconditionResult,
    simulation: SimulationResult,
}

fn assemble<N: Device>(spec: &RunSpec, host: &Host<N>, measured: Measured) -> RunResult {
    let tally = *host.tally();
    let mut ram_bytes = BTreeMap::new();
    for item in host.ftl().ram() {
        *ram_bytes.entry(item.name.to_owned()).or_insert(0) += item.bytes;
    }
    if host.has_buffer() {
        ram_bytes.insert("write_buffer".to_owned(), host.buffer_bytes());
    }
    let ram_total: u64 = ram_bytes.values().sum();
    ram_bytes.insert("total".to_owned(), ram_total);
    let device = host.ftl().flash().nand();
    let geometry = device.geometry();
    let (latency_us, throughput) = measured.timed.map(|t| (t.latency_us, t.throughput)).unzip();
    RunResult {
        ftl: spec.ftl.clone(),
        device: spec.device.name.clone(),
        workload: spec.workload.name.clone(),
        seed: spec.seed,
        host: tally,
        write_buffer: host.buffer_tally().cloned(),
        flash: ByPurpose::from_fn(|purpose| flash_result(measured.counts.of(purpose))),
        write_amplification: amplification(&measured.counts, tally.writes, tally.rmw_reads, spec.device.delta()),
        ram_bytes,
        latency_us,
        throughput,
        wear: wear(device.erase_counts()),
        simulation: SimulationResult {
            run_memory_bytes: device.memory_bytes() + ram_total + host.model_bytes(),
            ..measured.simulation
        },
        precondition: measured.aged,
        timeline: measured.timeline,
        geometry: GeometryResult {
            channels: geometry.channels(),
            dies: geometry.dies(),
            blocks: geometry.blocks(),
            pages_per_block: geometry.pages_per_block(),
            page_bytes: geometry.page_bytes(),
            physical_pages: geometry.pages(),
            logical_pages: host.ftl().logical_pages(),
        },
        notes: spec.workload.notes.clone(),
        verified_pages: 0,
        mount: None,
    }
}

const fn flash_result(c: &OpCounts) -> FlashResult {
    let OpCounts { reads, spare_reads, programs, erases, flag_programs } = *c;
    FlashResult { reads, spare_reads, programs, erases, flag_programs }
}

/// Cuts power and mounts.
fn come_back<N: Device>(
    spec: &RunSpec,
    mut host: Host<N>,
    config: &Config,
    power_cut: &PowerCut<N>,
) -> Result<(Host<N>, MountResult), SimError> {
    host.begin("the power cut");
    host.write_all_out(Why::AtEnd)?;
    let before = host.counts();
    if power_cut.flush_first {
        host.flush()?;
    }
    host.power_failing()?;
    let saved = host.counts().since(&before).total();
    let saved_before = (saved != OpCounts::default()).then(|| flash_result(&saved));
    let (host, report) = host.power_cycle(power_cut.mount, config)?;
    let steps: Vec<MountStepResult> = report
        .steps
        .iter()
        .map(|step| {
            let flash = flash_result(&step.ops);
            MountStepResult { name: step.name.to_owned(), flash, seconds: spec.device.serial_seconds(&flash) }
        })
        .collect();
    let seconds = steps.iter().map(|step| step.seconds).sum();
    let read_only = report.read_only.map(|shortage| shortage.to_string());
    Ok((host, MountResult { saved_before, steps, seconds, read_only }))
}

/// Bars of an erase histogram, at most.
const WEAR_BINS: u32 = 64;

fn wear(erases: &[u32]) -> WearResult {
    let (Some(&min), Some(&max)) = (erases.iter().min(), erases.iter().max()) else { return WearResult::default() };
    let blocks = erases.len() as f64;
    let erases_total: u64 = erases.iter().copied().map(u64::from).sum();
    let mean = erases_total as f64 / blocks;
    let variance = erases.iter().map(|&e| (f64::from(e) - mean).powi(2)).sum::<f64>() / blocks;
    let width = (max - min) / WEAR_BINS + 1;
    let mut histogram: Vec<WearBin> = (0..=(max - min) / width)
        .map(|bin| WearBin { from: min + bin * width, to: min + (bin + 1) * width - 1, blocks: 0 })
        .collect();
    for &e in erases {
        histogram[((e - min) / width) as usize].blocks += 1;
    }
    WearResult { erases_total, max, min, mean, stddev: variance.sqrt(), histogram }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wear_by_hand() {
        let w = wear(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!((w.erases_total, w.max, w.min, w.mean, w.stddev), (40, 9, 2, 5.0, 2.0));
        assert_eq!(w.histogram.iter().map(|b| b.blocks).sum::<u32>(), 8);
        assert_eq!(w.histogram[2], WearBin { from: 4, to: 4, blocks: 3 });
        let wide = wear(&[0, 1000]);
        assert!(wide.histogram.len() <= WEAR_BINS as usize);
        assert!(wide.histogram.last().is_some_and(|b| b.from <= 1000 && 1000 <= b.to));
        assert_eq!(wear(&[]), WearResult::default());
    }
}
