//! The block that a merge or a collector was filling when power was cut.

use super::{Copies, EMPTY, FoundBlock};
use crate::contract::FtlError;
use crate::flash::{Flash, Purpose};
use crate::recovery::mark::{Mark, Writer, root_of_write};
use nand::{BlockId, Lpn, Nand, NandError, PageKind, Ppn, Spare};

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
                    || !misses_one && self.may_be_elsewhere(flash, lpn, root, block)?
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

    /// Whether a page outside a block may hold this write of a logical page although it does not
    /// say so: it cannot be read, or says something else than the checkpoint that names it. Any
    /// other copy may, if nobody knows of which write the one in the block is (root 0: its source
    /// could not be read).
    fn may_be_elsewhere<N: Nand>(
        &self,
        flash: &mut Flash<N>,
        lpn: Lpn,
        root: u32,
        block: BlockId,
    ) -> Result<bool, FtlError> {
        let is_elsewhere = |ppn: Ppn| ppn.is_some() && self.geometry.block_of(ppn) != block;
        let is_it = |spare: &Spare| spare.tag == lpn.0 && (root == 0 || Mark::decode(spare.aux).root == root);
        if self.torn.iter().any(|(ppn, spare)| is_it(spare) && is_elsewhere(*ppn)) {
            return Ok(true);
        }
        let older = self.older.get(&lpn.0).into_iter().flatten();
        for copy in self.pages[lpn.index()].iter().chain(older).filter(|copy| is_elsewhere(copy.ppn)) {
            if root == 0 || copy.seq == 0 && !Self::is_of_other_write(flash, lpn, root, copy.ppn)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a page says that it holds another write of a logical page. One that could not be
    /// read a moment ago may be readable now.
    fn is_of_other_write<N: Nand>(flash: &mut Flash<N>, lpn: Lpn, root: u32, ppn: Ppn) -> Result<bool, FtlError> {
        match flash.read_spare(Purpose::Recovery, ppn) {
            Ok(spare) => {
                let said = spare.filter(|spare| spare.kind == PageKind::User && spare.tag == lpn.0);
                Ok(said.is_some_and(|spare| Mark::decode(spare.aux).root != root))
            }
            Err(NandError::Uncorrectable { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use alloc::vec::Vec;
    use nand::{Blemish, Capabilities, Dimensions, FaultPlan, Faulty, Flags, Geometry, SimNand, Stamp};

    const LPN: Lpn = Lpn(3);
    /// When the host wrote it.
    const ROOT: u32 = 5;

    fn page(kind: PageKind, lpn: Lpn, seq: u64, mark: Mark) -> Spare {
        Spare { kind, tag: lpn.0, seq, erase_count: 0, erased_at: 0, aux: mark.encode(), flags: Flags::NONE }
    }

    /// What the host wrote.
    fn written(lpn: Lpn, seq: u32) -> Spare {
        page(PageKind::User, lpn, seq.into(), Mark { writer: Writer::Log, last: false, root: seq })
    }

    /// What a merge copied, but not as the last page of its source.
    fn merged(kind: PageKind, root: u32, seq: u64) -> Spare {
        page(kind, LPN, seq, Mark { writer: Writer::Merge, last: false, root })
    }

    /// A flash with these pages, which come with the blemish that they got.
    fn flash(pages: &[(u32, Spare, Option<Blemish>)]) -> Flash<Faulty<SimNand>> {
        let geometry = Geometry::new(Dimensions {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks: 4,
            pages_per_block: 4,
            page_bytes: 512,
            spare_bytes: 32,
        });
        let mut nand = Faulty::new(SimNand::new(geometry.unwrap(), Capabilities::MODERN), FaultPlan::default());
        let mut pages = pages.to_vec();
        pages.sort_unstable_by_key(|page| page.0);
        for (ppn, spare, blemish) in &pages {
            nand.program(Ppn(*ppn), &Stamp::UNWRITTEN, spare).unwrap();
            blemish.iter().for_each(|blemish| nand.damage(Ppn(*ppn), *blemish));
        }
        Flash::new(nand)
    }

    /// What lives where once the block that a merge was filling is taken back, if it is.
    fn after(pages: &[(u32, Spare, Option<Blemish>)]) -> (Option<BlockId>, Vec<Ppn>) {
        let mut flash = flash(pages);
        let mut copies = Copies::scan(&mut flash, 8, &[]).unwrap();
        let taken = copies.take_back(&mut flash).unwrap();
        (taken, copies.newest().map(|(_, copy)| copy.ppn).collect())
    }

    /// Two copies by a merge in block 1, the first of them a program that failed, and a page of
    /// which nothing can be read.
    fn with_two_copies(others: &[(u32, Spare, Option<Blemish>)]) -> (Option<BlockId>, Vec<Ppn>) {
        let copies = [
            (4, merged(PageKind::User, ROOT, 20), Some(Blemish::DataUnreadable)),
            (5, merged(PageKind::User, ROOT, 21), None),
            (6, merged(PageKind::User, ROOT, 22), Some(Blemish::Unreadable)),
        ];
        after(&[others, &copies].concat())
    }

    #[test]
    fn a_block_is_taken_back_while_its_source_is_there() {
        assert_eq!(with_two_copies(&[(0, written(LPN, ROOT), None)]), (Some(BlockId(1)), [Ppn(0)].to_vec()));
        let faded = Some(Blemish::DataUnreadable);
        assert_eq!(with_two_copies(&[(0, written(LPN, ROOT), faded)]).0, Some(BlockId(1)));
    }

    /// Its source was erased, so the page that said so is the one that cannot be read. A copy in
    /// the block itself that failed is no source.
    #[test]
    fn a_block_counts_that_holds_the_only_copy_that_can_be_read() {
        assert_eq!(with_two_copies(&[]), (None, [Ppn(5)].to_vec()));
        let faded = Some(Blemish::DataUnreadable);
        for other in [written(LPN, ROOT - 1), written(Lpn(LPN.0 + 1), ROOT)] {
            let (taken, live) = with_two_copies(&[(0, other, faded)]);
            assert!(taken.is_none() && live.contains(&Ppn(5)), "{other:?} is of another write");
        }
    }

    /// One page behind those that can be read may be torn. Any other was complete, and may have
    /// said that the source was erased.
    #[test]
    fn a_block_counts_that_misses_a_page() {
        let page = |ppn, seq, blemish| (ppn, merged(PageKind::User, ROOT, seq), blemish);
        let source = (0, written(LPN, ROOT), Some(Blemish::DataUnreadable));
        let gone = Some(Blemish::Unreadable);
        let at = |copy: u32, mute: &[u32]| {
            let pages = mute.iter().map(|ppn| page(*ppn, (20 + ppn).into(), gone));
            after(&pages.chain([source, page(copy, (20 + copy).into(), None)]).collect::<Vec<_>>())
        };
        assert_eq!(at(4, &[5]).0, Some(BlockId(1)));
        assert_eq!(at(5, &[4]), (None, [Ppn(5)].to_vec()), "a page before it");
        assert_eq!(at(4, &[5, 6]), (None, [Ppn(4)].to_vec()), "two pages behind it");
    }

    /// The source could not be read, so the copy says that the page is lost, and not of which
    /// write.
    #[test]
    fn a_block_is_taken_back_whose_copy_does_not_know_its_write() {
        let lost = (4, merged(PageKind::User, 0, 20), None);
        for faded in [None, Some(Blemish::DataUnreadable)] {
            assert_eq!(after(&[(0, written(LPN, ROOT), faded), lost]).0, Some(BlockId(1)), "{faded:?}");
        }
        assert_eq!(after(&[(0, written(Lpn(LPN.0 + 1), ROOT), None), lost]).0, None);
        let end = |ppn: u32| (ppn, merged(PageKind::User, 0, (20 + ppn).into()), Some(Blemish::Unreadable));
        let (taken, live) = after(&[(0, written(LPN, ROOT), None), lost, end(5), end(6)]);
        assert_eq!((taken, live), (None, [Ppn(4)].to_vec()), "the merge may have ended");
    }

    /// The source is in a block that was not read, because a checkpoint says what is in it.
    #[test]
    fn a_block_is_taken_back_whose_source_does_not_say_any_more_what_it_holds() {
        let taken = |root: u32, blemish: Option<Blemish>| {
            let (source, copy) = (written(LPN, root), merged(PageKind::User, ROOT, 20));
            let mut flash = flash(&[(0, source, blemish), (4, copy, None)]);
            let mut copies = Copies::new(*flash.nand().geometry(), 8, &[]);
            let named = (0..8).map(|lpn| if lpn == LPN.0 { Ppn(0) } else { Ppn::NONE }).collect();
            copies.begin_after(named, 10, 12, 0);
            copies.keep_block(BlockId(0), &source);
            copies.read_from(&mut flash, BlockId(1), 0, &mut Vec::new()).unwrap();
            copies.note_older(LPN, Ppn(0), false);
            copies.find_homes();
            copies.judge(&mut flash).unwrap();
            copies.take_back(&mut flash).unwrap()
        };
        for blemish in [None, Some(Blemish::Unreadable), Some(Blemish::Garbage)] {
            assert_eq!(taken(ROOT, blemish), Some(BlockId(1)), "{blemish:?}");
        }
        assert_eq!(taken(ROOT - 1, None), None, "it says that it is of another write");
    }

    /// The page that the host wrote last may be gone when a mount has copied it. The copy says that
    /// everything written before was complete.
    #[test]
    fn a_page_written_before_what_was_copied_is_worn_and_no_older_one_counts() {
        let of_lpn = |root_of_other: u32| {
            let copy = Mark { writer: Writer::Log, last: false, root: root_of_other };
            let other = page(PageKind::User, Lpn(LPN.0 + 1), 51, copy);
            let worn = (4, written(LPN, 30), Some(Blemish::DataUnreadable));
            let (taken, live) = after(&[(0, written(LPN, ROOT), None), worn, (8, other, None)]);
            assert_eq!(taken, None);
            live.into_iter().filter(|ppn| *ppn != Ppn(8)).collect::<Vec<_>>()
        };
        assert_eq!(of_lpn(40), [Ppn(4)]);
        assert_eq!(of_lpn(20), [Ppn(0)], "nothing was written after it: a cut tore it");
    }

    #[test]
    fn only_merges_and_collectors_leave_a_block_unfinished() {
        let is_unfinished = |kind, spares: &[Spare]| {
            let pages: Vec<_> = (0..).map(Ppn).zip(spares.iter().map(|spare| Spare { kind, ..*spare })).collect();
            super::is_unfinished(&pages)
        };
        let copy = merged(PageKind::User, ROOT, 20);
        let end = page(PageKind::User, LPN, 21, Mark { writer: Writer::Merge, last: true, root: ROOT });
        assert!(is_unfinished(PageKind::User, &[copy, copy]) && !is_unfinished(PageKind::User, &[copy, end]));
        assert!(!is_unfinished(PageKind::User, &[copy, written(LPN, 22)]), "the host wrote to it");
        // The number of a checkpoint may look like the mark of a merge.
        assert!(!is_unfinished(PageKind::Checkpoint, &[copy, copy]) && !is_unfinished(PageKind::User, &[]));
    }
}
