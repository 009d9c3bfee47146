//! How fast the simulated device is by itself: the ceiling of every simulation.
#![allow(missing_docs)]

mod work;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use openftl_nand::{Capabilities, Dimensions, Geometry, Nand, SimNand};

fn device() -> SimNand {
    let geometry = Geometry::new(Dimensions {
        channels: 8,
        dies_per_channel: 4,
        planes_per_die: 1,
        blocks: 1 << 13,
        pages_per_block: 128,
        page_bytes: 4096,
        spare_bytes: 128,
    })
    .expect("the geometry is valid");
    SimNand::new(geometry, Capabilities::MODERN)
}

fn bench(c: &mut Criterion) {
    let mut device = device();
    let pages = u64::from(device.geometry().pages());
    println!("hash {:#018x}", work::fill(&mut device, 1));
    println!("{} B for {pages} pages", device.memory_bytes());
    let mut group = c.benchmark_group("sim");
    group.sample_size(20).throughput(Throughput::Elements(pages));
    group.bench_function("program", |b| b.iter(|| work::fill(&mut device, 1)));
    group.throughput(Throughput::Elements(pages / 2));
    group.bench_function("copy", |b| b.iter(|| work::copy(&mut device, 1)));
    group.throughput(Throughput::Elements(pages));
    let mut small = SimNand::new(
        Geometry::new(Dimensions { blocks: 256, ..device.geometry().dimensions() }).expect("the geometry is valid"),
        Capabilities::MODERN,
    );
    group.throughput(Throughput::Elements(u64::from(small.geometry().pages())));
    group.bench_function("program_meta", |b| b.iter(|| work::fill_meta(&mut small, 1)));
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
