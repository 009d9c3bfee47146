//! The invariants that tie maps, blocks and flash together.

use super::area::Area;
use super::blocks::Role;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use nand::{BlockId, Lpn, Nand, NandError, PageKind};

impl<N: Nand> Area<N> {
    /// 1. Every mapped page is a programmed page of host data that names its logical page, and no
    ///    two share one.
    /// 2. A block counts as many live pages as are mapped to it; free and bad blocks hold none.
    /// 3. The data block of a logical block knows its owner, and every data block is one.
    /// 4. The counts of log blocks and free blocks are exact.
    ///
    /// # Errors
    /// The first violation, in words.
    pub fn check(&mut self) -> Result<(), String> {
        let geometry = *self.blocks.geometry();
        let mut valid = vec![0; geometry.blocks() as usize];
        let mut taken = vec![false; geometry.pages() as usize];
        for lpn in (0..self.table.logical_blocks() * geometry.pages_per_block()).map(Lpn) {
            let ppn = self.locate(lpn);
            if !ppn.is_some() {
                continue;
            }
            if lpn.0 >= self.logical_pages || self.table.is_lost(lpn) {
                return Err(format!("{lpn} is lost or outside the logical device, but mapped to {ppn}"));
            }
            if core::mem::replace(&mut taken[ppn.index()], true) {
                return Err(format!("{ppn} is mapped twice, once for {lpn}"));
            }
            valid[geometry.block_of(ppn).index()] += 1;
            match self.flash.nand_mut().probe(ppn) {
                Ok(s) if s.kind == PageKind::User && s.tag == lpn.0 => {}
                // A trimmed page that a checkpoint brought back, from a block that was being erased
                // when power was cut.
                Err(NandError::Erased { .. } | NandError::Uncorrectable { .. })
                    if self.blocks.is_restored(geometry.block_of(ppn)) => {}
                other => return Err(format!("{lpn} is mapped to {ppn}, which holds {other:?}")),
            }
        }
        let mut roles = [0; 6];
        for block in (0..geometry.blocks()).map(BlockId) {
            let (role, counted, found) = (self.blocks.role(block), self.blocks.valid(block), valid[block.index()]);
            roles[role as usize] += 1;
            if counted != found || (matches!(role, Role::Free | Role::Bad) && found > 0) {
                return Err(format!("{block} ({role:?}) holds {found} live pages but counts {counted}"));
            }
            let owner = self.blocks.owner(block);
            if role == Role::Data && self.table.data(owner) != block {
                return Err(format!("{block} is not the data block of logical block {owner}"));
            }
            if (role == Role::Bad) != self.flash.nand().is_bad(block) {
                return Err(format!("{block} is {role:?}, which the device denies"));
            }
        }
        let counts = [
            ("free", Role::Free, self.blocks.free_blocks()),
            ("log", Role::Log, self.blocks.logs()),
            ("page-mapped", Role::Paged, self.blocks.paged()),
            ("kept for checkpoints", Role::Checkpoint, self.blocks.checkpoints()),
            ("bad", Role::Bad, self.blocks.bad_blocks()),
        ];
        for (name, role, counted) in counts {
            let found = roles[role as usize];
            if counted != found {
                return Err(format!("{found} blocks are {name} but {counted} are counted"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(in crate::engine) mod tests {
    use super::super::area::{AreaOptions, Room};
    use super::*;
    use crate::config::Config;
    use crate::flash::Flash;
    use nand::{Capabilities, Dimensions, Geometry, Ppn, ProgramOrder, SimNand, Stamp};

    pub(in crate::engine) const PAGES: u32 = 4;
    /// The last logical block has two pages.
    pub(in crate::engine) const LOGICAL_PAGES: u32 = 22;

    pub(in crate::engine) fn device() -> Flash<SimNand> {
        let geometry = Geometry::new(Dimensions {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks: 20,
            pages_per_block: PAGES,
            page_bytes: 512,
            spare_bytes: 32,
        });
        Flash::new(SimNand::new(geometry.unwrap(), Capabilities::MODERN))
    }

    pub(in crate::engine) fn stamp(lpn: Lpn) -> Stamp {
        Stamp { lpn, version: 1 }
    }

    /// An area on which nothing was written.
    pub(in crate::engine) fn empty(picks_victims: bool) -> Area<SimNand> {
        let options = AreaOptions { name: "log blocks", least_logs: 2, order: ProgramOrder::Sequential, picks_victims };
        Area::format(device(), &Config::new(LOGICAL_PAGES), options, &|_, logs| Room { logs, fused: 2 }).unwrap()
    }

    /// Every page at home, but one that was overwritten.
    fn area() -> Area<SimNand> {
        let mut area = empty(false);
        for lpn in (0..LOGICAL_PAGES).map(Lpn) {
            assert!(area.write_home(lpn, &stamp(lpn)).unwrap());
        }
        let log = area.open_log(0).unwrap();
        assert!(area.write_log(log, 0, Lpn(1), &stamp(Lpn(1))).unwrap());
        area.check().unwrap();
        area
    }

    fn broken(harm: impl FnOnce(&mut Area<SimNand>)) -> String {
        let mut area = area();
        harm(&mut area);
        area.check().unwrap_err()
    }

    #[test]
    fn a_map_that_leads_astray_is_named() {
        let beyond = broken(|area| area.table.came_home(Lpn(LOGICAL_PAGES)));
        assert!(beyond.contains("outside the logical device"), "{beyond}");
        let twice = broken(|area| {
            area.table.replace(1, area.table.data(0));
        });
        assert!(twice.contains("mapped twice, once for"), "{twice}");
        let other = broken(|area| {
            let [two, three] = [2, 3].map(|lbn| area.table.data(lbn));
            area.table.replace(2, three);
            area.table.replace(3, two);
        });
        assert!(other.contains("which holds"), "{other}");
        let erased = broken(|area| area.flash.nand_mut().erase(area.table.data(2)).unwrap());
        assert!(erased.contains("which holds") && erased.contains("Erased"), "{erased}");
    }

    #[test]
    fn a_block_that_is_not_what_it_counts_as_is_named() {
        for valid in [1, 3] {
            let counts = broken(|area| area.blocks.set_valid(area.table.data(5), valid));
            assert!(counts.contains("holds 2 live pages but counts"), "{counts}");
        }
        let owner = broken(|area| {
            area.blocks.take(Role::Data, 3).unwrap();
        });
        assert!(owner.contains("is not the data block of logical block 3"), "{owner}");
        let role = broken(|area| {
            let mut blocks = (0..area.blocks.geometry().blocks()).map(BlockId);
            let free = blocks.rfind(|block| area.blocks.role(*block) == Role::Free).unwrap();
            area.flash.nand_mut().mark_bad(free).unwrap();
        });
        assert!(role.contains("which the device denies"), "{role}");
        let free = broken(|area| {
            let mut blocks = (0..area.blocks.geometry().blocks()).map(BlockId);
            let free = blocks.find(|block| area.blocks.role(*block) == Role::Free).unwrap();
            area.blocks.withdraw(free);
        });
        assert!(free.contains("blocks are free but"), "{free}");
        let data = area();
        assert_eq!(data.locate(Lpn(0)), Ppn(data.table.data(0).0 * PAGES));
    }
}
