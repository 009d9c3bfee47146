//! Page validity log (PVL): dead pages are logged, and chained by block.
//!
//! The store of IB-FTL (Huang, Chang and Kuo, TODAES 2013) with the cleaning that GeckoFTL's paper
//! adds to it (Appendix E). Reports are as cheap as they can be; queries read a page for almost
//! every dead page of the block, and RAM holds ten bytes a block. Not for devices short of RAM, nor
//! where recovery has to be quick: it scans the log.
//!
//! 1. A report becomes an entry in a buffer of one page: the dead page, the position of the block's
//!    entry before it, and a timestamp. RAM holds the position of each block's newest entry. A full
//!    buffer is programmed, and one whose first entry is so old that sixteen bits do not hold the
//!    time since.
//! 2. Positions count entries around a ring of log pages; a directory in RAM says where each page
//!    is.
//! 3. An erase forgets the block's chain and notes the time, as the next program's sequence number.
//!    Entries that are not younger are obsolete: a page has to be programmed before it can die
//!    again.
//! 4. A query follows the chain towards older entries. The chain ends where it leads to a page that
//!    has been cleaned; such a link names a slot of the ring that is empty or holds a younger page
//!    than the entry with the link.
//! 5. When the log is longer than X entries, up to four of its oldest pages are cleaned for every V
//!    new entries: entries made after the last erase of their block are reported again, the others
//!    dropped. A cleaned page is discarded once what was reported again is in flash.
//!
//! The paper sets X to twice the pages that over-provisioning adds, because no more than those can
//! be dead. That holds only once every logical page was written: before that, all pages of the
//! device may be dead. So X is where cleaning begins, not a bound. The bound, in pages: a pass
//! cleans the n pages that the log has when it begins. Meanwhile n/4 pages of new entries come in,
//! and at most d pages return, d being what all pages of the device would fill. So a pass that
//! begins with n ends with n/4 + d, none begins with more than the larger of X/V and 4d/3, and d/4
//! more is the most in between. Cleaning comes before the next report, not after a program: power
//! loss in between would else leave a page more each time. So a mount owes it too.
//!
//! Power loss: entries in the buffer, the chain heads and the times of erases are lost; what is on
//! flash says the rest.
//!
#![doc = include_str!("FORMAT.md")]

mod format;
mod recover;

use super::{Entry as Row, MetaStore, PageSet, Site, Store, Validity};
use crate::bound::Most;
use crate::contract::{FtlError, RamItem, RamReport};
use crate::flash::Purpose;
use crate::inspect::{Inspector, LevelView};
use alloc::format;
use alloc::vec::Vec;
use format::{Entry, HEADER_BYTES, Header, NOWHERE};
use nand::{BlockId, PageKind, Ppn, Spare};

/// Pages cleaned, at most, for each page of new entries.
const CLEAN_STEP: u32 = 4;

/// The shape of a device and of the log on it.
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// Blocks of the device.
    pub blocks: u32,
    /// Pages in each.
    pub pages_per_block: u32,
    /// Bytes in a page.
    pub page_bytes: u32,
    /// X: entries beyond which the log is cleaned.
    pub entries: u64,
    /// The most pages that die between two chances to collect garbage.
    pub reports: u32,
}

/// Times of erases, 48 bits each.
#[derive(Clone, Debug)]
struct Stamps {
    low: Vec<u32>,
    high: Vec<u16>,
}

impl Stamps {
    fn new(blocks: u32) -> Self {
        Self { low: alloc::vec![0; blocks as usize], high: alloc::vec![0; blocks as usize] }
    }

    fn get(&self, block: BlockId) -> u64 {
        u64::from(self.low[block.index()]) | u64::from(self.high[block.index()]) << 32
    }

    fn set(&mut self, block: BlockId, stamp: u64) {
        self.low[block.index()] = stamp as u32;
        self.high[block.index()] = (stamp >> 32) as u16;
    }
}

/// A page validity log.
#[derive(Clone, Debug)]
pub struct ValidityLog {
    options: LogOptions,
    /// V: entries on a page.
    per_page: u32,
    /// Position of each block's newest entry.
    heads: Vec<u32>,
    erased: Stamps,
    /// Where the log page in each slot is.
    ring: Vec<Ppn>,
    /// The number of the oldest page.
    oldest: u64,
    /// Pages in the log.
    pages: u32,
    /// How many of the oldest pages were cleaned since the buffer was programmed last.
    cleaned: u32,
    buffer: Vec<u8>,
    buffered: u32,
    /// New entries since pages were cleaned last; a page of them and no more are taken before
    /// cleaning.
    fresh: u32,
    scratch: Vec<u8>,
    flushes: u64,
}

impl ValidityLog {
    /// The empty log of a device on which no page is dead.
    ///
    /// # Errors
    /// [`FtlError::Unsupported`] if a page holds no entry, or positions in the log would need more
    /// than 32 bits.
    pub fn new(options: LogOptions) -> Result<Self, FtlError> {
        let unsupported = |reason| FtlError::Unsupported { ftl: "the page validity log", reason };
        let per_page = u64::from(options.page_bytes).saturating_sub(HEADER_BYTES as u64) / Entry::BYTES as u64;
        if per_page == 0 {
            return Err(unsupported(format!(
                "pages of {} bytes are too short; it needs {}",
                options.page_bytes,
                Header::used(1)
            )));
        }
        let dead = (u64::from(options.blocks) * u64::from(options.pages_per_block)).div_ceil(per_page) + 2;
        let wanted = options.entries.div_ceil(per_page);
        let slots = wanted.max((4 * dead).div_ceil(3)) + dead.div_ceil(4) + u64::from(CLEAN_STEP) + 4;
        if slots * per_page >= u64::from(NOWHERE) {
            return Err(unsupported(format!(
                "a log of {slots} pages of {per_page} entries needs positions of more than 32 bits; use a smaller device or \
                 another page-validity store"
            )));
        }
        let page = || alloc::vec![0xFF; options.page_bytes as usize];
        Ok(Self {
            per_page: per_page as u32,
            heads: alloc::vec![NOWHERE; options.blocks as usize],
            erased: Stamps::new(options.blocks),
            ring: alloc::vec![Ppn::NONE; slots as usize],
            oldest: 0,
            pages: 0,
            cleaned: 0,
            buffer: page(),
            buffered: 0,
            fresh: 0,
            scratch: page(),
            flushes: 0,
            options,
        })
    }

    /// The slot of the page so many after the oldest.
    fn slot(&self, age: u32) -> u32 {
        debug_assert!(age < self.ring.len() as u32, "page {age} of a ring of {}", self.ring.len());
        ((self.oldest + u64::from(age)) % self.ring.len() as u64) as u32
    }

    /// How many pages before this slot's the log begins; the buffer has the largest age of all.
    fn age(&self, slot: u32) -> u32 {
        debug_assert!((slot as usize) < self.ring.len());
        let oldest = self.slot(0);
        if slot >= oldest { slot - oldest } else { slot + self.ring.len() as u32 - oldest }
    }

    /// The slot of a page with this number, if that is one of the log's.
    fn slot_of(&self, number_low: u32) -> Option<usize> {
        let age = number_low.wrapping_sub(self.oldest as u32);
        (age < self.pages).then(|| self.slot(age) as usize)
    }

    fn block_of(&self, ppn: Ppn) -> BlockId {
        BlockId(ppn.0 / self.options.pages_per_block)
    }

    /// Reads the page so many after the oldest into `scratch`; answers how many entries it has.
    ///
    /// Its check value is not asked for: a page of the ring was programmed to its end since the
    /// mount, or was found sound in it, and what reads at all is what was programmed.
    fn fetch<S: MetaStore>(&mut self, store: &mut S, purpose: Purpose, age: u32) -> Result<u32, FtlError> {
        debug_assert!(age < self.pages, "page {age} of {} is not in the log", self.pages);
        let ppn = self.ring[self.slot(age) as usize];
        store.fetch(purpose, ppn, &mut self.scratch)?;
        match Header::read_known(&self.scratch) {
            Some(header) if header.number == self.oldest + u64::from(age) => Ok(header.count),
            _ => Err(damaged(ppn, "it holds something else than was written there")),
        }
    }

    /// Adds an entry. On an error it was not added.
    fn push<S: MetaStore>(&mut self, store: &mut S, ppn: Ppn) -> Result<(), FtlError> {
        if self.buffered == self.per_page {
            self.program(store)?;
        } else if !Entry::fits(&self.buffer, self.buffered as usize, store.next_seq()) {
            self.program(store)?;
            // The bound counts pages: one that is not full has to be followed by cleaning as a full
            // one is.
            self.fresh = self.per_page;
        }
        let block = self.block_of(ppn).index();
        debug_assert!(self.buffered < self.per_page && block < self.heads.len());
        let position = self.slot(self.pages) * self.per_page + self.buffered;
        let older = core::mem::replace(&mut self.heads[block], position);
        Entry { ppn, older, stamp: store.next_seq() }.put(&mut self.buffer, self.buffered as usize);
        self.buffered += 1;
        debug_assert!(older != position, "the chain of block {block} bites its tail");
        Ok(())
    }

    /// Programs the buffer as the log's newest page and discards what was cleaned before.
    fn program<S: MetaStore>(&mut self, store: &mut S) -> Result<(), FtlError> {
        debug_assert!(self.pages + 1 < self.ring.len() as u32, "the log outgrew its {} slots", self.ring.len());
        let slot = self.slot(self.pages) as usize;
        debug_assert!(self.buffered > 0 && self.cleaned <= self.pages);
        debug_assert!(!self.ring[slot].is_some(), "slot {slot} holds a page of the log");
        let header = Header {
            number: self.oldest + u64::from(self.pages),
            before: self.pages - self.cleaned,
            slots: self.ring.len() as u32,
            count: self.buffered,
        };
        let end = header.seal(&mut self.buffer);
        self.ring[slot] = store.append(Purpose::Validity, header.number as u32, header.before, &self.buffer[..end])?;
        self.pages += 1;
        self.buffered = 0;
        self.flushes += 1;
        for _ in 0..core::mem::take(&mut self.cleaned) {
            let oldest = self.slot(0) as usize;
            debug_assert!(self.ring[oldest].is_some(), "the oldest page of the log is none");
            store.discard(core::mem::replace(&mut self.ring[oldest], Ppn::NONE));
            self.oldest += 1;
            self.pages -= 1;
        }
        Ok(())
    }

    /// Cleans old pages while the log is too long, a bounded number of them.
    fn clean<S: MetaStore>(&mut self, store: &mut S) -> Result<(), FtlError> {
        self.fresh = 0;
        for _ in 0..CLEAN_STEP {
            let entries = u64::from(self.pages - self.cleaned) * u64::from(self.per_page);
            if entries <= self.options.entries || self.pages == self.cleaned {
                break;
            }
            for index in 0..self.fetch(store, Purpose::Validity, self.cleaned)? {
                let entry = Entry::get(&self.scratch, index as usize);
                debug_assert!(self.block_of(entry.ppn).index() < self.heads.len());
                if entry.stamp > self.erased.get(self.block_of(entry.ppn)) {
                    self.push(store, entry.ppn)?;
                }
            }
            self.cleaned += 1;
            debug_assert!(self.cleaned <= self.pages);
        }
        Ok(())
    }
}

fn damaged(ppn: Ppn, reason: &'static str) -> FtlError {
    FtlError::Damaged { structure: "page validity log", ppn, reason }
}

impl Store for ValidityLog {
    const ENTRY: Row = Row {
        name: "log",
        summary: "log of dead pages in flash (PVL), chained by block: cheap reports, a query reads a page for each dead one",
        source: "Huang, Chang and Kuo, TODAES 2013; cleaning: GeckoFTL's paper, Appendix E",
        settings: &[],
    };

    /// X is twice what over-provisioning adds, as in the paper.
    fn make(site: &Site) -> Result<Self, FtlError> {
        let pages = u64::from(site.blocks) * u64::from(site.pages_per_block);
        Self::new(LogOptions {
            blocks: site.blocks,
            pages_per_block: site.pages_per_block,
            page_bytes: site.page_bytes,
            entries: 2 * pages.saturating_sub(u64::from(site.logical_pages)),
            reports: site.reports,
        })
    }
}

impl Validity for ValidityLog {
    #[inline]
    fn tracks_metadata(&self) -> bool {
        false
    }

    /// Reports wait in RAM, but old translation pages do not help to find them: nothing need be
    /// kept for that.
    #[inline]
    fn is_buffered(&self) -> bool {
        false
    }

    /// On an error the report may have been taken; to make it again does no harm.
    fn invalidate<S: MetaStore>(&mut self, store: &mut S, ppn: Ppn) -> Result<(), FtlError> {
        if self.fresh >= self.per_page {
            self.clean(store)?;
        }
        self.push(store, ppn)?;
        self.fresh += 1;
        Ok(())
    }

    fn erased<S: MetaStore>(&mut self, _: &mut S, block: BlockId, seq: u64) -> Result<(), FtlError> {
        debug_assert!(
            self.erased.get(block) <= seq || self.heads[block.index()] == NOWHERE,
            "{block} was erased before that"
        );
        self.heads[block.index()] = NOWHERE;
        self.erased.set(block, seq);
        Ok(())
    }

    fn query<S: MetaStore>(&mut self, store: &mut S, block: BlockId, dead: &mut PageSet) -> Result<(), FtlError> {
        let (mut position, mut younger, mut loaded) = (self.heads[block.index()], (self.pages, u32::MAX), self.pages);
        while position != NOWHERE {
            let (slot, index) = (position / self.per_page, position % self.per_page);
            let age = self.age(slot);
            // Older entries have smaller positions; a chain that leads elsewhere has ended, or an
            // image made it up.
            if (age, index) >= younger {
                break;
            }
            if age != loaded {
                self.fetch(store, Purpose::ValidityQuery, age)?;
                loaded = age;
            }
            let entry = Entry::get(if age == self.pages { &self.buffer } else { &self.scratch }, index as usize);
            debug_assert!(self.block_of(entry.ppn) == block, "the chain of {block} leads to {}", entry.ppn);
            dead.insert(entry.ppn.0 % self.options.pages_per_block);
            (position, younger) = (entry.older, (age, index));
        }
        Ok(())
    }

    fn owns(&self, ppn: Ppn, spare: &Spare) -> bool {
        spare.kind == PageKind::Validity && self.slot_of(spare.tag).is_some_and(|slot| self.ring[slot] == ppn)
    }

    fn find_own(&self, wanted: impl Fn(Ppn) -> bool) -> Option<Ppn> {
        self.live_pages().find(|ppn| wanted(*ppn))
    }

    fn moved(&mut self, from: Ppn, to: Ppn, spare: &Spare) {
        debug_assert!(self.owns(from, spare), "{from} is no page of the log");
        if let Some(slot) = self.slot_of(spare.tag) {
            self.ring[slot] = to;
        }
    }

    /// What cleaning reports again afterwards needs no program: it is still in flash where it was.
    fn flush<S: MetaStore>(&mut self, store: &mut S) -> Result<(), FtlError> {
        if self.buffered == 0 {
            return Ok(());
        }
        self.program(store)?;
        self.fresh = self.per_page;
        Ok(())
    }

    fn flushes(&self) -> u64 {
        self.flushes
    }

    /// A page of new entries has up to `CLEAN_STEP` pages cleaned, of which all may come back. A
    /// flush programs a page that is not full, and so does an entry whose time does not fit.
    fn most_work(&self, reports: u64, _: u64, flushes: u64) -> Most {
        let pages = (reports / u64::from(self.per_page) + 1 + flushes) * (1 + u64::from(CLEAN_STEP)) + 1;
        Most::pages(pages, pages)
    }

    /// One for each dead page of the block.
    fn most_query_reads(&self) -> u32 {
        self.options.pages_per_block
    }

    fn reserve_pages(&self) -> u32 {
        (self.options.reports / self.per_page + 2) * (1 + CLEAN_STEP) + 2
    }

    fn footprint_pages(&self) -> u32 {
        self.ring.len() as u32
    }

    fn inspect(&self, inspector: &mut dyn Inspector) {
        let (entries, capacity) = (self.buffered, self.per_page);
        inspector.level(LevelView { name: "log_buffers", entries, capacity, dirty: entries });
        self.ring.iter().filter(|ppn| ppn.is_some()).for_each(|ppn| inspector.metadata(*ppn));
    }

    fn ram(&self, report: &mut RamReport) {
        let item = |name, bytes: usize| RamItem { name, bytes: bytes as u64 };
        report.push(item("log_heads", self.heads.capacity() * size_of::<u32>()));
        let stamps = self.erased.low.capacity() * size_of::<u32>() + self.erased.high.capacity() * size_of::<u16>();
        report.push(item("log_erase_stamps", stamps));
        report.push(item("log_directory", self.ring.capacity() * size_of::<Ppn>()));
        report.push(item("log_buffers", self.buffer.capacity() + self.scratch.capacity()));
    }
}
