//! Block mapping, one extreme of the spectrum: a page that cannot go to its place is written by
//! writing its whole logical block again.
//!
//! 1. A free block replaces the data block: the pages before the page are copied to their places,
//!    then the page is written to its own.
//! 2. A page behind the last one goes to the replacement too, with those between.
//! 3. Any other page finishes the replacement first: what lies behind is copied, and the old data
//!    block erased. So a request that overwrites pages in sequence rewrites a logical block once.
//! 4. If bad blocks have left none to hold open, each page rewrites its logical block.
//!
//! The map is one entry a logical block, and one an open page; a random write costs a block of
//! programs. Good for a disk that is written from end to end.

use super::{Durability, Entry, Info};
use crate::bound::Formula;
use crate::config::{Preset, Setting};
use crate::engine::log_block::area::Target;
use crate::engine::log_block::blocks::SHARED;
use crate::engine::log_block::bound::{Steps, bound, room_for};
use crate::engine::log_block::scheme::{Limits, Scheme, Size, Step, View};
use crate::engine::log_block::{Design, LogFtl};
use alloc::boxed::Box;
use nand::{BlockId, Nand, ProgramOrder};

pub(super) const INFO: Info = Info {
    name: "block",
    summary: "block mapping: an overwrite rewrites its logical block",
    source: "Ban, US patent 5,404,485 (1995); the block-mapping extreme of Kwon et al., EMSOFT 2010",
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
        programs: "2·B + c",
        longest: "what replaces a logical block is finished, and another copied up to its last page; a checkpoint",
        most: |geometry, config| {
            bound(geometry, config, room_for(LIMITS), |sizes| Steps {
                merges: 1,
                moved: sizes.pages - 1,
                freed: 2,
                opened: 1,
            })
        },
    },
};

const LIMITS: Limits = Limits { most_logs: 1, ..Limits::at_least(0) };

const DESIGN: Design<'_> = Design { name: INFO.name, limits: LIMITS, make: &|size| Box::new(Replacement::new(size)) };

pub(super) fn entry<N: Nand + 'static>() -> Entry<N> {
    Entry {
        info: INFO,
        format: |flash, config| Ok(Box::new(LogFtl::format(flash, config, DESIGN)?)),
        mount: Some(|flash, config| LogFtl::mount(flash, config, DESIGN)),
    }
}

/// The one log block: pages of its logical block at their own offsets, from the first on.
struct Replacement {
    log: BlockId,
    owner: u32,
}

impl Replacement {
    const fn new(_: Size) -> Self {
        Self { log: BlockId::NONE, owner: SHARED }
    }

    /// Its logical block gathered, into it if that can be.
    const fn finish(&self) -> Step {
        if self.log.is_some() { Step::Merge(self.owner, Some(self.log)) } else { Step::Stuck }
    }
}

impl Scheme for Replacement {
    fn step(&mut self, blocks: &View, target: Target) -> Step {
        if self.log.is_some() {
            if self.owner != target.lbn || !blocks.takes(self.log, target.offset) {
                return self.finish();
            }
            match blocks.first_missing(self.log, target) {
                None => Step::Place(self.log),
                Some(missing) if blocks.takes(self.log, missing) => Step::Fill(self.log),
                // It came to the data block after its place was passed.
                Some(_) => self.finish(),
            }
        } else if blocks.may_open_log() {
            Step::Open(target.lbn)
        } else {
            Step::Rewrite
        }
    }

    fn shrink(&mut self, _: &View) -> Step {
        self.finish()
    }

    fn opened(&mut self, block: BlockId, owner: u32) {
        debug_assert!(!self.log.is_some(), "{} is open", self.log);
        (self.log, self.owner) = (block, owner);
    }

    fn closed(&mut self, block: BlockId) {
        debug_assert!(self.log == block, "{block} is not the log block");
        (self.log, self.owner) = (BlockId::NONE, SHARED);
    }

    fn owned_by(&self, lbn: u32) -> Option<BlockId> {
        (self.owner == lbn).then_some(self.log)
    }

    fn ram_bytes(&self) -> u64 {
        size_of::<Self>() as u64
    }
}
