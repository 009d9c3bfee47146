//! The whole table in RAM: four bytes a logical page, no flash operation ever.
//!
//! What every other table is measured against (PPM in GeckoFTL's terms): 1.4 GiB at 2 TiB and R = 0.7.

use super::{Mapping, is_page};
use crate::contract::{FtlError, RamItem, RamReport};
use crate::flash::Purpose;
use crate::space::core::{Context, Origin};
use crate::validity::Validity;
use alloc::vec::Vec;
use nand::{Lpn, Nand, Ppn, Spare};

/// A page table in RAM.
#[derive(Debug)]
pub struct RamMap {
    table: Vec<Ppn>,
}

impl RamMap {
    /// The table of a device on which nothing was written.
    #[must_use]
    pub fn new(logical_pages: u32) -> Self {
        Self { table: alloc::vec![Ppn::NONE; logical_pages as usize] }
    }

    /// A table as recovery found it.
    #[must_use]
    pub const fn restored(table: Vec<Ppn>) -> Self {
        Self { table }
    }
}

impl Mapping for RamMap {
    const LAZY: bool = false;

    #[inline]
    fn lookup<N: Nand, V: Validity>(&mut self, _: &mut Context<'_, N, V>, lpn: Lpn) -> Result<Ppn, FtlError> {
        Ok(self.table[lpn.index()])
    }

    fn peek<N: Nand, V: Validity>(&mut self, ctx: &mut Context<'_, N, V>, lpn: Lpn) -> Result<Ppn, FtlError> {
        self.lookup(ctx, lpn)
    }

    #[inline]
    fn record<N: Nand, V: Validity>(
        &mut self,
        ctx: &mut Context<'_, N, V>,
        lpn: Lpn,
        ppn: Ppn,
    ) -> Result<(), FtlError> {
        let old = core::mem::replace(&mut self.table[lpn.index()], ppn);
        if is_page(old) { ctx.page_died(old) } else { Ok(()) }
    }

    #[inline]
    fn moved<N: Nand, V: Validity>(
        &mut self,
        _: &mut Context<'_, N, V>,
        lpn: Lpn,
        from: Ppn,
        to: Ppn,
    ) -> Result<(), FtlError> {
        debug_assert!(self.table[lpn.index()] == from, "{lpn} was not at {from} when it moved");
        self.table[lpn.index()] = to;
        Ok(())
    }

    #[inline]
    fn superseded(&mut self, lpn: Lpn, ppn: Ppn) -> bool {
        self.table.get(lpn.index()) != Some(&ppn)
    }

    fn owns(&self, _: Ppn, _: &Spare) -> bool {
        false
    }

    /// It owns no page, so it is never asked.
    fn move_page<N: Nand, V: Validity>(
        &mut self,
        _: &mut Context<'_, N, V>,
        origin: Origin,
        _: Purpose,
    ) -> Result<(), FtlError> {
        debug_assert!(false, "a table in RAM has no page at {}", origin.ppn);
        Ok(())
    }

    #[inline]
    fn due(&self) -> bool {
        false
    }

    fn maintain<N: Nand, V: Validity>(&mut self, _: &mut Context<'_, N, V>) -> Result<(), FtlError> {
        Ok(())
    }

    fn reveal<N: Nand, V: Validity>(&mut self, _: &mut Context<'_, N, V>) -> Result<bool, FtlError> {
        Ok(false)
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

    #[inline]
    fn hint(&self, lpn: Lpn) -> Ppn {
        self.table.get(lpn.index()).copied().unwrap_or(Ppn::NONE)
    }

    fn dump<N: Nand>(&self, _: &mut N) -> Result<Vec<Ppn>, FtlError> {
        Ok(self.table.clone())
    }

    fn ram(&self, report: &mut RamReport) {
        let bytes = (self.table.capacity() * size_of::<Ppn>()) as u64;
        report.push(RamItem { name: "translation_table", bytes });
    }
}
