//! The link between host and device, and queues that are full.
#![allow(clippy::unwrap_used)]

use crate::common::{device, fixed, uniform};
use nand::profiles::Limits;
use openftl_sim::source::{Op, Request};
use openftl_sim::{HostMode, PreconditionMode, QueueOptions, RunResult, RunSpec, TimingMode, run};

const PAGE: u64 = 4096;

/// Microseconds that a page takes on one die: 500 to program, 50 to read, and 10.4 on the channel.
const PROGRAM: f64 = 510.4;
const READ: f64 = 60.4;

/// A page takes 64 µs to the device and 32 µs from there.
const LINK: Limits = Limits { host_write_bytes_per_us: 64, host_read_bytes_per_us: 128, ..Limits::NONE };

/// A request of a whole page, or a flush, in microseconds.
fn at(us: u64, op: Op, page: u64) -> Request {
    let bytes = if op == Op::Flush { 0 } else { PAGE };
    Request { at_ns: us * 1000, op, offset: page * PAGE, bytes, fua: false }
}

fn timed(requests: &[Request], limits: Limits, host: HostMode) -> RunResult {
    let mut spec = RunSpec::new("page", device(1, 1, 128, 0.6).with_limits(limits), fixed(requests.to_vec()));
    (spec.precondition, spec.writes) = (PreconditionMode::Off, 0);
    spec.timing = TimingMode::Queued(QueueOptions { host, ..QueueOptions::default() });
    run(&spec, &mut |_| {}).unwrap()
}

const OPEN: HostMode = HostMode::Open { time_scale: 1.0, outstanding: 64 };

/// Sum and longest of the latencies of writes, reads and flushes, microseconds.
fn latencies(result: &RunResult) -> [(f64, f64); 3] {
    let latency = result.latency_us.as_ref().unwrap();
    [&latency.write, &latency.read, &latency.flush].map(|kind| (kind.mean * kind.count as f64, kind.max))
}

fn expect(limits: Limits, requests: &[Request], expected: [(f64, f64); 3]) {
    let found = latencies(&timed(requests, limits, OPEN));
    for (found, expected) in found.iter().zip(&expected) {
        let near = (found.0 - expected.0).abs() < 1e-6 && (found.1 - expected.1).abs() < 1e-6;
        assert!(near, "{found:?} instead of {expected:?} of {requests:?}");
    }
}

const NONE: (f64, f64) = (0.0, 0.0);

#[test]
fn what_is_written_crosses_before_flash_works() {
    let first = 64.0 + PROGRAM;
    expect(LINK, &[at(0, Op::Write, 0)], [(first, first), NONE, NONE]);
    // Half a sector crosses in 4 µs.
    let part = Request { bytes: 256, ..at(0, Op::Write, 0) };
    expect(LINK, &[part], [(4.0 + PROGRAM, 4.0 + PROGRAM), NONE, NONE]);
    // The second crosses while flash programs the first.
    let second = first + PROGRAM;
    expect(LINK, &[at(0, Op::Write, 0), at(0, Op::Write, 1)], [(first + second, second), NONE, NONE]);
    // A link slower than flash is what both wait for.
    let slow = Limits { host_write_bytes_per_us: 4, ..Limits::NONE };
    let (first, second) = (1024.0 + PROGRAM, 2048.0 + PROGRAM);
    expect(slow, &[at(0, Op::Write, 0), at(0, Op::Write, 1)], [(first + second, second), NONE, NONE]);
}

#[test]
fn what_is_read_crosses_after_flash_has_worked() {
    let written = at(0, Op::Write, 0);
    let write = (64.0 + PROGRAM, 64.0 + PROGRAM);
    expect(LINK, &[written, at(1000, Op::Read, 0)], [write, (READ + 32.0, READ + 32.0), NONE]);
    let (first, second) = (READ + 32.0, 2.0 * READ + 32.0);
    let twice = [written, at(1000, Op::Read, 0), at(1000, Op::Read, 0)];
    expect(LINK, &twice, [write, (first + second, second), NONE]);
    let slow = Limits { host_read_bytes_per_us: 32, ..LINK };
    let (first, second) = (READ + 128.0, READ + 256.0);
    expect(slow, &twice, [write, (first + second, second), NONE]);
    // What was never written crosses too, and beside what is written at that time.
    expect(LINK, &[written, at(1, Op::Read, 9)], [write, (32.0, 32.0), NONE]);
    // A read of what is still on the link is done before it.
    expect(LINK, &[written, at(1, Op::Read, 0)], [write, (32.0, 32.0), NONE]);
}

#[test]
fn flushes_and_trims_stay_behind_the_writes_before_them() {
    let write = (64.0 + PROGRAM, 64.0 + PROGRAM);
    let flush = 63.0 + PROGRAM;
    expect(LINK, &[at(0, Op::Write, 0), at(1, Op::Flush, 0)], [write, NONE, (flush, flush)]);
    // Before anything is written a flush takes no time.
    expect(LINK, &[at(0, Op::Flush, 0)], [NONE, NONE, NONE]);
    // The page was trimmed after it was written: nothing of it is read from flash.
    let trimmed = [at(0, Op::Write, 0), at(1, Op::Trim, 0), at(1000, Op::Read, 0)];
    expect(LINK, &trimmed, [write, (32.0, 32.0), NONE]);
}

#[test]
fn clients_wait_for_the_link_too() {
    let one = HostMode::Closed { queue_depth: 1, think_ns: 0 };
    let result = timed(&[at(0, Op::Write, 0), at(0, Op::Write, 1), at(0, Op::Read, 0)], LINK, one);
    let write = 64.0 + PROGRAM;
    let found = latencies(&result);
    assert!((found[0].0 - 2.0 * write).abs() < 1e-6 && (found[1].1 - READ - 32.0).abs() < 1e-6, "{found:?}");
    let seconds = result.throughput.unwrap().simulated_s;
    assert!((seconds * 1e6 - 2.0 * write - READ - 32.0).abs() < 1e-6, "{seconds}");
}

/// Reads go first on a die, but not before they have entered.
#[test]
fn requests_wait_outside_while_a_queue_is_full() {
    let requests = [
        at(0, Op::Write, 9),
        at(10_000, Op::Write, 0),
        at(10_000, Op::Write, 1),
        at(10_000, Op::Write, 2),
        at(10_000, Op::Write, 3),
        at(10_001, Op::Read, 9),
    ];
    // So many of the four programs at once come before the read, and the others after it.
    let expected = |before: f64| {
        let writes = PROGRAM + PROGRAM * 10.0 + (4.0 - before) * READ;
        let longest = 4.0 * PROGRAM + if before < 4.0 { READ } else { 0.0 };
        let read = before * PROGRAM + READ - 1.0;
        [(writes, longest), (read, read), NONE]
    };
    expect(Limits::NONE, &requests, expected(1.0));
    for (queue_depth, before) in [(5, 1.0), (4, 2.0), (3, 3.0), (2, 4.0), (1, 4.0)] {
        expect(Limits { queue_depth, ..Limits::NONE }, &requests, expected(before));
    }
}

#[test]
fn a_client_waits_from_when_it_has_a_request() {
    let requests: Vec<Request> = (0..6).map(|page| at(0, Op::Write, page)).collect();
    let clients = HostMode::Closed { queue_depth: 6, think_ns: 0 };
    let found = |queue_depth| latencies(&timed(&requests, Limits { queue_depth, ..Limits::NONE }, clients));
    assert!((found(0)[0].1 - 6.0 * PROGRAM).abs() < 1e-6);
    assert_eq!(found(1), found(0));
    assert_eq!(found(3), found(0));
}

/// What is on the link counts as written, or a run would write more than it was asked for.
#[test]
fn a_run_writes_as_many_pages_as_it_is_asked_for() {
    let slow = Limits { host_write_bytes_per_us: 4, ..LINK };
    let mut spec = RunSpec::new("page", device(1, 2, 128, 0.6).with_limits(slow), uniform(20, 0));
    (spec.precondition, spec.writes) = (PreconditionMode::Fill(0.5), 3000);
    let counted = run(&spec, &mut |_| {}).unwrap();
    spec.timing = TimingMode::Queued(QueueOptions::default());
    let timed = run(&spec, &mut |_| {}).unwrap();
    assert_eq!(counted.host, timed.host);
}
