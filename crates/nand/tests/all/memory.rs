//! What a simulated device costs, and the benchmark run tiny.
#![allow(clippy::unwrap_used)]

#[path = "../../benches/work/mod.rs"]
mod work;

use openftl_nand::*;

fn device(blocks: u32, pages_per_block: u32) -> SimNand {
    let geometry = Geometry::new(Dimensions {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks,
        pages_per_block,
        page_bytes: 4096,
        spare_bytes: 128,
    })
    .unwrap();
    SimNand::new(geometry, Capabilities::MODERN)
}

#[test]
fn a_page_of_host_data_takes_little_more_than_eight_bytes() {
    let mut n = device(4096, 128);
    assert!(n.memory_bytes() < 4096 * 66, "an empty device takes {} B", n.memory_bytes());
    work::fill(&mut n, 2);
    let pages = f64::from(n.geometry().pages());
    let a_page = n.memory_bytes() as f64 / pages;
    assert!(a_page < 8.5, "{a_page} B a page");
    assert_eq!(n.full_records(), 0, "plain host data needs no full record");
    // An allocator adds up to 16 B a block.
    let two_tib = (a_page + 16.0 / 128.0) * f64::from(1 << 29);
    assert!(two_tib < 4.7e9, "2 TiB would take {two_tib} B");
}

#[test]
fn auxiliary_bits_take_six_bytes_more_and_only_where_there_are_some() {
    let mut n = device(64, 128);
    let spare = |tag, aux| Spare {
        kind: PageKind::User,
        tag,
        seq: u64::from(tag),
        erase_count: 0,
        erased_at: 0,
        aux,
        flags: Flags::NONE,
    };
    let write = |n: &mut SimNand, tag, aux| {
        n.program(Ppn(tag), &Stamp { lpn: Lpn(tag), version: 1 }, &spare(tag, aux)).unwrap();
    };
    (0..64 * 128).for_each(|tag| write(&mut n, tag, 0));
    let plain = n.memory_bytes();
    (0..64).for_each(|block| n.erase(BlockId(block)).unwrap());
    // The second block gets its first auxiliary bits late, the third none.
    let aux_of = |tag: u32| if tag < 128 || (200..256).contains(&tag) { tag | 1 << 31 } else { 0 };
    (0..3 * 128).for_each(|tag| write(&mut n, tag, aux_of(tag)));
    assert_eq!(n.full_records(), 0);
    assert_eq!(n.memory_bytes() - plain, 2 * 128 * 6);
    let mut snapshot = n.snapshot();
    n.erase(BlockId(0)).unwrap();
    (0..128).for_each(|tag| write(&mut n, tag, 0));
    for tag in 0..3 * 128 {
        assert_eq!(snapshot.read_spare(Ppn(tag)), Ok(Some(spare(tag, aux_of(tag)))));
        let now = if tag < 128 { 0 } else { aux_of(tag) };
        assert_eq!(n.read_spare(Ppn(tag)), Ok(Some(spare(tag, now))));
    }
}

#[test]
fn a_device_in_its_steady_state_does_not_grow() {
    let mut n = device(16, 8);
    work::fill_meta(&mut n, 1);
    assert_eq!(n.full_records(), 128);
    let first = n.memory_bytes();
    work::fill_meta(&mut n, 5);
    work::copy(&mut n, 5);
    work::fill_meta(&mut n, 5);
    assert_eq!(n.full_records(), 128);
    assert!(n.memory_bytes() <= first + first / 16, "{} B grew to {} B", first, n.memory_bytes());
    work::fill(&mut n, 1);
    assert_eq!(n.full_records(), 0);
}

#[test]
fn versions_of_metadata_take_little_more_than_what_they_change_and_read_back_as_programmed() {
    const MAPS: u32 = 512;
    const CHANGED: usize = 1021;
    let mut n = device(640, 128);
    let spare = |tag, seq| Spare {
        kind: PageKind::Translation,
        tag,
        seq,
        erase_count: 0,
        erased_at: 0,
        aux: 7,
        flags: Flags::NONE,
    };
    let mut maps: Vec<Vec<u8>> = (0..MAPS).map(|map| vec![map as u8; 4096]).collect();
    let mut at = vec![Ppn(0); MAPS as usize];
    let mut snapshot = None;
    let mut read = vec![0; 4096];
    for next in 0..n.geometry().pages() {
        let (map, version) = (next % MAPS, next / MAPS);
        if version > 0 {
            n.read_meta(at[map as usize], &mut read).unwrap();
            assert_eq!(read, maps[map as usize], "version {} of map {map}", version - 1);
            let part = next as usize * 97 % 4093..4096.min(next as usize * 97 % 4093 + 4);
            let mut beside = vec![0xA5; 4096];
            n.read_meta_part(at[map as usize], &mut beside, part.clone()).unwrap();
            assert_eq!(beside[part.clone()], read[part.clone()], "bytes {part:?} of version {}", version - 1);
            read[(version as usize * 97 % CHANGED) * 4..][..4].copy_from_slice(&next.to_le_bytes());
            maps[map as usize].clone_from(&read);
        }
        at[map as usize] = Ppn(next);
        n.program_meta(Ppn(next), &maps[map as usize], &spare(map, u64::from(next))).unwrap();
        if next == n.geometry().pages() / 2 {
            snapshot = Some((n.snapshot(), at.clone(), maps.clone()));
        }
    }
    assert_eq!(n.full_records(), n.geometry().pages() as usize);
    // Half of the records, and all of those that are kept whole anyway, take 4 KiB.
    let whole = n.memory_bytes() / 4096;
    assert!(whole < u64::from(n.geometry().pages()) * 6 / 10, "{whole} pages of contents");
    let (mut snapshot, at, maps) = snapshot.unwrap();
    (0..640).for_each(|block| n.erase(BlockId(block)).unwrap());
    work::fill_meta(&mut n, 1);
    for map in 0..MAPS as usize {
        snapshot.read_meta(at[map], &mut read).unwrap();
        assert_eq!(read, maps[map]);
    }
}

#[test]
fn a_snapshot_costs_by_the_block() {
    let mut n = device(64, 128);
    work::fill(&mut n, 1);
    let snapshot = n.snapshot();
    work::copy(&mut n, 1);
    assert_eq!(snapshot.erase_counts(), [1; 64]);
    assert_eq!(n.erase_count(BlockId(1)), 2);
}

#[test]
fn benchmarks_do_what_they_did() {
    let mut n = device(16, 12);
    let filled = work::fill(&mut n, 2);
    assert_eq!(filled, work::fill(&mut device(16, 12), 2), "the same work gives the same hash");
    assert_ne!(filled, work::copy(&mut n, 1), "copies moved nothing");
    assert_eq!(n.full_records(), 0);
    work::fill_meta(&mut n, 1);
    assert_eq!(n.full_records(), 16 * 12);
}

#[test]
fn sequence_numbers_far_apart_are_kept_in_full() {
    let mut n = device(1, 8);
    let base = 7;
    for (offset, delta, full) in [
        (0, 0, 0),
        (1, 0x7FFF, 0),
        (2, 0x8000, 0),
        (3, 0xFFFE, 0),
        (4, 0x7FFF_FFFF, 0),
        (5, 0x8000_0000, 1),
        (6, u64::from(u32::MAX) + 1, 2),
        (7, 1, 2),
    ] {
        let stamp = Stamp { lpn: Lpn(offset), version: 9 };
        let spare = Spare {
            kind: PageKind::User,
            tag: offset,
            seq: base + delta,
            erase_count: 0,
            erased_at: 0,
            aux: 0,
            flags: Flags::NONE,
        };
        n.program(Ppn(offset), &stamp, &spare).unwrap();
        assert_eq!(n.full_records(), full, "a difference of {delta}");
        let mut read = Stamp::UNWRITTEN;
        assert_eq!(n.read(Ppn(offset), &mut read), Ok(spare));
        assert_eq!(read, stamp);
    }
}

#[test]
#[cfg(all(feature = "std", unix))]
fn the_benchmark_of_devices_with_bytes_runs_tiny() {
    use crate::common::{PAGE, SHAPE};
    let geometry = Geometry::new(Dimensions { blocks: 4, ..SHAPE }).unwrap();
    let mut mem = MemNand::new(geometry, Capabilities::MODERN);
    let bytes = FileNand::<file::Volatile>::bytes_needed(&geometry, 0) as usize;
    let medium = file::Volatile::new(vec![0; bytes]);
    let mut file = FileNand::create_on(medium, geometry, Capabilities::MODERN, b"").unwrap();
    for _ in 0..2 {
        work::fill_bytes(&mut mem, 0..2);
        work::copy_bytes(&mut mem, 2);
        work::fill_bytes(&mut file, 0..2);
        work::copy_bytes(&mut file, 2);
    }
    let (mut wanted, mut found) = ([0; PAGE], [0; PAGE]);
    for ppn in (0..32).map(Ppn) {
        assert_eq!(file.read(ppn, &mut found), mem.read(ppn, &mut wanted));
        assert_eq!((found, found[..4] == (ppn.0 % 16).to_le_bytes()), (wanted, true), "{ppn}");
    }
}
