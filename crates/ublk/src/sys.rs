//! The rings, and the memory that is shared with the kernel: the only place of this crate where
//! `unsafe` stands.
//!
//! Layouts and numbers are those of `include/uapi/linux/ublk_cmd.h`, the same for every
//! architecture.
#![allow(unsafe_code)]

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use rustix::io::Errno;
use rustix::ioctl::{Opcode, opcode as code};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of a command about a device.
const COMMAND_BYTES: usize = 32;
/// Bytes of the description of a request.
const DESCRIPTOR_BYTES: usize = 24;
/// The kernel leaves room for so many descriptions before those of the next queue.
const DEPTH_MAX: usize = 4096;

const FETCH: Opcode = code::read_write::<[u8; 16]>(b'u', 0x20);
const COMMIT_AND_FETCH: Opcode = code::read_write::<[u8; 16]>(b'u', 0x21);

/// A number by which the kernel knows a command that it only reads for.
pub(crate) const fn reads(number: u8) -> Opcode {
    code::read::<[u8; COMMAND_BYTES]>(b'u', number)
}

/// A number by which the kernel knows a command.
pub(crate) const fn changes(number: u8) -> Opcode {
    code::read_write::<[u8; COMMAND_BYTES]>(b'u', number)
}

/// Commands about devices, one at a time.
pub(crate) struct ControlRing {
    ring: IoUring<squeue::Entry128>,
    file: File,
    /// Tells the answer to a command from a late one to an earlier command.
    token: u64,
}

impl ControlRing {
    pub(crate) fn new(file: File) -> io::Result<Self> {
        Ok(Self { ring: IoUring::<squeue::Entry128>::builder().build(4)?, file, token: 0 })
    }

    /// Sends a command with a value and a buffer, which may be empty. `ETIME` if it was not
    /// answered in time; it may take effect later.
    pub(crate) fn command(
        &mut self,
        code: Opcode,
        device: u32,
        value: u64,
        buffer: &mut [u8],
        patience: Duration,
    ) -> Result<(), Errno> {
        // Its place does not change when the box is moved or leaked.
        let mut memory: Box<[u8]> = buffer.into();
        let address = if memory.is_empty() { 0 } else { memory.as_mut_ptr() as u64 };
        let mut command = [0; 80];
        command[..4].copy_from_slice(&device.to_ne_bytes());
        // The command is for no queue.
        command[4..6].copy_from_slice(&u16::MAX.to_ne_bytes());
        command[6..8].copy_from_slice(&(memory.len() as u16).to_ne_bytes());
        command[8..16].copy_from_slice(&address.to_ne_bytes());
        command[16..24].copy_from_slice(&value.to_ne_bytes());
        self.token += 1;
        let entry = opcode::UringCmd80::new(Fd(self.file.as_raw_fd()), code).cmd(command);
        let entry = entry.build().user_data(self.token);
        // SAFETY: the file is open as long as the ring. The memory behind the address is freed
        // below only after the kernel has answered the command, and leaked otherwise.
        unsafe { self.ring.submission().push(&entry) }.map_err(|_| Errno::BUSY)?;
        match self.answer(Instant::now() + patience) {
            Ok(result) => {
                buffer.copy_from_slice(&memory);
                if result < 0 { Err(Errno::from_raw_os_error(-result)) } else { Ok(()) }
            }
            Err(error) => {
                Box::leak(memory);
                Err(error)
            }
        }
    }

    fn answer(&mut self, deadline: Instant) -> Result<i32, Errno> {
        loop {
            let left = Timespec::from(deadline.saturating_duration_since(Instant::now()));
            let submitted = self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&left));
            let token = self.token;
            if let Some(answer) = self.ring.completion().find(|answer| answer.user_data() == token) {
                return Ok(answer.result());
            }
            match submitted.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO)) {
                Ok(_) | Err(Errno::INTR | Errno::TIME) => {}
                Err(error) => return Err(error),
            }
            if Instant::now() >= deadline {
                return Err(Errno::TIME);
            }
        }
    }
}

/// What the kernel says of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Descriptor {
    /// The operation in the lowest byte, and flags.
    pub(crate) op_flags: u32,
    pub(crate) sectors: u32,
    pub(crate) start_sector: u64,
    /// Unused where data is copied by the server.
    address: u64,
}

#[cfg(test)]
impl Descriptor {
    pub(crate) fn new(op_flags: u32, sectors: u32, start_sector: u64) -> Self {
        Self { op_flags, sectors, start_sector, address: 0 }
    }
}

const _: () = assert!(size_of::<Descriptor>() == DESCRIPTOR_BYTES);

/// The descriptions of the requests of a queue, which the kernel writes.
struct Descriptors {
    start: *mut c_void,
    bytes: usize,
    depth: u16,
}

impl Descriptors {
    fn map(channel: &File, queue: u16, depth: u16) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let bytes = (usize::from(depth) * DESCRIPTOR_BYTES).next_multiple_of(page);
        let each = (DEPTH_MAX * DESCRIPTOR_BYTES).next_multiple_of(page);
        let offset = u64::from(queue) * each as u64;
        // SAFETY: the kernel chooses an address that nothing else uses.
        let start = unsafe {
            mmap(ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED | MapFlags::POPULATE, channel, offset)
        }?;
        Ok(Self { start, bytes, depth })
    }

    fn read(&self, tag: u16) -> Descriptor {
        assert!(tag < self.depth, "the kernel names request {tag} of {}", self.depth);
        // SAFETY: the place lies inside the mapping, which is aligned to a page. Any bytes are a
        // descriptor. The read is volatile, for the kernel writes there.
        unsafe { self.start.cast::<Descriptor>().add(usize::from(tag)).read_volatile() }
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's own, and no reference into it is ever made. Without it
        // the range is only kept until the process ends.
        let _ = unsafe { munmap(self.start, self.bytes) };
    }
}

/// A tag that the kernel has handed back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A request has come.
    Request(u16),
    /// No more requests come: the device is being stopped.
    Ended,
}

/// The requests of a queue, for the thread that made it.
pub(crate) struct QueueRing {
    ring: IoUring,
    descriptors: Descriptors,
    channel: Arc<File>,
    queue: u16,
}

impl QueueRing {
    pub(crate) fn new(channel: Arc<File>, queue: u16, depth: u16) -> io::Result<Self> {
        let descriptors = Descriptors::map(&channel, queue, depth)?;
        let ring = IoUring::builder().setup_coop_taskrun().setup_single_issuer().build(depth.into())?;
        Ok(Self { ring, descriptors, channel, queue })
    }

    /// Asks for the first request with a tag.
    pub(crate) fn fetch(&mut self, tag: u16) -> io::Result<()> {
        self.push(FETCH, tag, -1)
    }

    /// Answers a request, and asks for the next one with its tag.
    pub(crate) fn answer(&mut self, tag: u16, result: i32) -> io::Result<()> {
        self.push(COMMIT_AND_FETCH, tag, result)
    }

    fn push(&mut self, code: Opcode, tag: u16, result: i32) -> io::Result<()> {
        let mut command = [0; 16];
        command[..2].copy_from_slice(&self.queue.to_ne_bytes());
        command[2..4].copy_from_slice(&tag.to_ne_bytes());
        command[4..8].copy_from_slice(&result.to_ne_bytes());
        let entry = opcode::UringCmd16::new(Fd(self.channel.as_raw_fd()), code).cmd(command);
        let entry = entry.build().user_data(tag.into());
        // SAFETY: the command holds no address, and the file is open as long as the ring.
        // The ring has room for one command of each tag, and a tag has one at a time.
        unsafe { self.ring.submission().push(&entry) }.map_err(io::Error::other)
    }

    /// Hands over what was pushed.
    pub(crate) fn submit(&self) -> io::Result<()> {
        self.enter(0)
    }

    /// Hands over what was pushed, and waits for an event.
    pub(crate) fn wait(&self) -> io::Result<()> {
        self.enter(1)
    }

    fn enter(&self, events: usize) -> io::Result<()> {
        match self.ring.submitter().submit_and_wait(events) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// What has come without waiting. An error means that the kernel refused an answer, or to
    /// send requests.
    pub(crate) fn next(&mut self) -> io::Result<Option<Event>> {
        let Some(event) = self.ring.completion().next() else { return Ok(None) };
        match event.result() {
            0 => Ok(Some(Event::Request(event.user_data() as u16))),
            result if result == -Errno::NODEV.raw_os_error() => Ok(Some(Event::Ended)),
            result => Err(io::Error::from_raw_os_error(-result)),
        }
    }

    /// The request with a tag, after its event and before its answer.
    pub(crate) fn descriptor(&self, tag: u16) -> Descriptor {
        self.descriptors.read(tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_commands() {
        if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            assert_eq!([reads(0x13), changes(0x04)], [0x8020_7513, 0xc020_7504]);
            assert_eq!([FETCH, COMMIT_AND_FETCH], [0xc010_7520, 0xc010_7521]);
        }
    }
}
