//! Bytes of pages and runs, as `FORMAT.md` in this folder lays them down; nothing else reads or
//! writes them.

use crate::validity::check::check_value;
use nand::Spare;

/// Length of a page's header.
pub(super) const HEADER_BYTES: usize = 16;
/// Length of the fixed part of a postamble.
pub(super) const SUMMARY_BYTES: usize = 40;
/// Length of an older run's number in a postamble.
pub(super) const RUN_NUMBER_BYTES: usize = 5;
/// Length of a sub-entry number or page index in a postamble, and of a key.
pub(super) const WORD_BYTES: usize = 4;
/// The longest page image: `used` has 16 bits.
pub(super) const PAGE_BYTES_MAX: usize = u16::MAX as usize;
/// One more than the largest index of a page in its run.
pub(super) const INDEX_END: u32 = 1 << 24;
/// One more than the largest run number.
pub(super) const RUN_END: u64 = 1 << 39;
/// Stands for the first sub-entry of a page that has none; sorts after every one.
pub(super) const NO_ENTRY: u32 = u32::MAX;

const LAST: u32 = 1 << 31;
/// Beside T: entries are packed.
const PACKED: u16 = 1 << 15;
const CHECK_START: u64 = 0x4765_636B_6F00_0001;

/// What a page is called: it stays when the page is relocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PageName {
    /// The run.
    pub run: u64,
    /// The page's index in it.
    pub index: u32,
    /// Whether it is the run's last.
    pub last: bool,
}

impl PageName {
    /// The name that a spare area carries.
    pub const fn of(spare: &Spare) -> Self {
        Self::from_fields(spare.tag, spare.aux)
    }

    const fn from_fields(tag: u32, aux: u32) -> Self {
        Self {
            run: tag as u64 | ((aux >> 24 & 0x7F) as u64) << 32,
            index: aux & (INDEX_END - 1),
            last: aux & LAST != 0,
        }
    }

    /// The spare area's tag.
    pub const fn tag(self) -> u32 {
        self.run as u32
    }

    /// The spare area's aux field.
    pub const fn aux(self) -> u32 {
        debug_assert!(self.index < INDEX_END && self.run < RUN_END);
        self.index | ((self.run >> 32) as u32) << 24 | if self.last { LAST } else { 0 }
    }
}

/// Reads four bytes.
#[inline]
pub(super) fn get_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Writes four bytes.
#[inline]
pub(super) fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn get_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// Reads up to eight bytes as one number.
pub(super) fn get_uint(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// Completes a page image of `used` bytes: its header and its check value.
pub(super) fn seal(page: &mut [u8], used: usize, count: u32, name: PageName) {
    debug_assert!((HEADER_BYTES..=PAGE_BYTES_MAX).contains(&used) && count <= u32::from(u16::MAX));
    debug_assert!(used <= page.len() && PageName::from_fields(name.tag(), name.aux()) == name);
    put_u32(page, 4, name.tag());
    put_u32(page, 8, name.aux());
    page[12..14].copy_from_slice(&(used as u16).to_le_bytes());
    page[14..16].copy_from_slice(&(count as u16).to_le_bytes());
    let check = check_value(CHECK_START, &page[4..used]);
    put_u32(page, 0, check);
}

/// Whether a page image says that it is this page; cheap, for pages that the device has corrected.
#[inline]
pub(super) fn is_named(page: &[u8], name: PageName) -> bool {
    get_u32(page, 4) == name.tag() && get_u32(page, 8) == name.aux()
}

/// Whether a page image is this page and as it was written; for pages of unknown history. No entry
/// is shorter than `least_entry`.
pub(super) fn is_sound(page: &[u8], name: PageName, least_entry: usize) -> bool {
    let end = used(page);
    is_named(page, name)
        && (HEADER_BYTES..=page.len()).contains(&end)
        && HEADER_BYTES + count(page) as usize * least_entry <= end
        && get_u32(page, 0) == check_value(CHECK_START, &page[4..end])
}

/// Bytes of the page that mean something.
pub(super) fn used(page: &[u8]) -> usize {
    usize::from(get_u16(page, 12))
}

/// Entries in the page.
#[inline]
pub(super) fn count(page: &[u8]) -> u32 {
    u32::from(get_u16(page, 14))
}

/// The fixed part of a postamble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Summary {
    /// Older runs that live when this one is complete.
    pub older: u16,
    /// T.
    pub size_ratio: u16,
    /// Whether entries are packed.
    pub packed: bool,
    /// Pages of a block in a sub-entry.
    pub chunk: u32,
    /// Entries in the run.
    pub entries: u32,
    /// The run's last sub-entry number.
    pub last_id: u32,
    /// Pages with entries.
    pub pages: u32,
    /// How many flushes it covers.
    pub flushes: u32,
    /// The newest flush that it covers.
    pub last_flush: u64,
    /// The device's next sequence number when that flush began.
    pub flush_seq: u64,
}

impl Summary {
    /// The byte form.
    pub fn encode(&self) -> [u8; SUMMARY_BYTES] {
        let mut out = [0; SUMMARY_BYTES];
        out[0..2].copy_from_slice(&self.older.to_le_bytes());
        let packed = if self.packed { PACKED } else { 0 };
        out[2..4].copy_from_slice(&(self.size_ratio | packed).to_le_bytes());
        put_u32(&mut out, 4, self.chunk);
        put_u32(&mut out, 8, self.entries);
        put_u32(&mut out, 12, self.last_id);
        put_u32(&mut out, 16, self.pages);
        put_u32(&mut out, 20, self.flushes);
        out[24..32].copy_from_slice(&self.last_flush.to_le_bytes());
        out[32..40].copy_from_slice(&self.flush_seq.to_le_bytes());
        debug_assert!(Self::decode(&out) == *self);
        out
    }

    /// Reads the byte form.
    pub fn decode(bytes: &[u8]) -> Self {
        Self {
            older: get_u16(bytes, 0),
            size_ratio: get_u16(bytes, 2) & !PACKED,
            packed: get_u16(bytes, 2) & PACKED != 0,
            chunk: get_u32(bytes, 4),
            entries: get_u32(bytes, 8),
            last_id: get_u32(bytes, 12),
            pages: get_u32(bytes, 16),
            flushes: get_u32(bytes, 20),
            last_flush: get_uint(&bytes[24..32]),
            flush_seq: get_uint(&bytes[32..40]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_the_spare_area() {
        for (run, index, last) in [(0, 0, true), (RUN_END - 1, INDEX_END - 1, false), (1 << 32, 7, true)] {
            let name = PageName { run, index, last };
            assert_eq!(PageName::from_fields(name.tag(), name.aux()), name);
        }
    }

    #[test]
    fn summary_round_trips() {
        let summary = Summary {
            older: 1,
            size_ratio: 2,
            packed: true,
            chunk: 3,
            entries: 4,
            last_id: 5,
            pages: 6,
            flushes: 7,
            last_flush: 8 << 32,
            flush_seq: 9 << 40,
        };
        assert_eq!(Summary::decode(&summary.encode()), summary);
    }

    #[test]
    fn any_changed_byte_is_noticed() {
        let name = PageName { run: 5, index: 1, last: true };
        for used in 16..64 {
            let mut page = [0xA5; 64];
            seal(&mut page, used, 0, name);
            assert!(is_sound(&page, name, 8));
            for other in [PageName { run: 6, ..name }, PageName { index: 2, ..name }, PageName { last: false, ..name }]
            {
                assert!(!is_sound(&page, other, 8), "{name:?} passes for {other:?}");
            }
            for at in 0..used {
                let mut damaged = page;
                damaged[at] ^= 0x10;
                assert!(!is_sound(&damaged, name, 8), "byte {at} of {used}");
            }
        }
    }
}
