//! Where everything is in the file, and its byte form. Everything is little endian.
//!
//! `docs/FORMAT.md` has the same as tables, with the reasons.

use super::error::FileError;
use crate::addr::{BlockId, Ppn};
use crate::flags::Flags;
use crate::geometry::{Capabilities, Dimensions, Geometry, ProgramOrder};
use crate::spare::Spare;

/// The first bytes of every image.
pub(super) const MAGIC: [u8; 8] = *b"OFTLNAND";
/// Version of the format of a file of one device.
pub const FILE_VERSION: u32 = 3;
/// Version of the format of a file of several devices, each with numbers of its own.
pub const SEVERAL_VERSION: u32 = 4;
/// Version of the format of a file of several devices with joint numbers.
pub const JOINT_VERSION: u32 = 5;

/// How the operations of several devices of a file are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// Each device has its own numbers. After its host died one device may lack operations that
    /// others depend on: this is for devices that have nothing to do with each other.
    Own,
    /// All devices together. After their host died none has an operation without all those of
    /// every device that had completed before it began.
    Joint,
}
/// Bytes of the header before the owner's bytes.
pub(super) const HEADER_BYTES: usize = 72;
/// Bytes that the owner may keep.
pub const OWNER_BYTES_MAX: usize = 64 << 10;
/// Bytes of an anchor.
pub(super) const ANCHOR_BYTES: usize = 32;
/// Bytes of the record of a block.
pub(super) const BLOCK_BYTES: usize = 32;
/// Bytes of the record of a page.
pub(super) const RECORD_BYTES: usize = 64;
/// Everything that is written apart begins at a multiple of so many bytes.
const ALIGNED: u64 = 4096;
/// Where the two anchors are, in different sectors of any disk.
pub(super) const ANCHORS_AT: [u64; 2] = [ALIGNED, 2 * ALIGNED];
/// Where the owner's bytes are.
pub(super) const OWNER_AT: u64 = 3 * ALIGNED;
/// One more than the largest number of an operation.
pub(super) const OPS_END: u64 = 1 << 48;

const PART_HEADER: &str = "header";

/// A number of `BYTES` bytes.
fn word<const BYTES: usize>(bytes: &[u8], at: usize) -> u64 {
    let mut wide = [0; 8];
    wide[..BYTES].copy_from_slice(&bytes[at..at + BYTES]);
    u64::from_le_bytes(wide)
}

/// The four bytes at `at` as a number.
fn word32(bytes: &[u8], at: usize) -> u32 {
    word::<4>(bytes, at) as u32
}

/// Writes the low six bytes of the number of an operation.
fn put_op(bytes: &mut [u8], at: usize, op: u64) {
    debug_assert!(op < OPS_END, "operation {op} needs more than 48 bits");
    bytes[at..at + 6].copy_from_slice(&op.to_le_bytes()[..6]);
}

/// The offsets that follow from the geometry and the length of the owner's bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) geometry: Geometry,
    blocks_at: u64,
    regions_at: u64,
    /// Bytes of the records of a block, up to its data.
    records_bytes: u64,
    /// Bytes of a block: records and data.
    region_bytes: u64,
}

impl Layout {
    pub(super) fn new(geometry: Geometry, owner_bytes: usize) -> Self {
        let pages = u64::from(geometry.pages_per_block());
        let blocks_at = (OWNER_AT + owner_bytes as u64).next_multiple_of(ALIGNED);
        let table = u64::from(geometry.blocks()) * BLOCK_BYTES as u64;
        let records_bytes = (pages * RECORD_BYTES as u64).next_multiple_of(ALIGNED);
        let data = (pages * u64::from(geometry.page_bytes())).next_multiple_of(ALIGNED);
        Self {
            geometry,
            blocks_at,
            regions_at: (blocks_at + table).next_multiple_of(ALIGNED),
            records_bytes,
            region_bytes: records_bytes + data,
        }
    }

    /// Bytes of the whole file.
    pub(super) fn file_bytes(&self) -> u64 {
        self.region(BlockId(self.geometry.blocks())).0
    }

    /// Where the record of a block is.
    pub(super) fn block(&self, block: BlockId) -> u64 {
        debug_assert!(block.0 < self.geometry.blocks(), "{block} has no record");
        self.blocks_at + u64::from(block.0) * BLOCK_BYTES as u64
    }

    /// Where the records and the data of a block begin, and their bytes.
    pub(super) fn region(&self, block: BlockId) -> (u64, u64) {
        debug_assert!(block.0 <= self.geometry.blocks(), "{block} lies behind the end");
        (self.regions_at + u64::from(block.0) * self.region_bytes, self.region_bytes)
    }

    /// The first block whose records and data lie at `at` or behind it.
    pub(super) fn block_at(&self, at: u64) -> u64 {
        at.saturating_sub(self.regions_at) / self.region_bytes
    }

    /// Where the record of a page is.
    pub(super) fn record(&self, block: BlockId, offset: u32) -> u64 {
        debug_assert!(offset < self.geometry.pages_per_block(), "page {offset} of {block}");
        self.region(block).0 + u64::from(offset) * RECORD_BYTES as u64
    }

    /// Where the data of a page is.
    pub(super) fn data(&self, block: BlockId, offset: u32) -> u64 {
        debug_assert!(offset < self.geometry.pages_per_block(), "page {offset} of {block}");
        self.region(block).0 + self.records_bytes + u64::from(offset) * u64::from(self.geometry.page_bytes())
    }
}

/// Which of the devices of a file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Devices in the file.
    pub(super) devices: u16,
    /// Devices before this one.
    pub(super) index: u16,
    pub(super) numbering: Numbering,
}

impl Place {
    pub(super) const ALONE: Self = Self { devices: 1, index: 0, numbering: Numbering::Own };

    const fn version(self) -> u32 {
        match (self.numbering, self.devices) {
            (Numbering::Joint, _) => JOINT_VERSION,
            (Numbering::Own, 1) => FILE_VERSION,
            (Numbering::Own, _) => SEVERAL_VERSION,
        }
    }
}

/// What never changes after the image was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) place: Place,
    pub(super) geometry: Geometry,
    pub(super) capabilities: Capabilities,
    pub(super) owner_bytes: usize,
    pub(super) owner_check: u32,
}

impl Header {
    pub(super) fn encode(&self) -> [u8; HEADER_BYTES] {
        debug_assert!(self.owner_bytes <= OWNER_BYTES_MAX, "{} bytes of the owner", self.owner_bytes);
        let mut out = [0; HEADER_BYTES];
        out[..8].copy_from_slice(&MAGIC);
        let d = self.geometry.dimensions();
        let alone = self.place == Place::ALONE;
        let words = [
            self.place.version(),
            d.channels,
            d.dies_per_channel,
            d.planes_per_die,
            d.blocks,
            d.pages_per_block,
            d.page_bytes,
            d.spare_bytes,
        ];
        for (at, word) in (8..).step_by(4).zip(words) {
            out[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        let c = self.capabilities;
        out[40] = u8::from(c.program_order == ProgramOrder::Free);
        out[41] = c.spare_reprograms;
        out[42] = u8::from(c.multi_plane);
        out[43] = u8::from(c.copy_back);
        if !alone {
            out[44..46].copy_from_slice(&self.place.devices.to_le_bytes());
            out[46..48].copy_from_slice(&self.place.index.to_le_bytes());
        }
        out[48..52].copy_from_slice(&(self.owner_bytes as u32).to_le_bytes());
        out[52..56].copy_from_slice(&self.owner_check.to_le_bytes());
        let layout = Layout::new(self.geometry, self.owner_bytes);
        out[56..64].copy_from_slice(&layout.file_bytes().to_le_bytes());
        let check = crc32fast::hash(&out[..64]);
        out[64..68].copy_from_slice(&check.to_le_bytes());
        debug_assert!(Self::decode(&out).is_ok_and(|read| read == *self), "{self:?} reads otherwise");
        out
    }

    pub(super) fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, FileError> {
        let mut found = [0; 8];
        found.copy_from_slice(&bytes[..8]);
        if found != MAGIC {
            return Err(FileError::Foreign { found });
        }
        let version = word32(bytes, 8);
        if !matches!(version, FILE_VERSION | SEVERAL_VERSION | JOINT_VERSION) {
            return Err(FileError::Version { found: version });
        }
        if crc32fast::hash(&bytes[..64]) != word32(bytes, 64) {
            return Err(FileError::Damaged { part: PART_HEADER, at: 0 });
        }
        let flag = |at: usize, what| match bytes[at] {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(FileError::Malformed { what, found: other.into() }),
        };
        let geometry = Geometry::new(Dimensions {
            channels: word32(bytes, 12),
            dies_per_channel: word32(bytes, 16),
            planes_per_die: word32(bytes, 20),
            blocks: word32(bytes, 24),
            pages_per_block: word32(bytes, 28),
            page_bytes: word32(bytes, 32),
            spare_bytes: word32(bytes, 36),
        })?;
        let free = flag(40, "the program order")?;
        let capabilities = Capabilities {
            program_order: if free { ProgramOrder::Free } else { ProgramOrder::Sequential },
            spare_reprograms: bytes[41],
            multi_plane: flag(42, "the multi-plane flag")?,
            copy_back: flag(43, "the copy-back flag")?,
        };
        let owner_bytes = word32(bytes, 48) as usize;
        if owner_bytes > OWNER_BYTES_MAX {
            return Err(FileError::Malformed { what: "the length of the owner's record", found: owner_bytes as u64 });
        }
        let place = match version {
            FILE_VERSION => Place::ALONE,
            _ => Place {
                devices: word::<2>(bytes, 44) as u16,
                index: word::<2>(bytes, 46) as u16,
                numbering: if version == JOINT_VERSION { Numbering::Joint } else { Numbering::Own },
            },
        };
        if place.index >= place.devices {
            return Err(FileError::Malformed {
                what: "the number of devices in the file",
                found: place.devices.into(),
            });
        }
        let said = word::<8>(bytes, 56);
        if said != Layout::new(geometry, owner_bytes).file_bytes() {
            return Err(FileError::Malformed { what: "the length of the file in the header", found: said });
        }
        Ok(Self { place, geometry, capabilities, owner_bytes, owner_check: word32(bytes, 52) })
    }
}

/// Up to which operation everything is on the disk of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Anchor {
    /// The anchor with the larger one counts.
    pub(super) generation: u64,
    /// The last operation that is certainly on disk.
    pub(super) op: u64,
    /// Whether there is no operation after it.
    pub(super) clean: bool,
}

impl Anchor {
    pub(super) fn encode(&self) -> [u8; ANCHOR_BYTES] {
        let mut out = [0; ANCHOR_BYTES];
        out[..8].copy_from_slice(&self.generation.to_le_bytes());
        out[8..16].copy_from_slice(&self.op.to_le_bytes());
        out[16] = u8::from(self.clean);
        let check = crc32fast::hash(&out[..28]);
        out[28..].copy_from_slice(&check.to_le_bytes());
        debug_assert!(Self::decode(&out) == Some(*self), "{self:?} reads otherwise");
        out
    }

    /// `None` if it was never written, or only in part.
    pub(super) fn decode(bytes: &[u8; ANCHOR_BYTES]) -> Option<Self> {
        let whole = crc32fast::hash(&bytes[..28]) == word32(bytes, 28);
        let anchor = Self { generation: word::<8>(bytes, 0), op: word::<8>(bytes, 8), clean: bytes[16] == 1 };
        // Numbers of this size are never reached; they must not overflow.
        let sound = anchor.generation < u64::MAX / 2 && anchor.op < OPS_END / 2 && anchor.generation > 0;
        (whole && sound).then_some(anchor)
    }
}

/// What is kept of a block apart from its pages. Number 0 stands for an operation that never was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BlockRecord {
    pub(super) erase_count: u32,
    /// The operation that erased it last.
    pub(super) erased: u64,
    /// The one that erased it before.
    pub(super) before: u64,
    /// The one that marked it bad.
    pub(super) bad: u64,
}

impl BlockRecord {
    pub(super) fn encode(&self, block: BlockId) -> [u8; BLOCK_BYTES] {
        let mut out = [0; BLOCK_BYTES];
        if *self == Self::default() {
            return out;
        }
        out[..4].copy_from_slice(&self.erase_count.to_le_bytes());
        put_op(&mut out, 4, self.erased);
        put_op(&mut out, 10, self.before);
        put_op(&mut out, 16, self.bad);
        let check = check_of(&out[..28], block.0);
        out[28..].copy_from_slice(&check.to_le_bytes());
        debug_assert!(Self::decode(&out, block) == Some(*self), "{block}: {self:?} reads otherwise");
        out
    }

    /// `None` if the bytes are neither a record of this block nor zeros.
    pub(super) fn decode(bytes: &[u8], block: BlockId) -> Option<Self> {
        debug_assert!(bytes.len() == BLOCK_BYTES);
        if bytes.iter().all(|&byte| byte == 0) {
            return Some(Self::default());
        }
        let record = Self {
            erase_count: word32(bytes, 0),
            erased: word::<6>(bytes, 4),
            before: word::<6>(bytes, 10),
            bad: word::<6>(bytes, 16),
        };
        let ordered = record.before < record.erased || record.erased == 0 && record.before == 0;
        (check_of(&bytes[..28], block.0) == word32(bytes, 28) && ordered).then_some(record)
    }
}

/// Bytes of a spare area without its flags.
const BARE: usize = Spare::BYTES - Flags::COPIES;

/// Flags of a page and the operation that set them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FlagSlot {
    /// 0 if the slot was never written.
    pub(super) op: u64,
    pub(super) flags: Flags,
    /// How often flags were set, this time among them.
    pub(super) times: u8,
}

impl FlagSlot {
    const BYTES: usize = 10;
    /// Where the two slots are in the record of a page.
    const AT: [usize; 2] = [44, 54];

    fn encode(self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        if self.op > 0 {
            put_op(&mut out, 0, self.op);
            out[6] = self.flags.bits();
            out[7] = self.times;
            let check = crc32fast::hash(&out[..8]) as u16;
            out[8..].copy_from_slice(&check.to_le_bytes());
        }
        debug_assert!(Self::decode(&out) == self, "{self:?} reads otherwise");
        out
    }

    /// An empty slot if it was written only in part.
    fn decode(bytes: &[u8]) -> Self {
        let slot = Self { op: word::<6>(bytes, 0), flags: Flags::from_bits(bytes[6]), times: bytes[7] };
        let whole = slot.op > 0 && crc32fast::hash(&bytes[..8]) as u16 == word::<2>(bytes, 8) as u16;
        if whole { slot } else { Self::default() }
    }
}

/// What is kept of a programmed page apart from its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) meta: bool,
    /// Bytes programmed.
    pub(super) length: u32,
    /// The operation that programmed it.
    pub(super) op: u64,
    /// Check value of the bytes programmed.
    pub(super) check: u32,
    /// The spare area without its flags.
    pub(super) bare: [u8; BARE],
    pub(super) slots: [FlagSlot; 2],
}

/// What the bytes of a record say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoded {
    /// Never written.
    Empty,
    /// Neither a record of this page nor zeros.
    Damaged,
    Programmed(Record),
}

impl Record {
    pub(super) fn encode(&self, ppn: Ppn) -> [u8; RECORD_BYTES] {
        let mut out = [0; RECORD_BYTES];
        let kind = if self.meta { KIND_META } else { KIND_DATA };
        out[..4].copy_from_slice(&(self.length | kind).to_le_bytes());
        put_op(&mut out, 4, self.op);
        out[10..14].copy_from_slice(&self.check.to_le_bytes());
        out[14..14 + BARE].copy_from_slice(&self.bare);
        let check = check_of(&out[..40], ppn.0);
        out[40..44].copy_from_slice(&check.to_le_bytes());
        for (at, slot) in FlagSlot::AT.into_iter().zip(self.slots) {
            out[at..at + FlagSlot::BYTES].copy_from_slice(&slot.encode());
        }
        debug_assert!(Self::decode(&out, ppn) == Decoded::Programmed(*self), "{ppn}: {self:?} reads otherwise");
        out
    }

    pub(super) fn decode(bytes: &[u8], ppn: Ppn) -> Decoded {
        debug_assert!(bytes.len() == RECORD_BYTES);
        if bytes.iter().all(|&byte| byte == 0) {
            return Decoded::Empty;
        }
        let first = word32(bytes, 0);
        let meta = match first & KINDS {
            KIND_DATA => false,
            KIND_META => true,
            _ => return Decoded::Damaged,
        };
        if check_of(&bytes[..40], ppn.0) != word32(bytes, 40) {
            return Decoded::Damaged;
        }
        let slots = FlagSlot::AT.map(|at| FlagSlot::decode(&bytes[at..at + FlagSlot::BYTES]));
        let mut bare = [0; BARE];
        bare.copy_from_slice(&bytes[14..14 + BARE]);
        let (length, op, check) = (first & !KINDS, word::<6>(bytes, 4), word32(bytes, 10));
        if op == 0 {
            return Decoded::Damaged;
        }
        Decoded::Programmed(Self { meta, length, op, check, bare, slots })
    }

    /// The record of a page just programmed, which has no flags.
    pub(super) fn new(meta: bool, data: &[u8], op: u64, spare: &Spare) -> Self {
        let mut bare = [0; BARE];
        bare.copy_from_slice(&spare.encode()[..BARE]);
        let (length, check) = (data.len() as u32, crc32fast::hash(data));
        debug_assert!(op > 0 && length & KINDS == 0, "operation {op} on {length} bytes");
        Self { meta, length, op, check, bare, slots: [FlagSlot::default(); 2] }
    }

    /// The slot of flags that was written last.
    pub(super) fn newest(&self) -> FlagSlot {
        if self.slots[1].op > self.slots[0].op { self.slots[1] } else { self.slots[0] }
    }

    /// The spare area, if it can be understood.
    pub(super) fn spare(&self) -> Option<Spare> {
        // Three copies of no flag; those that are set follow.
        let mut bytes = [u8::MAX; Spare::BYTES];
        bytes[..BARE].copy_from_slice(&self.bare);
        Spare::clear_flags(&mut bytes, self.newest().flags);
        Spare::decode(&bytes).ok().flatten()
    }
}

/// What a record's first word says of the page, beside the length of its data.
const KINDS: u32 = 3 << 30;
const KIND_DATA: u32 = 1 << 30;
const KIND_META: u32 = 2 << 30;

/// The check value of a record, which differs from place to place: a record that strayed from
/// another page or block does not match.
fn check_of(bytes: &[u8], place: u32) -> u32 {
    let mut hash = crc32fast::Hasher::new();
    hash.update(bytes);
    hash.update(&place.to_le_bytes());
    hash.finalize()
}
