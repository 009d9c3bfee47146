//! Collection bank by bank, as pure functions: how short of free blocks a bank is, what a victim
//! may cost then, which bank is collected, which takes the next page, and how many collectors may
//! work.
//!
//! From LFTL, section 3.3 and 3.4. For a device whose banks work side by side: writers keep off the
//! bank that is collected. On a device of one die there is nothing to keep off. The threads of the
//! crate `openftl-lftl` and the simulator's hosts in virtual time call the same functions.

use crate::contract::FtlError;
use alloc::vec::Vec;

/// How garbage is collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// In the path of a write: a bank that is short of free blocks is collected before it is
    /// written (NPGC).
    WritePath,
    /// Beside the writers, on banks that are not written (PLLGC).
    Parallel,
    /// As [`Policy::Parallel`]; the busier the writers, the fewer collectors work.
    Adaptive,
}

impl Policy {
    /// Every policy, by the name that the paper gives it.
    pub const TABLE: [(&'static str, Self); 3] =
        [("npgc", Self::WritePath), ("pllgc", Self::Parallel), ("adaptive", Self::Adaptive)];

    /// The name that the paper gives it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WritePath => "npgc",
            Self::Parallel => "pllgc",
            Self::Adaptive => "adaptive",
        }
    }

    /// How many of `collectors` may work while `active` of `workers` do.
    #[must_use]
    pub fn collectors(self, active: u32, workers: u32, collectors: u32) -> u32 {
        match self {
            Self::WritePath => 0,
            Self::Parallel => collectors,
            Self::Adaptive => collectors_allowed(active, workers, collectors),
        }
    }
}

/// A level of collection: from how few free blocks on, blocks of up to how many live pages are
/// collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The level holds while a bank has at most so many free blocks.
    pub free_blocks: u32,
    /// Live pages of a victim at most.
    pub live_pages: u32,
}

/// The three levels, the mildest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels(pub [Level; 3]);

/// Free blocks of a bank that host data does not use. A collector copies into one while its victim
/// is not yet erased; if power is lost then, the next one has the other.
pub const RESERVE: u32 = 2;

impl Levels {
    /// The levels of a bank of so many blocks: erases only from a tenth of free blocks on, victims
    /// that are half live from a twentieth on, and any victim when two blocks beyond the reserve
    /// are left.
    #[must_use]
    pub fn of(blocks: u32, pages_per_block: u32) -> Self {
        let last = RESERVE + 2;
        let half = (blocks / 20).max(last + 1);
        let first = (blocks / 10).max(half + 1);
        Self([
            Level { free_blocks: first, live_pages: 0 },
            Level { free_blocks: half, live_pages: pages_per_block / 2 },
            Level { free_blocks: last, live_pages: pages_per_block - 1 },
        ])
    }

    /// Live pages that a victim may have in a bank with so many free blocks; `None` if it has
    /// enough.
    #[must_use]
    pub fn limit(&self, free_blocks: u32) -> Option<u32> {
        self.0.iter().rev().find(|level| free_blocks <= level.free_blocks).map(|level| level.live_pages)
    }

    /// Whether a bank is so short that it takes no writes until it was collected.
    #[must_use]
    pub fn exclusive(&self, free_blocks: u32) -> bool {
        free_blocks <= self.0[2].free_blocks
    }
}

/// How many of `collectors` may work while `active` of `workers` do: all when none does, one when
/// all do, and in between in proportion.
fn collectors_allowed(active: u32, workers: u32, collectors: u32) -> u32 {
    let (workers, collectors) = (workers.max(1), collectors.max(1));
    let idle = u64::from(workers - active.min(workers));
    1 + (u64::from(collectors - 1) * idle / u64::from(workers)) as u32
}

/// The banks to collect, that most in need first: of those that are short, by free blocks and then
/// by writers. `seen` answers how many there are of each.
#[must_use]
pub fn banks_to_collect(banks: usize, levels: &Levels, seen: impl Fn(usize) -> (u32, u32)) -> Vec<usize> {
    // What others change meanwhile is looked at once: an order that changes is none.
    let seen = (0..banks).map(|bank| (seen(bank), bank));
    let mut short: Vec<_> = seen.filter(|((free, _), _)| levels.limit(*free).is_some()).collect();
    short.sort_unstable();
    short.into_iter().map(|(_, bank)| bank).collect()
}

/// What a writer sees of a bank before it writes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BankView {
    /// A page can be programmed without collecting first.
    pub room: bool,
    /// A collector works on it.
    pub collecting: bool,
    /// It is to be collected before it is written.
    pub exclusive: bool,
    /// Somebody writes it.
    pub writers: u32,
}

/// The bank for the next page: of those with room one that is not collected, not flagged as
/// exclusive, and written by the fewest, the first of them from `start` on.
#[must_use]
pub fn bank_for_write(banks: usize, start: usize, view: impl Fn(usize) -> BankView) -> Option<usize> {
    let mut best: Option<(u32, usize)> = None;
    for step in 0..banks {
        let bank = (start + step) % banks;
        let seen = view(bank);
        if !seen.room {
            continue;
        }
        let cost = seen.writers + if seen.collecting || seen.exclusive { 1 << 16 } else { 0 };
        if cost == 0 {
            return Some(bank);
        }
        if best.is_none_or(|(least, _)| cost < least) {
            best = Some((cost, bank));
        }
    }
    best.map(|(_, bank)| bank)
}

/// An FTL whose free blocks, write points and victims belong to banks.
pub trait Banked {
    /// How many banks there are.
    fn banks(&self) -> u32;

    /// Blocks of a bank that can be opened without collecting anything.
    fn free_blocks(&self, bank: u32) -> u32;

    /// Whether the next page of the first stream of host data opens no block of a bank.
    fn has_open(&self, bank: u32) -> bool;

    /// The next page of host data goes to a bank, if that has room. Then banks take turns again.
    fn aim(&mut self, bank: u32);

    /// Empties and erases a block of a bank with up to so many live pages; `false` if there is no
    /// such block. What lives stays in the bank, if that has room. Where metadata is held apart, a
    /// block of it goes first that is dead or one too many, of whichever bank.
    ///
    /// **Power loss**: as of any collection.
    ///
    /// # Errors
    /// Those of the device.
    fn collect(&mut self, bank: u32, live_pages: u32) -> Result<bool, FtlError>;

    /// Takes memory for at least so many erased blocks to wait; no more are gained ahead of need.
    /// The one method here that allocates.
    fn keep_free(&mut self, blocks: u32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_holds_from_its_threshold_on() {
        let levels = Levels::of(64, 32);
        let [first, half, last] = levels.0;
        assert!(first.free_blocks > half.free_blocks && half.free_blocks > last.free_blocks);
        assert_eq!(levels.limit(first.free_blocks + 1), None);
        assert_eq!(levels.limit(first.free_blocks), Some(0));
        assert_eq!(levels.limit(half.free_blocks), Some(16));
        assert_eq!(levels.limit(last.free_blocks), Some(31));
        assert_eq!(levels.limit(0), Some(31));
        assert!(levels.exclusive(last.free_blocks) && !levels.exclusive(last.free_blocks + 1));
    }

    #[test]
    fn collectors_follow_idle_workers() {
        assert_eq!(collectors_allowed(0, 16, 8), 8);
        assert_eq!(collectors_allowed(16, 16, 8), 1);
        assert_eq!(collectors_allowed(99, 16, 8), 1);
        assert_eq!(collectors_allowed(8, 16, 8), 4);
        let allowed: Vec<u32> = (0..=16).map(|active| collectors_allowed(active, 16, 8)).collect();
        assert!(allowed.is_sorted_by(|a, b| a >= b), "{allowed:?}");
        assert_eq!(collectors_allowed(0, 0, 0), 1);
    }

    #[test]
    fn the_name_of_a_policy_is_that_of_its_row() {
        assert!(Policy::TABLE.iter().all(|(name, policy)| policy.name() == *name));
    }

    #[test]
    fn only_collectors_that_follow_the_load_get_fewer() {
        let at = |active| Policy::TABLE.map(|(_, policy)| policy.collectors(active, 16, 8));
        assert_eq!((at(0), at(16)), ([0, 8, 8], [0, 8, 1]));
    }

    #[test]
    fn the_bank_with_the_fewest_free_blocks_is_collected_first() {
        let levels = Levels::of(64, 32);
        let seen = [(9, 0), (4, 1), (3, 5), (4, 0), (6, 0)];
        assert_eq!(banks_to_collect(seen.len(), &levels, |bank| seen[bank]), [2, 3, 1, 4]);
    }

    #[test]
    fn a_bank_that_is_collected_is_the_last_choice() {
        let quiet = BankView { room: true, collecting: false, exclusive: false, writers: 0 };
        let views = [
            BankView { collecting: true, ..quiet },
            BankView { room: false, ..quiet },
            BankView { writers: 3, ..quiet },
            BankView { writers: 1, ..quiet },
            BankView { exclusive: true, ..quiet },
        ];
        let choose = |of: &[usize], start| bank_for_write(of.len(), start, |bank| views[of[bank]]);
        assert_eq!(choose(&[0, 1, 2, 3, 4], 0), Some(3));
        assert_eq!(choose(&[0, 1, 4], 0), Some(0), "a collected bank is better than none");
        assert_eq!(choose(&[0, 1, 4], 1), Some(2));
        assert_eq!(choose(&[1, 1], 0), None);
    }
}
