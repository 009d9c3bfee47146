//! Tournament: the block with the fewest live pages, as greedy, in a hundredth of its RAM.
//!
//! 1. Blocks of a bank that lie side by side, some [`GROUP`] of them, are a group. A group has a
//!    bound: no candidate in it has fewer live pages.
//! 2. Bounds stand in a tree, in which each node has the lesser bound of two. When a page dies, the
//!    bound of its group falls to what is left in the block, and so do those above that are larger.
//! 3. A pick goes down to a group with the least bound and looks at its blocks. If none of them has
//!    so few live pages, the bound rises to the fewest, and the pick begins again. That happens
//!    once for each block that was removed.
//! 4. Among equal bounds, the group after that of the block removed last comes first: else blocks
//!    with low numbers would be worn first.
//!
//! Two bytes for each of twice as many nodes as groups: some 70 bits a thousand blocks, where
//! greedy takes eight bytes a block. Among equal blocks greedy takes the one that came to its count
//! first, and this one the nearest.

use super::{Banks, Choice, Entry, Links, Live, Victim};
use alloc::boxed::Box;
use alloc::vec::Vec;
use nand::BlockId;

/// Blocks of a group, unless a bank has more dies.
const GROUP: u32 = 64;

/// The bound of a group without candidates.
const NONE: u16 = u16::MAX;

pub(super) const ENTRY: Entry = Entry {
    name: "tournament",
    summary: "the block with the fewest live pages, by bounds of groups: 4 B for 64 blocks instead of 8 B a block",
    source: "Knuth, The Art of Computer Programming 3, 5.2.3 (trees of losers); bounds that rise late: this work",
    picks_fewest: true,
    make: |links, _, banks| Box::new(Tournament::new(links.blocks(), banks)),
};

struct Tournament {
    /// For each bank a tree of twice as many nodes as it has leaves: the root is node 1, the
    /// children of node n are 2n and 2n + 1.
    bounds: Vec<u16>,
    /// Leaves of a tree: groups of a bank, rounded up to a power of two.
    leaves: u32,
    /// Of each bank, the group that comes first among equals.
    turns: Vec<u32>,
    /// Blocks of all banks from the first of a group to the first of the next.
    stripe: u32,
    blocks: u32,
    banks: Banks,
}

impl Tournament {
    fn new(blocks: u32, banks: Banks) -> Self {
        let units_of_bank = banks.units().div_ceil(banks.count());
        let stripe = banks.units() * (GROUP / units_of_bank).max(1);
        let leaves = blocks.div_ceil(stripe).next_power_of_two();
        Self {
            bounds: alloc::vec![NONE; (banks.count() * 2 * leaves) as usize],
            leaves,
            turns: alloc::vec![0; banks.count() as usize],
            stripe,
            blocks,
            banks,
        }
    }

    #[inline]
    const fn group_of(&self, block: BlockId) -> u32 {
        block.0 / self.stripe
    }

    /// The tree of a bank.
    #[inline]
    fn tree(&mut self, bank: u32) -> &mut [u16] {
        let nodes = 2 * self.leaves as usize;
        &mut self.bounds[bank as usize * nodes..][..nodes]
    }

    /// A candidate has so many live pages.
    #[inline]
    fn fall(&mut self, block: BlockId, valid: u32) {
        let mut node = (self.leaves + self.group_of(block)) as usize;
        let bound = valid.min(u32::from(NONE) - 1) as u16;
        let tree = self.tree(self.banks.of(block));
        while node > 0 && tree[node] > bound {
            tree[node] = bound;
            node /= 2;
        }
        debug_assert!(tree[1] <= bound, "{block} has fewer live pages than the least bound");
    }

    /// No candidate of a group has fewer live pages.
    fn rise(&mut self, bank: u32, group: u32, bound: u16) {
        let mut node = (self.leaves + group) as usize;
        let tree = self.tree(bank);
        debug_assert!(tree[node] < bound, "the bound of group {group} falls from {} to {bound}", tree[node]);
        tree[node] = bound;
        while node > 1 {
            node /= 2;
            tree[node] = tree[2 * node].min(tree[2 * node + 1]);
        }
    }

    /// The group with the least bound, from the one on whose turn it is; `None` if there is no
    /// candidate.
    fn least(&mut self, bank: u32) -> Option<(u32, u16)> {
        let (leaves, turn) = (self.leaves as usize, self.turns[bank as usize]);
        let tree = self.tree(bank);
        let bound = tree[1];
        if bound == NONE {
            return None;
        }
        let mut node = leaves + turn as usize;
        while node > 1 && tree[node] != bound {
            // To the right of what was looked at, if the least is there.
            node = if node.is_multiple_of(2) && tree[node + 1] == bound { node + 1 } else { node / 2 };
        }
        while node < leaves {
            node = 2 * node + usize::from(tree[2 * node] != bound);
        }
        debug_assert!(tree[node] == bound, "node {node} is not the least");
        Some(((node - leaves) as u32, bound))
    }

    /// The candidate of a group with the fewest live pages.
    fn fewest(&self, bank: u32, group: u32, live: Live<'_>) -> Option<Choice> {
        let first = group * self.stripe;
        let rows = (first..self.blocks.min(first + self.stripe)).step_by(self.banks.units() as usize);
        let blocks = rows.flat_map(|row| self.banks.units_of(bank).map(move |unit| BlockId(row + unit)));
        let candidates = blocks.filter(|block| block.0 < self.blocks);
        candidates
            .filter_map(|block| live(block).map(|valid| Choice { block, valid }))
            .min_by_key(|choice| (choice.valid, choice.block))
    }
}

impl Victim for Tournament {
    #[inline]
    fn closed(&mut self, _: &mut Links, block: BlockId, valid: u32) {
        self.fall(block, valid);
    }

    #[inline]
    fn page_died(&mut self, _: &mut Links, block: BlockId, valid: u32) {
        self.fall(block, valid);
    }

    fn pick(&mut self, _: &mut Links, bank: u32, live: Live<'_>) -> Option<Choice> {
        loop {
            let (group, bound) = self.least(bank)?;
            let choice = self.fewest(bank, group, live);
            match choice {
                Some(Choice { valid, .. }) if valid.min(u32::from(NONE) - 1) <= u32::from(bound) => return choice,
                Some(Choice { valid, .. }) => self.rise(bank, group, valid.min(u32::from(NONE) - 1) as u16),
                None => self.rise(bank, group, NONE),
            }
        }
    }

    #[inline]
    fn removed(&mut self, _: &mut Links, block: BlockId) {
        let next = self.group_of(block) + 1;
        let is_last = next * self.stripe >= self.blocks;
        self.turns[self.banks.of(block) as usize] = if is_last { 0 } else { next };
    }

    fn ram_bytes(&self) -> u64 {
        (self.bounds.capacity() * size_of::<u16>() + self.turns.capacity() * size_of::<u32>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device of so many blocks of 100 pages, each with its live pages if it is a candidate.
    struct Device {
        links: Links,
        policy: Tournament,
        valid: Vec<Option<u32>>,
        state: u32,
    }

    impl Device {
        fn new(blocks: u32, banks: Banks) -> Self {
            let (links, policy) = (Links::new(blocks), Tournament::new(blocks, banks));
            Self { links, policy, valid: alloc::vec![None; blocks as usize], state: 7 }
        }

        fn random(&mut self, below: u32) -> u32 {
            self.state = self.state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (self.state >> 8) % below
        }

        /// Closes a block, has a page of it die, or removes it.
        fn step(&mut self) {
            let block = BlockId(self.random(self.valid.len() as u32));
            let dies = self.random(9) > 0;
            match self.valid[block.index()] {
                None => {
                    let valid = self.random(101);
                    self.valid[block.index()] = Some(valid);
                    self.policy.closed(&mut self.links, block, valid);
                }
                Some(valid) if valid > 0 && dies => {
                    self.valid[block.index()] = Some(valid - 1);
                    self.policy.page_died(&mut self.links, block, valid - 1);
                }
                Some(_) => {
                    self.valid[block.index()] = None;
                    self.policy.removed(&mut self.links, block);
                }
            }
        }
    }

    #[test]
    fn a_pick_has_the_fewest_live_pages_of_its_bank() {
        for (blocks, banks) in [(1, Banks::ONE), (1000, Banks::ONE), (777, Banks::new(7, 3)), (300, Banks::new(150, 2))]
        {
            let mut device = Device::new(blocks, banks);
            for _ in 0..20_000 {
                device.step();
                for bank in 0..banks.count() {
                    let of_bank = (0..blocks).map(BlockId).filter(|block| banks.of(*block) == bank);
                    let fewest = of_bank.filter_map(|block| device.valid[block.index()]).min();
                    let valid = &device.valid;
                    let picked = device.policy.pick(&mut device.links, bank, &|block| valid[block.index()]);
                    assert_eq!(picked.map(|choice| choice.valid), fewest);
                    assert!(picked.is_none_or(|choice| {
                        banks.of(choice.block) == bank && valid[choice.block.index()] == Some(choice.valid)
                    }));
                }
            }
        }
    }

    /// Blocks with equal counts are picked in turn, group by group.
    #[test]
    fn equals_take_turns() {
        let mut device = Device::new(4 * GROUP, Banks::ONE);
        for block in (0..4 * GROUP).map(BlockId) {
            device.valid[block.index()] = Some(5);
            device.policy.closed(&mut device.links, block, 5);
        }
        for round in 0..3 {
            for group in 0..4 {
                let valid = &device.valid;
                let picked = device.policy.pick(&mut device.links, 0, &|block| valid[block.index()]);
                assert_eq!(picked, Some(Choice { block: BlockId(group * GROUP + round), valid: 5 }));
                device.policy.removed(&mut device.links, BlockId(group * GROUP + round));
                device.valid[(group * GROUP + round) as usize] = None;
            }
        }
    }

    #[test]
    fn it_takes_a_hundredth_of_the_ram() {
        let blocks = 1 << 16;
        let mut links = Links::new(blocks);
        let tournament = (ENTRY.make)(&mut links, 128, Banks::ONE).ram_bytes() + links.ram_bytes();
        let greedy = (super::super::greedy::ENTRY.make)(&mut links, 128, Banks::ONE).ram_bytes() + links.ram_bytes();
        assert!(100 * tournament < greedy, "{tournament} B, greedy {greedy} B");
    }
}
