//! The trim map: which logical pages hold nothing, one bit each, for a table that is only in RAM.
//!
//! 1. A page of the map covers eight logical pages a byte. Its tag is its index.
//! 2. A copy of a logical page counts at mount only if its bit is clear or its sequence number is
//!    larger than that of the map's page.
//! 3. A page of the map is programmed from the table, also when its block is collected. Copied as
//!    it is, it would claim by its sequence number to know of writes that came after it.
//! 4. A flush before which nothing was trimmed programs nothing. The first flush after a mount
//!    programs the whole map: a trim may have been undone that no flush had kept.
//! 5. A block with the last version of a page whose trim is not kept is erased only after the page
//!    of the map that keeps the trim. A cut could leave the block half erased: the version comes
//!    back, fades after it was read, and an older version would be read then.
//! 6. Of a logical page that a mount finds lost no copy may be left, and its bit is clear. A page
//!    of the map with such a bit says so in its spare area. A mount then takes a clear bit without
//!    a copy for a loss, else for a trim that no flush has kept.

use super::LOST;
use super::bits::Bits;
use crate::contract::{RamItem, RamReport};
use crate::inspect::Inspector;
use alloc::vec::Vec;
use nand::{BlockId, Geometry, Lpn, PageKind, Ppn, Spare};

/// `aux` in the spare area of a page of the map. A mount that has not settled which pages count
/// adds by how much the page is younger than the newest that was programmed while the disk was in
/// use.
const MARK: u32 = 0x4D49_5254;

/// This much younger, or more: nobody knows.
const FAR: u32 = 1 << 24;

/// Added by a page of the map that tells of losses.
const LOSSES: u32 = 1 << 25;

/// `aux` of a page of the map with this sequence number. `in_use_seq` is that of the newest page
/// programmed while the disk was in use, if a mount has not settled yet which pages count.
#[must_use]
pub fn mark(seq: u64, in_use_seq: Option<u64>, tells_losses: bool) -> u32 {
    let age = seq - in_use_seq.unwrap_or(seq).min(seq);
    MARK + age.min(FAR.into()) as u32 + if tells_losses { LOSSES } else { 0 }
}

/// Whether a logical page of the part of a page of the map is lost if it has neither a copy nor a
/// bit.
#[must_use]
pub const fn tells_losses(spare: &Spare) -> bool {
    spare.aux.wrapping_sub(MARK) & LOSSES != 0
}

/// Whether a page is one of the map.
#[must_use]
pub fn is_page_of_map(spare: &Spare) -> bool {
    spare.kind == PageKind::Translation && spare.aux.wrapping_sub(MARK) & !LOSSES <= FAR
}

/// Sequence number of the newest page programmed while the disk was in use when this page of the
/// map was: its own, or an older one. 0 if nobody knows.
#[must_use]
pub const fn in_use_seq(spare: &Spare) -> u64 {
    match spare.aux.wrapping_sub(MARK) & !LOSSES {
        FAR => 0,
        age => spare.seq.saturating_sub(age as u64),
    }
}

/// Logical pages that a page of the map covers.
#[must_use]
pub const fn coverage(geometry: &Geometry) -> u32 {
    8 * geometry.page_bytes()
}

/// Where the pages of the map are, and which of them have to be programmed anew.
#[derive(Debug)]
pub struct TrimMap {
    pages: Vec<Ppn>,
    coverage: u32,
    /// Pages whose part of the disk had a trim or a loss since they were programmed, or a mount.
    stale: Bits,
    stale_count: u32,
    /// Pages whose part of the disk had a trim since they were programmed.
    trimmed: Bits,
    trimmed_count: u32,
    /// Blocks of flash with a version that such a trim forgot.
    at_risk: Bits,
    /// Nothing was trimmed or lost since a mount: the pages are stale because of that alone.
    as_mounted: bool,
    /// Pages that do not tell of a loss.
    untold: Vec<u32>,
    bytes: Vec<u8>,
}

impl TrimMap {
    /// Shows where the pages of the map are.
    pub fn inspect(&self, inspector: &mut dyn Inspector) {
        self.pages.iter().filter(|ppn| ppn.is_some()).for_each(|ppn| inspector.metadata(*ppn));
    }

    /// The map of a disk on which nothing was trimmed.
    #[must_use]
    pub fn new(logical_pages: u32, geometry: &Geometry) -> Self {
        let count = logical_pages.div_ceil(coverage(geometry));
        Self {
            pages: alloc::vec![Ppn::NONE; count as usize],
            coverage: coverage(geometry),
            stale: Bits::new(count),
            stale_count: 0,
            trimmed: Bits::new(count),
            trimmed_count: 0,
            at_risk: Bits::new(geometry.blocks()),
            as_mounted: false,
            untold: Vec::new(),
            bytes: alloc::vec![0; geometry.page_bytes() as usize],
        }
    }

    /// A mount found its pages here.
    pub fn restore(&mut self, pages: &[Ppn]) {
        self.pages.copy_from_slice(pages);
        (0..self.page_count()).for_each(|page| self.changed(page));
        self.as_mounted = true;
        debug_assert!(self.stale_count == self.page_count(), "the first flush after a mount programs the whole map");
    }

    /// The page that covers a logical page.
    #[must_use]
    pub const fn page_of(&self, lpn: Lpn) -> u32 {
        lpn.0 / self.coverage
    }

    /// Its pages.
    #[must_use]
    pub const fn page_count(&self) -> u32 {
        self.pages.len() as u32
    }

    fn changed(&mut self, page: u32) {
        self.as_mounted = false;
        if !self.stale.has(page) {
            self.stale.set(page);
            self.stale_count += 1;
        }
        debug_assert!(self.stale_count <= self.page_count());
    }

    /// A logical page was trimmed. The block with its last version is not to be erased before the
    /// trim is kept.
    #[inline]
    pub fn trimmed(&mut self, lpn: Lpn, last: Option<BlockId>) {
        let page = self.page_of(lpn);
        self.changed(page);
        let Some(block) = last else { return };
        self.at_risk.set(block.0);
        if !self.trimmed.has(page) {
            self.trimmed.set(page);
            self.trimmed_count += 1;
        }
    }

    /// Whether a block may hold the last version of a page whose trim is not kept.
    #[must_use]
    pub fn risks(&self, block: BlockId) -> bool {
        self.at_risk.has(block.0)
    }

    /// Pages that have to be programmed before no block is at risk any more.
    #[must_use]
    pub const fn risky_pages(&self) -> u32 {
        self.trimmed_count
    }

    /// A logical page was found to be lost.
    #[cold]
    pub fn lost(&mut self, lpn: Lpn) {
        let page = self.page_of(lpn);
        self.changed(page);
        if !self.untold.contains(&page) {
            self.untold.push(page);
        }
    }

    /// A page that does not tell of a loss.
    #[must_use]
    pub fn next_untold(&self) -> Option<u32> {
        self.untold.first().copied()
    }

    /// Whether something was trimmed or lost of which no page tells.
    #[must_use]
    pub const fn is_behind(&self) -> bool {
        self.stale_count > 0 && !self.as_mounted
    }

    /// A page that has to be programmed anew, those first whose part of the disk had a trim.
    #[must_use]
    pub fn next_stale(&self) -> Option<u32> {
        debug_assert!(self.trimmed_count <= self.stale_count && self.stale_count <= self.page_count());
        let (count, stale) = match self.trimmed_count {
            0 => (self.stale_count, &self.stale),
            trimmed => (trimmed, &self.trimmed),
        };
        if count == 0 { None } else { (0..self.page_count()).find(|&page| stale.has(page)) }
    }

    /// The contents of a page, from the table, and whether it tells of losses.
    pub fn contents(&mut self, page: u32, table: &[Ppn]) -> (&[u8], bool) {
        debug_assert!(page < self.page_count() && table.len().div_ceil(self.coverage as usize) == self.pages.len());
        let entries = table.chunks(self.coverage as usize).nth(page as usize).unwrap_or_default();
        for (byte, entries) in self.bytes.iter_mut().zip(entries.chunks(8)) {
            *byte = (0..8).zip(entries).fold(0, |byte, (bit, ppn)| byte | u8::from(!ppn.is_some()) << bit);
        }
        (&self.bytes[..entries.len().div_ceil(8)], entries.contains(&LOST))
    }

    /// A page was programmed; answers where it was before.
    pub fn programmed(&mut self, page: u32, ppn: Ppn) -> Ppn {
        debug_assert!(ppn.is_some() && !self.pages.contains(&ppn), "{ppn} holds a page of the map already");
        self.stale_count -= u32::from(self.stale.take(page));
        if self.trimmed.take(page) {
            self.trimmed_count -= 1;
            if self.trimmed_count == 0 {
                self.at_risk.clear_all();
            }
        }
        self.untold.retain(|untold| *untold != page);
        debug_assert!(!self.stale.has(page));
        core::mem::replace(&mut self.pages[page as usize], ppn)
    }

    /// Whether a page of flash is part of the map.
    #[must_use]
    pub fn owns(&self, ppn: Ppn, page: u32) -> bool {
        self.pages.get(page as usize) == Some(&ppn)
    }

    /// A page of the map among those that are `wanted`, and which it is.
    #[must_use]
    pub fn find(&self, wanted: impl Fn(Ppn) -> bool) -> Option<(Ppn, u32)> {
        self.pages.iter().copied().zip(0..).find(|(ppn, _)| ppn.is_some() && wanted(*ppn))
    }

    /// The RAM that it holds.
    pub fn ram(&self, report: &mut RamReport) {
        let lists = self.pages.capacity() * size_of::<Ppn>() + self.untold.capacity() * size_of::<u32>();
        let bytes =
            (lists + self.bytes.capacity()) as u64 + self.stale.bytes() + self.trimmed.bytes() + self.at_risk.bytes();
        report.push(RamItem { name: "trim_map", bytes });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use nand::Dimensions;

    #[test]
    fn blocks_are_at_risk_until_every_page_with_a_trim_is_programmed() {
        let dimensions = Dimensions {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks: 8,
            pages_per_block: 4,
            page_bytes: 512,
            spare_bytes: 32,
        };
        let mut map = TrimMap::new(3 * 4096, &Geometry::new(dimensions).unwrap());
        assert!(!map.is_behind() && map.next_stale().is_none());
        map.trimmed(Lpn(4096), Some(BlockId(2)));
        map.trimmed(Lpn(9000), Some(BlockId(3)));
        map.trimmed(Lpn(9001), None);
        assert!(map.is_behind() && !map.risks(BlockId(1)));
        assert_eq!((map.next_stale(), map.risky_pages()), (Some(1), 2));
        map.programmed(1, Ppn(0));
        assert!(map.risks(BlockId(2)) && map.risks(BlockId(3)), "page 2 of the map is not programmed yet");
        assert_eq!((map.next_stale(), map.risky_pages()), (Some(2), 1));
        map.programmed(2, Ppn(1));
        assert!(!map.risks(BlockId(2)) && !map.risks(BlockId(3)) && !map.is_behind());
        assert!(map.owns(Ppn(1), 2) && !map.owns(Ppn(1), 1));
        assert_eq!(map.find(|ppn| ppn.0 > 0), Some((Ppn(1), 2)));
        assert_eq!(map.find(|ppn| ppn.0 > 1), None, "a page that was never programmed is nowhere");
    }
}
