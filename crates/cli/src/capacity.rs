//! The least capacity on which an FTL works, for whoever asked for less.

use crate::args::CompareArgs;
use crate::compare;
use crate::device::Chosen;
use crate::error::usage;
use crate::load::Load;
use anyhow::Result;
use ftl::FtlError;
use ftl::ftls::Info;
use sim::{DevicePlan, RunSpec, SimError};

/// Devices of more blocks are taken to be large enough, rather than formatted twice.
const BLOCKS_SMALL: u32 = 8192;
/// The largest device that is tried has fewer blocks than this.
const BLOCKS_TRIED: u64 = 1 << 14;

/// Refuses a device that is too small for the FTL, and says which capacity would do.
///
/// # Errors
/// Those of formatting.
pub fn check(args: &CompareArgs, info: &Info, spec: &RunSpec, chosen: &Chosen, load: &Load) -> Result<()> {
    if spec.device.geometry.blocks() > BLOCKS_SMALL {
        return Ok(());
    }
    match sim::run::format(spec) {
        Err(error @ SimError::Ftl { source: FtlError::Unsupported { .. }, .. }) => {
            let least = least(args, info, chosen, load)
                .map(|size| format!("; {} works with --capacity {}MiB or more here", info.name, size >> 20));
            Err(usage(format!("{error}: {}{}", cause(&error), least.unwrap_or_default())))
        }
        _ => Ok(()),
    }
}

fn cause(error: &SimError) -> String {
    std::error::Error::source(error).map(ToString::to_string).unwrap_or_default()
}

/// The least capacity above that of the device which does, in whole rows of blocks.
fn least(args: &CompareArgs, info: &Info, chosen: &Chosen, load: &Load) -> Option<u64> {
    let geometry = chosen.plan.geometry;
    let d = geometry.dimensions();
    let planes = u64::from(d.channels) * u64::from(d.dies_per_channel) * u64::from(d.planes_per_die);
    let row = planes * u64::from(d.pages_per_block) * u64::from(d.page_bytes);
    let ratio = f64::from(chosen.plan.logical_pages) / f64::from(geometry.pages());
    let works = |rows: u64| {
        let plan = &chosen.plan;
        let plan = DevicePlan::new(
            &plan.name,
            d,
            plan.capabilities,
            plan.timing,
            Some(rows * row),
            args.logical_ratio.unwrap_or(ratio),
        );
        let larger = plan.ok().map(|plan| Chosen { plan, description: String::new(), notes: Vec::new() });
        let spec = larger.and_then(|chosen| compare::spec(args, info, &chosen, load).ok());
        spec.is_some_and(|spec| sim::run::format(&spec).is_ok())
    };
    let mut fails = geometry.raw_bytes() / row;
    let mut does = fails * 2;
    while !works(does) {
        (fails, does) = (does, does * 2);
        if does * planes >= BLOCKS_TRIED {
            return None;
        }
    }
    while does - fails > 1 {
        let middle = does.midpoint(fails);
        if works(middle) { does = middle } else { fails = middle }
    }
    // What is printed is rounded, so it is rounded up here.
    let unit = if does * row > 64 << 20 { 4 << 20 } else { 1 << 20 };
    Some((does * row).next_multiple_of(unit))
}
