//! The engine: reads, writes, trims and flushes of logical pages, from any number of threads.
//!
//! A write: `lookup` says in which buffer the page is, and the buffer's lock confirms it. If none
//! holds it, the writer takes an empty buffer, writing out another one if there is no empty one,
//! and gives it to the page. A read looks into the buffer first, then follows the entry to flash.

use crate::append::Contents;
use crate::bank::Cell;
use crate::devices::Devices;
use crate::error::{LftlError, Shortage};
use crate::frames::{Found, Frame, Frames, Page};
use crate::live::Live;
use crate::map::{Map, UNMAPPED};
use crate::meta::Kind;
use crate::save::Saver;
use crate::shape::{Aux, Options, SECTOR_BYTES, Shape};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Backoff, Mutex, Ordering, alone, lock, shared};
use crate::trims::Trims;
use crossbeam_utils::CachePadded;
use ftl::victim::by_bank::Levels;
use nand::{Lpn, NandError};
use std::sync::OnceLock;

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) saved: AtomicU64,
    pub(crate) collected: AtomicU64,
}

/// A flash translation layer over the banks of a card, one device a bank. Every method may be
/// called from any thread.
///
/// # Promises
/// A read returns what the last completed write of each sector wrote; zeros if it was never
/// written, or was trimmed since.
///
/// # Power loss
/// What completed before [`Engine::flush`] was called is there once that has completed. Of anything
/// later each sector is as before or as written. A trim that was not flushed may be undone.
pub struct Engine {
    pub(crate) shape: Shape,
    pub(crate) options: Options,
    pub(crate) levels: Levels,
    pub(crate) banks: Vec<CachePadded<Cell>>,
    pub(crate) map: Map,
    pub(crate) live: Live,
    pub(crate) frames: Frames,
    pub(crate) trims: Trims,
    /// The next sequence number.
    pub(crate) seq: CachePadded<AtomicU64>,
    /// Blocks opened so far.
    pub(crate) stamp: AtomicU32,
    /// Pages programmed since the last checkpoint began.
    pub(crate) since: CachePadded<AtomicU32>,
    pub(crate) saver: Mutex<Saver>,
    /// [`Saver::clean`] holds an anchor.
    pub(crate) clean: AtomicBool,
    /// Where the search for a bank begins.
    pub(crate) cursor: CachePadded<AtomicU32>,
    pub(crate) counters: Counters,
    pub(crate) worn: OnceLock<Shortage>,
    failed: OnceLock<String>,
}

impl Engine {
    pub(crate) fn new(shape: Shape, options: Options, banks: Vec<Cell>, saver: Saver) -> Self {
        let pages = options.logical_pages;
        Self {
            shape,
            levels: options.levels.unwrap_or_else(|| Levels::of(shape.blocks, shape.pages_per_block)),
            banks: banks.into_iter().map(CachePadded::new).collect(),
            map: Map::new(pages),
            live: Live::new(shape.all_blocks(), shape.pages_per_block),
            frames: Frames::new(&shape, (options.buffers, options.replacement), pages),
            trims: Trims::new(pages),
            seq: CachePadded::new(AtomicU64::new(1)),
            stamp: AtomicU32::new(0),
            since: CachePadded::new(AtomicU32::new(0)),
            saver: Mutex::new(saver),
            clean: AtomicBool::new(false),
            cursor: CachePadded::new(AtomicU32::new(0)),
            counters: Counters::default(),
            worn: OnceLock::new(),
            failed: OnceLock::new(),
            options,
        }
    }

    /// Bytes of a logical page.
    #[must_use]
    pub fn page_bytes(&self) -> usize {
        self.shape.page_bytes()
    }

    /// Logical pages of the disk.
    #[must_use]
    pub fn logical_pages(&self) -> u32 {
        self.map.pages()
    }

    /// Banks of the card.
    #[must_use]
    pub fn banks(&self) -> usize {
        self.banks.len()
    }

    /// Why the disk can only be read, if it cannot be written.
    #[must_use]
    pub fn read_only(&self) -> Option<Shortage> {
        self.worn.get().copied()
    }

    /// Takes no more writes from here on.
    pub fn fail(&self, reason: String) -> LftlError {
        LftlError::Failed { reason: self.failed.get_or_init(|| reason).clone() }
    }

    /// The error of a device. After one that is final, or that nobody expects of a program, what is
    /// on flash is not known.
    #[cold]
    pub(crate) fn fail_device(&self, error: NandError) -> LftlError {
        self.failed.get_or_init(|| error.to_string());
        error.into()
    }

    fn check(&self, lpn: Lpn, at: usize, bytes: usize) -> Result<(), LftlError> {
        let logical_pages = self.map.pages();
        if lpn.0 < logical_pages && at.checked_add(bytes).is_some_and(|end| end <= self.page_bytes()) {
            return Ok(());
        }
        Err(LftlError::OutOfRange { lpn, at, bytes, logical_pages })
    }

    fn check_change(&self, lpn: Lpn, at: usize, bytes: usize) -> Result<(), LftlError> {
        self.check(lpn, at, bytes)?;
        self.check_writable()
    }

    pub(crate) fn check_writable(&self) -> Result<(), LftlError> {
        match (self.failed.get(), self.worn.get()) {
            (Some(reason), _) => Err(LftlError::Failed { reason: reason.clone() }),
            (None, Some(shortage)) => Err(LftlError::NoSpace(*shortage)),
            (None, None) => Ok(()),
        }
    }

    /// Reads a part of a logical page, from byte `at` on.
    ///
    /// # Errors
    /// [`LftlError::OutOfRange`]; [`LftlError::Lost`] if flash cannot be read. Other sectors stay
    /// readable.
    pub fn read(&self, lpn: Lpn, at: usize, out: &mut [u8]) -> Result<(), LftlError> {
        self.check(lpn, at, out.len())?;
        let wanted = sectors_of(at, out.len());
        if let Found::In(index) = self.frames.find(lpn) {
            let page = shared(&self.frames.frames[index].page);
            // Confirmed under the lock: the buffer may have been given to another page.
            if page.lpn == lpn {
                self.frames.touch(index);
                if wanted & page.lost != 0 {
                    return Err(LftlError::Lost { lpn, sectors: wanted & page.lost });
                }
                let missing = wanted & !page.present;
                if missing == 0 {
                    out.copy_from_slice(&page.data[at..at + out.len()]);
                    return Ok(());
                }
                // Flash holds what the buffer lacks. The buffer stays locked: nobody fills it.
                self.read_flash_part(lpn, at, out, missing)?;
                copy_present(&page, at, out);
                return Ok(());
            }
        }
        self.read_flash_part(lpn, at, out, wanted)
    }

    /// Reads a part of a page from flash; an error if one of the sectors that are needed is lost.
    fn read_flash_part(&self, lpn: Lpn, at: usize, out: &mut [u8], needed: u32) -> Result<(), LftlError> {
        if self.map.get(lpn) == UNMAPPED {
            out.fill(0);
            return Ok(());
        }
        let mut whole = vec![0; self.page_bytes()];
        let lost = self.read_flash(lpn, &mut whole)? & needed;
        if lost != 0 {
            return Err(LftlError::Lost { lpn, sectors: lost });
        }
        out.copy_from_slice(&whole[at..at + out.len()]);
        Ok(())
    }

    /// Reads what flash holds of a logical page, and answers which sectors are lost.
    fn read_flash(&self, lpn: Lpn, out: &mut [u8]) -> Result<u32, LftlError> {
        loop {
            let ppn = self.map.get(lpn);
            if ppn == UNMAPPED {
                out.fill(0);
                return Ok(0);
            }
            let mut bank = self.banks[self.shape.bank_of(ppn) as usize].lock();
            // Blocks are erased under this lock, and none to which an entry leads: if the entry
            // still leads there, the page is what it was.
            if self.map.get(lpn) != ppn {
                continue;
            }
            return match bank.read(self.shape.local(ppn), out) {
                Ok(spare) if spare.tag == lpn.0 => Ok(Aux::of(spare.aux).lost),
                Ok(_) | Err(NandError::Uncorrectable { .. } | NandError::Erased { .. }) => {
                    out.fill(0);
                    Ok(self.shape.all_sectors())
                }
                Err(error) => Err(error.into()),
            };
        }
    }

    /// Writes a part of a logical page, from byte `at` on. A part of a sector is read before.
    ///
    /// **Power loss**: each sector is as before or as written, until [`Engine::flush`] or
    /// [`Engine::flush_page`] has completed.
    ///
    /// # Errors
    /// [`LftlError::OutOfRange`]; [`LftlError::NoSpace`] if the card is worn out;
    /// [`LftlError::Lost`] for a part of a sector that is lost; [`LftlError::Failed`].
    pub fn write(&self, lpn: Lpn, at: usize, data: &[u8]) -> Result<(), LftlError> {
        self.check_change(lpn, at, data.len())?;
        let mut backoff = Backoff::new();
        loop {
            match self.frames.find(lpn) {
                Found::In(index) => {
                    let frame = &self.frames.frames[index];
                    let mut page = alone(&frame.page);
                    if page.lpn == lpn {
                        self.put(index, frame, &mut page, at, data)?;
                        break;
                    }
                }
                Found::Busy => backoff.wait(),
                Found::Nowhere => {
                    let index = self.empty_frame()?;
                    if !self.frames.begin(lpn) {
                        self.frames.put_empty(index);
                        continue;
                    }
                    let frame = &self.frames.frames[index];
                    let mut page = alone(&frame.page);
                    page.lpn = lpn;
                    self.frames.enter(lpn, index);
                    self.put(index, frame, &mut page, at, data)?;
                    break;
                }
            }
        }
        self.checkpoint_if_overdue()
    }

    /// Puts data into a buffer of the page.
    fn put(&self, index: usize, frame: &Frame, page: &mut Page, at: usize, data: &[u8]) -> Result<(), LftlError> {
        let touched = sectors_of(at, data.len());
        let whole = whole_sectors_of(at, data.len());
        let partial = touched & !whole;
        if partial & !page.present != 0 {
            self.fill(page)?;
        }
        if partial & page.lost != 0 {
            return Err(LftlError::Lost { lpn: page.lpn, sectors: partial & page.lost });
        }
        page.data[at..at + data.len()].copy_from_slice(data);
        page.present |= touched;
        page.lost &= !touched;
        // With the page locked for writing nobody else changes them.
        frame.dirty.store(frame.dirty.load(Ordering::Relaxed) | touched, Ordering::Release);
        self.frames.touch(index);
        if page.present == self.shape.all_sectors() {
            self.frames.filled(index);
        }
        Ok(())
    }

    /// Reads from flash what a buffer lacks of its page.
    pub(crate) fn fill(&self, page: &mut Page) -> Result<(), LftlError> {
        let missing = self.shape.all_sectors() & !page.present;
        if missing == 0 {
            return Ok(());
        }
        let mut whole = vec![0; self.page_bytes()];
        let lost = self.read_flash(page.lpn, &mut whole)?;
        for sector in (0..self.shape.sectors()).filter(|sector| missing & 1 << sector != 0) {
            let range = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
            page.data[range.clone()].copy_from_slice(&whole[range]);
        }
        page.present |= missing;
        page.lost |= missing & lost;
        Ok(())
    }

    /// An empty buffer, after writing out another if there is none.
    fn empty_frame(&self) -> Result<usize, LftlError> {
        let mut backoff = Backoff::new();
        loop {
            if let Some(index) = self.frames.take_empty() {
                return Ok(index);
            }
            if let Some(index) = self.evict()? {
                return Ok(index);
            }
            backoff.wait();
        }
    }

    /// Writes out what the policy picks, and empties it. One buffer that became empty is the
    /// caller's.
    fn evict(&self) -> Result<Option<usize>, LftlError> {
        let mut own = None;
        for index in self.pick() {
            match (self.evict_one(index), own) {
                (Ok(true), None) => own = Some(index),
                (Ok(true), Some(_)) => self.frames.put_empty(index),
                (Ok(false), _) => {}
                (Err(error), _) => {
                    own.into_iter().for_each(|own| self.frames.put_empty(own));
                    return Err(error);
                }
            }
        }
        Ok(own)
    }

    fn pick(&self) -> Vec<usize> {
        use buffer::replacement::Replacement;
        if self.options.replacement == Replacement::Fifo
            && let Some(index) = self.frames.take_full()
        {
            return vec![index];
        }
        self.options.replacement.pick(&self.frames.views(), self.shape.pages_per_block)
    }

    /// Writes a buffer out and empties it, for the caller; `false` if another thread does, or it
    /// was written again meanwhile. A buffer that cannot be written out keeps what it holds.
    pub(crate) fn evict_one(&self, index: usize) -> Result<bool, LftlError> {
        let frame = &self.frames.frames[index];
        if frame.taken.swap(true, Ordering::AcqRel) {
            return Ok(false);
        }
        let gate = lock(&frame.gate);
        let emptied = self.write_out(frame).map(|()| self.release(index, frame));
        drop(gate);
        frame.taken.store(false, Ordering::Release);
        emptied
    }

    /// Programs what a buffer holds and flash does not. The gate is held.
    pub(crate) fn write_out(&self, frame: &Frame) -> Result<(), LftlError> {
        if frame.dirty.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        {
            let mut page = alone(&frame.page);
            self.fill(&mut page)?;
        }
        let page = shared(&frame.page);
        let aux = Aux { lost: page.lost, moves: 0 };
        self.append(Contents { lpn: page.lpn, data: &page.data, aux, seq: None })?;
        frame.dirty.store(0, Ordering::Release);
        Ok(())
    }

    /// Empties a clean buffer. The gate is held.
    fn release(&self, index: usize, frame: &Frame) -> bool {
        let mut page = alone(&frame.page);
        if page.lpn == Lpn::NONE || frame.dirty.load(Ordering::Acquire) != 0 {
            return false;
        }
        self.empty(index, &mut page, false);
        true
    }

    /// Empties a buffer; with `busy` its page gets the bit against double allocation.
    fn empty(&self, index: usize, page: &mut Page, busy: bool) {
        self.frames.leave(page.lpn, index, busy);
        page.lpn = Lpn::NONE;
        page.present = 0;
        page.lost = 0;
    }

    /// Makes everything that completed before survive power loss.
    ///
    /// # Errors
    /// [`LftlError::NoSpace`]; those of the device. What could not be written stays in its buffer.
    pub fn flush(&self) -> Result<(), LftlError> {
        (0..self.frames.frames.len()).try_for_each(|index| self.flush_buffer(index))?;
        self.flush_trims()
    }

    /// The buffers that hold what flash does not.
    #[cfg(not(shuttle))]
    pub(crate) fn dirty_buffers(&self) -> Vec<usize> {
        let dirty =
            |(index, frame): (usize, &CachePadded<Frame>)| (frame.dirty.load(Ordering::Acquire) != 0).then_some(index);
        self.frames.frames.iter().enumerate().filter_map(dirty).collect()
    }

    /// Writes a buffer out, if it holds anything that flash does not; waits for who is doing that.
    pub(crate) fn flush_buffer(&self, index: usize) -> Result<(), LftlError> {
        let frame = &self.frames.frames[index];
        if frame.dirty.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        self.check_writable()?;
        let _gate = lock(&frame.gate);
        self.write_out(frame)
    }

    /// Makes what was written to a page survive power loss.
    ///
    /// # Errors
    /// As [`Engine::flush`].
    pub fn flush_page(&self, lpn: Lpn) -> Result<(), LftlError> {
        self.check(lpn, 0, 0)?;
        match self.frames.find(lpn) {
            Found::In(index) => self.flush_buffer(index),
            // It was written out since.
            Found::Busy | Found::Nowhere => Ok(()),
        }
    }

    /// Writes out the buffers that nobody used for [`Options::idle`] and empties them. `now_ms` is
    /// the time since an arbitrary moment, the same for every call.
    ///
    /// # Errors
    /// As [`Engine::flush`].
    pub fn flush_idle(&self, now_ms: u64) -> Result<(), LftlError> {
        self.frames.now_ms.store(now_ms, Ordering::Relaxed);
        let idle_ms = u64::try_from(self.options.idle.as_millis()).unwrap_or(u64::MAX);
        let Some(since_ms) = now_ms.checked_sub(idle_ms) else { return Ok(()) };
        for index in (0..self.frames.frames.len()).filter(|index| self.frames.is_idle(*index, since_ms)) {
            self.check_writable()?;
            if self.evict_one(index)? {
                self.frames.put_empty(index);
            }
        }
        Ok(())
    }

    /// Forgets whole pages; they read as zeros.
    ///
    /// **Power loss**: a page may be forgotten or not, or read as some version that it had or as an
    /// error, until [`Engine::flush`] has completed.
    ///
    /// # Errors
    /// [`LftlError::OutOfRange`] before anything was forgotten; [`LftlError::Failed`].
    pub fn trim(&self, first: Lpn, count: u32) -> Result<(), LftlError> {
        let pages = self.map.pages();
        if first.0 > pages || count > pages - first.0 {
            let bytes = (count as usize).saturating_mul(self.page_bytes());
            return Err(LftlError::OutOfRange { lpn: first, at: 0, bytes, logical_pages: pages });
        }
        self.check_writable()?;
        let mut at = first.0;
        let end = first.0 + count;
        while at < end {
            // Released in between, so that a flush does not wait for a trim of everything.
            let until = end.min(at + 4096);
            let log = lock(&self.trims.log);
            (at..until).for_each(|lpn| self.trim_page(Lpn(lpn)));
            drop(log);
            at = until;
        }
        Ok(())
    }

    fn trim_page(&self, lpn: Lpn) {
        let mut backoff = Backoff::new();
        loop {
            match self.frames.find(lpn) {
                Found::Nowhere if self.map.get(lpn) == UNMAPPED => return,
                Found::Nowhere if self.frames.begin(lpn) => break,
                Found::Nowhere => {}
                Found::Busy => backoff.wait(),
                Found::In(index) => {
                    let frame = &self.frames.frames[index];
                    let _gate = lock(&frame.gate);
                    let mut page = alone(&frame.page);
                    if page.lpn == lpn {
                        frame.dirty.store(0, Ordering::Release);
                        self.empty(index, &mut page, true);
                        self.frames.put_empty(index);
                        break;
                    }
                }
            }
        }
        // The bit against double allocation is set: nobody writes the page or has it in a buffer.
        self.point(lpn, None, UNMAPPED);
        self.trims.trimmed(lpn);
        self.frames.end(lpn);
    }

    /// Writes the trims that wait to flash.
    fn flush_trims(&self) -> Result<(), LftlError> {
        if !self.trims.any() {
            return Ok(());
        }
        self.check_writable()?;
        // A checkpoint takes the same locks the other way round.
        self.void_clean()?;
        let mut log = lock(&self.trims.log);
        // Before the bits are looked at: see `trims`.
        let number = self.seq.fetch_add(1, Ordering::AcqRel);
        let ranges = self.trims.take();
        for part in ranges.chunks(self.meta_bytes() / 8) {
            let bytes: Vec<u8> =
                part.iter().flat_map(|r| [r.first.to_le_bytes(), r.count.to_le_bytes()].concat()).collect();
            if let Err(error) = self.write_meta(&mut log, (Kind::Trims, number), &bytes) {
                // Nobody knows any more which trims wait.
                self.fail(format!("trims could not be kept: {error}"));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Whether a page may read as something else than zeros.
    #[must_use]
    pub fn holds_data(&self, lpn: Lpn) -> bool {
        lpn.0 < self.map.pages() && (self.map.get(lpn) != UNMAPPED || self.frames.find(lpn) != Found::Nowhere)
    }

    /// Gives the devices back as power loss would leave them: nothing is saved.
    #[must_use]
    pub fn into_devices(self) -> Devices {
        Devices(self.banks.into_iter().map(|cell| cell.into_inner().into_bank().nand).collect())
    }
}

/// The sectors that a range touches, one bit each.
fn sectors_of(at: usize, bytes: usize) -> u32 {
    let (first, end) = (at / SECTOR_BYTES, (at + bytes).div_ceil(SECTOR_BYTES));
    mask(first, if bytes == 0 { first } else { end })
}

/// The sectors that lie wholly inside a range.
fn whole_sectors_of(at: usize, bytes: usize) -> u32 {
    mask(at.div_ceil(SECTOR_BYTES), (at + bytes) / SECTOR_BYTES)
}

fn mask(first: usize, end: usize) -> u32 {
    (first..end).fold(0, |mask, sector| mask | 1 << sector)
}

/// Copies what a buffer holds of a range over what was read from flash.
fn copy_present(page: &Page, at: usize, out: &mut [u8]) {
    let end = at + out.len();
    for sector in (at / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES)).filter(|sector| page.present & 1 << sector != 0) {
        let from = at.max(sector * SECTOR_BYTES);
        let to = end.min((sector + 1) * SECTOR_BYTES);
        out[from - at..to - at].copy_from_slice(&page.data[from..to]);
    }
}
