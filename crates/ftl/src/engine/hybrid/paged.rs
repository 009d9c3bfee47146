//! The page-mapped area: where its next page goes, and its collector.
//!
//! 1. Pages are written to the active block; when it is full, to a block that joined with pages
//!    never programmed; only then to an empty block.
//! 2. Every block but the active one is a candidate for collection, also those that still have
//!    room. The emptiest is collected: its live pages go to the active block like any write, then
//!    it is erased.
//! 3. The area holds at least one block more than its live pages fill (the over-provisioned blocks
//!    that no sequential log block has), so that somewhere outside the active block a page is dead
//!    or was never programmed, and collecting gains.

use super::learn::Learned;
use super::open::OpenBlocks;
use crate::contract::FtlError;
use crate::engine::log_block::area::Area;
use crate::engine::log_block::blocks::{RESERVE, Role};
use crate::engine::log_block::lru::Lru;
use crate::victim::Choice;
use alloc::format;
use alloc::string::String;
use nand::{BlockId, Lpn, Nand, Ppn};

/// Over-provisioned blocks without which there is no area: one for a sequential log block, and one
/// for collecting to gain.
pub(super) const LEAST: u32 = 2;

/// Blocks to be empty before one is taken: [`RESERVE`], and one more while there are blocks beyond
/// those that the disk needs.
///
/// [`RESERVE`] is then whole when power is lost. A mount needs a block to move pages to, and two
/// may go bad while mounts are cut short. In that time a torn page can keep a third block from use,
/// if a checkpoint names the page: nothing tells a torn page from a trimmed one that was half
/// erased. The blocks of the older checkpoint do for the fourth. Without mounts [`RESERVE`] is
/// enough.
pub(super) fn wanted<N: Nand>(area: &Area<N>) -> u32 {
    let has_one_more = area.in_flash && area.blocks.log_limit() > LEAST;
    RESERVE + u32::from(has_one_more)
}

/// The blocks of the page-mapped area that can still be written.
pub(super) struct PagedArea {
    active: BlockId,
    /// Blocks with pages never programmed.
    open: OpenBlocks,
    /// Blocks collected, and pages that lived in them.
    collected: u64,
    collected_live_pages: u64,
    /// What collections tell of the area's utilisation, if anyone wants to know.
    learned: Option<Learned>,
}

impl PagedArea {
    /// No block at all.
    pub(super) fn new(blocks: u32, learned: Option<Learned>) -> Self {
        Self { active: BlockId::NONE, open: OpenBlocks::new(blocks), collected: 0, collected_live_pages: 0, learned }
    }

    /// A block joined the area with what lives in it.
    pub(super) fn joined<N: Nand>(&mut self, area: &mut Area<N>, block: BlockId) {
        debug_assert!(
            area.blocks.role(block) == Role::Paged && block != self.active,
            "{block} is no new block of the area"
        );
        if area.blocks.has_room(block) {
            self.open.push(&mut area.blocks, block);
        }
        area.blocks.offer(block);
    }

    /// The block that takes the next page; empty blocks are made first if one is needed.
    #[inline]
    pub(super) fn active<N: Nand>(&mut self, area: &mut Area<N>, fused: &Lru) -> Result<BlockId, FtlError> {
        if !self.has_room(area) && !self.reopen(area) {
            self.make_space(area, fused)?;
            return self.destination(area);
        }
        Ok(self.active)
    }

    #[inline]
    fn has_room<N: Nand>(&self, area: &Area<N>) -> bool {
        self.active.is_some() && area.blocks.has_room(self.active)
    }

    /// Makes a block that joined with room the active one, if there is one.
    fn reopen<N: Nand>(&mut self, area: &mut Area<N>) -> bool {
        self.close_active(area);
        let Some(block) = self.open.pop() else { return false };
        area.blocks.withhold(block);
        debug_assert!(area.blocks.role(block) == Role::Paged && area.blocks.has_room(block), "{block} takes no page");
        self.active = block;
        true
    }

    fn close_active<N: Nand>(&mut self, area: &mut Area<N>) {
        let full = core::mem::replace(&mut self.active, BlockId::NONE);
        if full.is_some() {
            area.blocks.offer(full);
        }
    }

    /// The block that takes the next page of a collection, which may use up the reserve.
    fn destination<N: Nand>(&mut self, area: &mut Area<N>) -> Result<BlockId, FtlError> {
        if !self.has_room(area) && !self.reopen(area) {
            self.active = area.open_paged()?;
        }
        Ok(self.active)
    }

    /// Collects until [`wanted`] blocks are empty.
    pub(super) fn make_space<N: Nand>(&mut self, area: &mut Area<N>, fused: &Lru) -> Result<(), FtlError> {
        let pages = area.blocks.geometry().pages_per_block();
        let mut left = 4 * area.blocks.geometry().blocks();
        while area.blocks.free_blocks() < wanted(area) {
            left -= 1;
            match area.blocks.pick() {
                Some(Choice { block, valid }) if left > 0 && valid < pages => self.collect(area, fused, block)?,
                _ => return Err(area.no_space()),
            }
        }
        Ok(())
    }

    /// Collects the blocks in which least lives until [`wanted`] are empty.
    pub(super) fn collect_emptiest<N: Nand>(&mut self, area: &mut Area<N>, fused: &Lru) -> Result<(), FtlError> {
        let pages = area.blocks.geometry().pages_per_block();
        while area.blocks.free_blocks() < wanted(area) {
            let blocks = (0..area.blocks.geometry().blocks()).map(BlockId);
            let emptiest =
                blocks.filter(|&block| area.blocks.is_candidate(block)).min_by_key(|&b| area.blocks.valid(b));
            match emptiest {
                Some(block) if area.blocks.valid(block) < pages => self.collect(area, fused, block)?,
                _ => return Err(area.no_space()),
            }
        }
        Ok(())
    }

    fn collect<N: Nand>(&mut self, area: &mut Area<N>, fused: &Lru, victim: BlockId) -> Result<(), FtlError> {
        debug_assert!(area.blocks.role(victim) == Role::Paged && victim != self.active, "{victim} is being filled");
        area.blocks.withhold(victim);
        self.collected += 1;
        let valid = area.blocks.valid(victim);
        self.collected_live_pages += u64::from(valid);
        if let Some(learned) = &mut self.learned {
            learned.collected(fused.len(), f64::from(valid) / f64::from(area.blocks.geometry().pages_per_block()));
        }
        if area.blocks.has_room(victim) {
            self.open.remove(&area.blocks, victim);
        }
        let geometry = *area.blocks.geometry();
        for offset in 0..area.blocks.next(victim) {
            let from = geometry.page_at(victim, offset);
            if area.blocks.valid(victim) == 0 {
                break;
            }
            if !area.fused.lives(from) {
                continue;
            }
            if let Err(error) = self.move_page(area, fused, from) {
                area.blocks.offer(victim);
                return Err(error);
            }
        }
        area.release(victim)
    }

    /// Empties a block of the area, whichever it is.
    pub(super) fn empty<N: Nand>(&mut self, area: &mut Area<N>, fused: &Lru, block: BlockId) -> Result<(), FtlError> {
        if block == self.active {
            self.close_active(area);
        }
        self.collect(area, fused, block)
    }

    /// Moves a live page to the active block.
    pub(super) fn move_page<N: Nand>(&mut self, area: &mut Area<N>, fused: &Lru, from: Ppn) -> Result<(), FtlError> {
        let owner = area.owner_of_paged(from)?;
        let Some(lpn) = owner.or_else(|| Self::mapped_to(area, fused, from)) else { return Ok(()) };
        loop {
            let block = self.destination(area)?;
            debug_assert!(area.blocks.has_room(block) && area.blocks.geometry().block_of(from) != block);
            let moved = match owner {
                Some(_) => area.move_page(from, block, lpn)?,
                None => area.give_up_page(from, block, lpn)?,
            };
            if moved {
                return Ok(());
            }
        }
    }

    /// Whose page it is if its spare area cannot be read: only the map knows.
    #[cold]
    fn mapped_to<N: Nand>(area: &Area<N>, fused: &Lru, page: Ppn) -> Option<Lpn> {
        let pages = area.blocks.geometry().pages_per_block();
        let mut lpns = fused.iter().flat_map(|lbn| (0..pages).map(move |offset| (lbn, offset)));
        lpns.find(|&(lbn, offset)| area.fused.get(lbn, offset) == page).map(|(lbn, offset)| area.lpn(lbn, offset))
    }

    /// Every block of the area but the active one is a candidate, and those in `open` have room.
    pub(super) fn check<N: Nand>(&self, area: &Area<N>) -> Result<(), String> {
        for block in self.open.iter() {
            if area.blocks.role(block) != Role::Paged || !area.blocks.has_room(block) || block == self.active {
                return Err(format!("{block} ({:?}) is to be written next but cannot", area.blocks.role(block)));
            }
        }
        let blocks = (0..area.blocks.geometry().blocks()).map(BlockId);
        for block in blocks.filter(|&block| area.blocks.role(block) == Role::Paged) {
            if area.blocks.is_candidate(block) == (block == self.active) {
                return Err(format!("{block} is page-mapped, neither active nor a candidate, or both"));
            }
        }
        Ok(())
    }

    /// Blocks collected so far, and pages that lived in them.
    pub(super) const fn collections(&self) -> (u64, u64) {
        (self.collected, self.collected_live_pages)
    }

    /// What collections told of the area's utilisation, if that is wanted.
    pub(super) const fn learned(&self) -> Option<&Learned> {
        self.learned.as_ref()
    }

    /// Bytes of RAM held.
    pub(super) fn ram_bytes(&self) -> u64 {
        self.open.ram_bytes()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::engine::log_block::check::tests::{empty, stamp};
    use nand::SimNand;

    /// An area with an active block and, from the second on, blocks to be written next.
    fn paged() -> (PagedArea, Area<SimNand>, [BlockId; 3]) {
        let mut area = empty(true);
        let mut paged = PagedArea::new(area.blocks.geometry().blocks(), None);
        let blocks = [(); 3].map(|()| area.open_paged().unwrap());
        paged.active = blocks[0];
        blocks[1..].iter().for_each(|block| paged.joined(&mut area, *block));
        paged.check(&area).unwrap();
        (paged, area, blocks)
    }

    fn broken(harm: impl FnOnce(&mut PagedArea, &mut Area<SimNand>, [BlockId; 3])) -> String {
        let (mut paged, mut area, blocks) = paged();
        harm(&mut paged, &mut area, blocks);
        paged.check(&area).unwrap_err()
    }

    #[test]
    fn a_block_that_cannot_be_written_next_is_named() {
        let spent = broken(|_, area, [_, _, last]| {
            area.fused.fuse(0);
            for lpn in (0..area.blocks.geometry().pages_per_block()).map(Lpn) {
                assert!(area.write_paged(last, lpn, &stamp(lpn)).unwrap());
            }
        });
        let free = broken(|_, area, [_, _, last]| {
            area.blocks.withhold(last);
            area.release(last).unwrap();
        });
        let active = broken(|paged, area, [first, _, last]| {
            area.blocks.withhold(last);
            area.blocks.offer(first);
            paged.active = last;
        });
        for said in [spent, free, active] {
            assert!(said.contains("is to be written next but cannot"), "{said}");
        }
    }

    #[test]
    fn the_active_block_is_the_only_one_that_is_no_candidate() {
        let two = broken(|_, area, [_, _, last]| area.blocks.withhold(last));
        let none = broken(|_, area, [first, ..]| area.blocks.offer(first));
        let zero = broken(|paged, area, _| {
            while area.blocks.role(BlockId(0)) != Role::Paged {
                let block = area.open_paged().unwrap();
                paged.joined(area, block);
            }
            area.blocks.withhold(BlockId(0));
        });
        for said in [two, none, zero] {
            assert!(said.contains("neither active nor a candidate, or both"), "{said}");
        }
    }

    /// Where every page lives, a collection wins nothing and would go on for ever.
    #[test]
    fn an_area_in_which_every_page_lives_is_an_error_before_a_page_moves() {
        let mut area = empty(true);
        let mut paged = PagedArea::new(area.blocks.geometry().blocks(), None);
        let (pages, mut fused) = (area.blocks.geometry().pages_per_block(), Lru::new(2));
        for lbn in 0..2 {
            let block = area.open_paged().unwrap();
            area.fused.fuse(lbn);
            fused.touch(lbn);
            for lpn in (lbn * pages..(lbn + 1) * pages).map(Lpn) {
                assert!(area.write_paged(block, lpn, &stamp(lpn)).unwrap());
            }
            area.blocks.offer(block);
        }
        while area.blocks.free_blocks() >= wanted(&area) {
            area.open_paged().unwrap();
        }
        let before = area.flash.counts().total();
        let error = paged.make_space(&mut area, &fused).unwrap_err();
        assert!(matches!(error, FtlError::NoSpace(_)), "{error}");
        assert_eq!(area.flash.counts().total(), before);
    }
}
