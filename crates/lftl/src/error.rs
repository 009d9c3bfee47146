//! Why the engine could not do as asked.

use nand::{Lpn, NandError};

/// Too few blocks of the card are good to write to it. Data stays readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "read-only: no block can be freed to write to, {bad_blocks} of {blocks} blocks are bad and {needed} good ones are \
     needed; data stays readable, copy it to another device"
)]
pub struct Shortage {
    /// Blocks retired, or failed and waiting for that.
    pub bad_blocks: u32,
    /// Blocks of the card.
    pub blocks: u32,
    /// Good blocks needed for a disk of this size.
    pub needed: u32,
}

/// Why the engine could not do as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LftlError {
    /// The range lies outside the disk; nothing was done.
    #[error("{bytes} B at byte {at} of {lpn} lie outside the disk of {logical_pages} pages")]
    OutOfRange {
        /// The logical page.
        lpn: Lpn,
        /// First byte within the page.
        at: usize,
        /// Length in bytes.
        bytes: usize,
        /// Logical pages of the disk.
        logical_pages: u32,
    },
    /// The engine cannot be made so; nothing was written.
    #[error("lftl cannot be built on this card: {reason}")]
    Unsupported {
        /// What is missing and what to change.
        reason: String,
    },
    /// The card holds no disk of this engine, or another one than was asked for.
    #[error("the card cannot be mounted: {reason}")]
    NotMountable {
        /// What was found.
        reason: String,
    },
    /// No block can be freed. From then on the disk can only be read.
    #[error(transparent)]
    NoSpace(#[from] Shortage),
    /// Sectors of a page are lost: their only copy became uncorrectable.
    #[error("sectors of {lpn} are lost (mask {sectors:#x}); writing them again makes them readable")]
    Lost {
        /// The logical page.
        lpn: Lpn,
        /// The lost ones among the sectors that were asked for, one bit each.
        sectors: u32,
    },
    /// The devices are of another kind than they were taken for.
    #[error("a device of the card is no `{wanted}`")]
    OtherKind {
        /// The name of the type that was asked for.
        wanted: &'static str,
    },
    /// The device failed.
    #[error(transparent)]
    Nand(#[from] NandError),
    /// The engine failed before, and takes no writes until it is mounted again.
    #[error("no more writes are taken: {reason}")]
    Failed {
        /// What happened then.
        reason: String,
    },
}
