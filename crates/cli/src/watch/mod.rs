//! `openftl watch`: a run step by step.
//!
//! Reading order: [`show`] (a run, one flash operation at a time, over [`pages`] and [`seen`]),
//! [`guide`], [`draw`] (a frame of it), [`replay`] (the same for what the explorer did), [`screen`]
//! (keys and the terminal).

mod draw;
mod guide;
mod pages;
mod replay;
mod screen;
mod seen;
mod show;
mod tour;

use crate::args::{BufferArgs, CompareArgs, StepBy, TimeArgs, WatchArgs};
use crate::device::{self, Chosen};
use crate::error::usage;
use crate::{compare, load, output, settings};
use anyhow::Result;
use ftl::Setting;
use ftl::ftls::Info;
use nand::geometry::Dimensions;
use nand::profiles;
use screen::Scene;
use show::Show;
use sim::{DevicePlan, RunSpec};
use std::io::{self, IsTerminal};
use std::sync::Arc;
use tour::Tour;

/// The device unless another is asked for: small enough that every page can be seen, and large
/// enough that Logarithmic Gecko has several levels.
const SMALL: Dimensions = Dimensions {
    channels: 1,
    dies_per_channel: 1,
    planes_per_die: 1,
    blocks: 128,
    pages_per_block: 8,
    page_bytes: 512,
    spare_bytes: 32,
};
const SMALL_RATIO: f64 = 0.65;
/// Cached entries on it, and partitions of a block for Logarithmic Gecko.
const SMALL_CACHE: u32 = 24;
const SMALL_PARTITIONS: u32 = 8;

/// Shows a run, or prints frames of it.
pub fn run(args: &WatchArgs) -> Result<()> {
    if args.frames.is_none() && !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return Err(usage(
            "openftl watch draws in a terminal, and standard input and output are not one; --frames 10 prints frames as text",
        ));
    }
    if let Some(id) = &args.replay {
        return present(args, replay::Replay::new(id, args.seed)?);
    }
    let (spec, title) = prepare(args)?;
    present(args, Tour::new(Show::new(&spec)?, title))
}

fn present(args: &WatchArgs, mut scene: impl Scene) -> Result<()> {
    let Some(frames) = args.frames else { return screen::run(&mut scene) };
    for frame in 0..frames {
        if frame > 0 && !scene.step(args.step_by)? {
            break;
        }
        output::print(&screen::text(&scene, args.frame_size)?)?;
    }
    Ok(())
}

/// The comparison of which the run is one.
fn compared(args: &WatchArgs) -> CompareArgs {
    CompareArgs {
        buffer: BufferArgs::default(),
        trace: args.trace.clone(),
        workload: args.workload.clone(),
        ftl: vec![args.ftl.clone()],
        device: args.device.clone().unwrap_or_else(|| "demo".to_owned()),
        capacity: args.capacity,
        logical_ratio: args.logical_ratio,
        writes: None,
        precondition: args.precondition,
        delta: None,
        seed: args.seed,
        jobs: None,
        json: false,
        no_timeline: false,
        html: None,
        time: TimeArgs::default(),
        tuning: args.tuning.clone(),
        read: args.read.clone(),
        replay: args.play.clone(),
    }
}

/// The run that is asked for, and what it is called.
fn prepare(args: &WatchArgs) -> Result<(RunSpec, String)> {
    let compared = compared(args);
    let ftls = compare::check(&compared)?;
    let [info] = ftls[..] else { return Err(usage("openftl watch shows one FTL: --ftl names one")) };
    let tuning = &args.tuning;
    settings::not_taken(&settings::given(tuning), &ftls, tuning.validity.as_deref(), tuning.placement.as_deref())?;
    let trace = args.trace.as_deref().map(|path| load::open(path, &args.read)).transpose()?.map(Arc::new);
    let is_small = args.device.is_none() && args.capacity.is_none() && trace.is_none();
    let chosen = if is_small { small(&info, args)? } else { device::choose(&compared, trace.as_deref())? };
    device::check_order(&ftls, &chosen.plan.name, chosen.plan.capabilities)?;
    let load = load::choose(&compared, trace, &chosen.plan)?;
    let mut spec = compare::spec(&compared, &info, &chosen, &load)?;
    if is_small && tuning.cache.is_none() && info.honours_over(Setting::CacheEntries, tuning.validity.as_deref()) {
        spec.config.cache_entries = SMALL_CACHE;
    }
    if is_small && tuning.gecko.s.is_none() && info.honours_over(Setting::Gecko, tuning.validity.as_deref()) {
        spec.config.gecko.partitions = Some(SMALL_PARTITIONS);
    }
    Ok((spec, format!("openftl watch: {}, {}", info.name, load.spec.name)))
}

/// The small device, with what the FTL needs of it.
fn small(info: &Info, args: &WatchArgs) -> Result<Chosen> {
    let profile = device::profile("demo")?;
    let old = profiles::profiles().iter().find(|old| info.runs_on(old.capabilities));
    let capabilities = if info.runs_on(profile.capabilities) {
        profile.capabilities
    } else {
        old.map_or(profile.capabilities, |old| old.capabilities)
    };
    let ratio = device::checked_ratio(args.logical_ratio.unwrap_or(SMALL_RATIO))?;
    let plan = DevicePlan::new("small", SMALL, capabilities, profile.timing, None, ratio)?;
    let description = device::describe(&plan, ratio);
    Ok(Chosen { plan, description, notes: Vec::new() })
}

/// How far a step goes if it is not the guide that says so.
const fn is_chapter(step: StepBy) -> bool {
    matches!(step, StepBy::Chapter)
}

#[cfg(test)]
mod tests;
