//! Looking over a device after power loss without reading all of it (GeckoFTL, Appendix C, steps 1,
//! 2 and 6).
//!
//! The paper reads one spare area a block. Two are read here, the first and the last page's: the
//! last says how young the youngest page of a block is, which the first does not if a stream fills
//! its blocks slowly, and whether the block was being filled when power went. A block whose first
//! page reads as erased is looked at where lanes begin their first block, and read whole if
//! anything is there.
//!
//! Of a block that is read whole, the last page that reads as programmed is read with its data: a
//! program that was cut short can leave a good spare area beside data that cannot be read. What the
//! pages of a block carry is remembered: a page that could be read the first time may be missing
//! when the block is read again.

mod last;
mod missing;

use crate::contract::FtlError;
use crate::flash::{Flash, Purpose};
use crate::recovery::last::Last;
use crate::recovery::plausible::{self, Contents};
use crate::recovery::{can_be_read, check_seq};
use crate::space::age::aged;
use alloc::vec::Vec;
use missing::Broken;
use nand::{BlockId, Geometry, Nand, NandError, PageKind, Ppn, Spare};

/// A page found with its spare area.
pub type FoundPage = (Ppn, Spare);

/// What is known of a block in use (an entry of the paper's blocks information directory, BID).
#[derive(Clone, Copy, Debug)]
pub struct BlockInfo {
    /// What its pages hold.
    pub kind: PageKind,
    /// Sequence number of the first page that can be read.
    pub first_seq: u64,
    /// Sequence number of the last page; the largest there is if it is not known.
    pub last_seq: u64,
    /// One more than the offset of the last page that may hold something.
    pub programmed: u16,
    /// Filled from the first page to the last, as far as two pages can say.
    pub whole: bool,
    /// When the contents of the first page were written: before it, if a mount copied the page and
    /// had not settled yet which pages count, or if another program of it failed.
    first_written: u64,
    common: plausible::Common,
}

impl BlockInfo {
    /// Whether no mount that had not settled yet which pages count copied its first page.
    const fn is_of_updates(&self) -> bool {
        self.first_written == self.first_seq
    }

    /// Whether a page of it may carry this sequence number, or a larger one.
    const fn may_reach(&self, seq: u64) -> bool {
        self.last_seq >= seq || !self.whole
    }
}

/// Pages that share a word line at most: of a block in which more cannot be read, the erase was cut
/// short.
const WORD_LINE: u64 = 4;

/// When the contents of a page were written, as its spare area says.
const fn written_seq(spare: &Spare) -> u64 {
    match spare.kind {
        PageKind::User => aged(spare),
        _ => spare.seq,
    }
}

/// What was found on a device.
#[derive(Debug)]
pub struct Survey {
    pages_per_block: u32,
    blocks: Vec<Option<BlockInfo>>,
    newest: Option<FoundPage>,
    erases: (u64, u32),
    erased_at: u32,
    burned_seq: u64,
    /// Pages that count as torn, whatever they answer: some could be read once only.
    excluded: Vec<Ppn>,
    contents: Contents,
    /// What the FTL knows of a page by its spare area, see [`Survey::in_use_seq`].
    root_of: fn(&Spare) -> u64,
    in_use_seq: u64,
    /// Pages alone in their blocks whose data cannot be read.
    alone: Vec<FoundPage>,
    torn: Vec<FoundPage>,
    broken: Vec<Broken>,
    illegible: Vec<BlockId>,
    /// Of the illegible blocks those in which a page was lost that was complete: a cut can have
    /// torn the page after it.
    emptied: Vec<BlockId>,
    mute: Vec<Ppn>,
    spoiled: Vec<BlockId>,
    /// Those of them with such a page that a cut cannot have torn.
    pitted: Vec<BlockId>,
    last: Last,
    /// Sequence number of the youngest translation page that can be read, of those in blocks read
    /// whole.
    newest_translation: u64,
    /// Pages that could not be read.
    pub unreadable: u64,
}

impl Survey {
    /// Reads two spare areas of every block, and more of blocks that were being filled.
    ///
    /// `lanes` is how many blocks a stream fills at once, which says where their first blocks
    /// begin. `excluded` are pages that count as torn, however well they read. A page
    /// that is none of the `contents` is torn, unless its data can be read. `root_of` says for
    /// [`Survey::in_use_seq`] what a page contributes.
    ///
    /// # Errors
    /// Those of the device, except unreadable pages, which are counted. [`FtlError::Damaged`] for a
    /// page that can be read and does not belong where it is.
    pub fn run<N: Nand>(
        flash: &mut Flash<N>,
        lanes: u32,
        excluded: &[Ppn],
        contents: Contents,
        root_of: fn(&Spare) -> u64,
    ) -> Result<Self, FtlError> {
        let geometry = *flash.nand().geometry();
        let mut survey = Self {
            pages_per_block: geometry.pages_per_block(),
            blocks: alloc::vec![None; geometry.blocks() as usize],
            newest: None,
            erases: (0, 0),
            erased_at: 0,
            burned_seq: 0,
            excluded: excluded.to_vec(),
            contents,
            root_of,
            in_use_seq: 0,
            alone: Vec::new(),
            torn: Vec::new(),
            broken: Vec::new(),
            illegible: Vec::new(),
            emptied: Vec::new(),
            mute: Vec::new(),
            spoiled: Vec::new(),
            pitted: Vec::new(),
            last: Last::none(),
            newest_translation: 0,
            unreadable: 0,
        };
        let mut pages = Vec::new();
        for block in (0..geometry.blocks()).map(BlockId) {
            if !flash.nand().is_bad(block) {
                let info = survey.look(flash, block, lanes, &mut pages)?;
                survey.blocks[block.index()] = info;
            }
        }
        survey.find_newest(flash, &mut pages)?;
        // Now that the wear of the others is known, a page alone in its block can be compared with
        // it.
        for (ppn, spare) in survey.alone.clone() {
            let block = geometry.block_of(ppn);
            if survey.fits_alone(&geometry, &spare) && survey.alone.iter().any(|page| page.0 == ppn) {
                survey.alone.retain(|page| page.0 != ppn);
                survey.illegible.retain(|illegible| *illegible != block);
                survey.blocks[block.index()] = survey.look_closely(flash, block, &mut pages)?;
            }
        }
        Ok(survey)
    }

    fn look<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        block: BlockId,
        lanes: u32,
        pages: &mut Vec<FoundPage>,
    ) -> Result<Option<BlockInfo>, FtlError> {
        let geometry = *flash.nand().geometry();
        let end = geometry.pages_per_block();
        let (begin, last) = (geometry.page_at(block, 0), geometry.page_at(block, end - 1));
        let first = self.spare(flash, begin)?;
        let end_spare = if end > 1 { self.spare(flash, last)? } else { first };
        if let (Some(Some(first)), Some(Some(end_spare))) = (first, end_spare) {
            let same = first.kind == end_spare.kind && plausible::common_of(&first) == plausible::common_of(&end_spare);
            let fits = same && [&first, &end_spare].into_iter().all(|spare| self.fits(spare));
            if fits && first.seq <= end_spare.seq && !self.is_excluded(begin) && !self.is_excluded(last) {
                self.believe(begin, &first)?;
                self.believe(last, &end_spare)?;
                self.erases = (self.erases.0 + u64::from(first.erase_count), self.erases.1 + 1);
                debug_assert!(end_spare.seq <= self.burned_seq && end <= u32::from(u16::MAX));
                return Ok(Some(BlockInfo {
                    kind: first.kind,
                    first_seq: first.seq,
                    last_seq: end_spare.seq,
                    programmed: end as u16,
                    whole: true,
                    first_written: written_seq(&first),
                    common: plausible::common_of(&first),
                }));
            }
        }
        if matches!((first, end_spare), (Some(None), Some(None))) {
            let mut blank = true;
            for lane in 1..lanes {
                blank &= matches!(self.spare(flash, geometry.page_at(block, lane * end / lanes))?, Some(None));
            }
            if blank {
                return Ok(None);
            }
        }
        self.look_closely(flash, block, pages)
    }

    /// Reads a block whole; what is known of it then.
    fn look_closely<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        block: BlockId,
        pages: &mut Vec<FoundPage>,
    ) -> Result<Option<BlockInfo>, FtlError> {
        let end = flash.nand().geometry().page_at(block, flash.nand().geometry().pages_per_block() - 1);
        pages.clear();
        let before = self.unreadable;
        let programmed = self.read_block(flash, block, pages)?;
        let Some((_, first)) = pages.first() else {
            if programmed > 0 {
                self.illegible.push(block);
            }
            if (2..=WORD_LINE).contains(&(self.unreadable - before)) {
                self.emptied.push(block);
            }
            return Ok(None);
        };
        if let (Some(mute), Some((before, spare))) = (self.mute.last(), pages.last())
            && (mute.0, block) == (before.0 + 1, flash.nand().geometry().block_of(*mute))
        {
            self.last.propose(*mute, spare.seq);
        }
        debug_assert!(u32::from(programmed) > flash.nand().geometry().offset_of(pages[pages.len() - 1].0));
        let last = pages[pages.len() - 1];
        let filled = u32::from(programmed) == flash.nand().geometry().pages_per_block();
        let last_seq = if !filled || last.0 == end { last.1.seq } else { u64::MAX };
        let common = plausible::common_of(first);
        Ok(Some(BlockInfo {
            kind: first.kind,
            first_seq: first.seq,
            last_seq,
            programmed,
            whole: false,
            first_written: written_seq(first),
            common,
        }))
    }

    /// Sees to it that the page programmed last is known: it can be the last page of a block that
    /// was not read whole.
    fn find_newest<N: Nand>(&mut self, flash: &mut Flash<N>, pages: &mut Vec<FoundPage>) -> Result<(), FtlError> {
        loop {
            let newest = self.newest.map_or(0, |(_, spare)| spare.seq);
            let younger = self.blocks().filter(|(_, info)| info.whole && info.last_seq > newest);
            let Some((block, _)) = younger.max_by_key(|(_, info)| info.last_seq) else { return Ok(()) };
            let before = self.blocks[block.index()];
            let info = self.look_closely(flash, block, pages)?;
            debug_assert!(info.is_none_or(|info| !info.whole), "{block} was read whole and counts as not");
            // It may be whole after all.
            let same = |before: &BlockInfo| info.is_some_and(|info| info.last_seq == before.last_seq);
            self.blocks[block.index()] = before.filter(same).or(info);
        }
    }

    /// A page's spare area, believed or not; `None` if it cannot be read.
    fn spare<N: Nand>(&mut self, flash: &mut Flash<N>, ppn: Ppn) -> Result<Option<Option<Spare>>, FtlError> {
        match flash.read_spare(Purpose::Recovery, ppn) {
            Ok(spare) => Ok(Some(spare)),
            Err(NandError::Uncorrectable { .. }) => {
                self.unreadable += 1;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Takes note of a spare area that fits.
    fn believe(&mut self, ppn: Ppn, spare: &Spare) -> Result<(), FtlError> {
        check_seq(ppn, spare.seq)?;
        self.burned_seq = self.burned_seq.max(spare.seq);
        self.last.note(spare.seq);
        self.in_use_seq = self.in_use_seq.max((self.root_of)(spare));
        self.erased_at = self.erased_at.max(spare.erased_at);
        Ok(())
    }

    fn is_excluded(&self, ppn: Ppn) -> bool {
        self.excluded.contains(&ppn)
    }

    /// Adds every page of a block that counts, in the order of the block; answers one more than the
    /// offset of the last page that is not erased.
    ///
    /// A spare area that does not fit most others of its block belongs to a torn page, and is
    /// ignored. So is the only one of its block if its data cannot be read: nothing says that
    /// somebody wrote it.
    ///
    /// # Errors
    /// Those of the device, except unreadable pages, which are counted and left out.
    /// [`NandError::Uncorrectable`] if the page programmed last could be read before.
    /// [`FtlError::Damaged`] for a page that can be read and does not fit its block.
    pub fn read_block<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        block: BlockId,
        pages: &mut Vec<FoundPage>,
    ) -> Result<u16, FtlError> {
        let geometry = *flash.nand().geometry();
        self.mute.retain(|ppn| geometry.block_of(*ppn) != block);
        self.torn.retain(|(ppn, _)| geometry.block_of(*ppn) != block);
        self.alone.retain(|(ppn, _)| geometry.block_of(*ppn) != block);
        self.broken.retain(|broken| broken.block != block);
        let (mut found, mut illegible, mut end) = (Vec::new(), Vec::new(), 0);
        for offset in 0..geometry.pages_per_block() {
            let ppn = geometry.page_at(block, offset);
            match self.spare(flash, ppn)? {
                Some(None) => continue,
                Some(Some(spare)) => found.push((ppn, spare)),
                None => illegible.push(ppn),
            }
            end = offset as u16 + 1;
        }
        let known = self.block(block).map(|info| info.common);
        if known.is_some() || found.len() > 1 {
            let before = illegible.len();
            let contents = self.contents;
            plausible::keep(flash, &mut found, &mut illegible, known, |spare| contents.misfit(spare))?;
            self.unreadable += (illegible.len() - before) as u64;
        }
        let before = self.torn.len();
        self.set_torn_apart(flash, &mut found, &mut illegible)?;
        illegible.sort_unstable();
        let torn = self.torn.split_off(before);
        self.spoiled.retain(|spoiled| *spoiled != block);
        self.pitted.retain(|pitted| *pitted != block);
        if !illegible.is_empty() || !torn.is_empty() {
            self.spoiled.push(block);
        }
        let failed = torn.iter().map(|(ppn, _)| *ppn).chain(illegible.iter().copied());
        self.excluded.extend(failed.filter(|ppn| !self.excluded.contains(ppn)).collect::<Vec<_>>());
        self.note_damage(block, &found, &torn, &illegible);
        // Also if all of the block could be read before, and not now.
        let before = self.block(block).map(|info| info.kind);
        let kind = found.first().or(torn.last()).map(|(_, spare)| spare.kind).or(before);
        if kind == Some(PageKind::User) {
            self.mute.append(&mut illegible);
        }
        for (ppn, spare) in found.iter().chain(&torn) {
            self.believe(*ppn, spare)?;
        }
        self.torn.extend(torn);
        for page in &found {
            if self.newest.as_ref().is_none_or(|(_, newest)| page.1.seq > newest.seq) {
                self.newest = Some(*page);
            }
        }
        let newest = self.newest.map(|(ppn, _)| ppn).filter(|ppn| geometry.block_of(*ppn) == block);
        if let Some(ppn) = newest.filter(|ppn| !found.iter().any(|(at, _)| at == ppn)) {
            return Err(NandError::Uncorrectable { ppn }.into());
        }
        debug_assert!(found.is_sorted_by(|a, b| a.0 < b.0) && u32::from(end) <= geometry.pages_per_block());
        debug_assert!(found.iter().all(|(_, spare)| spare.seq <= self.burned_seq));
        pages.append(&mut found);
        Ok(end)
    }

    /// Moves the pages of a block that were excluded to the torn ones, and the last of the others
    /// if its data cannot be read. Of a page alone in its block that cannot be read only its wear
    /// says whether somebody wrote its spare area.
    fn set_torn_apart<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        found: &mut Vec<FoundPage>,
        illegible: &mut Vec<Ppn>,
    ) -> Result<(), FtlError> {
        if let [(ppn, spare)] = found[..]
            && !self.fits_alone(flash.nand().geometry(), &spare)
        {
            if self.is_excluded(ppn) || !self.can_be_read(flash, ppn)? {
                found.clear();
                self.alone.push((ppn, spare));
                illegible.push(ppn);
            }
            return Ok(());
        }
        self.torn.extend(found.iter().filter(|(ppn, _)| self.excluded.contains(ppn)));
        found.retain(|(ppn, _)| !self.excluded.contains(ppn));
        let Some(&(last, spare)) = found.last() else { return Ok(()) };
        // One that was complete is worn if it cannot be read, like any other page.
        let complete = spare.kind == PageKind::User && spare.seq < self.in_use_seq;
        if !complete && !self.can_be_read(flash, last)? {
            self.torn.extend(found.pop());
        }
        Ok(())
    }

    /// Whether the data of a page can be read; counted if not.
    fn can_be_read<N: Nand>(&mut self, flash: &mut Flash<N>, ppn: Ppn) -> Result<bool, FtlError> {
        let reads = can_be_read(flash, ppn)?;
        self.unreadable += u64::from(!reads);
        Ok(reads)
    }

    /// Whether a spare area can be one of this disk, by itself.
    fn fits(&self, spare: &Spare) -> bool {
        plausible::is_number(spare.seq) && self.contents.misfit(spare).is_none()
    }

    /// Whether the spare area of a page alone in its block is of the disk, and has the wear that
    /// the block can have, judged by the others.
    fn fits_alone(&self, geometry: &Geometry, spare: &Spare) -> bool {
        let erases = self.erased_at.saturating_add(geometry.blocks());
        spare.seq < self.burned_seq.saturating_add(plausible::NEAR)
            && spare.erased_at <= erases
            && spare.erase_count <= spare.erased_at
            && self.fits(spare)
    }

    /// Pages alone in their blocks whose data cannot be read: nothing says whether somebody wrote
    /// their spare areas.
    #[must_use]
    pub fn alone(&self) -> &[FoundPage] {
        &self.alone
    }

    /// Blocks of which a page cannot be read or was excluded, among those read whole.
    #[must_use]
    pub fn spoiled(&self) -> &[BlockId] {
        &self.spoiled
    }

    /// Whether a page that cannot be read was programmed last, as far as the blocks read whole can
    /// say: what a cut tore. Nothing on flash can name it or depend on it then.
    #[must_use]
    pub fn is_last(&self, ppn: Ppn) -> bool {
        self.broken.is_empty() && self.illegible.is_empty() && self.last.is(ppn, self.burned_seq)
    }

    /// Adds every readable page of all blocks of a kind of which `wanted` is true.
    ///
    /// # Errors
    /// As [`Survey::read_block`].
    pub fn read_kind<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        kind: PageKind,
        wanted: impl Fn(&BlockInfo) -> bool,
    ) -> Result<Vec<FoundPage>, FtlError> {
        let mut pages = Vec::new();
        for index in 0..self.blocks.len() {
            if self.blocks[index].is_some_and(|info| info.kind == kind && wanted(&info)) {
                self.read_block(flash, BlockId(index as u32), &mut pages)?;
            }
        }
        Ok(pages)
    }

    /// What is known of a block; `None` if no page of it can be read as programmed, or if the
    /// device has no such block.
    #[must_use]
    pub fn block(&self, block: BlockId) -> Option<&BlockInfo> {
        self.blocks.get(block.index())?.as_ref()
    }

    /// Blocks in use, with what is known of them.
    pub fn blocks(&self) -> impl Iterator<Item = (BlockId, &BlockInfo)> {
        (0..).map(BlockId).zip(&self.blocks).filter_map(|(block, info)| Some((block, info.as_ref()?)))
    }

    /// The youngest page that was read whole or with its block, and can be read.
    #[must_use]
    pub const fn newest(&self) -> Option<FoundPage> {
        self.newest
    }

    /// Pages whose spare area reads well and whose data does not, in blocks that were read whole:
    /// torn or worn.
    #[must_use]
    pub fn torn(&self) -> &[FoundPage] {
        &self.torn
    }

    /// The largest root of a page whose spare area was read: the sequence number of the page that
    /// was programmed last while the disk was in use, if only in part. Every page older than that
    /// was complete.
    #[must_use]
    pub const fn in_use_seq(&self) -> u64 {
        self.in_use_seq
    }

    /// The largest sequence number of a page whose spare area was read.
    #[must_use]
    pub const fn largest_seq(&self) -> u64 {
        self.burned_seq
    }

    /// A sequence number larger than any that a page of the device may carry.
    ///
    /// A page that cannot be read may carry one that is larger than any found: a mount that was cut
    /// short took the next but one.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        plausible::burned(self.burned_seq, self.alone.iter().map(|(_, spare)| spare.seq)) + 2 + 2 * self.unreadable
    }

    /// Largest device erase count found.
    #[must_use]
    pub const fn erased_at(&self) -> u32 {
        self.erased_at
    }

    /// Erases of a block on average.
    #[must_use]
    pub fn mean_erases(&self) -> u32 {
        (self.erases.0 / u64::from(self.erases.1.max(1))) as u32
    }
}

#[cfg(test)]
mod tests;
