//! The spare area: what is written beside every page, atomically with it.
//!
//! It is typed so that a simulated device can hold it in eight bytes; [`Spare::encode`] and
//! [`Spare::decode`] are its only byte form. What each field means to recovery is in
//! `docs/FORMAT.md`.

use crate::flags::Flags;

/// What a page holds. The numbers are part of the flash format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PageKind {
    /// Host data; the tag is its logical page.
    User = 1,
    /// A page of the translation table; the tag is its index.
    Translation = 2,
    /// A page of a flash-resident page-validity store; the tag is the store's own.
    Validity = 3,
    /// State saved at a checkpoint or a clean shutdown; the tag is its index.
    Checkpoint = 4,
}

impl PageKind {
    /// Every kind, in the order of its number.
    pub const ALL: [Self; 4] = [Self::User, Self::Translation, Self::Validity, Self::Checkpoint];

    /// The kind with this number.
    #[must_use]
    pub const fn from_u8(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::User),
            2 => Some(Self::Translation),
            3 => Some(Self::Validity),
            4 => Some(Self::Checkpoint),
            _ => None,
        }
    }
}

/// The software part of a page's spare area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spare {
    /// What the page holds.
    pub kind: PageKind,
    /// Which one of that kind (a logical page number, a translation page number).
    pub tag: u32,
    /// Position in the order of all programs of the device; never repeats, 48 bits.
    pub seq: u64,
    /// How often the page's block had been erased when it was opened.
    pub erase_count: u32,
    /// The device's count of erases when the page's block was last erased.
    pub erased_at: u32,
    /// Meaning depends on the kind; 0 for plain host data.
    pub aux: u32,
    /// Flags set since the page was programmed. A program ignores them: every page begins without.
    pub flags: Flags,
}

/// Why spare bytes could not be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpareError {
    /// The check value does not match the bytes.
    #[error("spare area is damaged: CRC is {found:#06x}, its bytes give {computed:#06x}")]
    Crc {
        /// What the bytes said.
        found: u16,
        /// What the bytes give.
        computed: u16,
    },
    /// The check value matches but the bytes are of another format.
    #[error("spare area has format version {found}; this program reads version {FORMAT_VERSION}")]
    Version {
        /// The version found.
        found: u8,
    },
    /// The check value matches but the kind is not one of this format.
    #[error("spare area names page kind {kind}, which this format version does not have")]
    Kind {
        /// The number found.
        kind: u8,
    },
}

impl Spare {
    /// Length of the byte form.
    pub const BYTES: usize = FLAGS_AT + Flags::COPIES;
    /// One more than the largest sequence number.
    pub const SEQ_END: u64 = 1 << 48;

    /// The byte form: kind, version, tag, seq (6 bytes), erase count, erase stamp, aux, CRC-16, all
    /// little endian; then the flags, three times.
    ///
    /// No encoded spare is all ones, so an erased page is never mistaken for a written one.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        debug_assert!(self.seq < Self::SEQ_END, "sequence number {} needs more than 48 bits", self.seq);
        let mut out = [self.flags.encode(); Self::BYTES];
        out[0] = self.kind as u8;
        out[1] = FORMAT_VERSION;
        out[2..6].copy_from_slice(&self.tag.to_le_bytes());
        out[6..12].copy_from_slice(&self.seq.to_le_bytes()[..6]);
        out[12..16].copy_from_slice(&self.erase_count.to_le_bytes());
        out[16..20].copy_from_slice(&self.erased_at.to_le_bytes());
        out[20..CRC_AT].copy_from_slice(&self.aux.to_le_bytes());
        let crc = crc16(&out[..CRC_AT]);
        out[CRC_AT..FLAGS_AT].copy_from_slice(&crc.to_le_bytes());
        debug_assert!(Self::decode(&out) == Ok(Some(*self)), "{self:?} reads otherwise");
        out
    }

    /// Reads the byte form; `None` if it is erased (all ones).
    ///
    /// # Errors
    /// [`SpareError`] if the bytes are neither erased nor a spare area of this format.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Result<Option<Self>, SpareError> {
        if bytes.iter().all(|&b| b == 0xFF) {
            return Ok(None);
        }
        let computed = crc16(&bytes[..CRC_AT]);
        let found = u16::from_le_bytes([bytes[CRC_AT], bytes[CRC_AT + 1]]);
        if found != computed {
            return Err(SpareError::Crc { found, computed });
        }
        if bytes[1] != FORMAT_VERSION {
            return Err(SpareError::Version { found: bytes[1] });
        }
        let Some(kind) = PageKind::from_u8(bytes[0]) else {
            return Err(SpareError::Kind { kind: bytes[0] });
        };
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let seq = u64::from(word(6)) | u64::from(bytes[10]) << 32 | u64::from(bytes[11]) << 40;
        let flags = Flags::decode([bytes[FLAGS_AT], bytes[FLAGS_AT + 1], bytes[FLAGS_AT + 2]]);
        debug_assert!(seq < Self::SEQ_END);
        Ok(Some(Self { kind, tag: word(2), seq, erase_count: word(12), erased_at: word(16), aux: word(20), flags }))
    }

    /// Sets flags in the byte form: their bits fall, and nothing else changes.
    pub fn clear_flags(bytes: &mut [u8; Self::BYTES], flags: Flags) {
        bytes[FLAGS_AT..].iter_mut().for_each(|copy| *copy &= flags.encode());
        debug_assert!(Flags::decode([bytes[FLAGS_AT], bytes[FLAGS_AT + 1], bytes[FLAGS_AT + 2]]).contains(flags));
    }
}

/// Version of the spare-area format.
pub const FORMAT_VERSION: u8 = 2;
/// Where the check value is, behind the bytes that it covers.
const CRC_AT: usize = 24;
/// Where the copies of the flags are.
const FLAGS_AT: usize = CRC_AT + 2;

/// CRC-16/CCITT-FALSE, bit by bit: 24 bytes a page, and no table in firmware.
fn crc16(bytes: &[u8]) -> u16 {
    let mut crc = 0xFFFF_u16;
    for &byte in bytes {
        crc ^= u16::from(byte) << 8;
        for _ in 0..8 {
            crc = if crc & 0x8000 != 0 { crc << 1 ^ 0x1021 } else { crc << 1 };
        }
    }
    crc
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SPARE: Spare = Spare {
        kind: PageKind::Translation,
        tag: 0x0102_0304,
        seq: 0x0605_0403_0201,
        erase_count: 7,
        erased_at: 99,
        aux: 0xDEAD_BEEF,
        flags: Flags::from_bits(0b0110_0001),
    };

    #[test]
    fn bytes_round_trip() {
        assert_eq!(Spare::decode(&SPARE.encode()), Ok(Some(SPARE)));
        assert_eq!(Spare::decode(&[0xFF; Spare::BYTES]), Ok(None));
    }

    #[test]
    fn any_single_flipped_bit_is_noticed_or_corrected() {
        for bit in 0..Spare::BYTES * 8 {
            let mut bytes = SPARE.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let found = Spare::decode(&bytes);
            assert!(if bit / 8 < FLAGS_AT { found.is_err() } else { found == Ok(Some(SPARE)) }, "bit {bit}");
        }
    }

    #[test]
    fn another_version_is_named() {
        let mut bytes = SPARE.encode();
        bytes[1] = 1;
        let crc = crc16(&bytes[..CRC_AT]);
        bytes[CRC_AT..FLAGS_AT].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(Spare::decode(&bytes), Err(SpareError::Version { found: 1 }));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn setting_flags_raises_no_bit_and_changes_no_field(
            kind in prop::sample::select(PageKind::ALL.to_vec()),
            (tag, seq, erase_count) in (any::<u32>(), 0..Spare::SEQ_END, any::<u32>()),
            (erased_at, aux) in (any::<u32>(), any::<u32>()),
            set in prop::collection::vec(any::<u8>(), 1..5),
        ) {
            let mut spare = Spare { kind, tag, seq, erase_count, erased_at, aux, flags: Flags::NONE };
            let mut bytes = spare.encode();
            for flags in set.into_iter().map(Flags::from_bits) {
                let before = bytes;
                Spare::clear_flags(&mut bytes, flags);
                spare.flags = spare.flags.union(flags);
                prop_assert!(before.iter().zip(&bytes).all(|(before, after)| after & !before == 0), "a bit rose");
                prop_assert_eq!(Spare::decode(&bytes), Ok(Some(spare)));
                prop_assert_eq!(bytes, spare.encode());
            }
        }
    }

    #[test]
    fn crc_is_the_published_one() {
        assert_eq!(crc16(b"123456789"), 0x29B1);
    }
}
