//! Blocks that a recovery may still have to read.

use alloc::vec::Vec;
use nand::BlockId;

/// Blocks that must not be erased until the validity store has made its reports durable (GeckoFTL,
/// C.2.2).
#[derive(Debug, Default)]
pub struct Pins {
    blocks: Vec<BlockId>,
    flushes: u64,
}

impl Pins {
    /// Room for as many blocks as may hold metadata.
    #[must_use]
    pub fn with_capacity(blocks: u32) -> Self {
        Self { blocks: Vec::with_capacity(blocks as usize), flushes: 0 }
    }

    /// Forgets pins that a flush of the store, the `flushes`-th, has made needless.
    fn refresh(&mut self, flushes: u64) {
        if flushes != self.flushes {
            self.blocks.clear();
            self.flushes = flushes;
        }
    }

    /// Pins a block until the store's next flush after its `flushes`-th.
    pub fn pin(&mut self, block: BlockId, flushes: u64) {
        self.refresh(flushes);
        if !self.blocks.contains(&block) {
            self.blocks.push(block);
        }
    }

    /// Forgets every pin: the store has nothing left that is not durable.
    pub fn clear(&mut self) {
        self.blocks.clear();
    }

    /// Whether a block is pinned after the store's `flushes`-th flush.
    pub fn holds(&mut self, block: BlockId, flushes: u64) -> bool {
        self.refresh(flushes);
        self.blocks.contains(&block)
    }

    /// Bytes of RAM held.
    #[must_use]
    pub fn ram_bytes(&self) -> u64 {
        (self.blocks.capacity() * size_of::<BlockId>()) as u64
    }
}
