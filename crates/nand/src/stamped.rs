//! A device that keeps a stamp a page, as one that keeps bytes.
//!
//! An FTL that was compiled for devices of bytes can so be run on one of stamps, which is smaller
//! and can be copied as it is, without being compiled again.

use crate::addr::{BlockId, Ppn};
use crate::contract::{Nand, Stamp};
use crate::error::{Law, NandError};
use crate::flags::Flags;
use crate::geometry::{Capabilities, Geometry};
use crate::laws::illegal;
use crate::spare::Spare;

/// A device whose pages of host data hold the bytes of a stamp ([`Stamp::to_bytes`]), and no more.
/// Pages of metadata are as large as those of the device below.
#[derive(Clone, Debug)]
pub struct Stamped<N>(pub N);

impl<N: Nand<Payload = Stamp>> Nand for Stamped<N> {
    type Payload = [u8];

    fn geometry(&self) -> &Geometry {
        self.0.geometry()
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    /// # Errors
    /// [`Law::PageSize`] unless `out` is [`Stamp::BYTES`] long; else those of the device.
    fn read(&mut self, ppn: Ppn, out: &mut [u8]) -> Result<Spare, NandError> {
        let out: &mut [u8; Stamp::BYTES] = out.try_into().map_err(|_| illegal("read", ppn, Law::PageSize))?;
        let mut stamp = Stamp::UNWRITTEN;
        let spare = self.0.read(ppn, &mut stamp)?;
        *out = stamp.to_bytes();
        debug_assert!(Stamp::from_bytes(*out) == stamp, "{ppn} holds another stamp than its bytes say");
        Ok(spare)
    }

    fn read_meta(&mut self, ppn: Ppn, out: &mut [u8]) -> Result<Spare, NandError> {
        self.0.read_meta(ppn, out)
    }

    fn read_spare(&mut self, ppn: Ppn) -> Result<Option<Spare>, NandError> {
        self.0.read_spare(ppn)
    }

    fn probe(&mut self, ppn: Ppn) -> Result<Spare, NandError> {
        self.0.probe(ppn)
    }

    /// # Errors
    /// [`Law::PageSize`] unless `data` is [`Stamp::BYTES`] long; else those of the device.
    fn program(&mut self, ppn: Ppn, data: &[u8], spare: &Spare) -> Result<(), NandError> {
        let bytes: &[u8; Stamp::BYTES] = data.try_into().map_err(|_| illegal("program", ppn, Law::PageSize))?;
        self.0.program(ppn, &Stamp::from_bytes(*bytes), spare)
    }

    fn program_meta(&mut self, ppn: Ppn, data: &[u8], spare: &Spare) -> Result<(), NandError> {
        self.0.program_meta(ppn, data, spare)
    }

    fn copy(&mut self, from: Ppn, to: Ppn, spare: &Spare) -> Result<(), NandError> {
        self.0.copy(from, to, spare)
    }

    fn erase(&mut self, block: BlockId) -> Result<(), NandError> {
        self.0.erase(block)
    }

    fn is_bad(&self, block: BlockId) -> bool {
        self.0.is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockId) -> Result<(), NandError> {
        self.0.mark_bad(block)
    }

    fn clear_flags(&mut self, ppn: Ppn, flags: Flags) -> Result<(), NandError> {
        self.0.clear_flags(ppn, flags)
    }

    fn corrected_bits(&self) -> u32 {
        self.0.corrected_bits()
    }

    fn correctable_bits(&self) -> u32 {
        self.0.correctable_bits()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::{Lpn, PageKind, SimNand, find};

    fn device() -> Stamped<SimNand> {
        let profile = find("tiny").unwrap();
        Stamped(SimNand::new(profile.geometry().unwrap(), profile.capabilities))
    }

    const SPARE: Spare =
        Spare { kind: PageKind::User, tag: 7, seq: 1, erase_count: 0, erased_at: 0, aux: 0, flags: Flags::NONE };

    #[test]
    fn a_stamp_is_its_bytes_and_a_page_never_written_is_zeros() {
        for stamp in [Stamp { lpn: Lpn(0), version: 0 }, Stamp { lpn: Lpn(0x0102_0304), version: 0x0506 }] {
            assert_eq!(Stamp::from_bytes(stamp.to_bytes()), stamp);
            assert_ne!(stamp.to_bytes(), [0; Stamp::BYTES]);
        }
        assert_eq!(Stamp::from_bytes([0; Stamp::BYTES]), Stamp::UNWRITTEN);
    }

    #[test]
    fn what_is_programmed_as_bytes_is_the_stamp_on_the_device_below() {
        let (mut device, stamp) = (device(), Stamp { lpn: Lpn(7), version: 3 });
        device.program(Ppn(0), &stamp.to_bytes(), &SPARE).unwrap();
        let (mut bytes, mut below) = ([0; Stamp::BYTES], Stamp::UNWRITTEN);
        assert_eq!(device.read(Ppn(0), &mut bytes), Ok(SPARE));
        assert_eq!(device.0.read(Ppn(0), &mut below), Ok(SPARE));
        assert_eq!((Stamp::from_bytes(bytes), below), (stamp, stamp));
    }

    #[test]
    fn bytes_of_another_number_are_refused_and_change_nothing() {
        let mut device = device();
        for len in [0, Stamp::BYTES - 1, Stamp::BYTES + 1] {
            let refused = device.program(Ppn(0), &[1; 8][..len], &SPARE);
            assert_eq!(refused, Err(illegal("program", Ppn(0), Law::PageSize)));
            assert_eq!(device.read(Ppn(0), &mut [1; 8][..len]), Err(illegal("read", Ppn(0), Law::PageSize)));
        }
        assert_eq!(device.read_spare(Ppn(0)), Ok(None));
    }
}
