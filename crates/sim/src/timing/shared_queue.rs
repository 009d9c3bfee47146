//! Queues that neighbouring dies of a channel share.

use super::Machine;
use super::unit::Task;
use nand::Geometry;
use nand::profiles::Limits;
use std::collections::VecDeque;

/// A read queue that dies share.
#[derive(Clone, Debug, Default)]
struct ReadQueue {
    /// A read has left it for its die, and has not ended.
    serves: bool,
    waiting: VecDeque<Task>,
}

/// The queues of a device that dies share: those of channel 0, then those of channel 1, and so on;
/// none if its dies share none.
#[derive(Clone, Debug)]
pub(super) struct Queues {
    channels: u32,
    /// Of a channel.
    dies: u32,
    /// Dies that share a read queue, of a channel; 0 if each has its own.
    read_dies: u32,
    reads: Vec<ReadQueue>,
    /// Write queues of a channel, and as many erase queues; 0 if each die has its own.
    write_queues: u32,
    /// The write queues, then the erase queues.
    writes: Vec<VecDeque<Task>>,
}

impl Queues {
    pub(super) fn new(geometry: &Geometry, limits: &Limits) -> Self {
        let (channels, dies) = (geometry.channels(), geometry.dies() / geometry.channels());
        let (read_dies, write_queues) = (limits.read_queue_dies, limits.write_queues_per_channel.min(dies));
        let of_channel = if read_dies == 0 { 0 } else { dies.div_ceil(read_dies) };
        Self {
            channels,
            dies,
            read_dies,
            reads: vec![ReadQueue::default(); (channels * of_channel) as usize],
            write_queues,
            writes: vec![VecDeque::new(); (2 * channels * write_queues) as usize],
        }
    }

    /// The read queue of a die, if it shares one.
    fn read_queue_of(&self, die: u32) -> Option<usize> {
        let in_channel = (die / self.channels).checked_div(self.read_dies)?;
        let before = die % self.channels * self.dies.div_ceil(self.read_dies);
        Some((before + in_channel) as usize)
    }

    /// The write queue of a die and its erase queue, if it shares them.
    fn write_queues_of(&self, die: u32) -> Option<[usize; 2]> {
        let in_channel = die / self.channels * self.write_queues / self.dies;
        let at = (die % self.channels * self.write_queues + in_channel) as usize;
        (self.write_queues > 0).then_some([at, at + self.writes.len() / 2])
    }
}

impl Machine {
    /// Operations of requests for a die that wait for a queue that it shares.
    pub(super) fn queued(&self, die: u32) -> u32 {
        let of_request =
            |task: &&Task| self.geometry.die_of(task.block) == die && !self.strands[task.strand as usize].background;
        let queues = &self.queues;
        let reads = queues.read_queue_of(die).into_iter().flat_map(|at| &queues.reads[at].waiting);
        let writes = queues.write_queues_of(die).into_iter().flatten().flat_map(|at| &queues.writes[at]);
        reads.chain(writes).filter(of_request).count() as u32
    }

    /// Whether a read may go to its die; if not, it waits for its read queue.
    pub(super) fn is_served(&mut self, read: &Task) -> bool {
        let Some(at) = self.queues.read_queue_of(self.geometry.die_of(read.block)) else { return true };
        let queue = &mut self.queues.reads[at];
        if queue.serves {
            queue.waiting.push_back(*read);
            return false;
        }
        queue.serves = true;
        true
    }

    /// A read has ended: the read queue of its die serves the next.
    pub(super) fn read_ended(&mut self, die: u32) {
        let Some(at) = self.queues.read_queue_of(die) else { return };
        let queue = &mut self.queues.reads[at];
        debug_assert!(queue.serves, "a read of die {die} was served by no queue");
        match queue.waiting.pop_front() {
            Some(next) => self.hand_over(next),
            None => queue.serves = false,
        }
    }

    /// Puts a program or an erase into the queue that its die shares; `false` if it shares none.
    pub(super) fn is_queued(&mut self, task: &Task) -> bool {
        let Some(queues) = self.queues.write_queues_of(self.geometry.die_of(task.block)) else { return false };
        let at = queues[usize::from(!task.action.programs())];
        self.queues.writes[at].push_back(*task);
        self.serve(at);
        true
    }

    /// Has idle dies begin what comes first in a queue of writes or erases.
    fn serve(&mut self, at: usize) {
        while let Some(&task) = self.queues.writes[at].front()
            && self.dies[self.geometry.die_of(task.block) as usize].is_idle()
        {
            self.queues.writes[at].pop_front();
            self.start_idle(task);
        }
    }

    /// A die has nothing more to do: serves the queues of writes and erases that it shares.
    pub(super) fn serve_die(&mut self, die: u32) {
        self.queues.write_queues_of(die).into_iter().flatten().for_each(|at| self.serve(at));
    }
}
