//! The spare area: what is written beside every page, atomically with it.
//!
//! It is typed so that a simulated device can hold it in eight bytes; [`Spare::encode`] and
//! [`Spare::decode`] are its only byte form. What each field means to recovery is in
//! `docs/FORMAT.md`.

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
    /// The check value matches but the kind is not one of this format.
    #[error("spare area names page kind {kind}, which this format version does not have")]
    Kind {
        /// The number found.
        kind: u8,
    },
}

impl Spare {
    /// Length of the byte form.
    pub const BYTES: usize = 26;
    /// One more than the largest sequence number.
    pub const SEQ_END: u64 = 1 << 48;

    /// The byte form: kind, version, tag, seq (6 bytes), erase count, erase stamp, aux, CRC-16, little endian.
    ///
    /// No encoded spare is all ones, so an erased page is never mistaken for a written one.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        debug_assert!(self.seq < Self::SEQ_END, "sequence number {} needs more than 48 bits", self.seq);
        let mut out = [0; Self::BYTES];
        out[0] = self.kind as u8;
        out[1] = FORMAT_VERSION;
        out[2..6].copy_from_slice(&self.tag.to_le_bytes());
        out[6..12].copy_from_slice(&self.seq.to_le_bytes()[..6]);
        out[12..16].copy_from_slice(&self.erase_count.to_le_bytes());
        out[16..20].copy_from_slice(&self.erased_at.to_le_bytes());
        out[20..24].copy_from_slice(&self.aux.to_le_bytes());
        let crc = crc16(&out[..24]);
        out[24..26].copy_from_slice(&crc.to_le_bytes());
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
        let computed = crc16(&bytes[..24]);
        let found = u16::from_le_bytes([bytes[24], bytes[25]]);
        if found != computed {
            return Err(SpareError::Crc { found, computed });
        }
        let Some(kind) = PageKind::from_u8(bytes[0]).filter(|_| bytes[1] == FORMAT_VERSION) else {
            return Err(SpareError::Kind { kind: bytes[0] });
        };
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let seq = u64::from(word(6)) | u64::from(bytes[10]) << 32 | u64::from(bytes[11]) << 40;
        Ok(Some(Self { kind, tag: word(2), seq, erase_count: word(12), erased_at: word(16), aux: word(20) }))
    }
}

/// Version of the spare-area format.
pub const FORMAT_VERSION: u8 = 1;

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

    const SPARE: Spare = Spare {
        kind: PageKind::Translation,
        tag: 0x0102_0304,
        seq: 0x0605_0403_0201,
        erase_count: 7,
        erased_at: 99,
        aux: 0xDEAD_BEEF,
    };

    #[test]
    fn bytes_round_trip() {
        assert_eq!(Spare::decode(&SPARE.encode()), Ok(Some(SPARE)));
        assert_eq!(Spare::decode(&[0xFF; Spare::BYTES]), Ok(None));
    }

    #[test]
    fn any_single_flipped_bit_is_noticed() {
        for bit in 0..Spare::BYTES * 8 {
            let mut bytes = SPARE.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Spare::decode(&bytes).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn crc_is_the_published_one() {
        assert_eq!(crc16(b"123456789"), 0x29B1);
    }
}
