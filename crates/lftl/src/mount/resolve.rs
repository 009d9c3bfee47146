//! Which contents of each logical page are the newest.
//!
//! Contents are compared by their sequence number, which copies keep; of a page and its copies the
//! one that was moved most often counts, because the others may be in a half-erased block. An
//! entry of the checkpoint stands against pages behind a mark by its spare area, which is read only
//! if they are so old that they could be copies made too late. Trims stand against all by the
//! number that they were given.

use super::scan::{self, Behind, Candidate, First, Scan};
use super::{Found, MountReport, Rewrite, SEQ_MARGIN, each_bank};
use crate::bank::{Bank, Use};
use crate::error::LftlError;
use crate::map::UNMAPPED;
use crate::mount::find::Base;
use crate::save::{Anchor, Saver};
use crate::shape::{Aux, Options, Shape};
use nand::{NandError, PageKind, Spare};
use std::collections::BTreeMap;

/// Pages behind the marks, by logical page, the newest first.
type Candidates = BTreeMap<u32, Vec<Candidate>>;

/// Finds the entries from what is behind the marks of a checkpoint, or from every page.
pub(super) fn all(
    shape: &Shape,
    banks: &mut [Bank],
    options: &Options,
    base: Option<Base>,
    threads: usize,
    report: &mut MountReport,
) -> Result<Found, LftlError> {
    let anchor = base.as_ref().map(|base| &base.anchor);
    let first = each_bank(banks, threads, |_, bank| scan::first_pages(shape, bank))?;
    let scans = each_bank(banks, threads, |index, bank| {
        scan::pages(shape, (index, bank), &first[index as usize], &Behind::of(anchor, index))
    })?;
    report.scanned_blocks = scans.iter().map(|scan| scan.scanned.len() as u64).sum();
    let nothing = scans.iter().all(|scan| scan.candidates.is_empty() && scan.trims.is_empty());
    if base.is_none() && nothing {
        let reason = "no checkpoint and no page of this FTL is on it; format it first".to_owned();
        return Err(LftlError::NotMountable { reason });
    }
    let known = Known::of(shape, &first, anchor);
    let mut seq = scans.iter().map(|scan| scan.seq).max().unwrap_or_default();
    let mut stamp = scans.iter().map(|scan| scan.stamp).max().unwrap_or_default();
    let mut entries = match &base {
        Some(base) => base.entries.clone(),
        None => vec![UNMAPPED; options.logical_pages as usize],
    };
    known.drop_reopened(shape, &mut entries);
    let scanned = scans.iter().flat_map(|scan| &scan.scanned).copied().collect();
    let (candidates, trims) = merge(scans, options.logical_pages);
    drop_trimmed(&mut entries, &candidates, &trims);
    let (mut rewrite, mut guarded) = (Vec::new(), Vec::new());
    for (lpn, pages) in &candidates {
        let newest_trim = trims_of(&trims, *lpn);
        let decided = decide(shape, banks, (entries[*lpn as usize], pages, newest_trim), base.as_ref(), *lpn)?;
        report.rebuilt_entries += u64::from(decided.entry != entries[*lpn as usize]);
        entries[*lpn as usize] = decided.entry;
        if let Some(rewrite) = &decided.rewrite {
            (seq, stamp) = (seq.max(rewrite.seq), stamp.max(rewrite.stamp));
        }
        rewrite.extend(decided.rewrite);
        guarded.extend(decided.guarded);
    }
    let mut saver = Saver::default();
    if let Some(base) = &base {
        saver = Saver { number: base.number, anchor: base.place, ..saver };
    }
    let floor = anchor.map_or((0, 0), |anchor| (anchor.seq, anchor.stamp));
    Ok(Found {
        erases: known.erases(shape, base.as_ref()),
        meta: known.meta(shape, base.as_ref(), banks),
        entries,
        rewrite,
        guarded,
        scanned,
        seq: seq.max(floor.0) + SEQ_MARGIN,
        // Each bank may have opened a block of data, and somebody one of each kind of metadata, of
        // which nothing can be read.
        stamp: stamp.max(floor.1) + 4 * shape.banks + 64,
        saver,
    })
}

/// What the first pages of all blocks say.
struct Known<'a> {
    first: &'a [Vec<First>],
    anchor: Option<&'a Anchor>,
}

impl<'a> Known<'a> {
    fn of(shape: &Shape, first: &'a [Vec<First>], anchor: Option<&'a Anchor>) -> Self {
        debug_assert!(first.len() == shape.banks as usize);
        Self { first, anchor }
    }

    fn first(&self, shape: &Shape, block: u32) -> First {
        self.first[(block / shape.blocks) as usize][(block % shape.blocks) as usize]
    }

    /// An entry that leads into a block that was erased since is of a page that was trimmed or
    /// written since; of the latter there is a candidate.
    fn drop_reopened(&self, shape: &Shape, entries: &mut [u32]) {
        let Some(anchor) = self.anchor else { return };
        for entry in entries.iter_mut().filter(|entry| **entry != UNMAPPED) {
            let gone = match self.first(shape, shape.block_of(*entry)) {
                First::Erased => true,
                First::Spare(spare) => spare.erased_at > anchor.stamp,
                First::Unreadable => false,
            };
            if gone {
                *entry = UNMAPPED;
            }
        }
    }

    /// How often each block was erased, as far as is known.
    fn erases(&self, shape: &Shape, base: Option<&Base>) -> Vec<u32> {
        let of = |block: u32| {
            let saved = base.map_or(0, |base| base.erases[block as usize]);
            match self.first(shape, block) {
                First::Spare(spare) if may_have(spare.erase_count, saved) => saved.max(spare.erase_count),
                _ => saved,
            }
        };
        (0..shape.all_blocks()).map(of).collect()
    }

    /// Blocks of metadata that are needed until the next checkpoint: this chain, the one before it
    /// in case this anchor is torn and cannot be read the next time, and trims.
    fn meta(&self, shape: &Shape, base: Option<&Base>, banks: &[Bank]) -> Vec<(u32, u32)> {
        let mut meta = base.map(|base| base.needed()).unwrap_or_default();
        let before = base.and_then(|base| base.before.as_ref()).map(|(_, stamp)| *stamp);
        let stamp = before.or(self.anchor.map(|anchor| anchor.stamp)).unwrap_or(u32::MAX);
        for block in 0..shape.all_blocks() {
            let at = (block / shape.blocks, block % shape.blocks);
            let First::Spare(spare) = self.first(shape, block) else { continue };
            let needed = spare.kind == PageKind::Validity && spare.erased_at > stamp;
            let skipped = shape.is_anchor(at.0, at.1) || banks[at.0 as usize].blocks[at.1 as usize].used == Use::Bad;
            if needed && !skipped && !meta.contains(&at) {
                meta.push(at);
            }
        }
        meta
    }
}

/// Everything that was found, of the pages of the disk.
fn merge(scans: Vec<Scan>, pages: u32) -> (Candidates, Vec<(u64, std::ops::Range<u32>)>) {
    let mut candidates = Candidates::new();
    let mut trims = Vec::new();
    for scan in scans {
        for candidate in scan.candidates.into_iter().filter(|candidate| candidate.lpn < pages) {
            candidates.entry(candidate.lpn).or_default().push(candidate);
        }
        let inside = |(seq, range): (u64, crate::trims::Range)| {
            (seq, range.first.min(pages)..range.first.saturating_add(range.count).min(pages))
        };
        trims.extend(scan.trims.into_iter().map(inside));
    }
    for pages in candidates.values_mut() {
        pages.sort_unstable_by_key(|page| std::cmp::Reverse((page.seq, page.moves, page.stamp, page.ppn)));
    }
    (candidates, trims)
}

/// Trims outrank entries of the checkpoint: they were made after its mark was complete. An entry
/// that leads behind a mark is a candidate, and is decided with those.
fn drop_trimmed(entries: &mut [u32], candidates: &Candidates, trims: &[(u64, std::ops::Range<u32>)]) {
    for (_, range) in trims {
        for lpn in range.clone() {
            let entry = &mut entries[lpn as usize];
            let behind = || candidates.get(&lpn).is_some_and(|pages| pages.iter().any(|page| page.ppn == *entry));
            if *entry != UNMAPPED && !behind() {
                *entry = UNMAPPED;
            }
        }
    }
}

fn trims_of(trims: &[(u64, std::ops::Range<u32>)], lpn: u32) -> u64 {
    trims.iter().filter(|(_, range)| range.contains(&lpn)).map(|(seq, _)| *seq).max().unwrap_or_default()
}

/// What was decided of a page.
struct Decided {
    entry: u32,
    rewrite: Option<Rewrite>,
    /// Pages that may be torn, any of which may be the newest to another mount.
    guarded: Vec<u32>,
}

fn decide(
    shape: &Shape,
    banks: &mut [Bank],
    (entry, pages, trimmed): (u32, &[Candidate], u64),
    base: Option<&Base>,
    lpn: u32,
) -> Result<Decided, LftlError> {
    let (mut rewrite, mut guarded) = (None, Vec::new());
    let behind = pages.iter().any(|page| page.ppn == entry);
    let mut saved = None;
    for page in pages.iter().filter(|page| page.seq > trimmed) {
        // The entry may be newer than a copy that was made too late.
        if let Some(base) = base.filter(|base| entry != UNMAPPED && !behind && page.seq < base.anchor.seq) {
            let spare = match saved {
                Some(spare) => spare,
                None => *saved.insert(spare_of(shape, banks, entry)?.filter(|spare| base.knows(shape, entry, spare))),
            };
            if spare
                .is_some_and(|spare| spare.tag == lpn && (spare.seq, Aux::of(spare.aux).moves) > (page.seq, page.moves))
            {
                return Ok(Decided { entry, rewrite, guarded });
            }
        }
        if !page.doubtful {
            return Ok(Decided { entry: page.ppn, rewrite, guarded });
        }
        guarded.push(page.ppn);
        // It is written again; until then the entry leads to what it replaced.
        if rewrite.is_none() {
            rewrite = read(shape, banks, page)?;
        }
    }
    let entry = if behind { UNMAPPED } else { entry };
    Ok(Decided { entry, rewrite, guarded })
}

impl Base {
    /// Whether a spare area may be that of a page that the checkpoint has an entry for. One that
    /// nobody wrote says something else: its block was half erased, after the page was moved.
    fn knows(&self, shape: &Shape, ppn: u32, spare: &Spare) -> bool {
        let wear = self.erases[shape.block_of(ppn) as usize];
        spare.seq < self.anchor.seq && spare.erased_at <= self.anchor.stamp && may_have(spare.erase_count, wear)
    }
}

/// Whether a spare area may tell the wear of a block: one that nobody wrote may say anything.
fn may_have(erase_count: u32, saved: u32) -> bool {
    erase_count.abs_diff(saved) < 1 << 20
}

fn spare_of(shape: &Shape, banks: &mut [Bank], ppn: u32) -> Result<Option<Spare>, LftlError> {
    match banks[shape.bank_of(ppn) as usize].read_spare(shape.local(ppn)) {
        Ok(spare) => Ok(spare),
        Err(NandError::Uncorrectable { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Reads a page that may be torn; `None` if it is.
fn read(shape: &Shape, banks: &mut [Bank], page: &Candidate) -> Result<Option<Rewrite>, LftlError> {
    let mut data = vec![0; shape.page_bytes()];
    match banks[shape.bank_of(page.ppn) as usize].read(shape.local(page.ppn), &mut data) {
        Ok(spare) if spare.tag == page.lpn => Ok(Some(Rewrite {
            lpn: nand::Lpn(page.lpn),
            ppn: page.ppn,
            data,
            lost: Aux::of(spare.aux).lost,
            seq: page.seq,
            stamp: page.stamp,
        })),
        Ok(_) | Err(NandError::Uncorrectable { .. } | NandError::Erased { .. } | NandError::Illegal { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
