//! What the threads that serve one connection share: its replies, and a limit on what is under
//! way.
//!
//! A thread that has added replies sends them, unless another is sending: then that one sends them
//! too. Threads that serve other connections do not wait for a client. What the socket does not
//! take at once goes to a thread of this connection, which is started when it is needed first.

use super::handshake::Agreed;
use super::socket::{Gone, Socket};
use crate::stats::Meter;
use std::net::Shutdown;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// Replies are sent from so many bytes on: while the client reads them the server goes on.
pub(super) const SEND_AT: usize = 32 << 10;
/// Requests of a connection that are under way at once.
const REQUESTS_MAX: usize = 256;
/// Parts of them that are under way at once.
const PARTS_MAX: usize = 256;
/// Bytes of a connection's requests under way and of its replies, unless one request has more.
const BYTES_MAX: usize = 4 << 20;
/// Buffers larger than this are given back.
const KEPT_BYTES: usize = 1 << 20;

/// A connection after its handshake.
pub(super) struct Channel {
    socket: Arc<Socket>,
    pub(super) agreed: Agreed,
    pub(super) meter: Arc<Meter>,
    state: Mutex<State>,
    /// Something was done, sent or given up.
    moved: Condvar,
    /// The writer has something to do.
    stuck: Condvar,
}

#[derive(Default)]
struct State {
    /// Replies that were not sent yet.
    out: Vec<u8>,
    /// An empty buffer, to be exchanged with `out`.
    spare: Vec<u8>,
    /// A thread sends; no other may.
    sending: bool,
    /// What the socket did not take, from a byte on; the writer sends it.
    rest: Option<(Vec<u8>, usize)>,
    parts: usize,
    bytes: usize,
    requests: usize,
    /// The reader waits for `moved`.
    waiting: bool,
    writer: Option<JoinHandle<()>>,
    ended: bool,
    /// Why nothing can be sent any more.
    dead: Option<String>,
}

impl State {
    fn held(&self) -> usize {
        self.bytes + self.out.len() + self.rest.as_ref().map_or(0, |(bytes, sent)| bytes.len() - sent)
    }

    /// Whether a part with so many bytes may begin. One that is too large goes alone.
    fn fits(&self, bytes: usize) -> bool {
        let held = self.held();
        self.parts == 0 && held == 0 || self.parts < PARTS_MAX && held + bytes <= BYTES_MAX
    }

    fn add<T>(&mut self, add: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let done = add(&mut self.out);
        if self.dead.is_some() {
            self.out.clear();
        }
        done
    }

    /// Exchanges the buffers, so that `out` can be filled while these bytes are sent.
    fn take_out(&mut self) -> Vec<u8> {
        let empty = std::mem::take(&mut self.spare);
        std::mem::replace(&mut self.out, empty)
    }

    fn give_back(&mut self, mut bytes: Vec<u8>) {
        if bytes.capacity() <= KEPT_BYTES {
            bytes.clear();
            self.spare = bytes;
        }
    }
}

impl Channel {
    pub(super) fn new(socket: Arc<Socket>, agreed: Agreed, meter: Arc<Meter>) -> Self {
        let (state, moved, stuck) = Default::default();
        Self { socket, agreed, meter, state, moved, stuck }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request that arrived, once there is room for another.
    pub(super) fn begin(&self) -> Result<(), Gone> {
        let mut state = self.wait_until(|state| state.requests < REQUESTS_MAX && state.held() <= BYTES_MAX)?;
        state.requests += 1;
        Ok(())
    }

    /// Adds a whole reply to a request that was not counted, once there is room for it. Answers how
    /// many bytes of replies nobody sends yet.
    pub(super) fn reply(&self, add: impl FnOnce(&mut Vec<u8>)) -> Result<usize, Gone> {
        let mut state = self.wait_until(|state| state.held() <= BYTES_MAX)?;
        state.add(add);
        Ok(if state.sending { 0 } else { state.out.len() })
    }

    /// Counts a part of a request with so many bytes of data, once there is room for it.
    pub(super) fn admit(&self, bytes: usize) -> Result<(), Gone> {
        let mut state = self.wait_until(|state| state.fits(bytes))?;
        state.parts += 1;
        state.bytes += bytes;
        Ok(())
    }

    /// Waits for room. Replies that nobody sends are sent meanwhile, which makes room too.
    fn wait_until(&self, room: impl Fn(&State) -> bool) -> Result<MutexGuard<'_, State>, Gone> {
        let mut state = self.state();
        loop {
            if let Some(why) = &state.dead {
                return Err(Gone::Dropped(why.clone()));
            }
            if room(&state) {
                return Ok(state);
            }
            if !state.sending && !state.out.is_empty() {
                state.sending = true;
                self.send_from(state);
                state = self.state();
                continue;
            }
            state.waiting = true;
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends a part that [`Channel::admit`] counted.
    pub(super) fn release(&self, bytes: usize) {
        let mut state = self.state();
        debug_assert!(state.parts > 0 && state.bytes >= bytes);
        state.parts -= 1;
        state.bytes -= bytes;
        self.wake(&mut state);
    }

    /// Wakes the reader, but not for every bit of room.
    fn wake(&self, state: &mut State) {
        let few = state.parts <= PARTS_MAX / 2 && state.requests <= REQUESTS_MAX / 2;
        if state.waiting && few && state.held() <= BYTES_MAX / 2 {
            state.waiting = false;
            self.moved.notify_all();
        }
    }

    /// Adds to the replies. Nobody else adds meanwhile.
    pub(super) fn add<T>(&self, add: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        self.state().add(add)
    }

    /// Adds the end of a reply, and counts its request as answered.
    pub(super) fn answer(&self, add: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.state();
        state.add(add);
        debug_assert!(state.requests > 0);
        state.requests -= 1;
        if state.requests == 0 {
            state.waiting = false;
            self.moved.notify_all();
        } else {
            self.wake(&mut state);
        }
    }

    /// Bytes of replies that nobody sends yet.
    pub(super) fn unsent(&self) -> usize {
        let state = self.state();
        if state.sending { 0 } else { state.out.len() }
    }

    /// Sends the replies, and waits for the client to take them.
    pub(super) fn send(&self) {
        let mut state = self.state();
        if !state.sending && !state.out.is_empty() {
            state.sending = true;
            self.send_from(state);
        }
    }

    /// Sends everything; the caller is the one that sends.
    fn send_from<'a>(&'a self, mut state: MutexGuard<'a, State>) {
        while !state.out.is_empty() {
            let bytes = state.take_out();
            drop(state);
            let sent = self.socket.write_all(&bytes);
            state = self.state();
            state.give_back(bytes);
            match sent {
                Ok(()) => self.wake(&mut state),
                Err(error) => self.die(&mut state, Gone::from(error)),
            }
        }
        state.sending = false;
        self.moved.notify_all();
    }

    /// Sends what the client takes at once, and leaves the rest to a thread that may wait.
    pub(super) fn send_now(self: &Arc<Self>) {
        let mut state = self.state();
        if state.sending {
            return;
        }
        while !state.out.is_empty() {
            state.sending = true;
            let bytes = state.take_out();
            drop(state);
            let sent = self.socket.write_now(&bytes);
            state = self.state();
            match sent {
                Ok(sent) if sent == bytes.len() => {
                    state.give_back(bytes);
                    self.wake(&mut state);
                }
                Ok(sent) => {
                    state.rest = Some((bytes, sent));
                    return self.need_writer(&mut state);
                }
                Err(error) => self.die(&mut state, Gone::from(error)),
            }
        }
        if state.sending {
            state.sending = false;
            self.moved.notify_all();
        }
    }

    fn need_writer(self: &Arc<Self>, state: &mut State) {
        if state.writer.is_none() {
            let channel = Arc::clone(self);
            match thread::Builder::new().name("replies".into()).spawn(move || channel.write()) {
                Ok(thread) => state.writer = Some(thread),
                Err(error) => {
                    let why = format!("there is no thread for its replies ({error})");
                    self.die(state, Gone::Dropped(why));
                    state.sending = false;
                }
            }
        }
        self.stuck.notify_one();
    }

    /// Sends what is left over, until the connection ends.
    fn write(&self) {
        let mut state = self.state();
        loop {
            if let Some((bytes, sent)) = state.rest.take() {
                // The bytes count as held until they are sent.
                let left = bytes.len() - sent;
                state.bytes += left;
                drop(state);
                let done = self.socket.write_all(&bytes[sent..]);
                state = self.state();
                state.bytes -= left;
                state.give_back(bytes);
                if let Err(error) = done {
                    self.die(&mut state, Gone::from(error));
                }
                self.wake(&mut state);
                self.send_from(state);
                state = self.state();
            } else if state.ended {
                return;
            } else {
                state = self.stuck.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Nothing is sent from here on. The reader hears of it, wherever it waits.
    fn die(&self, state: &mut State, why: Gone) {
        if let Gone::Dropped(why) = why {
            state.dead.get_or_insert(why);
        }
        state.out.clear();
        state.rest = None;
        self.socket.shutdown(Shutdown::Both);
        self.moved.notify_all();
    }

    /// Waits until every request was answered and the client has the replies.
    ///
    /// # Errors
    /// Why the client does not have them.
    pub(super) fn finish(&self) -> Result<(), Gone> {
        let mut state = self.state();
        while state.requests > 0 {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        while state.sending || !state.out.is_empty() {
            if state.sending {
                state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
            } else {
                drop(state);
                self.send();
                state = self.state();
            }
        }
        state.ended = true;
        self.stuck.notify_one();
        let (writer, dead) = (state.writer.take(), state.dead.clone());
        drop(state);
        if let Some(writer) = writer {
            // It does nothing that panics; if it did, that was said where it happened.
            let _ = writer.join();
        }
        dead.map_or(Ok(()), |why| Err(Gone::Dropped(why)))
    }
}
