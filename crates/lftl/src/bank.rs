//! A bank: its device, its free blocks and its writing block behind one lock, and beside the lock
//! what others look at without it.

use crate::devices::Device;
use crate::live::Live;
use crate::shape::Shape;
use crate::sync::{AtomicBool, AtomicU32, Mutex, MutexGuard, Ordering, lock};
use nand::{BlockId, NandError, Ppn, Spare};
use std::collections::VecDeque;

/// What a block is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Nothing of it is needed.
    Free,
    /// The writing block.
    Open,
    /// It holds host data and takes no more.
    Closed,
    /// A program of it failed: it is retired as soon as nothing of it is needed.
    Failing,
    /// It holds a part of a checkpoint, or trims.
    Meta,
    /// It holds anchors, or will.
    Anchor,
    /// Retired.
    Bad,
}

/// What is known of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) used: Use,
    pub(crate) erases: u32,
    /// It has to be erased before it is programmed.
    pub(crate) unclean: bool,
    /// A program of it failed while it held metadata.
    pub(crate) failed: bool,
}

/// The writing block of a bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Open {
    pub(crate) block: u32,
    pub(crate) next: u32,
    /// Its place in the order in which blocks of the card were opened.
    pub(crate) stamp: u32,
}

/// Flash operations of a bank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ops {
    /// Pages read.
    pub reads: u64,
    /// Spare areas read alone.
    pub spare_reads: u64,
    /// Pages programmed.
    pub programs: u64,
    /// Blocks erased.
    pub erases: u64,
}

/// What is behind the lock of a bank.
pub(crate) struct Bank {
    pub(crate) nand: Box<dyn Device>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) free: VecDeque<u32>,
    pub(crate) open: Option<Open>,
    /// Which of [`Info::pending`] counts what is handed out now.
    pub(crate) parity: usize,
    pub(crate) ops: Ops,
    /// Pages programmed because a host wrote them.
    pub(crate) host_programs: u64,
    /// Pages programmed because a collector moved them.
    pub(crate) moved_pages: u64,
}

/// What is beside the lock of a bank. Nothing depends on it but which bank is chosen, except
/// `collecting`, which only one thread holds.
pub(crate) struct Info {
    pub(crate) free: AtomicU32,
    /// Pages left in the writing block.
    pub(crate) room: AtomicU32,
    pub(crate) live: AtomicU32,
    /// A collector works on the bank.
    pub(crate) collecting: AtomicBool,
    /// No host data until it was collected.
    pub(crate) exclusive: AtomicBool,
    pub(crate) writers: AtomicU32,
    /// Pages that were handed out and that no entry knows of yet, by [`Bank::parity`].
    pub(crate) pending: [AtomicU32; 2],
}

/// A bank with its lock.
pub(crate) struct Cell {
    lock: Mutex<Bank>,
    pub(crate) info: Info,
}

impl Cell {
    pub(crate) fn new(bank: Bank) -> Self {
        let zero = || AtomicU32::new(0);
        let info = Info {
            free: AtomicU32::new(bank.free.len() as u32),
            room: zero(),
            live: zero(),
            collecting: AtomicBool::new(false),
            exclusive: AtomicBool::new(false),
            writers: zero(),
            pending: [zero(), zero()],
        };
        Self { lock: Mutex::new(bank), info }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Bank> {
        lock(&self.lock)
    }

    pub(crate) fn into_bank(self) -> Bank {
        self.lock.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Shows beside the lock what is behind it.
    pub(crate) fn publish(&self, bank: &Bank, pages_per_block: u32) {
        let room = bank.open.map_or(0, |open| pages_per_block - open.next);
        self.info.free.store(bank.free.len() as u32, Ordering::Release);
        self.info.room.store(room, Ordering::Release);
    }
}

impl Bank {
    pub(crate) fn new(nand: Box<dyn Device>, blocks: Vec<Block>, free: VecDeque<u32>) -> Self {
        Self { nand, blocks, free, open: None, parity: 0, ops: Ops::default(), host_programs: 0, moved_pages: 0 }
    }

    /// Erases a block; `false` if it went bad instead.
    ///
    /// **Power loss**: as [`nand::Nand::erase`]; nothing of the block is needed.
    pub(crate) fn erase(&mut self, block: u32) -> Result<bool, NandError> {
        self.ops.erases += 1;
        match self.nand.erase(BlockId(block)) {
            Ok(()) => {
                let known = &mut self.blocks[block as usize];
                known.erases = known.erases.saturating_add(1);
                known.unclean = false;
                Ok(true)
            }
            Err(NandError::EraseFailed { .. }) => self.retire(block).map(|()| false),
            Err(error) => Err(error),
        }
    }

    /// Retires a block of which nothing is needed.
    pub(crate) fn retire(&mut self, block: u32) -> Result<(), NandError> {
        self.blocks[block as usize].used = Use::Bad;
        self.nand.mark_bad(BlockId(block))
    }

    /// Takes a free block, erased; `None` if there is none.
    pub(crate) fn take(&mut self) -> Result<Option<u32>, NandError> {
        while let Some(block) = self.free.pop_front() {
            if !self.blocks[block as usize].unclean || self.erase(block)? {
                return Ok(Some(block));
            }
        }
        Ok(None)
    }

    /// Gives back a block of which nothing is needed, erased or to be erased later.
    pub(crate) fn give_back(&mut self, block: u32, erase: bool) -> Result<(), NandError> {
        let known = self.blocks[block as usize];
        if known.failed || known.used == Use::Failing {
            return self.retire(block);
        }
        self.blocks[block as usize].unclean = true;
        if !erase || self.erase(block)? {
            self.blocks[block as usize].used = Use::Free;
            self.free.push_back(block);
        }
        Ok(())
    }

    pub(crate) fn read(&mut self, at: Ppn, out: &mut [u8]) -> Result<Spare, NandError> {
        self.ops.reads += 1;
        self.nand.read(at, out)
    }

    pub(crate) fn read_meta(&mut self, at: Ppn, out: &mut [u8]) -> Result<Spare, NandError> {
        self.ops.reads += 1;
        self.nand.read_meta(at, out)
    }

    pub(crate) fn read_spare(&mut self, at: Ppn) -> Result<Option<Spare>, NandError> {
        self.ops.spare_reads += 1;
        self.nand.read_spare(at)
    }

    pub(crate) fn program(&mut self, at: Ppn, data: &[u8], spare: &Spare) -> Result<(), NandError> {
        self.ops.programs += 1;
        self.nand.program(at, data, spare)
    }

    pub(crate) fn program_meta(&mut self, at: Ppn, data: &[u8], spare: &Spare) -> Result<(), NandError> {
        self.ops.programs += 1;
        self.nand.program_meta(at, data, spare)
    }
}

/// A page that was handed out, until the entries know of it. Until then its block is not collected,
/// and no checkpoint is taken for complete.
pub(crate) struct Hold<'a> {
    live: &'a Live,
    pending: &'a AtomicU32,
    block: u32,
}

impl<'a> Hold<'a> {
    /// To be called with the lock of the bank held.
    pub(crate) fn new(shape: &Shape, live: &'a Live, info: &'a Info, bank: &Bank, ppn: u32) -> Self {
        let pending = &info.pending[bank.parity];
        pending.fetch_add(1, Ordering::AcqRel);
        let block = shape.block_of(ppn);
        live.begin(block);
        Self { live, pending, block }
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.live.end(self.block);
        self.pending.fetch_sub(1, Ordering::AcqRel);
    }
}
