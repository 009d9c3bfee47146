//! A small device for the tests of what a mount makes of what it finds.
#![allow(clippy::unwrap_used)]

use crate::flash::Flash;
use nand::{Blemish, Capabilities, Dimensions, FaultPlan, Faulty, Geometry, Nand, Ppn, SimNand, Spare};

/// Eight blocks of four pages of 512 bytes.
pub(crate) fn geometry() -> Geometry {
    of_blocks(8)
}

/// So many blocks of four pages of 512 bytes.
pub(crate) fn of_blocks(blocks: u32) -> Geometry {
    let geometry = Geometry::new(Dimensions {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks,
        pages_per_block: 4,
        page_bytes: 512,
        spare_bytes: 32,
    });
    geometry.unwrap()
}

/// A device that holds these pages. The data of some cannot be read.
pub(crate) fn device(pages: &[(Ppn, Spare, &[u8; 512])], unreadable: &[Ppn]) -> Flash<Faulty<SimNand>> {
    let nand = SimNand::new(geometry(), Capabilities::MODERN);
    let mut flash = Flash::new(Faulty::new(nand, FaultPlan::default()));
    for (ppn, spare, data) in pages {
        flash.nand_mut().program_meta(*ppn, *data, spare).unwrap();
    }
    unreadable.iter().for_each(|ppn| flash.nand_mut().damage(*ppn, Blemish::DataUnreadable));
    flash
}
