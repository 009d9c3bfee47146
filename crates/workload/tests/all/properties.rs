//! Whatever is thrown at parsers and specs, they answer with a value or an error, never with a
//! panic.

use openftl_workload::trace::{Format, Map, OpenOptions, Replay, ReplayOptions, Trace, convert, fit, info, read};
use openftl_workload::{Request, Source, Spec, formats, workloads};
use proptest::prelude::*;

fn exercise(trace: &Trace) {
    let description = info(trace);
    assert!(serde_json::to_string(&description).is_ok());
    assert!(fit(trace).to_toml().is_ok());
    for map in [Map::Dense, Map::Fold, Map::Scale] {
        let options = ReplayOptions { map, ..ReplayOptions::default() };
        if let Ok(mut replay) = Replay::new(trace, options, 1 << 40, 4096) {
            let mut batch = [Request::default(); 64];
            let filled = replay.fill(&mut batch).unwrap_or_else(|e| panic!("{e}"));
            assert!(batch[..filled].iter().all(|r| r.offset + r.bytes <= 1 << 40));
        }
    }
}

/// Pieces that bring a parser further than random bytes would.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(b"fio version 2 iolog\n".to_vec()),
        Just(b"fio version 3 iolog\n".to_vec()),
        Just(b"time_ns,device,op,offset,bytes\n".to_vec()),
        Just(b"8,0 3 1 0.000000000 697 Q W 223490 + 8 [x]\n".to_vec()),
        "[0-9]{1,20}[ ,][0-9]{1,20}[ ,][0-9]{1,20}[ ,][0-9]{1,5}[ ,][01RWrw]\n".prop_map(String::into_bytes),
        "[0-9]{1,20},[a-z]{1,3},[0-9],(Read|Write),[0-9]{1,20},[0-9]{1,12},[0-9]\n".prop_map(String::into_bytes),
        "[0-9]{1,3} f (read|write|trim|sync|wait) [0-9]{1,20} [0-9]{1,20}\n".prop_map(String::into_bytes),
        "f (read|write|trim|sync|wait) [0-9]{1,20} [0-9]{1,20}\n".prop_map(String::into_bytes),
        "[ -~]{0,40}\n".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..80),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn random_files_never_panic(pieces in proptest::collection::vec(piece(), 0..8), lenient: bool, device in proptest::option::of("[0-9]")) {
        let bytes = pieces.concat();
        for format in formats().iter().map(|f| Some(f.name.to_owned())).chain([None]) {
            let options = OpenOptions { format, lenient, device: device.clone(), ..OpenOptions::default() };
            if let Ok(trace) = read(&bytes[..], "random", &options) {
                exercise(&trace);
            }
        }
    }

    #[test]
    fn random_packed_files_never_panic(magic in 0usize..4, bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let magics: [&[u8]; 4] = [&[0x1f, 0x8b, 8, 0], &[0x28, 0xb5, 0x2f, 0xfd], &[0xfd, b'7', b'z', b'X', b'Z', 0], b"BZh9"];
        let packed = [magics[magic], &bytes[..]].concat();
        let _ = read(&packed[..], "random", &OpenOptions::default());
    }

    #[test]
    fn random_specs_never_panic(
        name in 0..workloads().len(),
        options in proptest::collection::vec(("(reads|trims|flush|size|align|rate|footprint|theta|scatter|writes|space|stride|count|window|lap|footprints|fill|smallest|largest|create|read|transactions|trim|block|journal|commit)", "[0-9]{1,6}(\\.[0-9])?(KiB|k|B|page|%)?|[0-9]{1,2}-[0-9]{1,2}|4k\\*[1-9]\\+[0-9]{1,4}k\\*2|page|[ -~]{0,6}"), 0..4),
        logical in prop_oneof![0u64..100_000, any::<u64>()],
        page in prop_oneof![Just(4096u32), any::<u32>()],
        seed: u64,
    ) {
        let joined: Vec<String> = options.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let text = format!("{}:{}", workloads()[name].name, joined.join(","));
        if let Ok(spec) = text.parse::<Spec>() {
            prop_assert_eq!(&spec.to_string().parse::<Spec>().unwrap(), &spec);
            prop_assert_eq!(&spec.full().parse::<Spec>().unwrap(), &spec);
            if let Ok(mut source) = spec.build(logical, page, seed) {
                let mut batch = [Request::default(); 300];
                prop_assert_eq!(source.fill(&mut batch).unwrap(), 300);
                prop_assert!(batch.iter().all(|r| r.offset + r.bytes <= logical));
            }
        }
    }

    #[test]
    fn any_text_is_no_panic(text in "\\PC{0,60}") {
        let _ = text.parse::<Spec>();
    }

    #[test]
    fn converted_traces_read_back(
        rows in proptest::collection::vec((0u64..10_000_000, 0usize..3, 0usize..4, 0u64..1 << 50, 1u64..1 << 30), 1..40)
    ) {
        let mut text = String::from("time_ns,device,op,offset,bytes\n");
        for (time_us, device, op, offset, bytes) in &rows {
            let op = ["read", "write", "trim", "flush"][*op];
            text += &format!("{},d{device},{op},{offset},{bytes}\n", time_us * 1000);
        }
        let trace = read(text.as_bytes(), "rows", &OpenOptions::default()).unwrap();
        for format in [Format::Csv, Format::Fio2, Format::Fio3] {
            let mut out = Vec::new();
            prop_assert!(convert(&trace, format, &mut out).unwrap().is_empty());
            let again = read(&out[..], "converted", &OpenOptions::default()).unwrap();
            let step = if format == Format::Fio2 { 1_000_000 } else { 1 };
            let plain = |t: &Trace| -> Vec<_> {
                t.records().iter().map(|r| (r.at_ns() / step, t.devices()[r.device()].clone(), r.op(), r.bytes(), if r.bytes() == 0 { 0 } else { r.offset() })).collect()
            };
            // Version 2 has no times if nothing waits.
            let untimed = format == Format::Fio2 && trace.records().iter().all(|r| r.at_ns() < step);
            prop_assert_eq!(plain(&again), plain(&trace));
            prop_assert_eq!(again.timed(), !untimed);
        }
    }
}
