//! Sets against a model that has each set as a queue.

use super::*;
use crate::mapping::cached::cmt::{Asked, Cmt};
use alloc::collections::{BTreeMap, VecDeque};
use proptest::prelude::*;

/// What is known of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    ppn: u32,
    /// When it was updated last, and whether its before-image is unknown, if it is dirty.
    dirty: Option<(u32, bool)>,
}

/// Each set, the least recently used first.
#[derive(Debug)]
struct Model {
    ways: usize,
    sets: BTreeMap<u32, VecDeque<(u32, Known)>>,
    epoch: u32,
}

impl Model {
    fn known(&mut self, set: u32, lpn: u32) -> Option<&mut Known> {
        self.sets.entry(set).or_default().iter_mut().find(|(other, _)| *other == lpn).map(|(_, known)| known)
    }

    fn touch(&mut self, set: u32, lpn: u32) {
        let queue = self.sets.entry(set).or_default();
        let at = queue.iter().position(|(other, _)| *other == lpn).unwrap();
        let entry = queue.remove(at).unwrap();
        queue.push_back(entry);
    }

    fn all(&self) -> impl Iterator<Item = (u32, Known)> {
        self.sets.values().flatten().copied()
    }
}

/// What is done with a logical page.
#[derive(Clone, Copy, Debug)]
enum Step {
    Use,
    Update { uip: bool },
    Recover,
    Settle,
    Synchronise,
    NextEpoch,
}

fn steps() -> impl Strategy<Value = Vec<(u32, Step)>> {
    let step = prop_oneof![
        4 => Just(Step::Use),
        4 => any::<bool>().prop_map(|uip| Step::Update { uip }),
        1 => Just(Step::Recover),
        1 => Just(Step::Settle),
        1 => Just(Step::Synchronise),
        1 => Just(Step::NextEpoch),
    ];
    prop::collection::vec((0_u32..90, step), 1..300)
}

/// The entry of a logical page, after it came if it was not there. A dirty entry that leaves is
/// synchronised with all of its translation page.
fn come(cmt: &mut Cmt, model: &mut Model, set: u32, lpn: u32, ppn: u32) {
    if let Some(slot) = cmt.find(Lpn(lpn)) {
        cmt.touch(slot);
        model.touch(set, lpn);
        return;
    }
    let queue = model.sets.entry(set).or_default();
    let leaves = (queue.len() == model.ways).then(|| queue[0]);
    queue.push_back((lpn, Known { ppn, dirty: None }));
    cmt.insert(Lpn(lpn), Ppn(ppn));
    assert_eq!(cmt.is_overfull(), leaves.is_some());
    let Some((old, known)) = leaves else { return };
    let slot = cmt.leaving().unwrap();
    assert_eq!((cmt.lpn(slot).0, cmt.is_dirty(slot)), (old, known.dirty.is_some()), "the wrong one leaves");
    if known.dirty.is_some() {
        assert_eq!((cmt.drop_clean(), cmt.is_overfull()), (None, true), "a dirty entry was dropped");
        cmt.mark_all_clean(cmt.translation_page(Lpn(old)));
        clean(model, cmt.translation_page(Lpn(old)), cmt);
        assert_eq!(cmt.leaving(), Some(slot));
        assert_eq!(cmt.remove(slot), Some(slot));
    } else {
        assert_eq!(cmt.drop_clean(), Some(slot));
    }
    assert_eq!((cmt.find(Lpn(lpn)), cmt.find(Lpn(old))), (Some(slot), None), "the new one takes over the place");
    model.sets.get_mut(&set).unwrap().pop_front();
}

fn is_uncertain(cmt: &Cmt, slot: Slot) -> bool {
    cmt.is_dirty(slot) && cmt.dirty_entry(slot, cmt.translation_page(cmt.lpn(slot))).before == Before::Uncertain
}

fn clean(model: &mut Model, page: u32, cmt: &Cmt) {
    let of_page = model.sets.values_mut().flatten().filter(|(lpn, _)| cmt.translation_page(Lpn(*lpn)) == page);
    of_page.for_each(|(_, known)| known.dirty = None);
}

/// Compares everything that can be asked.
fn compare(cmt: &Cmt, model: &Model, translation_pages: u32) {
    let by_order: Vec<u32> = cmt.slots().map(|slot| cmt.lpn(slot).0).collect();
    assert!(by_order.iter().copied().eq(model.all().map(|(lpn, _)| lpn)), "{by_order:?} {model:?}");
    for (lpn, known) in model.all() {
        let slot = cmt.find(Lpn(lpn)).unwrap();
        assert_eq!((cmt.lpn(slot), cmt.ppn(slot)), (Lpn(lpn), Ppn(known.ppn)));
        assert_eq!((cmt.is_dirty(slot), cmt.is_uip(slot)), (known.dirty.is_some(), known.dirty.is_some_and(|d| d.1)));
    }
    for first in 0..translation_pages {
        for pages in [first..first + 1, first..translation_pages.min(first + 3), 0..translation_pages] {
            let dirty = core::iter::successors(cmt.first_dirty(pages.clone()), |at| cmt.next_dirty(*at, pages.clone()));
            let mut dirty: Vec<u32> = dirty.map(|slot| cmt.lpn(slot).0).collect();
            dirty.sort_unstable();
            let is_of = |lpn: u32| pages.contains(&cmt.translation_page(Lpn(lpn)));
            let expected = model.all().filter(|(lpn, known)| known.dirty.is_some() && is_of(*lpn));
            let mut expected: Vec<u32> = expected.map(|(lpn, _)| lpn).collect();
            expected.sort_unstable();
            assert_eq!(dirty, expected, "{pages:?}");
        }
    }
    let stale = core::iter::successors(cmt.next_stale(0), |at| cmt.next_stale(at.0 + 1)).map(|slot| cmt.lpn(slot).0);
    let mut stale: Vec<u32> = stale.collect();
    stale.sort_unstable();
    let old = |known: &Known| known.dirty.is_some_and(|(epoch, _)| model.epoch - epoch >= 2);
    let mut expected: Vec<u32> = model.all().filter(|(_, known)| old(known)).map(|(lpn, _)| lpn).collect();
    expected.sort_unstable();
    assert_eq!(stale, expected, "stale");
    assert_eq!(cmt.oldest_dirty().is_some(), model.all().any(|(_, known)| known.dirty.is_some()));
}

proptest! {
    #[test]
    fn sets_are_queues(
        (entries, ways) in (2_u32..40, 2_u32..=16),
        entries_per_page in prop::sample::select(alloc::vec![4_u32, 8, 13, 16, 40]),
        steps in steps(),
    ) {
        let translation_pages = 90_u32.div_ceil(entries_per_page);
        let mut cmt = Cmt::new(Asked { entries, protected_percent: 0, ways }, translation_pages, entries_per_page);
        prop_assert!(cmt.refusal().is_none());
        let pages = Pages::new(entries_per_page);
        let of = Sets::places(entries, ways, pages);
        prop_assert!(cmt.capacity() <= entries && cmt.capacity() > entries - ways.min(entries));
        let mut model = Model { ways: ways.min(entries) as usize, sets: BTreeMap::new(), epoch: 0 };
        for (at, (lpn, step)) in (1..).zip(steps) {
            let (set, page) = (of.locate(Lpn(lpn)).0, cmt.translation_page(Lpn(lpn)));
            match step {
                Step::NextEpoch => {
                    // A checkpoint leaves nothing that is older.
                    while let Some(slot) = cmt.next_stale(0) {
                        let page = cmt.translation_page(cmt.lpn(slot));
                        cmt.mark_all_clean(page);
                        clean(&mut model, page, &cmt);
                    }
                    cmt.advance_epoch();
                    model.epoch += 1;
                }
                Step::Synchronise => {
                    cmt.mark_all_clean(page);
                    clean(&mut model, page, &cmt);
                }
                Step::Use => come(&mut cmt, &mut model, set, lpn, at),
                Step::Update { uip } => {
                    come(&mut cmt, &mut model, set, lpn, at);
                    let slot = cmt.find(Lpn(lpn)).unwrap();
                    cmt.set_ppn(slot, Ppn(at));
                    cmt.mark_dirty(slot, uip);
                    let epoch = model.epoch;
                    let known = model.known(set, lpn).unwrap();
                    let was_uip = known.dirty.is_some_and(|dirty| dirty.1);
                    *known = Known { ppn: at, dirty: Some((epoch, uip || was_uip)) };
                    prop_assert_eq!(cmt.is_uip(slot), uip || was_uip);
                    if at % 3 == 0 {
                        cmt.clear_uip(slot);
                        prop_assert!(cmt.is_uip(slot) == is_uncertain(&cmt, slot));
                        known.dirty = Some((epoch, is_uncertain(&cmt, slot)));
                    }
                }
                Step::Recover => {
                    come(&mut cmt, &mut model, set, lpn, at);
                    let slot = cmt.find(Lpn(lpn)).unwrap();
                    cmt.mark_recovered(slot);
                    prop_assert!(is_uncertain(&cmt, slot));
                    let epoch = model.epoch;
                    model.known(set, lpn).unwrap().dirty = Some((epoch, true));
                }
                Step::Settle => {
                    let slot = cmt.find(Lpn(lpn)).filter(|slot| cmt.is_dirty(*slot));
                    if let (Some(slot), Some(known)) = (slot, model.known(set, lpn)) {
                        cmt.settle_before_image(slot);
                        known.dirty = known.dirty.map(|dirty| (dirty.0, false));
                        prop_assert!(cmt.is_dirty(slot) && !cmt.is_uip(slot));
                    }
                }
            }
            compare(&cmt, &model, translation_pages);
        }
    }

    #[test]
    fn a_set_and_a_tag_are_those_of_one_logical_page(
        (entries, ways) in (2_u32..3000, 2_u32..=16),
        entries_per_page in 1_u32..2000,
        lpns in prop::collection::vec(0_u32..2_000_000, 1..50),
    ) {
        let pages = Pages::new(entries_per_page);
        let of = Sets::places(entries, ways, pages);
        for lpn in lpns {
            if of.largest_tag(lpn / entries_per_page + 1) < u64::from(VACANT) {
                let (set, tag) = of.locate(Lpn(lpn));
                prop_assert!(set < of.sets && of.lpn(set, tag) == Lpn(lpn), "set {} tag {}", set, tag);
            }
        }
    }
}

#[test]
fn consecutive_entries_are_in_as_many_sets_as_there_are() {
    let pages = Pages::new(1024);
    let of = Sets::places(16_384, 16, pages);
    let counts = |lpns: &mut dyn Iterator<Item = u32>| {
        let mut count = alloc::vec![0_u32; of.sets as usize];
        lpns.for_each(|lpn| count[of.locate(Lpn(lpn)).0 as usize] += 1);
        count
    };
    for first in [0, 1024, 123 * 1024] {
        assert!(counts(&mut (first..first + 16_384)).iter().all(|count| *count == 16), "from {first}");
    }
    let strided = counts(&mut (0..1024).map(|at| at * 64));
    assert!(strided.iter().all(|count| *count <= 4), "{strided:?}");
}

#[test]
fn what_is_not_possible_is_refused_with_its_reason() {
    let refusal = |entries, protected_percent, ways, translation_pages| {
        Cmt::new(Asked { entries, protected_percent, ways }, translation_pages, 1024).refusal().unwrap_or_default()
    };
    assert_eq!(refusal(1024, 0, 16, 4095), "");
    assert!(refusal(1024, 0, 16, 4096).contains("tags of two bytes"), "{}", refusal(1024, 0, 16, 4096));
    assert!(refusal(1024, 50, 16, 4).contains("no protected segment"));
    assert!(refusal(1024, 0, 1, 4).contains("from 2 to 16") && refusal(1024, 0, 17, 4).contains("from 2 to 16"));
}

#[test]
fn entries_have_room_as_far_as_their_sets_have() {
    let cmt = Cmt::new(Asked { entries: 8, protected_percent: 0, ways: 4 }, 8, 8);
    let lpns = |of: &[u32]| cmt.takes(of.iter().copied().map(Lpn));
    // Two sets, so that a page has both, and its entries 0, 3, 4 and 7 are in the first.
    assert!(lpns(&[0, 3, 4, 7, 1, 2, 5, 6]) && lpns(&[0, 3, 8, 11]) && !lpns(&[0, 3, 4, 7, 8]));
    assert!(cmt.has_room(Lpn(0)) && cmt.room() == 8);
    assert_eq!([Lpn::NONE, Lpn(64), Lpn(1 << 31)].map(|lpn| cmt.find(lpn)), [None; 3], "there are 64 logical pages");
}

/// Cached entries, found of which each is seven bytes, without anything that leads to them.
#[test]
fn an_entry_takes_seven_bytes() {
    let cmt = Cmt::new(Asked { entries: 1 << 14, protected_percent: 0, ways: 16 }, 11_468, 1024);
    let (entries, index) = cmt.ram_bytes();
    assert_eq!((cmt.capacity(), entries, index), (1 << 14, 7 * (1 << 14) + 5, 0));
}
