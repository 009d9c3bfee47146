//! Faults besides power cuts: what they are, and the plan that lays them over a device.

use crate::rng::Rng;
use crate::shape::SPARE_BLOCKS;
use nand::{BlockId, FaultPlan, Geometry, Pairing, Ppn};

/// A kind of fault besides power cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Three programs fail, and with them their blocks. Laid over explorations of cuts, as are the next four.
    Programs,
    /// Every erase of three blocks fails once the disk was formatted.
    Erases,
    /// Three blocks are bad from the beginning, in any place.
    FactoryBad,
    /// A quarter of all pages have wrong bits, as many as can be corrected; or every page read adds wrong bits to its block.
    BitFlips,
    /// Pages share word lines: a torn program takes earlier pages with it.
    Pairing,
    /// Every page in turn becomes unreadable, or flips more or fewer bits than can be corrected.
    Worn,
    /// The device holds stale, foreign, truncated or random contents.
    Images,
    /// The same device loses power a thousand times.
    Endurance,
}

impl Fault {
    /// Every kind, in the order of reports.
    pub const ALL: [Self; 8] = [
        Self::Programs,
        Self::Erases,
        Self::FactoryBad,
        Self::BitFlips,
        Self::Pairing,
        Self::Worn,
        Self::Images,
        Self::Endurance,
    ];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Programs => "programs",
            Self::Erases => "erases",
            Self::FactoryBad => "factory-bad",
            Self::BitFlips => "bit-flips",
            Self::Pairing => "pairing",
            Self::Worn => "worn",
            Self::Images => "images",
            Self::Endurance => "endurance",
        }
    }

    /// The kind with this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }

    /// Its bit in a case.
    pub(crate) const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Whether it is laid over explorations of cuts.
    pub(crate) const fn is_laid(self) -> bool {
        !matches!(self, Self::Worn | Self::Images | Self::Endurance)
    }
}

/// Pages read of a block that add a wrong bit to each of its pages.
const READS_PER_FLIP: u32 = 64;

/// Operations after formatting among which the failing ones are.
const SPAN: u32 = 500;

/// Blocks whose erases fail once the disk was formatted.
pub(crate) fn worn_blocks(faults: u8, seed: u64, geometry: &Geometry) -> Vec<BlockId> {
    let mut rng = Rng::new(seed, 0x3A5E);
    let count = if faults & Fault::Erases.bit() == 0 { 0 } else { SPARE_BLOCKS - 1 };
    (0..count).map(|_| BlockId(rng.below(geometry.blocks()))).collect()
}

/// The plan that lays faults over a device. No more blocks go bad than the disk leaves spare.
pub(crate) fn plan(faults: u8, seed: u64, geometry: &Geometry, pairing: Pairing) -> FaultPlan {
    let mut rng = Rng::new(seed, 0xFA17);
    let mut plan = FaultPlan { seed, ..FaultPlan::default() };
    let has = |fault: Fault| faults & fault.bit() != 0;
    let mut ops = |count: u32| (0..count).map(|_| u64::from(geometry.blocks() + rng.below(SPAN))).collect();
    if has(Fault::Programs) {
        plan.failing_programs = ops(SPARE_BLOCKS - 1);
    }
    if has(Fault::FactoryBad) {
        plan.factory_bad = (1..SPARE_BLOCKS).map(|_| BlockId(rng.below(geometry.blocks()))).collect();
    }
    if has(Fault::Pairing) {
        plan.pairing = pairing;
    }
    if has(Fault::BitFlips) && seed % 2 == 1 {
        plan.reads_per_flip = Some(READS_PER_FLIP);
    } else if has(Fault::BitFlips) {
        let worn = (0..geometry.pages()).filter(|_| rng.one_in(4)).map(Ppn).collect::<Vec<_>>();
        plan.bit_flips = worn.into_iter().map(|ppn| (ppn, 1 + rng.below(plan.correctable_bits))).collect();
    }
    plan
}
