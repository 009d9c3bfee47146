//! FTLs over MTD devices keep what was written, also if blocks fail or power is cut.
#![allow(clippy::unwrap_used)]

use crate::bed::*;
use crate::memory::Memory;
use ftl::ftls::{Durability, Entry};
use ftl::{Config, Flash, Ftl, FtlError};
use nand::{BlockId, Lpn, Nand, NandError};
use openftl_mtd::{MtdNand, Shape};
use table::AnyBytes;

const SHAPE: Shape = Shape { blocks: 100, pages_per_block: 16, page_bytes: 512, oob_bytes: 38, ecc_strength: 1 };

/// A disk, and what it should hold.
struct Written {
    row: Entry<AnyBytes>,
    config: Config,
    disk: Box<dyn Ftl<AnyBytes>>,
    /// The write that each logical page holds; 0 if none.
    versions: Vec<u32>,
    page: Vec<u8>,
    wanted: Vec<u8>,
    random: u64,
    writes: u32,
}

impl Written {
    /// An empty disk with this share of the pages of the device, in percent.
    fn format(row: Entry<AnyBytes>, bed: &impl Bed, percent: u32) -> Result<Self, FtlError> {
        let device = MtdNand::create_on(bed.any_chip(), b"owner").unwrap();
        let geometry = *device.geometry();
        let logical_pages = geometry.pages() / 100 * percent;
        let config = row.info.config(&Config { battery: false, ..Config::new(logical_pages) });
        let disk = (row.format)(Flash::new(Box::new(device)), &config)?;
        let page = vec![0; geometry.page_bytes() as usize];
        let versions = vec![0; disk.logical_pages() as usize];
        Ok(Self { row, config, disk, versions, wanted: page.clone(), page, random: 7, writes: 0 })
    }

    /// Opens the disk again, which was left as it was.
    fn mount(self, bed: &impl Bed) -> Self {
        let Self { row, config, disk, versions, page, wanted, random, writes } = self;
        drop(disk);
        let device = MtdNand::open_on(bed.any_chip()).unwrap();
        let (disk, report) = row.mount.unwrap()(Flash::new(Box::new(device)), &config).unwrap();
        assert!(report.read_only.is_none());
        Self { row, config, disk, versions, page, wanted, random, writes }
    }

    /// Writes one page; the page, and what came of it.
    fn write_one(&mut self) -> (usize, Result<(), FtlError>) {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = (self.random >> 33) as usize % self.versions.len();
        self.writes += 1;
        version(&mut self.page, Lpn(at as u32), self.writes);
        (at, self.disk.write(Lpn(at as u32), &self.page))
    }

    fn write(&mut self, writes: u32) {
        for _ in 0..writes {
            let (at, outcome) = self.write_one();
            outcome.unwrap();
            self.versions[at] = self.writes;
        }
    }

    /// Whether a page holds a version of it.
    fn holds(&mut self, at: usize, written: u32) -> bool {
        let lpn = Lpn(at as u32);
        self.disk.read(lpn, &mut self.page).unwrap();
        match written {
            0 => self.wanted.fill(0),
            written => version(&mut self.wanted, lpn, written),
        }
        self.page == self.wanted
    }

    fn check(&mut self) {
        for at in 0..self.versions.len() {
            assert!(self.holds(at, self.versions[at]), "page {at} holds another version than {}", self.versions[at]);
        }
    }
}

fn row(name: &str) -> Entry<AnyBytes> {
    table::find(name).unwrap()
}

/// Writes more than twice the device, reads it, mounts it without a clean end, and goes on. Returns
/// the number of bad blocks.
fn use_disk(bed: &impl Bed, name: &str) -> u32 {
    let begun = std::time::Instant::now();
    let mut written = Written::format(row(name), bed, 70).unwrap();
    let pages = written.versions.len() as u32 / 7 * 10;
    written.write(pages / 4 * 9);
    written.check();
    for _ in 0..2 {
        written.disk.flush().unwrap();
        written = written.mount(bed);
        written.check();
        written.write(pages / 8);
        written.check();
    }
    let writes = written.writes;
    drop(written);
    let n = bed.open();
    let bad = (0..n.geometry().blocks()).filter(|block| n.is_bad(BlockId(*block))).count() as u32;
    println!("{name}: {writes} writes over {pages} pages in {:.1?}, {bad} bad blocks", begun.elapsed());
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

/// Every FTL that can be served from such a device without a battery.
fn served() -> impl Iterator<Item = Entry<AnyBytes>> {
    table::table::<AnyBytes>().into_iter().filter(|row| {
        let lasting =
            !matches!(row.info.durable, Durability::Battery | Durability::NonVolatileMaps | Durability::Nothing);
        lasting && row.mount.is_some() && row.info.runs_on(nand::Capabilities::MODERN)
    })
}

/// A block that is marked bad is erased, as the kernel does it. No FTL may miss what was in it.
#[test]
fn every_served_ftl_outlives_failing_blocks() {
    let mut served_ones = 0;
    for row in served() {
        let (memory, name) = (Memory::new(Shape { blocks: 132, ..SHAPE }), row.info.name);
        let mut written = Written::format(row, &memory, 50).unwrap();
        memory.cells().fail(12);
        written.write(4096);
        written.check();
        let (bad, left) = memory.cells().failed();
        assert!(bad > 3 && left == 0, "{name}: {bad} blocks are bad, {left} failures are left");
        written.disk.flush().unwrap();
        written.mount(&memory).check();
        served_ones += 1;
    }
    assert!(served_ones >= 10, "{served_ones}");
}

/// A cut tears a page, or leaves a block half erased. What was flushed is there afterwards.
#[test]
fn every_served_ftl_outlives_power_cuts() {
    for row in served() {
        let (memory, name) = (Memory::new(SHAPE), row.info.name);
        let mut written = Written::format(row, &memory, 60).unwrap();
        written.write(1000);
        for cut in 0..40 {
            written.write(20);
            written.disk.flush().unwrap();
            memory.cells().power = Some(cut * 7 % 30);
            let (at, error) = loop {
                let (at, outcome) = written.write_one();
                let flushed = outcome.and_then(|()| written.disk.flush());
                match flushed {
                    Ok(()) => written.versions[at] = written.writes,
                    Err(error) => break (at, error),
                }
            };
            assert!(matches!(error, FtlError::Nand(NandError::Host { .. })), "{name}: {error}");
            memory.cells().power_up();
            written = written.mount(&memory);
            // The write that was cut is there or not.
            if written.holds(at, written.writes) {
                written.versions[at] = written.writes;
            }
            written.check();
        }
    }
}
