//! Giving pages of flash to logical pages: which bank, which block, and what if a program fails.

use crate::bank::{Bank, Hold, Info, Open, Use};
use crate::engine::Engine;
use crate::error::{LftlError, Shortage};
use crate::map::UNMAPPED;
use crate::shape::Aux;
use crate::sync::{Backoff, Ordering};
use crossbeam_utils::CachePadded;
use ftl::victim::by_bank::{BankView, Policy, RESERVE, bank_for_write};
use nand::{Flags, Lpn, NandError, PageKind, Spare};

/// The next page of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) block: u32,
    pub(crate) offset: u32,
    pub(crate) stamp: u32,
}

/// What is programmed.
#[derive(Clone, Copy)]
pub(crate) struct Contents<'a> {
    pub(crate) lpn: Lpn,
    pub(crate) data: &'a [u8],
    /// Which sectors of it are lost, and how often it was moved.
    pub(crate) aux: Aux,
    /// The number that says which contents of a logical page are newer. A copy keeps the one of its
    /// original; `None` for the next.
    pub(crate) seq: Option<u64>,
}

/// A writer of a bank, until this is dropped.
struct Writing<'a>(&'a Info);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.writers.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What became of an attempt to program.
pub(crate) enum Programmed<'a> {
    At(u32, Hold<'a>),
    /// The page is spent and its block is closed.
    Failed,
    /// The bank has no page for the caller.
    NoRoom,
}

impl Engine {
    /// Programs the newest contents of a logical page, and points its entry there.
    ///
    /// **Power loss**: the logical page is as before or as written.
    pub(crate) fn append(&self, contents: Contents<'_>) -> Result<(), LftlError> {
        // Before a sequence number is taken: see `trims`.
        self.trims.written(contents.lpn);
        loop {
            let index = self.bank_for_host()?;
            let writing = Writing(&self.banks[index].info);
            if self.options.policy == Policy::WritePath {
                self.collect_if_short(index)?;
            }
            let cell = &self.banks[index];
            let mut bank = cell.lock();
            let programmed = self.program(index, &mut bank, contents, true);
            cell.publish(&bank, self.shape.pages_per_block);
            drop(bank);
            drop(writing);
            match programmed? {
                Programmed::At(ppn, hold) => {
                    self.point(contents.lpn, None, ppn);
                    drop(hold);
                    return Ok(());
                }
                Programmed::Failed => self.void_clean()?,
                Programmed::NoRoom => {}
            }
        }
    }

    /// Programs the next page of a bank's writing block, opening one if need be.
    pub(crate) fn program<'a>(
        &'a self,
        index: usize,
        bank: &mut Bank,
        contents: Contents<'_>,
        host: bool,
    ) -> Result<Programmed<'a>, LftlError> {
        let info = &self.banks[index].info;
        if !self.open_for(info, bank, host)? {
            return Ok(Programmed::NoRoom);
        }
        let Some(open) = bank.open else { return Ok(Programmed::NoRoom) };
        let ppn = self.shape.ppn(index as u32, open.block, open.next);
        let hold = Hold::new(&self.shape, &self.live, info, bank, ppn);
        let spare = Spare {
            kind: PageKind::User,
            tag: contents.lpn.0,
            seq: contents.seq.unwrap_or_else(|| self.seq.fetch_add(1, Ordering::AcqRel)),
            erase_count: bank.blocks[open.block as usize].erases,
            erased_at: open.stamp,
            aux: contents.aux.encode(),
            flags: Flags::NONE,
        };
        let programmed = bank.program(self.shape.local(ppn), contents.data, &spare);
        self.since.fetch_add(1, Ordering::AcqRel);
        let next = open.next + 1;
        if programmed.is_ok() {
            *(if contents.seq.is_none() { &mut bank.host_programs } else { &mut bank.moved_pages }) += 1;
        }
        match programmed {
            Ok(()) if next < self.shape.pages_per_block => bank.open = Some(Open { next, ..open }),
            Ok(()) => {
                bank.blocks[open.block as usize].used = Use::Closed;
                bank.open = None;
            }
            Err(error) => {
                bank.blocks[open.block as usize].used = Use::Failing;
                bank.open = None;
                return match error {
                    NandError::ProgramFailed { .. } => Ok(Programmed::Failed),
                    error => Err(self.fail_device(error)),
                };
            }
        }
        Ok(Programmed::At(ppn, hold))
    }

    /// Makes sure that the bank has a writing block that the caller may fill.
    fn open_for(&self, info: &Info, bank: &mut Bank, host: bool) -> Result<bool, LftlError> {
        if host && info.collecting.load(Ordering::Acquire) && bank.free.is_empty() {
            // What is left is for the collector, or its victim is never empty.
            return Ok(false);
        }
        if bank.open.is_some() {
            return Ok(true);
        }
        if host && bank.free.len() as u32 <= RESERVE {
            return Ok(false);
        }
        let Some(block) = bank.take().map_err(|error| self.fail_device(error))? else { return Ok(false) };
        bank.blocks[block as usize].used = Use::Open;
        bank.open = Some(Open { block, next: 0, stamp: self.stamp.fetch_add(1, Ordering::AcqRel) + 1 });
        Ok(true)
    }

    /// Points an entry to a page, if it leads to `from` or if `from` is `None`; answers whether it
    /// did.
    pub(crate) fn point(&self, lpn: Lpn, from: Option<u32>, to: u32) -> bool {
        let entry = self.map.lock(lpn);
        let old = entry.value();
        if from.is_some_and(|from| from != old) {
            return false;
        }
        if to != UNMAPPED {
            self.live.set(to);
            self.banks[self.shape.bank_of(to) as usize].info.live.fetch_add(1, Ordering::AcqRel);
        }
        entry.set(to);
        if old != UNMAPPED {
            self.live.clear(old);
            self.banks[self.shape.bank_of(old) as usize].info.live.fetch_sub(1, Ordering::AcqRel);
        }
        true
    }

    /// Whether a bank takes host data without collecting first, as far as can be seen without its
    /// lock.
    fn has_room(info: &Info) -> bool {
        let free = info.free.load(Ordering::Acquire);
        let kept = free == 0 && info.collecting.load(Ordering::Acquire);
        !kept && (info.room.load(Ordering::Acquire) > 0 || free > RESERVE)
    }

    fn view(&self, bank: usize) -> BankView {
        let info = &self.banks[bank].info;
        BankView {
            room: Self::has_room(info),
            collecting: info.collecting.load(Ordering::Relaxed),
            exclusive: info.exclusive.load(Ordering::Relaxed),
            writers: info.writers.load(Ordering::Relaxed),
        }
    }

    /// The bank for the next page of host data, after collecting if no bank has room. The caller
    /// is counted among its writers.
    fn bank_for_host(&self) -> Result<usize, LftlError> {
        loop {
            let start = self.cursor.fetch_add(1, Ordering::Relaxed) as usize;
            if let Some(bank) = bank_for_write(self.banks.len(), start, |bank| self.view(bank)) {
                let writers = &self.banks[bank].info.writers;
                if writers.fetch_add(1, Ordering::AcqRel) == 0 || self.nobody_free(bank) {
                    return Ok(bank);
                }
                // Another writer was faster, and a bank that nobody writes is left.
                writers.fetch_sub(1, Ordering::AcqRel);
                continue;
            }
            if !self.make_room()? {
                return Err(self.no_space());
            }
        }
    }

    /// Whether every bank that has room is written, but for this one.
    fn nobody_free(&self, chosen: usize) -> bool {
        let free = |view: BankView| view.room && view.writers == 0 && !view.collecting && !view.exclusive;
        !(0..self.banks.len()).any(|bank| bank != chosen && free(self.view(bank)))
    }

    /// A bank other than this one that has room for a page.
    pub(crate) fn bank_beside(&self, not: usize) -> Option<usize> {
        let view = |bank: usize| BankView { room: bank != not && self.view(bank).room, ..self.view(bank) };
        bank_for_write(self.banks.len(), not, view)
    }

    /// A bank other than this one that has a free block, if only one of its reserve.
    pub(crate) fn reserve_beside(&self, not: usize) -> Option<usize> {
        let free = |bank: &usize| self.banks[*bank].info.free.load(Ordering::Acquire);
        (0..self.banks.len()).filter(|bank| *bank != not && free(bank) > 0).max_by_key(free)
    }

    /// Collects until some bank has room; `false` if nothing can be collected.
    pub(crate) fn make_room(&self) -> Result<bool, LftlError> {
        let mut backoff = Backoff::new();
        loop {
            let mut order: Vec<usize> = (0..self.banks.len()).collect();
            order.sort_by_key(|bank| self.banks[*bank].info.live.load(Ordering::Relaxed));
            let mut busy = false;
            for bank in order {
                match self.collect(bank, self.shape.pages_per_block - 1)? {
                    Collected::Block => return Ok(true),
                    Collected::Nothing => {}
                    Collected::Busy => busy = true,
                }
            }
            if self.banks.iter().any(|cell| Self::has_room(&cell.info)) {
                return Ok(true);
            }
            if !busy {
                return Ok(false);
            }
            backoff.wait();
        }
    }

    /// The error of a card that is worn out; from now on it can only be read.
    #[cold]
    pub(crate) fn no_space(&self) -> LftlError {
        let bad = |cell: &CachePadded<crate::bank::Cell>| {
            cell.lock().blocks.iter().filter(|block| matches!(block.used, Use::Bad | Use::Failing)).count() as u32
        };
        let shortage = Shortage {
            bad_blocks: self.banks.iter().map(bad).sum(),
            blocks: self.shape.all_blocks(),
            needed: self.needed_blocks(),
        };
        LftlError::NoSpace(*self.worn.get_or_init(|| shortage))
    }
}

/// What an attempt to collect a block did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collected {
    /// A block was emptied.
    Block,
    /// No block of the bank is worth it.
    Nothing,
    /// Another collector works on the bank.
    Busy,
}
