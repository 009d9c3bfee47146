//! What a served device does, whoever reaches it and however.

use ftl::{FtlError, Shortage};

/// Sizes that requests may have, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// Requests may begin and end at multiples of it.
    pub minimum: u32,
    /// Requests that begin and end at multiples of it need no read before a write.
    pub preferred: u32,
}

/// How a range is to be made zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zeroing {
    /// Pages may be forgotten; else zeros are written, and space stays allocated.
    pub may_trim: bool,
    /// Refuse with [`DiskError::NotFast`] rather than write zeros page by page.
    pub only_fast: bool,
    /// Survives power loss once it has completed, as if a flush followed.
    pub fua: bool,
}

/// A part of the device, and what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Length in bytes, at least 1.
    pub bytes: u64,
    /// Known to read as zeros and to take no space: never written, or trimmed.
    pub hole: bool,
}

/// What a device has done since it was opened, and how it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskReport {
    /// Flash pages programmed because a client wrote them.
    pub host_programs: u64,
    /// Flash pages programmed for any reason.
    pub programs: u64,
    /// Flash pages read for any reason.
    pub reads: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Blocks that can be programmed before anything is collected.
    pub free_blocks: u64,
    /// Bytes that were trimmed and that the FTL has not been told of yet.
    pub waiting_trim_bytes: u64,
    /// RAM that the FTLs hold, in bytes.
    pub ram_bytes: u64,
    /// Too many blocks have gone bad to write.
    pub worn_out: bool,
}

impl DiskReport {
    /// Flash pages programmed for each page that clients wrote; `None` before the first.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        (self.host_programs > 0).then(|| self.programs as f64 / self.host_programs as f64)
    }

    /// What was done since `earlier`, an earlier report of the same device; what says how it stands
    /// is of now.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            host_programs: self.host_programs - earlier.host_programs,
            programs: self.programs - earlier.programs,
            reads: self.reads - earlier.reads,
            erases: self.erases - earlier.erases,
            ..*self
        }
    }
}

/// Why a device could not do as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DiskError {
    /// The range lies outside the device; nothing was done.
    #[error("{bytes} B at offset {offset} lie outside the device of {size_bytes} B")]
    OutOfRange {
        /// First byte of the request.
        offset: u64,
        /// Length of the request, in bytes.
        bytes: u64,
        /// Size of the device, in bytes.
        size_bytes: u64,
    },
    /// The device was opened for reading only; nothing was done.
    #[error("the device is served read-only")]
    ReadOnly,
    /// Too many blocks have gone bad. Reads go on.
    #[error(transparent)]
    WornOut(#[from] Shortage),
    /// Zeros cannot be had without writing them; nothing was done.
    #[error("zeros of this range have to be written page by page")]
    NotFast,
    /// A page cannot be read, or the FTL failed on it.
    #[error("page {page} at offset {offset} B: {source}")]
    Page {
        /// Page of the served device.
        page: u64,
        /// Its first byte.
        offset: u64,
        /// What the FTL said.
        source: FtlError,
    },
    /// The FTL failed beyond a page: in a flush, or in saving.
    #[error("shard {shard}: {source}")]
    Ftl {
        /// Which FTL of the disk.
        shard: usize,
        /// What it said.
        source: FtlError,
    },
    /// The device failed before, and takes no writes until it is opened again.
    #[error("no more writes are taken: {reason}")]
    Failed {
        /// What happened then.
        reason: String,
    },
}

/// What [`BlockDevice::settle`] prepares to be synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settling {
    /// Writes, and zeros that were written.
    Writes,
    /// Trims too.
    All,
}

/// A device of bytes. Ranges of any alignment work. All methods may be called from any thread.
///
/// # Promises
/// A read returns what the last completed write of each byte wrote, or zeros if it was never
/// written, or trimmed or zeroed since. A request is not atomic: one that overlaps another may see
/// some pages of it and others not.
///
/// # Power loss
/// What completed before a flush was issued, on any connection, survives once the flush has
/// completed. A write with `fua` survives once it has completed. Anything else may be there or not,
/// page by page; of a range that was trimmed or zeroed and not flushed, also an older version or
/// an error may be read.
pub trait BlockDevice: Send + Sync {
    /// Size in bytes.
    fn size_bytes(&self) -> u64;

    /// Sizes that requests should have.
    fn block_sizes(&self) -> BlockSizes;

    /// Whether writes, trims and zeroes are refused.
    fn read_only(&self) -> bool;

    /// Reads a range.
    ///
    /// # Errors
    /// [`DiskError::OutOfRange`]; [`DiskError::Page`] for the first page that is lost. `out` is
    /// unspecified then.
    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), DiskError>;

    /// Writes a range. A write of a part of a page reads the page first.
    ///
    /// **Power loss**: each page is as before or as written.
    ///
    /// # Errors
    /// [`DiskError::Page`] also for a part of a page that is lost; a write of the whole page heals
    /// it. Pages before the one that failed were written.
    fn write(&self, offset: u64, data: &[u8], fua: bool) -> Result<(), DiskError>;

    /// Makes a range read as zeros.
    ///
    /// # Errors
    /// As [`BlockDevice::write`], and [`DiskError::NotFast`].
    fn write_zeroes(&self, offset: u64, bytes: u64, how: Zeroing) -> Result<(), DiskError>;

    /// Says that the contents of a range are not needed. Its whole pages read as zeros from then
    /// on; parts of pages keep their contents.
    ///
    /// # Errors
    /// [`DiskError::OutOfRange`]; with `fua` those of a flush.
    fn trim(&self, offset: u64, bytes: u64, fua: bool) -> Result<(), DiskError>;

    /// Makes everything that completed before survive power loss.
    ///
    /// # Errors
    /// [`DiskError::Failed`] from the first failure of the backing store on;
    /// [`DiskError::WornOut`] if trims cannot be kept any more.
    fn flush(&self) -> Result<(), DiskError>;

    /// Lanes: parts that work side by side, each on ranges of its own. At least 1.
    fn lanes(&self) -> usize {
        1
    }

    /// The lane of the byte at `offset`, and the offset behind the last byte that follows it in the
    /// same lane. The answer means nothing for an offset outside the device.
    fn lane_of(&self, offset: u64) -> (usize, u64) {
        let _ = offset;
        (0, self.size_bytes())
    }

    /// The first half of a flush, of one lane. What completed in a lane before survives power loss
    /// once the lane has settled and [`BlockDevice::sync`] has completed after that.
    ///
    /// # Errors
    /// As [`BlockDevice::flush`].
    fn settle(&self, lane: usize, what: Settling) -> Result<(), DiskError>;

    /// The second half of a flush.
    ///
    /// # Errors
    /// As [`BlockDevice::flush`].
    fn sync(&self) -> Result<(), DiskError>;

    /// Whether [`BlockDevice::sync`] may wait for a medium; else it is done at once.
    fn sync_waits(&self) -> bool;

    /// What is known of a range, in order. `visit` answers whether it wants more. The extents cover
    /// the range from its beginning, and end with it or where `visit` had enough.
    ///
    /// # Errors
    /// [`DiskError::OutOfRange`].
    fn extents(&self, offset: u64, bytes: u64, visit: &mut dyn FnMut(Extent) -> bool) -> Result<(), DiskError>;

    /// What it has done, and how it stands.
    ///
    /// # Errors
    /// [`DiskError::Failed`].
    fn report(&self) -> Result<DiskReport, DiskError>;
}
