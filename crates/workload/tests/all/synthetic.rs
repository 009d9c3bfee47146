//! The synthetic workloads: their table, their laws, their errors.

use openftl_workload::{Op, Request, Source, Spec, common_parameters, workloads};

const LOGICAL: u64 = 64 << 20;

fn build(text: &str, seed: u64) -> Box<dyn Source> {
    let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
    spec.build(LOGICAL, 4096, seed).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn draw(text: &str, seed: u64, n: usize) -> Vec<Request> {
    let mut out = vec![Request::default(); n];
    let filled = build(text, seed).fill(&mut out);
    assert!(matches!(filled, Ok(filled) if filled == n), "{text}: {filled:?}");
    out
}

#[test]
fn every_file_has_its_row() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/synthetic");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|f| f.unwrap().file_name().into_string().unwrap().trim_end_matches(".rs").to_owned())
        .filter(|name| name != "mod")
        .collect();
    files.sort();
    let mut rows: Vec<String> = workloads().iter().map(|w| w.name.to_owned()).collect();
    rows.sort();
    assert_eq!(files, rows);
}

#[test]
fn rows_are_sound() {
    for row in workloads() {
        for text in [row.example, row.name] {
            let spec: Spec = text.parse().unwrap();
            let again: Spec = spec.to_string().parse().unwrap();
            let full: Spec = spec.full().parse().unwrap();
            assert_eq!((&spec, &spec), (&again, &full));
            let requests = draw(text, 1, 5000);
            assert!(requests.iter().all(|r| r.bytes > 0 && r.offset + r.bytes <= LOGICAL), "{text}");
            assert!(build(text, 1).describe().contains(row.name));
        }
        for parameter in row.parameters.iter().chain(common_parameters()) {
            if let (Some(default), true) = (parameter.default, row.common.is_none()) {
                let text = format!("{}:{}={default}", row.name, parameter.name);
                assert_eq!(text.parse::<Spec>().unwrap(), row.name.parse().unwrap(), "{text}");
            }
        }
    }
}

#[test]
fn a_seed_gives_the_same_requests_in_any_batches() {
    for row in workloads() {
        let whole = draw(row.example, 9, 1000);
        assert_eq!(whole, draw(row.example, 9, 1000));
        let mut source = build(row.example, 9);
        let (mut pieces, mut batch) = (Vec::new(), [Request::default(); 7]);
        while pieces.len() < 1000 {
            let n = source.fill(&mut batch).unwrap();
            pieces.extend_from_slice(&batch[..n]);
        }
        assert_eq!(whole, pieces[..1000], "{}", row.name);
        if !["sequential", "strided"].contains(&row.name) {
            assert_ne!(whole, draw(row.example, 10, 1000), "{}", row.name);
        }
    }
}

#[test]
fn the_mix_is_what_was_asked_for() {
    let n = 200_000;
    let requests = draw("uniform:reads=30,trims=5,flush=10,size=4KiB*70+64KiB*30,rate=1000,footprint=50", 3, n);
    let count = |op| requests.iter().filter(|r| r.op == op).count() as f64;
    let (reads, writes, trims, flushes) = (count(Op::Read), count(Op::Write), count(Op::Trim), count(Op::Flush));
    let data = reads + writes + trims;
    assert!((reads / data - 0.30).abs() < 0.005 && (trims / data - 0.05).abs() < 0.005);
    assert!((flushes - (writes / 10.0)).abs() <= 1.0);
    let large = requests.iter().filter(|r| r.bytes == 65536).count() as f64;
    assert!((large / data - 0.3).abs() < 0.005);
    assert!(requests.iter().all(|r| r.offset + r.bytes <= LOGICAL / 2));
    assert!(requests.is_sorted_by_key(|r| r.at_ns));
    let seconds = requests[n - 1].at_ns as f64 / 1e9;
    assert!((n as f64 / seconds / 1000.0 - 1.0).abs() < 0.02, "{seconds}");
    assert!(build("uniform:rate=5", 1).timed() && !build("uniform", 1).timed());
}

#[test]
fn options_do_not_move_the_addresses() {
    let plain = draw("zipf", 4, 500);
    let mixed = draw("zipf:reads=50,rate=10", 4, 500);
    assert!(plain.iter().zip(&mixed).all(|(a, b)| a.offset == b.offset));
}

#[test]
fn patterns() {
    let pages = LOGICAL / 4096;
    let hot = draw("hotcold:writes=90,space=10,scatter=0", 1, 100_000);
    let share = hot.iter().filter(|r| r.offset < LOGICAL / 10).count() as f64 / 1e5;
    assert!((share - 0.9).abs() < 0.01, "{share}");

    let sequential = draw("sequential:size=12KiB", 1, 100);
    assert!(sequential.windows(2).all(|w| w[1].offset == w[0].offset + w[0].bytes));

    let mut shuffled: Vec<u64> = draw("shuffle", 1, pages as usize).iter().map(|r| r.offset / 4096).collect();
    shuffled.sort_unstable();
    assert!(shuffled.into_iter().eq(0..pages));

    let mut strided: Vec<u64> =
        draw("strided:stride=64KiB", 1, pages as usize).iter().map(|r| r.offset / 4096).collect();
    assert_eq!(strided[1] - strided[0], 16);
    strided.sort_unstable();
    assert!(strided.into_iter().eq(0..pages));

    let phases = draw("phases:footprints=10-50,writes=1000", 1, 3000);
    assert!(phases[..1000].iter().chain(&phases[2000..]).all(|r| r.offset < LOGICAL / 10 + 4096));
    assert!(phases[1000..2000].iter().any(|r| r.offset > LOGICAL / 4));

    let drift = draw("drift:window=10,lap=1000", 1, 1000);
    assert!(drift[..10].iter().all(|r| r.offset < LOGICAL * 12 / 100));
    assert!(drift[500..510].iter().all(|r| (LOGICAL / 2..LOGICAL * 62 / 100).contains(&r.offset)));

    let streams = draw("streams:count=4,size=8KiB", 1, 4000);
    for part in 0..4u64 {
        let of_part: Vec<u64> = streams.iter().map(|r| r.offset).filter(|o| o / (LOGICAL / 4) == part).collect();
        assert!(of_part.windows(2).all(|w| w[1] == w[0] + 8192), "{part}");
    }
}

#[test]
fn a_file_system_stays_in_its_footprint() {
    let text = "postmark:fill=60,footprint=50,transactions=2,trim=1,cache=0,flush=100,rate=1000";
    let requests = draw(text, 1, 100_000);
    assert!(requests.iter().all(|r| r.offset + r.bytes <= LOGICAL / 2 && r.bytes.is_multiple_of(4096)));
    assert!(requests.iter().all(|r| r.bytes <= 512 << 10) && requests.is_sorted_by_key(|r| r.at_ns));
    let count = |op| requests.iter().filter(|r| r.op == op).count();
    assert_eq!(count(Op::Flush), count(Op::Write) / 100);
    assert!(count(Op::Trim) > 1000 && count(Op::Read) > 1000);
    // Options of pace and of trim move no data.
    let plain = |requests: Vec<Request>| {
        let data = requests.into_iter().filter(|r| matches!(r.op, Op::Read | Op::Write));
        data.map(|r| (r.op, r.offset, r.bytes)).take(50_000).collect::<Vec<_>>()
    };
    assert_eq!(plain(requests), plain(draw("postmark:fill=60,footprint=50,transactions=2,cache=0", 1, 60_000)));
    assert!(draw("postmark:transactions=2", 1, 50_000).iter().all(|r| r.op != Op::Trim));
    let spec: Spec = "postmark".parse().unwrap();
    let error = spec.build(1 << 60, 4096, 1).err().unwrap().to_string();
    assert!(error.contains("lower footprint or raise block"), "{error}");
}

#[test]
fn errors_name_what_is_wrong_and_what_is_right() {
    for (text, parts) in [
        ("zpif", &["`zpif`", "did you mean `zipf`", "uniform"][..]),
        ("zipf:tetha=1", &["`tetha`", "did you mean `theta`", "scatter"]),
        ("zipf:theta=9", &["`theta`", "`9`", "up to 5"]),
        ("uniform:reads=130", &["`reads`", "percentage"]),
        ("uniform:reads=70,trims=40", &["contradict", "100%"]),
        ("uniform:reads=100,flush=4", &["contradict", "flush"]),
        ("uniform:size=4 parsecs", &["`size`", "KiB"]),
        ("uniform:size=4KiB,align=6KiB", &["contradict", "divides"]),
        ("uniform:reads=1,reads=2", &["twice"]),
        ("uniform:fast", &["`fast`", "option=value"]),
        ("hotcold:space=100", &["contradict", "cold"]),
        ("profile:msnfs,reads=3", &["`reads`", "flush"]),
        ("postmark:smallest=8KiB,largest=4KiB", &["contradict", "smallest", "largest"]),
        ("postmark:transactions=2,writes=9", &["contradict", "transactions", "writes"]),
        ("postmark:fill=0", &["`fill`", "percentages"]),
        ("postmark:trim=2", &["`trim`", "0 to 1"]),
        ("postmark:reads=50", &["`reads`", "did you mean `read`"]),
    ] {
        let error = text.parse::<Spec>().unwrap_err().to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
    }
    for (text, part) in [
        ("uniform:size=1GiB", "larger than the footprint"),
        ("strided:stride=6000", "multiple of align"),
        ("strided:stride=1GiB", "not smaller"),
        ("streams:count=100000", "cannot be divided"),
        ("profile:mnsfs", "did you mean `msnfs`"),
        ("postmark:smallest=page,largest=1000", "smallest of 4096 B"),
        ("postmark:block=100", "set block"),
        ("postmark:journal=100", "lower journal"),
        ("postmark:fill=50-1,largest=1MiB", "more blocks than fill"),
        ("postmark:writes=1000", "writes=1000 end a round before"),
    ] {
        let error = text.parse::<Spec>().unwrap().build(LOGICAL, 4096, 1).err().unwrap().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}
