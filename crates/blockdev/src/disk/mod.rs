//! A device over one FTL, or over several that share the pages.
//!
//! 1. `layout` stripes pages over shards. Each shard has its own FTL and its own lock.
//! 2. `shard` reads and writes pages, and keeps two bits for each: may it hold data, and does a
//!    trim of it wait? Two bits a page are bounded whatever is trimmed: no list can be full.
//! 3. `keeper` is a thread that tells the FTLs of trims, and lets them work while nobody asks.
//! 4. A flush tells each FTL of every trim that waits, flushes it, and then syncs the store.

mod bitmap;
mod keeper;
mod layout;
mod shard;

use crate::contract::{BlockDevice, BlockSizes, DiskError, DiskReport, Extent, Settling, Zeroing};
use crate::log::{Log, Severity, Silent};
use ftl::ftls::{Durability, Info};
use ftl::{Ftl, FtlError, Purpose};
use keeper::Keeper;
use layout::Layout;
pub use layout::{STRIPE_PAGES, striped_pages};
use nand::{Nand, NandError};
use shard::Shard;
use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Pages that an FTL is told to forget while its lock is held.
const TRIM_STEP: u32 = 512;
/// Pages whose errors are remembered, so that each is logged once.
const COMPLAINTS_MAX: usize = 1024;

/// What keeps the flash of a disk: a file that has to be synced.
pub trait Store: Send {
    /// Makes every operation of the flash that has completed survive what the store survives.
    ///
    /// # Errors
    /// Those of the operating system. After one the disk takes no more writes, because nobody
    /// knows which of them are lost.
    fn sync(&mut self) -> io::Result<()>;
}

/// What the flash of a disk outlives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeping {
    /// Nothing: it is in memory.
    Nothing,
    /// The server, if that is stopped cleanly and [`Disk::close`] has saved.
    CleanStop,
    /// The server, however that ends.
    PowerLoss,
}

/// How a disk is made of its FTLs.
pub struct DiskOptions {
    /// What the flash outlives.
    pub keeping: Keeping,
    /// What is synced by a flush; `None` if nothing has to be.
    pub store: Option<Box<dyn Store>>,
    /// The FTLs were just formatted: no page was ever written.
    pub empty: bool,
    /// Refuse writes.
    pub read_only: bool,
    /// Whatever changes the disk survives power loss before it is answered, as if it had FUA.
    pub write_through: bool,
    /// Let the FTLs collect garbage while nobody asks.
    pub idle: bool,
    /// Where it is said what went wrong.
    pub log: Arc<dyn Log>,
}

impl DiskOptions {
    /// Neither synced nor known to be empty, writable, with a cache, at work while idle, silent.
    #[must_use]
    pub fn new(keeping: Keeping) -> Self {
        Self {
            keeping,
            store: None,
            empty: false,
            read_only: false,
            write_through: false,
            idle: true,
            log: Arc::new(Silent),
        }
    }
}

/// Why FTLs were not made a disk.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The FTL forgets everything when power goes, by its design.
    #[error(
        "{ftl} cannot be served: its published design assumes maps in non-volatile memory, and it cannot be mounted"
    )]
    NonVolatileMaps {
        /// The FTL.
        ftl: &'static str,
    },
    /// The FTL is a yardstick that keeps nothing.
    #[error("{ftl} cannot be served: it loses data by design and is there for comparison only")]
    ForComparison {
        /// The FTL.
        ftl: &'static str,
    },
    /// The FTL needs a battery, and nobody promised to stop it cleanly.
    #[error(
        "{ftl} needs a battery: power loss, or a server that is killed, can undo writes that were flushed; it is served \
         only where a clean stop is all that has to be survived"
    )]
    NeedsBattery {
        /// The FTL.
        ftl: &'static str,
    },
    /// There is no FTL, or the FTLs do not fit together.
    #[error("the shards do not make a disk: {reason}")]
    Shards {
        /// What is wrong.
        reason: String,
    },
}

/// A device over FTLs that keep every byte.
///
/// Dropping it stops its thread and saves nothing; [`Disk::close`] saves.
pub struct Disk<N: Nand<Payload = [u8]> + 'static> {
    inner: Arc<Inner<N>>,
    keeper: Option<Keeper>,
}

struct Inner<N: Nand> {
    shards: Vec<Mutex<Shard<N>>>,
    layout: Layout,
    durable: Durability,
    read_only: bool,
    write_through: bool,
    store: Mutex<Option<Box<dyn Store>>>,
    has_store: bool,
    /// Something was done since the store was synced last.
    unsynced: AtomicBool,
    /// Why no more writes are taken.
    failed: OnceLock<String>,
    /// Requests since the disk was made; by it the keeper sees that nobody asks.
    requests: AtomicU64,
    /// Requests that wait for a shard.
    queued: AtomicU32,
    complaints: Mutex<BTreeSet<u64>>,
    log: Arc<dyn Log>,
}

/// A page of a request: which bytes of it are which bytes of the request.
struct Piece {
    page: u32,
    /// First byte within the page.
    at: usize,
    /// Bytes within the request.
    bytes: Range<usize>,
}

impl<N: Nand<Payload = [u8]> + 'static> Disk<N> {
    /// Makes a disk of FTLs of one kind, whose row is `info`, and starts its thread.
    ///
    /// # Errors
    /// [`Refusal`] if the FTL cannot keep what the disk promises, or the shards differ in page
    /// size.
    pub fn new(ftls: Vec<Box<dyn Ftl<N>>>, info: Info, options: DiskOptions) -> Result<Self, Refusal> {
        match (info.durable, options.keeping) {
            (Durability::NonVolatileMaps, _) => return Err(Refusal::NonVolatileMaps { ftl: info.name }),
            (Durability::Nothing, _) => return Err(Refusal::ForComparison { ftl: info.name }),
            (Durability::Battery, Keeping::PowerLoss) => return Err(Refusal::NeedsBattery { ftl: info.name }),
            _ => {}
        }
        let layout = layout_of(&ftls)?;
        let shard = |ftl| Mutex::new(Shard::new(ftl, layout.shard_pages, options.empty));
        let inner = Arc::new(Inner {
            shards: ftls.into_iter().map(shard).collect(),
            layout,
            durable: info.durable,
            read_only: options.read_only,
            write_through: options.write_through,
            has_store: options.store.is_some(),
            store: Mutex::new(options.store),
            // A mount may have programmed something.
            unsynced: AtomicBool::new(true),
            failed: OnceLock::new(),
            requests: AtomicU64::new(0),
            queued: AtomicU32::new(0),
            complaints: Mutex::default(),
            log: options.log,
        });
        let keeper = match options.read_only {
            true => None,
            false => Some(Keeper::start(&inner, options.idle)),
        };
        Ok(Self { inner, keeper })
    }

    /// Flushes, and saves what only RAM holds. No request may be under way, and none may follow.
    ///
    /// # Errors
    /// Those of a flush and of [`Ftl::power_failing`]: what was not flushed before may be lost.
    pub fn close(&self) -> Result<(), DiskError> {
        if let Some(keeper) = &self.keeper {
            keeper.stop();
        }
        let inner = &self.inner;
        if !inner.read_only {
            inner.flush_shards(0..inner.shards.len(), true)?;
        }
        for shard in 0..inner.shards.len() {
            let saved = inner.lock(shard)?.ftl.power_failing();
            saved.map_err(|source| inner.ftl_error(shard, source))?;
            inner.unsynced.store(true, Ordering::SeqCst);
        }
        inner.sync()
    }
}

impl<N: Nand<Payload = [u8]> + 'static> Drop for Disk<N> {
    fn drop(&mut self) {
        if let Some(keeper) = &self.keeper {
            keeper.stop();
        }
    }
}

fn layout_of<N: Nand>(ftls: &[Box<dyn Ftl<N>>]) -> Result<Layout, Refusal> {
    let refuse = |reason: String| Refusal::Shards { reason };
    let page_bytes = |ftl: &dyn Ftl<N>| ftl.flash().nand().geometry().page_bytes();
    let Some(first) = ftls.first() else { return Err(refuse("there is none".into())) };
    let bytes = page_bytes(first.as_ref());
    if let Some(other) = ftls.iter().map(|ftl| page_bytes(ftl.as_ref())).find(|other| *other != bytes) {
        return Err(refuse(format!("pages have {bytes} B in one and {other} B in another")));
    }
    let pages = ftls.iter().map(|ftl| ftl.logical_pages()).min().unwrap_or_default();
    let shards = u32::try_from(ftls.len()).map_err(|_| refuse(format!("there are {}", ftls.len())))?;
    let layout = Layout::new(bytes, shards, pages);
    if layout.shard_pages == 0 {
        return Err(refuse(format!("a shard has {pages} pages and needs {STRIPE_PAGES}; use fewer shards")));
    }
    Ok(layout)
}

impl<N: Nand<Payload = [u8]>> Inner<N> {
    fn lock(&self, shard: usize) -> Result<MutexGuard<'_, Shard<N>>, DiskError> {
        self.queued.fetch_add(1, Ordering::Relaxed);
        let guard = self.shards[shard].lock();
        self.queued.fetch_sub(1, Ordering::Relaxed);
        guard.map_err(|_| self.fail(format!("shard {shard} met a defect of the program in an earlier request")))
    }

    /// Takes no more writes from here on.
    fn fail(&self, reason: String) -> DiskError {
        if self.failed.set(reason).is_ok() {
            let text = format!("no more writes are taken: {}", self.failed_because());
            self.log.line(Severity::Error, &text);
        }
        DiskError::Failed { reason: self.failed_because() }
    }

    fn failed_because(&self) -> String {
        self.failed.get().cloned().unwrap_or_default()
    }

    /// Refuses a range outside the device.
    fn check(&self, offset: u64, bytes: u64) -> Result<(), DiskError> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let size_bytes = self.layout.bytes();
        match offset.checked_add(bytes) {
            Some(end) if end <= size_bytes => Ok(()),
            _ => Err(DiskError::OutOfRange { offset, bytes, size_bytes }),
        }
    }

    /// Refuses a change that cannot be made.
    fn check_change(&self, offset: u64, bytes: u64) -> Result<(), DiskError> {
        self.check(offset, bytes)?;
        match self.failed.get() {
            _ if self.read_only => Err(DiskError::ReadOnly),
            Some(reason) => Err(DiskError::Failed { reason: reason.clone() }),
            None => Ok(()),
        }
    }

    /// The pages that a range touches, and those that lie wholly inside.
    fn pages(&self, offset: u64, bytes: u64) -> (Range<u64>, Range<u64>) {
        let page = u64::from(self.layout.page_bytes);
        let end = offset + bytes;
        if bytes == 0 {
            return (0..0, 0..0);
        }
        let whole = offset.div_ceil(page)..end / page;
        (offset / page..end.div_ceil(page), if whole.is_empty() { 0..0 } else { whole })
    }

    /// Does something with each page of a request, shard by shard.
    fn each(
        &self,
        offset: u64,
        bytes: u64,
        mut act: impl FnMut(&mut Shard<N>, Piece) -> Result<(), FtlError>,
    ) -> Result<(), DiskError> {
        let page_bytes = u64::from(self.layout.page_bytes);
        let (pages, _) = self.pages(offset, bytes);
        for shard in 0..self.shards.len() {
            let locals = self.layout.range(shard, &pages);
            if locals.is_empty() {
                continue;
            }
            let mut guard = self.lock(shard)?;
            for local in locals {
                let page = self.layout.page_of(shard, local);
                let begin = offset.max(page * page_bytes);
                let end = (offset + bytes).min((page + 1) * page_bytes);
                let piece = Piece {
                    page: local,
                    at: (begin - page * page_bytes) as usize,
                    bytes: (begin - offset) as usize..(end - offset) as usize,
                };
                act(&mut guard, piece).map_err(|source| self.page_error(page, source))?;
            }
        }
        Ok(())
    }

    #[cold]
    fn page_error(&self, page: u64, source: FtlError) -> DiskError {
        let error = match source {
            FtlError::NoSpace(shortage) => DiskError::WornOut(shortage),
            // A host that cannot read one page may read others.
            FtlError::Nand(error)
                if error.is_final() && !matches!(error, NandError::Host { operation: "read", .. }) =>
            {
                return self.fail(error.to_string());
            }
            source => DiskError::Page { page, offset: page * u64::from(self.layout.page_bytes), source },
        };
        // A disk that is worn out is one complaint, whichever page was written.
        let about = if matches!(error, DiskError::WornOut(_)) { u64::MAX } else { page };
        self.complain_once(about, &error);
        error
    }

    #[cold]
    fn ftl_error(&self, shard: usize, source: FtlError) -> DiskError {
        let error = match source {
            FtlError::NoSpace(shortage) => DiskError::WornOut(shortage),
            FtlError::Nand(error) if error.is_final() => return self.fail(error.to_string()),
            source => DiskError::Ftl { shard, source },
        };
        self.complain_once(u64::MAX - shard as u64, &error);
        error
    }

    fn complain_once(&self, about: u64, error: &DiskError) {
        let mut complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        if complaints.len() < COMPLAINTS_MAX && complaints.insert(about) {
            self.log.line(Severity::Error, &error.to_string());
            if complaints.len() == COMPLAINTS_MAX {
                let text = format!("{COMPLAINTS_MAX} errors were logged; errors of other pages are not");
                self.log.line(Severity::Warning, &text);
            }
        }
    }

    /// Tells FTLs of the trims that wait, and with `all` makes everything they completed survive.
    fn flush_shards(&self, shards: Range<usize>, all: bool) -> Result<(), DiskError> {
        for shard in shards {
            let mut more = true;
            while more {
                let mut guard = self.lock(shard)?;
                let before = guard.changes();
                let told = guard.settle(TRIM_STEP).and_then(|more| {
                    // Under the same lock: nothing is trimmed between the last step and the flush.
                    if !more && all {
                        guard.ftl.flush()?;
                    }
                    Ok(more)
                });
                if guard.changes() != before {
                    self.unsynced.store(true, Ordering::SeqCst);
                }
                more = told.map_err(|source| self.ftl_error(shard, source))?;
            }
        }
        Ok(())
    }

    /// Flushes the FTLs that hold pages of a range, and syncs the store.
    fn flush_range(&self, pages: &Range<u64>) -> Result<(), DiskError> {
        for shard in 0..self.shards.len() {
            if !self.layout.range(shard, pages).is_empty() {
                self.flush_shards(shard..shard + 1, true)?;
            }
        }
        self.sync()
    }

    /// Makes a write survive that has completed in the FTLs.
    fn keep(&self, pages: &Range<u64>) -> Result<(), DiskError> {
        match self.durable {
            Durability::OnFlush => self.flush_range(pages),
            _ => self.sync(),
        }
    }

    /// Syncs the store, unless nothing was done since that was last done. Who comes while another
    /// syncs waits, because the other may have begun before this one's write.
    fn sync(&self) -> Result<(), DiskError> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reason) = self.failed.get() {
            return Err(DiskError::Failed { reason: reason.clone() });
        }
        if !self.unsynced.swap(false, Ordering::SeqCst) {
            return Ok(());
        }
        match store.as_mut().map_or(Ok(()), |store| store.sync()) {
            Ok(()) => Ok(()),
            Err(error) => {
                Err(self.fail(format!("the image could not be synced ({error}); what was written since may be lost")))
            }
        }
    }
}

impl<N: Nand<Payload = [u8]> + 'static> BlockDevice for Disk<N> {
    fn size_bytes(&self) -> u64 {
        self.inner.layout.bytes()
    }

    fn block_sizes(&self) -> BlockSizes {
        BlockSizes { minimum: 1, preferred: self.inner.layout.page_bytes }
    }

    fn read_only(&self) -> bool {
        self.inner.read_only
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), DiskError> {
        let inner = &self.inner;
        inner.check(offset, out.len() as u64)?;
        inner.each(offset, out.len() as u64, |shard, piece| shard.read(piece.page, piece.at, &mut out[piece.bytes]))
    }

    fn write(&self, offset: u64, data: &[u8], fua: bool) -> Result<(), DiskError> {
        let inner = &self.inner;
        let bytes = data.len() as u64;
        inner.check_change(offset, bytes)?;
        let written = inner.each(offset, bytes, |shard, piece| shard.write(piece.page, piece.at, &data[piece.bytes]));
        inner.unsynced.store(true, Ordering::SeqCst);
        written?;
        if fua || inner.write_through { inner.keep(&inner.pages(offset, bytes).0) } else { Ok(()) }
    }

    fn write_zeroes(&self, offset: u64, bytes: u64, how: Zeroing) -> Result<(), DiskError> {
        let inner = &self.inner;
        inner.check_change(offset, bytes)?;
        let (all, whole) = inner.pages(offset, bytes);
        let fua = how.fua || inner.write_through;
        if how.only_fast && !how.may_trim {
            return Err(DiskError::NotFast);
        }
        let page = u64::from(inner.layout.page_bytes);
        let zero = |from: u64, to: u64| {
            let written =
                inner.each(from, to - from, |shard, p| shard.write_zeroes(p.page, p.at, p.bytes.end - p.bytes.start));
            inner.unsynced.store(true, Ordering::SeqCst);
            written
        };
        if !how.may_trim || whole.is_empty() {
            zero(offset, offset + bytes)?;
            return if fua { inner.keep(&all) } else { Ok(()) };
        }
        zero(offset, whole.start * page)?;
        zero(whole.end * page, offset + bytes)?;
        self.forget(&whole)?;
        if fua { inner.flush_range(&all) } else { Ok(()) }
    }

    fn trim(&self, offset: u64, bytes: u64, fua: bool) -> Result<(), DiskError> {
        self.inner.check_change(offset, bytes)?;
        let (_, whole) = self.inner.pages(offset, bytes);
        self.forget(&whole)?;
        if fua || self.inner.write_through { self.inner.flush_range(&whole) } else { Ok(()) }
    }

    fn flush(&self) -> Result<(), DiskError> {
        let inner = &self.inner;
        inner.requests.fetch_add(1, Ordering::Relaxed);
        if let Some(reason) = inner.failed.get() {
            return Err(DiskError::Failed { reason: reason.clone() });
        }
        if !inner.read_only {
            inner.flush_shards(0..inner.shards.len(), true)?;
        }
        inner.sync()
    }

    fn lanes(&self) -> usize {
        self.inner.shards.len()
    }

    fn lane_of(&self, offset: u64) -> (usize, u64) {
        let layout = &self.inner.layout;
        let page = offset / u64::from(layout.page_bytes);
        (layout.locate(page).0, layout.stripe_end(page) * u64::from(layout.page_bytes))
    }

    fn settle(&self, lane: usize, what: Settling) -> Result<(), DiskError> {
        let inner = &self.inner;
        inner.requests.fetch_add(1, Ordering::Relaxed);
        let needless = what == Settling::Writes && inner.durable != Durability::OnFlush;
        if inner.read_only || needless { Ok(()) } else { inner.flush_shards(lane..lane + 1, true) }
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.inner.sync()
    }

    fn sync_waits(&self) -> bool {
        self.inner.has_store
    }

    fn extents(&self, offset: u64, bytes: u64, visit: &mut dyn FnMut(Extent) -> bool) -> Result<(), DiskError> {
        let inner = &self.inner;
        inner.check(offset, bytes)?;
        let page_bytes = u64::from(inner.layout.page_bytes);
        let (pages, _) = inner.pages(offset, bytes);
        let end = offset + bytes;
        let mut found: Option<(u64, bool)> = None;
        let mut page = pages.start;
        while page < pages.end {
            let run_end = inner.layout.stripe_end(page).min(pages.end);
            let (shard, local) = inner.layout.locate(page);
            let (data, local_end) = inner.lock(shard)?.known(local, local + (run_end - page) as u32);
            match found {
                Some((begin, hole)) if hole == data => {
                    if !visit(Extent { bytes: page * page_bytes - begin, hole }) {
                        return Ok(());
                    }
                    found = Some((page * page_bytes, !data));
                }
                Some(_) => {}
                None => found = Some((offset, !data)),
            }
            page += u64::from(local_end - local);
        }
        if let Some((begin, hole)) = found {
            visit(Extent { bytes: end - begin, hole });
        }
        Ok(())
    }

    fn report(&self) -> Result<DiskReport, DiskError> {
        let mut report = DiskReport::default();
        for shard in 0..self.inner.shards.len() {
            let guard = self.inner.lock(shard)?;
            let counts = guard.ftl.flash().counts();
            let total = counts.total();
            report.host_programs += counts.of(Purpose::Host).programs;
            report.programs += total.programs;
            report.reads += total.reads;
            report.erases += total.erases;
            report.free_blocks += u64::from(guard.ftl.free_blocks());
            report.waiting_trim_bytes += u64::from(guard.waiting_pages()) * u64::from(self.inner.layout.page_bytes);
            report.ram_bytes += guard.ftl.ram().iter().map(|item| item.bytes).sum::<u64>();
            report.worn_out |= guard.ftl.read_only().is_some();
        }
        Ok(report)
    }
}

impl<N: Nand<Payload = [u8]> + 'static> Disk<N> {
    /// Marks whole pages to be forgotten, and wakes the thread that tells the FTLs.
    fn forget(&self, pages: &Range<u64>) -> Result<(), DiskError> {
        let mut any = false;
        for shard in 0..self.inner.shards.len() {
            let range = self.inner.layout.range(shard, pages);
            any |= !range.is_empty() && self.inner.lock(shard)?.trim(range);
        }
        if let (true, Some(keeper)) = (any, &self.keeper) {
            keeper.wake();
        }
        Ok(())
    }
}
