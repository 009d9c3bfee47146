//! Mounting a mapping table that is a B-tree in flash.
//!
//! 1. Two spare areas of every block: what it holds and how old it is ([`Survey`]).
//! 2. *With a battery*, what it saved: dirty entries, inner nodes, counts of live pages, and what
//!    the validity store held in RAM, if nothing was programmed since. Then all is as it was.
//!    Nothing is programmed or erased, so that the saved state stays valid until the first
//!    operation.
//!
//! Else the tree is found again from its leaves, and the validity store is written anew:
//!
//! 3. Spare areas of the tree's blocks: which leaves count ([`leaves`]). Inner nodes do not.
//! 4. *If a battery could not save*, for want of a good block, or a page of the tree is missing,
//!    every spare area of host data: the newest copy of a logical page counts, unless its leaf
//!    speaks for it. Trims may be undone. *With a bound on dirty entries*, spare areas of the
//!    blocks that hold the n pages of host data programmed last: the newest copy of a logical page
//!    has an entry that was only in RAM if its leaf does not speak for it and names another.
//! 5. Every leaf: what an entry names lives, all else is dead. Without a bound on dirty entries an
//!    entry can name a page that holds something else by now, so that every one is checked against
//!    the spare area it leads to; one that is wrong is lost.
//! 6. The page programmed last is written again, as its program may have been cut short (`settle`).
//! 7. Leaves that count in part are written as leaves of their own, then inner nodes over all
//!    leaves, as far as they do not fit RAM.
//! 8. The entries found in 4 and 5 are written, each leaf once with all of its own: it speaks for
//!    every page of host data that is older than the leaf.
//! 9. The validity store is written; blocks are collected until enough are free.
//!
//! Cut short, it can be begun again any number of times: until 6 no page is erased that counts, or
//! that would if the page programmed last could not be read; and no other page of host data is
//! moved before 9, so the n programmed last stay among the youngest.
//! Takes a bit for each page of the device and some forty bytes a leaf while it lasts.

mod settle;

use super::flat::holds;
use super::{Flash, Lpn, Nand, PageFtl, PageOptions, Plan, Space, site};
use crate::config::Config;
use crate::contract::{FtlError, MountReport};
use crate::engine::page::choose::most_free;
use crate::engine::read_only::{Evidence, Mounted, Unmounted, or_read_only, without_doubt};
use crate::mapping::btree::{BtreeMap, BtreeOptions, Piece};
use crate::mapping::{LOST, is_page};
use crate::recovery::leaves;
use crate::recovery::order;
use crate::recovery::saved::{self, Saved};
use crate::recovery::steps::Steps;
use crate::recovery::survey::{FoundPage, Survey};
use crate::saved::Source;
use crate::space::age::aged;
use crate::space::blocks::Found;
use crate::space::core::Core;
use crate::validity::ram_bitmap::{HoldsBitmap, RamBitmap};
use crate::validity::{Build, Make, Receiver, Store, Validity};
use alloc::vec;
use alloc::vec::Vec;
use core::marker::PhantomData;
use nand::{BlockId, Geometry, NandError, PageKind, Ppn};

/// What was found out of the table before there is an FTL.
pub(super) struct Table {
    pub(super) pieces: Vec<Piece>,
    /// Pages of the tree, with their sequence numbers.
    pub(super) written: Vec<(Ppn, u64)>,
    /// Copies that may have had entries only in RAM, by logical page.
    young: Vec<FoundPage>,
    bound: u64,
    /// Entries that are not in flash, by logical page.
    pub(super) unsaved: Vec<(Lpn, Ppn)>,
    /// Logical pages whose entries lead nowhere.
    pub(super) broken: Vec<Lpn>,
    /// Live pages of each block.
    valid: Vec<u16>,
    /// The page of host data or of the tree that was programmed last, and those that were before
    /// power went once.
    pub(super) last: Vec<FoundPage>,
    /// Pages that do not count, and may read well at a later mount.
    pub(super) doubts: Vec<FoundPage>,
    /// Blocks with pages that count only until the tree is whole again.
    pub(super) keep: Vec<BlockId>,
    /// Entries can name a page that holds something else by now.
    checked: bool,
}

type Parts<'a, N> = (&'a mut Core<N>, &'a mut BtreeMap, &'a mut RamBitmap);

/// What mounts an FTL whose table is a tree over the store whose type it is handed.
struct MountTree<'a, N: Nand, B> {
    flash: Flash<N>,
    config: &'a Config,
    options: PageOptions,
    tree: BtreeOptions,
    build: PhantomData<B>,
}

impl<N: Nand + 'static, B: Build> Receiver for MountTree<'_, N, B> {
    type Output = Mounted<N>;

    fn receive<V: Validity + 'static>(self, make: Make<V>) -> Self::Output {
        let Self { flash, config, options, tree, .. } = self;
        PageFtl::<N, BtreeMap, V>::mount_tree::<B>(flash, config, options, tree, make)
    }
}

/// Opens a disk whose table is a tree, after any end, clean or not.
///
/// # Errors
/// [`FtlError::Unsupported`] and [`FtlError::Damaged`] if the device was formatted for something
/// else, or a leaf cannot be read.
pub fn mount_tree_over_store<B: Build, Own: Store, N: Nand + 'static>(
    flash: Flash<N>,
    config: &Config,
    options: PageOptions,
    tree: BtreeOptions,
) -> Mounted<N> {
    options.only_own_store(config)?;
    let build = PhantomData;
    B::with::<Own, _>(options.validity, MountTree::<N, B> { flash, config, options, tree, build })
        .unwrap_or_else(|| Err(options.no_store(options.validity)))
}

impl<N: Nand + 'static, V: Validity + 'static> PageFtl<N, BtreeMap, V> {
    fn mount_tree<B: Build>(
        flash: Flash<N>,
        config: &Config,
        options: PageOptions,
        tree: BtreeOptions,
        make: Make<V>,
    ) -> Mounted<N> {
        let mut newest = Vec::new();
        let outcome = without_doubt(flash, |flash, excluded| {
            newest.retain(|(ppn, _)| excluded.contains(ppn));
            Self::open_tree::<B>(flash, config, options, (tree, make), (excluded, &mut newest))
        });
        or_read_only(outcome, config, Evidence::Sequence)
    }

    /// Pages are `excluded` that did not count after all; those, and the page programmed last, are
    /// `seen` with their spare areas.
    fn open_tree<B: Build>(
        flash: Flash<N>,
        config: &Config,
        options: PageOptions,
        (tree, make): (BtreeOptions, Make<V>),
        (excluded, seen): (&[Ppn], &mut Vec<FoundPage>),
    ) -> Result<(Self, MountReport), Unmounted<N>> {
        let geometry = *flash.nand().geometry();
        let pages = geometry.pages_per_block();
        let mapping = BtreeMap::new(config.logical_pages, geometry.page_bytes(), pages, tree);
        let validity = make(&site(flash.nand().geometry(), config, &mapping))?;
        let plan = Plan::new(flash.nand(), config, options, &mapping, &validity)?;
        let (plan, mut flash) = plan.for_mount(flash)?;
        let all = plan.battery;
        let mut steps = Steps::begin(&flash);
        let contents = leaves::contents(&geometry, config.logical_pages);
        let mut survey = match Survey::run(&mut flash, plan.space.lanes, excluded, contents, |_| 0) {
            Ok(survey) => survey,
            // A page is only read again if it is the newest.
            Err(error) => return Err(doubting(flash, error, None, &[])),
        };
        let newest = survey.newest().map(|(ppn, _)| ppn);
        steps.end("1 first and last spare area of every block", &flash);
        if options.battery {
            let saved = match saved::find(&mut flash, &mut survey) {
                Ok(saved) => saved,
                Err(error) => return Err(Unmounted::in_doubt(flash, error, newest)),
            };
            steps.end("2 pages that a battery saved: dirty entries, inner nodes, BVC", &flash);
            if let Some(saved) = saved {
                let (ftl, rebuilt_entries) = Self::resume(flash, config, plan, &survey, mapping, validity, &saved)?;
                return Ok((ftl, steps.report(survey.unreadable, rebuilt_entries)));
            }
        }
        let bitmap = B::Bitmap::of_bitmap(RamBitmap::new(geometry.blocks(), pages));
        let space = Space::new(flash.nand(), plan.space);
        let lanes = plan.space;
        let mut ftl = PageFtl::<N, BtreeMap, B::Bitmap>::assemble(flash, config, plan, space, mapping, bitmap);
        let mut table = match ftl.find_table(&mut survey, all, seen, &mut steps) {
            Ok(table) => table,
            Err(error) => return Err(doubting(ftl.core.flash, error, newest, seen)),
        };
        let spoiled = survey.spoiled();
        let mut space = Space::new(ftl.core.flash.nand(), lanes);
        space.restore(survey.erased_at(), survey.mean_erases(), |block| {
            let valid = table.valid[block.index()];
            match survey.block(block) {
                Some(info) => Found::Pages { kind: info.kind, valid },
                None if spoiled.contains(&block) => Found::Pages { kind: PageKind::User, valid: 0 },
                None => Found::Empty,
            }
        });
        space.reserve_free(most_free(ftl.idle_blocks, ftl.reserve_blocks, ftl.rest_blocks));
        ftl.core.space = space;
        // Numbers are left out behind a page that does not count (`Survey::stranded`).
        ftl.core.seq = survey.next_seq() + 2 * u64::from(!excluded.is_empty());
        let rebuilt_entries = table.unsaved.len() as u64;
        if let Err(error) = ftl.settle(&mut table, &mut steps) {
            return Err(doubting(ftl.core.flash, error, newest, seen));
        }
        let mut ftl = ftl.hand_over(validity)?;
        if let Err(error) = ftl.erase_spoiled(spoiled) {
            return Err(Unmounted::with(ftl.core.flash, error));
        }
        steps.end("9 write the page-validity store, free blocks", &ftl.core.flash);
        ftl.begin_levelling(config.wear);
        Ok((ftl, steps.report(survey.unreadable, rebuilt_entries)))
    }

    /// Step 2: an FTL as it was when it was saved, and how many entries were dirty.
    fn resume(
        flash: Flash<N>,
        config: &Config,
        plan: Plan,
        survey: &Survey,
        mut mapping: BtreeMap,
        mut validity: V,
        saved: &Saved,
    ) -> Result<(Self, u64), Unmounted<N>> {
        let geometry = *flash.nand().geometry();
        let mut source = Source(&saved.bytes);
        let mut valid = vec![0; geometry.blocks() as usize];
        for count in &mut valid {
            *count = source.take(2).map_or(u16::MAX, |bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
        }
        let fits = valid.iter().all(|valid| u32::from(*valid) <= geometry.pages_per_block());
        let entries =
            if fits && validity.load(&mut source) { mapping.load(&mut source, geometry.pages()) } else { None };
        let Some(entries) = entries else {
            let reason = "it is of a disk of another size or with a larger cache";
            return Err(Unmounted::with(flash, FtlError::Damaged { structure: "saved state", ppn: Ppn::NONE, reason }));
        };
        let mut space = Space::new(flash.nand(), plan.space);
        space.restore(survey.erased_at(), survey.mean_erases(), |block| {
            match (survey.block(block), valid[block.index()]) {
                (Some(info), valid) => Found::Pages { kind: info.kind, valid },
                (None, 0) => Found::Empty,
                // What lives there was saved to live, and can no longer be read.
                (None, valid) => Found::Pages { kind: PageKind::User, valid },
            }
        });
        let mut ftl = Self::assemble(flash, config, plan, space, mapping, validity);
        ftl.core.seq = survey.next_seq();
        if !ftl.validity.tracks_metadata() {
            // The saved store may call pages dead that the block had before it was opened for the
            // run.
            let opened = survey.blocks().filter(|(_, info)| info.first_seq >= saved.since);
            ftl.core.newly_erased.extend(opened.map(|(block, info)| (block, info.first_seq)));
        }
        ftl.begin_levelling(config.wear);
        Ok((ftl, entries))
    }
}

/// A mount that failed; if for a page that was programmed last, the page is in doubt. Any may be,
/// if none is known yet.
fn doubting<N: Nand>(flash: Flash<N>, error: FtlError, newest: Option<Ppn>, seen: &[FoundPage]) -> Unmounted<N> {
    let page = match error {
        FtlError::Nand(NandError::Uncorrectable { ppn } | NandError::Erased { ppn }) => Some(ppn),
        _ => None,
    };
    let known = |ppn: &Ppn| newest.is_none_or(|newest| newest == *ppn) || seen.iter().any(|(at, _)| at == ppn);
    Unmounted::in_doubt(flash, error, page.filter(known))
}

/// Whether a page is one of these pages of the tree.
fn is_version(versions: &[FoundPage], ppn: Ppn) -> bool {
    versions.iter().any(|(at, _)| *at == ppn)
}

/// As [`Survey::stranded`] if a battery programmed pages when power went, of which those that can
/// be read are `saved`: nothing that can be read carries one of the two sequence numbers before
/// that of the next page. `pages` are all others.
fn stranded_by_save(survey: &Survey, geometry: &Geometry, pages: &[FoundPage], saved: &[FoundPage]) -> Vec<FoundPage> {
    let seqs_of = |pages: &[FoundPage]| {
        let mut seqs: Vec<u64> = pages.iter().map(|(_, spare)| spare.seq).collect();
        seqs.sort_unstable();
        seqs
    };
    let mut tails = [pages, survey.torn()].concat();
    let (seqs, saved) = (seqs_of(&tails), seqs_of(saved));
    let is_gap = |seq: u64| (1..=2).all(|before| saved.binary_search(&(seq - before)).is_err());
    let is_stranded = |(_, spare): &FoundPage| {
        let next = seqs.get(seqs.partition_point(|seq| *seq <= spare.seq));
        next.is_some_and(|next| *next > spare.seq + 2 && is_gap(*next))
    };
    order::by_place(&mut tails);
    let tails = tails.chunk_by(|one, next| geometry.block_of(one.0) == geometry.block_of(next.0));
    tails.filter_map(|of_block| of_block.last().copied()).filter(is_stranded).collect()
}

/// What may have been the last before a battery saved, if it could: the youngest page of host data,
/// and pages of the tree that are younger and the last of their blocks. The battery may have
/// programmed some of these.
fn before_save(geometry: &Geometry, young: &[FoundPage], versions: &[FoundPage]) -> Vec<FoundPage> {
    let of_host = young.iter().copied().max_by_key(|(_, spare)| spare.seq);
    let since = of_host.map_or(0, |(_, spare)| spare.seq);
    let is_last = |page: &FoundPage| {
        let block = geometry.block_of(page.0);
        versions.iter().all(|(ppn, spare)| geometry.block_of(*ppn) != block || spare.seq <= page.1.seq)
    };
    let of_tree = versions.iter().copied().filter(|page| page.1.seq > since && is_last(page));
    of_host.into_iter().chain(of_tree).collect()
}

impl<N: Nand, T: HoldsBitmap> PageFtl<N, BtreeMap, T> {
    /// Steps 3 to 5. Flash is only read. The page programmed last of those that count joins those
    /// `seen`.
    fn find_table(
        &mut self,
        survey: &mut Survey,
        all: bool,
        seen: &mut Vec<FoundPage>,
        steps: &mut Steps,
    ) -> Result<Table, FtlError> {
        let geometry = *self.core.flash.nand().geometry();
        let flash = &mut self.core.flash;
        let mut versions = survey.read_kind(flash, PageKind::Translation, |_| true)?;
        versions.retain(|(_, spare)| spare.kind == PageKind::Translation);
        let pieces = leaves::choose(&versions, self.logical_pages)?;
        steps.end("3 spare areas of the tree's blocks: leaves", flash);
        let (saves, updates) = (all, self.mapping.recent_updates());
        // A younger leaf may speak for fewer pages than the one that it replaced.
        let all = all || updates.is_some() && survey.misses_translation_pages(&[]);
        let (mut young, bound) = match updates.filter(|_| !all) {
            Some(updates) => survey.programmed_last(flash, Some(updates), 0, false)?,
            None if all => survey.programmed_last(flash, None, 0, false)?,
            None => (Vec::new(), u64::MAX),
        };
        young.retain(|(_, spare)| spare.kind == PageKind::User);
        if let Some((ppn, _)) = young.iter().find(|(_, spare)| spare.tag >= self.logical_pages) {
            let reason = "its logical page lies outside the disk: the device was formatted with another size";
            return Err(FtlError::Damaged { structure: "page of host data", ppn: *ppn, reason });
        }
        if all || updates.is_some() {
            steps.end("4 spare areas of young blocks: entries only in RAM", flash);
        }
        let mut others = Vec::new();
        if saves {
            others = survey.read_kind(&mut self.core.flash, PageKind::Validity, |_| true)?;
            others.extend(survey.read_kind(&mut self.core.flash, PageKind::Checkpoint, |_| true)?);
        }
        let saved = saves.then_some(&others[..]);
        let (last, doubts) = self.set_apart(survey, saved, &versions, (&mut young, bound), seen);
        let mut table = Table {
            pieces,
            written: versions.iter().map(|(ppn, spare)| (*ppn, spare.seq)).collect(),
            young,
            bound,
            unsaved: Vec::new(),
            broken: Vec::new(),
            valid: vec![0; geometry.blocks() as usize],
            last,
            doubts: Vec::new(),
            keep: Vec::new(),
            checked: all || updates.is_none(),
        };
        table.set_doubts(doubts);
        table.keep_before(&versions, |ppn| geometry.block_of(ppn), self.logical_pages)?;
        table.find_live((&mut self.core, &mut self.mapping, self.validity.bitmap_mut()), survey)?;
        steps.end("5 every leaf: PVB, BVC", &self.core.flash);
        Ok(table)
    }

    /// The pages that may have been the last before power went, which join those `seen`; and pages
    /// that do not count, those seen before among them. Young pages get back those that were torn
    /// by no cut: they are worn. With a battery, `saved` are the pages of the kinds that it
    /// programs beside leaves.
    fn set_apart(
        &self,
        survey: &Survey,
        saved: Option<&[FoundPage]>,
        versions: &[FoundPage],
        (young, bound): (&mut Vec<FoundPage>, u64),
        seen: &mut Vec<FoundPage>,
    ) -> (Vec<FoundPage>, Vec<FoundPage>) {
        let geometry = *self.core.space.geometry();
        let counts = |kind| matches!(kind, PageKind::User | PageKind::Translation);
        let pages: Vec<FoundPage> = young.iter().chain(versions).copied().collect();
        // A battery programs what it saves after a program that was cut short.
        let newest = match saved {
            Some(_) => pages.iter().copied().max_by_key(|(_, spare)| spare.seq),
            None => survey.newest(),
        };
        let torn = |ppn: Ppn| survey.torn().iter().any(|(at, _)| *at == ppn);
        // What a battery programs beside leaves has numbers of its own.
        let mut last = survey.stranded(&geometry, &[&pages, saved.unwrap_or_default()].concat());
        last.retain(|(_, spare)| counts(spare.kind));
        if let Some(saved) = saved {
            last.extend(stranded_by_save(survey, &geometry, &pages, saved));
            last.extend(before_save(&geometry, young, versions));
        }
        let mut doubts = core::mem::take(seen);
        let in_doubt = |page: &FoundPage| {
            let newest = newest.is_none_or(|(_, newest)| newest.seq < page.1.seq);
            newest || doubts.iter().chain(&last).any(|(ppn, _)| *ppn == page.0)
        };
        // A copy of what is still there was torn: its number may have been given twice, by mounts
        // of which the later could not read what the earlier had programmed.
        let is_copied = |(_, copy): &FoundPage| {
            aged(copy) < copy.seq
                && young.iter().any(|(_, of)| (of.tag, aged(of)) == (copy.tag, aged(copy)) && of.seq < copy.seq)
        };
        let of_host = survey.torn().iter().filter(|page| page.1.kind == PageKind::User);
        let worn: Vec<FoundPage> = of_host.filter(|page| !in_doubt(page) && !is_copied(page)).copied().collect();
        young.extend(worn.iter().filter(|(_, spare)| spare.tag < self.logical_pages && spare.seq >= bound));
        order::by_tag(young);
        last.retain(|(ppn, _)| !torn(*ppn));
        last.extend(newest.filter(|(_, spare)| counts(spare.kind)));
        // A copy of another would be the newest, and the newest look worn to the next mount.
        order::newest_first(&mut last);
        last.dedup_by_key(|(ppn, _)| *ppn);
        *seen = doubts.iter().chain(&last).copied().collect();
        let worn = |ppn: Ppn| young.iter().any(|(at, _)| *at == ppn);
        let torn = survey.torn().iter().chain(survey.alone());
        doubts.extend(torn.filter(|(ppn, spare)| counts(spare.kind) && !worn(*ppn)));
        doubts.retain(|(_, spare)| match BtreeMap::leaf_range(spare) {
            _ if spare.kind == PageKind::User => spare.tag < self.logical_pages && spare.seq >= bound,
            Some(range) => !range.is_empty() && range.end <= self.logical_pages,
            None => false,
        });
        (last, doubts)
    }

    /// Steps 6 to 8.
    fn settle(&mut self, table: &mut Table, steps: &mut Steps) -> Result<(), FtlError> {
        self.settle_doubts(table)?;
        steps.end("6 rewrite the page programmed last", &self.core.flash);
        let keep = core::mem::take(&mut table.keep);
        for piece in &mut table.pieces {
            self.free_dead(|block, _| !keep.contains(&block))?;
            if piece.leaf.is_some() && !piece.is_whole() {
                piece.leaf = self.change(|mapping, core| mapping.rewrite_piece(core, piece))?;
                piece.of = piece.lpns.clone();
            }
            self.change(|mapping, core| mapping.append_leaf(core, piece.lpns.start, piece.leaf))?;
        }
        steps.end("7 inner nodes", &self.core.flash);
        let entries = table.not_in_flash();
        let mut rest = &entries[..];
        while !rest.is_empty() {
            self.make_room()?;
            let restored = self.change(|mapping, core| mapping.restore_leaf(core, rest))?;
            rest = &rest[restored..];
        }
        self.tell()?;
        steps.end("8 synchronise what was only in RAM", &self.core.flash);
        Ok(())
    }
}

impl Table {
    /// Keeps the blocks of leaves that count in part, and of those that would count if the page
    /// programmed last did not.
    fn keep_before(
        &mut self,
        versions: &[FoundPage],
        block_of: impl Fn(Ppn) -> BlockId,
        logical_pages: u32,
    ) -> Result<(), FtlError> {
        let in_part = self.pieces.iter().filter(|piece| piece.leaf.is_some() && !piece.is_whole());
        self.keep.extend(in_part.map(|piece| block_of(piece.leaf)));
        // Any of those programmed last may turn out not to count, or the youngest of them in a row.
        let tails: Vec<Ppn> = self.last.iter().map(|(ppn, _)| *ppn).filter(|ppn| is_version(versions, *ppn)).collect();
        let rows = (1..=tails.len()).map(|count| &tails[..count]);
        for without in rows.chain(tails.chunks(1)) {
            let others: Vec<FoundPage> = versions.iter().filter(|(ppn, _)| !without.contains(ppn)).copied().collect();
            let before = leaves::choose(&others, logical_pages)?;
            let is_new = |piece: &&Piece| piece.leaf.is_some() && !self.pieces.contains(piece);
            self.keep.extend(before.iter().filter(is_new).map(|piece| block_of(piece.leaf)));
        }
        Ok(())
    }

    /// Entries that flash does not say, by logical page. One that leads nowhere is lost.
    fn not_in_flash(&self) -> Vec<(Lpn, Ppn)> {
        let unsaved = self.unsaved.iter().filter(|(lpn, _)| self.broken.binary_search(lpn).is_err()).copied();
        let mut entries: Vec<(Lpn, Ppn)> = unsaved.chain(self.broken.iter().map(|lpn| (*lpn, LOST))).collect();
        entries.sort_unstable();
        entries
    }

    /// Step 5: the bitmap, and the live pages of each block.
    fn find_live<N: Nand>(&mut self, (core, mapping, validity): Parts<'_, N>, survey: &Survey) -> Result<(), FtlError> {
        let geometry = *core.flash.nand().geometry();
        for (block, _) in survey.blocks() {
            (0..geometry.pages_per_block()).for_each(|offset| validity.mark(geometry.page_at(block, offset)));
        }
        let Self { pieces, young, bound, unsaved, broken, valid, last, keep, checked, .. } = self;
        let mut complete = Vec::new();
        for piece in pieces.iter().filter(|piece| piece.is_whole()) {
            validity.revive(piece.leaf);
            valid[geometry.block_of(piece.leaf).index()] += 1;
        }
        let mut young = young.chunk_by(|a, b| a.1.tag == b.1.tag).peekable();
        for piece in &*pieces {
            mapping.read_piece(core, piece, |core, lpn, entry, speaks_for| {
                let copies = young.next_if(|copies| copies[0].1.tag == lpn.0).unwrap_or(&[]);
                let newest = copies.first().filter(|(_, spare)| spare.seq >= *bound && spare.seq >= speaks_for);
                if let Some((ppn, _)) = newest
                    && last.iter().any(|(last, _)| last == ppn)
                {
                    // A program that failed leaves a copy between which cannot be read. An entry
                    // can lead to where the newest copy came to lie after an erase.
                    let is_unsure = |(ppn, _): &&FoundPage| last.iter().chain(survey.torn()).any(|page| page.0 == *ppn);
                    let count = copies.iter().take_while(is_unsure).count();
                    let older = copies.iter().skip(1).take(count).map(|(ppn, _)| *ppn).chain([entry]);
                    let pages = older.filter(|ppn| ppn.0 < geometry.pages());
                    keep.extend(pages.map(|ppn| geometry.block_of(ppn)));
                }
                let known = newest.filter(|(ppn, _)| *ppn != entry);
                if let Some((ppn, _)) = known {
                    unsaved.push((lpn, *ppn));
                }
                let named = last.iter().filter(|(ppn, spare)| *ppn == entry && spare.seq < speaks_for);
                complete.extend(named.map(|(ppn, _)| *ppn));
                let ppn = known.map_or(entry, |(ppn, _)| *ppn);
                if !is_page(ppn) {
                    return Ok(());
                }
                if ppn.0 >= geometry.pages() {
                    let reason = "an entry leads to a page beyond the device's last";
                    return Err(FtlError::Damaged { structure: "leaf of the mapping tree", ppn: piece.leaf, reason });
                }
                let block = geometry.block_of(ppn);
                let of_host = survey.block(block).is_some_and(|info| info.kind == PageKind::User);
                let free = of_host && validity.is_dead(ppn);
                // What is in doubt is not asked: it is copied or does not count.
                let in_doubt = last.iter().any(|(last, spare)| *last == ppn && spare.tag == lpn.0);
                let sure = !*checked || known.is_some() || in_doubt;
                if free && (sure || holds(&mut core.flash, ppn, lpn)?) {
                    validity.revive(ppn);
                    valid[block.index()] += 1;
                } else {
                    broken.push(lpn);
                }
                Ok(())
            })?;
        }
        // A leaf led to them when they were complete.
        last.retain(|(ppn, _)| !complete.contains(ppn));
        debug_assert!(young.peek().is_none(), "{:?} belongs to no piece", young.peek());
        debug_assert!(unsaved.is_sorted_by(|a, b| a.0 < b.0) && broken.is_sorted_by(|a, b| a < b));
        debug_assert!(valid.iter().all(|valid| u32::from(*valid) <= geometry.pages_per_block()));
        Ok(())
    }
}
