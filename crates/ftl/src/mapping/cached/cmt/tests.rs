//! What the cache keeps in order, against a model of it.

use super::*;
use alloc::collections::VecDeque;
use proptest::prelude::*;

fn list(entries: u32, translation_pages: u32, entries_per_page: u32, protected_percent: u32) -> Cmt {
    Cmt::new(Asked { entries, protected_percent, ways: 0 }, translation_pages, entries_per_page)
}

/// Both segments, the newest first.
#[derive(Default)]
struct Model {
    protected: VecDeque<u32>,
    probation: VecDeque<u32>,
}

impl Model {
    fn touch(&mut self, lpn: u32, protectable: usize) {
        self.protected.retain(|other| *other != lpn);
        self.probation.retain(|other| *other != lpn);
        let segment = if protectable > 0 { &mut self.protected } else { &mut self.probation };
        segment.push_front(lpn);
        if self.protected.len() > protectable {
            self.probation.push_front(self.protected.pop_back().unwrap());
        }
    }

    fn order(&self) -> impl Iterator<Item = u32> {
        self.probation.iter().rev().chain(self.protected.iter().rev()).copied()
    }
}

/// How full a cache says that it is.
#[derive(Default)]
struct Shown(Option<(u32, u32, u32)>);

impl Inspector for Shown {
    fn level(&mut self, view: LevelView) {
        self.0 = Some((view.entries, view.capacity, view.dirty));
    }
}

#[test]
fn a_cache_shows_how_full_it_is() {
    let shown = |cmt: &Cmt| {
        let mut shown = Shown::default();
        cmt.inspect(&mut shown);
        shown.0
    };
    let mut cmt = list(8, 4, 128, 0);
    assert_eq!(shown(&cmt), Some((0, 8, 0)));
    let slots = [3, 4, 200].map(|lpn| cmt.insert(Lpn(lpn), Ppn(lpn)));
    cmt.mark_dirty(slots[1], false);
    assert_eq!(shown(&cmt), Some((3, 8, 1)));
}

proptest! {
    #[test]
    fn entries_leave_in_the_order_of_two_queues(
        capacity in 2_u32..12,
        percent in 0_u32..=100,
        uses in prop::collection::vec((0_u32..24, any::<bool>()), 1..200),
    ) {
        let mut cmt = list(capacity, 3, 8, percent);
        let protectable = (capacity * percent / 100).min(capacity - 1) as usize;
        let mut model = Model::default();
        for (lpn, dirty) in uses {
            if let Some(slot) = cmt.find(Lpn(lpn)) {
                cmt.touch(slot);
                model.touch(lpn, protectable);
                if dirty && !cmt.is_dirty(slot) { cmt.mark_dirty(slot, true) } else if cmt.is_dirty(slot) { cmt.mark_clean(slot) }
            } else {
                let came = cmt.insert(Lpn(lpn), Ppn(lpn));
                model.probation.push_front(lpn);
                if cmt.is_overfull() {
                    let leaves = cmt.leaving().unwrap();
                    prop_assert_ne!(leaves, came);
                    prop_assert_eq!(model.probation.pop_back(), Some(cmt.lpn(leaves).0));
                    if cmt.is_dirty(leaves) {
                        cmt.mark_clean(leaves);
                    }
                    cmt.remove(leaves);
                }
            }
            let order = cmt.slots().map(|slot| cmt.lpn(slot).0);
            prop_assert!(order.eq(model.order()), "{:?} {:?}", model.protected, model.probation);
            for page in 0..3 {
                let listed = core::iter::successors(cmt.first_dirty(page..page + 1), |slot| cmt.next_dirty(*slot, page..page + 1));
                let mut listed: Vec<u32> = listed.map(|slot| cmt.lpn(slot).0).collect();
                listed.sort_unstable();
                let dirty = |lpn: &u32| cmt.find(Lpn(*lpn)).is_some_and(|slot| cmt.is_dirty(slot));
                prop_assert!((8 * page..8 * page + 8).filter(dirty).eq(listed), "page {}", page);
            }
        }
    }
}

#[test]
fn an_entry_is_stale_from_two_epochs_after_its_update_on() {
    let mut cmt = list(4, 1, 8, 0);
    let [old, updated] = [0, 1].map(|lpn| cmt.insert(Lpn(lpn), Ppn(lpn)));
    cmt.mark_dirty(old, true);
    for epoch in 0..40 {
        cmt.mark_dirty(updated, false);
        assert_eq!(cmt.next_stale(0), (epoch % 16 >= 2).then_some(old), "epoch {epoch}");
        assert_eq!(cmt.next_stale(1), None);
        cmt.advance_epoch();
        if epoch % 16 == 15 {
            cmt.mark_dirty(old, true);
        }
    }
}
