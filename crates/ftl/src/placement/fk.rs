//! Future knowledge: pages that will be overwritten at about the same time share blocks. An offline
//! reference: it is told every write that the host will make.
//!
//! 1. Time is the number of pages that the host has written. A page's remaining life is the time
//!    until it is written again.
//! 2. A page whose remaining life is at least n blocks of writes and below n + 1 goes to stream n,
//!    by whoever it is programmed. A longer life, or one without an end, goes to the last stream.
//!
//! `SepBIT`'s authors compare with it under this name. It knows the future and yet is no bound: the
//! rule spends few streams on lives that are long, which are most of a cold page's.

use super::future::NEVER;
use super::{Cause, Entry, Future, PageWrite, Placement, Stream};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Streams, as many as `SepBIT` has.
pub(super) const STREAMS: u8 = 6;

pub(super) const ENTRY: Entry = Entry {
    name: "fk",
    summary: "six streams, by when a page will be overwritten: knows the future, in simulations only",
    source: "Wang et al., Separating data via block invalidation time inference (SepBIT), FAST 2022, section 4.1: FK",
    settings: &[],
    knows_future: true,
    make: |_, geometry, _| {
        let block = geometry.pages_per_block().max(1);
        Box::new(ByLife::new(move |life| (life / block).min(u32::from(STREAMS) - 1) as u8))
    },
};

/// A policy that knows the future: the stream of a page follows from the writes until its page is
/// written again, [`NEVER`] if there is no such write.
pub(super) struct ByLife<F> {
    /// `None` before it is told.
    future: Option<Future>,
    /// When each logical page will be written next.
    dies: Vec<u32>,
    /// Pages that the host has written since it was told.
    now: u32,
    stream: F,
}

impl<F: Fn(u32) -> u8> ByLife<F> {
    pub(super) const fn new(stream: F) -> Self {
        Self { future: None, dies: Vec::new(), now: 0, stream }
    }
}

impl<F: Fn(u32) -> u8 + Send> Placement for ByLife<F> {
    fn streams(&self) -> u8 {
        STREAMS
    }

    #[inline]
    fn place(&mut self, write: &PageWrite) -> Stream {
        let Some(dies) = self.dies.get_mut(write.lpn.index()) else { return Stream(STREAMS - 1) };
        if write.cause == Cause::Host {
            *dies = self.future.as_ref().map_or(NEVER, |future| future.next(self.now));
            self.now = self.now.saturating_add(1);
        }
        let life = if *dies == NEVER { NEVER } else { dies.saturating_sub(self.now) };
        Stream((self.stream)(life))
    }

    fn foresee(&mut self, mut future: Future) {
        (self.dies, self.now) = (future.take_first(), 0);
        self.future = Some(future);
    }

    fn is_blind(&self) -> bool {
        self.future.is_none()
    }

    /// The future is not counted: no device could hold it.
    fn ram_bytes(&self) -> u64 {
        (self.dies.capacity() * size_of::<u32>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use nand::{BlockId, Lpn};

    #[test]
    fn pages_are_parted_by_the_life_that_is_left() {
        // Blocks of four pages. Page 0 is written at 0 and 9, page 1 at 1, page 2 ever after.
        let writes = [0, 1].into_iter().chain([2; 7]).chain([0]);
        let mut fk = (ENTRY.make)(&Config::new(4), &super::super::tests::geometry(), false);
        assert!(fk.is_blind());
        fk.foresee(Future::of(4, writes));
        let moved = |policy: &mut Box<dyn Placement>, lpn| {
            let (age, from) = (Some(1), Some(BlockId(0)));
            policy.place(&PageWrite { lpn: Lpn(lpn), cause: Cause::Collection, age, from, past: None }).0
        };
        assert_eq!(moved(&mut fk, 0), 0, "written at once");
        assert_eq!(moved(&mut fk, 3), 5, "never written");
        assert_eq!(fk.place(&PageWrite::by_host(Lpn(0))).0, 2, "eight writes are left");
        assert_eq!(moved(&mut fk, 0), 2);
        assert_eq!(fk.place(&PageWrite::by_host(Lpn(1))).0, 5, "never again");
        for _ in 0..4 {
            assert_eq!(fk.place(&PageWrite::by_host(Lpn(2))).0, 0);
        }
        assert_eq!(moved(&mut fk, 0), 0, "three writes are left");
    }
}
