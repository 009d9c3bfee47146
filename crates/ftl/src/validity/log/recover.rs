//! Reading the log after power loss, all of it, as IB-FTL has to (GeckoFTL's paper, section 5.3).
//!
//! 1. Sort the pages that were found by number; of several copies of a page, latest program first.
//! 2. The one with the highest number that is sound is the newest, and says how many before it are
//!    part of the log.
//! 3. Read those, oldest first. An entry counts if it is younger than the first page of its block;
//!    the last that counts is the head of its block's chain. Chains on flash are as they were: what
//!    was lost with the buffer was at their young end.
//!
//! What is missing afterwards are the reports that were in the buffer.

use super::format::{Entry, Header};
use super::{ValidityLog, damaged};
use crate::contract::FtlError;
use crate::flash::Purpose;
use crate::validity::{MetaStore, Site, Store};
use alloc::vec::Vec;
use core::cmp::Reverse;
use nand::{BlockId, NandError, PageKind, Ppn, Spare};

/// Later than anything: nothing that was said of a block without pages counts.
const NEVER: u64 = (1 << 48) - 1;

impl ValidityLog {
    /// The log that is on flash. `found` are the pages of kind [`PageKind::Validity`] whose spare
    /// areas can be read, dead ones included, in any order; `first_seq` says which sequence number
    /// the first page of a block carries, `None` if the block holds no page.
    ///
    /// # Errors
    /// [`FtlError::Damaged`] if a page of the log is missing or cannot be read, or the log was made
    /// for another device or disk; those of the device.
    pub fn recover<S: MetaStore>(
        store: &mut S,
        site: &Site,
        found: impl IntoIterator<Item = (Ppn, Spare)>,
        first_seq: impl Fn(BlockId) -> Option<u64>,
    ) -> Result<Self, FtlError> {
        let mut log = Self::make(site)?;
        for block in (0..site.blocks).map(BlockId) {
            log.erased.set(block, first_seq(block).unwrap_or(NEVER));
        }
        let mut found: Vec<(Ppn, Spare)> = found.into_iter().filter(|(_, s)| s.kind == PageKind::Validity).collect();
        // Numbers wrap at 2^32 after more writes than any device outlives; what is on flash then
        // lies close together.
        let base = found.iter().max_by_key(|(_, spare)| spare.seq).map_or(0, |(_, spare)| spare.tag);
        let order = |spare: &Spare| spare.tag.wrapping_sub(base).wrapping_add(1 << 31);
        found.sort_unstable_by_key(|(_, spare)| (Reverse(order(spare)), Reverse(spare.seq)));
        let Some((newest, newest_ppn)) = log.newest(store, &found)? else { return Ok(log) };
        if newest.slots as usize != log.ring.len() || newest.before >= newest.slots {
            return Err(damaged(newest_ppn, "it belongs to a disk of another size"));
        }
        log.pages = newest.before + 1;
        log.oldest = newest
            .number
            .checked_sub(u64::from(newest.before))
            .ok_or_else(|| damaged(newest_ppn, "it says that more pages came before it than there can have been"))?;
        log.flushes = newest.number + 1;
        log.fresh = log.per_page;
        for age in 0..log.pages {
            let number = (log.oldest + u64::from(age)) as u32;
            let begin =
                found.partition_point(|(_, spare)| order(spare) > number.wrapping_sub(base).wrapping_add(1 << 31));
            let copies = found[begin..].iter().take_while(|(_, spare)| spare.tag == number);
            if !log.adopt(store, age, copies.map(|(ppn, _)| *ppn))? {
                return Err(damaged(newest_ppn, "a page before it that is part of the log cannot be read"));
            }
        }
        Ok(log)
    }

    /// The sound page with the highest number.
    fn newest<S: MetaStore>(
        &mut self,
        store: &mut S,
        found: &[(Ppn, Spare)],
    ) -> Result<Option<(Header, Ppn)>, FtlError> {
        for (ppn, spare) in found {
            if let Some(header) = self.read(store, *ppn)?.filter(|header| header.number as u32 == spare.tag) {
                return Ok(Some((header, *ppn)));
            }
        }
        Ok(None)
    }

    /// Reads a page into `scratch`; `None` if it is not a sound page of a log.
    fn read<S: MetaStore>(&mut self, store: &mut S, ppn: Ppn) -> Result<Option<Header>, FtlError> {
        match store.fetch(Purpose::Recovery, ppn, &mut self.scratch) {
            Ok(_) => Ok(Header::read(&self.scratch).filter(|header| header.count <= self.per_page)),
            Err(FtlError::Nand(NandError::Uncorrectable { .. } | NandError::Erased { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes the first sound copy of the page so many after the oldest, and its entries; `false` if
    /// there is none.
    fn adopt<S: MetaStore>(
        &mut self,
        store: &mut S,
        age: u32,
        copies: impl Iterator<Item = Ppn>,
    ) -> Result<bool, FtlError> {
        let slot = self.slot(age);
        debug_assert!(age < self.pages && !self.ring[slot as usize].is_some(), "slot {slot} is taken");
        for ppn in copies {
            let number = self.oldest + u64::from(age);
            let Some(header) = self.read(store, ppn)?.filter(|header| header.number == number) else { continue };
            self.ring[slot as usize] = ppn;
            for index in 0..header.count {
                let entry = Entry::get(&self.scratch, index as usize);
                let block = self.block_of(entry.ppn);
                if block.0 >= self.options.blocks {
                    return Err(damaged(ppn, "it names a page beyond the device's last"));
                }
                if entry.stamp > self.erased.get(block) {
                    self.heads[block.index()] = slot * self.per_page + index;
                }
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// Where its live pages lie.
    pub fn live_pages(&self) -> impl Iterator<Item = Ppn> {
        self.ring.iter().copied().filter(|ppn| ppn.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::GeckoOptions;
    use crate::validity::Validity;
    use crate::validity::gecko::tests::store::MemStore;
    use alloc::string::ToString;
    use alloc::vec;

    #[test]
    fn a_page_that_says_that_the_whole_ring_came_before_it_is_refused() {
        let site = Site {
            blocks: 8,
            pages_per_block: 4,
            page_bytes: 512,
            logical_pages: 16,
            reports: 1,
            gecko: GeckoOptions::default(),
        };
        let mut store = MemStore::new(512, site.blocks, site.pages_per_block);
        let slots = ValidityLog::make(&site).unwrap().ring.len() as u32;
        let mut recovered = |number: u64, before: u32| {
            let mut page = vec![0xFF; 512];
            let used = Header { number, before, slots, count: 0 }.seal(&mut page);
            page.truncate(used);
            store.recovering = true;
            let found = [store.plant(number as u32, 0, page)];
            ValidityLog::recover(&mut store, &site, found, |_| None).map(|log| log.flushes()).map_err(|e| e.to_string())
        };
        assert_eq!(recovered(9, 0), Ok(10));
        for before in [slots, slots + 1] {
            let refused = recovered(u64::from(before) + 9, before).unwrap_err();
            assert!(refused.contains("another size"), "{before} of {slots}: {refused}");
        }
        let refused = recovered(u64::from(slots) + 9, slots - 1).unwrap_err();
        assert!(refused.contains("cannot be read"), "{refused}");
    }
}
