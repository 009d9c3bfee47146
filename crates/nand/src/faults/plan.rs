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
    /// One look at the page succeeds, of whatever part. Every later look fails.
    TornOnce,
    /// The page reads as erased, yet may not be programmed.
    Weak,
    /// The page cannot be read, nor the pages programmed earlier in the same word line.
    PartnerLost,
    /// Each page of the block reads as it did, not at all, as erased, or with its spare area alone
    /// if that could be read before, as the seed decides; none may be programmed before the block
    /// is erased again.
    HalfErased,
    /// The spare area reads well for ever. `n` reads of the data succeed, every later one fails.
    Fading(u8),
    /// `n` looks at the page succeed, of whatever part. Every later look fails.
    Vanishing(u8),
    /// The spare area reads well for ever. Each read of the data succeeds or fails by chance.
    Flaky,
    /// Each look at the page succeeds or fails by chance, of whatever part.
    FlakyWhole,
    /// The spare area reads as a well-formed one that nobody wrote. The data cannot be read.
    Garbage,
    /// As [`CutOutcome::HalfErased`]; pages that can be read may also fade, be flaky, or have a
    /// spare area that nobody wrote.
    HalfErasedOddly,
    /// The operation was a read.
    Reading,
    /// Each page of the block reads as it did, as erased, or well a few times and then no more, as
    /// the seed decides: nothing tells at first that the block is half erased.
    HalfErasedQuietly,
    /// The spare area reads as what was programmed, but for a field that gives it away, and perhaps
    /// the auxiliary bits: a tag beyond the device's pages, other wear than the block's, or a
    /// number that no program took. The data cannot be read.
    Altered,
    /// `n` looks at the page succeed, of whatever part. It reads as erased from then on.
    Paling(u8),
    /// As [`CutOutcome::HalfErasedQuietly`]; pages may also read as [`CutOutcome::Altered`].
    HalfErasedFalsely,
}

impl CutOutcome {
    /// Every outcome, for exhaustive schedules. The order is part of replay ids: new ones come
    /// last.
    pub const ALL: [Self; 24] = [
        Self::NotDone,
        Self::Done,
        Self::Torn,
        Self::TornData,
        Self::TornOnce,
        Self::Weak,
        Self::PartnerLost,
        Self::HalfErased,
        Self::Fading(1),
        Self::Fading(2),
        Self::Fading(3),
        Self::Fading(4),
        Self::Vanishing(2),
        Self::Vanishing(4),
        Self::Flaky,
        Self::FlakyWhole,
        Self::Garbage,
        Self::HalfErasedOddly,
        Self::Reading,
        Self::HalfErasedQuietly,
        Self::Altered,
        Self::Paling(2),
        Self::Paling(4),
        Self::HalfErasedFalsely,
    ];

    /// Those that leave nothing which fades or lies.
    pub const PLAIN: [Self; 8] = match Self::ALL.first_chunk() {
        Some(plain) => *plain,
        None => unreachable!(),
    };
}

/// A power cut in the middle of an operation.
///
/// An outcome that the operation cannot have becomes the nearest that it can: an erase cut short
/// is [`CutOutcome::HalfErased`] unless not done or done, a program of `HalfErased` or `Reading` is
/// torn. The seed decides which of the flags half set are set, and whether a mark of a bad block is
/// there.
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
    /// The spare area can be read. So can the data, `n` times more.
    Fading(u8),
    /// `n` more looks succeed, of whatever part.
    Vanishing(u8),
    /// The spare area can be read, the data by chance.
    Flaky,
    /// Every look succeeds or fails by chance.
    FlakyWhole,
    /// The spare area reads as one that nobody wrote. The data cannot be read.
    Garbage,
    /// As [`CutOutcome::Altered`].
    Altered,
    /// `n` more looks succeed, of whatever part. Then it reads as erased.
    Paling(u8),
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

    /// How many pages of its word line are programmed before the page at an offset in its block.
    #[must_use]
    pub fn page_type(self, offset: u32) -> u32 {
        let distance = self.distance.max(1);
        let group = distance.saturating_mul(self.bits_per_cell.max(1));
        let page_type = offset % group / distance;
        debug_assert!(page_type < self.bits_per_cell.max(1), "a word line has fewer pages");
        page_type
    }

    /// The pages before `offset` in its block that share its word line.
    pub fn partners(self, offset: u32) -> impl Iterator<Item = u32> {
        let distance = self.distance.max(1);
        let page_type = self.page_type(offset);
        debug_assert!(page_type * distance <= offset, "a partner before the block");
        (1..=page_type).map(move |up| offset - up * distance)
    }
}

/// What is to go wrong with a device.
///
/// Operations are counted from 0: programs (copies are programs), erases, settings of
/// flags and marks of bad blocks, also reads if `count_reads`. Illegal operations count as well.
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
    /// The first program from this operation on fails; then it is forgotten.
    pub next_failing_program: Option<u64>,
    /// The first erase from this operation on fails; then it is forgotten.
    pub next_failing_erase: Option<u64>,
    /// Pages whose every program fails.
    pub failing_pages: Vec<Ppn>,
    /// A failed program leaves a page in any state that a cut program can leave, as the seed
    /// decides; else one that cannot be read.
    pub odd_failures: bool,
    /// Blocks whose every erase fails.
    pub failing_blocks: Vec<BlockId>,
    /// Pages that cannot be read whenever they are programmed.
    pub unreadable_pages: Vec<Ppn>,
    /// Pages with so many wrong bits whenever they are programmed.
    pub bit_flips: Vec<(Ppn, u32)>,
    /// After so many pages read of a block, each of its pages has one more wrong bit, until it is
    /// erased; `None` if reading does no harm.
    pub reads_per_flip: Option<u32>,
    /// Blocks that the factory marked bad.
    pub factory_bad: Vec<BlockId>,
    /// A block is erased before it is marked bad, as Linux does it.
    pub marks_erase: bool,
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
            next_failing_program: None,
            next_failing_erase: None,
            failing_pages: Vec::new(),
            odd_failures: false,
            failing_blocks: Vec::new(),
            unreadable_pages: Vec::new(),
            bit_flips: Vec::new(),
            reads_per_flip: None,
            factory_bad: Vec::new(),
            marks_erase: false,
        }
    }
}

impl FaultPlan {
    /// One power cut, nothing else.
    #[must_use]
    pub fn cut(at: u64, outcome: CutOutcome) -> Self {
        Self { cuts: Vec::from([Cut { at, outcome }]), ..Self::default() }
    }

    /// Whether a page program fails at an operation.
    pub(super) fn fails_program(&mut self, op: u64, ppn: Ppn) -> bool {
        let next = self.next_failing_program.take_if(|from| *from <= op).is_some();
        debug_assert!(self.next_failing_program.is_none_or(|from| from > op));
        next || self.failing_programs.contains(&op) || self.failing_pages.contains(&ppn)
    }

    /// Whether an erase fails at an operation.
    pub(super) fn fails_erase(&mut self, op: u64, block: BlockId) -> bool {
        let next = self.next_failing_erase.take_if(|from| *from <= op).is_some();
        debug_assert!(self.next_failing_erase.is_none_or(|from| from > op));
        next || self.failing_erases.contains(&op) || self.failing_blocks.contains(&block)
    }

    pub(super) fn cut_at(&self, op: u64) -> Option<CutOutcome> {
        debug_assert!(self.cuts.iter().filter(|cut| cut.at == op).count() <= 1, "power is lost twice at one operation");
        self.cuts.iter().find(|cut| cut.at == op).map(|cut| cut.outcome)
    }

    /// A number that depends on the seed, the operation and the item within it, and on nothing
    /// else.
    pub(super) fn roll(&self, op: u64, item: u64) -> u64 {
        // SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA
        // 2014).
        let mut z = self.seed ^ op.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ item.wrapping_mul(0xD1B5_4A32_D192_ED03);
        z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }
}
