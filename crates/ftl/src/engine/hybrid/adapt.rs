//! When the target is looked at, and what decides about it.

use super::HybridFtl;
use super::cost::CostModel;
use super::ghost::SIZES;
use super::steer::{LEAST_PERIOD, Period, Rated};
use crate::flash::Purpose;
use nand::Nand;

impl<N: Nand> HybridFtl<N> {
    /// Writes between two looks at the target: the paper's N_D, or enough to measure by.
    pub(super) fn period(&self) -> u32 {
        let least = if self.steering.is_some() { LEAST_PERIOD } else { 1 };
        self.area.table.logical_blocks().max(least)
    }

    /// The time of all flash operations but reads of the host, µs.
    pub(super) fn flash_us(&self) -> f64 {
        let (counts, model) = (self.area.flash.counts(), CostModel::paper());
        let total = counts.total();
        let reads = total.reads - counts.of(Purpose::Host).reads;
        reads as f64 * (model.copy_us - model.program_us)
            + total.programs as f64 * model.program_us
            + total.erases as f64 * model.erase_us
    }

    /// Counts a write of the host, and considers the target when its time has come.
    #[inline]
    pub(super) fn adapt(&mut self) {
        self.countdown -= 1;
        if self.countdown == 0 {
            self.consider_target();
        }
    }

    fn consider_target(&mut self) {
        let writes = self.period();
        self.countdown = writes;
        let spent_us = self.flash_us();
        let write_us = (spent_us - self.spent_us) / f64::from(writes);
        self.spent_us = spent_us;
        let Some(ghosts) = &mut self.ghosts else { return };
        if let Some(learned) = self.paged.learned() {
            ghosts.bend(learned.bend());
        }
        if let Some(steering) = &mut self.steering {
            let mut rated = [Rated::default(); SIZES];
            let sizes = ghosts.rate(self.most, &mut rated);
            self.target = steering.decide(Period { writes, fused: self.fused.len(), write_us }, &rated[..sizes]);
        } else if let Some(best) = ghosts.best(self.most) {
            let way = best.abs_diff(self.target).div_ceil(4);
            self.target = if best > self.target { self.target + way } else { self.target - way };
        }
        debug_assert!(self.target <= self.most);
    }
}
