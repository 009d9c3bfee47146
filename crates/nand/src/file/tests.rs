#![allow(clippy::unwrap_used)]

use super::*;
use crate::geometry::{Dimensions, ProgramOrder};
use crate::{Lpn, PageKind};

const DIMENSIONS: Dimensions = Dimensions {
    channels: 1,
    dies_per_channel: 1,
    planes_per_die: 1,
    blocks: 4,
    pages_per_block: 4,
    page_bytes: 512,
    spare_bytes: 32,
};

#[test]
fn a_block_whose_erase_another_device_made_final_is_given_back_before_it_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let geometry = Geometry::new(DIMENSIONS).unwrap();
    let capabilities = Capabilities { program_order: ProgramOrder::Sequential, ..Capabilities::MODERN };
    let mut devices = FileNand::create_joint(&folder.path().join("disk"), 2, geometry, capabilities, b"owner").unwrap();
    let [one, other] = &mut devices[..] else { panic!("two devices were made") };
    let page = [1; 512];
    let spare =
        Spare { kind: PageKind::User, tag: Lpn(0).0, seq: 1, erase_count: 0, erased_at: 0, aux: 0, flags: Flags::NONE };
    one.program(Ppn(0), &page, &spare).unwrap();
    one.erase(BlockId(0)).unwrap();
    assert!(one.discards == [BlockId(0)] && one.blocks[0].record.erased > one.journal.anchored());
    // The second erase makes the first one final, and with it everything before.
    other.erase(BlockId(0)).unwrap();
    other.erase(BlockId(0)).unwrap();
    assert!(one.blocks[0].record.erased <= one.journal.anchored(), "the other device wrote no anchor");
    one.finish_erase("program", Ppn(0), BlockId(0)).unwrap();
    assert!(one.discards.is_empty(), "block 0 would be given back with what is programmed now");
    one.program(Ppn(0), &page, &spare).unwrap();
}
