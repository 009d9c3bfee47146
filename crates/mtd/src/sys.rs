//! The ioctls of MTD, and nothing else: the only place of this crate where `unsafe` stands.
//!
//! The structs are those of `include/uapi/mtd/mtd-abi.h`, which are the same for every
//! architecture.
#![allow(unsafe_code)]

use core::ffi::c_void;
use rustix::fd::BorrowedFd;
use rustix::io;
use rustix::ioctl::{Getter, Ioctl, IoctlOutput, Opcode, Setter, Updater, ioctl, opcode};

/// SLC NAND, as the kernel numbers types of flash.
pub(crate) const TYPE_NAND: u8 = 4;
/// NAND with more bits a cell.
pub(crate) const TYPE_MLC_NAND: u8 = 8;

/// OOB bytes go where the ECC leaves room.
const MODE_AUTO_OOB: u8 = 1;
const GROUP: u8 = b'M';

/// What MEMGETINFO says. The size is that of the first 4 GiB at most.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Info {
    pub(crate) kind: u8,
    pub(crate) flags: u32,
    pub(crate) size: u32,
    pub(crate) erase_bytes: u32,
    pub(crate) write_bytes: u32,
    pub(crate) oob_bytes: u32,
    padding: u64,
}

#[repr(C)]
struct EraseRange {
    start: u64,
    length: u64,
}

#[repr(C)]
struct WriteRequest {
    start: u64,
    data_bytes: u64,
    oob_bytes: u64,
    data: u64,
    oob: u64,
    mode: u8,
    padding: [u8; 7],
}

#[repr(C)]
struct ReadRequest {
    start: u64,
    data_bytes: u64,
    oob_bytes: u64,
    data: u64,
    oob: u64,
    mode: u8,
    padding: [u8; 7],
    uncorrectable_errors: u32,
    corrected_bits: u32,
    corrected_bits_max: u32,
}

const MEMGETINFO: Opcode = opcode::read::<Info>(GROUP, 1);
const MEMGETBADBLOCK: Opcode = opcode::write::<u64>(GROUP, 11);
const MEMSETBADBLOCK: Opcode = opcode::write::<u64>(GROUP, 12);
const MEMERASE64: Opcode = opcode::write::<EraseRange>(GROUP, 20);
const MEMWRITE: Opcode = opcode::read_write::<WriteRequest>(GROUP, 24);
const MEMREAD: Opcode = opcode::read_write::<ReadRequest>(GROUP, 26);

/// The address of a buffer, or 0 if there is none: the kernel then leaves that part of the page
/// alone.
fn address(bytes: &[u8]) -> u64 {
    if bytes.is_empty() { 0 } else { bytes.as_ptr() as u64 }
}

/// As [`address`], of a buffer that the kernel writes.
fn address_mut(bytes: &mut [u8]) -> u64 {
    if bytes.is_empty() { 0 } else { bytes.as_mut_ptr() as u64 }
}

/// Describes the device.
pub(crate) fn info(device: BorrowedFd<'_>) -> io::Result<Info> {
    // SAFETY: MEMGETINFO writes one `struct mtd_info_user`, of which `Info` has the layout. It is
    // all integers, so that every pattern of bits is valid.
    unsafe { ioctl(device, Getter::<MEMGETINFO, Info>::new()) }
}

/// Erases the bytes from `start` on, which are whole blocks.
pub(crate) fn erase(device: BorrowedFd<'_>, start: u64, length: u64) -> io::Result<()> {
    // SAFETY: MEMERASE64 reads one `struct erase_info_user64` and writes no memory of the process.
    unsafe { ioctl(device, Setter::<MEMERASE64, EraseRange>::new(EraseRange { start, length })) }
}

/// Programs the page at `start`.
pub(crate) fn write(device: BorrowedFd<'_>, start: u64, data: &[u8], oob: &[u8]) -> io::Result<()> {
    let mut request = WriteRequest {
        start,
        data_bytes: data.len() as u64,
        oob_bytes: oob.len() as u64,
        data: address(data),
        oob: address(oob),
        mode: MODE_AUTO_OOB,
        padding: [0; 7],
    };
    // SAFETY: MEMWRITE reads one `struct mtd_write_req` and writes its lengths back into it. It
    // reads as many bytes of the two buffers as their lengths say; both slices live until it
    // returns.
    unsafe { ioctl(device, Updater::<MEMWRITE, WriteRequest>::new(&mut request)) }
}

/// What the ECC did to a page that was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Corrected {
    /// Bits corrected in the ECC step with most of them.
    pub(crate) bits_max: u32,
    /// What the kernel said.
    pub(crate) outcome: io::Result<()>,
}

/// Reads the page at `start`, or the one of its parts whose buffer is not empty.
pub(crate) fn read(device: BorrowedFd<'_>, start: u64, data: &mut [u8], oob: &mut [u8]) -> Corrected {
    let mut request = ReadRequest {
        start,
        data_bytes: data.len() as u64,
        oob_bytes: oob.len() as u64,
        data: address_mut(data),
        oob: address_mut(oob),
        mode: MODE_AUTO_OOB,
        padding: [0; 7],
        uncorrectable_errors: 0,
        corrected_bits: 0,
        corrected_bits_max: 0,
    };
    // SAFETY: MEMREAD reads one `struct mtd_read_req` and writes its lengths and numbers back into
    // it. It writes as many bytes into the two buffers as their lengths say; both are borrowed
    // mutably until it returns.
    let outcome = unsafe { ioctl(device, Updater::<MEMREAD, ReadRequest>::new(&mut request)) };
    Corrected { bits_max: request.corrected_bits_max, outcome }
}

/// Whether the block at `start` is marked bad.
pub(crate) fn is_bad(device: BorrowedFd<'_>, start: u64) -> io::Result<bool> {
    // SAFETY: `IsBad` keeps what the trait asks; see there.
    unsafe { ioctl(device, IsBad(start)) }
}

/// Marks the block at `start` bad.
pub(crate) fn mark_bad(device: BorrowedFd<'_>, start: u64) -> io::Result<()> {
    // SAFETY: MEMSETBADBLOCK reads one 64-bit offset and writes no memory of the process.
    unsafe { ioctl(device, Setter::<MEMSETBADBLOCK, u64>::new(start)) }
}

/// MEMGETBADBLOCK, whose answer is the value that the call returns.
struct IsBad(u64);

// SAFETY: the call reads one 64-bit offset through the pointer to it and writes no memory of the
// process. Its output is made of the returned number alone.
unsafe impl Ioctl for IsBad {
    type Output = bool;

    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        MEMGETBADBLOCK
    }

    fn as_ptr(&mut self) -> *mut c_void {
        (&raw mut self.0).cast()
    }

    unsafe fn output_from_ptr(returned: IoctlOutput, _: *mut c_void) -> io::Result<bool> {
        Ok(returned != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the calls have the sizes of the structs in them.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_calls_are_those_of_the_kernel() {
        let calls = [MEMGETINFO, MEMGETBADBLOCK, MEMSETBADBLOCK, MEMERASE64, MEMWRITE, MEMREAD];
        let wanted = [0x8020_4D01, 0x4008_4D0B, 0x4008_4D0C, 0x4010_4D14, 0xC030_4D18, 0xC040_4D1A];
        assert_eq!(calls, wanted);
    }

    #[test]
    fn what_is_no_mtd_device_refuses() {
        let null = std::fs::File::open("/dev/null").unwrap();
        let device = std::os::fd::AsFd::as_fd(&null);
        assert_eq!(info(device).unwrap_err(), io::Errno::NOTTY);
        assert_eq!(read(device, 0, &mut [0; 8], &mut [0; 8]).outcome, Err(io::Errno::NOTTY));
        assert!(is_bad(device, 0).is_err() && mark_bad(device, 0).is_err() && erase(device, 0, 512).is_err());
        assert!(write(device, 0, &[0; 8], &[]).is_err());
    }
}
