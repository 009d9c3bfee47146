//! A run request by request, with every flash operation of each: for whoever watches it.
//!
//! What is run, and how the device is aged before, is what [`crate::run()`] runs; nothing is
//! measured, and no time passes.

use crate::error::SimError;
use crate::host::{Host, Span};
use crate::progress::{Progress, Reporter};
use crate::result::{HostResult, MountResult};
use crate::run;
use crate::source::{Request, Source};
use crate::spec::RunSpec;
use ftl::{Ftl, Op};
use nand::sim::SimNand;
use nand::{Nand, Ppn, Spare};

/// What came of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The request.
    pub request: Request,
    /// The logical pages that it concerns; none for a flush.
    pub span: Option<Span>,
    /// Every flash operation that it caused, in order.
    pub ops: Vec<Op>,
}

/// An FTL on a simulated device, and the requests that it is given.
pub struct Stepper {
    host: Host<SimNand>,
    source: Box<dyn Source>,
}

impl Stepper {
    /// Formats a device and ages it as `spec` says.
    ///
    /// # Errors
    /// As [`crate::run()`]; [`SimError::BadSpec`] if a placement policy has to know the future.
    pub fn new(spec: &RunSpec, progress: &mut dyn FnMut(Progress)) -> Result<Self, SimError> {
        let mut report = Reporter::new(progress);
        let context = run::context(spec);
        let (mut host, _) = run::aged(spec, &context, &mut report)?;
        if host.is_foretold() {
            let policy = spec.config.placement.unwrap_or_default();
            let reason = format!("{policy} has to know every write before the first; choose another");
            return Err(SimError::BadSpec { what: "placement", reason });
        }
        host.begin("the steps");
        host.ftl_mut().flash_mut().set_logging(true);
        let source = (spec.workload.make)(&context)?;
        Ok(Self { host, source })
    }

    /// Does the next request; none if there are no more.
    ///
    /// # Errors
    /// As [`crate::run()`]. The rest of the request is not done, and the next one can be.
    pub fn step(&mut self) -> Result<Option<Step>, SimError> {
        let mut request = [Request::default()];
        match self.source.fill(&mut request) {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            Err(error) => {
                return Err(SimError::Workload { workload: self.source.describe(), reason: error.to_string() });
            }
        }
        let span = self.host.span(&request[0])?;
        if let Err(error) = self.host.apply(&request, u64::MAX) {
            self.host.give_up();
            return Err(error);
        }
        let ops = self.host.ftl_mut().flash_mut().drain_log().collect();
        Ok(Some(Step { request: request[0], span, ops }))
    }

    /// Cuts power between two requests and mounts. An FTL that keeps completed writes only after a
    /// flush is flushed before.
    ///
    /// # Errors
    /// As [`crate::run()`] with [`RunSpec::power_cut`].
    pub fn power_cycle(self, spec: &RunSpec) -> Result<(Self, MountResult), SimError> {
        let Self { host, source } = self;
        let (mut host, report) = run::mounted(spec, host)?;
        host.ftl_mut().flash_mut().drain_log().for_each(drop);
        Ok((Self { host, source }, report))
    }

    /// The FTL, to look into.
    #[must_use]
    pub fn ftl(&self) -> &dyn Ftl<SimNand> {
        self.host.ftl()
    }

    /// What the host has done since the device was aged.
    #[must_use]
    pub const fn tally(&self) -> &HostResult {
        self.host.tally()
    }

    /// What is written beside a page, around the FTL; none if the page is erased or unreadable.
    pub fn spare(&mut self, ppn: Ppn) -> Option<Spare> {
        self.host.ftl_mut().flash_mut().nand_mut().read_spare(ppn).ok().flatten()
    }
}
