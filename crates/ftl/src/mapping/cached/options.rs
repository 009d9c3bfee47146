//! What can be chosen of a cached table.

use super::heat::Upkeep;
use crate::config::Config;

/// How a cached table behaves.
#[derive(Clone, Copy, Debug)]
pub struct CachedOptions {
    /// C: entries that the cache holds, at least 2.
    pub cache_entries: u32,
    /// Percent of them in the protected segment of a segmented LRU order; 0 for plain LRU order.
    pub protected_percent: u32,
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
        let Config { cache_entries, protected_percent, .. } = *config;
        Self {
            cache_entries,
            protected_percent,
            checkpoints: false,
            recent_updates: 0,
            pasts: false,
            looks_up: false,
            heat: None,
            refill: Refill::Nothing,
        }
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
