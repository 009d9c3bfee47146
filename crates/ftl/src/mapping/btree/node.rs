//! A node of the tree: items in order of their keys, in a page.
//!
//! A page holds the node's level (4 bytes), how many items follow (4 bytes), a sequence number (8
//! bytes), then 8 bytes an item: key and value, all little-endian. A leaf speaks for every page of
//! host data with a smaller sequence number. An item of a leaf (level 0) is an extent: it maps the
//! logical pages from its key up to the next key, or to the leaf's end, to consecutive pages from
//! its value on; or all of them to nothing. An item of an inner node leads to the child whose first
//! key it has.

use super::super::{LOST, is_page};
use alloc::vec::Vec;
use core::ops::{BitOr, Range};
use nand::Ppn;

const HEADER_BYTES: usize = 16;
const ITEM_BYTES: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) key: u32,
    pub(super) value: Ppn,
}

impl Item {
    const fn decode(bytes: [u8; ITEM_BYTES]) -> Self {
        let word = u64::from_le_bytes(bytes);
        Self { key: word as u32, value: Ppn((word >> 32) as u32) }
    }

    const fn encode(self) -> [u8; ITEM_BYTES] {
        (self.key as u64 | (self.value.0 as u64) << 32).to_le_bytes()
    }
}

/// Items that a guess may be off before the search doubles them: half a line of a processor's
/// cache.
const GUESS_STEP: usize = 4;

/// A node in RAM, its items as its page holds them: read where it lies and programmed from there.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) level: u32,
    /// A leaf says where every page of host data was that was programmed before this sequence
    /// number; 0 for an inner node.
    pub(super) speaks_for: u64,
    count: usize,
    /// The page, and room for one item more. Level, count and sequence number are put there when it
    /// is programmed.
    bytes: Vec<u8>,
}

/// What an extent's value is, `n` logical pages on.
const fn follow(value: Ppn, n: u32) -> Ppn {
    if is_page(value) { Ppn(value.0.saturating_add(n)) } else { value }
}

/// How one logical page's change alters the items: `removed` from `at` on give way to the first
/// `count` of `new`.
struct Change {
    at: usize,
    removed: usize,
    new: [Item; 3],
    count: usize,
}

const OUT_OF_ORDER: &str = "the keys of a node are not in order";

fn word(page: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]])
}

impl Node {
    /// Items that fit a page.
    pub(super) const fn capacity(page_bytes: u32) -> usize {
        (page_bytes as usize - HEADER_BYTES) / ITEM_BYTES
    }

    pub(super) fn new(page_bytes: u32) -> Self {
        let bytes = HEADER_BYTES + (Self::capacity(page_bytes) + 1) * ITEM_BYTES;
        Self { level: 0, speaks_for: 0, count: 0, bytes: alloc::vec![0xFF; bytes.max(page_bytes as usize)] }
    }

    /// A place for a node, without memory for items.
    pub(super) const fn nothing() -> Self {
        Self { level: 0, speaks_for: 0, count: 0, bytes: Vec::new() }
    }

    /// Becomes what another node of the same tree is.
    pub(super) fn copy(&mut self, from: &Self) {
        debug_assert!(from.count > 0 && self.bytes.len() == from.bytes.len());
        (self.level, self.speaks_for, self.count) = (from.level, from.speaks_for, from.count);
        self.slots_mut()[..from.count].copy_from_slice(from.slots());
    }

    /// The items as they are in the page.
    fn slots(&self) -> &[[u8; ITEM_BYTES]] {
        &self.bytes[HEADER_BYTES..].as_chunks().0[..self.count]
    }

    /// The items as they are in the page, and the room behind them.
    fn slots_mut(&mut self) -> &mut [[u8; ITEM_BYTES]] {
        self.bytes[HEADER_BYTES..].as_chunks_mut().0
    }

    pub(super) const fn len(&self) -> usize {
        self.count
    }

    pub(super) fn item(&self, at: usize) -> Item {
        Item::decode(self.slots()[at])
    }

    pub(super) fn items(&self) -> impl ExactSizeIterator<Item = Item> + '_ {
        self.slots().iter().map(|slot| Item::decode(*slot))
    }

    /// The first key.
    pub(super) fn first(&self) -> u32 {
        self.item(0).key
    }

    pub(super) fn last(&self) -> u32 {
        self.item(self.count - 1).key
    }

    /// The item after one, if there is one.
    pub(super) fn item_after(&self, at: usize) -> Option<Item> {
        self.slots().get(at + 1).map(|slot| Item::decode(*slot))
    }

    /// Changes where an item leads; answers where it did.
    pub(super) fn set_value(&mut self, at: usize, value: Ppn) -> Ppn {
        let Item { key, value: old } = self.item(at);
        debug_assert!(at < self.count, "item {at} of {}", self.count);
        self.slots_mut()[at] = Item { key, value }.encode();
        old
    }

    pub(super) fn insert(&mut self, at: usize, item: Item) {
        let count = self.count;
        debug_assert!(at <= count, "item {at} of {count}");
        let slots = self.slots_mut();
        slots.copy_within(at..count, at + 1);
        slots[at] = item.encode();
        self.count += 1;
    }

    /// Takes items away, all of them.
    pub(super) const fn clear_items(&mut self) {
        self.count = 0;
    }

    /// An empty leaf that begins at a key.
    pub(super) fn clear(&mut self, key: u32) {
        (self.level, self.speaks_for, self.count) = (0, 0, 0);
        self.insert(0, Item { key, value: Ppn::NONE });
    }

    /// Leaves of a leaf what lies from `start`, which is in it, to `end`.
    pub(super) fn clip(&mut self, start: u32, end: u32) {
        let first = self.position(start);
        debug_assert!(self.first() <= start && start < end, "{start}..{end} is not within the leaf");
        let value = self.find(start);
        let stop = self.slots().partition_point(|slot| Item::decode(*slot).key < end);
        self.slots_mut().copy_within(first..stop, 0);
        self.count = stop - first;
        debug_assert!(self.count > 0);
        self.slots_mut()[0] = Item { key: start, value }.encode();
    }

    /// Where to read a page of so many bytes to, which [`Node::take`] makes the node then.
    pub(super) fn page(&mut self, bytes: usize) -> &mut [u8] {
        &mut self.bytes[..bytes]
    }

    /// Becomes what was read to a page of so many bytes: a node of a level and of these keys. If it
    /// is damaged, what is wrong. What its items say was not looked at, but for the first and last
    /// key.
    pub(super) fn take(&mut self, page_bytes: usize, level: u32, keys: Range<u32>) -> Result<(), &'static str> {
        let count = word(&self.bytes, 4) as usize;
        if word(&self.bytes, 0) != level || count == 0 || count > Self::capacity(page_bytes as u32) {
            return Err("a node has another level than its parent says, or a count of items that does not fit a page");
        }
        (self.level, self.count) = (level, count);
        self.speaks_for = u64::from(word(&self.bytes, 8)) | u64::from(word(&self.bytes, 12)) << 32;
        if self.first() != keys.start {
            return Err(OUT_OF_ORDER);
        }
        if self.last() >= keys.end {
            return Err("a node holds keys beyond those that its parent gives it");
        }
        Ok(())
    }

    /// Whether the items are in order and lead to pages before `limit`; if not, what is wrong.
    pub(super) fn check(&self, limit: u32) -> Result<(), &'static str> {
        // Every item is looked at, whatever the others are: without a branch for each, several are
        // looked at at once.
        let misplaced = |(one, next): (Item, Item)| u32::from(one.key >= next.key);
        if self.items().zip(self.items().skip(1)).map(misplaced).fold(0, BitOr::bitor) != 0 {
            return Err(OUT_OF_ORDER);
        }
        let pages_beyond = LOST.0.saturating_sub(limit);
        let beyond = |item: Item| u32::from(item.value.0.wrapping_sub(limit) < pages_beyond);
        if self.items().map(beyond).fold(0, BitOr::bitor) != 0 {
            return Err("an item leads to a page beyond the device's last");
        }
        Ok(())
    }

    /// Its page of so many bytes, 0xFF behind the last item.
    pub(super) fn seal(&mut self, bytes: usize) -> &[u8] {
        debug_assert!(
            self.count > 0 && self.count <= Self::capacity(bytes as u32),
            "{} items do not fit a page",
            self.count
        );
        debug_assert!(self.level == 0 || self.speaks_for == 0, "an inner node speaks for no page of host data");
        let page = &mut self.bytes[..bytes];
        page[..4].copy_from_slice(&self.level.to_le_bytes());
        page[4..8].copy_from_slice(&(self.count as u32).to_le_bytes());
        page[8..HEADER_BYTES].copy_from_slice(&self.speaks_for.to_le_bytes());
        page[HEADER_BYTES + self.count * ITEM_BYTES..].fill(0xFF);
        page
    }

    /// The item that covers a key, which is not before the first.
    pub(super) fn position(&self, key: u32) -> usize {
        self.slots().partition_point(|slot| Item::decode(*slot).key <= key).saturating_sub(1)
    }

    /// As [`Self::position`], in a node whose keys end before `end`. Looks first where the item
    /// would be if all covered equally many keys: of a large tree's inner nodes, that takes fewer
    /// lines from memory than halving.
    pub(super) fn position_by_guess(&self, key: u32, end: u32) -> usize {
        let slots = self.slots();
        let covers = |at: usize| slots.get(at).is_some_and(|slot| Item::decode(*slot).key <= key);
        let first = slots.first().map_or(key, |slot| Item::decode(*slot).key);
        let (into, all) = (u64::from(key.saturating_sub(first)), u64::from(end.saturating_sub(first)).max(1));
        let guess = (into * slots.len() as u64 / all) as usize;
        let (mut low, mut high, mut step) = (guess, guess, GUESS_STEP);
        while low > 0 && !covers(low) {
            (low, high, step) = (low.saturating_sub(step), low, 2 * step);
        }
        if low == guess {
            while covers(high) {
                (low, high, step) = (high, high + step, 2 * step);
            }
        }
        let high = high.min(slots.len());
        let low = low.min(high);
        (low + slots[low..high].partition_point(|slot| Item::decode(*slot).key <= key)).saturating_sub(1)
    }

    /// Where a leaf says that a logical page is.
    pub(super) fn find(&self, lpn: u32) -> Ppn {
        let item = self.item(self.position(lpn));
        debug_assert!(item.key <= lpn, "{lpn} is before the leaf");
        follow(item.value, lpn - item.key)
    }

    fn change(&self, lpn: u32, ppn: Ppn, end: u32) -> Change {
        let at = self.position(lpn);
        debug_assert!(self.level == 0 && self.first() <= lpn && lpn < end, "{lpn} is not in the leaf");
        let Item { key: start, value } = self.item(at);
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
            let left = self.item(at - 1);
            joins_left = follow(left.value, lpn - left.key) == ppn;
        }
        if !joins_left {
            push(lpn, ppn);
        }
        let next = self.item_after(at);
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
        self.count + change.count - change.removed
    }

    /// A logical page of a leaf is at `ppn` now; extents split and merge.
    pub(super) fn set(&mut self, lpn: u32, ppn: Ppn, end: u32) {
        self.apply(&self.change(lpn, ppn, end));
        debug_assert!(self.find(lpn) == ppn);
    }

    /// As [`Node::set`], if the leaf has no more than so many items then; whether it did.
    pub(super) fn set_within(&mut self, lpn: u32, ppn: Ppn, end: u32, most: usize) -> bool {
        let change = self.change(lpn, ppn, end);
        let fits = self.count + change.count - change.removed <= most;
        if fits {
            self.apply(&change);
            debug_assert!(self.find(lpn) == ppn && self.count <= most);
        }
        fits
    }

    /// Whether an item comes before the next, if there are both.
    fn is_before_next(&self, at: usize) -> bool {
        self.item_after(at).is_none_or(|next| self.item(at).key < next.key)
    }

    fn apply(&mut self, change: &Change) {
        let Change { at, removed, new, count } = change;
        let len = self.count;
        let slots = self.slots_mut();
        if removed != count {
            slots.copy_within(at + removed..len, at + count);
        }
        for (slot, item) in slots[*at..].iter_mut().zip(&new[..*count]) {
            *slot = item.encode();
        }
        self.count = len + count - removed;
        debug_assert!(
            (at.saturating_sub(1)..at + count).all(|at| self.is_before_next(at)),
            "keys out of order at {at}"
        );
    }

    /// Leaves the lower half here and hands the upper half to `upper`; answers the first key of
    /// that.
    pub(super) fn split(&mut self, upper: &mut Self) -> u32 {
        debug_assert!(self.count > 1);
        let middle = self.count / 2;
        (upper.level, upper.speaks_for, upper.count) = (self.level, self.speaks_for, self.count - middle);
        upper.slots_mut()[..self.count - middle].copy_from_slice(&self.slots()[middle..]);
        self.count = middle;
        debug_assert!(self.item(middle - 1).key < upper.first());
        upper.first()
    }

    /// As [`Node::split`], of a leaf that ends before `end`: each half covers as many logical
    /// pages.
    pub(super) fn halve(&mut self, upper: &mut Self, end: u32) -> u32 {
        let (first, middle) = (self.first(), u32::midpoint(self.first(), end));
        upper.copy(self);
        upper.clip(middle, end);
        self.clip(first, middle);
        middle
    }

    pub(super) fn ram_bytes(&self) -> u64 {
        self.bytes.capacity() as u64
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
            assert!(node.items().eq([Item { key: 0, value: Ppn(500) }]));
        }
    }

    #[test]
    fn the_halves_of_a_leaf_say_what_it_said_and_speak_for_as_much() {
        for entries in [&[][..], &[(3, 70)], &[(49, 70), (50, 71), (51, 90)]] {
            let (mut whole, mut lower, mut upper) = (leaf(), leaf(), leaf());
            entries.iter().for_each(|(lpn, ppn)| whole.set(*lpn, Ppn(*ppn), 100));
            whole.speaks_for = 9;
            lower.copy(&whole);
            assert_eq!(lower.halve(&mut upper, 100), 50);
            let found = (0..100).map(|lpn| if lpn < 50 { lower.find(lpn) } else { upper.find(lpn) });
            assert!(found.eq((0..100).map(|lpn| whole.find(lpn))));
            assert_eq!((lower.speaks_for, upper.speaks_for, upper.first()), (9, 9, 50));
        }
    }

    #[test]
    fn guessing_finds_what_halving_finds_however_keys_lie() {
        let spread: [fn(u32) -> u32; 4] =
            [|i| i, |i| i * i, |i| i * 1000 + i % 7, |i| if i < 90 { i } else { i * 40_000 }];
        for (len, key_of) in (1..=100).flat_map(|len| spread.map(|key_of| (len, key_of))) {
            let mut node = leaf();
            node.clear_items();
            (0..len).for_each(|i| node.insert(i as usize, Item { key: 5 + key_of(i), value: Ppn(2 * i) }));
            let last = 5 + key_of(len - 1);
            for end in [last + 1, last + 5000, u32::MAX] {
                for key in (0..len).flat_map(|i| [4 + key_of(i), 5 + key_of(i), 6 + key_of(i)]).filter(|key| *key < end)
                {
                    assert_eq!(node.position_by_guess(key, end), node.position(key), "{key} of {len} items");
                }
            }
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
            assert_eq!(node.len(), expected);
            (0..60).for_each(|lpn| assert_eq!(node.find(lpn), plain[lpn as usize]));
            for (one, next) in node.items().zip(node.items().skip(1)) {
                assert_ne!(follow(one.value, next.key - one.key), next.value, "{node:?}");
            }
        }
    }

    #[test]
    fn a_clipped_leaf_says_the_same_of_what_is_left() {
        let mut node = leaf();
        (0..90).for_each(|lpn| node.set(lpn, Ppn(if lpn < 30 { 500 + lpn } else { 900 - lpn }), 100));
        for (start, end) in [(0, 100), (7, 100), (29, 31), (40, 95), (95, 96)] {
            let mut clipped = leaf();
            clipped.copy(&node);
            clipped.clip(start, end);
            assert!(clipped.first() == start && clipped.items().all(|item| item.key < end));
            (start..end).for_each(|lpn| assert_eq!(clipped.find(lpn), node.find(lpn)));
        }
    }

    #[test]
    fn a_page_gives_back_its_node_and_a_damaged_one_is_refused() {
        let mut node = leaf();
        (0..50).for_each(|i| node.set(i * 2, Ppn(900 - i), 100));
        node.speaks_for = 1 << 40;
        let page = node.seal(4096).to_vec();
        let mut back = leaf();
        let mut read_keys = |level, keys, limit| {
            back.page(4096).copy_from_slice(&page);
            back.take(4096, level, keys)
                .and_then(|()| back.check(limit))
                .map(|()| (back.speaks_for, back.items().collect()))
        };
        assert!(read_keys(0, 0..99, 1000).is_err() && read_keys(0, 0..100, 1000).is_ok());
        let mut read = |level, key, limit| read_keys(level, key..100, limit);
        assert_eq!(read(0, 0, 1000), Ok((1 << 40, node.items().collect::<Vec<Item>>())));
        assert!(read(1, 0, 1000).is_err() && read(0, 1, 1000).is_err() && read(0, 0, 800).is_err());
        let mut disordered = leaf();
        disordered.copy(&node);
        disordered.insert(3, Item { key: 90, value: Ppn::NONE });
        assert!(node.check(1000).is_ok() && disordered.check(1000).is_err());
        let mut twice = leaf();
        twice.copy(&node);
        let key = node.items().nth(2).unwrap().key;
        twice.insert(3, Item { key, value: Ppn::NONE });
        assert!(twice.check(1000).is_err(), "two items begin at one key");
    }
}
