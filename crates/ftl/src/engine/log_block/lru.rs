//! Who was used least recently: a doubly linked list threaded through an array, every operation
//! O(1).

use alloc::vec::Vec;

#[derive(Clone, Copy, Debug)]
struct Links {
    /// Towards the least recently used.
    older: u32,
    newer: u32,
}

/// Things numbered from 0, those that are listed in the order of their last use.
#[derive(Debug)]
pub struct Lru {
    /// One node a thing, then the sentinel. A thing that is not listed points to itself.
    links: Vec<Links>,
    listed: u32,
}

impl Lru {
    /// An empty list of things numbered below `things`.
    #[must_use]
    pub fn new(things: u32) -> Self {
        Self { links: (0..=things).map(|i| Links { older: i, newer: i }).collect(), listed: 0 }
    }

    #[inline]
    fn sentinel(&self) -> u32 {
        self.links.len() as u32 - 1
    }

    /// Things listed.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u32 {
        self.listed
    }

    /// Whether nothing is listed.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.listed == 0
    }

    /// Whether a thing is listed.
    #[inline]
    #[must_use]
    pub fn contains(&self, thing: u32) -> bool {
        self.links[thing as usize].older != thing
    }

    /// A thing was used: it is listed as the most recent.
    #[inline]
    pub fn touch(&mut self, thing: u32) {
        self.remove(thing);
        let sentinel = self.sentinel();
        let newest = self.links[sentinel as usize].older;
        self.links[thing as usize] = Links { older: newest, newer: sentinel };
        self.links[newest as usize].newer = thing;
        self.links[sentinel as usize].older = thing;
        self.listed += 1;
        debug_assert!(self.newer(thing).is_none() && self.listed < self.links.len() as u32);
    }

    /// Takes a thing off the list, if it is listed.
    #[inline]
    pub fn remove(&mut self, thing: u32) {
        let Links { older, newer } = self.links[thing as usize];
        if older == thing {
            return;
        }
        self.links[older as usize].newer = newer;
        self.links[newer as usize].older = older;
        self.links[thing as usize] = Links { older: thing, newer: thing };
        self.listed -= 1;
    }

    /// The thing used least recently.
    #[inline]
    #[must_use]
    pub fn oldest(&self) -> Option<u32> {
        self.iter().next()
    }

    /// The thing used next after a listed one; `None` if that is the most recent.
    #[inline]
    #[must_use]
    pub fn newer(&self, thing: u32) -> Option<u32> {
        let next = self.links[thing as usize].newer;
        debug_assert!(self.links[next as usize].older == thing, "{next} comes after {thing} and does not know");
        (next != self.sentinel()).then_some(next)
    }

    /// What is listed, from the least recently used on.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        core::iter::successors(self.newer(self.sentinel()), |&at| self.newer(at))
    }

    /// Bytes of RAM held.
    #[must_use]
    pub fn ram_bytes(&self) -> u64 {
        (self.links.capacity() * size_of::<Links>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_the_one_touched_longest_ago() {
        let mut lru = Lru::new(5);
        assert_eq!(lru.oldest(), None);
        [3, 0, 4, 3].iter().for_each(|&i| lru.touch(i));
        assert_eq!(lru.iter().collect::<Vec<_>>(), [0, 4, 3]);
        lru.remove(0);
        lru.remove(0);
        assert!(lru.len() == 2 && lru.oldest() == Some(4) && !lru.contains(0) && lru.contains(3));
    }
}
