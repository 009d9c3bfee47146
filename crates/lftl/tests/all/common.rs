//! Cards of memory, and a random number generator that gives the same numbers every time.

use nand::{Capabilities, Dimensions, FaultPlan, Faulty, Geometry, MemNand};
use openftl_lftl::{Devices, Engine, LftlError, MountReport, Options, Recovery, SECTOR_BYTES, Slice};
use std::sync::{Arc, Mutex};

pub type Card = Arc<Mutex<Faulty<MemNand>>>;

/// Sectors of a page of these cards.
pub const SECTORS: usize = 2;
pub const PAGE: usize = SECTORS * SECTOR_BYTES;

pub fn geometry(banks: u32, blocks_a_bank: u32, pages_per_block: u32) -> Geometry {
    Geometry::new(Dimensions {
        channels: banks,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks: banks * blocks_a_bank,
        pages_per_block,
        page_bytes: PAGE as u32,
        spare_bytes: 64,
    })
    .unwrap()
}

pub fn card(banks: u32, blocks_a_bank: u32, pages_per_block: u32, plan: FaultPlan) -> Card {
    let nand = MemNand::new(geometry(banks, blocks_a_bank, pages_per_block), Capabilities::MODERN);
    Arc::new(Mutex::new(Faulty::new(nand, plan)))
}

pub fn slices(card: &Card) -> Devices {
    Slice::all(Arc::clone(card)).unwrap().into()
}

pub fn format(card: &Card, options: &Options) -> Result<Engine, LftlError> {
    Engine::format(slices(card), options.clone())
}

pub fn mount(card: &Card, options: &Options) -> Result<(Engine, MountReport), LftlError> {
    Engine::mount(slices(card), options.clone(), Recovery::Bounded, 1)
}

/// What a sector holds at a version; version 0 was never written.
pub fn sector(lpn: u32, index: usize, version: u32) -> Vec<u8> {
    if version == 0 {
        return vec![0; SECTOR_BYTES];
    }
    let word = (u64::from(lpn) << 40 | (index as u64) << 32 | u64::from(version)).to_le_bytes();
    word.iter().copied().cycle().take(SECTOR_BYTES).collect()
}

/// SplitMix64.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}
