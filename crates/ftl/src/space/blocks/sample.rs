//! A small space for tests.

use super::{Slot, Space, SpaceOptions};
use crate::placement::Stream;
use crate::victim;
use alloc::vec::Vec;
use nand::sim::SimNand;
use nand::{BlockId, Capabilities, Dimensions, Geometry};

/// Pages of a block.
pub const PAGES: u32 = 4;

/// Sixteen blocks, two streams of host data, no queue yet.
pub fn space() -> Space {
    let dimensions = Dimensions {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks: 16,
        pages_per_block: PAGES,
        page_bytes: 512,
        spare_bytes: 32,
    };
    let nand = SimNand::new(Geometry::new(dimensions).unwrap(), Capabilities::MODERN);
    let victim = victim::find("greedy").unwrap();
    let (host_streams, lanes, metadata_lanes) = (2, 1, 1);
    let (metadata_apart, has_queues, level_wear) = (false, true, false);
    let options = SpaceOptions { host_streams, lanes, metadata_lanes, victim, metadata_apart, has_queues, level_wear };
    Space::new(&nand, options)
}

/// The next page of a stream, which lives.
pub fn program(space: &mut Space, stream: u8) -> Slot {
    let slot = space.next_host_page(Stream(stream)).unwrap();
    space.page_born(slot.ppn);
    slot
}

/// Fills a block of a stream, of which so many pages live.
pub fn fill(space: &mut Space, stream: u8, live: u32) -> BlockId {
    let slots: Vec<Slot> = (0..PAGES).map(|_| program(space, stream)).collect();
    slots.iter().skip(live as usize).for_each(|slot| space.page_died(slot.ppn));
    space.geometry().block_of(slots[0].ppn)
}
