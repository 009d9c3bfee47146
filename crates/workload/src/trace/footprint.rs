//! Which pages a trace touches, as sorted extents per device: the basis of dense mapping and of all
//! page counts.

use super::{Record, Trace};
use crate::request::Op;
use serde::Serialize;

/// Distinct pages of a trace; a device must have at least `touched_pages` logical pages for dense
/// mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Footprint {
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Distinct pages read, written or trimmed, over all devices.
    pub touched_pages: u64,
    /// Distinct pages written.
    pub written_pages: u64,
}

impl Footprint {
    /// Bytes of logical space that dense mapping needs.
    pub fn touched_bytes(&self) -> u64 {
        self.touched_pages * u64::from(self.page_bytes)
    }
}

/// Counts the distinct pages of `page_bytes` (taken as 1 if 0) that a trace touches and writes.
pub fn footprint(trace: &Trace, page_bytes: u32) -> Footprint {
    let touched = Extents::of(trace, page_bytes, |_| true);
    let written = Extents::of(trace, page_bytes, |r| r.op() == Op::Write);
    Footprint { page_bytes, touched_pages: touched.pages, written_pages: written.pages }
}

/// A run of pages of one device, and its place when all runs are put side by side.
#[derive(Clone, Copy, Debug)]
struct Extent {
    device: u16,
    first: u64,
    last: u64,
    dense: u64,
}

/// Disjoint, not adjacent, sorted by device and address.
#[derive(Clone, Debug)]
pub(super) struct Extents {
    list: Vec<Extent>,
    page_bytes: u64,
    pub(super) pages: u64,
}

impl Extents {
    pub(super) fn of(trace: &Trace, page_bytes: u32, wanted: impl Fn(&Record) -> bool) -> Extents {
        let page_bytes = u64::from(page_bytes.max(1));
        let mut spans: Vec<(u16, u64, u64)> = Vec::with_capacity(trace.records.len());
        for record in trace.records.iter().filter(|r| r.bytes > 0 && wanted(r)) {
            spans.push((record.device, record.offset / page_bytes, (record.end() - 1) / page_bytes));
        }
        spans.sort_unstable();
        let mut list: Vec<Extent> = Vec::new();
        for (device, first, last) in spans {
            match list.last_mut() {
                Some(open) if open.device == device && first <= open.last + 1 => open.last = open.last.max(last),
                _ => list.push(Extent { device, first, last, dense: 0 }),
            }
        }
        let mut pages = 0;
        for extent in &mut list {
            extent.dense = pages;
            pages += extent.last - extent.first + 1;
        }
        Extents { list, page_bytes, pages }
    }

    /// Dense place of a page of a device, which must be one of these extents' pages.
    pub(super) fn dense_page(&self, device: u16, page: u64) -> u64 {
        let after = self.list.partition_point(|e| (e.device, e.first) <= (device, page));
        let extent = &self.list[after.saturating_sub(1)];
        debug_assert!(extent.device == device && extent.first <= page && page <= extent.last);
        extent.dense + (page - extent.first)
    }

    /// The parts of a record that lie in these extents, first byte and end of each.
    pub(super) fn parts_of(&self, record: &Record) -> impl Iterator<Item = (u64, u64)> {
        let (device, page_bytes, start, end) = (record.device, self.page_bytes, record.offset, record.end());
        let from = self.list.partition_point(|e| (e.device, (e.last + 1) * page_bytes) <= (device, start));
        let near = self.list[from..].iter().take_while(move |e| e.device == device && e.first * page_bytes < end);
        near.map(move |e| (start.max(e.first * page_bytes), end.min((e.last + 1) * page_bytes)))
    }

    /// Dense places of the pages a record covers. They are adjacent, because a record lies in one
    /// extent.
    pub(super) fn dense_range(&self, record: &Record) -> std::ops::Range<u64> {
        let first = record.offset / self.page_bytes;
        let last = (record.end() - 1) / self.page_bytes;
        let dense = self.dense_page(record.device, first);
        dense..dense + (last - first) + 1
    }

    /// Where a record starts when the extents are packed side by side, in bytes.
    pub(super) fn dense_offset(&self, record: &Record) -> u64 {
        let page = record.offset / self.page_bytes;
        self.dense_page(record.device, page) * self.page_bytes + record.offset % self.page_bytes
    }

    /// For each device its place when whole devices are stacked: bytes before it, each device
    /// reaching from its address 0 to its last touched page.
    pub(super) fn stacked(&self, devices: usize) -> (Vec<u64>, u64) {
        let mut ends = vec![0u64; devices];
        for extent in &self.list {
            ends[usize::from(extent.device)] = (extent.last + 1) * self.page_bytes;
        }
        let mut total = 0u64;
        let mut starts = Vec::with_capacity(devices);
        for end in ends {
            starts.push(total);
            total = total.saturating_add(end);
        }
        (starts, total)
    }
}
