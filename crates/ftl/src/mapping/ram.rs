//! The whole table in RAM: four bytes a logical page. Flash is told of trims only
//! ([`super::trims`]).
//!
//! What every other table is measured against (PPM in GeckoFTL's terms): 1.4 GiB at 2 TiB and R =
//! 0.7.

use super::trims::{TrimMap, mark};
use super::{LOST, Mapping, is_page};
use crate::bound::Most;
use crate::contract::{FtlError, RamItem, RamReport};
use crate::flash::Purpose;
use crate::inspect::Inspector;
use crate::space::core::{Core, Origin};
use alloc::vec::Vec;
use nand::{BlockId, Geometry, Lpn, Nand, PageKind, Ppn, Spare};

/// A page table in RAM.
#[derive(Debug)]
pub struct RamMap {
    table: Vec<Ppn>,
    trims: TrimMap,
}

impl RamMap {
    /// The table of a device on which nothing was written.
    #[must_use]
    pub fn new(logical_pages: u32, geometry: &Geometry) -> Self {
        Self { table: alloc::vec![Ppn::NONE; logical_pages as usize], trims: TrimMap::new(logical_pages, geometry) }
    }

    /// A table as recovery found it, where it found the pages of the trim map, and which of them
    /// tell of losses.
    #[must_use]
    pub fn restored(table: Vec<Ppn>, trims: &[Ppn], tells_losses: &[bool], geometry: &Geometry) -> Self {
        let mut map = TrimMap::new(table.len() as u32, geometry);
        map.restore(trims);
        debug_assert!(trims.len() == tells_losses.len());
        for (lpn, _) in (0..).map(Lpn).zip(&table).filter(|(_, ppn)| **ppn == LOST) {
            if !tells_losses[map.page_of(lpn) as usize] {
                map.lost(lpn);
            }
        }
        Self { table, trims: map }
    }

    /// A page of the trim map that does not tell of a loss.
    #[must_use]
    pub fn next_untold(&self) -> Option<u32> {
        self.trims.next_untold()
    }

    /// Programs a page of the trim map anew; the old one dies.
    ///
    /// # Errors
    /// Those of the device.
    pub fn program_trims<N: Nand>(&mut self, core: &mut Core<N>, page: u32, purpose: Purpose) -> Result<(), FtlError> {
        let (contents, tells_losses) = self.trims.contents(page, &self.table);
        let in_use_seq = core.settling;
        let aux = |seq| mark(seq, in_use_seq, tells_losses);
        let ppn = core.program_metadata_as(purpose, PageKind::Translation, page, aux, contents)?;
        let old = self.trims.programmed(page, ppn);
        debug_assert!(old != ppn && self.trims.owns(ppn, page));
        if old.is_some() {
            core.metadata_died(old);
        }
        Ok(())
    }
}

impl Mapping for RamMap {
    #[inline]
    fn lookup<N: Nand>(&mut self, _: &mut Core<N>, lpn: Lpn) -> Result<Ppn, FtlError> {
        Ok(self.table[lpn.index()])
    }

    fn peek<N: Nand>(&mut self, core: &mut Core<N>, lpn: Lpn) -> Result<Ppn, FtlError> {
        self.lookup(core, lpn)
    }

    #[inline]
    fn record<N: Nand>(&mut self, core: &mut Core<N>, lpn: Lpn, ppn: Ppn) -> Result<(), FtlError> {
        let old = core::mem::replace(&mut self.table[lpn.index()], ppn);
        debug_assert!(old != ppn || !is_page(ppn), "{lpn} was at {ppn} before it was written there");
        if ppn == LOST {
            self.trims.lost(lpn);
        } else if !ppn.is_some() && old.is_some() {
            self.trims.trimmed(lpn, is_page(old).then(|| core.space.geometry().block_of(old)));
        }
        if is_page(old) {
            core.page_died(old);
        }
        Ok(())
    }

    #[inline]
    fn moved<N: Nand>(&mut self, _: &mut Core<N>, lpn: Lpn, from: Ppn, to: Ppn) -> Result<(), FtlError> {
        debug_assert!(is_page(from) && from != to);
        debug_assert!(self.table[lpn.index()] == from, "{lpn} was not at {from} when it moved");
        debug_assert!(is_page(to), "{lpn} is lost, and no page says so");
        self.table[lpn.index()] = to;
        Ok(())
    }

    #[inline]
    fn superseded(&mut self, lpn: Lpn, ppn: Ppn) -> bool {
        self.table.get(lpn.index()) != Some(&ppn)
    }

    fn has_unkept_trims(&self) -> bool {
        self.trims.next_stale().is_some()
    }

    fn must_keep_trims(&self) -> bool {
        self.trims.is_behind()
    }

    fn risks_trims(&self, block: BlockId) -> bool {
        self.trims.risks(block)
    }

    fn risky_trim_pages(&self) -> u32 {
        self.trims.risky_pages()
    }

    fn keep_trims<N: Nand>(&mut self, core: &mut Core<N>) -> Result<(), FtlError> {
        match self.trims.next_stale() {
            Some(page) => self.program_trims(core, page, Purpose::Translation),
            None => Ok(()),
        }
    }

    fn trim_pages(&self) -> u32 {
        self.trims.page_count()
    }

    fn owns(&self, ppn: Ppn, spare: &Spare) -> bool {
        self.trims.owns(ppn, spare.tag)
    }

    fn find_rewritable(&self, wanted: impl Fn(Ppn) -> bool) -> Option<(Ppn, u32)> {
        self.trims.find(wanted)
    }

    fn move_page<N: Nand>(&mut self, core: &mut Core<N>, origin: Origin, purpose: Purpose) -> Result<(), FtlError> {
        self.program_trims(core, origin.spare.tag, purpose)
    }

    #[inline]
    fn due(&self) -> bool {
        false
    }

    fn maintain<N: Nand>(&mut self, _: &mut Core<N>) -> Result<bool, FtlError> {
        Ok(false)
    }

    fn reveal<N: Nand>(&mut self, _: &mut Core<N>) -> Result<bool, FtlError> {
        Ok(false)
    }

    /// Changes are made in RAM. Each page of the trim map may be programmed before an erase.
    fn most_work(&self, _: u64, collections: u64) -> Most {
        Most::pages(0, if collections > 0 { self.trim_pages().into() } else { 0 })
    }

    fn reserve_pages(&self) -> u32 {
        0
    }

    fn footprint_pages(&self) -> u32 {
        0
    }

    fn reports(&self) -> u32 {
        1
    }

    fn most_deaths(&self) -> u32 {
        1
    }

    #[inline]
    fn hint(&self, lpn: Lpn) -> Ppn {
        self.table.get(lpn.index()).copied().unwrap_or(Ppn::NONE)
    }

    fn dump<N: Nand>(&self, _: &mut N) -> Result<Vec<Ppn>, FtlError> {
        Ok(self.table.clone())
    }

    fn inspect(&self, inspector: &mut dyn Inspector) {
        self.trims.inspect(inspector);
    }

    fn ram(&self, report: &mut RamReport) {
        let bytes = (self.table.capacity() * size_of::<Ppn>()) as u64;
        report.push(RamItem { name: "translation_table", bytes });
        self.trims.ram(report);
    }
}
