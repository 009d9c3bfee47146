//! One stream for everything: migrated data fills blocks together with new data.
//!
//! The model behind the analytic results. Under skew it mixes cold survivors back into hot blocks.

use super::{Entry, PageWrite, Placement, Stream};
use alloc::boxed::Box;

pub(super) const ENTRY: Entry = Entry {
    name: "single",
    summary: "one stream for host and migrated data",
    source: "Rosenblum and Ousterhout, LFS, SOSP 1991",
    settings: &[],
    knows_future: false,
    make: |_, _, _| Box::new(Single),
};

/// The policy; also what a mount uses, so that everything it moves goes to one block.
pub(crate) struct Single;

impl Placement for Single {
    fn streams(&self) -> u8 {
        1
    }

    #[inline]
    fn place(&mut self, _: &PageWrite) -> Stream {
        Stream(0)
    }

    fn by_cause(&self) -> Option<[Stream; 2]> {
        Some([Stream(0); 2])
    }

    fn ram_bytes(&self) -> u64 {
        0
    }
}
