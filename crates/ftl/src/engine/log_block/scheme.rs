//! What makes one log-block FTL differ from another: who may write to which log block, and what is
//! merged when.
//!
//! A scheme answers with a decision; the engine executes it and asks again until the page is
//! written.

use super::area::{Area, Target};
use super::blocks::Blocks;
use crate::mapping::block::BlockTable;
use crate::mapping::log_pages::LogPages;
use core::ops::Deref;
use nand::{BlockId, Geometry, Lpn, Nand, Ppn, ProgramOrder};

/// What a scheme may look at: the states of blocks, and what lives where.
#[derive(Clone, Copy)]
pub struct View<'a> {
    blocks: &'a Blocks,
    table: &'a BlockTable,
    log: &'a LogPages,
}

impl Deref for View<'_> {
    type Target = Blocks;

    #[inline]
    fn deref(&self) -> &Blocks {
        self.blocks
    }
}

impl<'a> View<'a> {
    #[inline]
    pub(super) const fn of<N>(area: &'a Area<N>) -> Self {
        Self { blocks: &area.blocks, table: &area.table, log: &area.log }
    }

    /// The logical block of each live page of a log block, in the order of the pages.
    pub fn lbns(self, block: BlockId) -> impl Iterator<Item = u32> + 'a {
        debug_assert!(self.log.block(self.blocks.slot(block)) == block, "{block} is no log block");
        let (geometry, slot) = (*self.blocks.geometry(), self.blocks.slot(block));
        let lpns = (0..geometry.pages_per_block()).filter_map(move |index| self.log.at(slot, index));
        // A logical page divides like a physical one.
        lpns.map(move |lpn| geometry.block_of(Ppn(lpn.0)).0)
    }

    /// The first place before one page of a logical block whose live page is not in this block.
    #[must_use]
    pub fn first_missing(self, block: BlockId, before: Target) -> Option<u32> {
        let (geometry, data) = (*self.blocks.geometry(), self.table.data(before.lbn));
        debug_assert!(block != data, "{block} is the data block of logical block {}", before.lbn);
        let first = before.lbn * geometry.pages_per_block();
        (0..before.offset).find(|offset| {
            let lpn = Lpn(first + offset);
            self.table.is_home(lpn) || self.log.find(lpn).is_some_and(|ppn| geometry.block_of(ppn) != block)
        })
    }

    /// Live pages of a logical block in its data block, and in log blocks.
    #[must_use]
    pub fn live(self, lbn: u32) -> (u32, u32) {
        let pages = self.blocks.geometry().pages_per_block();
        let (mut home, mut logged) = (0, 0);
        for lpn in (lbn * pages..(lbn + 1) * pages).map(Lpn) {
            if self.table.is_home(lpn) {
                home += 1;
            } else if self.log.find(lpn).is_some() {
                logged += 1;
            }
        }
        (home, logged)
    }
}

/// What a scheme decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write the page to the next page of this log block.
    Append(BlockId),
    /// Write the page to the page of its own offset in this log block, which takes it
    /// ([`Blocks::takes`]).
    Place(BlockId),
    /// Copy to this log block, at their own offsets, the live pages of its logical block that lie
    /// before the page to be written. It takes all of them.
    Fill(BlockId),
    /// Take a free block as log block of this logical block ([`super::blocks::SHARED`]: of all);
    /// [`Scheme::opened`] hears which.
    Open(u32),
    /// Merge a logical block, into its log block if that can become the data block. The log block,
    /// if given, is gone afterwards.
    Merge(u32, Option<BlockId>),
    /// Merge every logical block that has a live page in this log block, then free it.
    Reclaim(BlockId),
    /// Move the live pages of the first log block to the next pages of the second, then free the
    /// first. The second must have room for them.
    Move(BlockId, BlockId),
    /// Write the page by rewriting its whole logical block.
    Rewrite,
    /// Nothing can be freed.
    Stuck,
}

/// What a scheme needs of a device and of the maps.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The fewest log blocks that it can work with.
    pub least_logs: u32,
    /// The most log blocks that it has open at once, if fewer than there may be. The page map has
    /// entries for so many, and for those that a mount may find beside them.
    pub most_logs: u32,
    /// The order in which the pages of a block are programmed. A device that allows no such order
    /// is refused.
    pub order: ProgramOrder,
}

impl Limits {
    /// As many log blocks as there may be, so many of them at least; pages in order.
    #[must_use]
    pub const fn at_least(logs: u32) -> Self {
        Self { least_logs: logs, most_logs: u32::MAX, order: ProgramOrder::Sequential }
    }
}

/// A scheme: which log blocks there are, and what becomes of them.
pub trait Scheme: Send {
    /// What to do next so that a page can be written whose place in its data block was passed.
    fn step(&mut self, blocks: &View, target: Target) -> Step;

    /// What to do so that one log block less is in use, because a block went bad.
    fn shrink(&mut self, blocks: &View) -> Step;

    /// [`Step::Open`] was executed.
    fn opened(&mut self, block: BlockId, owner: u32);

    /// A log block is none any more: it became a data block, or was freed.
    fn closed(&mut self, block: BlockId);

    /// A mount found this log block; blocks come the oldest first. Answers whether the scheme takes
    /// it over, as if it had opened it. If not, every logical block with a live page in it is
    /// merged and the block freed, which is always right and makes the mount longer. No page can be
    /// written to it any more. Its owner ([`Blocks::owner`]) is the logical block of all its live
    /// pages, or [`super::blocks::SHARED`] if there are several.
    fn adopt(&mut self, blocks: &View, block: BlockId) -> bool {
        let _ = (blocks, block);
        false
    }

    /// A logical block was merged: a log block that it owns is named, to be freed if nothing lives
    /// in it; then the next is asked for.
    fn owned_by(&self, lbn: u32) -> Option<BlockId> {
        let _ = lbn;
        None
    }

    /// Something useful to do when idle; [`Step::Stuck`] if there is nothing.
    fn idle(&mut self, blocks: &View) -> Step {
        let _ = blocks;
        Step::Stuck
    }

    /// Bytes of RAM held.
    fn ram_bytes(&self) -> u64;
}

/// What a scheme is made for.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// The device.
    pub geometry: Geometry,
    /// Logical blocks.
    pub logical_blocks: u32,
    /// Log blocks, while no block has gone bad.
    pub logs: u32,
}

impl Size {
    /// For an area as it is now.
    pub(super) fn of<N: Nand>(area: &Area<N>) -> Self {
        Self {
            geometry: *area.blocks.geometry(),
            logical_blocks: area.table.logical_blocks(),
            logs: area.blocks.log_limit(),
        }
    }
}
