//! Garbage collection: greedy, and local to a bank.
//!
//! A page is moved in three steps. It is read with its bank locked; it is programmed with the bank
//! of its destination locked, if its entry still leads to where it was; its entry is changed, if it
//! still does. A writer may overwrite or a host trim the page between any two of them. A copy keeps
//! the sequence number of its original, so that one that came too late outranks nothing.

use crate::append::{Collected, Contents, Programmed};
use crate::bank::{Bank, Use};
use crate::engine::Engine;
use crate::error::LftlError;
use crate::map::UNMAPPED;
use crate::shape::Aux;
use crate::sync::Ordering;
use ftl::victim::by_bank::banks_to_collect;
use nand::{Lpn, NandError};

/// A page that was read to be moved.
struct Moving {
    lpn: Lpn,
    seq: u64,
    aux: Aux,
}

impl Engine {
    /// Does a unit of collection in the bank that needs it most; `false` if none does, or if others
    /// collect those that do.
    ///
    /// # Errors
    /// Those of the device.
    pub fn collect_round(&self) -> Result<bool, LftlError> {
        let free = |bank: usize| self.banks[bank].info.free.load(Ordering::Acquire);
        let writers = |bank: usize| self.banks[bank].info.writers.load(Ordering::Relaxed);
        for bank in banks_to_collect(self.banks.len(), &self.levels, |bank| (free(bank), writers(bank))) {
            let Some(limit) = self.levels.limit(free(bank)) else { continue };
            let collected = self.collect(bank, limit)?;
            self.flag(bank, collected != Collected::Nothing);
            if collected == Collected::Block {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Keeps writers off a bank that is very short of free blocks, as long as collecting helps.
    fn flag(&self, bank: usize, helps: bool) {
        let info = &self.banks[bank].info;
        info.exclusive.store(helps && self.levels.exclusive(info.free.load(Ordering::Acquire)), Ordering::Release);
    }

    /// Collects a block of a bank that is short of free ones, in the path of a write.
    pub(crate) fn collect_if_short(&self, bank: usize) -> Result<(), LftlError> {
        let info = &self.banks[bank].info;
        if info.room.load(Ordering::Acquire) == 0
            && let Some(limit) = self.levels.limit(info.free.load(Ordering::Acquire))
        {
            self.collect(bank, limit)?;
        }
        Ok(())
    }

    /// Collects the block with the fewest live pages of a bank, if it has at most `limit`.
    ///
    /// **Power loss**: every live page is there, once or twice; the victim is as before, erased or
    /// half erased.
    pub(crate) fn collect(&self, bank: usize, limit: u32) -> Result<Collected, LftlError> {
        self.void_clean()?;
        let info = &self.banks[bank].info;
        if info.collecting.swap(true, Ordering::AcqRel) {
            return Ok(Collected::Busy);
        }
        let collected = self.collect_alone(bank, limit);
        info.collecting.store(false, Ordering::Release);
        collected
    }

    fn collect_alone(&self, index: usize, limit: u32) -> Result<Collected, LftlError> {
        let cell = &self.banks[index];
        let Some(block) = self.victim(index, &cell.lock(), limit) else { return Ok(Collected::Nothing) };
        let whole = self.shape.block(index as u32, block);
        let mut data = vec![0; self.shape.page_bytes()];
        let mut from = 0;
        while let Some(offset) = self.live.next(whole, from) {
            if !self.move_page(index, self.shape.ppn(index as u32, block, offset), &mut data)? {
                return Ok(Collected::Nothing);
            }
            from = offset + 1;
        }
        let mut bank = cell.lock();
        if self.live.count(whole) != 0 {
            return Ok(Collected::Nothing);
        }
        let erased = bank.give_back(block, true).map_err(|error| self.fail_device(error));
        cell.publish(&bank, self.shape.pages_per_block);
        erased?;
        self.counters.collected.fetch_add(1, Ordering::Relaxed);
        Ok(Collected::Block)
    }

    /// The block with the fewest live pages. One of which a program failed comes before the others.
    fn victim(&self, index: usize, bank: &Bank, limit: u32) -> Option<u32> {
        let candidate = |(block, known): (usize, &crate::bank::Block)| {
            let failing = known.used == Use::Failing;
            let whole = self.shape.block(index as u32, block as u32);
            if !(failing || known.used == Use::Closed) || !self.live.settled(whole) {
                return None;
            }
            let live = self.live.count(whole);
            (failing || live <= limit).then_some((!failing, live, block as u32))
        };
        bank.blocks.iter().enumerate().filter_map(candidate).min().map(|(.., block)| block)
    }

    /// Moves a page; `false` if no bank has room for it.
    fn move_page(&self, index: usize, from: u32, data: &mut [u8]) -> Result<bool, LftlError> {
        let Some(moving) = self.read_to_move(index, from, data)? else { return Ok(true) };
        let contents = Contents { lpn: moving.lpn, data, aux: moving.aux.moved(), seq: Some(moving.seq) };
        let (mut target, mut host) = (index, false);
        loop {
            let cell = &self.banks[target];
            let mut bank = cell.lock();
            // A copy of what a trim has killed before a checkpoint would outlive that trim.
            if self.map.get(moving.lpn) != from {
                return Ok(true);
            }
            let programmed = self.program(target, &mut bank, contents, host);
            cell.publish(&bank, self.shape.pages_per_block);
            drop(bank);
            match programmed? {
                Programmed::At(ppn, hold) => {
                    self.point(moving.lpn, Some(from), ppn);
                    drop(hold);
                    return Ok(true);
                }
                Programmed::Failed => {}
                Programmed::NoRoom => match (self.bank_beside(index), self.reserve_beside(index)) {
                    (Some(other), _) => (target, host) = (other, true),
                    (None, Some(other)) => (target, host) = (other, false),
                    (None, None) => return Ok(false),
                },
            }
        }
    }

    /// Reads a page that is to be moved; `None` if it is dead. Of one that cannot be read all
    /// sectors are lost, and that is what moves: an error that lasts.
    fn read_to_move(&self, index: usize, from: u32, data: &mut [u8]) -> Result<Option<Moving>, LftlError> {
        let local = self.shape.local(from);
        let mut bank = self.banks[index].lock();
        match bank.read(local, data) {
            Ok(spare) => {
                let moving = Moving { lpn: Lpn(spare.tag), seq: spare.seq, aux: Aux::of(spare.aux) };
                let known = spare.tag < self.map.pages() && self.map.get(moving.lpn) == from;
                Ok(known.then_some(moving))
            }
            Err(error) if error.is_final() => Err(self.fail_device(error)),
            Err(NandError::Uncorrectable { .. } | NandError::Erased { .. }) => {
                let spare = bank.read_spare(local).ok().flatten();
                drop(bank);
                data.fill(0);
                let seq = spare.map(|spare| spare.seq).unwrap_or_default();
                let moves = spare.map(|spare| Aux::of(spare.aux).moves).unwrap_or_default();
                let aux = Aux { lost: self.shape.all_sectors(), moves };
                Ok(self.page_that_leads_to(from).map(|lpn| Moving { lpn, seq, aux }))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The logical page whose entry leads to a page, by looking through the table.
    fn page_that_leads_to(&self, ppn: u32) -> Option<Lpn> {
        debug_assert!(ppn != UNMAPPED);
        (0..self.map.pages()).map(Lpn).find(|lpn| self.map.get(*lpn) == ppn)
    }
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use super::*;
    use crate::{Devices, Options, Recovery, SECTOR_BYTES, Slice};
    use ftl::victim::by_bank::Policy;
    use nand::{Capabilities, Cut, CutOutcome, Dimensions, FaultPlan, Faulty, Geometry, MemNand};
    use std::sync::{Arc, Mutex};

    type Card = Arc<Mutex<Faulty<MemNand>>>;

    fn card() -> Card {
        let dimensions = Dimensions {
            channels: 2,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks: 32,
            pages_per_block: 4,
            page_bytes: SECTOR_BYTES as u32,
            spare_bytes: 64,
        };
        let nand = MemNand::new(Geometry::new(dimensions).unwrap(), Capabilities::MODERN);
        Arc::new(Mutex::new(Faulty::new(nand, FaultPlan::default())))
    }

    fn slices(card: &Card) -> Devices {
        Slice::all(Arc::clone(card)).unwrap().into()
    }

    /// Writes a page to a bank, filled with a byte.
    fn write_to(engine: &Engine, bank: usize, lpn: u32, fill: u8) {
        for (index, cell) in engine.banks.iter().enumerate() {
            cell.info.exclusive.store(index != bank, Ordering::Release);
        }
        engine.write(Lpn(lpn), 0, &[fill; SECTOR_BYTES]).unwrap();
        engine.flush().unwrap();
        assert_eq!(engine.shape.bank_of(engine.map.get(Lpn(lpn))) as usize, bank);
    }

    /// A copy may lie in a block of another bank that was opened before the victim. After a cut the
    /// pages of the victim may read well and then no more, or have a spare area that nobody wrote,
    /// so that the copy has to count.
    #[test]
    fn of_a_page_and_its_copy_the_copy_counts_whenever_its_block_was_opened() {
        let outcomes = [CutOutcome::HalfErasedQuietly, CutOutcome::HalfErasedFalsely];
        for (seed, outcome, saved) in (0..60).flat_map(|seed| {
            outcomes.into_iter().flat_map(move |outcome| [false, true].map(|saved| (seed, outcome, saved)))
        }) {
            let card = card();
            let options = Options { policy: Policy::Parallel, ..Options::new(16) };
            let engine = Engine::format(slices(&card), options.clone()).unwrap();
            write_to(&engine, 1, 9, 9);
            (0..4).for_each(|lpn| write_to(&engine, 0, lpn, lpn as u8 + 1));
            write_to(&engine, 1, 3, 33);
            if saved {
                engine.checkpoint().unwrap();
            }
            // As failed programs leave it: there is no room for copies in the victim's own bank.
            engine.banks[0].lock().free.clear();
            // Three programs of copies, an erase of a block for the third, then that of the victim.
            let at = card.lock().unwrap().ops() + 4;
            card.lock().unwrap().plan_mut().cuts = vec![Cut { at, outcome }];
            card.lock().unwrap().plan_mut().seed = seed;
            assert!(engine.collect(0, 3).is_err(), "power was not lost");
            drop(engine);
            card.lock().unwrap().power_up();
            let what = format!("seed {seed}, {outcome:?}, saved: {saved}");
            for life in 0..3 {
                let (engine, _) = Engine::mount(slices(&card), options.clone(), Recovery::Bounded, 1).unwrap();
                for (lpn, fill) in [(0, 1), (1, 2), (2, 3), (3, 33), (9, 9)] {
                    let mut found = [0; SECTOR_BYTES];
                    for _ in 0..6 {
                        let read = engine.read(Lpn(lpn), 0, &mut found);
                        assert!(read.is_ok() && found == [fill; SECTOR_BYTES], "{what}, life {life}: page {lpn}");
                    }
                }
            }
        }
    }
}
