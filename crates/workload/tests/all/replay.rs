//! Mapping, repeating and scaling of traces.

use openftl_workload::trace::{Map, OpenOptions, Replay, ReplayOptions, Trace, footprint, read};
use openftl_workload::{Op, Request, Source};

fn sample() -> Trace {
    let text = "time_ns,device,op,offset,bytes\n\
        0,a,write,409600,4096\n10,a,write,413696,512\n20,b,read,0,8192\n30,a,write,4096000,4096\n40,b,flush,0,0\n";
    read(text.as_bytes(), "sample", &OpenOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn all(mut replay: Replay) -> Vec<Request> {
    let (mut out, mut batch) = (Vec::new(), [Request::default(); 3]);
    loop {
        match replay.fill(&mut batch) {
            Ok(0) => return out,
            Err(error) => panic!("{error}"),
            Ok(n) => out.extend_from_slice(&batch[..n]),
        }
    }
}

#[test]
fn dense_packs_and_keeps_neighbours() {
    let trace = sample();
    let pages = footprint(&trace, 4096);
    assert_eq!((pages.touched_pages, pages.written_pages), (5, 3));
    let replay = Replay::new(&trace, ReplayOptions::default(), 5 * 4096, 4096).unwrap();
    assert!(replay.describe().contains("densely"));
    let offsets: Vec<u64> = all(replay).iter().map(|r| r.offset / 4096).collect();
    assert_eq!(offsets, [0, 1, 3, 2, 0]);
    let error = Replay::new(&trace, ReplayOptions::default(), 4 * 4096, 4096).err().unwrap().to_string();
    assert!(error.contains("touches 5") && error.contains("fold or scale"), "{error}");
}

#[test]
fn fold_and_scale_stay_inside() {
    let trace = sample();
    for map in [Map::Fold, Map::Scale] {
        let options = ReplayOptions { map, ..ReplayOptions::default() };
        for pages in 2..40 {
            let logical = pages * 4096;
            let requests = all(Replay::new(&trace, options, logical, 4096).unwrap());
            assert!(requests.iter().all(|r| r.offset + r.bytes <= logical), "{map:?} {pages}");
        }
        assert!(Replay::new(&trace, options, 4096, 4096).is_err(), "a request of two pages");
    }
}

#[test]
fn laps_follow_each_other_in_time() {
    let options = ReplayOptions { repeat: Some(3), time_scale: 2.0, ..ReplayOptions::default() };
    let requests = all(Replay::new(&sample(), options, 1 << 20, 4096).unwrap());
    assert_eq!(requests.len(), 15);
    assert!(requests.is_sorted_by_key(|r| r.at_ns));
    assert_eq!((requests[4].at_ns, requests[5].at_ns), (80, 96));
    assert_eq!(requests[4].op, Op::Flush);
    let for_ever = ReplayOptions { repeat: None, ..options };
    let mut replay = Replay::new(&sample(), for_ever, 1 << 20, 4096).unwrap();
    let mut batch = vec![Request::default(); 10_000];
    assert_eq!(replay.fill(&mut batch).unwrap(), 10_000);
    for wrong in [ReplayOptions { repeat: Some(0), ..options }, ReplayOptions { time_scale: f64::NAN, ..options }] {
        assert!(Replay::new(&sample(), wrong, 1 << 20, 4096).is_err());
    }
}
