//! A page of the page validity log as it lies in flash, as `FORMAT.md` in this folder lays it down.

use crate::validity::check::check_value;
use nand::Ppn;

/// Length of a page's header.
pub(super) const HEADER_BYTES: usize = 24;
/// No position in the log.
pub(super) const NOWHERE: u32 = u32::MAX;

/// "PVLog", format 1.
const CHECK_START: u64 = 0x5056_4C6F_6700_0001;

/// What the log says of one dead page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The dead page.
    pub ppn: Ppn,
    /// The position of the next older entry about a page of the same block, or [`NOWHERE`].
    pub older: u32,
    /// The sequence number that the device's next program was to carry when the entry was made, 48 bits.
    pub stamp: u64,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

impl Entry {
    /// Page 4, older 4, stamp 6.
    pub const BYTES: usize = 14;

    /// Writes the entry at its place in a page.
    pub fn put(&self, page: &mut [u8], index: usize) {
        let out = &mut page[HEADER_BYTES + index * Self::BYTES..][..Self::BYTES];
        out[..4].copy_from_slice(&self.ppn.0.to_le_bytes());
        out[4..8].copy_from_slice(&self.older.to_le_bytes());
        out[8..].copy_from_slice(&self.stamp.to_le_bytes()[..6]);
    }

    /// The entry at a place in a page.
    pub fn get(page: &[u8], index: usize) -> Self {
        let at = &page[HEADER_BYTES + index * Self::BYTES..][..Self::BYTES];
        let stamp = u64::from(word(at, 8)) | u64::from(at[12]) << 32 | u64::from(at[13]) << 40;
        Self { ppn: Ppn(word(at, 0)), older: word(at, 4), stamp }
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
        end
    }

    /// The header of a page that is as it was written; `None` for any other bytes.
    pub fn read(page: &[u8]) -> Option<Self> {
        let header = Self::read_known(page)?;
        let end = Self::used(header.count);
        (check_value(CHECK_START, &page[4..end]) == word(page, 0)).then_some(header)
    }

    /// The header of a page of which it is known that it was written whole; `None` if its entries would not fit it.
    pub fn read_known(page: &[u8]) -> Option<Self> {
        let number = u64::from(word(page, 4)) | u64::from(word(page, 8)) << 32;
        let header = Self { number, before: word(page, 12), slots: word(page, 16), count: word(page, 20) };
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
        let entry = Entry { ppn: Ppn(0x0102_0304), older: 0x0506_0708, stamp: 0xA0B0_C0D0_E0F0 };
        (0..3).for_each(|at| entry.put(&mut page, at));
        let header = Header { number: 7 << 33, before: 5, slots: 9, count: 3 };
        assert_eq!(header.seal(&mut page), Header::used(3));
        assert_eq!((Header::read(&page), Entry::get(&page, 1)), (Some(header), entry));
        for at in 0..Header::used(3) {
            let mut damaged = page;
            damaged[at] ^= 0x10;
            assert_eq!(Header::read(&damaged), None, "byte {at}");
        }
        assert_eq!(Header::read(&[0xFF; 64]), None);
    }
}
