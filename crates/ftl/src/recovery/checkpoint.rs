//! Reading a checkpoint of the log-block engine, and rolling forward from it.
//!
//! 1. The first spare area of every block says whether the block belongs to a checkpoint. Of those
//!    that are whole the youngest counts. Whole is one of which every page can be read, with the
//!    right check value ([`Crc`]), and that contradicts neither itself nor the device.
//! 2. Of every block in which a page lived, one such page is looked at. If it is what the
//!    checkpoint says, the block was not erased since; only pages behind those then programmed are
//!    read. Every other block is read like in a full scan.
//!
//! What a checkpoint says is a copy older than any that is read. If the block of a page that was
//! trimmed since was being erased when power was cut, the page can be unreadable. The checkpoint
//! may be younger than the cut: a mount found the page, and nothing told that its block was half
//! erased. So a named page that says no more what it holds is an error, and never unwritten.

use super::copies::Copies;
use crate::contract::FtlError;
use crate::crc::Crc;
use crate::flash::{Flash, Purpose};
use crate::mapping::bits::Bits;
use alloc::vec;
use alloc::vec::Vec;
use nand::{BlockId, Geometry, Lpn, Nand, NandError, PageKind, Ppn, Spare};

/// The first word: "OFC2". Format 1, which had no check value, began with another.
pub const MAGIC: u32 = 0x3243_464F;
/// Words of the header.
pub const HEADER_WORDS: u32 = 9;

/// Words of a checkpoint with so many log blocks and fused logical blocks, its check value
/// excepted.
#[must_use]
pub fn words(geometry: &Geometry, logical_blocks: u32, page_mapped: u64) -> u64 {
    let [blocks, pages] = [geometry.blocks(), geometry.pages_per_block()].map(u64::from);
    let logical_blocks = u64::from(logical_blocks);
    let home = (logical_blocks * pages).div_ceil(32);
    u64::from(HEADER_WORDS) + blocks.div_ceil(2) + logical_blocks + home + page_mapped * (1 + pages)
}

/// Pages that so many words and their check value take.
#[must_use]
pub fn pages(geometry: &Geometry, words: u64) -> u32 {
    (words + 1).div_ceil(u64::from(geometry.page_bytes() / 4)) as u32
}

/// What a checkpoint begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Every page of host data then on flash has a smaller sequence number.
    pub seq: u64,
    /// Erases of the device.
    pub erases: u32,
    /// Blocks of the device.
    pub blocks: u32,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Pages of the disk.
    pub logical_pages: u32,
    /// Log blocks listed.
    pub logs: u32,
    /// Fused logical blocks listed.
    pub fused: u32,
}

impl Header {
    /// As it is written.
    #[must_use]
    pub const fn words(&self) -> [u32; HEADER_WORDS as usize] {
        [
            MAGIC,
            self.seq as u32,
            (self.seq >> 32) as u32,
            self.erases,
            self.blocks,
            self.pages_per_block,
            self.logical_pages,
            self.logs,
            self.fused,
        ]
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut header = [0; HEADER_WORDS as usize];
        header.iter_mut().zip(words_of(bytes)).for_each(|(to, word)| *to = word);
        let [MAGIC, low, high, erases, blocks, pages_per_block, logical_pages, logs, fused] = header else {
            return None;
        };
        let seq = u64::from(low) | u64::from(high) << 32;
        Some(Self { seq, erases, blocks, pages_per_block, logical_pages, logs, fused })
    }
}

/// The place of a logical page in a checkpoint.
#[derive(Clone, Copy, Debug)]
struct Place {
    lpn: Lpn,
    ppn: Ppn,
    paged: bool,
}

/// The places that a checkpoint names, each page and each logical page once.
struct Places {
    list: Vec<Place>,
    pages: Bits,
    logical_pages: Bits,
}

impl Places {
    fn new(geometry: &Geometry, logical_pages: u32) -> Self {
        Self { list: Vec::new(), pages: Bits::new(geometry.pages()), logical_pages: Bits::new(logical_pages) }
    }

    /// `None` if one of both was named before.
    fn add(&mut self, lpn: Lpn, ppn: Ppn, paged: bool) -> Option<()> {
        if self.logical_pages.has(lpn.0) || self.pages.has(ppn.0) {
            return None;
        }
        self.logical_pages.set(lpn.0);
        self.pages.set(ppn.0);
        self.list.push(Place { lpn, ppn, paged });
        debug_assert!(self.logical_pages.has(lpn.0) && self.pages.has(ppn.0));
        Some(())
    }
}

/// A checkpoint that was found whole.
#[derive(Debug)]
pub struct Checkpoint {
    header: Header,
    /// Its blocks.
    pub blocks: Vec<BlockId>,
    /// The blocks of the next youngest that is whole; none if there is no other.
    pub older: Vec<BlockId>,
    /// Whether a page behind its own says that it was complete.
    pub sealed: bool,
    /// How far each block of the device was programmed.
    next: Vec<u16>,
    places: Vec<Place>,
}

/// The first page of a block of a checkpoint.
#[derive(Clone, Copy, Debug)]
struct First {
    block: BlockId,
    spare: Spare,
}

fn words_of(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

/// The words before the check value, which come last; `None` if it is not theirs.
fn checked(bytes: &[u8]) -> Option<impl Iterator<Item = u32>> {
    let (body, check) = bytes.split_last_chunk()?;
    let mut crc = Crc::new();
    crc.add(body);
    (*check == crc.value().to_le_bytes()).then(|| words_of(body))
}

impl Checkpoint {
    /// Looks for the youngest whole checkpoint, and for the one before it. Answers also the blocks
    /// with the first page of any other: one that cannot be read now may be whole at a later mount.
    /// Of three the youngest counts only if it is sealed.
    ///
    /// # Errors
    /// Those of the device, except unreadable pages.
    pub fn find<N: Nand>(flash: &mut Flash<N>, logical_pages: u32) -> Result<(Option<Self>, Vec<BlockId>), FtlError> {
        let geometry = *flash.nand().geometry();
        let mut firsts = Vec::new();
        for block in (0..geometry.blocks()).map(BlockId) {
            if flash.nand().is_bad(block) {
                continue;
            }
            match flash.read_spare(Purpose::Recovery, geometry.page_at(block, 0)) {
                Ok(Some(spare)) if spare.kind == PageKind::Checkpoint => firsts.push(First { block, spare }),
                Ok(_) | Err(NandError::Uncorrectable { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        firsts.sort_unstable_by_key(|first| u64::MAX - first.spare.seq);
        let (mut whole, mut others) = (Vec::new(), Vec::new());
        for first in firsts.iter().filter(|first| first.spare.tag == 0) {
            let found = if whole.len() < 3 { Self::read(flash, logical_pages, first, &firsts)? } else { None };
            match found {
                Some(found) => whole.push(found),
                None => others.push(first.block),
            }
        }
        if whole.len() == 3 && !whole[0].sealed {
            // Nothing of the other two was erased since it was begun.
            others.append(&mut whole.remove(0).blocks);
        }
        let mut whole = whole.into_iter();
        let mut youngest = whole.next();
        if let (Some(youngest), Some(older)) = (&mut youngest, whole.next()) {
            youngest.older = older.blocks;
        }
        others.extend(whole.flat_map(|other: Self| other.blocks));
        Ok((youngest, others))
    }

    fn read<N: Nand>(
        flash: &mut Flash<N>,
        logical_pages: u32,
        first: &First,
        firsts: &[First],
    ) -> Result<Option<Self>, FtlError> {
        let geometry = *flash.nand().geometry();
        let pages = geometry.pages_per_block();
        let mut buffer = vec![0; geometry.page_bytes() as usize];
        let (mut bytes, mut blocks): (Vec<u8>, Vec<BlockId>) = (Vec::new(), Vec::new());
        let mut wanted: Option<(Header, u32)> = None;
        for index in 0.. {
            if wanted.is_some_and(|(_, wanted)| index >= wanted) {
                break;
            }
            if index % pages == 0 {
                let of_set = |other: &&First| other.spare.tag == index && other.spare.aux == first.spare.aux;
                let Some(next) = firsts.iter().find(of_set) else { return Ok(None) };
                blocks.push(next.block);
            }
            let ppn = geometry.page_at(blocks[(index / pages) as usize], index % pages);
            match flash.read_meta(Purpose::Recovery, ppn, &mut buffer) {
                Ok(spare) if (spare.kind, spare.tag, spare.aux) == (PageKind::Checkpoint, index, first.spare.aux) => {}
                Ok(_) | Err(NandError::Uncorrectable { .. } | NandError::Erased { .. }) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
            bytes.extend_from_slice(&buffer);
            debug_assert!(bytes.len() == (index as usize + 1) * buffer.len());
            if wanted.is_none() {
                let header = Header::read(&bytes).filter(|header| header.fits(&geometry, logical_pages));
                let Some(header) = header else { return Ok(None) };
                wanted = Some((header, header.pages(&geometry)));
            }
        }
        let Some((header, end)) = wanted else { return Ok(None) };
        debug_assert!(
            bytes.len() as u64 > 4 * header.words_in_all(&geometry) && blocks.len() as u32 == end.div_ceil(pages)
        );
        bytes.truncate(4 * (header.words_in_all(&geometry) as usize + 1));
        let mut found = checked(&bytes).and_then(|words| Self::decode(header, blocks, words, &geometry));
        if let Some(found) = &mut found {
            found.sealed = Self::is_sealed(flash, found, end, firsts)?;
        }
        Ok(found)
    }

    /// Whether a page behind the last of a checkpoint was begun after it: complete or torn.
    fn is_sealed<N: Nand>(flash: &mut Flash<N>, found: &Self, end: u32, firsts: &[First]) -> Result<bool, FtlError> {
        let geometry = *flash.nand().geometry();
        let is_seal = |spare: &Spare| {
            (spare.kind, spare.tag, spare.aux) == (PageKind::Checkpoint, end, found.header.seq as u32)
                && spare.seq == found.header.seq + u64::from(end)
        };
        let (set, offset) = (end / geometry.pages_per_block(), end % geometry.pages_per_block());
        let Some(block) = found.blocks.get(set as usize) else {
            debug_assert!(found.blocks.len() as u32 - set <= 1, "the page behind the last is far from it");
            return Ok(firsts.iter().any(|first| is_seal(&first.spare)));
        };
        match flash.read_spare(Purpose::Recovery, geometry.page_at(*block, offset)) {
            Ok(spare) => Ok(spare.is_some_and(|spare| is_seal(&spare))),
            Err(NandError::Uncorrectable { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// `None` if it names what does not exist, or a page twice.
    fn decode(
        header: Header,
        blocks: Vec<BlockId>,
        words: impl Iterator<Item = u32>,
        geometry: &Geometry,
    ) -> Option<Self> {
        let pages = geometry.pages_per_block();
        let lbns = header.logical_pages.div_ceil(pages);
        let mut words = words.skip(HEADER_WORDS as usize);
        let halves: Vec<u32> = words.by_ref().take(geometry.blocks().div_ceil(2) as usize).collect();
        let next: Vec<u16> = halves.iter().flat_map(|word| [*word as u16, (*word >> 16) as u16]).collect();
        let data: Vec<u32> = words.by_ref().take(lbns as usize).collect();
        let home: Vec<u32> = words.by_ref().take((lbns * pages).div_ceil(32) as usize).collect();
        if next.len() < geometry.blocks() as usize {
            return None;
        }
        let mut places = Places::new(geometry, header.logical_pages);
        for lpn in 0..header.logical_pages {
            if home.get(lpn as usize / 32)? >> (lpn % 32) & 1 == 1 {
                let block = data.get((lpn / pages) as usize).filter(|block| **block < geometry.blocks())?;
                places.add(Lpn(lpn), geometry.page_at(BlockId(*block), lpn % pages), false)?;
            }
        }
        for entry in 0..header.logs + header.fused {
            let (key, paged) = (words.next()?, entry >= header.logs);
            if key >= if paged { lbns } else { geometry.blocks() } {
                return None;
            }
            for offset in 0..pages {
                let word = words.next()?;
                let (lpn, ppn) = if paged {
                    (Lpn(key * pages + offset), Ppn(word))
                } else {
                    (Lpn(word), geometry.page_at(BlockId(key), offset))
                };
                if lpn.0 < header.logical_pages && ppn.0 < geometry.pages() {
                    places.add(lpn, ppn, paged)?;
                }
            }
        }
        debug_assert_eq!(words.count(), 0, "words behind the last entry");
        Some(Self { header, blocks, older: Vec::new(), sealed: false, next, places: places.list })
    }

    /// The copies of every logical page, and how many blocks changed since the checkpoint; `None`
    /// if the device contradicts it.
    ///
    /// # Errors
    /// As [`Copies::scan`].
    pub fn roll_forward<N: Nand>(
        &self,
        flash: &mut Flash<N>,
        excluded: &[Ppn],
    ) -> Result<Option<(Copies, u32)>, FtlError> {
        let geometry = *flash.nand().geometry();
        let mut copies = Copies::new(geometry, self.header.logical_pages, excluded);
        let pages = self.header.pages(&geometry);
        let mut named = vec![Ppn::NONE; self.header.logical_pages as usize];
        self.places.iter().for_each(|place| named[place.lpn.index()] = place.ppn);
        copies.begin_after(named, self.header.seq, self.header.seq + u64::from(pages), self.header.erases);
        debug_assert!(self.next.len() >= geometry.blocks() as usize);
        let mut witness: Vec<Option<Place>> = vec![None; geometry.blocks() as usize];
        for place in &self.places {
            let seen = &mut witness[geometry.block_of(place.ppn).index()];
            if seen.is_none_or(|seen| seen.ppn < place.ppn) {
                *seen = Some(*place);
            }
        }
        let mut same = vec![false; geometry.blocks() as usize];
        let (mut buffer, mut changed) = (Vec::new(), 0);
        for block in (0..geometry.blocks()).map(BlockId).filter(|block| !self.blocks.contains(block)) {
            if flash.nand().is_bad(block) {
                continue;
            }
            let spare = match witness[block.index()] {
                Some(place) => self.look(flash, place)?,
                None => None,
            };
            if let Some(spare) = spare {
                same[block.index()] = true;
                copies.keep_block(block, &spare);
                copies.read_from(flash, block, self.next[block.index()].into(), &mut buffer)?;
            } else {
                copies.read_from(flash, block, 0, &mut buffer)?;
                changed += u32::from(copies.block(block).used);
            }
        }
        for place in self.places.iter().filter(|place| same[geometry.block_of(place.ppn).index()]) {
            copies.note_older(place.lpn, place.ppn, place.paged);
        }
        let others = self.places.iter().filter(|place| !same[geometry.block_of(place.ppn).index()]);
        let is_faded = |place: &&Place| copies.has_faded(place.lpn, place.ppn, self.header.erases);
        let faded: Vec<Place> = others.filter(is_faded).copied().collect();
        for place in faded {
            copies.note_faded(place.lpn, place.ppn, place.paged);
        }
        copies.find_homes();
        copies.judge(flash)?;
        Ok(copies.is_consistent().then_some((copies, changed)))
    }

    /// The spare area of a page that is still what the checkpoint says.
    fn look<N: Nand>(&self, flash: &mut Flash<N>, place: Place) -> Result<Option<Spare>, FtlError> {
        match flash.read_spare(Purpose::Recovery, place.ppn) {
            Ok(spare) => {
                Ok(spare.filter(|s| s.kind == PageKind::User && s.tag == place.lpn.0 && s.seq < self.header.seq))
            }
            Err(NandError::Uncorrectable { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Header {
    fn fits(&self, geometry: &Geometry, logical_pages: u32) -> bool {
        self.seq < Spare::SEQ_END / 2
            && self.blocks == geometry.blocks()
            && self.pages_per_block == geometry.pages_per_block()
            && self.logical_pages == logical_pages
            && self.logs <= self.blocks
            && self.fused <= logical_pages.div_ceil(self.pages_per_block)
            && self.words_in_all(geometry) < u64::from(u32::MAX / 4)
    }

    fn words_in_all(&self, geometry: &Geometry) -> u64 {
        let page_mapped = u64::from(self.logs) + u64::from(self.fused);
        words(geometry, self.logical_pages.div_ceil(geometry.pages_per_block()), page_mapped)
    }

    fn pages(&self, geometry: &Geometry) -> u32 {
        pages(geometry, self.words_in_all(geometry))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use nand::Dimensions;

    #[test]
    fn a_header_fits_its_device_and_disk_and_no_other() {
        let dimensions = Dimensions {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks: 1 << 20,
            pages_per_block: 2048,
            page_bytes: 512,
            spare_bytes: 32,
        };
        let geometry = Geometry::new(dimensions).unwrap();
        let header = Header {
            seq: 9,
            erases: 1,
            blocks: 1 << 20,
            pages_per_block: 2048,
            logical_pages: 1 << 20,
            logs: 4,
            fused: 512,
        };
        let fits = |header: Header| header.fits(&geometry, 1 << 20);
        assert!(fits(header));
        assert!(!fits(Header { seq: Spare::SEQ_END / 2, ..header }));
        assert!(!fits(Header { blocks: 1, logs: 0, ..header }) && !fits(Header { pages_per_block: 1024, ..header }));
        assert!(!fits(Header { logical_pages: 1 << 19, ..header }) && !fits(Header { fused: 513, ..header }));
        assert!(!fits(Header { logs: (1 << 20) + 1, ..header }), "more log blocks than blocks");
        assert!(!fits(Header { logs: 1 << 20, ..header }), "more words than can be counted");
    }
}
