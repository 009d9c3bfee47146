//! The yardstick of [`crate::bench`]: page mapping with greedy collection and nothing else.
//!
//! It does what the FTL `page` does on a device without faults, in a few arrays: no data, no spare
//! areas, no accounting, no laws, no errors, nothing that a mount could use. What an FTL is slower
//! by is what all of that costs.
//!
//! 1. Logical pages are drawn in batches. What a batch needs is loaded before it is used, so that
//!    the misses of its pages overlap.
//! 2. A write kills the page's last copy and takes the next page of the open block.
//! 3. Blocks stand in a list for each count of live pages. A block moves one list down when a page
//!    in it dies.
//! 4. The block with the fewest live pages is collected when the free blocks are few.

use crate::stopwatch::Stopwatch;
use nand::{BlockId, Geometry, Ppn};
use std::hint::black_box;

/// Pages drawn together.
const BATCH: usize = 64;
/// In place of a page or a block: there is none.
const NONE: u32 = u32::MAX;
/// Free blocks that are kept.
const RESERVE: usize = 4;

/// What the loop did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BareResult {
    /// Pages written a second of the computer's time.
    pub writes_per_s: f64,
    /// Programs per write: of greedy collection, as those of `page`.
    pub programs_per_write: f64,
}

/// How often the visible pages are overwritten before anything is measured.
const ROUNDS: u64 = 3;

/// Fills a device of this shape, overwrites it at random until collection is steady, then measures
/// so many writes. `None` if too few blocks are left to collect into.
#[must_use]
pub fn measure(geometry: &Geometry, logical_pages: u32, writes: u64) -> Option<BareResult> {
    let blocks_full = logical_pages.div_ceil(geometry.pages_per_block()) as usize;
    if logical_pages == 0 || blocks_full + RESERVE + 2 > geometry.blocks() as usize {
        return None;
    }
    let mut bare = Bare::new(*geometry, logical_pages);
    (0..logical_pages).for_each(|lpn| bare.write(lpn));
    bare.write_random(ROUNDS * u64::from(logical_pages));
    let before = bare.programs;
    let watch = Stopwatch::start();
    bare.write_random(writes);
    Some(BareResult {
        writes_per_s: watch.rate(writes),
        programs_per_write: (bare.programs - before) as f64 / writes.max(1) as f64,
    })
}

/// Neighbours in a circular list.
#[derive(Clone, Copy)]
struct Link {
    next: u32,
    prev: u32,
}

struct Bare {
    /// Where each logical page is.
    map: Vec<u32>,
    /// Whose each page is; [`NONE`] if it is dead.
    owner: Vec<u32>,
    /// Live pages of each block.
    live: Vec<u32>,
    /// A link a block, then one for each count of live pages.
    links: Vec<Link>,
    free: Vec<u32>,
    open: u32,
    next: u32,
    lowest: u32,
    geometry: Geometry,
    programs: u64,
    random: u64,
}

impl Bare {
    fn new(geometry: Geometry, logical_pages: u32) -> Self {
        let (blocks, pages_per_block) = (geometry.blocks(), geometry.pages_per_block());
        let mut free: Vec<u32> = (0..blocks).rev().collect();
        let open = free.pop().unwrap_or(0);
        Self {
            map: vec![NONE; logical_pages as usize],
            owner: vec![NONE; geometry.pages() as usize],
            live: vec![0; blocks as usize],
            links: (0..=blocks + pages_per_block).map(|i| Link { next: i, prev: i }).collect(),
            free,
            open,
            next: 0,
            lowest: pages_per_block,
            geometry,
            programs: 0,
            random: 0x9E37_79B9_7F4A_7C15,
        }
    }

    fn write_random(&mut self, writes: u64) {
        let mut batch = [0; BATCH];
        let mut left = writes;
        while left > 0 {
            let count = left.min(BATCH as u64) as usize;
            for lpn in &mut batch[..count] {
                *lpn = self.draw();
            }
            let near = batch[..count].iter().map(|lpn| self.map[*lpn as usize]);
            let mut at = [NONE; BATCH];
            at.iter_mut().zip(near).for_each(|(at, near)| *at = near);
            for at in at[..count].iter().filter(|at| **at != NONE) {
                black_box(self.owner[*at as usize]);
            }
            batch[..count].iter().for_each(|lpn| self.write(*lpn));
            left -= count as u64;
        }
    }

    /// A logical page, by the generator of Steele, Lea and Flood (SplitMix64).
    #[inline]
    fn draw(&mut self) -> u32 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((u128::from(z ^ z >> 31) * self.map.len() as u128) >> 64) as u32
    }

    #[inline]
    fn write(&mut self, lpn: u32) {
        while self.free.len() < RESERVE {
            self.collect();
        }
        let old = self.map[lpn as usize];
        if old != NONE {
            self.owner[old as usize] = NONE;
            let block = self.geometry.block_of(Ppn(old)).0;
            self.live[block as usize] -= 1;
            if block != self.open {
                self.unlink(block);
                self.push(block);
            }
        }
        self.program(lpn);
    }

    #[inline]
    fn program(&mut self, lpn: u32) {
        let ppn = self.geometry.page_at(BlockId(self.open), self.next).0;
        self.owner[ppn as usize] = lpn;
        self.map[lpn as usize] = ppn;
        self.live[self.open as usize] += 1;
        self.programs += 1;
        self.next += 1;
        if self.next == self.geometry.pages_per_block() {
            self.push(self.open);
            self.open = self.free.pop().unwrap_or(0);
            self.next = 0;
        }
    }

    fn collect(&mut self) {
        let (blocks, pages) = (self.geometry.blocks(), self.geometry.pages_per_block());
        let occupied = |list: &u32| self.links[*list as usize].next != *list;
        let Some(list) = (blocks + self.lowest..=blocks + pages).find(occupied) else { return };
        self.lowest = list - blocks;
        let victim = self.links[list as usize].next;
        self.unlink(victim);
        for ppn in victim * pages..(victim + 1) * pages {
            let lpn = self.owner[ppn as usize];
            if lpn != NONE {
                self.program(lpn);
                self.owner[ppn as usize] = NONE;
            }
        }
        self.live[victim as usize] = 0;
        self.free.push(victim);
    }

    #[inline]
    fn push(&mut self, block: u32) {
        let live = self.live[block as usize];
        let list = self.geometry.blocks() + live;
        self.lowest = self.lowest.min(live);
        let last = self.links[list as usize].prev;
        self.links[block as usize] = Link { next: list, prev: last };
        self.links[last as usize].next = block;
        self.links[list as usize].prev = block;
    }

    #[inline]
    fn unlink(&mut self, block: u32) {
        let Link { next, prev } = self.links[block as usize];
        self.links[prev as usize].next = next;
        self.links[next as usize].prev = prev;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nand::Dimensions;

    fn shape(blocks: u32) -> Geometry {
        Geometry::new(Dimensions {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks,
            pages_per_block: 64,
            page_bytes: 4096,
            spare_bytes: 64,
        })
        .unwrap()
    }

    #[test]
    fn it_collects_as_theory_says_and_loses_nothing() {
        let result = measure(&shape(1024), 1024 * 64 * 7 / 10, 200_000).unwrap();
        // Greedy collection is a little better than the cleaning equation, which says 1.88.
        assert!((1.7..1.9).contains(&result.programs_per_write), "{result:?}");
        let mut bare = Bare::new(shape(64), 64 * 45);
        (0..64 * 45).for_each(|lpn| bare.write(lpn));
        bare.write_random(50_000);
        for (lpn, ppn) in (0..).zip(&bare.map) {
            assert_eq!(bare.owner[*ppn as usize], lpn);
        }
        let live: u32 = bare.live.iter().sum();
        assert_eq!((live, bare.owner.iter().filter(|owner| **owner != NONE).count()), (64 * 45, 64 * 45));
    }

    #[test]
    fn a_device_without_room_is_refused() {
        assert_eq!(measure(&shape(64), 64 * 59, 1), None);
        assert_eq!(measure(&shape(64), 0, 1), None);
    }
}
