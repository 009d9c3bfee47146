//! The nodes of the tree that are in RAM, and the way to a leaf.
//!
//! 1. The root is always in RAM. Other inner nodes are in a fixed number of frames, the least
//!    recently used gives way; leaves are read when needed.
//! 2. The parent of a node in a frame is in a frame too. So a leaf that moves changes a node in
//!    RAM, and only a dirty node that gives way is programmed, which changes its parent, again in
//!    RAM: no chain of programs up to the root.
//! 3. If leaves are cached too ([`super::BtreeOptions::cache_leaves`]), they share the frames with
//!    inner nodes: whichever was used least recently gives way, so that the share of each follows
//!    the workload. A leaf in a frame is never newer than flash, and a dirty inner node does not
//!    give way to one.
//! 4. Nodes split when full and never merge. Each half of a leaf of n extents covers at least n/2
//!    logical pages, so the number of nodes is bounded however the tree came about.

use super::frames::{Effort, Frames, ROOT};
use super::node::{Item, Node};
use crate::contract::FtlError;
use crate::flash::Purpose;
use crate::space::core::Core;
use alloc::vec::Vec;
use nand::{Nand, PageKind, Ppn};

/// Levels that a tree of logical pages numbered by 32 bits can have, if a node holds at least 62
/// items.
const MOST_LEVELS: u32 = 8;

/// What a page of the tree is, as `aux` in its spare area says: a leaf's end, or the complement of
/// an inner node's level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mapping) enum Role {
    /// A leaf, and the end of its range of logical pages.
    Leaf { end: u32 },
    /// An inner node.
    Inner { level: u32 },
}

impl Role {
    const fn encode(self) -> u32 {
        match self {
            Self::Leaf { end } => end,
            Self::Inner { level } => !level,
        }
    }

    /// No disk has so many logical pages that a level could be taken for an end.
    pub(in crate::mapping) const fn decode(aux: u32) -> Self {
        if aux >= !MOST_LEVELS { Self::Inner { level: !aux } } else { Self::Leaf { end: aux } }
    }
}

/// The inner nodes.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) frames: Frames,
    /// Every leaf that the tree leads to was programmed or checked since the mount.
    pub(super) known: bool,
    cache_leaves: bool,
    pub(super) end: u32,
    pub(super) capacity: usize,
    pub(super) page_bytes: usize,
}

/// The item that leads to a node: in which frame, where, and where the node's range of keys ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) frame: usize,
    pub(super) index: usize,
    pub(super) end: u32,
}

impl Tree {
    pub(super) fn new(logical_pages: u32, page_bytes: u32, frames: u32, cache_leaves: bool) -> Self {
        let mut frames = Frames::new(page_bytes, frames.max(2 * MOST_LEVELS));
        let root = frames.node_mut(ROOT);
        root.clear(0);
        root.level = 1;
        Self {
            frames,
            known: true,
            cache_leaves,
            end: logical_pages,
            capacity: Node::capacity(page_bytes),
            page_bytes: page_bytes as usize,
        }
    }

    /// The most nodes of each level, from the leaves up to the root, and the number of levels.
    pub(super) fn bounds(&self) -> (u32, u32) {
        let half = ((self.capacity - 1) / 2) as u32;
        let (mut nodes, mut total, mut levels) = (self.end, 0, 0);
        loop {
            nodes = (nodes / half).max(1);
            total += nodes;
            levels += 1;
            if nodes == 1 {
                return (total + 1, levels + 1);
            }
        }
    }

    /// The most inner nodes, the root among them.
    pub(super) fn most_inner(&self) -> u32 {
        let leaves = (self.end / ((self.capacity - 1) / 2) as u32).max(1);
        self.bounds().0 - leaves
    }

    /// Whether no inner node ever has to give way.
    pub(super) fn holds_all_inner(&self) -> bool {
        self.most_inner() as usize <= self.frames.len()
    }

    /// Adds a leaf behind those that are there, the first of which begins at 0.
    pub(super) fn append<N: Nand>(&mut self, core: &mut Core<N>, item: Item) -> Result<(), FtlError> {
        self.make_room(core, item.key, Purpose::Recovery)?;
        if let Some(place) = self.descend(core, item.key, 0, Purpose::Recovery)? {
            debug_assert!(
                place.end == self.end && (item.key == 0 || self.item(place).key < item.key),
                "leaves come in order"
            );
            if item.key == 0 {
                self.replace(place, item.value);
            } else {
                self.insert_after(place, item);
            }
        }
        Ok(())
    }

    /// Takes a leaf from a page, of which its place says what it has to be.
    pub(super) fn read<N: Nand>(
        &mut self,
        core: &mut Core<N>,
        place: Place,
        purpose: Purpose,
        leaf: &mut Node,
    ) -> Result<(), FtlError> {
        if let Some(at) = self.find_leaf(core, place, purpose, leaf)? {
            leaf.copy(self.frames.node(at));
        }
        Ok(())
    }

    /// As [`Tree::read`], but if the leaf is in a frame now that answers in which, and `leaf` holds
    /// anything.
    pub(super) fn find_leaf<N: Nand>(
        &mut self,
        core: &mut Core<N>,
        place: Place,
        purpose: Purpose,
        leaf: &mut Node,
    ) -> Result<Option<usize>, FtlError> {
        let item = self.item(place);
        if !self.cache_leaves || !item.value.is_some() {
            return self.fetch(core, item, place.end, 0, purpose, leaf).map(|()| None);
        }
        if let Some(at) = self.frames.leaf(item.value) {
            self.frames.touch(at);
            return Ok(Some(at));
        }
        self.fetch(core, item, place.end, 0, purpose, leaf)?;
        let found = self.frames.oldest(Effort::Read, place.frame);
        if let Some(at) = found {
            debug_assert!(!self.frames.get(at).is_dirty(), "frame {at} holds what flash does not");
            self.frames.clear(at);
            core::mem::swap(self.frames.node_mut(at), leaf);
            self.frames.hold_leaf(at, item.value);
        }
        Ok(found)
    }

    /// A page is not a leaf that is in a frame, or not any more.
    fn forget_leaf(&mut self, ppn: Ppn) {
        if let Some(at) = self.frames.leaf(ppn) {
            self.frames.clear(at);
        }
    }

    /// Takes a node of a level from the page that an item names. Its keys end before `end`.
    ///
    /// What a leaf's items say is not looked at again if that is known to be sound: a page that can
    /// be read holds what was programmed there. Those who would go astray with an entry look where
    /// it leads.
    fn fetch<N: Nand>(
        &mut self,
        core: &mut Core<N>,
        item: Item,
        end: u32,
        level: u32,
        purpose: Purpose,
        node: &mut Node,
    ) -> Result<(), FtlError> {
        if !item.value.is_some() {
            node.clear(item.key);
            return Ok(());
        }
        core.flash.read_meta(purpose, item.value, node.page(self.page_bytes))?;
        let limit = core.space.geometry().pages();
        let checked = node.take(self.page_bytes, level, item.key..end);
        let checked = if self.known && level == 0 { checked } else { checked.and_then(|()| node.check(limit)) };
        let structure = "node of the mapping tree";
        checked.map_err(|reason| FtlError::Damaged { structure, ppn: item.value, reason })
    }

    /// Programs a leaf that ends before `end`; nothing leads to the page yet.
    pub(super) fn program<N: Nand>(
        &mut self,
        core: &mut Core<N>,
        leaf: &mut Node,
        end: u32,
        purpose: Purpose,
    ) -> Result<Ppn, FtlError> {
        let (key, role) = (leaf.first(), Role::Leaf { end }.encode());
        debug_assert!(leaf.level == 0 && key < end && end <= self.end, "a leaf of {key}..{end}");
        let ppn = core.program_metadata(purpose, PageKind::Translation, key, role, leaf.seal(self.page_bytes))?;
        if self.cache_leaves {
            self.note_leaf(ppn, leaf);
        }
        Ok(ppn)
    }

    /// A page is this leaf from now on.
    fn note_leaf(&mut self, ppn: Ppn, leaf: &Node) {
        self.forget_leaf(ppn);
        // A place that the caller goes on with must stay, so that no inner node gives way.
        if let Some(at) = self.frames.oldest(Effort::None, ROOT) {
            debug_assert!(!self.frames.get(at).is_dirty(), "frame {at} holds what flash does not");
            self.frames.clear(at);
            self.frames.node_mut(at).copy(leaf);
            self.frames.hold_leaf(at, ppn);
        }
    }

    /// The item at a place.
    pub(super) fn item(&self, place: Place) -> Item {
        self.frames.node(place.frame).item(place.index)
    }

    /// The node in a frame.
    pub(super) fn node(&self, at: usize) -> &Node {
        self.frames.node(at)
    }

    /// The node at a place is on another page now; answers where it was.
    pub(super) fn replace(&mut self, place: Place, ppn: Ppn) -> Ppn {
        debug_assert!(self.item(place).value != ppn || !ppn.is_some(), "a node was at {ppn} before");
        self.frames.mark_dirty(place.frame);
        let old = self.frames.node_mut(place.frame).set_value(place.index, ppn);
        self.forget_leaf(old);
        old
    }

    /// The node at a place was copied to another page as it is.
    pub(super) fn moved(&mut self, place: Place, to: Ppn) {
        debug_assert!(self.item(place).value.is_some());
        self.forget_leaf(to);
        self.replace(place, to);
    }

    /// A node got a sibling after it. There has to be room, see [`Tree::make_room`].
    pub(super) fn insert_after(&mut self, place: Place, item: Item) {
        debug_assert!(self.frames.node(place.frame).len() < self.capacity, "no room was made");
        debug_assert!(self.item(place).key < item.key && item.key < self.end);
        debug_assert!(
            self.frames.node(place.frame).item_after(place.index).is_none_or(|next| item.key < next.key),
            "{item:?} comes too late"
        );
        self.frames.mark_dirty(place.frame);
        self.frames.node_mut(place.frame).insert(place.index + 1, item);
    }

    /// The place of the node of a level that covers a key; `None` if the tree is not that high.
    pub(super) fn descend<N: Nand>(
        &mut self,
        core: &mut Core<N>,
        key: u32,
        level: u32,
        purpose: Purpose,
    ) -> Result<Option<Place>, FtlError> {
        debug_assert!(key < self.end);
        let (mut at, mut end) = (ROOT, self.end);
        if self.frames.node(ROOT).level <= level {
            return Ok(None);
        }
        loop {
            let node = self.frames.node(at);
            let index = node.position_by_guess(key, end);
            end = node.item_after(index).map_or(end, |item| item.key);
            if node.level == level + 1 {
                debug_assert!(
                    node.item(index).key <= key && key < end,
                    "{key} is not in {}..{end}",
                    node.item(index).key
                );
                return Ok(Some(Place { frame: at, index, end }));
            }
            at = self.child(core, Place { frame: at, index, end }, purpose)?;
        }
    }

    /// The leaf that covers a key, without taking a frame on the way: what is in one stays there.
    /// Answers which page it is.
    pub(super) fn peek<N: Nand>(&mut self, core: &mut Core<N>, key: u32, node: &mut Node) -> Result<Ppn, FtlError> {
        let (mut at, mut end) = (ROOT, self.end);
        let (mut level, mut item) = loop {
            let inner = self.frames.node(at);
            let position = inner.position(key);
            let (level, item) = (inner.level - 1, inner.item(position));
            end = inner.item_after(position).map_or(end, |next| next.key);
            match self.frames.child(at, item.key).filter(|_| level > 0) {
                Some(child) => at = child,
                None => break (level, item),
            }
        };
        loop {
            self.fetch(core, item, end, level, Purpose::Translation, node)?;
            if level == 0 {
                return Ok(item.value);
            }
            let position = node.position(key);
            end = node.item_after(position).map_or(end, |next| next.key);
            (level, item) = (level - 1, node.item(position));
        }
    }

    /// The frame of the inner node at a place.
    fn child<N: Nand>(&mut self, core: &mut Core<N>, place: Place, purpose: Purpose) -> Result<usize, FtlError> {
        let key = self.item(place).key;
        debug_assert!(self.frames.node(place.frame).level > 1, "the children of a lowest inner node are leaves");
        if let Some(at) = self.frames.child(place.frame, key) {
            self.frames.touch(at);
            return Ok(at);
        }
        let at = self.vacate(core, place.frame, purpose)?;
        let mut node = core::mem::replace(self.frames.node_mut(at), Node::nothing());
        let (item, level) = (self.item(place), self.frames.node(place.frame).level - 1);
        let read = self.fetch(core, item, place.end, level, purpose, &mut node);
        *self.frames.node_mut(at) = node;
        read?;
        self.frames.hold_inner(at, place.frame, false);
        Ok(at)
    }

    /// A frame that is free: a node without children in frames gives way, but not `kept`. There is
    /// one, because there are more frames than levels.
    fn vacate<N: Nand>(&mut self, core: &mut Core<N>, kept: usize, purpose: Purpose) -> Result<usize, FtlError> {
        let at = self.frames.oldest(Effort::Program, kept).unwrap_or(self.frames.len() - 1);
        if self.frames.get(at).is_dirty() {
            let parent = self.frames.get(at).parent();
            let node = self.frames.node_mut(at);
            let (key, role) = (node.first(), Role::Inner { level: node.level }.encode());
            let new = core.program_metadata(purpose, PageKind::Translation, key, role, node.seal(self.page_bytes))?;
            let index = self.frames.node(parent).position(key);
            debug_assert!(self.frames.node(parent).item(index).key == key, "no item leads to the node of {key}");
            self.frames.mark_clean(at);
            let old = self.replace(Place { frame: parent, index, end: 0 }, new);
            if old.is_some() {
                core.translation_page_died(old);
            }
        }
        self.frames.clear(at);
        Ok(at)
    }

    /// Splits what is full on the way to a leaf, so that its parent can take one more.
    pub(super) fn make_room<N: Nand>(
        &mut self,
        core: &mut Core<N>,
        key: u32,
        purpose: Purpose,
    ) -> Result<(), FtlError> {
        if self.frames.node(ROOT).len() == self.capacity {
            self.grow(core, purpose)?;
        }
        let mut at = ROOT;
        while self.frames.node(at).level > 1 {
            let index = self.frames.node(at).position(key);
            let place = Place { frame: at, index, end: 0 };
            let child = self.child(core, place, purpose)?;
            if self.frames.node(child).len() == self.capacity {
                self.split(core, place, child, purpose)?;
            } else {
                at = child;
            }
        }
        Ok(())
    }

    /// The root becomes the only child of a new root.
    fn grow<N: Nand>(&mut self, core: &mut Core<N>, purpose: Purpose) -> Result<(), FtlError> {
        let at = self.vacate(core, ROOT, purpose)?;
        let mut root = core::mem::replace(self.frames.node_mut(ROOT), Node::nothing());
        core::mem::swap(&mut root, self.frames.node_mut(at));
        root.clear(0);
        root.level = self.frames.node(at).level + 1;
        *self.frames.node_mut(ROOT) = root;
        debug_assert!(self.frames.node(at).first() == 0, "the root covers every logical page");
        self.frames.lower_root(at);
        Ok(())
    }

    /// Splits the full inner node at a place, which is in frame `lower`.
    fn split<N: Nand>(
        &mut self,
        core: &mut Core<N>,
        place: Place,
        lower: usize,
        purpose: Purpose,
    ) -> Result<(), FtlError> {
        debug_assert!(
            self.frames.node(lower).len() == self.capacity && self.item(place).key == self.frames.node(lower).first()
        );
        let upper = self.vacate(core, lower, purpose)?;
        let key = self.frames.split(lower, upper);
        self.frames.mark_dirty(lower);
        self.insert_after(place, Item { key, value: Ppn::NONE });
        self.frames.hold_inner(upper, place.frame, true);
        self.frames.hand_over(lower, upper, key);
        Ok(())
    }

    /// Every leaf in order: its first key and its page. Allocates; for checks.
    pub(super) fn leaves<N: Nand>(&self, nand: &mut N) -> Result<Vec<Item>, FtlError> {
        let mut leaves = Vec::new();
        self.walk(nand, |level, item| leaves.extend(Some(item).filter(|_| level == 1)))?;
        Ok(leaves)
    }

    /// Shows `each` every item of every inner node, with the node's level, from the root down.
    /// Allocates.
    pub(super) fn walk<N: Nand>(&self, nand: &mut N, mut each: impl FnMut(u32, Item)) -> Result<(), FtlError> {
        let mut nodes: Vec<(Option<usize>, Item)> = alloc::vec![(Some(ROOT), Item { key: 0, value: Ppn::NONE })];
        let mut node = Node::new(self.page_bytes as u32);
        for level in (1..=self.frames.node(ROOT).level).rev() {
            let mut below = Vec::new();
            for (frame, item) in nodes {
                let node = if let Some(at) = frame {
                    self.frames.node(at)
                } else {
                    nand.read_meta(item.value, node.page(self.page_bytes))?;
                    let damaged = |reason| FtlError::Damaged { structure: "node", ppn: item.value, reason };
                    let taken = node.take(self.page_bytes, level, item.key..self.end);
                    taken.and_then(|()| node.check(u32::MAX)).map_err(damaged)?;
                    &node
                };
                node.items().for_each(|item| each(level, item));
                if level > 1 {
                    below.extend(node.items().map(|item| (frame.and_then(|at| self.frames.child(at, item.key)), item)));
                }
            }
            nodes = below;
        }
        Ok(())
    }

    pub(super) fn ram_bytes(&self) -> u64 {
        self.frames.ram_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(value: u32) -> Node {
        let mut leaf = Node::new(512);
        leaf.clear(0);
        leaf.set_value(0, Ppn(value));
        leaf
    }

    #[test]
    fn a_frame_never_holds_what_a_page_was_before() {
        let mut tree = Tree::new(1000, 512, 16, true);
        let place = Place { frame: ROOT, index: 0, end: 1000 };
        let cached = |tree: &Tree, ppn: u32| tree.frames.leaf(Ppn(ppn)).map(|at| tree.frames.node(at).item(0).value.0);
        tree.replace(place, Ppn(5));
        tree.note_leaf(Ppn(5), &leaf(100));
        tree.note_leaf(Ppn(7), &leaf(200));
        assert_eq!((cached(&tree, 5), cached(&tree, 7)), (Some(100), Some(200)));
        // Nothing leads to page 7: it was erased, and another leaf was programmed there.
        tree.note_leaf(Ppn(7), &leaf(300));
        assert_eq!(cached(&tree, 7), Some(300));
        // Nothing does yet: a copy of the leaf at hand was put there, its old place died.
        tree.moved(place, Ppn(7));
        assert_eq!((cached(&tree, 5), cached(&tree, 7)), (None, None));
        tree.note_leaf(Ppn(7), &leaf(100));
        assert_eq!(tree.replace(place, Ppn(8)), Ppn(7));
        assert_eq!(cached(&tree, 7), None);
    }
}
