//! The block that a merge or a collector was filling when power was cut.

use super::{Copies, EMPTY, FoundBlock};
use crate::contract::FtlError;
use crate::flash::Flash;
use crate::recovery::mark::{Mark, Writer, root_of_write};
use nand::{BlockId, Lpn, Nand, PageKind, Ppn, Spare};

/// Whether only merges and collectors wrote these pages, none as the last page of its source.
pub(super) fn is_unfinished(pages: &[(Ppn, Spare)]) -> bool {
    let mut host = pages.iter().filter(|(_, spare)| spare.kind == PageKind::User).peekable();
    host.peek().is_some() && host.all(|(_, spare)| !is_end(spare))
}

/// Whether a page of host data says that its writer ended, or was no merge or collector.
pub(super) fn is_end(spare: &Spare) -> bool {
    let mark = Mark::decode(spare.aux);
    let moved = match mark.writer {
        Writer::Merge => true,
        Writer::Paged => Mark::is_copy(spare),
        Writer::Home | Writer::Log => false,
    };
    mark.last || !moved
}

impl Copies {
    /// Takes back the block to which a merge or a collector was moving pages when power was cut, if
    /// one was: answers it, and everything in it counts no more. It has to be erased before
    /// anything else is programmed.
    ///
    /// That is the block with the page programmed last, if only they wrote to it, none of its pages
    /// was the last that lived in its source, and every page is still where it was. A page that a
    /// merge got from the host was never acknowledged. If a page is found nowhere else, its source
    /// was erased and the page that said so is worn: the block counts. So it is if the merge got a
    /// page from the host and none is found that was to be copied behind it. A page elsewhere that
    /// cannot be read may be a source that faded, unless the block itself misses a page: then that
    /// one may have said that the source was erased.
    ///
    /// # Errors
    /// Those of the device, except unreadable pages.
    pub fn take_back<N: Nand>(&mut self, flash: &mut Flash<N>) -> Result<Option<BlockId>, FtlError> {
        let Some((youngest, _)) = self.last_programmed() else { return Ok(None) };
        let block = self.geometry.block_of(youngest);
        let found = self.blocks[block.index()];
        if !found.unfinished {
            return Ok(None);
        }
        let misses_one = self.misses_one(youngest);
        for (lpn, [newest, _]) in (0..).map(Lpn).zip(&self.pages) {
            if !newest.ppn.is_some() || self.geometry.block_of(newest.ppn) != block {
                continue;
            }
            let root = Mark::decode(newest.aux).root;
            let was_to_go_on = if root == root_of_write(newest.seq) {
                self.is_any_behind(lpn, block)
            } else {
                self.is_elsewhere(flash, lpn, root, newest.ppn)?
                    || !misses_one && self.is_torn_elsewhere(lpn, root, block)
            };
            if !was_to_go_on {
                return Ok(None);
            }
        }
        self.uncover(block);
        debug_assert!(self.newest().all(|(_, copy)| self.geometry.block_of(copy.ppn) != block), "{block} still counts");
        self.blocks[block.index()] = FoundBlock { used: true, erase_count: found.erase_count, ..EMPTY };
        // Pages live again elsewhere, or would if they could be read.
        self.judge(flash)?;
        self.find_homes();
        Ok(Some(block))
    }

    /// Whether a complete page of a block cannot be read, not even its spare area. The block ends
    /// with `youngest`, and one page behind it may be torn.
    fn misses_one(&self, youngest: Ppn) -> bool {
        let block = self.geometry.block_of(youngest);
        let silent = || self.silent.iter().filter(|ppn| self.geometry.block_of(**ppn) == block);
        silent().count() > 1 || silent().any(|ppn| *ppn < youngest)
    }

    /// Whether a page outside a block that cannot be read holds this write of a logical page.
    fn is_torn_elsewhere(&self, lpn: Lpn, root: u32, block: BlockId) -> bool {
        self.torn.iter().any(|(ppn, spare)| {
            spare.tag == lpn.0 && Mark::decode(spare.aux).root == root && self.geometry.block_of(*ppn) != block
        })
    }

    /// Whether a page whose place is behind that of `lpn` in its logical block is outside a block.
    fn is_any_behind(&self, lpn: Lpn, block: BlockId) -> bool {
        let pages = self.geometry.pages_per_block();
        // A logical page divides like a physical one.
        let behind = lpn.index() + 1..((lpn.0 / pages + 1) * pages) as usize;
        let copies = behind.filter_map(|lpn| self.pages.get(lpn)).flatten();
        copies.filter(|copy| copy.ppn.is_some()).any(|copy| self.geometry.block_of(copy.ppn) != block)
    }
}
