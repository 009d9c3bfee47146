//! Pages of metadata: their byte form, and streams of them that fill blocks of their own.
//!
//! ```text
//! a page   4 B  "LFTL"     1 B  format version    1 B  kind      2 B  0
//!          8 B  number: of the checkpoint, or the sequence number of the trims
//!          4 B  index within the stream           4 B  previous block of the stream, or 2^32 - 1
//!          4 B  bytes that follow                 4 B  CRC-32 of all others
//! ```
//! Numbers are little endian.

use crate::append::Place;
use crate::bank::{Bank, Use};
use crate::engine::Engine;
use crate::error::LftlError;
use crate::sync::Ordering;
use ftl::victim::by_bank::RESERVE;
use nand::{Flags, NandError, PageKind, Ppn, Spare};

const MAGIC: [u8; 4] = *b"LFTL";
/// Version of the format of metadata.
const VERSION: u8 = 1;
/// Bytes before the contents of a page.
pub(crate) const HEADER_BYTES: usize = 32;
/// No block.
pub(crate) const NONE: u32 = u32::MAX;

/// What a page of metadata is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Where a checkpoint is.
    Anchor = 1,
    /// A part of a checkpoint.
    Chain = 2,
    /// Trims.
    Trims = 3,
}

/// The field `aux` of the spare area of an anchor; of other metadata it is 0.
pub(crate) const ANCHOR: u32 = 1;

/// A page of metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MetaPage {
    pub(crate) number: u64,
    pub(crate) index: u32,
    pub(crate) previous: u32,
    pub(crate) contents: Vec<u8>,
}

impl MetaPage {
    pub(crate) fn encode(&self, kind: Kind) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_BYTES + self.contents.len());
        out.extend(MAGIC);
        out.extend([VERSION, kind as u8, 0, 0]);
        out.extend(self.number.to_le_bytes());
        out.extend(self.index.to_le_bytes());
        out.extend(self.previous.to_le_bytes());
        out.extend((self.contents.len() as u32).to_le_bytes());
        let mut crc = crc32fast::Hasher::new();
        crc.update(&out);
        crc.update(&self.contents);
        out.extend(crc.finalize().to_le_bytes());
        out.extend(&self.contents);
        out
    }

    /// Reads the byte form; `None` if it is no page of this kind, or damaged.
    pub(crate) fn decode(kind: Kind, bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        if bytes.get(..6)? != [&MAGIC[..], &[VERSION, kind as u8]].concat() {
            return None;
        }
        let contents = bytes.get(HEADER_BYTES..)?.get(..word(24)? as usize)?;
        let mut crc = crc32fast::Hasher::new();
        crc.update(&bytes[..28]);
        crc.update(contents);
        if crc.finalize() != word(28)? {
            return None;
        }
        let number = u64::from_le_bytes(bytes.get(8..16)?.try_into().ok()?);
        Some(Self { number, index: word(16)?, previous: word(20)?, contents: contents.to_vec() })
    }
}

/// Pages of metadata that are written one after the other, into blocks of their own.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// Where the next page goes, if its block has room.
    at: Option<(u32, Place)>,
    /// The blocks it fills, in order: bank and block.
    pub(crate) blocks: Vec<(u32, u32)>,
    /// Pages written so far.
    pub(crate) pages: u32,
}

impl Stream {
    /// Its last block on the card, or [`NONE`].
    pub(crate) fn last(&self, shape: &crate::shape::Shape) -> u32 {
        self.blocks.last().map_or(NONE, |(bank, block)| shape.block(*bank, *block))
    }
}

impl Engine {
    /// Bytes of contents that a page of metadata holds.
    pub(crate) fn meta_bytes(&self) -> usize {
        self.shape.page_bytes() - HEADER_BYTES
    }

    /// Writes the next page of a stream.
    ///
    /// **Power loss**: the page is there or not. A reader notices a torn one.
    pub(crate) fn write_meta(
        &self,
        stream: &mut Stream,
        (kind, number): (Kind, u64),
        contents: &[u8],
    ) -> Result<(), LftlError> {
        loop {
            let (bank, place) = match stream.at {
                Some(at) => at,
                None => self.open_meta(stream)?,
            };
            let previous = match stream.blocks.len() {
                0 | 1 => NONE,
                count => self.shape.block(stream.blocks[count - 2].0, stream.blocks[count - 2].1),
            };
            let page = MetaPage { number, index: stream.pages, previous, contents: contents.to_vec() }.encode(kind);
            let cell = &self.banks[bank as usize];
            let mut guard = cell.lock();
            let spare = Spare {
                kind: if kind == Kind::Trims { PageKind::Validity } else { PageKind::Checkpoint },
                tag: stream.pages,
                seq: self.seq.fetch_add(1, Ordering::AcqRel),
                erase_count: guard.blocks[place.block as usize].erases,
                erased_at: place.stamp,
                aux: 0,
                flags: Flags::NONE,
            };
            let at = Ppn(place.block * self.shape.pages_per_block + place.offset);
            let programmed = guard.program_meta(at, &page, &spare);
            self.counters.saved.fetch_add(1, Ordering::Relaxed);
            let next = place.offset + 1;
            stream.at = (programmed.is_ok() && next < self.shape.pages_per_block)
                .then_some((bank, Place { offset: next, ..place }));
            match programmed {
                Ok(()) => {
                    stream.pages += 1;
                    return Ok(());
                }
                Err(NandError::ProgramFailed { .. }) => self.meta_failed(&mut guard, stream, place),
                Err(error) => return Err(self.fail_device(error)),
            }
        }
    }

    /// A program of a block of metadata failed: it is retired when nothing of it is needed, at once
    /// if nothing is in it.
    fn meta_failed(&self, bank: &mut Bank, stream: &mut Stream, place: Place) {
        bank.blocks[place.block as usize].failed = true;
        if place.offset == 0 {
            stream.blocks.pop();
            bank.blocks[place.block as usize].used = Use::Failing;
        }
    }

    /// Takes a block for metadata from the bank with the most free ones.
    fn open_meta(&self, stream: &mut Stream) -> Result<(u32, Place), LftlError> {
        let free = |bank: &usize| self.banks[*bank].info.free.load(Ordering::Acquire);
        loop {
            let Some(index) = (0..self.banks.len()).max_by_key(free) else { return Err(self.no_space()) };
            if free(&index) < RESERVE && !self.make_room()? && free(&index) == 0 {
                return Err(self.no_space());
            }
            let cell = &self.banks[index];
            let mut bank = cell.lock();
            let taken = bank.take().map_err(|error| self.fail_device(error))?;
            cell.publish(&bank, self.shape.pages_per_block);
            let Some(block) = taken else { continue };
            bank.blocks[block as usize].used = Use::Meta;
            let place = Place { block, offset: 0, stamp: self.stamp.fetch_add(1, Ordering::AcqRel) + 1 };
            stream.blocks.push((index as u32, block));
            return Ok((index as u32, place));
        }
    }

    /// Gives blocks of metadata back; nothing in them is needed any more.
    pub(crate) fn free_meta(&self, blocks: &[(u32, u32)]) -> Result<(), LftlError> {
        for (index, block) in blocks {
            let cell = &self.banks[*index as usize];
            let mut bank = cell.lock();
            debug_assert!(bank.blocks[*block as usize].used == Use::Meta);
            bank.give_back(*block, false).map_err(|error| self.fail_device(error))?;
            cell.publish(&bank, self.shape.pages_per_block);
        }
        Ok(())
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_of_a_page_is_noticed() {
        let page = MetaPage { number: 7, index: 1, previous: NONE, contents: vec![1, 2, 3, 250] };
        let bytes = page.encode(Kind::Chain);
        assert_eq!(bytes.len(), HEADER_BYTES + 4);
        assert_eq!(MetaPage::decode(Kind::Chain, &bytes), Some(page));
        assert_eq!(MetaPage::decode(Kind::Trims, &bytes), None);
        for bit in 0..bytes.len() * 8 {
            let mut harmed = bytes.clone();
            harmed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(MetaPage::decode(Kind::Chain, &harmed), None, "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert_eq!(MetaPage::decode(Kind::Chain, &bytes[..length]), None);
        }
    }
}
