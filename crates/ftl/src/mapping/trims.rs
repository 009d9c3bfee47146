//! The trim map: which logical pages hold nothing, one bit each, for a table that is only in RAM.
//!
//! 1. A page of the map covers eight logical pages a byte. Its tag is its index.
//! 2. A copy of a logical page counts at mount only if its bit is clear or its sequence number is
//!    larger than that of the map's page.
//! 3. A page of the map is programmed from the table, also when its block is collected. Copied as
//!    it is, it would claim by its sequence number to know of writes that came after it.
//! 4. Nothing is programmed before a flush, and nothing at a flush before which nothing was
//!    trimmed.

use super::bits::Bits;
use crate::contract::{RamItem, RamReport};
use alloc::vec::Vec;
use nand::{Geometry, Lpn, PageKind, Ppn, Spare};

/// `aux` in the spare area of a page of the map. A mount that has not settled which pages count
/// adds by how much the page is younger than the newest that was programmed while the disk was in
/// use.
const MARK: u32 = 0x4D49_5254;

/// This much younger, or more: nobody knows.
const FAR: u32 = 1 << 24;

/// `aux` of a page of the map with this sequence number. `in_use_seq` is that of the newest page
/// programmed while the disk was in use, if a mount has not settled yet which pages count.
#[must_use]
pub fn mark(seq: u64, in_use_seq: Option<u64>) -> u32 {
    let age = seq - in_use_seq.unwrap_or(seq).min(seq);
    MARK + age.min(FAR.into()) as u32
}

/// Whether a page is one of the map.
#[must_use]
pub fn is_page_of_map(spare: &Spare) -> bool {
    spare.kind == PageKind::Translation && spare.aux.wrapping_sub(MARK) <= FAR
}

/// Sequence number of the newest page programmed while the disk was in use when this page of the
/// map was: its own, or an older one. 0 if nobody knows.
#[must_use]
pub const fn in_use_seq(spare: &Spare) -> u64 {
    match spare.aux.wrapping_sub(MARK) {
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
    /// Pages whose part of the disk had a trim since they were programmed.
    stale: Bits,
    stale_count: u32,
    bytes: Vec<u8>,
}

impl TrimMap {
    /// The map of a disk on which nothing was trimmed.
    #[must_use]
    pub fn new(logical_pages: u32, geometry: &Geometry) -> Self {
        let count = logical_pages.div_ceil(coverage(geometry));
        Self {
            pages: alloc::vec![Ppn::NONE; count as usize],
            coverage: coverage(geometry),
            stale: Bits::new(count),
            stale_count: 0,
            bytes: alloc::vec![0; geometry.page_bytes() as usize],
        }
    }

    /// A mount found its pages here.
    pub fn restore(&mut self, pages: &[Ppn]) {
        self.pages.copy_from_slice(pages);
    }

    /// Its pages.
    #[must_use]
    pub const fn page_count(&self) -> u32 {
        self.pages.len() as u32
    }

    /// A logical page was trimmed.
    #[inline]
    pub fn trimmed(&mut self, lpn: Lpn) {
        let page = lpn.0 / self.coverage;
        if !self.stale.has(page) {
            self.stale.set(page);
            self.stale_count += 1;
        }
    }

    /// A page that has to be programmed anew.
    #[must_use]
    pub fn next_stale(&self) -> Option<u32> {
        if self.stale_count == 0 { None } else { (0..self.page_count()).find(|&page| self.stale.has(page)) }
    }

    /// The contents of a page, from the table.
    pub fn contents(&mut self, page: u32, table: &[Ppn]) -> &[u8] {
        let entries = table.chunks(self.coverage as usize).nth(page as usize).unwrap_or_default();
        for (byte, entries) in self.bytes.iter_mut().zip(entries.chunks(8)) {
            *byte = (0..8).zip(entries).fold(0, |byte, (bit, ppn)| byte | u8::from(!ppn.is_some()) << bit);
        }
        &self.bytes[..entries.len().div_ceil(8)]
    }

    /// A page was programmed; answers where it was before.
    pub fn programmed(&mut self, page: u32, ppn: Ppn) -> Ppn {
        self.stale_count -= u32::from(self.stale.take(page));
        core::mem::replace(&mut self.pages[page as usize], ppn)
    }

    /// Whether a page of flash is part of the map.
    #[must_use]
    pub fn owns(&self, ppn: Ppn, page: u32) -> bool {
        self.pages.get(page as usize) == Some(&ppn)
    }

    /// The RAM that it holds.
    pub fn ram(&self, report: &mut RamReport) {
        let bytes = (self.pages.capacity() * size_of::<Ppn>() + self.bytes.capacity()) as u64 + self.stale.bytes();
        report.push(RamItem { name: "trim_map", bytes });
    }
}
