//! Pages that power loss left in doubt, of a table found again by a full scan: what a mount
//! programs before all else.
//!
//! 1. The page programmed last is copied, so that nothing depends on a program that may have been
//!    cut short. If it cannot be read it never counted, and what it superseded is copied, as far as
//!    the trim map lets it count.
//! 2. The same is done with pages that were the last when earlier attempts were cut short. All that
//!    an attempt programs is marked ([`root_of`]). Otherwise the page that a cut tore would not be
//!    the newest any more once an attempt was cut short behind it.
//! 3. A page of the trim map was read, so it counts, and is programmed anew from the table. That
//!    comes last: the table has to be right.
//! 4. Then the trim map is programmed where it does not tell yet of what is lost: blocks that show
//!    a loss are erased later.
//! 5. Before, no block is erased with a version of a page in doubt, as far as there are others.

use super::{Flash, Nand, PageFtl, Ppn, RamMap};
use crate::contract::FtlError;
use crate::flash::Purpose;
use crate::mapping::{Mapping, is_page};
use crate::placement::Stream;
use crate::recovery::can_be_read;
use crate::recovery::scan::{FoundTrims, Mounts, Scan, newest_but, read_block, root_of};
use crate::recovery::survey::FoundPage;
use crate::space::core::Origin;
use crate::validity::ram_bitmap::HoldsBitmap;
use alloc::vec;
use alloc::vec::Vec;
use nand::{BlockId, Geometry, Lpn, NandError, PageKind, Spare};

/// Free blocks that a page in doubt finds before it is copied: an erase may fail, and a program.
const ROOM: u32 = 3;

impl<N: Nand, T: HoldsBitmap> PageFtl<N, RamMap, T> {
    /// Programs again every page in doubt, or what counts instead.
    pub(super) fn settle(&mut self, doubt: &mut Doubt, trims: &FoundTrims) -> Result<(), FtlError> {
        for index in 0..doubt.pages.len() {
            let page = doubt.pages[index];
            if page.1.kind == PageKind::User {
                self.settle_page(page, doubt, trims)?;
            } else {
                self.free_undoubted(doubt)?;
                self.change(|mapping, core| mapping.program_trims(core, page.1.tag, Purpose::Recovery))?;
            }
        }
        while let Some(page) = self.mapping.next_untold() {
            self.hold_trim_blocks();
            self.free_undoubted(doubt)?;
            self.change(|mapping, core| mapping.program_trims(core, page, Purpose::Recovery))?;
        }
        Ok(())
    }

    /// Copies a page in doubt. If it cannot be read it never counted, and the page that it
    /// superseded is copied.
    fn settle_page(&mut self, page: FoundPage, doubt: &mut Doubt, trims: &FoundTrims) -> Result<(), FtlError> {
        let lpn = Lpn(page.1.tag);
        let mut present = Some((page, true));
        while let Some(((ppn, spare), is_last)) = present {
            debug_assert!(spare.kind == PageKind::User && spare.tag == lpn.0, "{ppn} is no version of {lpn}");
            self.free_undoubted(doubt)?;
            let origin = Origin { ppn, spare };
            match self.core.move_host_page(Purpose::Recovery, Stream(0), &origin) {
                Ok(to) => return self.place(lpn, to),
                Err(FtlError::Nand(NandError::Uncorrectable { ppn: at } | NandError::Erased { ppn: at }))
                    if at == ppn => {}
                Err(error) => return Err(error),
            }
            if !doubt.may_be_torn(is_last, &spare) {
                // Worn: something was programmed after it.
                let to = self.core.program_lost(Purpose::Recovery, Stream(0), &origin)?;
                return self.place(lpn, to);
            }
            doubt.exclude(ppn, self.core.space.geometry().block_of(ppn));
            let before = newest_but(&mut self.core.flash, self.logical_pages, lpn, &mut doubt.excluded)?;
            present = before.filter(|((_, spare), _)| !trims.forget(lpn, spare.seq));
            let before = present.map_or_else(|| trims.without_copy(lpn), |((ppn, _), _)| ppn);
            self.place(lpn, before)?;
            if is_page(before) {
                self.core.space.page_born(before);
                self.validity.bitmap_mut().revive(before);
            }
        }
        Ok(())
    }

    fn place(&mut self, lpn: Lpn, at: Ppn) -> Result<(), FtlError> {
        debug_assert!(lpn.0 < self.logical_pages);
        self.change(|mapping, core| mapping.record(core, lpn, at))
    }

    /// While too few blocks are free to copy a page to, erases those in which nothing lives and
    /// nothing that may have to be gone back to.
    ///
    /// If there is none, attempts that were cut short have used up what was free. Then a copy may
    /// go if an older and a newer copy of the same page can be read. Of these the oldest is
    /// complete if any is, as a mount that completes one erases the others from the newest on. At
    /// last the version before may go if two copies of a page in doubt can be read: it counts only
    /// if both were torn.
    fn free_undoubted(&mut self, doubt: &mut Doubt) -> Result<(), FtlError> {
        if self.core.space.free_blocks() >= ROOM {
            return Ok(());
        }
        let versions = doubt.versions(&mut self.core.flash)?;
        for may_go in [MayGo::Older, MayGo::Between, MayGo::Before] {
            for block in (0..self.core.space.geometry().blocks()).map(BlockId) {
                if self.core.space.free_blocks() >= ROOM {
                    return Ok(());
                }
                if self.core.space.is_dead(block) && !doubt.concerns(&mut self.core.flash, block, &versions, may_go)? {
                    self.collect(block)?;
                }
            }
        }
        Ok(())
    }

    /// While blocks are short, erases those with what was in doubt and has been copied, from the
    /// newest on.
    pub(super) fn free_copied(&mut self, doubt: &Doubt) -> Result<(), FtlError> {
        for &block in &doubt.copied {
            if self.core.space.free_blocks() < self.reserve_blocks && self.core.space.is_dead(block) {
                self.collect(block)?;
            }
        }
        Ok(())
    }
}

/// What is in doubt when a mount begins.
#[derive(Debug)]
pub(super) struct Doubt {
    logical_pages: u32,
    /// Pages that read well now and may fail later.
    pages: Vec<FoundPage>,
    /// Blocks whose last page was in doubt at an earlier attempt and has been copied, the newest
    /// first; then those with `pages`.
    copied: Vec<BlockId>,
    /// Sequence number of the newest page that was programmed while the disk was in use.
    in_use_seq: u64,
    /// Pages that could not be read, or not be copied: they never counted, whatever they show
    /// later.
    excluded: Vec<Ppn>,
    /// Blocks with such pages.
    suspects: Vec<BlockId>,
}

impl Doubt {
    pub(super) fn of(scan: &Scan, trims: &FoundTrims, geometry: &Geometry) -> Self {
        let pages = scan.doubtful(trims);
        let superseded = scan.superseded(trims);
        let copied = superseded.iter().chain(&pages).map(|(ppn, _)| geometry.block_of(*ppn)).collect();
        Self {
            logical_pages: scan.copies.len() as u32,
            copied,
            pages,
            in_use_seq: scan.in_use_seq(),
            excluded: scan.excluded().to_vec(),
            suspects: scan.suspects().to_vec(),
        }
    }

    pub(super) const fn in_use_seq(&self) -> u64 {
        self.in_use_seq
    }

    /// Blocks with pages that never counted.
    pub(super) fn into_suspects(self) -> Vec<BlockId> {
        self.suspects
    }

    fn exclude(&mut self, ppn: Ppn, block: BlockId) {
        self.excluded.push(ppn);
        if !self.suspects.contains(&block) {
            self.suspects.push(block);
        }
    }

    /// Whether a page may have been torn: the last of its block, and no older than the newest page
    /// of a disk in use.
    const fn may_be_torn(&self, is_last: bool, spare: &Spare) -> bool {
        is_last && spare.seq >= self.in_use_seq
    }

    /// Which page in doubt a page is a version of.
    fn position(&self, spare: &Spare) -> Option<usize> {
        self.pages.iter().position(|(_, doubtful)| (doubtful.kind, doubtful.tag) == (spare.kind, spare.tag))
    }

    /// What is on flash of the logical page, or page of the trim map, of each page in doubt.
    fn versions<N: Nand>(&mut self, flash: &mut Flash<N>) -> Result<Vec<Versions>, FtlError> {
        let mut versions = vec![Versions::default(); self.pages.len()];
        let mut pages = Vec::new();
        for block in (0..flash.nand().geometry().blocks()).map(BlockId) {
            if flash.nand().is_bad(block) {
                continue;
            }
            self.read_block(flash, block, &mut pages)?;
            for (index, (ppn, spare)) in pages.iter().enumerate() {
                let Some(at) = self.position(spare) else { continue };
                if !self.may_be_torn(index + 1 == pages.len(), spare) {
                    versions[at].settled = spare.seq.max(versions[at].settled);
                } else if !self.excluded.contains(ppn) {
                    if can_be_read(flash, *ppn)? {
                        versions[at].torn.push(*spare);
                    } else {
                        self.exclude(*ppn, block);
                    }
                }
            }
        }
        debug_assert!(versions.iter().all(|of_page| of_page.torn.iter().all(|spare| spare.seq >= self.in_use_seq)));
        Ok(versions)
    }

    /// Whether a block holds a version of a page in doubt that the mount may have to go back to, as
    /// far as it can be read.
    fn concerns<N: Nand>(
        &self,
        flash: &mut Flash<N>,
        block: BlockId,
        versions: &[Versions],
        may_go: MayGo,
    ) -> Result<bool, FtlError> {
        let mut pages = Vec::new();
        self.read_block(flash, block, &mut pages)?;
        Ok(pages.iter().any(|(_, spare)| {
            self.position(spare).is_some_and(|at| {
                let versions = &versions[at];
                let goes = match may_go {
                    _ if spare.seq < versions.settled || !versions.holds(spare.seq) => true,
                    MayGo::Older => false,
                    MayGo::Between => versions.is_between(spare),
                    MayGo::Before => spare.seq == versions.settled && versions.torn.len() > 1,
                };
                !goes
            })
        }))
    }

    /// A block's pages, as far as they can be read.
    fn read_block<N: Nand>(
        &self,
        flash: &mut Flash<N>,
        block: BlockId,
        pages: &mut Vec<FoundPage>,
    ) -> Result<(), FtlError> {
        read_block(flash, block, (self.logical_pages, Mounts::Mark), pages, &mut Vec::new()).map(drop)
    }
}

/// What is on flash of what a page in doubt holds.
#[derive(Clone, Debug, Default)]
struct Versions {
    /// Sequence number of the newest page that cannot have been torn: the mount goes back to none
    /// that is older.
    settled: u64,
    /// Pages that may have been torn and can be read.
    torn: Vec<Spare>,
}

impl Versions {
    /// Whether the mount may have to go back to the page with this sequence number.
    fn holds(&self, seq: u64) -> bool {
        seq == self.settled || self.torn.iter().any(|torn| torn.seq == seq)
    }

    /// Whether an older and a newer copy of the same page can be read.
    fn is_between(&self, spare: &Spare) -> bool {
        let of_page = || self.torn.iter().filter(|torn| root_of(torn) == root_of(spare));
        of_page().any(|torn| torn.seq < spare.seq) && of_page().any(|torn| torn.seq > spare.seq)
    }
}

/// What may be erased before the pages in doubt are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MayGo {
    /// What is older than any page that the mount may go back to.
    Older,
    /// Copies between an older and a newer one of the same page.
    Between,
    /// What a page in doubt superseded, if two copies of that can be read.
    Before,
}
