//! A chip behind a character device of Linux, `/dev/mtdN`.

use crate::chip::{Chip, ChipError, Place, Shape};
use crate::error::MtdError;
use crate::sys;
use nand::HostError;
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// What may be done with a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everything; nobody else may have it open.
    ReadWrite,
    /// Reads; others may read too.
    ReadOnly,
}

/// Major number of the character devices of MTD.
const MTD_MAJOR: u32 = 90;

/// A NAND chip, or a partition of one, behind the kernel.
///
/// The lock that keeps others out is `flock` on the device's node. It binds those who open the
/// device with this crate, and no one else.
#[derive(Debug)]
pub struct CharDevice {
    file: File,
    shape: Shape,
    name: String,
    block_bytes: u64,
}

impl CharDevice {
    /// Opens a device and locks it.
    ///
    /// # Errors
    /// [`MtdError`]: the path is no NAND device, somebody uses it, the user may not, or the kernel
    /// is too old.
    pub fn open(path: &Path, access: Access) -> Result<Self, MtdError> {
        let failed = |attempt, source| match source {
            source if io::Error::kind(&source) == io::ErrorKind::PermissionDenied => {
                MtdError::Permission { path: path.into(), source }
            }
            source => MtdError::Io { path: path.into(), attempt, source },
        };
        let described = fs::metadata(path).map_err(|error| failed("opened", error))?;
        let number = number_of(&described).map_err(|found| MtdError::NotMtd { path: path.into(), found })?;
        let file = OpenOptions::new().read(true).write(access == Access::ReadWrite).open(path);
        let file = file.map_err(|error| failed("opened", error))?;
        let locked = if access == Access::ReadWrite { file.try_lock() } else { file.try_lock_shared() };
        locked.map_err(|error| match error {
            TryLockError::WouldBlock => MtdError::Locked { path: path.into() },
            TryLockError::Error(source) => failed("locked", source),
        })?;
        let info = sys::info(file.as_fd()).map_err(|errno| failed("described", errno.into()))?;
        let attributes = format!("/sys/class/mtd/mtd{number}");
        let attribute =
            |name: &str| fs::read_to_string(format!("{attributes}/{name}")).map(|text| text.trim().to_owned());
        if ![sys::TYPE_NAND, sys::TYPE_MLC_NAND].contains(&info.kind) {
            let found = attribute("type").unwrap_or_else(|_| format!("number {}", info.kind));
            return Err(MtdError::NotNand { path: path.into(), found });
        }
        let attribute = |name| attribute(name).map_err(|error| failed("described", error));
        let name = attribute("name")?;
        if let Some(user) = ubi_on(number).or_else(|| mount_of(number, &name)) {
            return Err(MtdError::Used { path: path.into(), user });
        }
        let number_in =
            |name| attribute(name)?.parse::<u64>().map_err(|error| failed("described", io::Error::other(error)));
        // The size that the ioctl says ends at 4 GiB.
        let blocks = number_in("size")? / u64::from(info.erase_bytes.max(1));
        let shape = Shape {
            blocks: u32::try_from(blocks).map_err(|_| MtdError::Blocks { blocks })?,
            pages_per_block: info.erase_bytes / info.write_bytes.max(1),
            page_bytes: info.write_bytes,
            oob_bytes: number_in("oobavail")? as u32,
            ecc_strength: number_in("ecc_strength")? as u32,
        };
        let opened = Self { file, shape, name, block_bytes: info.erase_bytes.into() };
        opened.check_kernel()?;
        Ok(opened)
    }

    /// The name of the chip or partition, as the kernel calls it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Refuses a kernel that cannot read data and OOB at once.
    fn check_kernel(&self) -> Result<(), MtdError> {
        match sys::read(self.file.as_fd(), 0, &mut [], &mut [0]).outcome {
            Err(Errno::NOTTY) => Err(MtdError::Kernel),
            _ => Ok(()),
        }
    }

    fn start(&self, at: Place) -> u64 {
        debug_assert!(at.block < self.shape.blocks && at.offset < self.shape.pages_per_block);
        self.start_of(at.block) + u64::from(at.offset) * u64::from(self.shape.page_bytes)
    }

    fn start_of(&self, block: u32) -> u64 {
        u64::from(block) * self.block_bytes
    }
}

/// What the kernel's number means.
fn error_of(errno: Errno) -> ChipError {
    match errno {
        Errno::IO => ChipError::Failed,
        Errno::BADMSG => ChipError::Uncorrectable,
        errno => ChipError::Host(HostError(errno.raw_os_error())),
    }
}

/// The number of the MTD device that a path leads to, or what it leads to instead.
fn number_of(described: &fs::Metadata) -> Result<u32, &'static str> {
    let (major, minor) = (rustix::fs::major(described.rdev()), rustix::fs::minor(described.rdev()));
    match described.file_type() {
        kind if kind.is_char_device() && major == MTD_MAJOR => Ok(minor / 2),
        kind if kind.is_char_device() => Err("a character device of another kind"),
        kind if kind.is_block_device() => Err("a block device"),
        kind if kind.is_dir() => Err("a folder"),
        kind if kind.is_file() => Err("a file"),
        _ => Err("no device"),
    }
}

/// The UBI device that uses an MTD device.
fn ubi_on(number: u32) -> Option<String> {
    let wanted = number.to_string();
    let attached = fs::read_dir("/sys/class/ubi").ok()?.flatten().find(|entry| {
        let used = fs::read_to_string(entry.path().join("mtd_num"));
        used.is_ok_and(|used| used.trim() == wanted)
    })?;
    Some(attached.file_name().to_string_lossy().into_owned())
}

/// Where a file system of an MTD device is mounted.
fn mount_of(number: u32, name: &str) -> Option<String> {
    let sources = [format!("/dev/mtdblock{number}"), format!("mtd{number}"), format!("mtd:{name}")];
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mut lines = mounts.lines().map(|line| line.split(' '));
    lines.find_map(|mut fields| {
        // Spaces are escaped.
        let source = fields.next()?.replace("\\040", " ");
        if sources.contains(&source) { fields.next().map(|place| format!("a file system at {place}")) } else { None }
    })
}

impl Chip for CharDevice {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn read(&mut self, at: Place, data: Option<&mut [u8]>, oob: &mut [u8]) -> Result<u32, ChipError> {
        let read = sys::read(self.file.as_fd(), self.start(at), data.unwrap_or_default(), oob);
        match read.outcome {
            // The second says that bits were corrected.
            Ok(()) | Err(Errno::UCLEAN) => Ok(read.bits_max),
            Err(errno) => Err(error_of(errno)),
        }
    }

    fn program(&mut self, at: Place, data: &[u8], oob: &[u8]) -> Result<(), ChipError> {
        sys::write(self.file.as_fd(), self.start(at), data, oob).map_err(error_of)
    }

    fn erase(&mut self, block: u32) -> Result<(), ChipError> {
        sys::erase(self.file.as_fd(), self.start_of(block), self.block_bytes).map_err(error_of)
    }

    fn is_bad(&mut self, block: u32) -> Result<bool, ChipError> {
        sys::is_bad(self.file.as_fd(), self.start_of(block)).map_err(error_of)
    }

    fn mark_bad(&mut self, block: u32) -> Result<(), ChipError> {
        sys::mark_bad(self.file.as_fd(), self.start_of(block)).map_err(error_of)
    }
}
