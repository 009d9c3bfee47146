//! What can be chosen of a cached table.

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
    /// A battery saves dirty entries.
    pub battery: bool,
    /// Keep beside each entry when the host wrote the page, and to which stream it went.
    pub pasts: bool,
}

impl CachedOptions {
    /// A cache as asked for, and nothing that makes recovery easy.
    #[must_use]
    pub const fn new(config: &Config) -> Self {
        let Config { cache_entries, protected_percent, .. } = *config;
        Self { cache_entries, protected_percent, checkpoints: false, recent_updates: 0, battery: false, pasts: false }
    }
}
