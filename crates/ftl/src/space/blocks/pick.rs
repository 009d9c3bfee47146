//! Which block is collected next.

use super::{Block, BlockState, BlockTable, Space};
use crate::victim::Choice;
use nand::{BlockId, PageKind};

/// Answers what a full block holds, and how many pages in it live.
fn full(blocks: &BlockTable) -> impl Fn(BlockId) -> Option<(PageKind, u32)> {
    |block| {
        let Block { valid, state, kind } = blocks.get(block)?;
        (state == BlockState::Closed).then_some((kind, u32::from(valid)))
    }
}

impl Space {
    /// The block to collect next with up to so many live pages: of the bank with the fewest free
    /// blocks that has one.
    pub fn pick(&mut self, live_pages: u32) -> Option<Choice> {
        let mut looked_at = None;
        for _ in 0..self.banks.count() {
            let next = (self.free_of.iter().copied().zip(0..)).filter(|bank| looked_at.is_none_or(|last| *bank > last));
            looked_at = Some(next.min()?);
            let (_, bank) = looked_at?;
            let choice = self.candidates.pick(bank, full(&self.blocks));
            debug_assert!(choice.is_none_or(|choice| self.is_candidate(choice)), "{choice:?}");
            if let Some(choice) = choice.filter(|choice| choice.valid <= live_pages) {
                return Some(choice);
            }
        }
        None
    }

    /// The block of a bank to collect next, if it has up to so many live pages.
    pub fn pick_in(&mut self, bank: u32, live_pages: u32) -> Option<Choice> {
        let choice = self.candidates.pick(bank, full(&self.blocks));
        debug_assert!(choice.is_none_or(|choice| self.is_candidate(choice)), "{choice:?}");
        choice.filter(|choice| choice.valid <= live_pages)
    }

    /// The full block, of a kind if one is named, in which least lives, of those with something to
    /// gain. Looks at every block.
    #[cold]
    pub fn emptiest(&self, only: Option<PageKind>) -> Option<BlockId> {
        let closed = self
            .blocks
            .iter()
            .filter(|(_, block)| block.state == BlockState::Closed && only.is_none_or(|kind| block.kind == kind));
        let (valid, block) = closed.map(|(id, block)| (u32::from(block.valid), id)).min()?;
        (valid < self.geometry.pages_per_block()).then_some(block)
    }

    /// Of the metadata blocks that are held back, the one with the fewest live pages.
    pub fn pick_metadata(&mut self) -> Option<Choice> {
        let choice = self.candidates.pick_metadata(full(&self.blocks));
        debug_assert!(choice.is_none_or(|choice| self.is_candidate(choice)), "{choice:?}");
        debug_assert!(choice.is_none_or(|choice| self.kind(choice.block) != PageKind::User), "{choice:?}");
        choice
    }

    /// Whether a policy's choice is what is known of the block.
    fn is_candidate(&self, choice: Choice) -> bool {
        self.state(choice.block) == BlockState::Closed && self.valid(choice.block) == choice.valid
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{PAGES, fill, space};
    use super::*;

    fn fill_metadata(space: &mut Space, live: u32) -> BlockId {
        let slots = (0..PAGES).filter_map(|_| space.next_metadata_page(PageKind::Translation)).map(|slot| slot.ppn);
        let pages: alloc::vec::Vec<_> = slots.collect();
        pages.iter().for_each(|ppn| space.page_born(*ppn));
        pages.iter().skip(live as usize).for_each(|ppn| space.page_died(*ppn));
        space.geometry().block_of(pages[0])
    }

    #[test]
    fn the_emptiest_block_is_of_the_kind_that_is_asked_for() {
        let mut space = space();
        assert_eq!(space.emptiest(None), None);
        let (host, metadata) = (fill(&mut space, 0, 2), fill_metadata(&mut space, 1));
        assert_eq!(space.emptiest(None), Some(metadata));
        assert_eq!(space.emptiest(Some(PageKind::User)), Some(host));
        assert_eq!(space.emptiest(Some(PageKind::Translation)), Some(metadata));
        space.begin_collecting(metadata);
        assert_eq!(space.emptiest(Some(PageKind::Translation)), None, "it is being collected");
        assert_eq!(space.emptiest(None), Some(host));
    }

    #[test]
    fn a_block_in_which_everything_lives_is_never_the_emptiest() {
        let mut space = space();
        let full = fill(&mut space, 0, PAGES);
        assert_eq!(space.emptiest(None), None);
        space.page_died(space.geometry().page_at(full, 1));
        assert_eq!(space.emptiest(None), Some(full));
    }
}
