//! A run in parts: a device is aged once and then measured several times, each from where the one
//! before has ended.
//!
//! Ageing is that of [`crate::run()`]. Every part has requests of its own, or the later would write
//! pages in the order in which they were just written; a recorded trace begins anew.

use crate::error::SimError;
use crate::host::Host;
use crate::progress::{Progress, Reporter};
use crate::result::{MountResult, PreconditionResult, RunResult};
use crate::run;
use crate::spec::{RunSpec, TimingMode};
use nand::sim::SimNand;

/// An FTL on an aged device.
pub struct Parts {
    host: Host<SimNand>,
    aged: PreconditionResult,
    spec: RunSpec,
    done: u64,
}

impl Parts {
    /// Formats a device and ages it as `spec` says.
    ///
    /// # Errors
    /// As [`crate::run()`].
    pub fn age(spec: &RunSpec, progress: &mut dyn FnMut(Progress)) -> Result<Self, SimError> {
        let (host, aged) = run::aged(spec, &run::context(spec), &mut Reporter::new(progress))?;
        Ok(Self { host, aged, spec: spec.clone(), done: 0 })
    }

    /// Measures so many page writes, or one trace, with such timing.
    ///
    /// # Errors
    /// As [`crate::run()`].
    pub fn measure(
        &mut self,
        timing: TimingMode,
        writes: u64,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<RunResult, SimError> {
        self.done += 1;
        let seed = self.spec.seed.wrapping_add(self.done.wrapping_mul(PART_SEED));
        let spec = RunSpec { timing, writes, seed, ..self.spec.clone() };
        run::part(&spec, &mut self.host, self.aged.clone(), &mut Reporter::new(progress))
    }

    /// Cuts power and mounts, so often, and writes so many pages before each cut. An FTL that keeps
    /// completed writes only after a flush is flushed before.
    ///
    /// # Errors
    /// As [`crate::run()`] with [`RunSpec::power_cut`].
    pub fn power_cuts(mut self, cuts: u32, writes: u64) -> Result<Vec<MountResult>, SimError> {
        let mut mounts = Vec::new();
        for _ in 0..cuts {
            self.measure(TimingMode::None, writes, &mut |_| ())?;
            let (host, mount) = run::mounted(&self.spec, self.host)?;
            self.host = host;
            mounts.push(mount);
        }
        Ok(mounts)
    }
}

/// What tells the seeds of parts apart.
const PART_SEED: u64 = 0x9E37_79B9_7F4A_7C15;
