//! The flash operations that the FTL did for one page of a request, and where they are.

use super::Token;
use super::unit::Turn;
use ftl::{Op, OpKind};
use nand::BlockId;
use std::ops::Range;

/// A flash operation of a strand, and how many erases of its block came before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) op: Op,
    pub(super) epoch: u32,
    pub(super) ended: bool,
}

impl Step {
    /// Whether it is part of a pass of a collector, and of no section.
    pub(super) const fn collects(&self) -> bool {
        matches!(self.op.kind, OpKind::Copy | OpKind::Erase) && self.op.branch.section == 0
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Strand {
    pub(super) steps: Vec<Step>,
    pub(super) next: usize,
    pub(super) running: u32,
    /// Erases of this step that wait for copies out of their block.
    pub(super) erases: Vec<Waiting>,
    /// The section under way; empty if there is none.
    pub(super) section: Range<usize>,
    /// Of the section, the first copy that has not ended, or the end.
    pub(super) first_copy: usize,
    /// Of the section, operations that wait for another branch.
    pub(super) held: Vec<u32>,
    pub(super) token: Token,
    pub(super) background: bool,
    /// A request waits for one of its erases.
    pub(super) hurried: bool,
    /// Of a read that fetches a mapping entry, the operation after that; 0 once it was fetched.
    pub(super) fetched_at: usize,
    /// The logical page of that entry.
    pub(super) fetches: u32,
    /// Strands that wait for the entry.
    pub(super) behind: Vec<u32>,
    /// How long the channel is held for a page that the host reads.
    pub(super) host_transfer: u64,
}

impl Strand {
    /// When the die of one of its operations comes to it.
    pub(super) const fn turn(&self, urgent: bool) -> Turn {
        if urgent || self.hurried {
            Turn::First
        } else if self.background {
            Turn::Last
        } else {
            Turn::InOrder
        }
    }
}

/// An erase, and how many copies it waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) block: BlockId,
    pub(super) copies: u32,
}
