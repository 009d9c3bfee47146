//! Making a device in a file, and opening one.

use super::error::FileError;
use super::journal::Journal;
use super::layout::{
    ANCHOR_BYTES, ANCHORS_AT, Anchor, BLOCK_BYTES, BlockRecord, Decoded, HEADER_BYTES, Header, Layout, MAGIC,
    Numbering, OWNER_AT, OWNER_BYTES_MAX, Place, RECORD_BYTES, Record,
};
use super::medium::{HostFile, Medium};
use super::{Access, Block, DISCARDS_MAX, FileNand, UNANCHORED_MAX};
use crate::addr::{BlockId, Ppn};
use crate::geometry::{Capabilities, Geometry};
use crate::laws::BlockState;
use core::ops::Range;
use core::sync::atomic::AtomicI32;
use std::boxed::Box;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;
use std::vec;
use std::vec::Vec;

/// What was found when a device was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// Whether it had been closed. If not, its process or host had died.
    pub closed: bool,
    /// Operations that were there without one before them, and were undone.
    pub undone: u64,
}

/// What the pages of a device hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Pages programmed as host data since their block was erased.
    pub host_data: u64,
    /// Pages programmed as metadata since.
    pub metadata: u64,
    /// Pages of which not even the record can be understood.
    pub damaged: u64,
    /// All others.
    pub erased: u64,
}

impl FileNand<HostFile> {
    /// Makes an erased device without bad blocks in a new file. The file takes next to no space on
    /// the disk until pages are programmed.
    ///
    /// `owner` says to whoever opens it what is on it.
    ///
    /// # Errors
    /// [`FileError`]: there is such a file, the host refuses, or `owner` is longer than
    /// [`OWNER_BYTES_MAX`]. A file that was begun is removed.
    pub fn create(
        path: &Path,
        geometry: Geometry,
        capabilities: Capabilities,
        owner: &[u8],
    ) -> Result<Self, FileError> {
        let mut made = Self::create_several(path, 1, geometry, capabilities, owner)?;
        made.pop().ok_or(FileError::Several { devices: 0 })
    }

    /// Makes as many erased devices of the same kind in a new file as `devices` says, one behind
    /// the other. Each may be used by another thread. After the first failure of the host none of
    /// them is written any more.
    ///
    /// # Errors
    /// As [`FileNand::create`]; [`FileError::Several`] for none, [`FileError::Full`] if the file
    /// would be too long for any host.
    pub fn create_several(
        path: &Path,
        devices: u16,
        geometry: Geometry,
        capabilities: Capabilities,
        owner: &[u8],
    ) -> Result<Vec<Self>, FileError> {
        if devices == 0 {
            return Err(FileError::Several { devices });
        }
        let each = Layout::new(geometry, owner.len()).file_bytes();
        in_new_file(path, u64::from(devices).checked_mul(each), |file| {
            several(devices, |index| {
                let mut medium = HostFile::new(Arc::clone(file), range_of(index, each), false);
                let place = Place { devices, index, numbering: Numbering::Own };
                let header = Self::write_empty(&mut medium, place, geometry, capabilities, owner)?;
                Self::open_new(medium, header)
            })
        })
    }

    /// As [`FileNand::create_several`], of devices that number their operations together: what the
    /// death of the host leaves of them is what a power cut of all of them leaves.
    ///
    /// # Errors
    /// As [`FileNand::create_several`].
    pub fn create_joint(
        path: &Path,
        devices: u16,
        geometry: Geometry,
        capabilities: Capabilities,
        owner: &[u8],
    ) -> Result<Vec<Self>, FileError> {
        let each = Layout::new(geometry, owner.len()).file_bytes();
        in_new_file(path, u64::from(devices).checked_mul(each), |file| {
            let medium = |range| HostFile::new(Arc::clone(file), range, false);
            Self::create_joint_on(medium, devices, geometry, capabilities, owner)
        })
    }

    /// Opens a device. If its process or its host died, what that left in part is undone first;
    /// that takes a read of 64 bytes for each page of every block that holds anything.
    ///
    /// # Errors
    /// [`FileError`] says what was found instead of a device that can be opened so.
    pub fn open(path: &Path, access: Access) -> Result<Self, FileError> {
        let mut found = Self::open_all(path, access)?;
        match (u16::try_from(found.len()), found.pop()) {
            (Ok(1), Some(device)) => Ok(device),
            (devices, _) => Err(FileError::Several { devices: devices.unwrap_or(u16::MAX) }),
        }
    }

    /// Opens every device of a file, in order, each as [`FileNand::open`] does. After the first
    /// failure of the host none of them is written any more.
    ///
    /// # Errors
    /// As [`FileNand::open`]; [`FileError::Device`] if one that is not the first cannot be opened,
    /// or is no device of this file.
    pub fn open_all(path: &Path, access: Access) -> Result<Vec<Self>, FileError> {
        let file = OpenOptions::new().read(true).write(access == Access::ReadWrite).open(path);
        let file = Arc::new(file.map_err(|source| match source.kind() {
            io::ErrorKind::PermissionDenied if access == Access::ReadWrite => FileError::ReadOnly { source },
            _ => FileError::io("opened", source),
        })?);
        lock(&file, access)?;
        let medium = |range| HostFile::new(Arc::clone(&file), range, access != Access::ReadWrite);
        let whole = medium(0..u64::MAX);
        let first = read_header(&whole)?;
        match first.place {
            Place { devices: 1, index: 0, numbering: Numbering::Own } => Ok(vec![Self::open_on(whole, access)?]),
            Place { numbering: Numbering::Joint, .. } => Self::open_joint_on(medium, access),
            Place { devices, .. } => {
                let each = check_first(&whole, &first)?;
                several(devices, |index| {
                    let medium = medium(range_of(index, each));
                    let header = header_of(&medium, &first, index)?;
                    Self::open_as(medium, access, header)
                })
            }
        }
    }
}

/// Does something with a new file of so many bytes, which is removed if that fails.
fn in_new_file<T>(
    path: &Path,
    bytes: Option<u64>,
    fill: impl FnOnce(&Arc<File>) -> Result<T, FileError>,
) -> Result<T, FileError> {
    let attempt = "created";
    let bytes = bytes.ok_or(FileError::Full { attempt })?;
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path);
    let file = Arc::new(file.map_err(|error| FileError::io(attempt, error))?);
    let made = lock(&file, Access::ReadWrite).and_then(|()| {
        file.set_len(bytes).map_err(|error| FileError::io(attempt, error))?;
        let made = fill(&file)?;
        // The name is to be there after the host died, too.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| FileError::io(attempt, error))?;
        Ok(made)
    });
    if made.is_err() {
        // The cause is what there is to tell.
        let _ = std::fs::remove_file(path);
    }
    made
}

/// Bytes of each device of a file of several, after a look at the first header and at the length.
fn check_first(whole: &impl Medium, first: &Header) -> Result<u64, FileError> {
    let Place { devices, index, .. } = first.place;
    if index > 0 {
        return Err(FileError::Malformed { what: "the place of the first device of the file", found: index.into() });
    }
    let each = Layout::new(first.geometry, first.owner_bytes).file_bytes();
    let needed = each.saturating_mul(devices.into());
    let bytes = whole.bytes().map_err(unread)?;
    if bytes < needed { Err(FileError::Truncated { bytes, needed }) } else { Ok(each) }
}

/// The header of a device of a file, which is like that of the first.
fn header_of(medium: &impl Medium, first: &Header, index: u16) -> Result<Header, FileError> {
    let wanted = Header { place: Place { index, ..first.place }, ..*first };
    if read_header(medium)? == wanted {
        return Ok(wanted);
    }
    Err(FileError::Malformed { what: "a header unlike the first, of device", found: index.into() })
}

/// The bytes of a device in a file of devices of `each` bytes.
fn range_of(index: u16, each: u64) -> Range<u64> {
    let start = each * u64::from(index);
    start..start + each
}

/// Makes or opens the devices of a file. The host tells of a failure once, whichever device it is
/// about: so all of them share it.
fn several<M: Medium>(
    devices: u16,
    mut get: impl FnMut(u16) -> Result<FileNand<M>, FileError>,
) -> Result<Vec<FileNand<M>>, FileError> {
    let mut all: Vec<FileNand<M>> = Vec::new();
    for index in 0..devices {
        let mut device = get(index).map_err(|error| match devices {
            1 => error,
            _ => FileError::Device { index, source: Box::new(error) },
        })?;
        if let Some(first) = all.first() {
            device.failed = Arc::clone(&first.failed);
        }
        all.push(device);
    }
    Ok(all)
}

/// How often a lock that somebody holds is tried again, and how long after.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// A process that a thread starts holds the locks of all until it runs its program: a lock that was
/// just given back may seem held for some milliseconds.
fn lock(file: &File, access: Access) -> Result<(), FileError> {
    for tries_left in (0..LOCK_TRIES).rev() {
        match if access == Access::ReadWrite { file.try_lock() } else { file.try_lock_shared() } {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if tries_left > 0 => sleep(LOCK_PAUSE),
            Err(TryLockError::WouldBlock) => break,
            Err(TryLockError::Error(source)) => return Err(FileError::io("locked", source)),
        }
    }
    Err(FileError::Locked)
}

fn check_owner(owner: &[u8]) -> Result<(), FileError> {
    if owner.len() > OWNER_BYTES_MAX { Err(FileError::OwnerTooLong { bytes: owner.len() }) } else { Ok(()) }
}

pub(super) fn unread(source: io::Error) -> FileError {
    FileError::io("read", source)
}

/// So many default elements, or an error instead of the end of the process.
fn table<T: Clone + Default>(length: usize, geometry: &Geometry) -> Result<Vec<T>, FileError> {
    let mut table = Vec::new();
    table.try_reserve_exact(length).map_err(|_| FileError::Memory { blocks: geometry.blocks() })?;
    table.resize(length, T::default());
    Ok(table)
}

impl<M: Medium> FileNand<M> {
    /// Makes an erased device on a medium that reads as zeros and is long enough
    /// ([`Self::bytes_needed`]).
    ///
    /// # Errors
    /// As [`FileNand::create`]; [`FileError::Truncated`] if the medium is too short.
    pub fn create_on(
        medium: M,
        geometry: Geometry,
        capabilities: Capabilities,
        owner: &[u8],
    ) -> Result<Self, FileError> {
        let mut medium = medium;
        let header = Self::write_empty(&mut medium, Place::ALONE, geometry, capabilities, owner)?;
        Self::open_new(medium, header)
    }

    /// As [`FileNand::create_joint`], on media that read as zeros: `medium` gives the bytes of a
    /// range, which is inside [`Self::bytes_needed`] of all devices.
    ///
    /// # Errors
    /// As [`FileNand::create_joint`].
    pub fn create_joint_on(
        medium: impl Fn(Range<u64>) -> M,
        devices: u16,
        geometry: Geometry,
        capabilities: Capabilities,
        owner: &[u8],
    ) -> Result<Vec<Self>, FileError> {
        if devices == 0 {
            return Err(FileError::Several { devices });
        }
        let each = Self::bytes_needed(&geometry, owner.len());
        // The first is written last: what was begun and not ended is no device.
        for index in (0..devices).rev() {
            let place = Place { devices, index, numbering: Numbering::Joint };
            Self::write_empty(&mut medium(range_of(index, each)), place, geometry, capabilities, owner)?;
        }
        let mut made = Self::open_joint_on(medium, Access::ReadWrite)?;
        for device in &mut made {
            device.blocks.iter_mut().for_each(|block| block.surveyed = true);
        }
        Ok(made)
    }

    /// Opens devices that [`Self::create_joint_on`] made. They are written also if `access` says
    /// otherwise, as in [`Self::open_on`].
    ///
    /// # Errors
    /// As [`FileNand::open_all`].
    pub fn open_joint_on(medium: impl Fn(Range<u64>) -> M, access: Access) -> Result<Vec<Self>, FileError> {
        let whole = medium(0..u64::MAX);
        let first = read_header(&whole)?;
        let each = check_first(&whole, &first)?;
        let devices = first.place.devices;
        if first.place.numbering != Numbering::Joint {
            return Err(FileError::Several { devices });
        }
        let anchor = read_anchor(&whole)?;
        let journal = Journal::joint(anchor, medium(range_of(0, each)), devices);
        let mut all = several(devices, |index| {
            let medium = medium(range_of(index, each));
            let header = header_of(&medium, &first, index)?;
            Self::prepare(medium, header, anchor, Arc::clone(&journal))
        })?;
        Self::put_in_order(&mut all, anchor, access)?;
        Ok(all)
    }

    /// Writes what an erased device begins with.
    fn write_empty(
        medium: &mut M,
        place: Place,
        geometry: Geometry,
        capabilities: Capabilities,
        owner: &[u8],
    ) -> Result<Header, FileError> {
        check_owner(owner)?;
        let (owner_bytes, owner_check) = (owner.len(), crc32fast::hash(owner));
        let header = Header { place, geometry, capabilities, owner_bytes, owner_check };
        let layout = Layout::new(geometry, owner.len());
        check_length(medium, &layout)?;
        let anchored = place.numbering == Numbering::Own || place.index == 0;
        let first = Anchor { generation: 1, op: 0, clean: false };
        // The header is written last: what was begun and not ended is no device.
        let written = medium
            .write_at(OWNER_AT, owner)
            .and_then(|()| if anchored { medium.write_at(ANCHORS_AT[1], &first.encode()) } else { Ok(()) })
            .and_then(|()| medium.sync())
            .and_then(|()| medium.write_at(0, &header.encode()))
            .and_then(|()| medium.sync());
        written.map_err(|error| FileError::io("created", error))?;
        Ok(header)
    }

    /// Opens a device of which nothing was written but its beginning.
    fn open_new(medium: M, header: Header) -> Result<Self, FileError> {
        let mut made = Self::open_as(medium, Access::ReadWrite, header)?;
        // Nothing is to be looked for where nothing was written.
        made.blocks.iter_mut().for_each(|block| block.surveyed = true);
        Ok(made)
    }

    /// Bytes of the medium of a device.
    #[must_use]
    pub fn bytes_needed(geometry: &Geometry, owner_bytes: usize) -> u64 {
        Layout::new(*geometry, owner_bytes).file_bytes()
    }

    /// Opens the device on a medium. It is written also if `access` says otherwise, to undo what
    /// was left in part: lay an overlay over what must not change.
    ///
    /// # Errors
    /// As [`FileNand::open`].
    pub fn open_on(medium: M, access: Access) -> Result<Self, FileError> {
        let header = read_header(&medium)?;
        if header.place != Place::ALONE {
            return Err(FileError::Several { devices: header.place.devices });
        }
        Self::open_as(medium, access, header)
    }

    /// Opens the device on a medium that begins with this header.
    fn open_as(medium: M, access: Access, header: Header) -> Result<Self, FileError> {
        check_length(&medium, &Layout::new(header.geometry, header.owner_bytes))?;
        let anchor = read_anchor(&medium)?;
        let mut device = Self::prepare(medium, header, anchor, Journal::alone(anchor))?;
        Self::put_in_order(core::slice::from_mut(&mut device), anchor, access)?;
        Ok(device)
    }

    /// A device as it was left.
    fn prepare(medium: M, header: Header, anchor: Anchor, journal: Arc<Journal<M>>) -> Result<Self, FileError> {
        let geometry = header.geometry;
        let layout = Layout::new(geometry, header.owner_bytes);
        check_length(&medium, &layout)?;
        let mut owner = vec![0; header.owner_bytes].into_boxed_slice();
        medium.read_at(OWNER_AT, &mut owner).map_err(unread)?;
        if crc32fast::hash(&owner) != header.owner_check {
            return Err(FileError::Damaged { part: "owner's record", at: OWNER_AT });
        }
        let mut device = Self {
            blocks: table(geometry.blocks() as usize, &geometry)?,
            page: table(geometry.page_bytes() as usize, &geometry)?.into_boxed_slice(),
            records: table(geometry.pages_per_block() as usize * RECORD_BYTES, &geometry)?.into_boxed_slice(),
            discards: Vec::with_capacity(DISCARDS_MAX),
            failed: Arc::new(AtomicI32::new(0)),
            medium,
            layout,
            capabilities: header.capabilities,
            owner,
            // Until everything is sound, nothing is written when it is dropped.
            access: Access::ReadOnly,
            journal,
            closed: false,
            opening: Opening { closed: anchor.clean, undone: 0 },
        };
        device.read_blocks(anchor)?;
        Ok(device)
    }

    /// Undoes what was left in part of devices that share a journal, and lets them be used.
    fn put_in_order(devices: &mut [Self], anchor: Anchor, access: Access) -> Result<(), FileError> {
        if !anchor.clean {
            Self::undo_the_unsound(devices)?;
        }
        if let Some(first) = devices.first_mut() {
            let begun = first.journal.begin(&mut first.medium);
            begun.map_err(|source| FileError::io("written", source))?;
        }
        devices.iter_mut().for_each(|device| device.access = access);
        Ok(())
    }

    /// Reads the record of every block.
    fn read_blocks(&mut self, anchor: Anchor) -> Result<(), FileError> {
        const CHUNK: usize = 1 << 15;
        let mut bytes = vec![0; CHUNK];
        let (mut first, blocks) = (0, self.layout.geometry.blocks());
        while first < blocks {
            let count = (blocks - first).min((CHUNK / BLOCK_BYTES) as u32);
            let bytes = &mut bytes[..count as usize * BLOCK_BYTES];
            self.medium.read_at(self.layout.block(BlockId(first)), bytes).map_err(unread)?;
            for (number, bytes) in (first..).zip(bytes.chunks_exact(BLOCK_BYTES)) {
                let block = BlockId(number);
                let at = self.layout.block(block);
                let damaged = || FileError::Damaged { part: "record of a block", at };
                let record = BlockRecord::decode(bytes, block).ok_or_else(damaged)?;
                let latest = record.erased.max(record.bad);
                if latest > anchor.op && (anchor.clean || latest > anchor.op + UNANCHORED_MAX) {
                    return Err(FileError::Malformed { what: "the number of an operation on a block", found: latest });
                }
                let mut state = BlockState::default();
                if record.bad > 0 {
                    state.mark_bad();
                }
                self.blocks[block.index()] = Block { state, surveyed: false, record };
            }
            first += count;
        }
        Ok(())
    }

    /// Calls `tell` for the record of every page that was ever programmed and not given back;
    /// `None` stands for one that cannot be understood.
    pub(super) fn for_each_record(
        &mut self,
        mut tell: impl FnMut(&mut Self, Ppn, Option<Record>) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        // Out of its place for the calls, so that they can use the device.
        let mut records = core::mem::take(&mut self.records);
        let outcome = self.each_record(&mut records, &mut tell);
        self.records = records;
        outcome
    }

    fn each_record(
        &mut self,
        records: &mut [u8],
        tell: &mut impl FnMut(&mut Self, Ppn, Option<Record>) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        let geometry = self.layout.geometry;
        let mut at = self.layout.region(BlockId(0)).0;
        while let Some(data) = self.medium.next_data(at).map_err(unread)? {
            let number = self.layout.block_at(data.max(at));
            if number >= u64::from(geometry.blocks()) {
                break;
            }
            let block = BlockId(number as u32);
            self.medium.read_at(self.layout.record(block, 0), records).map_err(unread)?;
            for (offset, bytes) in (0..).zip(records.chunks_exact(RECORD_BYTES)) {
                let ppn = geometry.page_at(block, offset);
                match Record::decode(bytes, ppn) {
                    Decoded::Empty => {}
                    Decoded::Programmed(record) => tell(self, ppn, Some(record))?,
                    Decoded::Damaged => tell(self, ppn, None)?,
                }
            }
            let (begin, length) = self.layout.region(block);
            at = begin + length;
        }
        Ok(())
    }

    /// What the pages of the device hold, by their records; their data are not read.
    ///
    /// # Errors
    /// [`FileError::Io`].
    pub fn usage(&mut self) -> Result<Usage, FileError> {
        let mut usage = Usage::default();
        self.for_each_record(|device, ppn, record| {
            let erased = device.blocks[device.layout.geometry.block_of(ppn).index()].record.erased;
            match record {
                Some(record) if record.op <= erased => {}
                Some(record) if record.meta => usage.metadata += 1,
                Some(_) => usage.host_data += 1,
                None => usage.damaged += 1,
            }
            Ok(())
        })?;
        let programmed = usage.host_data + usage.metadata + usage.damaged;
        usage.erased = u64::from(self.layout.geometry.pages()) - programmed;
        Ok(usage)
    }
}

fn check_length(medium: &impl Medium, layout: &Layout) -> Result<(), FileError> {
    let (bytes, needed) = (medium.bytes().map_err(unread)?, layout.file_bytes());
    if bytes < needed { Err(FileError::Truncated { bytes, needed }) } else { Ok(()) }
}

/// The header that a medium begins with.
fn read_header(medium: &impl Medium) -> Result<Header, FileError> {
    let mut bytes = [0; HEADER_BYTES];
    let length = medium.bytes().map_err(unread)?;
    if length < HEADER_BYTES as u64 {
        let mut found = [0; 8];
        let there = (length as usize).min(found.len());
        medium.read_at(0, &mut found[..there]).map_err(unread)?;
        let needed = HEADER_BYTES as u64;
        let ours = found == MAGIC;
        return Err(if ours { FileError::Truncated { bytes: length, needed } } else { FileError::Foreign { found } });
    }
    medium.read_at(0, &mut bytes).map_err(unread)?;
    Header::decode(&bytes)
}

/// The anchor that counts.
fn read_anchor(medium: &impl Medium) -> Result<Anchor, FileError> {
    let mut newest: Option<Anchor> = None;
    for at in ANCHORS_AT {
        let mut bytes = [0; ANCHOR_BYTES];
        medium.read_at(at, &mut bytes).map_err(unread)?;
        if let Some(anchor) = Anchor::decode(&bytes) {
            newest =
                Some(newest.map_or(anchor, |other| if other.generation > anchor.generation { other } else { anchor }));
        }
    }
    newest.ok_or(FileError::Damaged { part: "pair of anchors", at: ANCHORS_AT[0] })
}
