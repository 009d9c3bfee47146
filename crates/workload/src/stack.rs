//! Things in the order of their last access, with the depth of each.
//!
//! A Fenwick tree over time has a one at each thing's last access (Bennett and Kruskal, IBM J. R&D
//! 1975). Time is renumbered when it runs out, so that the tree has twice as many places as there
//! are things: O(log n) an access.

/// The stack. Things are numbers from 0 on.
pub(crate) struct Stack {
    tree: Vec<u32>,
    /// The thing at each place, or [`NONE`].
    things: Vec<u32>,
    /// The place of each thing, or [`NONE`].
    places: Vec<u32>,
    now: usize,
    len: usize,
}

const NONE: u32 = u32::MAX;

impl Stack {
    /// An empty stack for so many things.
    pub(crate) fn new(things: usize) -> Self {
        let size = (2 * things).next_power_of_two().max(16);
        Stack { tree: vec![0; size + 1], things: vec![NONE; size], places: vec![NONE; things], now: 0, len: 0 }
    }

    /// Things in the stack.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Things accessed since the last access of this one; `None` if there was none.
    pub(crate) fn depth(&self, thing: u32) -> Option<usize> {
        match self.places[thing as usize] {
            NONE => None,
            place => Some(self.len - self.ones_before(place as usize + 1)),
        }
    }

    /// The thing at a depth below [`Stack::len`].
    pub(crate) fn at(&self, depth: usize) -> u32 {
        debug_assert!(depth < self.len, "{depth} of {}", self.len);
        // The smallest place with so many ones up to it.
        let mut wanted = (self.len - depth) as u32;
        let (mut place, mut step) = (0, self.things.len());
        while step > 0 {
            if let Some(&ones) = self.tree.get(place + step).filter(|&&ones| ones < wanted) {
                wanted -= ones;
                place += step;
            }
            step /= 2;
        }
        self.things[place]
    }

    /// An access.
    pub(crate) fn touch(&mut self, thing: u32) {
        if self.now == self.things.len() {
            self.renumber();
        }
        match self.places[thing as usize] {
            NONE => self.len += 1,
            place => {
                self.add(place as usize, u32::MAX);
                self.things[place as usize] = NONE;
            }
        }
        self.places[thing as usize] = self.now as u32;
        self.things[self.now] = thing;
        self.add(self.now, 1);
        self.now += 1;
    }

    fn add(&mut self, place: usize, by: u32) {
        let mut at = place + 1;
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].wrapping_add(by);
            at += at & at.wrapping_neg();
        }
    }

    fn ones_before(&self, end: usize) -> usize {
        let (mut at, mut sum) = (end, 0_u32);
        while at > 0 {
            sum = sum.wrapping_add(self.tree[at]);
            at &= at - 1;
        }
        sum as usize
    }

    fn renumber(&mut self) {
        let order: Vec<u32> = self.things.iter().copied().filter(|&thing| thing != NONE).collect();
        self.tree.fill(0);
        self.things.fill(NONE);
        self.now = order.len();
        for (place, thing) in order.into_iter().enumerate() {
            self.places[thing as usize] = place as u32;
            self.things[place] = thing;
            self.add(place, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pick::Rng;

    #[test]
    fn depths_are_those_of_a_list() {
        for things in [1, 2, 7, 50] {
            let (mut stack, mut list) = (Stack::new(things), Vec::<u32>::new());
            let mut rng = Rng::new(3, 0);
            for _ in 0..3000 {
                let thing = rng.below(things as u64) as u32;
                let depth = list.iter().rev().position(|&other| other == thing);
                assert_eq!(stack.depth(thing), depth);
                list.retain(|&other| other != thing);
                list.push(thing);
                stack.touch(thing);
                assert_eq!(stack.len(), list.len());
                for (depth, &thing) in list.iter().rev().enumerate() {
                    assert_eq!(stack.at(depth), thing, "depth {depth}");
                }
            }
        }
    }
}
