//! The locks of the standard library, on whichever clock the calling thread has.
//!
//! Outside of a simulation each is one look at a counter more than the lock it wraps.

use crate::clock::{self, Actor};
use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, TryLockError};
use std::time::Duration;

/// Tells a simulation that a lock is free. It is dropped behind the guard of the lock.
struct Release(Option<(Actor, usize, Holders)>);

#[derive(Clone, Copy)]
enum Holders {
    One,
    Several,
}

impl Drop for Release {
    fn drop(&mut self) {
        match &self.0 {
            Some((actor, address, Holders::One)) => actor.released(*address),
            Some((actor, address, Holders::Several)) => actor.changed(*address),
            None => {}
        }
    }
}

/// Takes a lock with `attempt`, waiting in virtual time; `None` outside of a simulation.
fn take<G>(
    address: usize,
    holders: Holders,
    mut attempt: impl FnMut() -> Result<G, TryLockError<G>>,
) -> Option<(G, Release)> {
    let actor = clock::current()?;
    if matches!(holders, Holders::One) && actor.is_kept(address) {
        actor.wait_for(address);
    }
    loop {
        match attempt() {
            Ok(guard) => return Some((guard, Release(Some((actor, address, holders))))),
            Err(TryLockError::Poisoned(poison)) => {
                return Some((poison.into_inner(), Release(Some((actor, address, holders)))));
            }
            Err(TryLockError::WouldBlock) => actor.wait_for(address),
        }
    }
}

fn address<T: ?Sized>(of: &T) -> usize {
    std::ptr::from_ref(of).cast::<()>() as usize
}

/// As [`std::sync::Mutex`].
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

/// As [`std::sync::MutexGuard`].
pub(crate) struct MutexGuard<'a, T> {
    guard: std::sync::MutexGuard<'a, T>,
    mutex: &'a Mutex<T>,
    release: Release,
}

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    pub(crate) fn into_inner(self) -> Result<T, PoisonError<T>> {
        self.0.into_inner()
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// Locks. A thread that panicked while it held the lock is no reason to lose what is behind it: the
/// engine takes no more writes after a panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match take(address(mutex), Holders::One, || mutex.0.try_lock()) {
        Some((guard, release)) => MutexGuard { guard, mutex, release },
        None => {
            let guard = counted(|| mutex.0.try_lock(), || mutex.0.lock().unwrap_or_else(PoisonError::into_inner));
            MutexGuard { guard, mutex, release: Release(None) }
        }
    }
}

/// Takes a lock in real time. With the feature `contention`, what is not had at once is counted.
#[cfg(not(feature = "contention"))]
fn counted<G>(_: impl FnOnce() -> Result<G, TryLockError<G>>, wait: impl FnOnce() -> G) -> G {
    wait()
}

#[cfg(feature = "contention")]
fn counted<G>(attempt: impl FnOnce() -> Result<G, TryLockError<G>>, wait: impl FnOnce() -> G) -> G {
    match attempt() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(poison)) => poison.into_inner(),
        Err(TryLockError::WouldBlock) => {
            let begin = std::time::Instant::now();
            let guard = wait();
            crate::contention::waited(begin.elapsed());
            guard
        }
    }
}

/// As [`std::sync::RwLock`].
#[derive(Debug)]
pub(crate) struct RwLock<T>(std::sync::RwLock<T>);

/// The guard of an [`RwLock`].
pub(crate) struct RwGuard<G> {
    guard: G,
    _release: Release,
}

impl<T> RwLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::sync::RwLock::new(value))
    }
}

impl<G: Deref> Deref for RwGuard<G> {
    type Target = G::Target;

    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut> DerefMut for RwGuard<G> {
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

/// Locks for reading.
pub(crate) fn shared<T>(lock: &RwLock<T>) -> RwGuard<std::sync::RwLockReadGuard<'_, T>> {
    let (guard, release) = take(address(lock), Holders::Several, || lock.0.try_read()).unwrap_or_else(|| {
        let wait = || lock.0.read().unwrap_or_else(PoisonError::into_inner);
        (counted(|| lock.0.try_read(), wait), Release(None))
    });
    RwGuard { guard, _release: release }
}

/// Locks for writing.
pub(crate) fn alone<T>(lock: &RwLock<T>) -> RwGuard<std::sync::RwLockWriteGuard<'_, T>> {
    let (guard, release) = take(address(lock), Holders::Several, || lock.0.try_write()).unwrap_or_else(|| {
        let wait = || lock.0.write().unwrap_or_else(PoisonError::into_inner);
        (counted(|| lock.0.try_write(), wait), Release(None))
    });
    RwGuard { guard, _release: release }
}

/// As [`std::sync::Condvar`].
#[derive(Debug, Default)]
pub(crate) struct Condvar(std::sync::Condvar);

impl Condvar {
    pub(crate) const fn new() -> Self {
        Self(std::sync::Condvar::new())
    }

    /// Releases the lock, waits until the condition is told to have changed, and locks again.
    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let MutexGuard { guard, mutex, release } = guard;
        if let Some((actor, ..)) = &release.0 {
            let actor = actor.clone();
            drop(guard);
            drop(release);
            actor.wait_until(address(self), None);
            return lock(mutex);
        }
        let guard = self.0.wait(guard).unwrap_or_else(PoisonError::into_inner);
        MutexGuard { guard, mutex, release }
    }

    /// As [`Condvar::wait`], at most so long.
    pub(crate) fn wait_timeout<'a, T>(&self, guard: MutexGuard<'a, T>, time: Duration) -> MutexGuard<'a, T> {
        let MutexGuard { guard, mutex, release } = guard;
        if let Some((actor, ..)) = &release.0 {
            let actor = actor.clone();
            drop(guard);
            drop(release);
            actor.wait_until(address(self), Some(time));
            return lock(mutex);
        }
        let (guard, _) = self.0.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner);
        MutexGuard { guard, mutex, release }
    }

    pub(crate) fn notify_one(&self) {
        match clock::current() {
            Some(actor) => actor.changed_for_one(address(self)),
            None => self.0.notify_one(),
        }
    }

    pub(crate) fn notify_all(&self) {
        match clock::current() {
            Some(actor) => actor.changed(address(self)),
            None => self.0.notify_all(),
        }
    }
}
