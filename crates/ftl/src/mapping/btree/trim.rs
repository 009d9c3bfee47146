//! Trims that are in flash when they are done.

use super::{BtreeMap, Item, Purpose, is_page};
use crate::contract::FtlError;
use crate::mapping::btree::tree::Place;
use crate::space::core::Core;
use core::ops::{ControlFlow, Range};
use nand::{Lpn, Nand, Ppn};

/// Logical pages that one step of a trim forgets at most, because each can be reported to the
/// validity store.
pub(super) const STEP: u32 = 256;

impl BtreeMap {
    /// Forgets logical pages of one leaf from `lpn` on, at most `count`; answers how many. The leaf
    /// takes every dirty entry of it, because only then does it speak for the pages that it
    /// forgets. If it has no room for them, it is halved instead, and the answer is 0.
    pub(super) fn trim_leaf<N: Nand>(&mut self, core: &mut Core<N>, lpn: Lpn, count: u32) -> Result<u32, FtlError> {
        let mut place = self.leaf_place(core, lpn.0)?;
        self.tree.read(core, place, Purpose::Translation, &mut self.leaf)?;
        if self.leaf.len() + 2 > self.tree.capacity {
            self.split_leaf(core, lpn.0)?;
            place = self.leaf_place(core, lpn.0)?;
            self.tree.read(core, place, Purpose::Translation, &mut self.leaf)?;
        }
        let count = count.min(place.end - lpn.0).min(STEP);
        debug_assert!(count > 0);
        if !self.takes_dirty(place.end, lpn.0..lpn.0 + count) {
            self.halve_leaf(core, lpn.0)?;
            return Ok(0);
        }
        let before = core.deaths.noted();
        if let Err(error) = self.trim_range(core, place, lpn.0..lpn.0 + count) {
            core.deaths.take_back(before);
            return Err(error);
        }
        Ok(count)
    }

    /// Forgets logical pages of the leaf at hand.
    fn trim_range<N: Nand>(&mut self, core: &mut Core<N>, place: Place, range: Range<u32>) -> Result<(), FtlError> {
        let mut changed = false;
        for lpn in range.clone() {
            let in_flash = Self::find_in_leaf(core, &self.leaf, self.tree.item(place).value, lpn)?;
            let now = self.cmt.find(Lpn(lpn)).map_or(in_flash, |slot| self.cmt.ppn(slot));
            changed |= in_flash.is_some() || now.is_some();
            if is_page(now) {
                core.page_died(now);
            }
            self.leaf.set(lpn, Ppn::NONE, place.end);
        }
        if changed { self.program_trimmed(core, place, range) } else { Ok(()) }
    }

    /// Whether the leaf at hand has room for every dirty entry of it once it has forgotten a range.
    /// The leaf stays as it is.
    fn takes_dirty(&mut self, end: u32, range: Range<u32>) -> bool {
        self.sibling.copy(&self.leaf);
        range.clone().for_each(|lpn| self.leaf.set(lpn, Ppn::NONE, end));
        let room = self.tree.capacity;
        let mut fits = self.leaf.len() <= room;
        self.for_each_dirty(end, |leaf, cmt, slot| {
            let lpn = cmt.lpn(slot).0;
            fits &= range.contains(&lpn) || leaf.set_within(lpn, cmt.ppn(slot), end, room);
            if fits { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        core::mem::swap(&mut self.leaf, &mut self.sibling);
        fits
    }

    /// Programs the leaf at hand, which does not map a range any more.
    fn program_trimmed<N: Nand>(
        &mut self,
        core: &mut Core<N>,
        place: Place,
        range: Range<u32>,
    ) -> Result<(), FtlError> {
        debug_assert!(self.leaf.first() <= range.start && range.start < range.end && range.end <= place.end);
        let seen = self.absorb(place.end, core.seq, range.clone());
        debug_assert!(self.leaf.speaks_for == core.seq, "a mount may find again what {range:?} was");
        let new = self.tree.program(core, &mut self.leaf, place.end, Purpose::Translation)?;
        let old = self.tree.replace(place, new);
        for lpn in range {
            if let Some(slot) = self.cmt.find(Lpn(lpn)) {
                self.cmt.set_ppn(slot, Ppn::NONE);
                if self.cmt.is_dirty(slot) {
                    self.cmt.mark_clean(slot);
                }
            }
        }
        self.mark_agreed_clean(place.end, seen);
        if old.is_some() {
            core.translation_page_died(old);
        }
        Ok(())
    }

    /// Splits the leaf at hand, in which `lpn` is.
    fn split_leaf<N: Nand>(&mut self, core: &mut Core<N>, lpn: u32) -> Result<(), FtlError> {
        let purpose = Purpose::Translation;
        self.tree.make_room(core, lpn, purpose)?;
        let place = self.leaf_place(core, lpn)?;
        debug_assert!(self.tree.item(place).key == self.leaf.first(), "the leaf at hand is another");
        let key = self.leaf.split(&mut self.sibling);
        self.program_halves(core, place, key, purpose)
    }

    /// Programs the leaf at hand, in which `lpn` is, as two that cover as many logical pages each.
    fn halve_leaf<N: Nand>(&mut self, core: &mut Core<N>, lpn: u32) -> Result<(), FtlError> {
        let purpose = Purpose::Translation;
        self.tree.make_room(core, lpn, purpose)?;
        let place = self.leaf_place(core, lpn)?;
        debug_assert!(self.tree.item(place).key == self.leaf.first(), "the leaf at hand is another");
        let key = self.leaf.halve(&mut self.sibling, place.end);
        self.program_halves(core, place, key, purpose)
    }

    /// Programs the leaf at hand and its sibling, which begins at `key`, in place of the leaf at a
    /// place.
    pub(super) fn program_halves<N: Nand>(
        &mut self,
        core: &mut Core<N>,
        place: Place,
        key: u32,
        purpose: Purpose,
    ) -> Result<(), FtlError> {
        let lower = self.tree.program(core, &mut self.leaf, key, purpose)?;
        let upper = match self.tree.program(core, &mut self.sibling, place.end, purpose) {
            Ok(upper) => upper,
            Err(error) => {
                core.translation_page_died(lower);
                return Err(error);
            }
        };
        self.tree.insert_after(place, Item { key, value: upper });
        let old = self.tree.replace(place, lower);
        if old.is_some() {
            core.translation_page_died(old);
        }
        Ok(())
    }
}
