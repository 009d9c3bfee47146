//! What a die and a channel remember.

use nand::BlockId;
use std::collections::VecDeque;

/// What a die does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Read,
    SpareRead,
    Program,
    Erase,
    /// Program of flags.
    Flags,
    /// Read and program inside one plane.
    CopyBack,
}

impl Action {
    pub(super) const fn reads(self) -> bool {
        matches!(self, Self::Read | Self::SpareRead)
    }

    pub(super) const fn programs(self) -> bool {
        matches!(self, Self::Program | Self::Flags | Self::CopyBack)
    }

    /// Whether a transfer comes before the array time.
    pub(super) const fn sends(self) -> bool {
        matches!(self, Self::Program | Self::Flags)
    }
}

/// When a die comes to a task that waits there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Before the others, as long as it does not keep them waiting for too long.
    First,
    InOrder,
    /// When nothing else waits.
    Last,
}

/// One operation on one die.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) strand: u32,
    /// The operation within its strand.
    pub(super) at: u32,
    pub(super) block: BlockId,
    /// Of a program, the page within its block.
    pub(super) offset: u32,
    /// Of a read and of either half of a copy, the page read within its block.
    pub(super) read_offset: u32,
    /// Erases that the block to be programmed must have behind it.
    pub(super) epoch: u32,
    pub(super) action: Action,
    /// Of the reading half of a copy, the block to program next.
    pub(super) copy_to: BlockId,
    /// Of either half of a copy, the block read.
    pub(super) copied_from: BlockId,
    /// Goes before what waits, and may interrupt what runs.
    pub(super) urgent: bool,
    /// A page that the host reads, of which a part may be enough.
    pub(super) of_host: bool,
}

impl Task {
    /// A read of a block.
    pub(super) const fn new(strand: u32, block: BlockId, epoch: u32) -> Self {
        Self {
            strand,
            at: 0,
            block,
            offset: 0,
            read_offset: 0,
            epoch,
            action: Action::Read,
            copy_to: BlockId::NONE,
            copied_from: BlockId::NONE,
            urgent: false,
            of_host: false,
        }
    }
}

/// What a die does at a time: an operation, and those that its other planes do with it.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) task: Task,
    others: Vec<Task>,
    /// Of the tasks, those of which the transfer to the die has ended.
    pub(super) sent: u32,
}

impl Job {
    pub(super) const fn alone(task: Task) -> Self {
        Self { task, others: Vec::new(), sent: 0 }
    }

    pub(super) const fn action(&self) -> Action {
        self.task.action
    }

    pub(super) fn tasks(&self) -> impl Iterator<Item = &Task> {
        core::iter::once(&self.task).chain(&self.others)
    }

    /// The task that is transferred next, or is being transferred.
    pub(super) fn to_send(&self) -> Option<&Task> {
        self.tasks().nth(self.sent as usize)
    }
}

/// What a die comes to next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    Task(Task),
    /// Go on with what was interrupted.
    Suspended,
    Nothing,
}

#[derive(Clone, Debug)]
pub(super) struct Die {
    pub(super) channel: u32,
    pub(super) current: Option<Job>,
    /// When the array phase of the current job ends, while in it.
    pub(super) array_end_ns: Option<u64>,
    /// The one event that is meant for this die; others were overtaken by a suspension.
    pub(super) event_seq: u64,
    /// An interrupted job and the nanoseconds it has left.
    pub(super) suspended: Option<(Job, u64)>,
    /// The job after the current one, transferred while that is in its array phase.
    pub(super) ahead: Option<Job>,
    /// A read before the current job, of which the array phase is over.
    pub(super) leaving: Option<Task>,
    first: VecDeque<Task>,
    in_order: VecDeque<Task>,
    last: VecDeque<Task>,
    /// Tasks that went first since another was started.
    pub(super) overtakes: u32,
    pub(super) busy_since_ns: u64,
    /// Nanoseconds that it was held, up to when it was free last.
    pub(super) busy_before_ns: u64,
}

impl Die {
    pub(super) fn new(channel: u32) -> Self {
        Self {
            channel,
            current: None,
            array_end_ns: None,
            event_seq: 0,
            suspended: None,
            ahead: None,
            leaving: None,
            first: VecDeque::new(),
            in_order: VecDeque::new(),
            last: VecDeque::new(),
            overtakes: 0,
            busy_since_ns: 0,
            busy_before_ns: 0,
        }
    }

    /// Whether it is held by nothing.
    pub(super) const fn is_idle(&self) -> bool {
        self.current.is_none() && self.leaving.is_none()
    }

    /// Nanoseconds that it was held until now.
    pub(super) fn busy_ns(&self, now_ns: u64) -> u64 {
        let under_way = if self.is_idle() { 0 } else { now_ns - self.busy_since_ns };
        self.busy_before_ns + under_way
    }

    pub(super) fn enqueue(&mut self, task: Task, turn: Turn) {
        match turn {
            Turn::First => self.first.push_back(task),
            Turn::InOrder => self.in_order.push_back(task),
            Turn::Last => self.last.push_back(task),
        }
    }

    /// Puts what waits of some strands behind what goes first.
    pub(super) fn hurry(&mut self, is_hurried: impl Fn(u32) -> bool) {
        for queue in [&mut self.in_order, &mut self.last] {
            let first = &mut self.first;
            queue.retain(|task| {
                let stays = !is_hurried(task.strand);
                if !stays {
                    first.push_back(*task);
                }
                stays
            });
        }
    }

    /// What it comes to next, if so many tasks may go first while others wait.
    pub(super) fn next(&self, max_overtakes: u32) -> Next {
        let first = self.first.front().filter(|_| !self.others_wait() || self.overtakes < max_overtakes);
        match first {
            Some(task) => Next::Task(*task),
            None if self.suspended.is_some() => Next::Suspended,
            None => self.in_order.front().or_else(|| self.last.front()).map_or(Next::Nothing, |task| Next::Task(*task)),
        }
    }

    /// Takes what [`Die::next`] answered out of its queue.
    pub(super) fn take(&mut self, max_overtakes: u32) {
        let first = !self.first.is_empty() && (!self.others_wait() || self.overtakes < max_overtakes);
        let queue = match (first, self.in_order.is_empty()) {
            (true, _) => &mut self.first,
            (false, false) => &mut self.in_order,
            (false, true) => &mut self.last,
        };
        queue.pop_front();
    }

    /// A job of a task and of those that wait here and go with it, by what is chosen so far.
    pub(super) fn job(&mut self, task: Task, goes_with: impl Fn(&[Task], &Task) -> bool) -> Job {
        let mut others = Vec::new();
        for queue in [&mut self.first, &mut self.in_order, &mut self.last] {
            queue.retain(|waiting| {
                let goes = goes_with(&others, waiting);
                if goes {
                    others.push(*waiting);
                }
                !goes
            });
        }
        Job { others, ..Job::alone(task) }
    }

    /// Tasks that it does, or that wait and are not the last.
    pub(super) fn before_last(&self, of_request: impl Fn(&Task) -> bool) -> u32 {
        let jobs = self.current.iter().chain(&self.ahead).flat_map(Job::tasks);
        let under_way = jobs.chain(&self.leaving).filter(|task| of_request(task)).count();
        (under_way + self.first.len() + self.in_order.len()) as u32
    }

    /// Whether something that may be overtaken is waiting, or interrupted.
    pub(super) fn others_wait(&self) -> bool {
        self.suspended.is_some() || !self.in_order.is_empty() || !self.last.is_empty()
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Channel {
    /// The die that holds it.
    pub(super) user: Option<u32>,
    pub(super) waiting: VecDeque<u32>,
    pub(super) busy_ns: u64,
}
