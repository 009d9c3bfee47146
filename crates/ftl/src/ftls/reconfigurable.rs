//! Reconfigurable FTL: groups of N neighbouring logical blocks share at most K log blocks.
//!
//! 1. A page that was overwritten goes to the newest log block of its group, whichever of the
//!    group's logical blocks it belongs to. A group opens another when that is full, until it has
//!    K.
//! 2. A group with K full log blocks gives up one of them; if no other log block can be had, the
//!    group written least recently does. It is one in which nothing lives, else the group's oldest.
//! 3. A log block in which one logical block's pages stand at their offsets is merged by a switch
//!    or partially. Any other is reclaimed: every logical block with a live page in it is merged in
//!    full, which kills its pages in the group's other log blocks too.
//!
//! N and K span what lies between BAST (N = K = 1) and the shared log blocks of FAST (one group of
//! all). The paper fits them to the workload; so can [`Config::groups`], and [`DEFAULT`] is ours. A
//! reclamation merges at most N logical blocks, so it is bounded, which FAST's is not. Small writes
//! all over the device make it thrash as BAST does once fewer log blocks are left than groups are
//! written.

use super::{Durability, Entry, Info};
use crate::bound::Formula;
use crate::config::{Config, GroupOptions, Preset, Setting};
use crate::contract::FtlError;
use crate::engine::log_block::area::Target;
use crate::engine::log_block::blocks::{Blocks, SHARED};
use crate::engine::log_block::bound::{Steps, bound, room_for};
use crate::engine::log_block::groups::{Groups, Owed};
use crate::engine::log_block::scheme::{Limits, Scheme, Size, Step, View};
use crate::engine::log_block::{Design, LogFtl};
use alloc::boxed::Box;
use nand::{BlockId, Nand, ProgramOrder};

const DEFAULT: GroupOptions = GroupOptions { blocks: 8, extra: 4 };

pub(super) const INFO: Info = Info {
    name: "reconfigurable",
    summary: "groups of neighbouring data blocks that share a few log blocks each",
    source: "Park, Cheon, Kang, Roh, Cho and Kim, ACM Transactions on Embedded Computing Systems 7(4), 2008",
    differs: Some(
        "the paper fits the sizes of groups to the workload; here they stay as `--groups` sets \
         them",
    ),
    settings: &[Setting::Groups, Setting::Maps],
    validity: None,
    durable: Durability::OnCompletion,
    program_order: ProgramOrder::Sequential,
    // A mount from a checkpoint does not look at every page.
    outlives_worn_pages: false,
    flags: 0,
    preset: Preset::PAPER,
    bound: Formula {
        programs: "min(N, B)·B + 1 + c",
        longest: "a log block with pages of all N logical blocks of its group is reclaimed; a checkpoint",
        most: |geometry, config| {
            bound(geometry, config, room_for(LIMITS), |sizes| {
                let group = u64::from(config.groups.unwrap_or(DEFAULT).blocks).min(sizes.pages);
                Steps { merges: group, freed: group + 2, opened: 1, ..Steps::NONE }
            })
        },
    },
};

pub(super) fn entry<N: Nand + 'static>() -> Entry<N> {
    Entry {
        info: INFO,
        format: |flash, config| Ok(Box::new(LogFtl::format(flash, config, design(&scheme(config)?))?)),
        mount: Some(|flash, config| LogFtl::mount(flash, config, design(&scheme(config)?))),
    }
}

const LIMITS: Limits = Limits::at_least(1);

fn design(make: &dyn Fn(Size) -> Box<dyn Scheme>) -> Design<'_> {
    Design { name: INFO.name, limits: LIMITS, make }
}

fn scheme(config: &Config) -> Result<impl Fn(Size) -> Box<dyn Scheme>, FtlError> {
    let GroupOptions { blocks, extra } = config.groups.unwrap_or(DEFAULT).checked(INFO.name)?;
    Ok(move |size: Size| -> Box<dyn Scheme> {
        let groups = Groups::new(&size.geometry, size.logical_blocks, blocks, Owed::Nothing);
        Box::new(Reconfigurable { most: extra, groups })
    })
}

struct Reconfigurable {
    /// K: log blocks that a group may have.
    most: u32,
    /// The log blocks of each group.
    groups: Groups,
}

impl Reconfigurable {
    /// Gives up a log block of a group.
    fn free_one(&self, blocks: &Blocks, group: u32) -> Step {
        if let Some(dead) = self.groups.blocks(group).find(|&block| blocks.valid(block) == 0) {
            return Step::Reclaim(dead);
        }
        match self.groups.blocks(group).next() {
            Some(log) if blocks.is_aligned(log) && blocks.owner(log) != SHARED => {
                Step::Merge(blocks.owner(log), Some(log))
            }
            Some(log) => Step::Reclaim(log),
            None => Step::Stuck,
        }
    }
}

impl Scheme for Reconfigurable {
    #[inline]
    fn step(&mut self, blocks: &View, target: Target) -> Step {
        let group = self.groups.group(target.lbn);
        if let Some(log) = self.groups.newest(group).filter(|&log| blocks.has_room(log)) {
            self.groups.touch(group);
            return Step::Append(log);
        }
        if self.groups.excess(group) >= self.most {
            self.free_one(blocks, group)
        } else if blocks.may_open_log() {
            // Aligned as long as this logical block's pages alone are written to it, from the first
            // one on.
            Step::Open(target.lbn)
        } else {
            self.shrink(blocks)
        }
    }

    fn shrink(&mut self, blocks: &View) -> Step {
        self.groups.by_last_use().next().map_or(Step::Stuck, |group| self.free_one(blocks, group))
    }

    fn opened(&mut self, block: BlockId, owner: u32) {
        self.groups.push(self.groups.group(owner), block);
    }

    fn closed(&mut self, block: BlockId) {
        self.groups.remove(block);
    }

    /// If its live pages are of one group that may have another.
    fn adopt(&mut self, blocks: &View, block: BlockId) -> bool {
        let mut lbns = blocks.lbns(block);
        let Some(group) = lbns.next().map(|lbn| self.groups.group(lbn)) else { return false };
        let fits = lbns.all(|lbn| self.groups.group(lbn) == group) && self.groups.excess(group) < self.most;
        if fits {
            self.groups.push(group, block);
        }
        fits
    }

    fn ram_bytes(&self) -> u64 {
        self.groups.ram_bytes()
    }
}
