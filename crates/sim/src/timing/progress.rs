//! What a die does from one event to the next.

use super::unit::{Action, Job, Next, Task, Turn};
use super::{Event, Machine};
use nand::BlockId;
use std::cmp::Reverse;

impl Machine {
    /// Has a die begin a job with a task; nothing holds it but a read that leaves it.
    pub(super) fn start(&mut self, index: u32, task: Task) {
        let job = self.job(index, task);
        let sends = job.action().sends() && self.transfer(&job.task) > 0;
        let ns = self.times.array(&job.task);
        let die = &mut self.dies[index as usize];
        debug_assert!(die.current.is_none() && die.ahead.is_none(), "die {index} is busy");
        die.current = Some(job);
        if sends { self.request_channel(index) } else { self.start_array(index, ns) }
    }

    /// The job of a task that a die has come to, with what other planes can do beside it.
    fn job(&mut self, index: u32, task: Task) -> Job {
        let turn = self.strands[task.strand as usize].turn(task.urgent);
        let (geometry, multi_plane) = (self.geometry, self.multi_plane);
        let die = &mut self.dies[index as usize];
        if turn != Turn::First {
            die.overtakes = 0;
        } else if die.others_wait() {
            die.overtakes += 1;
        }
        let plane = |task: &Task| geometry.plane_of(task.block);
        let goes_with = |others: &[Task], waiting: &Task| {
            waiting.action == task.action
                && (task.action == Action::Erase || waiting.offset == task.offset)
                && plane(waiting) != plane(&task)
                && others.iter().all(|other| plane(other) != plane(waiting))
        };
        if multi_plane && matches!(task.action, Action::Program | Action::Erase) {
            die.job(task, goes_with)
        } else {
            Job::alone(task)
        }
    }

    fn start_array(&mut self, index: u32, ns: u64) {
        let at_ns = self.now_ns + ns;
        let seq = self.schedule(at_ns, index);
        let die = &mut self.dies[index as usize];
        die.event_seq = seq;
        die.array_end_ns = Some(at_ns);
        self.send_ahead(index);
    }

    fn schedule(&mut self, at_ns: u64, unit: u32) -> u64 {
        self.event_seq += 1;
        self.events.push(Reverse(Event { at_ns, seq: self.event_seq, unit }));
        self.event_seq
    }

    /// While the array of a die programs a page, transfers what is programmed next.
    pub(super) fn send_ahead(&mut self, index: u32) {
        let die = &self.dies[index as usize];
        let programs = die.current.as_ref().is_some_and(|job| job.action() == Action::Program);
        if !self.times.timing.cache_programs || !programs || die.array_end_ns.is_none() || die.ahead.is_some() {
            return;
        }
        match die.next(self.max_overtakes) {
            Next::Task(task) if task.action == Action::Program && self.transfer(&task) > 0 => {
                self.dies[index as usize].take(self.max_overtakes);
                let job = self.job(index, task);
                self.dies[index as usize].ahead = Some(job);
                self.request_channel(index);
            }
            Next::Task(_) | Next::Suspended | Next::Nothing => {}
        }
    }

    /// While a die only transfers a page that it read, begins to read what is read next.
    pub(super) fn read_ahead(&mut self, index: u32) {
        let die = &self.dies[index as usize];
        if die.leaving.is_none() || die.current.is_some() {
            return;
        }
        match die.next(self.max_overtakes) {
            Next::Task(task) if task.action.reads() => {
                self.dies[index as usize].take(self.max_overtakes);
                self.start(index, task);
            }
            Next::Task(_) | Next::Suspended | Next::Nothing => {}
        }
    }

    fn request_channel(&mut self, die: u32) {
        let index = self.dies[die as usize].channel;
        let channel = &mut self.channels[index as usize];
        if channel.user.is_some() {
            channel.waiting.push_back(die);
        } else {
            self.start_transfer(index, die);
        }
    }

    /// What a die has the channel for. What it transfers beside its array comes before the rest.
    fn transferred(&self, die: u32) -> Option<&Task> {
        let die = &self.dies[die as usize];
        let job = die.ahead.as_ref().or(die.current.as_ref());
        die.leaving.as_ref().or_else(|| match job {
            Some(job) if job.action().sends() => job.to_send(),
            Some(job) => Some(&job.task),
            None => None,
        })
    }

    fn start_transfer(&mut self, index: u32, die: u32) {
        let Some(task) = self.transferred(die) else { return };
        let ns = self.transfer(task);
        let channel = &mut self.channels[index as usize];
        channel.user = Some(die);
        channel.busy_ns += ns;
        self.schedule(self.now_ns + ns, self.dies.len() as u32 + index);
    }

    pub(super) fn transfer_ended(&mut self, index: u32) {
        let channel = &mut self.channels[index as usize];
        let user = channel.user.take();
        if let Some(next) = channel.waiting.pop_front() {
            self.start_transfer(index, next);
        }
        let Some(index) = user else { return };
        let die = &mut self.dies[index as usize];
        if let Some(task) = die.leaving.take() {
            self.read_left(index, task);
            return;
        }
        let in_array = die.ahead.is_some();
        let Some(job) = die.ahead.as_mut().or(die.current.as_mut()) else { return };
        if !job.action().sends() {
            self.job_ended(index);
            return;
        }
        job.sent += 1;
        let ns = self.times.array(&job.task);
        if job.to_send().is_some() {
            self.request_channel(index);
        } else if !in_array {
            self.start_array(index, ns);
        }
    }

    pub(super) fn array_ended(&mut self, index: u32) {
        self.dies[index as usize].array_end_ns = None;
        let die = &self.dies[index as usize];
        let Some(job) = &die.current else { return };
        if !job.action().reads() || self.transfer(&job.task) == 0 {
            self.job_ended(index);
        } else if !self.times.timing.cache_reads {
            self.request_channel(index);
        } else if die.leaving.is_none() {
            self.leave(index);
        }
    }

    /// A page that was read makes room in its die for the next.
    fn leave(&mut self, index: u32) {
        let die = &mut self.dies[index as usize];
        die.leaving = die.current.take().map(|job| job.task);
        self.request_channel(index);
        self.read_ahead(index);
    }

    /// A read has ended that the die no longer waited for.
    fn read_left(&mut self, index: u32, task: Task) {
        let die = &self.dies[index as usize];
        match &die.current {
            None => self.start_next(index),
            Some(_) if die.array_end_ns.is_none() => self.leave(index),
            Some(_) => {}
        }
        self.task_ended(index, task);
    }

    /// Frees the die for whatever waits there, then lets the strands of its tasks go on.
    fn job_ended(&mut self, index: u32) {
        let Some(job) = self.dies[index as usize].current.take() else { return };
        self.start_next(index);
        job.tasks().for_each(|task| self.task_ended(index, *task));
    }

    fn task_ended(&mut self, index: u32, task: Task) {
        if task.action.reads() {
            self.read_ended(index);
        }
        if task.action == Action::Erase {
            self.erase_ended(task.block);
        }
        if task.copy_to.is_some() {
            self.issue(Task { action: Action::Program, block: task.copy_to, copy_to: BlockId::NONE, ..task });
            return;
        }
        if task.copied_from.is_some() {
            self.copy_ended(task.strand, task.copied_from);
        }
        let strand = &mut self.strands[task.strand as usize];
        strand.running -= 1;
        if strand.running > 0 && !strand.section.is_empty() {
            self.branch_goes_on(task.strand, task.at as usize);
        } else if strand.running == 0 {
            self.advance(task.strand);
        }
    }

    fn start_next(&mut self, index: u32) {
        let die = &mut self.dies[index as usize];
        if let Some(job) = die.ahead.take() {
            let (ns, is_sent) = (self.times.array(&job.task), job.to_send().is_none());
            die.current = Some(job);
            if is_sent {
                self.start_array(index, ns);
            }
            return;
        }
        match die.next(self.max_overtakes) {
            Next::Task(task) => {
                die.take(self.max_overtakes);
                self.start(index, task);
            }
            Next::Suspended => {
                if let Some((job, remaining_ns)) = die.suspended.take() {
                    die.current = Some(job);
                    self.start_array(index, remaining_ns);
                }
            }
            Next::Nothing => {
                die.busy_before_ns += self.now_ns - die.busy_since_ns;
                self.serve_die(index);
            }
        }
    }

    pub(super) fn may_suspend(&self, index: u32) -> bool {
        let die = &self.dies[index as usize];
        self.suspend_ns.is_some()
            && die.suspended.is_none()
            && die.ahead.is_none()
            && die.array_end_ns.is_some()
            && die.overtakes < self.max_overtakes
            && die.current.as_ref().is_some_and(|job| !job.action().reads())
    }

    pub(super) fn suspend(&mut self, index: u32) {
        let die = &mut self.dies[index as usize];
        if let (Some(job), Some(end_ns)) = (die.current.take(), die.array_end_ns.take()) {
            die.suspended = Some((job, end_ns - self.now_ns + self.suspend_ns.unwrap_or(0)));
            die.event_seq = 0;
        }
    }
}
