//! The real traces, where they are at hand: read whole, compared with the published table of their
//! folder.
//!
//! The folder is `OPENFTL_TRACES`, or else `../shared/traces` beside the workspace.

use openftl_workload::Spec;
use openftl_workload::trace::{self, Format, OpenOptions};
use std::path::PathBuf;

fn folder() -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces");
    let folder = std::env::var_os("OPENFTL_TRACES").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    if !folder.is_dir() {
        println!("skipped: no traces in {}", folder.display());
        return None;
    }
    Some(folder)
}

/// File, format, requests, write percent, mean KiB of writes and reads, pages touched and written,
/// overwrites.
type Row = (&'static str, &'static str, u64, f64, f64, f64, u64, u64, f64);

#[allow(clippy::approx_constant, reason = "3.14 is how often a page is written")]
const TABLE: &[Row] = &[
    ("fin1_first50k.flashsim.trace.xz", "fivecolumn", 50000, 41.6, 6.35, 7.45, 31150, 8890, 5.84),
    ("fin1_first10k.ssdsim.ascii.xz", "fivecolumn", 10000, 59.2, 4.92, 6.09, 7322, 3734, 3.32),
    ("msnfs_150k.ms.trace.xz", "fivecolumn", 149_999, 13.0, 9.23, 18.25, 538_027, 43513, 1.03),
    ("cloudphysics_113k.vscsi.xz", "vscsi", 113_872, 58.7, 35.16, 37.37, 269_210, 208_696, 3.14),
    ("msr_prxy0_20k.csv.xz", "msr", 20000, 98.3, 2.31, 17.69, 2980, 1615, 15.05),
    ("msr_cut_rw20_80_10k.trace.xz", "fivecolumn", 10000, 79.8, 6.24, 1.83, 7385, 5815, 2.45),
    ("msr_cut_rw40_60_10k.trace.xz", "fivecolumn", 10000, 59.5, 4.81, 4.71, 8968, 4294, 2.28),
    ("rocksdb_ycsb_writes_87k.trace.xz", "fivecolumn", 87487, 100.0, 81.39, 0.0, 483_465, 483_465, 3.68),
    ("iozone_100k.disksim.trace.xz", "fivecolumn", 100_000, 100.0, 359.92, 0.0, 271_320, 271_320, 33.16),
    ("postmark_62k.disksim.trace.xz", "fivecolumn", 62257, 16.8, 833.01, 98.76, 1_533_388, 1_532_457, 1.42),
    ("mobile_install_18k.biotracer.txt.xz", "biotracer", 17952, 98.3, 93.45, 22.23, 266_758, 265_188, 1.56),
    ("websearch_24k.mqsim.trace.xz", "fivecolumn", 24783, 0.0, 8.0, 15.06, 93029, 4, 2.0),
    ("tpcc_7k.mqsim.trace.xz", "fivecolumn", 6999, 37.4, 8.73, 8.09, 20470, 7879, 1.01),
    ("tencent_multi_50k.csv.xz", "tencent", 50000, 51.0, 33.41, 25.76, 348_239, 209_875, 1.03),
    ("tencent_cut490_50k.folded.csv.xz", "replaylog", 50000, 40.0, 11.95, 11.63, 14972, 6541, 9.13),
];

#[test]
fn published_numbers_come_out() {
    let Some(folder) = folder() else { return };
    for (file, format, requests, writes, write_kib, read_kib, touched, written, overwrites) in TABLE {
        let trace = trace::open(&folder.join(file), &OpenOptions::default()).unwrap();
        let info = trace::info(&trace);
        assert_eq!((info.format, info.requests), (*format, *requests), "{file}");
        assert!((info.write_percent - writes).abs() < 0.051, "{file}: {}", info.write_percent);
        assert!((info.write_size.mean / 1024.0 - write_kib).abs() < 0.0051, "{file}: {}", info.write_size.mean);
        assert!((info.read_size.mean / 1024.0 - read_kib).abs() < 0.0051, "{file}: {}", info.read_size.mean);
        assert_eq!((info.footprint.touched_pages, info.footprint.written_pages), (*touched, *written), "{file}");
        assert!((info.overwrite_ratio - overwrites).abs() < 0.0051, "{file}: {}", info.overwrite_ratio);
    }
}

#[test]
fn guessed_times_give_the_known_durations() {
    let Some(folder) = folder() else { return };
    for (file, seconds) in [
        ("fin1_first50k.flashsim.trace.xz", 853.4),
        ("fin1_first10k.ssdsim.ascii.xz", 259.6),
        ("msnfs_150k.ms.trace.xz", 143.1),
        ("cloudphysics_113k.vscsi.xz", 7200.1),
        ("msr_prxy0_20k.csv.xz", 938.8),
        ("msr_cut_rw20_80_10k.trace.xz", 242.9),
        ("msr_cut_rw40_60_10k.trace.xz", 85.9),
        ("mobile_install_18k.biotracer.txt.xz", 977.8),
        ("websearch_24k.mqsim.trace.xz", 60.1),
        ("tpcc_7k.mqsim.trace.xz", 0.137),
        ("tencent_multi_50k.csv.xz", 1.0),
    ] {
        let trace = trace::open(&folder.join(file), &OpenOptions::default()).unwrap();
        let duration_s = trace::info(&trace).duration_s;
        assert!((duration_s - seconds).abs() < 0.06, "{file}: {duration_s} s");
    }
}

/// Sizes of one or two sectors look like pages; that requests follow on from each other tells.
#[test]
fn units_are_guessed_right_after_a_conversion_that_does_not_say_them() {
    let Some(folder) = folder() else { return };
    for file in ["msr_prxy0_20k.csv.xz", "fin1_first50k.flashsim.trace.xz"] {
        let trace = trace::open(&folder.join(file), &OpenOptions::default()).unwrap();
        let mut out = Vec::new();
        trace::convert(&trace, Format::FiveColumn, &mut out).unwrap();
        let again = trace::read(&out[..], file, &OpenOptions::default()).unwrap();
        let (before, after) = (trace::info(&trace), trace::info(&again));
        assert_eq!(before.footprint, after.footprint, "{file}: {:?}", again.notes());
        assert!((before.duration_s - after.duration_s).abs() < 1e-3, "{file}: {:?}", again.notes());
    }
}

/// Runs that are averaged: whether a request reads or writes is drawn.
const SEEDS: u32 = 2;

#[test]
fn fitted_profiles_reproduce_mix_and_sizes() {
    let Some(folder) = folder() else { return };
    for (file, ..) in TABLE {
        let original = trace::open(&folder.join(file), &OpenOptions::default()).unwrap();
        let profile = trace::fit(&original);
        let toml = std::env::temp_dir().join(format!("openftl-real-{}-{file}.toml", std::process::id()));
        std::fs::write(&toml, profile.to_toml().unwrap()).unwrap();
        let spec: Spec = format!("profile:{}", toml.display()).parse().unwrap();
        let as_long = original.records().len() as u64;
        let play = |seed| {
            let mut source = spec.build(profile.footprint_bytes, 4096, seed).unwrap();
            trace::info(&trace::record(&mut *source, as_long).unwrap())
        };
        let a = trace::info(&original);
        let played: Vec<trace::Info> = (1..=SEEDS).map(|seed| play(u64::from(seed))).collect();
        let b = &played[0];
        assert!((a.write_percent - b.write_percent).abs() < 2.0, "{file}: {}", b.write_percent);
        let mean = |of: fn(&trace::Info) -> f64| played.iter().map(of).sum::<f64>() / f64::from(SEEDS);
        let [writes, reads] = [mean(|info| info.write_size.mean), mean(|info| info.read_size.mean)];
        for (of, x, y) in [("writes", a.write_size, writes), ("reads", a.read_size, reads)] {
            let near = x.count < 1000 || (y / x.mean - 1.0).abs() < 0.05;
            assert!(near, "{file}: {of} of {} became {y}", x.mean);
        }
        println!(
            "{file}: hottest 20% {:.0} became {:.0}, sequential {:.0} became {:.0}, rate {:.0}/s became {:.0}, cv {:.1} became {:.1}",
            a.write_skew.hottest_20,
            b.write_skew.hottest_20,
            a.sequential_writes_percent,
            b.sequential_writes_percent,
            a.requests_per_second,
            b.requests_per_second,
            a.interarrival_cv,
            b.interarrival_cv,
        );
        std::fs::remove_file(&toml).unwrap();
    }
}
