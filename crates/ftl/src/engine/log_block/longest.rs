//! Which group has the most blocks, of several the one used least recently, without a look at all.
//!
//! 1. Groups with a block stand in one list by their last use ([`Groups::by_last_use`]). For each
//!    small number of blocks a cursor into that list is kept, before which no group has exactly so
//!    many.
//! 2. That stays true by itself: a group that gets a block goes to the end of the list, and so does
//!    one that is used. So a cursor only moves on, past each group once for each use of it.
//! 3. A group that loses blocks usually loses all. One that keeps some sends a cursor back to the
//!    front when somebody asks next.
//! 4. If a group has more blocks than there are cursors, all are looked at: few can have so many.
//!
//! No more RAM than the cursors.

use super::groups::Groups;
use core::cmp::Reverse;
use nand::BlockId;

/// Numbers of blocks that have a cursor, 0 among them.
const LEVELS: usize = 32;

/// No group: the cursor is behind the last.
const NONE: u32 = u32::MAX;

/// Groups of which none is owed a block, and which of them has the most.
#[derive(Debug)]
pub struct Longest {
    groups: Groups,
    cursors: [u32; LEVELS],
    /// Groups without a cursor for so many blocks.
    beyond: u32,
    /// The group that lost a block last and has some left, or [`NONE`].
    shrunk: u32,
}

impl Longest {
    /// Over groups that have no block.
    #[must_use]
    pub const fn new(groups: Groups) -> Self {
        Self { groups, cursors: [NONE; LEVELS], beyond: 0, shrunk: NONE }
    }

    /// The groups, to look at.
    #[inline]
    #[must_use]
    pub const fn groups(&self) -> &Groups {
        &self.groups
    }

    /// As [`Groups::touch`].
    #[inline]
    pub fn touch(&mut self, group: u32) {
        if self.groups.excess(group) > 0 {
            self.leave(group);
            self.groups.touch(group);
            self.arrived(group);
        }
    }

    /// As [`Groups::push`].
    pub fn push(&mut self, group: u32, block: BlockId) {
        self.leave(group);
        self.groups.push(group, block);
        self.beyond += u32::from(self.groups.excess(group) as usize == LEVELS);
        self.arrived(group);
    }

    /// As [`Groups::remove`].
    pub fn remove(&mut self, block: BlockId) {
        let Some(group) = self.groups.owner(block) else { return };
        if self.shrunk != group {
            self.set_cursor_back();
        }
        self.beyond -= u32::from(self.groups.excess(group) as usize == LEVELS);
        if self.groups.excess(group) == 1 {
            self.leave(group);
            self.shrunk = NONE;
        } else {
            self.shrunk = group;
        }
        self.groups.remove(block);
    }

    /// The group with the most blocks; of several the one used least recently.
    pub fn longest(&mut self) -> Option<u32> {
        self.set_cursor_back();
        if self.beyond > 0 {
            return self.groups.by_last_use().min_by_key(|&group| Reverse(self.groups.excess(group)));
        }
        for level in (1..LEVELS).rev() {
            let mut at = self.cursors[level];
            while at != NONE && self.groups.excess(at) as usize != level {
                at = self.groups.used_after(at).unwrap_or(NONE);
            }
            self.cursors[level] = at;
            if at != NONE {
                return Some(at);
            }
        }
        None
    }

    /// A group leaves its place in the list.
    #[inline]
    fn leave(&mut self, group: u32) {
        if self.cursors.contains(&group) {
            let after = self.groups.used_after(group).unwrap_or(NONE);
            self.cursors.iter_mut().filter(|cursor| **cursor == group).for_each(|cursor| *cursor = after);
        }
        if self.shrunk == group {
            self.shrunk = NONE;
        }
    }

    /// A group is the last of the list now.
    #[inline]
    fn arrived(&mut self, group: u32) {
        let level = self.groups.excess(group) as usize;
        if let Some(cursor) = self.cursors.get_mut(level).filter(|cursor| **cursor == NONE) {
            *cursor = group;
        }
    }

    /// A group that lost blocks and kept some may stand before the cursor of those.
    fn set_cursor_back(&mut self) {
        let group = core::mem::replace(&mut self.shrunk, NONE);
        if group != NONE
            && let Some(cursor) = self.cursors.get_mut(self.groups.excess(group) as usize)
        {
            *cursor = self.groups.by_last_use().next().unwrap_or(NONE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::groups::Owed;
    use super::*;
    use nand::{Dimensions, Geometry};
    use proptest::prelude::*;

    fn longest(blocks: u32, groups: u32) -> Longest {
        let dimensions = Dimensions {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks,
            pages_per_block: 4,
            page_bytes: 512,
            spare_bytes: 32,
        };
        Longest::new(Groups::new(&Geometry::new(dimensions).unwrap(), groups, 1, Owed::Nothing))
    }

    proptest! {
        #[test]
        fn the_longest_is_what_a_look_at_all_finds(
            steps in prop::collection::vec((0_u32..8, 0_u32..6, any::<u32>()), 1..400),
        ) {
            const BLOCKS: u32 = 90;
            let mut groups = longest(BLOCKS, 6);
            for (step, group, number) in steps {
                let block = BlockId(number % BLOCKS);
                match step {
                    0..=3 if groups.groups.owner(block).is_none() => groups.push(if step == 3 { 0 } else { group }, block),
                    4 => groups.touch(group),
                    5 => groups.remove(block),
                    6 => while let Some(block) = groups.groups.newest(group) { groups.remove(block) },
                    _ => {}
                }
                if number % 3 > 0 {
                    let all = groups.groups.by_last_use().min_by_key(|&group| Reverse(groups.groups.excess(group)));
                    prop_assert_eq!(groups.longest(), all);
                }
            }
        }
    }

    #[test]
    fn a_group_with_more_blocks_than_cursors_is_found() {
        let mut groups = longest(80, 3);
        (0..40).for_each(|block| groups.push(1, BlockId(block)));
        (40..75).for_each(|block| groups.push(2, BlockId(block)));
        assert!(groups.longest() == Some(1) && groups.beyond == 2);
        (0..38).for_each(|block| groups.remove(BlockId(block)));
        assert!(groups.longest() == Some(2) && groups.beyond == 1);
        (40..75).for_each(|block| groups.remove(BlockId(block)));
        assert!(groups.longest() == Some(1) && groups.beyond == 0);
    }
}
