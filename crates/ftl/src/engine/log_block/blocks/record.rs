//! What is kept in RAM for every block of a device under block mapping.

use super::Role;

/// The record of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) erase_count: u32,
    /// Erases of the device when it was last erased.
    pub(super) erased_at: u32,
    /// The logical block that it belongs to; [`u32::MAX`] if it is shared.
    pub(super) owner: u32,
    /// Of a log block, its slot in the page map; of a block of a page-mapped area, its place in the
    /// order in which blocks with room are written.
    pub(super) slot: u32,
    pub(super) next: u16,
    pub(super) valid: u16,
    pub(super) role: Role,
    pub(super) contents: Contents,
    pub(super) history: History,
    /// Stands with the victim policy.
    pub(super) candidate: bool,
}

/// What is known of the pages programmed in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Contents {
    /// Every page holds the page of the same offset of the owner.
    Aligned,
    /// Some page does not.
    Mixed,
    /// A program failed: nothing more is written to it, and it is retired once it is empty.
    Failed,
}

/// What happened to a block since power came on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum History {
    /// It was erased, and everything in it programmed since.
    Seen,
    /// Free, but nobody saw it being erased: a program or an erase of it may have been cut short.
    Untrusted,
    /// In use since before the last mount: what a checkpoint said of it was not all looked at.
    Restored,
}

/// The contents of a block in which each page programmed is that of its place, or is not.
pub(super) const fn contents(aligned: bool) -> Contents {
    if aligned { Contents::Aligned } else { Contents::Mixed }
}
