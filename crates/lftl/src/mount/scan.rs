//! Reading spare areas: the first of every block, then all behind the marks of a checkpoint.

use crate::bank::{Bank, Use};
use crate::meta::{Kind, MetaPage, NONE};
use crate::save::{Anchor, Mark};
use crate::shape::{Aux, Shape};
use crate::trims::Range;
use nand::{NandError, PageKind, Ppn, Spare};

/// No sequence number is farther beyond a checkpoint's: a million mounts that were cut short take
/// as many, each [`SEQ_MARGIN`](super::SEQ_MARGIN). No card lives to program as many pages.
const SEQ_REACH: u64 = 1 << 40;

/// What the first page of a block says of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    /// Nothing is in the block.
    Erased,
    Spare(Spare),
    /// It cannot be read.
    Unreadable,
}

/// A page of host data that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) lpn: u32,
    pub(super) seq: u64,
    pub(super) moves: u32,
    pub(super) stamp: u32,
    pub(super) ppn: u32,
    /// It was the last page programmed of its block, or nothing else of its block can be read: it
    /// may be torn.
    pub(super) doubtful: bool,
}

/// What was found in a bank.
#[derive(Default)]
pub(super) struct Scan {
    pub(super) candidates: Vec<Candidate>,
    /// Trims, by the sequence number that they outrank.
    pub(super) trims: Vec<(u64, Range)>,
    /// Blocks that were looked at: bank and block.
    pub(super) scanned: Vec<(u32, u32)>,
    pub(super) seq: u64,
    pub(super) stamp: u32,
}

/// Reads the first spare area of every block of a bank.
pub(super) fn first_pages(shape: &Shape, bank: &mut Bank) -> Result<Vec<First>, NandError> {
    (0..shape.blocks)
        .map(|block| match bank.read_spare(Ppn(block * shape.pages_per_block)) {
            Ok(None) => Ok(First::Erased),
            Ok(Some(spare)) => Ok(First::Spare(spare)),
            Err(NandError::Uncorrectable { .. }) => Ok(First::Unreadable),
            Err(error) => Err(error),
        })
        .collect()
}

/// Which pages count: those behind the mark of a checkpoint, or all.
pub(super) struct Behind<'a> {
    anchor: Option<&'a Anchor>,
    mark: Mark,
}

impl<'a> Behind<'a> {
    pub(super) fn of(anchor: Option<&'a Anchor>, bank: u32) -> Self {
        let none = Mark { block: NONE, stamp: 0, next: 0, head: NONE };
        Self { anchor, mark: anchor.map_or(none, |anchor| anchor.marks[bank as usize]) }
    }

    /// Whether some program may have taken a sequence number: a spare area that nobody wrote may
    /// have any.
    fn was_taken(&self, seq: u64) -> bool {
        seq < self.anchor.map_or(Spare::SEQ_END / 2, |anchor| anchor.seq + SEQ_REACH)
    }

    fn counts(&self, block: u32, offset: u32, stamp: u32) -> bool {
        let Some(anchor) = self.anchor else { return true };
        let in_mark = self.mark.block == block && self.mark.stamp == stamp && offset >= self.mark.next;
        stamp > anchor.stamp || in_mark
    }

    /// Whether a block may hold a page that counts.
    pub(super) fn may_hold(&self, block: u32, first: First) -> bool {
        match first {
            First::Erased => false,
            First::Unreadable => true,
            First::Spare(spare) => self.counts(block, u32::MAX, spare.erased_at),
        }
    }
}

/// Reads every spare area that counts of a bank.
pub(super) fn pages(
    shape: &Shape,
    (index, bank): (u32, &mut Bank),
    first: &[First],
    behind: &Behind<'_>,
) -> Result<Scan, NandError> {
    let mut scan = Scan::default();
    let youngest = youngest(first);
    for (block, first) in (0..shape.blocks).zip(first) {
        let skipped = shape.is_anchor(index, block) || bank.blocks[block as usize].used == Use::Bad;
        if skipped || !behind.may_hold(block, *first) {
            continue;
        }
        scan.scanned.push((index, block));
        let spares = spares_of(shape, bank, block)?;
        let doubt_all = behind.anchor.is_some() || youngest.contains(&block);
        read_block(shape, (index, bank), (block, &spares), (behind, doubt_all), &mut scan)?;
    }
    Ok(scan)
}

/// Blocks of a bank that may have been written when power was lost: those opened last.
fn youngest(first: &[First]) -> Vec<u32> {
    const OPEN_MAX: usize = 4;
    let stamp = |(block, first): (u32, &First)| match first {
        First::Spare(spare) => Some((spare.erased_at, block)),
        _ => None,
    };
    let mut stamps: Vec<(u32, u32)> = (0..).zip(first).filter_map(stamp).collect();
    stamps.sort_unstable_by(|a, b| b.cmp(a));
    stamps.into_iter().take(OPEN_MAX).map(|(_, block)| block).collect()
}

type Look = Result<Option<Spare>, ()>;

/// The spare areas of a block, up to its end or the first erased page.
fn spares_of(shape: &Shape, bank: &mut Bank, block: u32) -> Result<Vec<Look>, NandError> {
    let mut spares = Vec::new();
    for offset in 0..shape.pages_per_block {
        spares.push(match bank.read_spare(Ppn(block * shape.pages_per_block + offset)) {
            Ok(spare) => Ok(spare),
            Err(NandError::Uncorrectable { .. }) => Err(()),
            Err(error) => return Err(error),
        });
    }
    while spares.last() == Some(&Ok(None)) {
        spares.pop();
    }
    Ok(spares)
}

/// The stamp and the erase count that most pages of a block agree on, the earliest of equals, and
/// how many do: a spare area that nobody wrote has others.
fn agreed(spares: &[Look]) -> Option<((u32, u32), usize)> {
    let of = |look: &Look| look.ok().flatten().map(|spare| (spare.erased_at, spare.erase_count));
    let votes = |pair: &(u32, u32)| spares.iter().filter(|look| of(look) == Some(*pair)).count();
    // Of equals the last one seen is taken.
    spares.iter().rev().filter_map(of).max_by_key(votes).map(|pair| (pair, votes(&pair)))
}

fn read_block(
    shape: &Shape,
    (index, bank): (u32, &mut Bank),
    (block, spares): (u32, &[Look]),
    (behind, doubt_all): (&Behind<'_>, bool),
    scan: &mut Scan,
) -> Result<(), NandError> {
    let Some((agreed, votes)) = agreed(spares) else { return Ok(()) };
    for (offset, look) in (0..).zip(spares) {
        let Ok(Some(spare)) = *look else { continue };
        let last = offset as usize + 1 == spares.len();
        let doubtful = votes == 1 || last && (doubt_all || offset + 1 < shape.pages_per_block);
        let made_up = agreed != (spare.erased_at, spare.erase_count) || !behind.was_taken(spare.seq);
        if made_up || !behind.counts(block, offset, spare.erased_at) {
            continue;
        }
        if !doubtful {
            scan.seq = scan.seq.max(spare.seq);
            scan.stamp = scan.stamp.max(spare.erased_at);
        }
        let ppn = shape.ppn(index, block, offset);
        match spare.kind {
            PageKind::User => scan.candidates.push(Candidate {
                lpn: spare.tag,
                seq: spare.seq,
                moves: Aux::of(spare.aux).moves,
                stamp: spare.erased_at,
                ppn,
                doubtful,
            }),
            PageKind::Validity => scan.trims.extend(trims(shape, bank, ppn)?),
            PageKind::Checkpoint | PageKind::Translation => {}
        }
    }
    Ok(())
}

/// The trims that a page holds; none if it is torn.
fn trims(shape: &Shape, bank: &mut Bank, ppn: u32) -> Result<Vec<(u64, Range)>, NandError> {
    let mut bytes = vec![0; shape.page_bytes()];
    match bank.read_meta(shape.local(ppn), &mut bytes) {
        Ok(_) => {}
        Err(NandError::Uncorrectable { .. } | NandError::Illegal { .. } | NandError::Erased { .. }) => {
            return Ok(vec![]);
        }
        Err(error) => return Err(error),
    }
    let Some(page) = MetaPage::decode(Kind::Trims, &bytes) else { return Ok(vec![]) };
    let word = |bytes: &[u8]| bytes.try_into().map(u32::from_le_bytes).unwrap_or(0);
    let range = |pair: &[u8]| (page.number, Range { first: word(&pair[..4]), count: word(&pair[4..]) });
    Ok(page.contents.chunks_exact(8).map(range).collect())
}
