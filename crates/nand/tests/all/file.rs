//! Devices in files survive, and what is no such file is refused with what was found.
#![cfg(all(feature = "std", unix))]
#![allow(clippy::unwrap_used)]

use crate::common::*;
use openftl_nand::file::{HostFile, Opening, Volatile};
use openftl_nand::*;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("device.nand");
    (folder, path)
}

fn create(path: &Path) -> FileNand {
    FileNand::create(path, geometry(), OLD, b"owner").unwrap()
}

fn open(path: &Path) -> Result<FileNand, FileError> {
    FileNand::open(path, Access::ReadWrite)
}

/// A bit of everything.
fn use_it<M: file::Medium>(n: &mut FileNand<M>) {
    n.erase(BlockId(1)).unwrap();
    for page in [3, 0, 8, 9, 47] {
        fill(n, page).unwrap();
    }
    n.program_meta(Ppn(20), b"map", &spare(7, 7)).unwrap();
    n.clear_flags(Ppn(20), Flags::from_bits(4)).unwrap();
    n.clear_flags(Ppn(47), Flags::from_bits(0x81)).unwrap();
    n.mark_bad(BlockId(1)).unwrap();
}

fn check(n: &mut FileNand) {
    assert_eq!((*n.geometry(), n.capabilities(), n.owner()), (geometry(), OLD, &b"owner"[..]));
    assert!(n.erase_counts().eq([0, 1, 0, 0, 0, 0]));
    for page in 0..48 {
        match page {
            0 | 3 | 8 | 9 => {
                assert_eq!(get(n, page).unwrap(), (stamp(page, page as u16), spare(page, 1000 + u64::from(page))))
            }
            20 => assert_eq!(n.probe(Ppn(20)).unwrap(), Spare { flags: Flags::from_bits(4), ..spare(7, 7) }),
            47 => assert_eq!(n.probe(Ppn(47)).unwrap().flags, Flags::from_bits(0x81)),
            _ => assert_eq!(n.read_spare(Ppn(page)), Ok(None)),
        }
    }
    let mut map = [0; 4];
    n.read_meta(Ppn(20), &mut map).unwrap();
    assert_eq!(&map, b"map\xFF");
    assert!(n.is_bad(BlockId(1)) && !n.is_bad(BlockId(2)));
    assert_eq!((0..7).map(|b| n.programmed_end(BlockId(b)).unwrap()).collect::<Vec<_>>(), [4, 2, 5, 0, 0, 8, 0]);
}

#[test]
fn a_device_survives_its_process() {
    let (_folder, path) = folder();
    let mut n = create(&path);
    assert_eq!(n.opening(), Opening { closed: false, undone: 0 }, "it was never closed");
    use_it(&mut n);
    check(&mut n);
    n.close().unwrap();
    let mut again = open(&path).unwrap();
    assert_eq!(again.opening(), Opening { closed: true, undone: 0 });
    check(&mut again);
    again.clear_flags(Ppn(20), Flags::from_bits(1)).unwrap();
    assert_eq!(again.probe(Ppn(20)).unwrap().flags, Flags::from_bits(5));
    assert_eq!(law(again.clear_flags(Ppn(20), Flags::ALL)), Law::SpareReprogram, "twice is all");
    fill(&mut again, 1).unwrap();
    assert_eq!(law(fill(&mut again, 3)), Law::EraseBeforeProgram);
    drop(again);
    let mut again = open(&path).unwrap();
    assert_eq!(again.opening(), Opening { closed: true, undone: 0 }, "dropping it closes it");
    assert_eq!(get(&mut again, 1).unwrap().0, stamp(1, 1));
}

#[test]
fn a_device_is_not_made_over_a_file() {
    let (folder, path) = folder();
    drop(create(&path));
    assert!(matches!(FileNand::create(&path, geometry(), OLD, b""), Err(FileError::Exists)));
    check_empty(&mut open(&path).unwrap());
    let elsewhere = folder.path().join("none/device.nand");
    assert!(matches!(
        FileNand::create(&elsewhere, geometry(), OLD, b""),
        Err(FileError::Io { attempt: "created", .. })
    ));
    assert!(matches!(open(&elsewhere), Err(FileError::Io { attempt: "opened", .. })));
    let long = vec![1; file::OWNER_BYTES_MAX + 1];
    let path = folder.path().join("other.nand");
    assert!(matches!(FileNand::create(&path, geometry(), OLD, &long), Err(FileError::OwnerTooLong { .. })));
    assert!(!path.exists(), "a refused device left a file");
    let made = FileNand::create(&path, geometry(), OLD, &long[1..]).unwrap();
    assert_eq!(made.owner(), &long[1..]);
}

fn check_empty(n: &mut FileNand) {
    assert!((0..48).all(|page| n.read_spare(Ppn(page)) == Ok(None)));
}

#[test]
fn one_process_writes_or_many_read() {
    let (_folder, path) = folder();
    let writer = create(&path);
    for access in [Access::ReadWrite, Access::ReadOnly, Access::Overlay] {
        let error = FileNand::open(&path, access).unwrap_err();
        assert!(matches!(error, FileError::Locked), "{access:?}: {error}");
    }
    drop(writer);
    let readers = [Access::ReadOnly, Access::Overlay].map(|access| FileNand::open(&path, access).unwrap());
    assert!(matches!(open(&path), Err(FileError::Locked)));
    drop(readers);
    open(&path).unwrap();
}

#[test]
fn an_overlay_forgets_and_a_reader_refuses() {
    let (_folder, path) = folder();
    let mut n = create(&path);
    use_it(&mut n);
    drop(n);
    let before = fs::read(&path).unwrap();
    let mut over = FileNand::open(&path, Access::Overlay).unwrap();
    check(&mut over);
    over.erase(BlockId(0)).unwrap();
    fill(&mut over, 0).unwrap();
    put(&mut over, 3, stamp(9, 9), &spare(9, 9)).unwrap();
    over.syncer().sync().unwrap();
    assert_eq!(get(&mut over, 3).unwrap().0, stamp(9, 9));
    assert_eq!(get(&mut over, 8).unwrap().0, stamp(8, 8));
    over.close().unwrap();
    let mut reader = FileNand::open(&path, Access::ReadOnly).unwrap();
    check(&mut reader);
    let refused = [
        fill(&mut reader, 2),
        reader.erase(BlockId(0)),
        reader.mark_bad(BlockId(0)),
        reader.copy(Ppn(0), Ppn(2), &spare(0, 9)),
    ];
    for refused in refused.into_iter().chain([reader.clear_flags(Ppn(0), Flags::ALL)]) {
        let error = refused.unwrap_err();
        assert!(matches!(error, NandError::Host { .. }) && error.to_string().contains("Read-only"), "{error}");
    }
    check(&mut reader);
    drop(reader);
    assert_eq!(fs::read(&path).unwrap(), before, "the file was touched");
}

#[test]
fn a_terabyte_costs_nothing_until_it_is_written() {
    let (_folder, path) = folder();
    let shape = Dimensions { blocks: 1 << 18, pages_per_block: 256, page_bytes: 16_384, ..SHAPE };
    let geometry = Geometry::new(shape).unwrap();
    assert_eq!(geometry.raw_bytes(), 1 << 40);
    let mut n = match FileNand::create(&path, geometry, OLD, b"") {
        // Some file systems have no files as large.
        Err(FileError::Io { source, .. }) if source.kind() == std::io::ErrorKind::FileTooLarge => return,
        made => made.unwrap(),
    };
    let used = || fs::metadata(&path).unwrap().blocks() * 512;
    let empty = used();
    assert!(empty < 1 << 20, "{empty} B for an empty device");
    let data = vec![0x5A; 16_384];
    for page in (0..256).map(|page| Ppn(77 * 256 + page)) {
        n.program(page, &data, &spare(page.0, 1)).unwrap();
    }
    n.sync().unwrap();
    let full = used();
    assert!((4 << 20..6 << 20).contains(&full), "{full} B for 4 MiB");
    n.erase(BlockId(77)).unwrap();
    n.program(Ppn(77 * 256), &data, &spare(0, 2)).unwrap();
    n.close().unwrap();
    let left = used();
    assert!(left < 1 << 20, "{left} B are left of an erased block with a page of 16 KiB");
    let mut again = open(&path).unwrap();
    assert_eq!(again.read_spare(Ppn(77 * 256)), Ok(Some(spare(0, 2))));
    assert_eq!(again.read_spare(Ppn(77 * 256 + 1)), Ok(None));
}

#[test]
fn what_is_no_device_is_named() {
    let (folder, path) = folder();
    for foreign in
        [&b""[..], b"hsqs", b"hsqs is squashfs, longer than the header of a device would be, by some bytes more"]
    {
        fs::write(&path, foreign).unwrap();
        let error = open(&path).unwrap_err();
        assert!(matches!(error, FileError::Foreign { .. }), "{error}");
    }
    assert!(open(&path).unwrap_err().to_string().starts_with("no device in a file: it starts with [68, 73, 71, 73"));
    assert!(matches!(open(folder.path()), Err(FileError::Io { .. })));
    fs::remove_file(&path).unwrap();
    drop(create(&path));
    let bytes = fs::read(&path).unwrap();
    for version in [1, 2, 6] {
        let mut other = bytes.clone();
        other[8] = version;
        fs::write(&path, other).unwrap();
        let error = open(&path).unwrap_err();
        assert!(matches!(error, FileError::Version { found } if found == u32::from(version)), "{error}");
        let wanted = format!("the file has format version {version}; this program reads versions 3 to 5");
        assert_eq!(error.to_string(), wanted);
    }
    for length in [8, 71, 72, 4096, 8192, bytes.len() - 1] {
        fs::write(&path, &bytes[..length]).unwrap();
        let error = open(&path).unwrap_err();
        assert!(matches!(error, FileError::Truncated { bytes, .. } if bytes == length as u64), "{length}: {error}");
    }
    fs::write(&path, &bytes).unwrap();
    open(&path).unwrap();
}

#[test]
fn every_damaged_byte_of_the_tables_is_noticed() {
    let mut n = file_in_memory(OLD);
    use_it(&mut n);
    n.erase(BlockId(3)).unwrap();
    let mut bytes = n.medium().contents().to_vec();
    let reopen = |bytes: &[u8]| FileNand::open_on(Volatile::new(bytes.to_vec()), Access::ReadWrite);
    let (owner_at, blocks_at) = (3 * 4096, 4 * 4096);
    let header = 0..68;
    let owner = owner_at..owner_at + 5;
    let (first, second) = (blocks_at + 32..blocks_at + 64, blocks_at + 96..blocks_at + 128);
    for at in header.chain(owner).chain(first).chain(second) {
        bytes[at] ^= 0x10;
        let error = reopen(&bytes).unwrap_err();
        let named = matches!(error, FileError::Damaged { .. } | FileError::Foreign { .. } | FileError::Version { .. });
        assert!(named, "byte {at}: {error}");
        bytes[at] ^= 0x10;
    }
    for anchor in [4096, 8192] {
        bytes[anchor..anchor + 32].fill(0);
    }
    let error = reopen(&bytes).unwrap_err();
    assert!(matches!(error, FileError::Damaged { part: "pair of anchors", at: 4096 }), "{error}");
}

/// Whatever byte of a page is damaged, the page is not read as something else.
#[test]
fn every_damaged_byte_of_a_page_makes_it_unreadable() {
    let mut n = file_in_memory(OLD);
    use_it(&mut n);
    n.sync().unwrap();
    // So that the pages count as on disk.
    let whole = FileNand::open_on(n.medium().clone(), Access::ReadWrite).unwrap().medium().contents().to_vec();
    let region = 5 * 4096;
    let data = region + 4096;
    for at in (region..region + 44).chain((data..data + PAGE).step_by(7)) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        let mut n = FileNand::open_on(Volatile::new(bytes), Access::ReadWrite).unwrap();
        assert_eq!(get(&mut n, 0), Err(NandError::Uncorrectable { ppn: Ppn(0) }), "byte {at}");
        assert_eq!(n.probe(Ppn(0)), Err(NandError::Uncorrectable { ppn: Ppn(0) }), "byte {at}");
        assert_eq!(n.copy(Ppn(0), Ppn(1), &spare(0, 0)), Err(NandError::Uncorrectable { ppn: Ppn(0) }), "byte {at}");
        assert_eq!(law(fill(&mut n, 0)), Law::EraseBeforeProgram, "byte {at}");
        assert_eq!(get(&mut n, 3).unwrap().0, stamp(3, 3), "byte {at}");
        n.erase(BlockId(0)).unwrap();
        fill(&mut n, 0).unwrap();
        assert_eq!(get(&mut n, 0).unwrap().0, stamp(0, 0), "byte {at}");
    }
}

#[test]
fn a_file_that_may_not_be_written_is_named() {
    let (_folder, path) = folder();
    drop(create(&path));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    // Root may write it all the same.
    match open(&path) {
        Err(error) => assert!(matches!(error, FileError::ReadOnly { .. }), "{error}"),
        Ok(_) => assert_eq!(fs::metadata("/proc/self").unwrap().uid(), 0),
    }
    FileNand::open(&path, Access::ReadOnly).unwrap();
}

/// The kernel's own full disk: a write to it says that no space is left.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_of_the_host_is_named() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let refused = full.write_at(&[1], 0).unwrap_err();
    let error =
        NandError::Host { operation: "program", ppn: Ppn(3), cause: HostError(refused.raw_os_error().unwrap()) };
    let wanted = "program of Ppn 3: the host failed: No space left on device (os error 28); nothing more is written \
                  until the device is opened again";
    assert_eq!(error.to_string(), wanted);
}

#[test]
fn the_device_can_be_sent_to_another_thread() {
    fn sent<T: Send>() {}
    fn shared<T: Send + Sync + Clone>() {}
    sent::<FileNand<HostFile>>();
    shared::<Syncer>();
}
