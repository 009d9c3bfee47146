//! Schedules worked out by hand of what a die does beside something else: planes together,
//! transfers beside array times, and queues that dies share. Array times: read 50, program 500,
//! erase 3000 ns; a page takes 10 ns on the channel.

use super::tests::{options, run};
use super::*;
use ftl::Branch;
use nand::geometry::Dimensions;
use nand::profiles::Limits;
use nand::{Capabilities, Pairing, Timing};

const PLAIN: Timing = Timing {
    read_ns: 50,
    spare_read_ns: 20,
    program_ns: 500,
    erase_ns: 3000,
    channel_bytes_per_us: 64_000,
    ..Timing::NONE
};
const CACHED: Timing = Timing { cache_programs: true, cache_reads: true, ..PLAIN };

/// One channel. Block b lies on die b % dies, in plane b / dies % 2.
fn machine(
    dies: u32,
    multi_plane: bool,
    timing: Timing,
    write_queues_per_channel: u32,
    with: &QueueOptions,
) -> Machine {
    let geometry = Geometry::new(Dimensions {
        channels: 1,
        dies_per_channel: dies,
        planes_per_die: 2,
        blocks: 8 * dies,
        pages_per_block: 8,
        page_bytes: 512,
        spare_bytes: 128,
    })
    .unwrap();
    let capabilities = Capabilities { multi_plane, ..Capabilities::MODERN };
    let limits = Limits { write_queues_per_channel, ..Limits::NONE };
    let (name, pairing) = (String::new(), Pairing::NONE);
    Machine::new(&DevicePlan { name, geometry, capabilities, timing, limits, pairing, logical_pages: 1 }, with)
}

fn op(m: &Machine, kind: OpKind, block: u32, offset: u32) -> Op {
    let page = m.geometry.page_at(BlockId(block), offset);
    Op { kind, purpose: Purpose::Host, page, from: nand::Ppn::NONE, branch: Branch::NONE }
}

/// Submits each operation as a strand of its own, numbered from 0; when each ended.
fn ends(mut m: Machine, ops: &[(OpKind, u32, u32)]) -> Vec<(Token, u64)> {
    for (token, (kind, block, offset)) in (0..).zip(ops) {
        let op = op(&m, *kind, *block, *offset);
        m.submit(token, false, [op].into_iter());
    }
    run(&mut m)
}

const READ: OpKind = OpKind::Read;
const PROGRAM: OpKind = OpKind::Program;
const ERASE: OpKind = OpKind::Erase;

#[test]
fn planes_program_together_what_waits_at_one_offset() {
    // The first finds nothing that waits. Then blocks 0 and 1 are in two planes.
    let ops = [(PROGRAM, 0, 0), (PROGRAM, 0, 1), (PROGRAM, 1, 1), (PROGRAM, 2, 1), (PROGRAM, 1, 2)];
    let alone = [(0, 510), (1, 1020), (2, 1530), (3, 2040), (4, 2550)];
    assert_eq!(ends(machine(1, false, PLAIN, 0, &options()), &ops), alone);
    // 510 + 10 + 10 + 500; blocks 2 and 1 are in two planes, but their pages are not at one offset.
    let together = [(0, 510), (1, 1030), (2, 1030), (3, 1540), (4, 2050)];
    assert_eq!(ends(machine(1, true, PLAIN, 0, &options()), &ops), together);
}

#[test]
fn planes_erase_together_whatever_waits_before() {
    let ops = [(ERASE, 0, 0), (ERASE, 2, 0), (PROGRAM, 4, 0), (ERASE, 3, 0), (ERASE, 5, 0)];
    let alone = [(0, 3000), (1, 6000), (2, 6510), (3, 9510), (4, 12510)];
    assert_eq!(ends(machine(1, false, PLAIN, 0, &options()), &ops), alone);
    let together = [(0, 3000), (1, 6000), (3, 6000), (2, 6510), (4, 9510)];
    assert_eq!(ends(machine(1, true, PLAIN, 0, &options()), &ops), together);
}

#[test]
fn a_transfer_runs_beside_a_program_with_cache_programs() {
    let ops = [(PROGRAM, 0, 0), (PROGRAM, 0, 1), (PROGRAM, 0, 2)];
    assert_eq!(ends(machine(1, false, PLAIN, 0, &options()), &ops), [(0, 510), (1, 1020), (2, 1530)]);
    assert_eq!(ends(machine(1, false, CACHED, 0, &options()), &ops), [(0, 510), (1, 1010), (2, 1510)]);
    // Another operation between is waited for.
    let ops = [(PROGRAM, 0, 0), (READ, 1, 0), (PROGRAM, 0, 1)];
    assert_eq!(ends(machine(1, false, CACHED, 0, &options()), &ops), [(0, 510), (1, 570), (2, 1080)]);
    // Two planes at a time, and the next two transferred meanwhile.
    let ops = [(PROGRAM, 0, 0), (PROGRAM, 0, 1), (PROGRAM, 1, 1), (PROGRAM, 0, 2), (PROGRAM, 1, 2)];
    let both = [(0, 510), (1, 1010), (2, 1010), (3, 1510), (4, 1510)];
    let mut m = machine(1, true, CACHED, 0, &options());
    // What is transferred ahead is chosen when it comes: of two that wait behind a read.
    let read = op(&m, READ, 2, 0);
    m.submit(9, false, [read].into_iter());
    let found = ends(m, &ops);
    assert_eq!(found[0], (9, 60));
    // 60 + 10 + 500, and the others in pairs by offset.
    let after: Vec<_> = both.iter().map(|(token, ns)| (*token, ns + 60)).collect();
    assert_eq!(found[1..], after);
}

#[test]
fn a_program_with_one_ahead_is_not_suspended() {
    let suspends = QueueOptions { read_priority: true, suspend_ns: Some(30), ..options() };
    for (timing, expected) in [(PLAIN, [(2, 260), (0, 600), (1, 1110)]), (CACHED, [(0, 510), (1, 1010), (2, 1070)])] {
        let mut m = machine(1, false, timing, 0, &suspends);
        for (token, offset) in [(0, 0), (1, 1)] {
            let program = op(&m, PROGRAM, 0, offset);
            m.submit(token, false, [program].into_iter());
        }
        let before = super::tests::run_until(&mut m, 200);
        assert_eq!(before, []);
        m.wait_until(200);
        let read = op(&m, READ, 1, 0);
        m.submit(2, false, [read].into_iter());
        assert_eq!(run(&mut m), expected);
    }
}

#[test]
fn a_die_reads_beside_a_transfer_with_cache_reads() {
    let slow = |timing| Timing { channel_bytes_per_us: 8000, ..timing };
    let ops = [(READ, 0, 0), (READ, 0, 1), (READ, 0, 2), (PROGRAM, 0, 3)];
    // A transfer takes 80 ns, longer than a read.
    assert_eq!(ends(machine(1, false, slow(PLAIN), 0, &options()), &ops), [(0, 130), (1, 260), (2, 390), (3, 970)]);
    assert_eq!(ends(machine(1, false, slow(CACHED), 0, &options()), &ops), [(0, 130), (1, 210), (2, 290), (3, 870)]);
    // It takes 10 ns, so that dies wait for their arrays.
    assert_eq!(ends(machine(1, false, CACHED, 0, &options()), &ops[..3]), [(0, 60), (1, 110), (2, 160)]);
    // A read that comes during the transfer begins at once, and the die was held all the time.
    let mut m = machine(1, false, slow(CACHED), 0, &options());
    let reads = [op(&m, READ, 0, 0), op(&m, READ, 1, 0)];
    m.submit(0, false, [reads[0]].into_iter());
    m.wait_until(0);
    assert_eq!(super::tests::run_until(&mut m, 100), []);
    m.wait_until(100);
    m.submit(1, false, [reads[1]].into_iter());
    assert_eq!(run(&mut m), [(0, 130), (1, 230)]);
    assert_eq!(m.die_busy_ns().collect::<Vec<_>>(), [230]);
}

#[test]
fn the_first_of_a_shared_write_queue_keeps_the_others_waiting() {
    // Two dies. The second program waits for die 0, and the third behind it, though die 1 is idle.
    let ops = [(PROGRAM, 0, 0), (PROGRAM, 0, 1), (PROGRAM, 1, 0), (ERASE, 5, 0), (READ, 1, 0)];
    let own = [(0, 510), (2, 520), (1, 1020), (3, 3520), (4, 3580)];
    assert_eq!(ends(machine(2, false, PLAIN, 0, &options()), &ops), own);
    // A queue for each die, from which the erase comes only when no read waits.
    for queues in [2, 5] {
        let found = ends(machine(2, false, PLAIN, queues, &options()), &ops);
        assert_eq!(found, [(0, 510), (2, 520), (4, 580), (1, 1020), (3, 3580)], "{queues} write queues");
    }
    // The erase has a queue of its own, and dies come to reads by themselves.
    let shared = [(0, 510), (1, 1020), (3, 3000), (4, 3060), (2, 3570)];
    assert_eq!(ends(machine(2, false, PLAIN, 1, &options()), &ops), shared);
}

#[test]
fn what_waits_in_a_shared_queue_waits_for_its_die() {
    let mut m = machine(2, false, PLAIN, 1, &options());
    for (token, block) in [0, 0, 1].into_iter().enumerate() {
        let program = op(&m, PROGRAM, block, 0);
        m.submit(token as u32, token == 2, [program].into_iter());
    }
    assert_eq!([m.waiting(0), m.waiting(1)], [2, 0], "what is of the background does not count");
    run(&mut m);
    assert_eq!([m.waiting(0), m.waiting(1)], [0, 0]);
}
