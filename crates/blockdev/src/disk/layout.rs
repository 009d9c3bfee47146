//! Which page of which shard holds which page of the disk.
//!
//! Stripes of pages go to the shards in turn. So a range of the disk is one range in each shard.

use std::ops::Range;

/// Pages of a stripe on a disk of several shards: neighbours share translation pages. It is part of
/// the format of disks in files.
pub const STRIPE_PAGES: u32 = 16;

/// Pages of a disk of so many shards with so many pages each; 0 if these fill no stripe.
#[must_use]
pub fn striped_pages(shards: u32, shard_pages: u32) -> u64 {
    Layout::new(1, shards, shard_pages).pages()
}

/// A disk's pages over its shards.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) page_bytes: u32,
    pub(super) shards: u32,
    stripe: u32,
    /// Pages of each shard.
    pub(super) shard_pages: u32,
}

impl Layout {
    /// Over shards of at least so many pages each; those that fill no stripe are left out.
    pub(super) fn new(page_bytes: u32, shards: u32, shard_pages: u32) -> Self {
        match shards {
            1 => Self { page_bytes, shards, stripe: shard_pages.max(1), shard_pages },
            _ => Self {
                page_bytes,
                shards,
                stripe: STRIPE_PAGES,
                shard_pages: shard_pages / STRIPE_PAGES * STRIPE_PAGES,
            },
        }
    }

    pub(super) fn pages(&self) -> u64 {
        u64::from(self.shard_pages) * u64::from(self.shards)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.pages() * u64::from(self.page_bytes)
    }

    /// The shard of a page, and which page of the shard it is.
    #[inline]
    pub(super) fn locate(&self, page: u64) -> (usize, u32) {
        if self.shards == 1 {
            return (0, page as u32);
        }
        let (stripe, inside) = (page / u64::from(self.stripe), page % u64::from(self.stripe));
        let (round, shard) = (stripe / u64::from(self.shards), stripe % u64::from(self.shards));
        (shard as usize, (round * u64::from(self.stripe) + inside) as u32)
    }

    /// The page of the disk that a page of a shard is.
    #[inline]
    pub(super) fn page_of(&self, shard: usize, local: u32) -> u64 {
        if self.shards == 1 {
            return u64::from(local);
        }
        let (round, inside) = (u64::from(local / self.stripe), u64::from(local % self.stripe));
        (round * u64::from(self.shards) + shard as u64) * u64::from(self.stripe) + inside
    }

    /// The pages of a shard that lie before a page of the disk.
    fn before(&self, shard: usize, page: u64) -> u32 {
        let (stripe, inside) = (page / u64::from(self.stripe), page % u64::from(self.stripe));
        let (round, at) = (stripe / u64::from(self.shards), stripe % u64::from(self.shards));
        let more = match (shard as u64).cmp(&at) {
            std::cmp::Ordering::Less => u64::from(self.stripe),
            std::cmp::Ordering::Equal => inside,
            std::cmp::Ordering::Greater => 0,
        };
        (round * u64::from(self.stripe) + more) as u32
    }

    /// The pages of a shard in a range of pages of the disk; they are neighbours.
    pub(super) fn range(&self, shard: usize, pages: &Range<u64>) -> Range<u32> {
        if self.shards == 1 {
            return pages.start as u32..pages.end as u32;
        }
        self.before(shard, pages.start)..self.before(shard, pages.end)
    }

    /// The end of the pages that are neighbours on the disk and in the shard from this one on.
    pub(super) fn stripe_end(&self, page: u64) -> u64 {
        (page / u64::from(self.stripe) + 1) * u64::from(self.stripe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_one_place_and_every_range_is_one_range_a_shard() {
        for shards in [1, 2, 3, 5] {
            let layout = Layout::new(4096, shards, 100);
            assert_eq!(layout.shard_pages, if shards == 1 { 100 } else { 96 });
            for page in 0..layout.pages() {
                let (shard, local) = layout.locate(page);
                assert!(local < layout.shard_pages);
                assert_eq!(layout.page_of(shard, local), page);
            }
            for (from, to) in [(0, layout.pages()), (3, 3), (5, 90), (16, 32), (31, 97)] {
                let wanted: Vec<Vec<u32>> = (0..shards as usize)
                    .map(|shard| (from..to).map(|p| layout.locate(p)).filter(|l| l.0 == shard).map(|l| l.1).collect())
                    .collect();
                for (shard, wanted) in wanted.iter().enumerate() {
                    assert_eq!(&layout.range(shard, &(from..to)).collect::<Vec<_>>(), wanted, "{shards} {from}..{to}");
                }
            }
        }
    }
}
