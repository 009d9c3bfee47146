//! The FTL as one serial stage.
#![allow(clippy::unwrap_used)]

use crate::common::{device, fixed, uniform};
use nand::profiles::Limits;
use openftl_sim::source::{Op, Request};
use openftl_sim::{HostMode, PreconditionMode, QueueOptions, RunSpec, TimingMode, run};

const PAGE: u64 = 4096;

/// Microseconds that a page takes on one die: 500 to program, 50 to read, and 10.4 on the channel.
const PROGRAM: f64 = 510.4;
const READ: f64 = 60.4;

/// Microseconds that the FTL takes for a page that is read, and for one that is written.
const FTL: [f64; 2] = [147.0, 85.0];

fn at(us: u64, op: Op, page: u64, pages: u64) -> Request {
    Request { at_ns: us * 1000, op, offset: page * PAGE, bytes: pages * PAGE, fua: false }
}

/// Longest latencies of writes, reads and flushes, microseconds, of requests that arrive in time.
fn longest(limits: Limits, requests: &[Request]) -> [f64; 3] {
    let mut spec = RunSpec::new("page", device(1, 4, 128, 0.6).with_limits(limits), fixed(requests.to_vec()));
    (spec.precondition, spec.writes, spec.config.lanes) = (PreconditionMode::Off, 0, 4);
    let host = HostMode::Open { time_scale: 1.0, outstanding: 64 };
    let ftl_page_ns = FTL.map(|us| us as u64 * 1000);
    spec.timing = TimingMode::Queued(QueueOptions { host, ftl_page_ns, ..QueueOptions::default() });
    let latency = run(&spec, &mut |_| {}).unwrap().latency_us.unwrap();
    [latency.write.max, latency.read.max, latency.flush.max]
}

#[track_caller]
fn expect(limits: Limits, requests: &[Request], expected: [f64; 3]) {
    let found = longest(limits, requests);
    let near = found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-6);
    assert!(near, "{found:?} instead of {expected:?} of {requests:?}");
}

#[test]
fn the_ftl_works_on_one_page_after_another() {
    let write = FTL[1] + PROGRAM;
    expect(Limits::NONE, &[at(0, Op::Write, 0, 1)], [write, 0.0, 0.0]);
    // Dies program side by side what the FTL hands them together; the channel takes turns.
    expect(Limits::NONE, &[at(0, Op::Write, 0, 2)], [2.0 * FTL[1] + PROGRAM + 10.4, 0.0, 0.0]);
    let written = at(0, Op::Write, 0, 1);
    expect(Limits::NONE, &[written, at(9000, Op::Read, 0, 1)], [write, FTL[0] + READ, 0.0]);
    let two = [written, at(9000, Op::Read, 0, 1), at(9000, Op::Read, 0, 1)];
    expect(Limits::NONE, &two, [write, 2.0 * FTL[0] + READ, 0.0]);
    // It has been idle since: nothing waits.
    let apart = [written, at(9000, Op::Read, 0, 1), at(9147, Op::Read, 9, 1)];
    expect(Limits::NONE, &apart, [write, FTL[0] + READ, 0.0]);
}

#[test]
fn a_flush_waits_for_the_writes_before_it_and_takes_the_ftl_no_time() {
    let write = FTL[1] + PROGRAM;
    expect(Limits::NONE, &[at(0, Op::Write, 0, 1), at(1, Op::Flush, 0, 0)], [write, 0.0, write - 1.0]);
    expect(Limits::NONE, &[at(0, Op::Flush, 0, 0)], [0.0; 3]);
}

#[test]
fn the_ftl_works_on_what_has_crossed_the_link() {
    let link = Limits { host_write_bytes_per_us: 4, ..Limits::NONE };
    // The page of the write crosses until 1024 us. The read comes first.
    let requests = [at(0, Op::Write, 0, 1), at(1, Op::Read, 0, 1)];
    expect(link, &requests, [1024.0 + FTL[1] + PROGRAM, FTL[0], 0.0]);
    let late = [at(0, Op::Write, 0, 1), at(1000, Op::Read, 9, 1)];
    expect(link, &late, [1000.0 + FTL[0] + FTL[1] + PROGRAM, FTL[0], 0.0]);
}

#[test]
fn many_clients_get_no_more_done_than_the_ftl() {
    let mut spec = RunSpec::new("page", device(4, 4, 256, 0.5), uniform(0, 0));
    (spec.precondition, spec.writes, spec.config.lanes) = (PreconditionMode::Off, 5000, 16);
    let host = HostMode::Closed { queue_depth: 64, think_ns: 0 };
    let with = |ftl_page_ns| TimingMode::Queued(QueueOptions { host, ftl_page_ns, ..QueueOptions::default() });
    let mut iops = |ftl_page_ns| {
        spec.timing = with(ftl_page_ns);
        run(&spec, &mut |_| {}).unwrap().throughput.unwrap().iops
    };
    let free = iops([0; 2]);
    let bound = iops([147_000, 85_000]);
    assert!(free > 20_000.0 && (bound * 85e-6 - 1.0).abs() < 0.01, "{free} and {bound} requests/s");
}
