//! FTLs over MTD devices keep what was written, also if blocks fail.
#![allow(clippy::unwrap_used)]

use crate::bed::*;
use crate::memory::Memory;
use ftl::{Config, Flash, Ftl};
use nand::{BlockId, Lpn, Nand};
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
///
/// Returns the number of bad blocks.
fn use_disk<B: Bed>(bed: &B, name: &str) -> u32 {
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
    let Written { disk, writes, .. } = written;
    drop(disk);
    let n = bed.open();
    let bad = (0..geometry.blocks()).filter(|block| n.is_bad(BlockId(*block))).count() as u32;
    let (pages, time) = (geometry.pages(), begun.elapsed());
    println!("{name}: {writes} writes over {pages} pages in {time:.1?}, {bad} bad blocks");
    bad
}

/// `OPENFTL_MTD_BAD_MIN` says how many blocks of the chip go bad at least.
fn on_kernel(name: &str) {
    let Some(bed) = Kernel::find() else { return };
    let bad = use_disk(&bed, name);
    if let Ok(wanted) = std::env::var("OPENFTL_MTD_BAD_MIN") {
        assert!(bad >= wanted.parse().unwrap(), "{bad} blocks went bad");
    }
}

#[test]
fn gecko_in_memory() {
    assert_eq!(use_disk(&Memory::new(SHAPE), "gecko"), 0);
}

#[test]
fn page_mapping_in_memory() {
    assert_eq!(use_disk(&Memory::new(SHAPE), "page"), 0);
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
        memory.cells().fail(12);
        written.write(geometry.pages() * 2);
        written.check();
        let (bad, left) = memory.cells().failed();
        assert!(bad > 3 && left == 0, "{}: {bad} blocks are bad, {left} failures are left", row.info.name);
        written.disk.flush().unwrap();
        let Written { disk, .. } = written;
        drop(disk);
        let (disk, _) = row.mount.unwrap()(Flash::new(memory.open()), &config).unwrap();
        written = Written { disk, ..written };
        written.check();
        println!("{}: {bad} bad blocks", row.info.name);
    }
}
