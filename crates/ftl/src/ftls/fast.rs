//! FAST: log blocks shared by all data blocks (fully associative sector translation).
//!
//! 1. A write to the first page of a logical block opens *the* sequential log block; the one before
//!    is merged into its data block: by a switch if it is full, else partially.
//! 2. A write to the logical block of the sequential log block is appended to it if it comes next;
//!    if not, that log block is merged first.
//! 3. Every other write is appended to the newest random log block.
//! 4. If every log block is taken, the oldest random log block is reclaimed: each logical block
//!    with a live page in it is merged in full, which also kills that logical block's pages in all
//!    other log blocks.
//!
//! Random writes fill log blocks to the last page before anything is merged, but then a reclamation
//! can cost a full merge for every page of the block. A second sequential stream spoils the first.

use super::{Durability, Entry, Info};
use crate::bound::Formula;
use crate::config::{Preset, Setting};
use crate::engine::log_block::area::Target;
use crate::engine::log_block::blocks::{Blocks, SHARED};
use crate::engine::log_block::bound::{Steps, bound, room_for};
use crate::engine::log_block::scheme::{Limits, Scheme, Size, Step, View};
use crate::engine::log_block::{Design, LogFtl};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use nand::{BlockId, Nand, ProgramOrder};

pub(super) const INFO: Info = Info {
    name: "fast",
    summary: "one sequential log block, the others shared and reclaimed in order",
    source: "Lee, Park, Chung, Lee, Park and Song, ACM Transactions on Embedded Computing Systems 6(3), 2007",
    differs: None,
    settings: &[Setting::Maps],
    validity: None,
    durable: Durability::OnCompletion,
    program_order: ProgramOrder::Sequential,
    // A mount from a checkpoint does not look at every page.
    outlives_worn_pages: false,
    flags: 0,
    preset: Preset::PAPER,
    bound: Formula {
        programs: "(B + 1)·B + 1 + c",
        longest: "the sequential log block is merged, and one with pages of B logical blocks reclaimed; a checkpoint",
        most: |geometry, config| {
            bound(geometry, config, room_for(LIMITS), |sizes| Steps {
                merges: sizes.pages + 1,
                freed: sizes.pages + 4,
                opened: 1,
                ..Steps::NONE
            })
        },
    },
};

const LIMITS: Limits = Limits::at_least(2);

const DESIGN: Design<'_> = Design { name: INFO.name, limits: LIMITS, make: &|size| Box::new(Fast::new(size)) };

pub(super) fn entry<N: Nand + 'static>() -> Entry<N> {
    Entry {
        info: INFO,
        format: |flash, config| Ok(Box::new(LogFtl::format(flash, config, DESIGN)?)),
        mount: Some(|flash, config| LogFtl::mount(flash, config, DESIGN)),
    }
}

struct Fast {
    /// The sequential log block and its logical block.
    sequential: Option<(BlockId, u32)>,
    /// Random log blocks, the oldest first.
    random: VecDeque<BlockId>,
}

impl Fast {
    fn new(size: Size) -> Self {
        Self { sequential: None, random: VecDeque::with_capacity(size.logs as usize) }
    }

    fn reclaim(&self) -> Step {
        match (self.random.front(), self.sequential) {
            (Some(&oldest), _) => Step::Reclaim(oldest),
            (None, Some((log, lbn))) => Step::Merge(lbn, Some(log)),
            (None, None) => Step::Stuck,
        }
    }

    fn random(&self, blocks: &Blocks) -> Step {
        // One log block is held back for the sequential stream.
        let held = u32::from(self.sequential.is_none() && blocks.log_limit() > 1);
        match self.random.back() {
            Some(&newest) if blocks.has_room(newest) => Step::Append(newest),
            _ if blocks.logs() + held < blocks.log_limit() => Step::Open(SHARED),
            _ => self.reclaim(),
        }
    }
}

impl Scheme for Fast {
    #[inline]
    fn step(&mut self, blocks: &View, target: Target) -> Step {
        match self.sequential {
            Some((log, lbn)) if lbn == target.lbn => {
                if blocks.next(log) == target.offset {
                    Step::Append(log)
                } else {
                    Step::Merge(lbn, Some(log))
                }
            }
            Some((log, lbn)) if target.offset == 0 => Step::Merge(lbn, Some(log)),
            None if target.offset == 0 && blocks.log_limit() > 1 => {
                if blocks.may_open_log() {
                    Step::Open(target.lbn)
                } else {
                    self.reclaim()
                }
            }
            _ => self.random(blocks),
        }
    }

    fn shrink(&mut self, _: &View) -> Step {
        self.reclaim()
    }

    fn opened(&mut self, block: BlockId, owner: u32) {
        if owner == SHARED {
            self.random.push_back(block);
        } else {
            debug_assert!(self.sequential.is_none(), "there is a sequential log block");
            self.sequential = Some((block, owner));
        }
    }

    fn closed(&mut self, block: BlockId) {
        match self.sequential {
            Some((log, _)) if log == block => self.sequential = None,
            _ => self.random.retain(|&log| log != block),
        }
    }

    /// As a random log block, whatever it was: nothing more can be appended to a sequential one.
    fn adopt(&mut self, _: &View, block: BlockId) -> bool {
        self.random.push_back(block);
        true
    }

    fn owned_by(&self, lbn: u32) -> Option<BlockId> {
        self.sequential.filter(|&(_, owner)| owner == lbn).map(|(log, _)| log)
    }

    fn ram_bytes(&self) -> u64 {
        (self.random.capacity() * size_of::<BlockId>()) as u64
    }
}
