//! Runs with a write buffer.
#![allow(clippy::unwrap_used)]

use crate::common::{Random, device, fixed, uniform};
use buffer::Replacement;
use nand::profiles::Limits;
use nand::sim::SimNand;
use openftl_sim::result::{HostResult, WriteBufferResult};
use openftl_sim::source::{Op, Request};
use openftl_sim::{
    GcMode, HostMode, PreconditionMode, QueueOptions, RunResult, RunSpec, SteadyOptions, TimingMode, WorkloadSpec,
    WriteBufferOptions, run,
};
use table::table;

const PAGE: u64 = 4096;

fn go(spec: &RunSpec) -> RunResult {
    run(spec, &mut |_| {}).unwrap_or_else(|e| panic!("{}: {e}", spec.ftl))
}

fn policies() -> [Replacement; 3] {
    Replacement::TABLE.map(|row| row.1)
}

fn buffer(pages: u32, policy: Replacement) -> Option<WriteBufferOptions> {
    Some(WriteBufferOptions { pages, policy })
}

fn queued(host: HostMode) -> TimingMode {
    TimingMode::Queued(QueueOptions { host, ..QueueOptions::default() })
}

/// A run of an FTL on a new device of four dies.
fn new(ftl: &str, workload: WorkloadSpec) -> RunSpec {
    let mut spec = RunSpec::new(ftl, device(2, 2, 128, 0.6), workload);
    let entry = table::<SimNand>().into_iter().find(|entry| entry.info.name == ftl).unwrap();
    spec.device.capabilities.program_order = entry.info.program_order;
    (spec.precondition, spec.writes) = (PreconditionMode::Off, 0);
    spec
}

fn names() -> Vec<&'static str> {
    table::<SimNand>().iter().map(|entry| entry.info.name).collect()
}

/// A request of a part of a page, in the order of the list.
fn request(op: Op, page: u64, first: u64, bytes: u64) -> Request {
    Request { at_ns: 0, op, offset: page * PAGE + first, bytes, fua: false }
}

fn write(page: u64, first: u64, bytes: u64) -> Request {
    request(Op::Write, page, first, bytes)
}

fn read(page: u64, first: u64, bytes: u64) -> Request {
    request(Op::Read, page, first, bytes)
}

fn trim(page: u64, pages: u64) -> Request {
    request(Op::Trim, page, 0, pages * PAGE)
}

const FLUSH: Request = Request { at_ns: 0, op: Op::Flush, offset: 0, bytes: 0, fua: false };

/// What the host, the buffer and flash did: `page` on a new device, and four pages of room.
fn counted(requests: &[Request]) -> (HostResult, WriteBufferResult, u64, u64) {
    let mut spec = new("page", fixed(requests.to_vec()));
    spec.write_buffer = buffer(4, Replacement::Lru);
    let result = go(&spec);
    let flash = result.flash.host;
    (result.host, result.write_buffer.unwrap(), flash.programs, flash.reads)
}

#[test]
fn eight_parts_of_a_page_are_one_program_and_no_read() {
    let eighths: Vec<Request> = (0..8).map(|part| write(5, part * 512, 512)).collect();
    let (host, buffer, programs, reads) = counted(&eighths);
    assert_eq!((host.writes, host.rmw_reads, programs, reads), (8, 0, 1, 0));
    assert_eq!((buffer.write_hits, buffer.coalesced_bytes, buffer.at_end, buffer.programmed), (7, 7 * 512, 1, 1));
    assert_eq!((buffer.policy.as_str(), buffer.pages, buffer.sector_bytes), ("lru", 4, 512));
    // Without a buffer seven of them read what the one before programmed.
    let result = go(&new("page", fixed(eighths)));
    assert_eq!((result.flash.host.programs, result.flash.host.reads, result.write_buffer), (8, 7, None));
}

#[test]
fn a_page_is_read_once_and_only_if_it_lacks_what_flash_has() {
    let whole = write(5, 0, PAGE);
    for (requests, programs, reads) in [
        // Flash has nothing of the page.
        (vec![write(5, 0, 100), write(5, 2000, 2000)], 1, 0),
        (vec![whole, FLUSH, write(5, 0, 512), write(5, 1024, 512)], 2, 1),
        (vec![whole, FLUSH, write(5, 0, 512), write(5, 512, PAGE - 512)], 2, 0),
        // Two writes that cover a half of a sector each do not hold it.
        (vec![whole, FLUSH, write(5, 0, 300), write(5, 300, PAGE - 300)], 2, 1),
        // A trim forgets what flash had.
        (vec![whole, FLUSH, trim(5, 1), write(5, 0, 512)], 2, 0),
    ] {
        let (host, buffer, done, read) = counted(&requests);
        assert_eq!((done, read), (programs, reads), "{requests:?}");
        assert_eq!((host.rmw_reads, buffer.completing_reads), (reads, reads), "{requests:?}");
    }
}

#[test]
fn reads_trims_and_flushes_by_hand() {
    let (host, buffer, programs, reads) = counted(&[
        write(0, 0, PAGE),
        FLUSH,
        write(0, 512, 512),
        read(0, 512, 512),  // all of it
        read(0, 600, 10),   // all of it
        read(0, 0, 1024),   // a part
        read(0, 1024, 512), // nothing: from flash
        read(1, 0, 512),    // nothing, nowhere
        write(1, 0, PAGE),  // never programmed
        write(1, 0, 8),     // a hit
        trim(1, 1),
        trim(0, 1), // with what flash has
        read(0, 0, PAGE),
        write(2, 0, 2 * PAGE),
        trim(2, 1),
        Request { bytes: 2 * PAGE - 1, ..trim(2, 1) }, // page 3 in part: it stays
        FLUSH,
    ]);
    assert_eq!((host.writes, host.reads, host.trims, host.flushes), (1 + 1 + 2 + 2, 6, 1 + 1 + 1 + 1, 2));
    assert_eq!((buffer.write_hits, buffer.coalesced_bytes), (1, 8));
    assert_eq!((buffer.read_hits, buffer.read_hits_in_part), (2, 1));
    assert_eq!((buffer.trimmed, buffer.evicted, buffer.flushed, buffer.at_end), (3, 0, 2, 0));
    assert_eq!((programs, reads, buffer.programmed), (2, 2, 2));
}

fn fua(request: Request) -> Request {
    Request { fua: true, ..request }
}

#[test]
fn a_write_with_fua_goes_through_with_what_is_held_of_its_pages() {
    let (host, buffer, programs, reads) = counted(&[
        write(0, 0, 512),
        write(1, 0, 512),
        fua(write(0, 512, PAGE - 512)), // completes what is held
        read(0, 0, 512),                // from flash
        fua(write(2, 0, PAGE)),         // was never held
        fua(write(2, 0, 512)),          // flash has the rest
        trim(1, 1),                     // was not touched by any of that
    ]);
    assert_eq!((host.writes, host.flushes, host.rmw_reads), (5, 0, 1));
    assert_eq!((buffer.written_through, buffer.programmed, buffer.trimmed, buffer.at_end), (3, 3, 1, 0));
    assert_eq!((buffer.write_hits, buffer.completing_reads, programs, reads), (1, 1, 3, 2));
}

/// Every FTL keeps a write from its completion on, with a battery where its paper assumes one: FUA
/// asks nothing more of it than to be given the write.
#[test]
fn without_a_buffer_fua_changes_nothing() {
    assert!(ftl::ftls::infos().iter().all(|info| info.durable != ftl::ftls::Durability::OnFlush));
    let writes = |force: fn(Request) -> Request| {
        let requests = [write(0, 0, PAGE), write(1, 0, 512), write(0, 0, 2 * PAGE)];
        let mut spec = new("dftl", fixed(requests.map(force).to_vec()));
        let counted = go(&spec).digest();
        spec.timing = queued(HostMode::default());
        [counted, go(&spec).digest()]
    };
    assert_eq!(writes(fua), writes(|request| request));
}

#[test]
fn the_policy_says_which_page_leaves() {
    // Room for two pages: which of 0 and 1 is programmed before the read of 0 is a hit or not.
    let requests = vec![write(0, 0, PAGE), write(1, 0, PAGE), write(0, 0, 512), write(2, 0, PAGE), read(0, 0, 512)];
    for (policy, hits) in [(Replacement::Fifo, 0), (Replacement::Lru, 1), (Replacement::BlockLru, 0)] {
        let mut spec = new("page", fixed(requests.clone()));
        spec.write_buffer = buffer(2, policy);
        let buffer = go(&spec).write_buffer.unwrap();
        assert_eq!(buffer.read_hits, hits, "{policy:?}");
        let evicted = if policy == Replacement::BlockLru { 2 } else { 1 };
        assert_eq!((buffer.evicted, buffer.at_end), (evicted, 3 - evicted), "{policy:?}");
    }
}

/// A buffer of one page hands every page on as the next comes, in the same order.
#[test]
fn a_buffer_of_one_page_changes_nothing_if_no_page_is_written_twice_in_a_row() {
    let mut random = Random(7);
    let mut last = 0;
    let mut next = || {
        last = (last + 1 + random.below(9000)) % 9800;
        write(last, 0, PAGE)
    };
    let requests: Vec<Request> = (0..30_000).map(|_| next()).collect();
    for name in names() {
        let mut spec = new(name, fixed(requests.clone()));
        let without = go(&spec);
        spec.write_buffer = buffer(1, Replacement::Lru);
        let with = go(&spec);
        assert_eq!(with.flash, without.flash, "{name}");
        assert_eq!((&with.host, &with.wear), (&without.host, &without.wear), "{name}");
        let buffer = with.write_buffer.unwrap();
        assert_eq!((buffer.evicted, buffer.at_end, buffer.write_hits), (29_999, 1, 0), "{name}");
        // The place of a page: its contents, 12 B, and a bit for each of eight sectors.
        assert_eq!(with.ram_bytes["write_buffer"], PAGE + 12 + 1);
        assert_eq!(with.ram_bytes["total"] - without.ram_bytes["total"], PAGE + 13, "{name}");
    }
}

/// Whole pages, parts, reads, trims and flushes.
fn mixed() -> WorkloadSpec {
    let text = "zipf:theta=0.9,reads=20,trims=2,flush=500,size=512*40+page*30+3KiB*20+12KiB*10,align=512";
    WorkloadSpec::synthetic(text).unwrap()
}

#[test]
fn every_ftl_keeps_what_is_written_through_a_buffer_and_time_changes_no_count() {
    for (at, name) in names().into_iter().enumerate() {
        let mut spec = new(name, mixed());
        spec.writes = 15_000;
        spec.precondition = PreconditionMode::Steady(SteadyOptions { max_windows: 3, ..SteadyOptions::default() });
        spec.write_buffer = buffer(64, policies()[at % 3]);
        let counted = go(&spec);
        spec.timing = queued(HostMode::Closed { queue_depth: 8, think_ns: 0 });
        let timed = go(&spec);
        assert_eq!(counted.flash, timed.flash, "{name}");
        assert_eq!((counted.host, &counted.wear), (timed.host, &timed.wear), "{name}");
        assert_eq!(counted.write_buffer, timed.write_buffer, "{name}");
        let (host, buffer) = (counted.host, counted.write_buffer.unwrap());
        assert!(buffer.evicted > 1000 && buffer.flushed > 100 && buffer.trimmed > 0, "{name}: {buffer:?}");
        assert!(buffer.read_hits > 100 && buffer.read_hits_in_part > 10, "{name}: {buffer:?}");
        let entered = host.writes - buffer.write_hits;
        assert_eq!(entered, buffer.trimmed + buffer.programmed, "{name}");
        assert_eq!(buffer.programmed, buffer.evicted + buffer.flushed + buffer.at_end, "{name}");
        assert_eq!(
            (buffer.programmed, host.rmw_reads),
            (counted.flash.host.programs, buffer.completing_reads),
            "{name}"
        );
    }
}

#[test]
fn a_larger_buffer_programs_less_under_skewed_writes() {
    for workload in ["zipf:theta=0.99", "hotcold:space=1,writes=90"] {
        for policy in [Replacement::Fifo, Replacement::Lru] {
            let programs = [0, 16, 64, 256, 1024].map(|pages| {
                let mut spec = new("page", WorkloadSpec::synthetic(workload).unwrap());
                spec.precondition = PreconditionMode::Fill(1.0);
                spec.writes = 20_000;
                spec.write_buffer = buffer(pages, policy).filter(|_| pages > 0);
                let result = go(&spec);
                assert_eq!(result.host.writes, 20_000);
                result.flash.host.programs
            });
            assert_eq!(programs[0], 20_000);
            assert!(programs.windows(2).all(|pair| pair[1] < pair[0]), "{workload}, {policy:?}: {programs:?}");
            assert!(programs[4] < 12_000, "{workload}, {policy:?}: {programs:?}");
        }
    }
}

#[test]
fn sub_page_writes_in_sequence_program_each_page_once() {
    for policy in policies() {
        let requests = (0..40_000).map(|at| write(0, at * 512, 512)).collect();
        let mut spec = new("page", fixed(requests));
        spec.write_buffer = buffer(8, policy);
        let result = go(&spec);
        assert_eq!((result.host.writes, result.host.rmw_reads), (40_000, 0));
        assert_eq!((result.flash.host.programs, result.flash.host.reads), (5000, 0), "{policy:?}");
        assert_eq!(result.write_amplification.programs_per_write, 0.125);
    }
}

#[test]
fn what_has_no_meaning_is_refused() {
    let error = |change: &dyn Fn(&mut RunSpec)| {
        let mut spec = new("page", uniform(0, 0));
        spec.writes = 10;
        spec.write_buffer = buffer(4, Replacement::Lru);
        change(&mut spec);
        run(&spec, &mut |_| {}).unwrap_err().to_string()
    };
    let logical = new("page", uniform(0, 0)).device.logical_pages;
    for pages in [0, logical + 1] {
        let found = error(&|spec| spec.write_buffer = buffer(pages, Replacement::Lru));
        assert_eq!(
            found,
            format!("write buffer: {pages} pages are not between 1 and the {logical} pages that the host sees")
        );
    }
    let found = error(&|spec| spec.config.placement = Some("fk"));
    assert!(found.contains("`fk` has to know the order of all writes, and a write buffer changes it"), "{found}");
}

#[test]
fn a_power_cut_after_the_run_finds_what_was_written_out() {
    let mut spec = new("gecko", mixed());
    spec.workload = WorkloadSpec::synthetic("zipf:theta=0.9,size=512*50+page*50,align=512").unwrap();
    spec.writes = 5000;
    spec.write_buffer = buffer(64, Replacement::Lru);
    spec.power_cut = true;
    let result = go(&spec);
    assert!(result.write_buffer.unwrap().at_end == 64 && result.mount.is_some());
    assert_eq!(result.verified_pages, u64::from(spec.device.logical_pages));
}

/// Each of one die takes 500 µs to program and 50 µs to read, and 4160 B at 400 MB/s, 10.4 µs.
const PROGRAM_US: f64 = 510.4;
const READ_US: f64 = 60.4;
const CONTROLLER_US: f64 = 5.0;

/// Requests at these microseconds, on one die with room for two pages.
fn timed(requests: &[(u64, Request)], policy: Replacement, gc: GcMode) -> RunResult {
    let at = |&(us, request): &(u64, Request)| Request { at_ns: us * 1000, ..request };
    let mut spec = RunSpec::new("page", device(1, 1, 128, 0.6), fixed(requests.iter().map(at).collect()));
    (spec.precondition, spec.writes) = (PreconditionMode::Off, 0);
    spec.write_buffer = buffer(2, policy);
    let host = HostMode::Open { time_scale: 1.0, outstanding: 64 };
    spec.timing = TimingMode::Queued(QueueOptions { host, gc, controller_ns: 5000, ..QueueOptions::default() });
    go(&spec)
}

/// Sum, longest and number of the latencies of writes, reads and flushes, without the controller's.
fn latencies(requests: &[(u64, Request)]) -> [(f64, f64, u64); 3] {
    let latency = timed(requests, Replacement::Lru, GcMode::Foreground).latency_us.unwrap();
    [latency.write, latency.read, latency.flush].map(|kind| {
        let count = kind.count as f64;
        (count * (kind.mean - CONTROLLER_US), (kind.max - CONTROLLER_US).max(0.0), kind.count)
    })
}

fn near(found: [(f64, f64, u64); 3], expected: [(f64, f64, u64); 3]) {
    for (found, expected) in found.iter().zip(&expected) {
        let same = (found.0 - expected.0).abs() < 1e-6 && (found.1 - expected.1).abs() < 1e-6;
        assert!(same && found.2 == expected.2, "{found:?} instead of {expected:?}");
    }
}

const NONE: (f64, f64, u64) = (0.0, 0.0, 0);

#[test]
fn a_write_that_fits_takes_no_time_and_one_that_evicts_waits_for_a_program() {
    let whole = |page| write(page, 0, PAGE);
    near(latencies(&[(0, whole(0)), (1, whole(1)), (2, write(0, 0, 8))]), [(0.0, 0.0, 3), NONE, NONE]);
    let evicts =
        [(0, whole(0)), (1, whole(1)), (2, whole(0)), (3, whole(2)), (600, read(1, 0, 1)), (601, read(0, 0, 1))];
    near(latencies(&evicts), [(PROGRAM_US, PROGRAM_US, 4), (READ_US, READ_US, 2), NONE]);
    // Two programs on one die follow each other; so does the second wait.
    let twice = [(0, whole(0)), (1, whole(1)), (3, whole(2)), (4, whole(3))];
    let second = 2.0 * PROGRAM_US - 1.0;
    near(latencies(&twice), [(PROGRAM_US + second, second, 4), NONE, NONE]);
    // A write to a page that waits for room waits with it; a read of it does not.
    let joins = [(0, whole(0)), (1, whole(1)), (3, whole(2)), (5, write(2, 0, 512)), (6, read(2, 0, 512))];
    near(latencies(&joins), [(2.0 * PROGRAM_US - 2.0, PROGRAM_US, 4), (0.0, 0.0, 1), NONE]);
}

#[test]
fn a_flush_waits_for_everything_that_leaves() {
    let whole = |page| write(page, 0, PAGE);
    let two = 2.0 * PROGRAM_US;
    near(latencies(&[(0, whole(0)), (1, whole(1)), (2, FLUSH)]), [(0.0, 0.0, 2), NONE, (two, two, 1)]);
    // What is held in part is read first.
    let part = [(0, whole(0)), (1, FLUSH), (1000, write(0, 0, 512)), (1001, read(0, 0, PAGE)), (2000, FLUSH)];
    let (first, second) = (PROGRAM_US, READ_US + PROGRAM_US);
    near(latencies(&part), [(0.0, 0.0, 2), (READ_US, READ_US, 1), (first + second, second, 2)]);
    // Also for what others had leave, and the writes that wait get their places as before.
    let behind = [(0, whole(0)), (1, whole(1)), (3, whole(2)), (4, whole(3)), (7, FLUSH), (8, FLUSH)];
    let second = 2.0 * PROGRAM_US - 1.0;
    let flush = 4.0 * PROGRAM_US - 4.0;
    near(latencies(&behind), [(PROGRAM_US + second, second, 4), NONE, (2.0 * flush - 1.0, flush, 2)]);
    // Requests behind a flush do not wait for it, but for places.
    let after = [(0, whole(0)), (1, FLUSH), (2, whole(1)), (3, whole(2))];
    near(latencies(&after), [(PROGRAM_US - 2.0, PROGRAM_US - 2.0, 3), NONE, (PROGRAM_US, PROGRAM_US, 1)]);
    let empty = [(0, FLUSH)];
    near(latencies(&empty), [NONE, NONE, (0.0, 0.0, 1)]);
}

#[test]
fn a_write_with_fua_ends_with_its_own_program() {
    let whole = |page| write(page, 0, PAGE);
    let alone = [(0, whole(0)), (1, whole(1)), (2, fua(whole(2)))];
    near(latencies(&alone), [(PROGRAM_US, PROGRAM_US, 3), NONE, NONE]);
    // The place of a page that was held is free once it is programmed.
    let held = [(0, whole(0)), (1, whole(1)), (2, fua(write(0, 0, 8))), (3, whole(2)), (4, whole(3))];
    let second = 2.0 * PROGRAM_US - 2.0;
    near(latencies(&held), [(PROGRAM_US + PROGRAM_US - 1.0 + second, second, 5), NONE, NONE]);
    // So is that of one that still waited for room.
    let waits = [(0, whole(0)), (1, whole(1)), (2, whole(2)), (3, fua(write(2, 0, 8))), (4, FLUSH)];
    let (itself, flush) = (2.0 * PROGRAM_US - 1.0, 3.0 * PROGRAM_US - 2.0);
    near(latencies(&waits), [(PROGRAM_US + itself, itself, 4), NONE, (flush, flush, 1)]);
}

#[test]
fn a_trim_frees_places_at_once() {
    let whole = |page| write(page, 0, PAGE);
    let freed = [(0, whole(0)), (1, whole(1)), (2, trim(0, 1)), (3, whole(2))];
    near(latencies(&freed), [(0.0, 0.0, 3), NONE, NONE]);
    // Page 2 waits for the place of page 0, and gets that of page 1.
    let waits = [(0, whole(0)), (1, whole(1)), (3, whole(2)), (9, trim(1, 1))];
    near(latencies(&waits), [(6.0, 6.0, 3), NONE, NONE]);
    let itself = [(0, whole(0)), (1, whole(1)), (3, whole(2)), (10, trim(2, 1))];
    near(latencies(&itself), [(7.0, 7.0, 3), NONE, NONE]);
}

/// Many clients, a small buffer, requests larger than it, trims of what waits: none is forgotten.
#[test]
fn every_request_ends_whatever_the_buffer_holds() {
    for (seed, policy) in (0..6).zip(policies().into_iter().cycle()) {
        let mut random = Random(seed);
        let mut any = || match random.below(10) {
            0 => FLUSH,
            1 => trim(random.below(40), 1 + random.below(6)),
            2 | 3 => read(random.below(40), random.below(4096), 1 + random.below(9000)),
            4 => fua(write(random.below(40), random.below(8) * 512, 512 * (1 + random.below(20)))),
            _ => write(random.below(40), random.below(8) * 512, 512 * (1 + random.below(40))),
        };
        let requests: Vec<Request> = (0..3000).map(|_| any()).collect();
        let count = |op| requests.iter().filter(|request| request.op == op).count() as u64;
        let counts = [Op::Write, Op::Read, Op::Flush].map(count);
        let limits = Limits { queue_depth: 3, host_read_bytes_per_us: 50, host_write_bytes_per_us: 20, ..Limits::NONE };
        let all = [(1, GcMode::Foreground, limits), (24, GcMode::Ahead, Limits::NONE), (24, GcMode::Idle, limits)];
        for (clients, gc, limits) in all {
            let mut spec = new("dftl", fixed(requests.clone()));
            spec.device.limits = limits;
            spec.write_buffer = buffer(1 + seed as u32, policy);
            let host = HostMode::Closed { queue_depth: clients, think_ns: 0 };
            spec.timing = TimingMode::Queued(QueueOptions { host, gc, ..QueueOptions::default() });
            let latency = go(&spec).latency_us.unwrap();
            assert_eq!([latency.write.count, latency.read.count, latency.flush.count], counts, "{clients} clients");
        }
    }
}
