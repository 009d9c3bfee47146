//! A disk in a file whose host dies while threads use it: what was flushed is there, and each later
//! sector is as some write left it.

use crate::common::{PAGE, Rng, SECTORS, geometry, sector};
use nand::file::{Medium, Volatile};
use nand::{Access, Capabilities, FileNand};
use openftl_lftl::{Engine, Options, Policy, Recovery, SECTOR_BYTES, Server, Threads};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const BANKS: u16 = 4;
const PAGES: u32 = 90;
const WRITERS: u32 = 3;

/// A range of a disk in memory that all banks share.
#[derive(Clone, Debug)]
struct Part {
    disk: Arc<Mutex<Volatile>>,
    range: Range<u64>,
}

impl Medium for Part {
    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        self.disk.lock().unwrap().read_at(self.range.start + at, out)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.disk.lock().unwrap().write_at(self.range.start + at, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.lock().unwrap().sync()
    }

    fn discard(&mut self, at: u64, bytes: u64) -> io::Result<()> {
        self.disk.lock().unwrap().discard(self.range.start + at, bytes)
    }

    fn next_data(&self, at: u64) -> io::Result<Option<u64>> {
        let next = self.disk.lock().unwrap().next_data(self.range.start + at)?;
        Ok(next.filter(|next| *next < self.range.end).map(|next| next - self.range.start))
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.disk.lock().unwrap().bytes()?.min(self.range.end) - self.range.start)
    }
}

fn parts(disk: &Arc<Mutex<Volatile>>) -> impl Fn(Range<u64>) -> Part + use<> {
    let disk = Arc::clone(disk);
    move |range| Part { disk: Arc::clone(&disk), range }
}

/// The versions of each sector: the last that a write began with, and the last that was flushed.
struct Versions {
    begun: Vec<AtomicU32>,
    flushed: Vec<AtomicU32>,
}

/// Writes its sectors over and over, and flushes now and then.
fn write(server: &Server, versions: &Versions, writer: u32, stop: &AtomicBool) {
    let mut rng = Rng(u64::from(writer) + 1);
    let mine = |at: &u32| at % WRITERS == writer;
    let all: Vec<u32> = (0..PAGES * SECTORS as u32).filter(mine).collect();
    while !stop.load(Ordering::SeqCst) {
        for _ in 0..rng.below(60) {
            let at = all[rng.below(all.len() as u64) as usize];
            let version = versions.begun[at as usize].fetch_add(1, Ordering::SeqCst) + 1;
            let data = sector(at / SECTORS as u32, at as usize % SECTORS, version);
            server.write(u64::from(at) * SECTOR_BYTES as u64, &data).unwrap();
        }
        let now: Vec<u32> = all.iter().map(|at| versions.begun[*at as usize].load(Ordering::SeqCst)).collect();
        server.flush().unwrap();
        // Who syncs next makes it certain.
        for (at, version) in all.iter().zip(now) {
            versions.flushed[*at as usize].store(version, Ordering::SeqCst);
        }
    }
}

fn load(versions: &[AtomicU32]) -> Vec<u32> {
    versions.iter().map(|version| version.load(Ordering::SeqCst)).collect()
}

/// Opens what the host left, and looks at every sector.
fn check(left: Volatile, flushed: &[u32], begun: &[u32]) {
    let disk = Arc::new(Mutex::new(left));
    let mut banks = FileNand::open_joint_on(parts(&disk), Access::ReadWrite).unwrap();
    banks.remove(0);
    let (engine, _) = Engine::mount(banks.into(), Options::new(PAGES), Recovery::Bounded, 1).unwrap();
    let mut page = vec![0; PAGE];
    for lpn in 0..PAGES {
        engine.read(nand::Lpn(lpn), 0, &mut page).unwrap();
        for (index, found) in page.chunks_exact(SECTOR_BYTES).enumerate() {
            let at = lpn as usize * SECTORS + index;
            let version = u32::from_le_bytes(found[..4].try_into().unwrap());
            assert_eq!(found, sector(lpn, index, version), "sector {at} mixes versions");
            let allowed = flushed[at]..=begun[at];
            assert!(allowed.contains(&version), "sector {at} has version {version}, not one of {allowed:?}");
        }
    }
}

#[test]
fn a_host_that_dies_loses_only_what_was_not_flushed() {
    let shape = geometry(1, 16, 4);
    let mut rng = Rng(20_261_124);
    for policy in [Policy::Parallel, Policy::WritePath, Policy::Adaptive] {
        let bytes = u64::from(BANKS + 1) * FileNand::<Part>::bytes_needed(&shape, 0);
        let disk = Arc::new(Mutex::new(Volatile::new(vec![0; bytes as usize])));
        let made = FileNand::create_joint_on(parts(&disk), BANKS + 1, shape, Capabilities::MODERN, b"");
        let mut banks = made.unwrap();
        // One that the engine does not use, to sync all of them.
        let mut syncer = banks.remove(0);
        let options = Options { buffers: 6, policy, checkpoint_every: Some(40), ..Options::new(PAGES) };
        let collectors = if policy == Policy::WritePath { 0 } else { 2 };
        let engine = Engine::format(banks.into(), options).unwrap();
        syncer.sync().unwrap();
        let server = Server::start(engine, Threads { workers: 3, collectors }).unwrap();
        let zeros = || (0..PAGES * SECTORS as u32).map(|_| AtomicU32::new(0)).collect();
        let versions = Versions { begun: zeros(), flushed: zeros() };
        let stop = AtomicBool::new(false);
        let cuts = thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (server, versions, stop) = (&server, &versions, &stop);
                scope.spawn(move || write(server, versions, writer, stop));
            }
            let cuts: Vec<(Volatile, Vec<u32>, Vec<u32>)> = (0..24)
                .map(|_| {
                    thread::sleep(Duration::from_millis(3));
                    let flushed = load(&versions.flushed);
                    syncer.sync().unwrap();
                    thread::sleep(Duration::from_millis(rng.below(4)));
                    let left = disk.lock().unwrap().after_power_loss(|below| rng.below(below as u64) as usize);
                    (left, flushed, load(&versions.begun))
                })
                .collect();
            // On a busy machine the threads may have had little time so far.
            let collected = || server.engine().report().collected_blocks > 0;
            (0..10_000).take_while(|_| !collected()).for_each(|_| thread::sleep(Duration::from_millis(1)));
            stop.store(true, Ordering::SeqCst);
            cuts
        });
        assert!(server.engine().report().collected_blocks > 0, "{policy:?} collected nothing");
        assert!(cuts.last().unwrap().1.iter().any(|version| *version > 1), "{policy:?} flushed too little");
        for (left, flushed, begun) in cuts {
            check(left, &flushed, &begun);
        }
    }
}
