//! The nodes of the tree that are in RAM, and the way to a leaf.
//!
//! 1. The root is always in RAM. Other inner nodes are in a fixed number of frames, the least recently used gives way;
//!    leaves are read when needed.
//! 2. The parent of a node in a frame is in a frame too. So a leaf that moves changes a node in RAM, and only a
//!    dirty node that gives way is programmed, which changes its parent, again in RAM: no chain of programs up to the
//!    root.
//! 3. If leaves are cached too ([`super::BtreeOptions::cache_leaves`]), they share the frames with inner nodes: whichever was used least
//!    recently gives way, so that the share of each follows the workload. A leaf in a frame is never newer than flash, and a
//!    dirty inner node does not give way to one.
//! 4. Nodes split when full and never merge. Each half of a leaf of n extents covers at least n/2 logical pages, so the
//!    number of nodes is bounded however the tree came about.

use super::node::{Item, Node};
use crate::contract::FtlError;
use crate::flash::Purpose;
use crate::saved::{Sink, Source};
use crate::space::core::Context;
use crate::validity::Validity;
use alloc::vec::Vec;
use nand::{Nand, PageKind, Ppn};

/// Levels that a tree of logical pages numbered by 32 bits can have, if a node holds at least 62 items.
const MOST_LEVELS: u32 = 8;

/// What a page of the tree is, as `aux` in its spare area says: a leaf's end, or the complement of an inner node's level.
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

#[derive(Debug)]
struct Frame {
    node: Node,
    parent: usize,
    /// Children that are in frames.
    children: u32,
    used: u64,
    dirty: bool,
    /// It holds an inner node.
    taken: bool,
    /// The page of the leaf that it holds, if it holds no inner node.
    leaf: Ppn,
}

/// The inner nodes.
#[derive(Debug)]
pub(super) struct Tree {
    frames: Vec<Frame>,
    cache_leaves: bool,
    clock: u64,
    end: u32,
    pub(super) capacity: usize,
    pub(super) buffer: Vec<u8>,
}

/// The item that leads to a node: in which frame, where, and where the node's range of keys ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) frame: usize,
    pub(super) index: usize,
    pub(super) end: u32,
}

const ROOT: usize = 0;

/// Bytes that a save puts for a node in a frame, beside its items.
const SAVED_FRAME_BYTES: u64 = 20;

impl Tree {
    pub(super) fn new(logical_pages: u32, page_bytes: u32, frames: u32, cache_leaves: bool) -> Self {
        let frame = |_| Frame {
            node: Node::new(page_bytes),
            parent: ROOT,
            children: 0,
            used: 0,
            dirty: false,
            taken: false,
            leaf: Ppn::NONE,
        };
        let mut frames: Vec<Frame> = (0..frames.max(2 * MOST_LEVELS)).map(frame).collect();
        frames[ROOT].taken = true;
        frames[ROOT].node.clear(0);
        frames[ROOT].node.level = 1;
        let buffer = alloc::vec![0; page_bytes as usize];
        Self { frames, cache_leaves, clock: 0, end: logical_pages, capacity: Node::capacity(page_bytes), buffer }
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

    /// The most bytes that [`Tree::save`] puts.
    pub(super) fn saved_bytes(&self) -> u64 {
        let nodes = self.most_inner().min(self.frames.len() as u32);
        4 + u64::from(nodes) * (SAVED_FRAME_BYTES + self.buffer.len() as u64)
    }

    /// Puts every node that is in a frame.
    pub(super) fn save(&self, sink: &mut dyn Sink) -> Result<(), FtlError> {
        let taken = || (0..).zip(&self.frames).filter(|(_, frame)| frame.taken);
        sink.put_u32(taken().count() as u32)?;
        for (at, frame) in taken() {
            let Node { level, items, .. } = &frame.node;
            let dirty = u32::from(frame.dirty);
            for word in [at, frame.parent as u32, dirty, *level, items.len() as u32] {
                sink.put_u32(word)?;
            }
            for Item { key, value } in items {
                sink.put_u32(*key)?;
                sink.put_u32(value.0)?;
            }
        }
        Ok(())
    }

    /// Takes over the nodes that were saved; `None` if they are not of this tree on a device of so many pages.
    pub(super) fn load(&mut self, source: &mut Source<'_>, pages: u32) -> Option<()> {
        let count = source.take_u32()?;
        for _ in 0..count {
            let [at, parent] = [source.take_u32()? as usize, source.take_u32()? as usize];
            let [dirty, level, items] = [source.take_u32()?, source.take_u32()?, source.take_u32()?];
            if at.max(parent) >= self.frames.len() || items == 0 || items as usize > self.capacity {
                return None;
            }
            let Frame { node, .. } = &mut self.frames[at];
            (node.level, node.speaks_for) = (level, 0);
            node.items.clear();
            for _ in 0..items {
                let item = Item { key: source.take_u32()?, value: Ppn(source.take_u32()?) };
                if item.key >= self.end || item.value.is_some() && item.value.0 >= pages {
                    return None;
                }
                node.items.push(item);
            }
            self.frames[at].parent = parent;
            (self.frames[at].dirty, self.frames[at].taken) = (dirty != 0, true);
        }
        self.is_sound().then(|| {
            for at in 1..self.frames.len() {
                let Frame { taken, parent, .. } = self.frames[at];
                self.frames[parent].children += u32::from(taken);
            }
        })
    }

    /// Whether every node that is in a frame is where its parent says, and in order.
    fn is_sound(&self) -> bool {
        let in_order = |node: &Node| node.items.windows(2).all(|pair| pair[0].key < pair[1].key);
        let fits = |(at, Frame { node, parent, .. }): (usize, &Frame)| {
            let Frame { node: above, taken, .. } = &self.frames[*parent];
            let key = node.items[0].key;
            let led_to = || above.level == node.level + 1 && above.items.iter().any(|item| item.key == key);
            in_order(node) && if at == ROOT { key == 0 && node.level > 0 } else { *taken && led_to() }
        };
        self.frames.iter().enumerate().filter(|(_, frame)| frame.taken).all(fits)
    }

    /// Adds a leaf behind those that are there, the first of which begins at 0.
    pub(super) fn append<N: Nand, V: Validity>(
        &mut self,
        ctx: &mut Context<'_, N, V>,
        item: Item,
    ) -> Result<(), FtlError> {
        self.make_room(ctx, item.key, Purpose::Recovery)?;
        if let Some(place) = self.descend(ctx, item.key, 0, Purpose::Recovery)? {
            if item.key == 0 {
                self.replace(place, item.value);
            } else {
                self.insert_after(place, item);
            }
        }
        Ok(())
    }

    /// Takes a node from a page, of which parent and place say what it has to be.
    pub(super) fn read<N: Nand, V>(
        &mut self,
        ctx: &mut Context<'_, N, V>,
        place: Place,
        purpose: Purpose,
        node: &mut Node,
    ) -> Result<(), FtlError> {
        let level = self.frames[place.frame].node.level - 1;
        let item = self.item(place);
        if level > 0 || !self.cache_leaves || !item.value.is_some() {
            return self.fetch(ctx, item, level, purpose, node);
        }
        self.clock += 1;
        if let Some(at) = self.frame_of_leaf(item.value) {
            self.frames[at].used = self.clock;
            node.copy(&self.frames[at].node);
            return Ok(());
        }
        self.fetch(ctx, item, level, purpose, node)?;
        let gives_way = |at: &usize| {
            let frame = &self.frames[*at];
            !frame.taken || *at != place.frame && frame.children == 0 && !frame.dirty
        };
        if let Some(at) = self.least_recent(gives_way) {
            if core::mem::replace(&mut self.frames[at].taken, false) {
                let parent = self.frames[at].parent;
                self.frames[parent].children -= 1;
            }
            self.keep_leaf(at, item.value, node);
        }
        Ok(())
    }

    fn frame_of_leaf(&self, leaf: Ppn) -> Option<usize> {
        self.frames.iter().position(|frame| frame.leaf == leaf)
    }

    /// An empty frame of some, or the one used least recently.
    fn least_recent(&self, of: impl FnMut(&usize) -> bool) -> Option<usize> {
        let rank = |at: &usize| {
            let frame = &self.frames[*at];
            (frame.taken || frame.leaf.is_some(), frame.used)
        };
        (1..self.frames.len()).filter(of).min_by_key(rank)
    }

    fn keep_leaf(&mut self, at: usize, leaf: Ppn, node: &Node) {
        let frame = &mut self.frames[at];
        (frame.leaf, frame.used) = (leaf, self.clock);
        frame.node.copy(node);
    }

    /// A page is not a leaf that is in a frame, or not any more.
    fn forget_leaf(&mut self, ppn: Ppn) {
        if let Some(at) = self.frame_of_leaf(ppn).filter(|_| ppn.is_some()) {
            self.frames[at].leaf = Ppn::NONE;
        }
    }

    /// Takes a node of a level from the page that an item names.
    fn fetch<N: Nand, V>(
        &mut self,
        ctx: &mut Context<'_, N, V>,
        item: Item,
        level: u32,
        purpose: Purpose,
        node: &mut Node,
    ) -> Result<(), FtlError> {
        if !item.value.is_some() {
            node.clear(item.key);
            return Ok(());
        }
        ctx.core.flash.read_meta(purpose, item.value, &mut self.buffer)?;
        let limit = ctx.core.space.geometry().pages();
        node.parse(&self.buffer, level, item.key, limit).map_err(|reason| FtlError::Damaged {
            structure: "node of the mapping tree",
            ppn: item.value,
            reason,
        })
    }

    /// Programs a leaf that ends before `end`; nothing leads to the page yet.
    pub(super) fn program<N: Nand, V>(
        &mut self,
        ctx: &mut Context<'_, N, V>,
        leaf: &Node,
        end: u32,
        purpose: Purpose,
    ) -> Result<Ppn, FtlError> {
        leaf.format(&mut self.buffer);
        let (key, role) = (leaf.items[0].key, Role::Leaf { end }.encode());
        let ppn = ctx.core.program_metadata(purpose, PageKind::Translation, key, role, &self.buffer)?;
        if self.cache_leaves {
            self.note_leaf(ppn, leaf);
        }
        Ok(ppn)
    }

    /// A page is this leaf from now on.
    fn note_leaf(&mut self, ppn: Ppn, leaf: &Node) {
        self.clock += 1;
        self.forget_leaf(ppn);
        // A place that the caller goes on with must stay, so that no inner node gives way.
        if let Some(at) = self.least_recent(|at| !self.frames[*at].taken) {
            self.keep_leaf(at, ppn, leaf);
        }
    }

    /// The item at a place.
    pub(super) fn item(&self, place: Place) -> Item {
        self.frames[place.frame].node.items[place.index]
    }

    /// The node at a place is on another page now; answers where it was.
    pub(super) fn replace(&mut self, place: Place, ppn: Ppn) -> Ppn {
        let frame = &mut self.frames[place.frame];
        frame.dirty = true;
        let old = core::mem::replace(&mut frame.node.items[place.index].value, ppn);
        self.forget_leaf(old);
        old
    }

    /// The node at a place was copied to another page as it is.
    pub(super) fn moved(&mut self, place: Place, to: Ppn) {
        self.forget_leaf(to);
        self.replace(place, to);
    }

    /// A node got a sibling after it. There has to be room, see [`Tree::make_room`].
    pub(super) fn insert_after(&mut self, place: Place, item: Item) {
        let frame = &mut self.frames[place.frame];
        frame.dirty = true;
        frame.node.items.insert(place.index + 1, item);
    }

    /// The place of the node of a level that covers a key; `None` if the tree is not that high.
    pub(super) fn descend<N: Nand, V: Validity>(
        &mut self,
        ctx: &mut Context<'_, N, V>,
        key: u32,
        level: u32,
        purpose: Purpose,
    ) -> Result<Option<Place>, FtlError> {
        let (mut at, mut end) = (ROOT, self.end);
        if self.frames[ROOT].node.level <= level {
            return Ok(None);
        }
        loop {
            let node = &self.frames[at].node;
            let index = node.position(key);
            end = node.items.get(index + 1).map_or(end, |item| item.key);
            if node.level == level + 1 {
                return Ok(Some(Place { frame: at, index, end }));
            }
            at = self.child(ctx, Place { frame: at, index, end }, purpose)?;
        }
    }

    /// The leaf that covers a key, without taking a frame on the way: what is in one stays there.
    pub(super) fn peek<N: Nand, V>(
        &mut self,
        ctx: &mut Context<'_, N, V>,
        key: u32,
        node: &mut Node,
    ) -> Result<(), FtlError> {
        let mut at = ROOT;
        loop {
            let Node { level, items, .. } = &self.frames[at].node;
            let (level, item) = (level - 1, items[self.frames[at].node.position(key)]);
            match self.resident(at, item.key).filter(|_| level > 0) {
                Some(child) => at = child,
                None => {
                    self.fetch(ctx, item, level, Purpose::Translation, node)?;
                    break;
                }
            }
        }
        while node.level > 0 {
            let (level, item) = (node.level - 1, node.items[node.position(key)]);
            self.fetch(ctx, item, level, Purpose::Translation, node)?;
        }
        Ok(())
    }

    /// The frame of the child of the node in a frame that begins with a key, if it is in one.
    fn resident(&self, parent: usize, key: u32) -> Option<usize> {
        let is_child = |f: &Frame| f.taken && f.parent == parent && f.node.items[0].key == key;
        (1..self.frames.len()).find(|&at| is_child(&self.frames[at]))
    }

    /// The frame of the inner node at a place.
    fn child<N: Nand, V: Validity>(
        &mut self,
        ctx: &mut Context<'_, N, V>,
        place: Place,
        purpose: Purpose,
    ) -> Result<usize, FtlError> {
        let key = self.item(place).key;
        self.clock += 1;
        if let Some(at) = self.resident(place.frame, key) {
            self.frames[at].used = self.clock;
            return Ok(at);
        }
        let at = self.vacate(ctx, place.frame, purpose)?;
        let mut node = core::mem::replace(&mut self.frames[at].node, Node::nothing());
        let read = self.read(ctx, place, purpose, &mut node);
        self.frames[at].node = node;
        read?;
        self.take(at, place.frame, false);
        Ok(at)
    }

    fn take(&mut self, at: usize, parent: usize, dirty: bool) {
        let frame = &mut self.frames[at];
        (frame.parent, frame.dirty, frame.taken, frame.children, frame.used) = (parent, dirty, true, 0, self.clock);
        self.frames[parent].children += 1;
    }

    /// A frame that is free: a node without children in frames gives way, but not `kept`. There is one, because there are
    /// more frames than levels.
    fn vacate<N: Nand, V: Validity>(
        &mut self,
        ctx: &mut Context<'_, N, V>,
        kept: usize,
        purpose: Purpose,
    ) -> Result<usize, FtlError> {
        let goes = |at: &usize| *at != kept && self.frames[*at].children == 0;
        let at = self.least_recent(goes).unwrap_or(self.frames.len() - 1);
        self.frames[at].leaf = Ppn::NONE;
        if !self.frames[at].taken {
            return Ok(at);
        }
        let parent = self.frames[at].parent;
        if self.frames[at].dirty {
            let Self { frames, buffer, .. } = self;
            let node = &frames[at].node;
            node.format(buffer);
            let key = node.items[0].key;
            let role = Role::Inner { level: node.level }.encode();
            let new = ctx.core.program_metadata(purpose, PageKind::Translation, key, role, buffer)?;
            let index = frames[parent].node.position(key);
            self.frames[at].dirty = false;
            let old = self.replace(Place { frame: parent, index, end: 0 }, new);
            if old.is_some() {
                ctx.translation_page_died(old)?;
            }
        }
        self.frames[at].taken = false;
        self.frames[parent].children -= 1;
        Ok(at)
    }

    /// Splits what is full on the way to a leaf, so that its parent can take one more.
    pub(super) fn make_room<N: Nand, V: Validity>(
        &mut self,
        ctx: &mut Context<'_, N, V>,
        key: u32,
        purpose: Purpose,
    ) -> Result<(), FtlError> {
        if self.frames[ROOT].node.items.len() == self.capacity {
            self.grow(ctx, purpose)?;
        }
        let mut at = ROOT;
        while self.frames[at].node.level > 1 {
            let index = self.frames[at].node.position(key);
            let place = Place { frame: at, index, end: 0 };
            let child = self.child(ctx, place, purpose)?;
            if self.frames[child].node.items.len() == self.capacity {
                self.split(ctx, place, child, purpose)?;
            } else {
                at = child;
            }
        }
        Ok(())
    }

    /// The root becomes the only child of a new root.
    fn grow<N: Nand, V: Validity>(&mut self, ctx: &mut Context<'_, N, V>, purpose: Purpose) -> Result<(), FtlError> {
        let at = self.vacate(ctx, ROOT, purpose)?;
        let children = core::mem::replace(&mut self.frames[ROOT].children, 0);
        for frame in self.frames.iter_mut().skip(1).filter(|frame| frame.taken && frame.parent == ROOT) {
            frame.parent = at;
        }
        let (root, rest) = self.frames.split_at_mut(1);
        core::mem::swap(&mut root[ROOT].node, &mut rest[at - 1].node);
        let level = rest[at - 1].node.level + 1;
        root[ROOT].node.clear(0);
        root[ROOT].node.level = level;
        self.take(at, ROOT, true);
        self.frames[at].children = children;
        Ok(())
    }

    /// Splits the full inner node at a place, which is in frame `lower`.
    fn split<N: Nand, V: Validity>(
        &mut self,
        ctx: &mut Context<'_, N, V>,
        place: Place,
        lower: usize,
        purpose: Purpose,
    ) -> Result<(), FtlError> {
        let upper = self.vacate(ctx, lower, purpose)?;
        let mut node = core::mem::replace(&mut self.frames[upper].node, Node::nothing());
        let key = self.frames[lower].node.split(&mut node);
        self.frames[upper].node = node;
        self.frames[lower].dirty = true;
        self.insert_after(place, Item { key, value: Ppn::NONE });
        self.take(upper, place.frame, true);
        for at in 1..self.frames.len() {
            let frame = &mut self.frames[at];
            if frame.taken && frame.parent == lower && frame.node.items[0].key >= key {
                frame.parent = upper;
                self.frames[lower].children -= 1;
                self.frames[upper].children += 1;
            }
        }
        Ok(())
    }

    /// Every leaf in order: its first key and its page. Allocates; for checks.
    pub(super) fn leaves<N: Nand>(&self, nand: &mut N) -> Result<Vec<Item>, FtlError> {
        let mut nodes: Vec<(Option<usize>, Item)> = alloc::vec![(Some(ROOT), Item { key: 0, value: Ppn::NONE })];
        let mut page = alloc::vec![0; self.buffer.len()];
        let mut node = Node::new(page.len() as u32);
        for level in (1..=self.frames[ROOT].node.level).rev() {
            let mut below = Vec::new();
            for (frame, item) in nodes {
                let items = if let Some(at) = frame {
                    &self.frames[at].node.items
                } else {
                    nand.read_meta(item.value, &mut page)?;
                    let damaged = |reason| FtlError::Damaged { structure: "node", ppn: item.value, reason };
                    node.parse(&page, level, item.key, u32::MAX).map_err(damaged)?;
                    &node.items
                };
                for item in items {
                    let is_child = |f: &Frame| f.taken && Some(f.parent) == frame && f.node.items[0].key == item.key;
                    let child = (1..self.frames.len()).find(|&at| is_child(&self.frames[at]));
                    below.push((child, *item));
                }
            }
            nodes = below;
        }
        Ok(nodes.into_iter().map(|(_, item)| item).collect())
    }

    pub(super) fn ram_bytes(&self) -> u64 {
        let frames = self.frames.capacity() * size_of::<Frame>() + self.buffer.capacity();
        frames as u64 + self.frames.iter().map(|frame| frame.node.ram_bytes()).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(value: u32) -> Node {
        let mut leaf = Node::new(512);
        leaf.clear(0);
        leaf.items[0].value = Ppn(value);
        leaf
    }

    #[test]
    fn a_frame_never_holds_what_a_page_was_before() {
        let mut tree = Tree::new(1000, 512, 16, true);
        let place = Place { frame: ROOT, index: 0, end: 1000 };
        let cached =
            |tree: &Tree, ppn: u32| tree.frame_of_leaf(Ppn(ppn)).map(|at| tree.frames[at].node.items[0].value.0);
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
