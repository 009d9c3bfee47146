//! BAST: every log block belongs to one data block (block-associative sector translation).
//!
//! 1. The first overwrite of a logical block gives it a log block; further ones are appended to
//!    that.
//! 2. A log block that is full is merged with its data block: by a switch if it was written in
//!    sequence.
//! 3. If every log block is taken, the one written least recently is merged: partially if what it
//!    holds is in sequence.
//!
//! Sequential streams, as many as there are log blocks, cost an erase a block. Random writes over
//! more logical blocks than there are log blocks make it thrash: a merge for every page or two.

use super::{Durability, Entry, Info};
use crate::bound::Formula;
use crate::config::{Preset, Setting};
use crate::engine::log_block::area::Target;
use crate::engine::log_block::blocks::SHARED;
use crate::engine::log_block::bound::{Steps, bound, room_for};
use crate::engine::log_block::lru::Lru;
use crate::engine::log_block::scheme::{Limits, Scheme, Size, Step, View};
use crate::engine::log_block::{Design, LogFtl};
use alloc::boxed::Box;
use alloc::vec::Vec;
use nand::{BlockId, Nand, ProgramOrder};

pub(super) const INFO: Info = Info {
    name: "bast",
    summary: "log blocks that belong to one data block each",
    source: "Kim, Kim, Noh, Min and Cho, IEEE Transactions on Consumer Electronics 48(2), 2002",
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
        programs: "B + 1 + c",
        longest: "one merge; a checkpoint",
        most: |geometry, config| {
            bound(geometry, config, room_for(LIMITS), |_| Steps { merges: 1, freed: 2, opened: 1, ..Steps::NONE })
        },
    },
};

const LIMITS: Limits = Limits::at_least(1);

const DESIGN: Design<'_> = Design { name: INFO.name, limits: LIMITS, make: &|size| Box::new(Bast::new(size)) };

pub(super) fn entry<N: Nand + 'static>() -> Entry<N> {
    Entry {
        info: INFO,
        format: |flash, config| Ok(Box::new(LogFtl::format(flash, config, DESIGN)?)),
        mount: Some(|flash, config| LogFtl::mount(flash, config, DESIGN)),
    }
}

struct Bast {
    log_of: Vec<BlockId>,
    owner_of: Vec<u32>,
    /// Logical blocks that have a log block.
    recent: Lru,
}

impl Bast {
    fn new(size: Size) -> Self {
        Self {
            log_of: alloc::vec![BlockId::NONE; size.logical_blocks as usize],
            owner_of: alloc::vec![0; size.geometry.blocks() as usize],
            recent: Lru::new(size.logical_blocks),
        }
    }

    fn merge(&self, lbn: Option<u32>) -> Step {
        lbn.map_or(Step::Stuck, |lbn| Step::Merge(lbn, Some(self.log_of[lbn as usize])))
    }
}

impl Scheme for Bast {
    #[inline]
    fn step(&mut self, blocks: &View, target: Target) -> Step {
        let log = self.log_of[target.lbn as usize];
        if log.is_some() && blocks.has_room(log) {
            self.recent.touch(target.lbn);
            Step::Append(log)
        } else if log.is_some() {
            Step::Merge(target.lbn, Some(log))
        } else if blocks.may_open_log() {
            Step::Open(target.lbn)
        } else {
            self.merge(self.recent.oldest())
        }
    }

    fn shrink(&mut self, _: &View) -> Step {
        self.merge(self.recent.oldest())
    }

    fn opened(&mut self, block: BlockId, owner: u32) {
        debug_assert!(!self.log_of[owner as usize].is_some(), "logical block {owner} has a log block");
        self.log_of[owner as usize] = block;
        self.owner_of[block.index()] = owner;
        self.recent.touch(owner);
    }

    fn closed(&mut self, block: BlockId) {
        let owner = self.owner_of[block.index()];
        debug_assert!(self.log_of[owner as usize] == block, "{block} is not the log block of logical block {owner}");
        self.log_of[owner as usize] = BlockId::NONE;
        self.recent.remove(owner);
    }

    fn adopt(&mut self, blocks: &View, block: BlockId) -> bool {
        let owner = blocks.owner(block);
        let fits = owner != SHARED && !self.log_of[owner as usize].is_some();
        if fits {
            self.opened(block, owner);
        }
        fits
    }

    fn ram_bytes(&self) -> u64 {
        ((self.log_of.capacity() + self.owner_of.capacity()) * size_of::<u32>()) as u64 + self.recent.ram_bytes()
    }
}
