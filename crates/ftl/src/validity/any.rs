//! A page-validity store of which only its name is known, and what code is compiled for.

use super::ram_bitmap::{HoldsBitmap, RamBitmap};
use super::{AnyStore, MetaStore, PageSet, Receiver, Store, Validity, with};
use crate::bound::Most;
use crate::contract::{FtlError, RamReport};
use crate::inspect::Inspector;
use crate::saved::{Sink, Source};
use alloc::boxed::Box;
use nand::{BlockId, Ppn, Spare};

/// For which stores the code of FTLs is compiled.
pub trait Build: 'static {
    /// The bitmap with which a mount works.
    type Bitmap: HoldsBitmap + 'static;

    /// For FTLs of which a write takes so long that a branch for each call of the store does not
    /// count.
    type Slow: Build;

    /// Hands the store with this name to `receiver`; `None` if there is none. `Own` is that of the
    /// FTL, unless another is named.
    fn with<Own: Store, R: Receiver>(name: &str, receiver: R) -> Option<R::Output>;
}

/// For each FTL's own store, which is as fast as if it were the only one, and once for all others.
#[derive(Clone, Copy, Debug)]
pub struct Fast;

/// Once for all stores: less than half as much code, and a branch for each call of the store.
#[derive(Clone, Copy, Debug)]
pub struct Small;

impl Build for Fast {
    type Bitmap = RamBitmap;
    type Slow = Small;

    fn with<Own: Store, R: Receiver>(name: &str, receiver: R) -> Option<R::Output> {
        if name == Own::ENTRY.name { Some(receiver.receive::<Own>(Own::make)) } else { with(name, receiver) }
    }
}

impl Build for Small {
    type Bitmap = AnyStore;
    type Slow = Small;

    fn with<Own: Store, R: Receiver>(name: &str, receiver: R) -> Option<R::Output> {
        with(name, receiver)
    }
}

impl Validity for AnyStore {
    fn tracks_metadata(&self) -> bool {
        of_any!(self, store => store.tracks_metadata())
    }

    fn is_buffered(&self) -> bool {
        of_any!(self, store => store.is_buffered())
    }

    fn invalidate<S: MetaStore>(&mut self, meta: &mut S, ppn: Ppn) -> Result<(), FtlError> {
        of_any!(self, store => store.invalidate(meta, ppn))
    }

    fn erased<S: MetaStore>(&mut self, meta: &mut S, block: BlockId, seq: u64) -> Result<(), FtlError> {
        of_any!(self, store => store.erased(meta, block, seq))
    }

    fn fill<S: MetaStore>(&mut self, meta: &mut S, block: BlockId, dead: &PageSet) -> Result<(), FtlError> {
        of_any!(self, store => store.fill(meta, block, dead))
    }

    fn query<S: MetaStore>(&mut self, meta: &mut S, block: BlockId, dead: &mut PageSet) -> Result<(), FtlError> {
        of_any!(self, store => store.query(meta, block, dead))
    }

    fn owns(&self, ppn: Ppn, spare: &Spare) -> bool {
        of_any!(self, store => store.owns(ppn, spare))
    }

    fn find_own(&self, wanted: impl Fn(Ppn) -> bool) -> Option<Ppn> {
        of_any!(self, store => store.find_own(wanted))
    }

    fn moved(&mut self, from: Ppn, to: Ppn, spare: &Spare) {
        of_any!(self, store => store.moved(from, to, spare));
    }

    fn flush<S: MetaStore>(&mut self, meta: &mut S) -> Result<(), FtlError> {
        of_any!(self, store => store.flush(meta))
    }

    fn flushes(&self) -> u64 {
        of_any!(self, store => store.flushes())
    }

    fn reserve_pages(&self) -> u32 {
        of_any!(self, store => store.reserve_pages())
    }

    fn most_work(&self, reports: u64, erases: u64, flushes: u64) -> Most {
        of_any!(self, store => store.most_work(reports, erases, flushes))
    }

    fn most_query_reads(&self) -> u32 {
        of_any!(self, store => store.most_query_reads())
    }

    fn footprint_pages(&self) -> u32 {
        of_any!(self, store => store.footprint_pages())
    }

    fn saved_bytes(&self) -> u64 {
        of_any!(self, store => store.saved_bytes())
    }

    fn save(&self, sink: &mut dyn Sink) -> Result<(), FtlError> {
        of_any!(self, store => store.save(sink))
    }

    fn load(&mut self, source: &mut Source<'_>) -> bool {
        of_any!(self, store => store.load(source))
    }

    fn hint(&self, ppn: Ppn) {
        of_any!(self, store => store.hint(ppn));
    }

    fn inspect(&self, inspector: &mut dyn Inspector) {
        of_any!(self, store => store.inspect(inspector));
    }

    fn ram(&self, report: &mut RamReport) {
        of_any!(self, store => store.ram(report));
    }
}

impl HoldsBitmap for AnyStore {
    fn of_bitmap(bitmap: RamBitmap) -> Self {
        Self::RamBitmap(Box::new(bitmap))
    }

    fn bitmap(&self) -> &RamBitmap {
        match self {
            Self::RamBitmap(bitmap) => bitmap,
            _ => unreachable!("it was not made of a bitmap"),
        }
    }

    fn bitmap_mut(&mut self) -> &mut RamBitmap {
        match self {
            Self::RamBitmap(bitmap) => bitmap,
            _ => unreachable!("it was not made of a bitmap"),
        }
    }
}
