//! Schedules worked out by hand for cells of two bits: the first page of a word line is read in 40
//! and programmed in 200 ns, the second in 60 and 800.

use super::tests::{options, run};
use super::*;
use ftl::Branch;
use nand::geometry::Dimensions;
use nand::profiles::Limits;
use nand::{ByType, Capabilities, Pairing, Ppn, Timing};

const BLOCK: u32 = 8;

fn device(copy_back: bool, distance: u32) -> DevicePlan {
    let geometry = Geometry::new(Dimensions {
        channels: 1,
        dies_per_channel: 2,
        planes_per_die: 1,
        blocks: 8,
        pages_per_block: BLOCK,
        page_bytes: 512,
        spare_bytes: 128,
    })
    .unwrap();
    let timing = Timing {
        read_ns: 50,
        spare_read_ns: 20,
        program_ns: 500,
        erase_ns: 3000,
        channel_bytes_per_us: 64_000,
        read_by_type_ns: ByType::new(&[40, 60]).unwrap(),
        program_by_type_ns: ByType::new(&[200, 800]).unwrap(),
        ..Timing::NONE
    };
    let capabilities = Capabilities { copy_back, ..Capabilities::MODERN };
    let (name, limits, pairing) = (String::new(), Limits::NONE, Pairing { bits_per_cell: 2, distance });
    DevicePlan { name, geometry, capabilities, timing, limits, pairing: Pairing::NONE, logical_pages: 1 }
        .with_pairing(pairing)
        .unwrap()
}

/// When an operation on pages at these offsets of block 0 ends; a copy comes from another block.
fn end_of(kind: OpKind, from: u32, offset: u32, (copy_back, distance): (bool, u32)) -> u64 {
    let from = if kind == OpKind::Copy { Ppn(2 * BLOCK + from) } else { Ppn::NONE };
    let op = Op { kind, purpose: Purpose::Host, page: Ppn(offset), from, branch: Branch::NONE };
    let mut m = Machine::new(&device(copy_back, distance), &options());
    m.submit(0, false, [op].into_iter());
    run(&mut m)[0].1
}

#[test]
fn array_times_depend_on_the_page_type() {
    for (kind, from, offset, distance, end) in [
        (OpKind::Read, 0, 0, 1, 40 + 10),
        (OpKind::Read, 0, 1, 1, 60 + 10),
        (OpKind::Read, 0, 1, 2, 40 + 10),
        (OpKind::Read, 0, 6, 2, 60 + 10),
        (OpKind::SpareRead, 0, 1, 1, 21),
        (OpKind::Program, 0, 4, 1, 10 + 200),
        (OpKind::Program, 0, 5, 1, 10 + 800),
        (OpKind::Flags, 0, 5, 1, 1 + 800),
        (OpKind::Copy, 1, 0, 1, 60 + 10 + 10 + 200),
        (OpKind::Copy, 0, 1, 1, 40 + 10 + 10 + 800),
        (OpKind::Erase, 0, 0, 1, 3000),
    ] {
        assert_eq!(end_of(kind, from, offset, (false, distance)), end, "{kind:?} from {from} to {offset}");
    }
    assert_eq!(end_of(OpKind::Copy, 0, 1, (true, 1)), 40 + 800);
    assert_eq!(end_of(OpKind::Copy, 1, 0, (true, 1)), 60 + 200);
}

#[test]
fn times_by_page_type_are_those_of_the_cells_and_have_the_mean_of_the_average_page() {
    let plan = device(false, 1);
    let refused = |timing, bits_per_cell| {
        let plan = DevicePlan { timing, ..plan.clone() };
        plan.with_pairing(Pairing { bits_per_cell, distance: 1 }).unwrap_err().to_string()
    };
    assert!(refused(plan.timing, 3).contains("read_by_type_ns has 2 durations, and cells of 3 bits"));
    let other_mean = Timing { program_ns: 600, ..plan.timing };
    let text = refused(other_mean, 2);
    assert!(text.contains("the mean of program_by_type_ns is 500 ns") && text.contains("is 600 ns"), "{text}");
    assert!(ByType::new(&[1; 9]).is_err());
}
