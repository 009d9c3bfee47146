//! Making a disk, and finding it again.
//!
//! 1. `find` looks for the newest anchor in the few blocks that may hold one, and reads its chain.
//! 2. If the anchor says that the shutdown was clean, and no bank has opened a block since, the
//!    entries are what the chain says.
//! 3. Else `scan` reads the first spare area of every block, all banks in parallel, and then every
//!    spare area behind the checkpoint's marks: as many as were programmed since, at most. With no
//!    checkpoint it reads every spare area of the card, which is the paper's way.
//! 4. `resolve` decides which contents of each page are the newest.
//! 5. The page programmed last of each block that was read may be torn, though it reads well now.
//!    It is written again, as if a host did, and a checkpoint is written. Only after that is
//!    anything erased which an earlier checkpoint needs. A mount that is cut short is done anew.

mod find;
mod resolve;
mod scan;
#[cfg(test)]
#[cfg(not(shuttle))]
mod tests;

use crate::append::Contents;
use crate::bank::{Bank, Block, Cell, Ops, Use};
use crate::devices::{Device, Devices};
use crate::engine::Engine;
use crate::error::{LftlError, Shortage};
use crate::map::UNMAPPED;
use crate::save::{ANCHOR_COPIES, Anchor, Saver};
use crate::shape::{Aux, Options, Shape};
use crate::sync::{Ordering, lock, now, together};
use find::Base;
use ftl::victim::by_bank::RESERVE;
use nand::{BlockId, Lpn, NandError, Ppn};
use std::collections::VecDeque;
use std::time::Duration;

/// How a disk is found after power loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// From the last checkpoint, and what was programmed since; every page of the card only if no
    /// checkpoint can be read.
    Bounded,
    /// From every page of the card, as in the paper. A trim that is not in the last trims written
    /// may be undone, so this is for measurements.
    Scan,
}

/// What a mount did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MountReport {
    /// Nothing had been written since a clean shutdown.
    pub clean: bool,
    /// A checkpoint was found.
    pub checkpoint: bool,
    /// Blocks of which every page behind a mark was looked at.
    pub scanned_blocks: u64,
    /// Entries made from spare areas.
    pub rebuilt_entries: u64,
    /// Pages that might have been torn, written again.
    pub rewritten_pages: u64,
    /// Flash operations of each bank until the entries were known.
    pub search: Vec<Ops>,
    /// Flash operations of each bank until the disk could be used.
    pub all: Vec<Ops>,
    /// Time until the entries were known.
    pub search_time: Duration,
    /// Time until the disk could be used.
    pub all_time: Duration,
    /// Why the disk can only be read, if it cannot be written.
    pub read_only: Option<Shortage>,
}

/// By how much the sequence numbers of a new life are beyond those found: pages that cannot be read
/// now had larger ones.
const SEQ_MARGIN: u64 = 1 << 20;

/// What a mount knows before there is an engine.
struct Found {
    entries: Vec<u32>,
    /// Contents that are written again.
    rewrite: Vec<Rewrite>,
    /// Pages that another mount might need if this one is cut short, though no entry leads there.
    guarded: Vec<u32>,
    /// Blocks that hold pages behind the marks: bank and block.
    scanned: Vec<(u32, u32)>,
    /// Of each block of the card: how often it was erased, and whether it holds metadata that is
    /// needed until the next checkpoint.
    erases: Vec<u32>,
    meta: Vec<(u32, u32)>,
    seq: u64,
    stamp: u32,
    saver: Saver,
}

/// A page that may be torn, as it was read.
struct Rewrite {
    lpn: Lpn,
    seq: u64,
    stamp: u32,
    /// Where it is.
    ppn: u32,
    data: Vec<u8>,
    lost: u32,
}

impl Engine {
    /// Makes an empty disk of a card, one device a bank. Blocks that hold anything are erased.
    ///
    /// **Power loss**: the card may be one that cannot be mounted.
    ///
    /// # Errors
    /// [`LftlError::Unsupported`] before anything was written; those of the devices.
    pub fn format(devices: Devices, options: Options) -> Result<Self, LftlError> {
        let shape = Shape::of(&devices)?;
        let mut banks = banks_of(devices);
        check_options(&shape, &options, &banks)?;
        for (index, bank) in (0..).zip(&mut banks) {
            for block in 0..shape.blocks {
                let used = bank.read_spare(Ppn(block * shape.pages_per_block));
                if bank.blocks[block as usize].used != Use::Bad && !matches!(used, Ok(None)) {
                    bank.erase(block)?;
                }
                if bank.blocks[block as usize].used != Use::Bad && !shape.is_anchor(index, block) {
                    bank.free.push_back(block);
                }
            }
        }
        let cells = banks.into_iter().map(Cell::new).collect();
        let engine = Self::new(shape, options, cells, Saver::default());
        engine.checkpoint()?;
        Ok(engine)
    }

    /// Finds a disk again, with one thread a bank up to `threads`.
    ///
    /// **Power loss**: another mount finds the same.
    ///
    /// # Errors
    /// [`LftlError::NotMountable`] if the card holds no disk of these options;
    /// [`LftlError::Unsupported`]; those of the devices.
    pub fn mount(
        devices: Devices,
        options: Options,
        recovery: Recovery,
        threads: usize,
    ) -> Result<(Self, MountReport), LftlError> {
        let begin = now();
        let shape = Shape::of(&devices)?;
        let mut banks = banks_of(devices);
        check_buffers(&options)?;
        let mut report = MountReport::default();
        let base = match recovery {
            Recovery::Bounded => find::newest(&shape, &mut banks, &options, threads)?,
            Recovery::Scan => None,
        };
        report.checkpoint = base.is_some();
        let clean = match &base {
            Some(base) => base.anchor.clean && find::untouched(&shape, &mut banks, &base.anchor)?,
            None => false,
        };
        report.clean = clean;
        let (found, kept) = match base {
            Some(base) if clean => {
                let kept = (base.anchor.clone(), base.certain);
                (Found::as_saved(base), Some(kept))
            }
            base => (resolve::all(&shape, &mut banks, &options, base, threads, &mut report)?, None),
        };
        report.search = banks.iter().map(|bank| bank.ops).collect();
        report.search_time = now().saturating_sub(begin);
        let (rewrite, scanned) = (found.rewrite.len(), found.scanned.clone());
        let anchor = kept.as_ref().map(|(anchor, _)| anchor);
        let engine = Self::assemble(shape, options, banks, found, anchor, |engine, rewrite| match &kept {
            Some((anchor, certain)) => engine.stay_clean(anchor, *certain),
            None => engine.settle(&rewrite, &scanned),
        })?;
        report.rewritten_pages = rewrite as u64;
        report.all = engine.bank_ops();
        report.all_time = now().saturating_sub(begin);
        report.read_only = engine.read_only();
        Ok((engine, report))
    }

    /// An engine that knows what was found.
    fn assemble(
        shape: Shape,
        options: Options,
        mut banks: Vec<Bank>,
        found: Found,
        clean: Option<&Anchor>,
        settle: impl FnOnce(&Self, Vec<Rewrite>) -> Result<(), LftlError>,
    ) -> Result<Self, LftlError> {
        let mut occupied = vec![false; shape.all_blocks() as usize];
        for ppn in found.entries.iter().filter(|ppn| **ppn != UNMAPPED) {
            occupied[shape.block_of(*ppn) as usize] = true;
        }
        found.guarded.iter().for_each(|ppn| occupied[shape.block_of(*ppn) as usize] = true);
        for (index, bank) in (0..).zip(&mut banks) {
            let head = clean.map(|anchor| anchor.marks[index as usize].head);
            sort_blocks(&shape, index, bank, &found, &occupied, head);
        }
        let cells = banks.into_iter().map(Cell::new).collect();
        let mut saver = found.saver;
        saver.old.extend(&found.meta);
        let engine = Self::new(shape, options, cells, saver);
        engine.seq.store(found.seq, Ordering::Release);
        engine.stamp.store(found.stamp, Ordering::Release);
        for (lpn, ppn) in (0..).zip(found.entries).filter(|(_, ppn)| *ppn != UNMAPPED) {
            engine.point(Lpn(lpn), None, ppn);
        }
        // No block that holds one is collected before all is certain.
        found.guarded.iter().for_each(|ppn| engine.live.begin(shape.block_of(*ppn)));
        let settled = settle(&engine, found.rewrite);
        found.guarded.iter().for_each(|ppn| engine.live.end(shape.block_of(*ppn)));
        match settled {
            // Everything can be read.
            Ok(()) | Err(LftlError::NoSpace(_)) => Ok(engine),
            Err(error) => Err(error),
        }
    }

    /// Makes certain what was found: whatever may be torn is written again, and after a checkpoint
    /// nothing is left that another mount could take for newer.
    fn settle(&self, rewrite: &[Rewrite], scanned: &[(u32, u32)]) -> Result<(), LftlError> {
        for (done, page) in rewrite.iter().enumerate() {
            let aux = Aux { lost: page.lost, moves: 0 };
            if let Err(error) = self.append(Contents { lpn: page.lpn, data: &page.data, aux, seq: None }) {
                // On a card that can only be read, what reads well is what there is.
                rewrite[done..].iter().for_each(|page| _ = self.point(page.lpn, None, page.ppn));
                return Err(error);
            }
        }
        self.save(&mut lock(&self.saver), false)?;
        self.purge(scanned)?;
        // Mounts that were cut short may have left few free blocks.
        self.free_heads()
    }

    /// Erases what was looked at and is not needed. A torn page in there that nobody could read may
    /// read well the next time, and its numbers may be larger than those of this life.
    fn purge(&self, scanned: &[(u32, u32)]) -> Result<(), LftlError> {
        for (index, block) in scanned {
            let cell = &self.banks[*index as usize];
            let mut bank = cell.lock();
            let known = bank.blocks[*block as usize];
            let dead = self.live.count(self.shape.block(*index, *block)) == 0;
            match known.used {
                Use::Free if known.unclean => bank.free.retain(|free| free != block),
                Use::Closed if dead => {}
                _ => continue,
            }
            bank.give_back(*block, true).map_err(|error| self.fail_device(error))?;
            cell.publish(&bank, self.shape.pages_per_block);
        }
        Ok(())
    }

    /// Goes on from a clean shutdown. Its anchor is programmed again if not every mount could read
    /// it.
    fn stay_clean(&self, anchor: &Anchor, certain: bool) -> Result<(), LftlError> {
        let mut saver = lock(&self.saver);
        if !certain {
            let anchor = Anchor { number: saver.number + 1, ..anchor.clone() };
            (0..ANCHOR_COPIES).try_for_each(|copy| self.write_anchor(&mut saver, &anchor, copy))?;
            saver.number = anchor.number;
        }
        drop(saver);
        self.begin_clean(anchor);
        Ok(())
    }

    /// Good blocks that a disk of this size needs: for data, in each bank one to write and those in
    /// reserve, two checkpoints, trims, and the anchors.
    pub(crate) fn needed_blocks(&self) -> u32 {
        needed_blocks(&self.shape, self.map.pages())
    }
}

impl Found {
    /// What a clean shutdown left.
    fn as_saved(base: Base) -> Self {
        Self {
            meta: base.needed(),
            erases: base.erases,
            entries: base.entries,
            rewrite: Vec::new(),
            guarded: Vec::new(),
            scanned: Vec::new(),
            seq: base.seq + SEQ_MARGIN,
            stamp: base.anchor.stamp,
            saver: Saver { number: base.number, anchor: base.place, ..Saver::default() },
        }
    }
}

/// Says what each block of a bank is used for, and which are free.
fn sort_blocks(shape: &Shape, index: u32, bank: &mut Bank, found: &Found, occupied: &[bool], head: Option<u32>) {
    let mut free = VecDeque::new();
    for block in 0..shape.blocks {
        let whole = shape.block(index, block) as usize;
        let known = &mut bank.blocks[block as usize];
        known.erases = found.erases[whole];
        // It may be half erased, or hold a page that reads as erased.
        known.unclean = true;
        known.used = match known.used {
            Use::Bad if occupied[whole] => Use::Failing,
            Use::Bad => Use::Bad,
            _ if shape.is_anchor(index, block) => Use::Anchor,
            _ if occupied[whole] => Use::Closed,
            _ if found.meta.contains(&(index, block)) => Use::Meta,
            _ => Use::Free,
        };
        if known.used == Use::Free {
            free.push_back(block);
        }
    }
    // What a clean shutdown said is opened first is opened first.
    if let Some(at) = head.and_then(|head| free.iter().position(|block| *block == head)) {
        free.rotate_left(at);
    }
    bank.free = free;
}

fn banks_of(devices: Devices) -> Vec<Bank> {
    let bank = |nand: Box<dyn Device>| {
        let blocks = (0..nand.geometry().blocks()).map(|block| {
            let used = if nand.is_bad(BlockId(block)) { Use::Bad } else { Use::Free };
            Block { used, erases: 0, unclean: true, failed: false }
        });
        let blocks = blocks.collect();
        Bank::new(nand, blocks, VecDeque::new())
    };
    devices.0.into_iter().map(bank).collect()
}

fn needed_blocks(shape: &Shape, logical_pages: u32) -> u32 {
    let words_a_page = (shape.page_bytes - crate::meta::HEADER_BYTES as u32) / 4;
    let chain = (logical_pages + shape.all_blocks()).div_ceil(words_a_page).div_ceil(shape.pages_per_block);
    let anchors = shape.banks.min(4) * shape.anchor_blocks_a_bank();
    logical_pages.div_ceil(shape.pages_per_block) + shape.banks * (RESERVE + 2) + 2 * chain + 2 + anchors
}

fn check_buffers(options: &Options) -> Result<(), LftlError> {
    if (1..=1 << 16).contains(&options.buffers) {
        return Ok(());
    }
    Err(LftlError::Unsupported { reason: format!("{} buffers; use 1 to 65536", options.buffers) })
}

fn check_options(shape: &Shape, options: &Options, banks: &[Bank]) -> Result<(), LftlError> {
    check_buffers(options)?;
    let good = banks.iter().flat_map(|bank| &bank.blocks).filter(|block| block.used != Use::Bad).count() as u32;
    // A bank may have fewer blocks than are for anchors.
    let anchors = |(bank, block): (u32, BlockId)| {
        banks[bank as usize].blocks.get(block.index()).is_some_and(|block| block.used != Use::Bad)
    };
    let needed = needed_blocks(shape, options.logical_pages);
    let reason = if options.logical_pages == 0 {
        "a disk has at least 1 page".to_owned()
    } else if shape.all_blocks() > 0 && shape.anchor_blocks().filter(|at| anchors(*at)).count() < 2 {
        "fewer than 2 of the blocks at the beginning of its first banks are good, and anchors need them".to_owned()
    } else if needed > good {
        format!(
            "a disk of {} pages needs {needed} good blocks of {} pages, and {good} are there; make the disk smaller",
            options.logical_pages, shape.pages_per_block
        )
    } else if 32 + 52 + 16 * shape.banks as usize > shape.page_bytes() {
        format!("{} banks do not fit into an anchor of {} B", shape.banks, shape.page_bytes)
    } else {
        return Ok(());
    };
    Err(LftlError::Unsupported { reason })
}

/// Does something with every bank, several at once.
fn each_bank<T: Send>(
    banks: &mut [Bank],
    threads: usize,
    act: impl Fn(u32, &mut Bank) -> Result<T, NandError> + Sync,
) -> Result<Vec<T>, NandError> {
    if threads <= 1 || banks.len() <= 1 {
        return (0..).zip(banks).map(|(index, bank)| act(index, bank)).collect();
    }
    let each = banks.len().div_ceil(threads);
    let act = &act;
    let work = |(first, part): (usize, &mut [Bank])| {
        let banks = (first as u32..).zip(part);
        banks.map(|(index, bank)| act(index, bank)).collect::<Result<Vec<T>, NandError>>()
    };
    let parts = (0..).step_by(each).zip(banks.chunks_mut(each));
    let found: Result<Vec<Vec<T>>, NandError> =
        together(parts.map(|part| move || work(part)).collect()).into_iter().collect();
    found.map(|parts| parts.into_iter().flatten().collect())
}
