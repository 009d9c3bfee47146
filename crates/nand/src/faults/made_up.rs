//! Well-formed spare areas that nobody wrote, beside data that cannot be read.

use super::Faulty;
use crate::addr::Ppn;
use crate::contract::Nand;
use crate::error::NandError;
use crate::flags::Flags;
use crate::spare::{PageKind, Spare};

impl<N: Nand> Faulty<N> {
    /// A spare area that nobody wrote, as plausible as chance makes one: near the true one in time.
    pub(super) fn garbage(&mut self, ppn: Ppn) -> Result<Option<Spare>, NandError> {
        let Some(truth) = self.inner.read_spare(ppn)? else { return Ok(None) };
        let roll = |item| self.plan.roll(u64::from(ppn.0) << 8 | item, truth.seq);
        debug_assert!(truth.seq < Spare::SEQ_END);
        Ok(Some(Spare {
            kind: PageKind::ALL[(roll(0) % 4) as usize],
            tag: (roll(1) % u64::from(self.inner.geometry().pages())) as u32,
            seq: if roll(2) % 4 == 0 { roll(3) % Spare::SEQ_END } else { truth.seq + roll(3) % 64 },
            erase_count: roll(4) as u32,
            erased_at: roll(5) as u32,
            aux: roll(6) as u32,
            flags: Flags::from_bits(roll(7) as u8),
        }))
    }

    /// The true spare area but for a field that gives it away: a tag that no device of this size
    /// needs, wear that its block does not have, or a number that no program took. Perhaps the
    /// auxiliary bits are others too.
    pub(super) fn altered(&mut self, ppn: Ppn) -> Result<Option<Spare>, NandError> {
        let Some(truth) = self.inner.read_spare(ppn)? else { return Ok(None) };
        let mut spare = truth;
        let roll = |item| self.plan.roll(u64::from(ppn.0) << 8 | item, truth.seq);
        match roll(8) % 4 {
            0 => {
                let pages = self.inner.geometry().pages();
                spare.tag = pages + (roll(1) % u64::from(u32::MAX - pages)) as u32;
            }
            1 => spare.erase_count = truth.erase_count ^ (roll(4) as u32 | 1 << 31),
            2 => spare.erased_at = truth.erased_at ^ (roll(5) as u32 | 1 << 31),
            _ => spare.seq = Spare::SEQ_END / 2 + roll(3) % (Spare::SEQ_END / 2),
        }
        if roll(9) % 2 == 0 {
            spare.aux = roll(6) as u32;
        }
        debug_assert!(spare.kind == truth.kind && spare.flags == truth.flags && spare != truth);
        Ok(Some(spare))
    }
}
