//! Which leaves of a mapping tree in flash count, found from their spare areas alone.
//!
//! A spare area says from which logical page to which a leaf reaches, and when it was programmed.
//! The youngest leaf has all of its range, every older one what is left of its own: a leaf that was
//! split may be there beside one half of it. Leaves split and never merge, so that what is left of
//! a leaf is in one piece, unless a younger one can no longer be read.

use super::plausible::Contents;
use super::survey::FoundPage;
use crate::contract::FtlError;
use crate::mapping::btree::{BtreeMap, Piece};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;
use nand::{Geometry, Ppn, Spare};

/// The ranges of logical pages that are taken, by their beginnings.
#[derive(Debug, Default)]
struct Claims(BTreeMap<u32, Piece>);

impl Claims {
    /// Takes what is left of a leaf's range.
    fn claim(&mut self, leaf: Ppn, range: Range<u32>) {
        let mut at = range.start;
        while at < range.end {
            let before = self.0.range(..=at).next_back().map(|(_, piece)| piece.lpns.end);
            if let Some(taken) = before.filter(|end| *end > at) {
                at = taken;
                continue;
            }
            let next = self.0.range(at..).next().map_or(range.end, |(start, _)| *start);
            let lpns = at..next.min(range.end);
            at = lpns.end;
            debug_assert!(!lpns.is_empty() && lpns.end <= range.end);
            self.0.insert(lpns.start, Piece { lpns, leaf, of: range.clone() });
        }
    }
}

/// Whether a page of the tree lies within a disk of so many logical pages, as far as its spare area
/// says.
#[must_use]
pub fn is_within(spare: &Spare, logical_pages: u32) -> bool {
    BtreeMap::leaf_range(spare).is_none_or(|range| !range.is_empty() && range.end <= logical_pages)
}

/// What the pages of a disk with a mapping tree hold.
#[must_use]
pub const fn contents(geometry: &Geometry, logical_pages: u32) -> Contents {
    let device_pages = geometry.pages();
    Contents { device_pages, logical_pages, is_of_table: is_within, table: logical_pages, validity: true }
}

/// The parts of leaves that count, in order and without gaps over all logical pages. `versions` are
/// pages of the tree.
///
/// # Errors
/// [`FtlError::Damaged`] if a leaf lies outside the disk.
pub fn choose(versions: &[FoundPage], logical_pages: u32) -> Result<Vec<Piece>, FtlError> {
    let mut leaves: Vec<(u64, Ppn, Range<u32>)> = Vec::with_capacity(versions.len());
    for (ppn, spare) in versions {
        let Some(range) = BtreeMap::leaf_range(spare) else { continue };
        if !is_within(spare, logical_pages) {
            let reason = "it lies outside the disk: the device was formatted with another size";
            return Err(FtlError::Damaged { structure: "leaf of the mapping tree", ppn: *ppn, reason });
        }
        leaves.push((spare.seq, *ppn, range));
    }
    leaves.sort_unstable_by_key(|(seq, ..)| u64::MAX - seq);
    let mut claims = Claims::default();
    for (_, ppn, range) in leaves {
        claims.claim(ppn, range);
    }
    claims.claim(Ppn::NONE, 0..logical_pages);
    let pieces: Vec<Piece> = claims.0.into_values().collect();
    debug_assert!(are_whole(&pieces, logical_pages));
    Ok(pieces)
}

/// Whether pieces come in order and without gaps over all logical pages.
#[must_use]
pub fn are_whole(pieces: &[Piece], logical_pages: u32) -> bool {
    let mut end = 0;
    pieces.iter().all(|piece| {
        let begin = core::mem::replace(&mut end, piece.lpns.end);
        begin == piece.lpns.start && piece.lpns.start < end
    }) && end == logical_pages
}

#[cfg(test)]
mod tests {
    use super::*;
    use nand::{Flags, PageKind};

    fn leaf(seq: u64, range: Range<u32>) -> FoundPage {
        let (tag, aux) = (range.start, range.end);
        (
            Ppn(seq as u32),
            Spare { kind: PageKind::Translation, tag, seq, erase_count: 0, erased_at: 0, aux, flags: Flags::NONE },
        )
    }

    /// First logical page and sequence number of each piece.
    fn pieces(versions: &[FoundPage]) -> Vec<(u32, u32)> {
        let pieces = choose(versions, 100).expect("leaves of this disk");
        assert!(pieces.windows(2).all(|pair| pair[0].lpns.end == pair[1].lpns.start));
        assert!(pieces[0].lpns.start == 0 && pieces[pieces.len() - 1].lpns.end == 100);
        pieces.iter().map(|piece| (piece.lpns.start, piece.leaf.0)).collect()
    }

    #[test]
    fn the_youngest_leaf_has_its_range_and_older_ones_what_is_left() {
        let none = Ppn::NONE.0;
        assert_eq!(pieces(&[]), [(0, none)]);
        assert_eq!(pieces(&[leaf(1, 0..100), leaf(3, 0..100), leaf(2, 0..100)]), [(0, 3)]);
        // Split, and cut before the second half was there; then with both.
        assert_eq!(pieces(&[leaf(1, 0..100), leaf(2, 40..100)]), [(0, 1), (40, 2)]);
        assert_eq!(pieces(&[leaf(1, 0..100), leaf(2, 0..40)]), [(0, 2), (40, 1)]);
        assert_eq!(pieces(&[leaf(3, 0..40), leaf(2, 40..100), leaf(1, 0..100)]), [(0, 3), (40, 2)]);
        // The younger half cannot be read.
        assert_eq!(pieces(&[leaf(1, 0..100), leaf(2, 30..60)]), [(0, 1), (30, 2), (60, 1)]);
        assert_eq!(pieces(&[leaf(5, 10..20), leaf(4, 15..30)]), [(0, none), (10, 5), (20, 4), (30, none)]);
    }

    #[test]
    fn inner_nodes_do_not_count_and_a_leaf_of_another_disk_is_refused() {
        let (ppn, spare) = leaf(9, 0..100);
        assert_eq!(pieces(&[leaf(1, 0..100), (ppn, Spare { aux: !1, ..spare })]), [(0, 1)]);
        assert!(choose(&[leaf(1, 0..101)], 100).is_err() && choose(&[leaf(1, 7..7)], 100).is_err());
    }
}
