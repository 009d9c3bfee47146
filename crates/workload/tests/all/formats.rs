//! Every format: a legal sample with what must come out, and an illegal twin with the error that
//! must name it.

use openftl_workload::Op::{Flush, Read, Trim, Write};
use openftl_workload::trace::{Format, OpenOptions, Record, SizeUnit, TimeUnit, Trace, convert, read};
use openftl_workload::{Op, WorkloadError, formats};
use std::collections::BTreeSet;

fn open(bytes: &[u8]) -> Result<Trace, WorkloadError> {
    read(bytes, "sample", &OpenOptions::default())
}

type Expected = (u64, Op, u64, u64);

fn check(format: &str, bytes: &[u8], expected: &[Expected]) -> Trace {
    let trace = open(bytes).unwrap_or_else(|e| panic!("{format}: {e}"));
    assert_eq!(trace.format(), format);
    let got: Vec<Expected> = trace.records().iter().map(|r| (r.at_ns(), r.op(), r.offset(), r.bytes())).collect();
    assert_eq!(got, expected, "{format}");
    trace
}

/// A text format: name, legal sample, its requests, and a line that must not follow it.
struct Sample {
    format: &'static str,
    legal: &'static str,
    expected: &'static [Expected],
    illegal: &'static str,
}

const SAMPLES: &[Sample] = &[
    Sample {
        format: "fivecolumn",
        legal: "0.5 0 8 8 0\n1.5 0 17 16 1\n",
        expected: &[(0, Write, 4096, 4096), (1_000_000, Read, 8704, 8192)],
        illegal: "2.5 0 x 8 0",
    },
    Sample {
        format: "fivecolumn",
        legal: "0.5 3 8 8 W\n1.5 3 17 16 R\n",
        expected: &[(0, Write, 4096, 4096), (1_000_000, Read, 8704, 8192)],
        illegal: "2.5 0 9 8 2",
    },
    Sample {
        format: "spc",
        legal: "0,20941264,8192,W,0.551706\n1,8,512,r,0.551707\n",
        expected: &[(0, Write, 20_941_264 * 512, 8192), (1000, Read, 4096, 512)],
        illegal: "0,20941264,8192,Q,0.6",
    },
    Sample {
        format: "msr",
        legal: "128166372003061629,src1,0,Write,4096,8192,100\n128166372003061639,src1,1,Read,0,512,7\n",
        expected: &[(0, Write, 4096, 8192), (1000, Read, 0, 512)],
        illegal: "128166372003061629,src1,0,Erase,4096,8192,100",
    },
    Sample {
        format: "alibaba",
        legal: "device_id,opcode,offset,length,timestamp\n419,W,8792731648,16384,1577808000000046\n725,R,0,4096,1577808000000050\n",
        expected: &[(0, Write, 8_792_731_648, 16384), (4000, Read, 0, 4096)],
        illegal: "419,W,8792731648,-1,1577808000000046",
    },
    Sample {
        format: "tencent",
        legal: "1538323200,12910952,128,0,1063\n1538323201,6265536,8,1,1071\n",
        expected: &[(0, Read, 12_910_952 * 512, 65536), (1_000_000_000, Write, 6_265_536 * 512, 4096)],
        illegal: "1538323200,12910952,128,2,1063",
    },
    Sample {
        format: "replaylog",
        legal: "0.000,120,1,4096,4923392,0.091,4096\n1.250,90,0,8192,0,1.3,8192\n",
        expected: &[(0, Read, 4_923_392, 4096), (1_250_000, Write, 0, 8192)],
        illegal: "0.000,120,1,4096,4923392,zero,4096",
    },
    Sample {
        format: "diskmon",
        legal: "0\t1.5\t0.001\t0\tWrite\t64\t8\n1\t1.500001\t0.001\t0\tRead\t0\t16\n",
        expected: &[(0, Write, 32768, 4096), (1000, Read, 0, 8192)],
        illegal: "2\t1.6\t0.001\t0\tWrite\t64",
    },
    Sample {
        format: "biotracer",
        legal: "96\t\t8\t\t4096\t\t5\t\t1.5\t\t1.6\t\t1.7\t\t1.8\n8\t8\t4096\t4\t1.500000001\t2\t3\t4\n",
        expected: &[(0, Write, 49152, 4096), (1, Read, 4096, 4096)],
        illegal: "96 9 4096 5 1.5 1.6 1.7 1.8",
    },
    Sample {
        format: "blkparse",
        legal: "  8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]\n  8,0    3        2     0.000000100   697  G   W 223490 + 8 [kjournald]\n  8,0    3        3     0.000000200   697  D   W 223490 + 8 [kjournald]\n  8,0    1        4     0.000001000   700  Q   R 8 + 16 [cat]\n  8,0    1        5     0.000002000   700  Q FWS [sync]\n  8,0    1        6     0.000003000   700  Q  DS 0 + 2048 [fstrim]\n",
        expected: &[
            (0, Write, 223_490 * 512, 4096),
            (1000, Read, 4096, 8192),
            (2000, Flush, 0, 0),
            (3000, Trim, 0, 1 << 20),
        ],
        illegal: "  8,0    1        x     0.000003000   700  Q  W 0 + 8 [cat]",
    },
    Sample {
        format: "fio",
        legal: "fio version 2 iolog\n/dev/a add\n/dev/a open\n/dev/a write 0 4096\n/dev/a wait 10 0\n/dev/a read 4096 512\n/dev/a trim 0 8192\n/dev/a sync 0 0\n/dev/a close\n",
        expected: &[
            (0, Write, 0, 4096),
            (10_000_000, Read, 4096, 512),
            (10_000_000, Trim, 0, 8192),
            (10_000_000, Flush, 0, 0),
        ],
        illegal: "/dev/a scribble 0 4096",
    },
    Sample {
        format: "fio",
        legal: "fio version 3 iolog\n0 f add\n5 f write 0 4096\n9 f datasync 0 0\n",
        expected: &[(0, Write, 0, 4096), (4000, Flush, 0, 0)],
        illegal: "9 f wait 5",
    },
    Sample {
        format: "csv",
        legal: "time_ns,device,op,offset,bytes\n7,a,write,1,2\n8,a,flush,0,0\n9,b,trim,0,4096\n",
        expected: &[(0, Write, 1, 2), (1, Flush, 0, 0), (2, Trim, 0, 4096)],
        illegal: "9,b,TRIM,0,4096",
    },
];

#[test]
fn legal_samples() {
    for sample in SAMPLES {
        check(sample.format, sample.legal.as_bytes(), sample.expected);
    }
}

#[test]
fn illegal_lines_are_named_or_skipped() {
    for sample in SAMPLES {
        let text = format!("{}{}\n", sample.legal, sample.illegal);
        let line = sample.legal.lines().count() as u64 + 1;
        let options = OpenOptions { format: Some(sample.format.to_owned()), ..OpenOptions::default() };
        match read(text.as_bytes(), "sample", &options) {
            Err(WorkloadError::Line { line: at, text, format, .. }) => {
                assert_eq!((at, format), (line, sample.format));
                assert_eq!(text.trim(), sample.illegal.trim());
            }
            other => panic!("{}: {other:?}", sample.format),
        }
        let options = OpenOptions { lenient: true, ..options };
        let trace = read(text.as_bytes(), "sample", &options).unwrap();
        assert_eq!((trace.skipped(), trace.records().len()), (1, sample.expected.len()));
    }
}

#[test]
fn every_row_is_sampled() {
    let sampled: BTreeSet<&str> = SAMPLES.iter().map(|s| s.format).chain(["vscsi", "oraclegeneral"]).collect();
    let table: BTreeSet<&str> = formats().iter().map(|f| f.name).collect();
    assert_eq!(sampled, table);
}

#[test]
fn every_file_has_its_row() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/trace/formats");
    let table = std::fs::read_to_string(format!("{folder}/mod.rs")).unwrap();
    let mut rows = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let stem = name.trim_end_matches(".rs");
        if !["mod", "fields"].contains(&stem) {
            assert!(table.contains(&format!("{stem}::ENTRY,")), "{stem} is in no row");
            rows += 1;
        }
    }
    assert_eq!(rows, formats().len());
}

fn vscsi(version: u16, command: u16, sector: u64, bytes: u32, time_us: u64) -> Vec<u8> {
    let mut record = Vec::new();
    let mark = [command.to_le_bytes(), (version << 8).to_le_bytes()].concat();
    let numbers = [1u32.to_le_bytes(), bytes.to_le_bytes(), 1u32.to_le_bytes()].concat();
    record.extend(if version == 1 { [numbers, mark].concat() } else { [mark, numbers].concat() });
    record.extend([sector.to_le_bytes(), time_us.to_le_bytes()].concat());
    record.extend(if version == 2 { vec![0; 8] } else { Vec::new() });
    record
}

#[test]
fn vscsi_both_versions() {
    for version in [1, 2] {
        let records =
            [vscsi(version, 0x2a, 8, 4096, 100), vscsi(version, 0x12, 0, 512, 101), vscsi(version, 0x28, 0, 512, 103)];
        let bytes = records.concat();
        let trace = check("vscsi", &bytes, &[(0, Write, 4096, 4096), (3000, Read, 0, 512)]);
        assert!(trace.notes().iter().any(|n| n.contains(&format!("version {version}"))));
        let cut = &bytes[..bytes.len() - 1];
        let expected = 2 * records[0].len() as u64;
        match open(cut) {
            Err(WorkloadError::Record { offset, .. }) => assert_eq!(offset, expected),
            other => panic!("{other:?}"),
        }
        let mut broken = bytes.clone();
        let last = broken.len() - records[2].len() + if version == 1 { 15 } else { 3 };
        broken[last] = 9;
        let options = OpenOptions { format: Some("vscsi".to_owned()), ..OpenOptions::default() };
        match read(&broken[..], "sample", &options) {
            Err(WorkloadError::Record { offset, why, .. }) => {
                assert_eq!((offset, why.contains("version")), (expected, true))
            }
            other => panic!("{other:?}"),
        }
    }
}

fn oracle(time_s: u32, object: u64, bytes: u32, next: i64) -> Vec<u8> {
    [&time_s.to_le_bytes()[..], &object.to_le_bytes(), &bytes.to_le_bytes(), &next.to_le_bytes()].concat()
}

#[test]
fn oracle_general_addresses_and_hashes() {
    let bytes = [oracle(5, 8, 4096, 3), oracle(6, 0, 512, -1), oracle(6, 8, 4096, -1)].concat();
    check(
        "oraclegeneral",
        &bytes,
        &[(0, Write, 4096, 4096), (1_000_000_000, Write, 0, 512), (1_000_000_000, Write, 4096, 4096)],
    );
    let bytes = [oracle(5, u64::MAX, 5000, 3), oracle(6, 1 << 60, 512, -1), oracle(6, u64::MAX, 4096, -1)].concat();
    check(
        "oraclegeneral",
        &bytes,
        &[(0, Write, 0, 5000), (1_000_000_000, Write, 8192, 512), (1_000_000_000, Write, 0, 4096)],
    );
    match open(&bytes[..50]) {
        Err(WorkloadError::Record { offset, .. }) => assert_eq!(offset, 48),
        other => panic!("{other:?}"),
    }
}

#[test]
fn devices_are_filtered_by_name() {
    let text = "time_ns,device,op,offset,bytes\n1,a,write,0,8\n2,b,write,8,8\n3,a,read,16,8\n";
    let only = |device: &str| OpenOptions { device: Some(device.to_owned()), ..OpenOptions::default() };
    let trace = read(text.as_bytes(), "sample", &only("b")).unwrap();
    assert_eq!((trace.records().len(), trace.devices()), (1, &["b".to_owned()][..]));
    let error = read(text.as_bytes(), "sample", &only("c")).unwrap_err().to_string();
    assert!(error.contains("no request is of device c") && error.contains("a, b"), "{error}");
}

#[test]
fn emptiness_is_explained() {
    for (text, why) in
        [("", "the file is empty"), ("time_ns,device,op,offset,bytes\n", "trace format"), ("\n\n", "trace format")]
    {
        let error = open(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let error = open(b"time_ns,device,op,offset,bytes\n1,a,write,0,0\n").unwrap_err().to_string();
    assert!(error.contains("all 1 requests have zero bytes"), "{error}");
    let options = OpenOptions { format: Some("cvs".to_owned()), ..OpenOptions::default() };
    let error = read(&b"x"[..], "sample", &options).unwrap_err().to_string();
    assert!(error.contains("did you mean `csv`"), "{error}");
}

#[test]
fn compressed_by_content() {
    use std::io::Write as _;
    let plain = SAMPLES[0].legal.as_bytes();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(plain).unwrap();
    let mut bzip = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
    bzip.write_all(plain).unwrap();
    let zstd = ruzstd::encoding::compress_to_vec(plain, ruzstd::encoding::CompressionLevel::Fastest);
    let twice =
        [zstd.clone(), ruzstd::encoding::compress_to_vec(plain, ruzstd::encoding::CompressionLevel::Fastest)].concat();
    for packed in [gzip.finish().unwrap(), bzip.finish().unwrap(), zstd] {
        check("fivecolumn", &packed, SAMPLES[0].expected);
        let cut = &packed[..packed.len() - 6];
        assert!(open(cut).is_err(), "a cut file must not pass");
    }
    assert_eq!(open(&twice).unwrap().records().len(), 4);
}

#[test]
fn a_small_file_does_not_ask_for_much_memory() {
    // Made by `xz --lzma2=preset=6,dict=1GiB`.
    let packed = include_bytes!("../../../../fuzz/regressions/trace/xz-dictionary-of-1-GiB");
    let error = open(&packed[2..]).unwrap_err().to_string();
    assert!(error.contains("needed") && error.contains("too big"), "{error}");
    let trim = |bytes: u64| format!("time_ns,device,op,offset,bytes\n1,a,trim,0,{bytes}\n");
    let trace = open(trim(1 << 41).as_bytes()).unwrap();
    assert_eq!((trace.records().len(), trace.records()[0].bytes()), (1 << 10, 1 << 31));
    let error = open(trim((1 << 41) + 512).as_bytes()).unwrap_err().to_string();
    assert!(error.starts_with("sample:2: ") && error.contains("more than 2 TiB"), "{error}");
}

/// fio's manual and fio mean different times by a wait.
#[test]
fn waits_of_fio_are_read_as_fio_plays_them_or_as_stated() {
    let log = b"fio version 2 iolog\nf add\nf write 0 512\nf wait 30\nf write 0 512\nf wait 20\nf write 0 512\n";
    let times = |time_unit| {
        let trace = read(&log[..], "log", &OpenOptions { time_unit, ..OpenOptions::default() }).unwrap();
        let times: Vec<u64> = trace.records().iter().map(|record| record.at_ns()).collect();
        (times, trace.time_guess().is_some(), trace.notes().iter().any(|note| note.contains("1 of 2 go back")))
    };
    assert_eq!(times(None), (vec![0, 30_000_000, 30_000_000], true, true));
    assert_eq!(times(Some(TimeUnit::Milliseconds)), (vec![0, 30_000_000, 30_000_000], false, false));
    assert_eq!(times(Some(TimeUnit::Microseconds)), (vec![0, 30_000, 50_000], false, false));
    let stated = OpenOptions { time_unit: Some(TimeUnit::Seconds), ..OpenOptions::default() };
    assert!(read(&log[..], "log", &stated).unwrap_err().to_string().contains("not in s"));
    let third = b"fio version 3 iolog\n5 f write 0 4096\n";
    assert!(matches!(read(&third[..], "log", &stated), Err(WorkloadError::SaidByFormat { .. })));
}

const MIXED: &str = "time_ns,device,op,offset,bytes\n0,7,write,512,4096\n300,9,read,1024,512\n500,7,trim,0,512\n\
                     2000000100,9,write,0,1024\n2000000100,9,flush,0,0\n";

/// Forms of reads and writes: what they cannot say is left out, and said.
#[test]
fn forms_of_others_read_back_as_the_same_reads_and_writes() {
    let trace = read(MIXED.as_bytes(), "mixed", &OpenOptions::default()).unwrap();
    let units = |format| {
        let is_five = format == Format::FiveColumn;
        let sectors = is_five.then_some(SizeUnit::Sectors);
        let time_unit = is_five.then_some(TimeUnit::Nanoseconds);
        OpenOptions { time_unit, address_unit: sectors, size_unit: sectors, ..OpenOptions::default() }
    };
    for (format, name) in [(Format::Msr, "msr"), (Format::Spc, "spc"), (Format::FiveColumn, "fivecolumn")] {
        let mut out = Vec::new();
        let notes = convert(&trace, format, &mut out).unwrap();
        assert!(notes[0].starts_with("left out 1 trims and 1 flushes"), "{notes:?}");
        let again = read(&out[..], "again", &units(format)).unwrap();
        assert_eq!(again.format(), name);
        let device = |record: &Record| again.devices()[record.device()].trim_end_matches(".0").to_owned();
        let found: Vec<_> =
            again.records().iter().map(|r| (r.at_ns(), device(r), r.op(), r.offset(), r.bytes())).collect();
        let expected = [(0, "7", Write, 512, 4096), (300, "9", Read, 1024, 512), (2_000_000_100, "9", Write, 0, 1024)];
        assert_eq!(found, expected.map(|(at, device, op, offset, bytes)| (at, device.to_owned(), op, offset, bytes)));
    }
    let part = "time_ns,device,op,offset,bytes\n0,a,write,512,700\n";
    let part = read(part.as_bytes(), "part", &OpenOptions::default()).unwrap();
    assert!(convert(&part, Format::Spc, &mut Vec::new()).is_ok());
    let error = convert(&part, Format::FiveColumn, &mut Vec::new()).unwrap_err().to_string();
    assert!(error.contains("read or write 1 is not of whole sectors"), "{error}");
    let untimed = read(&b"fio version 2 iolog\nf write 0 512\n"[..], "untimed", &OpenOptions::default()).unwrap();
    assert!(convert(&untimed, Format::Msr, &mut Vec::new()).unwrap_err().to_string().contains("no times"));
}

#[test]
fn addresses_are_shifted_to_where_pages_begin() {
    let text: String = (0..10).map(|i| format!("{i},a,write,{},4096\n", 3584 + i * 40_960)).collect();
    let text = format!("time_ns,device,op,offset,bytes\n{text}10,a,write,0,4096\n");
    let info = |shift_bytes| {
        let options = OpenOptions { shift_bytes, ..OpenOptions::default() };
        openftl_workload::trace::info(&read(text.as_bytes(), "t", &options).unwrap())
    };
    let (plain, shifted) = (info(0), info(512));
    assert_eq!((plain.usual_shift_bytes, shifted.usual_shift_bytes), (3584, 0));
    assert!((plain.unaligned_percent - 1000.0 / 11.0).abs() < 1e-9, "{}", plain.unaligned_percent);
    assert!((shifted.unaligned_percent - 100.0 / 11.0).abs() < 1e-9);
}

#[test]
fn writes_that_have_to_be_durable_are_told_apart() {
    let line = |at: u32, rwbs| format!("  8,0 3 {at} 0.00000{at}000 697 Q {rwbs} 8 + 8 [kjournald]\n");
    let text: String =
        ["WS", "WFS", "FWS", "FWFS", "RS"].into_iter().zip(1..).map(|(rwbs, at)| line(at, rwbs)).collect();
    let trace = open(text.as_bytes()).unwrap();
    let said = |trace: &Trace| trace.records().iter().map(|r| (r.op(), r.fua())).collect::<Vec<_>>();
    let plain = (Write, false);
    let expected = [plain, (Write, true), (Flush, false), plain, (Flush, false), (Write, true), (Read, false)];
    assert_eq!(said(&trace), expected);
    assert_eq!(trace.records()[4].at_ns(), trace.records()[5].at_ns(), "the flush comes just before its write");
    // The own form keeps it, another says that it does not.
    let mut csv = Vec::new();
    assert!(convert(&trace, Format::Csv, &mut csv).unwrap().is_empty());
    assert!(String::from_utf8(csv.clone()).unwrap().contains("\n1000,8_0,write-fua,4096,4096\n"));
    assert_eq!(open(&csv).unwrap().records(), trace.records());
    let notes = convert(&trace, Format::Fio3, &mut Vec::new()).unwrap();
    assert_eq!(notes, ["2 writes are plain ones now: the form has no FUA; csv has"]);
    // No more than the limit, even if it lies between a flush and its write.
    let options = OpenOptions { limit: Some(3), ..OpenOptions::default() };
    assert_eq!(said(&read(text.as_bytes(), "sample", &options).unwrap()), expected[..3]);
}
