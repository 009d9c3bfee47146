//! Requests that arrive at random, and collections that take no time.
#![allow(clippy::unwrap_used)]

use crate::common::{device, uniform};
use openftl_sim::{HostMode, PreconditionMode, QueueOptions, RunResult, RunSpec, SimError, TimingMode, run};

/// Writes of a page each that arrive at random, under page mapping.
fn writes(dies: u32, per_s: f64, collection_takes_time: bool) -> RunSpec {
    let mut spec = RunSpec::new("page", device(1, dies, 128, 0.6), uniform(0, 0));
    spec.writes = 60_000;
    spec.config.lanes = dies;
    let host = HostMode::Poisson { per_s, outstanding: 1 << 16 };
    spec.timing =
        TimingMode::Queued(QueueOptions { host, collection_takes_time, warm_up_requests: 500, ..Default::default() });
    spec
}

fn go(spec: &RunSpec) -> RunResult {
    run(spec, &mut |_| {}).unwrap()
}

/// A program of 500 µs with its transfer of 4160 B at 400 MB/s.
const SERVICE_US: f64 = 510.4;

/// An M/D/1 queue: with load ρ a request waits ρ / (2 (1 - ρ)) of the time that it takes.
#[test]
fn one_die_without_collection_is_the_queue_of_the_textbook() {
    for load in [0.3, 0.6, 0.8] {
        let per_s = load * 1e6 / SERVICE_US;
        let result = go(&writes(1, per_s, false));
        let latency = &result.latency_us.as_ref().unwrap().write;
        let wanted = SERVICE_US * (1.0 + load / (2.0 * (1.0 - load)));
        assert!((latency.mean / wanted - 1.0).abs() < 0.05, "{load}: {} for {wanted}", latency.mean);
        assert_eq!(latency.count, 60_000 - 500, "the warm-up does not count");
        let throughput = result.throughput.unwrap();
        assert!((throughput.iops / per_s - 1.0).abs() < 0.005, "{load}: {} for {per_s}", throughput.iops);
        assert!((throughput.die_utilisation / load - 1.0).abs() < 0.02, "{load}: {}", throughput.die_utilisation);
        // The FTL collects all the same.
        assert!(result.flash.gc.programs > 1000 && result.flash.gc.erases > 100, "{:?}", result.flash.gc);
    }
}

#[test]
fn collections_without_time_change_latencies_and_nothing_else() {
    let [with, without] = [true, false].map(|takes_time| go(&writes(4, 2500.0, takes_time)));
    assert_eq!(with.flash, without.flash);
    assert_eq!(with.write_amplification, without.write_amplification);
    assert_eq!(with.wear, without.wear);
    let [long, short] = [&with, &without].map(|result| result.latency_us.as_ref().unwrap().write.clone());
    assert!(long.p999 > 3.0 * short.p999 && long.max > 3.0 * short.max, "{} and {}", long.p999, short.p999);
    assert!(long.p999 <= long.p9999 && long.p9999 <= long.max);
}

#[test]
fn a_run_without_preconditioning_has_the_same_latencies_either_way_until_it_collects() {
    let of = |takes_time| {
        let mut spec = writes(4, 2500.0, takes_time);
        spec.precondition = PreconditionMode::Off;
        spec.writes = 5000;
        go(&spec).latency_us.unwrap()
    };
    assert_eq!(of(true), of(false));
}

#[test]
fn rates_and_limits_that_make_no_sense_are_refused() {
    for (per_s, outstanding) in [(0.0, 1), (-1.0, 1), (f64::NAN, 1), (f64::INFINITY, 1), (100.0, 0)] {
        let mut spec = writes(1, per_s, true);
        let host = HostMode::Poisson { per_s, outstanding };
        spec.timing = TimingMode::Queued(QueueOptions { host, ..Default::default() });
        let error = run(&spec, &mut |_| {}).unwrap_err();
        assert!(matches!(error, SimError::BadSpec { what: "open loop", .. }), "{per_s} {outstanding}: {error}");
    }
    // Virtual time ends after 146 years.
    let error = run(&writes(1, 1e-9, true), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("146"), "{error}");
}
