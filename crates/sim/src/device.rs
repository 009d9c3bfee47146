//! What a run needs of a device beside the [`Nand`] contract.

use crate::spec::DevicePlan;
use nand::sim::SimNand;
use nand::{Nand, Stamp};

/// A simulated device that a run can make and look into.
pub trait Device: Nand<Payload = Stamp> + Sized + 'static {
    /// An erased one.
    fn create(plan: &DevicePlan) -> Self;

    /// How often each block was erased.
    fn erase_counts(&self) -> &[u32];

    /// Bytes of memory it takes now.
    fn memory_bytes(&self) -> u64;
}

impl Device for SimNand {
    fn create(plan: &DevicePlan) -> Self {
        Self::new(plan.geometry, plan.capabilities)
    }

    fn erase_counts(&self) -> &[u32] {
        Self::erase_counts(self)
    }

    fn memory_bytes(&self) -> u64 {
        Self::memory_bytes(self)
    }
}
