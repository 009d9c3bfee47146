//! What a host will write, for references that know it. A simulation finds it out in a pass over
//! the requests before they are done.

use alloc::vec;
use alloc::vec::Vec;
use nand::Lpn;

/// Never, as far as is known.
pub(super) const NEVER: u32 = u32::MAX;

/// The pages that a host is about to write, each by the number of its write from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Future {
    /// The first write of each logical page; [`NEVER`] if there is none.
    first: Vec<u32>,
    /// Of each write, the next of the same page.
    next: Vec<u32>,
}

impl Future {
    /// The future of a disk of so many logical pages that the host will write in this order. Writes
    /// beyond 2^32 - 2 are left out.
    #[must_use]
    pub fn of(logical_pages: u32, writes: impl Iterator<Item = u32>) -> Self {
        let mut first = vec![NEVER; logical_pages as usize];
        let mut last = first.clone();
        let mut next = Vec::new();
        for (at, lpn) in (0..NEVER).zip(writes) {
            next.push(NEVER);
            match core::mem::replace(&mut last[lpn as usize], at) {
                NEVER => first[lpn as usize] = at,
                before => next[before as usize] = at,
            }
        }
        Self { first, next }
    }

    /// When each logical page is written first.
    pub(super) fn take_first(&mut self) -> Vec<u32> {
        core::mem::take(&mut self.first)
    }

    /// When the page of a write is written again; [`NEVER`] for a write that was not foreseen.
    #[inline]
    pub(super) fn next(&self, write: u32) -> u32 {
        self.next.get(write as usize).copied().unwrap_or(NEVER)
    }

    /// The first write of a logical page.
    #[must_use]
    pub fn first(&self, lpn: Lpn) -> Option<u32> {
        self.first.get(lpn.index()).copied().filter(|at| *at != NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_write_knows_the_next_of_its_page() {
        let future = Future::of(4, [2, 0, 2, 2, 1].into_iter());
        assert_eq!([0, 1, 2, 3].map(|lpn| future.first(Lpn(lpn))), [Some(1), Some(4), Some(0), None]);
        assert_eq!([0, 1, 2, 3, 4, 5].map(|write| future.next(write)), [2, NEVER, 3, NEVER, NEVER, NEVER]);
    }
}
