//! Finding the newest checkpoint: a bounded number of reads, whatever the size of the card.

use super::each_bank;
use crate::bank::Bank;
use crate::error::LftlError;
use crate::meta::{ANCHOR, Kind, MetaPage, NONE};
use crate::save::{ANCHOR_COPIES, Anchor};
use crate::shape::{Options, Shape};
use nand::{NandError, PageKind, Ppn};

/// A checkpoint that was read.
pub(super) struct Base {
    pub(super) anchor: Anchor,
    /// Where the anchor is, among the blocks for anchors, and its sequence number.
    pub(super) place: usize,
    pub(super) seq: u64,
    pub(super) entries: Vec<u32>,
    pub(super) erases: Vec<u32>,
    /// The blocks of its chain: bank and block.
    pub(super) chain: Vec<(u32, u32)>,
    /// The largest number of any anchor.
    pub(super) number: u64,
    /// Every mount finds this checkpoint.
    pub(super) certain: bool,
    /// If not: the blocks of the chain of the newest that every mount finds, and the stamp of its
    /// mark.
    pub(super) before: Option<(Vec<(u32, u32)>, u32)>,
}

impl Base {
    /// The blocks of metadata that are needed until the next checkpoint, each once: two anchors may
    /// have the same chain.
    pub(super) fn needed(&self) -> Vec<(u32, u32)> {
        let before = self.before.iter().flat_map(|(chain, _)| chain).filter(|at| !self.chain.contains(at));
        self.chain.iter().chain(before).copied().collect()
    }
}

/// An anchor that is somewhere, by its spare area.
struct Sighting {
    seq: u64,
    place: usize,
    bank: u32,
    at: Ppn,
}

/// The newest checkpoint that can be read whole.
pub(super) fn newest(
    shape: &Shape,
    banks: &mut [Bank],
    options: &Options,
    threads: usize,
) -> Result<Option<Base>, LftlError> {
    let anchors = anchors(shape, banks)?;
    // Of one of which the first copy may be torn nothing is used but its number.
    let number = anchors.iter().map(|read| read.anchor.number).max().unwrap_or_default();
    let has = |number: u64, copy: u32| anchors.iter().any(|read| read.anchor.number == number && read.copy >= copy);
    for read in anchors.iter().filter(|read| read.copy > 0) {
        check_same(shape, options, &read.anchor)?;
        let Some((chain, words)) = chain(shape, banks, &read.anchor, threads)? else { continue };
        let last_copy = ANCHOR_COPIES - 1;
        let certain = has(read.anchor.number, last_copy);
        let older = |other: &&Read| other.copy == last_copy && other.anchor.number < read.anchor.number;
        let before = match anchors.iter().find(older) {
            Some(other) if !certain => {
                Some((chain_blocks(shape, banks, &other.anchor)?.unwrap_or_default(), other.anchor.stamp))
            }
            _ => None,
        };
        let (entries, erases) = words.split_at(options.logical_pages as usize);
        return Ok(Some(Base {
            anchor: read.anchor.clone(),
            place: read.sighting.place,
            seq: read.sighting.seq,
            number,
            entries: entries.to_vec(),
            erases: erases.to_vec(),
            chain,
            certain,
            before,
        }));
    }
    Ok(None)
}

/// An anchor that was read, and which copy of it.
struct Read {
    anchor: Anchor,
    copy: u32,
    sighting: Sighting,
}

/// The newest anchors, the newest first.
fn anchors(shape: &Shape, banks: &mut [Bank]) -> Result<Vec<Read>, LftlError> {
    let mut anchors = Vec::new();
    for sighting in sightings(shape, banks)? {
        let mut bytes = vec![0; shape.page_bytes()];
        let read = banks[sighting.bank as usize].read_meta(sighting.at, &mut bytes);
        let page = read.map_or_else(lost, |_| Ok(MetaPage::decode(Kind::Anchor, &bytes)))?;
        let Some(page) = page else { continue };
        if let Some(anchor) = Anchor::decode(&page) {
            anchors.push(Read { anchor, copy: page.index, sighting });
        }
    }
    anchors.sort_by_key(|read| std::cmp::Reverse((read.anchor.number, read.copy)));
    Ok(anchors)
}

/// Whether no bank has opened a block since a clean shutdown, as far as spare areas tell: whatever
/// they do not tell was never flushed.
pub(super) fn untouched(shape: &Shape, banks: &mut [Bank], anchor: &Anchor) -> Result<bool, LftlError> {
    for (bank, mark) in banks.iter_mut().zip(&anchor.marks) {
        if mark.head >= shape.blocks || bank.nand.is_bad(nand::BlockId(mark.head)) {
            return Ok(false);
        }
        match bank.read_spare(Ppn(mark.head * shape.pages_per_block)) {
            Ok(None) => {}
            Ok(Some(spare)) if spare.erased_at <= anchor.stamp => {}
            Ok(Some(_)) | Err(NandError::Uncorrectable { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

/// A page that cannot be read is no anchor; any other error ends the mount.
fn lost<T>(error: NandError) -> Result<Option<T>, LftlError> {
    match error {
        NandError::Uncorrectable { .. } | NandError::Erased { .. } | NandError::Illegal { .. } => Ok(None),
        error => Err(error.into()),
    }
}

fn sightings(shape: &Shape, banks: &mut [Bank]) -> Result<Vec<Sighting>, LftlError> {
    let mut found = Vec::new();
    for (place, (bank, block)) in shape.anchor_blocks().enumerate() {
        for offset in 0..shape.pages_per_block {
            let at = Ppn(block.0 * shape.pages_per_block + offset);
            match banks[bank as usize].read_spare(at) {
                Ok(None) => break,
                Ok(Some(spare)) if spare.kind == PageKind::Checkpoint && spare.aux == ANCHOR => {
                    found.push(Sighting { seq: spare.seq, place, bank, at });
                }
                Ok(Some(_)) => {}
                Err(error) => drop(lost::<()>(error)?),
            }
        }
    }
    // Only the newest of each block can be the newest of all; the others stand in if it is torn.
    found.sort_by_key(|sighting| std::cmp::Reverse(sighting.seq));
    found.truncate(SIGHTINGS_MAX);
    Ok(found)
}

/// Anchors that are read at most.
const SIGHTINGS_MAX: usize = 24;

fn check_same(shape: &Shape, options: &Options, anchor: &Anchor) -> Result<(), LftlError> {
    let disk = (anchor.banks, anchor.blocks, anchor.pages_per_block, anchor.page_bytes, anchor.logical_pages);
    let asked = (shape.banks, shape.blocks, shape.pages_per_block, shape.page_bytes, options.logical_pages);
    if disk == asked {
        return Ok(());
    }
    let text = |(banks, blocks, pages, bytes, logical): (u32, u32, u32, u32, u32)| {
        format!("{banks} banks of {blocks} blocks of {pages} pages of {bytes} B, {logical} of them logical")
    };
    Err(LftlError::NotMountable { reason: format!("it was made as {}; this is {}", text(disk), text(asked)) })
}

/// The blocks of a checkpoint's chain, and its words; `None` if it cannot be read whole.
#[expect(clippy::type_complexity, reason = "blocks and words, used once")]
fn chain(
    shape: &Shape,
    banks: &mut [Bank],
    anchor: &Anchor,
    threads: usize,
) -> Result<Option<(Vec<(u32, u32)>, Vec<u32>)>, LftlError> {
    let Some(chain) = chain_blocks(shape, banks, anchor)? else { return Ok(None) };
    let pages = each_bank(banks, threads, |index, bank| {
        let mut pages = Vec::new();
        for (_, block) in chain.iter().filter(|(bank, _)| *bank == index) {
            pages.extend(pages_of(shape, bank, *block, anchor.chain)?);
        }
        Ok(pages)
    })?;
    let mut pages: Vec<MetaPage> = pages.into_iter().flatten().collect();
    pages.sort_by_key(|page| page.index);
    let mut crc = crc32fast::Hasher::new();
    let mut words = Vec::new();
    for (index, page) in (0..).zip(&pages) {
        if page.index != index {
            return Ok(None);
        }
        crc.update(&page.contents);
        words.extend(page.contents.chunks_exact(4).map(|word| word.try_into().map(u32::from_le_bytes).unwrap_or(NONE)));
    }
    let whole = words.len() == (anchor.logical_pages + shape.all_blocks()) as usize && crc.finalize() == anchor.crc;
    let inside = |entry: &u32| *entry == crate::map::UNMAPPED || *entry < shape.all_blocks() * shape.pages_per_block;
    Ok((whole && words[..anchor.logical_pages as usize].iter().all(inside)).then_some((chain, words)))
}

/// The blocks of a checkpoint's chain; `None` if one of them cannot be read.
fn chain_blocks(shape: &Shape, banks: &mut [Bank], anchor: &Anchor) -> Result<Option<Vec<(u32, u32)>>, LftlError> {
    let (mut chain, mut block) = (Vec::new(), anchor.last);
    while block != NONE {
        let at = (block / shape.blocks, block % shape.blocks);
        if block >= shape.all_blocks() || chain.contains(&at) {
            return Ok(None);
        }
        let Some(previous) = previous(shape, &mut banks[at.0 as usize], at.1, anchor.chain)? else { return Ok(None) };
        chain.push(at);
        block = previous;
    }
    Ok(Some(chain))
}

/// The block before this one in a chain; `None` if no page of it says so.
fn previous(shape: &Shape, bank: &mut Bank, block: u32, number: u64) -> Result<Option<u32>, LftlError> {
    let mut bytes = vec![0; shape.page_bytes()];
    match bank.read_meta(Ppn(block * shape.pages_per_block), &mut bytes) {
        Ok(_) => {
            Ok(MetaPage::decode(Kind::Chain, &bytes).filter(|page| page.number == number).map(|page| page.previous))
        }
        Err(error) => lost(error),
    }
}

/// The pages of a chain that a block holds.
fn pages_of(shape: &Shape, bank: &mut Bank, block: u32, number: u64) -> Result<Vec<MetaPage>, NandError> {
    let mut pages = Vec::new();
    let mut bytes = vec![0; shape.page_bytes()];
    for offset in 0..shape.pages_per_block {
        match bank.read_meta(Ppn(block * shape.pages_per_block + offset), &mut bytes) {
            Ok(_) => pages.extend(MetaPage::decode(Kind::Chain, &bytes).filter(|page| page.number == number)),
            Err(NandError::Erased { .. }) => break,
            Err(NandError::Uncorrectable { .. } | NandError::Illegal { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(pages)
}
