//! Threads, locks and atomics: those of the standard library, or, compiled with `--cfg shuttle`,
//! those of a scheduler that explores in which order threads run.

#[cfg(shuttle)]
pub(crate) use shuttle::sync::{
    Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};
use std::sync::PoisonError;
#[cfg(not(shuttle))]
pub(crate) use std::sync::{
    Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};

/// Locks. A thread that panicked while it held the lock is no reason to lose what is behind it: the
/// engine takes no more writes after a panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks for reading.
pub(crate) fn shared<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// Locks for writing.
pub(crate) fn alone<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
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
        #[cfg(shuttle)]
        shuttle::thread::yield_now();
        #[cfg(not(shuttle))]
        if self.0 <= SPINS {
            (0..1 << self.0).for_each(|_| std::hint::spin_loop());
        } else if self.0 <= YIELDS {
            std::thread::yield_now();
        } else {
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
    }
}
