//! Virtual time: the engine and its threads on a clock that only waiting moves.
//!
//! 1. [`simulate`] makes the calling thread the first of a simulation. Threads that it starts, by
//!    [`together`] or by a [`Server`](crate::Server), belong to the simulation too.
//! 2. One thread of a simulation runs at a time. It runs until it sleeps, waits for a lock or for
//!    another thread, or ends. Computing takes no time.
//! 3. The thread that may go on earliest goes on next, of several the one that was started first.
//!    The clock then shows its time. So the same program gives the same times, on any computer.
//! 4. A lock goes to the thread that has waited longest. Waiting for one costs virtual time only.
//!
//! Outside of a simulation everything here is what the standard library does, and time is real.

use crate::error::LftlError;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Simulations under way in this process: as long as there is none, nobody looks whether a thread
/// belongs to one.
static SIMULATIONS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static CURRENT: RefCell<Option<Actor>> = const { RefCell::new(None) };
    /// How much longer than asked the sleeps of this thread took.
    static LATE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Runs `act` in virtual time that begins at 0.
///
/// # Errors
/// [`LftlError::Unsupported`] inside another simulation; [`LftlError::Failed`] if every thread
/// waits for another, or if one is still there when `act` has ended.
pub fn simulate<T>(act: impl FnOnce() -> T) -> Result<T, LftlError> {
    if current().is_some() {
        return Err(LftlError::Unsupported { reason: "a simulation cannot begin inside another".to_owned() });
    }
    let world = Arc::new(World::new());
    let first = world.add();
    world.state().slots[first].handle = Some(thread::current());
    SIMULATIONS.fetch_add(1, Ordering::AcqRel);
    let result = catch_unwind(AssertUnwindSafe(|| Actor { world: Arc::clone(&world), id: first }.live(act)));
    SIMULATIONS.fetch_sub(1, Ordering::AcqRel);
    match result {
        Ok(_) | Err(_) if world.stuck.load(Ordering::Acquire) => Err(LftlError::Failed {
            reason: "threads of a simulation wait for each other, or outlive it: a defect of the program".to_owned(),
        }),
        Ok(value) => Ok(value),
        Err(panic) => resume_unwind(panic),
    }
}

/// The time since the simulation began, or since the first call in this process.
#[must_use]
pub fn now() -> Duration {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    match current() {
        Some(actor) => Duration::from_nanos(actor.world.state().now_ns),
        None => BEGIN.get_or_init(Instant::now).elapsed(),
    }
}

/// Lets time pass. Outside of a simulation a thread that was woken late sleeps less the next time,
/// so that many short sleeps take as long as they should.
pub fn sleep(time: Duration) {
    if let Some(actor) = current() {
        return actor.sleep(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }
    let (begin, late) = (Instant::now(), LATE.get());
    let left = time.saturating_sub(late);
    if !left.is_zero() {
        thread::sleep(left);
    }
    LATE.set((late + begin.elapsed()).saturating_sub(time).min(LATE_MAX));
}

/// No more than this is made up for: a thread that is woken later may have had no processor.
const LATE_MAX: Duration = Duration::from_millis(1);

/// Runs each task on a thread of its own, and gives their results in the same order.
pub fn together<T: Send, F: FnOnce() -> T + Send>(tasks: Vec<F>) -> Vec<T> {
    let parent = current();
    thread::scope(|scope| {
        let start = |task: F| {
            let child = parent.as_ref().map(Actor::child);
            let id = child.as_ref().map(|child| child.id);
            let thread = scope.spawn(move || match child {
                Some(child) => child.live(task),
                None => task(),
            });
            if let (Some(parent), Some(id)) = (&parent, id) {
                parent.world.begin(id, thread.thread().clone());
            }
            (thread, id)
        };
        let started: Vec<_> = tasks.into_iter().map(start).collect();
        let join = |(thread, id): (thread::ScopedJoinHandle<'_, T>, Option<usize>)| {
            if let (Some(parent), Some(id)) = (&parent, id) {
                parent.join(id);
            }
            thread.join()
        };
        // All of them end before a panic of one goes on: they could not without this thread.
        let ended: Vec<thread::Result<T>> = started.into_iter().map(join).collect();
        ended.into_iter().map(|result| result.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

/// The simulation that the calling thread belongs to.
pub(crate) fn current() -> Option<Actor> {
    if SIMULATIONS.load(Ordering::Relaxed) == 0 {
        return None;
    }
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

/// The number of the thread that began the simulation.
const FIRST: usize = 0;

/// A thread of a simulation.
#[derive(Clone)]
pub(crate) struct Actor {
    world: Arc<World>,
    pub(crate) id: usize,
}

/// What threads of a simulation share.
struct World {
    /// The thread that runs.
    running: AtomicUsize,
    /// No thread can go on.
    stuck: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    now_ns: u64,
    slots: Vec<Slot>,
    /// When threads go on, and their numbers.
    ready: BTreeSet<(u64, usize)>,
    /// Who waits for what has an address: locks and conditions.
    waiting: HashMap<usize, VecDeque<usize>>,
    /// Locks that were given to the thread that waited longest and that it has not taken yet.
    granted: HashMap<usize, usize>,
}

/// A thread, as the others see it.
#[derive(Default)]
struct Slot {
    handle: Option<Thread>,
    /// Its time in [`State::ready`].
    at_ns: Option<u64>,
    /// What it waits for.
    address: Option<usize>,
    ended: bool,
    joined_by: Option<usize>,
}

impl State {
    fn ready(&mut self, id: usize, at_ns: u64) {
        debug_assert!(self.slots[id].at_ns.is_none());
        self.slots[id].at_ns = Some(at_ns);
        self.ready.insert((at_ns, id));
    }

    /// Lets a thread that waits go on now.
    fn wake(&mut self, id: usize) {
        if let Some(at_ns) = self.slots[id].at_ns.take() {
            self.ready.remove(&(at_ns, id));
        }
        self.slots[id].address = None;
        self.ready(id, self.now_ns);
    }

    /// The thread that goes on next, if one can.
    fn next(&mut self) -> Option<usize> {
        let (at_ns, id) = self.ready.pop_first()?;
        self.now_ns = self.now_ns.max(at_ns);
        self.slots[id].at_ns = None;
        Some(id)
    }

    fn wait_for(&mut self, address: usize, id: usize) {
        self.waiting.entry(address).or_default().push_back(id);
        self.slots[id].address = Some(address);
    }

    /// Takes who has waited longest off a list.
    fn first_waiting(&mut self, address: usize) -> Option<usize> {
        let list = self.waiting.get_mut(&address)?;
        let first = list.pop_front();
        if list.is_empty() {
            self.waiting.remove(&address);
        }
        first
    }

    /// Takes a thread whose time is up off the list that it waits in; `false` if it was woken.
    fn gave_up(&mut self, address: usize, id: usize) -> bool {
        if self.slots[id].address.take().is_none() {
            return false;
        }
        if let Some(list) = self.waiting.get_mut(&address) {
            list.retain(|other| *other != id);
            if list.is_empty() {
                self.waiting.remove(&address);
            }
        }
        true
    }
}

impl World {
    fn new() -> Self {
        Self { running: AtomicUsize::new(0), stuck: AtomicBool::new(false), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self) -> usize {
        let mut state = self.state();
        state.slots.push(Slot::default());
        state.slots.len() - 1
    }

    fn begin(&self, id: usize, handle: Thread) {
        let mut state = self.state();
        state.slots[id].handle = Some(handle);
        let now_ns = state.now_ns;
        state.ready(id, now_ns);
    }

    /// Lets the next thread run; answers whether that is `id`.
    fn pass(&self, mut state: MutexGuard<'_, State>, id: usize) -> bool {
        match state.next() {
            Some(next) if next == id => return true,
            Some(next) => {
                let handle = state.slots[next].handle.clone();
                self.running.store(next, Ordering::Release);
                drop(state);
                if let Some(handle) = handle {
                    handle.unpark();
                }
            }
            None if state.slots.iter().all(|slot| slot.ended) => {}
            None => self.give_up(&state),
        }
        false
    }

    /// Ends every thread: what they wait for never comes.
    fn give_up(&self, state: &State) {
        self.stuck.store(true, Ordering::Release);
        state.slots.iter().filter_map(|slot| slot.handle.as_ref()).for_each(Thread::unpark);
    }

    fn turn(&self, id: usize) {
        while self.running.load(Ordering::Acquire) != id {
            // Nothing is left to be simulated; `simulate` says so.
            assert!(!self.stuck.load(Ordering::Acquire), "threads of a simulation wait for each other");
            thread::park();
        }
    }
}

impl Actor {
    /// A thread that will be started.
    pub(crate) fn child(&self) -> Self {
        Self { world: Arc::clone(&self.world), id: self.world.add() }
    }

    /// The thread with this number was started.
    pub(crate) fn begin(&self, id: usize, handle: Thread) {
        self.world.begin(id, handle);
    }

    /// The thread with this number could not be started.
    pub(crate) fn abandon(&self, id: usize) {
        self.world.state().slots[id].ended = true;
    }

    /// Does the work of the thread, in its turns.
    pub(crate) fn live<T>(self, act: impl FnOnce() -> T) -> T {
        CURRENT.with(|current| *current.borrow_mut() = Some(self.clone()));
        let _end = End(self.clone());
        self.world.turn(self.id);
        act()
    }

    fn pass(&self, state: MutexGuard<'_, State>) {
        if !self.world.pass(state, self.id) {
            self.world.turn(self.id);
        }
    }

    pub(crate) fn sleep(&self, ns: u64) {
        let mut state = self.world.state();
        let at_ns = state.now_ns.saturating_add(ns);
        state.ready(self.id, at_ns);
        self.pass(state);
    }

    /// Whether a lock is kept for a thread that has waited for it.
    pub(crate) fn is_kept(&self, address: usize) -> bool {
        self.world.state().granted.contains_key(&address)
    }

    /// Waits until a lock is given to this thread, or, if it may have several holders, until one
    /// of them has released it.
    pub(crate) fn wait_for(&self, address: usize) {
        let mut state = self.world.state();
        state.wait_for(address, self.id);
        self.pass(state);
        let mut state = self.world.state();
        if state.granted.get(&address) == Some(&self.id) {
            state.granted.remove(&address);
        }
    }

    /// Waits until a condition is told to have changed, at most so long.
    pub(crate) fn wait_until(&self, address: usize, at_most: Option<Duration>) {
        let mut state = self.world.state();
        state.wait_for(address, self.id);
        if let Some(time) = at_most {
            let at_ns = state.now_ns.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
            state.ready(self.id, at_ns);
        }
        self.pass(state);
        self.world.state().gave_up(address, self.id);
    }

    /// A lock is released: who has waited longest has it.
    pub(crate) fn released(&self, address: usize) {
        let mut state = self.world.state();
        if let Some(id) = state.first_waiting(address) {
            state.granted.insert(address, id);
            state.wake(id);
        }
    }

    /// Who has waited longest there looks again.
    pub(crate) fn changed_for_one(&self, address: usize) {
        let mut state = self.world.state();
        if let Some(id) = state.first_waiting(address) {
            state.wake(id);
        }
    }

    /// Everybody who waits there looks again.
    pub(crate) fn changed(&self, address: usize) {
        let mut state = self.world.state();
        for id in state.waiting.remove(&address).into_iter().flatten() {
            state.wake(id);
        }
    }

    /// Waits until a thread has ended.
    pub(crate) fn join(&self, id: usize) {
        let mut state = self.world.state();
        if !state.slots[id].ended {
            state.slots[id].joined_by = Some(self.id);
            self.pass(state);
        }
    }
}

/// Ends a thread of a simulation.
struct End(Actor);

impl Drop for End {
    fn drop(&mut self) {
        let Actor { world, id } = &self.0;
        CURRENT.with(|current| *current.borrow_mut() = None);
        let mut state = world.state();
        state.slots[*id].ended = true;
        if let Some(other) = state.slots[*id].joined_by.take() {
            state.wake(other);
        }
        if *id == FIRST && state.slots.iter().any(|slot| !slot.ended) {
            world.give_up(&state);
        } else if !world.stuck.load(Ordering::Acquire) {
            world.pass(state, *id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::{Condvar, Mutex, lock};

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn sleeps_overlap_and_locks_are_had_in_the_order_of_waiting() {
        let order = Mutex::new(Vec::new());
        let resource = Mutex::new(());
        let elapsed = simulate(|| {
            let task = |index: u64| {
                let (order, resource) = (&order, &resource);
                move || {
                    sleep(ms(5 - index));
                    let _held = lock(resource);
                    sleep(ms(10));
                    lock(order).push((index, now()));
                }
            };
            together((0..4).map(task).collect());
            now()
        });
        assert_eq!(elapsed, Ok(ms(42)));
        assert_eq!(*lock(&order), [(3, ms(12)), (2, ms(22)), (1, ms(32)), (0, ms(42))]);
    }

    #[test]
    fn a_condition_ends_a_wait_and_so_does_its_time() {
        let (flag, bell) = (Mutex::new(false), Condvar::new());
        let waited = simulate(|| {
            let wait = || {
                let mut guard = lock(&flag);
                guard = bell.wait_timeout(guard, ms(3));
                assert!(!*guard);
                while !*guard {
                    guard = bell.wait(guard);
                }
                now()
            };
            let ring = || {
                sleep(ms(20));
                *lock(&flag) = true;
                bell.notify_all();
                now()
            };
            let tasks: Vec<Box<dyn FnOnce() -> Duration + Send>> = vec![Box::new(wait), Box::new(ring)];
            together(tasks)
        });
        assert_eq!(waited, Ok(vec![ms(20), ms(20)]));
    }

    #[test]
    fn threads_that_wait_for_each_other_are_an_error() {
        let (a, b) = (Mutex::new(()), Mutex::new(()));
        let stuck = simulate(|| {
            let cross = |first: &'static str| {
                let (a, b) = if first == "a" { (&a, &b) } else { (&b, &a) };
                move || {
                    let _one = lock(a);
                    sleep(ms(1));
                    let _two = lock(b);
                }
            };
            together(vec![cross("a"), cross("b")]);
        });
        assert!(matches!(stuck, Err(LftlError::Failed { .. })), "{stuck:?}");
        assert_eq!(simulate(|| simulate(now).is_err()), Ok(true));
    }
}
