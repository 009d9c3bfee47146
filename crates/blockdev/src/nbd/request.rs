//! A request as it arrives, and why it is refused.

use super::protocol::{PAYLOAD_MAX, REQUEST_BYTES, REQUEST_MAGIC, command, errno, flag};
use super::socket::{Gone, be16, be32, be64};
use crate::contract::{BlockDevice, DiskError};
use crate::stats::Op;

/// A request without its data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    flags: u16,
    pub(super) command: u16,
    pub(super) cookie: u64,
    pub(super) offset: u64,
    pub(super) bytes: u32,
}

impl Request {
    /// The request in [`REQUEST_BYTES`] bytes.
    pub(super) fn parse(head: &[u8]) -> Result<Self, Gone> {
        debug_assert_eq!(head.len(), REQUEST_BYTES);
        let magic = be32(head, 0);
        if magic != REQUEST_MAGIC {
            return Err(Gone::Dropped(format!("a request begins with {magic:#010x}, not {REQUEST_MAGIC:#010x}")));
        }
        Ok(Self {
            flags: be16(head, 4),
            command: be16(head, 6),
            cookie: be64(head, 8),
            offset: be64(head, 16),
            bytes: be32(head, 24),
        })
    }

    pub(super) fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    pub(super) fn op(&self) -> Op {
        match self.command {
            command::READ => Op::Read,
            command::WRITE => Op::Write,
            command::FLUSH => Op::Flush,
            command::TRIM => Op::Trim,
            command::WRITE_ZEROES => Op::Zero,
            _ => Op::Other,
        }
    }

    /// Bytes that it names; 0 for a flush.
    pub(super) fn named_bytes(&self) -> u32 {
        if self.op() == Op::Flush { 0 } else { self.bytes }
    }

    /// Whether its pages may be forgotten.
    pub(super) fn forgets(&self) -> bool {
        let op = self.op();
        op == Op::Trim || op == Op::Zero && !self.has(flag::NO_HOLE)
    }

    /// The byte behind its range, if that lies on a device of this size.
    pub(super) fn end_on(&self, size_bytes: u64) -> Option<u64> {
        self.offset.checked_add(self.bytes.into()).filter(|end| *end <= size_bytes)
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

    /// Refuses what needs no look at the contents of the device.
    pub(super) fn check(&self, device: &dyn BlockDevice, allocation: bool) -> Result<(), Failure> {
        let invalid = |text: String| Err(Failure { errno: errno::EINVAL, text });
        if self.flags & !self.known_flags() != 0 {
            return invalid(format!("flags {:#x} mean nothing here", self.flags));
        }
        let changes = match self.command {
            command::FLUSH => return Ok(()),
            command::READ if self.bytes > PAYLOAD_MAX => {
                return invalid(format!("a read of {} B is longer than {PAYLOAD_MAX} B", self.bytes));
            }
            command::BLOCK_STATUS if !allocation => {
                return invalid("no metadata context was chosen in the handshake".to_owned());
            }
            command::BLOCK_STATUS if self.bytes == 0 => return invalid("the range is empty".to_owned()),
            command::READ | command::BLOCK_STATUS => false,
            command::WRITE | command::TRIM | command::WRITE_ZEROES => true,
            other => return invalid(format!("there is no command {other}")),
        };
        let (offset, bytes, size_bytes) = (self.offset, u64::from(self.bytes), device.size_bytes());
        let error = match self.end_on(size_bytes) {
            _ if changes && device.read_only() => DiskError::ReadOnly,
            None => DiskError::OutOfRange { offset, bytes, size_bytes },
            Some(_) if self.has(flag::FAST_ZERO) && self.has(flag::NO_HOLE) => DiskError::NotFast,
            Some(_) => return Ok(()),
        };
        Err(Failure::of(&error, self.command))
    }
}

/// Why a request is answered with an error.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) errno: u32,
    pub(super) text: String,
}

impl Failure {
    pub(super) fn of(error: &DiskError, command: u16) -> Self {
        let errno = match error {
            DiskError::OutOfRange { .. } if matches!(command, command::WRITE | command::WRITE_ZEROES) => errno::ENOSPC,
            DiskError::OutOfRange { .. } => errno::EINVAL,
            DiskError::ReadOnly => errno::EPERM,
            DiskError::WornOut(_) => errno::ENOSPC,
            DiskError::NotFast => errno::ENOTSUP,
            DiskError::Page { .. } | DiskError::Ftl { .. } | DiskError::Failed { .. } => errno::EIO,
        };
        Self { errno, text: error.to_string() }
    }
}
