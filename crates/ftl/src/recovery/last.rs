//! Whether a page of which nothing can be read was the last that was programmed.
//!
//! A cut tears one page at most, and that one was programmed last: whatever else is on flash was
//! there before. Of a page that cannot be read nobody knows the sequence number, but that of every
//! page programmed later would be larger. So it was the last
//! 1. if it comes behind a readable page of its block, with sequence number a;
//! 2. if every sequence number larger than a, up to the largest found, is that of a page which can
//!    be read: there is none left for it but a larger one;
//! 3. if no page programmed later can have become unreadable too, which the caller has to see to.
//!
//! A page that was programmed later and erased since leaves a younger page of its kind, or of its
//! logical page, behind.

use nand::Ppn;

/// Sequence numbers that may lie between that of the page before and the largest. Streams take
/// turns, so there are few.
const WINDOW: usize = 4096;

/// The page that may have been the last, and what is known of the pages programmed after the one
/// before it in its block.
#[derive(Debug)]
pub(super) struct Last {
    page: Ppn,
    after: u64,
    found: [u64; WINDOW / 64],
}

impl Last {
    /// No page.
    pub(super) const fn none() -> Self {
        Self { page: Ppn::NONE, after: 0, found: [0; WINDOW / 64] }
    }

    /// A page that cannot be read comes last in its block, behind one with this sequence number.
    /// The youngest such page is kept.
    pub(super) fn propose(&mut self, page: Ppn, after: u64) {
        if after > self.after {
            *self = Self { page, after, ..Self::none() };
        }
    }

    /// A page with this sequence number was found.
    pub(super) fn note(&mut self, seq: u64) {
        if let Some(at) = seq.checked_sub(self.after + 1).filter(|at| *at < WINDOW as u64) {
            self.found[at as usize / 64] |= 1 << (at % 64);
        }
    }

    /// Whether a page was programmed after every page found, the youngest of which has this
    /// sequence number.
    pub(super) fn is(&self, page: Ppn, youngest: u64) -> bool {
        let between = youngest.saturating_sub(self.after);
        debug_assert!(!self.page.is_some() || youngest >= self.after, "a younger page was proposed than was found");
        page == self.page
            && between <= WINDOW as u64
            && (0..between).all(|at| self.found[at as usize / 64] >> (at % 64) & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_missing_could_be_that_of_the_page() {
        let mut last = Last::none();
        last.propose(Ppn(7), 100);
        assert!(last.is(Ppn(7), 100));
        assert!(!last.is(Ppn(8), 100));
        for seq in [99, 103, 101, 103] {
            last.note(seq);
        }
        assert!(last.is(Ppn(7), 101));
        assert!(!last.is(Ppn(7), 103));
        last.note(102);
        assert!(last.is(Ppn(7), 103));
    }

    #[test]
    fn the_page_behind_the_youngest_is_the_one() {
        let mut last = Last::none();
        last.propose(Ppn(7), 100);
        last.note(110);
        last.propose(Ppn(9), 109);
        last.propose(Ppn(8), 50);
        assert!(!last.is(Ppn(9), 110), "what was noted before says nothing of this page");
        last.note(110);
        assert!(last.is(Ppn(9), 110));
        assert!(!last.is(Ppn(7), 110));
    }

    #[test]
    fn too_many_pages_later_nothing_is_known() {
        let mut last = Last::none();
        last.propose(Ppn(7), 1);
        let end = 1 + WINDOW as u64;
        (2..=end + 1).for_each(|seq| last.note(seq));
        assert!(last.is(Ppn(7), end));
        assert!(!last.is(Ppn(7), end + 1));
    }
}
