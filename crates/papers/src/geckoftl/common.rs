//! What figures of GeckoFTL's paper share.

use super::model;
use crate::figure::{Experiment, Run};
use crate::lab::Lab;
use crate::outcome::{Bar, Part};
use crate::units::{gib, share};
use ftl::{MountStep, Purpose};
use sim::{DevicePlan, First, PreconditionMode, RunResult, RunSpec, SimError};

/// The device of GeckoFTL's evaluation.
pub const PROFILE: &str = "gecko-2tb";

/// The FTL that keeps page validity in Logarithmic Gecko.
pub const GECKO: &str = "gecko";

/// The page-validity store that is a bitmap in flash.
pub const FLASH_BITMAP: &str = "flash-bitmap";

/// What a flash operation was for, in the three groups of GeckoFTL's Figure 13.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Updates of the application and collection of its data.
    User,
    /// Synchronisation, and collection of translation pages.
    Translation,
    /// Updates, queries and collection of page validity.
    Validity,
}

impl Group {
    /// All, in the order of the figure.
    pub const ALL: [Self; 3] = [Self::User, Self::Translation, Self::Validity];

    /// Its name in charts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user data",
            Self::Translation => "translation",
            Self::Validity => "page validity",
        }
    }

    /// The group of a purpose.
    pub const fn of(purpose: Purpose) -> Self {
        match purpose {
            Purpose::Host | Purpose::Gc | Purpose::Wear | Purpose::Refresh => Self::User,
            Purpose::Translation | Purpose::TranslationGc | Purpose::Checkpoint | Purpose::Recovery => {
                Self::Translation
            }
            Purpose::Validity | Purpose::ValidityQuery | Purpose::ValidityGc => Self::Validity,
        }
    }
}

/// Write-amplification of a group, reads weighed by 1/δ.
pub fn amplification(result: &RunResult, group: Group) -> f64 {
    let parts = result.write_amplification.by_purpose.iter();
    parts.filter(|(purpose, _)| Group::of(*purpose) == group).map(|(_, part)| part.paper).sum()
}

/// Write-amplification by page validity.
pub fn validity(result: &RunResult) -> f64 {
    amplification(result, Group::Validity)
}

/// Flash operations for page validity, per host page written: (reads, programs).
pub fn validity_ops(result: &RunResult) -> (f64, f64) {
    let writes = result.host.writes.max(1) as f64;
    let group = result.flash.iter().filter(|(purpose, _)| Group::of(*purpose) == Group::Validity);
    let (reads, programs) = group.fold((0, 0), |(r, p), (_, flash)| (r + flash.reads, p + flash.programs));
    (reads as f64 / writes, programs as f64 / writes)
}

/// Reads to answer queries of collections, per host page written.
pub fn query_reads(result: &RunResult) -> f64 {
    result.flash.validity_query.reads as f64 / result.host.writes.max(1) as f64
}

/// Seconds of the mount after the power cut, without the collections at its end.
pub fn recovery_seconds(run: &Run) -> Option<f64> {
    let mount = run.result.mount.as_ref()?;
    let collects =
        |name: &str| name.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ') == MountStep::FREE_BLOCKS;
    Some(mount.steps.iter().filter(|step| !collects(&step.name)).map(|step| step.seconds).sum())
}

/// What [`recovery_seconds`] leaves out, and how much that is.
pub fn collections_left_out(runs: &[Run]) -> Option<String> {
    let each = runs.iter().filter_map(|run| {
        let left_out = run.result.mount.as_ref()?.seconds - recovery_seconds(run)?;
        let x = if run.experiment.x > 0.0 { format!(" at {}", gib(run.experiment.x)) } else { String::new() };
        (left_out > 0.0).then(|| format!("{}{x} {left_out:.3} s", run.experiment.series))
    });
    let each: Vec<_> = each.collect();
    (!each.is_empty()).then(|| {
        format!(
            "recovery is without collections until enough blocks are free, which the next write would do otherwise and whose \
             number depends on when power is cut: {}",
            each.join(", ")
        )
    })
}

/// The device of a run in the terms of the formulas.
pub fn model_of(spec: &RunSpec) -> model::Device {
    let (g, gecko) = (&spec.device.geometry, spec.config.gecko());
    let pages_per_block = u64::from(g.pages_per_block());
    let partitions = match gecko.partitions {
        0 => model::Device::best_partitions(pages_per_block),
        given => u64::from(given),
    };
    model::Device {
        blocks: u64::from(g.blocks()),
        pages_per_block,
        page_bytes: u64::from(g.page_bytes()),
        logical_ratio: f64::from(spec.device.logical_pages) / f64::from(g.pages()),
        cache_entries: u64::from(spec.config.cache_entries),
        partitions,
        size_ratio: u64::from(gecko.size_ratio),
        dirty_ratio: model::Device::PAPER.dirty_ratio,
    }
}

/// A run of Logarithmic Gecko under uniform writes; `tune` changes what is to differ.
pub fn gecko_run(
    lab: &Lab,
    device: &DevicePlan,
    series: &str,
    x: f64,
    tune: impl FnOnce(&mut RunSpec),
) -> Result<Experiment, SimError> {
    let mut spec = lab.uniform(GECKO, device)?;
    tune(&mut spec);
    Ok(Experiment { series: series.to_owned(), x, spec })
}

/// Device and workload of these runs, in sentences.
pub fn setup(lab: &Lab, runs: &[Run]) -> Vec<String> {
    let Some(largest) = runs.iter().max_by_key(|run| run.result.geometry.physical_pages) else { return Vec::new() };
    let g = &largest.result.geometry;
    let bytes = u64::from(g.physical_pages) * u64::from(g.page_bytes);
    vec![
        format!(
            "device {} at {} of its capacity: up to {} of {} pages of {} B a block, {:.0}% of it visible, {} cached \
             mapping entries",
            largest.result.device,
            share(lab.scale),
            gib(bytes as f64),
            g.pages_per_block,
            g.page_bytes,
            100.0 * f64::from(g.logical_pages) / f64::from(g.physical_pages),
            largest.experiment.spec.config.cache_entries,
        ),
        format!(
            "workload: {}; {}, then measured over {} writes; seed {}; every page checked at the end",
            largest.result.workload,
            ageing(&largest.experiment.spec.precondition, runs),
            largest.result.host.writes,
            lab.seed
        ),
        format!(
            "write-amplification is i_writes + i_reads / δ per page that the host writes, δ = {}; a spare area read \
             counts 1/32 of a page read",
            largest.result.write_amplification.delta
        ),
    ]
}

/// How devices were aged, and which of them were not steady then.
fn ageing(mode: &PreconditionMode, runs: &[Run]) -> String {
    let PreconditionMode::Steady(options) = mode else { return "on a new device".to_owned() };
    let first = match options.first {
        First::Fill(_) => "filled",
        First::Aged => "filled as long random writing leaves a device by the cleaning equation",
    };
    let restless = runs.iter().filter(|run| !run.result.precondition.steady);
    let restless: Vec<_> = restless.map(|run| run.experiment.series.as_str()).collect();
    let but = if restless.is_empty() { String::new() } else { format!(" (never so: {})", restless.join(", ")) };
    format!(
        "{first}, overwritten until write-amplification was the same to {}% in {} windows of {} times the logical pages{but}",
        options.tolerance * 100.0,
        options.agree,
        options.window
    )
}

/// A bar for each run, its parts the groups of its write-amplification.
pub fn amplification_bars(runs: &[Run]) -> Vec<Bar> {
    let parts = |run: &Run| Group::ALL.map(|group| Part::new(group.name(), amplification(&run.result, group)));
    runs.iter().map(|run| Bar { label: run.experiment.series.clone(), parts: parts(run).into() }).collect()
}
