//! What changing entries costs at most ([`crate::bound`]).

use super::CachedMap;
use crate::bound::Most;

/// Entries that one request looks up beside those that it changes.
const LOOKUPS: u64 = 2;

impl CachedMap {
    /// Each synchronisation reads and programs a translation page.
    ///
    /// 1. An entry that comes has one other leave, which takes one synchronisation if it is dirty.
    /// 2. A ring of r updates lets another leave. Both together are at most one for each entry that
    ///    changes, and one for each translation page that was dirty before: a synchronisation
    ///    leaves nothing dirty of its page.
    /// 3. A checkpoint is due after C changes. It synchronises a translation page for each stale
    ///    entry at most, and each page once.
    /// 4. Where a mount cannot tell which page was the last, a page of the table is programmed
    ///    before a block is erased.
    pub(super) fn most_synchronised(&self, updates: u64, collections: u64) -> Most {
        let pages = self.gmd.len() as u64;
        let dirty_before = updates.min(pages).min(self.recent.len().into());
        let capacity = u64::from(self.cmt.capacity());
        let checkpoints = if self.checkpoints.enabled { updates / capacity + 1 } else { 0 };
        let followed = if self.reporting.is_lazy() && self.recent.is_empty() { collections } else { 0 };
        let synchronised = updates + LOOKUPS + dirty_before + checkpoints * pages.min(capacity) + followed;
        Most::pages(synchronised + 1 + LOOKUPS, synchronised)
    }
}
