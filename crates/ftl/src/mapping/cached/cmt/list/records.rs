//! The memory of the cached mapping table: links of three bytes, entries of 21.
//!
//! Every field is an array of bytes, so that an entry has no padding.

use nand::{Lpn, Ppn};

/// A place, or [`NONE`], in three bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link([u8; 3]);

/// No place.
pub(super) const NONE: u32 = 0xFF_FFFF;

impl Link {
    pub(super) const NONE: Self = Self([0xFF; 3]);

    #[inline]
    pub(super) const fn to(place: u32) -> Self {
        debug_assert!(place <= NONE, "more places than links can lead to");
        let [low, middle, high, _] = place.to_le_bytes();
        Self([low, middle, high])
    }

    #[inline]
    pub(super) const fn get(self) -> u32 {
        let Self([low, middle, high]) = self;
        u32::from_le_bytes([low, middle, high, 0])
    }

    /// Sets the link, and gives the place that it led to.
    #[inline]
    pub(super) const fn replace(&mut self, place: u32) -> u32 {
        core::mem::replace(self, Self::to(place)).get()
    }
}

/// A link of an entry to another.
#[derive(Clone, Copy, Debug)]
pub(super) enum To {
    /// The entry used after this one.
    Newer,
    /// The entry used before this one.
    Older,
    /// Next in the same hash bucket.
    Chain,
    /// Next of the dirty entries of the same translation page.
    Dirty,
}

/// The flags follow the links, so that each link can be read with the byte after it, at once.
const META: usize = 12;

/// An entry of the cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    lpn: [u8; 4],
    ppn: [u8; 4],
    rest: [u8; META + 1],
}

impl Entry {
    /// A place that holds none.
    pub(super) const VACANT: Self =
        Self { lpn: Lpn::NONE.0.to_le_bytes(), ppn: Ppn::NONE.0.to_le_bytes(), rest: [0xFF; META + 1] };

    #[inline]
    pub(super) const fn lpn(&self) -> Lpn {
        Lpn(u32::from_le_bytes(self.lpn))
    }

    #[inline]
    pub(super) const fn set_lpn(&mut self, lpn: Lpn) {
        self.lpn = lpn.0.to_le_bytes();
    }

    #[inline]
    pub(super) const fn ppn(&self) -> Ppn {
        Ppn(u32::from_le_bytes(self.ppn))
    }

    #[inline]
    pub(super) const fn set_ppn(&mut self, ppn: Ppn) {
        self.ppn = ppn.0.to_le_bytes();
    }

    /// Flags, and the epoch of the last update.
    #[inline]
    pub(super) const fn meta(&self) -> u8 {
        self.rest[META]
    }

    #[inline]
    pub(super) const fn set_meta(&mut self, meta: u8) {
        self.rest[META] = meta;
    }

    #[inline]
    pub(super) const fn get(&self, link: To) -> u32 {
        let at = 3 * link as usize;
        u32::from_le_bytes([self.rest[at], self.rest[at + 1], self.rest[at + 2], self.rest[at + 3]]) & NONE
    }

    #[inline]
    pub(super) const fn set(&mut self, link: To, place: u32) {
        let (at, Link(bytes)) = (3 * link as usize, Link::to(place));
        (self.rest[at], self.rest[at + 1], self.rest[at + 2]) = (bytes[0], bytes[1], bytes[2]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_no_padding() {
        assert_eq!((size_of::<Entry>(), size_of::<Link>()), (21, 3));
    }

    #[test]
    fn every_field_keeps_its_value_beside_the_others() {
        let links = [To::Newer, To::Older, To::Chain, To::Dirty];
        let mut entry = Entry::VACANT;
        assert!(links.iter().all(|link| entry.get(*link) == NONE) && !entry.lpn().is_some());
        entry.set_lpn(Lpn(0x0102_0304));
        entry.set_ppn(Ppn(0x0506_0708));
        entry.set_meta(0x9A);
        (links.into_iter().zip(0..)).for_each(|(link, at)| entry.set(link, 0xFF_FFF0 + at));
        for (link, at) in links.into_iter().zip(0..) {
            assert_eq!(entry.get(link), 0xFF_FFF0 + at, "{link:?}");
            entry.set(link, 0);
            assert_eq!(entry.get(link), 0);
        }
        assert_eq!((entry.lpn(), entry.ppn(), entry.meta()), (Lpn(0x0102_0304), Ppn(0x0506_0708), 0x9A));
    }

    #[test]
    fn a_link_leads_where_it_was_set_to() {
        let mut link = Link::NONE;
        for (place, was) in [(0, NONE), (0x12_3456, 0), (NONE - 1, 0x12_3456), (NONE, NONE - 1)] {
            assert_eq!((link.replace(place), link.get()), (was, place));
        }
    }
}
