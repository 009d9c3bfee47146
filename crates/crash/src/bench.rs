//! An FTL on its device, as all scenarios of a case have it.

use crate::case::Case;
use crate::explorer::Line;
use crate::rng::Rng;
use crate::shape::LIMIT;
use crate::stamps::Stamps;
use crate::tap::Tapped;
use crate::trail::Trail;
use crate::workload::Step;
use crate::{Device, Fault, Shared, faults};
use ftl::ftls::{Durability, Entry, Mount};
use ftl::{Config, Ftl, FtlError};
use nand::{Faulty, Lpn, SimNand};
use table::AnyBytes;

/// What stays the same over all lines of a case.
pub(crate) struct Bench<'a> {
    pub(crate) entry: &'a Entry<AnyBytes>,
    pub(crate) mount: Mount<AnyBytes>,
    pub(crate) case: &'a Case,
    pub(crate) config: Config,
    pub(crate) steps: Vec<Step>,
    /// What the FTL did on every device of the case.
    pub(crate) trail: Trail,
}

impl<'a> Bench<'a> {
    /// `None` if the FTL cannot be mounted.
    pub(crate) fn new(entry: &'a Entry<AnyBytes>, case: &'a Case) -> Option<Self> {
        let config = Config { battery: case.battery, ..case.shape().config(case.logical_pages) };
        Some(Self { entry, mount: entry.mount?, case, config, steps: case.steps(), trail: Trail::default() })
    }

    /// A device that holds what a loss of power left.
    pub(crate) fn device(&self, flash: Faulty<SimNand>) -> Device {
        let mut device = Tapped::new(flash, LIMIT);
        device.note_to(&self.trail);
        Shared::new(device)
    }

    pub(crate) fn durable(&self) -> Durability {
        self.entry.info.durable
    }

    /// Whether a battery saves what the FTL holds in RAM.
    pub(crate) fn has_battery(&self) -> bool {
        self.durable() == Durability::Battery && self.case.battery
    }

    /// Has the FTL save what it holds in RAM, if there is a battery for it; the device must be
    /// powered.
    pub(crate) fn save(&self, ftl: &mut dyn Ftl<AnyBytes>) -> Result<(), String> {
        if !self.has_battery() {
            return Ok(());
        }
        let before = *ftl.flash().counts();
        ftl.power_failing().map_err(|error| format!("saving while the battery lasts: {error}"))?;
        let pages = ftl.flash().counts().since(&before).total().programs;
        let failing = faults::fails(self.case.faults, self.case.seed, Fault::Programs);
        if pages > u64::from(ftl.battery_pages()) && !failing {
            return Err(format!("{pages} pages programmed while the battery lasts, {} promised", ftl.battery_pages()));
        }
        Ok(())
    }

    /// A fresh disk, as old as the shape wants it.
    pub(crate) fn format(&self) -> Result<Line, String> {
        let geometry = self.case.shape().geometry().map_err(|e| e.to_string())?;
        let plan = faults::plan(self.case.faults, self.case.seed, &geometry, self.case.shape().pairing);
        let (count_reads, odd_failures) = (self.case.is_harsh(), self.case.is_harsh());
        let plan = nand::FaultPlan { count_reads, odd_failures, ..plan };
        let device = self.case.shape().device(plan).map_err(|e| e.to_string())?;
        device.get().note_to(&self.trail);
        if count_reads {
            faults::litter(device.get().flash(), self.case.seed);
        }
        let formatted = (self.entry.format)(device.flash_of_bytes(), &self.config);
        let ftl = formatted.map_err(|error| format!("formatting: {error}"))?;
        device.get().flash().plan_mut().failing_blocks =
            faults::worn_blocks(self.case.faults, self.case.seed, &geometry);
        let mut line = Line::new(device, ftl, self.case.model(self.durable()));
        self.age(&mut line).map_err(|error| format!("ageing: {error}"))?;
        Ok(line)
    }

    /// Writes what the shape wants to have been written before anything is watched.
    fn age(&self, line: &mut Line) -> Result<(), FtlError> {
        let mut rng = Rng::new(self.case.seed, 0x4147);
        for _ in 0..self.case.shape().age {
            let lpn = rng.below(self.case.logical_pages);
            let stamp = line.model.begin_write(lpn);
            line.ftl.write_stamp(Lpn(lpn), stamp)?;
            line.model.complete_write(lpn);
        }
        Ok(())
    }
}
