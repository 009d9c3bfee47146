//! Placement: which write stream a page of host data goes to.
//!
//! Pages of one stream share blocks. A policy sees each write of a page, by the host or by the FTL
//! itself, and answers with the stream; the space manager hands out the page. Levelling of wear
//! decides first (`placing.rs`).

mod dac;
mod placing;
mod sepbit;
mod single;
mod split;
mod wear;

pub(crate) use placing::Placing;
pub(crate) use single::Single;

use alloc::boxed::Box;
use nand::{BlockId, Geometry, Lpn};

/// A write stream, numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream(pub u8);

/// Why a page of host data is programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The host writes it.
    Host,
    /// A collector moves it out of a victim.
    Collection,
    /// Levelling of wear moves it out of a block that is hardly worn.
    Wear,
    /// It can barely be read where it is.
    Refresh,
}

/// A write of a page of host data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageWrite {
    /// The logical page.
    pub lpn: Lpn,
    /// Why it is programmed.
    pub cause: Cause,
    /// Programs of the device since the copy that is moved was programmed. `None` if the host
    /// writes: what RAM knows of the copy before does not say when that was.
    pub age: Option<u64>,
    /// The block of the copy that is moved; `None` if the host writes.
    pub from: Option<BlockId>,
}

impl PageWrite {
    /// A write by the host.
    #[must_use]
    pub const fn by_host(lpn: Lpn) -> Self {
        Self { lpn, cause: Cause::Host, age: None, from: None }
    }
}

/// A placement policy.
pub trait Placement: Send {
    /// Streams it uses, at least 1.
    fn streams(&self) -> u8;

    /// Where a page goes.
    fn place(&mut self, write: &PageWrite) -> Stream;

    /// Whether it wants to hear which blocks its streams fill.
    fn follows_blocks(&self) -> bool {
        false
    }

    /// A page of a stream was programmed to a block.
    fn placed(&mut self, _stream: Stream, _block: BlockId) {}

    /// A collector has moved all that lived in a block, which is erased next.
    fn emptied(&mut self, _block: BlockId) {}

    /// Bytes of RAM held.
    fn ram_bytes(&self) -> u64;
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Makes one for so many logical pages on such a device.
    pub make: fn(logical_pages: u32, geometry: &Geometry) -> Box<dyn Placement>,
}

/// Every placement policy.
#[must_use]
pub fn table() -> &'static [Entry] {
    &[split::ENTRY, single::ENTRY, dac::ENTRY, sepbit::ENTRY]
}

/// The row with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    table().iter().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nand::Dimensions;

    pub(super) fn geometry() -> Geometry {
        let dimensions = Dimensions {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks: 64,
            pages_per_block: 4,
            page_bytes: 512,
            spare_bytes: 32,
        };
        Geometry::new(dimensions).unwrap()
    }

    fn moved(lpn: u32) -> PageWrite {
        PageWrite { lpn: Lpn(lpn), cause: Cause::Collection, age: Some(9), from: Some(BlockId(1)) }
    }

    fn written(lpn: u32) -> PageWrite {
        PageWrite::by_host(Lpn(lpn))
    }

    #[test]
    fn every_policy_stays_within_its_streams() {
        for entry in table() {
            let mut policy = (entry.make)(100, &geometry());
            assert!(policy.streams() >= 1);
            for lpn in 0..100 {
                for write in [written(lpn), written(lpn), moved(lpn), moved(lpn), moved(lpn)] {
                    assert!(policy.place(&write).0 < policy.streams(), "{}", entry.name);
                }
            }
        }
    }

    #[test]
    fn split_keeps_migrated_data_apart_and_single_does_not() {
        let mut split = (find("split").unwrap().make)(100, &geometry());
        assert_ne!(split.place(&written(1)), split.place(&moved(1)));
        let mut single = (find("single").unwrap().make)(100, &geometry());
        assert_eq!(single.place(&written(1)), single.place(&moved(1)));
    }
}
