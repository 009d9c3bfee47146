//! What a battery saves, and when: the FTL stands as the last operation left it, which may have
//! failed half-way.
//!
//! 1. The store is told what it was not told: of blocks that were opened, and of pages that died
//!    ([`crate::space::deaths`]). So it is of pages that a collection moved before it was cut
//!    short, and of the page whose program was cut short: no entry leads to what it may hold.
//! 2. The mapping programs what outranks such a page, so that a later mount without what was saved
//!    does not take it for the present one, which a host has not read meanwhile.
//! 3. If a program was cut short, two sequence numbers are left out before the first page of the
//!    save. By these a mount knows which page was the last before power went, also if the save
//!    comes to nothing and another mount was cut short since
//!    ([`stranded`](crate::recovery::survey::Survey::stranded)).
//! 4. A run of checkpoint pages takes the count of live pages of each block (BVC), then what the
//!    validity store and the mapping hold in RAM alone.
//!
//! Room for it is kept free at all times, and nothing is moved. But a mount that takes over what
//! was saved erases nothing, so that saves without a request between them add up: while room for a
//! save is short, metadata blocks in which nothing lives are erased. What they hold counts no more
//! once the first page of the save is programmed.

use super::{FtlError, Geometry, Mapping, Nand, NandError, Origin, PageFtl, PageKind, Validity};
use crate::recovery::saved::{self, Writer};
use crate::saved::Sink;
use nand::BlockId;

/// Nothing that a save programs has one of the next numbers after that of a page in doubt.
const NUMBERS_LEFT_OUT: u64 = 2;

/// Bytes that are saved: the counts, the store, the mapping.
fn saved_bytes<M: Mapping, V: Validity>(geometry: &Geometry, mapping: &M, validity: &V) -> u64 {
    2 * u64::from(geometry.blocks()) + validity.saved_bytes() + mapping.saved_bytes()
}

/// Pages that a save programs at most: the run, and what reports can cost if the store is in flash.
pub(super) fn saved_pages<M: Mapping, V: Validity>(geometry: &Geometry, mapping: &M, validity: &V) -> u32 {
    // What a collection moved, the page that died last, the one whose program was cut short, one
    // to which no entry leads, and blocks that were opened. A table behind a battery kills more
    // than one page a call only over a store in RAM, or over one that no mount reads.
    let opened = 1 + mapping.reserve_pages().div_ceil(geometry.pages_per_block());
    let reports = if validity.reserve_pages() > 0 { geometry.pages_per_block() + 3 + 2 * opened } else { 0 };
    saved::pages(saved_bytes(geometry, mapping, validity), geometry.page_bytes()) + reports
}

impl<N: Nand, M: Mapping, V: Validity> PageFtl<N, M, V> {
    pub(super) fn most_saved_pages(&self) -> u32 {
        if self.saving.is_empty() {
            return 0;
        }
        saved_pages(self.core.space.geometry(), &self.mapping, &self.validity) + self.mapping.disowning_pages()
    }

    pub(super) fn save(&mut self) -> Result<(), FtlError> {
        if self.saving.is_empty() {
            return Ok(());
        }
        let geometry = *self.core.space.geometry();
        debug_assert!(!self.power_lost, "power is gone");
        let (interrupted, unfinished) = (self.core.interrupted.take(), self.core.unfinished);
        let given_up = self.given_up.take();
        // What the save programs must not vouch for what power loss cut short.
        self.core.settling = unfinished.map(|unfinished| unfinished.first);
        if unfinished.is_some() {
            self.core.seq += NUMBERS_LEFT_OUT;
        }
        if let Some(Origin { ppn, spare }) = interrupted
            && spare.kind != PageKind::User
        {
            // A mount takes a block whose first page reads as erased for an empty one, and doubts
            // no page that has another behind it.
            self.core.space.stop_filling(geometry.block_of(ppn));
        }
        self.validity.flush(&mut self.core)?;
        self.tell()?;
        if self.core.space.free_blocks() < self.saving_blocks {
            // An erase forgets what was moved.
            if self.unreported {
                self.report_moved()?;
            }
            self.free_dead_until(self.saving_blocks, |_, kind| kind != PageKind::User)?;
            self.tell()?;
        }
        // The store is not told of blocks that are opened from here on, until a mount finds the
        // run.
        let since = self.core.seq;
        if self.unreported {
            self.report_moved()?;
        }
        let dead = interrupted.filter(|origin| match origin.spare.kind {
            PageKind::User => true,
            PageKind::Translation => self.validity.tracks_metadata(),
            PageKind::Validity | PageKind::Checkpoint => false,
        });
        if let Some(Origin { ppn, .. }) = dead {
            self.validity.invalidate(&mut self.core, ppn)?;
        }
        let unfinished = unfinished.map(|unfinished| (unfinished.kind, unfinished.tag));
        for (kind, tag) in unfinished.into_iter().chain(given_up.map(|lpn| (PageKind::User, lpn.0))) {
            // Should it fail while power lasts: what is saved says the same, and there is no time
            // for more.
            let disowned = self.call(|mapping, core| mapping.disown(core, kind, tag));
            if matches!(disowned, Err(FtlError::Nand(NandError::PowerLost))) {
                return disowned;
            }
        }
        let bytes = saved_bytes(&geometry, &self.mapping, &self.validity);
        // The run itself opens blocks: the counts of those are of no use to a mount, and it does
        // not use them.
        let mut writer = Writer::new(&mut self.core, &mut self.saving, bytes, since);
        for block in (0..geometry.blocks()).map(BlockId) {
            let valid = writer.core().space.valid(block) as u16;
            writer.put(&valid.to_le_bytes())?;
        }
        debug_assert!(writer.taken() == 2 * u64::from(geometry.blocks()), "the counts of live pages");
        self.validity.save(&mut writer)?;
        self.mapping.save(&mut writer)?;
        writer.finish()?;
        self.core.settling = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::config::Config;
    use crate::contract::Ftl;
    use crate::engine::page::{PageFtl, PageOptions};
    use crate::flash::Flash;
    use crate::mapping::cached::{CachedMap, CachedOptions};
    use crate::recovery::device::of_blocks;
    use crate::validity::ram_bitmap::RamBitmap;
    use nand::{Capabilities, Cut, CutOutcome, FaultPlan, Faulty, Lpn, SimNand, Stamp};

    const OPTIONS: PageOptions = PageOptions { battery: true, ..PageOptions::over("dftl", "ram-bitmap") };

    const BLOCKS: u32 = 64;
    const LPNS: u32 = 170;

    type Disk = PageFtl<Faulty<SimNand>, CachedMap, RamBitmap>;

    /// A disk whose power went at an operation while it was written.
    fn cut_at(at: u64) -> Disk {
        let (geometry, config) = (of_blocks(BLOCKS), Config { cache_entries: 8, ..Config::new(LPNS) });
        let cuts = [Cut { at, outcome: CutOutcome::NotDone }].to_vec();
        let nand =
            Faulty::new(SimNand::new(geometry, Capabilities::MODERN), FaultPlan { cuts, ..FaultPlan::default() });
        let (map, store) = (CachedMap::new(LPNS, 512, CachedOptions::new(&config)), RamBitmap::new(BLOCKS, 4));
        let mut disk = Disk::format(Flash::new(nand), &config, OPTIONS, map, store).unwrap();
        for lpn in (0..).map(|write: u32| Lpn((write.wrapping_mul(2_654_435_761) >> 16) % LPNS)) {
            if disk.write(lpn, &Stamp { lpn, version: 1 }).is_err() {
                break;
            }
        }
        disk
    }

    #[test]
    fn a_save_that_is_short_of_blocks_still_reports_what_a_collection_moved() {
        let mut both = 0;
        for at in 3000..6000 {
            let mut disk = cut_at(at);
            if !disk.unreported || disk.moved == 0 {
                continue;
            }
            disk.core.flash.nand_mut().power_up();
            disk.saving_blocks = u32::MAX;
            let before = disk.core.flash.counts().total().erases;
            disk.power_failing().unwrap();
            both += u32::from(disk.core.flash.counts().total().erases > before);
            assert_eq!(disk.check_invariants(), Ok(()), "power went at operation {at}");
        }
        assert!(both > 20, "{both} collections were cut short and blocks erased by the save");
    }
}
