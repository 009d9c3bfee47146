//! Which block is collected next: the one place of a page-mapped FTL that decides, by how pressing
//! it is. The collector does what is decided ([`super::collect`]).
//!
//! 1. Metadata in which nothing lives goes first, if metadata is held apart, and metadata beyond
//!    its limit.
//! 2. Else the placement policy says whether one of its queues has a block to give; if not, the
//!    victim policy is asked.
//! 3. If all that it offers is full, room can be gained by saying more of what died: the store is
//!    flushed, or the mapping says which entries are out of date.
//!
//! A block that must go whatever it holds is not chosen here: one with a page that can barely be
//! read ([`super::refresh`]), one with data at rest ([`super::wear`]), one that a mount distrusts.

use super::{Mapping, Nand, PageFtl, Validity};
use crate::space::blocks::BlockState;
use crate::victim::Choice;
use nand::{BlockId, PageKind};

/// Dead metadata blocks that are pinned, beyond which the store is flushed to unpin them.
const PATIENCE: u32 = 16;

/// Blocks that may be missing before metadata has to give.
const SCARCE: u32 = 2;

/// Erased blocks that may wait: those that collection stops at, and one of wear levelling.
pub(super) fn most_free(idle: u32, reserve: u32, rest: u32) -> usize {
    idle.max(reserve + rest) as usize + 3
}

/// How pressing it is to gain a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Only what costs nothing: a metadata block in which nothing lives. Waiting for more gains
    /// nothing, and a device that is not yet full would fill up with dead metadata first.
    Tidy,
    /// A block for later: the device is idle, or data is to be moved that can barely be read.
    Later,
    /// As [`Need::Later`], of a bank, with up to so many live pages.
    InBank { bank: u32, live_pages: u32 },
    /// A block for a request that waits.
    Now,
    /// A block for a mount, whatever the policy prefers: the one in which least lives.
    Mount,
    /// A block for metadata of a mount that has not settled which pages of host data count: none
    /// of these may move.
    Unsettled,
}

/// What to do to gain a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Collect this block.
    Collect(BlockId),
    /// Make every report durable, so that no old translation page is needed any more.
    Unpin,
    /// Have the mapping say what died.
    Reveal,
    /// Nothing: no block has anything to gain.
    Wait,
}

impl<N: Nand, M: Mapping, V: Validity> PageFtl<N, M, V> {
    /// What to do next. `unpinned` if every report was made durable since a block was collected.
    pub(super) fn decide(&mut self, need: Need, unpinned: bool) -> Decision {
        let collect = |choice: Choice| Decision::Collect(choice.block);
        let chosen = match need {
            Need::Tidy => self.tidy(),
            Need::InBank { bank, live_pages } => {
                self.metadata().or_else(|| self.core.space.pick_in(bank, live_pages).map(collect))
            }
            Need::Mount => self.core.space.emptiest(None).map(Decision::Collect),
            Need::Unsettled => self.core.space.emptiest(Some(PageKind::Translation)).map(Decision::Collect),
            Need::Later | Need::Now => {
                // On a nearly full disk the policy's order can cost more pages of metadata than it
                // frees.
                let losing = need == Need::Now && self.is_scarce() && self.mapping.footprint_pages() > 0;
                let emptiest = if losing { self.core.space.emptiest(None) } else { None };
                let metadata = || emptiest.map(Decision::Collect);
                metadata().or_else(|| self.metadata()).or_else(|| self.ask(unpinned))
            }
        };
        if let Some(Decision::Collect(block)) = chosen {
            let space = &self.core.space;
            debug_assert!(space.state(block) == BlockState::Closed, "{block} is chosen and not full");
            debug_assert!(need != Need::Tidy || space.valid(block) == 0, "{block} costs something");
            debug_assert!(need != Need::Unsettled || space.kind(block) != PageKind::User, "{block} has to wait");
        }
        chosen.unwrap_or(Decision::Wait)
    }

    /// Whether blocks get scarce in spite of collection.
    pub(super) fn is_scarce(&self) -> bool {
        self.core.space.free_blocks() + SCARCE < self.reserve_blocks
    }

    /// A metadata block in which nothing lives, if the policy offers one.
    fn tidy(&mut self) -> Option<Decision> {
        let choice = match self.core.space.pick_metadata() {
            Some(choice) if self.is_pinned(choice.block) => {
                return (self.core.space.dead_metadata() >= PATIENCE).then_some(Decision::Unpin);
            }
            None => self.core.space.pick(0),
            choice => choice.filter(|choice| choice.valid == 0),
        };
        choice.map(|choice| Decision::Collect(choice.block))
    }

    /// A metadata block, if metadata is held apart: one in which nothing lives, or the emptiest if
    /// there are more blocks than the limit, so that one cold page cannot pin a block for ever.
    /// Also if blocks are scarce: on a disk that is nearly full, moving host data can cost more
    /// pages of metadata than it frees, and only what waits among the metadata can make up for
    /// that.
    fn metadata(&mut self) -> Option<Decision> {
        let Choice { block, valid } = self.core.space.pick_metadata()?;
        let space = &self.core.space;
        let scarce = self.is_scarce() && 2 * valid <= space.geometry().pages_per_block();
        let over = space.metadata_blocks() > self.metadata_limit || scarce;
        if valid > 0 && !over {
            None
        } else if self.is_pinned(block) {
            over.then_some(Decision::Unpin)
        } else {
            Some(Decision::Collect(block))
        }
    }

    /// What the placement policy says, or the victim policy; if that has only full blocks to offer,
    /// what may change that.
    fn ask(&mut self, unpinned: bool) -> Option<Decision> {
        let pages = self.core.space.geometry().pages_per_block();
        if let Some((queues, overfull)) = self.placing.queues() {
            self.core.space.set_queues(queues);
            let oldest = overfull.and_then(|stream| self.core.space.oldest(stream));
            if let Some(block) = oldest {
                return Some(Decision::Collect(block));
            }
        }
        let picked = self.core.space.pick(pages - 1);
        // Rather a block of a queue before its time than none.
        let picked = picked.or_else(|| {
            self.core.space.set_queues(0);
            self.core.space.pick(pages - 1)
        });
        match picked {
            Some(Choice { block, .. }) => Some(Decision::Collect(block)),
            _ if unpinned => None,
            _ if self.core.space.dead_metadata() > 0 && self.validity.is_buffered() => Some(Decision::Unpin),
            _ => Some(Decision::Reveal),
        }
    }

    fn is_pinned(&mut self, block: BlockId) -> bool {
        self.pins.holds(block, self.validity.flushes())
    }
}
