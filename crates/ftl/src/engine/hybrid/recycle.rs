//! Sequential log blocks: what was written to them, and what becomes of them (section 5).
//!
//! 1. A write to the BMA whose place was passed goes to the log block of its logical block. Each
//!    log block counts its *jumps*: writes that do not follow the one before.
//! 2. Written in sequence from the first page on, at least half: *switch* or *partial merge*. What
//!    a partial merge copies is at most what the host wrote.
//! 3. Written in sequence from another page on, at least half: *migration*. The logical block is
//!    gathered into an empty block, and both its blocks are erased.
//! 4. Else the writes were random: *Fusion*. If nothing may be fused, migration.
//!
//! The paper names the three ways to recycle and leaves the border between them open; half a block
//! is ours.

use super::HybridFtl;
use crate::contract::FtlError;
use crate::engine::log_block::blocks::Blocks;
use crate::engine::log_block::lru::Lru;
use alloc::vec::Vec;
use nand::{BlockId, Geometry, Nand};

/// What is to be done with a sequential log block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recycling {
    /// Switch or partial merge.
    Merge,
    Migrate,
    Fuse,
}

/// What was written to a log block.
#[derive(Clone, Copy, Debug, Default)]
struct Pattern {
    owner: u32,
    /// The page of the logical block that would be next in sequence.
    expected: u16,
    written: u16,
    jumps: u16,
}

/// The sequential log blocks.
pub(super) struct SequentialLogs {
    log_of: Vec<BlockId>,
    patterns: Vec<Pattern>,
    /// Logical blocks that have a log block, by their last write.
    recent: Lru,
    most: u32,
}

impl SequentialLogs {
    /// How many of so many over-provisioned blocks may be sequential log blocks: a quarter; at
    /// least one, and never all.
    pub(super) fn most(over_provisioned: u32) -> u32 {
        (over_provisioned / 4).clamp(1, over_provisioned.saturating_sub(1).max(1))
    }

    /// No log block yet.
    pub(super) fn new(geometry: Geometry, logical_blocks: u32, over_provisioned: u32) -> Self {
        Self {
            log_of: alloc::vec![BlockId::NONE; logical_blocks as usize],
            patterns: alloc::vec![Pattern::default(); geometry.blocks() as usize],
            recent: Lru::new(logical_blocks),
            most: Self::most(over_provisioned),
        }
    }

    /// How many there may be now: blocks that went bad leave room for fewer.
    #[inline]
    pub(super) fn limit(&self, blocks: &Blocks) -> u32 {
        self.most.min(Self::most(blocks.log_limit()))
    }

    /// The log block of a logical block, or [`BlockId::NONE`].
    #[inline]
    pub(super) fn log_of(&self, lbn: u32) -> BlockId {
        self.log_of[lbn as usize]
    }

    /// The logical block whose log block was written least recently.
    pub(super) fn oldest(&self) -> Option<u32> {
        self.recent.oldest()
    }

    pub(super) fn opened(&mut self, block: BlockId, lbn: u32) {
        debug_assert!(!self.log_of(lbn).is_some(), "logical block {lbn} has a log block");
        self.log_of[lbn as usize] = block;
        self.patterns[block.index()] = Pattern { owner: lbn, ..Pattern::default() };
        self.recent.touch(lbn);
    }

    /// A page of a logical block was written to its log block.
    #[inline]
    pub(super) fn wrote(&mut self, block: BlockId, lbn: u32, offset: u32) {
        debug_assert!(self.log_of(lbn) == block && self.recent.contains(lbn));
        let pattern = &mut self.patterns[block.index()];
        debug_assert!(pattern.owner == lbn, "{block} is not the log block of logical block {lbn}");
        pattern.jumps += u16::from(pattern.written > 0 && u32::from(pattern.expected) != offset);
        pattern.written += 1;
        pattern.expected = offset as u16 + 1;
        self.recent.touch(lbn);
    }

    pub(super) fn closed(&mut self, lbn: u32) {
        debug_assert!(self.log_of(lbn).is_some() && self.recent.contains(lbn), "logical block {lbn} has no log block");
        self.log_of[lbn as usize] = BlockId::NONE;
        self.recent.remove(lbn);
    }

    /// Bytes of RAM held.
    pub(super) fn ram_bytes(&self) -> u64 {
        let bytes = self.log_of.capacity() * size_of::<BlockId>() + self.patterns.capacity() * size_of::<Pattern>();
        bytes as u64 + self.recent.ram_bytes()
    }
}

impl<N: Nand> HybridFtl<N> {
    fn judge(&self, log: BlockId) -> Recycling {
        let pattern = self.sequential.patterns[log.index()];
        let blocks = &self.area.blocks;
        debug_assert!(pattern.owner == blocks.owner(log), "{log} is another's log block");
        let half = blocks.geometry().pages_per_block().div_ceil(2);
        if pattern.jumps == 0 && u32::from(pattern.written) >= half {
            if blocks.is_aligned(log) { Recycling::Merge } else { Recycling::Migrate }
        } else if self.target > 0 {
            Recycling::Fuse
        } else if blocks.is_aligned(log) {
            Recycling::Merge
        } else {
            Recycling::Migrate
        }
    }

    /// Recycles the log block of a logical block by what was written to it.
    pub(super) fn recycle(&mut self, lbn: u32) -> Result<(), FtlError> {
        let log = self.sequential.log_of(lbn);
        debug_assert!(log.is_some(), "logical block {lbn} has no log block");
        let recycling = self.judge(log);
        if recycling == Recycling::Fuse {
            if let Some(ghosts) = &mut self.ghosts {
                ghosts.access(lbn, u32::from(self.sequential.patterns[log.index()].written).max(1));
            }
            self.fuse(lbn, log)?;
        } else {
            self.make_space()?;
            let candidate = (recycling == Recycling::Merge).then_some(log);
            if !self.area.merge(lbn, candidate)? {
                self.area.release(log)?;
            }
        }
        self.sequential.closed(lbn);
        Ok(())
    }
}
