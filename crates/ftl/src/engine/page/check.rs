//! The invariants that tie mapping, validity, space and flash together.

use super::{Mapping, Nand, PageFtl, Validity};
use crate::mapping::is_page;
use crate::space::blocks::BlockState;
use crate::validity::PageSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use nand::{BlockId, NandError, PageKind};

impl<N: Nand, M: Mapping, V: Validity> PageFtl<N, M, V> {
    /// 1. Every mapped page is a programmed page of host data that names its logical page.
    /// 2. No two logical pages share a page.
    /// 3. No mapped page is dead in the eyes of the validity store.
    /// 4. A block's count of live pages is exact, or, if superseded pages are found late, at least as large.
    /// 5. Enough blocks are free.
    pub(super) fn check_invariants(&mut self) -> Result<(), String> {
        let geometry = *self.core.space.geometry();
        let table = self.healing(|ftl| ftl.mapping.dump(ftl.core.flash.nand_mut())).map_err(|e| e.to_string())?;
        let mut owner = vec![u32::MAX; geometry.pages() as usize];
        for (lpn, &ppn) in table.iter().enumerate().filter(|(_, ppn)| is_page(**ppn)) {
            let Some(owner) = owner.get_mut(ppn.index()) else {
                return Err(format!("logical page {lpn} is mapped to {ppn}, which the device does not have"));
            };
            if core::mem::replace(owner, lpn as u32) != u32::MAX {
                return Err(format!("{ppn} is mapped twice, once for logical page {lpn}"));
            }
            match self.core.flash.nand_mut().read_spare(ppn) {
                // Worn: reading the logical page says so.
                Err(NandError::Uncorrectable { .. }) => {}
                Ok(Some(s)) if s.kind == PageKind::User && s.tag as usize == lpn => {}
                other => return Err(format!("logical page {lpn} is mapped to {ppn}, which holds {other:?}")),
            }
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
            self.validity.query(&mut self.core, block, &mut dead).map_err(|e| e.to_string())?;
            let mut live = 0;
            for offset in 0..geometry.pages_per_block() {
                let ppn = geometry.page_at(block, offset);
                if owner[ppn.index()] != u32::MAX {
                    live += 1;
                    if dead.contains(offset) {
                        return Err(format!("{ppn} holds logical page {} but counts as dead", owner[ppn.index()]));
                    }
                }
            }
            let counted = self.core.space.valid(block);
            if counted < live || (!M::LAZY && counted != live) {
                return Err(format!("{block} ({state:?}) holds {live} live pages but counts {counted}"));
            }
        }
        Ok(())
    }
}
