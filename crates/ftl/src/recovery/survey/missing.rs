//! What cannot be read in blocks that were read whole, and which pages of metadata may be missing,
//! of those that were complete once.

use super::{BlockInfo, FoundPage, Survey};
use crate::contract::FtlError;
use crate::flash::Flash;
use alloc::vec::Vec;
use nand::{BlockId, Nand, PageKind, Ppn, Spare};

/// A block of metadata of which a page cannot be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Broken {
    pub(super) block: BlockId,
    kind: PageKind,
    /// A page behind it was programmed later and can be read: no power cut tore it.
    inside: bool,
    /// Sequence number of the last page that can be read.
    last_seq: u64,
    /// The spare area of the page that cannot be read, if it is one and its spare area can.
    only: Option<Spare>,
}

impl Survey {
    /// Takes note of a block whose last page with a readable spare area is `last`; `inside` if a
    /// page of it cannot be read, and `only` if that is one whose spare area can be.
    fn note_broken(&mut self, block: BlockId, inside: Option<bool>, last: Spare, only: Option<Spare>) {
        if last.kind == PageKind::Translation {
            self.newest_translation = self.newest_translation.max(last.seq);
        }
        if let Some(inside) = inside.filter(|_| last.kind != PageKind::User) {
            self.broken.push(Broken { block, kind: last.kind, inside, last_seq: last.seq, only });
        }
    }

    /// Takes note of what cannot be read in a block that was read whole.
    pub(super) fn note_damage(&mut self, block: BlockId, found: &[FoundPage], torn: &[FoundPage], illegible: &[Ppn]) {
        let Some(&(last, spare)) = found.iter().chain(torn).max_by_key(|(ppn, _)| *ppn) else { return };
        let broken = !illegible.is_empty() || !torn.is_empty();
        let behind = found.last().map_or(0, |(ppn, _)| ppn.0 + 1);
        let trailing = illegible.iter().chain(torn.iter().map(|(ppn, _)| ppn)).filter(|ppn| ppn.0 >= behind);
        // One page at the end may be what a cut tore. Of two, the first was complete.
        let inside = illegible.first().is_some_and(|ppn| *ppn < last) || trailing.count() > 1;
        let only = match torn {
            [(_, spare)] if illegible.is_empty() => Some(*spare),
            _ => None,
        };
        self.note_broken(block, broken.then_some(inside), spare, only);
        if inside {
            self.pitted.push(block);
        }
    }

    /// A block that misses a page of metadata which may have been complete once, among those read
    /// whole.
    ///
    /// What a cut tore is the last page of the youngest block. Of translation pages that one is not
    /// missed even if it was complete: its entries were only in RAM when the page before it was
    /// written, and are found as such. A page of the validity store can be the last of a run that
    /// superseded others, so each is missed.
    #[must_use]
    pub fn missed(&self) -> Option<BlockId> {
        let missed = |broken: &&Broken| {
            broken.kind != PageKind::Translation || broken.inside || broken.last_seq < self.newest_translation
        };
        self.broken.iter().find(missed).map(|broken| broken.block).or(self.emptied.first().copied())
    }

    /// Whether a translation page may be missing that was complete once: as [`Survey::missed`], or
    /// in a block of which nothing can be read. `versions` are the translation pages that can be
    /// read: what a younger version of the same page replaced is not missed.
    #[must_use]
    pub fn misses_translation_pages(&self, versions: &[FoundPage]) -> bool {
        let replaced = |broken: &Broken| {
            let younger = |lost: Spare| versions.iter().any(|(_, spare)| spare.tag == lost.tag && spare.seq > lost.seq);
            broken.kind == PageKind::Translation && !broken.inside && broken.only.is_some_and(younger)
        };
        let missed = |broken: &Broken| {
            broken.kind == PageKind::Translation && (broken.inside || broken.last_seq < self.newest_translation)
        };
        debug_assert!(versions.iter().all(|(_, spare)| spare.kind == PageKind::Translation));
        let is_replaced = |block: &BlockId| self.broken.iter().any(|broken| broken.block == *block && replaced(broken));
        self.broken.iter().any(|broken| missed(broken) && !replaced(broken))
            || self.illegible.iter().any(|block| !is_replaced(block))
    }

    /// Whether a translation page that cannot be read was not the page programmed last, so that its
    /// entries may be older than any window of updates. `versions` are the translation pages that
    /// can be read.
    ///
    /// Of a page whose spare area cannot be read, the numbers say so: one is missing among those
    /// younger than the page before it.
    ///
    /// # Errors
    /// As [`Survey::read_block`].
    pub fn misses_younger<N: Nand>(&mut self, flash: &mut Flash<N>, versions: &[FoundPage]) -> Result<bool, FtlError> {
        let broken = self.broken.iter().filter(|broken| broken.kind == PageKind::Translation);
        let Some(before) = broken.map(|broken| broken.last_seq).min() else { return Ok(false) };
        let (mut found, _) = self.programmed_last(flash, None, before, false)?;
        found.extend(versions);
        let newest = found.iter().map(|(_, spare)| spare.seq).max().unwrap_or(0);
        found.extend(&self.torn);
        let mut seqs: Vec<u64> = found.iter().map(|(_, spare)| spare.seq).collect();
        seqs.retain(|seq| (before + 1..=newest).contains(seq));
        seqs.sort_unstable();
        seqs.dedup();
        let outlived = |spare: &Spare| spare.kind == PageKind::Translation && spare.seq < newest;
        Ok(self.torn.iter().any(|(_, spare)| outlived(spare)) || seqs.len() as u64 != newest.saturating_sub(before))
    }

    /// Of each block of translation pages with pages that cannot be read: the number in the table
    /// of that page, if it is one and says so.
    pub fn broken_translation(&self) -> impl Iterator<Item = Option<u32>> {
        let broken = self.broken.iter().filter(|broken| broken.kind == PageKind::Translation);
        broken.map(|broken| broken.only.map(|spare| spare.tag))
    }

    /// Blocks with a page that cannot be read, and that was not being programmed when power went:
    /// half erased or worn. It may read well another time.
    #[must_use]
    pub fn pitted(&self) -> &[BlockId] {
        debug_assert!(self.pitted.iter().all(|block| self.spoiled.contains(block)));
        &self.pitted
    }

    /// Blocks in which something is and nothing can be read: half erased, or filled with few pages,
    /// all of them lost.
    #[must_use]
    pub fn illegible(&self) -> &[BlockId] {
        &self.illegible
    }

    /// Pages of blocks of host data whose spare area cannot be read, in blocks that were read
    /// whole: nobody knows whose they are.
    #[must_use]
    pub fn mute(&self) -> &[Ppn] {
        &self.mute
    }

    /// Blocks of host data that end with a page of which nothing can be read: a cut may have torn
    /// it, and it may read well another time.
    pub fn ending_mute(&self) -> impl Iterator<Item = BlockId> {
        let pages_per_block = self.pages_per_block;
        let ends = move |(block, info): &(BlockId, &BlockInfo)| {
            self.mute.iter().any(|ppn| ppn.0 + 1 == block.0 * pages_per_block + u32::from(info.programmed))
        };
        self.blocks().filter(ends).map(|(block, _)| block)
    }

    /// Blocks of metadata of which a page cannot be read. They have to go before the next mount
    /// could mistake that for a loss.
    pub fn broken(&self) -> impl Iterator<Item = BlockId> {
        self.broken.iter().map(|broken| broken.block)
    }
}
