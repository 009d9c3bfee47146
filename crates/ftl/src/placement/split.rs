//! Host data and migrated data in streams of their own.
//!
//! What survived a collection is colder than what was just written; keeping it apart costs one more
//! open block and is never worse than mixing beyond that.

use super::{Cause, Entry, PageWrite, Placement, Stream};
use alloc::boxed::Box;

pub(super) const ENTRY: Entry = Entry {
    name: "split",
    summary: "host data and migrated data in two streams",
    source: "Dayan et al., GeckoFTL, SIGMOD 2016, section 4; Stoica and Ailamaki, VLDB 2013",
    settings: &[],
    knows_future: false,
    make: |_, _, _| Box::new(Split),
};

struct Split;

impl Placement for Split {
    fn streams(&self) -> u8 {
        2
    }

    #[inline]
    fn place(&mut self, write: &PageWrite) -> Stream {
        Stream(u8::from(write.cause != Cause::Host))
    }

    fn by_cause(&self) -> Option<[Stream; 2]> {
        Some([Stream(0), Stream(1)])
    }

    fn ram_bytes(&self) -> u64 {
        0
    }
}
