//! The collector of every page-mapped FTL.
//!
//! 1. A victim is chosen ([`super::choose`]).
//! 2. The validity store is asked which of its pages are dead.
//! 3. *Before anything moves*, the live pages are settled: spare areas say whose they are, and the
//!    mapping or the store says whether it still holds them. Moving a page can synchronise a
//!    translation page, which reports dead pages, also of this very victim; the list is not
//!    affected (GeckoFTL's paper is silent on this).
//! 4. Each live page is copied to the next page of a stream and its new place recorded. A store
//!    that outlives power loss is told that the old copy is dead, as it was of superseded pages
//!    found in 3: if power goes before the block is erased, nothing else would say so once the new
//!    place is on flash and the store was flushed.
//! 5. If the page programmed last is one of host data, the mapping may program a page, so that it
//!    is not: what it superseded may go with the block.
//! 6. Trims that forgot a version in the block are kept, if flash does not say so yet
//!    ([`crate::mapping::trims`]).
//! 7. A page of the store that is alone in its block is copied, if this is a block of metadata.
//! 8. The block is erased, then the validity store is told.
//!
//! Power loss before step 8 leaves two copies of a page, of which the one with the larger sequence
//! number counts; power loss between erase and report leaves a block without live pages.

use super::choose::{Decision, Need};
use super::{Core, Lpn, Mapping, Nand, NandError, Origin, PageFtl, Purpose, Validity};
use crate::contract::FtlError;
use crate::engine::read_only::unless_short;
use crate::mapping::is_page;
use crate::placement::Stream;
use crate::space::blocks::BlockState;
use crate::space::deaths::Was;
use alloc::vec::Vec;
use nand::{BlockId, Flags, PageKind, Ppn, Spare};

/// Free blocks that a page of metadata programmed by a mount finds at least.
pub(super) const ROOM: u32 = 2;

/// Free blocks with which so many pages can be copied: each copy may begin a block of its own, in a
/// lane of its own, and one program may fail.
pub(super) fn room_for(copies: usize) -> u32 {
    ROOM.max(1 + copies as u32)
}

/// What a collection is for: the purpose of moving pages of a kind, and of erasing their blocks.
const fn purpose_of(kind: PageKind) -> Purpose {
    match kind {
        PageKind::User => Purpose::Gc,
        PageKind::Translation => Purpose::TranslationGc,
        PageKind::Validity | PageKind::Checkpoint => Purpose::ValidityGc,
    }
}

/// What the pages of a block that are not known to be dead say.
struct Seen {
    /// How often the block had been erased; 0 if no page says so.
    erase_count: u32,
    /// A page could not be read.
    unreadable: bool,
    /// A page reads as erased.
    erased: bool,
    /// Pages that the mapping leads away from.
    stale: u32,
}

/// What is known of a page whose spare area cannot be read.
const fn unread(kind: PageKind, tag: u32) -> Spare {
    Spare { kind, tag, seq: 0, erase_count: 0, erased_at: 0, aux: 0, flags: Flags::NONE }
}

impl<N: Nand, M: Mapping, V: Validity> PageFtl<N, M, V> {
    /// Collects until enough blocks are free.
    #[inline(never)]
    pub(super) fn make_space(&mut self) -> Result<(), FtlError> {
        self.collect_until_enough(Need::Now)
    }

    /// Collects until enough blocks are free.
    ///
    /// # Errors
    /// [`FtlError::NoSpace`] if that cannot be, and those of the device.
    pub(super) fn collect_until_enough(&mut self, need: Need) -> Result<(), FtlError> {
        let mut left = 4 * self.core.space.geometry().blocks();
        while self.core.space.free_blocks() < self.reserve_blocks {
            left -= 1;
            let collected = self.gain(need)?;
            if left == 0 || !collected {
                return Err(self.core.no_space());
            }
        }
        Ok(())
    }

    /// Collects one block; `false` if no block has anything to gain.
    pub(super) fn gain(&mut self, need: Need) -> Result<bool, FtlError> {
        let mut unpinned = false;
        loop {
            match self.decide(need, unpinned) {
                Decision::Collect(block) => return self.collect(block).map(|()| true),
                Decision::Unpin => {
                    debug_assert!(!unpinned, "nothing was unpinned that keeps a block");
                    self.unpin()?;
                    unpinned = true;
                }
                Decision::Reveal => {
                    if !self.change(|mapping, core| mapping.reveal(core))? {
                        return Ok(false);
                    }
                }
                Decision::Wait => return Ok(false),
            }
        }
    }

    /// Makes every report durable, so that no old translation page is needed any more. A host that
    /// only fills the disk reports nothing, so waiting for the store to flush by itself could last
    /// for ever.
    pub(super) fn unpin(&mut self) -> Result<(), FtlError> {
        self.validity.flush(&mut self.core)?;
        self.pins.clear();
        Ok(())
    }

    /// Erases blocks in which nothing lives while blocks are short. Nothing is moved: for a mount
    /// that has not settled yet which pages can be trusted.
    pub(super) fn free_dead_blocks(&mut self) -> Result<(), FtlError> {
        self.free_dead(|_, _| true)
    }

    /// As [`PageFtl::free_dead_blocks`], for some blocks, by what they are and hold.
    pub(super) fn free_dead(&mut self, wanted: impl Fn(BlockId, PageKind) -> bool) -> Result<(), FtlError> {
        self.free_dead_until(self.reserve_blocks, wanted)
    }

    /// As [`PageFtl::free_dead`], while fewer blocks than this are free.
    pub(super) fn free_dead_until(
        &mut self,
        free_blocks: u32,
        wanted: impl Fn(BlockId, PageKind) -> bool,
    ) -> Result<(), FtlError> {
        for block in (0..self.core.space.geometry().blocks()).map(BlockId) {
            if self.core.space.free_blocks() >= free_blocks {
                break;
            }
            let wanted = self.core.space.is_dead(block) && wanted(block, self.core.space.kind(block));
            if wanted && !self.pins.holds(block, self.validity.flushes()) {
                self.collect(block)?;
            }
        }
        Ok(())
    }

    /// Sees to it that a page of metadata can be programmed, without moving host data: for a mount
    /// that has not settled yet which pages of it can be trusted.
    pub(super) fn make_room(&mut self) -> Result<(), FtlError> {
        if self.core.space.free_blocks() >= ROOM {
            return Ok(());
        }
        self.tell()?;
        self.free_dead_blocks()?;
        if self.core.space.free_blocks() >= ROOM {
            return Ok(());
        }
        self.gain(Need::Unsettled).map(drop)
    }

    /// Collects the blocks of which a page may read otherwise another time. A block that is being
    /// filled was erased since: no mount continues a block.
    #[cold]
    #[inline(never)]
    pub(super) fn collect_fickle(&mut self) -> Result<(), FtlError> {
        for index in 0..self.fickle.len() {
            let block = self.fickle[index];
            if self.core.space.state(block) == BlockState::Closed {
                self.make_space()?;
            }
            if self.core.space.state(block) == BlockState::Closed {
                self.collect(block)?;
            }
        }
        self.fickle.clear();
        Ok(())
    }

    pub(super) fn collect(&mut self, victim: BlockId) -> Result<(), FtlError> {
        self.collect_for(victim, purpose_of(self.core.space.kind(victim)))
    }

    /// Empties and erases a block for a purpose.
    pub(super) fn collect_for(&mut self, victim: BlockId, purpose: Purpose) -> Result<(), FtlError> {
        // Of a block that was erased when it was opened, the store knows only what was there
        // before.
        self.tell()?;
        self.core.space.begin_collecting(victim);
        debug_assert!(self.core.newly_erased.iter().all(|(block, _)| *block != victim), "{victim} is not reported yet");
        self.live.clear();
        self.moved = 0;
        let emptied = self.empty(victim, purpose);
        self.core.flash.join();
        let emptied = emptied.and_then(|erase_count| self.follow_up(victim).map(|()| erase_count));
        let outcome = match emptied {
            Ok(erase_count) => self.release(victim, erase_count, purpose),
            Err(error) => {
                self.core.space.cancel_collecting(victim);
                Err(error)
            }
        };
        match outcome {
            // A store that outlives power loss was told of each move.
            Err(_) if self.validity.is_buffered() => {}
            Err(FtlError::Nand(NandError::PowerLost)) => self.unreported = true,
            Err(_) => self.report_moved()?,
            Ok(()) => {}
        }
        outcome
    }

    /// What the page programmed last superseded may lie in a block that is to be erased. If that
    /// page could not be read after power loss, a mount would take it for torn, and what it
    /// superseded for what is left: so it must not be the last.
    fn follow_up(&mut self, victim: BlockId) -> Result<(), FtlError> {
        if !self.core.host_last || self.core.space.kind(victim) != PageKind::User {
            return Ok(());
        }
        self.change(|mapping, core| mapping.follow_up(core))
    }

    /// Reports what a collection moved before it was cut short: pages that would otherwise have
    /// gone with their block.
    #[cold]
    pub(super) fn report_moved(&mut self) -> Result<(), FtlError> {
        for index in 0..self.live.len().min(self.moved + 1) {
            let Origin { ppn, spare } = self.live[index];
            if self.core.space.state(self.core.space.geometry().block_of(ppn)) != BlockState::Closed {
                // The block is erased, only the store could not be told: it is before a page in it
                // can die.
                break;
            }
            // Of the move that failed only the mapping knows how far it came.
            let half_way = index == self.moved;
            let gone = !half_way
                || match spare.kind {
                    PageKind::User => {
                        let at = self.mapping.hint(Lpn(spare.tag));
                        at.is_some() && at != ppn
                    }
                    PageKind::Translation => !self.mapping.owns(ppn, &spare),
                    PageKind::Validity | PageKind::Checkpoint => !self.validity.owns(ppn, &spare),
                };
            if gone && half_way {
                self.core.space.page_died(ppn);
            }
            if gone && (spare.kind == PageKind::User || self.validity.tracks_metadata()) {
                self.validity.invalidate(&mut self.core, ppn)?;
            }
        }
        self.unreported = false;
        Ok(())
    }

    /// Moves every live page out of a block; answers how often the block had been erased.
    fn empty(&mut self, victim: BlockId, purpose: Purpose) -> Result<u32, FtlError> {
        let kind = self.core.space.kind(victim);
        self.dead.clear();
        if self.core.space.valid(victim) == 0 {
            return Ok(self.wear_of(victim).map_or(0, |(erase_count, _)| erase_count));
        }
        if kind == PageKind::User || self.validity.tracks_metadata() {
            self.validity.query(&mut self.core, victim, &mut self.dead)?;
        }
        let erase_count = self.find_live(victim, kind, purpose)?;
        debug_assert!(self.live.len() as u32 <= self.core.space.geometry().pages_per_block());
        let apart = self.mapping.moves_apart();
        while let Some(&origin) = self.live.get(self.moved) {
            if apart {
                self.core.flash.branch();
            }
            // By what the page says: a mount can take a block of which little can be read for
            // another kind.
            match origin.spare.kind {
                PageKind::User => self.move_host_page(purpose, &origin)?,
                PageKind::Translation => {
                    self.change(|mapping, core| mapping.move_page(core, origin, purpose))?;
                }
                PageKind::Validity | PageKind::Checkpoint => {
                    let (to, spare) = self.core.move_metadata_page(purpose, origin)?;
                    self.validity.moved(origin.ppn, to, &spare);
                    self.core.space.page_died(origin.ppn);
                }
            }
            self.moved += 1;
        }
        Ok(erase_count)
    }

    /// Lists the live pages of a block, before any of them moves; answers how often the block had
    /// been erased.
    fn find_live(&mut self, victim: BlockId, kind: PageKind, purpose: Purpose) -> Result<u32, FtlError> {
        debug_assert!(self.live.is_empty() && self.moved == 0, "pages of another block are being moved");
        debug_assert!(self.core.space.state(victim) == BlockState::Collecting);
        let valid = self.core.space.valid(victim);
        let mut live = core::mem::take(&mut self.live);
        let seen = self.look_at_pages(victim, kind, purpose, &mut live);
        debug_assert!(self.live.is_empty(), "pages of another block were listed meanwhile");
        self.live = live;
        let Seen { erase_count, unreadable, erased, stale } = seen?;
        // Half an erase can leave a page that an entry leads to reading as erased. Erased pages
        // alone do not say so: a lane's first block begins behind some, and one that was closed
        // before it was full ends before some.
        let missing = erased && self.live.len() as u32 + stale < valid;
        if (unreadable || missing) && self.heal.is_none() {
            self.keep_metadata(victim)?;
        }
        if (unreadable || missing) && kind == PageKind::User {
            self.find_lost(victim)?;
        }
        if erase_count == 0 {
            return Ok(self.wear_of(victim).map_or(0, |(erase_count, _)| erase_count));
        }
        Ok(erase_count)
    }

    /// Lists those pages of a block that live by what their spare areas and the mapping say.
    ///
    /// The spare area comes with the page that is read to be moved; only a page that turns out not
    /// to live costs a read of its spare area alone, and where the store cannot know, every page
    /// does.
    fn look_at_pages(
        &mut self,
        victim: BlockId,
        kind: PageKind,
        purpose: Purpose,
        live: &mut Vec<Origin>,
    ) -> Result<Seen, FtlError> {
        let geometry = *self.core.space.geometry();
        let asks = self.mapping.is_lazy() || (kind != PageKind::User && !self.validity.tracks_metadata());
        let mut seen = Seen { erase_count: 0, unreadable: false, erased: false, stale: 0 };
        let mut next = 0;
        while let Some(offset) = self.dead.next_outside(next) {
            next = offset + 1;
            let ppn = geometry.page_at(victim, offset);
            self.core.flash.branch();
            let spare =
                if asks { self.core.flash.read_spare(purpose, ppn) } else { self.core.flash.spare_of_read(ppn) };
            let spare = match spare {
                Ok(Some(spare)) => spare,
                Ok(None) => {
                    seen.erased = true;
                    continue;
                }
                Err(NandError::Uncorrectable { .. }) => {
                    seen.unreadable = true;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            seen.erase_count = spare.erase_count;
            let lives = match spare.kind {
                // A tag beyond the disk is of an image that contradicts itself, and in a block of
                // metadata nobody wrote it.
                PageKind::User if spare.tag >= self.logical_pages || kind != PageKind::User => false,
                PageKind::User => {
                    let lpn = Lpn(spare.tag);
                    let superseded = self.mapping.superseded(lpn, ppn)
                        || !self.fickle.is_empty() && self.is_shown_again(lpn, ppn)?;
                    seen.stale += u32::from(superseded);
                    if superseded && self.validity.is_buffered() {
                        self.page_died(ppn)?;
                    }
                    !superseded
                }
                PageKind::Translation => self.mapping.owns(ppn, &spare),
                PageKind::Validity | PageKind::Checkpoint => self.validity.owns(ppn, &spare),
            };
            if lives {
                live.push(Origin { ppn, spare });
            }
        }
        self.core.flash.join();
        Ok(seen)
    }

    /// Whether the table leads elsewhere although the store counts a page as live: nothing of it
    /// could be read when its translation page was written anew, and then nobody reported it.
    #[cold]
    fn is_shown_again(&mut self, lpn: Lpn, ppn: Ppn) -> Result<bool, FtlError> {
        if !self.fickle.contains(&self.core.space.geometry().block_of(ppn)) {
            return Ok(false);
        }
        Ok(self.change(|mapping, core| mapping.lookup(core, lpn))? != ppn)
    }

    /// Refuses to empty a block if the table or the store leads to a page in it of which nothing
    /// can be read, unless RAM has all that was in the page. Erased, it would leave an older
    /// version for the next mount, and something else in its place until then. A mount takes a
    /// block of which nothing can be read for one of host data.
    #[cold]
    fn keep_metadata(&mut self, victim: BlockId) -> Result<(), FtlError> {
        let geometry = *self.core.space.geometry();
        let is_missed = |live: &[Origin], ppn: Ppn| {
            is_page(ppn) && geometry.block_of(ppn) == victim && live.iter().all(|origin| origin.ppn != ppn)
        };
        while let Some((ppn, tag)) = self.mapping.find_rewritable(|ppn| is_missed(&self.live, ppn)) {
            self.live.push(Origin { ppn, spare: unread(PageKind::Translation, tag) });
        }
        let is_missed = |ppn| is_missed(&self.live, ppn);
        let of_table = self.mapping.find_own(self.core.flash.nand_mut(), is_missed)?;
        match of_table.or_else(|| self.validity.find_own(is_missed)) {
            Some(ppn) => Err(NandError::Uncorrectable { ppn }.into()),
            None => Ok(()),
        }
    }

    /// Lists the pages of a block whose spare area does not say any more whose they are: the
    /// mapping does. Left out, they would stay mapped to a page that soon holds something else.
    /// Rare, slow, and the only step of a collection that allocates.
    #[cold]
    fn find_lost(&mut self, victim: BlockId) -> Result<(), FtlError> {
        let geometry = *self.core.space.geometry();
        let table = match self.mapping.dump(self.core.flash.nand_mut()) {
            Ok(table) => table,
            Err(error) if self.heal.is_some() => return Err(error),
            // Entries of a translation page that cannot be read lead nowhere anyway.
            Err(_) => return Ok(()),
        };
        for (tag, ppn) in (0..).zip(table).filter(|(_, ppn)| is_page(*ppn) && geometry.block_of(*ppn) == victim) {
            if !self.live.iter().any(|origin| origin.ppn == ppn) {
                debug_assert!(tag < self.logical_pages);
                self.live.push(Origin { ppn, spare: unread(PageKind::User, tag) });
            }
        }
        for offset in 0..geometry.pages_per_block() {
            if self.dead.contains(offset) {
                continue;
            }
            // One that is a before-image goes with the block too: reported later, it would be what
            // is written there next.
            let before = geometry.page_at(victim, offset);
            for lpn in (0..self.logical_pages).map(Lpn) {
                if self.mapping.will_report(self.core.flash.nand_mut(), lpn, before)?
                    && self.mapping.superseded(lpn, before)
                    && self.validity.is_buffered()
                {
                    self.page_died(before)?;
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn move_host_page(&mut self, purpose: Purpose, origin: &Origin) -> Result<(), FtlError> {
        let lpn = Lpn(origin.spare.tag);
        debug_assert!(lpn.0 < self.logical_pages, "{lpn} is moved and lies outside the disk");
        let stream = self.stream_of_moved(purpose, origin);
        if let Some(bank) = self.home {
            self.core.space.aim(bank);
        }
        match self.core.move_host_page(purpose, stream, origin) {
            Ok(to) => {
                self.placing.placed(stream, || self.core.space.geometry().block_of(to));
                self.record_new(lpn, to, |ftl| ftl.record_move(lpn, origin.ppn, to))?;
            }
            Err(error) => self.not_moved((purpose, stream), origin, error)?,
        }
        self.core.space.page_died(origin.ppn);
        Ok(())
    }

    /// A page of host data could not be moved. If nothing can be read of it, it is lost, and a page
    /// without contents says so: an entry alone could not, once its translation page is worn too.
    #[cold]
    fn not_moved(
        &mut self,
        (purpose, stream): (Purpose, Stream),
        origin: &Origin,
        error: FtlError,
    ) -> Result<(), FtlError> {
        let (lpn, from) = (Lpn(origin.spare.tag), origin.ppn);
        match error {
            FtlError::Nand(NandError::Uncorrectable { ppn } | NandError::Erased { ppn }) if ppn == from => {}
            error => return Err(error),
        }
        // A torn page can look alive: its spare area may read only now and then, so that nobody
        // reported it.
        if self.change(|mapping, core| mapping.lookup(core, lpn))? != from {
            return Ok(());
        }
        let to = self.core.program_lost(purpose, stream, origin)?;
        self.placing.placed(stream, || self.core.space.geometry().block_of(to));
        self.record_new(lpn, to, |ftl| ftl.record_move(lpn, from, to))
    }

    /// Has an entry lead to a page of host data that was just programmed, by `record`. If that
    /// fails first, the page is given up: nothing may take it for the present copy.
    #[inline]
    pub(super) fn record_new(
        &mut self,
        lpn: Lpn,
        new: Ppn,
        record: impl FnOnce(&mut Self) -> Result<(), FtlError>,
    ) -> Result<(), FtlError> {
        debug_assert!(self.core.space.valid(self.core.space.geometry().block_of(new)) > 0, "{new} was not programmed");
        let Err(error) = record(self) else { return Ok(()) };
        if self.mapping.hint(lpn) == new { Err(error) } else { self.give_up(lpn, new, error) }
    }

    #[inline]
    fn record_move(&mut self, lpn: Lpn, from: Ppn, to: Ppn) -> Result<(), FtlError> {
        self.catch_up()?;
        self.call(|mapping, core| mapping.moved(core, lpn, from, to))?;
        if self.validity.is_buffered()
            && let Err(error) = self.validity.invalidate(&mut self.core, from)
        {
            // It is counted when the move is done.
            self.core.deaths.note(from, Was::Uncounted, self.core.seq);
            return Err(error);
        }
        self.catch_up()
    }

    /// Copies a page of the store that is alone in its block. If that page could not be read, a
    /// mount would not know that the store misses one, and take an older state for the youngest. So
    /// what it made needless goes only when there are two.
    fn accompany(&mut self) -> Result<(), FtlError> {
        loop {
            let validity = &self.validity;
            let is_own = |ppn: &Ppn| validity.find_own(|own| own == *ppn).is_some();
            let Some(ppn) = self.core.space.alone(PageKind::Validity).find(is_own) else { return Ok(()) };
            let spare = self.core.flash.read_spare(Purpose::ValidityGc, ppn)?.ok_or(NandError::Erased { ppn })?;
            let (to, spare) = self.core.move_metadata_page(Purpose::ValidityGc, Origin { ppn, spare })?;
            self.validity.moved(ppn, to, &spare);
            self.core.space.page_died(ppn);
        }
    }

    /// Erases a block that was emptied, or retires it.
    fn release(&mut self, block: BlockId, erase_count: u32, purpose: Purpose) -> Result<(), FtlError> {
        if self.validity.is_buffered() && self.pins.holds(block, self.validity.flushes()) {
            self.unpin()?;
        }
        // Without a block for the map, power loss may undo trims.
        unless_short(self.keep_trims_of(block))?;
        if self.validity.is_buffered() && self.core.space.kind(block) != PageKind::User {
            self.accompany()?;
        }
        self.placing.emptied(block);
        let Core { flash, space, .. } = &mut self.core;
        let kind = space.kind(block);
        match flash.recycle(purpose, block, space.has_failed(block)) {
            Ok(true) => space.erased(block, erase_count.saturating_add(1)),
            Ok(false) => space.retired(block),
            Err(error) => {
                // What moved out of it can still be read.
                space.cancel_collecting(block);
                return Err(error.into());
            }
        }
        if kind == PageKind::User || self.validity.tracks_metadata() {
            self.core.newly_erased.push((block, self.core.seq));
            self.tell()?;
        }
        Ok(())
    }
}
