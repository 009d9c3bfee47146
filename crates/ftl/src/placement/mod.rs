//! Placement policies: which write stream a page of host data goes to.
//!
//! Pages of one stream share blocks. A policy answers with the stream; the space manager hands out the
//! page.

mod single;
mod split;

pub(crate) use single::Single;

use alloc::boxed::Box;
use nand::Lpn;

/// A write stream, numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream(pub u8);

/// A placement policy.
pub trait Placement: Send {
    /// Streams it uses, at least 1.
    fn streams(&self) -> u8;

    /// Where a page that the host writes goes.
    fn host(&mut self, lpn: Lpn) -> Stream;

    /// Where a page goes that a collector moves.
    fn migrated(&mut self, lpn: Lpn) -> Stream;

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
    /// Makes one for a logical device of so many pages.
    pub make: fn(logical_pages: u32) -> Box<dyn Placement>,
}

/// Every placement policy.
#[must_use]
pub fn table() -> &'static [Entry] {
    &[split::ENTRY, single::ENTRY]
}

/// The row with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    table().iter().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_stays_within_its_streams() {
        for entry in table() {
            let mut policy = (entry.make)(100);
            assert!(policy.streams() >= 1);
            for lpn in 0..100 {
                assert!(policy.host(Lpn(lpn)).0 < policy.streams(), "{}", entry.name);
                assert!(policy.migrated(Lpn(lpn)).0 < policy.streams(), "{}", entry.name);
            }
        }
    }

    #[test]
    fn split_keeps_migrated_data_apart_and_single_does_not() {
        let mut split = (find("split").unwrap().make)(100);
        assert_ne!(split.host(Lpn(1)), split.migrated(Lpn(1)));
        let mut single = (find("single").unwrap().make)(100);
        assert_eq!(single.host(Lpn(1)), single.migrated(Lpn(1)));
    }
}
