//! Threads that do parts of requests, and what becomes of a request once all its parts are done.
//!
//! 1. A device of several lanes has a thread for each. A thread does the parts of its lane in the
//!    order in which they arrived, whichever connection they are of. So requests of one connection
//!    are done side by side, and a lane that is busy keeps no other waiting.
//! 2. The thread that reads a request does a part itself if nothing else is to be done in that
//!    lane, and if parts there have been short: to wake another would take longer.
//! 3. A device of one lane has no thread: the thread that reads a request does it.
//! 4. One more thread waits for media ([`BlockDevice::sync`]), and does what spans lanes.
//! 5. A flush settles every lane and then syncs. A request with FUA is done, then synced; one that
//!    forgets pages settles every lane between.

use super::channel::{Channel, SEND_AT};
use super::protocol::{STATE_HOLE, STATE_ZERO, command, errno, flag};
use super::reply;
use super::request::{Failure, Request};
use super::socket::Gone;
use crate::contract::{BlockDevice, DiskError, Settling, Zeroing};
use crate::log::{Log, Severity};
use crate::stats::Op;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a reply may wait for others, so that one system call carries several.
const HOLD: Duration = Duration::from_micros(50);
/// Parts that take no longer than this on the average are short. To wake a thread takes about as
/// long.
const SHORT: Duration = Duration::from_micros(50);
/// The last part has one over this of the average, so that one collection of garbage among short
/// parts changes little.
const SMOOTHING: u64 = 64;
/// Extents in a reply; a client that wants more asks again.
const EXTENTS_MAX: usize = 4096;
/// Buffers larger than this are given back.
const KEPT_BYTES: usize = 1 << 20;

/// How a read is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// It has one part, which makes the reply. What is no read is answered so too.
    One,
    /// Each part makes a chunk.
    Chunks,
    /// Parts are put together first.
    Whole,
}

/// How far a request is.
const DOING: u8 = 0;
const SETTLING: u8 = 1;
const SYNCING: u8 = 2;

/// A request under way.
pub(super) struct Ticket {
    channel: Arc<Channel>,
    request: Request,
    begin: Instant,
    form: Form,
    /// Parts that are not done; one more while parts are still to come.
    left: AtomicUsize,
    step: AtomicU8,
    /// The first part that failed.
    failure: Mutex<Option<Failure>>,
    /// The data of [`Form::Whole`].
    whole: Mutex<Option<Vec<u8>>>,
}

impl Ticket {
    /// A request of which parts are to come.
    pub(super) fn new(channel: &Arc<Channel>, request: Request, begin: Instant, form: Form) -> Self {
        Self {
            channel: Arc::clone(channel),
            request,
            begin,
            form,
            left: AtomicUsize::new(1),
            step: AtomicU8::new(DOING),
            failure: Mutex::new(None),
            whole: Mutex::new(None),
        }
    }

    pub(super) fn form(&self) -> Form {
        self.form
    }

    /// Takes memory for a read that was admitted as a whole.
    pub(super) fn hold(&self) {
        *locked(&self.whole) = Some(vec![0; self.request.bytes as usize]);
    }

    /// Makes its answer an error, unless it is one.
    pub(super) fn fail(&self, failure: Failure) {
        locked(&self.failure).get_or_insert(failure);
    }

    /// Whether its answer will be an error.
    pub(super) fn failed(&self) -> bool {
        locked(&self.failure).is_some()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is done in one go.
pub(super) enum Work<'a> {
    /// Reads a range of one lane.
    Read {
        offset: u64,
        bytes: u32,
    },
    /// Writes a range of one lane.
    Write {
        offset: u64,
        data: Cow<'a, [u8]>,
    },
    /// Writes zeros to a range of one lane.
    Zero {
        offset: u64,
        bytes: u64,
    },
    /// All that the request asks, whatever lanes it touches.
    All,
    Settle,
    Sync,
}

/// Where a part is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Lane(usize),
    /// Beside the lanes.
    Aside,
}

/// A part of a request.
struct Part<'a> {
    ticket: Arc<Ticket>,
    work: Work<'a>,
    lane: usize,
    /// Bytes that [`Channel::admit`] counted for it; `None` if it was not called.
    held: Option<usize>,
}

impl Part<'_> {
    /// The same, with its own copy of the data.
    fn owned(self) -> Part<'static> {
        let work = match self.work {
            Work::Write { offset, data } => Work::Write { offset, data: Cow::Owned(data.into_owned()) },
            Work::Read { offset, bytes } => Work::Read { offset, bytes },
            Work::Zero { offset, bytes } => Work::Zero { offset, bytes },
            Work::All => Work::All,
            Work::Settle => Work::Settle,
            Work::Sync => Work::Sync,
        };
        Part { ticket: self.ticket, work, lane: self.lane, held: self.held }
    }
}

#[derive(Default)]
struct Queue {
    state: Mutex<(VecDeque<Part<'static>>, bool)>,
    wake: Condvar,
}

impl Queue {
    fn push(&self, part: Part<'static>) {
        locked(&self.state).0.push_back(part);
        self.wake.notify_one();
    }

    /// Waits for parts and exchanges them for `none`; `false` at the end.
    fn take(&self, none: &mut VecDeque<Part<'static>>) -> bool {
        let mut state = locked(&self.state);
        while state.0.is_empty() {
            if state.1 {
                return false;
            }
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::swap(&mut state.0, none);
        true
    }

    fn close(&self) {
        locked(&self.state).1 = true;
        self.wake.notify_one();
    }
}

/// A lane with a thread.
struct Lane {
    queue: Queue,
    /// Parts that are not done.
    pending: AtomicUsize,
    /// How long a part takes on the average.
    mean_ns: AtomicU64,
}

impl Lane {
    fn new() -> Self {
        // Parts have to show that they are short.
        let mean_ns = AtomicU64::new(1_000_000);
        Self { queue: Queue::default(), pending: AtomicUsize::new(0), mean_ns }
    }

    /// Whether the caller is to do a part itself; it counts as pending then.
    fn is_free(&self) -> bool {
        let short = self.mean_ns.load(Ordering::Relaxed) <= SHORT.as_nanos() as u64;
        short && self.pending.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    fn push(&self, part: Part<'static>) {
        self.pending.fetch_add(1, Ordering::Relaxed);
        self.queue.push(part);
    }

    /// Ends a part that began then. Threads that do so at once may leave one of their times out.
    fn ended(&self, begin: Instant) {
        let (mean, took) = (self.mean_ns.load(Ordering::Relaxed), begin.elapsed().as_nanos() as u64);
        self.mean_ns.store(mean - mean / SMOOTHING + took / SMOOTHING, Ordering::Relaxed);
        self.pending.fetch_sub(1, Ordering::Release);
    }
}

/// The threads of a server, and the device that they serve.
pub(super) struct Crew {
    device: Arc<dyn BlockDevice>,
    log: Arc<dyn Log>,
    /// One for each lane if there are several.
    lanes: Vec<Lane>,
    aside: Queue,
}

impl Crew {
    pub(super) fn new(device: Arc<dyn BlockDevice>, log: Arc<dyn Log>) -> Self {
        let lanes = if device.lanes() > 1 { device.lanes() } else { 0 };
        Self { device, log, lanes: (0..lanes).map(|_| Lane::new()).collect(), aside: Queue::default() }
    }

    pub(super) fn device(&self) -> &dyn BlockDevice {
        self.device.as_ref()
    }

    /// Whether lanes have threads: if not, whoever hands a part over does it.
    pub(super) fn is_apart(&self) -> bool {
        !self.lanes.is_empty()
    }

    /// Starts the threads.
    pub(super) fn start(self: &Arc<Self>) -> io::Result<Vec<JoinHandle<()>>> {
        let names = (0..self.lanes.len()).map(|lane| (format!("lane {lane}"), Place::Lane(lane)));
        let threads = names.chain([("aside".to_owned(), Place::Aside)]).map(|(name, place)| {
            let crew = Arc::clone(self);
            thread::Builder::new().name(name).spawn(move || crew.work(place))
        });
        threads.collect::<io::Result<Vec<_>>>().inspect_err(|_| self.stop())
    }

    /// Ends the threads when they have nothing to do.
    pub(super) fn stop(&self) {
        self.lanes.iter().map(|lane| &lane.queue).chain([&self.aside]).for_each(Queue::close);
    }

    fn work(&self, place: Place) {
        let (queue, lane) = match place {
            Place::Lane(lane) => (&self.lanes[lane].queue, Some(&self.lanes[lane])),
            Place::Aside => (&self.aside, None),
        };
        let (mut parts, mut scratch) = (VecDeque::new(), Vec::new());
        let mut since = Instant::now();
        while queue.take(&mut parts) {
            while let Some(part) = parts.pop_front() {
                let channel = Arc::clone(&part.ticket.channel);
                let begin = Instant::now();
                self.perform(part, &mut scratch);
                if let Some(lane) = lane {
                    lane.ended(begin);
                }
                let next = parts.front().map(|part| &part.ticket.channel);
                let waits = next.is_some_and(|next| Arc::ptr_eq(next, &channel)) && since.elapsed() < HOLD;
                if !waits || channel.unsent() >= SEND_AT {
                    channel.send_now();
                    since = Instant::now();
                }
            }
            if scratch.capacity() > KEPT_BYTES {
                scratch = Vec::new();
            }
        }
    }

    /// Does a read or a write of one part, on a device of one lane. Answers how many bytes of
    /// replies nobody sends yet.
    pub(super) fn at_once(
        &self,
        channel: &Channel,
        request: &Request,
        begin: Instant,
        data: &[u8],
    ) -> Result<usize, Gone> {
        let structured = channel.agreed.structured;
        let (offset, bytes) = (request.offset, request.bytes);
        channel.reply(|out| {
            let start = out.len();
            let done = if request.op() == Op::Write {
                reply::simple(out, request, 0);
                self.ask(request, |device| device.write(offset, data, false))
            } else {
                match structured {
                    true => reply::data(out, request, true, offset, bytes),
                    false => reply::simple(out, request, 0),
                }
                let at = out.len();
                out.resize(at + bytes as usize, 0);
                self.ask(request, |device| device.read(offset, &mut out[at..]))
            };
            if let Err(failure) = &done {
                out.truncate(start);
                reply::error(out, request, structured, failure);
            }
            channel.meter.record(request.op(), bytes.into(), begin, done.is_err());
        })
    }

    /// Hands over a part. With `held` it was admitted with so many bytes.
    pub(super) fn give(
        &self,
        ticket: &Arc<Ticket>,
        work: Work<'_>,
        place: Place,
        held: Option<usize>,
        scratch: &mut Vec<u8>,
    ) {
        ticket.left.fetch_add(1, Ordering::Relaxed);
        let lane = if let Place::Lane(lane) = place { lane } else { 0 };
        let part = Part { ticket: Arc::clone(ticket), work, lane, held };
        match place {
            _ if !self.is_apart() => self.perform(part, scratch),
            Place::Lane(lane) if self.lanes[lane].is_free() => {
                let begin = Instant::now();
                self.perform(part, scratch);
                self.lanes[lane].ended(begin);
            }
            Place::Lane(lane) => self.lanes[lane].push(part.owned()),
            Place::Aside => self.aside.push(part.owned()),
        }
    }

    /// Says that no more parts come.
    pub(super) fn seal(&self, ticket: &Arc<Ticket>) {
        if ticket.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.complete(ticket);
        }
    }

    fn perform(&self, part: Part<'_>, scratch: &mut Vec<u8>) {
        let Part { ticket, work, lane, held } = part;
        if let Err(failure) = self.act(&ticket, work, lane, scratch) {
            ticket.fail(failure);
        }
        if let Some(bytes) = held {
            ticket.channel.release(bytes);
        }
        self.seal(&ticket);
    }

    fn act(&self, ticket: &Ticket, work: Work<'_>, lane: usize, scratch: &mut Vec<u8>) -> Result<(), Failure> {
        let request = &ticket.request;
        let kept = |device: &dyn BlockDevice, done: Result<(), DiskError>| {
            done.and_then(|()| if request.has(flag::FUA) { device.settle(lane, Settling::Writes) } else { Ok(()) })
        };
        match work {
            Work::Read { offset, bytes } => self.read(ticket, offset, bytes, scratch),
            Work::Write { offset, data } => {
                self.ask(request, |device| kept(device, device.write(offset, &data, false)))
            }
            Work::Zero { offset, bytes } => {
                self.ask(request, |device| kept(device, device.write_zeroes(offset, bytes, Zeroing::default())))
            }
            Work::All => self.all(ticket),
            Work::Settle => self.ask(request, |device| device.settle(lane, Settling::All)),
            Work::Sync => self.ask(request, |device| device.sync()),
        }
    }

    /// Asks the device; a defect of the program is an error of this request, and of no other.
    fn ask<T>(
        &self,
        request: &Request,
        act: impl FnOnce(&dyn BlockDevice) -> Result<T, DiskError>,
    ) -> Result<T, Failure> {
        match catch_unwind(AssertUnwindSafe(|| act(self.device.as_ref()))) {
            Ok(done) => done.map_err(|error| Failure::of(&error, request.command)),
            Err(_) => {
                let text =
                    format!("a defect of the program ended request {} at offset {}", request.command, request.offset);
                self.log.line(Severity::Error, &text);
                Err(Failure { errno: errno::EIO, text })
            }
        }
    }

    fn read(&self, ticket: &Ticket, offset: u64, bytes: u32, scratch: &mut Vec<u8>) -> Result<(), Failure> {
        let (request, form) = (&ticket.request, ticket.form);
        let head = |out: &mut Vec<u8>| match ticket.channel.agreed.structured {
            true => reply::data(out, request, form == Form::One, offset, bytes),
            false => reply::simple(out, request, 0),
        };
        if !self.is_apart() && form != Form::Whole {
            // Nobody else has anything to add that could not wait: data goes right to its place.
            return ticket.channel.add(|out| {
                let start = out.len();
                head(out);
                let at = out.len();
                out.resize(at + bytes as usize, 0);
                let done = self.ask(request, |device| device.read(offset, &mut out[at..]));
                if done.is_err() {
                    out.truncate(start);
                }
                done
            });
        }
        scratch.resize(bytes as usize, 0);
        self.ask(request, |device| device.read(offset, scratch))?;
        if form == Form::Whole {
            let at = (offset - request.offset) as usize;
            if let Some(whole) = locked(&ticket.whole).as_mut() {
                whole[at..at + bytes as usize].copy_from_slice(scratch);
            }
        } else {
            ticket.channel.add(|out| {
                head(out);
                out.extend_from_slice(scratch);
            });
        }
        Ok(())
    }

    /// Does what is not cut into parts.
    fn all(&self, ticket: &Ticket) -> Result<(), Failure> {
        let request = &ticket.request;
        let (offset, bytes) = (request.offset, u64::from(request.bytes));
        match request.command {
            command::TRIM => self.ask(request, |device| device.trim(offset, bytes, false)),
            command::WRITE_ZEROES => {
                let how = Zeroing { may_trim: true, only_fast: request.has(flag::FAST_ZERO), fua: false };
                self.ask(request, |device| device.write_zeroes(offset, bytes, how))
            }
            _ => {
                let most = if request.has(flag::REQ_ONE) { 1 } else { EXTENTS_MAX };
                let mut extents = Vec::new();
                self.ask(request, |device| {
                    device.extents(offset, bytes, &mut |extent| {
                        extents.push((extent.bytes as u32, if extent.hole { STATE_HOLE | STATE_ZERO } else { 0 }));
                        extents.len() < most
                    })
                })?;
                ticket.channel.add(|out| reply::extents(out, request, &extents));
                Ok(())
            }
        }
    }

    /// Goes on with a request whose parts are done.
    fn complete(&self, ticket: &Arc<Ticket>) {
        let request = &ticket.request;
        let (flush, fua) = (request.op() == Op::Flush, request.has(flag::FUA));
        let keeps = flush || fua && matches!(request.op(), Op::Write | Op::Trim | Op::Zero);
        match ticket.step.load(Ordering::Relaxed) {
            _ if !keeps || ticket.failed() => {}
            DOING if flush || request.forgets() => return self.settle(ticket),
            DOING | SETTLING => return self.sync(ticket),
            _ => {}
        }
        self.answer(ticket);
    }

    fn settle(&self, ticket: &Arc<Ticket>) {
        ticket.step.store(SETTLING, Ordering::Relaxed);
        let lanes = self.device.lanes();
        ticket.left.store(lanes, Ordering::Release);
        for lane in 0..lanes {
            let part = Part { ticket: Arc::clone(ticket), work: Work::Settle, lane, held: None };
            match self.lanes.get(lane) {
                Some(lane) => lane.push(part),
                None => self.perform(part, &mut Vec::new()),
            }
        }
    }

    fn sync(&self, ticket: &Arc<Ticket>) {
        ticket.step.store(SYNCING, Ordering::Relaxed);
        ticket.left.store(1, Ordering::Release);
        let part = Part { ticket: Arc::clone(ticket), work: Work::Sync, lane: 0, held: None };
        match self.device.sync_waits() {
            true => self.aside.push(part),
            false => self.perform(part, &mut Vec::new()),
        }
    }

    fn answer(&self, ticket: &Ticket) {
        let (request, channel) = (&ticket.request, &ticket.channel);
        let failure = locked(&ticket.failure).take();
        let structured = channel.agreed.structured;
        channel.meter.record(request.op(), request.named_bytes().into(), ticket.begin, failure.is_some());
        let whole = locked(&ticket.whole).take();
        if let Some(whole) = &whole {
            channel.release(whole.len());
        }
        channel.answer(|out| match (&failure, request.op()) {
            (Some(failure), _) => reply::error(out, request, structured, failure),
            (None, Op::Read) if ticket.form == Form::One => {}
            (None, Op::Read) if ticket.form == Form::Chunks => reply::end(out, request),
            (None, Op::Read) => {
                match structured {
                    true => reply::data(out, request, true, request.offset, request.bytes),
                    false => reply::simple(out, request, 0),
                }
                out.extend_from_slice(whole.as_deref().unwrap_or_default());
            }
            (None, Op::Other) => {}
            (None, _) => reply::simple(out, request, 0),
        });
    }
}
