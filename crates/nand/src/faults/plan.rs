//! What is to go wrong, as data: the same plan over the same operations goes wrong the same way.

use crate::addr::{BlockId, Ppn};
use alloc::vec::Vec;

/// What an operation interrupted by a power cut leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CutOutcome {
    /// Everything is as before.
    NotDone,
    /// The operation was complete, but nobody was told.
    Done,
    /// The page cannot be read.
    Torn,
    /// The spare area reads well, the data cannot be read.
    TornData,
    /// The page reads well once, and then no more.
    TornOnce,
    /// The page reads as erased, yet may not be programmed.
    Weak,
    /// The page cannot be read, nor the pages programmed earlier in the same word line.
    PartnerLost,
    /// Each page of the block reads as it did, not at all, as erased, or with its spare area alone if that could be read
    /// before, as the seed decides; none may be programmed before the block is erased again.
    HalfErased,
}

impl CutOutcome {
    /// Every outcome, for exhaustive schedules.
    pub const ALL: [Self; 8] = [
        Self::NotDone,
        Self::Done,
        Self::Torn,
        Self::TornData,
        Self::TornOnce,
        Self::Weak,
        Self::PartnerLost,
        Self::HalfErased,
    ];
}

/// A power cut in the middle of an operation.
///
/// An outcome that the operation cannot have becomes the nearest that it can: an erase cut short
/// is [`CutOutcome::HalfErased`] unless not done or done, a program of `HalfErased` is torn, a spare area half programmed
/// again has some of its bits cleared, a mark of a bad block is there or not as the seed decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Which operation, counted from 0 over the life of the [`crate::Faulty`] device.
    pub at: u64,
    /// What it leaves.
    pub outcome: CutOutcome,
}

/// What is wrong with a page until its block is erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Blemish {
    /// Nothing can be read.
    Unreadable,
    /// The spare area can be read, the data cannot.
    DataUnreadable,
    /// The next read answers well, those after it fail.
    Fading,
    /// Reads as erased.
    Blank,
    /// So many bits are wrong: corrected as far as [`FaultPlan::correctable_bits`] goes.
    BitFlips(u32),
}

/// Which pages share cells, so that a torn program may take earlier pages with it.
///
/// Pages come in groups of `bits_per_cell × distance`; within a group, pages `distance` apart share
/// a word line. With 2 bits and a distance of 4: 0 with 4, 1 with 5, …, 8 with 12.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Pairing {
    /// Pages that share a word line; 1 for none.
    pub bits_per_cell: u32,
    /// How far apart in the block they are.
    pub distance: u32,
}

impl Pairing {
    /// No page endangers another (single-level cells).
    pub const NONE: Self = Self { bits_per_cell: 1, distance: 1 };

    /// The pages before `offset` in its block that share its word line.
    pub fn partners(self, offset: u32) -> impl Iterator<Item = u32> {
        let distance = self.distance.max(1);
        let group = distance.saturating_mul(self.bits_per_cell.max(1));
        let level = offset % group / distance;
        (1..=level).map(move |up| offset - up * distance)
    }
}

/// What is to go wrong with a device.
///
/// Operations are counted from 0: programs (copies are programs), erases, spare areas programmed
/// again and marks of bad blocks, also reads if `count_reads`. Illegal operations count as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultPlan {
    /// Decides what the outcomes leave open.
    pub seed: u64,
    /// Whether reads are operations at which power can be cut.
    pub count_reads: bool,
    /// Power cuts, in any order.
    pub cuts: Vec<Cut>,
    /// Which pages a torn program endangers.
    pub pairing: Pairing,
    /// How many wrong bits a page the ECC corrects.
    pub correctable_bits: u32,
    /// Operations that fail if they program a page.
    pub failing_programs: Vec<u64>,
    /// Operations that fail if they erase a block.
    pub failing_erases: Vec<u64>,
    /// Pages whose every program fails.
    pub failing_pages: Vec<Ppn>,
    /// Blocks whose every erase fails.
    pub failing_blocks: Vec<BlockId>,
    /// Pages that cannot be read whenever they are programmed.
    pub unreadable_pages: Vec<Ppn>,
    /// Pages with so many wrong bits whenever they are programmed.
    pub bit_flips: Vec<(Ppn, u32)>,
    /// After so many pages read of a block, each of its pages has one more wrong bit, until it is erased; `None` if reading
    /// does no harm.
    pub reads_per_flip: Option<u32>,
    /// Blocks that the factory marked bad.
    pub factory_bad: Vec<BlockId>,
}

impl Default for FaultPlan {
    /// Nothing goes wrong.
    fn default() -> Self {
        Self {
            seed: 0,
            count_reads: false,
            cuts: Vec::new(),
            pairing: Pairing::NONE,
            correctable_bits: 8,
            failing_programs: Vec::new(),
            failing_erases: Vec::new(),
            failing_pages: Vec::new(),
            failing_blocks: Vec::new(),
            unreadable_pages: Vec::new(),
            bit_flips: Vec::new(),
            reads_per_flip: None,
            factory_bad: Vec::new(),
        }
    }
}

impl FaultPlan {
    /// One power cut, nothing else.
    #[must_use]
    pub fn cut(at: u64, outcome: CutOutcome) -> Self {
        Self { cuts: Vec::from([Cut { at, outcome }]), ..Self::default() }
    }

    pub(super) fn cut_at(&self, op: u64) -> Option<CutOutcome> {
        self.cuts.iter().find(|cut| cut.at == op).map(|cut| cut.outcome)
    }

    /// A number that depends on the seed, the operation and the item within it, and on nothing else.
    pub(super) fn roll(&self, op: u64, item: u64) -> u64 {
        // SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
        let mut z = self.seed ^ op.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ item.wrapping_mul(0xD1B5_4A32_D192_ED03);
        z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }
}
