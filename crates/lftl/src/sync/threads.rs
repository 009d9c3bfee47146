//! Threads that belong to the simulation of the thread that started them, if that is in one.

use crate::clock;
use std::io;
use std::thread::{self, JoinHandle};

/// A thread that was started.
pub(crate) struct Handle {
    thread: JoinHandle<()>,
    id: Option<usize>,
}

/// Starts a thread.
///
/// # Errors
/// The system has no more threads.
pub(crate) fn spawn(name: String, run: impl FnOnce() + Send + 'static) -> io::Result<Handle> {
    let parent = clock::current();
    let child = parent.as_ref().map(clock::Actor::child);
    let id = child.as_ref().map(|child| child.id);
    let body = move || match child {
        Some(child) => child.live(run),
        None => run(),
    };
    let thread = thread::Builder::new().name(name).spawn(body);
    if let (Some(parent), Some(id)) = (&parent, id) {
        match &thread {
            Ok(thread) => parent.begin(id, thread.thread().clone()),
            Err(_) => parent.abandon(id),
        }
    }
    thread.map(|thread| Handle { thread, id })
}

impl Handle {
    /// Waits until the thread has ended; one that panicked has.
    pub(crate) fn join(self) {
        if let (Some(actor), Some(id)) = (clock::current(), self.id) {
            actor.join(id);
        }
        let _ = self.thread.join();
    }
}
