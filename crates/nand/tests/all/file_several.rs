//! Several devices in one file: each keeps what is its own, and they are made and opened together.
#![cfg(all(feature = "std", unix))]
#![allow(clippy::unwrap_used)]

use crate::common::*;
use openftl_nand::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("devices.nand");
    (folder, path)
}

/// A process that another test starts holds every lock until it runs its program.
fn open(path: &Path) -> Result<Vec<FileNand>, FileError> {
    for _ in 0..50 {
        match FileNand::open_all(path, Access::ReadWrite) {
            Err(FileError::Locked) => sleep(Duration::from_millis(10)),
            outcome => return outcome,
        }
    }
    FileNand::open_all(path, Access::ReadWrite)
}

/// Three devices, on each of which the pages up to its number are programmed.
fn three(path: &Path) -> u64 {
    let mut all = FileNand::create_several(path, 3, geometry(), OLD, b"owner").unwrap();
    for (index, n) in (0..).zip(&mut all) {
        (0..=index).for_each(|page| put(n, page, stamp(100 * index + page, 7), &spare(page, 9)).unwrap());
        n.erase(BlockId(index + 1)).unwrap();
    }
    all.into_iter().for_each(|n| n.close().unwrap());
    fs::metadata(path).unwrap().len() / 3
}

fn check(all: &mut [FileNand]) {
    assert_eq!(all.len(), 3);
    for (index, n) in (0..).zip(all) {
        assert_eq!((n.owner(), n.opening().closed), (&b"owner"[..], true));
        assert!(n.erase_counts().eq((0..6).map(|block| u32::from(block == index + 1))));
        assert_eq!(n.usage().unwrap().host_data, u64::from(index) + 1);
        for page in 0..48 {
            let wanted = (page <= index).then(|| (stamp(100 * index + page, 7), spare(page, 9)));
            assert_eq!(get(n, page).ok(), wanted, "device {index}");
        }
    }
}

#[test]
fn each_of_several_devices_keeps_its_own_pages() {
    let (_folder, path) = folder();
    three(&path);
    let mut all = open(&path).unwrap();
    check(&mut all);
    assert!(matches!(open(&path), Err(FileError::Locked)), "one process has all of them");
    // Erasing every block of the one in the middle gives back its bytes, and no other's.
    (0..6).for_each(|block| all[1].erase(BlockId(block)).unwrap());
    put(&mut all[1], 0, stamp(1, 1), &spare(1, 20)).unwrap();
    all.into_iter().for_each(|n| n.close().unwrap());
    let mut all = open(&path).unwrap();
    assert_eq!(get(&mut all[1], 0).unwrap().0, stamp(1, 1));
    assert_eq!(all[1].usage().unwrap().host_data, 1);
    assert_eq!((get(&mut all[0], 0).unwrap().0, get(&mut all[2], 2).unwrap().0), (stamp(0, 7), stamp(202, 7)));
}

#[test]
fn a_device_that_was_not_closed_is_told_from_one_that_was() {
    let (_folder, path) = folder();
    three(&path);
    let mut all = open(&path).unwrap();
    put(&mut all[1], 8, stamp(5, 5), &spare(5, 30)).unwrap();
    let unclosed = fs::read(&path).unwrap();
    drop(all);
    fs::write(&path, &unclosed).unwrap();
    let mut all = open(&path).unwrap();
    // They were all open, so none of them was closed; nothing is undone of the one that was used.
    assert!(all.iter().all(|n| !n.opening().closed && n.opening().undone == 0));
    assert_eq!(get(&mut all[1], 8).unwrap().0, stamp(5, 5));
}

#[test]
fn an_overlay_over_several_devices_leaves_the_file_alone() {
    let (_folder, path) = folder();
    three(&path);
    let before = fs::read(&path).unwrap();
    let mut all = FileNand::open_all(&path, Access::Overlay).unwrap();
    check(&mut all);
    for n in &mut all {
        n.erase(BlockId(0)).unwrap();
        put(n, 0, stamp(9, 9), &spare(9, 40)).unwrap();
        n.syncer().sync().unwrap();
        assert_eq!((get(n, 0).unwrap().0, get(n, 1).is_err()), (stamp(9, 9), true));
    }
    drop(all);
    check(&mut FileNand::open_all(&path, Access::ReadOnly).unwrap());
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_file_of_one_device_is_what_it_always_was() {
    let (folder, path) = folder();
    drop(FileNand::create_several(&path, 1, geometry(), OLD, b"owner").unwrap());
    let other = folder.path().join("other.nand");
    drop(FileNand::create(&other, geometry(), OLD, b"owner").unwrap());
    let bytes = fs::read(&path).unwrap();
    assert!(bytes == fs::read(&other).unwrap() && u32::from(bytes[8]) == file::FILE_VERSION);
    assert_eq!(FileNand::open_all(&path, Access::ReadOnly).unwrap().len(), 1);
    assert!(matches!(FileNand::create_several(&path, 0, geometry(), OLD, b""), Err(FileError::Several { devices: 0 })));
}

#[test]
fn what_is_no_whole_file_of_several_devices_is_named() {
    let (_folder, path) = folder();
    let each = three(&path) as usize;
    let bytes = fs::read(&path).unwrap();
    assert_eq!(u32::from(bytes[8]), file::SEVERAL_VERSION);
    let refused = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut other = bytes.clone();
        change(&mut other);
        fs::write(&path, other).unwrap();
        open(&path).unwrap_err().to_string()
    };
    let error = FileNand::open(&path, Access::ReadWrite).unwrap_err();
    assert!(matches!(error, FileError::Several { devices: 3 }), "{error}");
    let error = refused(&|bytes| bytes.truncate(2 * each + 5000));
    assert!(error.contains(&format!("it has {} B of {} B", 2 * each + 5000, 3 * each)), "{error}");
    let error = refused(&|bytes| bytes[each..each + 4096].fill(0));
    assert!(error.starts_with("device 1 of the file: no device in a file"), "{error}");
    let error = refused(&|bytes| bytes[2 * each + 30] ^= 1);
    assert!(error.starts_with("device 2 of the file: the file is damaged: its header"), "{error}");
    let error = refused(&|bytes| bytes.copy_within(each..2 * each, 2 * each));
    assert!(error.starts_with("device 2 of the file: the file is malformed: a header unlike the first"), "{error}");
    let error = refused(&|bytes| bytes.copy_within(each..2 * each, 0));
    assert!(error.contains("the place of the first device of the file is 1"), "{error}");
    fs::write(&path, &bytes).unwrap();
    check(&mut open(&path).unwrap());
}
