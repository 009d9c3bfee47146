//! BS-FTL: a logical block that is written often has a log block of its own, the others of its set
//! share one.
//!
//! 1. A *block-set* is N neighbouring logical blocks. An overwrite is appended to its logical
//!    block's own log block, if that has one, else to the one that its set shares.
//! 2. A logical block gets its own when it is *hot*, or when its first page is overwritten: the
//!    rest may follow in sequence, and a log block written in sequence becomes the data block by a
//!    switch.
//! 3. A full log block of one logical block is merged with its data block; of a full shared one
//!    every logical block with a live page in it is merged. If every log block is taken, the one
//!    written least recently is given up. If it belongs to one logical block and few pages in it
//!    live, they move to the shared log block: each page of that costs a share of up to N merges,
//!    so they are worth moving while (N + 1) times as many make less than a block.
//!
//! Who is hot is decided by every write. Since its set's shared log block was opened, a logical
//! block that is hot
//! - wrote an eighth of that log block or more: fewer writes say little, and
//! - wrote one of E overwrites of the whole device or more, where E log blocks are left by the sets
//!   to own: so hardly more are hot at a time than can have a log block, and each fills its own
//!   while the others do.
//!
//! It is cold again once its own log block is given up, because all others were written since; so
//! it is after a mount.
//!
//! N is the smallest for which shared log blocks are at most half of all, so over-provisioning
//! decides it. Next to BAST this does not thrash if more logical blocks are written than there are
//! log blocks. Next to FAST a logical block that is written often does not fill what others share,
//! sequential streams do not spoil each other, and a reclamation merges at most N logical blocks;
//! but evenly spread writes fill half of the log blocks only.
//!
//! What differs from the paper, of which its abstract and a sentence of Kwon et al. (EMSOFT 2010,
//! section 2) are the sources here: it builds on NFTL, whose replacement blocks may keep pages at
//! their offsets. Here log blocks are filled in the order of arrival, which every device allows.
//! The rules for who is hot, what is given up and N are ours.

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
    name: "blockset",
    summary: "log blocks of their own for hot data blocks, one shared by the cold ones of each set",
    source: "Liu, Yue, Wei, Jin and Xiang, SAC 2009",
    differs: Some(
        "rules for which data is hot, what is given up and how large a set is are not the \
         paper's, of which only the abstract was at hand; log blocks are filled in the order of \
         arrival",
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
        programs: "(min(N, B) + 1)·B + 1 + c",
        longest: "a log block of a set of N logical blocks is reclaimed, one of a hot one merged; a checkpoint",
        most: |geometry, config| {
            bound(geometry, config, room_for(LIMITS), |sizes| {
                let set = u64::from(each(sizes.logical_blocks as u32, sizes.logs as u32)).min(sizes.pages);
                Steps { merges: set + 1, freed: 2 * set + 3, opened: 1, ..Steps::NONE }
            })
        },
    },
};

const LIMITS: Limits = Limits::at_least(2);

const DESIGN: Design<'_> = Design { name: INFO.name, limits: LIMITS, make: &|size| Box::new(BlockSets::new(size)) };

pub(super) fn entry<N: Nand + 'static>() -> Entry<N> {
    Entry {
        info: INFO,
        format: |flash, config| Ok(Box::new(LogFtl::format(flash, config, DESIGN)?)),
        mount: Some(|flash, config| LogFtl::mount(flash, config, DESIGN)),
    }
}

/// A *holder* of a log block is a logical block, or behind them all a set.
struct BlockSets {
    /// N: logical blocks of a set.
    each: u32,
    logical_blocks: u32,
    /// The log block of every holder.
    log_of: Vec<BlockId>,
    holder_of: Vec<u32>,
    /// Holders that have a log block.
    recent: Lru,
    /// Whom the log block is for that is opened next.
    opening: u32,
    /// What each logical block wrote to the shared log block of its set since that was opened;
    /// [`u16::MAX`] while it is hot.
    written: Vec<u16>,
    /// Overwrites so far, and when the shared log block of each set was opened.
    now: u64,
    opened_at: Vec<u64>,
    /// E: log blocks that the sets leave.
    to_own: u32,
}

const HOT: u16 = u16::MAX;

/// The least share of a shared log block that is written by a logical block that becomes hot.
const LEAST_SHARE: u32 = 8;

/// N: twice as many logical blocks as there are for each log block.
const fn each(logical_blocks: u32, logs: u32) -> u32 {
    (2 * logical_blocks).div_ceil(if logs > 0 { logs } else { 1 })
}

impl BlockSets {
    fn new(size: Size) -> Self {
        let each = each(size.logical_blocks, size.logs);
        let sets = size.logical_blocks.div_ceil(each);
        let holders = size.logical_blocks + sets;
        Self {
            each,
            logical_blocks: size.logical_blocks,
            log_of: alloc::vec![BlockId::NONE; holders as usize],
            holder_of: alloc::vec![0; size.geometry.blocks() as usize],
            recent: Lru::new(holders),
            opening: 0,
            written: alloc::vec![0; size.logical_blocks as usize],
            now: 0,
            opened_at: alloc::vec![0; sets as usize],
            to_own: size.logs.saturating_sub(sets).max(1),
        }
    }

    #[inline]
    const fn set(&self, lbn: u32) -> u32 {
        self.logical_blocks + lbn / self.each
    }

    fn hold(&mut self, block: BlockId, holder: u32) {
        debug_assert!(!self.log_of[holder as usize].is_some(), "{holder} holds a log block");
        self.log_of[holder as usize] = block;
        self.holder_of[block.index()] = holder;
        self.recent.touch(holder);
    }

    fn open(&mut self, blocks: &View, holder: u32) -> Step {
        if !blocks.may_open_log() {
            return self.evict(blocks);
        }
        self.opening = holder;
        Step::Open(if holder < self.logical_blocks { holder } else { SHARED })
    }

    fn give_up(&self, holder: u32) -> Step {
        let log = self.log_of[holder as usize];
        if holder < self.logical_blocks { Step::Merge(holder, Some(log)) } else { Step::Reclaim(log) }
    }

    /// Gives up the log block written least recently.
    fn evict(&mut self, blocks: &View) -> Step {
        let Some(holder) = self.recent.oldest() else { return Step::Stuck };
        if let Some(written) = self.written.get_mut(holder as usize) {
            *written = 0;
            let (log, shared) = (self.log_of[holder as usize], self.log_of[self.set(holder) as usize]);
            let (valid, pages) = (blocks.valid(log), blocks.geometry().pages_per_block());
            let few = valid > 0 && u64::from(valid) * u64::from(self.each + 1) < u64::from(pages);
            if few && shared.is_some() && blocks.next(shared) + valid <= pages {
                return Step::Move(log, shared);
            }
        }
        self.give_up(holder)
    }

    /// `None` if the holder has no log block.
    fn append(&mut self, blocks: &View, holder: u32) -> Option<Step> {
        let log = self.log_of[holder as usize];
        if !log.is_some() {
            return None;
        }
        if !blocks.has_room(log) {
            return Some(self.give_up(holder));
        }
        self.recent.touch(holder);
        self.now += 1;
        Some(Step::Append(log))
    }

    fn append_shared(&mut self, blocks: &View, lbn: u32) -> Step {
        let holder = self.set(lbn);
        let Some(step) = self.append(blocks, holder) else { return self.open(blocks, holder) };
        if let Step::Append(_) = step {
            let passed = self.now - self.opened_at[(holder - self.logical_blocks) as usize];
            debug_assert!(
                passed > 0 && *self.written.get(lbn as usize).unwrap_or(&HOT) != HOT,
                "a hot one has a log block"
            );
            let written = &mut self.written[lbn as usize];
            *written += 1;
            let enough = u32::from(*written) >= blocks.geometry().pages_per_block().div_ceil(LEAST_SHARE);
            if enough && u64::from(*written) * u64::from(self.to_own) >= passed {
                *written = HOT;
            }
        }
        step
    }
}

impl Scheme for BlockSets {
    #[inline]
    fn step(&mut self, blocks: &View, target: Target) -> Step {
        let lbn = target.lbn;
        if let Some(step) = self.append(blocks, lbn) {
            step
        } else if target.offset == 0 || self.written[lbn as usize] == HOT {
            self.open(blocks, lbn)
        } else {
            self.append_shared(blocks, lbn)
        }
    }

    fn shrink(&mut self, blocks: &View) -> Step {
        self.evict(blocks)
    }

    fn opened(&mut self, block: BlockId, owner: u32) {
        if owner == SHARED {
            let set = self.opening - self.logical_blocks;
            debug_assert!(self.opening >= self.logical_blocks && (set as usize) < self.opened_at.len());
            self.opened_at[set as usize] = self.now;
            let members = self.written.iter_mut().skip((set * self.each) as usize);
            for written in members.take(self.each as usize) {
                *written = if *written == HOT { HOT } else { 0 };
            }
        }
        self.hold(block, self.opening);
    }

    fn closed(&mut self, block: BlockId) {
        let holder = self.holder_of[block.index()];
        debug_assert!(self.log_of[holder as usize] == block, "{block} is not the log block of {holder}");
        self.log_of[holder as usize] = BlockId::NONE;
        self.recent.remove(holder);
    }

    /// For its logical block, or for its set if all its live pages are of one.
    fn adopt(&mut self, blocks: &View, block: BlockId) -> bool {
        let Some(set) = blocks.lbns(block).next().map(|lbn| self.set(lbn)) else { return false };
        let owner = blocks.owner(block);
        let of_set = blocks.lbns(block).all(|lbn| self.set(lbn) == set).then_some(set);
        let holders = [(owner != SHARED).then_some(owner), of_set];
        let free = holders.into_iter().flatten().find(|&holder| !self.log_of[holder as usize].is_some());
        if let Some(holder) = free {
            self.hold(block, holder);
        }
        free.is_some()
    }

    fn owned_by(&self, lbn: u32) -> Option<BlockId> {
        let log = self.log_of[lbn as usize];
        log.is_some().then_some(log)
    }

    fn ram_bytes(&self) -> u64 {
        let words = self.log_of.capacity() + self.holder_of.capacity();
        let times = self.opened_at.capacity() * size_of::<u64>();
        (words * size_of::<u32>() + self.written.capacity() * size_of::<u16>() + times) as u64 + self.recent.ram_bytes()
    }
}
