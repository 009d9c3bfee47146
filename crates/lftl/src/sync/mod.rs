//! Threads, locks and atomics: those of the standard library, which a simulation can give a clock
//! of its own, or, compiled with `--cfg shuttle`, those of a scheduler that explores in which order
//! threads run.

#[cfg(not(shuttle))]
mod locks;
#[cfg(not(shuttle))]
mod threads;

#[cfg(not(shuttle))]
pub(crate) use crate::clock::{now, together};
#[cfg(not(shuttle))]
pub(crate) use locks::{Condvar, Mutex, MutexGuard, RwLock, alone, lock, shared};
#[cfg(shuttle)]
pub(crate) use shuttle::sync::{
    Mutex, MutexGuard, RwLock,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};
#[cfg(not(shuttle))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
#[cfg(not(shuttle))]
pub(crate) use threads::{Handle, spawn};

/// Orders of threads are explored without a clock.
#[cfg(shuttle)]
pub(crate) const fn now() -> std::time::Duration {
    std::time::Duration::ZERO
}

/// Does each task, one after the other: what they do is not explored.
#[cfg(shuttle)]
pub(crate) fn together<T, F: FnOnce() -> T>(tasks: Vec<F>) -> Vec<T> {
    tasks.into_iter().map(|task| task()).collect()
}

/// Locks. A thread that panicked while it held the lock is no reason to lose what is behind it: the
/// engine takes no more writes after a panic.
#[cfg(shuttle)]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Locks for reading.
#[cfg(shuttle)]
pub(crate) fn shared<T>(lock: &RwLock<T>) -> shuttle::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Locks for writing.
#[cfg(shuttle)]
pub(crate) fn alone<T>(lock: &RwLock<T>) -> shuttle::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Waits a moment for what another thread is about to do.
pub(crate) struct Backoff(u32);

/// Rounds in which a thread only spins.
#[cfg(not(shuttle))]
const SPINS: u32 = 6;
/// Rounds after which a thread sleeps: what it waits for takes a flash operation.
#[cfg(not(shuttle))]
const YIELDS: u32 = 16;

impl Backoff {
    pub(crate) const fn new() -> Self {
        Self(0)
    }

    pub(crate) fn wait(&mut self) {
        self.0 = self.0.saturating_add(1);
        #[cfg(feature = "contention")]
        let begin = std::time::Instant::now();
        #[cfg(shuttle)]
        shuttle::thread::yield_now();
        #[cfg(not(shuttle))]
        if let Some(actor) = crate::clock::current() {
            // As long as rounds of spinning, then of sleeping, take.
            actor.sleep(1_000 << self.0.min(SPINS));
        } else if self.0 <= SPINS {
            (0..1 << self.0).for_each(|_| std::hint::spin_loop());
        } else if self.0 <= YIELDS {
            std::thread::yield_now();
        } else {
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
        #[cfg(feature = "contention")]
        crate::contention::waited(begin.elapsed());
    }
}
