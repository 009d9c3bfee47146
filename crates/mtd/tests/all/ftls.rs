//! FTLs over MTD devices keep what was written, also if blocks fail.
#![allow(clippy::unwrap_used)]

use crate::bed::*;
use crate::memory::Memory;
use ftl::{Config, Flash, Ftl};
use nand::{Lpn, Nand};
use openftl_mtd::{Chip, MtdNand, Shape};

const SHAPE: Shape = Shape { blocks: 100, pages_per_block: 16, page_bytes: 512, oob_bytes: 38, ecc_strength: 1 };

/// A disk, and what it should hold.
struct Written<C: Chip> {
    disk: Box<dyn Ftl<MtdNand<C>>>,
    versions: Vec<u32>,
    page: Vec<u8>,
    wanted: Vec<u8>,
    random: u64,
    writes: u32,
}

impl<C: Chip> Written<C> {
    fn new(disk: Box<dyn Ftl<MtdNand<C>>>, page_bytes: u32) -> Self {
        let page = vec![0; page_bytes as usize];
        let versions = vec![0; disk.logical_pages() as usize];
        Self { disk, versions, wanted: page.clone(), page, random: 7, writes: 0 }
    }

    fn write(&mut self, writes: u32) {
        for _ in 0..writes {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (self.random >> 33) as usize % self.versions.len();
            self.writes += 1;
            version(&mut self.page, Lpn(at as u32), self.writes);
            self.disk.write(Lpn(at as u32), &self.page).unwrap();
            self.versions[at] = self.writes;
        }
    }

    fn check(&mut self) {
        for (lpn, written) in (0..).map(Lpn).zip(&self.versions) {
            self.disk.read(lpn, &mut self.page).unwrap();
            match written {
                0 => self.wanted.fill(0),
                written => version(&mut self.wanted, lpn, *written),
            }
            assert!(self.page == self.wanted, "{lpn} holds something else than version {written}");
        }
    }
}

/// Writes more than twice the device, reads it, mounts it without a clean end, and goes on.
fn use_disk<B: Bed>(bed: &B, name: &str) {
    let row = ftl::ftls::find::<MtdNand<B::Chip>>(name).unwrap();
    let n = bed.create();
    let geometry = *n.geometry();
    let config = row.info.config(&Config { battery: false, ..Config::new(geometry.pages() / 10 * 7) });
    let begun = std::time::Instant::now();
    let mut written = Written::new((row.format)(Flash::new(n), &config).unwrap(), geometry.page_bytes());
    written.write(geometry.pages() / 4 * 9);
    written.check();
    written.disk.flush().unwrap();
    for _ in 0..2 {
        let Written { disk, .. } = written;
        drop(disk);
        let (disk, report) = row.mount.unwrap()(Flash::new(bed.open()), &config).unwrap();
        assert!(report.read_only.is_none());
        written = Written { disk, ..written };
        written.check();
        written.write(geometry.pages() / 8);
        written.check();
        written.disk.flush().unwrap();
    }
    println!("{name}: {} writes over {} pages in {:.1?}", written.writes, geometry.pages(), begun.elapsed());
}

fn on_kernel(name: &str) {
    Kernel::find().iter().for_each(|bed| use_disk(bed, name));
}

#[test]
fn gecko_in_memory() {
    use_disk(&Memory::new(SHAPE), "gecko");
}

#[test]
fn page_mapping_in_memory() {
    use_disk(&Memory::new(SHAPE), "page");
}

#[test]
fn gecko_kernel() {
    on_kernel("gecko");
}

#[test]
fn page_mapping_kernel() {
    on_kernel("page");
}

/// A block that is marked bad is erased, as the kernel does it. No FTL may miss what was in it.
#[test]
fn every_served_ftl_outlives_failing_blocks() {
    for row in ftl::ftls::table::<MtdNand<Memory>>() {
        let runs = row.mount.is_some() && row.info.runs_on(nand::Capabilities::MODERN);
        if !runs || matches!(row.info.durable, ftl::ftls::Durability::Battery) {
            continue;
        }
        let memory = Memory::new(Shape { blocks: 132, ..SHAPE });
        let n = memory.create();
        let geometry = *n.geometry();
        let config = row.info.config(&Config { battery: false, ..Config::new(geometry.pages() / 2) });
        let Ok(disk) = (row.format)(Flash::new(n), &config) else { continue };
        let mut written = Written::new(disk, geometry.page_bytes());
        memory.cells().one_fails_of = 500;
        written.write(geometry.pages());
        written.check();
        memory.cells().one_fails_of = 0;
        let bad = memory.cells().bad.len();
        assert!(bad > 2, "{}: {bad} blocks failed", row.info.name);
        written.disk.flush().unwrap();
        let Written { disk, .. } = written;
        drop(disk);
        let (disk, _) = row.mount.unwrap()(Flash::new(memory.open()), &config).unwrap();
        written = Written { disk, ..written };
        written.check();
        println!("{}: {bad} bad blocks", row.info.name);
    }
}
