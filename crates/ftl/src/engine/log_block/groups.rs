//! Which blocks each group of neighbouring logical blocks has, in the order in which it got them,
//! and which group with more than it is owed was used least recently.
//!
//! Lists threaded through an array, so that a group may have any number: eight bytes a block, and
//! twenty a group.

use super::lru::Lru;
use alloc::vec::Vec;
use nand::{BlockId, Geometry};

/// No group.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Member {
    group: u32,
    next: BlockId,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    oldest: BlockId,
    newest: BlockId,
    count: u32,
}

/// How many blocks a group can always have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owed {
    /// None: every block listed is an extra one.
    Nothing,
    /// One for each of its logical blocks.
    OneForEach,
}

/// The blocks of every group.
#[derive(Debug)]
pub struct Groups {
    /// N: logical blocks of a group.
    each: u32,
    logical_blocks: u32,
    owed: Owed,
    members: Vec<Member>,
    groups: Vec<Group>,
    /// Groups that have more blocks than they are owed, by their last use.
    recent: Lru,
}

impl Groups {
    /// Groups of `each` logical blocks, without a block.
    #[must_use]
    pub fn new(geometry: &Geometry, logical_blocks: u32, each: u32, owed: Owed) -> Self {
        let groups = logical_blocks.div_ceil(each);
        let empty = Group { oldest: BlockId::NONE, newest: BlockId::NONE, count: 0 };
        Self {
            each,
            logical_blocks,
            owed,
            members: alloc::vec![Member { group: NONE, next: BlockId::NONE }; geometry.blocks() as usize],
            groups: alloc::vec![empty; groups as usize],
            recent: Lru::new(groups),
        }
    }

    /// How many groups there are.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.groups.len() as u32
    }

    /// Whether there is no group.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The group of a logical block.
    #[inline]
    #[must_use]
    pub const fn group(&self, lbn: u32) -> u32 {
        debug_assert!(lbn < self.logical_blocks);
        lbn / self.each
    }

    /// The group that has a block.
    #[must_use]
    pub fn owner(&self, block: BlockId) -> Option<u32> {
        let group = self.members[block.index()].group;
        (group != NONE).then_some(group)
    }

    /// How many blocks a group has beyond those that it is owed.
    #[inline]
    #[must_use]
    pub fn excess(&self, group: u32) -> u32 {
        let owed = match self.owed {
            Owed::Nothing => 0,
            Owed::OneForEach => self.each.min(self.logical_blocks - group * self.each),
        };
        self.groups[group as usize].count.saturating_sub(owed)
    }

    /// The block that a group got last.
    #[inline]
    #[must_use]
    pub fn newest(&self, group: u32) -> Option<BlockId> {
        let block = self.groups[group as usize].newest;
        block.is_some().then_some(block)
    }

    /// The blocks of a group, the oldest first.
    pub fn blocks(&self, group: u32) -> impl Iterator<Item = BlockId> + '_ {
        let some = |block: BlockId| block.is_some().then_some(block);
        core::iter::successors(some(self.groups[group as usize].oldest), move |block| {
            some(self.members[block.index()].next)
        })
    }

    /// Groups that have more blocks than they are owed, the one used least recently first.
    pub fn by_last_use(&self) -> impl Iterator<Item = u32> + '_ {
        self.recent.iter()
    }

    /// The group used next after one that has more blocks than it is owed.
    #[inline]
    #[must_use]
    pub fn used_after(&self, group: u32) -> Option<u32> {
        self.recent.newer(group)
    }

    /// A group is used.
    #[inline]
    pub fn touch(&mut self, group: u32) {
        if self.excess(group) > 0 {
            self.recent.touch(group);
        }
    }

    /// A group gets a block that no group has.
    pub fn push(&mut self, group: u32, block: BlockId) {
        debug_assert!(self.owner(block).is_none(), "{block} belongs to a group");
        self.members[block.index()] = Member { group, next: BlockId::NONE };
        let entry = &mut self.groups[group as usize];
        entry.count += 1;
        let before = core::mem::replace(&mut entry.newest, block);
        if before.is_some() {
            self.members[before.index()].next = block;
        } else {
            entry.oldest = block;
        }
        self.touch(group);
        debug_assert!(self.newest(group) == Some(block) && self.recent.contains(group) == (self.excess(group) > 0));
    }

    /// The group that has a block loses it.
    pub fn remove(&mut self, block: BlockId) {
        let Some(group) = self.owner(block) else { return };
        let before = self.blocks(group).take_while(|&other| other != block).last();
        let Member { next, .. } =
            core::mem::replace(&mut self.members[block.index()], Member { group: NONE, next: BlockId::NONE });
        let entry = &mut self.groups[group as usize];
        entry.count -= 1;
        match before {
            Some(before) => self.members[before.index()].next = next,
            None => entry.oldest = next,
        }
        if !next.is_some() {
            entry.newest = before.unwrap_or(BlockId::NONE);
        }
        if self.excess(group) == 0 {
            self.recent.remove(group);
        }
        debug_assert!(
            self.owner(block).is_none() && self.blocks(group).count() == self.groups[group as usize].count as usize
        );
        debug_assert!(self.recent.contains(group) == (self.excess(group) > 0), "group {group} is listed wrongly");
    }

    /// Bytes of RAM held.
    #[must_use]
    pub fn ram_bytes(&self) -> u64 {
        let bytes = self.members.capacity() * size_of::<Member>() + self.groups.capacity() * size_of::<Group>();
        bytes as u64 + self.recent.ram_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nand::Dimensions;

    fn groups(owed: Owed) -> Groups {
        let dimensions = Dimensions {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks: 20,
            pages_per_block: 4,
            page_bytes: 512,
            spare_bytes: 32,
        };
        Groups::new(&Geometry::new(dimensions).unwrap(), 9, 4, owed)
    }

    #[test]
    fn only_groups_with_extra_blocks_are_ordered_by_use() {
        let mut groups = groups(Owed::OneForEach);
        groups.push(2, BlockId(0));
        assert_eq!((groups.len(), groups.excess(2), groups.by_last_use().next()), (3, 0, None));
        groups.push(2, BlockId(1));
        (2..7).for_each(|block| groups.push(0, BlockId(block)));
        assert_eq!((groups.excess(0), groups.by_last_use().collect::<Vec<_>>()), (1, [2, 0].into()));
        groups.touch(2);
        groups.remove(BlockId(4));
        groups.touch(0);
        assert_eq!((groups.excess(0), groups.by_last_use().collect::<Vec<_>>()), (0, [2].into()));
    }

    #[test]
    fn blocks_stay_in_the_order_in_which_a_group_got_them() {
        let mut groups = groups(Owed::Nothing);
        assert!(groups.group(8) == 2 && groups.newest(2).is_none() && groups.by_last_use().next().is_none());
        for (group, block) in [(0, 7), (1, 3), (0, 5), (0, 9)] {
            groups.push(group, BlockId(block));
        }
        let blocks = |groups: &Groups, group| groups.blocks(group).map(|block| block.0).collect::<Vec<_>>();
        assert!(blocks(&groups, 0) == [7, 5, 9] && groups.newest(0) == Some(BlockId(9)) && groups.excess(0) == 3);
        assert_eq!(groups.by_last_use().collect::<Vec<_>>(), [1, 0]);
        groups.remove(BlockId(5));
        assert!(blocks(&groups, 0) == [7, 9] && groups.owner(BlockId(5)).is_none());
        groups.remove(BlockId(9));
        assert!(groups.newest(0) == Some(BlockId(7)));
        groups.remove(BlockId(7));
        groups.push(0, BlockId(5));
        groups.remove(BlockId(3));
        assert!(blocks(&groups, 0) == [5] && blocks(&groups, 1).is_empty());
        assert_eq!(groups.by_last_use().collect::<Vec<_>>(), [0]);
    }
}
