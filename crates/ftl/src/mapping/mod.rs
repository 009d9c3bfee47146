//! Mapping tables: where each logical page is.

pub(crate) mod bits;
pub mod block;
pub mod btree;
pub mod cached;
pub mod fused;
pub mod log_pages;
pub mod ram;
pub mod trims;

use crate::bound::Most;
use crate::contract::{FtlError, RamReport};
use crate::flash::Purpose;
use crate::inspect::Inspector;
use crate::placement::{Past, Stream};
use crate::saved::Sink;
use crate::space::core::{Core, Origin};
use alloc::string::String;
use alloc::vec::Vec;
use nand::{BlockId, Lpn, Nand, PageKind, Ppn, Spare};

/// In a mapping entry: the page's only copy was lost to an uncorrectable error.
pub const LOST: Ppn = Ppn(u32::MAX - 1);

/// Whether a mapping entry names a page of flash: neither [`Ppn::NONE`] nor [`LOST`].
#[inline]
#[must_use]
pub const fn is_page(ppn: Ppn) -> bool {
    ppn.0 < LOST.0
}

/// A mapping table. It notes which pages die ([`Core::page_died`]) and knows no validity store. The
/// engine tells the store after each call.
pub trait Mapping: Send {
    /// Whether superseded pages may be unknown to the validity store, so that a collector has to
    /// read the spare area of every page that the store believes to live and ask
    /// [`Mapping::superseded`].
    fn is_lazy(&self) -> bool {
        false
    }

    /// Where a logical page is: a page, [`Ppn::NONE`] if it was never written, or [`LOST`].
    ///
    /// # Errors
    /// Those of the device, if the table is in flash.
    fn lookup<N: Nand>(&mut self, core: &mut Core<N>, lpn: Lpn) -> Result<Ppn, FtlError>;

    /// As [`Mapping::lookup`], without programming anything: for a disk that can only be read.
    ///
    /// # Errors
    /// Those of the device, if the table is in flash.
    fn peek<N: Nand>(&mut self, core: &mut Core<N>, lpn: Lpn) -> Result<Ppn, FtlError>;

    /// A logical page was written to `ppn`, or trimmed ([`Ppn::NONE`]). The copy it had dies. The
    /// entry is cached if the table is in flash: [`Mapping::urgent`] says whether another has to
    /// leave for it.
    ///
    /// # Errors
    /// Those of the device, if the table is in flash.
    fn record<N: Nand>(&mut self, core: &mut Core<N>, lpn: Lpn, ppn: Ppn) -> Result<(), FtlError>;

    /// Forgets logical pages from `lpn` on, at most `count`; answers how many, 0 if the table first
    /// had to make room for it and must be asked again. What was forgotten stays so after power
    /// loss if the table is in flash; else once [`Mapping::keep_trims`] has left nothing to do.
    ///
    /// # Errors
    /// As [`Mapping::record`].
    fn forget<N: Nand>(&mut self, core: &mut Core<N>, lpn: Lpn, count: u32) -> Result<u32, FtlError> {
        let _ = count;
        if self.lookup(core, lpn)?.is_some() {
            self.record(core, lpn, Ppn::NONE)?;
        }
        Ok(1)
    }

    /// Whether something may have been forgotten that a power cut would bring back.
    fn has_unkept_trims(&self) -> bool {
        false
    }

    /// Whether something was.
    fn must_keep_trims(&self) -> bool {
        false
    }

    /// Whether a block may hold the last version of something forgotten that a power cut would
    /// bring back: it is to be erased only after that is kept.
    fn risks_trims(&self, block: BlockId) -> bool {
        let _ = block;
        false
    }

    /// How often [`Mapping::keep_trims`] programs a page before no block is at risk any more.
    fn risky_trim_pages(&self) -> u32 {
        0
    }

    /// Programs a page that keeps something forgotten from coming back, first what is at risk.
    ///
    /// # Errors
    /// As [`Mapping::record`].
    fn keep_trims<N: Nand>(&mut self, core: &mut Core<N>) -> Result<(), FtlError> {
        let _ = core;
        Ok(())
    }

    /// The most pages that [`Mapping::keep_trims`] holds live on flash.
    fn trim_pages(&self) -> u32 {
        0
    }

    /// The block with the live page `from` is being collected: the page is at `to` now, or
    /// [`LOST`].
    ///
    /// # Errors
    /// As [`Mapping::record`].
    fn moved<N: Nand>(&mut self, core: &mut Core<N>, lpn: Lpn, from: Ppn, to: Ppn) -> Result<(), FtlError>;

    /// Whether flash operations of one call of [`Mapping::moved`] or [`Mapping::move_page`], and of
    /// the maintenance that falls due with it, need nothing that those of another read or
    /// programmed, except pages that they read themselves; and whether recovery finds everything
    /// whichever of them power loss leaves undone, while the block that is collected is not erased.
    fn moves_apart(&self) -> bool {
        false
    }

    /// Whether a page in a block being collected, which the validity store believes to live, is
    /// known here to be superseded. The page goes with its block: the mapping must not report it
    /// dead afterwards.
    fn superseded(&mut self, lpn: Lpn, ppn: Ppn) -> bool;

    /// Whether a page that the table wrote, with this spare area, is part of it now. `true` in
    /// doubt: [`Mapping::move_page`] then finds out.
    fn owns(&self, ppn: Ppn, spare: &Spare) -> bool;

    /// A page of its own that the table leads to, among those that are `wanted`. Reads around the
    /// accounting. Slow.
    ///
    /// # Errors
    /// Those of the device.
    fn find_own<N: Nand>(&self, nand: &mut N, wanted: impl Fn(Ppn) -> bool) -> Result<Option<Ppn>, FtlError> {
        let _ = (nand, wanted);
        Ok(None)
    }

    /// A page of its own that RAM alone can write anew, among those that are `wanted`, and its tag.
    /// [`Mapping::move_page`] needs nothing of the old copy then.
    fn find_rewritable(&self, wanted: impl Fn(Ppn) -> bool) -> Option<(Ppn, u32)> {
        let _ = wanted;
        None
    }

    /// Moves a page of the table that it owns out of a block that is being collected; the old copy
    /// dies. Does nothing for a page that turns out to be superseded.
    ///
    /// # Errors
    /// As [`Mapping::record`].
    fn move_page<N: Nand>(&mut self, core: &mut Core<N>, origin: Origin, purpose: Purpose) -> Result<(), FtlError>;

    /// Whether [`Mapping::maintain`] has to be called before anything else: entries have to leave
    /// the cache, or be on flash.
    fn urgent(&self) -> bool {
        false
    }

    /// Whether [`Mapping::maintain`] has something to do.
    fn due(&self) -> bool;

    /// Does a piece of due work; whether to call again before space is looked after. Such calls
    /// make at most [`Mapping::reserve_pages`] programs together.
    ///
    /// # Errors
    /// As [`Mapping::record`].
    fn maintain<N: Nand>(&mut self, core: &mut Core<N>) -> Result<bool, FtlError>;

    /// A block of host data is about to be erased, and the page programmed last is one of host
    /// data. If that is the only page which says where its logical page is, and recovery has to
    /// tell whether it is the last, programs a page of the table.
    ///
    /// # Errors
    /// As [`Mapping::record`].
    fn follow_up<N: Nand>(&mut self, core: &mut Core<N>) -> Result<(), FtlError> {
        let _ = core;
        Ok(())
    }

    /// Finds superseded pages that the validity store does not know of yet; `false` if there is
    /// none.
    ///
    /// # Errors
    /// As [`Mapping::record`].
    fn reveal<N: Nand>(&mut self, core: &mut Core<N>) -> Result<bool, FtlError>;

    /// Why no disk can have this mapping as it was set up, if none can.
    fn refusal(&self) -> Option<String> {
        None
    }

    /// The most pages that one call may program.
    fn reserve_pages(&self) -> u32;

    /// The most pages it holds live on flash.
    fn footprint_pages(&self) -> u32;

    /// The most that it does while entries of `updates` pages change in one request and so many
    /// blocks are collected, the work among it that falls due meanwhile.
    fn most_work(&self, updates: u64, collections: u64) -> Most;

    /// The most pages that it reports dead between two chances to collect garbage, also while a
    /// block is collected, beside two for each page that [`Mapping::forget`] is told of.
    fn reports(&self) -> u32;

    /// The most pages of host data that die in one call.
    fn most_deaths(&self) -> u32;

    /// The most bytes that [`Mapping::save`] puts while a battery lasts.
    fn saved_bytes(&self) -> u64 {
        0
    }

    /// The most pages that [`Mapping::disown`] programs while a battery lasts.
    fn disowning_pages(&self) -> u32 {
        0
    }

    /// Power is failing, and a page was programmed that nothing leads to, perhaps not to its end:
    /// one of the table with this tag, or one of host data with this logical page. Programs what
    /// outranks it, so that no mount ever takes it for the present one.
    ///
    /// # Errors
    /// As [`Mapping::record`].
    fn disown<N: Nand>(&mut self, core: &mut Core<N>, kind: PageKind, tag: u32) -> Result<(), FtlError> {
        let _ = (core, kind, tag);
        Ok(())
    }

    /// Puts what is only in RAM, while a battery lasts; perhaps after an operation that failed
    /// half-way.
    ///
    /// # Errors
    /// Those of the sink.
    fn save(&self, sink: &mut dyn Sink) -> Result<(), FtlError> {
        let _ = sink;
        Ok(())
    }

    /// Whether the table keeps the past of pages ([`Mapping::past`]).
    fn keeps_pasts(&self) -> bool {
        false
    }

    /// What the table keeps of the last write of a logical page by the host, if it keeps that and
    /// there was one. Reads the page's entry into the cache, so that what it costs is spared when
    /// the page is recorded.
    ///
    /// # Errors
    /// As [`Mapping::lookup`].
    fn past<N: Nand>(&mut self, core: &mut Core<N>, lpn: Lpn) -> Result<Option<Past>, FtlError> {
        let _ = (core, lpn);
        Ok(None)
    }

    /// As [`Mapping::past`], as far as it costs nothing.
    fn known_past<N: Nand>(&self, core: &Core<N>, lpn: Lpn) -> Option<Past> {
        let _ = (core, lpn);
        None
    }

    /// The host has written a page, recorded just now, that went to this stream.
    fn keep_past<N: Nand>(&mut self, core: &Core<N>, lpn: Lpn, stream: Stream) {
        let _ = (core, lpn, stream);
    }

    /// Brings near what a write of this page will need, and says where the page is if that costs
    /// nothing. It costs nothing while [`Mapping::record`] or [`Mapping::moved`] of this page was
    /// the last thing to be done, even if it failed after the entry was changed.
    fn hint(&self, lpn: Lpn) -> Ppn;

    /// The whole table, read around the accounting. For checks.
    ///
    /// # Errors
    /// Those of the device.
    fn dump<N: Nand>(&self, nand: &mut N) -> Result<Vec<Ppn>, FtlError>;

    /// Whether a page that held a logical page before will be reported dead when its entry is
    /// synchronised. Reads around the accounting: for checks, and for pages whose spare area cannot
    /// be read.
    ///
    /// # Errors
    /// Those of the device.
    fn will_report<N: Nand>(&self, nand: &mut N, lpn: Lpn, before: Ppn) -> Result<bool, FtlError> {
        let _ = (nand, lpn, before);
        Ok(false)
    }

    /// Shows its cache and where its pages are, as far as RAM knows.
    fn inspect(&self, inspector: &mut dyn Inspector) {
        let _ = inspector;
    }

    /// The RAM that its structures hold.
    fn ram(&self, report: &mut RamReport);
}
