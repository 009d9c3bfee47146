//! The invariants that tie maps, blocks and flash together.

use super::area::Area;
use super::blocks::Role;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use nand::{BlockId, Lpn, Nand, NandError, PageKind};

impl<N: Nand> Area<N> {
    /// 1. Every mapped page is a programmed page of host data that names its logical page, and no
    ///    two share one.
    /// 2. A block counts as many live pages as are mapped to it; free and bad blocks hold none.
    /// 3. The data block of a logical block knows its owner, and every data block is one.
    /// 4. The counts of log blocks and free blocks are exact.
    ///
    /// # Errors
    /// The first violation, in words.
    pub fn check(&mut self) -> Result<(), String> {
        let geometry = *self.blocks.geometry();
        let mut valid = vec![0; geometry.blocks() as usize];
        let mut taken = vec![false; geometry.pages() as usize];
        for lpn in (0..self.table.logical_blocks() * geometry.pages_per_block()).map(Lpn) {
            let ppn = self.locate(lpn);
            if !ppn.is_some() {
                continue;
            }
            if lpn.0 >= self.logical_pages || self.table.is_lost(lpn) {
                return Err(format!("{lpn} is lost or outside the logical device, but mapped to {ppn}"));
            }
            if core::mem::replace(&mut taken[ppn.index()], true) {
                return Err(format!("{ppn} is mapped twice, once for {lpn}"));
            }
            valid[geometry.block_of(ppn).index()] += 1;
            match self.flash.nand_mut().probe(ppn) {
                Ok(s) if s.kind == PageKind::User && s.tag == lpn.0 => {}
                // A trimmed page that a checkpoint brought back, from a block that was being erased
                // when power was cut.
                Err(NandError::Erased { .. } | NandError::Uncorrectable { .. })
                    if self.blocks.is_restored(geometry.block_of(ppn)) => {}
                other => return Err(format!("{lpn} is mapped to {ppn}, which holds {other:?}")),
            }
        }
        let mut roles = [0; 6];
        for block in (0..geometry.blocks()).map(BlockId) {
            let (role, counted, found) = (self.blocks.role(block), self.blocks.valid(block), valid[block.index()]);
            roles[role as usize] += 1;
            if counted != found || (matches!(role, Role::Free | Role::Bad) && found > 0) {
                return Err(format!("{block} ({role:?}) holds {found} live pages but counts {counted}"));
            }
            let owner = self.blocks.owner(block);
            if role == Role::Data && self.table.data(owner) != block {
                return Err(format!("{block} is not the data block of logical block {owner}"));
            }
            if (role == Role::Bad) != self.flash.nand().is_bad(block) {
                return Err(format!("{block} is {role:?}, which the device denies"));
            }
        }
        let counts = [
            ("free", Role::Free, self.blocks.free_blocks()),
            ("log", Role::Log, self.blocks.logs()),
            ("page-mapped", Role::Paged, self.blocks.paged()),
            ("kept for checkpoints", Role::Checkpoint, self.blocks.checkpoints()),
            ("bad", Role::Bad, self.blocks.bad_blocks()),
        ];
        for (name, role, counted) in counts {
            let found = roles[role as usize];
            if counted != found {
                return Err(format!("{found} blocks are {name} but {counted} are counted"));
            }
        }
        Ok(())
    }
}
