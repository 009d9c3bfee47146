//! A second model of the rules of [`super`], small and slow: the works of all strands, searched
//! anew each time. Both are handed the same operations. Suspension is not modelled.

mod phases;

use super::{Times, Token};
use crate::spec::{DevicePlan, QueueOptions};
use ftl::{Op, OpKind, Purpose};
use nand::profiles::Limits;
use nand::{BlockId, Geometry, Lpn, Pairing, Ppn, Timing};
use phases::Phases;
use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Array(u64),
    Bus(u64),
}

/// The smaller go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Urgent,
    Ordinary,
    Background,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Something of its own strand comes first.
    Later,
    /// Its block has to be erased first.
    Parked,
    /// The read queue that its die shares serves another read.
    Behind,
    /// Its die is busy.
    Queued,
    /// It holds its die, and the channel is busy.
    OnDie,
    /// It was transferred beside the array time of the work before it, which is not over.
    Loaded,
    /// It was read, and the page read before it has not left the die.
    Full,
    /// It goes with a work in another plane of its die.
    With,
    /// It ends at this time.
    Running(u64),
    Done,
}

#[derive(Clone, Debug)]
struct Work {
    /// A step of a strand starts when all works of the one before are done.
    step: usize,
    block: BlockId,
    offset: u32,
    class: Class,
    erases: bool,
    reads: bool,
    /// It programs a page, with a transfer before.
    programs: bool,
    /// Erases of the block that have to be over first.
    needs: u32,
    phases: Vec<Phase>,
    /// Works of the same step that have to be done first.
    after: Vec<usize>,
    state: State,
    /// When it came into its state, counted over all works.
    since: u64,
}

type Id = (Token, usize);

pub(super) struct Second {
    geometry: Geometry,
    limits: Limits,
    copy_back: bool,
    multi_plane: bool,
    timing: Timing,
    pairing: Pairing,
    times: Times,
    read_priority: bool,
    max_overtakes: u32,
    now: u64,
    order: u64,
    strands: BTreeMap<Token, Vec<Work>>,
    /// Of each block, erases that the FTL did, and those that are over.
    erases: BTreeMap<BlockId, (u32, u32)>,
    /// Of each die, urgent works since another began.
    overtakes: BTreeMap<u32, u32>,
    /// Of a logical page, the work that fetched its mapping entry last.
    fetches: BTreeMap<u32, Id>,
    /// Of a strand, the fetch that comes first.
    gates: BTreeMap<Token, Id>,
    /// Of a work, those that go with it.
    groups: BTreeMap<Id, Vec<Id>>,
    pub(super) ended: Vec<(Token, u64)>,
}

/// Whether an operation is part of a pass of a collector, and of no section.
fn collects(op: &Op) -> bool {
    matches!(op.kind, OpKind::Copy | OpKind::Erase) && op.branch.section == 0
}

/// Whether an operation is of the step of the one before, if it copies nothing twice.
fn follows(op: &Op, before: &Op) -> bool {
    if op.branch.section == 0 { collects(op) && collects(before) } else { before.branch.section == op.branch.section }
}

/// The read of metadata right before the first page of host data that comes after one.
fn fetch_of(ops: &[Op]) -> Option<usize> {
    let reads = |op: &Op| op.kind == OpKind::Read && op.branch.section == 0;
    ops.windows(2).position(|pair| {
        let of_host = pair[1].purpose == Purpose::Host && pair[0].purpose != Purpose::Host;
        reads(&pair[0]) && reads(&pair[1]) && of_host
    })
}

/// What an operation of a section waits for, of `works` so far: the last of its branch, copies, and
/// the program of what it reads.
fn waits(
    op: &Op,
    before: Option<&Op>,
    works: usize,
    copies: &[(BlockId, usize)],
    programmed: &[(Ppn, usize)],
) -> Vec<usize> {
    if op.branch.section == 0 {
        return Vec::new();
    }
    let (changes, read) = match op.kind {
        OpKind::Read | OpKind::SpareRead => (false, op.page),
        OpKind::Copy => (false, op.from),
        OpKind::Program | OpKind::Flags | OpKind::Erase => (true, Ppn::NONE),
    };
    let own = before.filter(|before| before.branch == op.branch).map(|_| works - 1);
    let of_copies = copies.iter().filter(|_| changes).map(|(_, at)| *at);
    let of_programs = programmed.iter().filter(|(page, _)| *page == read).map(|(_, at)| *at);
    own.into_iter().chain(of_copies).chain(of_programs).collect()
}

impl Second {
    pub(super) fn new(device: &DevicePlan, options: &QueueOptions) -> Self {
        Self {
            geometry: device.geometry,
            limits: device.limits,
            copy_back: device.capabilities.copy_back,
            multi_plane: device.capabilities.multi_plane,
            timing: device.timing,
            pairing: device.pairing,
            times: Times::new(device),
            read_priority: options.read_priority,
            max_overtakes: options.max_overtakes,
            now: 0,
            order: 0,
            strands: BTreeMap::new(),
            erases: BTreeMap::new(),
            overtakes: BTreeMap::new(),
            fetches: BTreeMap::new(),
            gates: BTreeMap::new(),
            groups: BTreeMap::new(),
            ended: Vec::new(),
        }
    }

    pub(super) fn submit(&mut self, token: Token, background: bool, of: Option<(Lpn, &Range<u64>)>, ops: &[Op]) {
        let (fetches, mut fetch) = (fetch_of(ops), None);
        let class = if background { Class::Background } else { Class::Ordinary };
        let reads = if self.read_priority && !background { Class::Urgent } else { class };
        let erase = [Phase::Array(self.timing.erase_ns)];
        let (mut works, mut step) = (Vec::<Work>::new(), 0);
        // Of the step: copies, by the block they leave and the work that ends them, erased blocks,
        // and pages by the work that programs them.
        let mut copies: Vec<(BlockId, usize)> = Vec::new();
        let (mut emptied, mut programmed) = (Vec::<BlockId>::new(), Vec::<(Ppn, usize)>::new());
        for (at, op) in ops.iter().enumerate() {
            let again = collects(op) && op.kind == OpKind::Copy && emptied.contains(&self.geometry.block_of(op.from));
            let before = at.checked_sub(1).map(|before| &ops[before]);
            if before.is_some_and(|before| again || !follows(op, before)) {
                step += 1;
                copies.clear();
                emptied.clear();
                programmed.clear();
            }
            let after = waits(op, before, works.len(), &copies, &programmed);
            let Phases { read, of_host, spare_read, program, flags } = self.phases(of.map(|(_, part)| part), op);
            let (block, offset) = (self.geometry.block_of(op.page), self.geometry.offset_of(op.page));
            let needs = self.erases_before(op, block);
            let work = |block, class, needs, phases: &[Phase], after| {
                let reads = matches!(phases, [Phase::Array(_), Phase::Bus(_)]);
                let programs = !reads && phases.len() == 2 && op.kind != OpKind::Flags;
                let phases = phases.iter().copied().filter(|phase| *phase != Phase::Bus(0)).collect();
                let erases = op.kind == OpKind::Erase;
                let (state, since) = (State::Later, 0);
                Work { step, block, offset, class, erases, reads, programs, needs, phases, after, state, since }
            };
            fetch = fetch.or((fetches == Some(at)).then_some(works.len()));
            match op.kind {
                OpKind::Read => {
                    let phases = if op.purpose == Purpose::Host { &of_host } else { &read };
                    works.push(work(block, reads, 0, phases, after));
                }
                OpKind::SpareRead => works.push(work(block, reads, 0, &spare_read, after)),
                OpKind::Program => {
                    works.push(work(block, class, needs, &program, after));
                    programmed.push((op.page, works.len() - 1));
                }
                OpKind::Flags => works.push(work(block, class, needs, &flags, after)),
                OpKind::Erase if op.branch.section != 0 => works.push(work(block, class, 0, &erase, after)),
                OpKind::Erase => {
                    let after = copies.iter().filter(|(from, _)| *from == block).map(|(_, at)| *at).collect();
                    copies.retain(|(from, _)| *from != block);
                    emptied.push(block);
                    works.push(work(block, class, 0, &erase, after));
                }
                OpKind::Copy => {
                    let from = self.geometry.block_of(op.from);
                    if self.copies_back(from, block) {
                        let (Phase::Array(read), Phase::Array(program)) = (read[0], program[1]) else { continue };
                        works.push(work(block, class, needs, &[Phase::Array(read + program)], after));
                    } else {
                        works.push(work(from, class, 0, &read, after));
                        works.push(work(block, class, needs, &program, vec![works.len() - 1]));
                    }
                    copies.push((from, works.len() - 1));
                    programmed.push((op.page, works.len() - 1));
                }
            }
        }
        if let Some((page, _)) = of.filter(|_| !works.is_empty()) {
            self.put_behind(token, page, fetch.map(|at| (token, at)));
        }
        self.begin_strand(token, works);
    }

    /// Erases of a block that the FTL has done, this operation included.
    fn erases_before(&mut self, op: &Op, block: BlockId) -> u32 {
        let erased = self.erases.entry(block).or_default();
        erased.0 += u32::from(op.kind == OpKind::Erase);
        erased.0
    }

    fn copies_back(&self, from: BlockId, to: BlockId) -> bool {
        let g = &self.geometry;
        self.copy_back && g.die_of(from) == g.die_of(to) && g.plane_of(from) == g.plane_of(to)
    }

    /// Has a strand that reads a logical page wait for what another still fetches of it.
    fn put_behind(&mut self, token: Token, page: Lpn, own: Option<Id>) {
        let before = self.fetches.get(&page.0).copied();
        if let Some(own) = own {
            self.fetches.insert(page.0, own);
        }
        let pending = |id: &Id| self.strands.get(&id.0).is_some_and(|works| works[id.1].state != State::Done);
        if let Some(before) = before.filter(pending) {
            self.gates.insert(token, before);
        }
    }

    fn begin_strand(&mut self, token: Token, works: Vec<Work>) {
        if !works.is_empty() {
            self.strands.insert(token, works);
            self.go_on(token);
        }
    }

    fn work(&self, (token, at): Id) -> &Work {
        &self.strands[&token][at]
    }

    fn all(&self) -> impl Iterator<Item = (Id, &Work)> {
        let of = |(token, works): (&Token, _)| (*token, works);
        self.strands
            .iter()
            .map(of)
            .flat_map(|(token, works)| works.iter().enumerate().map(move |(at, work)| ((token, at), work)))
    }

    /// The work that came first into its state, of those wanted.
    fn first(&self, wanted: impl Fn(&Work) -> bool) -> Option<Id> {
        self.all().filter(|(_, work)| wanted(work)).min_by_key(|(_, work)| work.since).map(|(id, _)| id)
    }

    fn die(&self, work: &Work) -> u32 {
        self.geometry.die_of(work.block)
    }

    fn channel(&self, work: &Work) -> u32 {
        self.geometry.channel_of(self.die(work))
    }

    fn set(&mut self, (token, at): Id, state: State) {
        self.order += 1;
        let work = &mut self.strands.get_mut(&token).unwrap()[at];
        work.state = state;
        work.since = self.order;
    }

    /// Hands a strand's works to their dies, as far as nothing of the strand comes first.
    fn go_on(&mut self, token: Token) {
        if self.gates.contains_key(&token) {
            return;
        }
        let works = &self.strands[&token];
        let Some(step) = works.iter().filter(|work| work.state != State::Done).map(|work| work.step).min() else {
            self.strands.remove(&token);
            self.ended.push((token, self.now));
            return;
        };
        let done = |at: &usize| works[*at].state == State::Done;
        let free = |work: &Work| work.step == step && work.state == State::Later && work.after.iter().all(done);
        let ready: Vec<_> = (0..works.len()).filter(|at| free(&works[*at])).collect();
        ready.into_iter().for_each(|at| self.issue((token, at)));
    }

    /// The dies whose reads wait for each other: a channel and a part of it.
    fn read_queue(&self, work: &Work) -> (u32, u32) {
        (self.channel(work), self.die(work) / self.geometry.channels() / self.limits.read_queue_dies)
    }

    fn issue(&mut self, id: Id) {
        let work = self.work(id);
        let served = |other: &Work| {
            other.reads
                && matches!(other.state, State::Queued | State::OnDie | State::Running(_) | State::Full)
                && self.read_queue(other) == self.read_queue(work)
        };
        if self.limits.read_queue_dies > 0 && work.reads && self.all().any(|(_, other)| served(other)) {
            self.set(id, State::Behind);
        } else {
            self.hand_over(id);
        }
    }

    /// The works that hold a die.
    fn holders(&self, die: u32) -> impl Iterator<Item = (Id, &Work)> {
        let holds = |work: &Work| matches!(work.state, State::Running(_) | State::OnDie | State::Loaded | State::Full);
        self.all().filter(move |(_, work)| holds(work) && self.die(work) == die)
    }

    fn is_busy(&self, die: u32) -> bool {
        self.holders(die).next().is_some()
    }

    fn hand_over(&mut self, id: Id) {
        let work = self.work(id);
        let die = self.die(work);
        if self.erases.get(&work.block).is_some_and(|(_, over)| *over < work.needs) {
            self.set(id, State::Parked);
            if self.work(id).class != Class::Background {
                self.hurry(self.work(id).block);
            }
        } else if self.limits.write_queues_per_channel > 0 && !work.reads {
            let queue = self.write_queue(die, work.erases);
            self.set(id, State::Behind);
            self.serve(queue);
        } else if self.is_busy(die) {
            self.set(id, State::Queued);
            self.go_ahead(die);
        } else {
            self.begin(id);
        }
    }

    /// A channel, a part of it, and whether for erases.
    fn write_queue(&self, die: u32, erases: bool) -> (u32, u32, bool) {
        let channels = self.geometry.channels();
        let dies = self.geometry.dies() / channels;
        (die % channels, die / channels * self.limits.write_queues_per_channel.min(dies) / dies, erases)
    }

    fn serve(&mut self, queue: (u32, u32, bool)) {
        let waits = |work: &Work| {
            work.state == State::Behind && !work.reads && self.write_queue(self.die(work), work.erases) == queue
        };
        if let Some(next) = self.first(waits).filter(|next| !self.is_busy(self.die(self.work(*next)))) {
            self.begin(next);
            self.serve(queue);
        }
    }

    /// The work that a die comes to next.
    fn next_on(&self, die: u32) -> Option<Id> {
        let queued = |class, work: &Work| work.state == State::Queued && work.class == class && self.die(work) == die;
        let urgent = self.first(|work| queued(Class::Urgent, work));
        let other = self.first(|work| queued(Class::Ordinary, work));
        let other = other.or_else(|| self.first(|work| queued(Class::Background, work)));
        let patient = self.overtakes.get(&die).is_none_or(|overtakes| *overtakes < self.max_overtakes);
        if other.is_none() || patient { urgent.or(other) } else { other }
    }

    /// Begins what may run beside the work of a die.
    fn go_ahead(&mut self, die: u32) {
        let (None, Some(next)) = (self.holders(die).nth(1), self.next_on(die)) else { return };
        let Some((_, work)) = self.holders(die).next() else { return };
        let goes = match work.phases[0] {
            Phase::Array(_) if self.timing.cache_programs && work.programs => {
                self.work(next).programs && matches!(self.work(next).phases[0], Phase::Bus(_))
            }
            Phase::Bus(_) if self.timing.cache_reads && work.reads => self.work(next).reads,
            _ => false,
        };
        if goes {
            self.begin(next);
        }
    }

    /// Finds what waits in other planes and can be done with a work.
    fn take_along(&mut self, id: Id) {
        let work = self.work(id).clone();
        if !self.multi_plane || !(work.programs || work.erases) {
            return;
        }
        let goes = |other: &Work| {
            other.state == State::Queued
                && self.die(other) == self.die(&work)
                && (other.programs, other.erases) == (work.programs, work.erases)
                && (work.erases || other.offset == work.offset)
        };
        let mut others: Vec<_> = self.all().filter(|(_, other)| goes(other)).collect();
        others.sort_unstable_by_key(|(_, other)| (other.class, other.since));
        let mut planes = vec![self.geometry.plane_of(work.block)];
        let mut group = Vec::new();
        for (other, Work { block, .. }) in others {
            let plane = self.geometry.plane_of(*block);
            if !planes.contains(&plane) {
                planes.push(plane);
                group.push(other);
            }
        }
        for other in &group {
            self.set(*other, State::With);
            if let transfer @ Phase::Bus(_) = work.phases[0] {
                self.strands.get_mut(&id.0).unwrap()[id.1].phases.insert(0, transfer);
            }
        }
        self.groups.insert(id, group);
    }

    /// Puts the works of strands that erase a block, and of those that they wait for, first.
    fn hurry(&mut self, block: BlockId) {
        let mut blocks = vec![block];
        let mut queued: Vec<(Class, u64, Id)> = Vec::new();
        while let Some(block) = blocks.pop() {
            for (token, works) in &mut self.strands {
                let erases = works.iter().any(|work| work.erases && work.block == block);
                if !erases || works.iter().all(|work| work.class == Class::Urgent) {
                    continue;
                }
                blocks.extend(works.iter().filter(|work| work.state == State::Parked).map(|work| work.block));
                for (at, work) in works.iter_mut().enumerate() {
                    if work.state == State::Queued && work.class != Class::Urgent {
                        queued.push((work.class, work.since, (*token, at)));
                    }
                    work.class = Class::Urgent;
                }
            }
        }
        queued.sort_unstable();
        queued.into_iter().for_each(|(_, _, id)| self.set(id, State::Queued));
    }

    fn others_queue(&self, die: u32) -> bool {
        let waits = |work: &Work| work.state == State::Queued && work.class > Class::Urgent && self.die(work) == die;
        self.all().any(|(_, work)| waits(work))
    }

    fn begin(&mut self, id: Id) {
        let die = self.die(self.work(id));
        let urgent = self.work(id).class == Class::Urgent;
        self.set(id, State::OnDie);
        let others = self.others_queue(die);
        let overtakes = self.overtakes.entry(die).or_default();
        match (urgent, others) {
            (false, _) => *overtakes = 0,
            (true, true) => *overtakes += 1,
            (true, false) => {}
        }
        self.take_along(id);
        self.run_phase(id);
    }

    fn run_phase(&mut self, id: Id) {
        let work = self.work(id);
        let channel = self.channel(work);
        let holds = |other: &Work| {
            matches!(other.state, State::Running(_))
                && matches!(other.phases[0], Phase::Bus(_))
                && self.channel(other) == channel
        };
        let state = match work.phases[0] {
            Phase::Array(ns) => State::Running(self.now + ns),
            Phase::Bus(_) if self.all().any(|(_, other)| holds(other)) => State::OnDie,
            Phase::Bus(ns) => State::Running(self.now + ns),
        };
        self.set(id, state);
        self.go_ahead(self.die(self.work(id)));
    }

    /// When the next phase ends, and of which work.
    fn next(&self) -> Option<(u64, Id)> {
        let running = self.all().filter_map(|(id, work)| match work.state {
            State::Running(end) => Some((end, work.since, id)),
            _ => None,
        });
        running.min().map(|(end, _, id)| (end, id))
    }

    pub(super) fn run_until(&mut self, until: u64) {
        while let Some((end, id)) = self.next().filter(|(end, _)| *end <= until) {
            self.now = end;
            self.end_phase(id);
        }
        self.now = until;
    }

    fn end_phase(&mut self, id: Id) {
        let ended = self.strands.get_mut(&id.0).unwrap()[id.1].phases.remove(0);
        let channel = self.channel(self.work(id));
        // Not what waits for the channel, nor what holds it.
        self.set(id, State::Later);
        if let Phase::Bus(_) = ended
            && let Some(next) = self.first(|work| work.state == State::OnDie && self.channel(work) == channel)
        {
            self.run_phase(next);
        }
        let die = self.die(self.work(id));
        let in_phase = |array| {
            let is = |work: &Work| matches!(work.phases[0], Phase::Array(_)) == array;
            self.holders(die).any(|(_, work)| is(work))
        };
        match self.work(id).phases.first() {
            None => {
                self.set(id, State::Done);
                self.finish(id);
            }
            Some(Phase::Array(_)) if in_phase(true) => self.set(id, State::Loaded),
            Some(Phase::Bus(_)) if self.work(id).reads && in_phase(false) => self.set(id, State::Full),
            Some(_) => self.run_phase(id),
        }
    }

    /// Frees the die, and lets go what waited for the work.
    fn finish(&mut self, id: Id) {
        let die = self.die(self.work(id));
        let left: Vec<_> = self.holders(die).map(|(id, work)| (id, work.state)).collect();
        match left[..] {
            [(next, State::Loaded | State::Full)] => self.run_phase(next),
            [_, ..] => {}
            [] => match self.next_on(die) {
                Some(next) => self.begin(next),
                None if self.limits.write_queues_per_channel > 0 => {
                    [false, true].into_iter().for_each(|erases| self.serve(self.write_queue(die, erases)));
                }
                None => {}
            },
        }
        self.let_go(id);
        for other in self.groups.remove(&id).unwrap_or_default() {
            self.set(other, State::Done);
            self.let_go(other);
        }
    }

    fn let_go(&mut self, id: Id) {
        let Work { block, erases, reads, .. } = *self.work(id);
        if reads && self.limits.read_queue_dies > 0 {
            let queue = self.read_queue(self.work(id));
            let behind = |work: &Work| work.state == State::Behind && work.reads && self.read_queue(work) == queue;
            if let Some(next) = self.first(behind) {
                self.hand_over(next);
            }
        }
        if erases {
            self.erases.get_mut(&block).unwrap().1 += 1;
            let over = self.erases[&block].1;
            let freed = |work: &Work| work.state == State::Parked && work.block == block && work.needs <= over;
            while let Some(next) = self.first(freed) {
                self.issue(next);
            }
        }
        self.go_on(id.0);
        let gated: Vec<_> = self.gates.iter().filter(|(_, gate)| **gate == id).map(|(token, _)| *token).collect();
        for token in gated {
            self.gates.remove(&token);
            self.go_on(token);
        }
    }
}
