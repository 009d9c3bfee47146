//! Faults besides power cuts: what they are, and the plan that lays them over a device.

use crate::rng::Rng;
use crate::shape::SPARE_BLOCKS;
use nand::{BlockId, FaultPlan, Flags, Geometry, Lpn, Nand, PageKind, Pairing, Ppn, Spare, Stamp};

/// A kind of fault besides power cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Three programs fail, and with them their blocks. Laid over explorations of cuts, as are the
    /// next four.
    Programs,
    /// Every erase of three blocks fails once the disk was formatted.
    Erases,
    /// Three blocks are bad from the beginning, in any place.
    FactoryBad,
    /// A quarter of all pages have wrong bits, as many as can be corrected; or every page read adds
    /// wrong bits to its block.
    BitFlips,
    /// Pages share word lines: a torn program takes earlier pages with it.
    Pairing,
    /// Every page in turn becomes unreadable, or flips more or fewer bits than can be corrected.
    Worn,
    /// The device holds stale, foreign, truncated or random contents, or checkpoints with wrong
    /// bits.
    Images,
    /// The same device loses power a thousand times.
    Endurance,
    /// A program or an erase fails in each mount after a cut, as long as spare blocks are left.
    /// Laid over explorations of cuts.
    Mounts,
    /// Torn pages read well for a while, or by chance, or show a spare area that nobody wrote;
    /// failed programs and half-erased blocks leave the same. Power is cut at reads too, and the
    /// battery dies in its save. A worn page has to be an error, of every FTL. Devices have more
    /// shapes. Laid over everything else.
    Fading,
    /// Programs or erases fail as in the first two, and a block is erased before it is marked bad,
    /// as Linux does it. Laid over explorations of cuts.
    Marks,
    /// No fault, but a host that places pages and collects bank by bank, in any order. Laid over
    /// explorations of cuts.
    Banks,
}

impl Fault {
    /// Every kind, in the order of reports.
    pub const ALL: [Self; 12] = [
        Self::Programs,
        Self::Erases,
        Self::FactoryBad,
        Self::BitFlips,
        Self::Pairing,
        Self::Worn,
        Self::Images,
        Self::Endurance,
        Self::Mounts,
        Self::Fading,
        Self::Marks,
        Self::Banks,
    ];

    /// Bits of those that take blocks away.
    pub(crate) const OF_BLOCKS: u16 =
        Self::Programs.bit() | Self::Erases.bit() | Self::FactoryBad.bit() | Self::Mounts.bit() | Self::Marks.bit();

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
            Self::Mounts => "mounts",
            Self::Fading => "fading",
            Self::Marks => "marks",
            Self::Banks => "banks",
        }
    }

    /// The kind with this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }

    /// Its bit in a case.
    pub(crate) const fn bit(self) -> u16 {
        1 << self as u16
    }

    /// Whether it is laid over explorations of cuts.
    pub(crate) const fn is_laid(self) -> bool {
        !matches!(self, Self::Worn | Self::Images | Self::Endurance | Self::Fading)
    }
}

/// Pages read of a block that add a wrong bit to each of its pages.
const READS_PER_FLIP: u32 = 64;

/// Operations after formatting among which the failing ones are.
const SPAN: u32 = 500;

/// Whether programs or erases fail: if a case says so, or by its seed if blocks are to be marked.
pub(crate) fn fails(faults: u16, seed: u64, what: Fault) -> bool {
    let chosen = if seed.is_multiple_of(2) { Fault::Programs } else { Fault::Erases };
    faults & what.bit() != 0 || faults & Fault::Marks.bit() != 0 && what == chosen
}

/// Blocks whose erases fail once the disk was formatted.
pub(crate) fn worn_blocks(faults: u16, seed: u64, geometry: &Geometry) -> Vec<BlockId> {
    let mut rng = Rng::new(seed, 0x3A5E);
    let count = if fails(faults, seed, Fault::Erases) { SPARE_BLOCKS - 1 } else { 0 };
    (0..count).map(|_| BlockId(rng.below(geometry.blocks()))).collect()
}

/// Has a program or an erase of the recovery that begins now fail.
pub(crate) fn fail_soon(plan: &mut FaultPlan, now: u64, seed: u64) {
    let mut rng = Rng::new(seed, now);
    let from = Some(now + u64::from(rng.below(SOON)));
    if rng.one_in(2) {
        plan.next_failing_program = from;
    } else {
        plan.next_failing_erase = from;
    }
}

/// Operations of a mount, reads among them, after which a program or an erase fails.
const SOON: u32 = 300;

/// Fills blocks that are bad from the beginning with what a factory may leave there.
pub(crate) fn litter(flash: &mut nand::Faulty<nand::SimNand>, seed: u64) {
    let mut rng = Rng::new(seed, 0x11FE);
    let geometry = *flash.geometry();
    let blocks = flash.plan().factory_bad.clone();
    for ppn in
        blocks.into_iter().flat_map(|block| (0..geometry.pages_per_block()).map(move |at| geometry.page_at(block, at)))
    {
        let (tag, seq) = (rng.below(64), rng.next() >> 40);
        let kind = PageKind::ALL[rng.below(4) as usize];
        let spare = Spare {
            kind,
            tag,
            seq,
            erase_count: rng.below(9),
            erased_at: rng.below(99),
            aux: rng.below(9),
            flags: Flags::NONE,
        };
        // A page that is there already stays as it is.
        let _ = match kind {
            PageKind::User => flash.inner_mut().program(ppn, &Stamp { lpn: Lpn(tag), version: 1 }, &spare),
            _ => flash.inner_mut().program_meta(ppn, &[0; 16], &spare),
        };
    }
}

/// The plan that lays faults over a device. No more blocks go bad than the disk leaves spare.
pub(crate) fn plan(faults: u16, seed: u64, geometry: &Geometry, pairing: Pairing) -> FaultPlan {
    let mut rng = Rng::new(seed, 0xFA17);
    let mut plan = FaultPlan { seed, ..FaultPlan::default() };
    let has = |fault: Fault| faults & fault.bit() != 0;
    let mut ops = |count: u32| (0..count).map(|_| u64::from(geometry.blocks() + rng.below(SPAN))).collect();
    plan.marks_erase = has(Fault::Marks);
    if fails(faults, seed, Fault::Programs) {
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
