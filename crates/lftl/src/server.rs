//! The threads: workers with a queue each, collectors, and one that looks at the clock.
//!
//! 1. A request of one page is served by the thread that brings it, as long as fewer threads work
//!    than there are workers and nothing waits in a queue. Else, and for every page of a longer
//!    request, it goes to the queue of a worker: of one that has nothing to do, if there is one.
//! 2. A worker serves its own queue, then those of others. No more threads serve requests at a time
//!    than there are workers.
//! 3. A flush gives each worker a share of the buffers.
//! 4. Collectors look for banks that are short of free blocks. Under [`Policy::Adaptive`] the first
//!    is the master: it wakes as many others as [`Policy::collectors`] says.

use crate::clock;
use crate::devices::Devices;
use crate::engine::Engine;
use crate::error::LftlError;
use crate::sync::{Condvar, Handle, Mutex, lock, spawn};
use ftl::victim::by_bank::Policy;
use nand::Lpn;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

/// How many threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    /// Workers, at least 1, each with a queue.
    pub workers: u32,
    /// Collectors at most; none if writers collect ([`Policy::WritePath`]).
    pub collectors: u32,
}

/// The time that requests take besides what they do with flash, for each page, and in proportion
/// for parts of one. For simulations: of computing nothing else shows on their clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnTime {
    /// Of reading a page, where one thread passes at a time.
    pub read_alone: Duration,
    /// Of writing a page, where one thread passes at a time.
    pub write_alone: Duration,
    /// Of reading a page, beside other threads.
    pub read: Duration,
    /// Of writing a page, beside other threads.
    pub write: Duration,
    /// The seed of chance, if the time of one thread at a time varies: exponentially, around the
    /// mean that is given. `None` if it is the same each time.
    pub varies: Option<u64>,
}

/// How often the clock is looked at.
const TICK: Duration = Duration::from_millis(100);
/// How long a collector that found nothing to do waits before it looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// An engine with its threads. All methods may be called from any thread.
///
/// Dropping it stops the threads and saves nothing; [`Server::shut_down`] saves.
pub struct Server {
    shared: Arc<Shared>,
    threads: Mutex<Vec<Handle>>,
}

struct Shared {
    engine: Engine,
    threads: Threads,
    own: OwnTime,
    /// The stage of a request that one thread passes at a time, and the state of its chance.
    stage: Mutex<u64>,
    queues: Vec<Queue>,
    /// Where the search for a worker with nothing to do begins.
    cursor: AtomicUsize,
    /// Jobs that no worker has begun.
    waiting: AtomicUsize,
    /// Threads that serve a request. Changed under [`Shared::turns`].
    busy: AtomicU32,
    /// Workers wait here for one of them to end.
    turns: (Mutex<()>, Condvar),
    stop: AtomicBool,
    /// Wakes collectors and the clock.
    bell: (Mutex<()>, Condvar),
}

/// The jobs of a worker.
#[derive(Default)]
struct Queue {
    jobs: Mutex<VecDeque<Job>>,
    filled: Condvar,
    /// The worker has nothing to do. Who gives it a job takes this back.
    idle: AtomicBool,
}

/// A page of a request, or a share of a flush, on its way to a worker.
struct Job {
    work: Work,
    done: Arc<Done>,
}

enum Work {
    Write { lpn: Lpn, at: usize, data: Arc<[u8]>, from: usize, bytes: usize },
    Read { lpn: Lpn, at: usize, from: usize, bytes: usize },
    Flush { buffers: Vec<usize> },
}

impl Work {
    /// Bytes that are read, and that are written.
    fn bytes(&self) -> (usize, usize) {
        match self {
            Self::Write { bytes, .. } => (0, *bytes),
            Self::Read { bytes, .. } => (*bytes, 0),
            Self::Flush { .. } => (0, 0),
        }
    }
}

/// What a request waits for.
#[derive(Default)]
struct Done {
    state: Mutex<Outcome>,
    changed: Condvar,
}

#[derive(Default)]
struct Outcome {
    left: usize,
    error: Option<LftlError>,
    /// What was read, by its place in the request.
    read: Vec<(usize, Vec<u8>)>,
}

impl Done {
    fn new(left: usize) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(Outcome { left, ..Outcome::default() }), changed: Condvar::new() })
    }

    fn end(&self, result: Result<Option<(usize, Vec<u8>)>, LftlError>) {
        let mut state = lock(&self.state);
        state.left -= 1;
        match result {
            Ok(read) => state.read.extend(read),
            Err(error) => drop(state.error.get_or_insert(error)),
        }
        if state.left == 0 {
            self.changed.notify_all();
        }
    }

    fn wait(&self) -> Result<Vec<(usize, Vec<u8>)>, LftlError> {
        let mut state = lock(&self.state);
        while state.left > 0 {
            state = self.changed.wait(state);
        }
        match state.error.take() {
            Some(error) => Err(error),
            None => Ok(std::mem::take(&mut state.read)),
        }
    }
}

/// A part of a request that lies in one page.
struct Piece {
    lpn: Lpn,
    at: usize,
    from: usize,
    bytes: usize,
}

impl Server {
    /// Starts the threads of an engine.
    ///
    /// # Errors
    /// [`LftlError::Unsupported`] if there is no worker, if collectors are asked for that the
    /// policy does not have, or lacks, and if the system has no more threads.
    pub fn start(engine: Engine, threads: Threads) -> Result<Self, LftlError> {
        Self::start_with(engine, threads, OwnTime::default())
    }

    /// As [`Server::start`], of an FTL that takes some time of its own.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn start_with(engine: Engine, threads: Threads, own: OwnTime) -> Result<Self, LftlError> {
        let collects = engine.options.policy != Policy::WritePath;
        let reason = match threads {
            Threads { workers: 0, .. } => "there is no worker; ask for at least 1",
            Threads { collectors: 1.., .. } if !collects => "under npgc writers collect; leave the collectors out",
            Threads { collectors: 0, .. } if collects => "there is no collector; ask for at least 1, or for npgc",
            _ => "",
        };
        if !reason.is_empty() {
            return Err(LftlError::Unsupported { reason: reason.to_owned() });
        }
        let shared = Arc::new(Shared {
            engine,
            threads,
            own,
            stage: Mutex::new(own.varies.unwrap_or_default()),
            queues: (0..threads.workers).map(|_| Queue::default()).collect(),
            cursor: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            busy: AtomicU32::new(0),
            turns: Default::default(),
            stop: AtomicBool::new(false),
            bell: Default::default(),
        });
        let server = Self { shared, threads: Mutex::default() };
        for index in 0..threads.workers {
            server.spawn(format!("worker {index}"), move |shared| shared.work(index as usize))?;
        }
        for index in 0..threads.collectors {
            server.spawn(format!("collector {index}"), move |shared| shared.collect(index))?;
        }
        server.spawn("clock".to_owned(), |shared| shared.watch_clock())?;
        Ok(server)
    }

    fn spawn(&self, name: String, run: impl FnOnce(&Shared) + Send + 'static) -> Result<(), LftlError> {
        let shared = Arc::clone(&self.shared);
        let failed = |error| LftlError::Unsupported { reason: format!("a thread could not be started: {error}") };
        let thread = spawn(name, move || run(&shared)).map_err(failed)?;
        lock(&self.threads).push(thread);
        Ok(())
    }

    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    /// Size of the disk in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        u64::from(self.engine().logical_pages()) * self.engine().page_bytes() as u64
    }

    /// Reads a range that lies inside the disk.
    ///
    /// # Errors
    /// As [`Engine::read`].
    pub fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), LftlError> {
        let pieces = self.pieces(offset, out.len());
        if let [piece] = &pieces[..]
            && let Some(_turn) = self.shared.turn()
        {
            self.shared.own.spend(&self.shared.stage, (out.len(), 0), self.engine().page_bytes());
            return self.shared.guarded(|engine| engine.read(piece.lpn, piece.at, out));
        }
        let done = Done::new(pieces.len());
        for Piece { lpn, at, from, bytes } in pieces {
            self.shared.send(Work::Read { lpn, at, from, bytes }, &done)?;
        }
        for (from, data) in done.wait()? {
            out[from..from + data.len()].copy_from_slice(&data);
        }
        Ok(())
    }

    /// Writes a range that lies inside the disk.
    ///
    /// **Power loss**: as [`Engine::write`], sector by sector.
    ///
    /// # Errors
    /// As [`Engine::write`]; other pages of the range may have been written.
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<(), LftlError> {
        let pieces = self.pieces(offset, data.len());
        if let [piece] = &pieces[..]
            && let Some(_turn) = self.shared.turn()
        {
            self.shared.own.spend(&self.shared.stage, (0, data.len()), self.engine().page_bytes());
            return self.shared.guarded(|engine| engine.write(piece.lpn, piece.at, data));
        }
        let (done, data) = (Done::new(pieces.len()), Arc::<[u8]>::from(data));
        for Piece { lpn, at, from, bytes } in pieces {
            self.shared.send(Work::Write { lpn, at, data: Arc::clone(&data), from, bytes }, &done)?;
        }
        done.wait().map(|_| ())
    }

    /// Makes everything that completed before survive power loss.
    ///
    /// # Errors
    /// As [`Engine::flush`].
    pub fn flush(&self) -> Result<(), LftlError> {
        let dirty = self.engine().dirty_buffers();
        if dirty.len() > 1 {
            let shares: Vec<&[usize]> = dirty.chunks(dirty.len().div_ceil(self.workers())).collect();
            let done = Done::new(shares.len());
            for share in &shares {
                self.shared.send(Work::Flush { buffers: share.to_vec() }, &done)?;
            }
            done.wait()?;
        }
        self.shared.guarded(Engine::flush)
    }

    /// Threads that serve requests.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.shared.queues.len()
    }

    fn pieces(&self, offset: u64, bytes: usize) -> Vec<Piece> {
        let page = self.engine().page_bytes();
        let mut pieces = Vec::with_capacity(bytes / page + 2);
        let mut from = 0;
        while from < bytes {
            let position = offset + from as u64;
            let at = (position % page as u64) as usize;
            let length = (page - at).min(bytes - from);
            let lpn = Lpn(u32::try_from(position / page as u64).unwrap_or(u32::MAX));
            pieces.push(Piece { lpn, at, from, bytes: length });
            from += length;
        }
        pieces
    }

    fn stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
        for queue in &self.shared.queues {
            // Behind the lock, so that nobody who saw no stop begins to wait after this.
            drop(lock(&queue.jobs));
            queue.filled.notify_all();
        }
        drop(lock(&self.shared.bell.0));
        self.shared.bell.1.notify_all();
        let threads: Vec<Handle> = lock(&self.threads).drain(..).collect();
        threads.into_iter().for_each(Handle::join);
    }

    /// Stops the threads, writes everything out and saves the page table: the next mount reads a
    /// bounded number of blocks. No request may be under way; writes that follow are refused.
    ///
    /// # Errors
    /// As [`Engine::flush`].
    pub fn close(&self) -> Result<(), LftlError> {
        self.stop();
        let closed = match self.engine().check_writable() {
            Ok(()) => self.shared.guarded(Engine::close),
            // It can be read only, and is saved as far as it could be.
            Err(LftlError::NoSpace(_)) => Ok(()),
            Err(error) => Err(error),
        };
        self.engine().fail("the disk was closed".to_owned());
        closed
    }

    /// As [`Server::close`]; gives the devices back.
    ///
    /// # Errors
    /// As [`Engine::flush`].
    pub fn shut_down(self) -> Result<Devices, LftlError> {
        self.close()?;
        let shared = Arc::clone(&self.shared);
        drop(self);
        match Arc::try_unwrap(shared) {
            Ok(shared) => Ok(shared.engine.into_devices()),
            Err(shared) => Err(shared.engine.fail("the engine is still in use".to_owned())),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

impl OwnTime {
    /// Lets the time pass of a request that reads and writes so many bytes.
    fn spend(&self, stage: &Mutex<u64>, (read, written): (usize, usize), page_bytes: usize) {
        let of = |read_time: Duration, write_time: Duration| {
            let part = |time: Duration, bytes: usize| time.as_nanos() as u64 * bytes as u64 / page_bytes as u64;
            Duration::from_nanos(part(read_time, read) + part(write_time, written))
        };
        let (alone, beside) = (of(self.read_alone, self.write_alone), of(self.read, self.write));
        if !alone.is_zero() {
            let mut state = lock(stage);
            clock::sleep(if self.varies.is_some() { alone.mul_f64(exponential(&mut state)) } else { alone });
        }
        if !beside.is_zero() {
            clock::sleep(beside);
        }
    }
}

/// An exponentially distributed number of mean 1, from the next number of SplitMix64.
fn exponential(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    let uniform = (((z ^ z >> 31) >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    -uniform.ln()
}

/// A thread that serves a request, until this is dropped.
struct Turn<'a>(&'a Shared);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::AcqRel);
        if self.0.waiting.load(Ordering::Acquire) > 0 {
            drop(lock(&self.0.turns.0));
            self.0.turns.1.notify_one();
        }
    }
}

impl Shared {
    fn try_turn(&self) -> Option<Turn<'_>> {
        let taken = |busy: u32| (busy < self.threads.workers).then_some(busy + 1);
        self.busy.fetch_update(Ordering::AcqRel, Ordering::Relaxed, taken).ok().map(|_| Turn(self))
    }

    /// A turn for a thread that is no worker, if not all turns are taken and nobody waits for one.
    fn turn(&self) -> Option<Turn<'_>> {
        if self.waiting.load(Ordering::Acquire) > 0 { None } else { self.try_turn() }
    }

    /// A turn for a worker that has a job, which is counted among those that wait.
    fn next_turn(&self) -> Turn<'_> {
        let mut guard = None;
        loop {
            if let Some(turn) = self.try_turn() {
                self.waiting.fetch_sub(1, Ordering::AcqRel);
                return turn;
            }
            // Looked at again behind the lock: who ends a turn takes it before he tells.
            guard = match guard.take() {
                None => Some(lock(&self.turns.0)),
                Some(guard) => Some(self.turns.1.wait(guard)),
            };
        }
    }

    /// Does something with the engine. A panic in there ends the writes, not the thread.
    fn guarded<T>(&self, act: impl FnOnce(&Engine) -> Result<T, LftlError>) -> Result<T, LftlError> {
        let defect = |_| Err(self.engine.fail("a request met a defect of the program".to_owned()));
        catch_unwind(AssertUnwindSafe(|| act(&self.engine))).unwrap_or_else(defect)
    }

    /// Gives a job to a worker that has nothing to do, or to the next one.
    fn send(&self, work: Work, done: &Arc<Done>) -> Result<(), LftlError> {
        let (count, start) = (self.queues.len(), self.cursor.fetch_add(1, Ordering::Relaxed));
        let at = |step: usize| start.wrapping_add(step) % count;
        let idle = (0..count).map(at).find(|index| {
            let queue = &self.queues[*index];
            queue.idle.load(Ordering::Relaxed) && queue.idle.swap(false, Ordering::AcqRel)
        });
        let queue = &self.queues[idle.unwrap_or(at(0))];
        let mut jobs = lock(&queue.jobs);
        if self.stop.load(Ordering::Acquire) {
            return Err(self.engine.fail("the workers have ended".to_owned()));
        }
        self.waiting.fetch_add(1, Ordering::AcqRel);
        jobs.push_back(Job { work, done: Arc::clone(done) });
        drop(jobs);
        queue.filled.notify_one();
        Ok(())
    }

    /// The next job of a worker: of its own queue, else of another; `None` at the end.
    fn next_job(&self, index: usize) -> Option<Job> {
        let (own, count) = (&self.queues[index], self.queues.len());
        loop {
            let found = (0..count).find_map(|step| lock(&self.queues[(index + step) % count].jobs).pop_front());
            if found.is_some() {
                own.idle.store(false, Ordering::Release);
                return found;
            }
            let jobs = lock(&own.jobs);
            if !jobs.is_empty() {
                continue;
            }
            if self.stop.load(Ordering::Acquire) {
                return None;
            }
            own.idle.store(true, Ordering::Release);
            drop(own.filled.wait(jobs));
        }
    }

    fn work(&self, index: usize) {
        while let Some(Job { work, done }) = self.next_job(index) {
            let turn = self.next_turn();
            self.own.spend(&self.stage, work.bytes(), self.engine.page_bytes());
            let result = self.guarded(|engine| match work {
                Work::Write { lpn, at, data, from, bytes } => {
                    engine.write(lpn, at, &data[from..from + bytes]).map(|()| None)
                }
                Work::Read { lpn, at, from, bytes } => {
                    let mut out = vec![0; bytes];
                    engine.read(lpn, at, &mut out).map(|()| Some((from, out)))
                }
                Work::Flush { buffers } => {
                    buffers.into_iter().try_for_each(|index| engine.flush_buffer(index)).map(|()| None)
                }
            });
            drop(turn);
            done.end(result);
        }
    }

    fn collect(&self, index: u32) {
        while !self.stop.load(Ordering::Acquire) {
            let Threads { workers, collectors } = self.threads;
            let active = self.busy.load(Ordering::Relaxed);
            let allowed = self.engine.options.policy.collectors(active, workers, collectors);
            if index >= allowed {
                self.sleep(TICK);
                continue;
            }
            // An error shows in the next write, too.
            if self.engine.check_writable().is_err() || !self.guarded(Engine::collect_round).unwrap_or(false) {
                self.sleep(LOOK_AGAIN);
            } else if index == 0 && allowed > 1 {
                self.bell.1.notify_all();
            }
        }
    }

    fn sleep(&self, time: Duration) {
        let guard = lock(&self.bell.0);
        if !self.stop.load(Ordering::Acquire) {
            drop(self.bell.1.wait_timeout(guard, time));
        }
    }

    /// Writes out buffers that are idle, and checkpoints that are due.
    fn watch_clock(&self) {
        let begin = clock::now();
        while !self.stop.load(Ordering::Acquire) {
            let now_ms = u64::try_from(clock::now().saturating_sub(begin).as_millis()).unwrap_or(u64::MAX);
            if self.engine.check_writable().is_ok() {
                // An error shows in the next write, too.
                let _ = self.guarded(|engine| engine.flush_idle(now_ms));
                let _ = self.guarded(Engine::checkpoint_if_due);
            }
            self.sleep(TICK);
        }
    }
}
