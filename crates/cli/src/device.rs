//! Which device: a built-in profile or a file, and how large.

use crate::args::{CompareArgs, Map, Timing};
use crate::error::{unknown, usage};
use crate::units::{bytes, count};
use anyhow::{Context, Result, bail};
use ftl::ftls::Info;
use nand::profiles::{self, Profile};
use nand::{Capabilities, ProgramOrder};
use sim::DevicePlan;
use std::path::Path;
use workload::trace::{Trace, footprint};

/// The device of a comparison that names none, and its capacity: enough to show that a bitmap in
/// RAM grows with the device, and run within seconds.
const SHOWN: (&str, u64) = ("demo", 4 << 30);
/// A device made for a trace has at least so many blocks: fewer leave an FTL no room to work.
const BLOCKS_MIN: u64 = 128;
/// So many on every plane while streams fill one block at a time, and so many while they fill one
/// on each die.
const BLOCKS_A_PLANE_MIN: [u64; 2] = [4, 16];
/// More pages than this take minutes, because ageing writes each more than twice.
const PAGES_SOON_DONE: u32 = 1 << 25;
/// Bytes of memory that a simulation takes for each physical page, roughly.
pub const MEMORY_A_PAGE: u64 = 16;

/// The device with what was decided about it, in sentences.
pub struct Chosen {
    /// The device.
    pub plan: DevicePlan,
    /// In words.
    pub description: String,
    /// What was chosen on the user's behalf.
    pub notes: Vec<String>,
}

/// The profile of that name, or from that TOML file.
pub fn profile(name: &str) -> Result<Profile> {
    if let Some(profile) = profiles::find(name) {
        return Ok(profile.clone());
    }
    let path = Path::new(name);
    let is_file = path.extension().is_some_and(|e| e == "toml") || name.contains('/') || path.is_file();
    if !is_file {
        let known = profiles::profiles().iter().map(|profile| profile.name.as_ref());
        return Err(unknown("device profile", name, known, "devices").context("give a profile or a TOML file"));
    }
    let text = std::fs::read_to_string(path).with_context(|| {
        format!("cannot read the device file {name} (openftl list devices --toml demo prints one to start from)")
    })?;
    if text.trim().is_empty() {
        bail!("{name} is empty; openftl list devices --toml demo prints a device file to start from");
    }
    let profile: Profile = toml::from_str(&text).with_context(|| format!("{name} is not a device profile"))?;
    profile.geometry().with_context(|| format!("{name} describes a device that cannot be"))?;
    profile.timing.check(profile.pairing).with_context(|| format!("{name} describes a device that cannot be"))?;
    Ok(profile)
}

/// The share of the raw capacity that the host sees.
pub fn ratio(profile: &Profile, asked: Option<f64>) -> Result<f64> {
    checked_ratio(asked.unwrap_or(profile.default_logical_ratio))
}

/// The ratio, if the host can see that share.
pub fn checked_ratio(ratio: f64) -> Result<f64> {
    if !(ratio > 0.0 && ratio < 1.0) {
        return Err(usage(format!(
            "--logical-ratio {ratio} is not between 0 and 1: the host sees a part of the flash, 0.7 is usual"
        )));
    }
    Ok(ratio)
}

/// The device of a profile with so many bytes raw, or its own.
pub fn plan(profile: &Profile, capacity: Option<u64>, ratio: f64) -> Result<DevicePlan> {
    let geometry = match capacity {
        Some(size) => {
            profile.scaled(size).map_err(|e| usage(format!("--capacity with device {}: {e}", profile.name)))?
        }
        None => profile.geometry().map_err(|e| usage(e.to_string()))?,
    };
    // The options were looked at: what is wrong now is the device's.
    DevicePlan::new(&profile.name, geometry.dimensions(), profile.capabilities, profile.timing, None, ratio)
        .and_then(|plan| plan.with_limits(profile.limits).with_pairing(profile.pairing))
        .map_err(|error| anyhow::Error::msg(error.to_string()))
}

/// Bytes of memory that a run on a device takes, roughly.
pub fn memory_of_run(plan: &DevicePlan) -> u64 {
    u64::from(plan.geometry.pages()) * MEMORY_A_PAGE
}

/// Bytes of memory that a cached mapping entry takes, with what finds it.
pub const MEMORY_AN_ENTRY: u64 = 48;

/// The device that the options ask for; `trace` sizes it if they do not.
pub fn choose(args: &CompareArgs, trace: Option<&Trace>) -> Result<Chosen> {
    let profile = profile(&args.device)?;
    let ratio = ratio(&profile, args.logical_ratio)?;
    let mut notes = Vec::new();
    let capacity = match (args.capacity, trace) {
        (Some(size), _) => Some(size.0),
        (None, Some(trace)) if args.replay.map == Map::Dense => {
            let (size, note) = size_for(&profile, trace, ratio, args.time.timing == Timing::Queued);
            notes.push(note);
            Some(size)
        }
        (None, None) if args.device == SHOWN.0 => Some(SHOWN.1),
        (None, _) => None,
    };
    let plan = plan(&profile, capacity, ratio)?;
    let geometry = plan.geometry;
    check_memory(memory_of_run(&plan))?;
    if geometry.pages() > PAGES_SOON_DONE {
        notes.push(format!(
            "device {} has {} pages and ageing it writes each more than twice, which takes minutes; --capacity 8GiB is \
             enough for most questions",
            profile.name,
            count(u64::from(geometry.pages()))
        ));
    }
    let description = describe(&plan, ratio);
    Ok(Chosen { plan, description, notes })
}

/// FTLs that cannot work with what the device can do are refused before anything is done.
pub fn check_order(ftls: &[Info], device: &str, capabilities: Capabilities) -> Result<()> {
    let names = |which: &dyn Fn(&Info) -> bool| {
        ftls.iter().filter(|info| which(info)).map(|info| info.name).collect::<Vec<_>>().join(", ")
    };
    let with = |which: &dyn Fn(Capabilities) -> bool| {
        let able = profiles::profiles().iter().filter(|profile| which(profile.capabilities));
        able.map(|profile| &*profile.name).collect::<Vec<_>>().join(", ")
    };
    let flagging = names(&|info| capabilities.spare_reprograms < info.flags);
    if !flagging.is_empty() {
        let most = ftls.iter().map(|info| info.flags).max().unwrap_or(0);
        return Err(usage(format!(
            "{flagging} sets flags of programmed pages, at least {most} times between erases, but device {device} can {} times; \
             choose a device that can (--device {}), or leave {flagging} out",
            capabilities.spare_reprograms,
            with(&|device| device.spare_reprograms >= most)
        )));
    }
    let disorderly = names(&|info| !info.runs_on(capabilities));
    if disorderly.is_empty() {
        return Ok(());
    }
    Err(usage(format!(
        "{disorderly} programs the pages of a block in any order, but device {device} has sequential program order; choose a \
         device with free program order ({}), or leave {disorderly} out",
        with(&|device| device.program_order == ProgramOrder::Free)
    )))
}

/// The least capacity on which the trace's pages fit side by side in the visible part.
fn size_for(profile: &Profile, trace: &Trace, ratio: f64, timed: bool) -> (u64, String) {
    let d = profile.geometry;
    let touched = footprint(trace, d.page_bytes).touched_pages;
    let planes = u64::from(d.channels) * u64::from(d.dies_per_channel) * u64::from(d.planes_per_die);
    let row_pages = planes * u64::from(d.pages_per_block);
    let needed = (touched as f64 / ratio / row_pages as f64).ceil() as u64;
    let least = BLOCKS_MIN.div_ceil(planes).max(BLOCKS_A_PLANE_MIN[usize::from(timed)]);
    let mut rows = needed.max(least);
    while ((rows * row_pages) as f64 * ratio) < touched as f64 {
        rows += 1;
    }
    let size = rows * row_pages * u64::from(d.page_bytes);
    let why = if needed < least {
        format!("the least that FTLs can work in ({} blocks), though the trace needs less", count(least * planes))
    } else {
        format!("so that they fill the visible {:.0}%", ratio * 100.0)
    };
    let note = format!(
        "the trace touches {} pages of {}; device {} is given {} raw, {why} (--capacity sets it)",
        count(touched),
        bytes(u64::from(d.page_bytes)),
        profile.name,
        bytes(size)
    );
    (size, note)
}

pub fn describe(plan: &DevicePlan, ratio: f64) -> String {
    let g = &plan.geometry;
    format!(
        "{}: {} raw, {} visible ({}%); {} blocks of {} pages of {}; {}, {}",
        plan.name,
        bytes(g.raw_bytes()),
        bytes(plan.logical_bytes()),
        (ratio * 1000.0).round() / 10.0,
        count(u64::from(g.blocks())),
        g.pages_per_block(),
        bytes(u64::from(g.page_bytes())),
        several(g.channels(), "channel"),
        several(g.dies(), "die"),
    )
}

fn several(n: u32, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Refuses what the machine cannot hold, rather than being killed half way.
pub fn check_memory(needed: u64) -> Result<()> {
    let Some(available) = available_memory() else { return Ok(()) };
    if needed > available {
        bail!(
            "simulating this device takes about {} of memory and {} are available; make it smaller (--capacity, --scale)",
            bytes(needed),
            bytes(available)
        );
    }
    Ok(())
}

/// What Linux says is available.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_survives_its_file_form() {
        for profile in profiles::profiles() {
            let text = toml::to_string_pretty(profile).unwrap();
            assert_eq!(&toml::from_str::<Profile>(&text).unwrap(), profile, "{text}");
        }
    }

    #[test]
    fn unknown_fields_are_refused_by_name() {
        let text = toml::to_string_pretty(profiles::find("demo").unwrap()).unwrap();
        let text = text.replace("endurance_erases", "endurance_eraeses");
        let error = toml::from_str::<Profile>(&text).unwrap_err().to_string();
        assert!(error.contains("endurance_eraeses"), "{error}");
    }

    #[test]
    fn more_memory_than_there_is_is_refused() {
        assert!(check_memory(1 << 20).is_ok());
        if available_memory().is_some() {
            assert!(check_memory(1 << 60).unwrap_err().to_string().contains("--capacity"));
        }
    }
}
