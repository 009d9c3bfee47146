//! A disk against a plain array of bytes, with faults of its flash and of its store.

use crate::serving::{Lines, geometry, memory_disk};
use crash::Shared;
use ftl::{Config, Flash};
use nand::{Blemish, BlockId, Capabilities, FaultPlan, Faulty, Lpn, MemNand, Nand, PageKind, Ppn};
use openftl_blockdev::{BlockDevice, Disk, DiskError, DiskOptions, Extent, Keeping, Refusal, Store, Zeroing};
use proptest::prelude::*;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use table::AnyBytes;

type Device = Shared<Faulty<MemNand>>;

/// A disk of 400 pages of 512 B whose flash can be harmed.
fn faulty(ftl: &str, change: impl FnOnce(&mut DiskOptions)) -> (Disk<AnyBytes>, Device) {
    let row = table::find::<AnyBytes>(ftl).unwrap();
    let flash = MemNand::new(geometry(64, 512), Capabilities::MODERN);
    let device = Shared::new(Faulty::new(flash, FaultPlan::default()));
    let ftl = (row.format)(Flash::new(Box::new(device.clone())), &Config::new(400)).unwrap();
    let mut options = DiskOptions { empty: true, idle: false, ..DiskOptions::new(Keeping::PowerLoss) };
    change(&mut options);
    (Disk::new(vec![ftl], row.info, options).unwrap(), device)
}

#[derive(Clone, Debug)]
enum Act {
    Read,
    Write { fill: u8, fua: bool },
    Trim { fua: bool },
    Zero(Zeroing),
    Flush,
    Extents,
}

fn act() -> impl Strategy<Value = (Act, u64, u64)> {
    let zeroing =
        (any::<bool>(), any::<bool>()).prop_map(|(may_trim, fua)| Zeroing { may_trim, only_fast: false, fua });
    let act = prop_oneof![
        4 => Just(Act::Read),
        8 => (1..=255_u8, any::<bool>()).prop_map(|(fill, fua)| Act::Write { fill, fua }),
        3 => any::<bool>().prop_map(|fua| Act::Trim { fua }),
        2 => zeroing.prop_map(Act::Zero),
        1 => Just(Act::Flush),
        2 => Just(Act::Extents),
    ];
    let length = prop_oneof![4 => 0..5000_u64, 2 => (0..20_u64).prop_map(|pages| pages * 4096), 1 => 0..600_000_u64];
    (act, any::<u64>(), length)
}

/// Does something with the disk and with the array.
fn both(disk: &dyn BlockDevice, plain: &mut [u8], (act, offset, bytes): (Act, u64, u64)) {
    let size = plain.len() as u64;
    // Half of the requests begin where pages do.
    let offset = offset % size / if offset & 1 == 0 { 1 } else { 4096 } * if offset & 1 == 0 { 1 } else { 4096 };
    let bytes = bytes.min(size - offset);
    let range = offset as usize..(offset + bytes) as usize;
    match act {
        Act::Read => {
            let mut found = vec![0xEE; bytes as usize];
            disk.read(offset, &mut found).unwrap();
            assert!(found == plain[range.clone()], "{range:?} reads otherwise");
        }
        Act::Write { fill, fua } => {
            let data: Vec<u8> = (0..bytes).map(|i| fill.wrapping_add((i / 64) as u8)).collect();
            disk.write(offset, &data, fua).unwrap();
            plain[range].copy_from_slice(&data);
        }
        Act::Trim { fua } => {
            disk.trim(offset, bytes, fua).unwrap();
            let (start, end) = (range.start.div_ceil(4096) * 4096, range.end / 4096 * 4096);
            if start < end {
                plain[start..end].fill(0);
            }
        }
        Act::Zero(how) => {
            disk.write_zeroes(offset, bytes, how).unwrap();
            plain[range].fill(0);
        }
        Act::Flush => disk.flush().unwrap(),
        Act::Extents => {
            let mut at = range.start;
            disk.extents(offset, bytes, &mut |Extent { bytes, hole }| {
                let end = at + bytes as usize;
                assert!(bytes > 0 && (!hole || plain[at..end].iter().all(|byte| *byte == 0)), "{at}..{end}");
                at = end;
                true
            })
            .unwrap();
            assert_eq!(at, range.end);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_disk_does_what_an_array_of_bytes_does(
        ftl in prop::sample::select(vec!["page", "gecko", "dftl", "lazy", "fast", "janus"]),
        shards in 1..4_usize,
        acts in prop::collection::vec(act(), 1..60),
    ) {
        let disk = memory_disk(ftl, shards, |_| {});
        let mut plain = vec![0; disk.size_bytes() as usize];
        for act in acts {
            both(&disk, &mut plain, act);
        }
        let mut found = vec![0; plain.len()];
        disk.read(0, &mut found).unwrap();
        prop_assert!(found == plain, "something is lost");
        disk.close().unwrap();
    }
}

/// Harms every flash page that holds a logical page.
fn lose(device: &Device, lpn: u32) {
    let mut device = device.get();
    for ppn in (0..device.geometry().pages()).map(Ppn) {
        let spare = device.inner_mut().read_spare(ppn).unwrap();
        if spare.is_some_and(|spare| spare.kind == PageKind::User && spare.tag == Lpn(lpn).0) {
            device.damage(ppn, Blemish::Unreadable);
        }
    }
}

#[test]
fn a_lost_page_is_an_error_until_it_is_overwritten_whole() {
    let log = Arc::<Lines>::default();
    let (disk, device) = faulty("gecko", |options| options.log = Arc::clone(&log) as _);
    disk.write(0, &[5; 10 * 512], false).unwrap();
    lose(&device, 3);
    let mut out = [0; 4 * 512];
    for _ in 0..3 {
        let error = disk.read(0, &mut out).unwrap_err();
        assert!(matches!(error, DiskError::Page { page: 3, offset: 1536, .. }), "{error}");
    }
    assert_eq!(log.count("page 3 at offset 1536 B"), 1, "an error is logged once");
    disk.read(4 * 512, &mut out).unwrap();
    let part = disk.write(3 * 512 + 7, b"part", false);
    assert!(matches!(part, Err(DiskError::Page { page: 3, .. })), "the rest of the page is lost: {part:?}");
    disk.write(3 * 512, &[6; 512], false).unwrap();
    disk.read(0, &mut out).unwrap();
    assert_eq!((out[3 * 512 - 1], out[3 * 512], out[4 * 512 - 1]), (5, 6, 6));
}

#[test]
fn a_lost_page_can_be_trimmed() {
    let (disk, device) = faulty("page", |_| {});
    disk.write(0, &[5; 4 * 512], false).unwrap();
    lose(&device, 1);
    disk.trim(512, 512, true).unwrap();
    let mut out = [1; 1024];
    disk.read(512, &mut out).unwrap();
    assert!(out[..512] == [0; 512] && out[512..] == [5; 512]);
}

#[test]
fn a_worn_out_disk_refuses_writes_and_reads_on() {
    for ftl in ["page", "gecko", "bast"] {
        let log = Arc::<Lines>::default();
        let (disk, device) = faulty(ftl, |options| options.log = Arc::clone(&log) as _);
        for page in 0..400_u64 {
            disk.write(page * 512, &[page as u8 | 1; 512], false).unwrap();
        }
        let blocks = device.get().geometry().blocks();
        device.get().plan_mut().failing_blocks = (0..blocks).map(BlockId).collect();
        let mut writes = (0..100_000_u64).map(|i| disk.write(i * 7919 % 400 * 512, &[i as u8 | 1; 512], false));
        let error = writes.find_map(Result::err).unwrap();
        assert!(matches!(error, DiskError::WornOut(_)), "{ftl}: {error}");
        assert!(matches!(disk.write(0, &[1; 512], true), Err(DiskError::WornOut(_))), "{ftl}");
        disk.trim(0, 512, false).unwrap();
        let flushed = disk.flush();
        assert!(matches!(flushed, Err(DiskError::WornOut(_))), "{ftl}: the trim cannot be kept: {flushed:?}");
        let mut out = [0; 512];
        disk.read(0, &mut out).unwrap();
        assert_eq!(out, [0; 512], "{ftl}");
        for page in 1..400_u64 {
            disk.read(page * 512, &mut out).unwrap();
            assert!(out[0] != 0 && out == [out[0]; 512], "{ftl} page {page}");
        }
        assert!(disk.report().unwrap().worn_out && log.count("read-only") <= 2, "{ftl}");
    }
}

/// A store that counts syncs and can fail.
#[derive(Clone, Default)]
struct Counting {
    syncs: Arc<AtomicU32>,
    fails: Arc<AtomicBool>,
}

impl Store for Counting {
    fn sync(&mut self) -> io::Result<()> {
        self.syncs.fetch_add(1, Ordering::SeqCst);
        if self.fails.load(Ordering::SeqCst) { Err(io::Error::other("no medium")) } else { Ok(()) }
    }
}

#[test]
fn the_store_is_synced_by_flushes_and_fua_and_only_after_a_change() {
    let store = Counting::default();
    let (disk, _) = faulty("gecko", |options| options.store = Some(Box::new(store.clone())));
    let syncs = || store.syncs.load(Ordering::SeqCst);
    disk.flush().unwrap();
    let begin = syncs();
    disk.flush().unwrap();
    disk.write(0, b"x", false).unwrap();
    let mut out = [0; 1];
    disk.read(0, &mut out).unwrap();
    assert_eq!(syncs(), begin, "neither writes nor reads sync");
    disk.write(9, b"x", true).unwrap();
    assert_eq!(syncs(), begin + 1);
    disk.write_zeroes(0, 5000, Zeroing { may_trim: true, only_fast: false, fua: true }).unwrap();
    assert_eq!(syncs(), begin + 2);
    disk.trim(0, 5000, true).unwrap();
    disk.write(0, b"y", false).unwrap();
    disk.flush().unwrap();
    assert!(syncs() > begin + 2);
    let begin = syncs();
    disk.write(0, b"y", false).unwrap();
    disk.close().unwrap();
    assert!(syncs() > begin, "what is closed is synced");
}

#[test]
fn a_disk_without_a_write_cache_syncs_every_change() {
    let store = Counting::default();
    let (disk, _) = faulty("gecko", |options| {
        options.write_through = true;
        options.store = Some(Box::new(store.clone()));
    });
    let changes: [&dyn Fn() -> Result<(), DiskError>; 4] = [
        &|| disk.write(700, &[1; 5000], false),
        &|| disk.write_zeroes(0, 600, Zeroing { may_trim: false, only_fast: false, fua: false }),
        &|| disk.write_zeroes(0, 5000, Zeroing { may_trim: true, only_fast: false, fua: false }),
        &|| disk.trim(4096, 2048, false),
    ];
    for (at, change) in changes.iter().enumerate() {
        let before = store.syncs.load(Ordering::SeqCst);
        change().unwrap();
        assert!(store.syncs.load(Ordering::SeqCst) > before, "change {at} was answered unsynced");
    }
}

#[test]
fn after_a_sync_failed_nothing_is_promised_any_more() {
    let store = Counting::default();
    let (disk, _) = faulty("gecko", |options| options.store = Some(Box::new(store.clone())));
    disk.write(0, b"first", true).unwrap();
    disk.write(5, b"second", false).unwrap();
    store.fails.store(true, Ordering::SeqCst);
    assert!(matches!(disk.flush(), Err(DiskError::Failed { .. })));
    store.fails.store(false, Ordering::SeqCst);
    // The system may have forgotten what it could not write: a later success proves nothing.
    for outcome in [disk.flush(), disk.write(0, b"x", false), disk.trim(0, 512, false), disk.close()] {
        let error = outcome.unwrap_err();
        assert!(error.to_string().contains("no medium"), "{error}");
    }
    let mut out = [0; 11];
    disk.read(0, &mut out).unwrap();
    assert_eq!(&out, b"firstsecond");
}

#[test]
fn a_large_trim_is_answered_at_once_and_told_later() {
    let disk = memory_disk("gecko", 2, |_| {});
    let size = disk.size_bytes();
    disk.write(0, &vec![3; size as usize], false).unwrap();
    disk.trim(0, size, false).unwrap();
    let mut out = vec![1; size as usize];
    disk.read(0, &mut out).unwrap();
    assert!(out.iter().all(|byte| *byte == 0));
    disk.write(4096, &[9; 4096], false).unwrap();
    disk.flush().unwrap();
    assert_eq!(disk.report().unwrap().waiting_trim_bytes, 0, "a flush tells the FTL");
    disk.read(0, &mut out).unwrap();
    assert!(out[4096..8192] == [9; 4096] && out[8192..].iter().all(|byte| *byte == 0));
    disk.trim(0, size, false).unwrap();
    let told = (0..400).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        disk.report().unwrap().waiting_trim_bytes == 0
    });
    assert!(told, "nobody told the FTL");
}

#[test]
fn an_ftl_that_cannot_keep_its_promise_is_refused() {
    let row = table::find::<AnyBytes>("dftl").unwrap();
    let device = || MemNand::new(geometry(64, 512), Capabilities::MODERN);
    let make =
        |row: &ftl::ftls::Entry<AnyBytes>| (row.format)(Flash::new(Box::new(device())), &Config::new(300)).unwrap();
    let kept = Disk::new(vec![make(&row)], row.info, DiskOptions::new(Keeping::PowerLoss));
    assert_eq!(kept.err(), Some(Refusal::NeedsBattery { ftl: "dftl" }));
    assert!(Disk::new(vec![make(&row)], row.info, DiskOptions::new(Keeping::CleanStop)).is_ok());
    let none = Disk::<AnyBytes>::new(vec![], row.info, DiskOptions::new(Keeping::Nothing));
    assert!(matches!(none.err(), Some(Refusal::Shards { .. })));
}
