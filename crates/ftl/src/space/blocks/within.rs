//! The common case of a program: a page of host data within the block that its stream is filling.

use super::{BlockState, Slot, Space};
use crate::placement::Stream;
use nand::Ppn;

impl Space {
    /// As [`Space::next_host_page`], if the block that is being filled has more than this page left
    /// and need not be erased; else `None`, and nothing was handed out. The common case, in line.
    #[inline]
    pub fn next_host_page_within(&mut self, stream: Stream) -> Option<Slot> {
        debug_assert!(stream.0 < self.host_streams, "{stream:?} takes no host data");
        let state = self.streams.get_mut(stream.0 as usize)?;
        let lane = state.lanes.get_mut(state.turn as usize)?;
        if lane.next >= self.geometry.pages_per_block() - 1 || lane.erase_first {
            return None;
        }
        let ppn = self.geometry.page_at(lane.block, lane.next);
        lane.next += 1;
        let slot = Slot { ppn, erase_count: lane.erase_count, erased_at: lane.erased_at, erase_first: false };
        state.turn = if state.turn as usize + 1 == state.lanes.len() { 0 } else { state.turn + 1 };
        debug_assert!(self.state(self.geometry.block_of(ppn)) == BlockState::Active);
        Some(slot)
    }

    /// As [`Space::page_born`], of a page that [`Space::next_host_page_within`] handed out.
    #[inline]
    pub fn page_born_within(&mut self, ppn: Ppn) {
        let block = self.geometry.block_of(ppn);
        self.blocks.page_born(block);
        debug_assert!(self.valid(block) < self.geometry.pages_per_block(), "more pages live in {block} than it has");
        debug_assert!(self.state(block) == BlockState::Active, "{ppn} was not handed out within its block");
    }
}
