//! Where figures are made: devices and runs at a scale.

use nand::geometry::Dimensions;
use nand::profiles;
use sim::{DevicePlan, First, PreconditionMode, RunSpec, SimError, SteadyOptions, WorkloadSpec};
use std::path::PathBuf;

/// Where figures are made.
#[derive(Clone, Debug)]
pub struct Lab {
    /// Size of the simulated device over that of the paper, more than 0 and at most 1.
    pub scale: f64,
    /// All randomness follows from it.
    pub seed: u64,
    /// A folder of recorded traces.
    pub traces: Option<PathBuf>,
    /// Runs at once, at most.
    pub jobs: usize,
    /// Figures that measure by themselves take the time of the computer, not a simulated one.
    pub real_time: bool,
}

/// The scale that takes seconds.
pub const DEFAULT_SCALE: f64 = 1.0 / 256.0;

/// Logical pages from which on a run under uniform writes is shorter for its device: 16 GiB of 4
/// KiB pages.
const MANY_PAGES: u32 = 1 << 22;

impl Default for Lab {
    fn default() -> Self {
        Self { scale: DEFAULT_SCALE, seed: 1, traces: None, jobs: 1, real_time: false }
    }
}

impl Lab {
    /// A device of this profile with `share` of its blocks.
    ///
    /// # Errors
    /// [`SimError::BadSpec`] if there is no such profile, or as [`DevicePlan::new`].
    pub fn device(&self, profile: &str, shape: Shape) -> Result<DevicePlan, SimError> {
        let found = profiles::find(profile).ok_or_else(|| SimError::BadSpec {
            what: "device profile",
            reason: format!("there is no profile `{profile}`"),
        })?;
        let d = found.geometry;
        let pages_per_block = shape.pages_per_block.unwrap_or(d.pages_per_block);
        let full = u64::from(d.blocks) * u64::from(d.pages_per_block) * u64::from(d.page_bytes);
        let dimensions = Dimensions { pages_per_block, ..d };
        let ratio = shape.logical_ratio.unwrap_or(found.default_logical_ratio);
        let bytes = ((full as f64 * shape.share) as u64).max(1);
        DevicePlan::new(profile, dimensions, found.capabilities, found.timing, Some(bytes), ratio)
    }

    /// A run of this FTL under uniform random writes of a page each: filled, overwritten until
    /// steady, then measured over half as many writes as there are logical pages. On a device of
    /// many pages chance has little say: a tenth is enough there, and two windows of a twentieth
    /// that agree, begun from the state that such writes lead to.
    ///
    /// # Errors
    /// As [`WorkloadSpec::synthetic`].
    pub fn uniform(&self, ftl: &str, device: &DevicePlan) -> Result<RunSpec, SimError> {
        let mut spec = RunSpec::new(ftl, device.clone(), WorkloadSpec::synthetic("uniform")?);
        spec.seed = self.seed;
        spec.writes = (u64::from(device.logical_pages) / 2).max(1);
        if device.logical_pages >= MANY_PAGES {
            let steady = SteadyOptions { first: First::Aged, window: 0.05, agree: 2, ..SteadyOptions::default() };
            spec.precondition = PreconditionMode::Steady(steady);
            spec.writes = u64::from(device.logical_pages) / 10;
        }
        Ok(spec)
    }
}

/// How a device differs from its profile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Its capacity over the profile's.
    pub share: f64,
    /// Pages in a block, if others than the profile's; the capacity stays.
    pub pages_per_block: Option<u32>,
    /// Logical pages for each physical page, if others than the profile's.
    pub logical_ratio: Option<f64>,
}

impl Shape {
    /// The profile's shape at this share of its capacity.
    #[must_use]
    pub const fn share(share: f64) -> Self {
        Self { share, pages_per_block: None, logical_ratio: None }
    }
}
