//! Read queues that neighbouring dies of a channel share.

use super::Machine;
use super::unit::Task;
use nand::Geometry;
use std::collections::VecDeque;

/// A read queue that dies share.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadQueue {
    /// A read has left it for its die, and has not ended.
    serves: bool,
    waiting: VecDeque<Task>,
}

/// Those of channel 0, then those of channel 1, and so on; none if no dies share one.
pub(super) fn all(geometry: &Geometry, dies: u32) -> Vec<ReadQueue> {
    let count = geometry.channels() * of_channel(geometry, dies);
    vec![ReadQueue::default(); if dies == 0 { 0 } else { count as usize }]
}

fn of_channel(geometry: &Geometry, dies: u32) -> u32 {
    (geometry.dies() / geometry.channels()).div_ceil(dies.max(1))
}

impl Machine {
    /// The read queue of a die, if it shares one.
    fn read_queue_of(&self, die: u32) -> Option<usize> {
        let in_channel = (die / self.geometry.channels()).checked_div(self.read_queue_dies)?;
        let before = self.geometry.channel_of(die) * of_channel(&self.geometry, self.read_queue_dies);
        Some((before + in_channel) as usize)
    }

    /// Reads of requests for a die that wait for its read queue.
    pub(super) fn queued_reads(&self, die: u32) -> u32 {
        let Some(queue) = self.read_queue_of(die) else { return 0 };
        let of_request =
            |task: &&Task| self.geometry.die_of(task.block) == die && !self.strands[task.strand as usize].background;
        self.read_queues[queue].waiting.iter().filter(of_request).count() as u32
    }

    /// Whether a read may go to its die; if not, it waits for its read queue.
    pub(super) fn is_served(&mut self, read: &Task) -> bool {
        let Some(queue) = self.read_queue_of(self.geometry.die_of(read.block)) else { return true };
        let queue = &mut self.read_queues[queue];
        if queue.serves {
            queue.waiting.push_back(*read);
            return false;
        }
        queue.serves = true;
        true
    }

    /// A read has ended: the read queue of its die serves the next.
    pub(super) fn read_ended(&mut self, die: u32) {
        let Some(queue) = self.read_queue_of(die) else { return };
        let queue = &mut self.read_queues[queue];
        debug_assert!(queue.serves, "a read of die {die} was served by no queue");
        match queue.waiting.pop_front() {
            Some(next) => self.hand_over(next),
            None => queue.serves = false,
        }
    }
}
