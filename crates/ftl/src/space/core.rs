//! Flash and space together: programming the next page of a stream, whatever fails.

use super::age::{age, aged};
use super::blocks::{Slot, Space};
use super::deaths::{Deaths, Was};
use crate::contract::{FtlError, Shortage};
use crate::flash::{Flash, Purpose};
use crate::placement::Stream;
use crate::validity::MetaStore;
use alloc::vec::Vec;
use nand::{BlockId, Flags, Lpn, MetaPage, Nand, NandError, PageKind, Ppn, Spare};

/// A device, the state of its blocks, and the order of its programs.
pub struct Core<N> {
    /// The device behind its accounting layer.
    pub flash: Flash<N>,
    /// The state of its blocks.
    pub space: Space,
    /// The sequence number that the next program carries.
    pub seq: u64,
    /// The page programmed last is one of host data, as far as is known since the disk was
    /// formatted or mounted.
    pub host_last: bool,
    /// The page whose program was cut short, if that was the last thing to happen, with what its
    /// spare area was to say. It may hold something, and nothing in RAM knows of it.
    pub interrupted: Option<Origin>,
    /// The program under way, or one that came to nothing and was the last: what it left may read
    /// well, and nothing in RAM knows of it.
    pub unfinished: Option<Unfinished>,
    /// Power loss has left pages in doubt, and it is not settled yet which of them count. No page
    /// older than the one with this sequence number, the newest of a disk in use, is in doubt. What
    /// is programmed until then says so, and by how much it is younger than that page, or than the
    /// page of which it is a copy.
    pub settling: Option<u64>,
    /// Blocks that were erased only when they were opened, of which the validity store has to be
    /// told, with the sequence number that the next program was to carry then.
    pub newly_erased: Vec<(BlockId, u64)>,
    /// Pages that died, of which the validity store has to be told. One whose program failed may
    /// read well.
    pub deaths: Deaths,
    /// Good blocks that a disk of this size needs.
    needed: u32,
    /// A page could not be programmed for want of a block: nothing is written any more.
    starved: bool,
}

/// Blocks that may be opened before the validity store is told without growing the list of them.
const NEWLY_ERASED: usize = 64;

/// A program that has not worked yet.
#[derive(Clone, Copy, Debug)]
pub struct Unfinished {
    /// Sequence number of the first attempt.
    pub first: u64,
    /// What the page is to hold.
    pub kind: PageKind,
    /// Its tag.
    pub tag: u32,
}

/// Where a page came from and what it is: what a move keeps.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// The page to move.
    pub ppn: Ppn,
    /// Its spare area.
    pub spare: Spare,
}

impl<N: Nand> Core<N> {
    /// A device of which nothing has been written since it was formatted or mounted.
    /// It needs so many good blocks, and `deaths` has room for what may be noted at a time.
    pub fn new(flash: Flash<N>, space: Space, deaths: Deaths, needed: u32) -> Self {
        let newly_erased = Vec::with_capacity(NEWLY_ERASED);
        Self {
            flash,
            space,
            seq: 1,
            host_last: false,
            interrupted: None,
            unfinished: None,
            settling: None,
            newly_erased,
            deaths,
            needed,
            starved: false,
        }
    }

    /// Nothing is left to collect: the disk can only be read from now on.
    #[cold]
    pub fn no_space(&mut self) -> FtlError {
        self.starved = true;
        self.shortage().into()
    }

    /// Whether the disk can only be read.
    #[inline]
    pub const fn is_starved(&self) -> bool {
        self.starved
    }

    /// How many blocks there are, and how many there would have to be.
    pub fn shortage(&self) -> Shortage {
        let Self { space, needed, .. } = self;
        let bad_blocks = space.bad_blocks() + space.failed_blocks();
        Shortage { bad_blocks, blocks: space.geometry().blocks(), needed: *needed }
    }

    #[inline]
    fn spare(&mut self, slot: Slot, kind: PageKind, tag: u32, aux: u32) -> Spare {
        debug_assert!(self.space.may_hold(slot.ppn, kind), "{} is of a block for something else", slot.ppn);
        let seq = self.seq;
        self.seq += 1;
        Spare { kind, tag, seq, erase_count: slot.erase_count, erased_at: slot.erased_at, aux, flags: Flags::NONE }
    }

    #[inline]
    fn begin(&mut self, kind: PageKind, tag: u32) {
        self.unfinished = Some(Unfinished { first: self.seq, kind, tag });
    }

    /// Erases the block of a page that is its first, if nobody saw the block being erased; `false`
    /// if the block is unusable.
    #[cold]
    fn erase_first(&mut self, slot: Slot) -> Result<bool, FtlError> {
        let block = self.space.geometry().block_of(slot.ppn);
        debug_assert!(
            slot.erase_first && slot.ppn == self.space.geometry().page_at(block, 0),
            "{} is no first page",
            slot.ppn
        );
        debug_assert!(self.space.valid(block) == 0, "{block} is erased while pages in it live");
        match self.flash.erase_or_retire(Purpose::Recovery, block) {
            Ok(true) => {
                debug_assert!(self.newly_erased.last().is_none_or(|(_, seq)| *seq <= self.seq));
                debug_assert!(self.newly_erased.iter().all(|(erased, _)| *erased != block), "{block} was erased twice");
                self.newly_erased.push((block, self.seq));
                let geometry = *self.space.geometry();
                self.deaths.erased(|ppn| geometry.block_of(ppn) == block);
                Ok(true)
            }
            Ok(false) => {
                // Nothing lives in it, and the validity store does not know of what can be read.
                self.space.stop_filling(block);
                self.space.begin_collecting(block);
                self.space.retired(block);
                Ok(false)
            }
            Err(error) => {
                // Its first page was handed out, and a mount takes a block whose first page reads
                // as erased for an empty one.
                self.space.stop_filling(block);
                Err(error.into())
            }
        }
    }

    /// A page of host data died.
    #[inline]
    pub fn page_died(&mut self, ppn: Ppn) {
        self.deaths.note(ppn, Was::Host, self.seq);
    }

    /// A translation page was replaced; the old one may still be needed by recovery.
    pub fn translation_page_died(&mut self, ppn: Ppn) {
        self.deaths.note(ppn, Was::Translation, self.seq);
    }

    /// A page of metadata was replaced that recovery has no more use for.
    pub fn metadata_died(&mut self, ppn: Ppn) {
        debug_assert!(!self.space.may_hold(ppn, PageKind::User), "{ppn} is host data");
        self.deaths.note(ppn, Was::Metadata, self.seq);
    }

    /// The next page of a stream of host data, ready to be programmed.
    #[inline]
    fn host_slot(&mut self, stream: Stream) -> Result<Slot, FtlError> {
        loop {
            let Some(slot) = self.space.next_host_page(stream) else { return Err(self.no_space()) };
            if !slot.erase_first || self.erase_first(slot)? {
                return Ok(slot);
            }
        }
    }

    fn metadata_slot(&mut self, kind: PageKind) -> Result<Slot, FtlError> {
        loop {
            let Some(slot) = self.space.next_metadata_page(kind) else { return Err(self.no_space()) };
            if !slot.erase_first || self.erase_first(slot)? {
                return Ok(slot);
            }
        }
    }

    /// Books the outcome of a program: `Some(page)` if it worked, `None` if another page has to be
    /// tried.
    #[inline]
    fn book(&mut self, slot: Slot, spare: &Spare, outcome: Result<(), NandError>) -> Result<Option<Ppn>, FtlError> {
        debug_assert!(spare.seq + 1 == self.seq, "a program since this one began");
        match outcome {
            Ok(()) => {
                self.unfinished = None;
                self.host_last = spare.kind == PageKind::User;
                self.space.page_born(slot.ppn);
                Ok(Some(slot.ppn))
            }
            Err(NandError::ProgramFailed { ppn }) => {
                debug_assert_eq!(ppn, slot.ppn);
                if spare.kind == PageKind::User {
                    self.deaths.note(ppn, Was::Uncounted, spare.seq);
                }
                self.space.abandon(self.space.geometry().block_of(ppn));
                Ok(None)
            }
            Err(error) => {
                match error {
                    NandError::PowerLost => self.interrupted = Some(Origin { ppn: slot.ppn, spare: *spare }),
                    // The page to be copied: nothing was programmed.
                    NandError::Uncorrectable { .. } | NandError::Erased { .. } => self.space.give_back(slot.ppn),
                    _ => {}
                }
                Err(error.into())
            }
        }
    }

    /// Writes a page of host data to the next page of a stream. If a program fails, the page that
    /// is programmed instead says how much younger it is than the first: that one never counted,
    /// and is in doubt as long as this one is.
    ///
    /// # Errors
    /// Those of the device, except failed programs: another block is tried.
    #[inline]
    pub fn program(&mut self, stream: Stream, lpn: Lpn, data: &N::Payload) -> Result<Ppn, FtlError> {
        debug_assert!(lpn.is_some(), "host data of no logical page");
        let Some(slot) = self.space.next_host_page_within(stream) else {
            return self.program_anywhere(stream, lpn, data);
        };
        let spare = self.spare(slot, PageKind::User, lpn.0, 0);
        match self.flash.program(Purpose::Host, slot.ppn, data, &spare) {
            Ok(()) => Ok(self.programmed_within(slot)),
            Err(error) => {
                self.failed_within(slot, &spare, error)?;
                self.program_again(stream, lpn, data, spare.seq)
            }
        }
    }

    /// Books a program that worked at once, in a block that has pages left.
    #[inline]
    fn programmed_within(&mut self, slot: Slot) -> Ppn {
        self.unfinished = None;
        self.host_last = true;
        self.space.page_born_within(slot.ppn);
        slot.ppn
    }

    /// Books a program that failed at once; another page has to be tried if that is no error.
    #[cold]
    fn failed_within(&mut self, slot: Slot, spare: &Spare, error: NandError) -> Result<(), FtlError> {
        self.unfinished = Some(Unfinished { first: spare.seq, kind: spare.kind, tag: spare.tag });
        self.book(slot, spare, Err(error)).map(|page| debug_assert!(page.is_none()))
    }

    #[inline(never)]
    fn program_anywhere(&mut self, stream: Stream, lpn: Lpn, data: &N::Payload) -> Result<Ppn, FtlError> {
        let first = self.seq;
        self.begin(PageKind::User, lpn.0);
        self.program_again(stream, lpn, data, first)
    }

    #[inline(never)]
    fn program_again(&mut self, stream: Stream, lpn: Lpn, data: &N::Payload, first: u64) -> Result<Ppn, FtlError> {
        self.program_until_done(stream, lpn.0, first, |flash, to, spare| flash.program(Purpose::Host, to, data, spare))
    }

    /// Tries pages until one can be programmed. What is programmed was written, or tried first,
    /// with the sequence number `first`.
    fn program_until_done(
        &mut self,
        stream: Stream,
        tag: u32,
        first: u64,
        program: impl Fn(&mut Flash<N>, Ppn, &Spare) -> Result<(), NandError>,
    ) -> Result<Ppn, FtlError> {
        loop {
            let slot = self.host_slot(stream)?;
            let spare = self.spare(slot, PageKind::User, tag, age(self.seq, first));
            let outcome = program(&mut self.flash, slot.ppn, &spare);
            if let Some(ppn) = self.book(slot, &spare, outcome)? {
                return Ok(ppn);
            }
        }
    }

    /// Moves a page of host data to the next page of a stream. The old copy's count of live pages
    /// is left to the caller.
    ///
    /// # Errors
    /// [`NandError::Uncorrectable`] about `origin` if it cannot be read; else as [`Core::program`].
    #[inline]
    pub fn move_host_page(&mut self, purpose: Purpose, stream: Stream, origin: &Origin) -> Result<Ppn, FtlError> {
        debug_assert!(origin.spare.kind == PageKind::User, "{} holds metadata", origin.ppn);
        if self.settling.is_some() {
            return self.move_anywhere(purpose, stream, origin);
        }
        let Some(slot) = self.space.next_host_page_within(stream) else {
            return self.move_anywhere(purpose, stream, origin);
        };
        let spare = self.spare(slot, PageKind::User, origin.spare.tag, 0);
        match self.flash.copy(purpose, origin.ppn, slot.ppn, &spare) {
            Ok(()) => Ok(self.programmed_within(slot)),
            Err(error) => {
                self.failed_within(slot, &spare, error)?;
                self.move_again(purpose, stream, origin, spare.seq)
            }
        }
    }

    #[inline(never)]
    fn move_anywhere(&mut self, purpose: Purpose, stream: Stream, origin: &Origin) -> Result<Ppn, FtlError> {
        let first = self.begin_copy(origin);
        self.move_again(purpose, stream, origin, first)
    }

    /// Which sequence number a copy of a page, or what is programmed instead, counts its age from.
    fn begin_copy(&mut self, origin: &Origin) -> u64 {
        let first = if self.settling.is_some() { aged(&origin.spare) } else { self.seq };
        self.begin(PageKind::User, origin.spare.tag);
        first
    }

    #[inline(never)]
    fn move_again(&mut self, purpose: Purpose, stream: Stream, origin: &Origin, first: u64) -> Result<Ppn, FtlError> {
        self.program_until_done(stream, origin.spare.tag, first, |flash, to, spare| {
            debug_assert!(to != origin.ppn, "{to} is moved to where it is");
            flash.copy(purpose, origin.ppn, to, spare)
        })
    }

    /// Programs, instead of a copy of a page of host data that cannot be read, a page without
    /// contents: as metadata, with the spare area of a copy. A device tells the two apart
    /// ([`nand::Law::PageContent`]). So flash says that the logical page is lost before it loses
    /// the page that showed it, and no mount takes an older version for the present one.
    ///
    /// # Errors
    /// As [`Core::program`].
    #[cold]
    pub fn program_lost(&mut self, purpose: Purpose, stream: Stream, origin: &Origin) -> Result<Ppn, FtlError> {
        debug_assert!(origin.spare.kind == PageKind::User, "{} holds metadata", origin.ppn);
        let first = self.begin_copy(origin);
        self.program_until_done(stream, origin.spare.tag, first, |flash, to, spare| {
            flash.program_meta(purpose, to, &[], spare)
        })
    }

    /// Moves a page of metadata to the next page of its kind. Otherwise as
    /// [`Core::move_host_page`].
    ///
    /// # Errors
    /// As [`Core::move_host_page`].
    pub fn move_metadata_page(&mut self, purpose: Purpose, origin: Origin) -> Result<(Ppn, Spare), FtlError> {
        self.move_metadata_page_as(purpose, origin, |_| origin.spare.aux)
    }

    /// As [`Core::move_metadata_page`], with an auxiliary field that depends on the new sequence
    /// number.
    ///
    /// # Errors
    /// As [`Core::move_host_page`].
    pub fn move_metadata_page_as(
        &mut self,
        purpose: Purpose,
        origin: Origin,
        aux: impl Fn(u64) -> u32,
    ) -> Result<(Ppn, Spare), FtlError> {
        debug_assert!(origin.spare.kind != PageKind::User, "{} holds host data", origin.ppn);
        self.begin(origin.spare.kind, origin.spare.tag);
        loop {
            let slot = self.metadata_slot(origin.spare.kind)?;
            debug_assert!(slot.ppn != origin.ppn, "{} is moved to where it is", slot.ppn);
            let spare = self.spare(slot, origin.spare.kind, origin.spare.tag, aux(self.seq));
            let outcome = self.flash.copy(purpose, origin.ppn, slot.ppn, &spare);
            if let Some(ppn) = self.book(slot, &spare, outcome)? {
                return Ok((ppn, spare));
            }
        }
    }

    /// Writes a page of metadata to the next page of its kind.
    ///
    /// # Errors
    /// As [`Core::program`].
    pub fn program_metadata(
        &mut self,
        purpose: Purpose,
        kind: PageKind,
        tag: u32,
        aux: u32,
        data: &[u8],
    ) -> Result<Ppn, FtlError> {
        self.program_metadata_as(purpose, kind, tag, |_| aux, data)
    }

    /// As [`Core::program_metadata`], with an auxiliary field that depends on the sequence number.
    ///
    /// # Errors
    /// As [`Core::program`].
    pub fn program_metadata_as(
        &mut self,
        purpose: Purpose,
        kind: PageKind,
        tag: u32,
        aux: impl Fn(u64) -> u32,
        data: &[u8],
    ) -> Result<Ppn, FtlError> {
        debug_assert!(data.len() <= self.page_bytes());
        self.program_metadata_with(kind, tag, aux, |flash, to, spare| flash.program_meta(purpose, to, data, spare))
    }

    /// As [`Core::program_metadata_as`], of a buffer that the device may exchange for another:
    /// nothing is known of its contents afterwards.
    ///
    /// # Errors
    /// As [`Core::program`].
    pub fn program_metadata_page(
        &mut self,
        purpose: Purpose,
        kind: PageKind,
        tag: u32,
        aux: impl Fn(u64) -> u32,
        page: &mut MetaPage,
    ) -> Result<Ppn, FtlError> {
        debug_assert!(page.len() == self.page_bytes());
        self.program_metadata_with(kind, tag, aux, |flash, to, spare| flash.program_meta_page(purpose, to, page, spare))
    }

    /// Tries pages for metadata until one can be programmed.
    #[inline]
    fn program_metadata_with(
        &mut self,
        kind: PageKind,
        tag: u32,
        aux: impl Fn(u64) -> u32,
        mut program: impl FnMut(&mut Flash<N>, Ppn, &Spare) -> Result<(), NandError>,
    ) -> Result<Ppn, FtlError> {
        debug_assert!(kind != PageKind::User);
        self.begin(kind, tag);
        loop {
            let slot = self.metadata_slot(kind)?;
            let spare = self.spare(slot, kind, tag, aux(self.seq));
            let outcome = program(&mut self.flash, slot.ppn, &spare);
            if let Some(ppn) = self.book(slot, &spare, outcome)? {
                return Ok(ppn);
            }
        }
    }
}

impl<N: Nand> MetaStore for Core<N> {
    fn page_bytes(&self) -> usize {
        self.space.geometry().page_bytes() as usize
    }

    fn blocks(&self) -> u32 {
        self.space.geometry().blocks()
    }

    fn pages_per_block(&self) -> u32 {
        self.space.geometry().pages_per_block()
    }

    fn append(&mut self, purpose: Purpose, tag: u32, aux: u32, data: &[u8]) -> Result<Ppn, FtlError> {
        self.flash.join();
        self.program_metadata(purpose, PageKind::Validity, tag, aux, data)
    }

    fn fetch(&mut self, purpose: Purpose, ppn: Ppn, out: &mut [u8]) -> Result<Spare, FtlError> {
        self.flash.join();
        Ok(self.flash.read_meta(purpose, ppn, out)?)
    }

    fn discard(&mut self, ppn: Ppn) {
        self.space.page_died(ppn);
    }

    fn next_seq(&self) -> u64 {
        self.seq
    }

    fn reported_seq(&self) -> u64 {
        debug_assert!(self.newly_erased.iter().all(|(_, seq)| *seq <= self.seq));
        let erased = self.newly_erased.iter().map(|(_, seq)| *seq).min();
        erased.into_iter().chain(self.deaths.since()).min().unwrap_or(self.seq)
    }
}
