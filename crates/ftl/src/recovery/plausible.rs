//! Which spare areas are believed: a torn page may show a well-formed one that nobody wrote.
//!
//! 1. A spare area fits by itself if its sequence number and its tag are in range.
//! 2. All pages of a block carry the same erase count and erase stamp, and all or none hold host
//!    data. What most of those that fit by themselves carry is right.
//! 3. If no value is carried by more pages than any other, the pages whose data can be read are
//!    right.
//! 4. A page that does not fit and whose data cannot be read is torn, and nothing that its spare
//!    area says counts.
//! 5. One that does not fit and whose data can be read is of another image: an error.
//!
//! Costs no read of a block whose pages all fit. A page that is alone in its block has nothing to
//! fit to. So the sequence number of a page whose data cannot be read counts only if it is near
//! those that can be read ([`burned`]).

use super::can_be_read;
use super::survey::FoundPage;
use crate::contract::FtlError;
use crate::flash::{Flash, Purpose};
use alloc::vec::Vec;
use nand::{Geometry, Nand, NandError, PageKind, Ppn, Spare};

/// What a spare area that does not fit would say if its page were of this disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// What the page would be.
    pub structure: &'static str,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// What the pages of a disk hold, as far as spare areas say.
#[derive(Clone, Copy, Debug)]
pub struct Contents {
    /// Pages of the device: no saved state has more.
    pub device_pages: u32,
    /// Logical pages.
    pub logical_pages: u32,
    /// Whether a page of the table with this spare area lies within a disk of `table`.
    pub is_of_table: fn(&Spare, table: u32) -> bool,
    /// The size of the table, in whatever the one before counts.
    pub table: u32,
    /// Whether the validity store is in flash.
    pub validity: bool,
}

impl Contents {
    /// Those of a disk with a table of so many translation pages, and perhaps its validity store
    /// in flash.
    #[must_use]
    pub const fn of_table(geometry: &Geometry, logical_pages: u32, count: usize, validity: bool) -> Self {
        let (device_pages, table) = (geometry.pages(), count as u32);
        Self { device_pages, logical_pages, is_of_table: |spare, count| spare.tag < count, table, validity }
    }

    /// What is wrong with a spare area, beside its sequence number.
    #[must_use]
    pub fn misfit(self, spare: &Spare) -> Option<Misfit> {
        let (structure, fits) = match spare.kind {
            PageKind::User => ("page of host data", spare.tag < self.logical_pages),
            PageKind::Translation => ("page of the mapping table", (self.is_of_table)(spare, self.table)),
            PageKind::Checkpoint => ("page of a saved state", spare.tag < self.device_pages),
            PageKind::Validity if self.validity => return None,
            PageKind::Validity => {
                let reason = "the FTL keeps its store in RAM: the device was formatted by another FTL";
                return Some(Misfit { structure: "page of the validity store", reason });
            }
        };
        let reason = "it lies outside the disk: the device was formatted with another size";
        (!fits).then_some(Misfit { structure, reason })
    }
}

const COMMON: Misfit = Misfit {
    structure: "spare area",
    reason: "its erase count, erase stamp or kind is not that of the other pages of its block",
};

const SEQ: Misfit =
    Misfit { structure: "spare area", reason: "its sequence number is beyond what a device can wear out with" };

/// Numbers that programs which were cut short or failed may have burned, one after another, since
/// the newest page that can be read.
pub(super) const NEAR: u64 = 1 << 20;

/// The larger of the sequence number of the newest page that can be read, and of those of pages
/// that cannot be which are near it.
#[must_use]
pub fn burned(newest: u64, torn: impl IntoIterator<Item = u64>) -> u64 {
    torn.into_iter().filter(|seq| *seq < newest.saturating_add(NEAR)).fold(newest, u64::max)
}

/// Whether a page can carry this sequence number.
#[must_use]
pub const fn is_number(seq: u64) -> bool {
    seq < Spare::SEQ_END / 2
}

/// Whether a spare area can carry its erase count and stamp, on a device of which another carries
/// this stamp, the largest there is.
#[must_use]
pub const fn is_wear(spare: &Spare, erased_at: u32) -> bool {
    spare.erase_count <= spare.erased_at && spare.erased_at <= erased_at.saturating_add(NEAR as u32)
}

/// The largest number that one of these pages says, of those whose data can be read: the spare area
/// of another may be one that nobody wrote.
///
/// # Errors
/// Those of the device, except pages that cannot be read.
pub fn largest<N: Nand>(
    flash: &mut Flash<N>,
    pages: &[FoundPage],
    says: impl Fn(&Spare) -> u64,
) -> Result<u64, FtlError> {
    let mut said: Vec<(u64, Ppn)> = pages.iter().map(|(ppn, spare)| (says(spare), *ppn)).collect();
    said.sort_unstable_by_key(|(number, _)| u64::MAX - number);
    for (number, ppn) in said.into_iter().filter(|(number, _)| *number > 0) {
        if can_be_read(flash, ppn)? {
            return Ok(number);
        }
    }
    Ok(0)
}

/// What all pages of a block carry: erase count, erase stamp, whether they hold host data.
pub type Common = (u32, u32, bool);

/// What all pages of the block of one with this spare area carry.
#[must_use]
pub fn common_of(spare: &Spare) -> Common {
    (spare.erase_count, spare.erased_at, spare.kind == PageKind::User)
}

fn common((_, spare): &FoundPage) -> Common {
    common_of(spare)
}

/// What most pages carry, of those marked true; `None` if no value is carried by more than any
/// other.
fn common_of_most(pages: &[FoundPage], counts: &[bool]) -> Option<Common> {
    let mut wears: Vec<Common> =
        pages.iter().zip(counts).filter(|(_, counts)| **counts).map(|(page, _)| common(page)).collect();
    wears.sort_unstable();
    let most = wears.chunk_by(|a, b| a == b).map(<[_]>::len).max()?;
    let mut found = wears.chunk_by(|a, b| a == b).filter(|chunk| chunk.len() == most);
    let wear = found.next()?[0];
    found.next().is_none().then_some(wear)
}

/// Keeps of the pages found in one block those whose spare area is believed; the others are
/// `dropped`. `known` is what pages of the block carry, if that was found out before. `misfit` says
/// what is wrong with a spare area by itself, beside its sequence number.
///
/// # Errors
/// [`FtlError::Damaged`] about a page that does not fit and can be read; those of the device.
pub fn keep<N: Nand>(
    flash: &mut Flash<N>,
    pages: &mut Vec<FoundPage>,
    dropped: &mut Vec<Ppn>,
    known: Option<Common>,
    misfit: impl Fn(&Spare) -> Option<Misfit>,
) -> Result<(), FtlError> {
    debug_assert!(pages.is_sorted_by(|a, b| a.0 < b.0), "pages of a block come in its order");
    let alone = |spare: &Spare| if is_number(spare.seq) { misfit(spare) } else { Some(SEQ) };
    if let Some(expected) = known.or(pages.first().map(common))
        && pages.iter().all(|page| common(page) == expected && alone(&page.1).is_none())
    {
        return Ok(());
    }
    let mut counts: Vec<bool> = pages.iter().map(|(_, spare)| alone(spare).is_none()).collect();
    let mut right = known.or_else(|| common_of_most(pages, &counts));
    for (counts, page) in counts.iter_mut().zip(pages.iter()) {
        let (ppn, spare) = *page;
        if *counts && right == Some(common(page)) {
            continue;
        }
        match flash.probe(Purpose::Recovery, ppn) {
            Ok(_) => {
                let expected = *right.get_or_insert(common(page));
                let wrong = alone(&spare).or_else(|| (expected != common(page)).then_some(COMMON));
                if let Some(Misfit { structure, reason }) = wrong {
                    return Err(FtlError::Damaged { structure, ppn, reason });
                }
            }
            Err(NandError::Uncorrectable { .. } | NandError::Erased { .. }) => {
                *counts = false;
                dropped.push(ppn);
            }
            Err(error) => return Err(error.into()),
        }
    }
    let mut counts = counts.into_iter();
    pages.retain(|_| counts.next() == Some(true));
    debug_assert!(pages.iter().all(|page| Some(common(page)) == right && alone(&page.1).is_none()));
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use nand::{Blemish, Capabilities, Dimensions, FaultPlan, Faulty, Flags, Geometry, PageKind, SimNand, Stamp};

    const DISK: u32 = 100;

    /// A flash with these spare areas in block 0, those marked false beside data that cannot be
    /// read.
    fn block(spares: &[(Spare, bool)]) -> (Flash<Faulty<SimNand>>, Vec<FoundPage>) {
        let geometry = Geometry::new(Dimensions {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks: 2,
            pages_per_block: 8,
            page_bytes: 512,
            spare_bytes: 32,
        })
        .unwrap();
        let mut nand = Faulty::new(SimNand::new(geometry, Capabilities::MODERN), FaultPlan::default());
        let mut pages = Vec::new();
        for (ppn, (spare, readable)) in (0..).map(Ppn).zip(spares) {
            nand.program(ppn, &Stamp::UNWRITTEN, spare).unwrap();
            if !readable {
                nand.damage(ppn, Blemish::DataUnreadable);
            }
            pages.push((ppn, *spare));
        }
        (Flash::new(nand), pages)
    }

    fn spare(seq: u64, tag: u32, wear: u32) -> Spare {
        Spare { kind: PageKind::User, tag, seq, erase_count: wear, erased_at: 7 * wear, aux: 0, flags: Flags::NONE }
    }

    fn kept(spares: &[(Spare, bool)]) -> Result<(Vec<u32>, usize), u32> {
        kept_of(None, spares)
    }

    fn kept_of(known: Option<Common>, spares: &[(Spare, bool)]) -> Result<(Vec<u32>, usize), u32> {
        let (mut flash, mut pages) = block(spares);
        let misfit = |spare: &Spare| (spare.tag >= DISK).then_some(Misfit { structure: "page", reason: "outside" });
        let mut dropped = Vec::new();
        match keep(&mut flash, &mut pages, &mut dropped, known, misfit) {
            Ok(()) => Ok((pages.iter().map(|(ppn, _)| ppn.0).collect(), dropped.len())),
            Err(FtlError::Damaged { ppn, .. }) => Err(ppn.0),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_block_whose_pages_fit_costs_no_read() {
        let (mut flash, mut pages) = block(&[(spare(1, 0, 3), true), (spare(2, 1, 3), false), (spare(9, 2, 3), true)]);
        let mut dropped = Vec::new();
        keep(&mut flash, &mut pages, &mut dropped, None, |_| None).unwrap();
        assert_eq!((pages.len(), dropped.len(), flash.counts().total().reads), (3, 0, 0));
        assert_eq!(kept(&[]), Ok((Vec::new(), 0)));
    }

    #[test]
    fn what_nobody_wrote_does_not_fit() {
        let fine = [(spare(1, 0, 3), true), (spare(2, 1, 3), true)];
        let odd =
            [spare(3, 2, 4), spare(3, DISK, 3), spare(Spare::SEQ_END / 2, 2, 3), spare(Spare::SEQ_END - 1, DISK, 9)];
        for odd in odd {
            for at in 0..3 {
                let mut spares = fine.to_vec();
                spares.insert(at, (odd, false));
                let others: Vec<u32> = (0..3).filter(|page| *page != at as u32).collect();
                assert_eq!(kept(&spares), Ok((others, 1)), "{odd:?} at {at}");
                spares[at].1 = true;
                assert_eq!(kept(&spares), Err(at as u32), "{odd:?} at {at}, of another image");
            }
        }
    }

    #[test]
    fn of_two_pages_the_one_that_can_be_read_is_right() {
        assert_eq!(kept(&[(spare(1, 0, 3), true), (spare(2, 1, 4), false)]), Ok(([0].to_vec(), 1)));
        assert_eq!(kept(&[(spare(1, 0, 3), false), (spare(2, 1, 4), true)]), Ok(([1].to_vec(), 1)));
        assert_eq!(kept(&[(spare(1, 0, 3), false), (spare(2, 1, 4), false)]), Ok((Vec::new(), 2)));
        assert_eq!(kept(&[(spare(1, 0, 3), true), (spare(2, 1, 4), true)]), Err(1));
        // The same values, one of them no page of this disk.
        assert_eq!(kept(&[(spare(1, 0, 3), true), (spare(2, DISK, 3), false)]), Ok(([0].to_vec(), 1)));
    }

    #[test]
    fn what_was_found_out_before_outvotes_pages_that_nobody_wrote() {
        let known = Some(common_of(&spare(1, 0, 3)));
        assert_eq!(kept_of(known, &[(spare(9, 1, 4), false)]), Ok((Vec::new(), 1)));
        assert_eq!(kept_of(known, &[(spare(9, 1, 4), true)]), Err(0));
        assert_eq!(kept_of(known, &[(spare(8, 0, 4), false), (spare(9, 1, 4), false)]), Ok((Vec::new(), 2)));
        assert_eq!(kept_of(known, &[(spare(9, 1, 4), false), (spare(2, 1, 3), false)]), Ok(([1].to_vec(), 1)));
        assert_eq!(kept_of(known, &[]), Ok((Vec::new(), 0)));
    }

    #[test]
    fn a_number_counts_if_the_page_that_says_it_can_be_read() {
        let says = |aux: u32, seq| Spare { aux, ..spare(seq, 0, 3) };
        let largest_of = |pages: &[(Spare, bool)]| {
            let (mut flash, found) = block(pages);
            let number = largest(&mut flash, &found, |spare| spare.aux.into()).unwrap();
            (number, flash.counts().total().reads)
        };
        assert_eq!(largest_of(&[(says(5, 1), true), (says(9, 2), true)]), (9, 1));
        assert_eq!(largest_of(&[(says(5, 1), true), (says(9, 2), false), (says(7, 3), false)]), (5, 3));
        assert_eq!(largest_of(&[(says(9, 1), false), (says(0, 2), true)]), (0, 1));
        assert_eq!(largest_of(&[]), (0, 0));
    }

    #[test]
    fn many_that_nobody_wrote_are_fewer_than_two_that_somebody_did() {
        let mut spares: Vec<_> = (10..15).map(|wear| (spare(u64::from(wear), 5, wear), false)).collect();
        spares.extend([(spare(1, 0, 3), false), (spare(2, 1, 3), true)]);
        assert_eq!(kept(&spares), Ok(([5, 6].to_vec(), 5)));
    }

    #[test]
    fn a_page_that_cannot_be_read_burns_a_number_only_near_the_newest() {
        assert_eq!(burned(100, []), 100);
        assert_eq!(burned(100, [101, 7, 103]), 103);
        assert_eq!(burned(100, [101, Spare::SEQ_END / 2 - 1]), 101);
    }
}
