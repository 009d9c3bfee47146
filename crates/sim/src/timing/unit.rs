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
            epoch,
            action: Action::Read,
            copy_to: BlockId::NONE,
            copied_from: BlockId::NONE,
            urgent: false,
            of_host: false,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Die {
    pub(super) channel: u32,
    pub(super) current: Option<Task>,
    /// When the array phase of the current task ends, while in it.
    pub(super) array_end_ns: Option<u64>,
    /// The one event that is meant for this die; others were overtaken by a suspension.
    pub(super) event_seq: u64,
    /// An interrupted task and the nanoseconds it has left.
    pub(super) suspended: Option<(Task, u64)>,
    pub(super) first: VecDeque<Task>,
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
            first: VecDeque::new(),
            in_order: VecDeque::new(),
            last: VecDeque::new(),
            overtakes: 0,
            busy_since_ns: 0,
            busy_before_ns: 0,
        }
    }

    /// Nanoseconds that it was held until now.
    pub(super) fn busy_ns(&self, now_ns: u64) -> u64 {
        let under_way = if self.current.is_some() { now_ns - self.busy_since_ns } else { 0 };
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

    pub(super) fn take_other(&mut self) -> Option<Task> {
        self.in_order.pop_front().or_else(|| self.last.pop_front())
    }

    /// Tasks that wait and are not the last.
    pub(super) fn waiting_before_last(&self) -> u32 {
        (self.first.len() + self.in_order.len()) as u32
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
