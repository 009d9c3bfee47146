//! Fitted and published profiles reproduce what they were made from.

use openftl_workload::trace::{Info, Trace, fit, info, record};
use openftl_workload::{Op, Profile, REVISITS_VERSION, Request, Source, Spec, WorkloadError, published_profiles};
use std::collections::BTreeMap;

const REQUESTS: u64 = 200_000;
const LOGICAL: u64 = 80 << 20;

fn run(spec: &str, logical: u64, seed: u64) -> Trace {
    let spec: Spec = spec.parse().unwrap_or_else(|e| panic!("{e}"));
    spec.build(logical, 4096, seed)
        .and_then(|mut source| record(&mut *source, REQUESTS))
        .unwrap_or_else(|e| panic!("{e}"))
}

fn alike(name: &str, a: &Info, b: &Info) {
    let near = |what: &str, x: f64, y: f64, tolerance: f64| {
        assert!((x - y).abs() <= tolerance, "{name}: {what} {x} became {y}");
    };
    near("write percent", a.write_percent, b.write_percent, 1.0);
    near("write size", a.write_size.mean, b.write_size.mean, a.write_size.mean * 0.05);
    // A run of one request that ends within its extent is shorter.
    near("read size", a.read_size.mean, b.read_size.mean, a.read_size.mean * 0.07);
    // Requests that overlap become extents that do not, which blurs skew less.
    let skew = if name.contains("KiB*") { 10.0 } else { 6.0 };
    near("hottest 10%", a.write_skew.hottest_10, b.write_skew.hottest_10, skew);
    near("hottest 20%", a.write_skew.hottest_20, b.write_skew.hottest_20, skew);
    near("sequential", a.sequential_writes_percent, b.sequential_writes_percent, 2.0);
    near("rate", a.requests_per_second, b.requests_per_second, a.requests_per_second * 0.05);
    near("cv", a.interarrival_cv, b.interarrival_cv, a.interarrival_cv * 0.1);
}

#[test]
fn a_fitted_profile_reproduces_its_trace() {
    for (i, spec) in [
        "zipf:theta=0.9,reads=30,rate=1000",
        "hotcold:writes=80,space=20,reads=60,size=4KiB*60+16KiB*40,rate=50",
        "uniform:trims=5,size=8KiB,rate=7",
        "sequential:reads=10,size=64KiB",
    ]
    .into_iter()
    .enumerate()
    {
        let original = run(spec, LOGICAL, 5);
        let profile = fit(&original);
        let toml = profile.to_toml().unwrap();
        assert_eq!(Profile::parse("fitted", &toml).unwrap(), profile);
        let again = from_file(&i.to_string(), &profile, |spec| run(spec, profile.footprint_bytes, 6));
        alike(spec, &info(&original), &info(&again));
    }
}

/// What `play` makes of a profile that it reads from a file.
fn from_file<T>(name: &str, profile: &Profile, play: impl FnOnce(&str) -> T) -> T {
    let file = std::env::temp_dir().join(format!("openftl-fit-{}-{name}.toml", std::process::id()));
    let toml = profile.to_toml().unwrap_or_else(|e| panic!("{e}"));
    std::fs::write(&file, toml).unwrap_or_else(|e| panic!("{e}"));
    let played = play(&format!("profile:{}", file.display()));
    std::fs::remove_file(&file).unwrap_or_else(|e| panic!("{e}"));
    played
}

/// The fitted profile of a workload, run.
fn again(name: &str, original: &Trace) -> Trace {
    let profile = fit(original);
    from_file(name, &profile, |spec| run(spec, profile.footprint_bytes, 6))
}

#[test]
fn what_is_hot_stays_together() {
    let share = |trace: &Trace| {
        let writes = trace.records().iter().filter(|record| record.offset() < LOGICAL / 5).count();
        writes as f64 / trace.records().len() as f64
    };
    let original = run("hotcold:writes=80,space=20,scatter=0", LOGICAL, 5);
    let (before, after) = (share(&original), share(&again("together", &original)));
    assert!((before - 0.8).abs() < 0.01 && (after - before).abs() < 0.05, "{before} became {after}");
}

#[test]
fn what_is_written_in_an_order_is_written_again_in_that_order() {
    // Every page once in random order; a profile takes that for a cycle.
    let pages = LOGICAL / 4096;
    let spec: Spec = "shuffle".parse().unwrap();
    let original = record(&mut *spec.build(LOGICAL, 4096, 5).unwrap(), pages).unwrap();
    let reuse = info(&again("order", &original)).write_reuse_pages;
    assert!(reuse.count > REQUESTS / 2 && reuse.p50 as f64 > 0.9 * pages as f64, "{reuse:?}");
}

/// Pages written once a cycle, three in a row, then one of those that are written three times a
/// cycle.
struct Rounds(u64);

impl Rounds {
    /// In 47 regions of their own: one that they shared would take steps from the others.
    const ONCE: u64 = 47 * 64;
    const OFTEN: u64 = Self::ONCE / 9;
}

impl Source for Rounds {
    fn fill(&mut self, out: &mut [Request]) -> Result<usize, WorkloadError> {
        for request in out.iter_mut() {
            let (round, turn) = (self.0 / 4, self.0 % 4);
            let page = match turn {
                3 => Self::ONCE + round % Self::OFTEN,
                turn => (3 * round + turn) * 1009 % Self::ONCE,
            };
            *request = Request { op: Op::Write, offset: page * 4096, bytes: 4096, ..Request::default() };
            self.0 += 1;
        }
        Ok(out.len())
    }

    fn timed(&self) -> bool {
        false
    }

    fn describe(&self) -> String {
        "rounds".to_owned()
    }
}

#[test]
fn what_follows_what_does_so_again_where_one_is_written_more_often() {
    // Of the pages written once: the share that comes after the same one as before, and that of
    // steps to a page far away.
    let shares = |trace: &Trace| {
        let once = |offset: &u64| *offset < Rounds::ONCE * 4096;
        let offsets: Vec<u64> = trace.records().iter().map(|record| record.offset()).filter(once).collect();
        let (mut next, mut same, mut all, mut far) = (BTreeMap::new(), 0, 0, 0);
        for pair in offsets.windows(2) {
            far += u64::from(pair[0].abs_diff(pair[1]) > 256 * 4096);
            if let Some(before) = next.insert(pair[0], pair[1]) {
                all += 1;
                same += u64::from(before == pair[1]);
            }
        }
        (same as f64 / f64::from(all), far as f64 / offsets.len() as f64)
    };
    let original = record(&mut Rounds(0), 4 * Rounds::ONCE).unwrap();
    let before = shares(&record(&mut Rounds(0), REQUESTS).unwrap());
    let after = shares(&again("rounds", &original));
    assert!(before.0 > 0.99 && after.0 > 0.95, "{before:?} became {after:?}");
    assert!(before.1 > 0.99 && after.1 > 0.95, "{before:?} became {after:?}");
}

#[test]
fn what_is_written_more_often_is_so_again_although_what_follows_is_repeated() {
    let share = |trace: &Trace| {
        let often = trace.records().iter().filter(|record| record.offset() >= Rounds::ONCE * 4096).count();
        often as f64 / trace.records().len() as f64
    };
    let original = record(&mut Rounds(0), 4 * Rounds::ONCE).unwrap();
    let profile = fit(&original);
    let revisits = profile.writes.revisits.as_ref().unwrap();
    let (once, often) = revisits.runs.split_at(Rounds::ONCE as usize);
    assert!(once.iter().all(|&runs| runs == 3) && often.iter().all(|&runs| runs >= 9), "{:?}", revisits.runs);
    assert_eq!(often.len() as u64, Rounds::OFTEN);
    let (before, after) = (share(&original), share(&again("frequencies", &original)));
    assert!((before - 0.25).abs() < 0.001 && (after - before).abs() < 0.005, "{before} became {after}");
}

#[test]
fn a_pass_ends_with_the_writes_of_the_trace_and_the_next_is_the_same() {
    let original = record(&mut Rounds(0), 4 * Rounds::ONCE).unwrap();
    let profile = fit(&original);
    let pass = one_pass("pass", &profile, "", profile.footprint_bytes);
    let ever = again("ever", &original);
    let published: Spec = "profile:msnfs".parse().unwrap();
    let has_passes = from_file("has", &profile, |spec| spec.parse::<Spec>().unwrap().has_passes());
    assert!(has_passes && !published.has_passes());
    assert_eq!(pass.records().len(), original.records().len());
    let offsets = |trace: &Trace| trace.records().iter().map(|record| record.offset()).collect::<Vec<_>>();
    let (pass, ever) = (offsets(&pass), offsets(&ever));
    for again in ever.chunks_exact(pass.len()) {
        assert_eq!(again, pass);
    }
}

/// A log of 96 pages that is trimmed when it is full, and flushes; a journal of 5 blocks of 12 KiB.
struct Log(u64);

impl Source for Log {
    fn fill(&mut self, out: &mut [Request]) -> Result<usize, WorkloadError> {
        for request in out.iter_mut() {
            let (round, turn) = (self.0 / 102, self.0 % 102);
            let write =
                |page: u64, bytes: u64| Request { op: Op::Write, offset: page * 4096, bytes, ..Request::default() };
            *request = match turn {
                100 => Request { op: Op::Trim, offset: 0, bytes: 96 * 4096, ..Request::default() },
                turn if turn % 25 == 24 || turn == 101 => Request { op: Op::Flush, ..Request::default() },
                turn if turn % 25 == 12 => write(100 + 3 * (round % 5), 12 << 10),
                turn => write(turn - turn / 25 * 2 - u64::from(turn % 25 > 12), 4096),
            };
            self.0 += 1;
        }
        Ok(out.len())
    }

    fn timed(&self) -> bool {
        false
    }

    fn describe(&self) -> String {
        "log".to_owned()
    }
}

/// Requests of each kind by place and size.
fn counted(trace: &Trace) -> BTreeMap<(&'static str, u64, u64), u64> {
    let mut counts = BTreeMap::new();
    for record in trace.records() {
        *counts.entry((record.op().name(), record.offset(), record.bytes())).or_default() += 1;
    }
    counts
}

/// One pass of a profile's writes.
fn one_pass(name: &str, profile: &Profile, options: &str, logical: u64) -> Trace {
    from_file(name, profile, |spec| {
        let spec: Spec = format!("{spec}{options}").parse().unwrap_or_else(|e| panic!("{e}"));
        spec.build_pass(logical, 4096, 6)
            .and_then(|mut source| record(&mut *source, REQUESTS))
            .unwrap_or_else(|e| panic!("{e}"))
    })
}

#[test]
fn a_pass_has_the_writes_trims_and_flushes_of_the_trace() {
    let original = record(&mut Log(0), 20 * 102).unwrap();
    let profile = fit(&original);
    let revisits = profile.writes.revisits.as_ref().unwrap();
    assert_eq!((revisits.trimmed, revisits.flushes.len()), (1, 100));
    let logical = profile.footprint_bytes;
    let pass = one_pass("log", &profile, "", logical);
    let sum = |trace: &Trace, kind: &str| {
        counted(trace).into_iter().filter(|((op, ..), _)| *op == kind).map(|((_, _, bytes), n)| bytes * n).sum::<u64>()
    };
    for kind in ["write", "trim"] {
        assert_eq!(sum(&pass, kind), sum(&original, kind), "bytes of {kind}");
    }
    let flushes =
        |trace: &Trace| counted(trace).into_iter().filter(|((op, ..), _)| *op == "flush").map(|(_, n)| n).sum::<u64>();
    assert_eq!(flushes(&pass), flushes(&original));
    // The flushes that the user asked for come instead.
    assert_eq!(flushes(&one_pass("log-flush", &profile, ",flush=190", logical)), 10);
}

#[test]
fn a_larger_disk_has_more_of_it_and_a_smaller_one_less() {
    let original = record(&mut Rounds(0), 4 * Rounds::ONCE).unwrap();
    let profile = fit(&original);
    let all = original.records().len() as f64;
    for part in [0.25, 0.5, 1.0, 2.5] {
        let pass = one_pass(
            &format!("part{part}"),
            &profile,
            "",
            (profile.footprint_bytes as f64 * part) as u64 / 4096 * 4096,
        );
        let share = pass.records().len() as f64 / all;
        assert!((share / part - 1.0).abs() < 0.05, "{part}: {share}");
        let touched = openftl_workload::trace::footprint(&pass, 4096).touched_bytes() as f64;
        assert!((touched / profile.footprint_bytes as f64 / part - 1.0).abs() < 0.05, "{part}: {touched} B");
    }
    // Both halves of a disk twice as large are in use all the time.
    let twice = one_pass("twice", &profile, "", 2 * profile.footprint_bytes);
    for stretch in twice.records().chunks_exact(1024) {
        let upper = stretch.iter().filter(|record| record.offset() >= profile.footprint_bytes).count();
        assert!((400..624).contains(&upper), "{upper} of 1024");
    }
}

#[test]
fn lists_that_do_not_agree_say_which() {
    let original = record(&mut Log(0), 20 * 102).unwrap();
    let good = fit(&original).to_toml().unwrap();
    let list = |name: &str| good.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name}"));
    for (name, to, why) in [
        ("pages = ", "pages = \"0 1\"", "2 pages and"),
        ("starts = ", "starts = \"\"", "0 starts"),
        ("path = ", "path = \"0 99\"", "run 2 of revisits goes to region 99"),
        ("path = ", "path = \"0\"", "leaves out"),
        ("orders = ", "orders = \"9\"", "orders"),
        ("kinds = ", "kinds = [[640, 1, 1, 1, 1]]", "case of revisits"),
        ("depths = ", "depths = [[40, 0, 1]]", "depths or news"),
        ("unit_bytes = ", "unit_bytes = 3000", "3000"),
        ("trimmed = ", "trimmed = 4000", "4000 of them trimmed"),
    ] {
        let error = Profile::parse("bad", &good.replacen(list(name), to, 1)).unwrap_err().to_string();
        assert!(error.contains(why), "{name}: {error}");
    }
}

#[test]
fn published_profiles_have_the_published_numbers() {
    for (name, writes, write_kib, read_kib) in [
        ("msnfs", 15.0, 10.06, 14.38),
        ("financial1", 54.0, 2.91, 2.48),
        ("radius", 91.0, 7.20, 6.58),
        ("ts0", 82.0, 8.01, 13.68),
    ] {
        let profile = Profile::load(name).unwrap();
        assert_eq!((profile.name.as_str(), profile.write_percent), (name, writes));
        assert!(!profile.assumptions.is_empty());
        assert!((profile.writes.mean_bytes() / 1024.0 - write_kib).abs() < 0.005, "{name}");
        assert!((profile.reads.mean_bytes() / 1024.0 - read_kib).abs() < 0.005, "{name}");
        let seen = info(&run(&format!("profile:{name}"), 1 << 30, 1));
        assert!((seen.write_percent - writes).abs() < 0.5, "{name}: {}", seen.write_percent);
        assert!((seen.write_size.mean / 1024.0 / write_kib - 1.0).abs() < 0.02, "{name}");
    }
    assert_eq!(published_profiles().len(), 4);
}

#[test]
fn wrong_profiles_say_why() {
    let good = Profile::load("msnfs").unwrap().to_toml().unwrap();
    for (from, to, why) in [
        ("write_percent = 15.0", "write_percent = 115.0", "write_percent"),
        ("theta = 0.9", "theta = 9.0", "theta"),
        ("bytes = 8192", "bytes = 0", "size"),
        ("name = ", "nome = ", "nome"),
    ] {
        let error = Profile::parse("bad", &good.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn revisits_of_an_earlier_version_are_refused() {
    let original = record(&mut Rounds(0), 4 * Rounds::ONCE).unwrap();
    let now = fit(&original).to_toml().unwrap();
    let version = format!("version = {REVISITS_VERSION}\n");
    assert!(now.contains(&version) && Profile::parse("now", &now).is_ok());
    for (other, why) in
        [("version = 1\n", "version 1, and"), ("version = \"2\"\n", "version \"2\""), ("", "no version")]
    {
        let error = Profile::parse("other", &now.replacen(&version, other, 1)).unwrap_err().to_string();
        assert!(error.contains(why) && error.contains("fit the trace again"), "{error}");
    }
}
