//! Victim policies: which block is collected next.
//!
//! A policy answers with a block; the engine collects it. Policies hear of every block that becomes
//! a candidate and of every page that dies in one, so that none ever has to look at all blocks.
//! Several may stand over the blocks of a device, each over its own candidates: they share
//! [`Links`], which whoever holds the policies holds for them.
//!
//! A policy is asked for a bank: what is collected there makes room there, for lanes that are
//! filled on different dies.

mod banks;
pub mod by_bank;
mod cat;
mod cost_benefit;
mod fifo;
mod greedy;
mod lists;
mod queues;
mod tournament;

use alloc::boxed::Box;
pub use banks::Banks;
pub use lists::Links;
use nand::BlockId;
pub(crate) use queues::Queues;

/// The live pages of a block; `None` if it is no candidate of the policy that asks.
pub type Live<'a> = &'a dyn Fn(BlockId) -> Option<u32>;

/// A victim policy over the blocks it has been told of.
pub trait Victim: Send {
    /// A block is full and has `valid` live pages: it is a candidate from now on. It is none of
    /// another policy.
    fn closed(&mut self, links: &mut Links, block: BlockId, valid: u32);

    /// A page of a candidate died; `valid` are left.
    fn page_died(&mut self, links: &mut Links, block: BlockId, valid: u32);

    /// The candidate of a bank to collect next, with its live pages; it stays a candidate until
    /// [`Victim::removed`]. Never a block in which every page lives, unless all candidates of the
    /// bank are so: collecting it would gain nothing. `live` answers for the candidates that it was
    /// told of, so that a policy need not keep what the engine keeps.
    fn pick(&mut self, links: &mut Links, bank: u32, live: Live<'_>) -> Option<Choice>;

    /// A block is no candidate any more.
    fn removed(&mut self, links: &mut Links, block: BlockId);

    /// Bytes of RAM held beside the links.
    fn ram_bytes(&self) -> u64;
}

/// What a policy decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The block to collect.
    pub block: BlockId,
    /// Its live pages, each of which has to be moved.
    pub valid: u32,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// It always picks the block with the fewest live pages.
    pub picks_fewest: bool,
    /// Makes one for a device with the blocks of `links`, of `pages_per_block` pages each.
    pub make: fn(links: &mut Links, pages_per_block: u32, banks: Banks) -> Box<dyn Victim>,
}

/// Every victim policy.
#[must_use]
pub fn table() -> &'static [Entry] {
    &[greedy::ENTRY, tournament::ENTRY, fifo::ENTRY, cost_benefit::ENTRY, cat::ENTRY]
}

/// The row with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    table().iter().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn every_policy_returns_only_candidates_and_ends_empty() {
        for entry in table() {
            let mut links = Links::new(40);
            let mut policy = (entry.make)(&mut links, 8, Banks::ONE);
            assert_eq!(policy.pick(&mut links, 0, &|_| None), None, "{}", entry.name);
            let mut valid: Vec<u32> = (0..40).map(|b| b * 7 % 9).collect();
            for b in 0..40 {
                policy.closed(&mut links, BlockId(b), valid[b as usize]);
            }
            let mut left = 40;
            let mut step = 0_usize;
            while let Some(choice) =
                policy.pick(&mut links, 0, &|block| Some(valid[block.index()]).filter(|valid| *valid < u32::MAX))
            {
                assert_eq!(choice.valid, valid[choice.block.index()], "{}", entry.name);
                policy.removed(&mut links, choice.block);
                valid[choice.block.index()] = u32::MAX;
                left -= 1;
                step += 1;
                let other = step * 17 % 40;
                if valid[other] != u32::MAX && valid[other] > 0 {
                    valid[other] -= 1;
                    policy.page_died(&mut links, BlockId(other as u32), valid[other]);
                }
            }
            assert_eq!(left, 0, "{}", entry.name);
            assert!(links.ram_bytes() + policy.ram_bytes() < 18 * 40, "{}", entry.name);
        }
    }

    #[test]
    fn greedy_picks_the_fewest_live_pages_and_among_equals_the_oldest() {
        let mut links = Links::new(8);
        let mut policy = (find("greedy").unwrap().make)(&mut links, 16, Banks::ONE);
        for (block, valid) in [(0, 9), (1, 5), (2, 5), (3, 16)] {
            policy.closed(&mut links, BlockId(block), valid);
        }
        assert_eq!(policy.pick(&mut links, 0, &|_| None), Some(Choice { block: BlockId(1), valid: 5 }));
        policy.page_died(&mut links, BlockId(2), 4);
        assert_eq!(policy.pick(&mut links, 0, &|_| None), Some(Choice { block: BlockId(2), valid: 4 }));
        policy.removed(&mut links, BlockId(2));
        policy.removed(&mut links, BlockId(1));
        assert_eq!(policy.pick(&mut links, 0, &|_| None), Some(Choice { block: BlockId(0), valid: 9 }));
    }

    #[test]
    fn fifo_picks_in_the_order_of_closing() {
        let mut links = Links::new(8);
        let mut policy = (find("fifo").unwrap().make)(&mut links, 16, Banks::ONE);
        for (block, valid) in [(3, 9), (1, 5), (2, 1)] {
            policy.closed(&mut links, BlockId(block), valid);
        }
        assert_eq!(policy.pick(&mut links, 0, &|_| None), Some(Choice { block: BlockId(3), valid: 9 }));
    }

    #[test]
    fn cost_benefit_prefers_an_old_block_to_a_slightly_emptier_young_one() {
        let mut links = Links::new(64);
        let mut policy = (find("cost-benefit").unwrap().make)(&mut links, 16, Banks::ONE);
        policy.closed(&mut links, BlockId(0), 9);
        for b in 2..40 {
            policy.closed(&mut links, BlockId(b), 16);
        }
        policy.closed(&mut links, BlockId(1), 8);
        assert_eq!(policy.pick(&mut links, 0, &|_| None).map(|c| c.block), Some(BlockId(0)));
        let mut links = Links::new(64);
        let mut greedy = (find("greedy").unwrap().make)(&mut links, 16, Banks::ONE);
        greedy.closed(&mut links, BlockId(0), 9);
        greedy.closed(&mut links, BlockId(1), 8);
        assert_eq!(greedy.pick(&mut links, 0, &|_| None).map(|c| c.block), Some(BlockId(1)));
    }

    #[test]
    fn a_policy_picks_in_the_bank_that_it_is_asked_for() {
        for entry in table() {
            let mut links = Links::new(12);
            let mut policy = (entry.make)(&mut links, 16, Banks::new(3, 3));
            for block in 0..9 {
                policy.closed(&mut links, BlockId(block), 9 - block % 8);
            }
            for bank in 0..3 {
                let mut picked = Vec::new();
                while let Some(Choice { block, valid }) = policy.pick(&mut links, bank, &|block| {
                    Some(9 - block.0 % 8).filter(|_| block.0 < 9 && !picked.contains(&block))
                }) {
                    assert_eq!((block.0 % 3, valid), (bank, 9 - block.0 % 8), "{}", entry.name);
                    policy.removed(&mut links, block);
                    picked.push(block);
                }
                assert_eq!(picked.len(), 3, "{} in bank {bank}", entry.name);
            }
        }
    }

    #[test]
    fn policies_over_the_same_blocks_share_their_places() {
        let mut links = Links::new(8);
        let mut policies =
            ["greedy", "greedy", "fifo"].map(|name| (find(name).unwrap().make)(&mut links, 16, Banks::ONE));
        for block in 0..6 {
            policies[block as usize % 3].closed(&mut links, BlockId(block), 9 - block);
        }
        policies[1].page_died(&mut links, BlockId(1), 2);
        let picked =
            [0, 1, 2].map(|at: usize| policies[at].pick(&mut links, 0, &|_| None).map(|choice| choice.block.0));
        assert_eq!(picked, [Some(3), Some(1), Some(2)]);
        policies[1].removed(&mut links, BlockId(1));
        policies[0].closed(&mut links, BlockId(1), 1);
        let picked =
            [0, 1, 2].map(|at: usize| policies[at].pick(&mut links, 0, &|_| None).map(|choice| choice.block.0));
        assert_eq!(picked, [Some(1), Some(4), Some(2)]);
    }
}
