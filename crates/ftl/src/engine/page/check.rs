//! The invariants that tie mapping, validity, space and flash together.

use super::{Core, Mapping, Nand, PageFtl, Validity};
use crate::mapping::is_page;
use crate::space::blocks::BlockState;
use crate::validity::PageSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use nand::{BlockId, Lpn, NandError, PageKind, Ppn};

impl<N: Nand, M: Mapping, V: Validity> PageFtl<N, M, V> {
    /// 1. Every mapped page is a programmed page of host data that names its logical page.
    /// 2. No two logical pages share a page.
    /// 3. No mapped page is dead in the eyes of the validity store.
    /// 4. A block's count of live pages is exact, or, if superseded pages are found late, at least
    ///    as large.
    /// 5. If the table is in flash, a superseded page is dead in the eyes of the validity store, or
    ///    will be reported: else a collector would take it for live once its logical page has left
    ///    the cache.
    ///
    /// Of a disk that can only be read, 1 and 2: what else there is was left as it was when a
    /// program found no block.
    pub(super) fn check_invariants(&mut self) -> Result<(), String> {
        let geometry = *self.core.space.geometry();
        let table = self.healing(|ftl| ftl.mapping.dump(ftl.core.flash.nand_mut())).map_err(|e| e.to_string())?;
        let owner = owners(&mut self.core, &table)?;
        if self.core.is_starved() {
            return Ok(());
        }
        let mut dead = PageSet::new(geometry.pages_per_block());
        for block in (0..geometry.blocks()).map(BlockId) {
            let state = self.core.space.state(block);
            if self.core.space.kind(block) != PageKind::User
                || matches!(state, BlockState::Virgin | BlockState::Free | BlockState::Bad)
            {
                continue;
            }
            dead.clear();
            if self.validity.query(&mut self.core, block, &mut dead).is_err() {
                // As an operation does that meets a page of the store which fades.
                let again = |ftl: &mut Self| ftl.validity.query(&mut ftl.core, block, &mut dead);
                self.healing(again).map_err(|e| e.to_string())?;
                return self.check_invariants();
            }
            let mut live = 0;
            for offset in 0..geometry.pages_per_block() {
                let ppn = geometry.page_at(block, offset);
                if owner[ppn.index()] != u32::MAX {
                    live += 1;
                    if dead.contains(offset) {
                        return Err(format!("{ppn} holds logical page {} but counts as dead", owner[ppn.index()]));
                    }
                } else if self.mapping.footprint_pages() > 0 && !dead.contains(offset) {
                    self.check_superseded(ppn)?;
                }
            }
            let counted = self.core.space.valid(block);
            if counted < live || (!self.mapping.is_lazy() && counted != live) {
                return Err(format!("{block} ({state:?}) holds {live} live pages but counts {counted}"));
            }
        }
        Ok(())
    }

    /// A page that nothing maps and the validity store believes to live holds nothing, or is about
    /// to be reported. A torn page whose spare area can be read is found out when it is moved.
    fn check_superseded(&mut self, ppn: Ppn) -> Result<(), String> {
        match self.core.flash.nand_mut().probe(ppn) {
            Ok(spare) if spare.kind == PageKind::User && spare.tag < self.logical_pages => {
                let nand = self.core.flash.nand_mut();
                match self.mapping.will_report(nand, Lpn(spare.tag), ppn) {
                    Ok(true) => Ok(()),
                    Ok(false) => {
                        Err(format!("{ppn} holds a superseded copy of logical page {} but counts as live", spare.tag))
                    }
                    Err(error) => Err(error.to_string()),
                }
            }
            _ => Ok(()),
        }
    }
}

/// Invariants 1 and 2: the logical page that each page is mapped for, [`u32::MAX`] for none.
fn owners<N: Nand>(core: &mut Core<N>, table: &[Ppn]) -> Result<Vec<u32>, String> {
    let geometry = *core.space.geometry();
    let mut owner = vec![u32::MAX; geometry.pages() as usize];
    for (lpn, &ppn) in table.iter().enumerate().filter(|(_, ppn)| is_page(**ppn)) {
        let Some(owner) = owner.get_mut(ppn.index()) else {
            return Err(format!("logical page {lpn} is mapped to {ppn}, which the device does not have"));
        };
        if core::mem::replace(owner, lpn as u32) != u32::MAX {
            return Err(format!("{ppn} is mapped twice, once for logical page {lpn}"));
        }
        match core.flash.nand_mut().read_spare(ppn) {
            // Worn: reading the logical page says so.
            Err(NandError::Uncorrectable { .. }) => {}
            // Torn, with the one that superseded it lost.
            Ok(None) if core.space.state(geometry.block_of(ppn)) == BlockState::Closed => {}
            Ok(Some(s)) if s.kind == PageKind::User && s.tag as usize == lpn => {}
            other => return Err(format!("logical page {lpn} is mapped to {ppn}, which holds {other:?}")),
        }
    }
    Ok(owner)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::PageOptions;
    use super::*;
    use crate::config::Config;
    use crate::contract::{Ftl, FtlError};
    use crate::flash::Flash;
    use crate::mapping::ram::RamMap;
    use crate::validity::ram_bitmap::RamBitmap;
    use nand::{Capabilities, Dimensions, Geometry, Ppn, SimNand, Stamp};

    const BLOCKS: u32 = 24;
    const PAGES: u32 = 4;
    const OPTIONS: PageOptions = PageOptions::over("page", "ram-bitmap");

    type Disk = PageFtl<SimNand, RamMap, RamBitmap>;

    fn disk() -> Disk {
        let dimensions = Dimensions {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks: BLOCKS,
            pages_per_block: PAGES,
            page_bytes: 512,
            spare_bytes: 32,
        };
        let geometry = Geometry::new(dimensions).unwrap();
        let (map, store) = (RamMap::new(30, &geometry), RamBitmap::new(BLOCKS, PAGES));
        let flash = Flash::new(SimNand::new(geometry, Capabilities::MODERN));
        let mut disk = Disk::format(flash, &Config::new(30), OPTIONS, map, store).unwrap();
        for lpn in (0..30).chain([3, 7]).map(Lpn) {
            disk.write(lpn, &Stamp { lpn, version: 1 }).unwrap();
        }
        disk.check_invariants().unwrap();
        disk
    }

    fn broken(harm: impl FnOnce(&mut Disk)) -> String {
        let mut disk = disk();
        harm(&mut disk);
        disk.check_invariants().unwrap_err()
    }

    fn lead(disk: &mut Disk, lpn: Lpn, ppn: Ppn) {
        disk.change(|mapping, core| mapping.record(core, lpn, ppn)).unwrap();
    }

    #[test]
    fn an_invariant_that_is_broken_is_named() {
        let beyond = broken(|disk| lead(disk, Lpn(5), Ppn(BLOCKS * PAGES)));
        assert!(beyond.contains("the device does not have"), "{beyond}");
        let twice = broken(|disk| lead(disk, Lpn(6), disk.mapping.hint(Lpn(5))));
        assert!(twice.contains("is mapped twice"), "{twice}");
        let other = broken(|disk| {
            let [five, six] = [5, 6].map(|lpn| disk.mapping.hint(Lpn(lpn)));
            lead(disk, Lpn(5), six);
            lead(disk, Lpn(6), five);
        });
        assert!(other.contains("logical page 5 is mapped to") && other.contains("which holds"), "{other}");
        let dead = broken(|disk| {
            let five = disk.mapping.hint(Lpn(5));
            disk.validity.invalidate(&mut disk.core, five).unwrap();
        });
        assert!(dead.contains("holds logical page 5 but counts as dead"), "{dead}");
        let count = broken(|disk| {
            let five = disk.mapping.hint(Lpn(5));
            disk.core.space.page_died(five);
        });
        assert!(count.contains("live pages but counts"), "{count}");
    }

    #[test]
    fn an_error_about_no_page_is_no_loss_of_metadata() {
        let disk = disk();
        let damaged = |ppn| FtlError::Damaged { structure: "saved state", ppn, reason: "it is torn" };
        assert!(!disk.is_metadata_loss(&damaged(Ppn::NONE)));
        assert!(!disk.is_metadata_loss(&damaged(disk.mapping.hint(Lpn(5)))), "host data");
    }
}
