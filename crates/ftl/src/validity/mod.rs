//! Page-validity stores: which pages of a block are dead.
//!
//! A store is told of every page that dies and every block that is erased, and asked, before a
//! block is collected, which of its pages are dead. Stores can be exchanged under any page-mapped
//! FTL: the table has them by name.

mod check;
pub mod flash_bitmap;
pub mod gecko;
pub mod log;
pub mod ram_bitmap;

use crate::bound::Most;
use crate::config::{GeckoOptions, Setting};
use crate::contract::{FtlError, RamReport};
use crate::flash::Purpose;
use crate::inspect::Inspector;
use crate::saved::{Sink, Source};
use alloc::boxed::Box;
use alloc::vec::Vec;
use nand::{BlockId, Ppn, Spare};

/// What a flash-resident structure needs of the engine: pages of its own kind, written out of
/// place.
pub trait MetaStore {
    /// Bytes in a page.
    fn page_bytes(&self) -> usize;

    /// Blocks in the device.
    fn blocks(&self) -> u32;

    /// Pages in a block.
    fn pages_per_block(&self) -> u32;

    /// Programs `data` to a fresh page whose spare area carries `tag` and `aux`. Never collects
    /// garbage: the engine keeps as many blocks free as the store's `reserve_pages` asked for.
    ///
    /// # Errors
    /// Those of the device; the page is then not written and nothing else has changed.
    fn append(&mut self, purpose: Purpose, tag: u32, aux: u32, data: &[u8]) -> Result<Ppn, FtlError>;

    /// Reads a page that [`MetaStore::append`] programmed.
    ///
    /// # Errors
    /// Those of the device.
    fn fetch(&mut self, purpose: Purpose, ppn: Ppn, out: &mut [u8]) -> Result<Spare, FtlError>;

    /// Says that a page of this store is dead.
    fn discard(&mut self, ppn: Ppn);

    /// The sequence number that the next programmed page will carry.
    fn next_seq(&self) -> u64;

    /// The largest sequence number up to which the store was told of every erase and every death;
    /// [`MetaStore::next_seq`] unless one is still to be told. A flush must not claim to know more.
    fn reported_seq(&self) -> u64 {
        self.next_seq()
    }
}

/// One bit a page of a block; set means dead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageSet {
    words: Vec<u64>,
    pages: u32,
}

impl PageSet {
    /// No page of a block of `pages` pages.
    #[must_use]
    pub fn new(pages: u32) -> Self {
        Self { words: alloc::vec![0; pages.div_ceil(64) as usize], pages }
    }

    /// Empties the set.
    #[inline]
    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Adds a page by its offset in the block.
    #[inline]
    pub fn insert(&mut self, offset: u32) {
        debug_assert!(offset < self.pages, "page {offset} of a block of {}", self.pages);
        self.words[(offset / 64) as usize] |= 1 << (offset % 64);
    }

    /// Whether a page is in the set.
    #[inline]
    #[must_use]
    pub fn contains(&self, offset: u32) -> bool {
        debug_assert!(offset < self.pages, "page {offset} of a block of {}", self.pages);
        self.words[(offset / 64) as usize] >> (offset % 64) & 1 != 0
    }

    /// The first page from `from` on that is not in the set.
    #[inline]
    #[must_use]
    pub fn next_outside(&self, from: u32) -> Option<u32> {
        let mut at = (from / 64) as usize;
        let mut outside = !*self.words.get(at)? >> (from % 64) << (from % 64);
        while outside == 0 {
            at += 1;
            outside = !*self.words.get(at)?;
        }
        Some(at as u32 * 64 + outside.trailing_zeros()).filter(|offset| *offset < self.pages)
    }

    /// How many pages are in the set.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.words.iter().map(|w| w.count_ones()).sum()
    }

    /// Bytes of RAM held.
    #[must_use]
    pub fn ram_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    /// The set as words of 64 pages, lowest page first.
    #[inline]
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }
}

/// A page-validity store.
///
/// Pages of the store itself are reported to [`MetaStore::discard`], never to
/// [`Validity::invalidate`].
pub trait Validity: Send {
    /// Whether pages of metadata that die are reported to [`Validity::invalidate`] too. If not,
    /// only their owner knows whether they live.
    fn tracks_metadata(&self) -> bool;

    /// Whether reports wait in RAM, so that after power loss they have to be found again by
    /// comparing translation pages with their predecessors (GeckoFTL, C.2.2), which must stay
    /// readable until then.
    fn is_buffered(&self) -> bool;

    /// Says that a page is dead. It is told once for each time the page was programmed.
    ///
    /// # Errors
    /// Those of the device, if the store wrote.
    fn invalidate<S: MetaStore>(&mut self, store: &mut S, ppn: Ppn) -> Result<(), FtlError>;

    /// Says that a block was erased: everything said about its pages before is void. When that
    /// happened the next program was to carry the sequence number `seq`; it may have been
    /// programmed since, but no page of it has died.
    ///
    /// # Errors
    /// Those of the device, if the store wrote.
    fn erased<S: MetaStore>(&mut self, store: &mut S, block: BlockId, seq: u64) -> Result<(), FtlError>;

    /// Takes over which pages of a block are dead, of which it was told nothing since the block was
    /// erased: for a mount that has found out by itself. Durable after [`Validity::flush`] at the
    /// latest.
    ///
    /// # Errors
    /// Those of the device.
    fn fill<S: MetaStore>(&mut self, store: &mut S, block: BlockId, dead: &PageSet) -> Result<(), FtlError> {
        let first = block.0 * dead.pages;
        debug_assert!(block.0 < store.blocks() && dead.pages == store.pages_per_block());
        (0..dead.pages)
            .filter(|&offset| dead.contains(offset))
            .try_for_each(|offset| self.invalidate(store, Ppn(first + offset)))
    }

    /// Adds the dead pages of a block to `dead`, which the caller has emptied.
    ///
    /// # Errors
    /// Those of the device, if the store reads flash.
    fn query<S: MetaStore>(&mut self, store: &mut S, block: BlockId, dead: &mut PageSet) -> Result<(), FtlError>;

    /// Whether a page that the store wrote, with this spare area, is part of it now.
    fn owns(&self, ppn: Ppn, spare: &Spare) -> bool;

    /// A page that is part of the store now, one of those `wanted`.
    fn find_own(&self, wanted: impl Fn(Ppn) -> bool) -> Option<Ppn> {
        let _ = wanted;
        None
    }

    /// A live page of the store was moved by a collector.
    fn moved(&mut self, from: Ppn, to: Ppn, spare: &Spare);

    /// Writes out what is only in RAM.
    ///
    /// # Errors
    /// Those of the device.
    fn flush<S: MetaStore>(&mut self, store: &mut S) -> Result<(), FtlError>;

    /// How often the store has made its RAM contents durable: what depends on unsaved reports may
    /// go when this has grown.
    fn flushes(&self) -> u64;

    /// The most pages it may append between two chances to collect garbage.
    fn reserve_pages(&self) -> u32;

    /// The most that so many reports, erases and flushes do.
    fn most_work(&self, reports: u64, erases: u64, flushes: u64) -> Most;

    /// The most pages that a query reads.
    fn most_query_reads(&self) -> u32;

    /// The most pages it holds live on flash at any time.
    fn footprint_pages(&self) -> u32;

    /// The most bytes that [`Validity::save`] puts; 0 if the store needs no battery.
    fn saved_bytes(&self) -> u64 {
        0
    }

    /// Puts what is only in RAM, while a battery lasts.
    ///
    /// # Errors
    /// Those of the sink.
    fn save(&self, sink: &mut dyn Sink) -> Result<(), FtlError> {
        let _ = sink;
        Ok(())
    }

    /// Takes back what [`Validity::save`] put; `false` if it is not of this device.
    fn load(&mut self, source: &mut Source<'_>) -> bool {
        let _ = source;
        true
    }

    /// Brings near what [`Validity::invalidate`] of this page will need. A hint; no effect.
    fn hint(&self, ppn: Ppn) {
        let _ = ppn;
    }

    /// Shows its buffer, its runs and where its pages are.
    fn inspect(&self, inspector: &mut dyn Inspector) {
        let _ = inspector;
    }

    /// The RAM that its structures hold.
    fn ram(&self, report: &mut RamReport);
}

/// What a store is made for.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// Blocks of the device.
    pub blocks: u32,
    /// Pages in each.
    pub pages_per_block: u32,
    /// Bytes in a page.
    pub page_bytes: u32,
    /// Pages that the host sees.
    pub logical_pages: u32,
    /// The most pages that die between two chances to collect garbage.
    pub reports: u32,
    /// How Logarithmic Gecko is tuned.
    pub gecko: GeckoOptions,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// The settings that concern it, and with it an FTL over it.
    pub settings: &'static [Setting],
}

/// A store with a row in the table.
pub trait Store: Validity + Sized + 'static {
    /// The row.
    const ENTRY: Entry;

    /// The store of a device on which no page is dead.
    ///
    /// # Errors
    /// [`FtlError::Unsupported`] if it does not fit the device.
    fn make(site: &Site) -> Result<Self, FtlError>;
}

/// Makes a store of a type, as [`Store::make`].
pub type Make<V> = fn(&Site) -> Result<V, FtlError>;

/// What is to be done with a store of which only its name is known.
pub trait Receiver {
    /// What comes of it.
    type Output;

    /// Takes the store's type, and what makes one.
    fn receive<V: Validity + 'static>(self, make: Make<V>) -> Self::Output;
}

macro_rules! stores {
    // `$d` is a dollar sign, for the macro that is made here.
    (($d:tt) $($kind:ident: $store:ty),* $(,)?) => {
        /// Every page-validity store.
        #[must_use]
        pub const fn table() -> &'static [Entry] {
            &[$(<$store>::ENTRY),*]
        }

        /// A store of the table of which only its name was known.
        pub enum AnyStore {
            $(
                #[doc = concat!("[`", stringify!($store), "`].")]
                $kind(Box<$store>),
            )*
        }

        /// The same of any store.
        macro_rules! of_any {
            ($d any:expr, $d store:ident => $d same:expr) => {
                match $d any {
                    $(AnyStore::$kind($d store) => $d same,)*
                }
            };
        }

        /// Hands the store with this name, as any store, to `receiver`; `None` if there is none.
        pub fn with<R: Receiver>(name: &str, receiver: R) -> Option<R::Output> {
            $(if name == <$store>::ENTRY.name {
                let make = |site: &Site| <$store>::make(site).map(|store| AnyStore::$kind(Box::new(store)));
                return Some(receiver.receive::<AnyStore>(make));
            })*
            None
        }
    };
}

stores! {
    ($)
    RamBitmap: ram_bitmap::RamBitmap,
    FlashBitmap: flash_bitmap::FlashBitmap,
    Log: log::ValidityLog,
    Gecko: gecko::Gecko,
}

// It matches over the rows above.
mod any;

pub use any::{Build, Fast, Small};

/// The row with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    table().iter().find(|entry| entry.name == name)
}
