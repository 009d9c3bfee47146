//! The frames in RAM that hold nodes of the tree: where a node is, and which was used least
//! recently.
//!
//! A frame holds an inner node, a leaf that may be forgotten at any time, or nothing. Those that
//! can give way are in three lists by what that takes, each in the order of use: nothing and
//! leaves, clean inner nodes, dirty ones. An inner node with children in frames is in none.

use super::node::Node;
use alloc::vec::Vec;
use nand::Ppn;

/// The frame of the root.
pub(super) const ROOT: usize = 0;

const NONE: u32 = u32::MAX;
const LISTS: usize = 3;

/// What it takes for a frame to be free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effort {
    /// Nothing: there is no node, or a leaf as flash has it.
    None,
    /// An inner node is read again when it is needed.
    Read,
    /// An inner node has to be programmed.
    Program,
}

#[derive(Debug)]
pub(super) struct Frame {
    pub(super) node: Node,
    parent: u32,
    /// Children that are in frames.
    children: u32,
    /// When it was used last; 0 if there is nothing.
    used: u64,
    /// The first key of an inner node, or the page of a leaf.
    name: u32,
    /// Next with the same hash value of its name.
    chain: u32,
    newer: u32,
    older: u32,
    dirty: bool,
    /// It holds an inner node.
    inner: bool,
}

impl Frame {
    pub(super) const fn parent(&self) -> usize {
        self.parent as usize
    }

    pub(super) const fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// Whether it holds an inner node.
    pub(super) const fn is_inner(&self) -> bool {
        self.inner
    }

    const fn holds_leaf(&self, page: Ppn) -> bool {
        !self.inner && self.name == page.0
    }
}

/// All frames, the first of which is the root's.
#[derive(Debug)]
pub(super) struct Frames {
    frames: Vec<Frame>,
    /// By the hash value of a name: the first frame.
    buckets: Vec<u32>,
    shift: u32,
    /// Oldest and newest of each list.
    ends: [(u32, u32); LISTS],
    clock: u64,
}

impl Frames {
    pub(super) fn new(page_bytes: u32, count: u32) -> Self {
        let frame = |_| Frame {
            node: Node::new(page_bytes),
            parent: ROOT as u32,
            children: 0,
            used: 0,
            name: NONE,
            chain: NONE,
            newer: NONE,
            older: NONE,
            dirty: false,
            inner: false,
        };
        let buckets = (count as usize * 2).next_power_of_two();
        let mut frames = Self {
            frames: (0..count).map(frame).collect(),
            buckets: alloc::vec![NONE; buckets],
            shift: 32 - buckets.trailing_zeros(),
            ends: [(NONE, NONE); LISTS],
            clock: 0,
        };
        debug_assert!(frames.len() > 1 && frames.len() <= buckets);
        frames.frames[ROOT].inner = true;
        (1..frames.len()).for_each(|at| frames.link(at, false));
        frames
    }

    pub(super) const fn len(&self) -> usize {
        self.frames.len()
    }

    pub(super) fn get(&self, at: usize) -> &Frame {
        &self.frames[at]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Frame)> + '_ {
        self.frames.iter().enumerate()
    }

    pub(super) fn node(&self, at: usize) -> &Node {
        &self.frames[at].node
    }

    pub(super) fn node_mut(&mut self, at: usize) -> &mut Node {
        &mut self.frames[at].node
    }

    /// Splits the node in one frame, leaving its upper half in another; answers the first key of
    /// that.
    pub(super) fn split(&mut self, lower: usize, upper: usize) -> u32 {
        let mut node = core::mem::replace(&mut self.frames[upper].node, Node::nothing());
        let key = self.frames[lower].node.split(&mut node);
        debug_assert!(node.level == self.frames[lower].node.level && key > self.frames[lower].node.first());
        self.frames[upper].node = node;
        key
    }

    fn bucket(&self, name: u32) -> usize {
        (name.wrapping_mul(0x9E37_79B1) >> self.shift) as usize
    }

    fn find(&self, name: u32, is_it: impl Fn(&Frame) -> bool) -> Option<usize> {
        let mut at = self.buckets[self.bucket(name)];
        while at != NONE {
            let frame = &self.frames[at as usize];
            if frame.name == name && is_it(frame) {
                return Some(at as usize);
            }
            at = frame.chain;
        }
        None
    }

    /// The frame of the child of the node in a frame that begins with a key, if it is in one.
    pub(super) fn child(&self, parent: usize, key: u32) -> Option<usize> {
        self.find(key, |frame| frame.inner && frame.parent() == parent)
    }

    /// The frame that holds the leaf on a page.
    pub(super) fn leaf(&self, page: Ppn) -> Option<usize> {
        self.find(page.0, |frame| frame.holds_leaf(page)).filter(|_| page.is_some())
    }

    fn enter(&mut self, at: usize) {
        let bucket = self.bucket(self.frames[at].name);
        self.frames[at].chain = core::mem::replace(&mut self.buckets[bucket], at as u32);
    }

    fn leave(&mut self, at: usize) {
        let Frame { name, chain, .. } = self.frames[at];
        let bucket = self.bucket(name);
        if self.buckets[bucket] == at as u32 {
            self.buckets[bucket] = chain;
            return;
        }
        let mut before = self.buckets[bucket];
        while before != NONE {
            let next = self.frames[before as usize].chain;
            if next == at as u32 {
                self.frames[before as usize].chain = chain;
                return;
            }
            before = next;
        }
        debug_assert!(false, "frame {at} is in no chain");
    }

    /// Which list a frame belongs to.
    fn list(&self, at: usize) -> Option<usize> {
        let frame = &self.frames[at];
        let effort = match (frame.inner, frame.dirty) {
            (false, _) => Effort::None,
            (true, false) => Effort::Read,
            (true, true) => Effort::Program,
        };
        (at != ROOT && (!frame.inner || frame.children == 0)).then_some(effort as usize)
    }

    /// Puts a frame where it belongs, looking from the newest or the oldest on.
    fn link(&mut self, at: usize, from_newest: bool) {
        let Some(list) = self.list(at) else { return };
        debug_assert!(self.frames[at].inner || (self.frames[at].used == 0) == (self.frames[at].name == NONE));
        let used = self.frames[at].used;
        let (mut older, mut newer);
        if from_newest {
            (older, newer) = (self.ends[list].1, NONE);
            while older != NONE && self.frames[older as usize].used > used {
                (older, newer) = (self.frames[older as usize].older, older);
            }
        } else {
            (older, newer) = (NONE, self.ends[list].0);
            while newer != NONE && self.frames[newer as usize].used < used {
                (older, newer) = (newer, self.frames[newer as usize].newer);
            }
        }
        debug_assert!(
            older == NONE || self.frames[older as usize].used <= used,
            "frame {at} is newer than one used later"
        );
        debug_assert!(
            newer == NONE || self.frames[newer as usize].used >= used,
            "frame {at} is older than one used before"
        );
        (self.frames[at].older, self.frames[at].newer) = (older, newer);
        self.join(list, older, at as u32);
        self.join(list, at as u32, newer);
    }

    /// Whether both neighbours of a frame, or the ends of its list, lead to it.
    fn is_in_list(&self, at: usize, list: usize) -> bool {
        let Frame { older, newer, .. } = self.frames[at];
        let from_older = if older == NONE { self.ends[list].0 } else { self.frames[older as usize].newer };
        let from_newer = if newer == NONE { self.ends[list].1 } else { self.frames[newer as usize].older };
        (from_older, from_newer) == (at as u32, at as u32)
    }

    fn unlink(&mut self, at: usize) {
        if let Some(list) = self.list(at) {
            debug_assert!(self.is_in_list(at, list), "frame {at} is not in list {list}");
            self.join(list, self.frames[at].older, self.frames[at].newer);
        }
    }

    fn join(&mut self, list: usize, older: u32, newer: u32) {
        match older {
            NONE => self.ends[list].0 = newer,
            older => self.frames[older as usize].newer = newer,
        }
        match newer {
            NONE => self.ends[list].1 = older,
            newer => self.frames[newer as usize].older = older,
        }
    }

    fn now(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// A node is used.
    pub(super) fn touch(&mut self, at: usize) {
        self.unlink(at);
        self.frames[at].used = self.now();
        self.link(at, true);
    }

    /// The node in a frame is another than in flash.
    pub(super) fn mark_dirty(&mut self, at: usize) {
        if !self.frames[at].dirty {
            self.unlink(at);
            self.frames[at].dirty = true;
            self.link(at, true);
        }
    }

    /// The node in a frame is that in flash.
    pub(super) fn mark_clean(&mut self, at: usize) {
        debug_assert!(self.frames[at].inner && at != ROOT, "frame {at} holds nothing that is programmed from here");
        self.unlink(at);
        self.frames[at].dirty = false;
        self.link(at, false);
    }

    /// A frame that was free holds an inner node from now on.
    pub(super) fn hold_inner(&mut self, at: usize, parent: usize, dirty: bool) {
        debug_assert!(!self.frames[at].inner && self.frames[at].used == 0, "frame {at} is not free");
        debug_assert!(self.frames[parent].inner, "frame {parent} holds no inner node");
        self.unlink(at);
        let used = self.now();
        let frame = &mut self.frames[at];
        (frame.name, frame.parent, frame.dirty, frame.inner) = (frame.node.first(), parent as u32, dirty, true);
        (frame.children, frame.used) = (0, used);
        self.enter(at);
        self.link(at, true);
        self.unlink(parent);
        self.frames[parent].children += 1;
        self.link(parent, false);
    }

    /// A frame that was free holds the leaf on a page from now on.
    pub(super) fn hold_leaf(&mut self, at: usize, page: Ppn) {
        debug_assert!(!self.frames[at].inner && self.frames[at].used == 0, "frame {at} is not free");
        debug_assert!(self.frames[at].node.level == 0 && self.leaf(page).is_none(), "{page} is in two frames");
        self.unlink(at);
        (self.frames[at].name, self.frames[at].used) = (page.0, self.now());
        self.enter(at);
        self.link(at, true);
    }

    /// A frame is free. An inner node has no children in frames.
    pub(super) fn clear(&mut self, at: usize) {
        debug_assert!(at != ROOT && (!self.frames[at].inner || self.frames[at].children == 0), "frame {at} is needed");
        self.unlink(at);
        if self.frames[at].name != NONE {
            self.leave(at);
        }
        let frame = &mut self.frames[at];
        let was_inner = core::mem::replace(&mut frame.inner, false);
        (frame.name, frame.used, frame.dirty) = (NONE, 0, false);
        let parent = frame.parent();
        self.link(at, false);
        if was_inner {
            self.unlink(parent);
            self.frames[parent].children -= 1;
            self.link(parent, false);
        }
    }

    /// The frame used least recently of those that take no more than an effort to be free, but not
    /// `kept`. Empty ones come first.
    pub(super) fn oldest(&self, most: Effort, kept: usize) -> Option<usize> {
        let of_list = |&(oldest, _): &(u32, u32)| {
            let at = if oldest == kept as u32 { self.frames[kept].newer } else { oldest };
            (at != NONE).then_some(at as usize)
        };
        self.ends[..=most as usize].iter().filter_map(of_list).min_by_key(|at| self.frames[*at].used)
    }

    /// What the root was is in a frame that was free, and its children have that for a parent. The
    /// root is another node now.
    pub(super) fn lower_root(&mut self, at: usize) {
        let children = core::mem::replace(&mut self.frames[ROOT].children, 0);
        for frame in self.frames.iter_mut().skip(1).filter(|frame| frame.inner && frame.parent() == ROOT) {
            frame.parent = at as u32;
        }
        self.hold_inner(at, ROOT, true);
        self.unlink(at);
        self.frames[at].children = children;
        self.link(at, true);
    }

    /// The children of a node in a frame that begin at a key or behind it have another parent from
    /// now on.
    pub(super) fn hand_over(&mut self, lower: usize, upper: usize, key: u32) {
        debug_assert!(self.frames[lower].parent == self.frames[upper].parent && self.frames[upper].node.first() == key);
        self.unlink(lower);
        self.unlink(upper);
        let mut moved = 0;
        for frame in self.frames.iter_mut().skip(1) {
            if frame.inner && frame.parent() == lower && frame.name >= key {
                frame.parent = upper as u32;
                moved += 1;
            }
        }
        self.frames[lower].children -= moved;
        self.frames[upper].children += moved;
        self.link(lower, true);
        self.link(upper, true);
    }

    /// A frame holds an inner node that was saved. Lists and index know of it after
    /// [`Frames::link_saved`].
    pub(super) fn set_saved(&mut self, at: usize, parent: usize, dirty: bool) {
        let frame = &mut self.frames[at];
        (frame.parent, frame.dirty, frame.inner) = (parent as u32, dirty, true);
    }

    /// Makes lists and index anew.
    pub(super) fn link_saved(&mut self) {
        self.buckets.fill(NONE);
        self.ends = [(NONE, NONE); LISTS];
        self.frames.iter_mut().for_each(|frame| frame.children = 0);
        for at in 1..self.len() {
            if !self.frames[at].inner {
                continue;
            }
            self.frames[at].name = self.frames[at].node.first();
            let parent = self.frames[at].parent();
            self.frames[parent].children += 1;
            self.enter(at);
        }
        debug_assert_eq!(
            self.frames.iter().map(|frame| frame.children as usize).sum::<usize>() + 1,
            self.frames.iter().filter(|frame| frame.inner).count(),
            "every inner node but the root is a child"
        );
        (1..self.len()).for_each(|at| self.link(at, false));
    }

    pub(super) fn ram_bytes(&self) -> u64 {
        let tables = self.frames.capacity() * size_of::<Frame>() + self.buckets.capacity() * size_of::<u32>();
        tables as u64 + self.frames.iter().map(|frame| frame.node.ram_bytes()).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAMES: u32 = 24;

    fn hold(frames: &mut Frames, at: usize, parent: usize, key: u32, dirty: bool) {
        frames.node_mut(at).clear(key);
        frames.hold_inner(at, parent, dirty);
    }

    /// What the lists say, by looking at every frame.
    fn plain(frames: &Frames, most: Effort, kept: usize) -> Option<u64> {
        let goes = |at: usize, frame: &Frame| {
            let effort = match (frame.inner, frame.dirty) {
                (false, _) => Effort::None,
                (true, dirty) => {
                    if dirty {
                        Effort::Program
                    } else {
                        Effort::Read
                    }
                }
            };
            at != ROOT && at != kept && (!frame.inner || frame.children == 0) && effort <= most
        };
        frames.iter().filter(|(at, frame)| goes(*at, frame)).map(|(_, frame)| frame.used).min()
    }

    #[test]
    fn the_least_recent_is_that_of_all_frames_whatever_was_done_before() {
        let mut frames = Frames::new(512, FRAMES);
        frames.node_mut(ROOT).clear(0);
        let (mut random, mut key) = (1_u64, 0);
        for _ in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (what, at) = ((random >> 40) % 6, 1 + (random >> 33) as usize % (FRAMES as usize - 1));
            let (inner, free) = (frames.get(at).inner, frames.get(at).name == NONE);
            match what {
                0 if free => frames.hold_leaf(at, Ppn(1_000_000 + key)),
                1 | 2 if free => {
                    let parent = frames.iter().find(|(other, f)| f.inner && *other >= at / 2 && *other != at);
                    let parent = parent.map_or(ROOT, |(other, _)| other);
                    hold(&mut frames, at, parent, key, what == 1);
                }
                3 if !free => frames.touch(at),
                4 if inner && frames.get(at).dirty => frames.mark_clean(at),
                4 if inner => frames.mark_dirty(at),
                5 if !free && (!inner || frames.get(at).children == 0) => frames.clear(at),
                _ => {}
            }
            key += 1;
            for most in [Effort::None, Effort::Read, Effort::Program] {
                for kept in [ROOT, at] {
                    let found = frames.oldest(most, kept).map(|at| frames.get(at).used);
                    assert_eq!(found, plain(&frames, most, kept), "{most:?} but {kept}");
                }
            }
            for (at, frame) in frames.iter().skip(1).filter(|(_, frame)| frame.name != NONE) {
                let found =
                    if frame.inner { frames.child(frame.parent(), frame.name) } else { frames.leaf(Ppn(frame.name)) };
                assert_eq!(found, Some(at));
            }
        }
        assert!(frames.iter().filter(|(_, frame)| frame.inner).count() > 3);
    }

    #[test]
    fn children_of_the_root_are_those_of_the_node_that_takes_its_place() {
        let mut frames = Frames::new(512, FRAMES);
        frames.node_mut(ROOT).clear(0);
        for (at, key) in [(1, 10), (2, 20), (FRAMES as usize - 1, 30)] {
            hold(&mut frames, at, ROOT, key, false);
        }
        frames.node_mut(7).clear(0);
        frames.lower_root(7);
        assert_eq!([10, 20, 30].map(|key| frames.child(7, key)), [Some(1), Some(2), Some(FRAMES as usize - 1)]);
        assert_eq!(([10, 20, 30].map(|key| frames.child(ROOT, key)), frames.child(ROOT, 0)), ([None; 3], Some(7)));
        assert_eq!((frames.get(7).children, frames.get(ROOT).children), (3, 1));
    }

    #[test]
    fn a_frame_of_no_name_is_never_found() {
        let mut frames = Frames::new(512, FRAMES);
        assert_eq!(frames.leaf(Ppn::NONE), None);
        frames.hold_leaf(3, Ppn(9));
        hold(&mut frames, 4, ROOT, 9, false);
        assert_eq!((frames.leaf(Ppn(9)), frames.child(ROOT, 9), frames.child(4, 9)), (Some(3), Some(4), None));
        frames.clear(3);
        assert_eq!((frames.leaf(Ppn(9)), frames.child(ROOT, 9)), (None, Some(4)));
    }
}
