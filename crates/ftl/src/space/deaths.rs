//! Pages that died, as data: a mapping and the space manager say which, the engine tells the
//! page-validity store.
//!
//! 1. Deaths are told in the order in which they are noted. One that the store could not take is
//!    told again first.
//! 2. A death leaves the list only when the store has taken it. A flush of the store meanwhile
//!    claims no more than was known when the oldest death in the list was noted
//!    ([`Deaths::since`]).
//! 3. So a translation page may be programmed before the deaths that come with it are told: a
//!    recovery that compares it with the version before finds each of them again (GeckoFTL, C.2.2).
//! 4. A block that is erased takes the deaths in it along. Told after the erase, a death would be
//!    that of the page that is programmed there next.

use alloc::vec::Vec;
use nand::{Flags, Ppn};

/// Flag of a page of host data: it was superseded by a page that was programmed to its end, or
/// trimmed (FTRM's validation flag, VF). A page without it may be dead all the same.
pub const STALE: Flags = Flags::from_bits(1);

/// What is known of a page that died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Was {
    /// It counted as a live page of host data.
    Host,
    /// As [`Was::Host`], but the store may have been told before power loss.
    HostPerhapsTold,
    /// As [`Was::HostPerhapsTold`], unless its block was erased since: nothing of the block can be
    /// read, which may be otherwise another time.
    HostPerhapsErased,
    /// A page of host data that was counted as live and that no entry came to lead to: nothing
    /// superseded it.
    Abandoned,
    /// A page of host data that never counted as live, or whose count is looked after elsewhere.
    Uncounted,
    /// A translation page. Recovery may still have to read it.
    Translation,
    /// A page of metadata that recovery has no more use for.
    Metadata,
    /// A page whose block was erased since: nothing is to be told.
    Erased,
}

/// A page that died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Death {
    /// The page.
    pub ppn: Ppn,
    /// What it was.
    pub was: Was,
}

/// Deaths of which the page-validity store has to be told, oldest first.
#[derive(Debug)]
pub struct Deaths {
    list: Vec<Death>,
    /// How many at the front were told.
    told: usize,
    since: u64,
}

impl Deaths {
    /// Room for as many deaths as may be noted before the store is told.
    #[must_use]
    pub fn with_capacity(most: u32) -> Self {
        Self { list: Vec::with_capacity(most as usize), told: 0, since: 0 }
    }

    /// Notes a death. The next program carries the sequence number `seq`.
    #[inline]
    pub fn note(&mut self, ppn: Ppn, was: Was, seq: u64) {
        if self.list.is_empty() {
            self.since = seq;
        }
        debug_assert!(self.since <= seq, "sequence numbers grow");
        self.list.push(Death { ppn, was });
    }

    /// Whether the store knows of every death.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Deaths of which the store does not know.
    #[must_use]
    pub fn untold(&self) -> &[Death] {
        &self.list[self.told..]
    }

    /// The death to tell next.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<Death> {
        self.list.get(self.told).copied()
    }

    /// The store has taken the first death. After the last, the list is to be cleared.
    #[inline]
    pub fn pop(&mut self) {
        debug_assert!(self.told < self.list.len(), "nothing was told");
        self.told += 1;
    }

    /// The sequence number that the next program was to carry when the oldest death in the list was
    /// noted; `None` if the list is empty.
    #[inline]
    #[must_use]
    pub fn since(&self) -> Option<u64> {
        (!self.list.is_empty()).then_some(self.since)
    }

    /// How many deaths were noted since the list was empty: for [`Deaths::take_back`].
    #[must_use]
    pub const fn noted(&self) -> usize {
        self.list.len()
    }

    /// Takes back all but the first so many deaths: what was to kill those pages failed.
    pub fn take_back(&mut self, noted: usize) {
        debug_assert!(self.told <= noted && noted <= self.list.len(), "a death was told that did not happen");
        self.list.truncate(noted);
        if self.told == noted {
            self.clear();
        }
    }

    /// A block was erased: what died in it needs not be told.
    pub fn erased(&mut self, is_in_block: impl Fn(Ppn) -> bool) {
        for death in self.list[self.told..].iter_mut().filter(|death| is_in_block(death.ppn)) {
            death.was = Was::Erased;
        }
    }

    /// Forgets every death.
    #[inline]
    pub fn clear(&mut self) {
        self.list.clear();
        self.told = 0;
    }

    /// Bytes of RAM held.
    #[must_use]
    pub fn ram_bytes(&self) -> u64 {
        (self.list.capacity() * size_of::<Death>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deaths_are_told_in_order_and_bound_what_a_flush_claims() {
        let mut deaths = Deaths::with_capacity(4);
        assert!(deaths.is_empty() && deaths.since().is_none() && deaths.first().is_none());
        deaths.note(Ppn(3), Was::Host, 10);
        deaths.note(Ppn(4), Was::Metadata, 12);
        assert_eq!((deaths.since(), deaths.noted()), (Some(10), 2));
        assert_eq!(deaths.first(), Some(Death { ppn: Ppn(3), was: Was::Host }));
        deaths.pop();
        assert_eq!((deaths.since(), deaths.untold().len()), (Some(10), 1));
        assert_eq!(deaths.first(), Some(Death { ppn: Ppn(4), was: Was::Metadata }));
        deaths.pop();
        assert!(deaths.first().is_none());
        deaths.clear();
        assert!(deaths.is_empty());
        deaths.note(Ppn(5), Was::Host, 20);
        assert_eq!(deaths.since(), Some(20));
    }

    #[test]
    fn an_erased_block_takes_the_deaths_in_it_along() {
        let mut deaths = Deaths::with_capacity(4);
        (1..4).for_each(|ppn| deaths.note(Ppn(ppn), Was::Host, 1));
        deaths.pop();
        deaths.erased(|ppn| ppn != Ppn(3));
        let was = |at: usize| deaths.untold()[at].was;
        assert_eq!((deaths.noted(), was(0), was(1)), (3, Was::Erased, Was::Host));
    }

    #[test]
    fn deaths_that_did_not_happen_are_taken_back() {
        let mut deaths = Deaths::with_capacity(4);
        deaths.note(Ppn(1), Was::Host, 1);
        let before = deaths.noted();
        deaths.note(Ppn(2), Was::Host, 1);
        deaths.take_back(before);
        assert_eq!(deaths.untold(), [Death { ppn: Ppn(1), was: Was::Host }]);
        deaths.take_back(0);
        assert!(deaths.is_empty() && deaths.since().is_none());
        // Those before were told: nothing is left that a flush has to wait for.
        deaths.note(Ppn(1), Was::Host, 1);
        deaths.pop();
        deaths.note(Ppn(2), Was::Host, 5);
        deaths.take_back(1);
        assert!(deaths.is_empty() && deaths.since().is_none() && deaths.first().is_none());
    }
}
