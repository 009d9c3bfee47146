#![allow(clippy::unwrap_used)]

use super::*;
use nand::{Blemish, Capabilities, Dimensions, FaultPlan, Faulty, SimNand, Stamp};

pub(in crate::engine::page) fn device() -> Faulty<SimNand> {
    let geometry = Geometry::new(Dimensions {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks: 8,
        pages_per_block: 4,
        page_bytes: 512,
        spare_bytes: 32,
    });
    Faulty::new(SimNand::new(geometry.unwrap(), Capabilities::MODERN), FaultPlan::default())
}

/// What a mount knows of an empty device.
fn empty() -> Table {
    let mut flash = Flash::new(device());
    let contents = plausible::Contents::of_table(flash.nand().geometry(), 16, 1, false);
    let mut survey = Survey::run(&mut flash, 1, &[], contents, Reporting::WhenSynchronised.root()).unwrap();
    let how = How { options: PageOptions::over("table", "ram-bitmap"), battery: false, logical_pages: 16 };
    Table::new(&mut flash, &mut survey, how, 128).unwrap()
}

pub(in crate::engine::page) fn spare(kind: PageKind, seq: u64) -> Spare {
    Spare { kind, tag: 0, seq, erase_count: 0, erased_at: 0, aux: 0, flags: Flags::NONE }
}

/// A mount leaves out a page that turns out to be in doubt, and what it superseded counts. Done to
/// a page that was complete, that would return an older version.
#[test]
fn only_a_page_that_power_loss_may_have_torn_is_in_doubt() {
    let mut table = empty();
    let in_doubt = |table: &Table| (0..32).filter(|ppn| table.is_doubtful(Ppn(*ppn))).collect::<Vec<_>>();
    assert_eq!(in_doubt(&table), [0; 0]);
    table.newest = Some((Ppn(25), spare(PageKind::User, 30)));
    assert_eq!(in_doubt(&table), [25], "the page programmed last");
    let copy = FoundCopy { lpn: Lpn(3), seq: 20, ppn: Ppn(17), age: 0, torn: false, stale: false, complete: false };
    table.doubtful.push(copy);
    table.copies = [copy, FoundCopy { lpn: Lpn(4), ppn: Ppn(18), ..copy }].to_vec();
    assert_eq!(in_doubt(&table), [17, 25], "what has to be copied first");
    table.versions = [8, 9, 10].map(|ppn| (Ppn(ppn), spare(PageKind::Translation, ppn.into()))).to_vec();
    assert_eq!(in_doubt(&table), [17, 25], "none of them is known to be the last of its block");
    table.last[2] = Ppn(9);
    table.last[4] = Ppn(18);
    assert_eq!(in_doubt(&table), [9, 17, 25], "a translation page that is the last of its block");
}

/// Each copy may begin a block of its own, in a lane of its own, and one program and one erase may
/// fail.
#[test]
fn a_block_is_free_for_each_page_in_doubt_and_two_beside() {
    let mut table = empty();
    assert_eq!(table.blocks_to_copy(), 3, "for a page of metadata");
    let copy = FoundCopy { lpn: Lpn(3), seq: 20, ppn: Ppn(17), age: 0, torn: false, stale: false, complete: false };
    table.doubtful = [copy; 3].to_vec();
    assert_eq!(table.blocks_to_copy(), 5);
    table.newest = Some((Ppn(25), spare(PageKind::User, 30)));
    assert_eq!(table.blocks_to_copy(), 5, "one of those");
    table.newest = Some((Ppn(25), spare(PageKind::Translation, 30)));
    assert_eq!(table.blocks_to_copy(), 6);
}

/// Mounts that are cut short each leave a block. If all were kept to the end, none would be free.
#[test]
fn what_was_kept_in_place_of_a_page_goes_once_the_page_is_settled() {
    let mut flash = Flash::new(device());
    let mut table = empty();
    let page = [0_u8; 512];
    for (ppn, seq) in [(12, 10), (16, 11), (24, 9)] {
        flash.nand_mut().program_meta(Ppn(ppn), &page, &spare(PageKind::Translation, seq)).unwrap();
    }
    table.versions =
        [(16, 11), (12, 10), (24, 9)].map(|(ppn, seq)| (Ppn(ppn), spare(PageKind::Translation, seq))).to_vec();
    table.newest = table.versions.first().copied();
    let copy = FoundCopy { lpn: Lpn(3), seq: 9, ppn: Ppn(20), age: 0, torn: false, stale: false, complete: false };
    table.doubtful = [copy, FoundCopy { lpn: Lpn(4), seq: 8, ppn: Ppn(21), ..copy }].to_vec();
    table.kept = [(Lpn(3), Ppn(0)), (Lpn(4), Ppn(4)), (Lpn(4), Ppn(8))].to_vec();
    let mut kept = |table: &Table, complete| {
        let keep = table.keep(&mut flash, complete).unwrap();
        keep.iter().map(|block| block.0).collect::<Vec<_>>()
    };
    assert_eq!(kept(&table, 9), [0, 1, 2, 3, 6], "a version before the one before, which may be torn");
    assert_eq!(kept(&table, 11), [0, 1, 2, 3]);
    table.stranded = core::mem::take(&mut table.newest).into_iter().collect();
    assert_eq!(kept(&table, 11), [0, 1, 2, 3], "it was the last before power went once");
    table.stranded.clear();
    assert_eq!(kept(&table, 11), [0, 1, 2]);
    table.doubtful.remove(0);
    assert_eq!(kept(&table, 11), [1, 2]);
    table.doubtful.clear();
    assert_eq!(kept(&table, 11), [0; 0]);
}

#[test]
fn an_entry_leads_to_a_page_of_host_data_that_names_its_logical_page() {
    let mut nand = device();
    for ppn in [0, 1] {
        let stamp = Stamp { lpn: Lpn(0), version: 1 };
        nand.program(Ppn(ppn), &stamp, &spare(PageKind::User, u64::from(ppn) + 1)).unwrap();
    }
    nand.program_meta(Ppn(4), &[], &spare(PageKind::Translation, 3)).unwrap();
    nand.damage(Ppn(1), Blemish::Unreadable);
    let mut flash = Flash::new(nand);
    let mut holds = |ppn, lpn| super::holds(&mut flash, Ppn(ppn), Lpn(lpn)).unwrap();
    assert!(holds(0, 0));
    assert!(!holds(0, 1) && !holds(4, 0), "it holds something else");
    assert!(!holds(1, 0) && !holds(2, 0), "nothing says what it holds");
}

/// A torn page may show a tag that no page of the disk has. One that can be read is of another
/// disk.
#[test]
fn a_tag_outside_the_disk_is_torn_unless_its_page_can_be_read() {
    let copies = |pages: &[(u32, bool)]| {
        let mut flash = Flash::new(device());
        for (ppn, (tag, reads)) in (0..).map(Ppn).zip(pages) {
            let spare = Spare { tag: *tag, ..spare(PageKind::User, 10 + u64::from(ppn.0)) };
            flash.nand_mut().program(ppn, &Stamp::UNWRITTEN, &spare).unwrap();
            if !reads {
                flash.nand_mut().damage(ppn, Blemish::DataUnreadable);
            }
        }
        let contents = plausible::Contents::of_table(flash.nand().geometry(), 16, 1, false);
        let mut survey = Survey::run(&mut flash, 1, &[], contents, Reporting::WhenSynchronised.root())?;
        let how = How { options: PageOptions::over("table", "ram-bitmap"), battery: false, logical_pages: 16 };
        let mut table = Table::new(&mut flash, &mut survey, how, 128)?;
        table.find_copies(&mut flash, &mut survey, None, &[])?;
        Ok::<_, FtlError>(table.copies.iter().map(|copy| (copy.lpn.0, copy.torn)).collect::<Vec<_>>())
    };
    assert_eq!(copies(&[(16, false)]), Ok([].to_vec()));
    assert_eq!(copies(&[(3, true), (u32::MAX, false)]), Ok([(3, false)].to_vec()));
    assert_eq!(copies(&[(16, false), (3, true), (4, true)]), Ok([(3, false), (4, false)].to_vec()));
    for pages in [&[(16, true)][..], &[(3, true), (16, true)], &[(16, true), (3, true)]] {
        assert!(matches!(copies(pages), Err(FtlError::Damaged { .. })), "{pages:?}");
    }
}

#[test]
fn an_entry_to_a_block_erased_since_is_not_believed() {
    let mut flash = Flash::new(device());
    for (ppn, seq) in [(0, 30), (1, 31), (4, 10), (5, 11)] {
        flash.nand_mut().program(Ppn(ppn), &Stamp::UNWRITTEN, &spare(PageKind::User, seq)).unwrap();
    }
    let contents = plausible::Contents::of_table(flash.nand().geometry(), 16, 1, false);
    let survey = Survey::run(&mut flash, 1, &[], contents, Reporting::WhenSynchronised.root()).unwrap();
    let believed = |written| [0, 1, 2].map(|block| is_older(&survey, BlockId(block), written));
    assert_eq!(believed(20), [false, true, false]);
    assert_eq!(believed(40), [true, true, false]);
}

/// What a mount programs before it has settled what is in doubt is no younger than the page that
/// was programmed last, and knows nothing of that.
#[test]
fn a_translation_page_speaks_for_pages_that_are_older_and_no_others() {
    let changes = |written: u64| {
        let mut flash = Flash::new(device());
        flash.nand_mut().program(Ppn(0), &Stamp::UNWRITTEN, &Spare { tag: 3, ..spare(PageKind::User, 20) }).unwrap();
        let table = Spare { aux: 30 - written as u32, ..spare(PageKind::Translation, 30) };
        flash.nand_mut().program_meta(Ppn(4), &[0xFF; 512], &table).unwrap();
        let contents = plausible::Contents::of_table(flash.nand().geometry(), 16, 1, false);
        let mut survey = Survey::run(&mut flash, 1, &[], contents, Reporting::AtOnce.root()).unwrap();
        let how = How { options: PageOptions::over("table", "ram-bitmap"), battery: true, logical_pages: 16 };
        let mut table = Table::new(&mut flash, &mut survey, how, 128).unwrap();
        table.choose(Reporting::AtOnce, |_| true);
        table.find_copies(&mut flash, &mut survey, None, &[]).unwrap();
        table.find_newest(&survey, &[]);
        assert!(table.find_live(&mut flash, &survey, true).unwrap().is_some());
        table.changes.into_iter().map(|(lpn, ppn)| (lpn.0, ppn.0)).collect::<Vec<_>>()
    };
    assert_eq!(changes(21), []);
    assert_eq!(changes(20), [(3, 0)]);
    assert_eq!(changes(19), [(3, 0)]);
}

/// Else the entry would take a page of another logical page, which then has none.
#[test]
fn an_entry_to_a_block_erased_since_makes_a_mount_check_every_entry() {
    let found = |host: u64| {
        let mut flash = Flash::new(device());
        let of_another = Spare { tag: 5, ..spare(PageKind::User, host) };
        flash.nand_mut().program(Ppn(0), &Stamp::UNWRITTEN, &of_another).unwrap();
        let mut page = [0xFF; 512];
        page[4 * 3..4 * 4].fill(0);
        flash.nand_mut().program_meta(Ppn(4), &page, &spare(PageKind::Translation, 30)).unwrap();
        let contents = plausible::Contents::of_table(flash.nand().geometry(), 16, 1, false);
        let mut survey = Survey::run(&mut flash, 1, &[], contents, Reporting::WhenSynchronised.root()).unwrap();
        let how = How { options: PageOptions::over("table", "ram-bitmap"), battery: false, logical_pages: 16 };
        let mut table = Table::new(&mut flash, &mut survey, how, 128).unwrap();
        table.choose(Reporting::WhenSynchronised, |_| true);
        table.find_copies(&mut flash, &mut survey, None, &[]).unwrap();
        table.whole = false;
        table.find_live(&mut flash, &survey, false).unwrap().is_some()
    };
    assert!(found(20), "the block was programmed before the translation page");
    assert!(!found(40), "the block was erased after the translation page was written");
}

#[test]
fn a_translation_page_that_cannot_be_read_says_nothing_of_entries_in_ram() {
    let mut flash = Flash::new(device());
    for (ppn, aux) in [(4, 1), (5, 900), (6, 2)] {
        let spare = Spare { aux, ..spare(PageKind::Translation, ppn) };
        flash.nand_mut().program_meta(Ppn(ppn as u32), &[0xFF; 512], &spare).unwrap();
    }
    flash.nand_mut().damage(Ppn(5), Blemish::DataUnreadable);
    let contents = plausible::Contents::of_table(flash.nand().geometry(), 16, 1, false);
    let mut survey = Survey::run(&mut flash, 1, &[], contents, Reporting::WhenSynchronised.root()).unwrap();
    let how = How { options: PageOptions::over("table", "ram-bitmap"), battery: false, logical_pages: 16 };
    let mut mapping = CachedMap::new(16, 512, CachedOptions::new(&Config::new(16)).lazy());
    let (mut newest, mut steps) = (None, Steps::begin(&flash));
    let found = Known::find(&mut flash, &mut survey, how, &mut mapping, &[], &mut newest, &mut steps).unwrap();
    let said = Reporting::WhenSynchronised.bound_of(&Spare { aux: 2, ..spare(PageKind::Translation, 6) });
    assert_eq!(found.table.bound, said);
}
