//! Extents in the order of addresses, and the regions in which they lie.

use super::{PAGE_BYTES, REGION_BYTES};

/// A run as the trace has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Extent {
    /// Whether it is trimmed; else it is written, or read.
    pub(crate) trim: bool,
    /// First byte, where what the trace touches is put side by side.
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

impl Extent {
    /// The region where it begins. What is trimmed has regions of its own.
    fn region(self) -> (bool, u64) {
        (self.trim, self.offset / REGION_BYTES)
    }

    fn page(self) -> (bool, u64) {
        (self.trim, self.offset / PAGE_BYTES)
    }
}

/// Extents by address, what is trimmed last.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) extents: Vec<Extent>,
    /// The region of each extent. Regions without an extent have no number.
    pub(crate) region: Vec<u32>,
    /// The extent after those that begin on the same page.
    page_end: Vec<u32>,
    pub(crate) regions: usize,
}

impl Layout {
    /// Of extents in their order.
    pub(crate) fn new(extents: Vec<Extent>) -> Layout {
        debug_assert!(extents.is_sorted(), "extents out of order");
        let mut region = Vec::with_capacity(extents.len());
        let mut regions = 0;
        for (at, extent) in extents.iter().enumerate() {
            regions += usize::from(at == 0 || extents[at - 1].region() != extent.region());
            region.push(regions as u32 - 1);
        }
        let mut page_end = vec![extents.len() as u32; extents.len()];
        for at in (1..extents.len()).rev() {
            let same = extents[at - 1].page() == extents[at].page();
            page_end[at - 1] = if same { page_end[at] } else { at as u32 };
        }
        Layout { extents, region, page_end, regions }
    }

    /// Extents on the next page on which any begin after that of `extent`, if it is in `region`.
    pub(super) fn after(&self, extent: u32, region: u32) -> std::ops::Range<u32> {
        let first = self.page_end[extent as usize];
        match self.region.get(first as usize) {
            Some(&found) if found == region => first..self.page_end[first as usize],
            _ => 0..0,
        }
    }
}
