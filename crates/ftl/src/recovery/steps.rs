//! The steps of a mount, each counted.

use crate::contract::{MountReport, MountStep};
use crate::flash::{Counts, Flash};
use alloc::vec::Vec;
use nand::Nand;

/// The steps done so far, and the counts when the last one ended.
pub struct Steps {
    done: Vec<MountStep>,
    before: Counts,
}

impl Steps {
    /// A mount begins.
    pub(crate) fn begin<N: Nand>(flash: &Flash<N>) -> Self {
        Self { done: Vec::new(), before: *flash.counts() }
    }

    /// A step has ended.
    pub(crate) fn end<N: Nand>(&mut self, name: &'static str, flash: &Flash<N>) {
        let now = *flash.counts();
        debug_assert!(self.done.iter().all(|step| step.name != name), "step {name} is done twice");
        self.done.push(MountStep { name, ops: now.since(&self.before).total() });
        self.before = now;
    }

    /// The report of a mount that ends with a disk that can be written.
    pub(crate) fn report(self, unreadable_pages: u64, rebuilt_entries: u64) -> MountReport {
        MountReport { steps: self.done, unreadable_pages, rebuilt_entries, read_only: None }
    }
}
