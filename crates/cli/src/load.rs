//! Which requests: a synthetic workload or a trace.

use crate::args::{CompareArgs, Map, ReadArgs, Timing};
use crate::error::usage;
use crate::output;
use crate::units::bytes;
use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sim::{DevicePlan, WorkloadContext, WorkloadSpec};
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use workload::trace::{self, OpenOptions, Trace};

/// The workload when none is named.
pub const DEFAULT: &str = "uniform";

/// Begins the name of a trace that comes with the program; `./sample:NAME` is a file.
const SAMPLE: &str = "sample:";

/// Requests, ready to be run.
pub struct Load {
    /// How to start them.
    pub spec: WorkloadSpec,
    /// With every default spelled out.
    pub description: String,
    /// Pages to write in the measured part; 0 until the requests end.
    pub writes: u64,
}

/// Reads a trace, one from standard input (`-`), or one that comes with the program, as the options
/// say.
pub fn open(path: &Path, args: &ReadArgs) -> Result<Trace> {
    let mut options = OpenOptions {
        format: args.trace_format.clone(),
        lenient: args.lenient,
        device: args.device_filter.clone(),
        limit: args.limit.map(|count| count.0),
        shift_bytes: args.shift.map_or(0, |size| size.0),
        ..OpenOptions::default()
    };
    options.time_unit = args.time_unit.as_deref().map(str::parse).transpose()?;
    options.address_unit = args.lba_unit.as_deref().map(str::parse).transpose()?;
    options.size_unit = args.size_unit.as_deref().map(str::parse).transpose()?;
    options.flag = args.flag.as_deref().map(str::parse).transpose()?;
    let is_ftl = |name: &&str| ftl::ftls::infos().iter().any(|info| info.name == *name) && !path.exists();
    if let Some(name) = path.to_str().filter(is_ftl) {
        return Err(usage(format!(
            "{name} stands where a trace would, and there is no such file; several FTLs are one list: --ftl page,{name}"
        )));
    }
    if path == Path::new("-") {
        let stdin = io::stdin();
        if stdin.is_terminal() {
            return Err(usage("- is standard input, which is a terminal here; pipe a trace into it"));
        }
        return Ok(trace::read(stdin.lock(), "standard input", &options)?);
    }
    match path.to_str().and_then(|path| path.strip_prefix(SAMPLE)) {
        Some(name) => Ok(trace::sample(name, &options)?),
        None => {
            let _waiting = Waiting::for_file(path);
            Ok(trace::open(path, &options)?)
        }
    }
}

/// Files shorter than this are read before anybody wonders.
const SOON_READ: u64 = 8 << 20;

/// Says that a large file is being read, until it is dropped.
struct Waiting(Option<ProgressBar>);

impl Waiting {
    fn for_file(path: &Path) -> Self {
        let Some(size) = std::fs::metadata(path).ok().map(|file| file.len()).filter(|size| *size > SOON_READ) else {
            return Self(None);
        };
        let text = format!("reading {}, {}", path.display(), bytes(size));
        if !io::stderr().is_terminal() {
            output::note(&text);
            return Self(None);
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_message(text);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}  {elapsed}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        Self(Some(bar))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// Whether any option about reading traces was given.
pub fn reads_a_trace(args: &ReadArgs) -> bool {
    let named = [&args.trace_format, &args.time_unit, &args.lba_unit, &args.size_unit, &args.flag, &args.device_filter];
    args.lenient || args.limit.is_some() || args.shift.is_some() || named.iter().any(|option| option.is_some())
}

/// The requests that the options ask for, for this device.
pub fn choose(args: &CompareArgs, trace: Option<Arc<Trace>>, plan: &DevicePlan) -> Result<Load> {
    let is_open = args.time.open_loop && args.time.timing == Timing::Queued;
    if let Some(guess) = trace.as_ref().and_then(|trace| trace.time_guess()).filter(|_| is_open) {
        return Err(usage(format!(
            "--open-loop needs arrival times, and the trace does not say their unit: {guess}; state it with --time-unit"
        )));
    }
    let (spec, writes, described) = match trace {
        Some(trace) => replay(args, trace),
        None => synthetic(args, plan)?,
    };
    let context = WorkloadContext {
        capacity_bytes: plan.logical_bytes(),
        page_bytes: plan.geometry.page_bytes(),
        seed: args.seed,
        measured: true,
    };
    let source = (spec.make)(&context)?;
    if is_open && !source.timed() {
        return Err(usage(format!(
            "--open-loop needs arrival times and `{}` has none; give it a rate, as in uniform:rate=5000, or leave \
             --open-loop out",
            spec.name
        )));
    }
    Ok(Load { description: described.unwrap_or_else(|| source.describe()), spec, writes })
}

/// The workload, the pages it is to write, and its description if its source's own says too much.
type Chosen = (WorkloadSpec, u64, Option<String>);

fn synthetic(args: &CompareArgs, plan: &DevicePlan) -> Result<Chosen> {
    let text = args.workload.as_deref().unwrap_or(DEFAULT);
    // Parsed here as well, so that a wrong name is a usage error with its suggestion.
    let spec: workload::Spec = text.parse()?;
    spec.build(plan.logical_bytes(), plan.geometry.page_bytes(), args.seed)?;
    let writes = args.writes.map_or(u64::from(plan.logical_pages) * 2, |count| count.0);
    Ok((WorkloadSpec::synthetic(text)?, writes, Some(spec.full())))
}

fn replay(args: &CompareArgs, trace: Arc<Trace>) -> Chosen {
    let map = match args.replay.map {
        Map::Dense => trace::Map::Dense,
        Map::Fold => trace::Map::Fold,
        Map::Scale => trace::Map::Scale,
    };
    let laps = match (args.replay.repeat, args.writes) {
        (Some(times), _) => Some(times),
        (None, Some(_)) => None,
        (None, None) => Some(1),
    };
    let spec = WorkloadSpec::replay(trace, map, laps);
    (spec, args.writes.map_or(0, |count| count.0), None)
}
