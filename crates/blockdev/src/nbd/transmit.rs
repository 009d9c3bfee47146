//! Requests and replies of one connection, on its own thread.
//!
//! 1. A request is read from the buffer of what arrived.
//! 2. The device does it at once. Data of a write is taken from the buffer without a copy, a piece
//!    at a time if it is long; data of a read is put right behind the head of its reply.
//! 3. Replies wait until [`SEND_AT`] bytes are there, or no whole request has arrived.

use super::handshake::Agreed;
use super::protocol::{
    ALLOCATION, PAYLOAD_MAX, REQUEST_BYTES, REQUEST_MAGIC, SIMPLE_REPLY_MAGIC, STATE_HOLE, STATE_ZERO,
    STRUCTURED_REPLY_MAGIC, chunk, command, errno, flag,
};
use super::server::{Observer, Seen};
use super::socket::{Gone, Input, Socket, Wait, be16, be32, be64};
use crate::contract::{BlockDevice, DiskError, Zeroing};
use crate::log::{Log, Severity};
use crate::stats::{Meter, Op};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// Replies are sent from so many bytes on: while the client reads them the server goes on.
const SEND_AT: usize = 32 << 10;
/// The most of a read that is in a chunk, if the client lets replies have several. While the client
/// takes one, the server makes the next.
const CHUNK_BYTES: u32 = 64 << 10;
/// The most of a write that is waited for before the device gets it.
const PIECE_BYTES: usize = 64 << 10;
/// Buffers larger than this are given back after a request.
const KEPT_BYTES: usize = 1 << 20;
/// Extents in a reply; a client that wants more asks again.
const EXTENTS_MAX: usize = 4096;

/// A request.
#[derive(Clone, Copy, Debug)]
struct Request {
    flags: u16,
    command: u16,
    cookie: u64,
    offset: u64,
    bytes: u32,
}

impl Request {
    fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    fn op(&self) -> Op {
        match self.command {
            command::READ => Op::Read,
            command::WRITE => Op::Write,
            command::FLUSH => Op::Flush,
            command::TRIM => Op::Trim,
            command::WRITE_ZEROES => Op::Zero,
            _ => Op::Other,
        }
    }

    /// Flags that mean something to the command.
    fn known_flags(&self) -> u16 {
        match self.command {
            // A client may send FUA with any command.
            command::READ => flag::FUA | flag::DF,
            command::WRITE_ZEROES => flag::FUA | flag::NO_HOLE | flag::FAST_ZERO,
            command::BLOCK_STATUS => flag::FUA | flag::REQ_ONE,
            _ => flag::FUA,
        }
    }
}

/// Why a request is answered with an error.
struct Failure {
    errno: u32,
    text: String,
}

impl Failure {
    fn new(errno: u32, text: impl Into<String>) -> Self {
        Self { errno, text: text.into() }
    }

    fn of(error: &DiskError, command: u16) -> Self {
        let errno = match error {
            DiskError::OutOfRange { .. } if matches!(command, command::WRITE | command::WRITE_ZEROES) => errno::ENOSPC,
            DiskError::OutOfRange { .. } => errno::EINVAL,
            DiskError::ReadOnly => errno::EPERM,
            DiskError::WornOut(_) => errno::ENOSPC,
            DiskError::NotFast => errno::ENOTSUP,
            DiskError::Page { .. } | DiskError::Ftl { .. } | DiskError::Failed { .. } => errno::EIO,
        };
        Self::new(errno, error.to_string())
    }
}

/// One connection after its handshake.
pub(super) struct Transmission<'a> {
    pub(super) device: &'a dyn BlockDevice,
    pub(super) socket: &'a Socket,
    pub(super) agreed: Agreed,
    pub(super) meter: &'a Meter,
    pub(super) observer: Option<&'a dyn Observer>,
    pub(super) log: &'a dyn Log,
    /// Replies that were not sent yet.
    pub(super) replies: Vec<u8>,
}

impl Transmission<'_> {
    /// Answers requests until the client goes.
    pub(super) fn run(&mut self, input: &mut Input<'_>) -> Gone {
        loop {
            let gone = self.next(input).err();
            if let Some(gone) = gone {
                // Requests that were done are answered, if the client still listens.
                let sent = self.send();
                return match (gone, sent) {
                    (Gone::Ended, Err(error)) => error,
                    (gone, _) => gone,
                };
            }
        }
    }

    fn next(&mut self, input: &mut Input<'_>) -> Result<(), Gone> {
        if input.buffered() < REQUEST_BYTES {
            self.send()?;
            input.wait_for(REQUEST_BYTES, Wait::AtRest)?;
        }
        let head = input.take(REQUEST_BYTES);
        let magic = be32(head, 0);
        if magic != REQUEST_MAGIC {
            return Err(Gone::Dropped(format!("a request begins with {magic:#010x}, not {REQUEST_MAGIC:#010x}")));
        }
        let request = Request {
            flags: be16(head, 4),
            command: be16(head, 6),
            cookie: be64(head, 8),
            offset: be64(head, 16),
            bytes: be32(head, 24),
        };
        if request.command == command::DISCONNECT {
            return Err(Gone::Ended);
        }
        let begin = Instant::now();
        self.observe(&request, begin);
        let failed = self.answer(&request, input)?;
        let bytes = if request.op() == Op::Flush { 0 } else { u64::from(request.bytes) };
        self.meter.record(request.op(), bytes, begin, failed);
        if self.replies.len() >= SEND_AT {
            self.send()?;
        }
        Ok(())
    }

    fn observe(&self, request: &Request, at: Instant) {
        let op = request.op();
        let bytes = if op == Op::Flush { 0 } else { request.bytes };
        let inside = request.offset.checked_add(bytes.into()).is_some_and(|end| end <= self.device.size_bytes());
        if let Some(observer) = self.observer.filter(|_| op == Op::Flush || inside) {
            let forgets = op == Op::Trim || op == Op::Zero && !request.has(flag::NO_HOLE);
            observer.request(&Seen { op, offset: request.offset, bytes, fua: request.has(flag::FUA), forgets, at });
        }
    }

    fn send(&mut self) -> Result<(), Gone> {
        if !self.replies.is_empty() {
            self.socket.write_all(&self.replies)?;
            self.replies.clear();
            if self.replies.capacity() > KEPT_BYTES {
                self.replies = Vec::new();
            }
        }
        Ok(())
    }

    /// Does a request and adds its reply; answers whether that is an error.
    fn answer(&mut self, request: &Request, input: &mut Input<'_>) -> Result<bool, Gone> {
        let done = match request.command {
            command::WRITE => self.write(request, input)?,
            _ if request.flags & !request.known_flags() != 0 => {
                Err(Failure::new(errno::EINVAL, format!("flags {:#x} mean nothing here", request.flags)))
            }
            command::READ => return self.read(request),
            command::BLOCK_STATUS => self.status(request),
            _ => self.change(request),
        };
        match &done {
            Ok(true) => {}
            Ok(false) => self.simple(request, 0),
            Err(failure) => self.error(request, failure),
        }
        Ok(done.is_err())
    }

    /// Asks the device; a defect of the program is an error of this request, and of no other
    /// client's.
    fn ask<T>(
        &self,
        request: &Request,
        act: impl FnOnce(&dyn BlockDevice) -> Result<T, DiskError>,
    ) -> Result<T, Failure> {
        match catch_unwind(AssertUnwindSafe(|| act(self.device))) {
            Ok(done) => done.map_err(|error| Failure::of(&error, request.command)),
            Err(_) => {
                let text =
                    format!("a defect of the program ended request {} at offset {}", request.command, request.offset);
                self.log.line(Severity::Error, &text);
                Err(Failure::new(errno::EIO, text))
            }
        }
    }

    /// Commands without data in either direction. `Ok(false)`: the reply is still to be made.
    fn change(&self, request: &Request) -> Result<bool, Failure> {
        let (offset, bytes, fua) = (request.offset, u64::from(request.bytes), request.has(flag::FUA));
        match request.command {
            command::FLUSH => self.ask(request, |device| device.flush()),
            command::TRIM => self.ask(request, |device| device.trim(offset, bytes, fua)),
            command::WRITE_ZEROES => {
                let how =
                    Zeroing { may_trim: !request.has(flag::NO_HOLE), only_fast: request.has(flag::FAST_ZERO), fua };
                self.ask(request, |device| device.write_zeroes(offset, bytes, how))
            }
            other => Err(Failure::new(errno::EINVAL, format!("there is no command {other}"))),
        }
        .map(|()| false)
    }

    /// Writes what arrives. After an error the rest of the data is read and thrown away.
    fn write(&self, request: &Request, input: &mut Input<'_>) -> Result<Result<bool, Failure>, Gone> {
        if request.bytes > PAYLOAD_MAX {
            return Err(Gone::Dropped(format!("it writes {} B at once; {PAYLOAD_MAX} are allowed", request.bytes)));
        }
        let fua = request.has(flag::FUA);
        let mut done = match request.flags & !request.known_flags() {
            0 => self.check_write(request),
            flags => Err(Failure::new(errno::EINVAL, format!("flags {flags:#x} mean nothing here"))),
        };
        let page = u64::from(self.device.block_sizes().preferred);
        let (mut offset, mut left) = (request.offset, request.bytes as usize);
        let one_piece = left <= PIECE_BYTES;
        while left > 0 {
            let mut piece = left.min(PIECE_BYTES);
            if piece < left && done.is_ok() {
                // Pieces end where pages end, so that no page is written twice.
                let beyond = ((offset + piece as u64) % page) as usize;
                piece -= if beyond < piece { beyond } else { 0 };
            }
            let data = input.need(piece)?;
            if done.is_ok() {
                done = self.ask(request, |device| device.write(offset, data, fua && one_piece)).map(|()| false);
            }
            offset = offset.wrapping_add(piece as u64);
            left -= piece;
        }
        if done.is_ok() && fua && !one_piece {
            done = self.ask(request, |device| device.flush()).map(|()| false);
        }
        Ok(done)
    }

    /// Refuses a write before its first piece is written.
    fn check_write(&self, request: &Request) -> Result<bool, Failure> {
        let (offset, bytes, size_bytes) = (request.offset, u64::from(request.bytes), self.device.size_bytes());
        let error = match offset.checked_add(bytes) {
            _ if self.device.read_only() => DiskError::ReadOnly,
            Some(end) if end <= size_bytes => return Ok(false),
            _ => DiskError::OutOfRange { offset, bytes, size_bytes },
        };
        Err(Failure::of(&error, request.command))
    }

    fn read(&mut self, request: &Request) -> Result<bool, Gone> {
        if request.bytes > PAYLOAD_MAX {
            let text = format!("a read of {} B is longer than {PAYLOAD_MAX} B", request.bytes);
            self.error(request, &Failure::new(errno::EINVAL, text));
            return Ok(true);
        }
        if !self.agreed.structured {
            return Ok(self.read_simply(request));
        }
        if request.bytes == 0 {
            self.chunk(request, chunk::DONE, chunk::NONE, 0);
            return Ok(false);
        }
        let most = if request.has(flag::DF) { PAYLOAD_MAX } else { CHUNK_BYTES };
        let (mut offset, mut left) = (request.offset, request.bytes);
        // The whole range is checked with the first chunk.
        if u128::from(offset) + u128::from(left) > u128::from(self.device.size_bytes()) {
            let (bytes, size_bytes) = (u64::from(left), self.device.size_bytes());
            let error = DiskError::OutOfRange { offset, bytes, size_bytes };
            self.error(request, &Failure::of(&error, request.command));
            return Ok(true);
        }
        while left > 0 {
            let bytes = left.min(most);
            let start = self.replies.len();
            self.chunk(request, if bytes == left { chunk::DONE } else { 0 }, chunk::OFFSET_DATA, 8 + bytes);
            self.replies.extend(offset.to_be_bytes());
            if let Err(failure) = self.append(request, offset, bytes) {
                self.replies.truncate(start);
                self.error(request, &failure);
                return Ok(true);
            }
            offset += u64::from(bytes);
            left -= bytes;
            if left > 0 {
                self.send()?;
            }
        }
        Ok(false)
    }

    fn read_simply(&mut self, request: &Request) -> bool {
        let start = self.replies.len();
        self.simple(request, 0);
        match self.append(request, request.offset, request.bytes) {
            Ok(()) => false,
            Err(failure) => {
                self.replies.truncate(start);
                self.error(request, &failure);
                true
            }
        }
    }

    /// Adds what the device holds to the replies.
    fn append(&mut self, request: &Request, offset: u64, bytes: u32) -> Result<(), Failure> {
        let at = self.replies.len();
        let mut replies = std::mem::take(&mut self.replies);
        replies.resize(at + bytes as usize, 0);
        let done = self.ask(request, |device| device.read(offset, &mut replies[at..]));
        self.replies = replies;
        done
    }

    /// Adds a chunk with what is known of a range. `Ok(true)`: the reply is made.
    fn status(&mut self, request: &Request) -> Result<bool, Failure> {
        if !self.agreed.allocation {
            return Err(Failure::new(errno::EINVAL, "no metadata context was chosen in the handshake"));
        }
        if request.bytes == 0 {
            return Err(Failure::new(errno::EINVAL, "the range is empty"));
        }
        let most = if request.has(flag::REQ_ONE) { 1 } else { EXTENTS_MAX };
        let mut extents = Vec::new();
        self.ask(request, |device| {
            device.extents(request.offset, request.bytes.into(), &mut |extent| {
                extents.push((extent.bytes as u32, if extent.hole { STATE_HOLE | STATE_ZERO } else { 0 }));
                extents.len() < most
            })
        })?;
        self.chunk(request, chunk::DONE, chunk::BLOCK_STATUS, 4 + 8 * extents.len() as u32);
        self.replies.extend(ALLOCATION.1.to_be_bytes());
        for (bytes, state) in extents {
            self.replies.extend(bytes.to_be_bytes());
            self.replies.extend(state.to_be_bytes());
        }
        Ok(true)
    }

    fn error(&mut self, request: &Request, failure: &Failure) {
        if !self.agreed.structured || !matches!(request.command, command::READ | command::BLOCK_STATUS) {
            return self.simple(request, failure.errno);
        }
        let text = &failure.text.as_bytes()[..failure.text.len().min(4096)];
        self.chunk(request, chunk::DONE, chunk::ERROR, 6 + text.len() as u32);
        self.replies.extend(failure.errno.to_be_bytes());
        self.replies.extend((text.len() as u16).to_be_bytes());
        self.replies.extend(text);
    }

    fn simple(&mut self, request: &Request, errno: u32) {
        let mut head = [0; 16];
        head[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
        head[4..8].copy_from_slice(&errno.to_be_bytes());
        head[8..].copy_from_slice(&request.cookie.to_be_bytes());
        self.replies.extend(head);
    }

    /// Adds the head of a chunk with so many bytes behind it.
    fn chunk(&mut self, request: &Request, flags: u16, kind: u16, bytes: u32) {
        let mut head = [0; 20];
        head[..4].copy_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
        head[4..6].copy_from_slice(&flags.to_be_bytes());
        head[6..8].copy_from_slice(&kind.to_be_bytes());
        head[8..16].copy_from_slice(&request.cookie.to_be_bytes());
        head[16..].copy_from_slice(&bytes.to_be_bytes());
        self.replies.extend(head);
    }
}
