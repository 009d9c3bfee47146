//! Collection bank by bank, for who decides when and where ([`crate::victim::by_bank`]).

use super::choose::Need;
use super::{FtlError, Mapping, Nand, PageFtl, Validity};
use crate::victim::by_bank::Banked;

impl<N: Nand, M: Mapping, V: Validity> Banked for PageFtl<N, M, V> {
    fn banks(&self) -> u32 {
        self.core.space.banks().count()
    }

    fn free_blocks(&self, bank: u32) -> u32 {
        self.core.space.free_of(bank)
    }

    fn has_open(&self, bank: u32) -> bool {
        self.core.space.has_open(bank)
    }

    fn aim(&mut self, bank: u32) {
        self.core.space.aim(bank % self.core.space.banks().count());
    }

    fn collect(&mut self, bank: u32, live_pages: u32) -> Result<bool, FtlError> {
        let bank = bank % self.core.space.banks().count();
        // The emptiest block of a bank may cost more pages of metadata than it frees. If blocks are
        // scarce, the next write has the whole device to choose from.
        if self.core.is_starved() || self.is_scarce() || !self.core.space.may_free(1) {
            return Ok(false);
        }
        self.powered(Self::catch_up)?;
        self.home = Some(bank);
        let collected = self.healing(|ftl| ftl.gain(Need::InBank { bank, live_pages }));
        self.home = None;
        collected
    }

    fn keep_free(&mut self, blocks: u32) {
        self.core.space.keep_free(blocks as usize);
    }
}
