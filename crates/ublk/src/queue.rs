//! A queue of requests, on its own thread.
//!
//! 1. The kernel is asked for a request for each tag.
//! 2. A request that comes is done at once: data of a write is copied from the kernel before, data
//!    of a read to the kernel afterwards.
//! 3. Answers wait for more requests that have come, but no longer than [`HOLD`].

use crate::request::Request;
use crate::sys::{Event, QueueRing};
use blockdev::nbd::{Observer, Seen};
use blockdev::stats::{Meter, Op};
use blockdev::{BlockDevice, Log, Severity};
use rustix::io::{Errno, pread, pwrite};
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Requests of a queue at once.
pub(crate) const DEPTH: u16 = 64;
/// The most of a request that carries data.
pub(crate) const DATA_BYTES_MAX: u32 = 1 << 20;
/// How long an answer may wait for others, so that one system call carries several.
const HOLD: Duration = Duration::from_micros(100);

/// Where the data of requests begins in the node of the device, and how it is addressed there.
const DATA_START: u64 = 0x8000_0000;
const TAG_SHIFT: u32 = 25;
const QUEUE_SHIFT: u32 = 41;

/// A queue that has asked for requests.
pub(crate) struct Queue<'a> {
    ring: QueueRing,
    number: u16,
    channel: Arc<File>,
    serving: Serving<'a>,
    data: Vec<u8>,
}

/// Whom a queue serves, and who looks on.
#[derive(Clone, Copy)]
pub(crate) struct Serving<'a> {
    pub(crate) device: &'a dyn BlockDevice,
    pub(crate) meter: &'a Meter,
    pub(crate) observer: Option<&'a dyn Observer>,
    pub(crate) log: &'a dyn Log,
}

impl<'a> Queue<'a> {
    /// Asks for requests. The kernel takes answers from the calling thread alone.
    pub(crate) fn open(channel: Arc<File>, number: u16, serving: Serving<'a>) -> io::Result<Self> {
        let mut ring = QueueRing::new(Arc::clone(&channel), number, DEPTH)?;
        (0..DEPTH).try_for_each(|tag| ring.fetch(tag))?;
        ring.submit()?;
        Ok(Self { ring, number, channel, serving, data: vec![0; DATA_BYTES_MAX as usize] })
    }

    /// Answers requests until the kernel wants no more.
    pub(crate) fn run(&mut self) -> io::Result<()> {
        let mut open = DEPTH;
        while open > 0 {
            self.ring.wait()?;
            let mut since = Instant::now();
            while let Some(event) = self.ring.next()? {
                let Event::Request(tag) = event else {
                    open -= 1;
                    continue;
                };
                let result = self.serve(tag);
                self.ring.answer(tag, result)?;
                if since.elapsed() > HOLD {
                    self.ring.submit()?;
                    since = Instant::now();
                }
            }
        }
        Ok(())
    }

    /// Does a request; answers with the bytes that were moved, or with a negative error number.
    fn serve(&mut self, tag: u16) -> i32 {
        let begin = Instant::now();
        let request = Request::of(&self.ring.descriptor(tag));
        self.observe(&request, begin);
        let done = self.perform(tag, &request);
        self.serving.meter.record(request.op, request.bytes, begin, done.is_err());
        match done {
            Ok(()) if matches!(request.op, Op::Read | Op::Write) => request.bytes as i32,
            Ok(()) => 0,
            Err(errno) => -errno.raw_os_error(),
        }
    }

    fn observe(&self, request: &Request, at: Instant) {
        // Only requests with data are short; those without have no more than 2 GiB.
        let Request { op, offset, fua, forgets, .. } = *request;
        if let Some(observer) = self.serving.observer {
            observer.request(&Seen { op, offset, bytes: request.bytes as u32, fua, forgets, at });
        }
    }

    fn perform(&mut self, tag: u16, request: &Request) -> Result<(), Errno> {
        let moves = matches!(request.op, Op::Read | Op::Write);
        let bytes = if moves { request.bytes as usize } else { 0 };
        let data = self.data.get_mut(..bytes).ok_or(Errno::INVAL)?;
        let place = DATA_START | u64::from(self.number) << QUEUE_SHIFT | u64::from(tag) << TAG_SHIFT;
        if request.op == Op::Write && pread(&self.channel, &mut *data, place)? != bytes {
            return Err(Errno::IO);
        }
        let device = self.serving.device;
        // A defect of the program is an error of this request, and of no other.
        catch_unwind(AssertUnwindSafe(|| request.perform(device, data))).unwrap_or_else(|_| {
            let text = format!("a defect of the program ended a {} at offset {}", request.op.name(), request.offset);
            self.serving.log.line(Severity::Error, &text);
            Err(Errno::IO)
        })?;
        if request.op == Op::Read && pwrite(&self.channel, data, place)? != bytes {
            return Err(Errno::IO);
        }
        Ok(())
    }
}
