//! What can go wrong with a device of the kernel, and what to do about it.

use rustix::io::Errno;
use std::io;
use std::path::PathBuf;

/// Why a device cannot be served, or could not be ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UblkError {
    /// The driver is not there.
    #[error("{0} is missing: load the driver with `modprobe ublk_drv` (Linux 6.5 or later has it)")]
    NoDriver(PathBuf),
    /// The driver may not be used.
    #[error("{0} may not be opened: run as root")]
    NotAllowed(PathBuf),
    /// The kernel gives no ring.
    #[error("io_uring cannot be used ({0}): the driver needs it; `sysctl kernel.io_uring_disabled` must say 0")]
    NoRing(io::Error),
    /// The driver is too old.
    #[error("the ublk driver of this kernel cannot copy data on request: Linux 6.5 or later is needed")]
    OldDriver,
    /// The number belongs to another device.
    #[error("ublk device {0} is in use: name another number, or none")]
    Taken(u32),
    /// The driver has as many devices as it may.
    #[error("the ublk driver has no room for another device: raise its parameter ublks_max, or stop a device")]
    TooMany,
    /// The device has no sector.
    #[error("a device of {0} B is too small: a sector has 512 B")]
    TooSmall(u64),
    /// The node of the requests cannot be opened.
    #[error("{path} cannot be opened: {source}")]
    Channel {
        /// The node.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A command failed.
    #[error("ublk command {command} failed: {source}")]
    Command {
        /// Its name in the kernel's documentation.
        command: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// A command was not answered.
    #[error("ublk command {command} was not answered within {seconds} s: see the kernel's log (dmesg)")]
    Unanswered {
        /// Its name in the kernel's documentation.
        command: &'static str,
        /// How long it was waited for.
        seconds: u64,
    },
    /// A queue cannot work.
    #[error("queue {queue} of the device failed: {source}")]
    Queue {
        /// Its number.
        queue: u16,
        /// What the operating system said.
        source: io::Error,
    },
    /// Another program ended the device.
    #[error("{0} was ended from outside")]
    Ended(PathBuf),
    /// Requests are still being served.
    #[error("{0} did not end: a request is still being served")]
    Busy(PathBuf),
}

impl UblkError {
    pub(crate) fn command(command: &'static str, errno: Errno, seconds: u64) -> Self {
        match errno {
            Errno::TIME => Self::Unanswered { command, seconds },
            errno => Self::Command { command, source: errno.into() },
        }
    }
}
