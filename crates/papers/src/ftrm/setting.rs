//! The device, the workloads and the cache of FTRM's figures.

use crate::lab::{Lab, Shape};
use sim::{DevicePlan, SimError};

pub(super) const PROFILE: &str = "ftrm-qlc";

/// Shares of the profile that are measured; the default scale takes 1/64.
const SHARES: std::ops::RangeInclusive<f64> = 1.0 / 512.0..=1.0;

/// Share of the mapping entries that the cache holds, as in the paper's section 6.
pub(super) const CACHED: f64 = 0.01;

/// The paper's workloads, fitted to what is published of them.
pub(super) const LOADS: [&str; 4] = ["msnfs", "financial1", "radius", "ts0"];

/// The paper's device at a scale.
///
/// # Errors
/// As [`Lab::device`].
pub(super) fn device(lab: &Lab) -> Result<DevicePlan, SimError> {
    let share = (4.0 * lab.scale).clamp(*SHARES.start(), *SHARES.end());
    lab.device(PROFILE, Shape::share(share))
}
