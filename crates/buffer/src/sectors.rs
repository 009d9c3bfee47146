//! Parts of a page, as bits.

use core::ops::Range;

/// The smallest part of a page that is told apart, bytes; more if a page has more than 64 of them.
const SECTOR_BYTES: u32 = 512;
/// Sectors of a page at most: a bit each.
const SECTORS_MAX: u32 = 64;

/// How pages are parted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sectors {
    page_bytes: u64,
    bytes: u64,
    count: u32,
}

impl Sectors {
    /// Sectors of pages of this size: 512 B each, or a 64th of the page if that is more. The last
    /// may be shorter.
    #[must_use]
    pub fn new(page_bytes: u32) -> Self {
        let bytes = page_bytes.div_ceil(SECTORS_MAX).max(SECTOR_BYTES);
        Self { page_bytes: page_bytes.into(), bytes: bytes.into(), count: page_bytes.div_ceil(bytes) }
    }

    /// Bytes of a sector.
    #[must_use]
    pub const fn bytes(&self) -> u32 {
        self.bytes as u32
    }

    /// Sectors of a page.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// All sectors of a page.
    #[must_use]
    pub const fn all(&self) -> u64 {
        bits(0, self.count)
    }

    /// The sectors of which these bytes of a page touch any.
    #[must_use]
    pub fn touched(&self, part: &Range<u64>) -> u64 {
        if part.is_empty() {
            return 0;
        }
        bits((part.start / self.bytes) as u32, ((part.end - 1) / self.bytes) as u32 + 1)
    }

    /// The sectors that these bytes of a page cover wholly.
    #[must_use]
    pub fn covered(&self, part: &Range<u64>) -> u64 {
        let end = if part.end >= self.page_bytes { self.count } else { (part.end / self.bytes) as u32 };
        bits(part.start.div_ceil(self.bytes) as u32, end)
    }
}

/// Bits from `first` on up to `end`.
const fn bits(first: u32, end: u32) -> u64 {
    if first >= end { 0 } else { (u64::MAX >> (64 - (end - first))) << first }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_512_bytes_or_a_64th_of_a_page() {
        for (page, count, all) in
            [(512, 1, 1), (4096, 8, 0xFF), (4097, 9, 0x1FF), (32_768, 64, u64::MAX), (65_536, 64, u64::MAX)]
        {
            let sectors = Sectors::new(page);
            assert_eq!((sectors.count(), sectors.all()), (count, all), "{page}");
            assert_eq!(sectors.covered(&(0..page.into())), all);
            assert_eq!(sectors.touched(&(0..page.into())), all);
        }
    }

    #[test]
    fn a_part_touches_more_than_it_covers() {
        let sectors = Sectors::new(4096);
        for (part, touched, covered) in [
            (0..512, 1, 1),
            (0..513, 0b11, 1),
            (511..1025, 0b111, 0b10),
            (100..200, 1, 0),
            (4095..4096, 0x80, 0),
            (3584..4096, 0x80, 0x80),
            (7..7, 0, 0),
        ] {
            assert_eq!((sectors.touched(&part), sectors.covered(&part)), (touched, covered), "{part:?}");
        }
        // The last sector is one byte long.
        assert_eq!(Sectors::new(4097).covered(&(4096..4097)), 0x100);
    }
}
