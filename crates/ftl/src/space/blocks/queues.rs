//! Streams whose blocks are collected in the order in which they were filled, when the placement
//! policy says so.

use super::Space;
use crate::placement::Stream;
use nand::BlockId;

impl Space {
    /// Has these streams be queues, a bit each from the least, from the next block on that each
    /// begins to fill. The victim policy has the full blocks of those that are none any more.
    pub fn set_queues(&mut self, streams: u8) {
        let blocks = &self.blocks;
        self.candidates.set_queues(streams, |block| u32::from(blocks.valid(block)));
    }

    /// The block that a queue has held longest, of the bank with the fewest free blocks that has
    /// one. Blocks in which every page lives have nothing to give, and become the victim policy's.
    pub fn oldest(&mut self, stream: Stream) -> Option<BlockId> {
        let pages = self.geometry.pages_per_block();
        let mut looked_at = None;
        for _ in 0..self.banks.count() {
            let next = (self.free_of.iter().copied().zip(0..)).filter(|bank| looked_at.is_none_or(|last| *bank > last));
            looked_at = Some(next.min()?);
            let (_, bank) = looked_at?;
            while let Some(block) = self.candidates.oldest(stream, bank) {
                let valid = self.valid(block);
                if valid < pages {
                    return Some(block);
                }
                self.candidates.give(block, valid);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{PAGES, fill, program, space};
    use super::*;
    use crate::victim::Choice;

    fn picked(space: &mut Space) -> Option<BlockId> {
        space.pick(PAGES - 1).map(|Choice { block, .. }| block)
    }

    #[test]
    fn blocks_of_a_queue_go_in_order_and_others_by_the_victim_policy() {
        let mut space = space();
        space.set_queues(0b10);
        let (first, second) = (fill(&mut space, 1, 3), fill(&mut space, 1, 1));
        let other = fill(&mut space, 0, 2);
        assert_eq!((picked(&mut space), space.oldest(Stream(1))), (Some(other), Some(first)));
        assert_eq!(space.oldest(Stream(0)), None);
        space.begin_collecting(first);
        assert_eq!(space.oldest(Stream(1)), Some(second));
        space.cancel_collecting(first);
        assert_eq!(space.oldest(Stream(1)), Some(second), "a collection that was given up is tried last");
    }

    #[test]
    fn a_block_leaves_its_queue_when_nothing_or_all_of_it_lives() {
        let mut space = space();
        space.set_queues(0b10);
        let full = fill(&mut space, 1, PAGES);
        let next = fill(&mut space, 1, 3);
        assert_eq!(space.oldest(Stream(1)), Some(next), "moving {full} would gain nothing");
        space.page_died(space.geometry().page_at(full, 0));
        assert_eq!(picked(&mut space), Some(full), "the victim policy has it since");
        let dead = fill(&mut space, 1, 0);
        assert_eq!(picked(&mut space), Some(dead));
        for offset in 0..3 {
            space.page_died(space.geometry().page_at(next, offset));
        }
        space.begin_collecting(dead);
        assert_eq!((picked(&mut space), space.oldest(Stream(1))), (Some(next), None));
    }

    #[test]
    fn a_stream_that_is_no_queue_any_more_gives_all_its_blocks() {
        let mut space = space();
        space.set_queues(0b11);
        let blocks = [fill(&mut space, 0, 2), fill(&mut space, 1, 1)];
        let half = program(&mut space, 0);
        assert_eq!(picked(&mut space), None);
        space.set_queues(0b10);
        assert_eq!((picked(&mut space), space.oldest(Stream(1))), (Some(blocks[0]), Some(blocks[1])));
        (1..PAGES).map(|_| program(&mut space, 0)).for_each(|slot| assert!(!slot.erase_first));
        space.begin_collecting(blocks[0]);
        space.page_died(half.ppn);
        assert_eq!(picked(&mut space), Some(space.geometry().block_of(half.ppn)), "also one that was being filled");
        space.set_queues(0);
        assert_eq!(picked(&mut space), Some(blocks[1]));
    }
}
