//! What can be chosen of a cached table.

use super::BOUND_SHIFT;
use super::heat::Upkeep;
use crate::config::Config;
use crate::space::age::{HOT, UNSETTLED, aged};
use nand::{PageKind, Spare};

/// How a cached table behaves.
#[derive(Clone, Copy, Debug)]
pub struct CachedOptions {
    /// When superseded pages are reported.
    pub reporting: Reporting,
    /// C: entries that the cache holds, at least 2.
    pub cache_entries: u32,
    /// Percent of them in the protected segment of a segmented LRU order; 0 for plain LRU order.
    pub protected_percent: u32,
    /// Ways of the sets that the cache is divided into; 0 for one list.
    pub cache_ways: u32,
    /// Take runtime checkpoints.
    pub checkpoints: bool,
    /// How many of the pages written last may have dirty entries; 0 for any.
    pub recent_updates: u32,
    /// Keep beside each entry when the host wrote the page, and to which stream it went.
    pub pasts: bool,
    /// Read the entry of a page that is written and not cached, so that the copy it had is known to
    /// be dead at once.
    pub looks_up: bool,
    /// Keep how often each translation page is used, for a mount to cache entries of the hot ones;
    /// not at all if `None`.
    pub heat: Option<Upkeep>,
    /// What a mount caches beside entries that were only in RAM.
    pub refill: Refill,
}

/// When a page of host data that is superseded is reported dead, and with it what translation pages
/// say in their spare areas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reporting {
    /// When it is superseded, so that the validity store knows every dead page.
    AtOnce,
    /// When its entry is synchronised (GeckoFTL, section 4.1).
    WhenSynchronised,
}

impl Reporting {
    /// Whether superseded pages may be unknown to the validity store.
    #[inline]
    #[must_use]
    pub const fn is_lazy(self) -> bool {
        matches!(self, Self::WhenSynchronised)
    }

    /// From which sequence number on pages of host data may have had entries only in RAM when a
    /// translation page with this spare area was written.
    #[must_use]
    pub const fn bound_of(self, spare: &Spare) -> u64 {
        match self {
            Self::AtOnce => 0,
            Self::WhenSynchronised => ((spare.aux & !(UNSETTLED | HOT)) as u64) << BOUND_SHIFT,
        }
    }

    /// The page that was programmed last while the disk was in use, if only in part, had at least
    /// the sequence number that this gives for a page with that spare area.
    #[must_use]
    pub const fn root(self) -> fn(&Spare) -> u64 {
        match self {
            Self::AtOnce => |spare| match spare.kind {
                PageKind::User | PageKind::Translation => aged(spare),
                PageKind::Validity | PageKind::Checkpoint => settled(spare),
            },
            Self::WhenSynchronised => |spare| match spare.kind {
                PageKind::User => aged(spare),
                PageKind::Translation | PageKind::Validity | PageKind::Checkpoint => settled(spare),
            },
        }
    }

    /// A translation page with this spare area speaks for every page of host data with a smaller
    /// sequence number than this.
    #[must_use]
    pub const fn written_at(self, spare: &Spare) -> u64 {
        match self {
            Self::AtOnce => aged(spare),
            Self::WhenSynchronised => spare.seq,
        }
    }
}

/// The sequence number of a page of metadata, unless a mount programmed it before it had settled
/// which pages count.
const fn settled(spare: &Spare) -> u64 {
    if spare.aux & UNSETTLED != 0 { 0 } else { spare.seq }
}

/// Which entries a mount caches beside those that were only in RAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refill {
    /// None: each is read when it is asked for.
    Nothing,
    /// Those of the translation pages that were used most (FTRM, section 4.2.2).
    Hot,
    /// Those of translation pages in an order that says nothing.
    Any,
    /// All of them, so that flash is not asked for an entry again. The cache has room for them.
    All,
}

impl CachedOptions {
    /// A cache as asked for, and nothing that makes recovery easy.
    #[must_use]
    pub const fn new(config: &Config) -> Self {
        let Config { cache_entries, protected_percent, cache_ways, .. } = *config;
        Self {
            reporting: Reporting::AtOnce,
            cache_entries,
            protected_percent,
            cache_ways,
            checkpoints: false,
            recent_updates: 0,
            pasts: false,
            looks_up: false,
            heat: None,
            refill: Refill::Nothing,
        }
    }

    /// The same, reporting superseded pages when their entries are synchronised.
    #[must_use]
    pub const fn lazy(self) -> Self {
        Self { reporting: Reporting::WhenSynchronised, ..self }
    }

    /// The same, lazy, with runtime checkpoints (GeckoFTL, section 4.3).
    #[must_use]
    pub const fn checkpointed(self) -> Self {
        Self { checkpoints: true, ..self.lazy() }
    }

    /// The same, with a warm mount if that is asked for.
    #[must_use]
    pub fn warmed_for(self, config: &Config) -> Self {
        self.warmed(if config.warm.unwrap_or_default() { Some(Upkeep::Programs) } else { None })
    }

    /// The same, with counts of how often translation pages are used, for a mount to cache the
    /// entries of the hot ones; the same as before without `upkeep`.
    #[must_use]
    pub const fn warmed(self, upkeep: Option<Upkeep>) -> Self {
        Self { heat: upkeep, refill: if upkeep.is_some() { Refill::Hot } else { self.refill }, ..self }
    }
}
