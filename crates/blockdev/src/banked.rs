//! A device over LFTL: an engine of many threads over the banks of a card.

use crate::contract::{BlockDevice, BlockSizes, DiskError, DiskReport, Extent, Settling, Zeroing};
use crate::disk::Store;
use crate::log::{Log, Severity};
use ftl::{FtlError, Shortage};
use lftl::{LftlError, SECTOR_BYTES, Server};
use nand::Lpn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of zeros that are written at once.
const ZEROS_BYTES: u64 = 1 << 20;

/// How a device is made of an engine.
pub struct BankedOptions {
    /// What is synced by a flush; `None` if nothing has to be.
    pub store: Option<Box<dyn Store>>,
    /// Refuse writes.
    pub read_only: bool,
    /// Whatever changes the disk survives power loss before it is answered, as if it had FUA.
    pub write_through: bool,
    /// Who is told of what goes wrong.
    pub log: Arc<dyn Log>,
}

impl BankedOptions {
    /// A disk that can be written, on flash that keeps what completed.
    pub fn new(log: Arc<dyn Log>) -> Self {
        Self { store: None, read_only: false, write_through: false, log }
    }
}

/// The store, and the last request for a sync that it has served.
struct Stored {
    store: Option<Box<dyn Store>>,
    served: u64,
}

/// A device over an engine of many threads.
pub struct BankedDisk {
    server: Server,
    stored: Mutex<Stored>,
    /// Requests for a sync so far.
    asked: AtomicU64,
    read_only: bool,
    write_through: bool,
    log: Arc<dyn Log>,
    /// It was said that no more writes are taken.
    complained: AtomicBool,
}

impl BankedDisk {
    /// Serves an engine.
    pub fn new(server: Server, options: BankedOptions) -> Self {
        let BankedOptions { store, read_only, write_through, log } = options;
        Self {
            server,
            stored: Mutex::new(Stored { store, served: 0 }),
            asked: AtomicU64::new(0),
            read_only,
            write_through,
            log,
            complained: AtomicBool::new(false),
        }
    }

    /// Writes everything out and saves what only RAM holds. No request may be under way, and none
    /// may follow.
    ///
    /// # Errors
    /// Those of a flush.
    pub fn close(&self) -> Result<(), DiskError> {
        let saved = self.server.close().and_then(|()| self.sync_store());
        saved.map_err(|error| self.error(error))
    }

    /// Makes what is on flash survive the death of the host. One sync serves everybody who waits
    /// for it to begin.
    fn sync_store(&self) -> Result<(), LftlError> {
        let mine = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        if stored.served >= mine {
            return Ok(());
        }
        let serves = self.asked.load(Ordering::SeqCst);
        let Some(store) = &mut stored.store else { return Ok(()) };
        store.sync().map_err(|error| {
            let lost = format!("the image could not be synced ({error}); what was written since may be lost");
            self.server.engine().fail(lost)
        })?;
        stored.served = serves;
        Ok(())
    }

    fn flush_all(&self) -> Result<(), LftlError> {
        self.server.flush().and_then(|()| self.sync_store())
    }

    fn check_change(&self, offset: u64, bytes: u64) -> Result<(), DiskError> {
        if self.read_only { Err(DiskError::ReadOnly) } else { self.check(offset, bytes) }
    }

    fn check(&self, offset: u64, bytes: u64) -> Result<(), DiskError> {
        let size_bytes = self.size_bytes();
        match offset.checked_add(bytes) {
            Some(end) if end <= size_bytes => Ok(()),
            _ => Err(DiskError::OutOfRange { offset, bytes, size_bytes }),
        }
    }

    fn page_bytes(&self) -> u64 {
        self.server.engine().page_bytes() as u64
    }

    #[cold]
    fn error(&self, error: LftlError) -> DiskError {
        let error = match error {
            LftlError::NoSpace(lftl::Shortage { bad_blocks, blocks, needed, .. }) => {
                DiskError::WornOut(Shortage { bad_blocks, blocks, needed })
            }
            LftlError::Lost { lpn, .. } => DiskError::Page {
                page: lpn.0.into(),
                offset: u64::from(lpn.0) * self.page_bytes(),
                source: FtlError::Lost { lpn },
            },
            LftlError::Failed { reason } => DiskError::Failed { reason },
            error => DiskError::Failed { reason: error.to_string() },
        };
        let lasting = !matches!(error, DiskError::Page { .. });
        if !lasting || !self.complained.swap(true, Ordering::Relaxed) {
            self.log.line(Severity::Error, &error.to_string());
        }
        error
    }

    /// Writes zeros over a range.
    fn zero(&self, mut offset: u64, end: u64) -> Result<(), LftlError> {
        let zeros = vec![0; end.saturating_sub(offset).min(ZEROS_BYTES) as usize];
        while offset < end {
            let bytes = (end - offset).min(ZEROS_BYTES);
            self.server.write(offset, &zeros[..bytes as usize])?;
            offset += bytes;
        }
        Ok(())
    }

    /// Zeros a part of one page, unless the page reads as zeros already.
    fn zero_part(&self, offset: u64, end: u64) -> Result<(), LftlError> {
        let page = Lpn((offset / self.page_bytes()) as u32);
        if offset < end && self.server.engine().holds_data(page) { self.zero(offset, end) } else { Ok(()) }
    }

    /// Makes a range zeros, of which whole pages are forgotten.
    fn forget(&self, offset: u64, end: u64) -> Result<(), LftlError> {
        let page = self.page_bytes();
        let (first, last) = (offset.div_ceil(page), end / page);
        if first > last {
            return self.zero_part(offset, end);
        }
        self.zero_part(offset, end.min(first * page))?;
        self.server.engine().trim(Lpn(first as u32), (last - first) as u32)?;
        self.zero_part(offset.max(last * page), end)
    }

    /// Makes what was written to a range survive, if `fua` asks for it.
    fn keep(&self, offset: u64, bytes: u64, fua: bool) -> Result<(), LftlError> {
        if !(fua || self.write_through) || bytes == 0 {
            return Ok(());
        }
        let page = self.page_bytes();
        let pages = offset / page..(offset + bytes).div_ceil(page);
        for lpn in pages {
            self.server.engine().flush_page(Lpn(lpn as u32))?;
        }
        self.sync_store()
    }

    /// Makes everything survive, if `fua` asks for it.
    fn keep_all(&self, fua: bool) -> Result<(), LftlError> {
        if fua || self.write_through { self.flush_all() } else { Ok(()) }
    }
}

impl BlockDevice for BankedDisk {
    fn size_bytes(&self) -> u64 {
        self.server.size_bytes()
    }

    fn block_sizes(&self) -> BlockSizes {
        BlockSizes { minimum: 1, preferred: SECTOR_BYTES as u32 }
    }

    fn read_only(&self) -> bool {
        self.read_only
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), DiskError> {
        self.check(offset, out.len() as u64)?;
        self.server.read(offset, out).map_err(|error| self.error(error))
    }

    fn write(&self, offset: u64, data: &[u8], fua: bool) -> Result<(), DiskError> {
        let bytes = data.len() as u64;
        self.check_change(offset, bytes)?;
        let written = self.server.write(offset, data).and_then(|()| self.keep(offset, bytes, fua));
        written.map_err(|error| self.error(error))
    }

    fn write_zeroes(&self, offset: u64, bytes: u64, how: Zeroing) -> Result<(), DiskError> {
        self.check_change(offset, bytes)?;
        if how.only_fast && !how.may_trim {
            return Err(DiskError::NotFast);
        }
        let end = offset + bytes;
        let zeroed = if how.may_trim { self.forget(offset, end) } else { self.zero(offset, end) };
        let kept = zeroed.and_then(|()| match how {
            Zeroing { fua, may_trim: true, .. } => self.keep_all(fua),
            Zeroing { fua, .. } => self.keep(offset, bytes, fua),
        });
        kept.map_err(|error| self.error(error))
    }

    fn trim(&self, offset: u64, bytes: u64, fua: bool) -> Result<(), DiskError> {
        self.check_change(offset, bytes)?;
        let sector = SECTOR_BYTES as u64;
        // Parts of sectors keep their contents.
        let (from, end) = (offset.div_ceil(sector) * sector, (offset + bytes) / sector * sector);
        let trimmed = if from < end { self.forget(from, end) } else { Ok(()) };
        let kept = trimmed.and_then(|()| self.keep_all(fua));
        kept.map_err(|error| self.error(error))
    }

    fn flush(&self) -> Result<(), DiskError> {
        self.flush_all().map_err(|error| self.error(error))
    }

    /// As many as workers: pages take turns, so that one connection keeps all of them busy.
    fn lanes(&self) -> usize {
        self.server.workers()
    }

    fn lane_of(&self, offset: u64) -> (usize, u64) {
        let page = offset / self.page_bytes();
        ((page % self.lanes() as u64) as usize, (page + 1) * self.page_bytes())
    }

    /// Nothing to do: what a lane completed is in buffers or on flash, and [`BlockDevice::sync`]
    /// writes out all of them.
    fn settle(&self, _: usize, _: Settling) -> Result<(), DiskError> {
        Ok(())
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.flush()
    }

    fn sync_waits(&self) -> bool {
        true
    }

    fn extents(&self, offset: u64, bytes: u64, visit: &mut dyn FnMut(Extent) -> bool) -> Result<(), DiskError> {
        self.check(offset, bytes)?;
        let (page, end) = (self.page_bytes(), offset + bytes);
        let mut begin = offset;
        while begin < end {
            let hole = |at: u64| !self.server.engine().holds_data(Lpn((at / page) as u32));
            let here = hole(begin);
            let mut to = (begin / page + 1) * page;
            while to < end && hole(to) == here {
                to += page;
            }
            if !visit(Extent { bytes: to.min(end) - begin, hole: here }) {
                return Ok(());
            }
            begin = to;
        }
        Ok(())
    }

    fn report(&self) -> Result<DiskReport, DiskError> {
        let report = self.server.engine().report();
        Ok(DiskReport {
            host_programs: report.host_programs,
            programs: report.ops.programs,
            reads: report.ops.reads,
            erases: report.ops.erases,
            free_blocks: report.free_blocks,
            waiting_trim_bytes: 0,
            ram_bytes: report.ram_bytes,
            worn_out: self.server.engine().read_only().is_some(),
        })
    }
}
