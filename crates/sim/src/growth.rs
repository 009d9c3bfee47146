//! Whether an FTL takes longer for a write the larger its device is.
//!
//! What a write takes of the computer's time should not depend on the size of the device, but for
//! what its memory costs. A structure that is searched from end to end shows here and nowhere else.

use crate::bench::TIMING;
use crate::error::SimError;
use crate::progress::Progress;
use crate::run::run;
use crate::spec::{DevicePlan, First, PreconditionMode, RunSpec, SteadyOptions, WorkloadSpec};
use ftl::ftls::Info;
use nand::Capabilities;
use nand::geometry::Dimensions;

/// Bytes of a page of the devices that are measured.
pub const PAGE_BYTES: u64 = 4096;

/// What an FTL does on a device of so many bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Raw capacity.
    pub capacity_bytes: u64,
    /// Host page writes per second of the computer's time.
    pub host_writes_per_s: f64,
    /// Programs per host write: shows that sizes are compared in the same state.
    pub programs_per_write: f64,
}

/// How many times the slowest of some rates goes into the fastest; 1 if there are none.
#[must_use]
pub fn spread(rates: &[Rate]) -> f64 {
    let all = || rates.iter().map(|rate| rate.host_writes_per_s);
    let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    if least > 0.0 && least.is_finite() { most / least } else { 1.0 }
}

/// Uniform random writes to a device of this size, of blocks of 128 pages of 4 KiB. An FTL that is
/// mapped by page sees 70% of it, any other 90%, and both are measured once they collect.
///
/// # Errors
/// [`SimError`], as a run has it; above all if the device is too small for the FTL.
pub fn measure(
    info: &Info,
    capacity_bytes: u64,
    writes: u64,
    progress: &mut dyn FnMut(Progress),
) -> Result<Rate, SimError> {
    let by_page = info.validity.is_some();
    let dimensions = Dimensions {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks: 1,
        pages_per_block: 128,
        page_bytes: PAGE_BYTES as u32,
        spare_bytes: 64,
    };
    let capabilities =
        Capabilities { program_order: info.program_order, spare_reprograms: info.flags, ..Capabilities::MODERN };
    let visible = if by_page { 0.7 } else { 0.9 };
    let device = DevicePlan::new("growth", dimensions, capabilities, TIMING, Some(capacity_bytes), visible)?;
    let mut spec = RunSpec::new(info.name, device, WorkloadSpec::synthetic("uniform")?);
    spec.writes = writes;
    spec.config = info.config(&spec.config);
    // What is left over is written full by as much again as there is of it.
    let (first, window) = if by_page { (First::Aged, 0.02) } else { (First::Fill(1.0), 0.15) };
    let steady = SteadyOptions { first, window, max_windows: 1, ..SteadyOptions::default() };
    spec.precondition = PreconditionMode::Steady(steady);
    let result = run(&spec, progress)?;
    Ok(Rate {
        capacity_bytes,
        host_writes_per_s: result.simulation.host_writes_per_s,
        programs_per_write: result.write_amplification.programs_per_write,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ftl_is_measured_in_the_same_state_at_two_sizes() {
        for info in ftl::ftls::infos() {
            let rates = [64 << 20, 128 << 20].map(|bytes| measure(info, bytes, 3000, &mut |_| {}).unwrap());
            let [small, large] = rates.map(|rate| rate.programs_per_write);
            // Log blocks are too few on a small device for merges like those of a large one.
            let alike = info.validity.is_none() || (0.5..2.0).contains(&(small / large));
            assert!(small > 1.0 && large > 1.0 && alike, "{}: {rates:?}", info.name);
            assert!(spread(&rates) >= 1.0);
        }
    }

    #[test]
    fn the_spread_is_the_fastest_over_the_slowest() {
        let rate = |host_writes_per_s| Rate { capacity_bytes: 1, host_writes_per_s, programs_per_write: 1.0 };
        assert!((spread(&[rate(3.0), rate(1.5), rate(2.0)]) - 2.0).abs() < 1e-12);
        assert!((spread(&[]) - 1.0).abs() < 1e-12);
    }
}
