//! The full scan: every spare area of the device is read, and the newest copy of each logical page
//! counts.
//!
//! 1. Every page's spare area is read. Those that do not fit are left out ([`plausible`]).
//! 2. A page whose program was cut short is the last of its block, because no block is continued
//!    after a mount. Its spare area may read well and its data not. So the last page of every block
//!    is read whole. If it cannot be, it does not count, unless something was programmed after it
//!    while the disk was in use: then it is worn, and its logical page an error.
//! 3. For each logical page the copy with the largest sequence number is kept.
//! 4. If the table is only in RAM, of pages older than one of the trim map those count that it does
//!    not call trimmed ([`Scan::forget_trimmed`]). A page of the map that cannot be read leaves the
//!    word to the version before it. A logical page that it does not call trimmed, and of which no
//!    copy is found, is lost if the map tells of losses. It is as well if a page that is older than
//!    the map does not say what it holds: half an erase may have shown it to an earlier mount,
//!    and so to the host. Else its trim was not kept, and its block erased.
//! 5. A page that reads well now may fail later, if its program was cut short. It is among the last
//!    pages of blocks, and none older than it was ever the last of a disk in use: the caller
//!    programs those again ([`Scan::doubtful`]).
//! 6. A block with a page that does not count, or that is not filled without gaps, may have been
//!    half erased, or hold a page that shows again later what nobody acknowledged. The caller
//!    erases those before the host reads anything ([`Scan::suspects`]).
//!
//! K·B spare reads, 26.8 minutes at 2 TiB (GeckoFTL, section 2), and K page reads.

use super::copies::read_often;
use super::is_read;
use super::order;
use super::plausible::{self, Misfit};
use super::survey::FoundPage;
use crate::contract::FtlError;
use crate::flash::{Flash, Purpose};
use crate::mapping::LOST;
use crate::mapping::trims::{coverage, in_use_seq, is_page_of_map, tells_losses};
use crate::space::age::aged;
use alloc::vec::Vec;
use nand::{BlockId, Geometry, Lpn, Nand, NandError, PageKind, Ppn, Spare};

/// The newest copy of a logical page.
#[derive(Clone, Copy, Debug)]
pub struct NewestCopy {
    /// Where it is, [`Ppn::NONE`], or [`LOST`].
    pub ppn: Ppn,
    /// Its sequence number.
    pub seq: u64,
}

const NO_COPY: NewestCopy = NewestCopy { ppn: Ppn::NONE, seq: 0 };

/// Sequence number of the page that was programmed while the disk was in use, if only in part, and
/// of which a page is a copy that a mount made before it had settled which pages count. Any other
/// page is its own root. 0 if nobody knows.
///
/// No page older than the newest root is in doubt.
#[must_use]
pub fn root_of(spare: &Spare) -> u64 {
    match spare.kind {
        PageKind::User => aged(spare),
        PageKind::Translation if is_page_of_map(spare) => in_use_seq(spare),
        _ => spare.seq,
    }
}

/// How the mounts of an FTL go about pages in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mounts {
    /// They mark what they program before they have settled which pages count ([`root_of`]), and
    /// keep a trim map.
    Mark,
    /// They do not: of a last page of a block that cannot be read nobody knows whether it was
    /// complete.
    DoNotMark,
}

/// How the last page of a block is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// It is read once. The caller programs again what is in doubt.
    Once,
    /// It is read so often that it fails if its program was cut short: nothing can be programmed.
    Often,
}

/// What a full scan found.
#[derive(Debug)]
pub struct Scan {
    /// The newest copy of every logical page.
    pub copies: Vec<NewestCopy>,
    /// Every version of every translation page.
    pub translation_pages: Vec<FoundPage>,
    /// Last pages of blocks that are as young as the newest root, or younger.
    last: Vec<FoundPage>,
    /// Last pages of blocks whose data cannot be read; whether a page is alone in its block.
    unread: Vec<(FoundPage, bool)>,
    /// Sequence number of the newest [root](root_of), be it there or not.
    in_use_seq: u64,
    /// What the blocks hold that are not erased; [`PageKind::User`] if no page of one can be read.
    kinds: Vec<Option<PageKind>>,
    /// Blocks that may show something else later.
    suspects: Vec<BlockId>,
    /// Sum and number of the erase counts found, for the mean.
    erases: (u64, u32),
    /// Largest sequence number of a page that counts.
    newest_seq: u64,
    /// Sequence numbers of pages whose data cannot be read.
    torn_seqs: Vec<u64>,
    /// Pages that cannot be read, whole or in part: what they show later does not count.
    excluded: Vec<Ppn>,
    /// The smallest sequence number in a block with a page that does not say what it holds.
    silent_since: u64,
    /// Largest device erase count found.
    pub erased_at: u32,
}

/// The trim map as a scan found it.
#[derive(Debug)]
pub struct FoundTrims {
    /// Where the newest readable version of each page is.
    pub pages: Vec<Ppn>,
    /// Sequence numbers of those versions.
    seqs: Vec<u64>,
    /// What those versions say, a bit for each logical page.
    bits: Vec<u8>,
    /// Which of them say that logical pages without a bit and a copy are lost.
    pub tells_losses: Vec<bool>,
    /// Of pages of the map from this sequence number on that holds whatever they say.
    silent_since: u64,
    coverage: u32,
}

impl FoundTrims {
    /// Whether a copy of a logical page with this sequence number is trimmed.
    #[must_use]
    pub fn forget(&self, lpn: Lpn, seq: u64) -> bool {
        self.is_marked(lpn) && seq < self.seqs[(lpn.0 / self.coverage) as usize]
    }

    fn is_marked(&self, lpn: Lpn) -> bool {
        self.bits[lpn.index() / 8] >> (lpn.0 % 8) & 1 == 1
    }

    /// What the table says of a logical page of which there is no copy.
    #[must_use]
    pub fn without_copy(&self, lpn: Lpn) -> Ppn {
        let page = (lpn.0 / self.coverage) as usize;
        let is_there = self.pages[page].is_some() && !self.is_marked(lpn);
        if is_there && (self.tells_losses[page] || self.silent_since < self.seqs[page]) { LOST } else { Ppn::NONE }
    }
}

/// What is wrong with a spare area on a disk of this size, beside its sequence number. A disk with
/// a trim map has no other page of its kind.
fn misfit(spare: &Spare, logical_pages: u32, mounts: Mounts, geometry: &Geometry) -> Option<Misfit> {
    let (structure, reason) = match spare.kind {
        PageKind::User if spare.tag >= logical_pages => {
            ("page of host data", "its logical page lies outside the disk: the device was formatted with another size")
        }
        PageKind::Translation if mounts == Mounts::DoNotMark => return None,
        PageKind::Translation if !is_page_of_map(spare) => {
            ("page of the trim map", "it is a translation page: the device was formatted by another FTL")
        }
        PageKind::Translation if spare.tag >= logical_pages.div_ceil(coverage(geometry)) => {
            ("page of the trim map", "it lies outside the disk: the device was formatted with another size")
        }
        _ => return None,
    };
    Some(Misfit { structure, reason })
}

impl Scan {
    /// Reads every spare area of the device.
    ///
    /// # Errors
    /// [`FtlError::Damaged`] if a page lies outside the logical device, or does not belong to its
    /// block: the image is of another disk. Those of the device, except unreadable pages, which are
    /// counted.
    pub fn run<N: Nand>(
        flash: &mut Flash<N>,
        logical_pages: u32,
        mounts: Mounts,
        look: Look,
    ) -> Result<Self, FtlError> {
        let geometry = *flash.nand().geometry();
        let mut scan = Self {
            copies: alloc::vec![NO_COPY; logical_pages as usize],
            translation_pages: Vec::new(),
            last: Vec::new(),
            unread: Vec::new(),
            in_use_seq: 0,
            kinds: alloc::vec![None; geometry.blocks() as usize],
            suspects: Vec::new(),
            erases: (0, 0),
            newest_seq: 0,
            torn_seqs: Vec::new(),
            excluded: Vec::new(),
            silent_since: u64::MAX,
            erased_at: 0,
        };
        let mut pages = Vec::with_capacity(geometry.pages_per_block() as usize);
        for block in (0..geometry.blocks()).map(BlockId) {
            if !flash.nand().is_bad(block) {
                scan.block(flash, block, (mounts, look), &mut pages)?;
            }
        }
        scan.tell_worn_from_torn(mounts, &geometry);
        scan.prune();
        Ok(scan)
    }

    /// Adds what a block holds.
    fn block<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        block: BlockId,
        (mounts, look): (Mounts, Look),
        pages: &mut Vec<FoundPage>,
    ) -> Result<(), FtlError> {
        let logical_pages = self.copies.len() as u32;
        let before = self.excluded.len();
        let found = read_block(flash, block, (logical_pages, mounts), pages, &mut self.excluded)?;
        if found == Found::Nothing {
            return Ok(());
        }
        if self.excluded.len() > before || found == Found::Gap {
            self.suspects.push(block);
        }
        if self.excluded.len() > before {
            self.silent_since = self.silent_since.min(pages.first().map_or(0, |(_, spare)| spare.seq));
        }
        // Wherever a page of host data lies, it must be moved as one.
        let of_host = pages.iter().any(|(_, spare)| spare.kind == PageKind::User);
        if let Some(&last) = pages.last()
            && !can_be_read(flash, last.0, look)?
        {
            self.unread.push((last, pages.len() == 1));
            pages.pop();
        }
        let kind = if of_host { None } else { pages.first().map(|(_, spare)| spare.kind) };
        self.kinds[block.index()] = Some(kind.unwrap_or(PageKind::User));
        let Some((_, spare)) = pages.first() else { return Ok(()) };
        self.erases.0 += u64::from(spare.erase_count);
        self.erases.1 += 1;
        self.erased_at = self.erased_at.max(spare.erased_at);
        debug_assert!(
            pages.iter().all(|(ppn, _)| !self.excluded.contains(ppn)),
            "a page of {block} counts and is excluded"
        );
        pages.iter().for_each(|(ppn, spare)| self.page(*ppn, spare));
        self.last.extend(pages.last());
        if self.last.len() == self.last.capacity() {
            self.prune();
        }
        Ok(())
    }

    fn page(&mut self, ppn: Ppn, spare: &Spare) {
        self.newest_seq = self.newest_seq.max(spare.seq);
        self.in_use_seq = self.in_use_seq.max(root_of(spare));
        match spare.kind {
            PageKind::User => {
                let copy = &mut self.copies[spare.tag as usize];
                if spare.seq > copy.seq {
                    *copy = NewestCopy { ppn, seq: spare.seq };
                }
            }
            PageKind::Translation => self.translation_pages.push((ppn, *spare)),
            PageKind::Validity | PageKind::Checkpoint => {}
        }
    }

    /// Decides which of the last pages of blocks that cannot be read count: those before the newest
    /// root are worn.
    fn tell_worn_from_torn(&mut self, mounts: Mounts, geometry: &Geometry) {
        let unread = core::mem::take(&mut self.unread);
        let (newest, erased_at, logical_pages) = (self.newest_seq, self.erased_at, self.copies.len() as u32);
        // A page that is alone in its block has nothing to fit to.
        let fits = |spare: &Spare, alone: bool| {
            plausible::burned(newest, [spare.seq]) >= spare.seq
                && (!alone || plausible::is_wear(spare, erased_at))
                && misfit(spare, logical_pages, mounts, geometry).is_none()
        };
        for ((_, spare), alone) in &unread {
            if fits(spare, *alone) {
                self.erased_at = self.erased_at.max(spare.erased_at);
                self.in_use_seq = self.in_use_seq.max(root_of(spare));
            }
        }
        for ((ppn, spare), alone) in unread {
            if mounts == Mounts::Mark && fits(&spare, alone) && spare.seq < self.in_use_seq {
                if alone {
                    self.kinds[geometry.block_of(ppn).index()] = Some(spare.kind);
                }
                self.page(ppn, &spare);
            } else {
                self.torn_seqs.push(spare.seq);
                self.exclude(ppn, geometry.block_of(ppn));
            }
        }
    }

    fn exclude(&mut self, ppn: Ppn, block: BlockId) {
        self.excluded.push(ppn);
        if !self.suspects.contains(&block) {
            self.suspects.push(block);
        }
    }

    /// Copies no longer count that a younger page of the trim map calls trimmed.
    ///
    /// # Errors
    /// Those of the device, except unreadable pages, which are counted.
    pub fn forget_trimmed<N: Nand>(&mut self, flash: &mut Flash<N>) -> Result<FoundTrims, FtlError> {
        let geometry = *flash.nand().geometry();
        let mut versions = core::mem::take(&mut self.translation_pages);
        versions.retain(|(_, spare)| is_page_of_map(spare));
        order::by_tag(&mut versions);
        let coverage = coverage(&geometry);
        let count = self.copies.len().div_ceil(coverage as usize);
        debug_assert!(versions.iter().all(|(_, spare)| (spare.tag as usize) < count || !is_page_of_map(spare)));
        let bytes = geometry.page_bytes() as usize;
        let mut trims = FoundTrims {
            pages: alloc::vec![Ppn::NONE; count],
            seqs: alloc::vec![0; count],
            bits: alloc::vec![0; count * bytes],
            tells_losses: alloc::vec![false; count],
            silent_since: self.silent_since,
            coverage,
        };
        let mut buffer = alloc::vec![0; bytes];
        for (ppn, spare) in versions {
            let at = spare.tag as usize;
            if trims.pages[at].is_some() {
                continue;
            }
            match flash.read_meta(Purpose::Recovery, ppn, &mut buffer) {
                Ok(_) => {
                    (trims.pages[at], trims.seqs[at], trims.tells_losses[at]) = (ppn, spare.seq, tells_losses(&spare));
                    trims.bits[at * bytes..][..bytes].copy_from_slice(&buffer);
                }
                Err(NandError::Uncorrectable { .. } | NandError::Erased { .. }) => {
                    self.exclude(ppn, geometry.block_of(ppn));
                }
                Err(error) => return Err(error.into()),
            }
        }
        for (lpn, copy) in (0..).map(Lpn).zip(&mut self.copies) {
            if trims.forget(lpn, copy.seq) {
                *copy = NO_COPY;
            }
            if !copy.ppn.is_some() {
                copy.ppn = trims.without_copy(lpn);
            }
        }
        Ok(trims)
    }

    /// Forgets last pages that are too old to be in doubt.
    fn prune(&mut self) {
        let oldest = self.in_use_seq;
        let matters = |spare: &Spare| spare.kind == PageKind::User || is_page_of_map(spare);
        self.last.retain(|(_, spare)| spare.seq >= oldest && matters(spare));
    }

    /// The pages that may fail later although they read well now, of those that are the newest
    /// version of what they hold: first those of host data, then those of the trim map. Of each,
    /// the one programmed last comes first.
    #[must_use]
    pub fn doubtful(&self, trims: &FoundTrims) -> Vec<FoundPage> {
        self.last_pages(trims, true)
    }

    /// Those of which there is a newer version.
    #[must_use]
    pub fn superseded(&self, trims: &FoundTrims) -> Vec<FoundPage> {
        self.last_pages(trims, false)
    }

    fn last_pages(&self, trims: &FoundTrims, newest: bool) -> Vec<FoundPage> {
        let present = |(_, spare): &FoundPage| match spare.kind {
            PageKind::User => self.copy_of(Lpn(spare.tag)),
            _ => trims.pages[spare.tag as usize],
        };
        let counts = |(ppn, _): &FoundPage| !self.excluded.contains(ppn);
        let mut pages: Vec<FoundPage> =
            self.last.iter().filter(|page| counts(page) && (present(page) == page.0) == newest).copied().collect();
        pages.sort_unstable_by_key(|(_, spare)| (spare.kind != PageKind::User, u64::MAX - spare.seq));
        pages
    }

    /// Sequence number of the newest [root](root_of), be it there or not.
    #[must_use]
    pub const fn in_use_seq(&self) -> u64 {
        self.in_use_seq
    }

    /// Pages that cannot be read, whole or in part, and do not count.
    #[must_use]
    pub fn excluded(&self) -> &[Ppn] {
        &self.excluded
    }

    /// Blocks with a page that may show something else later.
    #[must_use]
    pub fn suspects(&self) -> &[BlockId] {
        &self.suspects
    }

    /// A sequence number larger than any that a page of the device may carry, but for pages of
    /// which nothing could be read: one of them may have burned the number that is left out.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        plausible::burned(self.newest_seq, self.torn_seqs.iter().copied()) + 2
    }

    /// What a block holds; `None` if every page of it reads as erased, [`PageKind::User`] if none
    /// can be read.
    #[must_use]
    pub fn kind(&self, block: BlockId) -> Option<PageKind> {
        self.kinds[block.index()]
    }

    /// Erases of a block on average.
    #[must_use]
    pub fn mean_erases(&self) -> u32 {
        (self.erases.0 / u64::from(self.erases.1.max(1))) as u32
    }

    /// Where a logical page is.
    #[must_use]
    pub fn copy_of(&self, lpn: Lpn) -> Ppn {
        self.copies[lpn.index()].ppn
    }

    /// The whole table.
    #[must_use]
    pub fn into_table(self) -> Vec<Ppn> {
        self.copies.into_iter().map(|copy| copy.ppn).collect()
    }
}

/// What the pages of a block look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// All are erased.
    Nothing,
    /// None that is not erased comes behind one that is, which comes behind one that is not.
    Pages,
    /// One does.
    Gap,
}

/// Reads the spare areas of a block of a disk of so many logical pages, in order; pages of which it
/// cannot be read, or that do not fit, are `excluded`.
///
/// # Errors
/// As [`Scan::run`].
pub fn read_block<N: Nand>(
    flash: &mut Flash<N>,
    block: BlockId,
    (logical_pages, mounts): (u32, Mounts),
    pages: &mut Vec<FoundPage>,
    excluded: &mut Vec<Ppn>,
) -> Result<Found, FtlError> {
    let geometry = *flash.nand().geometry();
    let (mut found, mut behind) = (Found::Nothing, false);
    pages.clear();
    for ppn in (0..geometry.pages_per_block()).map(|offset| geometry.page_at(block, offset)) {
        match flash.read_spare(Purpose::Recovery, ppn) {
            Ok(None) => {
                behind = found != Found::Nothing;
                continue;
            }
            Ok(Some(spare)) => pages.push((ppn, spare)),
            Err(NandError::Uncorrectable { .. }) => excluded.push(ppn),
            Err(error) => return Err(error.into()),
        }
        found = if behind { Found::Gap } else { Found::Pages };
    }
    plausible::keep(flash, pages, excluded, None, |spare| misfit(spare, logical_pages, mounts, &geometry))?;
    Ok(found)
}

fn can_be_read<N: Nand>(flash: &mut Flash<N>, ppn: Ppn, look: Look) -> Result<bool, FtlError> {
    let outcome = match look {
        Look::Once => flash.probe(Purpose::Recovery, ppn).map(drop),
        Look::Often => read_often(flash, ppn),
    };
    is_read(outcome)
}

/// The newest page that holds a logical page, but for those that are `excluded`; whether it was
/// programmed last of its block. What cannot be read is excluded from now on.
///
/// # Errors
/// As [`Scan::run`].
pub fn newest_but<N: Nand>(
    flash: &mut Flash<N>,
    logical_pages: u32,
    lpn: Lpn,
    excluded: &mut Vec<Ppn>,
) -> Result<Option<(FoundPage, bool)>, FtlError> {
    let geometry = *flash.nand().geometry();
    let mut newest: Option<(FoundPage, bool)> = None;
    let mut pages = Vec::new();
    for block in (0..geometry.blocks()).map(BlockId) {
        if flash.nand().is_bad(block) {
            continue;
        }
        read_block(flash, block, (logical_pages, Mounts::Mark), &mut pages, excluded)?;
        let of_block = excluded.iter().filter(|ppn| geometry.block_of(**ppn) == block);
        let end = of_block.chain(pages.last().map(|(ppn, _)| ppn)).max().copied();
        for page in pages.iter().filter(|(_, spare)| spare.kind == PageKind::User && spare.tag == lpn.0) {
            let counts = newest.is_none_or(|((_, newest), _)| page.1.seq > newest.seq) && !excluded.contains(&page.0);
            if counts {
                newest = Some((*page, Some(page.0) == end));
            }
        }
    }
    Ok(newest)
}

#[cfg(test)]
mod tests;
