//! What is written to the OOB of every page: the spare area, and what tells a torn page from a good
//! one.
//!
//! The ECC of many chips leaves the OOB out. So a record carries a check value of its own, by which
//! one flipped bit is found and corrected. `docs/FORMAT.md` has the bytes.

use nand::{Flags, Spare};

/// Bytes of the OOB that every page needs.
pub const RECORD_BYTES: usize = 35;
/// The spare area, without the flags that no page of an MTD device has.
const BARE: usize = Spare::BYTES - Flags::COPIES;
const CONTENT_AT: usize = BARE;
const DATA_CHECK_AT: usize = CONTENT_AT + 1;
const CHECK_AT: usize = DATA_CHECK_AT + 4;
/// So many bits of an erased record may read as 0. Every record that was written has more.
const ERASED_ZEROS_MAX: u32 = 3;

/// What a page was programmed as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Content {
    HostData = 1,
    Metadata = 2,
}

/// The record of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) spare: Spare,
    pub(crate) content: Content,
    /// CRC-32 of all the page's data.
    pub(crate) data_check: u32,
}

/// What the OOB of a page says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decoded {
    Erased,
    /// With the bits that were corrected in the record.
    Programmed(Record, u32),
    Damaged,
}

impl Record {
    pub(crate) fn new(spare: &Spare, content: Content, data: &[u8]) -> Self {
        Self { spare: Spare { flags: Flags::NONE, ..*spare }, content, data_check: crc32fast::hash(data) }
    }

    pub(crate) fn encode(&self) -> [u8; RECORD_BYTES] {
        let mut out = [0; RECORD_BYTES];
        out[..BARE].copy_from_slice(&self.spare.encode()[..BARE]);
        out[CONTENT_AT] = self.content as u8;
        out[DATA_CHECK_AT..CHECK_AT].copy_from_slice(&self.data_check.to_le_bytes());
        let check = crc32fast::hash(&out[..CHECK_AT]);
        out[CHECK_AT..].copy_from_slice(&check.to_le_bytes());
        debug_assert!(Self::decode(&out) == Decoded::Programmed(*self, 0), "{self:?} reads otherwise");
        out
    }

    pub(crate) fn decode(bytes: &[u8; RECORD_BYTES]) -> Decoded {
        let zeros: u32 = bytes.iter().map(|byte| byte.count_zeros()).sum();
        if zeros <= ERASED_ZEROS_MAX {
            return Decoded::Erased;
        }
        if let Some(record) = Self::whole(bytes) {
            return Decoded::Programmed(record, 0);
        }
        let mut mended = *bytes;
        for bit in 0..RECORD_BYTES * 8 {
            mended[bit / 8] ^= 1 << (bit % 8);
            if let Some(record) = Self::whole(&mended) {
                return Decoded::Programmed(record, 1);
            }
            mended[bit / 8] ^= 1 << (bit % 8);
        }
        Decoded::Damaged
    }

    /// The record, if the bytes match their check value.
    fn whole(bytes: &[u8; RECORD_BYTES]) -> Option<Self> {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        if crc32fast::hash(&bytes[..CHECK_AT]) != word(CHECK_AT) {
            return None;
        }
        let content = match bytes[CONTENT_AT] {
            1 => Content::HostData,
            2 => Content::Metadata,
            _ => return None,
        };
        let mut spare = [0xFF; Spare::BYTES];
        spare[..BARE].copy_from_slice(&bytes[..BARE]);
        let spare = Spare::decode(&spare).ok().flatten()?;
        Some(Self { spare, content, data_check: word(DATA_CHECK_AT) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nand::PageKind;
    use proptest::prelude::*;

    fn any_record() -> impl Strategy<Value = Record> {
        let numbers = (any::<u32>(), 0..Spare::SEQ_END, any::<u32>(), any::<u32>(), any::<u32>());
        let kind = prop::sample::select(PageKind::ALL.to_vec());
        (kind, numbers, any::<bool>(), any::<u32>()).prop_map(
            |(kind, (tag, seq, erase_count, erased_at, aux), meta, data_check)| Record {
                spare: Spare { kind, tag, seq, erase_count, erased_at, aux, flags: Flags::NONE },
                content: if meta { Content::Metadata } else { Content::HostData },
                data_check,
            },
        )
    }

    fn flip(bytes: &mut [u8], bit: usize) {
        bytes[bit / 8] ^= 1 << (bit % 8);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_flipped_bit_is_corrected(record in any_record()) {
            let bytes = record.encode();
            prop_assert_eq!(Record::decode(&bytes), Decoded::Programmed(record, 0));
            for bit in 0..RECORD_BYTES * 8 {
                let mut flipped = bytes;
                flip(&mut flipped, bit);
                prop_assert_eq!(Record::decode(&flipped), Decoded::Programmed(record, 1), "bit {}", bit);
            }
        }

        #[test]
        fn two_to_four_flipped_bits_are_noticed(
            record in any_record(),
            bits in prop::collection::btree_set(0..RECORD_BYTES * 8, 2..5),
        ) {
            let mut bytes = record.encode();
            bits.into_iter().for_each(|bit| flip(&mut bytes, bit));
            prop_assert_eq!(Record::decode(&bytes), Decoded::Damaged);
        }

        #[test]
        fn a_record_with_its_bits_in_part_programmed_is_no_other_record(
            record in any_record(),
            mask in prop::array::uniform32(any::<u8>()),
        ) {
            let whole = record.encode();
            let mut bytes = whole;
            bytes.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte |= mask);
            let found = Record::decode(&bytes);
            prop_assert!(!matches!(found, Decoded::Programmed(other, _) if other != record), "{found:?}");
        }
    }

    #[test]
    fn an_erased_record_may_have_flipped_bits() {
        let mut bytes = [0xFF; RECORD_BYTES];
        assert_eq!(Record::decode(&bytes), Decoded::Erased);
        for bit in [3, 77, 279] {
            flip(&mut bytes, bit);
            assert_eq!(Record::decode(&bytes), Decoded::Erased);
        }
        flip(&mut bytes, 100);
        assert_eq!(Record::decode(&bytes), Decoded::Damaged);
    }

    #[test]
    fn the_bytes_are_those_of_the_document() {
        let spare = Spare {
            kind: PageKind::User,
            tag: 0x0403_0201,
            seq: 5,
            erase_count: 6,
            erased_at: 7,
            aux: 8,
            flags: Flags::ALL,
        };
        let bytes = Record::new(&spare, Content::HostData, b"123456789").encode();
        assert_eq!(bytes[..BARE], spare.encode()[..BARE]);
        assert_eq!(bytes[26], 1);
        assert_eq!(bytes[27..31], 0xCBF4_3926_u32.to_le_bytes());
        assert_eq!(bytes[31..], crc32fast::hash(&bytes[..31]).to_le_bytes());
    }
}
