//! The header: what is on the device, in its first blocks.
//!
//! Every good block of the first [`RESERVED_BLOCKS`] holds the same header. So any of them may be
//! lost. The device that an FTL sees begins behind them.

use crate::chip::Shape;
use crate::error::MtdError;
use crate::record::RECORD_BYTES;

/// Blocks at the start of the chip that hold nothing but headers.
pub const RESERVED_BLOCKS: u32 = 4;
/// So many headers are written when a device is made, or it is refused.
pub const HEADERS_MIN: u32 = 2;
/// Bytes that the owner may keep, if they fit a block.
pub const OWNER_BYTES_MAX: usize = 64 << 10;
/// Version of the format of an MTD device.
pub const VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"OFTL-MTD";
/// Bytes of the header before the owner's bytes.
const FIXED_BYTES: usize = 64;
/// Where the check value is, behind the bytes that it covers.
const CHECK_AT: usize = 60;

/// What a block says that should hold the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The owner's bytes.
    Owner(Vec<u8>),
    /// Another version of the format.
    Version(u32),
    /// Something else, or a header that is damaged.
    Nothing,
}

/// The most bytes that an owner may keep on a chip.
pub(crate) fn owner_bytes_max(shape: &Shape) -> usize {
    let block = shape.pages_per_block as usize * shape.page_bytes as usize;
    OWNER_BYTES_MAX.min(block.saturating_sub(FIXED_BYTES))
}

/// What is written from the first page of a block on, in whole pages.
pub(crate) fn encode(shape: &Shape, owner: &[u8]) -> Result<Vec<u8>, MtdError> {
    let most = owner_bytes_max(shape);
    if owner.len() > most {
        return Err(MtdError::OwnerTooLong { bytes: owner.len(), most });
    }
    let mut out = vec![0; FIXED_BYTES];
    out[..8].copy_from_slice(&MAGIC);
    let [blocks, pages, page_bytes] = dimensions(shape).map(|(_, value)| value);
    let owner_words = [owner.len() as u32, crc32fast::hash(owner)];
    let words =
        [VERSION, RESERVED_BLOCKS, blocks, pages, page_bytes, RECORD_BYTES as u32].into_iter().chain(owner_words);
    for (at, word) in (8..).step_by(4).zip(words) {
        out[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    let check = crc32fast::hash(&out[..CHECK_AT]);
    out[CHECK_AT..].copy_from_slice(&check.to_le_bytes());
    out.extend_from_slice(owner);
    out.resize(out.len().next_multiple_of(shape.page_bytes as usize), 0xFF);
    Ok(out)
}

/// What differs makes the addresses of pages others.
fn dimensions(shape: &Shape) -> [(&'static str, u32); 3] {
    [("blocks", shape.blocks), ("pages per block", shape.pages_per_block), ("bytes per page", shape.page_bytes)]
}

/// The number at `at`.
fn word(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

/// How many pages the header has, by its first page. `None` if that is no header of this version.
pub(crate) fn pages(first: &[u8], shape: &Shape) -> Option<u32> {
    let whole = first.len() >= FIXED_BYTES && crc32fast::hash(&first[..CHECK_AT]) == word(first, CHECK_AT);
    if !whole || first[..8] != MAGIC || word(first, 8) != VERSION {
        return None;
    }
    let owner = word(first, 32) as usize;
    let bytes = FIXED_BYTES.checked_add(owner).filter(|_| owner <= OWNER_BYTES_MAX)?;
    let pages = bytes.div_ceil(shape.page_bytes as usize) as u32;
    (pages <= shape.pages_per_block).then_some(pages)
}

/// What the pages of a header say.
///
/// # Errors
/// [`MtdError::Shape`] if the device had another shape when it was formatted.
pub(crate) fn decode(bytes: &[u8], shape: &Shape) -> Result<Found, MtdError> {
    if bytes.len() < FIXED_BYTES || bytes[..8] != MAGIC {
        return Ok(Found::Nothing);
    }
    if crc32fast::hash(&bytes[..CHECK_AT]) != word(bytes, CHECK_AT) {
        return Ok(Found::Nothing);
    }
    if word(bytes, 8) != VERSION {
        return Ok(Found::Version(word(bytes, 8)));
    }
    for ((what, found), at) in dimensions(shape).into_iter().zip([16, 20, 24]) {
        let formatted = word(bytes, at);
        if formatted != found {
            return Err(MtdError::Shape { what, formatted, found });
        }
    }
    let end = FIXED_BYTES + (word(bytes, 32) as usize).min(OWNER_BYTES_MAX);
    let Some(owner) = bytes.get(FIXED_BYTES..end) else { return Ok(Found::Nothing) };
    let ours = word(bytes, 12) == RESERVED_BLOCKS && word(bytes, 28) == RECORD_BYTES as u32;
    let whole = ours && crc32fast::hash(owner) == word(bytes, 36);
    Ok(if whole { Found::Owner(owner.to_vec()) } else { Found::Nothing })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHAPE: Shape = Shape { blocks: 64, pages_per_block: 8, page_bytes: 2048, oob_bytes: 38, ecc_strength: 1 };

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn headers_round_trip(owner in prop::collection::vec(any::<u8>(), 0..6000)) {
            let bytes = encode(&SHAPE, &owner).unwrap();
            prop_assert_eq!(bytes.len() % 2048, 0);
            prop_assert_eq!(pages(&bytes[..2048], &SHAPE), Some((bytes.len() / 2048) as u32));
            prop_assert_eq!(decode(&bytes, &SHAPE).unwrap(), Found::Owner(owner));
        }

        #[test]
        fn arbitrary_bytes_are_no_header(mut bytes in prop::collection::vec(any::<u8>(), 0..4096), magic in any::<bool>()) {
            if magic && bytes.len() >= 12 {
                bytes[..8].copy_from_slice(&MAGIC);
                bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
            }
            prop_assert_eq!(pages(&bytes, &SHAPE), None);
            prop_assert_eq!(decode(&bytes, &SHAPE).unwrap(), Found::Nothing);
        }
    }

    #[test]
    fn every_damaged_byte_is_noticed() {
        let bytes = encode(&SHAPE, b"owner").unwrap();
        for at in 0..FIXED_BYTES + 5 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x40;
            assert_eq!(decode(&damaged, &SHAPE).unwrap(), Found::Nothing, "byte {at}");
        }
    }

    #[test]
    fn another_version_or_shape_is_named() {
        let mut bytes = encode(&SHAPE, b"owner").unwrap();
        let error = decode(&bytes, &Shape { blocks: 65, ..SHAPE }).unwrap_err();
        let said = "the device was formatted with 64 blocks, and has 65; restore its partition, or format it";
        assert_eq!(error.to_string(), said);
        assert!(decode(&bytes, &Shape { oob_bytes: 64, ecc_strength: 8, ..SHAPE }).is_ok());
        bytes[8] = 2;
        let check = crc32fast::hash(&bytes[..CHECK_AT]);
        bytes[CHECK_AT..FIXED_BYTES].copy_from_slice(&check.to_le_bytes());
        assert_eq!(decode(&bytes, &SHAPE).unwrap(), Found::Version(2));
    }

    #[test]
    fn an_owner_that_does_not_fit_is_refused() {
        assert_eq!(owner_bytes_max(&SHAPE), 8 * 2048 - FIXED_BYTES);
        let owner = vec![1; 8 * 2048 - FIXED_BYTES];
        assert_eq!(encode(&SHAPE, &owner).unwrap().len(), 8 * 2048);
        assert!(matches!(encode(&SHAPE, &vec![1; owner.len() + 1]), Err(MtdError::OwnerTooLong { .. })));
        assert_eq!(owner_bytes_max(&Shape { pages_per_block: 256, ..SHAPE }), OWNER_BYTES_MAX);
    }
}
