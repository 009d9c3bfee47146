//! The card as the engine sees it, and what the engine is told.

use crate::devices::Devices;
use crate::error::LftlError;
use buffer::replacement::Replacement;
use ftl::victim::by_bank::{Levels, Policy};
use nand::{BlockId, Geometry, Ppn};
use std::time::Duration;

/// Bytes of a sector: the least that survives power loss as a whole.
pub const SECTOR_BYTES: usize = 4096;
/// Sectors of a page at most: a mask of them fits half a field of the spare area.
pub const SECTORS_MAX: usize = 16;

/// How the engine works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Pages of flash that the host sees.
    pub logical_pages: u32,
    /// Write buffers, each of one page.
    pub buffers: u32,
    /// Which of them is written out when one is needed.
    pub replacement: Replacement,
    /// How garbage is collected.
    pub policy: Policy,
    /// When garbage is collected; `None` for [`Levels::of`] the card.
    pub levels: Option<Levels>,
    /// A buffer that nobody used for so long is written out.
    pub idle: Duration,
    /// Pages programmed between two checkpoints; a mount after power loss reads so many and at most
    /// as many again. `None` for 32 times the pages of a checkpoint, and at least a block of each
    /// bank.
    pub checkpoint_every: Option<u32>,
}

impl Options {
    /// The paper's: 256 buffers, FIFO, written out after 60 s; adaptive collection.
    #[must_use]
    pub const fn new(logical_pages: u32) -> Self {
        Self {
            logical_pages,
            buffers: 256,
            replacement: Replacement::Fifo,
            policy: Policy::Adaptive,
            levels: None,
            idle: Duration::from_secs(60),
            checkpoint_every: None,
        }
    }
}

/// What the field `aux` of the spare area of a page of host data says: which sectors are lost, and
/// how often the page was moved since it was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Aux {
    pub(crate) lost: u32,
    pub(crate) moves: u32,
}

impl Aux {
    const BITS: u32 = SECTORS_MAX as u32;

    pub(crate) const fn of(aux: u32) -> Self {
        Self { lost: aux & u16::MAX as u32, moves: aux >> Self::BITS }
    }

    pub(crate) const fn encode(self) -> u32 {
        self.lost | self.moves << Self::BITS
    }

    /// Of a copy.
    pub(crate) const fn moved(self) -> Self {
        let most = u32::MAX >> Self::BITS;
        Self { moves: if self.moves < most { self.moves + 1 } else { most }, ..self }
    }
}

/// Banks of equal shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) banks: u32,
    /// Blocks of a bank.
    pub(crate) blocks: u32,
    pub(crate) pages_per_block: u32,
    pub(crate) page_bytes: u32,
}

/// Blocks 0 and up of a bank that hold nothing but anchors, and how many banks have such.
const ANCHOR_BANKS: u32 = 4;

impl Shape {
    /// The shape of a card of these devices, one a bank.
    pub(crate) fn of(Devices(devices): &Devices) -> Result<Self, LftlError> {
        let refuse = |reason: String| Err(LftlError::Unsupported { reason });
        let Some(first) = devices.first() else { return refuse("it has no bank".into()) };
        let g: Geometry = *first.geometry();
        if let Some(at) = devices.iter().position(|other| other.geometry() != &g) {
            return refuse(format!("bank {at} has another shape than bank 0"));
        }
        let sectors = g.page_bytes() as usize / SECTOR_BYTES;
        if !(g.page_bytes() as usize).is_multiple_of(SECTOR_BYTES) || !(1..=SECTORS_MAX).contains(&sectors) {
            return refuse(format!(
                "a page has {} B; pages of {SECTOR_BYTES} B times 1 to {SECTORS_MAX} can be used",
                g.page_bytes()
            ));
        }
        let pages = u64::from(g.pages()) * devices.len() as u64;
        if pages >= u64::from(crate::map::UNMAPPED) || devices.len() > u16::MAX.into() {
            return refuse(format!(
                "{pages} pages in {} banks are more than 31-bit addresses name; use larger pages or fewer blocks",
                devices.len()
            ));
        }
        Ok(Self {
            banks: devices.len() as u32,
            blocks: g.blocks(),
            pages_per_block: g.pages_per_block(),
            page_bytes: g.page_bytes(),
        })
    }

    pub(crate) const fn all_blocks(&self) -> u32 {
        self.banks * self.blocks
    }

    /// A page of the card from where it is in its bank.
    pub(crate) const fn ppn(&self, bank: u32, block: u32, offset: u32) -> u32 {
        (bank * self.blocks + block) * self.pages_per_block + offset
    }

    pub(crate) const fn bank_of(&self, ppn: u32) -> u32 {
        ppn / self.pages_per_block / self.blocks
    }

    /// The address within its bank.
    pub(crate) const fn local(&self, ppn: u32) -> Ppn {
        Ppn(ppn % (self.blocks * self.pages_per_block))
    }

    /// The block of the card that holds a page.
    pub(crate) const fn block_of(&self, ppn: u32) -> u32 {
        ppn / self.pages_per_block
    }

    pub(crate) const fn block(&self, bank: u32, block: u32) -> u32 {
        bank * self.blocks + block
    }

    pub(crate) const fn page_bytes(&self) -> usize {
        self.page_bytes as usize
    }

    pub(crate) const fn sectors(&self) -> usize {
        self.page_bytes as usize / SECTOR_BYTES
    }

    /// A mask of all sectors of a page.
    pub(crate) const fn all_sectors(&self) -> u32 {
        u16::MAX as u32 >> (SECTORS_MAX - self.sectors())
    }

    /// Blocks of each of the first banks that hold anchors.
    pub(crate) const fn anchor_blocks_a_bank(&self) -> u32 {
        if self.banks == 1 { 6 } else { 3 }
    }

    /// Every block that may hold anchors: bank and block.
    pub(crate) fn anchor_blocks(&self) -> impl Iterator<Item = (u32, BlockId)> + use<> {
        let (banks, each) = (self.banks.min(ANCHOR_BANKS), self.anchor_blocks_a_bank());
        (0..each).flat_map(move |block| (0..banks).map(move |bank| (bank, BlockId(block))))
    }

    pub(crate) const fn is_anchor(&self, bank: u32, block: u32) -> bool {
        bank < ANCHOR_BANKS && block < self.anchor_blocks_a_bank()
    }
}
