//! Levelling wear: what the scan of blocks finds is done here ([`crate::placement`]).

use super::{Mapping, Nand, PageFtl, Validity};
use crate::config::WearOptions;
use crate::contract::FtlError;
use crate::flash::Purpose;
use crate::placement::{Cause, PageWrite, Stream};
use crate::space::blocks::BlockState;
use crate::space::core::Origin;
use nand::{BlockId, Lpn};

impl<N: Nand, M: Mapping, V: Validity> PageFtl<N, M, V> {
    /// Begins to level wear, if asked to. Last in a mount: until then all that moves fills as few
    /// blocks as can be.
    pub(super) fn begin_levelling(&mut self, options: Option<WearOptions>) {
        self.placing.level(options);
    }

    /// Looks at the blocks that are due; if data at rest is found on an unworn block while a worn
    /// one is free, moves it and answers `true`: at most one block a call, so that a write waits
    /// for no more than two collections.
    #[inline(never)]
    pub(super) fn level_wear(&mut self) -> Result<bool, FtlError> {
        let Some(mut wear) = self.placing.wear().cloned() else { return Ok(false) };
        let blocks = self.core.space.geometry().blocks();
        let mut at_rest = None;
        for _ in 0..wear.due(self.core.seq) {
            let block = wear.next_block(blocks);
            debug_assert!(block.0 < blocks);
            if self.core.space.state(block) != BlockState::Closed {
                continue;
            }
            let Some((erase_count, erased_at)) = self.wear_of(block) else { continue };
            let age = self.core.space.erases().wrapping_sub(erased_at);
            if wear.note(erase_count, age) && wear.is_worn(self.core.space.most_worn_free()) {
                at_rest = Some(block);
                break;
            }
        }
        if let Some(kept) = self.placing.wear() {
            *kept = wear;
        }
        let Some(block) = at_rest else { return Ok(false) };
        self.collect_for(block, Purpose::Wear)?;
        Ok(true)
    }

    /// How often a block with data had been erased when it was opened, and when that was, from the
    /// spare area of its first page; of its last, if the first was left out or cannot be read.
    /// Values that no page of this device can carry are of a torn page.
    pub(super) fn wear_of(&mut self, block: BlockId) -> Option<(u32, u32)> {
        let geometry = *self.core.space.geometry();
        let erases = self.core.space.erases();
        let mut read = |offset| {
            let spare = self.core.flash.read_spare(Purpose::Wear, geometry.page_at(block, offset));
            let wear = spare.ok().flatten().map(|spare| (spare.erase_count, spare.erased_at));
            wear.filter(|(erase_count, erased_at)| erase_count <= erased_at && *erased_at <= erases)
        };
        read(0).or_else(|| read(geometry.pages_per_block() - 1))
    }

    /// Where a page goes that is moved.
    #[inline]
    pub(super) fn stream_of_moved(&mut self, purpose: Purpose, origin: &Origin) -> Stream {
        if let Some(stream) = self.placing.of_moved() {
            return stream;
        }
        let cause = match purpose {
            Purpose::Wear => Cause::Wear,
            Purpose::Refresh => Cause::Refresh,
            _ => Cause::Collection,
        };
        let age = Some(self.core.seq.saturating_sub(origin.spare.seq));
        let from = Some(self.core.space.geometry().block_of(origin.ppn));
        debug_assert!(from.is_some_and(|block| self.core.space.state(block) == BlockState::Collecting), "{origin:?}");
        let lpn = Lpn(origin.spare.tag);
        let past = if self.placing.asks_for_past() { self.mapping.known_past(&self.core, lpn) } else { None };
        self.placing.place(&PageWrite { lpn, cause, age, from, past })
    }
}
