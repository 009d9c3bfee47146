//! Reuse distances: how many distinct pages are written between two writes of a page.
//!
//! A Fenwick tree over time holds a 1 at the last write of each page; the distance is the sum after
//! the page's last write (Bennett and Kruskal, IBM J. R&D 1975). Time is renumbered when it runs
//! out, so that the tree has twice as many places as there are pages however long the trace: O(n
//! log pages) time, O(pages) memory.

use std::collections::BTreeMap;

/// Streams page numbers, collects distances.
pub(super) struct Reuse {
    tree: Vec<u32>,
    last: Vec<u32>,
    now: usize,
    live: u32,
    /// Exact below 256, then in 1/16 octaves: distance (lower bound of its bin) to count.
    pub(super) bins: BTreeMap<u64, u64>,
}

const NEVER: u32 = u32::MAX;

impl Reuse {
    /// For page numbers below `pages`.
    pub(super) fn new(pages: usize) -> Self {
        let places = (pages * 2).max(16);
        Reuse { tree: vec![0; places + 1], last: vec![NEVER; pages], now: 0, live: 0, bins: BTreeMap::new() }
    }

    /// A write of `page`.
    pub(super) fn touch(&mut self, page: usize) {
        if self.now + 1 == self.tree.len() {
            self.renumber();
        }
        match self.last[page] {
            NEVER => self.live += 1,
            at => {
                let distance = u64::from(self.live - self.sum(at as usize + 1));
                *self.bins.entry(bin(distance)).or_default() += 1;
                self.add(at as usize, u32::MAX);
            }
        }
        self.last[page] = self.now as u32;
        self.add(self.now, 1);
        self.now += 1;
    }

    fn add(&mut self, at: usize, by: u32) {
        let mut i = at + 1;
        while i < self.tree.len() {
            self.tree[i] = self.tree[i].wrapping_add(by);
            i += i & i.wrapping_neg();
        }
    }

    /// Ones at places below `end`.
    fn sum(&self, end: usize) -> u32 {
        let (mut i, mut sum) = (end, 0u32);
        while i > 0 {
            sum = sum.wrapping_add(self.tree[i]);
            i &= i - 1;
        }
        sum
    }

    fn renumber(&mut self) {
        let mut order: Vec<usize> = (0..self.last.len()).filter(|&p| self.last[p] != NEVER).collect();
        order.sort_unstable_by_key(|&p| self.last[p]);
        self.tree.fill(0);
        for (place, &page) in order.iter().enumerate() {
            self.last[page] = place as u32;
            self.add(place, 1);
        }
        self.now = order.len();
    }
}

fn bin(distance: u64) -> u64 {
    match distance {
        0..256 => distance,
        _ => {
            let shift = 63 - distance.leading_zeros() - 4;
            distance >> shift << shift
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_match_a_list() {
        let mut reuse = Reuse::new(50);
        let (mut stack, mut expected) = (Vec::<usize>::new(), BTreeMap::<u64, u64>::new());
        let mut rng = crate::pick::Rng::new(3, 0);
        for _ in 0..5000 {
            let page = rng.below(50).min(rng.below(50)) as usize;
            reuse.touch(page);
            if let Some(depth) = stack.iter().rev().position(|p| *p == page) {
                *expected.entry(depth as u64).or_default() += 1;
                stack.retain(|p| *p != page);
            }
            stack.push(page);
        }
        assert_eq!(reuse.bins, expected);
    }
}
