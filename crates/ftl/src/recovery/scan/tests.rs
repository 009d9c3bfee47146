#![allow(clippy::unwrap_used)]

use super::*;
use crate::mapping::trims::mark;
use crate::space::age::age;
use nand::{Blemish, Capabilities, Dimensions, FaultPlan, Faulty, Flags, Geometry, SimNand, Stamp};

type Device = Flash<Faulty<SimNand>>;

const DISK: u32 = 10;
const PAGES: u32 = 4;
const ROOT: u64 = 11;

fn device() -> Device {
    let geometry = Geometry::new(Dimensions {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks: 6,
        pages_per_block: PAGES,
        page_bytes: 512,
        spare_bytes: 32,
    })
    .unwrap();
    Flash::new(Faulty::new(SimNand::new(geometry, Capabilities::MODERN), FaultPlan::default()))
}

/// Programs a page of host data, a copy of one with the sequence number `root` unless that is 0.
fn put(flash: &mut Device, ppn: u32, lpn: u32, seq: u64, root: u64) {
    let wear = ppn / PAGES;
    let aux = if root == 0 { 0 } else { age(seq, root) };
    let spare =
        Spare { kind: PageKind::User, tag: lpn, seq, erase_count: wear, erased_at: wear, aux, flags: Flags::NONE };
    flash.nand_mut().program(Ppn(ppn), &Stamp { lpn: Lpn(lpn), version: seq as u16 }, &spare).unwrap();
}

/// Programs page `tag` of the trim map, with its first byte. A mount does it if it is told of the
/// newest page of a disk in use.
fn put_trims(flash: &mut Device, ppn: u32, tag: u32, (seq, in_use_seq): (u64, Option<u64>), first: u8) {
    let wear = ppn / PAGES;
    let aux = mark(seq, in_use_seq, false);
    let spare =
        Spare { kind: PageKind::Translation, tag, seq, erase_count: wear, erased_at: wear, aux, flags: Flags::NONE };
    flash.nand_mut().program_meta(Ppn(ppn), &[first, 0, 0, 0], &spare).unwrap();
}

fn scan(flash: &mut Device) -> (Scan, FoundTrims) {
    let mut scan = Scan::run(flash, DISK, Mounts::Mark, Look::Once).unwrap();
    let trims = scan.forget_trimmed(flash).unwrap();
    (scan, trims)
}

fn harm(flash: &mut Device, ppn: u32, blemish: Blemish) {
    flash.nand_mut().damage(Ppn(ppn), blemish);
}

fn doubtful((scan, trims): &(Scan, FoundTrims)) -> Vec<u32> {
    scan.doubtful(trims).iter().map(|(ppn, _)| ppn.0).collect()
}

fn suspects(scan: &Scan) -> Vec<u32> {
    scan.suspects().iter().map(|block| block.0).collect()
}

#[test]
fn the_page_programmed_last_is_in_doubt_and_no_block_is_suspect() {
    let mut flash = device();
    (0..6).for_each(|ppn| put(&mut flash, ppn, ppn, 10 + u64::from(ppn), 0));
    put(&mut flash, 8, 0, 30, 0);
    let found = scan(&mut flash);
    let scan = &found.0;
    assert_eq!((doubtful(&found), suspects(scan), scan.next_seq()), ([8].to_vec(), Vec::new(), 32));
    assert_eq!((scan.copy_of(Lpn(0)), scan.copy_of(Lpn(4)), scan.copy_of(Lpn(9))), (Ppn(8), Ppn(4), Ppn::NONE));
    assert_eq!(flash.counts().total().reads, 3, "the last page of each block");
}

#[test]
fn what_mounts_that_were_cut_short_moved_leaves_the_page_before_in_doubt() {
    let mut flash = device();
    put(&mut flash, 0, 0, 10, 0);
    put(&mut flash, 4, 1, 11, 0);
    put(&mut flash, 8, 2, 12, ROOT);
    put(&mut flash, 9, 3, 13, ROOT);
    put(&mut flash, 12, 4, 14, ROOT);
    assert_eq!(doubtful(&scan(&mut flash)), [12, 9, 4], "the last pages of their blocks, from the newest in use on");
    put(&mut flash, 16, 5, 15, 0);
    assert_eq!(doubtful(&scan(&mut flash)), [16]);
    put(&mut flash, 20, 1, 16, ROOT);
    assert_eq!(doubtful(&scan(&mut flash)), [20, 16]);
}

#[test]
fn a_block_that_may_show_something_else_later_is_suspect() {
    for (blemish, last, excluded) in [
        (Blemish::Unreadable, true, true),
        (Blemish::Garbage, true, true),
        (Blemish::Blank, true, false),
        (Blemish::Unreadable, false, true),
        (Blemish::Garbage, false, true),
        (Blemish::Blank, false, false),
    ] {
        let mut flash = device();
        (0..6).for_each(|ppn| put(&mut flash, ppn, ppn, 10 + u64::from(ppn), 0));
        let ppn = if last { 3 } else { 1 };
        harm(&mut flash, ppn, blemish);
        let found = scan(&mut flash);
        let scan = &found.0;
        let expected = if excluded { [Ppn(ppn)].to_vec() } else { Vec::new() };
        assert_eq!(scan.excluded(), expected, "{blemish:?} at {ppn}");
        // A page that reads as erased at the end of a block may never have been programmed.
        let suspect = if excluded || !last { [0].to_vec() } else { Vec::new() };
        assert_eq!(suspects(scan), suspect, "{blemish:?} at {ppn}");
        assert_eq!((doubtful(&found), scan.copy_of(Lpn(ppn)), scan.next_seq()), ([5].to_vec(), Ppn::NONE, 17));
    }
}

#[test]
fn a_page_that_nobody_wrote_neither_counts_nor_refuses_the_disk() {
    for seed in 0..200 {
        let mut flash = device();
        flash.nand_mut().plan_mut().seed = seed;
        (0..5).for_each(|ppn| put(&mut flash, ppn, ppn, 10 + u64::from(ppn), 0));
        harm(&mut flash, 3, Blemish::Garbage);
        harm(&mut flash, 4, Blemish::Garbage);
        let found = scan(&mut flash);
        let scan = &found.0;
        assert_eq!((doubtful(&found), suspects(scan)), ([2].to_vec(), [0, 1].to_vec()), "seed {seed}");
        assert!(scan.next_seq() < 1000 && scan.erased_at == 0, "seed {seed}: {scan:?}");
    }
}

#[test]
fn what_a_page_superseded_is_found_but_for_what_is_excluded() {
    let mut flash = device();
    put(&mut flash, 0, 7, 10, 0);
    put(&mut flash, 1, 7, 11, 0);
    put(&mut flash, 2, 0, 12, 0);
    put(&mut flash, 4, 7, 13, 0);
    put(&mut flash, 8, 7, 14, 0);
    let mut excluded = Vec::new();
    for (newest, last) in [(8, true), (4, true), (1, false), (0, false)] {
        let ((ppn, _), is_last) = newest_but(&mut flash, DISK, Lpn(7), &mut excluded).unwrap().unwrap();
        assert_eq!((ppn.0, is_last), (newest, last));
        excluded.push(ppn);
    }
    assert!(newest_but(&mut flash, DISK, Lpn(7), &mut excluded).unwrap().is_none());
    // A page behind it that cannot be read was programmed later.
    harm(&mut flash, 2, Blemish::Unreadable);
    let mut excluded = [Ppn(4), Ppn(8)].to_vec();
    let ((ppn, _), is_last) = newest_but(&mut flash, DISK, Lpn(7), &mut excluded).unwrap().unwrap();
    assert_eq!((ppn.0, is_last), (1, false));
}

#[test]
fn a_last_page_that_cannot_be_read_is_worn_if_something_was_programmed_after_it_while_the_disk_was_in_use() {
    // The second block holds one page, programmed last: what it says of its wear is all that speaks
    // for it.
    for (last, (seq, root), worn) in [
        (5, (15, 0), true),
        (5, (15, 12), false),
        (5, (15, 13), false),
        (5, (15, 14), true),
        (5, (9, 0), false),
        (4, (14, 0), true),
    ] {
        let mut flash = device();
        (0..3).for_each(|ppn| put(&mut flash, ppn, ppn, 10 + u64::from(ppn), 0));
        put(&mut flash, 3, 3, 13, 0);
        if last == 5 {
            put(&mut flash, 4, 4, if seq == 9 { 8 } else { 14 }, if seq == 9 { 0 } else { root });
        }
        put(&mut flash, last, 5, seq, root);
        harm(&mut flash, 3, Blemish::DataUnreadable);
        let also = if last == 4 { [4].as_slice() } else { &[] };
        also.iter().for_each(|ppn| harm(&mut flash, *ppn, Blemish::DataUnreadable));
        let (scan, _) = scan(&mut flash);
        let mut excluded: Vec<u32> = scan.excluded().iter().map(|ppn| ppn.0).collect();
        excluded.retain(|ppn| !also.contains(ppn));
        assert_eq!((scan.copy_of(Lpn(3)) == Ppn(3), excluded.is_empty()), (worn, worn), "{seq} {root}");
        assert_eq!(suspects(&scan).contains(&0), !worn, "{seq} {root}");
        assert_eq!(scan.next_seq(), seq.max(13) + 2);
    }
}

#[test]
fn mounts_that_do_not_mark_take_no_last_page_that_cannot_be_read_for_worn() {
    let mut flash = device();
    (0..6).for_each(|ppn| put(&mut flash, ppn, ppn, 10 + u64::from(ppn), 0));
    harm(&mut flash, 3, Blemish::DataUnreadable);
    let scan = Scan::run(&mut flash, DISK, Mounts::DoNotMark, Look::Once).unwrap();
    assert_eq!((scan.copy_of(Lpn(3)), scan.excluded()), (Ppn::NONE, [Ppn(3)].as_slice()));
}

#[test]
fn any_page_of_metadata_says_that_what_came_before_it_was_complete() {
    let mut flash = device();
    (0..2).for_each(|ppn| put(&mut flash, ppn, ppn, 10 + u64::from(ppn), 0));
    let spare =
        Spare { kind: PageKind::Validity, tag: 0, seq: 12, erase_count: 1, erased_at: 1, aux: 77, flags: Flags::NONE };
    flash.nand_mut().program_meta(Ppn(4), &[1], &spare).unwrap();
    assert!(doubtful(&scan(&mut flash)).is_empty());
    harm(&mut flash, 1, Blemish::DataUnreadable);
    assert_eq!(scan(&mut flash).0.copy_of(Lpn(1)), Ppn(1));
}

#[test]
fn a_worn_page_of_metadata_alone_in_its_block_leaves_the_block_to_metadata() {
    let mut flash = device();
    (0..3).for_each(|ppn| put(&mut flash, ppn, ppn, 10 + u64::from(ppn), 0));
    put_trims(&mut flash, 4, 0, (13, None), 0b11);
    put(&mut flash, 8, 5, 14, 0);
    harm(&mut flash, 4, Blemish::DataUnreadable);
    let (scan, _) = scan(&mut flash);
    assert_eq!(
        [0, 1, 2, 3].map(|block| scan.kind(BlockId(block))),
        [Some(PageKind::User), Some(PageKind::Translation), Some(PageKind::User), None]
    );
}

#[test]
fn the_trim_map_forgets_what_is_older_and_is_in_doubt_after_pages_of_host_data() {
    let mut flash = device();
    (0..3).for_each(|ppn| put(&mut flash, ppn, ppn, 10 + u64::from(ppn), 0));
    put_trims(&mut flash, 4, 0, (13, None), 0b11);
    put_trims(&mut flash, 5, 0, (14, None), 0b101);
    let found = scan(&mut flash);
    assert_eq!([0, 1, 2].map(|lpn| found.0.copy_of(Lpn(lpn))), [Ppn::NONE, Ppn(1), Ppn::NONE]);
    assert_eq!((doubtful(&found), found.1.pages.as_slice()), ([5].to_vec(), [Ppn(5)].as_slice()));
    assert!(found.1.forget(Lpn(2), 13) && !found.1.forget(Lpn(2), 15) && !found.1.forget(Lpn(1), 13));
    // An attempt to mount copied a page of host data, another programmed the map.
    put(&mut flash, 8, 1, 15, 11);
    put_trims(&mut flash, 12, 0, (16, Some(14)), 0b101);
    assert_eq!(doubtful(&scan(&mut flash)), [8, 12]);
    let superseded: Vec<Ppn> = {
        let (scan, trims) = scan(&mut flash);
        scan.superseded(&trims).iter().map(|(ppn, _)| *ppn).collect()
    };
    assert_eq!(superseded, [Ppn(5)]);
    // What cannot be read leaves the word to the version before it.
    harm(&mut flash, 12, Blemish::DataUnreadable);
    harm(&mut flash, 5, Blemish::DataUnreadable);
    let found = scan(&mut flash);
    assert_eq!([0, 1, 2].map(|lpn| found.0.copy_of(Lpn(lpn))), [Ppn::NONE, Ppn(8), Ppn(2)]);
    assert_eq!((doubtful(&found), suspects(&found.0)), ([8].to_vec(), [1, 3].to_vec()));
}

/// What a page alone in its block says of the time when the disk was in use makes an older one
/// worn.
#[test]
fn a_page_that_is_none_of_the_trim_map_says_nothing_if_it_cannot_be_read() {
    let newest = |aux: u32, tag: u32| {
        let mut flash = device();
        put(&mut flash, 0, 0, 10, 0);
        put(&mut flash, 4, 0, 12, 0);
        let spare =
            Spare { kind: PageKind::Translation, tag, seq: 14, erase_count: 2, erased_at: 2, aux, flags: Flags::NONE };
        flash.nand_mut().program_meta(Ppn(8), &[0], &spare).unwrap();
        for ppn in [4, 8] {
            harm(&mut flash, ppn, Blemish::DataUnreadable);
        }
        scan(&mut flash).0.copy_of(Lpn(0))
    };
    assert_eq!(newest(mark(14, None, false), 0), Ppn(4), "the disk was in use after it");
    assert_eq!(newest(mark(14, None, false), 1), Ppn(0), "outside the disk");
    assert_eq!(newest(5, 0), Ppn(0), "not of the map");
}

#[test]
fn a_page_of_the_trim_map_of_a_larger_disk_is_an_error_if_it_can_be_read() {
    for readable in [true, false] {
        let mut flash = device();
        put(&mut flash, 0, 0, 10, 0);
        put_trims(&mut flash, 4, 1, (11, None), 0);
        if !readable {
            harm(&mut flash, 4, Blemish::DataUnreadable);
        }
        let outcome = Scan::run(&mut flash, DISK, Mounts::Mark, Look::Once);
        assert_eq!(matches!(outcome, Err(FtlError::Damaged { ppn: Ppn(4), .. })), readable);
        assert!(
            Scan::run(&mut flash, DISK, Mounts::DoNotMark, Look::Once).is_ok(),
            "a translation page like any other"
        );
    }
}

#[test]
fn a_root_that_is_too_far_away_to_be_named_is_not_guessed_at() {
    let user =
        Spare { kind: PageKind::User, tag: 0, seq: 1 << 40, erase_count: 0, erased_at: 0, aux: 0, flags: Flags::NONE };
    let map = |in_use_seq| Spare { kind: PageKind::Translation, aux: mark(user.seq, in_use_seq, false), ..user };
    assert_eq!((root_of(&user), root_of(&map(None))), (user.seq, user.seq));
    for (far, root) in [(7, user.seq - 7), ((1 << 24) - 1, user.seq + 1 - (1 << 24)), (1 << 24, 0), (1 << 39, 0)] {
        let map = map(Some(user.seq - far));
        assert_eq!((root_of(&map), is_page_of_map(&map)), (root, true), "{far}");
    }
    for (far, root) in [(7, user.seq - 7), (1 << 33, 0)] {
        assert_eq!(root_of(&Spare { aux: age(user.seq, user.seq - far), ..user }), root, "{far}");
    }
    assert!(!is_page_of_map(&Spare { kind: PageKind::Translation, ..user }));
    let others = [PageKind::User, PageKind::Validity, PageKind::Checkpoint];
    assert!(others.into_iter().all(|kind| !is_page_of_map(&Spare { kind, ..map(None) })), "of another kind");
}
