//! The journal: which metadata is committed to it and not yet in place.

use super::bits::Region;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a commit has beside the metadata: a descriptor and a commit block.
const FRAME: u64 = 2;

/// A commit that the journal holds.
struct Commit {
    /// Blocks of the journal.
    blocks: u64,
    /// The operation after which it came.
    at: u64,
}

/// A ring of commits. One leaves when each of its blocks is in place or was committed again.
pub(super) struct Journal {
    region: Region,
    next: u64,
    used: u64,
    /// From the oldest on.
    commits: VecDeque<Commit>,
    /// Number of the oldest.
    oldest: u64,
    /// Blocks not yet in place, and the number of the last commit of each.
    waiting: BTreeMap<u32, u64>,
}

impl Journal {
    pub(super) fn new(region: Region) -> Self {
        Self { region, next: 0, used: 0, commits: VecDeque::new(), oldest: 0, waiting: BTreeMap::new() }
    }

    /// Blocks of it; 0 for no journal.
    pub(super) fn blocks(&self) -> u64 {
        self.region.len()
    }

    /// Whether so much is dirty that a commit cannot wait: a third of the journal, as in
    /// Linux 6.18.
    pub(super) fn must_commit(&self, dirty: usize) -> bool {
        self.blocks() > 0 && dirty as u64 + FRAME >= self.blocks() / 3
    }

    /// Whether a commit of these blocks would fit.
    pub(super) fn fits(&self, dirty: usize) -> bool {
        self.used + dirty as u64 + FRAME <= self.blocks()
    }

    /// Commits these blocks, which are clean then, and gives the blocks of the journal that it
    /// took.
    pub(super) fn commit(&mut self, dirty: &mut BTreeSet<u32>, at: u64) -> Vec<u32> {
        let blocks = dirty.len() as u64 + FRAME;
        let number = self.oldest + self.commits.len() as u64;
        self.commits.push_back(Commit { blocks, at });
        self.used += blocks;
        while let Some(block) = dirty.pop_first() {
            self.waiting.insert(block, number);
        }
        let first = self.next;
        self.next = (first + blocks) % self.blocks();
        (first..first + blocks).filter_map(|place| self.region.block(place % self.blocks())).collect()
    }

    /// Whether the oldest commit came after this operation or before.
    pub(super) fn older_than(&self, operation: u64) -> bool {
        self.commits.front().is_some_and(|commit| commit.at <= operation)
    }

    /// Lets the oldest commit go, and gives the blocks that have to be written in place for it.
    pub(super) fn retire(&mut self) -> Option<Vec<u32>> {
        let commit = self.commits.pop_front()?;
        self.used -= commit.blocks;
        let number = self.oldest;
        self.oldest += 1;
        let due: Vec<u32> = self.waiting.iter().filter(|(_, last)| **last == number).map(|(block, _)| *block).collect();
        for block in &due {
            self.waiting.remove(block);
        }
        Some(due)
    }

    #[cfg(test)]
    pub(super) fn contains(&self, block: u32) -> bool {
        self.region.contains(block)
    }
}
