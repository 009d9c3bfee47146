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

#[cfg(test)]
mod tests {
    use super::super::device::device;
    use super::*;
    use crate::flash::Purpose;
    use nand::Ppn;

    #[test]
    fn each_step_has_what_was_done_since_the_last() {
        let mut flash = device(&[], &[]);
        let reads = |flash: &mut Flash<_>, pages: u32| {
            (0..pages).map(Ppn).for_each(|ppn| assert_eq!(flash.read_spare(Purpose::Recovery, ppn), Ok(None)));
        };
        reads(&mut flash, 5);
        let mut steps = Steps::begin(&flash);
        reads(&mut flash, 3);
        steps.end("first", &flash);
        steps.end("nothing", &flash);
        reads(&mut flash, 2);
        steps.end("last", &flash);
        let report = steps.report(1, 7);
        let counted: Vec<_> = report.steps.iter().map(|step| (step.name, step.ops.spare_reads)).collect();
        assert_eq!(counted, [("first", 3), ("nothing", 0), ("last", 2)]);
        assert_eq!((report.unreadable_pages, report.rebuilt_entries, report.read_only), (1, 7, None));
    }
}
