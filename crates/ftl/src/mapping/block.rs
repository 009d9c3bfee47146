//! Block mapping: one entry a logical block, and one bit a logical page that says whether its
//! newest copy is there.
//!
//! 1. A logical page at home is in its data block, at the offset that it has in its logical block.
//! 2. A logical page that is not at home is in a log block, or nowhere: the bits tell the two from
//!    a page that was overwritten without a look at its spare area.
//! 3. A second bit marks pages whose only copy was lost, if no page on flash says so. Most devices
//!    never set one.

use super::bits::Bits;
use crate::contract::{RamItem, RamReport};
use alloc::vec::Vec;
use nand::{BlockId, Lpn};

/// The data block of every logical block, and which logical pages are at home in it.
#[derive(Debug)]
pub struct BlockTable {
    data: Vec<BlockId>,
    home: Bits,
    lost: Bits,
    lost_pages: u32,
}

impl BlockTable {
    /// The table of a device on which nothing was written, for so many logical blocks of so many
    /// pages. Without `keeps_losses` no page may be lost.
    #[must_use]
    pub fn new(logical_blocks: u32, pages_per_block: u32, keeps_losses: bool) -> Self {
        let pages = logical_blocks * pages_per_block;
        Self {
            data: alloc::vec![BlockId::NONE; logical_blocks as usize],
            home: Bits::new(pages),
            lost: Bits::new(if keeps_losses { pages } else { 0 }),
            lost_pages: 0,
        }
    }

    /// Logical blocks.
    #[inline]
    #[must_use]
    pub fn logical_blocks(&self) -> u32 {
        self.data.len() as u32
    }

    /// The data block of a logical block, or [`BlockId::NONE`].
    #[inline]
    #[must_use]
    pub fn data(&self, lbn: u32) -> BlockId {
        self.data[lbn as usize]
    }

    /// Gives a logical block another data block; answers the one it had. The bits stay.
    #[inline]
    pub fn replace(&mut self, lbn: u32, block: BlockId) -> BlockId {
        core::mem::replace(&mut self.data[lbn as usize], block)
    }

    /// Whether a page's newest copy is in its data block.
    #[inline]
    #[must_use]
    pub fn is_home(&self, lpn: Lpn) -> bool {
        self.home.has(lpn.0)
    }

    /// Of 32 pages, which are at home: page 32 * `at` in the lowest bit.
    #[must_use]
    pub fn home_word(&self, at: u32) -> u32 {
        self.home.word(at)
    }

    /// A page's newest copy is in its data block now.
    #[inline]
    pub fn came_home(&mut self, lpn: Lpn) {
        self.home.set(lpn.0);
    }

    /// A page's newest copy is no longer in its data block; whether it was.
    #[inline]
    pub fn left_home(&mut self, lpn: Lpn) -> bool {
        self.home.take(lpn.0)
    }

    /// Whether a page's only copy was lost.
    #[inline]
    #[must_use]
    pub fn is_lost(&self, lpn: Lpn) -> bool {
        let lost = self.lost_pages > 0 && self.lost.has(lpn.0);
        debug_assert!(!lost || !self.is_home(lpn), "{lpn} is lost and at home");
        lost
    }

    /// A page's only copy was lost.
    pub fn lose(&mut self, lpn: Lpn) {
        debug_assert!(!self.is_home(lpn), "{lpn} is lost and at home");
        if !self.lost.has(lpn.0) {
            self.lost.set(lpn.0);
            self.lost_pages += 1;
        }
    }

    /// A page was written again, or trimmed: it is not lost any more.
    #[inline]
    pub fn found(&mut self, lpn: Lpn) {
        if self.lost_pages > 0 && self.lost.take(lpn.0) {
            self.lost_pages -= 1;
        }
    }

    /// The RAM that it holds.
    pub fn ram(&self, report: &mut RamReport) {
        let bytes = (self.data.capacity() * size_of::<BlockId>()) as u64;
        report.push(RamItem { name: "block_table", bytes });
        report.push(RamItem { name: "home_and_lost_bits", bytes: self.home.bytes() + self.lost.bytes() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_home_or_lost_only_while_it_is() {
        let mut table = BlockTable::new(3, 7, true);
        table.came_home(Lpn(20));
        assert!(table.is_home(Lpn(20)) && !table.is_home(Lpn(19)));
        assert!(table.left_home(Lpn(20)) && !table.left_home(Lpn(20)));
        table.lose(Lpn(20));
        table.lose(Lpn(20));
        assert!(table.is_lost(Lpn(20)));
        table.found(Lpn(20));
        assert!(!table.is_lost(Lpn(20)) && table.lost_pages == 0);
    }
}
