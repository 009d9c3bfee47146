//! Commands about a device, as the kernel's documentation (`block/ublk`) names them.

use crate::error::UblkError;
use crate::queue::{DATA_BYTES_MAX, DEPTH};
use crate::request::SECTOR_BYTES;
use crate::sys::{ControlRing, changes, reads};
use blockdev::BlockDevice;
use rustix::io::Errno;
use rustix::ioctl::Opcode;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

const NODE: &str = "/dev/ublk-control";

/// How long the kernel may take for a command. It waits for clients' data in some of them.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// How long it is waited until nobody has an ended device open.
const RELEASE: Duration = Duration::from_secs(5);

/// A name of a command, and its number.
type Command = (&'static str, Opcode);
const GET_DEV_INFO: Command = ("GET_DEV_INFO", reads(0x02));
const ADD_DEV: Command = ("ADD_DEV", changes(0x04));
const DEL_DEV: Command = ("DEL_DEV", changes(0x05));
const START_DEV: Command = ("START_DEV", changes(0x06));
const STOP_DEV: Command = ("STOP_DEV", changes(0x07));
const SET_PARAMS: Command = ("SET_PARAMS", changes(0x08));
const GET_FEATURES: Command = ("GET_FEATURES", reads(0x13));

/// What the driver must be able to do: numbers of commands as for ioctl, and copies on request.
const FEATURES: u64 = FEATURE_IOCTL | FEATURE_USER_COPY;
const FEATURE_IOCTL: u64 = 1 << 6;
const FEATURE_USER_COPY: u64 = 1 << 7;

/// Bytes of what is said of a device when it is added, and where its parts are.
const INFO_BYTES: usize = 64;
const INFO_STATE: usize = 4;
const INFO_ID: usize = 12;
/// A device that nobody serves.
const STATE_DEAD: u16 = 0;
/// The driver chooses the number.
const ANY_ID: u32 = u32::MAX;

const PARAMS_BYTES: usize = 60;
const PARAM_BASIC: u32 = 1 << 0;
const PARAM_DISCARD: u32 = 1 << 1;
const ATTRIBUTE_READ_ONLY: u32 = 1 << 0;
const ATTRIBUTE_VOLATILE_CACHE: u32 = 1 << 2;
const ATTRIBUTE_FUA: u32 = 1 << 3;
const SECTOR_SHIFT: u8 = SECTOR_BYTES.trailing_zeros() as u8;

/// The most of a discard. It is answered at once however long it is.
const DISCARD_BYTES_MAX: u64 = 1 << 31;
/// The most of a zeroing. Its pages may have to be written.
const ZERO_BYTES_MAX: u64 = 32 << 20;

/// Talks to the driver.
pub(crate) struct Control {
    ring: ControlRing,
}

impl Control {
    /// Opens the driver, and makes sure that it can do what is needed.
    pub(crate) fn open() -> Result<Self, UblkError> {
        let path = PathBuf::from(NODE);
        let file = File::options().read(true).write(true).open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => UblkError::NoDriver(path),
            io::ErrorKind::PermissionDenied => UblkError::NotAllowed(path),
            _ => UblkError::Channel { path, source: error },
        })?;
        let mut control = Self { ring: ControlRing::new(file).map_err(UblkError::NoRing)? };
        let mut features = [0; 8];
        match control.send(GET_FEATURES, 0, 0, &mut features, PATIENCE) {
            Ok(()) if u64::from_ne_bytes(features) & FEATURES == FEATURES => Ok(control),
            Err(Errno::PERM | Errno::ACCESS) => Err(UblkError::NotAllowed(NODE.into())),
            Err(Errno::TIME) => Err(UblkError::command(GET_FEATURES.0, Errno::TIME, PATIENCE.as_secs())),
            _ => Err(UblkError::OldDriver),
        }
    }

    /// Adds a device; answers with its number and how many queues it got.
    pub(crate) fn add(&mut self, id: Option<u32>, queues: u16) -> Result<(u32, u16), UblkError> {
        let mut info = [0; INFO_BYTES];
        info[..2].copy_from_slice(&queues.to_ne_bytes());
        info[2..4].copy_from_slice(&DEPTH.to_ne_bytes());
        info[8..12].copy_from_slice(&DATA_BYTES_MAX.to_ne_bytes());
        info[INFO_ID..16].copy_from_slice(&id.unwrap_or(ANY_ID).to_ne_bytes());
        info[24..32].copy_from_slice(&FEATURES.to_ne_bytes());
        let named = id.unwrap_or(ANY_ID);
        let mut added = self.send(ADD_DEV, named, 0, &mut info, PATIENCE);
        if let (Err(Errno::EXIST), Some(id)) = (added, id)
            && self.delete_dead(id)
        {
            added = self.send(ADD_DEV, named, 0, &mut info, PATIENCE);
        }
        added.map_err(|errno| match (errno, id) {
            (Errno::EXIST, Some(id)) => UblkError::Taken(id),
            (Errno::PERM, _) => UblkError::NotAllowed(NODE.into()),
            (Errno::ACCESS, _) => UblkError::TooMany,
            (errno, _) => UblkError::command(ADD_DEV.0, errno, PATIENCE.as_secs()),
        })?;
        Ok((u32_at(&info, INFO_ID), u16_at(&info, 0)))
    }

    /// Deletes a device whose server was killed; answers whether there was one.
    fn delete_dead(&mut self, id: u32) -> bool {
        let mut info = [0; INFO_BYTES];
        let known = self.send(GET_DEV_INFO, id, 0, &mut info, PATIENCE);
        // A server that is about to start its device has the node open. The kernel lets only one.
        known.is_ok()
            && u16_at(&info, INFO_STATE) == STATE_DEAD
            && open_channel(&channel_path(id)).is_ok()
            && self.send(DEL_DEV, id, 0, &mut [], PATIENCE).is_ok()
    }

    /// Says what the device is like.
    pub(crate) fn describe(&mut self, id: u32, params: &[u8; PARAMS_BYTES]) -> Result<(), UblkError> {
        self.must(SET_PARAMS, id, 0, &mut params.to_vec())
    }

    /// Makes the device appear. Every queue must have asked for requests.
    pub(crate) fn start(&mut self, id: u32) -> Result<(), UblkError> {
        self.must(START_DEV, id, std::process::id().into(), &mut [])
    }

    /// Makes the device go. File systems on it are synced first; queues have to go on until then.
    pub(crate) fn stop(&mut self, id: u32) -> Result<(), UblkError> {
        self.must(STOP_DEV, id, 0, &mut [])
    }

    /// Frees the number of a device that has gone; answers whether that is done. The kernel does it
    /// later if somebody has the device open.
    pub(crate) fn delete(&mut self, id: u32) -> Result<bool, UblkError> {
        match self.send(DEL_DEV, id, 0, &mut [], RELEASE) {
            Ok(()) => Ok(true),
            Err(Errno::TIME) => Ok(false),
            Err(errno) => Err(UblkError::command(DEL_DEV.0, errno, RELEASE.as_secs())),
        }
    }

    fn must(&mut self, command: Command, id: u32, value: u64, buffer: &mut [u8]) -> Result<(), UblkError> {
        self.send(command, id, value, buffer, PATIENCE)
            .map_err(|errno| UblkError::command(command.0, errno, PATIENCE.as_secs()))
    }

    fn send(
        &mut self,
        command: Command,
        id: u32,
        value: u64,
        buffer: &mut [u8],
        patience: Duration,
    ) -> Result<(), Errno> {
        self.ring.command(command.1, id, value, buffer, patience)
    }
}

/// The node through which a device's requests come.
pub(crate) fn channel_path(id: u32) -> PathBuf {
    format!("/dev/ublkc{id}").into()
}

pub(crate) fn open_channel(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).open(path)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

/// What the kernel is told of a device, in its own layout (`struct ublk_params`).
pub(crate) fn params(device: &dyn BlockDevice, write_through: bool) -> Result<[u8; PARAMS_BYTES], UblkError> {
    let size_bytes = device.size_bytes();
    if size_bytes < SECTOR_BYTES {
        return Err(UblkError::TooSmall(size_bytes));
    }
    // The largest power of two that pages begin at.
    let page_shift = (device.block_sizes().preferred.trailing_zeros() as u8).max(SECTOR_SHIFT);
    let read_only = device.read_only();
    let mut attributes = if read_only { ATTRIBUTE_READ_ONLY } else { 0 };
    if !write_through {
        attributes |= ATTRIBUTE_VOLATILE_CACHE | ATTRIBUTE_FUA;
    }
    let sectors = |bytes: u64| (bytes / SECTOR_BYTES) as u32;
    let forgettable = if read_only { (0, 0) } else { (sectors(DISCARD_BYTES_MAX), sectors(ZERO_BYTES_MAX)) };

    let mut out = [0; PARAMS_BYTES];
    let mut put = |at: usize, value: u32| out[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    put(0, PARAMS_BYTES as u32);
    put(4, PARAM_BASIC | PARAM_DISCARD);
    put(8, attributes);
    put(16, sectors(DATA_BYTES_MAX.into()));
    put(44, 1 << page_shift);
    put(48, forgettable.0);
    put(52, forgettable.1);
    out[12..16].copy_from_slice(&[SECTOR_SHIFT, page_shift, page_shift, page_shift]);
    out[24..32].copy_from_slice(&(size_bytes / SECTOR_BYTES).to_ne_bytes());
    // The driver takes one range in a discard.
    out[56..58].copy_from_slice(&u16::from(!read_only).to_ne_bytes());
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::disk;

    fn said(read_only: bool, write_through: bool) -> impl Fn(usize) -> u32 {
        let params = params(&disk(read_only), write_through).expect("the disk has sectors");
        move |at| u32_at(&params, at)
    }

    #[test]
    fn the_kernel_is_told_of_caches_and_discards() {
        let disk = disk(false);
        let page = disk.block_sizes().preferred;
        let at = said(false, false);
        assert_eq!([at(0), at(4), at(8)], [60, 3, ATTRIBUTE_VOLATILE_CACHE | ATTRIBUTE_FUA]);
        assert_eq!(at(12).to_ne_bytes(), [9, page.ilog2() as u8, page.ilog2() as u8, page.ilog2() as u8]);
        assert_eq!([at(16), at(24), at(28)], [2048, (disk.size_bytes() / 512) as u32, 0]);
        assert_eq!([at(44), at(48), at(52), at(56)], [page, 1 << 22, 1 << 16, 1]);
    }

    #[test]
    fn a_disk_without_a_cache_or_without_writes_says_so() {
        assert_eq!(said(false, true)(8), 0);
        let at = said(true, false);
        assert_eq!(at(8) & ATTRIBUTE_READ_ONLY, ATTRIBUTE_READ_ONLY);
        assert_eq!([at(48), at(52), at(56)], [0, 0, 0]);
    }

    #[test]
    fn a_missing_driver_is_named() {
        if !Path::new(NODE).exists() {
            let refused = Control::open().err().map(|error| error.to_string());
            assert!(refused.is_some_and(|text| text.contains("modprobe ublk_drv")));
        }
    }
}
