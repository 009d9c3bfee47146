//! Several devices with joint numbers: what a dead host leaves of all of them is what a power cut
//! of all of them leaves.
#![cfg(all(feature = "std", unix))]
#![allow(clippy::unwrap_used)]

use crate::common::*;
use openftl_nand::file::{Medium, Opening, Volatile};
use openftl_nand::*;
use proptest::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fs, io, thread};

const DEVICES: u16 = 3;

/// A range of a disk in memory that all devices share.
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
        assert!(self.range.start + at + bytes.len() as u64 <= self.range.end, "a write beyond its device");
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

type Devices = Vec<FileNand<Part>>;

fn parts(disk: &Arc<Mutex<Volatile>>) -> impl Fn(Range<u64>) -> Part + use<> {
    let disk = Arc::clone(disk);
    move |range| Part { disk: Arc::clone(&disk), range }
}

fn create() -> (Arc<Mutex<Volatile>>, Devices) {
    let bytes = u64::from(DEVICES) * FileNand::<Part>::bytes_needed(&geometry(), 5);
    let disk = Arc::new(Mutex::new(Volatile::new(vec![0; bytes as usize])));
    let devices = FileNand::create_joint_on(parts(&disk), DEVICES, geometry(), OLD, b"owner").unwrap();
    (disk, devices)
}

fn open(disk: Volatile) -> Devices {
    FileNand::open_joint_on(parts(&Arc::new(Mutex::new(disk))), Access::ReadWrite).unwrap()
}

fn pick(state: &mut u64, below: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    ((*state >> 33) as usize) % below
}

#[derive(Clone, Debug)]
enum Step {
    Program(usize, u32, u16),
    Erase(usize, u32),
    Mark(usize, u32),
    Sync,
    Reopen,
}

fn steps() -> impl Strategy<Value = Step> {
    let device = || 0..DEVICES as usize;
    prop_oneof![
        12 => (device(), 0..24_u32, any::<u16>()).prop_map(|(d, p, v)| Step::Program(d, p, v)),
        6 => (device(), 0..3_u32).prop_map(|(d, b)| Step::Erase(d, b)),
        1 => (device(), 2..6_u32).prop_map(|(d, b)| Step::Mark(d, b)),
        1 => Just(Step::Sync),
        1 => Just(Step::Reopen),
    ]
}

fn apply<N: Nand<Payload = [u8]>>(all: &mut [N], step: &Step, seq: u64) -> bool {
    let done = match *step {
        Step::Program(device, ppn, version) => put(&mut all[device], ppn, stamp(ppn, version), &spare(ppn, seq)),
        Step::Erase(device, block) => all[device].erase(BlockId(block)),
        Step::Mark(device, block) => all[device].mark_bad(BlockId(block)),
        Step::Sync | Step::Reopen => return false,
    };
    done.is_ok()
}

/// All that can be seen of a device but its erase counts.
type Seen = Vec<(Vec<Option<(Stamp, Spare)>>, Vec<bool>)>;

fn seen<N: Nand<Payload = [u8]>>(all: &mut [N]) -> Seen {
    let of = |n: &mut N| {
        let pages = (0..48).map(|ppn| get(n, ppn).ok()).collect();
        (pages, (0..6).map(|block| n.is_bad(BlockId(block))).collect())
    };
    all.iter_mut().map(of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// With a journal each, one of them would lose what it did while another keeps what came later.
    #[test]
    fn a_dead_host_leaves_what_some_operation_of_all_left(
        steps in prop::collection::vec(steps(), 1..150),
        seed in any::<u64>(),
    ) {
        let mut seed = seed;
        let mut mem: Vec<MemNand> = (0..DEVICES).map(|_| MemNand::new(geometry(), OLD)).collect();
        let (mut disk, mut files) = create();
        let mut history = vec![seen(&mut mem)];
        for (seq, step) in (1..).zip(steps.iter().chain([&Step::Reopen])) {
            let changed = apply(&mut mem, step, seq);
            prop_assert_eq!(apply(&mut files, step, seq), changed, "{:?}", step);
            match step {
                Step::Sync => {
                    files[usize::from(DEVICES) / 2].sync().unwrap();
                    history.clear();
                }
                Step::Reopen => {
                    let left = disk.lock().unwrap().after_power_loss(|below| pick(&mut seed, below));
                    disk = Arc::new(Mutex::new(left));
                    files = FileNand::open_joint_on(parts(&disk), Access::ReadWrite).unwrap();
                    let found = seen(&mut files);
                    let at = history.iter().rposition(|earlier| *earlier == found);
                    prop_assert!(at.is_some(), "the devices are as no operation left them");
                    if at != Some(history.len() - 1) {
                        return Ok(());
                    }
                    history.clear();
                }
                _ => {}
            }
            if changed || history.is_empty() {
                history.push(seen(&mut mem));
            }
        }
    }
}

/// When each version of a device began, and when it was complete.
type Log = Vec<(u64, Option<u64>)>;

/// Programs its device round after round, and erases every block before.
fn use_device(device: &mut FileNand<Part>, log: &Mutex<Log>, clock: &AtomicU64, stop: &AtomicBool) {
    let now = || clock.fetch_add(1, Ordering::SeqCst);
    for version in 0..u16::MAX {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let page = u32::from(version) % 48;
        log.lock().unwrap().push((now(), None));
        if page.is_multiple_of(8) {
            device.erase(BlockId(page / 8)).unwrap();
        }
        put(device, page, stamp(page, version), &spare(page, u64::from(version) + 1)).unwrap();
        log.lock().unwrap()[usize::from(version)].1 = Some(now());
    }
}

/// The last version of each device that is there.
fn last_versions(devices: &mut [FileNand<Part>]) -> Vec<Option<usize>> {
    let last = |n: &mut FileNand<Part>| (0..48).filter_map(|page| get(n, page).ok()).map(|(s, _)| s.version).max();
    devices.iter_mut().map(|n| last(n).map(usize::from)).collect()
}

/// The host dies while threads use the devices. No operation is there that began after a missing
/// one was complete, and nothing is missing that was complete before a sync.
#[test]
fn threads_leave_no_operation_without_those_before_it() {
    let mut seed = 20_261_123;
    let mut missed = 0;
    for _ in 0..8 {
        let (disk, mut devices) = create();
        let (clock, stop) = (AtomicU64::new(1), AtomicBool::new(false));
        let logs: Vec<Mutex<Log>> = (1..DEVICES).map(|_| Mutex::default()).collect();
        let (first, used) = devices.split_first_mut().unwrap();
        let cuts = thread::scope(|scope| {
            for (device, log) in used.iter_mut().zip(&logs) {
                let (clock, stop) = (&clock, &stop);
                scope.spawn(move || use_device(device, log, clock, stop));
            }
            let cut = |at: u32| {
                thread::sleep(Duration::from_micros(300));
                let mut synced = 0;
                if at.is_multiple_of(3) {
                    synced = clock.fetch_add(1, Ordering::SeqCst);
                    first.sync().unwrap();
                }
                let left = disk.lock().unwrap().after_power_loss(|below| pick(&mut seed, below));
                (synced, left)
            };
            let cuts: Vec<(u64, Volatile)> = (0..30).map(cut).collect();
            stop.store(true, Ordering::SeqCst);
            cuts
        });
        let logs: Vec<Log> = logs.into_iter().map(|log| log.into_inner().unwrap()).collect();
        for (synced, left) in cuts {
            let last = last_versions(&mut open(left)[1..]);
            for (log, last_here) in logs.iter().zip(&last) {
                let missing = last_here.map_or(0, |last| last + 1);
                let Some((_, Some(ended))) = log.get(missing).copied() else { continue };
                missed += 1;
                assert!(ended > synced, "version {missing} ended at {ended}, the sync began at {synced}");
                for (other, last) in logs.iter().zip(&last).filter_map(|(log, last)| Some((log, (*last)?))) {
                    let began = other[last].0;
                    assert!(began < ended, "an operation of {began} is there, and one that ended at {ended} is not");
                }
            }
        }
    }
    assert!(missed > 0, "no cut took anything away");
}

#[test]
fn joint_devices_are_closed_by_the_last_of_them_and_opened_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("devices.nand");
    let mut all = FileNand::create_joint(&path, DEVICES, geometry(), OLD, b"owner").unwrap();
    put(&mut all[1], 3, stamp(3, 3), &spare(3, 3)).unwrap();
    let unclosed = fs::read(&path).unwrap();
    assert_eq!(u32::from(unclosed[8]), file::JOINT_VERSION);
    let last = all.pop().unwrap();
    all.into_iter().for_each(|n| n.close().unwrap());
    assert_eq!(fs::read(&path).unwrap(), unclosed, "one is still open");
    last.close().unwrap();
    let whole = fs::read(&path).unwrap();
    let mut all = FileNand::open_all(&path, Access::Overlay).unwrap();
    assert!(all.iter().all(|n| n.opening() == Opening { closed: true, undone: 0 }));
    all[2].erase(BlockId(0)).unwrap();
    put(&mut all[2], 0, stamp(0, 9), &spare(0, 9)).unwrap();
    assert_eq!((get(&mut all[1], 3).unwrap().0, get(&mut all[2], 0).unwrap().0), (stamp(3, 3), stamp(0, 9)));
    drop(all);
    assert_eq!(fs::read(&path).unwrap(), whole, "an overlay changed the file");
    fs::write(&path, unclosed).unwrap();
    let mut all = FileNand::open_all(&path, Access::ReadWrite).unwrap();
    assert!(all.iter().all(|n| !n.opening().closed && n.opening().undone == 0));
    assert_eq!(get(&mut all[1], 3).unwrap().0, stamp(3, 3));
    assert!(matches!(FileNand::open(&path, Access::ReadWrite), Err(FileError::Locked)));
}

/// A block that another device's anchor made final is given back before it is programmed anew.
#[test]
fn bytes_are_given_back_before_they_are_written_again() {
    let (disk, mut all) = create();
    for round in 0..40_u16 {
        for device in 0..3 {
            let n = &mut all[device];
            n.erase(BlockId(0)).unwrap();
            n.erase(BlockId(1)).unwrap();
            put(n, 0, stamp(0, round), &spare(0, u64::from(round) + 1)).unwrap();
            let other = &mut all[(device + 1) % 3];
            put(other, 8 + u32::from(round) % 8, stamp(1, round), &spare(1, u64::from(round) + 1)).unwrap();
            assert_eq!(get(&mut all[device], 0).unwrap().0, stamp(0, round));
        }
        // The block is empty again in the next round, whatever was programmed.
        all.iter_mut().for_each(|n| n.erase(BlockId(1)).unwrap());
    }
    let left = disk.lock().unwrap().clone();
    assert!(open(left).iter_mut().all(|n| get(n, 0).unwrap().0 == stamp(0, 39)));
}
