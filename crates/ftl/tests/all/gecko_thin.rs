//! GeckoFTL where its paper says too little, each place by its number in the table of
//! docs/RECOVERY.md. Places 1, 2 and 5 are within the validity store and tested there.
//!
//! What a disk shows to its host is checked, and every invariant that ties mapping, validity and
//! flash together: after a defect a superseded copy passes for live, or a live one for dead, long
//! before a host could notice.

#![allow(clippy::unwrap_used)]

use super::one_die;
use ftl::{Config, Flash, Ftl, FtlError, GeckoOptions, Purpose};
use nand::faults::{Blemish, CutOutcome, FaultPlan, Faulty};
use nand::{
    BlockId, Capabilities, Flags, Geometry, Lpn, Nand, NandError, PageKind, Ppn, SimNand, Snapshot, Spare, Stamp,
    Stamped,
};
use openftl_ftl as ftl;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use table::AnyBytes;

/// A device that stays when a mount of it ends, as a mount that is cut short consumes what it was
/// given.
#[derive(Clone)]
struct Device {
    flash: Arc<Mutex<Faulty<SimNand>>>,
    geometry: Geometry,
    /// What a cut before each operation would leave, while that is wanted.
    images: Arc<Mutex<Option<Vec<Faulty<SimNand>>>>>,
}

impl Device {
    fn new(flash: Faulty<SimNand>) -> Self {
        let geometry = *flash.geometry();
        Self { flash: Arc::new(Mutex::new(flash)), geometry, images: Arc::default() }
    }

    fn get(&self) -> MutexGuard<'_, Faulty<SimNand>> {
        self.flash.lock().unwrap()
    }

    /// The device for an FTL, which takes it for one of bytes.
    fn flash(&self) -> Flash<AnyBytes> {
        Flash::new(Box::new(Stamped(self.clone())))
    }

    /// An operation is about to begin.
    fn note(&self) {
        if let Some(images) = &mut *self.images.lock().unwrap() {
            images.push(self.get().snapshot());
        }
    }

    /// Power will be lost at a later operation, 0 being the next.
    fn cut_after(&self, operations: u64, outcome: CutOutcome) {
        let mut flash = self.get();
        *flash.plan_mut() = FaultPlan::cut(flash.ops() + operations, outcome);
    }

    /// Every programmed page with its spare area, as the device knows it under all faults.
    fn spares(&self) -> Vec<(Ppn, Spare)> {
        let mut flash = self.get();
        let pages = (0..flash.geometry().pages()).map(Ppn);
        pages.filter_map(|ppn| Some((ppn, flash.inner_mut().read_spare(ppn).unwrap()?))).collect()
    }

    /// The page programmed last.
    fn youngest(&self) -> (Ppn, Spare) {
        self.spares().into_iter().max_by_key(|(_, spare)| spare.seq).unwrap()
    }

    fn power_up(&self) {
        *self.get().plan_mut() = FaultPlan::default();
        self.get().power_up();
    }
}

impl Nand for Device {
    type Payload = Stamp;

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::MODERN
    }

    fn read(&mut self, ppn: Ppn, out: &mut Stamp) -> Result<Spare, NandError> {
        self.get().read(ppn, out)
    }

    fn read_meta(&mut self, ppn: Ppn, out: &mut [u8]) -> Result<Spare, NandError> {
        self.get().read_meta(ppn, out)
    }

    fn read_spare(&mut self, ppn: Ppn) -> Result<Option<Spare>, NandError> {
        self.get().read_spare(ppn)
    }

    fn probe(&mut self, ppn: Ppn) -> Result<Spare, NandError> {
        self.get().probe(ppn)
    }

    fn program(&mut self, ppn: Ppn, data: &Stamp, spare: &Spare) -> Result<(), NandError> {
        self.note();
        self.get().program(ppn, data, spare)
    }

    fn program_meta(&mut self, ppn: Ppn, data: &[u8], spare: &Spare) -> Result<(), NandError> {
        self.note();
        self.get().program_meta(ppn, data, spare)
    }

    fn copy(&mut self, from: Ppn, to: Ppn, spare: &Spare) -> Result<(), NandError> {
        self.note();
        self.get().copy(from, to, spare)
    }

    fn erase(&mut self, block: BlockId) -> Result<(), NandError> {
        self.note();
        self.get().erase(block)
    }

    fn is_bad(&self, block: BlockId) -> bool {
        self.get().is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockId) -> Result<(), NandError> {
        self.get().mark_bad(block)
    }

    fn clear_flags(&mut self, ppn: Ppn, flags: Flags) -> Result<(), NandError> {
        self.get().clear_flags(ppn, flags)
    }
}

/// A device, and the disk on it.
#[derive(Clone, Copy)]
struct Shape {
    blocks: u32,
    pages_per_block: u32,
    logical_pages: u32,
    cache_entries: u32,
    /// S: with one a page, a buffer of a page is full after some 80 reports.
    partitions: u32,
}

/// The store's buffer fills up after some eighty reports, the cache after twelve entries.
const SMALL: Shape = Shape { blocks: 64, pages_per_block: 8, logical_pages: 260, cache_entries: 12, partitions: 8 };

/// A disk, and what each of its logical pages may read as.
struct Disk {
    device: Device,
    ftl: Box<dyn Ftl<AnyBytes>>,
    host: Host,
}

/// What the host of a disk knows.
#[derive(Clone)]
struct Host {
    name: &'static str,
    config: Config,
    /// The versions that a page may read as, 0 if it may be unwritten: more than one after a write
    /// that was cut short.
    versions: Vec<Vec<u16>>,
    next: u16,
    state: u32,
}

/// A disk without power.
struct Off {
    device: Device,
    host: Host,
}

impl Disk {
    fn new(shape: Shape) -> Self {
        Self::of("gecko", shape)
    }

    fn of(name: &'static str, shape: Shape) -> Self {
        let geometry = one_die(shape.blocks, shape.pages_per_block, 512);
        let nand = SimNand::new(geometry, Capabilities::MODERN);
        let device = Device::new(Faulty::new(nand, FaultPlan::default()));
        let gecko = GeckoOptions { partitions: shape.partitions, ..GeckoOptions::PAPER };
        let config =
            Config { cache_entries: shape.cache_entries, gecko: gecko.into(), ..Config::new(shape.logical_pages) };
        let ftl = (table::find(name).unwrap().format)(device.flash(), &config).unwrap();
        let versions = vec![vec![0]; shape.logical_pages as usize];
        Self { device, ftl, host: Host { name, config, versions, next: 0, state: 2016 } }
    }

    fn pages(&self) -> u32 {
        self.host.versions.len() as u32
    }

    fn random(&mut self, below: u32) -> u32 {
        self.host.state = self.host.state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.host.state >> 8) % below
    }

    /// Writes a page; `false` if power was lost.
    fn write(&mut self, lpn: u32) -> bool {
        self.host.next += 1;
        let version = self.host.next;
        let versions = &mut self.host.versions[lpn as usize];
        match self.ftl.write(Lpn(lpn), &Stamp { lpn: Lpn(lpn), version }.to_bytes()) {
            Ok(()) => *versions = vec![version],
            Err(FtlError::Nand(NandError::PowerLost)) => {
                versions.push(version);
                return false;
            }
            Err(error) => panic!("writing logical page {lpn}: {error}"),
        }
        true
    }

    fn write_all(&mut self) {
        (0..self.pages()).for_each(|lpn| assert!(self.write(lpn)));
    }

    /// Writes so many pages, half of them to an eighth of the disk; `false` if power was lost.
    fn write_some(&mut self, count: u32) -> bool {
        (0..count).all(|_| {
            let hot = self.random(2) == 0;
            let lpn = self.random(if hot { self.pages() / 8 } else { self.pages() });
            self.write(lpn)
        })
    }

    fn read(&mut self, lpn: u32) {
        let mut got = [0xA5; Stamp::BYTES];
        self.ftl.read(Lpn(lpn), &mut got).unwrap_or_else(|error| panic!("logical page {lpn}: {error}"));
        let got = Stamp::from_bytes(got);
        let versions = &mut self.host.versions[lpn as usize];
        let may = versions
            .iter()
            .any(|v| got == if *v == 0 { Stamp::UNWRITTEN } else { Stamp { lpn: Lpn(lpn), version: *v } });
        assert!(may, "logical page {lpn} reads {got:?}, but was last version {versions:?}");
        *versions = vec![got.version];
    }

    /// The invariants hold.
    fn check(&mut self) {
        self.ftl.check().unwrap();
    }

    /// The invariants hold, and every page reads as it should.
    fn check_all(&mut self) {
        self.check();
        (0..self.pages()).for_each(|lpn| self.read(lpn));
        self.check();
    }

    /// The device when power is gone.
    fn lose_power(self) -> Off {
        let Self { device, ftl, host } = self;
        drop(ftl);
        device.power_up();
        Off { device, host }
    }

    /// Power is lost between two operations, and the disk mounted again.
    fn remount(self) -> Self {
        self.lose_power().mount()
    }

    /// Writes a page at random; what power loss before each operation of it would leave.
    fn write_watched(&mut self) -> Vec<Off> {
        let mut before = self.host.clone();
        *self.device.images.lock().unwrap() = Some(Vec::new());
        assert!(self.write_some(1));
        let images = self.device.images.lock().unwrap().take().unwrap();
        for (may, now) in before.versions.iter_mut().zip(&self.host.versions) {
            may.extend(now);
        }
        let off = |flash| Off { device: Device::new(flash), host: before.clone() };
        images.into_iter().map(off).collect()
    }

    fn spares(&self) -> Vec<(Ppn, Spare)> {
        self.device.spares()
    }

    fn programs(&self, purpose: Purpose) -> u64 {
        self.ftl.flash().counts().of(purpose).programs
    }
}

impl Off {
    fn mount(self) -> Disk {
        let Self { device, host } = self;
        let mount = table::find(host.name).unwrap().mount.unwrap();
        let outcome = mount(device.flash(), &host.config);
        let (ftl, _) = outcome.unwrap_or_else(|error| panic!("mounting: {error}"));
        Disk { device, ftl, host }
    }

    /// What power loss before each operation of a mount would leave.
    fn mount_watched(self) -> Vec<Self> {
        *self.device.images.lock().unwrap() = Some(Vec::new());
        let (device, host) = (self.device.clone(), self.host.clone());
        drop(self.mount());
        let images = device.images.lock().unwrap().take().unwrap();
        images.into_iter().map(|flash| Self { device: Device::new(flash), host: host.clone() }).collect()
    }
}

const TORN: [CutOutcome; 4] = [CutOutcome::Torn, CutOutcome::TornData, CutOutcome::TornOnce, CutOutcome::Weak];

/// Writes on after a mount, so that whatever is wrong in what the FTL believes is acted upon.
fn live_on(disk: &mut Disk) {
    disk.check_all();
    assert!(disk.write_some(100));
    disk.check_all();
}

/// **3.** A migrated page whose entry was not cached must not be taken to have a before-image to
/// report: it is erased with the victim, and what is written there next would be reported in its
/// stead. One found in the victim is not to be reported later.
#[test]
fn place_3_migrated_entries_have_no_before_image() {
    let mut disk = Disk::new(SMALL);
    disk.write_all();
    for _ in 0..300 {
        assert!(disk.write_some(10));
        disk.check();
    }
    assert!(disk.programs(Purpose::Gc) > 1000, "{}", disk.programs(Purpose::Gc));
    disk.check_all();
}

/// **4.** A migration can let a dirty entry leave the cache, whose synchronisation reports a page
/// of the very victim: which pages live is settled before the first one moves.
#[test]
fn place_4_reports_of_pages_of_the_victim_come_too_late_to_matter() {
    for cache_entries in [4, 8, 12, 24] {
        let mut disk = Disk::new(Shape { cache_entries, ..SMALL });
        disk.write_all();
        for _ in 0..300 {
            assert!(disk.write_some(10));
            disk.check();
        }
        disk.check_all();
    }
}

/// Fills a disk, writes for a while, and hands over what power loss leaves at each operation of
/// `count` further writes.
fn cuts(shape: Shape, count: u32, mut then: impl FnMut(Off)) {
    let mut disk = Disk::new(shape);
    disk.write_all();
    assert!(disk.write_some(1000));
    for _ in 0..count {
        disk.write_watched().into_iter().for_each(&mut then);
    }
}

/// **6.** A copy that was superseded while its entry was cached is reported at once and never was
/// in a translation page.
#[test]
fn place_6_copies_that_no_translation_page_named_stay_dead() {
    cuts(SMALL, 150, |off| live_on(&mut off.mount()));
    // Most of what died since the last flush lies further back than entries that were only in RAM.
    cuts(Shape { cache_entries: 40, ..SMALL }, 300, |off| off.mount().check());
}

/// **6.** What died since the last flush can be older than anything that is only in RAM by now, and
/// older than that flush: no translation page ever named it, as its entry was dirty all the time.
#[test]
fn place_6_copies_older_than_the_checkpoint_stay_dead() {
    let shape = Shape { blocks: 600, pages_per_block: 4, logical_pages: 2048, cache_entries: 32, partitions: 4 };
    for hot in [16, 32] {
        let mut disk = Disk::new(shape);
        disk.write_all();
        let mut seq = 0;
        while seq < 8000 {
            // Some pages in as many translation pages stay in the cache.
            let lpn = if disk.random(2) == 0 { disk.random(hot) * (2048 / hot) } else { disk.random(2048) };
            assert!(disk.write(lpn));
            seq = disk.spares().iter().map(|(_, spare)| spare.seq).max().unwrap();
            // What translation pages say of the checkpoint is in steps of 512.
            if (10..100).contains(&(seq % 512)) {
                Off { device: Device::new(disk.device.get().snapshot()), host: disk.host.clone() }.mount().check();
            }
        }
    }
}

/// **6.** A page that was moved or found superseded in a victim, and its entry synchronised, before
/// the store was flushed last, is compared with nothing: that it is dead must have been reported,
/// although it is to go with the victim.
#[test]
fn place_6_pages_that_go_with_a_victim_are_reported() {
    let shape = Shape { blocks: 100, pages_per_block: 4, cache_entries: 4, partitions: 4, ..SMALL };
    cuts(shape, 300, |off| off.mount().check());
    cuts(Shape { cache_entries: 3, ..SMALL }, 500, |off| off.mount().check());
}

/// **7.** The version of a translation page that was current when the store was flushed last must
/// stay on flash, or the pages that have left it since cannot be told from live ones.
#[test]
fn place_7_old_translation_pages_stay_until_the_store_is_flushed() {
    // Four translation pages to a block: one is full of old ones every few writes.
    let shape = Shape { blocks: 100, pages_per_block: 4, partitions: 4, ..SMALL };
    for cache_entries in [4, 12, 32] {
        cuts(Shape { cache_entries, ..shape }, 200, |off| off.mount().check());
    }
}

/// **8.** A block of metadata waits until nothing in it lives, and a page that nobody updates keeps
/// it waiting: there is a limit, beyond which the few live pages move.
#[test]
fn place_8_metadata_that_waits_is_bounded() {
    // 200 translation pages of 128 entries. A write evicts an entry and programs the translation
    // page of another.
    let shape = Shape { blocks: 1800, pages_per_block: 16, logical_pages: 200 * 128, cache_entries: 2, partitions: 1 };
    let mut disk = Disk::new(shape);
    disk.write_all();
    for round in 0..3 {
        for cold in 20..200 {
            // A block with fifteen translation pages that die soon, and one that does not.
            for page in core::iter::once(cold).chain(0..15) {
                assert!(disk.write(page * 128 + cold % 128));
            }
            let metadata = disk.spares().into_iter().filter(|(_, spare)| spare.kind != PageKind::User);
            let blocks: BTreeSet<u32> = metadata.map(|(ppn, _)| ppn.0 / shape.pages_per_block).collect();
            // While the device has room nothing is collected. Then twice the 200 translation pages
            // and at most 64 pages of the store, and an eighth of the 200 blocks that data leaves.
            assert!(round == 0 || blocks.len() <= 2 * 264 / 16 + 3 + 200 / 8, "{} blocks of metadata", blocks.len());
        }
    }
    disk.check_all();
}

/// **9.** What an interrupted operation leaves is neither trusted nor programmed over.
#[test]
fn place_9_torn_pages_and_half_erased_blocks_are_not_trusted() {
    for outcome in TORN.into_iter().chain([CutOutcome::HalfErased]) {
        let mut disk = Disk::new(SMALL);
        disk.write_all();
        assert!(disk.write_some(600));
        for operations in 0..120 {
            disk.device.cut_after(operations % 41, outcome);
            while disk.write_some(1) {}
            disk = disk.remount();
            disk.check_all();
        }
        live_on(&mut disk);
    }
}

/// **9.** A page whose program was cut short can read well as long as the mount lasts, and then no
/// more.
#[test]
fn place_9_the_page_programmed_last_is_written_again() {
    for name in ["gecko", "page"] {
        for operations in 0..60 {
            let mut disk = Disk::of(name, SMALL);
            disk.write_all();
            assert!(disk.write_some(200));
            disk.device.cut_after(operations, CutOutcome::Done);
            while disk.write_some(1) {}
            let (last, _) = disk.device.youngest();
            disk = disk.remount();
            disk.check_all();
            if disk.spares().iter().any(|(ppn, _)| *ppn == last) {
                disk.device.get().damage(last, Blemish::Unreadable);
            }
            live_on(&mut disk);
        }
    }
}

/// **9.** What the page programmed last superseded stays as long as a mount has programmed nothing:
/// that page can be one which reads well as long as this mount lasts, and then no more.
#[test]
fn place_9_what_the_page_programmed_last_superseded_stays() {
    let mut tried = 0;
    cuts(SMALL, 100, |off| {
        let last = off.device.youngest();
        if last.1.kind != PageKind::User {
            return;
        }
        for again in off.mount_watched().into_iter().filter(|again| again.device.youngest() == last) {
            again.device.get().damage(last.0, Blemish::Unreadable);
            again.mount().check();
            tried += 1;
        }
    });
    assert!(tried > 100, "{tried} mounts");
}

/// **10.** A mount that is cut short, and one that was cut short before, end as one that was not.
#[test]
fn place_10_recovery_that_is_interrupted_begins_again() {
    // So many reports wait in RAM, and so many more are made again, that the store is flushed
    // within the mount.
    let shape = Shape { logical_pages: 130, ..SMALL };
    for shape in [
        Shape { cache_entries: 32, ..shape },
        Shape { blocks: 48, pages_per_block: 16, cache_entries: 8, partitions: 16, ..shape },
    ] {
        cuts(shape, 60, |off| off.mount_watched().into_iter().for_each(|again| again.mount().check()));
    }
    cuts(SMALL, 4, |off| {
        for again in off.mount_watched().into_iter().flat_map(Off::mount_watched) {
            again.mount().check_all();
        }
    });
}

/// **11.** A torn page that cannot be read has burned its sequence number.
#[test]
fn place_11_no_two_pages_carry_the_same_sequence_number() {
    for name in ["gecko", "page"] {
        let mut disk = Disk::of(name, SMALL);
        disk.write_all();
        for operations in 0..100 {
            disk.device.cut_after(operations % 23, TORN[operations as usize % 4]);
            while disk.write_some(1) {}
            disk = disk.remount();
            assert!(disk.write_some(5));
            let mut carried = BTreeMap::new();
            for (ppn, spare) in disk.spares() {
                if let Some(other) = carried.insert(spare.seq, ppn) {
                    panic!("{other} and {ppn} both carry {}", spare.seq);
                }
            }
        }
        disk.check_all();
    }
}

/// **12.** A free block does not say when it was erased, and there can be more of them than the
/// store's buffer holds.
#[test]
fn place_12_free_blocks_lose_what_was_said_of_their_pages() {
    // An entry of 512 pages is so long that the buffer holds six.
    let shape = Shape { blocks: 60, pages_per_block: 512, logical_pages: 4000, cache_entries: 100, partitions: 1 };
    let mut disk = Disk::new(shape);
    for _ in 0..6 {
        disk.write_all();
    }
    while disk.ftl.idle().unwrap() {}
    let used: BTreeSet<u32> = disk.spares().iter().map(|(ppn, _)| ppn.0 / shape.pages_per_block).collect();
    let free = shape.blocks as usize - used.len();
    assert!(free > 6, "{free} blocks are free");
    disk = disk.remount();
    disk.check();
    for _ in 0..4 {
        disk.write_all();
        disk.check_all();
    }
}
