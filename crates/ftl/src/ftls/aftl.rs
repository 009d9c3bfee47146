//! A-FTL: two levels of mapping; block mapping with replacement blocks by default, page mapping for
//! pages that are written often.
//!
//! 1. A page that is overwritten for the first time in a while goes to the replacement block of its
//!    logical block, a log block that belongs to this one alone. If that is full, or of all
//!    replacement blocks the one written least recently when a block is needed, it is merged with
//!    its data block.
//! 2. A page that was overwritten before within the last one to two windows ([`Often`]; a window is
//!    half as many overwrites as log blocks have pages) is written often. It goes to the
//!    page-mapped level: log blocks that all logical blocks share, at most three in four of the log
//!    blocks.
//! 3. If the page-mapped level has as many blocks as it may have, the one in which least lives is
//!    emptied: what lives there moves to the block that is being filled. A block in which nothing
//!    lives is given up first.
//! 4. If more than three in four of the pages of that level live, nothing moves. Instead the block
//!    that was filled longest ago is given up, and the logical blocks of the pages that live there
//!    are merged: they are mapped by block again, until their pages are written often again.
//!
//! From the paper are the two levels and the switch between them while the disk is used. Its rules
//! are others: what lives in a full replacement block moves to fine-grained slots, and the slot
//! used least recently leaves them when their RAM is full. Ours are the windows, the shares of
//! three in four, and that pages move within the page-mapped level. Here every page in a log block
//! has an entry of the page map in RAM, twelve bytes a page, whatever its level.
//!
//! Pages written often may lie anywhere, which makes other FTLs with a log block for each logical
//! block merge for every write of them. Writes that come back to no page in particular are merged
//! as those do.

use super::{Durability, Entry, Info};
use crate::bound::Formula;
use crate::config::{Preset, Setting};
use crate::engine::log_block::area::Target;
use crate::engine::log_block::blocks::SHARED;
use crate::engine::log_block::bound::{Steps, bound, room_for};
use crate::engine::log_block::lru::Lru;
use crate::engine::log_block::often::Often;
use crate::engine::log_block::scheme::{Limits, Scheme, Size, Step, View};
use crate::engine::log_block::{Design, LogFtl};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use nand::{BlockId, Lpn, Nand, ProgramOrder};

pub(super) const INFO: Info = Info {
    name: "aftl",
    summary: "replacement blocks by default, a page-mapped level for pages that are written often",
    source: "Wu and Kuo, ICCAD 2006",
    differs: Some(
        "Wu and Kuo's A-FTL moves the live pages of a full replacement block to its fine-grained \
         slots, and the slot used least recently leaves when RAM is short; here how often a page \
         is overwritten decides",
    ),
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
        longest: "a replacement block is merged for a new block of the page-mapped level, and the oldest one of that \
                  level, with pages of B logical blocks, is reclaimed; a checkpoint",
        most: |geometry, config| {
            bound(geometry, config, room_for(LIMITS), |sizes| Steps {
                merges: sizes.pages + 1,
                freed: 2 * (sizes.pages + 1) + 1,
                opened: 1,
                ..Steps::NONE
            })
        },
    },
};

const LIMITS: Limits = Limits::at_least(3);

const DESIGN: Design<'_> = Design { name: INFO.name, limits: LIMITS, make: &|size| Box::new(Aftl::new(size)) };

pub(super) fn entry<N: Nand + 'static>() -> Entry<N> {
    Entry {
        info: INFO,
        format: |flash, config| Ok(Box::new(LogFtl::format(flash, config, DESIGN)?)),
        mount: Some(|flash, config| LogFtl::mount(flash, config, DESIGN)),
    }
}

struct Aftl {
    pages_per_block: u32,
    often: Often,
    /// The replacement block of each logical block.
    replacement_of: Vec<BlockId>,
    /// Whose replacement block each block is; [`SHARED`] if it is in the page-mapped level.
    owner_of: Vec<u32>,
    /// Logical blocks that have a replacement block.
    recent: Lru,
    /// Blocks of the page-mapped level, the oldest first. The last is being filled.
    paged: VecDeque<BlockId>,
}

/// What the page-mapped level may have of so many log blocks: none if there would not be one for
/// each of both levels, and one to move to.
const fn most_paged(logs: u32) -> u32 {
    match logs {
        0..=2 => 0,
        3 => 2,
        _ => logs / 4 * 3 + logs % 4 * 3 / 4,
    }
}

impl Aftl {
    fn new(size: Size) -> Self {
        let (pages, logs) = (size.geometry.pages_per_block(), size.logs);
        Self {
            pages_per_block: pages,
            often: Often::new(size.logical_blocks * pages, logs * pages / 2),
            replacement_of: alloc::vec![BlockId::NONE; size.logical_blocks as usize],
            owner_of: alloc::vec![SHARED; size.geometry.blocks() as usize],
            recent: Lru::new(size.logical_blocks),
            paged: VecDeque::with_capacity(size.geometry.blocks() as usize),
        }
    }

    fn merge(&self, lbn: u32) -> Step {
        Step::Merge(lbn, Some(self.replacement_of[lbn as usize]))
    }

    /// Writes to the replacement block of a logical block.
    fn by_block(&mut self, blocks: &View, lbn: u32) -> Step {
        let replacement = self.replacement_of[lbn as usize];
        if replacement.is_some() {
            if blocks.has_room(replacement) {
                self.recent.touch(lbn);
                return Step::Append(replacement);
            }
            return self.merge(lbn);
        }
        if blocks.may_open_log() { Step::Open(lbn) } else { self.shrink(blocks) }
    }

    /// Writes to the page-mapped level, which may have `most` blocks.
    fn by_page(&mut self, blocks: &View, most: u32) -> Step {
        if self.paged.len() as u32 >= most {
            return self.collect(blocks);
        }
        match self.paged.back() {
            Some(&filling) if blocks.has_room(filling) => Step::Append(filling),
            _ if blocks.may_open_log() => Step::Open(SHARED),
            _ => self.shrink(blocks),
        }
    }

    /// The block of the page-mapped level in which nothing lives; not the one that is being filled.
    fn dead(&self, blocks: &View) -> Option<BlockId> {
        let filled = self.paged.len().saturating_sub(1);
        self.paged.iter().take(filled).copied().find(|&block| blocks.valid(block) == 0)
    }

    /// Gives up a block of the page-mapped level.
    fn collect(&self, blocks: &View) -> Step {
        let (Some(&oldest), Some(&filling)) = (self.paged.front(), self.paged.back()) else { return Step::Stuck };
        let filled = || self.paged.iter().take(self.paged.len() - 1).copied();
        let Some(emptiest) = filled().min_by_key(|&block| blocks.valid(block)) else { return Step::Reclaim(oldest) };
        let live: u32 = filled().map(|block| blocks.valid(block)).sum();
        let room = self.pages_per_block - blocks.next(filling);
        let most = filled().count() as u32 * self.pages_per_block / 4 * 3;
        if blocks.valid(emptiest) == 0 {
            Step::Reclaim(emptiest)
        } else if live <= most && blocks.valid(emptiest) <= room {
            Step::Move(emptiest, filling)
        } else {
            Step::Reclaim(oldest)
        }
    }
}

impl Scheme for Aftl {
    #[inline]
    fn step(&mut self, blocks: &View, target: Target) -> Step {
        let lpn = Lpn(target.lbn * self.pages_per_block + target.offset);
        let most = most_paged(blocks.log_limit());
        let step = if most > 0 && self.often.has(lpn) {
            self.by_page(blocks, most)
        } else {
            self.by_block(blocks, target.lbn)
        };
        if matches!(step, Step::Append(_)) {
            self.often.note(lpn);
        }
        step
    }

    fn shrink(&mut self, blocks: &View) -> Step {
        if let Some(dead) = self.dead(blocks) {
            return Step::Reclaim(dead);
        }
        self.recent.oldest().map_or_else(|| self.collect(blocks), |lbn| self.merge(lbn))
    }

    fn opened(&mut self, block: BlockId, owner: u32) {
        self.owner_of[block.index()] = owner;
        if owner == SHARED {
            self.paged.push_back(block);
        } else {
            debug_assert!(
                !self.replacement_of[owner as usize].is_some(),
                "logical block {owner} has a replacement block"
            );
            self.replacement_of[owner as usize] = block;
            self.recent.touch(owner);
        }
    }

    fn closed(&mut self, block: BlockId) {
        match self.owner_of[block.index()] {
            SHARED => self.paged.retain(|&paged| paged != block),
            owner => {
                debug_assert!(
                    self.replacement_of[owner as usize] == block,
                    "{block} is not that of logical block {owner}"
                );
                self.replacement_of[owner as usize] = BlockId::NONE;
                self.recent.remove(owner);
            }
        }
    }

    /// As a replacement block if it can be one, else as a block of the page-mapped level if that
    /// may have another.
    fn adopt(&mut self, blocks: &View, block: BlockId) -> bool {
        let owner = blocks.owner(block);
        let replaces = owner != SHARED && !self.replacement_of[owner as usize].is_some();
        let fits = replaces || (self.paged.len() as u32) + 1 < most_paged(blocks.log_limit());
        if fits {
            self.opened(block, if replaces { owner } else { SHARED });
        }
        fits
    }

    fn owned_by(&self, lbn: u32) -> Option<BlockId> {
        let replacement = self.replacement_of[lbn as usize];
        replacement.is_some().then_some(replacement)
    }

    fn ram_bytes(&self) -> u64 {
        let vectors = self.replacement_of.capacity() + self.owner_of.capacity() + self.paged.capacity();
        (vectors * size_of::<u32>()) as u64 + self.recent.ram_bytes() + self.often.ram_bytes()
    }
}
