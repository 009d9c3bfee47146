//! Requests of one connection, on its own thread: each is read, cut into parts and handed over.
//!
//! 1. A request is read from the buffer of what arrived.
//! 2. Reads and writes are cut where lanes end, and into pieces if they are long. So a long write
//!    begins before all of it has arrived, and a long read is answered piece by piece.
//! 3. A part begins when there is room for it. Until then no more requests are read, and the client
//!    has to wait.
//! 4. If parts are done here, replies wait until [`SEND_AT`] bytes are there, or until no whole
//!    request is left of what arrived.

use super::channel::{Channel, SEND_AT};
use super::crew::{Crew, Form, Place, Ticket, Work};
use super::protocol::{PAYLOAD_MAX, REQUEST_BYTES, command, errno, flag};
use super::request::{Failure, Request};
use super::server::{Observer, Seen};
use super::socket::{Gone, Input, Wait};
use crate::stats::Op;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

/// The most of a read that is in a chunk, if the client lets replies have several. While the client
/// takes one, the server makes the next.
const CHUNK_BYTES: u64 = 64 << 10;
/// The most of a write that is waited for before the device gets it.
const PIECE_BYTES: u64 = 64 << 10;

/// One connection after its handshake.
pub(super) struct Transmission<'a> {
    pub(super) crew: &'a Crew,
    pub(super) channel: Arc<Channel>,
    pub(super) observer: Option<&'a dyn Observer>,
    /// For parts that are done here.
    pub(super) scratch: Vec<u8>,
}

impl Transmission<'_> {
    /// Answers requests until the client goes. Requests that have arrived are done, and answered if
    /// the client still listens.
    pub(super) fn run(&mut self, input: &mut Input<'_>) -> Gone {
        let gone = loop {
            if let Err(gone) = self.next(input) {
                break gone;
            }
        };
        match (gone, self.channel.finish()) {
            // What ended the replies ended the connection.
            (_, Err(error)) => error,
            (gone, Ok(())) => gone,
        }
    }

    fn next(&mut self, input: &mut Input<'_>) -> Result<(), Gone> {
        if input.buffered() < REQUEST_BYTES {
            self.send(1);
            input.wait_for(REQUEST_BYTES, Wait::AtRest)?;
        }
        let request = Request::parse(input.take(REQUEST_BYTES))?;
        if request.command == command::DISCONNECT {
            return Err(Gone::Ended);
        }
        let begin = Instant::now();
        self.observe(&request, begin);
        if request.command == command::WRITE && request.bytes > PAYLOAD_MAX {
            return Err(Gone::Dropped(format!("it writes {} B at once; {PAYLOAD_MAX} are allowed", request.bytes)));
        }
        let checked = request.check(self.crew.device(), self.channel.agreed.allocation);
        if checked.is_ok() && self.is_plain(&request) {
            let data = if request.op() == Op::Write { input.need(request.bytes as usize)? } else { &[] };
            if self.crew.at_once(&self.channel, &request, begin, data)? >= SEND_AT {
                self.channel.send();
            }
            return Ok(());
        }
        self.channel.begin()?;
        let form = if checked.is_ok() { self.form(&request) } else { Form::One };
        let ticket = Arc::new(Ticket::new(&self.channel, request, begin, form));
        if let Err(failure) = checked {
            ticket.fail(failure);
        }
        let cut = self.cut(&ticket, &request, input);
        if cut.is_err() {
            ticket.fail(Failure { errno: errno::EIO, text: "the connection ended before the request did".to_owned() });
        }
        self.crew.seal(&ticket);
        self.send(SEND_AT);
        cut
    }

    /// Whether a request is a short read or write that is done here in one go, as most are.
    fn is_plain(&self, request: &Request) -> bool {
        let short = (1..=PIECE_BYTES).contains(&u64::from(request.bytes));
        let moves = matches!(request.op(), Op::Read | Op::Write);
        !self.crew.is_apart() && short && moves && !request.has(flag::FUA)
    }

    /// Sends replies if so many bytes wait that nobody else sends.
    fn send(&self, bytes: usize) {
        if self.channel.unsent() >= bytes {
            match self.crew.is_apart() {
                // While this thread waits for a client, it reads none of its requests.
                true => self.channel.send_now(),
                false => self.channel.send(),
            }
        }
    }

    /// Waits until there is room for a part with so many bytes. On a device of one lane, parts are
    /// done here and need none.
    fn admit(&self, bytes: usize) -> Result<Option<usize>, Gone> {
        if !self.crew.is_apart() {
            return Ok(None);
        }
        self.channel.admit(bytes).map(|()| Some(bytes))
    }

    fn observe(&self, request: &Request, at: Instant) {
        let (op, bytes) = (request.op(), request.named_bytes());
        let inside = request.end_on(self.crew.device().size_bytes()).is_some();
        if let Some(observer) = self.observer.filter(|_| op == Op::Flush || inside) {
            let (fua, forgets) = (request.has(flag::FUA), request.forgets());
            observer.request(&Seen { op, offset: request.offset, bytes, fua, forgets, at });
        }
    }

    fn form(&self, request: &Request) -> Form {
        let (offset, bytes) = (request.offset, u64::from(request.bytes));
        if request.op() != Op::Read {
            return Form::One;
        }
        let structured = self.channel.agreed.structured;
        let in_chunks = structured && (bytes == 0 || !request.has(flag::DF));
        let one_lane = bytes > 0 && offset + bytes <= self.crew.device().lane_of(offset).1;
        match one_lane {
            true if !in_chunks || bytes <= CHUNK_BYTES => Form::One,
            _ if in_chunks => Form::Chunks,
            _ => Form::Whole,
        }
    }

    /// Hands over the parts of a request, or takes its data off the socket if it is refused.
    fn cut(&mut self, ticket: &Arc<Ticket>, request: &Request, input: &mut Input<'_>) -> Result<(), Gone> {
        let refused = ticket.failed();
        match request.op() {
            Op::Write if refused => input.skip(request.bytes as usize),
            Op::Write => self.write(ticket, request, input),
            _ if refused => Ok(()),
            Op::Read => self.read(ticket, request),
            Op::Zero if !request.forgets() => self.zero(ticket, request),
            Op::Flush => Ok(()),
            Op::Trim | Op::Zero | Op::Other => {
                let (lane, end) = self.crew.device().lane_of(request.offset);
                let inside = u64::from(request.bytes) <= end.saturating_sub(request.offset);
                let place = if inside { Place::Lane(lane) } else { Place::Aside };
                let held = self.admit(0)?;
                self.crew.give(ticket, Work::All, place, held, &mut self.scratch);
                Ok(())
            }
        }
    }

    fn write(&mut self, ticket: &Arc<Ticket>, request: &Request, input: &mut Input<'_>) -> Result<(), Gone> {
        let page = u64::from(self.crew.device().block_sizes().preferred);
        let (mut offset, end) = (request.offset, request.offset + u64::from(request.bytes));
        while offset < end {
            let (lane, lane_end) = self.crew.device().lane_of(offset);
            let mut piece = (lane_end.min(end) - offset).min(PIECE_BYTES);
            if offset + piece < end {
                // Pieces end where pages end, so that no page is written twice.
                let beyond = (offset + piece) % page;
                piece -= if beyond < piece { beyond } else { 0 };
            }
            let held = self.admit(piece as usize)?;
            let data = match (input.need(piece as usize), held) {
                (Ok(data), _) => data,
                (Err(gone), None) => return Err(gone),
                (Err(gone), Some(held)) => {
                    self.channel.release(held);
                    return Err(gone);
                }
            };
            let work = Work::Write { offset, data: Cow::Borrowed(data) };
            self.crew.give(ticket, work, Place::Lane(lane), held, &mut self.scratch);
            offset += piece;
        }
        Ok(())
    }

    fn read(&mut self, ticket: &Arc<Ticket>, request: &Request) -> Result<(), Gone> {
        let form = ticket.form();
        if form == Form::Whole {
            self.channel.admit(request.bytes as usize)?;
            ticket.hold();
        }
        let most = if form == Form::Chunks { CHUNK_BYTES } else { u64::from(PAYLOAD_MAX) };
        let (mut offset, end) = (request.offset, request.offset + u64::from(request.bytes));
        while offset < end {
            let (lane, lane_end) = self.crew.device().lane_of(offset);
            let bytes = (lane_end.min(end) - offset).min(most);
            // All of a whole was admitted.
            let held = if form == Form::Whole { None } else { self.admit(bytes as usize)? };
            let work = Work::Read { offset, bytes: bytes as u32 };
            self.crew.give(ticket, work, Place::Lane(lane), held, &mut self.scratch);
            offset += bytes;
            if offset < end {
                self.send(SEND_AT);
            }
        }
        Ok(())
    }

    fn zero(&mut self, ticket: &Arc<Ticket>, request: &Request) -> Result<(), Gone> {
        let (mut offset, end) = (request.offset, request.offset + u64::from(request.bytes));
        while offset < end {
            let (lane, lane_end) = self.crew.device().lane_of(offset);
            let bytes = lane_end.min(end) - offset;
            let held = self.admit(0)?;
            let work = Work::Zero { offset, bytes };
            self.crew.give(ticket, work, Place::Lane(lane), held, &mut self.scratch);
            offset += bytes;
        }
        Ok(())
    }
}
