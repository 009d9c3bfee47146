//! Remaining lives by their logarithm: as `fk`, but each stream takes lives four times as long as
//! the one before, up to those of a whole round of the disk. An offline reference.
//!
//! A page goes to the last stream if it will be written after at least as many writes as the disk
//! has pages, or never. Each stream before ends at a quarter of that.
//!
//! `fk` parts lives in units of a block, which tells apart only those that end within a few blocks.
//! This parts all of them, and shows what knowledge of the future is worth.

use super::Entry;
use super::fk::{ByLife, STREAMS};
use alloc::boxed::Box;

pub(super) const ENTRY: Entry = Entry {
    name: "lives",
    summary: "six streams, by the logarithm of when a page will be overwritten: knows the future, in simulations only",
    source: "fk of SepBIT (FAST 2022) with streams over the whole range of lives",
    settings: &[],
    knows_future: true,
    make: |config, _, _| {
        let pages = config.logical_pages;
        Box::new(ByLife::new(move |life| stream(life, pages)))
    },
};

/// The stream of a life on a disk of so many pages.
fn stream(life: u32, pages: u32) -> u8 {
    (1..STREAMS).filter(|shorter| life >= pages >> (2 * (STREAMS - 1 - shorter)).min(31)).count() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stream_takes_lives_four_times_as_long() {
        let lives = [0, 3, 4, 15, 16, 63, 64, 255, 256, 1023, 1024, u32::MAX];
        assert_eq!(lives.map(|life| stream(life, 1024)), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
    }
}
