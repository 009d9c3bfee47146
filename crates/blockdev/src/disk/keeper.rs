//! The thread that does what nobody waits for: it tells FTLs of trims, and collects garbage while
//! no request comes.

use super::{Inner, TRIM_STEP};
use nand::Nand;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long no request comes before the FTLs work for themselves.
const QUIET: Duration = Duration::from_millis(100);
/// How long others are let ahead who wait for a shard.
const GIVE_WAY: Duration = Duration::from_micros(200);

#[derive(Default)]
struct Wish {
    stop: bool,
    trims: bool,
}

/// Wakes the thread, and stops it.
pub(super) struct Keeper {
    wish: Arc<(Mutex<Wish>, Condvar)>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Keeper {
    /// Starts the thread; with `idle` it also lets FTLs work while no request comes.
    pub(super) fn start<N: Nand<Payload = [u8]> + 'static>(inner: &Arc<Inner<N>>, idle: bool) -> Self {
        let wish = Arc::<(Mutex<Wish>, Condvar)>::default();
        let work = Work { inner: Arc::clone(inner), wish: Arc::clone(&wish), idle };
        // Without it trims wait for the next flush.
        let thread = thread::Builder::new().name("keeper".into()).spawn(move || work.run()).ok();
        Self { wish, thread: Mutex::new(thread) }
    }

    /// Says that trims wait.
    pub(super) fn wake(&self) {
        self.wish.0.lock().unwrap_or_else(PoisonError::into_inner).trims = true;
        self.wish.1.notify_one();
    }

    /// Stops the thread, and waits until it has ended.
    pub(super) fn stop(&self) {
        self.wish.0.lock().unwrap_or_else(PoisonError::into_inner).stop = true;
        self.wish.1.notify_one();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // If it panicked, its shard says so to whoever asks next.
            let _ = thread.join();
        }
    }
}

struct Work<N: Nand> {
    inner: Arc<Inner<N>>,
    wish: Arc<(Mutex<Wish>, Condvar)>,
    idle: bool,
}

impl<N: Nand<Payload = [u8]>> Work<N> {
    fn run(mut self) {
        let mut seen = u64::MAX;
        while let Some(trims) = self.wait() {
            let requests = self.inner.requests.load(Ordering::Relaxed);
            if trims {
                self.settle();
            } else if self.idle && requests == seen {
                self.idle = self.work_while_idle(requests);
            }
            seen = requests;
        }
    }

    /// Waits for trims or for quiet; `None` to stop.
    fn wait(&self) -> Option<bool> {
        let mut wish = self.wish.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !wish.stop && !wish.trims {
            wish = self.wish.1.wait_timeout(wish, QUIET).unwrap_or_else(PoisonError::into_inner).0;
        }
        let trims = std::mem::take(&mut wish.trims);
        (!wish.stop).then_some(trims)
    }

    fn stopped(&self) -> bool {
        self.wish.0.lock().unwrap_or_else(PoisonError::into_inner).stop
    }

    /// Tells every FTL of its trims. After an error the rest waits for the next trim or flush.
    fn settle(&self) {
        for shard in 0..self.inner.shards.len() {
            loop {
                let Ok(mut guard) = self.inner.lock(shard) else { return };
                let more = guard.settle(TRIM_STEP);
                self.inner.unsynced.store(true, Ordering::SeqCst);
                drop(guard);
                match more {
                    Ok(false) => break,
                    Ok(true) if self.stopped() => return,
                    Ok(true) => self.give_way(),
                    Err(source) => {
                        self.inner.ftl_error(shard, source);
                        return;
                    }
                }
            }
        }
    }

    fn give_way(&self) {
        if self.inner.queued.load(Ordering::Relaxed) > 0 {
            thread::sleep(GIVE_WAY);
        }
    }

    /// Lets FTLs work until a request comes or nothing is left to do; `false` after an error.
    fn work_while_idle(&self, requests: u64) -> bool {
        for shard in 0..self.inner.shards.len() {
            loop {
                let Ok(mut guard) = self.inner.lock(shard) else { return false };
                let worked = guard.ftl.idle();
                drop(guard);
                match worked {
                    Ok(false) => break,
                    Ok(true) => self.inner.unsynced.store(true, Ordering::SeqCst),
                    Err(source) => {
                        self.inner.ftl_error(shard, source);
                        return false;
                    }
                }
                if self.inner.requests.load(Ordering::Relaxed) != requests || self.stopped() {
                    return true;
                }
            }
        }
        true
    }
}
