//! The write buffers, and which logical page is in which.
//!
//! `lookup` has a word for each logical page. It is read without a lock, and confirmed under the
//! lock of the buffer that it names. The value [`BUSY`] is the bit against double allocation: who
//! puts it there is alone in giving the page a buffer, or in forgetting the page.
//!
//! A buffer has two locks. `page` guards its contents. `gate` is held by the one thread that writes
//! it out, gives it away or forgets it; that thread programs with `page` locked for reading, so
//! that readers see the newest contents until flash holds them. Order: gate, page, lock of a bank.

use crate::shape::Shape;
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Mutex, Ordering, RwLock};
use buffer::replacement::{BufferView, Replacement};
use crossbeam_queue::ArrayQueue;
use crossbeam_utils::CachePadded;
use nand::Lpn;

/// No buffer holds the page.
const NOWHERE: u32 = u32::MAX;
/// Somebody gives the page a buffer, or forgets the page.
const BUSY: u32 = u32::MAX - 1;

/// What `lookup` says of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Nowhere,
    Busy,
    In(usize),
}

/// The contents of a buffer.
pub(crate) struct Page {
    pub(crate) lpn: Lpn,
    pub(crate) data: Box<[u8]>,
    /// Sectors that the buffer holds, one bit each.
    pub(crate) present: u32,
    /// Sectors of those that are lost: flash could not be read.
    pub(crate) lost: u32,
}

/// A write buffer.
pub(crate) struct Frame {
    pub(crate) gate: Mutex<()>,
    pub(crate) page: RwLock<Page>,
    /// Somebody writes it out to take it; others look for another one.
    pub(crate) taken: AtomicBool,
    /// Sectors that flash does not hold. Raised with `page` locked for writing, cleared by who
    /// holds the gate and `page` for reading.
    pub(crate) dirty: AtomicU32,
    queued: AtomicBool,
    /// What policies look at, without a lock: the page, whether all of it was written, when it was
    /// given the buffer, when it was used.
    lpn: AtomicU32,
    full: AtomicBool,
    entered: AtomicU64,
    used: AtomicU64,
    used_ms: AtomicU64,
}

/// All buffers.
pub(crate) struct Frames {
    /// Each in cache lines of its own, as all that every writer changes.
    pub(crate) frames: Vec<CachePadded<Frame>>,
    lookup: Vec<AtomicU32>,
    empty: ArrayQueue<usize>,
    full: ArrayQueue<usize>,
    clock: CachePadded<AtomicU64>,
    pub(crate) now_ms: AtomicU64,
    /// The policy asks when a buffer was used.
    notes_use: bool,
}

impl Frames {
    pub(crate) fn new(shape: &Shape, (buffers, replacement): (u32, Replacement), logical_pages: u32) -> Self {
        let count = buffers as usize;
        let frame = || Frame {
            gate: Mutex::new(()),
            page: RwLock::new(Page { lpn: Lpn::NONE, data: vec![0; shape.page_bytes()].into(), present: 0, lost: 0 }),
            taken: AtomicBool::new(false),
            dirty: AtomicU32::new(0),
            queued: AtomicBool::new(false),
            lpn: AtomicU32::new(NOWHERE),
            full: AtomicBool::new(false),
            entered: AtomicU64::new(0),
            used: AtomicU64::new(0),
            used_ms: AtomicU64::new(0),
        };
        let frames = Self {
            frames: (0..count).map(|_| CachePadded::new(frame())).collect(),
            lookup: (0..logical_pages).map(|_| AtomicU32::new(NOWHERE)).collect(),
            empty: ArrayQueue::new(count),
            full: ArrayQueue::new(count),
            clock: CachePadded::new(AtomicU64::new(0)),
            now_ms: AtomicU64::new(0),
            notes_use: replacement.looks_at_use(),
        };
        (0..count).for_each(|index| frames.put_empty(index));
        frames
    }

    pub(crate) fn find(&self, lpn: Lpn) -> Found {
        match self.lookup[lpn.index()].load(Ordering::Acquire) {
            NOWHERE => Found::Nowhere,
            BUSY => Found::Busy,
            index => Found::In(index as usize),
        }
    }

    /// Sets the bit against double allocation; `false` if it is set or a buffer holds the page.
    pub(crate) fn begin(&self, lpn: Lpn) -> bool {
        let cell = &self.lookup[lpn.index()];
        cell.compare_exchange(NOWHERE, BUSY, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Says which buffer holds a page, and takes the bit back. The page of the buffer is locked for
    /// writing and names `lpn`.
    pub(crate) fn enter(&self, lpn: Lpn, index: usize) {
        let frame = &self.frames[index];
        debug_assert!(self.lookup[lpn.index()].load(Ordering::Relaxed) == BUSY);
        frame.entered.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        frame.full.store(false, Ordering::Relaxed);
        frame.lpn.store(lpn.0, Ordering::Release);
        self.touch(index);
        self.lookup[lpn.index()].store(index as u32, Ordering::Release);
    }

    /// Says that no buffer holds a page any more, and with `busy` sets the bit in the same step.
    pub(crate) fn leave(&self, lpn: Lpn, index: usize, busy: bool) {
        self.frames[index].lpn.store(NOWHERE, Ordering::Release);
        self.lookup[lpn.index()].store(if busy { BUSY } else { NOWHERE }, Ordering::Release);
    }

    /// Takes the bit against double allocation back.
    pub(crate) fn end(&self, lpn: Lpn) {
        debug_assert!(self.lookup[lpn.index()].load(Ordering::Relaxed) == BUSY);
        self.lookup[lpn.index()].store(NOWHERE, Ordering::Release);
    }

    pub(crate) fn take_empty(&self) -> Option<usize> {
        self.empty.pop()
    }

    pub(crate) fn put_empty(&self, index: usize) {
        let queued = self.empty.push(index);
        debug_assert!(queued.is_ok(), "buffer {index} is empty twice");
    }

    /// A buffer was read or written.
    pub(crate) fn touch(&self, index: usize) {
        let frame = &self.frames[index];
        if self.notes_use {
            frame.used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        }
        frame.used_ms.store(self.now_ms.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// All sectors of a buffer were written.
    pub(crate) fn filled(&self, index: usize) {
        let frame = &self.frames[index];
        frame.full.store(true, Ordering::Relaxed);
        if !frame.queued.swap(true, Ordering::AcqRel) {
            // It has room for every buffer once.
            let _ = self.full.push(index);
        }
    }

    /// The full buffer that has waited longest. It may have been written out since it was queued.
    pub(crate) fn take_full(&self) -> Option<usize> {
        let index = self.full.pop()?;
        self.frames[index].queued.store(false, Ordering::Release);
        Some(index)
    }

    /// The buffers that hold a page and that nobody takes, as policies see them.
    pub(crate) fn views(&self) -> Vec<BufferView> {
        let view = |(index, frame): (usize, &CachePadded<Frame>)| {
            let lpn = frame.lpn.load(Ordering::Acquire);
            let free = lpn != NOWHERE && !frame.taken.load(Ordering::Relaxed);
            free.then(|| BufferView {
                index,
                lpn,
                dirty: frame.dirty.load(Ordering::Relaxed) != 0,
                full: frame.full.load(Ordering::Relaxed),
                entered: frame.entered.load(Ordering::Relaxed),
                used: frame.used.load(Ordering::Relaxed),
            })
        };
        self.frames.iter().enumerate().filter_map(view).collect()
    }

    /// Whether a buffer holds what flash does not, and nobody used it since this time.
    pub(crate) fn is_idle(&self, index: usize, since_ms: u64) -> bool {
        let frame = &self.frames[index];
        frame.dirty.load(Ordering::Acquire) != 0 && frame.used_ms.load(Ordering::Relaxed) <= since_ms
    }
}
