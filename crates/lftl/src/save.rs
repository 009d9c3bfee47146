//! Checkpoints: the page table in flash, while writers go on.
//!
//! 1. A mark is set. Trims wait meanwhile. In each bank the next page of the writing block is
//!    noted, and the other counter of pending pages is used from then on; the first one falls to
//!    zero when entries know of every page handed out before. A page at or behind its bank's mark
//!    is read again by a mount; of all others the entries knew when the mark was complete.
//! 2. The entries are written, one page after the other, into a chain of blocks. An entry that
//!    changes meanwhile is saved as it was or as it is: what changed it lies behind the mark.
//! 3. An anchor is programmed three times, in blocks at the beginning of the first banks. The
//!    checkpoint counts for a mount that can read the second or the third: the first is complete
//!    then. A mount that cannot read the third may meet one that cannot read the second either,
//!    and keeps what the checkpoint before needs. After the third that is free.
//!
//! A checkpoint of a clean shutdown names, for each bank, the block that is opened next. A mount
//! looks whether one of those was: then the checkpoint is void as it is, and pages behind its marks
//! are read. A collector could erase them again, and a program that failed may show nothing. So
//! before anything is collected or programmed again, an anchor says that the same checkpoint is not
//! that of a clean shutdown any more.

use crate::append::Collected;
use crate::bank::{Open, Use};
use crate::devices::Devices;
use crate::engine::Engine;
use crate::error::LftlError;
use crate::meta::{ANCHOR, Kind, MetaPage, NONE, Stream};
use crate::sync::{Backoff, Ordering, lock};
use ftl::victim::by_bank::RESERVE;
use nand::{BlockId, Flags, NandError, PageKind, Ppn, Spare};

/// What is known of the last checkpoint.
#[derive(Debug, Default)]
pub(crate) struct Saver {
    /// Its number.
    pub(crate) number: u64,
    /// Blocks that are free when the next one counts: its chain, and trims from before the next.
    pub(crate) old: Vec<(u32, u32)>,
    /// Where its anchor is: an index among the blocks for anchors.
    pub(crate) anchor: usize,
    /// The next page of that block; `None` if another block is to be taken.
    pub(crate) next: Option<u32>,
    /// The anchor of a clean shutdown, while a mount may still take the disk for untouched.
    pub(crate) clean: Option<Anchor>,
}

/// How often an anchor is programmed.
pub(crate) const ANCHOR_COPIES: u32 = 3;

/// What an anchor says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    pub(crate) number: u64,
    pub(crate) logical_pages: u32,
    pub(crate) banks: u32,
    pub(crate) blocks: u32,
    pub(crate) pages_per_block: u32,
    pub(crate) page_bytes: u32,
    /// Every page that is not behind a mark has a smaller sequence number.
    pub(crate) seq: u64,
    /// Every block opened after the mark has a larger stamp.
    pub(crate) stamp: u32,
    pub(crate) clean: bool,
    /// The number that the chain's pages have, its last block, and the CRC-32 of its words.
    pub(crate) chain: u64,
    pub(crate) last: u32,
    pub(crate) crc: u32,
    /// By bank.
    pub(crate) marks: Vec<Mark>,
}

/// What an anchor says of a bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The writing block or [`NONE`], its stamp, and its first page behind the mark.
    pub(crate) block: u32,
    pub(crate) stamp: u32,
    pub(crate) next: u32,
    /// The block that is opened next, if it was a clean shutdown.
    pub(crate) head: u32,
}

impl Anchor {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let head = [
            self.logical_pages,
            self.banks,
            self.blocks,
            self.pages_per_block,
            self.page_bytes,
            self.seq as u32,
            (self.seq >> 32) as u32,
            self.stamp,
            self.clean.into(),
            self.chain as u32,
            (self.chain >> 32) as u32,
            self.last,
            self.crc,
        ];
        let marks = self.marks.iter().flat_map(|mark| [mark.block, mark.stamp, mark.next, mark.head]);
        head.into_iter().chain(marks).flat_map(u32::to_le_bytes).collect()
    }

    pub(crate) fn decode(page: &MetaPage) -> Option<Self> {
        let words: Vec<u32> =
            page.contents.chunks_exact(4).map(|word| word.try_into().map(u32::from_le_bytes).unwrap_or(NONE)).collect();
        let (head, rest) = words.split_at_checked(13)?;
        let [logical_pages, banks, blocks, pages_per_block, page_bytes, low, high, stamp, clean, ..] = head else {
            return None;
        };
        let [.., chain_low, chain_high, last, crc] = head else { return None };
        let long = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        let mark = |word: &[u32]| Mark { block: word[0], stamp: word[1], next: word[2], head: word[3] };
        let marks: Vec<Mark> = rest.chunks_exact(4).map(mark).collect();
        (marks.len() == *banks as usize).then_some(Self {
            number: page.number,
            logical_pages: *logical_pages,
            banks: *banks,
            blocks: *blocks,
            pages_per_block: *pages_per_block,
            page_bytes: *page_bytes,
            seq: long(*low, *high),
            stamp: *stamp,
            clean: *clean != 0,
            chain: long(*chain_low, *chain_high),
            last: *last,
            crc: *crc,
            marks,
        })
    }
}

impl Engine {
    /// Words that a checkpoint saves: the entries, then the erase count of every block.
    pub(crate) fn saved_words(&self) -> u32 {
        self.map.pages() + self.shape.all_blocks()
    }

    /// Pages of a checkpoint.
    pub(crate) fn checkpoint_pages(&self) -> u32 {
        self.saved_words().div_ceil((self.meta_bytes() / 4) as u32)
    }

    /// Pages programmed between two checkpoints.
    fn checkpoint_every(&self) -> u32 {
        let least = self.shape.banks * self.shape.pages_per_block;
        self.options.checkpoint_every.unwrap_or_else(|| (32 * self.checkpoint_pages()).max(least))
    }

    /// Writes a checkpoint if enough was programmed since the last; answers whether it did.
    ///
    /// # Errors
    /// As [`Engine::flush`].
    pub fn checkpoint_if_due(&self) -> Result<bool, LftlError> {
        if self.since.load(Ordering::Acquire) < self.checkpoint_every() {
            return Ok(false);
        }
        self.checkpoint().map(|()| true)
    }

    /// Writes a checkpoint if nobody did when it was due: a mount would read too much.
    pub(crate) fn checkpoint_if_overdue(&self) -> Result<(), LftlError> {
        let end = self.checkpoint_every().saturating_mul(2);
        if self.since.load(Ordering::Acquire) < end {
            return Ok(());
        }
        let mut saver = lock(&self.saver);
        if self.since.load(Ordering::Acquire) < end { Ok(()) } else { self.save(&mut saver, false) }
    }

    /// Saves the page table, so that the next mount reads what is programmed from here on, and no
    /// more.
    ///
    /// **Power loss**: this checkpoint counts or the one before.
    ///
    /// # Errors
    /// As [`Engine::flush`].
    pub fn checkpoint(&self) -> Result<(), LftlError> {
        self.check_writable()?;
        self.save(&mut lock(&self.saver), false)
    }

    /// Writes everything out, saves the page table, and gives the devices back. The next mount
    /// reads a bounded number of blocks.
    ///
    /// # Errors
    /// As [`Engine::flush`]; the devices are lost with it, but for what they keep themselves.
    pub fn shut_down(self) -> Result<Devices, LftlError> {
        if self.check_writable().is_ok() {
            self.close()?;
        }
        Ok(self.into_devices())
    }

    /// As [`Engine::shut_down`], for an engine that is not given up yet. No request may be under
    /// way, and no write may follow: it would not be found.
    pub(crate) fn close(&self) -> Result<(), LftlError> {
        self.flush()?;
        self.free_heads()?;
        self.save(&mut lock(&self.saver), true)
    }

    /// Collects until each bank has its reserve and a block to open next, if it can.
    pub(crate) fn free_heads(&self) -> Result<(), LftlError> {
        const TRIES: u32 = 8;
        for (bank, cell) in self.banks.iter().enumerate() {
            for _ in 0..TRIES {
                let enough = cell.info.free.load(Ordering::Acquire) > RESERVE;
                if enough || self.collect(bank, self.shape.pages_per_block - 1)? != Collected::Block {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Notes that the disk is as a clean shutdown left it.
    pub(crate) fn begin_clean(&self, anchor: &Anchor) {
        lock(&self.saver).clean = Some(anchor.clone());
        self.clean.store(true, Ordering::Release);
    }

    /// Makes sure that no mount takes the disk for untouched, whatever is erased.
    ///
    /// **Power loss**: a mount finds the disk untouched or not. Nothing was erased.
    pub(crate) fn void_clean(&self) -> Result<(), LftlError> {
        if !self.clean.load(Ordering::Acquire) {
            return Ok(());
        }
        self.void(&mut lock(&self.saver))
    }

    fn void(&self, saver: &mut Saver) -> Result<(), LftlError> {
        let Some(anchor) = &saver.clean else { return Ok(()) };
        let anchor = Anchor { number: saver.number + 1, clean: false, ..anchor.clone() };
        (0..ANCHOR_COPIES).try_for_each(|copy| self.write_anchor(saver, &anchor, copy))?;
        saver.number = anchor.number;
        saver.clean = None;
        self.clean.store(false, Ordering::Release);
        Ok(())
    }

    pub(crate) fn save(&self, saver: &mut Saver, clean: bool) -> Result<(), LftlError> {
        self.void(saver)?;
        let mut anchor = self.mark(saver)?;
        let mut chain = Stream::default();
        let words_a_page = (self.meta_bytes() / 4) as u32;
        let mut crc = crc32fast::Hasher::new();
        let mut at = 0;
        while at < self.saved_words() {
            let end = self.saved_words().min(at + words_a_page);
            let bytes = self.saved(at, end);
            crc.update(&bytes);
            if let Err(error) = self.write_meta(&mut chain, (Kind::Chain, anchor.number), &bytes) {
                saver.old.extend(chain.blocks);
                return Err(error);
            }
            at = end;
        }
        anchor.last = chain.last(&self.shape);
        anchor.crc = crc.finalize();
        if clean {
            self.note_heads(&mut anchor);
        }
        (0..ANCHOR_COPIES).try_for_each(|copy| self.write_anchor(saver, &anchor, copy))?;
        saver.number = anchor.number;
        let old = std::mem::replace(&mut saver.old, chain.blocks);
        if clean {
            // What is free now was not when the heads were noted; it is found free by the mount.
            return Ok(());
        }
        self.free_meta(&old)
    }

    /// Words of a checkpoint, as bytes.
    fn saved(&self, from: u32, end: u32) -> Vec<u8> {
        let pages = self.map.pages();
        let mut bytes = Vec::with_capacity((end - from) as usize * 4);
        for lpn in from.min(pages)..end.min(pages) {
            bytes.extend(self.map.get(nand::Lpn(lpn)).to_le_bytes());
        }
        for block in from.max(pages) - pages..end.max(pages) - pages {
            let (bank, block) = (block / self.shape.blocks, block % self.shape.blocks);
            bytes.extend(self.banks[bank as usize].lock().blocks[block as usize].erases.to_le_bytes());
        }
        bytes
    }

    /// Sets the mark.
    fn mark(&self, saver: &mut Saver) -> Result<Anchor, LftlError> {
        let mut log = lock(&self.trims.log);
        self.since.store(0, Ordering::Release);
        let stamp = self.stamp.load(Ordering::Acquire);
        let mut marks = Vec::with_capacity(self.banks.len());
        for cell in &self.banks {
            let mut bank = cell.lock();
            bank.parity ^= 1;
            marks.push(bank.open.map_or(Mark { block: NONE, stamp: 0, next: 0, head: NONE }, |open: Open| Mark {
                block: open.block,
                stamp: open.stamp,
                next: open.next,
                head: NONE,
            }));
        }
        for cell in &self.banks {
            let before = cell.lock().parity ^ 1;
            let mut backoff = Backoff::new();
            while cell.info.pending[before].load(Ordering::Acquire) > 0 {
                self.check_writable()?;
                backoff.wait();
            }
        }
        let seq = self.seq.load(Ordering::Acquire);
        // Trims before the mark are in the entries.
        saver.old.extend(std::mem::take(&mut *log).blocks);
        Ok(Anchor {
            number: saver.number + 1,
            logical_pages: self.map.pages(),
            banks: self.shape.banks,
            blocks: self.shape.blocks,
            pages_per_block: self.shape.pages_per_block,
            page_bytes: self.shape.page_bytes,
            seq,
            stamp,
            clean: false,
            chain: saver.number + 1,
            last: NONE,
            crc: 0,
            marks,
        })
    }

    /// Notes which block each bank opens next. A bank that has none could be written without a
    /// trace there: then the shutdown counts as an unclean one.
    fn note_heads(&self, anchor: &mut Anchor) {
        anchor.clean = true;
        // The chain itself opened blocks behind the mark.
        anchor.stamp = self.stamp.load(Ordering::Acquire);
        for (mark, cell) in anchor.marks.iter_mut().zip(&self.banks) {
            match cell.lock().free.front() {
                Some(head) => mark.head = *head,
                None => anchor.clean = false,
            }
        }
    }

    pub(crate) fn write_anchor(&self, saver: &mut Saver, anchor: &Anchor, copy: u32) -> Result<(), LftlError> {
        let places: Vec<(u32, BlockId)> = self.shape.anchor_blocks().collect();
        let page = MetaPage { number: anchor.number, index: copy, previous: NONE, contents: anchor.encode() };
        let page = page.encode(Kind::Anchor);
        let failed = |error| self.fail_device(error);
        // The block of the last good anchor is never erased here: it is left for last.
        for step in 0..places.len() {
            let index = (saver.anchor + step) % places.len();
            let (bank, block) = places[index];
            let mut bank = self.banks[bank as usize].lock();
            let next = match (step, saver.next) {
                (0, Some(next)) => next,
                (0, None) => continue,
                _ => 0,
            };
            if next == 0 && (bank.blocks[block.index()].used == Use::Bad || !bank.erase(block.0).map_err(failed)?) {
                continue;
            }
            let spare = Spare {
                kind: PageKind::Checkpoint,
                tag: copy,
                seq: self.seq.fetch_add(1, Ordering::AcqRel),
                erase_count: bank.blocks[block.index()].erases,
                erased_at: anchor.stamp,
                aux: ANCHOR,
                flags: Flags::NONE,
            };
            self.counters.saved.fetch_add(1, Ordering::Relaxed);
            match bank.program_meta(Ppn(block.0 * self.shape.pages_per_block + next), &page, &spare) {
                Ok(()) => {
                    saver.anchor = index;
                    saver.next = Some(next + 1).filter(|next| *next < self.shape.pages_per_block);
                    return Ok(());
                }
                // The anchor before may be in this block.
                Err(NandError::ProgramFailed { .. }) if step == 0 => saver.next = None,
                Err(NandError::ProgramFailed { .. }) => bank.retire(block.0).map_err(failed)?,
                Err(error) => return Err(failed(error)),
            }
        }
        Err(self.no_space())
    }
}
