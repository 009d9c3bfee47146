//! The nodes in RAM as a battery saves them.

use super::frames::{Frame, ROOT};
use super::node::{Item, Node};
use super::tree::Tree;
use crate::contract::FtlError;
use crate::saved::{Sink, Source};
use nand::Ppn;

/// Bytes that a save puts for a node in a frame, beside its items.
const SAVED_FRAME_BYTES: u64 = 20;

impl Tree {
    /// The most bytes that [`Tree::save`] puts.
    pub(super) fn saved_bytes(&self) -> u64 {
        let nodes = self.most_inner().min(self.frames.len() as u32);
        4 + u64::from(nodes) * (SAVED_FRAME_BYTES + self.page_bytes as u64)
    }

    /// Puts every node that is in a frame.
    pub(super) fn save(&self, sink: &mut dyn Sink) -> Result<(), FtlError> {
        let taken = || self.frames.iter().filter(|(_, frame)| frame.is_inner());
        sink.put_u32(taken().count() as u32)?;
        for (at, frame) in taken() {
            let (node, dirty) = (&frame.node, u32::from(frame.is_dirty()));
            for word in [at as u32, frame.parent() as u32, dirty, node.level, node.len() as u32] {
                sink.put_u32(word)?;
            }
            for Item { key, value } in node.items() {
                sink.put_u32(key)?;
                sink.put_u32(value.0)?;
            }
        }
        Ok(())
    }

    /// Takes over the nodes that were saved; `None` if they are not of this tree on a device of so
    /// many pages.
    pub(super) fn load(&mut self, source: &mut Source<'_>, pages: u32) -> Option<()> {
        self.known = false;
        let count = source.take_u32()?;
        for _ in 0..count {
            let [at, parent] = [source.take_u32()? as usize, source.take_u32()? as usize];
            let [dirty, level, items] = [source.take_u32()?, source.take_u32()?, source.take_u32()?];
            if at.max(parent) >= self.frames.len() || items == 0 || items as usize > self.capacity {
                return None;
            }
            let node = self.frames.node_mut(at);
            (node.level, node.speaks_for) = (level, 0);
            node.clear_items();
            for index in 0..items as usize {
                let item = Item { key: source.take_u32()?, value: Ppn(source.take_u32()?) };
                if item.key >= self.end || item.value.is_some() && item.value.0 >= pages {
                    return None;
                }
                node.insert(index, item);
            }
            self.frames.set_saved(at, parent, dirty != 0);
        }
        if !self.is_sound() {
            return None;
        }
        self.frames.link_saved();
        Some(())
    }

    /// Whether every node that is in a frame is where its parent says, in order, and within the
    /// keys that its parent gives it.
    fn is_sound(&self) -> bool {
        let in_order = |node: &Node| node.items().map(|item| item.key).is_sorted_by(|one, next| one < next);
        let fits = |(at, frame): (usize, &Frame)| {
            let (node, parent) = (&frame.node, self.frames.get(frame.parent()));
            let (above, key) = (&parent.node, node.first());
            let led_to = || above.level == node.level + 1 && above.items().any(|item| item.key == key);
            in_order(node) && if at == ROOT { key == 0 && node.level > 0 } else { parent.is_inner() && led_to() }
        };
        let inner = || self.frames.iter().filter(|(_, frame)| frame.is_inner());
        inner().all(fits) && inner().all(|(at, frame)| frame.node.last() < self.end_of(at))
    }

    /// Where the keys of the node in a frame end. Each node has to be one level below its parent.
    fn end_of(&self, at: usize) -> u32 {
        if at == ROOT {
            return self.end;
        }
        let parent = self.frames.get(at).parent();
        let (above, key) = (self.frames.node(parent), self.frames.node(at).first());
        above.item_after(above.position(key)).map_or_else(|| self.end_of(parent), |next| next.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn tree() -> Tree {
        Tree::new(100, 512, 0, false)
    }

    /// Whether a tree of 100 logical pages on 1000 takes over these words.
    fn loads(words: &[u32]) -> bool {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        tree().load(&mut Source(&bytes), 1000).is_some()
    }

    #[test]
    fn what_no_tree_of_this_disk_saved_is_refused() {
        // How many nodes; of each its frame, that of its parent, whether it is dirty, its level and
        // how many items; of each its key and its page.
        let root = [1, ROOT as u32, ROOT as u32, 0, 1, 1, 0, 7];
        assert!(loads(&root));
        let frames = tree().frames.len() as u32;
        let wrong =
            [(1, frames), (2, frames), (2, u32::MAX), (4, 0), (5, 0), (5, u32::MAX), (6, 100), (6, 1), (7, 1000)];
        for (at, word) in wrong {
            let mut words = root;
            words[at] = word;
            assert!(!loads(&words), "word {at} is {word}");
        }
        assert!(!loads(&root[..7]), "the end is missing");
    }
}
