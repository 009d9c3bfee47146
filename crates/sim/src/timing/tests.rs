//! Schedules worked out by hand. Array times: read 50, spare read 20, program 500, erase 3000 ns; a
//! page with its spare area takes 10 ns on the channel, or none.

use super::*;
use ftl::{Branch, Purpose};
use nand::geometry::Dimensions;
use nand::profiles::Limits;
use nand::{Capabilities, Pairing, Ppn, Timing};

const PAGES: u32 = 8;

pub(super) fn options() -> QueueOptions {
    QueueOptions { read_priority: false, ..QueueOptions::default() }
}

/// Block b lies on die b % dies, die d on channel d % channels.
fn machine(channels: u32, dies_per_channel: u32, transfers: bool, options: &QueueOptions) -> Machine {
    machine_with(channels, dies_per_channel, transfers, options, false)
}

fn machine_with(channels: u32, per_channel: u32, transfers: bool, options: &QueueOptions, copy_back: bool) -> Machine {
    machine_within(channels, per_channel, transfers, options, (copy_back, Limits::NONE))
}

fn machine_within(
    channels: u32,
    per_channel: u32,
    transfers: bool,
    options: &QueueOptions,
    (copy_back, limits): (bool, Limits),
) -> Machine {
    let geometry = Geometry::new(Dimensions {
        channels,
        dies_per_channel: per_channel,
        planes_per_die: 1,
        blocks: channels * per_channel * 4,
        pages_per_block: PAGES,
        page_bytes: 512,
        spare_bytes: 128,
    })
    .unwrap();
    let timing = Timing {
        read_ns: 50,
        spare_read_ns: 20,
        program_ns: 500,
        erase_ns: 3000,
        channel_bytes_per_us: if transfers { 64_000 } else { 0 },
        ..Timing::NONE
    };
    let capabilities = Capabilities { copy_back, ..Capabilities::MODERN };
    let (name, pairing) = (String::new(), Pairing::NONE);
    let device = DevicePlan { name, geometry, capabilities, timing, limits, pairing, logical_pages: 1 };
    Machine::new(&device, options)
}

fn op(kind: OpKind, block: u32) -> Op {
    Op { kind, purpose: Purpose::Host, page: Ppn(block * PAGES), from: Ppn::NONE, branch: Branch::NONE }
}

fn copy(from: u32, to: u32) -> Op {
    Op {
        kind: OpKind::Copy,
        purpose: Purpose::Gc,
        page: Ppn(to * PAGES),
        from: Ppn(from * PAGES),
        branch: Branch::NONE,
    }
}

const READ: OpKind = OpKind::Read;
const PROGRAM: OpKind = OpKind::Program;
const ERASE: OpKind = OpKind::Erase;

/// Runs until `until_ns` or the end; when each strand ended.
pub(super) fn run_until(m: &mut Machine, until_ns: u64) -> Vec<(Token, u64)> {
    let mut out = Vec::new();
    while m.next_ns().is_some_and(|ns| ns <= until_ns) {
        let tokens = m.run_event().to_vec();
        out.extend(tokens.into_iter().map(|token| (token, m.now_ns())));
    }
    out
}

pub(super) fn run(m: &mut Machine) -> Vec<(Token, u64)> {
    run_until(m, u64::MAX)
}

#[test]
fn each_operation_alone() {
    for (ops, transfers, ends) in [
        (vec![op(READ, 0)], false, 50),
        (vec![op(READ, 0)], true, 60),
        (vec![op(OpKind::SpareRead, 0)], true, 21), // 20 bytes at 64 B/ns, rounded up
        (vec![op(PROGRAM, 0)], false, 500),
        (vec![op(PROGRAM, 0)], true, 510),
        (vec![op(ERASE, 0)], true, 3000),
        (vec![op(OpKind::Flags, 0)], false, 500),
        (vec![op(OpKind::Flags, 0)], true, 501),
        (vec![op(PROGRAM, 1), op(OpKind::Flags, 0)], true, 510 + 501),
        (vec![copy(0, 1)], true, 60 + 510),
        (vec![copy(0, 0)], true, 60 + 510),
        (vec![op(READ, 0), op(PROGRAM, 1), op(ERASE, 0)], true, 60 + 510 + 3000),
    ] {
        let mut m = machine(1, 2, transfers, &options());
        assert!(m.submit(7, false, ops.iter().copied()));
        assert_eq!(run(&mut m), [(7, ends)], "{ops:?}");
    }
}

#[test]
fn a_read_of_the_host_transfers_the_units_that_it_touches() {
    // A unit of 128 bytes brings 32 of the spare area: 160 bytes are 2.5 ns, in whole ns.
    let units = Limits { read_unit_bytes: 128, ..Limits::NONE };
    let table = Op { purpose: Purpose::Translation, ..op(READ, 0) };
    for (limits, part, ops, ends) in [
        (units, 0..1, vec![op(READ, 0)], 53),
        (units, 127..128, vec![op(READ, 0)], 53),
        (units, 127..129, vec![op(READ, 0)], 55),
        (units, 100..300, vec![op(READ, 0)], 58),
        (units, 0..512, vec![op(READ, 0)], 60),
        (units, 0..1, vec![table, op(READ, 0)], 60 + 53),
        (units, 0..1, vec![copy(0, 1)], 60 + 510),
        (Limits::NONE, 0..1, vec![op(READ, 0)], 60),
        (Limits { read_unit_bytes: 4096, ..Limits::NONE }, 0..1, vec![op(READ, 0)], 60),
        (Limits { channel_read_bytes_per_us: 32_000, ..units }, 0..1, vec![op(READ, 0)], 55),
    ] {
        let mut m = machine_within(1, 2, true, &options(), (false, limits));
        assert!(m.submit_read(7, Lpn(0), &part, ops.iter().copied()));
        assert_eq!(run(&mut m), [(7, ends)], "{part:?} of {ops:?}");
    }
}

#[test]
fn a_channel_may_have_a_rate_for_what_is_read() {
    let slow = Limits { channel_read_bytes_per_us: 32_000, ..Limits::NONE };
    for (transfers, ops, ends) in [
        (true, vec![op(READ, 0)], 50 + 20),
        (true, vec![op(OpKind::SpareRead, 0)], 20 + 1),
        (true, vec![op(PROGRAM, 0)], 510),
        (true, vec![op(OpKind::Flags, 0)], 501),
        (true, vec![copy(0, 1)], 70 + 510),
        (false, vec![copy(0, 1)], 70 + 500),
    ] {
        let mut m = machine_within(1, 2, transfers, &options(), (false, slow));
        assert!(m.submit(7, false, ops.iter().copied()));
        assert_eq!(run(&mut m), [(7, ends)], "{ops:?}");
    }
}

#[test]
fn a_strand_without_operations_is_no_strand() {
    let mut m = machine(1, 1, true, &options());
    assert!(!m.submit(1, false, [].into_iter()));
    assert_eq!(run(&mut m), []);
}

#[test]
fn copy_back_needs_one_plane() {
    let mut m = machine_with(1, 2, true, &options(), true);
    m.submit(1, false, [copy(0, 2)].into_iter());
    assert_eq!(run(&mut m), [(1, 550)]);
    assert_eq!(m.channel_busy_ns().sum::<u64>(), 0);
    let mut m = machine_with(1, 2, true, &options(), true);
    m.submit(1, false, [copy(0, 1)].into_iter());
    assert_eq!(run(&mut m), [(1, 570)]);
}

#[test]
fn a_die_does_one_thing_at_a_time_and_dies_overlap() {
    let mut m = machine(2, 1, false, &options());
    m.submit(1, false, [op(PROGRAM, 0)].into_iter());
    m.submit(2, false, [op(PROGRAM, 2)].into_iter()); // the same die
    m.submit(3, false, [op(PROGRAM, 1)].into_iter()); // the other
    assert_eq!(run(&mut m), [(1, 500), (3, 500), (2, 1000)]);
}

#[test]
fn dies_of_a_channel_share_it_for_transfers_only() {
    let mut m = machine(1, 3, true, &options());
    for die in 0..3 {
        m.submit(die, false, [op(PROGRAM, die)].into_iter());
    }
    assert_eq!(run(&mut m), [(0, 510), (1, 520), (2, 530)]);
    // Reads end their array time together and queue for the bus.
    let mut m = machine(1, 3, true, &options());
    for die in 0..3 {
        m.submit(die, false, [op(READ, die)].into_iter());
    }
    assert_eq!(run(&mut m), [(0, 60), (1, 70), (2, 80)]);
}

#[test]
fn copies_of_one_pass_overlap_and_the_erase_waits_for_all() {
    // Victim on die 0, destinations on dies 1 and 2: reads end at 50 and 100, programs at 550 and
    // 600.
    let mut m = machine(3, 1, false, &options());
    m.submit(1, false, [copy(0, 1), copy(0, 2), op(ERASE, 0), op(PROGRAM, 1)].into_iter());
    assert_eq!(run(&mut m), [(1, 600 + 3000 + 500)]);
    // To one die, the programs queue: 550, 1050.
    let mut m = machine(3, 1, false, &options());
    m.submit(1, false, [copy(0, 1), copy(0, 1), op(ERASE, 0)].into_iter());
    assert_eq!(run(&mut m), [(1, 1050 + 3000)]);
}

#[test]
fn each_erase_of_a_merge_waits_for_the_copies_out_of_its_block() {
    // Programs on die 2 end at 550 and 1050; only then can the blocks that were read go.
    let mut m = machine(3, 1, false, &options());
    m.submit(1, false, [copy(0, 2), copy(1, 2), op(ERASE, 0), op(ERASE, 1)].into_iter());
    assert_eq!(run(&mut m), [(1, 1050 + 3000)]);
    // What is copied out of an erased block was programmed after the erase.
    let mut m = machine(3, 1, false, &options());
    m.submit(1, false, [copy(0, 1), op(ERASE, 0), copy(0, 2), op(ERASE, 0)].into_iter());
    assert_eq!(run(&mut m), [(1, 550 + 3000 + 550 + 3000)]);
}

#[test]
fn passes_over_different_blocks_overlap() {
    // Victims on dies 0 and 1, destination die 2: reads end at 50, programs at 550 and 1050, each
    // followed by its own erase; the program at the end waits for both.
    let mut m = machine(3, 1, false, &options());
    m.submit(1, false, [copy(0, 2), op(ERASE, 0), copy(1, 2), op(ERASE, 1), op(PROGRAM, 5)].into_iter());
    assert_eq!(run(&mut m), [(1, 1050 + 3000 + 500)]);
    assert_eq!(m.die_busy_ns().collect::<Vec<_>>(), [3050, 3050, 1500]);
    // The second pass fills the block that the first has freed, and so waits for its erase.
    let mut m = machine(3, 1, false, &options());
    m.submit(1, false, [copy(0, 2), op(ERASE, 0), copy(1, 0), op(ERASE, 1)].into_iter());
    assert_eq!(run(&mut m), [(1, 550 + 3000 + 500 + 3000)]);
    // A block without live pages is erased at once.
    let mut m = machine(3, 1, false, &options());
    m.submit(1, false, [copy(0, 2), op(ERASE, 0), op(ERASE, 1)].into_iter());
    assert_eq!(run(&mut m), [(1, 3550)]);
}

/// An operation of a branch.
fn of(section: u32, number: u32, op: Op) -> Op {
    Op { branch: Branch { section, number }, ..op }
}

#[test]
fn branches_overlap_and_what_follows_waits_for_all_of_them() {
    let moves =
        [copy(0, 1), op(READ, 2), op(PROGRAM, 3), copy(0, 4), op(READ, 5), op(PROGRAM, 6), op(ERASE, 7), op(READ, 1)];
    let serial = 2 * (50 + 500 + 50 + 500) + 3000 + 50;
    // The second copy is read from the die after the first.
    let together = 50 + (50 + 500 + 50 + 500) + 3000 + 50;
    let in_branches = |at: usize, op| if at < 6 { of(1, at as u32 / 3, op) } else { op };
    for (branches, ends) in [(false, serial), (true, together)] {
        let mut m = machine(8, 1, false, &options());
        let ops = moves.iter().enumerate().map(|(at, op)| if branches { in_branches(at, *op) } else { *op });
        m.submit(1, false, ops);
        assert_eq!(run(&mut m), [(1, ends)], "branches: {branches}");
    }
}

#[test]
fn what_changes_flash_waits_for_copies_before_it_in_its_section() {
    for (ops, ends) in [
        ([of(1, 0, copy(0, 1)), of(1, 1, op(PROGRAM, 2))], 550 + 500),
        ([of(1, 0, copy(0, 1)), of(1, 1, op(OpKind::Flags, 2))], 550 + 500),
        ([of(1, 0, copy(0, 1)), of(1, 1, op(ERASE, 2))], 550 + 3000),
        ([of(1, 0, op(PROGRAM, 2)), of(1, 1, copy(0, 1))], 550),
        ([of(1, 0, copy(0, 1)), of(1, 1, op(READ, 2))], 550),
        ([of(1, 0, copy(0, 1)), of(1, 1, copy(2, 3))], 550),
        ([of(1, 0, op(PROGRAM, 2)), of(1, 1, op(PROGRAM, 3))], 500),
        ([of(1, 0, op(ERASE, 2)), of(1, 1, op(PROGRAM, 3))], 3000),
    ] {
        let mut m = machine(4, 1, false, &options());
        m.submit(1, false, ops.into_iter());
        assert_eq!(run(&mut m), [(1, ends)], "{ops:?}");
    }
}

#[test]
fn what_a_section_programs_is_read_in_it_afterwards() {
    let next = |op: Op| Op { page: Ppn(op.page.0 + 1), ..op };
    for (ops, ends) in [
        // On one die these take turns anyway, but the read would overtake.
        ([of(1, 0, op(PROGRAM, 0)), of(1, 1, op(PROGRAM, 1)), of(1, 2, op(READ, 1))], 500 + 50),
        ([of(1, 0, copy(0, 1)), of(1, 1, op(PROGRAM, 2)), of(1, 2, op(READ, 2))], 550 + 500 + 50),
        ([of(1, 0, copy(0, 1)), of(1, 1, op(PROGRAM, 2)), of(1, 2, next(op(READ, 2)))], 550 + 500),
        ([of(1, 0, copy(0, 1)), of(1, 1, op(READ, 2)), of(1, 2, copy(1, 3))], 550 + 550),
        ([of(1, 0, copy(0, 1)), of(1, 1, op(READ, 2)), of(1, 2, copy(2, 3))], 50 + 550),
    ] {
        let mut m = machine(4, 1, false, &options());
        m.submit(1, false, ops.into_iter());
        assert_eq!(run(&mut m), [(1, ends)], "{ops:?}");
    }
}

#[test]
fn sections_follow_each_other_and_steps_of_copies_do_not_join_them() {
    for (ops, ends) in [
        (vec![of(1, 0, op(READ, 0)), of(1, 1, op(READ, 1)), of(2, 0, op(READ, 2)), of(2, 1, op(READ, 3))], 50 + 50),
        (vec![of(1, 0, op(READ, 0)), of(1, 0, op(READ, 1)), of(1, 1, op(READ, 2))], 50 + 50),
        (vec![op(READ, 3), of(1, 0, op(READ, 0)), of(1, 1, op(READ, 1)), op(READ, 2)], 3 * 50),
        (vec![copy(0, 1), of(1, 0, copy(2, 3)), copy(1, 0)], 3 * 550),
        (vec![copy(0, 1), copy(2, 3)], 550),
    ] {
        let mut m = machine(4, 1, false, &options());
        m.submit(1, false, ops.iter().copied());
        assert_eq!(run(&mut m), [(1, ends)], "{ops:?}");
    }
}

#[test]
fn a_program_waits_for_the_erase_that_another_strand_did_before_it() {
    // The erase of block 1 starts when the read of block 0 has ended, although die 1 is idle
    // before.
    let mut m = machine(2, 1, false, &options());
    m.submit(1, false, [op(READ, 0), op(ERASE, 1)].into_iter());
    m.submit(2, false, [op(PROGRAM, 1)].into_iter());
    m.submit(3, false, [op(PROGRAM, 3)].into_iter()); // another block of that die need not wait
    assert_eq!(run(&mut m), [(3, 500), (1, 3500), (2, 4000)]);
}

#[test]
fn a_program_of_flags_waits_for_the_erase_as_any_other_and_can_be_suspended() {
    let mut m = machine(2, 1, false, &options());
    m.submit(1, false, [op(ERASE, 1)].into_iter());
    m.submit(2, false, [op(OpKind::Flags, 1)].into_iter());
    m.submit(3, false, [op(OpKind::Flags, 0)].into_iter());
    assert_eq!(run(&mut m), [(3, 500), (1, 3000), (2, 3500)]);
    let mut m = machine(1, 1, false, &QueueOptions { read_priority: true, suspend_ns: Some(30), ..options() });
    m.submit(1, false, [op(OpKind::Flags, 0)].into_iter());
    m.wait_until(100);
    m.submit(2, false, [op(READ, 1)].into_iter());
    assert_eq!(run(&mut m), [(2, 150), (1, 580)]);
}

#[test]
fn a_program_before_an_erase_of_its_own_strand_does_not_wait_for_it() {
    let mut m = machine(1, 1, false, &options());
    m.submit(1, false, [op(PROGRAM, 0), op(ERASE, 0), op(PROGRAM, 0)].into_iter());
    assert_eq!(run(&mut m), [(1, 500 + 3000 + 500)]);
}

#[test]
fn a_read_overtakes_what_waits_but_not_what_runs() {
    let priority = QueueOptions { read_priority: true, ..options() };
    for (options, ends) in [(priority, [(1, 500), (3, 550), (2, 1050)]), (options(), [(1, 500), (2, 1000), (3, 1050)])]
    {
        let mut m = machine(1, 1, false, &options);
        m.submit(1, false, [op(PROGRAM, 0)].into_iter());
        m.submit(2, false, [op(PROGRAM, 1)].into_iter());
        m.submit(3, false, [op(READ, 2)].into_iter());
        assert_eq!(run(&mut m), ends);
    }
}

#[test]
fn a_read_one_nanosecond_too_late_does_not_overtake() {
    let priority = QueueOptions { read_priority: true, ..options() };
    for (arrives_ns, ends) in [(499, [(1, 500), (3, 550), (2, 1050)]), (500, [(1, 500), (2, 1000), (3, 1050)])] {
        let mut m = machine(1, 1, false, &priority);
        m.submit(1, false, [op(PROGRAM, 0)].into_iter());
        m.submit(2, false, [op(PROGRAM, 1)].into_iter());
        let mut ended = run_until(&mut m, arrives_ns);
        m.wait_until(arrives_ns);
        m.submit(3, false, [op(READ, 2)].into_iter());
        ended.extend(run(&mut m));
        assert_eq!(ended, ends, "arrives at {arrives_ns}");
    }
}

#[test]
fn overtaking_is_bounded() {
    let bounded = QueueOptions { read_priority: true, max_overtakes: 2, ..options() };
    let mut m = machine(1, 1, false, &bounded);
    m.submit(1, false, [op(PROGRAM, 0)].into_iter());
    m.submit(2, false, [op(PROGRAM, 1)].into_iter());
    for token in 3..6 {
        m.submit(token, false, [op(READ, 2)].into_iter());
    }
    assert_eq!(run(&mut m), [(1, 500), (3, 550), (4, 600), (2, 1100), (5, 1150)]);
}

#[test]
fn suspension_costs_the_suspended() {
    let suspend = QueueOptions { read_priority: true, suspend_ns: Some(30), ..options() };
    for (arrives_ns, ends) in
        [(1000, [(2, 1050), (1, 3080)]), (2999, [(2, 3049), (1, 3080)]), (3000, [(1, 3000), (2, 3050)])]
    {
        let mut m = machine(1, 1, false, &suspend);
        m.submit(1, false, [op(ERASE, 0)].into_iter());
        let mut ended = run_until(&mut m, arrives_ns);
        m.wait_until(arrives_ns);
        m.submit(2, false, [op(READ, 1)].into_iter());
        ended.extend(run(&mut m));
        assert_eq!(ended, ends, "arrives at {arrives_ns}");
        assert_eq!(m.die_busy_ns().collect::<Vec<_>>(), [m.now_ns()]);
    }
}

#[test]
fn suspensions_are_bounded_too() {
    let suspend = QueueOptions { read_priority: true, suspend_ns: Some(30), max_overtakes: 1, ..options() };
    let mut m = machine(1, 1, false, &suspend);
    m.submit(1, false, [op(ERASE, 0)].into_iter());
    m.wait_until(100);
    m.submit(2, false, [op(READ, 1)].into_iter());
    let mut ended = run_until(&mut m, 200);
    m.wait_until(200);
    m.submit(3, false, [op(READ, 1)].into_iter());
    ended.extend(run(&mut m));
    assert_eq!(ended, [(2, 150), (1, 3080), (3, 3130)]);
}

#[test]
fn background_goes_last() {
    let mut m = machine(1, 1, false, &options());
    m.submit(1, true, [op(PROGRAM, 0)].into_iter());
    m.submit(2, true, [op(PROGRAM, 1)].into_iter());
    m.submit(3, false, [op(PROGRAM, 2)].into_iter());
    assert_eq!(run(&mut m), [(1, 500), (3, 1000), (2, 1500)]);
}

#[test]
fn background_that_a_request_waits_for_is_hurried() {
    let mut m = machine(1, 1, false, &options());
    m.submit(1, false, [op(PROGRAM, 2)].into_iter());
    m.submit(2, true, [op(ERASE, 0)].into_iter());
    m.submit(3, false, [op(PROGRAM, 3)].into_iter());
    // It waits for the erase, which goes before what came earlier.
    m.submit(4, false, [op(PROGRAM, 0)].into_iter());
    m.submit(5, false, [op(PROGRAM, 3)].into_iter());
    assert_eq!(run(&mut m), [(1, 500), (2, 3500), (3, 4000), (5, 4500), (4, 5000)]);
}

#[test]
fn what_hurried_background_waits_for_is_hurried() {
    let mut m = machine(1, 1, false, &options());
    m.submit(1, false, [op(PROGRAM, 2)].into_iter());
    m.submit(2, true, [op(ERASE, 0)].into_iter());
    m.submit(3, true, [copy(1, 0), op(ERASE, 1)].into_iter());
    m.submit(4, false, [op(PROGRAM, 1)].into_iter());
    m.submit(5, false, [op(PROGRAM, 3)].into_iter());
    // The copy reads; then what waited already, the erase of its target, its program, its erase.
    assert_eq!(run(&mut m), [(1, 500), (5, 1050), (2, 4050), (3, 7550), (4, 8050)]);
}

#[test]
fn saturated_dies_reach_their_rate_and_not_more() {
    // 32 dies and 500 ns a program: 64 programs a microsecond, transfers aside.
    let mut m = machine(8, 4, false, &options());
    let (total, mut submitted, mut ended) = (64_000_u32, 0_u32, 0_u32);
    while submitted < 64 {
        m.submit(submitted, false, [op(PROGRAM, submitted % 32)].into_iter());
        submitted += 1;
    }
    while ended < total {
        let tokens = m.run_event().to_vec();
        for token in tokens {
            ended += 1;
            m.submit(token, false, [op(PROGRAM, token % 32)].into_iter());
        }
    }
    let rate = f64::from(ended) / (m.now_ns() as f64 / 1000.0);
    assert!(rate <= 64.0 && rate > 64.0 * 0.98, "{rate} programs a microsecond");
}

#[test]
fn a_die_that_is_held_counts_as_busy_until_now() {
    let mut m = machine(2, 1, false, &options());
    m.submit(1, false, [op(PROGRAM, 0), op(READ, 1), op(READ, 0)].into_iter());
    for (now, busy) in [(499, [499, 0]), (500, [500, 0]), (520, [500, 20]), (570, [520, 50])] {
        run_until(&mut m, now);
        m.wait_until(now);
        assert_eq!(m.die_busy_ns().collect::<Vec<_>>(), busy, "at {now}");
    }
}

#[test]
fn nothing_is_held_longer_than_time_lasts() {
    let all = QueueOptions { read_priority: true, suspend_ns: Some(10), max_overtakes: 3, ..options() };
    let mut m = machine(2, 2, true, &all);
    let mut random = 12345_u32;
    let mut below = |end: u32| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 8) % end
    };
    let mut ended = 0;
    for token in 0..2000 {
        let ops: Vec<Op> = (0..=below(5))
            .map(|_| match below(4) {
                0 => op(READ, below(16)),
                1 => op(PROGRAM, below(16)),
                2 => copy(below(16), below(16)),
                _ => op(ERASE, below(16)),
            })
            .collect();
        m.submit(token, below(4) == 0, ops.into_iter());
        let until_ns = m.now_ns() + u64::from(below(3000));
        ended += run_until(&mut m, until_ns).len();
        m.wait_until(until_ns);
    }
    ended += run(&mut m).len();
    assert_eq!(ended, 2000, "every strand ends");
    for busy_ns in m.die_busy_ns().chain(m.channel_busy_ns()) {
        assert!(busy_ns > 0 && busy_ns <= m.now_ns(), "{busy_ns} of {}", m.now_ns());
    }
}

#[test]
fn neighbouring_dies_take_turns_to_read_where_they_share_a_queue() {
    // Dies 0, 2, 4 and 6 are on channel 0; 0 and 2 share a queue, and so do 4 and 6.
    let limits = Limits { read_queue_dies: 2, ..Limits::NONE };
    let ends = |ops: &[Op], limits| {
        let mut m = machine_within(2, 4, true, &options(), (false, limits));
        for (token, op) in (0..).zip(ops) {
            assert!(m.submit(token, false, [*op].into_iter()));
        }
        run(&mut m)
    };
    let reads = |dies: &[u32]| dies.iter().map(|die| op(READ, *die)).collect::<Vec<_>>();
    assert_eq!(ends(&reads(&[0, 2]), Limits::NONE), [(0, 60), (1, 70)]);
    assert_eq!(ends(&reads(&[0, 2]), limits), [(0, 60), (1, 120)], "the second read begins after the first");
    assert_eq!(ends(&reads(&[0, 4]), limits), [(0, 60), (1, 70)], "they share the channel alone");
    assert_eq!(ends(&reads(&[0, 1]), limits), [(0, 60), (1, 60)], "they share nothing");
    assert_eq!(ends(&reads(&[0, 2, 0]), limits), [(0, 60), (1, 120), (2, 180)], "first come, first served");
    let (spare, program) = (op(OpKind::SpareRead, 2), op(PROGRAM, 2));
    assert_eq!(ends(&[op(READ, 0), spare, program], limits), [(0, 60), (2, 510), (1, 531)], "a program overtakes");
    assert_eq!(ends(&[copy(0, 1), op(READ, 2)], limits), [(1, 120), (0, 570)], "the reading half of a copy is a read");
}

#[test]
fn reads_that_wait_for_a_queue_wait_for_their_die() {
    let limits = Limits { read_queue_dies: 2, ..Limits::NONE };
    let mut m = machine_within(1, 2, true, &options(), (false, limits));
    for (token, (die, background)) in (0..).zip([(0, false), (1, false), (1, false), (1, true)]) {
        assert!(m.submit(token, background, [op(READ, die)].into_iter()));
    }
    assert_eq!((m.waiting(0), m.waiting(1)), (1, 2));
    run_until(&mut m, 60);
    assert_eq!((m.waiting(0), m.waiting(1)), (0, 2));
    run(&mut m);
    assert_eq!((m.waiting(0), m.waiting(1)), (0, 0));
}

#[test]
fn a_read_waits_for_its_mapping_entry_if_an_earlier_one_still_fetches_that() {
    let table = |block| Op { purpose: Purpose::Translation, ..op(READ, block) };
    let ends_of = |pages: [u32; 3], first: Vec<Op>| {
        let mut m = machine(1, 4, false, &options());
        m.submit_read(0, Lpn(pages[0]), &(0..1), first.into_iter());
        m.submit_read(1, Lpn(pages[1]), &(0..1), [op(READ, 2)].into_iter());
        let mut ended = run_until(&mut m, 60);
        m.submit_read(2, Lpn(pages[2]), &(0..1), [op(READ, 3)].into_iter());
        ended.extend(run(&mut m));
        ended
    };
    let fetches = || vec![table(0), op(READ, 1)];
    assert_eq!(ends_of([5, 5, 5], fetches()), [(0, 100), (1, 100), (2, 100)]);
    assert_eq!(ends_of([5, 6, 5], fetches()), [(1, 50), (0, 100), (2, 100)], "of another page");
    assert_eq!(ends_of([5, 5, 6], vec![op(READ, 0), op(READ, 1)])[0], (1, 50), "nothing is fetched");
    let twice = ends_of([5, 5, 5], vec![table(0), table(1), op(READ, 1)]);
    assert_eq!(twice, [(0, 150), (1, 150), (2, 150)], "the entry comes with the second page of metadata");
}
