//! Sections of a strand, whose branches run together.

use super::{Machine, Step, Task};
use ftl::OpKind;

impl Step {
    /// Whether it is of the same branch as another of its section.
    fn goes_on(&self, before: &Self) -> bool {
        self.op.branch == before.op.branch
    }
}

impl Machine {
    /// Starts each branch of the section that a strand has come to.
    pub(super) fn start_section(&mut self, id: u32) {
        let strand = &mut self.strands[id as usize];
        let first = strand.next;
        let section = strand.steps[first].op.branch.section;
        let count = strand.steps[first..].iter().take_while(|step| step.op.branch.section == section).count();
        strand.next = first + count;
        strand.running = count as u32;
        strand.section = first..strand.next;
        strand.first_copy = first;
        debug_assert!(strand.held.is_empty(), "operations of the section before wait");
        self.pass_copies(id);
        for at in first..first + count {
            let steps = &self.strands[id as usize].steps;
            if at == first || !steps[at].goes_on(&steps[at - 1]) {
                self.reach(id, at);
            }
        }
    }

    /// Finds the first copy of the section that has not ended.
    fn pass_copies(&mut self, id: u32) {
        let strand = &mut self.strands[id as usize];
        let (at, end) = (strand.first_copy, strand.section.end);
        let waits = |step: &Step| step.op.kind == OpKind::Copy && !step.ended;
        strand.first_copy = strand.steps[at..end].iter().position(waits).map_or(end, |count| at + count);
    }

    /// Starts an operation before which all of its branch has ended, unless it waits for another
    /// branch.
    fn reach(&mut self, id: u32, at: usize) {
        if self.waits_for_branch(id, at) {
            self.strands[id as usize].held.push(at as u32);
        } else {
            let task = Task { at: at as u32, ..self.task(id, at) };
            self.issue(task);
        }
    }

    fn waits_for_branch(&self, id: u32, at: usize) -> bool {
        let strand = &self.strands[id as usize];
        let op = strand.steps[at].op;
        let read = match op.kind {
            OpKind::Read | OpKind::SpareRead => op.page,
            OpKind::Copy => op.from,
            OpKind::Program | OpKind::Flags | OpKind::Erase => return strand.first_copy < at,
        };
        let programs =
            |step: &Step| !step.ended && step.op.page == read && matches!(step.op.kind, OpKind::Program | OpKind::Copy);
        strand.steps[strand.section.start..at].iter().any(programs)
    }

    /// An operation of a section has ended, and was not its last: lets go what waited for it.
    pub(super) fn branch_goes_on(&mut self, id: u32, at: usize) {
        let strand = &mut self.strands[id as usize];
        strand.steps[at].ended = true;
        if strand.first_copy == at {
            self.pass_copies(id);
        }
        let strand = &mut self.strands[id as usize];
        let mut reached = core::mem::take(&mut strand.held);
        let next = at + 1;
        if next < strand.section.end && strand.steps[next].goes_on(&strand.steps[at]) {
            reached.push(next as u32);
            reached.sort_unstable();
        }
        reached.into_iter().for_each(|at| self.reach(id, at as usize));
    }
}
