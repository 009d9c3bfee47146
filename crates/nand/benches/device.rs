//! How fast the devices are by themselves: the ceiling of every simulation, and of every disk in a
//! file.
#![allow(missing_docs)]

mod work;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use openftl_nand::{BlockId, Capabilities, Dimensions, FileNand, Geometry, Nand, Ppn, SimNand, Spare};
use std::path::Path;

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

/// A device in a file in this folder, with its first half programmed.
fn in_file(folder: &Path) -> FileNand {
    let shape = Dimensions { blocks: 512, pages_per_block: 128, ..device().geometry().dimensions() };
    let geometry = Geometry::new(shape).expect("the geometry is valid");
    let path = folder.join("device.nand");
    let mut device = FileNand::create(&path, geometry, Capabilities::MODERN, b"").expect("the disk has room");
    work::fill_bytes(&mut device, 0..256);
    device
}

/// The same operations on a file: the page cache takes them, except for what an erase syncs.
fn bench_file(c: &mut Criterion) {
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    let mut device = in_file(folder.path());
    let pages = u64::from(device.geometry().pages() / 2);
    let mut group = c.benchmark_group("file");
    group.sample_size(10).throughput(Throughput::Elements(pages));
    group.bench_function("erase, program", |b| b.iter(|| work::fill_bytes(&mut device, 0..256)));
    group.bench_function("erase, copy", |b| b.iter(|| work::copy_bytes(&mut device, 256)));
    let mut page = vec![0; 4096];
    group.bench_function("read", |b| {
        b.iter(|| {
            for ppn in 0..pages as u32 {
                device.read(Ppn(ppn), &mut page).expect("the page is programmed");
            }
        });
    });
    group.bench_function("read spare", |b| {
        b.iter(|| {
            (0..pages as u32)
                .filter(|ppn| device.read_spare(Ppn(*ppn)).is_ok_and(|s: Option<Spare>| s.is_some()))
                .count()
        })
    });
    group.throughput(Throughput::Elements(256));
    group.bench_function("erase alone", |b| {
        b.iter(|| (0..256).for_each(|block| device.erase(BlockId(block)).expect("the block is good")));
    });
    group.finish();
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

criterion_group!(benches, bench, bench_file);
criterion_main!(benches);
