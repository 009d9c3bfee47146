//! Virtual time: which flash operation runs when.
//!
//! An event-driven model with one queue a die and one queue a channel. Exactly this is modelled:
//!
//! 1. A **die** does one operation at a time and is held from its start to its end, transfer and
//!    waiting for the channel included, but for rules 11 to 13.
//! 2. A page **read** is the array time, then the transfer of page and spare area over the channel.
//!    If the device says how little a read may fetch, a read of the host transfers what it wants of
//!    the page in such units, and their share of the spare area. A **spare read** transfers a
//!    thirty-second of a page. A channel may transfer at another rate what is read. A **program**
//!    is the transfer, then the array time. A **program of flags** transfers as much as a spare
//!    read, and takes the array time of a program. An **erase** does not use the channel. A
//!    **copy** is a read and, once that has ended, a program, on the dies they concern, through the
//!    controller; within one plane of a device with copy-back it is one operation of read plus
//!    program time without transfers. Commands and addresses take no time. If the device says so
//!    (`read_by_type_ns`, `program_by_type_ns`), array times depend on the **page type**: on how
//!    many pages of its word line are programmed before a page.
//! 3. A **channel** makes one transfer at a time, in the order in which dies became ready for it.
//! 4. Each page of a request is a **strand**: the flash operations that the FTL did for it, in
//!    their order, each starting when the one before has ended. Copies and erases that follow each
//!    other without anything else between them, one or more passes of a collector, are one step:
//!    all copies start together, and an erase waits only for the copies out of its block. A copy
//!    out of a block that the step erased begins the next step. Whatever follows waits for all of
//!    them. Strands of one request, and of different requests, are independent.
//! 5. Where the log of the FTL says that operations are **branches** of a section
//!    ([`ftl::Branch`]), the first of each branch starts when all before the section has ended, and
//!    those of a branch follow each other. A page programmed in the section is read in it only
//!    afterwards, and what is no copy but changes flash waits for all copies before it in the
//!    section. Whatever follows the section waits for all of it. Each operation under way has a
//!    buffer of its own.
//! 6. Across strands, one order is kept: a program into a block waits for every erase of that block
//!    that the FTL did before it. Not kept is the order of programs within a block (a controller
//!    would reorder or stall), and a read of a page whose program still waits is charged as an
//!    ordinary read.
//! 7. A die serves its queue first come, first served, except that with `read_priority` the page
//!    and spare reads of requests (not those inside copies) go first, at most `max_overtakes`
//!    between two other operations while one of those waits. With `suspend_ns` they also interrupt
//!    the array time of a running program, erase or copy-back under the same bound; the interrupted
//!    operation then takes that much longer.
//! 8. Background operations go last on every die. They are not interrupted unless `suspend_ns` says
//!    so.
//! 9. If a request's program waits for an erase, the strand of that erase is *hurried*, and so are
//!    the strands that it waits for itself: what they do goes first on every die, as reads do and
//!    under the same bound, but interrupts nothing.
//! 10. If the device says so (`read_queue_dies`), so many successive dies of a channel share a
//!     **read queue**. It serves one page read, spare read or reading half of a copy at a time,
//!     from when the read comes to its die to the end of its transfer, first come, first served.
//!     Until then a read does not wait on its die, and goes before nothing there.
//!
//! 11. **Multi-plane**, if the device can: a program that a die begins takes along those that wait
//!     there for the same page offset in other planes, of each plane the one that the die would
//!     come to first. Their transfers follow each other, then the array takes the time of one. An
//!     erase takes along erases in other planes.
//! 12. **Cache programs**, if the device says so: once the array programs, and the operation that
//!     the die comes to next is a program, that one's transfer begins. It is then the next, and
//!     the program under way is not suspended. Its array time begins when both have ended.
//! 13. **Cache reads**, if the device says so: while a page that was read waits for the channel or
//!     crosses it, the die begins the operation that it comes to next if that is a read. A second
//!     page that was read waits on the die until the first has left.
//! 14. If the device says so (`write_queues_per_channel`), neighbouring dies of a channel share a
//!     **write queue** for all programs, and an **erase queue**. Each is first come, first served,
//!     whatever is hurried or of the background. Its first operation leaves it when the die is
//!     idle: every read that waits on the die goes before, and rule 7 does not bound that. Those
//!     behind wait, whatever their dies do. Rules 11 and 12 find nothing there.
//!
//! 15. A read of a logical page waits for its **mapping entry**, if an earlier read of the page
//!     still fetches that: it begins once the page of metadata has been read that comes right
//!     before the page of host data there. Rule 9 does not hurry that read.
//!
//! The FTL executes a request as a whole, and itself takes no time unless rule 19 says so. A flush
//! ends once every write and trim that entered before it has; requests behind it do not wait.
//!
//! Between host and device, if the device's limits say so:
//!
//! 16. Data cross a **link**, in each direction the data of one request after another. Those of a
//!     write cross before it enters, at `host_write_bytes_per_us`, in the order in which writes
//!     arrive; a trim or a flush does not enter before the writes that arrived before it. A read
//!     enters at once. What it read crosses at `host_read_bytes_per_us` once its last strand has
//!     ended, and ends it. Nothing of a request crosses while flash works for it.
//! 17. While a **die** has `queue_depth` operations of requests to do or more, no request leaves
//!     the host. One that has left it is done as a whole, so that more may gather on a die.
//!
//! If the FTL takes time (`--ftl-time`):
//!
//! 19. The FTL is one **stage** between link and dies. It works on one page of a request after
//!     another, and on requests in the order in which they come; a trim and a flush wait for those
//!     before. A request is executed once the FTL is through with its last page. What is collected
//!     meanwhile takes the stage no time.
//!
//! With a write buffer ([`crate::host::buffered`]), which itself takes no time:
//!
//! 18. A write ends when each of its pages has a **place** in the buffer. A page that is written
//!     out is a strand of its own, and frees its place when the strand ends. Pages get places in
//!     the order in which they came, and wait for none once their own strand has ended. A flush
//!     ends once every strand has that wrote a page out by then; a write with FUA waits for its
//!     own.

mod branches;
mod progress;
mod shared_queue;
mod strand;
mod times;
mod unit;

#[cfg(test)]
mod agree;
#[cfg(test)]
mod beside;
#[cfg(test)]
mod page_types;
#[cfg(test)]
mod second;
#[cfg(test)]
mod tests;

use crate::spec::{DevicePlan, QueueOptions};
use ftl::{Op, OpKind, Purpose};
use nand::{BlockId, Geometry, Lpn};
use shared_queue::Queues;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;
use strand::{Step, Strand, Waiting};
use times::Times;
use unit::{Action, Channel, Die, Task, Turn};

/// A request, or whatever else the caller waits for, by number.
pub type Token = u32;

/// Something that will happen. The sequence number keeps simultaneous events in the order they were
/// made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    at_ns: u64,
    seq: u64,
    /// A die, or the number of dies plus a channel.
    unit: u32,
}

/// How many erases of a block the FTL has done, and how many of them have ended in virtual time.
#[derive(Clone, Copy, Debug, Default)]
struct Erases {
    done: u32,
    ended: u32,
}

/// The dies and channels of a device in virtual time.
#[derive(Debug)]
pub struct Machine {
    geometry: Geometry,
    copy_back: bool,
    multi_plane: bool,
    times: Times,
    read_priority: bool,
    max_overtakes: u32,
    suspend_ns: Option<u64>,
    now_ns: u64,
    events: BinaryHeap<Reverse<Event>>,
    event_seq: u64,
    dies: Vec<Die>,
    channels: Vec<Channel>,
    queues: Queues,
    strands: Vec<Strand>,
    free_strands: Vec<u32>,
    erases: Vec<Erases>,
    /// Logical pages of which a read still fetches the mapping entry, and its strand.
    fetching: HashMap<u32, u32>,
    /// Blocks that the step being started erases.
    emptied: Vec<BlockId>,
    /// Programs whose block has yet to be erased.
    parked: Vec<Task>,
    ended: Vec<Token>,
}

impl Machine {
    /// An idle device at time 0.
    #[must_use]
    pub fn new(device: &DevicePlan, options: &QueueOptions) -> Self {
        let geometry = &device.geometry;
        Self {
            geometry: *geometry,
            copy_back: device.capabilities.copy_back,
            multi_plane: device.capabilities.multi_plane && geometry.planes_per_die() > 1,
            times: Times::new(device),
            read_priority: options.read_priority,
            max_overtakes: options.max_overtakes,
            suspend_ns: options.suspend_ns,
            now_ns: 0,
            events: BinaryHeap::with_capacity(geometry.dies() as usize * 2),
            event_seq: 0,
            dies: (0..geometry.dies()).map(|die| Die::new(geometry.channel_of(die))).collect(),
            channels: (0..geometry.channels()).map(|_| Channel::default()).collect(),
            queues: Queues::new(geometry, &device.limits),
            strands: Vec::new(),
            free_strands: Vec::new(),
            erases: vec![Erases::default(); geometry.blocks() as usize],
            fetching: HashMap::new(),
            emptied: Vec::new(),
            parked: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// The time, nanoseconds.
    #[must_use]
    pub const fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// How many dies there are.
    #[must_use]
    pub fn dies(&self) -> u32 {
        self.dies.len() as u32
    }

    /// Operations of requests that a die does or has yet to do.
    #[must_use]
    pub fn waiting(&self, die_index: u32) -> u32 {
        let Some(die) = self.dies.get(die_index as usize) else { return 0 };
        die.before_last(|task| !self.strands[task.strand as usize].background) + self.queued(die_index)
    }

    /// When the next thing happens, if anything is going on. May be early by an operation that was
    /// suspended.
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        self.events.peek().map(|Reverse(event)| event.at_ns)
    }

    /// Lets time pass until `at_ns` without anything happening; the caller has seen to it that
    /// nothing does.
    pub fn wait_until(&mut self, at_ns: u64) {
        debug_assert!(self.next_ns().is_none_or(|next| next >= at_ns), "an event before {at_ns} ns was skipped");
        self.now_ns = self.now_ns.max(at_ns);
    }

    /// Starts a strand of operations now; `token` comes back when the last has ended. `false`, and
    /// no token, if there is none.
    pub fn submit(&mut self, token: Token, background: bool, ops: impl Iterator<Item = Op>) -> bool {
        let Some(id) = self.new_strand(token, background, self.times.page_transfer[1], ops) else { return false };
        self.advance(id);
        true
    }

    /// As [`Machine::submit`], of the operations of a request that reads these bytes of a logical
    /// page.
    pub fn submit_read(&mut self, token: Token, page: Lpn, part: &Range<u64>, ops: impl Iterator<Item = Op>) -> bool {
        let Some(id) = self.new_strand(token, false, self.times.part_transfer(part), ops) else { return false };
        if self.fetch(id, page) {
            self.advance(id);
        }
        true
    }

    /// A strand of these operations, of which none has begun; `None` if there are none.
    fn new_strand(
        &mut self,
        token: Token,
        background: bool,
        host_transfer: u64,
        ops: impl Iterator<Item = Op>,
    ) -> Option<u32> {
        let id = self.free_strands.pop().unwrap_or_else(|| {
            self.strands.push(Strand::default());
            self.strands.len() as u32 - 1
        });
        let strand = &mut self.strands[id as usize];
        strand.steps.clear();
        for op in ops {
            let erases = &mut self.erases[self.geometry.block_of(op.page).index()];
            if op.kind == OpKind::Erase {
                erases.done = erases.done.wrapping_add(1);
            }
            strand.steps.push(Step { op, epoch: erases.done, ended: false });
        }
        if strand.steps.is_empty() {
            self.free_strands.push(id);
            return None;
        }
        strand.next = 0;
        strand.running = 0;
        strand.token = token;
        strand.background = background;
        strand.hurried = false;
        strand.host_transfer = host_transfer;
        debug_assert!(strand.fetched_at == 0 && strand.behind.is_empty(), "a strand that ended still fetches");
        Some(id)
    }

    /// Takes note of what a read of a logical page fetches; `false` if it waits for the fetch of
    /// another.
    fn fetch(&mut self, id: u32, page: Lpn) -> bool {
        let steps = &self.strands[id as usize].steps;
        let is_read = |step: &Step| step.op.kind == OpKind::Read && step.op.branch.section == 0;
        let fetches = |pair: &[Step]| {
            pair.iter().all(is_read) && pair[0].op.purpose != Purpose::Host && pair[1].op.purpose == Purpose::Host
        };
        let fetched_at = steps.windows(2).position(fetches).map(|at| at + 1);
        let before = match fetched_at {
            Some(at) => {
                let strand = &mut self.strands[id as usize];
                (strand.fetched_at, strand.fetches) = (at, page.0);
                self.fetching.insert(page.0, id)
            }
            None => self.fetching.get(&page.0).copied(),
        };
        if let Some(before) = before {
            self.strands[before as usize].behind.push(id);
        }
        before.is_none()
    }

    /// A mapping entry was fetched: the reads that waited for it begin.
    #[cold]
    fn fetched(&mut self, id: u32) {
        let strand = &mut self.strands[id as usize];
        strand.fetched_at = 0;
        let page = strand.fetches;
        let behind = std::mem::take(&mut strand.behind);
        if self.fetching.get(&page) == Some(&id) {
            self.fetching.remove(&page);
        }
        behind.into_iter().for_each(|id| self.advance(id));
    }

    /// Lets the next thing happen and returns the tokens of the strands that ended with it, if any.
    /// Nothing happens on an idle device.
    pub fn run_event(&mut self) -> &[Token] {
        self.ended.clear();
        if let Some(Reverse(event)) = self.events.pop() {
            debug_assert!(event.at_ns >= self.now_ns);
            let dies = self.dies.len() as u32;
            if event.unit >= dies {
                self.now_ns = event.at_ns;
                self.transfer_ended(event.unit - dies);
            } else if self.dies[event.unit as usize].event_seq == event.seq {
                self.now_ns = event.at_ns;
                self.array_ended(event.unit);
            }
        }
        &self.ended
    }

    /// Nanoseconds that each die was held until now.
    pub fn die_busy_ns(&self) -> impl Iterator<Item = u64> {
        self.dies.iter().map(|die| die.busy_ns(self.now_ns))
    }

    /// Nanoseconds that each channel was held.
    pub fn channel_busy_ns(&self) -> impl Iterator<Item = u64> {
        self.channels.iter().map(|channel| channel.busy_ns)
    }

    /// Starts the next operations of a strand, or ends it.
    fn advance(&mut self, id: u32) {
        let strand = &mut self.strands[id as usize];
        let first = strand.next;
        let Some(step) = strand.steps.get(first) else {
            strand.steps.clear();
            self.ended.push(strand.token);
            self.free_strands.push(id);
            return;
        };
        if step.op.branch.section != 0 {
            self.start_section(id);
            return;
        }
        strand.section = 0..0;
        self.emptied.clear();
        let mut end = first + 1;
        if step.collects() {
            // A copy out of a block that the step erased reads what was programmed since.
            end = first;
            for step in strand.steps[first..].iter().take_while(|step| step.collects()) {
                if step.op.kind == OpKind::Erase {
                    self.emptied.push(self.geometry.block_of(step.op.page));
                } else if self.emptied.contains(&self.geometry.block_of(step.op.from)) {
                    break;
                }
                end += 1;
            }
        }
        strand.next = end;
        strand.running = (end - first) as u32;
        for at in first..end {
            let task = self.task(id, at);
            if task.action != Action::Erase || !self.erase_waits(id, first..at, task.block) {
                self.issue(task);
            }
        }
        if first > 0 && first == self.strands[id as usize].fetched_at {
            self.fetched(id);
        }
    }

    /// Whether an erase must wait for copies out of its block, which are among these steps; if so,
    /// it is remembered.
    fn erase_waits(&mut self, id: u32, steps: Range<usize>, block: BlockId) -> bool {
        let strand = &mut self.strands[id as usize];
        let geometry = &self.geometry;
        let copies = strand.steps[steps]
            .iter()
            .rev()
            .take_while(|step| step.op.kind != OpKind::Erase || geometry.block_of(step.op.page) != block)
            .filter(|step| step.op.kind == OpKind::Copy && geometry.block_of(step.op.from) == block)
            .count() as u32;
        if copies > 0 {
            strand.erases.push(Waiting { block, copies });
        }
        copies > 0
    }

    /// A copy out of a block has ended, which the block's erase may have waited for.
    fn copy_ended(&mut self, id: u32, from: BlockId) {
        let erases = &mut self.strands[id as usize].erases;
        let Some(at) = erases.iter().position(|waiting| waiting.block == from) else { return };
        erases[at].copies -= 1;
        if erases[at].copies == 0 {
            erases.remove(at);
            self.issue(Task { action: Action::Erase, ..Task::new(id, from, 0) });
        }
    }

    fn task(&self, id: u32, at: usize) -> Task {
        let strand = &self.strands[id as usize];
        let Step { op, epoch, .. } = strand.steps[at];
        let block = self.geometry.block_of(op.page);
        let offset = self.geometry.offset_of(op.page);
        let read_offset = if op.kind == OpKind::Copy { self.geometry.offset_of(op.from) } else { offset };
        let task = Task { offset, read_offset, ..Task::new(id, block, epoch) };
        let urgent = self.read_priority && !strand.background;
        match op.kind {
            OpKind::Read => Task { urgent, of_host: op.purpose == Purpose::Host, ..task },
            OpKind::SpareRead => Task { action: Action::SpareRead, urgent, ..task },
            OpKind::Program => Task { action: Action::Program, ..task },
            OpKind::Erase => Task { action: Action::Erase, ..task },
            OpKind::Flags => Task { action: Action::Flags, ..task },
            OpKind::Copy => {
                let from = self.geometry.block_of(op.from);
                if self.copy_back && self.same_plane(from, block) {
                    Task { action: Action::CopyBack, copied_from: from, ..task }
                } else {
                    Task { block: from, copy_to: block, copied_from: from, ..task }
                }
            }
        }
    }

    fn transfer(&self, task: &Task) -> u64 {
        if task.of_host { self.strands[task.strand as usize].host_transfer } else { self.times.transfer(task.action) }
    }

    fn same_plane(&self, a: BlockId, b: BlockId) -> bool {
        let g = &self.geometry;
        g.die_of(a) == g.die_of(b) && g.plane_of(a) == g.plane_of(b)
    }

    /// Hands a task to its die, or to the read queue that its die shares.
    fn issue(&mut self, task: Task) {
        if !task.action.reads() || self.is_served(&task) {
            self.hand_over(task);
        }
    }

    /// Hands a task to its die: to run at once, or to wait there.
    fn hand_over(&mut self, task: Task) {
        if task.action.programs() && !self.erased_for(&task) {
            self.parked.push(task);
            if self.strands[task.strand as usize].turn(false) != Turn::Last {
                self.hurry(task.block);
            }
            return;
        }
        if !task.action.reads() && self.is_queued(&task) {
            return;
        }
        let index = self.geometry.die_of(task.block);
        if self.dies[index as usize].is_idle() {
            self.start_idle(task);
        } else if task.urgent && self.may_suspend(index) {
            self.suspend(index);
            self.start(index, task);
        } else {
            let turn = self.strands[task.strand as usize].turn(task.urgent);
            self.dies[index as usize].enqueue(task, turn);
            self.send_ahead(index);
            self.read_ahead(index);
        }
    }

    /// Has the idle die of a task begin it.
    fn start_idle(&mut self, task: Task) {
        let index = self.geometry.die_of(task.block);
        self.dies[index as usize].busy_since_ns = self.now_ns;
        self.start(index, task);
    }

    /// Hurries the strands that erase a block, and those that they wait for.
    fn hurry(&mut self, block: BlockId) {
        let Self { geometry, strands, parked, dies, .. } = self;
        let mut blocks = vec![block];
        let mut hurried = false;
        while let Some(block) = blocks.pop() {
            let erases = |step: &Step| step.op.kind == OpKind::Erase && geometry.block_of(step.op.page) == block;
            for (id, strand) in (0..).zip(strands.iter_mut()) {
                if !strand.hurried && strand.steps.iter().any(erases) {
                    (strand.hurried, hurried) = (true, true);
                    blocks.extend(parked.iter().filter(|task| task.strand == id).map(|task| task.block));
                }
            }
        }
        if hurried {
            dies.iter_mut().for_each(|die| die.hurry(|strand| strands[strand as usize].hurried));
        }
    }

    /// Whether every erase that precedes a program into the block has ended.
    fn erased_for(&self, task: &Task) -> bool {
        let ended = self.erases[task.block.index()].ended;
        (ended.wrapping_sub(task.epoch) as i32) >= 0
    }

    fn erase_ended(&mut self, block: BlockId) {
        let erases = &mut self.erases[block.index()];
        erases.ended = erases.ended.wrapping_add(1);
        if self.parked.is_empty() {
            return;
        }
        let mut at = 0;
        while at < self.parked.len() {
            if self.parked[at].block == block && self.erased_for(&self.parked[at]) {
                let task = self.parked.remove(at);
                self.issue(task);
            } else {
                at += 1;
            }
        }
    }
}
