//! What an FTL shows of its structures to somebody who watches: [`crate::Ftl::inspect`].
//!
//! An FTL hands out one thing at a time, so that nothing is allocated and nothing changes. It shows
//! what it has: an FTL without runs shows none.

use nand::{BlockId, Ppn};

/// What an FTL uses a block for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockUse {
    /// Erased and ready.
    Free,
    /// Host data, mapped by page.
    Host,
    /// The data block of a logical block: its pages lie at their offsets.
    Data,
    /// A log block: pages in the order of their arrival.
    Log,
    /// Pages of the mapping table.
    Translation,
    /// Pages of a page-validity store.
    Validity,
    /// Saved state of the maps.
    Checkpoint,
    /// Retired.
    Bad,
}

impl BlockUse {
    /// The name used in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Host => "host data",
            Self::Data => "data block",
            Self::Log => "log block",
            Self::Translation => "translation",
            Self::Validity => "validity",
            Self::Checkpoint => "checkpoint",
            Self::Bad => "bad",
        }
    }
}

/// A block as the FTL sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockView {
    /// The block.
    pub block: BlockId,
    /// What it is used for.
    pub used_for: BlockUse,
    /// Pages that count as live. The FTL may not have heard yet that one of them died.
    pub live: u32,
}

/// A write point: the block that a lane of a stream fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamView {
    /// The stream's number; streams of host data come first.
    pub stream: u32,
    /// What goes there.
    pub used_for: BlockUse,
    /// The block, or [`BlockId::NONE`] if the next write opens one.
    pub block: BlockId,
}

/// How full a structure of bounded size in RAM is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelView {
    /// The structure, named as in [`crate::Ftl::ram`].
    pub name: &'static str,
    /// Entries that it holds.
    pub entries: u32,
    /// Entries for which it has room.
    pub capacity: u32,
    /// Entries that are newer than what flash says.
    pub dirty: u32,
}

/// A sorted run of a log-structured merge tree in flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunView {
    /// Its number; younger runs have larger ones.
    pub number: u64,
    /// Its level.
    pub level: u32,
    /// Entries in it.
    pub entries: u32,
    /// Pages that it takes.
    pub pages: u32,
}

/// Takes what an FTL shows. A method that is not implemented ignores what it is handed.
pub trait Inspector {
    /// A block; they come in the order of their numbers, and all of them come.
    fn block(&mut self, view: BlockView) {
        let _ = view;
    }

    /// A write point.
    fn stream(&mut self, view: StreamView) {
        let _ = view;
    }

    /// A structure of bounded size in RAM.
    fn level(&mut self, view: LevelView) {
        let _ = view;
    }

    /// A run; they come from the oldest to the youngest.
    fn run(&mut self, view: RunView) {
        let _ = view;
    }

    /// A live page of metadata to which a directory in RAM leads.
    fn metadata(&mut self, ppn: Ppn) {
        let _ = ppn;
    }
}
