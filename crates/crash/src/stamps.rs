//! Stamps on disks of bytes: the explorer runs the FTLs that a served disk runs, as they were
//! compiled for it.

use ftl::{Ftl, FtlError};
use nand::{Lpn, Stamp};
use table::AnyBytes;

/// A disk whose pages of host data hold the bytes of a stamp ([`nand::Stamped`]).
pub trait Stamps {
    /// Reads a logical page.
    ///
    /// # Errors
    /// Those of the FTL.
    fn read_stamp(&mut self, lpn: Lpn) -> Result<Stamp, FtlError>;

    /// Writes a logical page.
    ///
    /// # Errors
    /// Those of the FTL.
    fn write_stamp(&mut self, lpn: Lpn, stamp: Stamp) -> Result<(), FtlError>;
}

impl Stamps for dyn Ftl<AnyBytes> + '_ {
    fn read_stamp(&mut self, lpn: Lpn) -> Result<Stamp, FtlError> {
        // A disk that sets no bytes must not pass for one on which nothing was written.
        let mut bytes = Stamp { lpn: Lpn(u32::MAX / 2), version: u16::MAX }.to_bytes();
        self.read(lpn, &mut bytes)?;
        Ok(Stamp::from_bytes(bytes))
    }

    fn write_stamp(&mut self, lpn: Lpn, stamp: Stamp) -> Result<(), FtlError> {
        self.write(lpn, &stamp.to_bytes())
    }
}
