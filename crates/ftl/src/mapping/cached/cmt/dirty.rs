//! The dirty entries of a translation page.

use super::{Cmt, DIRTY, NONE, Slot, To, UIP, UNCERTAIN};

impl Cmt {
    /// A dirty entry of a translation page.
    #[inline]
    pub(in crate::mapping) fn first_dirty(&self, page: u32) -> Option<Slot> {
        let at = self.dirty_heads[page as usize].get();
        debug_assert!(at == NONE || self.is_dirty_of(at, page), "a clean entry, or one of another page than {page}");
        (at != NONE).then_some(Slot(at))
    }

    /// Whether a place holds a dirty entry of a translation page.
    pub(super) fn is_dirty_of(&self, at: u32, page: u32) -> bool {
        self.is_dirty(Slot(at)) && self.translation_page(self.lpn(Slot(at))) == page
    }

    /// The dirty entry of the same translation page that comes after a dirty one.
    #[inline]
    pub(in crate::mapping) fn next_dirty(&self, slot: Slot) -> Option<Slot> {
        let at = self.entries[slot.0 as usize].get(To::Dirty);
        debug_assert!(at == NONE || self.is_dirty_of(at, self.translation_page(self.lpn(slot))));
        (at != NONE).then_some(Slot(at))
    }

    /// Marks every entry of a translation page clean, as [`Cmt::mark_clean`] one.
    #[inline]
    pub(in crate::mapping) fn mark_all_clean(&mut self, page: u32) {
        let mut at = self.dirty_heads[page as usize].replace(NONE);
        while at != NONE {
            debug_assert!(self.is_dirty_of(at, page), "place {at} holds no dirty entry of {page}");
            self.clear(at, DIRTY | UIP | UNCERTAIN);
            at = self.entries[at as usize].get(To::Dirty);
        }
    }
}
