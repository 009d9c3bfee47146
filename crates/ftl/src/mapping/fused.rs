//! The page map of logical blocks that are mapped by page while the rest is mapped by block
//! (Janus-FTL, section 3.2).
//!
//! A logical block that is fused takes a group of one entry a page from a pool; a block that is
//! defused gives it back. The pool, not the device, decides the RAM: mapped by block, a logical
//! block costs four bytes here.

use super::bits::Bits;
use super::is_page;
use crate::contract::{RamItem, RamReport};
use alloc::vec::Vec;
use nand::Ppn;

const NO_GROUP: u32 = u32::MAX;

/// The page map of fused logical blocks.
#[derive(Debug)]
pub struct FusedPages {
    logical_blocks: u32,
    pages_per_block: u32,
    device_pages: u32,
    most: u32,
    /// The group of each logical block.
    groups: Vec<u32>,
    entries: Vec<Ppn>,
    free_groups: Vec<u32>,
    /// Physical pages that an entry names: what a collector has to move.
    live: Bits,
}

impl FusedPages {
    /// A map in which nothing is fused, for at most `most` of `logical_blocks`, on a device of
    /// `device_pages`. With `most` 0 it takes no memory.
    #[must_use]
    pub fn new(logical_blocks: u32, pages_per_block: u32, most: u32, device_pages: u32) -> Self {
        let mut map = Self {
            logical_blocks,
            pages_per_block,
            device_pages,
            most,
            groups: Vec::new(),
            entries: Vec::new(),
            free_groups: Vec::new(),
            live: Bits::new(0),
        };
        map.grow(most);
        map
    }

    /// Whether a logical block is mapped by page.
    #[inline]
    #[must_use]
    pub fn is_fused(&self, lbn: u32) -> bool {
        self.groups.get(lbn as usize).is_some_and(|&group| group != NO_GROUP)
    }

    /// Logical blocks that can still be fused.
    #[inline]
    #[must_use]
    pub fn free_groups(&self) -> u32 {
        self.free_groups.len() as u32
    }

    /// Gives a logical block a group of empty entries; `false` if none is left.
    pub fn fuse(&mut self, lbn: u32) -> bool {
        debug_assert!(!self.is_fused(lbn), "logical block {lbn} is fused twice");
        let Some(group) = self.free_groups.pop() else { return false };
        self.groups[lbn as usize] = group;
        debug_assert!(
            (0..self.pages_per_block).all(|offset| !self.get(lbn, offset).is_some()),
            "group {group} is in use"
        );
        true
    }

    /// Makes room for so many more fused logical blocks, until [`FusedPages::shrink`].
    pub fn grow(&mut self, more: u32) {
        if more > 0 && self.groups.is_empty() {
            self.groups = alloc::vec![NO_GROUP; self.logical_blocks as usize];
            self.live = Bits::new(self.device_pages);
        }
        let first = self.entries.len() as u32 / self.pages_per_block;
        self.free_groups.extend((first..first + more).rev());
        self.entries.resize(((first + more) * self.pages_per_block) as usize, Ppn::NONE);
        debug_assert!(self.free_groups.iter().all(|group| (group * self.pages_per_block) < self.entries.len() as u32));
        debug_assert!(self.is_exact(), "a group is neither free nor of a logical block");
    }

    /// Whether every group of entries is free or of one logical block.
    fn is_exact(&self) -> bool {
        let fused = self.groups.iter().filter(|group| **group != NO_GROUP).count();
        (fused + self.free_groups.len()) * self.pages_per_block as usize == self.entries.len()
    }

    /// Fused logical blocks beyond the most that there was to be room for.
    #[must_use]
    pub fn excess(&self) -> u32 {
        let groups = self.entries.len() as u32 / self.pages_per_block;
        (groups - self.free_groups()).saturating_sub(self.most)
    }

    /// Gives back what [`FusedPages::grow`] took, when nothing is in excess.
    pub fn shrink(&mut self) {
        debug_assert!(self.excess() == 0, "more logical blocks are fused than there is to be room for");
        let (most, pages) = (self.most, self.pages_per_block as usize);
        self.free_groups.retain(|&group| group < most);
        for group in self.groups.iter_mut().filter(|group| **group != NO_GROUP && **group >= most) {
            if let Some(lower) = self.free_groups.pop() {
                let from = *group as usize * pages;
                self.entries.copy_within(from..from + pages, lower as usize * pages);
                *group = lower;
            }
        }
        self.entries.truncate(most as usize * pages);
        debug_assert!(self.groups.iter().all(|group| *group == NO_GROUP || *group < most));
        self.entries.shrink_to_fit();
        self.free_groups.shrink_to(most as usize);
        if most == 0 {
            (self.groups, self.live) = (Vec::new(), Bits::new(0));
        }
        debug_assert!(self.is_exact(), "a group is neither free nor of a logical block");
    }

    /// Takes back the group of a logical block, every entry of which is empty.
    pub fn defuse(&mut self, lbn: u32) {
        debug_assert!(self.is_fused(lbn), "logical block {lbn} is not fused");
        let group = core::mem::replace(&mut self.groups[lbn as usize], NO_GROUP);
        debug_assert!(
            self.entries[(group * self.pages_per_block) as usize..][..self.pages_per_block as usize]
                .iter()
                .all(|ppn| !is_page(*ppn)),
            "logical block {lbn} is defused while it has pages"
        );
        self.free_groups.push(group);
        debug_assert!(self.free_groups.len() * self.pages_per_block as usize <= self.entries.len());
    }

    /// Where page `offset` of a fused logical block is, or [`Ppn::NONE`].
    #[inline]
    #[must_use]
    pub fn get(&self, lbn: u32, offset: u32) -> Ppn {
        debug_assert!(self.is_fused(lbn) && offset < self.pages_per_block);
        self.entries[(self.groups[lbn as usize] * self.pages_per_block + offset) as usize]
    }

    /// Records where page `offset` of a fused logical block is; answers where it was.
    #[inline]
    pub fn set(&mut self, lbn: u32, offset: u32, ppn: Ppn) -> Ppn {
        debug_assert!(self.is_fused(lbn) && offset < self.pages_per_block);
        debug_assert!(!is_page(ppn) || !self.live.has(ppn.0), "{ppn} lives already");
        let at = (self.groups[lbn as usize] * self.pages_per_block + offset) as usize;
        let old = core::mem::replace(&mut self.entries[at], ppn);
        if is_page(old) {
            debug_assert!(self.live.has(old.0), "{old} was mapped and did not live");
            self.live.take(old.0);
        }
        if is_page(ppn) {
            self.live.set(ppn.0);
        }
        old
    }

    /// Whether a physical page holds the newest copy of a page of a fused logical block.
    #[inline]
    #[must_use]
    pub fn lives(&self, ppn: Ppn) -> bool {
        self.live.has(ppn.0)
    }

    /// The RAM that it holds.
    pub fn ram(&self, report: &mut RamReport) {
        let words = self.groups.capacity() + self.entries.capacity() + self.free_groups.capacity();
        report.push(RamItem { name: "fused_page_map", bytes: (words * size_of::<u32>()) as u64 });
        report.push(RamItem { name: "paged_area_live_bits", bytes: self.live.bytes() });
    }
}
