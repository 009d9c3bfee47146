//! A node of the tree: items in order of their keys, in a page.
//!
//! A page holds the node's level (4 bytes), how many items follow (4 bytes), a sequence number (8 bytes), then 8 bytes an item:
//! key and value, all little-endian. A leaf speaks for every page of host data with a smaller sequence number. An item of a leaf (level 0) is an extent: it maps the logical pages from its key up to the
//! next key, or to the leaf's end, to consecutive pages from its value on; or all of them to nothing. An item of an inner node
//! leads to the child whose first key it has.

use super::super::is_page;
use alloc::vec::Vec;
use nand::Ppn;

const HEADER_BYTES: usize = 16;
const ITEM_BYTES: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) key: u32,
    pub(super) value: Ppn,
}

/// A node in RAM.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) level: u32,
    /// A leaf says where every page of host data was that was programmed before this sequence number; 0 for an inner node.
    pub(super) speaks_for: u64,
    pub(super) items: Vec<Item>,
}

/// What an extent's value is, `n` logical pages on.
const fn follow(value: Ppn, n: u32) -> Ppn {
    if is_page(value) { Ppn(value.0.saturating_add(n)) } else { value }
}

/// How one logical page's change alters the items: `removed` from `at` on give way to the first `count` of `new`.
struct Change {
    at: usize,
    removed: usize,
    new: [Item; 3],
    count: usize,
}

fn word(page: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]])
}

impl Node {
    /// Items that fit a page.
    pub(super) const fn capacity(page_bytes: u32) -> usize {
        (page_bytes as usize - HEADER_BYTES) / ITEM_BYTES
    }

    pub(super) fn new(page_bytes: u32) -> Self {
        Self { level: 0, speaks_for: 0, items: Vec::with_capacity(Self::capacity(page_bytes) + 1) }
    }

    /// Becomes what another node of the same tree is.
    pub(super) fn copy(&mut self, from: &Self) {
        (self.level, self.speaks_for) = (from.level, from.speaks_for);
        self.items.clear();
        self.items.extend_from_slice(&from.items);
    }

    /// A place for a node, without memory for items.
    pub(super) const fn nothing() -> Self {
        Self { level: 0, speaks_for: 0, items: Vec::new() }
    }

    /// An empty leaf that begins at a key.
    pub(super) fn clear(&mut self, key: u32) {
        (self.level, self.speaks_for) = (0, 0);
        self.items.clear();
        self.items.push(Item { key, value: Ppn::NONE });
    }

    /// Leaves of a leaf what lies from `start`, which is in it, to `end`.
    pub(super) fn clip(&mut self, start: u32, end: u32) {
        let first = self.position(start);
        let value = self.find(start);
        self.items.truncate(self.items.partition_point(|item| item.key < end));
        self.items.drain(..first);
        self.items[0] = Item { key: start, value };
    }

    /// Takes a node from a page; if that is damaged, what is wrong.
    pub(super) fn parse(&mut self, page: &[u8], level: u32, key: u32, limit: u32) -> Result<(), &'static str> {
        let count = word(page, 4) as usize;
        if word(page, 0) != level || count == 0 || count > Self::capacity(page.len() as u32) {
            return Err("a node has another level than its parent says, or a count of items that does not fit a page");
        }
        self.level = level;
        self.speaks_for = u64::from(word(page, 8)) | u64::from(word(page, 12)) << 32;
        self.items.clear();
        for at in (0..count).map(|i| HEADER_BYTES + i * ITEM_BYTES) {
            self.items.push(Item { key: word(page, at), value: Ppn(word(page, at + 4)) });
        }
        if self.items[0].key != key || self.items.windows(2).any(|pair| pair[0].key >= pair[1].key) {
            return Err("the keys of a node are not in order");
        }
        let beyond = |item: &Item| is_page(item.value) && item.value.0 >= limit;
        if self.items.iter().any(beyond) {
            return Err("an item leads to a page beyond the device's last");
        }
        Ok(())
    }

    pub(super) fn format(&self, page: &mut [u8]) {
        page.fill(0xFF);
        page[..4].copy_from_slice(&self.level.to_le_bytes());
        page[4..8].copy_from_slice(&(self.items.len() as u32).to_le_bytes());
        page[8..HEADER_BYTES].copy_from_slice(&self.speaks_for.to_le_bytes());
        for (item, out) in self.items.iter().zip(page[HEADER_BYTES..].chunks_exact_mut(ITEM_BYTES)) {
            out[..4].copy_from_slice(&item.key.to_le_bytes());
            out[4..].copy_from_slice(&item.value.0.to_le_bytes());
        }
    }

    /// The item that covers a key, which is not before the first.
    pub(super) fn position(&self, key: u32) -> usize {
        self.items.partition_point(|item| item.key <= key) - 1
    }

    /// Where a leaf says that a logical page is.
    pub(super) fn find(&self, lpn: u32) -> Ppn {
        let item = self.items[self.position(lpn)];
        follow(item.value, lpn - item.key)
    }

    fn change(&self, lpn: u32, ppn: Ppn, end: u32) -> Change {
        let at = self.position(lpn);
        let Item { key: start, value } = self.items[at];
        let mut change = Change { at, removed: 1, new: [Item { key: start, value }; 3], count: 0 };
        if follow(value, lpn - start) == ppn {
            change.count = 1;
            return change;
        }
        let mut push = |key, value| {
            change.new[change.count] = Item { key, value };
            change.count += 1;
        };
        let mut joins_left = false;
        if start < lpn {
            push(start, value);
        } else if at > 0 {
            let left = self.items[at - 1];
            joins_left = follow(left.value, lpn - left.key) == ppn;
        }
        if !joins_left {
            push(lpn, ppn);
        }
        let next = self.items.get(at + 1).copied();
        let stop = next.map_or(end, |item| item.key);
        if lpn + 1 < stop {
            push(lpn + 1, follow(value, lpn + 1 - start));
        } else if next.is_some_and(|item| item.value == follow(ppn, 1)) {
            change.removed = 2;
        }
        change
    }

    /// Items that a leaf, which ends before `end`, would have once a logical page is at `ppn`.
    pub(super) fn len_with(&self, lpn: u32, ppn: Ppn, end: u32) -> usize {
        let change = self.change(lpn, ppn, end);
        self.items.len() + change.count - change.removed
    }

    /// A logical page of a leaf is at `ppn` now; extents split and merge.
    pub(super) fn set(&mut self, lpn: u32, ppn: Ppn, end: u32) {
        let change = self.change(lpn, ppn, end);
        self.items.drain(change.at..change.at + change.removed);
        for (i, item) in change.new[..change.count].iter().enumerate() {
            self.items.insert(change.at + i, *item);
        }
    }

    /// Leaves the lower half here and hands the upper half to `upper`; answers the first key of that.
    pub(super) fn split(&mut self, upper: &mut Self) -> u32 {
        let middle = self.items.len() / 2;
        (upper.level, upper.speaks_for) = (self.level, self.speaks_for);
        upper.items.clear();
        upper.items.extend_from_slice(&self.items[middle..]);
        self.items.truncate(middle);
        upper.items[0].key
    }

    pub(super) fn ram_bytes(&self) -> u64 {
        (self.items.capacity() * size_of::<Item>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf() -> Node {
        let mut node = Node::new(4096);
        node.clear(0);
        node
    }

    #[test]
    fn sequential_data_needs_one_extent_in_whatever_order_it_comes() {
        for step in [1, 7, 53, 99] {
            let mut node = leaf();
            (0..100).for_each(|i| node.set(i * step % 100, Ppn(500 + i * step % 100), 100));
            assert_eq!(node.items, [Item { key: 0, value: Ppn(500) }]);
        }
    }

    #[test]
    fn a_leaf_agrees_with_a_plain_table_and_holds_no_two_extents_that_could_be_one() {
        let mut node = leaf();
        let mut plain = [Ppn::NONE; 60];
        let mut state = 1_u32;
        for _ in 0..20_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let lpn = (state >> 8) % 60;
            let ppn = match state >> 28 {
                0..=3 => Ppn::NONE,
                4 => crate::mapping::LOST,
                5..=12 => Ppn(1000 + lpn),
                _ => Ppn((state >> 16) % 70),
            };
            let expected = node.len_with(lpn, ppn, 60);
            node.set(lpn, ppn, 60);
            plain[lpn as usize] = ppn;
            assert_eq!(node.items.len(), expected);
            (0..60).for_each(|lpn| assert_eq!(node.find(lpn), plain[lpn as usize]));
            for pair in node.items.windows(2) {
                assert_ne!(follow(pair[0].value, pair[1].key - pair[0].key), pair[1].value, "{:?}", node.items);
            }
        }
    }

    #[test]
    fn a_clipped_leaf_says_the_same_of_what_is_left() {
        let mut node = leaf();
        (0..90).for_each(|lpn| node.set(lpn, Ppn(if lpn < 30 { 500 + lpn } else { 900 - lpn }), 100));
        for (start, end) in [(0, 100), (7, 100), (29, 31), (40, 95), (95, 96)] {
            let mut clipped = leaf();
            clipped.items.clone_from(&node.items);
            clipped.clip(start, end);
            assert!(clipped.items[0].key == start && clipped.items.iter().all(|item| item.key < end));
            (start..end).for_each(|lpn| assert_eq!(clipped.find(lpn), node.find(lpn)));
        }
    }

    #[test]
    fn a_page_gives_back_its_node_and_a_damaged_one_is_refused() {
        let mut node = leaf();
        (0..50).for_each(|i| node.set(i * 2, Ppn(900 - i), 100));
        node.speaks_for = 1 << 40;
        let mut page = alloc::vec![0; 4096];
        node.format(&mut page);
        let mut back = leaf();
        back.parse(&page, 0, 0, 1000).expect("an undamaged page");
        assert_eq!(back.items, node.items);
        assert_eq!(back.speaks_for, 1 << 40);
        assert!(back.parse(&page, 1, 0, 1000).is_err() && back.parse(&page, 0, 1, 1000).is_err());
        assert!(back.parse(&page, 0, 0, 800).is_err());
    }
}
