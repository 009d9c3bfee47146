//! Runtime checkpoints: what was dirty at the one before is synchronised (GeckoFTL, section 4.3).

use super::CachedMap;
use crate::contract::FtlError;
use crate::flash::Purpose;
use crate::space::core::Core;
use nand::Nand;

/// Translation pages that one step of a checkpoint synchronises at most.
const CHECKPOINT_STEP: u32 = 16;

/// Where the checkpoints stand.
#[derive(Debug)]
pub(super) struct Checkpoints {
    pub(super) enabled: bool,
    /// Insertions and updates since the last checkpoint began.
    pub(super) updates: u32,
    /// The place in the cache that the checkpoint in progress has come to.
    pub(super) cursor: Option<u32>,
    /// Translation pages that its present step may still synchronise.
    pub(super) left: u32,
    /// Sequence number when the last checkpoint began, and when the one before did.
    pub(super) began: [u64; 2],
    /// No page of host data with a smaller sequence number has an entry that is only in RAM.
    pub(super) bound: u64,
}

impl CachedMap {
    /// Synchronises the translation page that the checkpoint comes to next; whether its step goes
    /// on.
    #[inline(never)]
    pub(super) fn continue_checkpoint<N: Nand>(&mut self, core: &mut Core<N>) -> Result<bool, FtlError> {
        let cursor = self.checkpoints.cursor.unwrap_or_else(|| {
            self.cmt.advance_epoch();
            self.checkpoints.updates = 0;
            self.checkpoints.began = [core.seq, self.checkpoints.began[0]];
            0
        });
        self.checkpoints.cursor = Some(cursor);
        if self.checkpoints.left == 0 {
            self.checkpoints.left = self.checkpoint_step();
        }
        let Some(slot) = self.cmt.next_stale(cursor) else {
            (self.checkpoints.cursor, self.checkpoints.left) = (None, 0);
            self.checkpoints.bound = self.checkpoints.bound.max(self.checkpoints.began[1]);
            debug_assert!(self.checkpoints.began[1] <= self.checkpoints.began[0]);
            return Ok(false);
        };
        debug_assert!(self.cmt.is_dirty(slot));
        let page = self.cmt.translation_page(self.cmt.lpn(slot));
        self.synchronise(core, page, Purpose::Checkpoint)?;
        self.checkpoints.cursor = Some(slot.0);
        self.checkpoints.left -= 1;
        Ok(self.checkpoints.left > 0)
    }

    /// Translation pages that one step of a checkpoint synchronises.
    pub(super) fn checkpoint_step(&self) -> u32 {
        CHECKPOINT_STEP.min(self.gmd.len() as u32)
    }
}
