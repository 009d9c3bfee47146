//! NFTL: a chain of replacement blocks for each logical block, every page at its own offset.
//!
//! 1. A page goes to its offset in the first block of its logical block's chain, the data block in
//!    front, where that offset is still erased. If there is none, the chain gets another block.
//! 2. If no block is free for that, the longest chain is folded, of several the one written least
//!    recently: what lives in it is gathered in its last block if every page that lives elsewhere
//!    finds its offset erased there, else in a free block. All other blocks of the chain are freed,
//!    so a long chain costs one fold and gives many blocks.
//!
//! Offsets are programmed in the order in which the host writes them, so the device has to allow
//! any order within a block. The gain is that a chain needs no map of pages: a page is found by a
//! walk along it.
//!
//! What differs from the driver in Linux (`nftlcore.c`), whose algorithm this is:
//! - Here a map in RAM says where each page in a replacement block is, twelve bytes a page of
//!   replacement block, and a read is one read. The driver reads a spare area for every block of
//!   the chain that it passes.
//! - The driver writes the next block of a chain to spare areas. Here spare areas say which page of
//!   the host is where, so the chain follows, and nothing is programmed twice.
//! - Of chains of equal length the driver folds the first that it finds.
//!
//! A fold erases one block less than a full merge, and none of a logical block that is written in
//! turn, in any direction, is copied. But a page that is written again and again takes a block for
//! every write.

use super::{Durability, Entry, Info};
use crate::bound::Formula;
use crate::config::{Preset, Setting};
use crate::engine::log_block::area::Target;
use crate::engine::log_block::blocks::SHARED;
use crate::engine::log_block::bound::{Steps, bound, room_for};
use crate::engine::log_block::groups::{Groups, Owed};
use crate::engine::log_block::longest::Longest;
use crate::engine::log_block::scheme::{Limits, Scheme, Size, Step, View};
use crate::engine::log_block::{Design, LogFtl};
use alloc::boxed::Box;
use nand::{BlockId, Nand, ProgramOrder};

pub(super) const INFO: Info = Info {
    name: "nftl",
    summary: "chains of replacement blocks at fixed page offsets, folded when space runs out",
    source: "Ban, US patent 5,937,425 (1999); M-Systems, Flash-memory Translation Layer for NAND Flash (1998)",
    differs: Some(
        "where pages lie in replacement blocks is in RAM; the original finds them by spare areas \
         along the chain",
    ),
    settings: &[Setting::Maps],
    validity: None,
    durable: Durability::OnCompletion,
    program_order: ProgramOrder::Free,
    // A mount from a checkpoint does not look at every page.
    outlives_worn_pages: false,
    flags: 0,
    preset: Preset::PAPER,
    bound: Formula {
        programs: "B + 1 + c",
        longest: "one chain is folded and erased, of as many blocks as there are log blocks; a checkpoint",
        most: |geometry, config| {
            bound(geometry, config, room_for(LIMITS), |sizes| Steps {
                merges: 1,
                freed: sizes.logs + 1,
                opened: 1,
                ..Steps::NONE
            })
        },
    },
};

const LIMITS: Limits = Limits { order: INFO.program_order, ..Limits::at_least(1) };

const DESIGN: Design<'_> = Design { name: INFO.name, limits: LIMITS, make: &|size| Box::new(Nftl::new(size)) };

pub(super) fn entry<N: Nand + 'static>() -> Entry<N> {
    Entry {
        info: INFO,
        format: |flash, config| Ok(Box::new(LogFtl::format(flash, config, DESIGN)?)),
        mount: Some(|flash, config| LogFtl::mount(flash, config, DESIGN)),
    }
}

struct Nftl {
    /// The replacement blocks of each logical block, in the order of its chain.
    chains: Longest,
}

impl Nftl {
    fn new(size: Size) -> Self {
        Self { chains: Longest::new(Groups::new(&size.geometry, size.logical_blocks, 1, Owed::Nothing)) }
    }

    /// The first replacement block that takes a page. If the last does not, none does but after a
    /// failed program.
    fn place(&self, blocks: &View, Target { lbn, offset }: Target) -> Option<BlockId> {
        let chains = self.chains.groups();
        chains.newest(lbn).filter(|&last| blocks.takes(last, offset))?;
        chains.blocks(lbn).find(|&block| blocks.takes(block, offset))
    }

    fn fold_longest(&mut self) -> Step {
        self.chains.longest().map_or(Step::Stuck, |lbn| Step::Merge(lbn, self.chains.groups().newest(lbn)))
    }
}

impl Scheme for Nftl {
    #[inline]
    fn step(&mut self, blocks: &View, target: Target) -> Step {
        if let Some(block) = self.place(blocks, target) {
            self.chains.touch(target.lbn);
            Step::Place(block)
        } else if blocks.may_open_log() {
            Step::Open(target.lbn)
        } else {
            self.fold_longest()
        }
    }

    fn shrink(&mut self, _: &View) -> Step {
        self.fold_longest()
    }

    fn opened(&mut self, block: BlockId, owner: u32) {
        self.chains.push(owner, block);
    }

    fn closed(&mut self, block: BlockId) {
        self.chains.remove(block);
    }

    fn adopt(&mut self, blocks: &View, block: BlockId) -> bool {
        let owner = blocks.owner(block);
        if owner != SHARED {
            self.chains.push(owner, block);
        }
        owner != SHARED
    }

    fn owned_by(&self, lbn: u32) -> Option<BlockId> {
        self.chains.groups().blocks(lbn).next()
    }

    fn ram_bytes(&self) -> u64 {
        self.chains.groups().ram_bytes()
    }
}
