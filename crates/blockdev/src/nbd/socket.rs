//! A connection as bytes: what arrives is buffered, and nobody is waited for without end.

use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Bytes of requests that are read ahead, and the most of a write that is held at once.
pub(super) const INPUT_BYTES: usize = 256 << 10;

/// A connection.
#[derive(Debug)]
pub(super) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    /// Sets how long one read or write may make no progress.
    pub(super) fn set_patience(&self, patience: Duration) -> io::Result<()> {
        match self {
            Self::Unix(stream) => {
                stream.set_read_timeout(Some(patience)).and_then(|()| stream.set_write_timeout(Some(patience)))
            }
            Self::Tcp(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(patience)).and_then(|()| stream.set_write_timeout(Some(patience)))
            }
        }
    }

    pub(super) fn shutdown(&self, how: Shutdown) {
        // It fails if the client has gone.
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(how),
            Self::Tcp(stream) => stream.shutdown(how),
        };
    }

    fn read(&self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => (&mut &*stream).read(out),
            Self::Tcp(stream) => (&mut &*stream).read(out),
        }
    }

    /// Writes what is taken without waiting, and answers how many bytes that is.
    pub(super) fn write_now(&self, bytes: &[u8]) -> io::Result<usize> {
        let (mut sent, how) = (0, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        while sent < bytes.len() {
            match send(self, &bytes[sent..], how) {
                Ok(more) => sent += more,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(sent)
    }

    /// Writes everything, or fails when nothing was taken for as long as it waits.
    pub(super) fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Unix(stream) => (&mut &*stream).write_all(bytes),
            Self::Tcp(stream) => (&mut &*stream).write_all(bytes),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

/// Why a connection ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Gone {
    /// The client said goodbye, closed between requests, or the server stops.
    Ended,
    /// The client did not keep to the protocol, or vanished; said in the log.
    Dropped(String),
}

impl From<io::Error> for Gone {
    fn from(error: io::Error) -> Self {
        Self::Dropped(match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "it does not take its replies".to_owned(),
            _ => error.to_string(),
        })
    }
}

/// What a client may do instead of sending what is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Take any time to begin, or close.
    AtRest,
    /// Close.
    Between,
    /// Nothing.
    Inside,
}

/// What arrives on a connection.
pub(super) struct Input<'a> {
    socket: &'a Socket,
    stopping: &'a AtomicBool,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    patience: Duration,
}

impl<'a> Input<'a> {
    pub(super) fn new(socket: &'a Socket, stopping: &'a AtomicBool, patience: Duration) -> Self {
        Self { socket, stopping, buffer: vec![0; INPUT_BYTES].into(), start: 0, end: 0, patience }
    }

    /// Bytes that have arrived and were not taken.
    pub(super) fn buffered(&self) -> usize {
        self.end - self.start
    }

    /// Waits for so many bytes, at most [`INPUT_BYTES`]. They are there within `patience` after the
    /// first of them, or after the call.
    pub(super) fn wait_for(&mut self, bytes: usize, wait: Wait) -> Result<(), Gone> {
        debug_assert!(bytes <= INPUT_BYTES);
        let mut begun: Option<Instant> = None;
        while self.buffered() < bytes {
            let nothing = self.buffered() == 0;
            let (at_rest, may_close) = (nothing && wait == Wait::AtRest, nothing && wait != Wait::Inside);
            if at_rest && self.stopping.load(Ordering::Relaxed) {
                return Err(Gone::Ended);
            }
            if !at_rest && begun.get_or_insert_with(Instant::now).elapsed() > self.patience {
                return Err(Gone::Dropped("it stopped in the middle of a request or of the handshake".to_owned()));
            }
            self.make_room(bytes);
            match self.socket.read(&mut self.buffer[self.end..]) {
                Ok(0) if may_close || self.stopping.load(Ordering::Relaxed) => return Err(Gone::Ended),
                Ok(0) => return Err(Gone::Dropped("it closed in the middle of a request".to_owned())),
                Ok(read) => self.end += read,
                Err(error) if is_passing(error.kind()) => {}
                Err(error) => return Err(Gone::Dropped(error.to_string())),
            }
        }
        Ok(())
    }

    /// Moves what is buffered so that so many bytes fit behind `start`.
    fn make_room(&mut self, bytes: usize) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start + bytes > self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
    }

    /// Takes bytes that [`Input::wait_for`] waited for.
    pub(super) fn take(&mut self, bytes: usize) -> &[u8] {
        debug_assert!(bytes <= self.buffered());
        let at = self.start;
        self.start += bytes;
        &self.buffer[at..at + bytes]
    }

    /// Waits for so many bytes and takes them.
    pub(super) fn need(&mut self, bytes: usize) -> Result<&[u8], Gone> {
        self.wait_for(bytes, Wait::Inside)?;
        Ok(self.take(bytes))
    }

    pub(super) fn need_u32(&mut self) -> Result<u32, Gone> {
        self.need(4).map(|bytes| be32(bytes, 0))
    }

    pub(super) fn need_u64(&mut self) -> Result<u64, Gone> {
        self.need(8).map(|bytes| be64(bytes, 0))
    }

    /// Waits for so many bytes and throws them away.
    pub(super) fn skip(&mut self, mut bytes: usize) -> Result<(), Gone> {
        while bytes > 0 {
            let step = bytes.min(INPUT_BYTES);
            self.need(step)?;
            bytes -= step;
        }
        Ok(())
    }
}

/// Whether a read that failed so may be tried again.
fn is_passing(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// A number at an offset that lies inside `bytes`.
pub(super) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// As [`be16`].
pub(super) fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// As [`be16`].
pub(super) fn be64(bytes: &[u8], at: usize) -> u64 {
    u64::from(be32(bytes, at)) << 32 | u64::from(be32(bytes, at + 4))
}
