//! Made-up results for the tests of reports.

use super::{NotTaken, Report};
use sim::result::{
    AmplificationResult, CdfPoint, FlashResult, GeometryResult, LatencyByKind, LatencyResult, PurposeAmplification,
    TimelinePoint, WearBin,
};
use sim::{ByPurpose, RunResult};

fn latency(scale: f64) -> LatencyResult {
    let cdf = (0..=60)
        .map(|i| {
            let share = f64::from(i) / 60.0;
            CdfPoint { us: scale * (1.0 + 40.0 * share.powi(8)), share }
        })
        .collect();
    LatencyResult {
        mean: scale * 2.0,
        p50: scale * 1.1,
        p99: scale * 30.0,
        p999: scale * 38.0,
        p9999: scale * 40.0,
        max: scale * 41.0,
        over_2ms: 0.0,
        count: 1000,
        cdf,
    }
}

/// A run of an FTL with an amplification of `gc` by collection and `map` by translation.
pub fn run(ftl: &str, gc: f64, map: f64, ram: u64, timed: bool) -> RunResult {
    let host_writes = 1_000_000;
    let programs =
        |per_write: f64| FlashResult { programs: (per_write * host_writes as f64) as u64, ..FlashResult::default() };
    let mut flash = ByPurpose::<FlashResult> { host: programs(1.0), gc: programs(gc), ..ByPurpose::default() };
    flash.translation = programs(map);
    let by_purpose = ByPurpose {
        host: PurposeAmplification { programs: 1.0, paper: 1.0 },
        gc: PurposeAmplification { programs: gc, paper: gc * 1.1 },
        translation: PurposeAmplification { programs: map, paper: map * 1.1 },
        ..ByPurpose::default()
    };
    let timeline = (1..=40)
        .map(|i| TimelinePoint {
            host_writes: i * 25_000,
            at_s: 0.0,
            programs_per_write: 1.0 + gc + map + ((i % 7) as f64 - 3.0) * 0.01,
            ..TimelinePoint::default()
        })
        .collect();
    let mut result = RunResult {
        ftl: ftl.to_owned(),
        device: "demo".to_owned(),
        workload: "uniform".to_owned(),
        seed: 1,
        flash,
        timeline,
        geometry: GeometryResult { blocks: 2048, pages_per_block: 128, page_bytes: 4096, ..GeometryResult::default() },
        ..RunResult::default()
    };
    result.host.writes = host_writes;
    result.write_amplification = AmplificationResult {
        programs_per_write: 1.0 + gc + map,
        paper: 1.0 + 1.1 * (gc + map),
        delta: 10.0,
        by_purpose,
    };
    result.ram_bytes = [("map".to_owned(), ram * 7 / 8), ("pvb".to_owned(), ram / 8), ("total".to_owned(), ram)].into();
    result.wear.erases_total = 14_500;
    result.wear.max = 12;
    result.wear.mean = 7.1;
    result.wear.stddev = 1.2;
    result.wear.histogram = (4..=12).map(|n| WearBin { from: n, to: n, blocks: 40 * (5 - n.abs_diff(8)) }).collect();
    if timed {
        result.latency_us = Some(LatencyByKind {
            read: latency(80.0),
            write: latency(400.0 * (1.0 + map)),
            flush: LatencyResult::default(),
        });
    }
    result
}

/// Three runs as one report.
pub fn report(timed: bool) -> Report {
    Report {
        command: "openftl compare --workload 'zipf:theta=0.99' --html <report>.html".to_owned(),
        device: "demo: 1 GiB raw, 70% visible".to_owned(),
        workload: "uniform:size=4KiB & more".to_owned(),
        method: "filled, then overwritten until steady".to_owned(),
        seed: 1,
        notes: vec!["the trace's time unit was guessed to be ms".to_owned()],
        not_taken: vec![NotTaken { options: vec!["--cache"], ftls: vec!["page"] }],
        settings: Vec::new(),
        results: vec![
            run("page", 0.854, 0.0, 1 << 20, timed),
            run("dftl", 0.9, 0.31, 1 << 17, timed),
            run("gecko", 0.88, 0.25, 3 << 15, timed),
        ],
    }
}
