//! What RAM knows when a page of metadata cannot be read while power is on.
//!
//! A rebuild finds pages of host data by their spare areas. Of one whose spare area cannot be read
//! they do not say whose it was, and an older copy of that logical page would pass for the present
//! one. RAM says more:
//! 1. An entry that is cached is right. If its page is not found, the logical page is lost.
//! 2. A translation page is the newest if the directory names it, and if it can be read its entries
//!    are right.
//! 3. Of a logical page about which neither says anything, the present copy is one that the store
//!    does not know as dead. If none is found, it was trimmed or never written, or its copy is
//!    among those of which nobody knows whose they are ([`Findings::unclaimed`]). As long as there
//!    are such, it counts as lost.

use super::findings::{FLUSH_SLACK, Findings, HostCopy};
use super::in_doubt::Doubt;
use super::{Flash, Lpn, Nand, PageFtl};
use crate::contract::FtlError;
use crate::flash::Purpose;
use crate::mapping::cached::CachedMap;
use crate::mapping::{LOST, is_page};
use crate::recovery::survey::Survey;
use crate::space::blocks::BlockState;
use crate::space::core::Core;
use crate::space::deaths::{Death, Was};
use crate::validity::PageSet;
use crate::validity::gecko::Gecko;
use alloc::vec::Vec;
use nand::{BlockId, Geometry, NandError, PageKind, Ppn, Spare};

/// What RAM knew before a rebuild began.
#[derive(Debug)]
pub(super) struct Known {
    /// Cached entries, by logical page.
    entries: Vec<(Lpn, Ppn)>,
    /// Where the newest version of each translation page was.
    gmd: Vec<Ppn>,
    /// What is programmed later carries this sequence number at least.
    seq: u64,
    /// Pages that the validity store knew as dead; `None` if it could not be read.
    dead: Option<PageSet>,
    /// Blocks that held host data.
    host: Vec<BlockId>,
}

impl Known {
    /// Reads the validity store once.
    pub(super) fn of<N: Nand>(ftl: &mut PageFtl<N, CachedMap, Gecko>) -> Self {
        let geometry = *ftl.core.space.geometry();
        let core = &mut ftl.core;
        let mut dead = PageSet::new(geometry.pages());
        let unheard: Vec<BlockId> = core.newly_erased.iter().map(|(block, _)| *block).collect();
        let read = ftl.validity.for_each_block(core, Purpose::Recovery, |block, set| {
            // What it knows of a block is of before its last erase, unless it was told of that.
            let known = (0..geometry.pages_per_block()).filter(|offset| set.contains(*offset));
            known
                .filter(|_| !unheard.contains(&block))
                .for_each(|offset| dead.insert(geometry.page_at(block, offset).0));
        });
        let of_host = |death: &&Death| matches!(death.was, Was::Host | Was::Abandoned | Was::Uncounted);
        core.deaths.untold().iter().filter(of_host).for_each(|death| dead.insert(death.ppn.0));
        let holds_host = |block: &BlockId| {
            let state = core.space.state(*block);
            core.space.kind(*block) == PageKind::User && matches!(state, BlockState::Closed | BlockState::Active)
        };
        let entries = ftl.mapping.cached_entries();
        debug_assert!(entries.is_sorted_by(|a, b| a.0 < b.0), "entries are looked up by logical page");
        Self {
            entries,
            gmd: ftl.mapping.directory().to_vec(),
            seq: core.seq,
            dead: read.is_ok().then_some(dead),
            host: (0..geometry.blocks()).map(BlockId).filter(holds_host).collect(),
        }
    }

    /// Whether the store knew a page as dead.
    pub(super) fn is_dead(&self, ppn: Ppn) -> bool {
        self.dead.as_ref().is_some_and(|dead| dead.contains(ppn.0))
    }

    fn cached(&self, lpn: Lpn) -> Option<Ppn> {
        self.entries.binary_search_by_key(&lpn, |entry| entry.0).ok().map(|at| self.entries[at].1)
    }

    /// Whether the newest version of a translation page is missing, if this is what was found.
    fn misses(&self, page: usize, at: Ppn, written: u64) -> bool {
        self.gmd[page] != at && written < self.seq
    }

    /// Whether the present copy of a logical page is none of these.
    fn misses_copy(&self, lpn: Lpn, entry: Ppn, of_page: &[HostCopy], unclaimed: bool) -> bool {
        let found = |is_it: &dyn Fn(Ppn) -> bool| of_page.iter().any(|copy| copy.seq >= self.seq || is_it(copy.ppn));
        match self.cached(lpn) {
            Some(LOST) => !found(&|_| false),
            Some(ppn) if is_page(ppn) => entry != ppn && !found(&|copy| copy == ppn),
            Some(_) => false,
            None => unclaimed && !found(&|copy| self.dead.is_some() && !self.is_dead(copy)),
        }
    }
}

/// What the validity store knew when it was flushed last.
#[derive(Debug)]
pub(super) struct Reported {
    geometry: Geometry,
    dead: PageSet,
    flushed: u64,
}

impl Reported {
    /// Reads the store once; `None` if it cannot be read.
    pub(super) fn of<N: Nand>(core: &mut Core<N>, gecko: &mut Gecko) -> Option<Self> {
        let (geometry, flushed) = (*core.space.geometry(), gecko.last_flush_seq());
        let mut dead = PageSet::new(geometry.pages());
        let read = gecko.for_each_block(core, Purpose::Recovery, |block, set| {
            let known = (0..geometry.pages_per_block()).filter(|offset| set.contains(*offset));
            known.for_each(|offset| dead.insert(geometry.page_at(block, offset).0));
        });
        read.ok().map(|()| Self { geometry, dead, flushed })
    }

    /// Whether a page with this spare area was dead then; `None` if it was programmed or its block
    /// erased later, or nearly.
    pub(super) fn is_dead(&self, survey: &Survey, ppn: Ppn, spare: &Spare) -> Option<bool> {
        let info = survey.block(self.geometry.block_of(ppn))?;
        let known = info.first_seq < self.flushed && spare.seq + FLUSH_SLACK < self.flushed;
        known.then(|| self.dead.contains(ppn.0))
    }
}

impl Findings {
    /// Translation pages of which the newest version is missing, if pages of host data that may
    /// live in the eyes of the store cannot be read and nothing says whose they are: any logical
    /// page of these can be theirs.
    pub(super) fn unclaimed<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        survey: &Survey,
        (known, doubt): (&Known, &Doubt<'_>),
        buffer: &mut [u8],
    ) -> Result<Vec<usize>, FtlError> {
        let geometry = *flash.nand().geometry();
        let mut unclaimed = survey.mute().to_vec();
        for block in survey.illegible().iter().filter(|block| known.host.contains(block)) {
            for ppn in (0..geometry.pages_per_block()).map(|offset| geometry.page_at(*block, offset)) {
                match flash.read_spare(Purpose::Recovery, ppn) {
                    Ok(None) => {}
                    Ok(Some(_)) | Err(NandError::Uncorrectable { .. }) => unclaimed.push(ppn),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        unclaimed.retain(|ppn| !known.is_dead(*ppn) && !known.entries.iter().any(|(_, entry)| entry == ppn));
        let mut missing = Vec::new();
        for page in 0..self.gmd.len() {
            if unclaimed.is_empty() {
                break;
            }
            self.load(flash, page, doubt, buffer)?;
            debug_assert!(self.gmd[page].is_some() == (self.written[page] > 0));
            if known.misses(page, self.gmd[page], self.written[page]) {
                missing.push(page);
            }
            let erased = |ppn: Ppn| {
                let info = survey.block(geometry.block_of(ppn));
                info.is_none_or(|info| info.first_seq > self.written[page])
            };
            for entry in CachedMap::entries(buffer).filter(|entry| entry.0 < geometry.pages()) {
                unclaimed.retain(|ppn| *ppn != entry || erased(entry));
            }
        }
        Ok(if unclaimed.is_empty() { Vec::new() } else { missing })
    }

    /// Takes note of a logical page of which the present copy is not among those found; whether it
    /// is one.
    pub(super) fn note_missing(
        &mut self,
        known: &Known,
        (lpn, entry): (Lpn, Ppn),
        of_page: &[HostCopy],
        unclaimed: bool,
    ) -> bool {
        let missing = known.misses_copy(lpn, entry, of_page, unclaimed);
        if missing {
            self.dead.extend(of_page.iter().map(|copy| copy.ppn));
            self.lost.push(lpn);
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three logical pages in the cache: at page 5, lost, trimmed. Any other is not. Of pages 5 and
    /// 6 only the first is dead in the eyes of the store.
    fn known(is_store_read: bool) -> Known {
        let mut dead = PageSet::new(8);
        dead.insert(5);
        Known {
            entries: [(Lpn(0), Ppn(5)), (Lpn(1), LOST), (Lpn(2), Ppn::NONE)].to_vec(),
            gmd: Vec::new(),
            seq: 100,
            dead: is_store_read.then_some(dead),
            host: Vec::new(),
        }
    }

    fn at(ppn: u32, seq: u64) -> HostCopy {
        HostCopy { lpn: Lpn(0), seq, ppn: Ppn(ppn) }
    }

    #[test]
    fn of_a_cached_page_the_copy_counts_that_the_entry_names_or_that_was_programmed_since() {
        let misses = |entry: u32, found: &[HostCopy]| known(true).misses_copy(Lpn(0), Ppn(entry), found, true);
        assert!(misses(6, &[]) && misses(6, &[at(6, 99)]), "an older copy counts");
        assert!(!misses(5, &[]), "flash names it");
        assert!(!misses(6, &[at(6, 7), at(5, 99)]), "it was found");
        assert!(!misses(6, &[at(6, 100)]), "the rebuild moved it");
    }

    #[test]
    fn what_was_lost_stays_lost_and_what_was_trimmed_is_nowhere_missed() {
        for (ppn, seq, again) in [(5, 99, false), (6, 99, false), (6, 100, true)] {
            let found = [at(ppn, seq)];
            assert_eq!(known(true).misses_copy(Lpn(1), Ppn(6), &found, false), !again, "{found:?}");
            assert!(!known(true).misses_copy(Lpn(2), Ppn(6), &found, true), "{found:?}");
        }
        assert!(known(true).misses_copy(Lpn(1), Ppn(6), &[], false));
    }

    #[test]
    fn of_any_other_page_the_copy_counts_that_does_not_count_as_dead() {
        let misses = |read, found: &[HostCopy], unclaimed| known(read).misses_copy(Lpn(3), Ppn::NONE, found, unclaimed);
        assert!(misses(true, &[], true) && misses(true, &[at(5, 99)], true));
        assert!(!misses(true, &[], false) && !misses(true, &[at(5, 99)], false), "every page says whose it is");
        assert!(!misses(true, &[at(5, 99), at(6, 7)], true), "the store says that it lives");
        assert!(misses(false, &[at(6, 99)], true), "the store says nothing");
        assert!(!misses(false, &[at(6, 100)], true), "it was programmed since");
    }
}
