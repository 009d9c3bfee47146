//! Reads of parts of pages, on a device that transfers no more than what is asked for.
#![allow(clippy::unwrap_used)]

use crate::common::{TIMING, device, fixed};
use nand::profiles::Limits;
use openftl_sim::source::{Op, Request};
use openftl_sim::{GcMode, HostMode, PreconditionMode, QueueOptions, RunSpec, TimingMode, run};

const PAGE: u64 = 4096;

/// How long a read takes on a device with two written pages and nothing else to do, ns.
fn read_ns(limits: Limits, offset: u64, bytes: u64) -> u64 {
    let write = |page| Request { at_ns: 0, op: Op::Write, offset: page * PAGE, bytes: PAGE, fua: false };
    let read = Request { at_ns: 0, op: Op::Read, offset, bytes, fua: false };
    let device = device(1, 1, 128, 0.6).with_limits(limits);
    let mut spec = RunSpec::new("page", device, fixed(vec![write(0), write(1), read]));
    (spec.precondition, spec.writes) = (PreconditionMode::Off, 0);
    let host = HostMode::Closed { queue_depth: 1, think_ns: 0 };
    spec.timing = TimingMode::Queued(QueueOptions { host, gc: GcMode::Foreground, ..QueueOptions::default() });
    let read = run(&spec, &mut |_| {}).unwrap().latency_us.unwrap().read;
    assert_eq!(read.count, 1);
    (read.max * 1000.0).round() as u64
}

/// The array's time, and that of so many bytes with their share of the 64 B of spare area.
fn array_and(bytes: u64, bytes_per_us: u64) -> u64 {
    TIMING.read_ns + bytes * (PAGE + 64) / PAGE * 1000 / bytes_per_us
}

#[test]
fn a_read_transfers_the_units_that_it_touches_at_the_rate_of_reads() {
    let limits = Limits { read_unit_bytes: 512, channel_read_bytes_per_us: 100, ..Limits::NONE };
    let takes = |offset, bytes| read_ns(limits, offset, bytes);
    assert_eq!(takes(0, PAGE), array_and(PAGE, 100));
    assert_eq!(takes(PAGE + 1024, 512), array_and(512, 100));
    assert_eq!(takes(0, 1), array_and(512, 100));
    assert_eq!(takes(500, 100), array_and(1024, 100), "two units");
    assert_eq!(takes(PAGE - 1, 1), array_and(512, 100), "the last unit of a page");
}

#[test]
fn a_read_over_the_end_of_a_page_is_two_reads_of_one_die() {
    let limits = Limits { read_unit_bytes: 512, channel_read_bytes_per_us: 100, ..Limits::NONE };
    assert_eq!(read_ns(limits, PAGE - 512, 1536), array_and(512, 100) + array_and(1024, 100));
    assert_eq!(read_ns(limits, 0, 2 * PAGE), 2 * array_and(PAGE, 100));
}

#[test]
fn without_limits_a_read_transfers_whole_pages() {
    for bytes in [1, 512, PAGE] {
        assert_eq!(read_ns(Limits::NONE, 0, bytes), array_and(PAGE, TIMING.channel_bytes_per_us));
    }
}
