//! vFTL: FAST's log blocks, reclaimed by whichever is cheaper in the long run of merging and
//! collecting within the log.
//!
//! 1. There is a sequential log block as in FAST, and every other overwrite is appended to the
//!    newest random log block.
//! 2. Before the last log block is opened there is a choice:
//!    - *Collect*: the live pages of the emptiest random log block move to the last one, which the
//!      host fills up.
//!    - *Merge*: the last one is filled by the host alone. Then every logical block with a live
//!      page in the oldest random log block is merged, as in FAST.
//!
//! With N_P pages in a block, a share v of them alive in the emptiest log block, C_CP and C_E the
//! times of a copy and an erase:
//! - Merging costs C_M, the sum of (live pages · C_CP + C_E) over the logical blocks that are
//!   merged, and evicts x pages from the log, those in other log blocks too: C_M / x for each.
//! - Collecting costs g = (v N_P C_CP + C_E) / ((1 - v) N_P) for each page that it gains. The log's
//!   utilisation u is (v - 1) / ln v by equation 5. Pages that are evicted lower it: an eviction is
//!   worth u dg/du, of which 2 v / (1 - v)² · (C_CP + C_E / N_P) is four fifths or more from v =
//!   0.3 on.
//! - As long as an evicted page costs more than that, the log is collected; else it is merged.
//!
//! Where the two are equal the sum of both costs is least, if the share of writes that hit the log
//! grows with u in proportion. That is the question with which section 3.1 ends. To take what frees
//! a page for less at once, g or (C_M + C_E) / N_P, never looks ahead: the log fills up with pages
//! that nobody writes any more before a merge is ever cheaper, and it programs up to 2.7 times as
//! many pages as FAST (200 logical blocks, 80 log blocks of 32 pages, nine of ten writes to an
//! eighth of the pages).
//!
//! What differs from the paper: it has no formula, and names no victim for either way.

use super::{Durability, Entry, Info};
use crate::bound::Formula;
use crate::config::{Preset, Setting};
use crate::engine::log_block::area::Target;
use crate::engine::log_block::blocks::SHARED;
use crate::engine::log_block::bound::{Steps, bound, room_for};
use crate::engine::log_block::scheme::{Limits, Scheme, Size, Step, View};
use crate::engine::log_block::{Design, LogFtl};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use nand::{BlockId, Nand, ProgramOrder};

/// C_CP and C_E in microseconds, those of the paper (section 4.1). Only their ratio matters.
const COPY_US: u64 = 225;
const ERASE_US: u64 = 2000;

pub(super) const INFO: Info = Info {
    name: "vftl",
    summary: "log blocks as in fast, merged or collected within the log, whichever costs less in the long run",
    source: "Kwon, Kim, Choi, Lee and Noh, EMSOFT 2010, section 3.1",
    differs: Some(
        "the paper gives no formula for the choice between merge and collection, and names no \
         victim; both are this program's",
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
        programs: "(B + 2)·B + 1 + c",
        longest: "as for fast, and what lives in a log block is moved; a checkpoint",
        most: |geometry, config| {
            bound(geometry, config, room_for(LIMITS), |sizes| Steps {
                merges: sizes.pages + 1,
                moved: sizes.pages,
                freed: sizes.pages + 6,
                opened: 2,
            })
        },
    },
};

const LIMITS: Limits = Limits::at_least(2);

const DESIGN: Design<'_> = Design { name: INFO.name, limits: LIMITS, make: &|size| Box::new(Vftl::new(size)) };

pub(super) fn entry<N: Nand + 'static>() -> Entry<N> {
    Entry {
        info: INFO,
        format: |flash, config| Ok(Box::new(LogFtl::format(flash, config, DESIGN)?)),
        mount: Some(|flash, config| LogFtl::mount(flash, config, DESIGN)),
    }
}

struct Vftl {
    /// The sequential log block and its logical block.
    sequential: Option<(BlockId, u32)>,
    /// Random log blocks, the oldest first.
    random: VecDeque<BlockId>,
    /// What is to be collected into the log block that is opened next.
    victim: Option<BlockId>,
    /// For each logical block the last round of [`Vftl::evict`] that counted it.
    counted: Vec<u32>,
    round: u32,
}

/// What merging a log block's logical blocks would do.
struct Eviction {
    micros: u64,
    /// Pages of log blocks that it kills.
    pages: u64,
}

/// Whether to merge, where the emptiest log block of `pages` pages has `valid` live ones.
const fn merging_pays(eviction: &Eviction, valid: u32, pages: u32) -> bool {
    let (valid, pages) = (valid as u128, pages as u128);
    let gained = pages - valid;
    let saved = 2 * valid * (pages * COPY_US as u128 + ERASE_US as u128);
    eviction.micros as u128 * gained * gained < eviction.pages as u128 * saved
}

impl Vftl {
    fn new(size: Size) -> Self {
        Self {
            sequential: None,
            random: VecDeque::with_capacity(size.logs as usize),
            victim: None,
            counted: alloc::vec![0; size.logical_blocks as usize],
            round: 0,
        }
    }

    fn evict(&mut self, blocks: &View, block: BlockId) -> Eviction {
        self.round = self.round.wrapping_add(1);
        let mut eviction = Eviction { micros: 0, pages: 0 };
        for lbn in blocks.lbns(block) {
            if core::mem::replace(&mut self.counted[lbn as usize], self.round) != self.round {
                let (home, logged) = blocks.live(lbn);
                eviction.micros += u64::from(home + logged) * COPY_US + ERASE_US;
                eviction.pages += u64::from(logged);
            }
        }
        eviction
    }

    /// Makes a log block free by merging, if it has to.
    fn reclaim(&self, blocks: &View) -> Step {
        match (self.emptiest(blocks), self.random.front(), self.sequential) {
            (Some((dead, 0)), _, _) => Step::Reclaim(dead),
            (_, Some(&oldest), _) => Step::Reclaim(oldest),
            (_, None, Some((log, lbn))) => Step::Merge(lbn, Some(log)),
            (_, None, None) => Step::Stuck,
        }
    }

    /// The oldest of the random log blocks with the fewest live pages, and these.
    fn emptiest(&self, blocks: &View) -> Option<(BlockId, u32)> {
        let all = self.random.iter().map(|&block| (block, blocks.valid(block)));
        all.min_by_key(|&(_, valid)| valid)
    }

    /// Uses the last log block that may be opened: for a collection, or as any other.
    fn open_last(&mut self, blocks: &View) -> Step {
        let pages = blocks.geometry().pages_per_block();
        if let (Some((victim, valid)), Some(&oldest)) = (self.emptiest(blocks), self.random.front()) {
            if valid == 0 {
                return Step::Reclaim(victim);
            }
            if valid < pages && !merging_pays(&self.evict(blocks, oldest), valid, pages) {
                self.victim = Some(victim);
            }
        }
        Step::Open(SHARED)
    }

    fn random(&mut self, blocks: &View) -> Step {
        let newest = self.random.back().copied().filter(|&newest| blocks.has_room(newest));
        match (newest, self.victim.take()) {
            // Erased for it, unless a program failed.
            (Some(newest), Some(victim)) if blocks.next(newest) == 0 => return Step::Move(victim, newest),
            (Some(newest), _) => return Step::Append(newest),
            (None, _) => {}
        }
        // One log block is held back for the sequential stream.
        let held = u32::from(self.sequential.is_none() && blocks.log_limit() > 1);
        match blocks.log_limit().saturating_sub(blocks.logs() + held) {
            0 => self.reclaim(blocks),
            1 => self.open_last(blocks),
            _ => Step::Open(SHARED),
        }
    }
}

impl Scheme for Vftl {
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
                    self.reclaim(blocks)
                }
            }
            _ => self.random(blocks),
        }
    }

    fn shrink(&mut self, blocks: &View) -> Step {
        self.reclaim(blocks)
    }

    fn opened(&mut self, block: BlockId, owner: u32) {
        if owner == SHARED {
            self.random.push_back(block);
        } else {
            self.sequential = Some((block, owner));
        }
    }

    fn closed(&mut self, block: BlockId) {
        self.victim = self.victim.filter(|&victim| victim != block);
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
        let counted = self.counted.capacity() * size_of::<u32>();
        (self.random.capacity() * size_of::<BlockId>() + counted) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::hybrid::cost::{CostModel, victim_utilisation};

    /// u dg/du by the cost model, in microseconds.
    fn worth(u: f64) -> f64 {
        let model = CostModel::paper();
        let gained = |u| model.costs(u, 1.0 - u).page_write_us - model.program_us;
        u * (gained(u + 1e-5) - gained(u - 1e-5)) / 2e-5
    }

    #[test]
    fn an_eviction_is_worth_what_the_cost_model_says() {
        for u in [0.6, 0.7, 0.8, 0.9, 0.95] {
            let valid = (victim_utilisation(u) * 64.0) as u32;
            let costs = |share: f64| Eviction { micros: (worth(u) * share * 1000.0) as u64, pages: 1000 };
            assert!(merging_pays(&costs(0.7), valid, 64) && !merging_pays(&costs(1.05), valid, 64), "{u}");
        }
    }

    #[test]
    fn a_log_block_that_is_full_or_dead_leaves_no_choice() {
        let dear = Eviction { micros: u64::MAX >> 8, pages: 1 };
        let cheap = Eviction { micros: 1, pages: u64::from(u32::MAX) };
        assert!(merging_pays(&dear, 65_533, 65_533) && !merging_pays(&cheap, 0, 65_533));
    }
}
