//! The threads: workers with a queue each, collectors, and one that looks at the clock.
//!
//! 1. A request of one page is served by the thread that brings it, as long as fewer threads work
//!    than there are workers. Else, and for every page of a longer request, it goes to the queue of
//!    a worker: pages of one address always to the same queue.
//! 2. A flush gives each worker a share of the buffers, behind what is in its queue.
//! 3. Collectors look for banks that are short of free blocks. Under [`Policy::Adaptive`] the first
//!    is the master: it wakes as many others as [`collectors_allowed`] says.

use crate::engine::Engine;
use crate::error::LftlError;
use crate::policy::{Policy, collectors_allowed};
use nand::{Lpn, Nand};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How many threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    /// Workers, at least 1, each with a queue.
    pub workers: u32,
    /// Collectors at most; none if writers collect ([`Policy::WritePath`]).
    pub collectors: u32,
}

/// How often the clock is looked at.
const TICK: Duration = Duration::from_millis(100);
/// How long a collector that found nothing to do waits before it looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// An engine with its threads. All methods may be called from any thread.
///
/// Dropping it stops the threads and saves nothing; [`Server::shut_down`] saves.
pub struct Server<N: Nand<Payload = [u8]> + 'static> {
    shared: Arc<Shared<N>>,
    queues: Vec<Sender<Job>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared<N> {
    engine: Engine<N>,
    threads: Threads,
    /// Threads that serve a request.
    busy: AtomicU32,
    stop: AtomicBool,
    /// Wakes collectors and the clock.
    bell: (Mutex<()>, Condvar),
}

/// A page of a request, or a share of a flush, on its way to a worker.
struct Job {
    work: Work,
    done: Arc<Done>,
}

enum Work {
    Write {
        lpn: Lpn,
        at: usize,
        data: Arc<[u8]>,
        from: usize,
        bytes: usize,
    },
    Read {
        lpn: Lpn,
        at: usize,
        from: usize,
        bytes: usize,
    },
    Flush {
        buffers: Vec<usize>,
    },
    /// The last that a worker does.
    Stop,
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
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

impl<N: Nand<Payload = [u8]> + 'static> Server<N> {
    /// Starts the threads of an engine.
    ///
    /// # Errors
    /// [`LftlError::Unsupported`] if there is no worker, if collectors are asked for that the
    /// policy does not have, or lacks, and if the system has no more threads.
    pub fn start(engine: Engine<N>, threads: Threads) -> Result<Self, LftlError> {
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
            busy: AtomicU32::new(0),
            stop: AtomicBool::new(false),
            bell: Default::default(),
        });
        let mut server = Self { shared, queues: Vec::new(), threads: Mutex::default() };
        for index in 0..threads.workers {
            let (queue, jobs) = channel();
            server.queues.push(queue);
            server.spawn(format!("worker {index}"), move |shared| shared.work(&jobs))?;
        }
        for index in 0..threads.collectors {
            server.spawn(format!("collector {index}"), move |shared| shared.collect(index))?;
        }
        server.spawn("clock".to_owned(), |shared| shared.watch_clock())?;
        Ok(server)
    }

    fn spawn(&mut self, name: String, run: impl FnOnce(&Shared<N>) + Send + 'static) -> Result<(), LftlError> {
        let shared = Arc::clone(&self.shared);
        let failed = |error| LftlError::Unsupported { reason: format!("a thread could not be started: {error}") };
        let thread = thread::Builder::new().name(name).spawn(move || run(&shared)).map_err(failed)?;
        lock(&self.threads).push(thread);
        Ok(())
    }

    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &Engine<N> {
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
            return self.shared.guarded(|engine| engine.read(piece.lpn, piece.at, out));
        }
        let done = Done::new(pieces.len());
        for Piece { lpn, at, from, bytes } in pieces {
            self.send(lpn, Work::Read { lpn, at, from, bytes }, &done)?;
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
            return self.shared.guarded(|engine| engine.write(piece.lpn, piece.at, data));
        }
        let (done, data) = (Done::new(pieces.len()), Arc::<[u8]>::from(data));
        for Piece { lpn, at, from, bytes } in pieces {
            self.send(lpn, Work::Write { lpn, at, data: Arc::clone(&data), from, bytes }, &done)?;
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
            let shares: Vec<&[usize]> = dirty.chunks(dirty.len().div_ceil(self.queues.len())).collect();
            let done = Done::new(shares.len());
            for (queue, share) in (0..).zip(&shares) {
                self.send(Lpn(queue), Work::Flush { buffers: share.to_vec() }, &done)?;
            }
            done.wait()?;
        }
        self.shared.guarded(Engine::flush)
    }

    /// Threads that serve requests.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.queues.len()
    }

    fn send(&self, lpn: Lpn, work: Work, done: &Arc<Done>) -> Result<(), LftlError> {
        let queue = &self.queues[lpn.index() % self.queues.len()];
        let job = Job { work, done: Arc::clone(done) };
        queue.send(job).map_err(|_| self.engine().fail("a worker has ended".to_owned()))
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
        let done = Done::new(self.queues.len());
        for queue in &self.queues {
            // One that has ended has told the engine.
            let _ = queue.send(Job { work: Work::Stop, done: Arc::clone(&done) });
        }
        self.shared.bell.1.notify_all();
        for thread in lock(&self.threads).drain(..) {
            let _ = thread.join();
        }
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
    pub fn shut_down(self) -> Result<Vec<N>, LftlError> {
        self.close()?;
        let shared = Arc::clone(&self.shared);
        drop(self);
        match Arc::try_unwrap(shared) {
            Ok(shared) => Ok(shared.engine.into_devices()),
            Err(shared) => Err(shared.engine.fail("the engine is still in use".to_owned())),
        }
    }
}

impl<N: Nand<Payload = [u8]> + 'static> Drop for Server<N> {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A thread that serves a request, until this is dropped.
struct Turn<'a>(&'a AtomicU32);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl<N: Nand<Payload = [u8]>> Shared<N> {
    /// A turn for a thread that is no worker, if not all turns are taken.
    fn turn(&self) -> Option<Turn<'_>> {
        let taken = |busy: u32| (busy < self.threads.workers).then_some(busy + 1);
        self.busy.fetch_update(Ordering::AcqRel, Ordering::Relaxed, taken).ok().map(|_| Turn(&self.busy))
    }

    /// Does something with the engine. A panic in there ends the writes, not the thread.
    fn guarded<T>(&self, act: impl FnOnce(&Engine<N>) -> Result<T, LftlError>) -> Result<T, LftlError> {
        let defect = |_| Err(self.engine.fail("a request met a defect of the program".to_owned()));
        catch_unwind(AssertUnwindSafe(|| act(&self.engine))).unwrap_or_else(defect)
    }

    fn work(&self, jobs: &Receiver<Job>) {
        while let Ok(Job { work, done }) = jobs.recv() {
            if matches!(work, Work::Stop) {
                return;
            }
            self.busy.fetch_add(1, Ordering::AcqRel);
            let turn = Turn(&self.busy);
            let result = self.guarded(|engine| match work {
                Work::Write { lpn, at, data, from, bytes } => {
                    engine.write(lpn, at, &data[from..from + bytes]).map(|()| None)
                }
                Work::Read { lpn, at, from, bytes } => {
                    let mut out = vec![0; bytes];
                    engine.read(lpn, at, &mut out).map(|()| Some((from, out)))
                }
                Work::Stop => Ok(None),
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
            let allowed = match self.engine.options.policy {
                Policy::Adaptive => {
                    let active = self.busy.load(Ordering::Relaxed);
                    collectors_allowed(active, self.threads.workers, self.threads.collectors)
                }
                _ => self.threads.collectors,
            };
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
            drop(self.bell.1.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Writes out buffers that are idle, and checkpoints that are due.
    fn watch_clock(&self) {
        let begin = Instant::now();
        while !self.stop.load(Ordering::Acquire) {
            let now_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
            if self.engine.check_writable().is_ok() {
                // An error shows in the next write, too.
                let _ = self.guarded(|engine| engine.flush_idle(now_ms));
                let _ = self.guarded(Engine::checkpoint_if_due);
            }
            self.sleep(TICK);
        }
    }
}
