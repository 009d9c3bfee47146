//! What an FTL shows of itself at one moment.

use ftl::inspect::{BlockView, Inspector, LevelView, RunView, StreamView};
use ftl::{Ftl, RamReport};
use nand::{Nand, Ppn};

/// A snapshot of what [`Ftl::inspect`] and [`Ftl::ram`] say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Every block.
    pub blocks: Vec<BlockView>,
    /// Write points.
    pub streams: Vec<StreamView>,
    /// Caches and buffers.
    pub levels: Vec<LevelView>,
    /// Runs, oldest first.
    pub runs: Vec<RunView>,
    /// Live pages of metadata.
    pub metadata: Vec<Ppn>,
    /// RAM by structure.
    pub ram: RamReport,
    /// Blocks that can be programmed at once.
    pub free_blocks: u32,
}

impl Seen {
    /// Looks at an FTL.
    pub fn of<N: Nand>(ftl: &dyn Ftl<N>) -> Self {
        let mut seen = Self { ram: ftl.ram(), free_blocks: ftl.free_blocks(), ..Self::default() };
        ftl.inspect(&mut seen);
        seen
    }

    /// The structure in RAM of this name.
    pub fn level(&self, name: &str) -> Option<&LevelView> {
        self.levels.iter().find(|level| level.name == name)
    }
}

impl Inspector for Seen {
    fn block(&mut self, view: BlockView) {
        self.blocks.push(view);
    }

    fn stream(&mut self, view: StreamView) {
        self.streams.push(view);
    }

    fn level(&mut self, view: LevelView) {
        self.levels.push(view);
    }

    fn run(&mut self, view: RunView) {
        self.runs.push(view);
    }

    fn metadata(&mut self, ppn: Ppn) {
        self.metadata.push(ppn);
    }
}
