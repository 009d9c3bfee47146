//! Whole runs of the FTLs in the table.
#![allow(clippy::unwrap_used)]

use crate::common::{Fixed, Random, TIMING, device, fixed, uniform};
use ftl::victim::by_bank::Policy;
use nand::sim::SimNand;
use openftl_sim::reference::{Rates, lfs_write_amplification};
use openftl_sim::source::{Op, Request};
use openftl_sim::{
    DevicePlan, First, GcMode, HostMode, OwnWrites, Phase, PreconditionMode, QueueOptions, RunResult, RunSpec,
    SimError, SteadyOptions, TimingMode, WorkloadSpec, run,
};
use std::sync::Arc;
use table::table;
use workload::trace::{Map, record};

fn names() -> Vec<&'static str> {
    table::<SimNand>().iter().map(|entry| entry.info.name).collect()
}

fn go(spec: &RunSpec) -> RunResult {
    run(spec, &mut |_| {}).unwrap_or_else(|e| panic!("{}: {e}", spec.ftl))
}

/// A small aged run.
fn small(ftl: &str, workload: WorkloadSpec) -> RunSpec {
    let mut spec = RunSpec::new(ftl, device(2, 2, 128, 0.6), workload);
    let entry = table::<SimNand>().into_iter().find(|entry| entry.info.name == ftl).unwrap();
    spec.device.capabilities.program_order = entry.info.program_order;
    spec.writes = 20_000;
    spec.precondition = PreconditionMode::Steady(SteadyOptions { max_windows: 4, ..SteadyOptions::default() });
    spec
}

fn queued(host: HostMode, gc: GcMode) -> TimingMode {
    TimingMode::Queued(QueueOptions { host, gc, ..QueueOptions::default() })
}

#[test]
fn uniform_writes_with_greedy_collection_cost_what_two_other_simulators_say() {
    for (ratio, expected, tolerance) in [(0.7, 1.8545, 0.01), (0.8, 2.645, 0.015)] {
        let mut spec = RunSpec::new("page", device(1, 1, 2048, ratio), uniform(0, 0));
        spec.writes *= 2;
        let result = go(&spec);
        let found = result.write_amplification.programs_per_write;
        assert!((found / expected - 1.0).abs() < tolerance, "{ratio}: {found}");
        assert!(result.precondition.steady, "{:?}", result.precondition);
        let delta = result.write_amplification.delta;
        assert_eq!(delta, 10.0);
        assert!((result.write_amplification.paper - (found + (found - 1.0) / delta)).abs() < 1e-9);
    }
}

/// Ageing at once is there to save time, not to change results.
#[test]
fn a_device_aged_at_once_behaves_as_one_overwritten_for_long() {
    for ftl in ["page", "dftl", "lazy", "gecko"] {
        let aged = |first| {
            let mut spec = RunSpec::new(ftl, device(1, 1, 2048, 0.7), uniform(0, 0));
            let options = SteadyOptions { first, agree: 4, tolerance: 0.02, ..SteadyOptions::default() };
            spec.precondition = PreconditionMode::Steady(options);
            go(&spec)
        };
        let (long, at_once) = (aged(First::Fill(1.0)), aged(First::Aged));
        let found = [&long, &at_once].map(|run| run.write_amplification.paper);
        assert!((found[0] / found[1] - 1.0).abs() < 0.02, "{ftl}: {found:?}");
        let after_the_first = at_once.precondition.windows[1];
        assert!(
            (after_the_first / at_once.precondition.wa_last - 1.0).abs() < 0.03,
            "{ftl}: {:?}",
            at_once.precondition
        );
        assert!(at_once.precondition.steady && at_once.precondition.reason.starts_with("begun as"));
    }
}

#[test]
fn oldest_first_collection_obeys_the_cleaning_equation() {
    let mut spec = RunSpec::new("page", device(1, 1, 2048, 0.7), uniform(0, 0));
    spec.config.victim = "fifo";
    spec.config.placement = Some("single");
    let found = go(&spec).write_amplification.programs_per_write;
    let expected = lfs_write_amplification(0.7);
    assert!((found / expected - 1.0).abs() < 0.02, "{found} for {expected}");
}

/// What the FTL is told is what is written: a placement by remaining lives is worth something only
/// if it is.
#[test]
fn a_placement_that_is_told_the_future_programs_less() {
    let placed = |placement: &'static str| {
        let workload = WorkloadSpec::synthetic("zipf:theta=0.9,reads=20,trims=1,size=page*80+8KiB*20").unwrap();
        let mut spec = RunSpec::new("page", device(1, 1, 512, 0.85), workload);
        spec.config.placement = Some(placement);
        spec
    };
    let programs = |placement| go(&placed(placement)).write_amplification.programs_per_write;
    let (told, untold) = (programs("lives"), programs("split"));
    assert!(told < 0.9 * untold, "{told} for {untold}");
    assert!(programs("fk") < programs("single"));
    let mut timed = placed("lives");
    timed.timing = queued(HostMode::Closed { queue_depth: 4, think_ns: 0 }, GcMode::Foreground);
    let error = run(&timed, &mut |_| {}).unwrap_err();
    assert!(matches!(error, SimError::BadSpec { what: "placement", .. }), "{error}");
}

/// No policy that does not know the future reaches what separate logs would program.
#[test]
fn placements_lie_between_one_log_and_separate_logs() {
    let spec: workload::Spec = "hotcold".parse().unwrap();
    let device = device(1, 1, 1024, 0.85);
    let rates = Rates::new(&spec.write_rates(u64::from(device.logical_pages)).unwrap()).unwrap();
    let spare = f64::from(device.geometry.pages()) / f64::from(device.logical_pages) - 1.0;
    for placement in ["single", "split", "dac", "sepbit", "midas", "asa"] {
        let mut spec = RunSpec::new("page", device.clone(), WorkloadSpec::synthetic("hotcold").unwrap());
        spec.config.placement = Some(placement);
        let found = go(&spec).write_amplification.programs_per_write;
        assert!(found > rates.separate_logs(spare), "{placement}: {found}");
        assert!(found < 1.1 * rates.one_log(spare), "{placement}: {found}");
    }
}

#[test]
fn the_parts_add_up() {
    for name in names() {
        let result = go(&small(name, uniform(30, 0)));
        let wa = &result.write_amplification;
        let programs: u64 = result.flash.iter().map(|(_, f)| f.programs).sum();
        assert!((wa.programs_per_write - programs as f64 / result.host.writes as f64).abs() < 1e-9, "{name}");
        assert!((wa.by_purpose.iter().map(|(_, p)| p.paper).sum::<f64>() - wa.paper).abs() < 1e-9, "{name}");
        let structures: u64 = result.ram_bytes.iter().filter(|(k, _)| *k != "total").map(|(_, v)| v).sum();
        assert_eq!(result.ram_bytes["total"], structures, "{name}");
        assert_eq!(result.host.writes, 20_000);
        assert_eq!(result.host.reads + result.host.writes, result.host.requests);
        assert!(result.host.reads > 7_500 && result.host.reads < 9_500, "{name}");
        let mut from = 0;
        let sum: f64 = result
            .timeline
            .iter()
            .map(|point| {
                let part = point.programs_per_write * (point.host_writes - from) as f64;
                from = point.host_writes;
                part
            })
            .sum();
        assert_eq!(from, result.host.writes);
        assert!((sum - programs as f64).abs() < 0.5, "{name}: {sum} of {programs}");
        assert!((100..=200).contains(&result.timeline.len()));
        assert_eq!(result.wear.histogram.iter().map(|bin| bin.blocks).sum::<u32>(), 128);
    }
}

#[test]
fn time_changes_no_count() {
    for name in names() {
        let mut spec = small(name, uniform(20, 0));
        let counted = go(&spec);
        spec.timing = queued(HostMode::default(), GcMode::Foreground);
        let timed = go(&spec);
        assert_eq!(counted.flash, timed.flash, "{name}");
        assert_eq!(counted.host, timed.host, "{name}");
        assert_eq!(counted.wear, timed.wear, "{name}");
        assert!(counted.latency_us.is_none() && timed.latency_us.is_some());
    }
}

#[test]
fn a_seed_decides_everything() {
    for name in names() {
        let mut spec = small(name, WorkloadSpec::synthetic("zipf:theta=0.9,reads=20,trims=2").unwrap());
        spec.timing = queued(HostMode::default(), GcMode::Idle);
        let (first, second) = (go(&spec), go(&spec));
        assert_eq!(first.digest(), second.digest(), "{name}");
        assert_eq!(
            RunResult { simulation: second.simulation, ..first.clone() },
            second,
            "{name}: only the computer's part may differ"
        );
        spec.seed = 2;
        assert_ne!(go(&spec).digest(), first.digest(), "{name}");
    }
}

#[test]
fn an_unloaded_device_takes_just_its_own_time() {
    // 500 µs to program, 4160 B at 400 MB/s, 5 µs of controller; a read 50 µs.
    let mut spec = RunSpec::new("page", device(2, 2, 128, 0.6), uniform(50, 10_000_000));
    spec.precondition = PreconditionMode::Fill(0.2);
    spec.writes = 1000;
    let options = QueueOptions {
        host: HostMode::Open { time_scale: 1.0, outstanding: 8 },
        controller_ns: 5000,
        ..QueueOptions::default()
    };
    spec.timing = TimingMode::Queued(options);
    let result = go(&spec);
    let latency = result.latency_us.as_ref().unwrap();
    assert_eq!((latency.write.mean, latency.write.max), (515.4, 515.4));
    assert_eq!(latency.read.max, 65.4);
    assert_eq!(latency.read.count + latency.write.count, result.host.requests);
    // Pages never written are answered by the controller alone.
    assert_eq!(latency.read.cdf[0].us, 5.0);
    let seconds = result.throughput.unwrap().simulated_s;
    assert!((seconds / (result.host.requests as f64 * 0.01) - 1.0).abs() < 0.001, "{seconds}");
}

#[test]
fn a_shorter_time_scale_loads_the_device_more() {
    let at = |time_scale| {
        let mut spec = small("page", uniform(0, 2_000_000));
        spec.timing = queued(HostMode::Open { time_scale, outstanding: 64 }, GcMode::Foreground);
        go(&spec)
    };
    let (slow, fast) = (at(1.0), at(0.2));
    assert!(slow.throughput.unwrap().simulated_s > 4.0 * fast.throughput.unwrap().simulated_s);
    let mean = |r: &RunResult| r.latency_us.as_ref().unwrap().write.mean;
    assert!(mean(&fast) > mean(&slow));
    assert_eq!(slow.flash, fast.flash);
}

#[test]
fn more_clients_get_more_done_until_the_dies_are_busy() {
    let iops = |queue_depth| {
        let mut spec = RunSpec::new("page", device(2, 2, 256, 0.5), uniform(0, 0));
        spec.precondition = PreconditionMode::Off;
        spec.config.lanes = 4;
        spec.writes = 10_000; // less than the device holds: no collection
        spec.timing = queued(HostMode::Closed { queue_depth, think_ns: 0 }, GcMode::Foreground);
        go(&spec).throughput.unwrap()
    };
    let (one, two, sixteen) = (iops(1), iops(2), iops(16));
    assert!((one.iops - 1e6 / 510.4).abs() < 1.0, "{}", one.iops);
    assert!((two.iops / one.iops - 2.0).abs() < 0.01);
    assert!((sixteen.iops / one.iops - 4.0).abs() < 0.08, "four dies, {}", sixteen.iops);
    assert!(sixteen.die_utilisation > 0.97 && sixteen.die_utilisation_max <= 1.0);
}

/// Requests wait for blocks that collections free, so that long collections would leave dies idle.
#[test]
fn many_clients_keep_the_dies_busy_while_garbage_is_collected() {
    for ftl in ["page", "dftl", "gecko"] {
        let mut spec = small(ftl, uniform(0, 0));
        spec.device = device(4, 4, 2048, 0.7);
        (spec.config, spec.writes) = (spec.device.config(), 60_000);
        spec.config.lanes = 16;
        spec.timing = queued(HostMode::Closed { queue_depth: 1024, think_ns: 0 }, GcMode::Foreground);
        let result = go(&spec);
        let busy = result.throughput.unwrap().die_utilisation;
        println!("{ftl}: dies are busy for {busy:.3} of the time");
        assert!(result.flash.gc.erases > 100, "{ftl} collected nothing: {:?}", result.flash.gc);
        assert!(busy > 0.95 && busy <= 1.0, "{ftl}: {busy}");
    }
}

#[test]
fn collecting_when_idle_shortens_the_tail() {
    let at = |gc| {
        let mut spec = small("page", uniform(0, 4_000_000));
        spec.timing = queued(HostMode::Open { time_scale: 1.0, outstanding: 64 }, gc);
        go(&spec)
    };
    let (foreground, idle) = (at(GcMode::Foreground), at(GcMode::Idle));
    let p99 = |r: &RunResult| r.latency_us.as_ref().unwrap().write.p99;
    assert!(idle.throughput.unwrap().background_collections > 0);
    assert_eq!(foreground.throughput.unwrap().background_collections, 0);
    assert!(p99(&idle) < 0.7 * p99(&foreground), "{} and {}", p99(&idle), p99(&foreground));
}

#[test]
fn collecting_ahead_shortens_the_tail_of_a_loaded_device() {
    let at = |gc, collection_takes_time| {
        let mut spec = small("page", uniform(0, 0));
        let host = HostMode::Poisson { per_s: 700.0, outstanding: 256 };
        spec.timing = TimingMode::Queued(QueueOptions { host, gc, collection_takes_time, ..QueueOptions::default() });
        go(&spec)
    };
    let p999 = |r: &RunResult| r.latency_us.as_ref().unwrap().write.p999;
    let (foreground, ahead) = (at(GcMode::Foreground, true), at(GcMode::Ahead, true));
    let without = at(GcMode::Ahead, false);
    assert!(ahead.throughput.unwrap().background_collections > 0);
    assert!(p999(&ahead) < 0.5 * p999(&foreground), "{} and {}", p999(&ahead), p999(&foreground));
    assert!(p999(&ahead) < 8.0 * p999(&without), "{} and {}", p999(&ahead), p999(&without));
}

#[test]
fn collecting_banks_that_nobody_writes_keeps_writes_short() {
    let at = |policy| {
        let mut spec = small("page", uniform(0, 0));
        spec.config.lanes = 4;
        let gc = GcMode::ByBank { policy, collectors: 2 };
        spec.timing = queued(HostMode::Closed { queue_depth: 2, think_ns: 1_000_000 }, gc);
        let result = go(&spec);
        (result.throughput.unwrap(), result.latency_us.unwrap().write.over_2ms)
    };
    let [(npgc, npgc_slow), (pllgc, pllgc_slow), (adaptive, adaptive_slow)] =
        [Policy::WritePath, Policy::Parallel, Policy::Adaptive].map(at);
    assert!(npgc.background_collections == 0 && pllgc.background_collections > 0);
    assert!(npgc.simulated_s > 1.1 * pllgc.simulated_s, "{} s, {} s", npgc.simulated_s, pllgc.simulated_s);
    assert!(npgc_slow > 4.0 * pllgc_slow, "{npgc_slow}, {pllgc_slow}");
    // One of two clients waits most of the time, so that fewer collectors may work.
    assert!(adaptive.background_collections > 0 && adaptive_slow < npgc_slow, "{adaptive_slow}");
    let mut spec = small("bast", uniform(0, 0));
    spec.timing = queued(HostMode::default(), GcMode::ByBank { policy: Policy::Parallel, collectors: 1 });
    let refused = run(&spec, &mut |_| {}).unwrap_err().to_string();
    assert!(refused.contains("mapped by page"), "{refused}");
}

#[test]
fn reads_first_shortens_reads() {
    let at = |read_priority, suspend_ns| {
        let mut spec = small("page", uniform(50, 0));
        let host = HostMode::Closed { queue_depth: 16, think_ns: 0 };
        spec.timing = TimingMode::Queued(QueueOptions { host, read_priority, suspend_ns, ..QueueOptions::default() });
        go(&spec).latency_us.unwrap().read.mean
    };
    let (fifo, first, suspending) = (at(false, None), at(true, None), at(true, Some(20_000)));
    assert!(first < 0.8 * fifo && suspending < 0.8 * first, "{fifo} {first} {suspending}");
}

#[test]
fn thinking_clients_leave_the_device_idle() {
    let mut spec = small("page", uniform(0, 0));
    spec.writes = 2000;
    spec.timing = queued(HostMode::Closed { queue_depth: 1, think_ns: 20_000_000 }, GcMode::Idle);
    let result = go(&spec);
    let throughput = result.throughput.unwrap();
    assert!(throughput.simulated_s > 0.02 * 1999.0);
    assert!(throughput.background_collections > 0 && throughput.die_utilisation < 0.25);
}

/// Requests in the device at once, on one die.
fn at_once(requests: &[(Op, u64)]) -> RunResult {
    let request = |&(op, page)| Request {
        at_ns: 0,
        op,
        offset: page * 4096,
        bytes: if op == Op::Flush { 0 } else { 4096 },
        fua: false,
    };
    let mut spec = RunSpec::new("page", device(1, 1, 128, 0.6), fixed(requests.iter().map(request).collect()));
    (spec.precondition, spec.writes) = (PreconditionMode::Off, 0);
    spec.timing = queued(HostMode::Closed { queue_depth: requests.len() as u32, think_ns: 0 }, GcMode::Foreground);
    go(&spec)
}

#[test]
fn a_flush_ends_with_the_last_write_that_came_before_it() {
    let latency = |requests: &[(Op, u64)]| at_once(requests).latency_us.unwrap();
    let two = latency(&[(Op::Write, 0), (Op::Write, 1)]).write.max;
    let both = latency(&[(Op::Write, 0), (Op::Write, 1), (Op::Flush, 0), (Op::Write, 2)]);
    assert_eq!((both.flush.count, both.flush.max), (1, two));
    assert!(both.write.max > 1.4 * two, "the third write came after the flush: {} and {two}", both.write.max);
    let first = latency(&[(Op::Flush, 0), (Op::Write, 0)]);
    assert_eq!((first.flush.count, first.flush.max), (1, 0.0));
    let reads = latency(&[(Op::Read, 0), (Op::Flush, 0)]);
    assert_eq!(reads.flush.max, 0.0, "a flush does not wait for reads");
    let several = latency(&[(Op::Write, 0), (Op::Flush, 0), (Op::Write, 1), (Op::Flush, 0)]).flush;
    assert_eq!((several.count, several.max), (2, two));
    assert!(several.p50 < 0.7 * two, "{several:?}");
}

#[test]
fn the_device_is_idle_before_the_first_request_and_nobody_counts_that() {
    let from = |at_ns: u64| {
        let write = |i: u64| Request { at_ns: at_ns + i, op: Op::Write, offset: i * 4096, bytes: 4096, fua: false };
        let mut spec = RunSpec::new("page", device(1, 1, 128, 0.6), fixed((0..100).map(write).collect()));
        (spec.precondition, spec.writes) = (PreconditionMode::Off, 0);
        spec.timing = queued(HostMode::Open { time_scale: 1.0, outstanding: 64 }, GcMode::Foreground);
        go(&spec).throughput.unwrap()
    };
    let (now, later) = (from(0), from(3_600_000_000_000));
    assert_eq!(now, later);
    assert!(now.die_utilisation > 0.9, "{now:?}");
}

#[test]
fn requests_of_any_size_and_alignment() {
    let requests = vec![
        Request { at_ns: 0, op: Op::Write, offset: 4096, bytes: 3 * 4096, fua: false }, // pages 1, 2, 3
        Request { at_ns: 1, op: Op::Write, offset: 6000, bytes: 5000, fua: false },     // parts of 1 and 2
        Request { at_ns: 2, op: Op::Write, offset: 100, bytes: 1, fua: false },         // part of 0, which is empty
        Request { at_ns: 3, op: Op::Read, offset: 4095, bytes: 2, fua: false },         // 0 and 1
        Request { at_ns: 4, op: Op::Trim, offset: 1, bytes: 3 * 4096, fua: false }, // 1 and 2 whole, 0 and 3 in part
        Request { at_ns: 5, op: Op::Read, offset: 0, bytes: 4 * 4096, fua: false },
        Request { at_ns: 6, op: Op::Flush, offset: 0, bytes: 0, fua: false },
        Request { at_ns: 7, op: Op::Write, offset: 8192, bytes: 512, fua: false }, // part of 2, trimmed
        Request { at_ns: 8, op: Op::Trim, offset: 10, bytes: 4000, fua: false },   // no whole page
    ];
    for name in names() {
        for timing in [TimingMode::None, queued(HostMode::default(), GcMode::Foreground)] {
            let mut spec = small(name, fixed(requests.clone()));
            spec.precondition = PreconditionMode::Off;
            spec.writes = 0;
            spec.timing = timing;
            let host = go(&spec).host;
            assert_eq!((host.writes, host.rmw_reads), (3 + 2 + 1 + 1, 2), "{name}");
            assert_eq!((host.reads, host.trims, host.flushes, host.requests), (2 + 4, 2, 1, 9), "{name}");
        }
    }
}

/// Measuring begins where a pass over the trace ended. Ageing that stopped within a pass would let
/// blocks die for free: pages just written would be written again in the same order. By chance the
/// laps of one trace differ by one part in a hundred, so that several are added.
#[test]
fn a_trace_is_measured_from_an_equal_start() {
    const REQUESTS: u64 = 60_000;
    let device = device(1, 1, 512, 0.7);
    let pages = device.logical_bytes() / 4096;
    for ftl in ["page", "dftl", "gecko"] {
        let mut laps = [0.0; 2];
        for seed in 9..15 {
            let mut random = Random(seed);
            let mut write =
                |_| Request { at_ns: 0, op: Op::Write, offset: 4096 * random.below(pages), bytes: 4096, fua: false };
            let trace = record(&mut Fixed((0..REQUESTS).map(&mut write).collect()), REQUESTS).unwrap();
            let workload = WorkloadSpec::replay(Arc::new(trace), Map::Fold, Some(2));
            let mut spec = RunSpec::new(ftl, device.clone(), workload);
            (spec.writes, spec.interval_writes) = (0, REQUESTS / 8);
            let result = go(&spec);
            let eighths: Vec<f64> = result.timeline.iter().map(|point| point.programs_per_write).collect();
            assert_eq!(eighths.len(), 16, "{ftl}");
            for (first, second) in eighths[..8].iter().zip(&eighths[8..]) {
                assert!((first / second - 1.0).abs() < 0.1, "{ftl}: {eighths:?}");
            }
            for (sum, lap) in laps.iter_mut().zip([&eighths[..8], &eighths[8..]]) {
                *sum += lap.iter().sum::<f64>();
            }
            assert!(result.precondition.reason.contains("then on to the end of"), "{:?}", result.precondition);
        }
        let [first, second] = laps;
        assert!((first / second - 1.0).abs() < 0.01, "{ftl}: {first} and {second}");
    }
}

#[test]
fn preconditioning_says_what_it_did() {
    let result = |mode, workload| {
        let mut spec = small("page", workload);
        spec.writes = 100;
        spec.precondition = mode;
        go(&spec).precondition
    };
    let logical = f64::from(small("page", uniform(0, 0)).device.logical_pages);
    assert_eq!(result(PreconditionMode::Off, uniform(0, 0)).host_writes, 0);
    let half = result(PreconditionMode::Fill(0.5), uniform(0, 0));
    assert_eq!((half.kind.as_str(), half.host_writes), ("fill", (logical * 0.5).round() as u64));
    let steady = PreconditionMode::Steady(SteadyOptions::default());
    let own = result(steady, uniform(0, 0));
    assert!(own.steady && own.reason.contains("differs by at most"), "{own:?}");
    assert_eq!(own.wa_last, *own.windows.last().unwrap());
    let random = PreconditionMode::Steady(SteadyOptions { writes: OwnWrites::Uniform, ..SteadyOptions::default() });
    assert!(result(random, uniform(100, 0)).steady, "reads alone would never age it");
    let impossible = SteadyOptions { tolerance: 1e-12, max_windows: 3, ..SteadyOptions::default() };
    let gave_up = result(PreconditionMode::Steady(impossible), uniform(0, 0));
    assert!(!gave_up.steady && gave_up.windows.len() == 3 && gave_up.reason.contains("stopped after 3"));
    assert!(result(steady, uniform(100, 0)).reason.contains("writes nothing"));
    let trims = fixed(vec![Request { at_ns: 0, op: Op::Trim, offset: 0, bytes: 4096, fua: false }]);
    assert!(result(steady, trims).reason.contains("writes nothing"));
}

#[test]
fn a_workload_that_only_reads_ends() {
    let mut spec = small("page", uniform(100, 0));
    spec.writes = 100;
    spec.precondition = PreconditionMode::Fill(1.0);
    let host = go(&spec).host;
    assert_eq!(host.writes, 0);
    assert!((6400..8000).contains(&host.reads), "{}", host.reads);
    spec.requests = 50;
    assert_eq!(go(&spec).host.reads, 50);
}

#[test]
fn progress_is_told_in_order_and_not_too_often() {
    let mut spec = small("page", uniform(0, 0));
    spec.device = device(1, 1, 2048, 0.7);
    spec.writes = 300_000;
    let mut seen = Vec::new();
    run(&spec, &mut |p| seen.push(p)).unwrap();
    let order = [Phase::Fill, Phase::Precondition, Phase::Measure, Phase::Verify];
    let phases: Vec<_> = seen.chunk_by(|a, b| a.phase == b.phase).map(|part| part[0].phase).collect();
    assert_eq!(phases, order);
    for pair in seen.windows(2).filter(|pair| pair[0].phase == pair[1].phase) {
        assert!(pair[1].done >= pair[0].done + (1 << 16));
    }
}

#[test]
fn what_cannot_be_run_is_refused_with_a_reason() {
    let error = |change: &dyn Fn(&mut RunSpec)| {
        let mut spec = small("page", uniform(0, 0));
        change(&mut spec);
        match run(&spec, &mut |_| {}) {
            Err(e) => e.to_string(),
            Ok(_) => panic!("not refused"),
        }
    };
    assert!(error(&|s| s.ftl = "pgae".to_owned()).contains("known are: page, dftl"));
    assert!(error(&|s| s.device.logical_pages = 128 * 128).contains("formatting the device"));
    let open = queued(HostMode::Open { time_scale: 1.0, outstanding: 8 }, GcMode::Foreground);
    assert!(error(&|s| s.timing = open).contains("no arrival times"));
    let nobody = queued(HostMode::Closed { queue_depth: 0, think_ns: 0 }, GcMode::Foreground);
    assert!(error(&|s| s.timing = nobody).contains("0 clients"));
    let outside = vec![Request { at_ns: 0, op: Op::Write, offset: 1 << 40, bytes: 512, fua: false }];
    assert!(
        error(&|s| {
            s.precondition = PreconditionMode::Off;
            s.workload = fixed(outside.clone());
        })
        .contains("leaves the disk")
    );
    assert!(error(&|s| s.precondition = PreconditionMode::Fill(1.5)).contains("not a share"));
    assert!(WorkloadSpec::synthetic("unifrom").is_err());
}

/// 2^62 ns: nothing that is added to virtual time before may overflow.
#[test]
fn virtual_time_ends_before_it_overflows() {
    const END_NS: u64 = 1 << 62;
    let request = |at_ns| Request { at_ns, op: Op::Write, offset: 0, bytes: 4096, fua: false };
    let ends = |workload, host, about: &str| {
        let mut spec = small("page", workload);
        spec.precondition = PreconditionMode::Off;
        spec.timing = queued(host, GcMode::Foreground);
        let error = run(&spec, &mut |_| {}).unwrap_err();
        assert!(matches!(&error, SimError::BadSpec { what, .. } if *what == about), "{error}");
    };
    let open = HostMode::Open { time_scale: 1.0, outstanding: 8 };
    ends(fixed(vec![request(1), request(END_NS)]), open, "arrival times");
    ends(fixed(vec![request(1), request(END_NS - 10_000)]), open, "device times");
    let closed = |think_ns| HostMode::Closed { queue_depth: 1, think_ns };
    ends(fixed(vec![request(0)]), closed(u64::MAX), "think time");
    ends(fixed(vec![request(0); 9]), closed(END_NS / 4), "device times");
}

#[test]
fn devices_are_sized_in_whole_rows() {
    let d = device(2, 2, 4, 0.5).geometry.dimensions();
    let timing = TIMING;
    let sized = |bytes, ratio| DevicePlan::new("d", d, nand::Capabilities::MODERN, timing, Some(bytes), ratio);
    let row = 4 * 128 * 4096;
    for (bytes, blocks) in [(1, 4), (row, 4), (row * 3 / 2 - 1, 4), (row * 3 / 2, 8), (8 << 30, 16_384)] {
        assert_eq!(sized(bytes, 0.5).unwrap().geometry.blocks(), blocks, "{bytes}");
    }
    assert!(matches!(sized(1 << 60, 0.5), Err(SimError::BadSpec { .. })));
    assert!(matches!(sized(row, 1.0), Err(SimError::BadSpec { .. })));
    assert!(sized(row, f64::NAN).is_err());
}

#[test]
fn json_has_the_promised_shape() {
    let mut spec = small("page", uniform(20, 0));
    let counted = serde_json::to_value(go(&spec)).unwrap();
    spec.timing = queued(HostMode::default(), GcMode::Foreground);
    let result = go(&spec);
    let timed = serde_json::to_value(&result).unwrap();
    for path in [
        "/ftl",
        "/device",
        "/workload",
        "/seed",
        "/host/writes",
        "/host/reads",
        "/host/trims",
        "/flash/host/programs",
        "/flash/validity_query/spare_reads",
        "/flash/wear/erases",
        "/write_amplification/programs_per_write",
        "/write_amplification/paper",
        "/write_amplification/delta",
        "/write_amplification/by_purpose/gc/programs",
        "/write_amplification/by_purpose/translation_gc/paper",
        "/ram_bytes/total",
        "/wear/erases_total",
        "/wear/max",
        "/wear/mean",
        "/wear/stddev",
        "/simulation/wall_s",
        "/simulation/host_writes_per_s",
        "/simulation/peak_memory_bytes",
    ] {
        assert!(counted.pointer(path).is_some(), "{path}");
        assert!(timed.pointer(path).is_some(), "{path}");
    }
    for path in ["read/mean", "read/p50", "write/p99", "write/p999", "write/max"] {
        assert!(timed.pointer(&format!("/latency_us/{path}")).is_some(), "{path}");
    }
    assert!(counted.get("latency_us").is_none());
    assert_eq!(counted["flash"].as_object().unwrap().len(), 11);
    assert_eq!(serde_json::from_value::<RunResult>(timed).unwrap(), result);
}
