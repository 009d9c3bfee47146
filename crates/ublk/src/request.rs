//! One request of the kernel: what it asks, and with which error it is refused.

use crate::sys::Descriptor;
use blockdev::stats::Op;
use blockdev::{BlockDevice, DiskError, Zeroing};
use rustix::io::Errno;

/// Bytes of a sector, in which the kernel counts whatever the device says.
pub(crate) const SECTOR_BYTES: u64 = 512;

const OP_MASK: u32 = 0xff;
const READ: u32 = 0;
const WRITE: u32 = 1;
const FLUSH: u32 = 2;
const DISCARD: u32 = 3;
const WRITE_ZEROES: u32 = 5;
/// The request is to survive power loss once it is answered.
const FLAG_FUA: u32 = 1 << 13;
/// Zeros are to take space.
const FLAG_NO_UNMAP: u32 = 1 << 15;

/// What the kernel asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) op: Op,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) fua: bool,
    /// Pages may be forgotten.
    pub(crate) forgets: bool,
}

impl Request {
    pub(crate) fn of(descriptor: &Descriptor) -> Self {
        let op = match descriptor.op_flags & OP_MASK {
            READ => Op::Read,
            WRITE => Op::Write,
            FLUSH => Op::Flush,
            DISCARD => Op::Trim,
            WRITE_ZEROES => Op::Zero,
            _ => Op::Other,
        };
        let has = |flag| descriptor.op_flags & flag != 0;
        Self {
            op,
            offset: descriptor.start_sector.saturating_mul(SECTOR_BYTES),
            bytes: if op == Op::Flush { 0 } else { u64::from(descriptor.sectors) * SECTOR_BYTES },
            fua: has(FLAG_FUA),
            forgets: op == Op::Trim || op == Op::Zero && !has(FLAG_NO_UNMAP),
        }
    }

    /// Does a request, with its data in `data`: what is written, or what was read afterwards.
    pub(crate) fn perform(&self, device: &dyn BlockDevice, data: &mut [u8]) -> Result<(), Errno> {
        let Self { offset, bytes, fua, .. } = *self;
        match self.op {
            Op::Read => device.read(offset, data),
            Op::Write => device.write(offset, data, fua),
            Op::Flush => device.flush(),
            Op::Trim => device.trim(offset, bytes, fua),
            Op::Zero => device.write_zeroes(offset, bytes, Zeroing { may_trim: self.forgets, only_fast: false, fua }),
            Op::Other => return Err(Errno::OPNOTSUPP),
        }
        .map_err(|error| errno_of(&error))
    }
}

fn errno_of(error: &DiskError) -> Errno {
    match error {
        DiskError::OutOfRange { .. } => Errno::INVAL,
        DiskError::ReadOnly => Errno::ROFS,
        DiskError::WornOut(_) => Errno::NOSPC,
        DiskError::NotFast => Errno::OPNOTSUPP,
        _ => Errno::IO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::disk;

    fn request(op_flags: u32, sectors: u32, start_sector: u64) -> Request {
        Request::of(&Descriptor::new(op_flags, sectors, start_sector))
    }

    #[test]
    fn flags_reach_the_device() {
        let write = request(WRITE | FLAG_FUA, 3, 5);
        assert_eq!(
            (write.op, write.offset, write.bytes, write.fua, write.forgets),
            (Op::Write, 2560, 1536, true, false)
        );
        assert!(!request(WRITE, 1, 0).fua);
        assert!(request(WRITE_ZEROES, 8, 0).forgets && !request(WRITE_ZEROES | FLAG_NO_UNMAP, 8, 0).forgets);
        assert!(request(DISCARD, 8, 0).forgets);
        // The kernel leaves the rest of a flush undefined.
        assert_eq!(request(FLUSH, 77, 0).bytes, 0);
    }

    #[test]
    fn requests_do_what_they_say() {
        let disk = disk(false);
        let read = |sector| {
            let mut data = [9; 1024];
            request(READ, 2, sector).perform(&disk, &mut data).map(|()| data)
        };
        assert_eq!(request(WRITE, 2, 1).perform(&disk, &mut [7; 1024]), Ok(()));
        assert_eq!(request(FLUSH, 0, 0).perform(&disk, &mut []), Ok(()));
        assert_eq!(read(1), Ok([7; 1024]));
        assert_eq!(request(WRITE_ZEROES | FLAG_NO_UNMAP, 2, 1).perform(&disk, &mut []), Ok(()));
        assert_eq!(read(1), Ok([0; 1024]));
        let page = disk.block_sizes().preferred;
        let sectors = page / SECTOR_BYTES as u32;
        assert_eq!(request(WRITE, sectors, 0).perform(&disk, &mut vec![7; page as usize]), Ok(()));
        assert_eq!(request(DISCARD, sectors, 0).perform(&disk, &mut []), Ok(()));
        assert_eq!(read(0), Ok([0; 1024]));
    }

    #[test]
    fn refusals_are_errors_that_the_kernel_knows() {
        let (writable, read_only) = (disk(false), disk(true));
        let end = writable.size_bytes() / SECTOR_BYTES;
        assert_eq!(request(READ, 1, end).perform(&writable, &mut [0; 512]), Err(Errno::INVAL));
        assert_eq!(request(WRITE, 1, u64::MAX).perform(&writable, &mut [0; 512]), Err(Errno::INVAL));
        assert_eq!(request(4, 1, 0).perform(&writable, &mut []), Err(Errno::OPNOTSUPP));
        assert_eq!(request(WRITE, 1, 0).perform(&read_only, &mut [0; 512]), Err(Errno::ROFS));
        assert_eq!(request(DISCARD, 1, 0).perform(&read_only, &mut []), Err(Errno::ROFS));
    }
}
