//! What a request of a page-mapped FTL does at most ([`crate::bound`]).
//!
//! 1. A victim is the closed block in which least lives. All that lives, spread evenly over the
//!    fewest closed blocks, is v pages a block: none has to be fuller.
//! 2. A write collects until the reserve is whole. At most d blocks are missing then: those that
//!    the request before opened, and those that the first trim has held free.
//! 3. n collections free n blocks. They open blocks for the n·v pages that they move, and for the
//!    metadata that is programmed while 1 + n·v entries change. The smallest n that leaves d blocks
//!    more is the most that one write does.
//! 4. No such n: collecting may take as many blocks as it frees, and nothing is promised. The
//!    collector gives up after four collections for each block of the device.
//!
//! Each term holds for the sum over a request, wherever in the request the collections are.

use super::overhead::Shares;
use super::{Config, Geometry, Make, Mapping, PageOptions, Preset, Receiver, Validity, site};
use super::{placement, trim_step, validity, victim};
use crate::bound::{Bound, Most};

/// Blocks in which nothing lives that go before the mapping may change: one a request.
const TIDIED: u64 = 1;

/// Spare areas read of a block that is erased, for its wear.
const WEAR_READS: u64 = 2;

/// The most that requests do over the page-validity store of the configuration, else the FTL's own;
/// `None` if nothing is promised.
pub fn bound_over_store<M: Mapping>(
    geometry: &Geometry,
    config: &Config,
    options: PageOptions,
    mapping: M,
) -> Option<Bound> {
    validity::with(options.store(config), Bounding { geometry, config, options, mapping })?
}

struct Bounding<'a, M> {
    geometry: &'a Geometry,
    config: &'a Config,
    options: PageOptions,
    mapping: M,
}

impl<M: Mapping> Receiver for Bounding<'_, M> {
    type Output = Option<Bound>;

    fn receive<V: Validity + 'static>(self, make: Make<V>) -> Self::Output {
        let Self { geometry, config, options, mapping } = self;
        let store = make(&site(geometry, config, &mapping)).ok()?;
        Requests::of(geometry, config, options, &mapping, &store)?.bound()
    }
}

/// What decides how long requests are.
struct Requests<'a, M, V> {
    mapping: &'a M,
    store: &'a V,
    /// B.
    pages: u64,
    blocks: u64,
    /// v: the most pages that live in a victim.
    live: u64,
    /// d: the most blocks that are missing when a write begins.
    missing: u64,
    /// Streams that moved pages go to.
    moved_streams: u64,
}

impl<'a, M: Mapping, V: Validity> Requests<'a, M, V> {
    /// `None` if victims are not the emptiest blocks.
    fn of(geometry: &Geometry, config: &Config, options: PageOptions, mapping: &'a M, store: &'a V) -> Option<Self> {
        let placement = placement::find(config.placement.unwrap_or(Preset::PAPER.placement))?;
        let placement = (placement.make)(config, geometry, mapping.keeps_pasts());
        let shares = Shares::of(geometry, config, options, placement.streams(), mapping, store);
        let picks_fewest = victim::find(config.victim)?.picks_fewest && !placement.names_victims();
        if !picks_fewest || shares.lanes > 1 || config.wear.is_some() {
            return None;
        }
        let overhead = &shares.overhead;
        let footprint = mapping.footprint_pages() + store.footprint_pages();
        let (reserve, usable) = (overhead.reserve + overhead.trims.reserve, geometry.blocks());
        // Before-images that were not reported yet count as live.
        let host = config.logical_pages + if mapping.is_lazy() { mapping.reports() } else { 0 };
        let limit = overhead.metadata_limit(geometry, config.logical_pages, usable);
        let (live, apart) = match options.metadata_apart {
            true => (host, limit + 1),
            false => (host + footprint + mapping.trim_pages(), 0),
        };
        let closed = usable.checked_sub(reserve + overhead.active + apart).filter(|closed| *closed > 0)?;
        let of_metadata = if options.metadata_apart { footprint / limit.max(1) } else { 0 };
        let streams = u64::from(shares.host_streams);
        let mut requests = Self {
            mapping,
            store,
            pages: geometry.pages_per_block().into(),
            blocks: geometry.blocks().into(),
            live: u64::from((live / closed).max(of_metadata)),
            missing: 0,
            // The host's own stream has room for its page, or opens a block.
            moved_streams: streams.saturating_sub(1).max(1),
        };
        let trimmed = if store.footprint_pages() > 0 { trim_step(geometry) } else { 0 };
        let reports = requests.reports(1) + u64::from(trimmed);
        let left = [mapping.most_work(1, 0), store.most_work(reports, 0, 0)];
        requests.missing = 1 + requests.opened_for(left) + u64::from(overhead.trims.reserve);
        Some(requests)
    }

    /// Pages that are reported dead while so many entries change.
    fn reports(&self, updates: u64) -> u64 {
        // A page that moves is reported if the store outlives power loss.
        let moved = if self.store.is_buffered() { updates } else { 1 };
        if self.mapping.is_lazy() { moved + updates + u64::from(self.mapping.reports()) } else { moved }
    }

    /// Blocks that metadata takes. Pages of the table and those of the store fill blocks of their
    /// own.
    fn opened_for(&self, metadata: [Most; 2]) -> u64 {
        metadata.iter().map(|most| most.programs.div_ceil(self.pages)).sum()
    }

    /// Blocks that so many pages which move take.
    const fn opened_for_moved(&self, pages: u64) -> u64 {
        match self.moved_streams {
            1 => pages.div_ceil(self.pages),
            streams if pages < streams => pages,
            streams => pages / self.pages + streams,
        }
    }

    /// Work on the table, and on the store, while a write has so many blocks collected, of which
    /// so many hold metadata.
    fn metadata(&self, collections: u64, of_metadata: u64) -> [Most; 2] {
        let updates = 1 + collections * self.live;
        let table = self.mapping.most_work(updates, collections - of_metadata);
        // A block with an old version of a translation page waits for a flush of the store, unless
        // there was one since that page died.
        let flushes = if self.store.is_buffered() { (of_metadata + TIDIED).min(1 + table.programs) } else { 0 };
        let store = self.store.most_work(self.reports(updates), collections + TIDIED, flushes);
        // A page of the store that is alone in its block is copied to the next page of that block.
        let alone = if self.store.is_buffered() { 1 + store.programs.div_ceil(self.pages) } else { 0 };
        [table, store.and(Most::pages(alone, alone))]
    }

    /// Blocks opened, and work on metadata, whichever of the blocks collected hold metadata.
    fn most_of(&self, collections: u64) -> (u64, Most) {
        let holding = if self.store.is_buffered() { collections } else { 0 };
        (0..=holding).fold((0, Most::NONE), |(opened, most), of_metadata| {
            let [table, store] = self.metadata(collections, of_metadata);
            (opened.max(self.opened_for([table, store])), most.or(table.and(store)))
        })
    }

    fn bound(&self) -> Option<Bound> {
        let opened = |n: u64| self.opened_for_moved(n * self.live) + self.most_of(n).0;
        let collections = (1..4 * self.blocks).find(|&n| n >= self.missing + opened(n))?;
        let moved = collections * self.live;
        let has_metadata = self.mapping.footprint_pages() + self.store.footprint_pages() > 0;
        let looked_at = if self.mapping.is_lazy() || has_metadata { self.pages } else { 0 };
        let of_victims = looked_at + WEAR_READS + u64::from(self.store.most_query_reads());
        let pages = Most::pages(moved + (collections + TIDIED) * of_victims, 1 + moved);
        let pages = pages.and(self.most_of(collections).1);
        // A block that nobody saw being erased before power loss is erased when it is opened.
        let erases = collections + TIDIED + opened(collections) + 1;
        let write = Most { erases, ..pages };
        let reads = Most::pages(1, 0);
        let looks_after_space = self.mapping.reserve_pages() > 0;
        Some(Bound {
            write,
            read: if looks_after_space { write.and(reads) } else { reads },
            flush: write.times(self.mapping.trim_pages().into()),
        })
    }
}
