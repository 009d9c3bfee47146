//! The full scan: every spare area of the device is read, and the newest copy of each logical page counts.
//!
//! 1. Every page's spare area is read; for each logical page the copy with the largest sequence number is kept.
//! 2. A page whose program was cut short is the last one programmed in its block for ever, because no block is continued
//!    after a mount; its spare area may read well and its data not. So the last page of every block is read whole, and
//!    does not count if it cannot be. This is done at every mount, as such a page stays until its block is erased.
//! 3. The page with the largest sequence number of all may be one that reads now and not later: the caller copies it.
//! 4. If the table is only in RAM, of pages older than one of the trim map those count that it does
//!    not call trimmed ([`Scan::forget_trimmed`]). A page of the map that cannot be read leaves the
//!    word to the version before it.
//! 5. The next sequence number leaves one out, because a torn page that cannot be read may have
//!    burned it.
//!
//! K·B spare reads, 26.8 minutes at 2 TiB (GeckoFTL, section 2), and K page reads.

use crate::contract::FtlError;
use crate::flash::{Flash, Purpose};
use crate::mapping::trims::{MARK, coverage};
use crate::recovery::check_seq;
use alloc::vec::Vec;
use nand::{BlockId, Lpn, Nand, NandError, PageKind, Ppn, Spare};

/// The newest copy of a logical page.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    /// Where it is, or [`Ppn::NONE`].
    pub ppn: Ppn,
    /// Its sequence number.
    pub seq: u64,
}

const NO_COPY: Copy = Copy { ppn: Ppn::NONE, seq: 0 };

/// What a full scan found.
#[derive(Debug)]
pub struct Scan {
    /// The newest copy of every logical page.
    pub copies: Vec<Copy>,
    /// Every version of every translation page.
    pub translation_pages: Vec<(Ppn, Spare)>,
    /// The page with the largest sequence number, and its spare area.
    newest: Option<(Ppn, Spare)>,
    /// What the blocks hold that are not erased; [`PageKind::User`] if no page of one can be read.
    kinds: Vec<Option<PageKind>>,
    /// Sum and number of the erase counts found, for the mean.
    erases: (u64, u32),
    /// Largest sequence number of a page that ends a block, readable or not.
    burned_seq: u64,
    /// Largest device erase count found.
    pub erased_at: u32,
    /// Pages that could not be read.
    pub unreadable: u64,
}

/// The trim map as a scan found it.
#[derive(Debug)]
pub struct FoundTrims {
    /// Where the newest readable version of each page is.
    pub pages: Vec<Ppn>,
    /// Older versions of the page programmed last, if that is of the map.
    pub older: Vec<Ppn>,
}

impl Scan {
    /// Reads every spare area of the device.
    ///
    /// # Errors
    /// [`FtlError::Damaged`] if a page of host data lies outside the logical device: the image was made with another size.
    /// Those of the device, except unreadable pages, which are counted.
    pub fn run<N: Nand>(flash: &mut Flash<N>, logical_pages: u32) -> Result<Self, FtlError> {
        let geometry = *flash.nand().geometry();
        let mut scan = Self {
            copies: alloc::vec![NO_COPY; logical_pages as usize],
            translation_pages: Vec::new(),
            newest: None,
            kinds: alloc::vec![None; geometry.blocks() as usize],
            erases: (0, 0),
            burned_seq: 0,
            erased_at: 0,
            unreadable: 0,
        };
        for block in (0..geometry.blocks()).map(BlockId) {
            if flash.nand().is_bad(block) {
                continue;
            }
            scan.block(flash, block)?;
        }
        Ok(scan)
    }

    fn block<N: Nand>(&mut self, flash: &mut Flash<N>, block: BlockId) -> Result<(), FtlError> {
        let geometry = *flash.nand().geometry();
        let mut last: Option<(Ppn, Spare)> = None;
        let mut used = false;
        for offset in 0..geometry.pages_per_block() {
            let ppn = geometry.page_at(block, offset);
            match flash.read_spare(Purpose::Recovery, ppn) {
                Ok(None) => {}
                Ok(Some(spare)) => {
                    check_seq(ppn, spare.seq)?;
                    let kind = self.kinds[block.index()].get_or_insert(spare.kind);
                    if spare.kind == PageKind::User {
                        // Wherever a page of host data lies, it must be moved as one.
                        *kind = PageKind::User;
                    }
                    if let Some((ppn, spare)) = last.replace((ppn, spare)) {
                        self.page(ppn, &spare)?;
                    }
                }
                Err(NandError::Uncorrectable { .. }) => {
                    self.unreadable += 1;
                    used = true;
                }
                Err(error) => return Err(error.into()),
            }
        }
        if used {
            self.kinds[block.index()].get_or_insert(PageKind::User);
        }
        let Some((ppn, spare)) = last else { return Ok(()) };
        self.erases.0 += u64::from(spare.erase_count);
        self.erases.1 += 1;
        self.erased_at = self.erased_at.max(spare.erased_at);
        self.burned_seq = self.burned_seq.max(spare.seq);
        match flash.probe(Purpose::Recovery, ppn) {
            Ok(_) => self.page(ppn, &spare),
            Err(NandError::Uncorrectable { .. }) => {
                self.unreadable += 1;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn page(&mut self, ppn: Ppn, spare: &Spare) -> Result<(), FtlError> {
        if spare.kind == PageKind::User {
            let Some(copy) = self.copies.get_mut(spare.tag as usize) else {
                let reason = "its logical page lies outside the disk: the device was formatted with another size";
                return Err(FtlError::Damaged { structure: "page of host data", ppn, reason });
            };
            if spare.seq > copy.seq {
                *copy = Copy { ppn, seq: spare.seq };
            }
        }
        if spare.kind == PageKind::Translation {
            self.translation_pages.push((ppn, *spare));
        }
        if self.newest.as_ref().is_none_or(|(_, newest)| spare.seq > newest.seq) {
            self.newest = Some((ppn, *spare));
        }
        Ok(())
    }

    /// Copies no longer count that a younger page of the trim map calls trimmed.
    ///
    /// # Errors
    /// [`FtlError::Damaged`] if the map is of a larger disk; those of the device, except unreadable pages.
    pub fn forget_trimmed<N: Nand>(&mut self, flash: &mut Flash<N>) -> Result<FoundTrims, FtlError> {
        let geometry = *flash.nand().geometry();
        let mut versions = core::mem::take(&mut self.translation_pages);
        versions.retain(|(_, spare)| spare.aux == MARK);
        versions.sort_unstable_by_key(|(_, spare)| (spare.tag, u64::MAX - spare.seq));
        let mut parts: Vec<&mut [Copy]> = self.copies.chunks_mut(coverage(&geometry) as usize).collect();
        let mut pages = alloc::vec![Ppn::NONE; parts.len()];
        let mut buffer = alloc::vec![0; geometry.page_bytes() as usize];
        for (ppn, spare) in &versions {
            let at = spare.tag as usize;
            let (Some(page), Some(copies)) = (pages.get_mut(at), parts.get_mut(at)) else {
                let reason = "it lies outside the disk: the device was formatted with another size";
                return Err(FtlError::Damaged { structure: "page of the trim map", ppn: *ppn, reason });
            };
            if page.is_some() {
                continue;
            }
            match flash.read_meta(Purpose::Recovery, *ppn, &mut buffer) {
                Ok(_) => *page = *ppn,
                Err(NandError::Uncorrectable { .. }) => {
                    self.unreadable += 1;
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            for (index, copy) in copies.iter_mut().enumerate() {
                if buffer[index / 8] >> (index % 8) & 1 == 1 && copy.seq < spare.seq {
                    *copy = NO_COPY;
                }
            }
        }
        let last = self.newest.filter(|(_, spare)| spare.kind == PageKind::Translation);
        let older = versions.iter().filter(|(ppn, spare)| last.is_some_and(|l| l.1.tag == spare.tag && l.0 != *ppn));
        Ok(FoundTrims { pages, older: older.map(|(ppn, _)| *ppn).collect() })
    }

    /// The page programmed last, with its spare area.
    #[must_use]
    pub const fn last_programmed(&self) -> Option<(Ppn, Spare)> {
        self.newest
    }

    /// A sequence number larger than any that a page of the device may carry.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.newest.map_or(0, |(_, spare)| spare.seq).max(self.burned_seq) + 2
    }

    /// What a block holds; `None` if every page of it reads as erased, [`PageKind::User`] if none can be read.
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
