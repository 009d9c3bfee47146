//! A device of any kind behind a pointer.
//!
//! Code that is generic over its device is compiled once for each kind of device. What is large and
//! used with many kinds is compiled for [`AnyNand`] instead.

use crate::addr::{BlockId, Ppn};
use crate::contract::Nand;
use crate::error::NandError;
use crate::flags::Flags;
use crate::geometry::{Capabilities, Geometry};
use crate::page::MetaPage;
use crate::spare::Spare;
use alloc::boxed::Box;
use core::ops::Range;

/// A device of any kind whose pages of host data hold `P`: a stamp, or bytes.
pub type AnyNand<P> = Box<dyn Nand<Payload = P>>;

impl<N: Nand + ?Sized> Nand for Box<N> {
    type Payload = N::Payload;

    fn geometry(&self) -> &Geometry {
        (**self).geometry()
    }

    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    fn read(&mut self, ppn: Ppn, out: &mut Self::Payload) -> Result<Spare, NandError> {
        (**self).read(ppn, out)
    }

    fn read_meta(&mut self, ppn: Ppn, out: &mut [u8]) -> Result<Spare, NandError> {
        (**self).read_meta(ppn, out)
    }

    fn read_meta_part(&mut self, ppn: Ppn, out: &mut [u8], needed: Range<usize>) -> Result<Spare, NandError> {
        (**self).read_meta_part(ppn, out, needed)
    }

    fn read_spare(&mut self, ppn: Ppn) -> Result<Option<Spare>, NandError> {
        (**self).read_spare(ppn)
    }

    fn probe(&mut self, ppn: Ppn) -> Result<Spare, NandError> {
        (**self).probe(ppn)
    }

    fn program(&mut self, ppn: Ppn, data: &Self::Payload, spare: &Spare) -> Result<(), NandError> {
        (**self).program(ppn, data, spare)
    }

    fn program_meta(&mut self, ppn: Ppn, data: &[u8], spare: &Spare) -> Result<(), NandError> {
        (**self).program_meta(ppn, data, spare)
    }

    fn program_meta_page(&mut self, ppn: Ppn, page: &mut MetaPage, spare: &Spare) -> Result<(), NandError> {
        (**self).program_meta_page(ppn, page, spare)
    }

    fn copy(&mut self, from: Ppn, to: Ppn, spare: &Spare) -> Result<(), NandError> {
        (**self).copy(from, to, spare)
    }

    fn erase(&mut self, block: BlockId) -> Result<(), NandError> {
        (**self).erase(block)
    }

    fn is_bad(&self, block: BlockId) -> bool {
        (**self).is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockId) -> Result<(), NandError> {
        (**self).mark_bad(block)
    }

    fn clear_flags(&mut self, ppn: Ppn, flags: Flags) -> Result<(), NandError> {
        (**self).clear_flags(ppn, flags)
    }

    fn corrected_bits(&self) -> u32 {
        (**self).corrected_bits()
    }

    fn correctable_bits(&self) -> u32 {
        (**self).correctable_bits()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::{Dimensions, PageKind, SimNand, Stamp};

    #[test]
    fn a_device_behind_a_pointer_transfers_no_more_of_a_page() {
        let dimensions = Dimensions {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks: 1,
            pages_per_block: 2,
            page_bytes: 512,
            spare_bytes: 32,
        };
        let nand = SimNand::new(Geometry::new(dimensions).unwrap(), Capabilities::MODERN);
        let mut nand: AnyNand<Stamp> = Box::new(nand);
        let kind = PageKind::Translation;
        let spare = Spare { kind, tag: 0, seq: 1, erase_count: 0, erased_at: 0, aux: 0, flags: Flags::NONE };
        nand.program_meta(Ppn(0), &[7; 512], &spare).unwrap();
        let mut page = [9; 512];
        nand.read_meta_part(Ppn(0), &mut page, 256..264).unwrap();
        assert_eq!((page[256], page[263], page[0], page[511]), (7, 7, 9, 9));
        nand.read_meta(Ppn(0), &mut page).unwrap();
        assert_eq!(page, [7; 512]);
    }
}
