//! Requests a second of the generators, in batches of 1024.
//!
//! Run by the test suite (`cargo test --benches`), each measures once; the hash printed for each
//! tells whether a change of code changed the requests.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use openftl_workload::{Request, Source, Spec};
use std::hint::black_box;

const LOGICAL_BYTES: u64 = 1 << 40;
const BATCH: usize = 1024;

const SPECS: [&str; 7] = [
    "uniform",
    "zipf:theta=0.99",
    "zipf:theta=0.99,scatter=0",
    "hotcold",
    "sequential:size=128KiB",
    "uniform:reads=30,trims=1,size=4KiB*70+64KiB*30,rate=10000",
    "profile:financial1",
];

fn build(text: &str) -> Box<dyn Source> {
    let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{e}"));
    spec.build(LOGICAL_BYTES, 4096, 1).unwrap_or_else(|e| panic!("{e}"))
}

/// FNV-1a over the first requests.
fn hash(source: &mut dyn Source) -> u64 {
    let mut batch = [Request::default(); BATCH];
    let filled = source.fill(&mut batch).unwrap_or_else(|e| panic!("{e}"));
    let words = batch[..filled].iter().flat_map(|r| [r.at_ns, r.op as u64, r.offset, r.bytes]);
    // Rotated, because aligned addresses have no low bits to spread.
    words.fold(0xcbf2_9ce4_8422_2325, |h: u64, w| (h.rotate_left(23) ^ w).wrapping_mul(0x0100_0000_01b3))
}

fn generate(c: &mut Criterion) {
    let mut group = c.benchmark_group("generate");
    group.throughput(Throughput::Elements(BATCH as u64));
    for text in SPECS {
        println!("{text}: hash {:016x}", hash(&mut *build(text)));
        let mut source = build(text);
        let mut batch = [Request::default(); BATCH];
        group.bench_function(BenchmarkId::from_parameter(text), |b| {
            b.iter(|| source.fill(black_box(&mut batch)));
        });
    }
    group.finish();
}

criterion_group!(benches, generate);
criterion_main!(benches);
