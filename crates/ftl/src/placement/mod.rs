//! Placement: which write stream a page of host data goes to.
//!
//! Pages of one stream share blocks. A policy sees each write of a page, by the host or by the FTL
//! itself, and answers with the stream; the space manager hands out the page. Levelling of wear
//! decides first (`placing.rs`).

mod age;
mod dac;
mod fk;
mod future;
mod kmeans;
mod lives;
mod midas;
mod placing;
mod sepbit;
mod single;
mod split;
mod wear;

pub use age::GROUPS as AGE_GROUPS;
pub use future::Future;
pub(crate) use placing::Placing;
pub(crate) use single::Single;

use crate::config::{Config, Setting};
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
    /// What the mapping knows of the last write by the host; `None` if it keeps no such thing, if
    /// there was none, or if that would have to be read from flash for a page that is moved.
    pub past: Option<Past>,
}

/// What a mapping keeps of the last write of a logical page by the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Past {
    /// Programs of the device since then.
    pub age: u64,
    /// The stream that the page went to.
    pub stream: Stream,
}

impl PageWrite {
    /// A write by the host.
    #[must_use]
    pub const fn by_host(lpn: Lpn) -> Self {
        Self { lpn, cause: Cause::Host, age: None, from: None, past: None }
    }
}

/// A placement policy.
pub trait Placement: Send {
    /// Streams it uses, at least 1.
    fn streams(&self) -> u8;

    /// Where a page goes.
    fn place(&mut self, write: &PageWrite) -> Stream;

    /// The streams of what the host writes and of what is moved, if it decides by nothing else and
    /// has no background work: then it need not be asked.
    fn by_cause(&self) -> Option<[Stream; 2]> {
        None
    }

    /// Whether it wants to hear which blocks its streams fill.
    fn follows_blocks(&self) -> bool {
        false
    }

    /// Whether it says for some of its streams when a block is collected: those are queues, of
    /// which the block that was filled first goes first. The victim policy has the other blocks.
    fn names_victims(&self) -> bool {
        false
    }

    /// The streams that are queues now, a bit each from the least; of the first eight only.
    fn queues(&self) -> u8 {
        0
    }

    /// A queue of which a block is to be collected next; `None` leaves the choice to the victim
    /// policy.
    fn overfull(&self) -> Option<Stream> {
        None
    }

    /// Whether it wants to know what the mapping keeps of a page's past ([`PageWrite::past`]).
    fn asks_for_past(&self) -> bool {
        false
    }

    /// Does background work of at most so many small steps; whether there was any.
    fn idle(&mut self, budget: u32) -> bool {
        let _ = budget;
        false
    }

    /// Takes over what the host will write from now on. Called by a simulation, which knows, and
    /// only for a policy that asks for it ([`Entry::knows_future`]).
    fn foresee(&mut self, future: Future) {
        drop(future);
    }

    /// Whether it cannot place anything because it was not told the future.
    fn is_blind(&self) -> bool {
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
    /// Settings that concern it, for every FTL that places pages by policy.
    pub settings: &'static [Setting],
    /// An offline reference: it has to be told what the host will write ([`Placement::foresee`]),
    /// and refuses to place anything before. No disk that is served can have it.
    pub knows_future: bool,
    /// Makes one for a disk of this configuration on such a device, over a mapping that keeps the
    /// past of pages ([`PageWrite::past`]) or does not.
    pub make: fn(config: &Config, geometry: &Geometry, pasts: bool) -> Box<dyn Placement>,
}

/// Every placement policy.
#[must_use]
pub fn table() -> &'static [Entry] {
    &[split::ENTRY, single::ENTRY, dac::ENTRY, sepbit::ENTRY, midas::ENTRY, age::ENTRY, fk::ENTRY, lives::ENTRY]
}

/// The row with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    table().iter().find(|entry| entry.name == name)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use nand::Dimensions;

    pub(crate) fn geometry() -> Geometry {
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
        PageWrite { lpn: Lpn(lpn), cause: Cause::Collection, age: Some(9), from: Some(BlockId(1)), past: None }
    }

    fn written(lpn: u32) -> PageWrite {
        PageWrite::by_host(Lpn(lpn))
    }

    #[test]
    fn every_policy_stays_within_its_streams() {
        for entry in table() {
            let mut policy = (entry.make)(&Config::new(100), &geometry(), false);
            assert!(policy.streams() >= 1);
            assert_eq!(policy.is_blind(), entry.knows_future, "{}", entry.name);
            policy.foresee(Future::of(100, (0..200).map(|at| at / 2)));
            assert!(!policy.is_blind());
            for lpn in 0..100 {
                for write in [written(lpn), written(lpn), moved(lpn), moved(lpn), moved(lpn)] {
                    assert!(policy.place(&write).0 < policy.streams(), "{}", entry.name);
                }
            }
        }
    }

    #[test]
    fn split_keeps_migrated_data_apart_and_single_does_not() {
        let mut split = (find("split").unwrap().make)(&Config::new(100), &geometry(), false);
        assert_ne!(split.place(&written(1)), split.place(&moved(1)));
        let mut single = (find("single").unwrap().make)(&Config::new(100), &geometry(), false);
        assert_eq!(single.place(&written(1)), single.place(&moved(1)));
    }
}
