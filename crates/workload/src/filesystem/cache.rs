//! The page cache: data in memory, some of it not yet written.

use super::bits::Bits;
use std::collections::BTreeMap;

/// Of the cache, so much is dirty before all that is dirty is written: 1 / 5, as `vm.dirty_ratio`.
const DIRTY: u64 = 5;

/// Which blocks are in memory. What was not used since a hand last passed leaves first.
pub(super) struct PageCache {
    held: Bits,
    /// Used since the hand passed.
    used: Bits,
    hand: u32,
    blocks: u32,
    /// Blocks that it holds at most; 0 for no cache.
    capacity: u64,
    /// Blocks that are not written yet, and the operation until which they may wait.
    dirty: BTreeMap<u32, u64>,
}

impl PageCache {
    /// Of at most `capacity` of so many blocks.
    pub(super) fn new(blocks: u64, capacity: u64) -> Self {
        let bits = || Bits::new(if capacity > 0 { blocks } else { 0 });
        Self { held: bits(), used: bits(), hand: 0, blocks: blocks as u32, capacity, dirty: BTreeMap::new() }
    }

    /// Whether a block is in memory. If there is a cache it is from now on.
    pub(super) fn hit(&mut self, block: u32) -> bool {
        if self.capacity == 0 {
            return false;
        }
        self.used.take(block);
        let held = !self.held.take(block);
        if !held {
            self.shrink();
        }
        held
    }

    /// Takes new data for a block, which may wait until operation `until`; false without a cache.
    pub(super) fn put(&mut self, block: u32, until: u64) -> bool {
        self.hit(block);
        if self.capacity > 0 {
            self.dirty.entry(block).and_modify(|at| *at = until.min(*at)).or_insert(until);
        }
        self.capacity > 0
    }

    /// A block was freed; its data need not be written.
    pub(super) fn forget(&mut self, block: u32) {
        self.dirty.remove(&block);
        self.used.clear(block);
        self.held.clear(block);
    }

    /// Whether so much is dirty that it has to be written.
    pub(super) fn must_write(&self) -> bool {
        self.dirty.len() as u64 > self.capacity / DIRTY
    }

    /// The blocks that cannot wait any longer, by address; all if too much is dirty. They are clean
    /// from now on.
    pub(super) fn take_due(&mut self, operation: u64) -> Vec<u32> {
        let all = self.must_write();
        let due: Vec<u32> =
            self.dirty.iter().filter(|(_, until)| all || **until <= operation).map(|(block, _)| *block).collect();
        for block in &due {
            self.dirty.remove(block);
        }
        due
    }

    /// Lets clean blocks go while there are too many. Two rounds of the hand find one if any is
    /// clean.
    fn shrink(&mut self) {
        let mut steps = 2 * u64::from(self.blocks);
        while u64::from(self.blocks) - self.held.free > self.capacity && steps > 0 {
            let at = self.hand;
            self.hand = (at + 1) % self.blocks;
            if self.held.has(at) && !self.used.clear(at) && !self.dirty.contains_key(&at) {
                self.held.clear(at);
            }
            steps -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_leaves_first_and_dirty_data_stays() {
        let mut cache = PageCache::new(1000, 10);
        assert!((0..10).all(|block| !cache.hit(block)), "nothing is held at first");
        assert!((0..10).all(|block| cache.hit(block)), "all of it fits");
        assert!(cache.put(0, 7) && !cache.must_write());
        for block in 500..600 {
            cache.hit(block);
            assert!(cache.hit(0), "dirty data stays until it is written");
            assert_eq!(1000 - cache.held.free, 10);
        }
        assert!(!cache.hit(5));
        assert!(cache.put(1, 9) && cache.put(0, 9));
        assert_eq!(cache.take_due(6), []);
        assert_eq!(cache.take_due(7), [0], "what waits longest does not wait longer for new data");
        cache.forget(1);
        assert!(!cache.hit(1), "a freed block is not held");
        assert_eq!(cache.take_due(100), [], "and not written");
        assert!(cache.put(4, 50) && cache.put(3, 50) && !cache.must_write() && cache.put(2, 50) && cache.must_write());
        assert_eq!(cache.take_due(10), [2, 3, 4], "too much is dirty");
    }

    #[test]
    fn without_a_cache_nothing_is_held_or_waits() {
        let mut cache = PageCache::new(1000, 0);
        assert!(!cache.put(3, 0) && !cache.hit(3) && !cache.must_write());
        assert_eq!(cache.take_due(1), []);
    }
}
