//! The dirty entries of a translation page.

use super::{DIRTY, List, NONE, Slot, To, UIP, UNCERTAIN};
use crate::mapping::cached::cmt::{Before, Dirty, NOWHERE};

impl List {
    /// A dirty entry of a translation page.
    #[inline]
    pub(in super::super) fn first_dirty(&self, page: u32) -> Option<Slot> {
        let at = self.dirty_heads[page as usize].get();
        debug_assert!(at == NONE || self.is_dirty_of(at, page), "a clean entry, or one of another page than {page}");
        (at != NONE).then_some(Slot(at))
    }

    /// A dirty entry.
    #[inline]
    pub(in super::super) fn dirty_entry(&self, slot: Slot) -> Dirty {
        let entry = &self.entries[slot.0 as usize];
        let (meta, next) = (entry.meta(), entry.get(To::Dirty));
        debug_assert!(next == NONE || self.is_dirty_of(next, self.pages.of(entry.lpn())));
        Dirty {
            lpn: entry.lpn(),
            ppn: entry.ppn(),
            before: match meta & (UIP | UNCERTAIN) {
                0 => Before::Settled,
                UIP => Before::Unidentified,
                _ => Before::Uncertain,
            },
            next: if next == NONE { NOWHERE } else { next },
        }
    }

    /// Whether a place holds a dirty entry of a translation page.
    pub(super) fn is_dirty_of(&self, at: u32, page: u32) -> bool {
        self.is_dirty(Slot(at)) && self.pages.of(self.lpn(Slot(at))) == page
    }

    /// The dirty entry of the same translation page that comes after a dirty one.
    #[inline]
    pub(in super::super) fn next_dirty(&self, slot: Slot) -> Option<Slot> {
        let at = self.entries[slot.0 as usize].get(To::Dirty);
        debug_assert!(at == NONE || self.is_dirty_of(at, self.pages.of(self.lpn(slot))));
        (at != NONE).then_some(Slot(at))
    }

    /// Marks every entry of a translation page clean, as [`List::mark_clean`] one.
    #[inline]
    pub(in super::super) fn mark_all_clean(&mut self, page: u32) {
        let mut at = self.dirty_heads[page as usize].replace(NONE);
        while at != NONE {
            debug_assert!(self.is_dirty_of(at, page), "place {at} holds no dirty entry of {page}");
            self.clear(at, DIRTY | UIP | UNCERTAIN);
            at = self.entries[at as usize].get(To::Dirty);
        }
    }
}
