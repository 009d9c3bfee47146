//! Reading everything once: what recovery needs to count the dead pages of every block (Appendix C,
//! step 5).

use super::Gecko;
use super::directory::Directory;
use super::merge::{Merger, Sink, Sources};
use super::shape::{Shape, add_word};
use crate::contract::FtlError;
use crate::flash::Purpose;
use crate::validity::{MetaStore, PageSet};
use nand::BlockId;

/// Gathers the entries of a block.
struct Gather<'a, F> {
    shape: &'a Shape,
    block: Option<BlockId>,
    dead: PageSet,
    each: F,
}

impl<F: FnMut(BlockId, &PageSet)> Gather<'_, F> {
    /// Hands over the block gathered so far and begins the next.
    fn turn_to(&mut self, next: Option<BlockId>) {
        if let Some(block) = self.block.filter(|_| self.dead.count() > 0) {
            (self.each)(block, &self.dead);
        }
        self.dead.clear();
        self.block = next;
    }
}

impl<S, F: FnMut(BlockId, &PageSet)> Sink<S> for Gather<'_, F> {
    fn entry(&mut self, _: &mut S, _: &mut Directory, key: u32, bitmap: &[u64]) -> Result<(), FtlError> {
        let block = BlockId(key >> 1 >> self.shape.part_bits);
        if self.block != Some(block) {
            debug_assert!(self.block.is_none_or(|before| before < block), "entries of {block} are apart");
            self.turn_to(Some(block));
        }
        let part = (key >> 1) - self.shape.first_id(block);
        debug_assert!(part < self.shape.partitions);
        let start = (part * self.shape.chunk) as usize;
        for (index, &word) in bitmap.iter().enumerate() {
            add_word(self.dead.words_mut(), start + 64 * index, word);
        }
        Ok(())
    }
}

impl Gecko {
    /// Calls `each` with every block that has dead pages, in ascending order, and those pages.
    /// Reads every live page once.
    ///
    /// Allocates; meant for recovery and checks.
    ///
    /// # Errors
    /// Those of the device; `each` has then been called for some blocks.
    pub fn for_each_block<S: MetaStore>(
        &mut self,
        store: &mut S,
        purpose: Purpose,
        each: impl FnMut(BlockId, &PageSet),
    ) -> Result<(), FtlError> {
        let runs = self.directory.runs().len();
        let mut wider = (runs > self.merger.ways() || self.spread.is_some()).then(|| Merger::new(&self.shape, runs));
        let merger = wider.as_mut().unwrap_or(&mut self.merger);
        self.buffer.sort();
        let sources = Sources { shape: &self.shape, buffer: Some(&self.buffer), runs, purpose };
        let dead = PageSet::new(self.shape.pages_per_block);
        let mut gather = Gather { shape: &self.shape, block: None, dead, each };
        merger.merge(store, &mut self.directory, &sources, &mut gather)?;
        gather.turn_to(None);
        Ok(())
    }
}
