//! Where the bytes of a device in a file are: a file of the host, or memory that can lose power.

use core::ops::Range;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::vec;
use std::vec::Vec;

/// A row of bytes on the host.
///
/// # Power loss
/// When the process dies, everything written is there. When the host dies, everything written
/// before the last [`Medium::sync`] is there. Of what was written after it, each sector of 512
/// bytes may be as it was after any of its writes or before them, whatever the order of the writes.
pub trait Medium: Send {
    /// Fills `out` with the bytes from `at` on.
    ///
    /// # Errors
    /// Those of the host; [`io::ErrorKind::UnexpectedEof`] behind the end.
    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<()>;

    /// Writes all of `bytes` from `at` on, inside the length that the medium has.
    ///
    /// # Errors
    /// Those of the host; some of the bytes may be written then.
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Brings everything written before to the disk.
    ///
    /// # Errors
    /// Those of the host. What was written since the last sync may be lost then, even if a later
    /// sync succeeds.
    fn sync(&mut self) -> io::Result<()>;

    /// Gives bytes back to the host, which then read as zeros or as before.
    ///
    /// # Errors
    /// Those of the host; none if it cannot do that.
    fn discard(&mut self, at: u64, bytes: u64) -> io::Result<()>;

    /// Where the next byte is, from `at` on, that may not be zero; `None` if there is none.
    ///
    /// # Errors
    /// Those of the host.
    fn next_data(&self, at: u64) -> io::Result<Option<u64>>;

    /// Bytes in the medium.
    ///
    /// # Errors
    /// Those of the host.
    fn bytes(&self) -> io::Result<u64>;
}

/// A file of the host, or a range of one; what is written may be kept in memory instead, over the
/// file as it is.
#[derive(Debug)]
pub struct HostFile {
    file: Arc<File>,
    range: Range<u64>,
    /// Writes that do not go to the file, by the number of the piece of the range.
    overlay: Option<BTreeMap<u64, Vec<u8>>>,
    /// Whether the host takes back parts of a file.
    punches: bool,
}

/// Bytes of a piece of an overlay.
const PIECE: u64 = 4096;

impl HostFile {
    /// The bytes of the file in `range`, as far as there are any.
    pub(super) fn new(file: Arc<File>, range: Range<u64>, overlaid: bool) -> Self {
        Self { file, range, overlay: overlaid.then(BTreeMap::new), punches: true }
    }

    /// The file, to sync it.
    pub(super) fn handle(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Whether writes stay in memory.
    pub(super) const fn is_overlaid(&self) -> bool {
        self.overlay.is_some()
    }

    /// Where bytes of the range are in the file; an error if they reach beyond it.
    fn place(&self, at: u64, bytes: usize) -> io::Result<u64> {
        match self.range.start.checked_add(at) {
            Some(begin) if begin <= self.range.end && bytes as u64 <= self.range.end - begin => Ok(begin),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// The pieces that `at` and the `bytes` after it lie in: number, offset in it, offset in the bytes,
/// length.
fn pieces(at: u64, bytes: usize) -> impl Iterator<Item = (u64, usize, usize, usize)> {
    let mut done = 0;
    core::iter::from_fn(move || {
        let here = at + done as u64;
        let (piece, within) = (here / PIECE, (here % PIECE) as usize);
        let length = (bytes - done).min(PIECE as usize - within);
        let step = (piece, within, done, length);
        done += length;
        (length > 0).then_some(step)
    })
}

impl Medium for HostFile {
    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(out, self.place(at, out.len())?)?;
        if let Some(overlay) = self.overlay.as_ref().filter(|overlay| !overlay.is_empty()) {
            for (piece, within, from, length) in pieces(at, out.len()) {
                if let Some(bytes) = overlay.get(&piece) {
                    out[from..from + length].copy_from_slice(&bytes[within..within + length]);
                }
            }
        }
        Ok(())
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let begin = self.place(at, bytes.len())?;
        let Some(overlay) = &mut self.overlay else { return self.file.write_all_at(bytes, begin) };
        for (piece, within, from, length) in pieces(at, bytes.len()) {
            let kept = match overlay.entry(piece) {
                std::collections::btree_map::Entry::Occupied(kept) => kept.into_mut(),
                std::collections::btree_map::Entry::Vacant(place) => {
                    let mut below = vec![0; PIECE as usize];
                    self.file.read_exact_at(&mut below, self.range.start + piece * PIECE)?;
                    place.insert(below)
                }
            };
            kept[within..within + length].copy_from_slice(&bytes[from..from + length]);
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.is_overlaid() { Ok(()) } else { self.file.sync_data() }
    }

    fn discard(&mut self, at: u64, bytes: u64) -> io::Result<()> {
        if self.is_overlaid() || !self.punches {
            return Ok(());
        }
        match host::punch(&self.file, self.range.start + at, bytes) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                self.punches = false;
                Ok(())
            }
            done => done,
        }
    }

    fn next_data(&self, at: u64) -> io::Result<Option<u64>> {
        let below = host::next_data(&self.file, self.range.start + at)?;
        let below = below.filter(|found| *found < self.range.end).map(|found| found - self.range.start);
        let above = self.overlay.as_ref().and_then(|overlay| overlay.range(at / PIECE..).next());
        let above = above.map(|(piece, _)| (piece * PIECE).max(at));
        Ok(match (below, above) {
            (Some(below), Some(above)) => Some(below.min(above)),
            (below, above) => below.or(above),
        })
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len().min(self.range.end).saturating_sub(self.range.start))
    }
}

/// What only some hosts can do with a file.
#[cfg(target_os = "linux")]
mod host {
    use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
    use std::fs::File;
    use std::io;

    pub(super) fn punch(file: &File, at: u64, bytes: u64) -> io::Result<()> {
        Ok(fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, at, bytes)?)
    }

    pub(super) fn next_data(file: &File, at: u64) -> io::Result<Option<u64>> {
        match seek(file, SeekFrom::Data(at)) {
            Ok(found) => Ok(Some(found)),
            Err(rustix::io::Errno::NXIO) => Ok(None),
            // A host that does not know where data is says that it is everywhere.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::OPNOTSUPP) => Ok(Some(at)),
            Err(error) => Err(error.into()),
        }
    }
}

/// Elsewhere nothing is given back, and data may be anywhere.
#[cfg(not(target_os = "linux"))]
mod host {
    use std::fs::File;
    use std::io;

    pub(super) fn punch(_: &File, _: u64, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn next_data(_: &File, at: u64) -> io::Result<Option<u64>> {
        Ok(Some(at))
    }
}

/// Bytes in memory, as a host keeps them that may lose power. For tests and fuzzing.
#[derive(Clone, Debug, Default)]
pub struct Volatile {
    bytes: Vec<u8>,
    /// What each sector was after the last sync and after every write to it since, except for what
    /// it is now.
    versions: BTreeMap<usize, Vec<[u8; SECTOR]>>,
    syncs: u64,
    /// Writes that may follow before all fail.
    writes_left: Option<u64>,
    sync_fails: bool,
}

/// Bytes that a disk writes whole or not at all.
const SECTOR: usize = 512;

impl Volatile {
    /// So many bytes, all on disk; the last sector is filled with zeros.
    #[must_use]
    pub fn new(mut bytes: Vec<u8>) -> Self {
        bytes.resize(bytes.len().next_multiple_of(SECTOR), 0);
        Self { bytes, ..Self::default() }
    }

    /// The bytes as they are now.
    #[must_use]
    pub fn contents(&self) -> &[u8] {
        &self.bytes
    }

    /// Syncs so far.
    #[must_use]
    pub const fn syncs(&self) -> u64 {
        self.syncs
    }

    /// Lets the disk run full after so many more writes; `None` makes room.
    pub const fn fill_after(&mut self, writes: Option<u64>) {
        self.writes_left = writes;
    }

    /// Lets syncs fail, or no longer.
    pub const fn fail_syncs(&mut self, fail: bool) {
        self.sync_fails = fail;
    }

    /// What the disk holds after the host lost power: `choose` picks a number below its argument
    /// for every sector that was written since the last sync.
    #[must_use]
    pub fn after_power_loss(&self, mut choose: impl FnMut(usize) -> usize) -> Self {
        let mut bytes = self.bytes.clone();
        for (&sector, versions) in &self.versions {
            if let Some(old) = versions.get(choose(versions.len() + 1)) {
                bytes[sector * SECTOR..][..SECTOR].copy_from_slice(old);
            }
        }
        Self::new(bytes)
    }

    fn range(&self, at: u64, length: usize) -> io::Result<core::ops::Range<usize>> {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        match at.checked_add(length) {
            Some(end) if end <= self.bytes.len() => Ok(at..end),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn remember(&mut self, range: &core::ops::Range<usize>) {
        for sector in range.start / SECTOR..range.end.div_ceil(SECTOR) {
            let mut old = [0; SECTOR];
            old.copy_from_slice(&self.bytes[sector * SECTOR..][..SECTOR]);
            self.versions.entry(sector).or_default().push(old);
        }
    }
}

impl Medium for Volatile {
    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        out.copy_from_slice(&self.bytes[self.range(at, out.len())?]);
        Ok(())
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let range = self.range(at, bytes.len())?;
        match &mut self.writes_left {
            Some(0) => return Err(io::ErrorKind::StorageFull.into()),
            Some(left) => *left -= 1,
            None => {}
        }
        self.remember(&range);
        self.bytes[range].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.sync_fails {
            return Err(io::ErrorKind::Other.into());
        }
        self.syncs += 1;
        self.versions.clear();
        Ok(())
    }

    fn discard(&mut self, at: u64, bytes: u64) -> io::Result<()> {
        let range = self.range(at, usize::try_from(bytes).unwrap_or(usize::MAX))?;
        self.remember(&range);
        self.bytes[range].fill(0);
        Ok(())
    }

    fn next_data(&self, at: u64) -> io::Result<Option<u64>> {
        Ok(((at as usize) < self.bytes.len()).then_some(at))
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }
}
