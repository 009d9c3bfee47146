//! The pages written last, for a table that bounds how old a dirty entry may grow.
//!
//! LazyFTL's update and cold block areas (Ma, Feng and Li, SIGMOD 2011) as one ring of pages in the
//! order they were programmed: a page enters when the host writes it or a collector moves it, and
//! when it leaves, its entry has to be in flash. So a ring of n pages bounds the dirty entries to
//! n, and recovery has to look at the n pages programmed last.

use alloc::vec::Vec;
use nand::{Lpn, Ppn};

/// A ring of the mapping updates made last.
#[derive(Clone, Debug)]
pub(in crate::mapping) struct Recent {
    ring: Vec<(Lpn, Ppn)>,
    next: usize,
    left: (Lpn, Ppn),
}

const NOTHING: (Lpn, Ppn) = (Lpn::NONE, Ppn::NONE);

impl Recent {
    /// A ring of so many updates; with 0 there is none.
    pub(in crate::mapping) fn new(updates: u32) -> Self {
        Self { ring: alloc::vec![NOTHING; updates as usize], next: 0, left: NOTHING }
    }

    /// Takes in an update in place of the oldest; whether that was the last of a lap.
    #[inline]
    pub(in crate::mapping) fn push(&mut self, lpn: Lpn, ppn: Ppn) -> bool {
        let Some(place) = self.ring.get_mut(self.next) else { return false };
        self.left = core::mem::replace(place, (lpn, ppn));
        self.next += 1;
        let lap = self.next == self.ring.len();
        if lap {
            self.next = 0;
        }
        lap
    }

    /// The update that left last.
    #[inline]
    pub(in crate::mapping) const fn left(&self) -> (Lpn, Ppn) {
        self.left
    }

    /// Forgets every update.
    pub(in crate::mapping) fn clear(&mut self) {
        self.ring.fill(NOTHING);
        (self.next, self.left) = (0, NOTHING);
    }

    /// Updates that it holds when it is full.
    pub(in crate::mapping) fn len(&self) -> u32 {
        self.ring.len() as u32
    }

    /// Whether there is no ring.
    #[inline]
    pub(in crate::mapping) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Bytes of RAM held.
    pub(in crate::mapping) fn ram_bytes(&self) -> u64 {
        (self.ring.capacity() * size_of::<(Lpn, Ppn)>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_leave_in_order_and_never_from_an_empty_ring() {
        let mut ring = Recent::new(2);
        assert!(!ring.push(Lpn(1), Ppn(10)) && ring.left() == NOTHING);
        assert!(ring.push(Lpn(2), Ppn(20)) && ring.left() == NOTHING);
        assert!(!ring.push(Lpn(1), Ppn(11)) && ring.left() == (Lpn(1), Ppn(10)));
        assert!(ring.push(Lpn(3), Ppn(30)) && ring.left() == (Lpn(2), Ppn(20)));
        ring.clear();
        assert!(!ring.push(Lpn(4), Ppn(40)) && ring.left() == NOTHING);
        let mut none = Recent::new(0);
        assert!(none.is_empty() && !none.push(Lpn(1), Ppn(10)));
    }
}
