//! Checkpoints: the maps in flash, so that a mount has to look at young blocks only (Kwon et al.,
//! section 5: check-point and roll-forward, as for the i-node map of LFS).
//!
//! 1. After every so many block openings the maps are written to a set of blocks. The sets of the
//!    last two are kept: a checkpoint that is cut short leaves the one before it whole.
//! 2. A checkpoint names the page of every logical page that is in a data block, a log block or the
//!    page-mapped area, and from which page on each block could still be programmed. It says
//!    nothing of roles: what lives where says all ([`super::recover`]).
//! 3. The interval is four openings a page of the largest checkpoint, so that checkpoints program
//!    at most one page in four blocks' pages.
//! 4. The set that the next checkpoint replaces is erased when it begins, and its blocks are the
//!    last of the free blocks then. Free blocks are taken in their place, so that checkpoints wear
//!    all blocks alike, and not the blocks of two sets.
//! 5. A flush after a trim writes the maps to both sets, so that whichever is read says that the
//!    page is gone: of pages older than a checkpoint those count that it names. A later checkpoint
//!    says so too, and is written while the other set does.
//! 6. The checkpoint that a mount finds youngest may be one that reads now and not later, unless a
//!    page was programmed after it. The one before it may be half erased. So the next is written to
//!    other blocks before either is erased, and one page more says that it was complete. If too few
//!    are free, it is written over the youngest. A mount erases all others: if it finds three, the
//!    youngest does not count without the page that says so.
//!
//! Only trims need a checkpoint: without one, every spare area is read, and pages trimmed since
//! they were written come back.

use super::area::Area;
use super::blocks::{Role, SHARED};
use crate::contract::{FtlError, RamItem, RamReport};
use crate::crc::Crc;
use crate::flash::Purpose;
use crate::recovery::checkpoint::{HEADER_WORDS, Header, pages, words};
use alloc::vec::Vec;
use nand::{BlockId, Flags, Geometry, Nand, NandError, PageKind, Spare};

/// The blocks and the timing of checkpoints.
pub(super) struct Checkpoints {
    /// The blocks of the last whole checkpoint.
    pub(super) current: Vec<BlockId>,
    /// The blocks of the next.
    pub(super) next: Vec<BlockId>,
    /// The blocks of the checkpoint that a mount found youngest, if it found two and this one may
    /// be torn, until there is another.
    youngest: Vec<BlockId>,
    /// Blocks of a set; 0 if no checkpoints are made.
    pub(super) each: u32,
    interval: u32,
    /// Blocks opened since the last checkpoint.
    pub(super) opened: u32,
    /// A page was trimmed of which not every checkpoint on flash says so.
    pub(super) unsaved_trims: bool,
    /// Log blocks and fused logical blocks of the checkpoint being made.
    slots: Vec<u32>,
    fused: Vec<u32>,
    page: Vec<u8>,
}

/// What the largest checkpoint has to hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) geometry: Geometry,
    pub(super) logical_blocks: u32,
    pub(super) logs: u32,
    pub(super) fused: u32,
}

impl Extent {
    fn pages(&self, logs: u32, fused: u32) -> u32 {
        pages(&self.geometry, words(&self.geometry, self.logical_blocks, u64::from(logs) + u64::from(fused)))
    }

    /// Pages of the largest.
    pub(super) fn most_pages(&self) -> u32 {
        self.pages(self.logs, self.fused)
    }

    /// Blocks of a set: for its pages, and one that says that they are complete.
    pub(super) fn blocks(&self) -> u32 {
        (self.pages(self.logs, self.fused) + 1).div_ceil(self.geometry.pages_per_block())
    }
}

impl Checkpoints {
    /// No checkpoint yet; none ever if `extent` is `None`.
    pub(super) fn new(extent: Option<Extent>) -> Self {
        let Some(extent) = extent else {
            return Self {
                current: Vec::new(),
                next: Vec::new(),
                youngest: Vec::new(),
                each: 0,
                interval: u32::MAX,
                opened: 0,
                unsaved_trims: false,
                slots: Vec::new(),
                fused: Vec::new(),
                page: Vec::new(),
            };
        };
        Self {
            current: Vec::with_capacity(extent.blocks() as usize),
            next: Vec::with_capacity(extent.blocks() as usize),
            youngest: Vec::new(),
            each: extent.blocks(),
            interval: 4 * extent.pages(extent.logs, extent.fused),
            opened: 0,
            unsaved_trims: false,
            slots: Vec::with_capacity(extent.logs as usize),
            fused: Vec::with_capacity(extent.fused as usize),
            page: alloc::vec![0; extent.geometry.page_bytes() as usize],
        }
    }

    /// Whether a checkpoint should be made.
    #[inline]
    pub(super) const fn is_due(&self) -> bool {
        self.opened >= self.interval
    }

    /// A mount found a checkpoint in these blocks and the one before it in those, if any; so many
    /// blocks changed since. What is trimmed by the youngest alone may not be so by the other, and
    /// what lives may be in a block that is half erased. The youngest may be torn unless it
    /// `was_complete`.
    pub(super) fn resume(&mut self, youngest: Vec<BlockId>, older: Vec<BlockId>, was_complete: bool, changed: u32) {
        debug_assert!(self.current.is_empty() && self.next.is_empty() && self.youngest.is_empty());
        self.unsaved_trims = true;
        if older.is_empty() || was_complete {
            self.current.extend(youngest);
            self.next.extend(older);
        } else {
            self.youngest = youngest;
            self.current.extend(older);
        }
        self.opened = changed.min(self.interval);
    }

    pub(super) fn ram(&self, report: &mut RamReport) {
        let sets = self.current.capacity() + self.next.capacity() + self.youngest.capacity();
        let words = sets + self.slots.capacity() + self.fused.capacity();
        let bytes = words * size_of::<u32>() + self.page.capacity();
        report.push(RamItem { name: "checkpoint_buffer", bytes: bytes as u64 });
    }
}

impl<N: Nand> Area<N> {
    /// Writes a checkpoint if one is due.
    ///
    /// # Errors
    /// Those of the device, failed programs and erases excepted: other blocks are tried while there
    /// are some.
    #[inline]
    pub fn checkpoint_if_due(&mut self) -> Result<(), FtlError> {
        if self.checkpoints.is_due() { self.checkpoint().map(drop) } else { Ok(()) }
    }

    /// Whether the next flush writes checkpoints.
    #[must_use]
    pub const fn owes_checkpoint(&self) -> bool {
        self.checkpoints.unsaved_trims && !self.starved
    }

    /// Makes trims survive power loss: at most two checkpoints, none if nothing was trimmed since
    /// the last flush or mount.
    ///
    /// # Errors
    /// [`FtlError::NoSpace`] if no blocks are left for a checkpoint, or the disk can only be read;
    /// those of the device.
    pub fn flush(&mut self) -> Result<(), FtlError> {
        self.flash.check_host()?;
        if !self.checkpoints.unsaved_trims {
            return Ok(());
        }
        if let Some(shortage) = self.read_only() {
            return Err(shortage.into());
        }
        if !self.checkpoint()? {
            return Err(self.shortage().into());
        }
        // If no blocks are left for another, nothing overwrites the first.
        self.checkpoint()?;
        self.checkpoints.unsaved_trims = false;
        Ok(())
    }

    /// `false` if no checkpoint could be written, for want of blocks.
    #[cold]
    fn checkpoint(&mut self) -> Result<bool, FtlError> {
        self.checkpoints.opened = 0;
        self.list_contents();
        // A try that fails takes a block with it.
        while self.make_room()? {
            if self.exchange_written()? && self.write_checkpoint()? {
                core::mem::swap(&mut self.checkpoints.current, &mut self.checkpoints.next);
                debug_assert!(self.checkpoints.current.len() == self.checkpoints.each as usize);
                for block in core::mem::take(&mut self.checkpoints.youngest) {
                    self.release(block)?;
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Finds blocks for the next checkpoint; `false` if there are too few.
    fn make_room(&mut self) -> Result<bool, FtlError> {
        if self.checkpoints.youngest.is_empty() || self.complete_next()? {
            return self.complete_sets();
        }
        let youngest = core::mem::take(&mut self.checkpoints.youngest);
        for block in core::mem::replace(&mut self.checkpoints.next, youngest) {
            self.blocks.given_up(block);
        }
        self.complete_sets()
    }

    /// Takes blocks until both sets have as many as they may need; `false` if the next has not,
    /// because they are wanted elsewhere. A mount does so last: until then its merges and
    /// collections may need every free block.
    ///
    /// # Errors
    /// Those of the device, and [`FtlError::NoSpace`].
    pub fn complete_sets(&mut self) -> Result<bool, FtlError> {
        // A third set is completed when it is written, and only then.
        let is_next_complete = !self.checkpoints.youngest.is_empty() || self.complete_next()?;
        while is_next_complete && self.checkpoints.current.len() < self.checkpoints.each as usize {
            if self.blocks.free_blocks() < 2 {
                break;
            }
            let block = self.take(Role::Checkpoint, SHARED)?;
            self.checkpoints.current.push(block);
        }
        Ok(is_next_complete)
    }

    /// Takes blocks until the next set has as many as it may need; `false` if they are wanted
    /// elsewhere.
    fn complete_next(&mut self) -> Result<bool, FtlError> {
        while self.checkpoints.next.len() < self.checkpoints.each as usize {
            if self.blocks.free_blocks() < 2 {
                return Ok(false);
            }
            let block = self.take(Role::Checkpoint, SHARED)?;
            self.checkpoints.next.push(block);
        }
        Ok(true)
    }

    /// Erases the blocks of the next set that hold pages, and takes a free block for each; `false`
    /// if one failed: it was retired.
    fn exchange_written(&mut self) -> Result<bool, FtlError> {
        for at in 0..self.checkpoints.next.len() {
            let block = self.checkpoints.next[at];
            if self.blocks.next(block) == 0 {
                continue;
            }
            if !self.flash.erase_or_retire(Purpose::Checkpoint, block)? {
                self.checkpoints.next.swap_remove(at);
                self.blocks.retired(block);
                return Ok(false);
            }
            self.blocks.erased(block);
            self.checkpoints.next[at] = self.take(Role::Checkpoint, SHARED)?;
        }
        Ok(true)
    }

    /// Gives up a block of the set that the next checkpoint would overwrite; `false` if there is
    /// none.
    #[cold]
    pub(super) fn give_up_checkpoint_block(&mut self) -> bool {
        let given_up = self.checkpoints.next.pop().or_else(|| self.checkpoints.youngest.pop());
        given_up.into_iter().for_each(|block| self.blocks.given_up(block));
        given_up.is_some()
    }

    fn list_contents(&mut self) {
        let (slots, fused) = (&mut self.checkpoints.slots, &mut self.checkpoints.fused);
        slots.clear();
        slots.extend(self.log.slots().filter(|&slot| self.log.block(slot).is_some()));
        fused.clear();
        fused.extend((0..self.table.logical_blocks()).filter(|&lbn| self.fused.is_fused(lbn)));
        debug_assert!(slots.len() as u32 == self.blocks.logs(), "a log block without a slot, or a slot without one");
    }

    /// `false` if a block failed: it was retired.
    fn write_checkpoint(&mut self) -> Result<bool, FtlError> {
        let geometry = *self.blocks.geometry();
        let (logs, fused) = (self.checkpoints.slots.len() as u32, self.checkpoints.fused.len() as u32);
        let words = words(&geometry, self.table.logical_blocks(), u64::from(logs) + u64::from(fused)) as u32;
        debug_assert!(
            (words + 1).div_ceil(geometry.page_bytes() / 4) < self.checkpoints.each * geometry.pages_per_block()
        );
        let header = Header {
            seq: self.seq,
            erases: self.blocks.erases(),
            blocks: geometry.blocks(),
            pages_per_block: geometry.pages_per_block(),
            logical_pages: self.logical_pages,
            logs,
            fused,
        };
        let per_page = geometry.page_bytes() / 4;
        let mut page = core::mem::take(&mut self.checkpoints.page);
        let mut outcome = Ok(true);
        let mut crc = Crc::new();
        let pages = (words + 1).div_ceil(per_page);
        for index in 0..pages {
            for (at, bytes) in (index * per_page..=words).zip(page.chunks_exact_mut(4)) {
                let word = if at < words { self.word(&header, at) } else { crc.value() };
                bytes.copy_from_slice(&word.to_le_bytes());
                crc.add(bytes);
            }
            let used = (words + 1 - index * per_page).min(per_page) as usize * 4;
            outcome = self.write_checkpoint_page(&header, index, &page[..used]);
            if outcome != Ok(true) {
                break;
            }
        }
        self.checkpoints.page = page;
        if outcome == Ok(true) && !self.checkpoints.youngest.is_empty() {
            // Neither of the two before it is certain, so that it has to be before one of them is
            // erased.
            outcome = self.write_checkpoint_page(&header, pages, &[0]);
        }
        outcome
    }

    fn write_checkpoint_page(&mut self, header: &Header, index: u32, bytes: &[u8]) -> Result<bool, FtlError> {
        let geometry = *self.blocks.geometry();
        let (set, offset) = (index / geometry.pages_per_block(), index % geometry.pages_per_block());
        let block = self.checkpoints.next[set as usize];
        debug_assert!(self.blocks.role(block) == Role::Checkpoint && !self.checkpoints.current.contains(&block));
        debug_assert!(self.seq == header.seq + u64::from(index), "another page was programmed within a checkpoint");
        let is_dirty = self.blocks.is_untrusted(block);
        debug_assert!(self.blocks.next(block) == offset, "page {offset} of {block} is not the next");
        let erased = if is_dirty { self.flash.erase(Purpose::Checkpoint, block) } else { Ok(()) };
        let written = erased.and_then(|()| {
            if is_dirty {
                self.blocks.cleaned(block);
            }
            let (erase_count, erased_at) = self.blocks.wear(block);
            let (seq, aux) = (self.seq, header.seq as u32);
            self.seq += 1;
            let spare =
                Spare { kind: PageKind::Checkpoint, tag: index, seq, erase_count, erased_at, aux, flags: Flags::NONE };
            self.flash.program_meta(Purpose::Checkpoint, geometry.page_at(block, offset), bytes, &spare)
        });
        match written {
            Ok(()) => {
                self.blocks.programmed(block, offset, false);
                Ok(true)
            }
            Err(NandError::EraseFailed { .. } | NandError::ProgramFailed { .. }) => {
                self.checkpoints.next.swap_remove(set as usize);
                self.flash.nand_mut().mark_bad(block)?;
                self.blocks.retired(block);
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Word `at` of a checkpoint.
    fn word(&self, header: &Header, at: u32) -> u32 {
        let pages = header.pages_per_block;
        if at < HEADER_WORDS {
            return header.words()[at as usize];
        }
        let mut at = at - HEADER_WORDS;
        let halves = header.blocks.div_ceil(2);
        if at < halves {
            let next = |block| if block < header.blocks { self.blocks.first_open(BlockId(block)) } else { 0 };
            return next(2 * at) | next(2 * at + 1) << 16;
        }
        at -= halves;
        if at < self.table.logical_blocks() {
            return self.table.data(at).0;
        }
        at -= self.table.logical_blocks();
        let home = (self.table.logical_blocks() * pages).div_ceil(32);
        if at < home {
            return self.table.home_word(at);
        }
        at -= home;
        let (entry, offset) = (at / (1 + pages), at % (1 + pages));
        debug_assert!(entry < header.logs + header.fused, "word {at} is behind the last entry");
        if entry < header.logs {
            let slot = self.checkpoints.slots[entry as usize];
            return match offset {
                0 => self.log.block(slot).0,
                _ => self.log.at(slot, offset - 1).map_or(u32::MAX, |lpn| lpn.0),
            };
        }
        let lbn = self.checkpoints.fused[(entry - header.logs) as usize];
        if offset == 0 { lbn } else { self.fused.get(lbn, offset - 1).0 }
    }
}
