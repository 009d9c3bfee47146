//! Nodes that do not hold what was programmed there, and entries of lost pages, over a device of
//! eight blocks.

#![allow(clippy::unwrap_used)]

use super::frames::ROOT;
use super::*;
use crate::flash::Flash;
use crate::space::blocks::{Space, SpaceOptions};
use crate::space::deaths::Deaths;
use crate::victim;
use nand::{Capabilities, Dimensions, Geometry, SimNand};

const PAGE_BYTES: u32 = 512;
const PURPOSE: Purpose = Purpose::Translation;

fn core() -> Core<SimNand> {
    let geometry = Geometry::new(Dimensions {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks: 8,
        pages_per_block: 4,
        page_bytes: PAGE_BYTES,
        spare_bytes: 32,
    });
    let nand = SimNand::new(geometry.unwrap(), Capabilities::MODERN);
    let options = SpaceOptions {
        host_streams: 1,
        lanes: 1,
        metadata_lanes: 1,
        victim: victim::find("greedy").unwrap(),
        metadata_apart: false,
        has_queues: false,
        level_wear: false,
    };
    let space = Space::new(&nand, options);
    Core::new(Flash::new(nand), space, Deaths::with_capacity(8), 1)
}

fn map() -> BtreeMap {
    let options =
        BtreeOptions { cache_entries: 8, node_frames: 16, cache_leaves: false, recent_updates: 0, cache_ways: 0 };
    BtreeMap::new(100, PAGE_BYTES, 4, options)
}

/// A page with a node of a level and these items.
fn node(core: &mut Core<SimNand>, level: u32, items: &[(u32, u32)]) -> Ppn {
    let words = [level, items.len() as u32, 0, 0].into_iter().chain(items.iter().flat_map(|item| [item.0, item.1]));
    let mut page: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
    page.resize(PAGE_BYTES as usize, 0xFF);
    core.program_metadata(PURPOSE, PageKind::Translation, 0, 100, &page).unwrap()
}

fn is_damaged<T>(outcome: Result<T, FtlError>, at: Ppn) -> bool {
    matches!(outcome, Err(FtlError::Damaged { ppn, .. }) if ppn == at)
}

const SOUND: [(u32, u32); 3] = [(0, 5), (3, 12), (9, 20)];
const OUT_OF_ORDER: [(u32, u32); 3] = [(0, 5), (9, 12), (3, 20)];

#[test]
fn a_leaf_out_of_order_is_damage_to_a_check_and_to_a_tree_that_was_saved() {
    for (items, is_sound) in [(SOUND, true), (OUT_OF_ORDER, false)] {
        let (mut core, mut map) = (core(), map());
        let leaf = node(&mut core, 0, &items);
        let place = map.leaf_place(&mut core, 0).unwrap();
        map.tree.replace(place, leaf);
        match map.dump(core.flash.nand_mut()) {
            Ok(table) => assert_eq!((is_sound, table[2], table[4], table[99]), (true, Ppn(7), Ppn(13), Ppn(110))),
            outcome => assert!(!is_sound && is_damaged(outcome, leaf)),
        }
        // What was programmed since the mount is as it was.
        assert!(map.fetch(&mut core, Lpn(0)).is_ok());
        map.tree.known = false;
        let fetched = map.fetch(&mut core, Lpn(4));
        assert!(if is_sound { fetched == Ok(Ppn(13)) } else { is_damaged(fetched, leaf) }, "{items:?}");
    }
}

#[test]
fn an_inner_node_is_looked_at_whenever_it_is_read() {
    for (items, is_sound) in [(SOUND, true), (OUT_OF_ORDER, false)] {
        for known in [true, false] {
            let (mut core, mut map) = (core(), map());
            let at = node(&mut core, 1, &items);
            map.tree.known = known;
            map.tree.frames.node_mut(ROOT).level = 2;
            map.tree.replace(Place { frame: ROOT, index: 0, end: 100 }, at);
            let found = map.leaf_place(&mut core, 4).map(|place| map.tree.item(place).value);
            assert!(if is_sound { found == Ok(Ppn(12)) } else { is_damaged(found, at) }, "{items:?}, known: {known}");
        }
    }
}

/// Translation pages programmed so far.
fn programs(core: &Core<SimNand>) -> u64 {
    core.flash.counts().of(PURPOSE).programs
}

/// A trim splits at most one extent into three.
#[test]
fn a_leaf_is_split_before_a_trim_only_if_it_may_not_have_room() {
    let capacity = Node::capacity(PAGE_BYTES) as u32;
    for (items, expected) in [(capacity - 2, 1), (capacity - 1, 2)] {
        let (mut core, mut map) = (core(), map());
        // No two extents of these are one, and the last leads nowhere.
        let of_leaf = (0..items).map(|key| (key, if key + 1 < items { key * 2 % 31 } else { Ppn::NONE.0 }));
        let leaf = node(&mut core, 0, &of_leaf.collect::<Vec<_>>());
        let place = map.leaf_place(&mut core, 0).unwrap();
        map.tree.replace(place, leaf);
        let before = programs(&core);
        map.trim_leaf(&mut core, Lpn(5), 1).unwrap();
        assert!(programs(&core) >= before + expected, "{items} items");
        assert!(expected > 1 || programs(&core) == before + 1, "{items} items");
        assert_eq!([5, 6].map(|lpn| map.fetch(&mut core, Lpn(lpn)).unwrap()), [Ppn::NONE, Ppn(12)]);
    }
}

/// A leaf that is programmed later outranks every older one of its range. If it spoke for fewer
/// pages, one whose program was cut short would come back.
#[test]
fn every_later_leaf_speaks_for_what_a_battery_disowned() {
    let capacity = Node::capacity(PAGE_BYTES) as u32;
    for dirty in [Some(70), None] {
        let (mut core, mut map) = (core(), map());
        let of_leaf = (0..capacity).map(|key| (key, if key + 1 < capacity { key * 2 % 31 } else { Ppn::NONE.0 }));
        let leaf = node(&mut core, 0, &of_leaf.collect::<Vec<_>>());
        let place = map.leaf_place(&mut core, 0).unwrap();
        map.tree.replace(place, leaf);
        // One that does not fit, and stays in RAM.
        dirty.into_iter().for_each(|lpn| map.record(&mut core, Lpn(lpn), Ppn(30)).unwrap());
        let before = core.flash.counts().total().programs;
        let disowned = core.seq;
        map.disown(&mut core, PageKind::User, 5).unwrap();
        let programs = core.flash.counts().total().programs - before;
        assert_eq!(programs, if dirty.is_some() { 3 } else { 1 }, "and two halves before");
        assert!(programs <= map.disowning_pages().into());
        map.disown(&mut core, PageKind::Validity, 5).unwrap();
        assert_eq!(core.flash.counts().total().programs, before + programs, "a page of the store has no leaf");
        for _ in 0..2 {
            let place = map.leaf_place(&mut core, 5).unwrap();
            map.tree.read(&mut core, place, PURPOSE, &mut map.leaf).unwrap();
            assert!(map.leaf.speaks_for >= disowned && map.leaf.find(5) == Ppn(10));
            map.disown(&mut core, PageKind::Translation, 5).unwrap();
        }
        assert_eq!([60, 61].map(|lpn| map.fetch(&mut core, Lpn(lpn)).unwrap()), [Ppn(27), Ppn::NONE]);
        assert_eq!(map.lookup(&mut core, Lpn(70)).unwrap(), dirty.map_or(Ppn::NONE, |_| Ppn(30)));
    }
}
