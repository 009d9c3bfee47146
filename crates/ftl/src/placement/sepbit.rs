//! `SepBIT`: pages are parted by when they are expected to die, which is inferred from how long
//! their versions lived.
//!
//! Time is the number of pages that the host has written. L is how long blocks of the first stream
//! lived, from their first page until they were collected, on average over the last 16 of them.
//! 1. A page of the host whose version before lived less than L is expected to die soon: stream 0.
//!    Any other: 1.
//! 2. What a collector moves out of a block of stream 0: stream 2.
//! 3. What it moves out of another, by the time since the host wrote it: stream 3 below 4 L, 4
//!    below 16 L, else 5.
//!
//! The original keeps the time of a page's last write on disk, and of recent writes in a queue.
//! Here a table in RAM holds it, four bytes a logical page. The table is not saved: after a mount
//! every page counts as never written, which costs write amplification and nothing else.

use super::{Cause, Entry, PageWrite, Placement, Stream};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use nand::BlockId;

/// Blocks of the first stream over which L is averaged.
const WINDOW: u32 = 16;

/// Below this many times L a page that is moved goes to stream 3; below the second to stream 4.
const AGES: [u32; 2] = [4, 16];

/// A block that no stream has filled since it was erased.
const NONE: u8 = u8::MAX;

pub(super) const ENTRY: Entry = Entry {
    name: "sepbit",
    summary: "six streams, by when a page is expected to die",
    source: "Wang et al., Separating data via block invalidation time inference (SepBIT), FAST 2022",
    settings: &[],
    knows_future: false,
    make: |config, geometry, _| {
        let blocks = geometry.blocks() as usize;
        Box::new(SepBit {
            now: 0,
            written: vec![0; config.logical_pages as usize],
            stream: vec![NONE; blocks],
            begun: vec![0; blocks],
            lifespan: u32::MAX,
            ended: (0, 0),
        })
    },
};

struct SepBit {
    /// Pages written by the host, modulo 2^32; 0 is never.
    now: u32,
    /// When the host wrote each logical page last.
    written: Vec<u32>,
    /// The stream that fills each block, and when it began.
    stream: Vec<u8>,
    begun: Vec<u32>,
    /// L.
    lifespan: u32,
    /// Blocks of the first stream collected since L was computed, and the sum of how long they
    /// lived.
    ended: (u32, u64),
}

impl SepBit {
    /// Pages that the host has written since it wrote this one; as many as can be, if it never did.
    const fn since(&self, written: u32) -> u32 {
        if written == 0 { u32::MAX } else { self.now.wrapping_sub(written) }
    }
}

impl Placement for SepBit {
    fn streams(&self) -> u8 {
        6
    }

    #[inline]
    fn place(&mut self, write: &PageWrite) -> Stream {
        let since = self.since(self.written[write.lpn.index()]);
        if write.cause == Cause::Host {
            self.now = self.now.wrapping_add(1).max(1);
            self.written[write.lpn.index()] = self.now;
            return Stream(u8::from(since >= self.lifespan));
        }
        if write.from.is_some_and(|block| self.stream[block.index()] == 0) {
            return Stream(2);
        }
        let older = AGES.iter().filter(|times| since >= self.lifespan.saturating_mul(**times)).count();
        Stream(3 + older as u8)
    }

    fn follows_blocks(&self) -> bool {
        true
    }

    #[inline]
    fn placed(&mut self, stream: Stream, block: BlockId) {
        debug_assert!(stream.0 < self.streams(), "{stream:?} is none of this policy");
        if self.stream[block.index()] == NONE {
            self.stream[block.index()] = stream.0;
            self.begun[block.index()] = self.now;
        }
    }

    fn emptied(&mut self, block: BlockId) {
        let stream = core::mem::replace(&mut self.stream[block.index()], NONE);
        if stream == 0 {
            debug_assert!(self.ended.0 < WINDOW);
            self.ended.0 += 1;
            self.ended.1 += u64::from(self.now.wrapping_sub(self.begun[block.index()]));
        }
        if self.ended.0 == WINDOW {
            self.lifespan = u32::try_from(self.ended.1 / u64::from(WINDOW)).unwrap_or(u32::MAX);
            self.ended = (0, 0);
        }
    }

    fn ram_bytes(&self) -> u64 {
        (4 * (self.written.capacity() + self.begun.capacity()) + self.stream.capacity()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use nand::Lpn;

    #[test]
    fn pages_are_parted_by_how_long_versions_lived() {
        let mut sepbit = (ENTRY.make)(&Config::new(100), &super::super::tests::geometry(), false);
        let host = |policy: &mut Box<dyn Placement>, lpn| policy.place(&PageWrite::by_host(Lpn(lpn))).0;
        let moved = |policy: &mut Box<dyn Placement>, lpn, from| {
            let from = Some(BlockId(from));
            policy.place(&PageWrite { lpn: Lpn(lpn), cause: Cause::Collection, age: None, from, past: None }).0
        };
        assert_eq!([host(&mut sepbit, 1), host(&mut sepbit, 1)], [1, 0], "no L is known: any version lived less");
        // Sixteen blocks of the first stream, of ten writes each.
        for block in 0..16 {
            sepbit.placed(Stream(0), BlockId(block));
            assert_eq!(moved(&mut sepbit, 1, block), 2);
            for _ in 0..10 {
                host(&mut sepbit, 2);
            }
            sepbit.emptied(BlockId(block));
        }
        assert_eq!([host(&mut sepbit, 2), host(&mut sepbit, 1)], [0, 1], "ten writes or more are long");
        sepbit.placed(Stream(1), BlockId(7));
        host(&mut sepbit, 3);
        let mut after = |writes: u32| {
            for _ in 0..writes {
                host(&mut sepbit, 2);
            }
            moved(&mut sepbit, 3, 7)
        };
        assert_eq!([after(0), after(39), after(1), after(119), after(1)], [3, 3, 4, 4, 5]);
        assert_eq!(moved(&mut sepbit, 50, 7), 5, "never written since the mount");
    }
}
