//! A page of the page validity log as it lies in flash, as `FORMAT.md` in this folder lays it down.

use crate::validity::check::check_value;
use nand::Ppn;

/// Length of a page's header.
pub(super) const HEADER_BYTES: usize = 32;
/// No position in the log.
pub(super) const NOWHERE: u32 = u32::MAX;

/// "PVLog", format 2.
const CHECK_START: u64 = 0x5056_4C6F_6700_0002;

/// Where a page says what the stamps of its entries are counted from: that of its first entry.
const FIRST_STAMP: usize = 24;

/// What the log says of one dead page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The dead page.
    pub ppn: Ppn,
    /// The position of the next older entry about a page of the same block, or [`NOWHERE`].
    pub older: u32,
    /// The sequence number that the device's next program was to carry when the entry was made, 48
    /// bits.
    pub stamp: u64,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

impl Entry {
    /// Page 4, older 4, stamp less that of the page's first entry 2.
    pub const BYTES: usize = 10;

    /// Whether an entry with this stamp can stand at a place in a page that holds the ones before
    /// it.
    pub fn fits(page: &[u8], index: usize, stamp: u64) -> bool {
        index == 0 || stamp.wrapping_sub(long(page, FIRST_STAMP)) <= u64::from(u16::MAX)
    }

    /// Writes the entry, which [fits](Self::fits), at its place in a page.
    pub fn put(&self, page: &mut [u8], index: usize) {
        if index == 0 {
            page[FIRST_STAMP..HEADER_BYTES].copy_from_slice(&self.stamp.to_le_bytes());
        }
        let since = self.stamp.wrapping_sub(long(page, FIRST_STAMP)) as u16;
        let out = &mut page[HEADER_BYTES + index * Self::BYTES..][..Self::BYTES];
        out[..4].copy_from_slice(&self.ppn.0.to_le_bytes());
        out[4..8].copy_from_slice(&self.older.to_le_bytes());
        out[8..].copy_from_slice(&since.to_le_bytes());
        debug_assert!(Self::get(page, index) == *self, "{self:?} reads as {:?}", Self::get(page, index));
    }

    /// The entry at a place in a page.
    pub fn get(page: &[u8], index: usize) -> Self {
        let at = &page[HEADER_BYTES + index * Self::BYTES..][..Self::BYTES];
        let since = u64::from(u16::from_le_bytes([at[8], at[9]]));
        Self { ppn: Ppn(word(at, 0)), older: word(at, 4), stamp: long(page, FIRST_STAMP).wrapping_add(since) }
    }
}

/// What a page says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// How many pages the log had had before it, ever.
    pub number: u64,
    /// How many of those are still part of the log.
    pub before: u32,
    /// Slots of the ring.
    pub slots: u32,
    /// Entries in the page.
    pub count: u32,
}

impl Header {
    /// Bytes of a page with so many entries.
    pub const fn used(count: u32) -> usize {
        HEADER_BYTES + count as usize * Entry::BYTES
    }

    /// Completes a page; answers how many of its bytes mean something.
    pub fn seal(&self, page: &mut [u8]) -> usize {
        let end = Self::used(self.count);
        page[4..12].copy_from_slice(&self.number.to_le_bytes());
        page[12..16].copy_from_slice(&self.before.to_le_bytes());
        page[16..20].copy_from_slice(&self.slots.to_le_bytes());
        page[20..24].copy_from_slice(&self.count.to_le_bytes());
        let check = check_value(CHECK_START, &page[4..end]);
        page[..4].copy_from_slice(&check.to_le_bytes());
        debug_assert!(Self::read(page) == Some(*self));
        end
    }

    /// The header of a page that is as it was written; `None` for any other bytes.
    pub fn read(page: &[u8]) -> Option<Self> {
        let header = Self::read_known(page)?;
        let end = Self::used(header.count);
        (check_value(CHECK_START, &page[4..end]) == word(page, 0)).then_some(header)
    }

    /// The header of a page of which it is known that it was written whole; `None` if its entries
    /// would not fit it.
    pub fn read_known(page: &[u8]) -> Option<Self> {
        let header =
            Self { number: long(page, 4), before: word(page, 12), slots: word(page, 16), count: word(page, 20) };
        let end = (header.count as usize).checked_mul(Entry::BYTES)?.checked_add(HEADER_BYTES)?;
        (end <= page.len()).then_some(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_round_trip_and_any_changed_byte_is_noticed() {
        let mut page = [0xFF; HEADER_BYTES + 4 * Entry::BYTES];
        let entry = |since: u64| Entry { ppn: Ppn(0x0102_0304), older: 0x0506_0708, stamp: 0xA0B0_C0D0_E0F0 + since };
        let stamps = [0, 0, 0xFFFF];
        stamps.iter().enumerate().for_each(|(at, stamp)| entry(*stamp).put(&mut page, at));
        let header = Header { number: 7 << 33, before: 5, slots: 9, count: 3 };
        assert_eq!(header.seal(&mut page), Header::used(3));
        assert_eq!(Header::read(&page), Some(header));
        stamps.iter().enumerate().for_each(|(at, stamp)| assert_eq!(Entry::get(&page, at), entry(*stamp)));
        for at in 0..Header::used(3) {
            let mut damaged = page;
            damaged[at] ^= 0x10;
            assert_eq!(Header::read(&damaged), None, "byte {at}");
        }
        assert_eq!(Header::read(&[0xFF; 64]), None);
    }

    #[test]
    fn only_stamps_that_sixteen_bits_reach_fit_a_page() {
        let mut page = [0xFF; HEADER_BYTES + 2 * Entry::BYTES];
        assert!(Entry::fits(&page, 0, 7));
        Entry { ppn: Ppn(1), older: NOWHERE, stamp: 7 }.put(&mut page, 0);
        assert!(Entry::fits(&page, 1, 7 + 0xFFFF) && !Entry::fits(&page, 1, 7 + 0x1_0000));
    }
}
