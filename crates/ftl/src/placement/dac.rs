//! Dynamic data clustering: each write by the host makes a page hotter, each move colder.
//!
//! 1. Every logical page has a region. A page begins in the coldest.
//! 2. The host writes a page again: the page goes up a region. A collector moves it: it goes down
//!    one.
//! 3. Pages of a region share blocks, so that a block holds what dies at about the same time.
//!
//! The original moves a page only if it was young when it was overwritten, or old when it was
//! moved; later comparisons (`SepBIT`, FAST 2022; `MiDAS`, FAST 2024) leave that out, and so does
//! this. Regions are in RAM only: after a mount every page begins anew, which costs write
//! amplification and nothing else.

use super::{Cause, Entry, PageWrite, Placement, Stream};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

/// Regions; each has an open block of its own for each lane.
const REGIONS: u8 = 4;

/// Logical pages whose regions a byte holds.
const PAGES_PER_BYTE: usize = 4;

pub(super) const ENTRY: Entry = Entry {
    name: "dac",
    summary: "four streams; a page moves up when it is written again, down when it is moved",
    source: "Chiang, Lee and Chang, Using data clustering to improve cleaning performance for flash memory, SPE 1999",
    settings: &[],
    knows_future: false,
    make: |config, _, _| Box::new(Dac { regions: vec![0; (config.logical_pages as usize).div_ceil(PAGES_PER_BYTE)] }),
};

struct Dac {
    /// Two bits for each logical page.
    regions: Vec<u8>,
}

impl Placement for Dac {
    fn streams(&self) -> u8 {
        REGIONS
    }

    #[inline]
    fn place(&mut self, write: &PageWrite) -> Stream {
        let (byte, shift) = (write.lpn.index() / PAGES_PER_BYTE, 2 * (write.lpn.0 % PAGES_PER_BYTE as u32));
        let now = self.regions[byte] >> shift & 3;
        let next = match write.cause {
            Cause::Host => (now + 1).min(REGIONS - 1),
            Cause::Collection | Cause::Wear => now.saturating_sub(1),
            // It is moved although its block is no victim: nothing is known of its age.
            Cause::Refresh => now,
        };
        self.regions[byte] ^= (now ^ next) << shift;
        debug_assert!(self.regions[byte] >> shift & 3 == next && next < REGIONS);
        Stream(next)
    }

    fn ram_bytes(&self) -> u64 {
        self.regions.capacity() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use nand::Lpn;

    #[test]
    fn a_page_rises_when_it_is_written_and_sinks_when_it_is_moved() {
        let mut dac = (ENTRY.make)(&Config::new(6), &super::super::tests::geometry(), false);
        let mut streams = |lpn, causes: &[Cause]| {
            let place = |cause: &Cause| {
                dac.place(&PageWrite { lpn: Lpn(lpn), cause: *cause, age: None, from: None, past: None }).0
            };
            causes.iter().map(place).collect::<Vec<u8>>()
        };
        use Cause::{Collection, Host, Refresh};
        assert_eq!(streams(5, &[Host; 5]), [1, 2, 3, 3, 3]);
        assert_eq!(streams(4, &[Host, Collection, Collection]), [1, 0, 0], "its neighbour is another page");
        assert_eq!(streams(5, &[Refresh, Collection, Host]), [3, 2, 3]);
    }
}
