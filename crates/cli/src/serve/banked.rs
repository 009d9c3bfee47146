//! `openftl serve --ftl lftl`: the engine of many threads, over a card in memory.

use crate::args::{BankedArgs, ServeArgs};
use crate::backing::Backing;
use crate::error::usage;
use crate::units::bytes;
use crate::{device, settings};
use anyhow::Result;
use blockdev::{BankedDisk, Log};
use lftl::{Engine, LftlError, Options, Policy, Replacement, Server, Threads};
use nand::{Dimensions, Geometry, MemNand};
use std::sync::Arc;

/// The name by which it is asked for.
pub const NAME: &str = "lftl";
/// The card if nobody names one: the paper's banks with few blocks each, of which the host sees
/// less than of the whole card.
const DEVICE: &str = "lftl-card";
const CAPACITY: u64 = 2 << 30;
const LOGICAL_RATIO: f64 = 0.7;

/// Options of this FTL alone, and whether each was given.
pub fn given(args: &BankedArgs) -> [(&'static str, bool); 5] {
    [
        ("--workers", args.workers.is_some()),
        ("--collectors", args.collectors.is_some()),
        ("--policy", args.policy.is_some()),
        ("--buffers", args.buffers.is_some()),
        ("--replacement", args.replacement.is_some()),
    ]
}

/// A new disk in memory, one device a bank, and what it is.
pub fn in_memory(args: &ServeArgs, log: &Arc<dyn Log>) -> Result<(BankedDisk<Backing>, String)> {
    let tuned = settings::given(&args.disk.tuning).map(|(option, _, given)| (option, given));
    let others = [("--shards", args.shards > 1)];
    if let Some((option, _)) = others.iter().chain(&tuned).find(|(_, given)| *given) {
        return Err(usage(format!("{option} means nothing to {NAME}; leave it out")));
    }
    let policy = named(args.banked.policy.as_deref(), &Policy::TABLE, Policy::Adaptive);
    let replacement = named(args.banked.replacement.as_deref(), &Replacement::TABLE, Replacement::Fifo);
    let profile = device::profile(args.disk.device.as_deref().unwrap_or(DEVICE))?;
    let ratio = args.disk.logical_ratio.or(args.disk.device.is_none().then_some(LOGICAL_RATIO));
    let ratio = device::ratio(&profile, ratio)?;
    let capacity = args.disk.capacity.map(|size| size.0).or(args.disk.device.is_none().then_some(CAPACITY));
    let plan = device::plan(&profile, capacity, ratio)?;
    device::check_memory(plan.geometry.raw_bytes())?;
    let (whole, banks) = (plan.geometry.dimensions(), plan.geometry.dies());
    let one = Dimensions { channels: 1, dies_per_channel: 1, blocks: whole.blocks / banks, ..whole };
    let geometry = Geometry::new(one)?;
    let bank = |_| {
        let nand = Backing::from(MemNand::new(geometry, plan.capabilities));
        if args.delays { nand.paced(plan.timing) } else { nand }
    };
    let default = Options::new(plan.logical_pages);
    let buffers = args.banked.buffers.unwrap_or(default.buffers);
    let options = Options { policy, replacement, buffers, ..default };
    let engine = Engine::format((0..banks).map(bank).collect(), options).map_err(refused)?;
    let collectors = args.banked.collectors.unwrap_or(if policy == Policy::WritePath { 0 } else { 8 });
    let threads = Threads { workers: args.banked.workers.unwrap_or(16), collectors };
    let server = Server::start(engine, threads).map_err(refused)?;
    let description = format!("{} under {NAME} over {banks} banks", bytes(server.size_bytes()));
    Ok((BankedDisk::new(server, Arc::clone(log)), description))
}

/// What cannot be built is said by the command line.
fn refused(error: LftlError) -> anyhow::Error {
    match error {
        LftlError::Unsupported { reason } => usage(format!("{NAME}: {reason}")),
        error => error.into(),
    }
}

/// What the command line names; it takes no other names than those of the table.
fn named<T: Copy>(given: Option<&str>, table: &[(&'static str, T)], default: T) -> T {
    given.and_then(|given| table.iter().find(|(name, _)| *name == given)).map_or(default, |(_, value)| *value)
}
